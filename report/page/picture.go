package page

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/mft"
)

// View is what a picture shows.
type View struct {
	kind string // "fabric", "path", "group" or "credit-loop"
	arg  string // of a path both ends, of a group its name
	n    int    // of a credit loop its number, from 0
}

// ParseView reads "fabric", "path:SRC,DST", "group:NAME", "credit-loop" or
// "credit-loop:2".
func ParseView(s string) (View, error) {
	kind, arg, has := strings.Cut(s, ":")
	switch {
	case kind == "fabric" && !has:
		return View{kind: kind}, nil
	case kind == "path" && strings.Contains(arg, ","), kind == "group" && arg != "":
		return View{kind: kind, arg: arg}, nil
	case kind == "credit-loop" && !has:
		return View{kind: kind}, nil
	case kind == "credit-loop":
		if n, err := strconv.Atoi(arg); err == nil && n > 0 {
			return View{kind: kind, n: n - 1}, nil
		}
	}
	return View{}, fmt.Errorf("%q: want fabric, path:SRC,DST, group:NAME, credit-loop or credit-loop:N from 1 on", s)
}

// PictureOptions are the choices of Draw.
type PictureOptions struct {
	Dark bool // light on dark
}

// Picture is a drawing of one view.
type Picture struct {
	*scene
	theme *theme
	title string
	// Lines below: what the view shows, step by step.
	lines    []string
	channels []fabric.PortID // shown, by the ports they leave
	marks    map[fabric.NodeID]color.Color
	labels   []fabric.NodeID
	tone     color.Color // of the channels
}

// theme is the colours of a picture, as in page.css and view.js.
type theme struct {
	ground, ink, muted, node, host, unused, path, loop, tree color.NRGBA
	ramp                                                     []color.NRGBA
}

func rgb(v uint32) color.NRGBA {
	return color.NRGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 0xff}
}

var light = &theme{
	ground: rgb(0xfbfbfa), ink: rgb(0x1c2430), muted: rgb(0x5d6878), node: rgb(0x33445a), host: rgb(0x8a97a8), unused: rgb(0xb6bcc5),
	path: rgb(0x0b6bcb), loop: rgb(0xc62a1e), tree: rgb(0x0d7f5f),
	ramp: []color.NRGBA{rgb(0xc8d0da), rgb(0x9db9d3), rgb(0x5f9ac4), rgb(0x2f7fae), rgb(0xe0a32e), rgb(0xe2701f), rgb(0xc62a1e)},
}

var dark = &theme{
	ground: rgb(0x10141a), ink: rgb(0xe6eaf0), muted: rgb(0x9aa6b6), node: rgb(0xb9c6d8), host: rgb(0x6f7d90), unused: rgb(0x4a5361),
	path: rgb(0x5db4ff), loop: rgb(0xff6a5c), tree: rgb(0x45cf9f),
	ramp: []color.NRGBA{rgb(0x343d4a), rgb(0x3c5a78), rgb(0x3f7ea8), rgb(0x52a5c9), rgb(0xe3b341), rgb(0xf08a3c), rgb(0xff5c4d)},
}

// Draw prepares the picture of a view. Errors are those of Write, and
// a *ViewError.
func Draw(ctx context.Context, in *Input, view View, opt PictureOptions) (*Picture, error) {
	s, err := newScene(ctx, in)
	if err != nil {
		return nil, err
	}
	p := &Picture{scene: s, theme: light, title: in.Title, marks: map[fabric.NodeID]color.Color{}}
	if opt.Dark {
		p.theme = dark
	}
	switch view.kind {
	case "path":
		err = p.showPath(view.arg)
	case "group":
		err = p.showGroup(view.arg)
	case "credit-loop":
		err = p.showLoop(view.n)
	default:
		c := s.Result.Fabric
		p.lines = append(p.lines, fmt.Sprintf("%d switches, %d CA ports, %d links", c.Switches, c.CAPorts, c.Links))
		if s.Shape != "" {
			p.lines[0] += "; " + strings.SplitN(s.Shape, "\n", 2)[0]
		}
	}
	if err != nil {
		return nil, &ViewError{err}
	}
	return p, nil
}

// ViewError says why there is nothing to see in a view: the input does not have it.
type ViewError struct{ Err error }

func (e *ViewError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *ViewError) Unwrap() error { return e.Err }

