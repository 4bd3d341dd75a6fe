package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/verify/bound"
)

// jobChanges is how many mixes of jobs change.
const jobChanges = 6

// jobs changes what jobs send in a fat tree of three levels whose tables are for a mix of jobs, and prints how long
// it takes to find the tables for the new jobs with the old ones in memory, and what changes. What jobs send is
// added up, bounded and fitted; nothing is verified.
func (b *bench) jobs(ctx context.Context, radix string) error {
	f, k, e, err := fatTree(radix, gen.Options{Names: "site", Seed: 1})
	if err != nil {
		return err
	}
	fmt.Fprintf(b.out, "\nupdn, then other jobs, radix %d: %d switches, %d LIDs\n", k, f.NumSwitches(), f.MaxLID())
	fmt.Fprintf(b.out, "%-28s %28s %8s %8s %10s %10s %10s\n", "", "ms, median (least to most)", "entries", "blocks", "load", "before", "least")
	for seed := uint64(1); seed <= jobChanges; seed++ {
		all, err := jobs.Mix(f, seed)
		if err != nil {
			return err
		}
		other, err := jobs.Mix(f, seed+jobChanges)
		if err != nil {
			return err
		}
		r, err := compile.Run(ctx, f, e, compile.Options{Demand: demandOf(string(all))})
		if err != nil {
			return err
		}
		without := dropJob(string(all))
		before, err := compile.Run(ctx, f, e, compile.Options{Demand: demandOf(without)})
		if err != nil {
			return err
		}
		for _, x := range []struct {
			what string
			from *compile.Result
			to   string
		}{{"a job ends", r, without}, {"a job starts", before, string(all)}, {"all jobs change", r, string(other)}} {
			if err := b.changeJobs(ctx, fmt.Sprintf("mix %d, %s", seed, x.what), e, x.from, demandOf(x.to)); err != nil {
				return err
			}
		}
	}
	return nil
}

// changeJobs fits tables to another demand.
func (b *bench) changeJobs(ctx context.Context, what string, e *compile.Engine, from *compile.Result, demand demandFunc) error {
	f := from.Routing.Fabric
	var took []time.Duration
	var changes compile.Changes
	var fit *lft.Fit
	for range b.runs {
		l, ok := lft.NewIncremental(e.Engine.(lft.IncrementalEngine), fabric.NewStableIndex(f), from.Routing)
		if !ok {
			return errors.New("the tables cannot be kept")
		}
		start := time.Now()
		d, err := demand(ctx, f)
		if err != nil {
			return err
		}
		opt := lft.FitOptions{Most: uint64(lft.DefaultUniformFloor * float64(max(l.MaxLoad(), l.LoadBound()))), Slack: new(lft.Options).RebalanceFactor(), Blocks: math.MaxInt}
		if least := bound.FindUnder(f, d); least != nil {
			opt.Least = least.Load
		}
		if fit, err = l.Fit(ctx, d, opt); err != nil {
			return err
		}
		took = append(took, time.Since(start))
		changes = compile.ChangesSince(from.Routing, l.Routing(nil))
	}
	more := ""
	if fit.Displaced {
		more = ", some to make room"
	}
	unit := func(load uint64) string { return fmt.Sprintf("%.3f", float64(load)/float64(fit.Least)) }
	fmt.Fprintf(b.out, "%-28s %28s %8d %8d %10s %10s %10s%s\n", what, spread(took),
		changes.Entries, changes.Blocks, unit(fit.After), unit(fit.Before), "1", more)
	return nil
}

// demandFunc is compile.Options.Demand.
type demandFunc = func(context.Context, *fabric.Fabric) (*lft.Demand, error)

// demandOf is what the jobs of a file send.
func demandOf(text string) demandFunc {
	return func(ctx context.Context, f *fabric.Fabric) (*lft.Demand, error) {
		file, err := jobs.Read("mix", func(string) ([]byte, error) { return []byte(text), nil })
		if err != nil {
			return nil, err
		}
		t, err := file.In(f, nil)
		if err != nil {
			return nil, err
		}
		return t.Demand(ctx)
	}
}

// dropJob leaves the first job out of a mix.
func dropJob(mix string) string {
	const name = "\n  - name: "
	first := strings.Index(mix, name) + 1
	second := first + strings.Index(mix[first:], name) + 1
	return mix[:first] + mix[second:]
}
