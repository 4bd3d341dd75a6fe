package page

import (
	"fmt"
	"math"

	"github.com/ibweave/ibweave/fabric"
)

// arrange returns a layout with places for all nodes and edges.
func arrange(in *Input) *layout {
	f := in.Fabric
	l := &layout{
		x: make([]float32, f.NumNodes()), y: make([]float32, f.NumNodes()), radius: make([]float32, f.NumNodes()),
	}
	l.join(f)
	hosts := hostsOf(f)
	level := in.Levels
	if in.Grid != nil {
		l.kind = "grid"
		l.onGrid(f, in.Grid, hosts)
	} else {
		l.kind = "levels"
		if level == nil {
			level = distances(f)
		}
		l.onLevels(f, level, hosts)
	}
	for _, g := range in.Groupings {
		l.groupings = append(l.groupings, g.withSwitches(f, hosts, level))
	}
	l.loose(f)
	for _, n := range f.Nodes() {
		if f.Kind(n) == fabric.AggregationKind {
			l.radius[n] *= 0.5
		}
	}
	return l
}

// onGrid places switches by coordinates: even dimensions to the right, odd ones upwards.
// From the third dimension on it places copies of the plane side by side.
func (l *layout) onGrid(f *fabric.Fabric, g *Grid, hosts [][]fabric.NodeID) {
	n := len(g.Dims)
	step := make([]float64, n)
	extent := [2]float64{unit, unit}
	for d := range n {
		step[d] = extent[d%2]
		extent[d%2] *= float64(g.Dims[d])
		if d >= 2 || n > 2 {
			extent[d%2] += 0.8 * unit
		}
	}
	at := func(s fabric.NodeID) []int16 { return g.Coord[int(s)*n : (int(s)+1)*n] }
	for _, s := range f.Switches() {
		x, y := 0.0, 0.0
		for d, c := range at(s) {
			if d%2 == 0 {
				x += float64(c) * step[d]
			} else {
				y -= float64(c) * step[d]
			}
		}
		l.x[s], l.y[s], l.radius[s] = float32(x), float32(y), 0.17*unit
		// Right below, where no cable of the grid passes.
		side := 0.42 * unit
		l.block(hosts[s], x+0.26*unit+side/2-4, y+0.24*unit, side, side, false)
	}
	for i := range l.edges {
		e := &l.edges[i]
		for d, a := range at(e.a) {
			b := at(e.b)[d]
			if a == b {
				continue
			}
			// A cable that closes a ring or joins planes passes beside the switches between
			// its ends.
			if far := a - b; far > 1 || far < -1 || d >= 2 {
				e.bend = 0.3 * unit
				if a > b {
					e.bend = -e.bend
				}
			}
			break
		}
	}
}

// onLevels places switches in rows, level 0 at the bottom. Hosts are below their switches,
// those of the top level above. Rows are sorted by pods and names.
func (l *layout) onLevels(f *fabric.Fabric, level []int32, hosts [][]fabric.NodeID) {
	if f.NumSwitches() == 0 {
		return
	}
	r := newRows(f, level, l.edges)
	if g, ok := r.podsOf(f, hosts); ok {
		l.groupings = append(l.groupings, g)
	}
	widest := 0
	for _, row := range r.rows {
		widest = max(widest, len(row))
	}
	if widest > mostInRow && l.onTiles(r, hosts) {
		return
	}
	levels := float64(len(r.rows))
	width := float64(widest) * unit
	gap := max(1.7*unit, 0.6*width/max(levels-0.5, 1))
	tallest := min(0.85*gap, max(0.7*unit, 0.5*gap))
	for i, row := range r.rows {
		spacing := width / float64(len(row))
		y := -float64(i) * gap
		top := i == len(r.rows)-1 && i > 0
		for k, s := range row {
			x := (float64(k) + 0.5) * spacing
			radius := min(0.3*spacing, 0.5*unit, 0.09*gap)
			l.x[s], l.y[s], l.radius[s] = float32(x), float32(y), float32(radius)
			switch {
			case top:
				l.block(hosts[s], x, y-1.5*radius, 0.8*spacing, 0.3*gap, true)
			case i == 0:
				l.block(hosts[s], x, y+1.5*radius, 0.8*spacing, tallest, false)
			default:
				l.block(hosts[s], x, y+1.5*radius, 0.5*spacing, 0.3*gap, false)
			}
		}
	}
	for i := range l.edges {
		e := &l.edges[i]
		if level[e.a] != level[e.b] {
			continue
		}
		// Within a row: an arc above, higher if longer.
		e.bend = min(0.5*float32(gap), 0.2*unit+0.12*max(l.x[e.a]-l.x[e.b], l.x[e.b]-l.x[e.a]))
		if l.x[e.a] > l.x[e.b] {
			e.bend = -e.bend
		}
	}
}

