package mft_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/sminterface/dump/dumptest"
	"github.com/ibweave/ibweave/sminterface/ibsim"
	"github.com/ibweave/ibweave/sminterface/ibsim/ibsimtest"
	"github.com/ibweave/ibweave/updown"
)

// routings are fabrics of all kinds with unicast paths of all kinds.
func routings(t testing.TB) map[string]*lft.Routing {
	irregular := func() (*fabric.Fabric, error) {
		return gen.Irregular(gen.IrregularSpec{Switches: 24, Degree: 4, Hosts: 60, Seed: 1})
	}
	fatTree := func() (*fabric.Fabric, error) { return gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 3}) }
	grid := func(wrap bool, dims ...int) func() (*fabric.Fabric, error) {
		w := make([]bool, len(dims))
		for i := range w {
			w[i] = wrap
		}
		return func() (*fabric.Fabric, error) { return mesh.Generate(mesh.Spec{Dims: dims, Wrap: w, Hosts: 2}) }
	}
	list := map[string]*lft.Routing{}
	for name, make := range map[string]func() (*fabric.Fabric, error){
		"mesh": grid(false, 5, 5), "torus": grid(true, 4, 5), "two by two links": grid(true, 2, 2), "fat tree": fatTree, "irregular": irregular,
	} {
		list[name+"/updn"] = routed(t, updown.Engine{})(make())
		list[name+"/minhop"] = routed(t, lft.Minhop{})(make())
	}
	list["mesh/xy"] = routed(t, mesh.XY{})(grid(false, 5, 5)())
	list["torus/xy"] = routed(t, mesh.XY{})(grid(true, 5, 5)())
	list["even torus/xy"] = routed(t, mesh.XY{})(grid(true, 4, 5)())
	return list
}

