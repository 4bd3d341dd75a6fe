package verify

import (
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// recheckLanes enumerates dependencies on several VLs: it follows packets of
// each SL from every switch where some begin, hop by hop, until it meets a
// channel that others of the same LID and SL were followed from.
type recheckLanes struct {
	*recheck
	sl2vl   *lft.SL2VL
	pathSLs *lft.PathSLs
	sls     []fabric.SL                       // that paths may have, when pathSLs is nil
	drops   bool                              // some table drops an SL
	ports   map[fabric.NodeID][]fabric.PortID // by switch: the ports with path SLs of their own

	// By port of a switch and SL: the VLs on which packets of the switch's CAs
	// leave by it, once their channels into the switch have been checked.
	begun  []bool
	begins []uint16
	// By switch and SL, for one LID: whether packets that have left the switch
	// arrive, and the VLs that they have been followed on.
	fate     []uint8
	followed []uint16
}

func newRecheckLanes(k *recheck, sl2vl *lft.SL2VL, pathSLs *lft.PathSLs) *recheckLanes {
	l := &recheckLanes{
		recheck: k, sl2vl: sl2vl, pathSLs: pathSLs,
		begun:    make([]bool, k.f.NumPorts()*lft.NumSLs),
		begins:   make([]uint16, k.f.NumPorts()*lft.NumSLs),
		fate:     make([]uint8, k.f.NumSwitches()*lft.NumSLs),
		followed: make([]uint16, k.f.NumSwitches()*lft.NumSLs),
	}
	if pathSLs != nil {
		l.ports = make(map[fabric.NodeID][]fabric.PortID)
		for _, port := range pathSLs.Ports() {
			s := k.f.Owner(port)
			if peer := k.f.Peer(port); !k.f.IsSwitch(s) && peer != fabric.NoPort {
				s = k.f.Owner(peer)
			}
			l.ports[s] = append(l.ports[s], port)
		}
	}
	l.drops = slices.ContainsFunc(sl2vl.Maps(), func(m lft.VLMap) bool { return slices.Contains(m[:], lft.DropVL) })
	// SLs that have the VLs of a lower one everywhere need no look.
	for sl := range fabric.SL(lft.NumSLs) {
		same := func(o fabric.SL) bool {
			return !slices.ContainsFunc(sl2vl.Maps(), func(m lft.VLMap) bool { return m[sl] != m[o] })
		}
		if !slices.ContainsFunc(l.sls, same) {
			l.sls = append(l.sls, sl)
		}
	}
	return l
}

// destination checks the dependencies of packets for one LID.
func (k *recheckLanes) destination(lid fabric.LID, owner fabric.PortID, management bool) error {
	k.entries(lid)
	if k.drops {
		clear(k.fate)
	}
	clear(k.followed)
	for s := range fabric.NodeID(k.f.NumSwitches()) {
		out := k.port[s]
		if out == owner && k.f.IsSwitch(k.f.Owner(owner)) || !k.arrives(s, owner) {
			continue // the owner itself, or nothing arrives
		}
		sls := k.sls
		if k.pathSLs != nil {
			sls = k.from(s, lid)
		}
		for _, sl := range sls {
			if k.drops && !k.arrivesOn(s, sl, owner) {
				continue
			}
			vls, err := k.fromCAs(s, out, sl, lid)
			if err != nil {
				return err
			}
			if vl := k.sl2vl.At(fabric.ManagementPort, out)[sl]; management && vl != lft.DropVL && k.sends(k.f.PortBase(s), s, sl, lid) {
				vls |= 1 << vl
			}
			for vl := range fabric.VL(lft.MaxDataVLs) {
				if vls>>vl&1 == 0 {
					continue
				}
				if err := k.checkPath(s, vl, sl, lid, owner); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// sends says whether packets from a source port on switch s to a LID may have an SL.
func (k *recheckLanes) sends(source fabric.PortID, s fabric.NodeID, sl fabric.SL, lid fabric.LID) bool {
	if k.pathSLs == nil {
		return true
	}
	row := k.pathSLs.PortRow(source)
	if row == nil {
		row = k.pathSLs.Given(s)
	}
	return row[lid] == sl || row[lid] == lft.UnknownSL
}

// from lists the SLs of paths from switch s to a LID, of any port on it.
func (k *recheckLanes) from(s fabric.NodeID, lid fabric.LID) []fabric.SL {
	sls := k.pathSLs.Given(s)[lid : lid+1]
	for _, port := range k.ports[s] {
		if sl := k.pathSLs.PortRow(port)[lid]; !slices.Contains(sls, sl) {
			sls = append(slices.Clip(sls), sl)
		}
	}
	if slices.Contains(sls, lft.UnknownSL) {
		all := slices.Clip(k.sls)
		for _, sl := range sls { // k.sls has one of those with equal VLs, and ports may send with another
			if sl != lft.UnknownSL && !slices.Contains(all, sl) {
				all = append(all, sl)
			}
		}
		return all
	}
	return sls
}

// next is where packets of an SL for the LID go that have left switch s: the
// next switch, its output port and the VL there. last says that they have arrived.
func (k *recheckLanes) next(s fabric.NodeID, sl fabric.SL, owner fabric.PortID) (u fabric.NodeID, out fabric.PortID, vl fabric.VL, last bool) {
	in := k.peer[s]
	if in == owner {
		return 0, 0, 0, true
	}
	u = k.f.Owner(in)
	out = k.port[u]
	if out == owner { // port 0 of the switch
		return 0, 0, 0, true
	}
	return u, out, k.sl2vl.At(k.f.Num(in), out)[sl], false
}

// arrivesOn says whether packets of an SL that have left switch s for the LID
// are dropped by no SL-to-VL table, given that the forwarding tables lead
// there.
func (k *recheckLanes) arrivesOn(s fabric.NodeID, sl fabric.SL, owner fabric.PortID) bool {
	at := func(s fabric.NodeID) *uint8 { return &k.fate[int(s)*lft.NumSLs+int(sl)] }
	result := uint8(stateArriving)
	k.path = k.path[:0]
	for {
		if *at(s) != stateUnknown {
			result = *at(s)
			break
		}
		k.path = append(k.path, s)
		u, _, vl, last := k.next(s, sl, owner)
		if last {
			break
		}
		if vl == lft.DropVL {
			result = stateFailing
			break
		}
		s = u
	}
	for _, u := range k.path {
		*at(u) = result
	}
	return result == stateArriving
}

// fromCAs checks the dependencies between channels that leave CAs and an output port
// of their switch, and returns the VLs of the latter.
func (k *recheckLanes) fromCAs(s fabric.NodeID, out fabric.PortID, sl fabric.SL, lid fabric.LID) (uint16, error) {
	f := k.f
	at := int(out)*lft.NumSLs + int(sl)
	own := len(k.ports[s]) > 0 // it depends on the LID which of them send with the SL
	switch {
	case own:
		k.begins[at] = 0
	case k.begun[at]:
		return k.begins[at], nil
	}
	k.begun[at] = true
	for num := fabric.PortNum(1); num <= f.Node(s).NumPorts; num++ {
		in := f.Port(s, num)
		ca := f.Peer(in)
		if in == out || ca == fabric.NoPort || f.IsSwitch(f.Owner(ca)) {
			continue
		}
		before, after := k.sl2vl.At(0, ca)[sl], k.sl2vl.At(num, out)[sl]
		if before == lft.DropVL || after == lft.DropVL || own && !k.sends(ca, s, sl, lid) {
			continue
		}
		k.begins[at] |= 1 << after
		if err := k.increases(ca, before, out, after, lid); err != nil {
			return 0, err
		}
	}
	return k.begins[at], nil
}

// checkPath checks the dependencies between channels of switches, for packets that
// leave s on a VL.
func (k *recheckLanes) checkPath(s fabric.NodeID, vl fabric.VL, sl fabric.SL, lid fabric.LID, owner fabric.PortID) error {
	for {
		left := &k.followed[int(s)*lft.NumSLs+int(sl)]
		if *left>>vl&1 != 0 {
			return nil
		}
		*left |= 1 << vl
		next, out, after, last := k.next(s, sl, owner)
		if last {
			return nil
		}
		if err := k.increases(k.port[s], vl, out, after, lid); err != nil {
			return err
		}
		s, vl = next, after
	}
}
