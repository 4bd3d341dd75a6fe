// Package sim simulates a fabric with the very tables that its switches get:
// linear and multicast forwarding tables, SL-to-VL tables and path SLs. It
// shows what a routing, virtual lanes or multicast gain, and knows no routing
// engine. It makes no promise to other modules.
//
// The model is event-driven. A link has a rate and a delay; a switch has an
// input buffer for each port and VL, of a stated number of flits, and takes a
// time to route. Flow control is by credits for each VL. Packets of one VL stay
// in order, and only the first packet of a buffer can leave it. Switching is
// virtual cut-through as on InfiniBand, or wormhole flit by flit: see Copying.
// Switches with adaptive tables choose among the ports of a group: see Choice.
// Hosts send from one queue for each VL, and receive at any rate.
//
// Times are integers, in picoseconds. Events of one moment come in the order in
// which they were made, so a simulation depends on its input alone. Nothing is
// allocated once the arrays have grown to the number of packets that are under
// way.
package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/ibweave/ibweave/state"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
)

// none is the index of nothing.
const none int32 = -1

// unlimited is the credit of a channel to a host.
const unlimited int32 = math.MaxInt32 / 2

// Network is what is simulated. It must not change while packets are under way.
type Network struct {
	// State has the tables: Adaptive, when not nil, forwards unicast packets in place of
	// Tables, see Config.Choice; a port of an HBF entry is that of the packet's flow.
	// Multicast.Tables send packets to all ports of the mask but the one that they came by.
	// SL2VL gives the VL of each hop, nil VL 0, and PathSLs the SL of messages that are sent
	// with PathSL, nil 0. Packets that no table forwards are dropped.
	state.State
	// Router, when not nil, is asked in place of all tables.
	Router Router
}

// Router forwards packets by other means than tables: adaptively, or by a route
// that the source chose.
type Router interface {
	// Route appends the ports by which a packet leaves switch at, which it entered by port in:
	// ports of that switch, each once; port 0 takes a copy for the switch itself. If it appends
	// none, the packet is dropped. The packet is at the head of its buffer, and Route is called
	// once for each packet and switch. It may ask s.Free, and must not call anything else of s.
	Route(s *Sim, at fabric.NodeID, in fabric.PortID, m *Message, to []fabric.PortID) []fabric.PortID
}

// PathSL as a message's SL takes it from Network.PathSLs.
const PathSL fabric.SL = 255

// Message is what a host is asked to send.
type Message struct {
	Src   fabric.PortID // port of a CA or router, with a cable
	DLID  fabric.LID    // LID or MLID
	SL    fabric.SL     // 0 to 15, or PathSL
	Flow  uint32        // number of a queue pair or the like, for the hash of HBF and for Reordering
	Bytes int           // of data, 1 or more
	Tag   int64         // the sender's own
}

// Delivery is the arrival of a packet's last byte at a host, or at port 0 of a
// switch.
type Delivery struct {
	Message  // its Bytes are those of the packet's data
	Port     fabric.PortID
	At       Time
	Born     Time // when the message was sent
	Injected Time // when the packet's first byte left the host
	// Last says that the message is complete with this packet. Packets of one message stay
	// in order, unless adaptive tables let them overtake.
	Last bool
}

// Driver makes traffic, and sees what becomes of it.
type Driver interface {
	// Wake is called at the time for which Wake was asked.
	Wake(s *Sim, id int64)
	// Deliver is called for each delivery. d is valid during the call.
	Deliver(s *Sim, d *Delivery)
}

// Counts says what has happened so far. A flit-hop is a flit that crossed a cable.
type Counts struct {
	Messages  int64 // sent by hosts
	Packets   int64 // of them
	Copies    int64 // of packets, in buffers and on the way to hosts, now
	Queued    int64 // packets that hosts have not begun to send
	Delivered int64 // arrivals of packets at end ports
	Dropped   int64 // copies that a switch had no way for, or DropVL
	Strayed   int64 // unicast deliveries to a port that has not the LID
	FlitHops  int64
	Events    int64
	LastAt    Time // of the last delivery
}

// Load is the traffic that has crossed a cable in one direction.
type Load struct {
	Packets, Bytes int64
	Busy           Time
}

// event is an event at some time; the meaning of a and b depends on kind.
type event struct {
	a, b int32
	kind eventKind
}

type eventKind uint8

