package cabling

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/audit/rails"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/routing/banyan"
	"github.com/ibweave/ibweave/verify"
)

var (
	trials       = flag.Int("trials", short.Usual(20, 7), "how many random faults of each kind there are on each fabric")
	topologyFile = flag.String("topology", "", "also try faults on the fabric of this file")
)

// cable is a cable of a fabric that is rebuilt.
type cable struct {
	a, b fabric.PortID
	link fabric.Link
}

func cablesOf(f *fabric.Fabric) []cable {
	var list []cable
	for p := range fabric.PortID(f.NumPorts()) {
		if peer := f.Peer(p); peer > p {
			list = append(list, cable{p, peer, f.Link(p)})
		}
	}
	return list
}

// rewire is f with other cables, its LIDs assigned again, and its nodes in another
// order.
func rewire(t testing.TB, f *fabric.Fabric, cables []cable, r *rand.Rand) *fabric.Fabric {
	t.Helper()
	var b fabric.Builder
	index := make([]int, f.NumNodes())
	for _, n := range r.Perm(f.NumNodes()) {
		i := short.Must(b.AddNode(*f.Node(fabric.NodeID(n))))(t)
		index[n] = i
	}
	lids := r.Perm(f.NumNodes())
	for n := range fabric.NodeID(f.NumNodes()) {
		first, last := fabric.PortNum(1), f.Node(n).NumPorts
		if f.IsSwitch(n) {
			first, last = 0, 0
		}
		for num := first; num <= last; num++ {
			lid := fabric.LID(0)
			if num == first {
				lid = fabric.LID(lids[n] + 1)
			}
			short.Check(t, b.SetPort(index[n], num, f.PortGUID(f.Port(n, num)), lid, 0))
		}
	}
	for _, c := range cables {
		short.Check(t, b.Connect(index[f.Owner(c.a)], f.Num(c.a), index[f.Owner(c.b)], f.Num(c.b), c.link))
	}
	return short.Must(b.Build())(t)
}

// fabrics are those that faults are made on.
func fabrics(t testing.TB) map[string]*fabric.Fabric {
	t.Helper()
	must := func(f *fabric.Fabric, err error) *fabric.Fabric {
		t.Helper()
		short.Check(t, err)
		return f
	}
	list := map[string]*fabric.Fabric{
		"fattree-8":    must(gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2})),
		"fattree-6-3":  must(gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 3})),
		"mesh-5x4":     must(mesh.Generate(mesh.Spec{Dims: []int{5, 4}, Hosts: 2})),
		"torus-5x5":    must(mesh.Generate(mesh.Spec{Dims: []int{5, 5}, Wrap: []bool{true, true}, Hosts: 1})),
		"hypercube-5":  must(mesh.Hypercube(5, 1)),
		"shufflenet":   must(gen.Shufflenet(2, 3)),
		"banyan-3":     must(banyan.Banyan(3, true)),
		"irregular-20": must(gen.Irregular(gen.IrregularSpec{Switches: 20, Degree: 4, Hosts: 30, Seed: 3})),
	}
	if *topologyFile != "" {
		list["file"] = capture(t)
	}
	return list
}

func capture(t testing.TB) *fabric.Fabric {
	data := short.Must(os.ReadFile(*topologyFile))(t)
	f, _ := short.Must2(topology.Parse(*topologyFile, data, topology.Options{}))(t)
	return f
}

// said is what a finding says that does not depend on the state of the rest.
func said(x *verify.Finding) string { return fmt.Sprint(x.Rule, x.Count, portsOf(x)) }

// portsOf lists a finding's ports, sorted.
func portsOf(x *verify.Finding) []verify.Endpoint {
	list := slices.Clone(x.Ports)
	slices.SortFunc(list, func(a, b verify.Endpoint) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Port, b.Port))
	})
	return list
}

// fresh gives the findings that are in after and not in before; it is an error when
// one is gone.
func fresh(t *testing.T, before, after []verify.Finding) []verify.Finding {
	t.Helper()
	old := make(map[string]int)
	for i := range before {
		old[said(&before[i])]++
	}
	var list []verify.Finding
	for i := range after {
		if k := said(&after[i]); old[k] > 0 {
			old[k]--
		} else {
			list = append(list, after[i])
		}
	}
	for k, n := range old {
		if n > 0 {
			t.Errorf("a fault elsewhere hides %s", k)
		}
	}
	return list
}

// A fault is made in a fabric by hand and must be one finding, which names these
// ports.
type fault struct {
	name string
	rule string
	make func(f *fabric.Fabric, cables []cable, r *rand.Rand) ([]cable, []fabric.PortID)
}

// freePort is a port of a switch without a cable, of which there must be one.
func freePort(f *fabric.Fabric, r *rand.Rand) fabric.PortID {
	var list []fabric.PortID
	for s := range fabric.NodeID(f.NumSwitches()) {
		for num := fabric.PortNum(1); num <= f.Node(s).NumPorts; num++ {
			if p := f.Port(s, num); f.Peer(p) == fabric.NoPort {
				list = append(list, p)
			}
		}
	}
	return list[r.IntN(len(list))]
}

