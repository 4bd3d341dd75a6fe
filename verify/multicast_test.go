package verify

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/state"
)

// slowMulticast is a checker that is too plain to be wrong: it follows every copy
// of the packet of every sender by itself.
type slowMulticast struct {
	f      *fabric.Fabric
	m      *mft.Plan
	s      *lft.SL2VL // nil for one VL
	counts MulticastCounts
	deps   dependencies // of packets that do not loop
	used   map[channel]bool
	steps  int
	tired  bool // there were too many copies to follow
}

func newSlowMulticast(f *fabric.Fabric, m *mft.Plan, s *lft.SL2VL) *slowMulticast {
	w := &slowMulticast{f: f, m: m, s: s, deps: dependencies{}, used: map[channel]bool{}}
	groups, mlids := map[int]bool{}, map[fabric.LID]bool{}
	known := map[fabric.LID]bool{}
	for i := range m.Trees {
		groups[m.Trees[i].Group] = true
		mlids[m.Trees[i].MLID] = true
		if len(m.Trees[i].Senders) > 0 {
			known[m.Trees[i].MLID] = true
			w.tree(&m.Trees[i])
		}
	}
	w.counts.Groups = len(groups)
	for _, mlid := range m.Tables.MLIDs() {
		if known[mlid] {
			continue
		}
		if !mlids[mlid] {
			w.counts.Groups++
		}
		mlids[mlid] = true
		var members []fabric.PortID
		f.EndPorts(func(p fabric.PortID) {
			if end := w.at(p); end != fabric.NoPort && slices.Contains(m.Tables.Ports(mlid), end) {
				members = append(members, p)
			}
		})
		slices.Sort(members)
		w.tree(&mft.Tree{MLID: mlid, Senders: members, Receivers: members})
	}
	w.counts.MLIDs = len(mlids)
	return w
}

// at is the port of a switch where an end port is.
func (w *slowMulticast) at(end fabric.PortID) fabric.PortID {
	if w.f.IsSwitch(w.f.Owner(end)) {
		return end
	}
	if p := w.f.Peer(end); p != fabric.NoPort && w.f.IsSwitch(w.f.Owner(p)) {
		return p
	}
	return fabric.NoPort
}

func (w *slowMulticast) tree(t *mft.Tree) {
	for _, s := range t.Senders {
		p := slowPacket{slowMulticast: w, mlid: t.MLID, sl: t.SL, copies: map[fabric.PortID]int{}, deps: dependencies{}, used: map[channel]bool{}}
		if in := w.at(s); in != fabric.NoPort {
			var held []channel
			ok := true
			if !w.f.IsSwitch(w.f.Owner(s)) {
				c := channel{port: s}
				if w.s != nil {
					c.vl = w.s.At(0, s)[t.SL]
				}
				held, ok = []channel{c}, c.vl != lft.DropVL
				p.used[c] = ok
			}
			if ok {
				p.visit(in, held)
			}
		}
		if q := w.f.Peer(s); q != fabric.NoPort && w.at(s) == fabric.NoPort && slices.Contains(t.Receivers, q) &&
			(w.s == nil || w.s.At(0, s)[t.SL] != lft.DropVL) {
			p.copies[q]++ // by a cable without a switch
		}
		if p.loops {
			w.counts.Loops++
		} else {
			for a, next := range p.deps {
				for b := range next {
					w.deps.add([]channel{a, b}, t.MLID)
				}
			}
			maps.Copy(w.used, p.used)
		}
		for _, r := range t.Receivers {
			n := p.copies[r]
			delete(p.copies, r)
			switch {
			case r == s:
				if n > 0 && !p.loops {
					w.counts.Duplicates++
				}
				continue
			case n == 0:
				w.counts.Missing++
			case n > 1 && !p.loops:
				w.counts.Duplicates++
			}
			w.counts.Pairs++
		}
		for end := range p.copies {
			if end != s || !p.loops {
				w.counts.Stray++
			}
		}
	}
}

// slowPacket is one packet.
type slowPacket struct {
	*slowMulticast
	mlid   fabric.LID
	sl     fabric.SL
	path   []fabric.PortID // that the copy at hand came in by
	copies map[fabric.PortID]int
	deps   dependencies
	used   map[channel]bool
	loops  bool
}

