package lan

import (
	"math/rand/v2"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/papers/myrinet"
)

// Adapters is how host adapters behave, in bytes and byte times.
type Adapters struct {
	// CutThrough lets an adapter begin to pass a worm on to the first
	// successor while the worm still comes, if nothing else waits for the
	// output port (M14, M20). Otherwise worms are stored and forwarded.
	CutThrough bool
	// Buffer is how many bytes each class of buffers has (M15); 0 means
	// no limit. A worm is taken in only if there is room for all of it.
	Buffer int
	// Acks makes adapters answer multicast worms with ACK, or with
	// NACK if there is no room. After a NACK the sender stops, and
	// begins again after Timeout byte times and a random part of
	// as many. That time doubles with each further NACK, up to 64
	// times: else worms that are refused again and again fill the
	// network. Without Acks, worms that find no room are lost.
	Acks    bool
	Timeout int
	// AckBytes is the length of an ACK or NACK. These alternate with other worms.
	AckBytes int
	// Handle and HandleByte are how long an adapter's processor is busy
	// with each multicast worm, of its own host or another, before it
	// passes it on: byte times for a worm and for each of its bytes. It
	// handles one worm after another, and there is no cut-through then.
	Handle     int
	HandleByte float64
}

type wormKind uint8

const (
	unicastWorm wormKind = iota
	multicastWorm
	ackWorm
	nackWorm
)

// worm is a packet that crosses the network from one host to another.
type worm struct {
	kind     wormKind
	accepted bool
	msg      int32 // index, or none
	job      int32 // index of the sender's job that it carries or answers
	from, to int32 // hosts
	bytes    int32
	class    myrinet.Class // of buffers that it asks for
	hops     int32         // left in the header; -1 does not count
	copy     int32         // index of the copy at the receiver
}

// message is what a host originates.
type message struct {
	group    int32 // none for unicast
	origin   int32
	bytes    int32
	left     int32 // members that lack it
	refs     int32 // worms and copies that refer to it
	born     int64
	serial   int64
	measured bool
	lost     bool // lost for some member
}

// copyOf is a multicast message that an adapter keeps until it has been passed on.
type copyOf struct {
	msg     int32
	host    int32
	from    int32 // host that sent it, an index in the schedule
	held    myrinet.Class
	hops    int32 // left in the header
	pending int32 // sends not done yet
	coming  int32 // hop that brings it, none when all has come
	passing bool  // its sends are queued
	used    bool
}

// job is one send of a copy.
type job struct {
	copy    int32
	send    myrinet.Send
	hop     int32 // of its worm, or none
	acked   bool
	nacked  bool
	sent    bool
	used    bool
	taken   bool  // the receiver has room, and the ACK is on its way
	refused uint8 // how often, 6 at most
}

// adapter is one host.
type adapter struct {
	at       int32   // index in the schedule, or none
	groups   []int32 // groups that it sends to
	queue    []int32 // worms to send, from first on
	first    int
	control  []int32 // ACKs and NACKs
	sending  int32   // worm, or none
	answered bool    // the last worm was an ACK or NACK: others have their turn
	busy     int64   // time until which the processor is busy
	free     []int32 // free bytes of buffers, by class
	out      fabric.PortID
	rng      *rand.Rand
	backlog  int32 // own messages not sent yet
	full     bool  // the backlog is full: the next birth waits
	next     int64 // time of the next birth
	// Counts.
	came, lost  int64 // multicast worms
	got         int64 // bytes of multicast data
	transmitted [2]int64
}

// adapters has the state of all hosts.
type adapters struct {
	n        *network
	o        *Options
	s        *myrinet.Schedule
	host     []adapter
	hostOf   []int32 // by index in the schedule
	worms    []worm
	freeWorm []int32
	msgs     []message
	freeMsg  []int32
	copies   []copyOf
	freeCopy []int32
	jobs     []job
	freeJob  []int32
	lids     []fabric.LID // by host
	lanes    map[laneKey]*lane
	serial   int64
	r        *Result
	nacks    int64 // since a worm was last taken in
	search   int64 // NACKs at which to look for a deadlock
}

func newItem[T any](items *[]T, free *[]int32, v T) int32 {
	if k := len(*free); k > 0 {
		i := (*free)[k-1]
		*free = (*free)[:k-1]
		(*items)[i] = v
		return i
	}
	*items = append(*items, v)
	return int32(len(*items) - 1)
}

func (a *adapters) dlid(w int32) fabric.LID { return a.lids[a.worms[w].to] }

// enqueue puts a worm behind the others of a host.
func (a *adapters) enqueue(host, w int32) {
	h := &a.host[host]
	if k := a.worms[w].kind; k == ackWorm || k == nackWorm {
		h.control = append(h.control, w)
	} else {
		h.queue = append(h.queue, w)
	}
	a.pump(host)
}

