package sim

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/text"
)

// none is no index.
const none int32 = -1

// event is an event; kind tells what a and b are.
type event struct {
	a, b int32
	kind eventKind
}

type eventKind uint8

const (
	evReady     eventKind = iota // cell a, which came by channel b, has been routed
	evInject                     // packet a is ready at its host
	evHead                       // with flits: the first flit of cell a has been routed
	evBegin                      // cell a, which has been routed, is first in its buffer
	evAsk                        // the tail of branch a can keep up with its port from now on
	evFree                       // port a has sent a packet, and branches wait for the port
	evCredit                     // output channel b gets room for more flits, a in number
	evArbitrate                  // port a chooses a branch
	evDeliver                    // packet a has arrived at port b
	evWake                       // for the driver: a and b are the halves of its id
	evDrop                       // the tail of cell a, which is to be dropped, has arrived
	evFlit                       // a flit has arrived in cell a
	evLink                       // port a has sent a flit
)

// buckets is the number of buckets in a queue's wheel, a power of two.
const buckets = 4096

// queue is a priority queue of events ordered by time, then by order of pushes: a calendar
// queue (Brown, CACM 1988). The events of one turn of its wheel are in buckets, with a bit for
// each bucket that has events. Later events are in a heap. A bucket is sorted when its time
// comes.
//
// Push and pop take constant time on average if delays are alike, and allocate nothing once the
// arrays have grown. The width of buckets does not change the order.
//
// Only the heap needs sequence numbers. A bucket keeps events in the order of
// pushes: events of the heap move to it once it is within the turn, before
// any event is pushed to it directly. So a stable sort by time gives the
// right order.
type queue struct {
	now   Time // time of the event popped last
	shift uint // a bucket is 1<<shift ps wide

	open  int64 // number of the bucket that is being popped: time >> shift
	cur   []timed
	at    int                  // cur[at:] is still to be popped, in order
	wheel int                  // events in buckets
	free  int32                // first unused node
	nodes []linked             // pool
	far   graph.Heap[later]    // events a turn or more ahead
	seq   uint64               // of the last push to far
	full  [buckets / 64]uint64 // a bit for each bucket that has events
	last  [buckets]int32       // by bucket: its events, the last pushed first
}

type timed struct {
	at    Time
	event event
}

type linked struct {
	at    Time
	next  int32
	event event
}

type later struct {
	timed
	seq uint64
}

// init makes the zero value an empty queue at time 0, with buckets of 1<<shift ps.
func (q *queue) init(shift uint) {
	q.shift, q.free, q.far.Before = shift, none, later.before
	text.Fill(q.last[:], none)
}

// len returns the number of events.
func (q *queue) len() int { return len(q.cur) - q.at + q.wheel + q.far.Len() }

// push adds an event at time at, not before now.
func (q *queue) push(at Time, e event) {
	bucket := int64(at) >> (q.shift & 63)
	if ahead := bucket - q.open; uint64(ahead-1) >= buckets-1 {
		q.pushElsewhere(at, e, ahead)
		return
	}
	i := q.free
	if i == none {
		i = int32(len(q.nodes))
		q.nodes = append(q.nodes, linked{next: none})
	}
	node := &q.nodes[i]
	q.free = node.next
	slot := uint64(bucket) % buckets
	node.at, node.event, node.next = at, e, q.last[slot]
	q.last[slot] = i
	q.full[slot/64] |= 1 << (slot % 64)
	q.wheel++
}

// pushElsewhere adds an event of the open bucket to cur, or a later one to the heap.
func (q *queue) pushElsewhere(at Time, e event, ahead int64) {
	if ahead > 0 {
		q.seq++
		q.far.Push(later{timed{at, e}, q.seq})
		return
	}
	q.cur = append(q.cur, timed{at, e})
	last := len(q.cur) - 1
	i := last
	for ; i > q.at && at < q.cur[i-1].at; i-- {
		q.cur[i] = q.cur[i-1]
	}
	q.cur[i] = timed{at, e}
}

