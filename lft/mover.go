package lft

import (
	"context"
	"math"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

const (
	// A search ends if the greatest load is within 1/rebalanceDone of its lower bound, or after
	// weighing rebalanceWork channels. It also ends if patience passes (keptPatience where
	// entries should stay), or passes that weigh patienceWork channels, do not lower the
	// greatest load.
	rebalanceDone = 128
	rebalanceWork = 1 << 24
	patience      = 60
	keptPatience  = 8
	patienceWork  = 1 << 20
	// Each pass has a limit at least 1/leastStep below the greatest load.
	leastStep = 64
	// spread moves routes off channels with more than 1/spreadPart of the greatest load, in up
	// to spreadPasses passes. It stops if a pass lowers the sum of squares by less than
	// spreadGain of it.
	spreadPart, spreadPasses = 4, 8
	spreadGain               = 0.01
)

// mover takes routes off busy channels. It is the local search behind all that improves tables:
// Balance, Prefer, and the steps and Fit of an Incremental.
//
// Each pass has a limit, and visits the LIDs with a path over a channel above it. At each
// switch, the farthest first, it moves what goes over such paths to the next hop where the
// squares of the loads above the limit grow least. All else stays, so that routes to a LID
// still merge.
type mover struct {
	*chooser
	*destination
	weight []uint64 // by PortID of switches: what to lower: load, or the demand's loads
	limit  uint64
	pass   int
	work   int    // how many channels were weighed
	moved  int    // how many entries it changed
	path   []step // by switch: the next hop of the current LID
	busy   []bool // by switch: the path to the current LID has a channel above limit

	keeps   bool   // entries stay unless another port is better
	ceiling uint64 // no weight may go above
	changed []bool // as Incremental.changed, by block of the tables; nil if all blocks may change
	blocks  int    // how many more blocks may change

	// The rest is for a demand:
	demand *Demand  // nil for one route from each host to each LID
	most   uint64   // no load may go above
	sent   []int64  // by switch: demand that goes over it to the current LID
	round  int      // counts searches
	found  []found  // by free switch: the best path on
	taken  []change // changes of the move in progress
}

// found is the best path on from a free switch.
type found struct {
	cost
	round int
	hop   uint8
}

// cost compares paths for a flow: first by grow, how much the squares of the weights above the
// limit grow, infinite if a bound forbids the path; then by sum, the sum of the weights on the
// path.
type cost struct {
	grow float64
	sum  uint64
}

// change records the former entry of the i-th switch.
type change struct {
	i      int32
	was    uint8
	opened bool // the first change in its block
}

// step is a channel and the index of the switch that it leads to.
type step struct {
	channel fabric.PortID
	to      int32
}

// flow is what a switch sends to a LID: the number of routes, and the amount of the Demand.
type flow struct {
	routes int32
	sent   int64
}

func (f flow) negative() flow { return flow{-f.routes, -f.sent} }

func (b *balancer) newMover() *mover {
	n := len(b.hosts)
	return &mover{
		chooser: b.newChooser(), destination: b.newDestination(), weight: b.load, path: make([]step, n), busy: make([]bool, n+1),
		ceiling: math.MaxUint64, most: math.MaxUint64,
	}
}

// read sets choice and path for a LID. It returns false if a switch has no path.
func (r *mover) read(lid fabric.LID) bool {
	if !r.readEntries(r.destination, r.tables, lid) {
		return false
	}
	for i, k := range r.choice[:len(r.hops.Switches)] {
		r.path[i] = r.step(i, k)
	}
	return true
}

// step returns the step of the k-th next hop of the i-th switch.
func (r *mover) step(i int, k uint8) step {
	return step{r.channel(i, k), r.next[r.nextAt[i]+int32(k)]}
}

// choose makes k the next hop of the i-th switch for a LID.
func (r *mover) choose(i int, k uint8, lid fabric.LID) {
	r.choice[i], r.path[i] = k, r.step(i, k)
	r.tables.Row(r.hops.Switches[i])[lid] = r.hops.Ports(i)[k]
}

// greatest returns the weight of the busiest channel.
func (r *mover) greatest() uint64 { return greatest(r.weight) }

// greatest returns the greatest of some loads, 0 if there are none.
func greatest(loads []uint64) (most uint64) {
	for _, n := range loads {
		most = max(most, n)
	}
	return most
}

// lower moves routes until the greatest weight is at most done, or it finds no way. No weight
// can be below bound; each pass has a limit between bound and the greatest weight. The tables
// of the best pass remain.
func (r *mover) lower(ctx context.Context, bound, done uint64) error {
	high := r.greatest()
	if high <= done {
		return ctx.Err()
	}
	most := patience
	if r.keeps {
		most = keptPatience
	}
	best := saved{slices.Clone(r.tables.entries), slices.Clone(r.load), slices.Clone(r.weight)}
	low := bound
	lastPass, lastWork := r.pass+most, r.work+patienceWork
	for high > done && r.pass < lastPass && r.work < min(lastWork, rebalanceWork) {
		r.limit = min(low+(high-low)/2, high-high/leastStep)
		if r.keeps {
			r.limit = max(r.limit, done)
		}
		if err := r.movePass(ctx); err != nil {
			return err
		}
		now := r.greatest()
		if now > r.limit && now-r.limit > (high-r.limit)/2 { // the limit was too low
			low = r.limit
		}
		if now < high {
			high, low = now, min(bound, now)
			lastPass, lastWork = r.pass+most, r.work+patienceWork
			best.copyFrom(r.state())
		}
	}
	r.state().copyFrom(best)
	return ctx.Err()
}

// reach does what lower does, for entries that should stay. First no weight may rise
// above done, so that only routes with a share in a higher one move, first in blocks
// that have changed already. If that is not enough, others make room too: displaced
// is true if entries then changed.
func (r *mover) reach(ctx context.Context, done uint64) (displaced bool, err error) {
	r.keeps, r.limit, r.ceiling = true, done, done
	for _, r.blocks = range []int{0, r.blocks} {
		for before := -1; before < r.moved && r.greatest() > done && err == nil; {
			before = r.moved
			err = r.movePass(ctx)
		}
	}
	if r.ceiling = math.MaxUint64; err != nil || r.greatest() <= done {
		return false, err
	}
	before := r.tables.Clone()
	err = r.lower(ctx, done, done)
	return !slices.Equal(before.entries, r.tables.entries), err
}

// spread moves routes off channels that are busy but not the busiest: jobs that meet there wait
// for each other for a while, though there is room for all bytes. The greatest weight stays;
// the squares of the weights above a part of it shrink.
func (r *mover) spread(ctx context.Context) error {
	r.keeps, r.ceiling = true, r.greatest()
	r.limit = r.ceiling / spreadPart
	for range spreadPasses {
		before := r.squares()
		if err := r.movePass(ctx); err != nil {
			return err
		}
		if after := r.squares(); before-after < before*spreadGain {
			break
		}
	}
	return nil
}

// squares returns the sum of the squares of the weights' excesses over the limit, in
// units of the limit.
func (r *mover) squares() (sum float64) {
	for _, w := range r.weight {
		if w > r.limit {
			above := float64(w-r.limit) / float64(r.limit)
			sum += float64(above * above)
		}
	}
	return sum
}

// saved is tables with their loads.
type saved struct {
	entries      []fabric.PortNum
	load, weight []uint64
}

func (r *mover) state() saved { return saved{r.tables.entries, r.load, r.weight} }

func (x saved) copyFrom(y saved) {
	copy(x.entries, y.entries)
	copy(x.load, y.load)
	copy(x.weight, y.weight)
}

// eachLID visits the LIDs of hosts for which want is true, starting at job number turn.
func (r *mover) eachLID(ctx context.Context, turn int, want func(lid fabric.LID) bool, visit func(lid fabric.LID)) error {
	for i := range r.jobs {
		j := &r.jobs[(i+turn)%len(r.jobs)]
		if err := ctx.Err(); err != nil {
			return err
		}
		listed := false
		for _, lid := range j.lids {
			if !want(lid) {
				continue
			}
			if !listed {
				if err := r.set(r.balancer, j); err != nil {
					return err
				}
				listed = true
			}
			visit(lid)
		}
	}
	return nil
}

// movePass goes through all LIDs once. Each pass starts at another LID, so that passes do not
// keep moving the same excess in a circle.
func (r *mover) movePass(ctx context.Context) error {
	busy := r.listBusyLIDs()
	err := r.eachLID(ctx, 31*r.pass, func(lid fabric.LID) bool { return busy[lid] && r.work <= rebalanceWork }, r.moveLID)
	r.pass++
	r.work += len(r.load)
	return err
}

// listBusyLIDs marks the LIDs with an entry for a channel above the limit; with a demand,
// only LIDs that have one.
func (r *mover) listBusyLIDs() []bool {
	busy := make([]bool, int(r.fab.MaxLID())+1)
	for s := range fabric.NodeID(r.fab.NumSwitches()) {
		ports, _ := r.fab.SwitchLinks(s)
		var above [256]bool
		some := false
		for _, c := range ports {
			if r.weight[c] > r.limit {
				above[r.fab.Num(c)], some = true, true
			}
		}
		if !some {
			continue
		}
		for lid, num := range r.tables.Row(s) {
			if above[num] {
				busy[lid] = r.demand == nil || lid < len(r.demand.To) && len(r.demand.To[lid]) > 0
			}
		}
	}
	return busy
}

// moveLID moves what switches send to one LID.
func (r *mover) moveLID(lid fabric.LID) {
	if !r.read(lid) {
		return
	}
	n := len(r.hops.Switches)
	r.busy[n] = false
	some := false
	for i, p := range slices.Backward(r.path[:n]) {
		r.busy[i] = r.weight[p.channel] > r.limit || r.busy[p.to]
		some = some || r.busy[i] && r.sources[i] > 0
	}
	if !some {
		return
	}
	r.readFlows(lid)
	for i := range n {
		if r.carries(i) && len(r.hops.Ports(i)) > 1 && r.isBusy(i) {
			r.moveFlow(int32(i), lid)
		}
	}
}

// isBusy returns true if the path of the i-th switch has a channel above the limit.
func (r *mover) isBusy(i int) bool {
	return (r.busy[i] || r.demand != nil) && r.maxWeight(r.path[i]) > r.limit
}

// readFlows sets arriving and sent to what the switches send to a LID.
func (r *mover) readFlows(lid fabric.LID) {
	copy(r.arriving, r.sources)
	path := r.path[:len(r.hops.Switches)]
	for i, p := range path {
		r.arriving[p.to] += r.arriving[i]
	}
	if r.demand == nil {
		return
	}
	clear(r.sent)
	for _, x := range r.demand.To[lid] {
		// The index of a switch that does not reach the destination is an old one.
		if i := r.index[x.From]; int(i) < len(path) && r.hops.Switches[i] == x.From {
			r.sent[i] += x.Amount
		}
	}
	for i, p := range path {
		r.sent[p.to] += r.sent[i]
	}
}

// carries returns true if the i-th switch sends something to the current LID that may be moved.
func (r *mover) carries(i int) bool {
	if r.demand == nil {
		return r.arriving[i] > 0
	}
	return r.sent[i] > 0
}

// flowOf returns the flow of the i-th switch to the current LID.
func (r *mover) flowOf(i int32) flow {
	f := flow{routes: r.arriving[i]}
	if r.demand != nil {
		f.sent = r.sent[i]
	}
	return f
}

// weigh returns the weight that a flow adds to the fastest channel.
func (r *mover) weigh(f flow) uint64 {
	if r.demand == nil {
		return uint64(f.routes)
	}
	return uint64(f.sent + r.demand.Background*int64(f.routes))
}

// countDemand sets weight to the loads of the demand.
func (r *mover) countDemand(ctx context.Context) error {
	n := len(r.busy)
	r.weight, r.sent, r.found = make([]uint64, len(r.load)), make([]int64, n), make([]found, n)
	for c, load := range r.load {
		r.weight[c] = uint64(r.demand.Background) * load
	}
	return r.eachLID(ctx, 0, func(lid fabric.LID) bool { return int(lid) < len(r.demand.To) && len(r.demand.To[lid]) > 0 }, func(lid fabric.LID) {
		if !r.read(lid) {
			return
		}
		r.readFlows(lid)
		for i, p := range r.path[:len(r.hops.Switches)] {
			r.weight[p.channel] += uint64(r.sent[i]) * r.unit[p.channel]
		}
	})
}

// blockOf returns the index in changed of an entry of the i-th switch.
func (r *mover) blockOf(i int32, lid fabric.LID) int {
	return (int(r.hops.Switches[i])*r.tables.stride + int(lid)) / BlockSize
}

// moveFlow moves what the i-th switch sends to a LID to its best next hop: where
// cost.grow is least; then where the fewest other LIDs of the port go, then where the
// sum of weights is least, then by a turn that changes with each pass. If no next hop
// is better than the present one but some are equal, one time in four, at random, it
// takes one of these, so that an excess moves on until it finds room. If entries
// should stay, the present one stays unless another grows less.
func (r *mover) moveFlow(i int32, lid fabric.LID) {
	count, was, f := len(r.hops.Ports(int(i))), r.choice[i], r.flowOf(i)
	turn := int(lid) + r.pass
	leaves := uint32(7919*turn+104729*int(i))*2654435761>>30 == 0
	best := was
	r.addFlow(i, f.negative())
	least := r.growCost(r.path[i], f, lid, false)
	least.sum += r.countSiblings(int(i), best, lid) * channelPenalty
	r.round++
	for from := range count {
		k := uint8((turn + from) % count)
		if k == was {
			continue
		}
		x := r.growCost(r.step(int(i), k), f, lid, true)
		x.sum += r.countSiblings(int(i), k, lid) * channelPenalty
		if x.grow < least.grow || !r.keeps && x.grow == least.grow && (x.sum < least.sum || best == was && leaves) {
			best, least = k, x
		}
	}
	r.taken = r.taken[:0]
	if best != was {
		r.choosePath(i, best, lid)
	}
	r.addFlow(i, f)
	if len(r.taken) > 0 && !r.fits(r.path[i]) {
		r.addFlow(i, f.negative())
		for _, c := range slices.Backward(r.taken) {
			r.reroute(c.i, c.was, lid)
			if c.opened {
				r.changed[r.blockOf(c.i, lid)] = false
				r.blocks++
			}
		}
		r.taken = r.taken[:0]
		r.addFlow(i, f)
	}
	r.moved += len(r.taken)
}

// choosePath changes the next hop of the i-th switch for a LID to k. If that leads to free
// switches, they get the next hops that search found.
func (r *mover) choosePath(i int32, k uint8, lid fabric.LID) {
	for {
		if k != r.choice[i] {
			c := change{i: i, was: r.choice[i], opened: r.changed != nil && !r.changed[r.blockOf(i, lid)]}
			if r.taken = append(r.taken, c); c.opened {
				r.changed[r.blockOf(i, lid)] = true
				r.blocks--
			}
			r.reroute(i, k, lid)
		}
		if i = r.path[i].to; !r.isFree(i) {
			return
		}
		k = r.found[i].hop
	}
}

// reroute changes the next hop of the i-th switch for a LID, and moves its flow there.
func (r *mover) reroute(i int32, k uint8, lid fabric.LID) {
	f := r.flowOf(i)
	r.addFlow(i, f.negative())
	r.choose(int(i), k, lid)
	r.addFlow(i, f)
}

// fits returns false if a channel on the path that begins with p, on which a hop is new, has
// too much, or too many blocks have changed.
func (r *mover) fits(p step) bool {
	ok := r.changed == nil || r.blocks >= 0
	r.follow(p, func(p step) {
		ok = ok && r.weight[p.channel] <= r.ceiling && (r.demand == nil || r.load[p.channel] <= r.most)
	})
	return ok
}

// isFree returns true for a switch over which jobs send nothing to the current LID: its next
// hop may change together with a path that leads there.
func (r *mover) isFree(i int32) bool {
	return r.demand != nil && int(i) < len(r.hops.Switches) && r.sent[i] == 0
}

// search returns the cost of the best path on from a free switch, of equal ones the present one.
func (r *mover) search(i int32, f flow, lid fabric.LID) cost {
	x := &r.found[i]
	if x.round == r.round {
		return x.cost
	}
	x.round, x.hop, x.cost = r.round, r.choice[i], r.growCost(r.path[i], f, lid, true)
	count := len(r.hops.Ports(int(i)))
	for from := range count {
		k := uint8((int(lid) + r.pass + from) % count)
		if y := r.growCost(r.step(int(i), k), f, lid, true); y.grow < x.grow || y.grow == x.grow && y.sum < x.sum {
			x.hop, x.cost = k, y
		}
	}
	return x.cost
}

// countSiblings counts the other LIDs of the same port that use the k-th next hop.
func (r *mover) countSiblings(i int, k uint8, lid fabric.LID) (n uint64) {
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

// follow calls visit with each step of the path that begins with p.
func (r *mover) follow(p step, visit func(p step)) {
	for {
		visit(p)
		if int(p.to) == len(r.hops.Switches) {
			return
		}
		p = r.path[p.to]
	}
}

// maxWeight returns the greatest weight on the path that begins with p.
func (r *mover) maxWeight(p step) (most uint64) {
	r.follow(p, func(p step) { most = max(most, r.weight[p.channel]) })
	return most
}

// addFlow adds f to the flow of the i-th switch, and to the weights and loads on its path.
func (r *mover) addFlow(i int32, f flow) {
	weight := r.weigh(f)
	add := func(i int32) {
		r.arriving[i] += f.routes
		if r.demand != nil {
			r.sent[i] += f.sent
		}
	}
	add(i)
	r.follow(r.path[i], func(p step) {
		r.weight[p.channel] += weight * r.unit[p.channel]
		if r.demand != nil {
			r.load[p.channel] += uint64(f.routes) * r.unit[p.channel]
		}
		add(p.to)
	})
}

// growCost returns the cost of flow f on the path that begins with p. If bounded, it is
// infinite if a channel would get too much, and free switches may change their next hops.
func (r *mover) growCost(p step, f flow, lid fabric.LID, bounded bool) (x cost) {
	for weight := r.weigh(f); ; p = r.path[p.to] {
		r.work++
		before, unit := r.weight[p.channel], r.unit[p.channel]
		after := before + weight*unit
		if bounded && (after > r.ceiling || r.demand != nil && r.load[p.channel]+uint64(f.routes)*unit > r.most) {
			x.grow = math.Inf(1)
			return x
		}
		x.sum += before
		x.grow += growth(before, after, r.limit)
		if int(p.to) == len(r.hops.Switches) {
			return x
		}
		if bounded && r.isFree(p.to) {
			y := r.search(p.to, f, lid)
			return cost{x.grow + y.grow, x.sum + y.sum}
		}
	}
}

// growth returns how much the square of a load's excess over a limit grows.
func growth(before, after, limit uint64) float64 {
	if after <= limit {
		return 0
	}
	a, b := float64(after-limit), float64(max(before, limit)-limit)
	return float64(a*a) - float64(b*b)
}

// BoundLoad returns a lower bound of the greatest load of any tables, in LoadUnits: for each
// switch the routes from and to its hosts, within its component of the fabric, divided among
// its channels.
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
