package choice

import (
	"fmt"
	"math"

	"github.com/ibweave/ibweave/audit/cabling"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/internal/text"
)

// Print writes what was tried, and why the engine was chosen.
func (j *Judgement) Print(b *text.Sheet) {
	x := j.Choice
	if x == nil {
		return
	}
	b.Row("choice", "%s; -e names another", x.Why)
	for i := range x.Candidates {
		if c := &x.Candidates[i]; c.Refused == "" && c.Load > 0 {
			jobs := ""
			if c.Jobs > 0 {
				jobs = fmt.Sprintf("jobs %s, ", text.Seconds(c.Jobs))
			}
			b.Row("", "%-8s %sload %s, bandwidth %.1f %%%s", c.Engine, jobs, loadText(c), 100*c.Bandwidth, lanesText(c))
		}
	}
}

// loadText writes a load and, if rates differ, the fastest rate, to which it is relative.
func loadText(c *Candidate) string {
	load := text.Grouped(int64(math.Round(c.Load)))
	if scale := c.Result.Verify.Scale(); scale.Differ {
		load += " on " + scale.Fastest.String()
	}
	return load
}

// lanesText names the lanes that an engine needs, if it needs more than one.
func lanesText(c *Candidate) string {
	if c.VLs <= 1 {
		return ""
	}
	if _, err := outdir.QoSOptions(c.Result); err != nil {
		return fmt.Sprintf(" on %d VLs, by the plugin", c.VLs)
	}
	return fmt.Sprintf(" on %d VLs", c.VLs)
}

// OneLine writes a shape on one line, with the numbers of its deviations.
type OneLine struct{ *cabling.Shape }

// String returns the line.
func (s OneLine) String() string {
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

// Lines returns the quality of the tables as pairs of a name and a text.
func (j *Judgement) Lines() (list [][2]string) {
	line := func(name, format string, args ...any) {
		list = append(list, [2]string{name, fmt.Sprintf(format, args...)})
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
