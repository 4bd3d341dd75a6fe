// Package pages prepares what report/page shows of states: the differences of two, the places of
// switches and, on each cable, bytes of jobs and routes of groups. It makes no promise to other
// modules.
package pages

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/ibweave/ibweave/audit/cabling"
	"github.com/ibweave/ibweave/audit/diff"
	"github.com/ibweave/ibweave/audit/groups"
	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/report/page"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// Compare returns the differences from an old state. It leaves out the old state's own figures.
func Compare(ctx context.Context, old, now *state.State) (*page.Old, error) {
	d, err := diff.Compare(ctx, old, now)
	if err != nil {
		return nil, err
	}
	o := &page.Old{Replaced: map[fabric.GUID]fabric.GUID{}, Changes: changes(d, old.Fabric, now.Fabric)}
	o.Summary = text.Each(d.Findings, func(f diff.Finding) page.Note { return page.Note{Severity: f.Severity, Text: f.Message} })
	for _, x := range d.Nodes.Replaced {
		o.Replaced[x.Old.GUID] = x.New.GUID
	}
	both, err := page.Union(old.Fabric, now.Fabric, o.Replaced)
	if err != nil {
		return nil, err
	}
	o.Both = &page.Input{State: &state.State{Fabric: both}, Result: verify.Unverified(both)}
	return o, FindPlaces(o.Both, nil)
}

// changes lists what differs between two fabrics as the page shows it.
func changes(d *diff.Result, old, now *fabric.Fabric) (list []page.Change) {
	add := func(kind page.Kind, old, now []page.End, format string, args ...any) {
		list = append(list, page.Change{Kind: kind, Text: fmt.Sprintf(format, args...), Old: old, New: now})
	}
	node := func(n diff.NodeRef) []page.End { return []page.End{{GUID: n.GUID, Switch: n.Type == "switch"}} }
	cable := func(f *fabric.Fabric, ends ...diff.PortRef) (list []page.End) {
		for _, p := range ends {
			_, isSwitch := f.SwitchByGUID(p.Node)
			list = append(list, page.End{GUID: p.Node, Switch: isSwitch, Port: p.Port})
		}
		return list
	}
	for _, n := range d.Nodes.Gone {
		add(page.NodeGone, node(n), nil, "%s %s", n.Type, n.Name)
	}
	for _, n := range d.Nodes.New {
		add(page.NodeNew, nil, node(n), "%s %s", n.Type, n.Name)
	}
	for _, x := range d.Nodes.Replaced {
		add(page.NodeOther, nil, node(x.New), "%s %s in place of %s", x.New.Type, x.New.Name, x.Old.Name)
	}
	for _, x := range d.Nodes.Changed {
		for _, f := range x.Fields {
			add(page.NodeOther, nil, node(x.Node), "%s %s: %s %s, before %s", x.Node.Type, x.Node.Name, f.Name, f.New, f.Old)
		}
	}
	for _, c := range d.Links.Gone {
		add(page.CableGone, cable(old, c.A, c.B), nil, "%s — %s", c.A, c.B)
	}
	for _, c := range d.Links.New {
		add(page.CableNew, nil, cable(now, c.A, c.B), "%s — %s", c.A, c.B)
	}
	for _, c := range d.Links.Moved {
		add(page.Moved, cable(old, c.End, c.Old), cable(now, c.End, c.New), "%s from %s to %s", c.End, c.Old, c.New)
	}
	for _, c := range d.Links.Changed {
		add(page.Rate, nil, cable(now, c.Link.A, c.Link.B), "%s — %s: %s, before %s", c.Link.A, c.Link.B, c.New, c.Old)
	}
	if d.LFTs != nil {
		for _, s := range d.LFTs.Switches {
			if s.Changed > 0 {
				add(page.Entries, nil, []page.End{{GUID: s.Switch, Switch: true}}, "%s: %s of its table, %s to write",
					s.Name, text.CountGrouped(s.Changed, "entry", "entries"), text.CountGrouped(s.Blocks, "block", "blocks"))
			}
		}
	}
	return list
}

