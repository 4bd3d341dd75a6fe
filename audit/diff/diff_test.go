package diff

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/updown"
	"github.com/ibweave/ibweave/verify"
)

// plan is a fabric to be made again with changes.
type plan struct {
	t rapid.TB
	b fabric.Builder
	f *fabric.Fabric
}

// copyOf is a builder with the nodes and cables of a fabric without those at some ports;
// indices are NodeIDs.
func copyOf(t rapid.TB, f *fabric.Fabric, without ...fabric.PortID) *plan {
	t.Helper()
	p := &plan{t: t, f: f}
	for n := range fabric.NodeID(f.NumNodes()) {
		short.Must(p.b.AddNode(*f.Node(n)))(t)
		for i := range fabric.PortID(f.Node(n).NumPorts) + 1 {
			x := f.PortBase(n) + i
			if (i == 0) == f.IsSwitch(n) {
				p.ok(p.b.SetPort(int(n), fabric.PortNum(i), f.PortGUID(x), f.LID(x), f.LMC(x)))
			}
		}
	}
	for x := range fabric.PortID(f.NumPorts()) {
		if y := f.Peer(x); x < y && !slices.Contains(without, x) && !slices.Contains(without, y) {
			p.ok(p.b.Connect(int(f.Owner(x)), f.Num(x), int(f.Owner(y)), f.Num(y), f.Link(x)))
		}
	}
	return p
}

func (p *plan) ok(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *plan) build() *fabric.Fabric {
	p.t.Helper()
	f, err := p.b.Build()
	p.ok(err)
	return f
}

// copyTables is tables that can be changed.
func copyTables(t *lft.Tables) *lft.Tables {
	c := lft.NewTables(t.Switches(), t.MaxLID())
	for s := range fabric.NodeID(t.Switches()) {
		copy(c.Row(s), t.Row(s))
	}
	return c
}

func meshFabric(t *testing.T, dims ...int) *fabric.Fabric {
	t.Helper()
	f := short.Must(mesh.Generate(mesh.Spec{Dims: dims, Hosts: 1}))(t)
	return withLIDs(t, f)
}

func withLIDs(t *testing.T, f *fabric.Fabric) *fabric.Fabric {
	t.Helper()
	return short.Must(lft.AssignLIDs(f, lft.LIDOptions{}))(t)
}

func route(t *testing.T, e lft.Engine, f *fabric.Fabric) *state.State {
	t.Helper()
	r := short.Must(e.Route(context.Background(), f, lft.Options{}))(t)
	return &state.State{Name: e.Name(), Fabric: f, Tables: r.Tables, SL2VL: r.SL2VL, PathSLs: r.PathSLs}
}

func compare(t *testing.T, a, b *state.State) *Result {
	t.Helper()
	return short.Must(Compare(context.Background(), a, b))(t)
}

// rules is the findings of a result, as "rule count".
func rules(r *Result) []string {
	list := []string{}
	for _, f := range r.Findings {
		list = append(list, fmt.Sprintf("%s %d", f.Rule, f.Count))
	}
	return list
}

func want(t *testing.T, r *Result, findings ...string) {
	t.Helper()
	if got := rules(r); !slices.Equal(got, append([]string{}, findings...)) {
		var b text.Sheet
		r.Print(&b, false)
		t.Fatalf("findings %q, want %q\n%s", got, findings, &b)
	}
	if r.Equal != (len(findings) == 0) {
		t.Fatalf("equal is %t with findings %q", r.Equal, findings)
	}
}

// full is a mesh with everything that can be compared.
func full(t *testing.T) *state.State {
	t.Helper()
	s := route(t, mesh.XY{}, meshFabric(t, 3, 3))
	s.SL2VL = lft.NewSL2VL(s.Fabric, lft.IdentityVLs(2))
	s.PathSLs = lft.NewPathSLs(s.Fabric.NumSwitches(), s.Fabric.MaxLID())
	s.Multicast = &mft.Plan{Tables: mft.NewTables(s.Fabric)}
	f := s.Fabric
	// Switches 0, 3 and 6 are a row: port 1 leads to the next, 3 back, 5 to the host.
	s.Multicast.Tables.Add(0xc001, []fabric.PortID{f.Port(0, 1), f.Port(0, 5), f.Port(3, 1), f.Port(3, 3), f.Port(6, 3), f.Port(6, 5)})
	return s
}

