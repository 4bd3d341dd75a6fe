package mesh

import (
	"github.com/ibweave/ibweave/fabric"
)

// Dir is a direction on a grid: 2*d towards greater coordinates of dimension
// d, 2*d+1 towards smaller ones. On a mesh of two dimensions East, North, West
// and South are the paper's names of them.
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

// Dim is the dimension that d is a direction of.
func (d Dir) Dim() int { return int(d) >> 1 }

// Positive says whether d leads to greater coordinates, but for the cable that
// closes a ring.
func (d Dir) Positive() bool { return d&1 == 0 }

// Opposite is the direction back.
func (d Dir) Opposite() Dir { return d ^ 1 }

// Grid is a switch graph as an n-dimensional mesh or torus: the coordinates of
// every switch and the direction of every port.
type Grid struct {
	Fabric *fabric.Fabric
	// Dims is the number of positions along each dimension, 2 or more each;
	// {1} for a single switch.
	Dims []int
	// Wrap says by dimension whether it is a ring. A ring has 3 or more
	// positions: of two positions, several cables are parallel links.
	Wrap []bool
	// Missing lists what a full grid has and the fabric does not.
	Missing []Fault

	coord []int16         // by switch and dimension
	at    []fabric.NodeID // by position: the switch there, or NoNode
	step  []int           // by dimension: how far apart positions are that differ by 1
	dir   []Dir           // by PortID: where a switch's cable to another switch leads, else NoDir
	start []int32         // by switch and direction, one more: its part of ports
	ports []fabric.PortID // of a switch, by direction, then by number
}

// Fault is a switch or a cable that is missing in a grid.
type Fault struct {
	// At is the position: of the missing switch, or of the end of the missing
	// cable from which Dir leads to greater coordinates.
	At []int
	// Dir is NoDir for a switch, else the direction of the cable.
	Dir Dir
}

// newGrid makes the grid in which switch s stands at coord[s*len(dims):] and
// the port p of a switch leads in direction dir[p].
func newGrid(f *fabric.Fabric, dims []int, wrap []bool, coord []int16, dir []Dir) *Grid {
	g := &Grid{Fabric: f, Dims: dims, Wrap: wrap, coord: coord, dir: dir, step: make([]int, len(dims))}
	positions := 1
	for d := len(dims) - 1; d >= 0; d-- {
		g.step[d] = positions
		positions *= dims[d]
	}
	g.at = make([]fabric.NodeID, positions)
	for i := range g.at {
		g.at[i] = fabric.NoNode
	}
	ways := 2 * len(dims)
	g.start = make([]int32, f.NumSwitches()*ways+1)
	for s := range fabric.NodeID(f.NumSwitches()) {
		g.at[g.Position(s)] = s
		ports, _ := f.SwitchLinks(s)
		for way := range Dir(ways) {
			g.start[int(s)*ways+int(way)] = int32(len(g.ports))
			for _, p := range ports {
				if dir[p] == way {
					g.ports = append(g.ports, p)
				}
			}
		}
	}
	g.start[len(g.start)-1] = int32(len(g.ports))
	return g
}

// Positions is the product of Dims.
func (g *Grid) Positions() int { return len(g.at) }

// Coord is the coordinates of switch s.
func (g *Grid) Coord(s fabric.NodeID) []int16 {
	n := len(g.Dims)
	return g.coord[int(s)*n : (int(s)+1)*n : (int(s)+1)*n]
}

// Position numbers the positions row by row, the first dimension slowest.
func (g *Grid) Position(s fabric.NodeID) int {
	at := 0
	for d, x := range g.Coord(s) {
		at += int(x) * g.step[d]
	}
	return at
}

// At is the switch at a position, NoNode where it is missing.
func (g *Grid) At(position int) fabric.NodeID { return g.at[position] }

// Dir is the direction in which port p of a switch leads, NoDir for ports
// that do not lead to another switch.
func (g *Grid) Dir(p fabric.PortID) Dir { return g.dir[p] }

// Ports is the ports of switch s that lead in direction d: one for each of the
// parallel links, by number; none where the cable is missing.
func (g *Grid) Ports(s fabric.NodeID, d Dir) []fabric.PortID {
	i := int(s)*2*len(g.Dims) + int(d)
	return g.ports[g.start[i]:g.start[i+1]]
}

// Neighbor is the switch next to s in direction d, whether or not a cable leads
// there: NoNode past the edge of a mesh and where a switch is missing.
func (g *Grid) Neighbor(s fabric.NodeID, d Dir) fabric.NodeID {
	dim := d.Dim()
	x, size := int(g.Coord(s)[dim]), g.Dims[dim]
	at := g.Position(s)
	switch {
	case d.Positive() && x+1 < size:
		at += g.step[dim]
	case !d.Positive() && x > 0:
		at -= g.step[dim]
	case !g.Wrap[dim]:
		return fabric.NoNode
	case d.Positive():
		at -= (size - 1) * g.step[dim]
	default:
		at += (size - 1) * g.step[dim]
	}
	return g.at[at]
}

// Wraps says whether port p's cable closes a ring.
func (g *Grid) Wraps(p fabric.PortID) bool {
	d := g.dir[p]
	if d == NoDir || !g.Wrap[d.Dim()] {
		return false
	}
	x := int(g.Coord(g.Fabric.Owner(p))[d.Dim()])
	return d.Positive() && x == g.Dims[d.Dim()]-1 || !d.Positive() && x == 0
}