// roomy is f with two more ports on each switch.
func roomy(t testing.TB, f *fabric.Fabric) *fabric.Fabric {
	t.Helper()
	var b fabric.Builder
	for n := range fabric.NodeID(f.NumNodes()) {
		x := *f.Node(n)
		if f.IsSwitch(n) {
			x.NumPorts += 2
		}
		short.Must(b.AddNode(x))(t)
	}
	for _, c := range cablesOf(f) {
		short.Check(t, b.Connect(int(f.Owner(c.a)), f.Num(c.a), int(f.Owner(c.b)), f.Num(c.b), c.link))
	}
	return short.Must(b.Build())(t)
}

var faults = []fault{
	{"speed", LinkDegraded, func(f *fabric.Fabric, cables []cable, r *rand.Rand) ([]cable, []fabric.PortID) {
		c := &cables[r.IntN(len(cables))]
		if r.IntN(2) == 0 {
			c.link.Width = 1
		} else {
			c.link.Speed--
		}
		return cables, []fabric.PortID{c.a, c.b}
	}},
	{"removed", MissingCable, func(f *fabric.Fabric, cables []cable, r *rand.Rand) ([]cable, []fabric.PortID) {
		i := r.IntN(len(cables))
		c := cables[i]
		return slices.Delete(cables, i, i+1), []fabric.PortID{c.a, c.b}
	}},
	{"moved", MovedCable, func(f *fabric.Fabric, cables []cable, r *rand.Rand) ([]cable, []fabric.PortID) {
		to := freePort(f, r)
		for {
			c := &cables[r.IntN(len(cables))]
			stays, meant := c.a, c.b
			if r.IntN(2) == 0 && f.IsSwitch(f.Owner(c.a)) {
				stays, meant = meant, stays
			}
			if !f.IsSwitch(f.Owner(meant)) {
				continue
			}
			c.a, c.b = stays, to
			return cables, []fabric.PortID{stays, meant, to}
		}
	}},
	{"swapped", SwappedHosts, func(f *fabric.Fabric, cables []cable, r *rand.Rand) ([]cable, []fabric.PortID) {
		var hosts []int
		for i, c := range cables {
			if !f.IsSwitch(f.Owner(c.b)) && f.IsSwitch(f.Owner(c.a)) && f.Kind(f.Owner(c.b)) != fabric.AggregationKind {
				hosts = append(hosts, i)
			}
		}
		for {
			x, y := &cables[hosts[r.IntN(len(hosts))]], &cables[hosts[r.IntN(len(hosts))]]
			if f.Owner(x.b) == f.Owner(y.b) {
				continue
			}
			x.b, y.b = y.b, x.b
			return cables, []fabric.PortID{x.a, x.b, y.a, y.b}
		}
	}},
}

// Against the expected topology each slip of a hand is exactly one finding, which
// names the ports, on fabrics of all kinds.
func TestFaults(t *testing.T) {
	all := fabrics(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := all[name]
		if name != "file" {
			f = roomy(t, f)
		}
		t.Run(name, func(t *testing.T) {
			before := Check(f, Options{Expected: f}).Findings
			for _, x := range before {
				if x.Rule != DuplicateName && x.Rule != DuplicateGUID {
					t.Errorf("a fabric as expected has %s: %s", x.Rule, x.Message)
				}
			}
			for _, fault := range faults {
				t.Run(fault.name, func(t *testing.T) {
					r := rand.New(rand.NewPCG(7, 7))
					for trial := range short.Of(*trials, 2) {
						cables, ports := fault.make(f, cablesOf(f), r)
						g := rewire(t, f, cables, r)
						found := fresh(t, before, Check(g, Options{Expected: f}).Findings)
						short.MustEqual(t, len(found), 1, "trial", trial, "at", verify.EndpointsOf(f, ports...), "findings", found)
						want := verify.Finding{Ports: verify.EndpointsOf(f, ports...)}
						if x := &found[0]; x.Rule != fault.rule || !slices.Equal(portsOf(x), portsOf(&want)) {
							t.Fatalf("trial %d: %s names %v, want %s and %v: %s", trial, x.Rule, portsOf(x), fault.rule, portsOf(&want), x.Message)
						}
					}
				})
			}
		})
	}
}

