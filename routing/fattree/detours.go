package fattree

import (
	"cmp"
	"errors"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
)

var errTooLong = errors.New("a path is too long")

// ascents lists by switch the channels that lead up in the order. Equivalent switches, whose
// channels up lead to the same switches, one by one, take the same paths to a destination.
// On a full tree these are the switches below the same parents.
type ascents struct {
	first []int32 // by switch: its part of channel
	// channel is sorted by the rank of the switch that it leads to.
	channel []int32
	class   []int32 // by switch: its class of equivalent switches, from 0
	classes int
}

func newAscents(x *tree) *ascents {
	n := int32(len(x.switches))
	a := &ascents{first: make([]int32, 1, n+1)}
	for u := range n {
		for c := x.first[u]; c < x.first[u+1]; c++ {
			if x.rank[x.to[c]] < x.rank[u] {
				a.channel = append(a.channel, c)
			}
		}
		a.first = append(a.first, int32(len(a.channel)))
		slices.SortStableFunc(a.channelsFrom(u), func(b, c int32) int { return cmp.Compare(x.rank[x.to[b]], x.rank[x.to[c]]) })
	}
	var above []int32
	a.class, a.classes, _ = graph.Equivalent(int(n), func(u int32) []int32 {
		above = above[:0]
		for _, c := range a.channelsFrom(u) {
			above = append(above, x.to[c])
		}
		return above
	})
	return a
}

func (a *ascents) channelsFrom(u int32) []int32 { return a.channel[a.first[u]:a.first[u+1]] }

// detour finds paths by the order of the switches, up and then down in it, where paths by
// levels are not legal in it or do not exist. It is the scratch of a worker.
type detour struct {
	*filler
	hops      []int32 // by switch: channels to the destination, -1 for none
	descends  []bool  // by switch: its path goes down in the order, or by levels
	ascentOf  []ascent
	best      []int32 // the lists of ascentOf
	queue     []int32
	ports     []fabric.PortNum
	word      int      // which word of the sets reachWord holds, -1 for none
	reachWord []uint64 // by number of channels up and switch: that word of its set in reach
}

// ascent is how the switches of a class go up in the order.
type ascent struct {
	t        int32 // the destination switch that it is for
	hops     int32
	from, to int32 // the part of best that lists the channels to take, by index in ascents.channelsFrom
}

func (x *filler) newDetour() *detour {
	n := len(x.switches)
	d := &detour{filler: x, hops: make([]int32, n), descends: make([]bool, n), ascentOf: make([]ascent, x.ascents.classes), word: -1, reachWord: make([]uint64, len(x.reach)*n)}
	for i := range d.ascentOf {
		d.ascentOf[i].t = -1
	}
	return d
}

// fillDestination writes the entries that rows lack for the LIDs of switch t: O(channels). It
// returns false if a path is too long to count.
//
// A switch that goes up in the order sends to one from which packets may go up or down. A
// switch that goes down sends to one that goes down, too. So no path goes up after it went
// down, from whatever source.
func (x *detour) fillDestination(t int32) bool {
	all := hasSwitch(x.skip, t)
	if all {
		x.markDescents(t)
	} else {
		x.markLevelPaths(t)
	}
	x.best = x.best[:0]
	lids := x.lid[x.destStart[t]:x.destStart[t+1]]
	for _, u := range x.byRank {
		switch {
		case !x.descends[u]:
			up := &x.ascentOf[x.ascents.class[u]]
			if up.t != t {
				x.findAscent(up, t, u)
			}
			if x.hops[u] = up.hops; up.hops >= int32(fabric.MaxHops) {
				return false
			}
			row := x.tables.Row(x.switches[u])
			channels := x.ascents.channelsFrom(u)
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
				if v := x.to[c]; x.rank[v] > x.rank[u] && x.descends[v] && x.hops[v]+1 == x.hops[u] {
					x.ports = append(x.ports, x.num[c])
				}
			}
			row := x.tables.Row(x.switches[u])
			for i, lid := range lids {
				row[lid] = x.ports[(i+int(t))%len(x.ports)]
			}
		}
	}
	return true
}

// markDescents marks the switches that reach t by going down in the order.
func (x *detour) markDescents(t int32) {
	clear(x.descends)
	x.hops[t], x.descends[t] = 0, true
	x.queue = append(x.queue[:0], t)
	for i := 0; i < len(x.queue); i++ {
		u := x.queue[i]
		for _, c := range x.ascents.channelsFrom(u) {
			if v := x.to[c]; !x.descends[v] {
				x.hops[v], x.descends[v] = x.hops[u]+1, true
				x.queue = append(x.queue, v)
			}
		}
	}
}

// markLevelPaths marks the switches that reach t by levels.
func (x *detour) markLevelPaths(t int32) {
	n := len(x.switches)
	if w := int(t >> 6); x.word != w {
		x.word = w
		for k, sets := range x.reach {
			for u := range n {
				x.reachWord[k*n+u] = sets[u*x.words+w]
			}
		}
	}
	clear(x.descends)
	for k := range x.reach {
		up := 2*int32(k) - x.level[t]
		for u, set := range x.reachWord[k*n:][:n] {
			if set>>(t&63)&1 != 0 && !x.descends[u] {
				x.hops[u], x.descends[u] = up+x.level[u], true
			}
		}
	}
}

// findAscent finds how the switches of the class of u go up.
func (x *detour) findAscent(up *ascent, t, u int32) {
	*up = ascent{t: t, hops: int32(fabric.MaxHops), from: int32(len(x.best))}
	for i, c := range x.ascents.channelsFrom(u) {
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
