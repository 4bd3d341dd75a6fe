package compile_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/updown"
)

// forgetful routes as updn does, and panics where it is to keep its order on another
// fabric than the one that it has routed.
type forgetful struct {
	updown.Engine
	links *int
}

func (e forgetful) Route(ctx context.Context, f *fabric.Fabric, opt lft.Options) (*lft.Routing, error) {
	*e.links = f.NumLinks()
	return e.Engine.Route(ctx, f, opt)
}

func (e forgetful) Keep(f *fabric.Fabric, was []int32) []int32 {
	if f.NumLinks() != *e.links {
		panic("where was I?")
	}
	return e.Engine.Keep(f, was)
}

// Where it fails to keep tables, all is routed from scratch at once, and what went wrong
// is told.
func TestIncrementalPanics(t *testing.T) {
	whole, err := gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 3})
	if err == nil {
		whole, err = lft.AssignLIDs(whole, lft.LIDOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	cables, _ := whole.SwitchLinks(0)
	damaged := whole.Without(cables[0])
	e := &compile.Engine{Engine: forgetful{links: new(int)}}
	var c compile.Incremental
	for i, f := range []*fabric.Fabric{whole, damaged, whole} {
		r, step, err := c.Run(t.Context(), f, e, compile.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var panicked *fabric.WorkerPanic
		if step.Kept || errors.As(step.Failure, &panicked) != (i > 0) {
			t.Errorf("%d: %+v", i, step)
		}
		scratch, err := compile.Run(t.Context(), f, e, compile.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if n := compile.ChangesSince(scratch.Routing, r.Routing); n != (compile.Changes{}) {
			t.Errorf("%d: from scratch %+v would be others", i, n)
		}
	}
}

// Run waits for what is prepared no longer than its context lets it, and not at all where
// it has no use for that.
func TestIncrementalWaits(t *testing.T) {
	f, err := gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 3})
	if err == nil {
		f, err = lft.AssignLIDs(f, lft.LIDOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
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

// troubled routes as updn does, and does something else when it is to keep its order.
type troubled struct {
	updown.Engine
	keep *func()
}

func (e troubled) Keep(f *fabric.Fabric, was []int32) []int32 {
	(*e.keep)()
	return e.Engine.Keep(f, was)
}

// A panic while the next call is prepared is told by that call, and one while a call is
// given up leaves nothing behind.
func TestIncrementalTrouble(t *testing.T) {
	whole, err := gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 3})
	if err == nil {
		whole, err = lft.AssignLIDs(whole, lft.LIDOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	cables, _ := whole.SwitchLinks(0)
	damaged := whole.Without(cables[0])
	fine := func() {}
	keep := func() { panic("no order") }
	e := &compile.Engine{Engine: troubled{keep: &keep}}
	var c compile.Incremental
	for i := range 2 {
		_, step, err := c.Run(t.Context(), whole, e, compile.Options{})
		var panicked *fabric.WorkerPanic
		if err != nil || step.Kept || errors.As(step.Failure, &panicked) != (i > 0) {
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
	keep = func() {
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
