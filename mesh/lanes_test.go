package mesh

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
)

// TestByDirection has the VLs of the paper's Fig. 6 and 8, (a), (c) and (e),
// for each direction, and what they become in other numbers of dimensions.
func TestByDirection(t *testing.T) {
	for _, tt := range []struct {
		dims []int
		vls  int
		want string // VLs of +x -x +y -y ..
	}{
		{[]int{3, 3}, 1, "0 0 0 0"},
		{[]int{3, 3}, 2, "0 1 0 1"}, // N, E: VL0; S, W: VL1
		{[]int{3, 3}, 4, "0 2 1 3"}, // E 0, N 1, W 2, S 3
		{[]int{3, 3}, 8, "0 2 1 3"},
		{[]int{3}, 2, "0 1"},
		{[]int{2, 3, 2}, 4, "0 1 0 1 0 1"},
		{[]int{2, 3, 2}, 8, "0 3 1 4 2 5"},
		{[]int{3, 3}, 4, "1 3 0 2 nesw"}, // the labels of the figure: N 0, E 1, S 2, W 3
		{[]int{3, 3}, 2, "0 1 0 1 nesw"},
		{[]int{2, 2, 2, 2, 2, 2, 2, 2}, 15, "0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1"},
	} {
		g := grow(t, plot{dims: tt.dims, seed: 1})
		s, err := ByDirection(g, tt.vls)
		if strings.HasSuffix(tt.want, "nesw") {
			s, err = ByDirectionNESW(g, tt.vls)
		}
		short.Check(t, err)
		f := g.Fabric
		want := strings.Fields(tt.want)
		for p := range fabric.PortID(f.NumPorts()) {
			if f.Peer(p) == fabric.NoPort {
				continue
			}
			vl := "0"
			if way := g.Dir(p); way != NoDir {
				vl = want[way]
			}
			for in := range f.Node(f.Owner(p)).NumPorts + 1 {
				m := s.At(in, p)
				for sl := range m {
					if fmt.Sprint(m[sl]) != vl {
						t.Fatalf("%v on %d VLs: direction %d has VL %d for SL %d, want %s", tt.dims, tt.vls, g.Dir(p), m[sl], sl, vl)
					}
				}
			}
		}
	}
	if _, err := ByDirection(grow(t, plot{dims: []int{2}}), 3); err == nil {
		t.Error("3 data VLs are none that a port can have")
	}
	if _, err := ByDirectionNESW(grow(t, plot{dims: []int{2, 2, 2}}), 4); err == nil {
		t.Error("up and down are no directions of the figure")
	}
}

// TestDateline has the VLs and SLs of a torus of 5x4 by hand: dimension 0 is
// bit 0 of the SL, dimension 1 bit 1.
func TestDateline(t *testing.T) {
	g := grow(t, plot{dims: []int{5, 4}, wrap: []bool{true, true}, seed: 3})
	r, f := routed(t, g, lft.Options{}), g.Fabric
	s, sls := r.SL2VL, r.PathSLs
	for u := range fabric.NodeID(f.NumSwitches()) {
		for d := range 2 {
			for _, way := range []Dir{Plus(d), Minus(d)} {
				for _, p := range g.Ports(u, way) {
					for sl := range lft.NumSLs {
						if got, want := s.At(0, p)[sl], fabric.VL(sl>>d&1); got != want {
							t.Fatalf("direction %d has VL %d for SL %d, want %d", way, got, sl, want)
						}
					}
				}
			}
		}
	}
	at := func(x, y int) fabric.NodeID { return g.At(x*4 + y) }
	for _, tt := range []struct {
		x1, y1, x2, y2 int
		want           fabric.SL
	}{
		{0, 0, 0, 0, 0},
		{0, 0, 2, 1, 0}, // 2 east, 1 north
		{0, 0, 3, 1, 1}, // 2 west by the cable from 0 to 4
		{4, 0, 0, 0, 1},
		{4, 3, 1, 0, 3},
		{2, 0, 4, 3, 2}, // 1 south from 0 to 3
		{0, 0, 0, 2, 0}, // half way, even: north 0, 1, 2
		{0, 2, 0, 0, 2}, // half way, even: north 2, 3, 0
		{1, 0, 1, 2, 0}, // likewise: the ring of 5 does not count
		{1, 1, 1, 3, 2}, // half way, odd: south 1, 0, 3
		{1, 3, 1, 1, 0}, // half way, odd: south 3, 2, 1
		{4, 0, 1, 2, 1},
		{4, 1, 1, 3, 3},
	} {
		for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
			if dest, _ := delivery(f, f.LIDPort(lid)); dest != at(tt.x2, tt.y2) {
				continue
			}
			short.Equal(t, sls.Row(at(tt.x1, tt.y1))[lid], tt.want, tt, "SL")
		}
	}
	// On one VL it would be a cycle, so that waitInCycle does see them.
	r.SL2VL, r.PathSLs = nil, nil
	if !waitInCycle(t, r) {
		t.Error("a torus on one VL should have a cycle")
	}
}

