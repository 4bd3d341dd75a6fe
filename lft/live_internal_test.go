package lft

import (
	"math/rand/v2"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
)

// TestLiveLoads: after each failure and return the loads, the distances and the order
// are those that somebody finds who only sees the tables.
func TestLiveLoads(t *testing.T) {
	whole, err := gen.Irregular(gen.IrregularSpec{Switches: 16, Degree: 4, Hosts: 25, Seed: 4})
	if err == nil {
		whole, err = AssignLIDs(whole, LIDOptions{LMC: 1})
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := Minhop{}.Route(t.Context(), whole, Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, ok := NewLive(Minhop{}, r)
	if !ok {
		t.Fatal("not to be followed")
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
		f, err := gen.Remaining(whole, cut...)
		if err != nil {
			t.Fatal(err)
		}
		if !l.Follow(f, 0) {
			t.Fatal("not followed")
		}
		other, ok := NewLive(Minhop{}, l.Routing(nil), whole)
		if !ok || len(other.broken) > 0 {
			t.Fatalf("step %d: entries of LIDs %v are not those of the engine", step, other.broken)
		}
		for s := range fabric.NodeID(f.NumSwitches()) {
			a, b := l.view.Slot[s], other.view.Slot[s]
			for num := range int32(f.Node(s).NumPorts) + 1 {
				if got, want := l.load[l.frame.Base[a]+num], other.load[other.frame.Base[b]+num]; got != want {
					t.Fatalf("step %d: load on %s is %d, want %d", step, f.PortName(f.Port(s, fabric.PortNum(num))), got, want)
				}
			}
		}
		if got, want := l.MaxLoad(), other.MaxLoad(); got != want {
			t.Fatalf("step %d: most load %d, want %d", step, got, want)
		}
	}
}

// TestLiveShare: when a cable comes back, only switches get other entries that could not
// keep them or that now send over it; and some do.
func TestLiveShare(t *testing.T) {
	whole, err := gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2})
	if err == nil {
		whole, err = AssignLIDs(whole, LIDOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := Minhop{}.Route(t.Context(), whole, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for leaf := range fabric.NodeID(8) {
		cables, _ := whole.SwitchLinks(leaf)
		cable := cables[int(leaf)%len(cables)]
		damaged, err := gen.Remaining(whole, cable)
		if err != nil {
			t.Fatal(err)
		}
		l, ok := NewLive(Minhop{}, r)
		if !ok || !l.Follow(damaged, 0) {
			t.Fatal("not followed")
		}
		without := l.Routing(nil).Tables
		if !l.Follow(whole, 0) {
			t.Fatal("not followed")
		}
		with := l.Routing(nil).Tables
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
				if slot := l.view.Slot[s]; !over && l.proper(slot, was, l.view.Dest[lid]) {
					t.Fatalf("switch %d sends LID %d by %d instead of %d, which was as good", s, lid, is, was)
				}
			}
		}
		if moved == 0 {
			t.Fatal("the cable has no share")
		}
		if got, want := l.load[l.frame.Base[l.view.Slot[leaf]]+int32(whole.Num(cable))], l.MaxLoad()/l.unit[0]/2; uint64(got) < want {
			t.Errorf("%d routes on the cable that is back, at most %d on others", got, want*2)
		}
	}
}
