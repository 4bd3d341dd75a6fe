// Package drawing draws networks with packets on their
// cables, as the figures of papers have them: as pictures
// in SVG and PNG, and as text. The same drawing gives the
// same bytes. It makes no promise to other modules.
package drawing

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/ibweave/ibweave/report/chart"
)

// Spot is a node of a drawing. X goes right and Y up, in cells of a grid.
type Spot struct {
	Name string  `json:"name"`
	X    float64 `json:"x"`
	Y    float64 `json:"y"`
	// End marks hosts, which have no box.
	End bool `json:"end,omitempty"`
}

// Arrow is a packet on a cable, or a step of a path.
type Arrow struct {
	From int    `json:"from"` // index of a spot
	To   int    `json:"to"`
	Who  string `json:"who"` // the packet or path
	// Waits says that the packet waits for this cable; else it is on it.
	Waits bool `json:"waits,omitempty"`
}

// Network is a drawing of a network with packets on its cables.
type Network struct {
	Title  string   `json:"title"`
	Spots  []Spot   `json:"spots"`
	Cables [][2]int `json:"cables"` // indices of spots
	Arrows []Arrow  `json:"arrows"`
	Notes  []string `json:"notes,omitempty"` // sentences below the drawing
}

// Sheet is a row of drawings under one title.
type Sheet struct {
	Title    string
	Drawings []Network
	Caption  string
}

// Sizes of a cell of the grid, on paper and in characters.
const (
	cellWidth  = 2.6 * vg.Centimeter
	cellHeight = 1.9 * vg.Centimeter
	textWidth  = 14
	textHeight = 4

	margin      = 0.3 * vg.Centimeter
	titleHeight = 0.7 * vg.Centimeter // of a drawing's title
)

var lineStyle = chart.TextStyle(8)

// extent returns the least coordinates of spots, and the distances to the greatest.
func (d *Network) extent() (left, bottom, width, height float64) {
	left, bottom = math.Inf(1), math.Inf(1)
	for _, s := range d.Spots {
		left, bottom = min(left, s.X), min(bottom, s.Y)
	}
	for _, s := range d.Spots {
		width, height = max(width, s.X-left), max(height, s.Y-bottom)
	}
	return left, bottom, width, height
}

// who lists the packets of a drawing, each once, ascending.
func (d *Network) who() []string {
	var list []string
	for _, a := range d.Arrows {
		if !slices.Contains(list, a.Who) {
			list = append(list, a.Who)
		}
	}
	slices.Sort(list)
	return list
}

// mostSteps is the most steps of a packet that are listed.
const mostSteps = 9

// says returns a line for each packet, with the
// cables that it holds and waits for; and the notes.
func (d *Network) says() []string {
	var list []string
	for _, who := range d.who() {
		var on, waits []string
		for _, a := range d.Arrows {
			step := d.Spots[a.From].Name + " -> " + d.Spots[a.To].Name
			switch {
			case a.Who != who:
			case a.Waits:
				waits = append(waits, step)
			default:
				on = append(on, step)
			}
		}
		line := who + ": " + strings.Join(on, ", ")
		switch {
		case waits == nil && len(on) > mostSteps:
			line = fmt.Sprintf("%s: on %d cables", who, len(on))
		case waits != nil && on == nil:
			line = who + " waits for " + strings.Join(waits, ", ")
		case waits != nil:
			line = who + " holds " + strings.Join(on, ", ") + " and waits for " + strings.Join(waits, ", ")
		}
		list = append(list, line)
	}
	return append(list, d.Notes...)
}

// Text writes the title, what each packet holds and waits for,
// and the notes. Errors are those of w.
func (d *Network) Text(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s\n\n  %s\n", d.Title, strings.Join(d.says(), "\n  "))
	return err
}

// SVG writes the drawings as SVG. Errors are those of w.
func (c *Sheet) SVG(w io.Writer) error { return c.picture(w, chart.WriteSVG) }

// PNG writes the drawings as PNG of 120 dots an inch. Errors are those of SVG.
func (c *Sheet) PNG(w io.Writer) error { return c.picture(w, chart.WritePNG) }

func (c *Sheet) picture(w io.Writer, write chart.Writer) error {
	sheet := &chart.Sheet{Title: c.Title, Caption: c.Caption, Width: 2 * margin}
	var widths []vg.Length
	var says [][]string // below each drawing
	// Heights of the drawings with their titles, and of the lines.
	var tall, text vg.Length
	for i := range c.Drawings {
		d := &c.Drawings[i]
		_, _, x, y := d.extent()
		width := max(cellWidth*vg.Length(x+1.2), 7*vg.Centimeter)
		var lines []string
		for _, line := range d.says() {
			lines = append(lines, chart.Wrap(line, width-2*margin, lineStyle)...)
		}
		widths, says = append(widths, width), append(says, lines)
		sheet.Width += width
		tall = max(tall, cellHeight*vg.Length(y+1)+titleHeight)
		text = max(text, chart.LineHeight(lineStyle)*vg.Length(len(lines))+margin)
	}
	sheet.Height = tall + text
	return sheet.Write(w, write, func(canvas draw.Canvas) error {
		at := vg.Point{X: canvas.Min.X, Y: canvas.Max.Y}
		for i := range c.Drawings {
			c.Drawings[i].draw(canvas, at, widths[i])
			chart.FillLines(canvas, lineStyle, vg.Point{X: at.X, Y: at.Y - tall}, says[i])
			at.X += widths[i]
		}
		return nil
	})
}

