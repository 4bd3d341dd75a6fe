package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"

	"github.com/ibweave/ibweave/audit/diff"
	"github.com/ibweave/ibweave/audit/groups"
	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/report/page"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// reported is a state that report shows.
type reported struct {
	*auditResult
	name  string
	isOld bool // there is a newer one
}

// readStates reads or routes the state that report shows, and the one before it; old is nil for one
// state.
func (a *app) readStates(ctx context.Context, r *reporting, args []string) (old, now *reported, err error) {
	take := func(x *auditResult, name string) { old, now = now, &reported{x, name, false} }
	switch {
	case len(r.engines) > 0:
		f, err := a.reader(&r.audit).Fabric()
		if err != nil {
			return nil, nil, err
		}
		for _, engine := range r.engines {
			x, err := a.auditEngine(ctx, &r.audit, f, engine)
			if err != nil {
				return nil, nil, err
			}
			take(x, engine)
		}
	case len(args) == 2:
		var states [2]*side
		for i, name := range args {
			if states[i], err = a.openState(name, r.Lenient); err != nil {
				return nil, nil, err
			}
		}
		for i, s := range states {
			x, err := a.auditState(ctx, r, s, states[1-i])
			if err != nil {
				return nil, nil, err
			}
			take(x, filepath.Base(filepath.Clean(s.name)))
		}
		if old.name == now.name {
			old.name, now.name = args[0], args[1]
		}
	default:
		x, err := a.audit(ctx, &r.audit)
		if err != nil {
			return nil, nil, err
		}
		take(x, "")
	}
	return old, now, nil
}

// auditState audits OLD or NEW. The topology of dumps of tables is that of -t, or the other one's.
func (a *app) auditState(ctx context.Context, r *reporting, s, other *side) (*auditResult, error) {
	s.demands = r.demands
	switch {
	case s.isDump() && s.kind != state.ForwardingTables:
		return nil, inputf("%s is %s; want a directory, a topology or forwarding tables", s.name, s.kind)
	case s.isDump():
		if s.Topology = cmp.Or(r.Topology, other.Topology); s.Topology == "" {
			return nil, usagef("%s is %s, which does not tell the cables: name the topology, -t FILE", s.name, s.kind)
		}
	}
	return a.audit(ctx, &s.audit)
}

// auditEngine routes a fabric and verifies the tables.
func (a *app) auditEngine(ctx context.Context, in *audit, f *fabric.Fabric, engine string) (*auditResult, error) {
	made, err := a.routeBy(ctx, f, in.Topology, engine, compile.Options{})
	if err != nil {
		return nil, err
	}
	routing := made.Routing
	x := &auditResult{State: state.Of(routing)}
	if x.result, err = a.checkTables(ctx, x.State, x.options); err != nil {
		return nil, err
	}
	if err := a.checkBounds(ctx, in, routing, x.result); err != nil {
		return nil, err
	}
	x.demanded, err = a.checkDemands(ctx, in, x.Fabric, x.Tables, x.result)
	return x, err
}

// named is the state under the name that the page has for it.
func (x *reported) named() *state.State {
	s := *x.State
	s.Name = x.name
	return &s
}

// compareStates is the old state for the page, and what differs from it.
func (a *app) compareStates(ctx context.Context, r *reporting, old, now *reported) (*page.Old, error) {
	stage := a.startStage("compare")
	defer stage.End()
	d, err := diff.Compare(ctx, old.named(), now.named())
	if err != nil {
		return nil, err
	}
	o := &page.Old{Replaced: map[fabric.GUID]fabric.GUID{}, Changes: changes(d, old.Fabric, now.Fabric)}
	for _, f := range d.Findings {
		o.Summary = append(o.Summary, page.Note{Severity: f.Severity, Text: f.Message})
	}
	for _, x := range d.Nodes.Replaced {
		o.Replaced[x.Old.GUID] = x.New.GUID
	}
	both, err := page.Union(old.Fabric, now.Fabric, o.Replaced)
	if err != nil {
		return nil, err
	}
	o.Both = &page.Input{State: &state.State{Fabric: both}, Result: verify.Unverified(both)}
	if err := findPlaces(o.Both, nil); err != nil {
		return nil, err
	}
	if o.Both.Groupings, err = a.groupings(both); err != nil {
		return nil, err
	}
	old.isOld = true
	if o.Input, err = a.reportInput(ctx, r, old); err == nil {
		o.Title = old.name
	}
	return o, err
}

