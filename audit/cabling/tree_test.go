package cabling

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
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
	made := func(name string, f *fabric.Fabric, opt gen.Options, alone string, levels ...int) {
		f, err := opt.Apply(f)
		if err != nil {
			t.Fatal(name, err)
		}
		list[name] = site{f, levels, alone}
	}
	add := func(name string, spec gen.TreeSpec, opt gen.Options, alone string, levels ...int) {
		made(name, must(gen.Tree(spec)), opt, alone, levels...)
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
	whole := manage(must(gen.Tree(selene)), "spine 9 rail 7 pod 3", "spine 8 rail 7 pod 3", "mspine", "mspine")
	made("selene with leaves of management", whole, sharp, "m", 204, 321, 140)
	pods := must(gen.Tree(gen.TreeSpec{Ports: 36, Pods: []int{6, 6, 6, 6, 6}, Hosts: 12, Spines: 6, Cores: 12}))
	made("half-cabled pods", unplug(pods, `pod [34] - core .*[13579]$`), sharp, "", 30, 30, 72)
	made("a half-cabled pod", unplug(pods, `pod 4 - core .*[13579]$`), sharp, " pod 4", 30, 30, 72)
	return list
}

// unplug returns a tree without the cables that a pattern fits, each as "LOWER SWITCH - UPPER SWITCH".
func unplug(f *fabric.Fabric, pattern string) *fabric.Fabric {
	cables := regexp.MustCompile(pattern)
	var gone []fabric.PortID
	for _, c := range cablesOf(f) {
		if cables.MatchString(f.Node(f.Owner(c.a)).Description + " - " + f.Node(f.Owner(c.b)).Description) {
			gone = append(gone, c.a)
		}
	}
	return f.Without(gone...)
}

// manage adds a leaf of management with four hosts below each of the named switches, with two cables.
// The spine mspine is a new one with a cable to the first core switch of each group.
func manage(f *fabric.Fabric, spines ...string) *fabric.Fabric {
	b, nodes := &fabric.Builder{}, make(map[string]int)
	add := func(guid int, kind fabric.NodeType, ports fabric.PortNum, name string) {
		x, err := b.AddNode(fabric.Node{GUID: fabric.GUID(guid), SystemGUID: fabric.GUID(guid), Type: kind, NumPorts: ports, Description: name})
		if nodes[name] = x; err != nil {
			panic(err)
		}
	}
	join := func(names ...string) { // by their last free ports
		var ports [2]fabric.PortNum
		for i, name := range names {
			ports[i] = b.Node(nodes[name]).NumPorts
			for _, _, taken := b.Connected(nodes[name], ports[i]); taken; _, _, taken = b.Connected(nodes[name], ports[i]) {
				ports[i]--
			}
		}
		if err := b.Connect(nodes[names[0]], ports[0], nodes[names[1]], ports[1], fabric.Link{Width: 4, Speed: fabric.QDR}); err != nil {
			panic(err)
		}
	}
	for n := range fabric.NodeID(f.NumNodes()) {
		i, err := b.CopyNode(f, n)
		if nodes[f.Node(n).Description] = i; err != nil {
			panic(err)
		}
	}
	for _, c := range cablesOf(f) {
		if err := b.Connect(int(f.Owner(c.a)), f.Num(c.a), int(f.Owner(c.b)), f.Num(c.b), c.link); err != nil {
			panic(err)
		}
	}
	if slices.Contains(spines, "mspine") {
		add(0x400000, fabric.Switch, 40, "mspine")
		for _, name := range slices.Sorted(maps.Keys(nodes)) {
			if strings.HasPrefix(name, "core ") && strings.HasSuffix(name, ",0") {
				join("mspine", name)
			}
		}
	}
	for i, spine := range spines {
		leaf := fmt.Sprint("mleaf ", i)
		add(0x500000+0x100*i, fabric.Switch, 40, leaf)
		join(leaf, spine)
		join(leaf, spine)
		for h := range 4 {
			host := fmt.Sprintf("host %d %s", h, leaf)
			add(0x500010+0x100*i+0x10*h, fabric.CA, 1, host)
			join(host, leaf)
		}
	}
	return must(b.Build())
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
