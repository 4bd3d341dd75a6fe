package mesh

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// cut is a cable of a full grid: from a position in the positive direction of
// a dimension.
type cut struct{ at, dim int }

// cuts lists all cables of a full grid.
func cuts(dims []int, wrap []bool) []cut {
	var all []cut
	positions := 1
	for _, size := range dims {
		positions *= size
	}
	for at := range positions {
		step := positions
		for d, size := range dims {
			step /= size
			if at/step%size < size-1 || wrap != nil && wrap[d] {
				all = append(all, cut{at, d})
			}
		}
	}
	return all
}

// without takes cables and switches out of a plot.
func (p plot) without(cables []cut, switches ...int) plot {
	if len(cables) > 0 {
		p.missing = func(at, dim int) bool { return slices.Contains(cables, cut{at, dim}) }
	}
	if len(switches) > 0 {
		p.absent = func(at int) bool { return slices.Contains(switches, at) }
	}
	return p
}

// some picks cables at random.
func some(all []cut, n int, rnd *rand.Rand) []cut {
	all = slices.Clone(all)
	rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:n]
}

// repaired is a repair and what it did.
type repaired struct {
	*lft.Routing
	vls     int // VLs in use
	changed int // entries
	longer  int // hops that the changed paths have beyond shortest ones
}

// mend routes a grid with XY and repairs it. It checks that what XY routes is
// as it was, that paths arrive wherever cables lead, and that there is no credit
// loop: by a walk from every switch to every LID.
func mend(t testing.TB, g *Grid, opt lft.Options) repaired {
	t.Helper()
	base := opt
	if manyLIDs(g.Fabric) {
		base.VLs = 1 // Options.Repair leaves one order only
	}
	xy := byXY(t, g, base)
	r := short.Must(repair(t.Context(), g, byXY(t, g, base), opt))(t)
	engine := opt
	engine.Repair = true
	routed := short.Must(routeXY(t.Context(), g, engine))(t)
	sameRouting(t, r, routed)
	if r.SL2VL == nil {
		v := short.Must(verify.Check(t.Context(), &state.State{Fabric: r.Fabric, Tables: r.Tables}, verify.Options{}))(t)
		if v.CreditLoops.Count+v.Management.CreditLoops != 0 || v.Unicast.Loops+v.Management.Loops+v.Unicast.Misdelivered != 0 {
			t.Fatalf("verify finds %d credit loops, %d loops, %d pairs misdelivered", v.CreditLoops.Count, v.Unicast.Loops, v.Unicast.Misdelivered)
		}
	}
	return checkRepaired(t, g, xy, r, opt)
}

// byXY is g by XY alone.
func byXY(t testing.TB, g *Grid, opt lft.Options) *lft.Routing {
	t.Helper()
	opt.Repair = false
	return short.Must(routeXY(t.Context(), g, opt))(t)
}

// waitGraph is a channel dependency graph: by channel, those that it waits
// for.
type waitGraph [][]int32

func (w waitGraph) add(from, to int) {
	if !slices.Contains(w[from], int32(to)) {
		w[from] = append(w[from], int32(to))
	}
}

// cycle names a channel that is in a cycle, or -1.
func (w waitGraph) cycle() int32 {
	const open, done = 1, 2
	state := make([]uint8, len(w))
	var visit func(int32) int32
	visit = func(c int32) int32 {
		state[c] = open
		for _, d := range w[c] {
			if state[d] == open {
				return d
			}
			if state[d] == 0 {
				if found := visit(d); found >= 0 {
					return found
				}
			}
		}
		state[c] = done
		return -1
	}
	for c := range int32(len(w)) {
		if state[c] == 0 {
			if found := visit(c); found >= 0 {
				return found
			}
		}
	}
	return -1
}

