package updown

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// figure1 is the network of figure 1 of the SPAM paper, vertex by vertex:
// GUIDs are the numbers in the figure; 5 and 8 to 11 are processors. Where the
// figure leaves the parent of 4 open it is 1.
func figure1(t *testing.T) (*fabric.Fabric, map[int]fabric.NodeID) {
	t.Helper()
	var b fabric.Builder
	index := make(map[int]int)
	for v := 1; v <= 11; v++ {
		n := fabric.Node{GUID: fabric.GUID(v), Type: fabric.Switch, NumPorts: 8, Description: fmt.Sprint(v)}
		if v == 5 || v >= 8 {
			n.Type, n.NumPorts = fabric.CA, 1
		}
		i := short.Must(b.AddNode(n))(t)
		index[v] = i
	}
	used := make(map[int]fabric.PortNum)
	for _, e := range [][2]int{{1, 2}, {1, 3}, {1, 4}, {2, 5}, {4, 6}, {4, 7}, {6, 8}, {6, 9}, {6, 10}, {7, 11}, {2, 3}, {3, 4}} {
		used[e[0]]++
		used[e[1]]++
		short.Check(t, b.Connect(index[e[0]], used[e[0]], index[e[1]], used[e[1]], fabric.Link{}))
	}
	f, err := b.Build()
	f = routable(t, f, err)
	node := make(map[int]fabric.NodeID)
	for v := 1; v <= 11; v++ {
		node[v], _ = f.NodeByGUID(fabric.GUID(v))
	}
	return f, node
}

// endPort is the end port of a node with one.
func endPort(f *fabric.Fabric, n fabric.NodeID) fabric.PortID {
	if f.IsSwitch(n) {
		return f.PortBase(n)
	}
	return f.Port(n, 1)
}

// vertices is the numbers in figure 1 of the switches on the way to a LID.
func vertices(t *testing.T, r *lft.Routing, from fabric.NodeID, to fabric.PortID) []int {
	t.Helper()
	f := r.Fabric
	var way []int
	for at := from; ; {
		way = append(way, int(f.Node(at).GUID))
		out := r.Tables.Row(at)[f.LID(to)]
		if out == fabric.ManagementPort || f.Peer(f.Port(at, out)) == to {
			return way
		}
		if at = f.Owner(f.Peer(f.Port(at, out))); len(way) > 20 {
			t.Fatalf("way %v does not end", way)
		}
	}
}

// paperTree is a spanning tree of the paper as it says: breadth-first from a root, each switch below
// the lowest of its neighbours on the level above. It shares no code with the engine.
type paperTree struct {
	f             *fabric.Fabric
	level, parent map[fabric.NodeID]int
}

func newPaperTree(f *fabric.Fabric, root fabric.NodeID) *paperTree {
	x := &paperTree{f, map[fabric.NodeID]int{root: 0}, map[fabric.NodeID]int{root: -1}}
	for row := []fabric.NodeID{root}; len(row) > 0; {
		var next []fabric.NodeID
		for _, s := range row {
			for p := fabric.PortNum(1); p <= f.Node(s).NumPorts; p++ {
				q := f.Peer(f.Port(s, p))
				if q == fabric.NoPort || !f.IsSwitch(f.Owner(q)) {
					continue
				}
				v := f.Owner(q)
				if _, seen := x.level[v]; !seen {
					x.level[v], x.parent[v] = x.level[s]+1, int(s)
					next = append(next, v)
				} else if x.level[v] == x.level[s]+1 && int(s) < x.parent[v] {
					x.parent[v] = int(s)
				}
			}
		}
		row = next
	}
	return x
}

// kind is the paper's kind of a channel from one switch to another: 1 up, 2 down cross, 3 down tree.
func (x *paperTree) kind(u, v fabric.NodeID) int {
	switch {
	case x.parent[v] == int(u):
		return 3
	case x.level[v] < x.level[u], x.level[v] == x.level[u] && x.f.Node(u).GUID > x.f.Node(v).GUID:
		return 1
	}
	return 2
}

// illegal counts the paths between switches that go back to an earlier kind of channel.
func (x *paperTree) illegal(t *testing.T, r *lft.Routing) (count int) {
	t.Helper()
	for _, to := range x.f.Switches() {
		for _, from := range x.f.Switches() {
			last, bad := 1, false
			hops := 0
			for at := from; at != to; {
				next := x.f.Owner(x.f.Peer(x.f.Port(at, r.Tables.Row(at)[x.f.LID(x.f.PortBase(to))])))
				k := x.kind(at, next)
				bad = bad || k < last
				last, at = k, next
				if hops++; hops > 200 {
					t.Fatal("a path that does not end")
				}
			}
			if bad {
				count++
			}
		}
	}
	return count
}

