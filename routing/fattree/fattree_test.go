package fattree_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/routing/fattree"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/updown"
	"github.com/ibweave/ibweave/verify"
)

var trials = flag.Int("trials", 10, "damaged trees of each kind")

// pgft is a parallel ports generalized fat tree (Zahavi, section 2) whose hosts have one
// port: by level, down is the number of switches or hosts below a switch, up the number
// of switches above one of the next lower level, and cables how many cables go to each
// of these. up[0] and cables[0] are those of hosts.
type pgft struct {
	down, up, cables []int
	// swap has the ports of switches, and the order in which they are made, at random.
	swap *rand.Rand
	// extra is how many more hosts there are, on any switches above the leaves.
	extra int
}

func (s pgft) make(t testing.TB) *fabric.Fabric {
	t.Helper()
	h := len(s.down)
	// A switch of level l, from 1, is told from others by l-1 digits below up, and by
	// h-l digits below down.
	count := make([]int, h+1)
	all := 0
	for l := 1; l <= h; l++ {
		count[l] = 1
		for i := 1; i < l; i++ {
			count[l] *= s.up[i]
		}
		for i := l; i < h; i++ {
			count[l] *= s.down[i]
		}
		all += count[l]
	}
	p := short.Must(gen.NewPlan(all, count[1]*s.down[0]+s.extra))(t)
	order := make([]int, all)
	for i := range order {
		order[i] = i
	}
	if s.swap != nil {
		s.swap.Shuffle(all, func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	id, first := make([]int, all), make([]int, h+2)
	ports := make([][]int, all)
	at := 0
	for l := 1; l <= h; l++ {
		first[l] = at
		at += count[l]
	}
	first[h+1] = at
	for _, i := range order {
		l := 1
		for i >= first[l+1] {
			l++
		}
		n := s.down[l-1] * s.cables[l-1]
		if l < h {
			n += s.up[l] * s.cables[l]
		}
		if l > 1 {
			n += s.extra
		}
		id[i] = p.Switch(n, fmt.Sprintf("level %d switch %d", l-1, i-first[l]))
		for q := range n {
			ports[i] = append(ports[i], q+1)
		}
		if s.swap != nil {
			s.swap.Shuffle(n, func(a, b int) { ports[i][a], ports[i][b] = ports[i][b], ports[i][a] })
		}
	}
	take := func(i int) int {
		q := ports[i][0]
		ports[i] = ports[i][1:]
		return q
	}
	for i := range count[1] {
		for k := range s.down[0] {
			p.Cable(p.CA(1, fmt.Sprintf("host %d.%d", i, k)), 1, id[i], take(i))
		}
	}
	for k := range s.extra {
		i := first[2] + s.swap.IntN(all-first[2])
		p.Cable(p.CA(1, fmt.Sprintf("extra %d", k)), 1, id[i], take(i))
	}
	for l := 1; l < h; l++ {
		ups := 1
		for i := 1; i < l; i++ {
			ups *= s.up[i]
		}
		for i := range count[l] {
			low, high := i%ups, i/ups // digits below up, digits below down
			for k := range s.up[l] {
				above := low + ups*(k+s.up[l]*(high/s.down[l]))
				for range s.cables[l] {
					p.Cable(id[first[l]+i], take(first[l]+i), id[first[l+1]+above], take(first[l+1]+above))
				}
			}
		}
	}
	return short.Must(p.Fabric())(t)
}

func assign(t testing.TB, f *fabric.Fabric, lmc int) *fabric.Fabric {
	t.Helper()
	return short.Must(lft.AssignLIDs(f, lft.LIDOptions{LMC: lmc}))(t)
}

func route(t testing.TB, f *fabric.Fabric, e lft.Engine) *lft.Routing {
	t.Helper()
	return short.Must(e.Route(t.Context(), f, lft.Options{}))(t)
}

// contention walks all shift permutations of an order of hosts, and gives by number of
// flows on the busiest channel between switches how many there are of them. offset is
// the LID to send to, from the base LID on.
func contention(t testing.TB, r *lft.Routing, order []fabric.PortID, offset int) (worst int, sum int) {
	t.Helper()
	f := r.Fabric
	n := len(order)
	flows := make([]int, f.NumPorts())
	var used []fabric.PortID
	for shift := 1; shift < n; shift++ {
		most := 0
		for i, src := range order {
			dst := order[(i+shift)%n]
			if src == fabric.NoPort || dst == fabric.NoPort {
				continue
			}
			lid := f.LID(dst) + fabric.LID(offset)
			at := f.Owner(f.Peer(src))
			for hops := 0; ; hops++ {
				out, peer := r.Tables.Step(f, at, lid)
				if peer == dst {
					break
				}
				if peer == fabric.NoPort && hops == 0 {
					break // apart: clean has looked at that
				}
				if peer == fabric.NoPort || hops > 64 {
					t.Fatalf("LID %d is not delivered from %s", lid, f.PortName(src))
				}
				if flows[out] == 0 {
					used = append(used, out)
				}
				flows[out]++
				most = max(most, flows[out])
				at = f.Owner(peer)
			}
		}
		for _, p := range used {
			flows[p] = 0
		}
		used = used[:0]
		worst = max(worst, most)
		sum += most
	}
	return worst, sum
}

// clean verifies tables, management included: what has cables to each other is reached.
func clean(t testing.TB, r *lft.Routing) *verify.Result {
	t.Helper()
	check := func(tables *lft.Tables) *verify.Result {
		return short.Must(verify.Check(t.Context(), &state.State{Fabric: r.Fabric, Tables: tables}, verify.Options{}))(t)
	}
	v, all := check(r.Tables), check(route(t, r.Fabric, lft.Minhop{}).Tables)
	u, m := v.Unicast, v.Management
	if u.Unreachable != all.Unicast.Unreachable || m.Unreachable != all.Management.Unreachable || u.Loops+m.Loops != 0 || v.CreditLoops.Count+m.CreditLoops != 0 {
		t.Errorf("unicast: %d unreachable, %d are apart, %d loops; management: %d, %d, %d; credit loops: %d, with management %d",
			u.Unreachable, all.Unicast.Unreachable, u.Loops, m.Unreachable, all.Management.Unreachable, m.Loops, v.CreditLoops.Count, m.CreditLoops)
	}
	return v
}

func fatTree(t testing.TB, radix, levels, hosts int) *fabric.Fabric {
	t.Helper()
	return short.Must(gen.FatTree(gen.FatTreeSpec{Radix: radix, Levels: levels, HostsPerLeaf: hosts}))(t)
}

// fullTree is a tree, and the most flows on a channel that its shape leaves no way
// around.
type fullTree struct {
	name string
	f    *fabric.Fabric
	want int
}

func fullTrees(t testing.TB) []fullTree {
	var list []fullTree
	for radix := 4; radix <= short.Of(12, 8); radix += 2 {
		list = append(list, fullTree{fmt.Sprintf("2 levels, radix %d", radix), fatTree(t, radix, 2, 0), 1})
	}
	for radix := 4; radix <= short.Of(10, 6); radix += 2 {
		list = append(list, fullTree{fmt.Sprintf("3 levels, radix %d", radix), fatTree(t, radix, 3, 0), 1})
	}
	rng := func(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }
	return append(list,
		fullTree{"2 levels, 9 hosts to 3 ways up", fatTree(t, 12, 2, 9), 3},
		fullTree{"2 levels, 8 hosts to 4 ways up", fatTree(t, 12, 2, 8), 2},
		fullTree{"2 levels, 7 hosts to 5 ways up", fatTree(t, 12, 2, 7), 2},
		fullTree{"2 levels, 4 hosts to 6 ways up", fatTree(t, 12, 2, 4), 1},
		fullTree{"3 levels, 6 hosts to 2 ways up", fatTree(t, 8, 3, 6), 3},
		fullTree{"3 levels, 3 hosts to 4 ways up", fatTree(t, 8, 3, 3), 1},
		fullTree{"3 levels, 1 host to 3 ways up", fatTree(t, 6, 3, 1), 1},
		fullTree{"2 levels, 3 cables each", pgft{down: []int{6, 5}, up: []int{1, 2}, cables: []int{1, 3}}.make(t), 1},
		fullTree{"2 levels, 2 cables each, any cabling", pgft{down: []int{8, 7}, up: []int{1, 4}, cables: []int{1, 2}, swap: rng(1)}.make(t), 1},
		fullTree{"3 levels, 2 cables each on top, any cabling", pgft{down: []int{4, 4, 3}, up: []int{1, 4, 2}, cables: []int{1, 1, 2}, swap: rng(2)}.make(t), 1},
		fullTree{"3 levels, 2 cables each below, any cabling", pgft{down: []int{4, 4, 5}, up: []int{1, 2, 4}, cables: []int{1, 2, 2}, swap: rng(3)}.make(t), 1},
		fullTree{"3 levels, 5 pods of 3 leaves, 4 ways up, any cabling", pgft{down: []int{4, 3, 5}, up: []int{1, 4, 4}, cables: []int{1, 1, 1}, swap: rng(4)}.make(t), 1},
		fullTree{"3 levels, half the cables on top", pgft{down: []int{4, 4, 4}, up: []int{1, 4, 2}, cables: []int{1, 1, 1}, swap: rng(5)}.make(t), 2},
		fullTree{"3 levels, half the cables below", pgft{down: []int{4, 4, 4}, up: []int{1, 2, 8}, cables: []int{1, 1, 1}, swap: rng(6)}.make(t), 2},
		fullTree{"4 levels, any cabling", pgft{down: []int{3, 3, 3, 3}, up: []int{1, 3, 3, 3}, cables: []int{1, 1, 1, 1}, swap: rng(7)}.make(t), 1},
		fullTree{"4 levels, more ways up than down", pgft{down: []int{2, 2, 2, 3}, up: []int{1, 3, 2, 3}, cables: []int{1, 1, 1, 1}, swap: rng(8)}.make(t), 1},
		fullTree{"4 levels, 2 cables each", pgft{down: []int{2, 2, 2, 3}, up: []int{1, 1, 2, 1}, cables: []int{1, 2, 1, 2}, swap: rng(9)}.make(t), 2},
	)
}

// TestShifts walks every shift of the hosts of full trees, for each LID of a port by
// itself.
func TestShifts(t *testing.T) {
	for _, tree := range fullTrees(t) {
		t.Run(tree.name, func(t *testing.T) {
			for _, lmc := range short.Of([]int{0, 1, 2}, []int{1}) {
				r := route(t, assign(t, tree.f, lmc), fattree.Engine{})
				if v := clean(t, r); v.Unicast.NonMinimal != 0 {
					t.Errorf("LMC %d: %d pairs loop", lmc, v.Unicast.NonMinimal)
				}
				short.Equal(t, len(r.CAOrder), len(tree.f.CAPorts()), "an order")
				idle(t, r)
				for k := range 1 << lmc {
					if got, _ := contention(t, r, r.CAOrder, k); got != tree.want {
						t.Errorf("LMC %d, LID offset %d: %d flows on a channel, want %d", lmc, k, got, tree.want)
					}
				}
			}
		})
	}
}

// idle looks for cables that lead up from a leaf and that no host there uses.
func idle(t *testing.T, r *lft.Routing) {
	t.Helper()
	f := r.Fabric
	for s := range fabric.NodeID(f.NumSwitches()) {
		used := map[fabric.PortNum]bool{}
		hosts := false
		for _, p := range r.CAOrder {
			if p == fabric.NoPort {
				t.Fatal("a place without a host")
			}
			if f.Owner(f.Peer(p)) == s {
				hosts = true
			} else {
				used[r.Tables.Row(s)[f.LID(p)]] = true
			}
		}
		if ports, _ := f.SwitchLinks(s); hosts && len(used) != len(ports) {
			t.Errorf("%q uses %d of %d cables", f.Node(s).Description, len(used), len(ports))
		}
	}
}

// cut takes away cables and switches.
func cut(f *fabric.Fabric, rng *rand.Rand, cables, switches int) *fabric.Fabric {
	var list, gone []fabric.PortID
	for s := range fabric.NodeID(f.NumSwitches()) {
		ports, _ := f.SwitchLinks(s)
		for _, p := range ports {
			if p < f.Peer(p) {
				list = append(list, p)
			}
		}
	}
	for _, i := range rng.Perm(len(list))[:cables] {
		gone = append(gone, list[i])
	}
	for range switches {
		s := fabric.NodeID(rng.IntN(f.NumSwitches()))
		for n := range f.Node(s).NumPorts {
			gone = append(gone, f.Port(s, n+1))
		}
	}
	return f.Without(gone...)
}

// TestDamaged takes cables and switches from full trees, and from trees with hosts above
// the leaves. Everything that cables join is reached, without a credit loop, and the
// busiest channels of shifts are no busier than with engines that balance routes, by and
// large.
func TestDamaged(t *testing.T) {
	trees := fullTrees(t)
	for i, spec := range []pgft{
		{down: []int{6, 9}, up: []int{1, 3}, cables: []int{1, 2}, extra: 5},
		{down: []int{3, 3, 4}, up: []int{1, 3, 3}, cables: []int{1, 1, 1}, extra: 7},
		{down: []int{2, 3, 2, 3}, up: []int{1, 2, 3, 2}, cables: []int{1, 1, 1, 1}, extra: 3},
	} {
		spec.swap = rand.New(rand.NewPCG(uint64(i), 9))
		trees = append(trees, fullTree{fmt.Sprintf("%d levels, hosts above the leaves", len(spec.down)), spec.make(t), 0})
	}
	var ours, updn, minhop int
	for _, tree := range trees {
		t.Run(tree.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, 4))
			worst, before := 0, [3]int{ours, updn, minhop}
			refused := 0
			n := short.Of(*trials, 2)
			if len(tree.f.CAPorts()) <= 20 {
				n *= short.Of(15, 3) // where damage is worst: some paths of levels are illegal in the order
			}
			for i := range n {
				g := assign(t, cut(tree.f, rng, rng.IntN(1+tree.f.NumLinks()/12), i%3), i%2)
				r, err := fattree.Engine{}.Route(t.Context(), g, lft.Options{})
				var domain *lft.DomainError
				if errors.As(err, &domain) && strings.Contains(domain.Reason, "pairs of leaves") {
					refused++
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				clean(t, r)
				if len(g.CAPorts()) > short.Of(150, 80) {
					continue
				}
				most, sum := contention(t, r, r.CAOrder, 0)
				worst = max(worst, most)
				if i%short.Of(4, 1) > 0 { // a part of them says how the engines compare
					continue
				}
				ours += sum
				_, sum = contention(t, &lft.Routing{Fabric: g, Tables: route(t, g, updown.Engine{}).Tables}, r.CAOrder, 0)
				updn += sum
				_, sum = contention(t, &lft.Routing{Fabric: g, Tables: route(t, g, lft.Minhop{}).Tables}, r.CAOrder, 0)
				minhop += sum
			}
			t.Logf("flows on the busiest channel: %d; the sum over all shifts: %d, updn %d, minhop %d; %d refused",
				worst, ours-before[0], updn-before[1], minhop-before[2], refused)
			if refused*4 > n {
				t.Errorf("%d of %d refused", refused, n)
			}
		})
	}
	t.Logf("the sum over all shifts of all trees: %d, updn %d, minhop %d", ours, updn, minhop)
	if ours >= updn || ours >= minhop {
		t.Error("shifts are as bad as with engines that know nothing of them")
	}
}

