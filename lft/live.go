package lft

import (
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/ibweave/ibweave/fabric"
)

// Keeper is an engine whose tables can follow a fabric as it changes, see Live. Each
// switch sends a LID to a neighbour that is one link nearer to it: by shortest paths, or
// by those up and then down an order of the switches.
type Keeper interface {
	Engine
	// Keep gives the order of f's switches, rank by NodeID and 0 on top, that is most
	// like an order of before: was is by NodeID the rank there, -1 for switches that
	// it did not have. It is nil when the engine has no order.
	Keep(f *fabric.Fabric, was []int32) []int32
}

// Live is tables that follow a fabric as it changes, so that entries change that have
// to, and few others.
//
// An entry by which packets may still go stays as it is; another goes to the port with
// the least costly way, the sum of the cubes of the loads on it, the lowest port of
// several. Where a cable is new or is back, switches with a way over it that costs less
// take that, so that it gets its share; all other entries stay. So with the order that
// it has (Keeper), no routing of the engine has fewer entries changed when cables fail.
//
// Kept in memory are the distances between all switches, by the engine's rule. When
// cables come or go, a distance stays right as long as it is one more than the least
// among the neighbours where a cable came or went, and so only destinations for which
// that does not hold are searched again. A LID is looked at when an entry for it has
// lost its cable, a distance to its switch is another, or a new cable is on a way to it.
//
// The order is always the one most like that of the first routing, so that it comes
// back when a failure is repaired. Memory: for each switch a byte a LID and two bytes a
// switch. Not safe for concurrent use.
type Live struct {
	engine Keeper
	frame  *fabric.Frame
	view   *fabric.View
	stride int              // of rows: the LIDs that there is room for
	rows   []fabric.PortNum // by slot and LID
	load   []int64          // by port: routes that leave by it to a switch
	home   []int32          // by slot: its rank at first; nil without an order
	rank   []int32          // by slot: its rank now
	order  []int32          // slots that are there, by rank
	ways   ways
	// broken lists LIDs whose entries have never been in order; they are in no load.
	broken []int32

	// Of the fabric that is being followed to:
	unit  []uint64
	peer  []int32 // by port: the port at the other end, or at the end of the cable that is gone
	fresh []bool  // by port: the channel is to get a share
	// tails is by destination slot those that may send over such a channel; nil when
	// there is no such channel.
	tails [][]int32

	// Scratch for one LID.
	serial   int32
	isIn     []int32      // by slot: the number of the LID that it was last in work for
	viaFresh []int32      // by slot: the same for which its way has a channel that is to get a share
	work     [256][]int32 // slots by distance
	tree     []int32
	column   []fabric.PortNum // by slot: the entries before
	flow     []int64          // by slot: sources that send through it
	to       []int32
	waiting  []int32
	counted  bool // flow is that of the LID

	lids int // how many the last Follow looked at
}

// ways is how far switches are from each other by the engine's rule.
type ways struct {
	n    int
	hops []uint8 // by destination slot and slot: links, fabric.Unreachable for none
	down []bool  // the same: the way leads down only, by the order
	// The channels between switches, by slot.
	first []int32
	out   []int32 // the port
	to    []int32 // the slot that it leads to
}

