package lft_test

import (
	"errors"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
)

// schemeFabric is two switches of four ports, of which the first has an
// enhanced port 0, with two cables between them, and a CA on each.
func schemeFabric(t *testing.T) *fabric.Fabric {
	t.Helper()
	var b fabric.Builder
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []fabric.Node{
		{GUID: 0xa, Type: fabric.Switch, NumPorts: 4, Description: "a", EnhancedPort0: true},
		{GUID: 0xb, Type: fabric.Switch, NumPorts: 4, Description: "b"},
		{GUID: 0xc, Type: fabric.CA, NumPorts: 2, Description: "c"},
		{GUID: 0xd, Type: fabric.CA, NumPorts: 1, Description: "d"},
	} {
		_, err := b.AddNode(n)
		must(err)
	}
	must(b.Connect(0, 1, 1, 1, fabric.Link{}))
	must(b.Connect(0, 2, 1, 4, fabric.Link{}))
	must(b.Connect(0, 3, 2, 2, fabric.Link{}))
	must(b.Connect(1, 2, 3, 1, fabric.Link{}))
	f, err := b.Build()
	must(err)
	return f
}

// TestSchemes pins the VLs of all SLs. The maps of identity are those that
// OpenSM programs without options: 0,1,..,14,7 masked by the port's VLs.
func TestSchemes(t *testing.T) {
	f := schemeFabric(t)
	for _, c := range []struct {
		vls              int
		identity, spread lft.VLMap
	}{
		{1, lft.VLMap{}, lft.VLMap{}},
		{2, lft.VLMap{0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1}, lft.VLMap{0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1}},
		{4, lft.VLMap{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}, lft.VLMap{0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}},
		{8, lft.VLMap{0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7}, lft.VLMap{0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7}},
		{15, lft.VLMap{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 7}, lft.VLMap{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0}},
	} {
		for name, scheme := range map[string]struct {
			make func(*fabric.Fabric, int) (*lft.SL2VL, error)
			want lft.VLMap
		}{"identity": {lft.IdentitySL2VL, c.identity}, "spread": {lft.SpreadSL2VL, c.spread}} {
			s := short.Must(scheme.make(f, c.vls))(t)
			for in, out := range s.PortPairs() {
				if *s.At(in, out) != scheme.want {
					t.Errorf("%s on %d VLs, from port %d to %s: %v, want %v", name, c.vls, in, f.PortName(out), s.At(in, out), scheme.want)
				}
			}
			if s.VLs() != c.vls {
				t.Errorf("%s on %d VLs uses %d", name, c.vls, s.VLs())
			}
			for _, have := range lft.VLCounts {
				if err := s.CheckVLs(func(fabric.PortID) int { return have }); (err == nil) != (have >= c.vls) {
					t.Errorf("%s on %d VLs, ports with %d: %v", name, c.vls, have, err)
				}
			}
		}
	}
	for _, n := range []int{-1, 0, 3, 5, 7, 9, 14, 16} {
		for name, scheme := range map[string]func(*fabric.Fabric, int) (*lft.SL2VL, error){"identity": lft.IdentitySL2VL, "spread": lft.SpreadSL2VL} {
			s, err := scheme(f, n)
			if s != nil || err == nil || err.Error() != lft.CheckVLCount(n).Error() {
				t.Errorf("%s on %d VLs: %v", name, n, err)
			}
		}
	}
	if got, want := lft.CheckVLCount(3).Error(), "3 data VLs; ports have 1, 2, 4, 8 or 15"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestPortPairs lists the pairs of ports of a fabric with unused ports.
func TestPortPairs(t *testing.T) {
	f := schemeFabric(t)
	s := lft.NewSL2VL(f, lft.ConstantVL(0))
	type pair struct {
		in, out fabric.PortNum
		node    fabric.NodeID
	}
	want := []pair{
		{0, 1, 0}, {1, 1, 0}, {2, 1, 0}, {3, 1, 0},
		{0, 2, 0}, {1, 2, 0}, {2, 2, 0}, {3, 2, 0},
		{0, 3, 0}, {1, 3, 0}, {2, 3, 0}, {3, 3, 0},
		{0, 1, 1}, {1, 1, 1}, {2, 1, 1}, {4, 1, 1},
		{0, 2, 1}, {1, 2, 1}, {2, 2, 1}, {4, 2, 1},
		{0, 4, 1}, {1, 4, 1}, {2, 4, 1}, {4, 4, 1},
		{0, 2, 2}, {0, 1, 3},
	}
	i := 0
	for in, out := range s.PortPairs() {
		if w := (pair{in, f.Num(out), f.Owner(out)}); i >= len(want) || w != want[i] {
			t.Fatalf("pair %d is %+v, want of %+v", i, w, want)
		}
		i++
	}
	if i != len(want) {
		t.Errorf("%d pairs, want %d", i, len(want))
	}
	// Breaking off is allowed everywhere.
	for stop := range want {
		i := 0
		for range s.PortPairs() {
			if i == stop {
				break
			}
			i++
		}
	}
}

// TestCheckVLs finds the one pair of ports whose output port lacks a VL.
func TestCheckVLs(t *testing.T) {
	f := schemeFabric(t)
	vls := func(p fabric.PortID) int {
		if f.Num(p) == 1 {
			return 4
		}
		return 8
	}
	s := lft.NewSL2VL(f, lft.VLMap{0, 1, 2, 3, 0, 1, 2, 3, 15, 15, 15, 15, 15, 15, 15, 15})
	if err := s.CheckVLs(vls); err != nil {
		t.Error(err)
	}
	m := lft.ConstantVL(0)
	m[3], m[9], m[12] = lft.DropVL, 4, 7
	s.Set(2, f.Port(1, 2), m) // has 8
	s.Set(3, f.Port(1, 1), m) // nothing comes in there
	s.SetOut(f.Port(1, 3), m) // nothing goes out there
	s.SetOut(f.Port(0, 0), m)
	if err := s.CheckVLs(vls); err != nil {
		t.Error(err)
	}
	s.Set(4, f.Port(1, 1), m)
	err := s.CheckVLs(vls)
	var e *lft.VLError
	if !errors.As(err, &e) || e.In != 4 || e.Out != f.Port(1, 1) || e.SL != 9 || e.VL != 4 || e.VLs != 4 {
		t.Errorf("%+v", err)
	} else if want := `"b"[1] has 4 data VLs, but SL 9 by way in 4 maps to VL 4`; e.Error() != want {
		t.Errorf("%s, want %s", e, want)
	}
	err = s.CheckVLs(func(fabric.PortID) int { return 3 })
	if want := `"a"[1]: 3 data VLs; ports have 1, 2, 4, 8 or 15`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