// unionPorts walks the unicast paths the obvious way.
func unionPorts(r *lft.Routing, g *mft.Group, sender fabric.PortID) []fabric.PortID {
	f := r.Fabric
	var ports []fabric.PortID
	for _, d := range g.Receivers {
		if d == sender {
			continue
		}
		at := sender
		if !f.IsSwitch(f.Owner(at)) {
			at = f.Peer(at)
		}
		for s := f.Owner(at); ; {
			out := f.Port(s, r.Tables.Row(s)[f.LID(d)])
			ports = append(ports, out)
			if out == d || f.Peer(out) == d {
				break
			}
			s = f.Owner(f.Peer(out))
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// TestExact floods from every sender of random groups, with every scheme.
func TestExact(t *testing.T) {
	for name, r := range routings(t) {
		t.Run(name, func(t *testing.T) {
			groups := someGroups(r.Fabric, short.Of(250, 15), rand.New(rand.NewPCG(2, 0)))
			order := r.Order
			if order == nil {
				order = updown.NewOrder(r.Fabric, nil).Rank
			}
			for _, balance := range []bool{false, true} {
				p := mustBuild(t, mft.UpdnTree{Order: order}, r, groups, mft.Options{Balance: balance})
				mustBeExact(t, groups, p)
				mustBeLegal(t, order, p)
			}
			var members []mft.Group // all of which receive
			for _, g := range groups {
				g.Senders = slices.DeleteFunc(slices.Clone(g.Senders), func(p fabric.PortID) bool { return !slices.Contains(g.Receivers, p) })
				members = append(members, g)
			}
			mustBeExact(t, members, mustBuild(t, mft.OpenSM{}, r, members, mft.Options{}))

			refused := 0
			for i := range groups {
				g := groups[i : i+1]
				exact := true
				single := map[fabric.PortID][]fabric.PortID{}
				for _, s := range g[0].Senders {
					single[s] = unionPorts(r, &g[0], s)
					exact = exact && newFlood(r.Fabric, single[s], s).verdict(s, g[0].Receivers) == "exact"
				}
				if !exact {
					refused++
					for _, s := range []mft.Scheme{mft.Union{}, mft.UnionRow{}, mft.UnionMerge{}} {
						mustRefuse(t, s, r, g)
					}
					continue
				}
				p := mustBuild(t, mft.Union{}, r, g, mft.Options{})
				for k := range p.Trees {
					x := &p.Trees[k]
					if got := p.Tables.Ports(x.MLID); !slices.Equal(got, single[x.Senders[0]]) || len(x.Senders) != 1 {
						t.Fatalf("masks %v from %v, want %v", got, x.Senders, single[x.Senders[0]])
					}
				}
				mustBeExact(t, g, p)
				// Turns are those of packets between hosts.
				ofSwitch := func(p fabric.PortID) bool { return r.Fabric.IsSwitch(r.Fabric.Owner(p)) }
				if r.PathSLs != nil {
					mustRefuse(t, mft.UnionTurns{}, r, g)
				} else if !slices.ContainsFunc(slices.Concat(g[0].Senders, g[0].Receivers), ofSwitch) {
					mustBeExact(t, g, mustBuild(t, mft.UnionTurns{}, r, g, mft.Options{}))
				}
				class := make([]int32, r.Fabric.NumSwitches())
				for s := range class {
					class[s] = int32(s % 3)
				}
				rows := mustBuild(t, mft.UnionRow{Class: class}, r, g, mft.Options{})
				mustBeExact(t, g, rows)
				switches := mustBuild(t, mft.UnionRow{}, r, g, mft.Options{})
				mustBeExact(t, g, switches)
				merged := mustBuild(t, mft.UnionMerge{}, r, g, mft.Options{})
				mustBeExact(t, g, merged)
				if len(merged.Trees) > len(switches.Trees) {
					t.Fatalf("union-merge takes %d MLIDs, union-row %d", len(merged.Trees), len(switches.Trees))
				}
				short.EqualList(t, crossings(merged), crossings(p), "links crossed")
			}
			// In a ring of four the two ways to the opposite switch are equally
			// long; XY's paths from one sender keep to one.
			switch name {
			case "mesh/xy", "torus/xy", "even torus/xy":
				if refused > 0 {
					t.Errorf("%d groups refused", refused)
				}
			case "irregular/minhop":
				if refused < short.Of(10, 5) {
					t.Errorf("only %d groups refused", refused)
				}
			}
		})
	}
}

// TestLastPorts has turns to the last port of switches with 64, which needs a second word of bits.
func TestLastPorts(t *testing.T) {
	p := short.Must(gen.NewPlan(3, 2))(t)
	for i := range 3 {
		p.Switch(64, fmt.Sprint("switch ", i))
	}
	p.Cable(2, 64, 0, 1)
	p.Cable(0, 64, 1, 64)
	p.Cable(p.CA(1, "a"), 1, 2, 1)
	p.Cable(p.CA(1, "b"), 1, 1, 1)
	r := routed(t, lft.Minhop{})(p.Fabric())
	hosts := r.Fabric.CAPorts()
	groups := []mft.Group{{Name: "g", Senders: hosts[:1], Receivers: hosts[1:]}}
	mustBeExact(t, groups, mustBuild(t, mft.UnionTurns{}, r, groups, mft.Options{}))
}

// mustBeLegal wants all turns of multicast packets to be those of up*/down*
// paths: never from a downward link to an upward one.
func mustBeLegal(t *testing.T, rank []int32, p *mft.Plan) {
	t.Helper()
	f := p.Tables.Fabric()
	up := func(p fabric.PortID) bool { return rank[f.Owner(f.Peer(p))] < rank[f.Owner(p)] }
	link := func(p fabric.PortID) bool { return f.Peer(p) != fabric.NoPort && f.IsSwitch(f.Owner(f.Peer(p))) }
	for _, l := range p.Tables.MLIDs() {
		for _, in := range p.Tables.Ports(l) {
			if !link(in) || up(in) {
				continue
			}
			for _, out := range p.Tables.Mask(f.Owner(f.Peer(in)), l) {
				if link(out) && up(out) && out != f.Peer(in) {
					t.Fatalf("MLID %#x goes down by %s, then up by %s", l, f.PortName(in), f.PortName(out))
				}
			}
		}
	}
}

// TestSameAlways: trees depend neither on the number of CPUs nor, without
// balance, on the other groups.
func TestSameAlways(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	r := routings(t)["mesh/xy"]
	groups := someGroups(r.Fabric, short.Of(200, 20), rand.New(rand.NewPCG(3, 0)))
	order := updown.NewOrder(r.Fabric, nil).Rank
	for _, s := range []mft.Scheme{mft.Union{}, mft.UnionRow{}, mft.UnionMerge{}, mft.UpdnTree{Order: order}, mft.OpenSM{}} {
		for _, balance := range []bool{false, true} {
			var first *mft.Plan
			for _, cpus := range []int{1, 8, 3} {
				runtime.GOMAXPROCS(cpus)
				p := mustBuild(t, s, r, groups, mft.Options{Balance: balance})
				if first == nil {
					first = p
				}
				short.EqualList(t, text(first), text(p), s.Name(), "on", cpus, "CPUs")
			}
			if balance {
				continue
			}
			for i := range 10 {
				p := mustBuild(t, s, r, groups[i:i+1], mft.Options{})
				var with, without [][]fabric.PortID
				for k := range first.Trees {
					if first.Trees[k].Group == i {
						with = append(with, first.Tables.Ports(first.Trees[k].MLID))
					}
				}
				for k := range p.Trees {
					without = append(without, p.Tables.Ports(p.Trees[k].MLID))
				}
				short.Diff(t, without, with, s.Name(), "group", i, "among others (-) and alone (+)")
			}
		}
	}
}

// TestBalance: balance takes load off the most loaded link, as much as it does
// now, and costs no links.
func TestBalance(t *testing.T) {
	r := routed(t, updown.Engine{})(gen.FatTree(gen.FatTreeSpec{Radix: 12, Levels: 3}))
	groups := randomGroups(r.Fabric, 500, 16, 1)
	var costs []*mft.Cost
	for _, balance := range []bool{false, true} {
		p := mustBuild(t, mft.UpdnTree{}, r, groups, mft.Options{Balance: balance})
		c := short.Must(mft.Measure(t.Context(), r, p))(t)
		costs = append(costs, c)
	}
	if costs[1].MaxLink > 374 {
		t.Errorf("the most loaded link has %d packets with balance, %d without", costs[1].MaxLink, costs[0].MaxLink)
	}
	if costs[1].Links > costs[0].Links {
		t.Errorf("%d links with balance, %d without", costs[1].Links, costs[0].Links)
	}
}

// TestFewLinks compares trees with the best there are: found by trying all sets
// of switches on small fabrics.
func TestFewLinks(t *testing.T) {
	rnd := rand.New(rand.NewPCG(4, 0))
	total, best := 0, 0
	for seed := range uint64(30) {
		r := routed(t, updown.Engine{})(gen.Irregular(gen.IrregularSpec{Switches: 12, Degree: 3, Hosts: 24, Seed: seed}))
		groups := randomGroups(r.Fabric, 4, 2+rnd.IntN(6), seed)
		p := mustBuild(t, mft.UpdnTree{}, r, groups, mft.Options{})
		c := short.Must(mft.Measure(t.Context(), r, p))(t)
		for i := range p.Trees {
			want := fewestLinks(r, p.Trees[i].Receivers)
			if c.Trees[i].Links < want {
				t.Fatalf("%d links, and no tree has less than %d", c.Trees[i].Links, want)
			}
			total += c.Trees[i].Links
			best += want
		}
	}
	if total*100 > best*101 {
		t.Errorf("%d links in all, the best have %d", total, best)
	}
}

// grown is updn with an order that grows from one switch, so that the trees are the same
// whatever updn does to choose and improve its order.
type grown struct {
	updown.Engine
	top fabric.NodeID
}

func (e grown) Route(ctx context.Context, f *fabric.Fabric, opt lft.Options) (*lft.Routing, error) {
	opt.Roots = []fabric.NodeID{e.top}
	return e.Engine.Route(ctx, f, opt)
}

// TestTreesNoWorse holds the links and depths of trees on larger fabrics, summed
// over groups, at what they are.
func TestTreesNoWorse(t *testing.T) {
	for _, x := range []struct {
		name         string
		r            *lft.Routing
		links, depth int
	}{
		{"mesh", routed(t, grown{})(mesh.Generate(mesh.Spec{Dims: []int{8, 8}, Hosts: 1})), 4281, 3001},
		{"torus", routed(t, grown{})(mesh.Generate(mesh.Spec{Dims: []int{7, 7}, Wrap: []bool{true, true}, Hosts: 1})), 3335, 1820},
		{"fat tree", routed(t, grown{})(gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 3})), 2857, 881},
		{"irregular", routed(t, grown{top: 20})(gen.Irregular(gen.IrregularSpec{Switches: 64, Degree: 5, Hosts: 128, Seed: 1})), 2735, 1231},
	} {
		groups := someGroups(x.r.Fabric, 200, rand.New(rand.NewPCG(7, 0)))
		c := short.Must(mft.Measure(t.Context(), x.r, mustBuild(t, mft.UpdnTree{}, x.r, groups, mft.Options{})))(t)
		links, depth := 0, 0
		for _, tree := range c.Trees {
			links += tree.Links
			depth += tree.Depth
		}
		if links > x.links || depth > x.depth {
			t.Errorf("%s: %d links, depth %d; want at most %d and %d", x.name, links, depth, x.links, x.depth)
		}
	}
}

// fewestLinks is one less than the least number of switches, those of the
// members among them, of which all but one have an upward neighbour among them.
func fewestLinks(r *lft.Routing, members []fabric.PortID) int {
	f := r.Fabric
	must := 0
	for _, p := range members {
		must |= 1 << f.Owner(f.Peer(p))
	}
	least := f.NumSwitches()
	for set := range 1 << f.NumSwitches() {
		if set&must != must {
			continue
		}
		switches, tops := 0, 0
		for s := range fabric.NodeID(f.NumSwitches()) {
			if set>>s&1 == 0 {
				continue
			}
			switches++
			_, to := f.SwitchLinks(s)
			if !slices.ContainsFunc(to, func(u fabric.NodeID) bool { return set>>u&1 != 0 && r.Order[u] < r.Order[s] }) {
				tops++
			}
		}
		if tops == 1 {
			least = min(least, switches-1)
		}
	}
	return least
}

// TestTreeErrors is orders and fabrics that updn-tree cannot use.
func TestTreeErrors(t *testing.T) {
	g := newGrid(t, 2, 2)
	groups := []mft.Group{{Name: "g", Receivers: g.byLID(1, 4), Senders: g.byLID(1)}}
	if no := mustRefuse(t, mft.UpdnTree{}, g.r, groups); no.Error() != "updn-tree cannot serve group g: routing xy has no up*/down* order; use union-merge" {
		t.Error(no)
	}
	for want, order := range map[string][]int32{
		"an up*/down* order with rank 4; want each of 0 to 3 once":  {0, 1, 2, 4},
		"an up*/down* order with rank 1; want each of 0 to 3 once":  {0, 1, 1, 2},
		"an up*/down* order of 3 switches, the fabric has 4":        {0, 1, 2},
		"an up*/down* order with rank -1; want each of 0 to 3 once": {0, 1, 2, -1},
	} {
		if p, err := (mft.UpdnTree{Order: order}).Build(t.Context(), g.r, groups, mft.Options{}); p != nil || err == nil || err.Error() != want {
			t.Errorf("%v: %v, %v", order, p, err)
		}
	}
	for _, s := range []mft.Scheme{mft.UnionRow{Class: []int32{1, 2}}} {
		if p, err := s.Build(t.Context(), g.r, groups, mft.Options{}); p != nil || err == nil || err.Error() != "classes of 2 switches, the fabric has 4" {
			t.Errorf("%v, %v", p, err)
		}
	}
	// In this order switch 1,1, like 0,0, has nothing above it.
	no := mustRefuse(t, mft.UpdnTree{Order: []int32{0, 2, 3, 1}}, g.r, groups)
	if want := `updn-tree cannot serve group g: no switch is above all of its members' switches, from "switch 0,0" to "switch 1,1", in the up*/down* order`; no.Error() != want {
		t.Error(no)
	}
}

// TestLooseEnds is end ports that no switch is on, and parts without a path.
func TestLooseEnds(t *testing.T) {
	var b fabric.Builder
	for i, n := range []fabric.Node{
		{GUID: 1, Type: fabric.Switch, NumPorts: 2, Description: "s1"}, {GUID: 2, Type: fabric.Switch, NumPorts: 2, Description: "s2"},
		{GUID: 0x10, Type: fabric.CA, NumPorts: 1, Description: "h1"}, {GUID: 0x20, Type: fabric.CA, NumPorts: 1, Description: "h2"},
		{GUID: 0x30, Type: fabric.CA, NumPorts: 1, Description: "h3"}, {GUID: 0x40, Type: fabric.CA, NumPorts: 1, Description: "h4"},
	} {
		short.Must(b.AddNode(n))(t)
		port := fabric.PortNum(0)
		if n.Type == fabric.CA {
			port = 1
		}
		short.Check(t, b.SetPort(i, port, 0, fabric.LID(i+1), 0))
	}
	for _, c := range [][4]int{{0, 1, 2, 1}, {1, 1, 3, 1}, {4, 1, 5, 1}} {
		short.Check(t, b.Connect(c[0], fabric.PortNum(c[1]), c[2], fabric.PortNum(c[3]), fabric.Link{}))
	}
	f := short.Must(b.Build())(t)
	r := &lft.Routing{Engine: "none", Fabric: f, Tables: lft.NewTables(2, f.MaxLID()), Order: []int32{0, 1}}
	h := make([]fabric.PortID, 4)
	for i := range h {
		h[i] = f.Port(fabric.NodeID(2+i), 1)
	}
	for _, x := range []struct {
		scheme             mft.Scheme
		receivers, senders []fabric.PortID
		want               string
	}{
		{mft.Union{}, h[:1], h[2:3], `sender "h3"[1] has no cable to a switch`},
		{mft.Union{}, h[2:3], h[:1], `sender "h1"[1] has no unicast path to receiver "h3"[1]: it has no cable to a switch`},
		{mft.UnionMerge{}, h[:1], h[2:3], `sender "h3"[1] has no cable to a switch`},
		{mft.UpdnTree{}, h[2:3], h[:1], `member "h3"[1] has no cable to a switch`},
		{mft.OpenSM{}, h[2:3], h[:1], `member "h3"[1] has no cable to a switch`},
		{mft.UpdnTree{}, h[:2], h[:1], `no switch is above all of its members' switches, from "s1" to "s2", in the up*/down* order`},
		{mft.OpenSM{}, h[:2], h[:1], `no path from switch "s1" to switch "s2"`},
	} {
		no := mustRefuse(t, x.scheme, r, []mft.Group{{Name: "g", Receivers: x.receivers, Senders: x.senders}})
		short.Equal(t, no.Reason, x.want, x.scheme.Name())
	}
}

// TestCanceled: a context that has ended ends the work.
func TestCanceled(t *testing.T) {
	g := newGrid(t, 3, 3)
	all := g.r.Fabric.CAPorts()
	groups := []mft.Group{{Name: "g", Receivers: all, Senders: all}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, s := range []mft.Scheme{mft.Union{}, mft.UnionRow{}, mft.UnionMerge{}, mft.UpdnTree{Order: updown.NewOrder(g.r.Fabric, nil).Rank}, mft.OpenSM{}} {
		for _, balance := range []bool{false, true} {
			if p, err := s.Build(ctx, g.r, groups, mft.Options{Balance: balance}); p != nil || !errors.Is(err, ctx.Err()) {
				t.Errorf("%s: %v, %v", s.Name(), p, err)
			}
		}
	}
	if p, err := mft.Fit(ctx, g.r, groups, mft.Options{}, mft.Union{}); p != nil || !errors.Is(err, ctx.Err()) {
		t.Errorf("%v, %v", p, err)
	}
	if c, err := mft.Measure(ctx, g.r, mustBuild(t, mft.Union{}, g.r, groups, mft.Options{})); c != nil || !errors.Is(err, ctx.Err()) {
		t.Errorf("%v, %v", c, err)
	}
}

func TestCost(t *testing.T) {
	built := map[string]int{}
	for name, r := range routings(t) {
		order := r.Order
		if order == nil {
			order = updown.NewOrder(r.Fabric, nil).Rank
		}
		f := r.Fabric
		groups := someGroups(f, 40, rand.New(rand.NewPCG(5, 0)))
		for _, s := range []mft.Scheme{mft.UpdnTree{Order: order}, mft.Union{}, mft.UnionMerge{}} {
			p, err := s.Build(t.Context(), r, groups, mft.Options{})
			if err == nil {
				built[s.Name()]++
				mustMeasure(t, name, r, p)
			}
		}
	}
	short.Equal(t, len(built), 3, "built", built)
}

// mustMeasure counts with floods and walks.
func mustMeasure(t *testing.T, name string, r *lft.Routing, p *mft.Plan) {
	t.Helper()
	f := r.Fabric
	c := short.Must(mft.Measure(t.Context(), r, p))(t)
	load := map[fabric.PortID]int64{}
	var want mft.Cost
	for i := range p.Trees {
		x := &p.Trees[i]
		var tree mft.TreeCost
		used := map[fabric.PortID]bool{}
		for _, q := range p.Tables.Ports(x.MLID) {
			if f.Peer(q) != fabric.NoPort && f.IsSwitch(f.Owner(f.Peer(q))) {
				used[min(q, f.Peer(q))] = true
			}
		}
		tree.Links = len(used)
		for _, s := range x.Senders {
			fl := newFlood(f, p.Tables.Ports(x.MLID), s)
			tree.Depth = max(tree.Depth, fl.depth)
			for q, n := range fl.links {
				load[q] += int64(n)
				tree.Crossings += int64(n)
			}
			for d, n := range fl.copies {
				if !f.IsSwitch(f.Owner(d)) {
					d = f.Peer(d)
				}
				load[d] += int64(n)
			}
			for _, d := range x.Receivers {
				if d == s {
					continue
				}
				tree.Unicast += int64(len(unionPorts(r, &mft.Group{Receivers: []fabric.PortID{d}}, s)) - 1)
			}
		}
		short.MustEqual(t, c.Trees[i], tree, name)
		want.Links += int64(tree.Links)
		want.Crossings += tree.Crossings
		want.Unicast += tree.Unicast
	}
	links := 0
	for s := range fabric.NodeID(f.NumSwitches()) {
		ports, _ := f.SwitchLinks(s)
		links += len(ports)
		for n := range fabric.PortID(f.Node(s).NumPorts) + 1 {
			q := f.PortBase(s) + n
			short.MustEqual(t, c.Load[q], load[q], name, "load", "of", f.PortName(q))
			if slices.Contains(ports, q) {
				want.MaxLink = max(want.MaxLink, load[q])
			} else {
				want.MaxHost = max(want.MaxHost, load[q])
			}
		}
	}
	want.MeanLink = float64(want.Crossings) / float64(links)
	short.Equal(t, c.Load[c.Hottest], want.MaxLink, name, "hottest is", f.PortName(c.Hottest))
	if diff := cmp.Diff(want, *c, cmpopts.IgnoreFields(mft.Cost{}, "Trees", "Load", "Hottest")); diff != "" {
		t.Errorf("%s: %s", name, diff)
	}
}

// routed gives a fabric dense LIDs and routes it.
func routed(t testing.TB, e lft.Engine) func(*fabric.Fabric, error) *lft.Routing {
	return func(f *fabric.Fabric, err error) *lft.Routing {
		t.Helper()
		short.Check(t, err)
		f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs}))(t)
		return short.Must(e.Route(context.Background(), f, lft.Options{}))(t)
	}
}

