// Package plugin is the core of the OpenSM plugin, without
// C: it makes verified tables for OpenSM to write from a
// snapshot of OpenSM's subnet. The shared library around
// it, which knows OpenSM's structures, is
// cmd/ibweave-opensm. It makes no promise to other modules.
//
// OpenSM has one routing engine for each of ours, with "ibweave-" before its name.
// An engine routes with the code of the compiler (package compile), on OpenSM's
// LIDs; its tables are verified before OpenSM gets any of them.
//
// # Never worse than no plugin
//
// Every failure, even a panic, becomes one *Error with a code. For
// unicast OpenSM then uses its next engine, and nothing has been written. For
// multicast OpenSM has cleared the masks before it asks, and an error would
// leave the group without masks: so Masks returns no error, see there.
//
// This package does not access OpenSM's structures or
// locks. OpenSM holds its own lock exclusively while it calls Route and Masks, and
// shared while it calls PathSL. A Plugin is safe for concurrent use in any
// case.
package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/dump"
)

// Prefix is the beginning of OpenSM's names of our engines.
const Prefix = "ibweave-"

// Code tells failures apart in OpenSM's log, as in "ERR IBW2".
type Code string

// The codes.
const (
	// BadConfig: the options or the configuration file cannot be used.
	BadConfig Code = "IBW1"
	// CannotRoute: the engine does not route this fabric.
	CannotRoute Code = "IBW2"
	// NotVerified: the engine's tables break a rule of the checker.
	NotVerified Code = "IBW3"
	// NeedsOpenSM: OpenSM's own options keep the engine from working.
	NeedsOpenSM Code = "IBW4"
	// BadSubnet: OpenSM's subnet is not one that can be routed at all.
	BadSubnet Code = "IBW5"
	// Panicked: a bug of ibweave.
	Panicked Code = "IBW6"
	// Multicast: masks are not as they were wanted.
	Multicast Code = "IBW7"
	// Limits: the limits of the process leave too little for a routing. At the start the
	// C half reports it, since Go's runtime does not start then.
	Limits Code = "IBW8"
	// LogTrouble: our own log or the file of metrics cannot be written, which changes nothing
	// else.
	LogTrouble Code = "IBW9"
)

// Error is a failure, about which OpenSM's log gets one line.
type Error struct {
	Code   Code
	Engine string // OpenSM's name of the engine, "" for none
	Err    error
}

// Error is one line.
func (e *Error) Error() string {
	s := "ERR " + string(e.Code) + ": "
	if e.Engine != "" {
		s += e.Engine + ": "
	}
	return s + oneLine(e.Err.Error())
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// maxLine bounds a line of a log, in bytes: it may quote what is in a file.
const maxLine = 2000

// oneLine joins the lines of a message, as OpenSM's log has one line for a message, and
// makes them printable.
func oneLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	for i := range lines {
		lines[i] = fabric.Printable(strings.TrimSpace(lines[i]))
	}
	if s = strings.Join(lines, "; "); len(s) > maxLine {
		s = strings.ToValidUTF8(s[:maxLine], "") + "..."
	}
	return s
}

// Level is the importance of a line in OpenSM's log.
type Level uint8

// The levels, with the values of osm_log_level_t.
const (
	LogError Level = 0x01
	LogInfo  Level = 0x02
)

// Host has what the plugin needs from OpenSM.
type Host struct {
	// LogDir is where our log goes unless the configuration names a file: the
	// folder of OpenSM's log.
	LogDir string
	// CacheDir is the folder of OpenSM's guid2lid, where the choice of an engine is kept; "" for none.
	CacheDir string
	// Log writes a line, without its end, to OpenSM's log.
	Log func(level Level, line string)
	// Sweep makes OpenSM sweep soon. It may be called at any time, and may be nil.
	Sweep func()
	// Engines are the engines to offer; nil stands for compile.Engines.
	Engines []compile.Engine
}

