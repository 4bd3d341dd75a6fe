package cabling

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/routing/banyan"
	"github.com/ibweave/ibweave/verify"
)

var (
	trials       = flag.Int("trials", 20, "how many random faults of each kind there are on each fabric")
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
		if err != nil {
			t.Fatal(err)
		}
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
