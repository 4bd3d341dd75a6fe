package compile

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

// What is reserved is there for the heap, and is not reserved again.
func TestReserve(t *testing.T) {
	t.Cleanup(func() {
		debug.SetGCPercent(100)
		debug.SetMemoryLimit(math.MaxInt64)
	})
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	TuneGC()
	const switches, nodes = 720, 4176
	free := func() uint64 {
		s := []metrics.Sample{{Name: "/memory/classes/heap/free:bytes"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	allocated := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.TotalAlloc
	}
	want := uint64(reserve(switches, nodes))
	before := allocated()
	Reserve(switches, nodes)
	// The runtime gives some back to the system at any time.
	if got := free(); got < want/2 {
		t.Errorf("%d bytes are free, want about %d", got, want)
	}
	first := allocated() - before
	Reserve(switches/4, nodes/4)
	if again := allocated() - before - first; again > want/32 {
		t.Errorf("%d bytes were allocated where %d had been reserved", again, want)
	}
	if n := reserve(1<<15, 1<<20); n != maxReserve {
		t.Errorf("%d bytes for the largest fabric, want %d", n, maxReserve)
	}
}
