package quality_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/audit/quality"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/fabrictest"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
)

// compiled routes a fabric with LIDs of an LMC.
func compiled(t testing.TB, f *fabric.Fabric, engine string, lmc int) *compile.Result {
	t.Helper()
	return fabrictest.Compile(t, f, engine, compile.Options{LIDs: lft.LIDOptions{LMC: lmc}})
}

func must(t testing.TB) func(f *fabric.Fabric, err error) *fabric.Fabric {
	return func(f *fabric.Fabric, err error) *fabric.Fabric { return short.Must(f, err)(t) }
}

func measure(t testing.TB, f *fabric.Fabric, tables *lft.Tables, opt quality.Options) *quality.Result {
	t.Helper()
	return short.Must(quality.Measure(context.Background(), f, tables, opt))(t)
}

// text is a result for people.
func text(t testing.TB, r *quality.Result) string {
	t.Helper()
	b := short.Must(json.Marshal(r))(t)
	return string(b)
}

// slow walks every pair.
type slow struct {
	routes map[fabric.PortID]int64
	lost   int64
}

func walkAll(f *fabric.Fabric, tables *lft.Tables) *slow {
	r := &slow{
		routes: make(map[fabric.PortID]int64),
	}
	for i, a := range f.CAPorts() {
		for j, b := range f.CAPorts() {
			if i == j {
				continue
			}
			for k := range fabric.LID(1) << f.LMC(b) {
				lid := f.LID(b) + k
				s := f.Owner(f.Peer(a))
				var way []fabric.PortID
				arrived := false
				for range f.NumSwitches() + 1 {
					num := tables.Row(s)[lid]
					if num == 0 || num > f.Node(s).NumPorts || f.Peer(f.Port(s, num)) == fabric.NoPort {
						break
					}
					out := f.Port(s, num)
					if f.Peer(out) == b {
						arrived = true
						break
					}
					if !f.IsSwitch(f.Owner(f.Peer(out))) {
						break
					}
					way = append(way, out)
					s = f.Owner(f.Peer(out))
				}
				if !arrived {
					r.lost++
					continue
				}
				for _, c := range way {
					r.routes[c]++
				}
			}
		}
	}
	return r
}

// loads is Loads as its comments say, from a map of channels.
func loads(f *fabric.Fabric, routes map[fabric.PortID]int64) quality.Loads {
	var all []float64
	l := quality.Loads{}
	for s := range fabric.NodeID(f.NumSwitches()) {
		ports, _ := f.SwitchLinks(s)
		for _, p := range ports {
			all = append(all, float64(routes[p]))
			l.Max = max(l.Max, routes[p])
			if routes[p] == 0 {
				l.Unused++
			}
		}
	}
	l.Channels = len(all)
	sum, apart := 0.0, 0.0
	for _, a := range all {
		sum += a
		for _, b := range all {
			apart += math.Abs(a - b)
		}
	}
	if n := float64(len(all)); sum > 0 {
		l.Mean = sum / n
		l.Gini = apart / (2 * n * sum) // the definition by mean difference
	}
	return l
}

func fabrics(t testing.TB) map[string]*compile.Result {
	ok := must(t)
	return map[string]*compile.Result{
		"fat tree":  compiled(t, ok(gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 3})), "updn", 0),
		"irregular": compiled(t, ok(gen.Irregular(gen.IrregularSpec{Switches: 12, Degree: 4, Hosts: 17, Seed: 5})), "minhop", 2),
		"torus":     compiled(t, ok(mesh.Generate(mesh.Spec{Dims: []int{5, 4}, Wrap: []bool{true, true}, Hosts: 2})), "xy", 1),
	}
}

