package gen

import (
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
)

// Remaining is what a subnet manager sees of f when cables are gone, each named by one
// of its ports: the largest connected part of what is left, of equal ones that with the
// lowest NodeID. All that is there has the LIDs and kinds that it has in f. A switch that is dead is
// one without cables.
func Remaining(f *fabric.Fabric, cables ...fabric.PortID) (*fabric.Fabric, error) {
	g := f.Without(cables...)
	nodes := largestPart(g)
	slices.SortFunc(nodes, func(m, n fabric.NodeID) int { return int(g.Node(m).Order - g.Node(n).Order) })
	var b fabric.Builder
	at := make([]int, g.NumNodes())
	for _, n := range nodes {
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
	for _, n := range nodes {
		for p := g.PortBase(n); p < g.PortBase(n+1); p++ {
			if label := g.Label(p); label != "" {
				if err := b.SetLabel(at[n], g.Num(p), label); err != nil {
					return nil, err
				}
			}
			if peer := g.Peer(p); peer > p {
				if err := b.Connect(at[n], g.Num(p), at[g.Owner(peer)], g.Num(peer), g.Link(p)); err != nil {
					return nil, err
				}
			}
		}
	}
	rest, err := b.Build()
	if err != nil {
		return nil, err
	}
	var kinds []fabric.KindRule
	for n := fabric.NodeID(rest.NumSwitches()); int(n) < rest.NumNodes(); n++ {
		if was, _ := f.NodeByGUID(rest.Node(n).GUID); rest.Kind(n) != f.Kind(was) {
			kinds = append(kinds, fabric.KindRule{Kind: f.Kind(was), Pattern: rest.Node(n).GUID.String()})
		}
	}
	rest, _ = rest.WithKinds(kinds)
	return rest, nil
}

// largestPart is the nodes of the connected part with most nodes.
func largestPart(f *fabric.Fabric) []fabric.NodeID {
	var peers []fabric.NodeID
	of, count := graph.Components(f.NumNodes(), func(n fabric.NodeID) []fabric.NodeID {
		peers = peers[:0]
		for p := f.PortBase(n); p < f.PortBase(n+1); p++ {
			if peer := f.Peer(p); peer != fabric.NoPort {
				peers = append(peers, f.Owner(peer))
			}
		}
		return peers
	})
	parts := make([][]fabric.NodeID, count)
	for n, part := range of {
		parts[part] = append(parts[part], fabric.NodeID(n))
	}
	return slices.MaxFunc(parts, func(a, b []fabric.NodeID) int { return len(a) - len(b) })
}
