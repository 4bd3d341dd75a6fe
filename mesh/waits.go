package mesh

import (
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
)

// arcs numbers the ways between neighbouring switches of a grid. Switches are
// known by their place in the order of positions here, so that nothing depends
// on GUIDs; the arc from switch s in direction d is s*ways+d, however many
// parallel cables it has. Arcs without a cable keep their number.
type arcs struct {
	dirs  int32
	head  []int32         // by arc: the switch that it leads to, -1 without a cable
	node  []fabric.NodeID // by switch
	index []int32         // by NodeID: the switch
}

// newArcs leaves out the cables that close rings when noWrap says so.
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

// arc is the one from switch s in direction d.
func (a *arcs) arc(s int32, d Dir) int32 { return s*a.dirs + int32(d) }

// next is the arc that leads on in direction d from where an arc leads.
func (a *arcs) next(arc int32, d Dir) int32 { return a.arc(a.head[arc], d) }

// neighbors lists the switches that cables join with s.
func (a *arcs) neighbors(s int32) []int32 {
	return slices.DeleteFunc(slices.Clone(a.head[s*a.dirs:(s+1)*a.dirs]), func(to int32) bool { return to < 0 })
}

// into is the arc that leads to switch s in direction d, -1 without a cable.
func (a *arcs) into(s int32, d Dir) int32 {
	from := a.head[a.arc(s, d.Opposite())]
	if from < 0 {
		return -1
	}
	return a.arc(from, d)
}

// waits is a channel dependency graph: which channels a packet that holds a
// channel may wait for. A channel is an arc and a VL. Parallel cables count as
// one: what is safe so is safe with each of them for itself.
type waits struct {
	*arcs
	vls int
	// on is by arc, VL and direction: the VLs, a bit each, of the channels in that
	// direction, from where the arc leads, that are waited for.
	on []uint16
	// order is a topological order of the channels of a graph that stays free of
	// cycles, else nil.
	order   *graph.Order[int32]
	refused []uint16 // likewise as on: what closes a cycle with what stays
	trial   []int    // indices of on, and VLs, that were added since the last keep or undo
	list    []int32
}

func newWaits(a *arcs, vls int) *waits {
	return &waits{arcs: a, vls: vls, on: make([]uint16, len(a.head)*vls*int(a.dirs))}
}

// keepAcyclic makes add refuse cycles from now on. order is as of sorted, of all
// channels.
func (w *waits) keepAcyclic(order []int32) {
	w.order, w.refused = graph.NewOrder(slices.Clone(order)), make([]uint16, len(w.on))
}

// clone is a copy that cycles may be added to.
func (w *waits) clone() *waits {
	return &waits{arcs: w.arcs, vls: w.vls, on: slices.Clone(w.on)}
}

func (w *waits) channels() int { return len(w.head) * w.vls }

func (w *waits) channel(arc int32, vl int) int32 { return arc*int32(w.vls) + int32(vl) }

// turn is the index in on of what a channel waits for in direction d.
func (w *waits) turn(channel int32, d Dir) int { return int(channel)*int(w.dirs) + int(d) }

// after lists the channels that a channel waits for.
func (w *waits) after(channel int32) []int32 {
	w.list = w.list[:0]
	for d := range Dir(w.dirs) {
		for set := w.on[w.turn(channel, d)]; set != 0; set &= set - 1 {
			next := w.next(channel/int32(w.vls), d)
			w.list = append(w.list, w.channel(next, bits.TrailingZeros16(set)))
		}
	}
	return w.list
}

// before lists the channels that wait for a channel.
func (w *waits) before(channel int32) []int32 {
	w.list = w.list[:0]
	arc, vl := channel/int32(w.vls), channel%int32(w.vls)
	s, way := arc/w.dirs, Dir(arc%w.dirs)
	for d := range Dir(w.dirs) {
		in := w.into(s, d)
		for v := 0; in >= 0 && v < w.vls; v++ {
			if held := w.channel(in, v); w.on[w.turn(held, way)]>>vl&1 != 0 {
				w.list = append(w.list, held)
			}
		}
	}
	return w.list
}

// sorted lists the channels in a topological order, except those on cycles and
// behind them.
func (w *waits) sorted() []int32 { return graph.TopologicalOrder(w.channels(), w.after) }

// add makes a channel wait for the one with a VL that leads on in direction d. If w
// has an order and that closes a cycle, it changes nothing and returns false.
func (w *waits) add(channel int32, d Dir, vl int) bool {
	i := w.turn(channel, d)
	if w.on[i]>>vl&1 != 0 {
		return true
	}
	if w.order != nil {
		next := w.channel(w.next(channel/int32(w.vls), d), vl)
		if w.refused[i]>>vl&1 != 0 || !w.order.Add(channel, next, w.after, w.before) {
			if len(w.trial) == 0 {
				w.refused[i] |= 1 << vl
			}
			return false
		}
		w.trial = append(w.trial, i, vl)
	}
	w.on[i] |= 1 << vl
	return true
}

// keep makes what was added so far stay.
func (w *waits) keep() { w.trial = w.trial[:0] }

// undo takes back what was added since the last keep.
func (w *waits) undo() {
	for i := 0; i < len(w.trial); i += 2 {
		w.on[w.trial[i]] &^= 1 << w.trial[i+1]
	}
	w.trial = w.trial[:0]
}

// cycle is channels each of which waits for the next one, and the last for the
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
	// Each of the others is waited for by one of them: back from any, until one
	// comes again.
	before := make([]int32, w.channels())
	at := int32(-1)
	for ch := range int32(w.channels()) {
		if !sorted[ch] {
			for _, to := range w.after(ch) {
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
