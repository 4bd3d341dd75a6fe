package ibsim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// OpenSM is an OpenSM that stays: it answers requests to subnet administration,
// and sweeps again when the fabric changes. It is safe for concurrent use.
type OpenSM struct {
	cmd    *exec.Cmd
	cancel context.CancelCauseFunc
	sweeps chan struct{} // holds one element when a sweep has ended since it was emptied
	up     chan struct{} // closed by the first SUBNET UP
	done   chan struct{} // closed when it has ended

	mu  sync.Mutex
	run OpenSMRun
	err error
}

var errStopped = errors.New("stopped")

// StartOpenSM runs OpenSM on the Sim's fabric until Stop, or until ctx is done
// or the Sim ends, and returns when it has brought the subnet up, which may
// take cfg.Timeout. It takes one of the Sim's places for clients. cfg is used as
// by RunOpenSM; cfg.Line is called until OpenSM has ended. Light sweeps are
// every ten seconds unless cfg.Options say otherwise (sweep_interval).
//
// Errors are those of RunOpenSM, and OpenSM has ended then.
func StartOpenSM(ctx context.Context, s *Sim, cfg OpenSMConfig) (*OpenSM, error) {
	if cfg.Program == "" {
		cfg.Program = "opensm"
	}
	if cfg.Flags == 0 {
		cfg.Flags = 0x03
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 10 * time.Minute
	}
	dir, err := filepath.Abs(cfg.Dir)
	if cfg.Dir == "" {
		dir = filepath.Join(s.dir, "opensm")
	} else if err != nil {
		return nil, err
	}
	cache := filepath.Join(dir, "cache")
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return nil, err
	}
	// Else it keeps its log to itself until it ends.
	cfg.Options = append([]string{"force_log_flush TRUE"}, cfg.Options...)
	conf := filepath.Join(dir, "opensm.conf")
	if err := os.WriteFile(conf, []byte(openSMConf(dir, cfg)), 0o600); err != nil {
		return nil, err
	}
	args := []string{"-F", conf, "-D", fmt.Sprintf("%#x", cfg.Flags)}
	for _, opt := range []struct{ flag, value string }{{"-R", cfg.Engine}, {"-U", cfg.LFTs}, {"-M", cfg.LIDMatrix}} {
		if opt.value == "" {
			continue
		}
		if opt.flag != "-R" {
			// OpenSM runs in another folder.
			if opt.value, err = filepath.Abs(opt.value); err != nil {
				return nil, err
			}
		}
		args = append(args, opt.flag, opt.value)
	}
	log := filepath.Join(dir, "opensm.log")
	if err := os.Remove(log); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}

	ctx, cancel := context.WithCancelCause(ctx)
	cmd := s.Command(ctx, cfg.Program, append(args, cfg.Args...)...)
	cmd.Env = append(append(cmd.Env, "OSM_TMP_DIR="+dir, "OSM_CACHE_DIR="+cache), cfg.Env...)
	o := &OpenSM{cmd: cmd, cancel: cancel, up: make(chan struct{}), done: make(chan struct{}), sweeps: make(chan struct{}, 1), run: OpenSMRun{Dir: dir}}
	watch := &logWatch{run: &o.run, each: func(l LogLine) {
		if l.Message == upMessage {
			select {
			case o.sweeps <- struct{}{}:
			default:
			}
		}
		if cfg.Line != nil {
			cfg.Line(l)
		}
	}}
	begun, ended := make(chan struct{}), make(chan struct{})
	followed := make(chan error, 1)
	go func() {
		isUp := false
		followed <- followFile(log, ended, func(b []byte) {
			o.mu.Lock()
			defer o.mu.Unlock()
			watch.write(b)
			if o.run.UP && !isUp {
				isUp = true
				close(o.up)
			}
			if watch.hopeless && !isUp {
				cancel(ErrNotUp)
			}
		})
	}()
	go func() {
		start := time.Now()
		err := s.run(ctx, cmd, func() { close(begun) })
		close(ended)
		if logErr := <-followed; err == nil {
			err = logErr
		}
		if context.Cause(ctx) == errStopped {
			err = nil
		}
		o.mu.Lock()
		watch.finish()
		o.run.Total = time.Since(start)
		o.err = err
		o.mu.Unlock()
		close(o.done)
	}()
	timer := time.NewTimer(cfg.Timeout)
	defer timer.Stop()
	select {
	case <-o.up:
		<-begun
		return o, nil
	case <-o.done:
		err = o.err
		if err == nil {
			err = ErrNotUp
		}
	case <-timer.C:
		cancel(errStopped)
		<-o.done
		err = &ExitError{Program: cfg.Program, Err: &errTimeout{cfg.Timeout, "not up"}}
	}
	cancel(errStopped)
	if errors.Is(err, ErrNotUp) && len(o.run.Errors) > 0 {
		err = fmt.Errorf("%w: %s", err, o.run.Errors[len(o.run.Errors)-1])
	}
	return nil, err
}

// Run is what has become of it so far.
func (o *OpenSM) Run() OpenSMRun {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.run
}

// PID is OpenSM's process.
func (o *OpenSM) PID() int { return o.cmd.Process.Pid }

// Sweep has OpenSM look at the whole fabric, and returns when all that follows
// from the fabric as it was when Sweep began is in the switches. OpenSM tries
// again by itself as long as it does not bring the subnet up. Errors: why OpenSM
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

// sweep waits for the end of one sweep. A signal between OpenSM's look for
// signals and its sleep waits for the end of that, ten seconds (main.c): so it is
// sent again.
func (o *OpenSM) sweep(ctx context.Context) error {
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		if err := o.cmd.Process.Signal(syscall.SIGHUP); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		select {
		case <-o.sweeps:
			return nil
		case <-again.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-o.done:
			if err := o.Stop(); err != nil {
				return err
			}
			return errStopped
		}
	}
}

// Done is closed when OpenSM has ended, by itself or not.
func (o *OpenSM) Done() <-chan struct{} { return o.done }

// Stop kills OpenSM and waits for it. The error is why it had ended before, if
// it had. It may be called more than once.
func (o *OpenSM) Stop() error {
	o.cancel(errStopped)
	<-o.done
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