// Plugin is the loaded plugin.
type Plugin struct {
	host    Host
	config  *Config
	failed  *Error // why there is no configuration
	log     *zap.Logger
	close   func() error
	meter   *meter
	shadow  lastWriter[*compile.Result] // writes tables that are not installed
	engines []offered
	needs   func(*fabric.Fabric) int64 // bytes of memory for a routing

	reserve sync.Once
	routing sync.Mutex // OpenSM asks for one routing at a time
	last    *compile.Incremental
	litter  bool // something was routed since the last garbage collection
	mu      sync.Mutex
	current *Tables // of the last successful Route, nil for none
	masks   *masks  // multicast, see multicast.go
	sweeps  uint64  // how often OpenSM has swept
	refused map[int]refusal
	groups  *declaredGroups
	labels  nodeLabels
	ignored string // options without effect that the logs have
	absent  string // the roots that are not in the subnet, as OpenSM's log has them

	reading    sync.Mutex // held while the file of groups is read
	groupsFile background[*declaredGroups]
	read       *declaredGroups // the last that were read
	// groupsError is why the file's groups were not read, "" if they were.
	groupsError string

	// The mutex routing guards these, and the fields from watched to again.
	jobsFile background[*declaredJobs]
	jobs     *declaredJobs // the last that were read, nil for none
	// jobsFileError is why the file cannot be used, jobsError why its jobs cannot; "" for nothing.
	jobsFileError, jobsError string

	before *Tables // the last that Written was called with, nil for none
	// A goroutine waits until watched is prepared; nil if none waits. ownSweeps
	// counts the sweeps that it has asked for since the subnet changed.
	watched   *compile.Incremental
	ownSweeps int
	auto      *compile.Engine // the chosen engine, nil before
	flaps     flaps           // guarded by routing, as is again
	again     *time.Timer     // has OpenSM sweep when a cable may be used again, nil for none

	// What Written has logged about cables.
	cablesOf   *Snapshot
	slowCables string
	manyIdle   bool
}

// refusal is a subnet that an engine failed to route. The engine need
// not try again at every sweep while OpenSM uses its next engine.
type refusal struct {
	snapshot *Snapshot
	failure  *Error
}

// Open reads event_plugin_options and the configuration file that they name. It
// always returns a Plugin. If the configuration cannot be used, it logs the error,
// and Setup refuses all engines with it.
func Open(options string, host Host) *Plugin {
	if half := room() / 2; half < debug.SetMemoryLimit(-1) {
		debug.SetMemoryLimit(half) // garbage is collected before it reaches the limits of this process
	}
	log := host.Log
	host.Log = func(l Level, line string) { log(l, fabric.Printable(line)) }
	p := &Plugin{host: host, needs: routingNeeds, meter: new(meter), refused: make(map[int]refusal), log: zap.NewNop(), close: func() error { return nil }}
	p.offer()
	err := p.guard("", func() error {
		var err error
		if p.config, err = readConfig(options); err != nil {
			// The line goes to the default log: no other is known.
			p.log, p.close = openLog(&defaults().Log, host.LogDir, p.logTrouble)
			return err
		}
		p.log, p.close = openLog(&p.config.Log, host.LogDir, p.logTrouble)
		trouble := func(l Level, err error) {
			p.log.Warn(oneLine(err.Error()))
			p.logTrouble(l, err)
		}
		if p.config.Metrics != "" {
			p.meter = newMeter(p.config.Metrics, trouble)
		}
		if p.config.Shadow {
			p.shadow.write, p.shadow.trouble, p.host.Sweep = p.writeShadow, trouble, nil
		}
		p.openLabels()
		p.flaps = flaps{config: p.config.Flap, lost: make(map[wire]*losses)}
		p.jobsFile.file = p.config.Traffic
		if name := p.config.Multicast.Groups; name != "" {
			p.groupsFile.file = name
			p.groups, err = p.groupsFile.get(startTimeout, func() (*declaredGroups, error) { return readGroups(name, nil) })
			p.read = p.groups
		}
		return err
	})
	if err != nil {
		err.Code = cmp.Or(err.Code, BadConfig)
		p.failed = err
		p.report(err)
	}
	p.masks = &masks{p: p, last: make(map[mft.MGID][]SwitchPort)}
	return p
}

