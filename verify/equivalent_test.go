package verify

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/lft"
)

// leafSpine has leaves in two pods, all those of a pod with the same cables, and some
// cables between two leaves of different pods.
func leafSpine(t *testing.T, rng *rand.Rand, ports int) *fabric.Fabric {
	t.Helper()
	p, err := gen.NewPlan(64, 1024)
	if err != nil {
		t.Fatal(err)
	}
	used := make(map[int]int)
	next := func(s int) int {
		used[s]++
		return used[s]
	}
	top := p.Switch(ports, "top")
	hosts := 0
	for pod := range 2 {
		var spines []int
		for range 1 + rng.IntN(3) {
			s := p.Switch(ports, fmt.Sprint("spine of ", pod))
			used[s] = rng.IntN(ports - 30) // so that channels are in any word
			p.Cable(s, next(s), top, next(top))
			spines = append(spines, s)
		}
		parallel, from, each := 1+rng.IntN(2), rng.IntN(ports-30), rng.IntN(4)
		for leaf := range 2 + rng.IntN(4) {
			s := p.Switch(ports, fmt.Sprint("leaf ", leaf, " of ", pod))
			used[s] = from
			for range parallel {
				for _, spine := range spines {
					p.Cable(s, next(s), spine, next(spine))
				}
			}
			for range each {
				p.Cable(p.CA(1, fmt.Sprint("host ", hosts)), 1, s, next(s))
				hosts++
			}
			if rng.IntN(8) == 0 {
				p.Cable(s, next(s), top, next(top))
			}
		}
	}
	f, err := p.Fabric()
	if err == nil {
		f, err = lft.AssignLIDs(f, lft.LIDOptions{LMC: rng.IntN(5)})
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestAlike: what is counted is the same whether switches alike are taken together or
// each by itself, on tables of shortest ways in which most of these do the same, with
// entries that are others, and wrong ones.
func TestAlike(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	led := 0
	for trial := range 120 {
		f := leafSpine(t, rng, []int{40, 63, 64, 65, 130, 200}[trial%6])
		tables := lft.NewTables(f.NumSwitches(), f.MaxLID())
		hops := f.Distances()
		for lid, port := range f.LIDPorts() {
			if port == fabric.NoPort {
				continue
			}
			root, last := f.Owner(port), fabric.ManagementPort
			if !f.IsSwitch(root) {
				root, last = f.Owner(f.Peer(port)), f.Num(f.Peer(port))
			}
			turn := rng.IntN(100)
			for s := range fabric.NodeID(f.NumSwitches()) {
				if s == root {
					tables.Row(s)[lid] = last
					continue
				}
				links, to := f.SwitchLinks(s)
				var ways []fabric.PortNum
				for i, p := range links {
					if hops.To(root)[to[i]] < hops.To(root)[s] {
						ways = append(ways, f.Num(p))
					}
				}
				if rng.IntN(500) == 0 {
					turn++
				}
				tables.Row(s)[lid] = ways[turn%len(ways)]
			}
		}
		for range rng.IntN(3) * rng.IntN(2) {
			s := fabric.NodeID(rng.IntN(f.NumSwitches()))
			tables.Row(s)[1+rng.IntN(int(f.MaxLID()))] = fabric.PortNum(rng.IntN(int(f.Node(s).NumPorts) + 3))
		}
		run := func(alone bool) *worker {
			p := newPlan(f, tables, nil)
			if alone {
				p.equivalent.list = nil
				for s := range p.equivalent.of {
					p.equivalent.of[s] = -1
				}
			}
			for i := range p.equivalent.list {
				led += len(p.equivalent.list[i])
			}
			w, err := p.run(t.Context(), Options{Workers: 1 + trial%2})
			if err != nil {
				t.Fatal(err)
			}
			return w
		}
		got, want := run(false), run(true)
		if !reflect.DeepEqual(got.own, want.own) {
			t.Fatalf("trial %d: channels carry something else, or depend on others", trial)
		}
		if d := cmp.Diff(want.delivered, got.delivered); d != "" || got.nonMinimal != want.nonMinimal || len(got.troubles) != len(want.troubles) {
			t.Fatalf("trial %d: other pairs arrive: %s", trial, d)
		}
	}
	if led < 300 {
		t.Errorf("%d switches alike: these fabrics show little", led)
	}
}
