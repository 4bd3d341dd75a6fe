package updown

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
)

const (
	// allTops is the greatest number of switches that are all tried on top.
	allTops = 64
	// legalityWork bounds the words that one count of what an order bars looks at,
	// trialWork the words of all counts of grown orders, searchWork the words of
	// improving one order. flowWork bounds the links that all flows visit; someFlows
	// orders and minTargets targets count even if that takes more.
	legalityWork = 1 << 23
	trialWork    = 1 << 22
	searchWork   = 1 << 21
	flowWork     = 1 << 21
	minTargets   = 32
	// someLeaves is how many leaves are tried on top of a tree, someStarts how many
	// orders are improved, and someFlows for how many orders the loads are always
	// found.
	someLeaves = 8
	someStarts = 4
	someFlows  = 8
)

// ChooseOrder grows the order from roots. Without roots it looks for an order that
// bars (makes illegal) no shortest path between hosts; if it finds none, for one with
// which the greatest load can be small.
//
// In a tree the order goes by levels, with a leaf on top (see levelled.newOrder): all
// paths between leaves go up levels and down again; those of the leaf on top only go
// down. With a spine on top all other spines would lie below the leaves: all traffic
// between leaves would go through one spine, although its paths are as short as any.
//
// In other fabrics orders are grown from single switches, by distance. Then every
// switch has an upward link towards the first one, and paths between two switches at
// the same distance can be used in both directions. On a mesh a corner on top gives
// the negative-first turn model, whose legal paths are all minimal. The best of these
// orders are improved by moving single switches.
//
// Each of these steps has fabrics that need it. Without orders by levels 24 channels
// are idle on trees of radix 24 without 80 of their cables. Without moving switches
// the greatest load is 13 % more on a dragonfly of 5 groups, 10 % on a damaged HyperX;
// without judging loads 5 % if spines have hosts.
//
// It takes the first order that bars nothing. Otherwise it compares orders by the
// number of routes between hosts that are longer than a shortest path; then by the sum
// of the fourth powers of the loads, with traffic divided evenly over the legal ports
// of each switch.
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
	tops := thin(l.listTops(), max(someFlows, trialWork/l.countWork()))
	grown := make([]candidate, len(tops))
	err := par.ForEach(ctx, 0, len(tops), func(i int) error {
		o := NewOrder(l.f, tops[i:i+1])
		grown[i] = candidate{Order: o, bars: l.newCounter().count(o, anyBars)}
		return nil
	})
	return grown, err
}

// thin keeps at most n elements of a list, evenly spaced, including the first and the
// last. n must be at least 2.
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

// OrderFor returns opt.Order, or the order of ChooseOrder.
func OrderFor(ctx context.Context, f *fabric.Fabric, opt *lft.Options) (*Order, error) {
	if opt.Order != nil {
		return OrderOf(&lft.Routing{Fabric: f, Order: opt.Order})
	}
	return ChooseOrder(ctx, f, opt.Roots)
}

// chooseDirections returns the directions of links by OrderFor.
func chooseDirections(ctx context.Context, f *fabric.Fabric, opt *lft.Options) (*directions, error) {
	o, err := OrderFor(ctx, f, opt)
	if err != nil {
		return nil, err
	}
	return newDirections(f, o), nil
}

// candidate is an order with the count of what it bars.
type candidate struct {
	*Order
	bars
}

// chooseBest takes the orders with the fewest routes longer than a shortest path, and
// returns the one with the least sum of the fourth powers of the loads. If that is too
// much work, it leaves out some orders after the first someFlows.
func (x *network) chooseBest(ctx context.Context, list []candidate) (*Order, error) {
	longer := slices.MinFunc(list, func(a, b candidate) int { return cmp.Compare(a.longer, b.longer) }).longer
	list = slices.DeleteFunc(list, func(c candidate) bool { return c.longer > longer })
	targets := x.listTargets(max(minTargets, flowWork/(2*someFlows*len(x.to))))
	first := min(len(list), someFlows)
	list = slices.Concat(list[:first], thin(list[first:], max(2, flowWork/(len(x.to)*len(targets))-first)))
	powers := make([]float32, len(list)) // sums differ by rounding where fabrics are symmetric
	err := par.ForEach(ctx, 0, len(list), func(i int) error {
		powers[i] = float32(x.newFlow(targets).sumPowers(list[i].Order))
		return nil
	})
	return list[slices.Index(powers, slices.Min(powers))].Order, err
}

// listTops lists the switches worth trying on top, the most central first: all of a
// small fabric, one of each kind of a large one. Switches of a kind have equally many
// hosts and neighbours, and equal sums of distances to all others.
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
	return text.Each(kinds, func(k kind) fabric.NodeID { return k.s })
}
