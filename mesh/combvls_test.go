package mesh

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
)

// TestCombVLs has B3: with V VLs there are V trunk rows, groups are divided over
// them by load, nothing waits in a cycle on any VL, and a group moved to another
// trunk without its VL closes one.
func TestCombVLs(t *testing.T) {
	g := generated(t, Spec{Dims: []int{8, 8}, Hosts: 1}, lft.LIDOptions{})
	groups := randomGroups(rand.New(rand.NewPCG(1, 1)), g.Fabric.CAPorts(), 200, 12)
	one := routed(t, g, lft.Options{})
	measure := func(r *lft.Routing, p *mft.Plan) int64 {
		c := short.Must(mft.Measure(t.Context(), r, p))(t)
		return c.MaxLink
	}
	before := measure(one, combed(t, Comb{Grid: g}, one, groups, mft.Options{}))
	for _, vls := range short.Part(1, []int{2, 4, 8}) {
		r := short.Must(AddVLs(one, vls))(t)
		p := combed(t, Comb{Grid: g, VLs: vls}, r, groups, mft.Options{})
		mustBeExact(t, groups, p)
		unicast := everySL(t, r)
		if hasCycle(together(unicast, r, p)) {
			t.Fatalf("%d VLs: a cycle", vls)
		}
		bySL := make(map[fabric.SL][]int)
		for i, x := range p.Trees {
			bySL[x.SL] = append(bySL[x.SL], i)
		}
		short.Equal(t, len(bySL), vls, "VLs: SLs")
		load := measure(r, p)
		t.Logf("%d VLs: %d copies on the busiest link, %d with one trunk; %q", vls, load, before, p.Notes)
		if load >= before {
			t.Errorf("%d VLs: %d copies on the busiest link, %d with one", vls, load, before)
		}
		before = load
		// The busiest groups of two trunks with their SLs exchanged.
		cycles := 0
		for _, i := range bySL[0] {
			sl := p.Trees[i].SL
			p.Trees[i].SL = 1
			if hasCycle(together(unicast, r, p)) {
				cycles++
			}
			p.Trees[i].SL = sl
			if cycles > 3 {
				break
			}
		}
		if cycles == 0 {
			t.Errorf("%d VLs: no group of trunk 0 closes a cycle on VL 1", vls)
		}
	}
}

// everySL is waitsFor with every SL for every path.
func everySL(t testing.TB, r *lft.Routing) map[channel]map[channel]bool {
	t.Helper()
	all := make(map[channel]map[channel]bool)
	for sl := range fabric.SL(lft.NumSLs) {
		x := *r
		x.PathSLs = lft.NewPathSLs(r.Fabric.NumSwitches(), r.Fabric.MaxLID())
		row := slices.Repeat([]fabric.SL{sl}, int(r.Fabric.MaxLID())+1)
		for s := range fabric.NodeID(r.Fabric.NumSwitches()) {
			x.PathSLs.SetRow(row, s)
		}
		for c, set := range waitsFor(t, &x) {
			if all[c] == nil {
				all[c] = make(map[channel]bool)
			}
			for d := range set {
				all[c][d] = true
			}
		}
	}
	return all
}

// TestCombSLs has groups with SLs of their own: these stay, and groups whose SLs
// meet on a VL share a trunk.
func TestCombSLs(t *testing.T) {
	g := generated(t, Spec{Dims: []int{4, 6}, Hosts: 1}, lft.LIDOptions{})
	r := short.Must(AddVLs(routed(t, g, lft.Options{}), 4))(t)
	groups := randomGroups(rand.New(rand.NewPCG(2, 2)), g.Fabric.CAPorts(), 60, 9)
	for i := range groups {
		groups[i].SL = fabric.SL([]int{5, 1, 6, 10, 0}[i%5]) // VLs 1, 1, 2, 2, 0
	}
	for _, vls := range []int{0, 1, 3} {
		c, list := short.Must2(Comb{Grid: g, VLs: vls}.Choose(t.Context(), r, groups))(t)
		at := make(map[fabric.SL]string)
		for _, lane := range c.lanes {
			for _, sl := range lane.sls {
				at[sl] = lane.tree.trunk.String()
			}
		}
		if at[5] != at[1] || at[6] != at[10] {
			t.Errorf("SLs of one VL on trunks %v", at)
		}
		moved := 0
		for i := range groups {
			switch {
			case groups[i].SL != 0 && list[i].SL != groups[i].SL:
				t.Errorf("group %d of SL %d has SL %d", i, groups[i].SL, list[i].SL)
			case list[i].SL != groups[i].SL:
				moved++
			}
		}
		if (moved > 0) != (vls == 3) {
			t.Errorf("%d VLs: %d groups of SL 0 moved", vls, moved)
		}
		other := slices.Clone(list[:1])
		other[0].SL = 15
		var no *mft.RefusedError
		if q, err := c.Build(t.Context(), r, other, mft.Options{}); q != nil || !errors.As(err, &no) || no.Reason != "no trunk was chosen for SL 15" {
			t.Errorf("a group with another SL: %v, %v", q, err)
		}
		p := combed(t, c, r, list, mft.Options{})
		mustBeExact(t, groups, p)
		if hasCycle(together(everySL(t, r), r, p)) {
			t.Error("a cycle")
		}
		// Parts of the list get the same trees.
		for _, part := range [][]mft.Group{list[:7], list[30:], {list[2]}, {list[3]}} {
			q := combed(t, c, r, part, mft.Options{})
			for i := range q.Trees {
				k := slices.IndexFunc(p.Trees, func(x mft.Tree) bool { return x.Name == q.Trees[i].Name })
				if !slices.Equal(p.Tables.Ports(p.Trees[k].MLID), q.Tables.Ports(q.Trees[i].MLID)) || p.Trees[k].SL != q.Trees[i].SL {
					t.Errorf("%s has another tree in part of the list", q.Trees[i].Name)
				}
			}
		}
	}
}