// TestAgainstWalking compares with the walk of every pair, on whole tables and on
// tables with entries changed at random.
func TestAgainstWalking(t *testing.T) {
	for name, r := range fabrics(t) {
		for _, changes := range []int{0, 5, 200} {
			t.Run(fmt.Sprintf("%s/%d", name, changes), func(t *testing.T) {
				f := r.Routing.Fabric
				tables := lft.NewTables(f.NumSwitches(), f.MaxLID())
				rng := rand.New(rand.NewPCG(1, uint64(changes)))
				for s := range fabric.NodeID(f.NumSwitches()) {
					copy(tables.Row(s), r.Routing.Tables.Row(s))
				}
				for range changes {
					s := fabric.NodeID(rng.IntN(f.NumSwitches()))
					tables.Row(s)[1+rng.IntN(int(f.MaxLID()))] = fabric.PortNum(rng.IntN(int(f.Node(s).NumPorts) + 2))
				}
				want := walkAll(f, tables)
				got := measure(t, f, tables, quality.Options{Bisections: 3, Hottest: 1 << 20})
				near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
				if d := cmp.Diff(loads(f, want.routes), got.Links, near); d != "" {
					t.Errorf("loads (-want +got):\n%s", d)
				}
				short.Equal(t, got.Lost, want.lost, "lost")
				if changes == 200 && want.lost == 0 {
					t.Error("nothing was broken")
				}
				for i, c := range got.Hottest {
					s, _ := f.SwitchByGUID(c.Switch)
					short.Equal(t, want.routes[f.Port(s, c.Port)], c.Routes, c.Name, c.Port, "routes")
					if i > 0 && got.Hottest[i-1].Routes < c.Routes {
						t.Error("not in order")
					}
				}
			})
		}
	}
}

// TestAsVerifySays compares what both count.
func TestAsVerifySays(t *testing.T) {
	for name, r := range fabrics(t) {
		got := measure(t, r.Routing.Fabric, r.Routing.Tables, quality.Options{Hottest: 1})
		if b := r.Verify.Balance; got.Links.Max != b.MaxRoutes || math.Abs(got.Links.Mean-b.MeanRoutes) > 1e-9 {
			t.Errorf("%s: %d at most and %g on average, verify says %d and %g", name, got.Links.Max, got.Links.Mean, b.MaxRoutes, b.MeanRoutes)
		}
		if got.Bisection != nil {
			t.Errorf("%s: bisections that were not asked for", name)
		}
		if none := measure(t, r.Routing.Fabric, r.Routing.Tables, quality.Options{}); len(none.Hottest) > 0 || len(got.Hottest) == 0 {
			t.Errorf("%s: %d of the most loaded channels, and %d where none were asked for", name, len(got.Hottest), len(none.Hottest))
		}
	}
}

// TestTellsRoutingsApart: a table that sends everything by one cable of two is
// seen in every figure.
func TestTellsRoutingsApart(t *testing.T) {
	r := compiled(t, fabrictest.FatTree(t, 12, 2), "fattree", 0)
	f := r.Routing.Fabric
	good := measure(t, f, r.Routing.Tables, quality.Options{Seed: 7, Bisections: 1000, Permutations: 300, Shifts: 1000})
	for s := range fabric.NodeID(f.NumSwitches()) {
		ports, _ := f.SwitchLinks(s)
		if len(ports) == int(f.Node(s).NumPorts) {
			continue // a spine
		}
		row := r.Routing.Tables.Row(s)
		for _, p := range f.CAPorts() {
			if lid := f.LID(p); f.Owner(f.Peer(p)) != s {
				row[lid] = f.Num(ports[0])
			}
		}
	}
	bad := measure(t, f, r.Routing.Tables, quality.Options{Seed: 7, Bisections: 1000, Permutations: 300, Shifts: 1000})
	short.MustEqual(t, bad.Lost, 0, "the bad tables are to be legal")
	if bad.Links.Max <= good.Links.Max || bad.Links.Gini <= good.Links.Gini ||
		bad.Bisection.High >= good.Bisection.Low || bad.AllToAll <= good.AllToAll ||
		bad.Permutations.Median <= good.Permutations.Median || bad.Permutations.P99 <= good.Permutations.P99 ||
		bad.Permutations.Bandwidth >= good.Permutations.Bandwidth || bad.Shifts.Contention <= good.Shifts.Contention ||
		bad.Shifts.Most <= good.Shifts.Most || bad.Shifts.Least >= good.Shifts.Least {
		t.Errorf("good %s\nbad %s", text(t, good), text(t, bad))
	}
}

