package mesh

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
)

// Dir is a direction on a grid: 2*d towards greater coordinates of dimension
// d, 2*d+1 towards smaller ones. East, North, West and South are the paper's
// names on a mesh of two dimensions.
type Dir int8

// The directions of the first two dimensions, and none.
const (
	East  Dir = 0
	West  Dir = 1
	North Dir = 2
	South Dir = 3
	NoDir Dir = -1
)

// Plus and Minus are the directions of dimension d.
func Plus(d int) Dir  { return Dir(2 * d) }
func Minus(d int) Dir { return Dir(2*d + 1) }

// Dim returns the dimension of d.
func (d Dir) Dim() int { return int(d) >> 1 }

// Positive returns true if d leads to greater coordinates (or back to 0 by
// the cable that closes a ring).
func (d Dir) Positive() bool { return d&1 == 0 }

// Opposite returns the direction back.
func (d Dir) Opposite() Dir { return d ^ 1 }

// Shape describes the sizes of a grid. Its positions are numbered row by row,
// the first dimension slowest.
type Shape struct {
	// Dims is the number of positions along each dimension, 2 or more each;
	// {1} for a single switch.
	Dims []int
	// Wrap is true for dimensions that are rings. A ring has 3 or more
	// positions: with two, its cables are parallel links.
	Wrap []bool

	step []int // by dimension: what a step by 1 adds to the position
}

func newShape(dims []int, wrap []bool) Shape {
	s := Shape{Dims: dims, Wrap: wrap, step: make([]int, len(dims))}
	step := 1
	for d := len(dims) - 1; d >= 0; d-- {
		s.step[d] = step
		step *= dims[d]
	}
	return s
}

// Positions returns the product of Dims.
func (s Shape) Positions() int {
	n := 1
	for _, size := range s.Dims {
		n *= size
	}
	return n
}

// Next returns the position next to one in direction d, -1 past the edge of a
// mesh.
func (s Shape) Next(position int, d Dir) int {
	dim := d.Dim()
	size, step := s.Dims[dim], s.step[dim]
	x := position / step % size
	y := x + 1
	if !d.Positive() {
		y = x - 1
	}
	switch {
	case y >= 0 && y < size:
	case s.Wrap[dim]:
		y = (y + size) % size
	default:
		return -1
	}
	return position + (y-x)*step
}

// coord returns the coordinate of a position in dimension d.
func (s Shape) coord(position, d int) int { return position / s.step[d] % s.Dims[d] }

func (s Shape) coords(position int) []int {
	at := make([]int, len(s.Dims))
	for d := range at {
		at[d] = s.coord(position, d)
	}
	return at
}

// Coordinates writes the coordinates of a position as "2,3".
func (s Shape) Coordinates(position int) string { return coordinates(s.coords(position)) }

func (s Shape) rings() int {
	return text.CountIf(s.Wrap, func(ring bool) bool { return ring })
}

// String names the shape: "16x16 mesh", "8x8 torus" if all dimensions are
// rings, "4x4x8 mesh, dimension 3 wrapped", "5-cube" for five dimensions of
// size 2, "line of 7", "ring of 7", "single switch".
func (s Shape) String() string {
	var wrapped []string
	cube := true
	for d, size := range s.Dims {
		cube = cube && size == 2
		if s.Wrap[d] {
			wrapped = append(wrapped, strconv.Itoa(d+1))
		}
	}
	switch {
	case len(s.Dims) == 1 && s.Dims[0] == 1:
		return "single switch"
	case len(s.Dims) == 1 && s.Wrap[0]:
		return "ring of " + times(s.Dims)
	case len(s.Dims) == 1:
		return "line of " + times(s.Dims)
	case cube && len(s.Dims) > 2:
		return fmt.Sprintf("%d-cube", len(s.Dims))
	case len(wrapped) == 0:
		return times(s.Dims) + " mesh"
	case len(wrapped) == len(s.Dims):
		return times(s.Dims) + " torus"
	case len(wrapped) == 1:
		return times(s.Dims) + " mesh, dimension " + wrapped[0] + " wrapped"
	}
	return times(s.Dims) + " mesh, dimensions " + text.List(wrapped, "and") + " wrapped"
}

// Grid is a switch graph as an n-dimensional mesh or torus, with the
// coordinates of every switch and the direction of every port.
type Grid struct {
	Fabric *fabric.Fabric
	Shape
	// Missing lists the switches and cables that a full grid has and the
	// fabric lacks.
	Missing []Fault
	// Extra lists the cables that DetectOptions.LeaveOut left out, each by
	// its port on the switch with the lower GUID.
	Extra []fabric.PortID

	coords []int16         // by switch and dimension
	at     []fabric.NodeID // by position: the switch there, or NoNode
	dir    []Dir           // by PortID: direction of a cable between switches, else NoDir
	start  []int32         // by switch and direction: its part of ports; one more at the end
	ports  []fabric.PortID // the ports of each switch, by direction, then by number
}