// movedTo is a state with the tables of s on another fabric with the same nodes.
func movedTo(s *state.State, f *fabric.Fabric) *state.State {
	c := *s
	c.Fabric = f
	c.SL2VL = lft.NewSL2VL(f, lft.IdentityVLs(2))
	c.Multicast = &mft.Plan{Tables: mft.NewTables(f)}
	for _, l := range s.Multicast.Tables.MLIDs() {
		c.Multicast.Tables.Add(l, s.Multicast.Tables.Ports(l))
	}
	return &c
}

func TestEqual(t *testing.T) {
	a := full(t)
	want(t, compare(t, a, a))
	want(t, compare(t, a, movedTo(a, copyOf(t, a.Fabric).build())))
	torus := short.Must(mesh.Generate(mesh.Spec{Dims: []int{5, 5}, Wrap: []bool{true, true}, Hosts: 1}))(t)
	// Tables with a credit loop by themselves are no difference either.
	m := route(t, lft.Minhop{}, withLIDs(t, torus))
	want(t, compare(t, m, m))
}

// One thing is changed, and exactly that is found.
func TestSingleChanges(t *testing.T) {
	a := full(t)
	f := a.Fabric
	host := func(i int) fabric.NodeID { return fabric.NodeID(f.NumSwitches() + i) }

	t.Run("entry", func(t *testing.T) {
		b := *a
		b.Tables = copyTables(a.Tables)
		l := f.LID(f.Port(host(8), 1))
		short.MustEqual(t, a.Tables.Row(0)[l], 1, "the mesh is not as expected")
		b.Tables.Row(0)[l] = 2 // y first
		r := compare(t, a, &b)
		want(t, r, "lfts-differ 1")
		change := LFTChanges{
			Entries: 9 * 18, Changed: 1, Blocks: 1, OfBlocks: 9,
			Switches: []SwitchChange{{
				SwitchRef: verify.SwitchRef{Switch: f.Node(0).GUID, Name: fabric.Name{Text: "switch 0,0"}}, Changed: 1, Blocks: 1,
				Entries: []Entry{{LID: l, Old: 1, New: 2}},
			}},
		}
		short.Diff(t, r.LFTs, &change)
		// The hosts of switch 0,0 alone go by way of it.
		p := r.Pairs
		if p.Compared != 72 || p.Changed != 1 || p.Rerouted != 1 || p.AllDestinations != 1 ||
			p.Destinations[0].Port.Name.Text != "host 2,2" || p.Longer+p.Shorter != 0 {
			t.Errorf("%+v", p)
		}
		if r.Transition.Order.Kind != OrderAny || r.Transition.Loops != 0 {
			t.Errorf("%+v", r.Transition)
		}
	})
	t.Run("entry dropped", func(t *testing.T) {
		b := *a
		b.Tables = copyTables(a.Tables)
		b.Tables.Row(3)[f.LID(f.Port(host(8), 1))] = fabric.NoPath
		r := compare(t, a, &b)
		want(t, r, "pairs-lost 2", "lfts-differ 1")
		if r.Verdict != "errors" || r.Pairs.Lost != 2 || r.Pairs.Changed != 2 {
			t.Errorf("%s %+v", r.Verdict, r.Pairs)
		}
		r = compare(t, &b, a)
		want(t, r, "lfts-differ 1")
		if r.Verdict != "clean" || r.Pairs.Gained != 2 || r.Pairs.Changed != 2 {
			t.Errorf("%s %+v", r.Verdict, r.Pairs)
		}
	})
	t.Run("cable gone and new", func(t *testing.T) {
		c := copyOf(t, f, f.Port(4, 1))
		b := movedTo(a, c.build())
		r := compare(t, a, b)
		lost := r.Pairs.Lost
		want(t, r, fmt.Sprintf("pairs-lost %d", lost), "links-differ 1")
		if lost == 0 || r.Links.Count() != 1 || len(r.Links.Gone) != 1 || r.Links.Gone[0].A.String() != `"switch 1,1"[1]` || r.Links.Gone[0].B.String() != `"switch 2,1"[3]` {
			t.Errorf("%+v", r.Links)
		}
		short.Equal(t, r.Transition.Order.Kind, OrderNone, "order though nothing is written")
		r = compare(t, b, a)
		want(t, r, "links-differ 1")
		if len(r.Links.New) != 1 || r.Links.Count() != 1 || r.Pairs.Gained != lost {
			t.Errorf("%+v %+v", r.Links, r.Pairs)
		}
	})
	t.Run("cable moved", func(t *testing.T) {
		// The host of switch 0,0 goes to a free port of switch 2,2.
		c := copyOf(t, f, f.Port(host(0), 1))
		c.ok(c.b.Connect(int(host(0)), 1, 8, 1, fabric.Link{}))
		r := compare(t, a, movedTo(a, c.build()))
		if r.Links.Count() != 1 || len(r.Links.Moved) != 1 {
			t.Fatalf("%+v", r.Links)
		}
		if m := r.Links.Moved[0]; m.End.Name.Text != "host 0,0" || m.Old.String() != `"switch 0,0"[5]` || m.New.String() != `"switch 2,2"[1]` {
			t.Errorf("%+v", m)
		}
		// No port can reach it there, but it still reaches all others.
		if p := r.Pairs; p.Lost != 8 || p.Rerouted != 8 {
			t.Errorf("%+v", p)
		}
	})
	t.Run("hosts swapped", func(t *testing.T) {
		c := copyOf(t, f, f.Port(host(0), 1), f.Port(host(8), 1))
		c.ok(c.b.Connect(int(host(0)), 1, 8, 5, fabric.Link{}))
		c.ok(c.b.Connect(int(host(8)), 1, 0, 5, fabric.Link{}))
		r := compare(t, a, movedTo(a, c.build()))
		if r.Links.Count() != 2 || len(r.Links.Moved) != 2 || r.Links.Moved[0].End.Name.Text != "host 0,0" || r.Links.Moved[1].End.Name.Text != "host 2,2" {
			t.Errorf("%+v", r.Links)
		}
	})
	t.Run("width", func(t *testing.T) {
		at := func(width uint8) *state.State {
			c := copyOf(t, f, f.Port(0, 1))
			c.ok(c.b.Connect(0, 1, 3, 3, fabric.Link{Width: width, Speed: fabric.NDR}))
			return movedTo(a, c.build())
		}
		r := compare(t, at(4), at(1))
		want(t, r, "links-differ 1")
		if len(r.Links.Changed) != 1 || r.Links.Changed[0].Old != "4xNDR" || r.Links.Changed[0].New != "1xNDR" {
			t.Errorf("%+v", r.Links)
		}
		if a, b := at(0), at(4); b.Fabric.Link(1).String() == "" {
			t.Error("no width")
		} else {
			want(t, compare(t, a, b)) // not known in one of them
		}
	})
	t.Run("description", func(t *testing.T) {
		c := copyOf(t, f)
		c.b.Node(4).Description = "spine"
		r := compare(t, a, movedTo(a, c.build()))
		want(t, r, "nodes-differ 1")
		if x := r.Nodes.Changed; len(x) != 1 || x[0].Node.Name.Text != "spine" || !slices.Equal(x[0].Fields, []Field{{"name", "switch 1,1", "spine"}}) {
			t.Errorf("%+v", x)
		}
	})
	t.Run("switch replaced", func(t *testing.T) {
		c := copyOf(t, f)
		c.b.Node(4).GUID += 0x1000
		c.ok(c.b.SetPort(4, 0, c.b.Node(4).GUID, f.LID(f.Port(4, 0)), 0))
		g := c.build()
		b := route(t, mesh.XY{}, g)
		b.SL2VL, b.PathSLs = lft.NewSL2VL(g, lft.IdentityVLs(2)), lft.NewPathSLs(g.NumSwitches(), g.MaxLID())
		r := compare(t, &state.State{Name: "old", Fabric: f, Tables: a.Tables, SL2VL: a.SL2VL, PathSLs: a.PathSLs}, b)
		// It is one node, all paths are as they were, and it gets its table.
		want(t, r, "nodes-differ 1", "lfts-differ 1")
		if len(r.Nodes.Replaced) != 1 || r.Links.Count() != 0 || r.LFTs.Changed != 0 || r.Pairs.Changed != 0 {
			t.Errorf("%+v %+v %+v", r.Nodes, r.Links, r.Pairs)
		}
	})
	t.Run("host replaced", func(t *testing.T) {
		for name, same := range map[string]bool{"host 1,1": true, "another": false} {
			c := copyOf(t, f)
			n := c.b.Node(int(host(4)))
			n.GUID += 0x1000
			n.Description = name
			c.ok(c.b.SetPort(int(host(4)), 1, n.GUID+1, f.LID(f.Port(host(4), 1)), 0))
			r := compare(t, &state.State{Fabric: f}, &state.State{Fabric: c.build()})
			if same {
				want(t, r, "nodes-differ 1")
			} else {
				want(t, r, "nodes-differ 2", "links-differ 1")
				if m := r.Links.Moved; len(m) != 1 || m[0].End.Name.Text != "switch 1,1" || m[0].Old.Name.Text != "host 1,1" || m[0].New.Name.Text != name {
					t.Errorf("%+v", r.Links)
				}
			}
		}
	})
	t.Run("LID", func(t *testing.T) {
		lid, lmc := make([]fabric.LID, f.NumPorts()), make([]uint8, f.NumPorts())
		f.EndPorts(func(p fabric.PortID) { lid[p] = f.LID(p) })
		x, y := f.Port(host(0), 1), f.Port(host(8), 1)
		lid[x], lid[y] = lid[y], lid[x]
		g := short.Must(f.WithLIDs(lid, lmc))(t)
		b := movedTo(a, g)
		b.Tables = copyTables(a.Tables)
		for s := range fabric.NodeID(f.NumSwitches()) {
			row := b.Tables.Row(s)
			row[lid[x]], row[lid[y]] = row[lid[y]], row[lid[x]]
		}
		r := compare(t, a, b)
		// Two ports, every switch's only block, and nothing else: packets for
		// either LID may go to and fro meanwhile.
		if r.LFTs.Changed != 0 || r.LFTs.Blocks != 9 || len(r.LFTs.Switches) != 9 || r.Pairs.Changed != 0 || len(r.LIDs.Changed) != 2 || r.Nodes.Count()+r.Links.Count() != 0 {
			t.Errorf("%+v %+v %+v", r.LFTs, r.Pairs, r.LIDs)
		}
		short.Equal(t, r.Transition.Loops, 2, r.Transition)
	})
	t.Run("SL-to-VL map", func(t *testing.T) {
		b := *a
		b.SL2VL = a.SL2VL.Clone()
		m := lft.ConstantVL(1)
		b.SL2VL.Set(3, f.Port(4, 1), m)
		r := compare(t, a, &b)
		want(t, r, "sl2vl-differ 1")
		if x := r.SL2VL.Ports; len(x) != 1 || x[0].In != 3 || x[0].Out.String() != `"switch 1,1"[1]` || x[0].New != m || x[0].Old != lft.IdentityVLs(2) {
			t.Errorf("%+v", x)
		}
	})
	t.Run("path SL", func(t *testing.T) {
		b := *a
		b.PathSLs = lft.NewPathSLs(f.NumSwitches(), f.MaxLID())
		row := make([]fabric.SL, int(f.MaxLID())+1)
		row[f.LID(f.Port(host(8), 1))] = 1
		b.PathSLs.SetRow(row, 0)
		want(t, compare(t, a, &b), "path-sls-differ 1")
	})
	t.Run("path SL of a port", func(t *testing.T) {
		b := *a
		b.PathSLs = lft.NewPathSLs(f.NumSwitches(), f.MaxLID())
		row := make([]fabric.SL, int(f.MaxLID())+1)
		row[f.LID(f.Port(host(8), 1))] = 1
		b.PathSLs.SetPorts(row, f.Port(host(0), 1))
		for _, r := range []*Result{compare(t, a, &b), compare(t, &b, a)} {
			want(t, r, "path-sls-differ 1")
		}
	})
	t.Run("mask", func(t *testing.T) {
		b := *a
		b.Multicast = &mft.Plan{Tables: mft.NewTables(f)}
		ports := slices.Clone(a.Multicast.Tables.Ports(0xc001))
		b.Multicast.Tables.Add(0xc001, slices.Insert(ports, 4, f.Port(3, 5)))
		r := compare(t, a, &b)
		want(t, r, "multicast-differ 1")
		changed := []MLIDChange{{MLID: 0xc001, Masks: []MaskChange{{SwitchRef: verify.SwitchRef{Switch: f.Node(3).GUID, Name: fabric.Name{Text: "switch 1,0"}}, Old: []int{1, 3}, New: []int{1, 3, 5}}}}}
		short.Diff(t, r.Multicast.Changed, changed)
		none := *a
		none.Multicast = &mft.Plan{Tables: mft.NewTables(f)}
		if r := compare(t, &none, a); r.Multicast.Masks != 3 || r.Multicast.MLIDs != 1 {
			t.Errorf("%+v", r.Multicast)
		}
		short.Equal(t, r.Multicast.Transient, 0, "a port more of a tree", r.Multicast)
		// Around a square of the mesh, one half of it before and the other one after.
		square := func(ports ...fabric.PortID) *state.State {
			x := *a
			x.Multicast = &mft.Plan{Tables: mft.NewTables(f)}
			slices.Sort(ports)
			x.Multicast.Tables.Add(0xc001, ports)
			return &x
		}
		cable := func(s, to fabric.NodeID) []fabric.PortID {
			ports, heads := f.SwitchLinks(s)
			p := ports[slices.Index(heads, to)]
			return []fabric.PortID{p, f.Peer(p)}
		}
		at := f.Peer(f.Port(host(0), 1))
		before := square(slices.Concat([]fabric.PortID{at}, cable(0, 1), cable(1, 4))...)
		after := square(slices.Concat([]fabric.PortID{at}, cable(0, 3), cable(3, 4))...)
		r = compare(t, before, after)
		want(t, r, "transient-multicast 1", "multicast-differ 4")
		if x := r.Multicast.Changed; r.Multicast.Transient != 1 || len(x) != 1 || !strings.Contains(x[0].Transient, `packets of sender "host 0,0"[1] loop: `) {
			t.Errorf("%+v", r.Multicast)
		}
	})
	t.Run("tables of one state", func(t *testing.T) {
		r := compare(t, &state.State{Fabric: f}, a)
		want(t, r, "not-compared 1", "not-compared 1", "not-compared 1", "not-compared 1")
		if r.LFTs != nil || r.Pairs != nil || r.Transition != nil || r.SL2VL != nil || r.PathSLs != nil || r.Multicast != nil {
			t.Errorf("%+v", r)
		}
	})
}

