package ibsim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// process is a running child, which does not outlive this program.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended and its output is read
	err  error         // Wait's; valid once done is closed
}

// begin starts cmd in a process group of its own, so that a
// Ctrl-C on the terminal reaches only ibweave. The kernel kills
// the child when the thread that forked it ends, thus whenever
// ibweave dies; that thread waits for the end of the child.
func begin(cmd *exec.Cmd) (*process, error) {
	isolate(cmd)
	cmd.WaitDelay = 5 * time.Second
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// kill ends the group and waits for the child.
func (p *process) kill() {
	select {
	case <-p.done:
	default:
		_ = killGroup(p.cmd.Process) // it may have ended by now
		<-p.done
	}
}

// lineCutter cuts what add gets into lines, without their ends. Of a line
// above 64 KiB it keeps the beginning. It is not safe for concurrent use.
type lineCutter struct {
	each    func(line []byte) // called for every complete line
	partial []byte
}

const maxLine = 1 << 16

func (w *lineCutter) add(b []byte) {
	for found := true; found; {
		var line []byte
		line, b, found = bytes.Cut(b, []byte("\n"))
		w.partial = append(w.partial, line[:min(len(line), maxLine-len(w.partial))]...)
		if found {
			w.each(w.partial)
			w.partial = w.partial[:0]
		}
	}
}

// tail keeps the end of what is written to it. It is safe for concurrent use.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const maxTail = 4096

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(b) >= maxTail {
		t.buf = append(t.buf[:0], b[len(b)-maxTail:]...)
		return len(b), nil
	}
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - maxTail; over > maxTail {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(b), nil
}

// tailLines is the number of lines of a program's output that an error quotes.
const tailLines = 5

// last returns the last lines, the oldest first.
func (t *tail) last() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(bytes.ToValidUTF8(t.buf, []byte("?")))), "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	if len(lines) == 1 && lines[0] == "" {
		return nil
	}
	return lines
}

// ExitError means that a program failed. It has the end of the program's output.
type ExitError struct {
	Program string
	Output  []string // the last lines of its standard error
	Err     error
}

func (e *ExitError) Error() string {
	s := e.Program + ": " + e.Err.Error()
	for _, line := range e.Output {
		s += "\n    " + line
	}
	return s
}

// Unwrap returns the cause.
func (e *ExitError) Unwrap() error { return e.Err }

// exitError returns the error for a program that ended with
// err; if ctx ended the program, the error is ctx's.
func exitError(ctx context.Context, cmd *exec.Cmd, output *tail, err error) error {
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
		if errors.Is(cause, context.Canceled) {
			return cause
		}
	}
	e := &ExitError{Program: filepath.Base(cmd.Path), Err: err}
	if output != nil {
		e.Output = output.last()
	}
	return e
}

// errTimeout returns the error of a run that did not finish within limit.
func errTimeout(what string, limit time.Duration) error {
	return fmt.Errorf("%s within %v: %w", what, limit, context.DeadlineExceeded)
}
