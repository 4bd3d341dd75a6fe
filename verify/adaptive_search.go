package verify

import (
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft/adaptive"
)

// searcher searches the nodes of LIDs. What it finds are unions, so that it does not matter
// which worker has which LIDs.
type searcher struct {
	*choicePlan
	unicast, all *sharedGraph // dependencies: of pairs of CA ports, and of other pairs alone
	escape       bool         // dependencies are those on static ports

	// The search of one LID, or of several behind one switch that have the same choices
	// elsewhere.
	c       *class
	dests   []dest
	last    []uint64 // ports from the root to the owners
	sets    []uint64 // by node that is reached: the ports that packets may leave by, words for each
	bind    []uint64 // the same: the ports that they wait for; sets itself unless escape
	order   []int32  // the nodes that are reached
	fromCAs int      // how many of order packets of CAs reach, the first ones

	left []dest // of the unit
	same []bool // by index in left: can be searched with the first

	nodes    *nodeSearch
	troubles []trouble
}

func newSearcher(p *choicePlan, unicast, all *sharedGraph, escape bool) *searcher {
	most := 0
	for _, c := range p.classes {
		most = max(most, len(c.nodes))
	}
	w := &searcher{
		choicePlan: p, unicast: unicast, all: all, escape: escape, last: make([]uint64, p.words),
		sets: make([]uint64, most*p.words), nodes: newNodeSearch(most, len(p.senders)),
	}
	if w.bind = w.sets; escape {
		w.bind = make([]uint64, len(w.sets))
	}
	return w
}

// unit searches the LIDs of a unit.
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

// together checks w.dests. It returns false if packets for some are lost or loop.
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

// bundle brings the LIDs that are left and can be searched with the first of them to the
// front, and counts them: at the root their packets leave for the owner, and elsewhere they
// have the same choices and SLs. The LID of the root itself may be among those of CAs, since
// its packets make no other dependencies.
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

// leavesAt returns true if packets for a LID leave the root for the owner, whichever PLFT they take.
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

