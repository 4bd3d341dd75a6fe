package bound

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mesh"
)

// What bounds say of fabrics that a reader can calculate.
func TestFind(t *testing.T) {
	ndr, hdr := fabric.Link{Width: 4, Speed: fabric.NDR}, fabric.Link{Width: 4, Speed: fabric.HDR}
	for _, test := range []struct {
		hosts  []int
		cables []fabric.Link
		want   string // bound, and words
	}{
		// 3 hosts send to 5 LIDs by 2 cables: 3 LIDs by one of them.
		{[]int{3, 5}, []fabric.Link{ndr, ndr}, `10/1 "a": 5 hosts beyond send to 3 LIDs over 2 cables, in lumps of 5, since a switch has one port for a LID`},
		{[]int{3, 6}, []fabric.Link{ndr, ndr}, `12/1 "a": 6 hosts beyond send to 3 LIDs over 2 cables, in lumps of 6, since a switch has one port for a LID`},
		{[]int{3, 5}, []fabric.Link{ndr}, `15/1 "a": 3 hosts send to 5 LIDs beyond over 1 cable`},
		{[]int{1, 1}, []fabric.Link{ndr, ndr, ndr}, `1/1 "a": 1 host sends to 1 LID beyond over 3 cables`},
		// 4 lumps of 4: 3 by the fast cable, 1 by the slow one, as 8 on the fast one.
		{[]int{4, 4}, []fabric.Link{ndr, hdr}, `12/1 "a": 4 hosts send to 4 LIDs beyond over 2 cables, as fast as 1.5 of the fastest, in lumps of 4, since a switch has one port for a LID`},
		// The rate that is not known is that of most.
		{[]int{4, 4}, []fabric.Link{ndr, ndr, {}}, `8/1 "a": 4 hosts send to 4 LIDs beyond over 3 cables, in lumps of 4, since a switch has one port for a LID`},
		{[]int{4, 0}, []fabric.Link{ndr}, ""},
		{[]int{4, 4}, nil, ""},
	} {
		b := find(t, leaves(t, test.hosts, test.cables), Options{})
		got := ""
		if b.Any != nil {
			got = b.Any.Exact.String() + " " + b.Any.Words
		}
		if got != test.want || b.Shortest != nil || b.Legal != nil {
			t.Errorf("%v hosts, cables %v: %q, want %q; by shortest paths %v", test.hosts, test.cables, got, test.want, b.Shortest)
		}
	}
}

// Shortest paths have to take the one cable between two leaves of a tree.
func TestNeighbors(t *testing.T) {
	var b fabric.Builder
	fail := func(err error) {
		short.Check(t, err)
	}
	for i, name := range []string{"leaf 1", "leaf 2", "spine 1", "spine 2"} {
		_, err := b.AddNode(fabric.Node{Type: fabric.Switch, GUID: fabric.GUID(1 + i), NumPorts: 8, Description: name})
		fail(err)
	}
	for i, cable := range [][2]int{{0, 2}, {0, 3}, {1, 2}, {1, 3}, {0, 1}} {
		fail(b.Connect(cable[0], fabric.PortNum(1+i), cable[1], fabric.PortNum(1+i), fabric.Link{}))
	}
	for i := range 4 {
		h, err := b.AddNode(fabric.Node{Type: fabric.CA, GUID: fabric.GUID(0x100 + i), NumPorts: 1})
		fail(err)
		fail(b.Connect(h, 1, i/2, fabric.PortNum(6+i%2), fabric.Link{}))
	}
	f, err := b.Build()
	fail(err)
	for _, rounds := range []int{-1, 40} {
		got := find(t, f, Options{Rounds: rounds})
		const want = `"leaf 1": 2 hosts send to the 2 LIDs of its neighbor "leaf 2" over 1 cable`
		if got.Any.Exact.String() != "2/1" || got.Shortest == nil || got.Shortest.Exact.String() != "4/1" || got.Shortest.Words != want {
			t.Errorf("%d rounds: %+v, by shortest paths %+v, want 2/1 and 4/1, %s", rounds, got.Any, got.Shortest, want)
		}
	}
}

// The partitions of a tree of pods are its pods and planes.
func TestPartitions(t *testing.T) {
	f := podFabric(t)
	var got []string
	for _, p := range newNetwork(f).partitions() {
		got = append(got, strings.TrimSpace(p.name+" "+strings.Join(classes(f, p), "|")))
	}
	want := []string{
		"l0|l1|l2|l3|s0|s1|s2|s3|c0|c1",
		"a plane l0|l1|l2|l3|s0,s2,c0|s1,s3,c1",
		"a pod l0,l1,s0,s1|l2,l3,s2,s3|c0|c1",
	}
	short.Equal(t, strings.Join(got, "\n"), strings.Join(want, "\n"), "partitions")
}

