package layered

import (
	"context"
	"errors"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/lft"
)

// blockLIDs is how many LIDs of one destination switch walkers follow at a time.
const blockLIDs = 64

// job is a destination switch and at most blockLIDs LIDs of end ports on it.
type job struct {
	t    fabric.NodeID
	lids []fabric.LID
}

// paths is the paths to the LIDs of CA and router ports: for each LID a tree, with one
// channel of each switch.
type paths struct {
	*turns
	tables     *lft.Tables
	dist       *fabric.HopMatrix
	hosts      []uint32        // by switch: CA and router ports on it
	all        []fabric.NodeID // all switches
	jobs       []job
	management []job        // the LIDs of switches without hosts
	sameAs     []fabric.LID // by LID: the LID on the same switch whose paths it takes; 0 for none
	detoured   []bool       // by LID: some steps of its paths do not lead nearer
	upDownOnly []bool       // by LID: its paths are up*/down*, in the first layer
}

func newPaths(t *turns) *paths {
	f := t.f
	lids := int(f.MaxLID()) + 1
	p := &paths{
		turns: t, dist: f.Distances(), hosts: make([]uint32, f.NumSwitches()), all: f.Switches(),
		upDownOnly: make([]bool, lids), detoured: make([]bool, lids),
	}
	for _, s := range p.all {
		hosts := f.HostsOn(s)
		p.hosts[s] = uint32(len(hosts))
		var list []fabric.LID
		for _, port := range hosts {
			list = slices.AppendSeq(list, f.LIDs(port))
		}
		slices.Sort(list)
		for part := range slices.Chunk(list, blockLIDs) {
			p.jobs = append(p.jobs, job{s, part})
		}
	}
	return p
}

// numLIDs counts the LIDs of CA and router ports.
func (p *paths) numLIDs() (n int) {
	for i := range p.jobs {
		n += len(p.jobs[i].lids)
	}
	return n
}

// addLoad adds the routes to the k-th LID of the current job to load, or takes them off.
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

// countLoads counts the routes on each channel to all LIDs of CA and router ports, which
// must take shortest paths.
func (p *paths) countLoads() []uint64 {
	load := make([]uint64, len(p.to))
	w := p.newWalker()
	for i := range p.jobs {
		j := &p.jobs[i]
		w.order = w.sort.FarthestFirst(p.dist.To(j.t))
		w.readJob(j)
		for k := range j.lids {
			w.addLoad(k, load, true)
		}
	}
	return load
}

func (p *paths) greatestLoad() uint64 { return slices.Max(append(p.countLoads(), 0)) }

// walker follows the paths of one job at a time.
type walker struct {
	*paths
	sort     *lft.ByDistance
	order    []fabric.NodeID // farthest first
	next     []int32         // by switch and LID: its channel
	layersOf []uint16        // by switch and LID: the layers that have the whole path
	flow     []uint32        // by switch and LID: sources whose paths pass it
	arriving []uint64        // by switch: routes to one LID that pass it
}

func (p *paths) newWalker() *walker {
	n := len(p.all) * blockLIDs
	return &walker{paths: p, sort: lft.NewByDistance(p.all), next: make([]int32, n), layersOf: make([]uint16, n), flow: make([]uint32, n), arriving: make([]uint64, len(p.all))}
}

// readJob reads the channels of a job's paths from the tables, for the switches in order.
func (w *walker) readJob(j *job) {
	for _, s := range w.order {
		row := w.tables.Row(s)
		base := w.f.PortBase(s)
		next := w.next[int(s)*blockLIDs:][:len(j.lids)]
		for k, lid := range j.lids {
			next[k] = w.channel[base+fabric.PortID(row[lid])]
		}
	}
}

// loadJob reads the paths of a job, and finds the layers of the set all that have
// them.
func (w *walker) loadJob(j *job, set []uint16, all uint16) {
	w.order = w.sort.FarthestFirst(w.dist.To(j.t))
	w.readJob(j)
	root := int32(j.t)
	for _, s := range slices.Backward(w.order) {
		next := w.next[int(s)*blockLIDs:][:len(j.lids)]
		layers := w.layersOf[int(s)*blockLIDs:][:len(j.lids)]
		for k := range j.lids {
			c := next[k]
			layers[k] = all
			if v := w.to[c]; v != root {
				at := int(v)*blockLIDs + k
				layers[k] = w.layersOf[at] & set[w.turnFrom(c, w.next[at])]
			}
		}
	}
}

// weighTurns adds to each turn's weight the sources whose paths make it. It counts
// only paths without a layer in the set done and, unless the set in is 0, with a
// layer in that. It returns the number of their sources.
func (w *walker) weighTurns(j *job, weight []uint32, done, in uint16) (sources uint64) {
	for _, s := range w.order {
		clear(w.flow[int(s)*blockLIDs:][:len(j.lids)])
	}
	root := int32(j.t)
	for _, s := range w.order {
		at := int(s) * blockLIDs
		for k, lid := range j.lids {
			flow := w.flow[at+k]
			if layers := w.layersOf[at+k]; layers&done == 0 && (in == 0 || layers&in != 0) && !w.upDownOnly[lid] {
				flow += w.hosts[s]
				sources += uint64(w.hosts[s])
			}
			c := w.next[at+k]
			if v := w.to[c]; flow > 0 && v != root {
				to := int(v)*blockLIDs + k
				w.flow[to] += flow
				weight[w.turnFrom(c, w.next[to])] += flow
			}
		}
	}
	return sources
}

// sumWeights sums weighTurns over all jobs.
func (p *paths) sumWeights(ctx context.Context, set []uint16, done, in uint16) (weight []uint32, sources uint64) {
	type weigher struct {
		*walker
		weight  []uint32
		sources uint64
	}
	start := func() *weigher { return &weigher{walker: p.newWalker(), weight: make([]uint32, p.countTurns())} }
	all := forEach(ctx, len(p.jobs), start, func(w *weigher, i int) {
		w.loadJob(&p.jobs[i], set, done|in)
		w.sources += w.weighTurns(&p.jobs[i], w.weight, done, in)
	})
	weight = all[0].weight
	for _, w := range all[1:] {
		for e, n := range w.weight {
			weight[e] += n
		}
	}
	for _, w := range all {
		sources += w.sources
	}
	return weight, sources
}

// forEach is par.ForEachWith for work without errors. If ctx ends, work is left undone,
// and the engine returns ctx's error.
func forEach[W any](ctx context.Context, n int, start func() W, do func(w W, i int)) []W {
	list, err := par.ForEachWith(ctx, 0, n, start, func(w W, i int) error {
		do(w, i)
		return nil
	})
	if p := new(par.Panic); errors.As(err, &p) {
		panic(p)
	}
	return list
}
