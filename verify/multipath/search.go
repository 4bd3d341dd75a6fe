package multipath

import (
	"math/bits"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft/adaptive"
)

// worker searches the nodes of LIDs. What it finds are unions, so that it does not matter
// which worker has which LIDs.
type worker struct {
	*plan
	unicast, all *cdg // dependencies: of pairs of CA ports, and of other pairs alone
	escape       bool // dependencies are those on static ports

	// The search of one LID, or of several behind one switch that have the same choices
	// elsewhere.
	c       *class
	dests   []dest
	last    []uint64 // ports from the root to the owners
	state   []uint8  // by node
	sets    []uint64 // by node that is reached: the ports that packets may leave by, words for each
	bind    []uint64 // the same: the ports that they wait for
	order   []int32  // the nodes that are reached, each after those that it leads to if none loops
	fromCAs int      // how many of order packets of CAs reach, the first ones
	stack   []frame
	slow    *slowSearch // of LIDs with packets that are lost or loop; nil before the first

	troubles []trouble
}

// frame is a node on the path of the depth-first search.
type frame struct {
	x    int32
	word int
	left uint64 // of the word: ports that are not followed yet
}

// The states of a node.
const (
	stateNew = iota
	stateOpen
	stateDone
)

func newWorker(p *plan, unicast, all *cdg, escape bool) *worker {
	most := 0
	for _, c := range p.classes {
		most = max(most, len(c.nodes))
	}
	return &worker{
		plan: p, unicast: unicast, all: all, escape: escape, last: make([]uint64, p.words),
		state: make([]uint8, most), sets: make([]uint64, most*p.words), bind: make([]uint64, most*p.words),
	}
}

// unit searches the LIDs of a unit.
func (w *worker) unit(dests []dest) {
	for len(dests) > 0 {
		var rest []dest
		w.dests, rest = w.bundle(dests)
		if !w.together() {
			for i := range w.dests {
				w.apart(w.dests[i : i+1])
			}
		}
		dests = rest
	}
}

// together checks w.dests. It returns false if packets for some are lost or loop.
func (w *worker) together() bool {
	for _, w.c = range w.classes {
		if !w.search() {
			return false
		}
		w.addDependencies()
	}
	return true
}

// bundle returns the first of some destinations with those that can be searched with it,
// and the others.
func (w *worker) bundle(dests []dest) (together, rest []dest) { return dests[:1], dests[1:] }

// set is the set of a node.
func (w *worker) set(x int32) []uint64 { return w.sets[int(x)*w.words : (int(x)+1)*w.words] }

// search finds the nodes that packets for the LIDs reach. It returns false if some packets
// are lost or loop, and has then looked at some nodes only.
func (w *worker) search() bool {
	w.begin()
	d := &w.dests[0]
	w.fromCAs = 0
	for i := range w.senders {
		x := &w.senders[i]
		if i == w.ports0 && d.ca {
			w.fromCAs = len(w.order)
		}
		if w.owns(x, d) || !w.sends(x, w.c, d.lid) {
			continue
		}
		if start := w.c.node[x.in]; w.state[start] == stateNew && !w.visit(start) {
			return false
		}
	}
	return true
}

// owns says whether the only port of a sender is the owner of the LIDs.
func (w *worker) owns(x *sender, d *dest) bool {
	return len(x.ports) == 1 && len(w.dests) == 1 && x.ports[0] == w.f.LIDPort(d.lid)
}

// visit searches from a node that is new.
func (w *worker) visit(start int32) bool {
	if !w.open(start) {
		return false
	}
	for len(w.stack) > 0 {
		at := &w.stack[len(w.stack)-1]
		if at.left == 0 {
			if at.word++; at.word < w.words {
				at.left = w.onward(at.x, at.word)
				continue
			}
			w.state[at.x] = stateDone
			w.order = append(w.order, at.x)
			w.stack = w.stack[:len(w.stack)-1]
			continue
		}
		out := fabric.PortID(at.word*64 + bits.TrailingZeros64(at.left))
		at.left &= at.left - 1
		next := w.c.node[w.f.Peer(w.f.PortBase(fabric.NodeID(w.c.nodes[at.x].s))+out)]
		switch w.state[next] {
		case stateOpen:
			return false
		case stateNew:
			if !w.open(next) {
				return false
			}
		}
	}
	return true
}

// onward is a word of the ports by which packets leave a node for other switches.
func (w *worker) onward(x int32, word int) uint64 {
	return w.sets[int(x)*w.words+word] & w.toSwitch[int(w.c.nodes[x].s)*w.words+word]
}

// open begins with a node. It returns false if a choice of it loses packets.
func (w *worker) open(x int32) bool {
	w.stack = append(w.stack, frame{x: x})
	w.state[x] = stateOpen
	ok := w.choose(x)
	w.stack[len(w.stack)-1].left = w.onward(x, 0)
	return ok
}