// TestLanes has how many VLs a routing takes, and what it refuses.
func TestLanes(t *testing.T) {
	ring := func(n int) []bool {
		w := make([]bool, n)
		for i := range w {
			w[i] = true
		}
		return w
	}
	few := func(at int) int { return (at%97 + 96) / 97 }
	for _, tt := range []struct {
		name string
		plot plot
		opt  lft.Options
		want int    // VLs
		err  string // or part of the reason
	}{
		{"mesh", plot{dims: []int{4, 4}}, lft.Options{VLs: 1}, 1, ""},
		{"rings of 3", plot{dims: []int{3, 3, 2}, wrap: []bool{true, true, false}}, lft.Options{VLs: 1}, 1, ""},
		{"torus", plot{dims: []int{4, 4}, wrap: ring(2)}, lft.Options{}, 2, ""},
		{"torus, two VLs", plot{dims: []int{4, 4}, wrap: ring(2)}, lft.Options{VLs: 2}, 2, ""},
		{"torus, one VL", plot{dims: []int{4, 4}, wrap: ring(2)}, lft.Options{VLs: 1}, 0, "take 2 VLs"},
		{"torus, one VL, no wrap", plot{dims: []int{4, 4}, wrap: ring(2)}, lft.Options{VLs: 1, NoWrap: true}, 1, ""},
		{"four rings", plot{dims: []int{4, 4, 4, 4}, wrap: ring(4), hosts: few}, lft.Options{}, 2, ""},
		{"five rings", plot{dims: []int{4, 4, 4, 4, 4}, wrap: ring(5), hosts: few}, lft.Options{}, 0, "5 dimensions"},
		{"five rings, no wrap", plot{dims: []int{4, 4, 4, 4, 4}, wrap: ring(5), hosts: few}, lft.Options{NoWrap: true}, 1, ""},
		{"five dimensions, four rings", plot{dims: []int{4, 4, 3, 4, 4}, wrap: ring(5), hosts: few}, lft.Options{}, 2, ""},
		{"mesh, LMC 1", plot{dims: []int{4, 4}, lmc: 1}, lft.Options{}, 2, ""},
		{"mesh, LMC 1, one VL", plot{dims: []int{4, 4}, lmc: 1}, lft.Options{VLs: 1}, 1, ""},
		{"line, LMC 1", plot{dims: []int{4}, lmc: 1}, lft.Options{}, 1, ""},
		{"torus, LMC 1", plot{dims: []int{4, 4}, wrap: ring(2), lmc: 1}, lft.Options{}, 4, ""},
		{"torus, LMC 1, two VLs", plot{dims: []int{4, 4}, wrap: ring(2), lmc: 1}, lft.Options{VLs: 2}, 2, ""},
		{"torus, LMC 1, no wrap", plot{dims: []int{4, 4}, wrap: ring(2), lmc: 1}, lft.Options{NoWrap: true}, 2, ""},
		{"four rings, LMC 1", plot{dims: []int{4, 4, 4, 4}, wrap: ring(4), hosts: few, lmc: 1}, lft.Options{}, 0, "with 2 VLs"},
		{"four rings, LMC 1, two VLs", plot{dims: []int{4, 4, 4, 4}, wrap: ring(4), hosts: few, lmc: 1}, lft.Options{VLs: 2}, 2, ""},
	} {
		r, err := routeXY(t.Context(), grow(t, tt.plot), tt.opt)
		var domain *lft.DomainError
		switch {
		case tt.err != "":
			if !errors.As(err, &domain) || r != nil || !strings.Contains(domain.Reason, tt.err) {
				t.Errorf("%s: %v, want a DomainError with %q", tt.name, err, tt.err)
			}
		case err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case (r.SL2VL == nil) != (tt.want == 1) || (r.PathSLs == nil) != (tt.want == 1) || tt.want > 1 && r.SL2VL.VLs() != tt.want:
			t.Errorf("%s: want %d VLs, SL2VL %v", tt.name, tt.want, r.SL2VL != nil)
		}
	}
}

// TestByDirectionIsOneVL has X17: when the VL follows from the output port alone,
// each port has packets on one VL only, and what waits for what is the same as on
// one VL. It holds for any routing; two of them have cycles on either.
func TestByDirectionIsOneVL(t *testing.T) {
	mesh := grow(t, plot{dims: []int{5, 4}, seed: 1})
	torus := grow(t, plot{dims: []int{5, 4}, wrap: []bool{true, true}, links: []int{2, 1}, seed: 2})
	both := grow(t, plot{dims: []int{4, 4}, lmc: 1, seed: 3})
	for _, tt := range []struct {
		name  string
		g     *Grid
		cycle bool
	}{{"XY on a mesh", mesh, false}, {"XY on a torus", torus, true}, {"XY and YX", both, true}} {
		r := routed(t, tt.g, lft.Options{})
		sls := r.PathSLs
		r.SL2VL, r.PathSLs = nil, nil
		one := waitsFor(t, r)
		short.Equal(t, waitInCycle(t, r), tt.cycle, tt.name, "on one VL: cycle")
		r.PathSLs = sls // whatever SLs packets have
		for _, vls := range []int{2, 4} {
			var err error
			if r.SL2VL, err = ByDirection(tt.g, vls); err != nil {
				t.Fatal(err)
			}
			many := make(map[channel]map[channel]bool) // with all VLs called 0
			for c, set := range waitsFor(t, r) {
				if many[channel{port: c.port}] != nil {
					t.Fatalf("%s on %d VLs: packets on two VLs leave %s", tt.name, vls, r.Fabric.PortName(c.port))
				}
				many[channel{port: c.port}] = make(map[channel]bool)
				for d := range set {
					many[channel{port: c.port}][channel{port: d.port}] = true
				}
			}
			if !maps.EqualFunc(one, many, maps.Equal) {
				t.Errorf("%s on %d VLs by direction is not what it is on one VL", tt.name, vls)
			}
		}
	}
}
