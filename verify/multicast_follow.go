package verify

import (
	"context"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
)

// mcWorker follows the packets of one MLID at a time.
type mcWorker struct {
	*mcPlan
	found mcFound

	// The masks of the MLID.
	current fabric.LID
	ports   []fabric.PortID        // ascending
	arcs    []mcArc                // by index in ports
	mask    []mcMask               // by switch
	forest  bool                   // the cables in the masks, regardless of direction, have no cycle
	joined  graph.UnionFind[int32] // of switches, for forest
	taken   []bool                 // by index in ports: some packet leaves by it

	// One tree.
	tree    *mft.Tree
	wanted  []bool          // by PortID of a switch: a receiver is there
	behind  []mcBehind      // by index in ports, for forests
	loopers []fabric.PortID // senders whose packets loop, ascending

	// One packet.
	hit    []bool // by index in ports: the packet leaves by it
	sent   []mcHop
	copies []int64 // by index in ports, if hit: number of copies
	before []int32 // likewise: how many arcs before it are not counted yet

	reached []bool // by index in ports and VL
	queue   []mcState
	stack   []int32
}

// mcBehind counts the copies behind an arc by which a packet leaves: to
// receivers, and to other end ports; -1 if not known yet.
type mcBehind struct{ good, stray int32 }

// reach counts faults of a packet: receivers without a copy or with several, and
// other end ports with copies. Duplicates of packets that loop are not counted.
type reach struct {
	missing, duplicate, stray int
	loops                     bool
}

// mcArc is a port in a mask with where it leads: the mask of the next switch,
// empty if packets end there.
type mcArc struct {
	mcStart
	kind uint8
}

const (
	arcSwitch = iota
	arcEnd    // to a CA or router, or port 0 of the switch
	arcDead   // no cable
)

// mcStart is where a packet enters a switch: the mask there, the index in ports of the input port,
// -1 if that is not in the mask, and the input port's number.
type mcStart struct {
	mcMask
	back int32
	num  fabric.PortNum
}

// mcMask is a part of ports.
type mcMask struct{ from, to int32 }

func (m mcMask) isEmpty() bool { return m.from == m.to }

// mcHop is a copy that left: its arc, and the index in sent of the copy before it, -1 for none.
type mcHop struct{ arc, after int32 }

func newMCWorker(c *mcPlan) *mcWorker {
	return &mcWorker{
		mcPlan: c,
		found:  mcFound{splits: map[split]bool{}},
		mask:   make([]mcMask, c.n),
		joined: graph.NewUnionFind[int32](c.n),
		tree:   &mft.Tree{},
		wanted: make([]bool, len(c.to)),
	}
}

// run follows the packets of all MLIDs.
func (c *mcPlan) run(ctx context.Context, opt Options) error {
	start := func() *mcWorker { return newMCWorker(c) }
	workers, err := par.ForEachWith(ctx, opt.Workers, len(c.mlids), start, func(w *mcWorker, i int) error {
		return w.mlid(ctx, i)
	})
	if err != nil {
		return err
	}
	for _, w := range workers {
		c.found.add(&w.found)
	}
	c.graph.finish()
	c.found.sort()
	c.countUse()
	return nil
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
		w.addDependencies(t)
		looped = looped || len(w.loopers) > 0
	}
	if looped { // taken lacks ports that only packets that loop reach
		return nil
	}
	idle := deadMask{mlid: w.current}
	for k, p := range w.ports {
		if !w.taken[k] {
			if idle.n++; idle.n == 1 {
				idle.port = p
			}
		}
	}
	if idle.n > 0 {
		w.found.unused = append(w.found.unused, idle)
	}
	return nil
}

