package lft

import (
	"context"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/internal/text"
)

// IncrementalEngine is an engine whose tables an Incremental can update. A switch sends a LID
// to a neighbour that is one link nearer to it, on shortest paths or on paths up and then
// down an order of the switches. With an order it goes up or down, whichever is nearer. If
// both are as near, it goes only down if some neighbour above is farther, else either way.
type IncrementalEngine interface {
	Engine
	// KeepOrder returns the order of f's switches, rank by NodeID and 0 on top, that is most
	// like an earlier order. was has the earlier ranks by NodeID, -1 for new switches. It
	// returns nil if the engine has no order, and ok is false if tables with that order would
	// break its guarantee.
	KeepOrder(f *fabric.Fabric, was []int32) (order []int32, ok bool)
}

// Incremental holds forwarding tables. When the fabric changes, it updates them with as few
// changes as possible.
//
// An entry stays as long as the engine allows its port. Any other entry gets the port with
// the least costly path, by the sum of the cubes of the loads on it; among equal ones the
// lowest port. For a cable that is new or back, switches take a path over it if that costs
// less, so that the cable gets its share; all other entries stay. So, with the same order
// (KeepOrder), no routing of the engine changes fewer entries when cables fail.
//
// It keeps the distances between all switches, by the engine's rule. When cables come
// or go, the distances to a destination still hold if, at each switch whose cables
// changed, the distance is one more than the least of its neighbours'. Those to other
// destinations are searched again. A LID is looked at if one of its entries lost its
// cable, if a distance to its switch changed, or if a new cable is on a path to it.
// changed, or if a new cable is on a path to it.
//
// The order is always the one most like that of the first routing, so that a repair brings it
// back. Memory: for each switch, a byte for each LID and two bytes for each switch. Not safe
// for concurrent use.
type Incremental struct {
	engine IncrementalEngine
	index  *fabric.StableIndex
	now    *fabric.Snapshot // the fabric that the tables are for
	stride int              // of rows: how many LIDs there is room for
	rows   []fabric.PortNum // by slot and LID
	load   []int64          // by port: routes that leave there to a switch
	unit   []uint64         // by port, as LoadUnits
	bound  uint64           // LoadBound, 0 if not computed
	first  []int32          // by slot: its rank in the first order; nil without an order
	rank   []int32          // by slot: its rank now
	order  []int32          // slots with switches, by rank
	serves bool             // the engine keeps its guarantee with order
	moved  bool             // the last step changed entries
	dist   distances
	// uncounted lists LIDs with entries that the engine could not have made; load leaves
	// out their routes.
	uncounted []int32
	journal   *journal // nil if undo is not needed
	lids      int      // how many the last update looked at
	// changed is by slot and block of LIDs: an entry has changed since the last update began.
	// changedBlocks counts these blocks.
	changed       []bool
	changedBlocks int

	updateScratch
}

// journal holds what undo restores: what updates and steps change in place.
type journal struct {
	before  Incremental
	entries []formerEntry
	dist    []formerDistances
}

// formerEntry is an entry of rows before it was changed.
type formerEntry struct {
	at  int
	num fabric.PortNum
}

// NewIncremental starts with a routing of engine e, whose switches have slots in x. It
// returns false for tables that it cannot update: the order is missing, a switch had another
// number of ports, or paths are too long. The next update replaces entries that the engine
// could not have made. It takes O(switches x (LIDs + channels)).
func NewIncremental(e IncrementalEngine, x *fabric.StableIndex, r *Routing) (*Incremental, bool) {
	f := r.Fabric
	now, ok := x.Snapshot(f)
	if !ok {
		return nil, false
	}
	n := x.Slots()
	l := &Incremental{
		engine: e, index: x, now: now, load: make([]int64, x.NumPorts()),
		stride:        (int(x.MaxLID)/BlockSize + 1) * BlockSize,
		rows:          NewTables(n, x.MaxLID).entries,
		dist:          distances{n: n, hops: make([]uint8, n*n), down: make([]bool, n*n)},
		updateScratch: newUpdateScratch(n),
	}
	l.countChanges()
	for slot, s := range now.Node {
		if s != fabric.NoNode {
			copy(l.row(int32(slot)), r.Tables.Row(s))
		}
	}
	if !l.setFirstOrder(r) {
		return nil, false
	}
	l.setOrder()
	if !l.searchAll() {
		return nil, false
	}
	l.setUnits()
	l.countLoads()
	return l, true
}

