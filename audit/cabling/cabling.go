// Package cabling looks at a raw capture of a fabric and says whether it is
// cabled as meant: which links are slow, which cables are missing, moved or
// crossed, which nodes stand alone or share a name.
// It makes no promise to other modules.
//
// What was meant is one of three things. An expected topology, which is compared
// port by port; package plan makes one of a cabling plan. A shape, as a generator
// makes it: then the sizes must agree and the deviations from it are findings. Or
// nothing: then Recognize says what the fabric looks like, and what it lacks of that
// is a finding if the shape is certain.
//
// Forwarding tables and LIDs do not matter here.
package cabling

import (
	"slices"

	"github.com/ibweave/ibweave/audit/rails"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/verify"
)

// Options say what was meant.
type Options struct {
	// Expected is the topology that the fabric should be; nil for none. If set, Check judges all
	// cables by it and none by the shape of the fabric.
	Expected *fabric.Fabric
	// Invented has the GUIDs of nodes of Expected that a plan names without a GUID.
	// Findings have no GUID for them.
	Invented map[fabric.GUID]bool
	// Meant is the shape that the fabric should have; nil for any.
	Meant *Meant
	// Between and Hosts are the width and speed that links between switches, and
	// links of hosts, must have at least; 0 of either for any.
	Between, Hosts fabric.Link
}

// Result is what Check found.
type Result struct {
	Shape    *Shape
	Findings []verify.Finding // in no order that means anything, but always the same
	// Recabled has the cables between nodes that both fabrics have and that differ from
	// the expected ones.
	Recabled []Recabled
}

// Check looks at the cabling of f. It takes O(ports) and what Recognize takes.
func Check(f *fabric.Fabric, opt Options) *Result {
	c := &checker{f: f, isNamed: make([]bool, f.NumPorts())}
	r := &Result{Shape: Recognize(f)}
	shape := r.Shape
	switch {
	case opt.Expected != nil:
		c.expected = &comparison{checker: c, e: opt.Expected, invented: opt.Invented}
		r.Recabled = c.expected.compare()
	case opt.Meant != nil:
		if shape = opt.Meant.fitShape(f, shape, c); shape != nil {
			shape.Certain = true // by the operator's word
			r.Shape = shape
			c.addDeviations(shape)
		}
	case shape.Certain:
		c.addDeviations(shape)
	}
	c.checkLinks(opt)
	if opt.Expected == nil && !c.checkPlanes() {
		c.checkRails()
	}
	isAggregation := func(n fabric.NodeID) bool { return opt.Expected.Kind(n) == fabric.AggregationKind }
	if opt.Expected == nil || !slices.ContainsFunc(opt.Expected.Nodes(), isAggregation) {
		c.checkAggregation()
	}
	c.checkNodes()
	c.checkComponents()
	if opt.Expected == nil {
		c.checkLevels(r.Shape)
		c.checkPortsDown(r.Shape)
	}
	r.Findings = c.findings
	return r
}

// checker collects findings.
type checker struct {
	f        *fabric.Fabric
	findings []verify.Finding
	// isNamed says by PortID that a finding names the port as where a cable is missing or
	// wrong.
	isNamed  []bool
	expected *comparison // with Options.Expected; nil without
	// joined has the ends of cables that are missing, as nodes, and those of
	// missing nodes' neighbours.
	joined [][2]fabric.NodeID
}

// nodeEndpoints names nodes.
func nodeEndpoints(f *fabric.Fabric, nodes ...fabric.NodeID) []verify.Endpoint {
	return text.Each(nodes, func(n fabric.NodeID) verify.Endpoint { return verify.EndpointOf(f, f.PortBase(n)) })
}

// add adds a finding about ports. Its switch is the first of them that is one.
func (c *checker) add(rule string, count int, ports []verify.Endpoint, format string, args ...any) {
	x := verify.NewFinding(Rules, rule, count, format, args...)
	x.Ports = ports
	for _, e := range ports {
		if s, ok := c.f.NodeByGUID(e.Node); ok && c.f.IsSwitch(s) {
			x.Switch = e.Node
			break
		}
	}
	c.findings = append(c.findings, x)
}

// markNamed notes that a finding names ports of f.
func (c *checker) markNamed(ports ...fabric.PortID) {
	for _, p := range ports {
		if p != fabric.NoPort {
			c.isNamed[p] = true
		}
	}
}