// Two hosts on neighbouring switches swap LIDs: packets for either go to and fro
// unless the switch that has the host now is written first, for one LID the one
// switch and for the other LID the other one.
func TestOppositeOrders(t *testing.T) {
	f := meshFabric(t, 2, 1)
	x, y := f.Port(2, 1), f.Port(3, 1) // the hosts of switches 0 and 1
	for _, lids := range [][2]fabric.LID{{10, 20}, {10, 100}} {
		wired := func(of, at fabric.LID) *state.State {
			lid, lmc := make([]fabric.LID, f.NumPorts()), make([]uint8, f.NumPorts())
			lid[f.Port(0, 0)], lid[f.Port(1, 0)], lid[x], lid[y] = 1, 2, of, at
			g := short.Must(f.WithLIDs(lid, lmc))(t)
			return route(t, lft.Minhop{}, g)
		}
		a, b := wired(lids[0], lids[1]), wired(lids[1], lids[0])
		r := compare(t, a, b)
		// A packet that is on its way when a switch is written turns back there.
		want(t, r, "transient-loop 2", "transient-credit-loop 1", "lids-differ 2", fmt.Sprintf("lfts-differ %d", r.LFTs.Blocks))
		s := []fabric.GUID{f.Node(0).GUID, f.Node(1).GUID}
		first := [][]fabric.GUID{{s[1]}, {s[0]}} // the first LID is at switch 1 now
		second := [][]fabric.GUID{{s[0]}, {s[1]}}
		blocks := []BlockOrder{{Block: 0, Passes: []Pass{{LIDs: lids[:1], Stages: first}, {LIDs: lids[1:], Stages: second}}}}
		if lids[1] > 63 {
			blocks = []BlockOrder{{Block: 0, Passes: []Pass{{Stages: first}}}, {Block: 1, Passes: []Pass{{Stages: second}}}}
		}
		if d := cmp.Diff(blocks, r.Transition.Order.Blocks); d != "" || r.Transition.Order.Kind != OrderBlocks {
			t.Errorf("%s %s", r.Transition.Order.Kind, d)
		}
		m := &mix{f: f, old: a.Tables, new: b.Tables, met: map[[2]int32]fabric.LID{}}
		for _, l := range lids {
			if replay(t, rand.New(rand.NewPCG(1, 0)), m, writesOf(m, r), l, true) {
				t.Errorf("LID %d loops on the way", l)
			}
		}
		// Without loops there is nothing to keep to.
		want(t, compare(t, a, a))
	}
}

