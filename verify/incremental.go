package verify

import (
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
)

// IncrementalChecker checks tables repeatedly while the fabric and the tables change, with the
// guarantee of Check. Each time it checks what changed since the last time. The zero value knows no
// tables yet. A slot numbers a switch for good, see fabric.StableIndex.
//
// It keeps a copy of the last tables without fault, and how many routes and LIDs make each channel
// dependency.
//
// It compares new tables with the copy itself, and trusts no one about changes. For each LID that
// has a changed entry, or whose packets used a cable that is gone, it finds in the old tables the
// switches whose path changes. It subtracts the counts of these old paths, and follows the new
// ones.
//
// There is no credit loop as long as each channel has a number and all
// dependencies lead to greater ones. It looks only at new dependencies, and at
// those on a channel whose cable leads elsewhere now. If one leads to no greater
// number, it numbers all channels again from all dependencies. If this fails,
// there is a loop.
//
// It leaves to Check what it does not follow: tables with a pair that is not delivered or with a
// credit loop, so that all findings have witnesses; multicast; virtual lanes; and changes of a
// large part of all paths.
//
// Memory: for each switch, a byte for each LID, a byte for each switch, and 8 bytes for each pair
// of its ports. It is not safe for concurrent use.
type IncrementalChecker struct {
	now    *fabric.Snapshot // the fabric of the tables; nil if no tables are known
	stride int              // LIDs for which rows have room
	rows   []fabric.PortNum // by slot and LID
	// dist has, by destination slot and slot, the links on a shortest path, see fabric.HopMatrix. Rows
	// are immutable; nil for a slot without CAs that count for load.
	dist   [][]uint8
	at     []int     // by slot: where its part of pairs begins
	pairs  []pairUse // by slot, input port and output port
	routes []int64   // by port: routes that leave by it
	sent   []int64   // by port: delivered pairs of CAs that leave by it, whether they count for load or not
	number []int32   // by port: number of the channel that arrives there; immutable

	hops         []int64         // delivered pairs, by number of switches passed
	longer       []int64         // delivered pairs, by number of switches beyond those needed
	dependencies int             // number of pairs of ports through which CAs send
	journal      *checkerJournal // nil unless undo may be called

	checkerScratch
}

// pairUse counts what goes from one port of a switch to another.
type pairUse struct {
	sent uint32 // delivered pairs of CAs
	lids uint16 // LIDs with packets from the switch behind the input port
}

// checkerScratch is the scratch space of an update.
type checkerScratch struct {
	touched []int32 // slots whose path for the current LID differs or may count differently
	isIn    []int32 // by slot: serial of the last LID for which touched had it
	serial  int32
	marks   [][]mark // by LID
	marked  int      // number of marks
	rose    []int    // indices in pairs that had no LIDs at some time in an update, or whose port has another cable
}

// mark says that a slot's path to a LID must be counted again; if entry is set, also the paths of
// all slots whose packets pass through it.
type mark struct {
	slot  int32
	entry bool
}

// checkerJournal has what undo needs: the former values of what changed in place.
type checkerJournal struct {
	before  IncrementalChecker
	entries []formerEntry
	pairs   []formerPair
}

// formerEntry is an entry of rows before it was changed.
type formerEntry struct {
	at  int
	num fabric.PortNum
}

// formerPair is a pair of ports before it was changed.
type formerPair struct {
	at  int
	use pairUse
}

// cloneCounts copies the counts that are changed in place.
func (w *IncrementalChecker) cloneCounts() {
	for _, counts := range []*[]int64{&w.routes, &w.sent, &w.hops, &w.longer} {
		*counts = slices.Clone(*counts)
	}
}

func newCheckerScratch(slots, lids int) checkerScratch {
	return checkerScratch{isIn: make([]int32, slots), marks: make([][]mark, lids)}
}

// row returns the table of a slot.
func (w *IncrementalChecker) row(slot int32) []fabric.PortNum {
	return w.rows[int(slot)*w.stride : (int(slot)+1)*w.stride]
}

func (w *IncrementalChecker) entry(slot, lid int32) fabric.PortNum {
	return w.rows[int(slot)*w.stride+int(lid)]
}

func (w *IncrementalChecker) setEntry(slot, lid int32, num fabric.PortNum) {
	at := int(slot)*w.stride + int(lid)
	if w.journal != nil && w.rows[at] != num {
		w.journal.entries = append(w.journal.entries, formerEntry{at, w.rows[at]})
	}
	w.rows[at] = num
}

// countPath adds the counts of the path from a slot to a LID with destination dest, or subtracts
// them if sign is -1. It returns false if the path does not lead there.
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
	in := int32(-1) // the port where packets came in
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

// countDependency counts packets from port in to port out, and those on out's channel. first is
// true if the packets began at the switch behind in.
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

// pair returns the index in w.pairs of a pair of ports of a switch.
func (w *IncrementalChecker) pair(in, out int32) int {
	x := w.now.Index
	s := x.Owner[in]
	base := x.Base[s]
	return w.at[s] + int(in-base)*int(x.Base[s+1]-base) + int(out-base)
}

// renumber numbers the channels so that all dependencies lead to greater numbers. It returns false
// if dependencies make a cycle. It takes O(pairs of ports).
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

// rises returns true if the dependency of a pair leads to a greater number.
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
