//go:build !wasm

package page

import (
	"cmp"
	"fmt"
	"image/color"
	"io"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/report/chart"
)

// Sizes on paper.
const (
	centimeter   = 72 / 2.54
	pictureWidth = 26 * centimeter
	pictureMost  = 22 * centimeter // greatest height of the drawing
	pictureLeast = 5 * centimeter
	margin       = 0.6 * centimeter
	titleHeight  = 1.3 * centimeter
	lineHeight   = 0.42 * centimeter
	mostLines    = 24
)

// SVG writes the picture as SVG. Errors are those of w.
func (p *Picture) SVG(w io.Writer) error { return p.write(w, chart.WriteSVG) }

// PNG writes the picture as PNG of 120 dots an inch. Errors are those of w.
func (p *Picture) PNG(w io.Writer) error { return p.write(w, chart.WritePNG) }

func (p *Picture) write(w io.Writer, to chart.Writer) error {
	height := p.height() + titleHeight + 3*margin + lineHeight*float64(len(p.below())) + 2*lineHeight
	return to(w, pictureWidth, vg.Length(height), func(paper draw.Canvas) error {
		p.drawOn(paper, height)
		return nil
	})
}

// height returns the height of the drawing within the picture.
func (p *Picture) height() float64 {
	left, top, right, bottom := p.box()
	inner := pictureWidth - 2*margin
	return min(max(inner*((bottom-top)/max(right-left, 1)), pictureLeast), pictureMost)
}

// below returns up to mostLines lines of text.
func (p *Picture) below() []string {
	if len(p.lines) > mostLines {
		return append(slices.Clone(p.lines[:mostLines-1]), fmt.Sprintf("and %d more", len(p.lines)-mostLines+1))
	}
	return p.lines
}

// warmth returns the place of a value on the colour ramp, 0 to 1: the mean is in the middle;
// the end is the greatest value, or twice the mean if that is more.
func (m *measure) warmth(n float64) float64 {
	switch {
	case m.mean == 0:
		return 0
	case n <= m.mean:
		return 0.5 * n / m.mean
	}
	return 0.5 + 0.5*(n-m.mean)/(max(m.max, 2*m.mean)-m.mean)
}

// shade returns the colour at a place on the ramp.
func shade(at float64) color.NRGBA {
	at = min(max(at, 0), 1) * float64(len(ramp)-1)
	i := min(int(at), len(ramp)-2)
	return blend(ramp[i], ramp[i+1], at-float64(i))
}

// blend mixes a with a part t of b.
func blend(a, b color.NRGBA, t float64) color.NRGBA {
	part := func(x, y uint8) uint8 { return uint8(math.Round(float64(x) + (float64(y)-float64(x))*t)) }
	return color.NRGBA{part(a.R, b.R), part(a.G, b.G), part(a.B, b.B), 0xff}
}

// drawing draws a picture on paper.
type drawing struct {
	*Picture
	paper            draw.Canvas
	left, right, top float64 // of the part inside the margins
	upper            float64 // upper edge of the fabric
	// Point q of the layout is at left + shift + scale*(q.X-fromX), upper - down -
	// scale*(q.Y-fromY) on paper.
	scale, shift, down float64
	fromX, fromY       float64
	dim                bool // the fabric is only the background
	taken              []vg.Rectangle
}

func (p *Picture) drawOn(paper draw.Canvas, height float64) {
	d := &drawing{Picture: p, paper: paper, left: margin, right: pictureWidth - margin, top: height - margin, dim: len(p.channels) > 0}
	d.fill(ground, onPaper(0, 0), onPaper(pictureWidth, 0), onPaper(pictureWidth, height), onPaper(0, height))
	d.text(d.fitted(p.title, 13, d.right-d.left), textStyle(13, ink, draw.XLeft, draw.YTop), onPaper(d.left, d.top))
	d.upper = d.top - titleHeight
	y := d.upper - p.height() - margin
	left, top, right, bottom := d.box()
	d.fromX, d.fromY = left, top
	d.scale = min((d.right-d.left)/max(right-left, 1), p.height()/max(bottom-top, 1), 1.2)
	d.shift = ((d.right - d.left) - d.scale*(right-left)) / 2
	d.down = (p.height() - d.scale*(bottom-top)) / 2
	d.drawEdges()
	d.drawHosts()
	d.drawSwitches()
	d.drawNames()
	d.drawLegend(y)
	for i, line := range p.below() {
		d.text(d.fitted(line, 9, d.right-d.left), textStyle(9, muted, draw.XLeft, draw.YTop), onPaper(d.left, y-2*lineHeight-lineHeight*float64(i)))
	}
}