func checkRepaired(t testing.TB, g *Grid, xy, got *lft.Routing, opt lft.Options) repaired {
	t.Helper()
	f := g.Fabric
	result := repaired{Routing: got, vls: 1}
	allowed := func(p fabric.PortID) bool { return g.Dir(p) != NoDir && !(opt.NoWrap && g.Wraps(p)) }

	// Distances by a search of our own, since NoWrap leaves cables out.
	n := f.NumSwitches()
	dist := make([][]int, n)
	for to := range dist {
		dist[to] = slices.Repeat([]int{-1}, n)
		dist[to][to] = 0
		queue := []fabric.NodeID{fabric.NodeID(to)}
		for len(queue) > 0 {
			s := queue[0]
			queue = queue[1:]
			ports, next := f.SwitchLinks(s)
			for i, v := range next {
				if allowed(ports[i]) && dist[to][v] < 0 {
					dist[to][v] = dist[to][s] + 1
					queue = append(queue, v)
				}
			}
		}
	}
	const vls = maxRepairVLs
	after := make(waitGraph, int(f.PortBase(fabric.NodeID(n)))*vls)
	for s := range fabric.NodeID(n) {
		for lid, port := range f.LIDPorts() {
			to, exit := delivery(f, port)
			if to == fabric.NoNode {
				continue
			}
			was, is := xy.Tables.Row(s)[lid], got.Tables.Row(s)[lid]
			if was != fabric.NoPath && was != is {
				t.Fatalf("LID %d at %q: port %d, XY has %d", lid, f.Node(s).Description, is, was)
			}
			if dist[to][s] < 0 {
				if is != fabric.NoPath {
					t.Fatalf("LID %d at %q: port %d, where no cables lead", lid, f.Node(s).Description, is)
				}
				continue
			}
			sl := fabric.SL(0)
			if got.PathSLs != nil {
				sl = got.PathSLs.Row(s)[lid]
			}
			if was != fabric.NoPath {
				if xy.PathSLs == nil && sl != 0 || xy.PathSLs != nil && sl != xy.PathSLs.Row(s)[lid] {
					t.Fatalf("LID %d from %q: SL %d, not XY's", lid, f.Node(s).Description, sl)
				}
			}
			before := -1
			hops := 0
			in := fabric.ManagementPort
			for at := s; at != to; hops++ {
				num := got.Tables.Row(at)[lid]
				if hops > n || num == fabric.NoPath {
					t.Fatalf("LID %d from %q: stopped or round and round at %q", lid, f.Node(s).Description, f.Node(at).Description)
				}
				out := f.Port(at, num)
				if !allowed(out) {
					t.Fatalf("LID %d at %q: port %d, which leads to no neighbor", lid, f.Node(at).Description, num)
				}
				vl := fabric.VL(0)
				if got.SL2VL != nil {
					vl = got.SL2VL.At(in, out)[sl]
					if result.vls = max(result.vls, int(vl)+1); result.vls > vls {
						t.Fatalf("LID %d from %q: VL %d", lid, f.Node(s).Description, vl)
					}
				}
				channel := int(out)*vls + int(vl)
				if before >= 0 {
					after.add(before, channel)
				}
				before = channel
				in = f.Num(f.Peer(out))
				at = f.Owner(f.Peer(out))
			}
			short.MustEqual(t, got.Tables.Row(to)[lid], exit, "LID", lid, "is not delivered")
			if was == fabric.NoPath {
				result.changed++
				result.longer += hops - dist[to][s]
			}
		}
	}
	if c := after.cycle(); c >= 0 {
		t.Fatalf("credit loop through %s on VL %d", f.PortName(fabric.PortID(c/vls)), c%vls)
	}
	if opt.VLs > 0 && result.vls > opt.VLs {
		t.Fatalf("%d VLs, may use %d", result.vls, opt.VLs)
	}
	return result
}

// TestRepairEveryDoubleFault takes every one and every two of the 24 cables
// and 16 switches out of a mesh of 4x4.
func TestRepairEveryDoubleFault(t *testing.T) {
	p := plot{dims: []int{4, 4}}
	all := cuts(p.dims, nil)
	inside := func(s int) bool { return s/4%3 != 0 && s%4%3 != 0 }
	count := make(map[string]int)
	changed, longer, paths := 0, 0, 0
	for i := range len(all) + 16 {
		for j := i % short.Of(1, 20); j <= i; j += short.Of(1, 20) {
			var cables []cut
			var switches []int
			for _, k := range slices.Compact([]int{i, j}) {
				if k < len(all) {
					cables = append(cables, all[k])
				} else {
					switches = append(switches, k-len(all))
				}
			}
			r := mend(t, grow(t, p.without(cables, switches...)), lft.Options{})
			changed += r.changed
			longer += r.longer
			paths++
			// Without a hole in the middle one VL is always enough, and two are
			// with one or two holes.
			if holes := slices.ContainsFunc(switches, inside); r.vls > 2 || r.vls > 1 && !holes {
				t.Errorf("without %v and switches %v: %d VLs", cables, switches, r.vls)
			}
			count[fmt.Sprintf("%d cables %d switches %d VLs", len(cables), len(switches), r.vls)]++
		}
	}
	t.Logf("%v, %.1f entries changed on average, paths %.2f hops longer than the shortest", count, float64(changed)/float64(paths), float64(longer)/float64(changed))
}