// Without any expectation, a slow link is still one finding with both ports, and on
// a whole fabric of a shape so is a missing cable between switches.
func TestFaultsOfShape(t *testing.T) {
	all := fabrics(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := all[name]
		t.Run(name, func(t *testing.T) {
			before := Check(f, Options{}).Findings
			if name != "file" && len(before) > 0 {
				t.Errorf("a whole fabric has %+v", before)
			}
			r := rand.New(rand.NewPCG(8, 8))
			for trial := range short.Of(*trials, 2) {
				cables, ports := faults[0].make(f, cablesOf(f), r)
				found := fresh(t, before, Check(rewire(t, f, cables, r), Options{}).Findings)
				if len(found) != 1 || found[0].Rule != LinkDegraded || !slices.Equal(found[0].Ports, verify.EndpointsOf(f, ports...)) {
					t.Fatalf("trial %d: slow link %v gives %+v", trial, verify.EndpointsOf(f, ports...), found)
				}
			}
			if kind := Check(f, Options{}).Shape.Kind; kind == Irregular || kind == Banyan || name == "file" {
				return
			}
			for trial := range short.Of(*trials, 2) {
				cables := cablesOf(f)
				between := slices.DeleteFunc(slices.Clone(cables), func(c cable) bool { return !f.IsSwitch(f.Owner(c.b)) })
				c := between[r.IntN(len(between))]
				cables = slices.DeleteFunc(cables, func(x cable) bool { return x == c })
				got := Check(rewire(t, f, cables, r), Options{})
				want := verify.Finding{Ports: verify.EndpointsOf(f, c.a, c.b)}
				if len(got.Findings) != 1 || got.Findings[0].Rule != MissingCable || !slices.Equal(portsOf(&got.Findings[0]), portsOf(&want)) {
					t.Fatalf("trial %d: %v missing in %s gives %+v", trial, want.Ports, got.Shape, got.Findings)
				}
				short.MustEqual(t, got.Shape.MissingCables, 1, "trial", trial, got.Shape)
			}
		})
	}
}

// A cable that belongs in a port of a switch that nothing tells, since a host is in the one that
// other leaves use, is moved: the finding names the switch there, and no plug to move.
func TestMovedToUnknownPort(t *testing.T) {
	f := roomy(t, must(gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2})))
	port := func(s, num int) fabric.PortID { return f.Port(fabric.NodeID(s), fabric.PortNum(num)) }
	// plug puts cables into ports, in place of those that are there.
	plug := func(cables []cable, ends ...[2]fabric.PortID) []cable {
		cables = slices.DeleteFunc(slices.Clone(cables), func(c cable) bool {
			return slices.ContainsFunc(ends, func(x [2]fabric.PortID) bool { return slices.Contains(x[:], c.a) || slices.Contains(x[:], c.b) })
		})
		for _, x := range ends {
			cables = append(cables, cable{x[0], x[1], f.Link(port(0, 1))})
		}
		return cables
	}
	// A host of leaf 3 has the port of leaf 0 to spine 0, and this spine that of the host.
	spine0, spine1 := port(8, 1), port(9, 4)
	one := plug(cablesOf(f), [2]fabric.PortID{spine0, port(3, 1)}, [2]fabric.PortID{port(0, 5), f.Peer(port(3, 1))})
	// Other hosts have its port to spine 1, which leads to leaf 5, and the one behind.
	two := plug(one, [2]fabric.PortID{spine1, port(5, 9)}, [2]fabric.PortID{port(3, 6), f.Peer(port(3, 2))}, [2]fabric.PortID{port(3, 9), f.Peer(port(3, 3))})
	for _, test := range []struct {
		cables  []cable
		message string
		ports   []fabric.PortID
	}{
		{one, `"spine 0"[1] leads to "leaf 3"[1] and should lead to "leaf 0"`, []fabric.PortID{spine0, port(0, 0), port(3, 1)}},
		{
			two, `"spine 0"[1] should lead to "leaf 0" and has "leaf 3"[1]; "leaf 3"[1] should lead to "spine 1"[4] and has "spine 0"[1]`,
			[]fabric.PortID{port(0, 0), spine0, port(3, 1), spine1, port(5, 9)},
		},
	} {
		found := Check(rewire(t, f, test.cables, rand.New(rand.NewPCG(1, 1))), Options{}).Findings
		want := verify.EndpointsOf(f, test.ports...)
		found = slices.DeleteFunc(found, func(x verify.Finding) bool { return x.Rule == PortDown })
		if len(found) != 1 || found[0].Rule != MovedCable || found[0].Message != test.message || !slices.Equal(found[0].Ports, want) {
			t.Errorf("%+v\nwant %s %v", found, test.message, want)
		}
	}
}

// planar lists fabrics whose switches have planes, and for the others of gen what they are
// with planes.
func planar(t testing.TB) map[string]*fabric.Fabric {
	t.Helper()
	all := map[string]*fabric.Fabric{}
	add := func(name string, o gen.Options, f *fabric.Fabric, err error) {
		t.Helper()
		if err == nil {
			f, err = o.Apply(f)
		}
		short.Check(t, err)
		all[name] = f
	}
	tree := gen.FatTreeSpec{Radix: 8, Levels: 2}
	f, err := gen.FatTree(tree)
	add("tree of 4 planes", gen.Options{Planes: 4, AggregationNodes: true}, f, err)
	add("tree of 2 planes", gen.Options{Planes: 2}, f, err)
	f, err = gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 3})
	add("three levels", gen.Options{Planes: 4}, f, err)
	f, err = gen.Irregular(gen.IrregularSpec{Switches: 12, Degree: 4, Hosts: 2, Seed: 7})
	add("irregular", gen.Options{Planes: 4}, f, err)
	return all
}

