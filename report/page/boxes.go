//go:build !wasm

package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
)

// boxes is a grouping in a picture: its groups are boxes, and only in open ones nodes are drawn.
type boxes struct {
	Grouping
	group     []int32 // by node, -1 for none
	shut      []bool  // by group
	low, high []point // by group: the corners with the least and the greatest coordinates
}

// hides says whether a node is in a closed box; there may be none at all.
func (b *boxes) hides(n fabric.NodeID) bool {
	return b != nil && b.group[n] >= 0 && b.shut[b.group[n]]
}

// showBoxes draws a grouping as boxes: "NAME", or "NAME,GROUP,.." with some groups open.
func (p *Picture) showBoxes(arg string) error {
	name, rest, _ := strings.Cut(arg, ",")
	i := slices.IndexFunc(p.groupings, func(g Grouping) bool { return g.Name == name })
	if i < 0 {
		known := "none"
		if len(p.groupings) > 0 {
			var names []string
			for _, g := range p.groupings {
				names = append(names, g.Name)
			}
			known = strings.Join(names, ", ")
		}
		return fmt.Errorf("%q is no grouping of the drawing, which has %s", name, known)
	}
	b := &boxes{Grouping: p.groupings[i], group: p.groupings[i].of(p.Fabric.NumNodes())}
	b.shut = slices.Repeat([]bool{true}, len(b.Groups))
	for rest != "" {
		// Names may have commas: the longest one that fits.
		best := -1
		for k, g := range b.Groups {
			if (rest == g.Name || strings.HasPrefix(rest, g.Name+",")) && (best < 0 || len(g.Name) > len(b.Groups[best].Name)) {
				best = k
			}
		}
		if best < 0 {
			return fmt.Errorf("none of the %s is called %q", name, rest)
		}
		b.shut[best] = false
		rest = strings.TrimPrefix(rest[len(b.Groups[best].Name):], ",")
	}
	p.boxes = b
	for k, g := range b.Groups {
		low, high := point{math.Inf(1), math.Inf(1)}, point{math.Inf(-1), math.Inf(-1)}
		switches := 0
		for _, n := range g.Nodes {
			m, r := p.middle(n), float64(p.radius[n])
			low, high = point{min(low.X, m.X-r), min(low.Y, m.Y-r)}, point{max(high.X, m.X+r), max(high.Y, m.Y+r)}
			if p.Fabric.IsSwitch(n) {
				switches++
			}
		}
		b.low, b.high = append(b.low, low), append(b.high, high)
		if len(g.Nodes) == 0 {
			b.shut[k] = false
			continue
		}
		p.lines = append(p.lines, fmt.Sprintf("%s: %s, %s", g.Name, text.CountGrouped(switches, "switch", "switches"), text.CountGrouped(len(g.Nodes)-switches, "host", "hosts")))
	}
	p.title = fmt.Sprintf("%s: %s as boxes", p.title, b.Name)
	return nil
}

// line is what is drawn for the cables between two switches, or between closed boxes.
type line struct {
	curve bezier
	load  float64 // of the busiest channel
}

// lineUp gives the edges, those into closed boxes joined, the most loaded last; and by group the
// greatest load inside.
func (p *Picture) lineUp() (list []line, inside []float64) {
	b := p.boxes
	type pair [2]int32
	joined := make(map[pair]int)
	if b != nil {
		inside = make([]float64, len(b.Groups))
	}
	end := func(n fabric.NodeID) (int32, point) {
		if !b.hides(n) {
			return int32(n), p.middle(n)
		}
		k := b.group[n]
		return int32(p.Fabric.NumNodes()) + k, point{(b.low[k].X + b.high[k].X) / 2, (b.low[k].Y + b.high[k].Y) / 2}
	}
	for i, e := range p.edges {
		load := 0.0
		if p.shows != nil {
			for _, c := range p.ports(i) {
				load = max(load, p.shows.Values[c], p.shows.Values[p.Fabric.Peer(c)])
			}
		}
		if b != nil && b.group[e.a] >= 0 && b.group[e.a] == b.group[e.b] {
			inside[b.group[e.a]] = max(inside[b.group[e.a]], load)
		}
		if !b.hides(e.a) && !b.hides(e.b) {
			list = append(list, line{p.curve(i), load})
			continue
		}
		from, at := end(e.a)
		to, other := end(e.b)
		if from == to {
			continue
		}
		key := pair{min(from, to), max(from, to)}
		k, ok := joined[key]
		if !ok {
			k = len(list)
			joined[key] = k
			list = append(list, line{curve: bezier{at, at, other, other}})
		}
		list[k].load = max(list[k].load, load)
	}
	slices.SortStableFunc(list, func(a, b line) int { return cmp.Compare(a.load, b.load) })
	return list, inside
}

// drawBoxes draws closed boxes in the colour of what is busiest in them, and frames around open ones.
func (d *drawing) drawBoxes(inside []float64) {
	b := d.boxes
	if b == nil {
		return
	}
	const pad = 3
	for k, g := range b.Groups {
		if len(g.Nodes) == 0 {
			continue
		}
		name, low, high := strings.ToValidUTF8(g.Name, "\uFFFD"), d.at(point{b.low[k].X, b.high[k].Y}), d.at(point{b.high[k].X, b.low[k].Y})
		frame, wide := around(low, high, pad), float64(high.X-low.X)
		if !b.shut[k] {
			d.frame(frame, nil, pen(unused, 0.8))
			d.write(d.fitted(name, nameSize, max(wide, 40)), vg.Point{X: low.X, Y: high.Y + pad + 2}, draw.YBottom, muted, false)
			continue
		}
		c := blend(ground, hostTone, 0.3)
		if d.shows != nil && inside[k] > 0 {
			c = blend(ground, shade(d.shows.warmth(inside[k])), 0.3)
		}
		d.frame(frame, c, pen(nodeTone, 0.8))
		if wide > 10 && high.Y-low.Y > nameSize {
			d.write(d.fitted(name, nameSize, wide), vg.Point{X: (low.X + high.X) / 2, Y: (low.Y + high.Y) / 2}, draw.YCenter, ink, true)
		}
	}
}
