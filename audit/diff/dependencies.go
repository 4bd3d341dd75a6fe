package diff

import (
	"math/bits"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
)

// channelNumbers numbers channels: VL v of the port with PortID p of a switch is
// channel p*vls+v. What a channel depends on are channels of the switch that
// it leads to, words of bits from VL 0 of that switch's port 0 on.
type channelNumbers struct {
	vls   int
	words int
	heads []int32 // by PortID: the switch, -1 for none
	first []int32 // by switch: channel of VL 0 of port 0
	count int     // channels
}

func newChannelNumbers(m *mixture, vls int) channelNumbers {
	g := channelNumbers{vls: vls, heads: m.to, first: make([]int32, m.n), count: len(m.to) * vls}
	ports := 1
	for s := range m.n {
		g.first[s] = int32(m.f.PortBase(fabric.NodeID(s))) * int32(vls)
		ports = max(ports, int(m.f.Node(fabric.NodeID(s)).NumPorts)+1)
	}
	g.words = (ports*vls + 63) / 64
	return g
}

// headOf is the switch that a channel leads to, -1 for none.
func (g *channelNumbers) headOf(ch int32) int32 { return g.heads[int(ch)/g.vls] }

// dependencies is a channel dependency graph.
type dependencies struct {
	*channelNumbers
	deps []uint64 // words for each channel
	row  []int32  // for next
}

func newDependencies(shape *channelNumbers) *dependencies {
	return &dependencies{channelNumbers: shape, deps: make([]uint64, shape.count*shape.words)}
}

// add makes c depend on e, a channel of switch s, to which c leads.
func (g *dependencies) add(c, s, e int32) {
	i := int(e - g.first[s])
	g.deps[int(c)*g.words+i>>6] |= 1 << (i & 63)
}

// join adds the dependencies of another graph.
func (g *dependencies) join(o *dependencies) {
	for i, set := range o.deps {
		g.deps[i] |= set
	}
}

// next lists the channels that ch depends on, ascending.
func (g *dependencies) next(ch int32) []int32 {
	g.row = g.row[:0]
	head := g.headOf(ch)
	for w := 0; head >= 0 && w < g.words; w++ {
		for set := g.deps[int(ch)*g.words+w]; set != 0; set &= set - 1 {
			g.row = append(g.row, g.first[head]+int32(w<<6+bits.TrailingZeros64(set)))
		}
	}
	return g.row
}

// maxVisits bounds the search for a shortest cycle, in channels.
const maxVisits = 1 << 22

// cycles is the strongly connected components that hold a cycle, each ascending,
// by their first channels.
func (g *dependencies) cycles() [][]int32 { return graph.StronglyConnected(g.count, g.next) }

// shortest is a short cycle among the members of a component.
func (g *dependencies) shortest(members []int32) []int32 {
	cycle, _ := graph.ShortestCycle(members, g.next, 1, maxVisits)
	return cycle
}
