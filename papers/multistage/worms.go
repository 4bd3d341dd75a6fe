package multistage

import (
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/routing/banyan"
)

// Worm is a multicast packet under wormhole or virtual cut-through switching.
type Worm struct {
	Source int
	To     Region
	Start  int // the earliest cycle in which its first flit enters
}

// Taking is how a worm that asks for both outputs of an
// element takes them, which the paper leaves open (E-N7).
type Taking uint8

const (
	// Greedy takes each output when it becomes free, and holds it while it waits for the other.
	Greedy Taking = iota
	// Atomic takes both at once, when both are free; then each branch goes on by itself.
	Atomic
	// LockStep is Atomic with branches that go on together: a flit leaves by both or by none.
	LockStep
)

var takings = [...]string{Greedy: "greedy", Atomic: "atomic", LockStep: "lock-step"}

// ParseTaking reads greedy, atomic or lock-step.
func ParseTaking(s string) (Taking, error) {
	if i := slices.Index(takings[:], s); i >= 0 {
		return Taking(i), nil
	}
	return 0, fmt.Errorf("taking %q: want one of %v", s, takings)
}

// WormOptions are the choices of RunWorms.
type WormOptions struct {
	Stages int
	Flits  int // of each worm, the header among them
	// Buffer is how many flits each input of an element has room for.
	// With Flits or more, a blocked worm leaves the links behind it
	// free: virtual cut-through; with less it is wormhole switching.
	Buffer int
	// First returns the input, 0 or 1, whose worm gets an output
	// that both inputs of an element ask for in one cycle. Nil
	// means the upper one, 0, everywhere.
	First func(stage, element int) int
	Take  Taking
}

// Wait is a worm that cannot go on because of another one.
type Wait struct {
	Worm, For int // indices
	Stage     int
	Link      int // output link that For has, or that leads to a buffer where For is first
}

// WormResult is the outcome of RunWorms.
type WormResult struct {
	Cycles  int   // until the last flit arrived, or nothing could move
	Arrived []int // by address: worms that have arrived as a whole
	// Deadlock is a cycle of worms that wait for each other; nil when all
	// arrived.
	Deadlock []Wait
}

// flit of a worm; number 0 is the header.
type flit struct{ worm, number int32 }

// wormNet simulates worms. Links are numbered by stage and input link; want and
// next are about the worm that is first in the buffer of a link.
type wormNet struct {
	o         *WormOptions
	worms     []Worm
	size      int
	fifo      [][]flit // by link
	full      []bool   // by link: no room when the cycle began
	want      []Outputs
	next      [][2]int32 // by link and output: number of the flit to send there next
	owner     []int32    // by stage and output link: input link of the element plus one, 0 for free
	holder    []int32    // by stage and output link: the worm that has it, or had it last
	sent      []int32    // by worm: flits that left the source
	remaining int        // flits still to arrive, at all nodes
	arrived   []int      // by address: worms that arrived
}

// RunWorms sends worms, one from a processor, through a network
// until all have arrived or wait for each other. In a cycle a link
// carries one flit. A worm that asks for two outputs takes them as
// WormOptions.Take says. It copies a flit to each output that had
// room behind it when the cycle began, in LockStep to both or
// none. A flit leaves its buffer when both copies are made, so
// that with small buffers a blocked branch soon stops the other. A
// worm keeps an output until its last flit has passed.
//
// Errors: an address or a source that the network does not
// have, two worms from one source, no flits, no buffers.
//
// Theorem 2 of the paper says that preferring the upper input link
// keeps this from deadlock. That holds for two worms and with room
// for whole packets. With three worms and less room it fails (E-N7):
// one of them holds up one branch of another, whose branches then
// differ in priority, since the order of arrival comes before that
// of the inputs. With Greedy four processors are enough for that,
// with Atomic and LockStep it takes further stages.
func RunWorms(worms []Worm, o WormOptions) (*WormResult, error) {
	x, err := newWormNet(worms, &o)
	if err != nil {
		return nil, err
	}
	cycle := 0
	for ; x.remaining > 0; cycle++ {
		moved := x.runCycle(cycle)
		if moved {
			continue
		}
		waiting := false
		for i, w := range worms {
			waiting = waiting || x.sent[i] == 0 && w.Start > cycle
		}
		if !waiting {
			return &WormResult{Cycles: cycle, Arrived: x.arrived, Deadlock: x.findCycle()}, nil
		}
	}
	return &WormResult{Cycles: cycle, Arrived: x.arrived}, nil
}

