package verify

import (
	"slices"

	"github.com/ibweave/ibweave/fabric"
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
	splits   []split

	// The masks of the MLID.
	current fabric.LID
	ports   []fabric.PortID // ascending
	arcs    []mcArc         // by index in ports
	mask    []mcMask        // by switch
	loaded  uint32          // of masks that are the MLID's
	forest  bool            // the cables of the masks close no circle, whichever their direction
	parent  []int32         // by switch: union-find, for forest

	// By index in ports. An entry counts for the tree or packet whose number it
	// has.
	behind  []int32 // copies to end ports that a packet going out by it makes; -1 when not known
	hit     []uint32
	packet  uint32
	way     []mcHop
	loopers []fabric.PortID // senders of the tree whose packets go round
	pending []int32
	depth   []int32 // and for counting copies
	copies  []int64

	// By PortID of a switch: whether a receiver of the tree is there.
	wanted []uint32
	tree   uint32

	reached  []uint32 // by index in ports and VL
	reachNow uint32
	queue    []mcState
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
		parent:    make([]int32, c.n),
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

// mlid checks the i-th MLID.
func (w *mcWorker) mlid(i int) {
	w.load(w.mlids[i])
	trees, _ := w.of(i)
	for _, t := range trees {
		w.deliver(t)
		w.spread(t)
	}
}

// load takes the masks of an MLID.
func (w *mcWorker) load(mlid fabric.LID) {
	if w.loaded++; w.loaded == 0 {
		clear(w.mask)
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
			if n := a.to - a.from; n == 0 || n == 1 && a.back >= 0 {
				w.ends = append(w.ends, deadMask{p, mlid})
			}
		case to == toNowhere && w.f.Num(p) != fabric.ManagementPort:
			a.kind = arcDead
			w.dead = append(w.dead, deadMask{p, mlid})
		}
		w.arcs = append(w.arcs, a)
	}
	w.forest = w.isForest()
	if n := len(w.ports); len(w.hit) < n {
		w.hit = append(w.hit, make([]uint32, n-len(w.hit))...)
		w.behind, w.copies = make([]int32, n), make([]int64, n)
		w.depth = make([]int32, n)
	}
	for i := range w.arcs {
		w.behind[i] = -1
	}
}

