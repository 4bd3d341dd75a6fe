package files

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ibweave/ibweave/internal/short"
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
		got := short.Must(os.ReadFile(path))(t)
		short.Equal(t, string(got), want)
		list := short.Must(os.ReadDir(dir))(t)
		short.Equal(t, len(list), 1, "the folder has", list)
	}
	short.Check(t, Write(path, write("old", nil)))
	look("old")
	plain := short.Must(os.Create(filepath.Join(t.TempDir(), "plain")))(t)
	theirs, err1 := plain.Stat()
	ours, err2 := os.Stat(path)
	if err := errors.Join(err1, err2, plain.Close()); err != nil || theirs.Mode() != ours.Mode() {
		t.Errorf("mode %v, want %v (%v)", ours.Mode(), theirs.Mode(), err)
	}
	short.Check(t, Write(path, write(strings.Repeat("new", 1<<20), nil)))
	look(strings.Repeat("new", 1<<20))
	if err := Write("", write("new", nil)); !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), ".tmp") {
		t.Errorf("no name: %v", err)
	}
	if err := Write(path, write("half", io.ErrUnexpectedEOF)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	look(strings.Repeat("new", 1<<20))
	if err := Write(filepath.Join(dir, "none", "file"), write("x", nil)); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	// A folder in the way of the rename.
	short.Check(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	if err := Write(filepath.Join(dir, "folder"), write("x", nil)); err == nil {
		t.Error("a folder was replaced")
	}
	short.Check(t, os.Remove(filepath.Join(dir, "folder")))
	look(strings.Repeat("new", 1<<20))
	wd := short.Must(os.Getwd())(t)
	t.Chdir(dir)
	short.Check(t, Write("file", write("relative", nil)))
	t.Chdir(wd)
	look("relative")
}

// say is a writer of one line.
func say(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

// device makes a character device, which only root may. The system's own does for others:
// they cannot replace it.
func device(t *testing.T, name string, minor uint32) string {
	t.Helper()
	own := filepath.Join(t.TempDir(), name)
	err := unix.Mknod(own, unix.S_IFCHR|0o666, int(unix.Mkdev(1, minor)))
	switch {
	case err == nil:
		if err := Write(own, say("")); !errors.Is(err, fs.ErrPermission) { // a file system without devices
			return own
		}
	case !errors.Is(err, fs.ErrPermission):
		t.Fatal(err)
	}
	return filepath.Join("/dev", name)
}

// Devices are opened and stay devices.
func TestWriteDevice(t *testing.T) {
	null, full := device(t, "null", 3), device(t, "full", 7)
	short.Check(t, Write(null, say("x")))
	if err := Write(full, say("x")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v, want %v", err, syscall.ENOSPC)
	}
	for _, name := range []string{null, full} {
		if info, err := os.Lstat(name); err != nil || info.Mode()&fs.ModeCharDevice == 0 {
			t.Errorf("%s is %v, %v", name, info.Mode(), err)
		}
	}
	if err := Write("/dev/full/x", say("x")); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("below a device: %v", err)
	}
}

// The reader of a FIFO or a descriptor gets what is written, that of a socket nothing.
func TestWriteStream(t *testing.T) {
	dir := t.TempDir()
	fifo, socket := filepath.Join(dir, "fifo"), filepath.Join(dir, "socket")
	short.Check(t, syscall.Mkfifo(fifo, 0o600))
	listener := short.Must(net.Listen("unix", socket))(t)
	defer listener.Close()
	r, w := short.Must2(os.Pipe())(t)
	text := strings.Repeat("text\n", 100_000)
	for name, open := range map[string]func() (io.ReadCloser, error){
		fifo: func() (io.ReadCloser, error) { return os.Open(fifo) },
		fmt.Sprint("/dev/fd/", w.Fd()): func() (io.ReadCloser, error) {
			return io.NopCloser(io.LimitReader(r, int64(len(text)))), nil
		},
	} {
		got := make(chan string)
		go func() {
			from, err := open()
			if err != nil {
				got <- err.Error()
				return
			}
			defer from.Close()
			data, err := io.ReadAll(from)
			got <- string(data) + fmt.Sprint(err)
		}()
		if err := Write(name, say(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if s := <-got; s != text+"<nil>" {
			t.Errorf("%s: %d bytes, want %d: %.100s", name, len(s), len(text), s)
		}
	}
	short.Contains(t, fmt.Sprint(Write(socket, say(text))), "want a file", "a socket")
	for name, kind := range map[string]fs.FileMode{fifo: fs.ModeNamedPipe, socket: fs.ModeSocket} {
		short.Equal(t, short.Must(os.Lstat(name))(t).Mode().Type(), kind, name, "is")
	}
	// A descriptor is not closed, and goes on where it was.
	if _, err := w.WriteString("end"); err != nil {
		t.Error(err)
	}
	file := filepath.Join(dir, "file")
	f := short.Must(os.Create(file))(t)
	name := fmt.Sprint("/proc/self/fd/", f.Fd())
	for _, s := range []string{"one ", "two "} {
		short.Check(t, Write(name, say(s)))
	}
	short.Check(t, f.Close())
	short.Equal(t, string(short.Must(os.ReadFile(file))(t)), "one two ")
}

// Symbolic links stay, and what they lead to is written: relative and absolute ones,
// chains, through folders that are links themselves, and to a file that is not there.
func TestWriteLinks(t *testing.T) {
	for name, links := range map[string][][2]string{ // of each link its target and name, the last one is written to
		"relative":        {{"far/file", "link"}},
		"absolute":        {{"/far/file", "link"}},
		"chain":           {{"file", "far/a"}, {"../far/a", "far/b"}, {"far/b", "link"}},
		"through a link":  {{"deep/down", "side"}, {"../../far/file", "deep/down/x"}, {"side/../../far/file", "link"}},
		"dangling":        {{"far/none", "link"}},
		"dangling, chain": {{"none", "far/a"}, {"/far/a", "link"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			at := func(name string) string { return filepath.Join(dir, name) }
			short.Check(t, errors.Join(os.Mkdir(at("far"), 0o700), os.MkdirAll(at("deep/down"), 0o700)))
			end := at("far/file")
			if strings.HasPrefix(name, "dangling") {
				end = at("far/none")
			} else if err := os.WriteFile(end, []byte("old"), 0o640); err != nil {
				t.Fatal(err)
			}
			for _, link := range links {
				to := link[0]
				if filepath.IsAbs(to) {
					to = at(to)
				}
				short.Check(t, os.Symlink(to, at(link[1])))
			}
			short.Check(t, Write(at("link"), say("new")))
			short.Equal(t, string(short.Must(os.ReadFile(end))(t)), "new")
			for _, link := range links {
				if info, err := os.Lstat(at(link[1])); err != nil || info.Mode()&fs.ModeSymlink == 0 {
					t.Errorf("%s is %v, %v", link[1], info.Mode(), err)
				}
			}
		})
	}
	dir := t.TempDir()
	loop := filepath.Join(dir, "loop")
	short.Check(t, os.Symlink("loop", loop))
	if err := Write(loop, say("x")); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a cycle of links: %v", err)
	}
	short.Equal(t, fmt.Sprint(Write(dir, say("x"))), dir+" is a directory; want a file", "a directory")
}

// A file keeps its mode, owner, group and ACL, and only root may change another's.
func TestWriteKeeps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	uid, gid := os.Getuid(), os.Getgid()
	if uid == 0 {
		uid, gid = 12345, 54321
	}
	// user::rw-, user:777:r--, group::r--, mask::r--, other::---
	acl := []byte("\x02\x00\x00\x00\x01\x00\x06\x00\xff\xff\xff\xff\x02\x00\x04\x00\x09\x03\x00\x00\x04\x00\x04\x00\xff\xff\xff\xff\x10\x00\x04\x00\xff\xff\xff\xff\x20\x00\x00\x00\xff\xff\xff\xff")
	for _, mode := range []fs.FileMode{0o600, 0o640, 0o666, 0o755} {
		short.Check(t, errors.Join(os.WriteFile(path, []byte("old"), 0o600), os.Chown(path, uid, gid), os.Chmod(path, mode)))
		hasACL := mode == 0o640 && unix.Setxattr(path, "system.posix_acl_access", acl, 0) == nil
		before := short.Must(os.Stat(path))(t)
		short.Check(t, Write(path, say("new")))
		info := short.Must(os.Stat(path))(t)
		is := info.Sys().(*syscall.Stat_t)
		if info.Mode() != before.Mode() || int(is.Uid) != uid || int(is.Gid) != gid || os.SameFile(info, before) {
			t.Errorf("mode %v of %d:%d, want a new file with %v of %d:%d", info.Mode(), is.Uid, is.Gid, before.Mode(), uid, gid)
		}
		got := make([]byte, 100)
		if n, _ := unix.Getxattr(path, "system.posix_acl_access", got); hasACL && !bytes.Equal(got[:max(n, 0)], acl) {
			t.Errorf("ACL %x, want %x", got[:max(n, 0)], acl)
		}
		short.Check(t, os.Remove(path))
	}
}

// overwriteVariable has TestWriteInPlace run as another user, and names a folder.
const overwriteVariable = "IBWEAVE_TEST_OVERWRITE"

// A user who may write a file but not replace it with its owner overwrites it; one who may
// not write it gets an error.
func TestWriteInPlace(t *testing.T) {
	dir := os.Getenv(overwriteVariable)
	if dir != "" {
		for _, name := range []string{"of root", "closed/file", "read only"} {
			fmt.Println(Write(filepath.Join(dir, name), say("new")))
		}
		fmt.Println(Write(filepath.Join(dir, "of root"), func(w io.Writer) error {
			return cmp.Or(say("half")(w), io.ErrUnexpectedEOF)
		}))
		return
	}
	dir = t.TempDir()
	const other = 12345
	asRoot := os.Getuid() == 0
	for name, mode := range map[string]fs.FileMode{"of root": 0o666, "closed/file": 0o666, "read only": 0o444} {
		path := filepath.Join(dir, name)
		short.Check(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("a longer old text"), mode), os.Chmod(path, mode)))
	}
	before := short.Must(os.Stat(filepath.Join(dir, "of root")))(t)
	program, err := os.ReadFile(os.Args[0]) // which others may not reach
	short.Check(t, err)
	test := filepath.Join(dir, "test")
	short.Check(t, errors.Join(os.WriteFile(test, program, 0o755), os.Chmod(filepath.Join(dir, "closed"), 0o555), os.Chmod(dir, 0o777)))
	t.Cleanup(func() { os.Chmod(filepath.Join(dir, "closed"), 0o700) })
	if asRoot {
		for up := filepath.Dir(dir); strings.HasPrefix(up, os.TempDir()+"/"); up = filepath.Dir(up) {
			short.Check(t, os.Chmod(up, 0o755))
		}
	}
	cmd := exec.Command(test, "-test.run", "^TestWriteInPlace$")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), overwriteVariable+"="+dir)
	if asRoot {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: other, Gid: other}}
	}
	out, err := cmd.CombinedOutput()
	want := "<nil>\n<nil>\nwrite " + filepath.Join(dir, "read only") + ": permission denied\nunexpected EOF\nPASS\n"
	if err != nil || !strings.HasPrefix(string(out), want) { // go test -cover adds a line
		t.Errorf("%v\n%s\nwant\n%s", err, out, want)
	}
	for name, want := range map[string]string{"of root": "new", "closed/file": "new", "read only": "a longer old text"} {
		short.Equal(t, string(short.Must(os.ReadFile(filepath.Join(dir, name)))(t)), want, name)
	}
	if after, err := os.Stat(filepath.Join(dir, "of root")); err != nil || asRoot && !os.SameFile(before, after) {
		t.Errorf("another file: %v, %v", after.Sys(), err)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}

// A disk that is full is an error, whether the output fits in the buffer or not.
func TestWriteSyncedFull(t *testing.T) {
	for _, size := range []int{1, 1 << 20} {
		f := short.Must(os.OpenFile("/dev/full", os.O_WRONLY, 0))(t)
		err := WriteSynced(f, func(w io.Writer) error {
			_, err := w.Write(make([]byte, size))
			return err
		})
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%d bytes: %v, want %v", size, err, syscall.ENOSPC)
		}
	}
}

// What stands in the buffer is not written behind an error.
func TestStreamWithError(t *testing.T) {
	failed := errors.New("failed")
	var to closer
	err := writeStream(&to, func(w io.Writer) error {
		_, err := io.WriteString(w, "half a line")
		return errors.Join(err, failed)
	})
	if !errors.Is(err, failed) || to.Len() > 0 {
		t.Errorf("error %v, and %q is written", err, to.String())
	}
}

type closer struct{ bytes.Buffer }

func (*closer) Close() error { return nil }
