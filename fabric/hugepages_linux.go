package fabric

import (
	"syscall"
	"unsafe"
)

const (
	hugePage     = 2 << 20
	madvHugepage = 14 // MADV_HUGEPAGE, linux/mman.h
)

// AdviseHugePages asks the kernel to back large memory by huge pages: engines and
// the checker go down the columns of tables, and each row is another page; and text
// of gigabytes takes a fault for each page that it is read into. It must come before
// the first write; that it may fail does not matter.
func AdviseHugePages[T ~uint8](memory []T) {
	if len(memory) < 2*hugePage {
		return
	}
	b := unsafe.Slice((*byte)(unsafe.Pointer(&memory[0])), len(memory))
	start := int(-uintptr(unsafe.Pointer(&b[0])) % hugePage)
	end := start + (len(b)-start)/hugePage*hugePage
	_ = syscall.Madvise(b[start:end], madvHugepage)
}

// MakeHuge makes memory that begins where a huge page does and asks for those, if it
// is as large as one at least. It takes up to two huge pages more than its size, of
// which nothing is touched beyond the last one while the heap has them from the system
// and not from slices that are free by now.
func MakeHuge[T ~uint8](size int) []T {
	if size < hugePage {
		return make([]T, size)
	}
	end := (size + hugePage - 1) / hugePage * hugePage
	memory := make([]T, end+hugePage)
	start := int(-uintptr(unsafe.Pointer(&memory[0])) % hugePage)
	b := unsafe.Slice((*byte)(unsafe.Pointer(&memory[start])), end)
	_ = syscall.Madvise(b, madvHugepage)
	return memory[start : start+size : start+size]
}
