package verify

import (
	"context"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
)

// mcWorker follows the packets of one MLID at a time.
type mcWorker struct {
	*multicast
	counts   MulticastCounts
	troubles []mcTrouble
	dead     []deadMask
	ends     []deadMask
	gaps     []deadMask
	unused   []deadMask
	splits   []split
	packed   int // splits, when each was last in there once

	// The masks of the MLID.
	current fabric.LID
	ports   []fabric.PortID        // ascending
	arcs    []mcArc                // by index in ports
	mask    []mcMask               // by switch
	loaded  uint32                 // of masks that are the MLID's
	forest  bool                   // the cables of the masks close no cycle, whichever their direction
	joined  graph.UnionFind[int32] // of switches, for forest
	taken   []uint32               // by index in ports: loaded when some packet goes out by it

	// One tree.
	tree    uint32
	wanted  []uint32        // by PortID of a switch: tree when a receiver is there
	behind  []mcBehind      // by index in ports, in a forest
	from    []mcFrom        // by switch, elsewhere
	loopers []fabric.PortID // senders whose packets go round, ascending

	// One packet.
	packet uint32
	hit    []uint32 // by index in ports: packet when it goes out by it
	way    []mcHop
	copies []int64 // by index in ports, of those hit
	before []int32 // the same: arcs that lead to it and have not been counted

	reached  []uint32 // by index in ports and VL
	reachNow uint32
	queue    []mcState
	stack    []int32
}

// mcBehind is the copies that a packet makes which goes out by an arc: to
// receivers, and to other end ports; -1 when not known yet.
type mcBehind struct{ good, stray int32 }

// mcFrom is what becomes of a packet that begins in a switch and goes out by all
// ports of its mask.
type mcFrom struct {
	tree uint32 // that it is for
	reach
}

// reach is what is wrong with a packet: receivers that get no copy, or several, and
// other end ports that get some. Packets that loop have no duplicates.
type reach struct {
	missing, duplicate, stray int
	loops                     bool
}

// mcArc is a port in a mask and where it leads.
type mcArc struct {
	from, to int32 // the mask of the switch there, a part of ports
	back     int32 // the index in ports of the port there, -1 when it is not in the mask
	kind     uint8
}

const (
	arcSwitch = iota
	arcEnd    // to a CA or router, or port 0 of the switch
	arcDead   // no cable
)

// mcMask is a part of ports, if it is that of the MLID which is loaded.
type mcMask struct {
	from, to int32
	loaded   uint32
}

// mcHop is a copy that went out: by which arc, and after which other copy.
type mcHop struct{ arc, after int32 }

func newMCWorker(c *multicast) *mcWorker {
	return &mcWorker{
		multicast: c,
		mask:      make([]mcMask, c.n),
		joined:    graph.NewUnionFind[int32](c.n),
		wanted:    make([]uint32, len(c.to)),
	}
}

// next makes a new number for stamps that have the one before; it clears them when
// numbers come round.
func next(number *uint32, stamps []uint32) uint32 {
	if *number++; *number == 0 {
		clear(stamps)
		*number = 1
	}
	return *number
}

// mlid checks the i-th MLID. Its error is ctx's.
func (w *mcWorker) mlid(ctx context.Context, i int) error {
	w.load(w.mlids[i])
	trees, _ := w.of(i)
	looped := false
	for _, t := range trees {
		if err := w.deliver(ctx, t); err != nil {
			return err
		}
		w.spread(t)
		looped = looped || len(w.loopers) > 0
	}
	if looped { // what only these packets reach is not in taken
		return nil
	}
	idle := deadMask{mlid: w.current}
	for k, p := range w.ports {
		if w.taken[k] != w.loaded {
			if idle.n++; idle.n == 1 {
				idle.port = p
			}
		}
	}
	if idle.n > 0 {
		w.unused = append(w.unused, idle)
	}
	return nil
}