// NewLive begins with a routing of the engine's. later are fabrics with switches that it
// did not have. It is false when it is not to be followed: an order that is missing, or
// switches that had another number of ports. Whoever made the tables, those of the next
// Follow are within the engine's rule. O(switches x (LIDs + channels)).
func NewLive(e Keeper, r *Routing, later ...*fabric.Fabric) (*Live, bool) {
	f := r.Fabric
	x := fabric.NewFrame(append([]*fabric.Fabric{f}, later...)...)
	view, ok := x.View(f)
	if !ok {
		return nil, false
	}
	n := x.Slots()
	maxLID := f.MaxLID()
	for _, g := range later {
		maxLID = max(maxLID, g.MaxLID())
	}
	l := &Live{
		engine: e, frame: x, view: view, load: make([]int64, x.NumPorts()),
		stride: (int(maxLID)/BlockSize + 1) * BlockSize,
		isIn:   make([]int32, n), viaFresh: make([]int32, n), column: make([]fabric.PortNum, n), flow: make([]int64, n), to: make([]int32, n),
		waiting: make([]int32, n),
	}
	l.rows = NewTables(n, maxLID).entries
	for s := range fabric.NodeID(f.NumSwitches()) {
		copy(l.row(view.Slot[s]), r.Tables.Row(s))
	}
	was := make([]int32, f.NumSwitches())
	for s := range was {
		was[s] = int32(s)
		if len(r.Order) > 0 {
			was[s] = r.Order[s]
		}
	}
	if ranks := e.Keep(f, was); ranks != nil {
		if r.Order == nil {
			return nil, false
		}
		l.home = make([]int32, n)
		for s := range l.home {
			l.home[s] = -1
			if node := view.Node[s]; node != fabric.NoNode {
				l.home[s] = was[node]
			}
		}
	}
	l.turn(view)
	l.ways = ways{n: n, hops: make([]uint8, n*n), down: make([]bool, n*n)}
	l.ways.cables(x, view)
	if !l.growAll() {
		return nil, false
	}
	l.unit = l.units(f)
	l.countAll()
	return l, true
}

func (l *Live) row(slot int32) []fabric.PortNum {
	return l.rows[int(slot)*l.stride : (int(slot)+1)*l.stride]
}

func (l *Live) entry(slot, lid int32) *fabric.PortNum { return &l.rows[int(slot)*l.stride+int(lid)] }

// turn sets rank and order for a view.
func (l *Live) turn(v *fabric.View) {
	l.rank, l.order = nil, l.order[:0]
	if l.home == nil {
		return
	}
	was := make([]int32, len(v.Slot))
	for s, slot := range v.Slot {
		was[s] = l.home[slot]
	}
	l.rank = make([]int32, len(l.home))
	for s := range l.rank {
		l.rank[s] = -1
	}
	for s, rank := range l.engine.Keep(v.Fabric, was) {
		l.rank[v.Slot[s]] = rank
	}
	l.order = slices.Grow(l.order, len(v.Slot))[:len(v.Slot)]
	for _, slot := range v.Slot {
		l.order[l.rank[slot]] = slot
	}
}

// units is as the function units, by port.
func (l *Live) units(f *fabric.Fabric) []uint64 {
	unit := make([]uint64, l.frame.NumPorts())
	byID := units(f)
	for s := range fabric.NodeID(f.NumSwitches()) {
		base := f.PortBase(s)
		copy(unit[l.frame.Base[l.view.Slot[s]]:], byID[base:base+fabric.PortID(f.Node(s).NumPorts)+1])
	}
	return unit
}

// cables lists the channels of a view.
func (w *ways) cables(x *fabric.Frame, v *fabric.View) {
	w.first, w.out, w.to = append(w.first[:0], 0), w.out[:0], w.to[:0]
	for s := range int32(w.n) {
		for p := x.Base[s]; p < x.Base[s+1]; p++ {
			if peer := v.Peer[p]; peer >= 0 && x.Owner[peer] != s {
				w.out = append(w.out, p)
				w.to = append(w.to, x.Owner[peer])
			}
		}
		w.first = append(w.first, int32(len(w.out)))
	}
}

// row is the distances to one slot.
func (w *ways) row(t int32) (hops []uint8, down []bool) {
	a, b := int(t)*w.n, int(t+1)*w.n
	return w.hops[a:b], w.down[a:b]
}

// growAll computes all distances.
func (l *Live) growAll() bool {
	var (
		work    fabric.Workers
		tooLong atomic.Bool
	)
	workers := runtime.GOMAXPROCS(0)
	for i := range workers {
		work.Go(func() {
			queue := make([]int32, 0, l.ways.n)
			for t := i; t < l.ways.n; t += workers {
				if l.view.Node[t] != fabric.NoNode && !l.grow(int32(t), queue) {
					tooLong.Store(true)
				}
			}
		})
	}
	work.Wait()
	return !tooLong.Load()
}

