package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/state"
)

func mustCheck(t testing.TB, s *state.State, opt Options) *Result {
	t.Helper()
	return short.Must(Check(context.Background(), s, opt))(t)
}

// compare checks tables fast and slow, and that both agree in every number,
// that witnesses and certificate are what they claim, and that the number of
// workers makes no difference.
func compare(t testing.TB, f *fabric.Fabric, tables *lft.Tables) (*Result, *slow) {
	t.Helper()
	return compareOn(t, f, tables, nil, nil)
}

// compareOn is compare with SL-to-VL tables and path SLs.
func compareOn(t testing.TB, f *fabric.Fabric, tables *lft.Tables, sl2vl *lft.SL2VL, sls *lft.PathSLs) (*Result, *slow) {
	t.Helper()
	in := &state.State{Fabric: f, Tables: tables, SL2VL: sl2vl, PathSLs: sls}
	opt := Options{Workers: 1, Witnesses: 1000, Findings: 1 << 20}
	r := mustCheck(t, in, opt)
	s := newSlow(f, tables, sl2vl, sls)

	unicastSets, unicastShortest := s.unicast.components()
	allSets, allShortest := s.all.components()
	want := &Result{
		Fabric: FabricCounts{Switches: f.NumSwitches(), CAPorts: len(f.CAPorts()), Links: f.NumLinks(), MaxLID: f.MaxLID()},
		Unicast: UnicastCounts{
			Pairs: s.pairs, Unreachable: s.unreachable, Loops: s.loops, NonMinimal: s.nonMinimal, MaxDetour: s.maxDetour, Misdelivered: s.misdelivered,
		},
		Management: ManagementCounts{
			Pairs: s.mgmtPairs, Unreachable: s.mgmtUnreachable, Loops: s.mgmtLoops, CreditLoops: len(allSets),
		},
		CreditLoops: CreditLoopCounts{Count: len(unicastSets), VLs: s.lanes()},
	}
	for h := range s.hist {
		want.Unicast.MaxHops = max(want.Unicast.MaxHops, h)
	}
	want.Unicast.HopHistogram = make(Histogram, want.Unicast.MaxHops+1)
	for h, n := range s.hist {
		want.Unicast.HopHistogram[h] = n
	}
	want.CreditLoops.Channels, want.CreditLoops.Dependencies = s.fromSwitches()
	want.Balance = s.balance(t, r)
	got := *r
	got.CreditLoops.Cycles, got.Findings, got.Undecided, got.Verdict, got.proof = nil, nil, nil, "", nil
	want.scale, want.busiest = r.scale, r.busiest // for LoadOn, which the tests of its users hold to walks
	if d := cmp.Diff(want, &got, cmp.AllowUnexported(Result{}), cmpopts.EquateApprox(1e-9, 0)); d != "" {
		t.Fatalf("slow and fast checker differ (-slow +fast):\n%s", d)
	}

	compareWitnesses(t, s, r, CreditLoop, s.unicast, unicastSets, unicastShortest)
	var mgmtSets [][]channel
	var mgmtShortest []int
	for i, set := range allSets {
		if !slices.ContainsFunc(unicastSets, func(u []channel) bool { return slices.Contains(set, u[0]) }) {
			mgmtSets = append(mgmtSets, set)
			mgmtShortest = append(mgmtShortest, allShortest[i])
		}
	}
	compareWitnesses(t, s, r, ManagementCreditLoop, s.all, mgmtSets, mgmtShortest)
	compareFindings(t, s, r)
	compareUnowned(t, s, r)
	compareCertificate(t, s, r)

	one := short.Must(json.Marshal(r))(t)
	opt.Workers = 4
	again := mustCheck(t, in, opt)
	many := short.Must(json.Marshal(again))(t)
	if d := cmp.Diff(r.Certificate(), again.Certificate()); d != "" {
		t.Fatalf("certificates of 1 and 4 workers differ:\n%s", d)
	}
	if string(one) != string(many) {
		t.Fatalf("1 and 4 workers differ:\n%s\n%s", one, many)
	}
	return r, s
}

// compareWitnesses holds the findings of a credit loop rule against the sets
// of channels that the slow checker found.
func compareWitnesses(t testing.TB, s *slow, r *Result, rule string, deps dependencies, sets [][]channel, shortest []int) {
	t.Helper()
	var found []Finding
	for _, f := range r.Findings {
		if f.Rule == rule {
			found = append(found, f)
		}
	}
	if len(found) != len(sets) || rule == CreditLoop && len(r.CreditLoops.Cycles) != len(sets) {
		t.Fatalf("%s: %d findings, want %d", rule, len(found), len(sets))
	}
	for i, set := range sets {
		// Both are in the order of the lowest channel, but findings are
		// sorted by LID.
		j := slices.IndexFunc(found, func(f Finding) bool { return slices.Contains(set, s.channel(t, f.Witness[0])) })
		if j < 0 {
			t.Fatalf("%s: no witness for channels %v", rule, set)
		}
		f := found[j]
		if f.Count != int64(len(set)) {
			t.Errorf("%s: %d channels wait for each other, want %d", rule, f.Count, len(set))
		}
		if len(f.Witness) != shortest[i] {
			t.Errorf("%s: witness of %d channels, the shortest has %d", rule, len(f.Witness), shortest[i])
		}
		for k, hop := range f.Witness {
			a, b := s.channel(t, hop), s.channel(t, f.Witness[(k+1)%len(f.Witness)])
			if !deps[a][b][hop.LID] {
				t.Errorf("%s: packets for LID %d do not hold %v while they wait for %v", rule, hop.LID, a, b)
			}
		}
		if rule == CreditLoop && !slices.ContainsFunc(r.CreditLoops.Cycles, func(c []Hop) bool { return slices.Equal(c, f.Witness) }) {
			t.Errorf("cycle of %s is not among the cycles", f.Message)
		}
	}
}

// channel is the channel of a hop.
func (s *slow) channel(t testing.TB, h Hop) channel {
	t.Helper()
	n, ok := s.f.NodeByGUID(h.Switch)
	if !ok || h.Name != s.f.Name(n) {
		t.Fatalf("no such switch: %+v", h)
	}
	return channel{s.f.Port(n, h.Port), h.VL}
}

