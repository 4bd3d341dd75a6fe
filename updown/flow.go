package updown

import (
	"math"

	"github.com/ibweave/ibweave/fabric"
)

// flow divides the traffic of all hosts to targets over the legal ports of an
// order; each switch divides it in proportion to the ports' rates. It is the
// scratch memory of a worker.
type flow struct {
	*network
	targets []fabric.NodeID
	busy    []float64 // by switch: routes to the current target that arrive
	load    []float64 // by link
}

func (x *network) newFlow(targets []fabric.NodeID) *flow {
	return &flow{network: x, targets: targets, busy: make([]float64, len(x.hosts)), load: make([]float64, len(x.to))}
}

// sumPowers returns the sum of the fourth powers of the links' loads under order o,
// relative to their rates; infinite if a path is longer than 254 links.
func (x *flow) sumPowers(o *Order) (sum float64) {
	tree := newTree(newDirections(x.f, o))
	for _, t := range x.targets {
		if !tree.growTo(t) {
			return math.Inf(1)
		}
		for v, h := range x.hosts {
			x.busy[v] = float64(h * x.hosts[t])
		}
		for _, r := range tree.sort.FarthestFirst(tree.hops) {
			if s := o.Switch[r]; x.busy[s] > 0 {
				x.divide(tree, s)
			}
		}
	}
	for l, load := range x.load {
		relative := load / x.rate[l]
		square := float64(relative * relative)
		sum += float64(float64(square*square) * x.rate[l])
	}
	return sum
}

// divide divides what arrives at switch s over its legal ports.
func (x *flow) divide(tree *tree, s fabric.NodeID) {
	rank := tree.d.order.Rank
	sum := 0.0
	for l := x.first[s]; l < x.first[s+1]; l++ {
		if tree.mayStep(rank[s], rank[x.to[l]]) {
			sum += x.rate[l]
		}
	}
	for l := x.first[s]; l < x.first[s+1]; l++ {
		if tree.mayStep(rank[s], rank[x.to[l]]) {
			part := float64(x.busy[s] * (x.rate[l] / sum))
			x.load[l] += part
			x.busy[x.to[l]] += part
		}
	}
}
