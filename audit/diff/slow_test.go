package diff

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// What is in this file finds out the slow way, pair by pair, state by state and
// path by path, what Compare finds out for all at once.

// randomFabric is a small network with LIDs here and there, so that they are in
// several blocks. Node GUIDs of the same draw are the same for all seeds.
func randomFabric(t *rapid.T, r *rand.Rand, switches, hosts int, lmc bool) *fabric.Fabric {
	var b fabric.Builder
	for s := range switches {
		short.Must(b.AddNode(fabric.Node{GUID: fabric.GUID(0x200 + s), Type: fabric.Switch, NumPorts: 6, Description: fmt.Sprintf("s%d", s)}))(t)
	}
	for h := range hosts {
		short.Must(b.AddNode(fabric.Node{GUID: fabric.GUID(0x1000 + 16*h), Type: fabric.CA, NumPorts: 2, Description: fmt.Sprintf("h%d", h)}))(t)
	}
	port := func(n int) fabric.PortNum { // a free one, 0 for none
		ports := r.Perm(int(b.Node(n).NumPorts))
		for _, p := range ports {
			if _, _, ok := b.Connected(n, fabric.PortNum(p+1)); !ok {
				return fabric.PortNum(p + 1)
			}
		}
		return 0
	}
	connect := func(m, n int) {
		p, q := port(m), port(n)
		if p == 0 || q == 0 || m == n && p == q {
			return
		}
		short.Check(t, b.Connect(m, p, n, q, fabric.Link{}))
	}
	for s := 1; s < switches; s++ {
		connect(s, r.IntN(s))
	}
	for h := range hosts {
		connect(switches+h, r.IntN(switches))
	}
	for range r.IntN(4 * switches) {
		if s, u := r.IntN(switches), r.IntN(switches); s != u {
			connect(s, u)
		}
	}
	f := short.Must(b.Build())(t)
	return randomLIDs(t, r, f, lmc)
}

func randomLIDs(t *rapid.T, r *rand.Rand, f *fabric.Fabric, mask bool) *fabric.Fabric {
	lid, lmc := make([]fabric.LID, f.NumPorts()), make([]uint8, f.NumPorts())
	free := r.Perm(45)
	i := 0
	f.EndPorts(func(p fabric.PortID) {
		lid[p] = fabric.LID(4 * (free[i] + 1))
		if mask && !f.IsSwitch(f.Owner(p)) {
			lmc[p] = uint8(r.IntN(2))
		}
		i++
	})
	return short.Must(f.WithLIDs(lid, lmc))(t)
}

// recabled is a fabric with some cables swapped or gone.
func recabled(t *rapid.T, r *rand.Rand, f *fabric.Fabric) *fabric.Fabric {
	for range 1 + r.IntN(2) {
		a, c := fabric.PortID(r.IntN(f.NumPorts())), fabric.PortID(r.IntN(f.NumPorts()))
		b, d := f.Peer(a), f.Peer(c)
		p := copyOf(t, f, a, c)
		if b != fabric.NoPort && d != fabric.NoPort && c != a && c != b {
			connect := func(x, y fabric.PortID) {
				p.ok(p.b.Connect(int(f.Owner(x)), f.Num(x), int(f.Owner(y)), f.Num(y), fabric.Link{}))
			}
			connect(a, c)
			connect(b, d)
		}
		f = p.build()
	}
	return f
}

// randomTables leads to every LID by a random tree, and here and there anywhere.
func randomTables(r *rand.Rand, f *fabric.Fabric, wild float64) *lft.Tables {
	t := lft.NewTables(f.NumSwitches(), f.MaxLID())
	for l := fabric.LID(1); l <= f.MaxLID(); l++ {
		dst := f.LIDPort(l)
		if dst == fabric.NoPort {
			continue
		}
		done := make([]bool, f.NumSwitches())
		var edge []fabric.PortID // ports that lead to who is done
		grow := func(s fabric.NodeID) {
			done[s] = true
			for p := 1; p <= 6; p++ {
				if peer := f.Peer(f.Port(s, fabric.PortNum(p))); peer != fabric.NoPort && f.IsSwitch(f.Owner(peer)) {
					edge = append(edge, peer)
				}
			}
		}
		if f.IsSwitch(f.Owner(dst)) {
			t.Row(f.Owner(dst))[l] = 0
			grow(f.Owner(dst))
		} else if peer := f.Peer(dst); peer != fabric.NoPort && f.IsSwitch(f.Owner(peer)) {
			t.Row(f.Owner(peer))[l] = f.Num(peer)
			grow(f.Owner(peer))
		}
		for len(edge) > 0 {
			i := r.IntN(len(edge))
			p := edge[i]
			edge = slices.Delete(edge, i, i+1)
			if s := f.Owner(p); !done[s] {
				t.Row(s)[l] = f.Num(p)
				grow(s)
			}
		}
		for s := range done {
			if r.Float64() < wild {
				t.Row(fabric.NodeID(s))[l] = []fabric.PortNum{0, 1, 2, 3, 4, 5, 6, 7, fabric.NoPath}[r.IntN(9)]
			}
		}
	}
	return t
}

