package fabric

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Builder collects nodes and cables in any order and makes a Fabric of them.
// Its indices are those of insertion; the Fabric's are different.
type Builder struct {
	parts Parts
	base  []PortID // by node: its first slot
}

// Grow makes room for so many nodes more, which saves time where there are many.
func (b *Builder) Grow(nodes int) {
	b.parts.Nodes = slices.Grow(b.parts.Nodes, nodes)
	b.base = slices.Grow(b.base, nodes)
}

// AddNode adds a node and returns its index in the builder. Order is set by
// Build. Switch port 0 gets the node's GUID, port p of a CA or router gets
// GUID+p until SetPort says otherwise.
func (b *Builder) AddNode(n Node) (int, error) {
	if err := n.check(); err != nil {
		return 0, err
	}
	x := &b.parts
	from, slots := len(x.Peer), int(n.NumPorts)+1
	if from+slots > math.MaxInt32 {
		return 0, ErrTooLarge
	}
	x.Nodes = append(x.Nodes, n)
	b.base = append(b.base, PortID(from))
	x.Peer = slices.Grow(x.Peer, slots)[:from+slots]
	x.GUID = slices.Grow(x.GUID, slots)[:from+slots]
	x.LID = slices.Grow(x.LID, slots)[:from+slots]
	x.LMC = slices.Grow(x.LMC, slots)[:from+slots]
	x.Link = slices.Grow(x.Link, slots)[:from+slots]
	for p := range slots {
		x.Peer[from+p] = NoPort
		x.GUID[from+p], x.LID[from+p], x.LMC[from+p], x.Link[from+p] = 0, 0, 0, Link{}
		if (p == 0) == (n.Type == Switch) {
			x.GUID[from+p] = n.GUID + GUID(p)
		}
	}
	return len(x.Nodes) - 1, nil
}

// check says what no node can have.
func (n *Node) check() error {
	if n.NumPorts > MaxPortNum {
		return fmt.Errorf("%d ports, want at most %d", n.NumPorts, MaxPortNum)
	}
	switch n.Type {
	case Switch, CA, Router:
		return nil
	}
	return fmt.Errorf("no such node type: %d", n.Type)
}

// Node gives a node back, to be completed before Build. A switch is to remain one,
// and what is none too, with as many ports.
func (b *Builder) Node(i int) *Node { return &b.parts.Nodes[i] }

// NumNodes counts the nodes added.
func (b *Builder) NumNodes() int { return len(b.parts.Nodes) }

// slot is where a port is in the parts.
func (b *Builder) slot(node int, p PortNum) (PortID, error) {
	if node < 0 || node >= len(b.parts.Nodes) {
		return NoPort, fmt.Errorf("no node %d", node)
	}
	n := &b.parts.Nodes[node]
	if p > n.NumPorts || (p == 0 && n.Type != Switch) {
		return NoPort, fmt.Errorf("port %d of %q, which has ports 1 to %d", p, n.Description, n.NumPorts)
	}
	return b.base[node] + PortID(p), nil
}

// SetPort sets what an end port is known by: switch port 0, or a port of a CA
// or router. guid 0 keeps the default.
func (b *Builder) SetPort(node int, p PortNum, guid GUID, lid LID, lmc uint8) error {
	at, err := b.slot(node, p)
	if err != nil {
		return err
	}
	x := &b.parts
	if (p == ManagementPort) != (x.Nodes[node].Type == Switch) {
		return fmt.Errorf("port %d of switch %q is no end port", p, x.Nodes[node].Description)
	}
	if guid != 0 {
		x.GUID[at] = guid
	}
	x.LID[at], x.LMC[at] = lid, lmc
	return nil
}

// Connect puts a cable between two ports, which must be free. A cable from a
// port to itself is refused; one between two ports of a node is not.
func (b *Builder) Connect(node1 int, p1 PortNum, node2 int, p2 PortNum, link Link) error {
	a, err := b.slot(node1, p1)
	if err != nil {
		return err
	}
	z, err := b.slot(node2, p2)
	if err != nil {
		return err
	}
	x := &b.parts
	if p1 == 0 || p2 == 0 {
		return errors.New("port 0 of a switch takes no cable")
	}
	if a == z {
		return fmt.Errorf("a cable from port %d of %q to itself", p1, x.Nodes[node1].Description)
	}
	if x.Peer[a] != NoPort {
		return fmt.Errorf("port %d of %q has a cable already", p1, x.Nodes[node1].Description)
	}
	if x.Peer[z] != NoPort {
		return fmt.Errorf("port %d of %q has a cable already", p2, x.Nodes[node2].Description)
	}
	x.Peer[a], x.Link[a] = z, link
	x.Peer[z], x.Link[z] = a, link
	return nil
}

// Connected says whether a port has a cable, and to what.
func (b *Builder) Connected(node int, p PortNum) (peer int, peerPort PortNum, ok bool) {
	at, err := b.slot(node, p)
	if err != nil || b.parts.Peer[at] == NoPort {
		return 0, 0, false
	}
	z := b.parts.Peer[at]
	peer, ok = slices.BinarySearch(b.base, z)
	if !ok {
		peer-- // the node whose slots begin before
	}
	return peer, PortNum(z - b.base[peer]), true
}

// Disconnect takes a cable away, if there is one.
func (b *Builder) Disconnect(node int, p PortNum) {
	at, err := b.slot(node, p)
	if err != nil || b.parts.Peer[at] == NoPort {
		return
	}
	x := &b.parts
	z := x.Peer[at]
	x.Peer[at], x.Link[at] = NoPort, Link{}
	x.Peer[z], x.Link[z] = NoPort, Link{}
}

// Build makes the Fabric; the builder may be used further. Errors: a zero or
// duplicate node GUID, and what WithLIDs says of the LIDs.
func (b *Builder) Build() (*Fabric, error) {
	x := &b.parts
	return (&Parts{
		Nodes: slices.Clone(x.Nodes), Peer: slices.Clone(x.Peer), GUID: slices.Clone(x.GUID),
		LID: slices.Clone(x.LID), LMC: slices.Clone(x.LMC), Link: slices.Clone(x.Link),
	}).Build()
}
