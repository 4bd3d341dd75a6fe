package jobs_test

import (
	"context"
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/audit/jobs"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/sim"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
	"github.com/ibweave/ibweave/verify/bound"
)

var (
	mixes   = flag.Int("mixes", 0, "seeds of mixes for each fabric of TestGap and TestTimes; 0 for two and one")
	first   = flag.Uint64("first", 1, "the first of these seeds")
	fast    = flag.Bool("fast", false, "TestTimes also has cables between switches that never limit")
	fabrics = flag.String("fabrics", "rails", "fabrics of TestTimes, with commas: rails, radix 24, like Selene")
)

// gapFabrics have names of sites, so that hosts with several adapters are one host each.
var gapFabrics = map[string]func() (*fabric.Fabric, error){
	"rails": func() (*fabric.Fabric, error) {
		return gen.Tree(gen.TreeSpec{Ports: 64, Pods: []int{4}, Rails: short.Of(8, 4), Hosts: 32, Spines: 16, Parallel: 2})
	},
	"radix 24": func() (*fabric.Fabric, error) { return gen.FatTree(gen.FatTreeSpec{Radix: 24, Levels: 3}) },
	// As Selene's compute fabric: 450 hosts with eight rails, which meet in core switches only.
	"like Selene": func() (*fabric.Fabric, error) {
		return gen.Tree(gen.TreeSpec{Ports: 40, Pods: []int{7, 6, 6, 6}, Rails: 8, RailSpines: true, Hosts: 18, Spines: 10, Parallel: 2, Groups: 10, Cores: 14})
	},
}

// gapFabric makes one of gapFabrics, and its tables without jobs.
func gapFabric(t testing.TB, name string) *compile.Result {
	t.Helper()
	if gapFabrics[name] == nil {
		t.Fatalf("no fabric %q", name)
	}
	f := short.Must(gapFabrics[name]())(t)
	f = short.Must(gen.Options{Names: "site", Seed: 1}.Apply(f))(t)
	engine := short.Must(compile.EngineByName("updn"))(t)
	return short.Must(compile.Run(t.Context(), f, engine, compile.Options{}))(t)
}

// fitMix makes the tables for a mix, and finds the time of the busiest cable with those and without them.
func fitMix(t *testing.T, plain *compile.Result, seed uint64) (r *compile.Result, before, after bound.Times) {
	t.Helper()
	opt := compile.Options{Demand: func(ctx context.Context, f *fabric.Fabric) (*lft.Demand, error) {
		return readMix(t, f, seed).Demand(ctx)
	}}
	r = short.Must(compile.Run(t.Context(), plain.Routing.Fabric, plain.Engine, opt))(t)
	g := r.Routing.Fabric
	d := short.Must(opt.Demand(t.Context(), g))(t)
	for _, x := range []struct {
		to     *bound.Times
		tables *lft.Tables
	}{{&before, plain.Routing.Tables}, {&after, r.Routing.Tables}} {
		*x.to = short.Must(bound.TimesUnder(t.Context(), g, x.tables, d))(t)
	}
	return r, before, after
}

// readMix is the jobs of a mix in a fabric.
func readMix(t *testing.T, f *fabric.Fabric, seed uint64) *jobs.Traffic {
	t.Helper()
	mix := short.Must(drawMix(f, seed))(t)
	file := short.Must(jobs.Read("mix.yaml", folder{"mix.yaml": string(mix)}.open))(t)
	return short.Must(file.In(f, nil))(t)
}

// median of numbers, which it sorts.
func median(list []float64) float64 {
	slices.Sort(list)
	return (list[len(list)/2] + list[(len(list)-1)/2]) / 2
}

