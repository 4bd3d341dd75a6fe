package lft

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// Demand is what hosts send where they do not all send as much to all. Amounts are in a unit of the
// caller's, and less than 1<<48 in sum.
type Demand struct {
	// To is by LID what hosts on other switches send to it, ascending by switch. LIDs beyond its end
	// get nothing.
	To [][]Flow
	// Background is what each host sends to each LID of another one besides.
	Background int64
	// Host is by PortID of both ends of a host's cable what leaves by it, the background included.
	Host []int64
	// Bytes is what an amount of 1 is.
	Bytes float64
}

// Flow is what the hosts on a switch send to a LID.
type Flow struct {
	From   fabric.NodeID
	Amount int64
}

// Fit is what fitting tables to a demand has done.
type Fit struct {
	// Before and After are the greatest loads of a channel between switches under the demand, in
	// LoadUnits, and Least is a lower bound of both.
	Before, After, Least uint64
	// Displaced says that with a slack some entries changed for LIDs that had no share in a load above
	// it, to make room.
	Displaced bool
	fitter    *fitter
}

// Undo takes the changes back. Nothing else may have changed the tables since.
func (x *Fit) Undo() { x.fitter.undoTo(0) }

// FitOptions are the choices of Incremental.Fit.
type FitOptions struct {
	// Most is the greatest load, of one route from each host to each LID, that a channel may get.
	Most uint64
	// Slack is how many times a lower bound the load under the demand may be, 1 or more: no more
	// entries change than that takes.
	Slack float64
	// Least is a lower bound that the caller knows, in amounts on the fastest channel; 0 for none.
	Least float64
	// Blocks is how many blocks of the tables may change.
	Blocks int
	// Spread also moves routes off channels below the greatest load, where that has become less. A second
	// fit would spread again: it is for tables from scratch.
	Spread bool
}

// PartBlocks is how many blocks the plugin changes at a time.
const PartBlocks = firstStepBlocks

// Changed says whether entries have changed.
func (x *Fit) Changed() bool { return len(x.fitter.taken) > 0 }

// DefaultUniformFloor is how many times its load without a demand the load of one route from each
// host to each LID may be for a demand, by default.
const DefaultUniformFloor = 1.1

const (
	// fitWork bounds the channels that a fit looks at.
	fitWork = 1 << 26
	// fitPatience is how many passes there are without a smaller greatest load, and keptPatience with a
	// slack: tables that are kept should follow the jobs soon.
	fitPatience, keptPatience = 24, 8
	// spreadPart is which part of the greatest load routes are moved above, in at most spreadPasses, the last of
	// which makes the sum of the squares smaller by less than spreadGain.
	spreadPart, spreadPasses = 4, 8
	spreadGain               = 0.01
)

// fitter moves routes for a demand. It is the scratch of one fit.
type fitter struct {
	mover
	FitOptions
	demand  *Demand
	job     []int64   // by port: what leaves by it to a switch, without the background
	none    []bool    // by LID: it is in no load
	carries [][]int32 // by LID: channels that carry what jobs send to it; nil where that is not known
	ceiling uint64    // no load may become more
	pass    int

	// Of the LID at hand:
	lid, dest, root int32
	through         []int64 // by slot: what jobs send through it; 0 between LIDs
	on              []int32 // slots with through, farthest first

	// Of a search for a path from a slot, for what jobs send through it and for its routes:
	from           int32
	amount, routes int64
	round          int32
	found          []path      // by slot
	steps          []legalStep // by switch port from the base of a slot on: where it may send for a root, by ascending port
	stepsOf        []stepsOf   // by slot
}

// legalStep is a channel that a legal path may take.
type legalStep struct{ out, to int32 }

// stepsOf says how many steps a slot has for a root.
type stepsOf struct{ root, n int32 }

// path is the best path on from a slot.
type path struct {
	round     int32   // of the search, 0 for none
	grow, sum float64 // of the squares of loads above the limit, and of loads; grow is infinite without a path
	num       fabric.PortNum
}

