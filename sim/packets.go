package sim

import (
	"math/bits"

	"github.com/ibweave/ibweave/mft"
)

// Virtual cut-through: a packet is sent when the next buffer has room for all of it, and
// then goes through without a stop. So all its times up to there are known when it is
// sent. Each hop of a packet has one event, at which it may ask for its output ports.
// There are more only if it waits for a port, for packets before it in the buffer, or for
// credits.

// ready lets cell c, which came by channel in, ask for its output ports if it is first in its
// buffer.
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

// askFirst lets the first packet of a buffer, which has been routed, ask for its output ports.
func (s *Sim) askFirst(c int32, ce *cell) {
	if ce.port == none || !s.moveAt(c, ce, ce.port, ce.out) {
		s.stay(c, ce)
	}
}

// stay lets the first packet of a buffer choose its output ports and wait for
// them, as it could not leave at once. A packet without an output port is dropped.
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

// waitForAny makes the first packet of a buffer wait for all outlets at once. It takes the first
// one that is free with room behind it.
func (s *Sim) waitForAny(c int32, ce *cell) {
	begin := s.events.now // when its tail keeps up with each of the ports
	for _, o := range s.outlets {
		begin = max(begin, ce.tail-takes(ce.bytes, s.ports[o.port].rate))
	}
	if begin > s.events.now {
		ce.port, ce.state = none, cellWaiting
		s.push(begin, evBegin, c, 0)
		return
	}
	ce.state = cellChoosing
	var ports [256]int32 // an offer may let another packet choose, which sets s.outlets
	n := 0
	for i := len(s.outlets) - 1; i >= 0; i-- {
		s.addBranch(c, s.outlets[i].port, s.outlets[i].out)
	}
	for b := ce.branch; b != none; b = s.branches.items[b].sibling {
		s.queue(b)
		ports[n] = s.branches.items[b].port
		n++
	}
	for _, p := range ports[:n] {
		if s.cells.items[c].branch == none { // it has left
			return
		}
		s.offer(p)
	}
}

// ask puts the branches of a cell into the queues of their channels, as soon
// as the packet's tail keeps up with the port: a port that is faster than the
// incoming link begins later, so that it never runs out of bytes to send.
// Branches that leave together also begin to wait together.
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

// askAll queues all branches of a cell before any of them leaves.
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
		// Granting the last branch may free the cell and all its branches. But then b is the last one, or
		// all were granted at once.
		br := &s.branches.items[b]
		if br.granted {
			return
		}
		b = br.sibling
		s.offer(br.port)
	}
}

// offer lets a port choose a branch, at once or, with LowestPort, after all events of this moment.
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

// arbitrate lets an idle port send the next branch that can leave, VL by VL.
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

// wake lets a port that sends choose again when it is free.
func (s *Sim) wake(p int32) {
	if pt := &s.ports[p]; !pt.wakes {
		pt.wakes = true
		s.push(pt.freeAt, evFree, p, 0)
	}
}

// grant lets branch b leave by its idle port. It returns false if b has to wait.
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

// transmit sends branch b; its cell stays.
func (s *Sim) transmit(b int32) {
	br := &s.branches.items[b]
	if br.waits {
		s.unqueue(b)
		s.cells.items[br.cell].waiting--
	}
	br.granted = true
	s.move(br.cell, br.port, br.out)
}

// move sends a copy of a cell's packet, while the cell stays. The cell's tail becomes the time when
// all copies sent so far have left.
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
	ce = &s.cells.items[c] // get may have moved the cells
	to := &s.cells.items[copied]
	to.clear()
	to.packet, to.bytes, to.flits, to.dlid, to.sl = ce.packet, ce.bytes, ce.flits, ce.dlid, ce.sl
	to.tail, to.in = left+s.cfg.WireDelay, out
	s.look(to, pt.node, pt.to)
	s.enter(copied, out, ce.flits)
	s.push(s.events.now+s.hop, evReady, copied, out)
}

// relay sends the last copy of a cell's packet, which has no branch, and takes it out of
// its buffer. It moves the cell itself, faster than move: most of the time is spent
// here.
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

// send lets a port send a copy of a cell's packet, and returns when its tail has left.
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

// carry records that a port sends a packet on a VL until its tail has left.
func (p *port) carry(bytes int32, took, left Time, vl uint8) {
	p.taken, p.freeAt, p.vl = none, left, vl
	p.load.Packets++
	p.load.Bytes += int64(bytes)
	p.load.Busy += took
}

// sink sends a packet to the end port behind a port, which the packet's tail leaves at time left.
func (s *Sim) sink(packet int32, pt *port, port, flits int32, left Time) {
	if pt.to != port {
		left += s.cfg.WireDelay
		s.counts.FlitHops += int64(flits)
	}
	s.push(left, evDeliver, packet, pt.to)
}

// moveAt sends the packet of a cell that has one output port and no branch. It returns false if the
// packet must wait.
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

// depart takes a packet out of its buffer at time at, now or later, when the
// tail of its last copy leaves. Until then nothing more happens to it.
func (s *Sim) depart(c int32, at Time) {
	ce := &s.cells.items[c]
	in, next, flits := ce.in, ce.next, ce.flits
	s.remove(c)
	if in != none {
		s.vacate(in, next, flits, at)
	}
}

// vacate takes the first cell, of some flits, out of buffer in when the tail of its last copy
// leaves: at time at, now or later. From then on cell next is the first.
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

// succeed makes a cell the first of its buffer from time at on.
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
