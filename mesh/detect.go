package mesh

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
)

// DetectOptions choose among the readings of a symmetric grid.
type DetectOptions struct {
	// Origin is the GUID of the switch with coordinates 0,0,...: it must be a
	// corner in the dimensions that are no rings. 0 allows any corner.
	Origin fabric.GUID
	// Dims is the size of every dimension, in order; nil allows any. Sizes of 1
	// are ignored.
	Dims []int
	// LeaveOut accepts a grid that a few cables do not fit. Grid.Extra lists
	// them; they have no direction.
	LeaveOut bool
}

// NotGridError means that the switches of a fabric are no grid, or not the one
// asked for.
type NotGridError struct {
	// Found is the shape in words if there is one, but not with the Dims or
	// Origin asked for.
	Found string
	// Reason names switches by description and GUID, cables by their ports.
	Reason string
	// Cables lists the cables that do not fit, each by its port on the switch
	// with the lower GUID, if the switches form a grid without them.
	Cables []fabric.PortID
}

func (e *NotGridError) Error() string {
	if e.Found != "" {
		return "the switches are " + withArticle(e.Found) + ": " + e.Reason
	}
	return "the switches are no mesh, torus or hypercube: " + e.Reason
}

// Detect finds the grid that the switches of a fabric and the cables between them
// form: an n-dimensional mesh, a torus, a mixture of these, or a hypercube, which
// is 2x2x..., from 1 to 16 dimensions. It ignores hosts and cables from a switch
// to itself. Two switches may have any number of parallel cables.
//
// It reads the graph of the switches (links), infers positions that explain it
// (infer, with layout and search), checks that all links join neighbouring
// positions and that not too much is missing (fit.check), and reads dimensions
// and directions from the port numbers (orient).
//
// # Missing switches and cables
//
// At most an eighth of a grid may be missing: the part of its positions without
// switch and the part of its pairs of neighbouring switches without cable, added
// and rounded to the nearest cable. For each step round a ring, a third of the
// cables must be there. With 1/20 of the switches and 1/20 of the cables gone at
// random, less than 1 in 1,000 grids is not recognized; up to 64 switches, any
// grid that fits is found. If several grids explain a fabric, the smallest is
// taken, then the one with the fewest missing cables, the fewest dimensions, the
// fewest rings: a 4x4 mesh without its last row is a 4x3 mesh. Nothing that is
// there is ignored, except with LeaveOut: a fabric with one cable between
// switches that are no neighbours is no grid.
//
// In fabrics of up to 64 switches, one without cables to other switches takes a
// free position. Which one does not matter to paths.
//
// # The reading
//
// The cables do not tell where a symmetric grid begins. What follows depends only
// on GUIDs and port numbers, not on the order of the input. The "number" of a
// direction is the most common port number that leads in it, the lowest of
// parallel cables; it is clear if more than half of all switches have it.
//
//   - A ring of four is the same graph as two dimensions of size 2. It is read as a ring
//     if the numbers of both ways round it are clear and differ, or if there are other
//     dimensions and all are longer rings; else as two dimensions. So a 4x4 torus cabled
//     by one plan is read as such, with random port numbers as a 4-cube; a 4x8 torus is
//     always read as a torus.
//   - Dimensions come in the order of their numbers, the lower one of both directions.
//   - If the numbers of both directions are clear, the lower one is the positive direction.
//   - If they are not, the origin has coordinate 0 (without one the corner with the lowest
//     GUID), and in a ring the lowest port of the switch with the lowest GUID leads in the
//     positive direction.
//   - A ring begins at the origin, or without one at the corner with the lowest GUID; if all
//     dimensions are rings, that is the switch with the lowest GUID.
//
// A whole fabric made by Generate is read as it was generated.
//
// Errors are *NotGridError. It takes O(switches) for a whole grid of a given
// number of dimensions, and memory likewise.
func Detect(f *fabric.Fabric, opt DetectOptions) (*Grid, error) {
	if f.NumSwitches() == 0 {
		return nil, &NotGridError{Reason: "there are none"}
	}
	g := newLinks(f, nil)
	found, why := infer(g, searchSteps)
	var extra []fabric.PortID
	if found == nil {
		var odd []cable
		var rest *links
		odd, rest, found = leaveOut(f, g, why)
		if len(odd) > 0 {
			err := explainOdd(f, odd, rest, found)
			if !opt.LeaveOut {
				return nil, err
			}
			g, extra = rest, err.Cables
		}
	}
	if found == nil {
		return nil, explain(f, g, why)
	}
	if opt.Dims != nil && !found.reads(opt.Dims) {
		var other *fit
		if g.switches() <= searchSwitches {
			other = searchShapes(g, nil, searchSteps, func(s Shape) bool { return s.reads(opt.Dims) })
		}
		if other == nil {
			return nil, &NotGridError{Found: newReading(f, g, found, nil).shape().String(), Reason: "it does not read as " + times(opt.Dims)}
		}
		found = other
	}
	grid, err := orient(f, g, found, opt)
	if err != nil {
		return nil, err
	}
	slices.Sort(extra)
	grid.Extra = extra
	return grid, nil
}

