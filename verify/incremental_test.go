package verify_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ibweave/ibweave/audit/diff"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/updown"
	"github.com/ibweave/ibweave/verify"
)

var checkedSteps = flag.Int("trials", short.Usual(100, 35), "steps of TestIncrementalChecker on each fabric")

// sameResult compares what an IncrementalChecker says with what Check says of the same.
func sameResult(t *testing.T, got, want *verify.Result, byChange bool) {
	t.Helper()
	if byChange {
		want.Balance.Idle = nil
		want.Edit(func(list []verify.Finding) []verify.Finding {
			var kept []verify.Finding
			for _, f := range list {
				if f.Severity != verify.Note {
					kept = append(kept, f)
				}
			}
			return kept
		})
	}
	if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(verify.Result{}, verify.Finding{})); d != "" {
		t.Fatalf("by change %v, from scratch - and incremental +:\n%s", byChange, d)
	}
}

func changingFabrics(t *testing.T) map[string]*fabric.Fabric {
	t.Helper()
	list := make(map[string]*fabric.Fabric)
	add := func(name string, f *fabric.Fabric, err error) {
		t.Helper()
		if err == nil {
			f, err = lft.AssignLIDs(f, lft.LIDOptions{LMC: 1})
		}
		short.Check(t, err)
		list[name] = f
	}
	f, err := gen.Irregular(gen.IrregularSpec{Switches: 12, Degree: 4, Hosts: 14, Seed: 2})
	add("irregular", f, err)
	f, err = gen.Options{AggregationNodes: true}.Apply(f)
	add("irregular with aggregation nodes", f, err)
	f, err = gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 3})
	add("fat tree", f, err)
	f, err = gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2})
	if err == nil {
		f, err = gen.Options{AggregationNodes: true}.Apply(f) // spines have nothing else
	}
	add("fat tree with aggregation nodes", f, err)
	f, err = mesh.Generate(mesh.Spec{Dims: []int{4, 3}, Wrap: []bool{true, false}, Hosts: 2})
	add("mesh", f, err)
	f, err = gen.Lattice(24, 3)
	add("lattice", f, err)
	// Two cables between each two neighbours: without one, all are as near as before.
	p := short.Must(gen.NewPlan(6, 12))(t)
	for i := range 6 {
		p.Switch(8, fmt.Sprint("switch ", i))
	}
	for i := range 6 {
		p.Cable(i, 1, (i+1)%6, 3)
		p.Cable(i, 2, (i+1)%6, 4)
		p.Cable(p.CA(1, fmt.Sprint("host ", i)), 1, i, 5)
		p.Cable(p.CA(1, fmt.Sprint("other host ", i)), 1, i, 6)
	}
	f, err = p.Fabric()
	add("ring of two cables", f, err)
	return list
}

// recabled is f with two cables between switches that have exchanged an end each.
func recabled(t *testing.T, f *fabric.Fabric, rng *rand.Rand) *fabric.Fabric {
	t.Helper()
	var cables []fabric.PortID
	for s := range fabric.NodeID(f.NumSwitches()) {
		ports, _ := f.SwitchLinks(s)
		for _, p := range ports {
			if p < f.Peer(p) {
				cables = append(cables, p)
			}
		}
	}
	a, b := cables[rng.IntN(len(cables))], cables[rng.IntN(len(cables))]
	other := map[fabric.PortID]fabric.PortID{a: f.Peer(b), b: f.Peer(a)}
	var builder fabric.Builder
	for n := range fabric.NodeID(f.NumNodes()) {
		short.Must(builder.AddNode(*f.Node(n)))(t)
		for num := range f.Node(n).NumPorts + 1 {
			p := f.Port(n, num)
			if f.PortGUID(p) == 0 && f.LID(p) == 0 {
				continue
			}
			short.Check(t, builder.SetPort(int(n), num, f.PortGUID(p), f.LID(p), f.LMC(p)))
		}
	}
	for p := range fabric.PortID(f.NumPorts()) {
		peer := f.Peer(p)
		if peer == fabric.NoPort || peer < p {
			continue
		}
		if to, ok := other[p]; ok {
			peer = to
		}
		short.Check(t, builder.Connect(int(f.Owner(p)), f.Num(p), int(f.Owner(peer)), f.Num(peer), f.Link(p)))
	}
	return short.Must(builder.Build())(t)
}

// snapshot is f by the numbers of x.
func snapshot(t *testing.T, x *fabric.StableIndex, f *fabric.Fabric) *fabric.Snapshot {
	t.Helper()
	v, ok := x.Snapshot(f)
	if !ok {
		t.Fatal("a switch without a slot")
	}
	return v
}

