package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibweave/ibweave/audit/choice"
	"github.com/ibweave/ibweave/audit/whatif"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/names"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/report"
	"github.com/ibweave/ibweave/report/metrics"
	"github.com/ibweave/ibweave/state/open"
)

// failing has the flags of whatif.
type failing struct {
	order
	opt whatif.Options
	at  []string // switches
}

func (a *app) whatifCommand() *cobra.Command {
	var (
		o                 failing
		fail, shard, only string
		out               caseFlags
		merge             bool
	)
	cmd := &cobra.Command{
		Use:     "whatif {TOPOLOGY -e ENGINE {--fail links|switches | --only isl|hosts|switches} | --merge FILE..}",
		Short:   "what the failure of each cable or switch would do",
		Aliases: []string{"merge"}, // an earlier name: ibweave merge FILE..
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.CalledAs() == "merge" {
				if err := cmd.Flags().Set("merge", "true"); err != nil {
					return err
				}
			}
			if merge {
				return nil
			}
			return a.topologyArg(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if merge {
				return a.mergeShards(cmd, args, &out)
			}
			if o.topology == "" || o.engine == "" || fail == "" && only == "" {
				return usagef("whatif needs a topology, -t FILE, an engine, -e ENGINE, and what fails, --fail links or switches, or --only isl, hosts or switches")
			}
			if err := parseFails(&o.opt, fail, only); err != nil {
				return err
			}
			route, err := o.routeFlags.parse(cmd)
			if err != nil {
				return err
			}
			r, err := a.whatif(cmd.Context(), &o, route)
			if err != nil {
				return err
			}
			return a.writeCases(r, &out)
		},
	}
	flags := cmd.Flags()
	o.routeFlags.define(flags, "`POLICY` of LIDs: keep, dense or mesh, as in compile", "")
	o.defineEngine(flags, &o.engine)
	cli.WordFlag(flags, &fail, "fail", "`PARTS` that fail: links or switches", "links", "switches")
	cli.WordFlag(flags, &only, "only", "`PARTS` that fail: isl, the cables between switches; hosts, the cables of hosts; or switches", "isl", "hosts", "switches")
	flags.StringArrayVar(&o.at, "switch", nil, "only failures that touch this switch, `NAME` or GUID; may be repeated")
	cli.DefaultNumberFlag(flags, &o.opt.Depth, "depth", 1, 1, 2, "how many fail together: 1 or 2")
	cli.NumberFlag(flags, &o.opt.Sample, "sample", 1, cli.MaxNumber, "try `N` failures drawn at random; by default all")
	cli.DefaultNumberFlag(flags, &o.opt.Seed, "seed", 1, 0, math.MaxUint64, "chooses the sample")
	cli.ParsedFlag(flags, &shard, "shard", "", "try part `i/n` of the failures only", func(text string) (string, error) {
		i, n, _ := strings.Cut(text, "/")
		part, ok := cli.ParseNumber[int](i)
		parts, isNumber := cli.ParseNumber[int](n)
		if !ok || !isNumber || part < 1 || part > parts {
			return "", errors.New("want i/n, i from 1 to n")
		}
		o.opt.Shard, o.opt.Shards = part, parts
		return text, nil
	})
	flags.BoolVar(&merge, "merge", false, "put together the results of --shard")
	a.fabricFlags(cmd)
	a.hostGroupFlag(cmd)
	out.define(flags)
	cli.Scopes(cmd.Flags(),
		cli.Scope{Flags: "seed", With: "sample", Why: cli.Random, Note: true},
		cli.Scope{Flags: "top", Not: "format=json", Why: cli.Unsaid, Note: true},
		cli.Scope{Flags: "roots", With: ordered, Why: "other engines have no order of the switches", Note: true})
	return cmd
}

// parseFails sets opt.Kind and opt.Only by --fail and --only.
func parseFails(opt *whatif.Options, fail, only string) error {
	implied := whatif.Links
	switch only {
	case "":
		implied = fail
	case whatif.Switches:
		implied = only
	default:
		opt.Only = only
	}
	opt.Kind = cmp.Or(fail, implied)
	if opt.Kind != implied {
		return usagef("--only %s leaves nothing of --fail %s: want --fail %s, or --only alone", only, fail, implied)
	}
	return nil
}

// caseFlags are the flags of whatif that --merge has, too.
type caseFlags struct {
	cli.OutputForm
	cli.Threshold
	file, sort string
	top        int
}

