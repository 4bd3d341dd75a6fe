package outdir

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/internal/short"
)

// generation is a set of files that all say the same.
func generation(text string, size int) []file {
	var files []file
	for i := range 5 {
		files = append(files, file{fmt.Sprintf("file%d", i), func(w io.Writer) error {
			for range size {
				if _, err := io.WriteString(w, text); err != nil {
					return err
				}
			}
			return nil
		}})
	}
	return files
}

// readGeneration checks a directory against its manifest and gives the text
// that all its files have.
func readGeneration(t *testing.T, dir string) string {
	t.Helper()
	m := short.Must(ReadManifest(dir))(t)
	entries := short.Must(os.ReadDir(dir))(t)
	short.MustEqual(t, len(entries), len(m.Files)+1, "files, the manifest has", len(m.Files), "and itself")
	for name, want := range m.Files {
		data := short.Must(os.ReadFile(filepath.Join(dir, name)))(t)
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != want {
			t.Fatalf("%s is not what the manifest says", name)
		}
		if !strings.HasPrefix(string(data), m.Version) {
			t.Fatalf("%s says %.10q, the manifest %q", name, data, m.Version)
		}
	}
	return m.Version
}

// leftovers counts directories in the making.
func leftovers(t *testing.T, parent string) (list []string) {
	t.Helper()
	entries := short.Must(os.ReadDir(parent))(t)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), pendingPrefix) {
			list = append(list, filepath.Join(parent, e.Name()))
		}
	}
	return list
}

var kills = flag.Int("kills", short.Usual(40, 14), "processes that TestKill kills")

const writerVariable = "IBWEAVE_TEST_WRITER"

// TestMain lets TestKill run this program as one that writes generations into
// a directory until it is killed.
func TestMain(m *testing.M) {
	dir := os.Getenv(writerVariable)
	if dir == "" {
		short.UseMemory()
		os.Exit(m.Run())
	}
	for i := 0; ; i++ {
		text := fmt.Sprintf("generation %d of process %d\n", i, os.Getpid())
		if err := writeDirectory(context.Background(), dir, generation(text, 1000), Manifest{Version: text, Engine: "updn"}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(i)
	}
}

// Processes that write the directory again and again are killed at random
// moments. It always holds one generation, whole.
func TestKill(t *testing.T) {
	short.NeedPrograms(t)
	kills := short.Of(*kills, 5)
	parent := t.TempDir()
	dir := filepath.Join(parent, "tables")
	short.Check(t, writeDirectory(t.Context(), dir, generation("first\n", 1), Manifest{Version: "first\n", Engine: "updn"}))
	seen := map[string]bool{}
	for round := range kills {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), writerVariable+"="+dir)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		started := short.Must(cmd.StdoutPipe())(t)
		short.Check(t, cmd.Start())
		if _, err := started.Read(make([]byte, 1)); err != nil { // the first generation is there
			t.Fatalf("%v: %s", err, &stderr)
		}
		time.Sleep(time.Duration(round*7919%25000) * time.Microsecond)
		if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatalf("%v: %s", err, &stderr)
		}
		cmd.Wait()
		seen[readGeneration(t, dir)] = true
	}
	t.Logf("%d processes killed, the directory was whole each time", kills)
	short.Equal(t, len(seen), kills, "generations seen")

	// What the last killed process left is removed, and that of another machine once it
	// is old enough.
	abandoned := filepath.Join(parent, pendingPrefix+boot()+"-1")
	foreign, fresh := filepath.Join(parent, pendingPrefix+"0-1"), filepath.Join(parent, pendingPrefix+"0-2")
	lost := abandoned + oldInfix + "lost"
	old := time.Now().Add(-2 * foreignAge)
	for _, name := range []string{abandoned, abandoned + oldInfix + "tables", lost, foreign, fresh} {
		short.Check(t, os.Mkdir(name, 0o700))
	}
	short.Check(t, os.Chtimes(foreign, old, old))
	seenLeft := len(leftovers(t, parent)) - 5
	short.Check(t, writeDirectory(t.Context(), dir, generation("last\n", 1), Manifest{Version: "last\n", Engine: "updn"}))
	short.Equal(t, readGeneration(t, dir), "last\n", "the directory")
	if left := leftovers(t, parent); !slices.Equal(left, []string{fresh, lost}) && !slices.Equal(left, []string{lost, fresh}) {
		t.Errorf("left over: %v; want %s and %s", left, fresh, lost)
	}
	t.Logf("%d directories of killed processes were there before", seenLeft)
}