// walkPath is the cables from a CA port to a LID by name, "" when packets do not
// arrive at dst.
func walkPath(f *fabric.Fabric, t *lft.Tables, from, dst fabric.PortID, l fabric.LID) (path string, hops int) {
	name := func(p fabric.PortID) string { return fmt.Sprintf("%s/%d", f.Node(f.Owner(p)).GUID, f.Num(p)) }
	for at := from; ; hops++ {
		peer := f.Peer(at)
		if peer == fabric.NoPort || hops > f.NumSwitches() {
			return "", 0
		}
		path += name(at) + "-" + name(peer) + " "
		s := f.Owner(peer)
		if !f.IsSwitch(s) {
			if peer != dst || hops == 0 {
				return "", 0
			}
			return path, hops
		}
		p := lft.Entry(t.Row(s), l)
		if p == 0 || p > f.Node(s).NumPorts {
			return "", 0
		}
		at = f.Port(s, p)
	}
}

// Entries, pairs, and all that a difference has two directions for, against
// comparisons one by one.
func TestAgainstSlow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		switches, hosts := 1+r.IntN(4), 1+r.IntN(5)
		wild := []float64{0, 0.1, 0.5}[r.IntN(3)]
		f := randomFabric(t, r, switches, hosts, true)
		g, tables := f, true
		switch r.IntN(4) {
		case 0:
			tables = false
			g = randomFabric(t, r, 1+r.IntN(4), 1+r.IntN(5), true)
		case 1:
			tables = false
			g = randomLIDs(t, r, f, true)
		case 2:
			g = recabled(t, r, f)
		}
		a := &state.State{Name: "a", Fabric: f, Tables: randomTables(r, f, wild)}
		b := &state.State{Name: "b", Fabric: g, Tables: randomTables(r, g, wild)}
		if tables {
			b.Tables = copyTables(a.Tables)
			for range r.IntN(4) {
				row := b.Tables.Row(fabric.NodeID(r.IntN(switches)))
				row[1+r.IntN(len(row)-1)] = fabric.PortNum(r.IntN(8))
			}
		}
		x := short.Must(Compare(context.Background(), a, b))(t)
		cpus := runtime.GOMAXPROCS(1)
		one, err := Compare(context.Background(), a, b)
		runtime.GOMAXPROCS(cpus)
		short.Check(t, err)
		if d := cmp.Diff(x, one); d != "" {
			t.Fatalf("on one goroutine: %s", d)
		}
		if self, err := Compare(context.Background(), a, a); err != nil || !self.Equal || len(self.Findings) > 0 {
			t.Fatalf("a is not equal to itself: %v %+v", err, self.Findings)
		}
		checkPairs(t, a, b, x)
		checkForms(t, x)
		y := short.Must(Compare(context.Background(), b, a))(t)
		checkMirror(t, x, y)
	})
}

// checkForms holds the text of a result against directives of fmt that are left.
func checkForms(t *rapid.T, r *Result) {
	for _, verbose := range []bool{false, true} {
		var b text.Sheet
		if r.Print(&b, verbose); strings.Contains(b.String(), "%!") {
			t.Fatal(b.String())
		}
	}
}

