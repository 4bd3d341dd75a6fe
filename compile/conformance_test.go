package compile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
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
	"github.com/ibweave/ibweave/sminterface/ibsim/ibsimtest"
	"github.com/ibweave/ibweave/sminterface/rehearse"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

func TestMain(m *testing.M) {
	short.UseMemory()
	m.Run()
}

// kinds has one or more fabrics of every kind that ibweave gen makes.
func kinds(t testing.TB) map[string]*fabric.Fabric {
	t.Helper()
	list := make(map[string]*fabric.Fabric)
	add := func(name string) func(*fabric.Fabric, error) {
		return func(f *fabric.Fabric, err error) {
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			list[name] = f
		}
	}
	grid := func(hosts int, wrap bool, dims ...int) (*fabric.Fabric, error) {
		w := make([]bool, len(dims))
		for i := range w {
			w[i] = wrap
		}
		return mesh.Generate(mesh.Spec{Dims: dims, Wrap: w, Hosts: hosts})
	}
	add("mesh 4x4")(grid(1, false, 4, 4))
	add("mesh 3x4x2, 2 hosts")(grid(2, false, 3, 4, 2))
	add("mesh 1x5")(grid(1, false, 1, 5))
	add("torus 5x4")(grid(1, true, 5, 4))
	add("torus 3x3x3")(grid(1, true, 3, 3, 3))
	add("hypercube 4")(mesh.Hypercube(4, 1))
	add("fattree 2 levels")(gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 2}))
	add("fattree 3 levels")(gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 3}))
	add("shufflenet")(gen.Shufflenet(2, 3))
	add("myrinet4")(gen.Myrinet4())
	add("banyan")(banyan.Banyan(3, false))
	add("banyan, wrap-around")(banyan.Banyan(3, true))
	for seed := range uint64(3) {
		add(fmt.Sprint("lattice, seed ", seed))(gen.Lattice(20, seed))
		add(fmt.Sprint("irregular, seed ", seed))(gen.Irregular(gen.IrregularSpec{Switches: 18, Degree: 4, Hosts: 40, Seed: seed}))
	}
	add("fattree 3 levels, links missing")(gen.DropLinks(list["fattree 3 levels"], 12, 1))
	add("torus 5x4, 2 links missing")(gen.DropLinks(list["torus 5x4"], 2, 1))
	add("remains of a torus 5x4")(gen.DropLinks(list["torus 5x4"], 12, 1))
	for _, name := range []string{"mesh 3x4x2, 2 hosts", "torus 5x4", "hypercube 4", "fattree 2 levels", "fattree 3 levels, links missing", "banyan", "lattice, seed 0", "irregular, seed 1"} {
		add(name + ", aggregation nodes")(gen.Options{AggregationNodes: true}.Apply(list[name]))
	}
	return list
}

func route(t testing.TB, e lft.Engine, f *fabric.Fabric) *lft.Routing {
	t.Helper()
	return short.Must(e.Route(context.Background(), f, lft.Options{}))(t)
}

// inDomain returns true if an engine must route the kind of fabric of that name.
// myrinet4 is a ring of four switches.
func inDomain(e lft.Engine, kind string) bool {
	switch e.Name() {
	case "xy":
		return kind == "myrinet4" || strings.HasPrefix(kind, "mesh") || strings.HasPrefix(kind, "torus") || strings.HasPrefix(kind, "hypercube")
	case "negative-first", "west-first", "north-last":
		return strings.HasPrefix(kind, "mesh") || strings.HasPrefix(kind, "hypercube")
	case "fattree":
		return strings.HasPrefix(kind, "fattree") || strings.HasPrefix(kind, "banyan") // trees by levels
	case "banyan":
		return strings.HasPrefix(kind, "banyan")
	}
	return true
}

// refuses fails unless the engine says that the fabric is none of its own.
func refuses(t *testing.T, e lft.Engine, f *fabric.Fabric) {
	t.Helper()
	r, err := e.Route(context.Background(), f, lft.Options{})
	var domain *lft.DomainError
	if r != nil || !errors.As(err, &domain) || domain.Engine != e.Name() || domain.Reason == "" {
		t.Errorf("routing %v, error %v; want no routing, and why", r != nil, err)
	}
}

