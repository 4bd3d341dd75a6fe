package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/audit/compare"
	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/audit/quality"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/state/open"
	"github.com/ibweave/ibweave/verify"
)

// contest has the flags of compare.
type contest struct {
	routeFlags
	cli.OutputForm
	cli.Threshold
	engines []string
	lfts    []string
	against string // name of the contender that others are compared with
	quality quality.Options
	traffic string     // file of jobs, "" for none
	fit     bool       // --fit: compare tables fitted to the jobs, too
	jobs    *jobs.File // nil for none
	conf    string     // opensm.conf, "" for none
	site    *siteOptions
}

func (a *app) compareCommand() *cobra.Command {
	var c contest
	cmd := &cobra.Command{
		Use:   "compare TOPOLOGY [-e ENGINE,..] [--lfts FILE ..]",
		Short: "engines, OpenSM's too, and existing tables side by side",
		Args:  a.topologyArg,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opt, err := c.parse(cmd)
			if err != nil {
				return err
			}
			if c.site, err = a.readSiteOptions(c.conf); err != nil {
				return err
			}
			if c.jobs, err = a.readJobFile(c.traffic); err != nil {
				return err
			}
			in := newAudit(c.lenient, false)
			// With LFTs, rules about tables that the topology leaves undecided are listed, too.
			in.Topology, in.LFTs = c.topology, c.topology
			f, err := a.contestFabric(&c, in, &opt)
			if err != nil {
				return err
			}
			s, err := a.compare(cmd.Context(), &c, f, opt, in.listUndecided())
			if err != nil {
				return err
			}
			if err := c.Print(a.stdout, s, s.Text); err != nil {
				return err
			}
			fails := func(x *compare.Contender) bool { return x.Refused != "" || x.Verify.Fails(c.At()) }
			return cli.FindingsIf(!c.Never() && slices.ContainsFunc(s.Contenders, fails))
		},
	}
	flags := cmd.Flags()
	c.routeFlags.define(flags, "`POLICY` of the LIDs of engines: keep, dense or mesh, as in compile", "")
	c.OutputForm.Define(flags, "output")
	c.Threshold.Define(flags, "; what is undecided fails with all but never")
	flags.StringSliceVarP(&c.engines, "engines", "e", nil, "routing engines, `ENGINE,..`")
	flags.StringArrayVar(&c.lfts, "lfts", nil, "`FILE` of forwarding tables, or a directory that compile wrote; may be repeated")
	a.fabricFlags(cmd)
	a.hostGroupFlag(cmd)
	flags.StringVar(&c.traffic, "traffic", "", "measure the jobs of YAML `FILE`, too (docs/traffic.md)")
	flags.StringVar(&c.conf, "opensm-conf", "", "engines of OpenSM have the options of routing in opensm.conf `FILE`, and the files that it names")
	flags.BoolVar(&c.fit, "fit", false, "compare with the tables that compile --traffic makes for the jobs, too")
	flags.StringVar(&c.against, "against", "", "compare bandwidths with those of `NAME`, by default the first column")
	cli.DefaultNumberFlag(flags, &c.quality.Bisections, "bisections", quality.DefaultBisections, 0, cli.MaxNumber, "random bisections to try, `N`; 0 for none")
	cli.DefaultNumberFlag(flags, &c.quality.Permutations, "permutations", quality.DefaultPermutations, 0, cli.MaxNumber, "random permutations to try, `N`; 0 for none")
	cli.DefaultNumberFlag(flags, &c.quality.Shifts, "shifts", quality.DefaultShifts, 0, cli.MaxNumber, "shifts to try, at most `N`; 0 for none")
	cli.DefaultNumberFlag(flags, &c.quality.Seed, "seed", 1, 0, math.MaxUint64, "chooses bisections, permutations and, where there are too many, shifts")
	cli.DefaultNumberFlag(flags, &c.quality.Hottest, "hottest", 3, 0, cli.MaxNumber, "most loaded links to name, `N`; 0 for none")
	cli.Scopes(cmd.Flags(),
		cli.Scope{Flags: "against", Not: "bisections=0", Why: "there is no bandwidth to compare"},
		cli.Scope{Flags: "lids lmc roots", With: "engines", Why: "tables of --lfts have their LIDs and paths", Note: true},
		cli.Scope{Flags: "fit", With: "traffic", Why: "tables are fitted to its jobs"})
	return cmd
}