// Reroute updates the tables of opt.Previous for another fabric, and rebalances them. If an
// Incremental cannot update them, or not balance them as opt.Rebalance asks, it routes from
// scratch. Errors: those of that routing.
//
// If it cannot come near enough to a lower bound of the greatest load, it routes from scratch
// to learn what load that gives. If e refuses that with a *DomainError, it keeps the updated
// tables, as near to the bound as possible. With opt.Keeper it continues from the Keeper's
// Incremental if that has the tables of opt.Previous.
func Reroute(ctx context.Context, e IncrementalEngine, f *fabric.Fabric, opt Options) (r *Routing, err error) {
	previous, keeper := opt.Previous, opt.Keeper
	opt.Previous, opt.Keeper = nil, nil
	goesBack := keeper != nil
	if !goesBack {
		keeper = new(Keeper)
	}
	fromScratch := func() (*Routing, error) { return keeper.routeFromScratch(ctx, e, f, opt) }
	l, v, ok := keeper.begin(e, previous, f)
	if !ok {
		return fromScratch()
	}
	if goesBack {
		l.startJournal()
		keeper.former = nil // drop that of earlier changes
		defer func() {
			if r == nil || !r.Kept {
				l.undo()
			} else {
				keeper.of, keeper.former = r, previous
			}
		}()
	}
	if !l.Update(v, 0) {
		return fromScratch()
	}
	greatest := func() (uint64, error) {
		if r, err = fromScratch(); err != nil {
			return 0, err
		}
		return GreatestLoad(f, r.Tables), nil
	}
	if opt.FirstStep {
		ok, err = true, l.TakeFirstStep(greatest)
	} else {
		ok, err = l.takeStep(opt.RebalanceFactor(), len(l.changed), greatest, true)
	}
	if err == nil && ok {
		r = l.Routing()
		r.Kept = true
	}
	return r, err
}

// Keeper holds an Incremental with the last tables of Reroute, and can go back to the tables
// before. So a Reroute from either needs no new Incremental, which takes longer than most
// changes. It also has the last routing from scratch, for another step on the same fabric.
// The zero value is empty. The caller must not change these tables; its Options may differ
// only in Previous, FirstStep and Rebalance. Not safe for concurrent use.
type Keeper struct {
	l       *Incremental
	of      *Routing // whose tables l holds
	former  *Routing // to which l.undo goes back; nil if it cannot
	scratch struct {
		of  *fabric.Fabric // nil for none
		r   *Routing
		err error
	}
}

func (k *Keeper) routeFromScratch(ctx context.Context, e Engine, f *fabric.Fabric, opt Options) (*Routing, error) {
	if s := &k.scratch; s.of != f {
		s.of = f
		if s.r, s.err = e.Route(ctx, f, opt); ctx.Err() != nil {
			s.of = nil
		}
	}
	if k.scratch.err != nil {
		return nil, k.scratch.err
	}
	r := *k.scratch.r // the caller may change what it gets
	return &r, nil
}

// Hold prepares for a Reroute from r to a fabric without new switches or higher LIDs. It
// returns the snapshot that the tables of r are for, nil if e cannot keep them.
func (k *Keeper) Hold(e IncrementalEngine, r *Routing) *fabric.Snapshot {
	if !k.hold(e, r) && !k.start(e, fabric.NewStableIndex(r.Fabric), r) {
		return nil
	}
	return k.l.now
}

// Snapshot returns the snapshot that the tables of r are for, nil if the keeper lacks them.
func (k *Keeper) Snapshot(r *Routing) *fabric.Snapshot {
	if k.of != r || k.l.now.Fabric != r.Fabric {
		return nil
	}
	return k.l.now
}

// Former returns the snapshot of the tables that Reroute made the present ones from; nil if
// it cannot go back.
func (k *Keeper) Former() *fabric.Snapshot {
	if k.former == nil {
		return nil
	}
	return k.l.journal.before.now
}

// IsLast returns true if Reroute made r last, in a first step that moved nothing, and a
// last step with this Rebalance factor would move nothing either.
func (k *Keeper) IsLast(r *Routing, factor float64) bool {
	return k.of == r && !k.l.moved && k.l.IsBalanced(factor, 0)
}

// Clone returns an independent copy, which cannot go back.
func (k *Keeper) Clone() Keeper {
	c := Keeper{of: k.of}
	if k.l != nil {
		c.l = k.l.Clone()
	}
	return c
}