// rows is all that a routing consists of.
func rows(r *lft.Routing) []byte {
	var b []byte
	for s := range fabric.NodeID(r.Tables.Switches()) {
		for _, p := range r.Tables.Row(s) {
			b = append(b, byte(p))
		}
		if r.PathSLs != nil {
			for _, sl := range r.PathSLs.Row(s) {
				b = append(b, byte(sl))
			}
		}
	}
	if r.SL2VL != nil {
		for in, out := range r.SL2VL.PortPairs() {
			for _, vl := range r.SL2VL.At(in, out) {
				b = append(b, byte(vl))
			}
		}
	}
	return b
}

// shuffled is the same fabric, read from text whose stanzas come in another
// order.
func shuffled(t testing.TB, f *fabric.Fabric, seed uint64) *fabric.Fabric {
	t.Helper()
	stanzas := bytes.SplitAfter(topology.Append(nil, f), []byte("\n\n"))
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(stanzas), func(i, j int) {
		stanzas[i], stanzas[j] = stanzas[j], stanzas[i]
	})
	g, problems, err := topology.Parse("shuffled", bytes.Join(stanzas, nil), topology.Options{})
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	return g
}

// TestConformance holds every engine to what it promises, on every kind of
// fabric: for all pairs, management traffic included, and whatever the number
// of CPUs and the order of the input.
func TestConformance(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	kinds := kinds(t)
	for _, name := range short.Keys(kinds, "mesh 4x4", "torus 5x4", "fattree 2 levels", "banyan", "irregular, seed 0") {
		bare := kinds[name]
		for _, lmc := range short.Of(short.Usual([]int{0, 1}, []int{1}), []int{1}) {
			f := short.Must(lft.AssignLIDs(bare, lft.LIDOptions{LMC: lmc}))(t)
			for i := range compile.Engines {
				e := compile.Engines[i]
				t.Run(fmt.Sprintf("%s/%s/LMC %d", e.Name(), name, lmc), func(t *testing.T) {
					if !inDomain(e, name) {
						refuses(t, e, f)
						return
					}
					runtime.GOMAXPROCS(1)
					r := route(t, e, f)
					v := short.Must(verify.Check(context.Background(), &state.State{Fabric: f, Tables: r.Tables, SL2VL: r.SL2VL, PathSLs: r.PathSLs}, verify.Options{}))(t)
					u, m, g := v.Unicast, v.Management, e.Guarantee()
					if g.Has(lft.Reachable) && u.Unreachable+u.Loops+m.Unreachable+m.Loops != 0 {
						t.Errorf("unicast: %d unreachable, %d loops; management: %d unreachable, %d loops; promised: reachable",
							u.Unreachable, u.Loops, m.Unreachable, m.Loops)
					}
					if g.Has(lft.Minimal) && u.NonMinimal != 0 {
						t.Errorf("%d pairs are longer than a shortest path; promised: minimal", u.NonMinimal)
					}
					if g.Has(lft.NoCreditLoop) && (v.CreditLoops.Count != 0 || m.CreditLoops != 0) {
						t.Errorf("credit loops: %d, with management %d; promised: none", v.CreditLoops.Count, m.CreditLoops)
					}
					runtime.GOMAXPROCS(5)
					short.EqualList(t, rows(route(t, e, shuffled(t, f, uint64(i)))), rows(r), "other tables from text in another order, with 5 CPUs")
				})
			}
		}
	}
}

// everyHost is a group of all hosts.
func everyHost(f *fabric.Fabric) ([]mft.Group, error) {
	return []mft.Group{{Name: "all", Receivers: f.CAPorts(), Senders: f.CAPorts()[:1]}}, nil
}

