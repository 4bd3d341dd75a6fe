// Package lan simulates a Myrinet byte by byte: worms that follow
// their source routes through switches with slack buffers and
// STOP and GO, and host adapters that pass multicast messages on
// by a schedule (Gerla, Palnati and Walton, sections 2 and 4 to
// 8). It measures the schedules of package myrinet, and runs into
// the buffer deadlocks that myrinet.Schedule.Check predicts. It
// also simulates, flit by flit, the multicast within switches of
// section 3. It makes no promise to other modules.
//
// The unit of time is the byte time, 12.5 ns at 640 Mb/s (M2).
// Bytes are not moved one by one: a channel sends either a byte
// in every byte time or none, and events are the moments at which
// that changes. The result is that of a simulation byte by byte.
package lan

import (
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/lft"
)

// none is the index that stands for no element.
const none int32 = -1

// Wires is how cables and switches behave, in bytes and byte times.
type Wires struct {
	Delay int // of a byte on a cable, 0 or more
	// Switch is the time from when the head of a worm is first in an
	// input buffer until the worm asks for the output port, 1 or more.
	Switch int
	// Stop is the fill at which an input buffer sends STOP; Go is
	// the fill at which it sends GO while it empties (M1).
	Stop, Go int
}

// DefaultWires returns what we assume where the paper says
// nothing: cables of 12.5 m, 100 ns in a switch, and buffers just
// large enough for worms to flow on at full speed after a STOP.
func DefaultWires() Wires { return LongWires(5) }

// LongWires is DefaultWires with another delay of cables.
func LongWires(delay int) Wires {
	return Wires{Delay: delay, Switch: 8, Stop: 2*delay + 32, Go: 2*delay + 8}
}

// Slack returns how many bytes an input buffer takes: its fill when it sends
// STOP, and what comes until the last byte that was sent before STOP arrived.
func (w *Wires) Slack() int { return w.Stop + 2*w.Delay }

func (w *Wires) check() error {
	const most = 1 << 24
	switch {
	case w.Delay < 0 || w.Delay > most:
		return fmt.Errorf("delay of %d byte times: want 0 to %d", w.Delay, most)
	case w.Switch < 1 || w.Switch > most:
		return fmt.Errorf("%d byte times in a switch: want 1 to %d", w.Switch, most)
	case w.Go < 0 || w.Stop <= w.Go || w.Stop <= w.Switch || w.Stop > most:
		return fmt.Errorf("STOP at %d bytes and GO at %d: want GO first, and STOP beyond the %d byte times that a switch takes", w.Stop, w.Go, w.Switch)
	}
	return nil
}

// event is something that happens at a moment; kind says what a and b are.
type event struct {
	at   int64
	push uint64 // its number among all events that were pushed
	kind eventKind
	a, b int32
}

// before orders events by time, and those of one moment as they were pushed.
func (e event) before(f event) bool { return e.at < f.at || e.at == f.at && e.push < f.push }

type eventKind uint8

const (
	evOn    eventKind = iota // bytes of hop a begin to come
	evOff                    // bytes of hop a stop
	evTail                   // the last byte of hop a has come
	evAsk                    // the worm of hop a asks for its output port
	evEnd                    // hop a has sent all there is, if b is its version
	evFill                   // the buffer of channel a is at a threshold, if b is its version
	evStop                   // the sender of channel a hears STOP, or GO if b is 0
	evBirth                  // host a originates
	evRetry                  // job a may be sent again
	evReady                  // copy a may be passed on
)

// channel is one direction of a cable, and the input buffer at its end.
type channel struct {
	host    int32   // the host at its end, none for a switch
	holder  int32   // the hop that has it
	waiters []int32 // hops that wait for it, as they came
	served  fabric.PortNum
	stopped bool // the sender has heard STOP
	source  bool // it leaves a host

	first, last int32 // hops whose worms are in the buffer or come into it
	fill        int32 // bytes in it, at fillAt
	fillAt      int64
	in, out     bool // bytes come, and leave
	stopSent    bool
	version     int32
	sent        int64 // bytes in all
}

