package bound_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/verify/bound"
)

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
		if err != nil {
			t.Fatal(err)
		}
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
