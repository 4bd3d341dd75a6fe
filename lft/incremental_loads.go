package lft

import (
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// loadColumn sets column to the entries for a LID.
func (l *Incremental) loadColumn(lid int32) {
	for s := range l.column {
		l.column[s] = l.rows[s*l.stride+int(lid)]
	}
}

// sumFlows sets flow to the number of sources of v that send through each slot, by the
// entries in column, to a LID with destination dest. It takes O(switches).
func (l *Incremental) sumFlows(dest int32, v *fabric.Snapshot) {
	root := l.index.Owner[dest]
	clear(l.waiting)
	for s, num := range l.column {
		l.flow[s], l.next[s] = int64(v.Sources[s]), -1
		if int32(s) == root || num == fabric.NoPath {
			continue
		}
		if peer := l.peer[l.index.Base[s]+int32(num)]; peer >= 0 {
			l.next[s] = l.index.Owner[peer]
			l.waiting[l.next[s]]++
		}
	}
	l.tree = l.tree[:0]
	for s, n := range l.waiting {
		if n == 0 {
			l.tree = append(l.tree, int32(s))
		}
	}
	for i := 0; i < len(l.tree); i++ {
		s := l.tree[i]
		to := l.next[s]
		if to < 0 {
			continue
		}
		l.flow[to] += l.flow[s]
		if l.waiting[to]--; l.waiting[to] == 0 {
			l.tree = append(l.tree, to)
		}
	}
}

// addFlows adds flow along column to the loads, or takes it off if sign is -1.
func (l *Incremental) addFlows(dest int32, sign int64) {
	root := l.index.Owner[dest]
	for s, num := range l.column {
		if num != fabric.NoPath && int32(s) != root {
			l.load[l.index.Base[s]+int32(num)] += sign * l.flow[s]
		}
	}
}

// addPath adds routes to the loads on the path from slot s, and to the flow of the slots on
// it: that keeps flow right for slots whose entries are updated later.
func (l *Incremental) addPath(s, lid, dest int32, routes int64) {
	root := l.index.Owner[dest]
	for s != root {
		num := l.entry(s, lid)
		if num == fabric.NoPath {
			return
		}
		out := l.index.Base[s] + int32(num)
		l.load[out] += routes
		l.flow[s] += routes
		s = l.index.Owner[l.peer[out]]
	}
}

// sourcesThrough returns how many sources send packets to a LID through a slot by the
// present entries; 0 if the LID carries no load.
func (l *Incremental) sourcesThrough(s, lid int32, loaded bool) int64 {
	if !loaded {
		return 0
	}
	if l.flowsSet {
		return l.flow[s]
	}
	l.sumFlowsThrough(s, lid)
	return l.flow[s]
}

// sumFlowsThrough sets tree to the slots that send a LID through slot s by the present
// entries, s last, in the order of sumFlows. It sets flow of these slots.
func (l *Incremental) sumFlowsThrough(s, lid int32) {
	l.above = append(l.above[:0], s)
	for i := 0; i < len(l.above); i++ {
		u := l.above[i]
		l.flow[u], l.waiting[u] = int64(l.now.Sources[u]), 0
		for p := l.index.Base[u]; p < l.index.Base[u+1]; p++ {
			if peer := l.peer[p]; peer >= 0 {
				if from := l.index.Owner[peer]; int32(l.entry(from, lid)) == peer-l.index.Base[from] {
					l.above = append(l.above, from)
					l.next[from] = u
					l.waiting[u]++
				}
			}
		}
	}
	slices.Sort(l.above)
	l.tree = l.tree[:0]
	for _, u := range l.above {
		if l.waiting[u] == 0 {
			l.tree = append(l.tree, u)
		}
	}
	for i := 0; l.tree[i] != s; i++ {
		u := l.tree[i]
		to := l.next[u]
		l.flow[to] += l.flow[u]
		if l.waiting[to]--; l.waiting[to] == 0 {
			l.tree = append(l.tree, to)
		}
	}
}
