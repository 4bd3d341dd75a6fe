package layered

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/updown"
)

// orderWork bounds the channels that chooseOrder looks at.
const orderWork = 1 << 27

// order is an order of the switches.
type order struct {
	*updown.Order
	root    fabric.NodeID // the switch that it was grown from, NoNode for the order of updn
	missing int           // next hops that its turns rule out; -1 if some pair of hosts has no shortest path left
}

// rootsFor lists the roots by which updn takes this order.
func (o *order) rootsFor(given []fabric.NodeID) []fabric.NodeID {
	if o.root != fabric.NoNode {
		return []fabric.NodeID{o.root}
	}
	return given
}

// direction is how the shortest paths of a switch begin that make only turns of the order.
type direction uint8

const (
	unreachable direction = iota // there is no such path
	upward
	downward
)

// findNextHops lists, for the switches in order and by index there, the channels that lead
// nearer to t. With the ranks of an order, paths make only turns of the order: a switch
// with a shortest path that goes down only has the channels of such paths, any other the
// channels that go up. A switch without a path by turns of the order has all channels that
// lead nearer.
func (w *walker) findNextHops(t fabric.NodeID, rank []int32) {
	dist := w.dist.To(t)
	w.list = w.list[:0]
	w.start = slices.Grow(w.start[:0], len(w.order)+1)[:len(w.order)+1]
	w.direction[t] = downward
	for i, s := range slices.Backward(w.order) {
		w.start[i+1] = int32(len(w.list))
		if rank == nil || !w.findLegalHops(s, dist, rank) {
			for c := w.first[s]; c < w.first[s+1]; c++ {
				if dist[w.to[c]] == dist[s]-1 {
					w.list = append(w.list, c)
				}
			}
		}
	}
	w.start[0] = int32(len(w.list))
}

// findLegalHops lists the next hops of a switch by turns of an order. It returns false if
// there are none.
func (w *walker) findLegalHops(s fabric.NodeID, dist []uint8, rank []int32) bool {
	w.direction[s] = unreachable
	nearer := dist[s] - 1
	for c := w.first[s]; c < w.first[s+1]; c++ {
		if v := w.to[c]; dist[v] == nearer && w.direction[v] == downward && rank[v] > rank[s] {
			w.list = append(w.list, c)
			w.direction[s] = downward
		}
	}
	if w.direction[s] == downward {
		return true
	}
	for c := w.first[s]; c < w.first[s+1]; c++ {
		if v := w.to[c]; dist[v] == nearer && w.direction[v] != unreachable && rank[v] < rank[s] {
			w.list = append(w.list, c)
			w.direction[s] = upward
		}
	}
	return w.direction[s] == upward
}

// nextHops is the next hops of the switch with index i in order.
func (w *walker) nextHops(i int) []int32 { return w.list[w.start[i+1]:w.start[i]] }

// countNextHops counts the next hops of all switches on shortest paths from hosts to t. It
// returns false if a switch with hosts has no path by turns of the order.
func (w *walker) countNextHops(t fabric.NodeID, rank []int32) (n int, ok bool) {
	w.order = w.sort.FarthestFirst(w.dist.To(t))
	w.findNextHops(t, rank)
	clear(w.busy)
	for i, s := range w.order {
		if w.hosts[s] > 0 {
			if rank != nil && w.direction[s] == unreachable {
				return 0, false
			}
		} else if !w.busy[s] {
			continue
		}
		list := w.nextHops(i)
		n += len(list)
		for _, c := range list {
			w.busy[w.to[c]] = true
		}
	}
	return n, true
}

// measureImbalance measures how unevenly the routes of hosts load the channels when each
// switch divides them evenly over its next hops by an order: the sum of the fourth powers
// of the loads, which the greatest loads dominate. It returns false if countNextHops does.
func (w *walker) measureImbalance(destinations []destination, rank []int32) (sum float64, ok bool) {
	load := make([]float64, len(w.to))
	arriving := make([]float64, len(w.all))
	for _, t := range destinations {
		if _, ok := w.countNextHops(t.s, rank); !ok {
			return 0, false
		}
		for s, h := range w.hosts {
			arriving[s] = float64(h) * float64(t.lids)
		}
		for i, s := range w.order {
			if arriving[s] == 0 {
				continue
			}
			list := w.nextHops(i)
			share := arriving[s] / float64(len(list))
			for _, c := range list {
				load[c] += float64(share * float64(w.unit[c]))
				arriving[w.to[c]] += share
			}
		}
	}
	for _, x := range load {
		x = float64(x * x)
		sum += float64(x * x)
	}
	return sum, true
}

