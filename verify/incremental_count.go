package verify

import (
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
)

// countPath adds the path from a slot to a LID with destination dest, or takes it off. It
// returns false when the path does not lead there.
func (w *IncrementalChecker) countPath(v *fabric.Snapshot, dist [][]uint8, from, lid, dest int32, sign int64) bool {
	x := v.Index
	root := x.Owner[dest]
	ca := dest != x.Base[root]
	sent, routes := int64(0), int64(0)
	if ca {
		sent = int64(v.Sources[from] + v.Others[from])
		if v.CarriesLoad(dest) {
			routes = int64(v.Sources[from])
		}
		if from == root { // the port does not send to itself
			sent--
			routes = max(0, routes-1)
		}
	}
	sent, routes = sent*sign, routes*sign
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
				w.countDependency(in, out, passed == 2, sent, routes, sign)
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
		w.countDependency(in, out, passed == 2, sent, routes, sign)
		in, s = peer, x.Owner[peer]
	}
	if ca {
		w.hops[passed] += sent
		if routes != 0 { // else there may be no distances
			if extra := passed - 1 - int(dist[root][from]); extra > 0 {
				w.longer[extra] += routes
			}
		}
	}
	return true
}

// countDependency counts packets from in to out, and what the channel of out carries; first
// says that they began at the other end of in.
func (w *IncrementalChecker) countDependency(in, out int32, first bool, sent, routes, sign int64) {
	w.sent[out] += sent
	w.routes[out] += routes
	if in < 0 || !first && sent == 0 {
		return
	}
	i := w.pair(in, out)
	use := &w.pairs[i]
	if w.journal != nil {
		w.journal.pairs = append(w.journal.pairs, formerPair{i, *use})
	}
	if first {
		if use.lids == 0 {
			w.rose = append(w.rose, i)
		}
		use.lids += uint16(sign)
	}
	if sent != 0 {
		was := use.sent
		use.sent += uint32(sent)
		if (was == 0) != (use.sent == 0) {
			w.dependencies += int(sign)
		}
	}
}

// pair is where pairs has what comes in by one port of a switch and leaves by another.
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
	var next []int32
	order := graph.TopologicalOrder(x.NumPorts(), func(in int32) []int32 {
		next = next[:0]
		if v.Peer[in] < 0 {
			return next
		}
		base, end := x.Base[x.Owner[in]], x.Base[x.Owner[in]+1]
		from := w.pair(in, base)
		for i, use := range w.pairs[from : from+int(end-base)] {
			if to := v.Peer[base+int32(i)]; use.lids > 0 && to >= 0 {
				next = append(next, to)
			}
		}
		return next
	})
	w.number = make([]int32, x.NumPorts())
	for i, in := range order {
		w.number[in] = int32(i)
	}
	return len(order) == x.NumPorts()
}

// rises returns true if a dependency leads to a greater number.
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