// TestWorkers: the same on any number of CPUs.
func TestWorkers(t *testing.T) {
	for name, r := range fabrics(t) {
		opt := quality.Options{Bisections: 50, Permutations: 20, Shifts: 20, Seed: 3}
		cpus := runtime.GOMAXPROCS(1)
		one := measure(t, r.Routing.Fabric, r.Routing.Tables, opt)
		runtime.GOMAXPROCS(5)
		five := measure(t, r.Routing.Fabric, r.Routing.Tables, opt)
		runtime.GOMAXPROCS(cpus)
		if d := cmp.Diff(one, five, cmp.AllowUnexported(quality.Bisection{})); d != "" {
			t.Errorf("%s (-1 +5 CPUs):\n%s", name, d)
		}
	}
}

// TestCrossbar: a single switch is one.
func TestCrossbar(t *testing.T) {
	p := short.Must(gen.NewPlan(1, 9))(t)
	p.Switch(12, "crossbar")
	for h := range 9 {
		p.Cable(p.CA(1, fmt.Sprint("host ", h)), 1, 0, h+1)
	}
	r := compiled(t, short.Must(p.Fabric())(t), "minhop", 0)
	got := measure(t, r.Routing.Fabric, r.Routing.Tables, quality.Options{Bisections: 20, Permutations: 20, Shifts: 20})
	if b := got.Bisection; b.Mean != 1 || b.Low != 1 || b.Most != 1 || b.Routes != 4 {
		t.Errorf("%+v", b)
	}
	if p := got.Permutations; p.Most != 0 || p.Bandwidth != 1 || got.AllToAll != 0 { // no cable between switches
		t.Errorf("%+v, all-to-all %g", p, got.AllToAll)
	}
	for _, order := range [][]fabric.PortID{{}, r.Routing.Fabric.CAPorts()[:1]} {
		if none := measure(t, r.Routing.Fabric, r.Routing.Tables, quality.Options{Shifts: 2, CAOrder: order}).Shifts; none != nil {
			t.Errorf("an order of %d places: %+v", len(order), none)
		}
	}
	if s := got.Shifts; s.Most != 0 || s.Least != 1 || s.Shifts != 8 || s.Places != 9 {
		t.Errorf("%+v", s)
	}
}

// TestTwoSwitches has all bisections of two switches with a cable between them and
// two hosts each: of the 4! orders of the hosts, the two senders are on one switch
// in 8, and then both share the cable: bandwidth 1/2. Else the senders a and b are
// on different switches; in 8 orders both send across, each alone in its
// direction, and in 8 both stay on their switch. So the mean is 5/6.
//
// Of the 24 permutations 4 have both hosts of each switch send across: load 2, bandwidth 1/2.
// 4 have no host send across, and 16 one in each direction. The mean bandwidth is 11/12. The
// shift by two has all four send across.
func TestTwoSwitches(t *testing.T) {
	p := short.Must(gen.NewPlan(2, 4))(t)
	p.Switch(4, "a")
	p.Switch(4, "b")
	p.Cable(0, 1, 1, 1)
	for h := range 4 {
		p.Cable(p.CA(1, fmt.Sprint("host ", h)), 1, h/2, 2+h%2)
	}
	r := compiled(t, short.Must(p.Fabric())(t), "updn", 0)
	got := measure(t, r.Routing.Fabric, r.Routing.Tables, quality.Options{Bisections: 4000, Permutations: 4000, Shifts: 4})
	b := got.Bisection
	if b.Low > 5./6 || b.High < 5./6 || b.High-b.Low > 0.02 || b.Least != 0.5 || b.Most != 1 {
		t.Errorf("%+v, want 5/6", b)
	}
	if p := got.Permutations; p.Median != 1 || p.P99 != 2 || p.Most != 2 || math.Abs(p.Bandwidth-11./12) > 0.01 {
		t.Errorf("%+v, want 1, 2, 2 and 11/12", p)
	}
	if s := got.Shifts; s.Most != 2 || s.Worst != 2 || s.Least != 0.5 || s.Contention != 4./3 || s.Order != quality.LIDOrder {
		t.Errorf("%+v, want 2 for the shift by 2, else 1", s)
	}
}

