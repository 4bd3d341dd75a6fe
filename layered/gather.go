package layered

import (
	"context"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

const (
	// gatherWork bounds the channels that all passes of gather look at together; there
	// is one pass at least, and maxPasses at most.
	gatherWork = 1 << 27
	maxPasses  = 4
)

// gather places LID after LID again: its routes come together on the shortest paths
// on which the sum of the loads of all other LIDs is least. Where two routes to
// the same LID share a channel they do not contend when all ports send to different
// ones, since the LID's own port has room for one only. That is how SSSP
// routes (Hoefler, Schneider and Lumsdaine, Optimized Routing for Large-Scale
// InfiniBand Networks, HOTI 2009), which begins without loads; this begins with
// those of all LIDs, spread evenly. Of several passes the one with the least
// greatest load stays. The result has the loads by channel, and the paths are those
// of the tables.
//
// Each pass takes O(LIDs x channels).
func (p *paths) gather(ctx context.Context, unit []uint64) (load []uint64) {
	load = p.loads(unit)
	if len(p.jobs) == 0 || len(load) == 0 {
		return load
	}
	w := p.newWalker()
	passes := gatherWork / max(1, p.numLIDs()*len(p.to))
	passes = min(max(passes, 1), maxPasses)
	var (
		best []uint64
		kept [][]fabric.PortNum // by switch: its row after the best pass
		most = ^uint64(0)
	)
	for pass := range passes {
		for i := range p.jobs {
			if ctx.Err() != nil {
				return load
			}
			w.gather(&p.jobs[i], unit, load)
		}
		greatest := slices.Max(load)
		if greatest >= most {
			continue
		}
		most = greatest
		if pass == passes-1 {
			return load
		}
		best = append(best[:0], load...)
		if kept == nil {
			kept = make([][]fabric.PortNum, len(p.all))
		}
		for s := range kept {
			kept[s] = append(kept[s][:0], p.tables.Row(fabric.NodeID(s))...)
		}
	}
	for s, row := range kept {
		copy(p.tables.Row(fabric.NodeID(s)), row)
	}
	return best
}

// gather places the LIDs of a job.
func (w *walker) gather(j *job, unit, load []uint64) {
	w.order = w.sort.FarthestFirst(w.dist.To(j.t))
	w.candidates(j)
	w.read(j)
	cost := w.cost
	cost[j.t] = 0
	for k, lid := range j.lids {
		w.addLoad(k, unit, load, false)
		end := len(w.list)
		for i, s := range slices.Backward(w.order) {
			list := w.list[w.start[i]:end]
			end = int(w.start[i])
			from := int(uint32(lid) % uint32(len(list)))
			best := list[from]
			least := cost[w.to[best]] + load[best]
			for _, c := range list[from+1:] {
				if x := cost[w.to[c]] + load[c]; x < least {
					best, least = c, x
				}
			}
			for _, c := range list[:from] {
				if x := cost[w.to[c]] + load[c]; x < least {
					best, least = c, x
				}
			}
			cost[s] = least
			w.next[int(s)*blockLIDs+k] = best
			w.tables.Row(s)[lid] = w.port[best]
		}
		w.addLoad(k, unit, load, true)
	}
}

// candidates lists, by index in order, the channels that lead nearer.
func (w *walker) candidates(j *job) {
	dist := w.dist.To(j.t)
	w.list, w.start = w.list[:0], w.start[:0]
	for _, s := range w.order {
		w.start = append(w.start, int32(len(w.list)))
		nearer := dist[s] - 1
		for c := w.first[s]; c < w.first[s+1]; c++ {
			if dist[w.to[c]] == nearer {
				w.list = append(w.list, c)
			}
		}
	}
}

// addLoad adds the routes to the k-th LID of the job at hand to the loads, or takes them away.
func (w *walker) addLoad(k int, unit, load []uint64, add bool) {
	for _, s := range w.order {
		w.come[s] = uint64(w.hosts[s])
	}
	for _, s := range w.order {
		c := w.next[int(s)*blockLIDs+k]
		n := w.come[s]
		if n == 0 {
			continue
		}
		w.come[w.to[c]] += n
		if add {
			load[c] += n * unit[c]
		} else {
			load[c] -= n * unit[c]
		}
	}
}

// loads counts the routes to all LIDs of CA and router ports.
func (p *paths) loads(unit []uint64) []uint64 {
	load := make([]uint64, len(p.to))
	w := p.newWalker()
	for i := range p.jobs {
		j := &p.jobs[i]
		w.order = w.sort.FarthestFirst(w.dist.To(j.t))
		w.read(j)
		for k := range j.lids {
			w.addLoad(k, unit, load, true)
		}
	}
	return load
}

// units is the load of a route by channel: more on slower links.
func units(t *turns) []uint64 {
	const one = 64
	fastest := 0
	rate := make([]int, len(t.to))
	for c, s := range t.from {
		rate[c] = t.f.Link(t.f.Port(fabric.NodeID(s), t.port[c])).Mbps()
		fastest = max(fastest, rate[c])
	}
	unit := make([]uint64, len(t.to))
	for c, r := range rate {
		if unit[c] = one; r > 0 {
			unit[c] = uint64((one*fastest + r/2) / r)
		}
	}
	return unit
}
