package compile

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/updown"
	"github.com/ibweave/ibweave/verify"
)

// Incremental compiles a fabric each time that it changes, for a caller that has the last
// result in force. It keeps entries where it can and verifies what changed. The zero value has
// no tables yet. Not safe for concurrent use.
type Incremental struct {
	engine  *Engine
	routing *lft.Routing
	found   *lft.Tables // given to Adopt; nil for none
	prepared
	prepare func() prepared // makes the next state; nil if there is nothing to prepare
	ready   chan prepared   // gets what prepare returns; nil when prepare is not running
	// findScratch routes the fabric from scratch and returns the greatest load, 0 if that
	// fails; nil if none is wanted. scratch gets its result; nil when findScratch is not
	// running.
	findScratch func(ctx context.Context) uint64
	scratch     chan uint64
	scratchLoad uint64             // the result, 0 for none
	stopScratch context.CancelFunc // ends the last findScratch; nil for none
	stepped     bool               // the last Rebalance moved entries, or tables were adopted
	stuck       bool               // the last Rebalance moved nothing though loads exceed its aim
}

// prepared is the state that the next Run can continue from.
type prepared struct {
	router  *lft.Incremental // nil if the next Run is from scratch
	checker *verify.IncrementalChecker
	load    uint64 // greatest load of the last routing from scratch, in lft.LoadUnits of router's fabric
	// failure is the error that left no router; a panic is a *par.Panic.
	failure error
}

// MaxDrift bounds the greatest load of kept tables, as a multiple of that of the last routing
// from scratch or of a lower bound. Above it Run routes all from scratch.
const MaxDrift = 2

// Step describes the work of Incremental.Run.
type Step struct {
	// Kept is true if entries changed only where they had to.
	Kept bool
	// Why is the reason, in a few words, if Kept is false.
	Why string
	// Failure is the error that kept Run from keeping tables, nil for none; after a panic it is
	// a *par.Panic.
	Failure error
	// LIDs is how many LIDs were looked at.
	LIDs int
	// Changes counts the differences from the last tables; all zero for the first tables.
	Changes Changes
	// Adopted is true for the step that Kept the tables given to Adopt.
	Adopted bool
	// Over describes a load that the first step after a change could not bring down to its aim;
	// nil if there is none, or if that is not known.
	Over *Excess
	// ByChange is true if only the change was checked, on top of the last verdict; false if all
	// was. If true, notes are left out, see verify.IncrementalChecker.
	ByChange bool
}

// Excess is a load that no move within the limits of a first step can lower.
type Excess struct {
	Port  fabric.PortID // the port by which the packets leave, in the Routing's fabric
	Times float64       // load / greatest load of tables from scratch, an estimate
}