// compareFindings holds the findings about pairs against the counts, and
// walks their witnesses.
func compareFindings(t testing.TB, s *slow, r *Result) {
	t.Helper()
	sum := map[string]int64{}
	for _, f := range r.Findings {
		sum[f.Rule] += f.Count
		rule, ok := RuleByName(f.Rule)
		if !ok || f.Severity != rule.Severity && f.Rule != IdleLinks || f.Message == "" || f.Witness == nil {
			t.Errorf("incomplete finding %+v", f)
		}
		if f.Rule == SLDropped || f.Rule == ManagementSLDropped {
			compareDropped(t, s, f)
		}
		loop := f.Rule == UnicastLoop || f.Rule == ManagementLoop || f.Rule == UnownedLIDLoop
		if f.LID == 0 || len(f.Witness) == 0 || f.Rule == CreditLoop || f.Rule == ManagementCreditLoop {
			continue
		}
		for i, hop := range f.Witness {
			n, _ := s.f.NodeByGUID(hop.Switch)
			entry := fabric.NoPath
			if row := s.t.Row(n); int(f.LID) < len(row) {
				entry = row[f.LID]
			}
			if hop.Port != entry {
				t.Fatalf("%s: hop %d is port %d, the entry is %d", f.Message, i, hop.Port, entry)
			}
			if !loop && i == len(f.Witness)-1 {
				if f.Rule != NonMinimal && hop.Switch != f.Switch {
					t.Errorf("%s: ends at %s, finding is about %s", f.Message, hop.Switch, f.Switch)
				}
				break
			}
			if hop.VL == lft.DropVL && (f.Rule == SLDropped || f.Rule == ManagementSLDropped) {
				t.Errorf("%s: hop %d is the drop, and there are more", f.Message, i)
			}
			peer := s.f.Peer(s.f.Port(n, entry))
			if next := f.Witness[(i+1)%len(f.Witness)]; peer == fabric.NoPort || s.f.Node(s.f.Owner(peer)).GUID != next.Switch {
				t.Fatalf("%s: hop %d does not lead to hop %d", f.Message, i, i+1)
			}
		}
	}
	for rule, want := range map[string]int64{
		Partitioned: s.apart, UnicastUnreachable: s.unreachable - s.misdelivered - s.discarded - s.apart, Misdelivered: s.misdelivered, SLDropped: s.discarded, UnicastLoop: s.loops, NonMinimal: s.nonMinimal,
		ManagementPartitioned: s.mgmtApart, ManagementUnreachable: s.mgmtUnreachable - s.mgmtDiscarded - s.mgmtApart, ManagementSLDropped: s.mgmtDiscarded, ManagementLoop: s.mgmtLoops,
	} {
		if sum[rule] != want {
			t.Errorf("findings of %s are for %d pairs, want %d", rule, sum[rule], want)
		}
	}
}

// compareDropped checks that the witness of packets that an SL-to-VL table
// drops ends with the drop, and that some port's packets take it with one SL.
func compareDropped(t testing.TB, s *slow, f Finding) {
	t.Helper()
	if len(f.Witness) == 0 {
		if !strings.Contains(f.Message, "the SL-to-VL table of ") && !strings.Contains(f.Message, "its SL-to-VL table drops all") {
			t.Errorf("%s: no witness, and no port that drops its own packets", f.Message)
		}
		return
	}
	if last := f.Witness[len(f.Witness)-1]; last.VL != lft.DropVL {
		t.Errorf("%s: the witness ends on VL %d", f.Message, last.VL)
	}
	found := false
	s.f.EndPorts(func(from fabric.PortID) {
		if s.f.LIDPort(f.LID) == from {
			return
		}
		path, _, end := s.walk(from, f.LID)
		if end != delivered {
			return
		}
		for _, sl := range s.sends(from, f.LID, path) {
			in, rest := fabric.ManagementPort, path
			if !s.f.IsSwitch(s.f.Owner(from)) {
				in, rest = s.f.Num(s.f.Peer(from)), path[1:]
			}
			same := len(rest) >= len(f.Witness)
			for i := 0; same && i < len(f.Witness); i++ {
				same = s.channel(t, f.Witness[i]) == channel{rest[i], s.s.At(in, rest[i])[sl]}
				in = s.f.Num(s.f.Peer(rest[i]))
			}
			found = found || same
		}
	})
	if !found {
		t.Errorf("%s: no packet goes this way", f.Message)
	}
}

// compareCertificate checks that there is a certificate exactly when there
// should be, that it holds, and that its numbers increase along every
// dependency that the slow checker knows.
func compareCertificate(t testing.TB, s *slow, r *Result) {
	t.Helper()
	c := r.Certificate()
	if (c == nil) != (r.CreditLoops.Count > 0) {
		t.Fatalf("certificate %v with %d credit loops", c, r.CreditLoops.Count)
	}
	if c == nil {
		return
	}
	if c.Management != (r.Management.CreditLoops == 0) {
		t.Errorf("certificate covers management: %t, with %d credit loops", c.Management, r.Management.CreditLoops)
	}
	text := c.Append(nil)
	back := short.Must(ReadCertificate("certificate.txt", text))(t)
	if d := cmp.Diff(c, back); d != "" {
		t.Errorf("certificate changed by writing and reading:\n%s", d)
	}
	if err := back.Check(&state.State{Fabric: s.f, Tables: s.t, SL2VL: s.s, PathSLs: s.sls}, Independent); err != nil {
		t.Errorf("certificate does not hold: %v", err)
	}
	number := map[channel]int32{}
	for _, ch := range c.Channels {
		number[s.numbered(t, ch)] = ch.Number
	}
	deps, used := s.unicast, s.usedUnicast
	if c.Management {
		deps, used = s.all, s.used
	}
	compareNumbered(t, s, number, used)
	for a, next := range deps {
		for b := range next {
			x, okA := number[a]
			y, okB := number[b]
			if !okA || !okB || x >= y {
				t.Errorf("certificate gives %s VL %d number %d and %s VL %d number %d", s.f.PortName(a.port), a.vl, x, s.f.PortName(b.port), b.vl, y)
			}
		}
	}
}

// compareNumbered checks that a certificate numbers the channels that packets
// take and no others, except those from CAs: on one VL all of them, on several
// those that any packets take.
func compareNumbered(t testing.TB, s *slow, number map[channel]int32, used map[channel]bool) {
	t.Helper()
	want := map[channel]bool{}
	for c := range used {
		if s.f.IsSwitch(s.f.Owner(c.port)) {
			want[c] = true
		}
	}
	for i, port := range s.f.CAPorts() {
		switch {
		case s.s == nil:
			want[channel{port: port}] = true
		case s.f.CASwitches()[i] != fabric.NoNode:
			for vl := range fabric.VL(lft.MaxDataVLs) {
				if s.used[channel{port, vl}] {
					want[channel{port, vl}] = true
				}
			}
		}
	}
	got := map[channel]bool{}
	for c := range number {
		got[c] = true
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(channel{})); d != "" {
		t.Errorf("channels that packets take, and channels numbered (-slow +certificate):\n%s", d)
	}
}

// worse says which bad things a change of the tables brought about.
func worse(before, after *slow) (unreachable, loop, creditLoop bool) {
	sets := func(s *slow) int { c, _ := s.unicast.components(); return len(c) }
	return after.unreachable != before.unreachable, after.loops > before.loops, sets(before) == 0 && sets(after) > 0
}

