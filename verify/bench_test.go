package verify

import (
	"fmt"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/lft"
)

// benchmarkRadixes are those of three-level fat trees by radix: 720, 1,620 and 3,920
// switches; 4,176, 13,284 and 47,824 LIDs.
var benchmarkRadixes = []int{24, 36, 56}

func benchmarkFabric(b *testing.B, radix int) (*fabric.Fabric, *lft.Tables) {
	b.Helper()
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: radix, Levels: 3})
	f = number(b, f, err)
	return f, dmodk(f)
}

func BenchmarkCheck(b *testing.B) {
	for _, radix := range benchmarkRadixes {
		b.Run(fmt.Sprintf("fattree3/radix=%d", radix), func(b *testing.B) {
			f, tables := benchmarkFabric(b, radix)
			b.ReportAllocs()
			for b.Loop() {
				if r := mustCheck(b, f, tables, Options{}); r.Verdict != VerdictClean {
					b.Fatal(r.Findings)
				}
			}
			entries := float64(f.NumSwitches()) * float64(f.MaxLID())
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/entries, "ns/entry")
		})
	}
}
