package compile

import (
	"os"
	"runtime"
	"runtime/debug"
)

// TuneGC spends memory on fewer collections: what a compilation allocates is in
// use to its end, most of it, and to collect meanwhile costs a quarter of the
// processors. Near a heap of 1 GiB collections become as frequent as ever. The
// environment, GOGC and GOMEMLIMIT, may say otherwise. It is for a program's
// start.
func TuneGC() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(800)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(1 << 30)
	}
}

// Reserved is what Reserve takes, in bytes: no collection begins below that after TuneGC.
const Reserved = 28 << 20

// Reserve has the heap take memory from the system ahead of Run: the first touch of each
// page takes long. It is for a program that has called TuneGC and has time.
func Reserve() {
	memory := make([]byte, Reserved)
	for i := 0; i < len(memory); i += os.Getpagesize() {
		memory[i] = 1
	}
	runtime.KeepAlive(memory)
	runtime.GC() // the memory stays with the heap
}
