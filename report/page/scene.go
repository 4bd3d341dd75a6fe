package page

import (
	"cmp"
	"context"
	"fmt"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// scene is the data for pages and pictures.
type scene struct {
	*Input
	*layout
	routes []int64 // by PortID, lft.ChannelLoads; nil without tables
	max    int64   // greatest of channels between switches
	mean   float64 // mean over them, unused ones included
}

// scenes returns the scenes of both states, with the same places; old is nil for a single
// state.
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

func newScene(ctx context.Context, in *Input) (*scene, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	return load(ctx, in, arrange(in))
}

// load makes a scene and finds its loads.
func load(ctx context.Context, in *Input, l *layout) (*scene, error) {
	s := &scene{Input: in, layout: l}
	if in.Tables == nil {
		return s, nil
	}
	var err error
	if s.routes = in.Routes; s.routes == nil {
		if s.routes, err = lft.ChannelLoads(ctx, in.Fabric, in.Tables); err != nil {
			return nil, err
		}
	}
	sum := int64(0)
	for _, p := range in.Fabric.Channels() {
		sum += s.routes[p]
		s.max = max(s.max, s.routes[p])
	}
	s.mean = float64(sum) / float64(max(len(in.Fabric.Channels()), 1))
	return s, nil
}

// nodeOf returns the node of an end.
func nodeOf(f *fabric.Fabric, e End) (fabric.NodeID, bool) {
	if e.Switch {
		return f.SwitchByGUID(e.GUID)
	}
	n, ok := f.NodeByGUID(e.GUID)
	return n, ok && !f.IsSwitch(n)
}

// endOf returns the End for a node, or for its port p if that is not 0.
func endOf(f *fabric.Fabric, n fabric.NodeID, p fabric.PortNum) End {
	return End{f.Node(n).GUID, f.IsSwitch(n), p}
}

// Union returns a fabric with the nodes of both, except replaced old ones, and their
// cables: the new ones, and old ones whose ports are free.
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
	for _, n := range now.Nodes() {
		if err := add(now, n); err != nil {
			return nil, err
		}
	}
	at := func(f *fabric.Fabric, p fabric.PortID) (int, fabric.PortNum) {
		n := f.Owner(p)
		return index[inNew(f, n, replaced)], f.Num(p)
	}
	for _, n := range old.Nodes() {
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

// inNew returns the End of a node of either state in their union.
func inNew(f *fabric.Fabric, n fabric.NodeID, replaced map[fabric.GUID]fabric.GUID) End {
	e := endOf(f, n, 0)
	if guid, ok := replaced[e.GUID]; ok {
		e.GUID = guid
	}
	return e
}

// placed returns the layout of a fabric with the places of the union.
func (o *Old) placed(f *fabric.Fabric, both *layout) (*layout, error) {
	l := &layout{kind: both.kind, within: both, x: make([]float32, f.NumNodes()), y: make([]float32, f.NumNodes()), radius: make([]float32, f.NumNodes())}
	in := make([]fabric.NodeID, f.NumNodes())
	for _, n := range f.Nodes() {
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
		if i, ok := both.edgeBetween(in[e.a], in[e.b]); ok {
			if e.bend = both.edges[i].bend; both.edges[i].a != in[e.a] {
				e.bend = -e.bend
			}
		}
	}
	for _, g := range both.groupings {
		l.groupings = append(l.groupings, g.among(in, len(both.x)))
	}
	return l, nil
}
