package mesh

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

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
	tooHigh := slices.Clone(groups)
	tooHigh[1].SL = lft.NumSLs
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
		{Comb{}, two, tooHigh, `group "b" has SL 16, want 0 to 15`, true},
	} {
		p, err := tt.c.Build(t.Context(), tt.r, tt.groups, mft.Options{})
		var no *mft.RefusedError
		if p != nil || err == nil || !strings.Contains(err.Error(), tt.want) || errors.As(err, &no) == tt.plain {
			t.Errorf("%+v: %v, %v; want %q", tt.c, p, err, tt.want)
		}
	}
	// A grid of the same cables serves a fabric with other LIDs.
	h := generated(t, Spec{Dims: []int{3, 3}, Hosts: 1}, lft.LIDOptions{LMC: 1})
	one := []mft.Group{{Name: "a", Receivers: h.Fabric.CAPorts(), Senders: h.Fabric.CAPorts()}}
	a, b := short.Must((Comb{}).Build(t.Context(), routed(t, h, lft.Options{}), one, mft.Options{}))(t), short.Must((Comb{Grid: g}).Build(t.Context(), routed(t, h, lft.Options{}), one, mft.Options{}))(t)
	short.EqualList(t, a.Tables.Ports(a.Trees[0].MLID), b.Tables.Ports(b.Trees[0].MLID))
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

// connected is the CA ports by connected part of the fabric, the largest first.
func connected(f *fabric.Fabric) [][]fabric.PortID {
	part := make([]int, f.NumSwitches())
	n := 0
	for s := range part {
		if part[s] != 0 {
			continue
		}
		n++
		part[s] = n
		for queue := []fabric.NodeID{fabric.NodeID(s)}; len(queue) > 0; queue = queue[1:] {
			_, to := f.SwitchLinks(queue[0])
			for _, u := range to {
				if part[u] == 0 {
					part[u] = n
					queue = append(queue, u)
				}
			}
		}
	}
	list := make([][]fabric.PortID, n)
	for i, p := range f.CAPorts() {
		k := part[f.CASwitches()[i]] - 1
		list[k] = append(list[k], p)
	}
	for _, ports := range list {
		slices.Sort(ports)
	}
	slices.SortStableFunc(list, func(a, b []fabric.PortID) int { return len(b) - len(a) })
	return list
}

// TestCombFaults has B6: every cable and switch of a 4x4 mesh missing, each
// alone and in pairs, on repaired XY routing. Every group of hosts that are still
// connected gets an exact tree, which with unicast closes no cycle on any VL:
// on a VL without unicast if need be.
func TestCombFaults(t *testing.T) {
	type fault struct{ at, dim int } // dim 2 for a switch
	var faults []fault
	for at := range 16 {
		for dim := range 2 {
			if at/4 < 3 && dim == 0 || at%4 < 3 && dim == 1 {
				faults = append(faults, fault{at, dim})
			}
		}
		faults = append(faults, fault{at, 2})
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	made, refused, cut := 0, 0, 0
	for i, a := range faults {
		for k, b := range faults[:i+1] {
			if k != i && (i+k)%short.Of(6, 30) != 0 {
				continue // a sixth of the pairs, or less
			}
			g := grow(t, plot{dims: []int{4, 4},
				missing: func(at, d int) bool { return fault{at, d} == a || fault{at, d} == b },
				absent:  func(at int) bool { return fault{at, 2} == a || fault{at, 2} == b }})
			r, err := routeXY(t.Context(), g, lft.Options{Repair: true})
			if err != nil {
				t.Fatal(a, b, err)
			}
			parts := connected(g.Fabric)
			groups := append(randomGroups(rnd, parts[0], 5, 6), mft.Group{Name: "all", Receivers: parts[0], Senders: parts[0]})
			c := Comb{Grid: g}
			p, err := c.Build(t.Context(), r, groups, mft.Options{})
			if err != nil {
				refused++
				if r.PathSLs == nil {
					r.PathSLs = lft.NewPathSLs(g.Fabric.NumSwitches(), g.Fabric.MaxLID())
				}
				r = short.Must(AddVLs(r, 4))(t)
				c.VLs = 2
				p = combed(t, c, r, groups, mft.Options{})
			}
			made++
			mustBeExact(t, groups, p)
			if hasCycle(together(waitsFor(t, r), r, p)) {
				t.Fatal(a, b, "a cycle")
			}
			if len(parts) > 1 {
				cut++
				groups[2].Receivers = slices.Sorted(slices.Values(append(parts[1][:1:1], groups[2].Receivers...)))
				_, err := c.Build(t.Context(), r, groups, mft.Options{})
				var no *mft.RefusedError
				if !errors.As(err, &no) || no.Group != "group 2" || !strings.Contains(no.Reason, "of the cables that are left none joins") {
					t.Fatal(a, b, err)
				}
			}
		}
	}
	t.Logf("%d grids, on %d a VL without unicast is needed, on %d not all hosts are connected", made, refused, cut)
	if made < short.Of(150, 60) || refused > made/6 || cut == 0 {
		t.Errorf("%d grids, on %d a VL without unicast is needed, on %d not all hosts are connected", made, refused, cut)
	}
}

// TestCombProperties has random grids with parallel cables and missing parts,
// repaired or not, SLs, trunks: what is built is exact and closes no cycle.
func TestCombProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		shape := drawPlot(rt, true)
		shape.lmc = rapid.IntRange(0, 1).Draw(rt, "LMC")
		g := grow(t, shape)
		r, err := routeXY(t.Context(), g, lft.Options{Repair: rapid.Bool().Draw(rt, "repair"), NoWrap: rapid.Bool().Draw(rt, "no wrap")})
		var outside *lft.DomainError
		if errors.As(err, &outside) { // with parts missing; repair routes around them
			r, err = routeXY(t.Context(), g, lft.Options{Repair: true, NoWrap: true})
		}
		short.Check(rt, err)
		c := Comb{Grid: g}
		if rapid.Bool().Draw(rt, "VLs") {
			if more, err := AddVLs(r, 8); err == nil {
				r, c.VLs = more, rapid.IntRange(1, 5).Draw(rt, "trunks")
			}
		}
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "groups"), 1))
		var groups []mft.Group
		for i, part := range connected(g.Fabric) {
			if len(part) > 0 {
				for _, x := range randomGroups(rnd, part, 8, 6) {
					x.Name += fmt.Sprint(" of part ", i)
					groups = append(groups, x)
				}
			}
		}
		p, err := c.Build(t.Context(), r, groups, mft.Options{Balance: rapid.Bool().Draw(rt, "balance")})
		if err != nil {
			var no *mft.RefusedError
			if !errors.As(err, &no) || p != nil {
				rt.Fatal(err)
			}
			if len(g.Missing) == 0 && shape.missing == nil && shape.absent == nil && c.VLs <= 1 {
				rt.Fatal("a whole grid: ", err)
			}
			return
		}
		mustBeExact(t, groups, p)
		unicast := waitsFor(t, r)
		if r.SL2VL != nil && r.PathSLs == nil {
			unicast = everySL(t, r)
		}
		if hasCycle(together(unicast, r, p)) {
			rt.Fatal("a cycle")
		}
	})
}

