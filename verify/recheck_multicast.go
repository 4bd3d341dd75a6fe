package verify

import (
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
)

// recheckMulticast enumerates the dependencies of multicast packets: it follows
// one packet of each sender, and no copy further than where another one of the
// same tree came in by the same port on the same VL before.
type recheckMulticast struct {
	*recheck
	m     *mft.Plan
	sl2vl *lft.SL2VL
	came  []uint16        // by PortID and VL bit: copies that came in
	dirty []fabric.PortID // of came
	queue []copied
}

// copied is a copy of a packet that is in a switch.
type copied struct {
	in fabric.PortID // port of the switch
	vl fabric.VL     // that it came on
}

// trees checks the dependencies of all trees, and of MLIDs without one as
// Check says.
func (k *recheckMulticast) trees() error {
	known := make(map[fabric.LID]bool, len(k.m.Trees))
	for i := range k.m.Trees {
		t := &k.m.Trees[i]
		known[t.MLID] = known[t.MLID] || len(t.Senders) > 0
		if err := k.tree(t.MLID, t.Senders, t.SL); err != nil {
			return err
		}
	}
	for _, mlid := range k.m.Tables.MLIDs() {
		if known[mlid] {
			continue
		}
		var members []fabric.PortID
		for _, p := range k.m.Tables.Ports(mlid) {
			if end := k.endAt(p); end != fabric.NoPort {
				members = append(members, end)
			}
		}
		if err := k.tree(mlid, members, 0); err != nil {
			return err
		}
	}
	return nil
}

// endAt is the end port that a port of a switch leads to.
func (k *recheckMulticast) endAt(p fabric.PortID) fabric.PortID {
	if k.f.Num(p) == fabric.ManagementPort {
		return p
	}
	if peer := k.f.Peer(p); peer != fabric.NoPort && !k.f.IsSwitch(k.f.Owner(peer)) {
		return peer
	}
	return fabric.NoPort
}

func (k *recheckMulticast) tree(mlid fabric.LID, senders []fabric.PortID, sl fabric.SL) error {
	for _, p := range k.dirty {
		k.came[p] = 0
	}
	k.dirty = k.dirty[:0]
	for _, s := range senders {
		if k.f.IsSwitch(k.f.Owner(s)) {
			if err := k.forward(mlid, sl, k.f.PortBase(k.f.Owner(s)), fabric.NoPort, 0); err != nil {
				return err
			}
			continue
		}
		in := k.f.Peer(s)
		if in == fabric.NoPort || !k.f.IsSwitch(k.f.Owner(in)) {
			continue
		}
		vl := fabric.VL(0)
		if k.sl2vl != nil {
			vl = k.sl2vl.At(0, s)[sl]
		}
		if vl != lft.DropVL {
			if err := k.forward(mlid, sl, in, s, vl); err != nil {
				return err
			}
		}
	}
	for len(k.queue) > 0 {
		at := k.queue[0]
		k.queue = k.queue[1:]
		if err := k.forward(mlid, sl, at.in, k.f.Peer(at.in), at.vl); err != nil {
			return err
		}
	}
	return nil
}

// forward copies a packet that came in by a port of a switch, on a VL of the
// channel from held, which is NoPort for port 0.
func (k *recheckMulticast) forward(mlid fabric.LID, sl fabric.SL, in, held fabric.PortID, vl fabric.VL) error {
	for _, out := range k.m.Tables.Mask(k.f.Owner(in), mlid) {
		to := k.f.Peer(out)
		if out == in || to == fabric.NoPort {
			continue
		}
		after := fabric.VL(0)
		if k.sl2vl != nil {
			if after = k.sl2vl.At(k.f.Num(in), out)[sl]; after == lft.DropVL {
				continue
			}
		}
		if held != fabric.NoPort {
			if err := k.increases(held, vl, out, after, mlid); err != nil {
				return err
			}
		}
		if !k.f.IsSwitch(k.f.Owner(to)) || k.came[to]>>after&1 != 0 {
			continue
		}
		if k.came[to] == 0 {
			k.dirty = append(k.dirty, to)
		}
		k.came[to] |= 1 << after
		k.queue = append(k.queue, copied{to, after})
	}
	return nil
}
