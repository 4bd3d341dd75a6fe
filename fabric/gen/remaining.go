package gen

import "github.com/ibweave/ibweave/fabric"

// Remaining is what a subnet manager sees of f when cables are gone, each named by one
// of its ports: the largest connected part of what is left, of equal ones that with the
// lowest NodeID. All that is there has the LIDs that it has in f. A switch that is dead is
// one without cables.
func Remaining(f *fabric.Fabric, cables ...fabric.PortID) (*fabric.Fabric, error) {
	g := f.Without(cables...)
	part := make([]int, g.NumNodes()) // from 1
	var size []int
	var queue []fabric.NodeID
	for first := range fabric.NodeID(g.NumNodes()) {
		if part[first] > 0 {
			continue
		}
		size = append(size, 0)
		part[first] = len(size)
		queue = append(queue[:0], first)
		for i := 0; i < len(queue); i++ {
			n := queue[i]
			size[len(size)-1]++
			for num := range g.Node(n).NumPorts {
				peer := g.Peer(g.Port(n, num+1))
				if peer != fabric.NoPort && part[g.Owner(peer)] == 0 {
					part[g.Owner(peer)] = len(size)
					queue = append(queue, g.Owner(peer))
				}
			}
		}
	}
	largest := 1
	for i, n := range size {
		if n > size[largest-1] {
			largest = i + 1
		}
	}
	inOrder := make([]fabric.NodeID, g.NumNodes()) // by Node.Order
	for n := range fabric.NodeID(g.NumNodes()) {
		inOrder[g.Node(n).Order] = n
	}
	var b fabric.Builder
	at := make([]int, g.NumNodes())
	for _, n := range inOrder {
		if part[n] != largest {
			continue
		}
		i, err := b.AddNode(*g.Node(n))
		if err != nil {
			return nil, err
		}
		at[n] = i
		first, last := fabric.PortNum(1), g.Node(n).NumPorts
		if g.IsSwitch(n) {
			first, last = fabric.ManagementPort, fabric.ManagementPort
		}
		for num := first; num <= last; num++ {
			p := g.Port(n, num)
			if err := b.SetPort(i, num, g.PortGUID(p), g.LID(p), g.LMC(p)); err != nil {
				return nil, err
			}
		}
	}
	for _, n := range inOrder {
		for num := fabric.PortNum(1); num <= g.Node(n).NumPorts && part[n] == largest; num++ {
			p := g.Port(n, num)
			if peer := g.Peer(p); peer > p {
				if err := b.Connect(at[n], num, at[g.Owner(peer)], g.Num(peer), g.Link(p)); err != nil {
					return nil, err
				}
			}
		}
	}
	return b.Build()
}
