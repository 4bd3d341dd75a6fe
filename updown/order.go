package updown

import (
	"cmp"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// Order is a strict total order of the switches: the direction of every link
// follows from it, up towards the switch that comes first.
type Order struct {
	// Rank is by NodeID: 0 for the switch on top, each rank once.
	Rank []int32
	// Switch is by rank, the inverse of Rank.
	Switch []fabric.NodeID
}

// NewOrder grows an order from roots. The first root is on top; each further
// one is joined to those before it by the switches of a shortest path, which
// come next; then come all other switches by their distance from the switches
// so far, equal ones by GUID. What the roots do not reach is grown from its
// switch with the lowest GUID, and so on. So every switch but the first of
// its connected part has an upward link, and everything can be reached by
// going up to the top and down again.
func NewOrder(f *fabric.Fabric, roots []fabric.NodeID) *Order {
	n := f.NumSwitches()
	o := &Order{Rank: make([]int32, n), Switch: make([]fabric.NodeID, 0, n)}
	for i := range o.Rank {
		o.Rank[i] = -1
	}
	place := func(s fabric.NodeID) {
		if o.Rank[s] < 0 {
			o.Rank[s] = int32(len(o.Switch))
			o.Switch = append(o.Switch, s)
		}
	}
	g := grower{f: f, from: make([]fabric.NodeID, n), queue: make([]fabric.NodeID, 0, n)}
	for i, r := range roots {
		if o.Rank[r] >= 0 {
			continue
		}
		if i > 0 {
			for _, s := range g.path(o, r) {
				place(s)
			}
		}
		place(r)
	}
	for next := fabric.NodeID(0); ; {
		if len(o.Switch) > 0 {
			for _, s := range g.grow(o) {
				place(s)
			}
		}
		for int(next) < n && o.Rank[next] >= 0 {
			next++
		}
		if int(next) == n {
			return o
		}
		place(next)
	}
}

// grower searches breadth first from all switches that have a rank.
type grower struct {
	f     *fabric.Fabric
	from  []fabric.NodeID // by NodeID: where the search came from, NoNode unseen
	queue []fabric.NodeID
}

// search visits until want is found (NoNode: all); the queue holds what was
// found, the switches with a rank first.
func (g *grower) search(o *Order, want fabric.NodeID) bool {
	for i := range g.from {
		g.from[i] = fabric.NoNode
	}
	g.queue = append(g.queue[:0], o.Switch...)
	for _, s := range g.queue {
		g.from[s] = s
	}
	for i := 0; i < len(g.queue); i++ {
		s := g.queue[i]
		_, to := g.f.SwitchLinks(s)
		for _, u := range to {
			if g.from[u] != fabric.NoNode {
				continue
			}
			g.from[u] = s
			g.queue = append(g.queue, u)
			if u == want {
				return true
			}
		}
	}
	return false
}

// path is the inner part of a shortest path from the order to s, from the
// order on; nil when there is none.
func (g *grower) path(o *Order, s fabric.NodeID) []fabric.NodeID {
	if !g.search(o, s) {
		return nil
	}
	var p []fabric.NodeID
	for s = g.from[s]; o.Rank[s] < 0; s = g.from[s] {
		p = append(p, s)
	}
	slices.Reverse(p)
	return p
}

// grow lists what can be reached from the order by distance, then GUID.
func (g *grower) grow(o *Order) []fabric.NodeID {
	g.search(o, fabric.NoNode)
	found := g.queue[len(o.Switch):]
	dist := make([]int32, len(o.Rank))
	for _, s := range found {
		dist[s] = dist[g.from[s]] + 1
	}
	slices.SortFunc(found, func(a, b fabric.NodeID) int {
		if c := cmp.Compare(dist[a], dist[b]); c != 0 {
			return c
		}
		return cmp.Compare(a, b)
	})
	return found
}
