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
	level  []int32 // by NodeID: at first as of package levels
	search *graph.Search[fabric.NodeID]
}

// liftPendants puts switches that hang below leaves only above these: cables lead to the
// next level.
func (r *ranker) liftPendants() {
	for _, s := range r.part {
		near := r.f.Neighbors(s)
		if r.level[s] == 0 && len(near) > 0 && !slices.ContainsFunc(near, func(t fabric.NodeID) bool { return r.level[t] != 0 }) {
			r.level[s] = 1
		}
	}
}

// rankFromRoots finds levels by the distance from the roots. It returns false if none of
// them is in the part.
func (r *ranker) rankFromRoots(roots []fabric.NodeID) bool {
	var own []fabric.NodeID
	for _, s := range roots {
		if _, ok := slices.BinarySearch(r.part, s); ok {
			own = append(own, s)
		}
	}
	if len(own) == 0 {
		return false
	}
	r.search.Run(r.f.Neighbors, own...)
	height := int32(0)
	for _, s := range r.part {
		height = max(height, r.search.Distance[s])
	}
	for _, s := range r.part {
		r.level[s] = height - r.search.Distance[s]
	}
	return true
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
