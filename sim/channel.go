package sim

import (
	"fmt"

	"github.com/ibweave/ibweave/fabric"
)

// queue appends branch b to the list of those that wait for its channel.
func (s *Sim) queue(b int32) {
	br := &s.branches.items[b]
	o := &s.channels[br.out]
	br.waits = true
	br.prev, br.next = o.last, none
	if o.last == none {
		o.first = b
		s.ports[br.port].waiting |= 1 << s.vlOf(br)
	} else {
		s.branches.items[o.last].next = b
	}
	o.last = b
}

// unqueue takes branch b out of the list of its channel.
func (s *Sim) unqueue(b int32) {
	br := &s.branches.items[b]
	o := &s.channels[br.out]
	br.waits = false
	if br.prev == none {
		o.first = br.next
	} else {
		s.branches.items[br.prev].next = br.next
	}
	if br.next == none {
		o.last = br.prev
	} else {
		s.branches.items[br.next].prev = br.prev
	}
	if o.first == none && !s.worms {
		s.ports[br.port].waiting &^= 1 << s.vlOf(br)
	}
}

// nextVL returns the VL where port pt begins to look for packets: the one after the VL served last.
func (s *Sim) nextVL(pt *port) int32 {
	if vl := int32(pt.vl) + 1; vl < s.vls {
		return vl
	}
	return 0
}

// choose returns the branch that may use a channel next. At least one must
// wait for it.
func (s *Sim) choose(o *channel) int32 {
	first := o.first
	if first == o.last || s.cfg.Arbitration == FIFO || s.cfg.Copying == Reserving || s.ports[s.branches.items[first].port].isHost {
		return first
	}
	least, after := none, none // branches of the lowest input channel, and of the lowest above the one served last
	for b := first; b != none; b = s.branches.items[b].next {
		in := s.branches.items[b].in
		if least == none || in < s.branches.items[least].in {
			least = b
		}
		if in > o.served && (after == none || in < s.branches.items[after].in) {
			after = b
		}
	}
	if s.cfg.Arbitration == RoundRobin && after != none {
		return after
	}
	return least
}

// vlOf returns the VL on which a branch leaves.
func (s *Sim) vlOf(br *branch) int32 { return br.out - s.to[br.port]*s.vls }

// sender returns the port and VL that send into a channel.
func (s *Sim) sender(channel int32) (fabric.PortID, fabric.VL) {
	return fabric.PortID(s.to[channel/s.vls]), fabric.VL(channel % s.vls)
}

// enter appends cell c to the buffer of a channel (to). The flits take room there from now on,
// while they are still on the cable.
func (s *Sim) enter(c, to, flits int32) {
	s.counts.FlitHops += int64(flits)
	in := &s.channels[to]
	in.credits -= flits
	if in.used += flits; in.used > s.room {
		s.overfull(in)
	}
	if in.tail == none {
		in.head = c
	} else {
		s.cells.items[in.tail].next = c
	}
	in.tail = c
}

// makeRoom frees flits of the buffer of channel in; the
// credit for the sender leaves at time at.
func (s *Sim) makeRoom(in, flits int32, at Time) {
	o := &s.channels[in]
	o.used -= flits
	if o.used < 0 {
		s.fail(s.conservation("%d flits left a buffer of %d", flits, o.used+flits))
	}
	s.returning += int64(flits)
	at += s.cfg.CreditDelay
	if o.first != none || o.holder != none {
		s.push(at, evCredit, flits, in)
		return
	}
	if o.dueFlits != 0 && o.dueAt <= s.events.now {
		s.collectCredits(in, 0)
	}
	if o.dueFlits == 0 {
		o.dueAt, o.dueFlits = at, flits
		return
	}
	d := s.dues.get()
	s.dues.items[d] = due{at, flits, none}
	if o.lastLater == none {
		o.later = d
	} else {
		s.dues.items[o.lastLater].next = d
	}
	o.lastLater = d
}

// credit adds flits to the credits of a channel.
func (s *Sim) credit(o *channel, flits int32) {
	o.credits += flits
	s.returning -= int64(flits)
	if o.credits > s.room {
		s.overdrawn(o)
	}
}

// overfull and overdrawn end the simulation with an error about impossible counts.
func (s *Sim) overfull(o *channel) {
	s.fail(s.conservation("%d flits in a buffer of %d", o.used, s.cfg.BufferFlits))
}

func (s *Sim) overdrawn(o *channel) {
	s.fail(s.conservation("%d credits for a buffer of %d flits", o.credits, s.cfg.BufferFlits))
}

