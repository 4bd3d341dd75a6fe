package bound

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/big"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/lft"
)

// Check proves the bound again for fabric f, by the theorem at the head of the package. It shares
// only the fabric model with the code that made the certificate. It takes O(switches with hosts x
// channels x log switches), on all CPUs.
//
// It returns an error if the certificate is for another fabric or another demand than d, names
// ports or switches that the fabric lacks, or claims more or less than its lengths prove.
func (c *Certificate) Check(f *fabric.Fabric, d *lft.Demand) error {
	demanded := c.Demand != ([sha256.Size]byte{})
	switch {
	case demanded && d == nil:
		return errors.New("the bound is for a demand, and there is none")
	case demanded && c.Demand != DemandDigest(f, d):
		return errors.New("the bound is for another demand: its digest is not that of this one")
	case demanded && (c.Gate || c.Unit != 0):
		return errors.New("the bound is for a demand: want unit 0 and no gate")
	}
	if c.Fabric != Digest(f) {
		return errors.New("the bound is for other cables, rates, hosts or LMCs: its digest is not that of this fabric")
	}
	x := &recheck{f: f, paths: c.Paths, length: make([]int64, f.NumPorts()), counted: make([]int64, f.NumSwitches())}
	if c.Paths == LegalPaths {
		var err error
		if x.rank, err = c.Ranks(f); err != nil {
			return err
		}
	}
	for _, l := range c.Channels {
		s, ok := f.SwitchByGUID(l.Switch)
		if !ok || l.Port == 0 || l.Port > f.Node(s).NumPorts {
			return fmt.Errorf("the fabric has no port %d of a switch %s", l.Port, l.Switch)
		}
		p := f.Port(s, l.Port)
		if to := f.PeerSwitch(p); to == fabric.NoNode || to == s {
			return fmt.Errorf("%s has no cable to another switch", f.PortName(p))
		}
		if l.Length < 1 || l.Length > MaxLength || x.length[p] != 0 {
			return fmt.Errorf("%s has length %d: want 1 to %d, once", f.PortName(p), l.Length, MaxLength)
		}
		x.length[p] = l.Length
	}
	hosts, lids := traffic(f)
	if c.Gate {
		if err := x.findGate(c, hosts); err != nil {
			return err
		}
	} else if err := x.countSources(c, hosts); err != nil {
		return err
	}
	need := x.need(lids)
	if demanded {
		need.Mul(need, big.NewInt(d.Background))
		need.Add(need, x.needFor(d))
	}
	return c.compare(need, x.f, x.length)
}

// needFor returns N of the theorem for the traffic of jobs.
func (x *recheck) needFor(d *lft.Demand) *big.Int {
	sum := new(big.Int)
	for t, flows := range switchFlows(x.f, d) {
		if len(flows) == 0 {
			continue
		}
		dist := x.distances(fabric.NodeID(t))
		for _, flow := range flows {
			if far := dist[flow.From]; far > 0 && x.counted[flow.From] > 0 {
				sum.Add(sum, new(big.Int).Mul(big.NewInt(far), big.NewInt(flow.Amount)))
			}
		}
	}
	return sum
}

// recheck has the contents of a certificate by indices of the fabric.
type recheck struct {
	f       *fabric.Fabric
	paths   Paths
	rank    []int32 // by switch: for legal paths, its place in the order
	length  []int64 // by PortID; 0 without a length
	counted []int64 // by switch: number of routes to each LID that count
	gate    fabric.NodeID
	behind  []int64 // by switch: hosts that reach it only through the gate; nil without a gate
	unit    int64
}

// countSources sets x.counted.
func (x *recheck) countSources(c *Certificate, hosts []int64) error {
	count := func(s fabric.NodeID) {
		x.counted[s] = hosts[s]
		if c.Unit > 0 {
			x.counted[s] -= hosts[s] % c.Unit
		}
	}
	if c.Sources == nil {
		for s := range hosts {
			count(fabric.NodeID(s))
		}
		return nil
	}
	for _, g := range c.Sources {
		s, ok := x.f.SwitchByGUID(g)
		if !ok || hosts[s] == 0 || x.counted[s] != 0 {
			return fmt.Errorf("source %s: want a switch with hosts, once", g)
		}
		count(s)
	}
	return nil
}

// findGate sets x.behind. Without the gate the switches fall into parts; all hosts outside of a
// switch's part reach it only through the gate.
func (x *recheck) findGate(c *Certificate, hosts []int64) error {
	var ok bool
	if len(c.Sources) != 1 {
		return fmt.Errorf("%d gates: want one", len(c.Sources))
	}
	if x.gate, ok = x.f.SwitchByGUID(c.Sources[0]); !ok {
		return fmt.Errorf("gate %s: want a switch", c.Sources[0])
	}
	x.unit, x.behind = c.Unit, make([]int64, len(hosts))
	part := make([]int, len(hosts)) // by switch, from 1; 0 if not yet known
	part[x.gate] = -1
	sum, all := []int64{0}, hosts[x.gate] // by part: its hosts
	for _, start := range x.f.Neighbors(x.gate) {
		if part[start] != 0 {
			continue
		}
		k := len(sum)
		sum = append(sum, 0)
		part[start] = k
		for queue := []fabric.NodeID{start}; len(queue) > 0; queue = queue[1:] {
			sum[k] += hosts[queue[0]]
			for _, o := range x.f.Neighbors(queue[0]) {
				if part[o] == 0 {
					part[o] = k
					queue = append(queue, o)
				}
			}
		}
		all += sum[k]
	}
	for s, k := range part {
		if k > 0 {
			x.behind[s] = all - sum[k]
		}
	}
	return nil
}

