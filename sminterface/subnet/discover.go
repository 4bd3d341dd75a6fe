package subnet

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/sminterface/mad"
)

// Discovery is the result of a sweep.
type Discovery struct {
	Fabric *fabric.Fabric
	// Local is the port that the sweep started from: port 0 of
	// a switch, or a port of a CA or router. It is NoPort if
	// that is a CA or router without a cable.
	Local fabric.PortID
	// Routes has, by NodeID, a shortest directed route from the local node to each node.
	Routes [][]fabric.PortNum
	// Switches has the SwitchInfo of each switch, by NodeID.
	Switches []mad.SwitchInfo
	// Problems has the faults that the sweep met, sorted. File
	// is the node or the port: "S-0002c90000000001"[3].
	Problems []fabric.Problem
	Requests int // SMPs
}

// sweep is a discovery under way.
type sweep struct {
	*batch
	nodes  []found
	byGUID map[fabric.GUID]int32
}

// found is a node.
type found struct {
	info     mad.NodeInfo
	desc     mad.NodeDescription
	route    []fabric.PortNum
	sw       mad.SwitchInfo
	extended bool        // switch: port 0 has extended speeds
	ports    []foundPort // by number
}

// foundPort is a port.
type foundPort struct {
	info   mad.PortInfo
	asked  bool        // PortInfo was asked for
	known  bool        // PortInfo has arrived
	guid   fabric.GUID // of a CA or router port
	fdr10  bool
	looked bool  // NodeInfo at the other end was asked for
	peer   int32 // node at the other end, if wired
	num    fabric.PortNum
	wired  bool
}

// Discover finds all nodes and cables that directed routes from the local node reach, breadth
// first, with as many requests in flight as the window allows. It asks for NodeInfo through every
// port with a link, for NodeDescription, for SwitchInfo and the PortInfo of all ports of a switch,
// and for the PortInfo of ports with a cable of CAs and routers (libibnetdisc's ibnetdisc.c asks
// for the same).
//
// The result does not depend on the order of answers, except for the choice among shortest routes.
// Node.Order is by kind and GUID, as in the text that package topology writes. LIDs that are used
// twice, or that no port can have, are left out.
//
// A node that does not answer, a route too long for a SMP, and contradictions are Problems. Errors:
// the local node does not answer, ErrClosed, and ctx's.
func (c *Client) Discover(ctx context.Context) (*Discovery, error) {
	s := &sweep{byGUID: make(map[fabric.GUID]int32)}
	requests, err := c.run(ctx, func(b *batch) {
		s.batch = b
		b.get(Target{}, mad.AttrNodeInfo, 0, s.local)
	})
	if err != nil {
		return nil, err
	}
	d, err := s.build()
	if err != nil {
		return nil, err
	}
	d.Requests = requests
	return d, nil
}

// portName returns the name of a port in problems.
func (s *sweep) portName(n int32, p fabric.PortNum) string {
	node := &s.nodes[n].info
	return fmt.Sprintf("%s %s port %d", node.Type, node.GUID, p)
}

// local handles the NodeInfo of the node that the sweep starts from.
func (s *sweep) local(data *mad.Data, err error) error {
	if err != nil {
		return fmt.Errorf("the local port: %w", err)
	}
	info := mad.Of[mad.NodeInfo](data)
	n, err := s.add(&info, nil)
	if err != nil {
		return fmt.Errorf("the local port: %w", err)
	}
	if info.Type != fabric.Switch {
		s.askPort(n, info.LocalPort, Target{})
	}
	return nil
}

