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
