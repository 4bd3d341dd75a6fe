package gen

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// draft is a made fabric while Options change it. Its LIDs are gone: no option keeps them.
type draft struct {
	nodes  []fabric.Node // in the order in which they were made
	cables []cable       // in the order of their first ends
}

// cable joins two ports.
type cable struct {
	ends   [2]end
	link   fabric.Link
	labels [2]string // of the ends
}

// end is a port at an end of a cable.
type end struct {
	node int // index in draft.nodes
	port fabric.PortNum
}

// newDraft takes a fabric apart.
func newDraft(f *fabric.Fabric) *draft {
	d := &draft{nodes: make([]fabric.Node, f.NumNodes()), cables: make([]cable, 0, f.NumLinks())}
	at := func(p fabric.PortID) end { return end{int(f.Node(f.Owner(p)).Order), f.Num(p)} }
	for n := range fabric.NodeID(f.NumNodes()) {
		d.nodes[f.Node(n).Order] = *f.Node(n)
	}
	for p := range fabric.PortID(f.NumPorts()) {
		if peer := f.Peer(p); peer != fabric.NoPort {
			if c := (cable{[2]end{at(p), at(peer)}, f.Link(p), [2]string{f.Label(p), f.Label(peer)}}); c.ends[0].compare(c.ends[1]) < 0 {
				d.cables = append(d.cables, c)
			}
		}
	}
	slices.SortFunc(d.cables, func(a, b cable) int { return a.ends[0].compare(b.ends[0]) })
	return d
}

func (e end) compare(o end) int {
	return cmp.Or(cmp.Compare(e.node, o.node), cmp.Compare(e.port, o.port))
}

// redraft is f after a change of its draft.
func redraft(f *fabric.Fabric, change func(*draft) error) (*fabric.Fabric, error) {
	d := newDraft(f)
	if err := change(d); err != nil {
		return nil, err
	}
	return d.fabric()
}

// fabric puts the draft together.
func (d *draft) fabric() (*fabric.Fabric, error) {
	if err := d.checkLIDs(); err != nil {
		return nil, err
	}
	var b fabric.Builder
	for _, n := range d.nodes {
		if _, err := b.AddNode(n); err != nil {
			return nil, fmt.Errorf("%s: %w", n.Description, err)
		}
	}
	for _, c := range d.cables {
		x, y := c.ends[0], c.ends[1]
		if err := b.Connect(x.node, x.port, y.node, y.port, c.link); err != nil {
			return nil, err
		}
		for k, e := range c.ends {
			if err := b.SetLabel(e.node, e.port, c.labels[k]); err != nil {
				return nil, err
			}
		}
	}
	return b.Build()
}

// isSwitch says whether a node is a switch.
func (d *draft) isSwitch(n int) bool { return d.nodes[n].Type == fabric.Switch }

// checkLIDs says whether there is a LID for each switch and each port of the others.
func (d *draft) checkLIDs() error {
	switches, ports := 0, 0
	for i := range d.nodes {
		if d.isSwitch(i) {
			switches++
		} else {
			ports += int(d.nodes[i].NumPorts)
		}
	}
	_, err := NewPlan(switches, ports)
	return err
}
