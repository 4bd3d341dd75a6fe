package lft

import (
	"context"

	"github.com/ibweave/ibweave/fabric"
)

// Demand is what hosts send where they do not all send as much to all. Amounts are in a unit of the
// caller's, and less than 1<<48 in sum.
type Demand struct {
	// To has, for each LID, the flows of hosts on other switches to it, ascending by switch. LIDs beyond
	// its end get none.
	To [][]Flow
	// Background is the amount that each host sends in addition to each LID of every other host.
	Background int64
	// Host has, by PortID of both ends of a host's cable, the amount that leaves by it, background included.
	Host []int64
	// Bytes is what an amount of 1 is.
	Bytes float64
}

// Flow is the amount that the hosts on switch From send to a LID.
type Flow struct {
	From   fabric.NodeID
	Amount int64
}

// Fit is the result of fitting tables to a demand.
type Fit struct {
	// Before and After are the greatest loads of a channel between switches under the demand, in
	// LoadUnits, and Least is a lower bound of both.
	Before, After, Least uint64
	// Displaced says that with a slack some entries changed for LIDs that had no share in a load above
	// it, to make room.
	Displaced bool
	undo      func()
}

// Undo takes the changes back. Nothing else may have changed the tables since.
func (x *Fit) Undo() { x.undo() }

// FitOptions are the choices of Incremental.Fit.
type FitOptions struct {
	// Most is the greatest load, of one route from each host to each LID, that a channel may get.
	Most uint64
	// Slack is how many times a lower bound the load under the demand may be, 1 or more: no more
	// entries change than that takes.
	Slack float64
	// Least is a lower bound that the caller knows, as an amount on the fastest channel; 0 for none.
	Least float64
	// Blocks is how many blocks of the tables may change.
	Blocks int
	// Spread also moves routes off channels below the greatest load, where that has become less. A second
	// fit would spread again: it is for tables from scratch.
	Spread bool
}

// PartBlocks is how many blocks the plugin changes at a time.
const PartBlocks = firstStepBlocks

// Changed returns true if entries have changed.
func (x *Fit) Changed() bool { return x.undo != nil }

// DefaultUniformFloor is how many times the greatest load of uniform traffic may become, by
// default, when tables are fitted to a demand.
const DefaultUniformFloor = 1.1

// Fit moves routes so that the greatest load under a demand is small: at most opt.Slack times a
// lower bound, if it finds such tables. It begins with the tables as they are, and changes no
// entries for LIDs without demand.
//
// The load of a channel is what jobs send over it and the background, times the ratio of the fastest
// rate to its own. With a slack, routes at first move only where no load comes above
// it: then entries change only for LIDs that had a share in a load above it. Where that is not enough, others
// make room.
//
// The result has no channel with more than opt.Most routes that had not before. The error is that
// of ctx; then the tables are as they were.
func (l *Incremental) Fit(ctx context.Context, d *Demand, opt FitOptions) (*Fit, error) {
	l.countChanges()
	m := l.newMover(min(opt.Blocks, len(l.changed)))
	m.demand, m.most = d, opt.Most
	if err := m.countDemand(ctx); err != nil {
		return nil, err
	}
	x := &Fit{Before: m.greatest(), Least: l.leastUnder(d, opt.Least)}
	done := max(times(opt.Slack, x.Least), x.Least+x.Least/rebalanceDone)
	var err error
	if opt.Slack > 1 {
		x.Displaced, err = m.reach(ctx, done)
	} else {
		err = m.lower(ctx, done, done)
	}
	if err == nil && opt.Spread && m.greatest() < x.Before {
		err = m.spread(ctx)
	}
	if err != nil {
		return nil, err
	}
	x.After = m.greatest()
	if x.After < x.Before || m.blocks == 0 { // else it would be no better for the changes
		x.undo = l.adopt(m)
	}
	x.Displaced = x.Displaced && x.Changed()
	return x, nil
}

// leastUnder is a lower bound of what is worth an effort: that of the caller, or the load of a host's cable.
func (l *Incremental) leastUnder(d *Demand, known float64) uint64 {
	least := known * capacityUnits
	f := l.now.Fabric
	fastest := fastestRate(f)
	for p, amount := range d.Host {
		load := float64(amount * capacityUnits)
		if mbps := f.Link(fabric.PortID(p)).Mbps(); mbps > 0 {
			load *= float64(fastest) / float64(mbps)
		}
		least = max(least, load)
	}
	return uint64(least)
}
