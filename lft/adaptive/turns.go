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

// turnSearch adds turns to those of a widener as long as they close no cycle.
type turnSearch struct {
	w       *widener
	refused turns
	next    graph.Next[int32]
	added   [][2]int32 // since the last end
	work    int
}

func newTurnSearch(w *widener) *turnSearch {
	return &turnSearch{w: w, refused: newTurns(&w.channels, w.numVLs()), next: w.turns.Next()}
}

// add says whether there is a turn, or else adds it if it closes no cycle. After searchWork steps it
// adds no more. What is added before a turn is refused goes with end.
func (x *turnSearch) add(a, b int32) bool {
	t := &x.w.turns
	if t.Has(a, b) {
		return true
	}
	if x.refused.Has(a, b) || x.work > searchWork {
		return false
	}
	next := func(v int32) []int32 {
		list := x.next(v)
		x.work += len(t.Row(v)) + len(list)
		return list
	}
	if !x.w.order.Add(a, b, next, t.listBefore) {
		// Turns that go again may be part of the cycle.
		if len(x.added) == 0 {
			x.refused.Add(a, b)
		}
		return false
	}
	t.Add(a, b)
	x.added = append(x.added, [2]int32{a, b})
	return true
}

// end keeps the turns that were added, or takes them away.
func (x *turnSearch) end(keep bool) {
	if !keep {
		for _, t := range x.added {
			x.w.turns.Remove(t[0], t[1])
		}
	}
	x.added = x.added[:0]
}
