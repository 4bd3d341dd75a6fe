package mesh

import (
	"math"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
)

// arcs numbers the ways between neighbouring switches of a grid. Here switches
// are numbered in the order of positions, so that nothing depends on GUIDs. The
// arc from switch s in direction d is s*dirs+d, for any number of parallel
// cables. Arcs without a cable keep their number.
type arcs struct {
	dirs  int32
	head  []int32         // by arc: the switch at its end, -1 without a cable
	node  []fabric.NodeID // by switch
	index []int32         // by NodeID: the number of the switch
}

// newArcs numbers the arcs of g. With noWrap it leaves out the cables that close
// rings.
func newArcs(g *Grid, noWrap bool) *arcs {
	n, dirs := g.Fabric.NumSwitches(), 2*len(g.Dims)
	a := &arcs{dirs: int32(dirs), head: make([]int32, n*dirs), index: make([]int32, n)}
	for at := range g.Positions() {
		if s := g.At(at); s != fabric.NoNode {
			a.index[s] = int32(len(a.node))
			a.node = append(a.node, s)
		}
	}
	for i := range a.head {
		a.head[i] = -1
		ports := g.Ports(a.node[i/dirs], Dir(i%dirs))
		if len(ports) > 0 && !(noWrap && g.Wraps(ports[0])) {
			a.head[i] = a.index[g.Fabric.PeerSwitch(ports[0])]
		}
	}
	return a
}

// arc returns the arc from switch s in direction d.
func (a *arcs) arc(s int32, d Dir) int32 { return s*a.dirs + int32(d) }

// next returns the arc in direction d from the end of an arc.
func (a *arcs) next(arc int32, d Dir) int32 { return a.arc(a.head[arc], d) }

// neighbors lists the switches with a cable to s.
func (a *arcs) neighbors(s int32) []int32 {
	return slices.DeleteFunc(slices.Clone(a.head[s*a.dirs:(s+1)*a.dirs]), func(to int32) bool { return to < 0 })
}

// into returns the arc that leads to switch s in direction d, -1 without a cable.
func (a *arcs) into(s int32, d Dir) int32 {
	from := a.head[a.arc(s, d.Opposite())]
	if from < 0 {
		return -1
	}
	return a.arc(from, d)
}

// waits is a channel dependency graph: the channels that a packet in a channel
// may wait for. A channel is an arc and a VL. Parallel cables count as one: if
// that graph has no cycle, there is none with each cable for itself.
type waits struct {
	*arcs
	graph.Rows
	vls int
	// acyclic has the same edges, and refuses edges that close a cycle; nil for a
	// graph that may have cycles.
	acyclic *graph.Acyclic
	list    []int32
}

func newWaits(a *arcs, vls int) *waits {
	base := make([]int32, len(a.head)*vls)
	for ch := range base {
		base[ch] = -1
		if s := a.head[ch/vls]; s >= 0 {
			base[ch] = a.arc(s, 0) * int32(vls)
		}
	}
	return &waits{arcs: a, vls: vls, Rows: graph.NewRows(base, int(a.dirs)*vls)}
}

// keepAcyclic makes add refuse cycles from now on. order is a topological order
// of all channels.
func (w *waits) keepAcyclic(order []int32) {
	w.acyclic = graph.NewAcyclic(&w.Rows, graph.NewOrder(order), w.before, math.MaxInt)
}

// clone returns a copy, in which add does not refuse cycles.
func (w *waits) clone() *waits {
	c := newWaits(w.arcs, w.vls)
	copy(c.Bits, w.Bits)
	return c
}

func (w *waits) channels() int { return len(w.head) * w.vls }

func (w *waits) channel(arc int32, vl int) int32 { return arc*int32(w.vls) + int32(vl) }

// onward returns the channel on VL vl in direction d from the end of a channel.
func (w *waits) onward(channel int32, d Dir, vl int) int32 {
	return w.channel(w.next(channel/int32(w.vls), d), vl)
}

// before lists the channels that wait for a channel.
func (w *waits) before(channel int32) []int32 {
	w.list = w.list[:0]
	s := channel / int32(w.vls) / w.dirs
	for d := range Dir(w.dirs) {
		in := w.into(s, d)
		for v := 0; in >= 0 && v < w.vls; v++ {
			if held := w.channel(in, v); w.Has(held, channel) {
				w.list = append(w.list, held)
			}
		}
	}
	return w.list
}

// sorted lists the channels in a topological order, without those on cycles or
// reachable from cycles.
func (w *waits) sorted() []int32 { return graph.TopologicalOrder(w.channels(), w.Next()) }

// add makes a channel wait for the channel on VL vl in direction d from its end.
// After keepAcyclic it returns false, and changes nothing, if that closes a
// cycle.
func (w *waits) add(channel int32, d Dir, vl int) bool {
	if w.acyclic != nil {
		return w.acyclic.Try(channel, w.onward(channel, d, vl))
	}
	w.Add(channel, w.onward(channel, d, vl))
	return true
}

// cycle returns channels of which each waits for the next, and the last for the
// first; nil if there are none.
func (w *waits) cycle() []int32 {
	order := w.sorted()
	if len(order) == w.channels() {
		return nil
	}
	sorted := make([]bool, w.channels())
	for _, ch := range order {
		sorted[ch] = true
	}
	// For each channel left, another one left waits: go back from any, until one
	// is met again.
	before, next := make([]int32, w.channels()), w.Next()
	at := int32(-1)
	for ch := range int32(w.channels()) {
		if !sorted[ch] {
			for _, to := range next(ch) {
				before[to] = ch
			}
			at = ch
		}
	}
	var list []int32
	place := make(map[int32]int)
	for {
		if from, again := place[at]; again {
			list = list[from:]
			slices.Reverse(list)
			return list
		}
		place[at] = len(list)
		list = append(list, at)
		at = before[at]
	}
}
