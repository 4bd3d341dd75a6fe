package verify

import (
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// flow is what a worker needs to follow VLs down the trees of LIDs. A switch
// chooses the VL by input port, output port and SL. So packets of one class that come to
// it by one cable for one LID leave it on one VL, whatever VLs they came on:
// all that flows down a tree is, for each cable and class, the set of VLs that
// packets have on it. That takes O(switches x classes in use) for each LID.
type flow struct {
	*lanes
	stage []fabric.SL // the unit's path SLs, lft.BlockSize for each switch
	// By PortID of a switch: classes of packets that take it out and arrive. Those of ports
	// with a row of their own are in sentBy, by the row.
	sent, sentBy []uint16

	// By switch, for one LID. Sets of VLs are bits, as in channels.vl; they and
	// present are empty between trees.
	alive      []uint16 // classes that arrive once they have left the switch
	present    []uint16 // classes of which packets leave the switch
	unicastVLs []uint16 // VLs at the output port by class: of packets between CAs
	everyVLs   []uint16 // and of all
	lost       []uint32 // pairs that a map drops: of the switch's CAs
	lostHosts  []uint32 // of these, from ports that count for load
	lostOwn    []uint32 // and of its port 0; all nil when no map drops anything
}

func newFlow(l *lanes) *flow {
	n := l.f.NumSwitches()
	w := &flow{
		lanes:      l,
		stage:      make([]fabric.SL, n*lft.BlockSize),
		sent:       make([]uint16, len(l.to)),
		sentBy:     make([]uint16, len(l.others)),
		alive:      slices.Repeat([]uint16{l.classes}, n),
		present:    make([]uint16, n),
		unicastVLs: make([]uint16, n*len(l.first)),
		everyVLs:   make([]uint16, n*len(l.first)),
	}
	if l.drops {
		w.lost, w.lostHosts, w.lostOwn = make([]uint32, n), make([]uint32, n), make([]uint32, n)
	}
	return w
}

// load takes the path SLs of the LIDs of u, of which checkLanes knows that there
// are some.
func (w *flow) load(u *unit) {
	if w.sls == nil {
		return
	}
	for s := range len(w.alive) {
		row := w.sls.Given(fabric.NodeID(s))
		for i := range u.dests {
			w.stage[s*lft.BlockSize+i] = row[u.dests[i].lid]
		}
	}
}

// wants is the classes of paths from switch s, except ports with a row of their own.
func (w *flow) wants(d *dest, s int32) want {
	if w.sls == nil {
		return want{set: w.classes}
	}
	return w.wantOf(w.stage[int(s)*lft.BlockSize+d.column])
}

// orRow is what ports with a row want, which is usual without one.
func (w *flow) orRow(usual want, d *dest, row int32) want {
	if row == noRow {
		return usual
	}
	return w.wantOf(w.others[row][d.lid])
}

// A tree is the i-th of g destinations of which the worker has the cells, and
// the switches that packets reach its root from.
type tree struct {
	*dest
	g, i  int
	order []int32 // without the root, each before the one it leads to
}

// hop is the output port at a switch of the tree, and where it leads.
func (w *worker) hop(t *tree, s int32) (out fabric.PortID, next int32) {
	at := w.ports[s] + int32(w.cells[int(s)*t.g+t.i]>>cellBits)
	return fabric.PortID(at), w.to[at]
}

// mapTo is the map that packets meet which come by a port of another switch
// and leave switch s of the tree; the last one for port 0 of the root.
func (w *worker) mapTo(t *tree, from fabric.PortID, s int32) (m *classMap, out fabric.PortID) {
	out, _ = w.hop(t, s)
	if s == t.root && !t.ca {
		return &w.flow.maps[len(w.flow.maps)-1], out
	}
	return &w.flow.maps[w.flow.sl2vl.Index(w.flow.peer[from], out)], out
}

// discard fills in alive, and counts the pairs of a tree that maps drop.
func (w *worker) discard(t *tree) {
	f := w.flow
	f.alive[t.root] = f.classes
	out, _ := w.hop(t, t.root)
	f.countLost(t, t.root, out)
	for _, s := range slices.Backward(t.order) {
		out, u := w.hop(t, s)
		m, _ := w.mapTo(t, out, u)
		f.alive[s] = f.alive[u] & m.live
		f.countLost(t, s, out)
	}
}

// countLost counts the lost pairs that begin at switch s.
func (w *flow) countLost(t *tree, s int32, out fabric.PortID) {
	want, alive := w.wants(t.dest, s), w.alive[s]
	w.lost[s], w.lostHosts[s], w.lostOwn[s] = 0, 0, 0
	for _, from := range w.senders[w.sendersAt[out]:w.sendersAt[out+1]] {
		if w.isLost(w.orRow(want, t.dest, from.row), from.may, w.maps[from.m].live&alive) {
			w.lost[s] += from.n
			w.lostHosts[s] += from.hosts
		}
	}
	if s == t.root && !t.ca {
		return
	}
	if live := w.maps[w.sl2vl.Index(fabric.ManagementPort, out)].live; w.isLost(w.orRow(want, t.dest, w.own[s]), live, live&alive) {
		w.lostOwn[s] = 1
	}
}

// descend notes the dependencies of the packets of a tree.
func (w *worker) descend(t *tree) {
	f := w.flow
	for _, s := range t.order {
		out, u := w.hop(t, s)
		f.addSources(t, s, out)
		if u == t.root && !t.ca {
			f.addEnds(s, out)
			continue
		}
		m, outU := w.mapTo(t, out, u)
		f.addDependencies(s, out, u, m, int(outU)-int(w.f.PortBase(fabric.NodeID(u)))-1)
	}
	out, _ := w.hop(t, t.root)
	if f.addSources(t, t.root, out); t.ca {
		f.addEnds(t.root, out)
	}
}

// addSources adds the packets that begin at switch s.
func (w *flow) addSources(t *tree, s int32, out fabric.PortID) {
	want, alive := w.wants(t.dest, s), w.alive[s]
	usual := w.followed(want)
	w.sent[out] |= usual & alive
	at := int(s) * len(w.first)
	present := uint16(0)
	for _, from := range w.senders[w.sendersAt[out]:w.sendersAt[out+1]] {
		m := &w.maps[from.m]
		set := usual
		if from.row != noRow {
			set = w.followed(w.orRow(want, t.dest, from.row))
			w.sentBy[from.row] |= set & alive & m.live
		}
		if s == t.root && !t.ca {
			continue // to port 0
		}
		set &= alive & from.may & m.live
		present |= set
		for ; set != 0; set &= set - 1 {
			class := bits.TrailingZeros16(set)
			w.everyVLs[at+class] |= 1 << m.vl[class]
			if t.ca {
				w.unicastVLs[at+class] |= 1 << m.vl[class]
			}
		}
	}
	if s == t.root && !t.ca {
		return
	}
	m := &w.maps[w.sl2vl.Index(fabric.ManagementPort, out)]
	set := w.followed(w.orRow(want, t.dest, w.own[s])) & alive & m.live
	present |= set
	for ; set != 0; set &= set - 1 {
		class := bits.TrailingZeros16(set)
		w.everyVLs[at+class] |= 1 << m.vl[class]
	}
	w.present[s] |= present
}

// sentFrom is the classes of packets that arrive from the CA on a port of a
// switch, except those that its own table drops.
func (w *flow) sentFrom(in fabric.PortID) (classes uint16) {
	if row, ok := w.rows[w.f.Peer(in)]; ok {
		return w.sentBy[row]
	}
	base := w.f.PortBase(w.f.Owner(in))
	classes = w.sent[base] // to port 0
	for out := base + 1; out <= base+fabric.PortID(w.f.Node(w.f.Owner(in)).NumPorts); out++ {
		if out != in && w.sent[out] != 0 {
			classes |= w.sent[out] & w.maps[w.sl2vl.Index(w.f.Num(in), out)].live
		}
	}
	return classes
}

// addDependencies moves the packets that leave switch s on to u, which they leave by the
// port whose channels have the bits from index*vls on, on the VLs of m.
func (w *flow) addDependencies(s int32, out fabric.PortID, u int32, m *classMap, index int) {
	at, to := int(s)*len(w.first), int(u)*len(w.first)
	w.present[u] |= w.present[s]
	for set := w.present[s]; set != 0; set &= set - 1 {
		class := bits.TrailingZeros16(set)
		unicast, every := w.unicastVLs[at+class], w.everyVLs[at+class]
		w.unicastVLs[at+class], w.everyVLs[at+class] = 0, 0
		vl := int(m.vl[class])
		bit := index*w.vls + vl
		for ; every != 0; every &= every - 1 {
			held := bits.TrailingZeros16(every)
			deps := w.all.Bits
			if unicast>>held&1 != 0 {
				deps = w.unicast.Bits
			}
			add(deps, (int(out)*w.vls+held)*w.words+bit>>6, 1<<(bit&63))
		}
		w.everyVLs[to+class] |= 1 << vl
		if unicast != 0 {
			w.unicastVLs[to+class] |= 1 << vl
		}
	}
	w.present[s] = 0
}

// addEnds notes the channels of the packets that leave switch s: they wait for nothing more.
func (w *flow) addEnds(s int32, out fabric.PortID) {
	at := int(s) * len(w.first)
	unicast, every := uint16(0), uint16(0)
	for set := w.present[s]; set != 0; set &= set - 1 {
		class := bits.TrailingZeros16(set)
		unicast |= w.unicastVLs[at+class]
		every |= w.everyVLs[at+class]
		w.unicastVLs[at+class], w.everyVLs[at+class] = 0, 0
	}
	w.present[s] = 0
	for ; every != 0; every &= every - 1 {
		held := bits.TrailingZeros16(every)
		ends := w.idleEnds
		if unicast>>held&1 != 0 {
			ends = w.ends
		}
		ch := int(out)*w.vls + held
		add(ends, ch>>6, 1<<(ch&63))
	}
}

// add adds bits to a word that other workers may add to. Most are there
// already.
func add(set []uint64, i int, bits uint64) {
	if atomic.LoadUint64(&set[i])&bits != bits {
		atomic.OrUint64(&set[i], bits)
	}
}
