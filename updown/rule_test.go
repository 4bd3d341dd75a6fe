package updown

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
	"github.com/ibweave/ibweave/verify/bound"
)

// TestOneRule: by any order tables are safe, the checker's bounds are about them, and incremental
// routing keeps every entry.
func TestOneRule(t *testing.T) {
	mixed := 0
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		rnd := rand.New(rand.NewPCG(seed, 1))
		n := 2 * rapid.IntRange(2, 8).Draw(rt, "switches")
		f, err := gen.Irregular(gen.IrregularSpec{Switches: n, Degree: min(n-1, 3+rnd.IntN(2)), Hosts: 2 * n, Seed: seed})
		f = routable(t, f, err)
		_, parts := graph.Components(n, f.Neighbors)
		o := NewOrder(f, []fabric.NodeID{fabric.NodeID(rnd.IntN(n))})
		for range rapid.IntRange(0, 3*n).Draw(rt, "moves") {
			if m := o.move(fabric.NodeID(rnd.IntN(n)), int32(rnd.IntN(n))); m != nil && m.connects(f, parts) {
				o = m
			}
		}
		d := newDirections(f, o)
		tree := newTree(d)
		for s := range fabric.NodeID(n) {
			if tree.growTo(s); tree.mixed {
				mixed++
			}
		}
		r := short.Must(d.route(t.Context(), "updn", f, d.nextHops(Engine{})))(rt)
		v, err := verify.Check(t.Context(), &state.State{Fabric: f, Tables: r.Tables}, verify.Options{})
		if err != nil || v.Verdict == verify.VerdictErrors || v.Unicast.Unreachable > 0 {
			rt.Fatalf("order %v: %v, %v", o.Switch, v.Findings, err)
		}
		if !bound.Keeps(f, r.Tables, o.Rank) {
			rt.Fatalf("order %v: the tables do not keep to the legal ports", o.Switch)
		}
		x := fabric.NewStableIndex(f)
		kept, ok := lft.NewIncremental(Engine{}, x, r)
		if !ok {
			rt.Fatalf("order %v: the tables cannot be updated", o.Switch)
		}
		if now, _ := x.Snapshot(f); !kept.Update(now, 0) || kept.LIDs() > 0 {
			rt.Fatalf("order %v: entries for %d LIDs do not stay", o.Switch, kept.LIDs())
		}
	})
	if mixed == 0 {
		t.Error("no switch was ever as near by going up as by going down")
	}
}
