package whatif

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/fabrictest"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
)

var topologyFile = flag.String("topology", "", "also compare each failure of a cable of this fabric with compiling it from scratch")

var allFailures = flag.Bool("all", false, "every failure in TestSteps, not a sample; radix 24 in TestSwitchFailures")

func run(t testing.TB, base *compile.Result, route compile.Options, opt Options) *Result {
	t.Helper()
	return short.Must(Run(t.Context(), base, route, opt))(t)
}

// TestAsCompiledFromScratch compares every failure with compiling what is left: who
// is joined and whether there are credit loops must be the same.
func TestAsCompiledFromScratch(t *testing.T) {
	fabrics := map[string]*fabric.Fabric{}
	add := func(name string, f *fabric.Fabric, err error) {
		short.Check(t, err)
		fabrics[name] = f
	}
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 3})
	add("fat tree", f, err)
	f, err = gen.Irregular(gen.IrregularSpec{Switches: 10, Degree: 3, Hosts: 12, Seed: 6})
	add("irregular", f, err)
	f, err = mesh.Generate(mesh.Spec{Dims: []int{5, 1}, Hosts: 2}) // every cable is a single point of failure
	add("line", f, err)
	f, err = mesh.Generate(mesh.Spec{Dims: short.Of([]int{4, 4}, []int{3, 3}), Wrap: []bool{true, true}, Hosts: 1})
	add("torus", f, err)
	f, err = pieces()
	add("pieces", f, err)
	kinds := []string{Links, Switches}
	if *topologyFile != "" {
		data := short.Must(os.ReadFile(*topologyFile))(t)
		f, _, err := topology.Parse(*topologyFile, data, topology.Options{})
		add(*topologyFile, f, err)
	}
	for name, f := range fabrics {
		for _, engine := range []string{"updn", "xy", "spam", "minhop"}[:short.Of(short.Usual(4, 3), 2)] {
			base := compile.Options{LIDs: lft.LIDOptions{LMC: lft.KeepLMC}}
			e, _ := compile.EngineByName(engine)
			r, err := compile.Run(t.Context(), f, e, base)
			var outside *lft.DomainError
			if errors.As(err, &outside) {
				continue
			}
			short.Check(t, err)
			for _, kind := range kinds {
				t.Run(fmt.Sprintf("%s/%s/%s", name, engine, kind), func(t *testing.T) {
					got := run(t, r, base, Options{Kind: kind, Depth: 1})
					if len(got.Cases) != got.Failures || got.Failures == 0 {
						t.Fatalf("%d cases of %d", len(got.Cases), got.Failures)
					}
					_, keeps := r.Engine.Engine.(lft.IncrementalEngine)
					for _, c := range got.Cases {
						scratch(t, r, base, kind, &c)
						if c.RoutedFromScratch == keeps {
							t.Errorf("%v: from scratch %v", c.Failed, c.RoutedFromScratch)
						}
					}
					if (name == "line" || name == "pieces") && engine != "xy" && got.Cases[0].Lost == 0 {
						t.Error("no single point of failure on a line")
					}
				})
			}
		}
	}
}

func scratch(t *testing.T, base *compile.Result, route compile.Options, kind string, c *Case) {
	t.Helper()
	list, _ := listFailures(base.Routing.Fabric, &Options{Kind: kind, Depth: 1})
	left := base.Routing.Fabric.Without(list[c.Number].cut...)
	r, err := compile.Run(t.Context(), left, base.Engine, route)
	var outside *lft.DomainError
	if errors.As(err, &outside) {
		short.Equal(t, c.Refused, outside.Reason, c.Failed, "refused")
		return
	}
	short.Check(t, err)
	u, before := r.Verify.Unicast, base.Verify.Unicast
	if c.Lost != u.Unreachable+u.Loops-apart(base.Routing.Fabric, left) || c.Gone != before.Pairs-u.Pairs {
		t.Errorf("%v: %d lost and %d gone; from scratch %+v", c.Failed, c.Lost, c.Gone, u)
	}
	if loops := r.Verify.CreditLoops.Count + r.Verify.Management.CreditLoops; (c.CreditLoops > 0) != (loops > 0) {
		t.Errorf("%v: %d credit loops, from scratch %d", c.Failed, c.CreditLoops, loops)
	}
	if kind == Switches && c.Switches == base.Routing.Fabric.NumSwitches() {
		t.Errorf("%v: it has entries to be written itself", c.Failed)
	}
	if n := c.Entries; c.Blocks > n || c.Switches > c.Blocks || n > 0 && c.Switches == 0 {
		t.Errorf("%v: %d entries in %d blocks of %d switches", c.Failed, c.Entries, c.Blocks, c.Switches)
	}
}

