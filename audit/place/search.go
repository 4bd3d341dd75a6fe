package place

import (
	"context"
	"math/rand/v2"
	"slices"
)

// search tries to change the best set, tries times: it replaces some hosts of a unit, or as many as
// it can, by as many of another unit, and keeps what is better. The same start has the same result.
// ok is false if no set is better.
func (p *placer) search(ctx context.Context, best Set, tries int) (_ Set, ok bool, err error) {
	random := rand.New(rand.NewPCG(1, uint64(len(best.members))))
	has := make([]bool, len(p.hosts))
	for _, h := range best.members {
		has[h] = true
	}
	// sides has by unit its hosts that are members (0) and that are not (1); units lists the units
	// that have any.
	var sides [2][][]int
	var units [2][]int
	divide := func() {
		for side, member := range []bool{true, false} {
			sides[side], units[side] = make([][]int, len(p.units)), units[side][:0]
			for u := range p.units {
				for _, h := range p.units[u].hosts {
					if has[h] == member {
						sides[side][u] = append(sides[side][u], h)
					}
				}
				if sides[side][u] != nil {
					units[side] = append(units[side], u)
				}
			}
		}
	}
	divide()
	for range tries {
		if len(units[1]) == 0 {
			break // all hosts are members
		}
		a, b := units[0][random.IntN(len(units[0]))], units[1][random.IntN(len(units[1]))]
		from, to := sides[0][a], sides[1][b]
		random.Shuffle(len(from), func(i, k int) { from[i], from[k] = from[k], from[i] })
		random.Shuffle(len(to), func(i, k int) { to[i], to[k] = to[k], to[i] })
		k := min(len(from), len(to))
		if random.IntN(2) == 0 {
			k = 1 + random.IntN(k)
		}
		if a == b {
			continue
		}
		s := Set{Families: []string{"search"}, members: slices.Clone(best.members)}
		s.members = slices.DeleteFunc(s.members, func(h int) bool { return slices.Contains(from[:k], h) })
		s.members = append(s.members, to[:k]...)
		slices.Sort(s.members)
		if err := p.judge(ctx, &s); err != nil {
			return best, false, err
		}
		if compare(s, best) < 0 {
			for i := range k {
				has[from[i]], has[to[i]] = false, true
			}
			divide()
			best, ok = s, true
		}
	}
	return best, ok, nil
}
