package traffic

import (
	"fmt"
	"math"
	"math/bits"
)

// Program lists messages. A message is sent when all messages that it waits for have arrived.
type Program struct {
	Messages []Message // each waits only for earlier ones
	start    []int32   // by message, and one more: where its part of after begins
	after    []int32
}

// Message is a message from one rank to another.
type Message struct {
	Src, Dst int32 // ranks; Dst may be All
	// Bytes is the size, at most MaxBytes. A message of 0 bytes is not sent: it has arrived when all
	// that it waits for have.
	Bytes int64
}

// All as the receiver of a message is all other ranks of its operation, by multicast.
const All = -1

// MaxBytes bounds Bytes.
const MaxBytes = 1 << 30

// After lists the messages that message i waits for.
func (p *Program) After(i int) []int32 { return p.after[p.start[i]:p.start[i+1]] }

// Writer writes a program of operations that follow each other. A rank begins an operation when
// the last messages that it sends and receives in the previous one have arrived. It does not
// wait for other ranks.
type Writer struct {
	// Multicast lets broadcasts and all-gathers send each part once, to all ranks by multicast.
	Multicast bool
	// Tree is the tree along which all-reduces add up; nil leaves them rings and trees of their own.
	Tree *Reduction

	p       *Program
	limit   int       // most messages
	ready   []int32   // by rank: the message that its next operation waits for, or none
	members []int32   // ranks of the operation that is being written
	over    [][]int32 // by rank: messages recorded by method last
}

// none is no message, or no rank.
const none = -1

// NewWriter begins a program of some ranks, with at most limit messages.
func NewWriter(ranks, limit int) *Writer {
	w := &Writer{p: &Program{start: []int32{0}}, limit: limit, ready: make([]int32, ranks), over: make([][]int32, ranks)}
	for i := range w.ready {
		w.ready[i] = none
	}
	return w
}

// TooLongError says that a program has more than Limit messages.
type TooLongError struct{ Limit int }

func (e *TooLongError) Error() string { return fmt.Sprintf("more than %d messages", e.Limit) }

// Add writes an operation among members, in their order. size is the bytes of data; for a matrix it
// is the bytes of an amount of 1, which may be a fraction. The error is a *TooLongError, or about a
// wrong number of members.
func (w *Writer) Add(o Operation, members []int32, size float64) error {
	n := len(members)
	p, err := o.Pattern(n)
	if err != nil {
		return err
	}
	w.members = members
	if o.AllReduce && w.Tree != nil {
		w.reduce(int64(math.Round(size)))
	} else if o.steps != nil {
		o.steps(w, n, int64(math.Round(size)))
	} else {
		w.atOnce(p, n, size*o.Share(n))
	}
	w.finish()
	if w.full() {
		return &TooLongError{w.limit}
	}
	return nil
}

// full returns true if there are too many messages.
func (w *Writer) full() bool { return len(w.p.Messages) > w.limit }

// Program returns the program that was written.
func (w *Writer) Program() *Program { return w.p }

// send writes a message, in parts of at most MaxBytes, and returns its number.
func (w *Writer) send(src, dst int, bytes int64, after ...int32) int32 {
	to := int32(All)
	if dst != All {
		to = w.members[dst]
	}
	if bytes <= MaxBytes {
		return w.message(w.members[src], to, bytes, after)
	}
	var parts []int32
	for ; bytes > 0; bytes -= MaxBytes {
		parts = append(parts, w.message(w.members[src], to, min(bytes, MaxBytes), after))
	}
	return w.message(w.members[src], to, 0, parts)
}

func (w *Writer) message(src, dst int32, bytes int64, after []int32) int32 {
	p := w.p
	if w.full() { // Add says so
		return none
	}
	for _, m := range after {
		if m != none {
			p.after = append(p.after, m)
		}
	}
	p.Messages = append(p.Messages, Message{src, dst, bytes})
	p.start = append(p.start, int32(len(p.after)))
	return int32(len(p.Messages)) - 1
}