// Fit moves routes so that the greatest load under a demand is small: at most opt.Slack times a lower bound,
// if it finds such tables. It begins with the tables as they are, and changes no entries for LIDs without demand.
//
// The load of a channel is what jobs send over it and the background, times the ratio of the fastest
// rate to its own. Passes have a limit, as those of Balance: each goes through the LIDs with a path that
// has a channel above it. From switch after switch on such a path, the farthest first, it looks for the path where the
// squares of the loads above the limit grow least in sum, among all legal ports of the switches
// that pass on nothing else for the LID. With a slack, routes at first move only where no load comes above
// it: then entries change only for LIDs that had a share in a load above it. Where that is not enough, others
// make room.
//
// The result has no channel with more than opt.Most routes that had not before. The error is that
// of ctx; then the tables are as they were.
func (l *Incremental) Fit(ctx context.Context, d *Demand, opt FitOptions) (*Fit, error) {
	l.countChanges()
	r := l.newFitter(d, opt)
	x := &Fit{Before: r.greatest(), Least: r.leastLoad(), fitter: r}
	allowed := max(times(opt.Slack, x.Least), x.Least+x.Least/rebalanceDone)
	kept, within := 0, 0 // of taken
	if opt.Slack > 1 && x.Before > allowed {
		r.limit, r.ceiling = allowed, allowed
		for moved := -1; moved < len(r.taken) && ctx.Err() == nil; r.pass++ {
			moved = len(r.taken)
			r.movePass(ctx)
		}
		r.ceiling, kept, within = math.MaxUint64, len(r.taken), len(r.taken)
	}
	high, low := r.greatest(), allowed
	patience := fitPatience
	if opt.Slack > 1 {
		patience = keptPatience
	}
	for last := r.pass + patience; high > allowed && r.pass < last && r.work < fitWork && ctx.Err() == nil; r.pass++ {
		limit, moves := r.limit, len(r.taken)
		r.limit = max(allowed, min(low+(high-low)/2, high-high/leastStep))
		r.movePass(ctx)
		if r.limit == limit && len(r.taken) == moves { // nor would the other passes move anything
			r.pass = last
			break
		}
		now := r.greatest()
		if now > r.limit && now-r.limit > (high-r.limit)/2 { // the limit was too low
			low = r.limit
		}
		if now < high {
			high, low = now, min(allowed, now)
			kept, last = len(r.taken), r.pass+patience
		}
	}
	if ctx.Err() != nil || high == x.Before && r.changedBlocks < r.Blocks {
		kept = 0 // it would be no better for the changes
	}
	if kept < len(r.taken) {
		r.undoTo(kept)
		r.countJobs()
	}
	if opt.Spread && high < x.Before {
		r.spread(ctx, high)
	}
	if ctx.Err() != nil {
		r.undoTo(0)
	}
	x.After, x.Displaced = r.greatest(), len(r.taken) > within
	return x, ctx.Err()
}

// spread moves routes off channels that are busy, none the busiest: jobs that meet there wait for each other for a while, though
// there is room for all bytes. The greatest load stays, and the squares of the loads above a part of it shrink.
func (r *fitter) spread(ctx context.Context, greatest uint64) {
	r.limit, r.ceiling = greatest/spreadPart, greatest
	for range spreadPasses {
		before := r.squares()
		r.movePass(ctx)
		r.pass++
		if after := r.squares(); before-after < before*spreadGain || ctx.Err() != nil {
			return
		}
	}
}

// squares is the sum of the squares of the loads above the limit, in parts of it.
func (r *fitter) squares() (sum float64) {
	for out := range r.job {
		if load := r.loadOf(int32(out)); load > r.limit {
			above := float64(load-r.limit) / float64(r.limit)
			sum += float64(above * above)
		}
	}
	return sum
}

func (l *Incremental) newFitter(d *Demand, opt FitOptions) *fitter {
	n := l.index.Slots()
	r := &fitter{
		mover: mover{Incremental: l}, FitOptions: opt, demand: d, ceiling: math.MaxUint64,
		job: make([]int64, l.index.NumPorts()), none: make([]bool, len(l.now.Dest)), through: make([]int64, n), found: make([]path, n),
		carries: make([][]int32, len(l.now.Dest)), steps: make([]legalStep, l.index.NumPorts()), stepsOf: make([]stepsOf, n),
	}
	for s := range r.stepsOf {
		r.stepsOf[s].root = -1
	}
	l.peer = l.now.Peer
	for _, lid := range l.uncounted {
		r.none[lid] = true
	}
	for lid, dest := range l.now.Dest {
		r.none[lid] = r.none[lid] || lid >= len(d.To) || dest == fabric.NoDestination || !l.now.CarriesLoad(dest)
	}
	r.countJobs()
	return r
}

