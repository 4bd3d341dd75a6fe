package fattree

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
)

// tree is a connected part of the switches, with levels. Switches are indices in sw,
// in the order of their NodeIDs.
type tree struct {
	f        *fabric.Fabric
	switches []fabric.NodeID
	index    []int32 // by NodeID
	level    []int32
	height   int32
	hosts    []int32 // CA and router ports on a switch

	// The channels of switch u are at first[u]:first[u+1], those that lead up before
	// mid[u].
	first, mid []int32
	to         []int32
	num        []fabric.PortNum // of u's port
	back       []fabric.PortNum // of the port at the other end
	copy       []uint8          // its number among those between the same switches
	unit       []float64        // what a route adds to its load, 1 on the fastest
	copies     int32            // the most channels between two switches

	rank, byRank []int32 // the order of the switches, see findOrder

	// reach[k] is by switch the set of switches that it reaches by k channels up and then any
	// number down. A set has so many words.
	words int
	reach [][]uint64
}

func newTree(f *fabric.Fabric, part []fabric.NodeID, index, level, hosts []int32) *tree {
	n := len(part)
	x := &tree{
		f: f, switches: part, index: index, level: make([]int32, n), hosts: make([]int32, n),
		first: make([]int32, n+1), mid: make([]int32, n), words: (n + 63) / 64, copies: 1,
	}
	for i, s := range part {
		index[s] = int32(i)
		x.level[i] = level[s]
		x.height = max(x.height, level[s])
		x.hosts[i] = hosts[s]
	}
	seen := make([]uint8, n)
	fastest := 0
	for i, s := range part {
		ports, to := f.SwitchLinks(s)
		for _, up := range []bool{true, false} {
			for k, v := range to {
				j := index[v]
				if (x.level[j] > x.level[i]) != up {
					continue
				}
				x.to = append(x.to, j)
				x.num = append(x.num, f.Num(ports[k]))
				x.back = append(x.back, f.Num(f.Peer(ports[k])))
				x.copy = append(x.copy, seen[j])
				x.unit = append(x.unit, float64(f.Link(ports[k]).Mbps()))
				fastest = max(fastest, f.Link(ports[k]).Mbps())
				seen[j]++
				x.copies = max(x.copies, int32(seen[j]))
			}
			if up {
				x.mid[i] = int32(len(x.to))
			}
		}
		x.first[i+1] = int32(len(x.to))
		for _, v := range to {
			seen[index[v]] = 0
		}
	}
	for c, mbps := range x.unit {
		x.unit[c] = 1
		if mbps > 0 {
			x.unit[c] = float64(fastest) / mbps
		}
	}
	return x
}

// ups and downs are the ranges of the channels of u.
func (x *tree) ups(u int32) (from, to int32)   { return x.first[u], x.mid[u] }
func (x *tree) downs(u int32) (from, to int32) { return x.mid[u], x.first[u+1] }

// byLevel lists the switches of a level.
func (x *tree) byLevel(l int32) []int32 {
	var list []int32
	for u, at := range x.level {
		if at == l {
			list = append(list, int32(u))
		}
	}
	return list
}

// setOf is the set of switch u among the sets of all switches.
func (x *tree) setOf(all []uint64, u int32) []uint64 {
	return all[int(u)*x.words : int(u+1)*x.words]
}

func hasSwitch(set []uint64, u int32) bool { return set[u>>6]>>(u&63)&1 != 0 }

func forEachSwitch(set []uint64, visit func(int32)) {
	for w, word := range set {
		for ; word != 0; word &= word - 1 {
			visit(int32(w<<6 + bits.TrailingZeros64(word)))
		}
	}
}

// isBelow says whether u is the ancestor or below it.
func (x *tree) isBelow(u, ancestor int32) bool { return hasSwitch(x.setOf(x.reach[0], ancestor), u) }

// findReach fills reach.
func (x *tree) findReach() {
	n := int32(len(x.switches))
	x.reach = make([][]uint64, x.height+1)
	for k := range x.reach {
		x.reach[k] = make([]uint64, int(n)*x.words)
	}
	for l := range x.height + 1 {
		for _, u := range x.byLevel(l) {
			own := x.setOf(x.reach[0], u)
			own[u>>6] |= 1 << (u & 63)
			for c, end := x.downs(u); c < end; c++ {
				for w, word := range x.setOf(x.reach[0], x.to[c]) {
					own[w] |= word
				}
			}
		}
	}
	for k := 1; k <= int(x.height); k++ {
		for u := range n {
			own := x.setOf(x.reach[k], u)
			for c, end := x.ups(u); c < end; c++ {
				for w, word := range x.setOf(x.reach[k-1], x.to[c]) {
					own[w] |= word
				}
			}
		}
	}
}

