// Package chart draws measurements in SVG and PNG, for readers who compare our figure with a
// report's or a paper's: panels side by side, axes with units, confidence intervals, a legend
// below each panel, and a caption. Curves differ by colour (the Palette of Okabe and Ito, which
// colour-blind people can tell apart), by marker and by dashes, so that they differ in black
// and white too. The same chart gives the same bytes. It makes no promise to other modules.
package chart

import (
	"bytes"
	"fmt"
	"html"
	"image/color"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/ibweave/ibweave/internal/text"
)

// Axis describes a coordinate.
type Axis struct {
	Label string `json:"label"`
	Unit  string `json:"unit,omitempty"` // such as "ns"; "" for a number without unit
	// Scale is Linear or a logarithm.
	Scale Scale `json:"scale"`
	// Names, for a Y axis, label its values from 1 on, the last name first.
	// Categories, for an X axis, label 1, 2 and so on; points are then not joined.
	Names      []string `json:"names,omitempty"`
	Categories []string `json:"categories,omitempty"`
}

// String returns the axis' label with its unit.
func (a Axis) String() string {
	if a.Unit == "" {
		return a.Label
	}
	return a.Label + " (" + a.Unit + ")"
}

// Scale maps values to positions on paper.
type Scale string

// The scales. Logarithms have ticks at powers of their base, and show only positive values.
const (
	Linear Scale = "linear"
	Log2   Scale = "log2"
	Log10  Scale = "log10"
)

// Point is a measurement.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
	// Half is half the width of the 95 % confidence interval of Y, in Y's unit; 0 if there is
	// none, for example if Y does not depend on chance.
	Half float64 `json:"half,omitempty"`
	// N is the number of independent values whose mean is Y; 0 if Y does not depend on chance.
	N int `json:"n,omitempty"`
	// Draws, if any, are the values whose mean is Y. If points of other curves have equally
	// many, the values with the same index are from the same network and group.
	Draws []float64 `json:"draws,omitempty"`
	// Unsteady means that Y depends on how long it is measured, since more packets come than
	// go. Its curve ends here.
	Unsteady bool `json:"unsteady,omitempty"`
}

// Curve is points that belong together, by ascending X.
type Curve struct {
	Name   string  `json:"name"` // "" if the line in the legend is that of another curve with this Look
	Points []Point `json:"points"`
	// Look, if not "", gives curves the same colour and marker: for example a scheme in all
	// panels, or a model and its simulation.
	Look string `json:"-"`
	Form Form   `json:"-"`
}

// Form is how a curve is drawn.
type Form uint8

// The forms.
const (
	LineAndPoints Form = iota
	LineOnly           // for a model
	PointsOnly         // measurements that a line models
)

// Level is a claimed value: a horizontal line.
type Level struct {
	Name string
	Y    float64
}

// Panel is one system of coordinates.
type Panel struct {
	Title  string  `json:"title"`
	X      Axis    `json:"x"`
	Y      Axis    `json:"y"`
	Curves []Curve `json:"curves"`
	Levels []Level `json:"-"`
	Most   float64 `json:"-"` // greatest possible value: intervals end there; 0 for none
}

// Chart is panels side by side, up to three in a row, more in rows of two.
type Chart struct {
	Title   string
	Panels  []Panel
	Caption string // below all panels
	// Looks get the first styles, in this order, so that a scheme looks the same in
	// several charts.
	Looks []string
}

// Sizes on paper, of a panel without its legend and of lines of text.
const (
	panelWidth  = 9 * vg.Centimeter
	panelHeight = 7.5 * vg.Centimeter
	namesWidth  = 4 * vg.Centimeter // added width for names on the Y axis
	margin      = 0.3 * vg.Centimeter
	axisName    = 0.7 * vg.Centimeter
	thumb       = 1.2 * vg.Centimeter // length of a curve's sample in a legend
	legendLine  = 0.42 * vg.Centimeter
	pngDPI      = 120
)

// Palette has the colours of curves and packets: Okabe and Ito's without yellow, too weak on
// white.
var Palette = []color.Color{
	color.RGBA{0x00, 0x72, 0xb2, 0xff}, // blue
	color.RGBA{0xd5, 0x5e, 0x00, 0xff}, // vermilion
	color.RGBA{0x00, 0x9e, 0x73, 0xff}, // green
	color.RGBA{0xcc, 0x79, 0xa7, 0xff}, // purple
	color.RGBA{0xe6, 0x9f, 0x00, 0xff}, // orange
	color.RGBA{0x56, 0xb4, 0xe9, 0xff}, // sky
	color.RGBA{0x00, 0x00, 0x00, 0xff}, // black
	color.RGBA{0x90, 0x90, 0x90, 0xff}, // grey, our addition
}

