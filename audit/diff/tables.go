package diff

import (
	"cmp"
	"context"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/verify"
)

// target is a destination of both states: a LID of an end port that both have,
// or a LID that no port has in either.
type target struct {
	old, new fabric.LID
	port     fabric.PortID // of the new fabric; NoPort for a LID that no port has
}

// findTargets lists the destinations of both states, by new LID. A port with
// more LIDs in one state than in the other has the lower ones in both.
func (c *comparison) findTargets() []target {
	var list []target
	for l, x := range c.New.LIDPorts() {
		if x == fabric.NoPort || c.New.LID(x) != fabric.LID(l) {
			continue
		}
		p := c.BackPort[x]
		if p == fabric.NoPort || c.Old.LID(p) == 0 {
			continue
		}
		for k := range fabric.LID(1) << min(c.Old.LMC(p), c.New.LMC(x)) {
			list = append(list, target{old: c.Old.LID(p) + k, new: c.New.LID(x) + k, port: x})
		}
	}
	highest := fabric.LID(0)
	if c.a.Tables != nil && c.b.Tables != nil {
		highest = max(c.a.Tables.MaxLID(), c.b.Tables.MaxLID())
	}
	for l := fabric.LID(1); l <= highest; l++ {
		if c.Old.LIDPort(l) == fabric.NoPort && c.New.LIDPort(l) == fabric.NoPort {
			list = append(list, target{old: l, new: l, port: fabric.NoPort})
		}
	}
	slices.SortFunc(list, func(a, b target) int { return cmp.Compare(a.new, b.new) })
	return list
}

// entry is the entry of a row for a LID, NoPath where the row ends before it.
func entry(row []fabric.PortNum, l fabric.LID) fabric.PortNum {
	if int(l) < len(row) {
		return row[l]
	}
	return fabric.NoPath
}

// unmatchedLIDs lists the LIDs of destinations that only one state has, as far as its tables
// go. lidOf is the LID of a target in that state.
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
	count := func(row []fabric.PortNum, lids []fabric.LID) (n int64) {
		for _, l := range lids {
			if row[l] != fabric.NoPath {
				n++
			}
		}
		return n
	}
	type switchResult struct {
		SwitchChange
		gone, new int64
	}
	results := make([]switchResult, c.New.NumSwitches())
	err := par.ForEach(ctx, 0, len(results), func(s int) error {
		n := c.New.Node(fabric.NodeID(s))
		r := &results[s]
		r.SwitchRef, r.Entries = verify.SwitchOf(c.New, fabric.NodeID(s)), []Entry{}
		row := y.Row(fabric.NodeID(s))
		was := c.Back[s]
		if was == fabric.NoNode || c.Old.Node(was).GUID != n.GUID {
			// It knows nothing, and gets all of its table.
			_, r.Blocks = lft.CountChanges(nil, row)
			if was == fabric.NoNode {
				return nil
			}
		}
		before := x.Row(was)
		r.gone, r.new = count(before, oldOnly), count(row, newOnly)
		if c.Old.Node(was).GUID == n.GUID {
			_, r.Blocks = lft.CountChanges(before, row)
		}
		for _, t := range c.targets {
			if a, b := entry(before, t.old), entry(row, t.new); a != b {
				e := Entry{LID: t.new, Old: a, New: b}
				if t.old != t.new {
					e.OldLID = t.old
				}
				r.Entries = append(r.Entries, e)
			}
		}
		if r.Changed = len(r.Entries); r.Changed > 0 {
			r.Labels = c.New.PortLabels(fabric.NodeID(s))
		}
		return nil
	})
	if err != nil {
		return err
	}
	for s := range results {
		r := &results[s]
		d.Gone += r.gone
		d.New += r.new
		d.Changed += int64(r.Changed)
		d.Blocks += int64(r.Blocks)
		d.OfBlocks += int64(y.MaxLID())/lft.BlockSize + 1
		if c.Back[s] != fabric.NoNode {
			d.Entries += int64(len(c.targets))
		}
		if r.Blocks > 0 || r.Changed > 0 {
			d.Switches = append(d.Switches, r.SwitchChange)
		}
	}
	return nil
}

// compareLanes compares the SL-to-VL maps of ports that have a cable, and of ports 0
// of switches as input ports.
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

// comparePathSLs compares the SLs of paths from switches, and from ports that have SLs of their
// own in one of the states.
func (c *comparison) comparePathSLs() {
	d := &PathSLChanges{Paths: []PathSLChange{}}
	c.r.PathSLs = d
	for s, was := range c.Back[:c.New.NumSwitches()] {
		if was == fabric.NoNode {
			continue
		}
		x, y := c.a.PathSLs.Row(was), c.b.PathSLs.Row(fabric.NodeID(s))
		name := verify.SwitchOf(c.New, fabric.NodeID(s))
		for _, t := range c.targets {
			if t.port == fabric.NoPort || int(t.old) >= len(x) || int(t.new) >= len(y) || x[t.old] == y[t.new] {
				continue
			}
			d.Paths = append(d.Paths, PathSLChange{SwitchRef: name, LID: t.new, Old: x[t.old], New: y[t.new]})
		}
	}
	for p := range fabric.PortID(c.New.NumPorts()) {
		was := c.BackPort[p]
		if was == fabric.NoPort || c.a.PathSLs.PortRow(was) == nil && c.b.PathSLs.PortRow(p) == nil {
			continue
		}
		s := switchOf(c.New, p)
		if s == fabric.NoNode || switchOf(c.Old, was) == fabric.NoNode {
			continue
		}
		source := portRef(c.New, p)
		for _, t := range c.targets {
			if t.port == fabric.NoPort || t.old > c.a.PathSLs.MaxLID() || t.new > c.b.PathSLs.MaxLID() {
				continue
			}
			x, y := c.a.PathSLs.SL(was, switchOf(c.Old, was), t.old), c.b.PathSLs.SL(p, s, t.new)
			if x != y {
				d.Paths = append(d.Paths, PathSLChange{SwitchRef: verify.SwitchOf(c.New, s), Source: &source, LID: t.new, Old: x, New: y})
			}
		}
	}
	d.Changed = int64(len(d.Paths))
}

// switchOf is the switch that a source port hangs on or is the port 0 of, else NoNode.
func switchOf(f *fabric.Fabric, p fabric.PortID) fabric.NodeID {
	if at := f.Attachment(p); at != fabric.NoPort {
		return f.Owner(at)
	}
	return fabric.NoNode
}