// change changes one entry: in half of the cases to what comes, and in the
// others to a neighbour that still leads to the LID some other way, if it
// finds one.
func change(f *fabric.Fabric, t *lft.Tables, r *rand.Rand) {
	walker := &slow{f: f, t: t}
	for range r.IntN(2) * 50 {
		s := fabric.NodeID(r.IntN(f.NumSwitches()))
		lid := fabric.LID(1 + r.IntN(int(f.MaxLID())))
		before := t.Row(s)[lid]
		t.Row(s)[lid] = someEntry(f, s, r)
		if f.LIDPort(lid) == fabric.NoPort || before == t.Row(s)[lid] {
			continue
		}
		if _, _, end := walker.walk(f.PortBase(s), lid); end == delivered {
			return
		}
		t.Row(s)[lid] = before
	}
	s := fabric.NodeID(r.IntN(f.NumSwitches()))
	t.Row(s)[1+r.IntN(int(f.MaxLID()))] = someEntry(f, s, r)
}

// TestChangedEntry changes one entry of good tables at random, 1,500 times.
// Whatever harm the slow checker sees must be found, and both must
// agree in all numbers every time.
func TestChangedEntry(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var seen struct{ none, unreachable, loop, creditLoop, trials int }
	part := short.Of(short.Usual(1, 3), 15)
	for seen.trials < 1500/part {
		f := randomFabric(t, r)
		if f.NumSwitches() == 0 || f.MaxLID() == 0 {
			continue
		}
		tables := upDownTables(f, r)
		if r.IntN(6) == 0 {
			tables = shortestTables(f, r)
		}
		_, before := compare(t, f, tables)
		for range 5 {
			seen.trials++
			changed := cloneTables(f, tables)
			change(f, changed, r)
			res, after := compare(t, f, changed)
			found := func(rule string) bool {
				return slices.ContainsFunc(res.Findings, func(x Finding) bool { return x.Rule == rule && x.Severity == Error })
			}
			unreachable, loop, creditLoop := worse(before, after)
			if unreachable {
				seen.unreachable++
				if after.unreachable > before.unreachable && !found(UnicastUnreachable) && !found(Misdelivered) {
					t.Fatalf("%d pairs became unreachable unnoticed", after.unreachable-before.unreachable)
				}
			}
			if loop {
				seen.loop++
				if !found(UnicastLoop) {
					t.Fatal("a loop went unnoticed")
				}
			}
			if creditLoop {
				seen.creditLoop++
				if !found(CreditLoop) {
					t.Fatal("a credit loop went unnoticed")
				}
			}
			if !unreachable && !loop && !creditLoop {
				seen.none++
			}
		}
	}
	t.Logf("%+v", seen)
	if part*seen.none < 50 || part*seen.unreachable < 50 || part*seen.loop < 50 || part*seen.creditLoop < 30 {
		t.Errorf("the trials do not cover everything: %+v", seen)
	}
}

// TestAnyTables checks random tables.
func TestAnyTables(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		f := randomFabric(t, r)
		good := rapid.SampledFrom([]func(*fabric.Fabric, *rand.Rand) *lft.Tables{shortestTables, upDownTables}).Draw(rt, "tables")(f, r)
		// Tables may be shorter or longer than the LIDs.
		tables := lft.NewTables(f.NumSwitches(), fabric.LID(max(0, int(f.MaxLID())+rapid.IntRange(-3, 70).Draw(rt, "longer"))))
		changes := rapid.IntRange(0, 30).Draw(rt, "changed of 100")
		for s := range f.NumSwitches() {
			row := tables.Row(fabric.NodeID(s))
			copy(row, good.Row(fabric.NodeID(s)))
			for lid := range row {
				if r.IntN(100) < changes {
					row[lid] = someEntry(f, fabric.NodeID(s), r)
				}
			}
		}
		compare(t, f, tables)
	})
}

// xyTables routes a mesh that mesh.Generate made: along x, then along y, or
// the other way round for LIDs of the second kind.
func xyTables(t testing.TB, f *fabric.Fabric, m, n int, yx func(lid fabric.LID) bool) *lft.Tables {
	t.Helper()
	// Node N(x,y) is the (x*n+y)-th switch.
	at := func(s fabric.NodeID) (x, y int) { return int(s) / n, int(s) % n }
	tables := lft.NewTables(f.NumSwitches(), f.MaxLID())
	for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
		root, port := toward(f, lid)
		if root == fabric.NoNode {
			continue
		}
		X, Y := at(root)
		for s := range fabric.NodeID(m * n) {
			x, y := at(s)
			alongX := map[bool]fabric.PortNum{true: 1, false: 3}[X > x]
			alongY := map[bool]fabric.PortNum{true: 2, false: 4}[Y > y]
			e := port
			switch {
			case x != X && (y == Y || !yx(lid)):
				e = alongX
			case y != Y:
				e = alongY
			}
			tables.Row(s)[lid] = e
		}
	}
	return tables
}

func xMesh(t testing.TB, m, n, lmc int) *fabric.Fabric {
	t.Helper()
	f := short.Must(mesh.Generate(mesh.Spec{Dims: []int{m, n}, Hosts: 1}))(t)
	return short.Must(lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs, LMC: lmc}))(t)
}

// TestXYChannels pins the channel dependency graphs of XY routing on meshes:
// channels are the directed links and those to hosts.
func TestXYChannels(t *testing.T) {
	xy := func(fabric.LID) bool { return false }
	yx := func(fabric.LID) bool { return true }
	for _, c := range short.Part(2, []struct{ m, n, channels, deps int }{
		{4, 4, 64, 116}, {8, 8, 288, 612}, {16, 16, 1216, 2756},
	}) {
		for _, order := range []func(fabric.LID) bool{xy, yx} {
			f := xMesh(t, c.m, c.n, 0)
			r := mustCheck(t, &state.State{Fabric: f, Tables: xyTables(t, f, c.m, c.n, order)}, Options{})
			if r.Verdict != VerdictClean || r.Management.CreditLoops != 0 {
				t.Errorf("%dx%d: %s, %d credit loops with management", c.m, c.n, r.Verdict, r.Management.CreditLoops)
			}
			if r.CreditLoops.Channels != c.channels || r.CreditLoops.Dependencies != c.deps {
				t.Errorf("%dx%d: %d channels, %d dependencies, want %d, %d", c.m, c.n, r.CreditLoops.Channels, r.CreditLoops.Dependencies, c.channels, c.deps)
			}
		}
	}
	// Either is acyclic, both together on one VL are not: the base LID of
	// each host goes XY, the next one YX.
	f := xMesh(t, 4, 4, 1)
	both := xyTables(t, f, 4, 4, func(lid fabric.LID) bool { return lid%2 == 1 })
	r, _ := compare(t, f, both)
	if r.CreditLoops.Count != 1 || len(r.CreditLoops.Cycles[0]) != 4 {
		t.Errorf("XY and YX together: %d credit loops, %v", r.CreditLoops.Count, r.CreditLoops.Cycles)
	}
}