// logTrouble tells OpenSM's log about errors of our log and of the file of metrics, and their end.
func (p *Plugin) logTrouble(l Level, err error) {
	if l == LogError {
		err = &Error{Code: LogTrouble, Err: err}
	}
	p.host.Log(l, oneLine(err.Error()))
}

// Close ends our log, for which it may wait some seconds.
func (p *Plugin) Close() error {
	p.routing.Lock()
	p.host.Sweep = nil
	if p.again != nil {
		p.again.Stop()
	}
	p.routing.Unlock()
	p.meter.close()
	p.shadow.close()
	return p.close()
}

// offered is an engine, nil for autoName, and one of its names without Prefix.
type offered struct {
	name string
	*compile.Engine
}

// offer sets the engines, with all their names.
func (p *Plugin) offer() {
	engines := p.host.Engines
	if engines == nil {
		engines = compile.Engines
	}
	var counterparts []offered
	for i := range engines {
		e := &engines[i]
		p.engines = append(p.engines, offered{e.Name(), e})
		for _, name := range e.Counterparts {
			counterparts = append(counterparts, offered{name, e})
		}
	}
	p.engines = append(append(p.engines, offered{autoName, nil}), counterparts...)
}

// Engines returns OpenSM's names of our engines; the last are named like engines
// of OpenSM that they replace. Methods take an engine by its index in this list.
func (p *Plugin) Engines() []string {
	return text.Each(p.engines, func(e offered) string { return Prefix + e.name })
}

func (p *Plugin) engineName(engine int) string { return Prefix + p.engines[engine].name }

// Settings are options of OpenSM.
type Settings struct {
	QoS         bool // qos: OpenSM writes SL-to-VL and VL arbitration tables
	UcastCache  bool // use_ucast_cache
	MaxDataVLs  int  // data VLs that max_op_vls leaves a port
	DumpsTables bool // OpenSM writes its lid matrix and the like (-D 0x40)
}

// Setup is called for each of our engines that OpenSM's routing_engine
// names. ignored names options of OpenSM that are set and do not affect our
// engines. An *Error is in the log already.
func (p *Plugin) Setup(engine int, s Settings, ignored string) error {
	if p.failed != nil {
		// It is in the log already.
		return p.failed
	}
	return p.reported(p.guard(p.engineName(engine), func() error {
		if s.UcastCache && !p.config.Shadow {
			return &Error{Code: NeedsOpenSM, Err: errors.New("use_ucast_cache TRUE makes OpenSM change tables without asking the engine; set it FALSE")}
		}
		p.mu.Lock()
		told := p.ignored == ignored || ignored == ""
		p.ignored = ignored
		p.mu.Unlock()
		if !told {
			p.tell("options of OpenSM without effect on ibweave's engines: " + ignored + "; " + p.config.where() + " has theirs")
		}
		if fits(compile.Reserved, "a routing") == nil {
			p.reserve.Do(func() { go compile.Reserve() }) // while OpenSM discovers the subnet
		}
		if e := p.engines[engine]; e.Engine != nil && e.name != e.Name() {
			line := e.IsCounterpart(e.name)
			p.log.Info(line)
			p.host.Log(LogInfo, Prefix+e.name+": "+line)
		}
		p.log.Info("engine set up", zap.String("engine", p.engineName(engine)), zap.String("configuration", p.config.File))
		return nil
	}))
}

// guard runs f and turns any error or panic of it into an *Error.
// Its Code is empty if f did not set one. A nil result means no error.
func (p *Plugin) guard(engine string, f func() error) *Error {
	err := par.Catch(f)
	if err == nil {
		return nil
	}
	var w *par.Panic
	if errors.As(err, &w) { // our log has the stack
		p.log.Error("panic", zap.String("engine", engine), zap.String("value", fmt.Sprint(w.Value)), zap.ByteString("stack", w.Stack))
		return &Error{Code: Panicked, Engine: engine, Err: fmt.Errorf("a bug of ibweave, please report it with its log: %v", w.Value)}
	}
	var known *Error
	if errors.As(err, &known) {
		return &Error{Code: known.Code, Engine: engine, Err: known.Err}
	}
	return &Error{Engine: engine, Err: err}
}