// Run is the function Run for f, the next state of the same fabric. It keeps the
// last tables if it can. It routes from scratch if the engine is no
// lft.IncrementalEngine or does not keep tables with several lanes, if opt has
// groups or an SL-to-VL scheme, if the change or the drift of loads is too large,
// if the tables would have faults, and if keeping tables fails or panics. If the
// engine refuses to route from scratch, tables are kept as with
// Options.Route.Previous.
//
// The next call needs a state that takes as long to prepare as a routing from scratch. Prepare
// makes it in the background. If the caller did not call it, Run does, and counts the time as
// routing in Seconds. A call that cannot keep tables does not wait for it.
func (c *Incremental) Run(ctx context.Context, f *fabric.Fabric, e *Engine, opt Options) (r *Result, step Step, err error) {
	before := c.routing
	_, keeps := e.Engine.(lft.IncrementalEngine)
	virtual := opt.LIDs.Policy == lft.KeepLIDs && len(f.VirtualLIDs()) > 0
	can := keeps && opt.Groups == nil && opt.SL2VL == "" && opt.Route.VLs <= 1 && !virtual
	if can && c.engine != nil && c.engine.Name() == e.Name() {
		start := time.Now()
		if err := c.wait(ctx); err != nil {
			return nil, step, err
		}
		waited := time.Since(start).Seconds()
		defer func() {
			if r != nil {
				r.Seconds.Route += waited
			}
		}()
	}
	switch {
	case !keeps:
		step.Why = "the engine is not incremental"
	case virtual:
		step.Why = "virtual ports have LIDs of their own"
	case !can:
		step.Why = "there is more than unicast on one VL"
	case c.router == nil && c.failure != nil:
		step = Step{Why: "to prepare for keeping tables failed", Failure: c.failure}
	case c.router == nil || c.engine.Name() != e.Name():
		step.Why = "there are no tables to keep"
	case c.stuck:
		step.Why = "no small step brings the loads near to those from scratch"
	default:
		err := par.Catch(func() (err error) {
			r, err = c.update(ctx, f, opt, &step)
			return err
		})
		switch {
		case err != nil && ctx.Err() != nil:
			c.prepared, c.routing = prepared{}, before // they may be half changed
			return nil, step, err
		case err != nil:
			r, step = nil, Step{Why: "to keep tables failed", Failure: err}
		case r != nil && !slices.ContainsFunc(r.Verify.Findings, isFault):
			return r, step, nil
		case r != nil:
			step = Step{Why: "the tables that were kept have faults"}
		}
	}
	opt.Route.Previous = nil
	// The engine itself knows which parts of tables with lanes it can keep.
	if lanes := before != nil && before.PathSLs != nil; lanes && keeps && opt.Groups == nil && opt.SL2VL == "" && !virtual && c.engine.Name() == e.Name() {
		opt.Route.Previous = before
		step.Why = "virtual lanes are for all paths together"
	}
	c.engine, c.routing, c.prepared, c.prepare, c.ready, c.stuck = e, nil, prepared{}, nil, nil, false
	c.forgetScratch()
	r = nil
	if found := c.found; found != nil {
		c.found, before = nil, &lft.Routing{Fabric: f, Tables: found}
		if can {
			failed := par.Catch(func() (err error) {
				r, step.Why, err = c.adopt(ctx, before, opt)
				return err
			})
			if failed != nil {
				if ctx.Err() != nil {
					return nil, step, failed
				}
				r, step = nil, Step{Why: "to keep the tables that the switches have failed", Failure: failed}
			}
		}
	}
	if step.Adopted = r != nil; !step.Adopted {
		r, err = Run(ctx, f, e, opt)
	}
	if refused := (*lft.DomainError)(nil); can && errors.As(err, &refused) && before != nil && before.Engine == e.Name() {
		opt.Route.Previous = before
		r, err = Run(ctx, f, e, opt)
	}
	if err != nil {
		return nil, step, err
	}
	if r.Routing.Kept {
		step.Kept, step.Why = true, ""
	}
	if before != nil {
		step.Changes = ChangesSince(before, r.Routing)
	}
	c.routing = r.Routing
	if can && r.Routing.SL2VL == nil {
		c.prepareNext(r)
		if c.stepped = step.Adopted; step.Adopted {
			c.prepareRebalance(r.Routing.Fabric, opt)
		}
	}
	return r, step, nil
}

// Adopt makes the first Run begin with the tables that the switches have, of any origin. Run
// keeps the entries that an engine with incremental updates could have made. The tables have a
// row for each switch and an entry for each LID, fabric.NoPath if it is unknown.
func (c *Incremental) Adopt(t *lft.Tables) { c.found = t }

// isFault returns true for errors of the tables. Pairs that no cables join are no such error.
func isFault(f verify.Finding) bool {
	return f.Severity == verify.Error && f.Rule != verify.Partitioned && f.Rule != verify.ManagementPartitioned
}

// maxForeign is the greatest part of adopted entries that may differ from those that the engine
// would make. If more differ, the tables are of another engine; a routing from scratch is
// better.
const maxForeign = 0.25

