package layered_test

import (
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
)

// TestKeepHosts: when a host goes and comes back no entry and no SL for others changes, on one lane
// and on several.
func TestKeepHosts(t *testing.T) {
	tree := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2}))(t)
	torus := short.Must(mesh.Generate(mesh.Spec{Dims: []int{5, short.Of(5, 4)}, Wrap: []bool{true, true}, Hosts: 2}))(t)
	for name, f := range map[string]*fabric.Fabric{"one lane": tree, "lanes": torus} {
		f := short.Must(lft.AssignLIDs(f, lft.LIDOptions{LMC: 1}))(t)
		before, _, vls := routed(t, f, lft.Options{})
		if (vls > 1) != (name == "lanes") {
			t.Fatalf("%s: %d VLs", name, vls)
		}
		for _, gone := range []fabric.PortID{f.CAPorts()[0], f.CAPorts()[len(f.CAPorts())/2]} {
			less, _, _ := routed(t, f.Without(gone), lft.Options{Previous: before})
			again, _, _ := routed(t, f, lft.Options{Previous: less})
			for i, r := range []*lft.Routing{less, again} {
				if !r.Kept {
					t.Errorf("%s: step %d: routed from scratch: %q", name, i, r.Notes)
				}
				for s := range fabric.NodeID(f.NumSwitches()) {
					for lid, p := range f.LIDPorts() {
						if p == fabric.NoPort || p == gone {
							continue
						}
						short.MustEqual(t, before.Tables.Row(s)[lid], r.Tables.Row(s)[lid], name, "step", i, "switch", s, "has another port for LID", lid)
						if before.PathSLs != nil && before.PathSLs.Row(s)[lid] != r.PathSLs.Row(s)[lid] {
							t.Fatalf("%s: step %d: switch %d has another SL for LID %d", name, i, s, lid)
						}
					}
				}
			}
		}
		// A cable between switches is another matter on several lanes.
		cables, _ := f.SwitchLinks(0)
		if less, _, _ := routed(t, f.Without(cables[0]), lft.Options{Previous: before}); less.Kept != (vls == 1) {
			t.Errorf("%s: kept %v after a cable is gone: %q", name, less.Kept, less.Notes)
		}
	}
}