// add adds a new node, and asks for its attributes.
func (s *sweep) add(info *mad.NodeInfo, route []fabric.PortNum) (int32, error) {
	switch info.Type {
	case fabric.CA, fabric.Switch, fabric.Router:
	default:
		return 0, fmt.Errorf("%s, want a CA, switch or router", info.Type)
	}
	if info.NumPorts > uint8(fabric.MaxPortNum) || info.GUID == 0 {
		return 0, fmt.Errorf("a node with GUID %s and %d ports", info.GUID, info.NumPorts)
	}
	if info.Type != fabric.Switch && (info.LocalPort == 0 || uint8(info.LocalPort) > info.NumPorts) {
		return 0, fmt.Errorf("%s %s says that it was reached by port %d, and it has %d", info.Type, info.GUID, info.LocalPort, info.NumPorts)
	}
	n := int32(len(s.nodes))
	s.byGUID[info.GUID] = n
	s.nodes = append(s.nodes, found{info: *info, route: route, ports: make([]foundPort, int(info.NumPorts)+1)})
	to := Target{Route: route}
	if info.Type == fabric.Switch {
		// The ports first: they lead to other nodes.
		for p := range info.NumPorts {
			s.askPort(n, fabric.PortNum(p+1), to)
		}
		s.askPort(n, fabric.ManagementPort, to)
		s.askNode(n, to, mad.AttrSwitchInfo, 0, func(data *mad.Data) { s.nodes[n].sw.Unmarshal(data) })
	}
	s.askNode(n, to, mad.AttrNodeDescription, 0, func(data *mad.Data) { s.nodes[n].desc.Unmarshal(data) })
	return n, nil
}

// askNode reads an attribute of a node, and notes if no answer comes.
func (s *sweep) askNode(n int32, to Target, attr mad.Attribute, modifier uint32, answer func(*mad.Data)) {
	s.ask(to, attr, modifier, answer, func(err error) {
		info := &s.nodes[n].info
		s.note(fmt.Sprintf("%s %s", info.Type, info.GUID), "%v", err)
	})
}

// askPort asks for the PortInfo of a port, once.
func (s *sweep) askPort(n int32, p fabric.PortNum, to Target) {
	port := &s.nodes[n].ports[p]
	if port.asked {
		return
	}
	port.asked = true
	s.askNode(n, to, mad.AttrPortInfo, uint32(p), func(data *mad.Data) {
		node := &s.nodes[n]
		port := &node.ports[p]
		port.info.Unmarshal(data)
		port.known = true
		if p == fabric.ManagementPort {
			node.extended = port.info.CapabilityMask&mad.IsExtendedSpeeds != 0
			return
		}
		if port.info.PhysicalState != mad.PhysicalLinkUp {
			return
		}
		if port.info.LinkSpeedActive == 4 && port.info.LinkSpeedExtActive == 0 && knowsFDR10(&node.info) {
			s.ask(to, mad.AttrMellanoxExtendedPortInfo, uint32(p), func(data *mad.Data) {
				s.nodes[n].ports[p].fdr10 = mad.HasFDR10(data)
			}, func(error) {}) // no answer: it is QDR
		}
		// Directed routes continue only through switches, and through the node
		// where they start.
		if node.info.Type == fabric.Switch || len(to.Route) == 0 && p == node.info.LocalPort {
			s.look(n, p)
		}
	})
}

// knowsFDR10 returns true if a device has Mellanox's extended PortInfo: the
// devices that libibnetdisc asks (is_mlnx_ext_port_info_supported), except
// those that Bull sells under its own numbers.
func knowsFDR10(n *mad.NodeInfo) bool {
	d := n.DeviceID
	switch {
	case d >= 0xc738 && d <= 0xc73b, d >= 0x1003 && d <= 0x101b:
		return true
	case d == 0xc839, d == 0xcb20, d == 0xcf08, d == 0xcf09, d == 0xd2f0, d == 0xa2d2:
		return true
	}
	return false
}

