package lft

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
)

// pairOfSwitches is two switches of 3 ports, cabled by their ports 1, with a CA
// on port 2 of each. Ports 3 have no cable.
func pairOfSwitches(t testing.TB) *fabric.Fabric {
	t.Helper()
	var b fabric.Builder
	var nodes []int
	for i, n := range []fabric.Node{
		{Type: fabric.Switch, GUID: 1, NumPorts: 3}, {Type: fabric.Switch, GUID: 2, NumPorts: 3},
		{Type: fabric.CA, GUID: 0x10, NumPorts: 1}, {Type: fabric.CA, GUID: 0x20, NumPorts: 1},
	} {
		node, err := b.AddNode(n)
		if err != nil {
			t.Fatal(i, err)
		}
		nodes = append(nodes, node)
	}
	for _, c := range [][4]int{{0, 1, 1, 1}, {0, 2, 2, 1}, {1, 2, 3, 1}} {
		short.Check(t, b.Connect(nodes[c[0]], fabric.PortNum(c[1]), nodes[c[2]], fabric.PortNum(c[3]), fabric.Link{}))
	}
	return short.Must(b.Build())(t)
}

func TestVLMaps(t *testing.T) {
	for vls := 1; vls <= MaxDataVLs; vls++ {
		m := IdentityVLs(vls)
		for sl, vl := range m {
			if int(vl) != sl%vls {
				t.Errorf("identity on %d VLs: SL %d has VL %d", vls, sl, vl)
			}
		}
	}
	if m := ConstantVL(7); m != (VLMap{7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7}) {
		t.Errorf("%v", m)
	}
}

// TestSL2VLAgainstMap sets maps at random, and compares with a Go map of all
// ways: Set changes one way, SetOut all ways of a way out, and no others.
func TestSL2VLAgainstMap(t *testing.T) {
	f := pairOfSwitches(t)
	r := rand.New(rand.NewPCG(1, 2))
	type way struct {
		in  fabric.PortNum
		out fabric.PortID
	}
	start := IdentityVLs(4)
	s := NewSL2VL(f, start)
	want := map[way]VLMap{}
	for out := range fabric.PortID(f.NumPorts()) {
		ins := fabric.PortNum(0)
		if f.IsSwitch(f.Owner(out)) {
			ins = 3
		}
		for in := fabric.PortNum(0); in <= ins; in++ {
			want[way{in, out}] = start
		}
	}
	check := func(s *SL2VL) {
		t.Helper()
		for w, m := range want {
			if got := *s.At(w.in, w.out); got != m || s.Maps()[s.Index(w.in, w.out)] != m {
				t.Fatalf("way in %d, out %s: %v, map %d, want %v", w.in, f.PortName(w.out), got, s.Index(w.in, w.out), m)
			}
		}
	}
	check(s)
	ways := slices.Collect(func(yield func(way) bool) {
		for out := range fabric.PortID(f.NumPorts()) {
			for in := range fabric.PortNum(4) {
				if _, ok := want[way{in, out}]; ok && !yield(way{in, out}) {
					return
				}
			}
		}
	})
	for range 500 {
		w := ways[r.IntN(len(ways))]
		m := ConstantVL(fabric.VL(r.IntN(16)))
		m[r.IntN(NumSLs)] = fabric.VL(r.IntN(16))
		if r.IntN(4) > 0 {
			s.Set(w.in, w.out, m)
			want[w] = m
		} else {
			s.SetOut(w.out, m)
			for o := range want {
				if o.out == w.out {
					want[o] = m
				}
			}
		}
		check(s)
	}
	// For a CA's port the way in does not matter.
	ca := f.CAPorts()[0]
	s.Set(9, ca, ConstantVL(3))
	for in := range fabric.PortNum(5) {
		if got := *s.At(in, ca); got != ConstantVL(3) {
			t.Errorf("way in %d of a CA: %v", in, got)
		}
	}
	if s.Fabric() != f {
		t.Error("another fabric")
	}
}

// TestSL2VLStoresMapsOnce has maps that come back.
func TestSL2VLStoresMapsOnce(t *testing.T) {
	f := pairOfSwitches(t)
	s := NewSL2VL(f, ConstantVL(0))
	for i := range 100 {
		s.Set(fabric.PortNum(i%4), f.Port(0, fabric.PortNum(i%3)), ConstantVL(fabric.VL(i%2)))
	}
	if n := len(s.Maps()); n != 2 {
		t.Errorf("%d maps, want 2", n)
	}
}

func TestSL2VLNoSuchWayIn(t *testing.T) {
	f := pairOfSwitches(t)
	s := NewSL2VL(f, ConstantVL(0))
	defer func() {
		if recover() == nil {
			t.Error("port 4 of a switch with 3 ports has a map")
		}
	}()
	s.At(4, f.Port(0, 1))
}

func TestSL2VLs(t *testing.T) {
	f := pairOfSwitches(t)
	s := NewSL2VL(f, ConstantVL(0))
	vls := func(want int) {
		t.Helper()
		if got := s.VLs(); got != want {
			t.Errorf("%d VLs, want %d", got, want)
		}
	}
	vls(1)
	s.SetOut(f.Port(0, 3), ConstantVL(9)) // no cable
	s.SetOut(f.Port(0, 0), ConstantVL(9))
	vls(1)
	s.SetOut(f.Port(0, 1), ConstantVL(DropVL))
	vls(1)
	m := ConstantVL(DropVL)
	m[15] = 4
	s.Set(2, f.Port(1, 1), m)
	vls(5)
	s.SetOut(f.CAPorts()[1], ConstantVL(14))
	vls(15)
	s = NewSL2VL(f, ConstantVL(DropVL))
	vls(0)
}

