package verify

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
)

// wiring makes test fabrics: switches and CAs that take their next free port.
type wiring struct {
	b     fabric.Builder
	nodes int
	next  map[int]fabric.PortNum
	err   error
}

func (w *wiring) node(typ fabric.NodeType, ports int) int {
	base := fabric.GUID(0xca00000)
	name := "host"
	switch typ {
	case fabric.Switch:
		base, name = 0x5000, "switch"
	case fabric.Router:
		name = "router"
	}
	i := w.nodes
	w.nodes++
	n, err := w.b.AddNode(fabric.Node{Type: typ, GUID: base + 0x100*fabric.GUID(i), NumPorts: fabric.PortNum(ports), Description: fmt.Sprintf("%s %d", name, i)})
	w.fail(err)
	return n
}

func (w *wiring) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *wiring) cable(a, b int) {
	if w.next == nil {
		w.next = map[int]fabric.PortNum{}
	}
	w.next[a]++
	p := w.next[a]
	w.next[b]++
	w.fail(w.b.Connect(a, p, b, w.next[b], fabric.Link{}))
}

func (w *wiring) fabric(t testing.TB) *fabric.Fabric {
	t.Helper()
	if w.err != nil {
		t.Fatal(w.err)
	}
	return short.Must(w.b.Build())(t)
}

// number gives LIDs to all end ports: from 1 on, switches first.
func number(t testing.TB, f *fabric.Fabric, err error) *fabric.Fabric {
	t.Helper()
	short.Check(t, err)
	return short.Must(lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs}))(t)
}

// withAggregation is f or, once in three times, f with an aggregation node on each switch.
func withAggregation(t testing.TB, r *rand.Rand, f *fabric.Fabric) *fabric.Fabric {
	t.Helper()
	if f == nil || r.IntN(3) > 0 {
		return f
	}
	return short.Must(gen.Options{AggregationNodes: true}.Apply(f))(t)
}

// randomFabric is a small fabric of some kind, with what real ones have now
// and then.
func randomFabric(t testing.TB, r *rand.Rand) *fabric.Fabric {
	t.Helper()
	switch r.IntN(7) {
	case 0:
		f, err := mesh.Generate(mesh.Spec{Dims: []int{2 + r.IntN(3), 2 + r.IntN(3)}, Hosts: 1})
		return number(t, withAggregation(t, r, f), err)
	case 1:
		f, err := mesh.Generate(mesh.Spec{Dims: []int{3 + r.IntN(2), 3}, Wrap: []bool{true, r.IntN(2) == 0}, Hosts: 1})
		return number(t, f, err)
	case 2, 3:
		f, err := gen.Irregular(gen.IrregularSpec{Switches: 6 + r.IntN(5), Degree: 4, Hosts: 14, Seed: r.Uint64()})
		return number(t, withAggregation(t, r, f), err)
	case 4:
		f, err := gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2 + r.IntN(2)})
		return number(t, withAggregation(t, r, f), err)
	}
	// An irregular network: a random tree, further cables (some twice, some
	// from a switch to itself), CAs with several ports, routers, now and then
	// a cable between two CAs.
	var w wiring
	n := 1 + r.IntN(9)
	switches := make([]int, n)
	for i := range switches {
		switches[i] = w.node(fabric.Switch, 40)
		if i > 0 && r.IntN(12) > 0 {
			w.cable(switches[i], switches[r.IntN(i)])
		}
	}
	for range r.IntN(2 * n) {
		w.cable(switches[r.IntN(n)], switches[r.IntN(n)])
	}
	for range 1 + r.IntN(2*n) {
		typ := fabric.CA
		if r.IntN(8) == 0 {
			typ = fabric.Router
		}
		ca := w.node(typ, 3)
		for range 1 + r.IntN(2) {
			w.cable(ca, switches[r.IntN(n)])
		}
	}
	if r.IntN(4) == 0 {
		w.cable(w.node(fabric.CA, 1), w.node(fabric.CA, 2))
	}
	for range max(0, r.IntN(4)-2) * n / 2 { // on some switches, two on others
		a := w.node(fabric.CA, 1)
		w.b.Node(a).Description = gen.AggregationNode
		w.cable(a, switches[r.IntN(n)])
	}
	return numberAtRandom(t, r, w.fabric(t))
}

