package ibsim

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
)

// OpenSM is an OpenSM that keeps running: it answers requests to subnet administration,
// and sweeps again when the fabric changes. It is safe for concurrent use.
type OpenSM struct {
	// Process is OpenSM's. Done is closed when OpenSM has ended, by itself or not.
	Process *os.Process
	Done    <-chan struct{}

	cfg    OpenSMConfig  // with its defaults
	begun  chan struct{} // closed when there is a Process
	cancel context.CancelCauseFunc
	sweeps chan struct{} // has an element if a sweep has ended since it was emptied
	up     chan struct{} // closed by the first SUBNET UP

	mu    sync.Mutex
	run   OpenSMRun
	watch *logWatch
	err   error
}

var errStopped = errors.New("stopped")

// StartOpenSM runs OpenSM on the Sim's fabric until Stop, or until ctx is
// done or the Sim ends. It returns when OpenSM has brought the subnet up and
// written its dumps, which may take cfg.Timeout. OpenSM takes one of the
// Sim's places for clients, reads no file outside of cfg's, and writes none
// outside of Dir. cfg.Line is called until OpenSM has ended. Light sweeps
// are every ten seconds, unless cfg.Options has another sweep_interval.
//
// Errors: a *MissingError, an *ExitError, ctx's own, and one that wraps
// ErrNotUp and has OpenSM's last error message. With an error, the *OpenSM
// is nil, or it has ended and its Run returns the outcome.
func StartOpenSM(ctx context.Context, s *Sim, cfg OpenSMConfig) (*OpenSM, error) {
	// Otherwise OpenSM keeps its log in a buffer until it ends.
	cfg.Options = append([]string{"force_log_flush TRUE"}, cfg.Options...)
	ctx, cancel := context.WithCancelCause(ctx)
	cmd, err := prepareOpenSM(ctx, s, &cfg)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	done := make(chan struct{})
	o := &OpenSM{
		Done: done, cfg: cfg, begun: make(chan struct{}), cancel: cancel, up: make(chan struct{}), sweeps: make(chan struct{}, 1),
		run: OpenSMRun{Dir: cfg.Dir},
	}
	o.watch = newLogWatch(&o.run, o.logLine)
	cmd.Stdout = logReader{o}
	go func() {
		err := s.run(ctx, cmd, func() {
			o.Process = cmd.Process
			close(o.begun)
		})
		if context.Cause(ctx) == errStopped {
			err = nil
		}
		o.mu.Lock()
		o.watch.takeLastLine()
		o.err = err
		o.mu.Unlock()
		close(done)
	}()
	if err := o.waitUp(); err != nil {
		return o, err
	}
	<-o.begun
	return o, nil
}

// logLine is called for each line of the log.
func (o *OpenSM) logLine(l LogLine) {
	if l.Message == upMessage {
		select {
		case o.sweeps <- struct{}{}:
		default:
		}
	}
	if o.cfg.Line != nil {
		o.cfg.Line(l)
	}
}

// logReader reads the log of an OpenSM from its standard output.
type logReader struct{ o *OpenSM }

func (r logReader) Write(b []byte) (int, error) {
	o := r.o
	o.mu.Lock()
	defer o.mu.Unlock()
	was := o.run.UP
	o.watch.lines.add(b)
	switch {
	case o.run.UP && !was:
		close(o.up)
	case o.watch.hopeless && !o.run.UP:
		o.cancel(ErrNotUp)
	}
	return len(b), nil
}

// waitUp waits until the subnet is up. If it returns an error, OpenSM has ended.
func (o *OpenSM) waitUp() error {
	timer := time.NewTimer(o.cfg.Timeout)
	defer timer.Stop()
	var err error
	select {
	case <-o.up:
		return nil
	case <-o.Done:
		if err = o.err; err == nil || o.watch.hopeless {
			err = ErrNotUp
		}
	case <-timer.C:
		o.cancel(errStopped)
		<-o.Done
		err = &ExitError{Program: o.cfg.Program, Err: errTimeout("not up", o.cfg.Timeout)}
	}
	o.cancel(errStopped)
	return o.run.withComplaint(err)
}

// Run returns the state of the run so far.
func (o *OpenSM) Run() OpenSMRun {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.run
}

// Sweep makes OpenSM sweep the whole fabric, and returns when the switches
// have all that follows from the fabric as it was when Sweep began. OpenSM
// repeats the sweep until the subnet is up. Errors: the reason why OpenSM
// has ended, and ctx's. It must not be called concurrently.
func (o *OpenSM) Sweep(ctx context.Context) error {
	// The first sweep that ends may have begun before, so the second counts.
	for range 2 {
		select {
		case <-o.sweeps:
		default:
		}
		if err := o.sweep(ctx); err != nil {
			return err
		}
	}
	return nil
}

// sweep waits for the end of one sweep. It repeats the signal each
// second: a signal that comes between OpenSM's check for signals and
// its sleep is noticed only after that sleep, ten seconds (main.c).
func (o *OpenSM) sweep(ctx context.Context) error {
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		if err := o.Process.Signal(syscall.SIGHUP); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		select {
		case <-o.sweeps:
			return nil
		case <-again.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-o.Done:
			if err := o.Stop(); err != nil {
				return err
			}
			return errStopped
		}
	}
}

// Stop kills OpenSM and waits for its end. If OpenSM had ended
// before, it returns the reason. It may be called more than once.
func (o *OpenSM) Stop() error {
	o.cancel(errStopped)
	<-o.Done
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