// A LID that moves loops meanwhile when the order is not kept to; that is not also
// a credit loop.
func TestLoopIsNoCreditLoop(t *testing.T) {
	f := meshFabric(t, 2, 1)
	wired := func(of, at fabric.LID) *state.State {
		lid, lmc := make([]fabric.LID, f.NumPorts()), make([]uint8, f.NumPorts())
		lid[f.Port(0, 0)], lid[f.Port(1, 0)], lid[f.Port(2, 1)], lid[f.Port(3, 1)] = 1, 2, of, at
		g := short.Must(f.WithLIDs(lid, lmc))(t)
		return route(t, lft.Minhop{}, g)
	}
	r := compare(t, wired(10, 20), wired(30, 10))
	want(t, r, "transient-loop 1", "lids-differ 2", "lfts-differ 2")
	stages := [][]fabric.GUID{{f.Node(1).GUID}, {f.Node(0).GUID}}
	short.Diff(t, r.Transition.Order.Stages, stages)
	// A switch that is replaced has no old entries to loop by. Its GUID puts it
	// behind the other one.
	replaced := func(x *state.State) *state.State {
		c := copyOf(t, x.Fabric)
		c.b.Node(0).GUID += 0x1000
		c.ok(c.b.SetPort(0, 0, c.b.Node(0).GUID, 1, 0))
		y := &state.State{Fabric: c.build(), Tables: lft.NewTables(2, x.Tables.MaxLID())}
		copy(y.Tables.Row(0), x.Tables.Row(1))
		copy(y.Tables.Row(1), x.Tables.Row(0))
		return y
	}
	r = compare(t, wired(10, 20), replaced(wired(30, 10)))
	want(t, r, "transient-loop 1", "nodes-differ 1", "lids-differ 2", "lfts-differ 2")
	r = compare(t, wired(20, 10), replaced(wired(10, 30)))
	want(t, r, "nodes-differ 1", "lids-differ 2", "lfts-differ 2")
	// Nor is a loop of the new tables themselves a credit loop.
	a := wired(10, 20)
	b := &state.State{Fabric: a.Fabric, Tables: copyTables(a.Tables)}
	b.Tables.Row(1)[20] = 3
	r = compare(t, a, b)
	want(t, r, "pairs-lost 1", "transient-loop 1", "lfts-differ 1")
	if tr := r.Transition; tr.NewLoops != 1 || tr.OldLoops+tr.Loops != 0 || tr.CreditLoops.Management != 0 || tr.Order.Kind != OrderAny {
		t.Errorf("%+v", tr)
	}
}