const (
	evReady     eventKind = iota // cell a, which came by channel b, has been routed
	evInject                     // packet a is ready at its host
	evHead                       // with flits: the first flit of cell a has been routed
	evBegin                      // cell a, which has been routed, is first in its buffer
	evAsk                        // the tail of branch a will keep up with its port if it leaves now
	evFree                       // port a, for which branches wait, has sent its packet
	evCredit                     // output channel b has a more flits of room
	evArbitrate                  // port a chooses
	evDeliver                    // packet a has arrived at port b
	evWake                       // for the driver: a and b are the halves of its number
	evDrop                       // the tail of cell a, which has no output port, has come
	evFlit                       // a flit has arrived in cell a
	evLink                       // port a has sent a flit
)

// Sim is a simulation. It is not safe for concurrent use.
type Sim struct {
	// What every hop asks for, together.
	cells     pool[cell] // see there
	channels  []channel  // by number: PortID that it ends at * vls + VL
	ports     []port     // by PortID
	hubs      []hub      // by node: the switches
	to        []int32    // by PortID: port.to, again, since few lines of cache have all of it
	topLID    int        // the highest LID that hub.row has; -1 for none
	hop       Time       // from when a packet is sent until it has been routed
	vls       int32
	room      int32 // flits of a buffer
	worms     bool  // packets go flit by flit
	allAlike  bool  // sameVL is the map of all ports
	sameVL    lft.VLMap
	counts    Counts
	returning int64 // flits of credit that are on their way
	// Counts of events: of the next search for deadlock, the next full check, the next
	// look at the context, and whichever is first.
	nextSearch, nextFull, nextLook, nextCheck int64
	broken                                    error // what ended the simulation

	net      Network
	cfg      Config
	driver   Driver
	branches pool[branch]
	packets  pool[packet]
	dues     pool[due]
	sent     []int64         // by PortID: the tag of what it has sent last; nil if nothing asks
	hostFree []Time          // by PortID: when a host is done with the start of its messages
	route    []fabric.PortID // scratch
	outlets  []outlet        // scratch
	groups   [][][]int32     // by switch and group of Network.Adaptive: its ports
	order    *ordering       // nil without Network.Adaptive
	delivery Delivery
	events   queue
}

// hub has the part of a switch that each hop of a packet needs.
type hub struct {
	row       []fabric.PortNum // its forwarding table; empty without tables
	base, end int32            // its ports
}

// port is the sending side of a port, and what a hop touches of it: a line of cache.
type port struct {
	rate    int64 // 1/1024 ps a byte
	freeAt  Time  // when the last packet that was sent has left
	load    Load
	to      int32  // port at the other end; itself for port 0 of a switch, none without a cable
	taken   int32  // with LockStep: the branch that has the port and does not send yet; with flits: the one that sends
	node    int32  // of the port at the other end
	waiting uint16 // VLs that a branch waits for
	vl      uint8  // that was served last
	sink    bool   // what leaves here has arrived
	asked   bool   // an evArbitrate is under way
	wakes   bool   // an evFree is under way
	isHost  bool   // of a CA or router, with a cable
}

// channel is both ends of a VL of a cable in one direction, since what happens at one
// of them soon concerns the other: a line of cache.
type channel struct {
	// As its sender sees it.
	first, last int32 // branches that wait for it
	credits     int32 // flits of room at the other end
	holder      int32 // with flits: the worm's branch that has it
	served      int32 // the channel whose packet was served last
	dueFlits    int32 // credit that comes at dueAt and has no event, 0 for none
	later       int32 // more credits on their way, by time
	lastLater   int32
	dueAt       Time
	// As its receiver sees it: a buffer.
	freeAt     Time  // when the cell before the first one has left
	head, tail int32 // cells in it
	used       int32 // flits of room that its cells have taken
	port       int32 // that it ends at
}

// due is credit on its way for a channel that nothing waits for.
type due struct {
	at    Time
	flits int32
	next  int32
}

// cell is a packet in the buffer of a switch, or at the host that sends it, with what a
// hop needs to know of the packet: a line of cache.
type cell struct {
	tail    Time // when the last byte comes
	packet  int32
	in      int32 // channel that it came by; none at a host
	next    int32 // in the buffer
	branch  int32 // first of its branches
	waiting int32 // branches that have not been granted
	bytes   int32 // of the packet, on the wire
	flits   int32
	dlid    fabric.LID
	sl      fabric.SL
	state   cellState
	pending int32 // with flits: branches that have not left
	parent  int32 // with flits: the branch that feeds it, none when that is done
	arrived int32 // with flits: how many have come
	gone    int32 // with flits: how many have left the buffer
	port    int32 // port that it will leave by, where the table says it; none if that is still to be asked
	out     int32 // channel that it will leave by then
}

