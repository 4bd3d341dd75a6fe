package lft

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
)

// snapshot is f by the numbers of x.
func snapshot(t *testing.T, x *fabric.StableIndex, f *fabric.Fabric) *fabric.Snapshot {
	t.Helper()
	v, ok := x.Snapshot(f)
	if !ok {
		t.Fatal("a switch without a slot")
	}
	return v
}

// TestIncrementalLoads: after each failure and return the loads, the distances and the order
// are those found from the tables alone.
func TestIncrementalLoads(t *testing.T) {
	whole := short.Must(gen.Irregular(gen.IrregularSpec{Switches: 16, Degree: 4, Hosts: 25, Seed: 4}))(t)
	whole = short.Must(AssignLIDs(whole, LIDOptions{LMC: 1}))(t)
	r := short.Must(Minhop{}.Route(t.Context(), whole, Options{}))(t)
	x := fabric.NewStableIndex(whole)
	l, ok := NewIncremental(Minhop{}, x, r)
	if !ok {
		t.Fatal("cannot be updated")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for step := range 60 {
		var cut []fabric.PortID
		for range rng.IntN(5) {
			cut = append(cut, fabric.PortID(rng.IntN(whole.NumPorts())))
		}
		if rng.IntN(3) == 0 {
			s := fabric.NodeID(rng.IntN(whole.NumSwitches()))
			for num := range whole.Node(s).NumPorts {
				cut = append(cut, whole.Port(s, num+1))
			}
		}
		f := short.Must(gen.Remaining(whole, cut...))(t)
		if !l.Update(snapshot(t, x, f), 0) {
			t.Fatal("not updated")
		}
		other, ok := NewIncremental(Minhop{}, fabric.NewStableIndex(f, whole), l.Routing())
		if !ok || len(other.uncounted) > 0 {
			t.Fatalf("step %d: entries of LIDs %v are not those of the engine", step, other.uncounted)
		}
		for s := range fabric.NodeID(f.NumSwitches()) {
			a, b := l.now.Slot[s], other.now.Slot[s]
			hops, down := l.dist.distancesTo(a)
			wantHops, wantDown := other.dist.distancesTo(b)
			for to, slot := range l.now.Slot {
				if at := other.now.Slot[to]; hops[slot] != wantHops[at] || down[slot] != wantDown[at] {
					t.Fatalf("step %d: switch %d is %d links from %d, %t; want %d, %t", step, to, hops[slot], s, down[slot], wantHops[at], wantDown[at])
				}
			}
			for num := range int32(f.Node(s).NumPorts) + 1 {
				if got, want := l.load[l.index.Base[a]+num], other.load[other.index.Base[b]+num]; got != want {
					t.Fatalf("step %d: load on %s is %d, want %d", step, f.PortName(f.Port(s, fabric.PortNum(num))), got, want)
				}
			}
		}
		if got, want := l.MaxLoad(), other.MaxLoad(); got != want {
			t.Fatalf("step %d: most load %d, want %d", step, got, want)
		}
	}
}

// TestIncrementalAlone: switches go and come while others have no cable to a switch, as one of which answers were lost: all have
// entries of the engine, though the distances from a switch that comes back are those from before.
func TestIncrementalAlone(t *testing.T) {
	whole := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 3}))(t)
	whole = short.Must(AssignLIDs(whole, LIDOptions{}))(t)
	r := short.Must(Minhop{}.Route(t.Context(), whole, Options{}))(t)
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 9))
		x := fabric.NewStableIndex(whole)
		l, ok := NewIncremental(Minhop{}, x, r)
		if !ok {
			t.Fatal("cannot be updated")
		}
		for step := range 8 {
			gone, alone := make(map[fabric.NodeID]bool), fabric.NodeID(rng.IntN(whole.NumSwitches()))
			for range rng.IntN(6) {
				gone[fabric.NodeID(rng.IntN(whole.NumSwitches()))] = true
			}
			var nodes []fabric.NodeID
			for n := range fabric.NodeID(whole.NumNodes()) {
				if !gone[n] {
					nodes = append(nodes, n)
				}
			}
			cut, _ := whole.SwitchLinks(alone)
			f := short.Must(whole.Without(cut...).Part(nodes))(t)
			if !l.Update(snapshot(t, x, f), 0) {
				t.Fatal("not updated")
			}
			other, ok := NewIncremental(Minhop{}, fabric.NewStableIndex(f, whole), l.Routing())
			if !ok || len(other.uncounted) > 0 {
				t.Fatalf("seed %d, step %d: entries of LIDs %v are not those of the engine", seed, step, other.uncounted)
			}
		}
	}
}

