package diff

import (
	"cmp"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/state"
)

// Match maps the nodes and ports of two fabrics to each other.
type Match struct {
	Old, New *fabric.Fabric
	Node     []fabric.NodeID // by old NodeID; NoNode if it is gone
	Back     []fabric.NodeID // by new NodeID; NoNode if it is new
	Port     []fabric.PortID // by old PortID
	BackPort []fabric.PortID // by new PortID
}

// MatchGUIDs matches nodes of the same GUID and kind, and their ports by number.
func MatchGUIDs(old, new *fabric.Fabric) *Match {
	none := []fabric.NodeID{fabric.NoNode}
	m := &Match{Old: old, New: new, Node: slices.Repeat(none, old.NumNodes()), Back: slices.Repeat(none, new.NumNodes())}
	for _, n := range old.Nodes() {
		if at, ok := new.NodeByGUID(old.Node(n).GUID); ok && new.Node(at).Type == old.Node(n).Type {
			m.Node[n], m.Back[at] = at, n
		}
	}
	m.MatchPorts()
	return m
}

// matchNodes matches nodes by GUID, then replaced nodes: a node with another
// GUID, of the same kind and in the same place. The place is the same if more
// than half of the cables of both lead to the same ports of matched nodes. A
// CA or router must also have the same description, since a port may get
// another host.
func matchNodes(old, new *fabric.Fabric) *Match {
	m := MatchGUIDs(old, new)
	// A replaced node helps to place its neighbours. All nodes of a round are matched together, so
	// their order does not matter.
	for found := true; found; {
		var pairs [][2]fabric.NodeID
		for n, at := range m.Node {
			if at == fabric.NoNode {
				at = m.findReplacement(fabric.NodeID(n))
				if at != fabric.NoNode {
					pairs = append(pairs, [2]fabric.NodeID{fabric.NodeID(n), at})
				}
			}
		}
		for _, p := range pairs {
			m.Node[p[0]], m.Back[p[1]] = p[1], p[0]
		}
		found = len(pairs) > 0
	}
	m.MatchPorts()
	return m
}

// findReplacement returns the new node that replaced an old one; NoNode for
// none. There is at most one, and it replaced no other, since more than half
// of the cables of both must agree.
func (m *Match) findReplacement(n fabric.NodeID) fabric.NodeID {
	node := m.Old.Node(n)
	votes := map[fabric.NodeID]int{}
	cables := 0
	for p := range m.Old.Cabled(n) {
		cables++
		peer := m.Old.Peer(p)
		at := m.Node[m.Old.Owner(peer)]
		if at == fabric.NoNode || m.Old.Num(peer) > m.New.Node(at).NumPorts {
			continue
		}
		now := m.New.Peer(m.New.Port(at, m.Old.Num(peer)))
		if now != fabric.NoPort && m.New.Num(now) == m.Old.Num(p) && m.Back[m.New.Owner(now)] == fabric.NoNode {
			votes[m.New.Owner(now)]++
		}
	}
	for at, n := range votes {
		now := m.New.Node(at)
		if now.Type != node.Type || now.NumPorts != node.NumPorts || 2*n <= max(cables, len(slices.Collect(m.New.Cabled(at)))) {
			continue
		}
		if node.Type == fabric.Switch || now.Description == node.Description {
			return at
		}
	}
	return fabric.NoNode
}

// MatchPorts matches the ports of matched nodes.
func (m *Match) MatchPorts() {
	none := []fabric.PortID{fabric.NoPort}
	m.Port, m.BackPort = slices.Repeat(none, m.Old.NumPorts()), slices.Repeat(none, m.New.NumPorts())
	for n, at := range m.Node {
		if at == fabric.NoNode {
			continue
		}
		for k := range min(m.Old.Node(fabric.NodeID(n)).NumPorts, m.New.Node(at).NumPorts) + 1 {
			p, x := m.Old.Port(fabric.NodeID(n), k), m.New.Port(at, k)
			m.Port[p], m.BackPort[x] = x, p
		}
	}
}