// choose fills in the ports by which packets leave a node and those that they wait for,
// without those where they are lost. It returns false if there are such, or no ports.
func (w *worker) choose(x int32) (ok bool) {
	at := &w.c.nodes[x]
	set, bind := w.set(x), w.bind[int(x)*w.words:(int(x)+1)*w.words]
	clear(set)
	clear(bind)
	ok = true
	for i := range w.dests {
		first, end := int(at.plft), int(at.plft)+1
		if at.plft == anyPLFT {
			first, end = 0, len(w.t.PLFTs)
		}
		for k := first; k < min(end, len(w.t.PLFTs)); k++ {
			ok = w.addEntry(k, at.s, w.dests[i].lid, set, bind) && ok
		}
		if i == 0 && !w.escape && (at.s != w.dests[0].root) {
			break // the others choose the same
		}
	}
	return w.filter(x, set, bind) && ok
}

// addEntry adds the choices of an entry to sets. It returns false if one is no port of the
// switch.
func (w *worker) addEntry(plft int, s int32, lid fabric.LID, set, bind []uint64) (ok bool) {
	p := w.t.PLFTs[plft]
	if lid > p.Ports.MaxLID() {
		return true // no path
	}
	ok = true
	static := p.Ports.Row(fabric.NodeID(s))[lid]
	state, group := p.At(fabric.NodeID(s), lid)
	free := w.escape && state == adaptive.Free
	switch {
	case static == fabric.NoPath:
		free = false
	case static > w.f.Node(fabric.NodeID(s)).NumPorts:
		ok, free = false, false
	default:
		set[static>>6] |= 1 << (static & 63)
		bind[static>>6] |= 1 << (static & 63)
	}
	if state == adaptive.Static || group < 0 {
		return ok
	}
	g := &w.groups[s]
	for i, ports := range g.ports[group*w.words : (group+1)*w.words] {
		set[i] |= ports
		if !free {
			bind[i] |= ports
		}
	}
	return ok && !g.beyond[group]
}

// filter takes the ports out of the sets of a node where packets are lost.
func (w *worker) filter(x int32, set, bind []uint64) (ok bool) {
	at := &w.c.nodes[x]
	ok = true
	any, unsent := uint64(0), uint64(0)
	for i := range set {
		good := w.toSwitch[int(at.s)*w.words+i]
		if at.s == w.dests[0].root {
			good |= w.last[i]
		}
		if lanes := w.c.lanes; lanes != nil {
			kept := uint64(0)
			for vl := range w.vls {
				kept |= lanes[(int(x)*len(w.vls)+vl)*w.words+i]
			}
			if at.own {
				unsent |= set[i] &^ kept
				set[i] &= kept
			}
			good &= kept
		}
		ok = ok && set[i]&^good == 0
		set[i] &= good
		bind[i] &= good
		any |= set[i]
	}
	return ok && any|unsent != 0
}

// addDependencies adds those of the nodes that are reached.
func (w *worker) addDependencies() {
	for i, x := range w.order {
		g := w.all
		if i < w.fromCAs {
			g = w.unicast
		}
		at := &w.c.nodes[x]
		base := w.f.PortBase(fabric.NodeID(at.s))
		for word, set := range w.set(x) {
			for ; set != 0; set &= set - 1 {
				bit := bits.TrailingZeros64(set)
				if num := word*64 + bit; num > 0 {
					w.addFrom(g, x, base+fabric.PortID(num), word, uint64(1)<<bit)
				}
			}
		}
	}
}

// addFrom adds the dependencies of the channels that packets leave a node by.
func (w *worker) addFrom(g *cdg, x int32, out fabric.PortID, word int, bit uint64) {
	for vl := range w.vls {
		if w.c.lanes != nil && w.c.lanes[(int(x)*len(w.vls)+vl)*w.words+word]&bit == 0 {
			continue
		}
		ch := int(out)*len(w.vls) + vl
		peer := w.f.Peer(out)
		if !w.f.IsSwitch(w.f.Owner(peer)) {
			g.end(ch)
			continue
		}
		next := w.c.node[peer]
		waits, row := w.bind[int(next)*w.words:(int(next)+1)*w.words], g.row(ch)
		if waits[0]&1 != 0 { // for port 0
			g.end(ch)
		}
		for i := range row {
			set := waits[i%w.words]
			if w.c.lanes != nil {
				set &= w.c.lanes[int(next)*len(row)+i]
			}
			if i%w.words == 0 {
				set &^= 1 // port 0 waits for nothing
			}
			if set != 0 {
				or(&row[i], set)
			}
		}
	}
}