// showPath marks the path between two hosts, whose names may have commas.
func (p *Picture) showPath(arg string) error {
	if p.Tables == nil {
		return fmt.Errorf("there are no forwarding tables")
	}
	var (
		src, dst fabric.PortID
		found    int
		trouble  error
		near     bool // trouble is about one end only
	)
	for i, c := range arg {
		if c != ',' {
			continue
		}
		a, errA := p.endPort(strings.TrimSpace(arg[:i]))
		b, errB := p.endPort(strings.TrimSpace(arg[i+1:]))
		one := (errA == nil) != (errB == nil)
		if errA == nil && p.Fabric.IsSwitch(p.Fabric.Owner(a)) {
			errA = fmt.Errorf("%s is a switch: a path starts at a host", p.Fabric.Name(p.Fabric.Owner(a)))
			one = true
		}
		switch err := cmp.Or(errA, errB); {
		case err == nil:
			src, dst = a, b
			found++
		case trouble == nil || one && !near:
			trouble, near = err, one
		}
	}
	switch {
	case found > 1:
		return fmt.Errorf("%q can be read as more than one pair; use GUIDs or LIDs", arg)
	case found == 0:
		return trouble
	}
	f := p.Fabric
	lid := f.LID(dst)
	path := p.Path(src, lid)
	a, b := f.Name(f.Owner(src)).Label(), f.Name(f.Owner(dst)).Label()
	p.title = fmt.Sprintf("%s: path from %s to %s, LID %d", p.title, a, b, lid)
	p.tone = p.theme.path
	p.marks[f.Owner(src)], p.marks[f.Owner(dst)] = p.theme.path, p.theme.path
	p.labels = append(p.labels, f.Owner(src))
	for _, h := range path.Hops {
		p.channels = append(p.channels, h.Out)
		p.labels = append(p.labels, f.Owner(f.Peer(h.Out)))
		p.lines = append(p.lines, fmt.Sprintf("%s to %s, VL %d", f.PortName(h.Out), f.PortName(f.Peer(h.Out)), h.VL))
	}
	if path.Lost != "" {
		p.tone = p.theme.loop
		p.lines = append(p.lines, "lost: "+path.Lost)
	}
	return nil
}

// endPort finds a port by the name of its node, its or the node's GUID, or its LID.
func (p *Picture) endPort(name string) (fabric.PortID, error) {
	f := p.Fabric
	if n, err := strconv.ParseUint(name, 10, 16); err == nil {
		if at := f.LIDPort(fabric.LID(n)); at != fabric.NoPort {
			return at, nil
		}
		return 0, fmt.Errorf("no port has LID %d", n)
	}
	guid, err := fabric.ParseGUID(name)
	isGUID := err == nil
	var found []fabric.PortID
	for n := range fabric.NodeID(f.NumNodes()) {
		x := f.Node(n)
		byNode := f.Name(n).Text == name || isGUID && x.GUID == guid
		if f.IsSwitch(n) {
			if byNode {
				found = append(found, f.Port(n, 0))
			}
			continue
		}
		for num := range x.NumPorts {
			at := f.Port(n, num+1)
			if f.Peer(at) != fabric.NoPort && f.LID(at) != 0 && (byNode || isGUID && f.PortGUID(at) == guid) {
				found = append(found, at)
				break
			}
		}
	}
	switch {
	case len(found) == 0:
		return 0, fmt.Errorf("no node with a LID is called %q", name)
	case len(found) > 1:
		return 0, fmt.Errorf("%d nodes are called %q; use a GUID or LID", len(found), name)
	}
	return found[0], nil
}

