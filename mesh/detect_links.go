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

// links is the graph of the switches: parallel cables are one link, and each
// link has a slot at both of its ends. A cable from a switch to itself is no
// link.
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
		g.to = append(g.to, to...)
		own := g.to[g.start[s]:]
		slices.Sort(own)
		own = slices.Compact(own)
		if len(without) > 0 {
			own = slices.DeleteFunc(own, func(t fabric.NodeID) bool { return slices.Contains(without, cableOf(s, t)) })
		}
		g.to = g.to[:int(g.start[s])+len(own)]
		g.start[s+1] = int32(len(g.to))
	}
	g.back = make([]int32, len(g.to))
	seen := slices.Clone(g.start[:n])
	for s := range fabric.NodeID(n) {
		for i := g.start[s]; i < g.start[s+1]; i++ {
			// The neighbours of t are ascending, and so are the s.
			t := g.to[i]
			g.back[i] = seen[t]
			seen[t]++
		}
	}
	return g
}

func (g *links) switches() int { return len(g.start) - 1 }

// count is the number of links.
func (g *links) count() int { return len(g.to) / 2 }

// of gives the neighbours of s, ascending.
func (g *links) of(s fabric.NodeID) []fabric.NodeID { return g.to[g.start[s]:g.start[s+1]] }

// degree is how many neighbours s has.
func (g *links) degree(s fabric.NodeID) int32 { return g.start[s+1] - g.start[s] }

// slot is that of the link from s to t.
func (g *links) slot(s, t fabric.NodeID) (int32, bool) {
	i, ok := slices.BinarySearch(g.of(s), t)
	return g.start[s] + int32(i), ok
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
	n := g.switches()
	g.square = make([]uint32, len(g.to))
	mark := make([]int32, n) // by switch two links away: one more than the switch that met it
	via := make([]uint32, n) // over which neighbours, by their number
	for s := range fabric.NodeID(n) {
		crowded := false
		own := g.square[g.start[s]:g.start[s+1]]
		for i, t := range g.of(s) {
			for _, u := range g.of(t) {
				if u == s {
					continue
				}
				if mark[u] != int32(s)+1 {
					mark[u], via[u] = int32(s)+1, 1<<i
					continue
				}
				for j := range i {
					if via[u]>>j&1 != 0 {
						own[i] |= 1 << j
						own[j] |= 1 << i
					}
				}
				via[u] |= 1 << i
				if bits.OnesCount32(via[u]) > 2 {
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
	}
}

// crowdOf is s, u and the first three of the neighbours of s in the set.
func (g *links) crowdOf(s, u fabric.NodeID, set uint32) [5]fabric.NodeID {
	crowd := [5]fabric.NodeID{s, u}
	k := 2
	for i, t := range g.of(s) {
		if set>>i&1 != 0 && k < len(crowd) {
			crowd[k] = t
			k++
		}
	}
	return crowd
}

// frame is the largest set of links of s, two of which always lie on a cycle
// of four, that a greedy choice from each link on finds, as bits. On a grid
// such links lead in different dimensions, whatever is missing.
func (g *links) frame(s fabric.NodeID) (links uint32, size int) {
	own := g.square[g.start[s]:g.start[s+1]]
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

// parts numbers the connected parts of the graph, in the order of their
// lowest switches.
func (g *links) parts() (part []int32, count int) {
	part = make([]int32, g.switches())
	for i := range part {
		part[i] = -1
	}
	var queue []fabric.NodeID
	for s := range part {
		if part[s] >= 0 {
			continue
		}
		part[s] = int32(count)
		queue = append(queue[:0], fabric.NodeID(s))
		for len(queue) > 0 {
			u := queue[0]
			queue = queue[1:]
			for _, t := range g.of(u) {
				if part[t] < 0 {
					part[t] = int32(count)
					queue = append(queue, t)
				}
			}
		}
		count++
	}
	return part, count
}
