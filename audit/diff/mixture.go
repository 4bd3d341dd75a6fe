package diff

import (
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
)

// layer is one of the two states that a mixture may take for a switch: its entries, and what
// chooses the VL.
type layer struct {
	tables *lft.Tables
	row    []fabric.NodeID // by switch of the new fabric: its row in tables; NoNode for none
	sl2vl  *lft.SL2VL
	port   []fabric.PortID // by PortID of the new fabric: the port of sl2vl; NoPort for none
	sls    *lft.PathSLs    // nil: any SL
}

// mixture has the next hops of both layers, on the cables of the new fabric.
type mixture struct {
	*Match
	f      *fabric.Fabric // the new one
	n      int            // switches
	layers [2]layer
	maxLID fabric.LID
	to     []int32 // by PortID of a switch: the switch its cable leads to, -1 for none
	vls    int
	sls    int           // SLs that are told apart: all, or 1 if all traffic is on one VL
	inject [][]injection // by switch: where packets of CAs enter
}

// mixWorker has what one goroutine needs to check LIDs.
type mixWorker struct {
	*mixture
	lid     fabric.LID
	ca      bool          // the LID is that of a CA or router in one of the states
	owner   fabric.PortID // the end port of the new fabric that has it in both states, or NoPort
	next    [2][]int32    // by layer and switch: the PortID that packets leave by; -1 for none
	heads   [2][]int32    // by layer and switch: the switch at its far end; -1 for none
	changed []bool        // by switch: the layers have different entries for this LID
	row     []int32       // for headsOf
	order   []int32       // switches, each before its next hops; incomplete if there are loops
	strong  graph.Strong[int32]
	comp    []int32                // by switch: the component it is in, -1 for none
	loops   int                    // components with a loop
	loopsBy [2]bool                // the layer loops by itself
	alone   [2]graph.Strong[int32] // the components of each layer by itself
	mark    []bool                 // for leaves()
	state   [2][]uint16            // by layer, switch and SL: VLs of packets that leave, a bit each
	// found by this goroutine
	deps      *graph.Rows   // of all packets, or of those between CAs
	transient []fabric.LID  // LIDs with a loop although neither layer loops by itself
	unordered int           // LIDs with writes for which the new layer loops by itself
	own       [2]int        // LIDs for which a layer loops by itself
	blocks    []*blockOrder // blocks with a write
}

// newMixture prepares both layers of a comparison.
func (c *comparison) newMixture() *mixture {
	f := c.New
	m := &mixture{Match: c.Match, f: f, n: f.NumSwitches(), maxLID: max(c.a.Tables.MaxLID(), c.b.Tables.MaxLID()), vls: 1, sls: 1}
	m.to = make([]int32, f.PortBase(fabric.NodeID(m.n)))
	for x := range m.to {
		m.to[x] = int32(f.PeerSwitch(fabric.PortID(x)))
	}
	states := [...]*state.State{c.a, c.b}
	for _, x := range states {
		if x.SL2VL != nil {
			m.vls = max(m.vls, x.SL2VL.VLs())
		}
	}
	if m.vls > 1 {
		m.sls = lft.NumSLs
	}
	for k, x := range states {
		l := &m.layers[k]
		*l = layer{tables: x.Tables, row: make([]fabric.NodeID, m.n), port: c.BackPort, sl2vl: x.SL2VL, sls: x.PathSLs}
		if m.vls == 1 {
			l.sls = nil
		}
		if x.SL2VL == nil || m.vls == 1 {
			l.sl2vl = lft.NewSL2VL(x.Fabric, lft.ConstantVL(0))
		}
	}
	old, new := &m.layers[0], &m.layers[1]
	new.port = make([]fabric.PortID, f.NumPorts())
	for p := range new.port {
		new.port[p] = fabric.PortID(p)
	}
	for s := range fabric.NodeID(m.n) {
		// A switch that has been replaced has lost its entries.
		old.row[s], new.row[s] = fabric.NoNode, s
		if was := c.Back[s]; was != fabric.NoNode && c.Old.Node(was).GUID == f.Node(s).GUID {
			old.row[s] = was
		}
	}
	m.inject = make([][]injection, m.n)
	for s := range m.inject {
		m.inject[s] = m.injections(fabric.NodeID(s))
	}
	return m
}