// trouble describes why nothing fits a graph.
type trouble struct {
	odd  []cable // links between places that are no neighbours
	left int     // switches without a place
	over *fit    // a fit for all links in which more is missing than mostMissing
}

// infer returns the best fit of a graph, or nil. This file has its steps in
// order:
//
//   - Two links of a switch that lie on a cycle of four links lead in different dimensions
//     (findSquares). So a switch with most such links gives the dimensions.
//   - A layout of that many dimensions grows from such a switch: by conclusions that hold
//     whatever is missing (placeSure), by rings that close (closeRing), and last by what is
//     likely (placeLikely).
//   - All links are compared with the positions (accept), so no guess is believed.
//
// If something is still missing in a small fabric, searchShapes tries all shapes
// and placements, and places up to steps switches.
func infer(g *links, steps int) (best *fit, why trouble) {
	n := g.switches()
	if n == 1 {
		best, _ = newFit(nil, nil, []int{0})
		return best, why
	}
	if _, most := g.busiest(); most > maxNeighbors || g.crowds > 4*most {
		return nil, why // too many for a few odd cables
	}
	if seed, links, dims := g.seed(); dims <= maxDims {
		best, why = growLayout(g, seed, links, dims)
	}
	if n <= searchSwitches && g.crowds == 0 && (best == nil || best.absent()+best.missing > 0) {
		best = searchShapes(g, best, steps, func(Shape) bool { return true })
	}
	return best, why
}

// maxNeighbors is the greatest number of neighbours of a switch on a grid.
const maxNeighbors = 2 * maxDims

// cable is two switches with one or several cables between them, the lower NodeID
// first.
type cable [2]fabric.NodeID

func cableOf(s, t fabric.NodeID) cable { return cable{min(s, t), max(s, t)} }

// links is the graph of the switches. Parallel cables are one link, which both
// its switches list. It has no cables from a switch to itself.
type links struct {
	start []int32         // by switch: where its part of to begins; one more at the end
	to    []fabric.NodeID // the switches at the other ends, ascending
	// square has, by link, the other links of its switch that lie on a cycle of
	// four links with it: as bits, counted from the switch's first link.
	square []uint32
	// crowd is a set of five switches: two, which come first, and three
	// neighbours that both have. On a grid two switches have at most two such
	// neighbours. crowds counts the switches that are first in a crowd.
	crowd  [5]fabric.NodeID
	crowds int
}

// newLinks makes the graph of f without some cables.
func newLinks(f *fabric.Fabric, without []cable) *links {
	n := f.NumSwitches()
	g := &links{start: make([]int32, n+1)}
	for s := range fabric.NodeID(n) {
		_, to := f.SwitchLinks(s)
		own := slices.Clone(to)
		slices.Sort(own)
		own = slices.Compact(own)
		if len(without) > 0 {
			own = slices.DeleteFunc(own, func(t fabric.NodeID) bool { return slices.Contains(without, cableOf(s, t)) })
		}
		g.to = append(g.to, own...)
		g.start[s+1] = int32(len(g.to))
	}
	if _, most := g.busiest(); most <= maxNeighbors {
		g.findSquares()
	}
	return g
}