// New tables that loop for a LID of which no pair arrived before either are a warning: no order of writes
// keeps packets from looping.
func TestNewLoopIsWarned(t *testing.T) {
	a := route(t, lft.Minhop{}, meshFabric(t, 2, 1))
	b := &state.State{Fabric: a.Fabric, Tables: copyTables(a.Tables)}
	l := a.Fabric.LID(a.Fabric.Port(3, 1))
	a.Tables.Row(0)[l], a.Tables.Row(1)[l] = fabric.NoPath, fabric.NoPath
	b.Tables.Row(1)[l] = b.Tables.Row(1)[a.Fabric.LID(a.Fabric.Port(2, 1))]
	r := compare(t, a, b)
	want(t, r, "transient-loop 1", "lfts-differ 2")
	if r.Verdict != verify.VerdictWarnings || r.Transition.Unordered != 1 {
		t.Errorf("verdict %s, %+v", r.Verdict, r.Transition)
	}
}

// A host with a LID beyond the old tables and path SLs.
func TestHostAdded(t *testing.T) {
	a := full(t)
	c := copyOf(t, a.Fabric)
	n, err := c.b.AddNode(fabric.Node{GUID: 0x900000, Type: fabric.CA, NumPorts: 1, Description: "more"})
	c.ok(err)
	c.ok(c.b.SetPort(n, 1, 0, a.Fabric.MaxLID()+1, 0))
	c.ok(c.b.Connect(n, 1, 8, 1, fabric.Link{}))
	b := route(t, lft.Minhop{}, c.build())
	b.SL2VL, b.PathSLs = lft.NewSL2VL(b.Fabric, lft.IdentityVLs(2)), lft.NewPathSLs(b.Fabric.NumSwitches(), b.Fabric.MaxLID())
	r := compare(t, a, b)
	if len(r.Nodes.New) != 1 || r.Nodes.Count() != 1 || len(r.Links.New) != 1 || r.Links.Count() != 1 || len(r.LIDs.Changed) != 0 ||
		r.LFTs.New != 9 || r.LFTs.Gone != 0 || r.Pairs.Lost != 0 {
		t.Errorf("%+v %+v %+v %+v", r.Nodes, r.Links, r.LFTs, r.Pairs)
	}
	r = compare(t, b, a)
	if len(r.Nodes.Gone) != 1 || len(r.Links.Gone) != 1 || r.LFTs.Gone != 9 || r.LFTs.New != 0 {
		t.Errorf("%+v %+v %+v %+v", r.Nodes, r.Links, r.LFTs, r.Pairs)
	}
}

