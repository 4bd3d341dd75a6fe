package lft

import (
	"context"
	"math"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

const (
	// separate goes through all LIDs up to separatePasses times, and visits at most
	// separateWork channels.
	separatePasses = 2
	separateWork   = 1 << 28
	// Routes move if that lowers the cost by more than 1/separateGain. So structure such as
	// that of d-mod-k stays where it does no harm.
	separateGain = 16
	// nearWeight weighs the routes to near LIDs, in nearUnit: they count within 2 x width
	// places.
	nearUnit   = 1 << 10
	nearWeight = 212
)

// separator moves routes to different LIDs to different channels.
type separator struct {
	*mover
	near   []nearRoutes // by PortID of switches
	others []others     // by switch
	place  uint64       // of the current LID; goes on from pass to pass
	places uint64       // number of places in a pass: one for each LID of a host
}

// others describes the path from a switch without the routes to the current LID: its cost,
// and true if one of its channels is idle.
type others struct {
	cost uint64
	idle bool
}

// nearRoutes counts the routes of a channel to LIDs placed before the current one. A route
// counts half as much after each width places.
type nearRoutes struct {
	count uint64 // in nearUnit
	width uint64 // the greatest number of routes to one LID
	place uint64 // the place that count is up to date for
}

// separate moves routes to paths with fewer routes to other LIDs, most of all to near LIDs,
// so that fewer contend in permutations and shifts. It does not raise the greatest load.
//
// A host receives one message at a time, so routes to the same LID do not contend: only
// those to other LIDs make a path costly. In a shift the hosts of a switch send to LIDs
// that follow each other. So routes of a channel to near LIDs count once more: near means
// no farther away than the number of hosts that send over the channel.
//
// It takes O(LIDs x channels). It moves nothing if ports have several LIDs, since their
// paths are chosen to be disjoint, nor if the first paths had small loads.
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

// leastCost returns the next hop of the i-th switch with the least cost of its path within
// the greatest load; the present one unless another is clearly better.
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

// channelCost returns load, that of a channel without the current LID, plus the load that
// would result if all routes were as frequent as those to near LIDs. It leaves out the
// second part if half of all hosts send to one LID: then all LIDs are near.
func (x *separator) channelCost(c fabric.PortID, load uint64) uint64 {
	n := &x.near[c]
	if n.count == 0 || n.width > x.places/2 {
		return load
	}
	n.age(x.place)
	return load + n.count*x.places/n.width*nearWeight/(nearUnit*nearUnit)*x.unit[c]
}

// age updates count for a later place: it halves about every width places.
func (n *nearRoutes) age(place uint64) {
	if n.count > 0 {
		gap := place - n.place
		n.count >>= min(gap/n.width, 63)
		n.count -= n.count * (gap % n.width) / (2 * n.width)
	}
	n.place = place
}

// add counts routes to the LID at a place.
func (n *nearRoutes) add(routes, place uint64) {
	n.age(place)
	n.count += routes * nearUnit
	n.width = max(n.width, routes)
}
