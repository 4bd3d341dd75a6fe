package page

import (
	"cmp"
	"context"
	"fmt"
	"image/color"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/verify"
)

// Old is the state before the one of an Input.
type Old struct {
	*Input // its Old is nil
	// Both has the nodes and cables of both states, as Union joins them, with their coordinates
	// or levels. Nodes have its places and its groups in both states.
	Both *Input
	// Replaced is by old node the new one in its place.
	Replaced map[fabric.GUID]fabric.GUID
	// Changes are what the page lists and lights, and Summary says of them.
	Changes []Change
	Summary []Note
}

// was is by new node the old one that it replaces.
func (o *Old) was() map[fabric.GUID]fabric.GUID {
	was := make(map[fabric.GUID]fabric.GUID, len(o.Replaced))
	for old, now := range o.Replaced {
		was[now] = old
	}
	return was
}

// Note is a sentence about the differences.
type Note struct {
	Severity verify.Severity `json:"severity"`
	Text     string          `json:"text"`
}

// Change is a difference between two states.
type Change struct {
	Kind Kind   `json:"kind"`
	Text string `json:"text"`
	// Old and New are the nodes, or the ends of cables, that it is about: two ends for each cable.
	Old []End `json:"old,omitempty"`
	New []End `json:"new,omitempty"`
}

// Kind says what has changed.
type Kind string

// The kinds of changes, in the order of lists.
const (
	NodeGone  Kind = "node gone"
	NodeNew   Kind = "new node"
	NodeOther Kind = "other node" // replaced, or with another name
	CableGone Kind = "cable gone"
	CableNew  Kind = "new cable"
	Moved     Kind = "moved cable"
	Rate      Kind = "other rate"
	Entries   Kind = "forwarding entries" // of a switch
	Other     Kind = "other"
)

// End is a node, or a port of it from 1 on.
type End struct {
	GUID   fabric.GUID    `json:"guid"`
	Switch bool           `json:"switch,omitempty"`
	Port   fabric.PortNum `json:"port,omitempty"`
}

// nodeOf finds the node of an end.
func nodeOf(f *fabric.Fabric, e End) (fabric.NodeID, bool) {
	if e.Switch {
		return f.SwitchByGUID(e.GUID)
	}
	n, ok := f.NodeByGUID(e.GUID)
	return n, ok && !f.IsSwitch(n)
}

// endOf names a node, or a port from 1 on.
func endOf(f *fabric.Fabric, n fabric.NodeID, p fabric.PortNum) End {
	return End{f.Node(n).GUID, f.IsSwitch(n), p}
}

// portOf finds the port of an end; NoPort if the fabric does not have it.
func portOf(f *fabric.Fabric, e End) fabric.PortID {
	n, ok := nodeOf(f, e)
	if !ok || e.Port > f.Node(n).NumPorts {
		return fabric.NoPort
	}
	return f.Port(n, e.Port)
}

// Union is a fabric with the nodes of both, except the old ones that are replaced, and with their
// cables: the new ones, and old ones of ports that are free.
func Union(old, now *fabric.Fabric, replaced map[fabric.GUID]fabric.GUID) (*fabric.Fabric, error) {
	b := &fabric.Builder{}
	index := make(map[End]int)
	add := func(f *fabric.Fabric, n fabric.NodeID) error {
		node := *f.Node(n)
		node.Order = int32(len(index))
		i, err := b.AddNode(node)
		index[endOf(f, n, 0)] = i
		return err
	}
	for n := range fabric.NodeID(now.NumNodes()) {
		if err := add(now, n); err != nil {
			return nil, err
		}
	}
	at := func(f *fabric.Fabric, p fabric.PortID) (int, fabric.PortNum) {
		n := f.Owner(p)
		return index[inNew(f, n, replaced)], f.Num(p)
	}
	for n := range fabric.NodeID(old.NumNodes()) {
		if _, known := index[inNew(old, n, replaced)]; !known {
			if err := add(old, n); err != nil {
				return nil, err
			}
		}
	}
	for _, f := range []*fabric.Fabric{now, old} {
		for _, c := range f.Cables() {
			x, i := at(f, c.A)
			y, k := at(f, c.B)
			_, _, one := b.Connected(x, i)
			_, _, other := b.Connected(y, k)
			if one || other || i > b.Node(x).NumPorts || k > b.Node(y).NumPorts {
				continue
			}
			if err := b.Connect(x, i, y, k, c.Link); err != nil {
				return nil, err
			}
		}
	}
	return b.Build()
}

