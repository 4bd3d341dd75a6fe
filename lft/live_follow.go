package lft

import (
	"math"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// Follow goes on to another fabric. It is false when the fabric has switches that
// NewLive did not know, higher LIDs, or ways that are too long; then l is of no use any
// more. Switches may be gone and come back, and be in other places.
//
// most bounds the LIDs of which all entries have to be looked at, 0 for no bound: with
// more of them it is false too.
func (l *Live) Follow(f *fabric.Fabric, most int) bool {
	v, ok := l.frame.View(f)
	if !ok || len(v.Dest) > l.stride {
		return false
	}
	l.lids = 0
	if before := l.between(v); before != nil && !l.follow(before, most) {
		return false
	}
	return l.follow(v, most)
}

// LIDs is how many the last Follow looked at.
func (l *Live) LIDs() int { return l.lids }

// between is v without the cables of ports that had another cable before, nil when
// there are none: nothing is ever changed for another.
func (l *Live) between(v *fabric.View) *fabric.View {
	var b *fabric.View
	for p, peer := range v.Peer {
		if was := l.view.Peer[p]; peer < 0 || was < 0 || was == peer {
			continue
		}
		if b == nil {
			c := *v
			c.Peer = slices.Clone(v.Peer)
			b = &c
		}
		b.Peer[p], b.Peer[peer] = fabric.NoCable, fabric.NoCable
	}
	return b
}

// task is a slot with an entry for a LID that may not serve any more.
type task struct{ lid, slot int32 }

func (l *Live) follow(v *fabric.View, most int) bool {
	old, wasRank := l.view, l.rank
	lids := max(len(old.Dest), len(v.Dest))
	uncounted := make([]bool, lids)
	for _, lid := range l.broken {
		uncounted[lid] = true
	}
	l.broken = nil
	l.leave(v, uncounted)

	l.view, l.rank, l.order = v, nil, l.order[:0]
	l.turn(v)
	l.ways.cables(l.frame, v)
	l.unit = l.units(v.Fabric)
	l.fresh = make([]bool, len(v.Peer))
	other := make([]bool, len(v.Peer)) // ports of which old entries may not serve any more
	var changed []int32                // slots with some
	anyFresh := false
	for s := range int32(l.ways.n) {
		any := false
		for p := l.frame.Base[s]; p < l.frame.Base[s+1] && v.Node[s] != fabric.NoNode; p++ {
			is, was := v.Peer[p], old.Peer[p]
			switch {
			case is < 0 && was < 0:
				continue
			case is != was:
				l.fresh[p] = is >= 0
				anyFresh = anyFresh || is >= 0
			case l.rank == nil || l.upward(wasRank, s, is) == l.upward(l.rank, s, is):
				continue
			}
			other[p], any = true, true
		}
		if any {
			changed = append(changed, s)
		}
	}
	again, ok := l.growAgain(old, changed)
	if !ok {
		return false
	}
	if most > 0 {
		for lid, dest := range v.Dest {
			if dest != fabric.Nowhere && (uncounted[lid] || again[l.frame.Owner[dest]]) {
				most--
			}
		}
		if most < 0 {
			return false
		}
	}
	tasks := l.tasks(old, changed, other, lids)
	l.tails = nil
	if anyFresh {
		l.findTails()
	}
	for lid := range int32(len(v.Dest)) {
		if v.Dest[lid] == fabric.Nowhere {
			continue
		}
		whole := uncounted[lid] || again[l.frame.Owner[v.Dest[lid]]]
		if list := tasks(lid); whole || len(list) > 0 || l.tails != nil && len(l.tails[l.frame.Owner[v.Dest[lid]]]) > 0 {
			l.mend(lid, whole, uncounted[lid], list)
		}
	}
	for s := range int32(l.ways.n) {
		if old.Node[s] != fabric.NoNode && v.Node[s] == fabric.NoNode {
			for lid := range l.row(s) {
				l.row(s)[lid] = fabric.NoPath
			}
		}
	}
	return true
}

func (l *Live) upward(rank []int32, s, peer int32) bool { return rank[l.frame.Owner[peer]] < rank[s] }

// leave takes off the loads what is not there any more: LIDs, which it adds to uncounted
// where they are elsewhere, and sources. And it prepares peer.
func (l *Live) leave(v *fabric.View, uncounted []bool) {
	old := l.view
	l.peer = slices.Clone(v.Peer)
	for p, peer := range l.peer {
		if peer < 0 {
			l.peer[p] = old.Peer[p]
		}
	}
	for lid := range int32(len(uncounted)) {
		was, is := old.To(int(lid)), v.To(int(lid))
		if was == is {
			continue
		}
		if was != fabric.Nowhere && !uncounted[lid] && l.isCA(was) {
			l.gather(lid)
			l.flows(was, old)
			l.count(was, -1)
		}
		uncounted[lid] = true
		if is == fabric.Nowhere {
			for s := range int32(l.ways.n) {
				*l.entry(s, lid) = fabric.NoPath
			}
		}
	}
	for s := range int32(l.ways.n) {
		more := int64(v.Sources[s]) - int64(old.Sources[s])
		if more == 0 || old.Node[s] == fabric.NoNode {
			continue // those of a new switch count when it gets entries
		}
		for lid, dest := range v.Dest {
			if dest != fabric.Nowhere && !uncounted[lid] && l.isCA(dest) {
				l.walk(s, int32(lid), dest, more)
			}
		}
	}
}

// walk adds routes to the loads on the way from a slot, and to flow: a slot farther on
// that is settled later has so many the fewer when they are taken off.
func (l *Live) walk(s, lid, dest int32, routes int64) {
	root := l.frame.Owner[dest]
	for s != root {
		num := *l.entry(s, lid)
		if num == fabric.NoPath {
			return
		}
		out := l.frame.Base[s] + int32(num)
		l.load[out] += routes
		l.flow[s] += routes
		s = l.frame.Owner[l.peer[out]]
	}
}

// growAgain computes the distances that are not right any more, and says to which slots.
func (l *Live) growAgain(old *fabric.View, changed []int32) (again []bool, ok bool) {
	again = make([]bool, l.ways.n)
	queue := make([]int32, 0, l.ways.n)
	for t := range int32(l.ways.n) {
		if l.view.Node[t] == fabric.NoNode {
			continue
		}
		again[t] = old.Node[t] == fabric.NoNode
		for i := 0; i < len(changed) && !again[t]; i++ {
			again[t] = !l.right(t, changed[i])
		}
		if again[t] && !l.grow(t, queue) {
			return nil, false
		}
	}
	return again, true
}

// tasks finds what is to be looked at, by LID.
func (l *Live) tasks(old *fabric.View, changed []int32, other []bool, lids int) func(lid int32) []task {
	v := l.view
	var list []task
	for s := range int32(l.ways.n) {
		if v.Node[s] != fabric.NoNode && old.Node[s] == fabric.NoNode {
			for lid := range int32(len(v.Dest)) {
				list = append(list, task{lid, s})
			}
		}
	}
	for _, s := range changed {
		ports := other[l.frame.Base[s]:l.frame.Base[s+1]]
		for lid, num := range l.row(s)[:len(v.Dest)] {
			if int(num) < len(ports) && ports[num] {
				list = append(list, task{int32(lid), s})
			}
		}
	}
	from := make([]int32, lids+2)
	for i := range list {
		from[list[i].lid+2]++
	}
	for i := 2; i < len(from); i++ {
		from[i] += from[i-1]
	}
	sorted := make([]task, len(list))
	for _, x := range list {
		sorted[from[x.lid+1]] = x
		from[x.lid+1]++
	}
	return func(lid int32) []task { return sorted[from[lid]:from[lid+1]] }
}

// findTails fills in tails.
func (l *Live) findTails() {
	l.tails = make([][]int32, l.ways.n)
	for p, fresh := range l.fresh {
		if !fresh {
			continue
		}
		u, to := l.frame.Owner[p], l.frame.Owner[l.view.Peer[p]]
		for t := range int32(l.ways.n) {
			if l.view.Sources[t] > 0 && u != t && l.legal(t, u, to) {
				l.tails[t] = append(l.tails[t], u)
			}
		}
	}
}

// mend puts the entries for one LID in order. whole says that all are to be looked at,
// and uncounted that the LID is in no load.
func (l *Live) mend(lid int32, whole, uncounted bool, tasks []task) {
	v := l.view
	dest := v.Dest[lid]
	t := l.frame.Owner[dest]
	ca := l.isCA(dest)
	hops, _ := l.ways.row(t)
	l.serial++
	most := uint8(0)
	add := func(s int32) {
		if l.isIn[s] != l.serial {
			l.isIn[s] = l.serial
			l.work[hops[s]] = append(l.work[hops[s]], s)
			most = max(most, hops[s])
		}
	}
	forced := 0
	if whole {
		l.gather(lid)
		for s, num := range l.column {
			if v.Node[s] != fabric.NoNode && (uncounted || !l.proper(int32(s), num, dest)) {
				add(int32(s))
				forced++
			}
		}
	} else {
		for _, x := range tasks {
			if !l.proper(x.slot, *l.entry(x.slot, lid), dest) {
				add(x.slot)
				forced++
			}
		}
	}
	if ca && l.tails != nil {
		for _, s := range l.tails[t] {
			add(s)
		}
	}
	l.counted = forced > l.ways.n/manyParts && ca && !uncounted
	if l.counted {
		l.gather(lid)
		l.flows(dest, v)
	}
	l.lids++
	// The nearest first, so that the way on is settled.
	for h := 0; h <= int(most); h++ {
		if len(l.work[h]) == 0 {
			continue
		}
		slices.Sort(l.work[h])
		for _, u := range l.work[h] {
			l.settle(u, lid, dest, ca, uncounted)
			if !ca || l.tails == nil || l.viaFresh[u] != l.serial {
				continue
			}
			for _, s := range l.ways.to[l.ways.first[u]:l.ways.first[u+1]] {
				if l.isIn[s] != l.serial && l.legal(t, s, u) {
					add(s)
				}
			}
		}
		l.work[h] = l.work[h][:0]
	}
}

// settle chooses the entry of one slot. All that are nearer have theirs.
func (l *Live) settle(u, lid, dest int32, ca, uncounted bool) {
	t := l.frame.Owner[dest]
	entry := l.entry(u, lid)
	if u == t {
		*entry = fabric.PortNum(dest - l.frame.Base[t])
		return
	}
	proper := l.proper(u, *entry, dest)
	switch {
	case uncounted:
		flow := int64(0)
		if ca {
			flow = int64(l.view.Sources[u])
		}
		if !proper {
			*entry = l.choose(u, lid, t, flow)
		}
		l.walk(u, lid, dest, flow)
	case proper && ca:
		l.share(u, lid, dest)
	case !proper:
		flow := l.through(u, lid, ca)
		l.walk(u, lid, dest, -flow)
		*entry = l.choose(u, lid, t, flow)
		l.walk(u, lid, dest, flow)
	}
	if out := l.frame.Base[u] + int32(*entry); *entry != fabric.NoPath && l.leadsFresh(out) {
		l.viaFresh[u] = l.serial
	}
}

// leadsFresh says whether the way of the LID at hand by a port has a channel that is to
// get a share.
func (l *Live) leadsFresh(out int32) bool {
	return l.fresh[out] || l.viaFresh[l.frame.Owner[l.peer[out]]] == l.serial
}

// manyParts: if more than one in so many switches need another entry, all flows are
// computed at once.
const manyParts = 16

// through counts the sources that send a LID through a slot by the entries that there are
// at the moment.
func (l *Live) through(s, lid int32, ca bool) int64 {
	if !ca {
		return 0
	}
	if l.counted {
		return l.flow[s]
	}
	sum := int64(0)
	l.tree = append(l.tree[:0], s)
	for i := 0; i < len(l.tree); i++ {
		u := l.tree[i]
		sum += int64(l.view.Sources[u])
		for p := l.frame.Base[u]; p < l.frame.Base[u+1]; p++ {
			if peer := l.peer[p]; peer >= 0 {
				if from := l.frame.Owner[peer]; int32(*l.entry(from, lid)) == peer-l.frame.Base[from] {
					l.tree = append(l.tree, from)
				}
			}
		}
	}
	return sum
}

// choose finds the port of u with the least costly way, fabric.NoPath if there is none.
func (l *Live) choose(u, lid, t int32, flow int64) fabric.PortNum {
	best, cost := fabric.NoPath, math.Inf(1)
	for i := l.ways.first[u]; i < l.ways.first[u+1]; i++ {
		if !l.legal(t, u, l.ways.to[i]) {
			continue
		}
		num := fabric.PortNum(l.ways.out[i] - l.frame.Base[u])
		if c := l.cost(u, num, lid, t, flow); c < cost {
			best, cost = num, c
		}
	}
	return best
}

// share lets u, whose entry may stay, have a way by a channel that is to get a share, if
// that costs less.
func (l *Live) share(u, lid, dest int32) {
	t := l.frame.Owner[dest]
	entry := l.entry(u, lid)
	if l.leadsFresh(l.frame.Base[u] + int32(*entry)) {
		return // it has
	}
	now := -1.0
	best, flow := fabric.NoPath, int64(0)
	var cost float64
	for i := l.ways.first[u]; i < l.ways.first[u+1]; i++ {
		if !l.leadsFresh(l.ways.out[i]) || !l.legal(t, u, l.ways.to[i]) {
			continue
		}
		if now < 0 {
			now = l.cost(u, *entry, lid, t, 0)
		}
		// With its own packets it costs no less than without.
		num := fabric.PortNum(l.ways.out[i] - l.frame.Base[u])
		if l.cost(u, num, lid, t, 0) >= now {
			continue
		}
		if best == fabric.NoPath {
			if flow = l.through(u, lid, true); flow == 0 {
				return
			}
			l.walk(u, lid, dest, -flow)
			best, cost = *entry, l.cost(u, *entry, lid, t, flow)
		}
		if c := l.cost(u, num, lid, t, flow); c < cost {
			best, cost = num, c
		}
	}
	if best != fabric.NoPath {
		*entry = best
		l.walk(u, lid, dest, flow)
	}
}

// cost is that of the way from u by a port, with more routes on it.
func (l *Live) cost(u int32, num fabric.PortNum, lid, t int32, more int64) float64 {
	sum := 0.0
	for {
		out := l.frame.Base[u] + int32(num)
		sum += cube(float64(uint64(l.load[out]+more) * l.unit[out]))
		if u = l.frame.Owner[l.peer[out]]; u == t {
			return sum
		}
		num = *l.entry(u, lid)
	}
}