// compare clears same for the LIDs for which switch s chooses differently than for the first
// LID. It returns how many LIDs remain, the first not counted.
func (w *searcher) compare(plft int, s int32) (n int) {
	t := w.t.PLFTs[plft]
	choices, static := t.Row(fabric.NodeID(s)), t.Ports.Row(fabric.NodeID(s))
	lid := w.left[0].lid
	choice, port := choices[lid], static[lid]
	var ports [4]uint64 // of the group, if it has the static port: others of it make no difference
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

// set is the set of a node.
func (w *searcher) set(x int32) []uint64 { return w.sets[int(x)*w.words : (int(x)+1)*w.words] }

// owns returns true if the only port of a sender is the owner of the LIDs.
func (w *searcher) owns(x *senderGroup, d *dest) bool {
	return len(x.ports) == 1 && len(w.dests) == 1 && x.ports[0] == w.f.LIDPort(d.lid)
}

// onward returns one word of the set of ports by which packets leave a node for other switches.
func (w *searcher) onward(x int32, word int) uint64 {
	return w.sets[int(x)*w.words+word] & w.toSwitch[int(w.c.nodes[x].s)*w.words+word]
}

// choose fills in the ports by which packets leave a node, and those that they wait for,
// except ports where packets are lost. It returns false if there are such ports, or if a
// PLFT that packets may take there leaves them no port.
func (w *searcher) choose(x int32) (ok bool) {
	at := &w.c.nodes[x]
	set, bind := w.set(x), w.bind[int(x)*w.words:(int(x)+1)*w.words]
	for i := range set {
		set[i], bind[i] = 0, 0
	}
	dests := w.dests
	if !w.escape && at.s != dests[0].root {
		dests = dests[:1] // the others choose the same
	}
	first, end := int(at.plft), int(at.plft)+1
	if at.plft == anyPLFT {
		first, end = 0, len(w.t.PLFTs)
	}
	tables := 0
	ok = true
	for _, t := range w.t.PLFTs[min(first, len(w.t.PLFTs)):min(end, len(w.t.PLFTs))] {
		if at.plft == anyPLFT && t.Lacks(fabric.NodeID(at.s)) {
			continue // no packet takes it there
		}
		tables++
		for i := range dests {
			ok = w.addEntry(t, at.s, dests[i].lid, set, bind) && ok
		}
	}
	if tables > 1 {
		copy(bind, set) // static ports of which PLFT a packet is offered is not known
	}
	return w.filter(x, set, bind) && ok && tables > 0
}

// addEntry adds the choices of an entry to set and bind. It returns false if the entry has
// no choice, or one that is no port of the switch.
func (w *searcher) addEntry(p *adaptive.PLFT, s int32, lid fabric.LID, set, bind []uint64) (ok bool) {
	row := p.Ports.Row(fabric.NodeID(s))
	if int(lid) >= len(row) {
		return false
	}
	static := row[lid]
	if static <= w.numPorts[s] {
		set[static>>6] |= 1 << (static & 63)
		bind[static>>6] |= 1 << (static & 63)
		ok = true
	}
	state, group := p.At(fabric.NodeID(s), lid)
	if state == adaptive.Static || group < 0 {
		return ok
	}
	g := &w.groups[s]
	free := w.escape && state == adaptive.Free && static <= w.numPorts[s]
	for i, ports := range g.ports[group*w.words : (group+1)*w.words] {
		ok = ok || ports != 0 && static == fabric.NoPath
		set[i] |= ports
		if !free {
			bind[i] |= ports
		}
	}
	return ok && !g.beyond[group]
}

// filter takes the ports out of the sets of a node where packets are lost.
func (w *searcher) filter(x int32, set, bind []uint64) (ok bool) {
	at := &w.c.nodes[x]
	ok = true
	for i := range set {
		good := w.toSwitch[int(at.s)*w.words+i]
		if at.s == w.dests[0].root {
			good |= w.last[i]
		}
		if w.c.kept != nil {
			kept := w.c.kept[int(x)*w.words+i]
			if at.own {
				set[i] &= kept
			}
			good &= kept
		}
		ok = ok && set[i]&^good == 0
		set[i] &= good
		bind[i] &= good
	}
	return ok
}

// addDependencies adds those of the nodes that are reached.
func (w *searcher) addDependencies() {
	for i, x := range w.order {
		if i < w.fromCAs {
			w.addOf(w.unicast, x)
		} else {
			w.addOf(w.all, x)
		}
	}
}

// addOf adds the dependencies of the channels by which packets leave a node.
func (w *searcher) addOf(g *sharedGraph, x int32) {
	base, words, deps := int(w.c.nodes[x].base), g.words, g.Bits
	for word, set := range w.set(x) {
		if word == 0 {
			set &^= 1 // at port 0 the packet has arrived
		}
		for ; set != 0; set &= set - 1 {
			out := word*64 + bits.TrailingZeros64(set)
			to := w.c.next[base+out]
			if g.vls > 1 {
				w.addLanes(g, (base+out)*g.vls+w.laneOf(w.c, x, fabric.PortNum(out)), to)
				continue
			}
			if to < 0 {
				g.take(base + out)
				continue
			}
			bind := w.bind[int(to)*w.words : (int(to)+1)*w.words]
			if bind[0]&1 != 0 { // for port 0
				g.take(base + out)
			}
			for i := range words { // the sets of the graph have no port 0
				waits := bind[i] >> 1
				if i+1 < len(bind) {
					waits |= bind[i+1] << 63
				}
				addBits(deps, (base+out)*words+i, waits)
			}
		}
	}
}

// addLanes adds the dependencies of a channel, one of several VLs, that leads to a node, or to
// an owner where that is below 0.
func (w *searcher) addLanes(g *sharedGraph, ch int, to int32) {
	if to < 0 {
		g.take(ch)
		return
	}
	for word, set := range w.bind[int(to)*w.words : (int(to)+1)*w.words] {
		for ; set != 0; set &= set - 1 {
			if out := word*64 + bits.TrailingZeros64(set); out == 0 {
				g.take(ch)
			} else {
				g.depend(ch, (out-1)*g.vls+w.laneOf(w.c, to, fabric.PortNum(out)))
			}
		}
	}
}