// SameCable returns true if the cables of two matched ports lead to matched ports, or neither port
// has one; false for NoPort.
func (m *Match) SameCable(old, new fabric.PortID) bool {
	if old == fabric.NoPort || new == fabric.NoPort {
		return false
	}
	x, y := m.Old.Peer(old), m.New.Peer(new)
	if x == fabric.NoPort || y == fabric.NoPort {
		return x == y
	}
	return m.Port[x] == y
}

// EachMap calls see for the SL-to-VL maps that packets can meet in both states. They leave by port
// old, now new, which has a cable in both, and enter by port in: 0, or one with a cable in both.
func (m *Match) EachMap(a, b *lft.SL2VL, see func(in fabric.PortNum, old, new fabric.PortID, was, is *lft.VLMap)) {
	for in, x := range b.PortPairs() {
		p := m.BackPort[x]
		if p == fabric.NoPort || m.Old.Peer(p) == fabric.NoPort {
			continue
		}
		n := m.Old.Owner(p)
		if in == 0 || in <= m.Old.Node(n).NumPorts && m.Old.Peer(m.Old.Port(n, in)) != fabric.NoPort {
			see(in, p, x, a.At(in, p), b.At(in, x))
		}
	}
}

// EachMask calls see for each matched switch that has a mask for an MLID in either state, with both
// masks as port numbers. s is the switch in the new state.
func (m *Match) EachMask(a, b *mft.Tables, l fabric.LID, see func(s fabric.NodeID, was, is []int)) {
	var switches []fabric.NodeID // of the new state
	for _, p := range a.Ports(l) {
		if s := m.Node[m.Old.Owner(p)]; s != fabric.NoNode {
			switches = append(switches, s)
		}
	}
	for _, p := range b.Ports(l) {
		if s := m.New.Owner(p); m.Back[s] != fabric.NoNode {
			switches = append(switches, s)
		}
	}
	slices.Sort(switches)
	for _, s := range slices.Compact(switches) {
		see(s, m.Old.Nums(a.Mask(m.Back[s], l)), m.New.Nums(b.Mask(s, l)))
	}
}

// comparison has the inputs and the result that all parts of Compare use.
type comparison struct {
	*Match
	a, b    *state.State
	targets []target
	r       *Result
}

// target is a destination of both states: a LID of an end port that both have, or a LID that no
// port has in either.
type target struct {
	old, new fabric.LID
	port     fabric.PortID // of the new fabric; NoPort for a LID that no port has
}

// findTargets lists the destinations of both states, by new LID. If a port has more LIDs in one
// state than in the other, the higher ones are left out.
func (c *comparison) findTargets() []target {
	var list []target
	for l, x := range c.New.LIDPorts() {
		if x == fabric.NoPort || c.New.LID(x) != fabric.LID(l) {
			continue
		}
		p := c.BackPort[x]
		if p == fabric.NoPort || c.Old.LID(p) == 0 {
			continue
		}
		for k := range fabric.LID(1) << min(c.Old.LMC(p), c.New.LMC(x)) {
			list = append(list, target{old: c.Old.LID(p) + k, new: c.New.LID(x) + k, port: x})
		}
	}
	highest := fabric.LID(0)
	if c.a.Tables != nil && c.b.Tables != nil {
		highest = max(c.a.Tables.MaxLID(), c.b.Tables.MaxLID())
	}
	for l := fabric.LID(1); l <= highest; l++ {
		if c.Old.LIDPort(l) == fabric.NoPort && c.New.LIDPort(l) == fabric.NoPort {
			list = append(list, target{old: l, new: l, port: fabric.NoPort})
		}
	}
	slices.SortFunc(list, func(a, b target) int { return cmp.Compare(a.new, b.new) })
	return list
}