// TestSPAMOrder has routings of random networks with a root and without, where it is the centre: all
// paths go up, down cross channels and down the tree of the paper, and multicast trees keep to
// that tree. The balanced order has lower loads, and paths that the paper's order does not have.
func TestSPAMOrder(t *testing.T) {
	var loads [2]uint64
	illegal, trees := 0, 0
	for seed := range uint64(short.Of(40, 10)) {
		rng := rand.New(rand.NewPCG(seed, 9))
		f, err := gen.Lattice(12+rng.IntN(30), seed)
		if seed%2 == 1 {
			f, err = gen.Irregular(gen.IrregularSpec{Switches: 10 + rng.IntN(30), Degree: 4, Hosts: 40, Seed: seed})
		}
		f = routable(t, f, err)
		centre, least := fabric.NodeID(0), 1000
		for s := range fabric.NodeID(f.NumSwitches()) {
			far := 0
			for _, l := range newPaperTree(f, s).level {
				far = max(far, l)
			}
			if far < least {
				centre, least = s, far
			}
		}
		other := fabric.NodeID(rng.IntN(f.NumSwitches()))
		for _, tt := range []struct {
			root fabric.NodeID
			opt  lft.Options
		}{{centre, lft.Options{}}, {other, lft.Options{Roots: []fabric.NodeID{other}}}, {centre, lft.Options{Balanced: true}}} {
			r := short.Must(SPAM{}.Route(t.Context(), f, tt.opt))(t)
			x := newPaperTree(f, tt.root)
			n := x.illegal(t, r)
			if tt.opt.Balanced {
				illegal += n
				loads[1] += lft.GreatestLoad(f, r.Tables)
				continue
			}
			if n > 0 {
				t.Errorf("seed %d, root %s: %d paths are illegal in the paper's tree", seed, f.Name(tt.root), n)
			}
			if tt.opt.Roots == nil {
				loads[0] += lft.GreatestLoad(f, r.Tables)
			}
			hosts := f.CAPorts()[:6]
			p := short.Must(SPAMTree{}.Build(t.Context(), r, []mft.Group{{Name: "g", Receivers: hosts, Senders: hosts}}, mft.Options{}))(t)
			for _, p := range p.Tables.Ports(p.Trees[0].MLID) {
				u, v := f.Owner(p), f.Owner(f.Peer(p))
				if f.IsSwitch(v) {
					trees++
					if x.parent[u] != int(v) && x.parent[v] != int(u) {
						t.Errorf("seed %d: a mask leads from %s to %s, outside of the tree", seed, f.Name(u), f.Name(v))
					}
				}
			}
		}
	}
	if loads[1] >= loads[0] || illegal == 0 || trees == 0 {
		t.Errorf("sums of greatest loads %v, %d illegal paths with the balanced order, %d links of trees", loads, illegal, trees)
	}
}

// TestFigure1 is the example of the paper: the directions, the tree, the
// extended ancestors of 4, the way from 5 to 4, the multicast from 5: 4 sends to
// 6 and 7, these to their processors, and back up only what comes from there.
func TestFigure1(t *testing.T) {
	f, node := figure1(t)
	r := short.Must(SPAM{}.Route(context.Background(), f, lft.Options{Roots: []fabric.NodeID{node[1]}}))(t)
	order := short.Must(OrderOf(r))(t)
	rank := func(v int) int32 { return order.Rank[node[v]] }
	for _, up := range [][2]int{{2, 1}, {3, 1}, {4, 1}, {6, 4}, {7, 4}, {3, 2}, {4, 3}} {
		if rank(up[0]) < rank(up[1]) {
			t.Errorf("%d to %d is down, want up", up[0], up[1])
		}
	}
	d := newDirections(f, order)
	parent := d.findParents()
	for v, want := range map[int]int{2: 1, 3: 1, 4: 1, 6: 4, 7: 4} {
		short.Equal(t, parent[rank(v)], rank(want), "the parent of", v, "has rank", want, "'s")
	}
	short.Equal(t, parent[rank(1)], mft.NoParent, "the root has a parent")
	x := newSpamPaths(d, parent)
	x.growTo(rank(4))
	var extended []int
	for _, v := range []int{1, 2, 3, 4, 6, 7} {
		if x.down[rank(v)] != fabric.Unreachable {
			extended = append(extended, v)
		}
	}
	if want := []int{1, 2, 3, 4}; !slices.Equal(extended, want) {
		t.Errorf("extended ancestors of 4: %v, want %v", extended, want)
	}
	for _, way := range [][]int{{2, 3, 4}, {1, 4}, {3, 4}, {6, 4}, {2, 3, 4, 6}, {7, 4, 6}, {3, 2}, {6, 4, 1}} {
		got := vertices(t, r, node[way[0]], endPort(f, node[way[len(way)-1]]))
		short.EqualList(t, got, way, "way")
	}

	var receivers []fabric.PortID
	for v := 8; v <= 11; v++ {
		receivers = append(receivers, endPort(f, node[v]))
	}
	slices.Sort(receivers)
	masks := func(senders ...fabric.PortID) map[int][]int {
		p := short.Must(SPAMTree{}.Build(context.Background(), r, []mft.Group{{Name: "g", Receivers: receivers, Senders: senders}}, mft.Options{}))(t)
		m := make(map[int][]int)
		for _, port := range p.Tables.Ports(p.Trees[0].MLID) {
			v := int(f.Node(f.Owner(port)).GUID)
			m[v] = append(m[v], int(f.Node(f.Owner(f.Peer(port))).GUID))
			slices.Sort(m[v])
		}
		return m
	}
	for _, test := range []struct {
		from int
		want map[int][]int
	}{
		{5, map[int][]int{2: {1}, 1: {4}, 4: {6, 7}, 6: {4, 8, 9, 10}, 7: {4, 11}}},
		{8, map[int][]int{4: {6, 7}, 6: {4, 8, 9, 10}, 7: {4, 11}}},
	} {
		if got := masks(endPort(f, node[test.from])); fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("masks %v from %d, want %v", got, test.from, test.want)
		}
	}
}

