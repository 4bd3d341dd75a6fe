package rails

import (
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
)

// findMeetings finds the level at which each rail meets another one, and leaves of a rail that are
// cabled to the spines of another. Cables join levels from below.
func (x *finder) findMeetings(level []int32) {
	var leaves []fabric.NodeID
	for s, rails := range x.out.on {
		if rails != 0 {
			leaves = append(leaves, fabric.NodeID(s))
		}
	}
	joins := graph.NewUnionFind[fabric.NodeID](x.f.NumSwitches())
	for k := range slices.Max(level) + 1 {
		for s := range fabric.NodeID(x.f.NumSwitches()) {
			for _, to := range x.f.Neighbors(s) {
				if max(level[s], level[to]) <= k {
					joins.Join(s, to)
				}
			}
		}
		rails := make(map[fabric.NodeID]uint64) // of the leaves that are joined
		for _, leaf := range leaves {
			rails[joins.Find(leaf)] |= x.out.on[leaf]
		}
		for i := range x.out.Rails {
			r := &x.out.Rails[i]
			for _, together := range rails {
				if r.MeetsAt < 0 && together>>i&1 != 0 && bits.OnesCount64(together) > 1 {
					r.MeetsAt = int(k)
				}
			}
		}
		if k == 1 {
			x.findCrossed(leaves, joins.Find)
		}
	}
}

// findCrossed looks for a leaf among leaves with the same spines three quarters of which are of another
// rail, if its own rail has other leaves that are so among themselves.
func (x *finder) findCrossed(leaves []fabric.NodeID, part func(fabric.NodeID) fabric.NodeID) {
	count := make(map[fabric.NodeID]map[uint64]int) // by part: leaves by their rails
	size := make(map[fabric.NodeID]int)
	for _, leaf := range leaves {
		root := part(leaf)
		if count[root] == nil {
			count[root] = make(map[uint64]int)
		}
		count[root][x.out.on[leaf]]++
		size[root]++
	}
	own := make(map[uint64]fabric.NodeID) // by rails: the part that is theirs, the first of several
	theirs := make(map[fabric.NodeID]uint64)
	for _, leaf := range leaves {
		rails, root := x.out.on[leaf], part(leaf)
		if size[root] >= 3 && 4*count[root][rails] >= 3*size[root] {
			theirs[root] = rails
			if _, has := own[rails]; !has {
				own[rails] = root
			}
		}
	}
	for _, leaf := range leaves {
		rails, root := x.out.on[leaf], part(leaf)
		if _, has := own[rails]; has && theirs[root] != 0 && theirs[root] != rails {
			ports := 0
			for i := range x.hosts {
				for _, p := range x.hosts[i].ports {
					if p.leaf == leaf && p.home == leaf {
						ports++
					}
				}
			}
			x.out.add(Crossed, int64(ports), nil, "%s has %s, and %d of the %d leaves with the same spines have %s", x.f.Name(leaf), x.out.words(rails), count[root][theirs[root]], size[root], x.out.words(theirs[root]))
			x.out.Findings[len(x.out.Findings)-1].Switch = x.f.Node(leaf).GUID
		}
	}
}

// belong says which rails each switch is of: leaves have those of the ports that belong there, other
// switches those of the level below that they are cabled to.
func (r *Result) belong(level []int32) {
	for k := int32(1); k <= slices.Max(level); k++ {
		for s := range fabric.NodeID(len(level)) {
			if level[s] != k {
				continue
			}
			for _, to := range r.f.Neighbors(s) {
				if level[to] < k {
					r.on[s] |= r.on[to]
				}
			}
		}
	}
}