// Guard runs f for an engine, and writes any error or panic of it as one line
// to both logs.
func (p *Plugin) Guard(engine string, f func() error) error {
	failed := p.guard(engine, f)
	if failed != nil {
		failed.Code = cmp.Or(failed.Code, BadSubnet)
	}
	return p.reported(failed)
}

// reported logs guard's result and returns it as an error.
func (p *Plugin) reported(e *Error) error {
	if e == nil {
		return nil
	}
	p.report(e)
	return e
}

// report puts a failure into both logs.
func (p *Plugin) report(e *Error) {
	p.log.Error(oneLine(e.Err.Error()), zap.String("code", string(e.Code)), zap.String("engine", e.Engine))
	p.host.Log(LogError, e.Error())
}

// tell puts a line that is no error into both logs.
func (p *Plugin) tell(line string) {
	p.log.Warn(line)
	p.host.Log(LogInfo, line)
}

// Route computes and verifies the tables of an engine,
// and keeps them for SL2VL, PathSL and Masks. An *Error
// has already been logged. After it the earlier tables
// are kept, though OpenSM is about to use another engine.
func (p *Plugin) Route(engine int, s *Snapshot) (*Tables, error) {
	if p.failed != nil {
		return nil, p.failed
	}
	t, err := p.tryRoute(engine, s)
	if err != nil || len(t.pieces.List) == 1 && t.Verify.Unicast.Unreachable > 0 {
		if all := p.tryAll(engine, s); all != nil {
			t, err = all, nil
		}
	}
	if err != nil {
		err.Code = cmp.Or(err.Code, CannotRoute)
		p.routing.Lock()
		p.last = nil // its tables are not in force
		p.routing.Unlock()
		p.refuse(engine, s, err)
		p.meter.update(func(s *measured) { s.Fallbacks++ })
		p.host.Log(LogError, err.Error()+"; OpenSM goes on with its next engine")
		p.log.Error(oneLine(err.Err.Error()), zap.String("code", string(err.Code)), zap.String("engine", err.Engine))
		return nil, err
	}
	var groups *declaredGroups
	if !s.Reroute {
		groups = p.newGroups()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if groups != nil {
		p.groups = groups
	}
	if s.Reroute {
		p.log.Info("routed without a sweep")
	} else {
		p.sweeps++
	}
	// Masks stay in force when OpenSM only routes again.
	if p.current != nil {
		t.generation = p.current.generation
		if groups != nil || !t.same(p.current) {
			t.generation++
			// Else the masks in force stay old until a port joins.
			t.SweepAgain = t.SweepAgain || s.Reroute
		}
	}
	p.current = t
	delete(p.refused, engine)
	return t, nil
}

// tryRoute routes s, unless the engine did not route this very subnet the last time.
func (p *Plugin) tryRoute(engine int, s *Snapshot) (t *Tables, err *Error) {
	p.mu.Lock()
	r, ok := p.refused[engine]
	p.mu.Unlock()
	if ok && r.snapshot.equal(s) {
		return nil, r.failure
	}
	err = p.guard(p.engineName(engine), func() (err error) {
		t, err = p.route(engine, s)
		return err
	})
	return t, err
}

// refuse remembers that an engine does not route a subnet, except after a
// timeout, for want of memory, or after a panic: the next try may succeed.
func (p *Plugin) refuse(engine int, s *Snapshot, failure *Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var late *timeoutError
	if failure.Code == Panicked || failure.Code == Limits || errors.As(failure, &late) {
		delete(p.refused, engine)
		return
	}
	p.refused[engine] = refusal{s, failure}
}

// timeoutError says that a routing took too long.
type timeoutError struct {
	after time.Duration
	where string // the file that sets the timeout
}

func (e *timeoutError) Error() string {
	return fmt.Sprintf("not done after %v (timeout in %s)", e.after, e.where)
}

// route returns tables for s. For a changed subnet it makes new ones. Else it
// keeps the tables, or rebalances them by moving some entries, or makes new
// ones if no more entries can be moved; if that fails, the old stay.
func (p *Plugin) route(engine int, s *Snapshot) (*Tables, error) {
	ctx, cancel := context.WithTimeout(context.Background(), p.config.Timeout)
	defer cancel()
	start := time.Now()
	t := p.Current()
	if t == nil || t.asked != engine || verdict(t.Verify) != nil || !t.snapshot.equal(s) || !t.isFound(s) || p.isDue() {
		return p.routeChanged(ctx, engine, s)
	}
	next, stuck := p.rebalance(ctx, t, s)
	if stuck {
		s.Found = nil // the switches have t already
		err := par.Catch(func() (err error) { next, err = p.routeChanged(ctx, engine, s); return err })
		if err == nil {
			return next, nil
		}
		p.routing.Lock()
		p.last = nil // its tables are not in force
		p.routing.Unlock()
		p.tell("the loads stay above rebalance: " + oneLine(err.Error()))
	}
	if next == nil {
		again := *t
		again.SweepAgain, again.Rebalanced = false, false
		again.Step, again.Timing = compile.Step{Kept: true}, Timing{}
		p.log.Debug("the subnet has not changed", zap.String("engine", t.Engine))
		next = &again
	}
	next.Timing.Snapshot = s.Took + time.Since(start) - next.Timing.Route - next.Timing.Verify
	return next, nil
}

// routeChanged makes tables for a subnet that has changed, or new ones for the same subnet.
func (p *Plugin) routeChanged(ctx context.Context, engine int, s *Snapshot) (*Tables, error) {
	start := time.Now()
	f, notes, err := s.fabric(p.labels)
	if err != nil {
		return nil, &Error{Code: BadSubnet, Err: err}
	}
	for _, n := range notes {
		p.log.Warn(n)
	}
	f = p.holdBack(f)
	built := time.Now()
	e := p.engines[engine].Engine
	if err := fits(p.needs(f), "a routing"); err != nil {
		return nil, &Error{Code: Limits, Err: err}
	}
	opt, absent, err := p.config.compileOptions(f)
	if err != nil {
		return nil, &Error{Code: BadConfig, Err: err}
	}
	p.tellAbsent(absent)
	if list := s.unread(); len(list) > 0 {
		p.tell("the tables were not read, and all blocks are written, of " + text.Few(list, maxChanged))
	}
	found := s.foundTables(f)
	s.Found = nil // it may be large, and snapshots are kept
	r, step, err := p.compile(ctx, f, e, opt, found)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = &timeoutError{p.config.Timeout, p.config.where()}
		}
		return nil, err
	}
	name := p.engineName(engine)
	if e == nil {
		name = Prefix + r.Engine.Name()
	}
	for _, n := range r.Routing.Notes {
		p.log.Info(n, zap.String("engine", name))
	}
	parts := r.Routing.Fabric.Components()
	if err := p.accept(r); err != nil {
		return nil, err
	}
	t := &Tables{
		Fabric: r.Routing.Fabric, Routing: r.Routing, Verify: r.Verify, Engine: name, asked: engine,
		result: r, GUIDs: switchGUIDs(f), Step: step, pieces: parts, largest: parts.Largest(), snapshot: s, fullMatrix: !p.HandlesMulticast(),
	}
	if err := t.checkLanes(s); err != nil {
		return nil, err
	}
	if err := t.checkCapacity(s); err != nil {
		return nil, err
	}
	if t.WantsLIDMatrix() {
		t.hops = dump.NewHops(t.Fabric, r.Routing.Tables)
	}
	t.Timing.Snapshot = s.Took + built.Sub(start)
	t.Timing.Route = time.Duration(r.Seconds.Route * float64(time.Second))
	t.Timing.Verify = time.Duration(r.Seconds.Verify * float64(time.Second))
	return t, nil
}

