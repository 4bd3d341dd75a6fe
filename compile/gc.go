package compile

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"

	"github.com/ibweave/ibweave/internal/hugepages"
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

// maxReserve bounds Reserve, in bytes: no collection begins below that after TuneGC. One
// that met the reserve in use would have the runtime give it back to the system later.
const maxReserve = 28 << 20

// Reserve has memory ready for what Run will allocate for a fabric of so many switches
// and nodes, in huge pages where there are: to fault in one page after the other is up to
// an eighth of the time that a compilation takes. It is memory that Run would take, but
// earlier, and none where the heap has it free already; the heap is collected after
// that. It is for a program that has called TuneGC, knows what it will compile, and has
// time before.
func Reserve(switches, nodes int) {
	n := reserve(switches, nodes)
	free := []metrics.Sample{{Name: "/memory/classes/heap/free:bytes"}}
	metrics.Read(free)
	if free[0].Value.Kind() == metrics.KindUint64 && free[0].Value.Uint64() >= uint64(n) {
		return
	}
	memory := make([]uint8, n)
	hugepages.Advise(memory)
	for i := 0; i < n; i += os.Getpagesize() {
		memory[i] = 1
	}
	runtime.KeepAlive(memory)
	runtime.GC() // the pages stay with the heap, and what is free there is taken first
}

// reserve is about what updn, its verification and the fabric allocate, in bytes: some
// tables by switch and LID, and what there is for each node and its ports.
func reserve(switches, nodes int) int {
	return min(3*switches*nodes+3072*nodes, maxReserve)
}
