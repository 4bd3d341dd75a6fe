package lan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/papers/myrinet"
)

// Remedy is what switches do when a branch of a multicast worm is blocked (section
// 3 of the paper).
type Remedy uint8

const (
	// Idle makes the other branches carry IDLE characters: they keep their
	// ports, and all branches go on together (M8). That alone can deadlock;
	// the paper's first remedy is to route on the spanning tree (M9).
	Idle Remedy = iota
	// Interrupt makes the other branches end what they have sent
	// as a fragment, and free their ports. When nothing is
	// blocked they send the header again, and the rest;
	// destinations put fragments together (M10). Multicast worms
	// must come one after another, as from the root they do.
	Interrupt
	// Flush flags a port that has carried IDLE for a while. A
	// unicast worm that waits for such a port is taken out of the
	// network; its source sends it again after a random time (M11).
	// Here, too, multicast worms must come one after another.
	Flush
)

var remedies = [...]string{Idle: "idle", Interrupt: "interrupt", Flush: "flush"}

// String returns "idle", "interrupt" or "flush".
func (r Remedy) String() string {
	if int(r) < len(remedies) {
		return remedies[r]
	}
	return fmt.Sprintf("remedy %d", uint8(r))
}

// SwitchWorm is a worm that switches may copy.
type SwitchWorm struct {
	Source fabric.PortID     // port of a CA; its worms leave in the order of the list
	Route  myrinet.TreeRoute // from its switch on
	Flits  int               // 1 for the header and the data, 2 or more
	Start  int               // cycle in which the header leaves, at the earliest
}

// SwitchOptions are the choices of RunSwitches.
type SwitchOptions struct {
	Fabric *fabric.Fabric
	Buffer int // flits at each input port of a switch
	// Rooms has the flits of input ports that differ from Buffer, 1 or more.
	Rooms  map[fabric.PortID]int
	Remedy Remedy
	// FlagAfter is the cycles of IDLE after which Flush flags
	// a port, and the cycles of a blocked branch after which
	// Interrupt ends the others: 2 or more, since a buffer of
	// one flit has room every other cycle. Timeout is the
	// most cycles until a flushed worm is sent again.
	FlagAfter, Timeout int
	Seed               uint64
}

// SwitchWait is a worm that waits for another one.
type SwitchWait struct {
	Worm, For int           // indices
	Port      fabric.PortID // that For has, or behind which For is in the way
}

// SwitchResult is the outcome of RunSwitches.
type SwitchResult struct {
	Cycles int
	// Arrived lists by worm the ports of the hosts that have all of it, ascending.
	Arrived   [][]fabric.PortID
	Done      []int // by worm: cycles until all have it, else 0
	Fragments int   // branches that ended before their worm
	Flushed   int   // flushed worms, each time
	// Deadlock is worms that wait for each other in a cycle; nil when all arrived.
	Deadlock []SwitchWait
}

// cell is a flit in a buffer. number 0 is the header.
type cell struct {
	worm, number int32
	route        myrinet.TreeRoute // of a header
	end          bool              // no flit: the fragment ends here
}

// crossing is the way of a worm, or of a fragment, through a switch.
type crossing struct {
	worm int32
	outs []way
	// blocked counts the cycles in a row in which some branch was blocked.
	blocked int
}

type way struct {
	port   fabric.PortID
	route  myrinet.TreeRoute
	owned  bool
	headed bool // the header has been sent
	idle   int  // cycles without a flit while it was owned
}

type switches struct {
	o       *SwitchOptions
	worms   []SwitchWorm
	buffer  [][]cell    // by PortID of a switch's input port
	room    []int       // by the same: free flits when the cycle began
	through []*crossing // by the same
	owner   []int32     // by PortID of an output port: 1 + worm
	next    []int32     // by worm: number of the flit that its source sends next
	start   []int       // by worm: first cycle
	got     []map[fabric.PortID]int32
	want    []int // by worm: hosts that lack it
	queue   map[fabric.PortID][]int32
	rng     *rand.Rand
	r       *SwitchResult
	cycle   int
	moved   bool
	coming  []arrival // in this cycle
}

type arrival struct {
	port fabric.PortID
	cell cell
}

