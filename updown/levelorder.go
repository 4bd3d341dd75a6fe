package updown

import (
	"cmp"
	"iter"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/levels"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/text"
)

// A tree has at least this share of its cables between neighbouring levels.
const treeShare = 0.9

// levelOrders yields orders by the levels of a tree, with different leaves on top:
// first those with most switches above them, among equal ones those without hosts.
// It yields nothing for fabrics that are not nearly trees.
func levelOrders(f *fabric.Fabric) iter.Seq[*Order] {
	level := levels.Of(f)
	if slices.Max(level) == 0 || levels.Share(f, level) < treeShare {
		return func(func(*Order) bool) {}
	}
	search := graph.NewSearch[fabric.NodeID](len(level))
	x := newLevelled(f, level)
	type leaf struct {
		s            fabric.NodeID
		above, hosts int
	}
	var leaves []leaf
	for s := range fabric.NodeID(len(level)) {
		if level[s] == 0 {
			search.Run(x.up.Next, s)
			leaves = append(leaves, leaf{s, len(search.Order), len(f.HostsOn(s))})
		}
	}
	slices.SortStableFunc(leaves, func(a, b leaf) int {
		return cmp.Or(cmp.Compare(b.above, a.above), cmp.Compare(min(a.hosts, 1), min(b.hosts, 1)))
	})
	return func(yield func(*Order) bool) {
		for _, top := range leaves[:min(len(leaves), someLeaves)] {
			if !yield(x.newOrder(top.s)) {
				return
			}
		}
	}
}

// levelled is a fabric that is nearly a tree, with its levels.
type levelled struct {
	f     *fabric.Fabric
	level []int32                   // by switch, 0 for leaves
	up    *graph.CSR[fabric.NodeID] // cables to higher levels
}

func newLevelled(f *fabric.Fabric, level []int32) *levelled {
	return &levelled{f, level, graph.NewCSR(len(level), func(s fabric.NodeID) []fabric.NodeID {
		return text.Where(f.Neighbors(s), func(v fabric.NodeID) bool { return level[v] > level[s] })
	})}
}

// newOrder makes an order for a tree, which may lack some cables, with a leaf on
// top. Then come all switches above it, the nearest first; then, one by one, the
// highest switch with a neighbour in the order.
//
// On a full tree that reverses only the channels between the leaf and the switches
// above it. No shortest path between other leaves uses two of these in a row, and
// all switches, also those at the top, have legal paths to each other.
func (x *levelled) newOrder(top fabric.NodeID) *Order {
	n := len(x.level)
	cone := graph.NewSearch[fabric.NodeID](n)
	cone.Run(x.up.Next, top)
	first := slices.Clone(cone.Order)
	slices.SortFunc(first, func(a, b fabric.NodeID) int {
		return cmp.Or(cmp.Compare(cone.Distance[a], cone.Distance[b]), cmp.Compare(a, b))
	})
	key := text.Each(x.level, func(l int32) int32 { return -l })
	highest := slices.Max(x.level)
	for i, s := range first {
		key[s] = int32(i-len(first)) - highest
	}
	return rankSwitches(graph.BestFirst(n, x.f.Neighbors, key))
}