// draw draws d to the right of and below corner.
func (d *Network) draw(canvas draw.Canvas, corner vg.Point, width vg.Length) {
	left, bottom, x, y := d.extent()
	free := (width - cellWidth*vg.Length(x)) / 2
	at := func(i int) vg.Point {
		s := d.Spots[i]
		return vg.Point{X: corner.X + free + cellWidth*vg.Length(s.X-left), Y: corner.Y - titleHeight - cellHeight*vg.Length(y-s.Y+bottom+0.4)}
	}
	style := chart.TextStyle(10)
	chart.FillLines(canvas, style, corner, chart.Wrap(d.Title, width-2*margin, style))
	for _, c := range d.Cables {
		a, b := at(c[0]), at(c[1])
		canvas.StrokeLine2(draw.LineStyle{Color: color.Gray{0xaa}, Width: 1}, a.X, a.Y, b.X, b.Y)
	}
	who := d.who()
	type pair [2]int
	lanes := map[pair][]Arrow{}
	for _, a := range d.Arrows {
		lanes[pair{a.From, a.To}] = append(lanes[pair{a.From, a.To}], a)
	}
	for _, a := range d.Arrows {
		if lane := lanes[pair{a.From, a.To}]; lane != nil {
			drawArrows(canvas, at(a.From), at(a.To), lane, who)
			delete(lanes, pair{a.From, a.To})
		}
	}
	style = chart.TextStyle(9)
	style.XAlign, style.YAlign = draw.XCenter, draw.YCenter
	for i, s := range d.Spots {
		p := at(i)
		half := vg.Point{X: style.Width(s.Name)/2 + 4, Y: 8}
		corners := []vg.Point{
			{X: p.X - half.X, Y: p.Y - half.Y}, {X: p.X + half.X, Y: p.Y - half.Y},
			{X: p.X + half.X, Y: p.Y + half.Y}, {X: p.X - half.X, Y: p.Y + half.Y},
		}
		canvas.FillPolygon(color.White, corners)
		if !s.End {
			canvas.StrokeLines(draw.LineStyle{Color: color.Black, Width: 0.8}, append(corners, corners[0]))
		}
		canvas.FillText(style, p, s.Name)
	}
}

// drawArrows draws packets to the right of their cable, waiting ones dashed, with their names.
func drawArrows(canvas draw.Canvas, from, to vg.Point, lane []Arrow, who []string) {
	across := to.Sub(from)
	length := vg.Length(math.Hypot(float64(across.X), float64(across.Y)))
	along := across.Scale(1 / length)
	right := vg.Point{X: along.Y, Y: -along.X}
	// Leave room for the boxes at the ends.
	clear := min(length/4, vg.Length(30*math.Abs(float64(along.X))+12*math.Abs(float64(along.Y))))
	slices.SortStableFunc(lane, func(a, b Arrow) int { return strings.Compare(a.Who, b.Who) })
	for i, a := range lane {
		number := slices.Index(who, a.Who)
		offset := right.Scale(3 + 4*vg.Length(i))
		start, end := from.Add(along.Scale(clear)).Add(offset), to.Sub(along.Scale(clear+5)).Add(offset)
		line := draw.LineStyle{Color: chart.Palette[number%len(chart.Palette)], Width: 1.8}
		if a.Waits {
			line.Width, line.Dashes = 1.2, []vg.Length{3, 2}
		}
		canvas.StrokeLine2(line, start.X, start.Y, end.X, end.Y)
		const head = 5
		canvas.FillPolygon(line.Color, []vg.Point{
			end.Add(along.Scale(head)), end.Add(right.Scale(head / 2)), end.Sub(right.Scale(head / 2)),
		})
		if a.Waits {
			continue
		}
		style := chart.TextStyle(8)
		style.Color, style.XAlign, style.YAlign = line.Color, draw.XCenter, draw.YCenter
		width := style.Width(a.Who)
		beside := 7 + 4*vg.Length(len(lane)-1) + width/2*vg.Length(math.Abs(float64(right.X)))
		middle := from.Add(to).Scale(0.5).Add(right.Scale(beside)).Add(along.Scale((vg.Length(i) - vg.Length(len(lane)-1)/2) * (width + 4)))
		canvas.FillText(style, middle, a.Who)
	}
}
