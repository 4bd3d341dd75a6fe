package cabling

import (
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/levels"
	"github.com/ibweave/ibweave/verify"
)

// model groups switches that are built alike.
type model struct {
	device
	ports    fabric.PortNum
	enhanced bool // of its port 0; unmanaged switches of the same chip have a base port 0
}

func (c *checker) modelOf(s fabric.NodeID) model {
	n := c.f.Node(s)
	return model{c.device(s), n.NumPorts, n.EnhancedPort0}
}

// eachUnused visits each port without a link if three quarters or more of the
// nodes of its node's class use the port of this number: used of nodes do.
// Nodes of class nil are left out.
func (c *checker) eachUnused(classOf func(n fabric.NodeID) any, isUsed func(p fabric.PortID) bool, visit func(n fabric.NodeID, p fabric.PortID, used, nodes int)) {
	f := c.f
	type use struct {
		nodes int
		used  []int // by port number
	}
	uses := make(map[any]*use)
	for _, n := range f.Nodes() {
		k := classOf(n)
		u := uses[k]
		if u == nil {
			u = &use{used: make([]int, int(fabric.MaxPortNum)+1)}
			uses[k] = u
		}
		u.nodes++
		for p := range f.Cabled(n) {
			if isUsed(p) {
				u.used[f.Num(p)]++
			}
		}
	}
	for _, n := range f.Nodes() {
		k := classOf(n)
		u := uses[k]
		for num := fabric.PortNum(1); k != nil && num <= f.Node(n).NumPorts; num++ {
			if p := f.Port(n, num); f.Peer(p) == fabric.NoPort && 4*u.used[num] >= 3*u.nodes {
				visit(n, p, u.used[num], u.nodes)
			}
		}
	}
}

// checkPortsDown reports ports without a link where most nodes like theirs have one: ports of
// adapters, and ports of switches to hosts.
func (c *checker) checkPortsDown(s *Shape) {
	f := c.f
	type class struct {
		device
		ports fabric.PortNum
		level int32
		hosts bool
	}
	hosts := levels.Hosts(f)
	c.eachUnused(func(n fabric.NodeID) any {
		k := class{device: c.device(n), ports: f.Node(n).NumPorts, level: -1}
		if f.IsSwitch(n) {
			k.hosts = hosts[n] > 0
			if s.level != nil {
				k.level = s.level[n]
			}
		}
		return k
	}, func(p fabric.PortID) bool {
		return !f.IsSwitch(f.Owner(p)) || !f.IsSwitch(f.Owner(f.Peer(p)))
	}, func(n fabric.NodeID, p fabric.PortID, used, nodes int) {
		what := "adapters"
		if f.IsSwitch(n) {
			what = "switches"
		}
		if c.isNamed[p] || nodes < 4 && f.IsSwitch(n) || len(peersOf(f, n)) == 0 {
			return
		}
		c.add(PortDown, 1, verify.EndpointsOf(f, p), "%s has no link; %d of the %d %s like it have one there", f.PortName(p), used, nodes, what)
	})
}

// checkAggregation reports switches without an aggregation node, if three quarters of their model
// have one, and at least four.
func (c *checker) checkAggregation() {
	f := c.f
	isAggregation := func(p fabric.PortID) bool { return f.Kind(f.Owner(p)) == fabric.AggregationKind }
	c.eachUnused(func(n fabric.NodeID) any {
		if !f.IsSwitch(n) {
			return nil
		}
		return c.modelOf(n)
	}, func(p fabric.PortID) bool { return isAggregation(f.Peer(p)) }, func(n fabric.NodeID, p fabric.PortID, used, nodes int) {
		if used < 4 || slices.ContainsFunc(f.EndPortsOn(n), isAggregation) {
			return
		}
		c.markNamed(p)
		c.add(MissingAggregation, 1, verify.EndpointsOf(f, p), "%s has no aggregation node, which is inside a switch; %d of the %d switches like it have one, most on port %d",
			f.Name(n), used, nodes, f.Num(p))
	})
}
