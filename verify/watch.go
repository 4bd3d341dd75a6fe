package verify

import (
	"context"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// Watch checks tables again and again while the fabric and the tables change, each
// time by what changed since the last time, with the guarantee of Check. The zero
// value knows nothing yet.
//
// Of the last tables that were without fault it keeps a copy, and how many routes and
// LIDs make each channel dependency. New tables are compared with the copy, so that
// nobody has to say what changed. For each LID of which an entry differs, or whose
// packets used a cable that is gone, the switches with another way are found in the
// old tables; what their old ways counted is taken off, and they are walked anew. A
// switch that is not among them has its way of before, all of it.
//
// There is no credit loop as long as each channel has a number and all dependencies
// lead to a greater one. Only dependencies that are new are looked at, and those on a
// channel whose cable leads elsewhere now; where one does not rise, all channels are
// numbered anew from the dependencies that there are, and if that cannot be done there
// is a loop.
//
// Whatever a Watch does not follow is left to Check: tables with a pair that is not
// delivered or with a credit loop, so that all findings have their witnesses;
// multicast; virtual lanes; switches that it has not seen before; and changes of more
// than a part of all ways.
//
// Memory: for each switch a byte a LID, a byte a switch, and 6 bytes for each pair of
// its ports. Not safe for concurrent use.
type Watch struct {
	frame  *fabric.Frame // nil: nothing is known
	view   *fabric.View
	stride int         // of rows: the LIDs that it has room for
	rows   *lft.Tables // by slot instead of NodeID, whole blocks
	dist   []uint8     // by destination slot and slot: links on a shortest way, see fabric.HopMatrix
	known  []bool      // by slot: dist has the ways to it; else there are no CAs
	at     []int       // by slot: where its pairs of ports begin in flows and lids
	flows  []uint32    // by slot, port that packets come in by and port they leave by: routes
	lids   []uint16    // the same: LIDs whose packets from the switch next to the former make the dependency
	routes []int64     // by port: routes that leave by it
	number []int32     // by port: of the channel that comes in there

	hops         []int64 // delivered pairs by switches passed
	nonMinimal   int64
	dependencies int   // how many of flows are not 0
	rose         []int // of lids: those that were 0 during an advance, or are for a port with another cable

	touched []int32 // slots whose way for the LID at hand differs or may count otherwise
	isIn    []int32 // by slot: the number of the LID for which it is among them
	serial  int32
	marks   []mark
	fresh   [][]uint8 // by destination slot: what is to become of dist, nil where it stays
}

// mark says that a slot's way to a LID is to be counted anew, and with entry those of
// all whose packets pass through the slot.
type mark struct {
	lid   int32
	slot  int32
	entry bool
}

// tableBlock is entries that are compared together.
type tableBlock [lft.BlockSize]fabric.PortNum

// maxPairs bounds the pairs of ports of all switches.
const maxPairs = 100 << 20

// anewShare is the part of all ways from which on it is quicker to check all from
// scratch: one in so many.
const anewShare = 16

// Check is what the function Check says of tables t of fabric f, but that it leaves
// notes out where it went by what changed, which the bool says. The Result then has no
// Certificate either. Where all was checked, Begin makes the next go by what changed.
func (w *Watch) Check(ctx context.Context, f *fabric.Fabric, t *lft.Tables, opt Options) (*Result, bool, error) {
	one := opt.Complete && opt.SL2VL == nil && opt.PathSLs == nil && opt.Multicast == nil
	if one && w.frame != nil {
		if w.advance(f, t) {
			r := w.result(opt)
			return r, true, nil
		}
		w.frame = nil
	}
	r, err := Check(ctx, f, t, opt)
	return r, false, err
}

// Begin takes a copy of tables that Check has found to be r, on one VL and without
// multicast, if they can be followed. O(switches x LIDs).
func (w *Watch) Begin(f *fabric.Fabric, t *lft.Tables, r *Result) {
	w.frame = nil
	if len(r.Undecided) > 0 || r.Unicast.Unreachable+r.Unicast.Loops+r.Management.Unreachable+r.Management.Loops > 0 ||
		r.CreditLoops.Count+r.Management.CreditLoops > 0 || f.NumSwitches()*f.NumSwitches() > maxMatrix {
		return
	}
	x := fabric.NewFrame(f)
	v, ok := x.View(f)
	if !ok || !v.Whole {
		return
	}
	n, pairs := x.Slots(), 0
	w.at = make([]int, n)
	for s := range n {
		w.at[s] = pairs
		ports := int(x.Base[s+1] - x.Base[s])
		pairs += ports * ports
	}
	if pairs > maxPairs {
		return
	}
	w.view = v
	w.stride = (int(f.MaxLID())/lft.BlockSize + 1) * lft.BlockSize
	w.rows = lft.NewTables(n, f.MaxLID())
	for s := range fabric.NodeID(n) {
		w.copyRow(w.row(int32(s)), t.Row(s))
	}
	hops := f.Distances()
	if hops.TooLong() {
		return
	}
	w.dist = make([]uint8, n*n)
	for s := range n {
		copy(w.dist[s*n:(s+1)*n], hops.To(fabric.NodeID(s)))
	}
	w.known = make([]bool, n)
	for t, sources := range v.Sources {
		w.known[t] = sources > 0
	}
	w.flows, w.lids = make([]uint32, pairs), make([]uint16, pairs)
	w.routes, w.number = make([]int64, x.NumPorts()), make([]int32, x.NumPorts())
	w.hops, w.nonMinimal, w.dependencies = make([]int64, n+2), 0, 0
	w.isIn, w.serial = make([]int32, n), 0
	w.frame = x
	if !w.countAll() || !w.renumber() {
		w.frame = nil
	}
}

// row is a slot's table.
func (w *Watch) row(slot int32) []fabric.PortNum {
	row := w.rows.Row(fabric.NodeID(slot))
	return row[:cap(row)]
}

// copyRow fills up with fabric.NoPath.
func (w *Watch) copyRow(to, from []fabric.PortNum) {
	for n := copy(to, from); n < len(to); n++ {
		to[n] = fabric.NoPath
	}
}

// countAll counts every way. Packets to one LID come together on their way, so each
// switch is looked at once for it. It is false when not all is delivered.
func (w *Watch) countAll() bool {
	n := w.frame.Slots()
	x, v := w.frame, w.view
	var (
		out     = make([]int32, n) // by slot: the port that packets leave by
		next    = make([]int32, n)
		waiting = make([]int32, n) // switches that send here and have not been counted
		depth   = make([]int32, n)
		flow    = make([]uint32, n)
		order   = make([]int32, 0, n)
		stage   = make([]fabric.PortNum, n*lft.BlockSize)
	)
	for block := 0; block < len(v.Dest); block += lft.BlockSize {
		for s := range n {
			copy(stage[s*lft.BlockSize:(s+1)*lft.BlockSize], w.row(int32(s))[block:])
		}
		for lid := block; lid < min(block+lft.BlockSize, len(v.Dest)); lid++ {
			dest := v.Dest[lid]
			if dest == fabric.Nowhere {
				continue
			}
			root := x.Owner[dest]
			ca := dest != x.Base[root]
			clear(waiting)
			for s := range int32(n) {
				num := int32(stage[int(s)*lft.BlockSize+lid-block])
				if s == root {
					if num != dest-x.Base[root] {
						return false
					}
					continue
				}
				if num == 0 || num >= x.Base[s+1]-x.Base[s] || v.Peer[x.Base[s]+num] < 0 {
					return false
				}
				out[s] = x.Base[s] + num
				next[s] = x.Owner[v.Peer[out[s]]]
				waiting[next[s]]++
			}
			order = order[:0]
			for s := range int32(n) {
				flow[s] = 0
				if ca {
					flow[s] = uint32(v.Sources[s])
				}
				if waiting[s] == 0 && s != root {
					order = append(order, s)
				}
			}
			if ca {
				flow[root]-- // the port does not send to itself
			}
			for i := 0; i < len(order); i++ {
				s := order[i]
				to := next[s]
				w.routes[out[s]] += int64(flow[s])
				flow[to] += flow[s]
				if waiting[to]--; waiting[to] == 0 && to != root {
					order = append(order, to)
				}
			}
			if len(order) != n-1 {
				return false
			}
			if ca {
				out[root] = dest
				w.routes[dest] += int64(flow[root])
			}
			depth[root] = 1
			for _, s := range slices.Backward(order) {
				to := next[s]
				depth[s] = depth[to] + 1
				if to == root && !ca {
					continue
				}
				pair := w.pair(v.Peer[out[s]], out[to])
				w.lids[pair]++
				if flow[s] > 0 && w.flows[pair] == 0 {
					w.dependencies++
				}
				w.flows[pair] += flow[s]
			}
			if !ca {
				continue
			}
			for s, sources := range v.Sources {
				if int32(s) == root {
					sources--
				}
				w.hops[depth[s]] += int64(sources)
				if int(w.dist[int(root)*n+s])+1 < int(depth[s]) {
					w.nonMinimal += int64(sources)
				}
			}
		}
	}
	return true
}

// pair is where flows and lids have what comes in by one port of a switch and leaves
// by another.
func (w *Watch) pair(in, out int32) int {
	s := w.frame.Owner[in]
	base := w.frame.Base[s]
	return w.at[s] + int(in-base)*int(w.frame.Base[s+1]-base) + int(out-base)
}

// renumber gives each channel a number so that all dependencies lead to a greater one.
// It is false when there are dependencies in a circle. O(pairs of ports).
func (w *Watch) renumber() bool {
	x, v := w.frame, w.view
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

// advance goes on to other tables. It is false when they are not followed; then all
// that is known is of no use any more.
func (w *Watch) advance(f *fabric.Fabric, t *lft.Tables) bool {
	v, ok := w.frame.View(f)
	if !ok || !v.Whole || len(v.Dest) > w.stride || t.Switches() != f.NumSwitches() {
		return false
	}
	old := w.view
	w.marks = w.marks[:0]
	clear(w.isIn)
	w.serial = 0
	w.fresh = make([][]uint8, w.frame.Slots())
	most := 1000 + w.frame.Slots()*len(v.Dest)/anewShare
	if !w.markDistances(v) || !w.markSwitches(v, t) || len(w.marks) > most {
		return false
	}
	moved := make([]bool, max(len(v.Dest), len(old.Dest)))
	for lid := range moved {
		moved[lid] = v.To(lid) != old.To(lid)
	}
	w.rose = w.rose[:0]
	lists := byLID(w.marks, w.stride)
	for lid := range int32(w.stride) {
		marks := lists(lid)
		all := int(lid) < len(moved) && moved[lid]
		if len(marks) > 0 || all {
			if !w.follow(v, t, lid, marks, all) {
				return false
			}
		}
	}
	for s := range w.view.Node {
		if old.Node[s] != fabric.NoNode && v.Node[s] == fabric.NoNode {
			w.copyRow(w.row(int32(s)), nil)
		}
	}
	for s, row := range w.fresh {
		if row != nil {
			copy(w.dist[s*len(row):], row)
		}
	}
	w.view = v
	for p, peer := range v.Peer {
		if peer >= 0 && peer != old.Peer[p] { // what leads there waits for another channel now
			s := w.frame.Owner[p]
			for in := w.frame.Base[s]; in < w.frame.Base[s+1]; in++ {
				w.rose = append(w.rose, w.pair(in, int32(p)))
			}
		}
	}
	for _, i := range w.rose {
		if w.lids[i] > 0 && !w.rises(i) {
			return w.renumber()
		}
	}
	return true
}

// rises says whether a dependency leads to a greater number.
func (w *Watch) rises(pair int) bool {
	s, _ := slices.BinarySearchFunc(w.at, pair+1, func(at, pair int) int { return at - pair })
	s--
	base := w.frame.Base[s]
	ports := int(w.frame.Base[s+1] - base)
	in, out := base+int32((pair-w.at[s])/ports), base+int32((pair-w.at[s])%ports)
	to := w.view.Peer[out]
	return to < 0 || w.number[in] < w.number[to]
}

// byLID gives the marks of each LID.
func byLID(marks []mark, lids int) func(lid int32) []mark {
	first := make([]int32, lids+1)
	for i := range marks {
		first[marks[i].lid]++
	}
	sum := int32(0)
	for i, n := range first {
		first[i] = sum
		sum += n
	}
	sorted := make([]mark, len(marks))
	for _, m := range marks {
		sorted[first[m.lid]] = m
		first[m.lid]++
	}
	return func(lid int32) []mark {
		from := int32(0)
		if lid > 0 {
			from = first[lid-1]
		}
		return sorted[from:first[lid]]
	}
}

// markSwitches finds entries that differ or that are for ports with another cable,
// and switches that came, went, or have more or fewer sources. It is false when there
// is more of that than is followed.
func (w *Watch) markSwitches(v *fabric.View, t *lft.Tables) bool {
	old := w.view
	n := w.frame.Slots()
	most := 1000 + n*len(v.Dest)/anewShare
	for s := range int32(n) {
		was, is := old.Node[s] != fabric.NoNode, v.Node[s] != fabric.NoNode
		if !was && !is {
			continue
		}
		if was != is || old.Sources[s] != v.Sources[s] {
			for lid := range int32(max(len(old.Dest), len(v.Dest))) {
				w.marks = append(w.marks, mark{lid, s, was && !is})
			}
		}
		if !is {
			continue
		}
		row := w.row(s)
		table := t.Row(v.Node[s])
		table = table[:min(cap(table), len(row))]
		for from := 0; from < len(row); from += lft.BlockSize {
			block := row[from : from+lft.BlockSize]
			if from+lft.BlockSize <= len(table) && *(*tableBlock)(block) == *(*tableBlock)(table[from:]) {
				continue
			}
			for i, num := range block {
				new := fabric.NoPath
				if from+i < len(table) {
					new = table[from+i]
				}
				if num != new {
					w.marks = append(w.marks, mark{int32(from + i), s, true})
				}
			}
		}
		var other [256]bool
		any := false
		for p := w.frame.Base[s]; p < w.frame.Base[s+1]; p++ {
			if old.Peer[p] != v.Peer[p] {
				other[p-w.frame.Base[s]], any = true, true
			}
		}
		if any {
			for lid, num := range row[:max(len(old.Dest), len(v.Dest))] {
				if other[num] {
					w.marks = append(w.marks, mark{int32(lid), s, true})
				}
			}
		}
		if len(w.marks) > most {
			return false
		}
	}
	return true
}

// markDistances computes the distances that are others now, and marks the ways that are now to be held
// against another distance. Distances are right if that of each switch is one more than
// the least among its neighbours, and so only switches with other cables need be looked
// at. It is false when cables do not join all switches.
func (w *Watch) markDistances(v *fabric.View) bool {
	old, x := w.view, w.frame
	n := x.Slots()
	var changed []int32 // slots with other cables to switches
	for s := range int32(n) {
		for p := x.Base[s]; p < x.Base[s+1] && v.Node[s] != fabric.NoNode; p++ {
			if old.Peer[p] != v.Peer[p] && (old.Peer[p] >= 0 || v.Peer[p] >= 0) {
				changed = append(changed, s)
				break
			}
		}
	}
	at := make([][]int32, n) // by slot: LIDs of the CAs on it
	for lid, dest := range v.Dest {
		if dest != fabric.Nowhere && dest != x.Base[x.Owner[dest]] {
			at[x.Owner[dest]] = append(at[x.Owner[dest]], int32(lid))
		}
	}
	// The channels between switches, by slot.
	first, near := make([]int32, 1, n+1), make([]int32, 0, len(v.Peer))
	for s := range int32(n) {
		for p := x.Base[s]; p < x.Base[s+1]; p++ {
			if peer := v.Peer[p]; peer >= 0 {
				near = append(near, x.Owner[peer])
			}
		}
		first = append(first, int32(len(near)))
	}
	queue := make([]int32, 0, n)
	for t := range int32(n) {
		if len(at[t]) == 0 {
			continue
		}
		row := w.dist[int(t)*n : int(t+1)*n]
		same := w.known[t]
		for _, s := range changed {
			if !same {
				break
			}
			least := fabric.Unreachable
			if s == t {
				least = 0
			} else {
				for _, to := range near[first[s]:first[s+1]] {
					if d := row[to]; d < fabric.MaxHops {
						least = min(least, d+1)
					}
				}
			}
			same = row[s] == least
		}
		if same {
			continue
		}
		fresh := make([]uint8, n)
		if search(t, first, near, fresh, queue) != v.Fabric.NumSwitches() {
			return false
		}
		w.fresh[t], w.known[t] = fresh, true
		for s, d := range fresh {
			if d == row[s] {
				continue
			}
			for _, lid := range at[t] {
				w.marks = append(w.marks, mark{lid, int32(s), false})
			}
		}
	}
	for t := range w.known {
		w.known[t] = w.known[t] && len(at[t]) > 0
	}
	return true
}

// search fills in the distances to one slot, where first and near are the channels of
// all, and says to how many there is a way. One that is too long is none.
func search(t int32, first, near []int32, dist []uint8, queue []int32) int {
	for s := range dist {
		dist[s] = fabric.Unreachable
	}
	dist[t] = 0
	queue = append(queue, t)
	for i := 0; i < len(queue); i++ {
		s := queue[i]
		if dist[s] == fabric.MaxHops {
			return i
		}
		for _, to := range near[first[s]:first[s+1]] {
			if dist[to] == fabric.Unreachable {
				dist[to] = dist[s] + 1
				queue = append(queue, to)
			}
		}
	}
	return len(queue)
}
