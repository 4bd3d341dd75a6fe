package sim

import (
	"math"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
)

// unlimited is the credit of a channel whose receiver takes all packets.
const unlimited int32 = math.MaxInt32 / 2

// Network is the network to simulate. It must not change meanwhile.
type Network struct {
	// State has the tables. Adaptive, if not nil, forwards unicast packets instead of
	// Tables, see Config.Choice; an HBF entry always gives a flow the same port.
	// Multicast.Tables send a packet to all ports of the mask except the one where it
	// arrived. SL2VL gives the VL of each hop; nil means VL 0. PathSLs gives the SL
	// of messages sent with PathSL; nil means SL 0. Packets without an entry are
	// dropped.
	state.State
	// Router, if not nil, replaces all tables.
	Router Router
}

// Router forwards packets without tables: adaptively, or along a route chosen
// by the source.
type Router interface {
	// Route appends the ports by which a packet leaves switch at, which it entered by port
	// in: ports of that switch, each once; port 0 takes a copy for the switch itself. If it
	// appends none, the packet is dropped. It is called once for each packet and switch,
	// when the packet is at the head of its buffer. Route may call s.Free and nothing else
	// of s.
	Route(s *Sim, at fabric.NodeID, in fabric.PortID, m *Message, to []fabric.PortID) []fabric.PortID
}

// VLs returns how many data VLs the network has.
func (net *Network) VLs() int {
	if net.SL2VL == nil {
		return 1
	}
	return max(1, net.SL2VL.VLs())
}

// Driver makes traffic, and gets all deliveries.
type Driver interface {
	// Wake is called at the time given to Sim.Wake, with the same id.
	Wake(s *Sim, id int64)
	// Deliver is called for each delivery. d is valid only during the call.
	Deliver(s *Sim, d *Delivery)
}

// Counts are counts up to now. A flit-hop is one flit that crosses one cable.
type Counts struct {
	Messages  int64 // sent by hosts
	Packets   int64 // of these messages
	Copies    int64 // of packets, now in buffers or on the way to hosts
	Queued    int64 // packets that hosts have not begun to send
	Delivered int64 // arrivals of packets at end ports
	Dropped   int64 // copies that a switch could not forward, or with DropVL
	Strayed   int64 // unicast deliveries to a port without that LID
	FlitHops  int64
	Events    int64
	LastAt    Time // of the last delivery
}

// Load is the traffic sent through a cable in one direction.
type Load struct {
	Packets, Bytes int64
	Busy           Time
}

// Sim is a simulation. It is not safe for concurrent use.
type Sim struct {
	// Every hop of a packet uses these fields.
	cells     pool[cell] // all cells
	channels  []channel  // index: PortID of the receiving port * vls + VL
	ports     []port     // by PortID
	hubs      []hub      // by switch
	to        []int32    // by PortID: a copy of port.to, which fits into few cache lines
	topLID    int        // the highest LID in hub.row; -1 for none
	hop       Time       // from when a packet is sent until it is routed
	vls       int32
	room      int32 // flits in a buffer
	worms     bool  // packets move flit by flit
	allAlike  bool  // all ports map by sameVL
	sameVL    lft.VLMap
	counts    Counts
	returning int64 // flits of credit on their way
	// The numbers of events at which the next deadlock search, full check and
	// look at the context are due, and the least of these.
	nextSearch, nextFull, nextLook, nextCheck int64
	broken                                    error // the error that ended the simulation

	net      Network
	cfg      Config
	driver   Driver
	branches pool[branch]
	packets  pool[packet]
	dues     pool[due]
	sent     []int64         // by PortID: tag of the message it sent last; nil if not needed
	hostFree []Time          // by PortID: when a host has prepared all its messages
	route    []fabric.PortID // scratch
	outlets  []outlet        // scratch
	groups   [][][]int32     // by switch and group of Network.Adaptive: its ports
	order    *ordering       // nil without Network.Adaptive
	delivery Delivery
	events   queue
}

// hub has what each hop needs of a switch.
type hub struct {
	row       []fabric.PortNum // its forwarding table; empty without tables
	base, end int32            // ports from base to end-1
}

