package layered

import (
	"context"
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// A switch's own LIDs, and the paths from switches without hosts, are for
// management: they get no layers of their own, but shortest or longer paths in
// those that the hosts need.

// follow gives the LIDs of a switch with hosts the paths of its hosts' LIDs, in
// turn: they lead to the same switch, and have their layers.
func (p *packer) follow() {
	like := make([][]fabric.LID, len(p.all)) // by switch: LIDs of hosts
	for i := range p.jobs {
		j := &p.jobs[i]
		like[j.t] = append(like[j.t], j.lids...)
	}
	p.alike = make([]fabric.LID, len(p.fixed))
	for t, lids := range like {
		port := p.f.PortBase(fabric.NodeID(t))
		base := p.f.LID(port)
		if base == 0 {
			continue
		}
		var own []fabric.LID
		for k := range 1 << p.f.LMC(port) {
			lid := base + fabric.LID(k)
			if len(lids) > 0 {
				p.alike[lid] = lids[k%len(lids)]
			} else {
				own = append(own, lid)
			}
		}
		for part := range slices.Chunk(own, blockLIDs) {
			p.own = append(p.own, job{fabric.NodeID(t), part})
		}
	}
}

// copyAlike fills in the LIDs of switches with hosts, row by row.
func (p *packer) copyAlike() {
	for s := range p.all {
		row := p.tables.Row(fabric.NodeID(s))
		for lid, like := range p.alike {
			if like != 0 && row[lid] != fabric.ManagementPort {
				row[lid] = row[like]
			}
		}
	}
}

// manage finds layers for management's paths to the LIDs of jobs, and returns the
// LIDs that have paths without any.
func (p *packer) manage(ctx context.Context, x *packing, jobs []job) (left []fabric.LID) {
	all := uint16(1)<<x.layers - 1
	w := p.newWalker()
	refused := make([][]bool, x.layers)
	var added []int32
	for _, i := range p.incomplete(ctx, x, jobs) {
		if ctx.Err() != nil {
			return nil
		}
		j := &jobs[i]
		w.load(j, x.set, all)
		for k, lid := range j.lids {
			if p.fixed[lid] {
				continue
			}
			// What is there first, then further turns, and what they lead to.
			if !w.lost(k) || w.detour(x, j, k, lid) || w.widen(x, j, k, refused, &added) || w.detour(x, j, k, lid) {
				continue
			}
			left = append(left, lid)
		}
	}
	return left
}

// lost says whether some switch has no layer for its path to the k-th LID.
func (w *walker) lost(k int) bool {
	for _, s := range w.order {
		if w.legal[int(s)*blockLIDs+k] == 0 {
			return true
		}
	}
	return false
}

// widen has layers take turns so that paths to the k-th LID of j have one. It
// says whether all have.
func (w *walker) widen(x *packing, j *job, k int, refused [][]bool, added *[]int32) bool {
	all := true
	for _, s := range slices.Backward(w.order) {
		at := int(s)*blockLIDs + k
		if w.legal[at] != 0 {
			continue
		}
		w.legal[at] = w.along(x, s, j, k)
		for n := 0; n < x.layers && w.legal[at] == 0; n++ {
			if refused[n] == nil {
				refused[n] = make([]bool, w.count())
			}
			if w.enter(x.final[n], s, j.t, k, refused[n], added) {
				w.legal[at] = 1 << n
			}
		}
		all = all && w.legal[at] != 0
	}
	return all
}

// along is the layers that have the whole path of a switch to the k-th LID of j,
// which need not lead nearer at every step.
func (w *walker) along(x *packing, s fabric.NodeID, j *job, k int) uint16 {
	layers := uint16(1)<<x.layers - 1
	for c := w.next[int(s)*blockLIDs+k]; w.to[c] != int32(j.t); {
		d := w.next[int(w.to[c])*blockLIDs+k]
		layers &= x.set[w.of(c, d)]
		c = d
	}
	return layers
}

// detour gives switches without a layer for their path to the k-th LID of j other
// paths, longer ones if need be: through any neighbour whose path has one.
func (w *walker) detour(x *packing, j *job, k int, lid fabric.LID) bool {
	w.bent[lid] = true
	for {
		changed, lost := false, false
		for _, s := range slices.Backward(w.order) {
			at := int(s)*blockLIDs + k
			if w.legal[at] != 0 {
				continue
			}
			for c := w.first[s]; c < w.first[s+1]; c++ {
				v := w.to[c]
				to := int(v)*blockLIDs + k
				if v == int32(j.t) || w.legal[to] == 0 {
					continue
				}
				if m := w.legal[to] & x.set[w.of(c, w.next[to])]; m != 0 {
					w.legal[at], w.next[at] = m, c
					break
				}
			}
			if w.legal[at] == 0 {
				lost = true
				continue
			}
			changed = true
			w.tables.Row(s)[lid] = w.port[w.next[at]]
		}
		if !lost || !changed {
			return !lost
		}
	}
}

// incomplete lists the jobs, by index, that have a path without a layer.
func (p *packer) incomplete(ctx context.Context, x *packing, jobs []job) (list []int) {
	lacks := make([]bool, len(jobs))
	forEach(ctx, 0, len(jobs), p.newWalker, func(w *walker, i int) {
		j := &jobs[i]
		w.load(j, x.set, uint16(1)<<x.layers-1)
		for _, s := range w.order {
			for k, lid := range j.lids {
				lacks[i] = lacks[i] || w.legal[int(s)*blockLIDs+k] == 0 && !p.fixed[lid]
			}
		}
	})
	for i, yes := range lacks {
		if yes {
			list = append(list, i)
		}
	}
	return list
}

// levels is the SL of every path: the number of the lowest layer that has it.
func (p *packer) levels(ctx context.Context, x *packing) *lft.PathSLs {
	n := len(p.all)
	sls := make([]fabric.SL, n*len(p.fixed))
	row := func(s fabric.NodeID) []fabric.SL {
		return sls[int(s)*len(p.fixed) : (int(s)+1)*len(p.fixed) : (int(s)+1)*len(p.fixed)]
	}
	jobs := slices.Concat(p.jobs, p.own)
	forEach(ctx, 0, len(jobs), p.newWalker, func(w *walker, i int) {
		j := &jobs[i]
		w.load(j, x.set, uint16(1)<<x.layers-1)
		for _, s := range w.order {
			to := row(s)
			for k, lid := range j.lids {
				legal := w.legal[int(s)*blockLIDs+k]
				if p.bent[lid] {
					legal = w.along(x, s, j, k)
				}
				if legal != 0 && !p.fixed[lid] {
					to[lid] = fabric.SL(bits.TrailingZeros16(legal))
				}
			}
		}
	})
	list := lft.NewPathSLs(n, p.f.MaxLID())
	for _, s := range p.all {
		to := row(s)
		for lid, like := range p.alike {
			if like != 0 {
				to[lid] = to[like]
			}
		}
		list.SetRow(to, s)
	}
	return list
}
