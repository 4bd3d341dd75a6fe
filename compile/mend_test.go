package compile_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/verify"
)

// TestMend has random cables and switches fail, and holds what was mended against
// the checker, against routing anew, and against the old tables.
func TestMend(t *testing.T) {
	for name, f := range failingFabrics(t) {
		for _, engineName := range []string{"updn", "minhop"} {
			t.Run(name+"/"+engineName, func(t *testing.T) {
				e := engine(t, engineName)
				base, err := compile.Run(t.Context(), f, e, compile.Options{LIDs: lft.LIDOptions{LMC: 1}})
				if err != nil {
					t.Fatal(err)
				}
				f := base.Routing.Fabric
				before := base.Routing.Tables.Clone()
				repair := lft.NewRepair(f, base.Routing.Tables)
				rng := rand.New(rand.NewPCG(1, 2))
				mended, edits := 0, 0
				for range max(*trials, 20) / 5 {
					cut := failure(rng, f)
					g := f.Without(cut...)
					m := e.Engine.(lft.Rerouter).Mender(g, base.Routing)
					if m == nil {
						continue
					}
					mended++
					changed, ok := repair.Mend(g, m)
					if !ok {
						t.Fatal("paths too long")
					}
					edits += len(changed)
					mendedWell(t, e, base.Routing, g, repair, before, changed)
					repair.Undo()
					if !slices.Equal(repair.Loads(), lft.NewRepair(f, before).Loads()) {
						t.Fatal("loads after Undo")
					}
					for s := range fabric.NodeID(f.NumSwitches()) {
						if !slices.Equal(before.Row(s), repair.Tables().Row(s)) {
							t.Fatal("tables after Undo")
						}
					}
				}
				if mended < max(*trials, 20)/10 || edits == 0 {
					t.Errorf("only %d failures were mended, with %d entries", mended, edits)
				}
			})
		}
	}
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

func mendedWell(t *testing.T, e *compile.Engine, old *lft.Routing, g *fabric.Fabric, repair *lft.Repair, before *lft.Tables, changed []lft.Edit) {
	t.Helper()
	tables := repair.Tables()
	got, err := verify.Check(t.Context(), g, tables, verify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	anew, err := e.Route(t.Context(), g, lft.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want, err := verify.Check(t.Context(), g, anew.Tables, verify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Unicast.Unreachable != want.Unicast.Unreachable || got.Unicast.Loops != 0 || got.Management.Loops != 0 ||
		got.Management.Unreachable != want.Management.Unreachable {
		t.Fatalf("mended: %+v %+v; anew: %+v %+v", got.Unicast, got.Management, want.Unicast, want.Management)
	}
	if e.Guarantee().Has(lft.NoCreditLoop) {
		if got.CreditLoops.Count+got.Management.CreditLoops != 0 {
			t.Fatalf("credit loops: %+v", got.CreditLoops)
		}
		rises(t, old, g, tables)
	}
	if e.Guarantee().Has(lft.Minimal) && got.Unicast.NonMinimal != 0 {
		t.Fatalf("%d pairs go round", got.Unicast.NonMinimal)
	}
	if !slices.Equal(repair.Loads(), lft.NewRepair(g, tables.Clone()).Loads()) {
		t.Fatal("loads are not those of the tables")
	}
	// What changed is what is said to have changed, and none of it need not.
	type at struct {
		s   fabric.NodeID
		lid fabric.LID
	}
	said := make(map[at]lft.Edit)
	for _, c := range changed {
		if _, twice := said[at{c.Switch, c.LID}]; twice {
			t.Fatalf("%+v twice", c)
		}
		said[at{c.Switch, c.LID}] = c
	}
	for s := range fabric.NodeID(g.NumSwitches()) {
		for lid, p := range tables.Row(s) {
			c, ok := said[at{s, fabric.LID(lid)}]
			if was := before.Row(s)[lid]; ok != (was != p) || ok && (c.Old != was || c.New != p) {
				t.Fatalf("switch %d LID %d: %d to %d, said %+v", s, lid, was, p, c)
			}
		}
	}
	m := e.Engine.(lft.Rerouter).Mender(g, old)
	for _, c := range changed {
		p := g.LIDPort(c.LID)
		if p == fabric.NoPort {
			continue
		}
		root := g.Owner(p)
		if !g.IsSwitch(root) {
			root = g.Owner(g.Peer(p))
		}
		hops, _ := m.To(root)
		if unreachable := hops[c.Switch] == fabric.Unreachable; unreachable != (c.New == fabric.NoPath) {
			t.Fatalf("%+v: unreachable %v", c, unreachable)
		} else if unreachable {
			continue
		}
		if slices.Contains(m.Ports(c.Switch), g.Port(c.Switch, min(c.Old, g.Node(c.Switch).NumPorts))) && c.Old <= g.Node(c.Switch).NumPorts {
			t.Fatalf("%+v need not have changed", c)
		}
	}
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
		forest.Grow(tables, fabric.LID(lid))
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
