package sim

import (
	"github.com/ibweave/ibweave/fabric"
)

// Virtual cut-through: a packet is sent when the buffer at the other end has room
// for all of it, and then goes through without a stop. What follows is one event
// for each packet and hop where it may ask for its ways out, one where its tail
// has left, and one where the sender behind it knows.

// ready has a packet ask for its ways out if it is the first of its buffer.
func (s *Sim) ready(c int32) {
	ce := &s.cells.items[c]
	ce.state = cellReady
	if s.ins[ce.in].first == c {
		s.begin(c)
	}
}

// begin routes the first packet of a buffer.
func (s *Sim) begin(c int32) {
	s.branchOut(c)
	ce := &s.cells.items[c]
	ce.state = cellWaiting
	switch {
	case ce.branch != none:
		s.ask(c)
	case ce.tail <= s.events.now:
		s.depart(c)
	default:
		s.events.push(ce.tail, event{kind: evDrop, a: int64(c)})
	}
}

// ask puts the branches of a cell into the queues of their channels, each when
// the packet's tail can keep up with the port: a port that is faster than the
// link by which the packet comes begins later, so that it does not run dry.
// Branches that leave together also begin to wait together.
func (s *Sim) ask(c int32) {
	ce := &s.cells.items[c]
	if ce.tail <= s.events.now {
		s.askAll(c)
		return
	}
	bytes := s.packets.items[ce.packet].bytes
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
		s.events.push(at, event{kind: evAsk, a: int64(b)})
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
	// The cell stays until its last tail has left, and with it its branches.
	for ; b != none; b = s.branches.items[b].sibling {
		s.offer(s.branches.items[b].port)
	}
}

// queue appends a branch to those that wait for its channel.
func (s *Sim) queue(b int32) {
	br := &s.branches.items[b]
	o := &s.outs[br.out]
	br.waits = true
	br.prev, br.next = o.last, none
	if o.last == none {
		o.first = b
		s.ports[br.port].waiting |= 1 << (br.out - br.port*s.vls)
	} else {
		s.branches.items[o.last].next = b
	}
	o.last = b
}

// unqueue takes a branch out of the list of its channel.
func (s *Sim) unqueue(b int32) {
	br := &s.branches.items[b]
	o := &s.outs[br.out]
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
	if o.first == none && !s.cfg.Copying.flits() {
		s.ports[br.port].waiting &^= 1 << (br.out - br.port*s.vls)
	}
}

// offer has a port choose, at once or after all that happens at this moment.
func (s *Sim) offer(p int32) {
	if s.cfg.Arbitration != LowestPort {
		s.arbitrate(p)
		return
	}
	if pt := &s.ports[p]; !pt.asked && !pt.busy {
		pt.asked = true
		s.events.push(s.events.now, event{kind: evArbitrate, a: int64(p)})
	}
}

// arbitrate has a port that is idle take the next branch, if any can go.
func (s *Sim) arbitrate(p int32) {
	pt := &s.ports[p]
	if pt.busy || pt.waiting == 0 {
		return
	}
	if s.vls == 1 {
		s.grant(s.choose(&s.outs[p]))
		return
	}
	vl := s.nextVL(pt)
	for range s.vls {
		if pt.waiting&(1<<vl) != 0 && s.grant(s.choose(&s.outs[p*s.vls+vl])) {
			return
		}
		if vl++; vl == s.vls {
			vl = 0
		}
	}
}

// nextVL is the VL from which on a port looks for something to send.
func (s *Sim) nextVL(pt *port) int32 {
	vl := int32(pt.vl)
	if pt.weight > 0 {
		return vl
	}
	if vl++; vl == s.vls {
		return 0
	}
	return vl
}

// served notes what a VL has sent.
func (s *Sim) served(pt *port, vl, bytes int32) {
	if len(s.cfg.VLWeights) > 0 {
		if vl != int32(pt.vl) || pt.weight <= 0 {
			pt.weight = 64 * int32(s.cfg.VLWeights[vl])
		}
		pt.weight -= bytes
	}
	pt.vl = uint8(vl)
}

