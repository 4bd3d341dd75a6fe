package sim

import "github.com/ibweave/ibweave/fabric"

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
