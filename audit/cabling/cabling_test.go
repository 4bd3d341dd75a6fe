package cabling

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/routing/banyan"
	"github.com/ibweave/ibweave/verify"
)

func must(f *fabric.Fabric, err error) *fabric.Fabric {
	if err != nil {
		panic(err)
	}
	return f
}

func torus(dims ...int) *fabric.Fabric {
	return must(mesh.Generate(mesh.Spec{Dims: dims, Wrap: slices.Repeat([]bool{true}, len(dims)), Hosts: 1}))
}

// lose is f without the cables of some switches, which are gone too.
func lose(f *fabric.Fabric, switches ...fabric.NodeID) *fabric.Fabric {
	var b fabric.Builder
	index := make([]int, f.NumNodes())
	for n := range fabric.NodeID(f.NumNodes()) {
		index[n] = -1
		if slices.Contains(switches, n) {
			continue
		}
		i, err := b.AddNode(*f.Node(n))
		if err != nil {
			panic(err)
		}
		index[n] = i
	}
	for _, c := range cablesOf(f) {
		if x, y := index[f.Owner(c.a)], index[f.Owner(c.b)]; x >= 0 && y >= 0 {
			if err := b.Connect(x, f.Num(c.a), y, f.Num(c.b), c.link); err != nil {
				panic(err)
			}
		}
	}
	return must(b.Build())
}

// What fabrics look like, whole and with parts missing, in any order of nodes.
func TestRecognize(t *testing.T) {
	for _, tc := range []struct {
		name string
		f    *fabric.Fabric
		want string
	}{
		{"two levels", must(gen.FatTree(gen.FatTreeSpec{Radix: 12, Levels: 2})), "two-level fat tree: 12 leaves, 6 spines, 1 cable between each two"},
		{"three levels", must(gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 3})), "three-level fat tree: 32 leaves, 32 spines, 16 core switches, 8 pods"},
		{"one host a leaf", must(gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2, HostsPerLeaf: 1})), "two-level fat tree: 8 leaves, 4 spines, 1 cable between each two"},
		{"torus", torus(8, 8), "8x8 torus"},
		{"torus with a hole", lose(torus(8, 8), 19), "8x8 torus\ncertain: it explains all cables\n1 switch missing: 2,3"},
		{"mesh", must(mesh.Generate(mesh.Spec{Dims: []int{6, 4, 3}, Hosts: 2})), "6x4x3 mesh"},
		{"hypercube", must(mesh.Hypercube(5, 1)), "hypercube of 5 dimensions"},
		{"ring", must(mesh.Generate(mesh.Spec{Dims: []int{9}, Wrap: []bool{true}, Hosts: 1})), "ring of 9"},
		{"line", must(mesh.Generate(mesh.Spec{Dims: []int{5}, Hosts: 1})), "line of 5"},
		{"banyan", must(banyan.Banyan(4, false)), "banyan network of 4 stages, 16 processors"},
		{"wrapped banyan", must(banyan.Banyan(3, true)), "banyan network of 3 stages, 8 processors, wrapped around"},
		{"shufflenet", must(gen.Shufflenet(2, 3)), "(2, 3) shufflenet: 3 columns of 8 switches"},
		{"larger shufflenet", must(gen.Shufflenet(3, 2)), "(3, 2) shufflenet: 2 columns of 9 switches"},
		{"irregular", must(gen.Irregular(gen.IrregularSpec{Switches: 20, Degree: 4, Hosts: 20, Seed: 1})), "irregular: 20 switches with 4 cables to other switches each"},
		{"single", lose(must(gen.FatTree(gen.FatTreeSpec{Radix: 2, Levels: 2})), 0, 2), "single switch"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for seed := range uint64(short.Of(3, 2)) {
				f := tc.f
				if seed > 0 {
					f = rewire(t, f, cablesOf(f), rand.New(rand.NewPCG(seed, 1)))
				}
				short.Equal(t, Recognize(f).String(), tc.want)
			}
		})
	}
}