// tellAbsent logs which switches of roots the subnet lacks, if they
// are others than last time. It is an error if all are absent: then
// the order of the switches is not the one that the operator wanted.
func (p *Plugin) tellAbsent(absent []fabric.GUID) {
	names := text.Few(text.Each(absent, fabric.GUID.String), 5)
	all := fmt.Sprint(absent)
	p.mu.Lock()
	told := p.absent == all || len(absent) == 0
	p.absent = all
	p.mu.Unlock()
	switch {
	case told:
	case len(absent) == len(p.config.Roots):
		p.report(&Error{Code: BadConfig, Err: fmt.Errorf("no switch of roots in %s is in the subnet: %s; the engine chooses the top of its order itself", p.config.where(), names)})
	default:
		p.tell(fmt.Sprintf("roots in %s: %d of %d switches are not in the subnet: %s", p.config.where(), len(absent), len(p.config.Roots), names))
	}
}

// compile runs the compiler with engine e; nil stands for the engine
// chosen for the fabric. With incremental: true it starts from the
// tables found in the switches, if found is not nil, else from the last
// tables. After an error or a panic the next run starts from scratch.
func (p *Plugin) compile(ctx context.Context, f *fabric.Fabric, e *compile.Engine, opt compile.Options, found *lft.Tables) (*compile.Result, compile.Step, error) {
	p.routing.Lock()
	defer p.routing.Unlock()
	p.litter = true
	if t := p.Current(); t == nil || !fabric.SameTopology(t.Fabric, f) {
		p.ownSweeps = 0
	}
	p.follow(&opt)
	if e == nil {
		return p.compileAuto(ctx, f, opt, found)
	}
	return p.compileBy(ctx, f, e, opt, found)
}

