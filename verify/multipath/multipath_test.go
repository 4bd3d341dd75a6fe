package multipath_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/verify"
	"github.com/ibweave/ibweave/verify/multipath"
)

// TestAnyTables compares Check with a checker that follows every choice.
func TestAnyTables(t *testing.T) {
	trials := short.Of(1000, 200)
	kinds := map[string]int{}
	for seed := range trials {
		r := rand.New(rand.NewPCG(uint64(seed), 20))
		f := randomFabric(t, r, 2+r.IntN(5), r.IntN(6), 1+r.IntN(6))
		tables, opt := randomTables(f, r), randomLanes(f, r)
		got, err := multipath.Check(context.Background(), f, tables, opt)
		if err != nil {
			t.Fatal(err)
		}
		s := newSlow(f, tables, opt)
		type counts struct{ DeadEnds, Loops, ManagementDeadEnds, ManagementLoops int64 }
		type loops struct{ CreditLoops, NoEscape, ManagementCreditLoops, ManagementNoEscape, Dependencies int }
		n := &got.Counts
		if diff := cmp.Diff(counts{s.deadEnds, s.loops, s.mgmtDeadEnds, s.mgmtLoops},
			counts{n.DeadEnds, n.Loops, n.ManagementDeadEnds, n.ManagementLoops}); diff != "" {
			t.Fatalf("seed %d: -slow +fast\n%s", seed, diff)
		}
		want := loops{s.unicast.components(), s.unicastEscape.components(), s.all.components(), s.allEscape.components(), s.all.size()}
		if want.ManagementCreditLoops == 0 {
			want.NoEscape, want.ManagementNoEscape = 0, 0
		}
		if diff := cmp.Diff(want, loops{n.CreditLoops, n.NoEscape, n.ManagementCreditLoops, n.ManagementNoEscape, n.Dependencies}); diff != "" {
			t.Fatalf("seed %d: -slow +fast\n%s", seed, diff)
		}
		var v verify.Result
		got.AddTo(&v)
		kinds[v.Verdict]++
		for _, f := range got.Findings {
			kinds[f.Rule]++
		}
	}
	t.Log(kinds)
}
