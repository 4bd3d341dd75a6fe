package adaptive_test

import (
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
)

// TestChoices reads back what was set: states, groups at both ends of their range, and the
// sets of ports.
func TestChoices(t *testing.T) {
	ports := lft.NewTables(2, 9)
	ports.Row(1)[7] = 200
	plft := adaptive.NewPLFT(ports)
	groups := make([]adaptive.Group, adaptive.MaxGroups)
	last := &groups[adaptive.MaxGroups-1]
	for i, p := range []fabric.PortNum{1, 64, 254} {
		last.Subgroups = append(last.Subgroups, adaptive.Subgroup{Number: i})
		last.Subgroups[i].Ports.Add(p)
	}
	tables := &adaptive.Tables{Groups: [][]adaptive.Group{nil, groups}, PLFTs: []*adaptive.PLFT{plft}}

	for _, c := range []struct {
		state adaptive.State
		group int
		want  int // ports
	}{
		{adaptive.Static, -1, 1}, {adaptive.Free, -1, 1}, {adaptive.HBF, 0, 1},
		{adaptive.Free, adaptive.MaxGroups - 1, 4}, {adaptive.Static, adaptive.MaxGroups - 1, 1},
	} {
		plft.Set(1, 7, c.state, c.group)
		if state, group := plft.At(1, 7); state != c.state || group != c.group {
			t.Errorf("set %v %d, got %v %d", c.state, c.group, state, group)
		}
		if got := tables.Choices(0, 1, 7); got.Len() != c.want || !got.Has(200) || got.Has(254) != (c.want == 4) {
			t.Errorf("%v %d: %v, want %d ports", c.state, c.group, got, c.want)
		}
	}
	if state, group := plft.At(0, 7); state != adaptive.Static || group != -1 {
		t.Errorf("an entry that was not set: %v %d", state, group)
	}
	if got := tables.Choices(0, 0, 7); got.Len() != 0 {
		t.Errorf("no path: %v", got)
	}
}

// TestMeasure has a leaf with two ports up, and three of its entries with a choice: two of a group of both
// ports, and one of a group of the port that is not its static one.
func TestMeasure(t *testing.T) {
	f := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2}))(t)
	f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{}))(t)
	tables := short.Must(lft.Minhop{}.Route(t.Context(), f, lft.Options{}))(t).Tables
	links, _ := f.SwitchLinks(0)
	plft, groups := adaptive.NewPLFT(tables), make([]adaptive.Group, 2)
	var both, other adaptive.PortSet
	far := f.CAPorts()[2:5]
	for _, p := range links {
		if both.Add(f.Num(p)); tables.Row(0)[f.LID(far[2])] != f.Num(p) {
			other.Add(f.Num(p))
		}
	}
	for i, ports := range []adaptive.PortSet{both, other} {
		groups[i].Subgroups = []adaptive.Subgroup{{Ports: ports}}
	}
	for i, p := range far {
		plft.Set(0, f.LID(p), adaptive.Free, i/2)
	}
	all := make([][]adaptive.Group, f.NumSwitches())
	all[0] = groups
	got := adaptive.Measure(f, &adaptive.Tables{Groups: all, PLFTs: []*adaptive.PLFT{plft}})
	// Of 14 LIDs each of four leaves has 3 itself, and each of two spines 1.
	short.Equal(t, got, adaptive.Stats{Entries: 4*11 + 2*13, Adaptive: 3, Ports: 2, Widest: 2, MaxGroups: 2})
}
