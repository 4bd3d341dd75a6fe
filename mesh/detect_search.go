package mesh

import (
	"cmp"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

const (
	// searchSwitches is up to how many switches of a fabric all shapes and all
	// placements are tried when no whole grid was found: in small fabrics a few
	// missing cables can leave nothing regular, or something that is a smaller
	// grid.
	searchSwitches = 64
	// leftSwitches is up to how many switches are searched a place for in a
	// shape that is known.
	leftSwitches = 64
	// searchSteps bounds the switches placed in all searches of a fabric.
	searchSteps = 100_000
)

// search places switches in a shape, so that all links join neighbouring
// positions and the fewest links are missing. It is exhaustive as long as
// there are steps left: switches that have most neighbours with places go
// first, and a branch is left when more links are missing in it than allowed,
// or a switch has more neighbours to come than free positions around it.
type search struct {
	g *links
	shape
	next  []int32         // by position and direction: the position there, -1 past an end
	at    []fabric.NodeID // by position
	spare []int32         // by position: free positions next to it
	pos   []int32         // by switch, -1 for none
	open  []int32         // by switch: neighbours without a position
	left  int             // switches without a position

	missing, allowed int // links
	steps            *int
	best             *fit
}

func newSearch(g *links, s shape, allowed int, steps *int) *search {
	positions, ways := s.positions(maxPositions), 2*len(s.size)
	n := g.switches()
	r := &search{
		g: g, shape: s,
		next: make([]int32, positions*ways), at: make([]fabric.NodeID, positions), spare: make([]int32, positions),
		pos: make([]int32, n), open: make([]int32, n), left: n,
		allowed: allowed, steps: steps,
	}
	step := positions
	for d, size := range s.size {
		block := step
		step /= int(size)
		for p := range positions {
			x := p % block / step
			plus, minus := p+step, p-step
			if x == int(size)-1 {
				plus = p - x*step
			}
			if x == 0 {
				minus = p + (int(size)-1)*step
			}
			if !s.ring[d] && x == int(size)-1 {
				plus = -1
			}
			if !s.ring[d] && x == 0 {
				minus = -1
			}
			r.next[p*ways+2*d], r.next[p*ways+2*d+1] = int32(plus), int32(minus)
			for _, q := range []int{plus, minus} {
				if q >= 0 {
					r.spare[p]++
				}
			}
		}
	}
	for p := range r.at {
		r.at[p] = fabric.NoNode
	}
	for s := range r.pos {
		r.pos[s] = -1
		r.open[s] = int32(len(g.of(fabric.NodeID(s))))
	}
	return r
}

// around gives the positions next to p, -1 where there is none.
func (r *search) around(p int32) []int32 {
	ways := 2 * len(r.size)
	return r.next[int(p)*ways : (int(p)+1)*ways]
}

// put places x at p and says whether that may be; it has to be taken back with
// take in either case.
func (r *search) put(x fabric.NodeID, p int32) bool {
	r.at[p], r.pos[x] = x, p
	r.left--
	linked := 0
	for _, y := range r.g.of(x) {
		r.open[y]--
		if r.pos[y] >= 0 {
			linked++
		}
	}
	fits := r.spare[p] >= r.open[x]
	for _, q := range r.around(p) {
		if q < 0 {
			continue
		}
		r.spare[q]--
		if y := r.at[q]; y != fabric.NoNode {
			r.missing++
			fits = fits && r.spare[q] >= r.open[y]
		}
	}
	r.missing -= linked
	return fits && r.missing <= r.allowed
}

func (r *search) take(x fabric.NodeID) {
	p := r.pos[x]
	for _, q := range r.around(p) {
		if q < 0 {
			continue
		}
		r.spare[q]++
		if r.at[q] != fabric.NoNode {
			r.missing--
		}
	}
	for _, y := range r.g.of(x) {
		r.open[y]++
		if r.pos[y] >= 0 {
			r.missing++
		}
	}
	r.left++
	r.at[p], r.pos[x] = fabric.NoNode, -1
}

// run places the switches that have no place yet, and says whether the search
// is over: nothing better can be found, or there are no steps left.
func (r *search) run() bool {
	if r.left == 0 {
		return r.keep()
	}
	x, near := fabric.NoNode, int32(-1)
	for s := range fabric.NodeID(len(r.pos)) {
		if r.pos[s] >= 0 {
			continue
		}
		degree := int32(len(r.g.of(s)))
		if k := degree - r.open[s]; k > near || k == near && degree > int32(len(r.g.of(x))) {
			x, near = s, k
		}
	}
	for _, p := range r.candidates(x, near > 0) {
		if *r.steps <= 0 {
			return true
		}
		*r.steps--
		over := r.put(x, p) && r.run()
		r.take(x)
		if over {
			return true
		}
	}
	return false
}

// candidates gives the free positions that are next to all neighbours of x
// that have positions, the one with the most neighbours there first.
func (r *search) candidates(x fabric.NodeID, near bool) []int32 {
	var free []int32
	if !near {
		for p, s := range r.at {
			if s == fabric.NoNode && (r.left < len(r.pos) || r.first(int32(p))) {
				free = append(free, int32(p))
			}
		}
		return free
	}
	first := true
	for _, y := range r.g.of(x) {
		if r.pos[y] < 0 {
			continue
		}
		around := r.around(r.pos[y])
		if first {
			for _, p := range around {
				if p >= 0 && r.at[p] == fabric.NoNode {
					free = append(free, p)
				}
			}
			first = false
			continue
		}
		free = slices.DeleteFunc(free, func(p int32) bool { return !slices.Contains(around, p) })
	}
	slices.Sort(free)
	slices.SortStableFunc(free, func(p, q int32) int { return int(r.occupied(p)) - int(r.occupied(q)) })
	return free
}

// occupied counts the switches around a position.
func (r *search) occupied(p int32) int32 {
	n := int32(0)
	for _, q := range r.around(p) {
		if q >= 0 && r.at[q] != fabric.NoNode {
			n++
		}
	}
	return n
}

// first says whether the first switch may go to p: others are mirror images
// of these.
func (r *search) first(p int32) bool {
	rest := int(p)
	for d := len(r.size) - 1; d >= 0; d-- {
		size := int(r.size[d])
		x := rest % size
		rest /= size
		if x > (size-1)/2 || r.ring[d] && x > 0 {
			return false
		}
	}
	return true
}

// keep takes a complete placement, unless accept refuses it.
func (r *search) keep() bool {
	dims := len(r.size)
	coord := make([]int32, len(r.pos)*dims)
	for s, p := range r.pos {
		rest := p
		for d := dims - 1; d >= 0; d-- {
			coord[s*dims+d] = rest % r.size[d]
			rest /= r.size[d]
		}
	}
	f, ok := newFit(shape{slices.Clone(r.size), slices.Clone(r.ring)}, coord)
	if !ok || !slices.Equal(f.size, r.size) {
		return false
	}
	if f, _ = accept(r.g, f); f == nil {
		return false
	}
	r.best = f
	r.allowed = f.missing - 1
	return f.missing == 0 || f.absent == 0 // the number of missing links is given
}

// searchShapes looks for a better fit than best, which may be nil, in all
// shapes that suit, until it has placed steps switches.
func searchShapes(g *links, best *fit, steps int, suits func(shape) bool) *fit {
	type option struct {
		shape
		positions, least int // least is how many links are missing at least
	}
	n, count := g.switches(), g.count()
	_, most := g.busiest()
	var options []option
	for positions := n; positions <= mostPositions(n); positions++ {
		eachShape(positions, func(s shape) {
			ways := 0
			for d, size := range s.size {
				if ways++; s.ring[d] || size > 2 {
					ways++
				}
			}
			absent, links := positions-n, s.links()
			least := max(0, links-count-absent*ways)
			if ways < most || links < count || least > s.mostMissing(n) || !suits(s) {
				return
			}
			options = append(options, option{s, positions, least})
		})
	}
	slices.SortStableFunc(options, func(a, b option) int {
		return cmp.Or(a.positions-b.positions, a.least-b.least, len(a.size)-len(b.size), a.rings()-b.rings())
	})
	for _, o := range options {
		allowed := o.mostMissing(n)
		if best != nil {
			if o.positions > len(best.at) {
				break
			}
			if o.positions == len(best.at) {
				allowed = best.missing
				if cmp.Or(len(o.size)-len(best.size), o.rings()-best.rings()) >= 0 {
					allowed--
				}
			}
		}
		if o.least > allowed {
			continue
		}
		r := newSearch(g, o.shape, allowed, &steps)
		r.run()
		if r.best != nil {
			best = r.best
		}
	}
	return best
}

// eachShape visits the shapes of so many positions: products of sizes, the
// greatest first, each a ring or not.
func eachShape(positions int, visit func(shape)) {
	var s shape
	var split func(rest, size int, ring bool)
	split = func(rest, size int, ring bool) {
		if rest == 1 {
			visit(shape{slices.Clone(s.size), slices.Clone(s.ring)})
			return
		}
		if len(s.size) == maxDims {
			return
		}
		for k := min(rest, size); k >= 2; k-- {
			if rest%k != 0 {
				continue
			}
			for _, wrap := range []bool{true, false} {
				if wrap && (k < 3 || k == 4 || k == size && !ring) {
					continue
				}
				s.size, s.ring = append(s.size, int32(k)), append(s.ring, wrap)
				split(rest/k, k, wrap)
				s.size, s.ring = s.size[:len(s.size)-1], s.ring[:len(s.ring)-1]
			}
		}
	}
	split(positions, positions, true)
}

// reads says whether the dimensions of s have these sizes, in any order, when
// some pairs of size 2 are taken for rings of four.
func (s shape) reads(dims []int) bool {
	count := make(map[int]int)
	for _, size := range dims {
		count[size]++
	}
	delete(count, 1)
	for _, size := range s.size {
		count[int(size)]--
	}
	fours := max(count[4], 0)
	count[4] -= fours
	count[2] += 2 * fours
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}
