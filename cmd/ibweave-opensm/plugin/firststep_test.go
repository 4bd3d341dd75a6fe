package plugin

import (
	"flag"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
)

var failures = flag.Int("failures", short.Usual(60, 20), "failures of cables in TestFirstStep")

// TestFirstStep fails one cable at a time: the greatest load of the first step is within its bound of that
// from scratch, or the line of OpenSM's log names the cable. The plugin does not route from scratch first, and takes
// the load of the last routing from scratch for it, so the bound may be exceeded by a tenth.
func TestFirstStep(t *testing.T) {
	over, routed, little, scratched, most := 0, 0, 0, 0, 0.0
	cases := givenFabrics(t, []fabricCase{
		{"three levels", "updn", func() (*fabric.Fabric, error) { return gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 3}) }},
		{"two levels", "fattree", func() (*fabric.Fabric, error) { return gen.FatTree(gen.FatTreeSpec{Radix: 12, Levels: 2}) }},
		{"parallel", "layered", func() (*fabric.Fabric, error) {
			return gen.Tree(gen.TreeSpec{Ports: 64, Pods: []int{12}, Hosts: 16, Spines: 6, Parallel: 2})
		}},
		{"irregular", "updn", func() (*fabric.Fabric, error) {
			return gen.Irregular(gen.IrregularSpec{Switches: 40, Degree: 4, Hosts: 80, Seed: 3})
		}},
		{"minhop", "minhop", func() (*fabric.Fabric, error) {
			return gen.Irregular(gen.IrregularSpec{Switches: 40, Degree: 5, Hosts: 80, Seed: 5})
		}},
	})
	for i, tc := range cases {
		f, err := tc.make()
		f = withLIDs(t, f, err)
		rnd := rand.New(rand.NewPCG(11, 2))
		n := short.Of(*failures, 5)
		for range n*(i+1)/len(cases) - n*i/len(cases) {
			out, _ := f.SwitchLinks(fabric.NodeID(rnd.IntN(f.NumSwitches())))
			if len(out) == 0 {
				continue
			}
			cut := out[rnd.IntN(len(out))]
			g := f.Without(cut)
			if len(g.Components().List) > 1 {
				continue
			}
			o := open(t, "log: {file: /dev/null}\n")
			var got *Tables
			for _, h := range []*fabric.Fabric{f, g} {
				if got, err = o.Route(o.engine(tc.engine), snapshotOf(h, rand.New(rand.NewPCG(1, 2)))); err != nil {
					t.Fatal(err)
				}
				o.Written(got)
				o.SubnetUp()
				o.last.Wait()
			}
			o.Close()
			if !got.Step.Kept {
				scratched++
				continue
			}
			routed++
			scratch, err := o.engines[o.engine(tc.engine)].Route(t.Context(), g, lft.Options{})
			if err != nil {
				t.Fatal(err)
			}
			times := float64(lft.GreatestLoad(g, got.Routing.Tables)) / float64(lft.GreatestLoad(g, scratch.Tables))
			line := o.lines[len(o.lines)-1]
			if x := got.Step.Over; x != nil {
				over++
				if !strings.Contains(line, "the cable at "+got.Fabric.PortName(x.Port)+" has ") {
					t.Errorf("no cable in %q", line)
				}
				continue
			}
			most = max(most, times)
			if times > lft.FirstStepLoad {
				little++
			}
			if times > 1.1*lft.FirstStepLoad {
				t.Errorf("%s by %s without %s: %.2f times the load from scratch, and the log has %q", tc.name, tc.engine, f.PortName(cut), times, line)
			}
		}
		t.Logf("%s by %s: %d so far", tc.name, tc.engine, routed)
	}
	t.Logf("%d fabrics with an engine, %d first steps, %d of them above their bound, and the log says so; of the others %d up to a tenth above, the greatest %.2f times the load from scratch; %d from scratch",
		len(cases), routed, over, little, most, scratched)
}
