package sim

import (
	"math"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
)

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

// VLs returns how many data VLs the network has.
func (net *Network) VLs() int {
	if net.SL2VL == nil {
		return 1
	}
	return max(1, net.SL2VL.VLs())
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

// outlet is a port by which a packet may leave, and the channel that it takes then.
type outlet struct{ port, out int32 }

// vl is the VL on which a packet of an SL leaves port out, or lft.DropVL.
func (s *Sim) vl(in fabric.PortNum, out fabric.PortID, sl fabric.SL) fabric.VL {
	if s.allAlike {
		return s.sameVL[sl]
	}
	return s.net.SL2VL.At(in, out)[sl]
}

// push adds an event at time at, now or later.
func (s *Sim) push(at Time, kind eventKind, a, b int32) {
	s.events.push(at, event{a, b, kind})
}

// fail has the simulation end with an error after this event.
func (s *Sim) fail(err error) { s.broken, s.nextCheck = err, 0 }
