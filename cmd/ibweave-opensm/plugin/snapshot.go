package plugin

import (
	"fmt"
	"time"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// Snapshot is OpenSM's subnet at one moment, in any order.
type Snapshot struct {
	Settings
	Nodes []Node
	// Ports are those of all nodes: node i has Ports[Nodes[i].First] and the
	// NumPorts that follow, slot 0 being port 0.
	Ports []Port
	// MaxLID is the highest LID that OpenSM has made room for in tables.
	MaxLID fabric.LID
	// Reroute says that OpenSM routes without a sweep, as its console can have it,
	// and so will not ask for masks.
	Reroute bool
	// Took is how long it took to take the snapshot.
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
	MulticastCap     uint16 // of switches: entries of the MFT
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
	Width uint8 // lanes, 0 unknown
	Speed fabric.Speed
	Sick  bool // OpenSM takes the port for unhealthy, or throttled where that counts
}

// maxNotes bounds how many ports a kind of note names.
const maxNotes = 5

// fabric makes the model of the subnet; nodes lists the GUID of each switch by
// NodeID. Cables between switches of which a port is sick are left out, as
// OpenSM's own engines do, and so are ports of CAs without LIDs, for which
// there is nothing to write. Errors: a switch without a LID, and whatever else
// OpenSM cannot have.
func (s *Snapshot) fabric() (f *fabric.Fabric, switches []fabric.GUID, notes []string, err error) {
	var b fabric.Builder
	sick, without := 0, 0
	ups, downs := 0, 0 // ports with cables to later and to earlier nodes
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.First < 0 || int(n.First)+int(n.NumPorts) >= len(s.Ports) {
			return nil, nil, nil, fmt.Errorf("node %s has ports that are not there", n.GUID)
		}
		_, err := b.AddNode(fabric.Node{
			GUID: n.GUID, SystemGUID: n.SystemGUID, Type: fabric.NodeType(n.Type), NumPorts: fabric.PortNum(n.NumPorts),
			EnhancedPort0: n.EnhancedPort0, VendorID: n.VendorID, DeviceID: n.DeviceID, Description: n.Description,
		})
		if err != nil {
			return nil, nil, nil, fmt.Errorf("node %s %q: %w", n.GUID, n.Description, err)
		}
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		ports := s.Ports[n.First : int(n.First)+int(n.NumPorts)+1]
		if n.Type == uint8(fabric.Switch) {
			if ports[0].LID == 0 {
				return nil, nil, nil, fmt.Errorf("switch %s %q has no LID", n.GUID, n.Description)
			}
			if err := b.SetPort(i, 0, ports[0].GUID, ports[0].LID, ports[0].LMC); err != nil {
				return nil, nil, nil, err
			}
		} else {
			for p := 1; p < len(ports); p++ {
				if ports[p].LID == 0 {
					if ports[p].Peer >= 0 {
						if without++; without <= maxNotes {
							notes = append(notes, fmt.Sprintf("port %d of %s %q has no LID: left out", p, n.GUID, n.Description))
						}
					}
					continue
				}
				if err := b.SetPort(i, fabric.PortNum(p), ports[p].GUID, ports[p].LID, ports[p].LMC); err != nil {
					return nil, nil, nil, err
				}
			}
		}
		for p := 1; p < len(ports); p++ {
			at := &ports[p]
			j := int(at.Peer)
			if j < 0 {
				continue
			}
			if j < i { // the other end has had it
				downs++
				continue
			}
			q := at.Num
			peer, err := s.peer(i, p)
			if err != nil {
				return nil, nil, nil, err
			}
			if j > i {
				ups++
			} else if int(q) <= p {
				continue // the other end has it, or it is a cable from a port to itself
			}
			if (at.Sick || peer.Sick) && n.Type == uint8(fabric.Switch) && s.Nodes[j].Type == uint8(fabric.Switch) {
				if sick++; sick <= maxNotes {
					notes = append(notes, fmt.Sprintf("cable from port %d of %s %q to port %d of %s %q is unhealthy: not used",
						p, n.GUID, n.Description, q, s.Nodes[j].GUID, s.Nodes[j].Description))
				}
				continue
			}
			if s.isMute(i, at) || s.isMute(j, peer) {
				continue
			}
			if err := b.Connect(i, fabric.PortNum(p), j, fabric.PortNum(q), fabric.Link{Width: at.Width, Speed: at.Speed}); err != nil {
				return nil, nil, nil, err
			}
		}
	}
	if ups != downs { // a cable to an earlier node, from which none leads back
		for i := range s.Nodes {
			for p := 1; p <= int(s.Nodes[i].NumPorts); p++ {
				if s.Ports[int(s.Nodes[i].First)+p].Peer < 0 {
					continue
				}
				if _, err := s.peer(i, p); err != nil {
					return nil, nil, nil, err
				}
			}
		}
	}
	if sick > maxNotes {
		notes = append(notes, fmt.Sprintf("and %d more unhealthy cables", sick-maxNotes))
	}
	if without > maxNotes {
		notes = append(notes, fmt.Sprintf("and %d more ports without LIDs", without-maxNotes))
	}
	if f, err = b.Build(); err != nil {
		return nil, nil, nil, err
	}
	if f.NumSwitches() == 0 {
		return nil, nil, nil, fmt.Errorf("no switch")
	}
	switches = make([]fabric.GUID, f.NumSwitches())
	for n := range switches {
		switches[n] = f.Node(fabric.NodeID(n)).GUID
	}
	return f, switches, notes, nil
}

