package plugin

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/lft"
)

// TestRebalanced: after a failure the small repair is installed at once, and the next sweeps of the
// same subnet come to balanced tables by small steps, once the subnet was up.
func TestRebalanced(t *testing.T) {
	f, err := gen.Tree(gen.TreeSpec{Ports: 64, Pods: []int{20}, Hosts: 16, Spines: 8, Parallel: 2})
	f = withLIDs(t, f, err)
	o := open(t, "rebalance: 1.05\n")
	route := func(s *Snapshot) *Tables {
		t.Helper()
		got, err := o.Route(o.engine("updn"), s)
		if err != nil {
			t.Fatal(err)
		}
		o.Written(got)
		return got
	}
	route(snapshotOf(f, rand.New(rand.NewPCG(1, 2))))
	cables, _ := f.SwitchLinks(3)
	g := f.Without(cables[0], cables[5])
	take := func() *Snapshot { return snapshotOf(g, rand.New(rand.NewPCG(1, 2))) }
	first := route(take())
	if !first.Step.Kept || first.Rebalanced {
		t.Fatalf("%+v", first.Step)
	}
	if again := route(take()); again.Routing != first.Routing {
		t.Error("rebalanced before the subnet was up")
	}
	o.SubnetUp()
	o.last.Wait()
	last, steps := first, 0
	for ; steps < 20; steps++ {
		next := route(take())
		if !next.Rebalanced || next.Routing == last.Routing {
			break
		}
		if n := next.Step.Changes.Blocks; n == 0 || n > 64 || next.generation == last.generation {
			t.Errorf("step %d: %d blocks", steps, n)
		}
		last = next
	}
	scratch, err := o.engines[o.engine("updn")].Route(t.Context(), g, lft.Options{})
	if err != nil {
		t.Fatal(err)
	}
	was, is, want := lft.GreatestLoad(g, first.Routing.Tables), lft.GreatestLoad(g, last.Routing.Tables), lft.GreatestLoad(g, scratch.Tables)
	if steps == 0 || is >= was || float64(is) > 1.05*float64(want) {
		t.Errorf("%d steps: load %d, at first %d, from scratch %d", steps, is, was, want)
	}
	if log := o.ownLog(t); strings.Count(log, `"rebalanced": true`) != steps {
		t.Errorf("%d steps: %s", steps, log)
	}
	if line := o.lines[len(o.lines)-1]; !strings.Contains(line, " routes on a link") {
		t.Errorf("OpenSM's log has %q", line)
	}
}
