package lft

import (
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
)

// Forest is the paths of tables to one LID. FindTree fills it in; it does not allocate, so
// that one Forest serves for many LIDs.
type Forest struct {
	f *fabric.Fabric
	// Next is, for each switch in Order except the root, the port by which it sends packets
	// to the LID.
	Next []fabric.PortID
	// Order lists the switches that deliver the LID: the one that the LID's port is cabled
	// to first, and each switch after its next switch.
	Order []fabric.NodeID
	base  []fabric.PortID // by switch: its first port, one entry more at the end
	to    []int32         // by port of a switch: the switch at the other end, or -1
	child []int32         // by switch: one of the switches that send to it, or -1
	older []int32         // by switch: the next one that sends to the same switch, or -1
	flow  []int64
}

// NewForest makes a Forest for tables of f.
func NewForest(f *fabric.Fabric) *Forest {
	n := f.NumSwitches()
	x := &Forest{
		f: f, Next: make([]fabric.PortID, n), Order: make([]fabric.NodeID, 0, n),
		base: make([]fabric.PortID, n+1), to: slices.Repeat([]int32{-1}, switchPorts(f)),
		child: make([]int32, n), older: make([]int32, n), flow: make([]int64, n),
	}
	for s := range fabric.NodeID(n) {
		x.base[s] = f.PortBase(s)
		ports, to := f.SwitchLinks(s)
		for i, p := range ports {
			x.to[p] = int32(to[i])
		}
	}
	x.base[n] = fabric.PortID(len(x.to))
	return x
}

// Step returns the port by which a switch sends a LID, and the port at the other end of its
// cable; NoPort for both if there is no such port or no cable.
func (t *Tables) Step(f *fabric.Fabric, s fabric.NodeID, lid fabric.LID) (out, peer fabric.PortID) {
	num := t.Row(s)[lid]
	if num == fabric.ManagementPort || num > f.Node(s).NumPorts {
		return fabric.NoPort, fabric.NoPort
	}
	out = f.Port(s, num)
	if peer = f.Peer(out); peer == fabric.NoPort {
		return fabric.NoPort, fabric.NoPort
	}
	return out, peer
}

// FindTree finds the switches whose packets reach the port with the LID (port 0 for a
// switch's own LID). Order is empty if no port has the LID, or if that port has no cable to
// a switch or its switch sends the LID elsewhere.
func (x *Forest) FindTree(t *Tables, lid fabric.LID) {
	f := x.f
	x.Order = x.Order[:0]
	last := f.Attachment(f.LIDPort(lid))
	if last == fabric.NoPort {
		return
	}
	root := f.Owner(last)
	if t.Row(root)[lid] != f.Num(last) {
		return
	}
	text.Fill(x.child, -1)
	for s := range fabric.NodeID(len(x.child)) {
		out := x.base[s] + fabric.PortID(t.Row(s)[lid])
		if s == root || out >= x.base[s+1] {
			continue
		}
		to := x.to[out]
		if to < 0 {
			continue
		}
		x.Next[s] = out
		x.older[s] = x.child[to]
		x.child[to] = int32(s)
	}
	x.Order = append(x.Order, root)
	for i := 0; i < len(x.Order); i++ {
		for s := x.child[x.Order[i]]; s >= 0; s = x.older[s] {
			x.Order = append(x.Order, fabric.NodeID(s))
		}
	}
}

// From yields the switches that send to s directly.
func (x *Forest) From(s fabric.NodeID) func(yield func(fabric.NodeID) bool) {
	return func(yield func(fabric.NodeID) bool) {
		for c := x.child[s]; c >= 0; c = x.older[c] {
			if !yield(fabric.NodeID(c)) {
				return
			}
		}
	}
}

// Flow visits the channels between switches that packets to the LID take, with the number
// of sources that send over each. sources gives, by switch, how many ports there send.
func (x *Forest) Flow(sources []int64, visit func(out fabric.PortID, routes int64)) {
	for _, s := range x.Order {
		x.flow[s] = sources[s]
	}
	for i := len(x.Order) - 1; i > 0; i-- {
		s := x.Order[i]
		out := x.Next[s]
		visit(out, x.flow[s])
		x.flow[x.to[out]] += x.flow[s]
	}
}