// numberAtRandom gives LIDs in random order with gaps, an LMC to some, and
// none to a few.
func numberAtRandom(t testing.TB, r *rand.Rand, f *fabric.Fabric) *fabric.Fabric {
	t.Helper()
	var ends []fabric.PortID
	f.EndPorts(func(p fabric.PortID) { ends = append(ends, p) })
	r.Shuffle(len(ends), func(i, j int) { ends[i], ends[j] = ends[j], ends[i] })
	base := make([]fabric.LID, f.NumPorts())
	lmc := make([]uint8, f.NumPorts())
	next := fabric.LID(1)
	for _, p := range ends {
		if r.IntN(40) == 0 {
			continue
		}
		next += fabric.LID(r.IntN(3))
		if !f.IsSwitch(f.Owner(p)) && r.IntN(6) == 0 {
			lmc[p] = uint8(1 + r.IntN(2))
			next = (next + 3) &^ 3
		}
		base[p] = next
		next += 1 << lmc[p]
	}
	return short.Must(f.WithLIDs(base, lmc))(t)
}

// toward gives the port by which a LID is reached where its owner is next:
// the owner's switch and its port, no switch for a CA that is cabled to none.
func toward(f *fabric.Fabric, lid fabric.LID) (root fabric.NodeID, port fabric.PortNum) {
	owner := f.LIDPort(lid)
	if owner == fabric.NoPort {
		return fabric.NoNode, 0
	}
	if f.IsSwitch(f.Owner(owner)) {
		return f.Owner(owner), fabric.ManagementPort
	}
	peer := f.Peer(owner)
	if peer == fabric.NoPort || !f.IsSwitch(f.Owner(peer)) {
		return fabric.NoNode, 0
	}
	return f.Owner(peer), f.Num(peer)
}

// shortestTables routes each LID by a random shortest path from each switch.
func shortestTables(f *fabric.Fabric, r *rand.Rand) *lft.Tables {
	t := lft.NewTables(f.NumSwitches(), f.MaxLID())
	for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
		root, port := toward(f, lid)
		if root == fabric.NoNode {
			continue
		}
		t.Row(root)[lid] = port
		dist := map[fabric.NodeID]int{root: 0}
		for queue := []fabric.NodeID{root}; len(queue) > 0; queue = queue[1:] {
			s := queue[0]
			ports, to := f.SwitchLinks(s)
			for _, u := range to {
				if _, seen := dist[u]; !seen {
					dist[u] = dist[s] + 1
					queue = append(queue, u)
				}
			}
			if s == root {
				continue
			}
			var closer []fabric.PortNum
			for i, u := range to {
				if d, seen := dist[u]; seen && d == dist[s]-1 {
					closer = append(closer, f.Num(ports[i]))
				}
			}
			t.Row(s)[lid] = closer[r.IntN(len(closer))]
		}
	}
	return t
}

// upDownTables routes each LID up*/down* in an order that grows from switch
// 0: down by a shortest path of channels that all lead down where there is
// one, else up.
func upDownTables(f *fabric.Fabric, r *rand.Rand) *lft.Tables {
	t := lft.NewTables(f.NumSwitches(), f.MaxLID())
	u := newUpDown(f, r)
	for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
		u.route(t, lid)
	}
	return t
}

type upDown struct {
	f      *fabric.Fabric
	rank   []int // by switch, 0 on top
	byRank []fabric.NodeID
	cost   []int
	down   []bool
}

func newUpDown(f *fabric.Fabric, r *rand.Rand) *upDown {
	n := f.NumSwitches()
	u := &upDown{f: f, rank: make([]int, n), cost: make([]int, n), down: make([]bool, n)}
	for i := range u.rank {
		u.rank[i] = -1
	}
	for start := range n {
		if u.rank[start] >= 0 {
			continue
		}
		next := len(u.byRank)
		u.rank[start] = next
		for u.byRank = append(u.byRank, fabric.NodeID(start)); next < len(u.byRank); next++ {
			_, to := f.SwitchLinks(u.byRank[next])
			for _, i := range r.Perm(len(to)) {
				if u.rank[to[i]] < 0 {
					u.rank[to[i]] = len(u.byRank)
					u.byRank = append(u.byRank, to[i])
				}
			}
		}
	}
	return u
}