// shiftsByWalking is Shifts as its comment says, one pair after the other.
func shiftsByWalking(f *fabric.Fabric, tables *lft.Tables, order []fabric.PortID) quality.Shifts {
	var want quality.Shifts
	fastest := 0.0
	for s := range fabric.NodeID(f.NumSwitches()) {
		ports, _ := f.SwitchLinks(s)
		for _, p := range ports {
			fastest = max(fastest, float64(f.Link(p).Mbps()))
		}
	}
	want.Places, want.Shifts, want.Least = len(order), len(order)-1, 1
	for k := 1; k < len(order); k++ {
		load := map[fabric.PortID]float64{} // in units of the time that a route takes
		var paths [][]fabric.PortID
		sent := 0.0
		for i, from := range order {
			to := order[(i+k)%len(order)]
			if from == fabric.NoPort || to == fabric.NoPort {
				continue
			}
			sent++
			path, err := tables.Path(f, from, f.LID(to), nil)
			if err != nil {
				want.Lost++
				continue
			}
			paths = append(paths, path)
			for _, c := range path {
				load[c]++
			}
		}
		most, sum := 0.0, 0.0
		for _, path := range paths {
			rate := float64(min(f.Link(path[0]).Mbps(), f.Link(path[len(path)-1]).Mbps()))
			share := rate
			for i, c := range path {
				share = min(share, float64(f.Link(c).Mbps())/load[c])
				if i > 0 && i < len(path)-1 {
					most = max(most, load[c]*fastest/float64(f.Link(c).Mbps()))
				}
			}
			sum += share / rate
		}
		want.Contention += most / float64(len(order)-1)
		if most > want.Most {
			want.Most, want.Worst = most, k
		}
		want.Bandwidth += sum / sent / float64(len(order)-1)
		want.Least = min(want.Least, sum/sent)
	}
	return want
}

// TestShiftsByWalking compares, on whole and on broken tables, with cables of several speeds.
func TestShiftsByWalking(t *testing.T) {
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
	for name, r := range fabrics(t) {
		f := short.Must(gen.Options{Speeds: []fabric.Speed{fabric.QDR, fabric.HDR, fabric.NDR}, Seed: 4}.Apply(r.Routing.Fabric))(t)
		r := compiled(t, f, r.Routing.Engine, 0)
		f = r.Routing.Fabric
		tables := r.Routing.Tables
		order := slices.Clone(f.CAPorts())
		rng := rand.New(rand.NewPCG(2, 2))
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		order[3] = fabric.NoPort
		for _, changes := range []int{0, 40} {
			for range changes {
				s := fabric.NodeID(rng.IntN(f.NumSwitches()))
				tables.Row(s)[1+rng.IntN(int(f.MaxLID()))] = fabric.PortNum(rng.IntN(int(f.Node(s).NumPorts) + 2))
			}
			want := shiftsByWalking(f, tables, order)
			want.Order = quality.EngineOrder
			got := measure(t, f, tables, quality.Options{Shifts: 1 << 20, CAOrder: order})
			if load := r.Verify.Balance.MaxRelative.Load; changes == 0 && math.Abs(got.AllToAll-load) > 1e-9 {
				t.Errorf("%s: all-to-all %g, verify says %g", name, got.AllToAll, load)
			}
			if d := cmp.Diff(want, *got.Shifts, near); d != "" {
				t.Errorf("%s, %d changes (-want +got):\n%s", name, changes, d)
			}
			short.Equal(t, (want.Lost > 0), (changes > 0), name, want.Lost, "lost")
			if some := measure(t, f, tables, quality.Options{Shifts: 5, CAOrder: order}).Shifts; some.Shifts != 5 || some.Most > want.Most {
				t.Errorf("%s, five of them: %+v", name, some)
			}
		}
	}
}