// randomGroups is n groups of members hosts that all send and receive.
func randomGroups(f *fabric.Fabric, n, members int, seed uint64) []mft.Group {
	rnd := rand.New(rand.NewPCG(seed, 0))
	groups := make([]mft.Group, n)
	for i := range groups {
		ports := slices.Clone(f.CAPorts())
		rnd.Shuffle(len(ports), func(i, j int) { ports[i], ports[j] = ports[j], ports[i] })
		ports = ports[:min(members, len(ports))]
		slices.Sort(ports)
		groups[i] = mft.Group{Name: fmt.Sprintf("group %d", i), Receivers: ports, Senders: ports}
	}
	return groups
}

// FindFault tells what a flood does in old and new masks together; where it finds nothing, no flood loops or brings a
// second copy in any mixture of them, switch by switch.
func TestFindFault(t *testing.T) {
	f := newGrid(t, 3, 2).r.Fabric
	senders := slices.Clone(f.CAPorts())
	var all []fabric.PortID
	for s := range fabric.NodeID(f.NumSwitches()) {
		senders = append(senders, f.PortBase(s))
		all = slices.AppendSeq(append(all, f.PortBase(s)), f.Cabled(s))
	}
	isFaulty := func(ports []fabric.PortID) bool {
		return slices.ContainsFunc(senders, func(s fabric.PortID) bool {
			v := newFlood(f, ports, s).verdict(s, nil)
			return v == "loop" || v == "duplicate"
		})
	}
	faults, mixtures := 0, 0
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		draw := func() []fabric.PortID {
			return slices.DeleteFunc(slices.Clone(all), func(fabric.PortID) bool { return rnd.IntN(5) < 3 })
		}
		masks := [2][]fabric.PortID{draw(), draw()}
		both := slices.Concat(masks[0], masks[1])
		slices.Sort(both)
		both = slices.Compact(both)
		fault := mft.FindFault(f, both, senders)
		if (fault != "") != isFaulty(both) {
			t.Fatalf("seed %d: %q, and a flood disagrees", seed, fault)
		}
		if fault != "" {
			faults++
			continue
		}
		for range 8 {
			mixtures++
			turn := rnd.Uint64()
			mixed := slices.DeleteFunc(slices.Clone(both), func(p fabric.PortID) bool {
				return !slices.Contains(masks[turn>>f.Owner(p)&1], p)
			})
			if isFaulty(mixed) {
				t.Fatalf("seed %d: a mixture has a fault, and both together have none", seed)
			}
		}
	}
	if faults < 30 || mixtures < 200 {
		t.Errorf("%d faults, %d mixtures: the draw is too narrow", faults, mixtures)
	}
}

