package verify

import (
	"context"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
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

// maxPairs bounds the pairs of ports of all switches.
const maxPairs = 100 << 20

// largeShare is the part of all paths from which on it is quicker to check all from
// scratch: one in this many.
const largeShare = 16

// Check returns what the function Check finds in a state, whose fabric is v.Fabric. Where it went by
// what changed, which the bool says, the Result has no notes and no Certificate. Where
// all was checked, Start makes the next go by what changed.
func (w *IncrementalChecker) Check(ctx context.Context, v *fabric.Snapshot, s *state.State, opt Options) (*Result, bool, error) {
	if r := w.checkChanges(v, s, &opt, false); r != nil {
		return r, true, nil
	}
	r, err := Check(ctx, s, opt)
	return r, false, err
}

// CheckAll is Check with all notes: the Result is that of the function Check, without a Certificate.
// Where there are notes that what changed does not tell, it checks all.
func (w *IncrementalChecker) CheckAll(ctx context.Context, v *fabric.Snapshot, s *state.State, opt Options) (*Result, error) {
	if r := w.checkChanges(v, s, &opt, true); r != nil {
		return r, ctx.Err()
	}
	return Check(ctx, s, opt)
}

// checkChanges checks what changed, with notes or without. It returns nil where that does not tell
// all that the function Check would.
func (w *IncrementalChecker) checkChanges(v *fabric.Snapshot, s *state.State, opt *Options, notes bool) *Result {
	if !opt.Complete || s.SL2VL != nil || s.PathSLs != nil || s.Multicast != nil || v.Present != v.Fabric.NumSwitches() || !w.follow(v, s.Tables) {
		return nil
	}
	r, idle := w.result()
	if notes && (r.Unicast.NonMinimal > 0 || w.hasStale()) {
		return nil
	}
	opt.Buffer.report(r)
	reportIdle(r, v.Fabric, s.Tables, idle, s.Order, notes)
	r.updateVerdict()
	return r
}

// Holds returns true if the last tables that the checker knows are those for v.
func (w *IncrementalChecker) Holds(v *fabric.Snapshot) bool { return w.now == v }

// follow calls update. If that returns false, no tables are known from then on.
func (w *IncrementalChecker) follow(v *fabric.Snapshot, t *lft.Tables) bool {
	if w.now != nil && !w.update(v, t) {
		w.now = nil
	}
	return w.now != nil
}

// hasStale returns true if there are entries for LIDs that no port has.
func (w *IncrementalChecker) hasStale() bool {
	for lid, dest := range w.now.Dest {
		for s := range w.now.Node {
			if dest == fabric.NoDestination && w.entry(int32(s), int32(lid)) != fabric.NoPath {
				return true
			}
		}
	}
	return false
}

// Begin is for a caller whose next tables differ little from those for v. It goes back to these if
// they are those of the last call of Begin, and has the next call of Begin do so.
func (w *IncrementalChecker) Begin(v *fabric.Snapshot) {
	if w.journal != nil && w.now != v && w.journal.before.now == v {
		w.undo()
	}
	w.journal = nil // that of earlier changes
	w.journal = &checkerJournal{before: *w}
	w.cloneCounts()
}

// Count is Check for a caller that wants no findings. It also looks only at changes if there are
// switches without a cable. The Result is nil for tables that have a fault or that it cannot follow:
// then the function Check can tell more. Else all packets between switches that are present arrive,
// there is no credit loop, and the Result has the counts of unicast traffic and of the loads.
func (w *IncrementalChecker) Count(v *fabric.Snapshot, t *lft.Tables) *Result {
	if !w.follow(v, t) {
		return nil
	}
	r, _ := w.result()
	return r
}

// undo takes back what has changed since Begin.
func (w *IncrementalChecker) undo() {
	for _, e := range slices.Backward(w.journal.entries) {
		w.rows[e.at] = e.num
	}
	for _, p := range slices.Backward(w.journal.pairs) {
		w.pairs[p.at] = p.use
	}
	scratch := w.checkerScratch
	*w = w.journal.before
	w.checkerScratch = scratch
}

// Clone is an independent copy, for another goroutine. It cannot go back.
func (w *IncrementalChecker) Clone() *IncrementalChecker {
	c := *w
	c.journal = nil
	c.rows, c.pairs = slices.Clone(w.rows), slices.Clone(w.pairs)
	c.cloneCounts()
	c.dist = slices.Clone(w.dist)
	c.checkerScratch = newCheckerScratch(len(w.isIn), w.stride)
	return &c
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

// result counts what Check counts, and lists the channels between switches without routes.
func (w *IncrementalChecker) result() (r *Result, idle []fabric.PortID) {
	f, x := w.now.Fabric, w.now.Index
	r = Unverified(f)
	r.Unicast.Pairs, r.Management.Pairs = countPairs(f)
	r.Unicast.setHops(w.hops)
	for extra, n := range w.longer {
		if n > 0 {
			r.Unicast.NonMinimal += n
			r.Unicast.MaxDetour = extra
		}
	}
	r.CreditLoops.Dependencies = w.dependencies
	r.CreditLoops.Channels = text.CountIf(w.sent, func(sent int64) bool { return sent > 0 })
	idle = balance(r, f, func(p fabric.PortID) int64 {
		return w.routes[x.Base[w.now.Slot[f.Owner(p)]]+int32(f.Num(p))]
	})
	return r, idle
}

// Start takes a copy of tables of v.Fabric that Check has found to be r, on one VL and
// without multicast, if they can be followed. O(switches x LIDs).
func (w *IncrementalChecker) Start(v *fabric.Snapshot, t *lft.Tables, r *Result) {
	*w = IncrementalChecker{}
	x := v.Index
	n := x.Slots()
	hops := v.Fabric.Distances()
	if len(r.Undecided) > 0 || r.Unicast.Unreachable+r.Unicast.Loops+r.Management.Unreachable+r.Management.Loops > 0 ||
		r.CreditLoops.Count+r.Management.CreditLoops > 0 || n*n > maxMatrix || !v.Whole || hops.TooLong() {
		return
	}
	w.at = make([]int, n)
	pairs := 0
	for s := range n {
		w.at[s] = pairs
		ports := int(x.Base[s+1] - x.Base[s])
		pairs += ports * ports
	}
	if pairs > maxPairs {
		return
	}
	w.now = v
	w.stride = (int(x.MaxLID)/lft.BlockSize + 1) * lft.BlockSize
	w.rows = make([]fabric.PortNum, n*w.stride)
	for slot, s := range v.Node {
		from := []fabric.PortNum(nil)
		if s != fabric.NoNode {
			from = t.Row(s)
		}
		row := w.row(int32(slot))
		for i := copy(row, from); i < len(row); i++ {
			row[i] = fabric.NoPath
		}
	}
	w.copyDistances(hops)
	w.pairs = make([]pairUse, pairs)
	w.routes, w.sent = make([]int64, x.NumPorts()), make([]int64, x.NumPorts())
	w.hops, w.longer = make([]int64, n+2), make([]int64, n+2)
	w.checkerScratch = newCheckerScratch(n, w.stride)
	if !w.countAll() || !w.renumber() {
		w.now = nil
	}
}

// copyDistances fills in dist for the slots with CAs that count for load.
func (w *IncrementalChecker) copyDistances(hops *fabric.HopMatrix) {
	w.dist = make([][]uint8, len(w.now.Node))
	for t, sources := range w.now.Sources {
		if sources == 0 {
			continue
		}
		to := hops.To(w.now.Node[t])
		row := make([]uint8, len(w.now.Node))
		for slot, s := range w.now.Node {
			row[slot] = fabric.Unreachable
			if s != fabric.NoNode {
				row[slot] = to[s]
			}
		}
		w.dist[t] = row
	}
}

// countAll counts every path. It returns false when not all is delivered.
func (w *IncrementalChecker) countAll() bool {
	for lid, dest := range w.now.Dest {
		if dest == fabric.NoDestination {
			continue
		}
		for s, node := range w.now.Node {
			if node != fabric.NoNode && !w.countPath(w.now, w.dist, int32(s), int32(lid), dest, 1) {
				return false
			}
		}
	}
	return true
}

// MayMix returns true if packets may meet entries of the last tables and of t, for the same fabric,
// in any mixture, as they do while a subnet manager writes t. Then all dependencies of both, and
// those from an entry of one to an entry of the other, lead to greater numbers: there is no
// credit loop and no forwarding loop. It is false for tables that the checker does not know.
// O(switches x LIDs).
func (w *IncrementalChecker) MayMix(t *lft.Tables) bool {
	if w.now == nil || w.now.Present != t.Switches() {
		return false
	}
	x := &mixer{IncrementalChecker: w, tables: t}
	for slot, node := range w.now.Node {
		if node == fabric.NoNode {
			continue
		}
		row, table := w.row(int32(slot)), t.Row(node)
		for lid, dest := range w.now.Dest {
			if old, num := row[lid], lft.Entry(table, fabric.LID(lid)); dest != fabric.NoDestination && old != num {
				x.mixAt(int32(slot), int32(lid), old)
				x.mixAt(int32(slot), int32(lid), num)
			}
		}
	}
	ok, number := true, w.number
	for _, i := range x.added {
		if !w.rises(i) {
			ok = w.renumber()
			break
		}
	}
	if !ok {
		w.number = number
	}
	for _, i := range x.added {
		w.pairs[i].lids = 0
	}
	return ok
}

// mixer adds the dependencies of mixtures of tables to those of the last tables.
type mixer struct {
	*IncrementalChecker
	tables *lft.Tables
	added  []int // of pairs
}

// entries returns the entries of a slot for a LID in both tables.
func (x *mixer) entries(slot, lid int32) [2]fabric.PortNum {
	return [2]fabric.PortNum{x.entry(slot, lid), lft.Entry(x.tables.Row(x.now.Node[slot]), fabric.LID(lid))}
}

// mixAt adds the dependencies of packets for a LID that leave a slot by a port: on the channels by
// which they come there, and those by which they go on.
func (x *mixer) mixAt(s, lid int32, num fabric.PortNum) {
	v, base := x.now, x.now.Index.Base
	out := base[s] + int32(num)
	if num == fabric.ManagementPort || out >= base[s+1] || v.Peer[out] < 0 {
		return
	}
	for in := base[s]; in < base[s+1]; in++ {
		if peer := v.Peer[in]; peer >= 0 {
			u := v.Index.Owner[peer]
			if from := x.entries(u, lid); int32(from[0]) == peer-base[u] || int32(from[1]) == peer-base[u] {
				x.add(in, out)
			}
		}
	}
	next := v.Index.Owner[v.Peer[out]]
	for _, e := range x.entries(next, lid) {
		if on := base[next] + int32(e); on < base[next+1] {
			x.add(v.Peer[out], on)
		}
	}
}

func (x *mixer) add(in, out int32) {
	if x.now.Peer[out] < 0 {
		return
	}
	if i := x.pair(in, out); x.pairs[i].lids == 0 {
		x.pairs[i].lids = 1
		x.added = append(x.added, i)
	}
}
