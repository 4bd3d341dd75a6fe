package verify

import (
	"fmt"
	"math/rand/v2"
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
	run := func(b *testing.B, f *fabric.Fabric, tables *lft.Tables) {
		b.ReportAllocs()
		for b.Loop() {
			if r := mustCheck(b, f, tables, Options{}); r.Verdict != VerdictClean {
				b.Fatal(r.Findings)
			}
		}
		entries := float64(f.NumSwitches()) * float64(f.MaxLID())
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/entries, "ns/entry")
	}
	for _, radix := range benchmarkRadixes {
		f, tables := benchmarkFabric(b, radix)
		b.Run(fmt.Sprintf("fattree3/radix=%d", radix), func(b *testing.B) { run(b, f, tables) })
	}
	// LIDs as they are after years: those of one switch's hosts far apart.
	f, _ := benchmarkFabric(b, 24)
	perm := rand.New(rand.NewPCG(1, 2)).Perm(int(f.MaxLID()))
	base, lmc := make([]fabric.LID, f.NumPorts()), make([]uint8, f.NumPorts())
	f.EndPorts(func(p fabric.PortID) { base[p] = fabric.LID(perm[f.LID(p)-1] + 1) })
	f, err := f.WithLIDs(base, lmc)
	if err != nil {
		b.Fatal(err)
	}
	tables := dmodk(f)
	b.Run("fattree3/radix=24/scattered", func(b *testing.B) { run(b, f, tables) })
}

func BenchmarkCertificateCheck(b *testing.B) {
	f, tables := benchmarkFabric(b, 24)
	c := mustCheck(b, f, tables, Options{}).Certificate()
	for b.Loop() {
		if err := c.Check(f, tables, nil, nil); err != nil {
			b.Fatal(err)
		}
	}
}
