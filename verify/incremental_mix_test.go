package verify_test

import (
	"testing"

	"github.com/ibweave/ibweave/audit/diff"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/updown"
	"github.com/ibweave/ibweave/verify"
)

// TestMayMix changes from one order of the switches to another: what may mix has no loop on the way,
// and leaves the checker as it was.
func TestMayMix(t *testing.T) {
	var yes, no int
	for seed := range uint64(12) {
		f := short.Must(gen.Irregular(gen.IrregularSpec{Switches: 8, Degree: 3, Hosts: 10, Seed: seed}))(t)
		f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{}))(t)
		route := func(root fabric.NodeID) *lft.Tables {
			r := short.Must(updown.Engine{}.Route(t.Context(), f, lft.Options{Roots: []fabric.NodeID{root}}))(t)
			return r.Tables
		}
		check := func(tables *lft.Tables) *verify.Result {
			return short.Must(verify.Check(t.Context(), &state.State{Fabric: f, Tables: tables}, verify.Options{Complete: true}))(t)
		}
		a := route(0)
		now, _ := fabric.NewStableIndex(f).Snapshot(f)
		for root := range fabric.NodeID(f.NumSwitches()) {
			b := route(root)
			if root > 3 { // one entry that is not that of the other order
				b = a.Clone()
				b.Row(root)[1] = route(root).Row(root)[1]
			}
			var w verify.IncrementalChecker
			w.Start(now, a, check(a))
			may := w.MayMix(b)
			d := short.Must(diff.Compare(t.Context(), &state.State{Fabric: f, Tables: a}, &state.State{Fabric: f, Tables: b}))(t)
			x := d.Transition
			bad := x.Loops+x.OldLoops+x.NewLoops > 0 || x.CreditLoops.Count+x.CreditLoops.Management > 0
			if may {
				yes++
			} else {
				no++
			}
			if may == bad {
				t.Errorf("seed %d, root %d: may mix %v, loops %d, credit loops %+v", seed, root, may, x.Loops, x.CreditLoops)
			}
			if r, byChange, err := w.Check(t.Context(), now, &state.State{Fabric: now.Fabric, Tables: a}, verify.Options{Complete: true}); err != nil || !byChange {
				t.Errorf("%v, %v", byChange, err)
			} else {
				sameResult(t, r, check(a), byChange)
			}
		}
	}
	if yes == 0 || no == 0 {
		t.Errorf("%d may mix, %d may not", yes, no)
	}
}