// parse validates the flags and returns the options for engines.
func (c *contest) parse(cmd *cobra.Command) (opt compile.Options, err error) {
	if c.topology == "" || len(c.engines)+len(c.lfts) == 0 {
		return opt, usagef("compare needs a topology, -t FILE, and engines, -e ENGINE,.., or tables, --lfts FILE")
	}
	if opt, err = c.routeFlags.parse(cmd); err != nil {
		return opt, err
	}
	if c.fit && len(c.engines) == 0 {
		return opt, usagef("--fit is about engines: want -e ENGINE,..")
	}
	if c.conf != "" && !slices.ContainsFunc(c.engines, func(e string) bool { return strings.HasPrefix(e, compare.OpenSM) }) {
		return opt, usagef("--opensm-conf is about engines of OpenSM: want -e %supdn or the like", compare.OpenSM)
	}
	return opt, cli.OneStdin(append([]string{c.topology, c.traffic, c.conf}, append(c.lfts, c.roots...)...)...)
}

// contestFabric reads the fabric of all columns, and replaces aliases of our engines by names.
func (a *app) contestFabric(c *contest, in *audit, opt *compile.Options) (*fabric.Fabric, error) {
	for i, name := range c.engines {
		if engine, is := strings.CutPrefix(name, compare.OpenSM); is {
			if !slices.Contains(openSMEngines, engine) {
				return nil, usagef("engine %q: OpenSM has no such engine; want one of %s", name, compare.OpenSM+strings.Join(openSMEngines, ", "+compare.OpenSM))
			}
			continue
		}
		e, err := a.engine(name)
		if err != nil {
			return nil, err
		}
		c.engines[i] = e.Name()
	}
	f, err := a.reader(in).Fabric()
	if err != nil {
		return nil, err
	}
	if f.NumSwitches() == 0 {
		return nil, inputf("%s has no switch, so there are no tables to compare", c.topology)
	}
	return f, a.setRoots(f, c.roots, &opt.Route)
}

// compare measures all columns on f. undecided has
// the rules that the topology leaves undecided.
func (a *app) compare(ctx context.Context, c *contest, f *fabric.Fabric, opt compile.Options, undecided []verify.Undecided) (*compare.Standings, error) {
	s := &compare.Standings{Version: version}
	for _, name := range c.engines {
		var x *compare.Contender
		var err error
		if engine, is := strings.CutPrefix(name, compare.OpenSM); is {
			x, err = a.contendByOpenSM(ctx, c, f, engine, opt)
		} else {
			x, err = a.contendByEngine(ctx, c, f, name, opt)
		}
		if err != nil {
			return nil, err
		}
		if s.Contenders = append(s.Contenders, x); !c.fit || x.Refused != "" || strings.HasPrefix(name, compare.OpenSM) {
			continue
		}
		fitted := opt
		fitted.Demand = demandOf(a.fitting(c.jobs))
		if x, err = a.contendByEngine(ctx, c, f, name, fitted); err != nil {
			return nil, err
		}
		if x != nil {
			s.Contenders = append(s.Contenders, x)
		}
	}
	for _, name := range c.lfts {
		x, err := a.contendByFile(ctx, c, f, name, undecided)
		if err != nil {
			return nil, err
		}
		s.Contenders = append(s.Contenders, x)
	}
	names := make(map[string]int)
	for _, x := range s.Contenders {
		names[x.Name]++
	}
	for _, x := range s.Contenders {
		if names[x.Name] > 1 && x.File != "" {
			x.Name = x.File
		}
	}
	if err := s.With(c.against); err != nil {
		return nil, cli.NewUsageError(err)
	}
	return s, nil
}

