package updown

import (
	"math"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// flow divides the traffic of all hosts over the legal ports of an order, so that the greatest
// load becomes small. It is scratch of one worker.
//
// At first each switch divides its routes by what can flow on behind each port. Then, again
// and again, a port gets less in proportion to the greatest load that its part met behind
// it. The best round counts.
type flow struct {
	*network
	targets []fabric.NodeID

	busy   []float64 // by switch: routes to the target at hand that arrive
	behind []float64 // by switch: what flows on, or the load met
	byHops [256][]fabric.NodeID

	nodes []node
	hop   []int32   // links
	share []float64 // of hop
	load  []float64 // by link
}

// node is a switch that has routes to a target.
type node struct {
	s, t fabric.NodeID
	end  int32 // of its part of hop
}

// loads says how an order loads links; less is better.
type loads struct {
	greatest float64 // routes on the most loaded fastest cable, or the same on a slower one
	idle     int     // links without load
	powers   float64 // sum of the fourth powers of loads
}

func (x *network) newFlow(targets []fabric.NodeID) *flow {
	n := len(x.hosts)
	return &flow{
		network: x, targets: targets, busy: make([]float64, n), behind: make([]float64, n), load: make([]float64, len(x.to)),
	}
}

// findLoads finds the loads of an order, the best of some rounds. It returns false if a path
// is longer than 254 links.
func (x *flow) findLoads(o *Order, rounds int) (best loads, ok bool) {
	x.nodes, x.hop = x.nodes[:0], x.hop[:0]
	tree := newTree(newDirections(x.f, o))
	for _, t := range x.targets {
		if !tree.growTo(t) {
			return loads{}, false
		}
		x.listNodes(tree, t)
	}
	x.share = slices.Grow(x.share[:0], len(x.hop))[:len(x.hop)]
	x.shareByRate()
	for round := range rounds {
		if round > 0 {
			x.shareByLoad()
		}
		if l := x.divide(); round == 0 || l.greatest < best.greatest {
			best = l
		}
	}
	return best, true
}

// listNodes lists the switches that have routes to t, the farthest first, with their ports.
func (x *flow) listNodes(tree *tree, t fabric.NodeID) {
	for i := range x.byHops {
		x.byHops[i] = x.byHops[i][:0]
	}
	farthest := 0
	copy(x.busy, x.hosts)
	for s := range fabric.NodeID(len(x.hosts)) {
		if h := tree.hops[tree.d.order.Rank[s]]; h != 0 && h != fabric.Unreachable {
			x.byHops[h] = append(x.byHops[h], s)
			farthest = max(farthest, int(h))
		}
	}
	for h := farthest; h > 0; h-- {
		for _, s := range x.byHops[h] {
			if x.busy[s] > 0 {
				x.listHops(tree, s, t)
			}
		}
	}
}

// listHops adds a switch with routes to t to nodes.
func (x *flow) listHops(tree *tree, s, t fabric.NodeID) {
	rank := tree.d.order.Rank
	for i := x.first[s]; i < x.first[s+1]; i++ {
		if v := x.to[i]; tree.mayStep(rank[s], rank[v]) {
			x.hop = append(x.hop, i)
			x.busy[v] = max(x.busy[v], 1)
		}
	}
	x.nodes = append(x.nodes, node{s, t, int32(len(x.hop))})
}

// hopsOf is the part of hop of a node.
func (x *flow) hopsOf(i int) (from, to int32) {
	if i > 0 {
		from = x.nodes[i-1].end
	}
	return from, x.nodes[i].end
}

// shareByRate gives each port a share in proportion to what can flow on behind it.
func (x *flow) shareByRate() {
	for i := len(x.nodes) - 1; i >= 0; i-- {
		n := &x.nodes[i]
		x.behind[n.t] = math.Inf(1)
		from, to := x.hopsOf(i)
		sum := 0.0
		for k := from; k < to; k++ {
			x.share[k] = min(x.rate[x.hop[k]], x.behind[x.to[x.hop[k]]])
			sum += x.share[k]
		}
		x.behind[n.s] = sum
		for k := from; k < to; k++ {
			x.share[k] /= sum
		}
	}
}

// shareByLoad gives each port less in proportion to the load that its part met.
func (x *flow) shareByLoad() {
	for i := len(x.nodes) - 1; i >= 0; i-- {
		n := &x.nodes[i]
		x.behind[n.t] = 0
		from, to := x.hopsOf(i)
		met, sum := 0.0, 0.0
		for k := from; k < to; k++ {
			l := x.hop[k]
			worst := max(x.load[l]/x.rate[l], x.behind[x.to[l]])
			met += float64(x.share[k] * worst)
			x.share[k] /= worst
			sum += x.share[k]
		}
		x.behind[n.s] = met
		for k := from; k < to; k++ {
			x.share[k] /= sum
		}
	}
}

// divide divides all routes by the shares.
func (x *flow) divide() (s loads) {
	clear(x.load)
	for i := range x.nodes {
		n := &x.nodes[i]
		if i == 0 || n.t != x.nodes[i-1].t {
			for v, h := range x.hosts {
				x.busy[v] = float64(h * x.hosts[n.t])
			}
		}
		routes := x.busy[n.s]
		from, to := x.hopsOf(i)
		for k := from; k < to; k++ {
			part := float64(routes * x.share[k])
			l := x.hop[k]
			x.load[l] += part
			x.busy[x.to[l]] += part
		}
	}
	for l, load := range x.load {
		if load == 0 {
			s.idle++
			continue
		}
		relative := load / x.rate[l]
		s.greatest = max(s.greatest, relative)
		square := float64(relative * relative)
		s.powers += float64(float64(square*square) * x.rate[l])
	}
	return s
}
