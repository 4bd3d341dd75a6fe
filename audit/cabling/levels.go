package cabling

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/text"
)

// levelsOf gives every switch a level: 0 for leaves, which have hosts, and for the
// others their distance from the nearest leaf. It is nil when there are no levels:
// all switches have hosts, or some switch is joined to no leaf.
//
// A switch two levels above leaves whose neighbours are all neighbours of one leaf is a
// leaf too: it has few hosts or none.
func levelsOf(f *fabric.Fabric, hosts []int) []int32 {
	leaves := findLeaves(f, hosts)
	search := graph.NewSearch[fabric.NodeID](f.NumSwitches())
	search.Run(func(s fabric.NodeID) []fabric.NodeID {
		_, to := f.SwitchLinks(s)
		return to
	}, leaves...)
	if len(leaves) == f.NumSwitches() || len(search.Order) < f.NumSwitches() {
		return nil
	}
	level := slices.Clone(search.Distance)
	for s := range fabric.NodeID(f.NumSwitches()) {
		if search.Distance[s] == 2 && cabledAsLeaf(f, s, search.Distance) {
			level[s] = 0
		}
	}
	return level
}

// findLeaves lists the switches with hosts, except that one with less than half as many
// hosts as the median is no leaf, nor is one whose cables lead mostly to leaves: it is a
// spine with a host on it. Where more than a quarter of the leaves are such, there are none.
func findLeaves(f *fabric.Fabric, hosts []int) []fabric.NodeID {
	some := slices.DeleteFunc(slices.Sorted(slices.Values(hosts)), func(h int) bool { return h == 0 })
	if len(some) == 0 {
		return nil
	}
	least := max(1, (some[len(some)/2]+1)/2)
	var leaves []fabric.NodeID
	leaf := make([]bool, f.NumSwitches())
	for s, h := range hosts {
		if leaf[s] = h >= least; leaf[s] {
			leaves = append(leaves, fabric.NodeID(s))
		}
	}
	most := len(leaves)
	for {
		worst, share := -1, 0.5
		for i, s := range leaves {
			if x := shareTo(f, s, leaf); x > share {
				worst, share = i, x
			}
		}
		if worst < 0 {
			return leaves
		}
		leaf[leaves[worst]] = false
		leaves = slices.Delete(leaves, worst, worst+1)
		if 4*(most-len(leaves)) > most {
			return nil
		}
	}
}

// shareTo is the share of the cables of s to other switches that lead to some.
func shareTo(f *fabric.Fabric, s fabric.NodeID, some []bool) float64 {
	_, to := f.SwitchLinks(s)
	n := 0
	for _, t := range to {
		if some[t] {
			n++
		}
	}
	return float64(n) / float64(max(1, len(to)))
}

// cabledAsLeaf says whether some leaf is joined to all neighbours of s.
func cabledAsLeaf(f *fabric.Fabric, s fabric.NodeID, level []int32) bool {
	_, near := f.SwitchLinks(s)
	_, leaves := f.SwitchLinks(near[0])
	return slices.ContainsFunc(leaves, func(leaf fabric.NodeID) bool {
		if level[leaf] != 0 {
			return false
		}
		_, to := f.SwitchLinks(leaf)
		return !slices.ContainsFunc(near, func(t fabric.NodeID) bool { return !slices.Contains(to, t) })
	})
}

// levelSizes counts switches by level.
func levelSizes(level []int32) []int {
	sizes := make([]int, slices.Max(level)+1)
	for _, l := range level {
		sizes[l]++
	}
	return sizes
}

// levelNames is "31 leaves, 9 spines", the topmost of three levels or more being
// core switches.
func levelNames(sizes []int) string {
	parts := make([]string, len(sizes))
	for i, n := range sizes {
		switch {
		case i == 0:
			parts[i] = text.Count(n, "leaf", "leaves")
		case i == 1:
			parts[i] = text.Count(n, "spine", "spines")
		case i == len(sizes)-1:
			parts[i] = text.Count(n, "core switch", "core switches")
		default:
			parts[i] = fmt.Sprintf("%d on level %d", n, i+1)
		}
	}
	return strings.Join(parts, ", ")
}
