package verify

import (
	"math/bits"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/lft/adaptive"
)

// searcher searches the choices for LIDs. Its results are unions or sums, so it does not matter
// which worker has which LIDs.
type searcher struct {
	*choicePlan
	unicast, all *sharedGraph // dependencies: of packets between CA ports; in all, of others
	escape       bool         // dependencies on static ports only

	// The search of w.dests: one LID, or several behind one switch with the same
	// choices elsewhere.
	c       *class
	dests   []dest
	last    []uint64 // at the root: the ports to the owners
	sets    []uint64 // by node reached, in words: the set of ports by which packets may leave
	bind    []uint64 // likewise: the set of ports for which packets wait; sets itself unless escape
	order   []int32  // the nodes reached
	fromCAs int      // packets from CAs reach the first fromCAs of order

	left []dest // LIDs of the unit still to search
	same []bool // by index in left: can be searched with the first LID

	nodes    *nodeSearch
	troubles []trouble
}

// nodeSearch has the nodes that packets of one class reach, for one LID or
// several with the same choices.
type nodeSearch struct {
	lost    []bool // by node: some choice loses packets, or there is no choice
	reached *graph.Search[int32]
	// Nodes from which choices may lead to a node that loses packets, into a cycle, or to the owner.
	dead, loop, live *graph.Search[int32]
	cycles           graph.Strong[int32]
	flags            []uint8 // by sender: what may happen to its packets for the LID, in any class
}

// What may happen to packets.
const (
	canDie = 1 << iota
	canLoop
)

func newNodeSearch(nodes, senders int) *nodeSearch {
	s := &nodeSearch{lost: make([]bool, nodes), flags: make([]uint8, senders)}
	for _, x := range []**graph.Search[int32]{&s.reached, &s.dead, &s.loop, &s.live} {
		*x = graph.NewSearch[int32](nodes)
	}
	return s
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

// set returns the part of sets that is node x's.
func (w *searcher) set(x int32) []uint64 { return w.sets[int(x)*w.words : (int(x)+1)*w.words] }

// owns returns true if a sender's only port is the owner of the single LID in w.dests.
func (w *searcher) owns(x *senderGroup, d *dest) bool {
	return len(x.ports) == 1 && len(w.dests) == 1 && x.ports[0] == w.f.LIDPort(d.lid)
}

// reach finds the nodes that packets for w.dests reach, and those where packets are lost. It
// returns the edges between nodes reached.
func (w *searcher) reach() (inSearch graph.Next[int32]) {
	s, d := w.nodes, &w.dests[0]
	w.order = w.order[:0]
	clear(w.last)
	for _, d := range w.dests {
		if d.root >= 0 {
			w.last[d.last>>6] |= 1 << (d.last & 63)
		}
	}
	s.reached.Reset()
	next := w.next()
	choose := func(x int32) []int32 {
		s.lost[x] = !w.choose(x)
		return next(x)
	}
	w.fromCAs = 0
	for i := range w.senders {
		if i == w.ports0 && d.ca {
			w.fromCAs = len(s.reached.Order)
		}
		if x := &w.senders[i]; !w.owns(x, d) && w.sends(x, w.c, d.lid) {
			s.reached.Extend(choose, w.c.node[x.in])
		}
	}
	return func(x int32) []int32 {
		if !s.reached.Reached(x) {
			return nil
		}
		return next(x)
	}
}

// next lists the nodes to which the choices of a node lead, by port.
func (w *searcher) next() graph.Next[int32] {
	var list []int32
	return func(x int32) []int32 {
		list = list[:0]
		base := w.c.nodes[x].base
		for word := range w.words {
			for set := w.onward(x, word); set != 0; set &= set - 1 {
				list = append(list, w.c.next[base+int32(word*64+bits.TrailingZeros64(set))])
			}
		}
		return list
	}
}

// onward returns one word of the set of ports by which packets leave a node for other switches.
func (w *searcher) onward(x int32, word int) uint64 {
	return w.sets[int(x)*w.words+word] & w.toSwitch[int(w.c.nodes[x].s)*w.words+word]
}

// choose sets the ports by which packets leave a node, and those that they wait for, except ports
// that lose packets. It returns false if some port loses packets, or some PLFT that packets may
// take here has no port.
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
			continue // no packet takes this PLFT here
		}
		tables++
		for i := range dests {
			ok = w.addEntry(t, at.s, dests[i].lid, set, bind) && ok
		}
	}
	if tables > 1 {
		copy(bind, set) // it is not known which PLFT's static port packets are offered
	}
	return w.filter(x, set, bind) && ok && tables > 0
}

// addEntry adds the choices of an entry to set and bind. It returns false if there is no choice, or
// one is not a port of the switch.
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

// filter takes the ports that lose packets out of set and bind of node x. It returns false if there
// were any.
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

// trace finds the nodes that packets reach, and what may happen to packets at each.
func (w *searcher) trace() {
	s := w.nodes
	inSearch := w.reach()
	back := graph.NewCSR(len(w.c.nodes), inSearch).Reverse()
	s.cycles.Find(len(w.c.nodes), inSearch)
	var lost, loop, live []int32
	for _, x := range s.reached.Order {
		if s.lost[x] {
			lost = append(lost, x)
		}
		if s.cycles.Of[x] >= 0 {
			loop = append(loop, x)
		}
		if w.arrives(x) {
			live = append(live, x)
		}
	}
	s.dead.Run(back.Next, lost...)
	s.loop.Run(back.Next, loop...)
	s.live.Run(back.Next, live...)
}

// arrives returns true if a choice at a node leads to the owner's port.
func (w *searcher) arrives(x int32) bool {
	if w.c.nodes[x].s != w.dests[0].root {
		return false
	}
	for i, set := range w.set(x) {
		if set&w.last[i] != 0 {
			return true
		}
	}
	return false
}

// keepLive keeps the choices that lead to nodes from which packets can arrive. If the static port
// is not among these choices, packets wait for all of them.
func (w *searcher) keepLive() {
	s := w.nodes
	w.order = append(w.order, s.reached.Order...)
	for _, x := range w.order {
		set, bind := w.set(x), w.bind[int(x)*w.words:(int(x)+1)*w.words]
		base := w.c.nodes[x].base
		waits := uint64(0)
		for word := range set {
			for onward := w.onward(x, word); onward != 0; onward &= onward - 1 {
				bit := bits.TrailingZeros64(onward)
				if !s.live.Reached(w.c.next[base+int32(word*64+bit)]) {
					set[word] &^= 1 << bit
				}
			}
			bind[word] &= set[word]
			waits |= bind[word]
		}
		if waits == 0 {
			copy(bind, set)
		}
	}
}

// addDependencies adds the dependencies at all nodes reached.
func (w *searcher) addDependencies() {
	for i, x := range w.order {
		if i < w.fromCAs {
			w.addOf(w.unicast, x)
		} else {
			w.addOf(w.all, x)
		}
	}
}

// addOf adds to g the dependencies of the channels by which packets leave a node.
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
			if bind[0]&1 != 0 { // it arrives at port 0
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

// addLanes adds the dependencies of channel ch of g, which has several VLs. At the end of the
// channel is node to, or an owner if to is below 0.
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