// peer is the port at the other end of the cable of port p of node i, which has one.
// Errors: there is no such port, or it has no cable to this one.
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

// isMute says whether a port of node i is an end port without a LID.
func (s *Snapshot) isMute(i int, p *Port) bool {
	return s.Nodes[i].Type != uint8(fabric.Switch) && p.LID == 0
}

// checkLanes says whether OpenSM and the ports can have the SL-to-VL tables
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
	node := s.byGUID()
	vlsOf := func(p fabric.PortID) int {
		n := &s.Nodes[node[f.Node(f.Owner(p)).GUID]]
		return int(s.Ports[int(n.First)+int(f.Num(p))].VLs)
	}
	most := s.MaxDataVLs
	if most == 0 {
		most = lft.MaxDataVLs
	}
	err := sl2vl.CheckVLs(func(p fabric.PortID) int {
		vls := most
		for _, v := range [2]int{vlsOf(p), vlsOf(f.Peer(p))} {
			if v > 0 {
				vls = min(vls, v)
			}
		}
		return vls
	})
	if err != nil {
		return &Error{Code: CannotRoute, Err: err}
	}
	// OpenSM cuts VLs off at what a port has in the moment that it writes the
	// tables (sl2vl_update_table in osm_qos.c), and sets that afterwards.
	late := 0
	for p := range fabric.PortID(f.NumPorts()) {
		if f.Peer(p) == fabric.NoPort {
			continue
		}
		n := &s.Nodes[node[f.Node(f.Owner(p)).GUID]]
		if at := &s.Ports[int(n.First)+int(f.Num(p))]; at.OpVLs > 0 && int(at.OpVLs) < sl2vl.VLs() {
			late++
		}
	}
	t.LatePorts, t.SweepAgain = late, late > 0
	return nil
}

// byGUID finds nodes.
func (s *Snapshot) byGUID() map[fabric.GUID]int32 {
	m := make(map[fabric.GUID]int32, len(s.Nodes))
	for i := range s.Nodes {
		m[s.Nodes[i].GUID] = int32(i)
	}
	return m
}

// checkCapacity says whether all LIDs fit into all switches, and into the
// tables that OpenSM has made room for.
func (t *Tables) checkCapacity(s *Snapshot) error {
	most := t.Fabric.MaxLID()
	if s.MaxLID < most {
		return &Error{Code: BadSubnet, Err: fmt.Errorf("ports have LIDs up to %d, OpenSM has tables up to %d", most, s.MaxLID)}
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Type == uint8(fabric.Switch) && n.LinearCap > 0 && int(n.LinearCap) <= int(most) {
			return &Error{Code: CannotRoute, Err: fmt.Errorf("switch %s %q has room for LIDs up to %d, ports have LIDs up to %d", n.GUID, n.Description, n.LinearCap-1, most)}
		}
	}
	return nil
}
