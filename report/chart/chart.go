// Package chart draws measurements as curves, in SVG and PNG, for whoever reads a
// report or a paper's figure next to ours: panels side by side, axes with units,
// intervals of confidence, and one legend below. Curves differ by colour (the
// palette of Okabe and Ito, which colour-blind people tell apart), by marker and
// by dashes, so that they can be told in black and white too. The same chart
// gives the same bytes. It makes no promise to other modules.
package chart

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Axis says what a coordinate is.
type Axis struct {
	Label string `json:"label"`
	Unit  string `json:"unit,omitempty"` // as in "ns"; "" for a number without one
	// Scale is Linear or a logarithm.
	Scale Scale `json:"scale"`
	// Names, of a Y axis, are what values stand for: the last one is 1, the one before 2. Points are not
	// joined then.
	Names []string `json:"names,omitempty"`
}

// String is the axis' label with its unit.
func (a Axis) String() string {
	if a.Unit == "" {
		return a.Label
	}
	return a.Label + " (" + a.Unit + ")"
}

// Scale is how values become places on paper.
type Scale string

// The scales. Logarithms have ticks at powers of their base, and show positive
// values only.
const (
	Linear Scale = "linear"
	Log2   Scale = "log2"
	Log10  Scale = "log10"
)

// Point is a measurement.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
	// Half is half the width of the 95 % confidence interval of Y, in Y's unit;
	// 0 where there is none, as for what has no chance in it.
	Half float64 `json:"half,omitempty"`
	// N is of how many independent values Y is the mean: 0 of what has no chance
	// in it.
	N int `json:"n,omitempty"`
	// Draws, if any, are these values. Points of other curves with as many draws
	// have the same networks and groups, in this order.
	Draws []float64 `json:"draws,omitempty"`
	// Unsteady says that Y depends on how long it is measured, since more comes than
	// goes. Its curve ends here.
	Unsteady bool `json:"unsteady,omitempty"`
}

// Curve is points that belong together, by ascending X.
type Curve struct {
	Name   string  `json:"name"`
	Points []Point `json:"points"`
}

// Panel is one system of coordinates.
type Panel struct {
	Title  string  `json:"title"`
	X      Axis    `json:"x"`
	Y      Axis    `json:"y"`
	Curves []Curve `json:"curves"`
}

// Chart is panels side by side, and below each other where they are more than three.
type Chart struct {
	Title  string
	Panels []Panel
}

// Sizes on paper: of a panel, of what is above and of a line of the legend.
const (
	panelWidth  = 9 * vg.Centimeter
	panelHeight = 7.5 * vg.Centimeter
	namesWidth  = 4 * vg.Centimeter // more, for names on the Y axis
	margin      = 0.3 * vg.Centimeter
	titleHeight = 0.8 * vg.Centimeter
	legendLine  = 0.5 * vg.Centimeter
	pngDPI      = 120
)

// palette is Okabe and Ito's but for its yellow, which is weak on white.
var palette = []color.Color{
	color.RGBA{0x00, 0x72, 0xb2, 0xff}, // blue
	color.RGBA{0xd5, 0x5e, 0x00, 0xff}, // vermilion
	color.RGBA{0x00, 0x9e, 0x73, 0xff}, // green
	color.RGBA{0xcc, 0x79, 0xa7, 0xff}, // purple
	color.RGBA{0xe6, 0x9f, 0x00, 0xff}, // orange
	color.RGBA{0x56, 0xb4, 0xe9, 0xff}, // sky
	color.RGBA{0x00, 0x00, 0x00, 0xff}, // black
}

// markers are hollow where they can be, so that one on another shows.
var markers = []draw.GlyphDrawer{
	draw.RingGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.CrossGlyph{}, draw.PlusGlyph{},
}

var dashes = [][]vg.Length{nil, {6, 3}, {2, 2}, {8, 2, 2, 2}}

// styleOf is the look of the i-th curve of a chart. The numbers of markers and of
// colours have no common divisor, so 35 curves differ.
func styleOf(i int) (draw.LineStyle, draw.GlyphStyle) {
	c := palette[i%len(palette)]
	return draw.LineStyle{Color: c, Width: 1.3, Dashes: dashes[i%len(dashes)]},
		draw.GlyphStyle{Color: c, Radius: 3, Shape: markers[i%len(markers)]}
}

