package cabling

import (
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/verify"
)

// checkAggregation looks for switches without an aggregation node where switches of the
// same model have one: at least four other ones, and three quarters of all.
func (c *checker) checkAggregation() {
	f := c.f
	type use struct {
		switches, with int
		ports          map[fabric.PortNum]int // by number: how many have it there
	}
	uses := map[model]*use{}
	has := make([]bool, f.NumSwitches())
	for s := range fabric.NodeID(f.NumSwitches()) {
		m := c.modelOf(s)
		u := uses[m]
		if u == nil {
			u = &use{ports: map[fabric.PortNum]int{}}
			uses[m] = u
		}
		u.switches++
		for _, p := range f.EndPortsOn(s) {
			if f.Kind(f.Owner(p)) == fabric.AggregationKind && !has[s] {
				has[s] = true
				u.with++
				u.ports[f.Num(f.Peer(p))]++
			}
		}
	}
	for s := range fabric.NodeID(f.NumSwitches()) {
		u := uses[c.modelOf(s)]
		if has[s] || u.with < 4 || 4*u.with < 3*u.switches {
			continue
		}
		usual := fabric.PortNum(0)
		for num := fabric.PortNum(1); num <= f.Node(s).NumPorts; num++ {
			if u.ports[num] > u.ports[usual] {
				usual = num
			}
		}
		c.markNamed(f.Port(s, usual))
		c.add(MissingAggregation, 1, []verify.Endpoint{nodeEndpoint(f, s, usual)}, "%s has no aggregation node, which is inside a switch; %d of the %d switches like it have one, most on port %d",
			f.Name(s), u.with, u.switches, usual)
	}
}

// hasAggregation says whether a fabric has any aggregation node.
func hasAggregation(f *fabric.Fabric) bool {
	for n := range fabric.NodeID(f.NumNodes()) {
		if f.Kind(n) == fabric.AggregationKind {
			return true
		}
	}
	return false
}
