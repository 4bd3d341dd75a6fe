package fattree

import (
	"math"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// chains is the chain of each destination LID: the path by which it comes down from the top,
// a switch of each level. Destinations are numbered from 0, switch by switch: first the
// LIDs of its hosts, by port, then its own.
type chains struct {
	*plan
	destStart []int32 // by switch: its destinations are destStart[u]:destStart[u+1]
	ownStart  []int32 // by switch: the destinations on its hosts are destStart[u]:ownStart[u]
	lid       []fabric.LID
	out       []fabric.PortNum // the port by which its switch delivers it
	// switchAt is by level and destination the switch of the chain, -1 for none.
	switchAt [][]int32
	// channelUp is by level below the top and destination the channel that leads up from
	// switchAt, -1 for none. copyUp is its number among those between the same switches.
	channelUp [][]int32
	copyUp    [][]uint8
	// uplinkOf is by level below the top and destination the number of the chain's uplink
	// among those of its digit.
	uplinkOf [][]uint8
	load     []float64 // by channel that leads up: destinations that come down by it

	// The cheapest path to the top, for displaceChain.
	cost     []float64
	next     []int32 // channel, -1 at the top
	knownFor []int32 // by switch: the destination that cost and next are of
}

func newChains(p *plan) *chains {
	n := len(p.switches)
	x := &chains{
		plan: p, destStart: make([]int32, n+1), ownStart: make([]int32, n), load: make([]float64, len(p.to)),
		cost: make([]float64, n), next: make([]int32, n), knownFor: slices.Repeat([]int32{-1}, n),
	}
	for u, s := range p.switches {
		for _, host := range p.f.HostsOn(s) {
			x.addPort(host, p.f.Num(p.f.Peer(host)))
		}
		x.ownStart[u] = int32(len(x.lid))
		x.addPort(p.f.PortBase(s), fabric.ManagementPort)
		for _, port := range p.f.EndPortsOn(s) {
			if !p.f.PortCounts(port, fabric.ForLoad) {
				x.addPort(port, p.f.Num(p.f.Peer(port)))
			}
		}
		x.destStart[u+1] = int32(len(x.lid))
	}

	none := slices.Repeat([]int32{-1}, len(x.lid))
	x.switchAt = append(x.switchAt, slices.Clone(none))
	for range p.height {
		x.switchAt = append(x.switchAt, slices.Clone(none))
		x.channelUp = append(x.channelUp, slices.Clone(none))
		x.copyUp = append(x.copyUp, make([]uint8, len(x.lid)))
		x.uplinkOf = append(x.uplinkOf, make([]uint8, len(x.lid)))
	}
	x.chooseChains()
	return x
}

// addPort gives the LIDs of an end port the next numbers.
func (x *chains) addPort(p fabric.PortID, out fabric.PortNum) {
	for lid := range x.f.LIDs(p) {
		x.lid = append(x.lid, lid)
		x.out = append(x.out, out)
	}
}

// chooseChains makes all chains: first those of a full tree, then those of displaced hosts,
// then those of switches.
func (x *chains) chooseChains() {
	var displaced []int32
	n := int32(len(x.switches))
	wanted := make([]int32, x.height)
	for u := range n {
		for d := x.destStart[u]; d < x.ownStart[u]; d++ {
			port := x.f.LIDPort(x.lid[d])
			x.switchAt[x.level[u]][d] = u
			x.wantUplinks(u, x.hostIndex[u][x.out[d]], int32(x.lid[d]-x.f.LID(port)), int32(1)<<x.f.LMC(port), wanted)
			if !x.takeWanted(d, u, wanted) {
				displaced = append(displaced, d)
			}
		}
	}
	for _, d := range displaced {
		x.displaceChain(d, x.findOwner(d))
	}
	for u := range n {
		for d := x.ownStart[u]; d < x.destStart[u+1]; d++ {
			x.switchAt[x.level[u]][d] = u
			v := u
			for l := x.level[u]; l < x.height; l++ {
				from, to := x.ups(v)
				if from == to {
					break
				}
				v = x.extendChain(d, l, from+(u+d-x.ownStart[u])%(to-from))
			}
		}
	}
	// Below the switch of a destination there is no chain: copies take turns there.
	for u := range n {
		for l := range x.level[u] {
			for d := x.destStart[u]; d < x.destStart[u+1]; d++ {
				x.copyUp[l][d] = uint8(int32(x.lid[d]) % x.copies)
			}
		}
	}
}

// findOwner finds the switch of a destination.
func (x *chains) findOwner(d int32) int32 {
	for l := range x.switchAt {
		if u := x.switchAt[l][d]; u >= 0 {
			return u
		}
	}
	return -1
}

// wantUplinks puts into wanted, by level below the top, the number of the uplink that a full
// tree gives to LID k of the lids of the host with index i on switch u. The LIDs of one port
// are rotated against each other, so that the k-th LIDs of all ports are as
// contention-free for each k.
func (x *chains) wantUplinks(u, i, k, lids int32, wanted []int32) {
	slot := i
	for l := range x.height {
		if l < x.level[u] {
			continue
		}
		turn := min(lids, x.uplinks[l])
		shift := k % turn * (x.uplinks[l] / turn)
		k /= turn
		lids = (lids + turn - 1) / turn
		if x.level[u] > 0 || x.subtreeIndex[0][u] < 0 {
			wanted[l] = slot + shift
			continue
		}
		wanted[l] = slot + shift + x.uplinkOffset(l, u)
		slot = x.subtreeIndex[l][u]*x.oversubscription[l] + slot/x.distinctParents[l]%x.oversubscription[l]
	}
}

// takeWanted gives a destination the wanted chain. It returns false if a cable is missing.
func (x *chains) takeWanted(d, u int32, wanted []int32) bool {
	var channels [maxHeight]int32
	for v, l := u, x.level[u]; l < x.height; l++ {
		list := x.uplinkChannel[l][v]
		if len(list) == 0 {
			return false
		}
		c := list[wanted[l]%int32(len(list))]
		if c < 0 {
			return false
		}
		channels[l] = c
		v = x.to[c]
	}
	for l := x.level[u]; l < x.height; l++ {
		x.load[channels[l]] += x.unit[channels[l]]
		x.extendChain(d, l, channels[l])
	}
	return true
}

// extendChain adds channel c to the chain of d, and returns the switch that it leads to.
func (x *chains) extendChain(d, l, c int32) int32 {
	u, v := x.switchAt[l][d], x.to[c]
	if i := slices.Index(x.uplinkChannel[l][u], c); i >= 0 {
		x.uplinkOf[l][d] = uint8(i)
	}
	x.channelUp[l][d], x.copyUp[l][d], x.switchAt[l+1][d] = c, x.copy[c], v
	return v
}

// displaceChain gives d the chain with the least sum of the cubes of the loads on it.
func (x *chains) displaceChain(d, u int32) {
	x.findCostToTop(d, u)
	for l := x.level[u]; l < x.height; l++ {
		c := x.next[u]
		if c < 0 {
			return
		}
		x.load[c] += x.unit[c]
		u = x.extendChain(d, l, c)
	}
}

// findCostToTop finds the least cost of a path from u to the top. A path that ends below the
// top costs more than any that ends higher.
func (x *chains) findCostToTop(d, u int32) float64 {
	if x.knownFor[u] == d {
		return x.cost[u]
	}
	x.knownFor[u], x.next[u] = d, -1
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
		if cost := load*load*load + x.findCostToTop(d, x.to[c]); cost < best {
			best = cost
			x.next[u] = c
		}
	}
	x.cost[u] = best
	return best
}
