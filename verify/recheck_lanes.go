package verify

import (
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

	// By port of a switch and SL: the VLs on which packets of the switch's CAs
	// leave by it, once their channels into the switch have been checked.
	begun  []bool
	begins []uint16
	// By switch and SL: VLs on which packets for the LID left it.
	followed []uint16
}

func newRecheckLanes(k *recheck, sl2vl *lft.SL2VL, pathSLs *lft.PathSLs) *recheckLanes {
	return &recheckLanes{
		recheck: k, sl2vl: sl2vl, pathSLs: pathSLs,
		begun:    make([]bool, k.f.NumPorts()*lft.NumSLs),
		begins:   make([]uint16, k.f.NumPorts()*lft.NumSLs),
		followed: make([]uint16, k.f.NumSwitches()*lft.NumSLs),
	}
}

// destination checks the dependencies of packets for one LID.
func (k *recheckLanes) destination(lid fabric.LID, owner fabric.PortID, management bool) error {
	k.entries(lid)
	clear(k.followed)
	for s := range fabric.NodeID(k.f.NumSwitches()) {
		out := k.port[s]
		if out == owner && k.f.IsSwitch(k.f.Owner(owner)) || !k.arrives(s, owner) {
			continue // the owner itself, or nothing arrives
		}
		first, last := fabric.SL(0), fabric.SL(lft.NumSLs-1)
		if k.pathSLs != nil {
			if row := k.pathSLs.Row(s); int(lid) < len(row) {
				first = row[lid]
			}
			last = first
		}
		for sl := first; sl <= last; sl++ {
			vls, err := k.fromCAs(s, out, sl, lid)
			if err != nil {
				return err
			}
			if vl := k.sl2vl.At(fabric.ManagementPort, out)[sl]; management && vl != lft.DropVL {
				vls |= 1 << vl
			}
			for vl := range fabric.VL(lft.MaxDataVLs) {
				if vls>>vl&1 == 0 {
					continue
				}
				if err := k.follow(s, vl, sl, lid, owner); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// fromCAs checks the dependencies between channels that leave CAs and a way out
// of their switch, and returns the VLs of the latter.
func (k *recheckLanes) fromCAs(s fabric.NodeID, out fabric.PortID, sl fabric.SL, lid fabric.LID) (uint16, error) {
	f := k.f
	at := int(out)*lft.NumSLs + int(sl)
	if k.begun[at] {
		return k.begins[at], nil
	}
	k.begun[at] = true
	for num := fabric.PortNum(1); num != 0 && num <= f.Node(s).NumPorts; num++ {
		in := f.Port(s, num)
		ca := f.Peer(in)
		if in == out || ca == fabric.NoPort || f.IsSwitch(f.Owner(ca)) {
			continue
		}
		before, after := k.sl2vl.At(0, ca)[sl], k.sl2vl.At(num, out)[sl]
		if before == lft.DropVL || after == lft.DropVL {
			continue
		}
		k.begins[at] |= 1 << after
		if err := k.increases(ca, before, out, after, lid); err != nil {
			return 0, err
		}
	}
	return k.begins[at], nil
}

// follow checks the dependencies between channels of switches, for packets that
// leave s on a VL.
func (k *recheckLanes) follow(s fabric.NodeID, vl fabric.VL, sl fabric.SL, lid fabric.LID, owner fabric.PortID) error {
	for {
		left := &k.followed[int(s)*lft.NumSLs+int(sl)]
		if *left>>vl&1 != 0 || k.peer[s] == owner {
			return nil
		}
		*left |= 1 << vl
		in := k.peer[s]
		next := k.f.Owner(in)
		if k.port[next] == owner { // port 0 of the switch
			return nil
		}
		after := k.sl2vl.At(k.f.Num(in), k.port[next])[sl]
		if after == lft.DropVL {
			return nil
		}
		if err := k.increases(k.port[s], vl, k.port[next], after, lid); err != nil {
			return err
		}
		s, vl = next, after
	}
}
