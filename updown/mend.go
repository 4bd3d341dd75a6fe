package updown

import (
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

var _ lft.Rerouter = Engine{}

// Mender keeps the order of the switches, so that every channel that is left has
// the direction that it had, and old entries and new ones together have no credit
// loop. That serves as long as each connected part of f has one switch alone without
// an upward link; else it is nil.
func (Engine) Mender(f *fabric.Fabric, r *lft.Routing) lft.Mender {
	o := &Order{Rank: r.Order, Switch: make([]fabric.NodeID, len(r.Order))}
	for s, rank := range r.Order {
		o.Switch[rank] = fabric.NodeID(s)
	}
	d := newDirections(f, o)
	tops := 0
	for rank := range int32(len(r.Order)) {
		if above, _ := d.up.of(rank); len(above) == 0 {
			tops++
		}
	}
	if tops != parts(f) {
		return nil
	}
	return &mender{tree: newTree(d), hops: make([]uint8, len(r.Order))}
}

// parts counts the connected parts of the switches.
func parts(f *fabric.Fabric) int {
	n := 0
	seen := make([]bool, f.NumSwitches())
	var queue []fabric.NodeID
	for s := range fabric.NodeID(f.NumSwitches()) {
		if seen[s] {
			continue
		}
		n++
		seen[s] = true
		for queue = append(queue[:0], s); len(queue) > 0; {
			u := queue[len(queue)-1]
			queue = queue[:len(queue)-1]
			_, to := f.SwitchLinks(u)
			for _, v := range to {
				if !seen[v] {
					seen[v] = true
					queue = append(queue, v)
				}
			}
		}
	}
	return n
}

// mender is a tree by NodeID.
type mender struct {
	tree *tree
	hops []uint8
}

func (m *mender) To(t fabric.NodeID) (hops []uint8, ok bool) {
	if !m.tree.grow(t) {
		return nil, false
	}
	for rank, h := range m.tree.hops {
		m.hops[m.tree.d.order.Switch[rank]] = h
	}
	return m.hops, true
}

func (m *mender) Ports(u fabric.NodeID) []fabric.PortID {
	m.tree.some = m.tree.some[:0]
	return m.tree.ports(m.tree.d.order.Rank[u])
}