// hashed are tables of a full tree of two levels whose leaves choose spines by a hash of the LID.
func hashed(f *fabric.Fabric, tables *lft.Tables) *lft.Tables {
	tables = tables.Clone()
	for i, p := range f.CAPorts() {
		for s := range fabric.NodeID(f.NumSwitches()) {
			if ports, _ := f.SwitchLinks(s); s != f.CASwitches()[i] && len(f.HostsOn(s)) > 0 {
				hash := uint64(f.LID(p)) * 0x9e3779b97f4a7c15 >> 40
				tables.Row(s)[f.LID(p)] = f.Num(ports[hash%uint64(len(ports))])
			}
		}
	}
	return tables
}

// TestIdeal: shifts of a full tree are free of contention with fattree, and not where spines are
// chosen by a hash.
func TestIdeal(t *testing.T) {
	for _, levels := range []int{2, 3} {
		r := compiled(t, fabrictest.FatTree(t, 6, levels), "fattree", 0).Routing
		opt := quality.Options{Shifts: 1000, CAOrder: r.CAOrder}
		if s := measure(t, r.Fabric, r.Tables, opt).Shifts; s.Most != 1 || s.Contention != 1 || s.Least != 1 {
			t.Errorf("%d levels: %+v", levels, s)
		}
		if levels == 2 {
			if s := measure(t, r.Fabric, hashed(r.Fabric, r.Tables), opt).Shifts; s.Most <= 1 || s.Least >= 1 {
				t.Errorf("by a hash: %+v", s)
			}
		}
	}
}

// TestDifference: the interval of the paired difference is that of bandwidths bisection by
// bisection, and only equal bisections are paired.
func TestDifference(t *testing.T) {
	r := compiled(t, fabrictest.FatTree(t, 12, 2), "fattree", 0).Routing
	of := func(tables *lft.Tables, seed uint64) *quality.Bisection {
		return measure(t, r.Fabric, tables, quality.Options{Bisections: 2000, Seed: seed}).Bisection
	}
	good, bad := of(r.Tables, 1), of(hashed(r.Fabric, r.Tables), 1)
	d := bad.Against(good)
	if d.Verdict != quality.Worse || math.Abs(d.Mean-(bad.Mean-good.Mean)) > 1e-12 || d.Low > d.Mean || d.High < d.Mean {
		t.Errorf("%+v of %g and %g", d, bad.Mean, good.Mean)
	}
	if pair, each := d.High-d.Low, bad.High-bad.Low+good.High-good.Low; pair <= 0 || pair > each {
		t.Errorf("intervals: %g of the difference, %g of the two", pair, each)
	}
	if back := good.Against(bad); back.Verdict != quality.Better || back.Mean != -d.Mean {
		t.Errorf("%+v, the other way round %+v", d, back)
	}
	if same := good.Against(of(r.Tables, 1)); same.Verdict != quality.Alike || same.Low != 0 || same.High != 0 {
		t.Errorf("of itself: %+v", same)
	}
	if x := good.Against(of(r.Tables, 2)); x != nil {
		t.Errorf("other bisections: %+v", x)
	}
}