// load prepares the masks of an MLID.
func (w *mcWorker) load(mlid fabric.LID) {
	for _, p := range w.ports {
		w.mask[w.f.Owner(p)] = mcMask{}
	}
	w.current, w.ports = mlid, w.Tables.Ports(mlid)
	for i, p := range w.ports {
		m := &w.mask[w.f.Owner(p)]
		if m.isEmpty() {
			m.from = int32(i)
		}
		m.to = int32(i + 1)
	}
	w.arcs = w.arcs[:0]
	for _, p := range w.ports {
		a := mcArc{mcStart{back: -1}, arcEnd}
		switch to := w.to[p]; {
		case to >= 0:
			a = mcArc{w.enter(w.f.Peer(p)), arcSwitch}
			n := a.to - a.from
			if n == 0 || n == 1 && a.back >= 0 {
				w.found.ends = append(w.found.ends, deadMask{port: p, mlid: mlid})
			}
			if n == 0 {
				w.found.gaps = append(w.found.gaps, deadMask{port: p, mlid: mlid})
			}
		case to == toNowhere && w.f.Num(p) != fabric.ManagementPort:
			a.kind = arcDead
			w.found.dead = append(w.found.dead, deadMask{port: p, mlid: mlid})
		}
		w.arcs = append(w.arcs, a)
	}
	w.forest = w.isForest()
	n := len(w.ports)
	w.hit, w.taken = slices.Grow(w.hit[:0], n)[:n], slices.Grow(w.taken[:0], n)[:n]
	clear(w.taken)
	w.behind = slices.Grow(w.behind[:0], n)[:n]
	w.copies, w.before = slices.Grow(w.copies[:0], n)[:n], slices.Grow(w.before[:0], n)[:n]
}

// isForest returns true if the cables in the masks have no cycle.
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
			continue // an end port, or counted at the other end
		}
		if !w.joined.Join(int32(w.f.Owner(p)), w.to[p]) {
			return false
		}
	}
	return true
}

// enter returns the position of a packet that enters a switch by port in.
func (w *mcWorker) enter(in fabric.PortID) mcStart {
	at := mcStart{w.mask[w.f.Owner(in)], -1, w.f.Num(in)}
	if i, ok := slices.BinarySearch(w.ports[at.from:at.to], in); ok {
		at.back = at.from + int32(i)
	}
	return at
}

// deliver counts the faults of the packets of each sender of a tree. Its
// error is ctx's.
//
// If the cables of the masks have no cycle, no packet enters a switch twice, and
// all packets have the same copies behind an arc: all senders take O(ports in
// masks x ports of a switch). Otherwise, and if an SL-to-VL table drops their
// SL, a packet of each sender is followed.
func (w *mcWorker) deliver(ctx context.Context, t *mft.Tree) error {
	w.expect(t)
	drops := w.lanes != nil && slices.ContainsFunc(w.lanes.sl2vl.Maps(), func(m lft.VLMap) bool { return m[t.SL] == lft.DropVL })
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
		if _, member := slices.BinarySearch(t.Receivers, s); member {
			want--
		}
		w.found.counts.Pairs += int64(want)
		if in := w.f.Attachment(s); want == 0 && len(w.ports) > 0 && in != fabric.NoPort && w.mask[w.f.Owner(in)].isEmpty() {
			w.found.gaps = append(w.found.gaps, deadMask{port: s, mlid: t.MLID}) // its receivers, if any, are missing
		}
		var r reach
		switch in := w.f.Attachment(s); {
		case in == fabric.NoPort || w.mutes(t.SL, s):
			r.missing = want
			if slices.ContainsFunc(t.Receivers, func(p fabric.PortID) bool { return w.beside(t.SL, s, p) }) {
				r.missing--
			}
		case w.forest && !drops:
			n := w.copiesFrom(w.start(t.SL, s))
			r = reach{missing: want - int(n.good), stray: int(n.stray)}
		default:
			r = w.countFaults(t, w.flood(t.SL, w.start(t.SL, s)), s)
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
		w.found.troubles = append(w.found.troubles, trouble)
		w.found.counts.Missing += int(trouble.missing.n)
		w.found.counts.Duplicates += int(trouble.duplicate.n)
		w.found.counts.Loops += int(trouble.loop.n)
		w.found.counts.Stray += int(trouble.stray.n)
	}
	return nil
}

