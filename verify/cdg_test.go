package verify

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/short"
)

// randomGraph has any dependencies between the channels of a random fabric,
// but those that would have a packet turn round: whatever makes a shortest
// cycle of one or two channels.
func randomGraph(t testing.TB, r *rand.Rand, f *fabric.Fabric, vls, percent int) *dependencyGraph {
	t.Helper()
	c := newChannels(f, []fabric.VL{0, 1, 2, 3}[:vls]...)
	g := newGraph(c)
	for a := range int32(c.count()) {
		u := c.head(a)
		if u < 0 || u == c.tail(a) {
			continue
		}
		for b := c.base(u); b < c.base(u+1)-int32(vls); b++ {
			if c.cabled(b) && c.head(b) != c.tail(a) && c.head(b) != u && r.IntN(100) < percent {
				i := b - c.base(u)
				g.Row(a)[i>>6] |= 1 << (i & 63)
			}
		}
	}
	return g
}

// named is the same graph as the slow checker has it, a channel being named
// by its number.
func (g *dependencyGraph) named() dependencies {
	d := dependencies{}
	for a := range int32(g.count()) {
		for b := range int32(g.count()) {
			if g.has(a, b) {
				d.add([]channel{{port: fabric.PortID(a)}, {port: fabric.PortID(b)}}, 1)
			}
		}
	}
	return d
}

// TestGraph compares orders, levels, components and shortest cycles of random
// graphs, on several VLs too, with plain searches.
func TestGraph(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	cyclic, acyclic := 0, 0
	part := short.Of(1, 14)
	for i := range 400 / part {
		g := randomGraph(t, r, randomFabric(t, r), 1+i%4, 1+r.IntN(30))
		d := g.named()
		sets, shortest := d.components()
		order, ok := g.order()
		if ok != (len(sets) == 0) {
			t.Fatalf("order %t with %d cyclic components", ok, len(sets))
		}
		if ok {
			acyclic++
			at := make([]int, g.count())
			for i, ch := range order {
				at[ch] = i
			}
			level := graph.Levels(g.count(), order, g.Next())
			for x, next := range d {
				for y := range next {
					if a, b := x.port, y.port; at[a] >= at[b] || level[a] >= level[b] {
						t.Fatalf("%d depends on %d: places %d, %d; levels %d, %d", a, b, at[a], at[b], level[a], level[b])
					}
				}
			}
			continue
		}
		cyclic++
		components := g.components()
		if len(components) != len(sets) {
			t.Fatalf("%d components, want %d", len(components), len(sets))
		}
		for i, set := range sets {
			members := components[i]
			if !slices.EqualFunc(members, set, func(a int32, b channel) bool { return a == int32(b.port) }) {
				t.Fatalf("component %v, want %v", members, set)
			}
			for _, budget := range []int{0, 20, cycleBudget} {
				cycle, exact := g.shortestCycle(members, minCycle, budget)
				for k, ch := range cycle {
					if !g.has(ch, cycle[(k+1)%len(cycle)]) {
						t.Fatalf("%v is no cycle", cycle)
					}
				}
				if slices.Min(cycle) != cycle[0] {
					t.Errorf("%v does not start at its lowest channel", cycle)
				}
				if exact && len(cycle) != shortest[i] || len(cycle) < shortest[i] {
					t.Errorf("cycle of %d channels (exact %t), the shortest has %d", len(cycle), exact, shortest[i])
				}
				if !exact && budget == cycleBudget {
					t.Error("the budget is not enough for a small graph")
				}
			}
		}
	}
	if part*cyclic < 50 || part*acyclic < 50 {
		t.Errorf("%d cyclic, %d acyclic", cyclic, acyclic)
	}
}
