package updown

import (
	"cmp"
	"context"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/lft"
)

var _ lft.IncrementalEngine = Engine{}

// KeepOrder returns the earlier order for the switches of f. A new switch
// comes after the switch with most neighbours in common, to be of as much use;
// last if there is none. A switch that lost its last upward cable comes last,
// or after its first neighbour in the order, whichever order bars less. If
// that one bars much, and the order of ChooseOrder less, it returns the
// latter.
func (Engine) KeepOrder(f *fabric.Fabric, ranks []int32) ([]int32, bool) {
	n := f.NumSwitches()
	// was is twice the rank, which leaves room for a new switch after each.
	was := make([]int32, n)
	last := int32(0)
	for s, rank := range ranks {
		was[s] = 2 * rank
		last = max(last, 2*rank)
	}
	for s, rank := range ranks {
		if rank >= 0 {
			continue
		}
		was[s] = last + 1
		if like := findSimilar(f, ranks, fabric.NodeID(s)); like != fabric.NoNode {
			was[s] = was[like] + 1
		}
	}
	byRank := f.Switches()
	slices.SortFunc(byRank, func(a, b fabric.NodeID) int { return cmp.Or(cmp.Compare(was[a], was[b]), cmp.Compare(a, b)) })
	of, components := graph.Components(n, f.Neighbors)
	kept := rankSwitches(byRank)
	if kept.connects(f, components) {
		return kept.Rank, true
	}
	sunk := sinkRootless(f, byRank, kept.Rank, of, components)
	// Of the switches next to those with a rank, the first in the old order comes
	// next: this gives the old order again if it works. Each component takes the ranks
	// that its switches had, independent of the others, so that a switch that is alone
	// for a while gets its rank back.
	ranksOf := make([][]int32, components)
	for rank, s := range byRank {
		ranksOf[of[s]] = append(ranksOf[of[s]], int32(rank))
	}
	grown := &Order{Rank: make([]int32, n), Switch: make([]fabric.NodeID, n)}
	for _, s := range graph.BestFirst(n, f.Neighbors, kept.Rank) {
		ranks := &ranksOf[of[s]]
		grown.Rank[s], grown.Switch[(*ranks)[0]] = (*ranks)[0], s
		*ranks = (*ranks)[1:]
	}
	return chooseRepaired(f, grown, sunk).Rank, true
}

// maxSqueeze bounds what a kept order may cost: the greatest quotient, over
// switches and destinations, of all shortest next hops by those that the order
// leaves.
const maxSqueeze = 1.2

// chooseRepaired returns grown or sunk (which may be nil), whichever bars less. If the
// better one bars much and the order of ChooseOrder bars less, it returns that order.
// Even then most entries can stay: those that both orders allow.
func chooseRepaired(f *fabric.Fabric, grown, sunk *Order) *Order {
	c := newNetwork(f).newLegality().newCounter()
	best, least := grown, c.count(grown, anyBars)
	if sunk != nil {
		if b := c.count(sunk, anyBars); b.compare(least) < 0 {
			best, least = sunk, b
		}
	}
	if least.squeeze <= maxSqueeze {
		return best
	}
	chosen, err := ChooseOrder(context.Background(), f, nil)
	if err != nil || c.count(chosen, anyBars).compare(least) >= 0 {
		return best
	}
	return chosen
}

// sinkRootless moves switches without an upward link to the end, except the first of
// each component, and returns nil if more switches than components then lack one.
func sinkRootless(f *fabric.Fabric, byRank []fabric.NodeID, rank, component []int32, components int) *Order {
	first := make([]bool, components)
	var stay, sink []fabric.NodeID
	for r, s := range byRank {
		rootless := !slices.ContainsFunc(f.Neighbors(s), func(v fabric.NodeID) bool { return rank[v] < int32(r) })
		if rootless && first[component[s]] {
			sink = append(sink, s)
		} else {
			stay = append(stay, s)
			first[component[s]] = true
		}
	}
	o := rankSwitches(append(stay, sink...))
	if !o.connects(f, components) {
		return nil
	}
	return o
}

// findSimilar returns the switch with a rank that has most neighbours in common with
// s, counting parallel cables; among equal ones the highest; NoNode if there is none.
func findSimilar(f *fabric.Fabric, ranks []int32, s fabric.NodeID) fabric.NodeID {
	common := make([]int32, len(ranks))
	best := fabric.NoNode
	near := f.Neighbors(s)
	for _, u := range near {
		to := f.Neighbors(u)
		for _, v := range to {
			if v == s || ranks[v] < 0 {
				continue
			}
			common[v]++
			if best == fabric.NoNode || common[v] > common[best] || common[v] == common[best] && ranks[v] < ranks[best] {
				best = v
			}
		}
	}
	return best
}