// spamFabric is a random fabric of some kind. Irregular ones have parallel
// cables.
func spamFabric(t testing.TB, rt *rapid.T) *fabric.Fabric {
	seed := rapid.Uint64Range(0, 1<<32).Draw(rt, "seed")
	switch rapid.IntRange(0, 3).Draw(rt, "kind") {
	case 0:
		f, err := gen.Lattice(rapid.IntRange(2, 40).Draw(rt, "switches"), seed)
		return routable(t, f, err)
	case 1:
		f, err := gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2})
		if err == nil {
			f, err = gen.DropLinks(f, rapid.IntRange(0, 6).Draw(rt, "missing"), seed)
		}
		return routable(t, f, err)
	case 2:
		f, err := mesh.Generate(mesh.Spec{Dims: []int{3, 4}, Wrap: []bool{true, true}, Hosts: 1})
		return routable(t, f, err)
	}
	rnd := rand.New(rand.NewPCG(seed, 1))
	n := rapid.IntRange(2, 25).Draw(rt, "switches")
	var b fabric.Builder
	node := func(typ fabric.NodeType, ports int) int {
		return short.Must(b.AddNode(fabric.Node{GUID: fabric.GUID(rnd.Uint64()>>1 | 1), Type: typ, NumPorts: fabric.PortNum(ports)}))(t)
	}
	used := make([]fabric.PortNum, n)
	join := func(i, j int) {
		used[i]++
		p := used[i]
		used[j]++
		short.Check(t, b.Connect(i, p, j, used[j], fabric.Link{}))
	}
	for i := range n {
		node(fabric.Switch, 200)
		if i > 0 {
			for range 1 + rnd.IntN(2) {
				join(i, rnd.IntN(i))
			}
		}
	}
	for range rnd.IntN(2 * n) {
		if i, j := rnd.IntN(n), rnd.IntN(n); i != j {
			join(i, j)
		}
	}
	for i := range n {
		for range rnd.IntN(3) {
			used[i]++
			short.Check(t, b.Connect(i, used[i], node(fabric.CA, 1), 1, fabric.Link{}))
		}
	}
	f, err := b.Build()
	return routable(t, f, err)
}

// turns is the channel dependencies of unicast and multicast packets: by
// channel, named by the port that it leaves, those that it waits for.
type turns map[fabric.PortID]map[fabric.PortID]bool

func (d turns) add(a, b fabric.PortID) {
	if d[a] == nil {
		d[a] = make(map[fabric.PortID]bool)
	}
	d[a][b] = true
}

// kinds of channels in the order that a path must have.
const (
	up = iota
	downCross
	downTree
)

// TestSPAM: tables are clean for verify; every path from every switch, followed
// hop by hop, is up, down cross, down tree; groups are exact; no cycle of
// dependencies of unicast and multicast.
func TestSPAM(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := spamFabric(t, rt)
		var roots []fabric.NodeID
		if rapid.Bool().Draw(rt, "root given") {
			roots = append(roots, fabric.NodeID(rapid.IntRange(0, f.NumSwitches()-1).Draw(rt, "root")))
		}
		r := short.Must(SPAM{}.Route(context.Background(), f, lft.Options{Roots: roots}))(rt)
		v := short.Must(verify.Check(context.Background(), &state.State{Fabric: f, Tables: r.Tables}, verify.Options{}))(rt)
		if v.Unicast.Unreachable+v.Unicast.Loops+v.Management.Unreachable+v.Management.Loops != 0 ||
			v.CreditLoops.Count+v.Management.CreditLoops != 0 || v.Verdict == verify.VerdictErrors {
			rt.Fatalf("verify: %+v", v)
		}
		parent := slowParents(f, r.Order)
		waits := make(turns)
		f.EndPorts(func(to fabric.PortID) {
			if f.LID(to) == 0 {
				return
			}
			for s := range fabric.NodeID(f.NumSwitches()) {
				followSPAM(rt, r, parent, s, to, waits)
			}
		})
		groups := randomGroups(f, rapid.Uint64Range(0, 1<<32).Draw(rt, "groups"))
		plan := short.Must(SPAMTree{}.Build(context.Background(), r, groups, mft.Options{Balance: rapid.Bool().Draw(rt, "balance")}))(rt)
		for i := range plan.Trees {
			x := &plan.Trees[i]
			mask := make(map[fabric.PortID]bool)
			for _, p := range plan.Tables.Ports(x.MLID) {
				mask[p] = true
			}
			for _, sender := range x.Senders {
				exact(rt, f, mask, sender, x.Receivers, waits)
			}
		}
		if graph.FirstCycle(f.NumPorts(), func(c fabric.PortID) []fabric.PortID { return slices.Collect(maps.Keys(waits[c])) }) != nil {
			rt.Fatal("unicast and multicast have a cycle of dependencies")
		}
	})
}

