package verify_test

import (
	"math/rand/v2"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/updown"
	"github.com/ibweave/ibweave/verify"
)

// TestChanges breaks tables at random and compares what is found with Check: lost
// pairs exactly, and no credit loop where the numbers prove that.
func TestChanges(t *testing.T) {
	f, err := gen.Irregular(gen.IrregularSpec{Switches: 10, Degree: 4, Hosts: 14, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	if f, err = lft.AssignLIDs(f, lft.LIDOptions{LMC: 1}); err != nil {
		t.Fatal(err)
	}
	r, err := updown.Engine{}.Route(t.Context(), f, lft.Options{})
	if err != nil {
		t.Fatal(err)
	}
	base, err := verify.NewChanges(f, r.Tables, verify.UpDownNumbers(f, r.Order))
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	lost, unproven, loops, proven := 0, 0, 0, 0
	for range 600 {
		g := f
		if rng.IntN(2) == 0 {
			g = f.Without(fabric.PortID(rng.IntN(f.NumPorts())), fabric.PortID(rng.IntN(f.NumPorts())))
		}
		tables := r.Tables.Clone()
		var lids []fabric.LID
		for range rng.IntN(4) {
			s := fabric.NodeID(rng.IntN(f.NumSwitches()))
			lid := fabric.LID(1 + rng.IntN(int(f.MaxLID())))
			tables.Row(s)[lid] = fabric.PortNum(rng.IntN(int(f.Node(s).NumPorts) + 2))
			lids = append(lids, lid)
		}
		got := base.Check(g, tables, lids)
		want, err := verify.Check(t.Context(), g, tables, verify.Options{Complete: true})
		if err != nil {
			t.Fatal(err)
		}
		if sum := want.Unicast.Unreachable + want.Unicast.Loops; got.Lost != sum {
			t.Fatalf("lost %d, Check says %d", got.Lost, sum)
		}
		if before, err := verify.Check(t.Context(), f, r.Tables, verify.Options{Complete: true}); err != nil || before.Unicast.Pairs-want.Unicast.Pairs != got.Gone {
			t.Fatalf("gone %d: %v", got.Gone, err)
		}
		bad := want.CreditLoops.Count+want.Management.CreditLoops > 0
		switch {
		case got.Lost > 0:
			lost++
		}
		switch {
		case got.Unproven != nil:
			unproven++
		case bad:
			t.Fatal("a credit loop that the numbers are to have excluded")
		default:
			proven++
		}
		if bad {
			loops++
		}
	}
	if lost < 50 || unproven < 50 || proven < 50 {
		t.Errorf("%d lost, %d unproven, %d proven, %d credit loops: the trials are too tame", lost, unproven, proven, loops)
	}
	if _, err := verify.NewChanges(f, r.Tables, make([]int32, f.NumPorts())); err == nil {
		t.Error("numbers that are all the same prove nothing")
	}
}
