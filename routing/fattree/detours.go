package fattree

import (
	"cmp"
	"errors"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

var errTooLong = errors.New("a path is too long")

// ascents lists by switch the channels that lead up in the order. Switches whose channels
// lead to the same switches, one by one, are of one kind: what one of them may do to come
// to a destination, all may. So are the switches of a full tree that have the same ones
// above them.
type ascents struct {
	first []int32 // by switch: its part of channel
	// channel is sorted by the rank of the switch that it leads to.
	channel []int32
	kind    []int32 // by switch, from 0
	kinds   int32
}

func newAscents(x *tree) *ascents {
	n := int32(len(x.sw))
	a := &ascents{first: make([]int32, 1, n+1), kind: make([]int32, n)}
	for u := range n {
		for c := x.first[u]; c < x.first[u+1]; c++ {
			if x.rank[x.to[c]] < x.rank[u] {
				a.channel = append(a.channel, c)
			}
		}
		a.first = append(a.first, int32(len(a.channel)))
		slices.SortStableFunc(a.of(u), func(b, c int32) int { return cmp.Compare(x.rank[x.to[b]], x.rank[x.to[c]]) })
	}
	list := make([]int32, n)
	for u := range list {
		list[u] = int32(u)
	}
	compare := func(u, v int32) int {
		return slices.CompareFunc(a.of(u), a.of(v), func(b, c int32) int { return cmp.Compare(x.to[b], x.to[c]) })
	}
	slices.SortStableFunc(list, compare)
	for i, u := range list {
		if i > 0 && compare(list[i-1], u) != 0 {
			a.kinds++
		}
		a.kind[u] = a.kinds
	}
	a.kinds++
	return a
}

func (a *ascents) of(u int32) []int32 { return a.channel[a.first[u]:a.first[u+1]] }

// detour makes paths by the order of the switches, up and then down in it: where paths
// by levels are not legal in it, or there are none. It is the scratch of a worker.
type detour struct {
	*filler
	hops  []int32 // by switch: channels to the destination, -1 for none
	fixed []bool  // by switch: it goes down in the order, or by levels
	climb []ascent
	best  []int32 // the lists of climb
	queue []int32
	ports []fabric.PortNum
	word  int      // of the sets that near holds, -1 for none
	near  []uint64 // by number of channels up and switch: that word of its set in reach
}

// ascent is what the switches of a kind do that go up in the order.
type ascent struct {
	t        int32 // the destination switch that it is known for
	hops     int32
	from, to int32 // the part of best that lists the channels to take, by index in ascents.of
}

func (x *filler) newDetour() *detour {
	n := len(x.sw)
	d := &detour{filler: x, hops: make([]int32, n), fixed: make([]bool, n), climb: make([]ascent, x.ascents.kinds), word: -1, near: make([]uint64, len(x.reach)*n)}
	for i := range d.climb {
		d.climb[i].t = -1
	}
	return d
}

// fill writes what rows lack for the LIDs of switch t: O(channels). It is false when
// a path is longer than can be counted.
//
// A switch that goes up in the order leads to one from which packets may go up or
// down; one that goes down leads to one that goes down, too. So no path goes up after
// it went down, whoever sends it.
func (x *detour) fill(t int32) bool {
	all := has(x.skip, t)
	if all {
		x.descend(t)
	} else {
		x.byLevels(t)
	}
	x.best = x.best[:0]
	lids := x.lid[x.dests[t]:x.dests[t+1]]
	for _, u := range x.byRank {
		switch {
		case !x.fixed[u]:
			up := &x.climb[x.ascents.kind[u]]
			if up.t != t {
				x.ascend(up, t, u)
			}
			if x.hops[u] = up.hops; up.hops >= int32(fabric.MaxHops) {
				return false
			}
			row := x.tables.Row(x.sw[u])
			channels := x.ascents.of(u)
			best := x.best[up.from:up.to]
			at := int(t) % len(best)
			for _, lid := range lids {
				row[lid] = x.num[channels[best[at]]]
				if at++; at == len(best) {
					at = 0
				}
			}
		case all && u != t:
			x.ports = x.ports[:0]
			for c := x.first[u]; c < x.first[u+1]; c++ {
				if v := x.to[c]; x.rank[v] > x.rank[u] && x.fixed[v] && x.hops[v]+1 == x.hops[u] {
					x.ports = append(x.ports, x.num[c])
				}
			}
			row := x.tables.Row(x.sw[u])
			for i, lid := range lids {
				row[lid] = x.ports[(i+int(t))%len(x.ports)]
			}
		}
	}
	return true
}

// descend fixes the switches that come to t by going down in the order.
func (x *detour) descend(t int32) {
	clear(x.fixed)
	x.hops[t], x.fixed[t] = 0, true
	x.queue = append(x.queue[:0], t)
	for i := 0; i < len(x.queue); i++ {
		u := x.queue[i]
		for _, c := range x.ascents.of(u) {
			if v := x.to[c]; !x.fixed[v] {
				x.hops[v], x.fixed[v] = x.hops[u]+1, true
				x.queue = append(x.queue, v)
			}
		}
	}
}

// byLevels fixes the switches that come to t by levels.
func (x *detour) byLevels(t int32) {
	n := len(x.sw)
	if w := int(t >> 6); x.word != w {
		x.word = w
		for k, sets := range x.reach {
			for u := range n {
				x.near[k*n+u] = sets[u*x.words+w]
			}
		}
	}
	clear(x.fixed)
	for k := range x.reach {
		up := 2*int32(k) - x.level[t]
		for u, set := range x.near[k*n:][:n] {
			if set>>(t&63)&1 != 0 && !x.fixed[u] {
				x.hops[u], x.fixed[u] = up+x.level[u], true
			}
		}
	}
}

// ascend finds what the switches of the kind of u do.
func (x *detour) ascend(up *ascent, t, u int32) {
	*up = ascent{t: t, hops: int32(fabric.MaxHops), from: int32(len(x.best))}
	for i, c := range x.ascents.of(u) {
		h := x.hops[x.to[c]] + 1
		if h < up.hops {
			up.hops = h
			x.best = x.best[:up.from]
		}
		if h == up.hops {
			x.best = append(x.best, int32(i))
		}
	}
	up.to = int32(len(x.best))
}
