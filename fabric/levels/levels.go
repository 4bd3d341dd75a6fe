// Package levels finds the levels of the switches of a tree, for the audit of cables,
// the fattree engine and the page. It makes no promise to other modules.
//
// In a tree a cable joins neighbouring levels and hosts are on leaves, but real trees
// have bare leaves, hosts on spines, cables between spines, and parts that hang
// elsewhere than the rest. So switches with many hosts become leaves, the others get
// levels by distance from these, and then switches without hosts that are cabled like
// those two levels lower move to that level. Names and system image GUIDs do not matter.
package levels

import (
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/text"
)

// Of returns the level of each switch, 0 for leaves. A fabric that is not a tree gets levels too:
// Share tells how many of its cables they explain. Parts that no cables connect are levelled
// separately; all switches of a part without hosts are on level 0.
//
// It takes O(cables x ports of a switch).
func Of(f *fabric.Fabric) []int32 {
	near := func(s fabric.NodeID) []fabric.NodeID {
		return slices.Compact(slices.Sorted(slices.Values(f.Neighbors(s))))
	}
	r := &ranker{f: f, near: text.Each(f.Switches(), near), hosts: Hosts(f), shared: make([]int32, f.NumSwitches())}
	if f.NumSwitches() == 0 {
		return nil
	}
	var parts int
	r.part, parts = graph.Components(len(r.near), r.neighbors)
	leaves := r.findLeaves(parts)
	level := r.rank(leaves)
	if some := r.ofOneColour(leaves, parts); len(some) < len(leaves) {
		other := r.rank(some)
		cost, less := r.costs(level, parts), r.costs(other, parts)
		for s, i := range r.part {
			if less[i] < cost[i] {
				level[s] = other[s]
			}
		}
	}
	return level
}

// Share returns the share of the cables between switches that
// join neighbouring levels, 1 if there are no such cables.
func Share(f *fabric.Fabric, level []int32) float64 {
	all := f.Channels()
	if len(all) == 0 {
		return 1
	}
	return float64(text.CountIf(all, func(p fabric.PortID) bool {
		d := level[f.Owner(p)] - level[f.PeerSwitch(p)]
		return d == 1 || d == -1
	})) / float64(len(all))
}

// Hosts counts, by switch, the ports of nodes that count for the shape: see fabric.Kind.
func Hosts(f *fabric.Fabric) []int {
	return text.Each(f.Switches(), func(s fabric.NodeID) int {
		return text.CountIf(f.HostsOn(s), func(p fabric.PortID) bool { return f.PortCounts(p, fabric.ForShape) })
	})
}

// ranker finds levels.
type ranker struct {
	f        *fabric.Fabric
	near     [][]fabric.NodeID // by switch: its neighbours, each once, by NodeID
	part     []int32           // by switch: its connected part
	hosts    []int             // by switch
	isLeaf   []bool            // by switch: it has as many hosts as leaves have, and is no spine with hosts
	pendants []fabric.NodeID   // leaves with one neighbour, if there are others
	level    []int32           // by switch
	shared   []int32           // by switch; 0 outside compare
	touched  []fabric.NodeID   // scratch of compare
}

func (r *ranker) neighbors(s fabric.NodeID) []fabric.NodeID { return r.near[s] }

// rank returns the levels that follow from some leaves.
func (r *ranker) rank(leaves []fabric.NodeID) []int32 {
	search := graph.NewSearch[fabric.NodeID](len(r.near))
	for {
		search.Run(r.neighbors, leaves...)
		r.level = slices.Clone(search.Distance)
		for s := range r.level {
			r.level[s] = max(r.level[s], 0)
		}
		more := false
		for _, s := range r.f.Switches() {
			if r.level[s] == 2 && r.isLikeBelow(s, 1) {
				leaves, more = append(slices.Clip(leaves), s), true
			}
		}
		if !more {
			break
		}
	}
	for c := int32(2); c < slices.Max(r.level); c++ { // on level 2, no switch is cabled like a leaf
		if r.foldDown(c) {
			c = 0 // the rest may fold differently now
		}
	}
	r.raiseBare()
	for _, s := range r.pendants {
		r.level[s] = max(0, r.level[r.near[s][0]]-1)
	}
	return r.level
}

// costs counts, by part, what levels do not explain: cables that do not join
// neighbouring levels, and hosts above leaves.
func (r *ranker) costs(level []int32, parts int) []int {
	cost := make([]int, parts)
	for _, s := range r.f.Switches() {
		_, to := r.f.SwitchLinks(s)
		for _, t := range to {
			if d := level[s] - level[t]; s < t && d != 1 && d != -1 {
				cost[r.part[s]]++
			}
		}
		if level[s] > 0 {
			cost[r.part[s]] += r.hosts[s]
		}
	}
	return cost
}

// ofOneColour keeps, in each part, the leaves of the colour that has most hosts.
// Neighbours have different colours if possible, so every second level of a tree
// has the same. Leaves that are joined to core switches have the colour of spines.
func (r *ranker) ofOneColour(leaves []fabric.NodeID, parts int) []fabric.NodeID {
	search := graph.NewSearch[fabric.NodeID](len(r.near))
	for _, s := range r.f.Switches() {
		search.Extend(r.neighbors, s)
	}
	odd := make([]int, parts) // hosts of odd colour, less those of even colour
	for _, s := range leaves {
		odd[r.part[s]] += r.hosts[s] * int(2*(search.Distance[s]&1)-1)
	}
	return slices.DeleteFunc(slices.Clone(leaves), func(s fabric.NodeID) bool {
		return (search.Distance[s]&1 == 1) != (odd[r.part[s]] > 0)
	})
}

