package fabric

// Frame gives switches indices that stay while a fabric changes, so that what is
// known of each can be kept: a Fabric numbers its nodes anew when one is gone. An
// index is a slot; a switch has it by its GUID, whether it is there at the moment or
// not. Ports have indices too: port p of slot s is Base[s]+p, port 0 included.
type Frame struct {
	// Base is by slot the index of its port 0; one more at the end.
	Base []int32
	// Owner is by index of a port its slot.
	Owner []int32
	slot  map[GUID]int32
}

// NewFrame has a slot for every switch of the fabrics, those of the first in the
// order of their NodeID.
func NewFrame(fabrics ...*Fabric) *Frame {
	x := &Frame{Base: []int32{0}, slot: make(map[GUID]int32)}
	for _, f := range fabrics {
		for s := range NodeID(f.NumSwitches()) {
			n := f.Node(s)
			if _, ok := x.slot[n.GUID]; ok {
				continue
			}
			slot := int32(x.Slots())
			x.slot[n.GUID] = slot
			for range int(n.NumPorts) + 1 {
				x.Owner = append(x.Owner, slot)
			}
			x.Base = append(x.Base, int32(len(x.Owner)))
		}
	}
	return x
}

// Slots is how many there are.
func (x *Frame) Slots() int { return len(x.Base) - 1 }

// NumPorts is how many indices ports have.
func (x *Frame) NumPorts() int { return len(x.Owner) }

// What is at the other end of a port's cable, if not a switch.
const (
	NoCable int32 = -1 // nothing; and so it is with port 0
	EndPort int32 = -2 // a CA or a router
)

// Nowhere is the destination of a LID that nobody has.
const Nowhere int32 = -1

// View is a fabric by the slots of a Frame.
type View struct {
	Fabric *Fabric
	// Node is by slot the switch, NoNode for one that is not there.
	Node []NodeID
	// Slot is by NodeID of a switch.
	Slot []int32
	// Peer is by index of a port that of the port of a switch at the other end of
	// its cable, or NoCable or EndPort.
	Peer []int32
	// Dest is by LID the index of the port of a switch by which packets leave the
	// fabric for it, port 0 for the switch's own; Nowhere for nobody's.
	Dest []int32
	// Sources is by slot how many CA and router ports are cabled to it.
	Sources []int32
	// Whole says that all switches and all CA and router ports with a cable have LIDs,
	// and that the latter are cabled to switches.
	Whole bool
}

// View is f in the frame; false when it has a switch without a slot, or with another
// number of ports.
func (x *Frame) View(f *Fabric) (*View, bool) {
	n := x.Slots()
	v := &View{
		Fabric: f, Node: make([]NodeID, n), Slot: make([]int32, f.NumSwitches()),
		Peer: make([]int32, x.NumPorts()), Dest: make([]int32, int(f.MaxLID())+1), Sources: make([]int32, n),
		Whole: true,
	}
	for s := range v.Node {
		v.Node[s] = NoNode
	}
	for s := range NodeID(f.NumSwitches()) {
		node := f.Node(s)
		slot, ok := x.slot[node.GUID]
		if !ok || x.Base[slot+1]-x.Base[slot] != int32(node.NumPorts)+1 {
			return nil, false
		}
		v.Whole = v.Whole && f.LID(f.PortBase(s)) != 0
		v.Node[slot], v.Slot[s] = s, slot
	}
	for i := range v.Peer {
		v.Peer[i] = NoCable
	}
	for s := range NodeID(f.NumSwitches()) {
		base, at := f.PortBase(s), x.Base[v.Slot[s]]
		for num := int32(1); num <= int32(f.Node(s).NumPorts); num++ {
			peer := f.Peer(base + PortID(num))
			if peer == NoPort {
				continue
			}
			if to := f.Owner(peer); f.IsSwitch(to) {
				v.Peer[at+num] = x.Base[v.Slot[to]] + int32(f.Num(peer))
			} else {
				v.Peer[at+num] = EndPort
			}
		}
	}
	attached := f.CASwitches()
	for i, p := range f.CAPorts() {
		if attached[i] == NoNode {
			v.Whole = false
			continue
		}
		v.Whole = v.Whole && f.LID(p) != 0
		v.Sources[v.Slot[attached[i]]]++
	}
	for lid := range v.Dest {
		v.Dest[lid] = Nowhere
		p := f.LIDPort(LID(lid))
		if p == NoPort {
			continue
		}
		if s := f.Owner(p); f.IsSwitch(s) {
			v.Dest[lid] = x.Base[v.Slot[s]]
		} else if peer := f.Peer(p); peer != NoPort && f.IsSwitch(f.Owner(peer)) {
			v.Dest[lid] = x.Base[v.Slot[f.Owner(peer)]] + int32(f.Num(peer))
		}
	}
	return v, true
}

// To is the destination of a LID, of any LID.
func (v *View) To(lid int) int32 {
	if lid >= len(v.Dest) {
		return Nowhere
	}
	return v.Dest[lid]
}
