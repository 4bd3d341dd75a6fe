package compile_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/audit/diff"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

var incrementalRadix = flag.Int("radix", 12, "radix of the fat tree of BenchmarkIncremental")

// BenchmarkIncremental has one thing fail in a fat tree of three levels, and come back:
// routing and verification, with the state in memory.
func BenchmarkIncremental(b *testing.B) {
	whole, err := gen.FatTree(gen.FatTreeSpec{Radix: *incrementalRadix, Levels: 3})
	if err == nil {
		whole, err = lft.AssignLIDs(whole, lft.LIDOptions{})
	}
	if err != nil {
		b.Fatal(err)
	}
	for _, x := range fatTreeFailures(whole, *incrementalRadix) {
		damaged := short.Must(gen.Remaining(whole, x.cables...))(b)
		b.Run(fmt.Sprintf("%d/%s", *incrementalRadix, x.name), func(b *testing.B) {
			var c compile.Incremental
			if _, _, err := c.Run(b.Context(), whole, engine(b, "updn"), compile.Options{}); err != nil {
				b.Fatal(err)
			}
			c.Wait()
			var fails, returns compile.Step
			for b.Loop() {
				_, fails, err = c.Run(b.Context(), damaged, engine(b, "updn"), compile.Options{})
				if err == nil {
					_, returns, err = c.Run(b.Context(), whole, engine(b, "updn"), compile.Options{})
				}
				if err != nil {
					b.Fatal(err)
				}
				if !fails.Kept || !fails.ByChange || !returns.Kept || !returns.ByChange {
					b.Fatalf("%+v %+v", fails, returns)
				}
			}
			b.ReportMetric(float64(fails.Changes.Entries), "entries/failure")
			b.ReportMetric(float64(fails.Changes.Blocks), "blocks/failure")
			b.ReportMetric(float64(returns.Changes.Blocks), "blocks/return")
		})
	}
}

// TestIncrementalApart: where a switch is cut off, tables are kept, and lose the pairs that no tables join and no others; when
// it comes back they are kept, too.
func TestIncrementalApart(t *testing.T) {
	whole, _ := wholeAndDamaged(t)
	cables, _ := whole.SwitchLinks(0)
	apart := whole.Without(cables...)
	scratch := short.Must(compile.Run(t.Context(), apart, engine(t, "updn"), compile.Options{}))(t)
	var c compile.Incremental
	for i, f := range []*fabric.Fabric{whole, apart, whole} {
		r, step := short.Must2(c.Run(t.Context(), f, engine(t, "updn"), compile.Options{}))(t)
		var want verify.UnicastCounts
		if f == apart {
			want = scratch.Verify.Unicast
		}
		if n := r.Verify.Unicast; step.Kept != (i > 0) || n.Unreachable != want.Unreachable || n.Loops != 0 || r.Verify.CreditLoops.Count != 0 {
			t.Errorf("%d: %+v: %+v, from scratch %+v", i, step, n, want)
		}
		for _, x := range r.Verify.Findings {
			if x.Severity == verify.Error && (f != apart || x.Rule != verify.Partitioned && x.Rule != verify.ManagementPartitioned) {
				t.Errorf("%d: %s", i, x.Message)
			}
		}
	}
}

// TestIncrementalLanes: tables with several lanes stay when a host goes and comes, and are proven as
// a whole; when a cable goes they are from scratch, and the step says why.
func TestIncrementalLanes(t *testing.T) {
	whole := short.Must(mesh.Generate(mesh.Spec{Dims: []int{5, 5}, Wrap: []bool{true, true}, Hosts: 2}))(t)
	whole = short.Must(lft.AssignLIDs(whole, lft.LIDOptions{}))(t)
	cables, _ := whole.SwitchLinks(0)
	var c compile.Incremental
	for i, x := range []struct {
		f    *fabric.Fabric
		kept bool
	}{{whole, false}, {whole.Without(whole.CAPorts()[3]), true}, {whole, true}, {whole.Without(cables[0]), false}} {
		r, step := short.Must2(c.Run(t.Context(), x.f, engine(t, "layered"), compile.Options{}))(t)
		if r.Routing.SL2VL == nil || r.Verify.Worst() == verify.Error || step.Kept != x.kept || (step.Why == "") != x.kept {
			t.Errorf("%d: %+v: %s", i, step, r.Verify.Verdict)
		}
	}
}

// TestRebalance: after a failure steps of a few blocks each lead to balanced tables, each proven
// together with the one before.
func TestRebalance(t *testing.T) {
	whole := short.Must(gen.Tree(gen.TreeSpec{Ports: 64, Pods: []int{20}, Hosts: 16, Spines: 8, Parallel: 2}))(t)
	whole = short.Must(lft.AssignLIDs(whole, lft.LIDOptions{}))(t)
	e := engine(t, "updn")
	cables, _ := whole.SwitchLinks(3)
	damaged := whole.Without(cables[0], cables[5])
	var c compile.Incremental
	if _, _, err := c.Run(t.Context(), whole, e, compile.Options{}); err != nil {
		t.Fatal(err)
	}
	last, step, err := c.Run(t.Context(), damaged, e, compile.Options{})
	if err != nil || !step.Kept {
		t.Fatalf("%+v, %v", step, err)
	}
	if r, _ := c.Rebalance(t.Context(), compile.Options{}); r != nil {
		t.Fatal("rebalanced without what from scratch gives")
	}
	scratch := short.Must(compile.Run(t.Context(), damaged, e, compile.Options{}))(t)
	c.Wait()
	steps := 0
	for ; steps < 20; steps++ {
		r, step := c.Rebalance(t.Context(), compile.Options{})
		if r == nil {
			break
		}
		if n := compile.ChangesSince(last.Routing, r.Routing); n != step.Changes || n.Blocks == 0 || n.Blocks > 64 {
			t.Errorf("%+v, said %+v", n, step.Changes)
		}
		asChecked(t, damaged, e, r, step)
		d := short.Must(diff.Compare(t.Context(), &state.State{Fabric: damaged, Tables: last.Routing.Tables}, &state.State{Fabric: damaged, Tables: r.Routing.Tables}))(t)
		if x := d.Transition; x.Loops != 0 || x.CreditLoops.Count+x.CreditLoops.Management != 0 {
			t.Errorf("step %d: %d loops, credit loops %+v", steps, x.Loops, x.CreditLoops)
		}
		last = r
	}
	if got, want := lft.GreatestLoad(damaged, last.Routing.Tables), lft.GreatestLoad(damaged, scratch.Routing.Tables); steps == 0 || 10*got > 11*want {
		t.Errorf("%d steps: load %d, %d from scratch", steps, got, want)
	}
	if _, step, err := c.Run(t.Context(), whole, e, compile.Options{}); err != nil || !step.Kept || !step.ByChange {
		t.Errorf("%+v, %v", step, err)
	}
}