// found lists the findings of the rules of planes and aggregation nodes.
func found(r *Result) (list []verify.Finding) {
	for _, x := range r.Findings {
		if x.Rule == UnevenPlanes || x.Rule == MissingAggregation {
			list = append(list, x)
		}
	}
	return list
}

// without is f without a cable.
func without(t testing.TB, f *fabric.Fabric, lost fabric.PortID, r *rand.Rand) *fabric.Fabric {
	return rewire(t, f, slices.DeleteFunc(cablesOf(f), func(c cable) bool { return c.a == lost || c.b == lost }), r)
}

// dead returns the part of f that discovery finds when nodes do not answer.
func dead(t testing.TB, f *fabric.Fabric, nodes ...fabric.NodeID) *fabric.Fabric {
	t.Helper()
	var cables []fabric.PortID
	for _, n := range nodes {
		for num := fabric.PortNum(1); num <= f.Node(n).NumPorts; num++ {
			cables = append(cables, f.Port(n, num))
		}
	}
	return short.Must(gen.Remaining(f, cables...))(t)
}

// A lane that is taken away is named at both ends by one finding: of the shape, or of its
// sister planes where the shape does not tell.
func TestLaneLost(t *testing.T) {
	for name, f := range planar(t) {
		t.Run(name, func(t *testing.T) {
			if list := found(Check(f, Options{})); len(list) > 0 {
				t.Fatalf("a finding where nothing is wrong: %s", list[0].Message)
			}
			rnd := rand.New(rand.NewPCG(18, 1))
			lanes := slices.DeleteFunc(cablesOf(f), func(c cable) bool {
				return f.Kind(f.Owner(c.a)) == fabric.AggregationKind || f.Kind(f.Owner(c.b)) == fabric.AggregationKind
			})
			for range short.Of(100, 20) {
				c := lanes[rnd.IntN(len(lanes))]
				r := Check(without(t, f, c.a, rnd), Options{})
				named, also := 0, ""
				for _, x := range r.Findings {
					if (x.Rule == UnevenPlanes || x.Rule == MissingCable && x.Severity == verify.Error) &&
						slices.Contains(x.Ports, verify.EndpointOf(f, c.a)) && slices.Contains(x.Ports, verify.EndpointOf(f, c.b)) {
						named++
					} else if x.Severity > verify.Note && x.Rule != SplitFabric {
						also += "\n" + x.Rule + ": " + x.Message
					}
				}
				if named != 1 || also != "" {
					t.Errorf("%s to %s lost: %d findings name it; beside it%s\n%v", f.PortName(c.a), f.PortName(c.b), named, also, r.Findings)
				}
			}
		})
	}
}

// A lane that is slow is one finding, and so is each lane of a plane that is slow as a whole.
func TestSlowPlanes(t *testing.T) {
	f := planar(t)["tree of 4 planes"]
	rnd := rand.New(rand.NewPCG(18, 2))
	rules := func(slow func(c cable) bool) (list []string) {
		cables := cablesOf(f)
		for i := range cables {
			if slow(cables[i]) {
				cables[i].link.Speed = fabric.DDR
			}
		}
		for _, x := range Check(rewire(t, f, cables, rnd), Options{}).Findings {
			list = append(list, fmt.Sprint(x.Rule, " ", x.Count))
		}
		return list
	}
	one := cablesOf(f)[3]
	short.EqualList(t, rules(func(c cable) bool { return c == one }), []string{"link-degraded 1"}, "one slow lane")
	chip := fabric.NodeID(2)
	want := slices.Repeat([]string{"link-degraded 1"}, 9) // eight lanes, and that of its aggregation node
	short.EqualList(t, rules(func(c cable) bool { return f.Owner(c.a) == chip || f.Owner(c.b) == chip }), want, "a plane of eight slow lanes")
}

// A system with a chip less than those like it is one finding for its planes, and its
// neighbours have none of theirs.
func TestPlaneLost(t *testing.T) {
	f := planar(t)["tree of 4 planes"]
	list := found(Check(dead(t, f, 5), Options{}))
	if len(list) != 1 || list[0].Rule != UnevenPlanes || !strings.Contains(list[0].Message, "has 3 planes, and 11 of the 12 systems like it have 4") {
		t.Errorf("findings: %v", list)
	}
}

