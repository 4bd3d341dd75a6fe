package verify

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
)

// someLanes makes SL-to-VL tables and path SLs at random: with few different
// maps, of which some may drop SLs, or one for all; path SLs may be nil.
func someLanes(f *fabric.Fabric, r *rand.Rand) (*lft.SL2VL, *lft.PathSLs) {
	vls := 1 + r.IntN(4)
	maps := make([]lft.VLMap, 1+r.IntN(4))
	drops := r.IntN(3) == 0
	for i := range maps {
		for sl := range maps[i] {
			if maps[i][sl] = fabric.VL(r.IntN(vls)); drops && r.IntN(8) == 0 {
				maps[i][sl] = lft.DropVL
			}
		}
	}
	s := lft.NewSL2VL(f, maps[0])
	for in, out := range s.PortPairs() {
		s.Set(in, out, maps[r.IntN(len(maps))])
	}
	if r.IntN(3) == 0 {
		return s, nil
	}
	sls := lft.NewPathSLs(f.NumSwitches(), f.MaxLID())
	some := 1 + r.IntN(4)
	for n := range fabric.NodeID(f.NumSwitches()) {
		row := make([]fabric.SL, int(f.MaxLID())+1)
		for lid := range row {
			row[lid] = fabric.SL(r.IntN(some))
		}
		sls.SetRow(row, n)
	}
	if r.IntN(2) == 0 {
		f.EndPorts(func(port fabric.PortID) {
			if r.IntN(3) == 0 {
				row := make([]fabric.SL, int(f.MaxLID())+1)
				for lid := range row {
					row[lid] = fabric.SL(r.IntN(some))
				}
				sls.SetPorts(row, port)
			}
		})
	}
	return s, sls
}

// TestAnyLanes has tables, random SL-to-VL tables and path SLs on
// purpose: Check finds just what a walk of every pair finds.
func TestAnyLanes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	loops, clean, lost := 0, 0, 0
	part := short.Of(1, 8)
	for trials := range 150 / part {
		f := randomFabric(t, r)
		tables := upDownTables(f, r)
		if r.IntN(2) == 0 {
			tables = shortestTables(f, r)
		}
		for range r.IntN(3) {
			if f.MaxLID() > 0 && f.NumSwitches() > 0 {
				change(f, tables, r)
			}
		}
		s, sls := someLanes(f, r)
		res, _ := compareOn(t, f, tables, s, sls)
		if t.Failed() {
			t.Fatalf("trial %d", trials)
		}
		if res.CreditLoops.Count > 0 {
			loops++
		} else {
			clean++
		}
		if slices.ContainsFunc(res.Findings, func(f Finding) bool { return f.Rule == SLDropped }) {
			lost++
		}
	}
	if part*loops < 10 || part*clean < 10 || part*lost < 10 {
		t.Errorf("%d with credit loops, %d without, %d with lost packets: the trials do not cover everything", loops, clean, lost)
	}
}

// sparseRing is a ring with up to two hosts on each switch, LIDs in any order,
// and everything clockwise.
func sparseRing(t testing.TB, r *rand.Rand) (*fabric.Fabric, *lft.Tables) {
	t.Helper()
	var w wiring
	n := 3 + r.IntN(4)
	var switches []int
	for range n {
		switches = append(switches, w.node(fabric.Switch, 4))
	}
	for i := range switches {
		w.fail(w.b.Connect(switches[i], 1, switches[(i+1)%n], 2, fabric.Link{}))
	}
	for i := range switches {
		for k := range r.IntN(3) {
			w.fail(w.b.Connect(switches[i], fabric.PortNum(3+k), w.node(fabric.CA, 1), 1, fabric.Link{}))
		}
	}
	f := numberAtRandom(t, r, w.fabric(t))
	tables := lft.NewTables(n, f.MaxLID())
	for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
		root, port := toward(f, lid)
		if root == fabric.NoNode {
			continue
		}
		for s := range fabric.NodeID(n) {
			tables.Row(s)[lid] = 1
		}
		tables.Row(root)[lid] = port
	}
	return f, tables
}