// idle returns true if a host would send a new worm at once, after ACKs at most.
func (a *adapters) idle(h *adapter) bool {
	return h.first == len(h.queue) && (h.sending == none || a.worms[h.sending].kind >= ackWorm)
}

// pump makes a host send its next worm, unless it is sending.
func (a *adapters) pump(host int32) {
	h := &a.host[host]
	if h.sending != none {
		return
	}
	var w int32
	switch {
	case len(h.control) > 0 && (!h.answered || h.first == len(h.queue)):
		w = h.control[0]
		h.answered = true
		h.control = slices.Delete(h.control, 0, 1)
	case h.first < len(h.queue):
		w = h.queue[h.first]
		h.first++
		h.answered = false
		if h.first > 64 && 2*h.first > len(h.queue) {
			h.queue = h.queue[:copy(h.queue, h.queue[h.first:])]
			h.first = 0
		}
	default:
		return
	}
	h.sending = w
	x := &a.worms[w]
	prev := none
	switch x.kind {
	case unicastWorm:
		h.transmitted[0]++
	case multicastWorm:
		h.transmitted[1]++
		prev = a.copies[a.jobs[x.job].copy].coming
	}
	hop := a.n.send(w, int32(h.out), prev, x.bytes)
	if x.kind == multicastWorm {
		a.jobs[x.job].hop = hop
	}
}

// sent handles the moment at which the tail of a worm leaves its host.
func (a *adapters) sent(hop int32) {
	w := a.n.hops[hop].worm
	x := &a.worms[w]
	host := x.from
	h := &a.host[host]
	h.sending = none
	switch x.kind {
	case unicastWorm:
		a.launched(host, x.bytes)
	case multicastWorm:
		j := &a.jobs[x.job]
		j.hop = none
		if !j.nacked {
			j.sent = true
			if j.acked || !a.o.Adapters.Acks {
				a.endJob(x.job)
			}
		}
	}
	a.pump(host)
}

// head handles the moment at which the head of a worm comes to a host.
func (a *adapters) head(host, hop int32) {
	w := a.n.hops[hop].worm
	x := &a.worms[w]
	if x.kind != multicastWorm {
		return
	}
	h := &a.host[host]
	h.came++
	ok := a.reserve(h, x.class, x.bytes)
	through := ok && a.o.Adapters.CutThrough && !a.o.Adapters.slow() && a.idle(h)
	if a.o.Adapters.Acks {
		kind := ackWorm
		if !ok {
			kind = nackWorm
		}
		a.enqueue(host, newItem(&a.worms, &a.freeWorm, worm{kind: kind, msg: none, job: x.job, from: host, to: x.from, bytes: int32(a.o.Adapters.AckBytes), copy: none}))
		x = &a.worms[w]
	}
	if !ok {
		h.lost++
		if !a.o.Adapters.Acks {
			a.msgs[x.msg].lost = true
		}
		return
	}
	a.nacks, a.search = 0, firstSearch
	x.accepted = true
	if a.o.Adapters.Acks {
		a.jobs[x.job].taken = true
	}
	c := newItem(&a.copies, &a.freeCopy, copyOf{
		msg: x.msg, host: host, from: a.host[x.from].at, held: x.class, hops: x.hops, coming: hop, used: true,
	})
	x.copy = c
	a.msgs[x.msg].refs++
	a.copies[c].pending = int32(len(a.sends(c)))
	if through && a.copies[c].pending > 0 {
		a.ready(c)
	}
}

// firstSearch is how many NACKs in a row start a search for a deadlock.
const firstSearch = 64

// sends returns the sends that pass a copy on.
func (a *adapters) sends(c int32) []myrinet.Send {
	x := &a.copies[c]
	if x.hops == 0 {
		return nil
	}
	return a.s.Groups[a.msgs[x.msg].group].Of(a.host[x.host].at, x.held, x.from)
}

// wormOf makes the worm that carries a job.
func (a *adapters) wormOf(j, host int32) int32 {
	msg := a.copies[a.jobs[j].copy].msg
	a.msgs[msg].refs++
	return newItem(&a.worms, &a.freeWorm, worm{
		kind: multicastWorm, msg: msg, job: j, from: host, to: a.hostOf[a.jobs[j].send.To], bytes: a.msgs[msg].bytes,
		class: a.jobs[j].send.Class, hops: max(a.copies[a.jobs[j].copy].hops-1, -1), copy: none,
	})
}

// reserve takes room for a worm; it returns false if there is none.
func (a *adapters) reserve(h *adapter, class myrinet.Class, bytes int32) bool {
	if a.o.Adapters.Buffer == 0 {
		return true
	}
	if h.free[class] < bytes {
		return false
	}
	h.free[class] -= bytes
	return true
}

