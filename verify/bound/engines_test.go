package bound_test

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/verify/bound"
)

// shapes are fabrics as they are.
func shapes(t testing.TB) map[string]*fabric.Fabric {
	t.Helper()
	list := map[string]*fabric.Fabric{}
	must := func(name string, f *fabric.Fabric, err error) {
		short.Check(t, err)
		list[name] = f
	}
	tree, err := gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 3})
	must("tree", tree, err)
	damaged, err := gen.DropLinks(tree, 12, 5)
	must("damaged tree", damaged, err)
	leaves, err := gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2})
	must("two levels", leaves, err)
	torus, err := mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Wrap: []bool{true, true}, Hosts: 2})
	must("torus", torus, err)
	irregular, err := gen.Irregular(gen.IrregularSpec{Switches: 12, Degree: 4, Hosts: 30, Seed: 9})
	must("irregular", irregular, err)
	return list
}

// No engine's tables are better than a bound, on any LMC, and the bound of legal ports is between
// that of all tables and the tables of the engine.
func TestEngines(t *testing.T) {
	shapes := shapes(t)
	for _, name := range short.Keys(shapes, "two levels", "torus", "irregular") {
		f := shapes[name]
		for _, lmc := range short.Of([]int{0, 1}, []int{1}) {
			for _, engine := range []string{"minhop", "updn", "layered", "fattree"} {
				e := short.Must(compile.EngineByName(engine))(t)
				r, err := compile.Run(t.Context(), f, e, compile.Options{LIDs: lft.LIDOptions{LMC: lmc}})
				var domain *lft.DomainError
				if errors.As(err, &domain) {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				opt := bound.Options{Rounds: 30}
				if order := r.Routing.Order; order != nil && bound.Keeps(r.Routing.Fabric, r.Routing.Tables, order) {
					opt.Order = order
				} else if engine == "updn" {
					t.Errorf("%s, LMC %d: updn's tables do not keep to the legal ports of its order", name, lmc)
				}
				b := short.Must(bound.Find(t.Context(), r.Routing.Fabric, opt))(t)
				load := new(big.Rat).SetInt64(r.Verify.Balance.MaxRoutes)
				for _, x := range b.List() {
					if err := x.Certificate.Check(r.Routing.Fabric, nil); err != nil {
						t.Errorf("%s, LMC %d, %s: %v", name, lmc, engine, err)
					}
					if x == b.Shortest && r.Verify.Unicast.NonMinimal > 0 {
						continue
					}
					if x.Exact.Cmp(load) > 0 {
						t.Errorf("%s, LMC %d, %s: %s, and the bound of %s paths is %s", name, lmc, engine, load, x.Certificate.Paths, x.Exact)
					}
				}
				if name == "two levels" && engine == "fattree" && b.Any.Exact.Cmp(load) != 0 {
					t.Errorf("%s, LMC %d, %s: %s, and the bound is %s: want the same", name, lmc, engine, load, b.Any.Exact)
				}
				if name == "torus" && engine == "updn" && b.Legal == nil {
					t.Errorf("%s, LMC %d: up*/down* paths have no bound of their own, of %s in all", name, lmc, load)
				}
			}
		}
	}
}

// Half of a torus or a mesh is cut off, and dimension order has that load.
func TestHalves(t *testing.T) {
	for _, wrap := range []bool{false, true} {
		f := short.Must(mesh.Generate(mesh.Spec{Dims: []int{8, 8}, Wrap: []bool{wrap, wrap}, Hosts: 2}))(t)
		e := short.Must(compile.EngineByName("xy"))(t)
		r := short.Must(compile.Run(t.Context(), f, e, compile.Options{}))(t)
		b := short.Must(bound.Find(t.Context(), r.Routing.Fabric, bound.Options{Rounds: -1}))(t)
		if load := big.NewRat(r.Verify.Balance.MaxRoutes, 1); b.Any.Exact.Cmp(load) != 0 {
			t.Errorf("wrapped %t: %s, and the bound is %s by %s: want the same", wrap, load, b.Any.Exact, b.Any.Words)
		}
	}
}

// The bytes do not depend on the number of CPUs.
func TestDeterminism(t *testing.T) {
	shapes := shapes(t)
	for _, name := range short.Keys(shapes, "two levels", "irregular") {
		f := shapes[name]
		var texts []string
		for _, cpus := range []int{1, 2, 7} {
			before := runtime.GOMAXPROCS(cpus)
			b, err := bound.Find(t.Context(), f, bound.Options{Rounds: 20})
			runtime.GOMAXPROCS(before)
			short.Check(t, err)
			text := ""
			for _, x := range b.List() {
				text += fmt.Sprintln(x.Words, string(x.Certificate.Append(nil)))
			}
			texts = append(texts, text)
		}
		if texts = slices.Compact(texts); len(texts) > 1 || texts[0] == "" {
			t.Errorf("%s: %d results on 1, 2 and 7 CPUs: %s", name, len(texts), texts)
		}
	}
}

// radix 24 is what the summary of a command has to be quick on.
func BenchmarkFind(b *testing.B) {
	for _, radix := range []int{24, 36} {
		f := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: radix, Levels: 3}))(b)
		b.Run(fmt.Sprint("radix", radix), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				short.Must(bound.Find(b.Context(), f, bound.Options{}))(b)
			}
		})
	}
}

