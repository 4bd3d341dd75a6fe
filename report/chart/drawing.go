package chart

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
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

// Drawing is a network with packets on its cables.
type Drawing struct {
	Title  string   `json:"title"`
	Spots  []Spot   `json:"spots"`
	Cables [][2]int `json:"cables"` // indices of spots
	Arrows []Arrow  `json:"arrows"`
	Notes  []string `json:"notes,omitempty"` // sentences below it
}

// Drawings are drawings side by side under one title.
type Drawings struct {
	Title    string
	Drawings []Drawing
	Caption  string
}

// Cells of a drawing, on paper and in characters.
const (
	cellWidth  = 2.6 * vg.Centimeter
	cellHeight = 1.9 * vg.Centimeter
	textWidth  = 14
	textHeight = 4
)

// extent is the least coordinates, and how far the greatest ones are from them.
func (d *Drawing) extent() (left, bottom, width, height float64) {
	left, bottom = math.Inf(1), math.Inf(1)
	for _, s := range d.Spots {
		left, bottom = min(left, s.X), min(bottom, s.Y)
	}
	for _, s := range d.Spots {
		width, height = max(width, s.X-left), max(height, s.Y-bottom)
	}
	return left, bottom, width, height
}

// Check says why a drawing is none: no spots, negative coordinates, or lines between
// spots that it does not have.
func (d *Drawing) Check() error {
	if len(d.Spots) == 0 {
		return fmt.Errorf("drawing %q has no spots", d.Title)
	}
	for _, s := range d.Spots {
		if !(s.X >= 0 && s.X <= 100 && s.Y >= 0 && s.Y <= 100) {
			return fmt.Errorf("drawing %q: %s is at %v, %v: want 0 to 100", d.Title, s.Name, s.X, s.Y)
		}
	}
	n := len(d.Spots)
	for _, c := range d.Cables {
		if min(c[0], c[1]) < 0 || max(c[0], c[1]) >= n || c[0] == c[1] {
			return fmt.Errorf("drawing %q: a cable from %d to %d, of %d spots", d.Title, c[0], c[1], n)
		}
	}
	for _, a := range d.Arrows {
		if min(a.From, a.To) < 0 || max(a.From, a.To) >= n || a.From == a.To {
			return fmt.Errorf("drawing %q: %s goes from %d to %d, of %d spots", d.Title, a.Who, a.From, a.To, n)
		}
	}
	return nil
}

// who lists the packets of a drawing, each once, ascending.
func (d *Drawing) who() []string {
	var list []string
	for _, a := range d.Arrows {
		if !slices.Contains(list, a.Who) {
			list = append(list, a.Who)
		}
	}
	slices.Sort(list)
	return list
}

// mostSteps is how many steps of a packet are listed.
const mostSteps = 9