// tail handles the moment at which the last byte of a worm comes to a host.
func (a *adapters) tail(host, hop int32) {
	w := a.n.hops[hop].worm
	x := a.worms[w]
	switch x.kind {
	case unicastWorm:
		a.deliver(x.msg, host)
	case ackWorm, nackWorm:
		a.answer(x.job, x.kind == ackWorm)
	case multicastWorm:
		if x.accepted {
			c := x.copy
			if x.bytes != a.n.hops[hop].total {
				a.n.fail("a worm of %d bytes that was taken in has %d", x.bytes, a.n.hops[hop].total)
				return
			}
			a.host[host].got += int64(x.bytes)
			a.deliver(x.msg, host)
			y := &a.copies[c]
			y.coming = none
			if !y.passing {
				a.handle(c)
			} else if y.pending == 0 {
				a.release(c)
			}
		}
	}
	if x.msg != none {
		a.unref(x.msg)
	}
	a.freeWorm = append(a.freeWorm, w)
}

// slow returns true if the processor takes any time.
func (x *Adapters) slow() bool { return x.Handle > 0 || x.HandleByte > 0 }

// handle makes the processor pass a copy on when it is done with those before.
func (a *adapters) handle(c int32) {
	o := &a.o.Adapters
	x := &a.copies[c]
	h := &a.host[x.host]
	if o.slow() {
		h.busy = max(h.busy, a.n.now) + int64(o.Handle) + int64(o.HandleByte*float64(a.msgs[x.msg].bytes))
	}
	if h.busy > a.n.now {
		a.n.push(h.busy-a.n.now, evReady, c, 0)
	} else {
		a.ready(c)
	}
}

// ready handles the moment at which a copy may be passed on.
func (a *adapters) ready(c int32) {
	x := &a.copies[c]
	x.passing = true
	if x.pending == 0 {
		a.release(c)
		return
	}
	host := x.host
	for _, s := range a.sends(c) {
		j := newItem(&a.jobs, &a.freeJob, job{copy: c, send: s, hop: none, used: true})
		if a.ordered(c) {
			l := a.laneOf(j)
			if l.busy {
				l.queue = append(l.queue, j)
				continue
			}
			l.busy = true
		}
		a.enqueue(host, a.wormOf(j, host))
	}
}

// lane has the sends of a host to another one for an ordered
// group. A worm that was refused and sent again would be overtaken
// by the group's next one, and the order lost, which the paper
// does not mention. So each waits for the ACK of the one before.
type lane struct {
	busy  bool
	queue []int32 // jobs
}

type laneKey struct{ group, at, to int32 }

// ordered returns true if all members get the messages of a copy's group in one order.
func (a *adapters) ordered(c int32) bool {
	return a.o.Adapters.Acks && a.s.Groups[a.msgs[a.copies[c].msg].group].Ordered()
}

func (a *adapters) laneOf(j int32) *lane {
	x := &a.jobs[j]
	k := laneKey{a.msgs[a.copies[x.copy].msg].group, x.send.At, x.send.To}
	l := a.lanes[k]
	if l == nil {
		l = new(lane)
		a.lanes[k] = l
	}
	return l
}

// answer handles an ACK (ok) or a NACK that has come for a job.
func (a *adapters) answer(j int32, ok bool) {
	x := &a.jobs[j]
	if ok {
		x.acked = true
		if x.sent {
			a.endJob(j)
		}
		return
	}
	a.r.Nacks++
	a.nacks++
	x.nacked = true
	host := a.copies[x.copy].host
	if x.hop != none && a.n.cut(x.hop) {
		a.n.fail("a NACK has come for a worm that was not sent")
		return
	}
	x = &a.jobs[j]
	x.sent = false
	timeout := int64(a.o.Adapters.Timeout) << x.refused
	x.refused = min(x.refused+1, 6)
	timeout += a.host[host].rng.Int64N(timeout + 1)
	a.n.push(timeout, evRetry, j, 0)
	if a.nacks >= a.search {
		a.search = 2 * a.nacks
		a.stuck()
	}
}

// retry sends the worm of a job again.
func (a *adapters) retry(j int32) {
	x := &a.jobs[j]
	x.nacked = false
	host := a.copies[x.copy].host
	a.enqueue(host, a.wormOf(j, host))
}

// endJob ends a job, and starts the next of its lane.
func (a *adapters) endJob(j int32) {
	c := a.jobs[j].copy
	if a.ordered(c) {
		l := a.laneOf(j)
		if l.busy = len(l.queue) > 0; l.busy {
			next := l.queue[0]
			l.queue = slices.Delete(l.queue, 0, 1)
			a.enqueue(a.copies[a.jobs[next].copy].host, a.wormOf(next, a.copies[a.jobs[next].copy].host))
		}
	}
	a.jobs[j].used = false
	a.freeJob = append(a.freeJob, j)
	x := &a.copies[c]
	x.pending--
	if x.pending == 0 && x.coming == none {
		a.release(c)
	}
}

