package fattree

import (
	"math"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// chains is by destination LID the way by which it comes down from the top: a switch of
// each level. Destinations are numbered from 0, those of a switch in a row: first the
// LIDs of its hosts, by port, then its own.
type chains struct {
	*plan
	dests []int32 // by switch: its destinations are dests[u]:dests[u+1]
	own   []int32 // by switch: those of hosts are dests[u]:own[u]
	lid   []fabric.LID
	out   []fabric.PortNum // the port by which its switch delivers it
	// at is by level and destination the switch, -1 for none.
	at [][]int32
	// by is by level below the top and destination the channel that leads up from at,
	// -1 for none, and nth its number among those between the same switches.
	by  [][]int32
	nth [][]uint8
	// way is by level below the top and destination the number of the chain's way up among
	// those of its column.
	way  [][]uint8
	load []float64 // by channel that leads up: destinations that come down by it

	// The least costly way to the top for displace.
	cost  []float64
	next  []int32 // channel, -1 at the top
	known []int32 // by switch: the destination that cost and next are of
}

func newChains(p *plan) *chains {
	n := len(p.sw)
	x := &chains{
		plan: p, dests: make([]int32, n+1), own: make([]int32, n), load: make([]float64, len(p.to)),
		cost: make([]float64, n), next: make([]int32, n), known: make([]int32, n),
	}
	for u, s := range p.sw {
		for _, host := range p.f.HostsOn(s) {
			x.add(host, p.f.Num(p.f.Peer(host)))
		}
		x.own[u] = int32(len(x.lid))
		x.add(p.f.PortBase(s), fabric.ManagementPort)
		x.dests[u+1] = int32(len(x.lid))
	}
	for u := range x.known {
		x.known[u] = -1
	}
	for range p.height + 1 {
		at := make([]int32, len(x.lid))
		for d := range at {
			at[d] = -1
		}
		x.at = append(x.at, at)
	}
	for range p.height {
		by := make([]int32, len(x.lid))
		for d := range by {
			by[d] = -1
		}
		x.by = append(x.by, by)
		x.nth = append(x.nth, make([]uint8, len(x.lid)))
		x.way = append(x.way, make([]uint8, len(x.lid)))
	}
	x.choose()
	return x
}

// add gives the LIDs of an end port the next numbers.
func (x *chains) add(p fabric.PortID, out fabric.PortNum) {
	for lid := range x.f.LIDs(p) {
		x.lid = append(x.lid, lid)
		x.out = append(x.out, out)
	}
}

// choose makes all chains: first those that are as in a full tree, then those of other
// hosts, then those of switches.
func (x *chains) choose() {
	var displaced []int32
	n := int32(len(x.sw))
	wanted := make([]int32, x.height)
	for u := range n {
		for d := x.dests[u]; d < x.own[u]; d++ {
			port := x.f.LIDPort(x.lid[d])
			x.at[x.level[u]][d] = u
			x.want(u, x.seat[u][x.out[d]], int32(x.lid[d]-x.f.LID(port)), int32(1)<<x.f.LMC(port), wanted)
			if !x.take(d, u, wanted) {
				displaced = append(displaced, d)
			}
		}
	}
	for _, d := range displaced {
		u := x.owner(d)
		x.displace(d, u)
	}
	for u := range n {
		for d := x.own[u]; d < x.dests[u+1]; d++ {
			x.at[x.level[u]][d] = u
			v := u
			for l := x.level[u]; l < x.height; l++ {
				from, to := x.ups(v)
				if from == to {
					break
				}
				v = x.step(d, l, from+(u+d-x.own[u])%(to-from))
			}
		}
	}
	// Below the switch of a destination there is no chain; copies take turns there.
	for u := range n {
		for l := range x.level[u] {
			for d := x.dests[u]; d < x.dests[u+1]; d++ {
				x.nth[l][d] = uint8(int32(x.lid[d]) % x.copies)
			}
		}
	}
}

// owner is the switch of a destination.
func (x *chains) owner(d int32) int32 {
	for l := range x.at {
		if u := x.at[l][d]; u >= 0 {
			return u
		}
	}
	return -1
}

// want puts into wanted, by level below the top, the number of the way up that the host
// in position i on switch u has in a full tree, for its LID number k of so many. Those of
// one port are turned against each other, so that each number by itself is as
// contention-free as the others.
func (x *chains) want(u, i, k, lids int32, wanted []int32) {
	slot := i
	for l := range x.height {
		if l < x.level[u] {
			continue
		}
		wide := x.wide[l]
		turn := min(lids, wide)
		shift := k % turn * (wide / turn)
		k /= turn
		lids = (lids + turn - 1) / turn
		if x.level[u] > 0 || x.place[0][u] < 0 {
			wanted[l] = slot + shift
			continue
		}
		wanted[l] = slot + shift + x.offset(l, u)
		slot = x.place[l][u]*x.fold[l] + slot/x.apart[l]%x.fold[l]
	}
}

// take makes the chain of a destination as it is wanted, when all its cables are there.
func (x *chains) take(d, u int32, wanted []int32) bool {
	var by [maxHeight]int32
	for v, l := u, x.level[u]; l < x.height; l++ {
		list := x.channel[l][v]
		if len(list) == 0 {
			return false
		}
		c := list[wanted[l]%int32(len(list))]
		if c < 0 {
			return false
		}
		by[l] = c
		v = x.to[c]
	}
	for l := x.level[u]; l < x.height; l++ {
		x.load[by[l]] += x.unit[by[l]]
		x.step(d, l, by[l])
	}
	return true
}

// step has the chain of d go on by channel c, and gives the switch there.
func (x *chains) step(d, l, c int32) int32 {
	u, v := x.at[l][d], x.to[c]
	if i := slices.Index(x.channel[l][u], c); i >= 0 {
		x.way[l][d] = uint8(i)
	}
	x.by[l][d], x.nth[l][d], x.at[l+1][d] = c, x.copy[c], v
	return v
}

// displace takes the chain with the least sum of cubes of the loads that it leads to.
func (x *chains) displace(d, u int32) {
	x.toTop(d, u)
	for l := x.level[u]; l < x.height; l++ {
		c := x.next[u]
		if c < 0 {
			return
		}
		x.load[c] += x.unit[c]
		u = x.step(d, l, c)
	}
}

// toTop finds the least cost of a way from u to the top. A way that ends below is
// worse than all that end above.
func (x *chains) toTop(d, u int32) float64 {
	if x.known[u] == d {
		return x.cost[u]
	}
	x.known[u], x.next[u] = d, -1
	x.cost[u] = 0
	from, to := x.ups(u)
	if from == to {
		x.cost[u] = float64(x.height-x.level[u]) * 1e100
		return x.cost[u]
	}
	best := math.Inf(1)
	for i := range to - from {
		c := from + (i+int32(x.lid[d]))%(to-from)
		load := x.load[c] + x.unit[c]
		if cost := load*load*load + x.toTop(d, x.to[c]); cost < best {
			best = cost
			x.next[u] = c
		}
	}
	x.cost[u] = best
	return best
}