// TestByHand: four leaves of two hosts below two spines, whose LIDs are 1 to 8 in the order
// of the hosts. Host i of a leaf comes down from spine i.
func TestByHand(t *testing.T) {
	f := short.Must(lft.AssignLIDs(fatTree(t, 4, 2, 0), lft.LIDOptions{Policy: lft.DenseLIDs}))(t)
	r := route(t, f, fattree.Engine{})
	short.MustEqual(t, len(r.CAOrder), 8, r.CAOrder)
	// A leaf has hosts on ports 1 and 2, spine 0 on 3 and spine 1 on 4; a spine has leaf
	// l on port l+1. Columns are hosts in their order.
	want := []string{
		"1 2 3 4 3 4 3 4", // leaf 0
		"3 4 1 2 3 4 3 4",
		"3 4 3 4 1 2 3 4",
		"3 4 3 4 3 4 1 2",
		"1 1 2 2 3 3 4 4", // spine 0
		"1 1 2 2 3 3 4 4",
	}
	for s, ports := range want {
		var got []string
		for _, p := range r.CAOrder {
			got = append(got, fmt.Sprint(r.Tables.Row(fabric.NodeID(s))[f.LID(p)]))
		}
		short.Diff(t, strings.Join(got, " "), ports, f.Node(fabric.NodeID(s)).Description)
	}
	if want := []string{"fat tree of 2 levels, with 4, 2 switches from the leaves up"}; !cmp.Equal(want, r.Notes) {
		t.Error(r.Notes)
	}
}

