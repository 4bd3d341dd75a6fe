package mesh

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
)

const (
	// searchSwitches is the greatest number of switches of a fabric for which
	// all shapes and placements are tried if no whole grid was found: in small
	// fabrics a few missing cables can leave nothing regular, or a smaller grid.
	searchSwitches = 64
	// searchSteps bounds the switches placed in all searches of a fabric.
	searchSteps = 100_000
)

// search places switches in a shape so that all links join neighbouring
// positions and the fewest links are missing. It tries everything until it has
// no steps left. Switches with most placed neighbours come first. It gives up a
// branch if more links are missing than allowed, or if a switch has more
// neighbours to come than free positions around it.
type search struct {
	g *links
	Shape
	around   [][]int         // by position: its neighbours
	at       []fabric.NodeID // by position
	position []int           // by switch, -1 for none
	open     []int           // by switch: neighbours without a position
	left     int             // switches without a position

	missing, allowed int // links
	steps            *int
	best             *fit
}

func newSearch(g *links, s Shape, allowed int, steps *int) *search {
	n := g.switches()
	r := &search{
		g: g, Shape: s, around: make([][]int, s.Positions()), at: slices.Repeat([]fabric.NodeID{fabric.NoNode}, s.Positions()),
		position: slices.Repeat([]int{-1}, n), open: make([]int, n), left: n, allowed: allowed, steps: steps,
	}
	for p := range r.around {
		for d := range Dir(2 * len(s.Dims)) {
			if q := s.Next(p, d); q >= 0 {
				r.around[p] = append(r.around[p], q)
			}
		}
	}
	for s := range r.open {
		r.open[s] = len(g.of(fabric.NodeID(s)))
	}
	return r
}

// spare counts the free positions next to p.
func (r *search) spare(p int) int {
	return text.CountIf(r.around[p], func(q int) bool { return r.at[q] == fabric.NoNode })
}

// fits returns true if there is room around p for the neighbours that its switch
// still lacks.
func (r *search) fits(p int) bool { return r.at[p] == fabric.NoNode || r.spare(p) >= r.open[r.at[p]] }

// put places x at p, which is free and next to all placed neighbours of x. It
// returns false if that is not allowed. The caller must undo it in either case.
func (r *search) put(x fabric.NodeID, p int) bool {
	r.at[p], r.position[x] = x, p
	r.move(x, 1)
	return r.missing <= r.allowed && r.fits(p) && !slices.ContainsFunc(r.around[p], func(q int) bool { return !r.fits(q) })
}

// move updates the counts after x was placed (sign 1), or before it is
// removed (-1): left, open of x's neighbours, and missing, to which each
// placed switch next to x without a link to it adds 1.
func (r *search) move(x fabric.NodeID, sign int) {
	r.left -= sign
	for _, y := range r.g.of(x) {
		r.open[y] -= sign
		if r.position[y] >= 0 {
			r.missing -= sign
		}
	}
	p := r.position[x]
	r.missing += sign * (len(r.around[p]) - r.spare(p))
}

// run places the switches without a place. It returns true if the search is
// over: nothing better can be found, or no steps are left.
func (r *search) run() bool {
	if r.left == 0 {
		return r.keep()
	}
	x, near := fabric.NoNode, -1
	for s := range fabric.NodeID(len(r.position)) {
		if r.position[s] >= 0 {
			continue
		}
		degree := len(r.g.of(s))
		if k := degree - r.open[s]; k > near || k == near && degree > len(r.g.of(x)) {
			x, near = s, k
		}
	}
	for _, p := range r.candidates(x) {
		if *r.steps <= 0 {
			return true
		}
		*r.steps--
		over := r.put(x, p) && r.run()
		r.move(x, -1)
		r.at[p], r.position[x] = fabric.NoNode, -1
		if over {
			return true
		}
	}
	return false
}

