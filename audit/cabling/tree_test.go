package cabling

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/verify"
)

// site is a tree as operators have it.
type site struct {
	f      *fabric.Fabric
	levels []int
	// alone is in the names of switches that are cabled as no other: a cable of theirs that is
	// missing cannot be told.
	alone string
}

// selene has the size of NVIDIA's Selene.
var selene = gen.TreeSpec{Ports: 40, Pods: []int{7, 7, 7, 4}, Hosts: 20, Rails: 8, RailSpines: true, Spines: 10, Parallel: 2, Cores: 14}

// sites are trees as operators have them.
func sites(t testing.TB) map[string]site {
	list := make(map[string]site)
	add := func(name string, spec gen.TreeSpec, opt gen.Options, alone string, levels ...int) {
		f, err := gen.Tree(spec)
		if err == nil {
			f, err = opt.Apply(f)
		}
		if err != nil {
			t.Fatal(name, err)
		}
		list[name] = site{f, levels, alone}
	}
	sharp := gen.Options{AggregationNodes: true}
	add("rails", gen.TreeSpec{Ports: 64, Pods: []int{4}, Hosts: 16, Rails: 8, Spines: 8, Parallel: 2}, gen.Options{}, "", 32, 8)
	add("rails below one spine", gen.TreeSpec{Ports: 64, Pods: []int{1}, Hosts: 32, Rails: 8, Spines: 1}, sharp, "", 8, 1)
	add("rails with spines of their own", gen.TreeSpec{Ports: 64, Pods: []int{4, 2}, Hosts: 16, Rails: 4, RailSpines: true, Spines: 4, Parallel: 2, Cores: 4}, sharp, "", 24, 32, 16)
	add("director", gen.TreeSpec{Ports: 40, Pods: []int{11}, Hosts: 18, Spines: 9}, gen.Options{}, "", 11, 9)
	add("director of three levels", gen.TreeSpec{Ports: 8, Pods: []int{3, 3, 3, 3, 3}, Hosts: 1, Spines: 4, Cores: 3}, gen.Options{}, "", 15, 20, 12)
	var off []fabric.NodeID // all hosts but two
	director := list["director of three levels"]
	for n := fabric.NodeID(director.f.NumSwitches()) + 2; int(n) < director.f.NumNodes(); n++ {
		off = append(off, n)
	}
	director.f = lose(director.f, off...)
	list["director with two hosts"] = director
	add("leaves below directors", gen.TreeSpec{Ports: 24, Pods: []int{6, 6, 4}, Hosts: 6, Spines: 6, Groups: 2, Cores: 6, Directors: true}, gen.Options{}, "", 16, 18, 12)
	add("planes", gen.TreeSpec{Ports: 40, Pods: []int{8}, Hosts: 8, Spines: 4, Parallel: 4}, gen.Options{Planes: 4}, "", 32, 16)
	add("planes of three levels", gen.TreeSpec{Ports: 16, Pods: []int{4, 4, 4}, Hosts: 4, Spines: 4, Cores: 4}, gen.Options{Planes: 2, AggregationNodes: true}, "", 24, 24, 32)
	add("selene", selene, sharp, "", 200, 320, 140)
	whole := selene
	whole.Management, whole.ManagementHosts = 4, 4
	add("selene with leaves of management", whole, sharp, "m", 204, 321, 140)
	add("half-cabled pods", gen.TreeSpec{Ports: 36, Pods: []int{6, 6, 6, 6, 6}, Hosts: 12, Spines: 6, Cores: 12, HalfCabled: 2}, sharp, "", 30, 30, 72)
	add("a half-cabled pod", gen.TreeSpec{Ports: 36, Pods: []int{6, 6, 6, 6, 6}, Hosts: 12, Spines: 6, Cores: 12, HalfCabled: 1}, sharp, " pod 4", 30, 30, 72)
	add("spare core switches", gen.TreeSpec{Ports: 36, Pods: []int{6, 6, 6}, Hosts: 12, Spines: 6, Cores: 6, SpareCores: 1}, sharp, ",6", 18, 18, 42)
	return list
}

// Trees of which nothing is missing are recognized, and no cable of them is a finding.
func TestTrees(t *testing.T) {
	for name, x := range sites(t) {
		t.Run(name, func(t *testing.T) {
			r := Check(x.f, Options{})
			if r.Shape.Kind != FatTree || !slices.Equal(r.Shape.Levels, x.levels) || !r.Shape.Certain {
				t.Errorf("%s, levels %d, want %d", r.Shape, r.Shape.Levels, x.levels)
			}
			for _, f := range r.Findings {
				if f.Rule != SplitFabric && f.Rule != PortDown {
					t.Errorf("%s: %s", f.Rule, f.Message)
				}
			}
		})
	}
}

// A cable between switches that is missing in a tree is one finding, which names both of its
// ports. With -topology FILE the tree is that of a capture, which may lack others.
func TestMissingCables(t *testing.T) {
	all := sites(t)
	if *topologyFile != "" {
		all["file"] = site{f: capture(t)}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			f := all[name].f
			before := Check(f, Options{}).Findings
			cables := cablesOf(f)
			between := slices.DeleteFunc(slices.Clone(cables), func(c cable) bool { return !f.IsSwitch(f.Owner(c.a)) || !f.IsSwitch(f.Owner(c.b)) })
			r := rand.New(rand.NewPCG(11, 11))
			if alone := all[name].alone; alone != "" {
				between = slices.DeleteFunc(between, func(c cable) bool {
					return strings.Contains(f.Node(f.Owner(c.a)).Description, alone) || strings.Contains(f.Node(f.Owner(c.b)).Description, alone)
				})
			}
			n := short.Of(*trials, 3)
			var missed []string
			for range n {
				c := between[r.IntN(len(between))]
				left := slices.DeleteFunc(slices.Clone(cables), func(x cable) bool { return x == c })
				if said := judgeMissing(f, c, before, Check(rewire(t, f, left, r), Options{}).Findings); said != "" {
					missed = append(missed, said)
				}
			}
			t.Logf("%d of %d named", n-len(missed), n)
			if 20*len(missed) > n {
				t.Errorf("%d of %d not named: %v", len(missed), n, missed)
			}
		})
	}
}

// judgeMissing says what is wrong with the findings after a cable was taken away, "" if it is named
// and nothing else is new.
func judgeMissing(f *fabric.Fabric, c cable, before, after []verify.Finding) string {
	old := make(map[string]int)
	for i := range before {
		old[said(&before[i])]++
	}
	var news []verify.Finding
	for i := range after {
		if k := said(&after[i]); old[k] > 0 {
			old[k]--
		} else {
			news = append(news, after[i])
		}
	}
	ends := verify.EndpointsOf(f, c.a, c.b)
	if len(news) == 1 && news[0].Rule == MissingCable && slices.Contains(news[0].Ports, ends[0]) && slices.Contains(news[0].Ports, ends[1]) {
		return ""
	}
	return fmt.Sprintf("%s to %s: %v", ends[0], ends[1], messages(news))
}