// grow computes the distances to one slot: O(channels). It is false when one is more
// than can be counted.
func (l *Live) grow(t int32, queue []int32) bool {
	w := &l.ways
	hops, down := w.row(t)
	for s := range hops {
		hops[s], down[s] = fabric.Unreachable, false
	}
	hops[t], down[t] = 0, true
	queue = append(queue[:0], t)
	for i := 0; i < len(queue); i++ {
		s := queue[i]
		for _, u := range w.to[w.first[s]:w.first[s+1]] {
			if hops[u] != fabric.Unreachable || l.rank != nil && l.rank[u] > l.rank[s] {
				continue
			}
			if hops[s] == fabric.MaxHops {
				return false
			}
			hops[u], down[u] = hops[s]+1, true
			queue = append(queue, u)
		}
	}
	for _, u := range l.order {
		if down[u] {
			continue
		}
		least := fabric.Unreachable
		for _, v := range w.to[w.first[u]:w.first[u+1]] {
			if l.rank[v] < l.rank[u] {
				least = min(least, hops[v])
			}
		}
		if least == fabric.MaxHops {
			return false
		}
		if least != fabric.Unreachable {
			hops[u] = least + 1
		}
	}
	return true
}

// right says whether the distance of one slot follows from those of its neighbours.
func (l *Live) right(t, u int32) bool {
	w := &l.ways
	hops, down := w.row(t)
	if u == t {
		return hops[u] == 0 && down[u]
	}
	lower, upper := fabric.Unreachable, fabric.Unreachable
	for _, v := range w.to[w.first[u]:w.first[u+1]] {
		switch {
		case hops[v] >= fabric.MaxHops:
		case l.rank == nil || l.rank[v] > l.rank[u]:
			if down[v] {
				lower = min(lower, hops[v]+1)
			}
		default:
			upper = min(upper, hops[v]+1)
		}
	}
	if lower != fabric.Unreachable {
		return down[u] && hops[u] == lower
	}
	return !down[u] && hops[u] == upper
}

// legal says whether packets to slot t may go from u to v, which are neighbours.
func (l *Live) legal(t, u, v int32) bool {
	hops, down := l.ways.row(t)
	if hops[u] == fabric.Unreachable || hops[v]+1 != hops[u] {
		return false
	}
	if l.rank == nil {
		return true
	}
	if down[u] {
		return down[v] && l.rank[v] > l.rank[u]
	}
	return l.rank[v] < l.rank[u]
}

// proper says whether slot u may have an entry for a LID with destination dest.
func (l *Live) proper(u int32, num fabric.PortNum, dest int32) bool {
	t := l.frame.Owner[dest]
	if u == t {
		return l.frame.Base[t]+int32(num) == dest
	}
	if hops, _ := l.ways.row(t); hops[u] == fabric.Unreachable {
		return num == fabric.NoPath
	}
	out := l.frame.Base[u] + int32(num)
	if num == fabric.ManagementPort || out >= l.frame.Base[u+1] || l.view.Peer[out] < 0 {
		return false
	}
	return l.legal(t, u, l.frame.Owner[l.view.Peer[out]])
}

// countAll fills in the loads, and finds the LIDs that have entries which no engine
// could have made.
func (l *Live) countAll() {
	v := l.view
	l.peer = v.Peer
	stage := make([]fabric.PortNum, l.ways.n*BlockSize)
	for block := 0; block < len(v.Dest); block += BlockSize {
		for s := range int32(l.ways.n) {
			for i, num := range l.row(s)[block : block+BlockSize] {
				stage[i*l.ways.n+int(s)] = num
			}
		}
		for lid := block; lid < min(block+BlockSize, len(v.Dest)); lid++ {
			copy(l.column, stage[(lid-block)*l.ways.n:])
			dest := v.Dest[lid]
			switch {
			case dest == fabric.Nowhere:
				for s, num := range l.column {
					if num != fabric.NoPath {
						*l.entry(int32(s), int32(lid)) = fabric.NoPath
					}
				}
			case !l.allProper(dest):
				l.broken = append(l.broken, int32(lid))
			case l.isCA(dest):
				l.flows(dest, v)
				l.count(dest, 1)
			}
		}
	}
}

