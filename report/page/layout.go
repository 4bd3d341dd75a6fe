package page

import (
	"cmp"
	"math"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// unit is the distance of neighbouring switches in the densest row, in units of the
// drawing. y grows downwards.
const unit = 100

// layout has the places of all that is drawn.
type layout struct {
	kind   string    // "grid" or "levels"
	x, y   []float32 // by node: its middle
	radius []float32 // by node: half its width
	edges  []edge    // sorted by the switches they join
	cables []fabric.PortID
	within *layout // a layout of more nodes, whose size this one takes; nil for its own size
	// groupings are the groups that can be closed to boxes: pods, and the input's groups
	// with their switches.
	groupings []Grouping
}

// edge is the cables between two switches, drawn as one line.
type edge struct {
	a, b   fabric.NodeID // a < b
	cables int32         // index in layout.cables of its first cable's port on a
	// bend is how far to the left a curved line passes, on the way from a to b; 0 if it is
	// straight.
	bend float32
}

// ports lists the ports on switch a of edge i.
func (l *layout) ports(i int) []fabric.PortID {
	end := len(l.cables)
	if i+1 < len(l.edges) {
		end = int(l.edges[i+1].cables)
	}
	return l.cables[l.edges[i].cables:end]
}

// join sets edges and cables.
func (l *layout) join(f *fabric.Fabric) {
	type cable struct {
		to fabric.NodeID
		at fabric.PortID
	}
	var list []cable
	for _, s := range f.Switches() {
		list = list[:0]
		ports, to := f.SwitchLinks(s)
		for i, p := range ports {
			if to[i] > s {
				list = append(list, cable{to[i], p})
			}
		}
		slices.SortFunc(list, func(a, b cable) int { return cmp.Or(cmp.Compare(a.to, b.to), cmp.Compare(a.at, b.at)) })
		for i, c := range list {
			if i == 0 || list[i-1].to != c.to {
				l.edges = append(l.edges, edge{a: s, b: c.to, cables: int32(len(l.cables))})
			}
			l.cables = append(l.cables, c.at)
		}
	}
}

// edgeBetween returns the index of the edge between two switches, false if there is none.
func (l *layout) edgeBetween(a, b fabric.NodeID) (int, bool) {
	key := edge{a: min(a, b), b: max(a, b)}
	return slices.BinarySearchFunc(l.edges, key, func(x, y edge) int { return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b)) })
}

// hostsOf lists, by switch, the CAs and routers whose first cable leads to it, in the order
// of its ports.
func hostsOf(f *fabric.Fabric) [][]fabric.NodeID {
	hosts := make([][]fabric.NodeID, f.NumSwitches())
	placed := make([]bool, f.NumNodes())
	ports := slices.Clone(f.CAPorts())
	slices.SortStableFunc(ports, func(a, b fabric.PortID) int {
		return cmp.Or(cmp.Compare(f.Num(a), f.Num(b)), cmp.Compare(f.Peer(a), f.Peer(b)))
	})
	for _, p := range ports {
		n, s := f.Owner(p), f.Owner(f.Peer(p))
		if !placed[n] && f.IsSwitch(s) {
			placed[n] = true
			hosts[s] = append(hosts[s], n)
		}
	}
	return hosts
}

// block places hosts in rows, in a block of at most width x height. The middle of its upper
// edge is at x, y; of its lower edge if up is set.
func (l *layout) block(hosts []fabric.NodeID, x, y, width, height float64, up bool) {
	n := len(hosts)
	if n == 0 {
		return
	}
	best, columns := 0.0, 1
	for c := 1; c <= n; c++ {
		cell := min(width/float64(c), height/math.Ceil(float64(n)/float64(c)))
		if cell > best*(1+1e-6) {
			best, columns = cell, c
		}
	}
	cell := min(best, 0.3*unit)
	for i, h := range hosts {
		row, column := i/columns, i%columns
		wide := min(columns, n-row*columns)
		dy := (float64(row) + 0.5) * cell
		if up {
			dy = -dy
		}
		l.x[h] = float32(x + (float64(column)-float64(wide-1)/2)*cell)
		l.y[h] = float32(y + dy)
		l.radius[h] = float32(0.32 * cell)
	}
}

// point is a place in the layout.
type point struct{ X, Y float64 }

// box returns the smallest box around everything, in units of the layout.
func (l *layout) box() (left, top, right, bottom float64) {
	if l.within != nil {
		return l.within.box()
	}
	left, top, right, bottom = math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	take := func(x, y, r float64) {
		left, top, right, bottom = min(left, x-r), min(top, y-r), max(right, x+r), max(bottom, y+r)
	}
	for n := range l.x {
		take(float64(l.x[n]), float64(l.y[n]), float64(l.radius[n]))
	}
	for i := range l.edges {
		m, _ := l.curve(i).at(0.5)
		take(m.X, m.Y, 0)
	}
	if len(l.x) == 0 {
		return 0, 0, unit, unit
	}
	return left, top, right, bottom
}

// bezier has the four points of a cubic curve, in units of the layout.
type bezier [4]point

// curve returns the line of edge i, from a to b.
func (l *layout) curve(i int) bezier {
	e := &l.edges[i]
	a, b := l.middle(e.a), l.middle(e.b)
	dx, dy := b.X-a.X, b.Y-a.Y
	out := 4.0 / 3 * float64(e.bend) / cmp.Or(math.Hypot(dx, dy), 1)
	return bezier{a, {a.X + dy*out, a.Y - dx*out}, {b.X + dy*out, b.Y - dx*out}, b}
}

// at returns the place and the direction at t, 0 to 1.
func (c bezier) at(t float64) (place, way point) {
	u := 1 - t
	mix := func(a, b, c, d float64) (float64, float64) {
		return u*u*u*a + 3*u*u*t*b + 3*u*t*t*c + t*t*t*d, u*u*(b-a) + 2*u*t*(c-b) + t*t*(d-c)
	}
	place.X, way.X = mix(c[0].X, c[1].X, c[2].X, c[3].X)
	place.Y, way.Y = mix(c[0].Y, c[1].Y, c[2].Y, c[3].Y)
	return place, way
}

// between returns the line from a to b, that of their edge if they have one.
func (l *layout) between(a, b fabric.NodeID) bezier {
	i, ok := l.edgeBetween(a, b)
	if !ok {
		return l.straight(a, b)
	}
	c := l.curve(i)
	if l.edges[i].a != a {
		slices.Reverse(c[:])
	}
	return c
}

// straight returns the straight line between two nodes.
func (l *layout) straight(a, b fabric.NodeID) bezier {
	return bezier{l.middle(a), l.middle(a), l.middle(b), l.middle(b)}
}

func (l *layout) middle(n fabric.NodeID) point { return point{float64(l.x[n]), float64(l.y[n])} }