// visit is a copy that came in by a port, and holds a channel unless it is from
// port 0.
func (p *slowPacket) visit(in fabric.PortID, held []channel) {
	if slices.Contains(p.path, in) {
		p.loops = true
		return
	}
	if p.steps++; p.steps > 100_000 {
		p.tired = true
		return
	}
	p.path = append(p.path, in)
	s := p.f.Owner(in)
	for n := fabric.PortNum(0); n <= p.f.Node(s).NumPorts; n++ {
		out := p.f.Port(s, n)
		if out == in || !slices.Contains(p.m.Tables.Ports(p.mlid), out) {
			continue
		}
		if n == 0 {
			p.copies[out]++
			continue
		}
		peer := p.f.Peer(out)
		if peer == fabric.NoPort {
			continue
		}
		c := channel{port: out}
		if p.s != nil {
			if c.vl = p.s.At(p.f.Num(in), out)[p.sl]; c.vl == lft.DropVL {
				continue
			}
		}
		p.used[c] = true
		p.deps.add(append(slices.Clone(held), c), p.mlid)
		if p.f.IsSwitch(p.f.Owner(peer)) {
			p.visit(peer, []channel{c})
		} else {
			p.copies[peer]++
		}
	}
	p.path = p.path[:len(p.path)-1]
}

// someMasks are masks for one MLID: a tree for all members, or any ports, with
// some changes.
func someMasks(f *fabric.Fabric, r *rand.Rand, members []fabric.PortID) []fabric.PortID {
	in := map[fabric.PortID]bool{}
	switches := f.PortBase(fabric.NodeID(f.NumSwitches()))
	if r.IntN(4) > 0 {
		// The whole of a spanning tree, and the members.
		joined := map[fabric.NodeID]bool{fabric.NodeID(r.IntN(f.NumSwitches())): true}
		for grown := true; grown; {
			grown = false
			for _, p := range r.Perm(int(switches)) {
				p := fabric.PortID(p)
				q := f.Peer(p)
				if q == fabric.NoPort || !f.IsSwitch(f.Owner(q)) || !joined[f.Owner(p)] || joined[f.Owner(q)] {
					continue
				}
				joined[f.Owner(q)], grown = true, true
				in[p], in[q] = true, true
			}
		}
		for _, m := range members {
			if f.IsSwitch(f.Owner(m)) {
				in[m] = true
			} else if q := f.Peer(m); q != fabric.NoPort && f.IsSwitch(f.Owner(q)) {
				in[q] = true
			}
		}
	} else {
		for range r.IntN(2 * f.NumSwitches()) {
			in[fabric.PortID(r.IntN(int(switches)))] = true
		}
	}
	for range r.IntN(3) * r.IntN(3) {
		p := fabric.PortID(r.IntN(int(switches)))
		in[p] = !in[p]
	}
	maps.DeleteFunc(in, func(_ fabric.PortID, on bool) bool { return !on })
	return slices.Sorted(maps.Keys(in))
}

// someMulticast is groups on a fabric, with masks that may suit them.
func someMulticast(f *fabric.Fabric, r *rand.Rand) *mft.Plan {
	var ends []fabric.PortID
	f.EndPorts(func(p fabric.PortID) { ends = append(ends, p) })
	m := &mft.Plan{Tables: mft.NewTables(f)}
	some := func(n int) (list []fabric.PortID) {
		for _, i := range r.Perm(len(ends))[:min(n, len(ends))] {
			list = append(list, ends[i])
		}
		slices.Sort(list)
		return list
	}
	mlid := mft.MinMLID
	for g := range 1 + r.IntN(4) {
		mlid += fabric.LID(1 + r.IntN(2))
		t := mft.Tree{Group: g, Name: fmt.Sprintf("g%d", g), MLID: mlid, Receivers: some(1 + r.IntN(6))}
		t.Senders = t.Receivers
		switch r.IntN(6) {
		case 0, 1, 2:
			t.Senders = some(1 + r.IntN(3))
		case 3:
			t.Senders = nil // unknown
		}
		if r.IntN(2) == 0 {
			t.SL = fabric.SL(r.IntN(4))
		}
		if r.IntN(8) > 0 {
			m.Tables.Add(mlid, someMasks(f, r, t.Receivers))
		}
		switch r.IntN(8) {
		case 0: // the MLID's senders are unknown
		case 1: // two groups share it
			o := t
			o.Group, o.Name, o.Receivers = 100+g, "other", some(2)
			m.Trees = append(m.Trees, o)
			fallthrough
		default:
			m.Trees = append(m.Trees, t)
		}
	}
	r.Shuffle(len(m.Trees), func(i, j int) { m.Trees[i], m.Trees[j] = m.Trees[j], m.Trees[i] })
	return m
}