// chooseOrder chooses the order of the switches: the order of updn, grown from roots if there
// are any. If that leaves some pair of hosts no shortest path, it takes the best order grown
// from a single switch. If the order rules out some next hops, but leaves each pair a
// shortest path, it tries orders grown from single switches, as many as orderWork allows, and
// takes the one with the least imbalance if it has less, or rules out fewer next hops.
func (p *paths) chooseOrder(ctx context.Context, roots []fabric.NodeID) (*order, error) {
	grown, err := updown.ChooseOrder(ctx, p.f, roots)
	if err != nil {
		return nil, err
	}
	chosen := &order{Order: grown, root: fabric.NoNode}
	destinations := p.listDestinations()
	chosen.missing = p.countMissing(ctx, destinations, chosen.Rank)
	if chosen.missing < 0 && len(roots) == 0 {
		// Lanes are fewer with an order that grows from one switch.
		grown, err := updown.ChooseTop(ctx, p.f)
		if err != nil {
			return nil, err
		}
		chosen = &order{Order: grown, root: grown.Switch[0], missing: p.countMissing(ctx, destinations, grown.Rank)}
	}
	if chosen.missing <= 0 || len(roots) > 0 {
		return chosen, ctx.Err()
	}
	tops := p.all
	if most := max(2, orderWork/(3*len(p.to)*len(destinations))); len(tops) > most {
		tops = make([]fabric.NodeID, most)
		for i := range tops {
			tops[i] = p.all[i*(len(p.all)-1)/(most-1)]
		}
	}
	tried := make([]*order, 1+len(tops))
	imbalance := make([]float64, len(tried))
	forEach(ctx, 0, len(tried), p.newWalker, func(w *walker, i int) {
		o := chosen
		if i > 0 {
			o = &order{Order: updown.NewOrder(p.f, tops[i-1:i]), root: tops[i-1]}
		}
		var ok bool
		if imbalance[i], ok = w.measureImbalance(destinations, o.Rank); ok {
			tried[i] = o
		}
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	best := 0
	for i, o := range tried {
		if o != nil && (best == 0 || imbalance[i] < float64(imbalance[best]*(1-1e-9))) { // less is rounding
			best = i
		}
	}
	if best > 0 {
		grown := tried[best]
		grown.missing = p.countMissing(ctx, destinations, grown.Rank)
		if grown.missing < chosen.missing || imbalance[best] < float64(imbalance[0]*(1-1e-9)) {
			chosen = grown
		}
	}
	return chosen, ctx.Err()
}

// destination is a switch and its number of LIDs of hosts.
type destination struct {
	s    fabric.NodeID
	lids int
}

func (p *paths) listDestinations() (list []destination) {
	for i := range p.jobs {
		j := &p.jobs[i]
		if n := len(list); n > 0 && list[n-1].s == j.t {
			list[n-1].lids += len(j.lids)
			continue
		}
		list = append(list, destination{j.t, len(j.lids)})
	}
	return list
}

// countMissing counts the next hops to the destinations that an order rules out. It is -1 if
// some pair of hosts has no shortest path left.
func (p *paths) countMissing(ctx context.Context, destinations []destination, rank []int32) int {
	var missing atomic.Int64
	var none atomic.Bool
	forEach(ctx, 0, len(destinations), p.newWalker, func(w *walker, i int) {
		if none.Load() {
			return
		}
		kept, ok := w.countNextHops(destinations[i].s, rank)
		if !ok {
			none.Store(true)
			return
		}
		all, _ := w.countNextHops(destinations[i].s, nil)
		missing.Add(int64(all - kept))
	})
	if none.Load() {
		return -1
	}
	return int(missing.Load())
}
