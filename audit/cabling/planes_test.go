package cabling

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/verify"
)

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
		if err != nil {
			t.Fatal(err)
		}
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

// dead is what discovery sees of f when nodes are dead.
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
