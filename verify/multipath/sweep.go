package multipath

import (
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// A sweep is the way to look at most LIDs, where each switch treats all its packets of a
// class alike and sends some itself, so that packets reach all switches. If no choice anywhere
// loses packets, all its dependencies are made, and no order of the switches need be
// found: a sequence of choices that loops closes a cycle of dependencies. If
// there is a cycle the LIDs are searched again one by one.
//
// From one LID to the next few switches change their choices, most of them near the old
// and the new owner. Only what they depend on, and what depends on them, is added.

// canSweep says whether LIDs can be swept.
func (p *plan) canSweep() bool {
	for _, c := range p.classes {
		if len(c.nodes) != p.n {
			return false
		}
	}
	return p.opt.PathSLs == nil && !(p.certain && p.opt.UnknownSLs)
}

// swept is the choices of a class for the LID before, and what they are now.
type swept struct {
	sets    []uint64 // as worker.sets
	valid   bool     // the dependencies of sets have been added
	changed []int32
}

// sweep adds the dependencies of w.dests. It returns false and adds nothing if some choice
// loses packets.
func (w *worker) sweep() bool {
	w.begin()
	sets, bind := w.sets, w.bind
	defer func() { w.sets, w.bind = sets, bind }()
	for i := range w.swept {
		x := &w.swept[i]
		w.c, w.sets, w.bind = w.classes[i], x.sets, x.sets
		if !w.chooseAll(x) {
			x.valid = false
			return false
		}
	}
	for i := range w.swept {
		x := &w.swept[i]
		w.c, w.sets, w.bind = w.classes[i], x.sets, x.sets
		for _, s := range x.changed {
			w.addOf(w.all, s)
			if x.valid {
				w.addTo(w.all, s)
			}
		}
		x.valid = true
	}
	return true
}

// chooseAll fills in the choices of all switches. It returns false if some lose packets, or
// send such as cannot arrive.
func (w *worker) chooseAll(x *swept) bool {
	x.changed = x.changed[:0]
	old, root := make([]uint64, w.words), w.dests[0].root
	for s := range int32(w.n) {
		set := w.set(s)
		copy(old, set)
		ok := w.choose(s)
		if root < 0 || w.parts.Of[s] != w.parts.Of[root] { // packets cannot arrive from there
			ok = !slices.ContainsFunc(set, func(ports uint64) bool { return ports != 0 })
		}
		if !ok {
			return false
		}
		differs := uint64(0)
		for i := range set {
			differs |= set[i] ^ old[i]
		}
		if !x.valid || differs != 0 {
			x.changed = append(x.changed, s)
		}
	}
	return true
}

// addTo adds the dependencies of the channels that lead to a node.
func (w *worker) addTo(g *cdg, x int32) {
	at := &w.c.nodes[x]
	for word := range w.words {
		for set := w.toSwitch[int(at.s)*w.words+word]; set != 0; set &= set - 1 {
			back := int(at.base) + word*64 + bits.TrailingZeros64(set)
			from := w.c.next[back]
			num := int32(w.f.Peer(fabric.PortID(back))) - w.c.nodes[from].base
			if bit := uint64(1) << (num & 63); w.sets[int(from)*w.words+int(num>>6)]&bit != 0 {
				w.addPorts(g, from, int(num>>6), bit)
			}
		}
	}
}