// hop is a worm that crosses a channel. It begins when the worm asks for the
// channel and ends when the worm has left the buffer behind it.
type hop struct {
	worm       int32
	ch         int32
	prev, next int32 // hops of the same worm before and after; prev is none when all bytes are there
	line       int32 // next hop in the buffer
	total      int32 // bytes
	sent       int32 // bytes, at sentAt
	version    int32
	arrived    int32 // bytes, at arrivedAt
	sentAt     int64
	arrivedAt  int64
	running    bool // it sends bytes
	arriving   bool
	head       bool // the head has arrived
	final      bool // the tail has arrived
}

// network has the cables, the switches and the worms in them.
type network struct {
	f      *fabric.Fabric
	tables *lft.Tables
	wires  Wires
	events graph.Heap[event]
	pushes uint64 // events so far
	now    int64
	chans  []channel // by PortID of the sending port
	hops   []hop
	free   []int32
	hosts  *adapters
	broken error

	mostFill int32 // of all input buffers so far
}

func newNetwork(f *fabric.Fabric, t *lft.Tables, w Wires) (*network, error) {
	if err := w.check(); err != nil {
		return nil, err
	}
	n := &network{f: f, tables: t, wires: w, events: graph.Heap[event]{Before: event.before}, chans: make([]channel, f.NumPorts())}
	for i := range n.chans {
		n.chans[i] = channel{host: none, holder: none, first: none, last: none}
	}
	for h, p := range f.CAPorts() {
		peer := f.Peer(p)
		if !f.IsSwitch(f.Owner(peer)) {
			return nil, fmt.Errorf("%s is cabled to another host: want a switch", f.PortName(p))
		}
		n.chans[peer].host = int32(h)
		n.chans[p].source = true
	}
	return n, nil
}

func (n *network) push(after int64, kind eventKind, a, b int32) {
	n.pushes++
	n.events.Push(event{n.now + after, n.pushes, kind, a, b})
}

func (n *network) newHop(worm, ch, prev, total int32) int32 {
	if k := len(n.free); k > 0 {
		i := n.free[k-1]
		n.free = n.free[:k-1]
		n.hops[i] = hop{worm: worm, ch: ch, prev: prev, next: none, line: none, total: total, version: n.hops[i].version}
		return i
	}
	n.hops = append(n.hops, hop{worm: worm, ch: ch, prev: prev, next: none, line: none, total: total})
	return int32(len(n.hops) - 1)
}

// send makes a host send a worm of some bytes into its channel, which
// is free. If prev is not none, the bytes are still coming by that hop.
func (n *network) send(worm, ch, prev, bytes int32) int32 {
	h := n.newHop(worm, ch, prev, bytes)
	if prev != none {
		n.hops[prev].next = h
	}
	n.chans[ch].holder = h
	n.try(h)
	return h
}

// gone returns how many bytes a hop has sent.
func (n *network) gone(h *hop) int32 {
	if h.running {
		return h.sent + int32(n.now-h.sentAt)
	}
	return h.sent
}

// come returns how many bytes of a hop have arrived.
func (n *network) come(h *hop) int32 {
	if h.arriving {
		return h.arrived + int32(n.now-h.arrivedAt)
	}
	return h.arrived
}

// try makes a hop that has its channel send, if it can.
func (n *network) try(i int32) {
	h := &n.hops[i]
	c := &n.chans[h.ch]
	if h.running || c.holder != i || c.stopped {
		return
	}
	if h.prev != none {
		if p := &n.hops[h.prev]; !p.final && !p.arriving && n.come(p) == h.sent {
			return
		}
	}
	h.running = true
	h.sentAt = n.now
	n.push(int64(n.wires.Delay), evOn, i, 0)
	n.plan(i)
	if h.prev != none && !c.source {
		p := n.hops[h.prev].ch
		n.flow(p, n.chans[p].in, true)
	}
}

// plan schedules the moment at which a sending hop will have sent all there is.
func (n *network) plan(i int32) {
	h := &n.hops[i]
	h.version++
	if !h.running {
		return
	}
	sent := n.gone(h)
	left := h.total - sent
	if h.prev != none {
		if p := &n.hops[h.prev]; !p.final && !p.arriving {
			left = min(left, n.come(p)-sent)
		}
	}
	n.push(int64(left), evEnd, i, h.version)
}

// halt makes a hop stop sending for a while.
func (n *network) halt(i int32) {
	h := &n.hops[i]
	h.sent = n.gone(h)
	h.running = false
	h.version++
	n.push(int64(n.wires.Delay), evOff, i, 0)
	if h.prev != none && !n.chans[h.ch].source {
		p := n.hops[h.prev].ch
		n.flow(p, n.chans[p].in, false)
	}
}

