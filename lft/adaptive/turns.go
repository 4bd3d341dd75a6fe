package adaptive

import "github.com/ibweave/ibweave/internal/graph"

// turns is a graph of nodes: those that packets can have after one another.
type turns struct {
	graph.Rows
	*channels
	vls  int
	list []int32 // of listBefore
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

// listBefore lists the nodes before b. The list holds until the next call.
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
