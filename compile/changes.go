package compile

import (
	"context"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// Changes counts what a subnet manager writes to replace old tables by new ones: entries
// that differ, the blocks that hold them (lft.BlockSize entries, one packet each), and the
// switches concerned.
type Changes struct {
	Entries  int `json:"entries"`
	Blocks   int `json:"blocks"`
	Switches int `json:"switches"`
}

// Add adds the writes to one switch.
func (c *Changes) Add(entries, blocks int) {
	c.Entries, c.Blocks, c.Switches = c.Entries+entries, c.Blocks+blocks, c.Switches+1
}

// EachChange calls visit for the switches of r that need writes when the tables of prev are
// in force. It compares the tables of switches with the same GUID. A switch that prev does
// not have needs all its entries except those that are fabric.NoPath. Switches without a
// LID or without a cable cannot be written to.
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

// ChangesSince sums up the writes that EachChange visits.
func ChangesSince(prev, r *lft.Routing) (c Changes) {
	EachChange(prev, r, func(_ fabric.NodeID, entries, blocks int) { c.Add(entries, blocks) })
	return c
}

// Kept holds what a Run computed for its tables, so that the next Run can start from these
// tables or from their predecessors. A Run with it gives the same Result, but without a
// Certificate. The zero value is empty. Not safe for concurrent use.
type Kept struct {
	// CountOnly saves time for callers that want only numbers. If there is no fault,
	// Result.Verify has counts of unicast traffic and of loads, but no findings. The counts
	// leave out switches without a cable.
	CountOnly bool

	keeper  lft.Keeper
	checker verify.IncrementalChecker
}

// Start prepares for a Run whose Previous tables are those of r. The engine need not keep
// them.
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

// IsLast returns true if r has the tables of the last Run, made with
// Options.Route.FirstStep, and a Run without FirstStep would make the same.
func (k *Kept) IsLast(r *lft.Routing, opt *Options) bool {
	return k.keeper.IsLast(r, opt.routeOptions().RebalanceFactor())
}

// Clone returns an independent copy. The copy cannot go back to tables before the last
// ones.
func (k *Kept) Clone() *Kept { return &Kept{k.CountOnly, k.keeper.Clone(), *k.checker.Clone()} }

// check verifies the tables of r as verify.Check does. If k holds the last verdict, it
// checks only what has changed.
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
