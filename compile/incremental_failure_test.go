package compile_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/updown"
	"github.com/ibweave/ibweave/verify"
)

// troubled routes as updn does, and does something else when it is to keep its order on
// a fabric.
type troubled struct {
	updown.Engine
	keep *func(f *fabric.Fabric)
}

func (e troubled) KeepOrder(f *fabric.Fabric, was []int32) ([]int32, bool) {
	(*e.keep)(f)
	return e.Engine.KeepOrder(f, was)
}

// wholeAndDamaged is a fat tree, and without one cable.
func wholeAndDamaged(t *testing.T) (whole, damaged *fabric.Fabric) {
	t.Helper()
	whole = short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 3}))(t)
	whole = short.Must(lft.AssignLIDs(whole, lft.LIDOptions{}))(t)
	cables, _ := whole.SwitchLinks(0)
	return whole, whole.Without(cables[0])
}

// panics returns true if a step failed by a panic.
func panics(step compile.Step) bool {
	var p *par.Panic
	return errors.As(step.Failure, &p)
}

// Where it fails to keep tables, all is routed from scratch at once, and what went wrong
// is told.
func TestIncrementalPanics(t *testing.T) {
	whole, damaged := wholeAndDamaged(t)
	links := 0 // of the fabric of the last call
	keep := func(f *fabric.Fabric) {
		if f.NumLinks() != links {
			panic("where was I?")
		}
	}
	e := &compile.Engine{Engine: troubled{keep: &keep}}
	var c compile.Incremental
	for i, f := range []*fabric.Fabric{whole, damaged, whole} {
		r, step := short.Must2(c.Run(t.Context(), f, e, compile.Options{}))(t)
		links = f.NumLinks()
		if step.Kept || panics(step) != (i > 0) {
			t.Errorf("%d: %+v", i, step)
		}
		scratch := short.Must(compile.Run(t.Context(), f, e, compile.Options{}))(t)
		short.Equal(t, compile.ChangesSince(scratch.Routing, r.Routing), (compile.Changes{}), i, "from scratch", "would be others")
	}
}

// picky routes as updn does, and refuses to do so from scratch on all fabrics but the first.
type picky struct {
	updown.Engine
	links *int // of the first
}

func (e picky) Route(ctx context.Context, f *fabric.Fabric, opt lft.Options) (*lft.Routing, error) {
	if *e.links == 0 {
		*e.links = f.NumLinks()
	}
	if opt.Previous == nil && f.NumLinks() != *e.links {
		return nil, &lft.DomainError{Engine: e.Name(), Reason: "other cables"}
	}
	return e.Engine.Route(ctx, f, opt)
}

// What the engine refuses from scratch is kept, though the change is large.
func TestIncrementalRefused(t *testing.T) {
	whole := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: 48, Levels: 2}))(t)
	spine := fabric.NodeID(whole.NumSwitches() - 1)
	cables, _ := whole.SwitchLinks(spine)
	e := &compile.Engine{Engine: picky{links: new(int)}}
	var c compile.Incremental
	for i, f := range []*fabric.Fabric{whole, whole.Without(cables[:len(cables)-1]...)} {
		r, step, err := c.Run(t.Context(), f, e, compile.Options{})
		if err != nil || step.Kept != (i > 0) || r.Verify.Fails(verify.Error) {
			t.Errorf("%d: %+v, %v", i, step, err)
		}
	}
}

// cornered is picky, and panics when it is to keep its order.
type cornered struct{ picky }

func (cornered) KeepOrder(*fabric.Fabric, []int32) ([]int32, bool) { panic("no order") }

// Where it fails to keep tables and the engine refuses from scratch, tables are kept, and the failure is told.
func TestIncrementalCornered(t *testing.T) {
	whole, damaged := wholeAndDamaged(t)
	e := &compile.Engine{Engine: cornered{picky{links: new(int)}}}
	var c compile.Incremental
	for i, f := range []*fabric.Fabric{whole, damaged} {
		r, step, err := c.Run(t.Context(), f, e, compile.Options{})
		if err != nil || step.Kept != (i > 0) || panics(step) != (i > 0) || r.Verify.Fails(verify.Error) {
			t.Errorf("%d: %+v, %v", i, step, err)
		}
	}
}

// Run waits for what is prepared no longer than its context lets it, and not at all where
// it has no use for that.
func TestIncrementalWaits(t *testing.T) {
	f, _ := wholeAndDamaged(t)
	var c compile.Incremental
	if _, _, err := c.Run(t.Context(), f, engine(t, "updn"), compile.Options{}); err != nil {
		t.Fatal(err)
	}
	resume := c.HoldPreparation()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := c.Run(ctx, f, engine(t, "updn"), compile.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's error", err)
	}
	// The preparation is still held.
	if _, step, err := c.Run(t.Context(), f, engine(t, "minhop"), compile.Options{}); err != nil || step.Kept {
		t.Errorf("%+v, %v", step, err)
	}
	resume()
	if _, _, err := c.Run(t.Context(), f, engine(t, "updn"), compile.Options{}); err != nil {
		t.Error(err)
	}
}

// A panic while the next call is prepared is told by that call, and one while a call is
// given up leaves nothing behind.
func TestIncrementalTrouble(t *testing.T) {
	whole, damaged := wholeAndDamaged(t)
	fine := func(*fabric.Fabric) {}
	keep := func(*fabric.Fabric) { panic("no order") }
	e := &compile.Engine{Engine: troubled{keep: &keep}}
	var c compile.Incremental
	for i := range 2 {
		_, step, err := c.Run(t.Context(), whole, e, compile.Options{})
		if err != nil || step.Kept || panics(step) != (i > 0) {
			t.Errorf("%d: %+v, %v", i, step, err)
		}
		c.Wait()
		if i > 0 {
			keep = fine
		}
	}
	if _, step, err := c.Run(t.Context(), whole, e, compile.Options{}); err != nil || step.Failure == nil {
		t.Errorf("%+v, %v", step, err)
	}
	c.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	keep = func(*fabric.Fabric) {
		cancel()
		panic("no order")
	}
	if _, _, err := c.Run(ctx, damaged, e, compile.Options{}); err == nil {
		t.Error("no error, though the context has ended")
	}
	keep = fine
	if _, step, err := c.Run(t.Context(), damaged, e, compile.Options{}); err != nil || step.Kept || step.Failure != nil {
		t.Errorf("%+v, %v: want tables from scratch", step, err)
	}
}
