package compile

import (
	"context"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// Changes is what a subnet manager has to write where tables of prev are in force:
// entries, the blocks of lft.BlockSize of them that a single packet carries, and the
// switches that have some.
type Changes struct {
	Entries  int `json:"entries"`
	Blocks   int `json:"blocks"`
	Switches int `json:"switches"`
}

// Add adds what is written to one switch.
func (c *Changes) Add(entries, blocks int) {
	c.Entries, c.Blocks, c.Switches = c.Entries+entries, c.Blocks+blocks, c.Switches+1
}

// EachChange calls visit for the switches of r that need writes when the tables of prev are in force. It
// compares the tables of switches with the same GUID. A switch that prev does not have needs all its entries
// except those that are fabric.NoPath. Switches without a LID or without a cable cannot be written to.
func EachChange(prev, r *lft.Routing, visit func(s fabric.NodeID, entries, blocks int)) {
	f := r.Fabric
	for s := range fabric.NodeID(f.NumSwitches()) {
		if f.LID(f.PortBase(s)) == 0 || !f.HasCable(s) {
			continue
		}
		var old []fabric.PortNum
		if was, ok := prev.Fabric.SwitchByGUID(f.Node(s).GUID); ok {
			old = prev.Tables.Row(was)
		}
		if entries, blocks := lft.CountChanges(old, r.Tables.Row(s)); blocks > 0 {
			visit(s, entries, blocks)
		}
	}
}

// ChangesSince sums up EachChange.
func ChangesSince(prev, r *lft.Routing) (c Changes) {
	EachChange(prev, r, func(_ fabric.NodeID, entries, blocks int) { c.Add(entries, blocks) })
	return c
}

// Kept is what Run leaves for the next Run from its tables, or from those that they were made from:
// the router and the checker go on from there, or back. A Result is the same, but has no Certificate.
// The zero value has nothing. Not safe for concurrent use.
type Kept struct {
	// CountOnly is for callers that want only numbers: where no fault is found, Result.Verify has the
	// counts of unicast traffic and of the loads, and no findings. Unicast traffic includes that
	// of no switch without a cable.
	CountOnly bool

	keeper  lft.Keeper
	checker verify.IncrementalChecker
}

// Start prepares for a Run from a result's tables, which the engine may keep or not.
func (k *Kept) Start(r *Result) {
	e, ok := r.Engine.Engine.(lft.IncrementalEngine)
	if !ok || r.Routing.SL2VL != nil { // lanes are chosen for all paths together
		return
	}
	v := k.keeper.Hold(e, r.Routing)
	if v == nil {
		return
	}
	if k.checker.Begin(v); !k.checker.Holds(v) {
		k.checker.Start(v, r.Routing.Tables, r.Verify)
	}
}

// IsLast returns true if the tables that Run made last, with Options.Route.FirstStep, are also those
// that it makes without.
func (k *Kept) IsLast(r *lft.Routing, opt *Options) bool {
	return k.keeper.IsLast(r, opt.routeOptions().RebalanceFactor())
}

// Clone is an independent copy: a Run with the one changes nothing in the other. It cannot go back.
func (k *Kept) Clone() *Kept { return &Kept{k.CountOnly, k.keeper.Clone(), *k.checker.Clone()} }

// check is verify.Check of what Run has made.
func (k *Kept) check(ctx context.Context, r *Result, progress func(done, total int)) (*verify.Result, error) {
	s, opt := state.Of(r.Routing), verify.Options{Complete: true, Progress: progress}
	s.Multicast = r.Plan
	var v *fabric.Snapshot
	if k != nil {
		v = k.keeper.Snapshot(r.Routing)
	}
	if v == nil {
		return verify.Check(ctx, s, opt)
	}
	k.checker.Begin(k.keeper.Former())
	if !k.CountOnly || s.SL2VL != nil || s.PathSLs != nil || s.Multicast != nil {
		return k.checker.CheckAll(ctx, v, s, opt)
	}
	if counts := k.checker.Count(v, s.Tables); counts != nil {
		return counts, ctx.Err()
	}
	return verify.Check(ctx, s, opt)
}
