package mesh

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
)

// axis is a dimension of the grid to be, made of one dimension of a fit or of
// two of size 2 that are a ring of four.
type axis struct {
	of, and     int // dimensions of the fit; and is -1 for none
	size        int32
	ring        bool
	plus, minus numbering // before it is turned
	flip        bool      // whether it is turned round
	zero        int32     // of a ring: what the coordinate of its beginning is else
}

// at is the coordinate of a switch along the axis, before it is turned.
func (a *axis) at(f *fit, s fabric.NodeID) int32 {
	coord := f.coord[int(s)*len(f.size) : (int(s)+1)*len(f.size)]
	if a.and < 0 {
		return coord[a.of]
	}
	return int32(slices.Index(ringOfFour[:], [2]int32{coord[a.of], coord[a.and]}))
}

// turned is the coordinate once the axis has its direction and its zero.
func (a *axis) turned(x int32) int32 {
	if a.flip {
		x = a.size - 1 - x
	}
	if a.ring {
		x = (x - a.zero + a.size) % a.size
	}
	return x
}

// numbering is what the port numbers say of a direction: for each pair of
// neighbours in it the lowest port that leads from one to the other.
type numbering struct {
	count [int(fabric.MaxPortNum) + 1]int32
	total int32
	first fabric.PortID // the lowest of all
}

// usual is the most common number, the lowest of them, or 255 without ports.
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

// clear says whether more than half have the usual number.
func (n *numbering) clear() bool {
	return n.total > 0 && 2*n.count[n.usual()] > n.total
}

// aligned says whether both directions of an axis are clear and differ.
func (a *axis) aligned() bool {
	return a.plus.clear() && a.minus.clear() && a.plus.usual() != a.minus.usual()
}

// number looks at the ports along the axis.
func (a *axis) number(v *survey) {
	a.plus, a.minus = numbering{first: math.MaxInt32}, numbering{first: math.MaxInt32}
	v.visit(func(s fabric.NodeID, p fabric.PortID, d Dir, lowest bool) {
		if !lowest || d.Dim() != a.of && d.Dim() != a.and {
			return
		}
		n := &a.minus
		if a.positive(v, s, d) {
			n = &a.plus
		}
		n.count[v.f.Num(p)]++
		n.total++
		n.first = min(n.first, p)
	})
}

// positive says whether direction d of the fit, from s, is towards greater
// coordinates of the axis before it is turned, or closes the ring upwards.
func (a *axis) positive(v *survey, s fabric.NodeID, d Dir) bool {
	if a.and < 0 {
		return d.Positive()
	}
	x := a.at(v.fit, s)
	return (x%2 == 0) == (d.Dim() == a.of) // 0,0 to 1,0 to 1,1 to 0,1
}

// survey is the directions of all ports in a fit.
type survey struct {
	f   *fabric.Fabric
	fit *fit
	dir []Dir // by PortID
	// lowest has the ports that are the lowest of the parallel cables.
	lowest []bool // by PortID
}

func newSurvey(f *fabric.Fabric, g *links, found *fit) *survey {
	v := &survey{f: f, fit: found, dir: make([]Dir, f.NumPorts()), lowest: make([]bool, f.NumPorts())}
	for p := range v.dir {
		v.dir[p] = NoDir
	}
	for s := range fabric.NodeID(f.NumSwitches()) {
		ports, to := f.SwitchLinks(s)
		for i, p := range ports {
			if _, linked := g.slot(s, to[i]); !linked {
				continue
			}
			v.lowest[p] = true
			for j := range i {
				if to[j] == to[i] {
					v.dir[p], v.lowest[p] = v.dir[ports[j]], false
					break
				}
			}
			if v.lowest[p] {
				v.dir[p] = found.direction(s, to[i])
			}
		}
	}
	return v
}

// visit goes through the ports that lead to other switches, by switch and
// number.
func (v *survey) visit(each func(s fabric.NodeID, p fabric.PortID, d Dir, lowest bool)) {
	for s := range fabric.NodeID(v.f.NumSwitches()) {
		ports, _ := v.f.SwitchLinks(s)
		for _, p := range ports {
			if d := v.dir[p]; d != NoDir {
				each(s, p, d, v.lowest[p])
			}
		}
	}
}

