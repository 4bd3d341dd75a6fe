package adaptive_test

import (
	"testing"

	"github.com/ibweave/ibweave/fabric"
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
