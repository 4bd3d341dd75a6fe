//go:build !wasm

package page

import (
	"cmp"
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/ibweave/ibweave/fabric"
)

// stroke is a line of a picture beside channels.
type stroke struct {
	curve bezier
	line  draw.LineStyle
	cross bool // a cable that is gone
}

// showChanges marks what differs from the old state.
func (p *Picture) showChanges(old *scene) error {
	if p.Old == nil {
		return fmt.Errorf("there is one state; want OLD and NEW")
	}
	p.title = fmt.Sprintf("%s: what differs from %s", p.title, p.Old.Title)
	p.faded = true
	p.showMovedLoads(old)
	for _, c := range p.Old.Changes {
		p.lines = append(p.lines, fmt.Sprintf("%s: %s", c.Kind, c.Text))
		gone, came := loopTone, treeTone
		if c.Kind == Rate {
			came = warning
		}
		if c.Kind == Entries || c.Kind == NodeOther || c.Kind == Other {
			gone, came = accent, accent
		}
		if c.Kind != Rate {
			p.markEnds(old, c.Old, gone, true)
		}
		p.markEnds(p.scene, c.New, came, false)
	}
	if len(p.lines) == 0 {
		p.lines = []string{"nothing differs"}
	}
	return nil
}

// markEnds marks nodes and cables of a state.
func (p *Picture) markEnds(s *scene, ends []End, c color.Color, gone bool) {
	for i := 0; i < len(ends); i++ {
		n, ok := nodeOf(s.Fabric, ends[i])
		if !ok {
			continue
		}
		if ends[i].Port == 0 {
			p.spots = append(p.spots, spot{s, n, c})
			continue
		}
		if i+1 == len(ends) {
			return
		}
		m, ok := nodeOf(s.Fabric, ends[i+1])
		i++
		if !ok {
			continue
		}
		line := s.straight(n, m)
		if k, known := s.edgeBetween(n, m); known {
			line = s.curve(k)
		}
		style := pen(c, 2)
		if gone {
			style.Dashes = []vg.Length{4, 3}
		}
		p.strokes = append(p.strokes, stroke{line, style, gone})
	}
}

// markFaults marks the cables that findings say are missing or slow.
func (p *Picture) markFaults() {
	missing, slow := int64(0), 0
	for i := range p.Result.Findings {
		x := &p.Result.Findings[i]
		gone := x.Rule == "missing-cable"
		if !gone && x.Rule != "link-degraded" || x.Waiver != nil || len(x.Ports) == 0 {
			continue
		}
		var ends []End
		for _, e := range x.Ports {
			_, isSwitch := p.Fabric.SwitchByGUID(e.Node)
			ends = append(ends, End{e.Node, isSwitch, max(e.Port, 1)})
		}
		if at := portOf(p.Fabric, ends[0]); len(ends) == 1 && at != fabric.NoPort && p.Fabric.Peer(at) != fabric.NoPort {
			peer := p.Fabric.Peer(at)
			ends = append(ends, endOf(p.Fabric, p.Fabric.Owner(peer), p.Fabric.Num(peer)))
		}
		if gone { // ports of one node, and then as many of the other: all of these cables are one line
			missing += x.Count
			ends = []End{ends[0], ends[len(ends)-1]}
			p.markEnds(p.scene, ends, loopTone, true)
		} else {
			slow++
			p.markEnds(p.scene, ends, warning, false)
		}
	}
	if missing > 0 || slow > 0 {
		p.lines = append(p.lines, fmt.Sprintf("missing cables: %d, dashed with a cross; slow ones: %d, amber", missing, slow))
	}
}

// spot is a node of either state in a colour.
type spot struct {
	s *scene
	n fabric.NodeID
	c color.Color
}

// showMovedLoads marks the edges of the new state whose load is another: red for more, blue for less,
// the stronger the more.
func (p *Picture) showMovedLoads(old *scene) {
	if p.routes == nil || old.routes == nil {
		return
	}
	moved := make([]int64, len(p.edges)) // by edge: the greatest change of a channel
	most := int64(0)
	was := p.Old.was()
	for i := range p.edges {
		for _, out := range p.ports(i) {
			for _, c := range []fabric.PortID{out, p.Fabric.Peer(out)} {
				d := p.routes[c] - old.routesAt(endOf(p.Fabric, p.Fabric.Owner(c), p.Fabric.Num(c)), was)
				if max(d, -d) > max(moved[i], -moved[i]) {
					moved[i] = d
				}
			}
		}
		most = max(most, moved[i], -moved[i])
	}
	order := make([]int, 0, len(moved))
	for i, d := range moved {
		if d != 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(max(moved[a], -moved[a]), max(moved[b], -moved[b])) })
	for _, i := range order {
		c, part := loopTone, float64(moved[i])/float64(most)
		if part < 0 {
			c, part = pathTone, -part
		}
		p.strokes = append(p.strokes, stroke{p.curve(i), pen(blend(ground, c, 0.25+0.75*part), 0.6+0.8*part), false})
	}
	if most > 0 {
		p.legend = fmt.Sprintf("red links carry more routes than before, blue ones fewer, by %d at most", most)
	}
}

// routesAt is the routes on the channel out of a port, 0 where there is none; was has the nodes that
// others replace now.
func (s *scene) routesAt(e End, was map[fabric.GUID]fabric.GUID) int64 {
	if guid, ok := was[e.GUID]; ok {
		e.GUID = guid
	}
	if p := portOf(s.Fabric, e); p != fabric.NoPort {
		return s.routes[p]
	}
	return 0
}