// says has a line for each packet: what it has, and what it waits for.
func (d *Drawing) says() []string {
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

// Text writes the drawing in ASCII: spots in brackets, cables, packets on them by
// name with the direction, and a line for each packet.
func (d *Drawing) Text(w io.Writer) error {
	if err := d.Check(); err != nil {
		return err
	}
	left, bottom, width, height := d.extent()
	names := 0
	for _, s := range d.Spots {
		names = max(names, len([]rune(s.Name)))
	}
	cell := max(textWidth, names+6)
	p := newPaper(int(width*float64(cell))+names+4, int(height*textHeight)+1)
	at := func(i int) (x, y int) {
		s := d.Spots[i]
		return int((s.X-left)*float64(cell)) + names/2 + 2, int((height - s.Y + bottom) * textHeight)
	}
	for _, c := range d.Cables {
		x, y := at(c[0])
		u, v := at(c[1])
		p.line(x, y, u, v)
	}
	type pair [2]int
	on := map[pair][]string{}
	for _, a := range d.Arrows {
		if !a.Waits {
			on[pair{a.From, a.To}] = append(on[pair{a.From, a.To}], a.Who)
		}
	}
	done := map[pair]bool{}
	for _, a := range d.Arrows {
		there, back := pair{a.From, a.To}, pair{a.To, a.From}
		if a.Waits || done[there] || done[back] {
			continue
		}
		done[there] = true
		x, y := at(a.From)
		u, v := at(a.To)
		label := strings.Join(on[there], ",")
		if other := on[back]; other != nil {
			p.write((x+u)/2, (y+v)/2, label+"<>"+strings.Join(other, ","))
			continue
		}
		p.write((x+u)/2, (y+v)/2, pointed(label, u-x, v-y))
	}
	for i, s := range d.Spots {
		x, y := at(i)
		name := "[" + s.Name + "]"
		if s.End {
			name = s.Name
		}
		p.write(x, y, name)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n\n%s\n", d.Title, p)
	for _, line := range d.says() {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// pointed is a label with the direction that it goes in.
func pointed(label string, right, down int) string {
	switch {
	case right > 0 && 2*right >= down && 2*right >= -down:
		return label + ">"
	case right < 0 && -2*right >= down && -2*right >= -down:
		return "<" + label
	case down > 0:
		return "v" + label
	}
	return "^" + label
}

// paper is characters by line.
type paper [][]rune

func newPaper(width, height int) paper {
	p := make(paper, height)
	for i := range p {
		p[i] = []rune(strings.Repeat(" ", width))
	}
	return p
}

func (p paper) set(x, y int, r rune) {
	if y >= 0 && y < len(p) && x >= 0 && x < len(p[y]) {
		p[y][x] = r
	}
}

// write puts words around a place.
func (p paper) write(x, y int, words string) {
	for i, r := range []rune(words) {
		p.set(x-len([]rune(words))/2+i, y, r)
	}
}

// line draws a cable.
func (p paper) line(x, y, u, v int) {
	r := '-'
	switch {
	case x == u:
		r = '|'
	case y != v && (u > x) == (v > y):
		r = '\\'
	case y != v:
		r = '/'
	}
	steps := max(abs(u-x), abs(v-y))
	if y != v {
		steps = abs(v - y)
	}
	for i := 1; i < steps; i++ {
		part := float64(i) / float64(steps)
		p.set(x+int(math.Round(part*float64(u-x))), y+int(math.Round(part*float64(v-y))), r)
	}
}

func abs(n int) int { return max(n, -n) }

func (p paper) String() string {
	var b strings.Builder
	for _, line := range p {
		b.WriteString(strings.TrimRight(string(line), " "))
		b.WriteByte('\n')
	}
	return b.String()
}

// sheet is the sizes of drawings on paper.
type sheet struct {
	width, height, above, below vg.Length
	title, caption              []string
	widths                      []vg.Length
	lines                       [][]string // below each drawing
	tall                        vg.Length  // of the drawings with their titles
	text                        vg.Length  // of the lines
}

func (c *Drawings) sheet() sheet {
	var s sheet
	s.width = 2 * margin
	for i := range c.Drawings {
		d := &c.Drawings[i]
		_, _, x, y := d.extent()
		width := max(cellWidth*vg.Length(x+1.2), 7*vg.Centimeter)
		var lines []string
		for _, line := range d.says() {
			lines = append(lines, wrap(line, width-2*margin, captionStyle)...)
		}
		s.widths, s.lines = append(s.widths, width), append(s.lines, lines)
		s.width += width
		s.tall = max(s.tall, cellHeight*vg.Length(y+1)+axisName)
		s.text = max(s.text, lineHeight(captionStyle)*vg.Length(len(lines))+margin)
	}
	s.title = wrap(c.Title, s.width-2*margin, titleStyle)
	s.caption = wrap(c.Caption, s.width-2*margin, captionStyle)
	s.above = lineHeight(titleStyle)*vg.Length(len(s.title)) + margin
	if s.caption != nil {
		s.below = lineHeight(captionStyle)*vg.Length(len(s.caption)) + margin
	}
	s.height = s.above + s.tall + s.text + s.below + 2*margin
	return s
}

// SVG writes the drawings as SVG. Errors are those of w and of Drawing.Check.
func (c *Drawings) SVG(w io.Writer) error { return c.picture(w, writeSVG) }

// PNG writes the drawings as PNG of 120 dots an inch. Errors are those of SVG.
func (c *Drawings) PNG(w io.Writer) error { return c.picture(w, writePNG) }

func (c *Drawings) picture(w io.Writer, write func(io.Writer, vg.Length, vg.Length, func(draw.Canvas) error) error) error {
	for i := range c.Drawings {
		if err := c.Drawings[i].Check(); err != nil {
			return err
		}
	}
	s := c.sheet()
	return write(w, s.width, s.height, func(canvas draw.Canvas) error {
		canvas.SetColor(color.White)
		canvas.Fill(canvas.Rectangle.Path())
		canvas = draw.Crop(canvas, margin, -margin, margin, -margin)
		fillLines(canvas, titleStyle, vg.Point{X: canvas.Min.X, Y: canvas.Max.Y}, s.title)
		fillLines(canvas, captionStyle, vg.Point{X: canvas.Min.X, Y: canvas.Min.Y + s.below - margin}, s.caption)
		left, top := canvas.Min.X, canvas.Max.Y-s.above
		for i := range c.Drawings {
			c.Drawings[i].draw(canvas, vg.Point{X: left, Y: top}, s.widths[i])
			fillLines(canvas, captionStyle, vg.Point{X: left, Y: top - s.tall}, s.lines[i])
			left += s.widths[i]
		}
		return nil
	})
}

// draw puts a drawing below and right of a point.
func (d *Drawing) draw(canvas draw.Canvas, corner vg.Point, width vg.Length) {
	left, bottom, x, y := d.extent()
	free := (width - cellWidth*vg.Length(x)) / 2
	at := func(i int) vg.Point {
		s := d.Spots[i]
		return vg.Point{X: corner.X + free + cellWidth*vg.Length(s.X-left), Y: corner.Y - axisName - cellHeight*vg.Length(y-s.Y+bottom+0.4)}
	}
	style := textStyle(10)
	fillLines(canvas, style, corner, wrap(d.Title, width-2*margin, style))
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
	style = textStyle(9)
	style.XAlign, style.YAlign = draw.XCenter, draw.YCenter
	for i, s := range d.Spots {
		p := at(i)
		half := vg.Point{X: style.Width(s.Name)/2 + 4, Y: 8}
		corners := []vg.Point{{X: p.X - half.X, Y: p.Y - half.Y}, {X: p.X + half.X, Y: p.Y - half.Y}, {X: p.X + half.X, Y: p.Y + half.Y}, {X: p.X - half.X, Y: p.Y + half.Y}}
		canvas.FillPolygon(color.White, corners)
		if !s.End {
			canvas.StrokeLines(draw.LineStyle{Color: color.Black, Width: 0.8}, append(corners, corners[0]))
		}
		canvas.FillText(style, p, s.Name)
	}
}

// drawArrows draws packets right of their cable, dashed where they wait, and their names.
func drawArrows(canvas draw.Canvas, from, to vg.Point, lane []Arrow, who []string) {
	across := to.Sub(from)
	length := vg.Length(math.Hypot(float64(across.X), float64(across.Y)))
	along := across.Scale(1 / length)
	right := vg.Point{X: along.Y, Y: -along.X}
	// Room for the boxes at the ends.
	clear := min(length/4, vg.Length(30*math.Abs(float64(along.X))+12*math.Abs(float64(along.Y))))
	slices.SortStableFunc(lane, func(a, b Arrow) int { return strings.Compare(a.Who, b.Who) })
	for i, a := range lane {
		number := slices.Index(who, a.Who)
		offset := right.Scale(3 + 4*vg.Length(i))
		start, end := from.Add(along.Scale(clear)).Add(offset), to.Sub(along.Scale(clear+5)).Add(offset)
		line := draw.LineStyle{Color: palette[number%len(palette)], Width: 1.8}
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
		style := textStyle(8)
		style.Color, style.XAlign, style.YAlign = line.Color, draw.XCenter, draw.YCenter
		width := style.Width(a.Who)
		beside := 7 + 4*vg.Length(len(lane)-1) + width/2*vg.Length(math.Abs(float64(right.X)))
		middle := from.Add(to).Scale(0.5).Add(right.Scale(beside)).Add(along.Scale((vg.Length(i) - vg.Length(len(lane)-1)/2) * (width + 4)))
		canvas.FillText(style, middle, a.Who)
	}
}
