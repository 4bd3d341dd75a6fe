package lft

import (
	"context"

	"github.com/ibweave/ibweave/fabric"
)

// Guarantee is the set of properties that an engine promises of every routing
// it returns, for all LIDs and from all switches.
type Guarantee uint8

const (
	// Reachable: every end port reaches every LID that a cable path leads to.
	Reachable Guarantee = 1 << iota
	// Minimal: every path is a shortest one in the switch graph.
	Minimal
	// NoCreditLoop: the channel dependency graph has no cycle, management
	// traffic included.
	NoCreditLoop
)

// Has says whether all of want is promised.
func (g Guarantee) Has(want Guarantee) bool { return g&want == want }

// Options are what a caller may ask of an engine.
type Options struct {
	// Roots puts these switches on top of the up*/down* order, the first
	// highest; empty leaves the choice to the engine.
	Roots []fabric.NodeID
}

// Engine computes the forwarding tables of a fabric whose end ports all have
// LIDs. Engines are stateless and safe for concurrent use.
type Engine interface {
	// Name is the engine's name on the command line, as OpenSM has it where
	// OpenSM has the engine.
	Name() string
	// Guarantee is what Route promises inside the engine's domain.
	Guarantee() Guarantee
	// Route computes the tables. It returns a *DomainError for a fabric that
	// the engine cannot route, and ctx's error when that ends first. The
	// result is the same on any number of CPUs.
	Route(ctx context.Context, f *fabric.Fabric, opt Options) (*Routing, error)
}

// DomainError says that a fabric is outside of an engine's domain, and why.
type DomainError struct {
	Engine string
	Reason string
}

func (e *DomainError) Error() string {
	return e.Engine + " cannot route this fabric: " + e.Reason
}

// Routing is what an engine made.
type Routing struct {
	Engine string
	Fabric *fabric.Fabric
	Tables *Tables
	// Order is the total order of the switches that an up*/down* engine
	// used: rank by NodeID, 0 on top. Nil for other engines.
	Order []int32
}