// checkPairs walks every pair of ports.
func checkPairs(t *rapid.T, a, b *state.State, r *Result) {
	m := matchNodes(a.Fabric, b.Fabric)
	f, g := a.Fabric, b.Fabric
	var sum PairChanges
	byDestination := map[fabric.LID]int64{}
	for _, dst := range g.CAPorts() {
		was := m.BackPort[dst]
		if was == fabric.NoPort || f.Peer(was) == fabric.NoPort || f.LID(was) == 0 {
			continue
		}
		for k := range fabric.LID(1) << min(f.LMC(was), g.LMC(dst)) {
			for _, src := range g.CAPorts() {
				old := m.BackPort[src]
				if src == dst || old == fabric.NoPort || f.Peer(old) == fabric.NoPort {
					continue
				}
				sum.Compared++
				x, m := walkPath(f, a.Tables, old, was, f.LID(was)+k)
				y, n := walkPath(g, b.Tables, src, dst, g.LID(dst)+k)
				if x == y {
					continue
				}
				sum.Changed++
				byDestination[g.LID(dst)+k]++
				switch {
				case x == "":
					sum.Gained++
				case y == "":
					sum.Lost++
				default:
					sum.Rerouted++
					if n > m {
						sum.Longer++
					} else if n < m {
						sum.Shorter++
					}
				}
			}
		}
	}
	p := *r.Pairs
	for _, d := range p.Destinations {
		short.MustEqual(t, byDestination[d.LID], d.Changed, "LID", d.LID, "pairs")
	}
	short.MustEqual(t, p.AllDestinations, len(byDestination), "destinations")
	sum.Destinations, sum.AllDestinations = p.Destinations, p.AllDestinations
	if d := cmp.Diff(sum, p); d != "" {
		t.Fatal(d)
	}
}

// checkMirror holds one direction of a comparison against the other.
func checkMirror(t *rapid.T, x, y *Result) {
	same := func(what string, a, b any) {
		if d := cmp.Diff(a, b); d != "" {
			t.Fatalf("%s: %s", what, d)
		}
	}
	same("nodes", x.Nodes.Gone, y.Nodes.New)
	same("nodes", x.Nodes.New, y.Nodes.Gone)
	same("replaced", len(x.Nodes.Replaced), len(y.Nodes.Replaced))
	same("links", x.Links.Gone, y.Links.New)
	same("links", x.Links.New, y.Links.Gone)
	same("moved", len(x.Links.Moved), len(y.Links.Moved))
	for i, m := range x.Links.Moved {
		n := y.Links.Moved[i]
		same("moved", [3]PortRef{m.End, m.Old, m.New}, [3]PortRef{n.End, n.New, n.Old})
	}
	same("LIDs", len(x.LIDs.Changed), len(y.LIDs.Changed))
	same("entries", [3]int64{x.LFTs.Changed, x.LFTs.Gone, x.LFTs.New}, [3]int64{y.LFTs.Changed, y.LFTs.New, y.LFTs.Gone})
	p, q := x.Pairs, y.Pairs
	same("pairs", [6]int64{p.Compared, p.Rerouted, p.Lost, p.Gained, p.Longer, p.Shorter},
		[6]int64{q.Compared, q.Rerouted, q.Gained, q.Lost, q.Shorter, q.Longer})
	same("equal", x.Equal, y.Equal)
	for i := range x.LFTs.Switches {
		s := x.LFTs.Switches[i]
		for _, o := range y.LFTs.Switches {
			if s.Switch != o.Switch {
				continue
			}
			mirrored := map[Entry]bool{}
			for _, e := range o.Entries {
				mirror := Entry{LID: e.LID, Old: e.New, New: e.Old}
				if e.OldLID != 0 {
					mirror.LID, mirror.OldLID = e.OldLID, e.LID
				}
				mirrored[mirror] = true
			}
			for _, e := range s.Entries {
				if !mirrored[e] {
					t.Fatalf("%s: %+v has no mirror image", s.Name, e)
				}
			}
		}
	}
}

// mix is a fabric with old and new tables of a switch for the slow checks.
type mix struct {
	f        *fabric.Fabric
	old, new *lft.Tables
	met      map[[2]int32]fabric.LID // dependencies of packets that travelled
}

// next is the switch that the entry of s leads to, -1 for none, and the way out.
func (m *mix) next(s int32, l fabric.LID, updated bool) (out fabric.PortID, to int32) {
	t := m.old
	if updated {
		t = m.new
	}
	out = slowOutPort(m.f, fabric.NodeID(s), lft.Entry(t.Row(fabric.NodeID(s)), l))
	if out == fabric.NoPort {
		return out, -1
	}
	if peer := m.f.Owner(m.f.Peer(out)); m.f.IsSwitch(peer) {
		return out, int32(peer)
	}
	return out, -1
}

