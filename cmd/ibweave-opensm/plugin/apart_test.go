package plugin

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
)

// TestApart routes a tree, then with a leaf that no cable joins for a sweep, as OpenSM has it that lost packets, and the whole
// again: the entries of the other hosts stay as they are, in both steps.
func TestApart(t *testing.T) {
	for _, engine := range []string{"updn", "fattree", "layered", "minhop"} {
		t.Run(engine, func(t *testing.T) {
			f, err := gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2})
			f = withLIDs(t, f, err)
			o := open(t, "rebalance: 1000\n")
			leaf := fabric.NodeID(0)
			if out, _ := f.SwitchLinks(leaf); len(out) == 8 {
				leaf = f.Owner(f.Peer(out[0]))
			}
			cables, _ := f.SwitchLinks(leaf)
			g := f.Without(cables...)
			var was *Tables
			for i, h := range []*fabric.Fabric{f, g, f} {
				got := short.Must(o.Route(o.engine(engine), snapshotOf(h, rand.New(rand.NewPCG(1, 2)))))(t)
				o.Written(got)
				o.SubnetUp()
				if o.last != nil {
					o.last.Wait()
				}
				line := o.lines[len(o.lines)-1]
				if was != nil {
					if strings.Contains(line, "from scratch") || !got.Step.Kept {
						t.Errorf("step %d: %s", i, line)
					}
					for s := range fabric.NodeID(f.NumSwitches()) {
						for l, p := range f.LIDPorts() {
							if s == leaf || p == fabric.NoPort || f.IsSwitch(f.Owner(p)) || f.Owner(f.Peer(p)) == leaf {
								continue
							}
							if a, b := was.LFT(s)[l], got.LFT(s)[l]; a != b {
								t.Errorf("step %d: switch %d has port %d for LID %d, and had %d", i, s, b, l, a)
							}
						}
					}
				}
				was = got
			}
		})
	}
}