// TestCableBetweenCAs: LIDs that no switch leads to are lost to all but one port.
func TestCableBetweenCAs(t *testing.T) {
	p := short.Must(gen.NewPlan(1, 6))(t)
	p.Switch(4, "switch")
	for h := range 3 {
		p.Cable(p.CA(1, fmt.Sprint("host ", h)), 1, 0, h+1)
	}
	two, other := p.CA(2, "two ports"), p.CA(1, "other")
	p.Cable(two, 1, 0, 4)
	p.Cable(two, 2, other, 1)
	r := compiled(t, short.Must(p.Fabric())(t), "updn", 1)
	got := measure(t, r.Routing.Fabric, r.Routing.Tables, quality.Options{})
	if want := r.Verify.Unicast.Unreachable; got.Lost != want || want == 0 {
		t.Errorf("%d lost, verify says %d", got.Lost, want)
	}
}

func BenchmarkMeasure(b *testing.B) {
	for _, radix := range []int{16, 24} {
		r := compiled(b, must(b)(gen.FatTree(gen.FatTreeSpec{Radix: radix, Levels: 3})), "updn", 0)
		for name, opt := range map[string]quality.Options{
			"all-to-all": {}, "bisections=1000": {Bisections: 1000}, "permutations=1000": {Permutations: 1000}, "shifts=1000": {Shifts: 1000},
		} {
			b.Run(fmt.Sprintf("radix=%d/%s", radix, name), func(b *testing.B) {
				for b.Loop() {
					measure(b, r.Routing.Fabric, r.Routing.Tables, opt)
				}
			})
		}
	}
}

// TestErrors: tables of something else.
func TestErrors(t *testing.T) {
	r := fabrics(t)["torus"]
	f := r.Routing.Fabric
	if _, err := quality.Measure(t.Context(), f, lft.NewTables(3, f.MaxLID()), quality.Options{}); err == nil {
		t.Error("tables of three switches")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := quality.Measure(ctx, f, r.Routing.Tables, quality.Options{}); err == nil {
		t.Error("cancelled")
	}
}

// disjointByWalking is Disjoint as its comments say: it tries all sets of LIDs.
func disjointByWalking(f *fabric.Fabric, tables *lft.Tables) *quality.Disjoint {
	d := &quality.Disjoint{Cables: quality.Spread{Min: math.MaxInt}, Switches: quality.Spread{Min: math.MaxInt}, Possible: quality.Spread{Min: math.MaxInt}}
	for i, p := range f.CAPorts() {
		to := f.CASwitches()[i]
		lids := 1 << f.LMC(p)
		d.LIDs = max(d.LIDs, lids)
		for s := range fabric.NodeID(f.NumSwitches()) {
			if s == to || len(f.HostsOn(s)) == 0 {
				continue
			}
			d.Pairs++
			var meets [2][]uint // by LID: those that it meets
			var channels, switches []map[int]bool
			there := uint(0)
			for k := range lids {
				channels, switches = append(channels, map[int]bool{}), append(switches, map[int]bool{})
				path, err := tables.Path(f, f.HostsOn(s)[0], f.LID(p)+fabric.LID(k), nil)
				if err != nil {
					continue
				}
				there |= 1 << k
				for _, c := range path[1 : len(path)-1] {
					channels[k][int(c)] = true
					switches[k][int(f.Owner(f.Peer(c)))] = f.Owner(f.Peer(c)) != to
				}
			}
			for k := range lids {
				var m [2]uint
				for j := range lids {
					common := false
					for c := range channels[k] {
						common = common || channels[j][c]
					}
					if k != j && common {
						m[0] |= 1 << j
					}
					for c, is := range switches[k] {
						common = common || is && switches[j][c]
					}
					if k != j && common {
						m[1] |= 1 << j
					}
				}
				meets[0], meets[1] = append(meets[0], m[0]), append(meets[1], m[1])
			}
			for i, x := range []*quality.Spread{&d.Cables, &d.Switches} {
				best := 0
				for set := range uint(1) << lids {
					good := set&^there == 0
					for k := range lids {
						good = good && (set>>k&1 == 0 || set&meets[i][k] == 0)
					}
					if good {
						best = max(best, bits.OnesCount(set))
					}
				}
				x.Min, x.Mean = min(x.Min, best), x.Mean+float64(best)
			}
			n := min(lids, len(f.Neighbors(s)), len(f.Neighbors(to)))
			d.Possible.Min, d.Possible.Mean = min(d.Possible.Min, n), d.Possible.Mean+float64(n)
		}
	}
	for _, x := range []*quality.Spread{&d.Cables, &d.Switches, &d.Possible} {
		x.Mean /= float64(d.Pairs)
	}
	return d
}

func TestDisjoint(t *testing.T) {
	ok := must(t)
	parted := ok(gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2}))
	for name, c := range map[string]struct {
		f      *fabric.Fabric
		engine string
		lmc    int
	}{
		"tree":      {ok(gen.DropLinks(ok(gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 2})), 3, 1)), "updn", 2},
		"irregular": {ok(gen.Irregular(gen.IrregularSpec{Switches: 10, Degree: 5, Hosts: 12, Seed: 5})), "minhop", 3},
		"sparse":    {ok(gen.Irregular(gen.IrregularSpec{Switches: 10, Degree: 3, Hosts: 12, Seed: 6})), "minhop", 3},
		"mesh":      {ok(mesh.Generate(mesh.Spec{Dims: []int{3, 3}, Hosts: 1})), "updn", 2},
		"small":     {parted, "fattree", 1},
	} {
		r := compiled(t, c.f, c.engine, c.lmc)
		f, tables := r.Routing.Fabric, r.Routing.Tables
		rng := rand.New(rand.NewPCG(1, 1))
		for _, changes := range []int{0, 30, 300} {
			for range changes {
				s := fabric.NodeID(rng.IntN(f.NumSwitches()))
				tables.Row(s)[1+rng.IntN(int(f.MaxLID()))] = fabric.PortNum(1 + rng.IntN(int(f.Node(s).NumPorts)))
			}
			want := disjointByWalking(f, tables)
			near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
			for workers := 1; workers < 4; workers += 2 {
				cpus := runtime.GOMAXPROCS(workers)
				got, err := quality.Disjointness(t.Context(), f, tables)
				runtime.GOMAXPROCS(cpus)
				if d := cmp.Diff(want, got, near); d != "" || err != nil {
					t.Errorf("%s, %d changes, %d workers: %v (-want +got):\n%s", name, changes, workers, err, d)
				}
			}
		}
	}
	if d, err := quality.Disjointness(t.Context(), parted, lft.NewTables(parted.NumSwitches(), 1)); d != nil || err != nil {
		t.Errorf("no port has several LIDs: %+v, %v", d, err)
	}
}

