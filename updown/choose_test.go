package updown

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
)

// randomOrder is any order.
func randomOrder(f *fabric.Fabric, rnd *rand.Rand) *Order {
	o := &Order{Rank: make([]int32, f.NumSwitches())}
	for r, s := range rnd.Perm(f.NumSwitches()) {
		o.Rank[s] = int32(r)
		o.Switch = append(o.Switch, fabric.NodeID(s))
	}
	return o
}

// slowBars counts what an order bars by the ports of the engine, one destination after the
// other.
func slowBars(f *fabric.Fabric, x *network, o *Order) (b bars) {
	tree := newTree(newDirections(f, o))
	for _, t := range x.listTargets(math.MaxInt) {
		tree.growTo(t)
		dist := x.dist.To(t)
		busy := slices.Clone(x.hosts)
		list := f.Switches()
		slices.SortStableFunc(list, func(a, b fabric.NodeID) int { return int(dist[b]) - int(dist[a]) })
		for _, s := range list {
			if s == t || busy[s] == 0 || dist[s] == fabric.Unreachable {
				continue
			}
			all, left := 0.0, 0.0
			legal := tree.ports(o.Rank[s])
			ports, to := f.SwitchLinks(s)
			for i, p := range ports {
				if dist[to[i]] != dist[s]-1 {
					continue
				}
				busy[to[i]] = max(busy[to[i]], 1)
				rate := float64(f.Link(p).Mbps()) / float64(fabric.Link{Width: 4, Speed: fabric.NDR}.Mbps())
				all += rate
				if tree.hops[o.Rank[s]] == dist[s] && slices.Contains(legal, f.Num(p)) {
					left += rate
				}
			}
			if left == 0 {
				if x.hosts[s] == 0 {
					continue
				}
				b.longer += x.hosts[s] * x.hosts[t]
				left = min(all, 1)
			}
			b.hops += x.hosts[t] * all * (all/left*(all/left) - 1)
		}
	}
	return b
}

// TestCountBars compares with the ports that the engine uses, by any orders.
func TestCountBars(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 20).Draw(rt, "switches")
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		var b fabric.Builder
		for i := range n {
			short.Must(b.AddNode(fabric.Node{GUID: fabric.GUID(i + 1), Type: fabric.Switch, NumPorts: 200}))(rt)
		}
		port := make([]fabric.PortNum, 2*n)
		connect := func(i, j int, speed fabric.Speed) {
			port[i]++
			port[j]++
			short.Check(rt, b.Connect(i, port[i], j, port[j], fabric.Link{Width: 4, Speed: speed}))
		}
		connect(0, 1, fabric.NDR) // the fastest
		for range rapid.IntRange(n, 4*n).Draw(rt, "cables") {
			if i, j := rnd.IntN(n), rnd.IntN(n); i != j {
				connect(i, j, []fabric.Speed{fabric.NDR, fabric.NDR, fabric.DDR}[rnd.IntN(3)])
			}
		}
		for i := range rapid.IntRange(0, n).Draw(rt, "hosts") {
			h := short.Must(b.AddNode(fabric.Node{GUID: fabric.GUID(1000 + i), Type: fabric.CA, NumPorts: 1}))(rt)
			connect(rnd.IntN(n), h, fabric.NDR)
		}
		f := short.Must(b.Build())(rt)
		x := newNetwork(f)
		c := x.newLegality().newCounter()
		for range 3 {
			o := randomOrder(f, rnd)
			got, want := c.count(o, anyBars), slowBars(f, x, o)
			if math.Abs(got.longer-want.longer) > 1e-6*want.longer || math.Abs(got.hops-want.hops) > 1e-6*want.hops {
				rt.Fatalf("order %v bars %v, want %v", o.Switch, got, want)
			}
			if shortest, err := o.HasShortest(t.Context(), f); err != nil || len(f.CAPorts()) > 0 && shortest != (want.longer == 0) {
				rt.Fatalf("order %v has shortest paths only: %v, %v; longer are %v", o.Switch, shortest, err, want.longer)
			}
		}
	})
}