// TestWitnessOnLanes has many credit loops on several VLs with lost packets
// among the others: a LID that would do for a witness on one VL often does not.
func TestWitnessOnLanes(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	loops, lost, part := 0, 0, short.Of(1, 8)
	for range 300 / part {
		f, tables := sparseRing(t, r)
		s, sls := someLanes(f, r)
		if r.IntN(2) == 0 {
			s = lft.NewSL2VL(f, lft.ConstantVL(fabric.VL(r.IntN(2))))
			for in, out := range s.PortPairs() {
				if r.IntN(3) == 0 {
					m := *s.At(in, out)
					m[r.IntN(3)] = lft.DropVL
					s.Set(in, out, m)
				}
			}
		}
		res, _ := compareOn(t, f, tables, s, sls)
		if t.Failed() {
			t.FailNow()
		}
		if res.Management.CreditLoops > 0 {
			loops++
			if res.Unicast.Unreachable+res.Management.Unreachable > 0 {
				lost++
			}
		}
	}
	t.Logf("%d with credit loops, %d of them with lost packets", loops, lost)
	if part*loops < 30 || part*lost < 20 {
		t.Errorf("%d with credit loops, %d of them with lost packets: the trials do not cover everything", loops, lost)
	}
}

// TestOneLane has one VL by SL-to-VL tables: the same as without.
func TestOneLane(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		f := randomFabric(t, r)
		tables := shortestTables(f, r)
		a := mustCheck(t, &state.State{Fabric: f, Tables: tables}, Options{})
		b := mustCheck(t, &state.State{Fabric: f, Tables: tables, SL2VL: lft.NewSL2VL(f, lft.ConstantVL(0))}, Options{})
		if diff := cmp.Diff(a, b, cmp.AllowUnexported(Result{}, Finding{}), cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "proof" }, cmp.Ignore())); diff != "" {
			t.Fatalf("-without tables +with one VL:\n%.2000s", diff)
		}
	}
}

// shortestRing is a ring whose packets go the shorter way round, clockwise when
// both are equal, and the SLs that a dateline wants: 1 for paths that cross the
// cable from the last switch to the first, either way.
func shortestRing(t testing.TB, n int) (*fabric.Fabric, *lft.Tables, *lft.PathSLs) {
	t.Helper()
	f, tables := ring(t, n)
	sls := lft.NewPathSLs(n, f.MaxLID())
	for s := range n {
		row := make([]fabric.SL, int(f.MaxLID())+1)
		for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
			root, _ := toward(f, lid)
			ahead := (int(root) - s + n) % n
			switch {
			case ahead == 0:
			case ahead <= n/2:
				tables.Row(fabric.NodeID(s))[lid] = 1
				if int(root) < s {
					row[lid] = 1
				}
			default:
				tables.Row(fabric.NodeID(s))[lid] = 2
				if int(root) > s {
					row[lid] = 1
				}
			}
		}
		sls.SetRow(row, fabric.NodeID(s))
	}
	return f, tables, sls
}

// TestDateline has a ring that a dateline frees of credit loops, and in which a
// single path with a wrong SL can close one again.
func TestDateline(t *testing.T) {
	f, tables, sls := shortestRing(t, 6)
	if r := mustCheck(t, &state.State{Fabric: f, Tables: tables}, Options{}); r.CreditLoops.Count != 2 {
		t.Fatalf("%d credit loops on one VL", r.CreditLoops.Count)
	}
	s := lft.NewSL2VL(f, lft.IdentityVLs(2))
	r, _ := compareOn(t, f, tables, s, sls)
	if r.CreditLoops.Count != 0 || r.Management.CreditLoops != 0 || r.CreditLoops.VLs != 2 || r.Verdict != VerdictClean {
		t.Fatalf("with a dateline: %+v, %+v, %s", r.CreditLoops, r.Management, r.Verdict)
	}
	// Without path SLs any path may have any SL.
	if r, _ := compareOn(t, f, tables, s, nil); r.CreditLoops.Count == 0 {
		t.Error("no credit loop though any path may have any SL")
	}
	// Each single wrong SL shows just when it closes a cycle.
	found := 0
	for from := range fabric.NodeID(6) {
		for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
			wrong := lft.NewPathSLs(6, f.MaxLID())
			for n := range fabric.NodeID(6) {
				row := slices.Clone(sls.Row(n))
				if n == from {
					row[lid] ^= 1
				}
				wrong.SetRow(row, n)
			}
			r, _ := compareOn(t, f, tables, s, wrong)
			if r.CreditLoops.Count+r.Management.CreditLoops > 0 {
				found++
			}
		}
	}
	if found == 0 {
		t.Error("no wrong SL closes a cycle")
	}
	// One direction without its second lane.
	wrong := s.Clone()
	for _, out := range s.PortPairs() {
		if f.IsSwitch(f.Owner(out)) && f.Num(out) == 1 {
			wrong.SetOut(out, lft.ConstantVL(0))
		}
	}
	if r, _ := compareOn(t, f, tables, wrong, sls); r.CreditLoops.Count != 1 {
		t.Errorf("%d credit loops with one direction on one VL, want 1", r.CreditLoops.Count)
	}
}

