package verify

import (
	"math/bits"

	"github.com/ibweave/ibweave/internal/graph"
)

// nodeSearch holds the nodes that packets for one LID of one class reach, or
// for several LIDs with the same choices.
type nodeSearch struct {
	lost    []bool // by node: a choice loses packets, or there is none
	reached *graph.Search[int32]
	// The nodes from which some choices lead to a node that loses packets, into a cycle, and
	// to the owner.
	dead, loop, live *graph.Search[int32]
	cycles           graph.Strong[int32]
	flags            []uint8 // by sender: what can become of its packets for the LID, in any class
}

// What can become of packets.
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

// The tallies of a trouble of adaptive tables: of CA and router ports and a CA LID, and of
// management. They are from the first sender.
const (
	tallyDead = iota
	tallyLoop
	tallyManagementDead
	tallyManagementLoop
	numAdaptiveTallies
)

// apart checks one destination by itself, with packets that are lost or loop. Only the
// packets that can still arrive make dependencies.
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

// reach finds the nodes that packets for w.dests reach, and where they are lost. It returns where
// choices lead from these nodes.
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

// trace finds out of all nodes that packets reach what can become of them there.
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

// arrives returns true if a choice of a node leads straight to the owner.
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

// next lists the nodes that the choices of one lead to, by port.
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

// flag notes what can become of the packets of each sender.
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

// keepLive keeps the choices that lead to nodes from which packets can arrive. Where the
// static port is none of them, packets wait for all that are.
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