// TestCombDivide has groups without an SL keep away from the trunk that is busy.
func TestCombDivide(t *testing.T) {
	g := generated(t, Spec{Dims: []int{6, 6}, Hosts: 1}, lft.LIDOptions{})
	r := short.Must(AddVLs(routed(t, g, lft.Options{}), 2))(t)
	hosts := slices.Sorted(slices.Values(g.Fabric.CAPorts()))
	for _, busy := range []fabric.SL{1, 3} {
		var groups []mft.Group
		for i := range 20 {
			groups = append(groups, mft.Group{Name: fmt.Sprint("busy ", i), Receivers: hosts, Senders: hosts, SL: busy})
		}
		for i := range 10 {
			groups = append(groups, mft.Group{Name: fmt.Sprint("free ", i), Receivers: hosts, Senders: hosts[i : i+9]})
		}
		p := combed(t, Comb{Grid: g, VLs: 2}, r, groups, mft.Options{})
		away := 0
		for _, x := range p.Trees {
			if x.SL == 0 {
				away++
			}
		}
		short.Equal(t, away, 10, "of 10 groups keep away from SL", busy)
	}
}

// TestCombRings has combs on tori with datelines, on VL 0, on VLs that AddVLs
// adds, and on the VL of closing cables, where there can be none; and XY and YX
// on VLs of their own.
func TestCombRings(t *testing.T) {
	for name, shape := range shapes() {
		if len(shape.dims) < 2 {
			continue
		}
		if name == "four rings" {
			shape.dims = []int{4, 4, 4, 4} // under -short, too
		}
		t.Run(name, func(t *testing.T) {
			g := grow(t, shape)
			r := routed(t, g, lft.Options{})
			groups := randomGroups(rand.New(rand.NewPCG(3, 3)), endPorts(g.Fabric), 60, 9)
			inUse := 1
			if r.SL2VL != nil {
				inUse = r.SL2VL.VLs()
			}
			vls := 4
			if inUse > 2 {
				vls = 8
			}
			more, err := AddVLs(r, vls)
			if name == "four rings" {
				if err == nil || !strings.Contains(err.Error(), "16 SLs, of 16") {
					t.Errorf("AddVLs: %v", err)
				}
				return
			}
			short.Check(t, err)
			short.Equal(t, more.SL2VL.VLs(), vls, "VLs")
			p := combed(t, Comb{Grid: g, VLs: 3}, more, groups, mft.Options{})
			mustBeExact(t, groups, p)
			used := make(map[fabric.SL]bool)
			for _, x := range p.Trees {
				used[x.SL] = true
			}
			short.Equal(t, len(used), 3, "SLs", used)
			unicast := waitsFor(t, more)
			if more.PathSLs == nil {
				unicast = everySL(t, more)
			}
			if hasCycle(together(unicast, more, p)) {
				t.Error("a cycle")
			}
		})
	}
	g := generated(t, Spec{Dims: []int{6, 6}, Wrap: []bool{true, true}, Hosts: 1}, lft.LIDOptions{})
	r := routed(t, g, lft.Options{})
	hosts := slices.Sorted(slices.Values(g.Fabric.CAPorts()))
	for sl, safe := range []bool{true, false, false, false} {
		groups := []mft.Group{{Name: "all", Receivers: hosts, Senders: hosts, SL: fabric.SL(sl)}}
		p, err := Comb{Grid: g}.Build(t.Context(), r, groups, mft.Options{})
		var no *mft.RefusedError
		switch {
		case safe && err != nil:
			t.Error(err)
		case !safe && (!errors.As(err, &no) || !strings.Contains(no.Reason, "closes a cycle of cables") || !slices.Contains(no.Suggest, "union-merge")):
			t.Errorf("SL %d: %v, %v", sl, p, err)
		}
		for y := range 6 { // whatever is refused is really unsafe
			bare := combed(t, onTrunk(g, -1, y), &lft.Routing{Engine: "none", Fabric: r.Fabric, Tables: lft.NewTables(36, r.Fabric.MaxLID())}, groups, mft.Options{})
			if hasCycle(together(waitsFor(t, r), r, bare)) == safe {
				t.Errorf("SL %d, trunk row %d: safe %v", sl, y, !safe)
			}
		}
	}
}

