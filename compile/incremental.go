package compile

import (
	"context"
	"time"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/verify"
)

// Incremental compiles a fabric again and again as it changes, for somebody who has the
// last result in force: entries stay that can, and what changed is verified. The zero
// value has nothing yet. Not safe for concurrent use.
type Incremental struct {
	engine  *Engine
	live    *lft.Live // nil: the next Run is from scratch
	routing *lft.Routing
	spare   *lft.Tables // that nobody uses any more, nil for none
	watch   verify.Watch
	load    uint64        // live.MaxLoad of the last routing from scratch
	prepare func()        // makes live and watch; nil when nobody need
	ready   chan struct{} // closed when prepare is done; nil when it is not under way
}

// MaxDrift is how many times the load on the most loaded link may be what it was after
// the last routing from scratch. Beyond that all is routed anew.
const MaxDrift = 2

// largeChange is of how many LIDs all entries may have to be looked at: a quarter of all.
// To route all anew is quicker then, but for fabrics where nobody notices.
func largeChange(f *fabric.Fabric) int { return max(1000, int(f.MaxLID())/4) }

// Step is what Incremental.Run did.
type Step struct {
	// Kept says that the tables are those of before but for what had to change.
	Kept bool
	// Why is the reason where they are not, in a few words.
	Why string
	// LIDs is how many were looked at.
	LIDs int
	// Changes is what differs from the tables before, all zero for the first.
	Changes Changes
	// ByChange says that the verdict rests on the last one and what changed; else all
	// has been checked. Notes are left out then, see verify.Watch.
	ByChange bool
}

// Run is the function Run for f, which comes after the fabrics of the calls before. It
// is from scratch where the engine is no lft.Keeper or has other options than one VL,
// where the change or the drift of the loads is too large, where the tables would have
// faults, and for multicast.
//
// The next call needs a state that takes as long to prepare as to route from scratch.
// Prepare does it in the background, when the caller has time; else the call does, and
// counts it as routing in Seconds.
func (c *Incremental) Run(ctx context.Context, f *fabric.Fabric, e *Engine, opt Options) (r *Result, step Step, err error) {
	start := time.Now()
	c.Wait()
	waited := time.Since(start).Seconds()
	defer func() {
		if r != nil {
			r.Seconds.Route += waited
		}
	}()
	before := c.routing
	_, keeps := e.Engine.(lft.Keeper)
	can := keeps && opt.Groups == nil && opt.SL2VL == "" && opt.Route.VLs <= 1
	switch {
	case !keeps:
		step.Why = "the engine knows no other way"
	case !can:
		step.Why = "there is more than unicast on one VL"
	case c.live == nil || c.engine.Name() != e.Name():
		step.Why = "there are no tables to keep"
	default:
		r, err = c.follow(ctx, f, opt, &step)
		if err != nil || r != nil && r.Verify.Worst() < verify.Error {
			return r, step, err
		}
		if r != nil {
			step = Step{Why: "the tables that were kept have faults"}
		}
	}
	c.live, c.engine, c.routing, c.prepare = nil, e, nil, nil
	c.watch = verify.Watch{}
	opt.Route.Previous = nil
	if r, err = Run(ctx, f, e, opt); err != nil {
		return nil, step, err
	}
	if before != nil {
		step.Changes = ChangesSince(before, r.Routing)
	}
	c.routing = r.Routing
	if can && r.Routing.SL2VL == nil {
		c.next(r, true)
	}
	return r, step, nil
}

// next says how to prepare for the next call: to verify by what changed, and with route
// to route as well.
func (c *Incremental) next(r *Result, route bool) {
	routing, found := r.Routing, *r.Verify // the caller may regrade findings
	c.prepare = func() {
		err := fabric.Guarded(func() error {
			if route {
				live, ok := lft.NewLive(c.engine.Engine.(lft.Keeper), routing)
				if !ok {
					return nil
				}
				c.live, c.load = live, live.MaxLoad()
			}
			c.watch.Begin(routing.Fabric, routing.Tables, &found)
			return nil
		})()
		if err != nil { // a panic: there is nothing to keep
			c.live, c.watch = nil, verify.Watch{}
		}
	}
}

// Prepare begins to prepare for the next call of Run, if that is not done yet.
func (c *Incremental) Prepare() {
	prepare := c.prepare
	if prepare == nil {
		return
	}
	c.prepare = nil
	ready := make(chan struct{})
	c.ready = ready
	go func() {
		defer close(ready)
		prepare()
	}()
}

// Recycle gives back tables of a Run but the last, which nobody uses any more: another
// Run may write over them.
func (c *Incremental) Recycle(r *lft.Routing) {
	c.Wait()
	if r != c.routing {
		c.spare = r.Tables
	}
}

// Wait prepares for the next call of Run, and waits until that is done.
func (c *Incremental) Wait() {
	c.Prepare()
	if c.ready != nil {
		<-c.ready
		c.ready = nil
	}
}

// follow is Run from what is known. The result is nil when that will not do.
func (c *Incremental) follow(ctx context.Context, f *fabric.Fabric, opt Options, step *Step) (*Result, error) {
	r := &Result{Engine: c.engine}
	if opt.Stage != nil {
		opt.Stage("route")
	}
	start := time.Now()
	f, err := assignLIDs(f, &opt)
	if err != nil {
		return nil, &LIDError{err}
	}
	if !c.live.Follow(f, largeChange(f)) {
		step.Why = "the change is too large, or has new switches or higher LIDs"
		return nil, nil
	}
	if c.live.MaxLoad() > MaxDrift*c.load {
		step.Why = "the loads have drifted apart"
		return nil, nil
	}
	before := c.routing
	spare := c.spare
	if spare == c.routing.Tables {
		spare = nil
	}
	c.routing = c.live.Routing(spare)
	c.spare = nil
	r.Routing = c.routing
	step.Kept, step.LIDs = true, c.live.LIDs()
	var work fabric.Workers
	work.Go(func() { step.Changes = ChangesSince(before, c.routing) })
	r.Seconds.Route = time.Since(start).Seconds()
	if opt.Stage != nil {
		opt.Stage("verify")
	}
	start = time.Now()
	r.Verify, step.ByChange, err = c.watch.Check(ctx, f, c.routing.Tables, verify.Options{Progress: opt.Progress})
	work.Wait()
	if err != nil {
		c.live, c.routing = nil, before // nobody gets these tables
		return nil, err
	}
	if !step.ByChange {
		c.next(r, false)
	}
	r.regrade(opt.Multicast)
	r.Seconds.Verify = time.Since(start).Seconds()
	return r, nil
}