// markers are hollow if possible, so that overlapping ones show.
var markers = []draw.GlyphDrawer{
	draw.RingGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.CrossGlyph{}, draw.PlusGlyph{},
}

var dashes = [][]vg.Length{nil, {6, 3}, {2, 2}, {8, 2, 2, 2}}

// styleOf returns the look of the i-th curve of a chart. The numbers of markers and of colours
// have no common divisor, so 40 curves differ.
func styleOf(i int) (draw.LineStyle, draw.GlyphStyle) {
	c := Palette[i%len(Palette)]
	return draw.LineStyle{Color: c, Width: 1.3, Dashes: dashes[i%len(dashes)]},
		draw.GlyphStyle{Color: c, Radius: 3, Shape: markers[i%len(markers)]}
}

// look returns the key of a curve's style.
func (c *Curve) look() string {
	if c.Look != "" {
		return c.Look
	}
	return c.Name
}

// looks numbers the looks of all panels in the order of their first use.
func (c *Chart) looks() map[string]int {
	index := map[string]int{}
	for i, look := range c.Looks {
		index[look] = i
	}
	for _, p := range c.Panels {
		for _, curve := range p.Curves {
			if _, seen := index[curve.look()]; !seen {
				index[curve.look()] = len(index)
			}
		}
	}
	return index
}

// grid returns how many rows and columns of panels there are.
func (c *Chart) grid() (rows, columns int) {
	columns = len(c.Panels)
	if columns > 3 {
		columns = 2
	}
	return (len(c.Panels) + columns - 1) / columns, columns
}

// Texts of a chart.
var (
	titleStyle   = TextStyle(11)
	captionStyle = TextStyle(8)
	legendStyle  = TextStyle(8.5)
)

// TextStyle returns black text of a size; it starts at its upper left corner.
func TextStyle(size vg.Length) draw.TextStyle {
	return draw.TextStyle{Color: color.Black, Font: face(size), XAlign: draw.XLeft, YAlign: draw.YTop, Handler: plot.DefaultTextHandler}
}

