package updown

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/lft"
)

// score says how good an order is; less is better, field by field.
type score struct {
	longer   uint64  // routes between hosts that are longer than a shortest path
	greatest uint64  // most loaded channel, by unit
	squares  float64 // sum of the squares of all loads, in routes
}

func (a score) compare(b score) int {
	return cmp.Or(cmp.Compare(a.longer, b.longer), cmp.Compare(a.greatest, b.greatest), cmp.Compare(a.squares, b.squares))
}

const (
	// routeUnit is one route in score.greatest, so that routes can be
	// divided among equal ports.
	routeUnit = 1 << 16
	// allTops is the most switches that are all tried on top. trialWork
	// bounds the channels that all trials visit together, as far as minTrials
	// and minTargets allow.
	allTops    = 64
	trialWork  = 1 << 20
	minTrials  = 8
	minTargets = 32
)

// ChooseOrder grows the order from roots. Without roots it tries orders grown
// from single switches and takes the best: first, by the routes between hosts that are longer than a shortest path;
// then by the load of the most loaded channel when every destination's
// traffic divides evenly over equal ports; then by the sum of squared loads;
// then by the GUID on top.
//
// Why single switches: in an order that grows from one switch by distance,
// every switch has an upward link towards that switch, so that the order
// needs no root in common, and whatever lies between two switches at the same
// distance can be used in both directions. Which switch is on top decides the
// rest. In a fat tree with a spine on top every other spine lies below the
// leaves: all traffic between leaves squeezes through one spine, although its
// paths are as short as any. With a leaf on top all spines lie between it and
// the other leaves, every leaf-to-leaf path of minimal length is legal, and
// spine-to-spine traffic crosses the top leaf. On a mesh a corner on top
// makes the negative-first turn model, whose legal paths are all minimal.
// The load tells these apart where path lengths do not.
//
// All switches are tried when there are at most allTops; otherwise one of
// each kind, where kinds are told apart by the number of hosts, of links, and
// the sum of distances to all others. Where that is still too much work,
// destinations and kinds are sampled.
func ChooseOrder(ctx context.Context, f *fabric.Fabric, roots []fabric.NodeID) (*Order, error) {
	d, err := chooseDirections(ctx, f, roots)
	if err != nil {
		return nil, err
	}
	return d.order, nil
}

// chooseDirections is ChooseOrder with the directions that the order gives links.
func chooseDirections(ctx context.Context, f *fabric.Fabric, roots []fabric.NodeID) (*directions, error) {
	n := f.NumSwitches()
	if n == 0 || len(roots) > 0 {
		return newDirections(f, NewOrder(f, roots)), nil
	}
	dist := f.Distances()
	hosts := make([]uint64, n)
	channels := 0
	for s := range hosts {
		hosts[s] = uint64(len(f.HostsOn(fabric.NodeID(s))))
		channels += len(f.Neighbors(fabric.NodeID(s)))
	}
	tops := listTops(f, dist, hosts)
	targets := listTargets(hosts)
	if most := trialWork / max(1, channels*min(len(tops), minTrials)); len(targets) > max(most, minTargets) {
		targets = sampleTargets(targets, max(most, minTargets))
	}
	if most := max(trialWork/max(1, channels*len(targets)), minTrials); len(tops) > most {
		kept := make([]fabric.NodeID, most)
		for i := range kept {
			kept[i] = tops[i*(len(tops)-1)/(most-1)]
		}
		tops = kept
	}
	tried := make([]*directions, len(tops))
	scores := make([]score, len(tops))
	err := par.ForEach(ctx, 0, len(tops), func(i int) error {
		tried[i] = newDirections(f, NewOrder(f, tops[i:i+1]))
		scores[i] = tried[i].scoreOrder(f, dist, hosts, targets)
		return nil
	})
	if err != nil {
		return nil, err
	}
	best := 0
	for i := range scores {
		c := scores[i].compare(scores[best])
		if c < 0 || c == 0 && tops[i] < tops[best] {
			best = i
		}
	}
	return tried[best], nil
}

