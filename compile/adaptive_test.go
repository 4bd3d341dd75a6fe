package compile_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/updown"
	"github.com/ibweave/ibweave/verify"
)

// widen adds choices to a routing, nil where its static tables have a credit loop.
func widen(t *testing.T, r *lft.Routing) *adaptive.Tables {
	t.Helper()
	tables, err := adaptive.Widen(context.Background(), r)
	var domain *lft.DomainError
	if errors.As(err, &domain) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return tables
}

// checkAll is what the checker says of adaptive tables.
func checkAll(t *testing.T, r *lft.Routing, tables *adaptive.Tables) *verify.Result {
	t.Helper()
	return short.Must(verify.CheckAdaptive(context.Background(), &state.State{Fabric: r.Fabric, Adaptive: tables, SL2VL: r.SL2VL, PathSLs: r.PathSLs}, verify.Options{}))(t)
}

// isProven returns true if there is a certificate for all packets, and nothing is found that is not
// found of the static tables alone.
func isProven(v, static *verify.Result) bool {
	cert := v.Certificate()
	return cert != nil && cert.Management && len(v.Undecided) == 0 && slices.EqualFunc(v.Findings, static.Findings, func(a, b verify.Finding) bool {
		return a.Rule == b.Rule && a.LID == b.LID && a.Count == b.Count
	})
}

// onlyStatic is tables without any choice.
func onlyStatic(r *lft.Routing) *adaptive.Tables {
	return &adaptive.Tables{Groups: make([][]adaptive.Group, r.Fabric.NumSwitches()), PLFTs: []*adaptive.PLFT{adaptive.NewPLFT(r.Tables)}}
}

// sameChoices returns true if two tables are equal.
func sameChoices(a, b *adaptive.Tables) bool {
	for s := range a.Groups {
		if !slices.Equal(a.PLFTs[0].Row(fabric.NodeID(s)), b.PLFTs[0].Row(fabric.NodeID(s))) ||
			!slices.EqualFunc(a.Groups[s], b.Groups[s], func(g, h adaptive.Group) bool { return g.Ports() == h.Ports() }) {
			return false
		}
	}
	return true
}

// TestWidenIsProven widens the tables of all engines on all kinds of fabrics: the checker of
// all choices proves them, and 1 CPU gives the same as many.
func TestWidenIsProven(t *testing.T) {
	fabrics := kinds(t)
	for seed := range uint64(short.Of(short.Usual(20, 7), 2)) {
		rng := rand.New(rand.NewPCG(seed, 7))
		base := []string{"fattree 3 levels", "mesh 4x4", "torus 5x4", "irregular, seed 0"}[seed%4]
		f := short.Must(gen.DropLinks(fabrics[base], 1+rng.IntN(6), seed))(t)
		fabrics[fmt.Sprintf("damaged %d of %s", seed, base)] = f
	}
	wider := map[string]int{}
	for _, name := range short.Keys(fabrics, "mesh 4x4", "hypercube 4", "fattree 2 levels", "banyan", "damaged 0 of fattree 3 levels", "damaged 1 of mesh 4x4") {
		f := short.Must(lft.AssignLIDs(fabrics[name], lft.LIDOptions{LMC: len(name) % 2}))(t)
		for i := range compile.Engines {
			e := &compile.Engines[i]
			r, err := e.Route(context.Background(), f, lft.Options{})
			if err != nil {
				continue // conformance tests say what an engine must route
			}
			what := name + ", " + e.Name()
			tables := widen(t, r)
			if tables == nil {
				if e.Guarantee().Has(lft.NoCreditLoop) {
					t.Errorf("%s: refused", what)
				}
				continue
			}
			if v := checkAll(t, r, tables); !isProven(v, checkAll(t, r, onlyStatic(r))) {
				t.Errorf("%s: not proven, %d findings, undecided %v", what, len(v.Findings), v.Undecided)
			}
			for s := range fabric.NodeID(f.NumSwitches()) {
				for lid, port := range r.Tables.Row(s) {
					if _, g := tables.PLFTs[0].At(s, fabric.LID(lid)); g >= 0 {
						wider[e.Name()]++
						if set := tables.Groups[s][g].Ports(); !set.Has(port) || set.Len() < 2 {
							t.Fatalf("%s: group %v of static port %d", what, set, port)
						}
					}
				}
			}
			was := runtime.GOMAXPROCS(1)
			again := widen(t, r)
			runtime.GOMAXPROCS(was)
			if !sameChoices(tables, again) {
				t.Errorf("%s: other tables on one CPU", what)
			}
		}
	}
	for i := range compile.Engines {
		if e := &compile.Engines[i]; wider[e.Name()] == 0 && e.Name() != "banyan" && e.Name() != "minhop" {
			t.Errorf("%s: no group at all", e.Name())
		}
	}
}

