package fabric

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// Workers is a sync.WaitGroup whose functions may panic: Wait then panics with a
// *WorkerPanic, in the goroutine that waits, where it can be recovered. A panic
// that nobody recovers ends the process, and that may be OpenSM.
type Workers struct {
	wg       sync.WaitGroup
	once     sync.Once
	panicked *WorkerPanic
}

// WorkerPanic is the first panic of a goroutine of Workers.
type WorkerPanic struct {
	Value any
	Stack []byte // of the goroutine
}

func (p *WorkerPanic) Error() string { return fmt.Sprintf("panic: %v\n\n%s", p.Value, p.Stack) }

// Go calls f in a goroutine.
func (w *Workers) Go(f func()) {
	w.wg.Go(func() {
		defer func() {
			if v := recover(); v != nil {
				p := &WorkerPanic{v, debug.Stack()}
				w.once.Do(func() { w.panicked = p })
			}
		}()
		f()
	})
}

// Wait waits until all functions have returned or panicked.
func (w *Workers) Wait() {
	w.wg.Wait()
	if w.panicked != nil {
		panic(w.panicked)
	}
}

// Guarded is f, for an errgroup.Group: a panic becomes a *WorkerPanic as an
// error.
func Guarded(f func() error) func() error {
	return func() (err error) {
		defer func() {
			if v := recover(); v != nil {
				err = &WorkerPanic{v, debug.Stack()}
			}
		}()
		return f()
	}
}
