package updown

import (
	"cmp"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// RecoverOrder returns an order of f's switches with which all paths of tables,
// from any source, go up and then down; of several, the one nearest to like. It
// returns nil if there is none. Tables must have a row for each switch of f.
//
// It gives out the ranks from the last to the first. A switch that gets one is below
// all without a rank, so no packet may pass it from one of these to another. Each rank
// given only permits more switches to follow, so an order is found if there is one.
func RecoverOrder(f *fabric.Fabric, tables *lft.Tables, like *Order) *Order {
	passages := listPassages(f, tables)
	left := f.Switches() // switches without a rank
	// The next switch is the one that packets pass least between others in left; among
	// equal ones one with hosts, then the lowest in the order like.
	compare := func(s, v fabric.NodeID) int {
		return cmp.Or(cmp.Compare(passages[s].count, passages[v].count),
			cmp.Compare(min(1, len(f.HostsOn(v))), min(1, len(f.HostsOn(s)))), cmp.Compare(like.Rank[v], like.Rank[s]))
	}
	o := &Order{Rank: make([]int32, len(left)), Switch: make([]fabric.NodeID, len(left))}
	for len(left) > 0 {
		s := slices.MinFunc(left, compare)
		if passages[s].count > 0 {
			return nil
		}
		rank := len(left) - 1
		o.Rank[s], o.Switch[rank] = int32(rank), s
		at := slices.Index(left, s)
		left[at] = left[rank]
		left = left[:rank]
		for _, v := range passages[s].neighbours {
			passages[v].forget(s)
		}
	}
	return o
}

// passages tells between which neighbours packets pass a switch.
type passages struct {
	neighbours []fabric.NodeID // ascending
	taken      []bool          // at i x len(neighbours) + j: packets come from neighbour i and go to j
	count      int             // how many of taken are true
}

// forget removes the passages from and to a neighbour.
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

// listPassages finds the passages of each switch, by the entries for each LID.
func listPassages(f *fabric.Fabric, tables *lft.Tables) []passages {
	list := make([]passages, f.NumSwitches())
	at := make([]int32, f.NumPorts()) // by port: place of its peer switch in neighbours, or -1
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