// RunSwitches sends worms through switches that copy them, flit by
// flit. A link carries one flit in a cycle, to a buffer that had
// room when the cycle began. Branches of a worm go in step. The end
// of a fragment is a control symbol, which takes no room and goes
// with the last flit. A flushed worm is out of the network at once.
//
// Errors: routes by ports without a cable, routes that end in
// a switch or go on behind a host; and flits that arrive out
// of order, an error of the simulator.
func RunSwitches(worms []SwitchWorm, o SwitchOptions) (*SwitchResult, error) {
	if o.Buffer < 1 || o.FlagAfter < 0 || o.Timeout < 0 || o.Remedy != Idle && o.FlagAfter < 2 {
		return nil, fmt.Errorf("buffers of %d flits and flags after %d cycles: want 1 or more and 2 or more", o.Buffer, o.FlagAfter)
	}
	n := o.Fabric.NumPorts()
	x := &switches{
		o: &o, worms: worms, buffer: make([][]cell, n), room: make([]int, n), through: make([]*crossing, n), owner: make([]int32, n),
		next: make([]int32, len(worms)), start: make([]int, len(worms)), got: make([]map[fabric.PortID]int32, len(worms)),
		want: make([]int, len(worms)), queue: make(map[fabric.PortID][]int32), rng: rand.New(rand.NewPCG(o.Seed, 0)),
		r: &SwitchResult{Arrived: make([][]fabric.PortID, len(worms)), Done: make([]int, len(worms))},
	}
	left := 0
	for i := range worms {
		w := &worms[i]
		peer := fabric.NoPort
		if w.Source >= 0 && int(w.Source) < n {
			peer = o.Fabric.Peer(w.Source)
		}
		if peer == fabric.NoPort || o.Fabric.IsSwitch(o.Fabric.Owner(w.Source)) || !o.Fabric.IsSwitch(o.Fabric.Owner(peer)) || w.Flits < 2 {
			return nil, fmt.Errorf("worm %d: want a CA port with a cable to a switch, and 2 flits or more", i)
		}
		hosts, err := x.hosts(o.Fabric.Owner(peer), w.Route)
		if err != nil {
			return nil, fmt.Errorf("worm %d: %w", i, err)
		}
		x.want[i] = hosts
		x.got[i] = make(map[fabric.PortID]int32)
		x.start[i] = w.Start
		x.queue[w.Source] = append(x.queue[w.Source], int32(i))
		left += hosts
	}
	sources := slices.Sorted(maps.Keys(x.queue))
	quiet := 0
	for ; ; x.cycle++ {
		for p := range x.room {
			x.room[p] = o.room(fabric.PortID(p)) - text.CountIf(x.buffer[p], func(c cell) bool { return !c.end })
		}
		x.moved = false
		for p := range x.buffer {
			if err := x.pass(fabric.PortID(p)); err != nil {
				return nil, err
			}
		}
		waits := false
		for _, c := range x.coming {
			x.buffer[c.port] = append(x.buffer[c.port], c.cell)
		}
		x.coming = x.coming[:0]
		for _, s := range sources {
			waits = x.emit(s) || waits
		}
		arrived := 0
		for i := range x.r.Arrived {
			arrived += len(x.r.Arrived[i])
		}
		if arrived == left {
			break
		}
		if quiet++; x.moved || waits {
			quiet = 0
		}
		if x.cycle == maxCycles {
			return nil, fmt.Errorf("worms are still under way after %d cycles", maxCycles)
		}
		if quiet > o.FlagAfter+2 {
			x.r.Deadlock = x.findCycle()
			break
		}
	}
	x.r.Cycles = x.cycle + 1
	for i := range x.r.Arrived {
		slices.Sort(x.r.Arrived[i])
	}
	return x.r, nil
}

// room returns how many flits an input port has room for.
func (o *SwitchOptions) room(p fabric.PortID) int {
	if n := o.Rooms[p]; n > 0 {
		return n
	}
	return o.Buffer
}

// maxCycles ends simulations that do not end by themselves.
const maxCycles = 1 << 20

