package fattree

import (
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
)

// maxHeight bounds the levels above the leaves.
const maxHeight = 7

// listComponents lists the switches of each connected component, all in the order of
// NodeIDs.
func listComponents(f *fabric.Fabric) [][]fabric.NodeID {
	of, n := graph.Components(f.NumSwitches(), f.Neighbors)
	list := make([][]fabric.NodeID, n)
	for s, c := range of {
		list[c] = append(list[c], fabric.NodeID(s))
	}
	return list
}

// ranker finds the levels of the switches of a connected part.
type ranker struct {
	f      *fabric.Fabric
	part   []fabric.NodeID
	hosts  []int32 // by NodeID: CA and router ports on a switch
	level  []int32 // by NodeID
	search *graph.Search[fabric.NodeID]
}

// rankFromLeaves finds levels by the distance from the leaves, which have hosts.
//
// Cables of a tree lead to the level above or below, so every second level has the same
// colour, and the leaves have the colour with most hosts. Of this colour a switch is a leaf
// if it has half as many hosts as the switch of the median host, since upper switches may
// have a few hosts, too. However few hosts it has, it is also a leaf if it is joined to
// mostly the same switches as one of these leaves.
func (r *ranker) rankFromLeaves() error {
	colour, ok := r.colourSwitches()
	var sum [2]int32
	for _, s := range r.part {
		sum[colour[s]] += r.hosts[s]
	}
	leaf := uint8(0)
	if sum[1] > sum[0] {
		leaf = 1
	}
	var counts []int32
	for _, s := range r.part {
		if (!ok || colour[s] == leaf) && r.hosts[s] > 0 {
			counts = append(counts, r.hosts[s])
		}
	}
	least := (findMedian(counts) + 1) / 2
	var leaves []fabric.NodeID
	for _, s := range r.part {
		if (!ok || colour[s] == leaf) && r.hosts[s] >= least {
			leaves = append(leaves, s)
		}
	}
	r.setLevels(leaves)
	if !ok {
		return r.checkCables()
	}
	if more := r.findOtherLeaves(); len(more) > 0 {
		r.setLevels(append(leaves, more...))
	}
	// A leaf may have cables to the switches at the top: it is below them.
	for _, s := range r.part {
		for l := r.level[s]; l >= 3 && least > 0 && r.hosts[s] >= least; l = r.level[s] {
			if slices.ContainsFunc(r.f.Neighbors(s), func(v fabric.NodeID) bool { return r.level[v] > l }) {
				break
			}
			r.level[s] = l - 2
		}
	}
	return r.checkCables()
}

// findMedian finds the number of hosts of the switch that has the median host.
func findMedian(counts []int32) int32 {
	total := int32(0)
	for _, c := range counts {
		total += c
	}
	slices.Sort(counts)
	for _, c := range counts {
		if total -= 2 * c; total <= 0 {
			return c
		}
	}
	return 0
}

// colourSwitches gives neighbours different colours. It returns false if that is impossible.
func (r *ranker) colourSwitches() (colour []uint8, ok bool) {
	r.search.Run(r.f.Neighbors, r.part[0])
	colour = make([]uint8, r.f.NumSwitches())
	for _, s := range r.part {
		colour[s] = uint8(r.search.Distance[s] & 1)
	}
	for _, s := range r.part {
		for _, v := range r.f.Neighbors(s) {
			if colour[v] == colour[s] {
				return colour, false
			}
		}
	}
	return colour, true
}

// setLevels sets the levels to the distances from some switches.
func (r *ranker) setLevels(from []fabric.NodeID) {
	r.search.Run(r.f.Neighbors, from...)
	for _, s := range r.part {
		r.level[s] = r.search.Distance[s]
	}
}

// findOtherLeaves lists the switches on level 2 that have more than half of their neighbours
// in common with one leaf.
func (r *ranker) findOtherLeaves() []fabric.NodeID {
	var list []fabric.NodeID
	shared := make([]int, r.f.NumSwitches()) // by leaf: neighbours in common
	for _, s := range r.part {
		if r.level[s] != 2 {
			continue
		}
		clear(shared)
		most := 0
		neighbours := listDistinct(r.f.Neighbors(s))
		for _, v := range neighbours {
			for _, u := range listDistinct(r.f.Neighbors(v)) {
				if r.level[u] == 0 {
					shared[u]++
					most = max(most, shared[u])
				}
			}
		}
		if 2*most > len(neighbours) {
			list = append(list, s)
		}
	}
	return list
}

// listDistinct sorts a copy of a list and drops repetitions.
func listDistinct(list []fabric.NodeID) []fabric.NodeID {
	return slices.Compact(slices.Sorted(slices.Values(list)))
}

// rankFromRoots finds levels by the distance from the roots. It returns false if none of
// them is in the part.
func (r *ranker) rankFromRoots(roots []fabric.NodeID) (bool, error) {
	var own []fabric.NodeID
	for _, s := range roots {
		if _, ok := slices.BinarySearch(r.part, s); ok {
			own = append(own, s)
		}
	}
	if len(own) == 0 {
		return false, nil
	}
	r.setLevels(own)
	height := int32(0)
	for _, s := range r.part {
		height = max(height, r.level[s])
	}
	for _, s := range r.part {
		r.level[s] = height - r.level[s]
	}
	return true, r.checkCables()
}

// checkCables returns an error if a cable does not lead to the level above or below, or if
// there are too many levels.
func (r *ranker) checkCables() error {
	first, n := fabric.NoPort, 0
	height := int32(0)
	for _, s := range r.part {
		height = max(height, r.level[s])
		ports, to := r.f.SwitchLinks(s)
		for i, v := range to {
			if d := r.level[s] - r.level[v]; d != 1 && d != -1 && s <= v {
				if n++; first == fabric.NoPort {
					first = ports[i]
				}
			}
		}
	}
	if n > 0 {
		f, peer := r.f, r.f.Peer(first)
		where := fmt.Sprintf("two switches of level %d", r.level[f.Owner(first)])
		if a, b := r.level[f.Owner(first)], r.level[f.Owner(peer)]; a != b {
			where = fmt.Sprintf("levels %d and %d", a, b)
		}
		more := ""
		if n > 1 {
			more = fmt.Sprintf(", and %d more are like it", n-1)
		}
		return fmt.Errorf("a cable of a fat tree joins a switch to one on the next level, but %s - %s joins %s (0 for leaves)%s",
			f.PortName(first), f.PortName(peer), where, more)
	}
	if height > maxHeight {
		return fmt.Errorf("it has %d levels, want at most %d", height+1, maxHeight+1)
	}
	return nil
}
