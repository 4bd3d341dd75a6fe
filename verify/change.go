package verify

import (
	"fmt"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// Changes checks tables after cables are gone by what changed, with the guarantee of
// Check, as long as numbers prove it: each channel between switches has one, and
// no packet goes from a channel to one with a number that is not greater. Numbers
// that increase cannot go round in a circle, whoever made them. Not safe for concurrent
// use: Clone it.
//
// It does not know multicast or virtual lanes: for tables on one VL.
type Changes struct {
	f       *fabric.Fabric
	before  *lft.Tables
	number  []int32 // by PortID
	sources []int64 // by switch: CA and router ports
	pairs   int64   // of CA and router ports and LIDs of others

	// scratch of reach
	state []int8 // by switch: 0 not looked at, 1 on the way, 2 delivers, 3 does not
	way   []fabric.NodeID
}

// NewChanges proves tables t of fabric f, which nobody may change any more.
// The error says what numbers do not prove: a forwarding loop, a pair of ports
// that is not joined, or the dependency that does not increase.
func NewChanges(f *fabric.Fabric, t *lft.Tables, number []int32) (*Changes, error) {
	c := &Changes{
		f: f, before: t, number: number, sources: make([]int64, f.NumSwitches()), pairs: caPairs(f),
		state: make([]int8, f.NumSwitches()),
	}
	for _, s := range f.CASwitches() {
		if s == fabric.NoNode {
			return nil, fmt.Errorf("a CA is cabled to a CA")
		}
		c.sources[s]++
	}
	for lid, p := range f.LIDPorts() {
		if p == fabric.NoPort {
			continue
		}
		r := c.reach(f, t, fabric.LID(lid), true)
		switch {
		case r.falls != nil:
			return nil, r.falls
		case r.delivered != len(c.state):
			return nil, fmt.Errorf("not every switch delivers LID %d", lid)
		}
	}
	return c, nil
}

// Clone is one for another goroutine.
func (c *Changes) Clone() *Changes {
	d := *c
	d.state, d.way = make([]int8, len(c.state)), nil
	return &d
}

// caPairs counts ordered pairs of a CA or router port and a LID of another one.
func caPairs(f *fabric.Fabric) int64 {
	lids := int64(0)
	for _, p := range f.LIDPorts() {
		if p != fabric.NoPort && !f.IsSwitch(f.Owner(p)) {
			lids++
		}
	}
	return lids * int64(len(f.CAPorts())-1)
}

// Change is what a failure did.
type Change struct {
	Gone int64 // pairs of which a port has no cable any more
	Lost int64 // pairs of ports that have one, and are not joined any more
	// Unproven is a dependency for which the numbers do not increase; nil when there
	// is none, and then there is no credit loop, not even of packets that meet old
	// entries on some switches and new ones on others.
	Unproven error
}

// Check looks at tables t of g, which is the fabric of NewChanges without some
// cables. The tables differ from those of NewChanges in entries for the LIDs given,
// and in no others; LIDs whose packets used a cable that is missing are checked whether
// given or not.
func (c *Changes) Check(g *fabric.Fabric, t *lft.Tables, lids []fabric.LID) Change {
	r := Change{Gone: c.pairs - caPairs(g)}
	sources := make([]int64, g.NumSwitches())
	all := int64(len(g.CAPorts()))
	for _, s := range g.CASwitches() {
		sources[s]++
	}
	for _, lid := range c.touched(g, lids) {
		to := c.reach(g, t, lid, r.Unproven == nil)
		if r.Unproven == nil {
			r.Unproven = to.falls
		}
		if p := g.LIDPort(lid); p == fabric.NoPort || g.IsSwitch(g.Owner(p)) {
			continue
		}
		joined := int64(0)
		for s, state := range c.state {
			if state == delivers {
				joined += sources[s]
			}
		}
		if joined == 0 { // not even the switch of the port, whose own port is among the sources
			joined = 1
		}
		r.Lost += all - joined
	}
	return r
}

// touched adds to lids those with entries for ports whose cables are missing in g.
func (c *Changes) touched(g *fabric.Fabric, lids []fabric.LID) []fabric.LID {
	hit := make([]bool, len(c.f.LIDPorts()))
	for _, lid := range lids {
		hit[lid] = true
	}
	for s := range fabric.NodeID(g.NumSwitches()) {
		for p := range g.Node(s).NumPorts {
			at := g.Port(s, p+1)
			if g.Peer(at) == c.f.Peer(at) {
				continue
			}
			for lid, port := range c.before.Row(s)[:len(hit)] {
				if port == p+1 {
					hit[lid] = true
				}
			}
		}
	}
	list := lids[:0:0]
	for lid, yes := range hit {
		if yes && c.f.LIDPort(fabric.LID(lid)) != fabric.NoPort {
			list = append(list, fabric.LID(lid))
		}
	}
	return list
}

// The states of switches for one LID.
const (
	unseen int8 = iota
	onTheWay
	delivers
	loses
)

// reached is what switches do with one LID.
type reached struct {
	delivered int   // switches that do
	falls     error // a channel and one that follows with no greater number, if asked for
}

// reach finds out for every switch whether it delivers a LID, see c.state. Each is
// walked from until something known is met.
func (c *Changes) reach(f *fabric.Fabric, t *lft.Tables, lid fabric.LID, prove bool) reached {
	var r reached
	clear(c.state)
	target := f.LIDPort(lid)
	for s := range fabric.NodeID(len(c.state)) {
		c.way = c.way[:0]
		last := int32(-1) // the number of the channel before; injection is below all
		verdict := loses
		for u := s; ; {
			if c.state[u] == onTheWay { // a loop
				break
			}
			seen := c.state[u]
			if seen == unseen {
				c.way = append(c.way, u)
				c.state[u] = onTheWay
			}
			num := t.Row(u)[lid]
			at := f.PortBase(u)
			if seen == loses || target == fabric.NoPort || num > f.Node(u).NumPorts {
				break
			}
			if num == fabric.ManagementPort {
				if at == target {
					verdict = delivers
				}
				break
			}
			out := at + fabric.PortID(num)
			peer := f.Peer(out)
			if peer == target {
				verdict = delivers
				break
			}
			if peer == fabric.NoPort || !f.IsSwitch(f.Owner(peer)) {
				break
			}
			// The dependency from the channel before counts though packets that are
			// lost later make none: so there are no fewer than need be.
			if prove && r.falls == nil && c.number[out] <= last {
				r.falls = fmt.Errorf("LID %d leaves %s by a channel that is not above the one before", lid, f.PortName(out))
			}
			last = c.number[out]
			if seen == delivers {
				verdict = delivers
				break
			}
			u = f.Owner(peer)
		}
		for _, u := range c.way {
			c.state[u] = verdict
		}
	}
	for _, state := range c.state {
		if state == delivers {
			r.delivered++
		}
	}
	return r
}

// UpDownNumbers is numbers for Changes of a routing whose packets go up a total order
// of the switches and then down: order is each switch's rank, 0 on top. They prove
// nothing unless the tables keep to the order, which is what Changes looks at.
func UpDownNumbers(f *fabric.Fabric, order []int32) []int32 {
	number := make([]int32, f.NumPorts())
	n := int32(len(order))
	for s := range fabric.NodeID(f.NumSwitches()) {
		ports, to := f.SwitchLinks(s)
		for i, p := range ports {
			if rank := order[to[i]]; rank < order[s] {
				number[p] = n - rank
			} else {
				number[p] = n + rank
			}
		}
	}
	return number
}