// Wrap splits words into lines of at most width, except single wider words.
func Wrap(words string, width vg.Length, style draw.TextStyle) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(words) {
		switch {
		case line == "":
			line = word
		case style.Width(line+" "+word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// LineHeight returns the distance between lines of text.
func LineHeight(style draw.TextStyle) vg.Length { return style.Font.Size * 1.3 }

// FillLines writes lines downwards from a point.
func FillLines(canvas draw.Canvas, style draw.TextStyle, at vg.Point, lines []string) {
	for i, line := range lines {
		canvas.FillText(style, vg.Point{X: at.X, Y: at.Y - LineHeight(style)*vg.Length(i)}, line)
	}
}

// entry is a line of a legend: a curve, or a claimed level.
type entry struct {
	curve *Curve
	lines []string
}

// legend returns the entries below a panel, and how many lines they take.
func (p *Panel) legend() (entries []entry, lines int) {
	add := func(c *Curve, name string) {
		e := entry{c, Wrap(name, panelWidth-thumb-3*margin, legendStyle)}
		if e.lines == nil {
			e.lines = []string{""}
		}
		entries = append(entries, e)
		lines += len(e.lines)
	}
	for i := range p.Curves {
		if p.Curves[i].Name != "" {
			add(&p.Curves[i], p.Curves[i].Name)
		}
	}
	for _, l := range p.Levels {
		add(nil, l.Name)
	}
	return entries, lines
}

// Sheet is a title, a picture below it, and a caption below that.
type Sheet struct {
	Title, Caption string
	// Width includes the margins on both sides; Height is the height of the picture alone.
	Width, Height vg.Length
}

// Writer writes what paint draws: WriteSVG or WritePNG. Errors are those of w and paint.
type Writer func(w io.Writer, width, height vg.Length, paint func(draw.Canvas) error) error

// Write writes the sheet. paint draws the picture on its part of the canvas.
func (s *Sheet) Write(w io.Writer, write Writer, paint func(draw.Canvas) error) error {
	title, caption := Wrap(s.Title, s.Width-2*margin, titleStyle), Wrap(s.Caption, s.Width-2*margin, captionStyle)
	above, below := LineHeight(titleStyle)*vg.Length(len(title))+margin, vg.Length(0)
	if caption != nil {
		below = LineHeight(captionStyle)*vg.Length(len(caption)) + margin
	}
	return write(w, s.Width, s.Height+2*margin+above+below, func(canvas draw.Canvas) error {
		canvas.SetColor(color.White)
		canvas.Fill(canvas.Rectangle.Path())
		canvas = draw.Crop(canvas, margin, -margin, margin, -margin)
		FillLines(canvas, titleStyle, vg.Point{X: canvas.Min.X, Y: canvas.Max.Y}, title)
		FillLines(canvas, captionStyle, vg.Point{X: canvas.Min.X, Y: canvas.Min.Y + below - margin}, caption)
		return paint(draw.Crop(canvas, 0, 0, below, -above))
	})
}

// sheet returns the sizes of the chart, and the height of legends below panels.
func (c *Chart) sheet() (s *Sheet, legend vg.Length) {
	rows, columns := c.grid()
	width := panelWidth
	if len(c.Panels) > 0 && c.Panels[0].Y.Names != nil {
		width += namesWidth
	}
	for i := range c.Panels {
		_, lines := c.Panels[i].legend()
		legend = max(legend, legendLine*vg.Length(lines)+margin)
	}
	return &Sheet{c.Title, c.Caption, width*vg.Length(columns) + 2*margin, (panelHeight + legend) * vg.Length(rows)}, legend
}

// SVG writes the chart as SVG. Errors are those of w and check.
func (c *Chart) SVG(w io.Writer) error { return c.picture(w, WriteSVG) }

// PNG writes the chart as PNG of 120 dots an inch. Errors are those of SVG.
func (c *Chart) PNG(w io.Writer) error { return c.picture(w, WritePNG) }

func (c *Chart) picture(w io.Writer, write Writer) error {
	if err := c.check(); err != nil {
		return err
	}
	s, legend := c.sheet()
	return s.Write(w, write, func(canvas draw.Canvas) error { return c.draw(canvas, legend) })
}

// WriteSVG writes what paint draws as SVG.
func WriteSVG(w io.Writer, width, height vg.Length, paint func(draw.Canvas) error) error {
	canvas := vgsvg.NewWith(vgsvg.UseWH(width, height))
	if err := paint(draw.New(canvas)); err != nil {
		return err
	}
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return err
	}
	// More fonts with the same widths, for readers without Liberation.
	const family = "font-family:Liberation Sans"
	svg, _ := text.AppendPrintable(nil, b.Bytes())
	svg = bytes.ReplaceAll(svg, []byte(family), []byte(family+",Arial,Helvetica,sans-serif"))
	_, err := w.Write(svgText.ReplaceAllFunc(svg, fixWidth))
	return err
}

// svgText matches a text element in gonum's SVG, with its size and words.
var svgText = regexp.MustCompile(`(?s)<text ([^>]*font-size:([0-9.]+)px[^>]*)>([^<]*)</text>`)

// fixWidth sets the width of a text element to the laid-out one, so that any font fits.
func fixWidth(element []byte) []byte {
	part := svgText.FindSubmatch(element)
	size, err := strconv.ParseFloat(string(part[2]), 64)
	if err != nil || len(part[3]) == 0 {
		return element
	}
	style := TextStyle(vg.Points(size))
	return fmt.Appendf(nil, `<text textLength="%.4g" lengthAdjust="spacingAndGlyphs" %s>%s</text>`,
		style.Width(html.UnescapeString(string(part[3]))).Points(), part[1], part[3])
}

// WritePNG writes what paint draws as PNG of 120 dots an inch.
func WritePNG(w io.Writer, width, height vg.Length, paint func(draw.Canvas) error) error {
	canvas := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(pngDPI))
	if err := paint(draw.New(canvas)); err != nil {
		return err
	}
	_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
	return err
}

// check returns an error if c has no panel, or a point that is not finite, or not positive on a
// logarithmic axis.
func (c *Chart) check() error {
	if len(c.Panels) == 0 {
		return fmt.Errorf("chart %q has no panel", c.Title)
	}
	for _, p := range c.Panels {
		for _, curve := range p.Curves {
			for _, at := range curve.Points {
				if sum := at.X + at.Y + at.Half; math.IsNaN(sum) || math.IsInf(sum, 0) {
					return fmt.Errorf("chart %q, curve %q: a point at %v, %v", c.Title, curve.Name, at.X, at.Y)
				}
				if p.X.Scale != Linear && at.X <= 0 || p.Y.Scale != Linear && at.Y <= 0 {
					return fmt.Errorf("chart %q, curve %q: %v, %v on a logarithmic axis", c.Title, curve.Name, at.X, at.Y)
				}
			}
		}
	}
	return nil
}

// face returns a sans serif font of a size.
func face(size vg.Length) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
}