// TestRates: a slow cable gets a share of the routes by its rate.
func TestRates(t *testing.T) {
	f := fatTree(t, 4, 2, 0)
	var b fabric.Builder
	for n := range fabric.NodeID(f.NumNodes()) {
		short.Must(b.AddNode(*f.Node(n)))(t)
	}
	for p := range fabric.PortID(f.NumPorts()) {
		link := fabric.Link{Width: 4, Speed: fabric.NDR}
		if p == f.Port(0, 3) {
			link.Speed = fabric.DDR
		}
		if q := f.Peer(p); q > p {
			short.Check(t, b.Connect(int(f.Owner(p)), f.Num(p), int(f.Owner(q)), f.Num(q), link))
		}
	}
	g := short.Must(b.Build())(t)
	g = assign(t, g, 0)
	r := route(t, g, fattree.Engine{})
	clean(t, r)
	forest := lft.NewForest(g)
	sources, routes := make([]int64, g.NumSwitches()), map[fabric.PortID]int64{}
	for s := range sources {
		sources[s] = int64(len(g.HostsOn(fabric.NodeID(s))))
	}
	for _, p := range r.CAOrder {
		forest.FindTree(r.Tables, g.LID(p))
		forest.Flow(sources, func(out fabric.PortID, n int64) { routes[out] += n })
	}
	up, other := g.Port(0, 3), g.Port(0, 4)
	if slow, fast := routes[up]+routes[g.Peer(up)], routes[other]+routes[g.Peer(other)]; 10*slow > fast || slow+fast != 24 {
		t.Errorf("%d routes on the slow cable, %d on the other", slow, fast)
	}
}