// timeOf follows every pair of hosts, and finds the most time of a cable between switches: its routes over
// its rate in Gbit/s.
func timeOf(f *fabric.Fabric, tables *lft.Tables) (most float64) {
	routes := make(map[fabric.PortID]int)
	for _, src := range f.CAPorts() {
		for _, dst := range f.CAPorts() {
			if src == dst {
				continue
			}
			path, _ := tables.Path(f, src, f.LID(dst), nil)
			for _, p := range path {
				if f.IsSwitch(f.Owner(p)) && f.PeerSwitch(p) != fabric.NoNode {
					routes[p]++
				}
			}
		}
	}
	for p, n := range routes {
		most = max(most, float64(n)/(float64(f.Link(p).Mbps())/1000))
	}
	return most
}

// TestIncrementalRates: the load that later tables are held to is that of the last routing from scratch
// also when the fastest cable comes or goes meanwhile. On these fabrics no lower bound is near it.
func TestIncrementalRates(t *testing.T) {
	kept, n := 0, short.Of(300, 40)
	for seed := range uint64(n) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		whole := short.Must(gen.Irregular(gen.IrregularSpec{Switches: 12, Degree: 3, Hosts: 12, Seed: seed}))(t)
		whole = short.Must(lft.AssignLIDs(whole, lft.LIDOptions{}))(t)
		ports, _ := whole.SwitchLinks(fabric.NodeID(rnd.IntN(whole.NumSwitches())))
		p := ports[rnd.IntN(len(ports))]
		fast, _ := fabric.ParseLink([]string{"4xFDR", "4xHDR", "8xNDR"}[rnd.IntN(3)])
		faster := whole.WithLinks(map[fabric.PortID]fabric.Link{p: fast, whole.Peer(p): fast})
		states := []*fabric.Fabric{whole, faster, whole}
		if rest := faster.Without(p); len(rest.Components().List) == 1 && rnd.IntN(2) == 0 {
			states = []*fabric.Fabric{faster, rest, faster}
		}
		var c compile.Incremental
		var last float64 // of the last routing from scratch
		for i, f := range states {
			r, step := short.Must2(c.Run(t.Context(), f, engine(t, "updn"), compile.Options{}))(t)
			c.Wait()
			now := timeOf(f, r.Routing.Tables)
			fastest := 0.0
			for s := range fabric.NodeID(f.NumSwitches()) {
				ports, _ := f.SwitchLinks(s)
				for _, p := range ports {
					fastest = max(fastest, float64(f.Link(p).Mbps())/1000)
				}
			}
			const unit, slack = 64, 1.02 // of lft.LoadUnits, and for their rounding
			most := compile.MaxDrift * max(last, float64(lft.BoundLoad(f))/unit/fastest)
			switch {
			case step.Kept && now > most*slack:
				t.Errorf("seed %d, state %d: kept with %v, and %v are allowed", seed, i, now, most)
			case !step.Kept && i > 0 && len(f.Cables()) == len(states[i-1].Cables()):
				t.Errorf("seed %d, state %d: only a rate has changed: %s", seed, i, step.Why)
			case step.Kept:
				kept++
			default:
				last = now
			}
		}
	}
	if kept < n {
		t.Errorf("%d of %d kept: the draw is too narrow", kept, 2*n)
	}
}

// treeFailure is a thing that fails in a fat tree.
type treeFailure struct {
	name   string
	cables []fabric.PortID // that are gone then
}

// fatTreeFailures is one failure of each kind in the middle of a fat tree of three
// levels and full (gen.FatTree): a cable between a leaf and a spine, one between a spine and a
// core switch, a leaf with its hosts, a spine, and a core switch.
func fatTreeFailures(f *fabric.Fabric, radix int) []treeFailure {
	half := radix / 2
	pods := radix
	// In the order of GUIDs: all leaves, all spines, then the core switches.
	leaf := fabric.NodeID(pods/2*half + half/2)
	spine := fabric.NodeID(pods*half + pods/2*half + half/2)
	core := fabric.NodeID(2*pods*half + half/2*half + half/2)
	between := func(s, t fabric.NodeID) []fabric.PortID {
		ports, to := f.SwitchLinks(s)
		for i, p := range ports {
			if to[i] == t {
				return []fabric.PortID{p}
			}
		}
		return nil
	}
	all := func(s fabric.NodeID) []fabric.PortID { return slices.Collect(f.Cabled(s)) }
	return []treeFailure{
		{"leaf-spine", between(leaf, spine)},
		{"spine-core", between(spine, core)},
		{"leaf", all(leaf)},
		{"spine", all(spine)},
		{"core", all(core)},
	}
}
