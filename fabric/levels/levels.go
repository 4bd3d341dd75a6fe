// Package levels finds the levels of the switches of a tree. The audit of cables, the
// fattree engine and the page take them from here. It makes no promise to other modules.
//
// In a tree a cable joins neighbouring levels and hosts are on leaves, but real trees have
// bare leaves, hosts on spines, cables between spines, and parts that hang somewhere else
// than the rest. So hosts say where the leaves are where there are many, the distance
// from these gives the others a level, and then switches without hosts that are cabled as
// those two levels lower take their level. Names and system image GUIDs do not matter.
package levels

import (
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
)

// Of is by switch its level, 0 for leaves. A fabric that is no tree has levels too: Share
// says how many of its cables these explain. Parts that no cable joins have levels of their
// own; switches of a part without hosts are on level 0.
//
// It takes O(cables x ports of a switch).
func Of(f *fabric.Fabric) []int32 {
	r := &ranker{f: f, near: make([][]fabric.NodeID, f.NumSwitches()), hosts: Hosts(f), shared: make([]int32, f.NumSwitches())}
	for s := range r.near {
		_, to := f.SwitchLinks(fabric.NodeID(s))
		r.near[s] = slices.Compact(slices.Sorted(slices.Values(to)))
	}
	if f.NumSwitches() == 0 {
		return nil
	}
	leaves, pendants := r.findLeaves()
	search := graph.NewSearch[fabric.NodeID](f.NumSwitches())
	search.Run(r.neighbors, leaves...)
	r.level = search.Distance
	for s := range r.level {
		r.level[s] = max(r.level[s], 0)
	}
	for c := int32(1); c < slices.Max(r.level); c++ {
		if r.foldDown(c) {
			c = 0 // what came down may have left others alone
		}
	}
	for _, s := range pendants {
		r.level[s] = max(0, r.level[r.near[s][0]]-1)
	}
	return r.level
}

// Share is the share of the cables between switches that join neighbouring levels, 1
// without such cables.
func Share(f *fabric.Fabric, level []int32) float64 {
	all, good := 0, 0
	for s := range fabric.NodeID(f.NumSwitches()) {
		_, to := f.SwitchLinks(s)
		all += len(to)
		for _, t := range to {
			if d := level[s] - level[t]; d == 1 || d == -1 {
				good++
			}
		}
	}
	if all == 0 {
		return 1
	}
	return float64(good) / float64(all)
}

// Hosts counts by switch the ports of hosts, and of all other nodes that are no aggregation
// nodes.
func Hosts(f *fabric.Fabric) []int {
	hosts := make([]int, f.NumSwitches())
	for s := range hosts {
		for _, p := range f.HostsOn(fabric.NodeID(s)) {
			if f.Kind(f.Owner(p)) != fabric.AggregationKind {
				hosts[s]++
			}
		}
	}
	return hosts
}

// ranker finds levels.
type ranker struct {
	f      *fabric.Fabric
	near   [][]fabric.NodeID // by switch: its neighbours, each once, by NodeID
	hosts  []int             // by switch
	level  []int32           // by switch
	shared []int32           // by switch; see likeness
}

func (r *ranker) neighbors(s fabric.NodeID) []fabric.NodeID { return r.near[s] }

// findLeaves lists the switches of each part that have at least half as many hosts as the
// switch of the median host, spines with hosts apart. Those with one neighbour are
// pendants, if others are left: they are below their neighbour, wherever that is.
func (r *ranker) findLeaves() (leaves, pendants []fabric.NodeID) {
	part, count := graph.Components(len(r.near), r.neighbors)
	counts := make([][]int, count)
	for s, h := range r.hosts {
		counts[part[s]] = append(counts[part[s]], h)
	}
	least := make([]int, count)
	for i := range least {
		least[i] = (medianHost(counts[i]) + 1) / 2
	}
	leaf := make([]bool, len(r.near))
	for s, h := range r.hosts {
		leaf[s] = h >= least[part[s]]
	}
	others := make([]bool, count) // leaves that are no pendants
	for s := range fabric.NodeID(len(r.near)) {
		if leaf[s] && !r.isHostedSpine(s, leaf) {
			leaves = append(leaves, s)
			others[part[s]] = others[part[s]] || len(r.near[s]) > 1
		}
	}
	isPendant := func(s fabric.NodeID) bool { return len(r.near[s]) == 1 && others[part[s]] }
	for _, s := range leaves {
		if isPendant(s) {
			pendants = append(pendants, s)
		}
	}
	return slices.DeleteFunc(leaves, isPendant), pendants
}

