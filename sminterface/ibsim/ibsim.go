// Package ibsim runs the real InfiniBand fabric simulator, ibsim,
// and real programs against it: OpenSM, infiniband-diags, or any
// other that uses libibumad. It makes no promise to other modules.
//
// Every Sim has private socket names and a private folder, so that
// many can run at once. Nothing outlives this process: ibsim and
// its clients run in process groups of their own, are killed with
// their context, and the kernel kills them when this process dies,
// even of SIGKILL (on Linux; ibsim runs nowhere else).
//
// Facts about ibsim here were measured with version 0.10 and
// read in its sources (ibsim/sim_net.c, ibsim/sim_cmd.c,
// umad2sim/umad2sim.c).
package ibsim

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// MaxClients is the number of programs that one ibsim serves
// at once (IBSIM_MAX_CLIENTS). Run waits for a free place.
const MaxClients = 10

// Config tells how to run ibsim. The zero value suits small fabrics.
type Config struct {
	// Program is ibsim, by default the one on $PATH.
	Program string
	// Nodes, Switches and Ports are the numbers that ibsim has room for;
	// switches count as nodes, and their port 0 as a port. 0 leaves ibsim's own
	// limits: 2048, 256 and 10240.
	Nodes, Switches, Ports int
	// Host is the id of the node that clients are attached to ("S-..." or
	// "H-..."), by default the first in the file.
	Host string
	// Timeout is how long ibsim may take to get ready, by default a minute.
	Timeout time.Duration
}

// Sim is a running ibsim. It is safe for concurrent use.
type Sim struct {
	socket  string
	preload string
	host    string
	dir     string // the folder that clients run in

	proc   *process
	stdin  io.WriteCloser
	stderr tail
	out    console
	slots  chan struct{} // one element per running client
	ask    sync.Mutex    // held for one console command

	ctx     context.Context // Start's, which kills ibsim
	unwatch func() bool

	mu      sync.Mutex
	closed  bool
	closing chan struct{} // closed when closed is set
	clients sync.WaitGroup
}

// Start runs ibsim on a file with ibnetdiscover text, or ibsim's own form
// of it, and returns when ibsim is ready. The Sim runs until Close, or
// until ctx is done: then it is killed, but its folder stays until Close.
//
// Errors: a *MissingError, and an *ExitError with ibsim's messages about
// the file.
func Start(ctx context.Context, topologyFile string, cfg Config) (*Sim, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	program, err := Find(cmp.Or(cfg.Program, "ibsim"))
	if err != nil {
		return nil, err
	}
	preload, err := findPreload()
	if err != nil {
		return nil, err
	}
	cfg.Timeout = cmp.Or(cfg.Timeout, time.Minute)
	if topologyFile, err = filepath.Abs(topologyFile); err != nil {
		return nil, err
	}
	s := &Sim{
		preload: preload, host: cfg.Host, ctx: ctx,
		slots: make(chan struct{}, MaxClients), closing: make(chan struct{}),
	}
	s.out.ready = make(chan struct{})
	if s.dir, err = makeDir(); err != nil {
		return nil, err
	}
	if err := s.start(ctx, program, topologyFile, cfg); err != nil {
		_ = s.Close() // the first error matters
		return nil, err
	}
	return s, nil
}

// makeDir makes the folder that clients run in. libumad2sim.so writes its imitation of
// sysfs there (./sys-PID), some 60 files for each client. On a disk they cost OpenSM half
// its CPU time, so the folder is in memory if possible, unless $TMPDIR names another place.
func makeDir() (string, error) {
	const name = "ibweave-ibsim-"
	if os.Getenv("TMPDIR") == "" {
		if dir, err := os.MkdirTemp("/dev/shm", name); err == nil {
			return dir, nil
		}
	}
	return os.MkdirTemp("", name)
}

func (s *Sim) start(ctx context.Context, program, topologyFile string, cfg Config) error {
	var random [8]byte
	rand.Read(random[:]) // never fails
	s.socket = "ibweave-" + strconv.Itoa(os.Getpid()) + "-" + hex.EncodeToString(random[:])

	args := []string{"-s", "-L", "49152", "-M", "16383"} // room for all LIDs and MLIDs
	for _, limit := range []struct {
		flag  string
		value int
	}{{"-N", cfg.Nodes}, {"-S", cfg.Switches}, {"-P", cfg.Ports}} {
		if limit.value > 0 {
			args = append(args, limit.flag, strconv.Itoa(limit.value))
		}
	}
	cmd := exec.Command(program, append(args, topologyFile)...)
	cmd.Dir = s.dir
	cmd.Env = s.environ(false)
	cmd.Stdout = &s.out
	cmd.Stderr = &s.stderr
	// ibsim reads commands from its standard input and would spin at its end.
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	s.stdin = stdin
	if s.proc, err = begin(cmd); err != nil {
		return err
	}
	s.unwatch = context.AfterFunc(ctx, s.proc.kill)

	timer := time.NewTimer(cfg.Timeout)
	defer timer.Stop()
	select {
	case <-s.out.ready:
		return nil
	case <-s.proc.done:
	case <-timer.C:
		return &ExitError{Program: "ibsim", Output: s.stderr.last(), Err: errTimeout("not ready", cfg.Timeout)}
	}
	return s.ended()
}

