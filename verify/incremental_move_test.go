package verify_test

import (
	"fmt"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

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
}
