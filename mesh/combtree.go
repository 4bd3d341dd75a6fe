package mesh

import (
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/mft"
)

// combOrders lists the orders of dimensions that combs are tried in: the
// dimension along the trunk first. A packet for the trunk goes along the last
// one first.
func combOrders(dims int) [][]int {
	first := make([]int, dims)
	for d := range first {
		first[d] = d
	}
	if dims == 1 {
		return [][]int{first}
	}
	last := slices.Clone(first)
	slices.Reverse(last)
	return [][]int{first, last}
}

// combTree is the whole comb of a trunk, as far as there are cables, and
// those that bridge gaps. Switches are known by their rank in it: a parent is
// before its children.
type combTree struct {
	g      *Grid
	trunk  Trunk
	near   []fabric.NodeID // by distance to the middle of the trunk, on a whole grid
	joined []uint32        // by NodeID: the directions of its cables in the comb, a bit each
	whole  bool            // it is one tree

	rank   []int32         // by NodeID
	node   []fabric.NodeID // by rank
	parent []int32         // by rank: that of the switch that is next on the way to the root
	up     []Dir           // by rank: the direction to it
}

// noParent is the parent of a root. There is one root, unless parts are missing
// that nothing bridges.
const noParent = -1

func newCombTree(g *Grid, order []int, trunk Trunk) *combTree {
	n := g.Fabric.NumSwitches()
	t := &combTree{g: g, trunk: trunk, joined: make([]uint32, n)}
	root := slices.Clone(trunk.At)
	root[order[0]] = (g.Dims[order[0]] - 1) / 2
	distance := make([]int, n)
	for s := range fabric.NodeID(n) {
		for d, x := range g.Coord(s) {
			distance[s] += abs(int(x) - root[d])
		}
	}
	for at := range g.Positions() {
		if s := g.At(at); s != fabric.NoNode {
			t.near = append(t.near, s)
		}
	}
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

// climb finds the ways to the root.
func (t *combTree) climb() {
	n := len(t.near)
	t.rank, t.node = make([]int32, n), make([]fabric.NodeID, 0, n)
	t.parent, t.up = make([]int32, 0, n), make([]Dir, 0, n)
	for s := range t.rank {
		t.rank[s] = noParent
	}
	add := func(s fabric.NodeID, parent int32, up Dir) {
		t.rank[s] = int32(len(t.node))
		t.node, t.parent, t.up = append(t.node, s), append(t.parent, parent), append(t.up, up)
	}
	roots := 0
	for _, root := range t.near {
		if t.rank[root] >= 0 {
			continue
		}
		roots++
		i := len(t.node)
		for add(root, noParent, NoDir); i < len(t.node); i++ {
			s := t.node[i]
			for rest := t.joined[s]; rest != 0; rest &= rest - 1 {
				way := Dir(bits.TrailingZeros32(rest))
				u := t.g.Neighbor(s, way)
				if t.rank[u] >= 0 {
					continue
				}
				add(u, int32(i), way.Opposite())
			}
		}
	}
	t.whole = roots == 1
}

func abs(x int) int { return max(x, -x) }

// combWalk follows the parts of combs that join groups: scratch of a worker.
type combWalk struct {
	g         *Grid
	touched   []uint64 // by rank, a bit: members in the subtree; all 0 between calls
	senders   []int32  // by rank: of the group, in the subtree; likewise
	receivers []int32
	links     []combLink
}

// combLink is a link of a group's tree.
type combLink struct {
	below    int32 // rank of the switch that is farther from the trunk
	up, down int32 // copies that cross it when each sender sends one packet
}

func newCombWalk(g *Grid) *combWalk {
	n := g.Fabric.NumSwitches()
	return &combWalk{g: g, touched: make([]uint64, (n+63)/64), senders: make([]int32, n), receivers: make([]int32, n)}
}

// tree fills links with the part of the comb that joins the group's members.
// When a cable is missing there it returns the rank of the switch that has no
// way to the others, else -1. All members must have a switch.
func (w *combWalk) tree(t *combTree, g *mft.Group) int32 {
	f := w.g.Fabric
	w.links = w.links[:0]
	top := 0 // the last word of touched that is not 0
	for i, list := range [2][]fabric.PortID{g.Receivers, g.Senders} {
		count := w.receivers
		if i == 1 {
			count = w.senders
		}
		for _, p := range list {
			r := t.rank[f.Owner(f.Attachment(p))]
			w.touched[r/64] |= 1 << (r % 64)
			top = max(top, int(r/64))
			count[r]++
		}
	}
	receivers, senders := int32(len(g.Receivers)), int32(len(g.Senders))
	stuck := int32(-1)
	for k := top; k >= 0; k-- { // children before their parents
		for w.touched[k] != 0 {
			r := int32(k*64 + 63 - bits.LeadingZeros64(w.touched[k]))
			w.touched[k] &^= 1 << (r % 64)
			in, out := w.receivers[r], w.senders[r]
			w.receivers[r], w.senders[r] = 0, 0
			if in == receivers && out == senders || stuck >= 0 {
				continue // the highest switch of the tree, or no tree
			}
			u := t.parent[r]
			if u == noParent {
				stuck = r
				continue
			}
			w.touched[u/64] |= 1 << (u % 64)
			w.receivers[u] += in
			w.senders[u] += out
			link := combLink{below: r}
			if in < receivers {
				link.up = out
			}
			if in > 0 {
				link.down = senders - out
			}
			if link.up > 0 || link.down > 0 {
				w.links = append(w.links, link)
			}
		}
	}
	return stuck
}

// masks is the ports in the masks of g, ascending; cable says which of several
// parallel cables it takes, modulo their number, by the port numbers of the end that
// is farther from the trunk.
func (w *combWalk) masks(t *combTree, g *mft.Group, cable int) []fabric.PortID {
	w.tree(t, g)
	f := w.g.Fabric
	ports := make([]fabric.PortID, 0, len(g.Receivers)+2*len(w.links))
	for _, l := range w.links {
		cables := w.g.Ports(t.node[l.below], t.up[l.below])
		p := cables[cable%len(cables)]
		if l.up > 0 {
			ports = append(ports, p)
		}
		if l.down > 0 {
			ports = append(ports, f.Peer(p))
		}
	}
	for _, p := range g.Receivers {
		ports = append(ports, f.Attachment(p))
	}
	slices.Sort(ports)
	return ports
}