// A node is not replaced by one that is wired otherwise, or is another kind.
func TestNotReplaced(t *testing.T) {
	f := meshFabric(t, 3, 3)
	old := &state.State{Fabric: f}
	for name, change := range map[string]func(p *plan) *plan{
		"cables": func(*plan) *plan {
			// Two cables more, besides the two of a corner and its host's.
			p := copyOf(t, f, f.Port(0, 1), f.Port(0, 2))
			n := p.b.Node(0)
			n.GUID, n.NumPorts = 0x900, 5
			p.ok(p.b.Connect(0, 3, 3, 3, fabric.Link{}))
			p.ok(p.b.Connect(0, 4, 1, 4, fabric.Link{}))
			return p
		},
		"type": func(p *plan) *plan {
			p.b.Node(13).GUID, p.b.Node(13).Type = 0x900, fabric.Router
			return p
		},
	} {
		r := compare(t, old, &state.State{Fabric: change(copyOf(t, f)).build()})
		if len(r.Nodes.Replaced) != 0 || len(r.Nodes.Gone) != 1 || len(r.Nodes.New) != 1 {
			t.Errorf("%s: %+v", name, r.Nodes)
		}
	}
	// Half of its cables are where the old one's are, which is not more.
	var a, b fabric.Builder
	ok := func(_ int, err error) {
		short.Check(t, err)
	}
	for i, at := range []*fabric.Builder{&a, &b} {
		ok(at.AddNode(fabric.Node{GUID: fabric.GUID(1 + i), Type: fabric.Switch, NumPorts: 4}))
		for g := range 4 {
			ok(at.AddNode(fabric.Node{GUID: fabric.GUID(0x100 + 16*g), Type: fabric.CA, NumPorts: 1}))
			if g < 2 || i == 1 {
				ok(0, at.Connect(0, fabric.PortNum(g+1), g+1, 1, fabric.Link{}))
			}
		}
	}
	x, err := a.Build()
	ok(0, err)
	y, err := b.Build()
	ok(0, err)
	for _, pair := range [][2]*fabric.Fabric{{x, y}, {y, x}} {
		if r := compare(t, &state.State{Fabric: pair[0]}, &state.State{Fabric: pair[1]}); len(r.Nodes.Replaced) != 0 {
			t.Errorf("%+v", r.Nodes)
		}
	}
}

