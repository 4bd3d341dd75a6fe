package lft

import (
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
)

// Forest is the paths of tables to one LID: each switch sends it to one next switch.
// FindTree fills it in, again and again without allocating.
type Forest struct {
	f *fabric.Fabric
	// Next gives, for each switch in Order except the root, the port by which it sends the
	// LID.
	Next []fabric.PortID
	// Order lists the switches that deliver the LID: the one that it is cabled to
	// first, and each after the one that it sends to.
	Order []fabric.NodeID
	base  []fabric.PortID // by switch, one more at the end
	to    []int32         // by port of a switch: the other switch that it leads to, -1 for none
	child []int32         // by switch: one that sends to it, -1 for none
	older []int32         // by switch: another one that sends to the same, -1 for none
	flow  []int64
}

// NewForest is for tables of f.
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

// Step is where a switch sends a LID: its port, and the port at the other end;
// NoPort for both when there is no such port, or no cable.
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

// FindTree finds the switches that deliver a LID to the port that has it; for
// the LID of a switch that is its port 0. Order is empty if no port has the LID, or if its
// port is not cabled to a switch.
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

// From yields the switches that send to s.
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
// of sources that send over each. sources gives for each switch how many ports there send.
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
