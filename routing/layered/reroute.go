package layered

import (
	"context"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// rerouter finds other paths for LIDs with a path that has no layer.
type rerouter struct {
	*assigner
	w    *walker
	x    *assignment
	load []uint64 // by channel
}

// column is the entries for a LID.
type column struct {
	lid   fabric.LID
	ports []fabric.PortNum // by switch
}

// reroute finds other shortest paths to the LIDs to which the path of a switch with hosts
// has no layer, and updates load. It returns false if it finds none for some LIDs; these
// keep their paths.
func (p *assigner) reroute(ctx context.Context, x *assignment, load []uint64) bool {
	r := rerouter{assigner: p, w: p.newWalker(), x: x, load: load}
	all := uint16(1)<<len(x.layers) - 1
	found := true
	for i := range r.jobs {
		if ctx.Err() != nil {
			return false
		}
		j := &r.jobs[i]
		r.w.loadJob(j, x.set, all)
		for k, lid := range j.lids {
			if r.upDownOnly[lid] || !r.w.missesLayer(k, true) {
				continue
			}
			old := r.copyColumn(lid)
			r.w.addLoad(k, load, false)
			if !r.rerouteLID(j, k, lid, all) {
				for s, port := range old.ports {
					r.tables.Row(fabric.NodeID(s))[lid] = port
				}
				r.w.loadJob(j, x.set, all)
				found = false
			}
			r.w.addLoad(k, load, true)
		}
	}
	if found {
		x.unassigned = 0
	}
	return found
}

// listUnassigned lists the LIDs to which the path of some switch with hosts has no layer.
func (p *assigner) listUnassigned(x *assignment) (lids []fabric.LID) {
	w := p.newWalker()
	for i := range p.jobs {
		j := &p.jobs[i]
		w.loadJob(j, x.set, uint16(1)<<len(x.layers)-1)
		for k, lid := range j.lids {
			if w.missesLayer(k, true) {
				lids = append(lids, lid)
			}
		}
	}
	return lids
}

// copyColumn copies the entries for a LID.
func (p *assigner) copyColumn(lid fabric.LID) column {
	x := column{lid, make([]fabric.PortNum, len(p.all))}
	for s := range x.ports {
		x.ports[s] = p.tables.Row(fabric.NodeID(s))[lid]
	}
	return x
}

// rerouteLID chooses new shortest paths to the k-th LID of j, the nearest switches first.
// Each switch takes the least loaded channel with which its path has a layer; if there is
// none, it tries to add a turn to a layer. It returns false if a switch with hosts gets no
// path with a layer.
func (r *rerouter) rerouteLID(j *job, k int, lid fabric.LID, all uint16) bool {
	dist := r.dist.To(j.t)
	for _, s := range slices.Backward(r.w.order) {
		best, layers := int32(-1), uint16(0)
		for c := r.first[s]; c < r.first[s+1]; c++ {
			v := r.to[c]
			if dist[v]+1 != dist[s] {
				continue
			}
			m := all
			if v != int32(j.t) {
				at := int(v)*blockLIDs + k
				if m = r.w.layersOf[at]; m != 0 {
					m &= r.x.set[r.turnFrom(c, r.w.next[at])]
				}
			}
			if m != 0 && (layers == 0 || r.load[c] < r.load[best]) || layers == 0 && best < 0 {
				best, layers = c, m
			}
		}
		if layers == 0 {
			if c, m := r.extendLayer(j, k, s, dist); m != 0 {
				best, layers = c, m
			} else if r.hosts[s] > 0 {
				return false
			}
		}
		r.w.next[int(s)*blockLIDs+k] = best
		r.w.layersOf[int(s)*blockLIDs+k] = layers
		r.tables.Row(s)[lid] = r.port[best]
	}
	return true
}

// extendLayer adds one turn to a layer so that the path of s by some channel has that
// layer. It returns the channel and the layer, or -1 and 0.
func (r *rerouter) extendLayer(j *job, k int, s fabric.NodeID, dist []uint8) (best int32, layers uint16) {
	for c := r.first[s]; c < r.first[s+1]; c++ {
		v := r.to[c]
		if dist[v]+1 != dist[s] || v == int32(j.t) {
			continue
		}
		at := int(v)*blockLIDs + k
		for _, l := range r.x.layers {
			d := r.w.next[at]
			if r.w.layersOf[at]&l.bit != 0 && l.addTurn(r.turnFrom(c, d), c, d) {
				return c, l.bit
			}
		}
	}
	return -1, 0
}
