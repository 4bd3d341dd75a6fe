package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
)

// Hop is a channel that leaves a switch. Its LID is the destination of a packet that waits for the
// next channel of the cycle, while it holds the channel or is in the buffer behind it.
type Hop = lft.Hop

// Reason tells why a packet waits.
type Reason = word[reasons]

type reasons struct{}

func (reasons) names() (what string, list []string) {
	return "reason", []string{"no room", "held", "behind", "starved"}
}

const (
	// NoRoom: the buffer behind the channel is full.
	NoRoom Reason = iota
	// Held: another packet has the channel.
	Held
	// Behind: another packet is ahead of it in the channel's queue.
	Behind
	// Starved: with flits, the rest of the packet does not arrive, since another
	// copy of it is blocked at the previous switch.
	Starved
)

// Wait is a packet, and why it waits for the packet of the next Wait.
type Wait struct {
	Src  fabric.GUID `json:"src"` // of the packet's sender: the CA or router
	DLID fabric.LID  `json:"dlid"`
	// For is the channel for which the packet waits or, if Starved, by which it arrives. Its
	// LID is the DLID of the next Wait's packet.
	For    Hop    `json:"for"`
	Reason Reason `json:"reason"`
}

// Deadlock is a cycle of packets that wait for each other.
type Deadlock struct {
	At      float64 `json:"at_ns"` // when it was found
	Message string  `json:"message"`
	Witness []Hop   `json:"witness"` // in the form of check's credit-loop
	Waits   []Wait  `json:"waits"`
}

// DeadlockError reports a cycle of packets that wait for each other.
type DeadlockError struct {
	At     Time   // when it was found; it may have begun earlier
	Copies int64  // packets under way then, each copy counted
	Waits  []Wait // each waits for the next, the last for the first
}

// Channels lists the channels that packets in the cycle wait for, each once,
// in the form of verify's witnesses.
func (e *DeadlockError) Channels() []Hop {
	waited := text.Each(text.Where(e.Waits, func(w Wait) bool { return w.Reason != Starved }), func(w Wait) Hop { return w.For })
	var hops []Hop
	for i, h := range waited {
		// A worm that waits for a channel, and the worm that holds this channel and
		// waits for room behind it, both name it: list it once.
		next := waited[(i+1)%len(waited)]
		if h.Switch != next.Switch || h.Port != next.Port || h.VL != next.VL {
			hops = append(hops, h)
		}
	}
	return hops
}

func (e *DeadlockError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "deadlock at %s: ", e.At)
	for i, w := range e.Waits {
		if i > 0 {
			b.WriteString(", which waits for ")
		}
		fmt.Fprintf(&b, "%s from %s at %s on VL %d (%s)", Hop{LID: w.DLID}.Target(), w.Src, w.For, w.For.VL, w.Reason)
	}
	b.WriteString(", which waits for the first")
	return b.String()
}

// edge says that the first packet of a buffer must wait for the first packet
// of buffer `to`.
type edge struct {
	out    int32 // channel that is waited for
	to     int32 // channel whose buffer has the packet that is waited for
	reason Reason
}

// waitGraph finds which buffers' first packets wait for which others. A packet
// leaves only when all its waits have ended, so a cycle of waits never ends. A
// packet that chooses again needs the end of only one wait: see movable. A
// packet that waits for a link in use, or for credits on their way, waits for no
// packet.
type waitGraph struct {
	s       *Sim
	stuck   bool   // no event is left, so no other packet will come
	movable []bool // by channel, see findMovable; nil if no packet chooses again
	list    []edge // scratch
}

// deadlock returns a *DeadlockError if packets wait for each other in a cycle.
func (s *Sim) deadlock() error {
	g := &waitGraph{s: s, stuck: s.events.len() == 0}
	if s.net.Adaptive != nil && s.cfg.ChooseAgain {
		g.findMovable()
	}
	var to []int32
	path := graph.FirstCycle(len(s.channels), func(in int32) []int32 {
		to = to[:0]
		if g.movable == nil || !g.movable[in] {
			for _, e := range g.waits(in) {
				to = append(to, e.to)
			}
		}
		return to
	})
	if path == nil {
		return nil
	}
	edges := make([]edge, len(path))
	for i, in := range path {
		list := g.waits(in)
		next := path[(i+1)%len(path)]
		edges[i] = list[slices.IndexFunc(list, func(e edge) bool { return e.to == next })]
	}
	return g.report(path, edges)
}

// findMovable finds the buffers whose first packets can leave, now or later: all packets that they
// wait for can leave or, for a packet that chooses again, one of them. Each of the other packets
// waits for another of them, so they have a cycle. It takes O(waits).
func (g *waitGraph) findMovable() {
	n := len(g.s.channels)
	g.movable = make([]bool, n)
	needs := make([]int, n) // how many of its waits must end
	waiters := make([][]int32, n)
	var free []int32
	for in := range int32(n) {
		list := g.waits(in)
		needs[in] = len(list)
		if needs[in] == 0 {
			free = append(free, in)
			continue
		}
		if g.s.cells.items[g.s.channels[in].head].state == cellChoosing {
			needs[in] = 1
		}
		for _, e := range list {
			waiters[e.to] = append(waiters[e.to], in)
		}
	}
	for len(free) > 0 {
		to := free[len(free)-1]
		free = free[:len(free)-1]
		g.movable[to] = true
		for _, in := range waiters[to] {
			if needs[in]--; needs[in] == 0 {
				free = append(free, in)
			}
		}
	}
}

