package mesh

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// BenchmarkRepair repairs grids from which random cables are missing. It does
// not count the time of XY. Besides the time it reports the broken entries
// that were mended, the VLs in use, and how many hops the paths of these
// entries have beyond the shortest.
func BenchmarkRepair(b *testing.B) {
	for _, tt := range []struct {
		dims   []int
		torus  bool
		cables int
	}{
		{[]int{16, 16}, false, 3},
		{[]int{16, 16}, false, 24},
		{[]int{30, 30}, false, 3},
		{[]int{30, 30}, false, 87},
		{[]int{8, 8}, true, 3},
		{[]int{10, 10, 10}, false, 20},
	} {
		wrap := make([]bool, len(tt.dims))
		for d := range wrap {
			wrap[d] = tt.torus
		}
		b.Run(fmt.Sprintf("%s/torus=%t/missing=%d", times(tt.dims), tt.torus, tt.cables), func(b *testing.B) {
			p := plot{dims: tt.dims, wrap: wrap}
			cables := some(cuts(p.dims, p.wrap), tt.cables, rand.New(rand.NewPCG(1, 2)))
			g := grow(b, p.without(cables))
			b.ReportAllocs()
			var r *lft.Routing
			for b.Loop() {
				b.StopTimer()
				xy := byXY(b, g, lft.Options{})
				b.StartTimer()
				var err error
				if r, err = repair(b.Context(), g, xy, lft.Options{}); err != nil {
					b.Fatal(err)
				}
			}
			entries, longer := stretch(g, byXY(b, g, lft.Options{}), r)
			b.ReportMetric(float64(entries), "entries")
			b.ReportMetric(float64(longer)/float64(entries), "extra-hops")
			vls := 1
			if r.SL2VL != nil {
				vls = r.SL2VL.VLs()
			}
			b.ReportMetric(float64(vls), "VLs")
		})
	}
}

// stretch counts the entries that got changed, and the hops that the paths from
// there have beyond the shortest.
func stretch(g *Grid, xy, got *lft.Routing) (entries, longer int) {
	f := g.Fabric
	for lid, port := range f.LIDPorts() {
		to, _ := delivery(f, port)
		if to == fabric.NoNode {
			continue
		}
		dist := f.Distances().To(to)
		for s := range fabric.NodeID(f.NumSwitches()) {
			if xy.Tables.Row(s)[lid] == got.Tables.Row(s)[lid] {
				continue
			}
			entries++
			longer -= int(dist[s])
			for at := s; at != to; longer++ {
				at = f.Owner(f.Peer(f.Port(at, got.Tables.Row(at)[lid])))
			}
		}
	}
	return entries, longer
}
