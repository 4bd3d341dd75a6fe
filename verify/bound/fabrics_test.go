package bound

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ibweave/ibweave/fabric"
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
		if err != nil {
			t.Fatal(err)
		}
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

// paths is by PortID whether tables may send by the port from there to the hosts of switch t.
func allowedPorts(f *fabric.Fabric, t fabric.NodeID, paths Paths) []bool {
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

// checkBounds proves all bounds again.
func checkBounds(t testing.TB, f *fabric.Fabric, b *Bounds, legal Legal) {
	t.Helper()
	for _, x := range b.List() {
		if err := x.Certificate.Check(f, legal); err != nil {
			t.Errorf("%s: %v", x.Words, err)
		}
	}
}

// find looks for bounds, and proves them again.
func find(t testing.TB, f *fabric.Fabric, opt Options) *Bounds {
	t.Helper()
	b, err := Find(t.Context(), f, opt)
	if err != nil {
		t.Fatal(err)
	}
	checkBounds(t, f, b, opt.Legal)
	return b
}
