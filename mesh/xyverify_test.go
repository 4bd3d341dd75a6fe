package mesh

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/sminterface/ibsim/ibsimtest"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

func checked(t testing.TB, r *lft.Routing) *verify.Result {
	t.Helper()
	return short.Must(verify.Check(t.Context(), &state.State{Fabric: r.Fabric, Tables: r.Tables}, verify.Options{}))(t)
}

// TestFourTurns has X8 (Fig. 1 and 2): four packets A, B, C and D that each
// turn left on a block of 2x2 switches wait for each other in a cycle when
// turns are free, and do not under XY.
func TestFourTurns(t *testing.T) {
	g := generated(t, Spec{Dims: []int{2, 2}, Hosts: 1}, lft.LIDOptions{Policy: lft.MeshLIDs})
	r := routed(t, g, lft.Options{})
	if v := checked(t, r); v.CreditLoops.Count != 0 || v.Management.CreditLoops != 0 || v.Unicast.Unreachable != 0 {
		t.Errorf("XY: %d credit loops, %d with management, %d pairs unreachable", v.CreditLoops.Count, v.Management.CreditLoops, v.Unicast.Unreachable)
	}
	const east, north, west, south = 1, 2, 3, 4
	at := func(x, y int) int { return 2*x + y }
	for _, packet := range []struct {
		from, to int
		first    fabric.PortNum
	}{
		{at(0, 0), at(1, 1), east},  // A: east, then north
		{at(1, 0), at(0, 1), north}, // B: north, then west
		{at(1, 1), at(0, 0), west},  // C: west, then south
		{at(0, 1), at(1, 0), south}, // D: south, then east
	} {
		r.Tables.Row(g.At(packet.from))[packet.to+1] = packet.first
	}
	v := checked(t, r)
	if v.Unicast.Unreachable+v.Unicast.Loops != 0 || v.CreditLoops.Count != 1 || len(v.CreditLoops.Cycles) != 1 {
		t.Fatalf("free turns: %d unreachable, %d loops, %d credit loops, want one credit loop", v.Unicast.Unreachable, v.Unicast.Loops, v.CreditLoops.Count)
	}
	var ports []fabric.PortNum
	for _, hop := range v.CreditLoops.Cycles[0] {
		ports = append(ports, hop.Port)
	}
	slices.Sort(ports)
	short.EqualList(t, ports, []fabric.PortNum{east, north, west, south}, "free turns: the cycle has ports want each direction once")
}

// TestXYDependencies has the XY part of G-X13: channels, those to hosts
// included, and dependencies between them; and that XY and YX on one VL close
// cycles, while each of them has none.
func TestXYDependencies(t *testing.T) {
	for _, tt := range []struct{ side, channels, dependencies int }{{4, 64, 116}, {8, 288, 612}, {16, 1216, 2756}} {
		spec := Spec{Dims: []int{tt.side, tt.side}, Hosts: 1}
		c := checked(t, routed(t, generated(t, spec, lft.LIDOptions{}), lft.Options{})).CreditLoops
		if c.Count != 0 || c.Channels != tt.channels || c.Dependencies != tt.dependencies {
			t.Errorf("%dx%d: %d channels, %d dependencies, %d cycles, want %d, %d and none", tt.side, tt.side, c.Channels, c.Dependencies, c.Count, tt.channels, tt.dependencies)
		}
	}
	g := generated(t, Spec{Dims: []int{4, 4}, Hosts: 1}, lft.LIDOptions{LMC: 1})
	both := routed(t, g, lft.Options{})
	if waitInCycle(t, both) {
		t.Error("XY on VL 0 and YX on VL 1 have a cycle")
	}
	both.SL2VL = nil
	if !waitInCycle(t, both) {
		t.Error("XY and YX on one VL should have a cycle")
	}
	if v := checked(t, both); v.CreditLoops.Count == 0 {
		t.Error("the checker finds no cycle in XY and YX on one VL")
	}
}

