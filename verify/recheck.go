package verify

import (
	"errors"
	"fmt"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/state"
)

// DependencyError says that a certificate does not hold: packets for LID hold
// channel In while they wait for Out, and the number does not increase. A
// channel without a number has Number -1.
type DependencyError struct {
	In, Out NumberedChannel
	LID     fabric.LID

	in, out string // "description"[port], and the VL where there are several
}

func (e *DependencyError) Error() string {
	number := func(c NumberedChannel) string {
		if c.Number < 0 {
			return "no number"
		}
		return fmt.Sprintf("number %d", c.Number)
	}
	lid := fmt.Sprintf("%d", e.LID)
	if e.LID >= mft.MinMLID {
		lid = fmt.Sprintf("%#x", uint16(e.LID))
	}
	return fmt.Sprintf("the certificate does not hold: packets for LID %s hold %s, which has %s, while they wait for %s, which has %s: the number must increase",
		lid, e.in, number(e.In), e.out, number(e.Out))
}

// Check proves the certificate against tables, with the SL-to-VL tables, path SLs
// and multicast tables of opt, which is not used otherwise: that it is of this
// fabric, and that its number increases along every dependency which the traffic
// it covers makes. It trusts nothing and finds the dependencies by itself in the
// plainest way. It takes O(switches x LIDs) time, with SL-to-VL tables for each SL
// that is in use, and for each MLID O((senders + ports in masks x VLs) x ports of a
// switch). It returns a *DependencyError for a dependency along which the number
// does not increase.
//
// A certificate that covers no multicast packets says nothing about multicast
// tables, and one that does needs them; none says anything about switches that do
// not copy independently. These are errors.
//
// Packets that are dropped and unicast packets that loop make no dependency; no
// certificate holds for multicast packets that loop. A certificate can hold for
// tables that are wrong in other ways, which Check the function tells.
func (c *Certificate) Check(s *state.State, copying Copying) error {
	f, t, sl2vl, pathSLs := s.Fabric, s.Tables, s.SL2VL, s.PathSLs
	if t.Switches() != f.NumSwitches() {
		return fmt.Errorf("tables of %d switches for a fabric of %d", t.Switches(), f.NumSwitches())
	}
	if _, err := checkLanes(f, sl2vl, pathSLs); err != nil {
		return err
	}
	switch {
	case c.VLs < 1 || c.VLs > lft.MaxDataVLs:
		return fmt.Errorf("the certificate is of %d VLs: want 1 to %d", c.VLs, lft.MaxDataVLs)
	case sl2vl == nil && c.VLs != 1:
		return fmt.Errorf("the certificate is of %d VLs, and without SL-to-VL tables all traffic is on one", c.VLs)
	case c.Multicast && s.Multicast == nil:
		return errors.New("the certificate covers multicast packets, and there are no multicast tables")
	case !c.Multicast && s.Multicast != nil:
		return errors.New("the certificate does not cover multicast packets, and there are multicast tables")
	}
	if s.Multicast != nil {
		if err := checkPlan(s.Multicast, f); err != nil {
			return err
		}
		if copying != Independent {
			return fmt.Errorf("a certificate says nothing about switches with %s copying", copying)
		}
	}
	k := &recheck{
		f: f, t: t,
		vls:     c.VLs,
		number:  make([]int32, f.NumPorts()*c.VLs),
		first:   make([]fabric.LID, f.NumPorts()),
		sources: make([]int, f.NumSwitches()),
		port:    make([]fabric.PortID, f.NumSwitches()),
		peer:    make([]fabric.PortID, f.NumSwitches()),
		state:   make([]uint8, f.NumSwitches()),
	}
	if err := k.numbers(c); err != nil {
		return err
	}
	for _, n := range f.CASwitches() {
		if n != fabric.NoNode {
			k.sources[n]++
		}
	}
	follow := k.destinations
	if sl2vl != nil {
		follow = (&recheckChoices{recheck: k, read: s}).destinations
	}
	if err := follow(c.Management); err != nil {
		return err
	}
	if s.Multicast != nil {
		return newRecheckMulticast(k, s.Multicast, sl2vl).trees()
	}
	return nil
}