// draw draws the panels, with legends of this height below them.
func (c *Chart) draw(canvas draw.Canvas, legend vg.Length) error {
	index := c.looks()
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
	// Titles and the names of axes are drawn here: gonum/plot places a name at the middle value
	// of an axis, even of a logarithmic one, and leaves room above for the name there.
	tiles := draw.Tiles{
		Rows: rows, Cols: columns, PadX: axisName + 0.4*vg.Centimeter, PadY: 2*axisName + legend,
		PadLeft: axisName, PadTop: axisName, PadBottom: axisName + legend,
	}
	style := TextStyle(9)
	style.XAlign, style.YAlign = draw.XCenter, draw.YCenter
	for i, row := range plot.Align(plots, tiles, canvas) {
		for k, at := range row {
			if plots[i][k] == nil {
				continue
			}
			plots[i][k].Draw(at)
			p := &c.Panels[i*columns+k]
			data := plots[i][k].DataCanvas(at)
			middle := vg.Point{X: (data.Min.X + data.Max.X) / 2, Y: (data.Min.Y + data.Max.Y) / 2}
			// Names may be longer than the axis: they get more lines, farther from it.
			name := func(words string, at, away vg.Point, room vg.Length) {
				lines := Wrap(words, room, style)
				at = at.Add(away.Scale(LineHeight(style) * vg.Length(len(lines)-1) / 2))
				canvas.FillText(style, at, strings.Join(lines, "\n"))
			}
			style.Rotation, style.Font = 0, face(10)
			name(p.Title, vg.Point{X: middle.X, Y: data.Max.Y + axisName/2 + 2}, vg.Point{Y: 1}, panelWidth-2*margin)
			style.Font = face(9)
			name(p.X.String(), vg.Point{X: middle.X, Y: at.Min.Y - axisName/2 + 2}, vg.Point{Y: -1}, panelWidth-2*margin)
			style.Rotation = math.Pi / 2
			name(p.Y.String(), vg.Point{X: at.Min.X - axisName/2 + 2, Y: middle.Y}, vg.Point{X: -1}, data.Size().Y)
			p.drawLegend(canvas, vg.Point{X: at.Min.X - axisName, Y: at.Min.Y - axisName}, index)
		}
	}
	return nil
}

// isJoined returns true if the points of a curve are joined by a line.
func (p *Panel) isJoined(c *Curve) bool {
	return c.Form != PointsOnly && p.X.Categories == nil && p.Y.Names == nil
}

// drawLegend draws the legend of a panel, from a point down.
func (p *Panel) drawLegend(canvas draw.Canvas, at vg.Point, index map[string]int) {
	entries, _ := p.legend()
	for _, e := range entries {
		middle := vg.Point{X: at.X + thumb/2, Y: at.Y - legendLine/2}
		switch {
		case e.curve == nil:
			canvas.StrokeLine2(levelStyle, at.X, middle.Y, at.X+thumb, middle.Y)
		default:
			line, marker := styleOf(index[e.curve.look()])
			if p.isJoined(e.curve) {
				canvas.StrokeLine2(line, at.X, middle.Y, at.X+thumb, middle.Y)
			}
			// A curve without a name may be the points of this one.
			if e.curve.Form != LineOnly || slices.ContainsFunc(p.Curves, func(c Curve) bool { return c.Name == "" && c.Look == e.curve.Look }) {
				canvas.DrawGlyph(marker, middle)
			}
		}
		style := legendStyle
		style.YAlign = draw.YCenter
		for i, line := range e.lines {
			canvas.FillText(style, vg.Point{X: at.X + thumb + margin/2, Y: middle.Y - legendLine*vg.Length(i)}, line)
		}
		at.Y -= legendLine * vg.Length(len(e.lines))
	}
}

// xys has the points of a curve for gonum/plot.
type xys []Point

func (p xys) Len() int                { return len(p) }
func (p xys) XY(i int) (x, y float64) { return p[i].X, p[i].Y }

// intervals has the points of a curve with their intervals.
type intervals struct {
	xys
	of *Panel
}

func (p intervals) YError(i int) (low, high float64) { return p.of.interval(p.xys[i]) }