// TestXYTwoPaths has B8: with LMC 1 the two LIDs of a host are reached by two
// paths, XY with SL 0 and VL 0, YX with SL 1 and VL 1, which share no link where
// both coordinates differ, and are the same where only one does. The LIDs of
// hosts of one switch go the same ways.
func TestXYTwoPaths(t *testing.T) {
	g := generated(t, Spec{Dims: []int{5, 4}, Hosts: 2}, lft.LIDOptions{LMC: 1, Policy: lft.MeshLIDs})
	r := routed(t, g, lft.Options{})
	f := g.Fabric
	short.Equal(t, r.SL2VL.VLs(), 2, "VLs")
	pairs := 0
	for s := range fabric.NodeID(f.NumSwitches()) {
		for at := range 2 * g.Positions() {
			base := fabric.LID(at+1) << 1
			dest := g.At(at % g.Positions())
			xy, ok1 := walk(t, r, s, base)
			yx, ok2 := walk(t, r, s, base+1)
			if !ok1 || !ok2 {
				t.Fatalf("N(%v) does not reach N(%v)", g.Coord(s), g.Coord(dest))
			}
			if sls := r.PathSLs.Row(s)[base : base+2]; sls[0] != 0 || sls[1] != 1 {
				t.Fatalf("SLs %v from N(%v) to N(%v), want 0 and 1", sls, g.Coord(s), g.Coord(dest))
			}
			for i, path := range [][]fabric.PortID{xy, yx} {
				for _, p := range path[:len(path)-1] {
					if vl := r.SL2VL.At(0, p)[i]; vl != fabric.VL(i) {
						t.Fatalf("%s has VL %d for SL %d", f.PortName(p), vl, i)
					}
				}
			}
			a, b := g.Coord(s), g.Coord(dest)
			xy, yx = xy[:len(xy)-1], yx[:len(yx)-1]
			if a[0] == b[0] || a[1] == b[1] {
				if !slices.Equal(xy, yx) {
					t.Errorf("N(%v) to N(%v): two paths, and there is one", a, b)
				}
				continue
			}
			pairs++
			for _, p := range xy {
				if slices.Contains(yx, p) {
					t.Errorf("N(%v) to N(%v): both paths take %s", a, b, f.PortName(p))
				}
			}
		}
	}
	if want := 20 * 4 * 3 * 2; pairs != want {
		t.Errorf("%d pairs with both coordinates different, want %d", pairs, want)
	}
}

// TestCombDependencies has the rest of G-X13: XY unicast together with multicast
// on combs, whose masks join all columns to a trunk row. What that adds to XY is
// the turns from a column into the trunk row. With one trunk row for all groups
// there is no cycle; with two there is one, on 2x2 already.
func TestCombDependencies(t *testing.T) {
	for _, tt := range []struct {
		side, dependencies int
		trunks             []int
		cycle              bool
	}{
		{4, 128, []int{1}, false},
		{8, 640, []int{4}, false},
		{16, 2816, []int{7}, false},
		{4, 140, []int{1, 2}, true},
		{2, 16, []int{0, 1}, true},
	} {
		g := generated(t, Spec{Dims: []int{tt.side, tt.side}, Hosts: 1}, lft.LIDOptions{})
		deps := make(map[[2]fabric.PortID]bool)
		r := routed(t, g, lft.Options{})
		for s := range fabric.NodeID(g.Fabric.NumSwitches()) {
			for _, p := range g.Fabric.CAPorts() {
				path, ok := walk(t, r, s, g.Fabric.LID(p))
				if !ok {
					t.Fatal("XY does not reach all")
				}
				for i := 1; i < len(path); i++ {
					deps[[2]fabric.PortID{path[i-1], path[i]}] = true
				}
			}
		}
		for _, row := range tt.trunks {
			for x := range tt.side {
				s := g.At(x*tt.side + row)
				for _, from := range []Dir{North, South} {
					n := g.Neighbor(s, from)
					if n == fabric.NoNode {
						continue
					}
					for _, to := range []Dir{East, West} {
						for _, out := range g.Ports(s, to) {
							deps[[2]fabric.PortID{g.Ports(n, from.Opposite())[0], out}] = true
						}
					}
				}
			}
		}
		short.Equal(t, len(deps), tt.dependencies, tt.side, tt.side, "trunk rows", tt.trunks, "dependencies")
		short.Equal(t, closed(deps), tt.cycle, tt.side, tt.side, "trunk rows", tt.trunks, "cycle")
	}
}

