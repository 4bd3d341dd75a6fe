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

// lane is a virtual lane of the cable that leaves a port.
type lane struct {
	port fabric.PortID
	vl   fabric.VL
}

// slowLanes is what packets hold and wait for, found by walking every pair
// with every SL that it may have.
type slowLanes struct {
	unicast, all map[[2]lane]bool
	fromCA       map[[2]lane]bool
	usedUnicast  map[lane]bool

	delivered, lost, mgmtLost int64 // pairs
	direct                    int64 // of the delivered, between CAs that share a cable
}

func newSlowLanes(f *fabric.Fabric, t *lft.Tables, s *lft.SL2VL, sls *lft.PathSLs) *slowLanes {
	r := &slowLanes{unicast: map[[2]lane]bool{}, all: map[[2]lane]bool{}, fromCA: map[[2]lane]bool{}, usedUnicast: map[lane]bool{}}
	walker := &slow{f: f, t: t}
	var ends []fabric.PortID
	f.EndPorts(func(p fabric.PortID) { ends = append(ends, p) })
	for _, from := range ends {
		for _, to := range ends {
			if from == to || f.LID(to) == 0 {
				continue
			}
			for k := range 1 << f.LMC(to) {
				r.pair(walker, s, sls, from, to, f.LID(to)+fabric.LID(k))
			}
		}
	}
	return r
}

func (r *slowLanes) pair(walker *slow, s *lft.SL2VL, sls *lft.PathSLs, from, to fabric.PortID, lid fabric.LID) {
	f := walker.f
	path, _, end := walker.walk(from, lid)
	if end != delivered {
		return
	}
	at := f.Owner(from)
	if !f.IsSwitch(at) {
		at = f.Owner(f.Peer(from))
	}
	list := make([]fabric.SL, lft.NumSLs)
	for sl := range list {
		list[sl] = fabric.SL(sl)
	}
	if !f.IsSwitch(at) {
		r.direct++
		return // a cable between two CAs
	}
	if sls != nil {
		list = []fabric.SL{sls.Row(at)[lid]}
	}
	management := f.IsSwitch(f.Owner(from)) || f.IsSwitch(f.Owner(to))
	for _, sl := range list {
		in := fabric.PortNum(0)
		var before lane
		lost := false
		for i, out := range path {
			now := lane{out, s.At(in, out)[sl]}
			if now.vl == lft.DropVL {
				lost = true
				break
			}
			switch {
			case i > 0 && !f.IsSwitch(f.Owner(before.port)):
				r.fromCA[[2]lane{before, now}] = true
			case i > 0:
				r.all[[2]lane{before, now}] = true
				if !management {
					r.unicast[[2]lane{before, now}] = true
				}
			}
			if !management && f.IsSwitch(f.Owner(out)) {
				r.usedUnicast[now] = true
			}
			before, in = now, f.Num(f.Peer(out))
		}
		switch {
		case !lost && !management:
			r.delivered++
		case lost && management:
			r.mgmtLost++
		case lost:
			r.lost++
		}
	}
}

// edges are the dependencies of a graph.
func edges(g *graph) map[[2]lane]bool {
	list := map[[2]lane]bool{}
	at := func(ch int32) lane {
		port, vl := g.portVL(ch)
		return lane{port, vl}
	}
	for a := range int32(g.count()) {
		if g.head(a) < 0 {
			continue
		}
		for b := range int32(g.count()) {
			if g.has(a, b) {
				list[[2]lane{at(a), at(b)}] = true
			}
		}
	}
	return list
}

// circle says whether dependencies close one.
func circular(deps map[[2]lane]bool) bool {
	next := map[lane][]lane{}
	for d := range deps {
		next[d[0]] = append(next[d[0]], d[1])
	}
	state := map[lane]int{}
	var visit func(lane) bool
	visit = func(a lane) bool {
		state[a] = 1
		for _, b := range next[a] {
			if state[b] == 1 || state[b] == 0 && visit(b) {
				return true
			}
		}
		state[a] = 2
		return false
	}
	for a := range next {
		if state[a] == 0 && visit(a) {
			return true
		}
	}
	return false
}