// ended returns the error for an ibsim that ended before Close.
func (s *Sim) ended() error {
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	err := cmp.Or(s.proc.err, errors.New("ended"))
	// ibsim prints the fault on standard error, and where it is on standard output.
	return &ExitError{Program: "ibsim", Output: append(s.stderr.last(), s.out.tail.last()...), Err: err}
}

// Close kills ibsim and its clients, and removes their folder. It may be called more than
// once, and at any time.
func (s *Sim) Close() error {
	s.mu.Lock()
	first := !s.closed
	if first {
		s.closed = true
		close(s.closing)
	}
	s.mu.Unlock()
	s.clients.Wait()
	if !first {
		return nil
	}
	if s.unwatch != nil {
		s.unwatch()
	}
	if s.proc != nil {
		s.proc.kill()
	}
	return os.RemoveAll(s.dir)
}

// environ returns the environment of ibsim, or of a client.
func (s *Sim) environ(client bool) []string {
	var env []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		switch {
		case name == "LD_PRELOAD", name == "LC_ALL",
			strings.HasPrefix(name, "IBSIM_"), strings.HasPrefix(name, "SIM_"), strings.HasPrefix(name, "OSM_"):
		default:
			env = append(env, v)
		}
	}
	env = append(env, "LC_ALL=C", "IBSIM_SOCKNAME="+s.socket)
	if client {
		env = append(env, "LD_PRELOAD="+s.preload)
		if s.host != "" {
			env = append(env, "SIM_HOST="+s.host)
		}
	}
	return env
}

// Command prepares a program, found by Find, to run against the
// simulated fabric: it talks to ibsim instead of the kernel, and its
// working folder is one that Close removes. Pass it to Run. Programs
// must not be shell scripts: the shell would also take a client's place.
func (s *Sim) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	path, err := Find(name)
	if err != nil {
		path = name
	}
	cmd := exec.CommandContext(ctx, path, args...)
	if err != nil {
		cmd.Err = err
	}
	cmd.Cancel = func() error { return killGroup(cmd.Process) }
	cmd.Dir = s.dir
	cmd.Env = s.environ(true)
	return cmd
}

// Run runs a Command and waits for it. The program is killed when ctx, which
// should be the Command's, is done, when ibsim ends, and by Close. If cmd
// has no Stderr, the end of that output becomes part of the error.
//
// Errors: a *MissingError, ctx's own if it was cancelled, and an *ExitError.
func (s *Sim) Run(ctx context.Context, cmd *exec.Cmd) error { return s.run(ctx, cmd, func() {}) }

// run does what Run does; it calls begun when the program has started.
func (s *Sim) run(ctx context.Context, cmd *exec.Cmd, begun func()) error {
	if cmd.Err != nil {
		return cmd.Err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return os.ErrClosed
	}
	s.clients.Add(1)
	s.mu.Unlock()
	defer s.clients.Done()
	if err := s.takeSlot(ctx); err != nil {
		return err
	}
	defer func() { <-s.slots }()
	var output *tail
	if cmd.Stderr == nil {
		output = new(tail)
		cmd.Stderr = output
	}
	p, err := begin(cmd)
	if err != nil {
		return exitError(ctx, cmd, nil, err)
	}
	begun()
	select {
	case <-p.done:
		if p.err != nil && cmd.ProcessState.ExitCode() < 0 {
			s.release(cmd.Process.Pid)
		}
		return exitError(ctx, cmd, output, p.err)
	case <-s.proc.done:
		p.kill()
		return s.ended()
	case <-s.closing:
		p.kill()
		return os.ErrClosed
	}
}

// takeSlot waits for a client's place that is free, and takes it.
func (s *Sim) takeSlot(ctx context.Context) error {
	select {
	case <-s.closing:
		return os.ErrClosed
	default:
	}
	select {
	case s.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.closing:
		return os.ErrClosed
	}
}