// compareMulticast checks fast and slow, and the certificate, and that the number
// of workers makes no difference.
func compareMulticast(t testing.TB, f *fabric.Fabric, tables *lft.Tables, m *mft.Plan, sl2vl *lft.SL2VL, sls *lft.PathSLs) (*Result, *slowMulticast) {
	t.Helper()
	s := &state.State{Fabric: f, Tables: tables, SL2VL: sl2vl, PathSLs: sls, Multicast: m}
	opt := Options{Workers: 1, Witnesses: 1000, Findings: 1 << 20}
	r := mustCheck(t, s, opt)
	slow := newSlowMulticast(f, m, sl2vl)
	if slow.tired {
		return r, slow
	}
	unicast := newSlow(f, tables, sl2vl, sls)
	both, all := dependencies{}, dependencies{}
	for _, d := range []dependencies{unicast.unicast, slow.deps} {
		both.join(d)
	}
	for _, d := range []dependencies{unicast.all, slow.deps} {
		all.join(d)
	}
	bothSets, bothShortest := both.components()
	allSets, allShortest := all.components()
	unicastSets, _ := unicast.unicast.components()
	want := slow.counts
	want.CreditLoops = len(bothSets)
	for c, next := range both {
		if f.IsSwitch(f.Owner(c.port)) {
			want.Dependencies += len(next)
		}
	}
	if d := cmp.Diff(want, r.Multicast); d != "" {
		t.Fatalf("multicast (-slow +Check):\n%s", d)
	}
	if r.CreditLoops.Count != len(unicastSets) || r.Management.CreditLoops != len(allSets) {
		t.Errorf("%d and %d credit loops with management, want %d and %d", r.CreditLoops.Count, r.Management.CreditLoops, len(unicastSets), len(allSets))
	}
	byRule := map[string]int64{}
	for _, x := range r.Findings {
		byRule[x.Rule] += x.Count
		var deps dependencies
		var sets [][]channel
		var shortest []int
		switch x.Rule {
		case MulticastCreditLoop:
			deps, sets, shortest = both, bothSets, bothShortest
		case ManagementCreditLoop:
			deps, sets, shortest = all, allSets, allShortest
		default:
			continue
		}
		var cycle []channel
		for _, h := range x.Witness {
			cycle = append(cycle, unicast.channel(t, h))
		}
		i := slices.IndexFunc(sets, func(s []channel) bool { return slices.Contains(s, cycle[0]) })
		if i < 0 || len(cycle) != shortest[i] || int64(len(sets[i])) != x.Count {
			t.Fatalf("%s: %s", x.Rule, x.Message)
		}
		for k, c := range cycle {
			if !deps[c][cycle[(k+1)%len(cycle)]][x.Witness[k].LID] {
				t.Errorf("%s: channel %d does not wait for the next with LID %d", x.Message, k, x.Witness[k].LID)
			}
		}
	}
	for rule, n := range map[string]int{
		MulticastMissing: want.Missing, MulticastDuplicate: want.Duplicates, MulticastLoop: want.Loops, MulticastStray: want.Stray,
	} {
		short.Equal(t, byRule[rule], int64(n), "findings of", rule, "stand for", n)
	}
	slow.certificate(t, r, s, both, all)
	opt.Workers = 3
	again := mustCheck(t, s, opt)
	if d := cmp.Diff(r, again, cmp.AllowUnexported(Finding{}), cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "proof" }, cmp.Ignore()), cmp.AllowUnexported(Result{})); d != "" {
		t.Errorf("one worker and three:\n%s", d)
	}
	return r, slow
}

// join adds the dependencies of others.
func (d dependencies) join(o dependencies) {
	for a, next := range o {
		for b, lids := range next {
			for lid := range lids {
				d.add([]channel{a, b}, lid)
			}
		}
	}
}

func (w *slowMulticast) certificate(t testing.TB, r *Result, s *state.State, both, all dependencies) {
	t.Helper()
	c := r.Certificate()
	if (c == nil) != (r.Multicast.CreditLoops > 0 || w.counts.Loops > 0) {
		t.Fatalf("certificate %v with %d credit loops", c, r.Multicast.CreditLoops)
	}
	if c == nil {
		return
	}
	if !c.Multicast || c.Management != (r.Management.CreditLoops == 0) {
		t.Errorf("certificate covers multicast: %t, management: %t", c.Multicast, c.Management)
	}
	back := short.Must(ReadCertificate("c", c.Append(nil)))(t)
	short.Diff(t, back, c, "certificate changed by writing and reading")
	if err := back.Check(s, Independent); err != nil {
		t.Errorf("certificate does not hold: %v", err)
	}
	deps := both
	if c.Management {
		deps = all
	}
	number := map[channel]*int32{}
	for i := range back.Channels {
		ch := &back.Channels[i]
		n, _ := w.f.NodeByGUID(ch.GUID)
		number[channel{w.f.Port(n, ch.Port), ch.VL}] = &ch.Number
	}
	var spoil [][2]*int32
	for _, a := range slices.SortedFunc(maps.Keys(deps), channel.compare) {
		for _, b := range slices.SortedFunc(maps.Keys(deps[a]), channel.compare) {
			x, y := number[a], number[b]
			if x == nil || y == nil || *x >= *y {
				t.Fatalf("certificate and dependency of %v on %v", a, b)
			}
			if len(w.deps[a][b]) > 0 {
				spoil = append(spoil, [2]*int32{x, y})
			}
		}
	}
	// With a number spoilt that multicast packets need the certificate must not hold.
	for i := 0; i < len(spoil); i += 1 + len(spoil)/8 {
		x, y := spoil[i][0], spoil[i][1]
		was := *y
		*y = *x
		if back.Check(s, Independent) == nil {
			t.Errorf("a certificate holds in which channels have the same number %d, and one waits for the other", *x)
		}
		*y = was
	}
}