// TestIncrementalChecker goes on from one fabric and routing to another at random: from
// scratch, by an engine that makes credit loops, with cables elsewhere, and with entries
// that are wrong. Each time Check has to say the same. Some are only tried, and undone.
func TestIncrementalChecker(t *testing.T) {
	for name, whole := range changingFabrics(t) {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, 4))
			x := fabric.NewStableIndex(whole)
			var w verify.IncrementalChecker
			var held *fabric.Snapshot // what its tables are for
			g := whole
			var r *lft.Routing
			byChange, faults, loops := 0, 0, 0
			tried := false
			steps := short.Of(*checkedSteps, 15)
			for range steps {
				if r == nil || rng.IntN(2) == 0 {
					g = whole
					if rng.IntN(3) > 0 {
						g = whole.Without(fabric.PortID(rng.IntN(whole.NumPorts())), fabric.PortID(rng.IntN(whole.NumPorts())))
					}
					if rng.IntN(4) == 0 {
						g = recabled(t, g, rng)
					}
					var err error
					var e lft.Engine = updown.Engine{}
					if rng.IntN(4) == 0 {
						e = lft.Minhop{}
						r = nil
					}
					if r, err = e.Route(t.Context(), g, lft.Options{Previous: r}); err != nil {
						t.Fatal(err)
					}
				}
				if rng.IntN(6) == 0 { // the tables do not know of it
					g = whole.Without(fabric.PortID(rng.IntN(whole.NumPorts())))
				}
				tables := r.Tables.Clone()
				if rng.IntN(2) == 0 { // wrong entries, mostly few
					for range 1 + rng.IntN(3) {
						s := fabric.NodeID(rng.IntN(g.NumSwitches()))
						lid := 1 + rng.IntN(int(tables.MaxLID()))
						tables.Row(s)[lid] = fabric.PortNum(rng.IntN(int(g.Node(s).NumPorts) + 2))
					}
				}
				want := short.Must(verify.Check(t.Context(), &state.State{Fabric: g, Tables: tables}, verify.Options{Complete: true}))(t)
				now := snapshot(t, x, g)
				if rng.IntN(2) == 0 {
					known := w.Holds(held)
					w.Begin(held)
					r := w.Count(now, tables)
					if w.Begin(held); w.Holds(held) != known {
						t.Fatal("it did not go back")
					}
					balance := want.Balance
					balance.Idle = nil // Count has the number alone
					if r != nil {
						r.Balance.Idle = nil
					}
					if r != nil && (!cmp.Equal(r.Unicast, want.Unicast) || !cmp.Equal(r.Balance, balance) || r.LoadOn(r.Scale()) != want.GreatestLoad() || want.CreditLoops.Count+want.Management.CreditLoops > 0) {
						t.Fatalf("%+v %+v, but %+v %+v", r.Unicast, r.Balance, want.Unicast, want.Balance)
					}
					if tried = r != nil || tried; rng.IntN(2) == 0 {
						continue
					}
				}
				got, changed, err := w.Check(t.Context(), now, &state.State{Fabric: now.Fabric, Tables: tables}, verify.Options{Complete: true})
				if err != nil {
					t.Fatal(err)
				}
				if held = now; changed {
					byChange++
				}
				if got.Worst() > verify.Note {
					faults++
				}
				if got.CreditLoops.Count+got.Management.CreditLoops > 0 {
					loops++
				}
				sameResult(t, got, want, changed)
				if !changed {
					w.Start(now, tables, want)
				}
				if !changed && got.Worst() == verify.Error && rng.IntN(2) == 0 {
					// Known again, so that the next is by what changed.
					if good, err := (updown.Engine{}).Route(t.Context(), whole, lft.Options{}); err != nil {
						t.Fatal(err)
					} else if r, err := verify.Check(t.Context(), &state.State{Fabric: whole, Tables: good.Tables}, verify.Options{Complete: true}); err != nil {
						t.Fatal(err)
					} else {
						held = snapshot(t, x, whole)
						w.Start(held, good.Tables, r)
					}
				}
			}
			t.Logf("%d steps, %d by what changed, %d with faults, %d with credit loops", steps, byChange, faults, loops)
			if byChange < steps/10 || faults < steps/10 || byChange == steps || !tried {
				t.Error("that tests too little")
			}
		})
	}
}

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
	// Switches 0 and 1 send packets for 2 back to each other by their last ports, one before and one after.
	p := short.Must(gen.NewPlan(4, 1))(t)
	for i := range 4 {
		p.Switch(3, fmt.Sprint("switch ", i))
	}
	p.Cable(0, 3, 1, 3)
	p.Cable(0, 2, 2, 2)
	p.Cable(1, 2, 2, 3)
	p.Cable(1, 1, 3, 1)
	p.Cable(p.CA(1, "host"), 1, 2, 1)
	f := short.Must(lft.AssignLIDs(short.Must(p.Fabric())(t), lft.LIDOptions{}))(t)
	a := short.Must(lft.Minhop{}.Route(t.Context(), f, lft.Options{}))(t).Tables
	b, lid := a.Clone(), f.LID(f.Port(2, 0))
	a.Row(1)[lid], b.Row(0)[lid] = 3, 3
	var w verify.IncrementalChecker
	w.Start(snapshot(t, fabric.NewStableIndex(f), f), a, short.Must(verify.Check(t.Context(), &state.State{Fabric: f, Tables: a}, verify.Options{}))(t))
	if w.MayMix(b) || !w.MayMix(a) {
		t.Error("packets may go back and forth")
	}
}