// end handles the moment at which a hop has sent all there is:
// all of the worm, or what has come so far.
func (n *network) end(i int32) {
	h := &n.hops[i]
	if n.gone(h) < h.total {
		n.halt(i)
		return
	}
	if h.prev != none && !n.hops[h.prev].final {
		n.push(0, evEnd, i, h.version) // its tail comes at this very moment
		return
	}
	n.done(i)
}

// done handles the moment at which the tail of a worm leaves by a hop's channel.
func (n *network) done(i int32) {
	h := &n.hops[i]
	was := h.running
	h.sent = h.total
	h.running = false
	h.version++
	n.push(int64(n.wires.Delay), evTail, i, 0)
	c := &n.chans[h.ch]
	c.sent += int64(h.total)
	c.holder = none
	if c.source {
		n.hosts.sent(i)
		return
	}
	prev := h.prev
	h.prev = none
	p := n.hops[prev].ch
	if was {
		n.flow(p, n.chans[p].in, false)
	}
	b := &n.chans[p]
	b.first = n.hops[prev].line
	n.free = append(n.free, prev)
	if b.first == none {
		b.last = none
	} else if n.hops[b.first].head {
		n.push(int64(n.wires.Switch), evAsk, b.first, 0)
	}
	n.grant(h.ch)
}

// grant gives a channel to the next hop that waits for it, taking input ports in turn.
func (n *network) grant(ch int32) {
	c := &n.chans[ch]
	if c.holder != none || len(c.waiters) == 0 {
		return
	}
	best, bestNum := 0, 1<<30
	for k, w := range c.waiters {
		num := int(n.input(w))
		if num <= int(c.served) {
			num += 256
		}
		if num < bestNum {
			best, bestNum = k, num
		}
	}
	i := c.waiters[best]
	c.waiters = slices.Delete(c.waiters, best, best+1)
	c.served = n.input(i)
	c.holder = i
	n.try(i)
}

// input returns the number of the port by which the worm of a hop came to its switch.
func (n *network) input(i int32) fabric.PortNum {
	return n.f.Num(n.f.Peer(fabric.PortID(n.hops[n.hops[i].prev].ch)))
}

// ask makes the worm that hop prev has brought ask for its output port.
func (n *network) ask(prev int32) {
	p := &n.hops[prev]
	at := n.f.Owner(n.f.Peer(fabric.PortID(p.ch)))
	out := int32(n.f.Port(at, n.tables.Row(at)[n.hosts.dlid(p.worm)]))
	i := n.newHop(p.worm, out, prev, p.total)
	n.hops[prev].next = i
	c := &n.chans[out]
	if c.holder == none && len(c.waiters) == 0 {
		c.served = n.input(i)
		c.holder = i
		n.try(i)
	} else {
		c.waiters = append(c.waiters, i)
	}
	if !n.hops[i].running {
		ch := n.hops[prev].ch
		n.flow(ch, n.chans[ch].in, false)
	}
}

// flow sets whether bytes come into a buffer and leave it from now on, and plans STOP and GO.
func (n *network) flow(ch int32, in, out bool) {
	c := &n.chans[ch]
	d := int32(n.now - c.fillAt)
	if c.in {
		c.fill += d
	}
	if c.out {
		c.fill -= d
	}
	c.fillAt, c.in, c.out = n.now, in, out
	c.version++
	n.mostFill = max(n.mostFill, c.fill)
	if c.fill < 0 || int(c.fill) > n.wires.Slack() {
		n.fail("%d bytes in a buffer of %d", c.fill, n.wires.Slack())
		return
	}
	if c.stopSent {
		if left := int64(c.fill) - int64(n.wires.Go); left <= 0 {
			c.stopSent = false
			n.push(int64(n.wires.Delay), evStop, ch, 0)
		} else if out && !in {
			n.push(left, evFill, ch, c.version)
			return
		} else {
			return
		}
	}
	if left := int64(n.wires.Stop) - int64(c.fill); left <= 0 {
		c.stopSent = true
		n.push(int64(n.wires.Delay), evStop, ch, 1)
	} else if in && !out {
		n.push(left, evFill, ch, c.version)
	}
}

