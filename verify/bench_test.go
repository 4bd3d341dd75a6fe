package verify

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/state"
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
			if r := mustCheck(b, &state.State{Fabric: f, Tables: tables}, Options{}); r.Verdict != VerdictClean {
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
	f = short.Must(f.WithLIDs(base, lmc))(b)
	tables := dmodk(f)
	b.Run("fattree3/radix=24/scattered", func(b *testing.B) { run(b, f, tables) })
}

// torus is an n x n torus with a host on each switch, the shorter way round
// along x and then along y; and the dateline of each dimension: bit 0 of the SL
// says that a path crosses the cables that close the rings of x, bit 1 those of
// y, and is the VL there.
func torus(tb testing.TB, n int) (*fabric.Fabric, *lft.Tables, *lft.SL2VL, *lft.PathSLs) {
	tb.Helper()
	f, err := mesh.Generate(mesh.Spec{Dims: []int{n, n}, Wrap: []bool{true, true}, Hosts: 1})
	f = number(tb, f, err)
	tables := lft.NewTables(n*n, f.MaxLID())
	sls := lft.NewPathSLs(n*n, f.MaxLID())
	// Towards b from a: whether up, and across the cable that closes the ring.
	way := func(a, b int) (up, crosses bool) {
		up = (b-a+n)%n <= n/2
		return up, up != (b > a) && a != b
	}
	for s := range fabric.NodeID(n * n) {
		row := make([]fabric.SL, int(f.MaxLID())+1)
		x, y := int(s)/n, int(s)%n
		for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
			root, port := toward(f, lid)
			east, crossX := way(x, int(root)/n)
			north, crossY := way(y, int(root)%n)
			switch {
			case x != int(root)/n:
				port = map[bool]fabric.PortNum{true: 1, false: 3}[east]
			case y != int(root)%n:
				port = map[bool]fabric.PortNum{true: 2, false: 4}[north]
			}
			tables.Row(s)[lid] = port
			for bit, crosses := range []bool{crossX, crossY} {
				if crosses {
					row[lid] |= 1 << bit
				}
			}
		}
		sls.SetRow(row, s)
	}
	sl2vl := lft.NewSL2VL(f, lft.ConstantVL(0))
	for s := range fabric.NodeID(n * n) {
		for p := fabric.PortNum(1); p <= 4; p++ {
			var m lft.VLMap
			for sl := range m {
				m[sl] = fabric.VL(sl >> ((p - 1) & 1) & 1)
			}
			sl2vl.SetOut(f.Port(s, p), m)
		}
	}
	return f, tables, sl2vl, sls
}

// BenchmarkCheckLanes has a torus on one VL, where it has credit loops, with a
// dateline, and with the same SL-to-VL tables and no path SLs; and a fat tree
// whose ports all have the same table.
func BenchmarkCheckLanes(b *testing.B) {
	f, tables, sl2vl, sls := torus(b, 64)
	fat, dmodk := benchmarkFabric(b, 36)
	run := func(name string, s *state.State, verdict string) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if r := mustCheck(b, s, Options{Witnesses: 1}); r.Verdict != verdict {
					b.Fatal(r.Verdict)
				}
			}
		})
	}
	dateline := &state.State{Fabric: f, Tables: tables, SL2VL: sl2vl, PathSLs: sls}
	run("torus64/dateline", dateline, VerdictClean)
	run("torus64/one", &state.State{Fabric: f, Tables: tables}, VerdictErrors)
	run("torus64/any", &state.State{Fabric: f, Tables: tables, SL2VL: sl2vl}, VerdictErrors)
	run("fattree36/one", &state.State{Fabric: fat, Tables: dmodk}, VerdictClean)
	run("fattree36/identity8", &state.State{Fabric: fat, Tables: dmodk, SL2VL: lft.NewSL2VL(fat, lft.IdentityVLs(8))}, VerdictClean)
	c := mustCheck(b, dateline, Options{Witnesses: 1}).Certificate()
	b.Run("torus64/certificate", func(b *testing.B) {
		for b.Loop() {
			short.Check(b, c.Check(&state.State{Fabric: f, Tables: tables, SL2VL: sl2vl, PathSLs: sls}, Independent))
		}
	})
}

func BenchmarkCertificateCheck(b *testing.B) {
	f, tables := benchmarkFabric(b, 24)
	c := mustCheck(b, &state.State{Fabric: f, Tables: tables}, Options{}).Certificate()
	for b.Loop() {
		short.Check(b, c.Check(&state.State{Fabric: f, Tables: tables}, Independent))
	}
}
