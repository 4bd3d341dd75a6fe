package gen

import (
	"fmt"

	"github.com/ibweave/ibweave/fabric"
)

// draft is a made fabric while Options change it. Its LIDs are gone: no option keeps them.
type draft struct {
	f      *fabric.Fabric // as it was
	nodes  []fabric.Node  // in the order in which they were made
	cables []cable
	labels map[end]string
}

// cable joins two ports.
type cable struct {
	ends [2]end
	link fabric.Link
}

// end is a port, where a cable can end.
type end struct {
	node int // index in draft.nodes
	port fabric.PortNum
}

// newDraft takes a fabric apart.
func newDraft(f *fabric.Fabric) *draft {
	d := &draft{f: f, nodes: make([]fabric.Node, f.NumNodes()), cables: make([]cable, 0, f.NumLinks()), labels: map[end]string{}}
	for n := range fabric.NodeID(f.NumNodes()) {
		d.nodes[f.Node(n).Order] = *f.Node(n)
	}
	for p := range fabric.PortID(f.NumPorts()) {
		if label := f.Label(p); label != "" {
			d.labels[d.at(p)] = label
		}
	}
	for _, c := range f.Cables() {
		d.cables = append(d.cables, cable{[2]end{d.at(c.A), d.at(c.B)}, c.Link})
	}
	return d
}

// at is a port of f.
func (d *draft) at(p fabric.PortID) end { return end{int(d.f.Node(d.f.Owner(p)).Order), d.f.Num(p)} }

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
	}
	for e, label := range d.labels {
		if err := b.SetLabel(e.node, e.port, label); err != nil {
			return nil, err
		}
	}
	return b.Build()
}

// isSwitch returns true for a switch.
func (d *draft) isSwitch(n int) bool { return d.nodes[n].Type == fabric.Switch }

// checkLIDs returns an error if there are fewer LIDs than switches and ports of the others.
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
