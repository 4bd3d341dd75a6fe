package updown

import (
	"cmp"
	"container/heap"
	"slices"

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

// keptOrder is the order of prev for the switches of f. One that lost its last upward
// cable comes after the first of its neighbours that has a place; one that is new
// comes as late as it may.
func keptOrder(f *fabric.Fabric, prev *lft.Routing) *Order {
	n := f.NumSwitches()
	was := make([]int32, n) // rank in prev; behind all others for new switches
	for s := range fabric.NodeID(n) {
		was[s] = int32(len(prev.Order) + int(s))
		if p, ok := prev.Fabric.SwitchByGUID(f.Node(s).GUID); ok {
			was[s] = prev.Order[p]
		}
	}
	byRank := make([]fabric.NodeID, n)
	for i := range byRank {
		byRank[i] = fabric.NodeID(i)
	}
	slices.SortFunc(byRank, func(a, b fabric.NodeID) int { return cmp.Compare(was[a], was[b]) })
	// Of the switches next to those that have a place, the first comes next. If the
	// old order still serves, that is it.
	o := &Order{Rank: make([]int32, n), Switch: make([]fabric.NodeID, 0, n)}
	var next ranked
	seen := make([]bool, n)
	for _, top := range byRank {
		if seen[top] {
			continue
		}
		seen[top] = true
		heap.Push(&next, rankedSwitch{was[top], top})
		for len(next) > 0 {
			u := heap.Pop(&next).(rankedSwitch).s
			o.Rank[u] = int32(len(o.Switch))
			o.Switch = append(o.Switch, u)
			_, to := f.SwitchLinks(u)
			for _, v := range to {
				if !seen[v] {
					seen[v] = true
					heap.Push(&next, rankedSwitch{was[v], v})
				}
			}
		}
	}
	return o
}

// rankedSwitch is a switch with its rank in another order; ranked a heap of them.
type rankedSwitch struct {
	rank int32
	s    fabric.NodeID
}

type ranked []rankedSwitch

func (r ranked) Len() int           { return len(r) }
func (r ranked) Less(i, j int) bool { return r[i].rank < r[j].rank }
func (r ranked) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }
func (r *ranked) Push(x any)        { *r = append(*r, x.(rankedSwitch)) }
func (r *ranked) Pop() any {
	old := *r
	last := old[len(old)-1]
	*r = old[:len(old)-1]
	return last
}
