package page

import (
	"cmp"
	"context"
	"fmt"
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
	// Replaced has by old node the new node in its place.
	Replaced map[fabric.GUID]fabric.GUID
	// Changes are what the page lists and lights, and Summary says of them.
	Changes []Change
	Summary []Note
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
	// Old and New are the nodes, or the ends of cables, that have changed: two ends for each cable.
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

// edgeBetween finds the edge of two switches.
func (l *layout) edgeBetween(a, b fabric.NodeID) (int, bool) {
	key := edge{a: min(a, b), b: max(a, b)}
	return slices.BinarySearchFunc(l.edges, key, func(x, y edge) int { return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b)) })
}

// scenes returns the scenes of both states, with the same places; old is nil if there is only one state.
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
