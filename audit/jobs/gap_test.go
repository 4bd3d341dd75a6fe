package jobs_test

import (
	"context"
	"flag"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/verify"
	"github.com/ibweave/ibweave/verify/bound"
)

var mixes = flag.Int("mixes", 0, "seeds of mixes for each fabric of TestGap; 0 for two")

// TestGap has tables for mixes of jobs on larger fabrics: how much they close of the gap between tables that
// are balanced for all to all and the time of the busiest cable of a host, which no tables are below.
func TestGap(t *testing.T) {
	site := func(f *fabric.Fabric, err error) *fabric.Fabric {
		t.Helper()
		if err == nil {
			f, err = gen.Options{Names: "site", Seed: 1}.Apply(f)
		}
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	fabrics := map[string]*fabric.Fabric{
		"rails": site(gen.Tree(gen.TreeSpec{Ports: 64, Pods: []int{4}, Rails: 8, Hosts: 32, Spines: 16, Parallel: 2})),
	}
	if !testing.Short() {
		fabrics["radix 24"] = site(gen.FatTree(gen.FatTreeSpec{Radix: 24, Levels: 3}))
		// As Selene's compute fabric: 450 hosts with eight rails, which meet in core switches only.
		fabrics["like Selene"] = site(gen.Tree(gen.TreeSpec{Ports: 40, Pods: []int{7, 6, 6, 6}, Rails: 8, RailSpines: true, Hosts: 18, Spines: 10, Parallel: 2, Groups: 10, Cores: 14}))
	}
	engine, err := compile.EngineByName("updn")
	if err != nil {
		t.Fatal(err)
	}
	for name, f := range fabrics {
		plain, err := compile.Run(t.Context(), f, engine, compile.Options{})
		if err != nil {
			t.Fatal(err)
		}
		all := lft.GreatestLoad(plain.Routing.Fabric, plain.Routing.Tables)
		var closed []float64
		worst := 0.0 // load of all to all
		for seed := range uint64(max(*mixes, short.Of(2, 1))) {
			opt := compile.Options{Demand: func(ctx context.Context, f *fabric.Fabric) (*lft.Demand, error) { return demandOf(ctx, f, seed+1) }}
			r, err := compile.Run(t.Context(), f, engine, opt)
			if err != nil {
				t.Fatal(err)
			}
			g := r.Routing.Fabric
			d, err := opt.Demand(t.Context(), g)
			if err != nil {
				t.Fatal(err)
			}
			before, err := bound.TimesUnder(t.Context(), g, plain.Routing.Tables, d)
			if err != nil {
				t.Fatal(err)
			}
			after, err := bound.TimesUnder(t.Context(), g, r.Routing.Tables, d)
			if err != nil {
				t.Fatal(err)
			}
			uniform := float64(lft.GreatestLoad(g, r.Routing.Tables)) / float64(all)
			worst = max(worst, uniform)
			if r.Verify.Verdict != verify.VerdictClean || uniform > lft.DefaultUniformFloor || after.Switches > before.Switches {
				t.Errorf("%s, seed %d: verdict %s, all to all %.3f times its load, %v seconds, %v before", name, seed+1, r.Verify.Verdict, uniform, after, before)
			}
			gap := before.Switches - before.Hosts
			if gap <= 0 {
				t.Logf("%s, seed %d: %.3f seconds, %.3f of a host", name, seed+1, before.Switches, before.Hosts)
				continue
			}
			closed = append(closed, (before.Switches-max(after.Switches, after.Hosts))/gap)
			t.Logf("%s, seed %d: %.3f seconds of %.3f, %.3f of a host: %.3f of the gap; all to all %.3f", name, seed+1, after.Switches, before.Switches, before.Hosts, closed[len(closed)-1], uniform)
		}
		if len(closed) == 0 {
			continue
		}
		slices.Sort(closed)
		median := (closed[len(closed)/2] + closed[(len(closed)-1)/2]) / 2
		t.Logf("%s: %d mixes with a gap, of which tables for them close %.3f in the median, %.3f to %.3f; all to all %.3f at most", name, len(closed), median, closed[0], closed[len(closed)-1], worst)
		if median < 2./3 {
			t.Errorf("%s: %.3f of the gap in the median, want 2/3", name, median)
		}
	}
}

// demandOf is what the jobs of a mix send.
func demandOf(ctx context.Context, f *fabric.Fabric, seed uint64) (*lft.Demand, error) {
	mix, err := jobs.Mix(f, seed)
	if err != nil {
		return nil, err
	}
	file, err := jobs.Read("mix.yaml", folder{"mix.yaml": string(mix)}.open)
	if err != nil {
		return nil, err
	}
	x, err := file.In(f, nil)
	if err != nil {
		return nil, err
	}
	return x.Demand(ctx)
}
