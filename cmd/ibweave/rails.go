package main

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibweave/ibweave/audit/rails"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/internal/hostlist"
	"github.com/ibweave/ibweave/internal/text"
)

type railsOptions struct {
	audit
	cli.OutputForm
	cli.Threshold
	engine  string // "" to read tables, if any
	pattern hostPattern
	hosts   string // "" for no list of ports
}

func (a *app) railsCommand() *cobra.Command {
	var o railsOptions
	cmd := &cobra.Command{
		Use:   "rails [DIR | -t TOPOLOGY [--lfts FILE | -e ENGINE]]",
		Short: "which port is on which rail, and what is swapped or missing",
		Args:  a.maxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.rails(cmd.Context(), &o, args)
		},
	}
	flags := cmd.Flags()
	o.audit.routedFlags(flags, &o.engine)
	o.pattern.define(flags)
	flags.StringVar(&o.hosts, "host", "", "list the ports of `HOSTS`, a name or a list with numbers in brackets")
	o.OutputForm.Define(flags, "output")
	o.Threshold.Define(flags, "")
	a.fabricFlags(cmd)
	cli.Scopes(cmd.Flags(), cli.Scope{Flags: "host", Not: "format=json", Why: cli.Unsaid, Note: true})
	return cmd
}

func (a *app) rails(ctx context.Context, o *railsOptions, args []string) error {
	pattern, err := o.pattern.parse()
	if err != nil {
		return err
	}
	f, tables, err := a.readOrRoute(ctx, "rails", &o.audit, o.engine, args)
	if err != nil {
		return err
	}
	stage := a.startStage("find rails")
	defer stage.End()
	d := &rails.Document{}
	d.Result, err = rails.Find(f, pattern)
	if err != nil {
		return inputf("%s: %w; want descriptions like \"n001 mlx5_0\", a --host-regexp, or a --node-name-map", o.Topology, err)
	}
	wanted, err := o.listed(d.Result)
	if err != nil {
		return err
	}
	if tables != nil {
		if d.Loads, err = d.Load(ctx, tables); err != nil {
			return err
		}
	}
	d.Verdict = d.Worst().Verdict()
	return cmp.Or(o.Print(a.stdout, d, func(b *text.Sheet) { d.Print(b, wanted) }), o.CheckWorst(d.Worst()))
}

// listed lists the hosts that --host names, in its order.
func (o *railsOptions) listed(r *rails.Result) (list []*rails.Host, err error) {
	if o.hosts == "" {
		return nil, nil
	}
	wanted, err := hostlist.Expand(o.hosts)
	if err != nil {
		return nil, usagef("--host: %w", err)
	}
	for _, name := range wanted {
		i := slices.IndexFunc(r.Hosts, func(h rails.Host) bool { return strings.EqualFold(h.Host, name) })
		if i < 0 {
			return nil, usagef("--host: no host on rails is called %q; the first is %q", name, r.Hosts[0].Host)
		}
		list = append(list, &r.Hosts[i])
	}
	return list, nil
}
