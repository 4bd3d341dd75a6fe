// Package files opens, reads and writes files as a command that runs
// as root must: it replaces regular files at once, opens all others,
// and limits every read. It makes no promise to other modules.
package files

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
)

// Write makes the file name hold the output of write.
//
// A regular file, or one that does not exist yet, appears at once:
// a crash leaves the old file or the new one whole. Write makes a
// temporary file in the same folder, syncs it, renames it and syncs
// the folder. If write fails, the old file stays. A new file has
// mode 0666 less the umask; an old one keeps its mode, owner, group
// and ACL. Other hard links of an old file keep the old text. Write
// follows symbolic links, also to a file that does not exist yet.
//
// Write overwrites an old regular file in place if it cannot replace it with the
// same owner: the file belongs to another user, the folder takes no new files,
// or the file is a mount point. The owner comes first, since it decides who may
// read the file. Write first makes the whole output in a temporary file and
// reserves the space, so that only a crash during the copy leaves a part. On
// other systems than Linux it overwrites each old file, without reserving space.
//
// Write opens character devices and FIFOs (it waits for a reader
// there), and continues descriptors of this process (/dev/stdout,
// /dev/fd/3). Directories, sockets and block devices are errors,
// and so is an old file that the process may not write.
func Write(name string, write func(io.Writer) error) error {
	if fd, ok := descriptor(name); ok {
		copied, err := duplicate(fd, name)
		if err != nil {
			return &fs.PathError{Op: "open", Path: name, Err: err}
		}
		return writeStream(copied, write)
	}
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && name != "":
		target, err := followLinks(name)
		if err != nil {
			return err
		}
		return writeRegular(target, nil, write)
	case err != nil:
		return err
	}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		target, err := followLinks(name)
		if err != nil {
			return err
		}
		if err := writable(target); err != nil {
			return &fs.PathError{Op: "write", Path: name, Err: err}
		}
		return writeRegular(target, info, write)
	case mode.IsDir():
		return fmt.Errorf("%s is a directory; want a file", name)
	case mode&fs.ModeCharDevice != 0, mode&fs.ModeNamedPipe != 0:
		to, err := os.OpenFile(name, os.O_WRONLY|syscall.O_NOCTTY, 0)
		if err != nil {
			return err
		}
		return writeStream(to, write)
	default:
		return fmt.Errorf("%s is a socket or a block device; want a file", name)
	}
}

// writeStream writes to a file that cannot be replaced, and closes it.
func writeStream(to io.WriteCloser, write func(io.Writer) error) error {
	return errors.Join(buffered(to, write), to.Close())
}

// buffered writes through a buffer. After an error of write, it does not write the buffer's rest.
func buffered(to io.Writer, write func(io.Writer) error) error {
	b := bufio.NewWriterSize(to, 64<<10)
	if err := write(b); err != nil {
		return err
	}
	return b.Flush()
}

// maxLinks is the most symbolic links that a name may lead through, as in Linux.
const maxLinks = 40

// links yields name, and each path to which symbolic links lead from it, one by one.
func links(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for range maxLinks + 1 {
			link, err := os.Readlink(name)
			if !yield(name) || err != nil { // no link, or nothing there
				return
			}
			if !filepath.IsAbs(link) {
				dir, _ := filepath.Split(name)
				link = dir + link // not cleaned: dir/.. may lead elsewhere
			}
			name = link
		}
	}
}

// followLinks returns the path to which name leads through symbolic links;
// it need not exist. The caller has called stat before: the kernel refuses
// links that others put into shared folders (fs.protected_symlinks).
func followLinks(name string) (string, error) {
	names := slices.Collect(links(name))
	last := names[len(names)-1]
	if len(names) > maxLinks {
		return "", &fs.PathError{Op: "open", Path: last, Err: syscall.ELOOP}
	}
	return last, nil
}

// descriptor recognizes names of this process's own descriptors.
// Opening such a name would begin at the start of the file, not where
// a shell's redirection stands, and would fail for sockets.
func descriptor(name string) (fd int, ok bool) {
	own, err := os.Stat(descriptors)
	if err != nil {
		return 0, false
	}
	for name := range links(name) {
		dir, base := filepath.Split(name)
		if fd, err := strconv.Atoi(base); err == nil {
			if here, err := os.Stat(dir); err == nil && os.SameFile(here, own) {
				return fd, true
			}
		}
	}
	return 0, false
}

// writeRegular replaces a regular file, or makes one if old is nil.
func writeRegular(target string, old fs.FileInfo, write func(io.Writer) error) error {
	inPlace := false
	f, err := createTemporary(target, old)
	if err != nil && old != nil {
		inPlace = true
		f, err = os.CreateTemp("", "ibweave-*.tmp")
	}
	if err != nil {
		return err
	}
	temporary := f.Name()
	if err := WriteSynced(f, write); err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	if !inPlace {
		err := os.Rename(temporary, target)
		if err == nil {
			folder, _ := filepath.Split(target) // filepath.Dir would clean it
			return SyncFolder(folder + ".")
		}
		if old == nil {
			return errors.Join(err, os.Remove(temporary))
		}
	}
	return errors.Join(overwrite(target, temporary), os.Remove(temporary))
}

// WriteSynced writes the output of write to f, a new file, through
// a buffer, and syncs it (fsync). It closes f, also after an error.
func WriteSynced(f *os.File, write func(io.Writer) error) error {
	err := buffered(f, write)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// createTemporary creates a new file beside target with the mode, owner, group and ACL
// of old, if there is one. Its name begins with a dot and ends in .tmp.
func createTemporary(target string, old fs.FileInfo) (*os.File, error) {
	dir, base := filepath.Split(target)
	mode := fs.FileMode(0o666)
	if old != nil {
		mode = 0o600
	}
	for {
		name := dir + "." + base[:min(len(base), 200)] + "." + strconv.FormatUint(rand.Uint64(), 36) + ".tmp"
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
		switch {
		case errors.Is(err, fs.ErrExist):
			continue
		case err != nil:
			return nil, &fs.PathError{Op: "create", Path: target, Err: errors.Unwrap(err)}
		case old == nil:
			return f, nil
		}
		if err := keepOwner(f, target, old); err != nil {
			return nil, errors.Join(err, f.Close(), os.Remove(name))
		}
		return f, nil
	}
}

// overwrite writes what file from has into target, which keeps its inode.
func overwrite(target, from string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(target, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if info.Size() > 0 {
		if err := reserve(out, info.Size()); err != nil {
			return &fs.PathError{Op: "write", Path: target, Err: err}
		}
	}
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return cmp.Or(out.Truncate(info.Size()), out.Sync())
}

// SyncFolder makes the renames and new files of a folder survive a crash. It does nothing
// if the process may not read the folder, and on Windows, which has no such call.
func SyncFolder(folder string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	dir, err := os.Open(folder)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