// first returns the message that the first messages of a rank in the operation wait for.
func (w *Writer) first(rank int) int32 { return w.ready[w.members[rank]] }

// last records that message ends the operation for src and dst.
func (w *Writer) last(src, dst int, message int32) {
	a, b := w.members[src], w.members[dst]
	w.over[a] = append(w.over[a], message)
	w.over[b] = append(w.over[b], message)
}

// finish ends an operation: at each rank the next one waits for the messages in w.over.
func (w *Writer) finish() {
	for _, r := range w.members {
		if len(w.over[r]) > 0 {
			w.ready[r] = w.message(r, r, 0, w.over[r])
			w.over[r] = w.over[r][:0]
		}
	}
}

// finishAll ends an operation: at all ranks the next one waits for the given messages.
func (w *Writer) finishAll(messages []int32) {
	end := w.send(0, 0, 0, messages...)
	for _, r := range w.members {
		w.ready[r] = end
	}
}

// part returns the size of part i if bytes are divided into n parts.
func part(bytes int64, n, i int) int64 { return parts(bytes, n, i+1) - parts(bytes, n, i) }

// parts returns the size of parts 0 to few-1 of n, rounded down.
func parts(bytes int64, n, few int) int64 {
	hi, lo := bits.Mul64(uint64(bytes), uint64(few))
	share, _ := bits.Div64(hi, lo, uint64(n))
	return int64(share)
}

// atOnce sends all messages of a pattern. A rank sends to the ranks above it first.
func (w *Writer) atOnce(p Pattern, n int, unit float64) {
	type item struct {
		dst   int
		bytes int64
	}
	lists := make([][]item, n)
	for dst := range n {
		for src, amount := range p.Senders(n, dst) {
			lists[src] = append(lists[src], item{dst, int64(math.Round(float64(amount) * unit))})
		}
	}
	for src, list := range lists {
		above := 0
		for above < len(list) && list[above].dst < src {
			above++
		}
		for i := range list {
			to := list[(above+i)%len(list)]
			w.last(src, to.dst, w.send(src, to.dst, to.bytes, w.first(src)))
		}
	}
}

// Sizes of NCCL's protocol Simple, in bytes: buffers of 4 MiB have 8 steps. A ring moves chunks of 4 steps
// in slices of 2, each of which is sent on as soon as it has arrived; trees and chains move single
// steps (Hu et al., Demystifying NCCL, arXiv 2507.04786, 2025, and NCCL's collectives.h, release 2.19).
const (
	ncclStep  = 512 << 10
	ncclSlice = 2 * ncclStep
	ncclChunk = 4 * ncclStep
)

// window is the most pieces under way from a rank to another in trees and chains. NCCL has 8: a
// network card sends to several ranks in turn, whereas simulated hosts send in order.
const window = 2

// ring moves a block of each rank along a ring, the given number of steps. A rank sends its own
// block, then what it received in the step before, slice by slice. Much data takes several loops.
func (w *Writer) ring(n int, size int64, steps int) {
	if n < 2 {
		return
	}
	loops := max(1, int((size+int64(n)*ncclChunk-1)/(int64(n)*ncclChunk)))
	for loop := 0; loop < loops && !w.full(); loop++ {
		data := part(size, loops, loop)
		w.ringLoop(n, data, steps)
		w.finish()
	}
}

func (w *Writer) ringLoop(n int, data int64, steps int) {
	slices := make([]int, n) // by block
	for b := range slices {
		slices[b] = max(1, int((part(data, n, b)+ncclSlice-1)/ncclSlice))
	}
	got := make([][]int32, n) // by rank: slices of the step before
	for step := 0; step < steps && !w.full(); step++ {
		sent := make([][]int32, n) // by receiver
		for rank := range n {
			block := ((rank-step)%n + n) % n
			next := (rank + 1) % n
			for i := range slices[block] {
				after := int32(none)
				if step > 0 {
					after = got[rank][i]
				}
				m := w.send(rank, next, part(part(data, n, block), slices[block], i), w.first(rank), after)
				sent[next] = append(sent[next], m)
				if step == steps-1 {
					w.last(rank, next, m)
				}
			}
		}
		got = sent
	}
}

