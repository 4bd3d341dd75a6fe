package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/sminterface/subnet"
)

// unbalanced is a configuration by which the plugin asks for no sweeps.
const unbalanced = "rebalance: 100\n"

// After a cable has gone, the entries for LIDs whose packets did not use it are those of
// before in all switches, and in blocks few are others; and groups are reached all the
// same. When it is back, entries that lead elsewhere since then may stay.
func TestKeptTables(t *testing.T) {
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: short.Of(6, 4), Levels: 3})
	s := start(t, f, err)
	d := s.stay(t, "ibweave-updn", unbalanced)
	c := s.dial(t)
	s.join(t, c, 2)
	d.sweep()
	d.wait("-> SUBNET UP\n", 2)
	before := s.have(t, c)
	twin := short.Must(ibsim.NewTwin(s.f))(t)
	cables, _ := s.f.SwitchLinks(4) // the order of the switches does not hang on it
	cable := cables[1]
	port := func(p fabric.PortID) string { return fmt.Sprintf("%q[%d]", twin.NodeID(s.f.Owner(p)), s.f.Num(p)) }
	short.Check(t, s.Console(t.Context(), "Unlink "+port(cable), nil))
	d.sweep()
	d.wait("-> SUBNET UP\n", 3)
	after := s.have(t, c)
	entries, blocks := differ(s.f, before, after)
	if len(entries) == 0 {
		t.Fatal("nothing has changed")
	}
	if log := s.ownLog(t); !strings.Contains(log, `"kept": true`) {
		t.Fatalf("nothing was kept: %s", log)
	}
	used := usersOf(s.f, before.LFT, cable)
	for _, e := range entries {
		if !used[e.lid] {
			t.Errorf("switch %d has another entry for LID %d, whose packets did not use the cable", e.s, e.lid)
		}
	}
	want := fmt.Sprintf(" rerouted, %d blocks changed", blocks)
	if log := d.log(); !strings.Contains(log, want) {
		t.Errorf("OpenSM's log has no line with %q: %q", want, ours(strings.Split(log, "\n")))
	}
	g := s.f.Without(cable)
	if !slices.Equal(after.MFT.MLIDs(), before.MFT.MLIDs()) {
		t.Errorf("MLIDs %v, before %v", after.MFT.MLIDs(), before.MFT.MLIDs())
	}
	forest := lft.NewForest(g)
	for lid, p := range g.LIDPorts() {
		if p == fabric.NoPort {
			continue
		}
		if forest.FindTree(after.LFT, fabric.LID(lid)); len(forest.Order) != g.NumSwitches() {
			t.Errorf("%d of %d switches deliver LID %d", len(forest.Order), g.NumSwitches(), lid)
		}
	}

	short.Check(t, s.Console(t.Context(), "Link "+port(cable)+" "+port(s.f.Peer(cable)), nil))
	d.sweep()
	d.wait("-> SUBNET UP\n", 4)
	back := s.have(t, c)
	used = usersOf(s.f, back.LFT, cable)
	entries, _ = differ(s.f, after, back)
	for _, e := range entries {
		if !used[e.lid] {
			t.Errorf("switch %d has another entry for LID %d, whose packets do not use the cable that is back", e.s, e.lid)
		}
	}
	if len(entries) == 0 {
		t.Error("the cable that is back has no share")
	}
	if log := d.log(); strings.Contains(log, "ibweave: ERR") {
		t.Errorf("the plugin says %q", ours(strings.Split(log, "\n")))
	}
}

type entryAt struct {
	s   fabric.NodeID
	lid int
}

// differ lists the entries that are not the same, and counts the blocks that have some.
func differ(f *fabric.Fabric, a, b *subnet.Tables) (list []entryAt, blocks int) {
	for s := range fabric.NodeID(f.NumSwitches()) {
		last := -1
		for lid := range int(f.MaxLID()) + 1 {
			if a.LFT.Row(s)[lid] != b.LFT.Row(s)[lid] {
				list = append(list, entryAt{s, lid})
				if lid/lft.BlockSize != last {
					last = lid / lft.BlockSize
					blocks++
				}
			}
		}
	}
	return list, blocks
}

// usersOf says of each LID whether some switch sends it over a cable.
func usersOf(f *fabric.Fabric, t *lft.Tables, cable fabric.PortID) []bool {
	used := make([]bool, int(f.MaxLID())+1)
	for _, p := range []fabric.PortID{cable, f.Peer(cable)} {
		for lid := range used {
			used[lid] = used[lid] || t.Row(f.Owner(p))[lid] == f.Num(p)
		}
	}
	return used
}
