package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/audit/experiment"
	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/sim"
)

func (a *app) readSimulatedJobs(in *simulation) (*jobs.File, error) {
	if in.jobTraffic.jobs != nil {
		return in.jobTraffic.jobs, nil
	}
	var err error
	in.jobTraffic.jobs, err = jobs.Read(in.jobTraffic.file, a.readInput)
	return in.jobTraffic.jobs, err
}

func (a *app) prepareJobs(ctx context.Context, in *simulation, routings []experiment.Routing) (*experiment.JobsRun, error) {
	file, err := a.readSimulatedJobs(in)
	if err != nil {
		return nil, err
	}
	t, _, err := a.jobsIn(file, routings[0].Net.Fabric)
	if err != nil {
		return nil, err
	}
	r, err := experiment.NewJobsRun(&in.Setup, routings, t, in.jobTraffic.scale)
	if err == nil && (in.jobTraffic.mcast != nil || in.jobTraffic.radix > 0) {
		s := a.startStage("make trees")
		err = r.AddTrees(ctx, in.jobTraffic.mcast, in.jobTraffic.radix, func(why error) { fmt.Fprintf(a.stderr, "ibweave: %v\n", why) })
		s.End()
	}
	switch {
	case cli.Is[*experiment.SettingError](err):
		return nil, in.setting(err)
	case err != nil && ctx.Err() == nil:
		return nil, inputf("%s: %w", in.jobTraffic.file, err)
	case err != nil:
		return nil, err
	}
	if err := in.onlyOnce(r.Routings); err != nil {
		return nil, err
	}
	if err := in.checkPictures(len(r.Routings)); err != nil {
		return nil, err
	}
	a.noteLanes(in, r.Routings)
	if in.given("seed") && r.Background == 0 {
		fmt.Fprintln(a.stderr, "ibweave: --seed has no effect here: there is no background, and nothing else is drawn at random")
	}
	return r, nil
}

// writeJobs writes results of jobs, and prints to standard error what is wrong with the tables.
func (a *app) writeJobs(in *simulation, r *experiment.JobsRun) error {
	base, list := r.Sweep(), r.Compare()
	c := experiment.JobsChart(in.jobsText(r), list)
	if err := a.writePictures(in.svg, in.png, c.SVG, c.PNG); err != nil {
		return err
	}
	err := a.writeResults(in, text.CountGrouped(len(list), "routing", "routings"), r.Document(in.parameters(), list),
		func(w io.Writer) error { return experiment.WriteJobsCSV(w, list) }, func(b *text.Sheet) { in.writeJobs(b, r, base, list) })
	if err != nil {
		return err
	}
	return a.judgeSimulated(base)
}

// jobsText returns in words what is simulated.
func (in *simulation) jobsText(r *experiment.JobsRun) string {
	messages, bytes := 0, int64(0)
	if done := r.Result(0, -1).JobsDone; done != nil {
		for i := range done.Jobs {
			messages += int(done.Jobs[i].Messages)
			bytes += done.Jobs[i].Bytes
		}
	}
	said := fmt.Sprintf("%s of %s, %s, %s", text.CountGrouped(len(r.Works), "job", "jobs"), in.jobTraffic.file,
		text.CountGrouped(messages, "message", "messages"), text.Bytes(float64(bytes)))
	if r.Background > 0 {
		said += " and " + text.Bytes(r.Background) + " of background"
	}
	if r.Scale < 1 {
		part := strconv.FormatFloat(r.Scale, 'g', -1, 64)
		if n := 1 / r.Scale; n == float64(int64(n)) {
			part = fmt.Sprintf("1/%d", int64(n))
		}
		said += fmt.Sprintf("; %s of the bytes of the file", part)
	}
	return said
}

