package verify

import (
	"bytes"
	"context"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// run checks all LIDs, and returns one worker with the results of all.
func (p *plan) run(ctx context.Context, opt Options) (*worker, error) {
	workers, err := eachPart(ctx, &opt, len(p.units), func() *worker { return newWorker(p) }, func(w *worker, i int) { w.unit(&p.units[i]) })
	if err != nil {
		return nil, err
	}
	for _, w := range workers[1:] {
		workers[0].merge(w)
	}
	return workers[0], nil
}

// unit checks the LIDs of u.
func (w *worker) unit(u *unit) {
	if u.dests == nil {
		w.findStale(u.unowned)
		return
	}
	w.stageEntries(u.dests)
	for dests := u.dests; len(dests) > 0; {
		n := 1
		for n < len(dests) && dests[n].root == dests[0].root && dests[n].ca == dests[0].ca && dests[n].loads == dests[0].loads {
			n++
		}
		w.route(dests[:n])
		dests = dests[n:]
	}
}

// stageEntries copies the entries of all switches for some LIDs to w.stage.
func (w *worker) stageEntries(dests []dest) {
	first, n := int(dests[0].lid), len(dests)
	inOrder := true
	for i := range dests {
		inOrder = inOrder && int(dests[i].lid) == first+i
	}
	for s := range int32(w.n) {
		row, to := w.t.Row(fabric.NodeID(s)), w.stage[int(s)*lft.BlockSize:][:lft.BlockSize]
		if inOrder && first+n <= len(row) {
			copy(to, row[first:first+n])
		} else {
			for i := range dests {
				to[i] = w.entry(s, dests[i].lid)
			}
		}
	}
}

// findStale finds LIDs, without a port, that have entries.
func (w *worker) findStale(lids []fabric.LID) {
	found := make([]staleLID, len(lids))
	for s := range int32(w.n) {
		for i, lid := range lids {
			if w.entry(s, lid) == fabric.NoPath {
				continue
			}
			if found[i].switches == 0 {
				found[i].lid, found[i].first = lid, s
			}
			found[i].switches++
		}
	}
	w.stale = append(w.stale, slices.DeleteFunc(found, func(x staleLID) bool { return x.switches == 0 })...)
}

// route checks destinations of the unit with one root and one kind of owner:
// together if all their paths are minimal, else one by one.
func (w *worker) route(dests []dest) {
	if dests[0].root >= 0 && (dests[0].ca || w.flow != nil) {
		w.root(dests[0].root)
		if drops := w.flow != nil && w.flow.drops; w.near && !drops && w.fill(dests) { // then all are delivered
			w.minimal(dests)
			return
		}
	}
	for i := range dests {
		w.walk(&dests[i])
	}
}

// minimal checks destinations of one root and one kind of owner, after fill
// has found that all their paths are minimal.
func (w *worker) minimal(dests []dest) {
	if w.flow != nil {
		for i := range dests {
			w.followLanes(&tree{&dests[i], len(dests), i}, true)
		}
	}
	if !dests[0].ca {
		return // followLanes has found the dependencies
	}
	for i := range dests {
		w.failAlone(&dests[i])
	}
	for h, sources := range w.levels {
		w.delivered[h+1] += sources * int64(len(dests))
	}
	w.delivered[1] -= int64(len(dests)) // the owners
	w.load(dests, w.order)
}

// root prepares w for destinations whose root is switch t.
func (w *worker) root(t int32) {
	if w.at == t {
		return
	}
	w.at, w.far = t, w.hops == nil
	dist := w.dist[beyond:]
	if w.hops != nil {
		copy(dist, w.hops.To(fabric.NodeID(t)))
		w.far = bytes.IndexByte(dist, fabric.MaxHops) >= 0
	}
	if w.far {
		w.exact.Run(w.f.Neighbors, fabric.NodeID(t))
		w.far = false
		for s, d := range w.exact.Distance {
			w.far = w.far || d >= int32(fabric.MaxHops)
			dist[s] = uint8(d) // fabric.Unreachable for -1
		}
	}
	w.near = !w.far
	if bytes.IndexByte(dist, fabric.Unreachable) >= 0 {
		w.near = w.near && w.flow == nil && bytes.Count(dist, []byte{fabric.Unreachable}) == len(w.alone)
	}
	if w.near {
		w.sortByDistance(dist)
	}
}

// sortByDistance sets order and levels.
func (w *worker) sortByDistance(dist []uint8) {
	var count [256]int32
	var levels [256]int64
	farthest := uint8(0)
	for s, d := range dist {
		if d == fabric.Unreachable {
			continue
		}
		count[d]++
		levels[d] += int64(w.sources[s])
		farthest = max(farthest, d)
	}
	w.levels = append(w.levels[:0], levels[:farthest+1]...)
	at := int32(0)
	for d := int(farthest); d >= 0; d-- {
		at, count[d] = at+count[d], at
	}
	w.order = w.order[:at-1]
	for s, d := range dist {
		if d > 0 && d != fabric.Unreachable {
			w.order[count[d]] = int32(s)
			count[d]++
		}
	}
}

// fill sets the cells (see cellBits) of destinations at the current root. It returns true if all
// their paths are minimal: each entry leads one link closer, not counting switches in alone. The
// root's entry, from distance 0, must lead out of the switches, to distance 255.
func (w *worker) fill(dests []dest) bool {
	g, column := len(dests), dests[0].column
	off := uint8(0) // bits in which some distance differs from the wanted one
	for s := range w.n {
		if w.dist[beyond+s] == fabric.Unreachable {
			continue
		}
		row := w.stage[s*lft.BlockSize+column:][:g]
		cells := w.cells[s*g:][:len(row)]
		to := w.to[w.ports[s]:w.ports[s+1]]
		want := w.dist[beyond+s] - 1
		sources := w.weigh(int32(s), &dests[0])
		for i, p := range row {
			if int(p) >= len(to) {
				return false
			}
			off |= w.dist[beyond+to[p]] ^ want
			cells[i] = uint32(p)<<cellBits | sources
		}
	}
	for i := range dests {
		if w.cells[int(w.at)*g+i]>>cellBits != uint32(dests[i].last) {
			return false
		}
	}
	return off == 0
}
