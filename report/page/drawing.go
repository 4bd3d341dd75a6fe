package page

import (
	"cmp"
	"fmt"
	"image"
	"image/color"
	"maps"
	"math"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// Canvas is what a picture is drawn on. Lengths are in points of 1/72 inch, and the
// origin is the lower left corner.
type Canvas interface {
	// Curve draws a cubic Bezier curve, and a straight line where the first two points
	// are the same.
	Curve(points [4]Point, pen Pen)
	Outline(polygon []Point, pen Pen)
	Fill(polygon []Point, c color.Color)
	Disc(middle Point, radius float64, c color.Color)
	// Image draws an image between its lower left and its upper right corner.
	Image(m image.Image, low, high Point)
	Text(t Text)
	TextWidth(t Text) float64
}

// Point is a place.
type Point struct{ X, Y float64 }

// Pen is the look of lines.
type Pen struct {
	Color  color.Color
	Width  float64
	Dashes []float64 // lengths of dashes and gaps; nil for a line without gaps
}

// Text is words of one line.
type Text struct {
	Words string
	At    Point
	Size  float64 // of the font
	Color color.Color
	// Centered has the middle of the words at At.X, which is else their left end.
	Centered bool
	// Edge is what of the words is at At.Y.
	Edge Edge
}

// Edge is a horizontal edge of words, or their middle.
type Edge int

const (
	Top Edge = iota
	Middle
	Bottom
)

// Sizes on paper.
const (
	centimeter   = 72 / 2.54
	pictureWidth = 26 * centimeter
	pictureMost  = 22 * centimeter // height of the drawing
	pictureLeast = 5 * centimeter
	margin       = 0.6 * centimeter
	titleHeight  = 1.3 * centimeter
	lineHeight   = 0.42 * centimeter
	mostLines    = 24
)

// box is the smallest that has everything, in the units of the layout.
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

// bezier is the points of a cubic curve, in the units of the layout.
type bezier [4]Point

// curve is the line of an edge, from a to b.
func (l *layout) curve(i int) bezier {
	e := &l.edges[i]
	a, b := l.middle(e.a), l.middle(e.b)
	dx, dy := b.X-a.X, b.Y-a.Y
	out := 4.0 / 3 * float64(e.bend) / cmp.Or(math.Hypot(dx, dy), 1)
	return bezier{a, {a.X + dy*out, a.Y - dx*out}, {b.X + dy*out, b.Y - dx*out}, b}
}

// at is the place and the direction at t from 0 to 1.
func (c bezier) at(t float64) (place, way Point) {
	u := 1 - t
	mix := func(a, b, c, d float64) (float64, float64) {
		return u*u*u*a + 3*u*u*t*b + 3*u*t*t*c + t*t*t*d, u*u*(b-a) + 2*u*t*(c-b) + t*t*(d-c)
	}
	place.X, way.X = mix(c[0].X, c[1].X, c[2].X, c[3].X)
	place.Y, way.Y = mix(c[0].Y, c[1].Y, c[2].Y, c[3].Y)
	return place, way
}

// Size is the size of the picture.
func (p *Picture) Size() (width, height float64) {
	return pictureWidth, p.height() + titleHeight + 3*margin + lineHeight*float64(len(p.below())) + 2*lineHeight
}

// height is that of the drawing in the picture.
func (p *Picture) height() float64 {
	if p.chart != nil {
		return pictureMost
	}
	left, top, right, bottom := p.box()
	inner := pictureWidth - 2*margin
	return min(max(inner*((bottom-top)/max(right-left, 1)), pictureLeast), pictureMost)
}

// below is the lines of text, not too many.
func (p *Picture) below() []string {
	if len(p.lines) > mostLines {
		return append(slices.Clone(p.lines[:mostLines-1]), fmt.Sprintf("and %d more", len(p.lines)-mostLines+1))
	}
	return p.lines
}

// warmth is the place of a value on the ramp, 0 to 1: the mean is in the middle, and the
// far end is the greatest value, or twice the mean where that is more.
func (m *measure) warmth(n float64) float64 {
	switch {
	case m.mean == 0:
		return 0
	case n <= m.mean:
		return 0.5 * n / m.mean
	}
	return 0.5 + 0.5*(n-m.mean)/(max(m.max, 2*m.mean)-m.mean)
}

// shade is the colour of a place on the ramp.
func (t *theme) shade(at float64) color.NRGBA {
	at = min(max(at, 0), 1) * float64(len(t.ramp)-1)
	i := min(int(at), len(t.ramp)-2)
	return blend(t.ramp[i], t.ramp[i+1], at-float64(i))
}

// blend is a with a part t of b.
func blend(a, b color.NRGBA, t float64) color.NRGBA {
	part := func(x, y uint8) uint8 { return uint8(math.Round(float64(x) + (float64(y)-float64(x))*t)) }
	return color.NRGBA{part(a.R, b.R), part(a.G, b.G), part(a.B, b.B), 0xff}
}

// drawing is a picture as it is drawn.
type drawing struct {
	*Picture
	Canvas
	left, right, top float64 // of the part inside the margins
	upper            float64 // edge of the fabric
	// From the units of the layout to paper: q is at (x0 + scale*(q.X-fromX), upper - down - scale*(q.Y-fromY)).
	scale, shift, down float64
	fromX, fromY       float64
	dim                bool // whether the fabric is only the background
	taken              []area
}

// DrawOn draws the picture on a canvas of its size.
func (p *Picture) DrawOn(canvas Canvas) {
	t := p.theme
	width, height := p.Size()
	canvas.Fill(rectangle(0, 0, width, height), t.ground)
	d := &drawing{Picture: p, Canvas: canvas, left: margin, right: width - margin, top: height - margin, dim: len(p.channels) > 0 || p.faded}
	canvas.Text(Text{Words: d.fitted(p.title, 13, d.right-d.left), At: Point{d.left, d.top}, Size: 13, Color: t.ink})
	d.upper = d.top - titleHeight
	y := d.upper - p.height() - margin
	if p.chart != nil {
		d.drawMap()
	} else {
		d.fit()
		d.drawBoxes(d.drawEdges())
		d.drawHosts()
		d.drawSwitches()
		d.drawNames()
		d.drawLegend(y)
	}
	for i, line := range p.below() {
		canvas.Text(Text{Words: d.fitted(line, 9, d.right-d.left), At: Point{d.left, y - 2*lineHeight - lineHeight*float64(i)}, Size: 9, Color: t.muted})
	}
}

// fit chooses where on paper the layout is.
func (d *drawing) fit() {
	left, top, right, bottom := d.box()
	height := d.height()
	d.fromX, d.fromY = left, top
	d.scale = min((d.right-d.left)/max(right-left, 1), height/max(bottom-top, 1), 1.2)
	d.shift = ((d.right - d.left) - d.scale*(right-left)) / 2
	d.down = (height - d.scale*(bottom-top)) / 2
}

// at is where on paper a point of the layout is.
func (d *drawing) at(q Point) Point {
	return Point{d.left + (d.shift + d.scale*(q.X-d.fromX)), d.upper - (d.down + d.scale*(q.Y-d.fromY))}
}

// drawSwitches draws the channels that the view shows, all switches, and above them the
// ends of the channels and the marked nodes.
func (d *drawing) drawSwitches() {
	f, t := d.Fabric, d.theme
	for _, out := range d.channels {
		d.drawChannel(out)
	}
	for _, s := range d.strokes {
		d.drawStroke(s)
	}
	for s := range fabric.NodeID(f.NumSwitches()) {
		c := t.node
		if d.dim {
			c = blend(t.ground, t.node, 0.35)
		}
		if !d.boxes.hides(s) {
			d.drawNode(s, c)
		}
	}
	for _, out := range d.channels {
		for _, n := range []fabric.NodeID{f.Owner(out), f.Owner(f.Peer(out))} {
			c := t.node
			if !f.IsSwitch(n) {
				c = t.host
			}
			d.drawNode(n, c)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(d.marks)) {
		d.drawNode(n, d.marks[n])
	}
	for _, s := range d.spots {
		d.drawAt(s.s.middle(s.n), s.s.radius[s.n], s.s.Fabric.IsSwitch(s.n), s.c)
	}
}

// drawStroke draws a line, with a cross in its middle on a cable that is gone.
func (d *drawing) drawStroke(s stroke) {
	d.drawCurve(s.curve, s.pen)
	if !s.cross {
		return
	}
	place, _ := s.curve.at(0.5)
	m, pen := d.at(place), Pen{Color: s.pen.Color, Width: s.pen.Width}
	const r = 4
	for _, way := range []float64{-r, r} {
		a, b := Point{m.X - r, m.Y - way}, Point{m.X + r, m.Y + way}
		d.Curve([4]Point{a, a, b, b}, pen)
	}
}

// rectangle has its lower left corner at x0, y0 and its upper right one at x1, y1.
func rectangle(x0, y0, x1, y1 float64) []Point {
	return []Point{{x0, y0}, {x1, y0}, {x1, y1}, {x0, y1}}
}

// drawEdges draws the links, the most loaded last, and says what is the greatest load in each group.
func (d *drawing) drawEdges() []float64 {
	p := d.Picture
	list, inside := p.lineUp()
	thin := min(1.1, max(0.25, 600/float64(len(list)+1)))
	faint := p.faint()
	for _, x := range list {
		c := p.theme.ramp[2]
		warm := 0.0
		var dashes []float64
		switch {
		case p.shows != nil && x.load == 0:
			c, dashes = p.theme.unused, []float64{2, 2}
		case p.shows != nil:
			warm = p.shows.warmth(x.load)
			c = p.theme.shade(warm)
		}
		strong := faint + (1-faint)*warm*warm
		if d.dim {
			strong = 0.2
		}
		d.drawCurve(x.curve, Pen{blend(p.theme.ground, c, strong), thin * (1 + 0.8*warm*warm), dashes})
	}
	return inside
}

// drawCurve draws a curve of the layout.
func (d *drawing) drawCurve(c bezier, pen Pen) {
	var on [4]Point
	for i, q := range c {
		on[i] = d.at(q)
	}
	d.Curve(on, pen)
}

// faint is how strong links without load are drawn, from 0.3 to 1: the fainter, the
// more of the ground lines would hide.
func (p *Picture) faint() float64 {
	length := 0.0
	for _, e := range p.edges {
		a, b := p.middle(e.a), p.middle(e.b)
		length += math.Hypot(a.X-b.X, a.Y-b.Y)
	}
	left, top, right, bottom := p.box()
	cover := length * (right - left) / 700 / ((right - left) * (bottom - top))
	return min(1, max(0.3, 0.7/math.Sqrt(cover+1e-9)))
}

// straight is the line between two nodes.
func (l *layout) straight(a, b fabric.NodeID) bezier {
	return bezier{l.middle(a), l.middle(a), l.middle(b), l.middle(b)}
}

func (d *drawing) drawHosts() {
	f, t := d.Fabric, d.theme
	line, dot := blend(t.ground, t.host, 0.6), t.host
	if d.dim {
		line, dot = blend(t.ground, t.host, 0.15), blend(t.ground, t.host, 0.35)
	}
	for s, list := range hostsOf(f) {
		for _, n := range list {
			if len(list) <= 4 && !d.boxes.hides(n) && !d.boxes.hides(fabric.NodeID(s)) {
				d.drawCurve(d.straight(fabric.NodeID(s), n), Pen{Color: line, Width: 0.5})
			}
		}
	}
	for n := range fabric.NodeID(f.NumNodes()) {
		if !f.IsSwitch(n) && !d.boxes.hides(n) {
			d.drawNode(n, dot)
		}
	}
}

func (l *layout) middle(n fabric.NodeID) Point { return Point{float64(l.x[n]), float64(l.y[n])} }

// drawNode draws a switch as a square, others as a disc.
func (d *drawing) drawNode(n fabric.NodeID, c color.Color) {
	d.drawAt(d.middle(n), d.radius[n], d.Fabric.IsSwitch(n), c)
}

func (d *drawing) drawAt(middle Point, radius float32, isSwitch bool, c color.Color) {
	m, r := d.at(middle), d.scale*float64(radius)
	if !isSwitch {
		d.Disc(m, max(r, 0.5), c)
		return
	}
	r = max(r, 1)
	square := rectangle(m.X-r, m.Y-r, m.X+r, m.Y+r)
	d.Fill(square, c)
	if r > 2 {
		d.Outline(square, Pen{Color: d.theme.ground, Width: 0.5})
	}
}

// drawChannel draws one direction of a cable, with an arrow beyond its middle.
func (d *drawing) drawChannel(out fabric.PortID) {
	f, p := d.Fabric, d.Picture
	a, b := f.Owner(out), f.Owner(f.Peer(out))
	c := p.straight(a, b)
	if i, ok := p.edgeBetween(a, b); ok {
		c = p.curve(i)
		if p.edges[i].a != a {
			slices.Reverse(c[:])
		}
	}
	width := 2.2
	if len(p.channels) > 200 {
		width = 1
	}
	if share, ok := p.shares[out]; ok {
		width *= 0.3 + 0.7*math.Sqrt(share)
	}
	d.drawCurve(c, Pen{Color: p.tone, Width: width})
	place, way := c.at(0.58)
	mid := d.at(place)
	tip := d.at(Point{place.X + way.X, place.Y + way.Y})
	dx, dy := tip.X-mid.X, tip.Y-mid.Y
	length := math.Hypot(dx, dy)
	if length < 2 {
		return
	}
	h := 4 * width
	ux, uy := dx/length*h/2, dy/length*h/2
	d.Fill([]Point{{mid.X + ux, mid.Y + uy}, {mid.X - ux - uy, mid.Y - uy + ux}, {mid.X - ux + uy, mid.Y - uy - ux}}, p.tone)
}

// drawLegend says what the colours of links mean.
func (d *drawing) drawLegend(y float64) {
	if d.legend != "" {
		d.Text(Text{Words: d.fitted(d.legend, 9, d.right-d.left), At: Point{d.left, y - 3}, Size: 9, Color: d.theme.muted, Edge: Middle})
		return
	}
	m := d.shows
	if m == nil || d.dim {
		return
	}
	what := m.Name + ", " + m.Unit
	if m.max == 0 {
		d.Text(Text{Words: what + ": 0 on all links", At: Point{d.left, y - 3}, Size: 9, Color: d.theme.muted, Edge: Middle})
		return
	}
	words := fmt.Sprintf("%s on a link: 0, mean %.4g, right end %.4g; greatest %.4g", what, m.mean, max(m.max, 2*m.mean), m.max)
	if m.Name == routesName {
		words = fmt.Sprintf("routes on a link: 0, mean %.1f, right end %d; busiest %d", m.mean, max(d.max, int64(math.Ceil(2*m.mean))), d.max)
	}
	d.drawRamp(y, words)
}

// drawRamp draws all colours, and what they mean beside them.
func (d *drawing) drawRamp(y float64, words string) {
	const wide, steps = 5 * centimeter, 60
	x := d.left
	for i := range steps {
		from := x + wide*float64(i)/steps
		d.Fill(rectangle(from, y-6, x+wide, y), d.theme.shade((float64(i)+0.5)/steps))
	}
	d.Text(Text{Words: d.fitted(words, 9, d.right-x-wide-8), At: Point{x + wide + 8, y - 3}, Size: 9, Color: d.theme.muted, Edge: Middle})
}
