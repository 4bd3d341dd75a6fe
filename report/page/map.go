//go:build !wasm

package page

import (
	"cmp"
	"context"
	"fmt"
	"image"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"

	"github.com/ibweave/ibweave/internal/text"
)

// heatPicture is a map as a picture.
type heatPicture struct {
	size  int // leaves
	image image.Image
	from  float64 // the value at the left end of the ramp
	to    float64
	words string
}

// showHeat draws a map, its leaves in the order of pods and of the drawing.
func (p *Picture) showHeat(ctx context.Context, kind string) error {
	h, err := p.heat(ctx)
	if err != nil {
		return err
	}
	if h == nil {
		return fmt.Errorf("a map needs forwarding tables, and 2 to %d switches with hosts", mostLeaves)
	}
	n := len(h.leaves)
	order := p.heatOrder(h)
	value := map[string]func(i int) float64{
		"load":  func(i int) float64 { return float64(h.load[i]) },
		"hops":  func(i int) float64 { return float64(h.hops[i]) / 10 },
		"paths": func(i int) float64 { return float64(h.paths[i]) },
	}[kind]
	m := &heatPicture{size: n, from: math.Inf(1), to: math.Inf(-1)}
	dark := 0
	for i := range n * n {
		switch {
		case i/n == i%n:
		case h.dark(i):
			dark++
		default:
			m.from, m.to = min(m.from, value(i)), max(m.to, value(i))
		}
	}
	if m.to < m.from {
		m.from, m.to = 0, 0
	}
	place := func(v float64) float64 { return (v - m.from) / max(m.to-m.from, 1e-9) }
	m.words = "switches on a path, on average"
	switch kind {
	case "load":
		place = (&measure{max: float64(p.max), mean: p.mean}).warmth
		m.from, m.to = 0, max(float64(p.max), math.Ceil(2*p.mean))
		m.words = "routes on the busiest link of the paths"
	case "paths":
		place = func(v float64) float64 { return (m.to - v) / max(m.to-m.from, 1e-9) }
		m.words = "different paths"
		defer func() { m.from, m.to = m.to, m.from }()
	}
	zoom := max(1, 1400/n)
	img := image.NewNRGBA(image.Rect(0, 0, zoom*n, zoom*n))
	for y := range zoom * n {
		for x := range zoom * n {
			i, j := order[y/zoom], order[x/zoom]
			c := p.theme.unused // of a leaf to itself
			switch {
			case i == j:
			case h.dark(i*n + j):
				c = p.theme.ink
			default:
				c = p.theme.shade(place(value(i*n + j)))
			}
			img.SetNRGBA(x, y, c)
		}
	}
	m.image = img
	p.chart = m
	p.title = fmt.Sprintf("%s: %s, leaf by leaf", p.title, m.words)
	first, last := p.Fabric.Name(h.leaves[order[0]]).Label(), p.Fabric.Name(h.leaves[order[n-1]]).Label()
	p.lines = append(p.lines, fmt.Sprintf("a row sends, a column receives: %d leaves, from %s at the upper left to %s", n, first, last))
	if dark > 0 {
		p.lines = append(p.lines, fmt.Sprintf("dark: packets to some LIDs are lost, %s", text.CountGrouped(dark, "pair of leaves", "pairs of leaves")))
	}
	return nil
}

// heatOrder is the leaves in the order of the groups of the first grouping, those of none first, and
// of the drawing.
func (s *scene) heatOrder(h *heat) []int {
	var first Grouping
	if len(s.groupings) > 0 {
		first = s.groupings[0]
	}
	group := first.of(s.Fabric.NumNodes())
	order := make([]int, len(h.leaves))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := h.leaves[a], h.leaves[b]
		return cmp.Or(cmp.Compare(group[x], group[y]), cmp.Compare(s.y[x], s.y[y]), cmp.Compare(s.x[x], s.x[y]))
	})
	return order
}

// drawMap draws a map and what its colours mean.
func (d *drawing) drawMap() {
	m, side := d.chart, d.height()
	middle := (d.left + d.right) / 2
	d.paper.DrawImage(vg.Rectangle{Min: at(middle-side/2, d.upper-side), Max: at(middle+side/2, d.upper)}, m.image)
	d.drawRamp(d.upper-side-margin, fmt.Sprintf("%s: left end %.4g, right end %.4g", m.words, m.from, m.to))
}
