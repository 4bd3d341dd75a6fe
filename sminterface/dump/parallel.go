package dump

import (
	"io"
	"runtime"
	"sync"
	"sync/atomic"
)

func workers(n int) int { return max(1, min(n, runtime.GOMAXPROCS(0))) }

// forEach calls do for 0 to n-1, on all CPUs. Calls with the same worker, a
// number below workers(n), follow each other.
func forEach(n int, do func(worker, i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for w := range workers(n) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(w, i)
			}
		})
	}
	wg.Wait()
}

// writeInOrder formats pieces 0 to n-1 on all CPUs and writes them in order.
// format appends piece i to b and gives the result. No more than two pieces a
// CPU are in memory. It ends with the first error of w.
func writeInOrder(w io.Writer, n int, format func(worker, i int, b []byte) []byte) error {
	procs := workers(n)
	if procs == 1 {
		var b []byte
		for i := range n {
			b = format(0, i, b[:0])
			if _, err := w.Write(b); err != nil {
				return err
			}
		}
		return nil
	}
	// A formatter takes a free buffer before it takes a piece, so that a
	// piece is less than len(done) ahead of the one to be written, and each
	// has its own place in done.
	free := make(chan []byte, 2*procs)
	done := make([]chan []byte, 2*procs)
	for i := range done {
		done[i] = make(chan []byte, 1)
		free <- nil
	}
	stop := make(chan struct{})
	var next atomic.Int64
	var wg sync.WaitGroup
	for p := range procs {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				case b := <-free:
					i := int(next.Add(1)) - 1
					if i >= n {
						return
					}
					done[i%len(done)] <- format(p, i, b[:0])
				}
			}
		})
	}
	var err error
	for i := range n {
		b := <-done[i%len(done)]
		if _, err = w.Write(b); err != nil {
			break
		}
		free <- b
	}
	close(stop)
	wg.Wait()
	return err
}
