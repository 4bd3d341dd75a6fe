package verify

import "github.com/ibweave/ibweave/fabric"

// staticRecheck enumerates the dependencies of static tables on one VL, where packets of all who send
// to a LID meet the same entries. The walk of recheck by stops finds the same, and takes twice as long.
type staticRecheck struct {
	*recheck
	first   []fabric.LID // by PortID: one for which CAs on the switch take the port first
	sources []int        // by switch: CA and router ports cabled to it
	// By switch, for one LID: the port that packets leave by and what is at
	// the other end of its cable, NoPort where there is none, or the switch's
	// own port 0 for both; and what is known of their fate.
	port, peer []fabric.PortID
	state      []uint8
	path       []fabric.NodeID
}

// What is known of a switch.
const (
	stateUnknown  = iota
	stateFailing  // packets do not arrive; also while they are followed
	stateArriving // packets arrive from here
	stateUsed     // and there are packets, whose dependencies have been checked
)

// newStaticRecheck returns a walk that has followed no LID.
func newStaticRecheck(k *recheck) *staticRecheck {
	n := k.f.NumSwitches()
	x := &staticRecheck{
		recheck: k, first: make([]fabric.LID, k.f.NumPorts()), sources: make([]int, n),
		port: make([]fabric.PortID, n), peer: make([]fabric.PortID, n), state: make([]uint8, n),
	}
	for _, s := range k.f.CASwitches() {
		if s != fabric.NoNode {
			x.sources[s]++
		}
	}
	return x
}

// destinations checks the dependencies of packets for all LIDs on one VL.
func (k *staticRecheck) destinations() error {
	f := k.f
	for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
		owner := f.LIDPort(lid)
		if owner == fabric.NoPort || f.IsSwitch(f.Owner(owner)) && (!k.management || f.Num(owner) != fabric.ManagementPort) {
			continue
		}
		if err := k.destination(lid, owner); err != nil {
			return err
		}
	}
	return k.fromCAs()
}

// entries looks up what each switch does with packets for a LID.
func (k *staticRecheck) entries(lid fabric.LID) {
	f := k.f
	for s := range k.state {
		s := fabric.NodeID(s)
		k.state[s], k.port[s], k.peer[s] = stateUnknown, fabric.NoPort, fabric.NoPort
		row := k.read.Tables.Row(s)
		if int(lid) >= len(row) || row[lid] > f.Node(s).NumPorts {
			continue
		}
		k.port[s] = f.Port(s, row[lid])
		k.peer[s] = f.Peer(k.port[s])
		if row[lid] == fabric.ManagementPort {
			k.peer[s] = k.port[s]
		}
	}
}

// arrives returns true if packets for a LID of owner arrive from switch s.
func (k *staticRecheck) arrives(s fabric.NodeID, owner fabric.PortID) bool {
	k.path = k.path[:0]
	result := uint8(stateFailing)
	for {
		if k.state[s] != stateUnknown {
			result = k.state[s]
			break
		}
		k.state[s] = stateFailing
		k.path = append(k.path, s)
		peer := k.peer[s]
		if peer == owner {
			result = stateArriving
			break
		}
		if peer == fabric.NoPort || !k.f.IsSwitch(k.f.Owner(peer)) || k.f.Num(peer) == fabric.ManagementPort {
			break
		}
		s = k.f.Owner(peer)
	}
	for _, u := range k.path {
		k.state[u] = min(result, stateArriving)
	}
	return result != stateFailing
}

// destination checks the dependencies of packets for one LID, except those
// on channels that leave CAs.
func (k *staticRecheck) destination(lid fabric.LID, owner fabric.PortID) error {
	f := k.f
	k.entries(lid)
	for s := range f.NumSwitches() {
		s := fabric.NodeID(s)
		sources := k.sources[s]
		if peer := f.Peer(owner); peer != fabric.NoPort && f.Owner(peer) == s {
			sources-- // the owner, which does not send to itself
		}
		if sources == 0 && (!k.management || s == f.Owner(owner)) || !k.arrives(s, owner) {
			continue
		}
		if sources > 0 {
			k.first[k.port[s]] = lid
		}
		if err := k.checkPath(s, lid, owner); err != nil {
			return err
		}
	}
	return nil
}

// fromCAs checks the dependencies of channels that leave CAs: on each port by
// which packets of the switch's CAs go on, except the one that leads back to
// the CA, where only the others' packets go.
func (k *staticRecheck) fromCAs() error {
	f := k.f
	for i, port := range f.CAPorts() {
		s := f.CASwitches()[i]
		if s == fabric.NoNode {
			continue
		}
		for p := fabric.PortNum(1); p <= f.Node(s).NumPorts; p++ {
			out := f.Port(s, p)
			if k.first[out] == 0 || f.Peer(out) == port {
				continue
			}
			if err := k.increases(port, 0, out, 0, k.first[out]); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkPath checks the dependencies between the channels of switches on the path
// from s, as far as no packet went before.
func (k *staticRecheck) checkPath(s fabric.NodeID, lid fabric.LID, owner fabric.PortID) error {
	for k.state[s] != stateUsed {
		k.state[s] = stateUsed
		if k.peer[s] == owner {
			return nil
		}
		port := k.port[s]
		s = k.f.Owner(k.peer[s])
		if k.port[s] == owner { // port 0 of the switch
			return nil
		}
		if err := k.increases(port, 0, k.port[s], 0, lid); err != nil {
			return err
		}
	}
	return nil
}
