package verify

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
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
	for in, out := range s.Ways() {
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
	return s, sls
}

// Tables, SL-to-VL tables and path SLs that nobody made on purpose: Check finds
// just the dependencies that a walk of every pair finds.
func TestAnyLanes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	loops, clean, lost := 0, 0, 0
	for trials := 0; trials < 150; trials++ {
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
	if loops < 10 || clean < 10 || lost < 10 {
		t.Errorf("%d with credit loops, %d without, %d with lost packets: the trials do not cover everything", loops, clean, lost)
	}
}

// One VL, by whatever tables, is what no tables are.
func TestOneLane(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		f := randomFabric(t, r)
		tables := shortestTables(f, r)
		a := mustCheck(t, f, tables, Options{})
		b := mustCheck(t, f, tables, Options{SL2VL: lft.NewSL2VL(f, lft.ConstantVL(0))})
		if diff := cmp.Diff(a, b, cmp.AllowUnexported(Finding{}), cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "proof" }, cmp.Ignore())); diff != "" {
			t.Fatalf("-without tables +with one VL:\n%.2000s", diff)
		}
	}
}

// shortestRing is a ring whose packets go the shorter way round, clockwise when
// both are equal, and the SLs that a dateline wants: 1 for paths that cross the
// cable from the last switch to the first, either way.
func shortestRing(t *testing.T, n int) (*fabric.Fabric, *lft.Tables, *lft.PathSLs) {
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

// A dateline takes the credit loops out of a ring, and a single path with a
// wrong SL can put one back.
func TestDateline(t *testing.T) {
	f, tables, sls := shortestRing(t, 6)
	if r := mustCheck(t, f, tables, Options{}); r.CreditLoops.Count != 2 {
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
	// Each single wrong SL shows just when it closes a circle.
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
		t.Error("no wrong SL closes a circle")
	}
	// One direction without its second lane.
	wrong := s.Clone()
	for _, out := range s.Ways() {
		if f.IsSwitch(f.Owner(out)) && f.Num(out) == 1 {
			wrong.SetOut(out, lft.ConstantVL(0))
		}
	}
	if r, _ := compareOn(t, f, tables, wrong, sls); r.CreditLoops.Count != 1 {
		t.Errorf("%d credit loops with one direction on one VL, want 1", r.CreditLoops.Count)
	}
}

// XY for even LIDs and YX for odd ones wait for each other on one VL, and do
// not when the SL says which VL each is on.
func TestTwoOrders(t *testing.T) {
	f := xMesh(t, 4, 4, 1)
	tables := xyTables(t, f, 4, 4, func(lid fabric.LID) bool { return lid%2 == 1 })
	sls := lft.NewPathSLs(16, f.MaxLID())
	row := make([]fabric.SL, int(f.MaxLID())+1)
	var all []fabric.NodeID
	for lid := range row {
		row[lid] = fabric.SL(lid % 2)
	}
	for n := range fabric.NodeID(16) {
		all = append(all, n)
	}
	sls.SetRow(row, all...)
	if r, _ := compareOn(t, f, tables, lft.NewSL2VL(f, lft.ConstantVL(0)), sls); r.CreditLoops.Count != 1 {
		t.Errorf("%d credit loops on one VL, want 1", r.CreditLoops.Count)
	}
	if r, _ := compareOn(t, f, tables, lft.NewSL2VL(f, lft.IdentityVLs(2)), sls); r.Verdict != VerdictClean {
		t.Errorf("%s on two VLs", r.Verdict)
	}
}

// A VL that follows from the way out alone leaves each cable with one VL: the
// network is that with one VL (Zhou, Liu and Chung, Fig. 8(c) and (e)).
func TestLanesByDirection(t *testing.T) {
	f := xMesh(t, 4, 4, 1)
	for name, yx := range map[string]func(fabric.LID) bool{
		"XY":        func(fabric.LID) bool { return false },
		"XY and YX": func(lid fabric.LID) bool { return lid%2 == 1 },
	} {
		tables := xyTables(t, f, 4, 4, yx)
		s := lft.NewSL2VL(f, lft.ConstantVL(0))
		for _, out := range s.Ways() {
			if n := f.Num(out); f.IsSwitch(f.Owner(out)) && n <= 4 {
				s.SetOut(out, lft.ConstantVL(fabric.VL(n-1)))
			}
		}
		one := mustCheck(t, f, tables, Options{})
		many, _ := compareOn(t, f, tables, s, nil)
		if many.CreditLoops.VLs != 4 || one.CreditLoops.Channels != many.CreditLoops.Channels ||
			one.CreditLoops.Dependencies != many.CreditLoops.Dependencies || one.CreditLoops.Count != many.CreditLoops.Count {
			t.Errorf("%s: %+v on one VL, %+v with VLs by direction", name, one.CreditLoops, many.CreditLoops)
		}
	}
}

// What is not of the fabric is refused.
func TestLaneErrors(t *testing.T) {
	f, g := xMesh(t, 2, 2, 0), xMesh(t, 2, 3, 0)
	tables := xyTables(t, f, 2, 2, func(fabric.LID) bool { return false })
	for _, opt := range []Options{
		{SL2VL: lft.NewSL2VL(g, lft.ConstantVL(0))},
		{SL2VL: lft.NewSL2VL(f, lft.ConstantVL(0)), PathSLs: lft.NewPathSLs(6, 9)},
	} {
		if _, err := Check(t.Context(), f, tables, opt); err == nil {
			t.Error("no error")
		}
	}
	s := lft.NewSL2VL(f, lft.IdentityVLs(2))
	c := mustCheck(t, f, tables, Options{SL2VL: s}).Certificate()
	if err := c.Check(f, tables, nil, nil); err == nil || !strings.Contains(err.Error(), "2 VLs") {
		t.Errorf("%v", err)
	}
	if err := c.Check(f, tables, lft.NewSL2VL(f, lft.IdentityVLs(4)), nil); err == nil || !strings.Contains(err.Error(), "VL 2, which has no number") {
		t.Errorf("%v", err)
	}
}