// names are the curves of all panels, each once, by where they come first.
func (c *Chart) names() []string {
	var names []string
	seen := map[string]bool{}
	for _, p := range c.Panels {
		for _, curve := range p.Curves {
			if !seen[curve.Name] {
				seen[curve.Name] = true
				names = append(names, curve.Name)
			}
		}
	}
	return names
}

// grid is how the panels stand.
func (c *Chart) grid() (rows, columns int) {
	columns = len(c.Panels)
	if columns > 3 {
		columns = 2
	}
	return (len(c.Panels) + columns - 1) / columns, columns
}

// size is that of the picture.
func (c *Chart) size() (w, h vg.Length) {
	rows, columns := c.grid()
	width := panelWidth
	if len(c.Panels) > 0 && c.Panels[0].Y.Names != nil {
		width += namesWidth
	}
	return width*vg.Length(columns) + 2*margin,
		panelHeight*vg.Length(rows) + titleHeight + legendLine*vg.Length(len(c.names())) + 3*margin
}

// SVG writes the picture as SVG. Errors are those of w, and charts that cannot be
// drawn: see check.
func (c *Chart) SVG(w io.Writer) error {
	if err := c.check(); err != nil {
		return err
	}
	width, height := c.size()
	canvas := vgsvg.NewWith(vgsvg.UseWH(width, height))
	if err := c.draw(draw.New(canvas)); err != nil {
		return err
	}
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return err
	}
	// Fonts of the same widths, for readers who do not have Liberation.
	const family = "font-family:Liberation Sans"
	_, err := w.Write(bytes.ReplaceAll(b.Bytes(), []byte(family), []byte(family+",Arial,Helvetica,sans-serif")))
	return err
}

// PNG writes the picture as PNG of 120 dots an inch. Errors are those of SVG.
func (c *Chart) PNG(w io.Writer) error {
	if err := c.check(); err != nil {
		return err
	}
	width, height := c.size()
	canvas := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(pngDPI))
	if err := c.draw(draw.New(canvas)); err != nil {
		return err
	}
	_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
	return err
}

// check says why c cannot be drawn: no panel, unknown scales, numbers that are
// none, or not positive on a logarithm.
func (c *Chart) check() error {
	if len(c.Panels) == 0 {
		return fmt.Errorf("chart %q has no panel", c.Title)
	}
	for _, p := range c.Panels {
		for _, axis := range []Axis{p.X, p.Y} {
			if s := axis.Scale; s != Linear && s != Log2 && s != Log10 {
				return fmt.Errorf("chart %q, axis %q: scale %q: want %s, %s or %s", c.Title, axis.Label, s, Linear, Log2, Log10)
			}
		}
		for _, curve := range p.Curves {
			for _, at := range curve.Points {
				for i, v := range []float64{at.X, at.Y, at.Half} {
					if math.IsNaN(v) || math.IsInf(v, 0) {
						return fmt.Errorf("chart %q, curve %q: a point with %v", c.Title, curve.Name, v)
					}
					if scale := []Scale{p.X.Scale, p.Y.Scale, Linear}[i]; scale != Linear && v <= 0 {
						return fmt.Errorf("chart %q, curve %q: %v on a logarithmic axis", c.Title, curve.Name, v)
					}
				}
			}
		}
	}
	return nil
}

// face is a font of a size, without serifs.
func face(size vg.Length) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
}

