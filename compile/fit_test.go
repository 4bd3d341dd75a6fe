package compile_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/verify"
	"github.com/ibweave/ibweave/verify/bound"
)

// ringDemand has some hosts send to the next one, and all a little to all.
func ringDemand(f *fabric.Fabric, seed uint64) *lft.Demand {
	random := rand.New(rand.NewPCG(seed, 0))
	d := &lft.Demand{To: make([][]lft.Flow, int(f.MaxLID())+1), Background: 1, Bytes: 1}
	ends := f.CAPorts()
	order := random.Perm(len(ends))
	for i, k := range order[:len(order)*3/4] {
		from, to := f.PeerSwitch(ends[k]), ends[order[i+1]]
		if from == f.PeerSwitch(to) {
			continue
		}
		for lid := range f.LIDs(to) {
			d.To[lid] = []lft.Flow{{From: from, Amount: 50 + int64(random.IntN(100))}}
		}
	}
	return d
}

// TestFit fits the tables of each engine to demands: the check finds what it finds without, no load under the
// demand is greater, and none of all to all above the floor. Tables that are kept change less.
func TestFit(t *testing.T) {
	f := short.Must(gen.Tree(gen.TreeSpec{Ports: 24, Pods: []int{6}, Hosts: 8, Spines: 4, Parallel: 2}))(t)
	f = short.Must(gen.DropLinks(f, 2, 1))(t)
	fitted, better := 0, 0
	for i := range compile.Engines {
		e := &compile.Engines[i]
		var opt compile.Options
		plain, err := compile.Run(t.Context(), f, e, opt)
		if err != nil {
			continue // conformance tests have the fabrics of each engine
		}
		for seed := range uint64(3) {
			opt.Demand = func(_ context.Context, f *fabric.Fabric) (*lft.Demand, error) { return ringDemand(f, seed), nil }
			r := short.Must(compile.Run(t.Context(), f, e, opt))(t)
			g, d := r.Routing.Fabric, ringDemand(r.Routing.Fabric, seed)
			before := short.Must(bound.TimesUnder(t.Context(), g, plain.Routing.Tables, d))(t)
			after := short.Must(bound.TimesUnder(t.Context(), g, r.Routing.Tables, d))(t)
			if r.Fit.Why != "" {
				if n := compile.ChangesSince(plain.Routing, r.Routing).Entries; n > 0 || !verdictsMatch(plain.Verify, r.Verify) {
					t.Errorf("%s is not fitted, %s, and %d entries change", e.Name(), r.Fit.Why, n)
				}
				continue
			}
			fitted++
			if after.Switches < before.Switches {
				better++
			}
			most := uint64(lft.DefaultUniformFloor * float64(lft.GreatestLoad(g, plain.Routing.Tables)))
			if !verdictsMatch(plain.Verify, r.Verify) || after.Switches > before.Switches || lft.GreatestLoad(g, r.Routing.Tables) > most {
				t.Errorf("%s, seed %d: verdict %s, was %s; time %v, was %v; load %d, at most %d", e.Name(), seed, r.Verify.Verdict, plain.Verify.Verdict,
					after.Switches, before.Switches, lft.GreatestLoad(g, r.Routing.Tables), most)
			}
			again := opt
			again.Route.Previous = r.Routing
			again.LIDs.Policy = lft.KeepLIDs
			kept, err := compile.Run(t.Context(), g, e, again)
			if err != nil || !kept.Routing.Kept || compile.ChangesSince(r.Routing, kept.Routing).Entries > 0 && kept.Fit.After >= r.Fit.After {
				t.Errorf("%s, seed %d: %v, the same demand again changes %d entries", e.Name(), seed, err, compile.ChangesSince(r.Routing, kept.Routing).Entries)
			}
			again.Demand = func(_ context.Context, f *fabric.Fabric) (*lft.Demand, error) { return ringDemand(f, seed+9), nil }
			moved, err := compile.Run(t.Context(), g, e, again)
			if err != nil || !moved.Routing.Kept || !verdictsMatch(plain.Verify, moved.Verify) || moved.Fit.After > moved.Fit.Before || lft.GreatestLoad(g, moved.Routing.Tables) > most {
				t.Errorf("%s, seed %d: %v, another demand: %+v", e.Name(), seed, err, moved.Fit)
			}
		}
	}
	if better < fitted/2 || fitted == 0 {
		t.Errorf("%d of %d are better for it", better, fitted)
	}
}

