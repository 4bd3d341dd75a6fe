package sim

// Wormhole switching: flits move one by one, each when the next buffer has
// room for it. A worm has a cell in each switch where it has flits. Its first
// flit makes the cell, and the branch of the previous cell feeds it.

// askWorm makes a worm whose first flit is at a host, or at the head of its
// buffer, ask for its channels.
func (s *Sim) askWorm(c int32) {
	ce := &s.cells.items[c]
	ce.state = cellWaiting
	for b := ce.branch; b != none; b = s.branches.items[b].sibling {
		s.queue(b)
	}
	if s.cfg.Copying == Wormhole {
		s.takeAll(c)
		return
	}
	for b := ce.branch; b != none; {
		// The cell stays as long as a branch waits; so it may only be freed with
		// its last branch.
		next := s.branches.items[b].sibling
		s.takeOne(s.branches.items[b].out)
		b = next
	}
}

// routeWorm routes the first worm of a buffer. A worm without an output port
// is dropped flit by flit.
func (s *Sim) routeWorm(c int32) {
	s.branchOut(c, &s.cells.items[c])
	if s.cells.items[c].branch == none {
		s.cells.items[c].state = cellGoing
		s.advance(c)
		return
	}
	s.askWorm(c)
}

// takeAll gives a worm its channels if it is first in all their queues and
// they are free.
func (s *Sim) takeAll(c int32) {
	for b := s.cells.items[c].branch; b != none; b = s.branches.items[b].sibling {
		o := &s.channels[s.branches.items[b].out]
		if o.holder != none || o.first != b {
			return
		}
	}
	for b := s.cells.items[c].branch; b != none; b = s.branches.items[b].sibling {
		s.hold(b)
	}
	s.cells.items[c].state = cellGoing
	s.advance(c)
}

// takeOne gives a free channel to the next worm that waits for it.
func (s *Sim) takeOne(out int32) {
	o := &s.channels[out]
	if o.holder != none || o.first == none {
		return
	}
	b := s.choose(o)
	o.served = s.branches.items[b].in
	s.hold(b)
	c := s.branches.items[b].cell
	ce := &s.cells.items[c]
	if ce.waiting == 0 {
		ce.state = cellGoing
		s.advance(c)
	}
}

// hold gives a branch its channel.
func (s *Sim) hold(b int32) {
	s.unqueue(b)
	br := &s.branches.items[b]
	br.granted = true
	s.channels[br.out].holder = b
	s.cells.items[br.cell].waiting--
}

// advance moves the flits of a worm that has its channels as far as they can
// go now. It may free the cell.
func (s *Sim) advance(c int32) {
	ce := &s.cells.items[c]
	flits := ce.flits
	if s.cfg.OutputFlits == 0 {
		for ce.gone < ce.arrived {
			slowest := flits
			for b := ce.branch; b != none; b = s.branches.items[b].sibling {
				slowest = min(slowest, s.branches.items[b].sent)
			}
			if slowest <= ce.gone {
				break
			}
			s.pass(c)
		}
	} else {
	copying:
		for ce.gone < ce.arrived {
			for b := ce.branch; b != none; b = s.branches.items[b].sibling {
				if br := &s.branches.items[b]; br.taken-br.sent >= int32(s.cfg.OutputFlits) {
					break copying
				}
			}
			for b := ce.branch; b != none; b = s.branches.items[b].sibling {
				s.branches.items[b].taken++
			}
			s.pass(c)
		}
	}
	if ce.pending == 0 && ce.gone == flits {
		s.remove(c)
		return
	}
	for b := ce.branch; b != none; {
		br := &s.branches.items[b]
		next, port := br.sibling, br.port
		if s.hasFlit(br) {
			s.ports[port].waiting |= 1 << s.vlOf(br)
			s.link(port)
		}
		b = next
	}
}

// hasFlit returns true if a branch that has its channel has a flit to send.
func (s *Sim) hasFlit(br *branch) bool {
	if s.cfg.OutputFlits > 0 {
		return br.taken > br.sent
	}
	ce := &s.cells.items[br.cell]
	return br.sent == ce.gone && ce.arrived > ce.gone
}

// pass takes the first flit of a worm out of the input buffer. With its last
// flit the worm leaves, and the next worm may be routed.
func (s *Sim) pass(c int32) {
	ce := &s.cells.items[c]
	ce.gone++
	if ce.in == none {
		return
	}
	s.makeRoom(ce.in, 1, s.events.now)
	if ce.gone < ce.flits {
		return
	}
	lane := &s.channels[ce.in]
	lane.head = ce.next
	if ce.next == none {
		lane.tail = none
	} else if s.cells.items[ce.next].arrived > 0 {
		s.push(s.events.now+s.cfg.RoutingDelay, evHead, ce.next, 0)
	}
}