// TestAnyMulticast has random tables and masks: Check finds
// just what following every copy finds.
func TestAnyMulticast(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var exact, loops, duplicates, missing, stray, creditLoops, tired, apart int
	part := short.Of(short.Usual(1, 3), 14)
	for range 500 / part {
		f := randomFabric(t, r)
		if f.NumSwitches() == 0 {
			continue
		}
		tables := upDownTables(f, r)
		if r.IntN(4) == 0 {
			tables = shortestTables(f, r)
		}
		var sl2vl *lft.SL2VL
		var sls *lft.PathSLs
		if r.IntN(3) == 0 {
			sl2vl, sls = someLanes(f, r)
		}
		m := someMulticast(f, r)
		res, slow := compareMulticast(t, f, tables, m, sl2vl, sls)
		if t.Failed() {
			t.Logf("%d switches, %d trees", f.NumSwitches(), len(m.Trees))
			return
		}
		if slow.tired {
			tired++
			continue
		}
		c := res.Multicast
		for n, is := range map[*int]bool{
			&exact: c.Missing+c.Duplicates+c.Loops+c.Stray == 0, &loops: c.Loops > 0, &duplicates: c.Duplicates > 0,
			&missing: c.Missing > 0, &stray: c.Stray > 0, &creditLoops: c.CreditLoops > 0, &apart: c.CreditLoops > res.CreditLoops.Count,
		} {
			if is {
				*n++
			}
		}
	}
	t.Logf("%d exact, %d loops, %d duplicates, %d missing, %d stray, %d credit loops (%d only with multicast), %d too many copies",
		exact, loops, duplicates, missing, stray, creditLoops, apart, tired)
	if part*exact < 20 || part*loops < 20 || part*duplicates < 5 || part*missing < 20 || part*stray < 20 || part*apart < 10 || tired > 20 {
		t.Error("the trials do not cover all outcomes")
	}
	// Packets for an MLID without a tree have SL 0, also where all paths have another.
	both := [][2]int{{0, 0}, {1, 0}}
	f, tables, m := masked(t, 2, 2, map[[2]int][]fabric.PortNum{{0, 0}: {1, 5}, {1, 0}: {3, 5}}, both, both)
	m.Trees = nil
	vls, sls := lft.ConstantVL(0), lft.NewPathSLs(4, f.MaxLID())
	vls[0] = 3
	for s := range fabric.NodeID(4) {
		sls.SetRow(slices.Repeat([]fabric.SL{1}, int(f.MaxLID())+1), s)
	}
	compareMulticast(t, f, tables, m, lft.NewSL2VL(f, vls), sls)
}

// masked is a mesh of m columns and n rows with masks for one MLID by coordinates
// (x, y), whose members at the places given send and receive.
func masked(t testing.TB, m, n int, masks map[[2]int][]fabric.PortNum, senders, receivers [][2]int) (*fabric.Fabric, *lft.Tables, *mft.Plan) {
	t.Helper()
	f := xMesh(t, m, n, 0)
	var ports []fabric.PortID
	for at, mask := range masks {
		for _, p := range mask {
			ports = append(ports, f.Port(fabric.NodeID(at[0]*n+at[1]), p))
		}
	}
	slices.Sort(ports)
	tree := mft.Tree{Name: "g", MLID: mft.MinMLID + 1}
	hosts := func(places [][2]int) (list []fabric.PortID) {
		for _, at := range places {
			list = append(list, f.Peer(f.Port(fabric.NodeID(at[0]*n+at[1]), 5)))
		}
		slices.Sort(list)
		return list
	}
	tree.Senders, tree.Receivers = hosts(senders), hosts(receivers)
	mc := &mft.Plan{Tables: mft.NewTables(f), Trees: []mft.Tree{tree}}
	mc.Tables.Add(tree.MLID, ports)
	return f, xyTables(t, f, m, n, func(fabric.LID) bool { return false }), mc
}

// paperMasks are the masks of the mesh paper's example for the source (2,2), with the members'
// host ports (G-X4).
var (
	paperMasks = map[[2]int][]fabric.PortNum{
		{2, 2}: {1, 3}, {1, 2}: {3}, {0, 2}: {2}, {0, 3}: {2, 5}, {0, 4}: {5},
		{3, 2}: {1, 2}, {3, 3}: {5}, {4, 2}: {4, 5}, {4, 1}: {4}, {4, 0}: {5},
	}
	paperMembers = [][2]int{{0, 3}, {0, 4}, {3, 3}, {4, 0}, {4, 2}}
)