// twoOrders is a mesh in which packets go XY to even LIDs and YX to odd ones,
// with the SL that says which.
func twoOrders(t testing.TB, m, n int) (*fabric.Fabric, *lft.Tables, *lft.PathSLs) {
	t.Helper()
	f := xMesh(t, m, n, 1)
	tables := xyTables(t, f, m, n, func(lid fabric.LID) bool { return lid%2 == 1 })
	sls := lft.NewPathSLs(m*n, f.MaxLID())
	row := make([]fabric.SL, int(f.MaxLID())+1)
	var all []fabric.NodeID
	for lid := range row {
		row[lid] = fabric.SL(lid % 2)
	}
	for s := range fabric.NodeID(m * n) {
		all = append(all, s)
	}
	sls.SetRow(row, all...)
	return f, tables, sls
}

// TestTwoOrders has B8: XY and YX wait for each other on one VL, and do not
// when the SL says which VL each is on.
func TestTwoOrders(t *testing.T) {
	f, tables, sls := twoOrders(t, 4, 4)
	if r, _ := compareOn(t, f, tables, lft.NewSL2VL(f, lft.ConstantVL(0)), sls); r.CreditLoops.Count != 1 {
		t.Errorf("%d credit loops on one VL, want 1", r.CreditLoops.Count)
	}
	if r, _ := compareOn(t, f, tables, lft.NewSL2VL(f, lft.IdentityVLs(2)), sls); r.Verdict != VerdictClean {
		t.Errorf("%s on two VLs", r.Verdict)
	}
}

// TestLanesByWayOut has X17: where the VL follows from the way out alone each
// cable has one VL, so that the network is that with one VL (Zhou, Liu and
// Chung, Fig. 8(c) and (e)). The dependency graphs are the same; only the
// names of the channels differ.
func TestLanesByWayOut(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	edges := func(d dependencies) map[[2]fabric.PortID]bool {
		set := map[[2]fabric.PortID]bool{}
		for a, next := range d {
			for b := range next {
				set[[2]fabric.PortID{a.port, b.port}] = true
			}
		}
		return set
	}
	check := func(f *fabric.Fabric, tables *lft.Tables, vl func(out fabric.PortID) fabric.VL) *Result {
		t.Helper()
		s := lft.NewSL2VL(f, lft.ConstantVL(0))
		for _, out := range s.PortPairs() {
			s.SetOut(out, lft.ConstantVL(vl(out)))
		}
		one, onOne := compare(t, f, tables)
		many, onMany := compareOn(t, f, tables, s, nil)
		if d := cmp.Diff(edges(onOne.all), edges(onMany.all)); d != "" {
			t.Fatalf("dependencies (-one VL +by way out):\n%.2000s", d)
		}
		a, b := one.CreditLoops, many.CreditLoops
		if a.Channels != b.Channels || a.Dependencies != b.Dependencies || a.Count != b.Count || one.Management != many.Management {
			t.Fatalf("%+v, %+v on one VL, %+v, %+v by way out", a, one.Management, b, many.Management)
		}
		return many
	}
	f := xMesh(t, 4, 4, 1)
	for _, both := range []bool{false, true} {
		tables := xyTables(t, f, 4, 4, func(lid fabric.LID) bool { return both && lid%2 == 1 })
		res := check(f, tables, func(out fabric.PortID) fabric.VL {
			if n := f.Num(out); f.IsSwitch(f.Owner(out)) && n <= 4 {
				return fabric.VL(n - 1)
			}
			return 0
		})
		if res.CreditLoops.VLs != 4 || (res.CreditLoops.Count > 0) != both {
			t.Errorf("both orders %t: %+v", both, res.CreditLoops)
		}
	}
	loops := 0
	for range short.Of(40, 15) {
		f := randomFabric(t, r)
		res := check(f, shortestTables(f, r), func(fabric.PortID) fabric.VL { return fabric.VL(r.IntN(lft.MaxDataVLs)) })
		loops += min(1, res.CreditLoops.Count)
	}
	if loops < 3 || loops > short.Of(37, 12) {
		t.Errorf("%d of them with credit loops: the trials do not cover both", loops)
	}
}