// look asks for the node at the other end of a cable, unless that is known.
func (s *sweep) look(n int32, p fabric.PortNum) {
	node := &s.nodes[n]
	port := &node.ports[p]
	if port.wired || port.looked {
		return
	}
	port.looked = true
	route := append(slices.Clip(slices.Clone(node.route)), p)
	to := Target{Route: route}
	s.ask(to, mad.AttrNodeInfo, 0, func(data *mad.Data) {
		info := mad.Of[mad.NodeInfo](data)
		peer, known := s.byGUID[info.GUID]
		if !known {
			var err error
			if peer, err = s.add(&info, route); err != nil {
				s.note(s.portName(n, p), "at its other end: %v", err)
				return
			}
		}
		s.connect(n, p, peer, &info)
		if t := &s.nodes[peer]; t.info.Type != fabric.Switch && int(info.LocalPort) < len(t.ports) {
			t.ports[info.LocalPort].guid = info.PortGUID
			s.askPort(peer, info.LocalPort, to)
		}
	}, func(err error) {
		s.note(s.portName(n, p), "has a link, but what is at its other end does not answer: %v", err)
	})
}

// connect connects a port to the port of peer that a NodeInfo came from.
func (s *sweep) connect(n int32, p fabric.PortNum, peer int32, info *mad.NodeInfo) {
	q := info.LocalPort
	if q == 0 || int(q) >= len(s.nodes[peer].ports) {
		s.note(s.portName(n, p), "leads to port %d of %s, which has ports 1 to %d", q, info.GUID, len(s.nodes[peer].ports)-1)
		return
	}
	a, z := &s.nodes[n].ports[p], &s.nodes[peer].ports[q]
	switch {
	case a == z:
		s.note(s.portName(n, p), "leads to itself")
		return
	case a.wired && a.peer == peer && a.num == q && z.wired && z.peer == n && z.num == p:
		return // already seen from the other end
	case a.wired:
		s.note(s.portName(n, p), "leads to %s and to %s", s.portName(a.peer, a.num), s.portName(peer, q))
		return
	case z.wired:
		s.note(s.portName(peer, q), "leads to %s and to %s", s.portName(z.peer, z.num), s.portName(n, p))
		return
	}
	a.peer, a.num, a.wired = peer, q, true
	z.peer, z.num, z.wired = n, p, true
}

// build makes the fabric, with the routes and SwitchInfos of its nodes.
func (s *sweep) build() (*Discovery, error) {
	var b fabric.Builder
	order := s.order()
	at, err := s.addNodes(&b, order)
	if err == nil {
		err = s.addCables(&b, order, at)
	}
	if err != nil {
		return nil, err
	}
	f, err := b.Build()
	if err != nil {
		return nil, err
	}
	d := &Discovery{Fabric: f, Local: fabric.NoPort, Routes: make([][]fabric.PortNum, f.NumNodes()), Switches: make([]mad.SwitchInfo, f.NumSwitches())}
	for i := range s.nodes {
		n := &s.nodes[i]
		id, ok := f.NodeByGUID(n.info.GUID)
		if !ok {
			return nil, fmt.Errorf("no node %s", n.info.GUID) // cannot happen
		}
		d.Routes[id] = n.route
		if n.info.Type == fabric.Switch {
			d.Switches[id] = n.sw
		}
		if i == 0 {
			d.Local = localPort(f, id, n)
		}
	}
	d.Problems = s.problems()
	return d, nil
}

// order returns the nodes sorted by kind and GUID.
func (s *sweep) order() []int32 {
	order := text.Numbers[int32](len(s.nodes))
	kinds := []fabric.NodeType{fabric.Switch, fabric.CA, fabric.Router}
	slices.SortFunc(order, func(i, j int32) int {
		a, b := &s.nodes[i].info, &s.nodes[j].info
		return cmp.Or(cmp.Compare(slices.Index(kinds, a.Type), slices.Index(kinds, b.Type)), a.GUID.Compare(b.GUID))
	})
	return order
}

