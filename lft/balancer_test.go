package lft_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/ibweave/ibweave/audit/quality"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// routed gives the fabric LIDs, routes it with minhop and verifies the tables.
func routed(t testing.TB, f *fabric.Fabric, err error) (*fabric.Fabric, *lft.Tables, *verify.Result) {
	t.Helper()
	if err == nil {
		f, err = lft.AssignLIDs(f, lft.LIDOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	r := short.Must(lft.Minhop{}.Route(context.Background(), f, lft.Options{}))(t)
	v := short.Must(verify.Check(context.Background(), &state.State{Fabric: f, Tables: r.Tables}, verify.Options{}))(t)
	return f, r.Tables, v
}

// TestSpreadFatTree holds the most loaded link of fat trees against what no
// routing can beat: the routes into a leaf divided by its links. The larger
// ones are beyond what is placed again.
func TestSpreadFatTree(t *testing.T) {
	for _, test := range short.Part(3, []struct {
		name    string
		spec    gen.FatTreeSpec
		drop    int
		percent int64 // of the bound, the most allowed
	}{
		{"radix 12", gen.FatTreeSpec{Radix: 12, Levels: 3}, 0, 105},
		{"radix 12, 30 links missing", gen.FatTreeSpec{Radix: 12, Levels: 3}, 30, 135},
		{"radix 16", gen.FatTreeSpec{Radix: 16, Levels: 3}, 0, 110},
		{"radix 16, 11 hosts a leaf", gen.FatTreeSpec{Radix: 16, Levels: 3, HostsPerLeaf: 11}, 0, 125},
		{"radix 20", gen.FatTreeSpec{Radix: 20, Levels: 3}, 0, 130},
		{"radix 20, 100 links missing", gen.FatTreeSpec{Radix: 20, Levels: 3}, 100, 125},
	}) {
		t.Run(test.name, func(t *testing.T) {
			f, err := gen.FatTree(test.spec)
			if err == nil && test.drop > 0 {
				f, err = gen.DropLinks(f, test.drop, 1)
			}
			f, _, v := routed(t, f, err)
			hosts := make([]int64, f.NumSwitches())
			for _, s := range f.CASwitches() {
				hosts[s]++
			}
			bound := int64(0)
			for s, h := range hosts {
				ports, _ := f.SwitchLinks(fabric.NodeID(s))
				n := int64(len(ports))
				bound = max(bound, (h*(int64(len(f.CAPorts()))-h)+n-1)/n)
			}
			if got := v.Balance.MaxRoutes; got < bound || got*100 > bound*test.percent {
				t.Errorf("%d routes on the most loaded link, want %d to %d", got, bound, bound*test.percent/100)
			}
		})
	}
}

// TestMerge: routes to one LID that meet early leave more bandwidth to pairs of ports than
// routes that take a next hop at random.
func TestMerge(t *testing.T) {
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 12, Levels: 3})
	f, tables, _ := routed(t, f, err)
	random := tables.Clone()
	rng := rand.New(rand.NewPCG(1, 2))
	list := lft.ShortestNextHops(f)
	for _, p := range f.CAPorts() {
		var h lft.NextHops
		short.Check(t, list(f.PeerSwitch(p), &h))
		for i, s := range h.Switches {
			ports := h.Ports(i)
			random.Row(s)[f.LID(p)] = ports[rng.IntN(len(ports))]
		}
	}
	bandwidth := func(tables *lft.Tables) float64 {
		q := short.Must(quality.Measure(context.Background(), f, tables, quality.Options{Bisections: 100}))(t)
		return q.Bisection.Mean
	}
	if ours, theirs := bandwidth(tables), bandwidth(random); ours < 1.05*theirs {
		t.Errorf("bisection bandwidth %.3f; at random it is %.3f", ours, theirs)
	}
}

// TestSeparate: on a tree without 5 % of its cables few routes of a shift contend. With OpenSM's
// dfsssp 3.58 are on the busiest channel; a mean of 3.8 was what small loads alone gave.
func TestSeparate(t *testing.T) {
	tree := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 12, Levels: 3}))(t)
	samples := short.Of(4, 1)
	sum := 0.0
	for seed := range uint64(samples) {
		f, err := gen.DropLinks(tree, 43, seed+1)
		f, tables, _ := routed(t, f, err)
		q := short.Must(quality.Measure(context.Background(), f, tables, quality.Options{Shifts: 500}))(t)
		sum += q.Shifts.Contention
	}
	if mean := sum / float64(samples); mean > 3.55 {
		t.Errorf("%.2f routes on the busiest channel of a shift, want 3.55 or fewer", mean)
	}
}

// TestSpreadCapacity: links of different speed between two switches carry load
// in proportion, whatever the speed of hosts.
func TestSpreadCapacity(t *testing.T) {
	var b fabric.Builder
	node := func(typ fabric.NodeType, guid fabric.GUID, ports fabric.PortNum) int {
		return short.Must(b.AddNode(fabric.Node{GUID: guid, Type: typ, NumPorts: ports}))(t)
	}
	connect := func(a int, p fabric.PortNum, c int, q fabric.PortNum, speed fabric.Speed) {
		short.Check(t, b.Connect(a, p, c, q, fabric.Link{Width: 4, Speed: speed}))
	}
	const hosts = 40
	x, y := node(fabric.Switch, 1, 64), node(fabric.Switch, 2, 64)
	for i := range fabric.PortNum(hosts) {
		connect(x, 10+i, node(fabric.CA, 0x100+2*fabric.GUID(i), 1), 1, fabric.XDR)
		connect(y, 10+i, node(fabric.CA, 0x200+2*fabric.GUID(i), 1), 1, fabric.HDR)
	}
	connect(x, 1, y, 1, fabric.XDR) // 200 of 500 gigabits a second and lane
	connect(x, 2, y, 2, fabric.XDR)
	connect(x, 3, y, 3, fabric.HDR) // 50
	connect(x, 4, y, 4, fabric.HDR)
	f, err := b.Build()
	f, tables, _ := routed(t, f, err)
	for s := range fabric.NodeID(2) {
		var lids [5]int
		for _, p := range f.CAPorts() {
			if port := tables.Row(s)[f.LID(p)]; port < 5 {
				lids[port]++
			}
		}
		if want := [5]int{0, 16, 16, 4, 4}; lids != want {
			t.Errorf("switch %d: LIDs by port %v, want %v", s, lids, want)
		}
	}
	units := lft.LoadUnits(f)
	for _, p := range f.CAPorts() {
		if got := units[f.Peer(p)]; got != 64 {
			t.Fatalf("%d load units on the port of a host", got)
		}
	}
}