// TestRepairHole is the fault that no choice of turns mends on one VL: all the
// turns around the hole but one way round are XY's.
func TestRepairHole(t *testing.T) {
	g := grow(t, plot{dims: []int{3, 3}}.without(nil, 4))
	if r := mend(t, g, lft.Options{}); r.vls != 2 {
		t.Errorf("%d VLs, want 2", r.vls)
	}
	r, err := repair(t.Context(), g, byXY(t, g, lft.Options{}), lft.Options{VLs: 1})
	var domain *lft.DomainError
	if !errors.As(err, &domain) || r != nil {
		t.Fatalf("on one VL: %v, want a DomainError", err)
	}
	if !strings.Contains(err.Error(), "none from \"switch ") || !strings.Contains(err.Error(), "with 1 data VLs") {
		t.Errorf("on one VL: %v", err)
	}
}

func TestRepair(t *testing.T) {
	for _, tt := range []struct {
		name    string
		plot    plot
		cables  int
		holes   int
		opt     lft.Options
		trials  int
		mostVLs int
	}{
		{name: "16x16 less 3", plot: plot{dims: []int{16, 16}}, cables: 3, trials: 2, mostVLs: 1},
		{name: "16x16 less 5 %", plot: plot{dims: []int{16, 16}}, cables: 24, trials: 1, mostVLs: 3},
		{name: "8x8 less 5 %", plot: plot{dims: []int{8, 8}}, cables: 5, trials: 4, mostVLs: 2},
		{name: "3x4x5 less 5 %", plot: plot{dims: []int{3, 4, 5}}, cables: 6, trials: 4, mostVLs: 2},
		{name: "6x6 less 3 switches", plot: plot{dims: []int{6, 6}}, holes: 3, trials: 8, mostVLs: 3},
		{name: "8x8 torus less 3", plot: plot{dims: []int{8, 8}, wrap: []bool{true, true}}, cables: 3, trials: 3, mostVLs: 4},
		{name: "8x5 torus in y, as a mesh", plot: plot{dims: []int{8, 5}, wrap: []bool{false, true}}, cables: 3, opt: lft.Options{NoWrap: true}, trials: 4, mostVLs: 2},
		{name: "3x3 torus", plot: plot{dims: []int{3, 3}, wrap: []bool{true, true}}, cables: 2, trials: 8, mostVLs: 2},
		{name: "5-cube", plot: plot{dims: []int{2, 2, 2, 2, 2}}, cables: 4, trials: 4, mostVLs: 3},
		{name: "shuffled 7x6", plot: plot{dims: []int{7, 6}, seed: 5}, cables: 4, trials: 4, mostVLs: 2},
		{name: "two LIDs a port", plot: plot{dims: []int{5, 6}, lmc: 1}, cables: 2, trials: 4, mostVLs: 4},
		{name: "line", plot: plot{dims: []int{9}}, cables: 2, trials: 2, mostVLs: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(3, 4))
			positions := 1
			for _, size := range tt.plot.dims {
				positions *= size
			}
			for range short.Of(tt.trials, 1) {
				cables := some(cuts(tt.plot.dims, tt.plot.wrap), tt.cables, rnd)
				holes := rnd.Perm(positions)[:tt.holes]
				r := mend(t, grow(t, tt.plot.without(cables, holes...)), tt.opt)
				t.Logf("%d entries changed, %d VLs, paths %.2f hops longer than the shortest", r.changed, r.vls, float64(r.longer)/float64(max(1, r.changed)))
				if r.vls > tt.mostVLs {
					t.Errorf("without %v and switches %v: %d VLs, want at most %d", cables, holes, r.vls, tt.mostVLs)
				}
			}
		})
	}
}

// TestRepairNothing: a grid without faults keeps XY's routing to the byte.
func TestRepairNothing(t *testing.T) {
	for _, p := range []plot{
		{dims: []int{5, 4}},
		{dims: []int{4, 4}, wrap: []bool{true, true}},
		{dims: []int{3, 3}, links: []int{2, 3}, lmc: 1},
		{dims: []int{1}},
	} {
		g := grow(t, p)
		want := byXY(t, g, lft.Options{})
		got := short.Must(repair(t.Context(), g, byXY(t, g, lft.Options{}), lft.Options{}))(t)
		sameRouting(t, got, want)
	}
}

