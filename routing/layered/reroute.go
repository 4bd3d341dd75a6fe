package layered

import (
	"context"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// rerouter finds other paths for LIDs whose paths no layer has, and remembers
// the old ones.
type rerouter struct {
	*packer
	w     *walker
	x     *packing
	load  []uint64 // by channel
	saved []column
}

// column is the entries of all switches for a LID.
type column struct {
	lid   fabric.LID
	ports []fabric.PortNum // by switch
}

// run gives other shortest paths to all LIDs that some switch with hosts has no
// layer for, and returns how many of them remain without: those keep their
// paths.
func (r *rerouter) run(ctx context.Context) (left int) {
	all := uint16(1)<<r.x.layers - 1
	for i := range r.jobs {
		if ctx.Err() != nil {
			return left
		}
		j := &r.jobs[i]
		r.w.load(j, r.x.set, all)
		for k, lid := range j.lids {
			if r.fixed[lid] || !r.w.lacks(k) {
				continue
			}
			old := r.column(lid)
			r.w.addLoad(k, r.load, false)
			if r.grow(j, k, lid, all) {
				r.saved = append(r.saved, old)
			} else {
				r.restore(old)
				r.w.load(j, r.x.set, all)
				left++
			}
			r.w.addLoad(k, r.load, true)
		}
	}
	return left
}

// homeless lists the LIDs that some switch with hosts has no layer for.
func (p *packer) homeless(x *packing) (lids []fabric.LID) {
	w := p.newWalker()
	for i := range p.jobs {
		j := &p.jobs[i]
		w.load(j, x.set, uint16(1)<<x.layers-1)
		for k, lid := range j.lids {
			if w.lacks(k) {
				lids = append(lids, lid)
			}
		}
	}
	return lids
}

// lacks says whether a switch with hosts has no layer for its path to the k-th LID.
func (w *walker) lacks(k int) bool {
	for _, s := range w.order {
		if w.hosts[s] > 0 && w.legal[int(s)*blockLIDs+k] == 0 {
			return true
		}
	}
	return false
}

// column copies the entries for a LID.
func (p *packer) column(lid fabric.LID) column {
	x := column{lid, make([]fabric.PortNum, len(p.all))}
	for s := range x.ports {
		x.ports[s] = p.tables.Row(fabric.NodeID(s))[lid]
	}
	return x
}

// restore puts entries back.
func (p *packer) restore(x column) {
	for s, port := range x.ports {
		p.tables.Row(fabric.NodeID(s))[x.lid] = port
	}
}

// undo puts back all that was changed.
func (r *rerouter) undo() {
	for _, x := range slices.Backward(r.saved) {
		r.restore(x)
	}
}

// grow makes new shortest paths to the k-th LID of j. Switches that are nearer
// choose first, the channel with the least load of those by which the path has a
// layer; where there is none, a layer takes another turn if it can. It fails when a
// switch with hosts has no path.
func (r *rerouter) grow(j *job, k int, lid fabric.LID, all uint16) bool {
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
				if m = r.w.legal[at]; m != 0 {
					m &= r.x.set[r.of(c, r.w.next[at])]
				}
			}
			if m != 0 && (layers == 0 || r.load[c] < r.load[best]) || layers == 0 && best < 0 {
				best, layers = c, m
			}
		}
		if layers == 0 {
			if c, m := r.widen(j, k, s, dist); m != 0 {
				best, layers = c, m
			} else if r.hosts[s] > 0 {
				return false
			}
		}
		r.w.next[int(s)*blockLIDs+k] = best
		r.w.legal[int(s)*blockLIDs+k] = layers
		r.tables.Row(s)[lid] = r.port[best]
	}
	return true
}

// widen finds a channel by which the path of s has a layer when that takes one more
// turn, which it then has.
func (r *rerouter) widen(j *job, k int, s fabric.NodeID, dist []uint8) (best int32, layers uint16) {
	for c := r.first[s]; c < r.first[s+1]; c++ {
		v := r.to[c]
		if dist[v]+1 != dist[s] || v == int32(j.t) {
			continue
		}
		at := int(v)*blockLIDs + k
		for _, l := range r.x.final {
			d := r.w.next[at]
			if r.w.legal[at]&l.bit != 0 && l.add(r.of(c, d), c, d) {
				return c, l.bit
			}
		}
	}
	return -1, 0
}

// replace gives LIDs the up*/down* paths of tables t, which the first layer has.
func (p *packer) replace(t *lft.Tables, lid fabric.LID) {
	for s := range p.all {
		p.tables.Row(fabric.NodeID(s))[lid] = t.Row(fabric.NodeID(s))[lid]
	}
	p.fixed[lid] = true
}
