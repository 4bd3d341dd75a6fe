package compile_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// TestPrevious has cables and switches fail and return for as long as -trials says,
// each time routed from the tables before. Everything is verified and compared with
// routing from scratch.
func TestPrevious(t *testing.T) {
	fabrics := failingFabrics(t)
	for _, name := range short.Keys(fabrics, "fat tree", "irregular") {
		whole := fabrics[name]
		for _, engineName := range []string{"updn", "minhop"} {
			t.Run(name+"/"+engineName, func(t *testing.T) {
				whole := short.Must(lft.AssignLIDs(whole, lft.LIDOptions{LMC: 1}))(t)
				e := engine(t, engineName)
				now := short.Must(e.Route(t.Context(), whole, lft.Options{}))(t)
				rng := rand.New(rand.NewPCG(5, 6))
				walk := failures{f: whole, gone: map[fabric.PortID]bool{}, dead: map[fabric.NodeID]bool{}}
				changed, fresh := 0, 0
				worst := 0.0
				steps := short.Of(max(*trials/2, 20), 2)
				for range steps {
					walk.step(rng)
					g := whole.Without(walk.cut()...)
					next := short.Must(e.Route(t.Context(), g, lft.Options{Previous: now}))(t)
					scratch := short.Must(e.Route(t.Context(), g, lft.Options{}))(t)
					got, want := check(t, g, next.Tables), check(t, g, scratch.Tables)
					if got.Unicast.Unreachable != want.Unicast.Unreachable || got.Unicast.Loops != 0 ||
						got.Management.Unreachable != want.Management.Unreachable || got.Management.Loops != 0 {
						t.Fatalf("%+v %+v; from scratch %+v %+v", got.Unicast, got.Management, want.Unicast, want.Management)
					}
					if e.Guarantee().Has(lft.NoCreditLoop) && got.CreditLoops.Count+got.Management.CreditLoops > 0 {
						t.Fatal("a credit loop")
					}
					if e.Guarantee().Has(lft.Minimal) && got.Unicast.NonMinimal > 0 {
						t.Fatalf("%d pairs loop", got.Unicast.NonMinimal)
					}
					changed += differences(now, next)
					fresh += differences(now, scratch)
					if want.Balance.MeanRoutes > 0 {
						worst = max(worst, float64(got.Balance.MaxRoutes)/float64(want.Balance.MaxRoutes))
					}
					now = next
				}
				t.Logf("%d steps: %d entries changed, %d from scratch; at worst %.2f times the load on the most loaded link", steps, changed, fresh, worst)
				if changed > fresh {
					t.Errorf("%d entries changed, from scratch %d", changed, fresh)
				}
				// All is well again: nothing is left of the failures but choices among equals.
				last := short.Must(e.Route(t.Context(), whole, lft.Options{Previous: now}))(t)
				if r := check(t, whole, last.Tables); r.Unicast.Unreachable+r.Management.Unreachable > 0 {
					t.Error("something is no longer reached")
				}
				again := short.Must(e.Route(t.Context(), whole, lft.Options{Previous: last}))(t)
				if n := differences(last, again); n > 0 {
					t.Errorf("%d entries changed for no reason", n)
				}
			})
		}
	}
}

func check(t *testing.T, f *fabric.Fabric, tables *lft.Tables) *verify.Result {
	t.Helper()
	return short.Must(verify.Check(t.Context(), &state.State{Fabric: f, Tables: tables}, verify.Options{}))(t)
}

// differences counts entries of switches with cables.
func differences(a, b *lft.Routing) int {
	n := 0
	for s := range fabric.NodeID(a.Fabric.NumSwitches()) {
		x, y := a.Tables.Row(s), b.Tables.Row(s)
		for lid := 1; lid < max(len(x), len(y)); lid++ {
			p, q := fabric.NoPath, fabric.NoPath
			if lid < len(x) {
				p = x[lid]
			}
			if lid < len(y) {
				q = y[lid]
			}
			if p != q {
				n++
			}
		}
	}
	return n
}

// failures is what is broken at the moment.
type failures struct {
	f    *fabric.Fabric
	gone map[fabric.PortID]bool
	dead map[fabric.NodeID]bool
}

// step has something fail or return, so that not much is broken at any time.
func (x *failures) step(rng *rand.Rand) {
	if rng.IntN(5) == 0 {
		s := fabric.NodeID(rng.IntN(x.f.NumSwitches()))
		if len(x.dead) > 1 {
			clear(x.dead)
		} else {
			x.dead[s] = true
		}
		return
	}
	if len(x.gone) > 4 {
		clear(x.gone)
		return
	}
	for {
		p := fabric.PortID(rng.IntN(x.f.NumPorts()))
		if x.f.Peer(p) != fabric.NoPort {
			x.gone[p] = true
			return
		}
	}
}

func (x *failures) cut() []fabric.PortID {
	var list []fabric.PortID
	for p := range fabric.PortID(x.f.NumPorts()) {
		if x.gone[p] || x.dead[x.f.Owner(p)] {
			list = append(list, p)
		}
	}
	return list
}