// showGroup marks the masks of a group.
func (p *Picture) showGroup(name string) error {
	groups := p.groups()
	if p.Multicast == nil {
		return fmt.Errorf("there are no multicast tables")
	}
	i := slices.IndexFunc(groups, func(t mft.Tree) bool {
		return t.Name == name || fmt.Sprintf("%#x", uint16(t.MLID)) == strings.ToLower(name)
	})
	if i < 0 {
		return fmt.Errorf("no group is called %q", name)
	}
	f, g := p.Fabric, groups[i]
	p.tone = p.theme.tree
	for _, out := range p.Multicast.Tables.Ports(g.MLID) {
		p.marks[f.Owner(out)] = p.theme.node
		if f.Num(out) != fabric.ManagementPort && f.Peer(out) != fabric.NoPort {
			p.channels = append(p.channels, out)
		}
	}
	for _, r := range g.Receivers {
		p.marks[f.Owner(r)] = p.theme.tree
		p.labels = append(p.labels, f.Owner(r))
	}
	if len(g.Senders) < len(g.Receivers) {
		for _, s := range g.Senders {
			p.marks[f.Owner(s)] = p.theme.path
			p.labels = append(p.labels, f.Owner(s))
			if f.Peer(s) != fabric.NoPort {
				p.channels = append(p.channels, s)
			}
		}
	}
	p.title = fmt.Sprintf("%s: multicast group %s", p.title, g.Name)
	p.lines = append(p.lines, fmt.Sprintf("MLID %#x; senders: %d, receivers: %d, ports in masks: %d",
		uint16(g.MLID), len(g.Senders), len(g.Receivers), len(p.Multicast.Tables.Ports(g.MLID))))
	return nil
}

// showLoop marks a credit loop.
func (p *Picture) showLoop(n int) error {
	cycles := p.Result.CreditLoops.Cycles
	if n >= len(cycles) {
		return fmt.Errorf("there is no such credit loop: %d are known", len(cycles))
	}
	f := p.Fabric
	p.tone = p.theme.loop
	p.title = fmt.Sprintf("%s: credit loop of %d channels", p.title, len(cycles[n]))
	for i, h := range cycles[n] {
		s, ok := f.SwitchByGUID(h.Switch)
		if !ok || h.Port > f.Node(s).NumPorts {
			return fmt.Errorf("the fabric has no %s", h)
		}
		p.channels = append(p.channels, f.Port(s, h.Port))
		p.marks[s] = p.theme.loop
		p.labels = append(p.labels, s)
		next := cycles[n][(i+1)%len(cycles[n])]
		p.lines = append(p.lines, fmt.Sprintf("%s VL %d: a packet to %s waits for %s", h, h.VL, h.Target(), next))
	}
	return nil
}

// Sizes on paper.
const (
	pictureWidth = 26 * vg.Centimeter
	pictureMost  = 22 * vg.Centimeter // height of the drawing
	pictureLeast = 5 * vg.Centimeter
	margin       = 0.6 * vg.Centimeter
	titleHeight  = 1.3 * vg.Centimeter
	lineHeight   = 0.42 * vg.Centimeter
	mostLines    = 24
	pngDPI       = 120
)