// release frees the buffer of a copy.
func (a *adapters) release(c int32) {
	x := &a.copies[c]
	h := &a.host[x.host]
	host, msg, held, bytes := x.host, x.msg, x.held, a.msgs[x.msg].bytes
	x.used = false
	if held != myrinet.SendBuffer && a.o.Adapters.Buffer > 0 {
		h.free[held] += bytes
	}
	a.freeCopy = append(a.freeCopy, c)
	a.unref(msg)
	if held == myrinet.SendBuffer {
		a.launched(host, bytes)
	}
}

func (a *adapters) unref(m int32) {
	x := &a.msgs[m]
	if x.refs--; x.refs == 0 {
		if x.left != 0 && !x.lost {
			a.n.fail("message %d is gone, and %d members lack it", x.serial, x.left)
		}
		if a.measures() {
			a.r.Went++
		}
		a.freeMsg = append(a.freeMsg, m)
	}
}

// deliver handles the arrival of a message at a host.
func (a *adapters) deliver(m, host int32) {
	x := &a.msgs[m]
	if a.o.Delivered != nil && x.group != none {
		a.o.Delivered(int(x.group), host, x.serial)
	}
	if host == x.origin && x.group != none {
		return // its own message comes back as a confirmation, or for the order
	}
	x.left--
	if x.group == none {
		return
	}
	if x.measured {
		a.r.Received++
	}
	if x.left == 0 {
		a.r.Completed++
		if x.measured {
			half := &a.r.Early
			if x.born >= a.o.Warmup+a.o.Time/2 {
				half = &a.r.Late
			}
			half.add(float64(a.n.now - x.born))
			a.r.Last.add(float64(a.n.now - x.born))
		}
	}
}

// stuck looks for copies that wait for each other's buffers, and so
// can never be passed on. If there are any, it ends the simulation.
func (a *adapters) stuck() {
	if a.o.Adapters.Buffer == 0 {
		return
	}
	type pool struct {
		host  int32
		class myrinet.Class
	}
	// dead counts the bytes of copies that are not known to go on.
	dead := make(map[pool]int32)
	pending := make([][]int32, len(a.copies))
	goes := make([]bool, len(a.copies))
	for j := range a.jobs {
		if x := &a.jobs[j]; x.used && !x.taken {
			pending[x.copy] = append(pending[x.copy], int32(j))
		}
	}
	add := func(c int32, sign int32) {
		if x := &a.copies[c]; x.held != myrinet.SendBuffer {
			dead[pool{x.host, x.held}] += sign * a.msgs[x.msg].bytes
		}
	}
	for c := range a.copies {
		if a.copies[c].used {
			add(int32(c), 1)
		}
	}
	fits := func(j int32) bool {
		x := &a.jobs[j]
		p := pool{a.hostOf[x.send.To], x.send.Class}
		return int32(a.o.Adapters.Buffer)-dead[p] >= a.msgs[a.copies[x.copy].msg].bytes
	}
	for changed := true; changed; {
		changed = false
		for c := range a.copies {
			if !a.copies[c].used || goes[c] {
				continue
			}
			if !slices.ContainsFunc(pending[c], func(j int32) bool { return !fits(j) }) {
				goes[c] = true
				changed = true
				add(int32(c), -1)
			}
		}
	}
	start := none
	for c := range a.copies {
		if a.copies[c].used && !goes[c] && a.copies[c].held != myrinet.SendBuffer {
			start = int32(c)
			break
		}
	}
	if start == none {
		return
	}
	// Step from a copy to one that is in its way, until one comes again.
	seen := make(map[int32]int)
	var waits []myrinet.Wait
	for c := start; ; {
		if k, ok := seen[c]; ok {
			a.n.broken = &DeadlockError{At: a.n.now, Schedule: a.s, Waits: waits[k:]}
			return
		}
		seen[c] = len(waits)
		x := &a.copies[c]
		i := slices.IndexFunc(pending[c], func(j int32) bool { return !fits(j) })
		s := a.jobs[pending[c][i]].send
		waits = append(waits, myrinet.Wait{At: s.At, Held: x.held, To: s.To, Class: s.Class, Group: int(a.msgs[x.msg].group)})
		c = none
		for k := range a.copies {
			y := &a.copies[k]
			if y.used && !goes[k] && y.host == a.hostOf[s.To] && y.held == s.Class {
				c = int32(k)
				break
			}
		}
		if c == none {
			a.n.fail("a copy waits for room that no host has")
			return
		}
	}
}
