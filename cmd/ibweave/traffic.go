package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/internal/text"
)

type trafficOptions struct {
	audit
	cli.OutputForm
	engine  string // "" for tables that are read, or none
	traffic string
	radix   int // of --sharp; 0 for none
	top     int
}

func (a *app) trafficCommand() *cobra.Command {
	var o trafficOptions
	cmd := &cobra.Command{
		Use:   "traffic [DIR | -t TOPOLOGY [--lfts FILE | -e ENGINE]] --traffic FILE",
		Short: "what jobs send, which cables they share, which job slows another",
		Args:  a.maxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.traffic == "" {
				return usagef("traffic needs the file of jobs, --traffic FILE")
			}
			return a.traffic(cmd.Context(), &o, args)
		},
	}
	flags := cmd.Flags()
	o.audit.routedFlags(flags, &o.engine)
	flags.StringVar(&o.traffic, "traffic", "", "YAML `FILE` of jobs and what they send (docs/traffic.md)")
	cli.NumberFlag(flags, &o.radix, "sharp", 2, jobs.MostRadix,
		"place a tree of switches for the all-reduces of each job, as SHARP does, with `N` children of a switch at most, and list trees that meet")
	cli.DefaultNumberFlag(flags, &o.top, "top", 10, 0, cli.MaxNumber, "list the `N` busiest cables and pairs of jobs")
	o.OutputForm.Define(flags, "output")
	a.fabricFlags(cmd)
	a.hostGroupFlag(cmd)
	return cmd
}

func (a *app) traffic(ctx context.Context, o *trafficOptions, args []string) error {
	if err := cli.OneStdin(o.Topology, o.LFTs, o.traffic); err != nil {
		return err
	}
	file, err := jobs.Read(o.traffic, a.readInput)
	if err != nil {
		return err
	}
	f, tables, err := a.readOrRoute(ctx, "traffic", &o.audit, o.engine, args)
	if err != nil {
		return err
	}
	t, _, err := a.jobsIn(file, f)
	if err != nil {
		return err
	}
	stage := a.startStage("measure traffic")
	defer stage.End()
	r, err := t.Judge(ctx, tables, o.top)
	if err != nil {
		return inputUnlessDone(ctx, fmt.Errorf("%s: %w", o.traffic, err))
	}
	if o.radix > 0 && tables == nil {
		return wrong("sharp", "follows routes, and there are none: want a directory, --lfts FILE or -e ENGINE")
	} else if o.radix > 0 {
		if r.Trees, r.Meetings = t.Aggregate(tables, o.radix); len(r.Trees) == 0 {
			return wrong("sharp", "follows all-reduces, and no job has one of several hosts")
		}
	}
	return o.Print(a.stdout, r, func(b *text.Sheet) { r.Print(b, o.top) })
}
