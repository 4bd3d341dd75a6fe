package updown

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/lft"
)

const (
	// allTops is the most switches that are all tried on top.
	allTops = 64
	// legalityWork bounds the words that one count of what an order bars looks at,
	// trialWork those of all counts of grown orders, and searchWork what the improvement
	// of an order looks at. flowWork bounds the links that all flows together visit, as
	// far as someFlows and minTargets allow.
	legalityWork = 1 << 23
	trialWork    = 1 << 22
	searchWork   = 1 << 21
	flowWork     = 1 << 21
	flowRounds   = 4
	minTargets   = 32
	// someLeaves is how many leaves are tried on top of a tree, someStarts how many
	// orders are improved, and someFlows of how many orders the loads are found with care
	// though flowWork does not allow it.
	someLeaves = 8
	someStarts = 4
	someFlows  = 8
	// alike is how much greater the greatest load of an order may be that is better in
	// other respects.
	alike = 1.02
)

// ChooseOrder grows the order from roots. Without roots it searches an order that
// bars no shortest path between hosts, and where there seems to be none, one with
// which the greatest load can be small.
//
// In a tree the order goes by levels, with a leaf on top (see levelled.newOrder): all
// paths between leaves go up levels and down again, and those of the leaf on top
// only go down. With a spine on top every other spine would lie below the leaves:
// all traffic between leaves would squeeze through one spine, although its paths are
// as short as any.
//
// Elsewhere orders are grown from single switches. In an order that grows from one
// switch by distance, every switch has an upward link towards that switch, and
// whatever lies between two switches at the same distance can be used in both
// directions. On a mesh a corner on top makes the negative-first turn model, whose
// legal paths are all minimal. The best of these orders is improved by moving single
// switches.
//
// The first order that bars nothing is taken. Otherwise orders are compared by the
// routes between hosts that are longer than a shortest path; then by the greatest load
// relative to the rates of cables, when traffic divides over legal ports nearly as well
// as it can; among those within alike of the least by the shortest next hops that are lost to
// routes, idle cables, and the fourth powers of loads.
func ChooseOrder(ctx context.Context, f *fabric.Fabric, roots []fabric.NodeID) (*Order, error) {
	if f.NumSwitches() == 0 || len(roots) > 0 {
		return NewOrder(f, roots), nil
	}
	var orders iter.Seq[*Order]
	wait := par.Go(func() error { orders = levelOrders(f); return nil })
	x := newNetwork(f)
	l := x.newLegality()
	if err := wait(); err != nil {
		return nil, err
	}
	var byLevel []candidate
	count := l.newCounter()
	for o := range orders {
		c := candidate{Order: o, bars: count.count(o, anyBars)}
		if c.none() {
			return o, ctx.Err()
		}
		byLevel = append(byLevel, c)
	}
	grown, err := l.growAll(ctx)
	if err != nil {
		return nil, err
	}
	all := slices.Concat(byLevel, grown)
	sortByBars(all)
	if all[0].none() {
		return all[0].Order, nil
	}
	better, err := l.improveAll(ctx, all[:min(len(all), someStarts)])
	if err != nil {
		return nil, err
	}
	sortByBars(byLevel)
	return x.chooseBest(ctx, slices.Concat(better, byLevel, grown))
}

func sortByBars(list []candidate) {
	slices.SortStableFunc(list, func(a, b candidate) int { return a.compare(b.bars) })
}

// growAll grows orders from single switches, the most central first.
func (l *legality) growAll(ctx context.Context) ([]candidate, error) {
	tops := l.listTops()
	tops = thin(tops, max(someFlows, trialWork/l.countWork()))
	grown := make([]candidate, len(tops))
	err := par.ForEach(ctx, 0, len(tops), func(i int) error {
		o := NewOrder(l.f, tops[i:i+1])
		grown[i] = candidate{Order: o, bars: l.newCounter().count(o, anyBars)}
		return nil
	})
	return grown, err
}