func (g *waitGraph) add(out, to int32, reason Reason) {
	if to != none && g.s.channels[to].head != none {
		g.list = append(g.list, edge{out, to, reason})
	}
}

// waits lists what the first packet of a buffer waits for; the list is valid until the next call.
func (g *waitGraph) waits(in int32) []edge {
	g.list = g.list[:0]
	c := g.s.channels[in].head
	switch {
	case c == none:
	case g.s.worms:
		g.wormWaits(&g.s.cells.items[c])
	case g.s.cells.items[c].state == cellWaiting:
		g.packetWaits(&g.s.cells.items[c])
	case g.s.cells.items[c].state == cellChoosing:
		ce := &g.s.cells.items[c]
		for b := ce.branch; b != none; b = g.s.branches.items[b].sibling {
			waits := len(g.list)
			if g.branchWaits(b, ce.flits); len(g.list) == waits { // this way is open now or soon
				g.list = g.list[:0]
				break
			}
		}
	}
	return g.list
}

func (g *waitGraph) packetWaits(ce *cell) {
	for b := ce.branch; b != none; b = g.s.branches.items[b].sibling {
		if !g.s.branches.items[b].granted {
			g.branchWaits(b, ce.flits)
		}
	}
}

// branchWaits lists what branch b of a packet waits for; flits is the size of the packet.
func (g *waitGraph) branchWaits(b, flits int32) {
	s := g.s
	br := &s.branches.items[b]
	o, pt := &s.channels[br.out], &s.ports[br.port]
	full := g.full(o, flits)
	if full {
		g.add(br.out, br.out, NoRoom)
	}
	switch s.cfg.Copying {
	case Reserving:
		if br.waits && br.prev != none {
			g.add(br.out, s.branches.items[br.prev].in, Behind)
		}
	case LockStep:
		if pt.taken != none {
			g.add(br.out, s.branches.items[pt.taken].in, Held)
		}
	}
	// If sizes differ, the packet whose turn it is may lack room although this
	// one has enough.
	if g.stuck && !full && br.waits && pt.taken == none && s.cfg.Copying != Reserving {
		if next := s.choose(o); next != b {
			first := &s.branches.items[next]
			if s.cfg.Copying == Independent && g.full(o, s.cells.items[first.cell].flits) {
				g.add(br.out, br.out, NoRoom) // the copy whose turn it is waits only for room
			} else {
				g.add(br.out, first.in, Behind)
			}
		}
	}
}

// full returns true if the buffer behind a channel has no room for the given
// flits. Credits on their way count as room.
func (g *waitGraph) full(o *channel, flits int32) bool {
	return o.credits < unlimited && int32(g.s.cfg.BufferFlits)-o.used < flits
}

func (g *waitGraph) wormWaits(ce *cell) {
	s := g.s
	switch ce.state {
	case cellWaiting:
		for b := ce.branch; b != none; b = s.branches.items[b].sibling {
			br := &s.branches.items[b]
			o := &s.channels[br.out]
			switch {
			case br.granted:
			case o.holder != none:
				holder := &s.branches.items[o.holder]
				if hc := &s.cells.items[holder.cell]; hc.gone < hc.flits {
					g.add(br.out, holder.in, Held)
				} else if g.full(o, 1) { // the holder's tail is in the output buffer
					g.add(br.out, br.out, NoRoom)
				}
			case br.prev != none:
				g.add(br.out, s.branches.items[br.prev].in, Behind)
			}
		}
	case cellGoing:
		flits := ce.flits
		for b := ce.branch; b != none; b = s.branches.items[b].sibling {
			br := &s.branches.items[b]
			o := &s.channels[br.out]
			blocks := br.taken-br.sent >= int32(s.cfg.OutputFlits)
			if s.cfg.OutputFlits == 0 {
				blocks = br.sent == ce.gone
			}
			if blocks && br.sent < flits && ce.arrived > ce.gone && s.ports[br.port].taken != b && g.full(o, 1) {
				g.add(br.out, br.out, NoRoom)
			}
		}
		if ce.parent != none && ce.arrived == ce.gone {
			parent := &s.branches.items[ce.parent]
			if parent.sent == ce.arrived && s.ports[parent.port].taken != ce.parent && !s.hasFlit(parent) {
				g.add(parent.out, parent.in, Starved)
			}
		}
	}
}

// report makes the error; its first Wait is for the lowest channel.
func (g *waitGraph) report(path []int32, edges []edge) error {
	s := g.s
	f := s.net.Fabric
	e := &DeadlockError{At: s.events.now, Copies: s.counts.Copies}
	least := 0
	for i := range edges {
		p, vl := s.sender(edges[i].out)
		if q, other := s.sender(edges[least].out); p < q || p == q && vl < other {
			least = i
		}
	}
	for k := range path {
		i := (least + k) % len(path)
		m := s.packets.items[s.cells.items[s.channels[path[i]].head].packet].msg
		next := s.packets.items[s.cells.items[s.channels[edges[i].to].head].packet].msg
		port, vl := s.sender(edges[i].out)
		at := lft.HopOf(f, port)
		at.VL, at.LID = vl, next.DLID
		e.Waits = append(e.Waits, Wait{
			Src: f.Node(f.Owner(m.Src)).GUID, DLID: m.DLID, Reason: edges[i].reason, For: at,
		})
	}
	return e
}