// The old paths turn one way round a mesh, the new ones the other way: each free
// of credit loops, both together not.
func TestCreditLoopOfMixture(t *testing.T) {
	f := meshFabric(t, 2, 2)
	a, b := route(t, mesh.XY{}, f), route(t, mesh.XY{}, f)
	host := func(s fabric.NodeID) fabric.LID { return f.LID(f.Port(4+s, 1)) }
	// Switches 0 (0,0), 1 (0,1), 2 (1,0), 3 (1,1): y first instead of x first.
	b.Tables = copyTables(a.Tables)
	for s := range fabric.NodeID(4) {
		row := b.Tables.Row(s)
		row[host(3-s)] = row[host(s^1)]
	}
	r := compare(t, a, b)
	want(t, r, "transient-credit-loop 2", "lfts-differ 4")
	c := &r.Transition.CreditLoops
	if c.Old+c.New != 0 || len(c.Cycles) != 2 || len(c.Cycles[0]) != 4 {
		t.Fatalf("%+v", c)
	}
	count := map[string]int{}
	for _, h := range c.Cycles[0] {
		count[h.Table]++
	}
	if count["old"] == 0 || count["new"] == 0 {
		t.Errorf("a credit loop of %v", count)
	}
	// On VLs of their own they are apart.
	for i, s := range []*state.State{a, b} {
		s.SL2VL = lft.NewSL2VL(f, lft.IdentityVLs(2))
		s.PathSLs = lft.NewPathSLs(f.NumSwitches(), f.MaxLID())
		row := slices.Repeat([]fabric.SL{fabric.SL(i)}, int(f.MaxLID())+1)
		s.PathSLs.SetRow(row, 0, 1, 2, 3)
	}
	// But while SLs are old or new, and entries are, too, they are not.
	if c := &compare(t, a, b).Transition.CreditLoops; c.Count == 0 || c.Old+c.New != 0 {
		t.Errorf("%+v", c)
	}
}

