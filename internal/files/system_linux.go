package files

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// descriptors is the folder of this process's descriptors.
const descriptors = "/proc/self/fd"

// duplicate returns a descriptor of this process as a file that is closed by itself.
func duplicate(fd int, name string) (*os.File, error) {
	copied, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(copied), name), nil
}

// writable returns an error if the process may not write the file.
func writable(name string) error {
	return unix.Faccessat(unix.AT_FDCWD, name, unix.W_OK, unix.AT_EACCESS)
}

// keepOwner gives f the owner, group, mode and ACL of the file that it is to replace.
func keepOwner(f *os.File, target string, old fs.FileInfo) error {
	now, err := f.Stat()
	if err != nil {
		return err
	}
	is, was := now.Sys().(*syscall.Stat_t), old.Sys().(*syscall.Stat_t)
	if is.Uid != was.Uid || is.Gid != was.Gid {
		if err := f.Chown(int(was.Uid), int(was.Gid)); err != nil {
			return err
		}
	}
	if err := f.Chmod(old.Mode().Perm()); err != nil {
		return err
	}
	const acl = "system.posix_acl_access"
	entries := make([]byte, 64<<10) // the most that the kernel gives
	n, err := unix.Getxattr(target, acl, entries)
	if err != nil { // no ACL, or a file system without
		return nil
	}
	return unix.Fsetxattr(int(f.Fd()), acl, entries[:n], 0)
}

// reserve reserves space for size bytes, on file systems that can.
func reserve(f *os.File, size int64) error {
	err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return nil
	}
	return err
}
