// Package hugepages allocates memory in huge pages. It makes no promise to other
// modules.
package hugepages

import (
	"syscall"
	"unsafe"
)

const (
	hugePage     = 2 << 20
	madvHugepage = 14 // MADV_HUGEPAGE, linux/mman.h
)

// Make makes memory that begins where a huge page does and asks the kernel for those,
// if it is as large as one at least: engines and the checker go down the columns of
// tables, and each row is another page. That the kernel may refuse does not matter. It
// takes up to two huge pages more than its size, of which nothing is touched beyond the
// last one while the heap has them from the system and not from slices that are free
// by now.
func Make[T ~uint8 | ~uint16](size int) []T {
	var entry T
	width := int(unsafe.Sizeof(entry))
	if size*width < hugePage {
		return make([]T, size)
	}
	end := (size*width + hugePage - 1) / hugePage * hugePage
	memory := make([]T, (end+hugePage)/width)
	start := int(-uintptr(unsafe.Pointer(&memory[0]))%hugePage) / width
	_ = syscall.Madvise(unsafe.Slice((*byte)(unsafe.Pointer(&memory[start])), end), madvHugepage)
	return memory[start : start+size : start+size]
}
