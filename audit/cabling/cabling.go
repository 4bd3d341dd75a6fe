// Package cabling checks in a raw capture of a fabric that it is cabled as meant. It finds slow
// links, cables that are missing, moved or crossed, and nodes that stand alone or share a name. It
// makes no promise to other modules.
//
// The intent is one of three. An expected topology is compared port by port; package plan makes it
// from a cabling plan. If a shape is given, the fabric must be of its kind and size, and deviations
// are findings. Without either, Recognize guesses the shape, and deviations are findings if the
// guess is certain.
//
// Forwarding tables and LIDs are not used.
package cabling

import (
	"slices"

	"github.com/ibweave/ibweave/audit/rails"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/verify"
)

// Options state the intended cabling.
type Options struct {
	// Expected is the topology that the fabric should be; nil for none. If set, Check judges all
	// cables by it and none by the shape of the fabric.
	Expected *fabric.Fabric
	// Invented has the GUIDs that package plan made up for nodes that only Expected
	// has. Findings do not show them.
	Invented map[fabric.GUID]bool
	// Meant is the shape that the fabric should have; nil for any.
	Meant *Meant
	// Between and Hosts are the least width and speed of links between switches and of links of
	// hosts; 0 allows any.
	Between, Hosts fabric.Link
}

// Result has the findings of Check.
type Result struct {
	Shape    *Shape
	Findings []verify.Finding // the order has no meaning, but is always the same
	// Recabled has the cables between nodes of both fabrics that differ from the expected ones.
	Recabled []Recabled
}

// Check compares the cabling of f with opt. It takes O(ports) and the time of Recognize.
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
			shape.Certain = true // the operator says so
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
	// isNamed is true, by PortID, if a finding names the port for a missing or wrong cable.
	isNamed  []bool
	expected *comparison // with Options.Expected; nil without
	// joined has pairs of nodes that would be connected if nothing were missing: the ends of
	// missing cables, and the neighbours of missing nodes.
	joined [][2]fabric.NodeID
}

// nodeEndpoints returns endpoints that name whole nodes.
func nodeEndpoints(f *fabric.Fabric, nodes ...fabric.NodeID) []verify.Endpoint {
	return text.Each(nodes, func(n fabric.NodeID) verify.Endpoint { return verify.EndpointOf(f, f.PortBase(n)) })
}

// add adds a finding about ports. Its Switch is the first switch that owns one of them.
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

// checkRails adds the findings of package rails if hosts are cabled as rails.
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

// checkComponents reports nodes without a cable, and parts that no cables connect.
func (c *checker) checkComponents() {
	f := c.f
	part := graph.NewUnionFind[fabric.NodeID](f.NumNodes())
	cabled := make([]bool, f.NumNodes())
	for _, x := range f.Cables() {
		a, b := f.Owner(x.A), f.Owner(x.B)
		cabled[a], cabled[b] = true, true
		part.Join(a, b)
	}
	explained := make(map[fabric.NodeID]bool) // ends of missing cables, which have a finding
	for _, ends := range c.joined {
		part.Join(ends[0], ends[1])
		explained[ends[0]], explained[ends[1]] = true, true
	}
	size := make([]int, f.NumNodes()) // of each part, by its root
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
				if len(f.Cables()) == 0 { // captured from a port without a link
					c.findings[len(c.findings)-1].Severity = verify.Error
				}
			}
		case part.Find(n) == n && n != largest:
			c.add(SplitFabric, size[n], nodeEndpoints(f, n), "%s cannot be reached from the other %d: those with %q (%s)",
				text.Count(size[n], "node", "nodes"), f.NumNodes()-size[n], f.Name(n).Text, f.Node(n).GUID)
		}
	}
}

// checkNodes reports names and GUIDs that several nodes or ports have.
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

	owner := make(map[fabric.GUID]fabric.PortID) // with this port GUID; port 0 for a node's GUID
	for _, n := range f.Nodes() {
		owner[f.Node(n).GUID] = f.PortBase(n)
	}
	for p := f.PortBase(fabric.NodeID(f.NumSwitches())); p < fabric.PortID(f.NumPorts()); p++ {
		guid := f.PortGUID(p)
		if guid == 0 || f.Peer(p) == fabric.NoPort {
			continue
		}
		first, taken := owner[guid]
		if taken && first != f.PortBase(f.Owner(p)) { // a port may have the GUID of its node
			c.add(DuplicateGUID, 2, verify.EndpointsOf(f, first, p), "%s and %s have one GUID, %s", verify.EndpointOf(f, first), verify.EndpointOf(f, p), guid)
			continue
		}
		owner[guid] = p
	}
}

// maxPorts bounds the ports that one finding lists.
const maxPorts = 100

// oneHost returns true if all nodes have the same system GUID.
func (c *checker) oneHost(nodes []fabric.NodeID) bool {
	system := c.f.Node(nodes[0]).SystemGUID
	return system != 0 && !slices.ContainsFunc(nodes, func(n fabric.NodeID) bool { return c.f.Node(n).SystemGUID != system })
}
