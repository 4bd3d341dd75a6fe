package lft

import (
	"github.com/ibweave/ibweave/fabric"
)

// Carried is the tables of prev as far as they fit f: entries of switches that both
// have, for LIDs of end ports that both have, by GUID, and that a switch of f leads to.
// All others are fabric.NoPath.
func Carried(f *fabric.Fabric, prev *Routing) *Tables {
	t := NewTables(f.NumSwitches(), f.MaxLID())
	same := make([]bool, f.MaxLID()+1)
	for lid := range same {
		same[lid] = destination(f, fabric.LID(lid)) != fabric.NoNode &&
			sameEndPort(f, f.LIDPort(fabric.LID(lid)), prev.Fabric, prev.Fabric.LIDPort(fabric.LID(lid)))
	}
	for s := range fabric.NodeID(f.NumSwitches()) {
		node := f.Node(s)
		was, ok := prev.Fabric.SwitchByGUID(node.GUID)
		if !ok {
			continue
		}
		row, old := t.Row(s), prev.Tables.Row(was)
		for lid := range min(len(row), len(old)) {
			if same[lid] && old[lid] <= node.NumPorts {
				row[lid] = old[lid]
			}
		}
	}
	return t
}

// sameEndPort says whether p of f is q of g.
func sameEndPort(f *fabric.Fabric, p fabric.PortID, g *fabric.Fabric, q fabric.PortID) bool {
	return p != fabric.NoPort && q != fabric.NoPort && f.Num(p) == g.Num(q) &&
		f.Node(f.Owner(p)).GUID == g.Node(g.Owner(q)).GUID && f.IsSwitch(f.Owner(p)) == g.IsSwitch(g.Owner(q))
}

// news says by PortID which channels between switches of f prev did not have; nil for
// none.
func news(f *fabric.Fabric, prev *fabric.Fabric) []bool {
	fresh, any := make([]bool, f.NumPorts()), false
	for s := range fabric.NodeID(f.NumSwitches()) {
		was, ok := prev.SwitchByGUID(f.Node(s).GUID)
		ports, to := f.SwitchLinks(s)
		for i, p := range ports {
			peer := fabric.NoPort
			if ok && f.Num(p) <= prev.Node(was).NumPorts {
				peer = prev.Peer(prev.Port(was, f.Num(p)))
			}
			if peer == fabric.NoPort || prev.Num(peer) != f.Num(f.Peer(p)) || !prev.IsSwitch(prev.Owner(peer)) ||
				prev.Node(prev.Owner(peer)).GUID != f.Node(to[i]).GUID {
				fresh[p], any = true, true
			}
		}
	}
	if !any {
		return nil
	}
	return fresh
}

// Renew routes f so that as little as can be differs from the tables of prev, which
// are of a similar fabric with the same LIDs. An entry that packets may still use stays
// as it is, unless the switch has a cable that it had not before and that carries less by
// more than the entry brings: so cables that come back get their share. Other entries go
// to the port with the least load, the lowest of several.
//
// m is of the engine, for f. Every entry is held against it, so that the result is within
// the engine's guarantee whoever made the tables of prev: O(switches x LIDs). It is false
// when a path has too many links.
func Renew(f *fabric.Fabric, prev *Routing, m Mender) (*Tables, bool) {
	t := Carried(f, prev)
	r := NewRepair(f, t)
	r.fresh = news(f, prev.Fabric)
	var lids []fabric.LID
	for lid := range fabric.LID(len(f.LIDPorts())) {
		if destination(f, lid) != fabric.NoNode {
			lids = append(lids, lid)
		}
	}
	byDestination(f, lids)
	var (
		at   = fabric.NoNode
		hops []uint8
		ok   bool
	)
	for _, lid := range lids {
		to := destination(f, lid)
		if to != at {
			if hops, ok = m.To(to); !ok {
				return nil, false
			}
			at = to
		}
		p := f.LIDPort(lid)
		last := fabric.ManagementPort
		ca := !f.IsSwitch(f.Owner(p))
		if ca {
			r.old.Grow(t, lid)
			r.old.Flow(r.sources, func(out fabric.PortID, routes int64) { r.load[out] -= routes })
			last = f.Num(f.Peer(p))
		}
		t.Row(to)[lid] = last
		r.place(f, m, lid, to, hops, r.sources, ca)
		r.edits = r.edits[:0]
	}
	return t, true
}