// maxRebalance is a rebalance factor so large that no load is changed.
const maxRebalance = 1e6

// adopt is Run that starts from the tables found in the switches. If they cannot be kept, it
// returns nil and the reason.
func (c *Incremental) adopt(ctx context.Context, found *lft.Routing, opt Options) (r *Result, why string, err error) {
	f := found.Fabric
	cleaned, entries := lft.NewTables(f.NumSwitches(), found.Tables.MaxLID()), 0
	for s := range fabric.NodeID(f.NumSwitches()) {
		for lid, num := range found.Tables.Row(s) {
			if num > f.Node(s).NumPorts {
				continue
			}
			owner := f.LIDPort(fabric.LID(lid))
			if owner == fabric.NoPort {
				continue
			}
			if num == 0 && f.Owner(owner) == s || num > 0 && f.Peer(f.Port(s, num)) != fabric.NoPort {
				cleaned.Row(s)[lid] = num
				entries++
			}
		}
	}
	if entries == 0 { // for example, the switches were just started
		return nil, "the switches have no tables", nil
	}
	before := &lft.Routing{Engine: c.engine.Name(), Fabric: f, Tables: cleaned}
	order, err := updown.OrderFor(ctx, f, &opt.Route)
	if err != nil {
		return nil, "", err
	}
	if kept, _ := c.engine.Engine.(lft.IncrementalEngine).KeepOrder(f, order.Rank); kept != nil {
		if len(opt.Route.Roots) == 0 {
			order = updown.RecoverOrder(f, cleaned, order)
		}
		if order == nil {
			return nil, "the paths of the tables that the switches have do not go up and then down", nil
		}
		before.Order = order.Rank
	}
	opt.Route.Previous, opt.Route.Rebalance, opt.Route.Roots, opt.Demand = before, maxRebalance, nil, nil
	r, err = Run(ctx, f, c.engine, opt)
	switch refused := (*lft.DomainError)(nil); {
	case errors.As(err, &refused):
		return nil, refused.Reason, nil
	case err != nil:
		return nil, "", err
	case !r.Routing.Kept:
		return nil, "the tables that the switches have cannot be kept", nil
	case slices.ContainsFunc(r.Verify.Findings, isFault):
		return nil, "the tables that the switches have have faults", nil
	}
	foreign := 0
	for s := range fabric.NodeID(f.NumSwitches()) {
		for lid, num := range cleaned.Row(s) {
			if num != fabric.NoPath && num != r.Routing.Tables.Row(s)[lid] {
				foreign++
			}
		}
	}
	if float64(foreign) > maxForeign*float64(entries) {
		return nil, "the tables that the switches have are of another engine", nil
	}
	return r, "", nil
}

// prepareNext sets prepare for the next call: it makes a checker of changes, and a router
// unless there is one.
func (c *Incremental) prepareNext(r *Result) {
	routing, found := r.Routing, *r.Verify // the caller may regrade findings
	x, engine := c.prepared, c.engine.Engine.(lft.IncrementalEngine)
	c.prepare = func() prepared {
		x := x
		err := par.Catch(func() error {
			if x.router == nil {
				var ok bool
				if x.router, ok = lft.NewIncremental(engine, fabric.NewStableIndex(routing.Fabric), routing); !ok {
					x.router = nil
					return nil
				}
				x.load = x.router.MaxLoad()
			}
			x.checker = new(verify.IncrementalChecker)
			x.checker.Start(x.router.Snapshot(), routing.Tables, &found)
			return nil
		})
		if err != nil {
			return prepared{failure: err}
		}
		return x
	}
}