// sameRouting compares tables, SL-to-VL tables and path SLs.
func sameRouting(t testing.TB, a, b *lft.Routing) {
	t.Helper()
	for s := range fabric.NodeID(a.Fabric.NumSwitches()) {
		if !slices.Equal(a.Tables.Row(s), b.Tables.Row(s)) {
			t.Fatalf("%q has different tables", a.Fabric.Node(s).Description)
		}
		if (a.PathSLs == nil) != (b.PathSLs == nil) || a.PathSLs != nil && !slices.Equal(a.PathSLs.Row(s), b.PathSLs.Row(s)) {
			t.Fatalf("%q has different path SLs", a.Fabric.Node(s).Description)
		}
	}
	if (a.SL2VL == nil) != (b.SL2VL == nil) || a.SL2VL != nil && !a.SL2VL.Equal(b.SL2VL) {
		t.Fatal("different SL-to-VL tables")
	}
}

// TestRepairParts: a mesh cut in two is routed in each part.
func TestRepairParts(t *testing.T) {
	var cables []cut
	for y := range 5 {
		cables = append(cables, cut{2*5 + y, 0}) // between columns 2 and 3
	}
	cables = append(cables, cut{0*5 + 2, 0}, cut{5*5 + 1, 1})
	g := grow(t, plot{dims: []int{7, 5}}.without(cables))
	if r := mend(t, g, lft.Options{}); r.changed == 0 || r.vls != 1 {
		t.Errorf("%d entries changed, %d VLs", r.changed, r.vls)
	}
}

// TestRepairSame: the result is the same again, and one CPU or shuffled GUIDs
// change no path.
func TestRepairSame(t *testing.T) {
	p := plot{dims: []int{9, 8}}.without([]cut{{9, 0}, {30, 1}, {31, 0}, {50, 1}}, 20)
	first := mend(t, grow(t, p), lft.Options{})
	before := runtime.GOMAXPROCS(1)
	again := mend(t, grow(t, p), lft.Options{})
	runtime.GOMAXPROCS(before)
	sameRouting(t, first.Routing, again.Routing)

	g := grow(t, p)
	p.seed = 77
	h := grow(t, p)
	other := mend(t, h, lft.Options{})
	for at := range g.Positions() {
		for to := range g.Positions() {
			if g.At(at) == fabric.NoNode || g.At(to) == fabric.NoNode || at == to {
				continue
			}
			a, b := g.Fabric.Port(g.At(at), first.Tables.Row(g.At(at))[g.Fabric.LID(g.Fabric.PortBase(g.At(to)))]),
				h.Fabric.Port(h.At(at), other.Tables.Row(h.At(at))[h.Fabric.LID(h.Fabric.PortBase(h.At(to)))])
			short.MustEqual(t, g.Dir(a), h.Dir(b), "from position", at, "to", to, "direction with other GUIDs and ports")
		}
	}
}

// TestRepairParallel: all parallel links of a detour carry LIDs.
func TestRepairParallel(t *testing.T) {
	p := plot{dims: []int{5, 4}, links: []int{2, 2}, hosts: func(int) int { return 4 }}.without([]cut{{9, 0}})
	g := grow(t, p)
	xy := byXY(t, g, lft.Options{})
	r := mend(t, g, lft.Options{})
	used := make(map[fabric.PortID]int)
	for s := range fabric.NodeID(g.Fabric.NumSwitches()) {
		for lid, num := range r.Tables.Row(s) {
			if xy.Tables.Row(s)[lid] != num {
				used[g.Fabric.Port(s, num)]++
			}
		}
	}
	for p, n := range used {
		s, way := g.Fabric.Owner(p), g.Dir(p)
		for _, q := range g.Ports(s, way) {
			if m := used[q]; m < n-1 || m > n+1 {
				t.Errorf("%s carries %d LIDs of detours, %s %d", g.Fabric.PortName(p), n, g.Fabric.PortName(q), m)
			}
		}
	}
	if len(used) == 0 {
		t.Error("no detours")
	}
}

