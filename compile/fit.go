package compile

import (
	"context"
	"math"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/verify/bound"
)

// Fit is the outcome of fitting tables to a demand.
type Fit struct {
	lft.Fit
	Original *lft.Tables  // before the fit
	Bound    *bound.Bound // lower bound of the load under the demand; nil if there is none
	// Uniform and UniformBefore are the greatest loads of uniform traffic, one route from each
	// host to each LID, after and before the fit, in lft.LoadUnits.
	Uniform, UniformBefore uint64
	// Why is the reason why the tables were not fitted, in a few words; "" if they were.
	Why string
}

// floor returns UniformFloor, or its default.
func (o *Options) floor() float64 {
	if o.UniformFloor == 0 {
		return lft.DefaultUniformFloor
	}
	return o.UniformFloor
}

// routeOptions returns Route with the Kept state. With a demand it multiplies the rebalance
// factor by floor, so that a rebalance does not undo the fit.
func (o *Options) routeOptions() lft.Options {
	route := o.Route
	if o.Kept != nil {
		route.Keeper = &o.Kept.keeper
	}
	if o.Demand != nil {
		route.Rebalance = route.RebalanceFactor() * o.floor()
	}
	return route
}

// fit fits the tables to opt.Demand. If the engine kept tables, it changes only the entries
// that it must to bring the load to at most opt.Route.Rebalance times a lower bound.
func (r *Result) fit(ctx context.Context, opt *Options) error {
	if opt.Demand == nil {
		return nil
	}
	f := r.Routing.Fabric
	d, err := opt.Demand(ctx, f)
	if err != nil || d == nil {
		return err
	}
	r.Fit = &Fit{Original: r.Routing.Tables, Bound: bound.FindUnder(f, d), UniformBefore: lft.GreatestLoad(f, r.Routing.Tables)}
	r.Fit.Uniform = r.Fit.UniformBefore
	l, why := r.incremental()
	if r.Fit.Why = why; l == nil {
		return nil
	}
	x := lft.FitOptions{Most: opt.mostRoutes(r.Fit.UniformBefore), Slack: 1, Blocks: math.MaxInt, Spread: true}
	if r.Routing.Kept {
		x = opt.keptOptions(l)
	}
	if r.Fit.Bound != nil {
		x.Least = r.Fit.Bound.Load
	}
	fit, err := l.Fit(ctx, d, x)
	if err != nil {
		return err
	}
	r.Fit.Fit, r.Fit.Uniform = *fit, l.MaxLoad()
	r.Routing.Tables = l.Routing().Tables
	return nil
}

// keptOptions returns how far a fit to a demand may change tables that were kept.
func (o *Options) keptOptions(l *lft.Incremental) lft.FitOptions {
	return lft.FitOptions{Most: max(l.MaxLoad(), o.mostRoutes(l.LoadBound())), Slack: o.Route.RebalanceFactor(), Blocks: math.MaxInt}
}

// fitPart changes a few blocks of the tables towards opt.Demand. undo reverts that; it is nil
// if nothing has changed.
func fitPart(ctx context.Context, l *lft.Incremental, opt *Options) (undo func()) {
	f := l.Snapshot().Fabric
	d, err := opt.Demand(ctx, f)
	if err != nil || d == nil || !l.IsLegal() {
		return nil
	}
	x := opt.keptOptions(l)
	x.Blocks = lft.PartBlocks
	if b := bound.FindUnder(f, d); b != nil {
		x.Least = b.Load
	}
	fit, err := l.Fit(ctx, d, x)
	if err != nil || !fit.Changed() {
		return nil
	}
	return fit.Undo
}

// mostRoutes returns the greatest load of uniform traffic that a fit may leave; load is
// the one before.
func (o *Options) mostRoutes(load uint64) uint64 { return uint64(float64(o.floor() * float64(load))) }

// incremental returns the tables in a form whose entries Fit can change, or nil and the reason.
func (r *Result) incremental() (l *lft.Incremental, why string) {
	e, ok := r.Engine.Engine.(lft.IncrementalEngine)
	switch {
	case !ok:
		return nil, "the engine leaves no choice of ports"
	case r.Routing.PathSLs != nil:
		return nil, "paths have to stay on their virtual lanes"
	}
	l, ok = lft.NewIncremental(e, fabric.NewStableIndex(r.Routing.Fabric), r.Routing)
	if !ok || !l.IsLegal() {
		return nil, "some paths are not those of the engine's order"
	}
	return l, ""
}
