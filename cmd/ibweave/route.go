package main

import (
	"context"
	"fmt"

	"github.com/ibweave/ibweave/audit/choice"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// engine finds an engine by its name. If that is one of OpenSM's,
// a line on standard error names the engine that stands for it.
func (a *app) engine(name string) (*compile.Engine, error) {
	e, err := compile.EngineByName(name)
	if err != nil {
		return nil, cli.NewUsageError(fmt.Errorf("%w%s", err, cli.Near(name, flagValues()["engine"])))
	}
	if line := e.IsCounterpart(name); line != "" {
		fmt.Fprintf(a.stderr, "ibweave: %s\n", line)
	}
	return e, nil
}

// readOrRoute reads the fabric of a command, and reads its tables or, for an
// engine other than "", makes them. The tables are nil if there are none.
func (a *app) readOrRoute(ctx context.Context, command string, in *audit, engine string, args []string) (*fabric.Fabric, *lft.Tables, error) {
	in.TakeAdaptive = true
	if len(args) == 0 && isFolderAlone(&in.Files) && engine == "" {
		args, in.Topology = []string{in.Topology}, ""
	}
	switch {
	case len(args) > 0 && (in.Topology != "" || in.HasTables() || in.PLFT != "" || engine != ""):
		return nil, nil, usagef("%s takes a directory, or -t and --lfts or -e, not both", command)
	case len(args) == 0 && in.Topology == "":
		return nil, nil, usagef("%s needs a directory, or -t TOPOLOGY", command)
	case engine != "" && in.HasTables():
		return nil, nil, usagef("-e makes the tables: want no --lfts and --far beside it")
	case in.PLFT != "" && in.FAR == "":
		return nil, nil, usagef("--plft has no effect without adaptive routing, --far FILE")
	}
	if len(args) > 0 {
		if err := a.reader(in).FindIn(args[0], false); err != nil {
			return nil, nil, err
		}
	}
	if err := cli.OneStdin(in.Topology, in.LFTs, in.FAR, in.PLFT); err != nil {
		return nil, nil, err
	}
	if engine == "" {
		return a.readTables(in)
	}
	f, err := a.reader(in).Fabric()
	if err != nil {
		return nil, nil, err
	}
	r, err := a.routeBy(ctx, f, in.Topology, engine, compile.Options{})
	if err != nil {
		return nil, nil, err
	}
	return r.Routing.Fabric, r.Routing.Tables, nil
}

// routeBy routes the fabric of a topology with an engine, or for ""
// with the one that suits it best, which a line on standard error
// names. LIDs stay. opt has only options of routes and a demand.
func (a *app) routeBy(ctx context.Context, f *fabric.Fabric, topology, engine string, opt compile.Options) (*compile.Result, error) {
	if f.NumSwitches() == 0 {
		return nil, inputf("%s has no switch, so there is nothing to route", topology)
	}
	opt.LIDs.LMC = lft.KeepLMC
	r, why, err := a.routeOrChoose(ctx, f, engine, opt)
	if err == nil && engine == "" {
		fmt.Fprintf(a.stderr, "ibweave: routed with %s; %s\n", r.Engine.Name(), why)
	}
	return r, lidInput(topology, err)
}

// routeOrChoose routes with an engine, or for "" with the one
// that suits the fabric best; why is the reason for that choice.
func (a *app) routeOrChoose(ctx context.Context, f *fabric.Fabric, engine string, opt compile.Options) (r *compile.Result, why string, err error) {
	if engine == "" {
		s := a.startStage("choose an engine")
		defer s.End()
		c, r, err := choice.Choose(ctx, f, opt)
		if err != nil {
			return nil, "", err
		}
		return r, c.Why, nil
	}
	e, err := a.engine(engine)
	if err != nil {
		return nil, "", err
	}
	r, err = a.runEngine(ctx, f, e, opt, func(stage string) string { return stage })
	return r, "", err
}

// runEngine calls compile.Run, and shows its stages.
func (a *app) runEngine(ctx context.Context, f *fabric.Fabric, e *compile.Engine, opt compile.Options, label func(stage string) string) (*compile.Result, error) {
	stage := a.startStage("")
	defer func() { stage.End() }()
	opt.Stage = func(name string) {
		stage.End()
		stage = a.startStage(label(name))
	}
	opt.Progress = func(done, total int) { stage.Set(done, total) }
	return compile.Run(ctx, f, e, opt)
}

// lidInput marks an error about LIDs of a topology as wrong input.
func lidInput(topology string, err error) error {
	if cli.Is[*compile.LIDError](err) {
		return inputf("%s: %w", topology, err)
	}
	return err
}