// loops returns true if some state, a bit for each switch that is updated, loops.
func (m *mix) loops(l fabric.LID, state uint32) bool {
	for start := range int32(m.f.NumSwitches()) {
		s := start
		for range m.f.NumSwitches() + 1 {
			if s >= 0 {
				_, s = m.next(s, l, state>>s&1 != 0)
			}
		}
		if s >= 0 {
			return true
		}
	}
	return false
}

// mixedLoop is the length of the shortest loop in some state that is a loop of
// neither tables: its switches' entries lead on otherwise with either of them. It is
// 0 without one.
func (m *mix) mixedLoop(l fabric.LID, state uint32) (best int) {
	n := m.f.NumSwitches()
	for start := range int32(n) {
		old, new := true, true
		s := start
		for length := 1; length <= n && s >= 0; length++ {
			_, to := m.next(s, l, state>>s&1 != 0)
			_, a := m.next(s, l, false)
			_, b := m.next(s, l, true)
			old, new = old && a == to, new && b == to
			if s = to; s == start {
				if !old && !new && (best == 0 || length < best) {
					best = length
				}
				break
			}
		}
	}
	return best
}

// slowWrite is one write of an order: the entries of a switch for some LIDs.
type slowWrite struct {
	s    int32
	lids map[fabric.LID]bool
}

// writesOf is the stages of an order, for each of its parts that do not wait for
// each other.
func writesOf(m *mix, r *Result) [][][]slowWrite {
	id := func(g fabric.GUID) int32 {
		n, _ := m.f.SwitchByGUID(g)
		return int32(n)
	}
	all := map[fabric.LID]bool{}
	for l := fabric.LID(0); l < 256; l++ {
		all[l] = true
	}
	stages := func(list [][]fabric.GUID, lids map[fabric.LID]bool) (out [][]slowWrite) {
		for _, stage := range list {
			var w []slowWrite
			for _, g := range stage {
				w = append(w, slowWrite{id(g), lids})
			}
			out = append(out, w)
		}
		return out
	}
	o := &r.Transition.Order
	if o.Kind != OrderBlocks {
		return [][][]slowWrite{stages(o.Stages, all)}
	}
	var parts [][][]slowWrite
	for _, b := range o.Blocks {
		var part [][]slowWrite
		for _, p := range b.Passes {
			lids := map[fabric.LID]bool{}
			for l := fabric.LID(b.Block * 64); int(l) < b.Block*64+64; l++ {
				lids[l] = p.LIDs == nil || slices.Contains(p.LIDs, l)
			}
			part = append(part, stages(p.Stages, lids)...)
		}
		parts = append(parts, part)
	}
	return parts
}