// TestLongerWays: leaf 0 lost one of its two spines and leaf 1 the other, so that their hosts
// go by the leaf on top of the order.
func TestLongerWays(t *testing.T) {
	whole := fatTree(t, 4, 2, 0)
	f := assign(t, whole.Without(whole.Port(0, 3), whole.Port(1, 4)), 0)
	r := route(t, f, fattree.Engine{})
	v := clean(t, r)
	// Switches passed: 8 pairs on one leaf, 8 between leaves 0 and 1 by five, others by three.
	got := fmt.Sprint(v.Unicast.HopHistogram)
	short.Equal(t, got, "[0 8 0 40 0 8]", "pairs by switches passed")
}

// joined is a fabric with more cables between switches, by their index.
func joined(t *testing.T, radix int, pairs ...[2]int) *fabric.Fabric {
	t.Helper()
	p := short.Must(gen.NewPlan(6, 8))(t)
	for i, name := range []string{"leaf 0", "leaf 1", "leaf 2", "leaf 3", "spine 0", "spine 1"} {
		short.MustEqual(t, p.Switch(radix, name), i)
	}
	for leaf := range 4 {
		for k := range 2 {
			p.Cable(p.CA(1, fmt.Sprintf("host %d.%d", leaf, k)), 1, leaf, k+1)
			p.Cable(leaf, k+3, 4+k, leaf+1)
		}
	}
	for i, pair := range pairs {
		p.Cable(pair[0], radix-i, pair[1], radix-i)
	}
	return short.Must(p.Fabric())(t)
}

