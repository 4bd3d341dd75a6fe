package mesh

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
)

// reading is a fit whose dimensions have an order and directions.
type reading struct {
	f    *fabric.Fabric
	ends []end // by switch and port
	axes []*axis
}

// end is a port of a switch with a cable to a neighbour.
type end struct {
	from, to fabric.NodeID
	port     fabric.PortID
	lowest   bool // it is the lowest of parallel cables
}

// axis is a dimension of the grid: one dimension of a fit, or two of size 2 read
// as a ring of four.
type axis struct {
	size        int
	ring        bool
	coord       []int // by switch
	plus, minus numbering
}

// numbering counts the port numbers that lead in one direction, for each pair of
// neighbours only the lowest one.
type numbering struct {
	count [int(fabric.MaxPortNum) + 1]int32
	total int32
	first fabric.PortID // the lowest of these ports
}

// usual returns the most common number, the lowest of several; 255 if there are
// none.
func (n *numbering) usual() fabric.PortNum {
	best := fabric.NoPath
	most := int32(0)
	for p, c := range n.count {
		if c > most {
			best, most = fabric.PortNum(p), c
		}
	}
	return best
}

// clear returns true if more than half of the ports have the usual number.
func (n *numbering) clear() bool {
	return n.total > 0 && 2*n.count[n.usual()] > n.total
}

// aligned returns true if the numbers of both directions of an axis are clear and
// differ.
func (a *axis) aligned() bool {
	return a.plus.clear() && a.minus.clear() && a.plus.usual() != a.minus.usual()
}

// step returns 1 if a link leads along the axis to the next greater coordinate,
// or from the last to the first of a ring; -1 for the other way; 0 for links
// along other axes.
func (a *axis) step(e *end) int {
	switch diff := a.coord[e.to] - a.coord[e.from]; {
	case diff == 0:
		return 0
	case diff == 1 || a.ring && diff == 1-a.size:
		return 1
	}
	return -1
}

// flip reverses the axis.
func (a *axis) flip() {
	for s, x := range a.coord {
		a.coord[s] = a.size - 1 - x
	}
	a.plus, a.minus = a.minus, a.plus
}

// setOrigin shifts the coordinates of a ring so that switch s has 0.
func (a *axis) setOrigin(s fabric.NodeID) {
	zero := a.coord[s]
	for s, x := range a.coord {
		a.coord[s] = (x - zero + a.size) % a.size
	}
}

// newAxis makes an axis and counts its port numbers.
func (r *reading) newAxis(size int, ring bool, coord []int) *axis {
	a := &axis{size: size, ring: ring, coord: coord, plus: numbering{first: math.MaxInt32}, minus: numbering{first: math.MaxInt32}}
	for i := range r.ends {
		e := &r.ends[i]
		step := a.step(e)
		if step == 0 || !e.lowest {
			continue
		}
		n := &a.minus
		if step > 0 {
			n = &a.plus
		}
		n.count[r.f.Num(e.port)]++
		n.total++
		n.first = min(n.first, e.port)
	}
	return a
}

// join makes a ring of four of two axes of size 2.
func (r *reading) join(a, b *axis) *axis {
	coord := make([]int, len(a.coord))
	for s := range coord {
		coord[s] = slices.Index(ringOfFour[:], [2]int{a.coord[s], b.coord[s]})
	}
	return r.newAxis(4, true, coord)
}

// newReading joins pairs of dimensions of size 2 to rings of four and orders the
// dimensions, as in dims if that is not nil; dims must be a reading of the shape.
func newReading(f *fabric.Fabric, g *links, found *fit, dims []int) *reading {
	r := &reading{f: f}
	for _, s := range f.Switches() {
		ports, to := f.SwitchLinks(s)
		for i, t := range to {
			if g.linked(s, t) {
				r.ends = append(r.ends, end{s, t, ports[i], !slices.Contains(to[:i], t)})
			}
		}
	}
	var whole, twos []*axis
	rings := true
	for d, size := range found.Dims {
		coord := text.Each(found.position, func(p int) int { return found.coord(p, d) })
		a := r.newAxis(size, found.Wrap[d], coord)
		if size == 2 {
			twos = append(twos, a)
		} else {
			whole = append(whole, a)
			rings = rings && a.ring
		}
	}
	slices.SortFunc(twos, byNumber)
	fours := len(twos) / 2 // how many there may be, of two axes each
	if dims != nil {
		isFour := func(size int) bool { return size == 4 }
		fours = max(0, text.CountIf(dims, isFour)-text.CountIf(found.Dims, isFour))
	}
	join := func(i, j int, a *axis) {
		whole = append(whole, a)
		twos = slices.Delete(slices.Delete(twos, j, j+1), i, i+1)
		fours--
	}
	for i := 0; i < len(twos) && fours > 0; i++ {
		for j := i + 1; j < len(twos); j++ {
			if a := r.join(twos[i], twos[j]); a.aligned() {
				join(i, j, a)
				i--
				break
			}
		}
	}
	for (dims != nil || rings && len(whole) > 0) && fours > 0 && len(twos) > 1 {
		join(0, 1, r.join(twos[0], twos[1]))
	}
	r.axes = append(whole, twos...)
	slices.SortFunc(r.axes, byNumber)
	if dims != nil {
		r.axes = ordered(r.axes, dims)
	}
	return r
}