// hold goes back to the tables of r if needed and possible. It returns true if k.l has them.
func (k *Keeper) hold(e IncrementalEngine, r *Routing) bool {
	if k.former != nil && k.former == r {
		k.l.undo()
		k.of, k.former = r, nil
	}
	return k.Snapshot(r) != nil && k.l.engine.Name() == e.Name() && k.l.restart()
}

// start makes the keeper hold the tables of r. It returns false if e cannot keep them.
func (k *Keeper) start(e IncrementalEngine, x *fabric.StableIndex, r *Routing) bool {
	l, ok := NewIncremental(e, x, r)
	k.l, k.of, k.former = l, r, nil
	if !ok {
		k.l, k.of = nil, nil
	}
	return ok
}

// begin returns an Incremental with the tables of r, and the snapshot of f for its Update. ok
// is false if e cannot keep the tables.
func (k *Keeper) begin(e IncrementalEngine, r *Routing, f *fabric.Fabric) (l *Incremental, v *fabric.Snapshot, ok bool) {
	if k.hold(e, r) && f.MaxLID() <= k.l.index.MaxLID {
		if v, ok = k.l.index.Snapshot(f); ok {
			return k.l, v.Cabled(), true
		}
	}
	x := fabric.NewStableIndex(r.Fabric, f)
	if !k.start(e, x, r) {
		return nil, nil, false
	}
	if v, ok = x.Snapshot(f); !ok {
		return nil, nil, false
	}
	return k.l, v.Cabled(), true
}

// restart makes the present order the first one, as NewIncremental does. It returns false if
// another order follows from that.
func (l *Incremental) restart() bool {
	if l.rank == nil {
		return true
	}
	was := l.rank
	l.first = slices.Clone(was)
	l.setOrder()
	return slices.Equal(was, l.rank)
}

// Clone returns an independent copy, for another goroutine. It cannot undo.
func (l *Incremental) Clone() *Incremental {
	c := *l
	c.journal = nil
	c.rows, c.load = slices.Clone(l.rows), slices.Clone(l.load)
	c.dist.hops, c.dist.down = slices.Clone(l.dist.hops), slices.Clone(l.dist.down)
	c.changed = slices.Clone(l.changed)
	c.updateScratch = newUpdateScratch(l.index.Slots())
	return &c
}

// startJournal makes undo revert all changes from now on.
func (l *Incremental) startJournal() {
	l.journal = nil // drop that of earlier changes
	l.journal = &journal{before: *l}
	l.load = slices.Clone(l.load)
}

// undo reverts all changes since startJournal, also those of an update that returned false.
func (l *Incremental) undo() {
	for _, e := range slices.Backward(l.journal.entries) {
		l.rows[e.at] = e.num
	}
	for _, d := range slices.Backward(l.journal.dist) {
		hops, down := l.dist.distancesTo(d.slot)
		copy(hops, d.hops)
		copy(down, d.down)
	}
	scratch := l.updateScratch
	*l = l.journal.before
	l.updateScratch = scratch // its slices may have grown
}

func (l *Incremental) row(slot int32) []fabric.PortNum {
	return l.rows[int(slot)*l.stride : (int(slot)+1)*l.stride]
}

func (l *Incremental) entry(slot, lid int32) fabric.PortNum {
	return l.rows[int(slot)*l.stride+int(lid)]
}

func (l *Incremental) setEntry(slot, lid int32, num fabric.PortNum) {
	at := int(slot)*l.stride + int(lid)
	if l.rows[at] == num {
		return
	}
	if l.journal != nil {
		l.journal.entries = append(l.journal.entries, formerEntry{at, l.rows[at]})
	}
	if block := l.blockOf(slot, lid); !l.changed[block] {
		l.changed[block] = true
		l.changedBlocks++
	}
	l.rows[at] = num
}

// blockOf returns the index of an entry in changed.
func (l *Incremental) blockOf(slot, lid int32) int {
	return (int(slot)*l.stride + int(lid)) / BlockSize
}

// countChanges starts to count changed blocks.
func (l *Incremental) countChanges() {
	l.changed, l.changedBlocks = make([]bool, len(l.rows)/BlockSize), 0
}

