package compile_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/fabrictest"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/routing/banyan"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

var (
	trials       = flag.Int("trials", short.Usual(100, 35), "how many random multicast groups there are on each fabric, and bits flipped; and five times as many groups for credit loops")
	topologyFile = flag.String("topology", "", "also try multicast on the fabric of this file")
)

// engine finds an engine by its name.
func engine(t testing.TB, name string) *compile.Engine {
	t.Helper()
	return short.Must(compile.EngineByName(name))(t)
}

// once is an engine that routes once, and gives copies of that routing from then on.
type once struct {
	lft.Engine
	routing *lft.Routing
}

// Route is that of the engine, the first time.
func (o *once) Route(ctx context.Context, f *fabric.Fabric, opt lft.Options) (*lft.Routing, error) {
	if o.routing == nil {
		r, err := o.Engine.Route(ctx, f, opt)
		if err != nil {
			return nil, err
		}
		o.routing = r
	}
	r := *o.routing
	return &r, nil
}

// engineOnce finds an engine by its name that routes the first fabric only, for tests of
// multicast on one fabric.
func engineOnce(t testing.TB, name string) *compile.Engine {
	t.Helper()
	e := *engine(t, name)
	e.Engine = &once{Engine: e.Engine}
	return &e
}

// onTrial is a fabric to try multicast on, with engines and the schemes that suit
// them.
type onTrial struct {
	name    string
	f       *fabric.Fabric
	engines map[string][]string
}

func fabricsOnTrial(t testing.TB) []onTrial {
	t.Helper()
	fat := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: short.Of(8, 4), Levels: 3}))(t)
	irregular := short.Must(gen.Irregular(gen.IrregularSpec{Switches: short.Of(40, 16), Degree: short.Of(5, 4), Hosts: short.Of(80, 32), Seed: 3}))(t)
	banyan := short.Must(banyan.Banyan(short.Of(4, 3), true))(t)
	grids := map[string][]string{
		"xy":      {"union", "union-row", "union-merge", "comb", ""},
		"updn":    {"updn-tree", "spam", ""},
		"layered": {"updn-tree", ""},
	}
	all := map[string][]string{
		"updn":    {"union", "union-merge", "updn-tree", "spam", "opensm", ""},
		"spam":    {"updn-tree", "spam", "union-merge"},
		"minhop":  {"union", "updn-tree", "opensm", ""},
		"layered": {"updn-tree", ""},
	}
	onTrees := maps.Clone(all)
	onTrees["fattree"] = []string{"union", "updn-tree", ""}
	mesh, torus := short.Of(8, 5), short.Of(6, 4)
	list := []onTrial{
		{fmt.Sprintf("mesh %[1]dx%[1]d", mesh), fabrictest.Grid(t, 1, false, mesh, mesh), grids},
		{fmt.Sprintf("torus %[1]dx%[1]d", torus), fabrictest.Grid(t, 1, true, torus, torus), grids},
		{"torus 5x4x3", fabrictest.Grid(t, 1, true, 5, 4, 3), map[string][]string{"xy": {"union", "comb", ""}}},
		{"fat tree", fat, onTrees},
		{"irregular", irregular, all},
		{"banyan", banyan, map[string][]string{"banyan": {"region", ""}}},
	}
	if *topologyFile != "" {
		data := short.Must(os.ReadFile(*topologyFile))(t)
		f, _ := short.Must2(topology.Parse(*topologyFile, data, topology.Options{}))(t)
		list = append(list, onTrial{"topology file", f, all})
	}
	return list
}

// randomGroup is a group of some end ports, now and then switches among them, and
// with senders that need not receive. On banyan networks senders are outputs of
// processors and receivers inputs.
func randomGroup(f *fabric.Fabric, r *rand.Rand, i int) mft.Group {
	var ends, hosts []fabric.PortID
	f.EndPorts(func(p fabric.PortID) {
		ends = append(ends, p)
		if !f.IsSwitch(f.Owner(p)) {
			hosts = append(hosts, p)
		}
	})
	some := func(list []fabric.PortID, n int) (chosen []fabric.PortID) {
		for _, k := range r.Perm(len(list))[:min(n, len(list))] {
			chosen = append(chosen, list[k])
		}
		slices.Sort(chosen)
		return chosen
	}
	if w, err := banyan.Detect(f); err == nil {
		return mft.Group{Name: fmt.Sprintf("g%d", i), Senders: some(w.Outputs, 1+r.IntN(24)), Receivers: some(w.Inputs, 1+r.IntN(24))}
	}
	from := hosts
	if r.IntN(8) == 0 {
		from = ends
	}
	g := mft.Group{Name: fmt.Sprintf("g%d", i), Receivers: some(from, 1+r.IntN(1+r.IntN(24)))}
	switch r.IntN(4) {
	case 0:
		g.Senders = some(from, 1)
	case 1:
		g.Senders = some(from, 1+r.IntN(6))
	default:
		g.Senders = g.Receivers
	}
	return g
}

