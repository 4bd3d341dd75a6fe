package diff

import (
	"context"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// layer is one of the two choices that a mixture has for a switch: its entries,
// and what chooses the VL.
type layer struct {
	tables *lft.Tables
	row    []fabric.NodeID // by switch of the new fabric: the row, NoNode for none
	lanes  *lanes          // nil on one VL
}

// mixture is the graphs that have the next hops of both layers, on the cables of
// the new fabric.
type mixture struct {
	f      *fabric.Fabric
	n      int // switches
	layers [2]layer
	maxLID fabric.LID
	// owner is the end ports that have a LID in either layer: PortIDs of the
	// new fabric, NoPort where there is none or it has gone.
	owner [2][]fabric.PortID
	ca    []bool  // by LID: it is that of a CA or router in one of the layers
	to    []int32 // by PortID of a switch: the switch its cable leads to, -1 for none
	base  []int32 // by switch, and one more: PortID of its port 0
	wired []bool  // by PortID of a switch: it has a cable
	cas   []int32 // by switch: CA and router ports that are cabled to it
	graphShape
	classes int // of SLs with the same VL everywhere; 1 on one VL
	classOf [lft.NumSLs]int
	inject  [][]injection // by switch: where packets of CAs come in, on more than one VL
}

// mixWorker is what one goroutine looks at LIDs with.
type mixWorker struct {
	*mixture
	column  [2][]fabric.PortNum // a block of LIDs: entries by switch
	next    [2][]int32          // by switch: the PortID that packets leave by, -1 for none
	heads   [2][]int32          // by switch: the one that this leads to, -1 for none
	changed []bool              // by switch: its entry for this LID
	indeg   []int32
	order   []int32 // topological, as far as there are no loops
	reached []bool
	stack   []int32
	comp    []int32 // by switch: the component it is in, -1 for none; valid when loops > 0
	loops   int     // components with a loop
	parts   []component
	onOwn   [2][]bool  // by switch: on a loop of that layer
	scc     sccScratch // for findLoops
	state   [2][]uint16
	// found by this goroutine
	unicast, all *graph
	transient    []fabric.LID // with a loop that is in neither layer
	unordered    int          // of these, LIDs for which no order of writes avoids it
	own          [2]int       // LIDs for which a layer loops by itself
	writes       *orderWorker // nil when no order is wanted
	want         *witnesses   // nil when no dependency is looked for
	lid          fabric.LID
}

// newMixture prepares both layers of a comparison.
func (c *comparison) newMixture() *mixture {
	f := c.new
	n := f.NumSwitches()
	m := &mixture{f: f, n: n, classes: 1, cas: make([]int32, n)}
	m.to = make([]int32, f.PortBase(fabric.NodeID(n)))
	m.wired = make([]bool, len(m.to))
	for x := range m.to {
		m.to[x] = -1
		if peer := f.Peer(fabric.PortID(x)); peer != fabric.NoPort {
			m.wired[x] = true
			if f.IsSwitch(f.Owner(peer)) {
				m.to[x] = int32(f.Owner(peer))
			}
		}
	}
	m.base = make([]int32, n+1)
	for s := range m.base {
		m.base[s] = int32(f.PortBase(fabric.NodeID(s)))
	}
	for _, s := range f.CASwitches() {
		if s != fabric.NoNode {
			m.cas[s]++
		}
	}
	m.maxLID = max(c.a.Tables.MaxLID(), c.b.Tables.MaxLID())
	m.ca = make([]bool, int(m.maxLID)+1)
	for k := range m.owner {
		m.owner[k] = make([]fabric.PortID, int(m.maxLID)+1)
	}
	for l := range fabric.LID(len(m.ca)) {
		was, now := c.old.LIDPort(l), f.LIDPort(l)
		m.owner[0][l], m.owner[1][l] = fabric.NoPort, now
		if was != fabric.NoPort {
			m.owner[0][l] = c.port[was]
			m.ca[l] = !c.old.IsSwitch(c.old.Owner(was))
		}
		m.ca[l] = m.ca[l] || now != fabric.NoPort && !f.IsSwitch(f.Owner(now))
	}
	old, new := layer{tables: c.a.Tables, row: make([]fabric.NodeID, n)}, layer{tables: c.b.Tables, row: make([]fabric.NodeID, n)}
	for s := range n {
		new.row[s] = fabric.NodeID(s)
		// A switch that has been replaced forgot its entries.
		old.row[s] = fabric.NoNode
		if was := c.back[s]; was != fabric.NoNode && c.old.Node(was).GUID == f.Node(fabric.NodeID(s)).GUID {
			old.row[s] = was
		}
	}
	m.layers = [2]layer{old, new}
	vls := 1
	if c.a.SL2VL != nil || c.b.SL2VL != nil {
		vls = c.mixLanes(m)
	}
	m.graphShape = newGraphShape(m, vls)
	return m
}

func (m *mixture) newWorker(orders, graphs bool, want *witnesses) *mixWorker {
	w := &mixWorker{
		mixture: m, changed: make([]bool, m.n), indeg: make([]int32, m.n),
		order: make([]int32, 0, m.n), reached: make([]bool, m.n), comp: make([]int32, m.n), want: want,
	}
	for k := range w.column {
		w.column[k] = make([]fabric.PortNum, lft.BlockSize*m.n)
		w.next[k], w.heads[k] = make([]int32, m.n), make([]int32, m.n)
		w.onOwn[k] = make([]bool, m.n)
		if m.vls > 1 {
			w.state[k] = make([]uint16, m.n*m.classes)
		}
	}
	if graphs {
		w.unicast, w.all = newGraph(&m.graphShape), newGraph(&m.graphShape)
	}
	if orders {
		w.writes = newOrderWorker(m.n)
	}
	return w
}

// blocks is how many blocks of LIDs there are.
func (m *mixture) blocks() int { return int(m.maxLID)/lft.BlockSize + 1 }

// run looks at all LIDs and returns one worker with what all found.
func (m *mixture) run(ctx context.Context, workers int, orders, graphs bool, want *witnesses) (*mixWorker, []*mixWorker, error) {
	list, err := parallel(ctx, workers, m.blocks(),
		func() *mixWorker { return m.newWorker(orders, graphs, want) },
		func(w *mixWorker, b int) { w.block(b) })
	if err != nil {
		return nil, nil, err
	}
	w := list[0]
	for _, o := range list[1:] {
		w.transient = append(w.transient, o.transient...)
		w.unordered += o.unordered
		for k, n := range o.own {
			w.own[k] += n
		}
		if graphs {
			w.unicast.join(o.unicast)
			w.all.join(o.all)
		}
	}
	slices.Sort(w.transient)
	return w, list, nil
}

// block looks at 64 LIDs.
func (w *mixWorker) block(b int) {
	from := fabric.LID(b * lft.BlockSize)
	to := min(int(from)+lft.BlockSize, int(w.maxLID)+1)
	w.load(from, to)
	if w.writes != nil {
		w.writes.begin(b)
	}
	for l := max(1, from); int(l) < to; l++ {
		w.take(l, int(l-from))
		w.look()
	}
	if w.writes != nil {
		w.writes.end()
	}
}

// load turns the tables of a block of LIDs into columns.
func (w *mixWorker) load(from fabric.LID, to int) {
	for k := range w.layers {
		a := &w.layers[k]
		for s, r := range a.row {
			if r == fabric.NoNode {
				for i := range to - int(from) {
					w.column[k][i*w.n+s] = fabric.NoPath
				}
				continue
			}
			row := a.tables.Row(r)
			for i := range to - int(from) {
				w.column[k][i*w.n+s] = entry(row, from+fabric.LID(i))
			}
		}
	}
}

// take makes the next hops of one LID of the loaded block.
func (w *mixWorker) take(l fabric.LID, i int) {
	w.lid = l
	for k := range w.next {
		next, heads := w.next[k], w.heads[k]
		for s, p := range w.column[k][i*w.n : (i+1)*w.n] {
			next[s], heads[s] = -1, -1
			out := w.base[s] + int32(p)
			if p != fabric.ManagementPort && out < w.base[s+1] && w.wired[out] {
				next[s], heads[s] = out, w.to[out]
			}
		}
	}
	x, y := w.column[0][i*w.n:(i+1)*w.n], w.column[1][i*w.n:(i+1)*w.n]
	for s := range w.changed {
		w.changed[s] = x[s] != y[s]
	}
}

// head is the switch that a next hop leads to, -1 for none.
func (w *mixWorker) head(next int32) int32 {
	if next < 0 {
		return -1
	}
	return w.to[next]
}

// look looks at the LID that was taken.
func (w *mixWorker) look() {
	w.sort()
	if w.writes != nil {
		w.writes.touch(w)
	}
	if w.unicast == nil && w.want == nil {
		return
	}
	w.depend(w.ca[w.lid])
}

// sort puts the switches in the order of their next hops, those of both layers,
// and finds the loops that make that impossible.
func (w *mixWorker) sort() {
	clear(w.indeg)
	x, y := w.heads[0], w.heads[1]
	for s, h := range x {
		if h >= 0 {
			w.indeg[h]++
		}
		if g := y[s]; g >= 0 && g != h {
			w.indeg[g]++
		}
	}
	w.order = w.order[:0]
	for s, n := range w.indeg {
		if n == 0 {
			w.order = append(w.order, int32(s))
		}
	}
	for i := 0; i < len(w.order); i++ {
		s := w.order[i]
		h := x[s]
		if h >= 0 {
			if w.indeg[h]--; w.indeg[h] == 0 {
				w.order = append(w.order, h)
			}
		}
		if g := y[s]; g >= 0 && g != h {
			if w.indeg[g]--; w.indeg[g] == 0 {
				w.order = append(w.order, g)
			}
		}
	}
	w.loops = 0
	if len(w.order) == w.n {
		return
	}
	w.findLoops()
	transient, unordered := false, false
	for i := range w.parts {
		p := &w.parts[i]
		transient = transient || p.mixed()
		unordered = unordered || p.mixed() && p.loops[0] && p.loops[1]
	}
	if transient {
		w.transient = append(w.transient, w.lid)
	}
	if unordered {
		w.unordered++
	}
	for k, on := range w.onOwn {
		if slices.Contains(on, true) {
			w.own[k]++
		}
	}
}

// component is a strongly connected component, with a loop, of the graph of both
// layers.
type component struct {
	loops [2]bool // by layer: it loops here by itself
	// spare is the edges less the switches, plus 1, less the loops that a layer has
	// by itself.
	spare int
}

// mixed says whether a mixture has a loop here that neither layer has by itself.
// Edges less switches plus 1 is the dimension of the cycle space, in which the
// loops of single layers are independent: a layer's loops are disjoint, and those
// of both layers differ in an edge or are counted once. A further loop makes the
// dimension greater. Where there is none, the loops of the layers hang together as
// a tree, each two by one switch or one path, and their number is the dimension.
func (c *component) mixed() bool { return c.spare > 0 }

// findLoops finds the strongly connected components that hold a loop, and the
// loops that layers have by themselves, in O(switches).
func (w *mixWorker) findLoops() {
	w.loops = w.scc.components(w.n, w.comp, func(s int32) (a, b int32) {
		return w.heads[0][s], w.heads[1][s]
	})
	w.parts = append(w.parts[:0], make([]component, w.loops)...)
	for i := range w.parts {
		w.parts[i].spare = 1
	}
	for s, c := range w.comp {
		if c < 0 {
			continue
		}
		p, h, g := &w.parts[c], w.heads[0][s], w.heads[1][s]
		p.spare--
		if h >= 0 && w.comp[h] == c {
			p.spare++
		}
		if g >= 0 && g != h && w.comp[g] == c {
			p.spare++
		}
	}
	for k, heads := range w.heads {
		on := w.onOwn[k]
		clear(on)
		// Mark walks with the number of their start; one that meets its own
		// mark has found a loop.
		mark := w.indeg
		clear(mark)
		for start := range int32(w.n) {
			s := start
			for s >= 0 && mark[s] == 0 {
				mark[s] = start + 1
				s = heads[s]
			}
			if s < 0 || mark[s] != start+1 || on[s] {
				continue
			}
			p := &w.parts[w.comp[s]]
			p.loops[k] = true
			known := k == 1 // as a loop of the other layer
			for at := s; !on[at]; at = heads[at] {
				on[at] = true
				known = known && w.heads[0][at] == heads[at]
			}
			if !known {
				p.spare--
			}
		}
	}
}

// depend adds the dependencies of packets for the LID: those between CAs to
// unicast when ca is set, and all of them, with those of switches, to all.
func (w *mixWorker) depend(ca bool) {
	if ca && (w.want == nil || !w.want.management) {
		if w.vls > 1 {
			w.dependLanes(w.unicast, true)
		} else {
			w.reach()
			w.dependOne(w.unicast, w.reached)
		}
	}
	if w.want != nil && !w.want.management {
		return
	}
	if w.vls > 1 {
		w.dependLanes(w.all, false)
		return
	}
	for s := range w.reached {
		w.reached[s] = true // by packets of the switch itself
	}
	w.dependOne(w.all, w.reached)
}

// reach marks the switches that packets from CAs for the LID come to.
func (w *mixWorker) reach() {
	clear(w.reached)
	w.stack = w.stack[:0]
	for s := range w.reached {
		sources := w.cas[s]
		// The port that has the LID sends nothing to itself.
		x, y := w.owner[0][w.lid], w.owner[1][w.lid]
		if x == y && x != fabric.NoPort && w.at(x) == int32(s) {
			sources--
		}
		if sources > 0 {
			w.reached[s] = true
			w.stack = append(w.stack, int32(s))
		}
	}
	for len(w.stack) > 0 {
		s := w.stack[len(w.stack)-1]
		w.stack = w.stack[:len(w.stack)-1]
		for k := range w.heads {
			if h := w.heads[k][s]; h >= 0 && !w.reached[h] {
				w.reached[h] = true
				w.stack = append(w.stack, h)
			}
		}
	}
}

// at is the switch that a CA port is cabled to, -1 for none.
func (m *mixture) at(p fabric.PortID) int32 {
	if peer := m.f.Peer(p); peer != fabric.NoPort && m.f.IsSwitch(m.f.Owner(peer)) {
		return int32(m.f.Owner(peer))
	}
	return -1
}

// dependOne adds the dependencies on one VL of packets that come to switches.
func (w *mixWorker) dependOne(g *graph, reached []bool) {
	for u := range int32(w.n) {
		if !reached[u] {
			continue
		}
		for a := range w.next {
			c, s := w.next[a][u], w.heads[a][u]
			if s < 0 || a == 1 && c == w.next[0][u] {
				continue
			}
			for b := range w.next {
				e := w.next[b][s]
				if e < 0 || b == 1 && e == w.next[0][s] || w.loops > 0 && !w.counts(u, s, c, e) {
					continue
				}
				w.add(g, c, e)
			}
		}
	}
}

// counts says whether a dependency between channels c, from switch u to s, and e
// is one of a packet that does not loop. Inside of a component with a loop, a path
// of one layer counts unless it is on a loop of that layer. A packet that meets
// entries of both layers counts where the order of writes (see orderWorker.touch)
// lets it be: old before new, and new before old where the new tables loop.
func (w *mixWorker) counts(u, s, c, e int32) bool {
	in := w.comp[u]
	if in < 0 || in != w.comp[s] {
		return true
	}
	if h := w.head(e); h < 0 || w.comp[h] != in {
		return true
	}
	old, new := c == w.next[0][u] && e == w.next[0][s], c == w.next[1][u] && e == w.next[1][s]
	if old || new {
		return old && !w.onOwn[0][u] || new && !w.onOwn[1][u]
	}
	switch p := &w.parts[in]; {
	case !p.loops[1]:
		return c == w.next[0][u]
	case !p.loops[0]:
		return c == w.next[1][u]
	}
	return false
}

// add enters a dependency between two channels, or notes that this LID has one
// that is looked for.
func (w *mixWorker) add(g *graph, c, e int32) {
	if w.want != nil {
		w.want.note(w.lid, c, e)
		return
	}
	g.add(c, e)
}