type cellState uint8

const (
	cellComing   cellState = iota // is not routed yet
	cellReady                     // is routed, and may ask as soon as it is first
	cellWaiting                   // has asked
	cellChoosing                  // has asked for several ports, and leaves by the first that takes it
	cellGoing                     // with flits: has all it asked for
)

// clear makes a cell one of no packet, channel or way.
func (c *cell) clear() {
	*c = cell{}
	c.in, c.next, c.branch, c.parent, c.port = none, none, none, none, none
}

// branch is a copy of a cell's packet that leaves by one output channel.
type branch struct {
	cell       int32
	in         int32 // the cell's
	port       int32
	out        int32 // channel
	sibling    int32
	prev, next int32 // waiting for the same channel
	sent       int32 // with flits: how many have left the port
	taken      int32 // with flits and output buffers: how many have come in there
	child      int32 // with flits: the cell that it feeds
	granted    bool  // on its way; with LockStep has its port, with flits its channel
	waits      bool  // is in the channel's list
}

// packet has the fields that all copies of a packet share.
type packet struct {
	msg      Message
	bytes    int32 // on the wire
	flits    int32
	refs     int32 // cells and deliveries under way
	last     bool
	born     Time
	injected Time
}

// pool hands out indices of items that are used again.
type pool[T any] struct {
	items []T
	free  []int32
}

func (p *pool[T]) get() int32 {
	if n := len(p.free); n > 0 {
		i := p.free[n-1]
		p.free = p.free[:n-1]
		return i
	}
	var zero T
	p.items = append(p.items, zero)
	return int32(len(p.items) - 1)
}

func (p *pool[T]) put(i int32) { p.free = append(p.free, i) }

// live is how many items are in use.
func (p *pool[T]) live() int { return len(p.items) - len(p.free) }

// VLs returns how many data VLs the network has.
func (net *Network) VLs() int {
	if net.SL2VL == nil {
		return 1
	}
	return max(1, net.SL2VL.VLs())
}

// New makes a simulation at time 0. driver may be nil. Errors: a Config that
// does not hold together, tables of another fabric, links without a rate.
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

