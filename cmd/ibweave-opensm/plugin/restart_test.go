package plugin

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
)

// TestRestart compares a plugin that starts from the tables that switches have with one that
// went on: for the same fabric it changes no entry, for one with 1, 4 or 16 failures and repairs no
// more than a tenth more.
func TestRestart(t *testing.T) {
	own := []fabricCase{
		{"two levels", "fattree", func() (*fabric.Fabric, error) { return gen.FatTree(gen.FatTreeSpec{Radix: 12, Levels: 2}) }},
		{"parallel", "layered", func() (*fabric.Fabric, error) {
			return gen.Tree(gen.TreeSpec{Ports: 64, Pods: []int{12}, Hosts: 16, Spines: 6, Parallel: 2})
		}},
		{"minhop", "minhop", func() (*fabric.Fabric, error) {
			return gen.Irregular(gen.IrregularSpec{Switches: 40, Degree: 5, Hosts: 80, Seed: 3})
		}},
		{"8 switches", "fattree", func() (*fabric.Fabric, error) {
			return gen.Tree(gen.TreeSpec{Ports: 36, Pods: []int{6}, Hosts: 12, Spines: 2, Parallel: 6})
		}},
		{"206 switches", "updn", func() (*fabric.Fabric, error) {
			return gen.Tree(gen.TreeSpec{Ports: 18, Pods: slices.Repeat([]int{11}, 10), Hosts: 12, Spines: 6, Cores: 6})
		}},
		{"three levels", "updn", func() (*fabric.Fabric, error) { return gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 3}) }},
		{"irregular", "updn", func() (*fabric.Fabric, error) {
			return gen.Irregular(gen.IrregularSpec{Switches: 40, Degree: 5, Hosts: 80, Seed: 3})
		}},
	}
	for _, tc := range givenFabrics(t, short.Usual(own, own[:5])) {
		t.Run(tc.name+" by "+tc.engine, func(t *testing.T) {
			t.Parallel()
			f, err := tc.make()
			f = withLIDs(t, f, err)
			var cables []fabric.PortID
			for s := range fabric.NodeID(f.NumSwitches()) {
				out, to := f.SwitchLinks(s)
				for i, p := range out {
					if s < to[i] {
						cables = append(cables, p)
					}
				}
			}
			rnd := rand.New(rand.NewPCG(7, 1))
			old := open(t, "")
			route := func(o *opened, g *fabric.Fabric, found *Tables) *Tables {
				t.Helper()
				s := snapshotOf(g, rand.New(rand.NewPCG(1, 2)))
				if found != nil {
					s.Found = make([][]fabric.PortNum, len(s.Nodes))
					for i := range s.Nodes {
						if n, ok := found.Fabric.SwitchByGUID(s.Nodes[i].GUID); ok {
							s.Found[i] = found.LFT(n)
						}
					}
				}
				got := short.Must(o.Route(o.engine(tc.engine), s))(t)
				o.Written(got)
				o.SubnetUp()
				if o.last != nil {
					o.last.Wait()
				}
				return got
			}
			now := route(old, f, nil)
			down := map[fabric.PortID]bool{}
			ours, theirs := 0, 0
			rounds := short.Of(24, 6)
			if f.NumSwitches() > 100 {
				rounds = short.Of(6, 1)
			}
			for round := range rounds {
				again := route(open(t, ""), now.Fabric, now)
				n := countDifferent(now.Routing.Tables, again.Routing.Tables)
				// Where a quarter of the cables is gone, the order that is found may be another.
				if len(down) > len(cables)/4 {
					n -= f.NumSwitches() * int(f.MaxLID()) / 100
				}
				if !again.Step.Adopted || n > 0 {
					t.Fatalf("round %d: %d entries of the same fabric are others: %+v", round, n, again.Step)
				}
				for range []int{1, 4, 16}[round%3] {
					p := cables[rnd.IntN(len(cables))]
					if down[p] = !down[p]; !down[p] {
						delete(down, p)
					} else if g := f.Without(slices.Sorted(maps.Keys(down))...); len(g.Components().List) > 1 {
						delete(down, p)
					}
				}
				g := f.Without(slices.Sorted(maps.Keys(down))...)
				restarted, went := route(open(t, ""), g, now), route(old, g, nil)
				if !clean(restarted.Verify) {
					t.Fatalf("round %d: %+v", round, restarted.Verify.Findings)
				}
				a, b := countDifferent(now.Routing.Tables, restarted.Routing.Tables), countDifferent(now.Routing.Tables, went.Routing.Tables)
				ours, theirs = ours+a, theirs+b
				t.Log(fmt.Sprintf("round %d: %d cables down; %d entries after a restart, %d without; loads %d and %d", round, len(down), a, b,
					lft.GreatestLoad(g, restarted.Routing.Tables), lft.GreatestLoad(g, went.Routing.Tables)), restarted.Step.Why, "|", went.Step.Why)
				now = went
			}
			t.Logf("%d switches: %d entries after restarts, %d without", f.NumSwitches(), ours, theirs)
			if float64(ours) > 1.1*float64(theirs) {
				t.Errorf("%d entries after restarts, %d without", ours, theirs)
			}
		})
	}
}

// countDifferent counts the entries in which tables of fabrics with the same switches differ.
func countDifferent(a, b *lft.Tables) (n int) {
	for s := range fabric.NodeID(a.Switches()) {
		entries, _ := lft.CountChanges(a.Row(s), b.Row(s))
		n += entries
	}
	return n
}

// TestFoundAgain wants tables that are read again, since OpenSM's sweep had errors, to be no reason
// to route, and metrics of tables that were kept.
func TestFoundAgain(t *testing.T) {
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2})
	f = withLIDs(t, f, err)
	metrics := filepath.Join(t.TempDir(), "metrics")
	take := func(found *Tables) *Snapshot {
		s := snapshotOf(f, rand.New(rand.NewPCG(1, 2)))
		s.Found = make([][]fabric.PortNum, len(s.Nodes))
		for i := range s.Nodes {
			if n, ok := f.SwitchByGUID(s.Nodes[i].GUID); ok && found != nil {
				s.Found[i] = slices.Clone(found.LFT(n))
			}
		}
		return s
	}
	first := short.Must(open(t, "").Route(0, take(nil)))(t)
	o := open(t, "metrics: {file: "+metrics+"}\n")
	kept, err := o.Route(0, take(first))
	if err != nil || !kept.Step.Adopted {
		t.Fatal(err, kept.Step)
	}
	o.Written(kept)
	readMetrics(t, metrics, "ibweave_plugin_last_routing_switches 12")
	again, err := o.Route(0, take(kept))
	if err != nil || again.Routing != kept.Routing {
		t.Error("tables that are in force were read, and made again:", err)
	}
	other := take(kept)
	for i := range other.Found {
		if other.Found[i] != nil {
			other.Found[i][1] = fabric.NoPath
			break
		}
	}
	if again, err = o.Route(0, other); err != nil || again.Routing == kept.Routing {
		t.Error("tables that others have written stay:", err)
	}
}
