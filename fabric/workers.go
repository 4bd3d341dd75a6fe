package fabric

import "github.com/ibweave/ibweave/internal/par"

// Workers, WorkerPanic and Guarded are package par's, until their last callers have
// moved there.
type Workers struct{ waits []func() error }

type WorkerPanic = par.Panic

// Go calls f in a goroutine.
func (w *Workers) Go(f func()) {
	w.waits = append(w.waits, par.Go(func() error { f(); return nil }))
}

// Wait waits until all functions have returned or panicked.
func (w *Workers) Wait() {
	var first error
	for _, wait := range w.waits {
		if err := wait(); first == nil {
			first = err
		}
	}
	if first != nil {
		panic(first)
	}
}

// Guarded is f with par.Catch.
func Guarded(f func() error) func() error { return func() error { return par.Catch(f) } }
