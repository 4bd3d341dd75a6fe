package verify

import (
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/lft"
)

// If more than one path in largeShare has changed, it is quicker to check
// everything.
const largeShare = 16

// update moves on to tables t of fabric v: it marks the paths that may differ, counts them again,
// and looks at new dependencies. It returns false if the tables cannot be followed; then the
// checker must be started again.
func (w *IncrementalChecker) update(v *fabric.Snapshot, t *lft.Tables) bool {
	if v.Index != w.now.Index || !v.Whole || len(v.Dest) > w.stride || t.Switches() != v.Fabric.NumSwitches() {
		return false
	}
	w.resetScratch()
	dist, ok := w.updateDistances(v)
	if !ok || !w.markSwitches(v, t) {
		return false
	}
	for lid := range int32(w.stride) {
		moved := !v.SameDestination(w.now, int(lid))
		if (len(w.marks[lid]) > 0 || moved) && !w.updateLID(v, t, dist, lid, moved) {
			return false
		}
	}
	old := w.now
	w.now, w.dist = v, dist
	w.addMovedCables(old)
	for _, i := range w.rose {
		if w.pairs[i].lids > 0 && !w.rises(i) {
			return w.renumber()
		}
	}
	return true
}

func (w *IncrementalChecker) resetScratch() {
	for lid := range w.marks {
		w.marks[lid] = w.marks[lid][:0]
	}
	w.marked = 0
	w.rose = w.rose[:0]
	clear(w.isIn)
	w.serial = 0
}

func (w *IncrementalChecker) mark(lid, slot int32, entry bool) {
	w.marks[lid] = append(w.marks[lid], mark{slot, entry})
	w.marked++
}

// addMovedCables adds to w.rose the dependencies to ports with another cable, where packets wait
// for another channel now.
func (w *IncrementalChecker) addMovedCables(old *fabric.Snapshot) {
	x := w.now.Index
	for p, peer := range w.now.Peer {
		if peer < 0 || peer == old.Peer[p] {
			continue
		}
		s := x.Owner[p]
		for in := x.Base[s]; in < x.Base[s+1]; in++ {
			w.rose = append(w.rose, w.pair(in, int32(p)))
		}
	}
}

// updateDistances returns dist for v, and marks the paths whose distance changed. Distances are
// right if each switch's is one more than the least of its neighbors. So only switches with other
// cables are checked. It returns false if cables do not join all switches, or some path is too
// long.
func (w *IncrementalChecker) updateDistances(v *fabric.Snapshot) (dist [][]uint8, ok bool) {
	changed := w.recabled(v)
	dist = slices.Clone(w.dist)
	differ := make([][]int32, len(dist)) // by destination slot: slots at another distance
	search := graph.NewSearch[int32](len(dist))
	neighbors := func(s int32) []int32 {
		_, to := v.SwitchLinks(s)
		return to
	}
	for t, row := range dist {
		if v.Sources[t] == 0 {
			dist[t] = nil
			continue
		}
		stale := func(s int32) bool { return row[s] != nearest(v, row, s, int32(t)) }
		if row != nil && !slices.ContainsFunc(changed, stale) {
			continue
		}
		search.Run(neighbors, int32(t))
		farthest := search.Order[len(search.Order)-1]
		if len(search.Order) != v.Present || search.Distance[farthest] >= int32(fabric.MaxHops) {
			return nil, false
		}
		dist[t] = make([]uint8, len(dist))
		for s, d := range search.Distance {
			dist[t][s] = uint8(d) // fabric.Unreachable for graph.Unreached
		}
		for s, d := range row {
			if d != dist[t][s] {
				differ[t] = append(differ[t], int32(s))
			}
		}
	}
	for lid, dest := range v.Dest {
		if dest == fabric.NoDestination || dest == v.Index.Base[v.Index.Owner[dest]] {
			continue
		}
		for _, s := range differ[v.Index.Owner[dest]] {
			w.mark(int32(lid), s, false)
		}
	}
	return dist, true
}

// recabled lists the slots whose cables to switches differ in v.
func (w *IncrementalChecker) recabled(v *fabric.Snapshot) []int32 {
	var list []int32
	for s, node := range v.Node {
		if node == fabric.NoNode {
			continue
		}
		for p := v.Index.Base[s]; p < v.Index.Base[s+1]; p++ {
			if was, is := w.now.Peer[p], v.Peer[p]; was != is && (was >= 0 || is >= 0) {
				list = append(list, int32(s))
				break
			}
		}
	}
	return list
}

// nearest returns the distance from s to t that follows from those of the neighbors of s.
func nearest(v *fabric.Snapshot, dist []uint8, s, t int32) uint8 {
	if s == t {
		return 0
	}
	least := fabric.Unreachable
	_, neighbours := v.SwitchLinks(s)
	for _, to := range neighbours {
		if d := dist[to]; d < fabric.MaxHops {
			least = min(least, d+1)
		}
	}
	return least
}