// relabelled is f with random GUIDs, which OpenSM sorts in its own way, and
// without LIDs.
func relabelled(t testing.TB, f *fabric.Fabric, rnd *rand.Rand) *fabric.Fabric {
	t.Helper()
	var b fabric.Builder
	used := map[fabric.GUID]bool{}
	for n := range fabric.NodeID(f.NumNodes()) {
		node := *f.Node(n)
		for node.GUID = 0; node.GUID == 0 || used[node.GUID>>8]; {
			node.GUID = fabric.GUID(rnd.Uint64() >> 8 << 8)
		}
		used[node.GUID>>8] = true
		node.SystemGUID = 0
		short.Must(b.AddNode(node))(t)
	}
	for p := range fabric.PortID(f.NumPorts()) {
		if q := f.Peer(p); q > p {
			short.Check(t, b.Connect(int(f.Owner(p)), f.Num(p), int(f.Owner(q)), f.Num(q), f.Link(p)))
		}
	}
	return short.Must(b.Build())(t)
}

// someGroups is n groups with from one member to all hosts; some have ports 0
// of switches and members that only send or only receive.
func someGroups(f *fabric.Fabric, n int, rnd *rand.Rand) []mft.Group {
	var ends []fabric.PortID
	f.EndPorts(func(p fabric.PortID) { ends = append(ends, p) })
	groups := make([]mft.Group, n)
	for i := range groups {
		from := f.CAPorts()
		if rnd.IntN(3) == 0 {
			from = ends
		}
		from = slices.Clone(from)
		rnd.Shuffle(len(from), func(i, j int) { from[i], from[j] = from[j], from[i] })
		members := 1 + rnd.IntN(min(len(from), 2+rnd.IntN(40)))
		g := &groups[i]
		g.Name = fmt.Sprintf("group %d", i)
		for k, p := range from[:members] {
			kind := 0
			if rnd.IntN(3) == 0 {
				kind = rnd.IntN(3)
			}
			if kind != 1 || k == 0 {
				g.Receivers = append(g.Receivers, p)
			}
			if kind != 2 || k == 0 {
				g.Senders = append(g.Senders, p)
			}
		}
		slices.Sort(g.Receivers)
		slices.Sort(g.Senders)
	}
	return groups
}

