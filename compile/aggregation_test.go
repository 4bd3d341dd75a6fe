package compile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// aggregationPorts lists the ports of aggregation nodes.
func aggregationPorts(f *fabric.Fabric) (list []fabric.PortID) {
	for _, p := range f.CAPorts() {
		if f.Kind(f.Owner(p)) == fabric.AggregationKind {
			list = append(list, p)
		}
	}
	return list
}

// TestAggregationCostsNothing: with aggregation nodes each engine uses as many lanes as
// without, loads the cables as much, and has as many paths that are not shortest ones. They
// are reached all the same, and close no credit loop.
func TestAggregationCostsNothing(t *testing.T) {
	tried := 0
	kinds := kinds(t)
	for _, name := range short.Keys(kinds, "torus 5x4, aggregation nodes", "fattree 2 levels, aggregation nodes", "banyan, aggregation nodes") {
		if !strings.HasSuffix(name, ", aggregation nodes") {
			continue
		}
		f := short.Must(lft.AssignLIDs(kinds[name], lft.LIDOptions{}))(t)
		for i := range compile.Engines {
			e := &compile.Engines[i]
			if !inDomain(e, name) {
				continue
			}
			t.Run(fmt.Sprint(name, " ", e.Name()), func(t *testing.T) {
				tried++
				with := short.Must(compile.Run(t.Context(), f, e, compile.Options{}))(t)
				without := short.Must(compile.Run(t.Context(), f.Without(aggregationPorts(f)...), e, compile.Options{}))(t)
				a, b := with.Verify, without.Verify
				if a.Unicast.Unreachable+a.Unicast.Loops > b.Unicast.Unreachable || a.CreditLoops.Count > 0 && e.Guarantee().Has(lft.NoCreditLoop) {
					t.Errorf("%+v, %d credit loops; without aggregation nodes %+v", a.Unicast, a.CreditLoops.Count, b.Unicast)
				}
				if a.Unicast.Pairs <= b.Unicast.Pairs {
					t.Errorf("%d pairs, %d without aggregation nodes", a.Unicast.Pairs, b.Unicast.Pairs)
				}
				most := b.Balance.MaxRoutes
				if e.Name() == "layered" { // whose effort depends on the LIDs
					most += most / 10
				}
				if a.CreditLoops.VLs > b.CreditLoops.VLs || a.Balance.MaxRoutes > most || a.Unicast.NonMinimal != b.Unicast.NonMinimal {
					t.Errorf("%d VLs, %d routes on the busiest cable, %d longer; without aggregation nodes %d, %d, %d",
						a.CreditLoops.VLs, a.Balance.MaxRoutes, a.Unicast.NonMinimal, b.CreditLoops.VLs, b.Balance.MaxRoutes, b.Unicast.NonMinimal)
				}
			})
		}
	}
	if tried < short.Of(20, 10) {
		t.Errorf("%d trials", tried)
	}
}

// TestBrokenAggregation breaks the paths to aggregation nodes: an entry that is missing, a
// loop, a credit loop. The checker finds each.
func TestBrokenAggregation(t *testing.T) {
	f := short.Must(lft.AssignLIDs(kinds(t)["torus 5x4, aggregation nodes"], lft.LIDOptions{}))(t)
	e := short.Must(compile.EngineByName("updn"))(t)
	r := route(t, e, f)
	nodes := aggregationPorts(f)
	check := func(spoil func(*lft.Tables)) *verify.Result {
		tables := r.Tables.Clone()
		spoil(tables)
		return short.Must(verify.Check(t.Context(), &state.State{Fabric: f, Tables: tables}, verify.Options{Complete: true}))(t)
	}
	has := func(res *verify.Result, rule string) bool {
		return slices.ContainsFunc(res.Findings, func(x verify.Finding) bool { return x.Rule == rule && x.Severity == verify.Error })
	}
	if res := check(func(*lft.Tables) {}); res.Worst() > verify.Note {
		t.Fatalf("%s: %+v", res.Verdict, res.Findings)
	}
	lid, home := f.LID(nodes[0]), f.PeerSwitch(nodes[0])
	_, to := f.SwitchLinks(home)
	near := to[0]
	if !has(check(func(tables *lft.Tables) { tables.Row(near)[lid] = fabric.NoPath }), verify.UnicastUnreachable) {
		t.Error("a missing entry is not found")
	}
	if !has(check(func(tables *lft.Tables) {
		ports, to := f.SwitchLinks(near)
		for i, p := range ports {
			if to[i] == home {
				continue
			}
			tables.Row(near)[lid] = f.Num(p)
			tables.Row(to[i])[lid] = f.Num(f.Peer(p))
			return
		}
	}), verify.UnicastLoop) {
		t.Error("a loop is not found")
	}
	// Shortest paths on a torus have credit loops: those of the aggregation nodes alone.
	shortest := route(t, lft.Minhop{}, f)
	res := check(func(tables *lft.Tables) {
		for s := range fabric.NodeID(f.NumSwitches()) {
			for _, p := range nodes {
				tables.Row(s)[f.LID(p)] = shortest.Tables.Row(s)[f.LID(p)]
			}
		}
	})
	if !has(res, verify.CreditLoop) || res.Unicast.Unreachable+res.Unicast.Loops > 0 {
		t.Errorf("a credit loop is not found: %+v", res.Findings)
	}
}