// ring is n switches in a ring with a host each, everything clockwise: port
// 1 leads on, port 2 comes from the one before, port 3 has the host.
func ring(t testing.TB, n int) (*fabric.Fabric, *lft.Tables) {
	t.Helper()
	var w wiring
	switches := make([]int, n)
	for i := range switches {
		switches[i] = w.node(fabric.Switch, 3)
	}
	for i := range switches {
		host := w.node(fabric.CA, 1)
		w.fail(w.b.Connect(switches[i], 1, switches[(i+1)%n], 2, fabric.Link{}))
		w.fail(w.b.Connect(switches[i], 3, host, 1, fabric.Link{}))
	}
	f := number(t, w.fabric(t), nil)
	tables := lft.NewTables(n, f.MaxLID())
	for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
		root, port := toward(f, lid)
		for s := range n {
			tables.Row(fabric.NodeID(s))[lid] = 1
		}
		tables.Row(root)[lid] = port
	}
	return f, tables
}

// TestWitnessOfUnicast has a LID that would do for a witness, if only the
// packets of CAs for it came that way: a ring of 6, hosts on every other
// switch. From switch 3 on only the switch itself sends to the host of 2.
func TestWitnessOfUnicast(t *testing.T) {
	var w wiring
	var switches, hosts []int
	for range 6 {
		switches = append(switches, w.node(fabric.Switch, 3))
	}
	for i := range switches {
		w.fail(w.b.Connect(switches[i], 1, switches[(i+1)%6], 2, fabric.Link{}))
		if i%2 == 0 {
			hosts = append(hosts, w.node(fabric.CA, 1))
			w.fail(w.b.Connect(switches[i], 3, hosts[i/2], 1, fabric.Link{}))
		}
	}
	for i, lid := range []fabric.LID{2, 1, 3} {
		w.fail(w.b.SetPort(hosts[i], 1, 0, lid, 0))
	}
	f := w.fabric(t)
	tables := lft.NewTables(6, f.MaxLID())
	for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
		root, port := toward(f, lid)
		for s := range fabric.NodeID(6) {
			tables.Row(s)[lid] = 1
		}
		tables.Row(root)[lid] = port
	}
	r, _ := compare(t, f, tables)
	if r.CreditLoops.Count != 1 {
		t.Fatalf("%+v", r.CreditLoops)
	}
	for i, want := range []fabric.LID{1, 3, 2, 2, 1, 1} {
		if got := r.CreditLoops.Cycles[0][i].LID; got != want {
			t.Errorf("hop %d: LID %d, want %d", i, got, want)
		}
	}
}

// TestLongRing has paths and cycles longer than a byte counts.
func TestLongRing(t *testing.T) {
	n := short.Of[int64](600, 520)
	f, tables := ring(t, int(n))
	r := mustCheck(t, &state.State{Fabric: f, Tables: tables}, Options{})
	// From each host one pair of every length from 2 to n; the half way round
	// is the last that is no detour.
	if r.Unicast.Pairs != n*(n-1) || r.Unicast.Unreachable != 0 || r.Unicast.Loops != 0 {
		t.Errorf("unicast %+v", r.Unicast)
	}
	for h, pairs := range r.Unicast.HopHistogram {
		if want := n; h >= 2 && pairs != want || h < 2 && pairs != 0 {
			t.Errorf("%d pairs of %d hops", pairs, h)
		}
	}
	if want := n * (n/2 - 1); r.Unicast.NonMinimal != want || r.Unicast.MaxHops != int(n) {
		t.Errorf("%d non-minimal, want %d; longest %d", r.Unicast.NonMinimal, want, r.Unicast.MaxHops)
	}
	if r.CreditLoops.Count != 1 || len(r.CreditLoops.Cycles[0]) != int(n) {
		t.Errorf("%d credit loops", r.CreditLoops.Count)
	}
	// Shortest ways have distances beyond 254, clean ones.
	if r := mustCheck(t, &state.State{Fabric: f, Tables: shortestTables(f, rand.New(rand.NewPCG(1, 1)))}, Options{}); r.Unicast.NonMinimal != 0 || r.Unicast.MaxHops != int(n)/2+1 {
		t.Errorf("shortest ways: %+v", r.Unicast)
	}
}

// TestNoMatrix makes the checker do without what it keeps in smaller fabrics.
func TestNoMatrix(t *testing.T) {
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 3})
	f = number(t, f, err)
	tables := dmodk(f)
	want := mustCheck(t, &state.State{Fabric: f, Tables: tables}, Options{})
	p := newPlan(f, tables, nil)
	p.hops = nil
	w := short.Must(p.run(context.Background(), Options{Workers: 2}))(t)
	got := &Result{}
	p.summarize(got, w)
	if d := cmp.Diff(want.Unicast, got.Unicast); d != "" {
		t.Error(d)
	}
	if got.Unicast.NonMinimal != 0 || len(w.troubles) != 0 {
		t.Errorf("%+v, %d troubles", got.Unicast, len(w.troubles))
	}
}

// TestManyPorts has switches whose channels take several words of bits: three
// in a triangle, 45 cables on each side, and 60 to 75 hosts on each.
func TestManyPorts(t *testing.T) {
	var w wiring
	a, b, c := w.node(fabric.Switch, 254), w.node(fabric.Switch, 254), w.node(fabric.Switch, 254)
	for range 45 {
		w.cable(a, b)
		w.cable(b, c)
		w.cable(c, a)
	}
	for i, s := range []int{a, b, c} {
		for range short.Of(60, 30) + 15*(i%2) {
			w.cable(s, w.node(fabric.CA, 1))
		}
	}
	f := number(t, w.fabric(t), nil)
	r := rand.New(rand.NewPCG(3, 4))
	upDown := upDownTables(f, r)
	if res, _ := compare(t, f, upDown); res.CreditLoops.Count != 0 {
		t.Errorf("%d credit loops", res.CreditLoops.Count)
	}
	// On three VLs each switch has its own SL, the lowest LID of each block
	// apart: what the workers saw differs.
	s := lft.NewSL2VL(f, lft.IdentityVLs(3))
	s.Set(1, f.Port(0, 2), lft.ConstantVL(0))
	sls := lft.NewPathSLs(3, f.MaxLID())
	for n := range fabric.NodeID(3) {
		row := make([]fabric.SL, int(f.MaxLID())+1)
		for lid := range row {
			if lid/lft.BlockSize%2 == 1 {
				row[lid] = fabric.SL(n)
			}
		}
		sls.SetRow(row, n)
	}
	if res, _ := compareOn(t, f, upDown, s, sls); res.CreditLoops.Count != 0 || res.CreditLoops.VLs != 3 {
		t.Errorf("%+v", res.CreditLoops)
	}
	// All the way round, over cables that the LID picks.
	tables := lft.NewTables(3, f.MaxLID())
	for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
		root, port := toward(f, lid)
		for s := range fabric.NodeID(3) {
			ports, to := f.SwitchLinks(s)
			k := int(lid) % 45
			for i, u := range to {
				if u == (s+1)%3 {
					if k == 0 {
						tables.Row(s)[lid] = f.Num(ports[i])
					}
					k--
				}
			}
		}
		tables.Row(root)[lid] = port
	}
	if res, _ := compare(t, f, tables); res.CreditLoops.Count == 0 || len(res.CreditLoops.Cycles[0]) != 3 {
		t.Errorf("%d credit loops", res.CreditLoops.Count)
	}
}