// TestSpreadSwitchLIDs: LIDs of switches carry no load, but divide over equal
// ports as well.
func TestSpreadSwitchLIDs(t *testing.T) {
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 16, Levels: 2})
	f, tables, _ := routed(t, f, err)
	var lids [17]int
	for s := range fabric.NodeID(f.NumSwitches()) {
		lids[tables.Row(0)[f.LID(f.Port(s, 0))]]++
	}
	for port := 9; port <= 16; port++ {
		// A spine at the end of each of the eight links, and 15 leaves.
		if n := lids[port]; n < 2 || n > 4 {
			t.Errorf("%d switches through port %d, want 2 to 4: %v", n, port, lids)
		}
	}
}

// TestMinhopTooLong: a distance that a HopMatrix cannot tell.
func TestMinhopTooLong(t *testing.T) {
	f := short.Must(mesh.Generate(mesh.Spec{Dims: []int{300}, Hosts: 1}))(t)
	_, err := lft.Minhop{}.Route(context.Background(), f, lft.Options{})
	want := "minhop cannot route this fabric: two switches are 254 links or more apart"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestRouteCancelled: no tables once the context has ended.
func TestRouteCancelled(t *testing.T) {
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 12, Levels: 3})
	f, _, _ = routed(t, f, err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if r, err := (lft.Minhop{}).Route(ctx, f, lft.Options{}); err != context.Canceled || r != nil {
		t.Errorf("%v, %v; want nil and %v", r, err, context.Canceled)
	}
}

// TestPrefer: after cables are lost, entries change only where the port leads nowhere, or
// where the greatest load demands it; all pairs are delivered.
func TestPrefer(t *testing.T) {
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 12, Levels: 3})
	f, tables, _ := routed(t, f, err)
	for seed := range short.Of(short.Usual[uint64](20, 7), 2) {
		g := short.Must(gen.DropLinks(f, 3, seed))(t)
		kept := short.Must(lft.Prefer(context.Background(), g, tables, true, func() lft.ListNextHops { return lft.ShortestNextHops(g) }))(t)
		v := short.Must(verify.Check(context.Background(), &state.State{Fabric: g, Tables: kept}, verify.Options{Complete: true}))(t)
		changed, broken, entries := 0, 0, 0
		for s := range fabric.NodeID(g.NumSwitches()) {
			row, old := kept.Row(s), tables.Row(s)
			entries += len(row)
			for lid := range row {
				if row[lid] != old[lid] {
					changed++
				}
				if out := g.Port(s, old[lid]); old[lid] != 0 && old[lid] != fabric.NoPath && g.Peer(out) == fabric.NoPort {
					broken++
				}
			}
		}
		if v.Unicast.Unreachable+v.Unicast.Loops > 0 || changed < broken || 20*changed > entries || v.Balance.MaxRoutes > 600 {
			t.Errorf("seed %d: %d entries changed, %d lost their cable; %d routes on the busiest link; %+v", seed, changed, broken, v.Balance.MaxRoutes, v.Unicast)
		}
	}
}

// TestSeveralLIDs: the four LIDs of each host take the four spines of a tree, and the first
// LIDs alone leave as much bandwidth as those of a fabric with one LID a host.
func TestSeveralLIDs(t *testing.T) {
	bandwidth := make([]float64, 2)
	for i, lmc := range []int{0, 2} {
		f := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2}))(t)
		f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{LMC: lmc}))(t)
		r := short.Must(lft.Minhop{}.Route(context.Background(), f, lft.Options{}))(t)
		q := short.Must(quality.Measure(context.Background(), f, r.Tables, quality.Options{Bisections: 100}))(t)
		bandwidth[i] = q.Bisection.Mean
		if d := q.Disjoint; lmc == 2 && (d == nil || d.Switches.Min != 4) {
			t.Errorf("paths by different switches: %+v, want 4 for all", d)
		}
	}
	if bandwidth[1] < 0.99*bandwidth[0] {
		t.Errorf("bisection bandwidth %.3f with four LIDs a host, %.3f with one", bandwidth[1], bandwidth[0])
	}
}

// TestNoIdleChannels: hardly a channel of damaged trees is idle that the tables could use.
func TestNoIdleChannels(t *testing.T) {
	tree := short.Must(gen.Tree(gen.TreeSpec{Ports: 16, Pods: []int{6}, Hosts: 5, Spines: 3, Parallel: 2}))(t)
	trees, idle := short.Of(uint64(200), 50), 0
	for seed := range trees {
		f, err := gen.DropLinks(tree, 4, seed)
		_, _, v := routed(t, f, err)
		for _, c := range v.Balance.Idle {
			if c.Reason == verify.IdleUnused {
				idle++
			}
		}
	}
	if idle > int(trees)/50 {
		t.Errorf("%d channels of %d trees are idle, want one in 50 trees at most", idle, trees)
	}
}