// TestRepairLimits has faults that the VLs or SLs do not suffice for.
func TestRepairLimits(t *testing.T) {
	for _, tt := range []struct {
		plot plot
		opt  lft.Options
		want string
	}{
		{plot{dims: []int{5, 5}}.without(nil, 12), lft.Options{VLs: 1},
			`with 1 data VLs not all of `},
		{plot{dims: []int{4, 5}, wrap: []bool{true, true}}.without([]cut{{0, 0}}), lft.Options{VLs: 2},
			`rings take 2 VLs and 4 SLs, which leaves none for detours; more VLs`},
		{plot{dims: []int{4, 4, 4, 4}, wrap: []bool{true, true, true, true}}.without([]cut{{0, 0}}), lft.Options{},
			`rings take 2 VLs and 16 SLs, which leaves none for detours; without the cables that close rings`},
	} {
		g := grow(t, tt.plot)
		r, err := repair(t.Context(), g, byXY(t, g, tt.opt), tt.opt)
		var domain *lft.DomainError
		if !errors.As(err, &domain) || r != nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want a DomainError that says %q", err, tt.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g := grow(t, plot{dims: []int{5, 5}}.without(nil, 12))
	if r, err := repair(ctx, g, byXY(t, g, lft.Options{}), lft.Options{}); !errors.Is(err, context.Canceled) || r != nil {
		t.Errorf("%v, want that of the context", err)
	}
}

// TestRepairRandom: any grid, any faults.
func TestRepairRandom(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := plot{seed: rapid.Uint64().Draw(rt, "seed")}
		p.dims = rapid.SliceOfN(rapid.IntRange(2, 6), 1, 3).Draw(rt, "dims")
		p.wrap = make([]bool, len(p.dims))
		p.links = make([]int, len(p.dims))
		positions := 1
		for d, size := range p.dims {
			if size > 72/positions {
				size = max(2, 72/positions)
				p.dims[d] = size
			}
			p.wrap[d] = size > 2 && rapid.IntRange(0, 3).Draw(rt, "ring") == 0
			p.links[d] = rapid.IntRange(1, 2).Draw(rt, "links")
			positions *= size
		}
		rnd := rand.New(rand.NewPCG(p.seed, 9))
		all := cuts(p.dims, p.wrap)
		cables := some(all, rapid.IntRange(0, max(1, len(all)/10)).Draw(rt, "missing cables"), rnd)
		switches := rnd.Perm(positions)[:rapid.IntRange(0, positions/10).Draw(rt, "missing switches")]
		opt := lft.Options{NoWrap: rapid.Bool().Draw(rt, "no-wrap")}
		mend(t, grow(t, p.without(cables, switches...)), opt)
	})
}

// TestWaits adds turns at random, takes some back, and compares what is
// accepted with a search for cycles.
func TestWaits(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dims := rapid.SampledFrom([][]int{{2, 2}, {2, 3}, {3, 3}, {2, 2, 2}}).Draw(rt, "dims")
		a := newArcs(grow(t, plot{dims: dims, hosts: func(int) int { return 0 }}), false)
		w := newWaits(a, 1)
		w.keepAcyclic(w.sorted())
		type turn struct {
			arc int32
			way Dir
		}
		var turns, kept, trial []turn
		for arc := range int32(len(a.head)) {
			for way := range Dir(a.dirs) {
				if a.head[arc] >= 0 && a.head[a.next(arc, way)] >= 0 && way != Dir(arc%a.dirs).Opposite() {
					turns = append(turns, turn{arc, way})
				}
			}
		}
		closes := func(added turn) bool {
			after := make(waitGraph, len(a.head))
			for _, x := range append(slices.Concat(kept, trial), added) {
				after.add(int(x.arc), int(a.next(x.arc, x.way)))
			}
			return after.cycle() >= 0
		}
		rt.Repeat(map[string]func(*rapid.T){
			"add": func(rt *rapid.T) {
				for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(turns)-1), 1, 12).Draw(rt, "turns") {
					x := turns[i]
					want := !closes(x)
					if got := w.add(x.arc, x.way, 0); got != want {
						rt.Fatalf("accepted: %t, want %t", got, want)
					}
					if want {
						trial = append(trial, x)
					}
				}
			},
			"keep": func(*rapid.T) { w.acyclic.Keep(); kept, trial = append(kept, trial...), nil },
			"undo": func(*rapid.T) {
				w.acyclic.Undo()
				// What was added twice or before stays.
				trial = nil
			},
			"": func(rt *rapid.T) {
				want := newWaits(a, 1)
				for _, x := range slices.Concat(kept, trial) {
					want.add(x.arc, x.way, 0)
				}
				if !slices.Equal(want.Bits, w.Bits) {
					rt.Fatal("other turns than were added")
				}
			},
		})
	})
}
