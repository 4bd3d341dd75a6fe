package verify

import (
	"cmp"
	"context"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft/adaptive"
)

// The tallies of a trouble, two for pairs of a CA or router port and a CA LID, two for management
// pairs. Each tally has its first sender.
const (
	tallyDead = iota
	tallyLoop
	tallyManagementDead
	tallyManagementLoop
	numAdaptiveTallies
)

// searched has the results of all searchers together.
type searched struct {
	unicast, all *dependencyGraph // of packets between CA ports, and of all
	troubles     []trouble
}

// run searches all LIDs. If escape is set, it adds only dependencies on static ports.
func (p *choicePlan) run(ctx context.Context, escape bool) (*searched, error) {
	ch := newChannels(p.f, p.vls...)
	unicast, others := newSharedGraph(ch), newSharedGraph(ch)
	workers, err := eachPart(ctx, &p.opt, len(p.units), func() *searcher { return newSearcher(p, unicast, others, escape) }, func(w *searcher, i int) { w.unit(p.units[i]) })
	if err != nil {
		return nil, err
	}
	u := &searched{unicast: unicast.finish(), all: others.finish()}
	u.all.union(u.unicast)
	for _, w := range workers {
		u.troubles = append(u.troubles, w.troubles...)
	}
	slices.SortFunc(u.troubles, func(a, b trouble) int { return cmp.Compare(a.lid, b.lid) })
	return u, nil
}

// unit searches the LIDs of a unit, see findUnits.
func (w *searcher) unit(dests []dest) {
	w.left = append(w.left[:0], dests...)
	for len(w.left) > 0 {
		n := w.bundle()
		w.dests = w.left[:n]
		if !w.together() {
			for i := range n {
				w.apart(w.left[i : i+1])
			}
		}
		w.left = w.left[n:]
	}
}

// together searches w.dests at once. It returns false if some packets are lost or loop.
func (w *searcher) together() bool {
	s := w.nodes
	for _, w.c = range w.classes {
		inSearch := w.reach()
		lost := slices.ContainsFunc(s.reached.Order, func(x int32) bool { return s.lost[x] })
		if lost || s.cycles.Find(len(w.c.nodes), inSearch) > 0 {
			return false
		}
		w.order = append(w.order, s.reached.Order...)
		w.addDependencies()
	}
	return true
}

// apart searches one LID with packets that are lost or loop, and adds the trouble. Only packets
// that can still arrive add dependencies.
func (w *searcher) apart(dests []dest) {
	w.dests = dests
	clear(w.nodes.flags)
	for _, w.c = range w.classes {
		w.trace()
		w.flag()
		w.keepLive()
		w.addDependencies()
	}
	w.order = w.order[:0]
	d, bad := &dests[0], trouble{lid: dests[0].lid}
	for i, flags := range w.nodes.flags {
		x := &w.senders[i]
		pairs := int64(len(x.ports))
		for _, port := range x.ports {
			if port == w.f.LIDPort(d.lid) {
				pairs--
			}
		}
		for at, flag := range []uint8{canDie, canLoop} {
			if flags&flag == 0 {
				continue
			}
			if !d.ca || i >= w.ports0 {
				at += tallyManagementDead
			}
			bad.add(at, pairs, i)
		}
	}
	if bad != (trouble{lid: d.lid}) {
		w.troubles = append(w.troubles, bad)
	}
}

// flag notes what may happen to the packets of each sender.
func (w *searcher) flag() {
	s, d := w.nodes, &w.dests[0]
	for i := range w.senders {
		x := &w.senders[i]
		if w.owns(x, d) || !w.sends(x, w.c, d.lid) {
			continue
		}
		start := w.c.node[x.in]
		joined := d.root >= 0 && w.parts.Of[x.s] == w.parts.Of[d.root]
		if joined && s.dead.Reached(start) {
			s.flags[i] |= canDie
		}
		if s.loop.Reached(start) {
			s.flags[i] |= canLoop
		}
	}
}

// bundle moves the LIDs that can be searched with the first one to the front of w.left, and returns
// their number. At the root their packets leave for the owner; elsewhere they have the same choices
// and SLs. The root's own LID may join LIDs of CAs, since its packets add no other dependencies.
func (w *searcher) bundle() int {
	first := w.left[0]
	if len(w.left) == 1 || !first.ca || first.root < 0 {
		return 1
	}
	w.same = w.same[:0]
	for i := range w.left {
		w.same = append(w.same, w.leavesAt(&w.left[i]))
	}
	if !w.same[0] {
		return 1
	}
	same := 1
	for s := int32(0); s < int32(w.n) && same > 0; s++ {
		if s == first.root {
			continue
		}
		same = 0
		for k := range w.t.PLFTs {
			same = w.compare(k, s)
		}
	}
	for _, row := range w.slRows {
		for i := range w.left {
			w.same[i] = w.same[i] && row[w.left[i].lid] == row[first.lid]
		}
	}
	n := 0
	for i, same := range w.same {
		if same {
			w.left[n], w.left[i] = w.left[i], w.left[n]
			n++
		}
	}
	return n
}

// leavesAt returns true if packets for a LID leave the root for the owner by any PLFT.
func (w *searcher) leavesAt(d *dest) bool {
	for k, t := range w.t.PLFTs {
		if d.lid > t.Ports.MaxLID() {
			return false
		}
		choices := w.t.Choices(k, fabric.NodeID(d.root), d.lid)
		if choices.Len() != 1 || !choices.Has(d.last) {
			return false
		}
	}
	return true
}

// compare clears same for the LIDs for which switch s chooses differently than for the first one.
// It returns how many other LIDs remain.
func (w *searcher) compare(plft int, s int32) (n int) {
	t := w.t.PLFTs[plft]
	choices, static := t.Row(fabric.NodeID(s)), t.Ports.Row(fabric.NodeID(s))
	lid := w.left[0].lid
	choice, port := choices[lid], static[lid]
	var ports [4]uint64 // of the first LID's group, if that has its static port: any may be static
	if state, group := t.At(fabric.NodeID(s), lid); state != adaptive.Static && group >= 0 {
		copy(ports[:], w.groups[s].ports[group*w.words:(group+1)*w.words])
	}
	if ports[port>>6]>>(port&63)&1 == 0 {
		ports = [4]uint64{}
	}
	for i := range w.left {
		if !w.same[i] {
			continue
		}
		lid := w.left[i].lid
		if p := static[lid]; choices[lid] == choice && (p == port || ports[p>>6]>>(p&63)&1 != 0) {
			n++
		} else {
			w.same[i] = false
		}
	}
	return n - 1
}

// prove sets the proof for a certificate. It returns false if the graph has a cycle.
func (p *choicePlan) prove(r *Result, g *dependencyGraph, management bool) bool {
	if p.copies != nil {
		g = g.copies(newChannels(p.f, p.copies...))
	}
	order, ok := g.order()
	if ok {
		r.proof = &certificateProof{management: management, graph: g, order: order, fromCAs: p.fromCAs(func(int, fabric.PortID) uint16 { return 0xffff })}
	}
	return ok
}