// inNew is the end that stands for a node of either state in their union.
func inNew(f *fabric.Fabric, n fabric.NodeID, replaced map[fabric.GUID]fabric.GUID) End {
	e := endOf(f, n, 0)
	if guid, ok := replaced[e.GUID]; ok {
		e.GUID = guid
	}
	return e
}

// placed is the layout of a fabric with the places of the union.
func (o *Old) placed(f *fabric.Fabric, both *layout) (*layout, error) {
	l := &layout{kind: both.kind, within: both, x: make([]float32, f.NumNodes()), y: make([]float32, f.NumNodes()), radius: make([]float32, f.NumNodes())}
	in := make([]fabric.NodeID, f.NumNodes())
	for n := range fabric.NodeID(f.NumNodes()) {
		at, ok := nodeOf(o.Both.Fabric, inNew(f, n, o.Replaced))
		if !ok {
			return nil, fmt.Errorf("%s has no place in both states", f.Name(n))
		}
		in[n] = at
		l.x[n], l.y[n], l.radius[n] = both.x[at], both.y[at], both.radius[at]
	}
	l.join(f)
	for i := range l.edges {
		e := &l.edges[i]
		e.bend = both.bendOf(in[e.a], in[e.b])
	}
	for _, g := range both.groupings {
		l.groupings = append(l.groupings, g.among(in, len(both.x)))
	}
	return l, nil
}

// bendOf is the bend of the edge from a to b, 0 where there is none.
func (l *layout) bendOf(a, b fabric.NodeID) float32 {
	if i, ok := l.edgeBetween(a, b); ok {
		if l.edges[i].a != a {
			return -l.edges[i].bend
		}
		return l.edges[i].bend
	}
	return 0
}

// edgeBetween finds the edge of two switches.
func (l *layout) edgeBetween(a, b fabric.NodeID) (int, bool) {
	key := edge{a: min(a, b), b: max(a, b)}
	return slices.BinarySearchFunc(l.edges, key, func(x, y edge) int { return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b)) })
}

// scenes are those of both states, with the same places; old is nil where there is one state.
func scenes(ctx context.Context, in *Input) (old, now *scene, err error) {
	if in.Old == nil {
		now, err = newScene(ctx, in)
		return nil, now, err
	}
	if err := cmp.Or(in.check(), in.Old.check(), in.Old.Both.check()); err != nil {
		return nil, nil, err
	}
	both := arrange(in.Old.Both)
	list := [2]*scene{}
	for i, x := range []*Input{in.Old.Input, in} {
		l, err := in.Old.placed(x.Fabric, both)
		if err != nil {
			return nil, nil, err
		}
		if list[i], err = load(ctx, x, l); err != nil {
			return nil, nil, err
		}
	}
	return list[0], list[1], nil
}

// stroke is a line of a picture beside channels.
type stroke struct {
	curve bezier
	pen   Pen
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
		gone, came := p.theme.loop, p.theme.tree
		if c.Kind == Rate {
			came = p.theme.warning
		}
		if c.Kind == Entries || c.Kind == NodeOther || c.Kind == Other {
			gone, came = p.theme.accent, p.theme.accent
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
		pen := Pen{Color: c, Width: 2}
		if gone {
			pen.Dashes = []float64{4, 3}
		}
		p.strokes = append(p.strokes, stroke{line, pen, gone})
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
			p.markEnds(p.scene, ends, p.theme.loop, true)
		} else {
			slow++
			p.markEnds(p.scene, ends, p.theme.warning, false)
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
		c, part := p.theme.loop, float64(moved[i])/float64(most)
		if part < 0 {
			c, part = p.theme.path, -part
		}
		p.strokes = append(p.strokes, stroke{p.curve(i), Pen{Color: blend(p.theme.ground, c, 0.25+0.75*part), Width: 0.6 + 0.8*part}, false})
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