// Loops of mixtures against all states there are, and the order against all
// states on its way, packets that are under way included.
func TestOrderAgainstStates(t *testing.T) {
	kinds := map[string]int{}
	order := func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		f := randomFabric(t, r, 2+r.IntN(5), r.IntN(16), false)
		wild := []float64{0, 0.2, 0.4, 0.6}[r.IntN(4)]
		m := &mix{f: f, old: randomTables(r, f, wild), new: randomTables(r, f, wild), met: map[[2]int32]fabric.LID{}}
		change := []float64{0.1, 0.5, 1}[r.IntN(3)] // many LIDs need many orders
		for l := fabric.LID(1); l <= f.MaxLID(); l++ {
			if r.Float64() > change {
				for s := range fabric.NodeID(f.NumSwitches()) {
					m.new.Row(s)[l] = m.old.Row(s)[l]
				}
			}
		}
		res := short.Must(Compare(context.Background(), &state.State{Fabric: f, Tables: m.old}, &state.State{Fabric: f, Tables: m.new}))(t)
		tr := res.Transition
		kinds[tr.Order.Kind]++
		n := f.NumSwitches()
		var transient, old, new int
		full := uint32(1)<<n - 1
		clean := map[fabric.LID]bool{} // neither table loops by itself
		girth := map[fabric.LID]int{}
		ordered := map[fabric.LID]bool{} // the new table does not loop
		for l := fabric.LID(1); l <= f.MaxLID(); l++ {
			a, b := m.loops(l, 0), m.loops(l, full)
			if a {
				old++
			}
			if b {
				new++
			}
			clean[l], ordered[l] = !a && !b, !b
			for state := range full + 1 {
				if k := m.mixedLoop(l, state); k > 0 && (girth[l] == 0 || k < girth[l]) {
					girth[l] = k
				}
			}
			if girth[l] > 0 {
				if clean[l] {
					transient++
				}
				kinds[fmt.Sprintf("mixed, old %t, new %t", a, b)]++
			}
		}
		short.MustEqual(t, tr.Loops, transient, "LIDs with loops of mixtures")
		if tr.Order.Kind != OrderNone && (tr.OldLoops != old || tr.NewLoops != new) {
			t.Fatalf("%d and %d LIDs loop by themselves, want %d and %d", tr.OldLoops, tr.NewLoops, old, new)
		}
		if k := tr.Order.Kind; k == OrderAny && tr.Loops > 0 || k != OrderNone && k != OrderAny && tr.Loops+tr.OldLoops == 0 {
			t.Fatalf("order %q with %d LIDs that loop", k, tr.Loops)
		}
		for _, cycle := range tr.Cycles {
			at := int32(-1)
			tables := map[string]bool{}
			for i, h := range cycle {
				s, _ := f.SwitchByGUID(h.Switch)
				if i > 0 && int32(s) != at {
					t.Fatalf("no loop: %v", cycle)
				}
				out, to := m.next(int32(s), h.LID, h.Table != "old")
				if f.Num(out) != h.Port {
					t.Fatalf("no such entry: %+v", h)
				}
				at = to
				tables[h.Table] = true
			}
			if l := cycle[0].LID; len(cycle) != girth[l] {
				t.Fatalf("a loop of %d, the shortest has %d", len(cycle), girth[l])
			}
			if s, _ := f.SwitchByGUID(cycle[0].Switch); int32(s) != at || !tables["old"] || !tables["new"] {
				t.Fatalf("no loop of old and new entries: %v", cycle)
			}
		}
		unordered := 0
		for l := range ordered {
			if loops := replay(t, r, m, writesOf(m, res), l, clean[l]); loops && ordered[l] {
				t.Fatalf("LID %d loops on the way", l)
			} else if loops {
				unordered++
			}
		}
		if unordered > tr.Unordered {
			t.Fatalf("%d LIDs loop on the way, want %d at most", unordered, tr.Unordered)
		}
		// What packets depend on while the order is kept is among what has been
		// looked at for credit loops, whatever has been left out there.
		c := &comparison{Match: matchNodes(f, f), a: &state.State{Fabric: f, Tables: m.old}, b: &state.State{Fabric: f, Tables: m.new}}
		w := short.Must(c.newMixture().run(context.Background()))(t)
		for d, l := range m.met {
			if !slices.Contains(w.deps.Next()(d[0]), d[1]) {
				t.Fatalf("a packet for LID %d went from channel %d to %d, which is not known", l, d[0], d[1])
			}
		}
		// In the end all entries are new.
		final := map[[2]int]bool{}
		for _, part := range writesOf(m, res) {
			for _, stage := range part {
				for _, w := range stage {
					for l := range w.lids {
						if w.lids[l] {
							final[[2]int{int(w.s), int(l)}] = true
						}
					}
				}
			}
		}
		for s := range n {
			for l := fabric.LID(1); l <= f.MaxLID(); l++ {
				if m.old.Row(fabric.NodeID(s))[l] != m.new.Row(fabric.NodeID(s))[l] && !final[[2]int{s, int(l)}] {
					t.Fatalf("LID %d of switch %d is not written", l, s)
				}
			}
		}
	}
	for range 2 {
		rapid.Check(t, order)
	}
	if kinds[OrderAny] == 0 || kinds[OrderSwitches] == 0 {
		t.Errorf("not all kinds of orders were tried: %v", kinds)
	}
	if kinds["mixed, old true, new false"]+kinds["mixed, old false, new true"]+kinds["mixed, old true, new true"] == 0 {
		t.Errorf("no loops of mixtures beside a table's own were tried: %v", kinds)
	}
}

