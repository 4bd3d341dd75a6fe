package diff

import (
	"context"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/verify"
)

// compareMulticast compares the multicast masks of switches that both states have, by
// MLID and port number, and follows packets through old and new masks together.
func (c *comparison) compareMulticast(ctx context.Context) error {
	d := &MulticastChanges{Changed: []MLIDChange{}}
	c.r.Multicast = d
	a, b := c.a.Multicast.Tables, c.b.Multicast.Tables
	mlids := slices.Concat(a.MLIDs(), b.MLIDs())
	slices.Sort(mlids)
	for _, l := range slices.Compact(mlids) {
		if c.Old == c.New && slices.Equal(a.Ports(l), b.Ports(l)) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		change := MLIDChange{MLID: l, Masks: []MaskChange{}}
		c.EachMask(a, b, l, func(s fabric.NodeID, was, is []int) {
			if !slices.Equal(was, is) {
				change.Masks = append(change.Masks, MaskChange{SwitchRef: verify.SwitchOf(c.New, s), Old: was, New: is, Labels: c.New.PortLabels(s)})
			}
		})
		if len(change.Masks) > 0 {
			if change.Transient = c.findMaskFault(l); change.Transient != "" {
				d.Transient++
			}
			d.Changed = append(d.Changed, change)
			d.Masks += len(change.Masks)
		}
	}
	d.MLIDs = len(d.Changed)
	return nil
}

// findMaskFault returns what mft.FindFault finds of an MLID's old and new masks together, on the
// cables of the new fabric.
func (c *comparison) findMaskFault(l fabric.LID) string {
	var ports, senders []fabric.PortID
	for k, plan := range []*mft.Plan{c.a.Multicast, c.b.Multicast} {
		add := func(to *[]fabric.PortID, from []fabric.PortID) {
			for _, p := range from {
				if k == 0 {
					p = c.Port[p]
				}
				if p != fabric.NoPort {
					*to = append(*to, p)
				}
			}
		}
		add(&ports, plan.Tables.Ports(l))
		add(&senders, plan.Tables.EndPorts(l))
		for i := range plan.Trees {
			if t := &plan.Trees[i]; t.MLID == l {
				add(&senders, t.Senders)
			}
		}
	}
	slices.Sort(ports)
	slices.Sort(senders)
	return mft.FindFault(c.New, slices.Compact(ports), slices.Compact(senders))
}