// A tree with random cables missing is recognized, and says how many are missing
// where.
func TestRecognizeWornTrees(t *testing.T) {
	for seed := range uint64(20) {
		whole := must(gen.FatTree(gen.FatTreeSpec{Radix: 12, Levels: 2}))
		n := int(seed)%12 + 1
		f := must(gen.DropLinks(whole, n, seed))
		s := Recognize(f)
		if s.Kind != FatTree || s.MissingCables != n || s.Cables != 72 || s.ExtraCables != 0 || !slices.Equal(s.Levels, []int{12, 6}) {
			t.Fatalf("seed %d: %s", seed, s)
		}
		sum := 0
		for _, l := range s.Missing {
			at, _ := whole.SwitchByGUID(l.Switch)
			had, _ := whole.SwitchLinks(at)
			has, _ := f.SwitchLinks(at)
			if l.Cables != len(had)-len(has) || l.Has != len(has) {
				t.Errorf("seed %d: %+v, it had %d and has %d", seed, l, len(had), len(has))
			}
			sum += l.Cables
		}
		short.Equal(t, sum, n, "seed", seed, "spines lack")
	}
}

// messages lists findings as text.
func messages(list []verify.Finding) []string {
	var m []string
	for _, x := range list {
		m = append(m, x.Rule+": "+x.Message)
	}
	return m
}

// edited is f after a change of its cables.
func edited(t *testing.T, f *fabric.Fabric, change func([]cable) []cable) *fabric.Fabric {
	return rewire(t, f, change(cablesOf(f)), rand.New(rand.NewPCG(1, 2)))
}

// port is the port of a node by description.
func port(f *fabric.Fabric, name string, num fabric.PortNum) fabric.PortID {
	for n := range fabric.NodeID(f.NumNodes()) {
		if f.Node(n).Description == name {
			return f.Port(n, num)
		}
	}
	panic(name)
}

