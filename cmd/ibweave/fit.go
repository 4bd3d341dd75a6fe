package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/ibweave/ibweave/audit/groups"
	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/verify/bound"
)

// fitting is what --traffic knows of the jobs.
type fitting struct {
	name   string
	file   *jobs.File
	demand *lft.Demand  // in the fabric with its LIDs; nil before, and without a byte between hosts
	bound  *bound.Bound // of the demand; nil where nothing crosses a cut
	proven []provenLoad // what check has proven
	said   bool         // that the jobs send nothing
}

// demandFunc is compile.Options.Demand.
type demandFunc = func(context.Context, *fabric.Fabric) (*lft.Demand, error)

// demandIn is find for several engines, which are tried at the same time.
func (x *fitting) demandIn(a *app) demandFunc {
	var one sync.Mutex
	return func(ctx context.Context, f *fabric.Fabric) (*lft.Demand, error) {
		one.Lock()
		defer one.Unlock()
		return x.find(ctx, a, f)
	}
}

// fittedName is the name of an engine's tables for the jobs.
func fittedName(engine string) string { return engine + " for the jobs" }

// isFitted says whether tables are for the jobs. A line on standard error says why they are not.
func (a *app) isFitted(r *compile.Result, name string) bool {
	why := "the jobs send nothing between hosts"
	if r.Fit != nil {
		why = r.Fit.Why
	}
	if why != "" {
		fmt.Fprintf(a.stderr, "ibweave: left out %s: %s\n", name, why)
	}
	return why == ""
}

// demandOf is the demand; nil without --traffic.
func (x *fitting) demandOf() *lft.Demand {
	if x == nil {
		return nil
	}
	return x.demand
}

// trafficLoad is the load of tables by the jobs of --traffic.
type trafficLoad struct {
	// Seconds is how long the busiest cable takes for all bytes, and Hosts the busiest cable of a host, which is the
	// same with all tables.
	Seconds float64 `json:"seconds"`
	Hosts   float64 `json:"host_seconds"`
	// Least is what no tables can be below: Hosts, or the bound that Words explains.
	Least float64 `json:"least_seconds"`
	Words string  `json:"witness"`
}

// String is the load and its bound in words.
func (s *trafficLoad) String() string {
	return fmt.Sprintf("load of the jobs %s, no routing can have less than %s: %s", text.Seconds(s.Seconds), text.Seconds(s.Least), s.Words)
}

// trafficWorth is what check says of the jobs of --traffic.
type trafficWorth struct {
	*trafficLoad              // nil without tables
	Proven       []provenLoad `json:"proven,omitempty"`
}

// provenLoad is a load that no tables can be below, by a file of proofs.
type provenLoad struct {
	File  string  `json:"file"`
	Least float64 `json:"least_seconds"`
}

// lines say the same to people.
func (x *trafficWorth) lines() (list [][2]string) {
	if x.trafficLoad != nil {
		list = append(list, [2]string{"traffic", x.trafficLoad.String()})
	}
	for _, p := range x.Proven {
		list = append(list, [2]string{"", fmt.Sprintf("no routing can have less than %s, proven by %s", text.Seconds(p.Least), p.File)})
	}
	return list
}

// trafficSummary is what tables are worth for the jobs of --traffic.
type trafficSummary struct {
	trafficLoad
	// Before is Seconds with the tables without --traffic, or with those of --previous.
	Before float64 `json:"seconds_before"`
	// Uniform is the greatest load of one route from each host to each LID over that before.
	Uniform float64 `json:"uniform"`
	Why     string  `json:"why,omitempty"` // the tables are not fitted
}

// readFitting reads the file of --traffic; nil for none.
func (a *app) readFitting(name string) (*fitting, error) {
	if name == "" {
		return nil, nil
	}
	file, err := jobs.Read(name, a.readInput)
	return &fitting{name: name, file: file}, err
}

// readJobFile reads a file of jobs; nil for none.
func (a *app) readJobFile(name string) (*jobs.File, error) {
	if name == "" {
		return nil, nil
	}
	return jobs.Read(name, a.readInput)
}

// jobsIn finds the jobs of a file in a fabric, and the groups of --host-groups, see groupsOf.
func (a *app) jobsIn(file *jobs.File, f *fabric.Fabric, tell bool) (*jobs.Traffic, *groups.Set, error) {
	set, err := a.groupsOf(f, tell)
	if err != nil {
		return nil, nil, err
	}
	t := jobs.New(f)
	if file != nil {
		t, err = file.In(f, set)
	}
	return t, set, err
}

// find finds what the jobs send in a fabric.
func (x *fitting) find(ctx context.Context, a *app, f *fabric.Fabric) (*lft.Demand, error) {
	t, _, err := a.jobsIn(x.file, f, false)
	if err != nil {
		return nil, err
	}
	if x.demand, err = t.Demand(ctx); err != nil {
		return nil, inputUnlessDone(ctx, fmt.Errorf("%s: %w", x.name, err))
	}
	if x.demand == nil && !x.said {
		x.said = true
		fmt.Fprintf(a.stderr, "ibweave: %s: the jobs send nothing between hosts\n", x.name)
	}
	return x.demand, nil
}

// load measures tables under the demand.
func (x *fitting) load(ctx context.Context, f *fabric.Fabric, tables *lft.Tables) (s trafficLoad, err error) {
	t, err := bound.TimesUnder(ctx, f, tables, x.demand)
	if err != nil {
		return s, err
	}
	s = trafficLoad{Seconds: max(t.Switches, t.Hosts), Hosts: t.Hosts, Least: t.Hosts, Words: "the busiest cable of a host"}
	if x.bound != nil {
		if least := bound.Seconds(f, x.demand, x.bound.Load); least > s.Least {
			s.Least, s.Words = least, x.bound.Words
		}
	}
	return s, nil
}

// judge says what tables are worth for the jobs, for check; nil for nothing.
func (x *fitting) judge(ctx context.Context, f *fabric.Fabric, tables *lft.Tables) (*trafficWorth, error) {
	if x.demandOf() == nil || tables == nil && x.proven == nil {
		return nil, nil
	}
	worth := &trafficWorth{Proven: x.proven}
	if tables == nil {
		return worth, nil
	}
	load, err := x.load(ctx, f, tables)
	worth.trafficLoad = &load
	return worth, err
}

// summarizeTraffic measures tables under the demand; nil without one.
func (c *compilation) summarizeTraffic(ctx context.Context) (*trafficSummary, error) {
	x := c.result.Fit
	if x == nil {
		return nil, nil
	}
	f := c.result.Routing.Fabric
	s := &trafficSummary{Uniform: 1, Why: x.Why}
	if x.UniformBefore > 0 {
		s.Uniform = float64(x.Uniform) / float64(x.UniformBefore)
	}
	before, err := c.traffic.load(ctx, f, x.Original)
	if err != nil {
		return nil, err
	}
	s.Before = before.Seconds
	s.trafficLoad, err = c.traffic.load(ctx, f, c.result.Routing.Tables)
	return s, err
}

// text is the lines of the summary.
func (s *trafficSummary) text(b *text.Sheet) {
	b.Row("traffic", "%s", &s.trafficLoad)
	if s.Why != "" {
		b.Row("", "the tables are those without --traffic: %s", s.Why)
		return
	}
	b.Row("", "%s before; routes of all hosts to all: %.3f times the greatest load before", text.Seconds(s.Before), s.Uniform)
}