// closed returns true if dependencies close a cycle: whether some are left once
// all channels that nothing waits for are taken away, again and again.
func closed(deps map[[2]fabric.PortID]bool) bool {
	for {
		waits := make(map[fabric.PortID]bool)
		for d := range deps {
			waits[d[0]] = true
		}
		before := len(deps)
		for d := range deps {
			if !waits[d[1]] {
				delete(deps, d)
			}
		}
		if len(deps) == before {
			return before > 0
		}
	}
}

// TestEngines routes fabrics without given coordinates: paths are the
// shortest there are, and no cycle exists.
func TestEngines(t *testing.T) {
	for name, shape := range shapes() {
		g := grow(t, shape)
		engines := []lft.Engine{XY{}}
		if !slices.Contains(g.Wrap, true) {
			engines = append(engines, NegativeFirst, WestFirst, NorthLast)
		}
		for _, e := range engines {
			t.Run(name+"/"+e.Name(), func(t *testing.T) {
				f := g.Fabric
				r := short.Must(e.Route(t.Context(), f, lft.Options{}))(t)
				if r.Engine != e.Name() || r.Fabric != f {
					t.Errorf("engine %q", r.Engine)
				}
				for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
					dest, _ := delivery(f, f.LIDPort(lid))
					if dest == fabric.NoNode {
						continue
					}
					for s := range fabric.NodeID(f.NumSwitches()) {
						ports, ok := walk(t, r, s, lid)
						if want := int(f.Distances().To(dest)[s]) + 1; !ok || len(ports) != want {
							t.Fatalf("switch %d to LID %d: arrives %v after %d switches, want %d", s, lid, ok, len(ports), want)
						}
					}
				}
				if waitInCycle(t, r) {
					t.Error("channels wait for each other in a cycle")
				}
			})
		}
	}
}

// TestEnginesRefuse has fabrics that are no grids, grids that some engines do not
// route, and origins that no grid has.
func TestEnginesRefuse(t *testing.T) {
	must := func(f *fabric.Fabric, err error) *fabric.Fabric {
		t.Helper()
		short.Check(t, err)
		return short.Must(lft.AssignLIDs(f, lft.LIDOptions{}))(t)
	}
	tree := must(gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 2}))
	torus := must(Generate(Spec{Dims: []int{4, 5}, Wrap: []bool{true, true}, Hosts: 1}))
	mesh := must(Generate(Spec{Dims: []int{4, 5}, Hosts: 1}))
	for _, e := range []lft.Engine{XY{}, NegativeFirst, WestFirst, NorthLast} {
		_, isXY := e.(XY)
		for _, tt := range []struct {
			name   string
			f      *fabric.Fabric
			opt    lft.Options
			refuse bool
		}{
			{"fat tree", tree, lft.Options{}, true},
			{"torus", torus, lft.Options{}, !isXY},
			{"torus, no wrap", torus, lft.Options{NoWrap: true}, false},
			{"origin", mesh, lft.Options{Origin: mesh.Node(0).GUID}, false},
			{"origin in the middle", mesh, lft.Options{Origin: mesh.Node(6).GUID}, true},
			{"origin nowhere", mesh, lft.Options{Origin: 12345}, true},
			{"dims", mesh, lft.Options{Dims: []int{5, 4}}, false},
			{"other dims", mesh, lft.Options{Dims: []int{2, 10}}, true},
		} {
			r, err := e.Route(t.Context(), tt.f, tt.opt)
			var domain *lft.DomainError
			if refused := errors.As(err, &domain); refused != tt.refuse || refused && (r != nil || domain.Engine != e.Name()) || !refused && err != nil {
				t.Errorf("%s, %s: %v; refuse: %v", e.Name(), tt.name, err, tt.refuse)
			}
		}
	}
}

