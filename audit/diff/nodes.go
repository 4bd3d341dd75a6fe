package diff

import (
	"fmt"

	"github.com/ibweave/ibweave/fabric"
)

// compareNodes finds the nodes that came, went, were replaced or changed.
func (c *comparison) compareNodes() {
	d := &c.r.Nodes
	for n, at := range c.Node {
		node := c.Old.Node(fabric.NodeID(n))
		if at == fabric.NoNode {
			d.Gone = append(d.Gone, nodeRef(c.Old, fabric.NodeID(n)))
			continue
		}
		now := c.New.Node(at)
		if node.GUID != now.GUID {
			d.Replaced = append(d.Replaced, Replacement{Old: nodeRef(c.Old, fabric.NodeID(n)), New: nodeRef(c.New, at)})
		}
		var fields []Field
		add := func(name string, old, new any) {
			if old != new {
				fields = append(fields, Field{Name: name, Old: fmt.Sprint(old), New: fmt.Sprint(new)})
			}
		}
		add("name", node.Description, now.Description)
		add("ports", node.NumPorts, now.NumPorts)
		if len(fields) > 0 {
			d.Changed = append(d.Changed, NodeChange{Node: nodeRef(c.New, at), Fields: fields})
		}
	}
	for n, at := range c.Back {
		if at == fabric.NoNode {
			d.New = append(d.New, nodeRef(c.New, fabric.NodeID(n)))
		}
	}
}

// compareLinks finds the cables that are new, gone, moved or changed. A cable has moved if one of
// its ends is where it was. Ends at CAs and routers are checked first, since a host is moved more
// often than a cable is exchanged.
func (c *comparison) compareLinks() {
	d := &c.r.Links
	moved := make(map[fabric.PortID]bool) // ends of new cables, PortIDs of the new fabric
	left := make(map[fabric.PortID]bool)  // ends of old cables, PortIDs of the old fabric
	move := func(x fabric.PortID) {
		p, y := c.BackPort[x], c.New.Peer(x)
		if p == fabric.NoPort || y == fabric.NoPort || c.Old.Peer(p) == fabric.NoPort || c.SameCable(p, x) || moved[x] || left[p] {
			return
		}
		was := c.Old.Peer(p)
		moved[x], moved[y], left[p], left[was] = true, true, true, true
		d.Moved = append(d.Moved, LinkMove{End: portRef(c.New, x), Old: portRef(c.Old, was), New: portRef(c.New, y), Link: c.New.Link(x).String()})
	}
	for _, x := range c.New.CAPorts() {
		move(x)
	}
	for x := range c.New.PortBase(fabric.NodeID(c.New.NumSwitches())) {
		move(x)
	}
	for _, cable := range c.Old.Cables() {
		x := c.Port[cable.A]
		if !c.SameCable(cable.A, x) {
			if !left[cable.A] {
				d.Gone = append(d.Gone, linkRef(c.Old, cable.A))
			}
		} else if was, now := cable.Link.String(), c.New.Link(x).String(); was != "" && now != "" && was != now {
			d.Changed = append(d.Changed, LinkChange{Link: linkRef(c.New, x), Old: was, New: now})
		}
	}
	for _, cable := range c.New.Cables() {
		if !moved[cable.A] && !c.SameCable(c.BackPort[cable.A], cable.A) {
			d.New = append(d.New, linkRef(c.New, cable.A))
		}
	}
}

// compareLIDs finds the end ports of both states whose LIDs differ. It leaves out CA ports whose
// cable came or went: LinkChanges has these.
func (c *comparison) compareLIDs() {
	if c.Old.MaxLID() == 0 || c.New.MaxLID() == 0 {
		return
	}
	c.r.LIDs = &LIDChanges{Changed: []LIDChange{}}
	c.New.EndPorts(func(x fabric.PortID) {
		p := c.BackPort[x]
		if p == fabric.NoPort || !c.Old.IsSwitch(c.Old.Owner(p)) && c.Old.Peer(p) == fabric.NoPort {
			return
		}
		d := LIDChange{Port: portRef(c.New, x), Old: c.Old.LID(p), New: c.New.LID(x)}
		if d.Old != 0 {
			d.OldLMC = c.Old.LMC(p)
		}
		if d.New != 0 {
			d.NewLMC = c.New.LMC(x)
		}
		if d.Old != d.New || d.OldLMC != d.NewLMC {
			c.r.LIDs.Changed = append(c.r.LIDs.Changed, d)
		}
	})
}

func linkRef(f *fabric.Fabric, p fabric.PortID) LinkRef {
	a, b := p, f.Peer(p)
	// The lower GUID comes first, in both directions of a comparison.
	if x, y := f.Node(f.Owner(a)).GUID, f.Node(f.Owner(b)).GUID; y < x {
		a, b = b, a
	}
	return LinkRef{A: portRef(f, a), B: portRef(f, b), Link: f.Link(p).String()}
}
