package compile

import (
	"os"
	"runtime"
	"runtime/debug"
)

// TuneGC trades memory for fewer garbage collections: most of what a compilation allocates
// stays in use to its end, and collections would take a quarter of the CPU time. Near a
// heap of 1 GiB collections become as frequent as by default. The environment variables
// GOGC and GOMEMLIMIT override this. Programs call it at their start.
func TuneGC() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(800)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(1 << 30)
	}
}

// Reserved is how many bytes Reserve takes. After TuneGC no collection begins below that.
const Reserved = 28 << 20

// Reserve makes the heap take memory from the system before Run needs it, since the first
// touch of each page is slow. It is for a program that has called TuneGC and is idle.
func Reserve() {
	memory := make([]byte, Reserved)
	for i := 0; i < len(memory); i += os.Getpagesize() {
		memory[i] = 1
	}
	runtime.KeepAlive(memory)
	runtime.GC() // the memory stays with the heap
}
