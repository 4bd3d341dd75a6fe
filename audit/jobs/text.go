package jobs

import (
	"fmt"
	"io"

	"github.com/ibweave/ibweave/internal/text"
)

// Print writes traffic for people; lists are cut to top lines.
func (r *Result) Print(b *text.Sheet, top int) {
	b.Row("traffic", "%s, %s between hosts, %s of it background", text.Count(len(r.Jobs), "job", "jobs"), text.Bytes(r.Bytes), text.Bytes(r.Background))
	for _, o := range r.Overlaps[:min(top, len(r.Overlaps))] {
		b.Row("both on", "%s and %s: %s", o.Jobs[0], o.Jobs[1], o.Hosts)
	}
	t := b.Table()
	if r.Loads == nil {
		fmt.Fprintln(t, "\nJOB\tHOSTS\tRANKS\tBYTES")
	} else {
		fmt.Fprintln(t, "\nJOB\tHOSTS\tRANKS\tBYTES\tLOST\tCROSSBAR\tALONE\tTOGETHER\tBY")
	}
	for i := range r.Jobs {
		j := &r.Jobs[i]
		fmt.Fprintf(t, "%s\t%d\t%d\t%s", j.Job, j.Hosts, j.Ranks, text.Bytes(j.Bytes))
		if x := j.Times; x != nil {
			fmt.Fprintf(t, "\t%s\t%s\t%.2f\t%.2f\t%s", text.Bytes(j.Lost), text.Seconds(x.Ideal), x.Alone, x.Together, blamed(j))
		}
		fmt.Fprintln(t)
	}
	if r.Loads != nil {
		printLoads(t, r.Loads, top)
	}
	printTrees(t, r, top)
	_ = t.Flush() // never fails
}

// blamed returns what slows a job down, and where.
func blamed(j *Job) string {
	what := j.Blame
	switch what {
	case "":
		return "-"
	case j.Job:
		what = "its own routes"
	}
	return fmt.Sprintf("%s, %s -> %s", what, j.Cable.From.Unquoted(), j.Cable.To.Unquoted())
}

// printLoads writes the busiest cables and those that jobs share.
func printLoads(t io.Writer, l *LoadsOf, top int) {
	if len(l.Cables) > 0 {
		fmt.Fprintln(t, "\nBUSIEST CABLES\t\tTIME\tBYTES\tJOBS")
	}
	for _, c := range l.Cables {
		parts := text.Each(c.Jobs, func(p Part) string { return fmt.Sprintf("%s %s", p.Job, text.Bytes(p.Bytes)) })
		fmt.Fprintf(t, "%s\t-> %s\t%s\t%s\t%s\n", c.From.Unquoted(), c.To.Unquoted(), text.Seconds(c.Seconds), text.Bytes(c.Bytes), text.Few(parts, 4))
	}
	if len(l.Shared) > 0 {
		fmt.Fprintln(t, "\nJOBS THAT SHARE CABLES\tCABLES\tTIME\tMOST ON")
	}
	for i, s := range l.Shared {
		if i == top {
			fmt.Fprintf(t, "and %s, see --format json\n", text.Count(len(l.Shared)-top, "more pair", "more pairs"))
			break
		}
		fmt.Fprintf(t, "%s and %s\t%d\t%s\t%s -> %s\n", s.Jobs[0], s.Jobs[1], s.Cables, text.Seconds(s.Seconds), s.Worst.From.Unquoted(), s.Worst.To.Unquoted())
	}
}

// printTrees writes trees of switches, and those that meet.
func printTrees(t io.Writer, a *Result, top int) {
	if len(a.Trees) > 0 {
		fmt.Fprintln(t, "\nTREE OF SWITCHES\tROOT\tLEVELS\tSWITCHES\tCABLES\tRADIX")
	}
	for _, x := range a.Trees {
		if x.Root == nil {
			fmt.Fprintf(t, "%s\tnone: %s\n", x.Name, x.Refused)
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%d\n", x.Name, x.Root.Unquoted(), x.Levels, x.Switches, x.Cables, x.Radix)
	}
	if len(a.Meetings) > 0 {
		fmt.Fprintln(t, "\nTREES THAT MEET\tSWITCHES\tCABLES\tFIRST AT")
	}
	for _, m := range a.Meetings[:min(top, len(a.Meetings))] {
		fmt.Fprintf(t, "%s and %s\t%d\t%d\t%s\n", m.Trees[0], m.Trees[1], m.Switches, m.Cables, m.First.Unquoted())
	}
	if more := len(a.Meetings) - top; more > 0 {
		fmt.Fprintf(t, "and %s, see --format json\n", text.Count(more, "more pair", "more pairs"))
	}
}