// listTops lists the switches worth trying on top, the most central first: all of
// a small fabric, one of each kind of a large one.
func listTops(f *fabric.Fabric, dist *fabric.HopMatrix, hosts []uint64) []fabric.NodeID {
	n := f.NumSwitches()
	type kind struct {
		sum          uint64
		hosts, links uint64
		s            fabric.NodeID
	}
	kinds := make([]kind, n)
	for s := range kinds {
		id := fabric.NodeID(s)
		kinds[s] = kind{hosts: hosts[s], links: uint64(len(f.Neighbors(id))), s: id}
		for _, d := range dist.To(id) {
			kinds[s].sum += uint64(d)
		}
	}
	same := func(a, b kind) int {
		return cmp.Or(cmp.Compare(a.sum, b.sum), cmp.Compare(a.hosts, b.hosts), cmp.Compare(a.links, b.links))
	}
	slices.SortFunc(kinds, func(a, b kind) int { return cmp.Or(same(a, b), cmp.Compare(a.s, b.s)) })
	if n > allTops {
		kinds = slices.CompactFunc(kinds, func(a, b kind) bool { return same(a, b) == 0 })
	}
	list := make([]fabric.NodeID, len(kinds))
	for i, k := range kinds {
		list[i] = k.s
	}
	return list
}

// listTargets lists the destination switches of the trials: those with hosts, or all if no
// switch has hosts.
func listTargets(hosts []uint64) []fabric.NodeID {
	var all []fabric.NodeID
	for s, h := range hosts {
		if h > 0 {
			all = append(all, fabric.NodeID(s))
		}
	}
	if len(all) == 0 {
		for s := range hosts {
			all = append(all, fabric.NodeID(s))
		}
	}
	return all
}

// sampleTargets takes n of list at random, but the same ones every time: a stride
// could pick one column of a mesh.
func sampleTargets(list []fabric.NodeID, n int) []fabric.NodeID {
	rnd := rand.New(rand.NewPCG(uint64(len(list)), uint64(n)))
	rnd.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:n]
}

// scoreOrder routes to targets along the order and divides all traffic evenly over equal
// ports.
func (d *directions) scoreOrder(f *fabric.Fabric, dist *fabric.HopMatrix, hosts []uint64, targets []fabric.NodeID) score {
	x := newTree(d)
	load := make([]uint64, f.PortBase(fabric.NodeID(f.NumSwitches()))) // by PortID of switches
	flow := make([]uint64, len(hosts))                                 // by rank
	longer := uint64(0)
	for _, t := range targets {
		if !x.growTo(t) {
			return score{longer: math.MaxUint64}
		}
		minimal := dist.To(t)
		weight := max(1, hosts[t])
		for r, s := range d.order.Switch {
			flow[r] = hosts[s] * weight * routeUnit
			if h := x.hops[r]; h != fabric.Unreachable && h > minimal[s] {
				longer += hosts[s] * weight
			}
		}
		x.divideFlows(flow, load)
	}
	return scoreLoads(f, load, longer)
}

// divideFlows adds to load the channels' shares of flow, the routes that begin at each
// switch, by rank: each switch divides its routes evenly over its ports.
func (x *tree) divideFlows(flow, load []uint64) {
	for _, s := range x.sort.FarthestFirst(x.hops) {
		r := int32(s) // hops are by rank
		if flow[r] == 0 {
			continue
		}
		c, which, hops := x.side(r)
		to, port := c.from(r)
		if !which.known {
			*which = x.findChoice(to, hops, x.hops[r]-1)
		}
		some := x.index[which.from:which.to]
		if len(some) == 0 { // all
			part := flow[r] / uint64(len(to))
			for i, v := range to {
				load[port[i]] += part
				flow[v] += part
			}
			continue
		}
		part := flow[r] / uint64(len(some))
		for _, i := range some {
			load[port[i]] += part
			flow[to[i]] += part
		}
	}
}

// scoreLoads is the score of the loads of channels: a route counts more on a slower one.
func scoreLoads(f *fabric.Fabric, load []uint64, longer uint64) score {
	fastest := 0
	for c := range load {
		if load[c] > 0 {
			fastest = max(fastest, f.Link(fabric.PortID(c)).Mbps())
		}
	}
	s := score{longer: longer}
	for c, l := range load {
		if l == 0 {
			continue
		}
		if mbps := f.Link(fabric.PortID(c)).Mbps(); mbps > 0 {
			l = l / uint64(mbps) * uint64(fastest)
		}
		s.greatest = max(s.greatest, l)
		routes := float64(l) / routeUnit
		s.squares += float64(routes * routes)
	}
	return s
}

var _ lft.Engine = Engine{}
