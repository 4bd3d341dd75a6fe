package whatif

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/compile/fabrictest"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
)

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