// TestPreviousOfOtherFabric: nodes that are new and nodes that are gone.
func TestPreviousOfOtherFabric(t *testing.T) {
	small := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 2}))(t)
	large := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2}))(t)
	for _, name := range []string{"updn", "minhop"} {
		e := engine(t, name)
		for _, pair := range [][2]*fabric.Fabric{{small, large}, {large, small}} {
			before := short.Must(compile.Run(t.Context(), pair[0], e, compile.Options{}))(t)
			after := short.Must(compile.Run(t.Context(), pair[1], e, compile.Options{Route: lft.Options{Previous: before.Routing}}))(t)
			if v := after.Verify; v.Unicast.Unreachable+v.Management.Unreachable > 0 || v.Unicast.Loops > 0 || name == "updn" && v.CreditLoops.Count > 0 {
				t.Errorf("%s: %+v", name, v.Unicast)
			}
		}
	}
}

// TestPreviousToACA: nothing is left of the ways to a port whose cable leads to another
// CA now.
func TestPreviousToACA(t *testing.T) {
	line := func(moved bool) *fabric.Fabric {
		p := short.Must(gen.NewPlan(3, 3))(t)
		for i := range 3 {
			p.Switch(4, fmt.Sprint("switch ", i))
		}
		p.Cable(0, 1, 1, 1)
		p.Cable(1, 2, 2, 1)
		a, b, c := p.CA(1, "a"), p.CA(1, "b"), p.CA(1, "c")
		p.Cable(a, 1, 0, 4)
		if moved {
			p.Cable(b, 1, c, 1)
		} else {
			p.Cable(b, 1, 2, 4)
			p.Cable(c, 1, 2, 3)
		}
		f := short.Must(p.Fabric())(t)
		return short.Must(lft.AssignLIDs(f, lft.LIDOptions{}))(t)
	}
	for _, name := range []string{"updn", "minhop"} {
		e := engine(t, name)
		before := short.Must(e.Route(t.Context(), line(false), lft.Options{}))(t)
		after := short.Must(e.Route(t.Context(), line(true), lft.Options{Previous: before}))(t)
		scratch := short.Must(e.Route(t.Context(), after.Fabric, lft.Options{}))(t)
		if n := differences(scratch, after); n > 0 {
			t.Errorf("%s: %d entries differ from those made from scratch", name, n)
		}
	}
}

// TestPreviousOfAnything: the guarantee holds with any previous tables.
func TestPreviousOfAnything(t *testing.T) {
	f := short.Must(gen.Irregular(gen.IrregularSpec{Switches: 20, Degree: 4, Hosts: 31, Seed: 4}))(t)
	f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{LMC: 1}))(t)
	for _, name := range []string{"updn", "minhop"} {
		e := engine(t, name)
		before := short.Must(e.Route(t.Context(), f, lft.Options{}))(t)
		rng := rand.New(rand.NewPCG(7, 8))
		for _, one := range []int{1, 5, 100} { // one entry in this many changes
			for s := range fabric.NodeID(f.NumSwitches()) {
				for lid := range before.Tables.Row(s) {
					if rng.IntN(one) == 0 {
						before.Tables.Row(s)[lid] = fabric.PortNum(rng.IntN(int(f.Node(s).NumPorts) + 2))
					}
				}
			}
			after := short.Must(e.Route(t.Context(), f, lft.Options{Previous: before}))(t)
			v := check(t, f, after.Tables)
			if v.Unicast.Unreachable+v.Unicast.Loops+v.Management.Unreachable+v.Management.Loops > 0 {
				t.Errorf("%s: %+v %+v", name, v.Unicast, v.Management)
			}
			if e.Guarantee().Has(lft.NoCreditLoop) && v.CreditLoops.Count+v.Management.CreditLoops > 0 || e.Guarantee().Has(lft.Minimal) && v.Unicast.NonMinimal > 0 {
				t.Errorf("%s: %d credit loops, %d pairs loop", name, v.CreditLoops.Count+v.Management.CreditLoops, v.Unicast.NonMinimal)
			}
			before = after
		}
	}
}

// TestPreviousOrderTooDeep: two lines of switches get a cable between them, and a switch
// that makes ways short for those who put it on top, which the order before does not.
func TestPreviousOrderTooDeep(t *testing.T) {
	lines := func(joined bool) *fabric.Fabric {
		const n = 200
		p := short.Must(gen.NewPlan(2*n+1, 0))(t)
		for i := range 2 * n {
			p.Switch(4, fmt.Sprint("switch ", i))
		}
		hub := p.Switch(254, "hub")
		for i := range 2*n - 1 {
			if joined || i != n-1 {
				p.Cable(i, 2, i+1, 1)
			}
		}
		for i := 0; joined && i < 2*n; i += 10 {
			p.Cable(i, 3, hub, i/10+1)
		}
		f := short.Must(p.Fabric())(t)
		return short.Must(lft.AssignLIDs(f, lft.LIDOptions{}))(t)
	}
	e := engine(t, "updn")
	before := short.Must(e.Route(t.Context(), lines(false), lft.Options{}))(t)
	after := short.Must(e.Route(t.Context(), lines(true), lft.Options{Previous: before}))(t)
	if v := check(t, after.Fabric, after.Tables); v.Management.Unreachable+v.Management.Loops > 0 {
		t.Errorf("%+v", v.Management)
	}
}
