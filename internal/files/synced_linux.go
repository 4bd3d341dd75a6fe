package files

import (
	"errors"
	"os"
	"syscall"
)

// openDirect opens a file a second time, to be written past the page cache; nil
// where the file system has no such thing.
func openDirect(name string) *os.File {
	f, err := os.OpenFile(name, os.O_WRONLY|syscall.O_DIRECT, 0)
	if err != nil {
		return nil
	}
	return f
}

// refusesDirect says whether the error of a write means that the file system wants
// other sizes or places in memory than ours, or none.
func refusesDirect(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EOPNOTSUPP)
}

// newBlock makes a block that begins at a page, as O_DIRECT wants it.
func newBlock() ([]byte, error) {
	return syscall.Mmap(-1, 0, blockSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
}

func freeBlock(b []byte) error {
	if b == nil {
		return nil
	}
	return syscall.Munmap(b)
}
