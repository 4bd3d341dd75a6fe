package files

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWrite makes a file, replaces it, and fails to.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	write := func(s string, err error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, err2 := io.WriteString(w, s)
			return errors.Join(err, err2)
		}
	}
	look := func(want string) {
		t.Helper()
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
		list, err := os.ReadDir(dir)
		if err != nil || len(list) != 1 {
			t.Errorf("the folder has %v, %v", list, err)
		}
	}
	if err := Write(path, write("old", nil)); err != nil {
		t.Fatal(err)
	}
	look("old")
	plain, err := os.Create(filepath.Join(t.TempDir(), "plain"))
	if err != nil {
		t.Fatal(err)
	}
	theirs, err1 := plain.Stat()
	ours, err2 := os.Stat(path)
	if err := errors.Join(err1, err2, plain.Close()); err != nil || theirs.Mode() != ours.Mode() {
		t.Errorf("mode %v, want %v (%v)", ours.Mode(), theirs.Mode(), err)
	}
	if err := Write(path, write(strings.Repeat("new", 1<<20), nil)); err != nil {
		t.Fatal(err)
	}
	look(strings.Repeat("new", 1<<20))
	if err := Write(path, write("half", io.ErrUnexpectedEOF)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	look(strings.Repeat("new", 1<<20))
	if err := Write(filepath.Join(dir, "none", "file"), write("x", nil)); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	// A folder in the way of the rename.
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(filepath.Join(dir, "folder"), write("x", nil)); err == nil {
		t.Error("a folder was replaced")
	}
	if err := os.Remove(filepath.Join(dir, "folder")); err != nil {
		t.Fatal(err)
	}
	look(strings.Repeat("new", 1<<20))
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if err := Write("file", write("relative", nil)); err != nil {
		t.Error(err)
	}
	t.Chdir(wd)
	look("relative")
}
