package mesh

import (
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// TestCombDependencies has the rest of G-X13: XY unicast together with multicast
// on combs, whose masks join all columns to a trunk row. What that adds to XY is
// the turns from a column into the trunk row. With one trunk row for all groups
// there is no cycle; with two there is one, on 2x2 already.
func TestCombDependencies(t *testing.T) {
	for _, tt := range []struct {
		side, dependencies int
		trunks             []int
		cycle              bool
	}{
		{4, 128, []int{1}, false},
		{8, 640, []int{4}, false},
		{16, 2816, []int{7}, false},
		{4, 140, []int{1, 2}, true},
		{2, 16, []int{0, 1}, true},
	} {
		g := generated(t, Spec{Dims: []int{tt.side, tt.side}, Hosts: 1}, lft.LIDOptions{})
		deps := make(map[[2]fabric.PortID]bool)
		r := routed(t, g, lft.Options{})
		for s := range fabric.NodeID(g.Fabric.NumSwitches()) {
			for _, p := range g.Fabric.CAPorts() {
				path, ok := walk(t, r, s, g.Fabric.LID(p))
				if !ok {
					t.Fatal("XY does not reach all")
				}
				for i := 1; i < len(path); i++ {
					deps[[2]fabric.PortID{path[i-1], path[i]}] = true
				}
			}
		}
		for _, row := range tt.trunks {
			for x := range tt.side {
				s := g.At(x*tt.side + row)
				for _, from := range []Dir{North, South} {
					n := g.Neighbor(s, from)
					if n == fabric.NoNode {
						continue
					}
					for _, to := range []Dir{East, West} {
						for _, out := range g.Ports(s, to) {
							deps[[2]fabric.PortID{g.Ports(n, from.Opposite())[0], out}] = true
						}
					}
				}
			}
		}
		if len(deps) != tt.dependencies {
			t.Errorf("%dx%d, trunk rows %v: %d dependencies, want %d", tt.side, tt.side, tt.trunks, len(deps), tt.dependencies)
		}
		if got := closed(deps); got != tt.cycle {
			t.Errorf("%dx%d, trunk rows %v: cycle %v, want %v", tt.side, tt.side, tt.trunks, got, tt.cycle)
		}
	}
}

// closed says whether dependencies close a cycle: whether some are left once
// all channels that nothing waits for are taken away, again and again.
func closed(deps map[[2]fabric.PortID]bool) bool {
	for {
		waits := make(map[fabric.PortID]bool)
		for d := range deps {
			waits[d[0]] = true
		}
		before := len(deps)
		for d := range deps {
			if !waits[d[1]] {
				delete(deps, d)
			}
		}
		if len(deps) == before {
			return before > 0
		}
	}
}
