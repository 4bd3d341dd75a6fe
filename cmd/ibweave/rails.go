package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/audit/rails"
	"github.com/ibweave/ibweave/internal/hostlist"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/verify"
)

// railsOptions is what rails is asked to do.
type railsOptions struct {
	audit
	outputForm
	threshold
	engine  string // "" for tables that are read, or none
	pattern hostPattern
	hosts   string // "" for no list of ports
}

// railsCommand looks at the rails of a fabric.
func (a *app) railsCommand() *cobra.Command {
	var o railsOptions
	cmd := &cobra.Command{
		Use:   "rails [DIR | -t TOPOLOGY [--lfts FILE | -e ENGINE]]",
		Short: "which port is on which rail, and what is swapped or missing",
		Args:  a.maxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.rails(cmd.Context(), &o, args)
		},
	}
	flags := cmd.Flags()
	o.audit.routedFlags(flags, &o.engine)
	o.pattern.define(flags)
	flags.StringVar(&o.hosts, "host", "", "list the ports of `HOSTS`, a name or a list with numbers in brackets")
	o.outputForm.define(flags, "`FORM` of the output: text or json")
	o.threshold.define(flags, failOnUsage)
	a.fabricFlags(cmd)
	scopes(cmd.Flags(), scope{flags: "host", not: "format=json", why: unsaid, note: true})
	return cmd
}

// railsDocument is the JSON form.
type railsDocument struct {
	*rails.Result
	Loads   *rails.Loads `json:"loads,omitempty"` // nil without tables
	Verdict string       `json:"verdict"`         // errors, warnings or clean
}

func (a *app) rails(ctx context.Context, o *railsOptions, args []string) error {
	pattern, err := o.pattern.parse()
	if err != nil {
		return err
	}
	f, tables, err := a.readOrRoute(ctx, "rails", &o.audit, o.engine, args)
	if err != nil {
		return err
	}
	stage := a.startStage("find rails")
	defer stage.End()
	d := &railsDocument{}
	d.Result, err = rails.Find(f, pattern)
	if err != nil {
		if errors.Is(err, rails.ErrNoRails) || errors.Is(err, rails.ErrTooMany) {
			return inputf("%s: %w; want descriptions like \"n001 mlx5_0\", a --host-regexp, or a --node-name-map", o.Topology, err)
		}
		return err
	}
	wanted, err := o.listed(d.Result)
	if err != nil {
		return err
	}
	if tables != nil {
		if d.Loads, err = d.Load(ctx, tables); err != nil {
			return err
		}
	}
	d.Verdict = d.Worst().Verdict()
	return cmp.Or(o.print(a.stdout, d, func(b *text.Sheet) { d.print(b, wanted) }), o.checkWorst(d.Worst()))
}

// listed lists the hosts that --host names, in its order.
func (o *railsOptions) listed(r *rails.Result) (list []*rails.Host, err error) {
	if o.hosts == "" {
		return nil, nil
	}
	wanted, err := hostlist.Expand(o.hosts)
	if err != nil {
		return nil, usagef("--host: %w", err)
	}
	for _, name := range wanted {
		i := slices.IndexFunc(r.Hosts, func(h rails.Host) bool { return strings.EqualFold(h.Host, name) })
		if i < 0 {
			return nil, usagef("--host: no host on rails is called %q; the first is %q", name, r.Hosts[0].Host)
		}
		list = append(list, &r.Hosts[i])
	}
	return list, nil
}

