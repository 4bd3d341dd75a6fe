package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/audit/diff"
	"github.com/ibweave/ibweave/audit/drain"
	"github.com/ibweave/ibweave/audit/groups"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/names"
	"github.com/ibweave/ibweave/internal/hostlist"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// drainOptions is what drain is asked to do.
type drainOptions struct {
	outputForm
	switches, cables []string
	groups           []string
	limit, rebalance float64
	lenient          bool
	output           string
}

// drainCommand plans drains.
func (a *app) drainCommand() *cobra.Command {
	var o drainOptions
	cmd := &cobra.Command{
		Use:   "drain DIR",
		Short: "plan how to take switches and cables out of use, and back",
		Args:  a.maxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || len(o.switches)+len(o.cables)+len(o.groups) == 0 {
				return usagef("drain needs DIR, which compile wrote, and --switch, --cable or --host-group")
			}
			return a.drain(cmd.Context(), &o, args[0])
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&o.switches, "switch", nil, "drain the switches of a `NAME` or list; may be repeated")
	flags.StringArrayVar(&o.cables, "cable", nil, "drain the cable at `NODE:PORT`; may be repeated")
	flags.StringArrayVar(&o.groups, "host-group", nil, "drain the hosts of `GROUP` or GROUPING:GROUP of --host-groups, and the leaves that only they use; may be repeated")
	scopes(flags, scope{flags: "host-group", with: "host-groups", why: "they say which hosts are in it"})
	numberFlag(flags, &o.limit, "limit", 1, maxFactor, "no cable gets more than `F` times the greatest load before the drain, F from 1 on; by default any load")
	o.rebalance = 1.1
	numberFlag(flags, &o.rebalance, "rebalance", 1, maxRebalance, "kept tables move routes until no link has more than `F` times the greatest load of tables from scratch, F from 1 on")
	flags.StringVarP(&o.output, "output", "o", "", "write the tables of each step into `DIR`")
	lenientFlag(flags, &o.lenient)
	o.outputForm.define(flags, "`FORM` of the output: text or json")
	a.fabricFlags(cmd)
	a.hostGroupFlag(cmd)
	return cmd
}

func (a *app) drain(ctx context.Context, o *drainOptions, dir string) error {
	base, multicast, err := a.readCompiled(ctx, dir, o.lenient)
	if err != nil {
		return err
	}
	f := base.Routing.Fabric
	set, err := a.groupsOf(f, true)
	if err != nil {
		return err
	}
	parts, err := o.parts(f, set)
	if err != nil {
		return err
	}
	a.tellMulticast(dir, multicast)
	stage := a.startStage("plan")
	var route compile.Options
	route.Route.Rebalance = o.rebalance
	plan, err := drain.Make(ctx, base, route, parts, drain.Options{Limit: o.limit, Groups: set})
	stage.End()
	if err != nil {
		return err
	}
	if err := a.writeSteps(ctx, o.output, plan); err != nil {
		return err
	}
	d := plan.Document(f)
	return cmp.Or(o.print(a.stdout, d, func(b *text.Sheet) { printDrain(b, d, len(parts)) }), findingsIf(len(plan.Refused) > 0))
}

// readCompiled reads the tables that are in force, and verifies them. multicast says whether there are
// multicast tables, which are not read.
func (a *app) readCompiled(ctx context.Context, dir string, lenient bool) (r *compile.Result, multicast bool, err error) {
	in := newAudit(lenient, false)
	if err := in.Directory(dir); err != nil {
		return nil, false, err
	}
	m := in.Compiled.Manifest
	e, err := compile.EngineByName(m.Engine)
	if err != nil {
		return nil, false, inputf("%s: %v", filepath.Join(dir, outdir.ManifestName), err)
	}
	routing, err := a.readCompiledRouting(in)
	if err != nil {
		return nil, false, err
	}
	stage := a.startStage("verify")
	defer stage.End()
	v, err := verify.Check(ctx, state.Of(routing), verify.Options{Complete: true})
	if err != nil {
		return nil, false, err
	}
	if v.Verdict == verify.VerdictErrors {
		return nil, false, inputf("%s: the tables have errors, which ibweave check %s lists; want tables that are safe to begin with", dir, dir)
	}
	return &compile.Result{Engine: e, Routing: routing, Verify: v}, in.MFTs != "", nil
}