// slowParents is the parents by NodeID: the upward neighbour of the lowest rank.
func slowParents(f *fabric.Fabric, rank []int32) []fabric.NodeID {
	parent := make([]fabric.NodeID, f.NumSwitches())
	for s := range parent {
		parent[s] = fabric.NoNode
		to := f.Neighbors(fabric.NodeID(s))
		for _, u := range to {
			if rank[u] < rank[s] && (parent[s] == fabric.NoNode || rank[u] < rank[parent[s]]) {
				parent[s] = u
			}
		}
	}
	return parent
}

func followSPAM(rt *rapid.T, r *lft.Routing, parent []fabric.NodeID, from fabric.NodeID, to fabric.PortID, waits turns) {
	f := r.Fabric
	last, before := up, fabric.NoPort
	for at := from; ; {
		out := r.Tables.Row(at)[f.LID(to)]
		if out == fabric.ManagementPort {
			if f.PortBase(at) != to {
				rt.Fatalf("%s: ends at port 0 of switch %d", f.PortName(to), at)
			}
			return
		}
		port := f.Port(at, out)
		if before != fabric.NoPort {
			waits.add(before, port)
		}
		before = port
		peer := f.Peer(port)
		if peer == to {
			return
		}
		next := f.Owner(peer)
		kind := up
		switch {
		case r.Order[next] < r.Order[at]:
		case parent[next] == at:
			kind = downTree
		default:
			kind = downCross
		}
		if kind < last {
			rt.Fatalf("from switch %d to %s: a channel of kind %d after one of kind %d", from, f.PortName(to), kind, last)
		}
		last, at = kind, next
	}
}

// exact floods a packet from sender: every receiver but the sender gets one
// copy, no other port gets any, no link is crossed twice.
func exact(rt *rapid.T, f *fabric.Fabric, mask map[fabric.PortID]bool, sender fabric.PortID, receivers []fabric.PortID, waits turns) {
	got := make(map[fabric.PortID]int)
	crossed := make(map[fabric.PortID]bool)
	// visit is a copy that came by port in after channel before; it says
	// whether it came to anybody.
	var visit func(in, before fabric.PortID) bool
	visit = func(in, before fabric.PortID) bool {
		s := f.Owner(in)
		useful := false
		for n := fabric.PortNum(0); n <= f.Node(s).NumPorts; n++ {
			out := f.Port(s, n)
			if out == in || !mask[out] {
				continue
			}
			if n == 0 {
				got[out]++
				useful = true
				continue
			}
			if crossed[out] {
				rt.Fatalf("from %s: a second copy leaves %s", f.PortName(sender), f.PortName(out))
			}
			crossed[out] = true
			if before != fabric.NoPort {
				waits.add(before, out)
			}
			peer := f.Peer(out)
			if !f.IsSwitch(f.Owner(peer)) {
				got[peer]++
				useful = true
			} else if visit(peer, out) {
				useful = true
			} else {
				rt.Fatalf("from %s: the copy that leaves %s comes to no port", f.PortName(sender), f.PortName(out))
			}
		}
		return useful
	}
	if f.IsSwitch(f.Owner(sender)) {
		visit(sender, fabric.NoPort)
	} else {
		visit(f.Peer(sender), fabric.NoPort)
	}
	want := 0
	for _, p := range receivers {
		if p == sender {
			continue
		}
		want++
		if got[p] != 1 {
			rt.Fatalf("from %s: %d copies to %s", f.PortName(sender), got[p], f.PortName(p))
		}
	}
	if len(got) != want {
		rt.Fatalf("from %s: copies to %d ports, want %d", f.PortName(sender), len(got), want)
	}
}

// randomGroups has members among all end ports, switches included; some groups
// have one receiver, or senders that do not receive.
func randomGroups(f *fabric.Fabric, seed uint64) []mft.Group {
	rnd := rand.New(rand.NewPCG(seed, 2))
	var ends []fabric.PortID
	f.EndPorts(func(p fabric.PortID) {
		if f.LID(p) != 0 {
			ends = append(ends, p)
		}
	})
	some := func(n int) []fabric.PortID {
		rnd.Shuffle(len(ends), func(i, j int) { ends[i], ends[j] = ends[j], ends[i] })
		list := slices.Clone(ends[:min(n, len(ends))])
		slices.Sort(list)
		return list
	}
	groups := make([]mft.Group, 6)
	for i := range groups {
		groups[i] = mft.Group{Name: fmt.Sprint(i), Receivers: some(1 + rnd.IntN(8)), Senders: some(1 + rnd.IntN(4))}
	}
	return groups
}

