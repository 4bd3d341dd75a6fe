// Package fabric models an InfiniBand subnet: nodes, ports, cables and the
// identifiers they carry. Every other part of ibweave works on it. It is part of the
// supported Go API.
//
// A Fabric is immutable once built and safe for concurrent use. Everything is
// addressed by dense indices (NodeID, PortID), so that tables elsewhere are
// flat slices. Indices follow GUIDs, not the order of the input: two texts
// that describe the same subnet in different order give Fabrics that differ
// in Node.Order only.
package fabric

import (
	"fmt"
	"iter"
	"slices"
	"sort"
	"sync"

	"github.com/ibweave/ibweave/internal/text"
)

// Node is a switch, channel adapter or router.
type Node struct {
	GUID          GUID
	SystemGUID    GUID // system image GUID; 0 if the source lacks it
	Type          NodeType
	NumPorts      PortNum // external ports, 1 to 254
	EnhancedPort0 bool    // switch port 0 is enhanced (IBA 18.2.4.1)
	Order         int32   // position in the input, from 0
	VendorID      uint32  // 24 bits
	DeviceID      uint16
	Description   string
}

// Fabric is one subnet. The zero value is an empty one.
type Fabric struct {
	nodes    []Node
	switches int
	base     []PortID // by NodeID, one more at the end
	*ports
	*hosts
	*lids
	names *names
}

// ports is everything by PortID that does not depend on the LIDs.
type ports struct {
	owner []NodeID
	peer  []PortID // NoPort without a cable
	guid  []GUID   // of CA and router ports, and of switch port 0
	link  []Link
	// labels has, by port, the label printed on its cage, if it has one.
	labels map[PortID]string

	caPorts  []PortID // CA and router ports with a cable
	attached []NodeID // by index in caPorts: the switch at the other end, or NoNode

	firstEnd []int32  // by switch: where its part of ends begins
	ends     []PortID // CA and router ports with a cable to a switch, by switch and its port number

	first []int32  // by switch: where its part of chans and to begins
	chans []PortID // switch-to-switch channels, by switch and port number
	to    []NodeID // the switch a channel leads to
	links int      // cables

	once     sync.Once
	distance *HopMatrix
}

// hosts holds everything that depends on the kinds of nodes.
type hosts struct {
	kinds     []Kind   // by NodeID
	firstHost []int32  // by switch: where its part of hosts begins
	hosts     []PortID // the ends that count for load
}

// lids has the LIDs of a fabric; WithLIDs replaces it.
type lids struct {
	lid   []LID   // by PortID: base LID, 0 for none
	lmc   []uint8 // by PortID
	byLID []PortID
	// virtual has the number of LIDs that only a port's virtual ports have; nil for none.
	virtual map[PortID]int
}

// NumNodes counts nodes of all types.
func (f *Fabric) NumNodes() int { return len(f.nodes) }

// NumSwitches counts switches; they are the nodes [0, NumSwitches).
func (f *Fabric) NumSwitches() int { return f.switches }

// Switches lists all switches, in a new slice.
func (f *Fabric) Switches() []NodeID { return text.Numbers[NodeID](f.switches) }

// Nodes lists all nodes, in a new slice.
func (f *Fabric) Nodes() []NodeID { return text.Numbers[NodeID](len(f.nodes)) }

// NumPorts returns the number of port slots; PortIDs are below it.
func (f *Fabric) NumPorts() int { return len(f.owner) }

// NumLinks counts cables, host cables included.
func (f *Fabric) NumLinks() int { return f.links }

// Node gives a node; the caller must not change it.
func (f *Fabric) Node(n NodeID) *Node { return &f.nodes[n] }

// IsSwitch returns true if n is a switch.
func (f *Fabric) IsSwitch(n NodeID) bool { return int(n) < f.switches }

// PortBase is the PortID of slot 0 of node n.
func (f *Fabric) PortBase(n NodeID) PortID { return f.base[n] }

// Port is the PortID of port p of node n. p must not exceed NumPorts.
func (f *Fabric) Port(n NodeID, p PortNum) PortID { return f.base[n] + PortID(p) }

// Owner is the node that a port is on.
func (f *Fabric) Owner(p PortID) NodeID { return f.owner[p] }