// tellMulticast says that a plan leaves multicast alone, when all input is read.
func (a *app) tellMulticast(dir string, has bool) {
	if has {
		fmt.Fprintf(a.stderr, "%s has multicast tables: the plan is about unicast alone\n", dir)
	}
}

// parts lists what is to be drained, in the order of the flags: switches, then cables.
func (o *drainOptions) parts(f *fabric.Fabric, set *groups.Set) (parts []drain.Part, err error) {
	for _, name := range o.switches {
		nodes, err := names.Find(f, name)
		if err != nil {
			return nil, usagef("--switch: %w", err)
		}
		var chips []fabric.NodeID
		system := ""
		for _, s := range nodes {
			if !f.IsSwitch(s) {
				return nil, usagef("--switch %q: %s is no switch", name, f.Name(s))
			}
			is := names.ChipOf(f.Name(s).Text).System
			if len(chips) > 0 && is != system { // chips of one system are one part
				parts = append(parts, drain.SwitchPart(f, chips))
				chips = nil
			}
			chips, system = append(chips, s), is
		}
		parts = append(parts, drain.SwitchPart(f, chips))
	}
	for _, name := range o.cables {
		p, err := findPort(f, name)
		if err != nil {
			return nil, usagef("--cable %q: %w", name, err)
		}
		parts = append(parts, drain.CablePart(f, p))
	}
	for _, name := range o.groups {
		g, err := set.Find(name)
		if err != nil {
			if !is[*fabric.ParseError](err) {
				err = usagef("--host-group: %w", err)
			}
			return nil, err
		}
		parts = append(parts, groupPart(f, g))
	}
	return parts, nil
}

// groupPart is the hosts of a group with all of their cables, and the leaves that only they use.
func groupPart(f *fabric.Fabric, g *groups.Group) drain.Part {
	p := drain.Part{Name: fmt.Sprintf("%s, %s", g, text.Count(len(g.Hosts), "host", "hosts")), Nodes: slices.Clone(g.Nodes)}
	for _, n := range g.Nodes {
		p.Cables = slices.AppendSeq(p.Cables, f.Cabled(n))
	}
	leaves := 0
	for _, leaf := range g.Leaves {
		if !slices.ContainsFunc(f.EndPortsOn(leaf), func(end fabric.PortID) bool {
			_, ours := slices.BinarySearch(g.Nodes, f.Owner(end))
			return !ours && f.Kind(f.Owner(end)) != fabric.AggregationKind
		}) {
			p.AddSwitch(f, leaf)
			leaves++
		}
	}
	if leaves > 0 {
		p.Name += " and " + text.Count(leaves, "leaf", "leaves")
	}
	return p
}

// withoutParts is a fabric without the cables of nodes, of groups of set, which may be nil, and
// cables, NODE:PORT.
func withoutParts(f *fabric.Fabric, texts []string, set *groups.Set) (*fabric.Fabric, error) {
	var cut []fabric.PortID
	for _, text := range texts {
		nodes, err := names.Find(f, text)
		if err == nil {
			for _, n := range nodes {
				cut = slices.AppendSeq(cut, f.Cabled(n))
			}
			continue
		}
		if strings.Contains(text, ":") {
			p, noPort := findPort(f, text)
			if noPort == nil {
				cut = append(cut, p)
				continue
			}
			err = noPort
		}
		if set != nil {
			g, noGroup := set.Find(text)
			if noGroup == nil {
				cut = append(cut, groupPart(f, g).Cables...)
				continue
			}
			err = fmt.Errorf("%w; %w", err, noGroup)
		}
		return nil, usagef("--without %q: %w", text, err)
	}
	if len(cut) == 0 {
		return f, nil
	}
	return f.Without(cut...), nil
}

// findPort finds a port with a cable by NODE:PORT.
func findPort(f *fabric.Fabric, name string) (fabric.PortID, error) {
	p, err := names.NewFinder(f).Port(name)
	if err == nil && f.Peer(p) == fabric.NoPort {
		return fabric.NoPort, fmt.Errorf("%s has no cable", f.PortName(p))
	}
	return p, err
}

