package lft

import (
	"context"
	"errors"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
)

const (
	// After a first step the greatest load may be FirstStepLoad times the target. To reach
	// that, the step may change firstStepBlocks blocks, counting those that have to change.
	FirstStepLoad   = 1.5
	firstStepBlocks = 64
)

// newMover returns a mover for a copy of the present tables. At most blocks blocks may have
// changed in the end, counting l.changed.
func (l *Incremental) newMover(blocks int) *mover {
	f := l.now.Fabric
	b := newBalancer(f, l.newNextHops)
	b.tables = l.Routing().Tables
	m := b.newMover()
	m.changed, m.blocks = make([]bool, len(b.tables.entries)/BlockSize), max(0, blocks-l.changedBlocks)
	perRow := b.tables.stride / BlockSize
	for s, slot := range l.now.Slot {
		base, port := l.index.Base[slot], f.PortBase(fabric.NodeID(s))
		for num, routes := range l.load[base:l.index.Base[slot+1]] {
			if routes > 0 {
				b.load[int(port)+num] = uint64(routes) * b.unit[int(port)+num]
			}
		}
		copy(m.changed[s*perRow:(s+1)*perRow], l.changed[l.blockOf(slot, 0):])
	}
	return m
}

// newNextHops returns a list of the ports that the engine allows; see IncrementalEngine.
func (l *Incremental) newNextHops() ListNextHops {
	sort, dist := NewByDistance(l.now.Fabric.Switches()), make([]uint8, len(l.now.Slot))
	var list []fabric.PortNum
	return func(t fabric.NodeID, h *NextHops) error {
		root := l.now.Slot[t]
		hops, _ := l.dist.distancesTo(root)
		for s, slot := range l.now.Slot {
			dist[s] = hops[slot]
		}
		for _, s := range sort.FarthestFirst(dist) {
			slot := l.now.Slot[s]
			ports, neighbours := l.now.SwitchLinks(slot)
			list = list[:0]
			for i, p := range ports {
				if l.mayStep(root, slot, neighbours[i]) {
					list = append(list, fabric.PortNum(p-l.index.Base[slot]))
				}
			}
			if len(list) > 0 { // distances to and from switches that are gone are old ones
				h.Add(s, list...)
			}
		}
		return nil
	}
}

// adopt takes the entries and loads of a mover. undo reverts that, if nothing else has changed
// since; it is nil if no entries change.
func (l *Incremental) adopt(m *mover) (undo func()) {
	type entry struct {
		slot, lid int32
		was       fabric.PortNum
	}
	var list []entry
	for s, slot := range l.now.Slot {
		if l.now.Node[slot] == fabric.NoNode {
			continue
		}
		row, is := l.row(slot), m.tables.Row(fabric.NodeID(s))
		if slices.Equal(row[:len(is)], is) {
			continue
		}
		for lid, num := range is {
			if was := row[lid]; was != num {
				list = append(list, entry{slot, int32(lid), was})
				l.setEntry(slot, int32(lid), num)
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	before := l.load
	l.load = slices.Clone(before)
	for s, slot := range l.now.Slot {
		ports, _ := l.now.Fabric.SwitchLinks(fabric.NodeID(s))
		for _, p := range ports {
			l.load[l.index.Base[slot]+int32(l.now.Fabric.Num(p))] = int64(m.load[p] / m.unit[p])
		}
	}
	return func() {
		for _, e := range list {
			l.setEntry(e.slot, e.lid, e.was)
		}
		l.load = before
	}
}

// TakeFirstStep is for use after an Update. If a load is above FirstStepLoad times what a
// routing from scratch would give, it moves more entries, as long as at most
// firstStepBlocks blocks change in all, or twice as many as had to change. If that is not
// enough, it keeps the best tables found.
//
// fromScratch returns the greatest load of tables from scratch, as GreatestLoad. It is called
// if the target by LoadBound is not reached. Errors are those of fromScratch.
func (l *Incremental) TakeFirstStep(fromScratch func() (uint64, error)) error {
	_, err := l.takeStep(FirstStepLoad, max(firstStepBlocks, 2*l.changedBlocks), fromScratch, false)
	return err
}

// TakePart changes at most firstStepBlocks blocks to bring all loads to at most factor times
// least or LoadBound, whichever is greater. undo reverts that; it is nil if nothing has
// changed.
func (l *Incremental) TakePart(factor float64, least uint64) (undo func()) {
	l.countChanges()
	m, _ := l.reach(times(factor, max(least, l.LoadBound())), firstStepBlocks)
	return l.adopt(m)
}

// reach returns a mover that took routes off until no load is above done; false if one still is.
func (l *Incremental) reach(done uint64, blocks int) (m *mover, ok bool) {
	m = l.newMover(blocks)
	// Listing next hops cannot fail.
	_, _ = m.reach(context.Background(), done)
	return m, m.greatest() <= done
}

// takeStep takes routes off channels until no load is above factor times LoadBound.
// If it cannot, it aims at factor times the load of fromScratch; if that returns a
// *DomainError, it accepts the tables nearest to LoadBound. It returns false if a
// load stays above the aim; if whole, no entry has changed then.
func (l *Incremental) takeStep(factor float64, blocks int, fromScratch func() (uint64, error), whole bool) (bool, error) {
	l.moved = false
	if l.IsBalanced(factor, 0) {
		return true, nil
	}
	m, ok := l.reach(times(factor, l.LoadBound()), blocks)
	if !ok {
		least, err := fromScratch()
		if refused := (*DomainError)(nil); errors.As(err, &refused) {
			ok = true
		} else if err != nil {
			return false, err
		} else if l.IsBalanced(factor, least) {
			return true, nil
		} else {
			m, ok = l.reach(times(factor, least), blocks)
		}
	}
	if ok || !whole {
		l.moved = l.adopt(m) != nil
	}
	return ok, nil
}

// Busiest returns the port by which the greatest load leaves, and that load divided by least
// or by LoadBound, whichever is greater.
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

// IsBalanced returns true if no load is above factor times the greater of least and LoadBound.
func (l *Incremental) IsBalanced(factor float64, least uint64) bool {
	return l.MaxLoad() <= times(factor, max(least, l.LoadBound()))
}

// LoadBound returns a lower bound of the greatest load, valid for all tables of the fabric.
func (l *Incremental) LoadBound() uint64 {
	if l.bound == 0 {
		l.bound = BoundLoad(l.now.Fabric)
	}
	return l.bound
}

// GreatestLoad returns the greatest load of the tables, counted as by Incremental.MaxLoad.
func GreatestLoad(f *fabric.Fabric, t *Tables) uint64 {
	sources := text.Each(f.Switches(), func(s fabric.NodeID) int64 { return int64(len(f.HostsOn(s))) })
	load, unit := make([]uint64, switchPorts(f)), LoadUnits(f)
	forest := NewForest(f)
	for lid, p := range f.LIDPorts() {
		if p == fabric.NoPort || !f.PortCounts(p, fabric.ForLoad) {
			continue
		}
		forest.FindTree(t, fabric.LID(lid))
		forest.Flow(sources, func(out fabric.PortID, routes int64) { load[out] += uint64(routes) * unit[out] })
	}
	return greatest(load)
}