// The names of the chips say the system where they do so alike.
func TestSystemName(t *testing.T) {
	b := &fabric.Builder{}
	for i, name := range []string{"MF0;q1:Q3400_RA/U1", "MF0;q1:Q3400_RA/U2", "MF0;q2:Q3400_RA/U1", "other/U2"} {
		short.Must(b.AddNode(fabric.Node{GUID: fabric.GUID(i + 1), SystemGUID: fabric.GUID(0x10 + i/2), Type: fabric.Switch, NumPorts: 4, Description: name}))(t)
	}
	f := short.Must(b.Build())(t)
	c := &checker{f: f}
	for i, want := range []string{`system "MF0;q1:Q3400_RA"`, "system 0x0000000000000011"} {
		short.Equal(t, c.systemName(f.Systems()[i]), want)
	}
}

// An aggregation node that is taken away is a finding that names the switch and the port,
// from four other switches on.
func TestMissingAggregation(t *testing.T) {
	f := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 2}))(t)
	f = short.Must(gen.Options{AggregationNodes: true}.Apply(f))(t)
	if list := found(Check(f, Options{})); len(list) > 0 {
		t.Fatal(list)
	}
	var nodes []fabric.NodeID
	for n := range fabric.NodeID(f.NumNodes()) {
		if f.Kind(n) == fabric.AggregationKind {
			nodes = append(nodes, n)
		}
	}
	for lost := 1; lost <= len(nodes); lost++ {
		list := found(Check(dead(t, f, nodes[:lost]...), Options{}))
		want := lost
		if with := len(nodes) - lost; with < 4 || 4*with < 3*len(nodes) {
			want = 0
		}
		short.Equal(t, len(list), want, lost, "of", len(nodes), "aggregation nodes lost", "findings")
		for i, x := range list {
			at := f.Peer(f.Port(nodes[i], 1))
			if x.Rule != MissingAggregation || len(x.Ports) != 1 || x.Ports[0] != verify.EndpointOf(f, at) {
				t.Errorf("%s: %s, want %s", x.Rule, x.Message, f.PortName(at))
			}
		}
	}
}

// railed is a tree with hosts on four rails, whose adapters are called as sites do.
func railed(t testing.TB) *fabric.Fabric {
	t.Helper()
	f := short.Must(gen.Tree(gen.TreeSpec{Ports: 32, Pods: []int{2}, Hosts: 6, Rails: 4, Spines: 4}))(t)
	return short.Must(gen.Options{Names: "site"}.Apply(f))(t)
}

// Check has the rules of rails where hosts have several ports and agree where these belong, and no
// second finding about a port that they name. An expected topology says all by itself.
func TestRails(t *testing.T) {
	f := railed(t)
	swap := func(list []cable, p, q fabric.PortID) {
		for i := range list {
			switch list[i].b {
			case p:
				list[i].b = q
			case q:
				list[i].b = p
			}
		}
	}
	at := func(host string, adapter string) fabric.PortID { return port(f, host+" mlx5_"+adapter, 1) }
	for name, tc := range map[string]struct {
		change func(list []cable) []cable
		want   []string
	}{
		"whole": {func(list []cable) []cable { return list }, nil},
		"swapped": {func(list []cable) []cable {
			swap(list, at("node0003", "0"), at("node0003", "1"))
			return list
		}, []string{"error rail-swapped 2"}},
		"mixed": {func(list []cable) []cable {
			swap(list, at("node0003", "0"), at("node0004", "1"))
			return list
		}, []string{"error rail-mixed 1", "error rail-mixed 1"}},
		"another unit": {func(list []cable) []cable {
			swap(list, at("node0003", "0"), at("node0009", "0"))
			return list
		}, []string{"warning rail-mixed 1", "warning rail-mixed 1"}},
		"missing": {func(list []cable) []cable {
			return slices.DeleteFunc(list, func(c cable) bool { return c.b == at("node0003", "2") })
		}, []string{"warning isolated-node 1", "warning rail-missing 1"}},
		"no rails": {func(list []cable) []cable { // hosts are cabled by chance
			var hosts []int
			for i := range list {
				if !f.IsSwitch(f.Owner(list[i].b)) {
					hosts = append(hosts, i)
				}
			}
			r := rand.New(rand.NewPCG(4, 4))
			r.Shuffle(len(hosts), func(i, j int) {
				a, b := &list[hosts[i]], &list[hosts[j]]
				a.b, b.b = b.b, a.b
			})
			return list
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := edited(t, f, tc.change)
			said := func(opt Options) (list []string) {
				for _, x := range Check(g, opt).Findings {
					if x.Severity > verify.Note {
						list = append(list, strings.Join([]string{x.Severity.String(), x.Rule, string(rune('0' + x.Count))}, " "))
					}
				}
				slices.Sort(list)
				return list
			}
			short.EqualList(t, said(Options{}), tc.want)
			for _, x := range Check(g, Options{Expected: f}).Findings {
				if _, ok := verify.FindRule(x.Rule, rails.Rules); ok || x.Rule == PortDown {
					t.Errorf("with an expected topology: %s: %s", x.Rule, x.Message)
				}
			}
			for _, x := range Check(g, Options{}).Findings {
				if x.Rule == PortDown && name != "no rails" {
					t.Errorf("a second finding: %s", x.Message)
				}
			}
		})
	}
}

