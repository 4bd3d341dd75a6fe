package updown

import (
	"cmp"
	"iter"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/levels"
	"github.com/ibweave/ibweave/internal/graph"
)

// treeShare is the least share of cables between neighbouring levels in a tree.
const treeShare = 0.9

// levelOrders yields orders by the levels of a tree, with different leaves on top: those
// from which most switches can be reached by going up, then those without hosts. It
// yields nothing for fabrics that are not nearly trees.
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
			for _, others := range []uncovered{moreTops, anyHigher} {
				o, whole := x.newOrder(top.s, others)
				if !yield(o) {
					return
				}
				if whole {
					break
				}
			}
		}
	}
}

// levelled is the levels of a fabric that is nearly a tree.
type levelled struct {
	f     *fabric.Fabric
	level []int32                   // by switch, 0 for leaves
	up    *graph.CSR[fabric.NodeID] // cables to higher levels
}

func newLevelled(f *fabric.Fabric, level []int32) *levelled {
	var list []fabric.NodeID
	return &levelled{f, level, graph.NewCSR(len(level), func(s fabric.NodeID) []fabric.NodeID {
		list = list[:0]
		for _, v := range f.Neighbors(s) {
			if level[v] > level[s] {
				list = append(list, v)
			}
		}
		return list
	})}
}

// isPeak says whether a switch is no leaf and has no higher neighbour.
func (x *levelled) isPeak(s fabric.NodeID) bool { return x.level[s] > 0 && len(x.up.Next(s)) == 0 }

// uncovered says what becomes of peaks that cannot be reached from the top by going up. Each
// has another price: which is the lowest depends on the tree.
type uncovered int

const (
	// moreTops: further leaves from which most of them can be reached come next, each after
	// the switches of a shortest path to it. Paths between the pods of two such leaves lose
	// next hops.
	moreTops uncovered = iota
	// anyHigher: they come where their level puts them, after a lower switch, which loses
	// its other next hops.
	anyHigher
)

// newOrder makes an order for a tree, of which some cables may be missing, with a leaf on
// top. Then come all switches that can be reached from it by going up levels, the nearest
// first; then, again and again, the highest switch next to those in the order.
//
// On a full tree that reverses only the channels between the leaf and those switches. No
// shortest path between other leaves uses two of these one after the other, and all
// switches, also those at the top, have a legal path to each other.
//
// If not all switches without a higher neighbour can be reached from the leaf, others says what
// becomes of the others. whole says that there are none.
func (x *levelled) newOrder(top fabric.NodeID, others uncovered) (o *Order, whole bool) {
	f, n := x.f, len(x.level)
	prefix := []fabric.NodeID{top}
	cone := graph.NewSearch[fabric.NodeID](n)
	cone.Run(x.up.Next, top)
	next := x.findNextRoot(cone)
	whole = next == fabric.NoNode
	search := graph.NewSearch[fabric.NodeID](n)
	for ; others == moreTops && next != fabric.NoNode; next = x.findNextRoot(cone) {
		search.Run(f.Neighbors, prefix...)
		path := search.Path(next)
		if path == nil { // another part of the fabric
			path = []fabric.NodeID{next}
		} else {
			path = path[1:]
		}
		prefix = append(prefix, path...)
		cone.Run(x.up.Next, prefix...)
	}
	key := make([]int32, n)
	for s, l := range x.level {
		key[s] = -l
	}
	highest := slices.Max(x.level)
	rest := slices.Clone(cone.Order[len(prefix):])
	slices.SortFunc(rest, func(a, b fabric.NodeID) int {
		return cmp.Or(cmp.Compare(cone.Distance[a], cone.Distance[b]), cmp.Compare(a, b))
	})
	prefix = append(prefix, rest...)
	for i, s := range prefix {
		key[s] = int32(i-len(prefix)) - highest
	}
	o = &Order{Rank: make([]int32, n), Switch: graph.BestFirst(n, f.Neighbors, key)}
	for r, s := range o.Switch {
		o.Rank[s] = int32(r)
	}
	return o, whole
}

// findNextRoot finds the leaf from which most switches without a higher neighbour can be
// reached that are not in the cone; NoNode if none is left.
func (x *levelled) findNextRoot(cone *graph.Search[fabric.NodeID]) fabric.NodeID {
	gain := make([]int, len(x.level)) // by switch
	down := graph.NewSearch[fabric.NodeID](len(x.level))
	var list []fabric.NodeID
	descend := func(s fabric.NodeID) []fabric.NodeID {
		list = list[:0]
		for _, v := range x.f.Neighbors(s) {
			if x.level[v] < x.level[s] {
				list = append(list, v)
			}
		}
		return list
	}
	for s := range fabric.NodeID(len(x.level)) {
		if !x.isPeak(s) || cone.Reached(s) {
			continue
		}
		down.Run(descend, s)
		for _, v := range down.Order {
			gain[v]++
		}
	}
	best := fabric.NoNode
	for v, g := range gain {
		v := fabric.NodeID(v)
		if x.level[v] > 0 || g == 0 {
			continue
		}
		if best == fabric.NoNode || g > gain[best] {
			best = v
		}
	}
	return best
}