// compileBy is compile with a given engine.
func (p *Plugin) compileBy(ctx context.Context, f *fabric.Fabric, e *compile.Engine, opt compile.Options, found *lft.Tables) (r *compile.Result, step compile.Step, err error) {
	last := p.last
	p.last = nil
	if last == nil || found != nil {
		last = new(compile.Incremental)
	}
	if found != nil {
		last.Adopt(found)
	}
	if p.config.Incremental {
		r, step, err = last.Run(ctx, f, e, opt)
	} else {
		step.Why = "incremental is false"
		r, err = compile.Run(ctx, f, e, opt)
	}
	if step.Failure != nil {
		p.stepFailed(Prefix+e.Name(), step.Failure)
	}
	if err != nil {
		return nil, step, err
	}
	if text := excuse(r.Routing.Fabric.Components(), r.Verify); text != "" {
		p.log.Warn(text, zap.String("engine", Prefix+e.Name()))
	}
	if p.config.Incremental && verdict(r.Verify) == nil {
		p.last = last
	}
	if t := p.Current(); t != nil && step.Changes == (compile.Changes{}) {
		step.Changes = compile.ChangesSince(t.Routing, r.Routing)
	}
	return r, step, nil
}

// rebalance is for a subnet that has not changed since t was made. Once
// the next step is prepared, it changes a few blocks towards balanced
// tables. It returns nil for no step; stuck is then true if new tables
// are to follow. After a panic t stays in force and is not moved again.
func (p *Plugin) rebalance(ctx context.Context, t *Tables, s *Snapshot) (tables *Tables, stuck bool) {
	p.routing.Lock()
	defer p.routing.Unlock()
	last := p.last
	opt, _, err := p.config.compileOptions(t.Fabric)
	if last == nil || !p.config.Incremental || err != nil {
		return nil, false
	}
	p.follow(&opt)
	var r *compile.Result
	var step compile.Step
	if err := par.Catch(func() error { r, step = last.Rebalance(ctx, opt); return nil }); err != nil {
		p.last = nil
		p.stepFailed(t.Engine, err)
		return nil, false
	}
	if r == nil {
		return nil, last.IsStuck()
	}
	if verdict(r.Verify) != nil {
		p.last = nil // else it goes on from tables that are not in force
		return nil, false
	}
	p.litter = true
	next := *t
	next.result, next.Routing, next.Verify, next.Step, next.Rebalanced, next.SweepAgain, next.snapshot = r, r.Routing, r.Verify, step, true, false, s
	if next.WantsLIDMatrix() {
		next.hops = dump.NewHops(next.Fabric, r.Routing.Tables)
	}
	next.Timing = Timing{Route: time.Duration(r.Seconds.Route * float64(time.Second)), Verify: time.Duration(r.Seconds.Verify * float64(time.Second))}
	return &next, false
}

