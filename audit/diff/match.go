package diff

import (
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// match says which nodes and ports of two fabrics are the same.
type match struct {
	old, new *fabric.Fabric
	node     []fabric.NodeID // by old NodeID, NoNode for one that went
	back     []fabric.NodeID // by new NodeID, NoNode for one that came
	port     []fabric.PortID // by old PortID
	backPort []fabric.PortID // by new PortID
}

// matchNodes matches nodes by GUID, and then those that have been replaced: a
// node that has another GUID, and is of the same kind and in the same place. A
// place is the cables: more than half of all that either has lead to the same
// ports of nodes that are matched. A CA or router has to have its description,
// too, since another host on a switch port is another host.
func matchNodes(old, new *fabric.Fabric) *match {
	none := []fabric.NodeID{fabric.NoNode}
	m := &match{old: old, new: new, node: slices.Repeat(none, old.NumNodes()), back: slices.Repeat(none, new.NumNodes())}
	var went []fabric.NodeID
	for n := range m.node {
		at, ok := new.NodeByGUID(old.Node(fabric.NodeID(n)).GUID)
		if !ok || new.Node(at).Type != old.Node(fabric.NodeID(n)).Type {
			went = append(went, fabric.NodeID(n))
			continue
		}
		m.node[n], m.back[at] = at, fabric.NodeID(n)
	}
	// A node that is replaced makes a place for its neighbours; all of one
	// round are matched together, so that it does not matter which comes first.
	for found := true; found; {
		var pairs [][2]fabric.NodeID
		for _, n := range went {
			if m.node[n] != fabric.NoNode {
				continue
			}
			if at := m.findReplacement(n); at != fabric.NoNode {
				pairs = append(pairs, [2]fabric.NodeID{n, at})
			}
		}
		for _, p := range pairs {
			m.node[p[0]], m.back[p[1]] = p[1], p[0]
		}
		found = len(pairs) > 0
	}
	m.port = portsOf(old, new, m.node)
	m.backPort = portsOf(new, old, m.back)
	return m
}

// findReplacement is the new node that has replaced an old one. There is at most one,
// and it has replaced no other, since more than half of the cables of both have
// to agree.
func (m *match) findReplacement(n fabric.NodeID) fabric.NodeID {
	node := m.old.Node(n)
	votes := map[fabric.NodeID]int{}
	cables := 0
	for p := range m.old.Cabled(n) {
		cables++
		peer := m.old.Peer(p)
		at := m.node[m.old.Owner(peer)]
		if at == fabric.NoNode || m.old.Num(peer) > m.new.Node(at).NumPorts {
			continue
		}
		now := m.new.Peer(m.new.Port(at, m.old.Num(peer)))
		if now != fabric.NoPort && m.new.Num(now) == m.old.Num(p) && m.back[m.new.Owner(now)] == fabric.NoNode {
			votes[m.new.Owner(now)]++
		}
	}
	for at, n := range votes {
		now := m.new.Node(at)
		if now.Type != node.Type || now.NumPorts != node.NumPorts || 2*n <= max(cables, len(slices.Collect(m.new.Cabled(at)))) {
			continue
		}
		if node.Type == fabric.Switch || now.Description == node.Description {
			return at
		}
	}
	return fabric.NoNode
}

// portsOf is the ports of other by PortID of f, NoPort for those that it does
// not have.
func portsOf(f, other *fabric.Fabric, node []fabric.NodeID) []fabric.PortID {
	ports := make([]fabric.PortID, f.NumPorts())
	for n, at := range node {
		base := f.PortBase(fabric.NodeID(n))
		for p := range fabric.PortID(f.Node(fabric.NodeID(n)).NumPorts) + 1 {
			ports[base+p] = fabric.NoPort
			if at != fabric.NoNode && p <= fabric.PortID(other.Node(at).NumPorts) {
				ports[base+p] = other.PortBase(at) + p
			}
		}
	}
	return ports
}

// sameCable says whether the cables of two matched ports lead to matched ports,
// or neither has one.
func (m *match) sameCable(old, new fabric.PortID) bool {
	x, y := m.old.Peer(old), m.new.Peer(new)
	if x == fabric.NoPort || y == fabric.NoPort {
		return x == y
	}
	return m.port[x] == y
}
