package cli

import (
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/ibweave/ibweave/fabric"
)

// progressAfter is how long a stage may take before a terminal shows it.
const progressAfter = time.Second

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Stage shows the progress of work that may take long. Its
// methods may be called concurrently, End only once.
type Stage struct {
	Done, Total atomic.Int64
	stop        chan struct{}
	ended       sync.WaitGroup
}

// StartStage shows a stage on screen, if that is a terminal,
// once it has lasted progressAfter: as a bar if the total is
// known by then, else as the time taken so far.
func StartStage(screen io.Writer, name string) *Stage {
	s := &Stage{stop: make(chan struct{})}
	if isTerminal(screen) {
		start := time.Now()
		s.ended.Go(func() {
			select {
			case <-s.stop:
			case <-time.After(progressAfter):
				s.draw(screen, fabric.Printable(name), start)
			}
		})
	}
	return s
}

func (s *Stage) draw(w io.Writer, name string, start time.Time) {
	const redraw = 100 * time.Millisecond
	p := mpb.New(mpb.WithOutput(w), mpb.WithWidth(40), mpb.WithRefreshRate(redraw))
	elapsed := decor.Any(func(decor.Statistics) string { return " " + time.Since(start).Round(time.Second).String() })
	var bar *mpb.Bar
	if total := s.Total.Load(); total > 0 {
		bar = p.AddBar(total, mpb.PrependDecorators(decor.Name(name+" ")), mpb.AppendDecorators(decor.Percentage(), elapsed))
	} else {
		bar = p.New(1, mpb.SpinnerStyle().PositionLeft(), mpb.BarWidth(2),
			mpb.PrependDecorators(decor.Name(name+" ")), mpb.AppendDecorators(elapsed))
	}
	tick := time.NewTicker(redraw)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			bar.Abort(true)
			p.Wait()
			return
		case <-tick.C:
			if total := s.Total.Load(); total > 0 {
				// A full bar would end.
				bar.SetCurrent(min(s.Done.Load(), total-1))
			}
		}
	}
}

// Set reports that done of total steps are done.
func (s *Stage) Set(done, total int) {
	s.Done.Store(int64(done))
	s.Total.Store(int64(total))
}

// End takes the stage off the screen and returns when it is gone.
func (s *Stage) End() {
	close(s.stop)
	s.ended.Wait()
}
