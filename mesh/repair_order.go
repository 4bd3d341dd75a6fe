package mesh

import (
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// arcs numbers the ways between neighbouring switches of a grid. Switches are
// known by their place in the order of positions here, so that nothing depends
// on GUIDs; the arc from switch s in direction d is s*ways+d, however many
// parallel cables it has. Arcs without a cable keep their number.
type arcs struct {
	ways  int32
	head  []int32         // by arc: the switch that it leads to, -1 without a cable
	node  []fabric.NodeID // by switch
	index []int32         // by NodeID: the switch
}

// newArcs leaves out the cables that close rings when noWrap says so.
func newArcs(g *Grid, noWrap bool) *arcs {
	n, ways := g.Fabric.NumSwitches(), 2*len(g.Dims)
	a := &arcs{ways: int32(ways), head: make([]int32, n*ways), index: make([]int32, n)}
	for at := range g.Positions() {
		if s := g.At(at); s != fabric.NoNode {
			a.index[s] = int32(len(a.node))
			a.node = append(a.node, s)
		}
	}
	for i := range a.head {
		a.head[i] = -1
		ports := g.Ports(a.node[i/ways], Dir(i%ways))
		if len(ports) > 0 && !(noWrap && g.Wraps(ports[0])) {
			a.head[i] = a.index[g.Fabric.Owner(g.Fabric.Peer(ports[0]))]
		}
	}
	return a
}

// arc is the one from switch s in direction d.
func (a *arcs) arc(s int32, d Dir) int32 { return s*a.ways + int32(d) }

// next is the arc that leads on in direction d from where an arc leads.
func (a *arcs) next(arc int32, d Dir) int32 { return a.arc(a.head[arc], d) }

// waits is a channel dependency graph of one VL that grows and stays free of
// cycles: which arcs a packet that holds an arc may wait for. It keeps a
// topological order up to date (Pearce and Kelly, A Dynamic Topological Sort
// Algorithm for Directed Acyclic Graphs, ACM JEA 2006).
type waits struct {
	*arcs
	on      []uint32 // by arc: bit d for waiting for the arc that leads on in direction d
	refused []uint32 // likewise, what would close a cycle
	rank    []int32  // by arc: every arc ranks below those that it waits for
	at      []int32  // by rank
	trial   []int32  // arcs and directions that undo takes back
	seen    []bool   // by arc; false between calls
	ahead   []int32
	behind  []int32
	ranks   []int32
	moved   []int32
}

// newWaits has no dependencies; order lists all arcs and is the first
// topological order.
func newWaits(a *arcs, order []int32) *waits {
	n := len(a.head)
	w := &waits{
		arcs: a, on: make([]uint32, n), refused: make([]uint32, n),
		rank: make([]int32, n), at: slices.Clone(order), seen: make([]bool, n),
	}
	for i, arc := range w.at {
		w.rank[arc] = int32(i)
	}
	return w
}

func (w *waits) has(arc int32, d Dir) bool { return w.on[arc]>>d&1 != 0 }

// keep makes what was added so far stay.
func (w *waits) keep() { w.trial = w.trial[:0] }

// undo takes back what was added since the last keep.
func (w *waits) undo() {
	for i := 0; i < len(w.trial); i += 2 {
		w.on[w.trial[i]] &^= 1 << w.trial[i+1]
	}
	w.trial = w.trial[:0]
}

// add makes arc wait for the arc that leads on in direction d, unless that
// closes a cycle: then it changes nothing and returns false.
func (w *waits) add(arc int32, d Dir) bool {
	if w.has(arc, d) {
		return true
	}
	if w.refused[arc]>>d&1 != 0 {
		return false
	}
	to := w.next(arc, d)
	if w.rank[arc] > w.rank[to] && !w.reorder(arc, to) {
		if len(w.trial) == 0 {
			w.refused[arc] |= 1 << d
		}
		return false
	}
	w.on[arc] |= 1 << d
	w.trial = append(w.trial, arc, int32(d))
	return true
}

// reorder ranks arc x below y, which ranks lower so far, and returns false
// when y waits for x.
func (w *waits) reorder(x, y int32) bool {
	low, high := w.rank[y], w.rank[x]
	w.ahead = append(w.ahead[:0], y)
	w.seen[y] = true
	cycle := false
	for i := 0; i < len(w.ahead) && !cycle; i++ {
		arc := w.ahead[i]
		set := w.on[arc]
		for d := Dir(0); set != 0; d, set = d+1, set>>1 {
			if set&1 == 0 {
				continue
			}
			z := w.next(arc, d)
			if z == x {
				cycle = true
				break
			}
			if w.rank[z] < high && !w.seen[z] {
				w.seen[z] = true
				w.ahead = append(w.ahead, z)
			}
		}
	}
	for _, arc := range w.ahead {
		w.seen[arc] = false
	}
	if cycle {
		return false
	}
	w.behind = append(w.behind[:0], x)
	w.seen[x] = true
	for i := 0; i < len(w.behind); i++ {
		arc := w.behind[i]
		s, d := arc/w.ways, Dir(arc%w.ways)
		for e := range Dir(w.ways) {
			// The arc into s in direction e comes from the neighbour opposite.
			from := w.head[s*w.ways+int32(e.Opposite())]
			if from < 0 {
				continue
			}
			z := from*w.ways + int32(e)
			if w.has(z, d) && w.rank[z] > low && !w.seen[z] {
				w.seen[z] = true
				w.behind = append(w.behind, z)
			}
		}
	}
	for _, arc := range w.behind {
		w.seen[arc] = false
	}
	// Both keep their order, on the ranks that they have together.
	w.toRanks(w.ahead)
	w.toRanks(w.behind)
	w.ranks = append(append(w.ranks[:0], w.behind...), w.ahead...)
	slices.Sort(w.ranks)
	w.moved = w.moved[:0]
	for _, rank := range w.behind {
		w.moved = append(w.moved, w.at[rank])
	}
	for _, rank := range w.ahead {
		w.moved = append(w.moved, w.at[rank])
	}
	for i, arc := range w.moved {
		w.at[w.ranks[i]], w.rank[arc] = arc, w.ranks[i]
	}
	return true
}

// toRanks turns arcs into their ranks, ascending.
func (w *waits) toRanks(list []int32) {
	for i, arc := range list {
		list[i] = w.rank[arc]
	}
	slices.Sort(list)
}

// sorted lists all arcs in a topological order of the dependencies on, nil
// when these have a cycle.
func (a *arcs) sorted(on []uint32) []int32 {
	waiting := make([]int32, len(a.head)) // how many wait for the arc
	for arc, set := range on {
		for d := Dir(0); set != 0; d, set = d+1, set>>1 {
			if set&1 != 0 {
				waiting[a.next(int32(arc), d)]++
			}
		}
	}
	list := make([]int32, 0, len(on))
	for arc, n := range waiting {
		if n == 0 {
			list = append(list, int32(arc))
		}
	}
	for i := 0; i < len(list); i++ {
		arc := list[i]
		for d, set := Dir(0), on[arc]; set != 0; d, set = d+1, set>>1 {
			if set&1 == 0 {
				continue
			}
			to := a.next(arc, d)
			if waiting[to]--; waiting[to] == 0 {
				list = append(list, to)
			}
		}
	}
	if len(list) < len(on) {
		return nil
	}
	return list
}
