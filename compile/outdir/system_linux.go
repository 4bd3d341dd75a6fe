package outdir

import (
	"os"

	"golang.org/x/sys/unix"
)

// hasLocks is true if lockDirectory really locks.
const hasLocks = true

// lockDirectory opens a directory and locks it until it is closed. The error is
// unix.EWOULDBLOCK when another process has the lock.
func lockDirectory(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, &os.PathError{Op: "flock", Path: dir, Err: err}
	}
	return f, nil
}

// exchange swaps two directories in one atomic step.
func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}