// flooded is what becomes of a packet, by a checker that is too plain to be wrong:
// it follows every copy by itself.
type flooded struct {
	f      *fabric.Fabric
	masks  map[fabric.PortID]bool
	copies map[fabric.PortID]int // by end port
	path   []fabric.PortID       // that the copy at hand came in by
	loops  bool
	steps  int
}

func flood(f *fabric.Fabric, ports []fabric.PortID, sender fabric.PortID) *flooded {
	x := &flooded{f: f, masks: map[fabric.PortID]bool{}, copies: map[fabric.PortID]int{}}
	for _, p := range ports {
		x.masks[p] = true
	}
	if in := f.Peer(sender); f.IsSwitch(f.Owner(sender)) {
		x.visit(sender)
	} else if in != fabric.NoPort && f.IsSwitch(f.Owner(in)) {
		x.visit(in)
	}
	return x
}

func (x *flooded) visit(in fabric.PortID) {
	if x.steps++; x.loops || slices.Contains(x.path, in) || x.steps > 1e6 {
		x.loops = true // or as good as that
		return
	}
	x.path = append(x.path, in)
	s := x.f.Owner(in)
	for n := fabric.PortNum(0); n <= x.f.Node(s).NumPorts; n++ {
		out := x.f.Port(s, n)
		if out == in || !x.masks[out] {
			continue
		}
		switch peer := x.f.Peer(out); {
		case n == 0:
			x.copies[out]++
		case peer == fabric.NoPort:
		case x.f.IsSwitch(x.f.Owner(peer)):
			x.visit(peer)
		default:
			x.copies[peer]++
		}
	}
	x.path = x.path[:len(x.path)-1]
}

// exact returns true if each receiver but the sender got one copy, and no other port any.
func (x *flooded) exact(sender fabric.PortID, receivers []fabric.PortID) bool {
	want := map[fabric.PortID]int{}
	for _, p := range receivers {
		if p != sender {
			want[p] = 1
		}
	}
	return !x.loops && maps.Equal(want, x.copies)
}

// exactTrees returns true if flooding finds nothing wrong with trees.
func exactTrees(f *fabric.Fabric, tables *mft.Tables, trees []mft.Tree) bool {
	for i := range trees {
		for _, s := range trees[i].Senders {
			if !flood(f, tables.Ports(trees[i].MLID), s).exact(s, trees[i].Receivers) {
				return false
			}
		}
	}
	return true
}

// delivery returns true if a result has a finding about who gets packets.
func delivery(r *verify.Result) bool {
	m := r.Multicast
	return m.Missing+m.Duplicates+m.Loops+m.Stray > 0
}

