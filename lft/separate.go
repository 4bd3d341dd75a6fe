package lft

import (
	"context"
	"slices"

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
	*mover
	near   []nearRoutes // by PortID of switches
	cost   []uint64     // by switch: of the path on
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
// to be disjoint; and so they do where the first paths have small loads.
func (b *balancer) separate(ctx context.Context) error {
	if b.even || len(b.loads) > 1 {
		return ctx.Err()
	}
	x := &separator{mover: b.newMover(), near: make([]nearRoutes, len(b.load)), cost: make([]uint64, len(b.hosts)+1)}
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
			if err := x.set(b, &b.jobs[i]); err != nil {
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
	x.read(lid)
	x.addRoutes(x.destination, -1)
	path := x.path[:len(x.hops.Switches)]
	x.cost[len(path)] = 0
	for i, p := range slices.Backward(path) {
		x.cost[i] = x.channelCost(p.channel) + x.cost[p.to]
	}
	for i, was := range path {
		n := x.arriving[i]
		if n == 0 || len(x.hops.Ports(i)) == 1 || x.minLoad(was) == 0 {
			continue // a channel would be idle without these routes
		}
		x.addArriving(was, -n)
		if k := x.leastCost(i); k != x.choice[i] {
			x.choose(i, k, lid)
		}
		x.addArriving(path[i], n)
	}
	x.addRoutes(x.destination, 1)
	for i, p := range path {
		if n := x.arriving[i]; n > 0 {
			x.near[p.channel].add(uint64(n), x.place)
		}
	}
	x.place++
}

// leastCost is the next hop of the i-th switch with the least cost of the path, of those within
// the limit; its choice unless another is clearly better.
func (x *separator) leastCost(i int) uint8 {
	best, least := x.choice[i], x.cost[i]-x.cost[i]/separateGain
	for k := range x.hops.Ports(i) {
		p := x.step(i, uint8(k))
		beyond := x.cost[p.to]
		if x.load[p.channel]+beyond >= least {
			continue
		}
		if cost := x.channelCost(p.channel) + beyond; cost < least && x.fits(p, x.arriving[i]) {
			best, least = uint8(k), cost
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

// addArriving adds n to the routes that arrive at the switches of the path that begins with p.
func (x *separator) addArriving(p step, n int32) {
	for i := p.to; int(i) < len(x.hops.Switches); i = x.path[i].to {
		x.arriving[i] += n
	}
}

// fits says whether the path that begins with p keeps within the limit with n more routes, and
// those that arrive on it.
func (x *separator) fits(p step, n int32) bool {
	for routes := n; ; {
		if x.load[p.channel]+uint64(routes)*x.unit[p.channel] > x.limit {
			return false
		}
		if int(p.to) == len(x.hops.Switches) {
			return true
		}
		p, routes = x.path[p.to], x.arriving[p.to]+n
	}
}
