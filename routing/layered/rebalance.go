package layered

import (
	"context"
	"slices"

	"github.com/ibweave/ibweave/fabric"

	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/updown"
)

const (
	// rebalanceWork bounds the entries that all passes of rebalance look at. There are
	// minRebalance passes at least, and maxRebalance at most. moveWork bounds the channels
	// that they weigh for moves.
	rebalanceWork = 1 << 23
	minRebalance  = 2
	maxRebalance  = 8
	moveWork      = 1 << 22
	// Passes end when the greatest load is within 1/rebalanceDone of its bound.
	rebalanceDone = 64
)

// choosePaths chooses the paths between hosts, and returns the loads by channel. If the
// order of the switches leaves shortest paths between all hosts, one layer suffices, and
// the paths make only turns of the order. If the greatest load is then above its known
// lower bound by more than 1/loadSlack, it tries other paths, and takes them if their
// greatest load is less by as much: those of an engine that spreads routes and does not
// merge them, and those that make any turns.
func (p *assigner) choosePaths(ctx context.Context, o *order, limit int, aligned bool) ([]uint64, error) {
	p.rank = nil
	if o.missing > 0 { // otherwise the order has all next hops
		p.rank = o.Rank
	}
	spread := p.tables.Clone()
	load := p.rebalance(ctx, p.routeLeastLoaded(ctx, aligned))
	if o.missing < 0 || len(load) == 0 {
		return load, ctx.Err()
	}
	fine := func(other []uint64) bool { // load is hardly greater than other
		few := slices.Max(other)
		return slices.Max(load) <= few+few/loadSlack
	}
	if fine([]uint64{p.boundMaxLoad()}) {
		return load, ctx.Err()
	}
	best := p.tables.Clone()
	if o.missing == 0 {
		*p.tables = *spread
	} else {
		tables, err := p.upDownTables(ctx)
		if err != nil {
			return nil, err
		}
		p.adoptTables(tables)
	}
	if other := p.rebalance(ctx, p.countLoads()); !fine(other) {
		load = other
		best = p.tables.Clone()
	}
	if o.missing > 0 && limit > 1 {
		p.rank = nil
		if other := p.rebalance(ctx, p.routeLeastLoaded(ctx, aligned)); !fine(other) {
			return other, ctx.Err()
		}
		p.rank = o.Rank
	}
	*p.tables = *best
	return load, ctx.Err()
}

// upDownTables is the tables of updn with the same order. The first layer has their paths.
func (p *assigner) upDownTables(ctx context.Context) (*lft.Tables, error) {
	if p.updnTables == nil {
		u, err := updown.Engine{}.Route(ctx, p.f, p.opt)
		if err != nil {
			return nil, err
		}
		p.updnTables = u.Tables
	}
	return p.updnTables, nil
}

// adoptTables copies the entries of other tables that lead to a next hop.
func (p *paths) adoptTables(tables *lft.Tables) {
	w := p.newWalker()
	for i := range p.jobs {
		j := &p.jobs[i]
		w.order = w.sort.FarthestFirst(p.dist.To(j.t))
		w.findNextHops(j.t, p.rank)
		for k, s := range w.order {
			list, from, row := w.nextHops(k), tables.Row(s), p.tables.Row(s)
			for _, lid := range j.lids {
				if slices.Contains(list, p.channel[p.f.PortBase(s)+fabric.PortID(from[lid])]) {
					row[lid] = from[lid]
				}
			}
		}
	}
}

// rebalance takes routes off the busiest channels. Each pass has a limit, half way between
// the greatest load and its known lower bound, and goes through the LIDs with a path that
// has a channel above the limit. Switch after switch, the farthest first, it moves the
// routes on such paths to where the squares of the loads above the limit grow least in sum.
// All other routes stay, so that routes to a LID still merge. It writes the paths of the
// best pass into the tables and returns their loads.
//
// Each pass takes O(LIDs x switches), and for the LIDs that it moves O(channels x hops), up
// to moveWork in all.
func (p *paths) rebalance(ctx context.Context, load []uint64) []uint64 {
	if len(p.jobs) == 0 || len(load) == 0 {
		return load
	}
	high := slices.Max(load)
	low := min(p.boundMaxLoad(), high)
	passes := rebalanceWork / max(1, p.numLIDs()*len(p.all))
	passes = min(max(passes, minRebalance), maxRebalance)
	w := p.newWalker()
	best := load
	var rows *lft.Tables
	for range passes {
		if ctx.Err() != nil || high <= low+low/rebalanceDone || w.work > moveWork {
			break
		}
		if rows == nil {
			rows, load = p.tables.Clone(), slices.Clone(load)
		}
		limit := low + (high-low)/2
		busy := p.findBusyLIDs(ctx, load, limit)
		for i := range p.jobs {
			if slices.ContainsFunc(p.jobs[i].lids, func(l fabric.LID) bool { return busy[l] }) {
				w.rebalanceJob(&p.jobs[i], load, limit, busy)
			}
		}
		most := slices.Max(load)
		if most > limit && most-limit > (high-limit)/2 { // the limit was too low
			low = limit
		}
		if most < high {
			high = most
			copy(best, load)
			rows = p.tables.Clone()
		}
	}
	if rows != nil {
		*p.tables = *rows
	}
	return best
}

