package mft

import "github.com/ibweave/ibweave/fabric"

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
	duplicate
	loop
	undecided
)

// updateFlood follows the packets of one MLID, whose masks are being written: a
// packet that comes to a switch while the write of a cell (ports that are
// written together) is on its way meets the old or the new ports of the cell.
// It may meet old ones on one path and new ones on another, if it comes by twice.
// So what a flood finds sound is so in every mixture of old and new cells, and
// for packets that are on their way at the same time as the writes.
type updateFlood struct {
	maskGraph
	mode   []uint8 // by index in ports
	events []event
	last   []int32  // by index in ports: the last event there, 0 for none
	cover  []uint64 // by index in ports: the share of mixtures in which a copy leaves there, of whole
}

// event is a copy that left a switch; event 0 is what the sender sent.
type event struct {
	port    int32 // in ports
	parent  int32 // the copy that came to the switch
	earlier int32 // the event before it at this port, 0 for none
	depth   int32
	forks   int32 // how many writes it depends on
}

// setPorts takes all ports that are in a mask at some time, ascending.
func (w *updateFlood) setPorts(ports []fabric.PortID) {
	w.load(ports)
	n := len(ports)
	w.mode, w.last, w.cover, w.events = resize(w.mode, n), resize(w.last, n), resize(w.cover, n), w.events[:0]
	clear(w.last)
	clear(w.cover)
}

// flood sends a packet in at port entry of a switch, through the ports as mode
// has them. It returns loop, duplicate or undecided with the port that shows it,
// as an index in ports; or sound: then cover says who gets copies. With all set
// it goes on after a duplicate, to see whether there is a loop. A copy that comes
// back to its sender needs no look of its own: where it left a switch that it
// had been to, it left by a port for the second time.
func (w *updateFlood) flood(entry fabric.PortID, all bool) (worst fault, shown int32) {
	for _, e := range w.events[min(1, len(w.events)):] {
		w.last[e.port], w.cover[e.port] = 0, 0
	}
	w.events = append(w.events[:0], event{})
	limit := 4096 + 64*len(w.ports)
	at := w.enter(entry)
	for e := int32(0); int(e) < len(w.events); e++ {
		x := w.events[e]
		if e > 0 {
			at = w.edges[x.port]
		}
		for i := at.from; i < at.to; i++ {
			if w.mode[i] == never || i == at.back {
				continue
			}
			y := event{port: i, parent: e, earlier: w.last[i], depth: x.depth + 1, forks: x.forks}
			if w.mode[i] != always {
				y.forks++
			}
			k := int32(len(w.events))
			w.events = append(w.events, y)
			w.last[i] = k
			what := sound
			for v := y.earlier; v > 0 && what != loop; v = w.events[v].earlier {
				what = max(what, w.meet(v, k))
			}
			if what > worst {
				worst, shown = what, i
			}
			if worst == loop || worst == duplicate && !all {
				return worst, shown
			}
			if y.forks <= maxForks {
				w.cover[i] += whole >> y.forks
			}
			if int(k) >= limit {
				if worst == sound {
					return undecided, i
				}
				return worst, shown
			}
		}
	}
	return worst, shown
}

// meet says whether one packet can cause two events at the same port: a loop
// when the first is before the second on its way, a duplicate when not, unless
// their paths part at a switch by ports one of which is only in the old and
// the other only in the new mask of a cell.
func (w *updateFlood) meet(a, b int32) fault {
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
	if w.mode[p]&w.mode[q] == 0 && cellStart(w.f, w.ports[p]) == cellStart(w.f, w.ports[q]) {
		return sound
	}
	return duplicate
}

// cellStart is the first of the ports that are written together with p.
func cellStart(f *fabric.Fabric, p fabric.PortID) fabric.PortID {
	return p - fabric.PortID(f.Num(p)%PositionPorts)
}