// TestChangedLane changes one SL-to-VL entry or one path SL at random, 1,000
// times, of networks that are free of credit loops by their VLs only. Whatever
// harm a walk of every pair sees must be found, and both must agree in all
// numbers every time.
func TestChangedLane(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	var seen struct{ none, creditLoop, managementLoop, lost, trials int }
	part := short.Of(1, 16)
	for seen.trials < 1000/part {
		var f *fabric.Fabric
		var tables *lft.Tables
		var sls *lft.PathSLs
		if r.IntN(8) == 0 {
			f, tables, sls = twoOrders(t, 2+r.IntN(2), 2)
		} else {
			f, tables, sls = shortestRing(t, 6+r.IntN(3))
		}
		s := lft.NewSL2VL(f, lft.IdentityVLs(2))
		before, _ := compareOn(t, f, tables, s, sls)
		if before.Verdict != VerdictClean || before.Management.CreditLoops != 0 {
			t.Fatalf("%s before any change", before.Verdict)
		}
		for range 5 {
			seen.trials++
			s, sls := s.Clone(), cloneSLs(f, sls)
			changeLane(f, s, sls, r)
			res, after := compareOn(t, f, tables, s, sls)
			found := func(rule string) bool {
				return slices.ContainsFunc(res.Findings, func(x Finding) bool { return x.Rule == rule })
			}
			unicast, _ := after.unicast.components()
			all, _ := after.all.components()
			switch {
			case len(unicast) > 0:
				seen.creditLoop++
				if !found(CreditLoop) || res.Verdict != VerdictErrors {
					t.Fatal("a credit loop went unnoticed")
				}
			case len(all) > 0:
				seen.managementLoop++
				if !found(ManagementCreditLoop) {
					t.Fatal("a credit loop with management traffic went unnoticed")
				}
			case after.discarded+after.mgmtDiscarded > 0:
				seen.lost++
				if !found(SLDropped) && !found(ManagementSLDropped) {
					t.Fatal("lost packets went unnoticed")
				}
			default:
				seen.none++
			}
		}
	}
	t.Logf("%+v", seen)
	if part*seen.none < 50 || part*seen.creditLoop < 40 || part*seen.managementLoop < 3 || part*seen.lost < 15 {
		t.Errorf("the trials do not cover everything: %+v", seen)
	}
}

func cloneSLs(f *fabric.Fabric, p *lft.PathSLs) *lft.PathSLs {
	c := lft.NewPathSLs(p.Switches(), p.MaxLID())
	for s := range fabric.NodeID(f.NumSwitches()) {
		c.SetRow(slices.Clone(p.Row(s)), s)
	}
	return c
}

// changeLane changes one SL-to-VL entry that packets may meet, or one path SL;
// mostly in ways that may close a cycle.
func changeLane(f *fabric.Fabric, s *lft.SL2VL, sls *lft.PathSLs, r *rand.Rand) {
	n := fabric.NodeID(r.IntN(f.NumSwitches()))
	if r.IntN(2) == 0 {
		lid := fabric.LID(1 + r.IntN(int(f.MaxLID())))
		for range r.IntN(6) * 10 {
			if owner := f.LIDPort(lid); sls.Row(n)[lid] == 1 && owner != fabric.NoPort && !f.IsSwitch(f.Owner(owner)) {
				break
			}
			n, lid = fabric.NodeID(r.IntN(f.NumSwitches())), fabric.LID(1+r.IntN(int(f.MaxLID())))
		}
		row := slices.Clone(sls.Row(n))
		row[lid] ^= 1
		sls.SetRow(row, n)
		return
	}
	ports, _ := f.SwitchLinks(n)
	out := ports[r.IntN(len(ports))]
	in := fabric.PortNum(r.IntN(int(f.Node(n).NumPorts) + 1))
	if num := f.Num(out); num <= 2 && r.IntN(8) > 0 {
		in = 3 - num // straight on round a ring
	}
	m := *s.At(in, out)
	sl := r.IntN(2)
	if m[sl] ^= 1; r.IntN(6) == 0 {
		m[sl] = lft.DropVL
	}
	s.Set(in, out, m)
}