func (c *Chart) draw(canvas draw.Canvas) error {
	canvas.SetColor(color.White)
	canvas.Fill(canvas.Rectangle.Path())
	names := c.names()
	index := map[string]int{}
	for i, name := range names {
		index[name] = i
	}
	canvas = draw.Crop(canvas, margin, -margin, margin, -margin)
	handler := plot.DefaultTextHandler
	canvas.FillText(draw.TextStyle{
		Color: color.Black, Font: face(11), XAlign: draw.XCenter, YAlign: draw.YTop, Handler: handler,
	}, vg.Point{X: (canvas.Min.X + canvas.Max.X) / 2, Y: canvas.Max.Y}, c.Title)

	rows, columns := c.grid()
	plots := make([][]*plot.Plot, rows)
	for i := range plots {
		plots[i] = make([]*plot.Plot, columns)
	}
	for i := range c.Panels {
		var err error
		if plots[i/columns][i%columns], err = c.Panels[i].plot(index); err != nil {
			return fmt.Errorf("chart %q: %w", c.Title, err)
		}
	}
	below := legendLine * vg.Length(len(names))
	panels := draw.Crop(canvas, 0, 0, below+margin, -titleHeight)
	// Titles and the names of axes are drawn here: gonum/plot takes the middle of
	// a logarithmic axis for the middle of its values, and makes room above for the
	// name that stands there.
	const name = 0.7 * vg.Centimeter
	tiles := draw.Tiles{
		Rows: rows, Cols: columns, PadX: name + 0.4*vg.Centimeter, PadY: 2*name + 0.4*vg.Centimeter,
		PadLeft: name, PadTop: name, PadBottom: name,
	}
	style := draw.TextStyle{Color: color.Black, Font: face(9), XAlign: draw.XCenter, YAlign: draw.YCenter, Handler: handler}
	for i, row := range plot.Align(plots, tiles, panels) {
		for k, at := range row {
			if plots[i][k] == nil {
				continue
			}
			plots[i][k].Draw(at)
			p := &c.Panels[i*columns+k]
			data := plots[i][k].DataCanvas(at)
			middle := vg.Point{X: (data.Min.X + data.Max.X) / 2, Y: (data.Min.Y + data.Max.Y) / 2}
			style.Rotation, style.Font = 0, face(10)
			canvas.FillText(style, vg.Point{X: middle.X, Y: data.Max.Y + name/2 + 2}, p.Title)
			style.Font = face(9)
			canvas.FillText(style, vg.Point{X: middle.X, Y: at.Min.Y - name/2 + 2}, p.X.String())
			style.Rotation = math.Pi / 2
			canvas.FillText(style, vg.Point{X: at.Min.X - name/2 + 2, Y: middle.Y}, p.Y.String())
		}
	}

	for i, name := range names {
		line, marker := styleOf(i)
		const thumb = 1.2 * vg.Centimeter
		at := vg.Point{X: canvas.Min.X + margin, Y: canvas.Min.Y + below - legendLine*(vg.Length(i)+0.5)}
		canvas.StrokeLine2(line, at.X, at.Y, at.X+thumb, at.Y)
		canvas.DrawGlyph(marker, vg.Point{X: at.X + thumb/2, Y: at.Y})
		canvas.FillText(draw.TextStyle{
			Color: color.Black, Font: face(9), XAlign: draw.XLeft, YAlign: draw.YCenter, Handler: handler,
		}, vg.Point{X: at.X + thumb + margin, Y: at.Y}, name)
	}
	return nil
}

// xys are the points of a curve as gonum/plot takes them.
type xys []Point

func (p xys) Len() int                { return len(p) }
func (p xys) XY(i int) (x, y float64) { return p[i].X, p[i].Y }
func (p xys) intervals() bool {
	for _, at := range p {
		if at.Half > 0 {
			return true
		}
	}
	return false
}

// intervals are the points of a curve with their intervals, down to the end of the
// axis: a logarithm has no values from 0 on down.
type intervals struct {
	xys
	least float64
}

func (p intervals) YError(i int) (low, high float64) {
	at := p.xys[i]
	return min(at.Half, at.Y-p.least), at.Half
}

