package lft

import (
	"context"

	"github.com/ibweave/ibweave/fabric"
)

const (
	// separate goes through all LIDs separatePasses times at most, as long as the passes visit no
	// more than separateWork channels.
	separatePasses = 2
	separateWork   = 1 << 28
	// Routes move for a cost that is less by more than 1/separateGain, so that structure such
	// as that of d-mod-k stays where it does no harm.
	separateGain = 16
	// nearWeight is the cost of a route to a near LID, in nearUnit, for a window of twice the width.
	nearUnit   = 1 << 10
	nearWeight = 212
)

// separator moves routes to different LIDs apart.
type separator struct {
	*rebalancer
	near   []nearRoutes // by PortID of switches
	cost   []uint64     // by index in hops.Switches: of the path on
	place  uint64       // of the current LID; places are counted on from pass to pass
	places uint64       // of a pass: one for each LID of a host
}

// nearRoutes are the routes of a channel to LIDs before the current one. They count half as much
// each width places later.
type nearRoutes struct {
	count uint64 // in nearUnit
	width uint64 // the most routes to one LID
	place uint64 // as of which count is
}

// separate moves routes to paths with fewer routes to other LIDs, and with fewer of these to near
// LIDs, so that fewer contend in permutations and shifts. The greatest load stays.
//
// A host receives one message at a time, so the routes to one LID do not contend: those to other
// LIDs alone make a path costly. In a shift the hosts of a switch send to LIDs that follow each
// other. So of the routes of a channel those to near LIDs count once more: to LIDs no farther
// away than the channel has hosts that send.
//
// It takes O(LIDs x channels). With several LIDs a port all routes stay, since those paths are chosen
// to be disjoint.
func (b *balancer) separate(ctx context.Context) error {
	if len(b.loads) > 1 {
		return ctx.Err()
	}
	x := &separator{rebalancer: b.newRebalancer(), near: make([]nearRoutes, len(b.load)), cost: make([]uint64, len(b.hosts)+1)}
	x.limit = b.greatestLoad()
	for i := range b.jobs {
		x.places += uint64(len(b.jobs[i].lids))
	}
	for range min(separatePasses, separateWork/b.countVisits()) {
		for i := range b.jobs {
			if err := ctx.Err(); err != nil {
				return err
			}
			if len(b.jobs[i].lids) == 0 {
				continue
			}
			if err := x.set(b, x.list, &b.jobs[i]); err != nil {
				return err
			}
			for _, lid := range b.jobs[i].lids {
				x.separateLID(lid)
			}
		}
	}
	return ctx.Err()
}

// separateLID moves routes to one LID, those of the farthest switch first.
func (x *separator) separateLID(lid fabric.LID) {
	h := &x.hops
	x.readEntries(x.destination, x.tables, lid)
	x.addRoutes(x.destination, -1)
	for i := len(h.Switches) - 1; i >= 0; i-- {
		at := x.choice[i]
		x.cost[i] = x.channelCost(h.ports[at]) + x.cost[x.next[at]]
	}
	for i, s := range h.Switches {
		n, was := x.arriving[i], x.choice[i]
		if n == 0 || h.start[i+1]-h.start[i] == 1 || x.minLoad(was) == 0 {
			continue // a channel would be idle without these routes
		}
		x.addArriving(was, -n)
		x.choice[i] = x.leastCost(i)
		x.addArriving(x.choice[i], n)
		if x.choice[i] != was {
			x.tables.Row(s)[lid] = x.num[h.ports[x.choice[i]]]
		}
	}
	x.addRoutes(x.destination, 1)
	for i, at := range x.choice[:len(h.Switches)] {
		if n := x.arriving[i]; n > 0 {
			x.near[h.ports[at]].add(n, x.place)
		}
	}
	x.place++
}

// leastCost is the next hop of the i-th switch with the least cost of the path, of those within
// the limit; its choice unless another is clearly better.
func (x *separator) leastCost(i int) int32 {
	h := &x.hops
	best, least := x.choice[i], x.cost[i]-x.cost[i]/separateGain
	for at := h.start[i]; at < h.start[i+1]; at++ {
		c, beyond := h.ports[at], x.cost[x.next[at]]
		if x.load[c]+beyond >= least {
			continue
		}
		if cost := x.channelCost(c) + beyond; cost < least && x.fits(at, x.arriving[i]) {
			best, least = at, cost
		}
	}
	return best
}

// channelCost is the load of a channel without the current LID, and the same again as if all
// routes were as frequent as those to near LIDs. Where half of all hosts send to a LID, all
// LIDs are near.
func (x *separator) channelCost(c fabric.PortID) uint64 {
	n := &x.near[c]
	if n.count == 0 || n.width > x.places/2 {
		return x.load[c]
	}
	n.age(x.place)
	return x.load[c] + n.count*x.places/n.width*nearWeight/(nearUnit*nearUnit)*x.unit[c]
}

// age makes count that of a later place.
func (n *nearRoutes) age(place uint64) {
	if n.count > 0 {
		gap := place - n.place
		n.count >>= min(gap/n.width, 63)
		n.count -= n.count * (gap % n.width) / (2 * n.width)
	}
	n.place = place
}

// add counts routes to the LID of a place.
func (n *nearRoutes) add(routes, place uint64) {
	n.age(place)
	n.count += routes * nearUnit
	n.width = max(n.width, routes)
}

// addArriving adds n to the routes that arrive at the switches of the path by a next hop.
func (x *separator) addArriving(at int32, n uint64) {
	for i := x.next[at]; int(i) < len(x.hops.Switches); i = x.next[x.choice[i]] {
		x.arriving[i] += n
	}
}

// fits says whether the path by a next hop keeps within the limit with n more routes, and those
// that arrive on it.
func (x *separator) fits(at int32, n uint64) bool {
	for routes := n; ; {
		c, i := x.hops.ports[at], x.next[at]
		if x.load[c]+routes*x.unit[c] > x.limit {
			return false
		}
		if int(i) == len(x.hops.Switches) {
			return true
		}
		at, routes = x.choice[i], x.arriving[i]+n
	}
}