// at returns the place on paper of a point of the layout.
func (d *drawing) at(q point) vg.Point {
	return onPaper(d.left+(d.shift+d.scale*(q.X-d.fromX)), d.upper-(d.down+d.scale*(q.Y-d.fromY)))
}

// onPaper returns a place on paper, in points of 1/72 inch from the lower left corner.
func onPaper(x, y float64) vg.Point { return vg.Point{X: vg.Length(x), Y: vg.Length(y)} }

// pen returns a line of a colour and a width in points.
func pen(c color.Color, width float64) draw.LineStyle {
	return draw.LineStyle{Color: c, Width: vg.Length(width)}
}

func (d *drawing) fill(c color.Color, corners ...vg.Point) { d.paper.FillPolygon(c, corners) }

func textStyle(size float64, c color.Color, x draw.XAlignment, y draw.YAlignment) draw.TextStyle {
	style := chart.TextStyle(vg.Length(size))
	style.Color, style.XAlign, style.YAlign = c, x, y
	return style
}

func (d *drawing) text(words string, style draw.TextStyle, at vg.Point) {
	d.paper.FillText(style, at, fabric.Printable(words))
}

// textWidth returns the width of words in a font size.
func textWidth(words string, size float64) float64 {
	return float64(chart.TextStyle(vg.Length(size)).Width(fabric.Printable(words)))
}