// TestWidenAsLegal compares the groups on trees with the ports that updn and fattree allow: they
// are the same, with missing cables too.
func TestWidenAsLegal(t *testing.T) {
	for _, drop := range []int{0, 5, 12} {
		f, err := gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 3})
		if err == nil && drop > 0 {
			f, err = gen.DropLinks(f, drop, 3)
		}
		if err != nil {
			t.Fatal(err)
		}
		f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{}))(t)
		for _, name := range []string{"updn", "fattree"} {
			e := short.Must(compile.EngineByName(name))(t)
			r := route(t, e, f)
			tables := widen(t, r)
			order := short.Must(updown.OrderOf(r))(t)
			list, groups := updown.NextHops(e, f, order)(), 0
			for _, host := range f.CAPorts() {
				var h lft.NextHops
				short.Check(t, list(f.Owner(f.Peer(host)), &h))
				for i, s := range h.Switches {
					got := tables.Choices(0, s, f.LID(host))
					var want adaptive.PortSet
					for _, p := range h.Ports(i) {
						want.Add(p)
					}
					if want.Len() > 1 {
						groups++
					}
					for k := range want {
						if want[k]&^got[k] != 0 || drop == 0 && want != got {
							t.Fatalf("%s without %d cables: choices %v of switch %d, allowed are %v", name, drop, got, s, want)
						}
					}
				}
			}
			if groups == 0 {
				t.Errorf("%s without %d cables: no choice is allowed", name, drop)
			}
		}
	}
}

// TestWidenIsMaximal adds to each group each port that leads nearer, one at a time: the checker
// refuses them all.
func TestWidenIsMaximal(t *testing.T) {
	refused, groups := map[string]int{}, map[string]int{}
	for seed := range uint64(short.Of(12, 2)) {
		spec := gen.IrregularSpec{Switches: 6 + int(seed%4), Degree: 3 + int(seed%2), Hosts: 12, Seed: seed}
		f := short.Must(gen.Irregular(spec))(t)
		f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{}))(t)
		for _, name := range []string{"updn", "minhop", "layered", "spam"} {
			e := short.Must(compile.EngineByName(name))(t)
			r := route(t, e, f)
			tables := widen(t, r)
			if tables == nil {
				continue
			}
			static := checkAll(t, r, onlyStatic(r))
			forest, depth := lft.NewForest(f), make([]int, f.NumSwitches())
			for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
				if len(f.HostsOn(f.Owner(f.Attachment(f.LIDPort(lid))))) == 0 {
					continue
				}
				forest.FindTree(r.Tables, lid)
				depth[forest.Order[0]] = 0
				for _, s := range forest.Order[1:] {
					depth[s] = depth[f.PeerSwitch(forest.Next[s])] + 1
				}
				for _, s := range forest.Order[1:] {
					was := tables.Choices(0, s, lid)
					if was.Len() > 1 {
						groups[name]++
					}
					ports, to := f.SwitchLinks(s)
					for i, p := range ports {
						nearer := depth[to[i]] < depth[s]
						if was.Has(f.Num(p)) && !nearer {
							t.Errorf("%s, seed %d: port %d of switch %d leads no nearer to LID %d", name, seed, f.Num(p), s, lid)
						}
						if was.Has(f.Num(p)) || !nearer {
							continue
						}
						wider := was
						wider.Add(f.Num(p))
						if isProven(checkAll(t, r, with(tables, s, lid, wider)), static) {
							t.Errorf("%s, seed %d: port %d of switch %d can be added for LID %d", name, seed, f.Num(p), s, lid)
						}
						refused[name]++
					}
				}
			}
		}
	}
	t.Log(refused, groups)
	for _, name := range []string{"updn", "layered", "spam"} {
		if refused[name] == 0 || groups[name] == 0 {
			t.Errorf("%s: %d ports refused and %d groups", name, refused[name], groups[name])
		}
	}
}

// with is tables with other choices of one entry.
func with(t *adaptive.Tables, s fabric.NodeID, lid fabric.LID, set adaptive.PortSet) *adaptive.Tables {
	u := &adaptive.Tables{Groups: slices.Clone(t.Groups), PLFTs: []*adaptive.PLFT{adaptive.NewPLFT(t.PLFTs[0].Ports)}}
	for n := range t.Groups {
		copy(u.PLFTs[0].Row(fabric.NodeID(n)), t.PLFTs[0].Row(fabric.NodeID(n)))
	}
	g := adaptive.Group{Number: len(t.Groups[s]), Subgroups: []adaptive.Subgroup{{Ports: set}}}
	u.Groups[s] = append(slices.Clone(t.Groups[s]), g)
	u.PLFTs[0].Set(s, lid, adaptive.Free, g.Number)
	return u
}
