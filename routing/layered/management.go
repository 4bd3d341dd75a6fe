package layered

import (
	"context"
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
)

// Management paths are those to LIDs of switches and of their aggregation nodes, and those
// from switches without hosts. They get no layers of their own, but shortest or longer
// paths in the hosts' layers.

// listManagementJobs sets management to the LIDs of switches without hosts. The LIDs of a
// switch with hosts take the paths and layers of its hosts' LIDs in turn, since these lead
// to the same switch. LIDs of an aggregation node take those of its switch's LIDs.
func (p *assigner) listManagementJobs() {
	hostLIDs := make([][]fabric.LID, len(p.all)) // by switch
	for i := range p.jobs {
		j := &p.jobs[i]
		hostLIDs[j.t] = append(hostLIDs[j.t], j.lids...)
	}
	p.sameAs = make([]fabric.LID, len(p.upDownOnly))
	for t, lids := range hostLIDs {
		own := slices.Collect(p.f.LIDs(p.f.PortBase(fabric.NodeID(t))))
		hasHosts := len(lids) > 0
		if hasHosts {
			p.takePathsOf(lids, own)
		} else {
			lids = own
		}
		for _, port := range p.f.EndPortsOn(fabric.NodeID(t)) {
			if !p.f.PortCounts(port, fabric.ForLoad) {
				p.takePathsOf(lids, slices.Collect(p.f.LIDs(port)))
			}
		}
		if hasHosts {
			continue
		}
		for part := range slices.Chunk(own, blockLIDs) {
			p.management = append(p.management, job{fabric.NodeID(t), part})
		}
	}
}

// takePathsOf gives lids the paths of others, LIDs on the same switch, in turn.
func (p *assigner) takePathsOf(others, lids []fabric.LID) {
	for k, lid := range lids {
		p.sameAs[lid] = others[k%len(others)]
	}
}

// copyPaths writes the entries for LIDs that take the paths of other LIDs, and their
// entries on the switch that they are on.
func (p *assigner) copyPaths() {
	for s := range p.all {
		row := p.tables.Row(fabric.NodeID(s))
		for lid, like := range p.sameAs {
			if like != 0 {
				row[lid] = row[like]
			}
		}
	}
	for lid, like := range p.sameAs {
		if like != 0 {
			last := p.f.Attachment(p.f.LIDPort(fabric.LID(lid)))
			p.tables.Row(p.f.Owner(last))[lid] = p.f.Num(last)
		}
	}
}

// assignManagementPaths finds layers for the management paths to the LIDs of jobs. It
// returns the LIDs with a path that gets none.
func (p *assigner) assignManagementPaths(ctx context.Context, x *assignment, jobs []job) (left []fabric.LID) {
	all := uint16(1)<<len(x.layers) - 1
	w := p.newWalker()
	refused := make([][]bool, len(x.layers))
	var added []int32
	for _, i := range p.listIncompleteJobs(ctx, x, jobs) {
		if ctx.Err() != nil {
			return nil
		}
		j := &jobs[i]
		w.loadJob(j, x.set, all)
		for k, lid := range j.lids {
			if p.upDownOnly[lid] {
				continue
			}
			// First detours in the present layers, then more turns, then detours by these.
			if !w.missesLayer(k, false) || w.takeDetours(x, j, k, lid) || w.extendLayers(x, j, k, refused, &added) || w.takeDetours(x, j, k, lid) {
				continue
			}
			left = append(left, lid)
		}
	}
	return left
}

// missesLayer returns true if the path of some switch to the k-th LID has no layer; with
// hosts, only switches with hosts count.
func (w *walker) missesLayer(k int, hosts bool) bool {
	return slices.ContainsFunc(w.order, func(s fabric.NodeID) bool {
		return w.layersOf[int(s)*blockLIDs+k] == 0 && (!hosts || w.hosts[s] > 0)
	})
}

