package layered

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// assignment says which layers have which turns. The first layer has all turns that the
// order of the switches allows.
type assignment struct {
	set        []uint16 // by turn: a bit for each layer that has it
	layers     []*layer
	unassigned uint64 // pairs that no layer has
}

// trial is a way to assign layers.
type trial struct {
	ordered bool   // fill the layer with the order of the switches first, not last
	seed    uint64 // varies the weights unless it is 0
}

// upDown is the turns of the order of the switches, and an order of the channels in which
// all these turns rise.
type upDown struct {
	order []int32 // channels
	legal []bool  // by turn
}

// newUpDown lists the turns of packets that go up to switches with lower ranks, then down.
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

// seedLayer puts all turns of the order into an empty layer.
func (x *upDown) seedLayer(l *layer) {
	for e, ok := range x.legal {
		if ok {
			l.set[e] |= l.bit
		}
	}
}

// assigner assigns layers to paths.
type assigner struct {
	*paths
	updn          *upDown
	balanceUpDown func() (*lft.Tables, error) // gives the tables of updn with the same order
}

// sortByWeight lists the turns with a weight, the heaviest first. A seed other than 0
// varies the weights.
func sortByWeight(weight []uint32, seed uint64) []int32 {
	key := make([]uint64, len(weight))
	var list []int32
	var rng *rand.Rand
	if seed > 0 {
		rng = rand.New(rand.NewPCG(seed, 0))
	}
	for e, n := range weight {
		if n == 0 {
			continue
		}
		list = append(list, int32(e))
		if key[e] = uint64(n) << 10; rng != nil {
			key[e] = uint64(n) * (512 + rng.Uint64N(1024))
		}
	}
	slices.SortFunc(list, func(a, b int32) int {
		return cmp.Or(cmp.Compare(key[b], key[a]), cmp.Compare(a, b))
	})
	return list
}

// fillLayer puts as many paths as it can into a layer, of those that no layer of done has.
// A seeded layer keeps all turns of the order.
func (p *assigner) fillLayer(ctx context.Context, l *layer, weight []uint32, done uint16, seed uint64, seeded bool, workers int) {
	for _, e := range sortByWeight(weight, seed) {
		c, d := p.turnEnds(e)
		l.addTurn(e, c, d)
	}
	used, _ := p.sumWeights(ctx, l.set, done, l.bit, workers)
	for e := range used {
		if used[e] == 0 && l.hasTurn(int32(e)) && !(seeded && p.updn.legal[e]) {
			l.removeTurn(int32(e))
		}
	}
	p.addPaths(ctx, l, done)
}

// addPaths puts those paths from switches with hosts into the layer that fit and that no
// layer of done has. It returns how many pairs do not fit.
func (p *assigner) addPaths(ctx context.Context, l *layer, done uint16) (left uint64) {
	w := p.newWalker()
	refused := make([]bool, p.countTurns())
	var added []int32
	for i := range p.jobs {
		if ctx.Err() != nil {
			return left
		}
		j := &p.jobs[i]
		w.loadJob(j, l.set, done|l.bit)
		for _, s := range slices.Backward(w.order) {
			if p.hosts[s] == 0 {
				continue
			}
			for k, lid := range j.lids {
				if w.layersOf[int(s)*blockLIDs+k] != 0 || p.upDownOnly[lid] {
					continue
				}
				if !w.addPath(l, s, j.t, k, refused, &added) {
					left += uint64(p.hosts[s])
				}
			}
		}
	}
	return left
}

// addPath puts the path of a switch to the k-th LID of t into the layer. It returns false
// and leaves the layer as it is if the path does not fit.
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

// assignLayers makes one trial, with at most limit layers.
func (p *assigner) assignLayers(ctx context.Context, t trial, limit, workers int) *assignment {
	x := &assignment{set: make([]uint16, p.countTurns())}
	ordered := -1 // the layer with the order
	for ctx.Err() == nil {
		k := len(x.layers)
		done := uint16(1)<<k - 1
		weight, left := p.sumWeights(ctx, x.set, done, 0, workers)
		if x.unassigned = left; left == 0 && ordered >= 0 || k == limit {
			break
		}
		l := newLayer(p.turns, x.set, k, p.updn.order, searchWork)
		if ordered < 0 && (t.ordered || k == limit-1 || left == 0) {
			p.updn.seedLayer(l)
			ordered = k
			p.fillLayer(ctx, l, weight, done, t.seed, true, workers)
		} else {
			if ordered < 0 {
				// Perhaps all other paths fit in with the order.
				p.updn.seedLayer(l)
				if p.addPaths(ctx, l, done) == 0 {
					ordered = k
					x.layers = append(x.layers, l)
					continue
				}
				for e := range x.set {
					l.removeTurn(int32(e))
				}
				l = newLayer(p.turns, x.set, k, p.updn.order, searchWork)
			}
			p.fillLayer(ctx, l, weight, done, t.seed, false, workers)
		}
		x.layers = append(x.layers, l)
	}
	if ordered > 0 {
		x.swapLayers(0, ordered)
	}
	return x
}

// swapLayers changes the numbers of two layers.
func (x *assignment) swapLayers(a, b int) {
	for e, set := range x.set {
		if set>>a&1 != set>>b&1 {
			x.set[e] = set ^ 1<<a ^ 1<<b
		}
	}
	x.layers[a], x.layers[b] = x.layers[b], x.layers[a]
	x.layers[a].bit, x.layers[b].bit = x.layers[b].bit, x.layers[a].bit
}

// isBetter says whether x is preferable to y.
func (x *assignment) isBetter(y *assignment) bool {
	if (x.unassigned == 0) != (y.unassigned == 0) {
		return x.unassigned == 0
	}
	if len(x.layers) != len(y.layers) {
		return len(x.layers) < len(y.layers)
	}
	return x.unassigned < y.unassigned
}
