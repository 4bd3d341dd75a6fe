package updown

import (
	"cmp"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/lft"
)

var _ lft.IncrementalEngine = Engine{}

// KeepOrder is the earlier order for the switches of f. A switch that is new comes after
// the one that has most neighbours in common with it, so that it is of as much use;
// without such a switch it comes last. Where a switch has lost its last upward cable,
// a neighbour is lifted above it, and if that is not possible the switch comes after the
// first of its neighbours that has a place.
func (Engine) KeepOrder(f *fabric.Fabric, ranks []int32) []int32 {
	n := f.NumSwitches()
	// Twice the rank, so that new switches find a place after any.
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
	for i, s := range byRank {
		was[s] = int32(i)
	}
	liftNeighbours(f, byRank, was)
	// Of the switches next to those that have a rank, the first comes next. If the
	// order serves, that is it. The components have nothing to do with each other: each
	// takes the ranks that its switches had, so that one which is alone for a while
	// comes back to its own.
	of, components := graph.Components(n, f.Neighbors)
	ranksOf := make([][]int32, components)
	for rank, s := range byRank {
		ranksOf[of[s]] = append(ranksOf[of[s]], int32(rank))
	}
	order := make([]int32, n)
	for _, s := range graph.BestFirst(n, f.Neighbors, was) {
		ranks := &ranksOf[of[s]]
		order[s] = (*ranks)[0]
		*ranks = (*ranks)[1:]
	}
	return order
}

// liftNeighbours changes an order, byRank and its inverse rank. For a switch that has neighbours
// and none above it, the first neighbour that has one which is above both comes to stand
// right after that one. It does not matter to others: what was above them still is, or
// one more. If instead the switch came below a neighbour, that one would send all that
// it can down to it.
func liftNeighbours(f *fabric.Fabric, byRank []fabric.NodeID, rank []int32) {
	for i := 0; i < len(byRank); i++ {
		near := f.Neighbors(byRank[i])
		w, v := fabric.NoNode, fabric.NoNode
		for _, u := range near {
			if rank[u] < int32(i) {
				w = fabric.NoNode
				break
			}
			if w != fabric.NoNode && rank[u] >= rank[w] {
				continue
			}
			to := f.Neighbors(u)
			first := slices.MinFunc(to, func(a, b fabric.NodeID) int { return cmp.Compare(rank[a], rank[b]) })
			if rank[first] < int32(i) {
				w, v = u, first
			}
		}
		if w == fabric.NoNode {
			continue
		}
		from, to := int(rank[w]), int(rank[v])+1
		copy(byRank[to+1:from+1], byRank[to:from])
		byRank[to] = w
		for k := to; k <= from; k++ {
			rank[byRank[k]] = int32(k)
		}
	}
}

// findSimilar is the switch with a rank that has most neighbours in common with s, counting
// parallel cables, of several the one on top; NoNode for none.
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
