package mft

import (
	"cmp"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// mlidUpdate is the part of an Update that is about one MLID.
type mlidUpdate struct {
	stages       [][]Write
	interruption *Interruption
	stop, start  []MLIDSender
	err          error
}

// What the ports of the union are in: the old masks, the new ones, or both.
const (
	inOld uint8 = 1
	inNew uint8 = 2
)

// cell is ports of the union that one write sets: a part of ports.
type cell struct{ from, to int32 }

// updatePlanner plans one MLID at a time: scratch of one worker. Its ports are
// the union of the old and the new masks.
type updatePlanner struct {
	updateFlood
	mlid    fabric.LID
	is      []uint8 // by index in ports: inOld, inNew
	change  []cell  // those that differ
	senders []*mlidSender
	active  []*mlidSender // those that may send while the masks change
	reached [2][]bool     // by switch: packets of active senders come there by the old masks, the new ones
	out     mlidUpdate
}

func newUpdatePlanner(f *fabric.Fabric) *updatePlanner {
	n := f.NumSwitches()
	return &updatePlanner{updateFlood: updateFlood{maskGraph: newMaskGraph(f)}, reached: [2][]bool{make([]bool, n), make([]bool, n)}}
}

// load prepares for an MLID by its old and new masks, ascending.
func (w *updatePlanner) load(m fabric.LID, old, new []fabric.PortID) {
	w.mlid, w.out = m, mlidUpdate{}
	w.setPorts(union(w.ports[:0], old, new))
	w.is = resize(w.is, len(w.ports))
	for i, p := range w.ports {
		w.is[i] = 0
		if len(old) > 0 && old[0] == p {
			w.is[i] |= inOld
			old = old[1:]
		}
		if len(new) > 0 && new[0] == p {
			w.is[i] |= inNew
			new = new[1:]
		}
	}
	w.change = w.change[:0]
	for i := 0; i < len(w.ports); {
		c, differs := cell{from: int32(i)}, false
		for first := cellStart(w.f, w.ports[i]); i < len(w.ports) && cellStart(w.f, w.ports[i]) == first; i++ {
			differs = differs || w.is[i] != inOld|inNew
		}
		if c.to = int32(i); differs {
			w.change = append(w.change, c)
		}
	}
	w.restart()
}

// restart goes back to the old masks.
func (w *updatePlanner) restart() {
	w.setMasks(inOld)
	w.out.stages = nil
}

// setMasks sets the old or the new masks, with no write on its way.
func (w *updatePlanner) setMasks(mask uint8) {
	for i, is := range w.is {
		w.mode[i] = never
		if is&mask != 0 {
			w.mode[i] = always
		}
	}
}

// plan is what PlanUpdate says of the MLID.
func (w *updatePlanner) plan(old, new []*Tree) mlidUpdate {
	if w.isForest() {
		w.aim(w.change, inNew)
		w.write()
		return w.out
	}
	w.listMembers(old, new)
	if w.checkEnds(); w.out.err != nil {
		return w.out
	}
	w.restart()
	if faulty := w.out.interruption; faulty != nil {
		w.aim(w.change, inOld|inNew)
		w.write()
		w.aim(w.change, inNew)
		w.write()
		faulty.To = len(w.out.stages)
		return w.out
	}
	w.aim(w.change, inNew)
	harmed := w.findHarmed()
	if harmed == nil {
		w.write()
		return w.out
	}
	reason, _ := w.describeHarm(harmed)
	w.restart()
	var early, parting, late []cell
	for _, c := range w.change {
		switch s := w.f.Owner(w.ports[c.from]); {
		case !w.reached[0][s]:
			early = append(early, c)
		case w.reached[1][s]:
			parting = append(parting, c)
		default:
			late = append(late, c)
		}
	}

	whole := w.takeOutPutIn(early, parting, late, reason)
	stages := w.out.stages
	if whole == nil {
		return w.out
	}
	w.restart()
	w.aim(early, inNew)
	w.write()
	rest := w.writeInTurn(parting)
	if len(rest) == 0 {
		w.aim(late, inNew)
		w.write()
		return w.out
	}
	if len(rest) < len(parting) {
		w.out.interruption = w.takeOutPutIn(nil, rest, late, reason)
		if part := w.out.interruption; part == nil || part.Pairs < whole.Pairs {
			return w.out
		}
	}
	w.out.stages, w.out.interruption = stages, whole
	return w.out
}

// checkEnds finds the senders that the old or the new masks do not suit. The
// others are active.
func (w *updatePlanner) checkEnds() {
	clear(w.reached[0])
	clear(w.reached[1])
	w.active = w.active[:0]
	for _, s := range w.senders {
		suits := w.exempt(s, inNew)
		if !suits && s.is&inNew != 0 {
			harm, what := w.describeHarm(s)
			w.out.err = &UnsafeError{MLID: w.mlid, Sender: s.port, Loop: what == loop, Undecided: what == undecided, harm: harm}
			return
		}
		suited := w.exempt(s, inOld)
		switch {
		case !suits:
			w.out.stop = append(w.out.stop, MLIDSender{w.mlid, s.port})
		case !suited && s.is&inOld == 0:
			w.out.start = append(w.out.start, MLIDSender{w.mlid, s.port})
		case !suited:
			if w.out.interruption == nil {
				harm, _ := w.describeHarm(s)
				w.out.interruption = &Interruption{MLID: w.mlid, From: 1, Faulty: true, Reason: harm}
			}
		default:
			w.active = append(w.active, s)
			w.markReached(s, w.reached[0])
			w.setMasks(inNew)
			w.flood(s.entry, false)
			w.markReached(s, w.reached[1])
		}
	}
}

// exempt floods from s by the old or the new masks, says whether they suit it,
// and exempts the receivers to which they bring nothing.
func (w *updatePlanner) exempt(s *mlidSender, mask uint8) bool {
	w.setMasks(mask)
	what, _ := w.flood(s.entry, false)
	s.exempt = append(s.exempt, w.missed(s)...)
	slices.Sort(s.exempt)
	return what == sound
}

// markReached marks the switches that the last flood came to, which was from s.
func (w *updatePlanner) markReached(s *mlidSender, mark []bool) {
	mark[w.f.Owner(s.entry)] = true
	for _, e := range w.events[1:] {
		if !w.edges[e.port].host {
			mark[w.f.Owner(w.f.Peer(w.ports[e.port]))] = true
		}
	}
}

// aim makes the stage at hand leave in cells the ports that are in all masks of
// want.
func (w *updatePlanner) aim(cells []cell, want uint8) {
	for _, c := range cells {
		for i := c.from; i < c.to; i++ {
			w.mode[i] &^= after
			if w.is[i]&want == want {
				w.mode[i] |= after
			}
		}
	}
}

// write appends the stage at hand, without the cells that stay as they are.
func (w *updatePlanner) write() {
	var stage []Write
	for _, c := range w.change {
		x := Write{Switch: w.f.Owner(w.ports[c.from]), MLID: w.mlid, Position: uint8(w.f.Num(w.ports[c.from]) / PositionPorts)}
		differs := false
		for i := c.from; i < c.to; i++ {
			differs = differs || w.mode[i] == before || w.mode[i] == after
			if w.mode[i]&after != 0 {
				x.Ports = append(x.Ports, w.ports[i])
				w.mode[i] = always
			} else {
				w.mode[i] = never
			}
		}
		if differs {
			stage = append(stage, x)
		}
	}
	if stage != nil {
		w.out.stages = append(w.out.stages, stage)
	}
}

// findHarmed is the first sender to whose packets the stage at hand can do harm,
// or that may not supply a receiver which is to be kept supplied; nil for none.
func (w *updatePlanner) findHarmed() *mlidSender {
	for _, s := range w.active {
		if what, _ := w.flood(s.entry, false); what != sound || len(w.missed(s)) > 0 {
			return s
		}
	}
	return nil
}

// describeHarm says what packets of s can suffer in the stage at hand.
func (w *updatePlanner) describeHarm(s *mlidSender) (string, fault) {
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

// takeOutPutIn takes ports that are not new out of parting cells, besides writing
// the early ones, and then writes the parting and the late ones. It returns who
// loses packets, nil for none.
//
// That is safe: while ports go out the masks are part of what they were, except
// for the early ones, to which no packet comes. While ports come in the masks to
// which packets come are part of the new ones.
func (w *updatePlanner) takeOutPutIn(early, parting, late []cell, reason string) *Interruption {
	x := &Interruption{MLID: w.mlid, From: len(w.out.stages) + 1, Reason: reason}
	w.aim(early, inNew)
	w.aim(parting, inOld|inNew)
	w.write()
	for _, s := range w.active {
		w.flood(s.entry, false)
		lost := w.missed(s)
		slices.Sort(lost)
		for _, i := range slices.Compact(lost) { // once, though it be a member of several groups
			x.Receivers = append(x.Receivers, w.endPort(i))
			x.Pairs++
		}
	}
	slices.Sort(x.Receivers)
	x.Receivers = slices.Compact(x.Receivers)
	w.aim(parting, inNew)
	w.aim(late, inNew)
	w.write()
	x.To = len(w.out.stages)
	if x.Pairs == 0 {
		return nil
	}
	return x
}

// writeInTurn writes cells at which paths part, as many in a stage as are proven
// to do no harm together, and returns those that it finds no turn for.
func (w *updatePlanner) writeInTurn(cells []cell) []cell {
	for len(cells) > 0 {
		var wait []cell
		for k, c := range cells {
			w.aim(cells[k:k+1], inNew)
			w.tryFirst(w.f.Owner(w.ports[c.from]))
			if w.findHarmed() == nil {
				continue
			}
			for i := c.from; i < c.to; i++ {
				w.mode[i] &^= after
				if w.mode[i] == before {
					w.mode[i] = always
				}
			}
			wait = append(wait, c)
		}
		if len(wait) == len(cells) {
			break
		}
		w.write()
		cells = wait
	}
	return cells
}

// mlidSender is a sender of the MLID at hand.
type mlidSender struct {
	port   fabric.PortID
	entry  fabric.PortID // of the switch, where its packets come in
	is     uint8         // whose sender: inOld, inNew
	keeps  [][]int32     // receivers to be kept supplied, by group: indices in ports, ascending
	exempt []int32       // those of them to which it has no path in the old or the new masks, ascending
}

// listMembers collects who sends to the MLID before and after, and whom of the
// old members that stay must be kept supplied. Masks without a tree have all end
// ports in them as members.
func (w *updatePlanner) listMembers(old, new []*Tree) {
	trees := [2][]*Tree{old, new}
	senders := map[fabric.PortID]*mlidSender{}
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
					s = &mlidSender{port: p, entry: entry}
					senders[p] = s
					w.senders = append(w.senders, s)
				}
				s.is |= 1 << k
			}
		}
	}
	slices.SortFunc(w.senders, func(x, y *mlidSender) int { return cmp.Compare(x.port, y.port) })
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
func (w *updatePlanner) treeOfAll(mask uint8) *Tree {
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
func (w *updatePlanner) endPort(i int32) fabric.PortID {
	if q := w.f.Peer(w.ports[i]); q != fabric.NoPort {
		return q
	}
	return w.ports[i]
}

// intersect is what two ascending lists share.
func intersect(a, b []fabric.PortID) (both []fabric.PortID) {
	for _, p := range a {
		for len(b) > 0 && b[0] < p {
			b = b[1:]
		}
		if len(b) > 0 && b[0] == p {
			both = append(both, p)
		}
	}
	return both
}

// missed is the receivers, as indices in ports, that the last flood, which was
// from s, may not have come to although they are to be kept supplied; by group.
func (w *updatePlanner) missed(s *mlidSender) (list []int32) {
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

func (w *updatePlanner) tryFirst(sw fabric.NodeID) {
	for k, s := range w.active {
		if w.f.Owner(s.entry) == sw {
			copy(w.active[1:k+1], w.active[:k])
			w.active[0] = s
			return
		}
	}
}