// chain joins nine switches in a row, every second one with a host.
func chain(t *testing.T) *fabric.Fabric {
	t.Helper()
	p := short.Must(gen.NewPlan(9, 5))(t)
	for i := range 9 {
		p.Switch(4, fmt.Sprint("switch ", i))
		if i > 0 {
			p.Cable(i-1, 1, i, 2)
		}
	}
	for i := range 5 {
		p.Cable(p.CA(1, fmt.Sprint("host ", i)), 1, 2*i, 3)
	}
	return short.Must(p.Fabric())(t)
}

// TestRefuses names what is not as in a fat tree.
func TestRefuses(t *testing.T) {
	grid := short.Must(mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Wrap: []bool{false, false}, Hosts: 1}))(t)
	cube := short.Must(mesh.Hypercube(5, 1))(t)
	const prefix = "fattree cannot route this fabric: "
	for _, tc := range []struct {
		name string
		f    *fabric.Fabric
		want string
	}{
		{"mesh", grid, "hosts of a fat tree are on its leaves, but only 8 of 16 are on those that look like leaves (--roots GUID,.. says which switches are on top)"},
		{"hypercube", cube, "hosts of a fat tree are on its leaves, but only 16 of 32 are on those that look like leaves (--roots GUID,.. says which switches are on top)"},
		{"leaves joined", joined(t, 10, [2]int{0, 1}, [2]int{1, 2}, [2]int{2, 3}), "cables of a fat tree lead to the next level, but only 8 of 11 do (--roots GUID,.. says which switches are on top)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, err := fattree.Engine{}.Route(t.Context(), assign(t, tc.f, 0), lft.Options{})
			var domain *lft.DomainError
			if r != nil || !errors.As(err, &domain) {
				t.Fatalf("%v, %v; want a DomainError", r, err)
			}
			short.Diff(t, err.Error(), prefix+tc.want)
		})
	}
}