// What cannot be compared is an error.
func TestInvalid(t *testing.T) {
	a := full(t)
	small := meshFabric(t, 2, 2)
	for name, b := range map[string]*state.State{
		"no fabric": {},
		"tables":    {Fabric: small, Tables: a.Tables},
		"SL-to-VL":  {Fabric: small, SL2VL: a.SL2VL},
		"path SLs":  {Fabric: small, PathSLs: a.PathSLs},
		"multicast": {Fabric: small, Multicast: a.Multicast},
	} {
		for _, pair := range [][2]*state.State{{a, b}, {b, a}} {
			if r, err := Compare(context.Background(), pair[0], pair[1]); err == nil || r != nil {
				t.Errorf("%s: no error", name)
			}
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if r, err := Compare(ctx, a, a); err != context.Canceled || r != nil {
		t.Errorf("cancelled: %v", err)
	}
}

// LIDs assigned again by another policy are no differences of entries.
func TestRenumbered(t *testing.T) {
	f := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 3}))(t)
	f = withLIDs(t, f)
	a := route(t, updown.Engine{}, f)
	n := int(f.MaxLID())
	lid, lmc := make([]fabric.LID, f.NumPorts()), make([]uint8, f.NumPorts())
	f.EndPorts(func(p fabric.PortID) { lid[p] = fabric.LID(2*n + 1 - int(f.LID(p))) })
	g := short.Must(f.WithLIDs(lid, lmc))(t)
	b := &state.State{Fabric: g, Tables: lft.NewTables(f.NumSwitches(), g.MaxLID())}
	for s := range fabric.NodeID(f.NumSwitches()) {
		for l := 1; l <= n; l++ {
			b.Tables.Row(s)[2*n+1-l] = a.Tables.Row(s)[l]
		}
	}
	r := compare(t, a, b)
	want(t, r, fmt.Sprintf("lids-differ %d", n), fmt.Sprintf("lfts-differ %d", r.LFTs.Blocks))
	if r.LFTs.Changed+r.LFTs.Gone+r.LFTs.New != 0 || r.Pairs.Changed != 0 {
		t.Errorf("%+v %+v", r.LFTs, r.Pairs)
	}
}

// Count is how many nodes that is.
func (d *NodeChanges) Count() int {
	return len(d.Gone) + len(d.New) + len(d.Replaced) + len(d.Changed)
}

// Count is how many cables that is.
func (d *LinkChanges) Count() int {
	return len(d.Gone) + len(d.New) + len(d.Moved) + len(d.Changed)
}

// The 720 switches and 3,456 hosts of a 3-level fat tree of radix 24, from one
// engine to another: a quarter of all entries change.
func BenchmarkCompareFatTree24(b *testing.B) {
	f := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 24, Levels: 3}))(b)
	f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{}))(b)
	var states [2]*state.State
	for i, e := range []lft.Engine{updown.Engine{}, lft.Minhop{}} {
		r := short.Must(e.Route(context.Background(), f, lft.Options{}))(b)
		states[i] = &state.State{Name: e.Name(), Fabric: f, Tables: r.Tables}
	}
	b.ReportAllocs()
	for b.Loop() {
		short.Must(Compare(context.Background(), states[0], states[1]))(b)
	}
}
