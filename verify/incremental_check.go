package verify

import (
	"context"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
)

// Check returns what the function Check finds in a state of v.Fabric. The bool is true if it
// checked only what changed; then the Result has no notes and no Certificate. If it is false, call
// Start so that the next check can look only at changes.
func (w *IncrementalChecker) Check(ctx context.Context, v *fabric.Snapshot, s *state.State, opt Options) (*Result, bool, error) {
	if r := w.checkChanges(v, s, &opt, false); r != nil {
		return r, true, nil
	}
	r, err := Check(ctx, s, opt)
	return r, false, err
}

// CheckAll returns the Result of the function Check, with notes but without a Certificate. It
// checks everything if there are notes that changes do not show.
func (w *IncrementalChecker) CheckAll(ctx context.Context, v *fabric.Snapshot, s *state.State, opt Options) (*Result, error) {
	if r := w.checkChanges(v, s, &opt, true); r != nil {
		return r, ctx.Err()
	}
	return Check(ctx, s, opt)
}

// checkChanges checks what changed, with notes or without. It returns nil if the function Check
// might find more.
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

// Holds returns true if the last tables that the checker knows are for v.
func (w *IncrementalChecker) Holds(v *fabric.Snapshot) bool { return w.now == v }

// follow calls update. If that returns false, the checker knows no tables afterwards.
func (w *IncrementalChecker) follow(v *fabric.Snapshot, t *lft.Tables) bool {
	if w.now != nil && !w.update(v, t) {
		w.now = nil
	}
	return w.now != nil
}

// hasStale returns true if some switch has an entry for a LID that no port has.
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

// Call Begin before a check of tables that differ little from those for v. If the last call of
// Begin was for v too, this one first undoes what changed since.
func (w *IncrementalChecker) Begin(v *fabric.Snapshot) {
	if w.journal != nil && w.now != v && w.journal.before.now == v {
		w.undo()
	}
	w.journal = nil // of earlier changes
	w.journal = &checkerJournal{before: *w}
	w.cloneCounts()
}

// Count is Check for callers that need no findings. It looks at changes even if there are switches
// without a cable. It returns nil for tables that have a fault or cannot be followed: then the
// function Check can tell more. Otherwise all packets between present switches arrive, there is no
// credit loop, and the Result has the counts of unicast traffic and the loads.
func (w *IncrementalChecker) Count(v *fabric.Snapshot, t *lft.Tables) *Result {
	if !w.follow(v, t) {
		return nil
	}
	r, _ := w.result()
	return r
}

// undo undoes all changes since Begin.
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

// Clone returns an independent copy, for another goroutine, without undo.
func (w *IncrementalChecker) Clone() *IncrementalChecker {
	c := *w
	c.journal = nil
	c.rows, c.pairs = slices.Clone(w.rows), slices.Clone(w.pairs)
	c.cloneCounts()
	c.dist = slices.Clone(w.dist)
	c.checkerScratch = newCheckerScratch(len(w.isIn), w.stride)
	return &c
}

// result returns the counts of Check, and lists the channels between switches without routes.
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
	idle = countBalance(r, f, func(p fabric.PortID) int64 {
		return w.routes[x.Base[w.now.Slot[f.Owner(p)]]+int32(f.Num(p))]
	})
	return r, idle
}

// maxPairs bounds the pairs of ports, summed over all switches.
const maxPairs = 100 << 20

// Start copies tables of v.Fabric, on one VL and without multicast, for which Check returned r, if
// they can be followed. It takes O(switches x LIDs).
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

// copyDistances sets dist for slots with CAs that count for load.
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

// countAll counts every path. It returns false if some path does not deliver.
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

// MayMix returns true if packets may meet entries of the last tables and of t, for
// the same fabric, in any mixture, as they do while a subnet manager writes t. Then
// all dependencies of both tables, and those from an entry of one to an entry of
// the other, lead to greater numbers: there is no credit loop and no forwarding
// loop. It returns false if the checker knows no tables. It takes O(switches x
// LIDs).
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
	added  []int // indices in pairs
}

// entries returns the entries of a slot for a LID in both tables.
func (x *mixer) entries(slot, lid int32) [2]fabric.PortNum {
	return [2]fabric.PortNum{x.entry(slot, lid), lft.Entry(x.tables.Row(x.now.Node[slot]), fabric.LID(lid))}
}

// mixAt adds the dependencies of packets for a LID that leave a slot by port num: from channels by
// which they come to it, and to channels by which they go on behind it.
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