// contendByEngine routes f. With opt.Demand it returns nil if the tables could not be fitted.
func (a *app) contendByEngine(ctx context.Context, c *contest, f *fabric.Fabric, name string, opt compile.Options) (*compare.Contender, error) {
	e, err := compile.EngineByName(name)
	if err != nil {
		return nil, cli.NewUsageError(err)
	}
	x := &compare.Contender{Name: e.Name()}
	r, err := a.runEngine(ctx, f, e, opt, func(stage string) string { return e.Name() + ": " + stage })
	if outside, ok := errors.AsType[*lft.DomainError](err); ok {
		x.Refused = outside.Reason
		return x, nil
	}
	if err != nil {
		return nil, lidInput(c.topology, err)
	}
	if opt.Demand != nil {
		if x.Name, x.Fitted = x.Name+" for the jobs", true; !a.isFitted(r, x.Name) {
			return nil, nil
		}
	}
	x.Verify, x.Seconds = r.Verify, &r.Seconds
	return x, a.measure(ctx, c, x, r.Routing)
}

// contendByOpenSM lets the OpenSM of this machine route f on ibsim, with the LIDs of our engines.
func (a *app) contendByOpenSM(ctx context.Context, c *contest, f *fabric.Fabric, engine string, opt compile.Options) (*compare.Contender, error) {
	x := &compare.Contender{Name: compare.OpenSM + engine}
	if opt.LIDs.LMC == lft.KeepLMC {
		opt.LIDs.LMC = c.site.lmc
	}
	g, err := lft.AssignLIDs(f, opt.LIDs)
	if err != nil {
		return nil, lidInput(c.topology, &compile.LIDError{Err: err})
	}
	r, in, used, err := a.routeByOpenSM(ctx, g, engine, c.site)
	if err != nil {
		return nil, err
	}
	if !strings.EqualFold(used, engine) {
		x.Refused = "OpenSM has fallen back to " + used
		return x, nil
	}
	s := state.Of(r)
	s.UnknownSLs = in.State.UnknownSLs
	if x.Verify, err = a.checkTables(ctx, s, verify.Options{Complete: true}); err != nil {
		return nil, err
	}
	x.Verify.Leave(in.listUndecided()...)
	return x, a.measure(ctx, c, x, r)
}

// contendByFile reads a compiled directory, or a dump of tables
// of f, for which undecided has the rules that f leaves undecided.
func (a *app) contendByFile(ctx context.Context, c *contest, f *fabric.Fabric, name string, undecided []verify.Undecided) (*compare.Contender, error) {
	x := &compare.Contender{Name: filepath.Base(name), File: name}
	in := newAudit(c.lenient, false)
	in.Findings, in.Topology, in.LFTs = true, c.topology, name
	r := a.reader(in)
	if open.Folder(name) {
		in.Topology, in.LFTs, undecided = "", "", nil
		if err := r.FindIn(name, true); err != nil {
			return nil, err
		}
		own, err := r.Fabric()
		if err != nil {
			return nil, err
		}
		if verify.FabricHash(f) != verify.FabricHash(own) {
			return nil, inputf("%s is of another fabric than %s: ibweave diff lists other nodes and cables", name, c.topology)
		}
		f = own
	}
	r.UseFabric(f)
	if err := r.Tables(); err != nil {
		return nil, err
	}
	err := r.Lanes()
	if err != nil {
		return nil, err
	}
	if x.Verify, err = a.checkTables(ctx, &r.State, verify.Options{}); err != nil {
		return nil, err
	}
	x.Verify.Add(in.findings...)
	x.Verify.Leave(undecided...)
	x.Verify.Leave(in.listUndecided()...)
	return x, a.measure(ctx, c, x, r.State.Routing())
}

// measure measures the tables of a column: bandwidth, groups and jobs.
func (a *app) measure(ctx context.Context, c *contest, x *compare.Contender, r *lft.Routing) (err error) {
	s := a.startStage(x.Name + ": traffic")
	defer s.End()
	opt := c.quality
	opt.CAOrder = r.CAOrder
	if x.Quality, err = quality.Measure(ctx, r.Fabric, r.Tables, opt); err != nil {
		return err
	}
	if x.Groups, err = a.groupStates(ctx, r.Fabric, r.Tables, true); err != nil || c.jobs == nil {
		return err
	}
	t, _, err := a.jobsIn(c.jobs, r.Fabric)
	if err != nil {
		return err
	}
	if x.Traffic, err = t.Summarize(ctx, r.Tables); err != nil {
		return inputUnlessDone(ctx, fmt.Errorf("%s: %w", c.traffic, err))
	}
	return nil
}