// findOrder finds a strict order of the switches. A channel to a switch that comes earlier
// is an up channel of the order, and no path goes up after it went down, so the channel
// dependency graph has no cycle.
//
// The leaf from which most switches above can be reached comes first; of several one
// without hosts, of these the one with the lowest NodeID. Then comes, again and again, the
// highest switch next to those in the order. On a full tree that reverses only the channels
// between that leaf and the switches above it. No shortest path between leaves uses two of
// these one after the other, and all switches, also those at the top, have a legal path to
// each other.
func (x *tree) findOrder() {
	n := int32(len(x.switches))
	above := make([]int32, n)
	for u := range n {
		forEachSwitch(x.setOf(x.reach[0], u), func(v int32) { above[v]++ })
	}
	top := int32(-1)
	for u := range n {
		if x.level[u] > 0 && x.height > 0 {
			continue
		}
		if top < 0 || above[u] > above[top] || above[u] == above[top] && x.hosts[u] == 0 && x.hosts[top] > 0 {
			top = u
		}
	}
	if top < 0 {
		top = 0
	}
	key := make([]int32, n)
	for u, l := range x.level {
		key[u] = -l
	}
	key[top] = -x.height - 1
	x.byRank = graph.BestFirst(int(n), func(u int32) []int32 { return x.to[x.first[u]:x.first[u+1]] }, key)
	x.rank = make([]int32, n)
	for rank, u := range x.byRank {
		x.rank[u] = int32(rank)
	}
}

// sortUps sorts the channels that lead up from each switch by copy, then by the digit that
// they lead to.
func (x *tree) sortUps(digit []int32) {
	type channel struct {
		to        int32
		num, back fabric.PortNum
		copy      uint8
		unit      float64
	}
	var list []channel
	for u := range int32(len(x.switches)) {
		from, to := x.ups(u)
		list = list[:0]
		for c := from; c < to; c++ {
			list = append(list, channel{x.to[c], x.num[c], x.back[c], x.copy[c], x.unit[c]})
		}
		slices.SortStableFunc(list, func(a, b channel) int {
			return cmp.Or(cmp.Compare(a.copy, b.copy), cmp.Compare(digit[a.to], digit[b.to]))
		})
		for i, ch := range list {
			c := from + int32(i)
			x.to[c], x.num[c], x.back[c], x.copy[c], x.unit[c] = ch.to, ch.num, ch.back, ch.copy, ch.unit
		}
	}
}

// findIllegal finds the destinations for which some path by levels goes up in the order after
// it went down. Only damaged trees have any.
func (x *tree) findIllegal() []uint64 {
	n := int32(len(x.switches))
	bad := make([]uint64, x.words)
	upward := make([]uint64, int(n)*x.words) // by switch: destinations to which it may go up in the order
	set := make([]uint64, x.words)
	for u := range n {
		own := x.setOf(upward, u)
		for c := x.first[u]; c < x.first[u+1]; c++ {
			if x.rank[x.to[c]] < x.rank[u] {
				for w, word := range x.reachBy(u, c, set) {
					own[w] |= word
				}
			}
		}
	}
	for u := range n {
		for c := x.first[u]; c < x.first[u+1]; c++ {
			if v := x.to[c]; x.rank[v] > x.rank[u] {
				onward := x.setOf(upward, v)
				for w, word := range x.reachBy(u, c, set) {
					bad[w] |= word & onward[w]
				}
			}
		}
	}
	return bad
}

// reachBy is the set of destinations to which a path by levels may leave u by channel c.
func (x *tree) reachBy(u, c int32, set []uint64) []uint64 {
	v := x.to[c]
	if c >= x.mid[u] {
		return x.setOf(x.reach[0], v)
	}
	clear(set)
	for w := range set {
		known := x.setOf(x.reach[0], u)[w]
		for k := 1; k <= int(x.height); k++ {
			now := x.setOf(x.reach[k], u)[w] &^ known
			set[w] |= now & x.setOf(x.reach[k-1], v)[w]
			known |= now
		}
	}
	return set
}