// Slow links among peers are found, generations side by side are not, though all switches
// are of one model.
func TestSlowLinks(t *testing.T) {
	w := &network{}
	w.tree(16, 8, 8, 2) // s0 to s15 are leaves, s16 to s23 spines
	tree := w.fabric(t)
	two := &network{}
	two.tree(6, 8, 6, 3) // s0 to s5, s6 to s11: the old one
	two.tree(16, 8, 8, 2)
	old := two.fabric(t)
	ndr, edr, narrow := fabric.Link{Width: 4, Speed: fabric.NDR}, fabric.Link{Width: 4, Speed: fabric.EDR}, fabric.Link{Width: 1, Speed: fabric.NDR}
	number := func(name string) int {
		n := 0
		for _, c := range name[1:] {
			if c < '0' || c > '9' {
				break
			}
			n = 10*n + int(c-'0')
		}
		return n
	}
	// slow says by the names of both ends, and the number of parallel ones before it,
	// whether a cable is.
	for _, tc := range []struct {
		name string
		f    *fabric.Fabric
		slow func(a, b string, k int) (fabric.Link, bool)
		want string
	}{
		{"none", tree, func(a, b string, k int) (fabric.Link, bool) { return ndr, false }, ""},
		{"unknown", tree, func(a, b string, k int) (fabric.Link, bool) { return fabric.Link{}, true }, ""},
		{"one cable", tree, func(a, b string, k int) (fabric.Link, bool) { return edr, a == "s3" && b == "s18" && k == 1 },
			`link-degraded: "s3"[14] to "s18"[8] is 4xEDR, while other links of both ends or of their neighbours are 4xNDR`},
		{"one cable, others unknown", tree, func(a, b string, k int) (fabric.Link, bool) {
			if number(a) > 4 {
				return fabric.Link{}, true
			}
			return narrow, a == "s3" && b == "s18" && k == 1
		}, `link-degraded: "s3"[14] to "s18"[8] is 1xNDR, while other links of both ends or of their neighbours are 4xNDR`},
		{"a host", tree, func(a, b string, k int) (fabric.Link, bool) { return edr, b == "h3-2" },
			`link-degraded: "s3"[3] to "h3-2"[1] is 4xEDR, while other links of both ends or of their neighbours are 4xNDR`},
		{"eight cables", tree, func(a, b string, k int) (fabric.Link, bool) {
			return edr, b == "s18" && number(a) < 2 || a == "s0" && b[0] == 's' && number(b) < 18
		},
			`link-degraded: "s0"[10] to "s16"[2] is 4xEDR, while other links of both ends or of their neighbours are 4xNDR
link-degraded: "s0"[11] to "s17"[1] is 4xEDR, while other links of both ends or of their neighbours are 4xNDR
link-degraded: "s0"[12] to "s17"[2] is 4xEDR, while other links of both ends or of their neighbours are 4xNDR
link-degraded: "s0"[13] to "s18"[1] is 4xEDR, while other links of both ends or of their neighbours are 4xNDR
link-degraded: "s0"[14] to "s18"[2] is 4xEDR, while other links of both ends or of their neighbours are 4xNDR
link-degraded: "s0"[9] to "s16"[1] is 4xEDR, while other links of both ends or of their neighbours are 4xNDR
link-degraded: "s1"[13] to "s18"[3] is 4xEDR, while other links of both ends or of their neighbours are 4xNDR
link-degraded: "s1"[14] to "s18"[4] is 4xEDR, while other links of both ends or of their neighbours are 4xNDR`},
		{"half of the leaves", tree, func(a, b string, k int) (fabric.Link, bool) { return edr, number(a) < 8 }, ""},
		{"half of the spines", tree, func(a, b string, k int) (fabric.Link, bool) { return edr, b[0] == 's' && number(b) < 20 }, ""},
		{"hosts of two generations", tree, func(a, b string, k int) (fabric.Link, bool) {
			return edr, b[0] == 'h' && strings.ContainsAny(b[len(b)-1:], "0246")
		}, ""},
		{"an old island", old, func(a, b string, k int) (fabric.Link, bool) { return edr, number(a) < 12 }, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cables := cablesOf(tc.f)
			parallel := make(map[string]int)
			for i := range cables {
				c := &cables[i]
				a, b := tc.f.Node(tc.f.Owner(c.a)).Description, tc.f.Node(tc.f.Owner(c.b)).Description
				c.link = ndr
				if link, slow := tc.slow(a, b, parallel[a+b]); slow {
					c.link = link
				}
				parallel[a+b]++
			}
			f := rewire(t, tc.f, cables, rand.New(rand.NewPCG(1, 1)))
			for _, x := range SlowLinks(f) {
				want := verify.Error
				if strings.Contains(x.Message, "to \"h") {
					want = verify.Warning
				}
				short.Equal(t, x.Severity, want, x.Message, "severity")
			}
			short.Equal(t, sortedMessages(SlowLinks(f)), tc.want)
		})
	}
}

