package lft

import (
	"context"

	"github.com/ibweave/ibweave/fabric"
)

// Keep is Balance from given tables: entries that are next hops stay, except for those of
// routes that rebalancing takes off the busiest channels. Other entries take the next hop with
// the least sum of loads on the path. The tables have a row for each switch of f and an entry for each LID; they
// do not change.
func Keep(ctx context.Context, f *fabric.Fabric, tables *Tables, newList func() ListNextHops) (*Tables, error) {
	b := newBalancer(f, newList)
	if err := b.keepRoutes(ctx, tables); err != nil {
		return nil, err
	}
	if err := b.rebalance(ctx); err != nil {
		return nil, err
	}
	return b.tables, nil
}

// Improve is Balance from given tables, as for Keep: all LIDs take their paths again, once.
func Improve(ctx context.Context, f *fabric.Fabric, tables *Tables, newList func() ListNextHops) (*Tables, error) {
	b := newBalancer(f, newList)
	if err := b.keepRoutes(ctx, tables); err != nil {
		return nil, err
	}
	if err := b.placeAgain(ctx); err != nil {
		return nil, err
	}
	if err := b.rebalance(ctx); err != nil {
		return nil, err
	}
	return b.tables, nil
}

// keepRoutes places all LIDs by the entries of old, as far as these are next hops: at first the
// LIDs of which all entries are.
func (b *balancer) keepRoutes(ctx context.Context, old *Tables) error {
	d, c, list := b.newDestination(), b.newChooser(), b.newList()
	for _, whole := range []bool{true, false} {
		for i := range b.jobs {
			j := &b.jobs[i]
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := d.set(b, list, j); err != nil {
				return err
			}
			for _, lid := range j.lids {
				if c.readEntries(d, old, lid) == whole {
					c.completePaths(d, uint32(lid))
					c.addRoutes(d, 1)
					c.writeEntries(d, lid)
				}
			}
			for _, lid := range j.others {
				if c.readEntries(d, old, lid) == whole {
					c.completePaths(d, uint32(lid))
					c.writeEntries(d, lid)
				}
			}
		}
	}
	return nil
}

// readEntries sets choice to the entries for a LID, -1 for those that are no next hops. It
// says whether all are.
func (c *chooser) readEntries(d *destination, t *Tables, lid fabric.LID) bool {
	all := true
	for i, s := range d.hops.Switches {
		c.choice[i] = d.hops.find(i, c.fab.Port(s, t.Row(s)[lid]))
		all = all && c.choice[i] >= 0
	}
	return all
}

// completePaths chooses the next hops of the switches that have none: the one with the least
// sum of loads on the path, of equal ones the first from turn on.
func (c *chooser) completePaths(d *destination, turn uint32) {
	h := &d.hops
	c.cost[len(h.Switches)] = 0
	for i := len(h.Switches) - 1; i >= 0; i-- {
		at := c.choice[i]
		if at < 0 {
			c.readBeyond(d, i)
			at, _ = c.leastNextHop(h.Ports(i), turn, 0)
			at += h.start[i]
			c.choice[i] = at
		}
		c.cost[i] = c.load[h.ports[at]] + c.cost[d.next[at]]
	}
}

func (c *chooser) writeEntries(d *destination, lid fabric.LID) {
	for i, s := range d.hops.Switches {
		c.tables.Row(s)[lid] = c.num[d.hops.ports[c.choice[i]]]
	}
}
