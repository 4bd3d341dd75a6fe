package diff

import (
	"context"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/verify"
)

// unmatchedLIDs lists the LIDs of end ports that are destinations in one state only, up to the
// highest LID of its tables t. lidOf returns the LID of a target in that state.
func (c *comparison) unmatchedLIDs(f *fabric.Fabric, t *lft.Tables, lidOf func(target) fabric.LID) (list []fabric.LID) {
	matched := make([]bool, 1<<16) // by LID
	for _, t := range c.targets {
		matched[lidOf(t)] = true
	}
	for l := fabric.LID(1); l <= t.MaxLID(); l++ {
		if !matched[l] && f.LIDPort(l) != fabric.NoPort {
			list = append(list, l)
		}
	}
	return list
}

// compareEntries compares the forwarding tables switch by switch.
func (c *comparison) compareEntries(ctx context.Context) error {
	d := &LFTChanges{Switches: []SwitchChange{}}
	c.r.LFTs = d
	x, y := c.a.Tables, c.b.Tables
	oldOnly := c.unmatchedLIDs(c.Old, x, func(t target) fabric.LID { return t.old })
	newOnly := c.unmatchedLIDs(c.New, y, func(t target) fabric.LID { return t.new })
	count := func(row []fabric.PortNum, lids []fabric.LID) int64 {
		return int64(text.CountIf(lids, func(l fabric.LID) bool { return row[l] != fabric.NoPath }))
	}
	results := make([]SwitchChange, c.New.NumSwitches())
	err := par.ForEach(ctx, 0, len(results), func(i int) error {
		s, was, r := fabric.NodeID(i), c.Back[i], &results[i]
		r.SwitchRef, r.Entries = verify.SwitchOf(c.New, s), []Entry{}
		row := y.Row(s)
		var before, known []fabric.PortNum
		if was != fabric.NoNode {
			before = x.Row(was)
			if c.Old.Node(was).GUID == r.Switch {
				known = before // a switch that was replaced knows nothing
			}
		}
		if _, r.Blocks = lft.CountChanges(known, row); was == fabric.NoNode {
			return nil
		}
		for _, t := range c.targets {
			if a, b := lft.Entry(before, t.old), lft.Entry(row, t.new); a != b {
				e := Entry{LID: t.new, Old: a, New: b}
				if t.old != t.new {
					e.OldLID = t.old
				}
				r.Entries = append(r.Entries, e)
			}
		}
		if r.Changed = len(r.Entries); r.Changed > 0 {
			r.Labels = c.New.PortLabels(s)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for s, r := range results {
		d.Changed += int64(r.Changed)
		d.Blocks += int64(r.Blocks)
		d.OfBlocks += int64(y.MaxLID())/lft.BlockSize + 1
		if was := c.Back[s]; was != fabric.NoNode {
			d.Entries += int64(len(c.targets))
			d.Gone += count(x.Row(was), oldOnly)
			d.New += count(y.Row(fabric.NodeID(s)), newOnly)
		}
		if r.Blocks > 0 || r.Changed > 0 {
			d.Switches = append(d.Switches, r)
		}
	}
	return nil
}

// compareLanes compares the SL-to-VL maps of ports that have a cable; the input port may be port 0
// of a switch.
func (c *comparison) compareLanes() {
	d := &SL2VLChanges{Ports: []MapChange{}}
	c.r.SL2VL = d
	c.EachMap(c.a.SL2VL, c.b.SL2VL, func(in fabric.PortNum, _, x fabric.PortID, was, is *lft.VLMap) {
		if *was != *is {
			d.Ports = append(d.Ports, MapChange{Out: portRef(c.New, x), In: in, InLabel: c.New.Label(c.New.Port(c.New.Owner(x), in)), Old: *was, New: *is})
		}
	})
	d.Changed = int64(len(d.Ports))
}

// comparePathSLs counts the paths with another SL, from switches and from ports that have SLs of
// their own in one of the states.
func (c *comparison) comparePathSLs() {
	d := &PathSLChanges{}
	c.r.PathSLs = d
	a, b := c.a.PathSLs, c.b.PathSLs
	count := func(s, was fabric.NodeID, p, before fabric.PortID) {
		for _, t := range c.targets {
			if t.port != fabric.NoPort && t.old <= a.MaxLID() && t.new <= b.MaxLID() && a.SL(before, was, t.old) != b.SL(p, s, t.new) {
				d.Changed++
			}
		}
	}
	for s, was := range c.Back[:c.New.NumSwitches()] {
		if was != fabric.NoNode {
			count(fabric.NodeID(s), was, fabric.NoPort, fabric.NoPort)
		}
	}
	for p, was := range c.BackPort {
		x := fabric.PortID(p)
		if was == fabric.NoPort || a.PortRow(was) == nil && b.PortRow(x) == nil {
			continue
		}
		if at, old := c.New.Attachment(x), c.Old.Attachment(was); at != fabric.NoPort && old != fabric.NoPort {
			count(c.New.Owner(at), c.Old.Owner(old), x, was)
		}
	}
}