// countJobs finds what jobs send by each port.
func (r *fitter) countJobs() {
	clear(r.job)
	for lid := range r.none {
		if !r.begin(int32(lid)) {
			continue
		}
		for _, s := range r.on {
			r.job[r.out(s)] += r.through[s]
		}
	}
}

// begin reads what jobs send to a LID. It returns false for nothing.
func (r *fitter) begin(lid int32) bool {
	for _, s := range r.on {
		r.through[s] = 0
	}
	r.on = r.on[:0]
	if r.none[lid] || len(r.demand.To[lid]) == 0 {
		return false
	}
	r.lid, r.dest = lid, r.now.Dest[lid]
	r.root = r.index.Owner[r.dest]
	for _, x := range r.demand.To[lid] {
		s := r.now.Slot[x.From]
		if s == r.root || r.entry(s, lid) == fabric.NoPath {
			continue
		}
		r.follow(s, r.entry(s, lid), lid, r.root, func(out int32) {
			u := r.index.Owner[out]
			if r.through[u] == 0 {
				r.on = append(r.on, u)
			}
			r.through[u] += x.Amount
		})
	}
	return len(r.on) > 0
}

// loadOf is the load of a channel.
func (r *fitter) loadOf(out int32) uint64 {
	return uint64(r.job[out]+r.demand.Background*r.load[out]) * r.unit[out]
}

// greatest is the load of the busiest channel.
func (r *fitter) greatest() (most uint64) {
	for out := range r.job {
		most = max(most, r.loadOf(int32(out)))
	}
	return most
}

// leastLoad is a lower bound of what is worth an effort: that of the caller, or the load of a host's cable.
func (r *fitter) leastLoad() uint64 {
	least := r.Least * capacityUnits
	f := r.now.Fabric
	fastest := fastestRate(f)
	for p, amount := range r.demand.Host {
		load := float64(amount * capacityUnits)
		if mbps := f.Link(fabric.PortID(p)).Mbps(); mbps > 0 {
			load *= float64(fastest) / float64(mbps)
		}
		least = max(least, load)
	}
	return uint64(least)
}

// movePass goes through the LIDs once, each pass from another one on. It ends when ctx does.
func (r *fitter) movePass(ctx context.Context) {
	n := len(r.none)
	for i := range n {
		lid := int32((i + 31*r.pass) % n)
		if ctx.Err() != nil || r.work >= fitWork {
			return
		}
		if !slices.ContainsFunc(r.channels(lid), func(out int32) bool { return r.loadOf(out) > r.limit }) {
			continue
		}
		r.begin(lid)
		r.loadColumn(r.lid)
		r.sumFlows(r.dest, r.now)
		hops, _ := r.dist.distancesTo(r.root)
		slices.SortFunc(r.on, func(a, b int32) int { return cmp.Or(cmp.Compare(hops[b], hops[a]), cmp.Compare(a, b)) })
		for _, s := range slices.Clone(r.on) {
			if r.through[s] > 0 && r.maxLoad(s) > r.limit {
				r.moveFrom(s)
			}
		}
	}
}

// channels lists those that carry what jobs send to a LID.
func (r *fitter) channels(lid int32) []int32 {
	if list := r.carries[lid]; list != nil || !r.begin(lid) {
		return list
	}
	list := make([]int32, len(r.on))
	for i, s := range r.on {
		list[i] = r.out(s)
	}
	r.carries[lid] = list
	return list
}

// out is the port by which a slot sends the LID at hand.
func (r *fitter) out(s int32) int32 { return r.index.Base[s] + int32(r.entry(s, r.lid)) }

// maxLoad is the greatest load on the path from a slot.
func (r *fitter) maxLoad(s int32) (most uint64) {
	r.follow(s, r.entry(s, r.lid), r.lid, r.root, func(out int32) { most = max(most, r.loadOf(out)) })
	return most
}

// moveFrom moves what goes through a slot to the best path, if there is one within the bounds.
func (r *fitter) moveFrom(s int32) {
	before := len(r.taken)
	r.from, r.amount, r.routes = s, r.through[s], r.flow[s]
	r.shift(s, -r.amount, -r.routes)
	r.round++
	if !math.IsInf(r.search(s).grow, 1) {
		r.takePath(s)
	}
	r.shift(s, r.amount, r.routes)
	if len(r.taken) > before && !r.mayKeep(s) {
		r.shift(s, -r.amount, 0)
		r.undoTo(before)
		r.shift(s, r.amount, 0)
	}
	r.follow(s, r.entry(s, r.lid), r.lid, r.root, func(out int32) {
		if u := r.index.Owner[out]; !slices.Contains(r.on, u) {
			r.on = append(r.on, u)
		}
	})
}