// load takes the masks of an MLID.
func (w *mcWorker) load(mlid fabric.LID) {
	if w.loaded++; w.loaded == 0 {
		clear(w.mask)
		clear(w.taken)
		w.loaded = 1
	}
	w.current, w.ports = mlid, w.Tables.Ports(mlid)
	for i := 0; i < len(w.ports); {
		s := w.f.Owner(w.ports[i])
		end := w.f.PortBase(s) + fabric.PortID(w.f.Node(s).NumPorts)
		from := i
		for i < len(w.ports) && w.ports[i] <= end {
			i++
		}
		w.mask[s] = mcMask{int32(from), int32(i), w.loaded}
	}
	w.arcs = w.arcs[:0]
	for _, p := range w.ports {
		a := mcArc{back: -1, kind: arcEnd}
		switch to := w.to[p]; {
		case to >= 0:
			a.kind = arcSwitch
			if m := w.mask[to]; m.loaded == w.loaded {
				a.from, a.to = m.from, m.to
				if i, ok := slices.BinarySearch(w.ports[m.from:m.to], w.f.Peer(p)); ok {
					a.back = m.from + int32(i)
				}
			}
			n := a.to - a.from
			if n == 0 || n == 1 && a.back >= 0 {
				w.ends = append(w.ends, deadMask{port: p, mlid: mlid})
			}
			if n == 0 {
				w.gaps = append(w.gaps, deadMask{port: p, mlid: mlid})
			}
		case to == toNowhere && w.f.Num(p) != fabric.ManagementPort:
			a.kind = arcDead
			w.dead = append(w.dead, deadMask{port: p, mlid: mlid})
		}
		w.arcs = append(w.arcs, a)
	}
	w.forest = w.isForest()
	if n := len(w.ports); len(w.hit) < n {
		w.hit = append(w.hit, make([]uint32, n-len(w.hit))...)
		w.taken = append(w.taken, make([]uint32, n-len(w.taken))...)
		w.behind = make([]mcBehind, n)
		w.copies, w.before = make([]int64, n), make([]int32, n)
	}
}

// isForest says whether the cables in the masks close no cycle.
func (w *mcWorker) isForest() bool {
	for _, p := range w.ports {
		s := int32(w.f.Owner(p))
		w.joined[s] = s
		if to := w.to[p]; to >= 0 {
			w.joined[to] = to
		}
	}
	for i, p := range w.ports {
		if a := &w.arcs[i]; a.kind != arcSwitch || a.back >= 0 && int(a.back) < i {
			continue // or counted at its other end
		}
		if !w.joined.Join(int32(w.f.Owner(p)), w.to[p]) {
			return false
		}
	}
	return true
}

// enter is the mask of the switch that port in is on, and the index in ports
// of in, -1 when it is not in the mask.
func (w *mcWorker) enter(in fabric.PortID) (from, to, back int32) {
	m := w.mask[w.f.Owner(in)]
	if m.loaded != w.loaded {
		return 0, 0, -1
	}
	back = -1
	if i, ok := slices.BinarySearch(w.ports[m.from:m.to], in); ok {
		back = m.from + int32(i)
	}
	return m.from, m.to, back
}

// deliver counts what becomes of the packets of each sender of a tree. Its error is
// ctx's.
//
// Where the cables of the masks close no circle no packet comes to a switch twice,
// and what is behind an arc is the same for all packets that take it: all senders
// take O(ports in masks x ports of a switch). Elsewhere one packet is followed from
// each switch with senders, since theirs differ by their own ports only; and where an
// SL-to-VL table drops their SL, one from each sender.
func (w *mcWorker) deliver(ctx context.Context, t *mft.Tree) error {
	w.expect(t)
	drops := w.dropsSL(t.SL)
	if w.forest && !drops {
		for i := range w.ports {
			w.behind[i] = mcBehind{-1, -1}
		}
	}
	trouble := mcTrouble{tree: t}
	w.loopers = w.loopers[:0]
	for i, s := range t.Senders {
		if i%64 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		want := len(t.Receivers)
		_, member := slices.BinarySearch(t.Receivers, s)
		if member {
			want--
		}
		w.counts.Pairs += int64(want)
		if in := w.f.Attachment(s); want == 0 && len(w.ports) > 0 && in != fabric.NoPort && w.mask[w.f.Owner(in)].loaded != w.loaded {
			w.gaps = append(w.gaps, deadMask{port: s, mlid: t.MLID}) // else its receivers are missing
		}
		var r reach
		switch in := w.f.Attachment(s); {
		case in == fabric.NoPort || w.mutes(t.SL, s):
			r.missing = want
			if slices.ContainsFunc(t.Receivers, func(p fabric.PortID) bool { return w.beside(t.SL, s, p) }) {
				r.missing--
			}
		case drops:
			r = w.follow(t, s)
		case w.forest:
			n := w.copiesFrom(w.start(t.SL, s))
			r = reach{missing: want - int(n.good), stray: int(n.stray)}
		default:
			r = w.followFrom(t, in, member)
		}
		trouble.missing.count(r.missing, s)
		trouble.duplicate.count(r.duplicate, s)
		trouble.stray.count(r.stray, s)
		if r.loops {
			trouble.loop.count(1, s)
			w.loopers = append(w.loopers, s)
		}
	}
	if trouble.missing.n+trouble.duplicate.n+trouble.loop.n+trouble.stray.n > 0 {
		w.troubles = append(w.troubles, trouble)
		w.counts.Missing += int(trouble.missing.n)
		w.counts.Duplicates += int(trouble.duplicate.n)
		w.counts.Loops += int(trouble.loop.n)
		w.counts.Stray += int(trouble.stray.n)
	}
	return nil
}