// compareLanes holds Check and Certificate.Check against the slow walk.
func compareLanes(t *testing.T, f *fabric.Fabric, tables *lft.Tables, s *lft.SL2VL, sls *lft.PathSLs) *Result {
	t.Helper()
	want := newSlowLanes(f, tables, s, sls)
	p := newPlan(f, tables)
	l := newLanes(p, s, sls)
	w, err := l.run(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	got := l.waits(w)
	if diff := cmp.Diff(want.unicast, edges(got.unicast), cmp.AllowUnexported(lane{})); diff != "" {
		t.Errorf("unicast dependencies (-slow +ours):\n%.2000s", diff)
	}
	if diff := cmp.Diff(want.all, edges(got.all), cmp.AllowUnexported(lane{})); diff != "" {
		t.Errorf("all dependencies (-slow +ours):\n%.2000s", diff)
	}
	r := mustCheck(t, f, tables, Options{SL2VL: s, PathSLs: sls})
	one := mustCheck(t, f, tables, Options{})
	if sls != nil {
		if n := r.Unicast.Unreachable - one.Unicast.Unreachable; n != want.lost {
			t.Errorf("%d pairs lost for their SL, the slow walk loses %d", n, want.lost)
		}
		if n := r.Management.Unreachable - one.Management.Unreachable; n != want.mgmtLost {
			t.Errorf("%d management pairs lost for their SL, the slow walk loses %d", n, want.mgmtLost)
		}
		sum := int64(0)
		for _, n := range r.Unicast.HopHistogram {
			sum += n
		}
		if sum != want.delivered+want.direct {
			t.Errorf("%d pairs delivered, the slow walk delivers %d", sum, want.delivered+want.direct)
		}
	}
	if r.CreditLoops.Channels != len(want.usedUnicast) || r.CreditLoops.Dependencies != len(want.unicast) {
		t.Errorf("%d channels and %d dependencies, the slow walk has %d and %d",
			r.CreditLoops.Channels, r.CreditLoops.Dependencies, len(want.usedUnicast), len(want.unicast))
	}
	if got, want := r.CreditLoops.Count > 0, circular(want.unicast); got != want {
		t.Errorf("credit loop: %v, the slow walk says %v", got, want)
	}
	if got, want := r.Management.CreditLoops > 0, circular(want.all); got != want {
		t.Errorf("credit loop with management traffic: %v, the slow walk says %v", got, want)
	}
	for _, cycle := range r.CreditLoops.Cycles {
		for i, hop := range cycle {
			next := cycle[(i+1)%len(cycle)]
			at := func(h Hop) lane {
				n, _ := f.NodeByGUID(h.Switch)
				return lane{f.Port(n, h.Port), h.VL}
			}
			if !want.unicast[[2]lane{at(hop), at(next)}] || hop.LID == 0 {
				t.Errorf("no packet for LID %d makes %v VL %d wait for %v VL %d", hop.LID, hop, hop.VL, next, next.VL)
			}
		}
	}
	c := r.Certificate()
	if (c != nil) != !circular(want.unicast) {
		t.Fatalf("certificate: %v; credit loop: %v", c != nil, circular(want.unicast))
	}
	if c == nil {
		return r
	}
	read, err := ReadCertificate("c", c.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := read.Check(f, tables, s, sls); err != nil {
		t.Errorf("the certificate does not hold: %v", err)
	}
	covered := want.unicast
	if c.Management {
		covered = want.all
	}
	number := map[lane]*int32{}
	for i, ch := range read.Channels {
		n, _ := f.NodeByGUID(ch.GUID)
		number[lane{f.Port(n, ch.Port), ch.VL}] = &read.Channels[i].Number
	}
	for d := range covered {
		was := *number[d[1]]
		*number[d[1]] = *number[d[0]]
		if err := read.Check(f, tables, s, sls); err == nil {
			t.Errorf("the certificate holds though the number does not increase from %v to %v", d[0], d[1])
		}
		*number[d[1]] = was
		break
	}
	return r
}

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
		res := compareLanes(t, f, tables, s, sls)
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
	r := compareLanes(t, f, tables, s, sls)
	if r.CreditLoops.Count != 0 || r.Management.CreditLoops != 0 || r.CreditLoops.VLs != 2 || r.Verdict != VerdictClean {
		t.Fatalf("with a dateline: %+v, %+v, %s", r.CreditLoops, r.Management, r.Verdict)
	}
	// Without path SLs any path may have any SL.
	if r := compareLanes(t, f, tables, s, nil); r.CreditLoops.Count == 0 {
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
			r := compareLanes(t, f, tables, s, wrong)
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
	if r := compareLanes(t, f, tables, wrong, sls); r.CreditLoops.Count != 1 {
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
	if r := compareLanes(t, f, tables, lft.NewSL2VL(f, lft.ConstantVL(0)), sls); r.CreditLoops.Count != 1 {
		t.Errorf("%d credit loops on one VL, want 1", r.CreditLoops.Count)
	}
	if r := compareLanes(t, f, tables, lft.NewSL2VL(f, lft.IdentityVLs(2)), sls); r.Verdict != VerdictClean {
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
		one, many := mustCheck(t, f, tables, Options{}), compareLanes(t, f, tables, s, nil)
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
	if err := c.Check(f, tables, lft.NewSL2VL(f, lft.IdentityVLs(4)), nil); err == nil || !strings.Contains(err.Error(), "use 4") {
		t.Errorf("%v", err)
	}
}