// TestSPAMSame: the same tables on one CPU as on several.
func TestSPAMSame(t *testing.T) {
	f, err := gen.Lattice(short.Of(60, 30), 3)
	f = routable(t, f, err)
	rows := func() [][]fabric.PortNum {
		r := short.Must(SPAM{}.Route(context.Background(), f, lft.Options{}))(t)
		var rows [][]fabric.PortNum
		for s := range fabric.NodeID(f.NumSwitches()) {
			rows = append(rows, r.Tables.Row(s))
		}
		return rows
	}
	many := rows()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if one := rows(); !slices.EqualFunc(one, many, slices.Equal) {
		t.Error("tables differ with the number of CPUs")
	}
}

// TestSPAMRefuses: a routing without an order, a group across two islands, a
// path that is too long.
func TestSPAMRefuses(t *testing.T) {
	var b fabric.Builder
	for i := range 2 {
		short.Must(b.AddNode(fabric.Node{GUID: fabric.GUID(i + 1), Type: fabric.Switch, NumPorts: 4}))(t)
	}
	f, err := b.Build()
	f = routable(t, f, err)
	group := []mft.Group{{Name: "g", Receivers: []fabric.PortID{f.PortBase(0), f.PortBase(1)}, Senders: []fabric.PortID{f.PortBase(0)}}}
	for _, order := range [][]int32{nil, {0, 1}} {
		_, err := SPAMTree{}.Build(context.Background(), &lft.Routing{Engine: "e", Fabric: f, Order: order}, group, mft.Options{})
		var refused *mft.RefusedError
		if !errors.As(err, &refused) || refused.Group != "g" {
			t.Errorf("order %v: error %v, want a RefusedError", order, err)
		}
	}
	for _, order := range [][]int32{{0}, {0, 0}, {1, 2}, {-1, 0}} {
		plan, err := SPAMTree{}.Build(context.Background(), &lft.Routing{Engine: "e", Fabric: f, Order: order}, group, mft.Options{})
		if err == nil || plan != nil {
			t.Errorf("order %v: no error", order)
		}
	}
	long, err := mesh.Generate(mesh.Spec{Dims: []int{600}, Wrap: []bool{false}, Hosts: 1})
	long = routable(t, long, err)
	var domain *lft.DomainError
	if _, err := (SPAM{}).Route(context.Background(), long, lft.Options{}); !errors.As(err, &domain) {
		t.Errorf("error %v, want a DomainError", err)
	}
}

// TestSPAMLength says how much longer paths are than with updn, with -v, and
// wants none longer where the order lets all paths between leaves be minimal.
func TestSPAMLength(t *testing.T) {
	made := func(f *fabric.Fabric, err error) *fabric.Fabric { return routable(t, f, err) }
	for _, test := range []struct {
		name    string
		f       *fabric.Fabric
		minimal bool // wanted
	}{
		{"fat tree, radix 8", made(gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 2})), true},
		{"fat tree, radix 8, 3 levels", made(gen.FatTree(gen.FatTreeSpec{Radix: 8, Levels: 3})), true},
		{"lattice", made(gen.Lattice(short.Of(128, 40), 1)), false},
		{"irregular", made(gen.Irregular(gen.IrregularSpec{Switches: short.Of(64, 24), Degree: 4, Hosts: short.Of(128, 48), Seed: 1})), false},
		{"torus 6x6", made(mesh.Generate(mesh.Spec{Dims: []int{6, 6}, Wrap: []bool{true, true}, Hosts: 1})), false},
	} {
		for _, e := range []lft.Engine{SPAM{}, Engine{}} {
			r := short.Must(e.Route(context.Background(), test.f, lft.Options{}))(t)
			v := short.Must(verify.Check(context.Background(), &state.State{Fabric: test.f, Tables: r.Tables}, verify.Options{}))(t)
			switches, pairs := int64(0), int64(0)
			for n, count := range v.Unicast.HopHistogram {
				switches += int64(n) * count
				pairs += count
			}
			t.Logf("%s, %s: %.3f switches on average, at most %d, %.1f%% of pairs longer than minimal, at most %d routes on a link",
				test.name, e.Name(), float64(switches)/float64(pairs), v.Unicast.MaxHops, 100*float64(v.Unicast.NonMinimal)/float64(pairs), v.Balance.MaxRoutes)
			if test.minimal && v.Unicast.NonMinimal > 0 {
				t.Errorf("%s, %s: %d pairs longer than minimal", test.name, e.Name(), v.Unicast.NonMinimal)
			}
		}
	}
}

