package compile

import (
	"context"

	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/verify"
)

// Kept is what Run leaves for the next Run from its tables, in callers that keep tables step by step:
// the router and the checker go on from there. A Result is the same, but has no Certificate. The zero
// value has nothing. Not safe for concurrent use.
type Kept struct {
	keeper  lft.Keeper
	checker verify.IncrementalChecker
}

// Start gives a router and a checker with a result's tables: those of the last Run, if it made the
// result, else new ones. The router is nil for engines and tables that cannot be kept by one. A caller
// that changes them has to undo that.
func (k *Kept) Start(r *Result) (*lft.Incremental, *verify.IncrementalChecker) {
	e, ok := r.Engine.Engine.(lft.IncrementalEngine)
	if !ok || r.Routing.SL2VL != nil { // lanes are chosen for all paths together
		return nil, nil
	}
	router, ok := k.keeper.Hold(e, r.Routing)
	if !ok {
		return nil, nil
	}
	if !k.checker.Holds(router.Snapshot()) {
		k.checker.Start(router.Snapshot(), r.Routing.Tables, r.Verify)
	}
	return router, &k.checker
}

// Clone is an independent copy: a Run with the one changes nothing in the other.
func (k *Kept) Clone() *Kept { return &Kept{k.keeper.Clone(), *k.checker.Clone()} }

// check is verify.Check of what Run has made.
func (k *Kept) check(ctx context.Context, r *lft.Routing, opt verify.Options) (*verify.Result, error) {
	if k != nil {
		if v := k.keeper.Snapshot(r); v != nil {
			return k.checker.CheckAll(ctx, v, r.Tables, opt)
		}
	}
	return verify.Check(ctx, r.Fabric, r.Tables, opt)
}