// extendLayers adds turns to layers for the paths to the k-th LID of j that have no layer.
// It returns true if all paths then have one.
func (w *walker) extendLayers(x *assignment, j *job, k int, refused [][]bool, added *[]int32) bool {
	all := true
	for _, s := range slices.Backward(w.order) {
		at := int(s)*blockLIDs + k
		if w.layersOf[at] != 0 {
			continue
		}
		w.layersOf[at] = w.findCommonLayers(x, s, j, k)
		for n := 0; n < len(x.layers) && w.layersOf[at] == 0; n++ {
			if refused[n] == nil {
				refused[n] = make([]bool, w.countTurns())
			}
			if w.addPath(x.layers[n], s, j.t, k, refused[n], added) {
				w.layersOf[at] = 1 << n
			}
		}
		all = all && w.layersOf[at] != 0
	}
	return all
}

// findCommonLayers returns the layers that have the whole path of switch s to the k-th LID
// of j. The path need not lead nearer at every step.
func (w *walker) findCommonLayers(x *assignment, s fabric.NodeID, j *job, k int) uint16 {
	layers := uint16(1)<<len(x.layers) - 1
	for c := w.next[int(s)*blockLIDs+k]; w.to[c] != int32(j.t); {
		d := w.next[int(w.to[c])*blockLIDs+k]
		layers &= x.set[w.turnFrom(c, d)]
		c = d
	}
	return layers
}

// takeDetours gives the switches without a layer for their path to the k-th LID of j other
// paths, longer ones if need be, through any neighbour whose path has a layer. It returns
// true if all switches then have a layer.
func (w *walker) takeDetours(x *assignment, j *job, k int, lid fabric.LID) bool {
	w.detoured[lid] = true
	for {
		changed, lost := false, false
		for _, s := range slices.Backward(w.order) {
			at := int(s)*blockLIDs + k
			if w.layersOf[at] != 0 {
				continue
			}
			for c := w.first[s]; c < w.first[s+1]; c++ {
				v := w.to[c]
				to := int(v)*blockLIDs + k
				if v == int32(j.t) || w.layersOf[to] == 0 {
					continue
				}
				if m := w.layersOf[to] & x.set[w.turnFrom(c, w.next[to])]; m != 0 {
					w.layersOf[at], w.next[at] = m, c
					break
				}
			}
			if w.layersOf[at] == 0 {
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

// listIncompleteJobs lists the jobs, by index, with a path without a layer.
func (p *assigner) listIncompleteJobs(ctx context.Context, x *assignment, jobs []job) []int {
	incomplete := make([]bool, len(jobs))
	forEach(ctx, len(jobs), p.newWalker, func(w *walker, i int) {
		j := &jobs[i]
		w.loadJob(j, x.set, uint16(1)<<len(x.layers)-1)
		for _, s := range w.order {
			for k, lid := range j.lids {
				incomplete[i] = incomplete[i] || w.layersOf[int(s)*blockLIDs+k] == 0 && !p.upDownOnly[lid]
			}
		}
	})
	return text.Indices[int](incomplete, func(yes bool) bool { return yes })
}

// makePathSLs gives every path the number of its lowest layer as SL.
func (p *assigner) makePathSLs(ctx context.Context, x *assignment) *lft.PathSLs {
	n := len(p.all)
	sls := make([]fabric.SL, n*len(p.upDownOnly))
	row := func(s fabric.NodeID) []fabric.SL {
		return sls[int(s)*len(p.upDownOnly) : (int(s)+1)*len(p.upDownOnly) : (int(s)+1)*len(p.upDownOnly)]
	}
	jobs := slices.Concat(p.jobs, p.management)
	forEach(ctx, len(jobs), p.newWalker, func(w *walker, i int) {
		j := &jobs[i]
		w.loadJob(j, x.set, uint16(1)<<len(x.layers)-1)
		for _, s := range w.order {
			to := row(s)
			for k, lid := range j.lids {
				layers := w.layersOf[int(s)*blockLIDs+k]
				if p.detoured[lid] {
					layers = w.findCommonLayers(x, s, j, k)
				}
				if layers != 0 && !p.upDownOnly[lid] {
					to[lid] = fabric.SL(bits.TrailingZeros16(layers))
				}
			}
		}
	})
	list := lft.NewPathSLs(n, p.f.MaxLID())
	for _, s := range p.all {
		to := row(s)
		for lid, like := range p.sameAs {
			if like != 0 {
				to[lid] = to[like]
			}
		}
		list.SetRow(to, s)
	}
	return list
}
