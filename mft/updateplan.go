package mft

import (
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// mlidUpdate is the part of an Update that is about one MLID.
type mlidUpdate struct {
	mlid         fabric.LID
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

// aim is what a stage makes of a cell.
type aim struct {
	cell int32
	want uint8 // a port stays or gets in when it is in all of these masks
}

// updater plans one MLID at a time: scratch of one worker.
type updater struct {
	flooder
	members
	all    []fabric.PortID // old and new ports
	is     []uint8         // by index in ports: inOld, inNew
	now    []bool          // by index in ports: the masks after the stages so far
	change []int32         // cells that differ
	parent []int32         // of forest
	// active is the senders that may send while the masks change, by index;
	// the one that was harmed last is first.
	active  []int32
	fromOld []bool // by index in spans: by the old masks packets come there
	fromNew []bool
	loser   []int32 // by index in ports: the last sender whose packets the receiver there may miss, or -1
	aims    []aim
	out     mlidUpdate
}

func newUpdater(f *fabric.Fabric) *updater { return &updater{flooder: newFlooder(f)} }

// load prepares for an MLID: its old and new masks, and other ports that may be
// in masks between, all ascending.
func (w *updater) load(m fabric.LID, old, new, extra []fabric.PortID, oldTrees, newTrees []Tree) {
	w.all, w.is = w.all[:0], w.is[:0]
	lists := [...][]fabric.PortID{old, new, extra}
	for len(lists[0])+len(lists[1])+len(lists[2]) > 0 {
		p := fabric.PortID(-1)
		for _, list := range lists {
			if len(list) > 0 && (p < 0 || list[0] < p) {
				p = list[0]
			}
		}
		is := uint8(0)
		for i, bit := range [...]uint8{inOld, inNew, 0} {
			if len(lists[i]) > 0 && lists[i][0] == p {
				is |= bit
				lists[i] = lists[i][1:]
			}
		}
		w.all, w.is = append(w.all, p), append(w.is, is)
	}
	w.setPorts(m, w.all)
	w.now, w.loser = resize(w.now, len(w.all)), resize(w.loser, len(w.all))
	w.change = w.change[:0]
	for c := range w.cells {
		for i := w.cells[c].from; i < w.cells[c].to; i++ {
			if w.is[i] == inOld || w.is[i] == inNew {
				w.change = append(w.change, int32(c))
				break
			}
		}
	}
	w.members.load(&w.flooder, oldTrees, newTrees, old, new)
	w.active = w.active[:0]
	for i := range w.senders {
		w.active = append(w.active, int32(i))
	}
	w.out = mlidUpdate{mlid: m}
	w.restart()
}

// restart goes back to the old masks.
func (w *updater) restart() {
	for i := range w.now {
		w.now[i] = w.is[i]&inOld != 0
	}
	w.out.stages = nil
}

// plan is what PlanUpdate says of one MLID.
func (w *updater) plan() mlidUpdate {
	var tree bool
	if w.parent, tree = w.forest(w.parent); tree {
		w.write(w.aim(nil, w.change, inNew))
		return w.out
	}
	if w.judge(); w.out.err != nil {
		return w.out
	}
	if w.out.interruption != nil { // the old masks are faulty
		w.write(w.aim(nil, w.change, inOld|inNew))
		w.write(w.aim(nil, w.change, inNew))
		w.out.interruption.To = len(w.out.stages)
		return w.out
	}
	once := w.aim(nil, w.change, inNew)
	if w.check(once) == sound {
		w.write(once)
		return w.out
	}
	reason := w.witness(once)
	var early, parting, late []int32
	for _, c := range w.change {
		switch s := w.cells[c].sw; {
		case !w.fromOld[s]:
			early = append(early, c)
		case w.fromNew[s]:
			parting = append(parting, c)
		default:
			late = append(late, c)
		}
	}

	plain := w.outAndIn(w.aim(nil, early, inNew), parting, late)
	plain.Reason = reason
	stages := w.out.stages
	if plain.Pairs == 0 {
		return w.out
	}
	w.restart()
	w.write(w.aim(nil, early, inNew))
	rest := w.inTurn(parting)
	if len(rest) == 0 {
		w.write(w.aim(nil, late, inNew))
		return w.out
	}
	if len(rest) < len(parting) {
		partly := w.outAndIn(nil, rest, late)
		partly.Reason = reason
		if partly.Pairs < plain.Pairs {
			if w.out.interruption = &partly; partly.Pairs == 0 {
				w.out.interruption = nil
			}
			return w.out
		}
	}
	w.out.stages, w.out.interruption = stages, &plain
	return w.out
}

// judge looks for senders that the old or the new masks do not suit.
func (w *updater) judge() {
	w.fromOld, w.fromNew = resize(w.fromOld, len(w.spans)), resize(w.fromNew, len(w.spans))
	clear(w.fromOld)
	clear(w.fromNew)
	w.active = w.active[:0]
	for i := range w.senders {
		s := &w.senders[i]
		w.settle(inNew)
		what, at := w.flood(s.entry)
		w.exempt(s)
		w.reset()
		if what != sound && s.inNew {
			err := w.unsafe(s, what, at)
			err.Stage = 0
			w.out.err = err
			return
		}
		w.settle(inOld)
		before, at := w.flood(s.entry)
		w.exempt(s)
		switch {
		case what != sound:
			w.out.stop = append(w.out.stop, MLIDSender{w.mlid, s.port})
		case before != sound && s.inOld:
			if w.out.interruption == nil {
				w.out.interruption = &Interruption{MLID: w.mlid, From: 1, Faulty: true, Reason: w.unsafe(s, before, at).what()}
			}
		case before != sound:
			w.out.start = append(w.out.start, MLIDSender{w.mlid, s.port})
		default:
			w.active = append(w.active, int32(i))
			w.visited(s, w.fromOld)
			w.reset()
			w.settle(inNew)
			w.flood(s.entry)
			w.visited(s, w.fromNew)
		}
		w.reset()
	}
}

// exempt notes the receivers that the last flood did not come to.
func (w *updater) exempt(s *mlidSender) {
	from := len(s.exempt)
	w.missed(&w.flooder, s, func(i int32) { s.exempt = append(s.exempt, i) })
	if len(s.exempt) > from {
		slices.Sort(s.exempt)
	}
}

// visited marks switches that the last flood came to.
func (w *updater) visited(s *mlidSender, mark []bool) {
	if at := w.at(s.entry); at >= 0 {
		mark[at] = true
	}
	for _, e := range w.events[1:] {
		if at := w.to[e.port]; at >= 0 {
			mark[at] = true
		}
	}
}

// settle sets modes to the old or the new masks, with no write on its way.
func (w *updater) settle(mask uint8) {
	for i, is := range w.is {
		w.mode[i] = never
		if is&mask != 0 {
			w.mode[i] = always
		}
	}
}

// aim appends to list that cells are to have the ports that are in all masks of
// want.
func (w *updater) aim(list []aim, cells []int32, want uint8) []aim {
	for _, c := range cells {
		list = append(list, aim{c, want})
	}
	return list
}

// fly sets modes to the masks as they are now, with the writes of list on their
// way.
func (w *updater) fly(list []aim) {
	for i, in := range w.now {
		w.mode[i] = never
		if in {
			w.mode[i] = always
		}
	}
	for _, a := range list {
		for i := w.cells[a.cell].from; i < w.cells[a.cell].to; i++ {
			w.mode[i] = never
			if w.now[i] {
				w.mode[i] = before
			}
			if w.is[i]&a.want == a.want {
				w.mode[i] |= after
			}
		}
	}
}

// check says whether writes can be on their way at once. It is lossy when a
// receiver that is to be kept supplied may miss a packet.
func (w *updater) check(list []aim) fault {
	w.fly(list)
	for k, i := range w.active {
		s := &w.senders[i]
		what, _ := w.flood(s.entry)
		if what == sound {
			w.missed(&w.flooder, s, func(int32) { what = lossy })
		}
		w.reset()
		if what != sound {
			copy(w.active[1:k+1], w.active[:k])
			w.active[0] = i
			return what
		}
	}
	return sound
}

// witness says what can happen to packets of the sender that check found.
func (w *updater) witness(list []aim) string {
	w.fly(list)
	s := &w.senders[w.active[0]]
	what, at := w.flood(s.entry)
	text := ""
	if what == sound {
		w.missed(&w.flooder, s, func(i int32) {
			if text == "" {
				text = fmt.Sprintf("packets from %s can be lost on their way to %s", w.f.PortName(s.port), w.f.PortName(w.endPort(i)))
			}
		})
	}
	if text == "" {
		text = w.unsafe(s, what, at).what()
	}
	w.reset()
	return text
}

// endPort is the receiver behind a port of a mask.
func (w *updater) endPort(i int32) fabric.PortID {
	if w.in[i] == fabric.NoPort {
		return w.ports[i]
	}
	return w.in[i]
}

// unsafe is what a flood from s has shown, as the modes are. Where it was a
// duplicate it looks for a loop, which is worse.
func (w *updater) unsafe(s *mlidSender, what fault, at int32) *UnsafeError {
	if what == duplicate {
		w.reset()
		w.follow = true
		what, at = w.flood(s.entry)
		w.follow = false
	}
	return &UnsafeError{MLID: w.mlid, Sender: s.port, At: w.ports[at], Loop: what == loop, Undecided: what == undecided, fab: w.f}
}

// write appends a stage, without the cells that have what they are to have.
func (w *updater) write(list []aim) {
	var stage []Write
	ports := make([]fabric.PortID, 0, len(list))
	for _, a := range list {
		c := &w.cells[a.cell]
		first, same := len(ports), true
		for i := c.from; i < c.to; i++ {
			in := w.is[i]&a.want == a.want
			same = same && in == w.now[i]
			if w.now[i] = in; in {
				ports = append(ports, w.ports[i])
			}
		}
		if same {
			ports = ports[:first]
			continue
		}
		if stage == nil {
			stage = make([]Write, 0, len(list))
		}
		stage = append(stage, Write{
			Switch:   w.spans[c.sw].node,
			MLID:     w.mlid,
			Position: uint8(w.f.Num(w.ports[c.from]) / PositionPorts),
			Ports:    ports[first:len(ports):len(ports)],
		})
	}
	if stage != nil {
		w.out.stages = append(w.out.stages, stage)
	}
}

// outAndIn takes ports that are not new out of parting cells, besides what list
// does, and then writes those and the late ones. It counts who loses packets.
//
// That is safe: while ports go out the masks are part of what they were, but for
// those that list writes, to which no packet comes. While ports come in
// the masks to which packets come are part of the new ones.
func (w *updater) outAndIn(list []aim, parting, late []int32) Interruption {
	x := Interruption{MLID: w.mlid, From: len(w.out.stages) + 1}
	w.write(w.aim(list, parting, inOld|inNew))
	w.fly(nil)
	for i := range w.loser {
		w.loser[i] = -1
	}
	for _, k := range w.active {
		s := &w.senders[k]
		w.flood(s.entry)
		w.missed(&w.flooder, s, func(i int32) {
			switch w.loser[i] {
			case k:
				return // as a member of another group on this MLID
			case -1:
				x.Receivers = append(x.Receivers, w.endPort(i))
			}
			w.loser[i] = k
			x.Pairs++
		})
		w.reset()
	}
	slices.Sort(x.Receivers)
	w.write(w.aim(w.aim(nil, parting, inNew), late, inNew))
	x.To = len(w.out.stages)
	return x
}

// inTurn writes cells at which paths part, as many in a stage as are proven to
// do no harm together, and returns those that it finds no turn for.
func (w *updater) inTurn(cells []int32) []int32 {
	cells = slices.Clone(cells)
	for len(cells) > 0 {
		w.aims = w.aims[:0]
		wait := cells[:0]
		for _, c := range cells {
			w.aims = append(w.aims, aim{c, inNew})
			w.tryFirst(w.cells[c].sw)
			if w.check(w.aims) != sound {
				w.aims = w.aims[:len(w.aims)-1]
				wait = append(wait, c)
			}
		}
		if len(w.aims) == 0 {
			break
		}
		w.write(w.aims)
		cells = wait
	}
	return cells
}

// tryFirst has a sender on a switch checked first, if there is one: what it sends
// is the likeliest to be harmed by a change there.
func (w *updater) tryFirst(sw int32) {
	for k, i := range w.active {
		if w.at(w.senders[i].entry) == sw {
			copy(w.active[1:k+1], w.active[:k])
			w.active[0] = i
			return
		}
	}
}
