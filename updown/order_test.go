package updown

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
	"github.com/ibweave/ibweave/verify/bound"
)

// routable gives the made fabric LIDs.
func routable(t testing.TB, f *fabric.Fabric, err error) *fabric.Fabric {
	t.Helper()
	short.Check(t, err)
	return short.Must(lft.AssignLIDs(f, lft.LIDOptions{}))(t)
}

func route(t testing.TB, f *fabric.Fabric, roots ...fabric.NodeID) *verify.Result {
	t.Helper()
	r := short.Must(Engine{}.Route(context.Background(), f, lft.Options{Roots: roots}))(t)
	return short.Must(verify.Check(context.Background(), &state.State{Fabric: f, Tables: r.Tables}, verify.Options{}))(t)
}

// clusterSpec is a two-level fabric as they are found: hosts on the spines,
// several links between a leaf and a spine, some of them missing.
type clusterSpec struct {
	leaves, spines, hosts, parallel, missing int
	seed                                     uint64
}

func cluster(t testing.TB, spec clusterSpec) *fabric.Fabric {
	t.Helper()
	var b fabric.Builder
	next := fabric.GUID(0x1000)
	add := func(typ fabric.NodeType, ports int, name string) int {
		n := short.Must(b.AddNode(fabric.Node{GUID: next, Type: typ, NumPorts: fabric.PortNum(ports), Description: name}))(t)
		next += 0x10
		return n
	}
	connect := func(a, p, c, q int) {
		short.Check(t, b.Connect(a, fabric.PortNum(p), c, fabric.PortNum(q), fabric.Link{Width: 4, Speed: fabric.NDR}))
	}
	var leaves, spines []int
	for range spec.leaves {
		leaves = append(leaves, add(fabric.Switch, 64, "leaf"))
	}
	for range spec.spines {
		spines = append(spines, add(fabric.Switch, 64, "spine"))
	}
	rnd := rand.New(rand.NewPCG(spec.seed, 0))
	skip := make(map[int]bool)
	for _, i := range rnd.Perm(spec.leaves * spec.spines * spec.parallel)[:spec.missing] {
		skip[i] = true
	}
	cable := 0
	for i, l := range leaves {
		for j, s := range spines {
			for k := range spec.parallel {
				if !skip[cable] {
					connect(l, 30+j*spec.parallel+k, s, 1+i*spec.parallel+k)
				}
				cable++
			}
		}
		for h := range spec.hosts {
			connect(l, 1+h, add(fabric.CA, 1, "host"), 1)
		}
	}
	for _, s := range spines {
		connect(s, 64, add(fabric.CA, 1, "aggregation node"), 1)
	}
	f, err := b.Build()
	return routable(t, f, err)
}

// TestOrderConnects: the order has every switch once, and every switch but
// the first of its connected part has an upward link.
func TestOrderConnects(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(rt, "switches")
		var b fabric.Builder
		for i := range n {
			short.Must(b.AddNode(fabric.Node{GUID: fabric.GUID(i + 1), Type: fabric.Switch, NumPorts: 200}))(rt)
		}
		port := make([]fabric.PortNum, n)
		for range rapid.IntRange(0, 40).Draw(rt, "links") {
			i, j := rapid.IntRange(0, n-1).Draw(rt, "i"), rapid.IntRange(0, n-1).Draw(rt, "j")
			port[i]++
			p := port[i]
			port[j]++
			short.Check(rt, b.Connect(i, p, j, port[j], fabric.Link{}))
		}
		f := short.Must(b.Build())(rt)
		roots := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) fabric.NodeID {
			return fabric.NodeID(rapid.IntRange(0, n-1).Draw(rt, "root"))
		}), 0, 4).Draw(rt, "roots")
		o := NewOrder(f, roots)
		short.MustEqual(rt, len(o.Switch), n, "of switches in the order")
		if len(roots) > 0 && o.Switch[0] != roots[0] {
			rt.Fatalf("switch %d on top, want %d", o.Switch[0], roots[0])
		}
		dist := f.Distances()
		for r, s := range o.Switch {
			short.MustEqual(rt, o.Rank[s], int32(r), "switch", s, "rank but at", r)
			top, up := true, false
			for _, u := range o.Switch[:r] {
				top = top && dist.To(s)[u] == fabric.Unreachable
				up = up || dist.To(s)[u] == 1
			}
			if !top && !up {
				rt.Fatalf("switch %d at rank %d has no upward link", s, r)
			}
		}
	})
}