// withSlowCable is f with one of the cables between switches slow.
func withSlowCable(t *testing.T, f *fabric.Fabric, seed uint64) (slow *fabric.Fabric, s, to fabric.NodeID) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 0))
	var cables []fabric.PortID
	for s := range fabric.NodeID(f.NumSwitches()) {
		ports, _ := f.SwitchLinks(s)
		cables = append(cables, ports...)
	}
	bad := cables[rnd.IntN(len(cables))]
	var b fabric.Builder
	for n := range fabric.NodeID(f.NumNodes()) {
		short.Must(b.AddNode(*f.Node(n)))(t)
	}
	for p := range fabric.PortID(f.NumPorts()) {
		q := f.Peer(p)
		if q == fabric.NoPort || q < p {
			continue
		}
		link := f.Link(p)
		if p == bad || q == bad {
			link.Speed = fabric.DDR
		}
		short.Check(t, b.Connect(int(f.Owner(p)), f.Num(p), int(f.Owner(q)), f.Num(q), link))
	}
	g, err := b.Build()
	return routable(t, g, err), f.Owner(bad), f.PeerSwitch(bad)
}

// TestSlowCable: one slow cable in a tree leaves only itself idle. Orders that look good
// because they keep off it would leave most spines idle.
func TestSlowCable(t *testing.T) {
	for seed := range uint64(short.Of(24, 6)) {
		spec := gen.FatTreeSpec{Radix: 16, Levels: 2}
		if seed%2 > 0 {
			spec = gen.FatTreeSpec{Radix: 8, Levels: 3}
		}
		f := short.Must(gen.FatTree(spec))(t)
		f, s, to := withSlowCable(t, f, seed)
		v := route(t, f)
		if v.Balance.IdleLinks > 2 || v.Unicast.NonMinimal > 0 {
			t.Errorf("seed %d: a slow cable between %q and %q leaves %d channels idle and %d pairs longer than minimal",
				seed, f.Node(s).Description, f.Node(to).Description, v.Balance.IdleLinks, v.Unicast.NonMinimal)
		}
	}
}

// TestTreesBarNothing: on trees with few cables missing the order bars no shortest path.
func TestTreesBarNothing(t *testing.T) {
	for _, test := range []struct {
		spec gen.FatTreeSpec
		drop int
	}{
		{gen.FatTreeSpec{Radix: 8, Levels: 2}, 0},
		{gen.FatTreeSpec{Radix: 16, Levels: 2}, 12},
		{gen.FatTreeSpec{Radix: 8, Levels: 3}, 3},
		{gen.FatTreeSpec{Radix: 12, Levels: 3}, 25},
	} {
		for seed := range uint64(8) {
			f, err := gen.FatTree(test.spec)
			if err == nil && test.drop > 0 {
				f, err = gen.DropLinks(f, test.drop, seed)
			}
			f = routable(t, f, err)
			o := short.Must(ChooseOrder(context.Background(), f, nil))(t)
			x := newNetwork(f)
			if b := x.newLegality().newCounter().count(o, anyBars); !b.none() {
				t.Errorf("%+v, %d missing, seed %d: the order bars %+v", test.spec, test.drop, seed, b)
			}
		}
	}
}

// TestDamagedTrees: with many cables missing no order may be free of bars, but the greatest
// load of the one chosen is near what the cuts of single switches force, and with few
// levels no cable is idle.
func TestDamagedTrees(t *testing.T) {
	for _, test := range []struct {
		spec       gen.FatTreeSpec
		drop, idle int
	}{
		{gen.FatTreeSpec{Radix: 16, Levels: 2}, 30, 0},
		{gen.FatTreeSpec{Radix: 24, Levels: 2}, 80, 0},
		{gen.FatTreeSpec{Radix: 12, Levels: 3}, 60, 40},
	} {
		for seed := range short.Of(uint64(4), 1) {
			f, err := gen.FatTree(test.spec)
			if err == nil {
				f, err = gen.DropLinks(f, test.drop, seed)
			}
			f = routable(t, f, err)
			o := short.Must(ChooseOrder(context.Background(), f, nil))(t)
			tables := short.Must(lft.Balance(t.Context(), f, NextHops(Engine{}, f, o)))(t)
			x := newNetwork(f)
			all, bound := 0.0, 0.0
			for _, h := range x.hosts {
				all += h
			}
			for s, h := range x.hosts {
				out := 0.0
				for _, r := range x.rate[x.first[s]:x.first[s+1]] {
					out += r
				}
				bound = max(bound, h*(all-h)/out)
			}
			loads := short.Must(lft.ChannelLoads(t.Context(), f, tables))(t)
			greatest, idle := int64(0), 0
			for _, c := range f.Channels() {
				greatest = max(greatest, loads[c])
				if loads[c] == 0 {
					idle++
				}
			}
			if float64(greatest) > 1.06*bound || idle > test.idle {
				t.Errorf("%+v, seed %d: greatest load %d, want at most 6 %% above %v; %d channels idle, want at most %d",
					test.spec, seed, greatest, bound, idle, test.idle)
			}
		}
	}
}