func TestSL2VLEqualAndClone(t *testing.T) {
	f := pairOfSwitches(t)
	a := NewSL2VL(f, ConstantVL(1))
	// The same by another way: maps are numbered otherwise.
	b := NewSL2VL(f, ConstantVL(0))
	for out := range fabric.PortID(f.NumPorts()) {
		b.SetOut(out, ConstantVL(1))
	}
	if !a.Equal(b) || !b.Equal(a) {
		t.Error("equal tables differ")
	}
	c := a.Clone()
	c.Set(2, f.Port(0, 1), ConstantVL(5))
	if a.Equal(c) || c.Equal(a) {
		t.Error("a change of one way goes unseen")
	}
	if !a.Equal(b) || *a.At(2, f.Port(0, 1)) != ConstantVL(1) {
		t.Error("a change of the copy changes the original")
	}
	a.Set(0, f.Port(0, 1), ConstantVL(6)) // a map that the copy does not know
	if *c.At(0, f.Port(0, 1)) != ConstantVL(1) {
		t.Error("a change of the original changes the copy")
	}
	var empty fabric.Builder
	g := short.Must(empty.Build())(t)
	if a.Equal(NewSL2VL(g, ConstantVL(1))) {
		t.Error("tables of two fabrics are equal")
	}
}

func TestPathSLs(t *testing.T) {
	p := NewPathSLs(4, 9)
	if p.Switches() != 4 || p.MaxLID() != 9 {
		t.Errorf("%d switches, LIDs up to %d", p.Switches(), p.MaxLID())
	}
	row := func(s fabric.NodeID, want fabric.SL) {
		t.Helper()
		if got := p.Row(s); !slices.Equal(got, slices.Repeat([]fabric.SL{want}, 10)) {
			t.Errorf("switch %d: %v, want %d for all LIDs", s, got, want)
		}
	}
	for s := range fabric.NodeID(4) {
		row(s, 0)
	}
	p.SetRow(slices.Repeat([]fabric.SL{3}, 10), 1, 3)
	p.SetRow(slices.Repeat([]fabric.SL{5}, 10), 3)
	for s, want := range []fabric.SL{0, 3, 0, 5} {
		row(fabric.NodeID(s), want)
	}
	defer func() {
		if recover() == nil {
			t.Error("a row of 9 LIDs passes for 10")
		}
	}()
	p.SetRow(make([]fabric.SL, 9), 0)
}

// Ports of a switch that agree except for what they would send to themselves share a row;
// others have their own, and those of which nothing is known have none of another's.
func TestPathSLsFrom(t *testing.T) {
	var b fabric.Builder
	for i, n := range []fabric.Node{
		{Type: fabric.Switch, GUID: 1, NumPorts: 5},
		{Type: fabric.CA, GUID: 0x10, NumPorts: 1}, {Type: fabric.CA, GUID: 0x20, NumPorts: 1},
		{Type: fabric.CA, GUID: 0x30, NumPorts: 1}, {Type: fabric.CA, GUID: 0x40, NumPorts: 1},
	} {
		short.Must(b.AddNode(n))(t)
		short.Check(t, b.SetPort(i, fabric.PortNum(min(i, 1)), 0, fabric.LID(i+1), 0))
		if i > 0 {
			short.Check(t, b.Connect(0, fabric.PortNum(i), i, 1, fabric.Link{}))
		}
	}
	f := short.Must(b.Build())(t)
	const no = UnknownSL
	hosts := f.CAPorts()
	p := PathSLsFrom(f, map[fabric.PortID][]fabric.SL{
		hosts[0]: {no, 1, no, 3, 4, 5},
		hosts[1]: {no, 1, 2, no, 4, 5},
		hosts[2]: {no, 1, 9, 3, no, 5}, // another SL to LID 2 than the one before
	})
	if want := []fabric.SL{no, 1, 2, 3, 4, 5}; !slices.Equal(p.Given(0), want) || p.PortRow(hosts[0]) != nil || p.PortRow(hosts[1]) != nil {
		t.Errorf("the switch has %v, ports %v their own", p.Given(0), p.Ports())
	}
	if row := p.PortRow(hosts[2]); row == nil || row[2] != 9 {
		t.Errorf("the third host has %v", row)
	}
	for _, port := range []fabric.PortID{hosts[3], f.PortBase(0)} {
		if row := p.PortRow(port); !slices.Equal(row, []fabric.SL{no, no, no, no, no, no}) {
			t.Errorf("of port %d nothing is known, and it has %v", port, row)
		}
	}
	if a, b, c := p.SL(hosts[1], 0, 2), p.SL(hosts[2], 0, 2), p.SL(hosts[3], 0, 2); a != 2 || b != 9 || c != 0 {
		t.Errorf("SLs %d, %d and %d to LID 2", a, b, c)
	}
	if row := p.Row(0); row[0] != 0 || row[2] != 2 {
		t.Errorf("the plain row is %v", row)
	}
	// They stay on switches and ports of the same numbers.
	same := func(port fabric.PortID) fabric.PortID { return port }
	q := p.On(1, p.MaxLID(), func(s fabric.NodeID) fabric.NodeID { return s }, same)
	short.EqualList(t, q.Given(0), p.Given(0))
	for _, port := range p.Ports() {
		short.EqualList(t, q.PortRow(port), p.PortRow(port), port)
	}
}