// orient chooses among the readings of a fit.
func orient(f *fabric.Fabric, g *links, found *fit, opt DetectOptions) (*Grid, error) {
	v := newSurvey(f, g, found)
	axes := v.axes(opt.Dims)
	if err := v.turn(axes, opt.Origin); err != nil {
		return nil, err
	}
	return v.grid(g, axes), nil
}

// axes joins pairs of dimensions of size 2 to rings of four and puts the
// dimensions in order: in that of dims, which must be a reading of the shape,
// when it is not nil.
func (v *survey) axes(dims []int) []axis {
	var whole, twos []axis
	rings := true
	for d, size := range v.fit.size {
		a := axis{of: d, and: -1, size: size, ring: v.fit.ring[d]}
		a.number(v)
		if size == 2 {
			twos = append(twos, a)
		} else {
			whole = append(whole, a)
			rings = rings && a.ring
		}
	}
	slices.SortFunc(twos, byNumber)
	join := func(i, j int) axis {
		a := axis{of: twos[i].of, and: twos[j].of, size: 4, ring: true}
		a.number(v)
		return a
	}
	wanted := -1 // rings of four
	if dims != nil {
		wanted = 0
		for _, size := range dims {
			if size == 4 {
				wanted++
			}
		}
		for _, a := range whole {
			if a.size == 4 {
				wanted--
			}
		}
		wanted = max(wanted, 0)
	}
	drop := func(i, j int) {
		twos = slices.Delete(slices.Delete(twos, j, j+1), i, i+1)
	}
	for i := 0; i < len(twos) && wanted != 0; i++ {
		for j := i + 1; j < len(twos); j++ {
			if a := join(i, j); a.aligned() {
				whole = append(whole, a)
				drop(i, j)
				wanted--
				i--
				break
			}
		}
	}
	if wanted < 0 && dims == nil && rings && len(whole) > 0 {
		wanted = len(twos) / 2
	}
	for ; wanted > 0 && len(twos) > 1; wanted-- {
		whole = append(whole, join(0, 1))
		drop(0, 1)
	}
	axes := append(whole, twos...)
	slices.SortFunc(axes, byNumber)
	if dims == nil {
		return axes
	}
	return ordered(axes, dims)
}

// byNumber orders dimensions by the usual port number in either direction, then
// by their lowest port.
func byNumber(a, b axis) int {
	return cmp.Or(
		cmp.Compare(min(a.plus.usual(), a.minus.usual()), min(b.plus.usual(), b.minus.usual())),
		cmp.Compare(min(a.plus.first, a.minus.first), min(b.plus.first, b.minus.first)))
}

// ordered puts the axes into the order of the sizes in dims.
func ordered(axes []axis, dims []int) []axis {
	var in []axis
	for _, size := range dims {
		if i := slices.IndexFunc(axes, func(a axis) bool { return int(a.size) == size }); i >= 0 {
			in = append(in, axes[i])
			axes = slices.Delete(axes, i, i+1)
		}
	}
	return in
}

// turn gives each axis its direction and its zero.
func (v *survey) turn(axes []axis, origin fabric.GUID) *NotGridError {
	start := fabric.NoNode
	if origin != 0 {
		s, ok := v.f.SwitchByGUID(origin)
		if !ok {
			return &NotGridError{Found: v.grid(nil, axes).String(), Reason: fmt.Sprintf("no switch has the GUID of the origin, %s", origin)}
		}
		if !v.corner(axes, s) {
			return &NotGridError{Found: v.grid(nil, axes).String(), Reason: fmt.Sprintf("the origin, %s, is no corner; %s", nameOf(v.f, s), v.corners(axes))}
		}
		start = s
	}
	// The port numbers turn an axis where they agree.
	for i := range axes {
		a := &axes[i]
		if a.aligned() {
			a.flip = a.minus.usual() < a.plus.usual()
		} else {
			a.flip = a.minus.first < a.plus.first
		}
	}
	if start == fabric.NoNode {
		for s := range fabric.NodeID(v.f.NumSwitches()) {
			if v.corner(axes, s) && v.agrees(axes, s) {
				start = s
				break
			}
		}
	}
	if start == fabric.NoNode { // all such corners are missing
		for i := range axes {
			if a := &axes[i]; a.ring {
				a.zero = a.turned(a.at(v.fit, 0))
			}
		}
		return nil
	}
	for i := range axes {
		a := &axes[i]
		x := a.at(v.fit, start)
		if a.ring {
			a.zero = a.turned(x)
		} else {
			a.flip = x != 0
		}
	}
	return nil
}

