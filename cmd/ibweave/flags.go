package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/audit/policy"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

func lenientFlag(flags *pflag.FlagSet, to *bool) {
	flags.BoolVar(to, "lenient", false, "leave out of the input what is broken, and list it")
}

// fabricFlags defines --strict, --node-name-map and --kinds, for a command with --lenient.
func (a *app) fabricFlags(cmd *cobra.Command) {
	a.strictFlag(cmd)
	a.nameFlag(cmd)
	a.kindFlag(cmd)
}

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

// maxRebalance bounds --rebalance; no route moves at that limit.
const maxRebalance = 1000

// grids and ordered are conditions of cli.Scope: an
// engine for grids, or one that orders the switches.
const (
	grids   = "engine=xy|negative-first|west-first|north-last"
	ordered = "engine=updn|spam|layered|fattree"
)

// balancedRoots is the value of --roots with which engine spam takes our order, not its paper's.
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
	// rebalance is 0 if the command has no --rebalance.
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

// demands has the flags for what check judges besides tables.
type demands struct {
	wiring bool
	plans  []string       // files; nil for none
	policy string         // "" for none
	date   time.Time      // zero for today
	held   *policy.Policy // the policy, after readPolicy
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

// today returns the day as of which waivers hold.
func (d *demands) today() time.Time {
	if !d.date.IsZero() {
		return d.date
	}
	now := time.Now()
	return time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
}

// bounding has the flags of check and compile about lower bounds of the load.
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
