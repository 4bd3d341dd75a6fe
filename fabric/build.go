package fabric

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Builder collects nodes and cables in any order and makes a Fabric of them.
// Its indices are those of insertion; the Fabric's are different.
type Builder struct {
	nodes []Node
	ports [][]builderPort // by node, by port number
	slab  []builderPort   // room for ports of nodes to come
}

type builderPort struct {
	guid  GUID
	node  int32 // the other end; -1 without a cable
	lid   LID
	link  Link
	num   PortNum
	lmc   uint8
	wired bool
}

// slabPorts is how many ports get their memory at a time.
const slabPorts = 1024

// Grow makes room for so many nodes more, which saves time where there are many.
func (b *Builder) Grow(nodes int) {
	b.nodes = slices.Grow(b.nodes, nodes)
	b.ports = slices.Grow(b.ports, nodes)
}

// AddNode adds a node and returns its index in the builder. Order is set by
// Build. Switch port 0 gets the node's GUID, port p of a CA or router gets
// GUID+p until SetPort says otherwise.
func (b *Builder) AddNode(n Node) (int, error) {
	if n.NumPorts > MaxPortNum {
		return 0, fmt.Errorf("%d ports, want at most %d", n.NumPorts, MaxPortNum)
	}
	switch n.Type {
	case Switch, CA, Router:
	default:
		return 0, fmt.Errorf("no such node type: %d", n.Type)
	}
	if len(b.nodes) == math.MaxInt32 {
		return 0, ErrTooLarge
	}
	slots := int(n.NumPorts) + 1
	if len(b.slab) < slots {
		b.slab = make([]builderPort, max(slots, slabPorts))
	}
	ports := b.slab[:slots:slots]
	b.slab = b.slab[slots:]
	for p := range ports {
		ports[p].node = -1
		if (p == 0) == (n.Type == Switch) {
			ports[p].guid = n.GUID + GUID(p)
		}
	}
	b.nodes = append(b.nodes, n)
	b.ports = append(b.ports, ports)
	return len(b.nodes) - 1, nil
}

// Node gives a node back, to be completed before Build.
func (b *Builder) Node(i int) *Node { return &b.nodes[i] }

// NumNodes counts the nodes added.
func (b *Builder) NumNodes() int { return len(b.nodes) }

func (b *Builder) port(node int, p PortNum) (*builderPort, error) {
	if node < 0 || node >= len(b.nodes) {
		return nil, fmt.Errorf("no node %d", node)
	}
	if int(p) >= len(b.ports[node]) || (p == 0 && b.nodes[node].Type != Switch) {
		return nil, fmt.Errorf("port %d of %q, which has ports 1 to %d", p, b.nodes[node].Description, b.nodes[node].NumPorts)
	}
	return &b.ports[node][p], nil
}

// SetPort sets what an end port is known by: switch port 0, or a port of a CA
// or router. guid 0 keeps the default.
func (b *Builder) SetPort(node int, p PortNum, guid GUID, lid LID, lmc uint8) error {
	at, err := b.port(node, p)
	if err != nil {
		return err
	}
	if (p == ManagementPort) != (b.nodes[node].Type == Switch) {
		return fmt.Errorf("port %d of switch %q is no end port", p, b.nodes[node].Description)
	}
	if guid != 0 {
		at.guid = guid
	}
	at.lid, at.lmc = lid, lmc
	return nil
}

// Connect puts a cable between two ports, which must be free. A cable from a
// port to itself is refused; one between two ports of a node is not.
func (b *Builder) Connect(node1 int, p1 PortNum, node2 int, p2 PortNum, link Link) error {
	a, err := b.port(node1, p1)
	if err != nil {
		return err
	}
	z, err := b.port(node2, p2)
	if err != nil {
		return err
	}
	if p1 == 0 || p2 == 0 {
		return errors.New("port 0 of a switch takes no cable")
	}
	if a == z {
		return fmt.Errorf("a cable from port %d of %q to itself", p1, b.nodes[node1].Description)
	}
	if a.wired {
		return fmt.Errorf("port %d of %q has a cable already", p1, b.nodes[node1].Description)
	}
	if z.wired {
		return fmt.Errorf("port %d of %q has a cable already", p2, b.nodes[node2].Description)
	}
	a.wired, a.node, a.num, a.link = true, int32(node2), p2, link
	z.wired, z.node, z.num, z.link = true, int32(node1), p1, link
	return nil
}