// TestSPAMBalance: groups take turns on parallel cables when asked to, and else
// use the first.
func TestSPAMBalance(t *testing.T) {
	var b fabric.Builder
	for i := range 2 {
		short.Must(b.AddNode(fabric.Node{GUID: fabric.GUID(i + 1), Type: fabric.Switch, NumPorts: 4}))(t)
	}
	for p := fabric.PortNum(1); p <= 3; p++ {
		short.Check(t, b.Connect(0, p, 1, p, fabric.Link{}))
	}
	f, err := b.Build()
	f = routable(t, f, err)
	groups := make([]mft.Group, 6)
	for i := range groups {
		groups[i] = mft.Group{Name: fmt.Sprint(i), Receivers: []fabric.PortID{f.PortBase(1)}, Senders: []fabric.PortID{f.PortBase(0)}}
	}
	r := &lft.Routing{Engine: "spam", Fabric: f, Order: []int32{0, 1}}
	for _, test := range []struct {
		balance bool
		want    []fabric.PortNum
	}{
		{false, []fabric.PortNum{1, 1, 1, 1, 1, 1}},
		{true, []fabric.PortNum{1, 2, 3, 1, 2, 3}},
	} {
		p := short.Must(SPAMTree{}.Build(context.Background(), r, groups, mft.Options{Balance: test.balance}))(t)
		var got []fabric.PortNum
		for i := range p.Trees {
			mask := p.Tables.Mask(0, p.Trees[i].MLID)
			short.MustEqual(t, len(mask), 1, "balance", test.balance, "mask", mask)
			got = append(got, f.Num(mask[0]))
		}
		short.EqualList(t, got, test.want, "balance", test.balance, "cables")
	}
}

// free has all channels free but some.
type free map[fabric.PortID]bool

func (x free) Free(p fabric.PortID, _ fabric.VL) bool { return !x[p] }

func spamNetwork(t testing.TB, f *fabric.Fabric, root fabric.NodeID, tree SpanningTree) *SPAMNetwork {
	t.Helper()
	return short.Must(NewSPAMNetwork(f, root, tree))(t)
}

func newWorm(t testing.TB, w *SPAMNetwork, to ...fabric.PortID) *Worm {
	t.Helper()
	return short.Must(w.NewWorm(to))(t)
}

// TestPaperExample is the example of section 3.2 of the paper (G-S1): kinds of
// channels, ancestors, the two ways from 5 to the least common ancestor of 8 to
// 11, and where the worm splits.
func TestPaperExample(t *testing.T) {
	f, node := figure1(t)
	w := spamNetwork(t, f, node[1], BreadthFirst)
	port := func(from, to int) fabric.PortID {
		for p := range fabric.PortID(f.NumPorts()) {
			if q := f.Peer(p); q != fabric.NoPort && f.Owner(p) == node[from] && f.Owner(q) == node[to] {
				return p
			}
		}
		t.Fatalf("no cable from %d to %d", from, to)
		return 0
	}
	for kind, list := range map[ChannelKind][][2]int{
		Up:        {{2, 1}, {3, 1}, {4, 1}, {5, 2}, {6, 4}, {7, 4}, {8, 6}, {9, 6}, {10, 6}, {11, 7}, {3, 2}, {4, 3}},
		DownTree:  {{1, 2}, {1, 3}, {1, 4}, {2, 5}, {4, 6}, {4, 7}, {6, 8}, {6, 9}, {6, 10}, {7, 11}},
		DownCross: {{2, 3}, {3, 4}},
	} {
		for _, c := range list {
			if got := w.Channel(port(c[0], c[1])); got != kind {
				t.Errorf("%d to %d is %s, want %s", c[0], c[1], got, kind)
			}
		}
	}
	for v, want := range map[int]int{1: 0, 2: 1, 3: 1, 4: 1, 6: 2, 7: 2} {
		short.Equal(t, w.Level(node[v]), want, v, "is on level")
		ancestor, extended := v == 1 || v == 4, v <= 4
		if w.IsAncestor(node[v], node[4]) != ancestor || w.isExtendedAncestor(node[v], node[4]) != extended {
			t.Errorf("%d is an ancestor of 4: %t, extended: %t", v, !ancestor, !extended)
		}
	}

	x := newWorm(t, w, endPort(f, node[8]), endPort(f, node[11]), endPort(f, node[10]), endPort(f, node[9]))
	if x.At != node[4] {
		t.Errorf("least common ancestor %d, want 4", f.Node(x.At).GUID)
	}
	allowed := func(at, from int) (list []int) {
		for _, p := range w.Allowed(node[at], f.Peer(port(from, at)), x, nil) {
			list = append(list, int(f.Node(f.Owner(f.Peer(p))).GUID))
		}
		return list
	}
	for _, tt := range []struct {
		at, from int
		want     []int // by preference: both are one hop from 4
	}{{2, 5, []int{1, 3}}, {3, 2, []int{4}}, {1, 2, []int{4}}} {
		if got := allowed(tt.at, tt.from); !slices.Equal(got, tt.want) {
			t.Errorf("at %d from %d: allowed to %v, want %v", tt.at, tt.from, got, tt.want)
		}
	}
	// All ways, and what each switch does after that.
	for _, tt := range []struct {
		busy free
		want string
	}{
		{nil, "2[1] 1[4] 4[6 7] 6[8 9 10] 7[11]"},
		{free{port(2, 1): true}, "2[3] 3[4] 4[6 7] 6[8 9 10] 7[11]"},
		{free{port(2, 1): true, port(2, 3): true, port(4, 6): true}, "2[1] 1[4] 4[6 7] 6[8 9 10] 7[11]"}, // waits for the best
	} {
		var got []string
		in := []fabric.PortID{port(5, 2)}
		for len(in) > 0 {
			at := f.Owner(f.Peer(in[0]))
			var to []int
			for _, p := range w.Route(tt.busy, at, f.Peer(in[0]), x, nil) {
				to = append(to, int(f.Node(f.Owner(f.Peer(p))).GUID))
				if f.IsSwitch(f.Owner(f.Peer(p))) {
					in = append(in, p)
				}
			}
			got = append(got, fmt.Sprintf("%d%v", f.Node(at).GUID, to))
			in = in[1:]
		}
		short.Equal(t, strings.Join(got, " "), tt.want, "busy", tt.busy)
	}
}

