package updown

import (
	"container/heap"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// RecoverOrder returns an order of f's switches by which the paths of tables go up and then down,
// of any origin; of several the one most like the order like. It is nil where paths turn from
// down to up whatever the order. Tables have a row for each switch of f.
//
// It gives ranks from the last to the first. The switch that comes next is lower than all that
// have no rank yet, so it must not be one by which packets pass from one of these to another;
// once it has its rank, that only frees others. So an order is found if there is one.
func RecoverOrder(f *fabric.Fabric, tables *lft.Tables, like *Order) *Order {
	n := f.NumSwitches()
	x := &elimination{f: f, like: like.Rank, passages: listPassages(f, tables), place: make([]int, n)}
	for s := range fabric.NodeID(n) {
		x.place[s] = len(x.list)
		x.list = append(x.list, s)
	}
	heap.Init(x)
	o := &Order{Rank: make([]int32, n), Switch: make([]fabric.NodeID, n)}
	for rank := int32(n) - 1; rank >= 0; rank-- {
		s := heap.Pop(x).(fabric.NodeID)
		if x.passages[s].count > 0 {
			return nil
		}
		o.Rank[s], o.Switch[rank] = rank, s
		for _, v := range x.passages[s].neighbours {
			if x.place[v] >= 0 {
				x.passages[v].forget(s)
				heap.Fix(x, x.place[v])
			}
		}
	}
	return o
}

// passages is from which neighbours to which packets pass a switch.
type passages struct {
	neighbours []fabric.NodeID // ascending
	taken      []bool          // by places in neighbours: from, then to
	count      int             // how many are taken
}

// forget takes away the passages from and to a neighbour.
func (p *passages) forget(s fabric.NodeID) {
	n := len(p.neighbours)
	at, _ := slices.BinarySearch(p.neighbours, s)
	for i := range n {
		for _, passage := range [2]int{at*n + i, i*n + at} {
			if p.taken[passage] {
				p.taken[passage] = false
				p.count--
			}
		}
	}
}

// listPassages follows the entries for each LID, by switch.
func listPassages(f *fabric.Fabric, tables *lft.Tables) []passages {
	list := make([]passages, f.NumSwitches())
	at := make([]int32, f.NumPorts()) // by port: the place of the switch at its other end, -1 for none
	for s := range fabric.NodeID(len(list)) {
		p := &list[s]
		p.neighbours = slices.Clone(f.Neighbors(s))
		slices.Sort(p.neighbours)
		p.neighbours = slices.Compact(p.neighbours)
		p.taken = make([]bool, len(p.neighbours)*len(p.neighbours))
		for num := range f.Node(s).NumPorts + 1 {
			port := f.Port(s, num)
			place, ok := slices.BinarySearch(p.neighbours, f.PeerSwitch(port))
			if at[port] = int32(place); !ok {
				at[port] = -1
			}
		}
	}
	for s := range fabric.NodeID(len(list)) {
		for lid, num := range tables.Row(s) {
			if num > f.Node(s).NumPorts || at[f.Port(s, num)] < 0 {
				continue
			}
			in := f.Peer(f.Port(s, num))
			by := f.Owner(in)
			if next := tables.Row(by)[lid]; next <= f.Node(by).NumPorts && at[f.Port(by, next)] >= 0 {
				p := &list[by]
				taken := &p.taken[int(at[in])*len(p.neighbours)+int(at[f.Port(by, next)])]
				if !*taken {
					*taken = true
					p.count++
				}
			}
		}
	}
	return list
}

// elimination is a heap of the switches without a rank: those come first at which packets have the
// fewest passages between others without one, of several the lowest by an earlier order.
type elimination struct {
	f        *fabric.Fabric
	list     []fabric.NodeID
	place    []int      // by switch: its index in list, -1 once it has a rank
	passages []passages // by switch
	like     []int32    // by switch: the rank in the earlier order
}

func (x *elimination) Len() int { return len(x.list) }

func (x *elimination) Less(i, j int) bool {
	s, v := x.list[i], x.list[j]
	if a, b := x.passages[s].count, x.passages[v].count; a != b {
		return a < b
	}
	if a, b := len(x.f.HostsOn(s)) > 0, len(x.f.HostsOn(v)) > 0; a != b {
		return a
	}
	return x.like[s] > x.like[v]
}

func (x *elimination) Swap(i, j int) {
	x.list[i], x.list[j] = x.list[j], x.list[i]
	x.place[x.list[i]], x.place[x.list[j]] = i, j
}

// Push is never called.
func (x *elimination) Push(any) {}

func (x *elimination) Pop() any {
	s := x.list[len(x.list)-1]
	x.list = x.list[:len(x.list)-1]
	x.place[s] = -1
	return s
}