func sortedMessages(list []verify.Finding) string {
	m := messages(list)
	slices.Sort(m)
	return strings.Join(m, "\n")
}

// A plan of another fabric is one finding, and so is a policy that most links are below.
func TestFitsNothing(t *testing.T) {
	w := &network{}
	w.tree(16, 8, 8, 2)
	f := w.fabric(t)
	w.tree(4, 2, 3, 1)
	both, own := w.fabric(t), make(map[fabric.GUID]bool)
	for n := range fabric.NodeID(f.NumNodes()) {
		own[f.Node(n).GUID] = true
	}
	var others []fabric.NodeID
	for n := range fabric.NodeID(both.NumNodes()) {
		if !own[both.Node(n).GUID] {
			others = append(others, n)
		}
	}
	other := short.Must(both.Part(others))(t)
	cables := cablesOf(f)
	for i := range cables {
		cables[i].link = fabric.Link{Width: 4, Speed: fabric.NDR}
	}
	f = rewire(t, f, cables, rand.New(rand.NewPCG(1, 1)))
	var messages []string
	for _, opt := range []Options{{Expected: other}, {Between: fabric.Link{Speed: fabric.XDR}}, {Hosts: fabric.Link{Width: 8}}} {
		for _, x := range Check(f, opt).Findings {
			if x.Severity == verify.Error {
				messages = append(messages, fmt.Sprintf("%s %d %s", x.Rule, x.Count, x.Message))
			}
		}
	}
	want := []string{
		"missing-node 20 none of the 15 nodes of the expected topology is in the fabric: it is of another fabric, or --node-name-map has other names",
		`link-below-required 256 256 of 256 links between switches are below what the policy wants; the first: "s0"[9] to "s16"[1] is 4xNDR, the policy wants XDR`,
		`link-below-required 128 128 of 128 links of hosts are below what the policy wants; the first: "s0"[1] to "h0-0"[1] is 4xNDR, the policy wants 8x`,
	}
	short.EqualList(t, messages, want)
}

// network is a fabric in the making: hosts by switch, and cables between switches.
type network struct {
	hosts  []int
	cables [][2]int
}

// switches adds n switches with some hosts each, and gives the index of the first.
func (w *network) switches(n, hosts int) int {
	first := len(w.hosts)
	for range n {
		w.hosts = append(w.hosts, hosts)
	}
	return first
}

func (w *network) join(a, b, cables int) {
	for range cables {
		w.cables = append(w.cables, [2]int{a, b})
	}
}

// tree joins leaves to spines.
func (w *network) tree(leaves, hosts, spines, parallel int) {
	first := w.switches(leaves, hosts)
	top := w.switches(spines, 0)
	for l := range leaves {
		for s := range spines {
			w.join(first+l, top+s, parallel)
		}
	}
}

// fabric builds it. Ports are given out in the order of the cables, hosts first.
func (w *network) fabric(t testing.TB) *fabric.Fabric {
	t.Helper()
	hosts := 0
	for _, n := range w.hosts {
		hosts += n
	}
	p := short.Must(gen.NewPlan(len(w.hosts), hosts))(t)
	at, used := make([]int, len(w.hosts)), make([]int, len(w.hosts))
	node := 0
	for s, n := range w.hosts {
		at[s] = node
		p.Switch(64, fmt.Sprint("s", s))
		for h := range n {
			p.CA(1, fmt.Sprint("h", s, "-", h))
			p.Cable(at[s], h+1, node+h+1, 1)
		}
		used[s], node = n, node+n+1
	}
	for _, c := range w.cables {
		used[c[0]]++
		used[c[1]]++
		p.Cable(at[c[0]], used[c[0]], at[c[1]], used[c[1]])
	}
	return short.Must(p.Fabric())(t)
}