// TestDrops pins what a VL 15 does, on two switches with two hosts each: 3 and
// 4 on the first, 5 and 6 on the second, the cable on their ports 1.
func TestDrops(t *testing.T) {
	var w wiring
	a, b := w.node(fabric.Switch, 3), w.node(fabric.Switch, 3)
	w.cable(a, b)
	for _, s := range []int{a, a, b, b} {
		w.cable(s, w.node(fabric.CA, 1))
	}
	f := number(t, w.fabric(t), nil)
	tables := shortestTables(f, rand.New(rand.NewPCG(1, 1)))
	const sl = 3
	drop := lft.ConstantVL(0)
	drop[sl] = lft.DropVL
	all := lft.ConstantVL(lft.DropVL)
	host := f.Peer(f.Port(0, 2)) // LID 3
	for _, c := range []struct {
		name        string
		change      func(*lft.SL2VL)
		sls         bool // all paths have SL 3; else any
		unreachable int64
		mgmt        int64
		routes      int64 // over the cable, either way
		want        string
	}{
		{"nowhere", func(*lft.SL2VL) {}, true, 0, 0, 8, ""},
		{"one way out", func(s *lft.SL2VL) { s.SetOut(f.Port(0, 1), drop) }, true, 4, 5, 4, `error sl-dropped 2: LID 5 of "host 4"[1]: 2 ports cannot reach it; packets of SL 3 from "host 2"[1] end at switch "switch 0" (0x0000000000005000), whose SL-to-VL table drops SL 3 (VL 15) from any input port to output port 1 {"switch 0"[1] VL 15}
error sl-dropped 2: LID 6 of "host 5"[1]: 2 ports cannot reach it; packets of SL 3 from "host 2"[1] end at switch "switch 0" (0x0000000000005000), whose SL-to-VL table drops SL 3 (VL 15) from any input port to output port 1 {"switch 0"[1] VL 15}
warning management-sl-dropped 3: LID 2 of "switch 1"[0]: 3 ports cannot reach it; packets of SL 3 from "host 2"[1] end at switch "switch 0" (0x0000000000005000), whose SL-to-VL table drops SL 3 (VL 15) from any input port to output port 1 {"switch 0"[1] VL 15}
warning management-sl-dropped 1: LID 5 of "host 4"[1]: 1 port cannot reach it; packets of SL 3 from switch "switch 0" (0x0000000000005000) itself end at switch "switch 0" (0x0000000000005000), whose SL-to-VL table drops SL 3 (VL 15) from any input port to output port 1 {"switch 0"[1] VL 15}
warning management-sl-dropped 1: LID 6 of "host 5"[1]: 1 port cannot reach it; packets of SL 3 from switch "switch 0" (0x0000000000005000) itself end at switch "switch 0" (0x0000000000005000), whose SL-to-VL table drops SL 3 (VL 15) from any input port to output port 1 {"switch 0"[1] VL 15}
`},
		{"one way in and out", func(s *lft.SL2VL) { s.Set(1, f.Port(1, 2), drop) }, false, 2, 1, 6, `error sl-dropped 2: LID 5 of "host 4"[1]: 2 ports cannot reach it; packets of SL 3 from "host 2"[1] end at switch "switch 1" (0x0000000000005100), whose SL-to-VL table drops SL 3 (VL 15) from input port 1 to output port 2 {"switch 0"[1] VL 0, "switch 1"[2] VL 15}
warning management-sl-dropped 1: LID 5 of "host 4"[1]: 1 port cannot reach it; packets of SL 3 from switch "switch 0" (0x0000000000005000) itself end at switch "switch 1" (0x0000000000005100), whose SL-to-VL table drops SL 3 (VL 15) from input port 1 to output port 2 {"switch 0"[1] VL 0, "switch 1"[2] VL 15}
`},
		{"several ways and SLs", func(s *lft.SL2VL) {
			two := drop
			two[4] = lft.DropVL
			for _, in := range []fabric.PortNum{0, 2} {
				s.Set(in, f.Port(0, 1), two)
				s.Set(in, f.Port(0, 3), two)
			}
		}, true, 3, 5, 6, `error sl-dropped 1: LID 4 of "host 3"[1]: 1 port cannot reach it; packets of SL 3 from "host 2"[1] end at switch "switch 0" (0x0000000000005000), whose SL-to-VL table drops SLs 3-4 (VL 15) from input ports 0,2 to output ports 1,3 {"switch 0"[3] VL 15}
error sl-dropped 1: LID 5 of "host 4"[1]: 1 port cannot reach it; packets of SL 3 from "host 2"[1] end at switch "switch 0" (0x0000000000005000), whose SL-to-VL table drops SLs 3-4 (VL 15) from input ports 0,2 to output ports 1,3 {"switch 0"[1] VL 15}
error sl-dropped 1: LID 6 of "host 5"[1]: 1 port cannot reach it; packets of SL 3 from "host 2"[1] end at switch "switch 0" (0x0000000000005000), whose SL-to-VL table drops SLs 3-4 (VL 15) from input ports 0,2 to output ports 1,3 {"switch 0"[1] VL 15}
warning management-sl-dropped 2: LID 2 of "switch 1"[0]: 2 ports cannot reach it; packets of SL 3 from "host 2"[1] end at switch "switch 0" (0x0000000000005000), whose SL-to-VL table drops SLs 3-4 (VL 15) from input ports 0,2 to output ports 1,3 {"switch 0"[1] VL 15}
warning management-sl-dropped 1: LID 4 of "host 3"[1]: 1 port cannot reach it; packets of SL 3 from switch "switch 0" (0x0000000000005000) itself end at switch "switch 0" (0x0000000000005000), whose SL-to-VL table drops SLs 3-4 (VL 15) from input ports 0,2 to output ports 1,3 {"switch 0"[3] VL 15}
warning management-sl-dropped 1: LID 5 of "host 4"[1]: 1 port cannot reach it; packets of SL 3 from switch "switch 0" (0x0000000000005000) itself end at switch "switch 0" (0x0000000000005000), whose SL-to-VL table drops SLs 3-4 (VL 15) from input ports 0,2 to output ports 1,3 {"switch 0"[1] VL 15}
warning management-sl-dropped 1: LID 6 of "host 5"[1]: 1 port cannot reach it; packets of SL 3 from switch "switch 0" (0x0000000000005000) itself end at switch "switch 0" (0x0000000000005000), whose SL-to-VL table drops SLs 3-4 (VL 15) from input ports 0,2 to output ports 1,3 {"switch 0"[1] VL 15}
`},
		{"a host that may not send it", func(s *lft.SL2VL) { s.SetOut(host, drop) }, false, 0, 0, 8, ""},
		{"a host that must send it", func(s *lft.SL2VL) { s.SetOut(host, drop) }, true, 3, 2, 6, `error sl-dropped 1: LID 4 of "host 3"[1]: 1 port cannot reach it; the SL-to-VL table of "host 2"[1] drops SL 3, which the path has {}
error sl-dropped 1: LID 5 of "host 4"[1]: 1 port cannot reach it; the SL-to-VL table of "host 2"[1] drops SL 3, which the path has {}
error sl-dropped 1: LID 6 of "host 5"[1]: 1 port cannot reach it; the SL-to-VL table of "host 2"[1] drops SL 3, which the path has {}
warning management-sl-dropped 1: LID 1 of "switch 0"[0]: 1 port cannot reach it; the SL-to-VL table of "host 2"[1] drops SL 3, which the path has {}
warning management-sl-dropped 1: LID 2 of "switch 1"[0]: 1 port cannot reach it; the SL-to-VL table of "host 2"[1] drops SL 3, which the path has {}
`},
		{"a mute host", func(s *lft.SL2VL) { s.SetOut(host, all) }, false, 3, 2, 6, `error sl-dropped 1: LID 4 of "host 3"[1]: 1 port cannot reach it; the SL-to-VL table of "host 2"[1] drops all SLs {}
error sl-dropped 1: LID 5 of "host 4"[1]: 1 port cannot reach it; the SL-to-VL table of "host 2"[1] drops all SLs {}
error sl-dropped 1: LID 6 of "host 5"[1]: 1 port cannot reach it; the SL-to-VL table of "host 2"[1] drops all SLs {}
warning management-sl-dropped 1: LID 1 of "switch 0"[0]: 1 port cannot reach it; the SL-to-VL table of "host 2"[1] drops all SLs {}
warning management-sl-dropped 1: LID 2 of "switch 1"[0]: 1 port cannot reach it; the SL-to-VL table of "host 2"[1] drops all SLs {}
`},
		{"an SL that no port may send", func(s *lft.SL2VL) {
			for in, out := range s.PortPairs() {
				s.Set(in, out, drop)
			}
		}, false, 0, 0, 8, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := lft.NewSL2VL(f, lft.ConstantVL(0))
			c.change(s)
			var sls *lft.PathSLs
			if c.sls {
				sls = lft.NewPathSLs(2, f.MaxLID())
				sls.SetRow(slices.Repeat([]fabric.SL{sl}, int(f.MaxLID())+1), 0, 1)
			}
			r, _ := compareOn(t, f, tables, s, sls)
			var b strings.Builder
			for _, x := range r.Findings {
				var way []string
				for _, h := range x.Witness {
					way = append(way, fmt.Sprintf("%v VL %d", h, h.VL))
				}
				fmt.Fprintf(&b, "%s %s %d: %s {%s}\n", x.Severity, x.Rule, x.Count, x.Message, strings.Join(way, ", "))
			}
			short.Diff(t, b.String(), c.want)
			if r.Unicast.Unreachable != c.unreachable || r.Management.Unreachable != c.mgmt || 2*r.Balance.MeanRoutes != float64(c.routes) {
				t.Errorf("%d pairs unreachable, %d with a switch, %v routes; want %d, %d, %d",
					r.Unicast.Unreachable, r.Management.Unreachable, 2*r.Balance.MeanRoutes, c.unreachable, c.mgmt, c.routes)
			}
		})
	}
	t.Run("everywhere", func(t *testing.T) {
		r, _ := compareOn(t, f, tables, lft.NewSL2VL(f, all), nil)
		if r.Verdict != VerdictErrors || r.Unicast.Unreachable != r.Unicast.Pairs || r.CreditLoops.Channels != 0 {
			t.Errorf("%s: %+v", r.Verdict, r.Unicast)
		}
	})
	t.Run("between two CAs", func(t *testing.T) {
		var w wiring
		w.cable(w.node(fabric.CA, 1), w.node(fabric.CA, 1))
		f := number(t, w.fabric(t), nil)
		s := lft.NewSL2VL(f, lft.ConstantVL(0))
		s.SetOut(f.CAPorts()[0], all)
		r, _ := compareOn(t, f, lft.NewTables(0, f.MaxLID()), s, nil)
		if r.Unicast.Unreachable != 1 || len(r.Findings) != 1 || r.Findings[0].Rule != SLDropped {
			t.Errorf("%+v, %+v", r.Unicast, r.Findings)
		}
	})
}