// expect makes t the current tree, and sets wanted for its receivers.
func (w *mcWorker) expect(t *mft.Tree) {
	w.setWanted(false)
	w.tree = t
	w.setWanted(true)
}

// setWanted sets wanted for the receivers of the current tree.
func (w *mcWorker) setWanted(wanted bool) {
	for _, p := range w.tree.Receivers {
		if q := w.f.Attachment(p); q != fabric.NoPort {
			w.wanted[q] = wanted
		}
	}
}

// copiesFrom counts the copies of a packet at a switch, if the masks are a forest.
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

// copiesBehind counts the copies of a packet that leaves by an arc.
func (w *mcWorker) copiesBehind(arc int32) mcBehind {
	n := &w.behind[arc]
	switch {
	case n.good >= 0: // known
	case w.arcs[arc].kind == arcSwitch:
		*n = w.copiesFrom(w.arcs[arc].mcStart)
	case w.arcs[arc].kind == arcDead:
		*n = mcBehind{}
	case w.wanted[w.ports[arc]]:
		*n = mcBehind{good: 1}
	default:
		*n = mcBehind{stray: 1}
	}
	return *n
}

// mutes returns true if a CA port's own table drops an SL.
func (w *mcWorker) mutes(sl fabric.SL, p fabric.PortID) bool {
	return w.vlOf(0, p, sl) == lft.DropVL
}

// beside returns true if packets of a sender reach an end port by a cable
// without a switch.
func (w *mcWorker) beside(sl fabric.SL, sender, end fabric.PortID) bool {
	return w.f.Attachment(sender) == fabric.NoPort && w.f.Peer(sender) == end && !w.mutes(sl, sender)
}

// start returns where a sender's packets enter, with an empty mask if the sender cannot send.
func (w *mcWorker) start(sl fabric.SL, sender fabric.PortID) mcStart {
	in := w.f.Attachment(sender)
	if in == fabric.NoPort || w.mutes(sl, sender) {
		return mcStart{back: -1}
	}
	return w.enter(in)
}

// goesOut returns true if a packet at a switch leaves by an arc.
func (w *mcWorker) goesOut(sl fabric.SL, at mcStart, arc int32) bool {
	return at.from <= arc && arc < at.to && arc != at.back && w.vlOf(at.num, w.ports[arc], sl) != lft.DropVL
}

// outs calls do for each arc by which a packet at a switch leaves.
func (w *mcWorker) outs(sl fabric.SL, at mcStart, do func(k int32)) {
	for k := at.from; k < at.to; k++ {
		if w.goesOut(sl, at, k) {
			do(k)
		}
	}
}

// flood follows a packet through the masks. It puts each arc by which the packet leaves once into
// sent, and sets its hit and, unless the packet loops, its copies. It returns true if the packet
// loops.
func (w *mcWorker) flood(sl fabric.SL, at mcStart) (loops bool) {
	clear(w.hit)
	w.sent = w.sent[:0]
	twice := false
	for i := int32(-1); ; {
		w.outs(sl, at, func(k int32) {
			if w.hit[k] {
				twice = true
				return
			}
			w.hit[k] = true
			w.copies[k], w.before[k] = 1, 0
			w.sent = append(w.sent, mcHop{k, i})
		})
		if i++; int(i) == len(w.sent) {
			break
		}
		at = w.arcs[w.sent[i].arc].mcStart
	}
	return twice && !w.countCopies(sl)
}

// maxCopies bounds counts of copies.
const maxCopies = 1 << 40

// countCopies counts, arc by arc on its way, the copies of the last packet
// flooded. It returns false if the packet loops.
func (w *mcWorker) countCopies(sl fabric.SL) bool {
	for _, h := range w.sent {
		w.copies[h.arc] = 0
		if h.after < 0 {
			w.copies[h.arc] = 1 // at the sender's switch
		}
		w.outs(sl, w.arcs[h.arc].mcStart, func(k int32) { w.before[k]++ })
	}
	ready := w.stack[:0]
	for _, h := range w.sent {
		if w.before[h.arc] == 0 {
			ready = append(ready, h.arc)
		}
	}
	done := 0
	for ; len(ready) > 0; done++ {
		i := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		w.outs(sl, w.arcs[i].mcStart, func(k int32) {
			w.copies[k] = min(maxCopies, w.copies[k]+w.copies[i])
			if w.before[k]--; w.before[k] == 0 {
				ready = append(ready, k)
			}
		})
	}
	w.stack = ready
	return done == len(w.sent)
}

