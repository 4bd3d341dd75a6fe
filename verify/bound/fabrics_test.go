package bound

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/short"
)

// small says how large random fabrics are.
type small struct {
	switches, cables, hosts int // at most; cables beyond those that join the switches
}

// random makes a small fabric as real ones are now and then: cables in parallel, slow ones and
// some of unknown rate, hosts with several LIDs or none, switches that nothing joins.
func (x small) random(t testing.TB, r *rand.Rand) *fabric.Fabric {
	t.Helper()
	fail := func(err error) {
		short.Check(t, err)
	}
	var b fabric.Builder
	n := 1 + r.IntN(x.switches)
	next := map[int]fabric.PortNum{}
	links := []fabric.Link{{Width: 4, Speed: fabric.NDR}, {Width: 4, Speed: fabric.NDR}, {Width: 4, Speed: fabric.EDR}, {Width: 1, Speed: fabric.FDR}, {}}
	kinds := 1 + r.IntN(len(links))
	cable := func(i, j int) {
		next[i]++
		p := next[i]
		next[j]++
		fail(b.Connect(i, p, j, next[j], links[r.IntN(kinds)]))
	}
	node := func(kind fabric.NodeType, ports fabric.PortNum) int {
		i, err := b.AddNode(fabric.Node{Type: kind, GUID: fabric.GUID(0x1000 + 0x100*len(next)), NumPorts: ports, Description: fmt.Sprint("node ", len(next))})
		fail(err)
		next[i] = 0
		return i
	}
	for i := range n {
		node(fabric.Switch, 40)
		if i > 0 && r.IntN(12) > 0 {
			cable(i, r.IntN(i))
		}
	}
	for range r.IntN(x.cables + 1) {
		cable(r.IntN(n), r.IntN(n))
	}
	many := r.IntN(3) == 0
	lid := fabric.LID(1)
	for k := range 1 + r.IntN(x.hosts) {
		h := node(fabric.CA, 2)
		at := r.IntN(n)
		if many && k > 1 { // most on one switch
			at = 0
		}
		cable(h, at)
		lmc := uint8(0)
		if r.IntN(8) == 0 {
			lmc, lid = 1, (lid+1)&^1
		}
		if r.IntN(12) > 0 {
			fail(b.SetPort(h, 1, fabric.GUID(0x900000+h), lid, lmc))
			lid += 1 << lmc
		}
	}
	f, err := b.Build()
	fail(err)
	return f
}

// order is an up*/down* order by the distance from a switch of each component.
func order(f *fabric.Fabric) []int32 {
	n := f.NumSwitches()
	var list []fabric.NodeID
	rank := make([]int32, n)
	for root := range fabric.NodeID(n) {
		if slices.Contains(list, root) {
			continue
		}
		search := graph.NewSearch[fabric.NodeID](n)
		search.Run(f.Neighbors, root)
		list = append(list, search.Order...)
	}
	for i, s := range list {
		rank[s] = int32(i)
	}
	return rank
}

// allowedPorts is by PortID whether tables may send by the port from there to the hosts of switch t.
func allowedPorts(f *fabric.Fabric, t fabric.NodeID, paths Paths, rank []int32) []bool {
	if paths == LegalPaths {
		return legalPorts(f, t, rank)
	}
	allowed := make([]bool, f.NumPorts())
	distance := f.Distances().To(t)
	for s := range fabric.NodeID(f.NumSwitches()) {
		ports, to := f.SwitchLinks(s)
		for k, p := range ports {
			allowed[p] = distance[s] != fabric.Unreachable && (paths == AnyPaths || distance[to[k]]+1 == distance[s])
		}
	}
	return allowed
}

// legalPorts is the legal ports of an order, by the definition: each switch takes the distance that
// follows from those of its neighbours, until nothing changes.
func legalPorts(f *fabric.Fabric, t fabric.NodeID, rank []int32) []bool {
	type state struct {
		hops     int
		onlyDown bool
	}
	none := state{hops: 1 << 30}
	now := slices.Repeat([]state{none}, f.NumSwitches())
	now[t] = state{0, true}
	for changed := true; changed; {
		changed = false
		for s := range fabric.NodeID(f.NumSwitches()) {
			up, down, farthest := none.hops, none.hops, 0
			for _, v := range f.Neighbors(s) {
				if rank[v] < rank[s] {
					up, farthest = min(up, now[v].hops+1), max(farthest, now[v].hops)
				} else if now[v].onlyDown {
					down = min(down, now[v].hops+1)
				}
			}
			is := state{min(up, down), down < up || down == up && farthest > down}
			if is.hops >= none.hops {
				is = none
			}
			if s != t && is != now[s] {
				now[s], changed = is, true
			}
		}
	}
	allowed := make([]bool, f.NumPorts())
	for s := range fabric.NodeID(f.NumSwitches()) {
		ports, to := f.SwitchLinks(s)
		for k, p := range ports {
			v := to[k]
			mayGo := now[v].onlyDown
			if rank[v] < rank[s] {
				mayGo = !now[s].onlyDown
			}
			allowed[p] = mayGo && now[s] != none && now[v].hops == now[s].hops-1
		}
	}
	return allowed
}

// Both implementations give the ports of the definition.
func TestLegalPorts(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	some := 0
	for range *fabrics {
		f := small{12, 8, 8}.random(t, r)
		w := newNetwork(f)
		rank := order(f)
		r.Shuffle(len(rank), func(i, j int) { rank[i], rank[j] = rank[j], rank[i] }) // some reach others by no legal path
		ways := newWays(w, LegalPaths, rank)
		x := newTree(ways, make([]int64, len(w.port)))
		for i, d := range w.targets {
			want := legalPorts(f, d, rank)
			if got := LegalPorts(f, rank, d); !slices.Equal(got, want) {
				t.Fatalf("order %v, to %d: %v, want %v", rank, d, got, want)
			}
			x.grow(i)
			for c, p := range w.port {
				if got := x.onward(int32(w.from[c]), int32(c)); got != want[p] {
					t.Fatalf("order %v, to %d: channel %d is legal %t, want %t", rank, d, c, got, want[p])
				}
				if want[p] {
					some++
				}
			}
		}
	}
	if some == 0 {
		t.Error("no legal port")
	}
}

// checkBounds proves all bounds again.
func checkBounds(t testing.TB, f *fabric.Fabric, b *Bounds) {
	t.Helper()
	for _, x := range b.List() {
		if err := x.Certificate.Check(f, nil); err != nil {
			t.Errorf("%s: %v", x.Words, err)
		}
	}
}

// find looks for bounds, and proves them again.
func find(t testing.TB, f *fabric.Fabric, opt Options) *Bounds {
	t.Helper()
	b := short.Must(Find(t.Context(), f, opt))(t)
	checkBounds(t, f, b)
	return b
}