// Num is a port's number on its node.
func (f *Fabric) Num(p PortID) PortNum { return PortNum(p - f.base[f.owner[p]]) }

// Nums lists the numbers of ports on their nodes; never nil.
func (f *Fabric) Nums(ports []PortID) []int {
	return text.Each(ports, func(p PortID) int { return int(f.Num(p)) })
}

// Peer is the port at the other end of p's cable, or NoPort.
func (f *Fabric) Peer(p PortID) PortID { return f.peer[p] }

// Link is the width and speed of p's cable.
func (f *Fabric) Link(p PortID) Link { return f.link[p] }

// PortGUID is the GUID of an end port; 0 for the external ports of a switch.
func (f *Fabric) PortGUID(p PortID) GUID { return f.guid[p] }

// LID is the base LID of an end port, 0 when it has none.
func (f *Fabric) LID(p PortID) LID { return f.lid[p] }

// LMC is the LID mask control of an end port: it answers to 1<<LMC LIDs from
// its base LID on.
func (f *Fabric) LMC(p PortID) uint8 { return f.lmc[p] }

// LIDs yields the LIDs of an end port, ascending; none when it has no base LID. AllLIDs adds
// those of virtual ports.
func (f *Fabric) LIDs(p PortID) iter.Seq[LID] {
	return func(yield func(LID) bool) {
		if f.lid[p] == 0 {
			return
		}
		for k := range LID(1) << f.lmc[p] {
			if !yield(f.lid[p] + k) {
				return
			}
		}
	}
}

// MaxLID is the highest LID of any port, with those of LMC and
// virtual ports, 0 if there is none.
func (f *Fabric) MaxLID() LID { return LID(max(0, len(f.byLID)-1)) }

// LIDPort is the end port that answers to a LID, also as a virtual port, or NoPort.
func (f *Fabric) LIDPort(l LID) PortID {
	if int(l) >= len(f.byLID) {
		return NoPort
	}
	return f.byLID[l]
}

// LIDPorts has LIDPort of each LID up to MaxLID; not to be changed.
func (f *Fabric) LIDPorts() []PortID { return f.byLID }

// CAPorts lists the CA and router ports with a cable, by NodeID and port
// number; the caller must not change the slice.
func (f *Fabric) CAPorts() []PortID { return f.caPorts }

// CASwitches lists, for each of CAPorts, the switch at the
// other end, NoNode if that is another CA; not to be changed.
func (f *Fabric) CASwitches() []NodeID { return f.attached }

// EndPortsOn lists the CA and router ports with a cable to switch s, by the switch's port
// numbers; not to be changed.
func (f *Fabric) EndPortsOn(s NodeID) []PortID { return f.ends[f.firstEnd[s]:f.firstEnd[s+1]] }

// HostsOn lists the EndPortsOn that count for load: all
// except aggregation nodes. Not to be changed.
func (f *Fabric) HostsOn(s NodeID) []PortID {
	return f.hosts.hosts[f.firstHost[s]:f.firstHost[s+1]]
}

// PeerSwitch is the switch that p's cable leads to; NoNode
// if it leads to a CA or router, or if there is no cable.
func (f *Fabric) PeerSwitch(p PortID) NodeID {
	if peer := f.peer[p]; peer != NoPort && f.IsSwitch(f.owner[peer]) {
		return f.owner[peer]
	}
	return NoNode
}

// Attachment is the switch port where packets of an end port enter and leave the
// switches: the peer of a CA or router port; for port 0 of a switch, the port
// itself. It is NoPort for NoPort, and for a port without a cable to a switch.
func (f *Fabric) Attachment(end PortID) PortID {
	switch {
	case end == NoPort:
		return NoPort
	case f.IsSwitch(f.owner[end]):
		return end
	case f.PeerSwitch(end) == NoNode:
		return NoPort
	}
	return f.peer[end]
}

// SwitchLinks returns the directed channels from switch s to other
// switches, by port number, and the switch that each leads to. A
// cable from a switch to itself is not among them. Not to be changed.
func (f *Fabric) SwitchLinks(s NodeID) (ports []PortID, to []NodeID) {
	a, b := f.first[s], f.first[s+1]
	return f.chans[a:b], f.to[a:b]
}