// injection is the CA ports of one switch whose packets have the same VLs from it on.
type injection struct {
	in    fabric.PortNum
	live  [2]uint16 // by layer: SLs that the CA's own tables do not drop
	ports int
	port  fabric.PortID // the first of these CA ports; the only one if it has path SLs of its own
}

// injections lists where packets of CAs enter at a switch.
func (m *mixture) injections(s fabric.NodeID) (list []injection) {
	known := map[string]int{}
	for _, port := range m.f.EndPortsOn(s) {
		j := injection{in: m.f.Num(m.f.Peer(port)), ports: 1, port: port}
		var key []byte
		for k := range m.layers {
			l := &m.layers[k]
			own := fabric.NoPort // the port if it has path SLs of its own
			if p := l.port[port]; p != fabric.NoPort {
				for sl, vl := range l.sl2vl.At(0, p) {
					if vl != lft.DropVL {
						j.live[k] |= 1 << sl
					}
				}
				if l.sls != nil && l.sls.PortRow(p) != nil {
					own = port
				}
			}
			key = fmt.Append(key, j.live[k], own)
			for out := range fabric.PortID(m.f.Node(s).NumPorts) {
				key = fmt.Append(key, " ", l.index(j.in, m.f.PortBase(s)+1+out))
			}
		}
		if at, ok := known[string(key)]; ok {
			list[at].ports++
			continue
		}
		known[string(key)] = len(list)
		list = append(list, j)
	}
	return list
}

// index returns the index of the map for packets that enter a switch by port in and leave by out;
// -1 if the layer lacks one of these ports.
func (l *layer) index(in fabric.PortNum, out fabric.PortID) int {
	p := l.port[out]
	if f := l.sl2vl.Fabric(); p == fabric.NoPort || in > f.Node(f.Owner(p)).NumPorts {
		return -1
	}
	return int(l.sl2vl.Index(in, p))
}

func (m *mixture) newWorker() *mixWorker {
	w := &mixWorker{
		mixture: m, changed: make([]bool, m.n), mark: make([]bool, m.n),
		deps: m.newDependencies(),
	}
	for k := range w.next {
		w.next[k], w.heads[k] = make([]int32, m.n), make([]int32, m.n)
		w.state[k] = make([]uint16, m.n*m.sls)
	}
	return w
}

// newDependencies returns a channel dependency graph without edges. VL v of a
// switch's port with PortID p is channel p*vls+v. A channel depends on
// channels of the switch that it leads to.
func (m *mixture) newDependencies() *graph.Rows {
	ports := 1
	for s := range m.n {
		ports = max(ports, int(m.f.Node(fabric.NodeID(s)).NumPorts)+1)
	}
	base := make([]int32, len(m.to)*m.vls)
	for ch := range base {
		base[ch] = -1
		if head := m.to[ch/m.vls]; head >= 0 {
			base[ch] = int32(m.f.PortBase(fabric.NodeID(head))) * int32(m.vls)
		}
	}
	g := graph.NewRows(base, ports*m.vls)
	return &g
}

// setLID sets the next hops for one LID.
func (w *mixWorker) setLID(l fabric.LID) {
	w.lid, w.owner = l, fabric.NoPort
	was, now := w.Old.LIDPort(l), w.f.LIDPort(l)
	if was != fabric.NoPort && w.Port[was] == now {
		w.owner = now
	}
	w.ca = was != fabric.NoPort && !w.Old.IsSwitch(w.Old.Owner(was)) || now != fabric.NoPort && !w.f.IsSwitch(w.f.Owner(now))
	for s := range fabric.NodeID(w.n) {
		var out [2]fabric.PortNum
		for k := range w.layers {
			out[k] = fabric.NoPath
			if r := w.layers[k].row[s]; r != fabric.NoNode {
				out[k] = lft.Entry(w.layers[k].tables.Row(r), l)
			}
		}
		w.next[0][s], w.heads[0][s] = w.leave(s, out[0])
		w.next[1][s], w.heads[1][s] = w.next[0][s], w.heads[0][s]
		if w.changed[s] = out[0] != out[1]; w.changed[s] {
			w.next[1][s], w.heads[1][s] = w.leave(s, out[1])
		}
	}
}

