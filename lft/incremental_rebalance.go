package lft

import (
	"context"
	"errors"
	"math"

	"github.com/ibweave/ibweave/fabric"
)

const (
	// firstStepLoad is how many times the target the greatest load may be after a first step,
	// and firstStepBlocks is how many blocks the first step may change to keep to that, those
	// included that have to change.
	firstStepLoad   = 1.5
	firstStepBlocks = 64
)

// move is another entry of a slot for a LID.
type move struct {
	slot, lid int32
	num       fabric.PortNum
	opened    bool // it is the first of its block
}

// TakeFirstStep moves some more entries after an Update where that left a load of more than
// firstStepLoad times what routing from scratch would give: no more than that firstStepBlocks
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
	_, err := l.takeStep(firstStepLoad, blocks, fromScratch, false)
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
	r := l.newStep(firstStepBlocks)
	r.relieve(times(factor, max(least, l.LoadBound())))
	if len(r.taken) == 0 {
		return nil
	}
	return func() { r.undoTo(0) }
}

// takeStep takes routes off until no load is above factor times LoadBound; where that cannot be,
// above factor times what fromScratch gives, or as near to LoadBound as it can come if that is a
// *DomainError. It returns false if it did not come so far; with undo, entries are as they were then.
func (l *Incremental) takeStep(factor float64, blocks int, fromScratch func() (uint64, error), undo bool) (bool, error) {
	r := l.newStep(blocks)
	ok := r.relieve(times(factor, l.LoadBound()))
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
	r = l.newStep(blocks)
	ok = r.relieve(times(factor, least))
	l.moved = len(r.taken) > 0
	if !ok && undo {
		r.undoTo(0)
	}
	return ok, nil
}

// IsBalanced says whether no load is above factor times least, or above factor times LoadBound.
func (l *Incremental) IsBalanced(factor float64, least uint64) bool {
	return l.MaxLoad() <= times(factor, max(least, l.LoadBound()))
}

// newStep is for moves under one route from each host to each LID.
func (l *Incremental) newStep(blocks int) *fitter {
	d := &Demand{To: make([][]Flow, len(l.now.Dest))}
	var all []Flow
	for s, n := range l.now.Sources {
		if n > 0 {
			all = append(all, Flow{l.now.Node[s], int64(n)})
		}
	}
	for lid := range d.To {
		d.To[lid] = all
	}
	return l.newFitter(d, FitOptions{Most: math.MaxUint64, Blocks: blocks})
}

// relieve moves routes off the channels with a load above a limit, until none is left or no move
// helps. At first only entries change in blocks that have changed, and then routes move only where no
// load comes above the limit. It says whether no load is above it.
func (r *fitter) relieve(limit uint64) bool {
	r.limit = limit
	most := r.Blocks
	for _, step := range []struct {
		blocks  int
		ceiling uint64
	}{{r.changedBlocks, limit}, {most, limit}, {most, math.MaxUint64}} {
		r.Blocks, r.ceiling = step.blocks, step.ceiling
		moved := -1
		for end := r.pass + keptPatience; r.pass < end && moved < len(r.taken) && r.greatest() > limit; r.pass++ {
			moved = len(r.taken)
			r.movePass(context.Background())
		}
	}
	return r.greatest() <= limit
}

// closeBlock forgets that a block has changed, for a change that is taken back.
func (l *Incremental) closeBlock(m move) {
	if m.opened {
		l.changed[l.blockOf(m.slot, m.lid)] = false
		l.changedBlocks--
	}
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
