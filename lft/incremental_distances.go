package lft

import (
	"slices"
	"sync/atomic"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
)

// distances holds how far switches are from each other by the engine's rule.
type distances struct {
	n    int
	hops []uint8 // by destination slot and slot: number of links, or fabric.Unreachable
	down []bool  // likewise: from there paths only go down the order
}

// formerDistances is a row of distances before it was changed.
type formerDistances struct {
	slot int32
	hops []uint8
	down []bool
}

// distancesTo returns the distances to slot t.
func (d *distances) distancesTo(t int32) (hops []uint8, down []bool) {
	a, b := int(t)*d.n, int(t+1)*d.n
	return d.hops[a:b], d.down[a:b]
}

// searchAll computes all distances. It returns false if one is greater than can be counted.
func (l *Incremental) searchAll() bool {
	var tooLong atomic.Bool
	newQueue := func() []int32 { return make([]int32, 0, l.dist.n) }
	par.EachWith(l.dist.n, newQueue, func(queue []int32, t int) {
		if l.now.Node[t] != fabric.NoNode && !l.searchDistances(int32(t), queue) {
			tooLong.Store(true)
		}
	})
	return !tooLong.Load()
}

// searchStale computes the distances to slot t again if t is new, or if they no
// longer hold at a slot in changed. searched marks each such t. ok is false if a
// distance is too great.
func (l *Incremental) searchStale(old *fabric.Snapshot, changed []int32) (searched []bool, ok bool) {
	searched = make([]bool, l.dist.n)
	queue := make([]int32, 0, l.dist.n)
	for t := range int32(l.dist.n) {
		if l.now.Node[t] == fabric.NoNode {
			continue
		}
		if old.Node[t] != fabric.NoNode && !slices.ContainsFunc(changed, func(u int32) bool { return !l.distanceHolds(t, u) }) {
			continue
		}
		searched[t] = true
		if l.journal != nil {
			hops, down := l.dist.distancesTo(t)
			l.journal.dist = append(l.journal.dist, formerDistances{t, slices.Clone(hops), slices.Clone(down)})
		}
		if known := old.Node[t] != fabric.NoNode; !(known && l.mendDistances(t, changed, queue)) && !l.searchDistances(t, queue) {
			return nil, false
		}
	}
	return searched, true
}

// mendDistances updates the distances to slot t, starting at the slots in changed. It returns
// false once it has looked at more slots than a search is worth. The result is that of a
// search: distances that all follow from the neighbours' are unique, level by level.
func (l *Incremental) mendDistances(t int32, changed, queue []int32) bool {
	hops, down := l.dist.distancesTo(t)
	queue = append(queue[:0], changed...)
	for i := 0; i < len(queue); i++ {
		u := queue[i]
		least, onlyDown := l.distanceFrom(t, u)
		if hops[u] == least && down[u] == onlyDown {
			continue
		}
		if i > l.dist.n/2 || least == fabric.MaxHops {
			return false
		}
		hops[u], down[u] = least, onlyDown
		_, neighbours := l.now.SwitchLinks(u)
		queue = append(queue, neighbours...)
	}
	return true
}

// searchDistances computes the distances to slot t in O(channels). It returns false if one is
// greater than can be counted.
func (l *Incremental) searchDistances(t int32, queue []int32) bool {
	hops, down := l.dist.distancesTo(t)
	for s := range hops {
		hops[s], down[s] = fabric.Unreachable, false
	}
	hops[t], down[t] = 0, true
	queue = append(queue[:0], t)
	for from := 0; from < len(queue); {
		to := len(queue)
		for _, s := range queue[from:to] {
			_, neighbours := l.now.SwitchLinks(s)
			for _, u := range neighbours {
				if hops[u] != fabric.Unreachable || !down[s] && l.isAbove(u, s) {
					continue
				}
				if hops[s] == fabric.MaxHops {
					return false
				}
				hops[u] = hops[s] + 1
				queue = append(queue, u)
			}
		}
		for _, u := range queue[to:] {
			_, down[u] = l.distanceFrom(t, u)
		}
		from = to
	}
	return true
}

// isAbove returns true if slot u is above its neighbour s in the order; false without an order.
func (l *Incremental) isAbove(u, s int32) bool { return l.rank != nil && l.rank[u] < l.rank[s] }

// distanceFrom returns the distance from slot u to slot t that follows from those of u's
// neighbours, and true if u only goes down, see IncrementalEngine.
func (l *Incremental) distanceFrom(t, u int32) (least uint8, onlyDown bool) {
	hops, down := l.dist.distancesTo(t)
	if u == t {
		return 0, true
	}
	lower, upper, farthest := fabric.Unreachable, fabric.Unreachable, uint8(0)
	_, neighbours := l.now.SwitchLinks(u)
	for _, v := range neighbours {
		above := l.isAbove(v, u)
		if above {
			farthest = max(farthest, hops[v])
		}
		switch {
		case hops[v] >= fabric.MaxHops:
		case above:
			upper = min(upper, hops[v]+1)
		case down[v]:
			lower = min(lower, hops[v]+1)
		}
	}
	return min(lower, upper), lower < upper || lower == upper && farthest > lower
}

// distanceHolds returns true if the distance from slot u to slot t agrees with those of u's
// neighbours.
func (l *Incremental) distanceHolds(t, u int32) bool {
	hops, down := l.dist.distancesTo(t)
	least, onlyDown := l.distanceFrom(t, u)
	return hops[u] == least && down[u] == onlyDown
}

// mayStep returns true if packets to slot t may go from u to its neighbour v.
func (l *Incremental) mayStep(t, u, v int32) bool {
	hops, down := l.dist.distancesTo(t)
	if hops[u] == fabric.Unreachable || hops[v]+1 != hops[u] {
		return false
	}
	if l.isAbove(v, u) {
		return !down[u]
	}
	return down[v]
}

// mayStay returns true if the engine allows slot u to use port num for a LID with destination
// dest.
func (l *Incremental) mayStay(u int32, num fabric.PortNum, dest int32) bool {
	t := l.index.Owner[dest]
	if u == t {
		return l.index.Base[t]+int32(num) == dest
	}
	if hops, _ := l.dist.distancesTo(t); hops[u] == fabric.Unreachable {
		return num == fabric.NoPath
	}
	out := l.index.Base[u] + int32(num)
	if num == fabric.ManagementPort || out >= l.index.Base[u+1] || l.now.Peer[out] < 0 {
		return false
	}
	return l.mayStep(t, u, l.index.Owner[l.now.Peer[out]])
}

// allMayStay returns true if mayStay is true for all entries in column.
func (l *Incremental) allMayStay(dest int32) bool {
	for s, num := range l.column {
		if l.now.Node[s] != fabric.NoNode && !l.mayStay(int32(s), num, dest) {
			return false
		}
	}
	return true
}