// TestOddCables routes what has few cables that do not lead to the next level, and trees that
// lack nearly all.
func TestOddCables(t *testing.T) {
	spines := joined(t, 6, [2]int{4, 5})
	for _, tc := range []struct {
		name  string
		f     *fabric.Fabric
		roots []fabric.NodeID
		want  string
	}{
		{"chain", chain(t), nil, "fat tree of 2 levels, with 5, 4 switches from the leaves up"},
		{"spines joined", spines, nil, "fat tree of 2 levels, with 4, 2 switches from the leaves up; 1 cable does not lead to the next level"},
		{"roots joined", spines, []fabric.NodeID{4, 5}, "fat tree of 2 levels, with 4, 2 switches from the leaves up; 1 cable does not lead to the next level"},
		{"leaves joined twice", joined(t, 6, [2]int{0, 2}, [2]int{1, 3}), nil, "fat tree of 2 levels, with 4, 2 switches from the leaves up; 2 cables do not lead to the next level"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := short.Must(fattree.Engine{}.Route(t.Context(), assign(t, tc.f, 0), lft.Options{Roots: tc.roots}))(t)
			if v := clean(t, r); v.Unicast.NonMinimal > 0 {
				t.Errorf("%d pairs have longer paths", v.Unicast.NonMinimal)
			}
			short.Diff(t, r.Notes, []string{tc.want})
		})
	}
}

// TestJoinedTrees joins two trees by one cable between spines. It bears far more than all others, so
// that balance has to count on those, too: each spine of a tree takes its share.
func TestJoinedTrees(t *testing.T) {
	p := short.Must(gen.NewPlan(10, 24))(t)
	for i := range 10 {
		p.Switch(16, fmt.Sprint("switch ", i)) // of each tree two spines and three leaves
	}
	for i := range 6 {
		spines, leaf := i/3*5, i/3*5+2+i%3
		for k := range 4 {
			p.Cable(p.CA(1, fmt.Sprintf("host %d.%d", leaf, k)), 1, leaf, k+1)
		}
		for k := range 4 {
			p.Cable(leaf, 5+k, spines+k%2, 1+i%3*2+k/2)
		}
	}
	p.Cable(0, 16, 5, 16)
	whole := short.Must(p.Fabric())(t)
	f := assign(t, whole, 0)
	const joint = 12 * 12                      // routes on the cable between the trees, each way
	spread := func(e lft.Engine) (sum int64) { // squares of the other loads
		r := route(t, f, e)
		clean(t, r)
		loads := short.Must(lft.ChannelLoads(t.Context(), f, r.Tables))(t)
		for _, n := range loads {
			if n < joint {
				sum += n * n
			}
		}
		return sum
	}
	if ours, theirs := spread(fattree.Engine{}), spread(updown.Engine{}); 100*ours > 102*theirs {
		t.Errorf("squares of loads: %d, with updn %d", ours, theirs)
	}
}

// TestLevels: what looks like a leaf, a spine or a core switch, and what roots say.
func TestLevels(t *testing.T) {
	three := func(t *testing.T) *fabric.Fabric { return fatTree(t, 6, 3, 0) }
	without := func(f *fabric.Fabric, cas ...int) *fabric.Fabric {
		var gone []fabric.PortID
		for _, i := range cas {
			gone = append(gone, f.CAPorts()[i])
		}
		return f.Without(gone...)
	}
	rows := func(f *fabric.Fabric, from, to string) []fabric.NodeID {
		var list []fabric.NodeID
		for s := range fabric.NodeID(f.NumSwitches()) {
			if d := f.Node(s).Description; from <= d && d < to {
				list = append(list, s)
			}
		}
		return list
	}
	for _, tc := range []struct {
		name  string
		f     *fabric.Fabric
		roots []fabric.NodeID
		want  string
	}{
		{"full", three(t), nil, "fat tree of 3 levels, with 18, 18, 9 switches from the leaves up"},
		{"leaves with few hosts and none", without(three(t), 0, 1, 9, 10, 11), nil, "fat tree of 3 levels, with 18, 18, 9 switches from the leaves up"},
		{"two levels, a leaf without hosts", without(fatTree(t, 6, 2, 0), 0, 1, 2), nil, "fat tree of 2 levels, with 6, 3 switches from the leaves up"},
		{"roots", three(t), rows(three(t), "core", "corf"), "fat tree of 3 levels, with 18, 18, 9 switches from the leaves up"},
		{"some spines as roots", fatTree(t, 6, 2, 0), []fabric.NodeID{6, 7}, "fat tree of 3 levels, with 1, 6, 2 switches from the leaves up; 18 hosts above the leaves"},
		{"mesh with roots", func() *fabric.Fabric {
			return short.Must(mesh.Generate(mesh.Spec{Dims: []int{3, 3}, Wrap: []bool{false, false}, Hosts: 1}))(t)
		}(), []fabric.NodeID{4}, "fat tree of 3 levels, with 4, 4, 1 switches from the leaves up; 5 hosts above the leaves"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := assign(t, tc.f, 0)
			r := short.Must(fattree.Engine{}.Route(t.Context(), f, lft.Options{Roots: tc.roots}))(t)
			clean(t, r)
			short.Diff(t, r.Notes, []string{tc.want})
		})
	}
}