// JobLoads returns by port the bytes of all jobs, then those of each job.
func JobLoads(ctx context.Context, x *state.State, t *jobs.Traffic) ([]page.Counter, error) {
	by, lost, err := t.Loads(ctx, x.Tables)
	if err != nil {
		return nil, err
	}
	list := make([]page.Counter, len(lost)+1)
	for i := range list {
		list[i] = page.Counter{Name: "jobs", Unit: "bytes of all", FromTables: true, Values: make([]float64, x.Fabric.NumPorts())}
		if i > 0 {
			list[i].Name, list[i].Unit = "job "+t.Name(int32(i-1)), "bytes"
		}
	}
	for p, loads := range by {
		for _, l := range loads {
			list[0].Values[p] += l.Bytes
			list[l.Job+1].Values[p] += l.Bytes
		}
	}
	return list, nil
}

// GroupLoads returns, by port, the routes that begin or end in a group.
func GroupLoads(ctx context.Context, x *state.State, g *groups.Group) (c page.Counter, err error) {
	f := x.Fabric
	member := make(map[fabric.NodeID]bool, len(g.Nodes))
	for _, n := range g.Nodes {
		member[n] = true
	}
	var ends []fabric.PortID
	var all, own []int
	for _, s := range f.Switches() {
		for _, p := range f.HostsOn(s) {
			if member[f.Owner(p)] {
				own = append(own, len(ends))
			}
			all = append(all, len(ends))
			ends = append(ends, p)
		}
	}
	loads, _, err := lft.DemandLoads(ctx, f, x.Tables, ends, func(dst int) iter.Seq2[int, int64] {
		return func(yield func(int, int64) bool) {
			from := own
			if member[f.Owner(ends[dst])] {
				from = all
			}
			for _, src := range from {
				if src != dst && !yield(src, 1) {
					return
				}
			}
		}
	})
	if err != nil {
		return c, err
	}
	values := text.Each(loads, func(n int64) float64 { return float64(n) })
	return page.Counter{Name: "group " + g.String(), Unit: "routes from and to it", FromTables: true, Values: values}, nil
}

// Groupings returns groups of hosts as a page draws them; nil for none.
func Groupings(set *groups.Set) (list []page.Grouping) {
	if set == nil {
		return nil
	}
	for _, g := range set.Groups {
		i := slices.IndexFunc(list, func(x page.Grouping) bool { return x.Name == g.Grouping })
		if i < 0 {
			i = len(list)
			list = append(list, page.Grouping{Name: g.Grouping})
		}
		list[i].Groups = append(list[i].Groups, page.Group{Name: g.Name, Nodes: g.Nodes})
	}
	return list
}

// FindPlaces sets the levels or the coordinates of the switches. A nil shape is recognized first.
func FindPlaces(in *page.Input, shape *cabling.Shape) error {
	f := in.Fabric
	if shape == nil {
		shape = cabling.Recognize(f)
	}
	in.Shape, in.Levels = shape.String(), shape.Level()
	switch shape.Kind {
	case cabling.Mesh, cabling.Torus, cabling.MixedGrid, cabling.Hypercube, cabling.Ring, cabling.Line:
		grid, err := mesh.Detect(f, mesh.DetectOptions{})
		if _, ok := errors.AsType[*mesh.NotGridError](err); ok {
			return nil // the page draws it by levels
		}
		if err != nil {
			return fmt.Errorf("coordinates: %w", err)
		}
		in.Grid = &page.Grid{Dims: grid.Dims, Wrap: grid.Wrap}
		for s := range fabric.NodeID(f.NumSwitches()) {
			in.Grid.Coord = append(in.Grid.Coord, grid.Coord(s)...)
		}
	}
	return nil
}