// LinksBetween lists the SwitchLinks from switch s to switch t.
func (f *Fabric) LinksBetween(s, t NodeID) []PortID {
	ports, _ := f.SwitchLinks(s)
	return text.Where(ports, func(p PortID) bool { return f.PeerSwitch(p) == t })
}

// Neighbors lists the switches that SwitchLinks lead to.
func (f *Fabric) Neighbors(s NodeID) []NodeID { return f.to[f.first[s]:f.first[s+1]] }

// Channels lists the directed channels between switches, by switch and port number. Not to be
// changed.
func (f *Fabric) Channels() []PortID { return f.chans }

// Cabled yields the ports of a node that have a cable, by number.
func (f *Fabric) Cabled(n NodeID) iter.Seq[PortID] {
	return func(yield func(PortID) bool) {
		for p := f.base[n]; p < f.base[n+1]; p++ {
			if f.peer[p] != NoPort && !yield(p) {
				return
			}
		}
	}
}

// EndPorts visits the ports that have LIDs: port 0 of each switch, then the
// ports of CAs and routers that have a cable.
func (f *Fabric) EndPorts(visit func(PortID)) {
	for s := range f.switches {
		visit(f.base[s])
	}
	for _, p := range f.caPorts {
		visit(p)
	}
}

// NodeByGUID finds a node of any type.
func (f *Fabric) NodeByGUID(g GUID) (NodeID, bool) {
	if n, ok := f.SwitchByGUID(g); ok {
		return n, true
	}
	return f.findGUID(f.switches, len(f.nodes), g)
}

// SwitchByGUID finds a switch.
func (f *Fabric) SwitchByGUID(g GUID) (NodeID, bool) {
	return f.findGUID(0, f.switches, g)
}

// findGUID finds a node in [from, to), where nodes are sorted by GUID.
func (f *Fabric) findGUID(from, to int, g GUID) (NodeID, bool) {
	n := from + sort.Search(to-from, func(i int) bool { return f.nodes[from+i].GUID >= g })
	if n == to || f.nodes[n].GUID != g {
		return NoNode, false
	}
	return NodeID(n), true
}

// LIDOverlapError means that two ports claim one LID.
type LIDOverlapError struct {
	LID  LID
	A, B PortID
	fab  *Fabric
}

func (e *LIDOverlapError) Error() string {
	return fmt.Sprintf("LID %d is claimed by %s and by %s", e.LID, e.fab.PortName(e.A), e.fab.PortName(e.B))
}

// WithLIDs returns the same subnet with other LIDs: base and lmc
// are by PortID, 0 for no LID, and belong to the Fabric from now
// on. Errors: a LID beyond MaxUnicastLID, a base LID that is not
// a multiple of 1<<LMC (IBA 3.5.10), and a *LIDOverlapError.
func (f *Fabric) WithLIDs(base []LID, lmc []uint8) (*Fabric, error) {
	if len(base) != f.NumPorts() || len(lmc) != f.NumPorts() {
		return nil, fmt.Errorf("LIDs for %d ports, the fabric has %d", len(base), f.NumPorts())
	}
	highest := 0
	for p, l := range base {
		if l == 0 {
			continue
		}
		if lmc[p] > MaxLMC {
			return nil, fmt.Errorf("%s: LMC %d, want 0 to %d", f.PortName(PortID(p)), lmc[p], MaxLMC)
		}
		n := 1 << lmc[p]
		if int(l)%n != 0 {
			return nil, fmt.Errorf("%s: LID %d is not a multiple of %d, as LMC %d wants", f.PortName(PortID(p)), l, n, lmc[p])
		}
		if int(l)+n-1 > int(MaxUnicastLID) {
			return nil, fmt.Errorf("%s: LID %d, want 1 to %d", f.PortName(PortID(p)), int(l)+n-1, MaxUnicastLID)
		}
		highest = max(highest, int(l)+n-1)
	}
	byLID := slices.Repeat([]PortID{NoPort}, highest+1)
	for p, l := range base {
		if l == 0 {
			continue
		}
		for k := range 1 << lmc[p] {
			at := &byLID[int(l)+k]
			if *at != NoPort {
				return nil, &LIDOverlapError{LID: l + LID(k), A: *at, B: PortID(p), fab: f}
			}
			*at = PortID(p)
		}
	}
	g := *f
	g.lids = &lids{lid: base, lmc: lmc, byLID: byLID}
	return &g, nil
}
