package layered

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/updown"
)

// orderWork bounds the channels that the search for another order looks at.
const orderWork = 1 << 27

// order is an order of the switches.
type order struct {
	*updown.Order
	top  fabric.NodeID // what it was grown from, NoNode for what updn takes
	lost int           // ways that its turns leave out; -1 when they are all ways of some pair
}

// roots is what makes updn take this order.
func (o *order) roots(given []fabric.NodeID) []fabric.NodeID {
	if o.top != fabric.NoNode {
		return []fabric.NodeID{o.top}
	}
	return given
}

// way says how a switch has a shortest path that makes no turns but those of the order.
type way uint8

const (
	astray way = iota // it has none
	upward
	downward
)

// candidates lists, for the switches in order and by index there, the channels that lead
// nearer to t. With the ranks of an order, paths make no turns but those of the order: a switch
// from which shortest paths go only down has those channels, and any other those that go up.
// Switches without such a path have all channels that lead nearer.
func (w *walker) candidates(t fabric.NodeID, rank []int32) {
	dist := w.dist.To(t)
	w.list = w.list[:0]
	w.start = slices.Grow(w.start[:0], len(w.order)+1)[:len(w.order)+1]
	w.way[t] = downward
	for i, s := range slices.Backward(w.order) {
		w.start[i+1] = int32(len(w.list))
		if rank == nil || !w.rising(s, dist, rank) {
			for c := w.first[s]; c < w.first[s+1]; c++ {
				if dist[w.to[c]] == dist[s]-1 {
					w.list = append(w.list, c)
				}
			}
		}
	}
	w.start[0] = int32(len(w.list))
}

// rising is candidates for a switch and the turns of an order. It says whether there
// are any.
func (w *walker) rising(s fabric.NodeID, dist []uint8, rank []int32) bool {
	w.way[s] = astray
	nearer := dist[s] - 1
	for c := w.first[s]; c < w.first[s+1]; c++ {
		if v := w.to[c]; dist[v] == nearer && w.way[v] == downward && rank[v] > rank[s] {
			w.list = append(w.list, c)
			w.way[s] = downward
		}
	}
	if w.way[s] == downward {
		return true
	}
	for c := w.first[s]; c < w.first[s+1]; c++ {
		if v := w.to[c]; dist[v] == nearer && w.way[v] != astray && rank[v] < rank[s] {
			w.list = append(w.list, c)
			w.way[s] = upward
		}
	}
	return w.way[s] == upward
}

// choices is the candidates of the switch with index i in order.
func (w *walker) choices(i int) []int32 { return w.list[w.start[i+1]:w.start[i]] }

// ways counts the channels by which shortest paths of hosts come to t, each for itself. It
// says false when a switch with hosts has none that makes the turns of the order alone.
func (w *walker) ways(t fabric.NodeID, rank []int32) (n int, ok bool) {
	w.order = w.sort.FarthestFirst(w.dist.To(t))
	w.candidates(t, rank)
	clear(w.busy)
	for i, s := range w.order {
		if w.hosts[s] > 0 {
			if rank != nil && w.way[s] == astray {
				return 0, false
			}
		} else if !w.busy[s] {
			continue
		}
		list := w.choices(i)
		n += len(list)
		for _, c := range list {
			w.busy[w.to[c]] = true
		}
	}
	return n, true
}

// uneven says how unevenly an order has the routes of hosts divide over the channels when all
// choices of a switch get as many: the sum of the fourth powers of the loads, which the
// greatest dominate. It says false where ways does.
func (w *walker) uneven(targets []target, rank []int32) (sum float64, ok bool) {
	load := make([]float64, len(w.to))
	come := make([]float64, len(w.all))
	for _, t := range targets {
		if _, ok := w.ways(t.s, rank); !ok {
			return 0, false
		}
		for s, h := range w.hosts {
			come[s] = float64(h) * float64(t.lids)
		}
		for i, s := range w.order {
			if come[s] == 0 {
				continue
			}
			list := w.choices(i)
			share := come[s] / float64(len(list))
			for _, c := range list {
				load[c] += float64(share * float64(w.unit[c]))
				come[w.to[c]] += share
			}
		}
	}
	for _, x := range load {
		x = float64(x * x)
		sum += float64(x * x)
	}
	return sum, true
}

// chooseOrder chooses the order of the switches: what updn takes, from roots if there are any.
// Where that leaves out ways between hosts, but not all of any two, orders grown
// from single switches are tried, as many as orderWork allows, and the one that has
// routes divide most evenly is taken; of equal ones the first.
func (p *paths) chooseOrder(ctx context.Context, roots []fabric.NodeID) (*order, error) {
	chosen := &order{top: fabric.NoNode}
	if len(roots) > 0 {
		chosen.Order = updown.NewOrder(p.f, roots)
	} else {
		var err error
		if chosen.Order, err = updown.ChooseOrder(ctx, p.f); err != nil {
			return nil, err
		}
	}
	targets := p.targets()
	chosen.lost = p.lost(ctx, targets, chosen.Rank)
	if chosen.lost <= 0 || len(roots) > 0 {
		return chosen, ctx.Err()
	}
	tops := p.all
	if most := max(2, orderWork/(3*len(p.to)*len(targets))); len(tops) > most {
		tops = make([]fabric.NodeID, most)
		for i := range tops {
			tops[i] = p.all[i*(len(p.all)-1)/(most-1)]
		}
	}
	tried := make([]*order, 1+len(tops))
	uneven := make([]float64, len(tried))
	forEach(ctx, 0, len(tried), p.newWalker, func(w *walker, i int) {
		o := chosen
		if i > 0 {
			o = &order{Order: updown.NewOrder(p.f, tops[i-1:i]), top: tops[i-1]}
		}
		var ok bool
		if uneven[i], ok = w.uneven(targets, o.Rank); ok {
			tried[i] = o
		}
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	best := 0
	for i, o := range tried {
		if o != nil && uneven[i] < float64(uneven[best]*(1-1e-9)) { // less is rounding
			best = i
		}
	}
	if best > 0 {
		chosen = tried[best]
		chosen.lost = p.lost(ctx, targets, chosen.Rank)
	}
	return chosen, ctx.Err()
}

// target is a switch and how many LIDs of hosts it has.
type target struct {
	s    fabric.NodeID
	lids int
}

func (p *paths) targets() (list []target) {
	for i := range p.jobs {
		j := &p.jobs[i]
		if n := len(list); n > 0 && list[n-1].s == j.t {
			list[n-1].lids += len(j.lids)
			continue
		}
		list = append(list, target{j.t, len(j.lids)})
	}
	return list
}

// lost is how many ways to the targets an order leaves out, -1 where some pair of hosts
// has none left.
func (p *paths) lost(ctx context.Context, targets []target, rank []int32) int {
	var lost atomic.Int64
	var none atomic.Bool
	forEach(ctx, 0, len(targets), p.newWalker, func(w *walker, i int) {
		if none.Load() {
			return
		}
		kept, ok := w.ways(targets[i].s, rank)
		if !ok {
			none.Store(true)
			return
		}
		all, _ := w.ways(targets[i].s, nil)
		lost.Add(int64(all - kept))
	})
	if none.Load() {
		return -1
	}
	return int(lost.Load())
}
