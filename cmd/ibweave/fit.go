package main

import (
	"context"
	"errors"

	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/verify/bound"
)

// fitting is what compile --traffic knows of the jobs.
type fitting struct {
	file   *jobs.File
	demand *lft.Demand // in the fabric with its LIDs; nil before, and without a byte between hosts
}

// trafficSummary is what tables are worth for the jobs of --traffic.
type trafficSummary struct {
	// Seconds is how long the busiest cable takes for all bytes, and Before that with the tables without
	// --traffic, or with those of --previous. Hosts is that of the busiest cable of a host, which is the same with all tables.
	Seconds float64 `json:"seconds"`
	Before  float64 `json:"seconds_before"`
	Hosts   float64 `json:"host_seconds"`
	// Uniform is the greatest load of one route from each host to each LID over that before.
	Uniform float64 `json:"uniform"`
	Why     string  `json:"why,omitempty"` // the tables are not fitted
}

// readOrderedTraffic finds the jobs of --traffic in a fabric.
func (a *app) readOrderedTraffic(c *compilation) error {
	if c.order.traffic == "" {
		return nil
	}
	file, err := jobs.Read(c.order.traffic, a.readInput)
	if err != nil {
		return err
	}
	c.traffic = &fitting{file: file}
	c.opt.Demand = func(ctx context.Context, f *fabric.Fabric) (*lft.Demand, error) {
		set, err := a.groupsOf(f, false)
		if err != nil {
			return nil, err
		}
		t, err := file.In(f, set)
		if err != nil {
			return nil, err
		}
		var invalid *fabric.ParseError
		c.traffic.demand, err = t.Demand(ctx)
		if err != nil && ctx.Err() == nil && !errors.As(err, &invalid) {
			err = inputf("%s: %w", c.order.traffic, err)
		}
		return c.traffic.demand, err
	}
	return nil
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
	return s, err
}

// text is the line of the summary.
func (s *trafficSummary) text(b *facts) {
	if s.Why != "" {
		b.row("traffic", "%s on the busiest cable, %s on that of a host; the tables are those without --traffic: %s", seconds(s.Seconds), seconds(s.Hosts), s.Why)
		return
	}
	b.row("traffic", "%s on the busiest cable, %s before, %s on that of a host; routes of all hosts to all: %.3f times the greatest load before",
		seconds(s.Seconds), seconds(s.Before), seconds(s.Hosts), s.Uniform)
}
