package fabric

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Builder collects nodes and cables in any order and makes a Fabric of
// them. Its indices are in the order of insertion; the Fabric's are not.
type Builder struct {
	nodes  []Node
	base   []PortID // by node: index of its first slot
	slots  []slot
	labels map[PortID]string // by index of a slot; few fabrics have any
}

// slot is a port of a Builder, or number 0 of a CA or router, which is no port.
type slot struct {
	peer PortID // index of a slot, or NoPort
	guid GUID
	link Link
	lid  LID
	lmc  uint8
}

// Grow makes room for more nodes and ports, port 0 of each node included.
func (b *Builder) Grow(nodes, ports int) {
	b.nodes, b.base, b.slots = slices.Grow(b.nodes, nodes), slices.Grow(b.base, nodes), slices.Grow(b.slots, ports)
}

// AddNode adds a node and returns its index in the builder. Build
// sets Node.Order. Switch port 0 gets the node's GUID, port p of
// a CA or router gets GUID+p, unless SetPort sets another one.
func (b *Builder) AddNode(n Node) (int, error) {
	switch {
	case n.NumPorts > MaxPortNum:
		return 0, fmt.Errorf("%d ports, want at most %d", n.NumPorts, MaxPortNum)
	case n.Type != Switch && n.Type != CA && n.Type != Router:
		return 0, fmt.Errorf("no such node type: %d", n.Type)
	case len(b.slots)+int(n.NumPorts)+1 > math.MaxInt32:
		return 0, ErrTooLarge
	}
	b.nodes = append(b.nodes, n)
	b.base = append(b.base, PortID(len(b.slots)))
	for p := range int(n.NumPorts) + 1 {
		x := slot{peer: NoPort}
		if (p == 0) == (n.Type == Switch) {
			x.guid = n.GUID + GUID(p)
		}
		b.slots = append(b.slots, x)
	}
	return len(b.nodes) - 1, nil
}

// CopyNode adds node n of f, with the GUIDs, LIDs and labels of its ports, and returns its index.
func (b *Builder) CopyNode(f *Fabric, n NodeID) (int, error) {
	i, err := b.AddNode(f.nodes[n])
	if err != nil {
		return 0, err
	}
	for num := range f.nodes[n].NumPorts + 1 {
		p, x := f.Port(n, num), &b.slots[b.base[i]+PortID(num)]
		x.guid, x.lid, x.lmc = f.guid[p], f.lid[p], f.lmc[p]
		if label := f.Label(p); label != "" {
			if err := b.SetLabel(i, num, label); err != nil {
				return 0, err
			}
		}
	}
	return i, nil
}

// Node returns a node, to be changed before Build. Its type and number of ports must stay.
func (b *Builder) Node(i int) *Node { return &b.nodes[i] }

// slot returns the index of a port's slot.
func (b *Builder) slot(node int, p PortNum) (PortID, error) {
	if node < 0 || node >= len(b.nodes) {
		return NoPort, fmt.Errorf("no node %d", node)
	}
	n := &b.nodes[node]
	if p > n.NumPorts || (p == 0 && n.Type != Switch) {
		return NoPort, fmt.Errorf("port %d of %q, which has ports 1 to %d", p, n.Description, n.NumPorts)
	}
	return b.base[node] + PortID(p), nil
}

// SetPort sets the GUID and LIDs of an end port: switch port
// 0, or a port of a CA or router. guid 0 keeps the default.
func (b *Builder) SetPort(node int, p PortNum, guid GUID, lid LID, lmc uint8) error {
	at, err := b.slot(node, p)
	if err != nil {
		return err
	}
	if (p == ManagementPort) != (b.nodes[node].Type == Switch) {
		return fmt.Errorf("port %d of switch %q is no end port", p, b.nodes[node].Description)
	}
	x := &b.slots[at]
	if guid != 0 {
		x.guid = guid
	}
	x.lid, x.lmc = lid, lmc
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
	switch {
	case p1 == 0 || p2 == 0:
		return errors.New("port 0 of a switch takes no cable")
	case a == z:
		return fmt.Errorf("a cable from port %d of %q to itself", p1, b.nodes[node1].Description)
	case b.slots[a].peer != NoPort:
		return fmt.Errorf("port %d of %q has a cable already", p1, b.nodes[node1].Description)
	case b.slots[z].peer != NoPort:
		return fmt.Errorf("port %d of %q has a cable already", p2, b.nodes[node2].Description)
	}
	b.slots[a].peer, b.slots[a].link = z, link
	b.slots[z].peer, b.slots[z].link = a, link
	return nil
}

