package fabric

import "slices"

// StableIndex numbers switches and their ports so that the numbers stay
// while a fabric changes: a Fabric numbers its nodes again when one is
// gone. A switch's GUID has a slot, even while the switch is absent.
// Port p of slot s has the number Base[s]+p, port 0 included. Immutable.
type StableIndex struct {
	// Base has, by slot, the number of its port 0; one more at the end.
	Base []int32
	// Owner has, by port number, the slot of the port.
	Owner []int32
	// MaxLID is the highest LID of the fabrics.
	MaxLID LID
	slot   map[GUID]int32
}

// NewStableIndex makes a slot for every switch of the
// fabrics, those of the first in the order of their NodeID.
func NewStableIndex(fabrics ...*Fabric) *StableIndex {
	x := &StableIndex{Base: []int32{0}, slot: make(map[GUID]int32)}
	for _, f := range fabrics {
		x.MaxLID = max(x.MaxLID, f.MaxLID())
		for s := range NodeID(f.NumSwitches()) {
			n := f.Node(s)
			if _, ok := x.slot[n.GUID]; ok {
				continue
			}
			slot := int32(x.Slots())
			x.slot[n.GUID] = slot
			x.Owner = append(x.Owner, slices.Repeat([]int32{slot}, int(n.NumPorts)+1)...)
			x.Base = append(x.Base, int32(len(x.Owner)))
		}
	}
	return x
}

// Slots returns the number of slots.
func (x *StableIndex) Slots() int { return len(x.Base) - 1 }

// NumPorts returns the number of ports with numbers.
func (x *StableIndex) NumPorts() int { return len(x.Owner) }

// What is at the other end of a port's cable, if not a switch.
const (
	NoCable int32 = -1 // no cable, or port 0
	EndPort int32 = -2 // a CA or a router that counts for load
	NoLoad  int32 = -3 // a CA that does not count: an aggregation node
)

// NoDestination is the destination of a LID that no port has.
const NoDestination int32 = -1

// Snapshot is a fabric at one moment, by the numbers of a StableIndex. Immutable.
type Snapshot struct {
	Index  *StableIndex
	Fabric *Fabric
	// Node has, by slot, its switch, or NoNode if the switch is
	// absent. A switch with neither a cable nor a LID is absent.
	Node []NodeID
	// Present is the number of switches that are present.
	Present int
	// Slot has the slot of each switch, by NodeID.
	Slot []int32
	// Peer has, by port number, the number of the switch port at
	// the other end of the cable, or NoCable, EndPort or NoLoad.
	Peer []int32
	// Dest has, by LID, the number of the switch port where packets to it leave the
	// switches: port 0 for the LID of a switch; NoDestination if no port has the LID.
	Dest []int32
	// Sources has, by slot, the number of CA and router ports cabled to
	// it that count for load, Others the number of those that do not.
	Sources, Others []int32
	// Whole is true if all present switches and all CA and router ports
	// with a cable have LIDs, and the latter are cabled to switches.
	Whole bool

	first   []int32 // by slot: where its part of out and to begins; one more at the end
	out, to []int32
}

// Snapshot returns f by the numbers of x; false if f has a switch without
// a slot, or with another number of ports. It takes O(ports + LIDs).
func (x *StableIndex) Snapshot(f *Fabric) (*Snapshot, bool) {
	n := x.Slots()
	v := &Snapshot{
		Index: x, Fabric: f, Node: slices.Repeat([]NodeID{NoNode}, n), Slot: make([]int32, f.NumSwitches()),
		Peer: slices.Repeat([]int32{NoCable}, x.NumPorts()), Dest: make([]int32, int(f.MaxLID())+1), Sources: make([]int32, n), Others: make([]int32, n),
		Whole: true,
	}
	for s := range NodeID(f.NumSwitches()) {
		node := f.Node(s)
		slot, ok := x.slot[node.GUID]
		if !ok || x.Base[slot+1]-x.Base[slot] != int32(node.NumPorts)+1 {
			return nil, false
		}
		v.Slot[s] = slot
	}
	for s := range NodeID(f.NumSwitches()) {
		v.addSwitch(s)
	}
	v.addEndPorts()
	v.listLinks()
	return v, true
}