// prepareRebalance sets findScratch if tables are not balanced: Rebalance needs the load of
// tables from scratch. Run does not wait for that load.
func (c *Incremental) prepareRebalance(f *fabric.Fabric, opt Options) {
	c.forgetScratch()
	if c.router != nil && c.router.IsBalanced(opt.routeOptions().RebalanceFactor(), 0) {
		return
	}
	engine := c.engine.Engine
	c.findScratch = func(ctx context.Context) (load uint64) {
		// If that fails, Rebalance does nothing.
		_ = par.Catch(func() error {
			r, err := engine.Route(ctx, f, opt.Route)
			if err == nil {
				load = lft.GreatestLoad(f, r.Tables)
			}
			return err
		})
		return load
	}
}

// forgetScratch stops findScratch and drops its result: it was for another fabric.
func (c *Incremental) forgetScratch() {
	if c.stopScratch != nil {
		c.stopScratch()
	}
	c.findScratch, c.scratch, c.scratchLoad, c.stopScratch = nil, nil, 0, nil
}

// Rebalance moves some entries, at most 64 blocks; the fabric must be that of the last Run.
// While a load is above opt.Route.Rebalance times that of tables from scratch, it lowers loads;
// after that it moves towards opt.Demand. It proves each step for any mixture of old and new
// entries, which packets may meet. It returns a nil result if there is nothing to do, the state
// is not prepared, or the proof fails. The tables are then as they were, and the next Run is
// from scratch if IsStuck.
func (c *Incremental) Rebalance(ctx context.Context, opt Options) (*Result, Step) {
	step := Step{Kept: true, ByChange: true}
	c.stepped, c.stuck = false, false
	if !c.isReady() {
		return nil, step
	}
	start := time.Now()
	undo := c.takePart(ctx, &opt)
	if undo == nil {
		c.scratchLoad = 0 // a retry would find the same
		return nil, step
	}
	r := &Result{Engine: c.engine, Routing: c.router.Routing()}
	r.Seconds.Route = time.Since(start).Seconds()
	start = time.Now()
	if !c.checker.MayMix(r.Routing.Tables) {
		undo()
		c.scratchLoad = 0 // a retry would find the same
		return nil, step
	}
	var err error
	r.Verify, step.ByChange, err = c.checker.Check(ctx, c.router.Snapshot(), state.Of(r.Routing), verify.Options{Complete: true, Progress: opt.Progress})
	if err != nil || slices.ContainsFunc(r.Verify.Findings, isFault) || !step.ByChange {
		// The checker has lost these tables: the next Run is from scratch.
		c.prepared, c.stuck = prepared{}, err == nil
		return nil, step
	}
	step.Changes = ChangesSince(c.routing, r.Routing)
	c.routing, c.stepped, c.stuck = r.Routing, true, false
	r.regrade(opt.Multicast)
	r.Seconds.Verify = time.Since(start).Seconds()
	return r, step
}

// IsStuck returns true if the last Rebalance found no step although loads are above its aim.
// The next Run is from scratch then.
func (c *Incremental) IsStuck() bool { return c.stuck }

// isReady takes over finished preparations. It returns true if Rebalance has all that it needs.
func (c *Incremental) isReady() bool {
	select {
	case c.prepared = <-c.ready:
		c.ready = nil
	default:
	}
	select {
	case c.scratchLoad = <-c.scratch:
		c.scratch = nil
	default:
	}
	return c.ready == nil && c.prepare == nil && c.router != nil && c.checker != nil
}

// WantsRebalance returns true if Rebalance is likely to move entries: if loads are above factor
// times those of tables from scratch; or if there is a demand and the last step moved entries
// or adopted tables.
func (c *Incremental) WantsRebalance(factor float64, demand bool) bool {
	return c.isReady() && (c.scratchLoad > 0 && !c.router.IsBalanced(factor, c.scratchLoad) || demand && c.stepped)
}

// takePart moves some entries for Rebalance. undo reverts that; it is nil if nothing has
// changed.
func (c *Incremental) takePart(ctx context.Context, opt *Options) (undo func()) {
	factor := opt.routeOptions().RebalanceFactor()
	if c.scratchLoad > 0 {
		c.load = c.scratchLoad
		if c.stuck = !c.router.IsBalanced(factor, c.load); c.stuck {
			return c.router.TakePart(factor, c.load)
		}
	}
	if opt.Demand == nil {
		return nil
	}
	return fitPart(ctx, c.router, opt)
}

