package sim

import (
	"errors"
	"fmt"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/mft"
)

// Choice is how a switch chooses the output port of a packet whose entry is Free. It compares
// the static port and the ports of the group that have a cable and a VL for the packet. Of
// ports that are equal in both of its measures it takes the static port, or else the next one
// above it, from the lowest port on after the highest.
//
// A packet chooses once at each switch: when it is the first of its input buffer and
// RoutingDelay has passed, and nothing later changes the choice. Config.ChooseAgain lifts that
// for packets that are blocked.
type Choice = word[choices]

type choices struct{}

func (choices) names() (what string, list []string) {
	return "choice", []string{"least-queued", "most-credits"}
}

const (
	// LeastQueued takes the port that is done first with what it sends and with all that waits for
	// it at this switch, on any VL; among equal ports the one with the most credits.
	LeastQueued Choice = iota
	// MostCredits takes the port with the most free room in the buffer at the other end, as
	// far as the switch knows it, on the packet's VL; of several the least queued one.
	MostCredits
)

// checkAdaptive refuses adaptive tables beside what does not go with them.
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

// groupPorts returns, by switch and group, the ports of the group that have a cable, ascending.
func groupPorts(f *fabric.Fabric, t *adaptive.Tables) [][][]int32 {
	all := make([][][]int32, f.NumSwitches())
	for i, groups := range t.Groups[:min(len(t.Groups), len(all))] {
		s := fabric.NodeID(i)
		all[i] = make([][]int32, len(groups))
		for k := range groups {
			ports := groups[k].Ports()
			ports.Each(func(num fabric.PortNum) {
				if num == fabric.ManagementPort || num > f.Node(s).NumPorts {
					return
				}
				if p := f.Port(s, num); f.Peer(p) != fabric.NoPort {
					all[i][k] = append(all[i][k], int32(p))
				}
			})
		}
	}
	return all
}

// outlet is a port by which a packet may leave, and the channel that it takes then.
type outlet struct{ port, out int32 }

// pick has the adaptive tables say by which port a cell will leave the switch that it is in,
// as look does for those without a choice, and leaves all that it may leave by in s.outlets.
func (s *Sim) pick(ce *cell) {
	ce.port = none
	s.outlets = s.outlets[:0]
	t := s.net.Adaptive
	in := s.channels[ce.in].port
	at := s.net.Fabric.Owner(fabric.PortID(in))
	hub := &s.hubs[at]
	num := fabric.PortNum(in - hub.base)
	plft := t.Select.PLFT(at, num, ce.sl)
	if plft >= len(t.PLFTs) || ce.dlid > t.PLFTs[plft].Ports.MaxLID() {
		return
	}
	p := t.PLFTs[plft]
	static := hub.base + int32(p.Ports.Row(at)[ce.dlid])
	state, group := p.At(at, ce.dlid)
	var ports []int32
	if state != adaptive.Static && group >= 0 && group < len(s.groups[at]) {
		ports = s.groups[at][group]
	}
	// In the order of ties: the static port, those above it, those below it.
	s.addOutlet(ce, hub, num, static)
	for _, above := range []bool{true, false} {
		for _, port := range ports {
			if port != static && (port > static) == above {
				s.addOutlet(ce, hub, num, port)
			}
		}
	}
	if len(s.outlets) == 0 {
		return
	}
	best := s.outlets[0]
	switch {
	case len(s.outlets) == 1:
	case state == adaptive.HBF:
		best = s.hashed(ce, at)
		s.outlets = s.outlets[:0] // it never chooses again
	default:
		best = s.best()
	}
	ce.port, ce.out = best.port, best.out
}

// addOutlet adds a port to s.outlets, unless a cell that came by a port cannot leave by it.
func (s *Sim) addOutlet(ce *cell, at *hub, in fabric.PortNum, port int32) {
	if port >= at.end {
		return
	}
	if vl := s.vlOut(in, port, ce.sl); vl != lft.DropVL {
		s.outlets = append(s.outlets, outlet{port, s.to[port]*s.vls + int32(vl)})
	}
}

// best is the outlet that Config.Choice takes.
func (s *Sim) best() outlet {
	best := s.outlets[0]
	wait, credits := s.measure(best)
	for _, o := range s.outlets[1:] {
		w, c := s.measure(o)
		better := w < wait || w == wait && c > credits
		if s.cfg.Choice == MostCredits {
			better = c > credits || c == credits && w < wait
		}
		if better {
			best, wait, credits = o, w, c
		}
	}
	return best
}

// measure is how long a port still takes for what it sends and what waits for it, and the
// credits of a channel.
func (s *Sim) measure(x outlet) (wait Time, credits int32) {
	pt := &s.ports[x.port]
	wait = max(pt.freeAt-s.events.now, 0)
	if pt.taken != none && !s.worms {
		wait += takes(s.cells.items[s.branches.items[pt.taken].cell].bytes, pt.rate)
	}
	for vl := range s.vls {
		o := &s.channels[pt.to*s.vls+vl]
		if o.holder != none {
			br := &s.branches.items[o.holder]
			wait += takes((s.cells.items[br.cell].flits-br.sent)*int32(s.cfg.FlitBytes), pt.rate)
		}
		for b := o.first; b != none; b = s.branches.items[b].next {
			wait += takes(s.cells.items[s.branches.items[b].cell].bytes, pt.rate)
		}
	}
	s.collectCredits(x.out, 0)
	return wait, s.channels[x.out].credits
}