// TestEnded: an engine whose context ends, whenever that is, returns the error and no tables.
func TestEnded(t *testing.T) {
	f := map[bool]*fabric.Fabric{}
	for wide, hosts := range map[bool]int{false: 1, true: 2} {
		f[wide] = fabrictest.WithLIDs(t, fabrictest.Grid(t, hosts, wide, 4, 4), 0)
	}
	tree := fabrictest.WithLIDs(t, short.Must(gen.DropLinks(fabrictest.FatTree(t, 6, 3), 3, 1))(t), 0)
	network := fabrictest.WithLIDs(t, short.Must(banyan.Banyan(3, true))(t), 0)
	for i := range compile.Engines {
		e := compile.Engines[i]
		for _, f := range []*fabric.Fabric{f[false], f[true], tree, network} {
			run := func(ctx context.Context, opt lft.Options) (*compile.Result, error) {
				return compile.Run(ctx, f, &compile.Engines[i], compile.Options{Route: opt, LIDs: lft.LIDOptions{LMC: lft.KeepLMC}, Groups: everyHost})
			}
			first, err := run(t.Context(), lft.Options{})
			if err != nil {
				continue // not for this engine
			}
			for _, opt := range []lft.Options{{}, {Previous: first.Routing}} {
				for n := int32(0); ; n += 1 + n/short.Usual[int32](8, 2) {
					ctx := &short.Ending{Context: t.Context()}
					ctx.Left.Store(n)
					r, err := run(ctx, opt)
					if err == nil {
						break
					}
					if r != nil || !errors.Is(err, context.Canceled) {
						t.Fatalf("%s, %d questions: tables %v, %v", e.Name(), n, r != nil, err)
					}
				}
			}
		}
	}
}

// TestConformanceInOpenSM puts the tables of every engine into the real OpenSM
// on the real ibsim, for every kind of fabric, of which make test has every engine route a third, and
// compares every entry that the switches then have.
func TestConformanceInOpenSM(t *testing.T) {
	short.NeedPrograms(t)
	kinds := kinds(t)
	names := short.Keys(kinds, "mesh 4x4")
	slices.Sort(names)
	for k, name := range names {
		bare := kinds[name]
		f := short.Must(lft.AssignLIDs(bare, lft.LIDOptions{}))(t)
		for i := range compile.Engines {
			if (k+i)%short.Usual(1, 3) != 0 {
				continue
			}
			e := compile.Engines[i]
			t.Run(e.Name()+"/"+name, func(t *testing.T) {
				if !inDomain(e, name) {
					refuses(t, e, f)
					return
				}
				r := short.Must(rehearse.Run(context.Background(), f, route(t, e, f).Tables, rehearse.Options{}))(t)
				if r.EqualSwitches != f.NumSwitches() || r.Differences != 0 {
					t.Errorf("%d of %d switches equal, %d entries differ: %v", r.EqualSwitches, f.NumSwitches(), r.Differences, r.Samples)
				}
			})
		}
	}
}

// TestAgainstOpenSM routes every kind of fabric with OpenSM's own minhop as
// well: ours must have the same hops, and no link more loaded than OpenSM's
// most loaded one.
func TestAgainstOpenSM(t *testing.T) {
	ctx := context.Background()
	kinds := kinds(t)
	for _, name := range short.Keys(kinds, "torus 5x4", "lattice, seed 1") {
		bare := kinds[name]
		t.Run(name, func(t *testing.T) {
			f := short.Must(lft.AssignLIDs(bare, lft.LIDOptions{}))(t)
			theirs, _ := ibsimtest.Route(t, f, "minhop")
			check := func(tables *lft.Tables) *verify.Result {
				return short.Must(verify.Check(ctx, &state.State{Fabric: f, Tables: tables}, verify.Options{}))(t)
			}
			a, b := check(theirs), check(route(t, lft.Minhop{}, f).Tables)
			short.EqualList(t, a.Unicast.HopHistogram, b.Unicast.HopHistogram, "pairs by hops: OpenSM", "ours")
			if a.Balance.MaxRoutes < b.Balance.MaxRoutes {
				t.Errorf("routes on the most loaded link: OpenSM %d, ours %d", a.Balance.MaxRoutes, b.Balance.MaxRoutes)
			}
		})
	}
}
