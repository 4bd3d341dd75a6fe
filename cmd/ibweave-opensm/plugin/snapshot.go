package plugin

import (
	"fmt"
	"time"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
)

// Snapshot is OpenSM's subnet at one moment, in any order.
type Snapshot struct {
	Settings
	Nodes []Node
	// Ports has the ports of all nodes: node i has Ports[Nodes[i].First], its port 0, and the
	// NumPorts after that.
	Ports []Port
	// MaxLID is the highest LID that OpenSM has made room for in tables.
	MaxLID fabric.LID
	// Reroute says that OpenSM routes without a sweep, on a
	// command of its console, and so will not ask for masks.
	Reroute bool
	// Found has the LFTs that OpenSM read from switches, by index in
	// Nodes and then by LID, at most up to MaxLID; nil for nodes that
	// were not read. Found itself is nil if OpenSM knows the tables.
	Found [][]fabric.PortNum
	// Took is how long taking the snapshot took.
	Took time.Duration
}

// Node is a node of OpenSM's.
type Node struct {
	GUID, SystemGUID fabric.GUID
	Type             uint8 // as NodeInfo has it: 1 CA, 2 switch, 3 router
	NumPorts         uint8 // external ports
	EnhancedPort0    bool
	First            int32  // index of port 0 in Ports
	LinearCap        uint16 // of switches: entries of the LFT
	VendorID         uint32
	DeviceID         uint16
	Description      string
}

// Port is a port of OpenSM's.
type Port struct {
	GUID  fabric.GUID // of end ports
	LID   fabric.LID  // base LID, 0 for none
	LMC   uint8
	Peer  int32 // index of the node at the other end, -1 without a cable
	Num   uint8 // port number at the other end
	VLs   uint8 // data VLs that the port can have: 1, 2, 4, 8 or 15; 0 unknown
	OpVLs uint8 // data VLs that it has at this moment
	Sick  bool  // OpenSM calls the port unhealthy or, where that counts, throttled
	fabric.Link
}

// maxNotes is the most ports that a note names.
const maxNotes = 5

// fabric makes the model of the subnet. It leaves out cables between
// switches with a sick port, as OpenSM's own engines do, and ports
// of CAs without LIDs, for which nothing is written; notes say so.
// Errors: a switch without a LID, and data that OpenSM cannot have.
func (s *Snapshot) fabric(labels nodeLabels) (f *fabric.Fabric, notes []string, err error) {
	b := modelBuilder{Snapshot: s, labels: labels}
	b.model.Grow(len(s.Nodes), len(s.Ports))
	for i := range s.Nodes {
		if err := b.addNode(&s.Nodes[i]); err != nil {
			return nil, nil, err
		}
	}
	for i := range s.Nodes {
		if err := b.addEndPorts(i); err != nil {
			return nil, nil, err
		}
		if err := b.addCables(i); err != nil {
			return nil, nil, err
		}
	}
	if len(b.without) > 0 {
		notes = append(notes, "without a LID, and left out: "+text.Few(b.without, maxNotes))
	}
	if len(b.sick) > 0 {
		notes = append(notes, "unhealthy, and not used: "+text.Few(b.sick, maxNotes))
	}
	if f, err = b.model.Build(); err != nil {
		return nil, nil, err
	}
	if f.NumSwitches() == 0 {
		return nil, nil, fmt.Errorf("no switch")
	}
	return f, notes, nil
}

// unread names the switches whose tables could not be read,
// such as: switch 0x0002c90300001234 "leaf 1".
func (s *Snapshot) unread() (list []string) {
	for i := range s.Found {
		if n := &s.Nodes[i]; n.isSwitch() && s.Found[i] == nil {
			list = append(list, fmt.Sprintf("switch %s %q", n.GUID, n.Description))
		}
	}
	return list
}

// foundTables returns Found as tables of f, a fabric of the subnet, with
// fabric.NoPath where nothing is known. It returns nil if Found is nil.
func (s *Snapshot) foundTables(f *fabric.Fabric) *lft.Tables {
	if s.Found == nil {
		return nil
	}
	t := lft.NewTables(f.NumSwitches(), f.MaxLID())
	for i, row := range s.Found {
		if row == nil {
			continue
		}
		if n, ok := f.SwitchByGUID(s.Nodes[i].GUID); ok {
			copy(t.Row(n), row)
		}
	}
	return t
}

// modelBuilder makes the model of a Snapshot.
type modelBuilder struct {
	*Snapshot
	labels        nodeLabels
	model         fabric.Builder
	sick, without []string // cables and ports that are left out
}

func (b *modelBuilder) addNode(n *Node) error {
	if n.First < 0 || int(n.First)+int(n.NumPorts) >= len(b.Ports) {
		return fmt.Errorf("node %s has ports that are not there", n.GUID)
	}
	at, err := b.model.AddNode(fabric.Node{
		GUID: n.GUID, SystemGUID: n.SystemGUID, Type: fabric.NodeType(n.Type), NumPorts: fabric.PortNum(n.NumPorts),
		EnhancedPort0: n.EnhancedPort0, VendorID: n.VendorID, DeviceID: n.DeviceID, Description: n.Description,
	})
	if err != nil {
		return fmt.Errorf("node %s %q: %w", n.GUID, n.Description, err)
	}
	for p, label := range b.labels[n.GUID] {
		if p <= fabric.PortNum(n.NumPorts) { // else the label is of another device with this GUID
			if err := b.model.SetLabel(at, p, label); err != nil {
				return err
			}
		}
	}
	return nil
}

