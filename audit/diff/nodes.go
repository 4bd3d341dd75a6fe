package diff

import (
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// compareNodes finds the nodes that came, went, were replaced or changed.
func (c *comparison) compareNodes() {
	d := &c.r.Nodes
	// Not all forms of a topology tell the kind of port 0.
	port0 := anyEnhancedPort0(c.old) && anyEnhancedPort0(c.new)
	for n, at := range c.node {
		node := c.old.Node(fabric.NodeID(n))
		if at == fabric.NoNode {
			d.Gone = append(d.Gone, nodeRef(c.old, fabric.NodeID(n)))
			continue
		}
		now := c.new.Node(at)
		if node.GUID != now.GUID {
			d.Replaced = append(d.Replaced, Replacement{Old: nodeRef(c.old, fabric.NodeID(n)), New: nodeRef(c.new, at)})
		}
		var fields []Field
		add := func(name string, old, new any) {
			if old != new {
				fields = append(fields, Field{Name: name, Old: fmt.Sprint(old), New: fmt.Sprint(new)})
			}
		}
		add("name", node.Description, now.Description)
		add("ports", node.NumPorts, now.NumPorts)
		if node.GUID == now.GUID {
			// A replaced node has its own serial numbers; that says nothing.
			if node.SystemGUID != 0 && now.SystemGUID != 0 {
				add("system_guid", node.SystemGUID, now.SystemGUID)
			}
			if node.DeviceID != 0 && now.DeviceID != 0 {
				add("device", node.DeviceID, now.DeviceID)
			}
		}
		if c.old.IsSwitch(fabric.NodeID(n)) {
			if port0 {
				yes := map[bool]string{false: "no", true: "yes"}
				add("enhanced_port_0", yes[node.EnhancedPort0], yes[now.EnhancedPort0])
			}
		} else {
			for p := 1; p <= int(min(node.NumPorts, now.NumPorts)); p++ {
				x, y := c.old.PortBase(fabric.NodeID(n))+fabric.PortID(p), c.new.PortBase(at)+fabric.PortID(p)
				if c.old.Peer(x) != fabric.NoPort && c.new.Peer(y) != fabric.NoPort && node.GUID == now.GUID {
					add(fmt.Sprint("port_guid ", p), c.old.PortGUID(x), c.new.PortGUID(y))
				}
			}
		}
		if len(fields) > 0 {
			d.Changed = append(d.Changed, NodeChange{Node: nodeRef(c.new, at), Fields: fields})
		}
	}
	for n, at := range c.back {
		if at == fabric.NoNode {
			d.New = append(d.New, nodeRef(c.new, fabric.NodeID(n)))
		}
	}
}

// anyEnhancedPort0 says whether any switch has an enhanced port 0.
func anyEnhancedPort0(f *fabric.Fabric) bool {
	return slices.ContainsFunc(f.Switches(), func(s fabric.NodeID) bool { return f.Node(s).EnhancedPort0 })
}

// compareLinks finds the cables that came, went, moved or changed. A cable has moved
// when one of its ends stays where it was; ends at CAs and routers count first,
// since a host is moved more often than a cable is exchanged.
func (c *comparison) compareLinks() {
	d := &c.r.Links
	gone := make(map[fabric.PortID]fabric.PortID) // by new PortID, where the port is still there: the old one
	var went, came []fabric.PortID
	for p := range fabric.PortID(c.old.NumPorts()) {
		peer := c.old.Peer(p)
		if peer == fabric.NoPort {
			continue
		}
		x := c.port[p]
		if x != fabric.NoPort && c.sameCable(p, x) {
			if was, now := c.old.Link(p), c.new.Link(x); p < peer && was.String() != "" && now.String() != "" && was != now {
				d.Changed = append(d.Changed, LinkChange{Link: c.linkRef(c.new, x), Old: was.String(), New: now.String()})
			}
			continue
		}
		if x != fabric.NoPort {
			gone[x] = p
		}
		if p < peer {
			went = append(went, p)
		}
	}
	moved := make(map[fabric.PortID]bool) // ends of new cables, PortIDs of the new fabric
	left := make(map[fabric.PortID]bool)  // ends of old cables, PortIDs of the old fabric
	pair := func(x fabric.PortID) {
		p, ok := gone[x]
		y := c.new.Peer(x)
		if !ok || y == fabric.NoPort || moved[x] || left[p] {
			return
		}
		moved[x], moved[y] = true, true
		left[p], left[c.old.Peer(p)] = true, true
		d.Moved = append(d.Moved, LinkMove{
			End: portRef(c.new, x), Old: portRef(c.old, c.old.Peer(p)), New: portRef(c.new, y),
			Link: c.new.Link(x).String(),
		})
	}
	for _, x := range c.new.CAPorts() {
		pair(x)
	}
	for x := range c.new.PortBase(fabric.NodeID(c.new.NumSwitches())) {
		pair(x)
	}
	for x := range fabric.PortID(c.new.NumPorts()) {
		peer := c.new.Peer(x)
		if peer == fabric.NoPort || x > peer || moved[x] {
			continue
		}
		if p := c.backPort[x]; p == fabric.NoPort || !c.sameCable(p, x) {
			came = append(came, x)
		}
	}
	for _, p := range went {
		if !left[p] {
			d.Gone = append(d.Gone, c.linkRef(c.old, p))
		}
	}
	for _, x := range came {
		d.New = append(d.New, c.linkRef(c.new, x))
	}
}

// compareLIDs finds the end ports of both states that have other LIDs. A CA port whose
// cable came or went is not among them: links says so.
func (c *comparison) compareLIDs() {
	if c.old.MaxLID() == 0 || c.new.MaxLID() == 0 {
		return
	}
	c.r.LIDs = &LIDChanges{Changed: []LIDChange{}}
	c.new.EndPorts(func(x fabric.PortID) {
		p := c.backPort[x]
		if p == fabric.NoPort || !c.old.IsSwitch(c.old.Owner(p)) && c.old.Peer(p) == fabric.NoPort {
			return
		}
		d := LIDChange{
			Port: portRef(c.new, x),
			Old:  c.old.LID(p), New: c.new.LID(x),
			OldLMC: c.old.LMC(p), NewLMC: c.new.LMC(x),
		}
		if d.Old == 0 {
			d.OldLMC = 0
		}
		if d.New == 0 {
			d.NewLMC = 0
		}
		if d.Old != d.New || d.OldLMC != d.NewLMC {
			c.r.LIDs.Changed = append(c.r.LIDs.Changed, d)
		}
	})
}

func (c *comparison) linkRef(f *fabric.Fabric, p fabric.PortID) LinkRef {
	a, b := p, f.Peer(p)
	// The lower GUID first, so that it does not depend on which nodes are
	// switches and on the direction of the comparison.
	if x, y := f.Node(f.Owner(a)).GUID, f.Node(f.Owner(b)).GUID; y < x {
		a, b = b, a
	}
	return LinkRef{A: portRef(f, a), B: portRef(f, b), Link: f.Link(p).String()}
}
