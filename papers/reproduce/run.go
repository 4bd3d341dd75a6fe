package reproduce

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Options are what a caller may ask of Run.
type Options struct {
	// Quick takes fewer points, and shorter measurements, for a first look.
	Quick bool
	// Seed is of everything random.
	Seed uint64
	// Order of the negative binomial distribution that times between the messages of SPAM's hosts
	// have (E-S4), 1 or more: they are sums of that number of geometric times. 0 is 1.
	Order int
	// Workers is how many points are measured at the same time; 0 is the number
	// of CPUs. No result depends on it.
	Workers int
	// Version goes into the figures, and tells those of one program from those
	// of another.
	Version string
	// Done, if not nil, is called with each figure when it is complete, one call
	// at a time, in no particular order. Its error ends Run.
	Done func(w Work, f *Figure) error
	// Progress, if not nil, is told how much of all is done, in no particular
	// unit. It is called from several goroutines.
	Progress func(done, total int)
}

// share is how many units of progress an experiment is.
const share = 1000

// Lab is where an experiment is run: it says under which conditions, and has the
// CPUs.
type Lab struct {
	Quick bool
	Seed  uint64
	Order int // Options.Order, 1 or more
	run   *run
	calls int  // of Each that are to come, 1 if 0
	each  bool // has been called
}

// run is what the experiments of one Run share.
type run struct {
	ctx      context.Context
	slots    chan struct{}
	memo     sync.Map // by key: a function that gives what is made at its first call
	lock     sync.Mutex
	done     int // units of progress
	total    int
	progress func(done, total int)
}

// Each calls work for 0 to n-1, several at the same time, and gives the first
// error. It is what an experiment does all its measuring in: for each point one
// call, which keeps its result by i. Calls must not call Each.
func (l *Lab) Each(n int, work func(ctx context.Context, i int) error) error {
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

// advance tells of more units of progress, under the lock.
func (r *run) advance(units int) {
	r.done += units
	if r.progress != nil && units > 0 {
		r.progress(r.done, r.total)
	}
}

// Once makes what several experiments of a Run use, by a key, one time only: a
// compiled fabric, or a point that two figures share. The key says everything
// that the result depends on beside the lab's conditions. Callers that come while
// it is made wait.
func Once[T any](l *Lab, key string, make func(ctx context.Context) (T, error)) (T, error) {
	made, _ := l.run.memo.LoadOrStore(key, sync.OnceValues(func() (T, error) { return make(l.run.ctx) }))
	return made.(func() (T, error))()
}

// Run measures the figures of work, and gives them in its order. Errors are those
// of experiments, with the ID of the figure, of Options.Done, and ctx's.
func Run(ctx context.Context, work []Work, opt Options) ([]*Figure, error) {
	workers := opt.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	g, inner := errgroup.WithContext(ctx)
	r := &run{ctx: inner, slots: make(chan struct{}, workers), total: share * len(work), progress: opt.Progress}
	figures := make([]*Figure, len(work))
	var done sync.Mutex
	// A few at a time: the last points of one leave CPUs to the next, and figures
	// are complete in about their order.
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