// Connected returns the port at the other end of a port's cable; ok is false without a cable.
func (b *Builder) Connected(node int, p PortNum) (peer int, peerPort PortNum, ok bool) {
	at, err := b.slot(node, p)
	if err != nil || b.slots[at].peer == NoPort {
		return 0, 0, false
	}
	z := b.slots[at].peer
	peer, ok = slices.BinarySearch(b.base, z)
	if !ok {
		peer-- // the last node whose slots begin before z
	}
	return peer, PortNum(z - b.base[peer]), true
}

// Build makes the Fabric; the builder stays usable. Errors:
// a zero or duplicate node GUID, and the errors of WithLIDs.
func (b *Builder) Build() (*Fabric, error) {
	order := (&Fabric{nodes: b.nodes}).Nodes() // by NodeID: index in b.nodes
	slices.SortFunc(order, func(i, k NodeID) int { return cmp.Or(compareNodes(&b.nodes[i], &b.nodes[k]), int(i-k)) })
	n, slots := len(order), len(b.slots)
	f := &Fabric{
		nodes: make([]Node, n), base: make([]PortID, n+1), lids: &lids{}, names: &names{},
		ports: &ports{
			owner: make([]NodeID, slots), peer: make([]PortID, slots), guid: make([]GUID, slots), link: make([]Link, slots),
			labels: make(map[PortID]string, len(b.labels)),
		},
	}
	moved := make([]PortID, slots) // by slot: its PortID
	next := PortID(0)
	for n, i := range order {
		f.nodes[n] = b.nodes[i]
		f.nodes[n].Order = int32(i)
		if b.nodes[i].Type == Switch {
			f.switches++
		}
		f.base[n] = next
		for p := range PortID(b.nodes[i].NumPorts) + 1 {
			moved[b.base[i]+p] = next
			f.owner[next] = NodeID(n)
			next++
		}
	}
	f.base[n] = next
	if err := f.checkGUIDs(); err != nil {
		return nil, err
	}
	lid, lmc := make([]LID, slots), make([]uint8, slots)
	for i := range b.slots {
		x, p := &b.slots[i], moved[i]
		f.peer[p], f.guid[p], f.link[p], lid[p], lmc[p] = NoPort, x.guid, x.link, x.lid, x.lmc
		if x.peer != NoPort {
			f.peer[p] = moved[x.peer]
		}
	}
	for at, label := range b.labels {
		f.labels[moved[at]] = label
	}
	f.indexCables()
	f.indexHosts(f.findKinds())
	return f.WithLIDs(lid, lmc)
}

// compareNodes orders nodes as NodeIDs do: switches first, and then by GUID.
func compareNodes(m, n *Node) int {
	if (m.Type == Switch) != (n.Type == Switch) {
		if m.Type == Switch {
			return -1
		}
		return 1
	}
	return cmp.Compare(m.GUID, n.GUID)
}

// checkGUIDs returns an error if a node's GUID is zero or that of an earlier node.
func (f *Fabric) checkGUIDs() error {
	for n := range f.nodes {
		node := &f.nodes[n]
		if node.GUID == 0 {
			return fmt.Errorf("node %q has GUID 0", node.Description)
		}
		twin := NodeID(n - 1) // nodes of one kind are in the order of GUIDs
		if n == 0 || f.nodes[twin].GUID != node.GUID {
			twin, _ = f.SwitchByGUID(node.GUID)
		}
		if twin != NoNode && int(twin) < n {
			return fmt.Errorf("GUID %s is on two nodes, %q and %q", node.GUID, f.nodes[twin].Description, node.Description)
		}
	}
	return nil
}

// indexCables fills in the fields that peer and owner determine.
func (f *Fabric) indexCables() {
	end := f.base[f.switches] // the slots of switches come first
	f.first, f.firstEnd = make([]int32, f.switches+1), make([]int32, f.switches+1)
	f.chans, f.to, f.ends = make([]PortID, 0, end), make([]NodeID, 0, end), nil
	f.links = 0
	for s := range NodeID(f.switches) {
		for p := range f.Cabled(s) {
			f.links++
			switch peer := f.peer[p]; {
			case f.owner[peer] == s:
			case peer >= end:
				f.ends = append(f.ends, peer)
			default:
				f.chans = append(f.chans, p)
				f.to = append(f.to, f.owner[peer])
			}
		}
		f.first[s+1], f.firstEnd[s+1] = int32(len(f.chans)), int32(len(f.ends))
	}
	f.caPorts, f.attached = nil, nil
	for p := end; int(p) < len(f.peer); p++ {
		if f.peer[p] != NoPort {
			f.links++
			f.caPorts = append(f.caPorts, p)
			f.attached = append(f.attached, f.PeerSwitch(p))
		}
	}
	f.links /= 2
}