// findLeaves fills in isLeaf and pendants, and lists the leaves that are no pendants.
// Leaves are the switches of each part that have at least half as many hosts as the
// switch of the median host, except spines with hosts. Those with one neighbour are
// pendants, if others are left: they are put below their neighbour, on any level.
func (r *ranker) findLeaves(parts int) (leaves []fabric.NodeID) {
	counts := make([][]int, parts)
	for s, h := range r.hosts {
		counts[r.part[s]] = append(counts[r.part[s]], h)
	}
	least := text.Each(counts, func(list []int) int { return (MedianHost(list) + 1) / 2 })
	many := text.Each(r.f.Switches(), func(s fabric.NodeID) bool { return r.hosts[s] >= least[r.part[s]] })
	r.isLeaf = make([]bool, len(r.near))
	others := make([]bool, parts) // leaves that are no pendants
	for _, s := range r.f.Switches() {
		if many[s] && !r.isHostedSpine(s, many) {
			r.isLeaf[s] = true
			others[r.part[s]] = others[r.part[s]] || len(r.near[s]) > 1
		}
	}
	for _, s := range r.f.Switches() {
		switch {
		case r.isLeaf[s] && len(r.near[s]) == 1 && others[r.part[s]]:
			r.pendants = append(r.pendants, s)
		case r.isLeaf[s]:
			leaves = append(leaves, s)
		}
	}
	return leaves
}

// isHostedSpine returns true if s is a spine with hosts: at least two fifths of its cables to
// switches lead to switches in many that have more hosts than s, and to two of those or more.
func (r *ranker) isHostedSpine(s fabric.NodeID, many []bool) bool {
	_, to := r.f.SwitchLinks(s)
	cables := 0
	distinct := make(map[fabric.NodeID]bool)
	for _, t := range to {
		if many[t] && r.hosts[t] > r.hosts[s] {
			cables++
			distinct[t] = true
		}
	}
	return 5*cables >= 2*len(to) && len(distinct) >= 2
}

// MedianHost sorts hosts by the number of hosts on their switch,
// and returns the middle host's; 0 without hosts. It sorts counts.
func MedianHost[N int | int32](counts []N) N {
	slices.Sort(counts)
	left := N(0)
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

// foldDown looks at the connected parts of the switches above level c. A part
// belongs below level c if most of its lowest switches, on level c+1, are cabled
// like switches of level c-1, or if c is above spines and most hosts of the part
// are on leaves, or on what would be leaves. Level c+n of such a part becomes
// c-n, at least 0. foldDown returns true if it moved any.
func (r *ranker) foldDown(c int32) bool {
	any := false
	search := graph.NewSearch[fabric.NodeID](len(r.near))
	above := func(s fabric.NodeID) []fabric.NodeID {
		return slices.DeleteFunc(slices.Clone(r.near[s]), func(t fabric.NodeID) bool { return r.level[t] <= c })
	}
	for _, s := range r.f.Switches() {
		if r.level[s] != c+1 || search.Reached(s) {
			continue
		}
		from := len(search.Order)
		search.Extend(above, s)
		part := search.Order[from:]
		lowest, below := 0, 0
		leaf, other := 0, 0 // hosts on leaves or what would be leaves, and on others
		for _, t := range part {
			if r.level[t] == 2*c || r.isLeaf[t] {
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

// isLikeBelow returns true if s, on level c+1, shares three quarters
// of its neighbours on level c with one switch of level c-1, and has
// hosts or is not more like another switch of its own level.
func (r *ranker) isLikeBelow(s fabric.NodeID, c int32) bool {
	below, beside, contained := r.compare(s, c, c-1)
	return contained && (below >= beside || r.hosts[s] > 0)
}

// raiseBare puts leaves without hosts on level 2 if they are cabled like a switch
// there, and more so than like a leaf: folding took them down with their neighbours.
func (r *ranker) raiseBare() {
	for _, s := range r.f.Switches() {
		if r.level[s] != 0 || r.hosts[s] > 0 || r.countNear(s, 1) < len(r.near[s]) {
			continue
		}
		if above, beside, _ := r.compare(s, 1, 2); above > 0.5 && above > beside {
			r.level[s] = 2
		}
	}
}

// compare returns how much s is like a switch of level other (most) and like another one
// of its own level (beside): the share of their neighbours on level c that both have.
// contained is true if a switch of level other has three quarters of the neighbours of s.
func (r *ranker) compare(s fabric.NodeID, c, other int32) (most, beside float64, contained bool) {
	own := r.countNear(s, c)
	touched := r.touched[:0]
	for _, v := range r.near[s] {
		if r.level[v] != c {
			continue
		}
		for _, t := range r.near[v] {
			if t != s && (r.level[t] == other || r.level[t] == r.level[s]) {
				if r.shared[t] == 0 {
					touched = append(touched, t)
				}
				r.shared[t]++
			}
		}
	}
	r.touched = touched
	for _, t := range touched {
		n := int(r.shared[t])
		r.shared[t] = 0
		alike := float64(n) / float64(own+r.countNear(t, c)-n)
		if r.level[t] != other {
			beside = max(beside, alike)
			continue
		}
		most = max(most, alike)
		contained = contained || 4*n >= 3*own
	}
	return most, beside, contained
}

// countNear counts the neighbours of a switch on a level.
func (r *ranker) countNear(s fabric.NodeID, level int32) int {
	return text.CountIf(r.near[s], func(t fabric.NodeID) bool { return r.level[t] == level })
}
