package mesh

import (
	"math"
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// place is coordinates in a layout; those of dimensions that it does not have are 0.
type place [maxDims]int32

// layout places the switches of a graph in a space of several dimensions,
// which have no ends, and are rings where closeRing found them to be.
//
// It grows from one switch by conclusions that hold whatever is missing, as
// long as no cable is where none belongs (placeSure), and goes on with the most
// likely place of a switch (placeLikely) where there is no such conclusion.
type layout struct {
	g         *links
	dims      int
	ring      place  // positions along a dimension that is a ring, else 0
	placed    []bool // by switch
	order     []fabric.NodeID
	done      int // how many of order were looked at by placeSure
	at        []place
	who       map[place]fabric.NodeID
	open      []int32 // by switch: neighbours without a place
	label     []Dir   // by slot, NoDir where an end has no place or the link does not fit
	odd       int     // links that do not fit
	low, high place   // of all coordinates
}

// growLayout grows a layout in dims dimensions from the most regular switch, and
// makes a fit of it, or says what stands in the way.
func growLayout(g *links, dims int) (*fit, trouble) {
	n := g.switches()
	l := &layout{
		g: g, dims: dims,
		placed: make([]bool, n), at: make([]place, n), who: make(map[place]fabric.NodeID, n),
		open: make([]int32, n), label: slices.Repeat([]Dir{NoDir}, len(g.to)),
	}
	for s := range n {
		l.open[s] = int32(len(g.of(fabric.NodeID(s))))
	}
	seed, links := g.seed(dims)
	l.put(seed, place{})
	for d := range dims { // the links that lead in different dimensions
		l.put(g.of(seed)[bits.TrailingZeros32(links)], l.step(place{}, Plus(d)))
		links &= links - 1
	}
	l.placeAll()
	return l.makeFit()
}

// placeAll places as many switches as it can, but stops when far too much does not fit.
func (l *layout) placeAll() {
	for {
		l.placeSure()
		if l.closeRing() {
			continue
		}
		if l.odd > 64+l.g.count()/16 || !l.placeLikely() {
			return
		}
	}
}

// step is the place next to another one.
func (l *layout) step(p place, d Dir) place {
	x := &p[d.Dim()]
	if *x++; !d.Positive() {
		*x -= 2
	}
	if m := l.ring[d.Dim()]; m > 0 {
		*x = (*x + m) % m
	}
	return p
}

// direction is that from switch x to switch y, NoDir when they are not next to
// each other.
func (l *layout) direction(x, y fabric.NodeID) Dir {
	for d := range Dir(2 * l.dims) {
		if l.step(l.at[x], d) == l.at[y] {
			return d
		}
	}
	return NoDir
}

// put gives switch x a place.
func (l *layout) put(x fabric.NodeID, p place) {
	l.placed[x] = true
	l.order = append(l.order, x)
	l.at[x] = p
	l.who[p] = x
	for d, c := range p {
		l.low[d], l.high[d] = min(l.low[d], c), max(l.high[d], c)
	}
	for _, y := range l.g.of(x) {
		l.open[y]--
	}
	l.labelLinks(x, func(y fabric.NodeID) bool { return l.placed[y] })
}

// labelLinks gives the links from x, which is placed, to some others their directions.
func (l *layout) labelLinks(x fabric.NodeID, to func(fabric.NodeID) bool) {
	for i := l.g.start[x]; i < l.g.start[x+1]; i++ {
		y := l.g.to[i]
		if !to(y) {
			continue
		}
		l.label[i], l.label[l.g.back[i]] = NoDir, NoDir
		if d := l.direction(x, y); d != NoDir {
			l.label[i], l.label[l.g.back[i]] = d, d.Opposite()
		} else {
			l.odd++
		}
	}
}

// placeSure places every switch of which the place is sure.
func (l *layout) placeSure() {
	for ; l.done < len(l.order); l.done++ {
		w := l.order[l.done]
		l.placeAround(w)
		for _, u := range l.g.of(w) {
			if l.placed[u] {
				l.placeAround(u)
			}
		}
	}
}

func (l *layout) placeAround(u fabric.NodeID) {
	if l.open[u] == 0 {
		return
	}
	for i := l.g.start[u]; i < l.g.start[u+1]; i++ {
		if x := l.g.to[i]; !l.placed[x] {
			if d := l.sure(u, i); d != NoDir {
				l.put(x, l.step(l.at[u], d))
			}
		}
	}
}

// sure is the direction in which slot i of the placed switch u must lead to a
// switch x without a place, or NoDir. Where x, u and two more make a cycle of
// four links, and all but x have places, x is at the fourth corner. And a
// link on such a cycle with another leads in another dimension than that one:
// when all dimensions but one are excluded and the neighbour in one of its
// two directions is known, the link leads in the other one.
func (l *layout) sure(u fabric.NodeID, i int32) Dir {
	g := l.g
	x := g.to[i]
	others := uint32(1)<<l.dims - 1
	for fellows := g.square[i]; fellows != 0; fellows &= fellows - 1 {
		j := g.start[u] + int32(bits.TrailingZeros32(fellows))
		if l.label[j] == NoDir {
			continue
		}
		others &^= 1 << l.label[j].Dim()
		y := g.to[j]
		for k := g.start[y]; k < g.start[y+1]; k++ {
			if d := l.label[k]; d != NoDir && g.to[k] != u && g.linked(x, g.to[k]) && l.free(u, d) {
				return d
			}
		}
	}
	if others == 0 || others&(others-1) != 0 {
		return NoDir
	}
	dim := bits.TrailingZeros32(others)
	plus, minus := l.free(u, Plus(dim)), l.free(u, Minus(dim))
	switch {
	case plus && !minus:
		return Plus(dim)
	case minus && !plus:
		return Minus(dim)
	}
	return NoDir
}

// free says whether no switch is at the position that d leads to from u.
func (l *layout) free(u fabric.NodeID, d Dir) bool {
	_, occupied := l.who[l.step(l.at[u], d)]
	return !occupied
}

// closeRing looks for a dimension that is a ring, because links lead from one
// end of it to the other. It wraps the coordinates, and says whether it found
// one.
func (l *layout) closeRing() bool {
	if l.odd == 0 {
		return false
	}
	var votes [maxDims]map[int32]int // by dimension and size
	for _, s := range l.order {
		for i := l.g.start[s]; i < l.g.start[s+1]; i++ {
			t := l.g.to[i]
			if t < s || !l.placed[t] || l.label[i] != NoDir {
				continue
			}
			if d, size := l.ringOf(s, t); d >= 0 {
				if votes[d] == nil {
					votes[d] = make(map[int32]int)
				}
				votes[d][size]++
			}
		}
	}
	for d := range l.dims {
		best := int32(0)
		for size, n := range votes[d] {
			if n > votes[d][best] || n == votes[d][best] && size > best {
				best = size
			}
		}
		if best > 0 && l.wrap(d, best) {
			return true
		}
	}
	return false
}

// ringOf is the dimension that is a ring when the link between s and t closes
// one, and its size then. It is negative when they differ in several
// coordinates or along a ring.
func (l *layout) ringOf(s, t fabric.NodeID) (dim int, size int32) {
	dim = -1
	for d := range l.dims {
		diff := l.at[t][d] - l.at[s][d]
		if diff == 0 {
			continue
		}
		if dim >= 0 || l.ring[d] > 0 {
			return -1, 0
		}
		dim, size = d, max(diff, -diff)+1
	}
	return dim, size
}

// wrap makes a ring of dimension d, unless two switches would meet.
func (l *layout) wrap(d int, size int32) bool {
	at, who := slices.Clone(l.at), make(map[place]fabric.NodeID, len(l.order))
	for _, s := range l.order {
		at[s][d] = (at[s][d]%size + size) % size
		who[at[s]] = s
	}
	if len(who) < len(l.order) {
		return false
	}
	l.at, l.who, l.ring[d] = at, who, size
	l.low[d], l.high[d] = 0, size-1
	l.odd, l.done = 0, 0
	for _, s := range l.order {
		l.labelLinks(s, func(t fabric.NodeID) bool { return s < t && l.placed[t] })
	}
	return true
}

// placeLikely places switches that have neighbours with places: all those for which
// one place alone is free next to all of these, else the one whose place is likelier
// than its second by far. It returns whether it placed any.
func (l *layout) placeLikely() bool {
	before := len(l.order)
	best, where, margin := fabric.NoNode, place{}, -1.0
	for x := range fabric.NodeID(len(l.placed)) {
		if l.placed[x] || int(l.open[x]) == len(l.g.of(x)) {
			continue
		}
		var places []place
		var costs []float64
		near := slices.IndexFunc(l.g.of(x), func(u fabric.NodeID) bool { return l.placed[u] })
		for d := range Dir(2 * l.dims) {
			p := l.step(l.at[l.g.of(x)[near]], d)
			if cost, ok := l.cost(x, p); ok {
				i, _ := slices.BinarySearch(costs, cost)
				places, costs = slices.Insert(places, i, p), slices.Insert(costs, i, cost)
			}
		}
		switch {
		case len(places) == 1:
			l.put(x, places[0])
		case len(places) > 1 && costs[1]-costs[0] > margin:
			best, where, margin = x, places[0], costs[1]-costs[0]
		}
	}
	if len(l.order) == before && best != fabric.NoNode {
		l.put(best, where)
	}
	return len(l.order) > before
}

// cost is how unlikely a place is for switch x: one over the size of a dimension that
// it would lengthen, likewise for the best places around it for the neighbours of x
// without a place, and a little for each link that would be missing. It returns false
// unless the place is free and next to all neighbours of x that have places.
func (l *layout) cost(x fabric.NodeID, p place) (cost float64, ok bool) {
	if _, taken := l.who[p]; taken {
		return 0, false
	}
	low, high := l.low, l.high
	lengthens := func(p place, d int) float64 {
		if p[d] < low[d] || p[d] > high[d] {
			return 1 / float64(l.high[d]-l.low[d]+1)
		}
		return 0
	}
	for d := range l.dims {
		cost += lengthens(p, d)
		low[d], high[d] = min(low[d], p[d]), max(high[d], p[d])
	}
	near := len(l.g.of(x)) - int(l.open[x])
	room := slices.Repeat([]float64{1}, int(l.open[x])) // for a neighbour beyond the free places
	for d := range Dir(2 * l.dims) {
		around := l.step(p, d)
		switch s, taken := l.who[around]; {
		case !taken:
			room = append(room, lengthens(around, d.Dim()))
		case l.g.linked(x, s):
			near--
		default:
			cost += 1e-6
		}
	}
	slices.Sort(room)
	for _, c := range room[:l.open[x]] {
		cost += c
	}
	return cost, near == 0
}

// makeFit makes a fit of a layout, or says what stands in the way.
func (l *layout) makeFit() (*fit, trouble) {
	why := trouble{left: l.g.switches() - len(l.order)}
	for _, s := range l.order {
		for i := l.g.start[s]; i < l.g.start[s+1]; i++ {
			if t := l.g.to[i]; s < t && l.placed[t] && l.label[i] == NoDir {
				why.odd = append(why.odd, cable{s, t})
			}
		}
	}
	if why.left > 0 || len(why.odd) > 0 {
		return nil, why
	}
	dims, wrap := make([]int, l.dims), make([]bool, l.dims)
	positions, most := 1, mostPositions(l.g.switches())
	for d := range l.dims {
		dims[d], wrap[d] = int(l.high[d]-l.low[d]+1), l.ring[d] > 0
		positions = min(positions*dims[d], most+1)
	}
	if positions > most || slices.Max(append(dims, 0)) > math.MaxInt16 { // Grid counts up to this
		return nil, why
	}
	if f, ok := newFit(dims, wrap, l.positions(newShape(dims, wrap))); ok {
		return accept(l.g, f.finest())
	}
	return nil, why
}

// positions is by switch its position in the shape, which spans all places.
func (l *layout) positions(s Shape) []int {
	list := make([]int, len(l.placed))
	for _, x := range l.order {
		for d, step := range s.step {
			list[x] += int(l.at[x][d]-l.low[d]) * step
		}
	}
	return list
}

// ringOfFour is the coordinates of the four positions of a ring in two
// dimensions of size 2.
var ringOfFour = [4][2]int{{0, 0}, {1, 0}, {1, 1}, {0, 1}}

// finest makes two dimensions of every ring of four.
func (f *fit) finest() *fit {
	for d, size := range f.Dims {
		if !f.Wrap[d] || size != 4 {
			continue
		}
		dims, wrap := append(slices.Clone(f.Dims), 2), append(slices.Clone(f.Wrap), false)
		dims[d], wrap[d] = 2, false
		finer := newShape(dims, wrap)
		position := make([]int, len(f.position))
		for s, p := range f.position {
			for e := range f.Dims {
				x := f.coord(p, e)
				if e == d {
					bits := ringOfFour[x]
					position[s] += bits[1]
					x = bits[0]
				}
				position[s] += x * finer.step[e]
			}
		}
		split, _ := newFit(dims, wrap, position)
		return split.finest()
	}
	return f
}