// addNodes adds the nodes and their end ports, and returns their indices in the builder.
func (s *sweep) addNodes(b *fabric.Builder, order []int32) (at []int, err error) {
	at = make([]int, len(s.nodes))
	used := make([]bool, int(fabric.MaxUnicastLID)+1)
	for _, i := range order {
		n := &s.nodes[i]
		at[i], err = b.AddNode(fabric.Node{
			GUID: n.info.GUID, SystemGUID: n.info.SystemGUID, Type: n.info.Type,
			NumPorts: fabric.PortNum(n.info.NumPorts), EnhancedPort0: n.sw.EnhancedPort0,
			VendorID: n.info.VendorID, DeviceID: n.info.DeviceID, Description: string(n.desc),
		})
		if err != nil {
			return nil, err
		}
		for p := range n.ports {
			num := fabric.PortNum(p)
			if (p == 0) != (n.info.Type == fabric.Switch) || p > 0 && !n.ports[p].wired {
				continue
			}
			guid := n.ports[p].guid
			if n.info.Type == fabric.Switch || guid == 0 && num == n.info.LocalPort {
				guid = n.info.PortGUID
			}
			lid, lmc := s.lid(i, num, used)
			if err := b.SetPort(at[i], num, guid, lid, lmc); err != nil {
				return nil, err
			}
		}
	}
	return at, nil
}

// addCables adds each cable once, at the end whose node comes first in the builder.
func (s *sweep) addCables(b *fabric.Builder, order []int32, at []int) error {
	for _, i := range order {
		for p := range s.nodes[i].ports {
			port := &s.nodes[i].ports[p]
			if !port.wired || at[port.peer] < at[i] || port.peer == i && int(port.num) < p {
				continue
			}
			if err := b.Connect(at[i], fabric.PortNum(p), at[port.peer], port.num, s.link(i, fabric.PortNum(p))); err != nil {
				return err
			}
		}
	}
	return nil
}

// localPort returns the port of the local node that the
// sweep started from, NoPort if that has no cable.
func localPort(f *fabric.Fabric, id fabric.NodeID, n *found) fabric.PortID {
	if n.info.Type == fabric.Switch {
		return f.PortBase(id)
	}
	if p := f.Port(id, n.info.LocalPort); f.Peer(p) != fabric.NoPort {
		return p
	}
	return fabric.NoPort
}

// lid returns the LID and LMC of an end port; LID 0 if that is invalid or in use.
func (s *sweep) lid(n int32, p fabric.PortNum, used []bool) (fabric.LID, uint8) {
	info := &s.nodes[n].ports[p].info
	lid, lmc := int(info.LID), info.LMC
	if lid == 0 {
		return 0, lmc
	}
	count := 1 << lmc
	if lid%count != 0 || lid+count-1 > int(fabric.MaxUnicastLID) {
		s.note(s.portName(n, p), "LID %d with LMC %d, want a multiple of %d up to %d: left out", lid, lmc, count, fabric.MaxUnicastLID)
		return 0, lmc
	}
	for l := lid; l < lid+count; l++ {
		if used[l] {
			s.note(s.portName(n, p), "LID %d is another port's too: left out", l)
			return 0, lmc
		}
	}
	for l := lid; l < lid+count; l++ {
		used[l] = true
	}
	return info.LID, lmc
}

// link returns the width and speed of a cable, the slower of those of its ends.
func (s *sweep) link(n int32, p fabric.PortNum) fabric.Link {
	end := func(n int32, p fabric.PortNum) fabric.Link {
		node := &s.nodes[n]
		port := &node.ports[p]
		if !port.known {
			return fabric.Link{}
		}
		extended := node.extended
		if node.info.Type != fabric.Switch {
			extended = port.info.CapabilityMask&mad.IsExtendedSpeeds != 0
		}
		l := port.info.Link(extended)
		if port.fdr10 && l.Speed == fabric.QDR {
			l.Speed = fabric.FDR10
		}
		return l
	}
	port := &s.nodes[n].ports[p]
	a, z := end(n, p), end(port.peer, port.num)
	return a.Or(z).Slower(z.Or(a))
}