// checkRails adds what is wrong with rails, where hosts have several ports that are cabled as rails.
func (c *checker) checkRails() {
	r, err := rails.Find(c.f, nil)
	if err != nil || !r.IsRailed() {
		return
	}
	c.findings = append(c.findings, r.Findings...)
	for i := range r.Findings {
		for _, e := range r.Findings[i].Ports {
			if n, ok := c.f.NodeByGUID(e.Node); ok {
				c.markNamed(c.f.Port(n, e.Port))
			}
		}
	}
}

// checkComponents finds parts of the fabric that no cables join.
func (c *checker) checkComponents() {
	f := c.f
	part := graph.NewUnionFind[fabric.NodeID](f.NumNodes())
	cabled := make([]bool, f.NumNodes())
	for _, x := range f.Cables() {
		a, b := f.Owner(x.A), f.Owner(x.B)
		cabled[a], cabled[b] = true, true
		part.Join(a, b)
	}
	explained := make(map[fabric.NodeID]bool) // nodes that a missing cable names
	for _, ends := range c.joined {
		part.Join(ends[0], ends[1])
		explained[ends[0]], explained[ends[1]] = true, true
	}
	size := make([]int, f.NumNodes()) // by root
	for _, n := range f.Nodes() {
		size[part.Find(n)]++
	}
	largest := fabric.NodeID(0)
	for _, n := range f.Nodes() {
		if size[n] > size[largest] {
			largest = n
		}
	}
	for _, n := range f.Nodes() {
		switch {
		case !cabled[n]:
			if !explained[n] {
				c.add(IsolatedNode, 1, nodeEndpoints(f, n), "%s %q (%s) has no cable", f.Node(n).Type, f.Name(n).Text, f.Node(n).GUID)
				if len(f.Cables()) == 0 { // a capture from a port without a link, which is of no fabric
					c.findings[len(c.findings)-1].Severity = verify.Error
				}
			}
		case part.Find(n) == n && n != largest:
			c.add(SplitFabric, size[n], nodeEndpoints(f, n), "%s cannot be reached from the other %d: those with %q (%s)",
				text.Count(size[n], "node", "nodes"), f.NumNodes()-size[n], f.Name(n).Text, f.Node(n).GUID)
		}
	}
}

// checkNodes looks for names and GUIDs that are not unique.
func (c *checker) checkNodes() {
	f := c.f
	byName := make(map[string][]fabric.NodeID)
	for _, n := range f.Nodes() {
		byName[f.Name(n).Text] = append(byName[f.Name(n).Text], n)
	}
	for _, n := range f.Nodes() {
		name := f.Name(n).Text
		nodes := byName[name]
		if name == "" || n != nodes[0] || len(nodes) == 1 || c.oneHost(nodes) || !slices.ContainsFunc(nodes, func(n fabric.NodeID) bool { return f.Kind(n) != fabric.AggregationKind }) {
			continue // aggregation nodes are all called the same
		}
		c.add(DuplicateName, len(nodes), nodeEndpoints(f, nodes[:min(len(nodes), maxPorts)]...), "%s have the description %q: the first are %s and %s",
			text.Count(len(nodes), "node", "nodes"), name, f.Node(nodes[0]).GUID, f.Node(nodes[1]).GUID)
		if f.IsSwitch(nodes[0]) {
			c.findings[len(c.findings)-1].Severity = verify.Warning
		}
	}

	owner := make(map[fabric.GUID]fabric.PortID) // port 0 for a node, whose GUID no other node has
	for _, n := range f.Nodes() {
		owner[f.Node(n).GUID] = f.PortBase(n)
	}
	for p := f.PortBase(fabric.NodeID(f.NumSwitches())); p < fabric.PortID(f.NumPorts()); p++ {
		guid := f.PortGUID(p)
		if guid == 0 || f.Peer(p) == fabric.NoPort {
			continue
		}
		first, taken := owner[guid]
		if taken && first != f.PortBase(f.Owner(p)) { // that of its own node a port may have
			c.add(DuplicateGUID, 2, verify.EndpointsOf(f, first, p), "%s and %s have one GUID, %s", verify.EndpointOf(f, first), verify.EndpointOf(f, p), guid)
			continue
		}
		owner[guid] = p
	}
}

// maxPorts bounds the ports of a finding that stands for many.
const maxPorts = 100

// oneHost returns true if nodes are all parts of one device.
func (c *checker) oneHost(nodes []fabric.NodeID) bool {
	system := c.f.Node(nodes[0]).SystemGUID
	return system != 0 && !slices.ContainsFunc(nodes, func(n fabric.NodeID) bool { return c.f.Node(n).SystemGUID != system })
}