// slowExtended says by the paper's definition whether s is an extended ancestor of
// t: tree says whether a channel of the tree has been taken.
func slowExtended(w *SPAMNetwork, s, t fabric.NodeID, tree bool) bool {
	if s == t {
		return true
	}
	ports, to := w.Fabric().SwitchLinks(s)
	for i, p := range ports {
		switch w.Channel(p) {
		case DownTree:
			if slowExtended(w, to[i], t, true) {
				return true
			}
		case DownCross:
			if !tree && slowExtended(w, to[i], t, false) {
				return true
			}
		}
	}
	return false
}

// isExtendedAncestor returns true if down cross channels, or none, and then tree channels
// down, or none, lead from s to t.
func (w *SPAMNetwork) isExtendedAncestor(s, t fabric.NodeID) bool {
	return w.above[int(t)*len(w.parent)+int(s)] != unrelated
}

// slowAncestor climbs from t.
func slowAncestor(w *SPAMNetwork, s, t fabric.NodeID) bool {
	for ; t != fabric.NoNode; t = w.Parent(t) {
		if s == t {
			return true
		}
	}
	return false
}

// TestSPAMNetwork has random networks and both trees: relations are those of the
// definitions, what is allowed is exactly what the routing function says, and
// whatever is free, worms go up, then down cross, then down tree channels, come to
// an end, and bring each destination one copy by a part of the tree.
func TestSPAMNetwork(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := spamFabric(t, rt)
		root := fabric.NodeID(rapid.IntRange(0, f.NumSwitches()-1).Draw(rt, "root"))
		w, err := NewSPAMNetwork(f, root, SpanningTree(rapid.IntRange(0, 1).Draw(rt, "tree")))
		if connected := !slices.Contains(f.Distances().To(root), fabric.Unreachable); connected != (err == nil) {
			rt.Fatalf("connected: %t, error %v", connected, err)
		}
		hosts := f.CAPorts()
		if err != nil || len(hosts) < 2 {
			return
		}
		n := fabric.NodeID(f.NumSwitches())
		for s := range n {
			for u := range n {
				if got, want := w.IsAncestor(s, u), slowAncestor(w, s, u); got != want {
					rt.Fatalf("%d an ancestor of %d: %t, want %t", s, u, got, want)
				}
				if n <= 12 {
					if got, want := w.isExtendedAncestor(s, u), slowExtended(w, s, u, false); got != want {
						rt.Fatalf("%d an extended ancestor of %d: %t, want %t", s, u, got, want)
					}
				}
			}
		}
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "worms"), 2))
		for range 20 {
			some := rnd.Perm(len(hosts))[:2+rnd.IntN(len(hosts)-1)]
			var to []fabric.PortID
			for _, k := range some[1:] {
				to = append(to, hosts[k])
			}
			x := short.Must(w.NewWorm(to))(rt)
			for _, p := range to {
				if at := f.Owner(f.Peer(p)); !slowAncestor(w, x.At, at) {
					rt.Fatalf("%d is no ancestor of %s", x.At, f.PortName(p))
				}
			}
			if got := slices.Sorted(slices.Values(x.Destinations(f))); !slices.Equal(got, slices.Sorted(slices.Values(to))) {
				rt.Fatalf("destinations %v, want %v", got, to)
			}
			busy := make(free)
			for p := range fabric.PortID(f.NumPorts()) {
				if rnd.IntN(2) == 0 {
					busy[p] = true
				}
			}
			followWorm(rt, w, x, busy, hosts[some[0]])
		}
	})
}

