package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/audit/drain"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/outdir"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

type drainOptions struct {
	cli.OutputForm
	switches, cables []string
	groups           []string
	limit, rebalance float64
	lenient          bool
	output           string
}

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
	cli.Scopes(flags, cli.Scope{Flags: "host-group", With: "host-groups", Why: "they say which hosts are in it"})
	cli.NumberFlag(flags, &o.limit, "limit", 1, cli.MaxFactor, "no cable gets more than `F` times the greatest load before the drain, F from 1 on; by default any load")
	rebalanceFlag(flags, &o.rebalance, 1.1)
	flags.StringVarP(&o.output, "output", "o", "", "write the tables of each step into `DIR`")
	lenientFlag(flags, &o.lenient)
	o.OutputForm.Define(flags, "output")
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
	parts, err := drain.Parts(f, o.switches, o.cables, o.groups, set)
	if err != nil && !cli.Is[*fabric.ParseError](err) {
		err = cli.NewUsageError(err)
	}
	if err != nil {
		return err
	}
	a.tellMulticast(dir, multicast)
	stage := a.startStage("plan")
	var route compile.Options
	route.Route.Rebalance = o.rebalance
	plan, err := drain.Make(ctx, base, route, parts, drain.Options{Limit: o.limit})
	if err == nil {
		err = plan.AddGroups(ctx, base, set)
	}
	stage.End()
	if err != nil {
		return err
	}
	if err := a.writeSteps(ctx, o.output, plan); err != nil {
		return err
	}
	return cmp.Or(o.Print(a.stdout, plan, func(b *text.Sheet) { plan.Print(b, len(parts)) }), cli.FindingsIf(len(plan.Refused) > 0))
}

// readCompiled reads and verifies the tables of a compiled directory.
// multicast is true if it has multicast tables, which are not read.
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

// tellMulticast prints that a plan leaves out multicast, if
// there is any. All input is read by then.
func (a *app) tellMulticast(dir string, has bool) {
	if has {
		fmt.Fprintf(a.stderr, "%s has multicast tables: the plan is about unicast alone\n", dir)
	}
}

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

// writeState writes the compiled directory of a state, and makes the directories above it.
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