// TestOpenSMTrees: the real OpenSM makes the same masks.
func TestOpenSMTrees(t *testing.T) {
	short.NeedPrograms(t)
	rnd := rand.New(rand.NewPCG(1, 0))
	for _, x := range short.Part(2, []struct {
		name string
		make func() (*fabric.Fabric, error)
	}{
		{"mesh", func() (*fabric.Fabric, error) { return mesh.Generate(mesh.Spec{Dims: []int{4, 5}, Hosts: 2}) }},
		{"ring of two", func() (*fabric.Fabric, error) {
			return mesh.Generate(mesh.Spec{Dims: []int{2, 4}, Wrap: []bool{true, true}, Hosts: 1})
		}},
		{"fat tree", func() (*fabric.Fabric, error) { return gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 3}) }},
		{"irregular", func() (*fabric.Fabric, error) {
			return gen.Irregular(gen.IrregularSpec{Switches: 20, Degree: 3, Hosts: 50, Seed: 1})
		}},
	}) {
		t.Run(x.name, func(t *testing.T) {
			f := short.Must(x.make())(t)
			f = short.Must(lft.AssignLIDs(relabelled(t, f, rnd), lft.LIDOptions{Policy: lft.DenseLIDs}))(t)
			groups := someGroups(f, 60, rnd)
			p := mustBuild(t, mft.OpenSM{}, &lft.Routing{Engine: "minhop", Fabric: f}, groups, mft.Options{})
			dir := t.TempDir()
			file := filepath.Join(dir, "sa.dump")
			short.Check(t, os.WriteFile(file, dumptest.SADump(f, p.Trees), 0o600))
			s, twin := ibsimtest.Start(t, f)
			if !twin.Same() {
				t.Fatal("ibsim gives other GUIDs")
			}
			run := short.Must(ibsim.RunOpenSM(t.Context(), s, ibsim.OpenSMConfig{Engine: "minhop", Dir: dir, Flags: 0x43, Options: []string{"sa_db_file " + file}}))(t)
			if run.NumErrors > 0 {
				t.Fatal(run.Errors)
			}
			data := short.Must(os.ReadFile(filepath.Join(dir, "opensm.mcfdbs")))(t)
			tables, problems, err := dump.ReadMFTs("opensm.mcfdbs", data, f, dump.Options{})
			if err != nil || len(problems) > 0 {
				t.Fatal(err, problems)
			}
			several := 0
			for i := range p.Trees {
				l := p.Trees[i].MLID
				got, want := p.Tables.Ports(l), tables.Ports(l)
				short.EqualList(t, got, want, groups[p.Trees[i].Group], names(f, got), "OpenSM", names(f, want))
				if len(want) > 2 {
					several++
				}
			}
			if several < 30 {
				t.Errorf("only %d groups with more than two ports", several)
			}
		})
	}
}

func names(f *fabric.Fabric, ports []fabric.PortID) (list []string) {
	for _, p := range ports {
		list = append(list, f.PortName(p))
	}
	return list
}
