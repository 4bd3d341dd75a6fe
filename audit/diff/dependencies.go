package diff

import (
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
)

// newDependencies is a channel dependency graph without edges: VL v of the port with PortID p of a
// switch is channel p*vls+v. What a channel depends on are channels of the switch that it leads to.
func (m *mixture) newDependencies() *graph.Rows {
	ports := 1
	for s := range m.n {
		ports = max(ports, int(m.f.Node(fabric.NodeID(s)).NumPorts)+1)
	}
	base := make([]int32, len(m.to)*m.vls)
	for ch := range base {
		base[ch] = -1
		if head := m.to[ch/m.vls]; head >= 0 {
			base[ch] = int32(m.f.PortBase(fabric.NodeID(head))) * int32(m.vls)
		}
	}
	g := graph.NewRows(base, ports*m.vls)
	return &g
}

// maxVisits bounds the search for a shortest cycle, in channels.
const maxVisits = 1 << 22

// cycles is the strongly connected components of a graph that hold a cycle, each ascending, by
// their first channels.
func (m *mixture) cycles(g *graph.Rows) [][]int32 {
	return graph.StronglyConnected(len(m.to)*m.vls, g.Next())
}
