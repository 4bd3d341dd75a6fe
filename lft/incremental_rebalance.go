package lft

import (
	"errors"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

const (
	// FirstStepLoad is how many times the target the greatest load may be after a first step,
	// and firstStepBlocks is how many blocks the first step may change to keep to that, those
	// included that have to change.
	FirstStepLoad   = 1.5
	firstStepBlocks = 64
	// blockEntries is how many entries in blocks that change anyway cost as much as one in
	// another block.
	blockEntries = 4
	// relieveWork bounds the channels that a step looks at.
	relieveWork = 1 << 24
)

// move is another entry of a slot for a LID.
type move struct {
	slot, lid int32
	num       fabric.PortNum
	flow      int64   // routes that go through the slot
	gain      float64 // by how much the cost falls, for an entry
	opened    bool    // it is the first of its block
}

// mover changes entries with the loads, and takes changes back. How it chooses them is up to the reliever, which
// looks for the fewest entries that take loads off, and the fitter, which looks for the best paths.
type mover struct {
	*Incremental
	limit uint64 // what loads are above it is to become less
	work  int    // channels looked at
	taken []move // with the ports that the entries had before
}

// take makes a move.
func (r *mover) take(m move) {
	num, blocks := m.num, r.changedBlocks
	m.num = r.entry(m.slot, m.lid)
	r.change(m, num)
	m.opened = r.changedBlocks > blocks
	r.taken = append(r.taken, m)
}

// change changes the entry of a move, with the loads and the flows of its LID.
func (r *mover) change(m move, num fabric.PortNum) {
	t := r.index.Owner[r.now.Dest[m.lid]]
	r.addRoutes(m.slot, r.entry(m.slot, m.lid), m.lid, t, -m.flow)
	r.setEntry(m.slot, m.lid, num)
	r.addRoutes(m.slot, num, m.lid, t, m.flow)
}

// undoTo takes back all moves but the first ones.
func (r *mover) undoTo(n int) {
	for _, m := range slices.Backward(r.taken[n:]) {
		r.sumFlowsThrough(m.slot, m.lid) // more or fewer routes than when it was taken
		m.flow = r.flow[m.slot]
		r.change(m, m.num)
		if m.opened {
			r.changed[r.blockOf(m.slot, m.lid)] = false
			r.changedBlocks--
		}
	}
	r.taken = r.taken[:n]
}

// follow calls visit with each channel of the path to slot t that begins with a port.
func (l *Incremental) follow(s int32, num fabric.PortNum, lid, t int32, visit func(out int32)) {
	for {
		out := l.index.Base[s] + int32(num)
		visit(out)
		if s = l.index.Owner[l.peer[out]]; s == t {
			return
		}
		num = l.entry(s, lid)
	}
}

// addRoutes adds routes to the loads on a path, and to the flows of its slots.
func (l *Incremental) addRoutes(s int32, num fabric.PortNum, lid, t int32, routes int64) {
	l.follow(s, num, lid, t, func(out int32) {
		l.load[out] += routes
		l.flow[l.index.Owner[out]] += routes
	})
}

// reliever takes routes off busy channels. It is the scratch of a step.
type reliever struct {
	mover
	blocks int    // that may change in all
	stuck  []bool // by port: no move makes its load smaller
}

// TakeFirstStep moves some more entries after an Update where that left a load of more than
// FirstStepLoad times what routing from scratch would give: no more than that firstStepBlocks
// blocks have changed in all, or twice as many as had to. Where it cannot come so far it
// keeps the best.
//
// fromScratch says what the greatest load of tables from scratch is, as GreatestLoad. It is called
// where LoadBound is too low a bound of that. An error is one of it.
func (l *Incremental) TakeFirstStep(fromScratch func() (uint64, error)) error {
	blocks := firstStepBlocks
	if l.changedBlocks > blocks {
		blocks = 2 * l.changedBlocks
	}
	_, err := l.takeStep(FirstStepLoad, blocks, fromScratch, false)
	return err
}

// TakeLastStep moves entries until no load is above factor times what routing from scratch
// would give, see TakeFirstStep. Where that cannot be, it leaves all entries as they
// were and returns false.
func (l *Incremental) TakeLastStep(factor float64, fromScratch func() (uint64, error)) (bool, error) {
	return l.takeStep(factor, len(l.changed), fromScratch, true)
}

// TakePart changes at most firstStepBlocks blocks on the way to what TakeLastStep does. undo takes
// that back; it is nil when nothing has changed.
func (l *Incremental) TakePart(factor float64, least uint64) (undo func()) {
	l.countChanges()
	r := l.newReliever(times(factor, max(least, l.LoadBound())), firstStepBlocks)
	r.relieve()
	if len(r.taken) == 0 {
		return nil
	}
	return func() { r.undoTo(0) }
}

// takeStep takes routes off until no load is above factor times LoadBound; where that cannot be,
// above factor times what fromScratch gives, or as near to LoadBound as it can come if that is a
// *DomainError. It returns false if it did not come so far; with undo, entries are as they were then.
func (l *Incremental) takeStep(factor float64, blocks int, fromScratch func() (uint64, error), undo bool) (bool, error) {
	r := l.newReliever(times(factor, l.LoadBound()), blocks)
	ok := r.relieve()
	if l.moved = len(r.taken) > 0; ok {
		return true, nil
	}
	least, err := fromScratch()
	if refused := (*DomainError)(nil); errors.As(err, &refused) {
		return true, nil
	}
	r.undoTo(0)
	if err != nil {
		return false, err
	}
	r = l.newReliever(times(factor, least), blocks)
	ok = r.relieve()
	l.moved = len(r.taken) > 0
	if !ok && undo {
		r.undoTo(0)
	}
	return ok, nil
}

// Busiest returns the port by which the greatest load leaves, and how many times least, or LoadBound
// where that is more, the load is.
func (l *Incremental) Busiest(least uint64) (fabric.PortID, float64) {
	best, most := int32(-1), uint64(0)
	for p, routes := range l.load {
		if load := uint64(routes) * l.unit[p]; load > most {
			best, most = int32(p), load
		}
	}
	least = max(least, l.LoadBound())
	if best < 0 || least == 0 {
		return fabric.NoPort, 0
	}
	s := l.index.Owner[best]
	return l.now.Fabric.Port(l.now.Node[s], fabric.PortNum(best-l.index.Base[s])), float64(most) / float64(least)
}

// IsBalanced says whether no load is above factor times least, or above factor times LoadBound.
func (l *Incremental) IsBalanced(factor float64, least uint64) bool {
	return l.MaxLoad() <= times(factor, max(least, l.LoadBound()))
}

func (l *Incremental) newReliever(limit uint64, blocks int) *reliever {
	return &reliever{mover: mover{Incremental: l, limit: limit}, blocks: blocks, stuck: make([]bool, len(l.load))}
}

// relieve takes routes off the channels with a load above the limit, until none is left or
// nothing helps. It says whether no load is above the limit.
//
// It goes to the busiest channel, and takes the one change of an entry by which the squares of
// loads above the limit fall most for what it costs, until the channel is within the limit:
// O(LIDs on the channel x channels before it) for each change.
func (r *reliever) relieve() bool {
	for r.work < relieveWork {
		c := r.busiest()
		if c < 0 {
			break
		}
		if m, ok := r.bestMove(c); ok {
			r.take(m)
		} else {
			r.stuck[c] = true
		}
	}
	return r.MaxLoad() <= r.limit
}

// busiest is the channel with the greatest load above limit, of those that are not stuck; -1 for
// none.
func (r *reliever) busiest() int32 {
	best, most := int32(-1), r.limit
	for p, routes := range r.load {
		if load := uint64(routes) * r.unit[p]; load > most && !r.stuck[p] {
			best, most = int32(p), load
		}
	}
	return best
}

// bestMove finds the best change of one entry of those by which packets come over a channel.
func (r *reliever) bestMove(c int32) (best move, ok bool) {
	v := r.now
	u := r.index.Owner[c]
	num := fabric.PortNum(c - r.index.Base[u])
	for lid, n := range r.row(u)[:len(v.Dest)] {
		dest := v.Dest[lid]
		if n != num || dest == fabric.NoDestination || r.index.Owner[dest] == u || !v.CarriesLoad(dest) {
			continue
		}
		r.sumFlowsThrough(u, int32(lid))
		for _, s := range slices.Backward(r.tree) { // the nearest first
			if r.flow[s] == 0 {
				continue
			}
			if m, found := r.bestPort(s, int32(lid), dest); found && m.gain > best.gain {
				best, ok = m, true
			}
		}
	}
	return best, ok
}

// bestPort finds the best other port of a slot for a LID.
func (r *reliever) bestPort(s, lid, dest int32) (best move, ok bool) {
	cost := 1.0
	if !r.changed[r.blockOf(s, lid)] {
		if r.changedBlocks >= r.blocks {
			return best, false
		}
		cost = blockEntries
	}
	t := r.index.Owner[dest]
	was, flow := r.entry(s, lid), r.flow[s]
	ports, neighbours := r.now.SwitchLinks(s)
	listed := false
	before := 0.0
	for i, p := range ports {
		num := fabric.PortNum(p - r.index.Base[s])
		if num == was || !r.mayStep(t, s, neighbours[i]) {
			continue
		}
		if !listed {
			listed = true
			r.addRoutes(s, was, lid, t, -flow)
			before = r.growCost(s, was, lid, t, flow)
		}
		if gain := (before - r.growCost(s, num, lid, t, flow)) / cost; gain > best.gain {
			best, ok = move{slot: s, lid: lid, num: num, flow: flow, gain: gain}, true
		}
	}
	if listed {
		r.addRoutes(s, was, lid, t, flow)
	}
	return best, ok
}

// growCost is how much the squares of the loads above the limit grow by more routes on a path.
func (r *reliever) growCost(s int32, num fabric.PortNum, lid, t int32, routes int64) (grow float64) {
	r.follow(s, num, lid, t, func(out int32) {
		r.work++
		grow += growth(uint64(r.load[out])*r.unit[out], uint64(r.load[out]+routes)*r.unit[out], r.limit)
	})
	return grow
}

// LoadBound is a lower bound of the greatest load of all tables of the fabric.
func (l *Incremental) LoadBound() uint64 {
	if l.bound == 0 {
		l.bound = BoundLoad(l.now.Fabric)
	}
	return l.bound
}

// GreatestLoad is what Incremental.MaxLoad is for tables.
func GreatestLoad(f *fabric.Fabric, t *Tables) (most uint64) {
	sources := make([]int64, f.NumSwitches())
	for s := range sources {
		sources[s] = int64(len(f.HostsOn(fabric.NodeID(s))))
	}
	load, unit := make([]uint64, switchPorts(f)), LoadUnits(f)
	forest := NewForest(f)
	for lid, p := range f.LIDPorts() {
		if p == fabric.NoPort || !f.PortCounts(p, fabric.ForLoad) {
			continue
		}
		forest.FindTree(t, fabric.LID(lid))
		forest.Flow(sources, func(out fabric.PortID, routes int64) { load[out] += uint64(routes) * unit[out] })
	}
	for _, x := range load {
		most = max(most, x)
	}
	return most
}
