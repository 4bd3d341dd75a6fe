package verify

import (
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
)

// IncrementalChecker checks tables again and again while the fabric and the tables
// change, each time by what changed since the last time, with the guarantee of Check.
// The zero value knows no tables yet.
//
// Of the last tables without fault it keeps a copy, and how many routes and LIDs make
// each channel dependency. It compares new tables with the copy, so that it need not
// trust anyone to say what changed. For each LID of which an entry differs, or whose
// packets used a cable that is gone, it finds in the old tables the switches with another
// path. It takes off what their old paths counted, and follows the new ones. Every other
// switch keeps its old path.
//
// There is no credit loop as long as each channel has a number and all dependencies
// lead to a greater one. It looks only at dependencies that are new, and those on a
// channel whose cable leads elsewhere now. Where one does not rise, it numbers all
// channels again from the dependencies that there are; if that cannot be done there is a
// loop.
//
// It leaves to Check what it does not follow: tables with a pair that is not delivered or
// with a credit loop, so that all findings have their witnesses; multicast; virtual
// lanes; and changes of more than a part of all paths.
//
// Memory: for each switch a byte a LID, a byte a switch, and 8 bytes for each pair of
// its ports. Not safe for concurrent use.
type IncrementalChecker struct {
	now    *fabric.Snapshot // what the tables are for; nil when no tables are known
	stride int              // of rows: the LIDs that there is room for
	rows   []fabric.PortNum // by slot and LID
	// dist is by destination slot and slot: links on a shortest path, see
	// fabric.HopMatrix. Rows are immutable; nil for a slot without CAs that count for load.
	dist   [][]uint8
	at     []int     // by slot: where its pairs of ports begin in pairs
	pairs  []pairUse // by slot, port that packets come in by and port they leave by
	routes []int64   // by port: routes that leave by it
	sent   []int64   // by port: delivered pairs of CAs that leave by it, which are routes or count for no load
	number []int32   // by port: of the channel that comes in there; immutable

	hops         []int64         // delivered pairs by switches passed
	longer       []int64         // of these, those that pass more than needed, by how many more
	dependencies int             // how many of pairs of ports CAs send through
	journal      *checkerJournal // nil unless undo may be called

	checkerScratch
}

// pairUse is how much is sent from one port of a switch to another.
type pairUse struct {
	sent uint32 // delivered pairs of CAs
	lids uint16 // whose packets make the dependency from the switch that the former port is cabled to
}

// checkerScratch is the scratch space of an update.
type checkerScratch struct {
	touched []int32 // slots whose path for the LID at hand differs or may count otherwise
	isIn    []int32 // by slot: the serial of the LID for which it was last among them
	serial  int32
	marks   [][]mark // by LID
	marked  int      // how many marks there are
	rose    []int    // of pairs: those that had no LIDs during an update, or are for a port with another cable
}

// mark means that a slot's path to a LID has to be counted again; with entry also the
// paths of all slots whose packets pass through it.
type mark struct {
	slot  int32
	entry bool
}

// checkerJournal has what undo needs: the values that an update changes in place.
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

// cloneCounts copies what another checker counts in place.
func (w *IncrementalChecker) cloneCounts() {
	for _, counts := range []*[]int64{&w.routes, &w.sent, &w.hops, &w.longer} {
		*counts = slices.Clone(*counts)
	}
}

func newCheckerScratch(slots, lids int) checkerScratch {
	return checkerScratch{isIn: make([]int32, slots), marks: make([][]mark, lids)}
}

// row is a slot's table.
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
