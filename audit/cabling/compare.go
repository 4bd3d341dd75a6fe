package cabling

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/audit/diff"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/verify"
)

// comparison compares the fabric with the topology, or the shape, that it should have.
type comparison struct {
	*checker
	*diff.Match                      // of e with f; nil for a shape
	e           *fabric.Fabric       // nil for a shape
	shape       string               // its name
	invented    map[fabric.GUID]bool // nodes of e that have no GUID of their own
	recabled    []Recabled
	want        []fabric.PortID // by PortID of f: far end of the expected cable, in f, or NoPort
	have        []fabric.PortID // the same for the actual cable, if e has both nodes
}

// compare adds findings for all differences from the expected topology, port by port. It returns
// the cables that differ between nodes of both fabrics.
//
// Nodes match by GUID; the others match by a description that is unique on
// both sides. The missing and the extra cables between matched nodes form
// paths and cycles over the ports that they share. Each path or cycle is one
// slip of a hand and one finding: a missing cable, an extra cable, a cable
// with one end in a wrong port, or two crossed cables.
func (m *comparison) compare() []Recabled {
	m.matchNodes()
	m.addStrangers()
	m.compareCables()
	return m.recabled
}

// matchNodes matches the nodes of e and f by GUID, then by type and unique description.
func (m *comparison) matchNodes() {
	m.Match = diff.MatchGUIDs(m.e, m.f)
	type name struct {
		typ         fabric.NodeType
		description string
	}
	nameOf := func(f *fabric.Fabric, n fabric.NodeID) name { return name{f.Node(n).Type, f.Name(n).Text} }
	// listNames returns the unmatched nodes of f by name.
	listNames := func(f *fabric.Fabric, partner []fabric.NodeID) map[name][]fabric.NodeID {
		names := make(map[name][]fabric.NodeID)
		for n := range fabric.NodeID(f.NumNodes()) {
			if partner[n] == fabric.NoNode && (f != m.e || !m.invented[f.Node(n).GUID]) {
				names[nameOf(f, n)] = append(names[nameOf(f, n)], n)
			}
		}
		return names
	}
	found, expected := listNames(m.f, m.Back), listNames(m.e, m.Node)
	for _, n := range m.f.Nodes() {
		x, description := m.f.Node(n), m.f.Name(n).Text
		at := expected[nameOf(m.f, n)]
		if m.Back[n] != fabric.NoNode || description == "" || len(found[nameOf(m.f, n)]) != 1 || len(at) != 1 {
			continue
		}
		o := at[0]
		m.Back[n], m.Node[o] = o, n
		m.add(ReplacedNode, 1, nodeEndpoints(m.f, n), "%s %q has the GUID %s, in the expected topology %s",
			strings.ToLower(x.Type.String()), description, x.GUID, m.e.Node(o).GUID)
	}
	m.MatchPorts()
}

// meant returns in words what the fabric is compared with.
func (m *comparison) meant() string {
	if m.invented != nil {
		return "plan"
	}
	return "expected topology"
}

// addStrangers adds a finding for each node that only one side has, with all its cables. It skips
// nodes without cables; checkComponents reports those of the fabric.
//
// If the sides have no node in common, there is one finding: the expectation is of another fabric.
func (m *comparison) addStrangers() {
	if n := m.e.NumNodes(); n > 0 && !slices.ContainsFunc(m.Node, func(n fabric.NodeID) bool { return n != fabric.NoNode }) {
		m.add(MissingNode, m.e.NumLinks(), nil, "none of the %s of the %s is in the fabric: it is of another fabric, or --node-name-map has other names",
			text.CountGrouped(n, "node", "nodes"), m.meant())
		return
	}
	for _, o := range m.e.Nodes() {
		peers := peersOf(m.e, o)
		if m.Node[o] != fabric.NoNode || len(peers) == 0 {
			continue
		}
		var ports []fabric.PortID // of f
		for _, peer := range peers {
			if p := m.Port[peer]; p != fabric.NoPort {
				ports = append(ports, p)
				m.joined = append(m.joined, [2]fabric.NodeID{m.f.Owner(ports[0]), m.f.Owner(p)})
			}
		}
		m.markNamed(ports...)
		m.addStranger(MissingNode, m.e, o, len(peers), ports, "%s is not there, nor %s of it, to %s")
	}
	for _, n := range m.f.Nodes() {
		if ports := peersOf(m.f, n); m.Back[n] == fabric.NoNode && len(ports) > 0 {
			m.addStranger(ExtraNode, m.f, n, len(ports), ports, "%s is not in the "+m.meant()+"; it has %s, to %s")
		}
	}
}