// TestRandomGroups has random groups on fabrics of all kinds: every plan is exact,
// as flooding and verify say alike, and a plan with a bit flipped is found by
// verify whenever flooding sees a difference. Schemes that refuse a group say why.
func TestRandomGroups(t *testing.T) {
	for _, on := range fabricsOnTrial(t) {
		t.Run(on.name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(7, uint64(len(on.name))))
			type choice struct{ engine, scheme string }
			var choices []choice
			engines := map[string]*compile.Engine{}
			for _, e := range slices.Sorted(maps.Keys(on.engines)) {
				engines[e] = engineOnce(t, e)
				for _, s := range on.engines[e] {
					choices = append(choices, choice{e, s})
				}
			}
			lids := compile.Options{LIDs: lft.LIDOptions{Policy: lft.DenseLIDs}}
			refused, flips, seen, made := 0, 0, 0, map[choice]int{}
			for i := range short.Of(*trials, 6) {
				c := choices[i%len(choices)]
				opt := lids
				opt.Multicast = c.scheme
				opt.MFT = mft.Options{Balance: r.IntN(2) == 0}
				opt.Groups = func(f *fabric.Fabric) ([]mft.Group, error) {
					g := randomGroup(f, r, i)
					if c.scheme == "opensm" { // its senders get copies, too
						g.Senders = g.Receivers
					}
					return []mft.Group{g}, nil
				}
				res, err := compile.Run(t.Context(), on.f, engines[c.engine], opt)
				var no *mft.RefusedError
				if errors.As(err, &no) {
					if c.scheme == "" || no.Reason == "" || len(no.Suggest) == 0 {
						t.Errorf("%s, scheme %q: %v", c.engine, c.scheme, err)
					}
					refused++
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				made[c]++
				f, tables, trees := res.Routing.Fabric, res.Plan.Tables, res.Plan.Trees
				if !exactTrees(f, tables, trees) || delivery(res.Verify) {
					t.Fatalf("%s, scheme %q: flooding says %t, verify %+v", c.engine, c.scheme, exactTrees(f, tables, trees), res.Verify.Multicast)
				}
				// Schemes that keep to an order have no credit loop, the others may.
				if promised := c.engine != "minhop" && c.scheme != "opensm" && !(strings.HasPrefix(on.name, "torus") && c.engine == "xy" && c.scheme != "" && c.scheme != "comb"); promised && res.Verify.Multicast.CreditLoops > 0 {
					t.Errorf("%s, scheme %q: %d credit loops", c.engine, c.scheme, res.Verify.Multicast.CreditLoops)
				}
				if len(trees) == 0 {
					t.Fatalf("%s, scheme %q: no trees, %v", c.engine, c.scheme, res.Plan.Notes)
				}
				// Flip a bit in a mask of a switch that has one.
				tree := trees[r.IntN(len(trees))]
				old := tables.Ports(tree.MLID)
				if len(old) == 0 {
					continue
				}
				s := f.Owner(old[r.IntN(len(old))])
				p := f.Port(s, fabric.PortNum(r.IntN(int(f.Node(s).NumPorts)+1)))
				if r.IntN(2) == 0 {
					p = old[r.IntN(len(old))]
				}
				ports := slices.Clone(old)
				if at, ok := slices.BinarySearch(ports, p); ok {
					ports = slices.Delete(ports, at, at+1)
				} else {
					ports = slices.Insert(ports, at, p)
				}
				flipped := mft.NewTables(f)
				flipped.Add(tree.MLID, ports)
				flips++
				after := short.Must(verify.Check(t.Context(), &state.State{Fabric: f, Tables: res.Routing.Tables, SL2VL: res.Routing.SL2VL, PathSLs: res.Routing.PathSLs, Multicast: &mft.Plan{Tables: flipped, Trees: []mft.Tree{tree}}}, verify.Options{}))(t)
				wrong := !exactTrees(f, flipped, []mft.Tree{tree})
				if wrong {
					seen++
				}
				if wrong != delivery(after) {
					t.Errorf("%s, scheme %q, %s flipped for %#x: flooding sees a difference: %t, verify says %+v",
						c.engine, c.scheme, f.PortName(p), uint16(tree.MLID), wrong, after.Multicast)
				}
			}
			t.Logf("%d groups, %d refused, %v; %d bits flipped, %d make a difference, all of them found", *trials, refused, made, flips, seen)
			for _, c := range choices {
				if made[c] == 0 && c.scheme != "union" && !testing.Short() {
					t.Errorf("%s never made trees with scheme %q", c.engine, c.scheme)
				}
			}
			if seen < flips/short.Of(3, 6) || flips == 0 {
				t.Errorf("only %d of %d bits make a difference", seen, flips)
			}
		})
	}
}

// loopsOf compiles random sets of 50 groups and says how many have a credit loop of
// unicast and multicast together.
func loopsOf(t *testing.T, f *fabric.Fabric, engineName, scheme string, sets int) (loops int) {
	t.Helper()
	r := rand.New(rand.NewPCG(11, 12))
	e := engineOnce(t, engineName)
	for range sets {
		opt := compile.Options{LIDs: lft.LIDOptions{Policy: lft.DenseLIDs}, Multicast: scheme, Groups: func(f *fabric.Fabric) (list []mft.Group, _ error) {
			for i := range 50 {
				g := randomGroup(f, r, i)
				if scheme != "region" { // whose senders do not receive
					g.Senders = g.Receivers
				}
				list = append(list, g)
			}
			return list, nil
		}}
		res := short.Must(compile.Run(t.Context(), f, e, opt))(t)
		if delivery(res.Verify) || res.Verify.CreditLoops.Count > 0 {
			t.Fatalf("%s with %s: %+v", engineName, scheme, res.Verify.Multicast)
		}
		if res.Verify.Multicast.CreditLoops > 0 {
			loops++
		}
	}
	return loops
}

