package mesh

import (
	"fmt"
	"strconv"
	"strings"

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
// Nothing of what is there is ever ignored: with one cable that joins switches
// which are no neighbours, a fabric is no grid.
//
// A switch without cables to other switches takes a free position, which one
// does not matter to any path. Parts of a line are put one after the other.
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
	found, why := solve(g, thorough)
	if found == nil {
		var out []cable
		var rest *links
		if out, rest, found = without(f, g, why); len(out) > 0 {
			return nil, explainOdd(f, out, rest, found)
		}
	}
	if found == nil {
		return nil, explain(f, g, why)
	}
	if opt.Dims != nil && !found.reads(opt.Dims) {
		var other *fit
		if g.switches() <= searchSwitches && g.square != nil {
			other = searchShapes(g, nil, searchSteps, func(s shape) bool { return s.reads(opt.Dims) })
		}
		if other == nil {
			return nil, &NotGridError{Found: describe(f, g, found), Reason: "it does not read as " + times(opt.Dims)}
		}
		found = other
	}
	return orient(f, g, found, opt)
}

// String is the shape: "16x16 mesh", "8x8 torus" when all dimensions are
// rings, "4x4x8 mesh, dimension 3 wrapped", "5-cube" for five dimensions of
// size 2, "line of 7", "ring of 7", "single switch".
func (g *Grid) String() string {
	var wrapped []string
	cube := true
	for d, size := range g.Dims {
		cube = cube && size == 2
		if g.Wrap[d] {
			wrapped = append(wrapped, strconv.Itoa(d+1))
		}
	}
	switch {
	case len(g.Dims) == 1 && g.Dims[0] == 1:
		return "single switch"
	case len(g.Dims) == 1 && g.Wrap[0]:
		return "ring of " + times(g.Dims)
	case len(g.Dims) == 1:
		return "line of " + times(g.Dims)
	case cube && len(g.Dims) > 2:
		return fmt.Sprintf("%d-cube", len(g.Dims))
	case len(wrapped) == 0:
		return times(g.Dims) + " mesh"
	case len(wrapped) == len(g.Dims):
		return times(g.Dims) + " torus"
	case len(wrapped) == 1:
		return times(g.Dims) + " mesh, dimension " + wrapped[0] + " wrapped"
	}
	return times(g.Dims) + " mesh, dimensions " + strings.Join(wrapped[:len(wrapped)-1], ", ") + " and " + wrapped[len(wrapped)-1] + " wrapped"
}

// Faults is Missing in words.
func (g *Grid) Faults() []string {
	words := make([]string, len(g.Missing))
	for i, m := range g.Missing {
		at := 0
		for d, x := range m.At {
			at += x * g.step[d]
		}
		if m.Dir == NoDir {
			words[i] = "no switch at " + coordinates(m.At) + g.beside(at)
			continue
		}
		s := g.at[at]
		t := g.Neighbor(s, m.Dir)
		words[i] = fmt.Sprintf("no cable between %s at %s and %s at %s", nameOf(g.Fabric, s), g.place(s), nameOf(g.Fabric, t), g.place(t))
	}
	return words
}

// beside names the switches next to a position.
func (g *Grid) beside(at int) string {
	var names []string
	for d, step := range g.step {
		x, size := at/step%g.Dims[d], g.Dims[d]
		for _, to := range []int{x + 1, x - 1} {
			if g.Wrap[d] {
				to = (to + size) % size
			}
			if to >= 0 && to < size {
				if s := g.at[at+(to-x)*step]; s != fabric.NoNode {
					names = append(names, nameOf(g.Fabric, s))
				}
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	if last := len(names) - 1; last > 0 {
		names = append(names[:last-1], names[last-1]+" and "+names[last])
	}
	return ", next to " + strings.Join(names, ", ")
}

// place is the coordinates of s as text.
func (g *Grid) place(s fabric.NodeID) string {
	at := make([]int, len(g.Dims))
	for d, x := range g.Coord(s) {
		at[d] = int(x)
	}
	return coordinates(at)
}