// replay goes through all states of an order, and says whether one has a loop for a
// LID that is in neither tables. When the LID is clean it lets packets go while the
// order changes, else in each state by itself.
func replay(t rapid.TB, r *rand.Rand, m *mix, parts [][][]slowWrite, l fabric.LID, clean bool) (loops bool) {
	for _, part := range parts {
		state := uint32(0)
		var sequence []int32
		for _, stage := range part {
			var writers []int32
			for _, w := range stage {
				if w.lids[l] {
					writers = append(writers, w.s)
				}
			}
			for subset := range uint32(1) << len(writers) {
				now := state
				for i, s := range writers {
					now |= subset >> i & 1 << s
				}
				loops = loops || m.mixedLoop(l, now) > 0
				if !clean {
					m.walk(l, now)
				}
			}
			r.Shuffle(len(writers), func(i, j int) { writers[i], writers[j] = writers[j], writers[i] })
			for _, s := range writers {
				state |= 1 << s
			}
			sequence = append(sequence, writers...)
		}
		for s := range int32(m.f.NumSwitches()) {
			if clean {
				m.travel(t, l, s, 0, sequence, 1<<s, 0, fabric.NoPort)
			}
		}
	}
	return loops
}

// walk adds the dependencies of packets that do not loop in a state.
func (m *mix) walk(l fabric.LID, state uint32) {
	for start := range int32(m.f.NumSwitches()) {
		var path []int32
		for s := start; s >= 0 && len(path) <= m.f.NumSwitches(); {
			var out fabric.PortID
			if out, s = m.next(s, l, state>>s&1 != 0); out != fabric.NoPort {
				path = append(path, int32(out))
			}
		}
		if len(path) > m.f.NumSwitches() {
			continue
		}
		for i := range len(path) - 1 {
			m.met[[2]int32{path[i], path[i+1]}] = l
		}
	}
}

// travel moves a packet, or time, in all ways, and fails when the packet comes to
// a switch more often than twice. last is the channel that it came by.
func (m *mix) travel(t rapid.TB, l fabric.LID, s int32, state uint32, sequence []int32, once, twice uint32, last fabric.PortID) {
	out, to := m.next(s, l, state>>s&1 != 0)
	if out != fabric.NoPort && last != fabric.NoPort {
		m.met[[2]int32{int32(last), int32(out)}] = l
	}
	if to >= 0 {
		short.MustEqual(t, twice>>to&1, 0, "a packet for LID", l, "comes to switch", to, "a third time")
		m.travel(t, l, to, state, sequence, once|1<<to, twice|once&(1<<to), out)
	}
	if len(sequence) > 0 {
		m.travel(t, l, s, state|1<<sequence[0], sequence[1:], once, twice, last)
	}
}