// isForest says whether the cables in the masks close no circle.
func (w *mcWorker) isForest() bool {
	find := func(s int32) int32 {
		for w.parent[s] != s {
			w.parent[s] = w.parent[w.parent[s]]
			s = w.parent[s]
		}
		return s
	}
	for _, p := range w.ports {
		s := int32(w.f.Owner(p))
		w.parent[s] = s
		if to := w.to[p]; to >= 0 {
			w.parent[to] = to
		}
	}
	for i, p := range w.ports {
		if a := &w.arcs[i]; a.kind != arcSwitch || a.back >= 0 && int(a.back) < i {
			continue // or counted at its other end
		}
		s, to := find(int32(w.f.Owner(p))), find(w.to[p])
		if s == to {
			return false
		}
		w.parent[s] = to
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

// deliver counts what becomes of the packets of each sender of a tree.
//
// Where the cables of the masks close no circle no packet comes to a switch
// twice. Then it is enough to count the copies that go out to end ports, which are
// all of receivers: as many as there are receivers means one to each. The copies
// behind an arc are the same for all packets that take it. Elsewhere each sender's
// packet is followed by itself.
func (w *mcWorker) deliver(t *mft.Tree) {
	next(&w.tree, w.wanted)
	reachable := int32(0)
	for _, p := range t.Receivers {
		if q := w.terminal(p); q != fabric.NoPort {
			w.wanted[q] = w.tree
			reachable++
		}
	}
	count := w.forest && (w.lanes == nil || !w.lanes.drops)
	for i, p := range w.ports {
		if w.arcs[i].kind == arcEnd && w.wanted[p] != w.tree {
			count = false
		}
	}
	trouble := mcTrouble{tree: t}
	w.loopers = w.loopers[:0]
	for _, s := range t.Senders {
		want := int32(len(t.Receivers))
		if _, ok := slices.BinarySearch(t.Receivers, s); ok {
			want--
		}
		w.counts.Pairs += int64(want)
		if in := w.terminal(s); count && in != fabric.NoPort {
			if w.copiesFrom(in) == want {
				continue
			}
		}
		w.follow(t, s, &trouble)
	}
	if trouble.missing.n+trouble.duplicate.n+trouble.loop.n+trouble.stray.n > 0 {
		w.troubles = append(w.troubles, trouble)
		w.counts.Missing += int(trouble.missing.n)
		w.counts.Duplicates += int(trouble.duplicate.n)
		w.counts.Loops += int(trouble.loop.n)
		w.counts.Stray += int(trouble.stray.n)
	}
}

// copiesFrom is the number of copies to end ports of a packet that comes in by
// a port of a switch, when the masks are a forest.
func (w *mcWorker) copiesFrom(in fabric.PortID) (n int32) {
	from, to, back := w.enter(in)
	for i := from; i < to; i++ {
		if i != back {
			n += w.copiesBehind(i)
		}
	}
	return n
}

// copiesBehind is the same for a packet that goes out by an arc.
func (w *mcWorker) copiesBehind(arc int32) int32 {
	stack := append(w.pending[:0], arc)
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		a := &w.arcs[i]
		n := int32(0)
		switch a.kind {
		case arcEnd:
			n = 1
		case arcSwitch:
			known := true
			for k := a.from; k < a.to; k++ {
				switch {
				case k == a.back:
				case w.behind[k] < 0:
					known = false
					stack = append(stack, k)
				default:
					n += w.behind[k]
				}
			}
			if !known {
				continue
			}
		}
		w.behind[i] = n
		stack = stack[:len(stack)-1]
	}
	w.pending = stack
	return w.behind[arc]
}

// dropped says whether the SL-to-VL table of a way through a switch drops an
// SL.
func (w *mcWorker) dropped(sl fabric.SL, in fabric.PortNum, arc int32) bool {
	if w.lanes == nil {
		return false
	}
	out := w.ports[arc]
	return w.f.Num(out) != fabric.ManagementPort && w.lanes.sl2vl.At(in, out)[sl] == lft.DropVL
}

// mutes says whether a CA port's own table drops an SL.
func (w *mcWorker) mutes(sl fabric.SL, p fabric.PortID) bool {
	return w.lanes != nil && !w.f.IsSwitch(w.f.Owner(p)) && w.lanes.sl2vl.At(0, p)[sl] == lft.DropVL
}

// follow follows a packet of a sender, and counts what is wrong with it.
func (w *mcWorker) follow(t *mft.Tree, sender fabric.PortID, trouble *mcTrouble) {
	twice := w.flood(t.SL, sender)
	loops := twice && !w.countCopies(t.SL, sender)
	if loops {
		trouble.loop.count(sender, fabric.NoPort)
		w.loopers = append(w.loopers, sender)
	}
	got := func(p fabric.PortID) int64 { // copies that come to an end port, where there is an end of them
		q := w.terminal(p)
		if q == fabric.NoPort {
			return 0
		}
		i, ok := slices.BinarySearch(w.ports, q)
		switch {
		case !ok || w.hit[i] != w.packet:
			return 0
		case twice && !loops:
			return w.copies[i]
		}
		return 1
	}
	for _, p := range t.Receivers {
		switch n := got(p); {
		case p == sender:
			if n > 0 && !loops {
				trouble.duplicate.count(sender, p)
			}
		case n == 0:
			trouble.missing.count(sender, p)
		case n > 1 && !loops:
			trouble.duplicate.count(sender, p)
		}
	}
	for _, h := range w.way {
		if q := w.ports[h.arc]; w.arcs[h.arc].kind == arcEnd && w.wanted[q] != w.tree {
			p := q
			if peer := w.f.Peer(q); peer != fabric.NoPort {
				p = peer
			}
			if p != sender || !loops {
				trouble.stray.count(sender, p)
			}
		}
	}
}

// flood sends a packet of a sender through the masks, and says whether it went
// out by some arc twice. Each arc it went out by is in way once, and has the
// packet's number in hit.
func (w *mcWorker) flood(sl fabric.SL, sender fabric.PortID) (twice bool) {
	next(&w.packet, w.hit)
	w.way = w.way[:0]
	in := w.terminal(sender)
	if in == fabric.NoPort || w.mutes(sl, sender) {
		return false
	}
	out := func(num fabric.PortNum, from, to, back, after int32) {
		for k := from; k < to; k++ {
			switch {
			case k == back || w.dropped(sl, num, k):
			case w.hit[k] == w.packet:
				twice = true
			default:
				w.hit[k] = w.packet
				w.way = append(w.way, mcHop{k, after})
			}
		}
	}
	from, to, back := w.enter(in)
	out(w.f.Num(in), from, to, back, -1)
	for i := 0; i < len(w.way); i++ {
		if a := &w.arcs[w.way[i].arc]; a.kind == arcSwitch {
			out(w.f.Num(w.f.Peer(w.ports[w.way[i].arc])), a.from, a.to, a.back, int32(i))
		}
	}
	return twice
}

// maxCopies is where counting copies ends.
const maxCopies = 1 << 40

// countCopies counts the copies of the packet just flooded that go out by each
// arc, after those before it. It says false when the packet goes round for ever.
func (w *mcWorker) countCopies(sl fabric.SL, sender fabric.PortID) bool {
	for _, h := range w.way {
		w.depth[h.arc], w.copies[h.arc] = 0, 0
	}
	outs := func(num fabric.PortNum, from, to, back int32, do func(k int32)) {
		for k := from; k < to; k++ {
			if k != back && !w.dropped(sl, num, k) {
				do(k)
			}
		}
	}
	after := func(i int32, do func(k int32)) {
		if a := &w.arcs[i]; a.kind == arcSwitch {
			outs(w.f.Num(w.f.Peer(w.ports[i])), a.from, a.to, a.back, do)
		}
	}
	for _, h := range w.way { // depth counts the arcs before one that are still to come
		after(h.arc, func(k int32) { w.depth[k]++ })
	}
	in := w.terminal(sender)
	from, to, back := w.enter(in)
	outs(w.f.Num(in), from, to, back, func(k int32) { w.copies[k]++ })
	ready := w.pending[:0]
	for _, h := range w.way {
		if w.depth[h.arc] == 0 {
			ready = append(ready, h.arc)
		}
	}
	done := 0
	for ; len(ready) > 0; done++ {
		i := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		after(i, func(k int32) {
			w.copies[k] = min(maxCopies, w.copies[k]+w.copies[i])
			if w.depth[k]--; w.depth[k] == 0 {
				ready = append(ready, k)
			}
		})
	}
	w.pending = ready
	return done == len(w.way)
}
