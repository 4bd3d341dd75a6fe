package lft

import (
	"context"
	"math"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

const (
	// Passes of rebalance end when the greatest load is within 1/rebalanceDone of its known
	// lower bound, when they have weighed rebalanceWork channels, or when patience passes, or those
	// that weighed patienceWork channels, had no smaller greatest load.
	rebalanceDone = 128
	rebalanceWork = 1 << 24
	patience      = 60
	patienceWork  = 1 << 20
	// The limit of a pass is below the greatest load by 1/leastStep of it at least.
	leastStep = 64
)

// rebalancer takes routes off the busiest channels.
type rebalancer struct {
	*chooser
	*destination
	pass  int
	limit uint64
	path  []step // by switch: the next hop of the current LID
	busy  []bool // by switch: the path to the current LID has a channel above limit
	work  int    // channels weighed
}

// step is a channel and the switch that it leads to.
type step struct {
	channel fabric.PortID
	to      int32
}

func (b *balancer) newRebalancer() *rebalancer {
	n := len(b.hosts)
	return &rebalancer{chooser: b.newChooser(), destination: b.newDestination(), path: make([]step, n), busy: make([]bool, n+1)}
}

// read takes the paths of a LID.
func (r *rebalancer) read(lid fabric.LID) {
	r.readEntries(r.destination, r.tables, lid)
	for i, k := range r.choice[:len(r.hops.Switches)] {
		r.path[i] = r.step(i, k)
	}
}

// step is that of a next hop of the i-th switch.
func (r *rebalancer) step(i int, k uint8) step {
	return step{r.channel(i, k), r.next[r.nextAt[i]+int32(k)]}
}

// choose changes the next hop of the i-th switch for a LID.
func (r *rebalancer) choose(i int, k uint8, lid fabric.LID) {
	r.choice[i], r.path[i] = k, r.step(i, k)
	r.tables.Row(r.hops.Switches[i])[lid] = r.hops.Ports(i)[k]
}

// rebalance takes routes off the busiest channels, given a lower bound of their load. Each pass has a limit between the
// greatest load and its known lower bound, and goes through the LIDs with a path that has a
// channel above it. Switch after switch, the farthest first, it moves the routes on such
// paths to where the squares of the loads above the limit grow least in sum. All other
// routes stay, so that routes to a LID still merge. The tables of the best pass remain.
func (b *balancer) rebalance(ctx context.Context, bound uint64) error {
	return b.rebalanceTo(ctx, bound, bound+bound/rebalanceDone)
}

// rebalanceTo rebalances until the greatest load is at most done, with limits above bound.
func (b *balancer) rebalanceTo(ctx context.Context, bound, done uint64) error {
	high := b.greatestLoad()
	tooHigh := func() bool { return high > done }
	if !tooHigh() {
		return ctx.Err()
	}
	r := b.newRebalancer()
	best, bestLoad := b.tables.Clone(), slices.Clone(b.load)
	low := bound
	lastPass, lastWork := patience, patienceWork
	for ; tooHigh() && r.pass < lastPass && r.work < min(lastWork, rebalanceWork); r.pass++ {
		r.limit = min(low+(high-low)/2, high-high/leastStep)
		if err := r.moveRoutes(ctx); err != nil {
			return err
		}
		r.work += len(b.load)
		most := b.greatestLoad()
		if most > r.limit && most-r.limit > (high-r.limit)/2 { // the limit was too low
			low = r.limit
		}
		if most < high {
			high, low = most, min(bound, most)
			lastPass, lastWork = r.pass+patience, r.work+patienceWork
			copy(best.entries, b.tables.entries)
			copy(bestLoad, b.load)
		}
	}
	b.tables, b.load = best, bestLoad
	return ctx.Err()
}

// moveRoutes goes through all LIDs once. Each pass begins at another one, so that passes that
// move the same excess about end in different ways.
func (r *rebalancer) moveRoutes(ctx context.Context) error {
	b := r.balancer
	busy := r.listBusyLIDs()
	for i := range r.jobs {
		j := &r.jobs[(i+31*r.pass)%len(r.jobs)]
		if err := ctx.Err(); err != nil {
			return err
		}
		listed := false
		for _, lid := range j.lids {
			if !busy[lid] || r.work > rebalanceWork {
				continue
			}
			if !listed {
				if err := r.set(b, j); err != nil {
					return err
				}
				listed = true
			}
			r.moveLID(lid)
		}
	}
	return nil
}

// listBusyLIDs marks the LIDs with an entry for a channel above the limit.
func (r *rebalancer) listBusyLIDs() []bool {
	busy := make([]bool, int(r.fab.MaxLID())+1)
	for s := range fabric.NodeID(r.fab.NumSwitches()) {
		ports, _ := r.fab.SwitchLinks(s)
		var above [256]bool
		some := false
		for _, c := range ports {
			if r.load[c] > r.limit {
				above[r.fab.Num(c)], some = true, true
			}
		}
		if !some {
			continue
		}
		for lid, num := range r.tables.Row(s) {
			if above[num] {
				busy[lid] = true
			}
		}
	}
	return busy
}

// moveLID moves routes to one LID.
func (r *rebalancer) moveLID(lid fabric.LID) {
	r.read(lid)
	n := len(r.hops.Switches)
	r.busy[n] = false
	some := false
	for i, p := range slices.Backward(r.path[:n]) {
		r.busy[i] = r.load[p.channel] > r.limit || r.busy[p.to]
		some = some || r.busy[i] && r.sources[i] > 0
	}
	if !some {
		return
	}
	copy(r.arriving, r.sources)
	for i := range n {
		n := r.arriving[i]
		if n == 0 {
			continue
		}
		if r.busy[i] && len(r.hops.Ports(i)) > 1 && r.maxLoad(r.path[i]) > r.limit {
			if k := r.bestMove(i, uint64(n), lid); k != r.choice[i] {
				r.choose(i, k, lid)
			}
		}
		r.arriving[r.path[i].to] += n
	}
}

// bestMove moves the n routes of the i-th switch to a LID from its choice to the best of its
// next hops: where the cost grows least, of equal ones that with the fewest other LIDs of the
// port, then with the least sum of loads, or the first from one on that changes with the pass.
// Of equal costs, the choice itself stays three times out of four, at random: where nothing is
// better, the excess moves until it finds room.
func (r *rebalancer) bestMove(i int, n uint64, lid fabric.LID) uint8 {
	count := len(r.hops.Ports(i))
	turn := int(lid) + r.pass
	leaves := uint32(7919*turn+104729*i)*2654435761>>30 == 0
	best := r.choice[i]
	r.addPath(r.path[i], -n)
	least, sum := r.growCost(r.path[i], n)
	sum += r.countSiblings(i, best, lid) * channelPenalty
	for from := range count {
		k := uint8((turn + from) % count)
		if k == r.choice[i] {
			continue
		}
		x, y := r.growCost(r.step(i, k), n)
		y += r.countSiblings(i, k, lid) * channelPenalty
		if x < least || x == least && (y < sum || best == r.choice[i] && leaves) {
			best, least, sum = k, x, y
		}
	}
	r.addPath(r.step(i, best), n)
	return best
}

// countSiblings counts the other LIDs of the same port that take a next hop.
func (r *rebalancer) countSiblings(i int, k uint8, lid fabric.LID) (n uint64) {
	port := r.fab.LIDPort(lid)
	if r.fab.LMC(port) == 0 {
		return 0
	}
	row, num := r.tables.Row(r.hops.Switches[i]), r.hops.Ports(i)[k]
	for other := range r.fab.LIDs(port) {
		if other != lid && row[other] == num {
			n++
		}
	}
	return n
}

// follow calls visit with each channel of the path that begins with p.
func (r *rebalancer) follow(p step, visit func(c fabric.PortID)) {
	for {
		visit(p.channel)
		if int(p.to) == len(r.hops.Switches) {
			return
		}
		p = r.path[p.to]
	}
}

// maxLoad is the greatest load on the path that begins with p.
func (r *rebalancer) maxLoad(p step) (most uint64) {
	r.follow(p, func(c fabric.PortID) { most = max(most, r.load[c]) })
	return most
}

// minLoad is the least load on the path that begins with p.
func (r *rebalancer) minLoad(p step) uint64 {
	least := uint64(math.MaxUint64)
	r.follow(p, func(c fabric.PortID) { least = min(least, r.load[c]) })
	return least
}

// addPath adds n routes to the loads on the path that begins with p, or takes them off when
// given -n.
func (r *rebalancer) addPath(p step, n uint64) {
	r.follow(p, func(c fabric.PortID) { r.load[c] += n * r.unit[c] })
}

// growCost is how much the squares of the loads above the limit grow by n more routes on the
// path that begins with p, and the sum of the loads on that path now.
func (r *rebalancer) growCost(p step, n uint64) (grow float64, sum uint64) {
	r.follow(p, func(c fabric.PortID) {
		r.work++
		before := r.load[c]
		after := before + n*r.unit[c]
		sum += before
		grow += growth(before, after, r.limit)
	})
	return grow, sum
}

// growth is how much the square of a load above a limit grows.
func growth(before, after, limit uint64) float64 {
	if after <= limit {
		return 0
	}
	a, b := float64(after-limit), float64(max(before, limit)-limit)
	return float64(a*a) - float64(b*b)
}

// BoundLoad is a lower bound of the greatest load of any tables, in LoadUnits: the routes
// from and to the hosts of each switch, in its component of the fabric, divided among its
// channels.
func BoundLoad(f *fabric.Fabric) (most uint64) {
	const one = 1 << 30
	unit := LoadUnits(f)
	hosts, lids := make([]uint64, f.NumSwitches()), make([]uint64, f.NumSwitches())
	components := f.Components()
	hostsOf, lidsOf := make([]uint64, len(components.List)), make([]uint64, len(components.List))
	for s := range hosts {
		for _, p := range f.HostsOn(fabric.NodeID(s)) {
			hosts[s]++
			if f.LID(p) != 0 {
				lids[s] += 1 << f.LMC(p)
			}
		}
		hostsOf[components.Of[s]] += hosts[s]
		lidsOf[components.Of[s]] += lids[s]
	}
	for s, h := range hosts {
		var room uint64
		ports, _ := f.SwitchLinks(fabric.NodeID(s))
		for _, p := range ports {
			room += one / unit[p]
		}
		if room > 0 {
			c := components.Of[s]
			most = max(most, lids[s]*(hostsOf[c]-h)*one/room, h*(lidsOf[c]-lids[s])*one/room)
		}
	}
	return most
}