// TestIncrementalCheckerMovedCable has the end of a cable go to another port of its switch: the
// dependency of switch 3's packets to switch 1 is between the same ports of switch 0 as
// before and never gone, but the channel that it waits for is another, with which there
// is a loop.
func TestIncrementalCheckerMovedCable(t *testing.T) {
	ring := func(in int) *fabric.Fabric {
		p := short.Must(gen.NewPlan(4, 4))(t)
		for i := range 4 {
			p.Switch(4, fmt.Sprint("switch ", i))
		}
		for i := range 4 {
			to := 2
			if i == 0 {
				to = in
			}
			p.Cable(i, 1, (i+1)%4, to)
			p.Cable(p.CA(1, fmt.Sprint("host ", i)), 1, i, 4)
		}
		f := short.Must(p.Fabric())(t)
		return short.Must(lft.AssignLIDs(f, lft.LIDOptions{}))(t)
	}
	// Tables of the shortest ways; across the ring from switch 0 by back, from the others
	// by port 1.
	tables := func(f *fabric.Fabric, back bool) *lft.Tables {
		tables := lft.NewTables(4, f.MaxLID())
		for lid, port := range f.LIDPorts() {
			if port == fabric.NoPort {
				continue
			}
			owner := f.Owner(port)
			to := owner
			if !f.IsSwitch(owner) {
				to = f.Owner(f.Peer(port))
			}
			for s := range fabric.NodeID(4) {
				num := fabric.PortNum(1)
				switch far := (to - s + 4) % 4; {
				case far == 0 && owner == to:
					num = 0
				case far == 0:
					num = 4
				case far == 3 || far == 2 && s == 0 && back:
					_, peers := f.SwitchLinks(s)
					links, _ := f.SwitchLinks(s)
					for i, peer := range peers {
						if peer == (s+3)%4 {
							num = f.Num(links[i])
						}
					}
				}
				tables.Row(s)[lid] = num
			}
		}
		return tables
	}
	before, after := ring(3), ring(2)
	good, bad := tables(before, true), tables(after, false)
	r, err := verify.Check(t.Context(), &state.State{Fabric: before, Tables: good}, verify.Options{Complete: true})
	if err != nil || r.Worst() > verify.Note {
		t.Fatal(r.Findings, err)
	}
	want, err := verify.Check(t.Context(), &state.State{Fabric: after, Tables: bad}, verify.Options{Complete: true})
	if err != nil || want.CreditLoops.Count != 1 {
		t.Fatalf("%d credit loops, want 1; %v", want.CreditLoops.Count, err)
	}
	x := fabric.NewStableIndex(before)
	var w verify.IncrementalChecker
	w.Start(snapshot(t, x, before), good, r)
	got, changed := short.Must2(w.Check(t.Context(), snapshot(t, x, after), &state.State{Fabric: after, Tables: bad}, verify.Options{Complete: true}))(t)
	sameResult(t, got, want, changed)
	// One entry, by which there is one more dependency, closes a loop as well.
	one := good.Clone()
	one.Row(0)[before.LID(before.Peer(before.Port(2, 4)))] = 1
	want = short.Must(verify.Check(t.Context(), &state.State{Fabric: before, Tables: one}, verify.Options{Complete: true}))(t)
	short.Equal(t, want.CreditLoops.Count, 1)
	w.Start(snapshot(t, x, before), good, r)
	got, changed = short.Must2(w.Check(t.Context(), snapshot(t, x, before), &state.State{Fabric: before, Tables: one}, verify.Options{Complete: true}))(t)
	sameResult(t, got, want, changed)
	// What it does not know it does not check by changes: lanes, ports to come, and other numbers.
	lanes := &state.State{Fabric: before, Tables: good, SL2VL: lft.NewSL2VL(before, lft.ConstantVL(0))}
	plain := &state.State{Fabric: before, Tables: good}
	for i, c := range []struct {
		s        *state.State
		complete bool
		x        *fabric.StableIndex
	}{{lanes, true, x}, {plain, false, x}, {plain, true, fabric.NewStableIndex(before)}} {
		w.Start(snapshot(t, x, before), good, r)
		_, changed = short.Must2(w.Check(t.Context(), snapshot(t, c.x, before), c.s, verify.Options{Complete: c.complete}))(t)
		short.Equal(t, changed, false, i)
	}
}
