package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// RefusedError is an input that is not read, or not to its
// end: it is of the wrong kind or too large.
type RefusedError struct {
	File string
	Why  string // what it is and what is wanted
}

func (e *RefusedError) Error() string { return e.File + ": " + e.Why }

// ReadRegular reads a regular file of at most limit bytes and never
// waits for another process: it is for configurations and for files
// that programs keep for themselves. It checks the kind and the
// size (the apparent size for sparse files) before it reads, opens
// without blocking, and stops if the file grows beyond the limit
// meanwhile. Errors: those of the system, and *RefusedError.
func ReadRegular(name string, limit int64) ([]byte, error) {
	var b bytes.Buffer
	if err := CopyRegular(&b, name, limit); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// CopyRegular copies a regular file of at most limit bytes to w, as ReadRegular reads it.
// Errors: those of the system and of w, and *RefusedError.
func CopyRegular(w io.Writer, name string, limit int64) error {
	f, size, err := openRegular(name, limit)
	if err != nil {
		return err
	}
	defer f.Close()
	if b, ok := w.(*bytes.Buffer); ok {
		b.Grow(int(size) + bytes.MinRead) // with less room, ReadFrom grows it
	}
	n, err := io.Copy(w, io.LimitReader(f, limit+1))
	if err == nil && n > limit {
		err = tooLarge(name, limit)
	}
	return err
}

// openRegular opens a regular file without blocking, and returns its size too.
func openRegular(name string, limit int64) (*os.File, int64, error) {
	info, err := os.Stat(name) // look first: opening a device can have effects
	if err == nil {
		err = regular(name, info, limit)
	}
	if err != nil {
		return nil, 0, err
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, 0, err
	}
	if info, err = f.Stat(); err == nil {
		err = regular(name, info, limit) // it may be another file by now
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// regular returns an error unless the file is regular and has at most limit bytes.
func regular(name string, info os.FileInfo, limit int64) error {
	switch {
	case info.IsDir():
		return &RefusedError{name, "is a directory; want a file"}
	case !info.Mode().IsRegular():
		return &RefusedError{name, "is a device, FIFO or socket; want a regular file"}
	case info.Size() > limit:
		return tooLarge(name, limit)
	}
	return nil
}

func tooLarge(name string, limit int64) error {
	return &RefusedError{name, fmt.Sprintf("has more than %s; want less", Size(limit))}
}

// Size prints a number of bytes for people, in binary units: 64 MiB.
func Size(bytes int64) string {
	for i, unit := range []string{"GiB", "MiB", "KiB"} {
		if one := int64(1) << (30 - 10*i); bytes >= one {
			if bytes%one == 0 {
				return fmt.Sprintf("%d %s", bytes/one, unit)
			}
			return fmt.Sprintf("%.1f %s", float64(bytes)/float64(one), unit)
		}
	}
	return fmt.Sprintf("%d bytes", bytes)
}
