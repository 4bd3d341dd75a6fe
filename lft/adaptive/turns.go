package adaptive

import "github.com/ibweave/ibweave/internal/graph"

// turns is a dependency graph. A node is a channel on a VL, an edge a turn that packets
// make.
type turns struct {
	graph.Rows
	*channels
	vls  int
	list []int32 // the result of listBefore
}

func newTurns(c *channels, vls int) turns {
	most := int32(0)
	for s := range len(c.first) - 1 {
		most = max(most, c.first[s+1]-c.first[s])
	}
	base := make([]int32, len(c.to)*vls)
	for a := range base {
		base[a] = c.first[c.to[a/vls]] * int32(vls)
	}
	return turns{graph.NewRows(base, int(most)*vls), c, vls, nil}
}

// listBefore lists the nodes with an edge to b. The next call overwrites the list.
func (t *turns) listBefore(b int32) []int32 {
	t.list = t.list[:0]
	s := t.from[b/int32(t.vls)]
	for out := t.first[s]; out < t.first[s+1]; out++ {
		for vl := range int32(t.vls) {
			if a := t.back[out]*int32(t.vls) + vl; t.Has(a, b) {
				t.list = append(t.list, a)
			}
		}
	}
	return t.list
}