// flit adds a flit that arrives to a cell.
func (s *Sim) flit(c int32) {
	ce := &s.cells.items[c]
	ce.arrived++
	switch {
	case s.channels[ce.in].head != c:
	case ce.arrived == 1:
		s.push(s.events.now+s.cfg.RoutingDelay, evHead, c, 0)
	case ce.state == cellGoing:
		s.advance(c)
	}
}

// link lets an idle port send the next flit that can go, one VL after another.
func (s *Sim) link(p int32) {
	pt := &s.ports[p]
	if pt.taken != none || pt.waiting == 0 {
		return
	}
	vl := s.nextVL(pt)
	for range s.vls {
		if pt.waiting&(1<<vl) != 0 {
			o := &s.channels[pt.to*s.vls+vl]
			if o.credits == 0 {
				s.collectCredits(pt.to*s.vls+vl, 1)
			}
			switch {
			case o.holder == none || !s.hasFlit(&s.branches.items[o.holder]):
				pt.waiting &^= 1 << vl
			case o.credits > 0:
				s.sendFlit(o.holder)
				return
			}
		}
		if vl++; vl == s.vls {
			vl = 0
		}
	}
}

// sendFlit sends the next flit of a branch.
func (s *Sim) sendFlit(b int32) {
	now := s.events.now
	br := &s.branches.items[b]
	pi := s.cells.items[br.cell].packet
	p := &s.packets.items[pi]
	pt := &s.ports[br.port]
	pt.taken = b
	bytes := int32(s.cfg.FlitBytes)
	pt.vl = uint8(s.vlOf(br))
	takes := takes(bytes, pt.rate)
	pt.load.Bytes += int64(bytes)
	pt.load.Busy += takes
	if br.sent == 0 {
		pt.load.Packets++
		if br.in == none {
			p.injected = now
			s.counts.Queued--
		}
	}
	s.push(now+takes, evLink, br.port, 0)
	if pt.sink {
		arrive := now + takes
		if pt.to != br.port {
			arrive += s.cfg.WireDelay
			s.counts.FlitHops++
		}
		if br.sent+1 == p.flits {
			p.refs++
			s.counts.Copies++
			s.push(arrive, evDeliver, pi, pt.to)
		}
		return
	}
	if br.child == none {
		p.refs++
		s.counts.Copies++
		child := s.cells.get()
		from := &s.cells.items[br.cell]
		to := &s.cells.items[child]
		to.clear()
		to.packet, to.bytes, to.flits, to.dlid, to.sl = pi, from.bytes, from.flits, from.dlid, from.sl
		to.in, to.parent = br.out, b
		br.child = child
		s.enter(child, br.out, 1)
	} else {
		s.counts.FlitHops++
		o := &s.channels[br.out]
		o.credits--
		if o.used++; o.used > s.room {
			s.overfull(o)
		}
	}
	s.push(now+takes+s.cfg.WireDelay, evFlit, br.child, 0)
}

// linked ends the sending of a flit by port p. When a worm's last flit has
// left by all branches, their channels become free. With output buffers all
// branches take their copies of the last flit at once, and each channel becomes
// free when its own copy has left.
func (s *Sim) linked(p int32) {
	pt := &s.ports[p]
	b := pt.taken
	br := &s.branches.items[b]
	br.sent++
	c := br.cell
	ce := &s.cells.items[c]
	if br.sent == ce.flits {
		if br.child != none {
			s.cells.items[br.child].parent = none
		}
		ce.pending--
		if s.cfg.OutputFlits > 0 {
			s.letGo(b)
		} else if ce.pending == 0 {
			for b := ce.branch; b != none; b = s.branches.items[b].sibling {
				s.letGo(b)
			}
		}
	}
	pt.taken = none
	s.advance(c)
	s.link(p)
}

// letGo frees the channel of a branch, and gives it to the next worm.
func (s *Sim) letGo(b int32) {
	out := s.branches.items[b].out
	o := &s.channels[out]
	o.holder = none
	switch {
	case o.first == none:
	case s.cfg.Copying == Wormhole:
		s.takeAll(s.branches.items[o.first].cell)
	default:
		s.takeOne(out)
	}
}
