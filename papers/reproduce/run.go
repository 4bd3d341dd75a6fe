package reproduce

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Options are the settings of Run.
type Options struct {
	// Quick takes fewer points, and shorter measurements, for a first look.
	Quick bool
	// Seed is the seed of everything random.
	Seed uint64
	// Order is that of the negative binomial distribution of the times between messages of SPAM's
	// hosts (E-S4), 1 or more: such a time is the sum of that number of geometric times. 0 means 1.
	Order int
	// Workers is how many points are measured at the same time; 0 is the number
	// of CPUs. No result depends on it.
	Workers int
	// Version goes into the figures. A figure of another version does not count as made.
	Version string
	// Done, if not nil, is called with each figure when it is complete, one call
	// at a time, in no particular order. Its error ends Run.
	Done func(w Work, f *Figure) error
	// Progress, if not nil, is told how much of all is done, in no particular
	// unit. It is called from several goroutines.
	Progress func(done, total int)
}

// share is the units of progress of an experiment.
const share = 1000

// Lab is where an experiment runs: it has the conditions and shares the CPUs.
type Lab struct {
	Quick bool
	Seed  uint64
	Order int // Options.Order, 1 or more
	run   *run
	calls int  // calls of Each to come; 0 means 1
	each  bool // Each has been called
	busy  bool // Each is at work
}

// run has the slots, values and progress of one Run.
type run struct {
	ctx      context.Context
	slots    chan struct{}
	memo     sync.Map // by key: a function that makes the value at its first call
	lock     sync.Mutex
	done     int // units of progress
	total    int
	progress func(done, total int)
}

// Each calls work for 0 to n-1, several at the same time, and returns
// the first error. An experiment does all its measuring in it: a call
// for each point keeps its result by i. Calls must not call Each.
func (l *Lab) Each(n int, work func(ctx context.Context, i int) error) error {
	if l.busy {
		panic("a call of Each calls Each, which on one CPU would wait for itself")
	}
	l.busy = true
	defer func() { l.busy = false }()
	l.each = l.each || n > 0
	g, ctx := errgroup.WithContext(l.run.ctx)
	points, share := 0, share/max(1, l.calls)
	for i := range n {
		select {
		case <-ctx.Done():
			if err := g.Wait(); err != nil {
				return err
			}
			return l.run.ctx.Err()
		case l.run.slots <- struct{}{}:
		}
		g.Go(func() error {
			defer func() { <-l.run.slots }()
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := work(ctx, i); err != nil {
				return err
			}
			l.run.lock.Lock()
			defer l.run.lock.Unlock()
			points++
			l.run.advance(share*points/n - share*(points-1)/n)
			return nil
		})
	}
	return g.Wait()
}

// advance reports more units of progress; the caller holds the lock.
func (r *run) advance(units int) {
	r.done += units
	if r.progress != nil && units > 0 {
		r.progress(r.done, r.total)
	}
}

// Once makes a value that several experiments of a Run use, once
// for each key: a compiled fabric, or a point that two figures
// share. The key says everything that the value depends on,
// besides the lab's conditions. Callers wait while it is made.
func Once[T any](l *Lab, key string, make func(ctx context.Context) (T, error)) (T, error) {
	made, _ := l.run.memo.LoadOrStore(key, sync.OnceValues(func() (T, error) { return make(l.run.ctx) }))
	return made.(func() (T, error))()
}

// Run measures the figures of work, and returns them in its order. Errors are
// those of experiments, with the ID of the figure, of Options.Done, and ctx's.
func Run(ctx context.Context, work []Work, opt Options) ([]*Figure, error) {
	workers := opt.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	g, inner := errgroup.WithContext(ctx)
	r := &run{ctx: inner, slots: make(chan struct{}, workers), total: share * len(work), progress: opt.Progress}
	figures := make([]*Figure, len(work))
	var done sync.Mutex
	// A few at a time: the last points of one leave CPUs to the
	// next, and figures are complete in about their order.
	g.SetLimit(workers + 1)
	for i, w := range work {
		if inner.Err() != nil {
			break
		}
		g.Go(func() error {
			if err := inner.Err(); err != nil {
				return err
			}
			lab := &Lab{Quick: opt.Quick, Seed: opt.Seed, Order: max(1, opt.Order), run: r}
			f, err := w.Run(lab)
			if err == nil {
				err = ctx.Err() // Each may have been cut short
			}
			if err != nil {
				return fmt.Errorf("%s: %w", w.ID(), err)
			}
			if !lab.each {
				r.lock.Lock()
				r.advance(share)
				r.lock.Unlock()
			}
			f.ID, f.Title = w.ID(), w.Title
			f.Version, f.Quick, f.Seed, f.Order = opt.Version, opt.Quick, opt.Seed, opt.Order
			f.endCurves()
			figures[i] = f
			if opt.Done == nil {
				return nil
			}
			done.Lock()
			defer done.Unlock()
			return opt.Done(w, f)
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return figures, nil
}