// on handles the moment at which bytes of a hop begin to come.
func (n *network) on(i int32) {
	h := &n.hops[i]
	h.arriving = true
	h.arrivedAt = n.now
	c := &n.chans[h.ch]
	first := !h.head
	h.head = true
	if c.host != none {
		if first {
			n.hosts.head(c.host, i)
		}
	} else if first {
		if c.first == none {
			// A worm alone: the buffer cannot overflow before the worm asks for its output.
			c.first, c.last = i, i
			c.fillAt, c.in, c.out = n.now, true, false
			c.version++
			n.push(int64(n.wires.Switch), evAsk, i, 0)
			return
		}
		n.hops[c.last].line = i
		c.last = i
		n.flow(h.ch, true, c.out)
	} else {
		n.flow(h.ch, true, c.out)
	}
	if next := n.hops[i].next; next != none {
		if n.hops[next].running {
			n.plan(next)
		} else {
			n.try(next)
		}
	}
}

// off handles the moment at which bytes of a hop stop coming for a while.
func (n *network) off(i int32) {
	h := &n.hops[i]
	h.arrived = n.come(h)
	h.arriving = false
	if c := &n.chans[h.ch]; c.host == none {
		n.flow(h.ch, false, c.out)
	}
	if h.next != none && n.hops[h.next].running {
		n.plan(h.next)
	}
}

// tail handles the moment at which the last byte of a hop has come.
func (n *network) tail(i int32) {
	h := &n.hops[i]
	h.arrived = n.come(h)
	h.arriving = false
	h.final = true
	if h.arrived != h.total {
		n.fail("%d bytes of a worm of %d have come", h.arrived, h.total)
		return
	}
	c := &n.chans[h.ch]
	if c.host == none {
		n.flow(h.ch, false, c.out)
	}
	next := h.next
	if next != none {
		if x := &n.hops[next]; x.total != h.total { // its host has cut it
			x.total = h.total
			switch {
			case x.running:
				n.plan(next)
			case x.sent == x.total:
				n.done(next)
			}
		} else {
			n.try(next)
		}
	}
	if c.host != none {
		if next != none {
			n.hops[next].prev = none
		}
		n.hosts.tail(c.host, i)
		n.free = append(n.free, i)
	}
}

// cut ends a worm that its host is sending by hop i; bytes that have left the
// host go on. It returns true if none has left: then hop i is free again.
func (n *network) cut(i int32) (unsent bool) {
	h := &n.hops[i]
	if !h.running && h.sent == 0 {
		n.chans[h.ch].holder = none
		if h.prev != none {
			n.hops[h.prev].next = none
		}
		h.version++
		n.free = append(n.free, i)
		return true
	}
	if h.prev != none {
		n.hops[h.prev].next = none
		h.prev = none
	}
	h.total = max(1, n.gone(h))
	if h.running {
		n.plan(i)
	} else {
		n.done(i)
	}
	return false
}

func (n *network) fail(format string, args ...any) {
	if n.broken == nil {
		n.broken = fmt.Errorf("the simulator is wrong: at %d byte times %s", n.now, fmt.Sprintf(format, args...))
	}
}

// run handles events until a time, or until none is left.
func (n *network) run(until int64) error {
	for n.broken == nil && n.events.Len() > 0 && n.events.First().at <= until {
		e := n.events.Pop()
		n.now = e.at
		switch e.kind {
		case evOn:
			n.on(e.a)
		case evOff:
			n.off(e.a)
		case evTail:
			n.tail(e.a)
		case evAsk:
			n.ask(e.a)
		case evEnd:
			if n.hops[e.a].version == e.b {
				n.end(e.a)
			}
		case evFill:
			if c := &n.chans[e.a]; c.version == e.b {
				n.flow(e.a, c.in, c.out)
			}
		case evStop:
			n.signal(e.a, e.b != 0)
		case evBirth:
			n.hosts.birth(e.a)
		case evRetry:
			n.hosts.retry(e.a)
		case evReady:
			n.hosts.ready(e.a)
		}
	}
	return n.broken
}

// signal handles STOP or GO that has come to the sender of a channel.
func (n *network) signal(ch int32, stop bool) {
	c := &n.chans[ch]
	c.stopped = stop
	if c.holder == none {
		return
	}
	if !stop {
		n.try(c.holder)
	} else if n.hops[c.holder].running {
		n.halt(c.holder)
	}
}