// classes names the switches of each class.
func classes(f *fabric.Fabric, p *partition) []string {
	list := make([]string, p.n)
	for s, class := range p.of {
		if list[class] != "" {
			list[class] += ","
		}
		list[class] += f.Node(fabric.NodeID(s)).Description
	}
	return list
}

// podFabric is two pods of two leaves and two spines, each plane of spines with a core.
func podFabric(t *testing.T) *fabric.Fabric {
	t.Helper()
	var b fabric.Builder
	fail := func(err error) {
		short.Check(t, err)
	}
	index, next := map[string]int{}, map[string]fabric.PortNum{}
	for i, name := range []string{"l0", "l1", "l2", "l3", "s0", "s1", "s2", "s3", "c0", "c1"} {
		n, err := b.AddNode(fabric.Node{Type: fabric.Switch, GUID: fabric.GUID(1 + i), NumPorts: 8, Description: name})
		fail(err)
		index[name] = n
	}
	connect := func(x, y string) {
		next[x]++
		next[y]++
		fail(b.Connect(index[x], next[x], index[y], next[y], fabric.Link{}))
	}
	for _, x := range []string{"l0", "l1", "l2", "l3"} {
		for _, k := range []string{"0", "1"} {
			spine := map[string]string{"0": "s0", "1": "s1"}[k]
			if x > "l1" {
				spine = map[string]string{"0": "s2", "1": "s3"}[k]
			}
			connect(x, spine)
		}
		h, err := b.AddNode(fabric.Node{Type: fabric.CA, GUID: fabric.GUID(0x100 + index[x]), NumPorts: 1})
		fail(err)
		next[x]++
		fail(b.Connect(h, 1, index[x], next[x], fabric.Link{}))
	}
	for _, cable := range [][2]string{{"s0", "c0"}, {"s2", "c0"}, {"s1", "c1"}, {"s3", "c1"}} {
		connect(cable[0], cable[1])
	}
	f, err := b.Build()
	fail(err)
	return f
}

// All routes to a leaf with one neighbor come together there.
func TestGates(t *testing.T) {
	f := leaves(t, []int{7, 3}, []fabric.Link{{}, {}})
	w := newNetwork(f)
	gates := greatest{network: w}
	w.cuts(w.partitions(), true, gates.see)
	x := gates.candidate()
	if x.value == nil || !x.gate {
		t.Fatal("no gate")
	}
	if err := w.certificate(&x).Check(f, nil); err != nil {
		t.Error(err)
	}
	three := gateFabric(t)
	b := find(t, three, Options{Rounds: -1})
	if got := b.Any.Exact.String(); got != "8/1" || !b.Any.Certificate.Gate {
		t.Errorf("%s by %s, want 8/1 by a gate", got, b.Any.Words)
	}
	if list, err := Read("x", b.Any.Certificate.Append(nil)); err != nil || !list[0].Gate || list[0].Check(three, nil) != nil {
		t.Errorf("read again: %v", err)
	}
	for _, change := range []func(c *Certificate){
		func(c *Certificate) { c.Sources = append(c.Sources, 1) },
		func(c *Certificate) { c.Sources[0] = 77 },
		func(c *Certificate) { c.Sources[0] = 2 },
		func(c *Certificate) { c.Gate = false },
		func(c *Certificate) { c.Unit = 5; c.Bound.SetInt64(10) }, // of 4 hosts beyond
	} {
		c := clone(b.Any.Certificate)
		change(c)
		if c.Check(three, nil) == nil {
			t.Errorf("a changed gate holds: %+v", c)
		}
	}
}

// An island that one switch joins to the others has it as a gate.
func TestGateOfIsland(t *testing.T) {
	var b fabric.Builder
	fail := func(err error) {
		short.Check(t, err)
	}
	for i, name := range []string{"leaf 1", "leaf 2", "spine", "core", "leaf 3", "leaf 4"} {
		_, err := b.AddNode(fabric.Node{Type: fabric.Switch, GUID: fabric.GUID(1 + i), NumPorts: 20, Description: name})
		fail(err)
	}
	next := fabric.PortNum(0)
	for _, cable := range [][3]int{{0, 2, 2}, {1, 2, 2}, {2, 3, 2}, {3, 4, 4}, {3, 5, 4}} {
		for range cable[2] {
			next++
			fail(b.Connect(cable[0], next, cable[1], next, fabric.Link{}))
		}
	}
	for i, leaf := range []int{0, 1, 1, 4, 4, 5, 5} {
		h, err := b.AddNode(fabric.Node{Type: fabric.CA, GUID: fabric.GUID(0x100 + i), NumPorts: 1})
		fail(err)
		fail(b.Connect(h, 1, leaf, fabric.PortNum(12+i), fabric.Link{}))
	}
	f, err := b.Build()
	fail(err)
	const want = `8/1 an island of 3 switches, "leaf 1" the first: 4 hosts beyond send to 3 LIDs over 2 cables from "core" alone, in lumps of 4, since a switch has one port for a LID`
	if x := find(t, f, Options{Rounds: -1}).Any; x.Exact.String()+" "+x.Words != want {
		t.Errorf("%s %s, want %s", x.Exact, x.Words, want)
	}
}