// markSwitches marks entries that differ or whose port has another cable, and switches that came,
// went, or have more or fewer sources. It returns false if it marks more than largeShare allows.
func (w *IncrementalChecker) markSwitches(v *fabric.Snapshot, t *lft.Tables) bool {
	old := w.now
	lids := max(len(old.Dest), len(v.Dest))
	most := 1000 + len(v.Node)*len(v.Dest)/largeShare
	for slot, node := range v.Node {
		s := int32(slot)
		was, is := old.Node[s] != fabric.NoNode, node != fabric.NoNode
		if was != is || old.Sources[s] != v.Sources[s] || old.Others[s] != v.Others[s] {
			for lid := range int32(lids) {
				w.mark(lid, s, was && !is)
			}
		}
		if is {
			w.markEntries(s, t.Row(node))
			w.markCables(v, s, lids)
		}
		if w.marked > most {
			return false
		}
	}
	return true
}

// markEntries marks the entries of a slot that differ from a table. It compares blocks first.
func (w *IncrementalChecker) markEntries(s int32, table []fabric.PortNum) {
	type entries [lft.BlockSize]fabric.PortNum
	row := w.row(s)
	table = table[:min(cap(table), len(row))]
	for from := 0; from < len(row); from += lft.BlockSize {
		block := row[from : from+lft.BlockSize]
		if from+lft.BlockSize <= len(table) && *(*entries)(block) == *(*entries)(table[from:]) {
			continue
		}
		for i, num := range block {
			if num != lft.Entry(table, fabric.LID(from+i)) {
				w.mark(int32(from+i), s, true)
			}
		}
	}
}

// markCables marks the entries of a slot whose port has another cable in v.
func (w *IncrementalChecker) markCables(v *fabric.Snapshot, s int32, lids int) {
	from, end := v.Index.Base[s], v.Index.Base[s+1]
	if slices.Equal(w.now.Peer[from:end], v.Peer[from:end]) {
		return
	}
	for lid, num := range w.row(s)[:lids] {
		if p := from + int32(num); p < end && w.now.Peer[p] != v.Peer[p] {
			w.mark(int32(lid), s, true)
		}
	}
}

// updateLID counts what differs for one LID, and copies its new entries. moved is true if the LID
// is at another port than before. It returns false if some path does not deliver.
func (w *IncrementalChecker) updateLID(v *fabric.Snapshot, t *lft.Tables, dist [][]uint8, lid int32, moved bool) bool {
	old := w.now
	before, after := old.Destination(int(lid)), v.Destination(int(lid))
	w.touched = w.touched[:0]
	switch {
	case moved:
		for s := range int32(len(v.Node)) {
			w.touched = append(w.touched, s)
		}
	case before != fabric.NoDestination:
		w.touchMarked(lid, before)
	}
	if before != fabric.NoDestination {
		for _, s := range w.touched {
			if old.Node[s] != fabric.NoNode {
				w.countPath(old, w.dist, s, lid, before, -1)
			}
		}
	}
	for _, m := range w.marks[lid] {
		num := fabric.NoPath
		if s := v.Node[m.slot]; s != fabric.NoNode {
			num = lft.Entry(t.Row(s), fabric.LID(lid))
		}
		w.setEntry(m.slot, lid, num)
	}
	if after != fabric.NoDestination {
		for _, s := range w.touched {
			if v.Node[s] != fabric.NoNode && !w.countPath(v, dist, s, lid, after, 1) {
				return false
			}
		}
	}
	return true
}

// touchMarked puts into touched the slots whose path to a LID with destination dest must be counted
// again: marked ones, and those whose packets passed through a slot with another entry.
func (w *IncrementalChecker) touchMarked(lid, dest int32) {
	w.serial++
	add := func(s int32) {
		if w.isIn[s] != w.serial {
			w.isIn[s] = w.serial
			w.touched = append(w.touched, s)
		}
	}
	for _, m := range w.marks[lid] {
		if m.entry {
			add(m.slot)
		}
	}
	x, old := w.now.Index, w.now
	root := x.Owner[dest]
	for i := 0; i < len(w.touched); i++ {
		s := w.touched[i]
		for p := x.Base[s]; p < x.Base[s+1]; p++ {
			peer := old.Peer[p]
			if peer < 0 {
				continue
			}
			from := x.Owner[peer]
			if from != root && int32(w.entry(from, lid)) == peer-x.Base[from] {
				add(from)
			}
		}
	}
	for _, m := range w.marks[lid] {
		add(m.slot)
	}
}