func newWormNet(worms []Worm, o *WormOptions) (*wormNet, error) {
	if o.Stages < 1 || o.Stages > banyan.MaxStages {
		return nil, fmt.Errorf("banyan network of %d stages: want 1 to %d", o.Stages, banyan.MaxStages)
	}
	if o.Flits < 1 || o.Buffer < 1 {
		return nil, fmt.Errorf("%d flits, buffers of %d: want at least 1", o.Flits, o.Buffer)
	}
	size := 1 << o.Stages
	links := o.Stages * size
	x := &wormNet{o: o, worms: worms, size: size, fifo: make([][]flit, links), full: make([]bool, links), want: make([]Outputs, links), next: make([][2]int32, links),
		owner: make([]int32, links), holder: make([]int32, links), sent: make([]int32, len(worms)), arrived: make([]int, size)}
	room := min(o.Buffer, 16) // to begin with
	flits := make([]flit, links*room)
	for l := range x.fifo {
		x.fifo[l] = flits[l*room : l*room : (l+1)*room]
	}
	seen := make([]bool, size)
	for i, w := range worms {
		if w.Source < 0 || w.Source >= size || seen[w.Source] {
			return nil, fmt.Errorf("worm %d from processor %d: want 0 to %d, each once", i, w.Source, size-1)
		}
		seen[w.Source] = true
		if err := w.To.Check(o.Stages); err != nil {
			return nil, fmt.Errorf("worm %d: %w", i, err)
		}
		x.remaining += o.Flits * w.To.Size()
	}
	return x, nil
}

// wantedOutputs returns the outputs that a worm asks for at an input
// link of a stage: those that lead to some of its destinations.
func (x *wormNet) wantedOutputs(worm int32, stage, link int) (o Outputs) {
	r := x.worms[worm].To
	for b := range 2 {
		first := link>>(stage+1)<<(stage+1) | b<<stage
		last := first | (1<<stage - 1)
		if r.Min <= last && r.Max >= first {
			o |= 1 << b
		}
	}
	return o
}

// runCycle moves flits by a link each, to buffers that had room
// when the cycle began, and returns true if anything moved.
// Elements go by stage from 0 on, so that no flit moves twice.
func (x *wormNet) runCycle(now int) bool {
	moved := false
	for i, q := range x.fifo {
		x.full[i] = len(q) >= x.o.Buffer
	}
	for stage := range x.o.Stages {
		for e := range x.size / 2 {
			moved = x.moveElement(stage, e) || moved
		}
	}
	for i, w := range x.worms {
		at := (x.o.Stages-1)*x.size + banyan.Shuffle(x.o.Stages, w.Source)
		if w.Start <= now && int(x.sent[i]) < x.o.Flits && !x.full[at] {
			x.pushFlit(x.o.Stages-1, at%x.size, flit{int32(i), x.sent[i]})
			x.sent[i]++
			moved = true
		}
	}
	return moved
}

// moveElement gives out the outputs of an element, and moves flits from its inputs.
func (x *wormNet) moveElement(stage, e int) bool {
	moved := false
	at := stage*x.size + 2*e
	first := 0
	if x.o.First != nil {
		first = x.o.First(stage, e)
	}
	ready := [2]bool{true, true}
	for _, in := range [2]int{first, 1 - first} {
		x.takeOutputs(at, in)
	}
	if x.o.Take == LockStep {
		for in := range ready {
			ready[in] = x.goesTogether(stage, at, in)
		}
	}
	for b := range 2 {
		if x.owner[at+b] == 0 || !ready[x.owner[at+b]-1] {
			continue
		}
		l := at + int(x.owner[at+b]) - 1
		if !x.hasNextFlit(l, b) || x.isFull(stage, at+b) {
			continue
		}
		f := flit{x.holder[at+b], x.next[l][b]}
		if stage > 0 {
			x.pushFlit(stage-1, banyan.Butterfly(stage, 2*e+b), f)
		} else {
			x.remaining--
			if int(f.number) == x.o.Flits-1 {
				x.arrived[2*e+b]++
			}
		}
		moved = true
		x.next[l][b]++
		if int(f.number) == x.o.Flits-1 {
			x.owner[at+b] = 0
		}
	}
	for l := at; l < at+2; l++ {
		x.popFlits(stage, l)
	}
	return moved
}

