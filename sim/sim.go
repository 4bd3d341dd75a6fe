// Package sim simulates a fabric with the tables that its switches get:
// linear and multicast forwarding tables, SL-to-VL tables and path SLs. It
// shows what a routing, virtual lanes or multicast gain, and knows no routing
// engine. It makes no promise to other modules.
//
// The model is event-driven. A link has a rate and a delay; a switch has an input buffer for
// each port and VL, of a stated number of flits, and takes a time to route.
//
// Flow control is by credits for each VL. Packets of one VL stay in order, and only the
// first packet of a buffer can leave it. Switching is virtual cut-through as on InfiniBand,
// or wormhole flit by flit: see Copying. Switches with adaptive tables choose among the
// ports of a group: see Choice. Hosts send from one queue for each VL, and receive at any
// rate.
//
// Times are integers, in picoseconds. Events of one moment come
// in the order in which they were made, so a simulation depends
// on its input alone. Nothing is allocated once the arrays have
// grown to the number of packets under way.
package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
)

// New makes a simulation at time 0; driver may be nil. Errors are about a
// Config that is not valid, tables of another fabric, or links without a rate.
func New(net Network, cfg Config, driver Driver) (*Sim, error) {
	f := net.Fabric
	if err := net.Check(); err != nil {
		return nil, err
	}
	vls := net.VLs()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if err := checkAdaptive(&net, &cfg); err != nil {
		return nil, err
	}
	if int64(f.NumPorts())*int64(vls) > math.MaxInt32 {
		return nil, fabric.ErrTooLarge
	}
	s := &Sim{
		net: net, cfg: cfg, vls: int32(vls), driver: driver,
		ports:    make([]port, f.NumPorts()),
		channels: make([]channel, f.NumPorts()*vls),
		hubs:     make([]hub, f.NumSwitches()),
		to:       make([]int32, f.NumPorts()),
		topLID:   -1,
		hostFree: make([]Time, f.NumPorts()),
		worms:    cfg.Copying >= Wormhole,
		hop:      cfg.WireDelay + cfg.RoutingDelay,
		room:     int32(cfg.BufferFlits),
	}
	s.events.init(bucketBits)
	if s.worms { // with many more events
		s.events.init(bucketBits - 2)
	}
	s.nextSearch, s.nextLook = searchEvery, lookEvery
	for i := range s.hubs {
		at := fabric.NodeID(i)
		base := int32(f.PortBase(at))
		s.hubs[i] = hub{base: base, end: base + int32(f.Node(at).NumPorts) + 1}
		if net.Tables != nil {
			s.hubs[i].row = net.Tables.Row(at)
		}
	}
	if net.Adaptive != nil {
		s.groups = groupPorts(f, net.Adaptive)
		s.order = &ordering{index: map[flowKey]int32{}}
	} else if net.Tables != nil && net.Router == nil {
		s.topLID = min(int(net.Tables.MaxLID()), int(mft.MinMLID)-1)
	}
	if net.SL2VL == nil {
		s.allAlike = true // VL 0
	} else if maps := net.SL2VL.Maps(); len(maps) == 1 {
		s.allAlike, s.sameVL = true, maps[0]
	}
	for p := range fabric.PortID(f.NumPorts()) {
		if err := s.addPort(p); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// checkAdaptive returns an error for settings that adaptive tables exclude.
func checkAdaptive(net *Network, cfg *Config) error {
	if net.Adaptive == nil {
		return nil
	}
	if net.Router != nil {
		return errors.New("adaptive tables and a router: want one of them")
	}
	if cfg.ChooseAgain && cfg.Copying != Independent {
		return fmt.Errorf("packets that choose again with %s copying: want %s", cfg.Copying, Independent)
	}
	return nil
}

func (s *Sim) addPort(p fabric.PortID) error {
	f := s.net.Fabric
	node := f.Owner(p)
	peer := f.Peer(p)
	pt := port{to: none, taken: none, node: none, isHost: !f.IsSwitch(node) && peer != fabric.NoPort}
	own := f.Num(p) == fabric.ManagementPort && f.IsSwitch(node)
	mbps := s.cfg.Mbps
	switch {
	case own: // packets arrive at once
		pt.to, pt.node, pt.sink = int32(p), int32(node), true
	case peer != fabric.NoPort:
		pt.to, pt.node, pt.sink = int32(peer), int32(f.Owner(peer)), !f.IsSwitch(f.Owner(peer))
		if mbps = cmp.Or(mbps, f.Link(p).Mbps()); mbps == 0 {
			return fmt.Errorf("%s: the fabric does not say how fast its link is: set Config.Mbps", f.PortName(p))
		}
		pt.rate = bytePs(mbps)
	}
	s.ports[p], s.to[p] = pt, pt.to
	credits := unlimited
	if peer != fabric.NoPort && f.IsSwitch(node) {
		credits = int32(s.cfg.BufferFlits)
	}
	for vl := range s.vls {
		s.channels[int32(p)*s.vls+vl] = channel{
			first: none, last: none, holder: none, served: none, later: none, lastLater: none,
			head: none, tail: none, port: int32(p), credits: credits,
		}
	}
	return nil
}

// Now returns the time of the current event, or the time at which Run stopped.
func (s *Sim) Now() Time { return s.events.now }

// Counts returns the counts up to now.
func (s *Sim) Counts() Counts { return s.counts }

// Load returns the traffic that has left by port p: what a host has sent or,
// for a port to a host, what the host has received.
func (s *Sim) Load(p fabric.PortID) Load { return s.ports[p].load }

// Reordering returns how packets arrived so far, or nil without adaptive tables, as packets of a
// flow then always arrive in order.
func (s *Sim) Reordering() *Reordering {
	if s.order == nil {
		return nil
	}
	r := s.order.Reordering
	r.Share, r.Late = float64(r.OutOfOrder)/float64(max(r.Packets, 1)), s.order.late.summary(true)
	return &r
}

// Free returns true if the channel of port p and VL vl would take a packet, or
// the head of a worm, at once. It is for Routers that prefer such channels.
func (s *Sim) Free(p fabric.PortID, vl fabric.VL) bool {
	if s.ports[p].to == none {
		return false
	}
	channel := s.ports[p].to*s.vls + int32(vl)
	s.collectCredits(channel, 1)
	o := &s.channels[channel]
	return s.ports[p].taken == none && s.ports[p].freeAt <= s.events.now && o.first == none && o.holder == none && o.credits > 0
}

// Wake makes Run call the driver's Wake with id at time at, or now if that is past.
func (s *Sim) Wake(at Time, id int64) {
	s.push(max(at, s.events.now), evWake, int32(id), int32(id>>32))
}

// Send gives a message to its host now. It returns an error if the host
// cannot send, the LID or SL is not valid, or a packet does not fit a buffer.
func (s *Sim) Send(m Message) error {
	if m.Src < 0 || int(m.Src) >= len(s.ports) || !s.ports[m.Src].isHost {
		return fmt.Errorf("port %d cannot send: want one of a CA or router, with a cable", m.Src)
	}
	return s.sendFrom(m)
}

// sendFrom is Send from any port with a cable; a switch port sends the switch's own messages.
func (s *Sim) sendFrom(m Message) error {
	if m.SL == PathSL {
		m.SL = s.pathSL(m.Src, m.DLID)
	}
	if m.SL >= lft.NumSLs {
		return fmt.Errorf("SL %d: want 0 to %d", m.SL, lft.NumSLs-1)
	}
	if m.DLID == 0 || m.DLID > mft.MaxMLID {
		return fmt.Errorf("no port can have LID %d", m.DLID)
	}
	if m.Bytes < 1 || m.Bytes > maxBytes {
		return fmt.Errorf("a message of %d bytes: want 1 to %d", m.Bytes, maxBytes)
	}
	size := m.Bytes
	if s.cfg.MTU > 0 {
		size = min(size, s.cfg.MTU)
	}
	if flits := s.cfg.flits(size + s.cfg.HeaderBytes); flits > s.cfg.BufferFlits && !s.worms {
		return fmt.Errorf("a packet of %d flits for buffers of %d: %s copying needs room for all of it", flits, s.cfg.BufferFlits, s.cfg.Copying)
	}
	s.counts.Messages++
	now := s.events.now
	ready := now
	if s.cfg.Startup > 0 {
		ready = max(now, s.hostFree[m.Src]) + s.cfg.Startup
		s.hostFree[m.Src] = ready
	}
	message := none
	if s.ordered(m.DLID) {
		message = s.order.messages.get()
	}
	for left := m.Bytes; left > 0; left -= size {
		m.Bytes = min(left, size)
		i := s.packets.get()
		bytes := m.Bytes + s.cfg.HeaderBytes
		// Fields are set one by one, here and elsewhere: a composite literal is made on the stack, then
		// copied in larger pieces, for which the processor waits.
		p := &s.packets.items[i]
		p.msg.Src, p.msg.DLID, p.msg.SL, p.msg.Flow, p.msg.Bytes, p.msg.Tag = m.Src, m.DLID, m.SL, m.Flow, m.Bytes, m.Tag
		p.bytes, p.flits = int32(bytes), int32(s.cfg.flits(bytes))
		p.refs, p.last = 1, left <= size
		p.born, p.injected = now, 0
		s.counts.Packets++
		s.counts.Queued++
		if message != none {
			s.order.send(i, message, &m)
		}
		if ready == now {
			s.inject(i)
		} else {
			s.push(ready, evInject, i, 0)
		}
	}
	return nil
}

// pathSL returns the SL of the routing for a path.
func (s *Sim) pathSL(src fabric.PortID, dlid fabric.LID) fabric.SL {
	p := s.net.PathSLs
	if p == nil || dlid > p.MaxLID() {
		return 0
	}
	at := s.net.Fabric.Owner(src)
	if !s.net.Fabric.IsSwitch(at) {
		if at = s.net.Fabric.PeerSwitch(src); at == fabric.NoNode {
			return 0
		}
	}
	return p.SL(src, at, dlid)
}

// ordered returns true if s.order follows packets to a LID.
func (s *Sim) ordered(dlid fabric.LID) bool { return s.order != nil && dlid < mft.MinMLID }

// inject puts packet i into its host's queue. The cell takes over the packet's reference.
func (s *Sim) inject(i int32) {
	p := &s.packets.items[i]
	vl := s.vl(0, p.msg.Src, p.msg.SL)
	if vl == lft.DropVL {
		s.counts.Queued--
		s.counts.Dropped++
		s.release(i)
		return
	}
	c := s.cells.get()
	ce := &s.cells.items[c]
	ce.clear()
	ce.packet, ce.bytes, ce.flits = i, p.bytes, p.flits
	ce.dlid, ce.sl = p.msg.DLID, p.msg.SL
	ce.arrived, ce.tail, ce.state = p.flits, s.events.now, cellWaiting
	s.counts.Copies++
	src := p.msg.Src
	switch {
	case s.worms:
		s.addBranch(c, int32(src), s.to[src]*s.vls+int32(vl))
		s.askWorm(c)
	case !s.moveAt(c, ce, int32(src), s.to[src]*s.vls+int32(vl)):
		s.addBranch(c, int32(src), s.to[src]*s.vls+int32(vl))
		s.ask(c)
	}
}

// Run handles all events up to time until, and sets Now to it. It
// returns a *DeadlockError if packets wait for each other in a
// cycle, which ends the simulation, a *ConservationError if the
// simulator itself is wrong, or ctx's error.
func (s *Sim) Run(ctx context.Context, until Time) error {
	if s.broken != nil {
		return s.broken
	}
	err := s.run(ctx, until)
	if err != nil && !errors.Is(err, ctx.Err()) {
		s.broken = err
	}
	return err
}

// Deadlock returns a *DeadlockError if packets wait for each other in a
// cycle, even if other packets still move. Run searches too, but only now and
// then.
func (s *Sim) Deadlock() error {
	if s.broken != nil {
		return s.broken
	}
	if err := s.deadlock(); err != nil {
		s.fail(err)
	}
	return s.broken
}

// searchEvery is the number of events between two searches for a cycle of waiting packets.
const searchEvery = 1 << 20

// bucketBits makes buckets of the queue 1 ns wide.
const bucketBits = 10

// lookEvery is the number of events between two looks at the context.
const lookEvery = 1 << 16

func (s *Sim) run(ctx context.Context, until Time) error {
	q := &s.events
	for {
		if q.at == len(q.cur) && !q.turn() || q.cur[q.at].at > until {
			return s.end(until)
		}
		t := &q.cur[q.at]
		q.at++
		q.now = t.at
		s.counts.Events++
		if t.event.kind == evReady {
			s.ready(t.event.a, t.event.b)
		} else {
			s.handle(t.event)
		}
		if s.counts.Events >= s.nextCheck {
			if err := s.check(ctx); err != nil {
				return err
			}
		}
	}
}

// end is called when no event is left up to time until. It finds a deadlock, or counts all again.
func (s *Sim) end(until Time) error {
	if until != Forever {
		s.events.now = max(s.events.now, until)
	}
	if s.events.len() == 0 && s.counts.Copies > 0 {
		if err := s.deadlock(); err != nil {
			return err
		}
		return s.conservation("%d copies of packets wait, and nothing happens", s.counts.Copies)
	}
	if s.events.len() == 0 || s.cfg.FullChecks > 0 {
		return s.verify()
	}
	return nil
}

// check runs the checks that are due now, and sets nextCheck.
func (s *Sim) check(ctx context.Context) error {
	if s.broken != nil {
		return s.broken
	}
	if s.counts.Events >= s.nextLook {
		s.nextLook = s.counts.Events + lookEvery
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if s.counts.Events >= s.nextSearch {
		s.nextSearch = s.counts.Events + searchEvery
		if err := s.deadlock(); err != nil {
			return err
		}
	}
	s.nextCheck = min(s.nextSearch, s.nextLook)
	if s.cfg.FullChecks == 0 {
		return nil
	}
	if s.counts.Events >= s.nextFull {
		s.nextFull = s.counts.Events + int64(s.cfg.FullChecks)
		if err := s.verify(); err != nil {
			return err
		}
	}
	s.nextCheck = min(s.nextCheck, s.nextFull)
	return nil
}

func (s *Sim) handle(e event) {
	a := e.a
	switch e.kind {
	case evReady:
		s.ready(a, e.b)
	case evInject:
		s.inject(a)
	case evHead:
		s.routeWorm(a)
	case evAsk:
		s.queue(a)
		s.offer(s.branches.items[a].port)
	case evBegin:
		s.askFirst(a, &s.cells.items[a])
	case evFree:
		s.ports[a].wakes = false
		s.offer(a)
	case evCredit:
		o := &s.channels[e.b]
		s.credit(o, a)
		if s.worms {
			if o.holder != none {
				s.link(s.branches.items[o.holder].port)
			}
		} else if o.first != none {
			s.offer(s.branches.items[o.first].port)
		}
	case evArbitrate:
		s.ports[a].asked = false
		s.arbitrate(a)
	case evDeliver:
		s.deliver(a, fabric.PortID(e.b))
	case evWake:
		if s.driver != nil {
			s.driver.Wake(s, int64(e.b)<<32|int64(uint32(a)))
		}
	case evFlit:
		s.flit(a)
	case evLink:
		s.linked(a)
	case evDrop:
		s.depart(a, s.events.now)
	}
}

// deliver lets packet i arrive at an end port, and drops one reference to it.
func (s *Sim) deliver(i int32, at fabric.PortID) {
	p := &s.packets.items[i]
	s.counts.Delivered++
	s.counts.Copies--
	s.counts.LastAt = s.events.now
	if p.msg.DLID < mft.MinMLID && s.net.Fabric.LIDPort(p.msg.DLID) != at {
		s.counts.Strayed++
	}
	last := p.last
	if s.ordered(p.msg.DLID) {
		last = s.order.deliver(i, s.events.now)
	}
	if s.driver != nil {
		d := &s.delivery
		d.Message = p.msg
		d.Port, d.At, d.Born, d.Injected, d.Last = at, s.events.now, p.born, p.injected, last
		s.driver.Deliver(s, d)
	}
	s.release(i)
}