// changes lists what differs between two fabrics as the page shows it.
func changes(d *diff.Result, old, now *fabric.Fabric) (list []page.Change) {
	add := func(kind page.Kind, old, now []page.End, format string, args ...any) {
		list = append(list, page.Change{Kind: kind, Text: fmt.Sprintf(format, args...), Old: old, New: now})
	}
	node := func(n diff.NodeRef) []page.End { return []page.End{{GUID: n.GUID, Switch: n.Type == "switch"}} }
	cable := func(f *fabric.Fabric, ends ...diff.PortRef) (list []page.End) {
		for _, p := range ends {
			_, isSwitch := f.SwitchByGUID(p.GUID)
			list = append(list, page.End{GUID: p.GUID, Switch: isSwitch, Port: p.Port})
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

// cableLoads are what cables may show of jobs, --traffic, and of groups, --host-groups. An old state
// without the hosts of the jobs, or without tables, is without the jobs.
func (a *app) cableLoads(ctx context.Context, r *reporting, x *reported) (list []page.Counter, err error) {
	if r.traffic == "" && a.hostGroups.name == "" {
		return nil, nil
	}
	switch {
	case x.Tables != nil:
	case r.traffic != "" && x.isOld:
		a.tellNoJobs(x, errors.New("it has no forwarding tables"))
		return nil, nil
	case r.traffic != "":
		return nil, usagef("--traffic needs forwarding tables")
	default: // groups are boxes alone
		return nil, nil
	}
	set, err := a.groupsOf(x.Fabric, true)
	if err != nil {
		return nil, err
	}
	if r.jobsFile != nil {
		switch t, err := r.jobsFile.In(x.Fabric, set); {
		case err != nil && x.isOld:
			a.tellNoJobs(x, err)
		case err != nil:
			return nil, err
		default:
			if list, err = jobLoads(ctx, x, t); err != nil {
				return nil, err
			}
		}
	}
	if set == nil {
		return list, nil
	}
	s := a.startStage("count routes of groups")
	defer s.End()
	for i := range set.Groups {
		c, err := groupLoads(ctx, x, &set.Groups[i])
		if err != nil {
			return nil, err
		}
		list = append(list, c)
		s.Set(i+1, len(set.Groups))
	}
	return list, nil
}

// tellNoJobs says on standard error why a state shows no jobs.
func (a *app) tellNoJobs(x *reported, why error) {
	fmt.Fprintf(a.stderr, "ibweave: %s is without the jobs of --traffic: %v\n", x.name, why)
}

// jobLoads are the bytes of all jobs, and of each.
func jobLoads(ctx context.Context, x *reported, t *jobs.Traffic) ([]page.Counter, error) {
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

// groupLoads is the routes of which an end is in a group.
func groupLoads(ctx context.Context, x *reported, g *groups.Group) (c page.Counter, err error) {
	f := x.Fabric
	member := make(map[fabric.NodeID]bool, len(g.Nodes))
	for _, n := range g.Nodes {
		member[n] = true
	}
	var ends []fabric.PortID
	var all, own []int
	for s := range fabric.NodeID(f.NumSwitches()) {
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
	c = page.Counter{Name: "group " + g.String(), Unit: "routes from and to it", FromTables: true, Values: make([]float64, len(loads))}
	for p, n := range loads {
		c.Values[p] = float64(n)
	}
	return c, nil
}