// Connected says whether a port has a cable, and to what.
func (b *Builder) Connected(node int, p PortNum) (peer int, peerPort PortNum, ok bool) {
	at, err := b.port(node, p)
	if err != nil || !at.wired {
		return 0, 0, false
	}
	return int(at.node), at.num, true
}

// Disconnect takes a cable away, if there is one.
func (b *Builder) Disconnect(node int, p PortNum) {
	at, err := b.port(node, p)
	if err != nil || !at.wired {
		return
	}
	z := &b.ports[at.node][at.num]
	at.wired, at.node, at.link = false, -1, Link{}
	z.wired, z.node, z.link = false, -1, Link{}
}

// Build makes the Fabric. Errors: a zero or duplicate node GUID, more ports
// than a PortID can count, and what WithLIDs says of the LIDs.
func (b *Builder) Build() (*Fabric, error) {
	// Switches come first, and then the order is that of GUIDs.
	type place struct {
		guid GUID
		at   int32 // builder index
		rest bool  // it is no switch
	}
	order := make([]place, len(b.nodes)) // by NodeID
	for i := range order {
		order[i] = place{b.nodes[i].GUID, int32(i), b.nodes[i].Type != Switch}
	}
	slices.SortFunc(order, func(m, n place) int {
		if m.rest != n.rest {
			if m.rest {
				return 1
			}
			return -1
		}
		if m.guid != n.guid {
			if m.guid < n.guid {
				return -1
			}
			return 1
		}
		return cmp.Compare(m.at, n.at)
	})
	channels, hosts := 0, 0
	for i := range b.nodes {
		isSwitch := b.nodes[i].Type == Switch
		for p := range b.ports[i] {
			switch at := &b.ports[i][p]; {
			case !at.wired:
			case !isSwitch:
				hosts++
			case b.nodes[at.node].Type == Switch && int(at.node) != i:
				channels++
			}
		}
	}
	f := &Fabric{nodes: make([]Node, len(order)), base: make([]PortID, len(order)+1), ports: &ports{}, lids: &lids{}}
	id := make([]NodeID, len(order)) // builder index to NodeID
	slots := 0
	var seen GUIDIndex
	seen.Grow(len(order))
	for n := range order {
		i := order[n].at
		node := &f.nodes[n]
		*node = b.nodes[i]
		node.Order = i
		if node.GUID == 0 {
			return nil, fmt.Errorf("node %q has GUID 0", node.Description)
		}
		if j := seen.Find(node.GUID); j >= 0 {
			return nil, fmt.Errorf("GUID %s is on two nodes, %q and %q", node.GUID, b.nodes[j].Description, node.Description)
		}
		seen.Add(node.GUID, i)
		f.base[n] = PortID(slots)
		id[i] = NodeID(n)
		slots += len(b.ports[i])
		if slots > math.MaxInt32 {
			return nil, ErrTooLarge
		}
		if node.Type == Switch {
			f.switches++
		}
	}
	f.base[len(order)] = PortID(slots)
	f.owner = make([]NodeID, slots)
	f.peer = make([]PortID, slots)
	f.guid = make([]GUID, slots)
	f.link = make([]Link, slots)
	base := make([]LID, slots)
	lmc := make([]uint8, slots)
	f.first = make([]int32, f.switches+1)
	f.caPorts, f.attached = make([]PortID, 0, hosts), make([]NodeID, 0, hosts)
	f.chans, f.to = make([]PortID, 0, channels), make([]NodeID, 0, channels)
	for n := range order {
		i := order[n].at
		for p := range b.ports[i] {
			at := &b.ports[i][p]
			slot := int(f.base[n]) + p
			f.owner[slot] = NodeID(n)
			f.guid[slot] = at.guid
			f.link[slot] = at.link
			base[slot], lmc[slot] = at.lid, at.lmc
			f.peer[slot] = NoPort
			if !at.wired {
				continue
			}
			peer := id[at.node]
			f.peer[slot] = f.base[peer] + PortID(at.num)
			f.links++
			switch {
			case !f.IsSwitch(NodeID(n)):
				f.caPorts = append(f.caPorts, PortID(slot))
				if f.IsSwitch(peer) {
					f.attached = append(f.attached, peer)
				} else {
					f.attached = append(f.attached, NoNode)
				}
			case f.IsSwitch(peer) && peer != NodeID(n):
				f.chans = append(f.chans, PortID(slot))
				f.to = append(f.to, peer)
			}
		}
		if n < f.switches {
			f.first[n+1] = int32(len(f.chans))
		}
	}
	f.links /= 2
	return f.WithLIDs(base, lmc)
}