// TestManyLIDs: 128 LIDs of a port between two switches with 40 cables, by turns, or all by
// the first.
func TestManyLIDs(t *testing.T) {
	p := short.Must(gen.NewPlan(2, 2))(t)
	for s := range 2 {
		p.Switch(41, fmt.Sprint("switch ", s))
	}
	for s := range 2 {
		p.Cable(p.CA(1, fmt.Sprint("host ", s)), 1, s, 41)
	}
	for c := range 40 {
		p.Cable(0, c+1, 1, c+1)
	}
	r := compiled(t, short.Must(p.Fabric())(t), "updn", 7).Routing
	for _, ports := range []int{40, 1} {
		for s := range fabric.NodeID(2) {
			to := r.Fabric.HostsOn(1 - s)[0]
			for k := range 128 {
				r.Tables.Row(s)[r.Fabric.LID(to)+fabric.LID(k)] = fabric.PortNum(1 + k%ports)
			}
		}
		d, err := quality.Disjointness(t.Context(), r.Fabric, r.Tables)
		if err != nil || d.LIDs != 128 || d.Pairs != 2 || d.Cables != (quality.Spread{Min: ports, Mean: float64(ports)}) ||
			d.Switches != d.Cables || d.Possible.Min != 40 {
			t.Errorf("%d ports: %+v, %v", ports, d, err)
		}
	}
}