// TestFlow: greatest loads of fabrics for which they are known.
func TestFlow(t *testing.T) {
	grid, err := mesh.Generate(mesh.Spec{Dims: []int{5}, Wrap: []bool{false}, Hosts: 3})
	chain := routable(t, grid, err)
	tree, err := gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2})
	tree = routable(t, tree, err)
	slow, _, _ := withSlowCable(t, tree, 1)
	ndr := tree.Link(func() fabric.PortID { p, _ := tree.SwitchLinks(0); return p[0] }()).Mbps()
	// 28 hosts send to the 4 of the leaf at the slow cable, a quarter of that over each spine.
	rate := float64(fabric.Link{Width: 4, Speed: fabric.DDR}.Mbps()) / float64(ndr)
	for _, test := range []struct {
		name string
		f    *fabric.Fabric
		want float64
	}{
		{"chain", chain, 6 * 9},
		{"tree", tree, 28},
		{"tree with a slow cable", slow, 28 / rate},
	} {
		o := short.Must(ChooseOrder(context.Background(), test.f, nil))(t)
		x := newNetwork(test.f)
		flow := x.newFlow(x.listTargets(math.MaxInt))
		powers := flow.sumPowers(o)
		greatest, want := 0.0, 0.0
		for l, load := range flow.load {
			relative := load / x.rate[l]
			greatest = max(greatest, relative)
			want += math.Pow(relative, 4) * x.rate[l]
		}
		if math.Abs(greatest/test.want-1) > 1e-9 || math.Abs(powers/want-1) > 1e-9 {
			t.Errorf("%s: greatest load %v, want %v; fourth powers %v, want %v", test.name, greatest, test.want, powers, want)
		}
	}
}

// TestTwoRails: two trees joined by one cable between two spines. With any one switch on top
// whose order grows by distance, the spines of one of them lie below their leaves.
func TestTwoRails(t *testing.T) {
	var b fabric.Builder
	var spines []int
	guid := fabric.GUID(1)
	add := func(typ fabric.NodeType, ports int, name string) int {
		n := short.Must(b.AddNode(fabric.Node{GUID: guid, Type: typ, NumPorts: fabric.PortNum(ports), Description: name}))(t)
		guid++
		return n
	}
	connect := func(i, p, j, q int) {
		short.Check(t, b.Connect(i, fabric.PortNum(p), j, fabric.PortNum(q), fabric.Link{Width: 4, Speed: fabric.NDR}))
	}
	for rail := range 2 {
		for i := range 4 {
			spines = append(spines, add(fabric.Switch, 20, fmt.Sprintf("spine %d of rail %d", i, rail)))
		}
		for i := range 5 {
			leaf := add(fabric.Switch, 20, fmt.Sprintf("leaf %d of rail %d", i, rail))
			for j, s := range spines[4*rail:] {
				connect(leaf, 1+j, s, 1+i)
			}
			for j := range 4 {
				connect(leaf, 11+j, add(fabric.CA, 1, "host"), 1)
			}
		}
	}
	connect(spines[1], 20, spines[6], 20)
	f, err := b.Build()
	v := route(t, routable(t, f, err))
	if v.Balance.IdleLinks > 0 || v.Unicast.NonMinimal > 0 {
		t.Errorf("%d channels idle, %d pairs longer than minimal, want none", v.Balance.IdleLinks, v.Unicast.NonMinimal)
	}
}
