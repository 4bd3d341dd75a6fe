//go:build opensm && ibweave_fault

package main

import (
	"context"
	"slices"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/updown"
)

// engineTable adds three engines for tests, which alone set
// the tag ibweave_fault: ibweave-fault panics; the tables of
// ibweave-wrong lead nowhere; ibweave-lost breaks its order of
// the switches, so that no multicast scheme finds trees.
func engineTable() []compile.Engine {
	return append(slices.Clone(compile.Engines), compile.Engine{Engine: fault{}}, compile.Engine{Engine: wrong{}}, compile.Engine{Engine: lost{}})
}

type fault struct{}

func (fault) Name() string             { return "fault" }
func (fault) Guarantee() lft.Guarantee { return 0 }
func (fault) Route(context.Context, *fabric.Fabric, lft.Options) (*lft.Routing, error) {
	panic("a fault on purpose")
}

type wrong struct{ lft.Minhop }

func (wrong) Name() string { return "wrong" }
func (w wrong) Route(ctx context.Context, f *fabric.Fabric, opt lft.Options) (*lft.Routing, error) {
	r, err := w.Minhop.Route(ctx, f, opt)
	if err == nil {
		r.Tables.Row(0)[f.MaxLID()] = fabric.NoPath
	}
	return r, err
}

type lost struct{ updown.Engine }

func (lost) Name() string { return "lost" }
func (l lost) Route(ctx context.Context, f *fabric.Fabric, opt lft.Options) (*lft.Routing, error) {
	r, err := l.Engine.Route(ctx, f, opt)
	if err == nil {
		r.Order = r.Order[:1]
	}
	return r, err
}
