package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/verify/bound"
)

// contestTraffic is what tables do under the jobs of --traffic. Times are those of static loads (docs/traffic.md).
type contestTraffic struct {
	Seconds float64      `json:"seconds"`      // of the busiest cable between switches, for all bytes
	Hosts   float64      `json:"host_seconds"` // of the busiest cable of a host, which no tables change
	Gap     float64      `json:"gap"`          // Seconds over Hosts, 1 at least; 0 without a byte
	Lost    float64      `json:"lost_bytes"`   // that the tables do not deliver
	Jobs    []contestJob `json:"jobs"`
}

// contestJob is a job under tables.
type contestJob struct {
	Job string `json:"job"`
	// Alone and Together are its time over that on a crossbar, 0 for one without a byte; Blame is the job that
	// takes most of the time of its slowest cable.
	Alone    float64 `json:"alone"`
	Together float64 `json:"together"`
	Blame    string  `json:"blame"`
}

// measureTraffic fills in what the tables of a column do under the jobs, if there are some.
func (a *app) measureTraffic(ctx context.Context, c *contest, x *contender, r *lft.Routing) error {
	if c.jobs == nil {
		return nil
	}
	t, _, err := a.jobsIn(c.jobs, r.Fabric, true)
	if err != nil {
		return err
	}
	all, err := t.Judge(ctx, r.Tables, nil, 0)
	var d *lft.Demand
	if err == nil {
		d, err = t.Demand(ctx)
	}
	if err != nil {
		return inputUnlessDone(ctx, fmt.Errorf("%s: %w", c.traffic, err))
	}
	x.Traffic = &contestTraffic{Jobs: []contestJob{}}
	for i := range all.Jobs {
		j := &all.Jobs[i]
		x.Traffic.Lost += j.Lost
		x.Traffic.Jobs = append(x.Traffic.Jobs, contestJob{j.Job, j.Alone, j.Together, j.Blame})
	}
	if d == nil {
		return nil
	}
	times, err := bound.TimesUnder(ctx, r.Fabric, r.Tables, d)
	if err != nil {
		return err
	}
	x.Traffic.Seconds, x.Traffic.Hosts = times.Switches, times.Hosts
	x.Traffic.Gap = max(1, times.Switches/times.Hosts)
	return nil
}

// trafficRows are the lines about jobs.
func trafficRows(row func(name string, value func(x *contender) string), shown []*contender) {
	if shown[0].Traffic == nil {
		return
	}
	row("jobs, busiest cable", func(x *contender) string { return seconds(x.Traffic.Seconds) })
	row("  over the busiest cable of a host", func(x *contender) string { return fmt.Sprintf("%.3f", x.Traffic.Gap) })
	if slices.ContainsFunc(shown, func(x *contender) bool { return x.Traffic.Lost > 0 }) {
		row("  bytes not delivered", func(x *contender) string { return bytesText(x.Traffic.Lost) })
	}
	slowest := func(value func(j *contestJob) float64) func(x *contender) string {
		return func(x *contender) string {
			most := 0.0
			for i := range x.Traffic.Jobs {
				most = max(most, value(&x.Traffic.Jobs[i]))
			}
			return fmt.Sprintf("%.2f", most)
		}
	}
	n := text.Count(len(shown[0].Traffic.Jobs), "job", "jobs")
	row("  time over a crossbar's, most of "+n, slowest(func(j *contestJob) float64 { return j.Together }))
	row("    each alone", slowest(func(j *contestJob) float64 { return j.Alone }))
}
