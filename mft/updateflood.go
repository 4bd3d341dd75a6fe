package mft

import (
	"cmp"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// What a port of the union of all masks of an MLID is while writes are on their
// way: out of the mask, in it, or in it only before or after its write.
const (
	never  uint8 = 0
	before uint8 = 1
	after  uint8 = 2
	always uint8 = before | after
)

const (
	// whole is the weight of a packet that meets no write. Each write that it
	// meets halves it, maxForks times at most; what meets more is not counted.
	whole    = uint64(1) << maxForks
	maxForks = 40
)

type fault uint8

const (
	sound fault = iota
	lossy       // a receiver to be supplied may get nothing
	duplicate
	loop
	undecided
)

// flooder follows the packets of one MLID, whose masks are being written: a
// packet that comes to a switch while the write of a cell (ports that are
// written together) is on its way meets the old or the new ports of the cell.
// It may meet old ones on one way and new ones on another, if it comes by twice.
// So what a flooder finds sound is so in every mixture of old and new cells, and
// for packets that are on their way at the same time as the writes.
//
// It is the scratch of one worker.
type flooder struct {
	f    *fabric.Fabric
	mlid fabric.LID

	// Ports that are in a mask before, after or between.
	ports []fabric.PortID // ascending
	in    []fabric.PortID // by index in ports: the port that a copy comes to, or NoPort
	to    []int32         // by index in ports: that switch as an index in spans, -1 for none with masks
	cell  []int32         // by index in ports
	cells []cell
	spans []masked // switches with masks
	index []int32  // by NodeID: in spans, or -1

	follow bool    // go on after a duplicate, to see whether there is a loop
	mode   []uint8 // by index in ports
	events []event
	last   []int32  // by index in ports: the last event there, or -1
	cover  []uint64 // by index in ports: the share of mixtures in which a copy leaves there, of whole
}

// cell is ports of the union that one write sets.
type cell struct {
	sw       int32 // in spans
	from, to int32 // in ports
}

type masked struct {
	node     fabric.NodeID
	from, to int32 // in ports
}

// event is a copy that left a switch.
type event struct {
	parent  int32 // the copy that came to the switch
	port    int32 // in ports; -1 for what the sender sent
	earlier int32 // the event before it at this port, or -1
	depth   int32
	forks   int32 // how many writes it depends on
}

func newFlooder(f *fabric.Fabric) flooder {
	index := make([]int32, f.NumSwitches())
	for i := range index {
		index[i] = -1
	}
	return flooder{f: f, index: index}
}

// setPorts is called for each MLID, with all ports that are in a mask at some
// time, ascending.
func (w *flooder) setPorts(m fabric.LID, ports []fabric.PortID) {
	for i := range w.spans {
		w.index[w.spans[i].node] = -1
	}
	w.mlid, w.ports = m, ports
	w.spans, w.cells = w.spans[:0], w.cells[:0]
	n := len(ports)
	w.in, w.to, w.cell = resize(w.in, n), resize(w.to, n), resize(w.cell, n)
	w.mode, w.last, w.cover = resize(w.mode, n), resize(w.last, n), resize(w.cover, n)
	start := fabric.NoPort
	for i, p := range ports {
		s := w.f.Owner(p)
		if len(w.spans) == 0 || w.spans[len(w.spans)-1].node != s {
			w.index[s] = int32(len(w.spans))
			w.spans = append(w.spans, masked{s, int32(i), int32(i)})
			start = fabric.NoPort
		}
		if c := cellStart(w.f, p); c != start {
			start = c
			w.cells = append(w.cells, cell{int32(len(w.spans) - 1), int32(i), int32(i)})
		}
		w.spans[len(w.spans)-1].to++
		w.cells[len(w.cells)-1].to++
		w.cell[i] = int32(len(w.cells) - 1)
		w.last[i] = -1
		w.cover[i] = 0
	}
	for i, p := range ports {
		w.in[i], w.to[i] = fabric.NoPort, -1
		if w.f.Num(p) == fabric.ManagementPort {
			continue
		}
		if q := w.f.Peer(p); q != fabric.NoPort {
			w.in[i] = q
			if s := w.f.Owner(q); w.f.IsSwitch(s) {
				w.to[i] = w.index[s]
			}
		}
	}
}

func resize[T any](list []T, n int) []T { return slices.Grow(list[:0], n)[:n] }

// find is the index of a port, or -1.
func (w *flooder) find(p fabric.PortID) int32 {
	i, ok := slices.BinarySearch(w.ports, p)
	if !ok {
		return -1
	}
	return int32(i)
}

// at is the index of a switch, -1 for one without masks.
func (w *flooder) at(entry fabric.PortID) int32 { return w.index[w.f.Owner(entry)] }

// flood sends a packet in at port entry of a switch, through the ports as mode
// has them. It returns loop, duplicate or undecided with the port that shows it,
// as an index in ports, and -1 for sound; then cover says who gets copies. A
// copy that comes back to its sender needs no look of its own: where it left a
// switch that it had been to, it left by a port for the second time. The caller
// must call reset.
func (w *flooder) flood(entry fabric.PortID) (fault, int32) {
	worst, shown := sound, int32(-1)
	first := w.at(entry)
	w.events = append(w.events[:0], event{parent: -1, port: -1, earlier: -1})
	limit := 4096 + 64*len(w.ports)
	for e := 0; e < len(w.events); e++ {
		x := w.events[e]
		in, s := entry, first
		if e > 0 {
			in, s = w.in[x.port], w.to[x.port]
		}
		if s < 0 {
			continue
		}
		for i := w.spans[s].from; i < w.spans[s].to; i++ {
			if w.mode[i] == never || w.ports[i] == in {
				continue
			}
			y := event{parent: int32(e), port: i, earlier: w.last[i], depth: x.depth + 1, forks: x.forks}
			if w.mode[i] != always {
				y.forks++
			}
			k := int32(len(w.events))
			w.events = append(w.events, y)
			w.last[i] = k
			what := sound
			for v := y.earlier; v >= 0 && what != loop; v = w.events[v].earlier {
				what = max(what, w.meet(v, k))
			}
			if what == loop || what == duplicate && !w.follow {
				return what, i
			}
			if what > worst {
				worst, shown = what, i
			}
			if y.forks <= maxForks {
				w.cover[i] += whole >> y.forks
			}
			if len(w.events) > limit {
				if worst == sound {
					return undecided, i
				}
				return worst, shown
			}
		}
	}
	return worst, shown
}

// reset undoes what flood left in last and cover.
func (w *flooder) reset() {
	for _, e := range w.events[min(1, len(w.events)):] {
		w.last[e.port] = -1
		w.cover[e.port] = 0
	}
	w.events = w.events[:0]
}

// meet says whether one packet can cause two events at the same port: a loop
// when the first is before the second on its way, a duplicate when not, unless
// their ways part at a switch by ports one of which is only in the old and
// the other only in the new mask of a cell.
func (w *flooder) meet(a, b int32) fault {
	x, y := a, b
	for w.events[y].depth > w.events[x].depth {
		y = w.events[y].parent
	}
	if x == y {
		return loop
	}
	for w.events[x].parent != w.events[y].parent {
		x, y = w.events[x].parent, w.events[y].parent
	}
	p, q := w.events[x].port, w.events[y].port
	if w.cell[p] == w.cell[q] && w.mode[p]&w.mode[q] == 0 {
		return sound
	}
	return duplicate
}

// forest says whether the cables at the ports have no cycle. Then no packet can
// loop or arrive twice, whoever sends it and whatever part of the ports is in
// the masks, since a copy never turns back: and the way from a sender to a
// receiver is the only one.
func (w *flooder) forest(parent []int32) ([]int32, bool) {
	parent = resize(parent, len(w.spans))
	for i := range parent {
		parent[i] = int32(i)
	}
	root := func(x int32) int32 {
		for parent[x] != x {
			parent[x] = parent[parent[x]]
			x = parent[x]
		}
		return x
	}
	for i, p := range w.ports {
		if w.to[i] < 0 {
			continue // an end port, or a switch without masks: a leaf
		}
		if w.in[i] < p && w.find(w.in[i]) >= 0 {
			continue // the cable was seen from its other end
		}
		a, b := root(w.index[w.f.Owner(p)]), root(w.to[i])
		if a == b {
			return parent, false
		}
		parent[a] = b
	}
	return parent, true
}

// mlidSender is a sender of the MLID at hand.
type mlidSender struct {
	port   fabric.PortID
	entry  fabric.PortID // of the switch, where its packets come in
	inOld  bool
	inNew  bool
	keeps  []int32 // receivers to be kept supplied: indices in keep
	exempt []int32 // those to which it has no way in the old or the new masks, as itself: in ports, ascending
}

// keep is receivers that stay, as indices in ports: of one group, ascending.
type keep []int32

// members are who sends to an MLID before and after, and whom of the old ones
// that stay must be kept supplied.
type members struct {
	senders []mlidSender // by port, ascending
	keep    []keep
}

// load collects members from the trees of an MLID before and after. An MLID with
// ports but without a tree has all end ports in them as members.
func (b *members) load(w *flooder, old, new []Tree, oldPorts, newPorts []fabric.PortID) {
	b.senders, b.keep = b.senders[:0], b.keep[:0]
	if len(old) == 0 {
		old = anyTree(w.f, oldPorts)
	}
	if len(new) == 0 {
		new = anyTree(w.f, newPorts)
	}
	for i := range old {
		b.add(w, old[i].Senders, true)
	}
	for i := range new {
		b.add(w, new[i].Senders, false)
	}
	slices.SortFunc(b.senders, func(x, y mlidSender) int { return cmp.Compare(x.port, y.port) })
	n := 0
	for _, s := range b.senders {
		if n > 0 && b.senders[n-1].port == s.port {
			b.senders[n-1].inOld = b.senders[n-1].inOld || s.inOld
			b.senders[n-1].inNew = b.senders[n-1].inNew || s.inNew
			continue
		}
		b.senders[n] = s
		n++
	}
	b.senders = b.senders[:n]
	for i := range old {
		for k := range new {
			if x, y := &old[i], &new[k]; x.MGID == y.MGID || !x.MGID.IsValid() || !y.MGID.IsValid() {
				b.stay(w, x, y)
			}
		}
	}
}

// anyTree is all end ports in masks, as members.
func anyTree(f *fabric.Fabric, ports []fabric.PortID) []Tree {
	var list []fabric.PortID
	for _, p := range ports {
		if f.Num(p) == fabric.ManagementPort {
			list = append(list, p)
		} else if q := f.Peer(p); q != fabric.NoPort && !f.IsSwitch(f.Owner(q)) {
			list = append(list, q)
		}
	}
	slices.Sort(list)
	return []Tree{{Senders: list, Receivers: list}}
}

func (b *members) add(w *flooder, senders []fabric.PortID, old bool) {
	for _, p := range senders {
		if entry := terminal(w.f, p); entry != fabric.NoPort {
			b.senders = append(b.senders, mlidSender{port: p, entry: entry, inOld: old, inNew: !old})
		}
	}
}

// stay adds the members that a tree has before and after.
func (b *members) stay(w *flooder, x, y *Tree) {
	var list keep
	both(x.Receivers, y.Receivers, func(p fabric.PortID) {
		if q := terminal(w.f, p); q != fabric.NoPort {
			if i := w.find(q); i >= 0 {
				list = append(list, i)
			}
		}
	})
	if len(list) == 0 {
		return
	}
	slices.Sort(list)
	b.keep = append(b.keep, list)
	at := 0
	both(x.Senders, y.Senders, func(p fabric.PortID) {
		for at < len(b.senders) && b.senders[at].port < p {
			at++
		}
		if at < len(b.senders) && b.senders[at].port == p {
			b.senders[at].keeps = append(b.senders[at].keeps, int32(len(b.keep)-1))
		}
	})
}

// both visits what two ascending lists share.
func both(a, b []fabric.PortID, visit func(fabric.PortID)) {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			a = a[1:]
		case a[0] > b[0]:
			b = b[1:]
		default:
			visit(a[0])
			a, b = a[1:], b[1:]
		}
	}
}

// missed visits the receivers, as indices in ports, that the last flood from s
// may not have come to although they are to be kept supplied.
func (b *members) missed(w *flooder, s *mlidSender, visit func(i int32)) {
	for _, k := range s.keeps {
		for _, i := range b.keep[k] {
			if w.cover[i] >= whole {
				continue
			}
			if _, no := slices.BinarySearch(s.exempt, i); !no {
				visit(i)
			}
		}
	}
}
