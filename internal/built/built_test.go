package built

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ibweave/ibweave/internal/short"
)

// A program is built again when its source or a flag changes, and at no other time; one for
// which no test asks goes.
func TestProgram(t *testing.T) {
	t.Chdir(t.TempDir())
	all := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		short.Check(t, os.WriteFile(name, []byte(text), 0o600))
	}
	kept := func(pattern string) []string {
		t.Helper()
		return short.Must(filepath.Glob(filepath.Join(all, pattern)))(t)
	}
	write("go.mod", "module hello\n")
	program := func(text string, flags ...string) string {
		t.Helper()
		write("main.go", "package main\n\nfunc main() { print(\""+text+"\") }\n")
		file := short.Must(build(nil, all, "hello", ".", flags...))(t)
		short.Equal(t, short.Must(build(nil, all, "hello", ".", flags...))(t), file, "without a change", "becomes")
		if out, err := exec.Command(file).CombinedOutput(); err != nil || string(out) != text || filepath.Base(file) != "hello" {
			t.Errorf("%s prints %q: %v", file, out, err)
		}
		return file
	}
	first := program("one")
	long := time.Now().Add(-2 * keptFor)
	short.Check(t, os.Chtimes(filepath.Dir(first), long, long))
	short.Equal(t, program("one"), first, "the same program is", "and was")
	other := program("two")
	if flagged := program("two", "-ldflags=-w"); other == first || flagged == other {
		t.Errorf("other programs are in %s and %s, as the first", other, flagged)
	}
	if _, err := os.Stat(first); err != nil {
		t.Errorf("what a test has asked for goes: %v", err)
	}
	short.Check(t, os.Chtimes(filepath.Dir(first), long, long))
	program("three")
	if left := kept("*/hello"); len(left) != 3 {
		t.Errorf("%d programs are left, want 3", len(left))
	}
	write("main.go", "package main\n")
	if file, err := build(nil, all, "hello", "."); err == nil {
		t.Errorf("a program without a main function is in %s", file)
	}
}