// choose is the branch whose turn it is among those that wait for a channel, of
// which there are some.
func (s *Sim) choose(o *output) int32 {
	first := o.first
	if first == o.last || s.cfg.Arbitration == FIFO || s.cfg.Copying == Reserving || s.branches.items[first].in == none {
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
	flits := s.packets.items[s.cells.items[c].packet].flits
	o := &s.outs[br.out]
	if o.credits < flits {
		s.settle(br.out, flits)
		if o.credits < flits {
			return false
		}
	}
	if s.cfg.Copying == Independent || br.in == none {
		s.unqueue(b)
		s.transmit(b)
		return true
	}
	if s.cfg.Copying == LockStep {
		s.unqueue(b)
		br.granted = true
		pt := &s.ports[br.port]
		pt.busy, pt.taken = true, b
		ce := &s.cells.items[c]
		ce.waiting--
		if ce.waiting > 0 {
			return true
		}
		for b := ce.branch; b != none; b = s.branches.items[b].sibling {
			s.transmit(b)
		}
		return true
	}
	for b := s.cells.items[c].branch; b != none; b = s.branches.items[b].sibling {
		br := &s.branches.items[b]
		o := &s.outs[br.out]
		if o.credits < flits {
			s.settle(br.out, flits)
		}
		if o.first != b || o.credits < flits || s.ports[br.port].busy {
			return false
		}
	}
	for b := s.cells.items[c].branch; b != none; b = s.branches.items[b].sibling {
		s.unqueue(b)
		s.transmit(b)
	}
	return true
}

// transmit sends a branch.
func (s *Sim) transmit(b int32) {
	now := s.events.now
	br := &s.branches.items[b]
	br.granted = true
	c := br.cell
	in := br.in
	pi := s.cells.items[c].packet
	p := &s.packets.items[pi]
	pt := &s.ports[br.port]
	pt.busy, pt.taken = true, b
	s.served(pt, br.out-br.port*s.vls, p.bytes)
	if in == none {
		p.injected = now
		s.counts.Queued--
	}
	flits := p.flits
	takes := takes(p.bytes, pt.rate)
	load := &s.loads[br.port]
	load.Packets++
	load.Bytes += int64(p.bytes)
	load.Busy += takes
	o := &s.outs[br.out]
	o.served = in
	s.events.push(now+takes, event{kind: evTail, a: int64(b)})
	s.counts.Copies++
	p.refs++
	if pt.sink {
		at := now + takes
		if pt.to != br.port {
			at += s.cfg.WireDelay
			s.counts.FlitHops += int64(flits)
		}
		s.events.push(at, event{kind: evDeliver, a: int64(pi), b: pt.to})
		return
	}
	s.counts.FlitHops += int64(flits)
	o.credits -= flits
	s.enter(o.to, cell{packet: pi, in: o.to, next: none, branch: none, parent: none, tail: now + takes + s.cfg.WireDelay}, flits)
}

// enter makes a cell in a buffer, which will be routed if packets do not come flit
// by flit.
func (s *Sim) enter(to int32, ce cell, flits int32) int32 {
	c := s.cells.get()
	s.cells.items[c] = ce
	in := &s.ins[to]
	in.used += flits
	if in.used > int32(s.cfg.BufferFlits) {
		s.broken = s.conservation("%d flits in a buffer of %d", in.used, s.cfg.BufferFlits)
	}
	if in.last == none {
		in.first = c
	} else {
		s.cells.items[in.last].next = c
	}
	in.last = c
	if !s.cfg.Copying.flits() {
		s.events.push(s.events.now+s.cfg.WireDelay+s.cfg.RoutingDelay, event{kind: evReady, a: int64(c)})
	}
	return c
}

// tail has the tail of a branch leave its port.
func (s *Sim) tail(b int32) {
	br := &s.branches.items[b]
	port := br.port
	ce := &s.cells.items[br.cell]
	if ce.pending--; ce.pending == 0 {
		s.depart(br.cell) // while the port is busy, so that what comes next stands in line
	}
	pt := &s.ports[port]
	pt.busy, pt.taken = false, none
	s.offer(port)
}

// depart has a packet leave its buffer as a whole.
func (s *Sim) depart(c int32) {
	ce := &s.cells.items[c]
	in, next := ce.in, ce.next
	if in != none {
		s.makeRoom(in, s.packets.items[ce.packet].flits)
	}
	s.remove(c)
	if in == none {
		return
	}
	lane := &s.ins[in]
	lane.first = next
	if next == none {
		lane.last = none
	} else if s.cells.items[next].state == cellReady {
		s.begin(next)
	}
}

// makeRoom frees flits of a buffer and sends the credit.
func (s *Sim) makeRoom(in, flits int32) {
	lane := &s.ins[in]
	lane.used -= flits
	if lane.used < 0 {
		s.broken = s.conservation("%d flits left a buffer of %d", flits, lane.used+flits)
	}
	s.returning += int64(flits)
	at := s.events.now + s.cfg.CreditDelay
	o := &s.outs[lane.from]
	if o.first != none || o.holder != none {
		s.events.push(at, event{kind: evCredit, a: int64(flits), b: lane.from})
		return
	}
	d := s.dues.get()
	s.dues.items[d] = due{at, flits, none}
	if o.lastDue == none {
		o.due = d
	} else {
		s.dues.items[o.lastDue].next = d
	}
	o.lastDue = d
}

// credit gives a channel flits of room.
func (s *Sim) credit(o *output, flits int32) {
	o.credits += flits
	s.returning -= int64(flits)
	if o.credits > int32(s.cfg.BufferFlits) {
		s.broken = s.conservation("%d credits for a buffer of %d flits", o.credits, s.cfg.BufferFlits)
	}
}

// settle gives a channel the credits that have come by now. Those that have not
// get events if the channel still has less than it needs.
func (s *Sim) settle(channel, need int32) {
	o := &s.outs[channel]
	for d := o.due; d != none; d = o.due {
		n := s.dues.items[d]
		switch {
		case n.at <= s.events.now:
			s.credit(o, n.flits)
		case o.credits < need:
			s.events.push(n.at, event{kind: evCredit, a: int64(n.flits), b: channel})
		default:
			return
		}
		o.due = n.next
		s.dues.put(d)
	}
	o.lastDue = none
}

// remove ends a cell and its branches.
func (s *Sim) remove(c int32) {
	ce := &s.cells.items[c]
	for b := ce.branch; b != none; {
		next := s.branches.items[b].sibling
		s.branches.put(b)
		b = next
	}
	s.counts.Copies--
	s.release(ce.packet)
	s.cells.put(c)
}

// where is the port and VL of a channel.
func (s *Sim) where(channel int32) (fabric.PortID, fabric.VL) {
	return fabric.PortID(channel / s.vls), fabric.VL(channel % s.vls)
}