// TestFlips turns each bit of the paper's masks: 14 that are set, without each of which members
// lack copies, and 91 that are not. On the tree 4 of these bring copies to others, 14 lead to a
// switch that has nothing to do with them, and 10 change nothing, 9 ports by which the packet comes
// and the sender's own; 63 are at switches that it does not come to.
func TestFlips(t *testing.T) {
	const side = 5
	got := map[string]int{}
	for s := range side * side {
		at := [2]int{s / side, s % side}
		for port := fabric.PortNum(1); port <= 5; port++ {
			outside := port == 1 && at[0] == side-1 || port == 2 && at[1] == side-1 || port == 3 && at[0] == 0 || port == 4 && at[1] == 0
			if outside {
				continue
			}
			masks := maps.Clone(paperMasks)
			i := slices.Index(masks[at], port)
			if i >= 0 {
				masks[at] = slices.Delete(slices.Clone(masks[at]), i, i+1)
			} else {
				masks[at] = append(slices.Clone(masks[at]), port)
			}
			f, tables, mc := masked(t, side, side, masks, [][2]int{{2, 2}}, paperMembers)
			r := short.Must(Check(t.Context(), &state.State{Fabric: f, Tables: tables, Multicast: mc}, Options{}))(t)
			has := func(rule string) bool {
				return slices.ContainsFunc(r.Findings, func(x Finding) bool { return x.Rule == rule })
			}
			kind := "no change"
			switch {
			case r.Multicast.Missing > 0:
				kind = "missing"
			case r.Multicast.Stray > 0:
				kind = "stray"
			case paperMasks[at] == nil && has(MulticastUnused):
				kind = "unused"
			case has(MulticastDeadEnd) && !has(MulticastUnused):
				kind = "dead end"
			}
			if (i >= 0) != (kind == "missing") || r.Multicast.Duplicates+r.Multicast.Loops > 0 {
				t.Errorf("port %d of %v: %s, %+v", port, at, kind, r.Multicast)
			}
			got[kind]++
		}
	}
	want := map[string]int{"missing": 14, "stray": 4, "dead end": 14, "no change": 10, "unused": 63}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestSharedMLID has the smallest counterexamples to one MLID for two senders
// (G-X7), the paper's masks with another sender (G-X5), and all its nodes on one
// MLID (G-X6).
func TestSharedMLID(t *testing.T) {
	type mask = map[[2]int][]fabric.PortNum
	paper, members := paperMasks, paperMembers
	for _, tt := range []struct {
		name               string
		m, n               int
		masks              mask
		senders, receivers [][2]int
		want               MulticastCounts
		message            string
	}{
		{"the paper's", 5, 5, paper, [][2]int{{2, 2}}, members, MulticastCounts{Pairs: 5}, ""},
		{"without the last host port", 5, 5, func() mask { m := maps.Clone(paper); delete(m, [2]int{4, 0}); return m }(),
			[][2]int{{2, 2}}, members, MulticastCounts{Pairs: 5, Missing: 1},
			`1 pair gets no copy; packets of "host 2,2"[1] come to switch "switch 4,0" (0x0000000000200014), which does not have port 5 of receiver "host 4,0"[1] in its mask`},
		{"wrong sender (0,3)", 5, 5, paper, [][2]int{{0, 3}}, members, MulticastCounts{Pairs: 4, Missing: 3}, "3 pairs get no copy"},
		{"wrong sender (3,2)", 5, 5, paper, [][2]int{{3, 2}}, members, MulticastCounts{Pairs: 5, Missing: 2}, "2 pairs get no copy"},
		{"wrong sender (1,2)", 5, 5, paper, [][2]int{{1, 2}}, members, MulticastCounts{Pairs: 5, Missing: 3}, "3 pairs get no copy"},
		{"loop on 2x2", 2, 2, mask{{0, 0}: {1, 5}, {1, 0}: {2}, {1, 1}: {3, 5}, {0, 1}: {4}},
			[][2]int{{0, 0}, {1, 1}}, [][2]int{{0, 0}, {1, 1}}, MulticastCounts{Pairs: 2, Loops: 2},
			`packets of 2 senders loop, those of "host 0,0"[1]: "switch 0,0"[1] -> "switch 1,0"[2] -> "switch 1,1"[3] -> "switch 0,1"[4] -> "switch 0,0"[1]`},
		{"duplicate on 2x2", 2, 2, mask{{0, 0}: {1, 2, 5}, {0, 1}: {1, 4, 5}, {1, 0}: {5}, {1, 1}: {4}},
			[][2]int{{0, 0}, {0, 1}}, [][2]int{{0, 0}, {0, 1}, {1, 0}}, MulticastCounts{Pairs: 4, Duplicates: 2},
			`2 pairs get more than one copy; "host 1,0"[1] gets copies of a packet of "host 0,0"[1] by "switch 0,0"[1] -> "switch 1,0"[5] and by "switch 0,0"[2] -> "switch 0,1"[1] -> "switch 1,1"[4] -> "switch 1,0"[5]`},
		{"all six of the paper's nodes", 5, 5, mask{ // the union of the masks of the four rows, and of (2,2)
			{0, 0}: {1}, {1, 0}: {1}, {2, 0}: {1}, {3, 0}: {1, 2}, {4, 0}: {2, 3, 5},
			{0, 2}: {2}, {1, 2}: {3}, {2, 2}: {1, 3, 5}, {3, 2}: {1, 2, 3}, {4, 2}: {3, 4, 5}, {3, 1}: {2}, {4, 1}: {2, 4},
			{0, 3}: {1, 2, 5}, {1, 3}: {1, 3}, {2, 3}: {1, 3, 4}, {3, 3}: {1, 3, 4, 5}, {4, 3}: {4},
			{0, 4}: {1, 4, 5}, {1, 4}: {1}, {2, 4}: {1, 4}, {3, 4}: {1, 4}, {4, 4}: {4},
		}, append([][2]int{{2, 2}}, members...), append([][2]int{{2, 2}}, members...), MulticastCounts{Loops: 6, Pairs: 30}, "packets of 6 senders loop"},
	} {
		f, tables, mc := masked(t, tt.m, tt.n, tt.masks, tt.senders, tt.receivers)
		r, _ := compareMulticast(t, f, tables, mc, nil, nil)
		got := r.Multicast
		got.Groups, got.MLIDs, got.CreditLoops, got.Dependencies, got.Stray = 0, 0, 0, 0, 0
		short.Equal(t, got, tt.want, tt.name)
		if tt.message == "" {
			short.Equal(t, r.Verdict, VerdictClean, tt.name, r.Findings)
		} else if !slices.ContainsFunc(r.Findings, func(x Finding) bool { return strings.Contains(x.Message, tt.message) }) {
			t.Errorf("%s: no finding has %s: %v", tt.name, tt.message, r.Findings)
		}
	}
}

// TestMulticastFindings has the rest of what can be wrong with masks.
func TestMulticastFindings(t *testing.T) {
	type mask = map[[2]int][]fabric.PortNum
	for _, tt := range []struct {
		name    string
		masks   mask
		rule    string
		count   int64
		message string
	}{
		{"stray", mask{{0, 0}: {1}, {1, 0}: {2, 5}, {1, 1}: {5}}, MulticastStray, 1, `group "g" (MLID 0xc001): 1 pair of a sender and an end port that is no receiver; "host 1,0"[1] gets packets of "host 0,0"[1]`},
		{"dead port", mask{{0, 0}: {1, 3}, {1, 0}: {2}, {1, 1}: {5}}, MulticastDeadPort, 1, `"switch 0,0"[3] has no cable and is in the mask of MLID 0xc001`},
		{"dead end", mask{{0, 0}: {1, 2}, {1, 0}: {2}, {1, 1}: {5}}, MulticastDeadEnd, 1, `"switch 0,0"[2] leads to a switch with no other port in its mask and is in the mask of MLID 0xc001`},
		{"no packet comes", mask{{0, 0}: {1}, {1, 0}: {2}, {1, 1}: {5}, {0, 1}: {1, 4}}, MulticastUnused, 2, `no sender's packets reach 2 ports in the masks of MLID 0xc001, such as "switch 0,1"[1]`},
		{"no host port", mask{{0, 0}: {1}, {1, 0}: {2}, {1, 1}: {1}}, MulticastMissing, 1, `packets of "host 0,0"[1] come to switch "switch 1,1" (0x0000000000200003), which does not have port 5 of receiver "host 1,1"[1] in its mask`},
		{"no way", mask{{0, 0}: {1}, {1, 1}: {5}}, MulticastMissing, 1, `no packet of "host 0,0"[1] comes to switch "switch 1,1" (0x0000000000200003) of receiver "host 1,1"[1]`},
	} {
		f, tables, mc := masked(t, 2, 2, tt.masks, [][2]int{{0, 0}}, [][2]int{{1, 1}})
		r, _ := compareMulticast(t, f, tables, mc, nil, nil)
		i := slices.IndexFunc(r.Findings, func(x Finding) bool { return x.Rule == tt.rule })
		if i < 0 || r.Findings[i].Count != tt.count || !strings.Contains(r.Findings[i].Message, tt.message) || r.Findings[i].LID != mft.MinMLID+1 {
			t.Errorf("%s: %+v", tt.name, r.Findings)
		}
	}
	// Two CAs with a cable and no switch: one is there at once, the others are not.
	var w wiring
	for range 3 {
		w.node(fabric.CA, 1)
	}
	s := w.node(fabric.Switch, 3)
	w.cable(0, 1)
	w.cable(2, s)
	alone := w.fabric(t)
	port := func(n int) fabric.PortID {
		p, _ := alone.NodeByGUID(0xca00000 + 0x100*fabric.GUID(n))
		return alone.Port(p, 1)
	}
	tree := mft.Tree{MLID: mft.MinMLID, Senders: []fabric.PortID{port(0)}, Receivers: []fabric.PortID{port(0), port(1), port(2)}}
	beside := &mft.Plan{Tables: mft.NewTables(alone), Trees: []mft.Tree{tree}}
	r := mustCheck(t, &state.State{Fabric: alone, Tables: lft.NewTables(alone.NumSwitches(), alone.MaxLID()), Multicast: beside}, Options{})
	if i := slices.IndexFunc(r.Findings, func(x Finding) bool { return x.Rule == MulticastMissing }); r.Multicast.Missing != 1 || i < 0 || !strings.Contains(r.Findings[i].Message, "no cable to a switch") {
		t.Errorf("back to back: %+v, %+v", r.Multicast, r.Findings)
	}
	// Masks with unknown senders.
	f, tables, mc := masked(t, 2, 2, mask{{0, 0}: {1, 5}, {1, 0}: {3, 5}}, [][2]int{{0, 0}}, [][2]int{{1, 0}})
	mc.Trees = nil
	if r, _ := compareMulticast(t, f, tables, mc, nil, nil); r.Verdict != VerdictClean || r.Multicast.Pairs != 2 || len(r.Findings) != 0 {
		t.Errorf("no trees: %+v, %+v", r.Multicast, r.Findings)
	}
	mc.Trees = []mft.Tree{{Name: "other", MLID: mft.MinMLID + 9}}
	undecided := func(r *Result) bool {
		var rules []string
		for _, u := range r.Undecided {
			rules = append(rules, u.Rule)
		}
		return r.Verdict == VerdictUndecided && slices.Equal(rules, MulticastRules)
	}
	for _, trees := range [][]mft.Tree{{{Name: "other", MLID: mft.MinMLID + 9}}, {}} {
		mc.Trees = trees
		if r, _ := compareMulticast(t, f, tables, mc, nil, nil); !undecided(r) || len(r.Findings) != 1 || r.Findings[0].Rule != MulticastUnknown {
			t.Errorf("another tree: %s, %+v, %+v", r.Verdict, r.Undecided, r.Findings)
		}
	}
	// A mask that leads to a switch without one, and a sender alone on such a switch.
	for _, receiver := range [][2]int{{1, 0}, {0, 0}} {
		f, tables, mc := masked(t, 2, 2, mask{{0, 0}: {5}, {1, 0}: {2, 3, 5}}, [][2]int{receiver}, [][2]int{receiver})
		if receiver == [2]int{0, 0} {
			f, tables, mc = masked(t, 2, 2, mask{{1, 0}: {5}}, [][2]int{receiver}, [][2]int{receiver})
		}
		if r, _ := compareMulticast(t, f, tables, mc, nil, nil); !undecided(r) {
			t.Errorf("a switch without a mask: %s, %+v, %+v", r.Verdict, r.Undecided, r.Findings)
		}
	}
	for _, bad := range []struct {
		m    *mft.Plan
		want string
	}{
		{&mft.Plan{}, "without tables"},
		{&mft.Plan{Tables: mft.NewTables(xMesh(t, 2, 3, 0))}, "of other nodes"},
		{&mft.Plan{Tables: mc.Tables, Trees: []mft.Tree{{Name: "x", MLID: 0xbfff}}}, `group "x" has MLID 0xbfff: want 0xc000 to 0xfffe`},
		{&mft.Plan{Tables: mc.Tables, Trees: []mft.Tree{{Name: "x", MLID: 0xc001, SL: 16}}}, `group "x" has SL 16`},
		{&mft.Plan{Tables: mc.Tables, Trees: []mft.Tree{{Name: "x", MLID: 0xc001, Senders: []fabric.PortID{f.CAPorts()[1], f.CAPorts()[0]}}}}, `must ascend`},
		{&mft.Plan{Tables: mc.Tables, Trees: []mft.Tree{{Name: "x", MLID: 0xc001, Receivers: []fabric.PortID{-1}}}}, `be of the fabric`},
		{&mft.Plan{Tables: mc.Tables, Trees: []mft.Tree{{Name: "x", MLID: 0xc001, Receivers: []fabric.PortID{1}}}}, `which has port 0 as an end port only`},
	} {
		if _, err := Check(context.Background(), &state.State{Fabric: f, Tables: tables, Multicast: bad.m}, Options{}); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%v, want %s", err, bad.want)
		}
	}
	c := mustCheck(t, &state.State{Fabric: f, Tables: tables}, Options{}).Certificate()
	if err := c.Check(&state.State{Fabric: f, Tables: tables, Multicast: mc}, Independent); err == nil || !strings.Contains(err.Error(), "does not cover multicast") {
		t.Error(err)
	}
	c = mustCheck(t, &state.State{Fabric: f, Tables: tables, Multicast: mc}, Options{}).Certificate()
	if err := c.Check(&state.State{Fabric: f, Tables: tables, Multicast: mc}, LockStep); err == nil || !strings.Contains(err.Error(), "lock-step copying") {
		t.Error(err)
	}
	if err := c.Check(&state.State{Fabric: f, Tables: tables}, Independent); err == nil || !strings.Contains(err.Error(), "no multicast tables") {
		t.Error(err)
	}
}