// followWorm walks all copies of a worm.
func followWorm(rt *rapid.T, w *SPAMNetwork, x *Worm, busy free, src fabric.PortID) {
	f := w.Fabric()
	copies := make(map[fabric.PortID]int)
	used := make(map[fabric.PortID]bool)
	var visit func(out fabric.PortID, steps int)
	visit = func(out fabric.PortID, steps int) {
		in := f.Peer(out)
		at := f.Owner(in)
		if !f.IsSwitch(at) {
			copies[in]++
			return
		}
		if used[out] || steps > f.NumPorts() {
			rt.Fatalf("comes to %s twice", f.PortName(in))
		}
		used[out] = true
		ports := w.Route(busy, at, in, x, nil)
		if len(ports) == 0 {
			rt.Fatalf("ends at %s", f.PortName(in))
		}
		for i, p := range ports {
			if f.Owner(p) != at || i > 0 && p <= ports[i-1] {
				rt.Fatalf("from %s to %v", f.PortName(in), ports)
			}
			if w.Channel(p) < w.Channel(out) {
				rt.Fatalf("%s after %s", w.Channel(p), w.Channel(out))
			}
			if len(ports) > 1 && w.Channel(p) != DownTree {
				rt.Fatalf("%s after the split", w.Channel(p))
			}
		}
		if len(ports) == 1 && w.Channel(out) != DownTree && !(len(x.Destinations(f)) > 1 && at == x.At) {
			checkChoice(rt, w, x, busy, at, in, ports[0])
		}
		for _, p := range ports {
			visit(p, steps+1)
		}
	}
	visit(src, 0)
	for _, p := range x.Destinations(f) {
		if copies[p] != 1 {
			rt.Fatalf("%d copies at %s", copies[p], f.PortName(p))
		}
		delete(copies, p)
	}
	if len(copies) > 0 {
		rt.Fatalf("copies at %v, which are no destinations", copies)
	}
}

// checkChoice checks a port that was taken before the worm has split: what is allowed
// is exactly what the three rules say, the port is the nearest one that is free,
// or the nearest if none is.
func checkChoice(rt *rapid.T, w *SPAMNetwork, x *Worm, busy free, at fabric.NodeID, in, got fabric.PortID) {
	f := w.Fabric()
	came := w.Channel(f.Peer(in))
	var want []fabric.PortID
	far := func(p fabric.PortID) int {
		q := f.Peer(p)
		if !f.IsSwitch(f.Owner(q)) {
			return -1
		}
		return int(f.Distances().To(x.At)[f.Owner(q)])
	}
	for num := fabric.PortNum(1); num <= f.Node(at).NumPorts; num++ {
		p := f.Port(at, num)
		q := f.Peer(p)
		if q == fabric.NoPort {
			continue
		}
		v := f.Owner(q)
		switch w.Channel(p) {
		case Up:
			if came == Up {
				want = append(want, p)
			}
		case DownCross:
			if came != DownTree && w.isExtendedAncestor(v, x.At) {
				want = append(want, p)
			}
		case DownTree:
			if f.IsSwitch(v) && slowAncestor(w, v, x.At) || len(x.to) == 1 && slices.Contains(x.Destinations(f), q) {
				want = append(want, p)
			}
		}
	}
	allowed := w.Allowed(at, in, x, nil)
	if !slices.Equal(slices.Sorted(slices.Values(allowed)), want) {
		rt.Fatalf("at %s after %s: allowed %v, want %v", f.PortName(in), came, allowed, want)
	}
	best := allowed[0]
	for _, p := range allowed {
		if far(p) < far(allowed[0]) {
			rt.Fatalf("%v: not in the order of distance", allowed)
		}
		if !busy[p] && (busy[best] || far(p) < far(best)) {
			best = p
		}
	}
	if far(got) != far(best) || busy[got] != busy[best] {
		rt.Fatalf("takes %v of %v, busy %v", got, allowed, busy)
	}
}

// TestCentre has lattices: no switch is nearer to all, and of equals none is lower.
func TestCentre(t *testing.T) {
	for seed := range uint64(5) {
		f := short.Must(gen.Lattice(60, seed))(t)
		c := Centre(f)
		for s := range fabric.NodeID(60) {
			far, least := slices.Max(f.Distances().To(s)), slices.Max(f.Distances().To(c))
			if far < least || far == least && s < c {
				t.Errorf("seed %d: %d is no centre, %d is", seed, c, s)
			}
		}
	}
}

func TestSPAMNetworkRefuses(t *testing.T) {
	f, node := figure1(t)
	if _, err := NewSPAMNetwork(f, fabric.NodeID(f.NumSwitches()), BreadthFirst); err == nil || err.Error() != "root 6: want a switch, 0 to 5" {
		t.Error(err)
	}
	w := spamNetwork(t, f, node[1], BreadthFirst)
	host := endPort(f, node[8])
	for want, to := range map[string][]fabric.PortID{
		"a worm without destinations": nil,
		`destination "8"[1] twice`:    {host, endPort(f, node[9]), host},
		"port 0 is no destination: want one of a channel adapter, with a cable to a switch":  {host, 0},
		"port -1 is no destination: want one of a channel adapter, with a cable to a switch": {fabric.NoPort},
	} {
		if _, err := w.NewWorm(to); err == nil || err.Error() != want {
			t.Errorf("%v: %v, want %s", to, err, want)
		}
	}
}