// turn opens the next bucket that has events, when the open one is empty. It
// returns false if no event is left.
func (q *queue) turn() bool {
	q.cur, q.at = q.cur[:0], 0
	switch {
	case q.wheel > 0:
		q.open += q.ahead()
	case q.far.Len() > 0:
		q.open = int64(q.far.First().at) >> q.shift
	default:
		return false
	}
	for q.far.Len() > 0 && int64(q.far.First().at)>>q.shift < q.open+buckets {
		t := q.far.Pop()
		q.push(t.at, t.event) // to cur if it belongs to this bucket
	}
	slot := uint64(q.open) % buckets
	last := q.last[slot]
	if last == none {
		return true
	}
	// The bucket was within the turn before. So none of its events came from the
	// heap just now, and cur is empty.
	q.last[slot] = none
	q.full[slot/64] &^= 1 << (slot % 64)
	cur := q.cur
	sorted, earliest := true, Forever
	for i := last; ; {
		node := &q.nodes[i]
		cur = append(cur, timed{node.at, node.event})
		sorted = sorted && node.at <= earliest
		earliest = node.at
		if node.next == none {
			node.next = q.free
			break
		}
		i = node.next
	}
	q.cur = cur
	q.free = last
	q.wheel -= len(cur)
	slices.Reverse(cur)
	if !sorted {
		slices.SortStableFunc(cur, func(a, b timed) int { return cmp.Compare(a.at, b.at) })
	}
	return true
}

// ahead returns the distance from the open bucket to the next one with events.
func (q *queue) ahead() int64 {
	from := int((q.open + 1) & (buckets - 1))
	word := from / 64
	if w := q.full[word] >> (from % 64); w != 0 {
		return 1 + int64(bits.TrailingZeros64(w))
	}
	step := int64(64 - from%64)
	for {
		word = (word + 1) & (buckets/64 - 1)
		if w := q.full[word]; w != 0 {
			return 1 + step + int64(bits.TrailingZeros64(w))
		}
		step += 64
	}
}

// before orders by time, then by sequence.
func (t later) before(u later) bool {
	return t.at < u.at || t.at == u.at && t.seq < u.seq
}

// Time is a moment, in picoseconds from the start of the simulation, or a
// duration.
type Time int64

// Units of Time.
const (
	Picosecond  Time = 1
	Nanosecond       = 1000 * Picosecond
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond
)

// Forever lets Run go on until nothing is left to do.
const Forever Time = math.MaxInt64

// Nanoseconds is t in nanoseconds.
func (t Time) Nanoseconds() float64 { return float64(t) / float64(Nanosecond) }

// String is t in nanoseconds: "12.5ns".
func (t Time) String() string {
	return strconv.FormatFloat(t.Nanoseconds(), 'f', -1, 64) + "ns"
}

// bytePs returns the time of a byte at a data rate in megabits a second, in 1/1024
// ps, rounded up. It is exact for all rates of InfiniBand except FDR and FDR10.
func bytePs(mbps int) int64 {
	return (8_000_000*1024 + int64(mbps) - 1) / int64(mbps)
}

// takes returns the time of some bytes at a rate of bytePs, rounded up.
func takes(bytes int32, rate int64) Time {
	return Time((int64(bytes)*rate + 1023) >> 10)
}

// ParseTime reads a decimal number, 0 or more, of ps, ns, us, ms or s, such
// as "12.5ns", exactly.
func ParseTime(text string) (Time, error) {
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyz")
	decimals, ok := map[string]int{"ps": 0, "ns": 3, "us": 6, "ms": 9, "s": 12}[text[len(digits):]]
	whole, part, point := strings.Cut(digits, ".")
	n, err := strconv.ParseUint(whole+part+strings.Repeat("0", max(0, decimals-len(part))), 10, 62)
	if !ok || err != nil || whole == "" || point && part == "" || len(part) > decimals || strings.ContainsAny(digits, "+-_") {
		return 0, fmt.Errorf("time %q: want a number and ps, ns, us, ms or s, such as 12.5ns", text)
	}
	return Time(n), nil
}

// pool hands out indices of items, and reuses those put back.
type pool[T any] struct {
	items []T
	free  []int32
}

func (p *pool[T]) get() int32 {
	if n := len(p.free); n > 0 {
		i := p.free[n-1]
		p.free = p.free[:n-1]
		return i
	}
	var zero T
	p.items = append(p.items, zero)
	return int32(len(p.items) - 1)
}

func (p *pool[T]) put(i int32) { p.free = append(p.free, i) }

// live returns the number of items in use.
func (p *pool[T]) live() int { return len(p.items) - len(p.free) }