// drawSwitches draws the channels of the view, all switches, and above them the ends of the
// channels and the marked nodes.
func (d *drawing) drawSwitches() {
	f := d.Fabric
	for _, out := range d.channels {
		d.drawChannel(out)
	}
	for _, x := range d.faults {
		d.drawFault(x)
	}
	for _, s := range f.Switches() {
		c := nodeTone
		if d.dim {
			c = blend(ground, nodeTone, 0.35)
		}
		d.drawNode(s, c)
	}
	for _, out := range d.channels {
		for _, n := range []fabric.NodeID{f.Owner(out), f.Owner(f.Peer(out))} {
			c := nodeTone
			if !f.IsSwitch(n) {
				c = hostTone
			}
			d.drawNode(n, c)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(d.marks)) {
		d.drawNode(n, d.marks[n])
	}
}

// drawFault draws a slow cable amber; a missing one red and dashed, with a cross in its middle.
func (d *drawing) drawFault(x fault) {
	if !x.missing {
		d.drawCurve(x.curve, pen(warning, 2))
		return
	}
	line := pen(loopTone, 2)
	line.Dashes = []vg.Length{4, 3}
	d.drawCurve(x.curve, line)
	place, _ := x.curve.at(0.5)
	m := d.at(place)
	const r = 4
	line.Dashes = nil
	d.paper.StrokeLine2(line, m.X-r, m.Y-r, m.X+r, m.Y+r)
	d.paper.StrokeLine2(line, m.X-r, m.Y+r, m.X+r, m.Y-r)
}

// drawEdges draws the links, most loaded ones last.
func (d *drawing) drawEdges() {
	p := d.Picture
	loads, order := make([]float64, len(p.edges)), make([]int, len(p.edges))
	for i := range p.edges {
		order[i] = i
		if p.shows != nil {
			for _, c := range p.ports(i) {
				loads[i] = max(loads[i], p.shows.Values[c], p.shows.Values[p.Fabric.Peer(c)])
			}
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(loads[a], loads[b]) })
	thin := min(1.1, max(0.25, 600/float64(len(order)+1)))
	faint := p.faint()
	for _, i := range order {
		c := ramp[2]
		warm := 0.0
		var dashes []vg.Length
		switch {
		case p.shows != nil && loads[i] == 0:
			c, dashes = unused, []vg.Length{2, 2}
		case p.shows != nil:
			warm = p.shows.warmth(loads[i])
			c = shade(warm)
		}
		strong := faint + (1-faint)*warm*warm
		if d.dim {
			strong = 0.2
		}
		line := pen(blend(ground, c, strong), thin*(1+0.8*warm*warm))
		line.Dashes = dashes
		d.drawCurve(p.curve(i), line)
	}
}

// drawCurve draws a curve of the layout, or a straight line if its first two points are the
// same.
func (d *drawing) drawCurve(c bezier, line draw.LineStyle) {
	var v vg.Path
	v.Move(d.at(c[0]))
	if c[0] == c[1] {
		v.Line(d.at(c[3]))
	} else {
		v.CubeTo(d.at(c[1]), d.at(c[2]), d.at(c[3]))
	}
	d.paper.SetLineStyle(line)
	d.paper.Stroke(v)
}

// faint returns how strong links without load are drawn, 0.3 to 1: fainter if lines would hide
// more of the ground.
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

func (d *drawing) drawHosts() {
	f := d.Fabric
	line, dot := blend(ground, hostTone, 0.6), hostTone
	if d.dim {
		line, dot = blend(ground, hostTone, 0.15), blend(ground, hostTone, 0.35)
	}
	for s, list := range hostsOf(f) {
		for _, n := range list {
			if len(list) <= 4 {
				d.drawCurve(d.straight(fabric.NodeID(s), n), pen(line, 0.5))
			}
		}
	}
	for _, n := range f.Nodes() {
		if !f.IsSwitch(n) {
			d.drawNode(n, dot)
		}
	}
}

// drawNode draws a switch as a square, other nodes as discs.
func (d *drawing) drawNode(n fabric.NodeID, c color.Color) {
	middle, r := d.at(d.middle(n)), vg.Length(d.scale*float64(d.radius[n]))
	if !d.Fabric.IsSwitch(n) {
		d.paper.DrawGlyph(draw.GlyphStyle{Color: c, Radius: max(r, 0.5), Shape: draw.CircleGlyph{}}, middle)
		return
	}
	corner := vg.Point{X: max(r, 1), Y: max(r, 1)}
	square := vg.Rectangle{Min: middle.Sub(corner), Max: middle.Add(corner)}.Path()
	d.paper.SetColor(c)
	d.paper.Fill(square)
	if r > 2 {
		d.paper.SetLineStyle(pen(ground, 0.5))
		d.paper.Stroke(square)
	}
}

// drawChannel draws one direction of a cable, with an arrow past its middle.
func (d *drawing) drawChannel(out fabric.PortID) {
	f, p := d.Fabric, d.Picture
	a, b := f.Owner(out), f.Owner(f.Peer(out))
	c := p.between(a, b)
	width := 2.2
	if len(p.channels) > 200 {
		width = 1
	}
	if share, ok := p.shares[out]; ok {
		width *= 0.3 + 0.7*math.Sqrt(share)
	}
	d.drawCurve(c, pen(p.tone, width))
	place, way := c.at(0.58)
	mid := d.at(place)
	to := d.at(point{place.X + way.X, place.Y + way.Y}).Sub(mid)
	length := math.Hypot(float64(to.X), float64(to.Y))
	if length < 2 {
		return
	}
	along := to.Scale(vg.Length(2 * width / length))
	back, aside := mid.Sub(along), vg.Point{X: -along.Y, Y: along.X}
	d.fill(p.tone, mid.Add(along), back.Add(aside), back.Sub(aside))
}

// drawLegend explains the colours of links.
func (d *drawing) drawLegend(y float64) {
	m := d.shows
	switch {
	case m == nil || d.dim:
	case m.max == 0:
		words := fmt.Sprintf("%s, %s: 0 on all links", m.Name, m.Unit)
		d.text(d.fitted(words, 9, d.right-d.left), textStyle(9, muted, draw.XLeft, draw.YCenter), onPaper(d.left, y-3))
	case m.Name == routesName:
		d.drawRamp(y, fmt.Sprintf("routes on a link: 0, mean %.1f, right end %d; busiest %d", m.mean, max(d.max, int64(math.Ceil(2*m.mean))), d.max))
	default:
		d.drawRamp(y, fmt.Sprintf("%s, %s on a link: 0, mean %.4g, right end %.4g; greatest %.4g", m.Name, m.Unit, m.mean, max(m.max, 2*m.mean), m.max))
	}
}

// drawRamp draws all colours, and words to explain them.
func (d *drawing) drawRamp(y float64, words string) {
	const wide, steps = 5 * centimeter, 60
	x := d.left
	for i := range steps {
		from := x + wide*float64(i)/steps
		d.fill(shade((float64(i)+0.5)/steps), onPaper(from, y-6), onPaper(x+wide, y-6), onPaper(x+wide, y), onPaper(from, y))
	}
	d.text(d.fitted(words, 9, d.right-x-wide-8), textStyle(9, muted, draw.XLeft, draw.YCenter), onPaper(x+wide+8, y-3))
}

// nameSize is the font size of names.
const nameSize = 8

// fitted returns words; if they are wider than most, with dots in place of their middle.
func (d *drawing) fitted(words string, size, most float64) string {
	wide := textWidth(words, size)
	if wide <= most {
		return words
	}
	letters := []rune(words)
	for keep := min(len(letters)-1, int(float64(len(letters))*most/wide)+3); keep > 1; keep-- {
		words = string(letters[:(keep+1)/2]) + "…" + string(letters[len(letters)-keep/2:])
		if textWidth(words, size) <= most {
			break
		}
	}
	return words
}

// drawNames writes the names of the nodes shown, or of all switches in rows with room.
func (d *drawing) drawNames() {
	f, p := d.Fabric, d.Picture
	if len(p.channels) > 0 {
		if len(p.labels) <= 40 {
			for i, n := range p.labels {
				if slices.Contains(p.labels[:i], n) {
					continue
				}
				d.drawName(n, d.fitted(f.Name(n).Label(), nameSize, 0.4*(d.right-d.left)))
			}
		}
		return
	}
	// The room in a row is the distance of its closest two switches.
	rows := make(map[float32][]fabric.NodeID)
	var heights []float32
	for _, s := range f.Switches() {
		if len(rows[p.y[s]]) == 0 {
			heights = append(heights, p.y[s])
		}
		rows[p.y[s]] = append(rows[p.y[s]], s)
	}
	for _, y := range heights {
		row, room := rows[y], math.Inf(1)
		across := slices.Clone(row)
		slices.SortStableFunc(across, func(a, b fabric.NodeID) int { return int(math.Copysign(1, float64(p.x[a]-p.x[b]))) })
		for i := 1; i < len(across); i++ {
			room = min(room, d.scale*float64(p.x[across[i]]-p.x[across[i-1]]))
		}
		names := text.Each(row, func(s fabric.NodeID) string { return f.Name(s).Label() })
		for i, name := range d.inRoom(names, room-4) {
			d.drawName(row[i], name)
		}
	}
}

// inRoom returns the names of a row so that they fit: whole; or without their common beginning
// and end, with dots in the middle if still too long; nil if there is no room.
func (d *drawing) inRoom(names []string, room float64) []string {
	wide := func(name string) bool { return textWidth(name, nameSize) > room }
	if slices.ContainsFunc(names, wide) {
		head, tail := shared(names)
		for i, name := range names {
			if len(name) > len(head)+len(tail) {
				names[i] = name[len(head) : len(name)-len(tail)]
			}
		}
	}
	if room < 5*nameSize && slices.ContainsFunc(names, wide) {
		return nil
	}
	for i, name := range names {
		names[i] = d.fitted(name, nameSize, room)
	}
	return names
}

// drawName writes the name of a node above or below it, where no other name is. It clears the
// ground under it, and moves it off the margins.
func (d *drawing) drawName(n fabric.NodeID, words string) {
	p, r := d.at(d.middle(n)), vg.Length(d.scale*float64(d.radius[n])+2)
	half := vg.Length(textWidth(words, nameSize)/2 + 1)
	p.X = min(max(p.X, vg.Length(d.left)+half), vg.Length(d.right)-half)
	below := d.Fabric.IsSwitch(n) == (d.kind == "grid")
	for range 2 {
		at, edge := vg.Point{X: p.X, Y: p.Y + r}, draw.YBottom
		low, high := at.Y-1, at.Y+0.75*nameSize
		if below {
			at.Y, edge = p.Y-r, draw.YTop
			low, high = at.Y-0.95*nameSize, at.Y
		}
		area := vg.Rectangle{Min: vg.Point{X: p.X - half, Y: low}, Max: vg.Point{X: p.X + half, Y: high}}
		if !slices.ContainsFunc(d.taken, func(o vg.Rectangle) bool {
			return o.Min.X < area.Max.X && area.Min.X < o.Max.X && o.Min.Y < area.Max.Y && area.Min.Y < o.Max.Y
		}) {
			d.taken = append(d.taken, area)
			d.paper.SetColor(ground)
			d.paper.Fill(area.Path())
			d.text(words, textStyle(nameSize, ink, draw.XCenter, edge), at)
			return
		}
		below = !below
	}
}