// plot is the panel; index gives each curve its look.
func (p *Panel) plot(index map[string]int) (*plot.Plot, error) {
	g := plot.New()
	g.BackgroundColor = nil
	for i, axis := range []*plot.Axis{&g.X, &g.Y} {
		says := []Axis{p.X, p.Y}[i]
		axis.Tick.Label.Font = face(8)
		axis.Padding = 2
		axis.Tick.Marker = plainTicks{}
		if says.Scale != Linear {
			axis.Scale, axis.Tick.Marker = plot.LogScale{}, powers(says.Scale.base())
		}
	}
	grid := plotter.NewGrid()
	for _, line := range []*draw.LineStyle{&grid.Horizontal, &grid.Vertical} {
		*line = draw.LineStyle{Color: color.Gray{0xdd}, Width: 0.5}
	}
	g.Add(grid)
	lowX, highX, lowY, highY := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, curve := range p.Curves {
		if len(curve.Points) == 0 {
			continue
		}
		line, err := plotter.NewLine(xys(curve.Points))
		if err != nil {
			return nil, fmt.Errorf("curve %q: %w", curve.Name, err)
		}
		scatter, err := plotter.NewScatter(xys(curve.Points))
		if err != nil {
			return nil, fmt.Errorf("curve %q: %w", curve.Name, err)
		}
		line.LineStyle, scatter.GlyphStyle = styleOf(index[curve.Name])
		if p.Y.Names == nil {
			g.Add(line)
		}
		g.Add(scatter)
		for _, at := range curve.Points {
			lowX, highX = min(lowX, at.X), max(highX, at.X)
			low := at.Y - at.Half
			if low <= 0 && p.Y.Scale != Linear {
				low = at.Y
			}
			lowY, highY = min(lowY, low), max(highY, at.Y+at.Half)
		}
	}
	g.X.Min, g.X.Max = limits(lowX, highX, p.X.Scale, false)
	g.Y.Min, g.Y.Max = limits(lowY, highY, p.Y.Scale, true)
	if n := len(p.Y.Names); n > 0 {
		ticks := make(plot.ConstantTicks, n)
		for i, name := range p.Y.Names {
			ticks[i] = plot.Tick{Value: float64(n - i), Label: name}
		}
		g.Y.Min, g.Y.Max, g.Y.Tick.Marker = 0.5, float64(n)+0.5, ticks
	}
	for _, curve := range p.Curves {
		if !xys(curve.Points).intervals() {
			continue
		}
		bars, err := plotter.NewYErrorBars(intervals{curve.Points, g.Y.Min})
		if err != nil {
			return nil, fmt.Errorf("curve %q: %w", curve.Name, err)
		}
		look, _ := styleOf(index[curve.Name])
		bars.LineStyle = draw.LineStyle{Color: look.Color, Width: 0.8}
		bars.CapWidth = 5
		g.Add(bars)
	}
	return g, nil
}

// limits are the ends of an axis: of x the first and the last point; of y whole
// powers on a logarithmic axis, and else from 0 where no value is negative.
func limits(low, high float64, s Scale, y bool) (float64, float64) {
	if math.IsInf(low, 1) { // no points
		low, high = 1, 1
	}
	if s == Linear {
		if y {
			margin := 0.05 * (high - min(low, 0))
			low, high = min(low, 0), high+margin
		}
		if low == high {
			low, high = low-1, high+1
		}
		return low, high
	}
	base := s.base()
	if low <= 0 { // the lower end of an interval
		low = high / (base * base * base)
	}
	if y {
		low = math.Pow(base, math.Floor(math.Log(low)/math.Log(base)+1e-9))
		high = math.Pow(base, math.Ceil(math.Log(high)/math.Log(base)-1e-9))
	}
	if low == high {
		low, high = low/base, high*base
	}
	return low, high
}

// base is that of a logarithm.
func (s Scale) base() float64 {
	if s == Log2 {
		return 2
	}
	return 10
}

// powers are ticks at the powers of a base; between powers of 10 are marks at
// their multiples.
type powers float64

// Ticks is for gonum/plot.
func (b powers) Ticks(low, high float64) []plot.Tick {
	base := float64(b)
	var ticks []plot.Tick
	for e := int(math.Floor(math.Log(low)/math.Log(base) + 1e-9)); ; e++ {
		v := math.Pow(base, float64(e))
		if v > high*(1+1e-9) {
			return ticks
		}
		if v >= low*(1-1e-9) {
			ticks = append(ticks, plot.Tick{Value: v, Label: number(v)})
		}
		if base == 10 {
			for m := 2.0; m < 10; m++ {
				if at := m * v; at >= low && at <= high {
					ticks = append(ticks, plot.Tick{Value: at})
				}
			}
		}
	}
}

// plainTicks are gonum/plot's, with our numbers.
type plainTicks struct{}

// Ticks is for gonum/plot.
func (plainTicks) Ticks(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = number(ticks[i].Value)
		}
	}
	return ticks
}

// number is a value as people write it: 0.01, 8192, 10⁶ as 1M.
func number(v float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e9, "G"}, {1e6, "M"}} {
		if math.Abs(v) >= u.size {
			return strconv.FormatFloat(v/u.size, 'g', 6, 64) + u.name
		}
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}
