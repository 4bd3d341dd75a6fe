package layered

import (
	"cmp"
	"context"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
)

// assignment is the turns of each layer. The first layer has all turns that the order of the
// switches allows.
type assignment struct {
	set        []uint16 // by turn: a bit for each layer that has it
	layers     []*layer
	unassigned uint64 // number of pairs without a layer
}

// upDown is the turns that the order of the switches allows, and an order of the channels in
// which all these turns rise.
type upDown struct {
	order []int32 // channels
	legal []bool  // by turn
}

// newUpDown lists the turns of packets that first go up, to switches with lower ranks, then
// down.
func newUpDown(t *turns, rank []int32) *upDown {
	n := int32(len(rank))
	key := make([]int32, len(t.to))
	x := &upDown{order: make([]int32, len(t.to)), legal: make([]bool, t.countTurns())}
	up := func(c int32) bool { return rank[t.to[c]] < rank[t.from[c]] }
	for c := range int32(len(t.to)) {
		x.order[c] = c
		if key[c] = n + rank[t.to[c]]; up(c) {
			key[c] = n - rank[t.to[c]]
		}
		for e := t.turn[c]; e < t.turn[c+1]; e++ {
			d := t.first[t.to[c]] + e - t.turn[c]
			x.legal[e] = (up(c) || !up(d)) && t.to[d] != t.from[c]
		}
	}
	slices.SortStableFunc(x.order, func(a, b int32) int { return int(key[a] - key[b]) })
	return x
}

// assigner assigns layers to paths.
type assigner struct {
	*paths
	updn          *upDown
	balanceUpDown func() (*lft.Tables, error) // returns the tables of updn with the same order
}

// sortByWeight lists the turns with a weight, the heaviest first.
func sortByWeight(weight []uint32) []int32 {
	list := text.Indices[int32](weight, func(n uint32) bool { return n > 0 })
	slices.SortStableFunc(list, func(a, b int32) int { return cmp.Compare(weight[b], weight[a]) })
	return list
}

// fillLayer puts into layer l as many paths as it can, of those without a layer in
// the set done.
func (p *assigner) fillLayer(ctx context.Context, l *layer, weight []uint32, done uint16) {
	seeded := make([]bool, len(l.set)) // turns of l before, which stay
	for e := range seeded {
		seeded[e] = l.hasTurn(int32(e))
	}
	for _, e := range sortByWeight(weight) {
		c, d := p.turnEnds(e)
		l.addTurn(e, c, d)
	}
	used, _ := p.sumWeights(ctx, l.set, done, l.bit)
	for e := range used {
		if used[e] == 0 && !seeded[e] {
			l.removeTurn(int32(e))
		}
	}
	p.addPaths(ctx, l, done)
}

// addPaths puts into layer l the paths that fit, of those from switches with hosts
// without a layer in the set done.
func (p *assigner) addPaths(ctx context.Context, l *layer, done uint16) {
	w := p.newWalker()
	refused := make([]bool, p.countTurns())
	var added []int32
	for i := range p.jobs {
		if ctx.Err() != nil {
			return
		}
		j := &p.jobs[i]
		w.loadJob(j, l.set, done|l.bit)
		for _, s := range slices.Backward(w.order) {
			if p.hosts[s] == 0 {
				continue
			}
			for k, lid := range j.lids {
				if w.layersOf[int(s)*blockLIDs+k] == 0 && !p.upDownOnly[lid] {
					w.addPath(l, s, j.t, k, refused, &added)
				}
			}
		}
	}
}

// addPath puts the path of switch s to the k-th LID of t into layer l. It returns false, and
// does not change the layer, if the path does not fit.
func (w *walker) addPath(l *layer, s, t fabric.NodeID, k int, refused []bool, added *[]int32) bool {
	*added = (*added)[:0]
	for c := w.next[int(s)*blockLIDs+k]; w.to[c] != int32(t); {
		d := w.next[int(w.to[c])*blockLIDs+k]
		e := w.turnFrom(c, d)
		if refused[e] {
			w.removeTurns(l, *added)
			return false
		}
		if !l.hasTurn(e) {
			if !l.addTurn(e, c, d) {
				refused[e] = len(*added) == 0
				w.removeTurns(l, *added)
				return false
			}
			*added = append(*added, e)
		}
		c = d
	}
	return true
}

func (w *walker) removeTurns(l *layer, added []int32) {
	for _, e := range added {
		l.removeTurn(e)
	}
}

// assignLayers assigns paths to at most limit layers. The first starts with all turns of the
// order.
func (p *assigner) assignLayers(ctx context.Context, limit int) *assignment {
	x := &assignment{set: make([]uint16, p.countTurns())}
	for ctx.Err() == nil {
		k := len(x.layers)
		done := uint16(1)<<k - 1
		weight, left := p.sumWeights(ctx, x.set, done, 0)
		if x.unassigned = left; left == 0 && k > 0 || k == limit {
			break
		}
		l := newLayer(p.turns, x.set, k, p.updn.order, searchWork)
		for e, legal := range p.updn.legal { // layer 0 starts with all turns of the order
			if k == 0 && legal {
				l.set[e] |= l.bit
			}
		}
		p.fillLayer(ctx, l, weight, done)
		x.layers = append(x.layers, l)
	}
	return x
}

// isBetter returns true if x is preferable to y: only x has layers for all paths, or it needs
// fewer virtual lanes (a port can have 1, 2, 4, 8 or 15), or leaves fewer pairs unassigned.
func (x *assignment) isBetter(y *assignment) bool {
	if (x.unassigned == 0) != (y.unassigned == 0) {
		return x.unassigned == 0
	}
	if lanes, others := lft.LeastVLCount(len(x.layers)), lft.LeastVLCount(len(y.layers)); lanes != others {
		return lanes < others
	}
	return x.unassigned < y.unassigned
}