// odd are networks that operators run and that are no tree and no grid, or are one
// only in part. Nothing is missing in any of them.
func odd() map[string]*network {
	list := make(map[string]*network)
	made := func(name string, build func(w *network)) {
		w := &network{}
		build(w)
		list[name] = w
	}
	for _, n := range [][3]int{{9, 4, 2}, {5, 8, 4}, {3, 4, 1}, {4, 6, 2}, {7, 3, 2}} {
		made(fmt.Sprintf("dragonfly %v", n), func(w *network) {
			groups, size, global := n[0], n[1], n[2]
			w.switches(groups*size, 2)
			next := make([]int, groups)
			for g := range groups {
				for a := range size {
					for b := range a {
						w.join(g*size+a, g*size+b, 1)
					}
				}
			}
			for range max(1, size*global/(groups-1)) {
				for g := range groups {
					for o := range g {
						w.join(g*size+next[g]/global%size, o*size+next[o]/global%size, 1)
						next[g]++
						next[o]++
					}
				}
			}
		})
	}
	for _, n := range [][2]int{{3, 3}, {4, 4}, {3, 5}, {5, 5}} {
		made(fmt.Sprintf("HyperX %v", n), func(w *network) {
			w.switches(n[0]*n[1], 3)
			for a := range n[0] * n[1] {
				for b := range a {
					if a/n[1] == b/n[1] || a%n[1] == b%n[1] {
						w.join(a, b, 1)
					}
				}
			}
		})
	}
	for _, hosts := range []int{0, 1, 4, 8, 12, 16} {
		made(fmt.Sprintf("a switch with %d hosts below a leaf", hosts), func(w *network) {
			w.tree(8, 16, 4, 4)
			w.join(0, w.switches(1, hosts), 2)
		})
		made(fmt.Sprintf("three leaves with %d hosts", hosts), func(w *network) {
			w.tree(8, 16, 4, 4)
			w.hosts[1], w.hosts[2], w.hosts[5] = hosts, hosts, hosts
		})
		made(fmt.Sprintf("a switch with %d hosts on two spines", hosts), func(w *network) {
			w.tree(12, 16, 8, 2)
			s := w.switches(1, hosts)
			w.join(s, 12, 2)
			w.join(s, 13, 2)
		})
		made(fmt.Sprintf("leaves with %d hosts and half the uplinks", hosts), func(w *network) {
			w.tree(12, 16, 4, 4)
			for range 2 {
				s := w.switches(1, hosts)
				for spine := 12; spine < 16; spine++ {
					w.join(s, spine, 2)
				}
			}
		})
	}
	made("two trees joined by a switch", func(w *network) {
		w.tree(6, 18, 6, 3)
		w.tree(8, 32, 8, 4)
		s := w.switches(2, 0)
		for i := range 2 {
			for spine := range 6 {
				w.join(s+i, 6+spine, 1)
			}
			for spine := range 8 {
				w.join(s+i, 20+spine, 1)
			}
		}
	})
	made("two trees joined by a cable", func(w *network) {
		w.tree(6, 12, 3, 4)
		w.tree(6, 12, 3, 4)
		w.join(6, 15, 1)
	})
	return list
}

// Networks of which nothing is missing have no finding of severity error, nor of a missing cable: a shape that
// does not explain them is a guess. Random networks are not certain of any shape with
// something missing.
func TestNoErrorsByGuess(t *testing.T) {
	check := func(t *testing.T, f *fabric.Fabric) {
		t.Helper()
		r := Check(f, Options{})
		for _, x := range r.Findings {
			if x.Severity == verify.Error {
				t.Errorf("%s: %s: %s", r.Shape, x.Rule, x.Message)
			}
			if slices.Contains([]string{MissingCable, MissingSwitch, MovedCable, CrossedCables}, x.Rule) {
				t.Errorf("%s: %s", r.Shape, x.Message)
			}
		}
	}
	for name, w := range odd() {
		t.Run(name, func(t *testing.T) { check(t, w.fabric(t)) })
	}
	t.Run("random", func(t *testing.T) {
		for trial := range 20 * short.Of(*trials, 1) {
			r := rand.New(rand.NewPCG(3, uint64(trial)))
			w := &network{}
			n := 5 + r.IntN(36)
			for s := range n {
				w.switches(1, r.IntN(4)*r.IntN(4))
				if s > 0 {
					w.join(s, r.IntN(s), 1+r.IntN(2))
				}
			}
			for range r.IntN(2 * n) {
				if a, b := r.IntN(n), r.IntN(n); a != b {
					w.join(a, b, 1+r.IntN(2))
				}
			}
			check(t, w.fabric(t))
		}
	})
}

// A certain shape with a few cables missing keeps its errors, and they are those cables.
func TestErrorsOfCertainShapes(t *testing.T) {
	large := fabrics(t)
	delete(large, "banyan-3")
	delete(large, "irregular-20")
	delete(large, "file")
	large["fattree-12"] = must(gen.FatTree(gen.FatTreeSpec{Radix: 12, Levels: 2}))
	large["torus-8x8"] = torus(8, 8)
	large["mesh-6x4x3"] = must(mesh.Generate(mesh.Spec{Dims: []int{6, 4, 3}, Hosts: 2}))
	for name, whole := range large {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(short.Of(*trials, 2)) {
				lost := 1 + int(seed)%2
				r := Check(must(gen.DropLinks(whole, lost, seed)), Options{})
				if !r.Shape.Certain || r.Shape.MissingCables != lost {
					t.Fatalf("seed %d: %s", seed, r.Shape)
				}
				missing := int64(0)
				for _, x := range r.Findings {
					if x.Rule == MissingCable && x.Severity == verify.Error {
						missing += x.Count
					}
				}
				short.MustEqual(t, missing, int64(lost), "seed", seed, "of", lost, "cables are errors", r.Findings)
			}
		})
	}
}
