package lft_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/updown"
	"github.com/ibweave/ibweave/verify"
)

// leafSpine is a network of leaves that all have the same spines, which may have
// hosts as well: any number of parallel links, and one of them missing here and
// there, so that some leaves are equivalent to others and some are not.
func leafSpine(t *testing.T, rnd *rand.Rand) *fabric.Fabric {
	t.Helper()
	leaves, spines, links := 2+rnd.IntN(8), 1+rnd.IntN(4), 1+rnd.IntN(3)
	var b fabric.Builder
	guid := fabric.GUID(0)
	node := func(typ fabric.NodeType, ports fabric.PortNum) int {
		guid++
		n, err := b.AddNode(fabric.Node{GUID: guid, Type: typ, NumPorts: ports})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	connect := func(x int, p fabric.PortNum, y int, q fabric.PortNum) {
		if err := b.Connect(x, p, y, q, fabric.Link{Width: 4, Speed: fabric.HDR}); err != nil {
			t.Fatal(err)
		}
	}
	var top []int
	for range spines {
		top = append(top, node(fabric.Switch, 200))
	}
	broken := rnd.IntN(3) == 0
	for i := range leaves {
		leaf := node(fabric.Switch, 200)
		for j, s := range top {
			for k := range links {
				if k > 0 && broken && rnd.IntN(8) == 0 {
					continue
				}
				connect(leaf, fabric.PortNum(1+j*links+k), s, fabric.PortNum(1+i*links+k))
			}
		}
		for h := range rnd.IntN(20) {
			connect(leaf, fabric.PortNum(100+h), node(fabric.CA, 1), 1)
		}
	}
	for _, s := range top {
		for h := range rnd.IntN(3) {
			connect(s, fabric.PortNum(100+h), node(fabric.CA, 1), 1)
		}
	}
	f, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestEquivalent: LIDs of equivalent switches that are placed together have ways, as short as
// those placed by themselves, free of credit loops where the engine says so, and
// no link carries twice as much, though these fabrics are far too small for it.
func TestEquivalent(t *testing.T) {
	lft.AlwaysJoinEquivalent(true)
	defer lft.AlwaysJoinEquivalent(false)
	rnd := rand.New(rand.NewPCG(1, 2))
	var fabrics []*fabric.Fabric
	for range short.Of(150, 60) {
		fabrics = append(fabrics, leafSpine(t, rnd))
	}
	for _, spec := range []gen.FatTreeSpec{{Radix: 6, Levels: 3}, {Radix: 8, Levels: 3, HostsPerLeaf: 3}, {Radix: 12, Levels: 2}, {Radix: 10, Levels: 3}} {
		f, err := gen.FatTree(spec)
		if err != nil {
			t.Fatal(err)
		}
		fabrics = append(fabrics, f)
		if f, err = gen.DropLinks(f, 7, 3); err != nil {
			t.Fatal(err)
		}
		fabrics = append(fabrics, f)
	}
	joined, most := 0, 0
	for i, f := range fabrics {
		f, err := lft.AssignLIDs(f, lft.LIDOptions{LMC: i % 3})
		if err != nil {
			t.Fatal(err)
		}
		jobs, n := lft.JoinedJobs(lft.NewBalancer(f, lft.EquivalentSwitches(f)))
		joined, most = joined+jobs, max(most, n)
		for _, e := range []lft.Engine{lft.Minhop{}, updown.Engine{}} {
			name := fmt.Sprintf("fabric %d, %s", i, e.Name())
			lft.AlwaysJoinEquivalent(false)
			alone, err := e.Route(context.Background(), f, lft.Options{})
			if err != nil {
				t.Fatal(name, err)
			}
			lft.AlwaysJoinEquivalent(true)
			together, err := e.Route(context.Background(), f, lft.Options{})
			if err != nil {
				t.Fatal(name, err)
			}
			a, b := verified(t, f, alone), verified(t, f, together)
			if diff := cmp.Diff(a.Unicast, b.Unicast); diff != "" || b.Unicast.Loops != 0 || b.Management.Unreachable != a.Management.Unreachable || b.Management.Loops != 0 {
				t.Fatalf("%s: pairs, each LID by itself (-) and together (+):\n%s%+v\n%+v", name, diff, a.Management, b.Management)
			}
			if e.Guarantee()&lft.NoCreditLoop != 0 && b.CreditLoops.Count != 0 {
				t.Fatalf("%s: %d credit loops", name, b.CreditLoops.Count)
			}
			if b.Balance.MaxRoutes > 2*a.Balance.MaxRoutes+8 {
				t.Errorf("%s: %d routes on the most loaded link, each by itself %d", name, b.Balance.MaxRoutes, a.Balance.MaxRoutes)
			}
		}
	}
	if joined < 100 || most < 4 {
		t.Errorf("%d jobs of equivalent switches, with up to %d destinations: these fabrics show little", joined, most)
	}
}

func verified(t *testing.T, f *fabric.Fabric, r *lft.Routing) *verify.Result {
	t.Helper()
	v, err := verify.Check(context.Background(), f, r.Tables, verify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestEquivalentPorts has equivalent switches whose cables are in other ports: switches 0 and 1 are equivalent
// for updn, with one neighbour above them and one below, and the port to go up by of one
// is that to go down by of the other.
func TestEquivalentPorts(t *testing.T) {
	lft.AlwaysJoinEquivalent(true)
	defer lft.AlwaysJoinEquivalent(false)
	p, err := gen.NewPlan(4, 24)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		p.Switch(8, fmt.Sprint("switch ", i))
	}
	above, below := 2, 3
	p.Cable(0, 1, above, 1)
	p.Cable(0, 2, below, 1)
	p.Cable(1, 1, below, 2)
	p.Cable(1, 2, above, 2)
	for i := range 24 {
		p.Cable(p.CA(1, fmt.Sprint("host ", i)), 1, i%4, 3+i/4)
	}
	f, err := p.Fabric()
	if err == nil {
		f, err = lft.AssignLIDs(f, lft.LIDOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := updown.Engine{}.Route(t.Context(), f, lft.Options{Roots: []fabric.NodeID{fabric.NodeID(above)}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Order[0] > r.Order[below] || r.Order[1] > r.Order[below] {
		t.Fatalf("order %v", r.Order)
	}
	for lid, port := range f.LIDPorts() {
		if port == fabric.NoPort || f.IsSwitch(f.Owner(port)) {
			continue
		}
		for s := range fabric.NodeID(2) {
			if f.Owner(f.Peer(port)) != 1-s {
				continue
			}
			if _, peer := r.Tables.Step(f, s, fabric.LID(lid)); f.Owner(peer) != fabric.NodeID(above) {
				t.Errorf("switch %d sends LID %d of switch %d down to switch %d, from where it goes up", s, lid, 1-s, f.Owner(peer))
			}
		}
	}
	if v := verified(t, f, r); v.CreditLoops.Count+v.Management.CreditLoops > 0 {
		t.Errorf("%d credit loops", v.CreditLoops.Count+v.Management.CreditLoops)
	}
}