// stepFailed logs why tables could not be kept. New ones were made from
// scratch, so OpenSM needs no other engine. A panic is in its log, too.
func (p *Plugin) stepFailed(engine string, err error) {
	failed := p.guard(engine, func() error { return err })
	if failed.Code == Panicked { // our log has the stack
		p.host.Log(LogError, failed.Error()+"; routed from scratch instead")
		return
	}
	p.log.Warn("routed from scratch, as to keep tables failed: "+oneLine(err.Error()), zap.String("engine", engine))
}

// SubnetUp is called when OpenSM has brought the subnet up and has time.
// It prepares the next routing in the background, and collects memory
// that the last one no longer needs, which compile.TuneGC puts off.
func (p *Plugin) SubnetUp() {
	p.routing.Lock()
	defer p.routing.Unlock()
	if last := p.last; last != nil {
		last.Prepare()
		if p.host.Sweep != nil && p.watched != last && p.ownSweeps < maxOwnSweeps {
			p.watched = last
			go p.watch(last)
		}
	}
	if p.litter {
		p.litter = false
		go runtime.GC()
	}
}

// maxOwnSweeps is the most sweeps that the plugin asks for after a change of the subnet.
// Each moves entries in up to 64 blocks, so the largest fabrics are balanced by then.
const maxOwnSweeps = 200

// watchEvery is how often watch looks whether the next step is prepared.
const watchEvery = 100 * time.Millisecond

// watch waits until last is prepared, and makes OpenSM sweep if entries
// are to move. It ends early if tables are made from another state.
func (p *Plugin) watch(last *compile.Incremental) {
	for done := false; !done; {
		time.Sleep(watchEvery)
		if err := par.Catch(func() error { done = p.look(last); return nil }); err != nil {
			p.stepFailed("", err)
			return
		}
	}
}

// look makes OpenSM sweep if last is prepared and entries are
// to move. It returns true if there is nothing to wait for.
func (p *Plugin) look(last *compile.Incremental) bool {
	p.routing.Lock()
	defer p.routing.Unlock()
	t := p.Current()
	if p.last != last || t == nil || p.host.Sweep == nil {
		return true
	}
	if !last.IsPrepared() {
		return false
	}
	p.watched = nil
	if last.WantsRebalance(p.config.Rebalance, p.jobs != nil) {
		p.ownSweeps++
		p.host.Sweep()
	}
	return true
}

