package sim

import (
	"math/bits"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/mft"
)

// Virtual cut-through: a packet is sent when the buffer at the other end has room
// for all of it, and then goes through without a stop. So all that follows is known
// when it is sent. A packet and hop have one event, where the packet may ask for its
// output ports, and others only where something waits: for the port, for the head of the
// buffer, for the credit.

// ready has a packet that came by channel in ask for its output ports if it is the first
// of its buffer.
func (s *Sim) ready(c, in int32) {
	ce, lane := &s.cells.items[c], &s.channels[in]
	switch {
	case lane.head != c:
		ce.state = cellReady
	case lane.freeAt > s.events.now:
		ce.state = cellReady
		s.push(lane.freeAt, evBegin, c, 0)
	case ce.port == none || !s.moveAt(c, ce, ce.port, ce.out):
		s.stay(c, ce)
	}
}

// askFirst has the first packet of a buffer, which is ready, ask for its output ports.
func (s *Sim) askFirst(c int32, ce *cell) {
	if ce.port == none || !s.moveAt(c, ce, ce.port, ce.out) {
		s.stay(c, ce)
	}
}

// stay has the first packet of a buffer, which cannot go at once, wait for its
// output ports. A packet without an output port is dropped.
func (s *Sim) stay(c int32, ce *cell) {
	if ce.port == none && s.net.Adaptive != nil && ce.dlid < mft.MinMLID {
		s.pick(ce)
		switch {
		case ce.port == none:
		case s.moveAt(c, ce, ce.port, ce.out):
			return
		case s.cfg.ChooseAgain && len(s.outlets) > 1:
			s.waitForAny(c, ce)
			return
		}
	}
	if ce.port == none {
		s.branchOut(c, ce)
	} else {
		s.addBranch(c, ce.port, ce.out)
	}
	ce.state = cellWaiting
	switch {
	case ce.branch != none:
		s.ask(c)
	case ce.tail <= s.events.now:
		s.depart(c, s.events.now)
	default:
		s.push(ce.tail, evDrop, c, 0)
	}
}

// ask puts the branches of a cell into the queues of their channels, each when
// the packet's tail can keep up with the port: a port that is faster than the
// link by which the packet comes begins later, so that it never lacks bytes to
// send. Branches that leave together also begin to wait together.
func (s *Sim) ask(c int32) {
	ce := &s.cells.items[c]
	if ce.tail <= s.events.now {
		s.askAll(c)
		return
	}
	bytes := ce.bytes
	var latest Time
	for b := ce.branch; b != none; b = s.branches.items[b].sibling {
		latest = max(latest, ce.tail-takes(bytes, s.ports[s.branches.items[b].port].rate))
	}
	if latest <= s.events.now {
		s.askAll(c)
		return
	}
	for b := ce.branch; b != none; b = s.branches.items[b].sibling {
		at := latest
		if s.cfg.Copying == Independent {
			at = max(s.events.now, ce.tail-takes(bytes, s.ports[s.branches.items[b].port].rate))
		}
		s.push(at, evAsk, b, 0)
	}
}

// askAll puts all branches of a cell into their queues before any of them goes.
func (s *Sim) askAll(c int32) {
	b := s.cells.items[c].branch
	if next := s.branches.items[b].sibling; next == none {
		s.queue(b)
		s.offer(s.branches.items[b].port)
		return
	}
	for b := b; b != none; b = s.branches.items[b].sibling {
		s.queue(b)
	}
	for b != none {
		// Granting the last branch may free the cell and its branches: it is the last here,
		// or all were granted at once.
		br := &s.branches.items[b]
		if br.granted {
			return
		}
		b = br.sibling
		s.offer(br.port)
	}
}

// queue appends a branch to those that wait for its channel.
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

// unqueue takes a branch out of the list of its channel.
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

// offer has a port choose, at once or after all that happens at this moment.
func (s *Sim) offer(p int32) {
	if s.cfg.Arbitration != LowestPort {
		s.arbitrate(p)
		return
	}
	if pt := &s.ports[p]; !pt.asked {
		pt.asked = true
		s.push(s.events.now, evArbitrate, p, 0)
	}
}

// arbitrate has a port that is idle take the next branch, if any can go.
func (s *Sim) arbitrate(p int32) {
	pt := &s.ports[p]
	if pt.waiting == 0 || pt.taken != none {
		return
	}
	if pt.freeAt > s.events.now {
		s.wake(p)
		return
	}
	vl := uint(s.nextVL(pt))
	for left := pt.waiting; left != 0; left &^= 1 << vl {
		if later := left >> vl << vl; later != 0 {
			vl = uint(bits.TrailingZeros16(later))
		} else {
			vl = uint(bits.TrailingZeros16(left))
		}
		if s.grant(s.choose(&s.channels[uint(pt.to*s.vls)+vl])) {
			return
		}
	}
}