// thin keeps at most n of a list, evenly spaced, the first and the last of them included. n
// is at least 2.
func thin[T any](list []T, n int) []T {
	if len(list) <= n {
		return list
	}
	kept := make([]T, n)
	for i := range kept {
		kept[i] = list[i*(len(list)-1)/(n-1)]
	}
	return kept
}

// OrderFor is opt.Order, or that of ChooseOrder.
func OrderFor(ctx context.Context, f *fabric.Fabric, opt *lft.Options) (*Order, error) {
	if opt.Order != nil {
		return OrderOf(&lft.Routing{Fabric: f, Order: opt.Order})
	}
	return ChooseOrder(ctx, f, opt.Roots)
}

// chooseDirections is OrderFor with the directions that the order gives links.
func chooseDirections(ctx context.Context, f *fabric.Fabric, opt *lft.Options) (*directions, error) {
	o, err := OrderFor(ctx, f, opt)
	if err != nil {
		return nil, err
	}
	return newDirections(f, o), nil
}

// candidate is an order, what it bars and how it loads links.
type candidate struct {
	*Order
	bars
	loads
}

// chooseBest compares orders by flows: at first roughly, those at the end of the list in part
// if that is too much work, then those with the least loads again.
func (x *network) chooseBest(ctx context.Context, list []candidate) (*Order, error) {
	longer := list[0].longer
	for _, c := range list {
		longer = min(longer, c.longer)
	}
	list = slices.DeleteFunc(list, func(c candidate) bool { return c.longer > longer })
	targets := x.listTargets(max(minTargets, flowWork/(2*someFlows*len(x.to))))
	first := min(len(list), someFlows)
	list = slices.Concat(list[:first], thin(list[first:], max(2, flowWork/(len(x.to)*len(targets))-first)))
	if err := x.findLoads(ctx, list, targets, 1); err != nil {
		return nil, err
	}
	list = list[:min(len(list), max(someFlows, flowWork/(flowRounds*len(x.to)*len(targets))))]
	if err := x.findLoads(ctx, list, targets, flowRounds); err != nil {
		return nil, err
	}
	most := float64(list[0].greatest * alike)
	return slices.MinFunc(list, func(a, b candidate) int {
		return cmp.Or(compareRounded(max(a.greatest, most), max(b.greatest, most)),
			compareRounded(a.hops, b.hops), cmp.Compare(a.idle, b.idle), compareRounded(a.powers, b.powers))
	}).Order, nil
}

// compareRounded compares sums that differ by rounding where fabrics are symmetric.
func compareRounded(a, b float64) int { return cmp.Compare(float32(a), float32(b)) }

// findLoads finds the loads of all orders and sorts these by the greatest load.
func (x *network) findLoads(ctx context.Context, list []candidate, targets []fabric.NodeID, rounds int) error {
	err := par.ForEach(ctx, 0, len(list), func(i int) error {
		l, ok := x.newFlow(targets).findLoads(list[i].Order, rounds)
		if !ok {
			l.greatest = math.Inf(1)
		}
		list[i].loads = l
		return nil
	})
	slices.SortStableFunc(list, func(a, b candidate) int { return compareRounded(a.greatest, b.greatest) })
	return err
}

// listTops lists the switches worth trying on top, the most central first: all of
// a small fabric, one of each kind of a large one, where kinds are told apart by the
// number of hosts, of neighbours, and the sum of distances to all others.
func (x *network) listTops() []fabric.NodeID {
	n := len(x.hosts)
	type kind struct {
		sum   uint64
		hosts float64
		links int32
		s     fabric.NodeID
	}
	kinds := make([]kind, n)
	for s := range kinds {
		id := fabric.NodeID(s)
		kinds[s] = kind{hosts: x.hosts[s], links: x.first[s+1] - x.first[s], s: id}
		for _, d := range x.dist.To(id) {
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

var _ lft.Engine = Engine{}