// byNumber orders dimensions by the usual port number in either direction, then
// by their lowest port.
func byNumber(a, b *axis) int {
	return cmp.Or(
		cmp.Compare(min(a.plus.usual(), a.minus.usual()), min(b.plus.usual(), b.minus.usual())),
		cmp.Compare(min(a.plus.first, a.minus.first), min(b.plus.first, b.minus.first)))
}

// ordered puts the axes into the order of the sizes in dims.
func ordered(axes []*axis, dims []int) []*axis {
	var in []*axis
	for _, size := range dims {
		if i := slices.IndexFunc(axes, func(a *axis) bool { return a.size == size }); i >= 0 {
			in = append(in, axes[i])
			axes = slices.Delete(axes, i, i+1)
		}
	}
	return in
}

// orient returns the reading of a fit as a grid, with the origin of opt if it has
// one.
func orient(f *fabric.Fabric, g *links, found *fit, opt DetectOptions) (*Grid, error) {
	r := newReading(f, g, found, opt.Dims)
	start := fabric.NoNode
	if opt.Origin != 0 {
		s, ok := f.SwitchByGUID(opt.Origin)
		if !ok {
			return nil, &NotGridError{Found: r.shape().String(), Reason: fmt.Sprintf("no switch has the GUID of the origin, %s", opt.Origin)}
		}
		if !r.corner(s) {
			return nil, &NotGridError{Found: r.shape().String(), Reason: fmt.Sprintf("the origin, %s, is no corner; %s", nameOf(f, s), r.corners())}
		}
		start = s
	}
	return r.grid(start), nil
}

// grid gives each axis its direction, by the port numbers if they are clear,
// and its start: switch start or, without one, the first corner for which
// agrees is true.
func (r *reading) grid(start fabric.NodeID) *Grid {
	for _, a := range r.axes {
		if a.aligned() && a.minus.usual() < a.plus.usual() || !a.aligned() && a.minus.first < a.plus.first {
			a.flip()
		}
	}
	for s := fabric.NodeID(0); start == fabric.NoNode && int(s) < r.f.NumSwitches(); s++ {
		if r.corner(s) && r.agrees(s) {
			start = s
		}
	}
	for _, a := range r.axes {
		switch {
		case a.ring && start == fabric.NoNode: // no switch is at such a corner
			a.setOrigin(0)
		case a.ring:
			a.setOrigin(start)
		case start != fabric.NoNode && a.coord[start] != 0:
			a.flip()
		}
	}
	shape := r.shape()
	coords := make([]int16, 0, r.f.NumSwitches()*len(shape.Dims))
	for s := range r.f.NumSwitches() {
		for _, a := range r.axes {
			coords = append(coords, int16(a.coord[s]))
		}
	}
	if len(r.axes) == 0 {
		coords = []int16{0}
	}
	dir := slices.Repeat([]Dir{NoDir}, r.f.NumPorts())
	for i := range r.ends {
		e := &r.ends[i]
		for d, a := range r.axes {
			switch a.step(e) {
			case 1:
				dir[e.port] = Plus(d)
			case -1:
				dir[e.port] = Minus(d)
			}
		}
	}
	return newGrid(r.f, shape.Dims, shape.Wrap, coords, dir)
}

func (r *reading) shape() Shape {
	if len(r.axes) == 0 {
		return newShape([]int{1}, []bool{false})
	}
	dims, wrap := make([]int, len(r.axes)), make([]bool, len(r.axes))
	for i, a := range r.axes {
		dims[i], wrap[i] = a.size, a.ring
	}
	return newShape(dims, wrap)
}

// corner returns true if s is at an end of every axis that is no ring.
func (r *reading) corner(s fabric.NodeID) bool {
	return !slices.ContainsFunc(r.axes, func(a *axis) bool {
		return !a.ring && a.coord[s] != 0 && a.coord[s] != a.size-1
	})
}

// agrees returns true if s has coordinate 0 on open axes with clear numbers.
func (r *reading) agrees(s fabric.NodeID) bool {
	return !slices.ContainsFunc(r.axes, func(a *axis) bool {
		return !a.ring && a.aligned() && a.coord[s] != 0
	})
}

// corners lists up to 16 corners by GUID.
func (r *reading) corners() string {
	list := text.Where(r.f.Switches(), r.corner)
	if len(list) == 0 {
		return "no corner has a switch"
	}
	return "the corners are " + namesOf(r.f, list, 16)
}