// leave returns the PortID that entry p of switch s leads out by, -1 if the packet is dropped or is
// for the switch itself, and the switch at the far end, -1 for none.
func (m *mixture) leave(s fabric.NodeID, p fabric.PortNum) (out, head int32) {
	if p == fabric.ManagementPort || p > m.f.Node(s).NumPorts || m.f.Peer(m.f.Port(s, p)) == fabric.NoPort {
		return -1, -1
	}
	out = int32(m.f.Port(s, p))
	return out, m.to[out]
}

// headsOf returns the switches that the next hops of a switch lead to.
func (w *mixWorker) headsOf(s int32) []int32 {
	w.row = w.row[:0]
	h, g := w.heads[0][s], w.heads[1][s]
	if h >= 0 {
		w.row = append(w.row, h)
	}
	if g >= 0 && g != h {
		w.row = append(w.row, g)
	}
	return w.row
}

// findLoops finds the strongly connected components with a loop, and the loops that each layer has
// by itself, in O(switches).
func (w *mixWorker) findLoops() {
	w.loops, w.loopsBy = 0, [2]bool{}
	if w.order = graph.TopologicalOrder(w.n, w.headsOf); len(w.order) == w.n {
		return
	}
	w.loops = w.strong.Find(w.n, w.headsOf)
	w.comp = w.strong.Of
	for k, heads := range w.heads {
		w.loopsBy[k] = w.alone[k].Find(w.n, func(s int32) []int32 {
			if heads[s] < 0 {
				return nil
			}
			return heads[s : s+1]
		}) > 0
	}
}

// countLoops counts the LID by the loops that findLoops found.
func (w *mixWorker) countLoops() {
	if w.loops > 0 && w.loopsBy == [2]bool{} {
		w.transient = append(w.transient, w.lid)
	}
	if w.loopsBy[1] && slices.Contains(w.changed, true) {
		w.unordered++
	}
	for k, loops := range w.loopsBy {
		if loops {
			w.own[k]++
		}
	}
}

// counts returns true if a packet that does not loop can take channel c, from switch u to s, and
// then channel e. This is so outside of components with a loop. In one, entries of one layer at u
// and s count unless u is on a loop of this layer. An entry of each layer counts if the order of
// writes (see blockOrder.add) allows it: old at u, new at s. Without an order, and on a loop of a
// layer, it counts if entries of other switches can lead the packet out of the component.
func (w *mixWorker) counts(u, s, c, e int32) bool {
	in := w.comp[u]
	if in < 0 || in != w.comp[s] {
		return true
	}
	if h := w.to[e]; h < 0 || w.comp[h] != in {
		return true
	}
	old, new := c == w.next[0][u] && e == w.next[0][s], c == w.next[1][u] && e == w.next[1][s]
	if old && w.alone[0].Of[u] < 0 || new && w.alone[1].Of[u] < 0 {
		return true
	}
	if !w.loopsBy[1] && !old && !new {
		return c == w.next[0][u]
	}
	return w.leaves(w.to[e], u, s)
}

// leaves returns true if some mixture leads packets from switch from out of the component of u
// without passing u or s. O(switches).
func (w *mixWorker) leaves(from, u, s int32) bool {
	if from == u || from == s {
		return false
	}
	clear(w.mark)
	w.mark[u], w.mark[s], w.mark[from] = true, true, true
	for queue := []int32{from}; len(queue) > 0; queue = queue[1:] {
		for k := range w.heads {
			switch h := w.heads[k][queue[0]]; {
			case h < 0 || w.comp[h] != w.comp[u]:
				return true
			case !w.mark[h]:
				w.mark[h] = true
				queue = append(queue, h)
			}
		}
	}
	return false
}