// mayKeep says whether the path from a slot, whose routes have moved there, keeps within the bounds.
func (r *fitter) mayKeep(s int32) bool {
	ok := r.changedBlocks <= r.Blocks
	r.follow(s, r.entry(s, r.lid), r.lid, r.root, func(out int32) {
		ok = ok && uint64(r.load[out])*r.unit[out] <= r.Most && r.loadOf(out) <= r.ceiling
	})
	return ok
}

// shift adds to what goes over the path from a slot.
func (r *fitter) shift(s int32, amount, routes int64) {
	r.follow(s, r.entry(s, r.lid), r.lid, r.root, func(out int32) {
		r.job[out] += amount
		r.through[r.index.Owner[out]] += amount
	})
	r.addRoutes(s, r.entry(s, r.lid), r.lid, r.root, routes)
}

// takePath changes the entries on the path that search has found, the last one first.
func (r *fitter) takePath(s int32) {
	if s == r.root {
		return
	}
	num := r.found[s].num
	r.takePath(r.index.Owner[r.peer[r.index.Base[s]+int32(num)]])
	if r.entry(s, r.lid) != num {
		r.carries[r.lid] = nil
		r.take(move{slot: s, lid: r.lid, num: num, flow: r.flow[s]})
	}
}

// undoTo takes back all changes but the first ones. What jobs send by ports is not counted again.
func (r *fitter) undoTo(n int) {
	for _, m := range r.taken[n:] {
		r.carries[m.lid] = nil
	}
	r.mover.undoTo(n)
}

// search finds the best path from a slot, whose flows are in no load. Other slots with flows to the
// LID keep their port. Of equal paths it is that with the least sum of loads, then the one that is there.
func (r *fitter) search(s int32) *path {
	x := &r.found[s]
	if x.round == r.round {
		return x
	}
	now := r.entry(s, r.lid)
	*x = path{round: r.round, num: now}
	if s == r.root {
		return x
	}
	x.grow = math.Inf(1)
	steps, first := r.stepsFrom(s)
	pinned := r.through[s] > 0 && s != r.from
	for i := range steps {
		if i += first; i >= len(steps) {
			i -= len(steps)
		}
		num := fabric.PortNum(steps[i].out - r.index.Base[s])
		if pinned && num != now {
			continue
		}
		grow, sum := r.growCost(steps[i].out)
		if grow > x.grow || grow == x.grow && (sum > x.sum || math.IsInf(grow, 1)) {
			continue // the path on adds to both
		}
		beyond := r.search(steps[i].to)
		grow, sum = grow+beyond.grow, sum+beyond.sum
		if grow < x.grow || grow == x.grow && (sum < x.sum || sum == x.sum && num == now) {
			x.grow, x.sum, x.num = grow, sum, num
		}
	}
	return x
}

// stepsFrom is where a slot may send the LID at hand, and which of that is first in turn.
func (r *fitter) stepsFrom(s int32) (steps []legalStep, first int) {
	of := &r.stepsOf[s]
	ports, neighbours := r.now.SwitchLinks(s)
	steps = r.steps[r.index.Base[s]:r.index.Base[s+1]]
	if of.root != r.root {
		*of = stepsOf{root: r.root}
		for k, out := range ports {
			if r.mayStep(r.root, s, neighbours[k]) {
				steps[of.n] = legalStep{out, neighbours[k]}
				of.n++
			}
		}
	}
	if steps = steps[:of.n]; len(steps) < 2 {
		return steps, 0
	}
	turn := ports[(int(r.lid)+r.pass)%len(ports)]
	for first < len(steps)-1 && steps[first].out < turn {
		first++
	}
	if steps[first].out < turn {
		first = 0
	}
	return steps, first
}

// growCost is how much the square of the load above the limit grows by the flows at hand on a channel,
// infinite where that is not allowed; and the load then.
func (r *fitter) growCost(out int32) (grow, load float64) {
	r.work++
	before := r.loadOf(out)
	after := before + uint64(r.amount+r.demand.Background*r.routes)*r.unit[out]
	if uint64(r.load[out]+r.routes)*r.unit[out] > r.Most || after > r.ceiling {
		return math.Inf(1), 0
	}
	return growth(before, after, r.limit), float64(after)
}
