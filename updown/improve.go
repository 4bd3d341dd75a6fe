package updown

import (
	"cmp"
	"context"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/par"
)

// improveAll improves each order. It returns the best version of each, then the
// earlier versions: an order that bars less may have a greater load.
func (l *legality) improveAll(ctx context.Context, list []candidate) (better []candidate, err error) {
	steps := make([][]candidate, len(list))
	_, parts := graph.Components(len(l.hosts), l.f.Neighbors)
	if err := par.ForEach(ctx, 0, len(list), func(i int) error {
		steps[i] = l.improve(ctx, list[i], parts)
		return ctx.Err()
	}); err != nil {
		return nil, err
	}
	var before []candidate
	for _, s := range steps {
		last := len(s) - 1
		better, before = append(better, s[last]), append(before, s[:last]...)
	}
	return append(better, before...), nil
}

// improve moves single switches to just before or after a neighbour, where the order
// bars less. It tries first the switches with most to gain, within searchWork. It
// returns the given order and each better one, the best last.
func (l *legality) improve(ctx context.Context, best candidate, parts int) (steps []candidate) {
	steps = []candidate{best}
	c := l.newCounter()
	for moved := true; moved && c.work < searchWork && !best.none() && ctx.Err() == nil; {
		moved = false
		c.count(best.Order, anyBars)
		tally := slices.Clone(c.tally)
		list := l.f.Switches()
		slices.SortStableFunc(list, func(a, b fabric.NodeID) int { return cmp.Compare(tally[b], tally[a]) })
		for _, s := range list {
			if tally[s] == 0 {
				break
			}
			for _, v := range l.to[l.first[s]:l.first[s+1]] {
				for _, to := range []int32{best.Rank[v], best.Rank[v] + 1} {
					if c.work >= searchWork {
						return steps
					}
					o := best.move(s, to)
					if o == nil || !o.connects(l.f, parts) {
						continue
					}
					if b := c.count(o, best.bars); b.compare(best.bars) < 0 {
						best, moved = candidate{Order: o, bars: b}, true
						steps = append(steps, best)
					}
				}
			}
		}
	}
	return steps
}

// move returns the order with switch s moved to just before the switch whose
// rank now is to; nil if that changes nothing.
func (o *Order) move(s fabric.NodeID, to int32) *Order {
	from := o.Rank[s]
	if to > from {
		to--
	}
	if to == from {
		return nil
	}
	m := &Order{Rank: slices.Clone(o.Rank), Switch: slices.Delete(slices.Clone(o.Switch), int(from), int(from)+1)}
	m.Switch = slices.Insert(m.Switch, int(to), s)
	for r := min(from, to); r <= max(from, to); r++ {
		m.Rank[m.Switch[r]] = r
	}
	return m
}

// connects returns true if each switch has an upward link, except one in each
// connected part.
func (o *Order) connects(f *fabric.Fabric, parts int) bool {
	for s, rank := range o.Rank {
		if !slices.ContainsFunc(f.Neighbors(fabric.NodeID(s)), func(v fabric.NodeID) bool { return o.Rank[v] < rank }) {
			parts--
		}
	}
	return parts >= 0
}