func (c *caseFlags) define(flags *pflag.FlagSet) {
	c.OutputForm.DefineMetrics(flags, "whatif")
	c.Threshold.Define(flags, "")
	flags.StringVarP(&c.file, "output", "o", "", "also write the result as JSON to `FILE`, as a whole or not at all")
	c.sort = "harm"
	cli.WordFlag(flags, &c.sort, "sort", "`ORDER` of the failures: "+strings.Join(whatif.Orders, ", "), whatif.Orders...)
	cli.DefaultNumberFlag(flags, &c.top, "top", 20, 0, cli.MaxNumber, "failures to name in the text, `N`, the first of that order")
}

// namedSwitches finds switches by names, as drain does.
func namedSwitches(f *fabric.Fabric, list []string) (found []fabric.NodeID, err error) {
	for _, name := range list {
		nodes, err := names.Find(f, name)
		if err == nil && !f.IsSwitch(slices.Max(nodes)) {
			err = fmt.Errorf("%s is no switch", f.Name(slices.Max(nodes)))
		}
		if err != nil {
			return nil, inputf("--switch: %w", err)
		}
		found = append(found, nodes...)
	}
	return found, nil
}

func (a *app) whatif(ctx context.Context, o *failing, route compile.Options) (*whatif.Result, error) {
	engine, err := a.engine(o.engine)
	if err != nil {
		return nil, err
	}
	if err := cli.OneStdin(append([]string{o.topology}, o.roots...)...); err != nil {
		return nil, err
	}
	f, err := a.readFabric(&o.routeFlags, "so that nothing can fail")
	if err != nil {
		return nil, err
	}
	if err := a.setRoots(f, o.roots, &route.Route); err != nil {
		return nil, err
	}
	if o.opt.At, err = namedSwitches(f, o.at); err != nil {
		return nil, err
	}
	base, err := compile.Run(ctx, f, engine, route)
	if err != nil {
		return nil, lidInput(o.topology, err)
	}
	set, err := a.groupsOf(base.Routing.Fabric, true)
	if err != nil {
		return nil, err
	}
	s := a.startStage("failures")
	defer s.End()
	o.opt.Progress = s.Set
	r, err := whatif.Run(ctx, base, route, o.opt)
	if err != nil {
		return nil, err
	}
	r.Version = version
	r.Options = o.manifestOptions(base.Routing.Fabric, route, choice.CountLIDs(f, base.Routing.Fabric, o.lids).LMC)
	return r, r.AddGroups(ctx, base, set)
}

// mergeShards is whatif --merge FILE..: it merges results of whatif
// --shard, and prints and writes the same bytes as one run without
// shards. The files must be all shards of one run, each once.
func (a *app) mergeShards(cmd *cobra.Command, names []string, out *caseFlags) error {
	var other *pflag.Flag
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if cmd.LocalFlags().Lookup(f.Name) != nil && !slices.Contains([]string{"merge", "fail-on", "format", "output", "sort", "top"}, f.Name) {
			other = f
		}
	})
	if other != nil {
		return usagef("--%s has no effect with --merge: the files have their results", other.Name)
	}
	if len(names) == 0 {
		return usagef("--merge needs the files that whatif --shard wrote")
	}
	if err := cli.OneStdin(names...); err != nil {
		return err
	}
	var results []*whatif.Result
	for _, name := range names {
		r, err := readAs(a, &audit{}, name, whatif.Read)
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	r, err := whatif.Merge(names, results)
	if err != nil {
		return open.NewError(err)
	}
	return a.writeCases(r, out)
}

// writeCases writes a result as the flags ask; it returns ErrFindings as --fail-on says.
func (a *app) writeCases(r *whatif.Result, out *caseFlags) error {
	r.Sort(out.sort)
	if out.file != "" {
		if err := a.writeComplete(out.file, cli.Printed(func(w io.Writer) error { return report.JSON(w, r) })); err != nil {
			return err
		}
	}
	if out.IsMetrics() {
		return cmp.Or(metrics.Write(a.stdout, out.Metrics, struct {
			*whatif.Result
			Totals whatif.Totals `json:"totals"`
		}{r, r.Totals()}), out.CheckWorst(r.Worst()))
	}
	return cmp.Or(out.Print(a.stdout, r, func(b *text.Sheet) { r.Print(b, out.top, out.sort) }), out.CheckWorst(r.Worst()))
}