// got returns the number of copies of the last packet flooded that reach an
// end port; at most 1 if the packet loops.
func (w *mcWorker) got(end fabric.PortID, loops bool) int64 {
	q := w.f.Attachment(end)
	if q == fabric.NoPort {
		return 0
	}
	i, ok := slices.BinarySearch(w.ports, q)
	switch {
	case !ok || !w.hit[i]:
		return 0
	case loops:
		return 1
	}
	return w.copies[i]
}

// countFaults counts the faults of the last packet flooded, which is from sender.
func (w *mcWorker) countFaults(t *mft.Tree, loops bool, sender fabric.PortID) reach {
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

// strays calls do for the end ports that get copies of the last packet
// flooded without being receivers.
func (w *mcWorker) strays(do func(p fabric.PortID)) {
	for _, h := range w.sent {
		q := w.ports[h.arc]
		if w.arcs[h.arc].kind != arcEnd || w.wanted[q] {
			continue
		}
		if peer := w.f.Peer(q); peer != fabric.NoPort {
			q = peer
		}
		do(q)
	}
}

// mcState is a packet that left by an arc on a VL, an index in channels.vl.
type mcState struct{ arc, vl int32 }

// addDependencies adds the channels that a tree's packets take, and the dependencies between them.
// It leaves out packets of loopers, another error. Where a copy goes depends only on where it
// entered, so each arc is followed once for each VL.
func (w *mcWorker) addDependencies(t *mft.Tree) {
	vls := w.graph.vls
	n := len(w.ports) * vls
	w.reached = slices.Grow(w.reached[:0], n)[:n]
	clear(w.reached)
	w.queue = w.queue[:0]
	for _, s := range t.Senders {
		in := w.f.Attachment(s)
		if in == fabric.NoPort || w.mutes(t.SL, s) {
			continue
		}
		if _, loops := slices.BinarySearch(w.loopers, s); loops {
			continue
		}
		vl := w.lane(w.vlOf(0, s, t.SL))
		w.leave(t.SL, ^(int32(in)*int32(vls) + vl), w.start(t.SL, s))
	}
	for i := 0; i < len(w.queue); i++ {
		at := w.queue[i]
		ch := int32(w.ports[at.arc])*int32(vls) + at.vl
		w.leave(t.SL, ch, w.arcs[at.arc].mcStart)
	}
}

// lane returns the index of a VL in channels.vl.
func (c *mcPlan) lane(vl fabric.VL) int32 {
	i, _ := slices.BinarySearch(c.graph.vl, vl)
	return int32(i)
}

// leave sends a packet, which came by channel in, out of a switch by all its ports. in is negative
// at the first switch, see split.
func (w *mcWorker) leave(sl fabric.SL, in int32, at mcStart) {
	first, vls := int32(-1), int32(w.graph.vls)
	w.outs(sl, at, func(k int32) {
		p := w.ports[k]
		w.taken[k] = true
		if w.arcs[k].kind == arcDead || w.f.Num(p) == fabric.ManagementPort {
			return
		}
		vl := w.lane(w.vlOf(at.num, p, sl))
		ch := int32(p)*vls + vl
		if seen := &w.reached[k*vls+vl]; !*seen {
			*seen = true
			w.queue = append(w.queue, mcState{k, vl})
			w.graph.take(int(ch))
		}
		if in >= 0 {
			w.graph.depend(int(in), int(ch-w.graph.base(w.graph.tail(ch))))
		}
		if w.copying != Independent {
			if first >= 0 {
				w.found.splits[split{in, first, ch}] = true
			}
			first = ch
		}
	})
}