// print writes rails for people.
func (d *railsDocument) print(b *text.Sheet, hosts []*rails.Host) {
	b.Row("rails", "%d by %s of adapters, %s on %s", len(d.Rails), d.By, text.CountGrouped(len(d.Hosts), "host", "hosts"), text.Count(len(d.Leaves), "leaf", "leaves"))
	for _, l := range d.LeftOut {
		b.Row("left out", "%s: %s, %s", l.Reason, text.Count(len(l.Nodes), "adapter", "adapters"), text.Few(slices.Compact(slices.Clone(l.Nodes)), 3))
	}
	t := b.Table()
	fmt.Fprintln(t, "\nRAIL\tADAPTERS\tPORTS\tLEAVES\tMISSING\tMISPLACED\tMEETS OTHERS")
	for _, r := range d.Rails {
		fmt.Fprintf(t, "%d\t%s\t%d\t%d\t%d\t%d\t%s\n", r.Rail, cmp.Or(text.Few(r.Adapters, 4), "-"), r.Ports, r.Leaves, r.Missing, r.Misplaced, meeting(r.MeetsAt))
	}
	if len(hosts) > 0 {
		fmt.Fprintln(t, "\nHOST\tADAPTER\tRAIL\tLEAF")
	}
	for _, h := range hosts {
		for _, p := range h.Ports {
			rail := "-"
			if p.Rail > 0 {
				rail = fmt.Sprint(p.Rail)
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", h.Host, cmp.Or(p.Adapter, "-"), rail, p.Leaf.Unquoted())
		}
	}
	_ = t.Flush() // a buffer takes all
	d.printLoads(b)
	d.printFindings(b)
}

// meeting says in words where a rail meets others.
func meeting(level int) string {
	return cmp.Or(map[int]string{-1: "nowhere", 0: "on leaves", 1: "on spines"}[level], fmt.Sprintf("on level %d", level))
}

// printLoads writes the loads of all patterns.
func (d *railsDocument) printLoads(b *text.Sheet) {
	l := d.Loads
	if l == nil {
		return
	}
	t := b.Table()
	fmt.Fprint(t, "\nSLOWDOWN")
	for _, p := range l.Patterns {
		fmt.Fprintf(t, "\t%s", strings.ToUpper(p.Pattern))
	}
	fmt.Fprintln(t)
	for i, r := range d.Rails {
		fmt.Fprintf(t, "rail %d", r.Rail)
		for _, p := range l.Patterns {
			fmt.Fprintf(t, "\t%.2f", p.Rails[i].Slowdown)
		}
		fmt.Fprintln(t)
	}
	fmt.Fprint(t, "all at once")
	for _, p := range l.Patterns {
		fmt.Fprintf(t, "\t%.2f", p.Together.Slowdown)
	}
	fmt.Fprint(t, "\n\n")
	for _, p := range l.Patterns {
		printBusiest(t, p.Pattern, p.Together)
	}
	printBusiest(t, "between rails", l.Between)
	fmt.Fprint(t, "\n")
	_ = t.Flush() // a buffer takes all
	b.Row("inside rails", "%s, %s leave their rail", text.CountGrouped(l.Routes, "route", "routes"), text.Grouped(l.Leaving))
	const most = 10
	for i, e := range l.Exits {
		if i == most {
			b.Row("", "and %d more cables", len(l.Exits)-most)
			break
		}
		b.Row("", "rail %d by %s -> %s, %s", e.Rail, e.From.Unquoted(), e.To.Unquoted(), text.CountGrouped(e.Flows, "route", "routes"))
	}
}

// printBusiest writes the busiest cable of a pattern.
func printBusiest(t io.Writer, name string, l rails.Load) {
	if c := l.Busiest; c != nil {
		fmt.Fprintf(t, "%s\t%s of %s\t%s\t-> %s\n", name, text.Grouped(c.Flows), text.CountGrouped(l.Flows, "flow", "flows"), c.From.Unquoted(), c.To.Unquoted())
		return
	}
	fmt.Fprintf(t, "%s\t0 of %s\tno cable between switches\n", name, text.CountGrouped(l.Flows, "flow", "flows"))
}

// printFindings writes findings, of each rule the first ones.
func (d *railsDocument) printFindings(b *text.Sheet) {
	const most = 20
	fmt.Fprintln(b)
	for i, n := 0, 0; i < len(d.Findings); i++ {
		f := &d.Findings[i]
		if i > 0 && d.Findings[i-1].Rule != f.Rule {
			n = 0
		}
		switch n++; {
		case n <= most:
			fmt.Fprintf(b, "%s: %s [%s]\n", f.Severity, f.Message, f.Rule)
		case n == most+1:
			of := count(d.Findings, func(x verify.Finding) bool { return x.Rule == f.Rule })
			fmt.Fprintf(b, "%s: and %s, which --format json lists [%s]\n", f.Severity, text.Count(of-most, "more finding", "more findings"), f.Rule)
		}
	}
	b.Row("verdict", "%s", d.Verdict)
}
