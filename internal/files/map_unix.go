//go:build linux || darwin

package files

import (
	"os"
	"syscall"
)

func mapPages(f *os.File, size int) ([]byte, error) {
	return syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_PRIVATE)
}

func unmapPages(data []byte) { _ = syscall.Munmap(data) }
