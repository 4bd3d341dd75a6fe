// Package par spreads work over the CPUs: it is the worker pool of all rooms. It
// makes no promise to other modules.
//
// It returns a panic of a worker as an error of type *Panic, because an unrecovered panic in
// a goroutine would end the process, which may be OpenSM's.
package par

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Panic is a panic of a worker as an error.
type Panic struct {
	Value any
	Stack []byte // of the worker
}

func (p *Panic) Error() string { return fmt.Sprintf("panic: %v\n\n%s", p.Value, p.Stack) }

// Catch calls f and returns its error. A panic becomes
// a *Panic, and so does a memory fault: package files
// maps files, and somebody may cut one short.
func Catch(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			if p, ok := v.(*Panic); ok { // of a worker in f
				err = p
			} else {
				err = &Panic{v, debug.Stack()}
			}
		}
	}()
	return f()
}

// Go calls f in a goroutine. The function that it returns
// waits for f and returns its error, at each call.
func Go(f func() error) (wait func() error) {
	done := make(chan struct{})
	var err error
	go func() {
		defer close(done)
		err = Catch(f)
	}()
	return func() error {
		<-done
		return err
	}
}

// Workers returns how many goroutines serve n calls: at most
// wanted, by default (0) one for each CPU, and at least one.
func Workers(wanted, n int) int {
	if wanted <= 0 {
		wanted = runtime.GOMAXPROCS(0)
	}
	return max(1, min(wanted, n))
}

// ForEach calls do for 0 to n-1 on several goroutines, see Workers, in about this
// order. After an error or the end of ctx it makes no more calls and waits for
// those under way. It returns the error of the lowest i, which is the same in each
// run as long as do depends on i alone, else the error of ctx.
func ForEach(ctx context.Context, workers, n int, do func(i int) error) error {
	_, err := ForEachWith(ctx, workers, n, func() struct{} { return struct{}{} },
		func(_ struct{}, i int) error { return do(i) })
	return err
}

// ForEachWith is ForEach for work that needs scratch memory or adds up a
// result: each goroutine calls start for a W of its own, and gives it to do.
// It returns all Ws in no certain order; chance decides which calls had which W.
func ForEachWith[W any](ctx context.Context, workers, n int, start func() W, do func(w W, i int) error) ([]W, error) {
	p := pool{n: n}
	list := make([]W, Workers(workers, n))
	p.run(ctx, len(list), func(worker int) func(i int) error {
		list[worker] = start()
		return func(i int) error { return do(list[worker], i) }
	})
	if p.err != nil {
		return nil, p.err
	}
	return list, ctx.Err()
}

// Each calls do for 0 to n-1, on all CPUs, for work that
// cannot fail. It panics with the *Panic of a call.
func Each(n int, do func(i int)) {
	EachWith(n, func() struct{} { return struct{}{} }, func(_ struct{}, i int) { do(i) })
}

// EachWith is Each with scratch memory, see ForEachWith.
func EachWith[W any](n int, start func() W, do func(w W, i int)) []W {
	list, err := ForEachWith(context.Background(), 0, n, start, func(w W, i int) error {
		do(w, i)
		return nil
	})
	if err != nil {
		panic(err)
	}
	return list
}

// pool hands out the numbers 0 to n-1 in ascending order. Each number that was
// handed out is worked on, so that the lowest one with an error is always found.
type pool struct {
	n       int
	next    atomic.Int64
	stopped atomic.Bool

	mu  sync.Mutex
	at  int // the lowest i with an error
	err error
}

func (p *pool) run(ctx context.Context, workers int, newDo func(worker int) func(i int) error) {
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() {
			var do func(i int) error
			if err := Catch(func() error { do = newDo(worker); return nil }); err != nil {
				p.fail(-1, err)
			}
			for !p.stopped.Load() && ctx.Err() == nil {
				i := int(p.next.Add(1)) - 1
				if i >= p.n {
					return
				}
				if err := Catch(func() error { return do(i) }); err != nil {
					p.fail(i, err)
				}
			}
		})
	}
	wg.Wait()
}

func (p *pool) fail(i int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil || i < p.at {
		p.at, p.err = i, err
	}
	p.stopped.Store(true)
}