// TestMulticastUse has the use of multicast tables: capacity, groups with one member, masks
// without an end port.
func TestMulticastUse(t *testing.T) {
	type mask = map[[2]int][]fabric.PortNum
	through := mask{{0, 0}: {1, 5}, {1, 0}: {3, 5}}
	both := [][2]int{{0, 0}, {1, 0}}
	for _, tt := range []struct {
		name     string
		masks    mask
		members  [][2]int
		capacity []int // of the four switches
		rule     string
		count    int64
		message  string
	}{
		{"room", through, both, []int{9, 9, 3, 0}, "", 0, ""},
		{"room for all", through, both, []int{1 << 14, 1 << 16, 1 << 14, 0}, "", 0, ""},
		{"not known", through, both, nil, "", 0, ""},
		{"nearly full", through, both, []int{9, 9, 2, 0}, "", 0, ""}, // one of two
		{"beyond", through, both, []int{9, 9, 1, 0}, MulticastBeyondCapacity, 1, "the smallest multicast table has room for 1 MLIDs, up to 0xc000: 1 MLID is beyond, the first 0xc001"},
		{"alone", mask{{0, 0}: {5}}, both[:1], nil, MulticastLoneMember, 1, `group "g" (MLID 0xc001) has one member, "host 0,0"[1]`},
		{"no end port", mask{{0, 0}: {1}, {1, 0}: {3}}, nil, nil, MulticastNoEndPort, 1, "the masks of MLID 0xc001 lead to no end port"},
		{"to a port that is down", mask{{0, 0}: {3}}, nil, nil, MulticastNoEndPort, 1, "the masks of MLID 0xc001 lead to no end port"},
		{"to a switch", mask{{0, 0}: {0}}, nil, nil, "", 0, ""},
	} {
		f, tables, mc := masked(t, 2, 2, tt.masks, tt.members, tt.members)
		r := mustCheck(t, &state.State{Fabric: f, Tables: tables, Multicast: mc, MFTCapacity: tt.capacity}, Options{})
		i := slices.IndexFunc(r.Findings, func(x Finding) bool {
			return slices.Contains([]string{MulticastBeyondCapacity, MulticastNearlyFull, MulticastNoEndPort, MulticastLoneMember}, x.Rule)
		})
		switch {
		case i < 0 && tt.rule != "" || i >= 0 && tt.rule == "":
			t.Errorf("%s: %+v", tt.name, r.Findings)
		case i >= 0 && (r.Findings[i].Rule != tt.rule || r.Findings[i].Count != tt.count || r.Findings[i].Message != tt.message):
			t.Errorf("%s: %+v", tt.name, r.Findings[i])
		}
		if full := r.Multicast.Fullest; (tt.capacity != nil) != (full != nil) || full != nil &&
			(r.Multicast.Capacity != slices.Min(tt.capacity[:3]) || full.Capacity != tt.capacity[full.MLIDs] && full.MLIDs > 1) {
			t.Errorf("%s: %+v of %d", tt.name, full, r.Multicast.Capacity)
		}
	}
	// Nine of ten MLIDs are nearly all, with masks or without; the fullest table is the one with the
	// greatest share.
	f, tables, mc := masked(t, 2, 2, through, both, both)
	for l := mft.MinMLID + 2; l < mft.MinMLID+10; l++ {
		mc.Trees = append(mc.Trees, mft.Tree{Name: "more", Group: int(l), MLID: l, Senders: mc.Trees[0].Senders[:1], Receivers: mc.Trees[0].Senders[1:]})
	}
	r := mustCheck(t, &state.State{Fabric: f, Tables: tables, Multicast: mc, MFTCapacity: []int{12, 100, 10, 0}}, Options{})
	if i := slices.IndexFunc(r.Findings, func(x Finding) bool { return x.Rule == MulticastNearlyFull }); i < 0 || r.Findings[i].Count != 9 ||
		r.Findings[i].Message != "9 MLIDs are in use of the 10 that the smallest multicast table has room for" {
		t.Errorf("%+v", r.Findings)
	}
	if full := r.Multicast.Fullest; full.Name.Text != "switch 1,0" || full.MLIDs != 1 || full.Capacity != 10 || r.Multicast.Capacity != 10 {
		t.Errorf("%+v", full)
	}
}