// trees halves the data for two trees: each adds up its half to the root, and sends the sum down.
func (w *Writer) trees(n int, size int64) {
	if n < 2 {
		return
	}
	for tree := 0; tree < 2 && !w.full(); tree++ {
		half := part(size, 2, tree)
		piece := int64(ncclStep)
		depth := int64(bits.Len(uint(n-1)) + 1)
		// Less data has smaller pieces, so that all levels of the tree work at once.
		for _, rule := range [...]struct{ pieces, least int64 }{{8 * depth, 128 << 10}, {4 * depth, 64 << 10}, {depth, 32 << 10}} {
			for half/piece < rule.pieces && piece > rule.least {
				piece /= 2
			}
		}
		w.tree(n, tree, half, max(1, int((half+piece-1)/piece)))
	}
}

// tree adds data up along a tree and sends the sum down, in pieces.
func (w *Writer) tree(n, tree int, data int64, pieces int) {
	parent, children := make([]int, n), make([][]int, n)
	for rank := range n {
		parent[rank], children[rank] = treeNeighbors(n, tree, rank)
	}
	order := make([]int, 0, n) // parents first
	for rank := range n {
		if parent[rank] == none {
			order = append(order, rank)
		}
	}
	for i := 0; i < len(order); i++ {
		order = append(order, children[order[i]]...)
	}
	up, down := make([][]int32, n), make([][]int32, n) // by rank, the messages to and from its parent
	before := func(list []int32, piece int) int32 {
		if k := piece - window; k >= 0 && k < len(list) {
			return list[k]
		}
		return none
	}
	for piece := 0; piece < pieces && !w.full(); piece++ {
		bytes := part(data, pieces, piece)
		var root []int32
		for i := n - 1; i >= 0; i-- {
			rank := order[i]
			after := []int32{w.first(rank), before(up[rank], piece)}
			for _, c := range children[rank] {
				after = append(after, up[c][piece])
			}
			if parent[rank] == none {
				root = after
				continue
			}
			up[rank] = append(up[rank], w.send(rank, parent[rank], bytes, after...))
		}
		for _, rank := range order {
			after := root
			if parent[rank] != none {
				after = []int32{down[rank][piece]}
			}
			for _, c := range children[rank] {
				m := w.send(rank, c, bytes, append(after, before(down[c], piece))...)
				down[c] = append(down[c], m)
				if piece+window >= pieces {
					w.last(rank, c, m)
				}
			}
		}
	}
}

// Reduction is a tree of ranks. Each adds what it receives to its own data and sends the sum to its
// parent, piece by piece.
type Reduction struct {
	Parent []int32 // by rank: a higher one; None for roots and for ranks outside the tree
	Roots  []int32 // the first adds up all data; then each sends the sum to some ranks by multicast
}

const (
	// None is no rank.
	None = none
	// A piece has the size of a packet, as switches add up packets, but there are at most mostPieces.
	pieceBytes = 4096
	mostPieces = 256
)

// reduce has all data added up along Tree and sent to all.
func (w *Writer) reduce(size int64) {
	pieces := int(max(1, min((size+pieceBytes-1)/pieceBytes, mostPieces), (size+MaxBytes-1)/MaxBytes))
	var sent []int32
	for piece := 0; piece < pieces && !w.full(); piece++ {
		bytes, got := part(size, pieces, piece), make([][]int32, len(w.Tree.Parent))
		for rank, parent := range w.Tree.Parent {
			if parent != None {
				got[parent] = append(got[parent], w.message(int32(rank), parent, bytes, append(got[rank], w.ready[rank])))
			}
		}
		for _, rank := range w.Tree.Roots {
			sent = append(sent, w.message(rank, All, bytes, got[w.Tree.Roots[0]]))
		}
	}
	w.finishAll(sent)
}