// pieces is a line of three switches, one of two, a switch alone and two CAs with a
// cable between them, one of which is also on the line.
func pieces() (*fabric.Fabric, error) {
	p, err := gen.NewPlan(6, 13)
	if err != nil {
		return nil, err
	}
	for i := range 6 {
		p.Switch(8, fmt.Sprint("switch ", i))
	}
	p.Cable(0, 1, 1, 1)
	p.Cable(1, 2, 2, 1)
	p.Cable(3, 1, 4, 1)
	p.Cable(3, 7, 3, 8) // to itself
	for h := range 10 {
		p.Cable(p.CA(1, fmt.Sprint("host ", h)), 1, h/2, 3+h%2)
	}
	two, other := p.CA(2, "two ports"), p.CA(1, "other")
	p.Cable(two, 1, 0, 8)
	p.Cable(two, 2, other, 1)
	return p.Fabric()
}

// apart counts the pairs of a port with a cable in left and a LID of another one that
// no cables of f join.
func apart(f, left *fabric.Fabric) int64 {
	part := make([]int, f.NumPorts()) // by port: one that cables lead to
	for p := range part {
		part[p] = p
	}
	for again := true; again; {
		again = false
		join := func(p, q fabric.PortID) {
			if m := min(part[p], part[q]); part[p] != m || part[q] != m {
				part[p], part[q], again = m, m, true
			}
		}
		for p := range fabric.PortID(f.NumPorts()) {
			if f.Peer(p) != fabric.NoPort {
				join(p, f.Peer(p))
			}
			if n := f.Owner(p); f.IsSwitch(n) {
				join(p, f.PortBase(n))
			}
		}
	}
	n := int64(0)
	for _, a := range left.CAPorts() {
		for _, b := range left.CAPorts() {
			if part[a] != part[b] {
				n += 1 << left.LMC(b)
			}
		}
	}
	return n
}

// TestShards: shards and workers do not change the result, which files keep.
func TestShards(t *testing.T) {
	f := fabrictest.FatTree(t, 4, 2)
	base := fabrictest.Compile(t, f, "updn", compile.Options{})
	for _, opt := range []Options{
		{Kind: Links, Depth: 1}, {Kind: Links, Depth: 2}, {Kind: Links, Depth: 2, Sample: 40, Seed: 9}, {Kind: Switches, Depth: 2},
	} {
		want := run(t, base, compile.Options{}, opt)
		opt.Workers = 5
		if d := cmp.Diff(want, run(t, base, compile.Options{}, opt)); d != "" {
			t.Fatalf("%+v:\n%s", opt, d)
		}
		var names []string
		var parts []*Result
		opt.Shards = 3
		for opt.Shard = 1; opt.Shard <= 3; opt.Shard++ {
			data := short.Must(json.Marshal(run(t, base, compile.Options{}, opt)))(t)
			part := short.Must(Read("part", data))(t)
			names = append(names, fmt.Sprint("part ", opt.Shard))
			parts = append(parts, part)
		}
		got := short.Must(Merge(names, parts))(t)
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%+v:\n%s", opt, d)
		}
		for what, wrong := range map[string][]*Result{
			"is missing":           parts[:2],
			"are both shard 1":     {parts[0], parts[1], parts[0]},
			"no shard but all":     {want, parts[0]},
			"not of the same run":  {parts[0], run(t, base, compile.Options{}, Options{Kind: Links, Depth: 1, Sample: 3, Seed: 7})},
			"are not of the same ": {parts[0], {Engine: "minhop", Shard: "2/3"}},
			`"only" is hosts and `: {func(r Result) *Result { r.Only = "hosts"; return &r }(*parts[0]), parts[1]},
		} {
			if _, err := Merge(slices.Repeat([]string{"x"}, len(wrong)), wrong); err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
}

// TestManyWorkers: none begins with tables that another one is mending.
func TestManyWorkers(t *testing.T) {
	f := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: short.Of(24, 8), Levels: 2}))(t)
	base := fabrictest.Compile(t, f, "minhop", compile.Options{})
	want := run(t, base, compile.Options{}, Options{Kind: Switches, Depth: 1, Workers: 1})
	for range short.Of(4, 1) {
		got := run(t, base, compile.Options{}, Options{Kind: Switches, Depth: 1, Workers: len(want.Cases)})
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	}
}

