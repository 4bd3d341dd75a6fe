package layered

import (
	"context"
	"errors"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/lft"
)

// blockLIDs is how many LIDs of one destination switch are followed at a time.
const blockLIDs = 64

// job is a destination switch and at most blockLIDs LIDs of end ports on it.
type job struct {
	t    fabric.NodeID
	lids []fabric.LID
}

// paths is the paths to the LIDs of CA and router ports: to each LID a tree of
// channels, of which each switch has one.
type paths struct {
	*turns
	tables *lft.Tables
	dist   *fabric.HopMatrix
	hosts  []uint32        // by switch: CA and router ports on it
	all    []fabric.NodeID // all switches
	jobs   []job
	own    []job        // the LIDs of switches without hosts
	alike  []fabric.LID // by LID of a switch with hosts: the LID of a host with the same paths, 0 for others
	bent   []bool       // by LID: some paths lead to switches that are not nearer
	fixed  []bool       // by LID: its paths are up*/down* and have the first layer
	rank   []int32      // by switch: in the order whose turns alone are made, nil for any turns
}

func newPaths(t *turns, tables *lft.Tables) *paths {
	f := t.f
	n := f.NumSwitches()
	p := &paths{turns: t, tables: tables, dist: f.Distances(), hosts: make([]uint32, n), all: make([]fabric.NodeID, n), fixed: make([]bool, int(f.MaxLID())+1), bent: make([]bool, int(f.MaxLID())+1)}
	for s := range p.all {
		p.all[s] = fabric.NodeID(s)
	}
	for s := range p.all {
		hosts := f.HostsOn(fabric.NodeID(s))
		p.hosts[s] = uint32(len(hosts))
		var list []fabric.LID
		for _, port := range hosts {
			if base := f.LID(port); base != 0 {
				for k := range fabric.LID(1) << f.LMC(port) {
					list = append(list, base+k)
				}
			}
		}
		slices.Sort(list)
		for part := range slices.Chunk(list, blockLIDs) {
			p.jobs = append(p.jobs, job{fabric.NodeID(s), part})
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

// walker follows the paths of one job at a time.
type walker struct {
	*paths
	sort  *lft.ByDistance
	order []fabric.NodeID // farthest first
	next  []int32         // by switch and LID: its channel
	legal []uint16        // by switch and LID: the layers that have all turns of the path
	flow  []uint32        // by switch and LID: sources that come through
	come  []uint64        // by switch: the same for one LID
	cost  []uint64        // by switch: of the way to a LID
	list  []int32         // channels that lead nearer
	start []int32         // by index in order: the end of its part of list, the next one's end being its begin
	way   []way           // by switch
	busy  []bool          // by switch: scratch of ways and relieve
	work  int             // channels that relieve has weighed
}

func (p *paths) newWalker() *walker {
	n := len(p.all) * blockLIDs
	return &walker{paths: p, sort: lft.NewByDistance(p.all), next: make([]int32, n), legal: make([]uint16, n), flow: make([]uint32, n), come: make([]uint64, len(p.all)), cost: make([]uint64, len(p.all)), way: make([]way, len(p.all)), busy: make([]bool, len(p.all))}
}

// read takes the channels of a job's paths out of the tables, for the switches in
// order.
func (w *walker) read(j *job) {
	for _, s := range w.order {
		row := w.tables.Row(s)
		base := w.f.PortBase(s)
		next := w.next[int(s)*blockLIDs:][:len(j.lids)]
		for k, lid := range j.lids {
			next[k] = w.channel[base+fabric.PortID(row[lid])]
		}
	}
}

// load reads the paths of a job, and what layers they have of those in all.
func (w *walker) load(j *job, set []uint16, all uint16) {
	w.order = w.sort.FarthestFirst(w.dist.To(j.t))
	w.read(j)
	w.judge(j, set, all)
}

// judge is the part of load after reading.
func (w *walker) judge(j *job, set []uint16, all uint16) {
	root := int32(j.t)
	for _, s := range slices.Backward(w.order) {
		next := w.next[int(s)*blockLIDs:][:len(j.lids)]
		legal := w.legal[int(s)*blockLIDs:][:len(j.lids)]
		for k := range j.lids {
			c := next[k]
			legal[k] = all
			if v := w.to[c]; v != root {
				at := int(v)*blockLIDs + k
				legal[k] = w.legal[at] & set[w.of(c, w.next[at])]
			}
		}
	}
}

// weigh adds to each turn the sources whose paths make it, of those that no layer
// of done has, and, unless in is 0, that a layer of in has. It returns how many
// these are.
func (w *walker) weigh(j *job, weight []uint32, done, in uint16) (sources uint64) {
	for _, s := range w.order {
		clear(w.flow[int(s)*blockLIDs:][:len(j.lids)])
	}
	root := int32(j.t)
	for _, s := range w.order {
		at := int(s) * blockLIDs
		for k, lid := range j.lids {
			flow := w.flow[at+k]
			if legal := w.legal[at+k]; legal&done == 0 && (in == 0 || legal&in != 0) && !w.fixed[lid] {
				flow += w.hosts[s]
				sources += uint64(w.hosts[s])
			}
			c := w.next[at+k]
			if v := w.to[c]; flow > 0 && v != root {
				to := int(v)*blockLIDs + k
				w.flow[to] += flow
				weight[w.of(c, w.next[to])] += flow
			}
		}
	}
	return sources
}

// weights is weigh for all jobs, on so many workers, 0 for all CPUs.
func (p *paths) weights(ctx context.Context, set []uint16, done, in uint16, workers int) (weight []uint32, sources uint64) {
	type weigher struct {
		*walker
		weight  []uint32
		sources uint64
	}
	start := func() *weigher { return &weigher{walker: p.newWalker(), weight: make([]uint32, p.count())} }
	all := forEach(ctx, workers, len(p.jobs), start, func(w *weigher, i int) {
		w.load(&p.jobs[i], set, done|in)
		w.sources += w.weigh(&p.jobs[i], w.weight, done, in)
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

// forEach is par.ForEachWith for work that cannot fail. At the end of ctx some work is
// not done, and the engine returns the error of ctx.
func forEach[W any](ctx context.Context, workers, n int, start func() W, do func(w W, i int)) []W {
	list, err := par.ForEachWith(ctx, workers, n, start, func(w W, i int) error {
		do(w, i)
		return nil
	})
	if p := new(par.Panic); errors.As(err, &p) {
		panic(p)
	}
	return list
}