// TestCableBack: with one cable gone few entries change, and when it is back the tables are
// those from before.
func TestCableBack(t *testing.T) {
	f := assign(t, fatTree(t, 8, 3, 0), 0)
	whole := route(t, f, fattree.Engine{})
	if again := route(t, f.Without(), fattree.Engine{}); !cmp.Equal(rows(whole), rows(again)) {
		t.Error("other tables")
	}
	ports, _ := f.SwitchLinks(11) // a leaf below the others: the one on top is leaf 0
	g := f.Without(ports[1])
	less := route(t, g, fattree.Engine{})
	// Without the cable from leaf to spine: one host of the leaf comes by another cable,
	// for which all switches may send elsewhere, and the leaf sends a quarter elsewhere.
	changed := 0
	a, b := rows(whole), rows(less)
	for i := range a {
		if a[i] != b[i] {
			changed++
		}
	}
	if most := 4*f.NumSwitches() + len(f.CAPorts())/2; changed == 0 || changed > most {
		t.Errorf("%d entries changed, want 1 to %d", changed, most)
	}
}

// TestHostGone: what leads to other hosts stays as it is when a host goes.
func TestHostGone(t *testing.T) {
	f := assign(t, fatTree(t, 8, 3, 0), 0)
	whole := route(t, f, fattree.Engine{})
	gone := f.CAPorts()[33]
	less := route(t, f.Without(gone), fattree.Engine{})
	clean(t, less)
	for s := range fabric.NodeID(f.NumSwitches()) {
		for lid, port := range whole.Tables.Row(s) {
			if now := less.Tables.Row(s)[lid]; fabric.LID(lid) != f.LID(gone) && now != port {
				t.Fatalf("%q sends LID %d to port %d, and not to %d as before", f.Node(s).Description, lid, now, port)
			}
		}
	}
	if i := slices.Index(whole.CAOrder, gone); less.CAOrder[i] != fabric.NoPort || less.CAOrder[i+1] != whole.CAOrder[i+1] {
		t.Error("other hosts have other places in the order")
	}
}

// TestPreviousOfNoTree: leaves in a row lose the switch above them. What is left is no fat tree, and tables
// from before are kept, also by a step that would compare them with tables from scratch.
func TestPreviousOfNoTree(t *testing.T) {
	p := short.Must(gen.NewPlan(4, 8))(t)
	for i := range 4 {
		p.Switch(12, fmt.Sprint("switch ", i))
	}
	for leaf := range 3 {
		p.Cable(leaf, 1, 3, 1+2*leaf)
		p.Cable(leaf, 2, 3, 2+2*leaf)
		for h := range 2 + leaf%2 {
			p.Cable(p.CA(1, fmt.Sprint("host ", leaf, h)), 1, leaf, 5+h)
		}
	}
	p.Cable(0, 3, 1, 4)
	p.Cable(1, 3, 2, 4)
	f := short.Must(p.Fabric())(t)
	f = assign(t, f, 0)
	before := route(t, f, fattree.Engine{})
	left := f.Without(f.Port(3, 1), f.Port(3, 2), f.Port(3, 3), f.Port(3, 4), f.Port(3, 5), f.Port(3, 6))
	refused := new(lft.DomainError)
	if _, err := (fattree.Engine{}).Route(t.Context(), left, lft.Options{}); !errors.As(err, &refused) {
		t.Fatalf("%v; want a refusal", err)
	}
	for _, first := range []bool{false, true} {
		r := short.Must(fattree.Engine{}.Route(t.Context(), left, lft.Options{Previous: before, FirstStep: first, Rebalance: 1}))(t)
		clean(t, r)
		if !r.Kept || !strings.HasSuffix(r.Notes[len(r.Notes)-1], "could not be made again: "+refused.Reason) {
			t.Errorf("kept %v, %q", r.Kept, r.Notes)
		}
	}
	// Whatever shape is left of whatever tables.
	for seed := range uint64(short.Of(40, 8)) {
		any := short.Must(gen.Irregular(gen.IrregularSpec{Switches: 12, Degree: 3, Hosts: 20, Seed: seed}))(t)
		any = assign(t, any, 0)
		r := short.Must(fattree.Engine{}.Route(t.Context(), any, lft.Options{Previous: route(t, any, updown.Engine{})}))(t)
		clean(t, r)
	}
}