// TestFailures: every failure once, in samples too.
func TestFailures(t *testing.T) {
	f := fabrictest.FatTree(t, 4, 2)
	n := f.NumLinks()
	list, all := listFailures(f, &Options{Kind: Links, Depth: 2})
	if all != n*(n-1)/2 || len(list) != all {
		t.Fatalf("%d of %d failures, want %d", len(list), all, n*(n-1)/2)
	}
	seen := make(map[string]bool)
	for _, x := range list {
		if x.parts[0] == x.parts[1] || seen[fmt.Sprint(x.parts)] {
			t.Fatalf("%v twice", x.parts)
		}
		seen[fmt.Sprint(x.parts)] = true
	}
	sample, all := listFailures(f, &Options{Kind: Links, Depth: 2, Sample: 100, Seed: 2})
	numbers := make(map[int]bool)
	for _, x := range sample {
		numbers[x.number] = true
	}
	if all != 100 || len(sample) != 100 || len(numbers) != 100 {
		t.Errorf("a sample of %d with %d different ones", len(sample), len(numbers))
	}
	other, _ := listFailures(f, &Options{Kind: Links, Depth: 2, Sample: 100, Seed: 3})
	if slices.EqualFunc(sample, other, func(a, b failure) bool { return a.number == b.number }) {
		t.Error("the seed does not matter")
	}
}