// TestChooseOrder: which switch comes on top where that decides whether paths
// are minimal and loads even.
func TestChooseOrder(t *testing.T) {
	ft := func(spec gen.FatTreeSpec, drop int) *fabric.Fabric {
		f, err := gen.FatTree(spec)
		if err == nil && drop > 0 {
			f, err = gen.DropLinks(f, drop, 1)
		}
		return routable(t, f, err)
	}
	grid := func(wrap bool, dims ...int) *fabric.Fabric {
		w := make([]bool, len(dims))
		for i := range w {
			w[i] = wrap
		}
		f, err := mesh.Generate(mesh.Spec{Dims: dims, Wrap: w, Hosts: 1})
		return routable(t, f, err)
	}
	cube, err := mesh.Hypercube(short.Of(6, 4), 1)
	for _, test := range []struct {
		name string
		f    *fabric.Fabric
		top  string // how the description of the top switch begins
	}{
		{"two levels", ft(gen.FatTreeSpec{Radix: 8, Levels: 2}, 0), "leaf"},
		{"two levels, links missing", ft(gen.FatTreeSpec{Radix: short.Of(16, 12), Levels: 2}, 12), "leaf"},
		{"three levels", ft(gen.FatTreeSpec{Radix: 8, Levels: 3}, 0), "leaf"},
		{"three levels, sampled", ft(gen.FatTreeSpec{Radix: short.Of(16, 10), Levels: 3}, 0), "leaf"},
		{"three levels, links missing", ft(gen.FatTreeSpec{Radix: short.Of(12, 8), Levels: 3}, short.Of(40, 12)), "leaf"},
		{"hosts on spines", cluster(t, clusterSpec{leaves: 12, spines: 5, hosts: 9, parallel: 2, missing: 7}), "leaf"},
		{"mesh", grid(false, 8, short.Of(8, 5)), "switch 0,0"},
		{"mesh, sampled", grid(false, 16, short.Of(16, 5)), "switch 0,0"},
		{"mesh 3-D", grid(false, 3, 4, 5), "switch 0,0,0"},
		{"torus 3-D", grid(true, 4, short.Of(4, 3), short.Of(4, 2)), "switch"},
		{"hypercube", routable(t, cube, err), "switch"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := short.Must(ChooseOrder(context.Background(), test.f, nil))(t)
			if top := test.f.Node(o.Switch[0]).Description; !strings.HasPrefix(top, test.top) {
				t.Errorf("%q on top, want %q", top, test.top)
			}
			v := route(t, test.f)
			if v.Verdict != verify.VerdictClean || v.Unicast.NonMinimal != 0 {
				t.Errorf("verdict %s, %d pairs longer than minimal", v.Verdict, v.Unicast.NonMinimal)
			}
		})
	}
}

// TestSpineOnTop shows what ChooseOrder is for: with a spine on top paths are
// as short, but all traffic between leaves squeezes through it.
func TestSpineOnTop(t *testing.T) {
	f := cluster(t, clusterSpec{leaves: 12, spines: 5, hosts: 9, parallel: 2})
	spine := fabric.NodeID(-1)
	for s := range fabric.NodeID(f.NumSwitches()) {
		if f.Node(s).Description == "spine" {
			spine = s
			break
		}
	}
	forced, chosen := route(t, f, spine), route(t, f)
	if forced.Unicast.NonMinimal != 0 || chosen.Unicast.NonMinimal != 0 {
		t.Errorf("%d and %d pairs longer than minimal, want 0", forced.Unicast.NonMinimal, chosen.Unicast.NonMinimal)
	}
	if a, b := forced.Balance.MaxRoutes, chosen.Balance.MaxRoutes; a < 4*b {
		t.Errorf("most loaded link: %d routes with a spine on top, %d as chosen: want at least 4 times as many", a, b)
	}
}

// TestSpinesAsRoots: several equal roots that no order in common connects.
// OpenSM's updn leaves pairs of them unreachable.
func TestSpinesAsRoots(t *testing.T) {
	f := cluster(t, clusterSpec{leaves: 12, spines: 5, hosts: 9, parallel: 2, missing: 7})
	var spines []fabric.NodeID
	for s := range fabric.NodeID(f.NumSwitches()) {
		if f.Node(s).Description == "spine" {
			spines = append(spines, s)
		}
	}
	o := NewOrder(f, spines)
	for r, s := range o.Switch[:len(spines)+1] {
		if leaf := f.Node(s).Description == "leaf"; leaf != (r == 1) {
			t.Errorf("rank %d: %s; want the spines, and one leaf at rank 1", r, f.Node(s).Description)
		}
	}
	if v := route(t, f, spines...); v.Verdict != verify.VerdictClean {
		t.Errorf("verdict %s, want clean", v.Verdict)
	}
}