// isHostedSpine says whether s, among those that look like leaves, is a spine with hosts on
// it: two cables in five lead to such switches with more hosts, and to several of them.
func (r *ranker) isHostedSpine(s fabric.NodeID, leaf []bool) bool {
	_, to := r.f.SwitchLinks(s)
	cables := 0
	distinct := make(map[fabric.NodeID]bool)
	for _, t := range to {
		if leaf[t] && r.hosts[t] > r.hosts[s] {
			cables++
			distinct[t] = true
		}
	}
	return 5*cables >= 2*len(to) && len(distinct) >= 2
}

// medianHost is the number of hosts of the switch that has the median host, 0 without any.
func medianHost(counts []int) int {
	slices.Sort(counts)
	left := 0
	for _, n := range counts {
		left += n
	}
	for _, n := range counts {
		if left -= 2 * n; left <= 0 {
			return n
		}
	}
	return 0
}

// foldDown looks at the parts into which the switches above level c fall. A part belongs
// below level c if most of its lowest switches, on level c+1, are cabled as switches of
// level c-1, or if it has levels of its own and most hosts on what would be leaves. It is
// mirrored there. foldDown returns whether any was.
func (r *ranker) foldDown(c int32) bool {
	any := false
	search := graph.NewSearch[fabric.NodeID](len(r.near))
	above := func(s fabric.NodeID) []fabric.NodeID {
		return slices.DeleteFunc(slices.Clone(r.near[s]), func(t fabric.NodeID) bool { return r.level[t] <= c })
	}
	for s := range fabric.NodeID(len(r.near)) {
		if r.level[s] != c+1 || search.Reached(s) {
			continue
		}
		from := len(search.Order)
		search.Extend(above, s)
		part := search.Order[from:]
		lowest, below := 0, 0
		leaf, other := 0, 0 // hosts on what would be leaves, and on the others
		for _, t := range part {
			if r.level[t] == 2*c {
				leaf += r.hosts[t]
			} else {
				other += r.hosts[t]
			}
			if r.level[t] == c+1 {
				lowest++
				if r.isLikeBelow(t, c) {
					below++
				}
			}
		}
		if 2*below <= lowest && (c == 1 || leaf <= other) {
			continue
		}
		any = true
		for _, t := range part {
			r.level[t] = max(0, 2*c-r.level[t])
		}
	}
	return any
}

// isLikeBelow says whether s, on level c+1, has three quarters of its neighbours on level c
// in common with one switch of level c-1, and has hosts or is not more like another one of
// its own level.
func (r *ranker) isLikeBelow(s fabric.NodeID, c int32) bool {
	own := r.countNear(s, c)
	var touched []fabric.NodeID
	for _, v := range r.near[s] {
		if r.level[v] != c {
			continue
		}
		for _, t := range r.near[v] {
			if t != s && (r.level[t] == c-1 || r.level[t] == c+1) {
				if r.shared[t] == 0 {
					touched = append(touched, t)
				}
				r.shared[t]++
			}
		}
	}
	below, beside, contained := 0.0, 0.0, false
	for _, t := range touched {
		n := int(r.shared[t])
		r.shared[t] = 0
		alike := float64(n) / float64(own+r.countNear(t, c)-n)
		if r.level[t] > c {
			beside = max(beside, alike)
			continue
		}
		below = max(below, alike)
		contained = contained || 4*n >= 3*own
	}
	return contained && (below >= beside || r.hosts[s] > 0)
}

// countNear counts the neighbours of a switch on a level.
func (r *ranker) countNear(s fabric.NodeID, level int32) int {
	n := 0
	for _, t := range r.near[s] {
		if r.level[t] == level {
			n++
		}
	}
	return n
}
