package mesh

import (
	"fmt"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/sminterface/ibsim/ibsimtest"
)

// openSMDor is the tables of the dor engine of the real OpenSM, on ibsim.
func openSMDor(t *testing.T, f *fabric.Fabric) *lft.Routing {
	t.Helper()
	tables, run := ibsimtest.Route(t, f, "dor")
	if run.Engine != "dor" {
		t.Fatalf("OpenSM took the engine %q", run.Engine)
	}
	return &lft.Routing{Engine: "OpenSM's dor", Fabric: f, Tables: tables}
}

// TestOpenSMDor compares with OpenSM's own dimension-order engine: the same
// hops for every pair of a switch and a LID. On a torus, whose ties OpenSM may
// decide as it likes, hops are the same as well, but OpenSM's paths close
// cycles.
func TestOpenSMDor(t *testing.T) {
	for _, tt := range []struct {
		dims  []int
		wrap  bool
		cycle bool
	}{
		{[]int{4, 4}, false, false},
		{[]int{3, 4, short.Of(5, 2)}, false, false},
		{[]int{5, 5}, true, true},
	} {
		t.Run(fmt.Sprintf("%s, wrap %v", times(tt.dims), tt.wrap), func(t *testing.T) {
			wrap := make([]bool, len(tt.dims))
			for d := range wrap {
				wrap[d] = tt.wrap
			}
			g := generated(t, Spec{Dims: tt.dims, Wrap: wrap, Hosts: 1}, lft.LIDOptions{})
			ours, theirs := routed(t, g, lft.Options{}), openSMDor(t, g.Fabric)
			for s := range fabric.NodeID(g.Fabric.NumSwitches()) {
				for lid := fabric.LID(1); lid <= g.Fabric.MaxLID(); lid++ {
					a, ok1 := walk(t, ours, s, lid)
					b, ok2 := walk(t, theirs, s, lid)
					if !ok1 || !ok2 || len(a) != len(b) {
						t.Fatalf("N(%v) to LID %d: %d hops (%v), OpenSM %d (%v)", g.Coord(s), lid, len(a), ok1, len(b), ok2)
					}
				}
			}
			if waitInCycle(t, ours) {
				t.Error("our channels wait for each other in a cycle")
			}
			if waitInCycle(t, theirs) != tt.cycle {
				t.Errorf("OpenSM's channels wait for each other in a cycle: %v, want %v", !tt.cycle, tt.cycle)
			}
		})
	}
}
