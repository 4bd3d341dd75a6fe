package verify_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// Fingerprints survive that LIDs are assigned again: the same tables under other LIDs
// have the same defects with the same fingerprints, and no two in one result are
// equal.
func TestFingerprintsWithoutLIDs(t *testing.T) {
	f := short.Must(mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Wrap: []bool{true, true}, Hosts: 1}))(t)
	withLIDs := func(seed uint64) *fabric.Fabric {
		base := make([]fabric.LID, f.NumPorts())
		order := rand.New(rand.NewPCG(seed, 0)).Perm(f.NumNodes())
		i := 0
		f.EndPorts(func(p fabric.PortID) {
			base[p] = fabric.LID(order[i] + 1)
			i++
		})
		return short.Must(f.WithLIDs(base, make([]uint8, f.NumPorts())))(t)
	}
	first := withLIDs(1)
	routed := short.Must(lft.Minhop{}.Route(context.Background(), first, lft.Options{}))(t)
	result := func(g *fabric.Fabric) (list []string) {
		tables := lft.NewTables(g.NumSwitches(), g.MaxLID())
		g.EndPorts(func(p fabric.PortID) {
			for s := range fabric.NodeID(g.NumSwitches()) {
				e := routed.Tables.Row(s)[first.LID(p)]
				switch { // by the port, not by its LID
				case p%7 == 0 && s%3 == 0:
					e = fabric.NoPath
				case p%11 == 0 && s%5 == 0 && p != g.PortBase(s):
					e = 200
				}
				tables.Row(s)[g.LID(p)] = e
			}
		})
		r := short.Must(verify.Check(context.Background(), &state.State{Fabric: g, Tables: tables}, verify.Options{Findings: 1 << 20}))(t)
		r.SetFingerprints(g)
		for _, x := range r.Findings {
			list = append(list, fmt.Sprint(x.Rule, " ", x.Fingerprint))
		}
		slices.Sort(list)
		return list
	}
	want := result(first)
	if len(slices.Compact(slices.Clone(want))) != len(want) || len(want) < 10 {
		t.Fatalf("%d findings, some with equal fingerprints: %v", len(want), want)
	}
	for seed := range uint64(5) {
		if got := result(withLIDs(seed + 2)); !slices.Equal(got, want) {
			t.Errorf("LIDs %d: %v, want %v", seed, got, want)
		}
	}
}
