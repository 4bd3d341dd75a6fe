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

// What the ports of the union are in: the old masks, the new ones, or both.
const (
	inOld uint8 = 1
	inNew uint8 = 2
)

// mixtures follows the packets of one MLID while its masks change: scratch of one worker. Its ports
// are the union of the old and the new masks.
type mixtures struct {
	updateFlood
	mlid    fabric.LID
	is      []uint8 // by index in ports: inOld, inNew
	senders []*mixedSender
}

func newMixtures(f *fabric.Fabric) *mixtures {
	return &mixtures{updateFlood: updateFlood{maskGraph: newMaskGraph(f)}}
}

// load prepares for an MLID by its old and new masks, ascending.
func (w *mixtures) load(m fabric.LID, old, new []fabric.PortID) {
	w.mlid = m
	w.setPorts(union(w.ports[:0], old, new))
	w.is = resize(w.is, len(w.ports))
	for i, p := range w.ports {
		w.is[i] = 0
		for k, list := range [][]fabric.PortID{old, new} {
			if _, in := slices.BinarySearch(list, p); in {
				w.is[i] |= 1 << k
			}
		}
	}
	w.setMasks(inOld)
}

// setMasks sets the old or the new masks, with no write on its way.
func (w *mixtures) setMasks(mask uint8) {
	for i, is := range w.is {
		w.mode[i] = never
		if is&mask != 0 {
			w.mode[i] = always
		}
	}
}

// exempt floods from s by the old or the new masks, says whether they suit it,
// and exempts the receivers to which they bring nothing.
func (w *mixtures) exempt(s *mixedSender, mask uint8) bool {
	w.setMasks(mask)
	what, _ := w.flood(s.entry, false)
	s.exempt = append(s.exempt, w.missed(s)...)
	slices.Sort(s.exempt)
	return what == sound
}

// describeHarm says what packets of s can suffer in the stage at hand.
func (w *mixtures) describeHarm(s *mixedSender) (string, fault) {
	what, at := w.flood(s.entry, true)
	from := "packets from " + w.f.PortName(s.port)
	switch what {
	case undecided:
		return from + " have more ways than can be followed", what
	case loop:
		return from + " can loop through " + w.f.PortName(w.ports[at]), what
	case duplicate:
		return from + " can leave " + w.f.PortName(w.ports[at]) + " twice", what
	}
	return from + " can be lost on their way to " + w.f.PortName(w.endPort(w.missed(s)[0])), what
}

// mixedSender is a sender of the MLID at hand.
type mixedSender struct {
	port   fabric.PortID
	entry  fabric.PortID // of the switch, where its packets come in
	is     uint8         // whose sender: inOld, inNew
	keeps  [][]int32     // receivers to be kept supplied, by group: indices in ports, ascending
	exempt []int32       // those of them to which it has no path in the old or the new masks, ascending
}

// listMembers collects who sends to the MLID before and after, and whom of the
// old members that stay must be kept supplied. Masks without a tree have all end
// ports in them as members.
func (w *mixtures) listMembers(old, new []*Tree) {
	trees := [2][]*Tree{old, new}
	senders := map[fabric.PortID]*mixedSender{}
	w.senders = w.senders[:0]
	for k := range trees {
		if len(trees[k]) == 0 {
			trees[k] = []*Tree{w.treeOfAll(1 << k)}
		}
		for _, t := range trees[k] {
			for _, p := range t.Senders {
				s, entry := senders[p], w.f.Attachment(p)
				if entry == fabric.NoPort {
					continue
				}
				if s == nil {
					s = &mixedSender{port: p, entry: entry}
					senders[p] = s
					w.senders = append(w.senders, s)
				}
				s.is |= 1 << k
			}
		}
	}
	slices.SortFunc(w.senders, func(x, y *mixedSender) int { return cmp.Compare(x.port, y.port) })
	for _, x := range trees[0] {
		for _, y := range trees[1] {
			if x.MGID != y.MGID && x.MGID.IsValid() && y.MGID.IsValid() {
				continue
			}
			var stay []int32
			for _, p := range intersect(x.Receivers, y.Receivers) {
				if i, in := slices.BinarySearch(w.ports, w.f.Attachment(p)); in {
					stay = append(stay, int32(i))
				}
			}
			slices.Sort(stay)
			for _, p := range intersect(x.Senders, y.Senders) {
				if s := senders[p]; s != nil {
					s.keeps = append(s.keeps, stay)
				}
			}
		}
	}
}

// treeOfAll has all end ports in the old or the new masks as members.
func (w *mixtures) treeOfAll(mask uint8) *Tree {
	var list []fabric.PortID
	for i, p := range w.ports {
		if q := w.endPort(int32(i)); w.is[i]&mask != 0 && (w.f.Num(p) == fabric.ManagementPort || !w.f.IsSwitch(w.f.Owner(q))) {
			list = append(list, q)
		}
	}
	slices.Sort(list)
	return &Tree{Senders: list, Receivers: list}
}

// endPort is the end port behind a port of a mask.
func (w *mixtures) endPort(i int32) fabric.PortID {
	if q := w.f.Peer(w.ports[i]); q != fabric.NoPort {
		return q
	}
	return w.ports[i]
}

// missed is the receivers, as indices in ports, that the last flood, which was
// from s, may not have come to although they are to be kept supplied; by group.
func (w *mixtures) missed(s *mixedSender) (list []int32) {
	for _, keep := range s.keeps {
		for _, i := range keep {
			if w.cover[i] >= whole {
				continue
			}
			if _, is := slices.BinarySearch(s.exempt, i); !is {
				list = append(list, i)
			}
		}
	}
	return list
}
