package compile

import (
	"os"
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