// corner says whether s is at an end of every axis that is no ring.
func (v *survey) corner(axes []axis, s fabric.NodeID) bool {
	for i := range axes {
		a := &axes[i]
		if x := a.at(v.fit, s); !a.ring && x != 0 && x != a.size-1 {
			return false
		}
	}
	return true
}

// agrees says whether a corner is where the numbers of the ports begin.
func (v *survey) agrees(axes []axis, s fabric.NodeID) bool {
	for i := range axes {
		a := &axes[i]
		if !a.ring && a.aligned() && a.turned(a.at(v.fit, s)) != 0 {
			return false
		}
	}
	return true
}

// corners lists the corners, by GUID, at most 16 of them.
func (v *survey) corners(axes []axis) string {
	const most = 16
	var names []string
	for s := range fabric.NodeID(v.f.NumSwitches()) {
		if v.corner(axes, s) {
			if len(names) == most {
				names = append(names, "...")
				break
			}
			names = append(names, nameOf(v.f, s))
		}
	}
	if len(names) == 0 {
		return "no corner has a switch"
	}
	return "the corners are " + strings.Join(names, ", ")
}

// nameOf is "name" (GUID), for messages.
func nameOf(f *fabric.Fabric, s fabric.NodeID) string {
	return fmt.Sprintf("%q (%s)", f.Name(s).Text, f.Node(s).GUID)
}

// grid is the grid with these axes. Without g, nothing is missing in it.
func (v *survey) grid(g *links, axes []axis) *Grid {
	n := v.f.NumSwitches()
	k := len(axes)
	dims, wrap := make([]int, k), make([]bool, k)
	axisOf := make([]int, len(v.fit.size))
	for i := range axes {
		dims[i], wrap[i] = int(axes[i].size), axes[i].ring
		axisOf[axes[i].of] = i
		if axes[i].and >= 0 {
			axisOf[axes[i].and] = i
		}
	}
	if k == 0 {
		dims, wrap, k = []int{1}, []bool{false}, 1
	}
	coord := make([]int16, n*k)
	for s := range fabric.NodeID(n) {
		for i := range axes {
			coord[int(s)*k+i] = int16(axes[i].turned(axes[i].at(v.fit, s)))
		}
	}
	dir := make([]Dir, v.f.NumPorts())
	for p := range dir {
		dir[p] = NoDir
	}
	v.visit(func(s fabric.NodeID, p fabric.PortID, d Dir, _ bool) {
		a := &axes[axisOf[d.Dim()]]
		dir[p] = Minus(axisOf[d.Dim()])
		if a.positive(v, s, d) != a.flip {
			dir[p] = Plus(axisOf[d.Dim()])
		}
	})
	grid := newGrid(v.f, dims, wrap, coord, dir)
	if g != nil {
		grid.findMissing(g)
	}
	return grid
}

// findMissing fills in Missing: the switches, and the cables between switches
// that are there, by position, then by direction.
func (g *Grid) findMissing(l *links) {
	at := make([]int, len(g.Dims))
	for p, s := range g.at {
		rest := p
		for d, step := range g.step {
			at[d] = rest / step
			rest %= step
		}
		if s == fabric.NoNode {
			g.Missing = append(g.Missing, Fault{At: slices.Clone(at), Dir: NoDir})
			continue
		}
		for d := range g.Dims {
			t := g.Neighbor(s, Plus(d))
			if t == fabric.NoNode {
				continue
			}
			if _, linked := l.slot(s, t); !linked {
				g.Missing = append(g.Missing, Fault{At: slices.Clone(at), Dir: Plus(d)})
			}
		}
	}
}
