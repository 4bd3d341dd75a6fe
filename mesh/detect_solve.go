package mesh

import (
	"math"
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// attempts is how many switches a layout is grown from until one reaches half
// of the fabric.
const attempts = 8

// effort is how much solve tries.
type effort struct {
	// layouts grown for each number of dimensions, until one fits: where
	// switches are missing next to missing cables, what is most likely can be
	// wrong.
	layouts int
	steps   int // switches placed in the exhaustive search
}

var (
	thorough = effort{layouts: 4, steps: searchSteps}
	quick    = effort{layouts: 1, steps: 4_000}
)

// trouble is what stood out when nothing fits a graph.
type trouble struct {
	odd  []cable       // links that join places which are no neighbours
	left int           // switches without a place
	lone fabric.NodeID // the first of them with a neighbour that has one
	over *fit          // has a place for all links, but more is missing than mostMissing
	wide shape         // likewise, but with more positions than mostPositions
	long int32         // a dimension longer than a Grid can have
}

// solve finds the best fit of a graph, or nil.
func solve(g *links, e effort) (best *fit, why trouble) {
	n := g.switches()
	if n == 1 {
		best, _ = newFit(shape{}, nil)
		return best, why
	}
	if _, most := g.busiest(); most > maxNeighbors {
		return nil, why
	}
	if g.square == nil {
		g.findSquares()
	}
	if _, most := g.busiest(); g.crowds > 4*most {
		return nil, why // more than a few odd cables make
	}
	if chain, ok := chains(g); ok {
		best, why = accept(g, chain)
	} else if dims := g.dimensions(); dims > 1 && dims <= maxDims {
		best, why = g.place(dims, e.layouts)
	}
	if n <= searchSwitches && g.crowds == 0 && (best == nil || best.faults() > 0) {
		best = searchShapes(g, best, e.steps, func(shape) bool { return true })
	}
	return best, why
}

// place grows layouts in so many dimensions until one fits, or gives what stood
// out in the best of them.
func (g *links) place(dims, layouts int) (found *fit, why trouble) {
	seeds := g.seeds(dims)
	for seen := range layouts {
		if len(seeds) == 0 {
			break
		}
		l := g.layout(dims, seeds)
		l.run()
		var t trouble
		if found, t = l.finish(); found != nil {
			return found, trouble{}
		}
		if seen == 0 || t.left+len(t.odd) < why.left+len(why.odd) {
			why = t
		}
		seeds = seeds[min(len(seeds), 1+len(seeds)/layouts):]
	}
	return nil, why
}

// accept checks a fit: every link has to be one between neighbours, no ring
// may be torn, and no more may be missing than mostMissing allows.
func accept(g *links, f *fit) (*fit, trouble) {
	for _, size := range f.size {
		if size > math.MaxInt16 {
			return nil, trouble{long: size}
		}
	}
	if odd := f.check(g); len(odd) > 0 {
		return nil, trouble{odd: odd}
	}
	if odd, torn := f.torn(g); torn {
		return nil, trouble{odd: odd}
	}
	if f.missing > f.mostMissing(g.switches()) {
		return nil, trouble{over: f}
	}
	return f, trouble{}
}

// dimensions is the greatest number of links of a switch that lead in different
// dimensions. On a whole grid, all switches have as many.
func (g *links) dimensions() int {
	dims := 0
	for s := range fabric.NodeID(g.switches()) {
		_, size := g.frame(s)
		dims = max(dims, size)
	}
	return dims
}

// seed is a switch that a layout may be grown from.
type seed struct {
	at      fabric.NodeID
	frame   uint32
	regular int // pairs of its links on a cycle of four
}

// seeds are the switches with links in so many dimensions, the most regular
// first.
func (g *links) seeds(dims int) []seed {
	var seeds []seed
	for s := range fabric.NodeID(g.switches()) {
		frame, size := g.frame(s)
		if size < dims {
			continue
		}
		regular := 0
		for _, fellows := range g.square[g.start[s]:g.start[s+1]] {
			regular += bits.OnesCount32(fellows)
		}
		seeds = append(seeds, seed{s, frame, regular})
	}
	slices.SortStableFunc(seeds, func(a, b seed) int { return b.regular - a.regular })
	return seeds
}

// layout grows layouts from the first of the seeds, until one places half of
// the switches, and gives the one that places most.
func (g *links) layout(dims int, seeds []seed) *layout {
	var best *layout
	covered := make([]bool, g.switches())
	tries := 0
	for _, s := range seeds {
		if covered[s.at] {
			continue
		}
		l := newLayout(g, dims)
		l.seed(s.at, s.frame)
		l.grow()
		if best == nil || len(l.order) > len(best.order) {
			best = l
		}
		if tries++; tries == attempts || 2*len(l.order) >= g.switches() {
			break
		}
		for _, s := range l.order {
			covered[s] = true
		}
	}
	return best
}

// finish makes a fit of a layout, or says what stands in the way.
func (l *layout) finish() (*fit, trouble) {
	var odd []cable
	for _, s := range l.order {
		for i := l.g.start[s]; i < l.g.start[s+1]; i++ {
			if t := l.g.to[i]; s < t && l.placed[t] && l.label[i] == NoDir {
				odd = append(odd, cable{s, t})
			}
		}
	}
	if len(odd) > 0 {
		return nil, l.trouble(odd)
	}
	switch s := l.shape(); {
	case s.positions(mostPositions(l.g.switches())) > mostPositions(l.g.switches()):
		if len(l.order) == l.g.switches() {
			return nil, trouble{wide: s}
		}
	case len(l.order) == l.g.switches():
		if f, ok := newFit(s, slices.Clone(l.coord)); ok {
			return accept(l.g, f.finest())
		}
	default:
		return l.complete(), l.trouble(nil)
	}
	return nil, l.trouble(nil)
}

// trouble is what does not fit or has no place.
func (l *layout) trouble(odd []cable) trouble {
	t := trouble{odd: odd, left: l.g.switches() - len(l.order), lone: fabric.NoNode}
	for s := range fabric.NodeID(l.g.switches()) {
		if !l.placed[s] && l.open[s] < l.g.degree(s) {
			t.lone = s
			break
		}
	}
	return t
}

// shape is the extent of what has places.
func (l *layout) shape() shape {
	s := shape{make([]int32, l.dims), make([]bool, l.dims)}
	for d := range l.dims {
		s.size[d], s.ring[d] = l.high[d]-l.low[d]+1, l.ring[d] > 0
	}
	return s
}

// complete searches places for the switches that have none, unless these are
// many.
func (l *layout) complete() *fit {
	s, most := l.shape(), mostPositions(l.g.switches())
	if left := l.g.switches() - len(l.order); left > leftSwitches || left == l.g.switches() || s.positions(most) > most || s.positions(most) < l.g.switches() {
		return nil
	}
	steps := searchSteps
	r := newSearch(l.g, s, s.mostMissing(l.g.switches()), &steps)
	for _, x := range l.order {
		p := 0
		for d, size := range s.size {
			p = p*int(size) + int(l.coord[int(x)*l.dims+d]-l.low[d])
		}
		r.put(x, int32(p))
	}
	if r.missing > r.allowed {
		return nil
	}
	r.run()
	if r.best == nil {
		return nil
	}
	return r.best.finest()
}

// ringOfFour is the coordinates of the four positions of a ring in two
// dimensions of size 2.
var ringOfFour = [4][2]int32{{0, 0}, {1, 0}, {1, 1}, {0, 1}}

// finest makes two dimensions of every ring of four.
func (f *fit) finest() *fit {
	for d, size := range f.size {
		if !f.ring[d] || size != 4 {
			continue
		}
		dims := len(f.size)
		s := shape{slices.Clone(f.size), slices.Clone(f.ring)}
		s.size[d], s.ring[d] = 2, false
		s.size, s.ring = append(s.size, 2), append(s.ring, false)
		coord := make([]int32, 0, len(f.coord)/dims*(dims+1))
		for i := 0; i < len(f.coord); i += dims {
			at := f.coord[i : i+dims]
			bits := ringOfFour[at[d]]
			coord = append(append(append(append(coord, at[:d]...), bits[0]), at[d+1:]...), bits[1])
		}
		finer, _ := newFit(s, coord)
		return finer.finest()
	}
	return f
}

// chains fits a graph in which no switch has more than two neighbours, and
// which is no square, as one dimension: a ring, or a line of all its parts in
// the order of their lowest switches, each with its lower end first.
func chains(g *links) (*fit, bool) {
	n := g.switches()
	if _, most := g.busiest(); most > 2 {
		return nil, false
	}
	for _, square := range g.square {
		if square != 0 {
			return nil, false
		}
	}
	coord := make([]int32, n)
	seen := make([]bool, n)
	place := int32(0)
	walk := func(s fabric.NodeID) {
		for ok := true; ok; {
			coord[s], seen[s] = place, true
			place++
			ok = false
			for _, t := range g.of(s) {
				if !seen[t] {
					s, ok = t, true
					break
				}
			}
		}
	}
	for s := range fabric.NodeID(n) {
		if !seen[s] && len(g.of(s)) < 2 {
			walk(s)
		}
	}
	if place == 0 {
		walk(0)
	}
	if int(place) < n {
		return nil, false // a ring and more
	}
	return newFit(shape{[]int32{int32(n)}, []bool{g.count() == n}}, coord)
}
