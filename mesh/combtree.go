package mesh

import (
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/mft"
)

// combOrders lists the orders of dimensions to try for combs. The dimension along
// the trunk is first; packets for the trunk go along the last one first.
func combOrders(dims int) [][]int {
	first := text.Numbers[int](dims)
	if dims == 1 {
		return [][]int{first}
	}
	last := slices.Clone(first)
	slices.Reverse(last)
	return [][]int{first, last}
}

// combTree is the comb of a trunk as a tree: of the comb's cables, as far as they exist, and
// of other cables that join its parts where some are missing.
type combTree struct {
	g      *Grid
	trunk  Trunk
	near   []fabric.NodeID // sorted by distance to the middle of the trunk, as on a whole grid
	joined []uint32        // by NodeID: a bit for each direction with a cable in the comb
	whole  bool            // it is one tree

	mft.SpanningTree       // has several roots if it is not whole
	up               []Dir // by rank: the direction to the parent
}

func newCombTree(g *Grid, order []int, trunk Trunk) *combTree {
	n := g.Fabric.NumSwitches()
	t := &combTree{g: g, trunk: trunk, joined: make([]uint32, n), SpanningTree: mft.SpanningTree{Fabric: g.Fabric}}
	root := slices.Clone(trunk.At)
	root[order[0]] = (g.Dims[order[0]] - 1) / 2
	distance := make([]int, n)
	for s := range fabric.NodeID(n) {
		for d, x := range g.Coord(s) {
			distance[s] += abs(int(x) - root[d])
		}
	}
	t.near = text.Where(g.at, func(s fabric.NodeID) bool { return s != fabric.NoNode })
	slices.SortStableFunc(t.near, func(a, b fabric.NodeID) int { return distance[a] - distance[b] })
	for s := range fabric.NodeID(n) {
		x := g.Coord(s)
		for i := len(order) - 1; i >= 0; i-- {
			d := order[i]
			if int(x[d]) == root[d] {
				continue
			}
			way := Plus(d)
			if int(x[d]) > root[d] {
				way = Minus(d)
			}
			if len(g.Ports(s, way)) > 0 {
				t.join(s, way)
			}
			break
		}
	}
	t.climb()
	return t
}

// join adds the cable from s in a direction.
func (t *combTree) join(s fabric.NodeID, way Dir) {
	t.joined[s] |= 1 << way
	t.joined[t.g.Neighbor(s, way)] |= 1 << way.Opposite()
}

// climb builds the spanning tree: the way of each switch to the root of its part.
func (t *combTree) climb() {
	n := len(t.near)
	t.Rank, t.Switch = slices.Repeat([]int32{mft.NoParent}, n), make([]fabric.NodeID, 0, n)
	t.Parent, t.up = make([]int32, 0, n), make([]Dir, 0, n)
	add := func(s fabric.NodeID, parent int32, up Dir) {
		t.Rank[s] = int32(len(t.Switch))
		t.Switch, t.Parent, t.up = append(t.Switch, s), append(t.Parent, parent), append(t.up, up)
	}
	roots := 0
	for _, root := range t.near {
		if t.Rank[root] >= 0 {
			continue
		}
		roots++
		i := len(t.Switch)
		for add(root, mft.NoParent, NoDir); i < len(t.Switch); i++ {
			s := t.Switch[i]
			for rest := t.joined[s]; rest != 0; rest &= rest - 1 {
				way := Dir(bits.TrailingZeros32(rest))
				u := t.g.Neighbor(s, way)
				if t.Rank[u] >= 0 {
					continue
				}
				add(u, int32(i), way.Opposite())
			}
		}
	}
	t.whole = roots == 1
}

func abs(x int) int { return max(x, -x) }