func verdictsMatch(a, b *verify.Result) bool {
	return a.Worst() == b.Worst() && a.CreditLoops.Count == b.CreditLoops.Count && a.Unicast.Pairs == b.Unicast.Pairs && a.Unicast.Unreachable == b.Unicast.Unreachable &&
		a.Management.CreditLoops == b.Management.CreditLoops
}

// TestFitSettles: tables that are fitted stay when neither fabric nor demand changes, for compile --previous and
// for the plugin, also where all loads above the least one are to go (a rebalance of 1).
func TestFitSettles(t *testing.T) {
	f := short.Must(gen.Tree(gen.TreeSpec{Ports: 24, Pods: []int{6}, Hosts: 8, Spines: 4, Parallel: 2}))(t)
	f = short.Must(gen.DropLinks(f, 2, 1))(t)
	e := engine(t, "updn")
	for lmc := range 2 {
		for _, rebalance := range []float64{0, 1} {
			for seed := range uint64(short.Of(6, 2)) {
				opt := compile.Options{
					LIDs:   lft.LIDOptions{LMC: lmc},
					Demand: func(_ context.Context, f *fabric.Fabric) (*lft.Demand, error) { return ringDemand(f, seed), nil },
				}
				var c compile.Incremental
				first, _ := short.Must2(c.Run(t.Context(), f, e, opt))(t)
				c.Wait()
				opt.Route.Rebalance = rebalance
				steps := 0
				for last := uint64(math.MaxUint64); steps < 20; steps++ {
					r, _ := c.Rebalance(t.Context(), opt)
					if r == nil {
						break
					}
					d := short.Must(bound.TimesUnder(t.Context(), r.Routing.Fabric, r.Routing.Tables, ringDemand(r.Routing.Fabric, seed)))(t)
					now := uint64(1e12 * d.Switches)
					if now >= last {
						t.Errorf("LMC %d, rebalance %g, seed %d: step %d gains nothing", lmc, rebalance, seed, steps)
					}
					last = now
				}
				opt.LIDs = lft.LIDOptions{LMC: lft.KeepLMC, Policy: lft.KeepLIDs}
				runs, last := 0, first
				for ; runs < 3; runs++ {
					opt.Route.Previous = last.Routing
					kept := short.Must(compile.Run(t.Context(), last.Routing.Fabric, e, opt))(t)
					if compile.ChangesSince(last.Routing, kept.Routing).Entries == 0 {
						break
					}
					last = kept
				}
				if steps == 20 || runs == 3 || runs > 0 && rebalance == 0 && last.Fit.After >= first.Fit.After {
					t.Errorf("LMC %d, rebalance %g, seed %d: %d steps; the same demand changes entries in %d further runs", lmc, rebalance, seed, steps, runs)
				}
			}
		}
	}
}

// TestFitNothing: without a byte between hosts tables are those without a demand.
func TestFitNothing(t *testing.T) {
	f := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 3}))(t)
	for _, demand := range []*lft.Demand{nil, {}} {
		var tables [2][]byte
		for i := range tables {
			var opt compile.Options
			if i == 1 {
				opt.Demand = func(context.Context, *fabric.Fabric) (*lft.Demand, error) { return demand, nil }
			}
			e := short.Must(compile.EngineByName("updn"))(t)
			r := short.Must(compile.Run(t.Context(), f, e, opt))(t)
			for s := range fabric.NodeID(r.Routing.Fabric.NumSwitches()) {
				for _, num := range r.Routing.Tables.Row(s) {
					tables[i] = append(tables[i], byte(num))
				}
			}
		}
		short.EqualList(t, tables[0], tables[1], "other tables")
	}
}
