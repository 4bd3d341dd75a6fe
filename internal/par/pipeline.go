package par

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// spins is how often an idle worker of a Pipeline looks for work before it sleeps. Waking
// it takes as long as a dozen short calls, and it may wake on the CPU of its waker.
const (
	spins    = 1000
	spinners = 2 // workers that look at the same time; more would not find more
)

// Step is a part of the work on number i of a Pipeline. Its scratch memory has the index slot.
type Step func(slot, i int) error

// Pipeline calls prepare, do and finish, in this order, for each of 0 to n-1. do
// is called for one number after the other, ascending; prepare and finish run on
// all CPUs meanwhile. At most slots numbers are under way; number i has slot i %
// slots from prepare to finish. An error ends Pipeline as it ends ForEach.
func Pipeline(ctx context.Context, n, slots int, prepare, do, finish Step) error {
	p := &pipeline{n: n, taken: make([]bool, slots), ready: make([]bool, slots)}
	p.changed.L = &p.mu
	var wg sync.WaitGroup
	for worker := range Workers(0, n) {
		wg.Go(func() { p.run(ctx, worker == 0, prepare, do, finish) })
	}
	wg.Wait()
	if p.err != nil {
		return p.err
	}
	return ctx.Err()
}

type pipeline struct {
	n        int
	changes  atomic.Int64 // how often changed was signalled
	spinning atomic.Int32 // workers that look before they sleep
	mu       sync.Mutex   // guards all below
	changed  sync.Cond
	taken    []bool // by slot: true from prepare to finish
	ready    []bool // by slot: true from prepare to do
	// For each step, the lowest number that it has not begun.
	toPrepare, toDo, toFinish int

	at  int // the lowest number with an error
	err error
}

// run makes calls until none are left. Only the
// worker with does true calls do, so that the
// data of do stay in the caches of one CPU.
func (p *pipeline) run(ctx context.Context, does bool, prepare, do, finish Step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.signal() // others may wait for a worker that ctx ends
	for p.err == nil && p.toFinish < p.n && ctx.Err() == nil {
		slots := len(p.taken)
		switch {
		case does && p.ready[p.toDo%slots]:
			p.call(do, p.toDo)
			p.ready[p.toDo%slots] = false
			p.toDo++
		case p.toPrepare < p.n && !p.taken[p.toPrepare%slots]:
			i := p.toPrepare
			p.toPrepare++
			p.taken[i%slots] = true
			p.call(prepare, i)
			p.ready[i%slots] = true
		case p.toFinish < p.toDo:
			i := p.toFinish
			p.toFinish++
			p.call(finish, i)
			p.taken[i%slots] = false
		default:
			p.wait()
			continue
		}
		p.signal()
	}
}

// signal tells all workers that something has changed.
func (p *pipeline) signal() {
	p.changes.Add(1)
	p.changed.Broadcast()
}

// wait waits until another worker signals.
func (p *pipeline) wait() {
	seen := p.changes.Load()
	p.mu.Unlock()
	if p.spinning.Add(1) <= spinners {
		for i := 0; i < spins && p.changes.Load() == seen; i++ {
			runtime.Gosched()
		}
	}
	p.spinning.Add(-1)
	p.mu.Lock()
	if p.changes.Load() == seen {
		p.changed.Wait()
	}
}

// call calls step for number i, without the lock.
func (p *pipeline) call(step Step, i int) {
	p.mu.Unlock()
	err := Catch(func() error { return step(i%len(p.taken), i) })
	p.mu.Lock()
	if err != nil && (p.err == nil || i < p.at) {
		p.at, p.err = i, err
	}
}