// hashed is the outlet of a packet's flow: a hash of source, destination and number of the
// flow, and of the switch, since switches with one hash would use a part of their ports only.
func (s *Sim) hashed(ce *cell, at fabric.NodeID) outlet {
	m := &s.packets.items[ce.packet].msg
	key := uint64(s.net.Fabric.LID(m.Src))<<48 | uint64(m.DLID)<<32 | uint64(m.Flow)
	return s.outlets[mix(mix(key)+uint64(at))%uint64(len(s.outlets))]
}

// mix is the finalizer of splitmix64 (Steele, Lea and Flood, OOPSLA 2014) after its increment.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// waitForAny has the first packet of a buffer, which cannot go at once, wait for all its
// outlets. It takes the first one that is free and has room behind it.
func (s *Sim) waitForAny(c int32, ce *cell) {
	begin := s.events.now // when the packet's tail keeps up with any of the ports
	for _, o := range s.outlets {
		begin = max(begin, ce.tail-takes(ce.bytes, s.ports[o.port].rate))
	}
	if begin > s.events.now {
		ce.port, ce.state = none, cellWaiting
		s.push(begin, evBegin, c, 0)
		return
	}
	ce.state = cellChoosing
	var ports [256]int32 // an offer may make another packet choose
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

// Reordering says how packets with adaptive tables arrived: in the order of their flow, or not.
// A flow is all unicast packets of one source, DLID, SL and Message.Flow.
type Reordering struct {
	Packets int64 `json:"packets"` // that arrived
	// OutOfOrder is how many arrived after a packet of their flow that was sent later, and Share
	// how many of Packets that is.
	OutOfOrder      int64   `json:"out_of_order"`
	Share           float64 `json:"share"`
	Flows           int64   `json:"flows"`              // that packets were sent of
	OutOfOrderFlows int64   `json:"out_of_order_flows"` // flows that have packets out of order
	// Behind is, at most, how many places behind the last packet in order, of those that had
	// arrived, a packet was.
	Behind int64 `json:"max_behind"`
	// Late is, for each packet out of order, how long its flow had had a gap when the packet
	// arrived: how long a receiver that wants order had been holding packets back.
	Late *Summary `json:"late_ns,omitempty"`
}

// flowKey tells flows apart.
type flowKey struct {
	src    fabric.PortID
	dlid   fabric.LID
	sl     fabric.SL
	number uint32
}

// flow is what Reordering needs to know of one.
type flow struct {
	sent, arrived int64
	next          int64 // 1 + the highest place that has arrived
	gap           Time  // since when arrived has been below next
	late          bool  // had packets out of order
}

// ticket is the place of a packet in its flow and its message.
type ticket struct {
	place   int64
	flow    int32
	message int32
}

// ordering follows the order of packets.
type ordering struct {
	Reordering
	late     Latency
	index    map[flowKey]int32
	flows    []flow
	messages pool[int32] // packets of a message that have not arrived
	tickets  []ticket    // by packet
}

// send gives a packet its ticket.
func (o *ordering) send(packet, message int32, m *Message) {
	key := flowKey{m.Src, m.DLID, m.SL, m.Flow}
	i, ok := o.index[key]
	if !ok {
		i = int32(len(o.flows))
		o.index[key] = i
		o.flows = append(o.flows, flow{})
		o.Flows++
	}
	for int(packet) >= len(o.tickets) {
		o.tickets = append(o.tickets, ticket{})
	}
	o.tickets[packet] = ticket{o.flows[i].sent, i, message}
	o.flows[i].sent++
	o.messages.items[message]++
}

// deliver counts a packet that has arrived, and returns true if the packet completes its
// message.
func (o *ordering) deliver(packet int32, now Time) (last bool) {
	t := &o.tickets[packet]
	f := &o.flows[t.flow]
	o.Packets++
	f.arrived++
	if t.place < f.next {
		o.OutOfOrder++
		o.Behind = max(o.Behind, f.next-1-t.place)
		o.late.add(now - f.gap)
		if !f.late {
			f.late = true
			o.OutOfOrderFlows++
		}
	} else {
		if f.arrived-1 == f.next {
			f.gap = now
		}
		f.next = t.place + 1
	}
	left := &o.messages.items[t.message]
	if *left--; *left == 0 {
		o.messages.put(t.message)
		return true
	}
	return false
}

// Reordering returns how packets arrived so far. It is nil without adaptive tables: packets
// of a flow then always arrive in order.
func (s *Sim) Reordering() *Reordering {
	if s.order == nil {
		return nil
	}
	r := s.order.Reordering
	r.Share, r.Late = float64(r.OutOfOrder)/float64(max(r.Packets, 1)), s.order.late.summary(true)
	return &r
}

// ordered returns true if the simulation follows the order of packets to a LID.
func (s *Sim) ordered(dlid fabric.LID) bool { return s.order != nil && dlid < mft.MinMLID }