// BenchmarkChanges finds tables for other jobs, with those for a mix of jobs in memory, at radix 24: a job ends, one
// starts, or all jobs change. What jobs send is added up, bounded and fitted; nothing is verified. Loads are for the
// least that any tables have.
func BenchmarkChanges(b *testing.B) {
	const changes = 6
	plain := gapFabric(b, "radix 24")
	draw := func(seed uint64) string {
		mix := short.Must(drawMix(plain.Routing.Fabric, seed))(b)
		return string(mix)
	}
	demandOf := func(mix string) func(context.Context, *fabric.Fabric) (*lft.Demand, error) {
		return func(ctx context.Context, f *fabric.Fabric) (*lft.Demand, error) {
			file, err := jobs.Read("mix.yaml", folder{"mix.yaml": mix}.open)
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
	for seed := uint64(1); seed <= changes; seed++ {
		all, other := draw(seed), draw(seed+changes)
		const name = "\n  - name: "
		one := strings.Index(all, name) + 1
		without := all[:one] + all[one+strings.Index(all[one:], name)+1:]
		for _, x := range []struct{ what, from, to string }{{"ends", all, without}, {"starts", without, all}, {"all", all, other}} {
			b.Run(fmt.Sprintf("mix%d/%s", seed, x.what), func(b *testing.B) {
				from := short.Must(compile.Run(b.Context(), plain.Routing.Fabric, plain.Engine, compile.Options{Demand: demandOf(x.from)}))(b)
				f := from.Routing.Fabric
				var changed compile.Changes
				var fit *lft.Fit
				for b.Loop() {
					b.StopTimer()
					l, ok := lft.NewIncremental(plain.Engine.Engine.(lft.IncrementalEngine), fabric.NewStableIndex(f), from.Routing)
					if !ok {
						b.Fatal("the tables cannot be kept")
					}
					b.StartTimer()
					d := short.Must(demandOf(x.to)(b.Context(), f))(b)
					opt := lft.FitOptions{Most: uint64(lft.DefaultUniformFloor * float64(max(l.MaxLoad(), l.LoadBound()))), Slack: new(lft.Options).RebalanceFactor(), Blocks: math.MaxInt}
					if least := bound.FindUnder(f, d); least != nil {
						opt.Least = least.Load
					}
					fit = short.Must(l.Fit(b.Context(), d, opt))(b)
					b.StopTimer()
					changed = compile.ChangesSince(from.Routing, l.Routing())
					b.StartTimer()
				}
				b.ReportMetric(float64(changed.Entries), "entries")
				b.ReportMetric(float64(changed.Blocks), "blocks")
				b.ReportMetric(float64(fit.After)/float64(fit.Least), "load")
				b.ReportMetric(float64(fit.Before)/float64(fit.Least), "load-before")
			})
		}
	}
}

// TestGap has tables for mixes of jobs on larger fabrics: how much they close of the gap between tables that
// are balanced for all to all and the time of the busiest cable of a host, which no tables are below.
func TestGap(t *testing.T) {
	for _, name := range short.Of([]string{"rails", "radix 24", "like Selene"}, []string{"rails"}) {
		plain := gapFabric(t, name)
		all := lft.GreatestLoad(plain.Routing.Fabric, plain.Routing.Tables)
		var closed []float64
		worst := 0.0 // load of all to all
		for i := range uint64(max(*mixes, short.Of(2, 1))) {
			seed := *first + i
			r, before, after := fitMix(t, plain, seed)
			uniform := float64(lft.GreatestLoad(r.Routing.Fabric, r.Routing.Tables)) / float64(all)
			worst = max(worst, uniform)
			if r.Verify.Verdict != verify.VerdictClean || uniform > lft.DefaultUniformFloor || after.Switches > before.Switches {
				t.Errorf("%s, seed %d: verdict %s, all to all %.3f times its load, %v seconds, %v before", name, seed, r.Verify.Verdict, uniform, after, before)
			}
			gap := before.Switches - before.Hosts
			if gap <= 0 {
				t.Logf("%s, seed %d: %.3f seconds, %.3f of a host", name, seed, before.Switches, before.Hosts)
				continue
			}
			closed = append(closed, (before.Switches-max(after.Switches, after.Hosts))/gap)
			t.Logf("%s, seed %d: %.3f seconds of %.3f, %.3f of a host: %.3f of the gap; all to all %.3f", name, seed, after.Switches, before.Switches, before.Hosts, closed[len(closed)-1], uniform)
		}
		if len(closed) == 0 {
			continue
		}
		middle := median(closed)
		t.Logf("%s: %d mixes with a gap, of which tables for them close %.3f in the median, %.3f to %.3f; all to all %.3f at most", name, len(closed), middle, closed[0], closed[len(closed)-1], worst)
		if middle < 2./3 {
			t.Errorf("%s: %.3f of the gap in the median, want 2/3", name, middle)
		}
	}
}

// timesScale is the part of the bytes of mixes that TestTimes simulates. With 1/16384 latency outweighs the gap.
func timesScale() float64 { return short.Of(1./1024, 1./4096) }

// TestTimes simulates mixes of jobs that have a gap, with tables for all to all and with those for the jobs: how much
// sooner jobs are done. With -fast it also has all cables between switches so fast that those of hosts alone
// limit, and says how much of what cables between switches cost is gone.
func TestTimes(t *testing.T) {
	for name := range strings.SplitSeq(*fabrics, ",") {
		plain := gapFabric(t, name)
		var loads, ends, means, gone []float64
		for i := range uint64(max(*mixes, 1)) {
			seed := *first + i
			r, before, after := fitMix(t, plain, seed)
			if before.Switches <= before.Hosts {
				continue
			}
			g := r.Routing.Fabric
			uniform, fitted := runMix(t, g, plain.Routing.Tables, seed), runMix(t, g, r.Routing.Tables, seed)
			logs, jobs := 0.0, 0
			for k, was := range uniform.Jobs {
				if was.At > 0 {
					logs, jobs = logs+math.Log(float64(fitted.Jobs[k].At)/float64(was.At)), jobs+1
				}
			}
			ends, means = append(ends, float64(fitted.Time)/float64(uniform.Time)), append(means, math.Exp(logs/float64(jobs)))
			loads = append(loads, max(after.Switches, after.Hosts)/before.Switches)
			t.Logf("%s, seed %d: %.3f of the load; the last job is done after %.3f of its time, a job after %.3f in the mean; limits %s, %s before",
				name, seed, loads[len(loads)-1], ends[len(ends)-1], means[len(means)-1], fitted.Limits.Limit, uniform.Limits.Limit)
			if !*fast {
				continue
			}
			least := float64(runMix(t, fastInside(g), plain.Routing.Tables, seed).Time) / float64(uniform.Time)
			t.Logf("%s, seed %d: after %.3f with fast cables", name, seed, least)
			if least < 0.98 {
				gone = append(gone, (1-ends[len(ends)-1])/(1-least))
			}
		}
		if len(ends) == 0 {
			continue
		}
		load, end, mean := median(loads), median(ends), median(means)
		t.Logf("%s: %d mixes with a gap: %.3f of the load in the median, %.3f to %.3f; the last job is done after %.3f of its time in the median, %.3f to %.3f; a job after %.3f in the mean, %.3f to %.3f", name, len(ends), load, loads[0], loads[len(loads)-1], end, ends[0], ends[len(ends)-1], mean, means[0], means[len(means)-1])
		if len(gone) > 0 {
			t.Logf("%s: in %d mixes cables between switches cost 2 %% or more, of which %.3f are gone in the median", name, len(gone), median(gone))
		}
		if end > 1 || mean > 1 {
			t.Errorf("%s: the last job is done after %.3f of its time, a job after %.3f in the mean: want less", name, end, mean)
		}
	}
}

// runMix simulates a mix.
func runMix(t *testing.T, f *fabric.Fabric, tables *lft.Tables, seed uint64) *sim.JobsDone {
	t.Helper()
	cfg := sim.Defaults()
	works, _, background, err := readMix(t, f, seed).Works(jobs.WorkOptions{Scale: timesScale(), MTU: cfg.MTU})
	short.Check(t, err)
	all := sim.Jobs{Background: background, Seed: 1}
	for _, w := range works {
		var job sim.Job
		for _, p := range w.Parts {
			job.Parts = append(job.Parts, sim.Part{Program: p.Program, Ports: p.Ports, Hosts: p.Hosts})
		}
		all.Jobs = append(all.Jobs, job)
	}
	return short.Must(sim.RunJobs(t.Context(), sim.Network{State: state.State{Fabric: f, Tables: tables}}, cfg, all, 0))(t)
}

// fastInside has cables of 2.4 Tb/s between switches.
func fastInside(f *fabric.Fabric) *fabric.Fabric {
	links := make(map[fabric.PortID]fabric.Link)
	for p := range fabric.PortID(f.NumPorts()) {
		if peer := f.Peer(p); peer != fabric.NoPort && f.IsSwitch(f.Owner(p)) && f.IsSwitch(f.Owner(peer)) {
			links[p] = fabric.Link{Width: 12, Speed: fabric.XDR}
		}
	}
	return f.WithLinks(links)
}