// writeSteps writes a compiled directory for each step.
func (a *app) writeSteps(ctx context.Context, output string, plan *drain.Plan) error {
	if output == "" {
		return nil
	}
	for i := range plan.Windows {
		for k := range plan.Windows[i].Steps {
			dir := filepath.Join(output, fmt.Sprintf("window-%d", i+1), fmt.Sprintf("step-%d", k+1))
			if err := a.writeState(ctx, dir, plan.Windows[i].Steps[k].Compiled); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeState writes the compiled directory of a state, and the directories that it is in.
func (a *app) writeState(ctx context.Context, dir string, r *compile.Result) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		return err
	}
	install, err := filepath.Abs(dir)
	if err == nil {
		_, err = outdir.Write(ctx, dir, r, outdir.Options{InstallDir: install})
	}
	return err
}

// printDrain writes a plan for people.
func printDrain(b *text.Sheet, d *drain.Document, parts int) {
	drained := parts - len(d.Refused)
	b.Row("drain", "%d of %s in %s", drained, text.Count(parts, "part", "parts"), text.Count(len(d.Windows), "window", "windows"))
	loads := []drain.Load{d.Before}
	for i := range d.Windows {
		for k := range d.Windows[i].Steps {
			loads = append(loads, d.Windows[i].Steps[k].Load)
		}
	}
	printBefore(b, loads)
	for i := range d.Windows {
		w := &d.Windows[i]
		fmt.Fprintf(b, "\nwindow %d\n", i+1)
		t := b.Table()
		fmt.Fprintln(t, "  STEP\tDRAIN\tBUSIEST\tFACTOR\tWRITE\tORDER\tVERDICT\tUNPLUGGED")
		for k := range w.Steps {
			s := &w.Steps[k]
			fmt.Fprintf(t, "  %d\t%s\t%d\t%.2f\t%s\t%s\t%s\t%s\n", k+1, strings.ReplaceAll(s.Part, `"`, ""), s.MaxRoutes, s.Factor, writes(&s.Drain), writeOrder(&s.Drain), s.Verdict, s.Unplugged)
		}
		for k := len(w.Steps) - 1; k >= 0; k-- {
			s := &w.Steps[k]
			fmt.Fprintf(t, "  back %d\t%s\t\t\t%s\t%s\t%s\t\n", k+1, strings.ReplaceAll(s.Part, `"`, ""), writes(&s.Back), writeOrder(&s.Back), s.Back.Verdict(""))
		}
		_ = t.Flush() // a buffer takes all
		if w.Gone > 0 {
			fmt.Fprintf(b, "  without a cable meanwhile: %s, %s\n", text.Count(w.Gone, "adapter", "adapters"), hostlist.Shorten(d.GoneHosts[i]))
		}
		groupTable(b, groups.Changes(d.Before.Groups, w.Steps[len(w.Steps)-1].Groups, false))
	}
	for _, r := range d.Refused {
		fmt.Fprintf(b, "\nerror: %s cannot be drained: %s\n", r.Part, r.Reason)
	}
}

// printBefore writes the first of the loads of a plan, and what FACTOR divides where that is not routes.
func printBefore(b *text.Sheet, loads []drain.Load) {
	b.Row("before", "%s on the busiest cable", text.CountGrouped(loads[0].MaxRoutes, "route", "routes"))
	fastest := loads[0].Scale.Fastest.String()
	if fastest != "" && slices.ContainsFunc(loads, func(l drain.Load) bool { return l.MaxRelative != float64(l.MaxRoutes) }) {
		b.Row("factor", "of loads by rate: the routes on a cable, times the rate of %s over its own", fastest)
	}
}

// writes says what a subnet manager writes.
func writes(c *drain.Change) string {
	return fmt.Sprintf("%s on %s", text.CountGrouped(c.Blocks, "block", "blocks"), text.Count(c.Switches, "switch", "switches"))
}

// writeOrder says in which order it writes.
func writeOrder(c *drain.Change) string {
	switch {
	case c.CreditLoops > 0:
		return text.Count(c.CreditLoops, "credit loop on the way", "credit loops on the way")
	case c.Order.Kind == diff.OrderNone || c.Order.Kind == diff.OrderAny:
		return c.Order.Kind
	}
	return fmt.Sprintf("by %s, in %s", c.Order.Kind, text.Count(max(len(c.Order.Stages), 1), "stage", "stages"))
}