func (g *links) switches() int { return len(g.start) - 1 }

func (g *links) count() int { return len(g.to) / 2 }

// of returns the neighbours of s, ascending.
func (g *links) of(s fabric.NodeID) []fabric.NodeID { return g.to[g.start[s]:g.start[s+1]] }

// squares returns square for the links of s.
func (g *links) squares(s fabric.NodeID) []uint32 { return g.square[g.start[s]:g.start[s+1]] }

func (g *links) linked(s, t fabric.NodeID) bool {
	_, ok := slices.BinarySearch(g.of(s), t)
	return ok
}

// busiest returns a switch with most neighbours, and their number.
func (g *links) busiest() (fabric.NodeID, int) {
	best, most := fabric.NodeID(0), -1
	for s := range fabric.NodeID(g.switches()) {
		if d := len(g.of(s)); d > most {
			best, most = s, d
		}
	}
	return best, most
}

// findSquares sets square, crowd and crowds. No switch may have more than
// maxNeighbors neighbours.
func (g *links) findSquares() {
	g.square = make([]uint32, len(g.to))
	via := make([]uint32, g.switches()) // by switch: the links of s to its neighbours, as bits
	for s := range fabric.NodeID(g.switches()) {
		for i, t := range g.of(s) {
			for _, u := range g.of(t) {
				via[u] |= 1 << i
			}
		}
		via[s] = 0
		crowded := false
		for i, t := range g.of(s) {
			for _, u := range g.of(t) {
				g.squares(s)[i] |= via[u] &^ (1 << i)
				if bits.OnesCount32(via[u]&(2<<i-1)) > 2 {
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
		for _, t := range g.of(s) {
			for _, u := range g.of(t) {
				via[u] = 0
			}
		}
	}
}

// crowdOf returns a crowd of s, u and three switches: the first in set,
// which has neighbours of s as bits.
func (g *links) crowdOf(s, u fabric.NodeID, set uint32) [5]fabric.NodeID {
	crowd := [5]fabric.NodeID{s, u}
	for k := range 3 {
		crowd[2+k] = g.of(s)[bits.TrailingZeros32(set)]
		set &= set - 1
	}
	return crowd
}

// independent returns, as bits, links of s that pairwise lie on cycles of four:
// the largest set that a greedy choice from each link finds. On a grid these lead
// in different dimensions, whatever is missing.
func (g *links) independent(s fabric.NodeID) (links uint32, size int) {
	own := g.squares(s)
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

// seed returns a switch with most links in different dimensions, and these links,
// as bits. Among several switches it takes the one with most pairs of links on
// cycles of four. On a whole grid all switches have as many such links as
// dimensions.
func (g *links) seed() (at fabric.NodeID, links uint32, dims int) {
	most := -1
	for s := range fabric.NodeID(g.switches()) {
		own, size := g.independent(s)
		regular := 0
		for _, fellows := range g.squares(s) {
			regular += bits.OnesCount32(fellows)
		}
		if size > dims || size == dims && regular > most {
			at, links, dims, most = s, own, size, regular
		}
	}
	return at, links, dims
}

// suspects lists links, those on the fewest cycles of four first: in small
// fabrics all links, else those on no such cycle.
func (g *links) suspects() []cable {
	type suspect struct {
		cable
		squares int
	}
	var found []suspect
	for s := range fabric.NodeID(g.switches()) {
		for i := g.start[s]; i < g.start[s+1]; i++ {
			if s < g.to[i] && (g.square[i] == 0 || g.switches() <= searchSwitches) {
				found = append(found, suspect{cable{s, g.to[i]}, bits.OnesCount32(g.square[i])})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b suspect) int { return a.squares - b.squares })
	return text.Each(found, func(x suspect) cable { return x.cable })
}

// place is the coordinates of a switch in a layout, 0 in dimensions that it
// lacks.
type place [maxDims]int32

// layout places the switches of a graph in a space of several dimensions without
// ends, except those that closeRing made rings.
//
// It grows from one switch by conclusions that hold whatever is missing, if there
// is no cable where none belongs (placeSure). If there is no such conclusion, it
// takes the most likely place of a switch (placeLikely).
type layout struct {
	g         *links
	dims      int
	ring      place  // by dimension: its length if it is a ring, else 0
	placed    []bool // by switch
	order     []fabric.NodeID
	done      int // how many switches of order placeSure has looked at
	at        []place
	who       map[place]fabric.NodeID
	open      []int32 // by switch: neighbours without a place
	low, high place   // least and greatest coordinates
}

// growLayout grows a layout in dims dimensions. It starts with the switch
// seed and its neighbours over links, a set of bits; these lead in
// different dimensions. It returns a fit made of the layout, or the trouble
// that prevents one.
func growLayout(g *links, seed fabric.NodeID, links uint32, dims int) (*fit, trouble) {
	n := g.switches()
	l := &layout{
		g: g, dims: dims,
		placed: make([]bool, n), at: make([]place, n), who: make(map[place]fabric.NodeID, n),
		open: make([]int32, n),
	}
	for s := range n {
		l.open[s] = int32(len(g.of(fabric.NodeID(s))))
	}
	l.put(seed, place{})
	for d := range dims {
		l.put(g.of(seed)[bits.TrailingZeros32(links)], l.step(place{}, Plus(d)))
		links &= links - 1
	}
	l.placeAll()
	return l.makeFit()
}

// placeAll places as many switches as it can. It stops if far too many links do
// not fit.
func (l *layout) placeAll() {
	for {
		l.placeSure()
		odd := l.oddLinks()
		if l.closeRing(odd) {
			continue
		}
		if len(odd) > 64+l.g.count()/16 || !l.placeLikely() {
			return
		}
	}
}

// step returns the place next to p in direction d.
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

// apart returns the only dimension in which the places of two switches differ,
// and the difference; -1 if they differ in several or in none.
func (l *layout) apart(x, y fabric.NodeID) (dim int, by int32) {
	dim = -1
	for d := range l.dims {
		if diff := l.at[y][d] - l.at[x][d]; diff != 0 {
			if dim >= 0 {
				return -1, 0
			}
			dim, by = d, diff
		}
	}
	return dim, by
}

// direction returns the direction from switch x to switch y, NoDir if they are
// not next to each other or y has no place.
func (l *layout) direction(x, y fabric.NodeID) Dir {
	dim, by := l.apart(x, y)
	if dim < 0 || !l.placed[y] {
		return NoDir
	}
	switch round := l.ring[dim] - 1; by { // round: from one end of a ring to the other
	case 1, -round:
		return Plus(dim)
	case -1, round:
		return Minus(dim)
	}
	return NoDir
}

// oddLinks lists the links between places that are not next to each other.
func (l *layout) oddLinks() (odd []cable) {
	for _, s := range l.order {
		for _, t := range l.g.of(s) {
			if s < t && l.placed[t] && l.direction(s, t) == NoDir {
				odd = append(odd, cable{s, t})
			}
		}
	}
	return odd
}

// put places switch x at p.
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
}

// placeSure places every switch whose place is certain.
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

// sure returns the direction in which link i of the placed switch u must
// lead, to a switch x without a place, or NoDir if it is not certain. If x,
// u and two placed switches form a cycle of four links, x is at the fourth
// corner. Else, two links of u on a cycle of four lead in different
// dimensions. If that leaves one dimension for link i, and the neighbour of
// u in one of its directions is known, the link leads in the other
// direction.
func (l *layout) sure(u fabric.NodeID, i int32) Dir {
	g := l.g
	x := g.to[i]
	others := uint32(1)<<l.dims - 1
	for fellows := g.square[i]; fellows != 0; fellows &= fellows - 1 {
		j := g.start[u] + int32(bits.TrailingZeros32(fellows))
		y := g.to[j]
		way := l.direction(u, y)
		if way == NoDir {
			continue
		}
		others &^= 1 << way.Dim()
		for _, z := range g.of(y) {
			if z == u || !g.linked(x, z) {
				continue
			}
			if d := l.direction(y, z); d != NoDir && l.free(u, d) {
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

// free returns true if no switch is next to u in direction d.
func (l *layout) free(u fabric.NodeID, d Dir) bool {
	_, occupied := l.who[l.step(l.at[u], d)]
	return !occupied
}

// closeRing looks for a dimension that is a ring, since odd links lead from
// one end to the other. It wraps that dimension, and returns true if it found
// one.
func (l *layout) closeRing(odd []cable) bool {
	var votes [maxDims]map[int32]int // by dimension and size
	for _, c := range odd {
		if d, by := l.apart(c[0], c[1]); d >= 0 && l.ring[d] == 0 {
			if votes[d] == nil {
				votes[d] = make(map[int32]int)
			}
			votes[d][max(by, -by)+1]++
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

// wrap makes a ring of dimension d. It returns false if two switches would meet.
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
	l.done = 0
	return true
}

// placeLikely places switches that have placed neighbours: first all those
// for which only one free place is next to all their placed neighbours. If
// there are none, it places the one switch whose best place is likelier
// than its second best by most, as for a corner of a 12x12 mesh and a 2x40
// ladder that lack a cable, see TestDetectFewMissing. It returns true if it
// placed any.
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

// cost returns how unlikely place p is for switch x. To lengthen a dimension
// costs 1/size, for x and, at their best places, for its neighbours without a
// place; a missing link costs little. It returns false unless the place is free
// and next to all placed neighbours of x.
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
	room := slices.Repeat([]float64{1}, int(l.open[x])) // 1 for a neighbour without a free place
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

// makeFit makes a fit of a layout, or returns the trouble that prevents one.
func (l *layout) makeFit() (*fit, trouble) {
	why := trouble{left: l.g.switches() - len(l.order), odd: l.oddLinks()}
	if why.left > 0 || len(why.odd) > 0 {
		return nil, why
	}
	dims, wrap := make([]int, l.dims), make([]bool, l.dims)
	positions, most := 1, mostPositions(l.g.switches())
	for d := range l.dims {
		dims[d], wrap[d] = int(l.high[d]-l.low[d]+1), l.ring[d] > 0
		positions = min(positions*dims[d], most+1)
	}
	if positions > most || slices.Max(append(dims, 0)) > math.MaxInt16 { // Grid has coordinates of 16 bits
		return nil, why
	}
	if f, ok := newFit(dims, wrap, l.positions(newShape(dims, wrap))); ok {
		return accept(l.g, f.finest())
	}
	return nil, why
}

// positions returns the position of each switch in shape s, which must span all
// places.
func (l *layout) positions(s Shape) []int {
	list := make([]int, len(l.placed))
	for _, x := range l.order {
		for d, step := range s.step {
			list[x] += int(l.at[x][d]-l.low[d]) * step
		}
	}
	return list
}

// ringOfFour has the coordinates of the four positions of a ring, as two
// dimensions of size 2.
var ringOfFour = [4][2]int{{0, 0}, {1, 0}, {1, 1}, {0, 1}}

// finest returns the fit with two dimensions in place of every ring of four.
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

// fit is a shape with a position for every switch. It has two dimensions of size
// 2 in place of each ring of four. A single switch has no dimensions.
type fit struct {
	Shape
	position []int           // by switch
	at       []fabric.NodeID // by position
	missing  int             // number of neighbouring switches without a link
}

// newFit returns false if two switches have the same position.
func newFit(dims []int, wrap []bool, position []int) (*fit, bool) {
	f := &fit{Shape: newShape(dims, wrap), position: position}
	f.at = slices.Repeat([]fabric.NodeID{fabric.NoNode}, f.Positions())
	for s, p := range position {
		if f.at[p] != fabric.NoNode {
			return nil, false
		}
		f.at[p] = fabric.NodeID(s)
	}
	return f, true
}

// absent returns the number of positions without a switch.
func (f *fit) absent() int { return len(f.at) - len(f.position) }

// compare orders the fits of one graph, best first: by positions, then by missing
// links, then by dimensions, then by rings, the fewest first.
func (f *fit) compare(g *fit) int {
	return cmp.Or(len(f.at)-len(g.at), f.missing-g.missing, len(f.Dims)-len(g.Dims), f.rings()-g.rings())
}

// beyond returns the switch next to s in direction Plus(d), NoNode if there is
// none.
func (f *fit) beyond(s fabric.NodeID, d int) fabric.NodeID {
	if at := f.Next(f.position[s], Plus(d)); at >= 0 {
		return f.at[at]
	}
	return fabric.NoNode
}

// neighbors returns true if the positions of two switches are next to each other.
func (f *fit) neighbors(s, t fabric.NodeID) bool {
	for d := range Dir(2 * len(f.Dims)) {
		if f.Next(f.position[s], d) == f.position[t] {
			return true
		}
	}
	return false
}

// accept checks a fit: all links join neighbours, no ring is torn, and no more is
// missing than mostMissing.
func accept(g *links, f *fit) (*fit, trouble) {
	if odd := f.check(g); len(odd) > 0 {
		return nil, trouble{odd: odd}
	}
	for d, ring := range f.Wrap {
		if !ring {
			continue
		}
		if odd, torn := f.torn(g, d); torn {
			return nil, trouble{odd: odd}
		}
	}
	if f.missing > f.mostMissing(g.switches()) {
		return nil, trouble{over: f}
	}
	return f, trouble{}
}

// check makes every detection sound: it returns all links of g that do not join
// neighbouring positions. It also counts the missing links.
func (f *fit) check(g *links) (odd []cable) {
	f.missing = 0
	for s := range fabric.NodeID(g.switches()) {
		for _, t := range g.of(s) {
			if s < t && !f.neighbors(s, t) {
				odd = append(odd, cable{s, t})
			}
		}
		for d := range f.Dims {
			if t := f.beyond(s, d); t != fabric.NoNode && !g.linked(s, t) {
				f.missing++
			}
		}
	}
	return odd
}

// torn returns true if, for some step round ring d, less than a third of the
// links are there. Then it is no ring but an open dimension, to which these
// links, odd, do not belong.
func (f *fit) torn(g *links, d int) (odd []cable, torn bool) {
	have, want := make([][]cable, f.Dims[d]), make([]int, f.Dims[d]) // by step
	for s := range fabric.NodeID(g.switches()) {
		if t := f.beyond(s, d); t != fabric.NoNode {
			x := f.coord(f.position[s], d)
			want[x]++
			if g.linked(s, t) {
				have[x] = append(have[x], cableOf(s, t))
			}
		}
	}
	for x, links := range have {
		if 3*len(links) < want[x] || want[x] == 0 {
			return links, true
		}
	}
	return nil, false
}

// mostPositions returns how many positions a grid of n switches may have: 1/8 may
// lack a switch.
func mostPositions(n int) int { return 8 * n / 7 }

// mostMissing returns how many links between n switches may be missing. The part
// of the positions without switch plus the part of the links that are missing may
// be 1/8, rounded to the nearest link.
func (s Shape) mostMissing(n int) int {
	positions, links := s.Positions(), s.links()
	return (positions*(links+4) - 8*(positions-n)*links) / (8 * positions)
}

// links returns the number of pairs of neighbouring positions.
func (s Shape) links() int {
	total := 0
	for d, size := range s.Dims {
		along := size - 1
		if s.Wrap[d] {
			along++
		}
		total += s.Positions() / size * along
	}
	return total
}
