package lft

import (
	"context"

	"github.com/ibweave/ibweave/fabric"
)

// Demand is the traffic of hosts that do not all send equally to all others. Amounts have any
// unit, and add up to less than 1<<48.
type Demand struct {
	// To has, by LID, the flows of hosts on other switches to it, ascending by switch. LIDs
	// beyond its end have none.
	To [][]Flow
	// Background is the amount that each host sends, on top, to each LID of every other host.
	Background int64
	// Host has, by PortID of both ends of a host's cable, what leaves there, background
	// included.
	Host []int64
	// Bytes is the number of bytes that an amount of 1 stands for.
	Bytes float64
}

// Flow is the amount that the hosts on switch From send to a LID.
type Flow struct {
	From   fabric.NodeID
	Amount int64
}

// Fit is the result of fitting tables to a demand.
type Fit struct {
	// Before and After are the greatest loads of a channel between switches under the demand,
	// in LoadUnits. Least is a lower bound of both.
	Before, After, Least uint64
	// Displaced is true if, with a slack, entries also changed for LIDs without a share
	// in any load above the limit, to make room for others.
	Displaced bool
	undo      func()
}

// Undo reverts the changes. The tables must not have changed since.
func (x *Fit) Undo() { x.undo() }

// FitOptions are the options of Incremental.Fit.
type FitOptions struct {
	// Most bounds each channel's load of uniform traffic, a route from each host to each LID.
	Most uint64
	// Slack is 1 or more: entries change only until the load under the demand is at most
	// Slack times a lower bound.
	Slack float64
	// Least is a lower bound of the load, as an amount on the fastest channel; 0 for none.
	Least float64
	// Blocks is how many blocks of the tables may change.
	Blocks int
	// Spread also moves routes off channels below the greatest load, if that has become less.
	// It is for tables from scratch, since each further fit would spread again.
	Spread bool
}

// PartBlocks is how many blocks the plugin changes at a time.
const PartBlocks = firstStepBlocks

// Changed returns true if entries have changed.
func (x *Fit) Changed() bool { return x.undo != nil }

// DefaultUniformFloor is the factor by which, by default, the greatest load of uniform
// traffic may grow when tables are fitted to a demand.
const DefaultUniformFloor = 1.1

// Fit moves routes to lower the greatest load under a demand, to at most opt.Slack times a
// lower bound if possible. It starts from the present tables, and changes no entries for LIDs
// without demand.
//
// The load of a channel is the demand and background over it, times the ratio of the
// fastest rate to its own. With a slack, routes at first move only where no load
// rises above the limit, Slack times the bound: so only entries for LIDs with a share
// in a load above it change. If that is not enough, other routes make room.
//
// A channel gets more than opt.Most routes only if it had more before. If Fit returns
// ctx's error, the tables are unchanged.
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
	if x.After < x.Before || m.blocks == 0 { // else the changes would gain nothing
		x.undo = l.adopt(m)
	}
	x.Displaced = x.Displaced && x.Changed()
	return x, nil
}

// leastUnder returns a lower bound of the load: the caller's, or that of the busiest host
// cable.
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
