package fattree_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/fattree"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
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
	p, err := gen.NewPlan(all, count[1]*s.down[0])
	if err != nil {
		t.Fatal(err)
	}
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
	f, err := p.Fabric()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func assign(t testing.TB, f *fabric.Fabric, lmc int) *fabric.Fabric {
	t.Helper()
	f, err := lft.AssignLIDs(f, lft.LIDOptions{LMC: lmc})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func route(t testing.TB, f *fabric.Fabric, e lft.Engine) *lft.Routing {
	t.Helper()
	r, err := e.Route(t.Context(), f, lft.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
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
		v, err := verify.Check(t.Context(), r.Fabric, tables, verify.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return v
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
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: radix, Levels: levels, HostsPerLeaf: hosts})
	if err != nil {
		t.Fatal(err)
	}
	return f
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
	for radix := 4; radix <= 12; radix += 2 {
		list = append(list, fullTree{fmt.Sprintf("2 levels, radix %d", radix), fatTree(t, radix, 2, 0), 1})
	}
	for radix := 4; radix <= 10; radix += 2 {
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
			for lmc := range 3 {
				r := route(t, assign(t, tree.f, lmc), fattree.Engine{})
				if v := clean(t, r); v.Unicast.NonMinimal != 0 {
					t.Errorf("LMC %d: %d pairs go round", lmc, v.Unicast.NonMinimal)
				}
				if len(r.CAOrder) != len(tree.f.CAPorts()) {
					t.Errorf("an order of %d, want %d", len(r.CAOrder), len(tree.f.CAPorts()))
				}
				for k := range 1 << lmc {
					if got, _ := contention(t, r, r.CAOrder, k); got != tree.want {
						t.Errorf("LMC %d, LID offset %d: %d flows on a channel, want %d", lmc, k, got, tree.want)
					}
				}
			}
		})
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

// TestDamaged takes cables and switches from full trees.
func TestDamaged(t *testing.T) {
	for _, tree := range fullTrees(t) {
		t.Run(tree.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, 4))
			var worst, ours, updn, minhop int
			refused := 0
			for i := range *trials {
				g := assign(t, cut(tree.f, rng, 1+rng.IntN(1+tree.f.NumLinks()/12), i%3), i%2)
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
				if len(g.CAPorts()) > 150 {
					continue
				}
				most, sum := contention(t, r, r.CAOrder, 0)
				worst = max(worst, most)
				ours += sum
				_, sum = contention(t, route(t, g, updown.Engine{}), r.CAOrder, 0)
				updn += sum
				_, sum = contention(t, route(t, g, lft.Minhop{}), r.CAOrder, 0)
				minhop += sum
			}
			t.Logf("busiest channel of all shifts: %d flows; sum over shifts of the busiest of each: %d, updn %d, minhop %d; %d refused", worst, ours, updn, minhop, refused)
		})
	}
}

// TestRefuses names what is not as in a fat tree.
func TestRefuses(t *testing.T) {
	grid, err := mesh.Generate(mesh.Spec{Dims: []int{4, 4}, Wrap: []bool{false, false}, Hosts: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		f    *fabric.Fabric
		want string
	}{
		{"mesh", grid, "fattree cannot route this fabric: hosts of a fat tree are on its leaves, but only 8 of 16 are on those that look like leaves (--roots GUID,.. says which switches are on top)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := fattree.Engine{}.Route(t.Context(), assign(t, tc.f, 0), lft.Options{})
			if err == nil {
				t.Fatal("routed")
			}
			if d := cmp.Diff(tc.want, err.Error()); d != "" {
				t.Error(d)
			}
		})
	}
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
