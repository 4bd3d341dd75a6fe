package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/audit/choice"
	"github.com/ibweave/ibweave/audit/policy"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// lenientFlag defines --lenient.
func lenientFlag(flags *pflag.FlagSet, to *bool) {
	flags.BoolVar(to, "lenient", false, "leave out of the input what is broken, and list it")
}

// fabricFlags defines the flags of a command that reads a fabric, with --lenient, and counts hosts.
func (a *app) fabricFlags(cmd *cobra.Command) {
	a.strictFlag(cmd)
	a.nameFlag(cmd)
	a.kindFlag(cmd)
}

// strictFlag defines --strict, for commands with --lenient.
func (a *app) strictFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.strict, "strict", false, "refuse a topology with anything that its tool does not print, and impossible LIDs")
	cmd.MarkFlagsMutuallyExclusive("strict", "lenient")
}

func (a *app) nameFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.nameMap.file, "node-name-map", "", "call nodes by the names in `FILE`, a node-name map as of infiniband-diags or what ibnodes prints")
}

// kindFlag defines --kinds, for commands that count hosts.
func (a *app) kindFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.kinds, "kinds", "", "say what nodes are for, as `KIND=PATTERN,..`: host, aggregation, router, service or gateway, and a GUID or a name with * (docs/kinds.md)")
}

func (a *app) hostGroupFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.hostGroups.name, "host-groups", "", "sum up by the groups of hosts in `FILE`: racks, partitions (docs/groups.md)")
}

// maxRebalance bounds --rebalance; nothing is moved for so much.
const maxRebalance = 1000

// grids and ordered are the engines for grids, and those with an order of the switches.
const (
	grids   = "engine=xy|negative-first|west-first|north-last"
	ordered = "engine=updn|spam|layered|fattree"
)

// balancedRoots is --roots for an order of our own where the engine's source has another.
const balancedRoots = "balanced"

// routeFlags are the flags of commands that route a fabric.
type routeFlags struct {
	topology string
	lids     string
	lmc      int
	roots    []string
	noWrap   bool
	repair   bool
	vls      int
	lenient  bool
	// rebalance is 0 where there is no such flag.
	rebalance float64
}

func (r *routeFlags) define(flags *pflag.FlagSet, lids, roots string) {
	flags.StringVarP(&r.topology, "topology", "t", "", "topology `FILE`; - is standard input")
	flags.StringVar(&r.lids, "lids", "keep", lids)
	cli.NumberFlag(flags, &r.lmc, "lmc", 0, fabric.MaxLMC, "each CA port answers to 2^`N` LIDs, N from 0 to 7; by default as the ports have it")
	flags.StringSliceVar(&r.roots, "roots", nil, "switches on top of the up*/down* order, highest first: `GUID,..` or a file with a GUID a line; "+balancedRoots+", for spam, is an order with lower loads than the paper's"+roots)
	lenientFlag(flags, &r.lenient)
}

func (r *routeFlags) defineEngine(flags *pflag.FlagSet, engine *string) {
	flags.StringVarP(engine, "engine", "e", "", "routing `ENGINE`; names of OpenSM's engines stand for ours")
	flags.BoolVar(&r.noWrap, "no-wrap", false, "leave the cables that close the rings of a torus unused")
	flags.BoolVar(&r.repair, "repair", false, "xy: route around missing cables and switches of a mesh")
	cli.ParsedFlag(flags, &r.vls, "vls", "0", "data VLs that ports have: `N` is 1, 2, 4, 8 or 15; by default what the engine needs", func(text string) (int, error) {
		n, ok := cli.ParseNumber[int](text)
		if !ok || lft.CheckVLCount(n) != nil {
			return 0, errors.New("want 1, 2, 4, 8 or 15")
		}
		return n, nil
	})
	rebalanceFlag(flags, &r.rebalance, lft.DefaultRebalance)
	cli.Scopes(flags,
		cli.Scope{Flags: "no-wrap", With: grids, Note: true},
		cli.Scope{Flags: "repair", With: "engine=xy", Note: true})
}