// Lengths give better bounds than cuts on a random fabric; they are sought for tables that are
// more than 2 % above the cut, and for no others.
func TestNearCuts(t *testing.T) {
	f := short.Must(gen.Irregular(gen.IrregularSpec{Switches: 10, Degree: 3, Hosts: 10, Seed: 7}))(t)
	find := func(opt bound.Options) float64 {
		b := short.Must(bound.Find(t.Context(), f, opt))(t)
		return b.Any.Load
	}
	cut, best := find(bound.Options{Rounds: -1}), find(bound.Options{Rounds: 40})
	if best <= cut {
		t.Fatalf("lengths give %g, the cut %g", best, cut)
	}
	for _, rounds := range []int{0, 40} {
		near, far := find(bound.Options{Rounds: rounds, Load: 1.019 * cut}), find(bound.Options{Rounds: rounds, Load: 1.021 * cut})
		if near != cut || far <= cut {
			t.Errorf("%d rounds: %g for tables within 2 %% of the cut and %g for others, the cut is %g", rounds, near, far, cut)
		}
	}
}

// TestDemand: no tables have less than the bound under a random demand, its certificate is proven again, and
// with a flow more it is refused.
func TestDemand(t *testing.T) {
	met := 0
	for seed := range uint64(short.Of(100, 30)) {
		random := rand.New(rand.NewPCG(seed, 3))
		f, err := gen.Irregular(gen.IrregularSpec{Switches: 4 + 2*random.IntN(5), Degree: 3, Hosts: 10 + random.IntN(12), Seed: seed})
		if random.IntN(2) == 0 {
			f, err = gen.Tree(gen.TreeSpec{Ports: 24, Pods: []int{5}, Hosts: 6, Spines: 2, Parallel: 1 + random.IntN(2)})
		}
		if err == nil && random.IntN(2) == 0 {
			f, err = gen.Options{Speeds: []fabric.Speed{fabric.HDR, fabric.EDR}, Fill: 100, Seed: seed}.Apply(f)
		}
		if err == nil {
			f, err = lft.AssignLIDs(f, lft.LIDOptions{LMC: random.IntN(2)})
		}
		short.Check(t, err)
		d := &lft.Demand{To: make([][]lft.Flow, int(f.MaxLID())+1), Background: int64(random.IntN(3)), Bytes: 1e6}
		for _, p := range f.CAPorts() {
			for lid := range f.LIDs(p) {
				for _, q := range f.CAPorts() {
					if s := f.PeerSwitch(q); s != f.PeerSwitch(p) && random.IntN(4) == 0 {
						d.To[lid] = []lft.Flow{{From: s, Amount: 1 + int64(random.IntN(1000))}}
					}
				}
			}
		}
		b := bound.FindUnder(f, d)
		r, err := lft.Minhop{}.Route(t.Context(), f, lft.Options{})
		if err != nil || b == nil {
			t.Fatal(b, err)
		}
		times := short.Must(bound.TimesUnder(t.Context(), f, r.Tables, d))(t)
		least := bound.Seconds(f, d, b.Load)
		if least > times.Switches*(1+1e-9) {
			t.Errorf("seed %d: the bound is %v, and tables have %v", seed, least, times.Switches)
		}
		if least > 0.8*times.Switches {
			met++
		}
		again := short.Must(bound.Read("b", b.Certificate.Append(nil)))(t)
		if err := again[0].Check(f, d); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		if err := again[0].Check(f, nil); err == nil || !strings.Contains(err.Error(), "for a demand") {
			t.Errorf("seed %d: proven without a demand: %v", seed, err)
		}
		again[0].Bound.Mul(again[0].Bound, again[0].Bound).Add(again[0].Bound, b.Exact)
		if err := again[0].Check(f, d); err == nil {
			t.Errorf("seed %d: more is proven", seed)
		}
		d.Background++
		if err := b.Certificate.Check(f, d); err == nil || !strings.Contains(err.Error(), "another demand") {
			t.Errorf("seed %d: proven for another demand: %v", seed, err)
		}
	}
	if met == 0 {
		t.Error("no tables come near the bound")
	}
}
