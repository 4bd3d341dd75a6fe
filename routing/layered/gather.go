package layered

import (
	"context"
	"math"
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
// InfiniBand Networks, HOTI 2009), which begins without loads; this begins with those of
// all LIDs: of the paths in the tables, or of aligned ones. Of several passes the one after
// which loads differ least stays, by the sum of their squares: the greatest is what relieve is
// for. The result has the loads by channel, and the paths are those of the tables.
//
// Each pass takes O(LIDs x channels).
func (p *paths) gather(ctx context.Context, aligned bool) (load []uint64) {
	if len(p.jobs) == 0 || len(p.to) == 0 {
		return make([]uint64, len(p.to))
	}
	w := p.newWalker()
	if aligned {
		w.align()
	}
	load = p.loads()
	passes := p.passes()
	var (
		best  []uint64
		rows  snapshot // of the best pass
		least = math.Inf(1)
	)
	for pass := range passes {
		for i := range p.jobs {
			if ctx.Err() != nil {
				return load
			}
			w.gather(&p.jobs[i], load)
		}
		sum := squares(load)
		if sum >= least {
			continue
		}
		least = sum
		if pass == passes-1 {
			return load
		}
		best = append(best[:0], load...)
		rows.save(p)
	}
	rows.restore(p)
	return best
}

// squares is the sum of the squares of all loads. The conversions, here and in
// relieve.go, keep the compiler from fusing a multiplication with an addition, which
// would make the result depend on the processor.
func squares(load []uint64) (sum float64) {
	for _, x := range load {
		sum += float64(float64(x) * float64(x))
	}
	return sum
}

// passes is how many passes gather makes.
func (p *paths) passes() int {
	return min(max(gatherWork/max(1, p.numLIDs()*len(p.to)), 1), maxPasses)
}

// align has all LIDs leave each switch by the first channel that leads nearer. On a torus
// that is along one dimension first and then along the other: the routes from a port, too, come
// together, and much of that stays.
func (w *walker) align() {
	for i := range w.jobs {
		j := &w.jobs[i]
		w.order = w.sort.FarthestFirst(w.dist.To(j.t))
		w.candidates(j.t, w.rank)
		for i, s := range w.order {
			row, first := w.tables.Row(s), w.port[w.choices(i)[0]]
			for _, lid := range j.lids {
				row[lid] = first
			}
		}
	}
}

// gather places the LIDs of a job.
func (w *walker) gather(j *job, load []uint64) {
	w.order = w.sort.FarthestFirst(w.dist.To(j.t))
	w.candidates(j.t, w.rank)
	w.read(j)
	cost := w.cost
	cost[j.t] = 0
	for k, lid := range j.lids {
		w.addLoad(k, load, false)
		for i, s := range slices.Backward(w.order) {
			list := w.choices(i)
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

// addLoad adds the routes to the k-th LID of the job at hand to the loads, or takes them away.
func (w *walker) addLoad(k int, load []uint64, add bool) {
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
			load[c] += n * w.unit[c]
		} else {
			load[c] -= n * w.unit[c]
		}
	}
}

// loads counts the routes to all LIDs of CA and router ports.
func (p *paths) loads() []uint64 {
	load := make([]uint64, len(p.to))
	w := p.newWalker()
	for i := range p.jobs {
		j := &p.jobs[i]
		w.order = w.sort.FarthestFirst(w.dist.To(j.t))
		w.read(j)
		for k := range j.lids {
			w.addLoad(k, load, true)
		}
	}
	return load
}

// findUnits finds what a route adds to the load of each channel: more on slower links.
func (t *turns) findUnits() {
	const one = 64
	fastest := 0
	rate := make([]int, len(t.to))
	for c, s := range t.from {
		rate[c] = t.f.Link(t.f.Port(fabric.NodeID(s), t.port[c])).Mbps()
		fastest = max(fastest, rate[c])
	}
	t.unit = make([]uint64, len(t.to))
	for c, r := range rate {
		if t.unit[c] = one; r > 0 {
			t.unit[c] = uint64((one*fastest + r/2) / r)
		}
	}
}