// collectCredits adds the credits that have arrived by now. If the channel still has fewer credits
// than need, later ones get events, as a packet waits for them.
func (s *Sim) collectCredits(channel, need int32) {
	o := &s.channels[channel]
	for o.dueFlits != 0 {
		switch {
		case o.dueAt <= s.events.now:
			s.credit(o, o.dueFlits)
		case o.credits < need:
			s.push(o.dueAt, evCredit, o.dueFlits, channel)
		default:
			return
		}
		d := o.later
		if d == none {
			o.dueFlits = 0
			return
		}
		next := &s.dues.items[d]
		o.dueAt, o.dueFlits, o.later = next.at, next.flits, next.next
		if o.later == none {
			o.lastLater = none
		}
		s.dues.put(d)
	}
}

// addBranch adds to cell c a branch that leaves by a port on channel out.
func (s *Sim) addBranch(c, port, out int32) {
	b := s.branches.get()
	ce := &s.cells.items[c]
	br := &s.branches.items[b]
	*br = branch{}
	br.cell, br.in, br.port, br.out = c, ce.in, port, out
	br.sibling, br.prev, br.next, br.child = ce.branch, none, none, none
	ce.branch = b
	ce.pending++
	ce.waiting++
}

// prune frees the branches of a cell.
func (s *Sim) prune(ce *cell) {
	for b := ce.branch; b != none; {
		next := s.branches.items[b].sibling
		s.branches.put(b)
		b = next
	}
	ce.branch = none
}

// remove frees a cell and its branches.
func (s *Sim) remove(c int32) {
	ce := &s.cells.items[c]
	s.prune(ce)
	s.counts.Copies--
	s.release(ce.packet)
	s.cells.put(c)
}

// release drops one reference to packet i.
func (s *Sim) release(i int32) {
	p := &s.packets.items[i]
	p.refs--
	if p.refs == 0 {
		s.packets.put(i)
	}
}

// ConservationError says that flits or credits were lost or made: a fault of
// the simulator.
type ConservationError struct {
	At  Time
	Msg string
}

func (e *ConservationError) Error() string {
	return fmt.Sprintf("the simulator is wrong: at %s %s", e.At, e.Msg)
}

func (s *Sim) conservation(format string, args ...any) error {
	return &ConservationError{s.events.now, fmt.Sprintf(format, args...)}
}

// verify counts all flits, credits and copies again, in time O(channels + copies).
func (s *Sim) verify() error {
	size := int32(s.cfg.BufferFlits)
	var missing, refs, cells int64
	for i := range s.channels {
		in := &s.channels[i]
		var used, count int32
		for c := in.head; c != none; c = s.cells.items[c].next {
			ce := &s.cells.items[c]
			if ce.in != int32(i) {
				return s.conservation("a packet is in the buffers %d and %d", ce.in, i)
			}
			flits := ce.flits
			if s.worms {
				sent := flits
				if ce.parent != none {
					parent := &s.branches.items[ce.parent]
					sent = parent.sent
					if s.ports[parent.port].taken == ce.parent {
						sent++
					}
				}
				if ce.gone > ce.arrived || ce.arrived > sent || sent > flits {
					return s.conservation("of %d flits %d were sent, %d have come and %d are gone", flits, sent, ce.arrived, ce.gone)
				}
				flits = sent - ce.gone
			}
			used += flits
			count++
		}
		if used != in.used {
			return s.conservation("%d flits are in a buffer that counts %d", used, in.used)
		}
		cells += int64(count)
		if in.credits >= unlimited { // to a host, or without a cable
			continue
		}
		if in.credits < 0 || in.credits+used > size {
			return s.conservation("%d credits for a buffer of %d flits that has %d", in.credits, size, used)
		}
		missing += int64(size - in.credits - used)
	}
	if missing != s.returning {
		return s.conservation("%d flits of credit are missing and %d on their way", missing, s.returning)
	}
	if buffered := int64(s.cells.live()); cells > buffered || buffered > s.counts.Copies {
		return s.conservation("%d packets in buffers, %d cells, %d copies", cells, buffered, s.counts.Copies)
	}
	for _, p := range s.packets.items {
		refs += int64(p.refs)
	}
	waiting := int64(0) // packets that wait for Startup
	if s.cfg.Startup > 0 {
		waiting = refs - s.counts.Copies
		if waiting > s.counts.Queued {
			return s.conservation("%d packets are at their hosts, of %d", waiting, s.counts.Queued)
		}
	}
	if refs-waiting != s.counts.Copies || waiting < 0 {
		return s.conservation("%d references to packets for %d copies", refs, s.counts.Copies)
	}
	return nil
}
