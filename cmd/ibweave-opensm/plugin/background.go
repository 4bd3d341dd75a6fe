package plugin

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/internal/par"
)

// startTimeout and fileTimeout are how long OpenSM waits for a file, maybe on a dead server.
const (
	startTimeout = 10 * time.Second // when it starts
	fileTimeout  = 3 * time.Second  // at a sweep, and for our log
)

// How large our files may be, in bytes. groups.json has some seven bytes for each
// member of each group, guid2lid 40 for each port, a topology text 70 for each end of a cable.
const (
	maxConfig   = 1 << 20
	maxGroups   = 32 << 20
	maxGUID2LID = 16 << 20
	maxLabels   = 64 << 20
	maxJobs     = 32 << 20
)

// hangError says that a file could not be read, or written, in time.
type hangError struct {
	file  string
	after time.Duration
}

func (e *hangError) Error() string {
	return fmt.Sprintf("%s: not done within %v: its disk or file server does not answer, or it is very large", e.file, e.after)
}

// background reads a file in a goroutine of its own, at most
// one: if the file's server is dead, only that goroutine hangs,
// for ever if need be. Methods must not be called concurrently.
type background[T any] struct {
	file    string
	since   time.Time
	running chan result[T] // nil if no read runs
}

type result[T any] struct {
	value T
	err   error
}

// get returns the result of read, or a *hangError if that
// takes longer than timeout. While an earlier read hangs,
// get neither starts another one nor waits; once that
// read has ended, get returns its result.
func (b *background[T]) get(timeout time.Duration, read func() (T, error)) (T, error) {
	if b.running == nil {
		done := make(chan result[T], 1)
		b.running, b.since = done, time.Now()
		go func() {
			var r result[T]
			r.err = par.Catch(func() (err error) {
				r.value, err = read()
				return err
			})
			done <- r
		}()
	}
	late := time.NewTimer(time.Until(b.since.Add(timeout)))
	defer late.Stop()
	var r result[T]
	select {
	case r = <-b.running:
	case <-late.C:
		select {
		case r = <-b.running:
		default:
			return r.value, &hangError{b.file, timeout}
		}
	}
	b.running = nil
	return r.value, r.err
}

// lastWriter writes the latest state. Its methods return at once: a
// goroutine writes, so that a slow disk skips states and delays no sweep.
type lastWriter[T any] struct {
	write   func(*T) error           // nil writes nowhere
	trouble func(l Level, err error) // reports its error to OpenSM's log; may be nil

	mu      sync.Mutex
	state   T
	writing bool
	stale   bool   // the state has changed since the goroutine took it
	told    string // the last error, "" once a state was written
}

// update changes the state, and has the goroutine write it.
func (w *lastWriter[T]) update(change func(s *T)) {
	if w.write == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.state)
	w.stale = true
	if !w.writing {
		w.writing = true
		go w.run()
	}
}

// run writes states until the latest is written.
func (w *lastWriter[T]) run() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.stale {
		w.stale = false
		state := w.state
		w.mu.Unlock()
		err := par.Catch(func() error { return w.write(&state) })
		w.mu.Lock()
		w.tell(err)
	}
	w.writing = false
}

// tell reports an error of writing, unless the write before had the same; nil is no error.
func (w *lastWriter[T]) tell(err error) {
	said := ""
	if err != nil {
		said = err.Error()
	}
	if said != w.told && said != "" && w.trouble != nil {
		w.trouble(LogError, err)
	}
	w.told = said
}

// hasFailed returns true if the last state could not be written.
func (w *lastWriter[T]) hasFailed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.told != ""
}

// close stops reports to OpenSM's log, which may be gone while a goroutine still writes.
func (w *lastWriter[T]) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trouble = nil
}

// readFile reads a regular file of at most limit bytes. It fails if there
// is no memory to parse the file: its size multiplied by times.
func readFile(name string, limit, times int64) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if size := min(info.Size(), limit+1); size <= limit {
		if err := fits(size*times, "to read "+name); err != nil {
			return nil, err
		}
	}
	return files.ReadRegular(name, limit)
}