// TestUnicastAndMulticast counts the sets of 50 groups that have a credit loop of
// unicast and multicast together: none with the schemes that keep to the order of
// the routing. With OpenSM's own trees most have (docs/dev/multicast.md).
func TestUnicastAndMulticast(t *testing.T) {
	sets := short.Of(max(1, *trials/5), 4)
	on := fabricsOnTrial(t)
	mesh, fat, irregular := on[0].f, on[3].f, on[4].f
	for _, tt := range short.Part(4, []struct {
		name           string
		f              *fabric.Fabric
		engine, scheme string
		loops          bool
	}{
		{"irregular", irregular, "updn", "updn-tree", false},
		{"irregular", irregular, "updn", "opensm", true},
		{on[0].name, mesh, "xy", "comb", false},
		{on[0].name, mesh, "xy", "union-row", false},
		{on[0].name, mesh, "updn", "updn-tree", false},
		{on[0].name, mesh, "xy", "opensm", true},
		{on[0].name, mesh, "updn", "opensm", true},
		{on[0].name, mesh, "xy", "updn-tree", true},
		{on[1].name, on[1].f, "xy", "comb", false},
		{"fat tree", fat, "updn", "updn-tree", false},
		{"fat tree", fat, "updn", "spam", false},
		{"fat tree", fat, "updn", "opensm", true},
		{"irregular", irregular, "spam", "spam", false},
		{"banyan", on[5].f, "banyan", "region", false},
	}) {
		t.Run(fmt.Sprintf("%s/%s/%s", tt.name, tt.engine, tt.scheme), func(t *testing.T) {
			t.Parallel()
			loops := loopsOf(t, tt.f, tt.engine, tt.scheme, sets)
			t.Logf("%d of %d sets of 50 groups have a credit loop", loops, sets)
			if (loops > 0) != tt.loops {
				t.Errorf("%d of %d sets have a credit loop", loops, sets)
			}
		})
	}
}

// The trees, tables and verification of 10,000 groups of 64 hosts on a three-level
// fat tree of 720 switches and 3,456 hosts.
func BenchmarkMulticast10000Groups3456Hosts(b *testing.B) {
	f := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 24, Levels: 3}))(b)
	r := rand.New(rand.NewPCG(17, 18))
	hosts := f.CAPorts()
	groups := make([]mft.Group, 10_000)
	for i := range groups {
		members := make([]fabric.PortID, 0, 64)
		for _, k := range r.Perm(len(hosts))[:64] {
			members = append(members, hosts[k])
		}
		slices.Sort(members)
		groups[i] = mft.Group{Name: fmt.Sprint(i), Receivers: members, Senders: members}
	}
	opt := compile.Options{
		LIDs: lft.LIDOptions{Policy: lft.DenseLIDs}, Multicast: "updn-tree",
		Groups: func(*fabric.Fabric) ([]mft.Group, error) { return groups, nil },
	}
	var route, trees, check float64
	for b.Loop() {
		res := short.Must(compile.Run(b.Context(), f, engine(b, "updn"), opt))(b)
		if res.Verify.Verdict != verify.VerdictClean || res.Verify.Multicast.Pairs != 10_000*64*63 {
			b.Fatal(res.Verify.Verdict, res.Verify.Multicast)
		}
		route += res.Seconds.Route
		trees += res.Seconds.Multicast
		check += res.Seconds.Verify
	}
	b.ReportMetric(route/float64(b.N), "route-s")
	b.ReportMetric(trees/float64(b.N), "multicast-s")
	b.ReportMetric(check/float64(b.N), "verify-s")
}

// TestSchemesOnMesh: senders of a row share an MLID of union-row, and OpenSM's trees, which promise nothing,
// may wait in a circle with unicast.
func TestSchemesOnMesh(t *testing.T) {
	f := short.Must(mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Hosts: 1}))(t)
	all := []mft.Group{{Name: "all", Senders: f.CAPorts(), Receivers: f.CAPorts()}}
	var several []mft.Group
	for i := range 6 {
		several = append(several, randomGroup(f, rand.New(rand.NewPCG(1, uint64(i))), i))
	}
	for _, c := range []struct {
		scheme string
		groups []mft.Group
		trees  int
		loop   bool
	}{{"union-row", all, 4, false}, {"opensm", several, 6, true}} {
		opt := compile.Options{Multicast: c.scheme, Groups: func(*fabric.Fabric) ([]mft.Group, error) { return c.groups, nil }}
		r := short.Must(compile.Run(t.Context(), f, engine(t, "xy"), opt))(t)
		loop := slices.ContainsFunc(r.Verify.Findings, func(f verify.Finding) bool { return f.Rule == verify.MulticastCreditLoop })
		if len(r.Plan.Trees) != c.trees || loop != c.loop || r.Verify.Worst() == verify.Error {
			t.Errorf("%s: %d trees, %+v", c.scheme, len(r.Plan.Trees), r.Verify.Findings)
		}
	}
}
