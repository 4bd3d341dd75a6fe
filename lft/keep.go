package lft

import (
	"context"

	"github.com/ibweave/ibweave/fabric"
)

// Improve is Balance starting from given tables: it places all LIDs again, once, and does not
// move routes to different LIDs apart. The given tables have a row for each switch of f and
// an entry for each LID; they do not change.
func Improve(ctx context.Context, f *fabric.Fabric, tables *Tables, newList func() ListNextHops) (*Tables, error) {
	b := newBalancer(f, newList)
	if err := b.keepRoutes(ctx, tables); err != nil {
		return nil, err
	}
	if err := b.placeAgain(ctx); err != nil {
		return nil, err
	}
	bound := BoundLoad(f)
	if err := b.newMover().lower(ctx, bound, bound+bound/rebalanceDone); err != nil {
		return nil, err
	}
	b.routeAlike()
	return b.tables, nil
}

const (
	// With Prefer the greatest load may be preferFactor times that of Balance, or
	// shiftFactor times to keep shifts free of contention.
	shiftFactor  = 1.1
	preferFactor = 1.02
)

// Prefer keeps the entries of given tables that are next hops, if the result is good enough;
// else it returns the tables of Balance. Other entries take the next hop with the least sum
// of loads on the path. shiftsFree says that shifts of hosts have no contention with the
// tables: then all entries stay if the greatest load is little above that of Balance.
// Otherwise only as many routes leave the busiest channels as needed for about the greatest
// load of Balance, and routes to a LID must meet about as early as with Balance. If some have
// to leave, routes to different LIDs also move apart. The given tables are as for Improve.
func Prefer(ctx context.Context, f *fabric.Fabric, tables *Tables, shiftsFree bool, newList func() ListNextHops) (*Tables, error) {
	b, err := prefer(ctx, newBalancer(f, newList), tables, shiftsFree)
	if err != nil {
		return nil, err
	}
	b.routeAlike()
	return b.tables, nil
}

// times multiplies a load.
func times(factor float64, load uint64) uint64 { return uint64(float64(factor * float64(load))) }

func prefer(ctx context.Context, b *balancer, tables *Tables, shiftsFree bool) (*balancer, error) {
	if err := b.keepRoutes(ctx, tables); err != nil {
		return nil, err
	}
	if b.greatestLoad() <= times(preferFactor, BoundLoad(b.fab)) {
		return b, nil
	}
	scratch := newBalancer(b.fab, b.newList)
	if err := scratch.balance(ctx); err != nil {
		return nil, err
	}
	least := scratch.greatestLoad()
	if shiftsFree && b.greatestLoad() <= times(shiftFactor, least) {
		return b, nil
	}
	most := times(preferFactor, least)
	b.even = b.greatestLoad() <= most
	if err := b.newMover().lower(ctx, least, most); err != nil {
		return nil, err
	}
	better, err := b.isBetter(ctx, scratch)
	if err != nil {
		return nil, err
	}
	if !better {
		b = scratch
	}
	return b, b.separate(ctx)
}

// isBetter returns true if b, with its preferred entries, is good enough: see Prefer.
func (b *balancer) isBetter(ctx context.Context, scratch *balancer) (bool, error) {
	if b.greatestLoad() > times(preferFactor, scratch.greatestLoad()) {
		return false, nil
	}
	ours, err := b.countBranches(ctx)
	if err != nil {
		return false, err
	}
	theirs, err := scratch.countBranches(ctx)
	return uint64(ours) <= times(preferFactor, uint64(theirs)), err
}

// countBranches counts the switches that send routes to a LID, for all LIDs of hosts. Fewer
// mean that routes to a LID meet earlier.
func (b *balancer) countBranches(ctx context.Context) (n int, err error) {
	m := b.newMover()
	err = m.eachLID(ctx, 0, func(fabric.LID) bool { return true }, func(lid fabric.LID) {
		m.read(lid)
		m.readFlows(lid)
		for i := range m.hops.Switches {
			if m.arriving[i] > 0 {
				n++
			}
		}
	})
	return n, err
}

// keepRoutes places all LIDs by the entries of tables that are next hops. LIDs whose entries
// are all next hops come first.
func (b *balancer) keepRoutes(ctx context.Context, tables *Tables) error {
	var broken []balancerJob
	if err := b.placeRoutes(ctx, b.jobs, func(c *chooser, d *destination) {
		whole := &balancerJob{t: d.job.t, others: d.job.others}
		rest := balancerJob{t: d.job.t}
		for _, lid := range d.job.lids {
			if c.readEntries(d, tables, lid) {
				c.selectLoad(lid)
				c.addRoutes(d, 1)
				c.keepPaths(d)
				whole.lids = append(whole.lids, lid)
			} else {
				rest.lids = append(rest.lids, lid)
			}
		}
		for _, lid := range d.job.others {
			c.readEntries(d, tables, lid)
			for i, k := range c.choice[:len(d.hops.Switches)] {
				if k != noChoice {
					b.tables.Row(d.hops.Switches[i])[lid] = d.hops.Ports(i)[k]
				}
			}
		}
		d.job = whole
		if len(rest.lids) > 0 {
			broken = append(broken, rest)
		}
	}); err != nil {
		return err
	}
	return b.placeRoutes(ctx, broken, func(c *chooser, d *destination) {
		for _, lid := range d.job.lids {
			c.selectLoad(lid)
			c.readEntries(d, tables, lid)
			c.completePaths(d, uint32(lid))
			c.addRoutes(d, 1)
			c.keepPaths(d)
		}
	})
}
