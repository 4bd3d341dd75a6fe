package gen

import (
	"fmt"

	"github.com/ibweave/ibweave/fabric"
)

// DropLinks takes n random cables between switches away, such that switches
// that could reach each other over switches still can. Everything else of f
// stays, LIDs included. Fewer than n such cables: an error that says how many
// can go.
//
// It is what taking one random cable after the other away and putting back
// each one that disconnects would give, in one pass: the cables that would be
// put back are a spanning forest, the one that Kruskal's algorithm finds when
// it takes the cables in the opposite order.
func DropLinks(f *fabric.Fabric, n int, seed uint64) (*fabric.Fabric, error) {
	if n < 0 {
		return nil, fmt.Errorf("%d links to drop: want 0 or more", n)
	}
	if n == 0 {
		return f, nil
	}
	var cables []fabric.PortID // the lower port of each
	for s := range fabric.NodeID(f.NumSwitches()) {
		ports, _ := f.SwitchLinks(s)
		for _, p := range ports {
			if p < f.Peer(p) {
				cables = append(cables, p)
			}
		}
	}
	newRand(seed).Shuffle(len(cables), func(i, j int) { cables[i], cables[j] = cables[j], cables[i] })

	tree := make([]fabric.NodeID, f.NumSwitches()) // union-find, by switch
	for s := range tree {
		tree[s] = fabric.NodeID(s)
	}
	root := func(s fabric.NodeID) fabric.NodeID {
		for tree[s] != s {
			tree[s] = tree[tree[s]]
			s = tree[s]
		}
		return s
	}
	needed := make([]bool, len(cables))
	spare := len(cables)
	for i := len(cables) - 1; i >= 0; i-- {
		a, b := root(f.Owner(cables[i])), root(f.Owner(f.Peer(cables[i])))
		if a != b {
			tree[a] = b
			needed[i] = true
			spare--
		}
	}
	if n > spare {
		return nil, fmt.Errorf("%d links to drop: want at most %d, since the other %d of the %d links between switches keep them connected",
			n, spare, len(cables)-spare, len(cables))
	}
	dropped := make(map[fabric.PortID]bool, n)
	for i, p := range cables {
		if !needed[i] && len(dropped) < n {
			dropped[p] = true
		}
	}
	return without(f, dropped)
}

// without is f less some cables, each named by the lower of its ports.
func without(f *fabric.Fabric, dropped map[fabric.PortID]bool) (*fabric.Fabric, error) {
	inOrder := make([]fabric.NodeID, f.NumNodes()) // by Node.Order
	for n := range fabric.NodeID(f.NumNodes()) {
		inOrder[f.Node(n).Order] = n
	}
	var b fabric.Builder
	for _, n := range inOrder {
		node := *f.Node(n)
		i, err := b.AddNode(node)
		if err != nil {
			return nil, err
		}
		first, last := fabric.PortNum(1), node.NumPorts
		if f.IsSwitch(n) {
			first, last = fabric.ManagementPort, fabric.ManagementPort
		}
		for num := first; num <= last; num++ {
			p := f.Port(n, num)
			if err := b.SetPort(i, num, f.PortGUID(p), f.LID(p), f.LMC(p)); err != nil {
				return nil, err
			}
		}
	}
	for n := range fabric.NodeID(f.NumNodes()) {
		for num := fabric.PortNum(1); num <= f.Node(n).NumPorts; num++ {
			p := f.Port(n, num)
			peer := f.Peer(p)
			if peer < p || dropped[p] { // NoPort is less than every port
				continue
			}
			other := f.Owner(peer)
			if err := b.Connect(int(f.Node(n).Order), num, int(f.Node(other).Order), f.Num(peer), f.Link(p)); err != nil {
				return nil, err
			}
		}
	}
	return b.Build()
}