// wake has a port that sends choose again when it is free.
func (s *Sim) wake(p int32) {
	if pt := &s.ports[p]; !pt.wakes {
		pt.wakes = true
		s.push(pt.freeAt, evFree, p, 0)
	}
}

// nextVL is the VL from which on a port looks for something to send.
func (s *Sim) nextVL(pt *port) int32 {
	if vl := int32(pt.vl) + 1; vl < s.vls {
		return vl
	}
	return 0
}

// choose returns the branch whose turn it is among those that wait for a
// channel. There has to be at least one.
func (s *Sim) choose(o *channel) int32 {
	first := o.first
	if first == o.last || s.cfg.Arbitration == FIFO || s.cfg.Copying == Reserving || s.ports[s.branches.items[first].port].isHost {
		return first
	}
	least, after := none, none // the lowest input channel, and the lowest after the one served last
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

// grant lets a branch go, if it can, by a port that is idle.
func (s *Sim) grant(b int32) bool {
	br := &s.branches.items[b]
	c := br.cell
	ce := &s.cells.items[c]
	flits := ce.flits
	o := &s.channels[br.out]
	if o.credits < flits {
		s.collectCredits(br.out, flits)
		if o.credits < flits {
			return false
		}
	}
	switch {
	case s.cfg.Copying == Independent || br.in == none:
		if ce.waiting > 1 && ce.state != cellChoosing {
			s.transmit(b)
			return true
		}
		br.granted = true
		port, out := br.port, br.out
		for b := ce.branch; b != none; b = s.branches.items[b].sibling {
			if s.branches.items[b].waits {
				s.unqueue(b)
			}
		}
		s.prune(ce)
		s.relay(c, ce, port, &s.ports[port], out)
		return true
	case s.cfg.Copying == LockStep:
		s.unqueue(b)
		br.granted = true
		s.ports[br.port].taken = b
		if ce.waiting--; ce.waiting > 0 {
			return true
		}
	default:
		for b := ce.branch; b != none; b = s.branches.items[b].sibling {
			br := &s.branches.items[b]
			o := &s.channels[br.out]
			if o.credits < flits {
				s.collectCredits(br.out, flits)
			}
			if o.first != b || o.credits < flits || s.ports[br.port].freeAt > s.events.now {
				return false
			}
		}
	}
	for b := ce.branch; b != none; b = s.branches.items[b].sibling {
		s.transmit(b)
	}
	s.depart(c, s.cells.items[c].tail)
	return true
}

// transmit sends a branch.
func (s *Sim) transmit(b int32) {
	br := &s.branches.items[b]
	if br.waits {
		s.unqueue(b)
		s.cells.items[br.cell].waiting--
	}
	br.granted = true
	s.move(br.cell, br.port, br.out)
}

// move sends a copy of a cell's packet; the cell stays. Its tail is then the time when
// the last copy sent so far has left.
func (s *Sim) move(c, port, out int32) {
	ce := &s.cells.items[c]
	pt := &s.ports[port]
	left := s.send(ce, pt, port, out)
	ce.tail = max(ce.tail, left)
	s.counts.Copies++
	s.packets.items[ce.packet].refs++
	if pt.sink {
		s.sink(ce.packet, pt, port, ce.flits, left)
		return
	}
	copied := s.cells.get()
	ce = &s.cells.items[c] // the pool may have grown
	to := &s.cells.items[copied]
	to.clear()
	to.packet, to.bytes, to.flits, to.dlid, to.sl = ce.packet, ce.bytes, ce.flits, ce.dlid, ce.sl
	to.tail, to.in = left+s.cfg.WireDelay, out
	s.look(to, pt.node, pt.to)
	s.enter(copied, out, ce.flits)
	s.push(s.events.now+s.hop, evReady, copied, out)
}

// relay sends the last copy of a cell's packet, which has no branch, and has it leave
// its buffer. The cell goes along, which move cannot do, and most of a simulation's
// time is spent here.
func (s *Sim) relay(c int32, ce *cell, port int32, pt *port, out int32) {
	in, next, flits := ce.in, ce.next, ce.flits
	if in == out { // a cable from a switch to itself: the packet is in the buffer twice
		s.move(c, port, out)
		s.depart(c, s.cells.items[c].tail)
		return
	}
	left := s.send(ce, pt, port, out)
	gone := max(ce.tail, left)
	if pt.sink {
		s.sink(ce.packet, pt, port, flits, left)
		s.cells.put(c)
	} else {
		ce.tail, ce.in, ce.next, ce.state = left+s.cfg.WireDelay, out, none, cellComing
		ce.branch, ce.waiting = none, 0
		s.look(ce, pt.node, pt.to)
		s.enter(c, out, flits)
		s.push(s.events.now+s.hop, evReady, c, out)
	}
	if in != none {
		s.vacate(in, next, flits, gone)
	}
}

// send has a port send a copy of a cell's packet, and returns when the tail has left.
func (s *Sim) send(ce *cell, pt *port, port, out int32) Time {
	now := s.events.now
	if ce.in == none {
		s.packets.items[ce.packet].injected = now
		s.counts.Queued--
	}
	took := takes(ce.bytes, pt.rate)
	pt.carry(ce.bytes, took, now+took, uint8(out-pt.to*s.vls))
	if pt.waiting != 0 {
		s.wake(port)
	}
	if s.sent != nil {
		s.sent[port] = s.packets.items[ce.packet].msg.Tag
	}
	s.channels[out].served = ce.in
	return now + took
}

// carry has a port send a packet on a VL until its tail has left.
func (p *port) carry(bytes int32, took, left Time, vl uint8) {
	p.taken, p.freeAt, p.vl = none, left, vl
	p.load.Packets++
	p.load.Bytes += int64(bytes)
	p.load.Busy += took
}

// sink has a packet whose tail leaves a port arrive at the end port behind it.
func (s *Sim) sink(packet int32, pt *port, port, flits int32, left Time) {
	if pt.to != port {
		left += s.cfg.WireDelay
		s.counts.FlitHops += int64(flits)
	}
	s.push(left, evDeliver, packet, pt.to)
}

// moveAt sends the packet of a cell that has one output port and needs not wait. It has
// no branch then.
func (s *Sim) moveAt(c int32, ce *cell, port, out int32) bool {
	pt, o := &s.ports[port], &s.channels[out]
	now := s.events.now
	if pt.waiting != 0 || pt.freeAt > now || pt.taken != none || s.cfg.Arbitration == LowestPort {
		return false
	}
	if ce.tail > now && ce.tail > now+takes(ce.bytes, pt.rate) {
		return false
	}
	if o.credits < ce.flits {
		s.collectCredits(out, 0)
		if o.credits < ce.flits {
			return false
		}
	}
	s.relay(c, ce, port, pt, out)
	return true
}

// enter appends a cell to a buffer, in which it takes room for its flits on its way
// and then there.
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

// depart ends a packet's stay in a buffer at time at, now or later, when the tail
// of its last copy leaves. Nothing more happens to the packet until then.
func (s *Sim) depart(c int32, at Time) {
	ce := &s.cells.items[c]
	in, next, flits := ce.in, ce.next, ce.flits
	s.remove(c)
	if in != none {
		s.vacate(in, next, flits, at)
	}
}

// vacate takes the first cell, with its flits, out of a buffer at time at, now or later, when the
// tail of its last copy leaves. Cell next is the first one then.
func (s *Sim) vacate(in, next, flits int32, at Time) {
	s.makeRoom(in, flits, at)
	lane := &s.channels[in]
	lane.head, lane.freeAt = next, at
	if next == none {
		lane.tail = none
	} else {
		s.succeed(next, at)
	}
}

// succeed has a cell be the first of its buffer from a time on.
func (s *Sim) succeed(c int32, at Time) {
	ce := &s.cells.items[c]
	switch {
	case ce.state != cellReady:
	case at > s.events.now:
		s.push(at, evBegin, c, 0)
	default:
		s.askFirst(c, ce)
	}
}

// makeRoom frees flits of a buffer at a time from now on, and sends the credit.
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

// credit gives a channel flits of room.
func (s *Sim) credit(o *channel, flits int32) {
	o.credits += flits
	s.returning -= int64(flits)
	if o.credits > s.room {
		s.overdrawn(o)
	}
}

// overfull and overdrawn are what cannot be.
func (s *Sim) overfull(o *channel) {
	s.fail(s.conservation("%d flits in a buffer of %d", o.used, s.cfg.BufferFlits))
}

func (s *Sim) overdrawn(o *channel) {
	s.fail(s.conservation("%d credits for a buffer of %d flits", o.credits, s.cfg.BufferFlits))
}

// collectCredits gives a channel the credits that have come by now. Those that have not
// get events if the channel still has less than somebody needs who waits for it.
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

// remove ends a cell and its branches.
func (s *Sim) remove(c int32) {
	ce := &s.cells.items[c]
	s.prune(ce)
	s.counts.Copies--
	s.release(ce.packet)
	s.cells.put(c)
}

// prune ends the branches of a cell.
func (s *Sim) prune(ce *cell) {
	for b := ce.branch; b != none; {
		next := s.branches.items[b].sibling
		s.branches.put(b)
		b = next
	}
	ce.branch = none
}

// vlOf is the VL on which a branch leaves.
func (s *Sim) vlOf(br *branch) int32 { return br.out - s.to[br.port]*s.vls }

// sender is the port that a channel leaves, and its VL.
func (s *Sim) sender(channel int32) (fabric.PortID, fabric.VL) {
	return fabric.PortID(s.to[channel/s.vls]), fabric.VL(channel % s.vls)
}
