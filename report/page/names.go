package page

import (
	"image/color"
	"math"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// nameSize is the size of the font of names.
const nameSize = 8

// fitted is words with dots in their middle where they are wider than they may be.
func (d *drawing) fitted(words string, size, most float64) string {
	wide := d.TextWidth(Text{Words: words, Size: size})
	if wide <= most {
		return words
	}
	letters := []rune(words)
	for keep := min(len(letters)-1, int(float64(len(letters))*most/wide)+3); keep > 1; keep-- {
		words = string(letters[:(keep+1)/2]) + "…" + string(letters[len(letters)-keep/2:])
		if d.TextWidth(Text{Words: words, Size: size}) <= most {
			break
		}
	}
	return words
}

// area is where words are.
type area struct{ low, high Point }

// write writes a name where no other one is, on a ground of its own so that lines do not go through it,
// and says whether it did. It is moved off the margins.
func (d *drawing) write(words string, at Point, edge Edge, c color.Color, centered bool) bool {
	t := Text{Words: words, At: at, Size: nameSize, Color: c, Centered: centered, Edge: edge}
	half := d.TextWidth(t)/2 + 1
	if !centered {
		t.At.X += half
		t.Centered = true
	}
	t.At.X = min(max(t.At.X, d.left+half), d.right-half)
	low, high := Point{t.At.X - half, at.Y - 0.95*nameSize}, Point{t.At.X + half, at.Y}
	switch edge {
	case Bottom:
		low.Y, high.Y = at.Y-1, at.Y+0.75*nameSize
	case Middle:
		low.Y, high.Y = at.Y-0.5*nameSize, at.Y+0.5*nameSize
	}
	if slices.ContainsFunc(d.taken, func(o area) bool {
		return o.low.X < high.X && low.X < o.high.X && o.low.Y < high.Y && low.Y < o.high.Y
	}) {
		return false
	}
	d.taken = append(d.taken, area{low, high})
	if edge != Middle {
		d.Fill(rectangle(low.X, low.Y, high.X, high.Y), d.theme.ground)
	}
	d.Text(t)
	return true
}

// drawNames writes the names of what is shown, or of all switches that have room.
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
	// The room of a row is that of its closest two switches.
	rows := make(map[float32][]fabric.NodeID)
	var heights []float32
	for s := range fabric.NodeID(f.NumSwitches()) {
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
		names := make([]string, len(row))
		for i, s := range row {
			names[i] = f.Name(s).Label()
		}
		for i, name := range d.inRoom(names, room-4) {
			if !p.boxes.hides(row[i]) {
				d.drawName(row[i], name)
			}
		}
	}
}

// inRoom is the names of a row that fit: whole, or without what all begin and end with, with dots in
// the middle where that is too long; nil where there is no room.
func (d *drawing) inRoom(names []string, room float64) []string {
	wide := func(name string) bool { return d.TextWidth(Text{Words: name, Size: nameSize}) > room }
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

// drawName writes the name of a node above or below it, on the other side where there is a name.
func (d *drawing) drawName(n fabric.NodeID, words string) {
	at, r := d.at(d.middle(n)), d.scale*float64(d.radius[n])+2
	below := d.Fabric.IsSwitch(n) == (d.kind == "grid")
	for range 2 {
		y, edge := at.Y+r, Bottom
		if below {
			y, edge = at.Y-r, Top
		}
		if d.write(words, Point{at.X, y}, edge, d.theme.ink, true) {
			return
		}
		below = !below
	}
}
