package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/audit/groups"
	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/internal/text"
)

// trafficOptions is what traffic is asked to do.
type trafficOptions struct {
	audit
	outputForm
	engine  string // "" for tables that are read, or none
	traffic string
	mix     uint64 // seed of a mix of jobs to write; 0 to measure
	by      string // a grouping of --host-groups; "" for leaves
	top     int
}

// trafficCommand shows what jobs send and load.
func (a *app) trafficCommand() *cobra.Command {
	var o trafficOptions
	cmd := &cobra.Command{
		Use:   "traffic [DIR | -t TOPOLOGY [--lfts FILE | -e ENGINE]] --traffic FILE | --mix SEED",
		Short: "what jobs send, which cables they share, which job slows another",
		Args:  a.maxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.mix > 0:
				return a.mixTraffic(cmd.Context(), &o, args)
			case o.traffic == "":
				return usagef("traffic needs the file of jobs, --traffic FILE, or --mix SEED with a seed of 1 or more to write one")
			}
			return a.traffic(cmd.Context(), &o, args)
		},
	}
	flags := cmd.Flags()
	o.audit.routedFlags(flags, &o.engine)
	flags.StringVar(&o.traffic, "traffic", "", "YAML `FILE` of jobs and what they send (docs/traffic.md)")
	numberFlag(flags, &o.mix, "mix", 1, math.MaxUint64, "write a YAML file of jobs for the fabric to standard output, drawn from `SEED`")
	flags.StringVar(&o.by, "by", "", "sum up by the groups of `GROUPING`, like rack, instead of leaves")
	o.top = 10
	numberFlag(flags, &o.top, "top", 0, maxNumber, "list the `N` busiest cables, pairs of jobs and pairs of rows")
	o.outputForm.define(flags, "`FORM` of the output: text or json")
	a.fabricFlags(cmd)
	a.hostGroupFlag(cmd)
	scopes(cmd.Flags(),
		scope{flags: "lfts far plft engine traffic top host-groups format", not: "mix", why: "a mix is written for the hosts alone"},
		scope{flags: "by", with: "host-groups", why: "they say which hosts are in it"})
	return cmd
}

// mixTraffic writes a mix of jobs.
func (a *app) mixTraffic(ctx context.Context, o *trafficOptions, args []string) error {
	f, _, err := a.readOrRoute(ctx, "traffic", &o.audit, "", args)
	if err != nil {
		return err
	}
	mix, err := jobs.Mix(f, o.mix)
	if err != nil {
		return inputf("%s: %w", cmp.Or(o.Topology, "the fabric"), err)
	}
	_, err = a.stdout.Write(mix)
	return err
}

func (a *app) traffic(ctx context.Context, o *trafficOptions, args []string) error {
	if err := oneStdin(o.Topology, o.LFTs, o.traffic); err != nil {
		return err
	}
	if err := a.readHostGroups(); err != nil {
		return err
	}
	file, err := jobs.Read(o.traffic, a.readInput)
	if err != nil {
		return err
	}
	f, tables, err := a.readOrRoute(ctx, "traffic", &o.audit, o.engine, args)
	if err != nil {
		return err
	}
	t, set, err := a.jobsIn(file, f, true)
	if err != nil {
		return err
	}
	var rows *jobs.Rows // nil for leaves
	if o.by != "" {
		if rows = jobs.RowsBy(f, set, o.by); rows == nil {
			known := slices.Sorted(slices.Values(text.Each(set.Groups, func(g groups.Group) string { return g.Grouping })))
			return usagef("--by %s: --host-groups has no such grouping; want one of %s", o.by, strings.Join(slices.Compact(known), ", "))
		}
	}
	stage := a.startStage("measure traffic")
	defer stage.End()
	r, err := t.Judge(ctx, tables, rows, o.top)
	if err != nil {
		return inputUnlessDone(ctx, fmt.Errorf("%s: %w", o.traffic, err))
	}
	return o.print(a.stdout, r, func(b *text.Sheet) { printTraffic(b, r, o.top) })
}

// printTraffic writes traffic for people.
func printTraffic(b *text.Sheet, r *jobs.Result, top int) {
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
		printTrafficLoads(t, r.Loads, top)
	}
	printMatrix(t, r.Matrix, top)
	_ = t.Flush() // a buffer takes all
}

// blamed says what slows a job down, and where.
func blamed(j *jobs.Job) string {
	what := ""
	switch x := j.Times; x.Blame {
	case "":
		return "-"
	case j.Job:
		what = "its own routes"
	default:
		what = x.Blame
	}
	return fmt.Sprintf("%s, %s -> %s", what, j.Cable.From.Unquoted(), j.Cable.To.Unquoted())
}

// printTrafficLoads writes the busiest cables and those that jobs share.
func printTrafficLoads(t io.Writer, l *jobs.LoadsOf, top int) {
	if len(l.Cables) > 0 {
		fmt.Fprintln(t, "\nBUSIEST CABLES\t\tTIME\tBYTES\tJOBS")
	}
	for _, c := range l.Cables {
		parts := text.Each(c.Jobs, func(p jobs.Part) string { return fmt.Sprintf("%s %s", p.Job, text.Bytes(p.Bytes)) })
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

// widestMatrix is how many rows a matrix has at most as a table.
const widestMatrix = 12

// printMatrix writes a matrix as a table, or of a wide one the greatest entries.
func printMatrix(t io.Writer, m *jobs.Matrix, top int) {
	n := len(m.Rows)
	if n > widestMatrix {
		fmt.Fprintf(t, "\n%d ROWS BY %s, MOST\t\tBYTES\n", n, strings.ToUpper(m.By))
		list := slices.Clone(m.Entries)
		slices.SortStableFunc(list, func(a, b jobs.Entry) int { return cmp.Compare(b.Bytes, a.Bytes) })
		for _, e := range list[:min(top, len(list))] {
			fmt.Fprintf(t, "%s\t-> %s\t%s\n", m.Rows[e.From], m.Rows[e.To], text.Bytes(e.Bytes))
		}
		return
	}
	cells := make([]string, n*n)
	for _, e := range m.Entries {
		cells[int(e.From)*n+int(e.To)] = text.Bytes(e.Bytes)
	}
	fmt.Fprintf(t, "\nFROM %s", strings.ToUpper(m.By))
	for i := range n {
		fmt.Fprintf(t, "\tTO %d", i+1)
	}
	fmt.Fprintln(t)
	for i := range n {
		fmt.Fprintf(t, "%d %s", i+1, m.Rows[i])
		for k := range n {
			fmt.Fprintf(t, "\t%s", cmp.Or(cells[i*n+k], "-"))
		}
		fmt.Fprintln(t)
	}
}
