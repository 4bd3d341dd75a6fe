package fabric

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Parts is what a Fabric is made of, for readers of text that have settled all of
// it themselves; others are better served by a Builder. The nodes may be in any
// order. Each has NumPorts+1 slots, one for each of its ports from 0 on, behind
// those of the nodes before it; all but Nodes is by slot.
type Parts struct {
	Nodes []Node   // Order is set by Build
	Peer  []PortID // the slot that the port's cable leads to, or NoPort
	GUID  []GUID   // of switch port 0 and of the ports of CAs and routers, else 0
	LID   []LID    // of the same: base LID, 0 for none
	LMC   []uint8  // of the same
	Link  []Link   // of ports with a cable; the same at both ends
}

// Build makes the Fabric, to which the slices belong from now on. Errors: those of
// Builder.Build, and slices that do not fit together. Parts in the order of the
// Fabric are not copied.
func (x *Parts) Build() (*Fabric, error) {
	base := make([]PortID, len(x.Nodes)+1) // by node
	slots, sorted := 0, true
	for i := range x.Nodes {
		n := &x.Nodes[i]
		if err := n.check(); err != nil {
			return nil, err
		}
		n.Order = int32(i)
		base[i] = PortID(slots)
		if slots += int(n.NumPorts) + 1; slots > math.MaxInt32 {
			return nil, ErrTooLarge
		}
		sorted = sorted && (i == 0 || compareNodes(&x.Nodes[i-1], n) < 0)
	}
	base[len(x.Nodes)] = PortID(slots)
	if len(x.Peer) != slots || len(x.GUID) != slots || len(x.LID) != slots || len(x.LMC) != slots || len(x.Link) != slots {
		return nil, fmt.Errorf("parts of %d, %d, %d, %d and %d slots, the nodes have %d", len(x.Peer), len(x.GUID), len(x.LID), len(x.LMC), len(x.Link), slots)
	}
	for at, peer := range x.Peer {
		if peer == NoPort {
			continue
		}
		if peer < 0 || int(peer) >= slots || x.Peer[peer] != PortID(at) || int(peer) == at {
			return nil, fmt.Errorf("slot %d has a cable to slot %d, which has none to it", at, peer)
		}
	}
	if !sorted {
		x.sort(base)
	}
	f := &Fabric{
		nodes: x.Nodes, base: base, lids: &lids{}, names: &names{},
		ports: &ports{peer: x.Peer, guid: x.GUID, link: x.Link, owner: make([]NodeID, slots)},
	}
	if err := f.index(); err != nil {
		return nil, err
	}
	return f.WithLIDs(x.LID, x.LMC)
}

// compareNodes is the order of NodeIDs: switches come first, and then the order is
// that of GUIDs.
func compareNodes(m, n *Node) int {
	if (m.Type == Switch) != (n.Type == Switch) {
		if m.Type == Switch {
			return -1
		}
		return 1
	}
	return cmp.Compare(m.GUID, n.GUID)
}

// sort brings the nodes into the order of NodeIDs, those of one GUID into that of
// the input; base becomes what it is then.
func (x *Parts) sort(base []PortID) {
	type place struct {
		guid GUID
		at   int32 // in the input
		rest bool  // it is no switch
	}
	order := make([]place, len(x.Nodes)) // by NodeID
	for i := range order {
		order[i] = place{x.Nodes[i].GUID, int32(i), x.Nodes[i].Type != Switch}
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
	old := *x
	slots := len(old.Peer)
	*x = Parts{
		Nodes: make([]Node, len(order)), Peer: make([]PortID, slots), GUID: make([]GUID, slots),
		LID: make([]LID, slots), LMC: make([]uint8, slots), Link: make([]Link, slots),
	}
	moved := make([]PortID, slots) // by slot of the input: where it is now
	to := PortID(0)
	for n, o := range order {
		x.Nodes[n] = old.Nodes[o.at]
		a, b := base[o.at], base[o.at+1]
		copy(x.GUID[to:], old.GUID[a:b])
		copy(x.LID[to:], old.LID[a:b])
		copy(x.LMC[to:], old.LMC[a:b])
		copy(x.Link[to:], old.Link[a:b])
		for s := a; s < b; s++ {
			moved[s] = to
			to++
		}
	}
	for s, peer := range old.Peer {
		if peer != NoPort {
			peer = moved[peer]
		}
		x.Peer[moved[s]] = peer
	}
	to = 0
	for n := range x.Nodes {
		base[n] = to
		to += PortID(x.Nodes[n].NumPorts) + 1
	}
}

// index makes what a Fabric knows besides of its nodes and cables.
func (f *Fabric) index() error {
	for n := range f.nodes {
		if f.nodes[n].Type != Switch {
			break
		}
		f.switches++
	}
	if err := f.checkGUIDs(); err != nil {
		return err
	}
	for n := range f.nodes {
		a, b := f.base[n], f.base[n+1]
		for s := a; s < b; s++ {
			f.owner[s] = NodeID(n)
		}
		if f.peer[a] != NoPort {
			return errors.New("port 0 takes no cable")
		}
	}
	f.indexCables()
	return nil
}

// indexCables makes what follows from peer and owner.
func (f *Fabric) indexCables() {
	end := f.base[f.switches] // the slots of switches come first
	channels, hosts, hostPorts := 0, 0, 0
	f.links = 0
	for p, peer := range f.peer {
		if peer == NoPort {
			continue
		}
		switch p := PortID(p); {
		case p >= end:
			hostPorts++
		case peer >= end:
			hosts++
		case f.owner[p] != f.owner[peer]:
			channels++
		}
		f.links++
	}
	f.links /= 2
	f.first, f.firstHost = make([]int32, f.switches+1), make([]int32, f.switches+1)
	f.chans, f.to = make([]PortID, 0, channels), make([]NodeID, 0, channels)
	f.hosts = make([]PortID, 0, hosts)
	for s := range NodeID(f.switches) {
		for p := f.base[s] + 1; p < f.base[s+1]; p++ {
			switch peer := f.peer[p]; {
			case peer == NoPort || f.owner[peer] == s:
			case peer >= end:
				f.hosts = append(f.hosts, peer)
			default:
				f.chans = append(f.chans, p)
				f.to = append(f.to, f.owner[peer])
			}
		}
		f.first[s+1], f.firstHost[s+1] = int32(len(f.chans)), int32(len(f.hosts))
	}
	f.caPorts, f.attached = make([]PortID, 0, hostPorts), make([]NodeID, 0, hostPorts)
	for p := end; int(p) < len(f.peer); p++ {
		if f.peer[p] != NoPort {
			f.caPorts = append(f.caPorts, p)
			f.attached = append(f.attached, f.PeerSwitch(p))
		}
	}
}

// checkGUIDs finds the first node whose GUID is zero or that of a node before it.
// Switches and the rest are both in the order of GUIDs.
func (f *Fabric) checkGUIDs() error {
	s := 0 // first switch whose GUID is not less
	for n := range f.nodes {
		node := &f.nodes[n]
		if node.GUID == 0 {
			return fmt.Errorf("node %q has GUID 0", node.Description)
		}
		twin := n - 1
		if n >= f.switches {
			for s < f.switches && f.nodes[s].GUID < node.GUID {
				s++
			}
			if s < f.switches && f.nodes[s].GUID == node.GUID {
				twin = s
			}
		}
		if twin >= 0 && f.nodes[twin].GUID == node.GUID {
			return fmt.Errorf("GUID %s is on two nodes, %q and %q", node.GUID, f.nodes[twin].Description, node.Description)
		}
	}
	return nil
}