// release frees the place of a client that was killed: ibsim
// keeps it until the client disconnects.
func (s *Sim) release(pid int) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var places []int
	if s.Console(ctx, "attached", func(line []byte) {
		var place, of int
		if n, _ := fmt.Sscanf(string(line), "Client %d: pid %d ", &place, &of); n == 2 && of == pid {
			places = append(places, place)
		}
	}) != nil {
		return
	}
	for _, place := range places {
		if s.Console(ctx, "x "+strconv.Itoa(place), nil) != nil {
			return
		}
	}
}

// maxCommand is the length of the longest command that ibsim takes, in bytes:
// it reads lines into 128 bytes, the end of the line and a zero included.
const maxCommand = 126

// Console gives ibsim's console a command, such as Dump or Help, and
// calls each for every line that it prints, without its end; the slice is
// valid only during the call. Meanwhile ibsim answers no other program.
// Pass nil for commands that print nothing on success, such as Link,
// Unlink, Clear, Error or Baselid: any output of these becomes the error.
func (s *Sim) Console(ctx context.Context, line string, each func(line []byte)) error {
	if each != nil {
		return s.console(ctx, line, each)
	}
	var said tail
	if err := s.console(ctx, line, func(b []byte) {
		said.Write(b)
		said.Write([]byte("\n"))
	}); err != nil {
		return err
	}
	if lines := said.last(); len(lines) > 0 {
		return fmt.Errorf("ibsim, told to %s: %s", line, strings.Join(lines, "; "))
	}
	return nil
}

// console gives a command to the console.
func (s *Sim) console(ctx context.Context, line string, each func(line []byte)) error {
	if len(line) > maxCommand || strings.ContainsAny(line, "\n\x00") || strings.HasPrefix(strings.TrimSpace(line), "#") {
		return fmt.Errorf("not a command for ibsim, which takes one line of at most %d bytes: %.200q", maxCommand, line)
	}
	s.ask.Lock()
	defer s.ask.Unlock()
	select {
	case <-s.closing:
		return os.ErrClosed
	default:
	}
	done := s.out.expect(each)
	// ibsim echoes comments (without the end of the line), so
	// the echo of endMark marks the end of the command's output.
	if _, err := io.WriteString(s.stdin, line+"\n"+endMark+"\n"); err != nil {
		s.out.abandon()
		return fmt.Errorf("ibsim's console: %w", err)
	}
	select {
	case <-done:
		return nil
	case <-s.proc.done:
		return s.ended()
	case <-s.closing:
		return os.ErrClosed
	case <-ctx.Done():
		s.out.abandon()
		return context.Cause(ctx)
	}
}

const endMark = "#end of answer;"

var (
	prompt    = []byte("sim> ")
	endBytes  = []byte(endMark)
	readyLine = []byte("Network simulator ready.")
)

// console splits ibsim's standard output into answers. ibsim stops while
// nothing reads its output, so console takes it at once and keeps only the end.
type console struct {
	ready chan struct{} // closed by the first readyLine
	tail  tail

	mu      sync.Mutex
	lines   lineCutter
	isReady bool
	each    func([]byte) // nil while no request waits
	done    chan struct{}
	skip    int // number of answers that no caller waits for
}

// expect makes console call each for every line up to the next
// endMark, which closes the channel.
func (c *console) expect(each func([]byte)) chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.each = each
	c.done = make(chan struct{})
	return c.done
}

// abandon gives up the expected answer, unless it is complete.
func (c *console) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.each != nil {
		c.each = nil
		c.skip++
	}
}

func (c *console) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines.each = c.line
	c.lines.add(b)
	// Neither the prompt nor the mark has an end of line.
	if rest := trimPrompts(c.lines.partial); bytes.HasPrefix(rest, endBytes) {
		c.endAnswer()
		c.lines.partial = append(c.lines.partial[:0], rest[len(endBytes):]...)
	}
	return len(b), nil
}

func trimPrompts(line []byte) []byte {
	for {
		rest, found := bytes.CutPrefix(line, prompt)
		if !found {
			return line
		}
		line = rest
	}
}

func (c *console) endAnswer() {
	if c.skip > 0 {
		c.skip--
	} else if c.each != nil {
		c.each = nil
		close(c.done)
	}
}

func (c *console) line(line []byte) {
	line = trimPrompts(line)
	if rest, found := bytes.CutPrefix(line, endBytes); found {
		c.endAnswer()
		line = trimPrompts(rest)
	}
	if !c.isReady && bytes.Equal(line, readyLine) {
		c.isReady = true
		close(c.ready)
	}
	if c.skip > 0 {
		return
	}
	if c.each != nil {
		c.each(line)
		return
	}
	c.tail.Write(line)
	c.tail.Write([]byte("\n"))
}