// TestTry: after a failure only entries have changed that could not stay, and nothing is
// left of them once they are undone.
func TestTry(t *testing.T) {
	whole := short.Must(gen.Irregular(gen.IrregularSpec{Switches: 16, Degree: 4, Hosts: 25, Seed: 4}))(t)
	whole = short.Must(AssignLIDs(whole, LIDOptions{LMC: 1}))(t)
	r := short.Must(Minhop{}.Route(t.Context(), whole, Options{}))(t)
	x := fabric.NewStableIndex(whole)
	l, ok := NewIncremental(Minhop{}, x, r)
	if !ok {
		t.Fatal("cannot be updated")
	}
	before := l.Clone()
	rng := rand.New(rand.NewPCG(3, 4))
	changed := 0
	for range 60 {
		var cut []fabric.PortID
		for range 1 + rng.IntN(3) {
			cut = append(cut, fabric.PortID(rng.IntN(whole.NumPorts())))
		}
		v := snapshot(t, x, whole.Without(cut...))
		if l.startJournal(); !l.Update(v, 0) {
			t.Fatal("not updated")
		}
		for s := range int32(x.Slots()) {
			for lid, dest := range v.Dest {
				if was := before.entry(s, int32(lid)); dest != fabric.NoDestination && was != l.entry(s, int32(lid)) {
					if changed++; l.mayStay(s, was, dest) {
						t.Fatalf("switch %d sends LID %d by %d instead of %d, which was as good", s, lid, l.entry(s, int32(lid)), was)
					}
				}
			}
		}
		l.undo()
		if !slices.Equal(l.rows, before.rows) || !slices.Equal(l.load, before.load) || !slices.Equal(l.dist.hops, before.dist.hops) ||
			!slices.Equal(l.dist.down, before.dist.down) || l.now != before.now || l.journal != nil {
			t.Fatal("something is left of what was undone")
		}
	}
	if changed == 0 {
		t.Error("no entry changes, or the clone's do")
	}
}

// TestIncrementalShare: when a cable comes back, only switches get other entries that could not
// keep them or that now send over it; and some do.
func TestIncrementalShare(t *testing.T) {
	whole := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2}))(t)
	whole = short.Must(AssignLIDs(whole, LIDOptions{}))(t)
	r := short.Must(Minhop{}.Route(t.Context(), whole, Options{}))(t)
	for leaf := range fabric.NodeID(8) {
		cables, _ := whole.SwitchLinks(leaf)
		cable := cables[int(leaf)%len(cables)]
		damaged := short.Must(gen.Remaining(whole, cable))(t)
		x := fabric.NewStableIndex(whole)
		l, ok := NewIncremental(Minhop{}, x, r)
		if !ok || !l.Update(snapshot(t, x, damaged), 0) {
			t.Fatal("not updated")
		}
		without := l.Routing().Tables
		if !l.Update(snapshot(t, x, whole), 0) {
			t.Fatal("not updated")
		}
		with := l.Routing().Tables
		moved := 0
		for s := range fabric.NodeID(whole.NumSwitches()) {
			for lid := range whole.LIDPorts() {
				was, is := without.Row(s)[lid], with.Row(s)[lid]
				if was == is {
					continue
				}
				moved++
				over := false
				for at := s; !over; {
					out, peer := with.Step(whole, at, fabric.LID(lid))
					over = out == cable || peer == cable
					if at = whole.Owner(peer); !whole.IsSwitch(at) {
						break
					}
				}
				if slot := l.now.Slot[s]; !over && l.mayStay(slot, was, l.now.Dest[lid]) {
					t.Fatalf("switch %d sends LID %d by %d instead of %d, which was as good", s, lid, is, was)
				}
			}
		}
		if moved == 0 {
			t.Fatal("the cable has no share")
		}
		if got, want := l.load[l.index.Base[l.now.Slot[leaf]]+int32(whole.Num(cable))], l.MaxLoad()/l.unit[0]/2; uint64(got) < want {
			t.Errorf("%d routes on the cable that is back, at most %d on others", got, want*2)
		}
	}
}
