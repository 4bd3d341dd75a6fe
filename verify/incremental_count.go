package verify

import (
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// countPath adds the path from a slot to a LID with destination dest, or takes it off. It
// returns false when the path does not lead there.
func (w *IncrementalChecker) countPath(v *fabric.Snapshot, dist [][]uint8, from, lid, dest int32, sign int64) bool {
	x := v.Index
	root := x.Owner[dest]
	ca := dest != x.Base[root]
	sources := int64(0)
	if ca {
		sources = int64(v.Sources[from])
		if from == root {
			sources-- // the port does not send to itself
		}
	}
	sources *= sign
	in := int32(-1) // the port that packets came in by
	passed := 1
	for s := from; ; passed++ {
		num := int32(w.entry(s, lid))
		out := x.Base[s] + num
		if s == root {
			if out != dest {
				return false
			}
			if ca {
				w.routes[out] += sources
				w.countDependency(in, out, passed == 2, sources, sign)
			}
			break
		}
		if num == 0 || out >= x.Base[s+1] || passed > len(v.Node) {
			return false
		}
		peer := v.Peer[out]
		if peer < 0 {
			return false
		}
		w.routes[out] += sources
		w.countDependency(in, out, passed == 2, sources, sign)
		in, s = peer, x.Owner[peer]
	}
	if ca {
		w.hops[passed] += sources
		if int(dist[root][from])+1 < passed {
			w.nonMinimal += sources
		}
	}
	return true
}

// countDependency counts a dependency of packets from in to out; first says that they
// began at the other end of in.
func (w *IncrementalChecker) countDependency(in, out int32, first bool, sources, sign int64) {
	if in < 0 || !first && sources == 0 {
		return
	}
	i := w.pair(in, out)
	if w.journal != nil {
		w.journal.counts = append(w.journal.counts, formerCounts{i, w.flows[i], w.lids[i]})
	}
	if first {
		if w.lids[i] == 0 {
			w.rose = append(w.rose, i)
		}
		w.lids[i] += uint16(sign)
	}
	if sources != 0 {
		was := w.flows[i]
		w.flows[i] += uint32(sources)
		if (was == 0) != (w.flows[i] == 0) {
			w.dependencies += int(sign)
		}
	}
}

// pair is where flows and lids have what comes in by one port of a switch and leaves
// by another.
func (w *IncrementalChecker) pair(in, out int32) int {
	x := w.now.Index
	s := x.Owner[in]
	base := x.Base[s]
	return w.at[s] + int(in-base)*int(x.Base[s+1]-base) + int(out-base)
}

// renumber gives each channel a number so that all dependencies lead to a greater one.
// It returns false when dependencies make a cycle. O(pairs of ports).
func (w *IncrementalChecker) renumber() bool {
	x, v := w.now.Index, w.now
	waiting := make([]int32, x.NumPorts())
	visit := func(in int32, f func(to int32)) {
		s := x.Owner[in]
		from := w.pair(in, x.Base[s])
		for i, lids := range w.lids[from : from+int(x.Base[s+1]-x.Base[s])] {
			if to := v.Peer[x.Base[s]+int32(i)]; lids > 0 && to >= 0 {
				f(to)
			}
		}
	}
	channels := 0
	for in := range int32(x.NumPorts()) {
		if v.Peer[in] >= 0 {
			channels++
			visit(in, func(to int32) { waiting[to]++ })
		}
	}
	queue := make([]int32, 0, channels)
	for in := range int32(x.NumPorts()) {
		if v.Peer[in] >= 0 && waiting[in] == 0 {
			queue = append(queue, in)
		}
	}
	w.number = make([]int32, x.NumPorts())
	for i := 0; i < len(queue); i++ {
		w.number[queue[i]] = int32(i)
		visit(queue[i], func(to int32) {
			if waiting[to]--; waiting[to] == 0 {
				queue = append(queue, to)
			}
		})
	}
	return len(queue) == channels
}

// rises says whether a dependency leads to a greater number.
func (w *IncrementalChecker) rises(pair int) bool {
	x := w.now.Index
	s, _ := slices.BinarySearchFunc(w.at, pair+1, func(at, pair int) int { return at - pair })
	s--
	base := x.Base[s]
	ports := int(x.Base[s+1] - base)
	in, out := base+int32((pair-w.at[s])/ports), base+int32((pair-w.at[s])%ports)
	to := w.now.Peer[out]
	return to < 0 || w.number[in] < w.number[to]
}