// The dependencies of all mixtures, against those of paths one by one: with VLs,
// where tables do not loop.
func TestDependenciesAgainstPaths(t *testing.T) {
	loops, clean, lanes := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		f := randomFabric(t, r, 2+r.IntN(4), 1+r.IntN(4), false)
		wild := []float64{0, 0.1, 0.4}[r.IntN(3)]
		a := &state.State{Fabric: f, Tables: randomTables(r, f, wild)}
		b := &state.State{Fabric: f, Tables: copyTables(a.Tables)}
		other := randomTables(r, f, wild)
		for l := fabric.LID(1); l <= f.MaxLID(); l++ {
			if r.IntN(2) == 0 {
				for s := range fabric.NodeID(f.NumSwitches()) {
					b.Tables.Row(s)[l] = other.Row(s)[l]
				}
			}
		}
		for _, s := range []*state.State{a, b} {
			if r.IntN(3) > 0 {
				s.SL2VL = randomLanes(r, f)
				if r.IntN(2) == 0 {
					s.PathSLs = lft.NewPathSLs(f.NumSwitches(), f.MaxLID())
					anyRow := func() []fabric.SL {
						row := make([]fabric.SL, int(f.MaxLID())+1)
						for i := range row {
							row[i] = fabric.SL(r.IntN(3))
						}
						return row
					}
					for n := range fabric.NodeID(f.NumSwitches()) {
						s.PathSLs.SetRow(anyRow(), n)
					}
					f.EndPorts(func(p fabric.PortID) {
						if r.IntN(4) == 0 {
							s.PathSLs.SetPorts(anyRow(), p)
						}
					})
				}
			}
		}
		res := short.Must(Compare(context.Background(), a, b))(t)
		tr := res.Transition
		if tr.Order.Kind == OrderNone {
			return
		}
		own := tr.OldLoops+tr.NewLoops > 0
		if own || tr.Loops > 0 {
			loops++
		} else {
			clean++
		}
		c := &comparison{Match: matchNodes(f, f), a: a, b: b}
		m := c.newMixture()
		if m.vls > 1 {
			lanes++
		}
		w := short.Must(m.run(context.Background()))(t)
		unicast := short.Must(m.unicast(context.Background()))(t)
		for _, ca := range []bool{true, false} {
			g := w.deps
			if ca {
				g = unicast
			}
			got := map[[2]int32]bool{}
			for ch := range int32(len(m.to) * m.vls) {
				for _, e := range g.Next()(ch) {
					got[[2]int32{ch, e}] = true
				}
			}
			want := slowDependencies(m, a, b, ca)
			if own || tr.Loops > 0 {
				// Some mixtures are left out where there are loops; old and new
				// paths that do not loop never are.
				for _, s := range []*state.State{a, b} {
					if own {
						break
					}
					for d := range slowDependencies(m, s, s, ca) {
						if !got[d] {
							t.Fatalf("dependency %v of one state is missing", d)
						}
					}
				}
				for d := range got {
					if !want[d] {
						t.Fatalf("dependency %v is of no path", d)
					}
				}
				continue
			}
			if !maps.Equal(got, want) {
				t.Fatalf("ca %t, %d VLs: dependencies %v, want %v", ca, m.vls, got, want)
			}
		}
		checkCycles(t, m, res, unicast, w.deps)
		// What a table has by itself is what the checker says.
		if d := tr.CreditLoops; d.Management > 0 {
			for k, x := range []*state.State{a, b} {
				own := short.Must(verify.Check(context.Background(), &state.State{Fabric: x.Fabric, Tables: x.Tables, SL2VL: x.SL2VL, PathSLs: x.PathSLs}, verify.Options{}))(t)
				got := [2]int{[]int{d.Old, d.New}[k], []int{d.OldManagement, d.NewManagement}[k]}
				if want := [2]int{own.CreditLoops.Count, own.Management.CreditLoops}; got != want {
					t.Fatalf("%s has credit loops %v by itself, want %v", []string{"old", "new"}[k], got, want)
				}
			}
		}
	})
	if loops == 0 || clean == 0 || lanes == 0 {
		t.Errorf("%d with loops, %d without, %d with VLs", loops, clean, lanes)
	}
}

func randomLanes(r *rand.Rand, f *fabric.Fabric) *lft.SL2VL {
	var maps [4]lft.VLMap
	for i := range maps {
		for sl := range maps[i] {
			maps[i][sl] = []fabric.VL{0, 1, 2, lft.DropVL}[r.IntN(4)]
		}
	}
	s := lft.NewSL2VL(f, maps[0])
	for p := range fabric.PortID(f.NumPorts()) {
		n := f.Owner(p)
		if !f.IsSwitch(n) {
			s.Set(0, p, maps[r.IntN(4)])
			continue
		}
		for in := range f.Node(n).NumPorts + 1 {
			s.Set(in, p, maps[r.IntN(4)])
		}
	}
	return s
}