// TestNoSwitches checks two CAs on one cable.
func TestNoSwitches(t *testing.T) {
	var w wiring
	w.cable(w.node(fabric.CA, 1), w.node(fabric.CA, 1))
	f := number(t, w.fabric(t), nil)
	r, _ := compare(t, f, lft.NewTables(0, f.MaxLID()))
	if r.Verdict != VerdictClean || r.Unicast.Pairs != 2 || r.Unicast.HopHistogram[0] != 2 {
		t.Errorf("%+v", r)
	}
	empty := number(t, (&wiring{}).fabric(t), nil)
	compare(t, empty, lft.NewTables(0, 0))
}

// TestFindings pins the wording, one fault at a time, on three switches in a
// line with two hosts each.
func TestFindings(t *testing.T) {
	line := func() (*fabric.Fabric, *lft.Tables) {
		var w wiring
		a, b, c := w.node(fabric.Switch, 5), w.node(fabric.Switch, 5), w.node(fabric.Switch, 5)
		w.cable(a, b) // port 1 of a and of b
		w.cable(b, c) // port 2 of b, port 1 of c
		for range 2 {
			for _, s := range []int{a, b, c} {
				w.cable(s, w.node(fabric.CA, 1))
			}
		}
		f := number(t, w.fabric(t), nil) // switches 1 to 3; hosts 4 to 9 on a, b, c, a, b, c
		return f, shortestTables(f, rand.New(rand.NewPCG(1, 1)))
	}
	for _, c := range []struct {
		name   string
		change func(f *fabric.Fabric, row func(s int) []fabric.PortNum) *fabric.Fabric
		want   string
	}{
		{"nothing", func(*fabric.Fabric, func(int) []fabric.PortNum) *fabric.Fabric { return nil }, ""},
		{"no entry", func(f *fabric.Fabric, row func(int) []fabric.PortNum) *fabric.Fabric {
			row(1)[6] = fabric.NoPath
			return nil
		}, `error unicast-unreachable 4: LID 6 of "host 5"[1]: 4 ports cannot reach it; packets from "host 3"[1] end at switch "switch 1" (0x0000000000005100), which has no entry for it
warning management-unreachable 2: LID 6 of "host 5"[1]: 2 ports cannot reach it; packets from switch "switch 0" (0x0000000000005000) itself end at switch "switch 1" (0x0000000000005100), which has no entry for it
`},
		{"dead port", func(f *fabric.Fabric, row func(int) []fabric.PortNum) *fabric.Fabric {
			row(0)[6] = 5
			row(0)[9] = 5
			return nil
		}, `error unicast-unreachable 2: LID 6 of "host 5"[1]: 2 ports cannot reach it; packets from "host 3"[1] end at switch "switch 0" (0x0000000000005000), which sends it to port 5, which has no cable
error unicast-unreachable 2: LID 9 of "host 8"[1]: 2 ports cannot reach it; packets from "host 3"[1] end at switch "switch 0" (0x0000000000005000), which sends it to port 5, which has no cable
warning management-unreachable 1: LID 6 of "host 5"[1]: 1 port cannot reach it; packets from switch "switch 0" (0x0000000000005000) itself end at switch "switch 0" (0x0000000000005000), which sends it to port 5, which has no cable
warning management-unreachable 1: LID 9 of "host 8"[1]: 1 port cannot reach it; packets from switch "switch 0" (0x0000000000005000) itself end at switch "switch 0" (0x0000000000005000), which sends it to port 5, which has no cable
note dead-entry 2: LID 6 of "host 5"[1]: switch "switch 0" (0x0000000000005000) sends it to port 5, which has no cable; 2 LIDs have this entry
`},
		{"beyond the ports, for a switch", func(f *fabric.Fabric, row func(int) []fabric.PortNum) *fabric.Fabric {
			row(2)[1] = 77
			return nil
		}, `warning management-unreachable 3: LID 1 of "switch 0"[0]: 3 ports cannot reach it; packets from "host 5"[1] end at switch "switch 2" (0x0000000000005200), which sends it to port 77 and has ports 1 to 5
note dead-entry 1: LID 1 of "switch 0"[0]: switch "switch 2" (0x0000000000005200) sends it to port 77 and has ports 1 to 5
`},
		{"port 0 of another switch", func(f *fabric.Fabric, row func(int) []fabric.PortNum) *fabric.Fabric {
			row(1)[4] = 0
			return nil
		}, `error unicast-unreachable 4: LID 4 of "host 3"[1]: 4 ports cannot reach it; packets from "host 4"[1] end at switch "switch 1" (0x0000000000005100), which takes it in at port 0, which has LID 2
warning management-unreachable 2: LID 4 of "host 3"[1]: 2 ports cannot reach it; packets from switch "switch 1" (0x0000000000005100) itself end at switch "switch 1" (0x0000000000005100), which takes it in at port 0, which has LID 2
note dead-entry 1: LID 4 of "host 3"[1]: switch "switch 1" (0x0000000000005100) takes it in at port 0, which has LID 2
`},
		{"wrong host", func(f *fabric.Fabric, row func(int) []fabric.PortNum) *fabric.Fabric {
			row(0)[4] = 3
			return nil
		}, `error misdelivered 5: LID 4 of "host 3"[1]: 5 ports send to it and miss it; packets from "host 6"[1] end at switch "switch 0" (0x0000000000005000), which sends it by port 3 to "host 6"[1], which has LID 7
warning management-unreachable 3: LID 4 of "host 3"[1]: 3 ports cannot reach it; packets from switch "switch 0" (0x0000000000005000) itself end at switch "switch 0" (0x0000000000005000), which sends it by port 3 to "host 6"[1], which has LID 7
`},
		{"loop", func(f *fabric.Fabric, row func(int) []fabric.PortNum) *fabric.Fabric {
			row(1)[6] = 1
			return nil
		}, `error unicast-loop 4: LID 6 of "host 5"[1]: packets from 4 ports loop: "switch 0"[1] -> "switch 1"[1] -> "switch 0"[1]
error management-loop 2: LID 6 of "host 5"[1]: packets from 2 ports loop: "switch 0"[1] -> "switch 1"[1] -> "switch 0"[1]
`},
		{"stale", func(f *fabric.Fabric, row func(int) []fabric.PortNum) *fabric.Fabric {
			row(1)[12], row(2)[12], row(2)[13] = 3, 1, 1
			return nil
		}, `note stale-entry 2: LID 12 belongs to no port, and 2 switches have entries for it, such as switch "switch 1" (0x0000000000005100) with port 3
note stale-entry 1: LID 13 belongs to no port, and 1 switch has an entry for it, such as switch "switch 2" (0x0000000000005200) with port 1
`},
		{"no table", func(f *fabric.Fabric, row func(int) []fabric.PortNum) *fabric.Fabric {
			for lid := range row(0) {
				row(0)[lid] = fabric.NoPath
			}
			// Only what is about the table as a whole.
			base, lmc := make([]fabric.LID, f.NumPorts()), make([]uint8, f.NumPorts())
			base[f.PortBase(1)] = 2
			g := short.Must(f.WithLIDs(base, lmc))(t)
			for s := range 3 {
				for lid := range row(s) {
					if lid != 2 {
						row(s)[lid] = fabric.NoPath
					}
				}
			}
			return g
		}, `error unassigned-lid 1: Channel Adapter "host 3"[1], port GUID 0x000000000ca00301, has a cable and no LID
error unassigned-lid 1: Channel Adapter "host 4"[1], port GUID 0x000000000ca00401, has a cable and no LID
error unassigned-lid 1: Channel Adapter "host 5"[1], port GUID 0x000000000ca00501, has a cable and no LID
error unassigned-lid 1: Channel Adapter "host 6"[1], port GUID 0x000000000ca00601, has a cable and no LID
error unassigned-lid 1: Channel Adapter "host 7"[1], port GUID 0x000000000ca00701, has a cable and no LID
error unassigned-lid 1: Channel Adapter "host 8"[1], port GUID 0x000000000ca00801, has a cable and no LID
warning management-unreachable 3: LID 2 of "switch 1"[0]: 3 ports cannot reach it; packets from "host 3"[1] end at switch "switch 0" (0x0000000000005000), which has no entry for it
warning management-unassigned-lid 1: switch "switch 0" (0x0000000000005000) has no LID
warning management-unassigned-lid 1: switch "switch 2" (0x0000000000005200) has no LID
warning empty-table 1: switch "switch 0" (0x0000000000005000) has no forwarding entries
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, good := line()
			tables := lft.NewTables(3, 20)
			for s := range 3 {
				copy(tables.Row(fabric.NodeID(s)), good.Row(fabric.NodeID(s)))
			}
			if g := c.change(f, func(s int) []fabric.PortNum { return tables.Row(fabric.NodeID(s)) }); g != nil {
				f = g
			}
			r, _ := compare(t, f, tables)
			var b strings.Builder
			for _, x := range r.Findings {
				count := short.Must(json.Marshal(x.Count))(t)
				b.WriteString(x.Severity.String() + " " + x.Rule + " " + string(count) + ": " + x.Message + "\n")
			}
			if d := cmp.Diff(c.want, b.String()); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestParts: what no cables join is one finding that names the parts, and pairs inside a
// part are found as ever. compare holds the sums to the slow checker.
func TestParts(t *testing.T) {
	pair := func(w *wiring, hosts int) int { // two switches with hosts
		a, b := w.node(fabric.Switch, 8), w.node(fabric.Switch, 8)
		w.cable(a, b)
		for i := range hosts {
			w.cable([]int{a, b}[i%2], w.node(fabric.CA, 1))
		}
		return a
	}
	for _, c := range []struct {
		name   string
		make   func(w *wiring)
		change func(f *fabric.Fabric, t *lft.Tables)
		want   string
	}{
		{"one part", func(w *wiring) { pair(w, 3) }, nil, ""},
		{"two parts", func(w *wiring) { pair(w, 2); pair(w, 3) }, nil, `error partitioned 12: 2 parts that no cable joins: 2 switches and 3 CA ports with "switch 4", "switch 5"; 2 switches and 2 CA ports with "switch 0", "switch 1"; 12 of 20 pairs of CA ports cannot talk
warning management-partitioned 28: 28 of 52 pairs with port 0 of a switch cannot talk: they are in different parts, which partitioned names
`},
		{"three parts, and pairs inside one", func(w *wiring) { pair(w, 2); pair(w, 3); pair(w, 2) }, func(f *fabric.Fabric, tables *lft.Tables) {
			tables.Row(0)[f.LID(f.CAPorts()[1])] = fabric.NoPath // inside the first
			tables.Row(4)[f.LID(f.CAPorts()[0])] = 1             // a cycle in the last, for a LID of the first
			tables.Row(5)[f.LID(f.CAPorts()[0])] = 1
		}, `error partitioned 30: 3 parts that no cable joins: 2 switches and 3 CA ports with "switch 4", "switch 5"; 2 switches and 2 CA ports with "switch 0", "switch 1"; 2 switches and 2 CA ports with "switch 9", "switch 10"; 30 of 42 pairs of CA ports cannot talk
error unicast-unreachable 1: LID 8 of "host 3"[1]: 1 port cannot reach it; packets from "host 2"[1] end at switch "switch 0" (0x0000000000005000), which has no entry for it
error unicast-loop 2: LID 7 of "host 2"[1]: packets from 2 ports loop: "switch 9"[1] -> "switch 10"[1] -> "switch 9"[1]
error management-loop 2: LID 7 of "host 2"[1]: packets from 2 ports loop: "switch 9"[1] -> "switch 10"[1] -> "switch 9"[1]
warning management-partitioned 78: 78 of 114 pairs with port 0 of a switch cannot talk: they are in different parts, which partitioned names
warning management-unreachable 1: LID 8 of "host 3"[1]: 1 port cannot reach it; packets from switch "switch 0" (0x0000000000005000) itself end at switch "switch 0" (0x0000000000005000), which has no entry for it
`},
		{"many parts", func(w *wiring) {
			pair(w, 2)
			for range 3 {
				w.cable(w.node(fabric.Switch, 4), w.node(fabric.CA, 1))
			}
			w.cable(w.node(fabric.CA, 1), w.node(fabric.CA, 1)) // back to back
			w.node(fabric.Switch, 4)                            // without a cable
		}, nil, `error partitioned 38: 6 parts that no cable joins: 2 switches and 2 CA ports with "switch 0", "switch 1"; 1 switch and 1 CA port with "switch 4"; 1 switch and 1 CA port with "switch 6"; 1 switch and 1 CA port with "switch 8"; and 2 more with 1 switch and 2 CA ports; 38 of 42 pairs of CA ports cannot talk
warning management-partitioned 98: 98 of 114 pairs with port 0 of a switch cannot talk: they are in different parts, which partitioned names
`},
		{"a switch alone", func(w *wiring) { pair(w, 2); w.node(fabric.Switch, 4) }, nil, `warning management-partitioned 8: 2 parts that no cable joins: 2 switches and 2 CA ports with "switch 0", "switch 1"; 1 switch with "switch 4"; 8 of 18 pairs with port 0 of a switch cannot talk
`},
		{"hosts back to back", func(w *wiring) {
			w.cable(w.node(fabric.CA, 1), w.node(fabric.CA, 1))
			w.cable(w.node(fabric.CA, 1), w.node(fabric.CA, 1))
		}, nil, `error partitioned 8: 2 parts that no cable joins: 2 CA ports with "host 0"[1], "host 1"[1]; 2 CA ports with "host 2"[1], "host 3"[1]; 8 of 12 pairs of CA ports cannot talk
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var w wiring
			c.make(&w)
			f := number(t, w.fabric(t), nil)
			tables := shortestTables(f, rand.New(rand.NewPCG(1, 1)))
			if c.change != nil {
				c.change(f, tables)
			}
			r, _ := compare(t, f, tables)
			var b strings.Builder
			for _, x := range r.Findings {
				if x.Severity > Note {
					fmt.Fprintf(&b, "%s %s %d: %s\n", x.Severity, x.Rule, x.Count, x.Message)
				}
			}
			if d := cmp.Diff(c.want, b.String()); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestBounds checks that findings are bounded and say how many there are.
func TestBounds(t *testing.T) {
	f, _ := ring(t, 8)
	tables := lft.NewTables(8, f.MaxLID()) // no entries at all
	r := mustCheck(t, &state.State{Fabric: f, Tables: tables}, Options{Findings: 3})
	var got []string
	for _, x := range r.Findings {
		if x.Rule == UnicastUnreachable {
			got = append(got, x.Message)
		}
	}
	if len(got) != 4 || got[3] != "and 5 more findings of this rule, for 35 pairs" {
		t.Errorf("%q", got)
	}
	if r.Unicast.Unreachable != 56 || r.Worst() != Error || r.Verdict != VerdictErrors {
		t.Errorf("%+v", r)
	}
	// A ring of rings: each closes a credit loop of its own.
	var w wiring
	for range 5 {
		switches := []int{w.node(fabric.Switch, 3), w.node(fabric.Switch, 3), w.node(fabric.Switch, 3), w.node(fabric.Switch, 3)}
		for i := range switches {
			host := w.node(fabric.CA, 1)
			w.fail(w.b.Connect(switches[i], 1, switches[(i+1)%4], 2, fabric.Link{}))
			w.fail(w.b.Connect(switches[i], 3, host, 1, fabric.Link{}))
		}
	}
	f = number(t, w.fabric(t), nil)
	tables = lft.NewTables(20, f.MaxLID())
	for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
		root, port := toward(f, lid)
		for s := range 20 {
			tables.Row(fabric.NodeID(s))[lid] = 1
		}
		tables.Row(root)[lid] = port
	}
	r = mustCheck(t, &state.State{Fabric: f, Tables: tables}, Options{Witnesses: 2})
	if r.CreditLoops.Count != 5 || len(r.CreditLoops.Cycles) != 2 {
		t.Errorf("%d credit loops, %d shown", r.CreditLoops.Count, len(r.CreditLoops.Cycles))
	}
	i := slices.IndexFunc(r.Findings, func(x Finding) bool { return x.Rule == CreditLoop && x.more })
	if i < 0 || r.Findings[i].Message != "and 3 more findings of this rule, for 12 channels" {
		t.Errorf("%+v", r.Findings)
	}
}

func TestErrors(t *testing.T) {
	f, tables := ring(t, 4)
	if _, err := Check(context.Background(), &state.State{Fabric: f, Tables: lft.NewTables(3, 9)}, Options{}); err == nil {
		t.Error("tables of 3 switches pass for a fabric of 4")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if r, err := Check(ctx, &state.State{Fabric: f, Tables: tables}, Options{}); !errors.Is(err, context.Canceled) || r != nil {
		t.Errorf("canceled: %v, %v", r, err)
	}
}

// compareUnowned looks for LIDs that have entries and no port, and walks from every
// switch for those that no port with a cable has.
func compareUnowned(t testing.TB, s *slow, r *Result) {
	t.Helper()
	unowned := false
	want := map[fabric.LID]bool{}
	for lid := fabric.LID(1); lid <= s.t.MaxLID(); lid++ {
		owner := s.f.LIDPort(lid)
		if owner != fabric.NoPort && (s.f.Peer(owner) != fabric.NoPort || s.f.IsSwitch(s.f.Owner(owner))) {
			continue
		}
		for n := range fabric.NodeID(s.f.NumSwitches()) {
			unowned = unowned || owner == fabric.NoPort && s.t.Row(n)[lid] != fabric.NoPath
			at, steps := n, 0
			for ; steps <= s.f.NumSwitches(); steps++ {
				e := s.t.Row(at)[lid]
				if e == 0 || e > s.f.Node(at).NumPorts {
					break
				}
				peer := s.f.Peer(s.f.Port(at, e))
				if peer == fabric.NoPort || !s.f.IsSwitch(s.f.Owner(peer)) {
					break
				}
				at = s.f.Owner(peer)
			}
			if steps > s.f.NumSwitches() {
				want[lid] = true
			}
		}
	}
	open := map[string]bool{}
	for _, u := range r.Undecided {
		open[u.Rule] = true
	}
	mayDrop, managersMay := false, false // paths of any SL, of which the sender's table drops some
	if s.s != nil && s.sls == nil {
		for in, out := range s.s.PortPairs() {
			n, own := s.f.Owner(out), s.s.At(in, out)
			some := slices.Contains(own[:], lft.DropVL) && slices.ContainsFunc(own[:], func(vl fabric.VL) bool { return vl != lft.DropVL })
			managersMay = managersMay || some && s.f.IsSwitch(n) && in == 0
			peer := s.f.Peer(out)
			mayDrop = mayDrop || some && !s.f.IsSwitch(n) && peer != fabric.NoPort && s.f.IsSwitch(s.f.Owner(peer))
		}
	}
	if unowned != open[UnicastUnreachable] || mayDrop != open[SLDropped] || managersMay != open[ManagementSLDropped] ||
		len(r.Undecided) > 0 && r.Verdict != VerdictUndecided && r.Verdict != VerdictErrors {
		t.Fatalf("LIDs without ports have entries: %v, senders may drop: %v, %v; verdict %s, undecided: %+v", unowned, mayDrop, managersMay, r.Verdict, r.Undecided)
	}
	got := map[fabric.LID]bool{}
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.Rule != UnownedLIDLoop {
			continue
		}
		got[f.LID] = true
		for i, h := range f.Witness {
			n, _ := s.f.SwitchByGUID(h.Switch)
			next, _ := s.f.SwitchByGUID(f.Witness[(i+1)%len(f.Witness)].Switch)
			if h.Port != s.t.Row(n)[f.LID] || s.f.Owner(s.f.Peer(s.f.Port(n, h.Port))) != next {
				t.Fatalf("LID %d: %+v is no cycle", f.LID, f.Witness)
			}
		}
	}
	if !maps.Equal(got, want) {
		t.Fatalf("LIDs without ports that loop: %v, want %v", got, want)
	}
}

// TestUnownedLIDLoop has tables that send a LID without a port in a cycle, and
// the same when the fabric is said to have all ports: the loop is still there.
func TestUnownedLIDLoop(t *testing.T) {
	f, old := ring(t, 4)
	lid := f.MaxLID() + 1
	tables := lft.NewTables(f.NumSwitches(), lid)
	for n := range fabric.NodeID(f.NumSwitches()) {
		copy(tables.Row(n), old.Row(n))
		tables.Row(n)[lid] = 1
	}
	for _, complete := range []bool{false, true} {
		r := mustCheck(t, &state.State{Fabric: f, Tables: tables}, Options{Complete: complete})
		i := slices.IndexFunc(r.Findings, func(x Finding) bool { return x.Rule == UnownedLIDLoop })
		if i < 0 || len(r.Findings[i].Witness) != 4 || r.Findings[i].LID != lid || (len(r.Undecided) == 0) != complete {
			t.Errorf("complete %v: %+v, undecided %+v", complete, r.Findings, r.Undecided)
		}
	}
	compare(t, f, tables)
}

// TestAddAndRegrade pins what callers may do to a result.
func TestAddAndRegrade(t *testing.T) {
	f, tables := ring(t, 4)
	r := mustCheck(t, &state.State{Fabric: f, Tables: tables}, Options{})
	if r.Verdict != VerdictErrors {
		t.Fatalf("%+v", r)
	}
	r.Regrade(CreditLoop, Warning)
	if r.Verdict != VerdictWarnings || r.Worst() != Warning {
		t.Errorf("regraded: %s", r.Verdict)
	}
	r.Add(Finding{Rule: AdaptiveRouting, Severity: Warning, Message: "m"}, Finding{Rule: CertificateRule, Severity: Error, Message: "n"})
	if r.Verdict != VerdictErrors || r.Findings[0].Rule != CertificateRule || r.Findings[0].Witness == nil {
		t.Errorf("added: %+v", r.Findings)
	}
}

// TestJSON pins the document.
func TestJSON(t *testing.T) {
	f, tables := ring(t, 3)
	r := mustCheck(t, &state.State{Fabric: f, Tables: tables}, Options{})
	got := short.Must(json.MarshalIndent(r, "", " "))(t)
	hop := func(sw, port, lid int) string {
		return fmt.Sprintf(`{"switch": "0x0000000000005%d00", "name": "switch %d", "port": %d, "vl": 0, "lid": %d}`, sw, sw, port, lid)
	}
	loop := "[" + hop(0, 1, 6) + ", " + hop(1, 1, 4) + ", " + hop(2, 1, 5) + "]"
	way := "[" + hop(1, 1, 4) + ", " + hop(2, 1, 4) + ", " + hop(0, 3, 4) + "]"
	want := `{
 "fabric": {"switches": 3, "ca_ports": 3, "links": 6, "max_lid": 6},
 "unicast": {"pairs": 6, "unreachable": 0, "loops": 0, "non_minimal": 3, "max_detour": 1, "hop_histogram": {"2": 3, "3": 3}, "max_hops": 3, "misdelivered": 0},
 "management": {"pairs": 24, "unreachable": 0, "loops": 0, "credit_loops": 1},
 "credit_loops": {"count": 1, "vls": 1, "cycles": [` + loop + `], "channels": 6, "dependencies": 6},
 "multicast": {"groups": 0, "mlids": 0, "pairs": 0, "missing": 0, "duplicates": 0, "loops": 0, "stray": 0, "credit_loops": 0, "dependencies": 0},
 "balance": {"max_routes_per_link": 3, "mean_routes_per_link": 1.5, "max_link": {"switch": "0x0000000000005000", "name": "switch 0", "port": 1, "vl": 0}, "idle_links": 3, "idle": [
  {"node": "0x0000000000005000", "name": "switch 0", "port": 2, "reason": "unused"},
  {"node": "0x0000000000005100", "name": "switch 1", "port": 2, "reason": "unused"},
  {"node": "0x0000000000005200", "name": "switch 2", "port": 2, "reason": "unused"}]},
 "undecided": [],
 "findings": [
  {"rule": "credit-loop", "severity": "error", "message": "3 channels wait for each other; shortest cycle, 3 channels: \"switch 0\"[1] (LID 6) -> \"switch 1\"[1] (LID 4) -> \"switch 2\"[1] (LID 5) -> \"switch 0\"[1]",
   "switch": "0x0000000000005000", "lid": 6, "count": 3, "witness": ` + loop + `},
  {"rule": "idle-links", "severity": "note", "message": "3 of 6 channels between switches carry no route though shortest paths could take them: \"switch 0\"[2] to \"switch 2\"[1], \"switch 1\"[2] to \"switch 0\"[1], \"switch 2\"[2] to \"switch 1\"[1]",
   "switch": "0x0000000000005000", "lid": 0, "count": 3, "witness": [],
   "ports": [{"node": "0x0000000000005000", "name": "switch 0", "port": 2}, {"node": "0x0000000000005100", "name": "switch 1", "port": 2}, {"node": "0x0000000000005200", "name": "switch 2", "port": 2}]},
  {"rule": "non-minimal", "severity": "note", "message": "3 of 6 pairs pass more switches than they need to; from \"host 4\"[1] to LID 4 of \"host 3\"[1] it is 3 instead of 2",
   "switch": "0x0000000000005100", "lid": 4, "count": 3, "witness": ` + way + `}
 ],
 "verdict": "errors"}`
	var a, b any
	short.Check(t, json.Unmarshal(got, &a))
	short.Check(t, json.Unmarshal([]byte(want), &b))
	if d := cmp.Diff(b, a); d != "" {
		t.Errorf("%s\n%s", d, got)
	}
	var back Result
	short.Check(t, json.Unmarshal(got, &back))
	again := short.Must(json.MarshalIndent(&back, "", " "))(t)
	if string(again) != string(got) {
		t.Errorf("read and written again:\n%s", again)
	}
}

func TestHistogramJSON(t *testing.T) {
	for _, bad := range []string{`[]`, `{"-1": 2}`, `{"x": 1}`, `{"1": -1}`, `{"99999999": 1}`} {
		var h Histogram
		if err := json.Unmarshal([]byte(bad), &h); err == nil {
			t.Errorf("%s read as %v", bad, h)
		}
	}
	h := Histogram{1}
	if err := json.Unmarshal([]byte("null"), &h); err != nil || len(h) != 1 {
		t.Errorf("null read as %v, %v", h, err)
	}
	got, err := json.Marshal(Histogram{0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 7})
	if err != nil || string(got) != `{"1":3,"10":7}` {
		t.Errorf("%s, %v", got, err)
	}
}

// TestRules checks that the table of rules is complete.
func TestRules(t *testing.T) {
	seen := map[string]bool{}
	last := Error
	for _, r := range Rules {
		if seen[r.Name] || r.Summary == "" || strings.TrimSpace(r.Explain) != r.Explain || !strings.HasSuffix(r.Explain, ".") || r.Count == "" || r.Severity > last {
			t.Errorf("rule %+v", r)
		}
		seen[r.Name] = true
		last = r.Severity
		if got, ok := RuleByName(r.Name); !ok || got.Name != r.Name {
			t.Errorf("RuleByName(%s) = %v, %t", r.Name, got, ok)
		}
	}
	if _, ok := RuleByName("no such rule"); ok {
		t.Error("found what is not there")
	}
	file := short.Must(parser.ParseFile(token.NewFileSet(), "rules.go", nil, 0))(t)
	names := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.ValueSpec); ok && len(s.Values) == 1 {
			if name, ok := s.Values[0].(*ast.BasicLit); ok {
				names++
				if _, ok := RuleByName(strings.Trim(name.Value, `"`)); !ok {
					t.Errorf("no rule %s", name.Value)
				}
			}
		}
		return true
	})
	if names != len(Rules) {
		t.Errorf("%d names, %d rules", names, len(Rules))
	}
}