func (x *switches) hosts(at fabric.NodeID, r myrinet.TreeRoute) (int, error) {
	f := x.o.Fabric
	if len(r) == 0 {
		return 0, fmt.Errorf("the route ends at switch %s", f.Name(at))
	}
	sum := 0
	for _, b := range r {
		if b.Port < 1 || b.Port > f.Node(at).NumPorts || f.Peer(f.Port(at, b.Port)) == fabric.NoPort {
			return 0, fmt.Errorf("port %d of switch %s leads nowhere", b.Port, f.Name(at))
		}
		to := f.Owner(f.Peer(f.Port(at, b.Port)))
		if !f.IsSwitch(to) {
			if len(b.Below) > 0 {
				return 0, fmt.Errorf("the route goes on behind host %s", f.Name(to))
			}
			sum++
			continue
		}
		n, err := x.hosts(to, b.Below)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// emit makes a source send a flit. It returns true if a worm's start is still to come.
func (x *switches) emit(s fabric.PortID) (waits bool) {
	for _, w := range x.queue[s] {
		if int(x.next[w]) == x.worms[w].Flits {
			continue
		}
		if x.cycle < x.start[w] {
			return true
		}
		in := x.o.Fabric.Peer(s)
		if x.room[in] < 1 {
			return false
		}
		c := cell{worm: w, number: x.next[w]}
		if c.number == 0 {
			c.route = x.worms[w].Route
		}
		x.buffer[in] = append(x.buffer[in], c)
		x.next[w]++
		x.moved = true
		return false
	}
	return false
}

// pass moves the first flit of a port's buffer on, by one link.
func (x *switches) pass(in fabric.PortID) error {
	b := x.buffer[in]
	c := x.through[in]
	if len(b) == 0 {
		if c != nil {
			c.wait() // nothing comes: IDLE goes on
		}
		return nil
	}
	if c == nil {
		c = x.enter(in)
	}
	if b[0].end {
		x.close(c)
		x.drop(in)
		x.through[in] = nil
		x.r.Fragments++
		return nil
	}
	blocked := x.blocked(c)
	if x.o.Remedy == Interrupt && len(c.outs) > 1 && x.interrupt(c, blocked) {
		return nil
	}
	if x.takePorts(c) {
		return nil
	}
	if blocked {
		c.wait()
		return nil
	}
	// Headers go before data, to branches that lack them.
	if heads, err := x.sendHeads(c); heads || err != nil {
		if b[0].number == 0 && err == nil {
			x.drop(in)
		}
		return err
	}
	last := int(b[0].number) == x.worms[c.worm].Flits-1
	for i := range c.outs {
		c.outs[i].idle = 0
		if err := x.send(c.outs[i].port, b[0]); err != nil {
			return err
		}
	}
	x.drop(in)
	if last {
		for i := range c.outs {
			x.owner[c.outs[i].port] = 0
		}
		x.through[in] = nil
	}
	return nil
}

// enter begins the crossing of the worm whose header is first in a buffer.
func (x *switches) enter(in fabric.PortID) *crossing {
	f := x.o.Fabric
	head := x.buffer[in][0]
	c := &crossing{worm: head.worm}
	for _, br := range head.route {
		c.outs = append(c.outs, way{port: f.Port(f.Owner(in), br.Port), route: br.Below})
	}
	x.through[in] = c
	return c
}

// wait counts a cycle in which no flit leaves.
func (c *crossing) wait() {
	for i := range c.outs {
		c.outs[i].idle++
	}
}

// blocked returns true if any branch is blocked.
func (x *switches) blocked(c *crossing) bool {
	return slices.ContainsFunc(c.outs, func(w way) bool {
		return !w.owned && x.owner[w.port] != 0 || !x.fits(w.port)
	})
}

// interrupt ends the other branches once some have been blocked
// for more than FlagAfter cycles. It returns true if it did.
func (x *switches) interrupt(c *crossing, blocked bool) bool {
	if c.blocked++; !blocked {
		c.blocked = 0
	}
	if c.blocked <= x.o.FlagAfter {
		return false
	}
	for i := range c.outs {
		if w := &c.outs[i]; w.owned && x.fits(w.port) {
			x.cut(w, c.worm)
			x.moved = true
		}
	}
	return true
}

// takePorts gives a crossing its free ports. It returns true
// if it flushed the worm instead, because of a flagged port.
func (x *switches) takePorts(c *crossing) (flushed bool) {
	for i := range c.outs {
		if w := &c.outs[i]; !w.owned && x.owner[w.port] == 0 {
			w.owned, w.idle = true, 0
			x.owner[w.port] = c.worm + 1
		} else if !w.owned && x.o.Remedy == Flush && len(c.outs) == 1 && x.flagged(w.port) {
			x.flush(c.worm)
			return true
		}
	}
	return false
}

// sendHeads sends the header to branches that lack it, and returns true if there were any.
func (x *switches) sendHeads(c *crossing) (heads bool, err error) {
	for i := range c.outs {
		w := &c.outs[i]
		if w.headed {
			continue
		}
		w.headed, heads = true, true
		if err := x.send(w.port, cell{worm: c.worm, route: w.route}); err != nil {
			return heads, err
		}
	}
	return heads, nil
}

// drop takes the first flit out of a buffer.
func (x *switches) drop(in fabric.PortID) {
	x.buffer[in] = x.buffer[in][:copy(x.buffer[in], x.buffer[in][1:])]
	x.moved = true
}

// fits returns true if there is room behind a port.
func (x *switches) fits(port fabric.PortID) bool {
	peer := x.o.Fabric.Peer(port)
	return !x.o.Fabric.IsSwitch(x.o.Fabric.Owner(peer)) || x.room[peer] > 0
}

// send puts a flit into the buffer behind a port, or delivers it.
func (x *switches) send(port fabric.PortID, c cell) error {
	x.moved = true
	peer := x.o.Fabric.Peer(port)
	if x.o.Fabric.IsSwitch(x.o.Fabric.Owner(peer)) {
		x.coming = append(x.coming, arrival{peer, c})
		x.room[peer]--
		return nil
	}
	if c.number == 0 {
		return nil // a header: of the worm, or of a further fragment
	}
	if got := x.got[c.worm][peer]; c.number != got+1 {
		return fmt.Errorf("the simulator is wrong: flit %d of worm %d after flit %d", c.number, c.worm, got)
	}
	x.got[c.worm][peer] = c.number
	if int(c.number) == x.worms[c.worm].Flits-1 {
		if x.r.Arrived[c.worm] = append(x.r.Arrived[c.worm], peer); len(x.r.Arrived[c.worm]) == x.want[c.worm] {
			x.r.Done[c.worm] = x.cycle + 1
		}
	}
	return nil
}

// cut ends the fragment on a way and frees its port.
func (x *switches) cut(w *way, worm int32) {
	if w.headed {
		if peer := x.o.Fabric.Peer(w.port); x.o.Fabric.IsSwitch(x.o.Fabric.Owner(peer)) {
			x.coming = append(x.coming, arrival{peer, cell{worm: worm, end: true}})
		} else {
			x.r.Fragments++
		}
	}
	w.owned, w.headed = false, false
	x.owner[w.port] = 0
}

// close ends all ways of a fragment.
func (x *switches) close(c *crossing) {
	for i := range c.outs {
		if c.outs[i].owned {
			x.cut(&c.outs[i], c.worm)
		}
	}
}

// flagged returns true if a multicast worm has kept a port idle for FlagAfter cycles.
func (x *switches) flagged(port fabric.PortID) bool {
	for _, c := range x.through {
		if c == nil || len(x.worms) == 0 || x.unicast(c.worm) {
			continue
		}
		for i := range c.outs {
			if c.outs[i].port == port && c.outs[i].owned && c.outs[i].idle >= x.o.FlagAfter {
				return true
			}
		}
	}
	return false
}

func (x *switches) unicast(w int32) bool { return x.want[w] == 1 }

// flush takes a unicast worm out of the network, and makes its source send it again.
func (x *switches) flush(worm int32) {
	if !x.unicast(worm) {
		return
	}
	for p := range x.buffer {
		x.buffer[p] = slices.DeleteFunc(x.buffer[p], func(c cell) bool { return c.worm == worm })
		if x.through[p] != nil && x.through[p].worm == worm {
			x.through[p] = nil
		}
		if x.owner[p] == worm+1 {
			x.owner[p] = 0
		}
	}
	x.coming = slices.DeleteFunc(x.coming, func(c arrival) bool { return c.cell.worm == worm })
	clear(x.got[worm])
	x.next[worm] = 0
	x.start[worm] = x.cycle + 1 + x.rng.IntN(x.o.Timeout+1)
	x.r.Flushed++
	x.moved = true
}

func (x *switches) findCycle() []SwitchWait {
	waits := make([][]SwitchWait, len(x.worms))
	for in, c := range x.through {
		if c == nil || len(x.buffer[in]) == 0 {
			continue
		}
		for i := range c.outs {
			w := &c.outs[i]
			by := none
			if !w.owned {
				by = x.owner[w.port] - 1
			} else if peer := x.o.Fabric.Peer(w.port); !x.fits(w.port) && len(x.buffer[peer]) > 0 {
				by = x.buffer[peer][0].worm
			}
			if by != none && by != c.worm {
				waits[c.worm] = append(waits[c.worm], SwitchWait{Worm: int(c.worm), For: int(by), Port: w.port})
			}
		}
	}
	return graph.FirstCycleOf(waits, func(w SwitchWait) int { return w.For })
}
