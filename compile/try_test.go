package compile_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
)

// TestTry has random cables and switches fail. It compares the tables of a Keeper that goes back to
// the same tables for each failure with those of a new Keeper.
func TestTry(t *testing.T) {
	fabrics := failingFabrics(t)
	for _, name := range short.Keys(fabrics, "fat tree", "torus") {
		f := fabrics[name]
		for _, engineName := range []string{"updn", "minhop"} {
			t.Run(name+"/"+engineName, func(t *testing.T) {
				base := short.Must(compile.Run(t.Context(), f, engine(t, engineName), compile.Options{LIDs: lft.LIDOptions{LMC: 1}}))(t)
				f := base.Routing.Fabric
				e := base.Engine.Engine.(lft.IncrementalEngine)
				var keeper lft.Keeper
				start := keeper.Hold(e, base.Routing)
				if start == nil {
					t.Fatal("cannot be updated")
				}
				rng := rand.New(rand.NewPCG(1, 2))
				same := 0
				for range short.Of(max(*trials, 20)/5, 3) {
					g := f.Without(failure(rng, f)...)
					opt := lft.Options{Previous: base.Routing, FirstStep: rng.IntN(2) == 0, Rebalance: 1 + rng.Float64()}
					want := short.Must(e.Route(t.Context(), g, opt))(t)
					opt.Keeper = &keeper
					got := short.Must(e.Route(t.Context(), g, opt))(t)
					if got.Kept != want.Kept || !equalRows(g, got.Tables, want.Tables) || !slices.Equal(got.Order, want.Order) {
						t.Fatal("other tables than those routed from before")
					}
					if got.Kept && keeper.Former() != start {
						t.Fatal("it did not go back to the tables that it began with")
					}
					if got.Kept && got.Order != nil && slices.Equal(got.Order, base.Routing.Order) {
						same++
						rises(t, base.Routing, g, got.Tables)
					}
				}
				short.Equal(t, keeper.Hold(e, base.Routing), start, "it did not go back")
				if engineName == "updn" && same == 0 {
					t.Error("no failure left the order as it was")
				}
			})
		}
	}
}

func equalRows(f *fabric.Fabric, a, b *lft.Tables) bool {
	for s := range fabric.NodeID(f.NumSwitches()) {
		if !slices.Equal(a.Row(s), b.Row(s)) {
			return false
		}
	}
	return true
}

// failingFabrics are those in which something fails.
func failingFabrics(t *testing.T) map[string]*fabric.Fabric {
	t.Helper()
	fabrics := make(map[string]*fabric.Fabric)
	add := func(name string, f *fabric.Fabric, err error) {
		if err != nil {
			t.Fatal(err)
		}
		fabrics[name] = f
	}
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 3})
	add("fat tree", f, err)
	f, err = gen.FatTree(gen.FatTreeSpec{Radix: 12, Levels: 2})
	add("two level", f, err)
	f, err = gen.Irregular(gen.IrregularSpec{Switches: 20, Degree: 3, Hosts: 31, Seed: 4})
	add("irregular", f, err)
	f, err = mesh.Generate(mesh.Spec{Dims: []int{5, 4}, Wrap: []bool{true, true}, Hosts: 2})
	add("torus", f, err)
	f, err = gen.Lattice(24, 3)
	add("lattice", f, err)
	return fabrics
}

// failure is the cables of up to three links, or of a switch.
func failure(rng *rand.Rand, f *fabric.Fabric) []fabric.PortID {
	var cut []fabric.PortID
	if rng.IntN(4) == 0 {
		s := fabric.NodeID(rng.IntN(f.NumSwitches()))
		for p := range f.Node(s).NumPorts {
			cut = append(cut, f.Port(s, p+1))
		}
		return cut
	}
	for n := 1 + rng.IntN(3); len(cut) < n; {
		if p := fabric.PortID(rng.IntN(f.NumPorts())); f.Peer(p) != fabric.NoPort {
			cut = append(cut, p)
		}
	}
	return cut
}

// rises says that all dependencies of the tables go up the order that the old ones
// had: old and new entries can be in force together.
func rises(t *testing.T, old *lft.Routing, g *fabric.Fabric, tables *lft.Tables) {
	t.Helper()
	number := func(out fabric.PortID) int32 {
		n, a, b := int32(len(old.Order)), old.Order[g.Owner(out)], old.Order[g.Owner(g.Peer(out))]
		if b < a {
			return n - b // up
		}
		return n + b
	}
	forest := lft.NewForest(g)
	for lid := range g.LIDPorts() {
		forest.FindTree(tables, fabric.LID(lid))
		for i, s := range forest.Order {
			if i == 0 {
				continue
			}
			for from := range forest.From(s) {
				if a, b := number(forest.Next[from]), number(forest.Next[s]); a >= b {
					t.Fatalf("LID %d goes down and up again at switch %d", lid, s)
				}
			}
		}
	}
}