// box is the smallest that has everything, in the units of the layout.
func (l *layout) box() (left, top, right, bottom float64) {
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

// point is a place in the units of the layout.
type point struct{ X, Y float64 }

// bezier is the points of a cubic curve.
type bezier [4]point

// curve is the line of an edge, from a to b.
func (l *layout) curve(i int) bezier {
	e := &l.edges[i]
	a, b := l.middle(e.a), l.middle(e.b)
	dx, dy := b.X-a.X, b.Y-a.Y
	out := 4.0 / 3 * float64(e.bend) / cmp.Or(math.Hypot(dx, dy), 1)
	return bezier{a, {a.X + dy*out, a.Y - dx*out}, {b.X + dy*out, b.Y - dx*out}, b}
}

// at is the place and the direction at t from 0 to 1.
func (c bezier) at(t float64) (place, way point) {
	u := 1 - t
	mix := func(a, b, c, d float64) (float64, float64) {
		return u*u*u*a + 3*u*u*t*b + 3*u*t*t*c + t*t*t*d, u*u*(b-a) + 2*u*t*(c-b) + t*t*(d-c)
	}
	place.X, way.X = mix(c[0].X, c[1].X, c[2].X, c[3].X)
	place.Y, way.Y = mix(c[0].Y, c[1].Y, c[2].Y, c[3].Y)
	return place, way
}

// size is that of the picture, and of the drawing in it.
func (p *Picture) size() (w, h, drawing vg.Length) {
	left, top, right, bottom := p.box()
	inner := pictureWidth - 2*margin
	drawing = min(max(inner*vg.Length((bottom-top)/max(right-left, 1)), pictureLeast), pictureMost)
	return pictureWidth, drawing + titleHeight + 3*margin + lineHeight*vg.Length(len(p.below())) + 2*lineHeight, drawing
}

// below is the lines of text, not too many.
func (p *Picture) below() []string {
	if len(p.lines) > mostLines {
		return append(slices.Clone(p.lines[:mostLines-1]), fmt.Sprintf("and %d more", len(p.lines)-mostLines+1))
	}
	return p.lines
}

// SVG writes the picture as SVG. Errors are those of w.
func (p *Picture) SVG(w io.Writer) error {
	width, height, _ := p.size()
	canvas := vgsvg.NewWith(vgsvg.UseWH(width, height))
	p.draw(draw.New(canvas))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

// PNG writes the picture as PNG of 120 dots an inch. Errors are those of w.
func (p *Picture) PNG(w io.Writer) error {
	width, height, _ := p.size()
	canvas := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(pngDPI))
	p.draw(draw.New(canvas))
	_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
	return err
}

// warmth is the place of a load on the ramp, 0 to 1: the mean is in the middle, and the
// far end is the greatest load, or twice the mean where that is more.
func (s *scene) warmth(load int64) float64 {
	n := float64(load)
	switch {
	case s.mean == 0:
		return 0
	case n <= s.mean:
		return 0.5 * n / s.mean
	}
	return 0.5 + 0.5*(n-s.mean)/(max(float64(s.max), 2*s.mean)-s.mean)
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

func textStyle(c color.Color, size vg.Length, x draw.XAlignment, y draw.YAlignment) draw.TextStyle {
	return draw.TextStyle{
		Color: c, Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: size},
		XAlign: x, YAlign: y, Handler: plot.DefaultTextHandler,
	}
}

func (p *Picture) draw(canvas draw.Canvas) {
	t := p.theme
	canvas.SetColor(t.ground)
	canvas.Fill(canvas.Rectangle.Path())
	canvas = draw.Crop(canvas, margin, -margin, margin, -margin)
	canvas.FillText(textStyle(t.ink, 13, draw.XLeft, draw.YTop), vg.Point{X: canvas.Min.X, Y: canvas.Max.Y}, p.title)
	_, _, height := p.size()
	left, top, right, bottom := p.box()
	upper := canvas.Max.Y - titleHeight
	scale := min(float64(canvas.Max.X-canvas.Min.X)/max(right-left, 1), float64(height)/max(bottom-top, 1), 1.2)
	shift := (float64(canvas.Max.X-canvas.Min.X) - scale*(right-left)) / 2
	down := (float64(height) - scale*(bottom-top)) / 2
	at := func(q point) vg.Point {
		return vg.Point{X: canvas.Min.X + vg.Length(shift+scale*(q.X-left)), Y: upper - vg.Length(down+scale*(q.Y-top))}
	}
	dim := len(p.channels) > 0
	p.drawEdges(canvas, at, dim)
	p.drawHosts(canvas, at, scale, dim)
	for _, out := range p.channels {
		p.drawChannel(canvas, at, out)
	}
	marked := make([]fabric.NodeID, 0, len(p.marks))
	for n := range p.marks {
		marked = append(marked, n)
	}
	slices.Sort(marked)
	for s := range fabric.NodeID(p.Fabric.NumSwitches()) {
		c := t.node
		if dim {
			c = blend(t.ground, t.node, 0.35)
		}
		p.drawNode(canvas, at, scale, s, c)
	}
	for _, out := range p.channels {
		for _, n := range []fabric.NodeID{p.Fabric.Owner(out), p.Fabric.Owner(p.Fabric.Peer(out))} {
			c := color.Color(t.node)
			if !p.Fabric.IsSwitch(n) {
				c = t.host
			}
			p.drawNode(canvas, at, scale, n, c)
		}
	}
	for _, n := range marked {
		p.drawNode(canvas, at, scale, n, p.marks[n])
	}
	p.drawNames(canvas, at, scale)
	y := upper - height - margin
	p.drawLegend(canvas, y)
	for i, line := range p.below() {
		canvas.FillText(textStyle(t.muted, 9, draw.XLeft, draw.YTop), vg.Point{X: canvas.Min.X, Y: y - 2*lineHeight - lineHeight*vg.Length(i)}, line)
	}
}

// drawEdges draws the links, the most loaded last.
func (p *Picture) drawEdges(canvas draw.Canvas, at func(point) vg.Point, dim bool) {
	f := p.Fabric
	load := make([]int64, len(p.edges))
	order := make([]int, len(p.edges))
	for i := range p.edges {
		order[i] = i
		if p.routes == nil {
			continue
		}
		for _, c := range p.ports(i) {
			load[i] = max(load[i], p.routes[c], p.routes[f.Peer(c)])
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(load[a], load[b]) })
	thin := vg.Length(min(1.1, max(0.25, 600/float64(len(p.edges)+1))))
	faint := p.faint()
	for _, i := range order {
		c := p.theme.ramp[2]
		warm := 0.0
		var dashes []vg.Length
		switch {
		case p.routes != nil && load[i] == 0:
			c, dashes = p.theme.unused, []vg.Length{2, 2}
		case p.routes != nil:
			warm = p.warmth(load[i])
			c = p.theme.shade(warm)
		}
		strong := faint + (1-faint)*warm*warm
		if dim {
			strong = 0.2
		}
		canvas.SetColor(blend(p.theme.ground, c, strong))
		canvas.SetLineWidth(thin * vg.Length(1+0.8*warm*warm))
		canvas.SetLineDash(dashes, 0)
		canvas.Stroke(path(p.curve(i), at))
	}
	canvas.SetLineDash(nil, 0)
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

// path is a curve on paper.
func path(c bezier, at func(point) vg.Point) vg.Path {
	var v vg.Path
	v.Move(at(c[0]))
	if c[0] == c[1] {
		v.Line(at(c[3]))
	} else {
		v.CubeTo(at(c[1]), at(c[2]), at(c[3]))
	}
	return v
}

// straight is the line between two nodes.
func (l *layout) straight(a, b fabric.NodeID) bezier {
	return bezier{l.middle(a), l.middle(a), l.middle(b), l.middle(b)}
}

func (p *Picture) drawHosts(canvas draw.Canvas, at func(point) vg.Point, scale float64, dim bool) {
	f := p.Fabric
	line, dot := blend(p.theme.ground, p.theme.host, 0.6), p.theme.host
	if dim {
		line, dot = blend(p.theme.ground, p.theme.host, 0.15), blend(p.theme.ground, p.theme.host, 0.35)
	}
	hosts := hostsOf(f)
	canvas.SetColor(line)
	canvas.SetLineWidth(0.5)
	for s, list := range hosts {
		for _, n := range list {
			if len(list) <= 4 {
				canvas.Stroke(path(p.straight(fabric.NodeID(s), n), at))
			}
		}
	}
	for n := range fabric.NodeID(f.NumNodes()) {
		if !f.IsSwitch(n) {
			p.drawNode(canvas, at, scale, n, dot)
		}
	}
}

func (l *layout) middle(n fabric.NodeID) point { return point{float64(l.x[n]), float64(l.y[n])} }

// drawNode draws a switch as a square, others as a disc.
func (p *Picture) drawNode(canvas draw.Canvas, at func(point) vg.Point, scale float64, n fabric.NodeID, c color.Color) {
	m, r := at(p.middle(n)), vg.Length(scale*float64(p.radius[n]))
	canvas.SetColor(c)
	if !p.Fabric.IsSwitch(n) {
		r = max(r, 0.5)
		var v vg.Path
		v.Move(vg.Point{X: m.X + r, Y: m.Y})
		v.Arc(m, r, 0, 2*math.Pi)
		v.Close()
		canvas.Fill(v)
		return
	}
	r = max(r, 1)
	square := vg.Rectangle{Min: vg.Point{X: m.X - r, Y: m.Y - r}, Max: vg.Point{X: m.X + r, Y: m.Y + r}}
	canvas.Fill(square.Path())
	if r > 2 {
		canvas.SetColor(p.theme.ground)
		canvas.SetLineWidth(0.5)
		canvas.Stroke(square.Path())
	}
}

// drawChannel draws one direction of a cable, with an arrow beyond its middle.
func (p *Picture) drawChannel(canvas draw.Canvas, at func(point) vg.Point, out fabric.PortID) {
	f := p.Fabric
	a, b := f.Owner(out), f.Owner(f.Peer(out))
	c := p.straight(a, b)
	key := edge{a: min(a, b), b: max(a, b)}
	if i, ok := slices.BinarySearchFunc(p.edges, key, func(x, y edge) int { return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b)) }); ok {
		c = p.curve(i)
		if p.edges[i].a != a {
			slices.Reverse(c[:])
		}
	}
	width := vg.Length(2.2)
	if len(p.channels) > 200 {
		width = 1
	}
	canvas.SetColor(p.tone)
	canvas.SetLineWidth(width)
	canvas.Stroke(path(c, at))
	place, way := c.at(0.58)
	mid := at(place)
	tip := at(point{place.X + way.X, place.Y + way.Y})
	dx, dy := float64(tip.X-mid.X), float64(tip.Y-mid.Y)
	length := math.Hypot(dx, dy)
	if length < 2 {
		return
	}
	h := 4 * width
	ux, uy := vg.Length(dx/length)*h/2, vg.Length(dy/length)*h/2
	var v vg.Path
	v.Move(vg.Point{X: mid.X + ux, Y: mid.Y + uy})
	v.Line(vg.Point{X: mid.X - ux - uy, Y: mid.Y - uy + ux})
	v.Line(vg.Point{X: mid.X - ux + uy, Y: mid.Y - uy - ux})
	v.Close()
	canvas.Fill(v)
}