// TestBalance holds the most loaded link against what no routing can beat: the
// routes into or out of a leaf divided by its links.
func TestBalance(t *testing.T) {
	for seed := range uint64(short.Of(8, 3)) {
		f := cluster(t, clusterSpec{leaves: 12, spines: 5, hosts: 9, parallel: 2, missing: 9, seed: seed})
		hosts := make([]int, f.NumSwitches())
		for _, s := range f.CASwitches() {
			hosts[s]++
		}
		bound := 0
		for s, h := range hosts {
			ports, _ := f.SwitchLinks(fabric.NodeID(s))
			bound = max(bound, (h*(len(f.CAPorts())-h)+len(ports)-1)/len(ports))
		}
		v := route(t, f)
		if got := v.Balance.MaxRoutes; int(got) < bound || int(got) > bound+bound/8 {
			t.Errorf("seed %d: %d routes on the most loaded link, want %d to %d", seed, got, bound, bound+bound/8)
		}
	}
}

// TestTooLong: a path that a HopMatrix cannot count.
func TestTooLong(t *testing.T) {
	f, err := mesh.Generate(mesh.Spec{Dims: []int{600}, Wrap: []bool{false}, Hosts: 1})
	f = routable(t, f, err)
	_, err = Engine{}.Route(context.Background(), f, lft.Options{})
	want := "updn cannot route this fabric: a path has more than 254 links"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestIslands: a subnet in two parts, and switches without hosts.
func TestIslands(t *testing.T) {
	var b fabric.Builder
	for i := range 4 {
		short.Must(b.AddNode(fabric.Node{GUID: fabric.GUID(i + 1), Type: fabric.Switch, NumPorts: 4}))(t)
	}
	for _, i := range []int{0, 2} {
		short.Check(t, b.Connect(i, 1, i+1, 1, fabric.Link{}))
	}
	f, err := b.Build()
	f = routable(t, f, err)
	v := route(t, f)
	if v.Management.Loops != 0 || v.Management.Unreachable != 8 {
		t.Errorf("management: %d loops, %d unreachable; want 0 and the 8 pairs that no cable joins", v.Management.Loops, v.Management.Unreachable)
	}
}

// TestKeepOrderNearTop: failures next to the switch on top take the upward links of others.
// The busiest link of kept tables is not much busier for that than of tables from scratch.
func TestKeepOrderNearTop(t *testing.T) {
	ctx := context.Background()
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: short.Of(12, 8), Levels: 3})
	f = routable(t, f, err)
	r := short.Must(Engine{}.Route(ctx, f, lft.Options{}))(t)
	order := make([]fabric.NodeID, len(r.Order))
	for s, rank := range r.Order {
		order[rank] = fabric.NodeID(s)
	}
	var failures [][]fabric.PortID
	for _, s := range order[:3] { // the leaf on top, and spines next to it
		ports, _ := f.SwitchLinks(s)
		failures = append(failures, ports[:1], ports[len(ports)-1:], ports)
	}
	for _, cables := range failures {
		g := short.Must(gen.Remaining(f, cables...))(t)
		kept := short.Must(lft.Reroute(ctx, Engine{}, g, lft.Options{Previous: r, FirstStep: true}))(t)
		v := short.Must(verify.Check(ctx, &state.State{Fabric: g, Tables: kept.Tables}, verify.Options{}))(t)
		scratch := route(t, g)
		if v.Unicast.Loops > 0 || v.CreditLoops.Count > 0 || v.Unicast.Unreachable > scratch.Unicast.Unreachable {
			t.Errorf("without %s and %d more: %d loops, %d credit loops, %d pairs unreachable", f.PortName(cables[0]), len(cables)-1,
				v.Unicast.Loops, v.CreditLoops.Count, v.Unicast.Unreachable)
		}
		if a, b := v.Balance.MaxRoutes, scratch.Balance.MaxRoutes; 2*a > 3*b {
			t.Errorf("without %s and %d more: %d routes on the busiest link, %d from scratch", f.PortName(cables[0]), len(cables)-1, a, b)
		}
	}
}

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