// takeOutputs gives free outputs to the worm at the front of input in, 0 or 1, of the
// element whose first link is at: all that it still asks for, or none unless Greedy.
func (x *wormNet) takeOutputs(at, in int) {
	l := at + in
	if len(x.fifo[l]) == 0 {
		return
	}
	var free Outputs
	for b := range 2 {
		if x.want[l].Has(b) && x.next[l][b] == 0 && x.owner[at+b] == 0 {
			free |= 1 << b
		}
	}
	if x.o.Take != Greedy && free != x.want[l] {
		return
	}
	for b := range 2 {
		if free.Has(b) {
			x.owner[at+b], x.holder[at+b] = int32(in)+1, x.fifo[l][0].worm
		}
	}
}

// isFull returns true if there was no room behind an output when the cycle began.
func (x *wormNet) isFull(stage, out int) bool {
	return stage > 0 && x.full[(stage-1)*x.size+banyan.Butterfly(stage, out-stage*x.size)]
}

// goesTogether returns true if the next flit of an input can
// leave by all outputs that its worm asks for.
func (x *wormNet) goesTogether(stage, at, in int) bool {
	for b := range 2 {
		if x.want[at+in].Has(b) && (int(x.owner[at+b]) != in+1 || !x.hasNextFlit(at+in, b) || x.isFull(stage, at+b)) {
			return false
		}
	}
	return true
}

// hasNextFlit returns true if a buffer has the next flit that its first worm sends to
// output b.
func (x *wormNet) hasNextFlit(l, b int) bool {
	q := x.fifo[l]
	if len(q) == 0 {
		return false
	}
	i := int(x.next[l][b] - q[0].number)
	return i < len(q) && q[i].worm == q[0].worm
}

// popFlits removes from a buffer the flits that were sent to all outputs.
func (x *wormNet) popFlits(stage, l int) {
	q := x.fifo[l]
	if len(q) == 0 {
		return
	}
	copied := int32(x.o.Flits)
	for b := range 2 {
		if x.want[l].Has(b) {
			copied = min(copied, x.next[l][b])
		}
	}
	n := copied - q[0].number
	if n == 0 {
		return
	}
	x.fifo[l] = q[:copy(q, q[n:])]
	if int(copied) == x.o.Flits {
		x.startWorm(stage, l)
	}
}

// pushFlit puts a flit at the end of a buffer.
func (x *wormNet) pushFlit(stage, link int, f flit) {
	l := stage*x.size + link
	x.fifo[l] = append(x.fifo[l], f)
	if len(x.fifo[l]) == 1 && f.number == 0 {
		x.startWorm(stage, l)
	}
}

// startWorm sets a link up for the worm whose header is now first in its buffer.
func (x *wormNet) startWorm(stage, l int) {
	if len(x.fifo[l]) > 0 {
		x.want[l] = x.wantedOutputs(x.fifo[l][0].worm, stage, l%x.size)
		x.next[l] = [2]int32{}
	}
}

// findCycle finds a cycle of worms that wait for each other, from the lowest index on.
func (x *wormNet) findCycle() []Wait {
	waits := make([][]Wait, len(x.worms))
	for stage := range x.o.Stages {
		for link := range x.size {
			at := stage*x.size + link
			if len(x.fifo[at]) == 0 {
				continue
			}
			w := x.fifo[at][0].worm
			for b := range 2 {
				if !x.want[at].Has(b) || int(x.next[at][b]) == x.o.Flits {
					continue
				}
				out := link&^1 | b
				holder := w
				if o := x.owner[stage*x.size+out]; o != 0 && int(o)-1 != link%2 {
					holder = x.holder[stage*x.size+out]
				} else if stage > 0 && (o != 0 || x.o.Take == Greedy) {
					next := x.fifo[(stage-1)*x.size+banyan.Butterfly(stage, out)]
					if len(next) > 0 {
						holder = next[0].worm
					}
				}
				if holder != w {
					waits[w] = append(waits[w], Wait{Worm: int(w), For: int(holder), Stage: stage, Link: out})
				}
			}
		}
	}
	return graph.FirstCycleOf(waits, func(w Wait) int { return w.For })
}