// drawNames writes the names of what is shown, or of all switches that have room.
func (p *Picture) drawNames(canvas draw.Canvas, at func(point) vg.Point, scale float64) {
	f := p.Fabric
	write := func(n fabric.NodeID, c color.Color, size vg.Length) {
		m := at(p.middle(n))
		style := textStyle(c, size, draw.XCenter, draw.YBottom)
		y := m.Y + vg.Length(scale*float64(p.radius[n])) + 2
		if f.IsSwitch(n) == (p.kind == "grid") {
			style.YAlign, y = draw.YTop, m.Y-vg.Length(scale*float64(p.radius[n]))-2
		}
		text := f.Name(n).Label()
		half := style.Width(text)/2 + 1
		m.X = min(max(m.X, canvas.Min.X+half), canvas.Max.X-half)
		// Lines do not go through names.
		back := vg.Rectangle{Min: vg.Point{X: m.X - half, Y: y - 1}, Max: vg.Point{X: m.X + half, Y: y + 0.75*size}}
		if style.YAlign == draw.YTop {
			back.Min.Y, back.Max.Y = y-0.95*size, y
		}
		canvas.SetColor(p.theme.ground)
		canvas.Fill(back.Path())
		canvas.FillText(style, vg.Point{X: m.X, Y: y}, text)
	}
	if len(p.channels) > 0 {
		if len(p.labels) <= 40 {
			for _, n := range p.labels {
				write(n, p.theme.ink, 8)
			}
		}
		return
	}
	// The room of a row is that of its closest two switches.
	room := make(map[float32]float64)
	rows := make(map[float32][]float32)
	for s := range fabric.NodeID(f.NumSwitches()) {
		rows[p.y[s]] = append(rows[p.y[s]], p.x[s])
	}
	for y, row := range rows {
		slices.Sort(row)
		room[y] = math.Inf(1)
		for i := 1; i < len(row); i++ {
			room[y] = min(room[y], scale*float64(row[i]-row[i-1]))
		}
	}
	for s := range fabric.NodeID(f.NumSwitches()) {
		style := textStyle(p.theme.ink, 8, draw.XCenter, draw.YBottom)
		if float64(style.Width(f.Name(s).Label()))+4 < room[p.y[s]] {
			write(s, p.theme.ink, 8)
		}
	}
}

// drawLegend says what the colours of links mean.
func (p *Picture) drawLegend(canvas draw.Canvas, y vg.Length) {
	if p.routes == nil || p.max == 0 || len(p.channels) > 0 {
		return
	}
	const wide, steps = 5 * vg.Centimeter, 60
	x := canvas.Min.X
	for i := range steps {
		canvas.SetColor(p.theme.shade((float64(i) + 0.5) / steps))
		from := x + wide*vg.Length(i)/steps
		canvas.Fill(vg.Rectangle{Min: vg.Point{X: from, Y: y - 6}, Max: vg.Point{X: x + wide, Y: y}}.Path())
	}
	most := max(p.max, int64(math.Ceil(2*p.mean)))
	text := fmt.Sprintf("routes on a link: 0, mean %.1f, right end %d; busiest %d", p.mean, most, p.max)
	canvas.FillText(textStyle(p.theme.muted, 9, draw.XLeft, draw.YCenter), vg.Point{X: x + wide + 8, Y: y - 3}, text)
}
