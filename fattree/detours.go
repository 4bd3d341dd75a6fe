package fattree

import (
	"errors"

	"github.com/ibweave/ibweave/fabric"
)

var errTooLong = errors.New("a path is too long")

// detour makes paths by the order of the switches, up and then down in it: where paths
// by levels are not legal in it, or there are none. It is the scratch of a worker.
type detour struct {
	*filler
	hops  []int32 // by switch: channels to the destination, -1 for none
	fixed []bool  // by switch: it goes down in the order, or by levels
	queue []int32
	ports []fabric.PortNum
}

func newDetour(x *filler) *detour {
	n := len(x.sw)
	return &detour{filler: x, hops: make([]int32, n), fixed: make([]bool, n)}
}

// fill writes what rows lack for the LIDs of switch t: O(channels). It is false when
// a path is longer than can be counted.
//
// A switch that goes up in the order leads to one from which packets may go up or
// down; one that goes down leads to one that goes down, too. So no path goes up after
// it went down, whoever sends it.
func (x *detour) fill(t int32) bool {
	n := int32(len(x.sw))
	all := has(x.skip, t)
	for u := range n {
		x.hops[u], x.fixed[u] = -1, false
	}
	if all {
		x.hops[t], x.fixed[t] = 0, true
		x.queue = append(x.queue[:0], t)
		for i := 0; i < len(x.queue); i++ {
			u := x.queue[i]
			for c := x.first[u]; c < x.first[u+1]; c++ {
				if v := x.to[c]; x.rank[v] < x.rank[u] && !x.fixed[v] {
					x.hops[v], x.fixed[v] = x.hops[u]+1, true
					x.queue = append(x.queue, v)
				}
			}
		}
	} else {
		for u := range n {
			if has(x.set(x.lost, u), t) {
				continue
			}
			k := int32(0)
			for !has(x.set(x.reach[k], u), t) {
				k++
			}
			x.hops[u], x.fixed[u] = 2*k+x.level[u]-x.level[t], true
		}
	}
	lids := x.lid[x.dests[t]:x.dests[t+1]]
	for _, u := range x.byRank {
		from, to := x.first[u], x.first[u+1]
		if !x.fixed[u] {
			for c := from; c < to; c++ {
				if v := x.to[c]; x.rank[v] < x.rank[u] && (x.hops[u] < 0 || x.hops[v]+1 < x.hops[u]) {
					x.hops[u] = x.hops[v] + 1
				}
			}
			if x.hops[u] >= int32(fabric.MaxHops) {
				return false
			}
		} else if !all || u == t {
			continue
		}
		x.ports = x.ports[:0]
		for c := from; c < to; c++ {
			v := x.to[c]
			if (x.rank[v] > x.rank[u]) == x.fixed[u] && x.hops[v]+1 == x.hops[u] && (!x.fixed[u] || x.fixed[v]) {
				x.ports = append(x.ports, x.num[c])
			}
		}
		row := x.tables.Row(x.sw[u])
		for i, lid := range lids {
			row[lid] = x.ports[(i+int(t))%len(x.ports)]
		}
	}
	return true
}