// delivery is the switch that has an end port, or a cable to it, and the port
// by which the switch delivers; NoNode when no switch does.
func delivery(f *fabric.Fabric, port fabric.PortID) (fabric.NodeID, fabric.PortNum) {
	exit := f.Attachment(port)
	if exit == fabric.NoPort {
		return fabric.NoNode, 0
	}
	return f.Owner(exit), f.Num(exit)
}

// AddVLs is r with tables for vls data VLs, for combs with a trunk on each (see
// Comb.VLs). Where all paths may use any SL, so they may afterwards, and SL k is
// VL k modulo vls everywhere. Where paths have SLs, these stay, with their VLs,
// and between switches the SLs that follow the highest one of any path are the
// VLs that are left, each the same VL everywhere: no unicast packets are on
// those. r does not change. A routing on one VL gets such VLs when it has path
// SLs, as those of lft.NewPathSLs, which are all 0.
//
// Errors are lft.CheckVLCount's, or say that the paths leave no VL or SL.
func AddVLs(r *lft.Routing, vls int) (*lft.Routing, error) {
	if err := lft.CheckVLCount(vls); err != nil {
		return nil, err
	}
	x, f := *r, r.Fabric
	switch {
	case r.SL2VL == nil && r.PathSLs == nil:
		x.SL2VL = lft.NewSL2VL(f, lft.IdentityVLs(vls))
		return &x, nil
	case r.SL2VL == nil:
		x.SL2VL = lft.NewSL2VL(f, lft.ConstantVL(0))
	case r.PathSLs == nil:
		return nil, fmt.Errorf("routing %s has SL-to-VL tables, and its paths may use any SL: none is left for more VLs", r.Engine)
	default:
		x.SL2VL = r.SL2VL.Clone()
	}
	inUse, sl := x.SL2VL.VLs(), firstFreeSL(r.PathSLs)
	switch {
	case vls <= inUse:
		return nil, fmt.Errorf("routing %s has %d VLs, which leaves none of %d", r.Engine, inUse, vls)
	case sl+vls-inUse > lft.NumSLs:
		return nil, fmt.Errorf("routing %s has %d SLs, of %d, which is too many for %d VLs more", r.Engine, sl, lft.NumSLs, vls-inUse)
	}
	for in, out := range x.SL2VL.PortPairs() {
		if peer := f.Peer(out); !f.IsSwitch(f.Owner(out)) || !f.IsSwitch(f.Owner(peer)) {
			continue
		}
		m := *x.SL2VL.At(in, out)
		for vl := inUse; vl < vls; vl++ {
			m[sl+vl-inUse] = fabric.VL(vl)
		}
		x.SL2VL.Set(in, out, m)
	}
	return &x, nil
}