// Many writers in one folder, each of which removes what is abandoned there, do not take
// each other's directories.
func TestWriteDirectoriesTogether(t *testing.T) {
	parent := t.TempDir()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			text := fmt.Sprintf("writer %d\n", i)
			for range short.Of(40, 10) {
				if err := writeDirectory(t.Context(), filepath.Join(parent, fmt.Sprint("tables", i)), generation(text, 1), Manifest{Version: text, Engine: "updn"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for i := range 8 {
		short.Equal(t, readGeneration(t, filepath.Join(parent, fmt.Sprint("tables", i))), fmt.Sprintf("writer %d\n", i), "the directory")
	}
	if left := leftovers(t, parent); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

// What goes wrong leaves the old directory as it was, and nothing beside it.
func TestWriteDirectoryErrors(t *testing.T) {
	broken := errors.New("broken")
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tc := range []struct {
		name    string
		ctx     context.Context
		files   []file
		prepare func(t *testing.T, dir string)
		want    string
	}{
		{"a file cannot be made", t.Context(),
			append(generation("new\n", 1), file{"bad", func(io.Writer) error { return broken }}), nil, "broken"},
		{"canceled", canceled, generation("new\n", 1), nil, "context canceled"},
		{"somebody's file", t.Context(), generation("new\n", 1), func(t *testing.T, dir string) {
			short.Check(t, os.WriteFile(filepath.Join(dir, "notes"), []byte("mine"), 0o600))
		}, "has notes, which no compile wrote and which would be lost; move it, or write to another directory"},
		{"somebody's directory", t.Context(), generation("new\n", 1), func(t *testing.T, dir string) {
			short.Check(t, os.Remove(filepath.Join(dir, ManifestName)))
		}, "is not empty and has no manifest.json, so it is not a compiled directory; write to another one"},
		{"a broken manifest", t.Context(), generation("new\n", 1), func(t *testing.T, dir string) {
			short.Check(t, os.WriteFile(filepath.Join(dir, ManifestName), []byte("{"), 0o600))
		}, "manifest.json: unexpected end of JSON input"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			parent := t.TempDir()
			dir := filepath.Join(parent, "tables")
			short.Check(t, writeDirectory(t.Context(), dir, generation("old\n", 1), Manifest{Version: "old\n", Engine: "updn"}))
			if tc.prepare != nil {
				tc.prepare(t, dir)
			}
			err := writeDirectory(tc.ctx, dir, tc.files, Manifest{Version: "new\n", Engine: "updn"})
			short.Contains(t, fmt.Sprint(err), tc.want, "got error")
			if data, err := os.ReadFile(filepath.Join(dir, "file0")); err != nil || string(data) != "old\n" {
				t.Errorf("file0 is %q, %v", data, err)
			}
			if left := leftovers(t, parent); len(left) > 0 {
				t.Errorf("left over: %v", left)
			}
		})
	}
}

// An existing directory keeps its mode, and a symbolic link stays one.
func TestWriteDirectoryReplaces(t *testing.T) {
	parent := t.TempDir()
	real, link := filepath.Join(parent, "real"), filepath.Join(parent, "link")
	short.Check(t, os.Mkdir(real, 0o750))
	short.Check(t, os.Symlink("real", link))
	for _, text := range []string{"one\n", "two\n"} {
		short.Check(t, writeDirectory(t.Context(), link, generation(text, 1), Manifest{Version: text, Engine: "updn"}))
		short.Equal(t, readGeneration(t, real), text, "the directory")
	}
	info, err := os.Stat(real)
	if err != nil {
		t.Fatal(err)
	}
	short.Equal(t, info.Mode().Perm(), 0o750, "mode", "want -rwxr-x---")
	if info, err = os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info, err)
	}
}

// A name that could bring lines into OpenSM's configuration is none of an engine; those of
// all engines are.
func TestManifestEngine(t *testing.T) {
	dir := t.TempDir()
	read := func(engine string) error {
		data := short.Must(json.Marshal(Manifest{Engine: engine}))(t)
		short.Check(t, os.WriteFile(filepath.Join(dir, ManifestName), data, 0o600))
		_, err := ReadManifest(dir)
		return err
	}
	for _, e := range compile.Engines {
		short.Check(t, read(e.Name()))
	}
	for _, name := range []string{"", "updn\n", "updn\nqos TRUE", "updn,minhop", "updn minhop", "../updn", "-updn", "Updn", "updn#", "\"updn\"", "\x1b[2J"} {
		short.Contains(t, fmt.Sprint(read(name)), "want a name of small letters, digits and dashes, like updn", name)
	}
}
