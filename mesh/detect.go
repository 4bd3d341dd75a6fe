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

// NotGridError says why the switches of a fabric are no grid.
type NotGridError struct {
	// Reason names switches by description and GUID, cables by their ports.
	Reason string
	// Cables are those that do not fit, each by its lower PortID, where some
	// stand out: without them, the fabric were a grid.
	Cables []fabric.PortID
}

func (e *NotGridError) Error() string { return "no mesh, torus or hypercube: " + e.Reason }

// Detect finds the grid that the switches of a fabric and the cables between
// them are: an n-dimensional mesh, a torus, a mixture of these, or a
// hypercube, which is 2x2x..., from 1 to 16 dimensions.
func Detect(f *fabric.Fabric, opt DetectOptions) (*Grid, error) {
	if f.NumSwitches() == 0 {
		return nil, &NotGridError{Reason: "there are no switches"}
	}
	g := newLinks(f, nil)
	found, odd := solve(g)
	if found == nil {
		return nil, explain(f, g, odd)
	}
	if opt.Dims != nil && !found.reads(opt.Dims) {
		var other *fit
		if g.switches() <= searchSwitches && g.square != nil {
			other = searchShapes(g, nil, func(s shape) bool { return s.reads(opt.Dims) })
		}
		if other == nil {
			v := newSurvey(f, g, found)
			return nil, fmt.Errorf("the switches are a %s, which does not read as %s", v.grid(nil, v.axes(nil)), times(opt.Dims))
		}
		found = other
	}
	return orient(f, g, found, opt)
}

func explain(f *fabric.Fabric, g *links, odd []cable) *NotGridError {
	if len(odd) == 0 {
		return &NotGridError{Reason: "no coordinates fit the cables between the switches"}
	}
	e := &NotGridError{Reason: fmt.Sprintf("the cable between %s and %s does not fit", nameOf(f, odd[0][0]), nameOf(f, odd[0][1]))}
	return e
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
			words[i] = "no switch at " + coordinates(m.At)
			continue
		}
		s := g.at[at]
		t := g.Neighbor(s, m.Dir)
		words[i] = fmt.Sprintf("no cable between %s at %s and %s at %s", nameOf(g.Fabric, s), g.place(s), nameOf(g.Fabric, t), g.place(t))
	}
	return words
}

// place is the coordinates of s as text.
func (g *Grid) place(s fabric.NodeID) string {
	at := make([]int, len(g.Dims))
	for d, x := range g.Coord(s) {
		at[d] = int(x)
	}
	return coordinates(at)
}