// TestNoFailure: a fabric in which nothing can fail has the same file with shards and
// without.
func TestNoFailure(t *testing.T) {
	p := short.Must(gen.NewPlan(1, 0))(t)
	p.Switch(4, "alone")
	f := short.Must(p.Fabric())(t)
	base := fabrictest.Compile(t, f, "updn", compile.Options{})
	want := must(json.Marshal(run(t, base, compile.Options{}, Options{Kind: Links, Depth: 1})))
	part := must(json.Marshal(run(t, base, compile.Options{}, Options{Kind: Links, Depth: 1, Shard: 1, Shards: 1})))
	r := short.Must(Read("part", part))(t)
	all := short.Must(Merge([]string{"part"}, []*Result{r}))(t)
	if got := must(json.Marshal(all)); !bytes.Equal(got, want) {
		t.Errorf("merged %s\nwant %s", got, want)
	}
	if _, err := Read("hosts", bytes.Replace(part, []byte(`"fail":"links"`), []byte(`"fail":"hosts"`), 1)); err == nil || !strings.Contains(err.Error(), `hosts:1: "hosts" fails: want links or switches`) {
		t.Errorf("something else fails: %v", err)
	}
	if _, err := Read("both", append(part, part...)); err == nil || !strings.Contains(err.Error(), "both:1: ") {
		t.Errorf("two results in one file: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	tree := fabrictest.FatTree(f, 2, 2)
	r := run(f, fabrictest.Compile(f, tree, "updn", compile.Options{}), compile.Options{}, Options{Kind: Links, Depth: 1, Shard: 1, Shards: 2})
	data := short.Must(json.Marshal(r))(f)
	f.Add(data)
	f.Add([]byte(`{"shard":"2/1"}`))
	f.Add([]byte(`{"failures":-1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Read("fuzz", data)
		if err != nil {
			var at *fabric.ParseError
			if r != nil || !errors.As(err, &at) {
				t.Fatalf("%v with %v", r, err)
			}
			return
		}
		again := short.Must(json.Marshal(r))(t)
		if s, err := Read("again", again); err != nil || !bytes.Equal(again, must(json.Marshal(s))) {
			t.Fatal(err)
		}
	})
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

func BenchmarkLinks(b *testing.B) {
	f := fabrictest.FatTree(b, 40, 2)
	base := fabrictest.Compile(b, f, "updn", compile.Options{})
	for b.Loop() {
		run(b, base, compile.Options{}, Options{Kind: Links, Depth: 1})
	}
	b.ReportMetric(float64(f.NumLinks())*float64(b.N)/b.Elapsed().Seconds(), "failures/s")
}

// TestChosen has the failures that Only and At leave, sorts them, and puts shards of
// them together.
func TestChosen(t *testing.T) {
	f := fabrictest.FatTree(t, 6, 2)
	route := compile.Options{LIDs: lft.LIDOptions{LMC: lft.KeepLMC}}
	base := fabrictest.Compile(t, f, "updn", route)
	f = base.Routing.Fabric
	touches := func(p *Part, s fabric.NodeID) bool { return p.GUID == f.Node(s).GUID || p.To == f.Node(s).GUID }
	for _, opt := range []Options{
		{Depth: 1},
		{Depth: 1, Only: SwitchCables},
		{Depth: 1, Only: HostCables},
		{Depth: 1, At: []fabric.NodeID{3}},
		{Depth: 2, At: []fabric.NodeID{0, 7}, Only: SwitchCables},
		{Depth: 2, At: []fabric.NodeID{1}, Sample: 20, Seed: 3},
		{Depth: 2, Kind: Switches, At: []fabric.NodeID{2}},
	} {
		// What is to fail, one by one.
		list, _ := listFailures(f, &Options{Kind: opt.Kind, Depth: opt.Depth})
		want := map[string]bool{}
		for _, x := range list {
			kind, at := true, len(opt.At) == 0
			for i := range x.parts {
				p := &x.parts[i]
				kind = kind && (opt.Only == "" || p.Host == (opt.Only == HostCables))
				for _, s := range opt.At {
					at = at || touches(p, s)
				}
			}
			if kind && at {
				want[fmt.Sprint(x.parts)] = true
			}
		}
		got := run(t, base, route, opt)
		all := len(want)
		if opt.Sample > 0 {
			all = opt.Sample
		}
		if len(got.Cases) != all || got.Failures != all || all == 0 {
			t.Errorf("%+v: %d cases, want %d", opt, len(got.Cases), all)
		}
		hosts := 0
		for i := range got.Cases {
			c := &got.Cases[i]
			name := fmt.Sprint(c.Failed)
			if !want[name] {
				t.Errorf("%+v: %s fails, or twice", opt, name)
			}
			delete(want, name)
			if n := c.hosts(); c.Lost == 0 && n < hosts {
				t.Errorf("%+v: %s is behind cables of hosts", opt, name)
			} else if c.Lost == 0 {
				hosts = n
			}
			if c.Trivial(&got.Before) != (c.hosts() == len(c.Failed)) {
				t.Errorf("%s: trivial %t", name, c.Trivial(&got.Before))
			}
		}
		var files []string
		var shards []*Result
		for i := range 3 {
			opt.Shard, opt.Shards = i+1, 3
			files = append(files, fmt.Sprint(i))
			data := short.Must(json.Marshal(run(t, base, route, opt)))(t)
			r := short.Must(Read("shard", data))(t)
			shards = append(shards, r)
		}
		merged := short.Must(Merge(files, shards))(t)
		short.Diff(t, merged, got, opt, "merged")
		for order, inOrder := range map[string]func(a, b *Case) bool{
			"harm":    func(a, b *Case) bool { return a.compare(b) < 0 },
			"load":    func(a, b *Case) bool { return a.MaxRoutes >= b.MaxRoutes },
			"entries": func(a, b *Case) bool { return a.Entries >= b.Entries },
			"name":    func(a, b *Case) bool { return a.Failed[0].Name <= b.Failed[0].Name },
		} {
			merged.Sort(order)
			for i := 1; i < len(merged.Cases); i++ {
				if !inOrder(&merged.Cases[i-1], &merged.Cases[i]) {
					t.Errorf("%s: cases %d and %d", order, i-1, i)
				}
			}
		}
	}
}

// TestSteps: after any failure the first step is small, and the loads of both are near those of
// tables from scratch.
func TestSteps(t *testing.T) {
	sample := short.Of(short.Usual(60, 20), 4)
	f, err := gen.Tree(gen.TreeSpec{Ports: 64, Pods: []int{short.Of(31, 12)}, Hosts: short.Of(18, 8), Spines: short.Of(9, 4), Parallel: 2})
	if err == nil {
		f, err = gen.DropLinks(f, short.Of(20, 8), 3)
	}
	if *allFailures {
		sample = 0
	}
	if *topologyFile != "" {
		data := short.Must(os.ReadFile(*topologyFile))(t)
		f, _, err = topology.Parse(*topologyFile, data, topology.Options{Lenient: true})
	}
	short.Check(t, err)
	for _, engine := range []string{"updn", "fattree", "layered", "minhop"}[:short.Usual(4, 3)] {
		opt := compile.Options{LIDs: lft.LIDOptions{LMC: lft.KeepLMC}}
		base := fabrictest.Compile(t, f, engine, opt)
		for _, kind := range []string{Links, Switches} {
			t.Run(fmt.Sprint(engine, " ", kind), func(t *testing.T) {
				got := run(t, base, opt, Options{Kind: kind, Only: SwitchCables, Depth: 1, Sample: sample})
				var worst [3]float64 // blocks, loads
				list, _ := listFailures(base.Routing.Fabric, &Options{Kind: kind, Only: SwitchCables, Depth: 1})
				for _, c := range got.Cases {
					if c.Last == nil {
						t.Fatalf("%v: no tables were kept", c.Failed)
					}
					scratch := float64(fabrictest.Compile(t, base.Routing.Fabric.Without(list[c.Number].cut...), engine, opt).Verify.Balance.MaxRoutes)
					first, last := float64(c.MaxRoutes)/scratch, float64(c.Last.MaxRoutes)/scratch
					worst[0], worst[1], worst[2] = max(worst[0], float64(c.Blocks)), max(worst[1], first), max(worst[2], last)
					if kind == Links && c.Blocks > 64 || first > 1.5 || last > lft.DefaultRebalance {
						t.Errorf("%v: %d blocks, %.2f times the load from scratch, last %.2f", c.Failed, c.Blocks, first, last)
					}
				}
				t.Logf("%d failures: at most %.0f blocks, %.3f and %.3f times the load", len(got.Cases), worst[0], worst[1], worst[2])
			})
		}
	}
}

// TestSwitchFailures: no switch of a full tree costs much more than others, not even one next to the
// switch on top of the order of updn, whose failure takes the upward cables of core switches.
func TestSwitchFailures(t *testing.T) {
	radix := short.Of(12, 8)
	if *allFailures {
		radix = 24
	}
	f := fabrictest.FatTree(t, radix, 3)
	for _, engine := range []string{"updn", "layered", "fattree"}[:short.Of(short.Usual(3, 2), 1)] {
		got := run(t, fabrictest.Compile(t, f, engine, compile.Options{}), compile.Options{}, Options{Kind: Switches, Depth: 1})
		got.Sort("entries")
		most, median := got.Cases[0], got.Cases[len(got.Cases)/2]
		if most.Last.Entries > 3*median.Last.Entries {
			t.Errorf("%s: %v changes %d entries, the median %d", engine, most.Failed, most.Last.Entries, median.Last.Entries)
		}
		t.Logf("%s, radix %d: %v changes %d entries, the median %d", engine, radix, most.Failed, most.Last.Entries, median.Last.Entries)
	}
}

// TestLostHosts has cables and switches of trees fail whose hosts have ports on several leaves, by name, system image GUID
// or adapter. The hosts that lose all ports are those to which no packet of another host arrives, which follow each of
// the old entries from port to port, and those that a search by cables does not find.
func TestLostHosts(t *testing.T) {
	away, cutOff := 0, 0
	for seed := range uint64(short.Of(40, 8)) {
		rng := rand.New(rand.NewPCG(seed, 45))
		f := short.Must(gen.Tree(gen.TreeSpec{Ports: 40, Pods: []int{2 + rng.IntN(2)}, Rails: 2, Hosts: 2 + rng.IntN(4), Spines: 1 + rng.IntN(4)}))(t)
		if seed%4 == 3 {
			f = short.Must(twoPorts(rng.IntN(3)))(t)
		} else {
			f = short.Must(gen.Options{Names: "site"}.Apply(f))(t)
		}
		for range rng.IntN(3) {
			f = f.Without(f.Channels()[rng.IntN(len(f.Channels()))])
		}
		opt := compile.Options{LIDs: lft.LIDOptions{LMC: rng.IntN(2)}}
		e := short.Must(compile.EngineByName([]string{"updn", "fattree", "minhop"}[rng.IntN(3)]))(t)
		base, err := compile.Run(t.Context(), f, e, opt)
		if err != nil {
			continue // no tree
		}
		f = base.Routing.Fabric
		got := run(t, base, opt, Options{Kind: []string{Links, Switches}[seed%2], Depth: 1 + rng.IntN(2), Sample: 60, Seed: seed})
		for i := range got.Cases {
			c := &got.Cases[i]
			want := slowLostHosts(base.Routing, f.Without(cablesOf(t, f, c)...))
			var is LostHosts
			if c.Hosts != nil {
				is = *c.Hosts
			}
			if d := cmp.Diff(want, is); d != "" {
				t.Errorf("seed %d, %s, %s:\n%s", seed, e.Name(), c.Names(), d)
			}
			away, cutOff = away+len(is.UntilWritten), cutOff+len(is.CutOff)
		}
	}
	if away == 0 || cutOff == 0 || away == cutOff {
		t.Errorf("%d hosts away and %d cut off: too few", away, cutOff)
	}
}

// twoPorts is a tree of two levels whose hosts have one adapter with ports on two leaves, or both on one.
func twoPorts(spines int) (*fabric.Fabric, error) {
	p, err := gen.NewPlan(6+spines, 6)
	if err != nil {
		return nil, err
	}
	for s := range 6 + spines {
		p.Switch(16, "switch "+string(rune('a'+s)))
	}
	for leaf := range 4 {
		for s := range 2 + spines {
			p.Cable(leaf, 9+s, 4+s, 1+leaf)
		}
	}
	for h := range 6 {
		ca := p.CA(2, "localhost")
		p.Cable(ca, 1, h%4, 1+h/4)
		p.Cable(ca, 2, (h+h%2)%4, 3+h/4+2*(h%2))
	}
	return p.Fabric()
}

// slowLostHosts looks at every pair of a port and a port of another host.
func slowLostHosts(r *lft.Routing, g *fabric.Fabric) (x LostHosts) {
	f := r.Fabric
	walk := func(g *fabric.Fabric, src, dst fabric.PortID) bool {
		for lid := range f.LIDs(dst) {
			at := g.Peer(src)
			for hops := 0; at != fabric.NoPort && at != dst && g.IsSwitch(g.Owner(at)) && hops < 99; hops++ {
				num := r.Tables.Row(g.Owner(at))[lid]
				if num == 0 || num > g.Node(g.Owner(at)).NumPorts {
					break
				}
				at = g.Peer(g.Port(g.Owner(at), num))
			}
			if at == dst {
				return true
			}
		}
		return false
	}
	ofHost := lft.HostPorts(f)
	for _, ports := range ofHost {
		var called string
		for n := range fabric.NodeID(f.NumNodes()) {
			if n == f.Owner(ports[0]) {
				called = f.Name(n).String()
			}
		}
		if host, _, ok := hostOf(f.Name(f.Owner(ports[0])).Text); ok {
			called = host
		}
		lost := slices.ContainsFunc(f.CAPorts(), func(src fabric.PortID) bool {
			reaches := func(g *fabric.Fabric) bool {
				return slices.ContainsFunc(ports, func(dst fabric.PortID) bool { return walk(g, src, dst) })
			}
			return !slices.Contains(ports, src) && g.Peer(src) != fabric.NoPort && reaches(f) && !reaches(g)
		})
		if lost {
			x.UntilWritten = append(x.UntilWritten, called)
		}
		if !largest(f, ports) {
			continue
		}
		if !largest(g, ports) {
			x.CutOff = append(x.CutOff, called)
		}
	}
	return x
}

func hostOf(text string) (host, adapter string, ok bool) {
	for i := range text {
		if text[i] == ' ' {
			return text[:i], text[i+1:], text[:i] != "localhost"
		}
	}
	return "", "", false
}

// largest searches from each switch, and reports whether one of some ports is on a part with at least half as many ports of
// CAs as the part with most.
func largest(g *fabric.Fabric, ports []fabric.PortID) bool {
	size := func(from fabric.NodeID) (n int) {
		seen, list := map[fabric.NodeID]bool{from: true}, []fabric.NodeID{from}
		for len(list) > 0 {
			s := list[0]
			list = list[1:]
			for num := range g.Node(s).NumPorts {
				switch peer := g.Peer(g.Port(s, num+1)); {
				case peer == fabric.NoPort:
				case !g.IsSwitch(g.Owner(peer)):
					n++
				case !seen[g.Owner(peer)]:
					seen[g.Owner(peer)] = true
					list = append(list, g.Owner(peer))
				}
			}
		}
		return n
	}
	most := 0
	for s := range fabric.NodeID(g.NumSwitches()) {
		most = max(most, size(s))
	}
	return slices.ContainsFunc(ports, func(p fabric.PortID) bool {
		return g.Peer(p) != fabric.NoPort && 2*size(g.Owner(g.Peer(p))) >= most
	})
}

// TestAsCompilePrevious has cables and switches of random fabrics fail. What whatif says of the first step
// and of the last is true of the tables that compile makes of what is left from those before: entries that
// change and routes on the most loaded link, for any --rebalance, and whether the engine refuses.
func TestAsCompilePrevious(t *testing.T) {
	var kept, moved, scratch, refused int
	for seed := range uint64(short.Of(150, 30)) {
		rng := rand.New(rand.NewPCG(seed, 14))
		f := randomFabric(t, rng)
		e := short.Must(compile.EngineByName([]string{"updn", "minhop", "layered", "fattree", "spam", "xy"}[rng.IntN(6)]))(t)
		factor := math.Pow(1000, rng.Float64())
		name := fmt.Sprintf("seed %d, %s, --rebalance %.3f", seed, e.Name(), factor)
		opt := compile.Options{LIDs: lft.LIDOptions{LMC: rng.IntN(2)}, Route: lft.Options{Rebalance: factor}}
		if rng.IntN(4) == 0 && e.Name() != "xy" {
			opt.Route.Roots = []fabric.NodeID{fabric.NodeID(rng.IntN(f.NumSwitches()))}
		}
		base, err := compile.Run(t.Context(), f, e, opt)
		if outside := new(lft.DomainError); errors.As(err, &outside) {
			continue
		} else if err != nil {
			t.Fatal(name, err)
		}
		f = base.Routing.Fabric
		got := run(t, base, opt, Options{Kind: []string{Links, Switches}[rng.IntN(2)], Depth: 1 + rng.IntN(2), Sample: 6, Seed: seed})
		for i := range got.Cases {
			c := &got.Cases[i]
			left := f.Without(cablesOf(t, f, c)...)
			step := func(first bool) (s *Step, r *compile.Result) {
				again := compile.Options{LIDs: lft.LIDOptions{LMC: lft.KeepLMC}, Route: lft.Options{Rebalance: factor, FirstStep: first, Previous: base.Routing}}
				if _, keeps := e.Engine.(lft.IncrementalEngine); !keeps {
					again.Route.Roots = opt.Route.Roots
				}
				r, err := compile.Run(t.Context(), left, e, again)
				if outside := new(lft.DomainError); errors.As(err, &outside) {
					return nil, nil
				} else if err != nil {
					t.Fatal(name, err)
				}
				return &Step{Changes: compile.Changes{Entries: entriesToWrite(base.Routing, r.Routing)}, MaxRoutes: mostRoutes(r.Routing)}, r
			}
			first, r := step(true)
			last, _ := step(false)
			if (first == nil || last == nil) != (c.Refused != "") {
				t.Fatalf("%s: %v: refused %q", name, c.Failed, c.Refused)
			}
			if c.Refused != "" {
				refused++
				continue
			}
			if c.Entries != first.Entries || c.MaxRoutes != first.MaxRoutes || c.RoutedFromScratch == r.Routing.Kept {
				t.Fatalf("%s: %v: %d entries, %d routes, from scratch %v; compile --previous --first-step has %d, %d, %v",
					name, c.Failed, c.Entries, c.MaxRoutes, c.RoutedFromScratch, first.Entries, first.MaxRoutes, !r.Routing.Kept)
			}
			if c.RoutedFromScratch {
				scratch++
				continue
			}
			if c.Last.Entries != last.Entries || c.Last.MaxRoutes != last.MaxRoutes {
				t.Fatalf("%s: %v: %d entries and %d routes at last; compile --previous has %d and %d",
					name, c.Failed, c.Last.Entries, c.Last.MaxRoutes, last.Entries, last.MaxRoutes)
			}
			kept++
			if *c.Last != c.Step {
				moved++
			}
		}
	}
	t.Logf("%d failures: tables kept, and moved on in %d; %d from scratch, %d refused", kept, moved, scratch, refused)
	if kept == 0 || moved == 0 || scratch == 0 {
		t.Error("that tests too little")
	}
}

// TestVirtualPorts: LIDs of virtual ports are there before and after a failure. A cable between switches
// that fails takes no pair away, and leaves the other cables no less to carry.
func TestVirtualPorts(t *testing.T) {
	f := fabrictest.FatTree(t, 4, 2)
	f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{}))(t)
	ports := map[fabric.LID]fabric.PortID{}
	for i, p := range f.CAPorts()[:4] {
		ports[fabric.LID(100+i)] = p
	}
	f = short.Must(f.WithVirtualLIDs(ports))(t)
	for _, engine := range []string{"updn", "spam"} {
		base := fabrictest.Compile(t, f, engine, compile.Options{})
		got := run(t, base, compile.Options{}, Options{Depth: 1, Only: SwitchCables})
		for i := range got.Cases {
			if c := &got.Cases[i]; c.Gone != 0 || c.Lost != 0 || c.MaxRoutes < base.Verify.Balance.MaxRoutes {
				t.Errorf("%s: %v: %d pairs gone, %d lost, %d routes on the most loaded cable, %d before",
					engine, c.Failed, c.Gone, c.Lost, c.MaxRoutes, base.Verify.Balance.MaxRoutes)
			}
		}
		if len(got.Cases) == 0 {
			t.Error("nothing failed")
		}
	}
}

// randomFabric is a small tree, torus or irregular network, some with cables missing.
func randomFabric(t *testing.T, rng *rand.Rand) (f *fabric.Fabric) {
	t.Helper()
	var err error
	switch rng.IntN(4) {
	case 0:
		f, err = gen.Tree(gen.TreeSpec{Ports: 32, Pods: []int{3 + rng.IntN(4)}, Hosts: 1 + rng.IntN(6), Spines: 1 + rng.IntN(4), Parallel: 1 + rng.IntN(2)})
	case 1:
		f, err = gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2 + rng.IntN(2)})
	case 2:
		f, err = mesh.Generate(mesh.Spec{Dims: []int{2 + rng.IntN(3), 2 + rng.IntN(3)}, Wrap: []bool{true, true}, Hosts: 1 + rng.IntN(2)})
	default:
		f, err = gen.Irregular(gen.IrregularSpec{Switches: 6 + 2*rng.IntN(4), Degree: 3, Hosts: 8 + rng.IntN(16), Seed: rng.Uint64()})
	}
	if err == nil && rng.IntN(2) == 0 {
		if less, failed := gen.DropLinks(f, 1+rng.IntN(3), rng.Uint64()); failed == nil { // not every fabric has as many to spare
			f = less
		}
	}
	short.Check(t, err)
	return f
}

// cablesOf finds what a case says that has failed.
func cablesOf(t *testing.T, f *fabric.Fabric, c *Case) (cut []fabric.PortID) {
	t.Helper()
	for _, part := range c.Failed {
		n, ok := f.NodeByGUID(part.GUID)
		if !ok {
			t.Fatalf("no node %s", part.GUID)
		}
		if part.Port != 0 {
			cut = append(cut, f.Port(n, part.Port))
			continue
		}
		for num := range f.Node(n).NumPorts {
			cut = append(cut, f.Port(n, num+1))
		}
	}
	return cut
}

// entriesToWrite counts the entries that differ, of switches that have a cable.
func entriesToWrite(was, is *lft.Routing) (n int) {
	at := func(r *lft.Routing, s fabric.NodeID, lid int) fabric.PortNum {
		if row := r.Tables.Row(s); lid < len(row) {
			return row[lid]
		}
		return fabric.NoPath
	}
	for s := range fabric.NodeID(is.Fabric.NumSwitches()) {
		cabled := false
		for num := range is.Fabric.Node(s).NumPorts {
			cabled = cabled || is.Fabric.Peer(is.Fabric.Port(s, num+1)) != fabric.NoPort
		}
		for lid := 1; cabled && lid <= int(max(was.Fabric.MaxLID(), is.Fabric.MaxLID())); lid++ {
			if at(was, s, lid) != at(is, s, lid) {
				n++
			}
		}
	}
	return n
}

// mostRoutes sends a packet from each host to each LID of the others, and counts those that leave the ports
// between switches.
func mostRoutes(r *lft.Routing) (most int64) {
	f := r.Fabric
	routes := map[fabric.PortID]int64{}
	for _, src := range f.CAPorts() {
		for lid, dst := range f.LIDPorts() {
			if dst == fabric.NoPort || f.IsSwitch(f.Owner(dst)) || dst == src {
				continue
			}
			at := f.Peer(src)
			for hops := 0; at != fabric.NoPort && at != dst && hops < 64 && f.IsSwitch(f.Owner(at)); hops++ {
				num := r.Tables.Row(f.Owner(at))[lid]
				if num == 0 || num > f.Node(f.Owner(at)).NumPorts {
					break
				}
				out := f.Port(f.Owner(at), num)
				if at = f.Peer(out); at != fabric.NoPort && f.IsSwitch(f.Owner(at)) {
					routes[out]++
					most = max(most, routes[out])
				}
			}
		}
	}
	return most
}
