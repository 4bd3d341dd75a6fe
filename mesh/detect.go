package mesh

import (
	"cmp"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// DetectOptions choose among the readings of a grid that is symmetric.
type DetectOptions struct {
	// Origin is the GUID of the switch with coordinates 0,0,...: a corner in
	// the dimensions that are no rings. 0: any corner.
	Origin fabric.GUID
	// Dims is the size of every dimension, in order. A size of 1 says nothing.
	// nil: any.
	Dims []int
	// LeaveOut accepts a grid that a few cables do not fit: Grid.Extra has
	// them, and they have no direction.
	LeaveOut bool
}

// NotGridError says why the switches of a fabric are no grid, or not the one
// asked for.
type NotGridError struct {
	// Found is the shape in words, where there is one, but not with the Dims
	// or the Origin asked for.
	Found string
	// Reason names switches by description and GUID, cables by their ports.
	Reason string
	// Cables are those that do not fit, each by its port on the switch with
	// the lower GUID, where there is a grid without them.
	Cables []fabric.PortID
}

func (e *NotGridError) Error() string {
	if e.Found != "" {
		return "the switches are " + withArticle(e.Found) + ": " + e.Reason
	}
	return "the switches are no mesh, torus or hypercube: " + e.Reason
}

// Detect finds the grid that the switches of a fabric and the cables between
// them are: an n-dimensional mesh, a torus, a mixture of these, or a
// hypercube, which is 2x2x..., from 1 to 16 dimensions. Hosts do not matter,
// nor do cables from a switch to itself; several cables between two switches
// are parallel links of one direction, any number of them.
//
// It reads the graph of the switches (links), infers positions that explain it
// (infer, with layout and search), checks that all links join neighbouring
// positions and that not too much is missing (fit.check), and reads dimensions
// and directions from the port numbers (orient).
//
// # Missing switches and cables
//
// A grid is recognized when at most an eighth of it is missing: the part of its
// positions that have no switch and the part of its pairs of neighbouring
// switches that have no cable, together and rounded to the nearest cable. For
// each step round a ring, a third of the cables has to be there. With a
// twentieth of the switches and a twentieth of the cables gone at random, fewer
// than one in a thousand are not recognized; up to 64 switches, what fits is
// found. Where several grids explain a fabric, the smallest is taken, then the
// one with the fewest missing cables, then with the fewest dimensions, then with
// the fewest rings: a 4x4 mesh without its last row is a 4x3 mesh.
// Nothing of what is there is ever ignored, except by LeaveOut: with one cable that
// joins switches which are no neighbours, a fabric is no grid.
//
// In fabrics of up to 64 switches, one without cables to other switches takes a free
// position, which one does not matter to any path.
//
// # The reading
//
// The cables leave open where a symmetric grid begins. What follows depends on
// GUIDs and port numbers only, not on the order of the input. By "number" of a
// direction, the most common port number that leads in it is meant, the lowest
// of parallel cables; it is clear when more than half of all switches have it.
//
//   - A ring of four is the same as two dimensions of size 2. It is read as a
//     ring when the numbers of both ways round it are clear and differ, or when
//     there are other dimensions and all are longer rings; else as two. So a
//     4x4 torus that is cabled by one plan is that, and with random port
//     numbers it is a 4-cube, while a 4x8 torus always is one.
//   - Dimensions come in the order of their numbers, the lower one of both
//     directions.
//   - The direction with the lower number is the positive one when both are
//     clear.
//   - Where they are not, the origin, or without one the corner with the lowest
//     GUID, has coordinate 0, and in a ring the lowest port of the switch with
//     the lowest GUID leads in the positive direction.
//   - A ring begins at the origin, or without one at the corner with the lowest
//     GUID, that is, when all dimensions are rings, at the switch with the
//     lowest GUID.
//
// For whole fabrics of Generate this is the generator's reading.
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

// trouble is what stood out when nothing fits a graph.
type trouble struct {
	odd  []cable // links that join places which are no neighbours
	left int     // switches without a place
	over *fit    // has a place for all links, but more is missing than mostMissing
}

// infer finds the best fit of a graph, or nil; steps bounds the switches placed in
// the exhaustive search.
func infer(g *links, steps int) (best *fit, why trouble) {
	n := g.switches()
	if n == 1 {
		best, _ = newFit(nil, nil, []int{0})
		return best, why
	}
	if _, most := g.busiest(); most > maxNeighbors || g.crowds > 4*most {
		return nil, why // more than a few odd cables make
	}
	if dims := g.dimensions(); dims <= maxDims {
		best, why = growLayout(g, dims)
	}
	if n <= searchSwitches && g.crowds == 0 && (best == nil || best.faults() > 0) {
		best = searchShapes(g, best, steps, func(Shape) bool { return true })
	}
	return best, why
}

// fit is a shape with a position for every switch, in its finest form: no
// dimension is a ring of four, since that is two dimensions of size 2. A single
// switch has no dimensions.
type fit struct {
	Shape
	position []int           // by switch
	at       []fabric.NodeID // by position
	missing  int             // neighbouring positions with switches but without a link
}

// newFit says false when two switches meet.
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

// absent is how many positions have no switch.
func (f *fit) absent() int { return len(f.at) - len(f.position) }

// faults is how many things are missing.
func (f *fit) faults() int { return f.absent() + f.missing }

// compare orders the fits of one graph, the best first: the one with the fewest
// positions, then with the fewest missing links, then with the fewest
// dimensions, then with the fewest rings.
func (f *fit) compare(g *fit) int {
	return cmp.Or(len(f.at)-len(g.at), f.missing-g.missing, len(f.Dims)-len(g.Dims), f.rings()-g.rings())
}

// beyond is the switch next to s in direction plus of dimension d, NoNode for none.
func (f *fit) beyond(s fabric.NodeID, d int) fabric.NodeID {
	if at := f.Next(f.position[s], Plus(d)); at >= 0 {
		return f.at[at]
	}
	return fabric.NoNode
}

// neighbors says whether the positions of two switches are next to each other.
func (f *fit) neighbors(s, t fabric.NodeID) bool {
	for d := range Dir(2 * len(f.Dims)) {
		if f.Next(f.position[s], d) == f.position[t] {
			return true
		}
	}
	return false
}

// accept checks a fit: every link has to be one between neighbours, no ring
// may be torn, and no more may be missing than mostMissing allows.
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

// check is what makes every detection sound: it goes through all links of g
// and returns those that do not join neighbouring positions, and counts the
// links that are missing.
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

// torn says whether fewer than a third of the links of a step round the ring d are
// there: then it is no ring, but an open dimension with links where none
// belong, which are those.
func (f *fit) torn(g *links, d int) (odd []cable, torn bool) {
	have, want := make([]int, f.Dims[d]), make([]int, f.Dims[d])
	for s := range fabric.NodeID(g.switches()) {
		if t := f.beyond(s, d); t != fabric.NoNode {
			x := f.coord(f.position[s], d)
			want[x]++
			if g.linked(s, t) {
				have[x]++
			}
		}
	}
	worst := 0
	for x := range have {
		if have[x]*want[worst] < have[worst]*want[x] || want[x] == 0 {
			worst = x
		}
	}
	if want[worst] > 0 && 3*have[worst] >= want[worst] {
		return nil, false
	}
	for s := range fabric.NodeID(g.switches()) {
		if t := f.beyond(s, d); t != fabric.NoNode && f.coord(f.position[s], d) == worst && g.linked(s, t) {
			odd = append(odd, cableOf(s, t))
		}
	}
	return odd, true
}

// mostPositions is how many positions a grid of n switches may have: an eighth
// of them may be without a switch.
func mostPositions(n int) int { return 8 * n / 7 }

// mostMissing is how many links may be missing between the n switches that are
// there: the part of the positions without a switch and the part of the links
// that are missing may be an eighth together, rounded to the nearest link.
func (s Shape) mostMissing(n int) int {
	positions, links := s.Positions(), s.links()
	return (positions*(links+4) - 8*(positions-n)*links) / (8 * positions)
}

// links is how many pairs of neighbouring positions there are.
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