// port has what sim needs to send by a port. With some fields of the port at the other end, it is
// all that a hop needs, in one cache line.
type port struct {
	rate    int64 // 1/1024 ps a byte
	freeAt  Time  // when the last packet sent has left
	load    Load
	to      int32  // port at the other end; itself for port 0 of a switch, none without a cable
	taken   int32  // with LockStep: the branch that holds the port before it sends; with flits: the branch that sends
	node    int32  // of the port at the other end
	waiting uint16 // a bit for each VL on which a branch waits
	vl      uint8  // VL served last
	sink    bool   // it leads to an end port, or is port 0
	asked   bool   // an evArbitrate is due
	wakes   bool   // an evFree is due
	isHost  bool   // of a CA or router, with a cable
}

// channel has both ends of a VL of a cable in one direction, as a change at one end soon matters at
// the other; it fits a cache line.
type channel struct {
	// For its sender.
	first, last int32 // list of branches that wait for it
	credits     int32 // flits of room at the other end
	holder      int32 // with flits: the branch of the worm that has it
	served      int32 // input channel of the packet it sent last
	dueFlits    int32 // credit that arrives at dueAt without an event; 0 for none
	later       int32 // list of dues, by time, after dueAt
	lastLater   int32
	dueAt       Time
	// For its receiver, the buffer.
	freeAt     Time  // when the cell before the first has left
	head, tail int32 // cells in it
	used       int32 // flits of room taken by its cells
	port       int32 // the receiving port
}

// due is credit on its way to a channel that no packet waits for.
type due struct {
	at    Time
	flits int32
	next  int32
}

// cell is a packet in the buffer of a switch, or at its sender, with what a hop needs of the
// packet; it fits a cache line.
type cell struct {
	tail    Time // when the last byte arrives
	packet  int32
	in      int32 // channel by which it came; none at a host
	next    int32 // in the buffer
	branch  int32 // first of its branches
	waiting int32 // branches that are not granted yet
	bytes   int32 // of the packet, on the wire
	flits   int32
	dlid    fabric.LID
	sl      fabric.SL
	state   cellState
	pending int32 // with flits: branches that have not left yet
	parent  int32 // with flits: the branch that feeds it; none once all flits are sent
	arrived int32 // with flits: how many have arrived
	gone    int32 // with flits: how many have left the buffer
	port    int32 // output port that a table gives; none if it is not found yet
	out     int32 // channel at that port
}

type cellState uint8

const (
	cellComing   cellState = iota // is not routed yet
	cellReady                     // is routed, and asks for ports once it is first
	cellWaiting                   // has asked for its ports
	cellChoosing                  // has asked for several ports, and takes the first that can send
	cellGoing                     // with flits: has all channels it asked for
)

// clear resets a cell.
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
	prev, next int32 // in the list of those waiting for the same channel
	sent       int32 // with flits: how many have left the port
	taken      int32 // with flits and output buffers: how many have entered the output buffer
	child      int32 // with flits: the cell that it feeds
	granted    bool  // on its way; with LockStep it has its port, with flits its channel
	waits      bool  // is in the channel's list
}

// packet has the fields that all copies of a packet share.
type packet struct {
	msg      Message
	bytes    int32 // on the wire
	flits    int32
	refs     int32 // number of cells and deliveries under way
	last     bool
	born     Time
	injected Time
}

// outlet is a port by which a packet may leave, with the channel there.
type outlet struct{ port, out int32 }

// vl returns the VL on which a packet with an SL leaves port out, or lft.DropVL.
func (s *Sim) vl(in fabric.PortNum, out fabric.PortID, sl fabric.SL) fabric.VL {
	if s.allAlike {
		return s.sameVL[sl]
	}
	return s.net.SL2VL.At(in, out)[sl]
}

// push adds an event at time at, not before now.
func (s *Sim) push(at Time, kind eventKind, a, b int32) {
	s.events.push(at, event{a, b, kind})
}

// fail ends the simulation with an error after this event.
func (s *Sim) fail(err error) { s.broken, s.nextCheck = err, 0 }
