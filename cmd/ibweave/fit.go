package main

import (
	"context"
	"fmt"

	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/verify/bound"
)

// fitting is what --traffic knows of the jobs.
type fitting struct {
	name   string
	file   *jobs.File
	demand *lft.Demand  // in the fabric with its LIDs; nil before, and without a byte between hosts
	bound  *bound.Bound // of the demand; nil where nothing crosses a cut
	proven [][2]string  // lines of what check has proven
}

// demandOf is the demand; nil without --traffic.
func (x *fitting) demandOf() *lft.Demand {
	if x == nil {
		return nil
	}
	return x.demand
}

// prove notes a bound that a file proves.
func (x *fitting) prove(f *fabric.Fabric, load float64, file string) {
	x.proven = append(x.proven, [2]string{"", fmt.Sprintf("no routing can have less than %s, proven by %s", seconds(bound.Seconds(f, x.demand, load)), file)})
}

// trafficSummary is what tables are worth for the jobs of --traffic.
type trafficSummary struct {
	// Seconds is how long the busiest cable takes for all bytes, and Before that with the tables without
	// --traffic, or with those of --previous. Hosts is that of the busiest cable of a host, which is the same with all tables.
	Seconds float64 `json:"seconds"`
	Before  float64 `json:"seconds_before"`
	Hosts   float64 `json:"host_seconds"`
	// Least is what no tables can be below: Hosts, or the bound that Words explains.
	Least float64 `json:"least_seconds"`
	Words string  `json:"witness"`
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

// find finds what the jobs send in a fabric.
func (x *fitting) find(ctx context.Context, a *app, f *fabric.Fabric) (*lft.Demand, error) {
	set, err := a.groupsOf(f, false)
	if err != nil {
		return nil, err
	}
	t, err := x.file.In(f, set)
	if err != nil {
		return nil, err
	}
	if x.demand, err = t.Demand(ctx); err != nil {
		if ctx.Err() == nil {
			err = inputf("%s: %w", x.name, err)
		}
		return nil, err
	}
	return x.demand, nil
}

// least is what no tables can be below, in seconds, and why; hosts is what the cables of hosts take.
func (x *fitting) least(f *fabric.Fabric, hosts float64) (least float64, words string) {
	least, words = hosts, "the busiest cable of a host"
	if x.bound != nil {
		if s := bound.Seconds(f, x.demand, x.bound.Load); s > least {
			return s, x.bound.Words
		}
	}
	return least, words
}

// lines say what tables are worth for the jobs, for check.
func (x *fitting) lines(ctx context.Context, f *fabric.Fabric, tables *lft.Tables) ([][2]string, error) {
	if x.demandOf() == nil {
		return nil, nil
	}
	if tables == nil {
		return x.proven, nil
	}
	t, err := bound.TimesUnder(ctx, f, tables, x.demand)
	if err != nil {
		return nil, err
	}
	least, words := x.least(f, t.Hosts)
	line := fmt.Sprintf("load of the jobs %s, no routing can have less than %s: %s", seconds(max(t.Switches, t.Hosts)), seconds(least), words)
	return append([][2]string{{"traffic", line}}, x.proven...), nil
}

// summarizeTraffic measures tables under the demand; nil without one.
func (c *compilation) summarizeTraffic(ctx context.Context) (*trafficSummary, error) {
	x := c.result.Fit
	if x == nil {
		return nil, nil
	}
	f, d := c.result.Routing.Fabric, c.traffic.demand
	s := &trafficSummary{Uniform: 1, Why: x.Why}
	if x.UniformBefore > 0 {
		s.Uniform = float64(x.Uniform) / float64(x.UniformBefore)
	}
	before, err := bound.TimesUnder(ctx, f, x.Original, d)
	if err != nil {
		return nil, err
	}
	after, err := bound.TimesUnder(ctx, f, c.result.Routing.Tables, d)
	s.Before, s.Seconds, s.Hosts = max(before.Switches, before.Hosts), max(after.Switches, after.Hosts), after.Hosts
	s.Least, s.Words = c.traffic.least(f, s.Hosts)
	return s, err
}

// text is the lines of the summary.
func (s *trafficSummary) text(b *facts) {
	b.row("traffic", "load of the jobs %s, no routing can have less than %s: %s", seconds(s.Seconds), seconds(s.Least), s.Words)
	if s.Why != "" {
		b.row("", "the tables are those without --traffic: %s", s.Why)
		return
	}
	b.row("", "%s before; routes of all hosts to all: %.3f times the greatest load before", seconds(s.Before), s.Uniform)
}