// addStranger adds a finding about node n of one side; cables counts its cables, and ports are their
// far ends, as ports of f.
func (m *comparison) addStranger(rule string, side *fabric.Fabric, n fabric.NodeID, cables int, ports []fabric.PortID, format string) {
	at := verify.EndpointsOf(m.f, ports[:min(len(ports), maxPorts)]...)
	node := nodeEndpoints(side, n)
	what := fmt.Sprintf("%s %q", strings.ToLower(side.Node(n).Type.String()), side.Name(n).Text)
	if side == m.e && m.invented[node[0].Node] {
		node[0].Node = 0
	} else {
		what += fmt.Sprintf(" (%s)", node[0].Node)
	}
	to := portList(at)
	if len(at) == 0 {
		to = "nodes that are not there"
	}
	m.add(rule, cables, append(node, at...), format, what, countCables(cables), to)
}

// peersOf returns the ports at the far ends of a node's cables.
func peersOf(f *fabric.Fabric, n fabric.NodeID) []fabric.PortID {
	return text.Each(slices.Collect(f.Cabled(n)), f.Peer)
}

// clear sets all of want and have to NoPort.
func (m *comparison) clear() {
	m.want = slices.Repeat([]fabric.PortID{fabric.NoPort}, m.f.NumPorts())
	m.have = slices.Clone(m.want)
}

// compareCables fills want and have for nodes of both sides, and adds a finding where they differ.
func (m *comparison) compareCables() {
	f := m.f
	m.clear()
	for _, c := range m.e.Cables() {
		p, peer := c.A, c.B
		a, b := m.Port[p], m.Port[peer]
		switch {
		case a != fabric.NoPort && b != fabric.NoPort:
			m.want[a], m.want[b] = b, a
		case m.Node[m.e.Owner(p)] != fabric.NoNode && m.Node[m.e.Owner(peer)] != fabric.NoNode:
			m.add(MissingCable, 1, verify.EndpointsOf(m.e, p, peer), "%s should lead to %s; one of these nodes has fewer ports now", m.e.PortName(p), m.e.PortName(peer))
		}
	}
	for _, c := range f.Cables() {
		if m.Back[f.Owner(c.A)] != fabric.NoNode && m.Back[f.Owner(c.B)] != fabric.NoNode {
			m.have[c.A], m.have[c.B] = c.B, c.A
		}
	}
	m.addDifferences()
}

// addDifferences adds findings for the ports where want and have differ.
func (m *comparison) addDifferences() {
	f := m.f
	// Follow expected and actual cables in turn: first paths, from one end, then cycles.
	seen := make([]bool, f.NumPorts())
	wrong := func(p fabric.PortID) bool { return m.want[p] != m.have[p] }
	for _, cycles := range []bool{false, true} {
		for p := range fabric.PortID(f.NumPorts()) {
			end := m.want[p] == fabric.NoPort || m.have[p] == fabric.NoPort
			if seen[p] || !wrong(p) || !cycles && !end {
				continue
			}
			var path []fabric.PortID
			missing := m.want[p] != fabric.NoPort // path[0] to path[1] is a missing cable
			for at, next := p, missing; at != fabric.NoPort && !seen[at]; next = !next {
				seen[at] = true
				path = append(path, at)
				if next {
					at = m.want[at]
				} else {
					at = m.have[at]
				}
			}
			m.addRecabled(path, missing, cycles)
		}
	}
}