// gateFabric is two leaves of two hosts each at a spine without hosts, which has two cables to a third
// leaf with three hosts, and four to each other one.
func gateFabric(t *testing.T) *fabric.Fabric {
	t.Helper()
	var b fabric.Builder
	fail := func(err error) {
		short.Check(t, err)
	}
	for i, name := range []string{"leaf 1", "leaf 2", "leaf 3", "spine"} {
		_, err := b.AddNode(fabric.Node{Type: fabric.Switch, GUID: fabric.GUID(1 + i), NumPorts: 20, Description: name})
		fail(err)
	}
	next := fabric.PortNum(0)
	for leaf, cables := range []int{4, 4, 2} {
		for range cables {
			next++
			fail(b.Connect(leaf, next, 3, next, fabric.Link{}))
		}
	}
	for i := range 7 {
		leaf := min(i/2, 2)
		h, err := b.AddNode(fabric.Node{Type: fabric.CA, GUID: fabric.GUID(0x100 + i), NumPorts: 1})
		fail(err)
		fail(b.Connect(h, 1, leaf, fabric.PortNum(12+i), fabric.Link{}))
	}
	f, err := b.Build()
	fail(err)
	return f
}

// The groups of a dragonfly are cut off, whatever their number of switches.
func TestGroups(t *testing.T) {
	var b fabric.Builder
	fail := func(err error) {
		short.Check(t, err)
	}
	const groups, size = 3, 4
	next := make([]fabric.PortNum, groups*size)
	cable := func(i, k int) {
		next[i]++
		next[k]++
		fail(b.Connect(i, next[i], k, next[k], fabric.Link{}))
	}
	for i := range groups * size {
		_, err := b.AddNode(fabric.Node{Type: fabric.Switch, GUID: fabric.GUID(1 + i), NumPorts: 20, Description: fmt.Sprint("s", i)})
		fail(err)
	}
	for i := range groups * size {
		for k := i/size*size + size - 1; k > i; k-- {
			cable(i, k)
		}
		for range 2 {
			h, err := b.AddNode(fabric.Node{Type: fabric.CA, GUID: fabric.GUID(0x100 + len(next)), NumPorts: 1})
			fail(err)
			next = append(next, 0)
			cable(h, i)
		}
	}
	cable(0, size)
	cable(1, 2*size)
	cable(size+1, 2*size+1)
	f, err := b.Build()
	fail(err)
	const want = `64/1 a group of 4 switches, "s0" the first: 8 hosts send to 16 LIDs beyond over 2 cables`
	if x := find(t, f, Options{Rounds: -1}).Any; x.Exact.String()+" "+x.Words != want {
		t.Errorf("%s %s, want %s", x.Exact, x.Words, want)
	}
}

// The first switches need not be joined by cables among themselves: then routes inside of them cross the cut, too, and the
// certificate says all that it proves.
func TestFirstSwitchesApart(t *testing.T) {
	f := short.Must(gen.Irregular(gen.IrregularSpec{Switches: 42, Degree: 3, Seed: 36, Hosts: 81}))(t)
	if x := find(t, f, Options{Rounds: -1}).Any; x.Exact.String() != "90/1" || len(x.Certificate.Channels) != 10 {
		t.Errorf("%s %s, want 90/1 by 10 channels", x.Exact, x.Words)
	}
}

// On a damaged torus few rounds come nearly as far as many.
func TestFewRounds(t *testing.T) {
	f, err := mesh.Generate(mesh.Spec{Dims: []int{5, 4, 4}, Wrap: []bool{true, true, true}, Hosts: 2})
	short.Check(t, err)
	if f, err = gen.DropLinks(f, 4, 3); err != nil {
		t.Fatal(err)
	}
	w := newNetwork(f)
	for _, paths := range []Paths{AnyPaths, ShortestPaths} {
		reached := func(rounds int) float64 {
			x := newSeeker(newWays(w, paths, nil))
			price := short.Must(x.seek(t.Context(), rounds))(t)
			x.price = price
			x.setPrices()
			value := short.Must(x.route(t.Context(), 1e-9))(t)
			return value
		}
		if few, many := reached(20), reached(60); few < 0.94*many {
			t.Errorf("%s paths: %.2f in 20 rounds, and %.2f in 60", paths, few, many)
		}
	}
}