// expect makes a tree the one whose receivers are wanted.
func (w *mcWorker) expect(t *mft.Tree) {
	if next(&w.tree, w.wanted) == 1 {
		clear(w.from)
	}
	for _, p := range t.Receivers {
		if q := w.f.Attachment(p); q != fabric.NoPort {
			w.wanted[q] = w.tree
		}
	}
}

// copiesFrom is the copies of a packet that is in a switch, when the masks are a forest.
func (w *mcWorker) copiesFrom(at mcStart) (n mcBehind) {
	for k := at.from; k < at.to; k++ {
		if k != at.back {
			behind := w.copiesBehind(k)
			n.good += behind.good
			n.stray += behind.stray
		}
	}
	return n
}

// copiesBehind is the same for a packet that goes out by an arc.
func (w *mcWorker) copiesBehind(arc int32) mcBehind {
	n := &w.behind[arc]
	switch {
	case n.good >= 0: // known
	case w.arcs[arc].kind == arcSwitch:
		*n = w.copiesFrom(w.behindArc(arc))
	case w.arcs[arc].kind == arcDead:
		*n = mcBehind{}
	case w.wanted[w.ports[arc]] == w.tree:
		*n = mcBehind{good: 1}
	default:
		*n = mcBehind{stray: 1}
	}
	return *n
}

// dropped says whether the SL-to-VL table of a way through a switch drops an
// SL.
func (w *mcWorker) dropped(sl fabric.SL, in fabric.PortNum, arc int32) bool {
	return w.vlOf(in, w.ports[arc], sl) == lft.DropVL
}

// mutes says whether a CA port's own table drops an SL.
func (w *mcWorker) mutes(sl fabric.SL, p fabric.PortID) bool {
	return w.vlOf(0, p, sl) == lft.DropVL
}

// beside says whether packets of a sender come to an end port by a cable without a
// switch.
func (w *mcWorker) beside(sl fabric.SL, sender, end fabric.PortID) bool {
	return w.f.Attachment(sender) == fabric.NoPort && w.f.Peer(sender) == end && !w.mutes(sl, sender)
}

// dropsSL says whether any SL-to-VL table drops an SL.
func (c *multicast) dropsSL(sl fabric.SL) bool {
	return c.lanes != nil && slices.ContainsFunc(c.lanes.sl2vl.Maps(), func(m lft.VLMap) bool { return m[sl] == lft.DropVL })
}

// followFrom is what becomes of the packets of a sender at a port of a switch, where
// no SL-to-VL table drops them. They are those that begin in the switch and go out by
// all ports, but for the copy that goes out by that port at once: no other one does,
// unless the packet loops, since a copy that comes back to the switch goes out again by
// the port that led to it.
func (w *mcWorker) followFrom(t *mft.Tree, in fabric.PortID, member bool) reach {
	s := w.f.Owner(in)
	from, to, own := w.enter(in)
	if len(w.from) == 0 {
		w.from = make([]mcFrom, w.n)
	}
	at := &w.from[s]
	if at.tree != w.tree {
		*at = mcFrom{tree: w.tree, reach: w.judge(t, w.flood(t.SL, mcStart{from: from, to: to, back: -1}), fabric.NoPort)}
	}
	r := at.reach
	switch {
	case member && own < 0:
		r.missing-- // itself
	case !member && own >= 0:
		r.stray-- // itself
	}
	return r
}

// follow is what becomes of the packets of a sender.
func (w *mcWorker) follow(t *mft.Tree, sender fabric.PortID) reach {
	return w.judge(t, w.flood(t.SL, w.start(t.SL, sender)), sender)
}

// mcStart is where a packet is when it has come to its first switch: the mask, the
// index in ports of the port that it came in by, -1 when that is not in the mask, and
// the number of that port.
type mcStart struct {
	from, to, back int32
	num            fabric.PortNum
}

// start is where packets of a sender are, with no way out for one who cannot send.
func (w *mcWorker) start(sl fabric.SL, sender fabric.PortID) mcStart {
	in := w.f.Attachment(sender)
	if in == fabric.NoPort || w.mutes(sl, sender) {
		return mcStart{back: -1}
	}
	from, to, back := w.enter(in)
	return mcStart{from, to, back, w.f.Num(in)}
}