// TestCombTwoOrders has XY on VL 0 and YX on VL 1, for an LMC of 1, with a trunk
// on each.
func TestCombTwoOrders(t *testing.T) {
	g := generated(t, Spec{Dims: []int{5, 4}, Hosts: 2}, lft.LIDOptions{LMC: 1})
	r := routed(t, g, lft.Options{})
	groups := randomGroups(rand.New(rand.NewPCG(4, 4)), g.Fabric.CAPorts(), 60, 9)
	p := combed(t, Comb{Grid: g, VLs: 2}, r, groups, mft.Options{})
	mustBeExact(t, groups, p)
	if hasCycle(together(waitsFor(t, r), r, p)) {
		t.Error("a cycle")
	}
	t.Log(p.Notes)
}

// TestCombRefusals has what cannot be.
func TestCombRefusals(t *testing.T) {
	g := generated(t, Spec{Dims: []int{3, 3}, Hosts: 1}, lft.LIDOptions{})
	r := routed(t, g, lft.Options{})
	ports := slices.Sorted(slices.Values(g.Fabric.CAPorts()))
	groups := []mft.Group{{Name: "a", Receivers: ports, Senders: ports}, {Name: "b", Receivers: ports[:2], Senders: ports[5:]}}
	two := short.Must(AddVLs(r, 2))(t)
	dropping := *two
	dropping.SL2VL = two.SL2VL.Clone()
	for out := range fabric.PortID(g.Fabric.NumPorts()) {
		m := lft.IdentityVLs(2)
		m[1], m[5] = lft.DropVL, lft.DropVL
		dropping.SL2VL.SetOut(out, m)
	}
	loop := short.Must(lft.Minhop{}.Route(t.Context(), generated(t, Spec{Dims: []int{5}, Wrap: []bool{true}, Hosts: 1}, lft.LIDOptions{}).Fabric, lft.Options{}))(t)
	other := generated(t, Spec{Dims: []int{3, 3}, Hosts: 2}, lft.LIDOptions{})
	ring := func() *lft.Routing {
		f := short.Must(fabricOfTriangle())(t)
		return &lft.Routing{Engine: "minhop", Fabric: f, Tables: lft.NewTables(f.NumSwitches(), 0)}
	}()
	withSL := slices.Clone(groups)
	withSL[1].SL = 5
	for _, tt := range []struct {
		c      Comb
		r      *lft.Routing
		groups []mft.Group
		want   string
		plain  bool // no *mft.RefusedError
	}{
		{Comb{VLs: 2}, r, groups, "comb cannot serve group a: 2 trunks take 2 VLs, and routing xy has one VL; use union-merge or updn-tree", false},
		{Comb{VLs: 3}, two, groups, "3 trunks are wanted, and only 2 SLs have no VL in common", false},
		{Comb{}, &dropping, withSL, "group b: the SL-to-VL tables drop packets of its SL 5", false},
		{Comb{}, loop, []mft.Group{{Name: "a"}}, `the unicast paths alone wait for each other in a cycle: "switch`, false},
		{Comb{}, ring, []mft.Group{{Name: "a"}}, "comb cannot serve group a: ", false},
		{Comb{Grid: other}, r, groups, "a grid of another fabric", true},
	} {
		p, err := tt.c.Build(t.Context(), tt.r, tt.groups, mft.Options{})
		var no *mft.RefusedError
		if p != nil || err == nil || !strings.Contains(err.Error(), tt.want) || errors.As(err, &no) == tt.plain {
			t.Errorf("%+v: %v, %v; want %q", tt.c, p, err, tt.want)
		}
	}
	if p, err := (Comb{}).Build(t.Context(), ring, nil, mft.Options{}); err != nil || len(p.Trees) != 0 {
		t.Errorf("no groups: %v, %v", p, err)
	}
	var full *mft.BudgetError
	if _, err := (Comb{}).Build(t.Context(), r, groups, mft.Options{Capacity: 2}); !errors.As(err, &full) {
		t.Errorf("one MLID for two groups: %v", err)
	}
}

// fabricOfTriangle is three switches in a ring and one in its middle.
func fabricOfTriangle() (*fabric.Fabric, error) {
	var b fabric.Builder
	var s [4]int
	var err error
	for i := range s {
		if s[i], err = b.AddNode(fabric.Node{GUID: fabric.GUID(i + 1), Type: fabric.Switch, NumPorts: 3, Description: fmt.Sprint("switch ", i)}); err != nil {
			return nil, err
		}
	}
	used := [4]fabric.PortNum{}
	for i := range s {
		for k := range i {
			used[i]++
			used[k]++
			if err := b.Connect(s[i], used[i], s[k], used[k], fabric.Link{Width: 4, Speed: fabric.QDR}); err != nil {
				return nil, err
			}
		}
	}
	return b.Build()
}