// Findings against an expected topology, and without one, to the word.
func TestFindings(t *testing.T) {
	tree := must(gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 2}))
	at := func(cables []cable, name string, num fabric.PortNum) *cable {
		p := port(tree, name, num)
		return &cables[slices.IndexFunc(cables, func(c cable) bool { return c.a == p || c.b == p })]
	}
	cross := func(c []cable) []cable {
		x, y := at(c, "leaf 1", 4), at(c, "leaf 2", 5)
		x.b, y.b = y.b, x.b
		return c
	}
	renamed := func(f *fabric.Fabric, guid fabric.GUID, to fabric.GUID) *fabric.Fabric {
		var b fabric.Builder
		for n := range fabric.NodeID(f.NumNodes()) {
			x := *f.Node(n)
			if x.GUID == guid {
				x.GUID = to
			}
			short.Must(b.AddNode(x))(t)
		}
		for _, c := range cablesOf(f) {
			short.Check(t, b.Connect(int(f.Owner(c.a)), f.Num(c.a), int(f.Owner(c.b)), f.Num(c.b), c.link))
		}
		return must(b.Build())
	}
	for _, tc := range []struct {
		name     string
		f        *fabric.Fabric
		opt      Options
		findings []string
	}{
		{"whole", tree, Options{}, nil},
		{"as expected", tree, Options{Expected: tree}, nil},
		{"a spine is gone", lose(tree, 7), Options{Expected: tree}, []string{
			`missing-node: switch "spine 1" (0x0000000000200007) is not there, nor 6 cables of it, to "leaf 0"[5], "leaf 1"[5], "leaf 2"[5], "leaf 3"[5], "leaf 4"[5], "leaf 5"[5]`,
		}},
		{"a spine is new", tree, Options{Expected: lose(tree, 7)}, []string{
			`extra-node: switch "spine 1" (0x0000000000200007) is not in the expected topology; it has 6 cables, to "leaf 0"[5], "leaf 1"[5], "leaf 2"[5], "leaf 3"[5], "leaf 4"[5], "leaf 5"[5]`,
		}},
		{"a spine is replaced", renamed(tree, 0x200007, 0x2f0007), Options{Expected: tree}, []string{
			`replaced-node: switch "spine 1" has the GUID 0x00000000002f0007, in the expected topology 0x0000000000200007`,
		}},
		{"crossed", edited(t, tree, cross), Options{Expected: tree}, []string{
			`crossed-cables: "leaf 1"[4] should lead to "spine 0"[2] and has "spine 1"[3]; "leaf 2"[5] should lead to "spine 1"[3] and has "spine 0"[2]; to mend: exchange the plugs in "leaf 1"[4] and "leaf 2"[5]`,
		}},
		{"crossed, by the shape", edited(t, tree, cross), Options{}, []string{
			`crossed-cables: "leaf 1"[4] should lead to "spine 0"[2] and has "spine 1"[3]; "leaf 2"[5] should lead to "spine 1"[3] and has "spine 0"[2]; to mend: exchange the plugs in "leaf 1"[4] and "leaf 2"[5]`,
		}},
		{"a host is on a spine", edited(t, roomy(t, tree), func(c []cable) []cable {
			big := roomy(t, tree)
			i := slices.IndexFunc(c, func(x cable) bool { return x.a == port(big, "leaf 3", 1) })
			c[i].a = port(big, "spine 2", 8)
			return c
		}), Options{}, []string{
			`host-on-spine: "host 0 leaf 3"[1] is cabled to "spine 2"[8], on level 2 of 2`,
			`port-down: "leaf 3"[1] has no link; 5 of the 6 switches like it have one there`,
		}},
		{"a host is off", edited(t, tree, func(c []cable) []cable {
			i := slices.IndexFunc(c, func(x cable) bool { return x.a == port(tree, "leaf 3", 1) })
			return slices.Delete(c, i, i+1)
		}), Options{}, []string{
			`isolated-node: Channel Adapter "host 0 leaf 3" (0x0000000000100012) has no cable`,
			`port-down: "leaf 3"[1] has no link; 5 of the 6 switches like it have one there`,
		}},
		{"too slow for the policy", edited(t, tree, func(c []cable) []cable {
			at(c, "leaf 1", 4).link = fabric.Link{Width: 4, Speed: fabric.DDR}
			return c
		}), Options{Between: fabric.Link{Speed: fabric.QDR}}, []string{
			`link-below-required: "leaf 1"[4] to "spine 0"[2] is 4xDDR, the policy wants QDR`,
		}},
		{"not what is meant", tree, Options{Meant: &Meant{Name: "fattree radix 8", Full: must(gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2}))}}, []string{
			`wrong-shape: the policy wants fattree radix 8: two-level fat tree: 8 leaves, 4 spines, 1 cable between each two; this is two-level fat tree: 6 leaves, 3 spines, 1 cable between each two`,
		}},
		{"a torus with a hole as meant", lose(torus(5, 4), 6), Options{Meant: &Meant{Name: "torus dims 4x5", Full: torus(4, 5)}}, []string{
			`missing-switch: the 4x5 torus has no switch at 2,1; "switch 0,2"[1], "switch 1,1"[2], "switch 1,3"[4], "switch 2,2"[3] should lead there`,
			`isolated-node: Channel Adapter "host 1,2" (0x000000000010000c) has no cable`,
		}},
		{"a mesh, and a torus is meant", must(mesh.Generate(mesh.Spec{Dims: []int{5, 4}, Hosts: 1})), Options{Meant: &Meant{Name: "torus dims 5x4", Full: torus(5, 4)}}, []string{
			`wrong-shape: the policy wants torus dims 5x4: 5x4 torus; this is 5x4 mesh`,
		}},
		{"irregular as meant", must(gen.Irregular(gen.IrregularSpec{Switches: 12, Degree: 3, Hosts: 12, Seed: 5})),
			Options{Meant: &Meant{Name: "irregular", Full: must(gen.Irregular(gen.IrregularSpec{Switches: 12, Degree: 3, Hosts: 12, Seed: 5}))}}, nil},
		{"another irregular", must(gen.Irregular(gen.IrregularSpec{Switches: 12, Degree: 3, Hosts: 12, Seed: 5})),
			Options{Meant: &Meant{Name: "irregular", Full: must(gen.Irregular(gen.IrregularSpec{Switches: 12, Degree: 3, Hosts: 12, Seed: 6}))}}, []string{
				"wrong-shape: the policy wants irregular: irregular: 12 switches with 3 cables to other switches each; this is irregular: 12 switches with 3 cables to other switches each",
			}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := Check(tc.f, tc.opt)
			m := messages(got.Findings)
			slices.Sort(m)
			want := slices.Sorted(slices.Values(tc.findings))
			if d := cmp.Diff(want, m); d != "" && (len(want) > 0 || len(m) > 0) {
				t.Errorf("%s (-want +got):\n%s", got.Shape, d)
			}
			for _, x := range got.Findings {
				if !slices.ContainsFunc(Rules, func(r verify.Rule) bool { return r.Name == x.Rule }) || x.Count < 1 || x.Rule != WrongShape && len(x.Ports) == 0 {
					t.Errorf("finding %+v", x)
				}
			}
		})
	}
}