// Written is called when OpenSM has all of t, whose Timing is then complete.
func (p *Plugin) Written(t *Tables) {
	v := t.Verify
	how := []zap.Field{zap.Bool("kept", t.Step.Kept)}
	said, name := "", t.Engine
	if p.config.Shadow {
		how, name = append(how, zap.Bool("shadow", true)), "not installed (shadow: true): "+name
		if p.before == nil || p.before.Routing != t.Routing || p.shadow.hasFailed() {
			p.shadow.update(func(r **compile.Result) { *r = t.result })
		}
	}
	if was := p.before; was != nil && was.Fabric != t.Fabric {
		c := changeBetween(was.Fabric, t.Fabric)
		p.meter.changed(&c, was.Verify)
		if what := c.String(); what != "" {
			said = "; " + what
			how = append(how, zap.Strings("lost", c.lost), zap.Strings("new", c.came), zap.Int("moved_lids", c.moved))
		}
		how = append(how, zap.Int64("max_routes_before", was.Verify.Balance.MaxRoutes), zap.Int64("unreachable", v.Unicast.Unreachable))
	}
	p.before = t
	p.meter.written(t)
	if t.Step.Kept {
		how = append(how, zap.Int("lids", t.Step.LIDs), zap.Int("entries", t.Step.Changes.Entries), zap.Int("blocks", t.Step.Changes.Blocks))
	}
	switch {
	case t.Step.Adopted:
		how = append(how, zap.Bool("adopted", true))
		said += fmt.Sprintf("; kept the tables that the switches had, %d blocks changed", t.Step.Changes.Blocks)
	case t.Step.Why != "":
		how = append(how, zap.String("why", t.Step.Why), zap.Int("blocks", t.Step.Changes.Blocks))
		if t.Step.Changes.Blocks > 0 {
			said += fmt.Sprintf("; routed from scratch, as %s; %d blocks changed", t.Step.Why, t.Step.Changes.Blocks)
		}
	case t.Rebalanced:
		how = append(how, zap.Bool("rebalanced", true))
		said += fmt.Sprintf("; rebalanced, %d blocks changed", t.Step.Changes.Blocks)
	case t.Step.LIDs > 0 || t.Step.Changes.Blocks > 0:
		said += fmt.Sprintf("; %s rerouted, %s changed", text.Count(t.Step.LIDs, "LID", "LIDs"), text.Count(t.Step.Changes.Blocks, "block", "blocks"))
	}
	if n := v.Unicast.Unreachable; n > 0 {
		said += "; " + text.CountGrouped(n, "pair", "pairs") + " lost"
	}
	if x := t.Step.Over; x != nil {
		how = append(how, zap.String("busiest", t.Fabric.PortName(x.Port)), zap.Float64("times_scratch", x.Times))
		said += fmt.Sprintf("; the cable at %s has %.1f times the load from scratch, which no small step mends", t.Fabric.PortName(x.Port), x.Times)
	}
	if m := v.Balance.MaxRelative; m != nil {
		how = append(how, zap.Float64("max_relative_load", m.Load), zap.Stringer("max_relative_link", m.Link), zap.String("rate", m.Rate), zap.String("fastest", m.Fastest))
	}
	p.log.With(how...).Info("routed",
		zap.String("engine", t.Engine),
		zap.Int("switches", v.Fabric.Switches), zap.Int("ca_ports", v.Fabric.CAPorts), zap.Int("links", v.Fabric.Links),
		zap.Uint16("max_lid", uint16(v.Fabric.MaxLID)), zap.String("verdict", v.Verdict),
		zap.Int64("max_routes", v.Balance.MaxRoutes), zap.Int("idle_links", v.Balance.IdleLinks),
		zap.Duration("snapshot", t.Timing.Snapshot), zap.Duration("route", t.Timing.Route),
		zap.Duration("verify", t.Timing.Verify), zap.Duration("write", t.Timing.rest()),
		zap.Duration("total", t.Timing.Total()))
	p.host.Log(LogInfo, fmt.Sprintf("%s: %d switches, LIDs up to %d, %s, in %v, at most %d routes on a link%s", name, v.Fabric.Switches, v.Fabric.MaxLID, v.Verdict,
		t.Timing.Total().Round(time.Microsecond), v.Balance.MaxRoutes, said))
	// A failure to report must not end OpenSM.
	_ = p.Guard(t.Engine, func() error { p.cables(t); return nil })
	if t.LatePorts == 0 {
		return
	}
	// Cut VLs void the proof, so this goes to both logs.
	said = fmt.Sprintf("%d ports have fewer VLs at this moment than the tables use, and OpenSM cuts their SL-to-VL tables", t.LatePorts)
	if t.SweepAgain {
		said += ": it is to sweep again"
	} else {
		said += ", sweep after sweep"
	}
	p.log.Warn(said, zap.String("engine", t.Engine))
	p.host.Log(LogInfo, t.Engine+": "+said)
}

// accept returns an error if the checker refuses the tables; with verify: warn it only logs it.
func (p *Plugin) accept(r *compile.Result) error {
	err := verdict(r.Verify)
	if err == nil {
		return nil
	}
	if p.config.Verify == VerifyWarn {
		p.log.Warn("installed although "+err.Error(), zap.String("engine", r.Engine.Name()))
		p.host.Log(LogError, (&Error{Code: NotVerified, Engine: Prefix + r.Engine.Name(), Err: fmt.Errorf("%w; installed all the same (verify: warn)", err)}).Error())
		return nil
	}
	return &Error{Code: NotVerified, Err: err}
}