// IsPrepared returns true if no preparation is running.
func (c *Incremental) IsPrepared() bool {
	c.isReady()
	return c.ready == nil && c.scratch == nil
}

// Prepare starts the preparations for the next Run and Rebalance, if they are not done yet.
func (c *Incremental) Prepare() {
	c.prepareRun()
	if find := c.findScratch; find != nil {
		scratch := make(chan uint64, 1)
		ctx, stop := context.WithCancel(context.Background())
		c.findScratch, c.scratch, c.stopScratch = nil, scratch, stop
		go func() { scratch <- find(ctx) }()
	}
}

func (c *Incremental) prepareRun() {
	if prepare := c.prepare; prepare != nil {
		ready := make(chan prepared, 1)
		c.prepare, c.ready = nil, ready
		go func() { ready <- prepare() }()
	}
}

// Wait prepares for the next Run and Rebalance, and returns when that is done.
func (c *Incremental) Wait() {
	c.Prepare()
	_ = c.wait(context.Background())
	if c.scratch != nil {
		c.scratchLoad, c.scratch = <-c.scratch, nil
	}
}

// wait prepares for the next Run and returns when that is done, or with ctx's error.
func (c *Incremental) wait(ctx context.Context) error {
	c.prepareRun()
	if c.ready == nil {
		return nil
	}
	select {
	case c.prepared = <-c.ready:
		c.ready = nil
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// update is Run if tables are kept. It returns a nil result if they cannot be kept.
func (c *Incremental) update(ctx context.Context, f *fabric.Fabric, opt Options, step *Step) (*Result, error) {
	r := &Result{Engine: c.engine}
	if opt.Stage != nil {
		opt.Stage("route")
	}
	start := time.Now()
	f, err := assignLIDs(f, &opt)
	if err != nil {
		return nil, &LIDError{err}
	}
	was := c.router.Snapshot()
	now, ok := was.Index.Snapshot(f)
	// If more LIDs change, a routing from scratch is quicker.
	if !ok || !c.router.Update(now, max(1000, int(f.MaxLID())/4)) {
		step.Why = "the change is too large, or has new switches, higher LIDs or an order that does not serve"
		return nil, nil
	}
	c.load = lft.Rescale(c.load, was.Fabric, f)
	if err := c.router.TakeFirstStep(func() (uint64, error) { return c.load, nil }); err != nil {
		return nil, err
	}
	if port, times := c.router.Busiest(c.load); times > lft.FirstStepLoad {
		step.Over = &Excess{Port: port, Times: times}
	}
	if !c.router.IsBalanced(MaxDrift, c.load) {
		step.Why = "the loads have drifted apart"
		return nil, nil
	}
	before := c.routing
	r.Routing = c.router.Routing()
	c.routing = r.Routing
	step.Kept, step.LIDs = true, c.router.LIDs()
	compared := par.Go(func() error {
		step.Changes = ChangesSince(before, r.Routing)
		return nil
	})
	r.Seconds.Route = time.Since(start).Seconds()
	if opt.Stage != nil {
		opt.Stage("verify")
	}
	start = time.Now()
	r.Verify, step.ByChange, err = c.checker.Check(ctx, now, state.Of(r.Routing), verify.Options{Complete: true, Progress: opt.Progress})
	if failed := compared(); err == nil {
		err = failed
	}
	if err != nil {
		c.router, c.routing = nil, before // drop these tables
		return nil, err
	}
	if !step.ByChange {
		c.prepareNext(r)
	}
	c.prepareRebalance(f, opt)
	r.regrade(opt.Multicast)
	r.Seconds.Verify = time.Since(start).Seconds()
	return r, nil
}
