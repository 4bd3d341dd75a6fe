package mesh

import (
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// stride is what one step in each dimension adds to a switch's code, the sum
// of its coordinates times these: so that positions compare and hash as one
// number, whatever the number of dimensions. They are random. Should two
// positions ever have one code, the switches are placed wrongly, and the check
// that every placement goes through at the end refuses it.
var stride = [maxDims]uint64{
	0x9c9f31857d1e7b35, 0x5d2b9a6f0e4c8d17, 0xe3779b97f4a7c15f, 0x2f0d1c6b8a9574e9,
	0xb5ad4eceda1ce2a9, 0x71c18690ee42c90b, 0xd1342543de82ef95, 0x48f1e0a36b7d592d,
	0x8bb84b93962eacc9, 0x1b873593cc9e2d51, 0xf13577aebcdd4a6b, 0x3c6ef372fe94f82b,
	0xa0761d6478bd642f, 0x6c62272e07bb0143, 0xc4ceb9fe1a85ec53, 0x16f11fe89b0d677d,
}

// layout places the switches of a graph in a space of so many dimensions,
// which have no ends, and are rings where closeRing found them to be.
//
// It grows from one switch by conclusions that hold whatever is missing, as
// long as no cable is where none belongs (sure), and goes on with the most
// likely place of a switch (guess) where there is no such conclusion.
type layout struct {
	g      *links
	dims   int
	ring   [maxDims]int32 // positions along a dimension that is a ring, else 0
	placed []bool         // by switch
	order  []fabric.NodeID
	done   int     // how many of order were looked at by grow
	coord  []int32 // by switch and dimension
	code   []uint64
	at     map[uint64]fabric.NodeID // by code
	open   []int32                  // by switch: neighbours without a place
	taken  []uint32                 // by switch: directions in which a neighbour has a place
	label  []Dir                    // by slot, NoDir where an end has no place or the link does not fit
	mark   []fabric.NodeID          // of sure: by switch, the one whose neighbour it was found to be last
	rim    []fabric.NodeID          // without a place when they got a neighbour with one
	odd    int                      // links that do not fit
	low    [maxDims]int32           // of all coordinates
	high   [maxDims]int32
}

func newLayout(g *links, dims int) *layout {
	n := g.switches()
	l := &layout{
		g: g, dims: dims,
		placed: make([]bool, n), coord: make([]int32, n*dims), code: make([]uint64, n),
		at: make(map[uint64]fabric.NodeID), open: make([]int32, n), taken: make([]uint32, n),
		label: make([]Dir, len(g.to)), mark: make([]fabric.NodeID, n),
	}
	for i := range l.label {
		l.label[i] = NoDir
	}
	for s := range n {
		l.open[s] = g.start[s+1] - g.start[s]
		l.mark[s] = fabric.NoNode
	}
	return l
}

// seed places s, and its neighbours over the links of a frame: each in a
// dimension of its own.
func (l *layout) seed(s fabric.NodeID, frame uint32) {
	l.put(s, make([]int32, l.dims), 0)
	for d := range l.dims {
		i := bits.TrailingZeros32(frame)
		frame &= frame - 1
		l.putNext(l.g.of(s)[i], s, Plus(d))
	}
}

// next is the code of the position that d leads to from switch u.
func (l *layout) next(u fabric.NodeID, d Dir) uint64 {
	dim := d.Dim()
	m, x, code := l.ring[dim], l.coord[int(u)*l.dims+dim], l.code[u]
	switch {
	case d.Positive() && m > 0 && x == m-1:
		return code - uint64(m-1)*stride[dim]
	case d.Positive():
		return code + stride[dim]
	case m > 0 && x == 0:
		return code + uint64(m-1)*stride[dim]
	default:
		return code - stride[dim]
	}
}

// direction is that from one code to another, NoDir when they are not next to
// each other.
func (l *layout) direction(from, to uint64) Dir {
	diff := to - from
	for d := range l.dims {
		switch diff {
		case stride[d]:
			return Plus(d)
		case -stride[d]:
			return Minus(d)
		}
		if m := l.ring[d]; m > 0 {
			switch diff {
			case -uint64(m-1) * stride[d]:
				return Plus(d)
			case uint64(m-1) * stride[d]:
				return Minus(d)
			}
		}
	}
	return NoDir
}

// putNext places x next to u.
func (l *layout) putNext(x, u fabric.NodeID, d Dir) {
	at := make([]int32, 0, maxDims)
	at = append(at, l.coord[int(u)*l.dims:(int(u)+1)*l.dims]...)
	dim := d.Dim()
	if d.Positive() {
		at[dim]++
	} else {
		at[dim]--
	}
	if m := l.ring[dim]; m > 0 {
		at[dim] = (at[dim] + m) % m
	}
	l.put(x, at, l.next(u, d))
}

func (l *layout) put(x fabric.NodeID, at []int32, code uint64) {
	l.placed[x] = true
	l.order = append(l.order, x)
	copy(l.coord[int(x)*l.dims:], at)
	l.code[x] = code
	l.at[code] = x
	for d, c := range at {
		l.low[d], l.high[d] = min(l.low[d], c), max(l.high[d], c)
	}
	for i := l.g.start[x]; i < l.g.start[x+1]; i++ {
		y := l.g.to[i]
		l.open[y]--
		switch {
		case l.placed[y]:
			l.labelSlot(i, x, y)
		case l.open[y] == l.g.degree(y)-1:
			l.rim = append(l.rim, y)
		}
	}
}

// labelSlot gives the link from x to y, both placed, its direction.
func (l *layout) labelSlot(i int32, x, y fabric.NodeID) {
	if d := l.direction(l.code[x], l.code[y]); d != NoDir {
		l.label[i], l.label[l.g.back[i]] = d, d.Opposite()
		l.taken[x] |= 1 << d
		l.taken[y] |= 1 << d.Opposite()
	} else {
		l.odd++
	}
}

// grow places every switch of which the place is sure.
func (l *layout) grow() {
	for ; l.done < len(l.order); l.done++ {
		w := l.order[l.done]
		l.growAt(w)
		for _, u := range l.g.of(w) {
			if l.placed[u] {
				l.growAt(u)
			}
		}
	}
}

func (l *layout) growAt(u fabric.NodeID) {
	if l.open[u] == 0 {
		return
	}
	for i := l.g.start[u]; i < l.g.start[u+1]; i++ {
		if x := l.g.to[i]; !l.placed[x] {
			if d := l.sure(u, i); d != NoDir {
				l.putNext(x, u, d)
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
	for _, z := range g.of(x) {
		l.mark[z] = x
	}
	others := uint32(1)<<l.dims - 1
	for fellows := g.square[i]; fellows != 0; fellows &= fellows - 1 {
		j := g.start[u] + int32(bits.TrailingZeros32(fellows))
		beta := l.label[j]
		if beta == NoDir {
			continue
		}
		others &^= 1 << beta.Dim()
		y := g.to[j]
		for k := g.start[y]; k < g.start[y+1]; k++ {
			z := g.to[k]
			if z == u || l.mark[z] != x {
				continue
			}
			if d := l.label[k]; d != NoDir && l.free(u, d) {
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

// free says whether nobody is at the position that d leads to from u.
func (l *layout) free(u fabric.NodeID, d Dir) bool {
	if l.taken[u]>>d&1 != 0 {
		return false
	}
	_, occupied := l.at[l.next(u, d)]
	return !occupied
}

// closeRing looks for a dimension that is a ring, because links lead from one
// end of it to the other. It folds the coordinates, and says whether it found
// one.
func (l *layout) closeRing() bool {
	if l.odd == 0 {
		return false
	}
	type ring struct {
		dim  int
		size int32
	}
	votes := make(map[ring]int)
	for _, s := range l.order {
		for i := l.g.start[s]; i < l.g.start[s+1]; i++ {
			t := l.g.to[i]
			if t < s || !l.placed[t] || l.label[i] != NoDir {
				continue
			}
			// Along one dimension only?
			var at ring
			off := 0
			for d := range l.dims {
				if diff := l.coord[int(t)*l.dims+d] - l.coord[int(s)*l.dims+d]; diff != 0 {
					off++
					at = ring{d, max(diff, -diff) + 1}
				}
			}
			if off == 1 && l.ring[at.dim] == 0 {
				votes[at]++
			}
		}
	}
	for d := range l.dims {
		best := ring{dim: d}
		for r, n := range votes {
			if r.dim == d && (n > votes[best] || n == votes[best] && r.size > best.size) {
				best = r
			}
		}
		if votes[best] == 0 {
			continue
		}
		if l.fold(d, best.size) {
			return true
		}
	}
	return false
}

// fold makes a ring of dimension d, unless two switches would meet.
func (l *layout) fold(d int, size int32) bool {
	at := make(map[uint64]fabric.NodeID, len(l.order))
	wrapped := func(s fabric.NodeID) (int32, uint64) {
		x := l.coord[int(s)*l.dims+d]
		y := (x%size + size) % size
		return y, l.code[s] + uint64(int64(y-x))*stride[d]
	}
	for _, s := range l.order {
		_, code := wrapped(s)
		if _, met := at[code]; met {
			return false
		}
		at[code] = s
	}
	for _, s := range l.order {
		l.coord[int(s)*l.dims+d], l.code[s] = wrapped(s)
		l.taken[s] = 0
	}
	l.at, l.ring[d] = at, size
	l.low[d], l.high[d] = 0, size-1
	l.odd = 0
	for _, s := range l.order {
		for i := l.g.start[s]; i < l.g.start[s+1]; i++ {
			if t := l.g.to[i]; s < t && l.placed[t] {
				l.label[i], l.label[l.g.back[i]] = NoDir, NoDir
				l.labelSlot(i, s, t)
			}
		}
	}
	l.done = 0
	return true
}

// candidate is a place that a switch may have.
type candidate struct {
	switchID fabric.NodeID
	beside   fabric.NodeID // a neighbour that has a place
	dir      Dir           // from it
	// The smaller, the likelier, in this order: one over the size, in 2**-20,
	// of each dimension that the place would lengthen, or the best places for
	// the neighbours of the switch that have none yet; and the links that would
	// then be missing.
	lengthens, missing int32
}

func (c candidate) compare(d candidate) int {
	if c.lengthens != d.lengthens {
		return int(c.lengthens) - int(d.lengthens)
	}
	return int(c.missing) - int(d.missing)
}

// guess places switches that have neighbours with places: all those for which
// one place alone is free next to all of these, else the one for which one
// place is the likeliest by far. It takes the work that this was from budget,
// and says whether it placed any.
func (l *layout) guess(budget *int) bool {
	rim := l.rim
	l.rim = nil
	slices.Sort(rim) // what is found does not depend on the order of growth
	rim = slices.DeleteFunc(rim, func(x fabric.NodeID) bool { return l.placed[x] })
	var best, margin candidate
	found, placed := false, false
	for _, x := range rim {
		if *budget <= 0 {
			return false
		}
		if l.placed[x] {
			continue
		}
		first, second, count := l.candidates(x, budget)
		switch {
		case count == 0:
		case count == 1:
			l.putNext(x, first.beside, first.dir)
			placed = true
		default:
			// The switch with most to lose by its second place goes first.
			m := candidate{lengthens: second.lengthens - first.lengthens, missing: second.missing - first.missing}
			if c := m.compare(margin); !found || c > 0 || c == 0 && first.compare(best) < 0 {
				best, margin, found = first, m, true
			}
		}
	}
	if !placed && found {
		l.putNext(best.switchID, best.beside, best.dir)
		placed = true
	}
	l.rim = append(l.rim, rim...)
	return placed
}

// candidates gives the likeliest and the second likeliest of the free places
// next to all neighbours of x that have places, and how many there are.
func (l *layout) candidates(x fabric.NodeID, budget *int) (best, second candidate, count int) {
	beside := fabric.NoNode
	for _, u := range l.g.of(x) {
		if l.placed[u] {
			beside = u
			break
		}
	}
	for d := range Dir(2 * l.dims) {
		*budget -= 2*l.dims + len(l.g.of(x))
		if !l.free(beside, d) {
			continue
		}
		code := l.next(beside, d)
		c := candidate{switchID: x, beside: beside, dir: d}
		dim := d.Dim()
		at := l.coord[int(beside)*l.dims+dim]
		low, high := l.low, l.high
		if l.ring[dim] == 0 && (d.Positive() && at == high[dim] || !d.Positive() && at == low[dim]) {
			c.lengthens = l.lengthening(dim)
			low[dim]--
			high[dim]++
		}
		var costs [2 * maxDims]int32 // of the free places around this one
		free := 0
		for e := range Dir(2 * l.dims) {
			around, x := l.shift(beside, d, e)
			if _, occupied := l.at[around]; occupied {
				c.missing++
				continue
			}
			if dim := e.Dim(); l.ring[dim] == 0 && (x < low[dim] || x > high[dim]) {
				costs[free] = l.lengthening(dim)
			}
			free++
		}
		slices.Sort(costs[:free])
		for i := range int(l.open[x]) {
			if i < free {
				c.lengthens += costs[i]
			} else {
				c.lengthens += 1 << 20
			}
		}
		fits := true
		for _, y := range l.g.of(x) {
			if l.placed[y] {
				fits = fits && l.direction(code, l.code[y]) != NoDir
				c.missing--
			}
		}
		if !fits {
			continue
		}
		switch {
		case count == 0 || c.compare(best) < 0:
			best, second = c, best
		case count == 1 || c.compare(second) < 0:
			second = c
		}
		count++
	}
	return best, second, count
}

// lengthening is the cost of one more position along a dimension.
func (l *layout) lengthening(dim int) int32 { return 1 << 20 / (l.high[dim] - l.low[dim] + 1) }

// shift is the code of the position to which d and then e lead from u, and its
// coordinate in the dimension of e.
func (l *layout) shift(u fabric.NodeID, d, e Dir) (code uint64, at int32) {
	dim := e.Dim()
	step := func(x int32, d Dir) int32 {
		if x--; d.Positive() {
			x += 2
		}
		if m := l.ring[dim]; m > 0 {
			x = (x + m) % m
		}
		return x
	}
	x := l.coord[int(u)*l.dims+dim]
	if d.Dim() == dim {
		x = step(x, d)
	}
	y := step(x, e)
	return l.next(u, d) + uint64(int64(y-x))*stride[dim], y
}

// run grows as far as it goes, but not on when far too much does not fit.
func (l *layout) run() {
	budget := 1<<20 + 256*l.g.switches()
	for {
		l.grow()
		if l.closeRing() {
			continue
		}
		if l.odd > 64+l.g.count()/16 || !l.guess(&budget) {
			return
		}
	}
}
