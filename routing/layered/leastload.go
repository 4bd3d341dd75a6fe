package layered

import (
	"context"
	"math"
	"slices"

	"github.com/ibweave/ibweave/lft"
)

const (
	// passWork bounds the channels that all passes of routeLeastLoaded look at together.
	// There is one pass at least, and maxPasses at most.
	passWork  = 1 << 27
	maxPasses = 4
)

// routeLeastLoaded routes LID after LID again, on the shortest paths on which the sum of
// the loads of all other LIDs is least. Routes to one LID merge: they do not contend when
// all ports send to different LIDs, since the LID's own port has room for one only. SSSP
// routes so (Hoefler, Schneider and Lumsdaine, Optimized Routing for Large-Scale InfiniBand
// Networks, HOTI 2009), but it begins without loads. This begins with the loads of all
// LIDs, on the paths in the tables or on aligned ones. Of several passes it keeps the one
// with the least sum of squared loads; rebalance then lowers the greatest load. It writes
// the paths into the tables and returns the loads by channel.
//
// Each pass takes O(LIDs x channels).
func (p *paths) routeLeastLoaded(ctx context.Context, aligned bool) (load []uint64) {
	if len(p.jobs) == 0 || len(p.to) == 0 {
		return make([]uint64, len(p.to))
	}
	w := p.newWalker()
	if aligned {
		w.alignRoutes()
	}
	load = p.countLoads()
	passes := p.countPasses()
	var (
		best  []uint64
		rows  *lft.Tables // of the best pass
		least = math.Inf(1)
	)
	for pass := range passes {
		for i := range p.jobs {
			if ctx.Err() != nil {
				return load
			}
			w.routeJob(&p.jobs[i], load)
		}
		sum := sumSquares(load)
		if sum >= least {
			continue
		}
		least = sum
		if pass == passes-1 {
			return load
		}
		best = append(best[:0], load...)
		rows = p.tables.Clone()
	}
	*p.tables = *rows
	return best
}

// sumSquares is the sum of the squares of all loads. The conversions, here and in
// rebalance.go, keep the compiler from fusing a multiplication with an addition, which
// would make the result depend on the processor.
func sumSquares(load []uint64) (sum float64) {
	for _, x := range load {
		sum += float64(float64(x) * float64(x))
	}
	return sum
}

// countPasses is how many passes routeLeastLoaded makes.
func (p *paths) countPasses() int {
	return min(max(passWork/max(1, p.numLIDs()*len(p.to)), 1), maxPasses)
}

// alignRoutes sends all LIDs from each switch by the first channel that leads nearer. On a
// torus that is along one dimension first and then along the other. So the routes from one
// port merge, too, and later passes keep much of that.
func (w *walker) alignRoutes() {
	for i := range w.jobs {
		j := &w.jobs[i]
		w.order = w.sort.FarthestFirst(w.dist.To(j.t))
		w.findNextHops(j.t, w.rank)
		for i, s := range w.order {
			row, first := w.tables.Row(s), w.port[w.nextHops(i)[0]]
			for _, lid := range j.lids {
				row[lid] = first
			}
		}
	}
}

// routeJob routes the LIDs of a job.
func (w *walker) routeJob(j *job, load []uint64) {
	w.order = w.sort.FarthestFirst(w.dist.To(j.t))
	w.findNextHops(j.t, w.rank)
	w.readJob(j)
	cost := w.cost
	cost[j.t] = 0
	for k, lid := range j.lids {
		w.addLoad(k, load, false)
		for i, s := range slices.Backward(w.order) {
			list := w.nextHops(i)
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
		w.addLoad(k, load, true)
	}
}

// addLoad adds the routes to the k-th LID of the current job to the loads, or takes them off.
func (w *walker) addLoad(k int, load []uint64, add bool) {
	for _, s := range w.order {
		w.arriving[s] = uint64(w.hosts[s])
	}
	for _, s := range w.order {
		c := w.next[int(s)*blockLIDs+k]
		n := w.arriving[s]
		if n == 0 {
			continue
		}
		w.arriving[w.to[c]] += n
		if add {
			load[c] += n * w.unit[c]
		} else {
			load[c] -= n * w.unit[c]
		}
	}
}

// countLoads counts the routes to all LIDs of CA and router ports.
func (p *paths) countLoads() []uint64 {
	load := make([]uint64, len(p.to))
	w := p.newWalker()
	for i := range p.jobs {
		j := &p.jobs[i]
		w.order = w.sort.FarthestFirst(w.dist.To(j.t))
		w.readJob(j)
		for k := range j.lids {
			w.addLoad(k, load, true)
		}
	}
	return load
}