// addRecabled adds one finding for a path or cycle of ports, along which
// missing and extra cables alternate. The first, from path[0] to path[1], is
// missing if missing is set, else extra. An end of a path may be port 0, for an
// unknown port of the switch: the finding then proposes no moves.
func (m *comparison) addRecabled(path []fabric.PortID, missing, cycle bool) {
	f := m.f
	name := func(p fabric.PortID) string { return verify.EndpointOf(f, p).String() }
	m.recabled = append(m.recabled, m.mend(path, missing, cycle))
	mend := ""
	if !slices.ContainsFunc(path, func(p fabric.PortID) bool { return f.Num(p) == 0 }) {
		mend = m.recabled[len(m.recabled)-1].mend(f)
	}
	m.markNamed(path...)
	for _, p := range path {
		if w := m.want[p]; w != fabric.NoPort {
			m.joined = append(m.joined, [2]fabric.NodeID{f.Owner(p), f.Owner(w)})
		}
	}
	switch {
	case !cycle && len(path) == 2 && missing:
		m.add(MissingCable, 1, verify.EndpointsOf(f, path...), "%s should lead to %s: neither has a cable%s", name(path[0]), name(path[1]), m.elsewhere(path, true))
	case !cycle && len(path) == 2 && m.e == nil:
		m.add(ExtraCable, 1, verify.EndpointsOf(f, path...), "%s to %s does not belong to the %s", name(path[0]), name(path[1]), m.shape)
	case !cycle && len(path) == 2:
		m.add(ExtraCable, 1, verify.EndpointsOf(f, path...), "%s leads to %s: neither should have a cable%s", name(path[0]), name(path[1]), m.elsewhere(path, false))
	case !cycle && len(path) == 3:
		stays, meant, is := path[1], path[0], path[2]
		if !missing {
			meant, is = is, meant
		}
		m.add(MovedCable, 1, verify.EndpointsOf(f, stays, meant, is), "%s leads to %s and should lead to %s%s", name(stays), name(is), name(meant), mend)
	case cycle && len(path) == 4 && m.swapped(path):
		hosts := slices.DeleteFunc(slices.Clone(path), func(p fabric.PortID) bool { return f.IsSwitch(f.Owner(p)) })
		slices.Sort(hosts)
		ports := verify.EndpointsOf(f, hosts[0], f.Peer(hosts[0]), hosts[1], f.Peer(hosts[1]))
		m.add(SwappedHosts, 2, ports, "%s is at %s and %s at %s: each in the place of the other%s",
			name(hosts[0]), name(f.Peer(hosts[0])), name(hosts[1]), name(f.Peer(hosts[1])), mend)
	default:
		var say []string
		cables := 0
		for _, p := range path {
			if w := m.want[p]; w != fabric.NoPort && f.Num(p) != 0 && (w > p || f.Num(w) == 0) {
				is := "no cable"
				if h := f.Peer(p); h != fabric.NoPort {
					is = name(h)
				}
				say = append(say, name(p)+" should lead to "+name(w)+" and has "+is)
				cables++
			}
		}
		rule := CrossedCables
		if !cycle {
			rule = MovedCable
		}
		m.add(rule, cables, verify.EndpointsOf(f, path...), "%s%s", strings.Join(say, "; "), mend)
	}
}

// swapped returns true if a cycle of four ports means that two hosts have changed places.
func (m *comparison) swapped(path []fabric.PortID) bool {
	host := func(i int) bool { return !m.f.IsSwitch(m.f.Owner(path[i])) }
	return host(0) && host(2) && !host(1) && !host(3) && m.f.Owner(path[0]) != m.f.Owner(path[2]) ||
		host(1) && host(3) && !host(0) && !host(2) && m.f.Owner(path[1]) != m.f.Owner(path[3])
}

// elsewhere describes a cable of the path's ports to a node of one side only: the actual cable if
// missing is set, else the expected one; "" for none.
func (m *comparison) elsewhere(path []fabric.PortID, missing bool) string {
	for _, p := range path {
		if peer := m.f.Peer(p); missing && peer != fabric.NoPort {
			return " to the nodes of the " + m.meant() + ", and " + m.f.PortName(p) + " leads to " + m.f.PortName(peer)
		}
		if missing {
			continue
		}
		if at := m.BackPort[p]; at != fabric.NoPort && m.e.Peer(at) != fabric.NoPort {
			return " to the nodes that are there, and " + m.f.PortName(p) + " should lead to " + m.e.PortName(m.e.Peer(at))
		}
	}
	return ""
}
