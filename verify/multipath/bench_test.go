package multipath_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/updown"
	"github.com/ibweave/ibweave/verify"
	"github.com/ibweave/ibweave/verify/multipath"
)

// legalTables routes by updn and gives each switch all legal ports to choose from.
func legalTables(tb testing.TB, f *fabric.Fabric) (*lft.Tables, *adaptive.Tables) {
	tb.Helper()
	e := updown.Engine{}
	routing, err := e.Route(context.Background(), f, lft.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	order := &updown.Order{Rank: routing.Order, Switch: make([]fabric.NodeID, f.NumSwitches())}
	for s, rank := range order.Rank {
		order.Switch[rank] = fabric.NodeID(s)
	}
	lids := make([][]fabric.LID, f.NumSwitches())
	for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
		if at := f.Attachment(f.LIDPort(lid)); at != fabric.NoPort {
			lids[f.Owner(at)] = append(lids[f.Owner(at)], lid)
		}
	}
	t := &adaptive.Tables{Groups: make([][]adaptive.Group, f.NumSwitches()), PLFTs: []*adaptive.PLFT{adaptive.NewPLFT(routing.Tables)}}
	known := make([]map[adaptive.PortSet]int, f.NumSwitches())
	list, h := updown.NextHops(e, f, order)(), &lft.NextHops{}
	for root := range fabric.NodeID(f.NumSwitches()) {
		h.Reset()
		if err := list(root, h); err != nil {
			tb.Fatal(err)
		}
		for i, s := range h.Switches {
			var set adaptive.PortSet
			for _, out := range h.Ports(i) {
				set.Add(f.Num(out))
			}
			if known[s] == nil {
				known[s] = map[adaptive.PortSet]int{}
			}
			group, ok := known[s][set]
			if !ok {
				group = len(t.Groups[s])
				known[s][set] = group
				t.Groups[s] = append(t.Groups[s], adaptive.Group{Number: group, Subgroups: []adaptive.Subgroup{{Ports: set}}})
			}
			for _, lid := range lids[root] {
				t.PLFTs[0].Set(s, lid, adaptive.Free, group)
			}
		}
	}
	return routing.Tables, t
}

// reportCPU reports the CPU time of each operation, which other programs disturb less than time.
func reportCPU(b *testing.B) func() {
	cpu := func() float64 {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return float64(u.Utime.Nano() + u.Stime.Nano())
	}
	start := cpu()
	return func() { b.ReportMetric((cpu()-start)/1e6/float64(b.N), "cpu-ms/op") }
}

// BenchmarkCheck puts the checker of all choices beside that of static tables.
func BenchmarkCheck(b *testing.B) {
	for _, radix := range []int{24, 36, 56} {
		b.Run(fmt.Sprintf("radix=%d", radix), func(b *testing.B) {
			f, err := gen.FatTree(gen.FatTreeSpec{Radix: radix, Levels: 3})
			if err != nil {
				b.Fatal(err)
			}
			if f, err = lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs}); err != nil {
				b.Fatal(err)
			}
			static, tables := legalTables(b, f)
			b.Run("static", func(b *testing.B) {
				defer reportCPU(b)()
				for b.Loop() {
					if r, err := verify.Check(b.Context(), f, static, verify.Options{}); err != nil || r.Verdict != verify.VerdictClean {
						b.Fatal(err)
					}
				}
			})
			b.Run("adaptive", func(b *testing.B) {
				defer reportCPU(b)()
				for b.Loop() {
					if r, err := multipath.Check(b.Context(), f, tables, multipath.Options{}); err != nil || len(r.Findings) > 0 || r.Certificate() == nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
