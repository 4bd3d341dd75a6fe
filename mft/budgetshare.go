package mft

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
)

// MaxStray is how many stray copies there may be for each copy to a receiver, when
// every group on a shared MLID sends one packet.
const MaxStray = 0.1

// cluster is groups on one MLID.
type cluster struct {
	groups    []int           // ascending
	receivers []fabric.PortID // of all groups, ascending
	wanted    int             // copies to receivers, when each group sends a packet
	stray     int             // copies to others then, at most: a sender gets none of its own
	own       bool            // a group came with an MLID
	sl        fabric.SL       // of all groups: a scheme's trees may depend on it
	partner   *cluster        // the cheapest to join; nil when there is none
	cost      int             // stray copies that joining it adds
}

// share makes groups share MLIDs, and leaves some without, until the rest suffice.
// It joins the two clusters of groups whose packets then reach the fewest end ports
// beyond their receivers, again and again; when none can be joined within MaxStray
// it drops those with the fewest receivers. It returns the clusters that are left,
// by their first groups, and the groups dropped, ascending. For the search it takes
// O(groups x receivers of all groups).
func (b *budget) share() (list []*cluster, dropped []int, err error) {
	for i := range b.groups {
		if g := &b.groups[i]; len(b.steps[i].trees) == 1 {
			list = append(list, &cluster{groups: []int{i}, receivers: g.Receivers, wanted: len(g.Receivers), own: g.MLID != 0, sl: g.SL})
		}
	}
	isIn := make([]bool, b.r.Fabric.NumPorts())
	for _, c := range list {
		c.findPartner(list, isIn)
	}
	excess := b.need() - b.free
	for ; excess > 0 && len(list) > 0; excess-- {
		best := slices.MinFunc(list, (*cluster).compare)
		if best.partner == nil {
			break
		}
		into, from := best, best.partner
		if from.groups[0] < into.groups[0] {
			into, from = from, into
		}
		into.groups = append(into.groups, from.groups...)
		slices.Sort(into.groups)
		into.receivers = union(nil, into.receivers, from.receivers)
		into.wanted += from.wanted
		into.stray += from.stray + best.cost
		into.own = into.own || from.own
		list = slices.DeleteFunc(list, func(c *cluster) bool { return c == from })
		for _, c := range list {
			if c == into || c.partner == into || c.partner == from {
				c.findPartner(list, isIn)
			}
		}
	}
	order := slices.Clone(list)
	slices.SortFunc(order, func(c, d *cluster) int {
		return cmp.Or(cmp.Compare(c.wanted, d.wanted), cmp.Compare(d.groups[0], c.groups[0]))
	})
	for _, c := range order {
		if excess > 0 && !c.own {
			excess--
			dropped = append(dropped, c.groups...)
			list = slices.DeleteFunc(list, func(d *cluster) bool { return d == c })
		}
	}
	if excess > 0 {
		return nil, nil, &BudgetError{MLIDs: b.free}
	}
	slices.Sort(dropped)
	return list, dropped, nil
}

// compare orders clusters by the cost of joining their partners, those without last,
// and then by the first groups of both.
func (c *cluster) compare(d *cluster) int {
	key := func(c *cluster) []int {
		if c.partner == nil {
			return []int{1}
		}
		i, k := c.groups[0], c.partner.groups[0]
		return []int{0, c.cost, min(i, k), max(i, k)}
	}
	return slices.Compare(key(c), key(d))
}

// findPartner finds the cheapest cluster to join, the first of equal ones. isIn is
// scratch by PortID, all false.
func (c *cluster) findPartner(list []*cluster, isIn []bool) {
	for _, p := range c.receivers {
		isIn[p] = true
	}
	c.partner = nil
	for _, d := range list {
		if d == c || c.own && d.own || c.sl != d.sl {
			continue
		}
		common := 0
		for _, p := range d.receivers {
			if isIn[p] {
				common++
			}
		}
		cost := len(c.groups)*(len(d.receivers)-common) + len(d.groups)*(len(c.receivers)-common)
		stray := float64(c.stray + d.stray + cost)
		if (c.partner == nil || cost < c.cost) && stray <= MaxStray*float64(c.wanted+d.wanted) {
			c.partner, c.cost = d, cost
		}
	}
	for _, p := range c.receivers {
		isIn[p] = false
	}
}

// addShared adds a tree of the last scheme for each cluster of several groups, and
// returns notes of who shares and what strays.
func (b *budget) addShared(ctx context.Context, a *assembly, several []*cluster) ([]string, error) {
	if len(several) == 0 {
		return nil, nil
	}
	last := b.schemes[len(b.schemes)-1]
	groups := make([]Group, len(several))
	shared, stray, wanted := 0, 0, 0
	for k, c := range several {
		g := &groups[k]
		*g = Group{Name: b.groups[c.groups[0]].Name, Receivers: c.receivers, SL: c.sl}
		for _, i := range c.groups {
			g.Senders = union(nil, g.Senders, b.groups[i].Senders)
		}
		shared += len(c.groups)
		stray += c.stray
		wanted += c.wanted
	}
	list, _, err := draftWith(ctx, last, b.r, groups, b.opt)
	if err != nil {
		return nil, err
	}
	for k, c := range several {
		if list[k].err != nil {
			return nil, list[k].err
		}
		if len(list[k].trees) != 1 {
			return nil, &BudgetError{MLIDs: b.free}
		}
		first := c.groups[0]
		for _, i := range c.groups {
			if b.groups[i].MLID != 0 {
				first = i
			}
		}
		mlid, err := a.ids.MLID(first)
		if err != nil {
			return nil, err
		}
		a.masks = append(a.masks, masks{mlid, list[k].trees[0].ports})
		for _, i := range c.groups {
			a.addTree(i, 0, last.Name(), nil, b.groups[i].Senders, mlid)
		}
	}
	return []string{fmt.Sprintf("%d groups share %s, with at most %d stray copies for %d to receivers when each sends a packet; OpenSM gives no two MGIDs one MLID",
		shared, text.Count(len(several), "MLID", "MLIDs"), stray, wanted)}, nil
}

// mostNames is how many names a note lists.
const mostNames = 16

// noteUnserved names groups that have no MLID.
func (b *budget) noteUnserved(groups []int) string {
	var names []string
	for _, i := range groups {
		names = append(names, fmt.Sprintf("%q", b.groups[i].Name))
	}
	return fmt.Sprintf("%s without an MLID, left to a unicast packet for each receiver: %s",
		text.Count(len(names), "group", "groups"), text.Few(names, mostNames))
}
