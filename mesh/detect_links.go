package mesh

import (
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// maxNeighbors is how many neighbours a switch can have on a grid.
const maxNeighbors = 2 * maxDims

// cable is two switches with one or several cables between them, the lower
// NodeID first.
type cable [2]fabric.NodeID

func cableOf(s, t fabric.NodeID) cable { return cable{min(s, t), max(s, t)} }

// links is what Detect reads: the graph of the switches. Parallel cables are one
// link, and each link has a slot at both of its ends. A cable from a switch to
// itself is no link.
type links struct {
	start []int32         // by switch, one more: its slots
	to    []fabric.NodeID // by slot: the switch at the other end, ascending
	back  []int32         // by slot: the same link's slot at its other end
	// square has a bit for each link of the same switch, counted from its
	// first, that lies with this one on a cycle of four links.
	square []uint32
	// crowd is three switches that are neighbours of both of two others,
	// which come first. On a grid two switches have at most two neighbours
	// in common, whatever is missing. crowds counts the switches that are
	// first in such a set.
	crowd  [5]fabric.NodeID
	crowds int
}

// newLinks makes the graph of f less some cables.
func newLinks(f *fabric.Fabric, without []cable) *links {
	n := f.NumSwitches()
	g := &links{start: make([]int32, n+1)}
	for s := range fabric.NodeID(n) {
		_, to := f.SwitchLinks(s)
		own := slices.Clone(to)
		slices.Sort(own)
		own = slices.Compact(own)
		if len(without) > 0 {
			own = slices.DeleteFunc(own, func(t fabric.NodeID) bool { return slices.Contains(without, cableOf(s, t)) })
		}
		g.to = append(g.to, own...)
		g.start[s+1] = int32(len(g.to))
	}
	g.back = make([]int32, len(g.to))
	seen := slices.Clone(g.start[:n])
	for i, t := range g.to {
		// The neighbours of t are ascending, and so are the switches of the slots.
		g.back[i] = seen[t]
		seen[t]++
	}
	if _, most := g.busiest(); most <= maxNeighbors {
		g.findSquares()
	}
	return g
}

func (g *links) switches() int { return len(g.start) - 1 }

// count is the number of links.
func (g *links) count() int { return len(g.to) / 2 }

// of gives the neighbours of s, ascending.
func (g *links) of(s fabric.NodeID) []fabric.NodeID { return g.to[g.start[s]:g.start[s+1]] }

// squares gives square for the links of s.
func (g *links) squares(s fabric.NodeID) []uint32 { return g.square[g.start[s]:g.start[s+1]] }

// linked says whether a link joins s and t.
func (g *links) linked(s, t fabric.NodeID) bool {
	_, ok := slices.BinarySearch(g.of(s), t)
	return ok
}

// busiest is a switch with the most neighbours, and their number.
func (g *links) busiest() (fabric.NodeID, int) {
	best, most := fabric.NodeID(0), -1
	for s := range fabric.NodeID(g.switches()) {
		if d := len(g.of(s)); d > most {
			best, most = s, d
		}
	}
	return best, most
}

// findSquares fills in square, crowd and crowds. No switch may have more than
// maxNeighbors neighbours.
func (g *links) findSquares() {
	g.square = make([]uint32, len(g.to))
	via := make([]uint32, g.switches()) // the links of s that lead to a neighbour of the switch, by their number
	for s := range fabric.NodeID(g.switches()) {
		for i, t := range g.of(s) {
			for _, u := range g.of(t) {
				via[u] |= 1 << i
			}
		}
		via[s] = 0
		crowded := false
		for i, t := range g.of(s) {
			for _, u := range g.of(t) {
				g.squares(s)[i] |= via[u] &^ (1 << i)
				if bits.OnesCount32(via[u]&(2<<i-1)) > 2 {
					if g.crowds == 0 && !crowded {
						g.crowd = g.crowdOf(s, u, via[u])
					}
					crowded = true
				}
			}
		}
		if crowded {
			g.crowds++
		}
		for _, t := range g.of(s) {
			for _, u := range g.of(t) {
				via[u] = 0
			}
		}
	}
}

// crowdOf is s, u and the first three of the neighbours of s in the set.
func (g *links) crowdOf(s, u fabric.NodeID, set uint32) [5]fabric.NodeID {
	crowd := [5]fabric.NodeID{s, u}
	for k := range 3 {
		crowd[2+k] = g.of(s)[bits.TrailingZeros32(set)]
		set &= set - 1
	}
	return crowd
}

// independent is the largest set of links of s, two of which always lie on a cycle
// of four, that a greedy choice from each link on finds, as bits. On a grid
// such links lead in different dimensions, whatever is missing.
func (g *links) independent(s fabric.NodeID) (links uint32, size int) {
	own := g.squares(s)
	for i := range own {
		set, n := uint32(1)<<i, 1
		for j, fellows := range own {
			if fellows&set == set {
				set |= 1 << j
				n++
			}
		}
		if n > size {
			links, size = set, n
		}
	}
	return links, size
}

// dimensions is the greatest number of links of a switch that lead in different
// dimensions. On a whole grid, all switches have as many.
func (g *links) dimensions() int {
	dims := 0
	for s := range fabric.NodeID(g.switches()) {
		_, size := g.independent(s)
		dims = max(dims, size)
	}
	return dims
}

// seed is the most regular switch with links in dims dimensions, that with the most
// pairs of links on cycles of four, and such links.
func (g *links) seed(dims int) (at fabric.NodeID, links uint32) {
	most := -1
	for s := range fabric.NodeID(g.switches()) {
		own, size := g.independent(s)
		if size < dims {
			continue
		}
		regular := 0
		for _, fellows := range g.squares(s) {
			regular += bits.OnesCount32(fellows)
		}
		if regular > most {
			at, links, most = s, own, regular
		}
	}
	return at, links
}

// suspects gives the links that lie on no cycle of four, in small fabrics all,
// those on the fewest cycles first.
func (g *links) suspects() []cable {
	var found []int32 // slots
	var from []fabric.NodeID
	for s := range fabric.NodeID(g.switches()) {
		for i := g.start[s]; i < g.start[s+1]; i++ {
			from = append(from, s)
			if s < g.to[i] && (g.square[i] == 0 || g.switches() <= searchSwitches) {
				found = append(found, i)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b int32) int {
		return bits.OnesCount32(g.square[a]) - bits.OnesCount32(g.square[b])
	})
	cables := make([]cable, len(found))
	for k, i := range found {
		cables[k] = cable{from[i], g.to[i]}
	}
	return cables
}
