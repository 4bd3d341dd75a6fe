package lft

import (
	"context"
	"math"
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
	others []others     // by switch
	place  uint64       // of the current LID; places are counted on from pass to pass
	places uint64       // of a pass: one for each LID of a host
}

// others is the path from a switch without the routes to the current LID: its cost, and true if
// a channel is idle.
type others struct {
	cost uint64
	idle bool
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
	x := &separator{mover: b.newMover(), near: make([]nearRoutes, len(b.load)), others: make([]others, len(b.hosts)+1)}
	x.ceiling = x.greatest()
	for i := range b.jobs {
		x.places += uint64(len(b.jobs[i].lids))
	}
	for range min(separatePasses, separateWork/b.countVisits()) {
		if err := x.eachLID(ctx, 0, func(fabric.LID) bool { return true }, x.separateLID); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// separateLID moves routes to one LID, those of the farthest switch first.
func (x *separator) separateLID(lid fabric.LID) {
	x.read(lid)
	x.readFlows(lid)
	path := x.path[:len(x.hops.Switches)]
	x.others[len(path)] = others{}
	for i, p := range slices.Backward(path) {
		load := x.load[p.channel] - uint64(x.arriving[i])*x.unit[p.channel]
		x.others[i] = others{x.channelCost(p.channel, load) + x.others[p.to].cost, load == 0 || x.others[p.to].idle}
	}
	for i := range path {
		if x.arriving[i] == 0 || len(x.hops.Ports(i)) == 1 || x.others[i].idle {
			continue // a channel would be idle without these routes
		}
		f := x.flowOf(int32(i))
		x.addFlow(int32(i), f.negative())
		if k := x.leastCost(i, f, lid); k != x.choice[i] {
			x.choose(i, k, lid)
		}
		x.addFlow(int32(i), f)
	}
	for i, p := range path {
		if n := x.arriving[i]; n > 0 {
			x.near[p.channel].add(uint64(n), x.place)
		}
	}
	x.place++
}

// leastCost is the next hop of the i-th switch with the least cost of the path, of those within
// the greatest load; its choice unless another is clearly better.
func (x *separator) leastCost(i int, f flow, lid fabric.LID) uint8 {
	best, least := x.choice[i], x.others[i].cost-x.others[i].cost/separateGain
	for k := range x.hops.Ports(i) {
		p := x.step(i, uint8(k))
		beyond := x.others[p.to].cost
		if x.load[p.channel]+beyond >= least {
			continue
		}
		if cost := x.channelCost(p.channel, x.load[p.channel]) + beyond; cost < least && !math.IsInf(x.growCost(p, f, lid, true).grow, 1) {
			best, least = uint8(k), cost
		}
	}
	return best
}

// channelCost is the load of a channel without the current LID, and the same again as if all
// routes were as frequent as those to near LIDs. Where half of all hosts send to a LID, all
// LIDs are near.
func (x *separator) channelCost(c fabric.PortID, load uint64) uint64 {
	n := &x.near[c]
	if n.count == 0 || n.width > x.places/2 {
		return load
	}
	n.age(x.place)
	return load + n.count*x.places/n.width*nearWeight/(nearUnit*nearUnit)*x.unit[c]
}

// age brings count up to date for a later place: it halves about every width places.
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