// boundMaxLoad is a lower bound of the greatest load: the routes from and to the hosts of
// each switch, in its component of the fabric, divided among its channels.
func (p *paths) boundMaxLoad() (most uint64) {
	const one = 1 << 30
	lids := make([]uint64, len(p.all))
	for i := range p.jobs {
		lids[p.jobs[i].t] += uint64(len(p.jobs[i].lids))
	}
	components := p.f.Components()
	lidsOf := make([]uint64, len(components.List))
	for s, c := range components.Of {
		lidsOf[c] += lids[s]
	}
	for s, h := range p.hosts {
		c := components.Of[s]
		hosts, all := uint64(components.List[c].Ports), lidsOf[c]
		var room uint64
		for _, u := range p.unit[p.first[s]:p.first[s+1]] {
			room += one / u
		}
		if room > 0 {
			most = max(most, lids[s]*(hosts-uint64(h))*one/room, uint64(h)*(all-lids[s])*one/room)
		}
	}
	return most
}

// findBusyLIDs marks the LIDs with a path from a host that has a channel above the limit.
func (p *paths) findBusyLIDs(ctx context.Context, load []uint64, limit uint64) []bool {
	list := make([]bool, len(p.upDownOnly))
	forEach(ctx, 0, len(p.jobs), p.newWalker, func(w *walker, i int) {
		j := &p.jobs[i]
		w.order = w.sort.FarthestFirst(w.dist.To(j.t))
		w.readJob(j)
		for k, lid := range j.lids {
			list[lid] = w.findBusy(j.t, k, load, limit)
		}
	})
	return list
}

// findBusy marks the switches whose path to the k-th LID of t has a channel above the limit,
// and says whether any of them has hosts.
func (w *walker) findBusy(t fabric.NodeID, k int, load []uint64, limit uint64) (any bool) {
	w.busy[t] = false
	for _, s := range slices.Backward(w.order) {
		c := w.next[int(s)*blockLIDs+k]
		w.busy[s] = load[c] > limit || w.busy[w.to[c]]
		any = any || w.busy[s] && w.hosts[s] > 0
	}
	return any
}

// rebalanceJob moves the routes to the LIDs of a job that are busy.
func (w *walker) rebalanceJob(j *job, load []uint64, limit uint64, busy []bool) {
	w.order = w.sort.FarthestFirst(w.dist.To(j.t))
	w.findNextHops(j.t, w.rank)
	w.readJob(j)
	for k, lid := range j.lids {
		if !busy[lid] || w.work > moveWork || !w.findBusy(j.t, k, load, limit) {
			continue
		}
		for _, s := range w.order {
			w.arriving[s] = uint64(w.hosts[s])
		}
		for i, s := range w.order {
			n := w.arriving[s]
			if n == 0 {
				continue
			}
			c := w.next[int(s)*blockLIDs+k]
			if list := w.nextHops(i); len(list) > 1 && w.busy[s] && w.maxLoad(j.t, k, c, load) > limit {
				c = w.moveRoutes(j.t, k, c, n, list, int(uint32(lid)%uint32(len(list))), load, limit)
				w.next[int(s)*blockLIDs+k] = c
				w.tables.Row(s)[lid] = w.port[c]
			}
			w.arriving[w.to[c]] += n
		}
	}
}

// moveRoutes moves the n routes to the k-th LID of t from channel c to the best channel of
// list: where the cost grows least, then by the least sum of loads, then c, then the first
// from start on.
func (w *walker) moveRoutes(t fabric.NodeID, k int, c int32, n uint64, list []int32, start int, load []uint64, limit uint64) int32 {
	w.shiftRoutes(t, k, c, -n, load)
	w.work += len(list) * int(w.dist.To(t)[w.to[c]]+1)
	best := c
	least, sum := w.growCost(t, k, c, n, load, limit)
	for i := range list {
		if i += start; i >= len(list) {
			i -= len(list)
		}
		if x, y := w.growCost(t, k, list[i], n, load, limit); x < least || x == least && y < sum {
			best, least, sum = list[i], x, y
		}
	}
	w.shiftRoutes(t, k, best, n, load)
	return best
}

// maxLoad is the greatest load on the path by channel c to the k-th LID of t.
func (w *walker) maxLoad(t fabric.NodeID, k int, c int32, load []uint64) uint64 {
	most := load[c]
	for w.to[c] != int32(t) {
		c = w.next[int(w.to[c])*blockLIDs+k]
		most = max(most, load[c])
	}
	return most
}

// shiftRoutes adds n routes to the loads on the path by channel c to the k-th LID of t, or
// takes them off when given -n.
func (w *walker) shiftRoutes(t fabric.NodeID, k int, c int32, n uint64, load []uint64) {
	load[c] += n * w.unit[c]
	for w.to[c] != int32(t) {
		c = w.next[int(w.to[c])*blockLIDs+k]
		load[c] += n * w.unit[c]
	}
}

// growCost is how much the squares of the loads above the limit grow by n more routes on the
// path by channel c to the k-th LID of t, and the sum of the loads on that path now.
func (w *walker) growCost(t fabric.NodeID, k int, c int32, n uint64, load []uint64, limit uint64) (grow float64, sum uint64) {
	for {
		before := load[c]
		after := before + n*w.unit[c]
		sum += before
		if after > limit {
			a := float64(after - limit)
			b := float64(max(before, limit) - limit)
			grow += float64(a*a) - float64(b*b)
		}
		if w.to[c] == int32(t) {
			return grow, sum
		}
		c = w.next[int(w.to[c])*blockLIDs+k]
	}
}
