package mesh

import (
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
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
	if !slices.Equal(ports, []fabric.PortNum{east, north, west, south}) {
		t.Errorf("free turns: the cycle has ports %v, want each direction once", ports)
	}
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
	if n := r.SL2VL.VLs(); n != 2 {
		t.Errorf("%d VLs, want 2", n)
	}
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