// Fault is a switch or a cable that a grid lacks.
type Fault struct {
	// At is the position of the missing switch, or of the end of the missing
	// cable from which Dir leads to greater coordinates.
	At []int
	// Dir is NoDir for a switch, else the direction of the cable.
	Dir Dir
}

// newGrid makes the grid in which switch s stands at coords[s*len(dims):] and
// the port p of a switch leads in direction dir[p].
func newGrid(f *fabric.Fabric, dims []int, wrap []bool, coords []int16, dir []Dir) *Grid {
	g := &Grid{Fabric: f, Shape: newShape(dims, wrap), coords: coords, dir: dir}
	g.at = slices.Repeat([]fabric.NodeID{fabric.NoNode}, g.Positions())
	dirs := 2 * len(dims)
	g.start = make([]int32, f.NumSwitches()*dirs+1)
	for _, s := range f.Switches() {
		g.at[g.Position(s)] = s
		ports, _ := f.SwitchLinks(s)
		for way := range Dir(dirs) {
			g.start[int(s)*dirs+int(way)] = int32(len(g.ports))
			for _, p := range ports {
				if dir[p] == way {
					g.ports = append(g.ports, p)
				}
			}
		}
	}
	g.start[len(g.start)-1] = int32(len(g.ports))
	g.findMissing()
	return g
}

// Coord returns the coordinates of switch s.
func (g *Grid) Coord(s fabric.NodeID) []int16 {
	n := len(g.Dims)
	return g.coords[int(s)*n : (int(s)+1)*n : (int(s)+1)*n]
}

// Position returns the position of switch s.
func (g *Grid) Position(s fabric.NodeID) int {
	at := 0
	for d, x := range g.Coord(s) {
		at += int(x) * g.step[d]
	}
	return at
}

// At returns the switch at a position, NoNode if it is missing.
func (g *Grid) At(position int) fabric.NodeID { return g.at[position] }

// Dir returns the direction in which port p of a switch leads, NoDir for
// ports that do not lead to another switch.
func (g *Grid) Dir(p fabric.PortID) Dir { return g.dir[p] }

// Ports returns the ports of switch s that lead in direction d, ascending:
// one for each parallel link, none if the cable is missing.
func (g *Grid) Ports(s fabric.NodeID, d Dir) []fabric.PortID {
	i := int(s)*2*len(g.Dims) + int(d)
	return g.ports[g.start[i]:g.start[i+1]]
}

// Neighbor returns the switch next to s in direction d, with or without a
// cable: NoNode past the edge of a mesh and if the switch is missing.
func (g *Grid) Neighbor(s fabric.NodeID, d Dir) fabric.NodeID {
	if at := g.Next(g.Position(s), d); at >= 0 {
		return g.at[at]
	}
	return fabric.NoNode
}

// Wraps returns true if port p's cable closes a ring.
func (g *Grid) Wraps(p fabric.PortID) bool {
	d := g.dir[p]
	if d == NoDir || !g.Wrap[d.Dim()] {
		return false
	}
	x := int(g.Coord(g.Fabric.Owner(p))[d.Dim()])
	return d.Positive() && x == g.Dims[d.Dim()]-1 || !d.Positive() && x == 0
}

// findMissing sets Missing: switches, and cables between switches, by
// position, then by direction.
func (g *Grid) findMissing() {
	fault := func(position int, dir Dir) {
		g.Missing = append(g.Missing, Fault{At: g.Shape.coords(position), Dir: dir})
	}
	for position, s := range g.at {
		if s == fabric.NoNode {
			fault(position, NoDir)
			continue
		}
		for d := range g.Dims {
			if g.Neighbor(s, Plus(d)) != fabric.NoNode && len(g.Ports(s, Plus(d))) == 0 {
				fault(position, Plus(d))
			}
		}
	}
}

// Faults describes Missing in words.
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
		s, t := g.at[at], g.at[g.Next(at, m.Dir)]
		words[i] = fmt.Sprintf("no cable between %s at %s and %s at %s", nameOf(g.Fabric, s), g.coordinatesOf(s), nameOf(g.Fabric, t), g.coordinatesOf(t))
	}
	return words
}

// beside names the switches next to a position.
func (g *Grid) beside(position int) string {
	var names []string
	for d := range Dir(2 * len(g.Dims)) {
		if at := g.Next(position, d); at >= 0 && g.at[at] != fabric.NoNode {
			names = append(names, nameOf(g.Fabric, g.at[at]))
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ", next to " + text.List(names, "and")
}

func (g *Grid) coordinatesOf(s fabric.NodeID) string { return g.Coordinates(g.Position(s)) }
