package main

import (
	"context"
	"fmt"
	"math"

	"github.com/ibweave/ibweave/audit/cabling"
	"github.com/ibweave/ibweave/audit/choice"
	"github.com/ibweave/ibweave/audit/quality"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/verify/bound"
)

// judgement is what the summary of compile says of a routing beside the checker's result.
type judgement struct {
	Shape *cabling.Shape `json:"shape"`
	// Bandwidth is measured where that takes little time, or an engine was chosen.
	Bandwidth *quality.Bisection `json:"bandwidth,omitempty"`
	// Diversity is measured where Bandwidth is; nil where no port has several LIDs.
	Diversity *quality.Disjoint `json:"path_diversity,omitempty"`
	SlowLinks *slowLinks        `json:"slow_links,omitempty"` // nil without any
	// Choice is there if several engines were tried: none was given, or the tables of the one that was given
	// are far above the bound of their load.
	Choice *choice.Choice `json:"choice,omitempty"`
}

// slowLinks is what cables between switches cost that are slower than others like them.
type slowLinks struct {
	Links int `json:"links"`
	// Bound is the lower bound of the load of any tables, and AtFullRate what it would be if these
	// cables were as fast as others.
	Bound      float64 `json:"bound"`
	AtFullRate float64 `json:"bound_at_full_rate"`
	fastest    string  // cable that both count
}

// routeChosen routes with the engine that suits the fabric best.
func (a *app) routeChosen(ctx context.Context, c *compilation, label func(stage string) string) (*compile.Result, error) {
	s := a.startStage(label("choose an engine for"))
	found, r, err := choice.Choose(ctx, c.fabric, c.opt)
	s.End()
	if err != nil {
		return nil, err
	}
	c.engine, c.choice = r.Engine, found
	if c.opt.Groups == nil && c.opt.Demand == nil {
		return r, nil
	}
	return a.runEngine(ctx, c.fabric, c.engine, c.opt, label)
}

// judge adds to the summary what the fabric is, and how good its tables are.
func (c *compilation) judge(ctx context.Context, a *app, s *judgement) (err error) {
	stage := a.startStage("compare")
	defer stage.End()
	r, f := c.result, c.result.Routing.Fabric
	s.Shape, s.Choice = cabling.Recognize(f), c.choice
	if b := r.Verify.Bound; b != nil {
		if full, n := cabling.AtFullRate(f); n > 0 {
			found, err := bound.Find(ctx, full, bound.Options{Rounds: c.rounds, Load: r.Verify.GreatestLoad()})
			if err != nil {
				return err
			}
			scale := bound.ScaleOf(full)
			s.SlowLinks = &slowLinks{Links: n, Bound: b.Bounds[0].Least, AtFullRate: r.Verify.Scale().Load(1, scale.Fastest) * found.Any.Load, fastest: b.Fastest}
		}
	}
	if c.choice == nil && !choice.Quick(f) {
		return nil
	}
	if s.Diversity, err = quality.Disjointness(ctx, f, r.Routing.Tables); err != nil {
		return err
	}
	if c.choice != nil {
		s.Bandwidth = c.choice.Find(c.choice.Engine).Bisection
		return nil
	}
	if s.Bandwidth, err = choice.Bandwidth(ctx, r.Routing); err != nil || s.Bandwidth == nil {
		return err
	}
	if r.Fit == nil { // tables for jobs are not the best for all
		s.Choice, err = choice.Advise(ctx, c.fabric, r, s.Bandwidth, c.opt)
	}
	return err
}

// text prints what was tried, and why the engine was chosen.
func (j *judgement) text(b *facts) {
	x := j.Choice
	if x == nil || !x.Chosen {
		return
	}
	b.row("choice", "%s; -e names another", x.Why)
	for i := range x.Candidates {
		if c := &x.Candidates[i]; c.Refused == "" && c.Load > 0 {
			jobs := ""
			if c.Jobs > 0 {
				jobs = fmt.Sprintf("jobs %s, ", seconds(c.Jobs))
			}
			b.row("", "%-8s %sload %s, bandwidth %.1f %%%s", c.Engine, jobs, loadText(c), 100*c.Bandwidth, lanesText(c))
		}
	}
}

// loadText writes a load, with the cable that it counts where rates differ.
func loadText(c *choice.Candidate) string {
	load := text.Grouped(int64(math.Round(c.Load)))
	if scale := c.Result.Verify.Scale(); scale.Differ {
		load += " on " + scale.Fastest.String()
	}
	return load
}

// lanesText says what an engine needs beyond one lane.
func lanesText(c *choice.Candidate) string {
	if c.VLs <= 1 {
		return ""
	}
	if _, err := outdir.QoSOptions(c.Result); err != nil {
		return fmt.Sprintf(" on %d VLs, by the plugin", c.VLs)
	}
	return fmt.Sprintf(" on %d VLs", c.VLs)
}

// oneLine is a shape with its deviations in numbers.
type oneLine struct{ *cabling.Shape }

// String is the line.
func (s oneLine) String() string {
	line := s.Name
	for _, x := range []struct {
		n         int
		one, many string
	}{{s.MissingSwitches, "switch missing", "switches missing"}, {s.MissingCables, "cable missing", "cables missing"}, {s.ExtraCables, "cable that it does not have", "cables that it does not have"}} {
		if x.n > 0 {
			line += "; " + text.CountGrouped(x.n, x.one, x.many)
		}
	}
	return line
}

// lines say what the tables are worth.
func (j *judgement) lines() (list [][2]string) {
	line := func(name, format string, args ...any) {
		list = append(list, [2]string{name, fmt.Sprintf(format, args...)})
	}
	if s := j.SlowLinks; s != nil {
		bound := "no lower"
		if s.AtFullRate < s.Bound {
			if bound = text.Grouped(int64(s.AtFullRate)); s.fastest != "" {
				bound += " on " + s.fastest
			}
		}
		line("slow cables", "%s between switches; at the rate of others the bound would be %s", text.Grouped(s.Links), bound)
	}
	if q := j.Bandwidth; q != nil {
		line("bandwidth", "%.1f %% of a crossbar's, the mean of %s", 100*q.Mean, text.CountGrouped(q.Bisections, "random bisection", "random bisections"))
	}
	if d := j.Diversity; d != nil {
		line("diversity", "%d LIDs a port: %.2f disjoint paths, at least %d (%.2f possible); by different switches %.2f, at least %d",
			d.LIDs, d.Cables.Mean, d.Cables.Min, d.Possible.Mean, d.Switches.Mean, d.Switches.Min)
	}
	if j.Choice == nil || j.Choice.Better == "" {
		return list
	}
	x, own := j.Choice.Find(j.Choice.Better), j.Choice.Find(j.Choice.Engine)
	line("better", "%s has load %s, %s, and %.1f %% of bandwidth%s", x.Engine, loadText(x), change(x.Load, own.Load), 100*x.Bandwidth, lanesText(x))
	return list
}

// change says how x compares with y.
func change(x, y float64) string {
	percent := int(math.Round(100 * math.Abs(x/y-1)))
	switch {
	case percent == 0:
		return "the same"
	case x < y:
		return fmt.Sprintf("%d %% less", percent)
	}
	return fmt.Sprintf("%d %% more", percent)
}