// need returns N of the theorem.
func (x *recheck) need(lids []int64) *big.Int {
	part := make([]*big.Int, len(lids)) // by destination switch
	par.Each(len(lids), func(t int) {
		part[t] = new(big.Int)
		if lids[t] == 0 {
			return
		}
		sum, routes := part[t], new(big.Int)
		if x.behind != nil {
			counted := x.behind[t]
			if x.unit > 0 {
				counted -= counted % x.unit
			}
			if d := x.distances(fabric.NodeID(t))[x.gate]; d > 0 {
				sum.Mul(big.NewInt(d), routes.Mul(big.NewInt(counted), big.NewInt(lids[t])))
			}
			return
		}
		for s, d := range x.distances(fabric.NodeID(t)) {
			if d > 0 && x.counted[s] > 0 {
				sum.Add(sum, routes.Mul(big.NewInt(d), big.NewInt(x.counted[s])))
			}
		}
		sum.Mul(sum, big.NewInt(lids[t]))
	})
	sum := new(big.Int)
	for _, n := range part {
		sum.Add(sum, n)
	}
	return sum
}

// distances returns, by switch, the least length of a path to switch t, or -1 if there is none. It
// must consider every path that tables may take; more paths would only weaken the bound.
func (x *recheck) distances(t fabric.NodeID) []int64 {
	var legal []bool
	var hops []int64
	switch x.paths {
	case ShortestPaths:
		hops = x.search(t, func(fabric.PortID) int64 { return 1 }, func(fabric.PortID, fabric.NodeID) bool { return true })
	case LegalPaths:
		legal = LegalPorts(x.f, x.rank, t)
	}
	return x.search(t, func(p fabric.PortID) int64 { return x.length[p] }, func(p fabric.PortID, to fabric.NodeID) bool {
		switch {
		case legal != nil:
			return legal[p]
		case hops != nil:
			return hops[x.f.Owner(p)] == hops[to]+1
		}
		return true
	})
}

// search returns distances to t over allowed channels, by Dijkstra's algorithm backward from t.
func (x *recheck) search(t fabric.NodeID, length func(fabric.PortID) int64, allowed func(p fabric.PortID, to fabric.NodeID) bool) []int64 {
	dist := make([]int64, x.f.NumSwitches())
	for s := range dist {
		dist[s] = -1
	}
	dist[t] = 0
	open := graph.Heap[reached]{Before: func(a, b reached) bool { return a.distance < b.distance }}
	open.Push(reached{t, 0})
	for open.Len() > 0 {
		v := open.Pop()
		if v.distance > dist[v.at] {
			continue
		}
		ports, to := x.f.SwitchLinks(v.at)
		for k, p := range ports {
			p = x.f.Peer(p) // the channel from to[k] to v.at
			if !allowed(p, v.at) {
				continue
			}
			if d := v.distance + length(p); dist[to[k]] < 0 || d < dist[to[k]] {
				dist[to[k]] = d
				open.Push(reached{to[k], d})
			}
		}
	}
	return dist
}

// reached is a switch with the length of a path.
type reached struct {
	at       fabric.NodeID
	distance int64
}

// compare returns an error unless the bound is the least L with C(L) >= need: this must hold for
// the bound and for no less.
func (c *Certificate) compare(need *big.Int, f *fabric.Fabric, length []int64) error {
	ports := f.Channels()
	rate, fastest := Rates(f, ports), int64(0)
	for _, r := range rate {
		fastest = max(fastest, r)
	}
	at, below := new(big.Int), new(big.Int) // C(bound), and C just below the bound
	whole, rest, divisor := new(big.Int), new(big.Int), new(big.Int)
	for i, p := range ports {
		if length[p] == 0 {
			continue
		}
		// c.Bound x rate / (unit x fastest)
		whole.Mul(c.Bound.Num(), big.NewInt(rate[i]))
		if c.Unit == 0 { // at is C times fastest and the denominator, as is need below
			at.Add(at, whole.Mul(whole, big.NewInt(length[p])))
			continue
		}
		divisor.Mul(c.Bound.Denom(), big.NewInt(fastest))
		divisor.Mul(divisor, big.NewInt(c.Unit))
		whole.QuoRem(whole, divisor, rest)
		weight := big.NewInt(length[p])
		weight.Mul(weight, big.NewInt(c.Unit))
		at.Add(at, new(big.Int).Mul(whole, weight))
		if rest.Sign() == 0 {
			whole.Sub(whole, big.NewInt(1))
		}
		below.Add(below, whole.Mul(whole, weight))
	}
	if c.Unit == 0 {
		need = new(big.Int).Mul(need, big.NewInt(fastest))
		need.Mul(need, c.Bound.Denom())
		below.Sub(at, big.NewInt(1)) // the next lower integer
	}
	switch {
	case below.Cmp(need) >= 0:
		return fmt.Errorf("the bound is %s, and the lengths prove less", c.Bound)
	case at.Cmp(need) < 0:
		return fmt.Errorf("the bound is %s, and the lengths prove more", c.Bound)
	}
	return nil
}