// TestCycleOnLanes pins how a credit loop on the second of two VLs reads.
func TestCycleOnLanes(t *testing.T) {
	f, tables := ring(t, 3)
	m := lft.ConstantVL(0)
	m[1] = 5
	s := lft.NewSL2VL(f, m)
	sls := lft.NewPathSLs(3, f.MaxLID())
	for n := range fabric.NodeID(3) { // to hosts SL 1, to switches SL 0
		row := make([]fabric.SL, int(f.MaxLID())+1)
		for lid := range row {
			if port := f.LIDPort(fabric.LID(lid)); port != fabric.NoPort && !f.IsSwitch(f.Owner(port)) {
				row[lid] = 1
			}
		}
		sls.SetRow(row, n)
	}
	r, _ := compareOn(t, f, tables, s, sls)
	i := slices.IndexFunc(r.Findings, func(x Finding) bool { return x.Rule == CreditLoop })
	const want = `3 channels wait for each other; shortest cycle, 3 channels: "switch 0"[1] VL 5 (LID 6) -> "switch 1"[1] VL 5 (LID 4) -> "switch 2"[1] VL 5 (LID 5) -> "switch 0"[1] VL 5`
	if i < 0 || r.Findings[i].Message != want {
		t.Errorf("%+v, want %s", r.Findings, want)
	}
	if r.CreditLoops.VLs != 2 || r.Management.CreditLoops != 2 {
		t.Errorf("%d VLs, %d credit loops with management; want 2 and 2", r.CreditLoops.VLs, r.Management.CreditLoops)
	}
	for _, hop := range r.CreditLoops.Cycles[0] {
		short.Equal(t, hop.VL, 5, hop)
	}
	// Paths whose SLs are not known may part on two VLs.
	two := &state.State{Fabric: f, Tables: tables, SL2VL: lft.NewSL2VL(f, lft.IdentityVLs(2)), UnknownSLs: true}
	if r := mustCheck(t, two, Options{}); !slices.ContainsFunc(r.Undecided, func(u Undecided) bool { return u.Rule == CreditLoop }) {
		t.Errorf("%+v, %+v", r.Findings, r.Undecided)
	}
}