// goesOut says whether a packet that is in a switch goes out by an arc.
func (w *mcWorker) goesOut(sl fabric.SL, at mcStart, arc int32) bool {
	return at.from <= arc && arc < at.to && arc != at.back && !w.dropped(sl, at.num, arc)
}

// outs calls do for the arcs by which a packet goes out that is in a switch.
func (w *mcWorker) outs(sl fabric.SL, at mcStart, do func(k int32)) {
	for k := at.from; k < at.to; k++ {
		if w.goesOut(sl, at, k) {
			do(k)
		}
	}
}

// behindArc is where a packet is that went out by an arc, with no way on for one that
// has arrived.
func (w *mcWorker) behindArc(arc int32) mcStart {
	a := &w.arcs[arc]
	if a.kind != arcSwitch {
		return mcStart{back: -1}
	}
	return mcStart{a.from, a.to, a.back, w.f.Num(w.f.Peer(w.ports[arc]))}
}

// flood sends a packet through the masks. Each arc it goes out by is in way once, and
// has the packet's number in hit and in copies how many copies take it, unless it
// loops: then it says true.
func (w *mcWorker) flood(sl fabric.SL, at mcStart) (loops bool) {
	next(&w.packet, w.hit)
	w.way = w.way[:0]
	twice := false
	for i := int32(-1); ; {
		w.outs(sl, at, func(k int32) {
			if w.hit[k] == w.packet {
				twice = true
				return
			}
			w.hit[k] = w.packet
			w.copies[k], w.before[k] = 1, 0
			w.way = append(w.way, mcHop{k, i})
		})
		if i++; int(i) == len(w.way) {
			break
		}
		at = w.behindArc(w.way[i].arc)
	}
	return twice && !w.countCopies(sl)
}

// maxCopies is where counting copies ends.
const maxCopies = 1 << 40

// countCopies counts the copies of the packet just flooded that go out by each arc,
// after those by the arcs before it. It says false when the packet goes round for
// ever.
func (w *mcWorker) countCopies(sl fabric.SL) bool {
	for _, h := range w.way {
		w.copies[h.arc] = 0
		if h.after < 0 {
			w.copies[h.arc] = 1 // from where the packet began
		}
		w.outs(sl, w.behindArc(h.arc), func(k int32) { w.before[k]++ })
	}
	ready := w.stack[:0]
	for _, h := range w.way {
		if w.before[h.arc] == 0 {
			ready = append(ready, h.arc)
		}
	}
	done := 0
	for ; len(ready) > 0; done++ {
		i := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		w.outs(sl, w.behindArc(i), func(k int32) {
			w.copies[k] = min(maxCopies, w.copies[k]+w.copies[i])
			if w.before[k]--; w.before[k] == 0 {
				ready = append(ready, k)
			}
		})
	}
	w.stack = ready
	return done == len(w.way)
}

// got is how many copies of the packet just flooded come to an end port; 1 for any
// number of a packet that loops.
func (w *mcWorker) got(end fabric.PortID, loops bool) int64 {
	q := w.f.Attachment(end)
	if q == fabric.NoPort {
		return 0
	}
	i, ok := slices.BinarySearch(w.ports, q)
	switch {
	case !ok || w.hit[i] != w.packet:
		return 0
	case loops:
		return 1
	}
	return w.copies[i]
}

// judge counts what is wrong with the packet just flooded, of a sender, or of NoPort.
func (w *mcWorker) judge(t *mft.Tree, loops bool, sender fabric.PortID) reach {
	r := reach{loops: loops}
	for _, p := range t.Receivers {
		switch n := w.got(p, loops); {
		case p == sender:
			if n > 0 && !loops {
				r.duplicate++
			}
		case n == 0:
			r.missing++
		case n > 1:
			r.duplicate++
		}
	}
	w.strays(func(p fabric.PortID) {
		if p != sender || !loops {
			r.stray++
		}
	})
	return r
}

// strays calls do for the end ports that are no receivers and get copies of the
// packet just flooded.
func (w *mcWorker) strays(do func(p fabric.PortID)) {
	for _, h := range w.way {
		q := w.ports[h.arc]
		if w.arcs[h.arc].kind != arcEnd || w.wanted[q] == w.tree {
			continue
		}
		if peer := w.f.Peer(q); peer != fabric.NoPort {
			q = peer
		}
		do(q)
	}
}