func (u *upDown) route(t *lft.Tables, lid fabric.LID) {
	root, port := toward(u.f, lid)
	if root == fabric.NoNode {
		return
	}
	t.Row(root)[lid] = port
	const far = 1 << 30
	for s := range u.cost {
		u.cost[s], u.down[s] = far, false
	}
	u.cost[root], u.down[root] = 0, true
	// Down paths, from the lowest switch up.
	for k := len(u.byRank) - 1; k >= 0; k-- {
		s := u.byRank[k]
		ports, to := u.f.SwitchLinks(s)
		for i, v := range to {
			if s != root && u.rank[v] > k && u.down[v] && u.cost[v]+1 < u.cost[s] {
				u.cost[s], u.down[s] = u.cost[v]+1, true
				t.Row(s)[lid] = u.f.Num(ports[i])
			}
		}
	}
	// Up steps, from the highest switch down.
	for k, s := range u.byRank {
		if u.down[s] {
			continue
		}
		ports, to := u.f.SwitchLinks(s)
		for i, v := range to {
			if u.rank[v] < k && u.cost[v]+1 < u.cost[s] {
				u.cost[s] = u.cost[v] + 1
				t.Row(s)[lid] = u.f.Num(ports[i])
			}
		}
	}
}

// cloneTables copies tables.
func cloneTables(f *fabric.Fabric, t *lft.Tables) *lft.Tables {
	c := lft.NewTables(t.Switches(), t.MaxLID())
	for s := range t.Switches() {
		copy(c.Row(fabric.NodeID(s)), t.Row(fabric.NodeID(s)))
	}
	return c
}

// someEntry is a value for a forwarding entry: mostly a port with a cable,
// and mostly one to a switch.
func someEntry(f *fabric.Fabric, s fabric.NodeID, r *rand.Rand) fabric.PortNum {
	if r.IntN(8) == 0 {
		return fabric.PortNum(r.IntN(256))
	}
	if ports, _ := f.SwitchLinks(s); len(ports) > 0 && r.IntN(4) > 0 {
		return f.Num(ports[r.IntN(len(ports))])
	}
	p := fabric.PortNum(1 + r.IntN(int(f.Node(s).NumPorts)))
	for range 300 {
		if f.Peer(f.Port(s, p)) != fabric.NoPort {
			break
		}
		p = fabric.PortNum(1 + r.IntN(int(f.Node(s).NumPorts)))
	}
	return p
}

// dmodk routes a full fat tree that gen.FatTree made. LIDs of hosts go up by
// their remainders and down by the only way. LIDs of switches go up*/down* in
// an order that grows from a leaf: it allows all those ways as well, so that
// there is no credit loop with management traffic either.
func dmodk(f *fabric.Fabric) *lft.Tables {
	n := f.NumSwitches()
	hops := f.Distances()
	t := lft.NewTables(n, f.MaxLID())
	u := newUpDown(f, rand.New(rand.NewPCG(1, 1)))
	lids := make([][]fabric.LID, n) // of hosts, by switch
	for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
		root, port := toward(f, lid)
		if port == fabric.ManagementPort {
			u.route(t, lid)
			continue
		}
		t.Row(root)[lid] = port
		lids[root] = append(lids[root], lid)
	}
	var closer []fabric.PortNum
	for root, lids := range lids {
		dist := hops.To(fabric.NodeID(root))
		for s := range fabric.NodeID(n) {
			if int(s) == root || len(lids) == 0 {
				continue
			}
			closer = closer[:0]
			ports, to := f.SwitchLinks(s)
			for i, v := range to {
				if dist[v] < dist[s] {
					closer = append(closer, f.Num(ports[i]))
				}
			}
			for _, lid := range lids {
				k := int(lid)
				if dist[s]%2 != 0 { // the middle level of three
					k /= len(closer)
				}
				t.Row(s)[lid] = closer[k%len(closer)]
			}
		}
	}
	return t
}
