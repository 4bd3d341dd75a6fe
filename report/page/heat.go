package page

import (
	"cmp"
	"context"
	"fmt"
	"image"
	"math"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
)

// mostLeaves is how many leaves have a map: it takes a square of them.
const mostLeaves = 2048

// heat is a map leaf by leaf: what the static ports do with packets from the hosts of one to
// those of another. Index i*len(leaves)+j is from leaf i to leaf j.
type heat struct {
	leaves []fabric.NodeID // switches with hosts, ascending
	load   []int32         // routes on the busiest link between switches of all these paths
	hops   []uint16        // switches on a path in tenths, on average; 0 when no packet arrives
	paths  []uint16        // different paths to the LIDs of the destination
	lost   []uint16        // LIDs of the destination at which no packet arrives
	lids   []uint16        // by leaf: LIDs of its hosts
}

// heat follows packets from every leaf to every LID of hosts. It takes a step for each switch and
// LID.
func (s *scene) heat(ctx context.Context) (*heat, error) {
	f := s.Fabric
	h := &heat{}
	for sw := range fabric.NodeID(f.NumSwitches()) {
		if len(f.HostsOn(sw)) > 0 {
			h.leaves = append(h.leaves, sw)
		}
	}
	n := len(h.leaves)
	if s.Tables == nil || n < 2 || n > mostLeaves {
		return nil, nil
	}
	h.load, h.hops, h.paths = make([]int32, n*n), make([]uint16, n*n), make([]uint16, n*n)
	h.lost, h.lids = make([]uint16, n*n), make([]uint16, n)
	_, err := par.ForEachWith(ctx, 0, n, func() *tracer {
		return &tracer{s, lft.NewForest(f), make([]way, f.NumSwitches())}
	}, func(t *tracer, j int) error {
		t.column(h, j)
		return nil
	})
	return h, err
}

// way is how packets of a LID go on from a switch.
type way struct {
	hops int32 // switches; 0 when they do not arrive
	load int64 // of the busiest link between switches
	hash uint64
}

// tracer follows packets to one LID at a time.
type tracer struct {
	*scene
	tree *lft.Forest
	ways []way // by switch
}

// column fills in what comes to the hosts of a leaf.
func (t *tracer) column(h *heat, j int) {
	n := len(h.leaves)
	hashes := make([][]uint64, n)
	hops := make([]int64, n)
	for _, port := range t.Fabric.HostsOn(h.leaves[j]) {
		for lid := range t.Fabric.LIDs(port) {
			t.follow(lid)
			h.lids[j]++
			for i, leaf := range h.leaves {
				w := t.ways[leaf]
				if w.hops == 0 {
					h.lost[i*n+j]++
					continue
				}
				hops[i] += int64(w.hops)
				hashes[i] = append(hashes[i], w.hash)
				at := &h.load[i*n+j]
				*at = max(*at, int32(min(w.load, math.MaxInt32)))
			}
		}
	}
	for i, list := range hashes {
		if len(list) == 0 {
			continue
		}
		slices.Sort(list)
		arrived := int64(len(list))
		h.hops[i*n+j] = uint16(min((10*hops[i]+arrived/2)/arrived, math.MaxUint16))
		h.paths[i*n+j] = uint16(min(len(slices.Compact(list)), math.MaxUint16))
	}
}

// follow fills in the ways from all switches to a LID.
func (t *tracer) follow(lid fabric.LID) {
	clear(t.ways)
	t.tree.FindTree(t.Tables, lid)
	for i, s := range t.tree.Order {
		w := way{hops: 1, hash: 1}
		if i > 0 {
			out := t.tree.Next[s]
			w = t.ways[t.Fabric.PeerSwitch(out)]
			w = way{w.hops + 1, max(w.load, t.routes[out]), (w.hash ^ uint64(out)) * 0x9e3779b97f4a7c15}
			w.hash ^= w.hash >> 29
		}
		t.ways[s] = w
	}
}

// dark says whether packets from a leaf to another one are lost, to one LID at least.
func (h *heat) dark(i int) bool { return h.hops[i] == 0 || h.lost[i] > 0 }

// packHeat adds the map, if there is one.
func (s *scene) packHeat(ctx context.Context, p *packer) error {
	h, err := s.heat(ctx)
	if h == nil || err != nil {
		return err
	}
	pack(p, "heatLeaf", len(h.leaves), func(i int) int32 { return int32(h.leaves[i]) })
	packList(p, "heatLoad", h.load)
	packList(p, "heatHops", h.hops)
	packList(p, "heatPaths", h.paths)
	packList(p, "heatLost", h.lost)
	packList(p, "heatLIDs", h.lids)
	return nil
}

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
	d.Image(m.image, Point{middle - side/2, d.upper - side}, Point{middle + side/2, d.upper})
	d.drawRamp(d.upper-side-margin, fmt.Sprintf("%s: left end %.4g, right end %.4g", m.words, m.from, m.to))
}
