package mesh

import (
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// attempts is how many switches solve grows layouts from, for each number of
// dimensions, when none reaches half of the fabric.
const attempts = 8

// solve finds the best fit of a graph, or nil and the links that stood out
// when none fits: those that join places which are no neighbours.
func solve(g *links) (best *fit, odd []cable) {
	n := g.switches()
	if n == 1 {
		best, _ = newFit(shape{}, nil)
		return best, nil
	}
	if _, most := g.busiest(); most > maxNeighbors {
		return nil, nil
	}
	if g.square == nil {
		g.findSquares()
	}
	if chain, ok := chains(g); ok {
		best, odd = accept(g, chain)
	} else {
		for _, dims := range g.dimensions() {
			l := g.layout(dims)
			l.run()
			found, misfits := l.finish()
			if found != nil && (best == nil || found.better(best)) {
				best = found
			}
			if len(odd) == 0 || len(misfits) < len(odd) {
				odd = misfits
			}
			if best != nil && best.faults() == 0 {
				break
			}
		}
	}
	if n <= searchSwitches && g.crowds == 0 && (best == nil || best.faults() > 0) {
		best = searchShapes(g, best, func(shape) bool { return true })
	}
	if best != nil {
		return best, nil
	}
	return nil, odd
}

// accept checks a fit: every link has to be one between neighbours, no ring
// may be torn, and no more may be missing than mostPositions and mostMissing
// allow.
func accept(g *links, f *fit) (*fit, []cable) {
	if odd := f.check(g); len(odd) > 0 {
		return nil, odd
	}
	if _, odd, torn := f.torn(g); torn {
		return nil, odd
	}
	if f.missing > mostMissing(f.links()) {
		return nil, nil
	}
	return f, nil
}

// dimensions gives the likely numbers of dimensions, the likeliest first: the
// one for which a quarter of the switches have that many links which lead in
// different dimensions, as all have on a whole grid, and the greatest number
// that any switch has.
func (g *links) dimensions() []int {
	var with [maxNeighbors + 1]int // switches by the size of their frame
	for s := range fabric.NodeID(g.switches()) {
		_, size := g.frame(s)
		with[size]++
	}
	var likely []int
	total := 0
	for dims := maxNeighbors; dims > 1; dims-- {
		before := total
		total += with[dims]
		if total > 0 && before == 0 || 4*total >= g.switches() && 4*before < g.switches() {
			if dims <= maxDims {
				likely = append([]int{dims}, likely...)
			}
		}
	}
	return likely
}

// layout grows layouts from the most regular switches, until one places half
// of them, and gives the one that places most.
func (g *links) layout(dims int) *layout {
	type seed struct {
		at      fabric.NodeID
		frame   uint32
		regular int
	}
	var seeds []seed
	for s := range fabric.NodeID(g.switches()) {
		frame, size := g.frame(s)
		if size < dims {
			continue
		}
		regular := 0
		for i := g.start[s]; i < g.start[s+1]; i++ {
			for m := g.square[i]; m != 0; m &= m - 1 {
				regular++
			}
		}
		seeds = append(seeds, seed{s, frame, regular})
	}
	slices.SortStableFunc(seeds, func(a, b seed) int { return b.regular - a.regular })
	var best *layout
	covered := make([]bool, g.switches())
	for tries := 0; len(seeds) > 0 && tries < attempts; seeds = seeds[1:] {
		if covered[seeds[0].at] {
			continue
		}
		tries++
		l := newLayout(g, dims)
		l.seed(seeds[0].at, seeds[0].frame)
		l.grow()
		if best == nil || len(l.order) > len(best.order) {
			best = l
		}
		if 2*len(l.order) >= g.switches() {
			break
		}
		for _, s := range l.order {
			covered[s] = true
		}
	}
	return best
}

// finish makes a fit of a layout, and gives the links that do not fit in it
// when it is none.
func (l *layout) finish() (*fit, []cable) {
	var odd []cable
	for s := range fabric.NodeID(l.g.switches()) {
		for i := l.g.start[s]; i < l.g.start[s+1]; i++ {
			if t := l.g.to[i]; s < t && l.placed[s] && l.placed[t] && l.label[i] == NoDir {
				odd = append(odd, cable{s, t})
			}
		}
	}
	if len(odd) > 0 {
		return nil, odd
	}
	s := shape{make([]int32, l.dims), make([]bool, l.dims)}
	for d := range l.dims {
		s.size[d], s.ring[d] = l.high[d]-l.low[d]+1, l.ring[d] > 0
	}
	switch left := l.g.switches() - len(l.order); {
	case left == 0:
		if f, ok := newFit(s, slices.Clone(l.coord)); ok {
			return accept(l.g, f.finest())
		}
	case left <= leftSwitches && s.positions(mostPositions(l.g.switches())) <= mostPositions(l.g.switches()):
		if f := l.complete(s); f != nil {
			return f.finest(), nil
		}
	}
	return nil, nil
}

// complete searches the places of the switches that have none.
func (l *layout) complete(s shape) *fit {
	steps := searchSteps
	r := newSearch(l.g, s, mostMissing(s.links()), &steps)
	for _, x := range l.order {
		p := 0
		for d, size := range s.size {
			at := l.coord[int(x)*l.dims+d] - l.low[d]
			p = p*int(size) + int(at)
		}
		r.put(x, int32(p))
	}
	r.run()
	return r.best
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
	_, parts := g.parts()
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
	return newFit(shape{[]int32{int32(n)}, []bool{parts == 1 && g.count() == n}}, coord)
}