// TestLaneErrors has what is not of the fabric, and numbers that do not exist:
// Check and the certificate's check refuse it alike.
func TestLaneErrors(t *testing.T) {
	f, g := xMesh(t, 2, 2, 0), xMesh(t, 2, 3, 0)
	tables := xyTables(t, f, 2, 2, func(fabric.LID) bool { return false })
	good := lft.NewSL2VL(f, lft.ConstantVL(0))
	withSL := func(sl fabric.SL) *lft.PathSLs {
		p := lft.NewPathSLs(4, f.MaxLID())
		row := make([]fabric.SL, int(f.MaxLID())+1)
		row[f.MaxLID()] = sl
		p.SetRow(row, 2)
		return p
	}
	c := mustCheck(t, &state.State{Fabric: f, Tables: tables}, Options{}).Certificate()
	for _, tt := range []struct {
		sl2vl *lft.SL2VL
		sls   *lft.PathSLs
		want  string
	}{
		{lft.NewSL2VL(g, lft.ConstantVL(0)), nil, "of other nodes"},
		{lft.NewSL2VL(f, lft.ConstantVL(16)), nil, "VL 16: want 0 to 15"},
		{good, lft.NewPathSLs(6, f.MaxLID()), "path SLs of 6 switches"},
		{good, lft.NewPathSLs(4, f.MaxLID()-1), "LIDs up to 7 for a fabric of 4 and up to 8"},
		{good, withSL(16), "SL 16: want 0 to 15"},
		{good, withSL(254), "SL 254: want 0 to 15"},
	} {
		in := &state.State{Fabric: f, Tables: tables, SL2VL: tt.sl2vl, PathSLs: tt.sls}
		if r, err := Check(t.Context(), in, Options{}); err == nil || r != nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Check: %v, want %s", err, tt.want)
		}
		if err := c.Check(in, Independent); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Certificate.Check: %v, want %s", err, tt.want)
		}
	}
	// The same nodes with other LIDs will do.
	h := numberAtRandom(t, rand.New(rand.NewPCG(1, 1)), f)
	if _, err := Check(t.Context(), &state.State{Fabric: h, Tables: xyTables(t, h, 2, 2, func(fabric.LID) bool { return false }), SL2VL: good}, Options{}); err != nil {
		t.Error(err)
	}
	c = mustCheck(t, &state.State{Fabric: f, Tables: tables, SL2VL: lft.NewSL2VL(f, lft.IdentityVLs(2))}, Options{}).Certificate()
	if err := c.Check(&state.State{Fabric: f, Tables: tables}, Independent); err == nil || !strings.Contains(err.Error(), "2 VLs") {
		t.Errorf("%v", err)
	}
	if err := c.Check(&state.State{Fabric: f, Tables: tables, SL2VL: lft.NewSL2VL(f, lft.IdentityVLs(4))}, Independent); err == nil || !strings.Contains(err.Error(), "VL 2, which has no number") {
		t.Errorf("%v", err)
	}
}