// mostInRow is the greatest length of rows that are drawn without tiles.
const mostInRow = 512

// onTiles places the pods of a wide tree as tiles, in lines of equal length, and the
// switches above the pods over all of them: long single rows would hide the pods. If there
// are no pods, it returns false and places nothing.
func (l *layout) onTiles(r *rows, hosts [][]fabric.NodeID) bool {
	if r.pods == nil || len(l.groupings) == 0 || r.below != len(r.rows)-1 {
		return false
	}
	wide := 0
	for _, pod := range r.pods {
		for _, row := range pod {
			wide = max(wide, len(row))
		}
	}
	width := float64(wide) * unit
	gap := max(1.7*unit, 0.28*width)
	height := gap * (float64(r.below) - 0.4)
	columns := min(len(r.pods), max(1, int(math.Round(math.Sqrt(1.7*float64(len(r.pods))*height/width)))))
	stepX, stepY := width+max(2*unit, 0.08*width), height+max(2*unit, 0.35*height)
	for k, pod := range r.pods {
		left, bottom := float64(k%columns)*stepX, float64(k/columns)*stepY
		for i, row := range pod {
			spacing := width / float64(max(len(row), 1))
			for j, s := range row {
				x, y := left+(float64(j)+0.5)*spacing, bottom-float64(i)*gap
				l.x[s], l.y[s], l.radius[s] = float32(x), float32(y), 0.3*unit
				l.block(hosts[s], x, y+0.45*unit, 0.8*min(spacing, 3*unit), 0.5*gap, false)
			}
		}
	}
	l.aboveTiles(r, hosts, float64(columns)*stepX-(stepX-width), -float64(r.below)*gap)
	return true
}

// aboveTiles places the top row over tiles of this width: switches with the same cables
// side by side, as squares, from the bottom up.
func (l *layout) aboveTiles(r *rows, hosts [][]fabric.NodeID, width, bottom float64) {
	var planes [][]fabric.NodeID
	var cables numbered[string]
	for _, s := range r.rows[r.below] {
		k := cables.number(fmt.Sprint(r.lower[s]))
		if k == len(planes) {
			planes = append(planes, nil)
		}
		planes[k] = append(planes[k], s)
	}
	side := 1
	for _, plane := range planes {
		side = max(side, int(math.Ceil(math.Sqrt(float64(len(plane))))))
	}
	step := float64(side+1) * unit
	columns := max(1, int((width+unit)/step))
	columns = (len(planes) + (len(planes)+columns-1)/columns - 1) / ((len(planes) + columns - 1) / columns)
	step = max(step, (width+unit)/float64(columns))
	for k, plane := range planes {
		left := float64(k%columns)*step + (step-float64(side)*unit)/2 - unit/2
		y0 := bottom - 4*unit - float64(k/columns)*float64(side+2)*unit
		for j, s := range plane {
			x, y := left+(float64(j%side)+0.5)*unit, y0-float64(j/side)*unit
			l.x[s], l.y[s], l.radius[s] = float32(x), float32(y), 0.3*unit
			l.block(hosts[s], x, y+0.4*unit, 0.3*unit, 0.2*unit, false)
		}
	}
}

// loose places nodes without a cable to a switch in rows below everything else.
func (l *layout) loose(f *fabric.Fabric) {
	var list []fabric.NodeID
	left, right, bottom := float32(0), float32(unit), float32(0)
	for _, n := range f.Nodes() {
		if l.radius[n] == 0 {
			list = append(list, n)
			continue
		}
		left, right, bottom = min(left, l.x[n]), max(right, l.x[n]), max(bottom, l.y[n])
	}
	columns := max(1, int((right-left)/(0.4*unit)))
	for i, n := range list {
		l.x[n] = left + 0.4*unit*float32(i%columns)
		l.y[n] = bottom + unit + 0.4*unit*float32(i/columns)
		l.radius[n] = 0.12 * unit
	}
}
