package layered

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/updown"
)

// packing is the layers of all turns, of which the first has all turns that the
// order of the switches allows.
type packing struct {
	set    []uint16 // by turn: a bit for each layer that has it
	layers int
	left   uint64 // pairs that no layer has
	final  []*layer
}

// trial is a way to pack.
type trial struct {
	ordered bool   // the layer with the order of the switches comes first, not last
	seed    uint64 // varies the weights unless it is 0
}

// upDown is the turns of the order of the switches: the channels in an order in which all
// of them rise, and which turns they are.
type upDown struct {
	order []int32 // channels
	legal []bool  // by turn
}

// newUpDown: a packet goes up to switches with lower ranks, then down.
func newUpDown(t *turns, o *updown.Order) *upDown {
	n := int32(len(o.Rank))
	key := make([]int32, len(t.to))
	x := &upDown{order: make([]int32, len(t.to)), legal: make([]bool, t.count())}
	up := func(c int32) bool { return o.Rank[t.to[c]] < o.Rank[t.from[c]] }
	for c := range int32(len(t.to)) {
		x.order[c] = c
		if key[c] = n + o.Rank[t.to[c]]; up(c) {
			key[c] = n - o.Rank[t.to[c]]
		}
		for e := t.turn[c]; e < t.turn[c+1]; e++ {
			d := t.first[t.to[c]] + e - t.turn[c]
			x.legal[e] = (up(c) || !up(d)) && t.to[d] != t.from[c]
		}
	}
	slices.SortStableFunc(x.order, func(a, b int32) int { return int(key[a] - key[b]) })
	return x
}

// seedLayer begins a layer with all turns of the order.
func (x *upDown) seedLayer(l *layer) {
	for e, ok := range x.legal {
		if ok {
			l.set[e] |= l.bit
		}
	}
}

// packer packs paths into layers.
type packer struct {
	*paths
	updn    *upDown
	opt     lft.Options // for updn, that it takes the same order
	instead *lft.Tables // of updn, once they are wanted
}

// heaviest lists the turns with a weight, the heaviest first.
func heaviest(weight []uint32, seed uint64) []int32 {
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
		switch {
		case key[a] > key[b]:
			return -1
		case key[a] < key[b]:
			return 1
		}
		return int(a - b)
	})
	return list
}

// fill packs as many of the paths that no layer of done has as it can.
func (p *packer) fill(ctx context.Context, l *layer, weight []uint32, done uint16, seed uint64, seeded bool, workers int) {
	for _, e := range heaviest(weight, seed) {
		c, d := p.ends(e)
		l.add(e, c, d)
	}
	used, _ := p.weights(ctx, l.set, done, l.bit, workers)
	for e := range used {
		if used[e] == 0 && l.has(int32(e)) && !(seeded && p.updn.legal[e]) {
			l.remove(int32(e))
		}
	}
	p.squeeze(ctx, l, done, false)
}

// squeeze puts path after path into the layer, as long as they fit: of those that no
// layer of done has, and from switches with hosts, or from those without as well.
func (p *packer) squeeze(ctx context.Context, l *layer, done uint16, idle bool) (left uint64) {
	w := p.newWalker()
	refused := make([]bool, p.count())
	var added []int32
	for i := range p.jobs {
		if ctx.Err() != nil {
			return left
		}
		j := &p.jobs[i]
		w.load(j, l.set, done|l.bit)
		for _, s := range slices.Backward(w.order) {
			if p.hosts[s] == 0 && !idle {
				continue
			}
			for k, lid := range j.lids {
				if w.legal[int(s)*blockLIDs+k] != 0 || p.fixed[lid] {
					continue
				}
				if !w.enter(l, s, j.t, k, refused, &added) {
					left += uint64(max(1, p.hosts[s]))
				}
			}
		}
	}
	return left
}

// enter puts the path of a switch to the k-th LID of t into the layer, or leaves the layer as it is.
func (w *walker) enter(l *layer, s, t fabric.NodeID, k int, refused []bool, added *[]int32) bool {
	*added = (*added)[:0]
	for c := w.next[int(s)*blockLIDs+k]; w.to[c] != int32(t); {
		d := w.next[int(w.to[c])*blockLIDs+k]
		e := w.of(c, d)
		if refused[e] {
			w.undo(l, *added)
			return false
		}
		if !l.has(e) {
			if !l.add(e, c, d) {
				refused[e] = len(*added) == 0
				w.undo(l, *added)
				return false
			}
			*added = append(*added, e)
		}
		c = d
	}
	return true
}

func (w *walker) undo(l *layer, added []int32) {
	for _, e := range added {
		l.remove(e)
	}
}

// pack tries one way, with at most so many layers.
func (p *packer) pack(ctx context.Context, t trial, limit, workers int) *packing {
	x := &packing{set: make([]uint16, p.count())}
	ordered := -1 // the layer with the order
	for ctx.Err() == nil {
		k := x.layers
		done := uint16(1)<<k - 1
		weight, left := p.weights(ctx, x.set, done, 0, workers)
		if x.left = left; left == 0 && ordered >= 0 || k == limit {
			break
		}
		l := newLayer(p.turns, x.set, k, p.updn.order, searchWork)
		if ordered < 0 && (t.ordered || k == limit-1 || left == 0) {
			p.updn.seedLayer(l)
			ordered = k
			p.fill(ctx, l, weight, done, t.seed, true, workers)
		} else {
			if ordered < 0 {
				// Perhaps all that is left fits in with the order.
				p.updn.seedLayer(l)
				if p.squeeze(ctx, l, done, false) == 0 {
					ordered = k
					x.final = append(x.final, l)
					x.layers++
					continue
				}
				for e := range x.set {
					l.remove(int32(e))
				}
				l = newLayer(p.turns, x.set, k, p.updn.order, searchWork)
			}
			p.fill(ctx, l, weight, done, t.seed, false, workers)
		}
		x.final = append(x.final, l)
		x.layers++
	}
	if ordered > 0 {
		x.swap(0, ordered)
	}
	return x
}

// swap changes the numbers of two layers.
func (x *packing) swap(a, b int) {
	for e, set := range x.set {
		if set>>a&1 != set>>b&1 {
			x.set[e] = set ^ 1<<a ^ 1<<b
		}
	}
	x.final[a], x.final[b] = x.final[b], x.final[a]
	x.final[a].bit, x.final[b].bit = x.final[b].bit, x.final[a].bit
}

// better says whether x is to be preferred to y.
func (x *packing) better(y *packing) bool {
	if (x.left == 0) != (y.left == 0) {
		return x.left == 0
	}
	if x.layers != y.layers {
		return x.layers < y.layers
	}
	return x.left < y.left
}