// writeJobs writes results for people.
func (in *simulation) writeJobs(w *text.Sheet, r *experiment.JobsRun, base *experiment.Run, list []experiment.JobsCompared) {
	f := base.Net.Fabric
	fmt.Fprintf(w, "fabric       %s, %s\n", fabricSize(f), text.CountGrouped(base.Net.VLs(), "VL", "VLs"))
	fmt.Fprintf(w, "traffic      %s\n", in.jobsText(r))
	fmt.Fprintf(w, "hardware     %s\n\n", in.hardwareText())
	t := w.Table()
	several := len(list) > 1
	row := func(routing, gain string, cells ...string) {
		if several {
			cells = slices.Concat([]string{routing}, cells[:6], []string{gain}, cells[6:])
		}
		fmt.Fprintln(t, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
	row("ROUTING", "GAIN", "JOB", "HOSTS", "CROSSBAR us", "ALONE us", "TOGETHER us", "SLOWDOWN", "WAITS FOR", "MOST AT")
	for i := range list {
		c := &list[i]
		for k := range c.Jobs {
			j := &c.Jobs[k]
			waits, at := waitsText(j)
			name := c.Routing
			if k > 0 {
				name = ""
			}
			row(name, gainText(j.Gain), j.Job, strconv.Itoa(r.Works[k].Hosts), microseconds(j.Crossbar), microseconds(j.Alone), microseconds(j.Together), ratioText(j.Slowdown), waits, at)
		}
		limit := ""
		if c.Limits != nil {
			limit = "limit " + c.Limits.Limit.String()
		}
		row("", gainText(c.Gain), "all", "", "", "", microseconds(c.Time), ratioText(c.Slowdown), limit, strings.Replace(c.State, "done", "", 1))
	}
	_ = t.Flush() // a buffer never fails
	if several {
		writeBest(w, list)
	}
	best := &list[experiment.Best(list)]
	if top := min(in.jobTraffic.top, len(best.Cables)); top > 0 {
		name := ""
		if several {
			name = " WITH " + best.Routing
		}
		t := w.Table()
		fmt.Fprintf(t, "\nMOST WAITED FOR%s\tPACKETS\tBUSY\tWHO WAITS FOR WHOM\n", name)
		for _, c := range best.Cables[:top] {
			who := text.Each(c.Jobs, func(x sim.JobWaits) string { return fmt.Sprintf("%s for %s %.1f", x.Job, x.By, x.Packets) })
			fmt.Fprintf(t, "%s\t%.1f\t%.0f %%\t%s\n", c.Text, c.Packets, 100*c.Busy, text.Few(who, 3))
		}
		_ = t.Flush()
	}
	if best.Limits != nil {
		fmt.Fprintf(w, "\nlimit: %s\n", strings.TrimPrefix(best.Routing+": "+limitText(best.Limits), ": "))
	}
	writeDeadlocks(w, base)
}

// waitsText returns whom a job waits for most, and at which cable.
func waitsText(j *sim.JobResult) (who, at string) {
	var parts []string
	for i, x := range j.By {
		if i > 0 && x.Share < 0.05 {
			break
		}
		name := x.Job
		if name == j.Job {
			name = "itself"
		}
		parts = append(parts, fmt.Sprintf("%s %.0f %%", name, 100*x.Share))
	}
	if parts == nil {
		return "-", ""
	}
	return text.Few(parts, 3), j.By[0].Cable.Text
}

func microseconds(ns float64) string { return cmp.Or(text.Decimals(ns/1000, 1, ns != 0), "-") }

func ratioText(x float64) string { return cmp.Or(text.Decimals(x, 2, x != 0), "-") }

func gainText(x *float64) string {
	if x == nil {
		return ""
	}
	return fmt.Sprintf("%+.1f %%", 100**x)
}

// writeBest prints which routing is best, and the gain of each change by itself.
func writeBest(w *text.Sheet, list []experiment.JobsCompared) {
	first, best := &list[0], experiment.Best(list)
	// Routing is empty if --mcast and --sharp are the only choices.
	name := cmp.Or(first.Routing, "unicast alone")
	fmt.Fprintf(w, "\ngain is how much faster jobs are done than with %s; of all, the geometric mean\n", name)
	if best == 0 {
		fmt.Fprintf(w, "best for these jobs: %s\n", name)
	} else {
		fmt.Fprintf(w, "best for these jobs: %s, %s\n", list[best].Routing, gainText(list[best].Gain))
	}
	var alone []string
	for i := range list {
		c := &list[i]
		var changes []string
		fitted := ""
		if c.Fitted {
			fitted = "tables for the jobs"
		}
		for _, x := range []struct{ from, to string }{
			{first.Engine, c.Engine}, {"", fitted}, {text.Count(first.VLs, "VL", "VLs"), text.Count(c.VLs, "VL", "VLs")},
			{first.Adaptive, c.Adaptive}, {first.Multicast, c.Multicast},
		} {
			if x.from != x.to {
				changes = append(changes, x.to)
			}
		}
		if len(changes) == 1 && c.Gain != nil {
			alone = append(alone, changes[0]+" "+gainText(c.Gain))
		}
	}
	if len(alone) > 1 {
		fmt.Fprintf(w, "each change by itself: %s\n", text.List(alone, "and"))
	}
}
