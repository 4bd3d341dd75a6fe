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
	"github.com/ibweave/ibweave/audit/move"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

type moveOptions struct {
	cli.OutputForm
	topology, engine string
	by               string
	opt              move.Options
	rebalance        float64
	lenient          bool
	output, write    string
}

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
	cli.WordFlag(flags, &o.by, "by", "find the nodes of a topology in the fabric by `WHAT`: guid or name", "guid", "name")
	cli.NumberFlag(flags, &o.opt.Limit, "limit", 1, cli.MaxFactor, "no cable gets more than `F` times the greatest load before, F from 1 on; by default any load")
	cli.NumberFlag(flags, &o.opt.AtOnce, "at-once", 1, cli.MaxNumber, "move at most `N` cables together where that is possible; by default as many as are safe")
	rebalanceFlag(flags, &o.rebalance, 1.1)
	flags.StringVarP(&o.output, "output", "o", "", "write the tables of each state into `DIR`")
	flags.StringVar(&o.write, "write-plan", "", "write the steps as a `FILE` that move takes as NEW")
	lenientFlag(flags, &o.lenient)
	o.OutputForm.Define(flags, "output")
	a.fabricFlags(cmd)
	cli.Scopes(cmd.Flags(), cli.Scope{Flags: "engine", With: "topology", Why: "DIR has its engine"})
	return cmd
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
	return cmp.Or(o.Print(a.stdout, found, found.Print), cli.FindingsIf(len(found.Refused) > 0))
}

// movedTables reads the tables of DIR, or makes tables for -t OLD.
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

// readJob reads what the fabric is to become: a topology, a cabling plan or a file of edits.
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

// sharesSwitches returns true if most switches of g are in f: g is f after a change.
func sharesSwitches(f, g *fabric.Fabric) bool {
	return 2*text.CountIf(g.Switches(), func(s fabric.NodeID) bool {
		_, shared := f.SwitchByGUID(g.Node(s).GUID)
		return shared
	}) > g.NumSwitches()
}

// plannedFabric returns the fabric that a cabling plan makes of old.
func (a *app) plannedFabric(name string, data []byte, old *fabric.Fabric, lenient bool) (*fabric.Fabric, error) {
	p, err := plan.Parse(name, data, lenient)
	if err != nil {
		return nil, err
	}
	e, err := plan.Bind(old, p)
	if err != nil {
		return nil, err
	}
	a.listProblems(len(e.Problems), lenient, func(i int) string { return e.Problems[i].Error() })
	return a.named(e.Fabric)
}

// writeMoves writes a compiled directory for each state, and the steps.
func (a *app) writeMoves(ctx context.Context, o *moveOptions, base *compile.Result, job *move.Job, found *move.Plan) error {
	if o.write != "" {
		if err := a.WriteFile(o.write, move.Write(job, found.Steps)); err != nil {
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