// TestOriginAndDims has the origin and the order of dimensions decide about
// the first dimension, and so about the paths.
func TestOriginAndDims(t *testing.T) {
	g := generated(t, Spec{Dims: []int{4, 5}, Hosts: 1}, lft.LIDOptions{})
	f := g.Fabric
	for _, tt := range []struct {
		dims  []int
		first int // the generator's dimension that paths go along first
	}{{[]int{4, 5}, 0}, {[]int{5, 4}, 1}} {
		for _, corner := range []int{0, 4, 15, 19} {
			r, err := XY{}.Route(t.Context(), f, lft.Options{Origin: f.Node(g.At(corner)).GUID, Dims: tt.dims})
			short.Check(t, err)
			want := routed(t, g, lft.Options{})
			if tt.first == 1 {
				p := newPaths(g, false, dimensionOrder(2, true))
				if want.Tables, _, err = p.tables(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			for s := range fabric.NodeID(f.NumSwitches()) {
				if !slices.Equal(r.Tables.Row(s), want.Tables.Row(s)) {
					t.Fatalf("%s, origin %d: other tables", fmt.Sprint(tt.dims), corner)
				}
			}
		}
	}
}

// openSMDor is the tables of the dor engine of the real OpenSM, on ibsim.
func openSMDor(t *testing.T, f *fabric.Fabric) *lft.Routing {
	t.Helper()
	tables, run := ibsimtest.Route(t, f, "dor")
	short.MustEqual(t, run.Engine, "dor", "OpenSM took the engine")
	return &lft.Routing{Engine: "OpenSM's dor", Fabric: f, Tables: tables}
}

// TestOpenSMDor compares with OpenSM's own dimension-order engine: the same
// hops for every pair of a switch and a LID. On a torus, whose ties OpenSM may
// decide as it likes, hops are the same as well, but OpenSM's paths close
// cycles.
func TestOpenSMDor(t *testing.T) {
	for _, tt := range []struct {
		dims  []int
		wrap  bool
		cycle bool
	}{
		{[]int{4, 4}, false, false},
		{[]int{3, 4, short.Of(5, 2)}, false, false},
		{[]int{5, 5}, true, true},
	} {
		t.Run(fmt.Sprintf("%s, wrap %v", times(tt.dims), tt.wrap), func(t *testing.T) {
			wrap := make([]bool, len(tt.dims))
			for d := range wrap {
				wrap[d] = tt.wrap
			}
			g := generated(t, Spec{Dims: tt.dims, Wrap: wrap, Hosts: 1}, lft.LIDOptions{})
			ours, theirs := routed(t, g, lft.Options{}), openSMDor(t, g.Fabric)
			for s := range fabric.NodeID(g.Fabric.NumSwitches()) {
				for lid := fabric.LID(1); lid <= g.Fabric.MaxLID(); lid++ {
					a, ok1 := walk(t, ours, s, lid)
					b, ok2 := walk(t, theirs, s, lid)
					if !ok1 || !ok2 || len(a) != len(b) {
						t.Fatalf("N(%v) to LID %d: %d hops (%v), OpenSM %d (%v)", g.Coord(s), lid, len(a), ok1, len(b), ok2)
					}
				}
			}
			if waitInCycle(t, ours) {
				t.Error("our channels wait for each other in a cycle")
			}
			if waitInCycle(t, theirs) != tt.cycle {
				t.Errorf("OpenSM's channels wait for each other in a cycle: %v, want %v", !tt.cycle, tt.cycle)
			}
		})
	}
}