// destinations checks the dependencies of packets for all LIDs on one VL.
func (k *recheck) destinations(management bool) error {
	f := k.f
	for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
		owner := f.LIDPort(lid)
		if owner == fabric.NoPort || f.IsSwitch(f.Owner(owner)) && (!management || f.Num(owner) != fabric.ManagementPort) {
			continue
		}
		if err := k.destination(lid, owner, management); err != nil {
			return err
		}
	}
	return k.fromCAs()
}

// recheck enumerates dependencies.
type recheck struct {
	f       *fabric.Fabric
	t       *lft.Tables
	vls     int
	number  []int32      // by PortID of the channel's port and VL; -1 for none
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

// numbers takes over the certificate's numbers.
func (k *recheck) numbers(c *Certificate) error {
	f := k.f
	if FabricHash(f) != c.Fabric {
		return errors.New("the certificate is of a fabric with other nodes or cables")
	}
	for port := range k.number {
		k.number[port] = -1
	}
	for _, ch := range c.Channels {
		n, ok := f.NodeByGUID(ch.GUID)
		if !ok {
			return fmt.Errorf("the certificate numbers a channel of node %s, which the fabric does not have", ch.GUID)
		}
		node := f.Node(n)
		if ch.Port == 0 || ch.Port > node.NumPorts || f.Peer(f.Port(n, ch.Port)) == fabric.NoPort {
			return fmt.Errorf("the certificate numbers a channel of port %d of %q (%s), which has no cable", ch.Port, f.Name(n).Text, ch.GUID)
		}
		port := f.Port(n, ch.Port)
		if int(ch.VL) >= k.vls || ch.Number < 0 {
			return fmt.Errorf("the certificate gives %s VL %d the number %d: want VL 0 to %d and numbers from 0 on", f.PortName(port), ch.VL, ch.Number, k.vls-1)
		}
		at := &k.number[int(port)*k.vls+int(ch.VL)]
		if *at >= 0 {
			return fmt.Errorf("the certificate numbers %s VL %d twice", f.PortName(port), ch.VL)
		}
		*at = ch.Number
	}
	return nil
}

// entries looks up what each switch does with packets for a LID.
func (k *recheck) entries(lid fabric.LID) {
	f := k.f
	for s := range k.state {
		s := fabric.NodeID(s)
		k.state[s], k.port[s], k.peer[s] = stateUnknown, fabric.NoPort, fabric.NoPort
		row := k.t.Row(s)
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

// arrives says whether packets for a LID of owner arrive from switch s.
func (k *recheck) arrives(s fabric.NodeID, owner fabric.PortID) bool {
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
func (k *recheck) destination(lid fabric.LID, owner fabric.PortID, management bool) error {
	f := k.f
	k.entries(lid)
	for s := range f.NumSwitches() {
		s := fabric.NodeID(s)
		sources := k.sources[s]
		if peer := f.Peer(owner); peer != fabric.NoPort && f.Owner(peer) == s {
			sources-- // the owner, which does not send to itself
		}
		if sources == 0 && (!management || s == f.Owner(owner)) || !k.arrives(s, owner) {
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
func (k *recheck) fromCAs() error {
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
func (k *recheck) checkPath(s fabric.NodeID, lid fabric.LID, owner fabric.PortID) error {
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

// increases checks one dependency: packets for lid hold in and wait for out.
func (k *recheck) increases(in fabric.PortID, inVL fabric.VL, out fabric.PortID, outVL fabric.VL, lid fabric.LID) error {
	number := func(p fabric.PortID, vl fabric.VL) int32 {
		if int(vl) >= k.vls {
			return -1
		}
		return k.number[int(p)*k.vls+int(vl)]
	}
	if a, b := number(in, inVL), number(out, outVL); a >= 0 && a < b {
		return nil
	}
	channel := func(p fabric.PortID, vl fabric.VL) NumberedChannel {
		return NumberedChannel{k.f.Node(k.f.Owner(p)).GUID, k.f.Num(p), vl, number(p, vl)}
	}
	name := func(p fabric.PortID, vl fabric.VL) string {
		if k.vls == 1 && inVL == 0 && outVL == 0 {
			return k.f.PortName(p)
		}
		return fmt.Sprintf("%s VL %d", k.f.PortName(p), vl)
	}
	return &DependencyError{In: channel(in, inVL), Out: channel(out, outVL), LID: lid, in: name(in, inVL), out: name(out, outVL)}
}
