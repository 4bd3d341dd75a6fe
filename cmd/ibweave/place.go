package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/audit/groups"
	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/audit/place"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/names"
	"github.com/ibweave/ibweave/internal/hostlist"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/traffic"
)

type placeOptions struct {
	audit
	cli.OutputForm
	place.Options
	engine  string // "" to read tables
	traffic string
	slurm   string
	busy    []string
	groups  []string
}

func (a *app) placeCommand() *cobra.Command {
	var o placeOptions
	cmd := &cobra.Command{
		Use:   "place [DIR | -t TOPOLOGY {--lfts FILE | -e ENGINE}] --hosts N",
		Short: "find free hosts for a job, where it disturbs others least",
		Args:  a.maxArgs(1),
		RunE:  func(cmd *cobra.Command, args []string) error { return a.place(cmd.Context(), &o, args) },
	}
	flags := cmd.Flags()
	o.audit.routedFlags(flags, &o.engine)
	cli.NumberFlag(flags, &o.Hosts, "hosts", 1, 1<<20, "find `N` hosts")
	flags.StringVar(&o.Pattern, "pattern", "alltoall", "`PATTERN` that the job sends: "+traffic.Operations)
	o.Bytes = 1 << 30
	cli.ParsedFlag(flags, &o.Bytes, "size", "1G", "`BYTES` of the pattern, "+jobs.Sizes, func(text string) (float64, error) {
		bytes, ok := jobs.ParseSize(text)
		if !ok {
			return 0, errors.New("want bytes, " + jobs.Sizes)
		}
		return bytes, nil
	})
	cli.NumberFlag(flags, &o.PerHost, "ranks-per-host", 0, 1<<10,
		"ranks on each host; 0 is one on each port, and ports at the same place of their hosts send to each other alone")
	flags.StringVar(&o.traffic, "traffic", "", "YAML `FILE` of the jobs that run and what they send")
	flags.StringVar(&o.slurm, "slurm", "", "`FILE` of what squeue --json or scontrol show job prints")
	flags.StringArrayVar(&o.busy, "busy", nil, "hosts that are not free, a `NAME` or list; may be repeated")
	flags.StringArrayVar(&o.groups, "host-group", nil, "take hosts of `GROUP` or GROUPING:GROUP of --host-groups only; may be repeated")
	cli.Scopes(flags, cli.Scope{Flags: "host-group", With: "host-groups", Why: "they say which hosts are in it"})
	cli.DefaultNumberFlag(flags, &o.Sets, "top", 5, 1, 1<<20, "list the `N` best sets")
	cli.DefaultNumberFlag(flags, &o.Tries, "search", 200, 0, 1<<20, "try `N` sets beside each of the first two")
	o.OutputForm.Define(flags, "output")
	a.fabricFlags(cmd)
	a.hostGroupFlag(cmd)
	a.require(cmd, "hosts")
	return cmd
}

func (a *app) place(ctx context.Context, o *placeOptions, args []string) error {
	if _, err := traffic.Parse(o.Pattern); err != nil {
		return usagef("--pattern: %w", err)
	}
	if err := cli.OneStdin(o.Topology, o.LFTs, o.traffic, o.slurm); err != nil {
		return err
	}
	file, err := a.readJobFile(o.traffic)
	if err != nil {
		return err
	}
	var slurm []byte
	if o.slurm != "" {
		if slurm, err = a.readInput(o.slurm); err != nil {
			return err
		}
	}
	f, tables, err := a.readOrRoute(ctx, "place", &o.audit, o.engine, args)
	if err != nil {
		return err
	}
	if tables == nil {
		return usagef("place needs forwarding tables: a directory, --lfts FILE or -e ENGINE")
	}
	running, set, err := a.jobsIn(file, f)
	if err != nil {
		return err
	}
	taken, err := o.taken(f, set, running, slurm)
	if err != nil {
		return err
	}
	if n := len(taken.unknown); n > 0 {
		fmt.Fprintf(a.stderr, "ibweave: %s that the fabric lacks: %s\n", text.Count(n, "busy host", "busy hosts"), hostlist.Shorten(hostlist.Fold(taken.unknown)))
	}
	stage := a.startStage("place")
	defer stage.End()
	isFree := func(h *jobs.Host) bool {
		return !slices.ContainsFunc(h.Nodes, func(n fabric.NodeID) bool { return taken.busy[n] != "" || taken.allowed != nil && !taken.allowed[n] })
	}
	r, err := place.Make(ctx, f, tables, running, jobs.Hosts(f, fabric.HostKind), isFree, o.Options)
	if err != nil {
		if ctx.Err() == nil {
			err = usagef("--pattern %s: %w", o.Pattern, err)
		}
		return err
	}
	return cmp.Or(o.Print(a.stdout, r, r.Print), cli.FindingsIf(len(r.Sets) == 0))
}

// taken has the hosts that a job cannot have.
type taken struct {
	busy    map[fabric.NodeID]string
	allowed map[fabric.NodeID]bool // nil for all
	unknown []string               // busy hosts that the fabric lacks
}

// taken adds the jobs of Slurm to the running ones, and returns the hosts that are not free.
func (o *placeOptions) taken(f *fabric.Fabric, set *groups.Set, running *jobs.Traffic, slurm []byte) (t *taken, err error) {
	t = &taken{}
	if slurm != nil {
		if t.unknown, err = running.AddSlurm(o.slurm, slurm, o.Bytes); err != nil {
			return nil, err
		}
	}
	t.busy = running.Busy()
	if len(t.unknown) > 0 && len(t.busy) == 0 {
		return nil, inputf("%s: no host of its jobs is in the fabric, like %s; want names as adapters describe themselves, or a --node-name-map", o.slurm, t.unknown[0])
	}
	finder := names.NewFinder(f)
	for _, list := range o.busy {
		hosts, err := hostlist.Expand(list)
		if err != nil {
			return nil, usagef("--busy: %w", err)
		}
		for _, h := range hosts {
			nodes, err := finder.Find(h)
			if err != nil {
				t.unknown = append(t.unknown, h)
			}
			for _, n := range nodes {
				t.busy[n] = h
			}
		}
	}
	for _, name := range o.groups {
		g, err := set.Find(name)
		if err != nil {
			if err = fmt.Errorf("--host-group: %w", err); !cli.Is[*fabric.ParseError](err) { // a ParseError names the line
				err = cli.NewUsageError(err)
			}
			return nil, err
		}
		if t.allowed == nil {
			t.allowed = make(map[fabric.NodeID]bool)
		}
		for _, n := range g.Nodes {
			t.allowed[n] = true
		}
	}
	return t, nil
}
