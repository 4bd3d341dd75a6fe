package main

import (
	"context"
	"fmt"

	"github.com/ibweave/ibweave/audit/groups"
	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state/open"
)

// isFitted returns true if tables are made for the jobs; if not, it prints the reason on
// standard error.
func (a *app) isFitted(r *compile.Result, name string) bool {
	why := "the jobs send nothing between hosts"
	if r.Fit != nil {
		why = r.Fit.Why
	}
	if why != "" {
		fmt.Fprintf(a.stderr, "ibweave: left out %s: %s\n", name, why)
	}
	return why == ""
}

// fitting returns what makes tables for the jobs of a file; nil for no file.
func (a *app) fitting(file *jobs.File) *jobs.Fitting {
	if file == nil {
		return nil
	}
	return &jobs.Fitting{
		File:   file,
		Groups: func(f *fabric.Fabric) (*groups.Set, error) { return a.groupsOf(f, false) },
		Silent: func() { fmt.Fprintf(a.stderr, "ibweave: %s: the jobs send nothing between hosts\n", file.Name()) },
	}
}

// demandFunc is compile.Options.Demand.
type demandFunc = func(context.Context, *fabric.Fabric) (*lft.Demand, error)

// demandOf returns a function that finds the demand of jobs, whose errors are wrong input.
func demandOf(x *jobs.Fitting) demandFunc {
	return func(ctx context.Context, f *fabric.Fabric) (*lft.Demand, error) {
		d, err := x.Find(ctx, f)
		if err != nil && ctx.Err() == nil && !cli.Is[*fabric.ParseError](err) {
			err = open.NewError(err)
		}
		return d, err
	}
}

// readJobFile reads a file of jobs; it returns nil for the name "".
func (a *app) readJobFile(name string) (*jobs.File, error) {
	if name == "" {
		return nil, nil
	}
	return jobs.Read(name, a.readInput)
}

// jobsIn finds the jobs of a file, none for nil, and the groups of --host-groups in a fabric.
func (a *app) jobsIn(file *jobs.File, f *fabric.Fabric) (*jobs.Traffic, *groups.Set, error) {
	set, err := a.groupsOf(f, true)
	if err != nil {
		return nil, nil, err
	}
	t := jobs.New(f)
	if file != nil {
		t, err = file.In(f, set)
	}
	return t, set, err
}