// rebalanceFlag defines --rebalance with a default.
func rebalanceFlag(flags *pflag.FlagSet, to *float64, usual float64) {
	*to = usual
	cli.NumberFlag(flags, to, "rebalance", 1, maxRebalance,
		"kept tables move routes until no link has more than `F` times the greatest load of tables from scratch, F from 1 on")
}

// engine finds an engine by its name. A line on standard error says which one stands for an engine
// of OpenSM.
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

// parse returns options from the flags that need no fabric.
func (r *routeFlags) parse(cmd *cobra.Command) (opt compile.Options, err error) {
	opt.LIDs.LMC = r.lmc
	if !cmd.Flags().Changed("lmc") {
		opt.LIDs.LMC = lft.KeepLMC
	}
	if opt.LIDs.Policy, err = lft.ParseLIDPolicy(r.lids); err != nil {
		return opt, usagef("--lids: %w", err)
	}
	opt.Route = lft.Options{NoWrap: r.noWrap, Repair: r.repair, VLs: r.vls, Rebalance: r.rebalance}
	return opt, nil
}

// runEngine is compile.Run, which shows its stages.
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

// readOrRoute reads the fabric of a command, and reads its tables or makes them by an engine, "" for
// none. The tables are nil when there are none.
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

// routeBy routes the fabric of a topology with an engine. For engine "" it takes the one that suits the
// fabric best, and names it on standard error. LIDs stay. opt has only options of routes and a demand.
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

// routeOrChoose routes with an engine, or for "" with the one that suits the fabric best, and says
// why it does.
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

// lidInput makes wrong input of LIDs that a topology does not allow.
func lidInput(topology string, err error) error {
	if cli.Is[*compile.LIDError](err) {
		return inputf("%s: %w", topology, err)
	}
	return err
}

// demands has the flags for what check demands of a fabric beyond its tables.
type demands struct {
	wiring bool
	plans  []string       // files; nil for none
	policy string         // "" for none
	date   time.Time      // zero for today
	held   *policy.Policy // what is in policy, once readPolicy was called
}

// flags defines the flags that check and report share.
func (d *demands) flags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&d.plans, "plan", nil, "hold the cables to the plan in `FILE`[,FILE..]: UFM's NDT, CSV or ibutils' .topo; implies --wiring")
	flags.StringVar(&d.policy, "policy", "", "hold everything to the policy in `FILE`; implies --wiring")
	cli.ParsedFlag(flags, &d.date, "date", "", "take waivers as of `DAY`, like 2026-12-31; today when not given", func(text string) (time.Time, error) {
		day, err := time.Parse(time.DateOnly, text)
		if err != nil {
			return day, errors.New("want a day, like 2026-12-31")
		}
		return day, nil
	})
	cli.Scopes(flags, cli.Scope{Flags: "date", With: "policy", Why: "waivers are in a policy", Note: true})
}

// wanted returns true if anything other than tables is to be checked.
func (d *demands) wanted() bool { return d.wiring || d.policy != "" || len(d.plans) > 0 }

// today is the day that waivers are held against.
func (d *demands) today() time.Time {
	if !d.date.IsZero() {
		return d.date
	}
	now := time.Now()
	return time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
}

// bounding is the flags of check and compile about lower bounds of the load.
type bounding struct {
	rounds int
	write  string // file; "" for none
}

func (b *bounding) flags(flags *pflag.FlagSet) {
	cli.ParsedFlag(flags, &b.rounds, "bound-iterations", "0", "seek a lower bound of the load for `N` rounds; by default as many as take little time, and 200 with --write-bound; below 0 only cuts are tried", func(text string) (int, error) {
		n, ok := cli.ParseNumber[int](text)
		if !ok || n == 0 || max(n, -n) > cli.MaxNumber {
			return 0, errors.New("want rounds, 1 or more, or -1 for cuts alone")
		}
		return n, nil
	})
	flags.StringVar(&b.write, "write-bound", "", "write the proof of the lower bounds of the load into `FILE`, for check --bound")
}