// addEndPorts sets GUIDs and LIDs of the end ports of node i.
func (b *modelBuilder) addEndPorts(i int) error {
	n, ports := &b.Nodes[i], b.portsOf(i)
	if n.isSwitch() {
		if ports[0].LID == 0 {
			return fmt.Errorf("switch %s %q has no LID", n.GUID, n.Description)
		}
		return b.model.SetPort(i, 0, ports[0].GUID, ports[0].LID, ports[0].LMC)
	}
	for p := 1; p < len(ports); p++ {
		at := &ports[p]
		switch {
		case at.LID != 0:
			if err := b.model.SetPort(i, fabric.PortNum(p), at.GUID, at.LID, at.LMC); err != nil {
				return err
			}
		case at.Peer >= 0:
			b.without = append(b.without, b.portName(n, p))
		}
	}
	return nil
}

// addCables connects node i to nodes that come after it, and to itself.
func (b *modelBuilder) addCables(i int) error {
	n := &b.Nodes[i]
	for p, at := range b.portsOf(i) {
		j := int(at.Peer)
		if p == 0 || j < 0 {
			continue
		}
		peer, err := b.peer(i, p)
		if err != nil {
			return err
		}
		if j < i || j == i && int(at.Num) <= p {
			continue // the other end has made it, or is this port itself
		}
		to := &b.Nodes[j]
		if (at.Sick || peer.Sick) && n.isSwitch() && to.isSwitch() {
			b.sick = append(b.sick, fmt.Sprintf("cable from %s to %s", b.portName(n, p), b.portName(to, int(at.Num))))
			continue
		}
		if !n.isSwitch() && at.LID == 0 || !to.isSwitch() && peer.LID == 0 {
			continue // addEndPorts has noted it
		}
		link := at.Link
		if err := b.model.Connect(i, fabric.PortNum(p), j, fabric.PortNum(at.Num), link); err != nil {
			return err
		}
	}
	return nil
}

// portName names a port for messages: port 3(1/2/1) of 0x0002c90300001234 "leaf 1".
func (b *modelBuilder) portName(n *Node, p int) string {
	return fmt.Sprintf("port %s of %s %q", b.labels[n.GUID].Text(fabric.PortNum(p)), n.GUID, n.Description)
}

func (n *Node) isSwitch() bool { return n.Type == uint8(fabric.Switch) }

// portsOf lists the ports of node i from port 0 on.
func (s *Snapshot) portsOf(i int) []Port {
	n := &s.Nodes[i]
	return s.Ports[n.First:][:int(n.NumPorts)+1]
}

// peer returns the port at the other end of the cable of port p of node i, which
// has one. It is an error if that port does not exist or has no cable to this one.
func (s *Snapshot) peer(i, p int) (*Port, error) {
	n := &s.Nodes[i]
	at := &s.Ports[int(n.First)+p]
	j, q := int(at.Peer), at.Num
	if j >= len(s.Nodes) || q == 0 || q > s.Nodes[j].NumPorts {
		return nil, fmt.Errorf("port %d of %s %q has a cable to a port that is not there", p, n.GUID, n.Description)
	}
	peer := &s.Ports[int(s.Nodes[j].First)+int(q)]
	if int(peer.Peer) != i || int(peer.Num) != p {
		return nil, fmt.Errorf("port %d of %s %q has a cable to a port which has none to it", p, n.GUID, n.Description)
	}
	return peer, nil
}

// checkLanes returns an error if OpenSM or the ports cannot have the SL-to-VL tables
// that the routing needs.
func (t *Tables) checkLanes(s *Snapshot) error {
	sl2vl := t.Routing.SL2VL
	if sl2vl == nil && t.Routing.PathSLs == nil {
		return nil
	}
	if !s.QoS {
		return &Error{Code: NeedsOpenSM, Err: fmt.Errorf("it needs SL-to-VL tables, which OpenSM writes with qos TRUE (-Q) only")}
	}
	if sl2vl == nil {
		return nil
	}
	f := t.Fabric
	node := make(map[fabric.GUID]int, len(s.Nodes))
	for i := range s.Nodes {
		node[s.Nodes[i].GUID] = i
	}
	port := func(p fabric.PortID) *Port {
		return &s.portsOf(node[f.Node(f.Owner(p)).GUID])[f.Num(p)]
	}
	most := s.MaxDataVLs
	if most == 0 {
		most = lft.MaxDataVLs
	}
	err := sl2vl.CheckVLs(func(p fabric.PortID) int {
		vls := most
		for _, end := range [2]fabric.PortID{p, f.Peer(p)} {
			if v := int(port(end).VLs); v > 0 {
				vls = min(vls, v)
			}
		}
		return vls
	})
	if err != nil {
		return &Error{Code: CannotRoute, Err: err}
	}
	// OpenSM cuts VLs off at what a port has when it writes the tables
	// (sl2vl_update_table in osm_qos.c), and sets the port's VLs afterwards.
	for p := range fabric.PortID(f.NumPorts()) {
		if f.Peer(p) == fabric.NoPort {
			continue
		}
		if vls := int(port(p).OpVLs); vls > 0 && vls < sl2vl.VLs() {
			t.LatePorts++
		}
	}
	t.SweepAgain = t.LatePorts > 0
	return nil
}

// checkCapacity returns an error if some LID does not fit into a switch's table, or into
// OpenSM's tables.
func (t *Tables) checkCapacity(s *Snapshot) error {
	most := t.Fabric.MaxLID()
	if s.MaxLID < most {
		return &Error{Code: BadSubnet, Err: fmt.Errorf("ports have LIDs up to %d, OpenSM has tables up to %d", most, s.MaxLID)}
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.isSwitch() && n.LinearCap > 0 && int(n.LinearCap) <= int(most) {
			return &Error{Code: CannotRoute, Err: fmt.Errorf("switch %s %q has room for LIDs up to %d, ports have LIDs up to %d", n.GUID, n.Description, n.LinearCap-1, most)}
		}
	}
	return nil
}
