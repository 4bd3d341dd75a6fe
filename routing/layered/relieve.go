package layered

import (
	"context"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/updown"
)

const (
	// relieveWork bounds the entries that all passes of relieve look at, as far as
	// minRelief allows, and maxRelief bounds the passes. moveWork bounds the channels
	// that they weigh for moves.
	relieveWork = 1 << 23
	minRelief   = 2
	maxRelief   = 8
	moveWork    = 1 << 22
	// reliefDone is how near the greatest load comes to its bound before passes end: one
	// part in so many.
	reliefDone = 64
)

// place makes the paths between hosts, and gives the loads by channel. Where the order of
// the switches leaves shortest paths between all of them, so that one layer suffices, the paths
// make its turns alone. When the greatest load is then above what is known to be its bound
// by more than one part in loadSlack, so that something better may be had, other paths
// are tried, and taken when theirs is less by as much: those of an engine that spreads routes
// and has them come together nowhere, and those that make any turns.
func (p *packer) place(ctx context.Context, o *order, limit int, aligned bool) ([]uint64, error) {
	p.rank = nil
	if o.lost > 0 { // where none are, all ways are the order's
		p.rank = o.Rank
	}
	var spread, best snapshot
	if o.lost == 0 {
		spread.save(p.paths)
	}
	load := p.relieve(ctx, p.gather(ctx, aligned))
	if o.lost < 0 || len(load) == 0 {
		return load, ctx.Err()
	}
	fine := func(other []uint64) bool { // as it is
		few := slices.Max(other)
		return slices.Max(load) <= few+few/loadSlack
	}
	if fine([]uint64{p.leastMost()}) {
		return load, ctx.Err()
	}
	best.save(p.paths)
	if o.lost == 0 {
		spread.restore(p.paths)
	} else {
		tables, err := p.upDown(ctx)
		if err != nil {
			return nil, err
		}
		p.adopt(tables)
	}
	if other := p.relieve(ctx, p.loads()); !fine(other) {
		load = other
		best.save(p.paths)
	}
	if o.lost > 0 && limit > 1 {
		p.rank = nil
		if other := p.relieve(ctx, p.gather(ctx, aligned)); !fine(other) {
			return other, ctx.Err()
		}
		p.rank = o.Rank
	}
	best.restore(p.paths)
	return load, ctx.Err()
}

// upDown is the tables of updn with the same order, whose paths the first layer has.
func (p *packer) upDown(ctx context.Context) (*lft.Tables, error) {
	if p.instead == nil {
		u, err := updown.Engine{}.Route(ctx, p.f, p.opt)
		if err != nil {
			return nil, err
		}
		p.instead = u.Tables
	}
	return p.instead, nil
}

// adopt takes the entries of other tables that lead nearer, by turns of the order alone where
// the paths make no others.
func (p *paths) adopt(tables *lft.Tables) {
	w := p.newWalker()
	for i := range p.jobs {
		j := &p.jobs[i]
		w.order = w.sort.FarthestFirst(p.dist.To(j.t))
		w.candidates(j.t, p.rank)
		for k, s := range w.order {
			list, from, row := w.choices(k), tables.Row(s), p.tables.Row(s)
			for _, lid := range j.lids {
				if slices.Contains(list, p.channel[p.f.PortBase(s)+fabric.PortID(from[lid])]) {
					row[lid] = from[lid]
				}
			}
		}
	}
}

// snapshot is the rows of all tables, by switch.
type snapshot [][]fabric.PortNum

func (x *snapshot) save(p *paths) {
	if *x == nil {
		*x = make(snapshot, len(p.all))
	}
	for s := range *x {
		(*x)[s] = append((*x)[s][:0], p.tables.Row(fabric.NodeID(s))...)
	}
}

func (x snapshot) restore(p *paths) {
	for s, row := range x {
		copy(p.tables.Row(fabric.NodeID(s)), row)
	}
}

// relieve takes routes off the busiest channels. Each pass has a limit, half way between the
// greatest load and the least that it can be as far as is known, and goes through the LIDs with
// a path that has a channel above it: switch after switch, the farthest first, moves what it
// sends by such a path to where the squares of the loads, as far as they are above the limit,
// grow least in sum. All else stays, so that routes to a LID still come together. It gives the
// loads after the best pass, and the paths are those of the tables.
//
// Each pass takes O(LIDs x switches), and for the LIDs that it moves O(channels x hops), up
// to moveWork in all.
func (p *paths) relieve(ctx context.Context, load []uint64) []uint64 {
	if len(p.jobs) == 0 || len(load) == 0 {
		return load
	}
	high := slices.Max(load)
	low := min(p.leastMost(), high)
	passes := relieveWork / max(1, p.numLIDs()*len(p.all))
	passes = min(max(passes, minRelief), maxRelief)
	w := p.newWalker()
	best := load
	var rows snapshot
	for range passes {
		if ctx.Err() != nil || high <= low+low/reliefDone || w.work > moveWork {
			break
		}
		if rows == nil {
			rows.save(p)
			load = slices.Clone(load)
		}
		limit := low + (high-low)/2
		busy := p.busyLIDs(ctx, load, limit)
		for i := range p.jobs {
			if slices.ContainsFunc(p.jobs[i].lids, func(l fabric.LID) bool { return busy[l] }) {
				w.relieve(&p.jobs[i], load, limit, busy)
			}
		}
		most := slices.Max(load)
		if most > limit && most-limit > (high-limit)/2 { // no use to try so low again
			low = limit
		}
		if most < high {
			high = most
			copy(best, load)
			rows.save(p)
		}
	}
	rows.restore(p)
	return best
}