// candidates returns the free positions that are next to all placed neighbours
// of x, those with the fewest switches around first.
func (r *search) candidates(x fabric.NodeID) []int {
	placed := text.Where(r.g.of(x), func(y fabric.NodeID) bool { return r.position[y] >= 0 })
	if len(placed) == 0 {
		var free []int
		for p, s := range r.at {
			if s == fabric.NoNode {
				free = append(free, p)
			}
		}
		return free
	}
	free := text.Where(r.around[r.position[placed[0]]], func(p int) bool {
		return r.at[p] == fabric.NoNode && !slices.ContainsFunc(placed, func(y fabric.NodeID) bool { return !slices.Contains(r.around[r.position[y]], p) })
	})
	slices.SortFunc(free, func(p, q int) int {
		return cmp.Or(len(r.around[p])-r.spare(p)-len(r.around[q])+r.spare(q), p-q)
	})
	return free
}

// keep records a complete placement as the best if it reaches all ends of the
// shape and accept agrees. It returns true if nothing can be better.
func (r *search) keep() bool {
	for d, size := range r.Dims {
		at := func(x int) bool {
			return slices.ContainsFunc(r.position, func(p int) bool { return r.coord(p, d) == x })
		}
		if !r.Wrap[d] && !(at(0) && at(size-1)) {
			return false
		}
	}
	f, _ := newFit(r.Dims, r.Wrap, slices.Clone(r.position))
	if f, _ = accept(r.g, f); f == nil {
		return false
	}
	r.best = f
	r.allowed = f.missing - 1
	return f.missing == 0 || f.absent() == 0 // no placement can be better
}

// searchShapes looks for a better fit than best, which may be nil, in all shapes
// that suit, until it has placed steps switches.
func searchShapes(g *links, best *fit, steps int, suits func(Shape) bool) *fit {
	type option struct {
		Shape
		positions, least int // least: how many links are missing at least
	}
	n, count := g.switches(), g.count()
	_, most := g.busiest()
	var options []option
	for positions := n; positions <= mostPositions(n); positions++ {
		for _, s := range appendShapes(nil, nil, nil, positions) {
			dirs := 0 // greatest number of neighbours of a position
			for _, size := range s.Dims {
				dirs += min(size-1, 2)
			}
			links := s.links()
			least := max(0, links-count-(positions-n)*dirs)
			if dirs >= most && links >= count && least <= s.mostMissing(n) && suits(s) {
				options = append(options, option{s, positions, least})
			}
		}
	}
	slices.SortStableFunc(options, func(a, b option) int {
		return cmp.Or(a.positions-b.positions, a.least-b.least, len(a.Dims)-len(b.Dims), a.rings()-b.rings())
	})
	for _, o := range options {
		allowed := o.mostMissing(n)
		if best != nil {
			if o.positions > len(best.at) {
				break
			}
			if o.positions == len(best.at) {
				allowed = best.missing
				if cmp.Or(len(o.Dims)-len(best.Dims), o.rings()-best.rings()) >= 0 {
					allowed--
				}
			}
		}
		if o.least > allowed {
			continue
		}
		r := newSearch(g, o.Shape, allowed, &steps)
		r.run()
		if r.best != nil {
			best = r.best
		}
	}
	return best
}

// appendShapes appends the shapes that start with dims and wrap, and have rest
// times as many positions. No further dimension is longer than the one before.
func appendShapes(list []Shape, dims []int, wrap []bool, rest int) []Shape {
	if rest == 1 {
		return append(list, newShape(slices.Clone(dims), slices.Clone(wrap)))
	}
	longest, rings := rest, true
	if last := len(dims) - 1; last >= 0 {
		longest, rings = min(rest, dims[last]), wrap[last]
	}
	for size := longest; size >= 2 && len(dims) < maxDims; size-- {
		if rest%size != 0 {
			continue
		}
		again := len(dims) > 0 && size == dims[len(dims)-1]
		if size >= 3 && size != 4 && (rings || !again) {
			list = appendShapes(list, append(dims, size), append(wrap, true), rest/size)
		}
		list = appendShapes(list, append(dims, size), append(wrap, false), rest/size)
	}
	return list
}

// reads returns true if the dimensions of s have these sizes, in any order, with
// some pairs of size 2 read as rings of four.
func (s Shape) reads(dims []int) bool {
	count := make(map[int]int)
	for _, size := range dims {
		count[size]++
	}
	delete(count, 1)
	for _, size := range s.Dims {
		count[size]--
	}
	fours := max(count[4], 0)
	count[4] -= fours
	count[2] += 2 * fours
	maps.DeleteFunc(count, func(_, n int) bool { return n == 0 })
	return len(count) == 0
}
