package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/ibweave/ibweave/audit/pages"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/report/page"
	"github.com/ibweave/ibweave/state"
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

// cableLoads returns the loads that cables can show: of jobs, --traffic, and of groups,
// --host-groups. An old state that lacks hosts of the jobs, or tables, has no loads of jobs.
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
			if list, err = pages.JobLoads(ctx, x.State, t); err != nil {
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
		c, err := pages.GroupLoads(ctx, x.State, &set.Groups[i])
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

// compareStates is the old state for the page, and what differs from it.
func (a *app) compareStates(ctx context.Context, r *reporting, old, now *reported) (*page.Old, error) {
	stage := a.startStage("compare")
	defer stage.End()
	o, err := pages.Compare(ctx, old.named(), now.named())
	if err != nil {
		return nil, err
	}
	set, err := a.groupsOf(o.Both.Fabric, true)
	if err != nil {
		return nil, err
	}
	o.Both.Groupings = pages.Groupings(set)
	old.isOld = true
	if o.Input, err = a.reportInput(ctx, r, old); err == nil {
		o.Title = old.name
	}
	return o, err
}