// chain has rank 0 send data along the ranks, piece by piece, as NCCL broadcasts.
func (w *Writer) chain(n int, size int64) {
	if w.multicast(n, func(rank int) int64 { return size }, 1) {
		return
	}
	pieces := max(1, int((size+ncclStep-1)/ncclStep))
	sent := make([][window]int32, n)
	for piece := 0; piece < pieces && !w.full(); piece++ {
		for rank := range n - 1 {
			got, before := int32(none), int32(none)
			if rank > 0 {
				got = sent[rank-1][piece%window]
			}
			if piece >= window {
				before = sent[rank][piece%window]
			}
			m := w.send(rank, rank+1, part(size, pieces, piece), w.first(rank), got, before)
			sent[rank][piece%window] = m
			if piece+window >= pieces {
				w.last(rank, rank+1, m)
			}
		}
	}
}

// binomial has rank 0 send data along a binomial tree. A rank that has all data sends it to its
// children; those with the most ranks below them come first.
func (w *Writer) binomial(n int, size int64) {
	if w.multicast(n, func(rank int) int64 { return size }, 1) {
		return
	}
	got := make([]int32, n)
	got[0] = none
	for rank := range n {
		low := rank & -rank
		if rank == 0 {
			low = 1 << bits.Len(uint(n-1))
		}
		for step := low / 2; step > 0; step /= 2 {
			if dst := rank + step; dst < n {
				got[dst] = w.send(rank, dst, size, got[rank], w.first(rank))
				w.last(rank, dst, got[dst])
			}
		}
	}
}

// gather has each rank get the parts of all others along a ring.
func (w *Writer) gather(n int, size int64) {
	if !w.multicast(n, func(rank int) int64 { return part(size, n, rank) }, n) {
		w.ring(n, size, n-1)
	}
}

// multicast has ranks 0 to few-1 send to all n. It returns false if n > 1 and Multicast is not
// set.
func (w *Writer) multicast(n int, bytes func(rank int) int64, few int) bool {
	if !w.Multicast || n < 2 {
		return n < 2
	}
	var sent []int32
	for rank := range few {
		sent = append(sent, w.send(rank, All, bytes(rank), w.first(rank)))
	}
	w.finishAll(sent)
	return true
}

// pairwise is an all-to-all. In step k a rank sends to the rank k places ahead; its next step
// begins when it has received this step's message (Thakur, Rabenseifner, Gropp: Optimization of
// collective communication operations in MPICH, 2005).
func (w *Writer) pairwise(n int, size int64) {
	begin := w.begin(n)
	for by := 1; by < n && !w.full(); by++ {
		w.exchange(begin, by, func(dst int) int64 { return part(size, n, dst) })
	}
}

// bruck is an all-to-all of log2(n) steps, rounded up. In step k a rank sends 2^k places ahead all
// parts whose remaining distance has bit 2^k (Bruck et al.: Efficient algorithms for all-to-all
// communications in multiport message-passing systems, 1997).
func (w *Writer) bruck(n int, size int64) {
	begin := w.begin(n)
	for by := 1; by < n; by *= 2 {
		w.exchange(begin, by, func(int) int64 { return parts(size, n, bruckParts(n, by)) })
	}
}

// begin returns, by rank, what its first step waits for.
func (w *Writer) begin(n int) []int32 {
	list := make([]int32, n)
	for rank := range list {
		list[rank] = w.first(rank)
	}
	return list
}

// exchange adds a step in which rank r sends to rank r+by, modulo n. The step waits, at each rank,
// for the message in begin; exchange puts there the one for which the next step waits.
func (w *Writer) exchange(begin []int32, by int, bytes func(dst int) int64) {
	n := len(begin)
	got := make([]int32, n)
	for rank := range n {
		dst := (rank + by) % n
		got[dst] = w.send(rank, dst, bytes(dst), begin[rank])
		w.last(rank, dst, got[dst])
	}
	for rank := range n {
		begin[rank] = w.send(rank, rank, 0, begin[rank], got[rank])
	}
}

// bruckParts counts the numbers below n that contain bit.
func bruckParts(n, bit int) int { return n/(2*bit)*bit + max(0, n%(2*bit)-bit) }