// interval returns how far a point's interval reaches down and up. On a logarithmic axis it has
// no lower half if that reaches 0. It ends at 0 for values that are not negative, and at the
// panel's Most.
func (p *Panel) interval(at Point) (low, high float64) {
	low, high = at.Half, at.Half
	switch {
	case p.Y.Scale != Linear && low >= at.Y:
		low = 0
	case at.Y >= 0:
		low = min(low, at.Y)
	}
	if p.Most > 0 && at.Y <= p.Most {
		high = min(high, p.Most-at.Y)
	}
	return low, high
}

// levelStyle is the line of a claimed level.
var levelStyle = draw.LineStyle{Color: color.Gray{0x60}, Width: 1, Dashes: []vg.Length{4, 2}}

// plot returns the panel; index gives each curve its look.
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
	p.setLimits(g)
	for i := range p.Curves {
		c := &p.Curves[i]
		if len(c.Points) == 0 {
			continue
		}
		line, marker := styleOf(index[c.look()])
		if err := p.addCurve(g, c, line, marker); err != nil {
			return nil, fmt.Errorf("curve %q: %w", c.Name, err)
		}
	}
	for _, level := range p.Levels {
		g.Add(&plotter.Function{F: func(float64) float64 { return level.Y }, Samples: 2, LineStyle: levelStyle})
	}
	return g, nil
}

// addCurve draws a line, points and intervals.
func (p *Panel) addCurve(g *plot.Plot, c *Curve, look draw.LineStyle, marker draw.GlyphStyle) error {
	line, err := plotter.NewLine(xys(c.Points))
	if err != nil {
		return err
	}
	scatter, err := plotter.NewScatter(xys(c.Points))
	if err != nil {
		return err
	}
	line.LineStyle, scatter.GlyphStyle = look, marker
	if p.isJoined(c) {
		g.Add(line)
	}
	if c.Form != LineOnly {
		g.Add(scatter)
	}
	if !slices.ContainsFunc(c.Points, func(at Point) bool { return at.Half > 0 }) {
		return nil
	}
	bars, err := plotter.NewYErrorBars(intervals{c.Points, p})
	if err != nil {
		return err
	}
	bars.LineStyle = draw.LineStyle{Color: look.Color, Width: 0.8}
	bars.CapWidth = 5
	g.Add(bars)
	return nil
}

// setLimits sets the ends of the axes so that all points, intervals and levels show.
func (p *Panel) setLimits(g *plot.Plot) {
	lowX, highX, lowY, highY := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, curve := range p.Curves {
		for _, at := range curve.Points {
			lowX, highX = min(lowX, at.X), max(highX, at.X)
			low, high := p.interval(at)
			lowY, highY = min(lowY, at.Y-low), max(highY, at.Y+high)
		}
	}
	for _, level := range p.Levels {
		lowY, highY = min(lowY, level.Y), max(highY, level.Y)
	}
	g.X.Min, g.X.Max = limits(lowX, highX, p.X.Scale, false)
	if n := len(p.X.Categories); n > 0 {
		ticks := make(plot.ConstantTicks, n)
		for i, name := range p.X.Categories {
			lines := Wrap(name, (panelWidth-3*axisName)/vg.Length(n), TextStyle(8))
			ticks[i] = plot.Tick{Value: float64(i + 1), Label: strings.Join(lines, "\n")}
		}
		g.X.Min, g.X.Max, g.X.Tick.Marker = 0.5, float64(n)+0.5, ticks
	}
	g.Y.Min, g.Y.Max = limits(lowY, highY, p.Y.Scale, true)
	if n := len(p.Y.Names); n > 0 {
		ticks := make(plot.ConstantTicks, n)
		for i, name := range p.Y.Names {
			ticks[i] = plot.Tick{Value: float64(n - i), Label: name}
		}
		g.Y.Min, g.Y.Max, g.Y.Tick.Marker = 0.5, float64(n)+0.5, ticks
	}
}

// limits returns the ends of an axis: for x the first and the last point; for y whole powers on
// a logarithmic axis, else from 0 if no value is negative.
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

// base returns the base of a logarithm.
func (s Scale) base() float64 {
	if s == Log2 {
		return 2
	}
	return 10
}

// powers makes ticks at the powers of a base; for base 10 also marks at their multiples.
type powers float64

// Ticks implements plot.Ticker.
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

// plainTicks makes gonum/plot's default ticks, with our numbers.
type plainTicks struct{}

// Ticks implements plot.Ticker.
func (plainTicks) Ticks(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = number(ticks[i].Value)
		}
	}
	return ticks
}

// number returns a value as people write it: 0.01, 8192, 1M for a million.
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
