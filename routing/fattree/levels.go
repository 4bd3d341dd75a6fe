package fattree

import (
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
)

// maxHeight bounds the levels above the leaves.
const maxHeight = 7

// components gives the switches of each connected component, both in the order of
// NodeIDs.
func components(f *fabric.Fabric) [][]fabric.NodeID {
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

// fromLeaves finds levels by the distance from the leaves, which have hosts.
//
// Cables of a tree lead to the level above or below, so that every second level has one
// colour, and the leaves are of that colour which has most hosts. Of this colour those
// are leaves for certain that have half as many hosts as the switch of the median host,
// since upper switches have a few, too; and those that are joined to mostly the same
// switches as one of them, however few hosts they have.
func (r *ranker) fromLeaves() error {
	colour, ok := r.colours()
	var sum [2]int32
	for _, s := range r.part {
		sum[colour[s]] += r.hosts[s]
	}
	leaf := uint8(0)
	if sum[1] > sum[0] {
		leaf = 1
	}
	var counts []int32
	total := int32(0)
	for _, s := range r.part {
		if (!ok || colour[s] == leaf) && r.hosts[s] > 0 {
			counts = append(counts, r.hosts[s])
			total += r.hosts[s]
		}
	}
	least := (medianOf(counts, total) + 1) / 2
	var leaves []fabric.NodeID
	for _, s := range r.part {
		if (!ok || colour[s] == leaf) && r.hosts[s] >= least {
			leaves = append(leaves, s)
		}
	}
	r.measure(leaves)
	if !ok {
		return r.check()
	}
	if more := r.twins(); len(more) > 0 {
		r.measure(append(leaves, more...))
	}
	// A leaf may be cabled to the switches at the top: it is below them.
	for _, s := range r.part {
		for l := r.level[s]; l >= 3 && least > 0 && r.hosts[s] >= least; l = r.level[s] {
			if slices.ContainsFunc(r.f.Neighbors(s), func(v fabric.NodeID) bool { return r.level[v] > l }) {
				break
			}
			r.level[s] = l - 2
		}
	}
	return r.check()
}

// medianOf is the number of hosts of the switch that has the median host.
func medianOf(counts []int32, total int32) int32 {
	slices.Sort(counts)
	for _, c := range counts {
		if total -= 2 * c; total <= 0 {
			return c
		}
	}
	return 0
}

// colours gives neighbours different colours; false when that cannot be done.
func (r *ranker) colours() (colour []uint8, ok bool) {
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

// measure makes the levels the distances from some switches.
func (r *ranker) measure(from []fabric.NodeID) {
	r.search.Run(r.f.Neighbors, from...)
	for _, s := range r.part {
		r.level[s] = r.search.Distance[s]
	}
}

// twins lists the switches on level 2 of whose neighbours more than half are
// neighbours of one leaf.
func (r *ranker) twins() []fabric.NodeID {
	var list []fabric.NodeID
	n := r.f.NumSwitches()
	met, at := make([]fabric.NodeID, n), make([]fabric.NodeID, n) // the switch that was last counted
	shared, counted := make([]int32, n), make([]fabric.NodeID, n)
	for i := range met {
		met[i], at[i], counted[i] = fabric.NoNode, fabric.NoNode, fabric.NoNode
	}
	for _, s := range r.part {
		if r.level[s] != 2 {
			continue
		}
		degree, most := int32(0), int32(0)
		for _, v := range r.f.Neighbors(s) {
			if met[v] == s {
				continue
			}
			met[v] = s
			degree++
			for _, u := range r.f.Neighbors(v) {
				if r.level[u] != 0 || at[u] == v && counted[u] == s {
					continue
				}
				if counted[u] != s {
					counted[u], shared[u] = s, 0
				}
				at[u] = v
				shared[u]++
				most = max(most, shared[u])
			}
		}
		if 2*most > degree {
			list = append(list, s)
		}
	}
	return list
}

// fromRoots finds levels by the distance from the roots; false when none of them is in
// the part.
func (r *ranker) fromRoots(roots []fabric.NodeID) (bool, error) {
	var own []fabric.NodeID
	for _, s := range roots {
		if _, ok := slices.BinarySearch(r.part, s); ok {
			own = append(own, s)
		}
	}
	if len(own) == 0 {
		return false, nil
	}
	r.measure(own)
	height := int32(0)
	for _, s := range r.part {
		height = max(height, r.level[s])
	}
	for _, s := range r.part {
		r.level[s] = height - r.level[s]
	}
	return true, r.check()
}

// check finds the first cable that does not lead to the level above or below.
func (r *ranker) check() error {
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