// TestMeantTree takes one cable between switches out of trees that are no fat trees, and expects just the finding
// that it is missing.
func TestMeantTree(t *testing.T) {
	leaves := must(gen.Tree(gen.TreeSpec{Ports: 40, Pods: []int{4}, Hosts: 4, Spines: 4}))
	pods := must(gen.Tree(gen.TreeSpec{Ports: 40, Pods: []int{1, 1, 1}, Hosts: 4, Spines: 2, Cores: 1}))
	for name, full := range map[string]*fabric.Fabric{
		"management": manage(unplug(leaves, `leaf [23] - spine [13]$`), "spine 3", "spine 2"),
		"pods":       manage(pods, "spine 1 pod 2", "spine 0 pod 2", "mspine"),
	} {
		if k := Recognize(full).Kind; k == FatTree {
			t.Fatalf("%s is a fat tree", name)
		}
		for seed := range short.Of[uint64](12, 4) {
			f := must(gen.DropLinks(full, 1, seed))
			got := messages(slices.DeleteFunc(Check(f, Options{Meant: &Meant{Name: name, Full: full}}).Findings, func(x verify.Finding) bool { return x.Severity != verify.Error }))
			if len(got) != 1 || !strings.HasPrefix(got[0], MissingCable+": ") {
				t.Errorf("%s, seed %d: %q", name, seed, got)
			}
		}
	}
}

// Pieces, names and GUIDs that are not unique.
func TestNodes(t *testing.T) {
	p := short.Must(gen.NewPlan(4, 4))(t)
	for i := range 4 {
		p.Switch(4, "same")
		p.CA(1, "host "+string(rune('a'+i)))
		p.Cable(2*i, 1, 2*i+1, 1)
	}
	p.Cable(0, 2, 2, 2)
	p.Cable(2, 3, 4, 3)
	f := must(p.Fabric())
	got := strings.Join(messages(Check(f, Options{}).Findings), "\n")
	want := `duplicate-description: 4 nodes have the description "same": the first are 0x0000000000200000 and 0x0000000000200001
split-fabric: 2 nodes cannot be reached from the other 6: those with "same" (0x0000000000200003)`
	short.Equal(t, got, want)

	var b fabric.Builder
	for i := range 3 {
		n, err := b.AddNode(fabric.Node{GUID: fabric.GUID(0x10 + 0x10*i), Type: fabric.CA, NumPorts: 1, Description: "h" + string(rune('0'+i))})
		if err == nil && i > 0 {
			err = b.SetPort(n, 1, 0x10, 0, 0)
		}
		short.Check(t, err)
	}
	s, err := b.AddNode(fabric.Node{GUID: 0x90, Type: fabric.Switch, NumPorts: 4, Description: "s"})
	for i := range 3 {
		if err == nil {
			err = b.Connect(i, 1, s, fabric.PortNum(i+1), fabric.Link{})
		}
	}
	short.Check(t, err)
	got = strings.Join(messages(Check(must(b.Build()), Options{}).Findings), "\n")
	want = `duplicate-guid: "h0" and "h1"[1] have one GUID, 0x0000000000000010
duplicate-guid: "h0" and "h2"[1] have one GUID, 0x0000000000000010`
	short.Equal(t, got, want)
}

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
