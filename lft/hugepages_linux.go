package lft

import (
	"syscall"
	"unsafe"

	"github.com/ibweave/ibweave/fabric"
)

const (
	hugePage     = 2 << 20
	madvHugepage = 14 // MADV_HUGEPAGE, linux/mman.h
)

// adviseHugePages asks the kernel to back entries by huge pages: engines and
// the checker go down the columns of tables, and each row is another page.
// It must come before the first write; that it may fail does not matter.
func adviseHugePages(entries []fabric.PortNum) {
	if len(entries) < 2*hugePage {
		return
	}
	b := unsafe.Slice((*byte)(unsafe.Pointer(&entries[0])), len(entries))
	start := int(-uintptr(unsafe.Pointer(&b[0])) % hugePage)
	end := start + (len(b)-start)/hugePage*hugePage
	_ = syscall.Madvise(b[start:end], madvHugepage)
}
