package lft

import "github.com/ibweave/ibweave/fabric"

// Forest is what tables make of the switches for one LID: each sends it to one
// next switch. Grow fills it in, again and again without allocating.
type Forest struct {
	f *fabric.Fabric
	// Next is by switch in Order, the root excepted: the port that it sends the
	// LID to.
	Next []fabric.PortID
	// Order lists the switches that deliver the LID: the one that it is cabled to
	// first, and each after the one that it sends to.
	Order []fabric.NodeID
	child []int32 // by switch: one that sends to it, -1 for none
	older []int32 // by switch: another one that sends to the same, -1 for none
	flow  []int64
}

// NewForest is for tables of f.
func NewForest(f *fabric.Fabric) *Forest {
	n := f.NumSwitches()
	return &Forest{
		f: f, Next: make([]fabric.PortID, n), Order: make([]fabric.NodeID, 0, n),
		child: make([]int32, n), older: make([]int32, n), flow: make([]int64, n),
	}
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

// Grow finds the switches that deliver a LID to the port that has it, which for
// the LID of a switch is its port 0. For a LID of nobody, or of a port that is cabled
// to no switch, Order is empty.
func (x *Forest) Grow(t *Tables, lid fabric.LID) {
	f := x.f
	x.Order = x.Order[:0]
	at := f.LIDPort(lid)
	if at == fabric.NoPort {
		return
	}
	root := f.Owner(at)
	if f.IsSwitch(root) {
		if t.Row(root)[lid] != fabric.ManagementPort {
			return
		}
	} else {
		if f.Peer(at) == fabric.NoPort || !f.IsSwitch(f.Owner(f.Peer(at))) {
			return
		}
		root = f.Owner(f.Peer(at))
		if _, peer := t.Step(f, root, lid); peer != at {
			return
		}
	}
	for s := range x.child {
		x.child[s] = -1
	}
	for s := range fabric.NodeID(len(x.child)) {
		if s == root {
			continue
		}
		out, peer := t.Step(f, s, lid)
		if peer == fabric.NoPort || !f.IsSwitch(f.Owner(peer)) || f.Owner(peer) == s {
			continue
		}
		to := f.Owner(peer)
		x.Next[s] = out
		x.older[s] = x.child[to]
		x.child[to] = int32(s)
	}
	x.Order = append(x.Order, root)
	for i := 0; i < len(x.Order); i++ {
		for s := range x.From(x.Order[i]) {
			x.Order = append(x.Order, s)
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

// Flow yields the channels between switches that packets to the LID take, and how
// many sources send over each: sources is by switch, how many ports there send.
func (x *Forest) Flow(sources []int64, visit func(out fabric.PortID, routes int64)) {
	for _, s := range x.Order {
		x.flow[s] = sources[s]
	}
	for i := len(x.Order) - 1; i > 0; i-- {
		s := x.Order[i]
		out := x.Next[s]
		visit(out, x.flow[s])
		x.flow[x.f.Owner(x.f.Peer(out))] += x.flow[s]
	}
}