func (s *Sim) addPort(p fabric.PortID) error {
	f := s.net.Fabric
	node := f.Owner(p)
	peer := f.Peer(p)
	pt := port{to: none, taken: none, node: none, isHost: !f.IsSwitch(node) && peer != fabric.NoPort}
	own := f.Num(p) == fabric.ManagementPort && f.IsSwitch(node)
	mbps := s.cfg.Mbps
	switch {
	case own: // as fast as anything can come
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

// Now is the time of the event that is under way, or where Run has stopped.
func (s *Sim) Now() Time { return s.events.now }

// Counts says what has happened so far.
func (s *Sim) Counts() Counts { return s.counts }

// Load is what has left by port p so far: for ports of hosts what they have sent,
// for those that lead to hosts what these have got.
func (s *Sim) Load(p fabric.PortID) Load { return s.ports[p].load }

// Free returns true if the channel of port p and VL vl would take a packet, or
// the head of a worm, at once: a Router may prefer such channels.
func (s *Sim) Free(p fabric.PortID, vl fabric.VL) bool {
	if s.ports[p].to == none {
		return false
	}
	channel := s.ports[p].to*s.vls + int32(vl)
	s.collectCredits(channel, 1)
	o := &s.channels[channel]
	return s.ports[p].taken == none && s.ports[p].freeAt <= s.events.now && o.first == none && o.holder == none && o.credits > 0
}

// Wake has the driver's Wake called with id at a time that is not before Now.
func (s *Sim) Wake(at Time, id int64) {
	s.push(max(at, s.events.now), evWake, int32(id), int32(id>>32))
}

// Send gives a message to its host now. It is an error if the host cannot send,
// no port has the LID, or a packet does not fit a buffer.
func (s *Sim) Send(m Message) error {
	if m.Src < 0 || int(m.Src) >= len(s.ports) || !s.ports[m.Src].isHost {
		return fmt.Errorf("port %d cannot send: want one of a CA or router, with a cable", m.Src)
	}
	return s.sendFrom(m)
}

// sendFrom is Send that also accepts a switch port with a cable: there the switch sends its own messages.
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
		// Field by field, here and elsewhere: a composite literal is made on the stack
		// first and then copied in larger pieces, for which the processor waits.
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

// pathSL is the SL that the routing wants for a path.
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

// vl is the VL on which a packet of an SL leaves port out, or lft.DropVL.
func (s *Sim) vl(in fabric.PortNum, out fabric.PortID, sl fabric.SL) fabric.VL {
	if s.allAlike {
		return s.sameVL[sl]
	}
	return s.net.SL2VL.At(in, out)[sl]
}

// inject puts a packet, whose one reference it takes over, into its host's queue.
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

// release gives up a reference to a packet.
func (s *Sim) release(i int32) {
	p := &s.packets.items[i]
	p.refs--
	if p.refs == 0 {
		s.packets.put(i)
	}
}

// addBranch adds an output port to a cell: by a port, and a channel of it.
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

// look has the table of a switch say by which way a cell, which comes to its port in,
// will leave it.
func (s *Sim) look(ce *cell, node, in int32) {
	ce.port = none
	if int(ce.dlid) > s.topLID {
		return
	}
	at := &s.hubs[node]
	out := at.base + int32(at.row[ce.dlid])
	if out >= at.end {
		return
	}
	to := s.to[out]
	vl := fabric.VL(0)
	switch {
	case to == none:
		return
	case to == out: // port 0
	case s.allAlike:
		vl = s.sameVL[ce.sl]
	default:
		vl = s.net.SL2VL.At(fabric.PortNum(in-at.base), fabric.PortID(out))[ce.sl]
	}
	if vl != lft.DropVL {
		ce.port, ce.out = out, to*s.vls+int32(vl)
	}
}

// branchOut makes the branches of a cell at a switch, none when it is dropped, where
// there is no way yet.
func (s *Sim) branchOut(c int32, ce *cell) {
	in := s.channels[ce.in].port
	at := s.net.Fabric.Owner(fabric.PortID(in))
	num := s.net.Fabric.Num(fabric.PortID(in))
	switch {
	case s.net.Router != nil:
		s.route = s.net.Router.Route(s, at, fabric.PortID(in), &s.packets.items[ce.packet].msg, s.route[:0])
		for i := len(s.route) - 1; i >= 0; i-- {
			s.leave(c, num, s.route[i])
		}
	case ce.dlid >= mft.MinMLID:
		var mask []fabric.PortID
		if s.net.Multicast != nil {
			mask = s.net.Multicast.Tables.Mask(at, ce.dlid)
		}
		for i := len(mask) - 1; i >= 0; i-- { // so that the list of branches ascends
			if mask[i] != fabric.PortID(in) {
				s.leave(c, num, mask[i])
			}
		}
	case s.worms:
		if s.net.Adaptive != nil {
			s.pick(ce)
		} else {
			s.look(ce, int32(at), in)
		}
		if ce.port != none {
			s.addBranch(c, ce.port, ce.out)
		}
	}
	if ce.branch == none {
		s.counts.Dropped++
	}
}

// leave adds the branch of a cell by port out, unless that leads nowhere.
func (s *Sim) leave(c int32, in fabric.PortNum, out fabric.PortID) {
	if vl := s.vlOut(in, int32(out), s.cells.items[c].sl); vl != lft.DropVL {
		s.addBranch(c, int32(out), s.to[out]*s.vls+int32(vl))
	}
}

// vlOut is the VL on which a packet leaves a switch by port out, lft.DropVL where
// that leads nowhere.
func (s *Sim) vlOut(in fabric.PortNum, out int32, sl fabric.SL) fabric.VL {
	switch s.to[out] {
	case none:
		return lft.DropVL
	case out: // port 0
		return 0
	}
	return s.vl(in, fabric.PortID(out), sl)
}

// Run goes on until no event is left up to the time until, which is then Now. It
// returns a *DeadlockError when packets wait for each other in a cycle, which
// ends the simulation, a *ConservationError when the simulator itself is wrong,
// and ctx's error.
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

// Deadlock searches for packets that wait for each other in a cycle, even if other
// packets still move, and returns a *DeadlockError if it finds any. Run also
// searches by itself, but only now and then.
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

// bucketBits makes the buckets of the queue 1 ns wide.
const bucketBits = 10

// lookEvery is after how many events the context is asked whether it is done.
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

// push adds an event at time at, now or later.
func (s *Sim) push(at Time, kind eventKind, a, b int32) {
	s.events.push(at, event{a, b, kind})
}

// fail has the simulation end with an error after this event.
func (s *Sim) fail(err error) { s.broken, s.nextCheck = err, 0 }

// end settles what is left when no event is, up to the time until.
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

// check is done whenever Config.FullChecks events have passed.
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

// Forever as the end of Run goes on until nothing is left to do.
const Forever Time = math.MaxInt64

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

// deliver has a packet arrive at an end port, and takes over one reference to it.
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
