package lft

import (
	"context"
	"fmt"
	"slices"

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

// Has returns true if g includes all of want.
func (g Guarantee) Has(want Guarantee) bool { return g&want == want }

// Options are what a caller may ask of an engine.
type Options struct {
	// Roots puts these switches on top of the up*/down* order, the first
	// highest; empty leaves the choice to the engine.
	Roots []fabric.NodeID
	// Balanced has an engine without Roots whose source gives a rule for the order choose one with
	// lower loads all the same, as the others do.
	Balanced bool
	// Order is the up*/down* order of the switches, as Routing.Order; nil leaves the choice to the
	// engine.
	Order []int32
	// VLs is the number of data VLs of the fabric's ports, 1 to MaxDataVLs; with 0
	// the engine takes as many as it needs.
	VLs int
	// Origin is the switch with coordinates 0,0 of a mesh; 0 leaves the
	// choice to the engine.
	Origin fabric.GUID
	// Dims is the size of each dimension of a mesh, in order; nil leaves it to
	// the engine to find out.
	Dims []int
	// NoWrap leaves the cables that close a dimension of a torus unused.
	NoWrap bool
	// Previous, if not nil, is a routing of a similar fabric with the same LIDs.
	// An IncrementalEngine keeps of it what the difference does not touch.
	Previous *Routing
	// Keeper, if not nil, saves time if it has Previous. It changes no entry.
	Keeper *Keeper
	// Rebalance is how many times the greatest load of routing from scratch the tables may have
	// that keep some of Previous, 1 or more; 0 stands for DefaultRebalance.
	Rebalance float64
	// FirstStep changes little of Previous, regardless of Rebalance: see
	// Incremental.TakeFirstStep.
	FirstStep bool
	// Repair routes around missing cables and switches of a mesh.
	Repair bool
}

// DefaultRebalance is Options.Rebalance by default.
const DefaultRebalance = 1.1

// RebalanceFactor is Rebalance, or the default.
func (o Options) RebalanceFactor() float64 {
	if o.Rebalance == 0 {
		return DefaultRebalance
	}
	return o.Rebalance
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

// Routing is the result of an engine.
type Routing struct {
	Engine string
	Fabric *fabric.Fabric
	Tables *Tables
	// Order is the total order of the switches that an up*/down* engine
	// used: rank by NodeID, 0 on top. Nil for other engines.
	Order []int32
	// CAOrder is CA and router ports in the order in which the engine means hosts to be
	// numbered, NoPort for a number without a host. Nil for engines without one.
	CAOrder []fabric.PortID
	// Kept says that entries of Options.Previous changed only where they had to.
	Kept bool
	// Notes are the engine's remarks about the fabric, for people: a line
	// each.
	Notes []string
	// SL2VL is the SL-to-VL tables that the guarantee needs, nil when it needs
	// one VL only, and all traffic may use the same.
	SL2VL *SL2VL
	// PathSLs is the SL that the guarantee wants each path to have; nil means
	// that any path may use any SL. Those of scheme spread only share out the VLs.
	PathSLs *PathSLs
}

// SwitchesByRank is the inverse of Routing.Order. It returns an error if the ranks are not those of a
// strict order of the switches of f.
func SwitchesByRank(f *fabric.Fabric, order []int32) ([]fabric.NodeID, error) {
	n := f.NumSwitches()
	if len(order) != n {
		return nil, fmt.Errorf("an up*/down* order of %d switches, the fabric has %d", len(order), n)
	}
	list := slices.Repeat([]fabric.NodeID{fabric.NoNode}, n)
	for s, rank := range order {
		if rank < 0 || int(rank) >= n || list[rank] != fabric.NoNode {
			return nil, fmt.Errorf("an up*/down* order with rank %d; want each of 0 to %d once", rank, n-1)
		}
		list[rank] = fabric.NodeID(s)
	}
	return list, nil
}