// slowDependencies follows every mixture of paths, of every SL and VL.
func slowDependencies(m *mixture, a, b *state.State, ca bool) map[[2]int32]bool {
	f := a.Fabric
	deps := map[[2]int32]bool{}
	states := []*state.State{a, b}
	sls := func(from fabric.PortID, s fabric.NodeID, l fabric.LID, live func(*state.State) uint16) (set uint16) {
		for _, x := range states {
			if x.PathSLs != nil && m.vls > 1 {
				set |= live(x) & (1 << x.PathSLs.SL(from, s, l))
			} else {
				set |= live(x)
			}
		}
		return set
	}
	vls := func(in fabric.PortNum, out fabric.PortID, sl int) (set []fabric.VL) {
		for _, x := range states {
			v := fabric.VL(0)
			if m.vls > 1 && x.SL2VL != nil {
				v = x.SL2VL.At(in, out)[sl]
			}
			if v != lft.DropVL {
				set = append(set, v)
			}
		}
		return set
	}
	for l := fabric.LID(1); l <= f.MaxLID(); l++ {
		dst := f.LIDPort(l)
		if dst == fabric.NoPort || ca && f.IsSwitch(f.Owner(dst)) {
			continue
		}
		seen := map[[3]int32]bool{}
		var follow func(ch int32, s fabric.NodeID, in fabric.PortNum, sl int)
		follow = func(ch int32, s fabric.NodeID, in fabric.PortNum, sl int) {
			for _, x := range states {
				out := slowOutPort(f, s, lft.Entry(x.Tables.Row(s), l))
				if out == fabric.NoPort {
					continue
				}
				for _, v := range vls(in, out, sl) {
					e := int32(out)*int32(m.vls) + int32(v)
					if ch >= 0 {
						deps[[2]int32{ch, e}] = true
					}
					peer := f.Peer(out)
					key := [3]int32{e, int32(sl), int32(l)}
					if f.IsSwitch(f.Owner(peer)) && !seen[key] {
						seen[key] = true
						follow(e, f.Owner(peer), f.Num(peer), sl)
					}
				}
			}
		}
		start := func(s fabric.NodeID, in fabric.PortNum, set uint16) {
			for sl := range 16 {
				if set>>sl&1 != 0 {
					follow(-1, s, in, sl)
				}
			}
		}
		for i, p := range f.CAPorts() {
			s := f.CASwitches()[i]
			if p == dst || s == fabric.NoNode {
				continue
			}
			start(s, f.Num(f.Peer(p)), sls(p, s, l, func(x *state.State) (live uint16) {
				for sl := range 16 {
					if m.vls == 1 || x.SL2VL == nil || x.SL2VL.At(0, p)[sl] != lft.DropVL {
						live |= 1 << sl
					}
				}
				return live
			}))
		}
		if !ca {
			for s := range fabric.NodeID(f.NumSwitches()) {
				start(s, 0, sls(f.PortBase(s), s, l, func(*state.State) uint16 { return 0xffff }))
			}
		}
	}
	return deps
}

// slowOutPort is the port of leave by the fabric alone.
func slowOutPort(f *fabric.Fabric, s fabric.NodeID, p fabric.PortNum) fabric.PortID {
	if p == fabric.ManagementPort || p > f.Node(s).NumPorts || f.Peer(f.Port(s, p)) == fabric.NoPort {
		return fabric.NoPort
	}
	return f.Port(s, p)
}

// checkCycles looks whether graphs have cycles, and that witnesses are some.
func checkCycles(t *rapid.T, m *mixture, r *Result, unicast, all *graph.Rows) {
	reach := func(g *graph.Rows, from int32) map[int32]bool {
		seen := map[int32]bool{}
		stack := []int32{from}
		for len(stack) > 0 {
			ch := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			for _, d := range g.Next()(ch) {
				if !seen[d] {
					seen[d] = true
					stack = append(stack, d)
				}
			}
		}
		return seen
	}
	components := func(g *graph.Rows) int {
		n := 0
		in := map[int32]bool{}
		for ch := range int32(len(m.to) * m.vls) {
			from := reach(g, ch)
			if !from[ch] || in[ch] {
				continue
			}
			n++
			for d := range from {
				if reach(g, d)[ch] {
					in[d] = true
				}
			}
		}
		return n
	}
	d := &r.Transition.CreditLoops
	short.MustEqual(t, components(unicast), d.Count, "components of the unicast graph hold a cycle")
	short.MustEqual(t, components(all), d.Management, "components of the graph hold a cycle")
	if d.Count > 0 && len(d.Cycles) == 0 {
		t.Fatal("no witness")
	}
	for i, cycle := range slices.Concat(d.Cycles, d.ManagementCycles) {
		g := unicast
		if i >= len(d.Cycles) {
			g = all
		}
		channel := func(h MixedHop) int32 {
			s, _ := m.f.SwitchByGUID(h.Switch)
			return int32(m.f.Port(s, h.Port))*int32(m.vls) + int32(h.VL)
		}
		for k, h := range cycle {
			c, e := channel(h), channel(cycle[(k+1)%len(cycle)])
			if !slices.Contains(g.Next()(c), e) || h.LID == 0 {
				t.Fatalf("no dependency at %d of %+v", k, cycle)
			}
		}
	}
}
