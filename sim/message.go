package sim

import "github.com/ibweave/ibweave/fabric"

// PathSL as Message.SL takes the SL from Network.PathSLs.
const PathSL fabric.SL = 255

// Message is a message that a host is to send.
type Message struct {
	Src   fabric.PortID // port of a CA or router, with a cable
	DLID  fabric.LID    // LID or MLID
	SL    fabric.SL     // 0 to 15, or PathSL
	Flow  uint32        // number of a queue pair or the like; HBF hashes it, and packets of one Flow have an order
	Bytes int           // of data, 1 or more
	Tag   int64         // for the driver
}

// Delivery is the arrival of a packet's last byte at a host, or at port 0 of a
// switch.
type Delivery struct {
	Message  // Bytes is of this packet's data only
	Port     fabric.PortID
	At       Time
	Born     Time // when the message was sent
	Injected Time // when the packet's first byte left the host
	// Last is true if the message is complete with this packet. The packets of a message arrive in
	// order, except with adaptive tables.
	Last bool
}

// Reordering tells how many packets arrived out of order, with adaptive tables. The order is that
// of a flow: all unicast packets of one source, DLID, SL and Message.Flow.
type Reordering struct {
	Packets int64 `json:"packets"` // that arrived
	// OutOfOrder counts packets that arrived after a packet sent later in their flow. Share is
	// OutOfOrder / Packets.
	OutOfOrder      int64   `json:"out_of_order"`
	Share           float64 `json:"share"`
	Flows           int64   `json:"flows"`              // flows with packets
	OutOfOrderFlows int64   `json:"out_of_order_flows"` // flows with packets out of order
	// Behind is the most places by which a packet came after a later packet of its flow.
	Behind int64 `json:"max_behind"`
	// Late is how long, for each packet out of order, its flow had missed a packet when it arrived:
	// the time for which a receiver that wants order holds packets back.
	Late *Summary `json:"late_ns,omitempty"`
}

// flowKey identifies a flow.
type flowKey struct {
	src    fabric.PortID
	dlid   fabric.LID
	sl     fabric.SL
	number uint32
}

// flow is the state of a flow.
type flow struct {
	sent, arrived int64
	next          int64 // 1 + the highest place that arrived
	gap           Time  // time since which arrived is below next
	late          bool  // some packet was out of order
}

// ticket is the place of a packet in its flow and its message.
type ticket struct {
	place   int64
	flow    int32
	message int32
}

// ordering counts packets out of order.
type ordering struct {
	Reordering
	late     Latency
	index    map[flowKey]int32
	flows    []flow
	messages pool[int32] // packets of a message still to arrive
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

// deliver counts a packet's arrival, and returns true if it completes its message.
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