// setFirstOrder takes the order of the first routing. It returns false if the engine needs an
// order and the routing has none.
func (l *Incremental) setFirstOrder(r *Routing) bool {
	was := make([]int32, len(l.now.Slot))
	for s := range was {
		was[s] = int32(s)
		if len(r.Order) > 0 {
			was[s] = r.Order[s]
		}
	}
	if order, _ := l.engine.KeepOrder(r.Fabric, was); order == nil {
		return true
	}
	l.first = slices.Repeat([]int32{-1}, l.index.Slots())
	for s, slot := range l.now.Slot {
		l.first[slot] = was[s]
	}
	return r.Order != nil
}

// setOrder sets rank and order for the present fabric.
func (l *Incremental) setOrder() {
	l.rank, l.order, l.serves = nil, nil, true
	if l.first == nil {
		return
	}
	was := text.Each(l.now.Slot, func(slot int32) int32 { return l.first[slot] })
	l.rank = slices.Repeat([]int32{-1}, len(l.first))
	order, ok := l.engine.KeepOrder(l.now.Fabric, was)
	l.serves = ok
	for s, rank := range order {
		l.rank[l.now.Slot[s]] = rank
	}
	l.order = make([]int32, len(l.now.Slot))
	for _, slot := range l.now.Slot {
		l.order[l.rank[slot]] = slot
	}
}

// setUnits sets unit for the present fabric.
func (l *Incremental) setUnits() {
	f := l.now.Fabric
	l.unit, l.bound = make([]uint64, l.index.NumPorts()), 0
	byID := LoadUnits(f)
	for s := range fabric.NodeID(f.NumSwitches()) {
		base := f.PortBase(s)
		copy(l.unit[l.index.Base[l.now.Slot[s]]:], byID[base:base+fabric.PortID(f.Node(s).NumPorts)+1])
	}
}

// countLoads fills in load. It lists in uncounted the LIDs with entries that the engine could
// not have made.
func (l *Incremental) countLoads() {
	v := l.now
	l.peer = v.Peer
	n := l.index.Slots()
	stage := make([]fabric.PortNum, n*BlockSize)
	for block := 0; block < len(v.Dest); block += BlockSize {
		for s := range int32(n) {
			for i, num := range l.row(s)[block : block+BlockSize] {
				stage[i*n+int(s)] = num
			}
		}
		for lid := block; lid < min(block+BlockSize, len(v.Dest)); lid++ {
			copy(l.column, stage[(lid-block)*n:])
			dest := v.Dest[lid]
			switch {
			case dest == fabric.NoDestination:
				l.clearEntries(int32(lid))
			case !l.allMayStay(dest):
				l.uncounted = append(l.uncounted, int32(lid))
			case v.CarriesLoad(dest):
				l.sumFlows(dest, v)
				l.addFlows(dest, 1)
			}
		}
	}
}

// clearEntries sets all entries for a LID to fabric.NoPath.
func (l *Incremental) clearEntries(lid int32) {
	for s := range int32(l.index.Slots()) {
		l.setEntry(s, lid, fabric.NoPath)
	}
}

// MaxLoad returns the greatest load of a channel between switches, in LoadUnits: its routes,
// counted higher on slow cables.
func (l *Incremental) MaxLoad() uint64 {
	most := uint64(0)
	for p, routes := range l.load {
		most = max(most, uint64(routes)*l.unit[p])
	}
	return most
}

// IsLegal returns true if the engine could have made all entries.
func (l *Incremental) IsLegal() bool { return len(l.uncounted) == 0 }

// Snapshot returns the snapshot that the tables are for.
func (l *Incremental) Snapshot() *fabric.Snapshot { return l.now }

// LIDs returns how many LIDs the last update looked at.
func (l *Incremental) LIDs() int { return l.lids }

// Routing returns the present routing; its tables are a copy.
func (l *Incremental) Routing() *Routing {
	f := l.now.Fabric
	r := &Routing{Engine: l.engine.Name(), Fabric: f, Tables: newTables(f.NumSwitches(), f.MaxLID())}
	par.Each(f.NumSwitches(), func(s int) {
		row := r.Tables.Row(fabric.NodeID(s))
		copy(row[:cap(row)], l.row(l.now.Slot[s])) // entries beyond its LIDs are NoPath
		if lid := f.LID(f.PortBase(fabric.NodeID(s))); l.now.Node[l.now.Slot[s]] == fabric.NoNode && lid != 0 {
			row[lid] = 0
		}
	})
	if l.rank != nil {
		r.Order = text.Each(l.now.Slot, func(slot int32) int32 { return l.rank[slot] })
	}
	return r
}
