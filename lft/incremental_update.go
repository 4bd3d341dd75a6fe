package lft

import (
	"math"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// updateScratch is the scratch memory of an update. peer lets it follow paths from before the
// update.
type updateScratch struct {
	peer  []int32 // by port: the other end of its cable; of the old cable if it has none now
	fresh []bool  // by port: its channel is new and shall get a share
	// tails has, by destination slot, the slots that may send over a fresh channel; nil if no
	// channel is fresh.
	tails [][]int32

	serial    int32
	queuedFor []int32      // by slot: serial of the last LID for which it was put into work
	viaFresh  []int32      // by slot: serial of the last LID with a fresh channel on its path
	work      [256][]int32 // by distance: slots to update
	tree      []int32
	above     []int32          // slots of tree, ascending
	column    []fabric.PortNum // by slot: its entry for the LID before the update
	flow      []int64          // by slot: sources that send through it
	next      []int32          // by slot: the slot that it sends to
	waiting   []int32
	flowsSet  bool // flow is valid for the current LID
}

func newUpdateScratch(n int) updateScratch {
	return updateScratch{
		queuedFor: make([]int32, n), viaFresh: make([]int32, n), column: make([]fabric.PortNum, n),
		flow: make([]int64, n), next: make([]int32, n), waiting: make([]int32, n),
	}
}

// Update changes the tables for fabric v. It returns false if v has higher LIDs than the index
// has room for, paths are too long, or the engine's guarantee does not hold with the order; l
// is then useless. Switches may be gone, come back, or be in other places.
//
// most bounds how many LIDs may need a look at all entries, 0 for no bound: for more, Update
// returns false too.
func (l *Incremental) Update(v *fabric.Snapshot, most int) bool {
	if len(v.Dest) > l.stride {
		return false
	}
	l.lids = 0
	l.countChanges()
	// A port never changes its cable in one update: in a first update the old cable is gone.
	if between := v.WithoutMoved(l.now); between != v && !l.updateTo(between, most) {
		return false
	}
	return l.updateTo(v, most) && l.serves
}

// updateTo is Update if each port has the same cable in both fabrics, or none in one of them.
func (l *Incremental) updateTo(v *fabric.Snapshot, most int) bool {
	old, oldRank := l.now, l.rank
	uncounted := make([]bool, max(len(old.Dest), len(v.Dest)))
	for _, lid := range l.uncounted {
		uncounted[lid] = true
	}
	l.uncounted = nil
	l.removeGone(v, uncounted)

	l.now = v
	l.setOrder()
	l.setUnits()
	suspect, changed := l.comparePorts(old, oldRank)
	searched, ok := l.searchStale(old, changed)
	if !ok {
		return false
	}
	whole := make([]bool, len(v.Dest)) // by LID: all entries have to be looked at
	n := 0
	for lid, dest := range v.Dest {
		if dest != fabric.NoDestination && (uncounted[lid] || searched[l.index.Owner[dest]]) {
			whole[lid] = true
			n++
		}
	}
	if most > 0 && n > most {
		return false
	}
	suspects := l.listSuspects(old, changed, suspect)
	l.findTails()
	for lid, dest := range v.Dest {
		if dest == fabric.NoDestination {
			continue
		}
		if whole[lid] || len(suspects[lid]) > 0 || l.tails != nil && len(l.tails[l.index.Owner[dest]]) > 0 {
			l.updateLID(int32(lid), whole[lid], uncounted[lid], suspects[lid])
		}
	}
	for s, node := range v.Node {
		if old.Node[s] != fabric.NoNode && node == fabric.NoNode {
			for lid := range l.row(int32(s)) {
				l.setEntry(int32(s), int32(lid), fabric.NoPath)
			}
		}
	}
	return true
}

// removeGone subtracts from the loads what v no longer has: sources, and LIDs that are gone or
// elsewhere. It marks these LIDs in uncounted. It also sets peer.
func (l *Incremental) removeGone(v *fabric.Snapshot, uncounted []bool) {
	old := l.now
	l.peer = slices.Clone(v.Peer)
	for p, peer := range l.peer {
		if peer < 0 {
			l.peer[p] = old.Peer[p]
		}
	}
	for lid := range int32(len(uncounted)) {
		was, is := old.Destination(int(lid)), v.Destination(int(lid))
		if v.SameDestination(old, int(lid)) {
			continue
		}
		if was != fabric.NoDestination && !uncounted[lid] && old.CarriesLoad(was) {
			l.loadColumn(lid)
			l.sumFlows(was, old)
			l.addFlows(was, -1)
		}
		uncounted[lid] = true
		if is == fabric.NoDestination {
			l.clearEntries(lid)
		}
	}
	for s := range int32(l.index.Slots()) {
		more := int64(v.Sources[s]) - int64(old.Sources[s])
		if more == 0 || old.Node[s] == fabric.NoNode {
			continue // those of a new switch count when it gets entries
		}
		for lid, dest := range v.Dest {
			if dest != fabric.NoDestination && !uncounted[lid] && v.CarriesLoad(dest) {
				l.addPath(s, int32(lid), dest, more)
			}
		}
	}
}

// comparePorts returns in suspect the ports whose entries may not stay: their cable is gone,
// or new (the channel is then fresh), or leads up instead of down or the reverse. changed
// lists their slots.
func (l *Incremental) comparePorts(old *fabric.Snapshot, oldRank []int32) (suspect []bool, changed []int32) {
	v, x := l.now, l.index
	l.fresh = make([]bool, len(v.Peer))
	suspect = make([]bool, len(v.Peer))
	for s, node := range v.Node {
		if node == fabric.NoNode {
			continue
		}
		any := false
		for p := x.Base[s]; p < x.Base[s+1]; p++ {
			is, was := v.Peer[p], old.Peer[p]
			switch {
			case is < 0 && was < 0:
				continue
			case is != was:
				l.fresh[p] = is >= 0
			case l.rank == nil || l.isUp(oldRank, int32(s), is) == l.isUp(l.rank, int32(s), is):
				continue
			}
			suspect[p], any = true, true
		}
		if any {
			changed = append(changed, int32(s))
		}
	}
	return suspect, changed
}

func (l *Incremental) isUp(rank []int32, s, peer int32) bool {
	return rank[l.index.Owner[peer]] < rank[s]
}

// listSuspects lists by LID the slots whose entry may not stay: those of new
// switches, and those in changed whose entry is a suspect port or missing. (A switch
// that was found without cables, its answers being lost, has the distances from
// before, and no entries.)
func (l *Incremental) listSuspects(old *fabric.Snapshot, changed []int32, suspect []bool) [][]int32 {
	v := l.now
	list := make([][]int32, len(v.Dest))
	for s, node := range v.Node {
		if node != fabric.NoNode && old.Node[s] == fabric.NoNode {
			for lid := range list {
				list[lid] = append(list[lid], int32(s))
			}
		}
	}
	for _, s := range changed {
		ports := suspect[l.index.Base[s]:l.index.Base[s+1]]
		for lid, num := range l.row(s)[:len(v.Dest)] {
			if int(num) >= len(ports) || ports[num] {
				list[lid] = append(list[lid], s)
			}
		}
	}
	return list
}

// findTails sets tails.
func (l *Incremental) findTails() {
	l.tails = nil
	for p, fresh := range l.fresh {
		if !fresh {
			continue
		}
		if l.tails == nil {
			l.tails = make([][]int32, l.index.Slots())
		}
		u, to := l.index.Owner[p], l.index.Owner[l.now.Peer[p]]
		for t := range int32(len(l.tails)) {
			if l.now.Sources[t] > 0 && u != t && l.mayStep(t, u, to) {
				l.tails[t] = append(l.tails[t], u)
			}
		}
	}
}

// updateLID updates the entries for one LID. whole means that all must be looked at, uncounted
// that the LID is in no load, suspects the slots to look at if not whole.
func (l *Incremental) updateLID(lid int32, whole, uncounted bool, suspects []int32) {
	v := l.now
	dest := v.Dest[lid]
	t := l.index.Owner[dest]
	loaded := v.CarriesLoad(dest)
	hops, _ := l.dist.distancesTo(t)
	l.serial++
	l.lids++
	farthest := uint8(0)
	add := func(s int32) {
		if l.queuedFor[s] != l.serial {
			l.queuedFor[s] = l.serial
			l.work[hops[s]] = append(l.work[hops[s]], s)
			farthest = max(farthest, hops[s])
		}
	}
	forced := 0
	if whole {
		l.loadColumn(lid)
		for s, num := range l.column {
			if v.Node[s] != fabric.NoNode && (uncounted || !l.mayStay(int32(s), num, dest)) {
				add(int32(s))
				forced++
			}
		}
	} else {
		for _, s := range suspects {
			if !l.mayStay(s, l.entry(s, lid), dest) {
				add(s)
				forced++
			}
		}
	}
	share := loaded && l.tails != nil
	if share {
		for _, s := range l.tails[t] {
			add(s)
		}
	}
	l.flowsSet = forced > l.index.Slots()/manyParts && loaded && !uncounted
	if l.flowsSet {
		l.loadColumn(lid)
		l.sumFlows(dest, v)
	}
	// The nearest first, so that the path from the next switch on is known.
	for h := 0; h <= int(farthest); h++ {
		slices.Sort(l.work[h])
		for _, u := range l.work[h] {
			l.updateEntry(u, lid, dest, loaded, uncounted)
			if !share || l.viaFresh[u] != l.serial {
				continue
			}
			_, neighbours := v.SwitchLinks(u)
			for _, s := range neighbours {
				if l.queuedFor[s] != l.serial && l.mayStep(t, s, u) {
					add(s)
				}
			}
		}
		l.work[h] = l.work[h][:0]
	}
}

// updateEntry updates the entry of slot u. Slots nearer to the destination must be up to date.
func (l *Incremental) updateEntry(u, lid, dest int32, loaded, uncounted bool) {
	t := l.index.Owner[dest]
	num := l.entry(u, lid)
	if u == t {
		l.setEntry(u, lid, fabric.PortNum(dest-l.index.Base[t]))
		return
	}
	stays := l.mayStay(u, num, dest)
	switch {
	case uncounted:
		flow := int64(0)
		if loaded {
			flow = int64(l.now.Sources[u])
		}
		if !stays {
			l.setEntry(u, lid, l.cheapestPort(u, lid, t, flow))
		}
		l.addPath(u, lid, dest, flow)
	case stays && loaded:
		l.shareFresh(u, lid, dest)
	case !stays:
		flow := l.sourcesThrough(u, lid, loaded)
		l.addPath(u, lid, dest, -flow)
		l.setEntry(u, lid, l.cheapestPort(u, lid, t, flow))
		l.addPath(u, lid, dest, flow)
	}
	if num = l.entry(u, lid); num != fabric.NoPath && l.leadsFresh(l.index.Base[u]+int32(num)) {
		l.viaFresh[u] = l.serial
	}
}

// leadsFresh returns true if the path of the current LID by a port has a fresh channel.
func (l *Incremental) leadsFresh(out int32) bool {
	return l.fresh[out] || l.viaFresh[l.index.Owner[l.peer[out]]] == l.serial
}

// If more than 1/manyParts of the switches need another entry, updateLID computes all flows at
// once.
const manyParts = 16

// cheapestPort returns the port of u with the least costly path, fabric.NoPath if there is
// none.
func (l *Incremental) cheapestPort(u, lid, t int32, flow int64) fabric.PortNum {
	best, cost := fabric.NoPath, math.Inf(1)
	ports, neighbours := l.now.SwitchLinks(u)
	for i, p := range ports {
		if !l.mayStep(t, u, neighbours[i]) {
			continue
		}
		num := fabric.PortNum(p - l.index.Base[u])
		if c := l.pathCost(u, num, lid, t, flow); c < cost {
			best, cost = num, c
		}
	}
	return best
}

// shareFresh moves u, whose entry may stay, to a path with a fresh channel if that costs less.
func (l *Incremental) shareFresh(u, lid, dest int32) {
	t := l.index.Owner[dest]
	num := l.entry(u, lid)
	if l.leadsFresh(l.index.Base[u] + int32(num)) {
		return // its path has one already
	}
	now := -1.0
	best, flow := fabric.NoPath, int64(0)
	var cost float64
	ports, neighbours := l.now.SwitchLinks(u)
	for i, p := range ports {
		if !l.leadsFresh(p) || !l.mayStep(t, u, neighbours[i]) {
			continue
		}
		if now < 0 {
			now = l.pathCost(u, num, lid, t, 0)
		}
		// With u's own packets the other path only costs more.
		other := fabric.PortNum(p - l.index.Base[u])
		if l.pathCost(u, other, lid, t, 0) >= now {
			continue
		}
		if best == fabric.NoPath {
			if flow = l.sourcesThrough(u, lid, true); flow == 0 {
				return
			}
			l.addPath(u, lid, dest, -flow)
			best, cost = num, l.pathCost(u, num, lid, t, flow)
		}
		if c := l.pathCost(u, other, lid, t, flow); c < cost {
			best, cost = other, c
		}
	}
	if best != fabric.NoPath {
		l.setEntry(u, lid, best)
		l.addPath(u, lid, dest, flow)
	}
}

// pathCost returns the cost of the path from u by a port, with more routes added on it.
func (l *Incremental) pathCost(u int32, num fabric.PortNum, lid, t int32, more int64) float64 {
	sum := 0.0
	for {
		out := l.index.Base[u] + int32(num)
		sum += cube(float64(uint64(l.load[out]+more) * l.unit[out]))
		if u = l.index.Owner[l.peer[out]]; u == t {
			return sum
		}
		num = l.entry(u, lid)
	}
}

// cube keeps the compiler from fusing its multiplications with an addition: the result would
// then depend on the processor.
func cube(load float64) float64 { return float64(load * load * load) }
