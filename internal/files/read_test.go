package files

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/ibweave/ibweave/internal/short"
)

// ReadRegular reads regular files up to a limit, refuses everything else, and never
// waits for another process.
func TestReadRegular(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{"empty": "", "full": strings.Repeat("x", 1000), "more": strings.Repeat("x", 1001)} {
		short.Check(t, os.WriteFile(at(name), []byte(text), 0o600))
	}
	listener := short.Must(net.Listen("unix", at("socket")))(t)
	defer listener.Close()
	sparse := short.Must(os.Create(at("sparse")))(t)
	short.Check(t, errors.Join(sparse.Truncate(8<<30), sparse.Close(), syscall.Mkfifo(at("fifo"), 0o600),
		os.Mkdir(at("folder"), 0o700), os.Symlink("fifo", at("link")), os.Symlink("full", at("good link"))))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for name, want := range map[string]string{
		"empty": "", "full": "", "good link": "",
		"more":      "has more than 1000 bytes; want less",
		"sparse":    "has more than 1000 bytes; want less",
		"fifo":      "is a device, FIFO or socket; want a regular file",
		"link":      "is a device, FIFO or socket; want a regular file",
		"socket":    "is a device, FIFO or socket; want a regular file",
		"folder":    "is a directory; want a file",
		"/dev/zero": "is a device, FIFO or socket; want a regular file",
	} {
		path := name
		if !filepath.IsAbs(path) {
			path = at(name)
		}
		data, err := ReadRegular(path, 1000)
		var refused *RefusedError
		switch {
		case want == "" && (err != nil || string(data) != strings.Repeat("x", len(data)) || len(data) != 1000 && name != "empty"):
			t.Errorf("%s: %d bytes, %v", name, len(data), err)
		case want != "" && (!errors.As(err, &refused) || err.Error() != path+": "+want):
			t.Errorf("%s: %v; want %s", name, err, want)
		}
	}
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 1<<20 {
		t.Errorf("%d bytes allocated for files of 1000", after.TotalAlloc-before.TotalAlloc)
	}
	if _, err := ReadRegular(at("none"), 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	// Files of the kernel say that they have no bytes.
	if data, err := ReadRegular("/proc/self/status", 1<<20); err != nil || !strings.HasPrefix(string(data), "Name:") {
		t.Errorf("%.20q, %v", data, err)
	}
	if _, err := ReadRegular("/proc/self/status", 10); err == nil {
		t.Error("10 bytes of a file that grows while it is read: no error")
	}
	var copied strings.Builder
	if err := CopyRegular(&copied, at("full"), 1000); err != nil || copied.Len() != 1000 {
		t.Errorf("%d bytes copied, %v", copied.Len(), err)
	}
	for _, name := range []string{at("more"), at("sparse"), at("fifo"), "/proc/self/status"} {
		var refused *RefusedError
		if err := CopyRegular(io.Discard, name, 100); !errors.As(err, &refused) {
			t.Errorf("%s is copied: %v", name, err)
		}
	}
}