// TestPrevious: with the tables from before, a host that goes from a damaged tree, and comes
// back, leaves the entries for all others alone.
func TestPrevious(t *testing.T) {
	f := assign(t, cut(fatTree(t, 8, 3, 0), rand.New(rand.NewPCG(7, 8)), 9, 1), 0)
	before := route(t, f, fattree.Engine{})
	for _, gone := range f.CAPorts()[30:34] {
		less := short.Must(fattree.Engine{}.Route(t.Context(), f.Without(gone), lft.Options{Previous: before}))(t)
		clean(t, less)
		again := short.Must(fattree.Engine{}.Route(t.Context(), f, lft.Options{Previous: less}))(t)
		clean(t, again)
		for s := range fabric.NodeID(f.NumSwitches()) {
			for lid, port := range before.Tables.Row(s) {
				if fabric.LID(lid) != f.LID(gone) && (less.Tables.Row(s)[lid] != port || again.Tables.Row(s)[lid] != port) {
					t.Fatalf("%q sends LID %d elsewhere", f.Node(s).Description, lid)
				}
			}
		}
		if len(less.CAOrder) != len(before.CAOrder) || !cmp.Equal(before.Notes, less.Notes) {
			t.Error("another order of the hosts, or other notes")
		}
	}
}

func rows(r *lft.Routing) []byte {
	var b []byte
	for s := range fabric.NodeID(r.Tables.Switches()) {
		for _, p := range r.Tables.Row(s) {
			b = append(b, byte(p))
		}
	}
	return b
}

func BenchmarkRoute(b *testing.B) {
	for _, radix := range []int{16, 24, 36} {
		f := assign(b, fatTree(b, radix, 3, 0), 0)
		damaged := assign(b, cut(f, rand.New(rand.NewPCG(1, 2)), f.NumLinks()/100, 2), 0)
		for _, tc := range []struct {
			name string
			f    *fabric.Fabric
			e    lft.Engine
		}{{"full", f, fattree.Engine{}}, {"damaged", damaged, fattree.Engine{}}, {"updn", f, updown.Engine{}}} {
			b.Run(fmt.Sprintf("%s/radix=%d", tc.name, radix), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					route(b, tc.f, tc.e)
				}
			})
		}
	}
}

// TestManyUplinks: two leaves lead to more switches than a leaf has ports.
func TestManyUplinks(t *testing.T) {
	const ups, spines, hosts = 160, 319, 4
	p := short.Must(gen.NewPlan(2+spines, 2*hosts))(t)
	leaves := []int{p.Switch(ups+hosts, "leaf"), p.Switch(ups+hosts, "leaf")}
	for i := range spines {
		spine := p.Switch(2, "spine")
		if i < ups {
			p.Cable(leaves[0], i+1, spine, 1)
		}
		if k := i - (spines - ups); k >= 0 {
			p.Cable(leaves[1], k+1, spine, 2)
		}
	}
	for _, leaf := range leaves {
		for h := range hosts {
			p.Cable(p.CA(1, "host"), 1, leaf, ups+h+1)
		}
	}
	f := short.Must(p.Fabric())(t)
	f = assign(t, f, 0)
	var roots []fabric.NodeID
	for s := range fabric.NodeID(f.NumSwitches()) {
		if f.Node(s).Description == "spine" {
			roots = append(roots, s)
		}
	}
	r := short.Must(fattree.Engine{}.Route(t.Context(), f, lft.Options{Roots: roots}))(t)
	clean(t, r)
}