// Cabled returns v without switches that have a LID and no cable; v itself if there are none.
func (v *Snapshot) Cabled() *Snapshot {
	c := *v
	c.Node, c.Dest = slices.Clone(v.Node), slices.Clone(v.Dest)
	for slot, s := range v.Node {
		if s != NoNode && !v.Fabric.HasCable(s) {
			c.Node[slot], c.Dest[v.Fabric.LID(v.Fabric.PortBase(s))] = NoNode, NoDestination
			c.Present--
		}
	}
	if c.Present == v.Present {
		return v
	}
	return &c
}

// addSwitch fills in a switch and its cables.
func (v *Snapshot) addSwitch(s NodeID) {
	f, x := v.Fabric, v.Index
	slot, base := v.Slot[s], f.PortBase(s)
	for p := range f.Cabled(s) {
		peer, at := f.Peer(p), &v.Peer[x.Base[slot]+int32(p-base)]
		switch {
		case f.IsSwitch(f.Owner(peer)):
			*at = v.number(peer)
		case f.PortCounts(peer, ForLoad):
			*at = EndPort
		default:
			*at = NoLoad
		}
	}
	v.Sources[slot] = int32(len(f.HostsOn(s)))
	v.Others[slot] = int32(len(f.EndPortsOn(s))) - v.Sources[slot]
	hasLID := f.LID(base) != 0
	if f.HasCable(s) || hasLID {
		v.Node[slot] = s
		v.Present++
		v.Whole = v.Whole && hasLID
	}
}

// addEndPorts fills in Dest.
func (v *Snapshot) addEndPorts() {
	f := v.Fabric
	for _, p := range f.CAPorts() {
		v.Whole = v.Whole && f.LID(p) != 0 && f.Attachment(p) != NoPort
	}
	for lid := range v.Dest {
		v.Dest[lid] = NoDestination
		if p := f.Attachment(f.LIDPort(LID(lid))); p != NoPort {
			v.Dest[lid] = v.number(p)
		}
	}
}

func (v *Snapshot) number(p PortID) int32 {
	return v.Index.Base[v.Slot[v.Fabric.Owner(p)]] + int32(v.Fabric.Num(p))
}

// listLinks lists the channels between switches, by Peer.
func (v *Snapshot) listLinks() {
	x := v.Index
	v.first = make([]int32, 1, len(x.Base))
	v.out, v.to = make([]int32, 0, len(v.Fabric.to)), make([]int32, 0, len(v.Fabric.to))
	for s := range int32(x.Slots()) {
		for p := x.Base[s]; p < x.Base[s+1]; p++ {
			if peer := v.Peer[p]; peer >= 0 && x.Owner[peer] != s {
				v.out = append(v.out, p)
				v.to = append(v.to, x.Owner[peer])
			}
		}
		v.first = append(v.first, int32(len(v.out)))
	}
}

// SwitchLinks lists the ports of a slot with cables to other switches, and the slots
// that they lead to, as Fabric.SwitchLinks does.
func (v *Snapshot) SwitchLinks(slot int32) (ports, to []int32) {
	a, b := v.first[slot], v.first[slot+1]
	return v.out[a:b], v.to[a:b]
}

// Destination returns Dest of any LID, NoDestination above the highest one.
func (v *Snapshot) Destination(lid int) int32 {
	if lid >= len(v.Dest) {
		return NoDestination
	}
	return v.Dest[lid]
}

// CarriesLoad returns true if packets to dest count as load: it is neither a switch
// nor an aggregation node.
func (v *Snapshot) CarriesLoad(dest int32) bool { return v.Peer[dest] == EndPort }

// SameDestination returns true if a LID has the same destination in two snapshots of one
// StableIndex, and carries load in both or in neither.
func (v *Snapshot) SameDestination(old *Snapshot, lid int) bool {
	dest := v.Destination(lid)
	return dest == old.Destination(lid) && (dest == NoDestination || v.CarriesLoad(dest) == old.CarriesLoad(dest))
}

// WithoutMoved returns v without the cables at ports that
// have another cable in old; v itself if there are none.
func (v *Snapshot) WithoutMoved(old *Snapshot) *Snapshot {
	w := v
	for p, peer := range v.Peer {
		if was := old.Peer[p]; peer < 0 || was < 0 || was == peer {
			continue
		}
		if w == v {
			c := *v
			c.Peer = slices.Clone(v.Peer)
			w = &c
		}
		w.Peer[p], w.Peer[peer] = NoCable, NoCable
	}
	if w != v {
		w.listLinks()
	}
	return w
}