// isCA says whether a destination is not a switch itself.
func (l *Live) isCA(dest int32) bool { return dest != l.frame.Base[l.frame.Owner[dest]] }

// gather fills in column for a LID.
func (l *Live) gather(lid int32) {
	for s := range l.column {
		l.column[s] = l.rows[s*l.stride+int(lid)]
	}
}

// allProper is proper for all of column.
func (l *Live) allProper(dest int32) bool {
	for s, num := range l.column {
		if l.view.Node[s] != fabric.NoNode && !l.proper(int32(s), num, dest) {
			return false
		}
	}
	return true
}

// flows computes how many sources of v send through each slot by the entries of
// column, to a LID with destination dest: O(switches).
func (l *Live) flows(dest int32, v *fabric.View) {
	root := l.frame.Owner[dest]
	clear(l.waiting)
	for s, num := range l.column {
		l.flow[s], l.to[s] = int64(v.Sources[s]), -1
		if int32(s) == root || num == fabric.NoPath {
			continue
		}
		if peer := l.peer[l.frame.Base[s]+int32(num)]; peer >= 0 {
			l.to[s] = l.frame.Owner[peer]
			l.waiting[l.to[s]]++
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
		to := l.to[s]
		if to < 0 {
			continue
		}
		l.flow[to] += l.flow[s]
		if l.waiting[to]--; l.waiting[to] == 0 {
			l.tree = append(l.tree, to)
		}
	}
}

// count adds the flows along column to the loads, or takes them off.
func (l *Live) count(dest int32, sign int64) {
	root := l.frame.Owner[dest]
	for s, num := range l.column {
		if num != fabric.NoPath && int32(s) != root {
			l.load[l.frame.Base[s]+int32(num)] += sign * l.flow[s]
		}
	}
}

// MaxLoad is the most routes that cross a channel between switches, with those of slow
// cables counted more, so that it does not matter which cable it is.
func (l *Live) MaxLoad() uint64 {
	most := uint64(0)
	for p, routes := range l.load {
		most = max(most, uint64(routes)*l.unit[p])
	}
	return most
}

// Routing is what has come of it: tables of their own, and the order. Tables that nobody
// uses any more may be given to be written over, which takes a third of the time.
func (l *Live) Routing(old *Tables) *Routing {
	f := l.view.Fabric
	r := &Routing{Engine: l.engine.Name(), Fabric: f}
	if old != nil && old.stride == (int(f.MaxLID())/BlockSize+1)*BlockSize && f.NumSwitches()*old.stride <= cap(old.entries) {
		r.Tables = &Tables{maxLID: f.MaxLID(), stride: old.stride, entries: old.entries[:f.NumSwitches()*old.stride]}
	} else {
		r.Tables = newTables(f.NumSwitches(), f.MaxLID())
	}
	n, parts := f.NumSwitches(), runtime.GOMAXPROCS(0)
	var work fabric.Workers
	for i := range parts {
		work.Go(func() {
			for s := n * i / parts; s < n*(i+1)/parts; s++ {
				row := r.Tables.Row(fabric.NodeID(s))
				copy(row[:cap(row)], l.row(l.view.Slot[s])) // entries beyond its LIDs are NoPath
			}
		})
	}
	work.Wait()
	if l.rank != nil {
		r.Order = make([]int32, f.NumSwitches())
		for s, slot := range l.view.Slot {
			r.Order[s] = l.rank[slot]
		}
	}
	return r
}
