//go:build opensm && ibweave_fault

package main

import (
	"context"
	"slices"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// engineTable has an engine more, ibweave-fault, which panics. Only the tests
// build it, with the tag ibweave_fault.
func engineTable() []compile.Engine {
	return append(slices.Clone(compile.Engines), compile.Engine{
		Engine: fault{}, Domain: "no fabric", Summary: "panics, for tests",
	})
}

type fault struct{}

func (fault) Name() string             { return "fault" }
func (fault) Guarantee() lft.Guarantee { return 0 }
func (fault) Route(context.Context, *fabric.Fabric, lft.Options) (*lft.Routing, error) {
	panic("a fault on purpose")
}
