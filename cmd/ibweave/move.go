package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/audit/cabling/plan"
	"github.com/ibweave/ibweave/audit/drain"
	"github.com/ibweave/ibweave/audit/move"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/names"
	"github.com/ibweave/ibweave/internal/hostlist"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// moveOptions is what move is asked to do.
type moveOptions struct {
	outputForm
	topology, engine string
	by               string
	opt              move.Options
	rebalance        float64
	lenient          bool
	output, write    string
}

// moveCommand plans how a fabric is recabled.
func (a *app) moveCommand() *cobra.Command {
	o := moveOptions{by: "guid"}
	cmd := &cobra.Command{
		Use:   "move [DIR | -t OLD] NEW",
		Short: "plan how to move, add and remove cables, switches and hosts",
		Args:  a.maxArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.topology == "" && len(args) != 2 || o.topology != "" && len(args) != 1 {
				return usagef("move needs DIR, which compile wrote, or -t OLD, and NEW, a topology, a cabling plan or a file of edits")
			}
			return a.move(cmd.Context(), &o, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.topology, "topology", "t", "", "topology `FILE` of the fabric, instead of DIR; - is standard input")
	flags.StringVarP(&o.engine, "engine", "e", "", "routing `ENGINE` for the first tables; by default one that suits the fabric")
	wordFlag(flags, &o.by, "by", "find the nodes of a topology in the fabric by `WHAT`: guid or name", "guid", "name")
	numberFlag(flags, &o.opt.Limit, "limit", 1, maxFactor, "no cable gets more than `F` times the greatest load before, F from 1 on; by default any load")
	numberFlag(flags, &o.opt.AtOnce, "at-once", 1, maxNumber, "move at most `N` cables together where that is possible; by default as many as are safe")
	o.rebalance = 1.1
	numberFlag(flags, &o.rebalance, "rebalance", 1, maxRebalance, "kept tables move routes until no link has more than `F` times the greatest load of tables from scratch, F from 1 on")
	flags.StringVarP(&o.output, "output", "o", "", "write the tables of each state into `DIR`")
	flags.StringVar(&o.write, "write-plan", "", "write the steps as a `FILE` that move takes as NEW")
	lenientFlag(flags, &o.lenient)
	o.outputForm.define(flags, "`FORM` of the output: text or json")
	a.fabricFlags(cmd)
	scopes(cmd.Flags(), scope{flags: "engine", with: "topology", why: "DIR has its engine"})
	return cmd
}

// moveDocument is the JSON form.
type moveDocument struct {
	*move.Plan
	Steps []moveStep `json:"steps"`
}

// moveStep is a step with its nodes as lists of names with brackets.
type moveStep struct {
	*move.Step
	DownHosts   string `json:"down_hosts"`
	GoneHosts   string `json:"gone_hosts"`
	NewHosts    string `json:"new_hosts"`
	NewNames    string `json:"new_switches"`
	GoneNames   string `json:"gone_switches"`
	hosts       [3]int // how many are down, gone and new
	newS, goneS int
}

func (a *app) move(ctx context.Context, o *moveOptions, args []string) error {
	base, multicast, err := a.movedTables(ctx, o, args)
	if err != nil {
		return err
	}
	job, err := a.readJob(o, base.Routing.Fabric, args[len(args)-1])
	if err != nil {
		return err
	}
	a.tellMulticast(args[0], multicast)
	stage := a.startStage("plan")
	var route compile.Options
	route.Route.Rebalance = o.rebalance
	found, err := move.Make(ctx, base, job, route, o.opt)
	stage.End()
	if err != nil {
		return err
	}
	if err := a.writeMoves(ctx, o, base, job, found); err != nil {
		return err
	}
	d := &moveDocument{Plan: found, Steps: []moveStep{}}
	for i := range found.Steps {
		s := moveStep{Step: &found.Steps[i]}
		s.hosts[0], s.DownHosts = names.Fold(job.Nodes, s.Down)
		s.hosts[1], s.GoneHosts = names.Fold(job.Nodes, s.Gone)
		s.hosts[2], s.NewHosts = names.Fold(job.Nodes, s.Come)
		s.newS, s.NewNames = names.Fold(job.Nodes, s.NewSwitches)
		s.goneS, s.GoneNames = names.Fold(job.Nodes, s.GoneSwitches)
		d.Steps = append(d.Steps, s)
	}
	return cmp.Or(o.print(a.stdout, d, d.print), findingsIf(len(found.Refused) > 0))
}

// movedTables reads the tables in force, or makes some.
func (a *app) movedTables(ctx context.Context, o *moveOptions, args []string) (r *compile.Result, multicast bool, err error) {
	if o.topology == "" {
		return a.readCompiled(ctx, args[0], o.lenient)
	}
	f, err := a.readFabric(&routeFlags{topology: o.topology, lenient: o.lenient}, "and nothing to route")
	if err != nil {
		return nil, false, err
	}
	f = f.WithoutVirtualLIDs()
	r, _, err = a.routeOrChoose(ctx, f, o.engine, compile.Options{LIDs: lft.LIDOptions{LMC: lft.KeepLMC}})
	if err == nil && r.Verify.Verdict == verify.VerdictErrors {
		err = inputf("%s: the tables of %s have errors, which ibweave compile lists; want a fabric that they are safe for", o.topology, r.Engine.Name())
	}
	return r, false, lidInput(o.topology, err)
}

// readJob reads what the fabric is to become.
func (a *app) readJob(o *moveOptions, old *fabric.Fabric, name string) (*move.Job, error) {
	var want *fabric.Fabric
	s, err := a.openFile(name, o.lenient, false)
	if err != nil {
		return nil, err
	}
	data, _ := s.Loaded(name)
	switch {
	case data == nil || dump.Recognize(data).Info().Kind == state.Topology:
		if want, err = a.reader(s).Fabric(); err != nil {
			return nil, err
		}
	case move.IsFile(data):
		return move.Parse(name, data, old)
	default:
		if want, err = a.plannedFabric(name, data, old, o.lenient); err != nil {
			return nil, err
		}
	}
	if o.by == "guid" && !sharesSwitches(old, want) {
		return nil, inputf("%s: most switches are none of the fabric; want the names of a plan, and the GUIDs of a topology, as they are there, or --by name", name)
	}
	job, err := move.Between(old, want, o.by == "name")
	if err != nil {
		return nil, inputf("%s: %w", name, err)
	}
	return job, nil
}

// plannedFabric is what a cabling plan makes of a fabric.
func (a *app) plannedFabric(name string, data []byte, old *fabric.Fabric, lenient bool) (*fabric.Fabric, error) {
	opt := plan.Options{Lenient: lenient}
	p, problems, err := plan.Parse(name, data, opt)
	if err != nil {
		return nil, err
	}
	e, err := plan.Bind(old, p, opt)
	if err != nil {
		return nil, err
	}
	problems = append(problems, e.Problems...)
	a.listProblems(len(problems), lenient, func(i int) string { return fmt.Sprintf("%v", problems[i].Err) })
	return a.named(e.Fabric)
}

// writeMoves writes a compiled directory for each state, and the steps.
func (a *app) writeMoves(ctx context.Context, o *moveOptions, base *compile.Result, job *move.Job, found *move.Plan) error {
	if o.write != "" {
		if err := a.writeOutput(o.write, move.Write(job, found.Steps)); err != nil {
			return err
		}
	}
	if o.output == "" {
		return nil
	}
	if o.topology != "" {
		if err := a.writeState(ctx, filepath.Join(o.output, "before"), base); err != nil {
			return err
		}
	}
	for i := range found.Steps {
		s := &found.Steps[i]
		dir := filepath.Join(o.output, fmt.Sprintf("step-%d", i+1))
		states := map[string]*compile.Result{"after": s.After.Compiled}
		if s.Drained != nil {
			states["drained"] = s.Drained.Compiled
		}
		if len(s.Plug) > 0 {
			states["back"] = s.After.Leave
		}
		for _, name := range slices.Sorted(maps.Keys(states)) {
			if err := a.writeState(ctx, filepath.Join(dir, name), states[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

// print writes a plan for people.
func (d *moveDocument) print(b *text.Sheet) {
	out, in := 0, 0
	for i := range d.Steps {
		out, in = out+len(d.Steps[i].Unplug), in+len(d.Steps[i].Plug)
	}
	b.Row("move", "%s unplugged and %d plugged in, in %s", text.Count(out, "cable is", "cables are"), in, text.Count(len(d.Steps), "step", "steps"))
	loads := []drain.Load{d.Before}
	for i := range d.Steps {
		if x := d.Steps[i].Drained; x != nil {
			loads = append(loads, x.Load)
		}
		loads = append(loads, d.Steps[i].After.Load)
	}
	printBefore(b, loads)
	for i := range d.Steps {
		d.Steps[i].print(b, i+1)
	}
	for _, r := range d.Refused {
		fmt.Fprintf(b, "\nerror: not moved, %s\n", r.Reason)
		printLinks(b, "unplug", r.Unplug)
		printLinks(b, "plug", r.Plug)
	}
}

// print writes a step.
func (s *moveStep) print(b *text.Sheet, number int) {
	note := ""
	if s.Detour {
		note = ", a detour for cables that cannot be out together"
	}
	fmt.Fprintf(b, "\nstep %d%s\n", number, note)
	printLinks(b, "unplug", s.Unplug)
	printLinks(b, "plug", s.Plug)
	for _, x := range []struct {
		what             string
		n                int
		one, many, names string
	}{
		{"down meanwhile: adapters of", s.hosts[0], "host", "hosts", s.DownHosts},
		{"gone for good: adapters of", s.hosts[1], "host", "hosts", s.GoneHosts},
		{"gone for good:", s.goneS, "switch", "switches", s.GoneNames},
		{"new:", s.newS, "switch", "switches", s.NewNames},
		{"new: adapters of", s.hosts[2], "host", "hosts", s.NewHosts},
	} {
		if x.n > 0 {
			fmt.Fprintf(b, "  %s %s, %s\n", x.what, text.Count(x.n, x.one, x.many), hostlist.Shorten(x.names))
		}
	}
	t := b.Table()
	fmt.Fprintln(t, "  TABLES\tBUSIEST\tFACTOR\tWRITE\tORDER\tVERDICT\tUNPLUGGED")
	row := func(name string, x *move.State) {
		fmt.Fprintf(t, "  %s\t%d\t%.2f\t%s\t%s\t%s\t%s\n", name, x.MaxRoutes, x.Factor, writes(&x.Write), newFirst(x.WriteFirst)+writeOrder(&x.Write), x.Verdict, x.Unplugged)
	}
	if s.Drained != nil {
		row("drained", s.Drained)
	}
	row("after", &s.After)
	if len(s.Plug) > 0 {
		fmt.Fprintf(t, "  back 2\t\t\t%s\t%s\t%s\t\n", writes(&s.After.Back), writeOrder(&s.After.Back), s.After.Back.Verdict(""))
	}
	if d := s.Drained; d != nil {
		fmt.Fprintf(t, "  back 1\t\t\t%s\t%s\t%s\t\n", writes(&d.Back), newFirst(d.BackFirst)+writeOrder(&d.Back), d.Back.Verdict(""))
	}
	_ = t.Flush() // a buffer takes all
	if s.Drained != nil && s.Drained.Cuts {
		fmt.Fprintln(b, "  some of those that are unplugged are cut off once the drained tables are written")
	}
	if s.After.BackCuts {
		fmt.Fprintln(b, "  some of those that are plugged in are cut off once the tables of back 2 are written")
	}
}

// newFirst says how many switches are written before the others.
func newFirst(list []fabric.GUID) string {
	if len(list) == 0 {
		return ""
	}
	return text.Count(len(list), "new switch first, ", "new switches first, ")
}

// printLinks lists cables, the first of many.
func printLinks(b *text.Sheet, verb string, links []move.Link) {
	const most = 8
	for i, l := range links {
		if i == most && len(links) > most+1 {
			fmt.Fprintf(b, "  %-7s and %d more\n", "", len(links)-most)
			return
		}
		fmt.Fprintf(b, "  %-7s %s -- %s  %s\n", verb, l.A.Unquoted(), l.B.Unquoted(), l.Rate)
		verb = ""
	}
}