// leastMost is a bound from below of the greatest load, by what comes from and goes to the
// hosts of each switch in its connected part of the fabric.
func (p *paths) leastMost() (most uint64) {
	const one = 1 << 30
	lids := make([]uint64, len(p.all))
	for i := range p.jobs {
		lids[p.jobs[i].t] += uint64(len(p.jobs[i].lids))
	}
	part := make([]int, len(p.all)) // 1 + its first switch
	hostsOf, lidsOf := make([]uint64, len(p.all)), make([]uint64, len(p.all))
	for first := range part {
		if part[first] > 0 {
			continue
		}
		for s, d := range p.dist.To(fabric.NodeID(first)) {
			if d != fabric.Unreachable {
				part[s] = 1 + first
				hostsOf[first] += uint64(p.hosts[s])
				lidsOf[first] += lids[s]
			}
		}
	}
	for s, h := range p.hosts {
		hosts, all := hostsOf[part[s]-1], lidsOf[part[s]-1]
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

// busyLIDs marks the LIDs with a path from a host that has a channel above the limit.
func (p *paths) busyLIDs(ctx context.Context, load []uint64, limit uint64) []bool {
	list := make([]bool, len(p.fixed))
	forEach(ctx, 0, len(p.jobs), p.newWalker, func(w *walker, i int) {
		j := &p.jobs[i]
		w.order = w.sort.FarthestFirst(w.dist.To(j.t))
		w.read(j)
		for k, lid := range j.lids {
			list[lid] = w.findBusy(j.t, k, load, limit)
		}
	})
	return list
}

// findBusy finds the switches whose path to the k-th LID of t has a channel above the limit,
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

// relieve moves the routes to the LIDs of a job that are busy.
func (w *walker) relieve(j *job, load []uint64, limit uint64, busy []bool) {
	w.order = w.sort.FarthestFirst(w.dist.To(j.t))
	w.candidates(j.t, w.rank)
	w.read(j)
	for k, lid := range j.lids {
		if !busy[lid] || w.work > moveWork || !w.findBusy(j.t, k, load, limit) {
			continue
		}
		for _, s := range w.order {
			w.come[s] = uint64(w.hosts[s])
		}
		for i, s := range w.order {
			n := w.come[s]
			if n == 0 {
				continue
			}
			c := w.next[int(s)*blockLIDs+k]
			if list := w.choices(i); len(list) > 1 && w.busy[s] && w.most(j.t, k, c, load) > limit {
				c = w.move(j.t, k, c, n, list, int(uint32(lid)%uint32(len(list))), load, limit)
				w.next[int(s)*blockLIDs+k] = c
				w.tables.Row(s)[lid] = w.port[c]
			}
			w.come[w.to[c]] += n
		}
	}
}

// move sends the n routes to the k-th LID of t that channel c has by the best of the channels
// in list: where the growth is least, then the sum of loads, then c, then the first from start
// on.
func (w *walker) move(t fabric.NodeID, k int, c int32, n uint64, list []int32, start int, load []uint64, limit uint64) int32 {
	w.shift(t, k, c, -n, load)
	w.work += len(list) * int(w.dist.To(t)[w.to[c]]+1)
	best := c
	least, sum := w.growth(t, k, c, n, load, limit)
	for i := range list {
		if i += start; i >= len(list) {
			i -= len(list)
		}
		if x, y := w.growth(t, k, list[i], n, load, limit); x < least || x == least && y < sum {
			best, least, sum = list[i], x, y
		}
	}
	w.shift(t, k, best, n, load)
	return best
}

// most is the greatest load on the way by channel c to the k-th LID of t.
func (w *walker) most(t fabric.NodeID, k int, c int32, load []uint64) uint64 {
	most := load[c]
	for w.to[c] != int32(t) {
		c = w.next[int(w.to[c])*blockLIDs+k]
		most = max(most, load[c])
	}
	return most
}

// shift adds n routes on the way by channel c to the k-th LID of t, or takes them away when
// given -n.
func (w *walker) shift(t fabric.NodeID, k int, c int32, n uint64, load []uint64) {
	load[c] += n * w.unit[c]
	for w.to[c] != int32(t) {
		c = w.next[int(w.to[c])*blockLIDs+k]
		load[c] += n * w.unit[c]
	}
}

// growth is by how much n more routes on the way by channel c to the k-th LID of t make the
// squares of the loads grow, as far as these are above the limit, and the sum of the loads on
// that way now.
func (w *walker) growth(t fabric.NodeID, k int, c int32, n uint64, load []uint64, limit uint64) (grow float64, sum uint64) {
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
