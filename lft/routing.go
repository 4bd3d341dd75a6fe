package lft

import (
	"context"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// Guarantee is the set of properties that an engine promises of each routing, for all LIDs and
// all switches.
type Guarantee uint8

const (
	// Reachable: every end port reaches every LID that a cable path leads to.
	Reachable Guarantee = 1 << iota
	// Minimal: every path is a shortest one in the switch graph.
	Minimal
	// NoCreditLoop: the channel dependency graph has no cycle, management traffic included.
	NoCreditLoop
)

// Has returns true if g includes all of want.
func (g Guarantee) Has(want Guarantee) bool { return g&want == want }

// Options are the options of an engine.
type Options struct {
	// Roots are the top switches of the up*/down* order, the highest first; empty leaves the
	// choice to the engine.
	Roots []fabric.NodeID
	// Balanced, without Roots, makes an engine choose an order for low loads even if the
	// engine's paper has a rule for the order.
	Balanced bool
	// Order is the up*/down* order of the switches, as Routing.Order; nil leaves the choice to
	// the engine.
	Order []int32
	// VLs is the number of data VLs of the fabric's ports, 1 to MaxDataVLs; 0 lets the engine
	// take as many as it needs.
	VLs int
	// Origin is the switch with coordinates 0,0 of a mesh; 0 leaves the choice to the engine.
	Origin fabric.GUID
	// Dims is the size of each dimension of a mesh, in order; nil lets the engine find it.
	Dims []int
	// NoWrap leaves the cables that close the rings of a torus unused.
	NoWrap bool
	// Previous, if not nil, is a routing of a similar fabric with the same LIDs. An
	// IncrementalEngine keeps its entries where the fabrics do not differ.
	Previous *Routing
	// Keeper, if not nil, saves time if it holds Previous. It changes no entry.
	Keeper *Keeper
	// Rebalance bounds the greatest load of tables that keep parts of Previous, as a multiple
	// (1 or more) of that of a routing from scratch; 0 means DefaultRebalance.
	Rebalance float64
	// FirstStep changes little of Previous, regardless of Rebalance: see
	// Incremental.TakeFirstStep.
	FirstStep bool
	// Repair routes around missing cables and switches of a mesh.
	Repair bool
}

// DefaultRebalance is the default of Options.Rebalance.
const DefaultRebalance = 1.1

// RebalanceFactor returns Rebalance, or its default.
func (o Options) RebalanceFactor() float64 {
	if o.Rebalance == 0 {
		return DefaultRebalance
	}
	return o.Rebalance
}

// Engine computes the forwarding tables of a fabric whose end ports all have LIDs. Engines are
// stateless and safe for concurrent use.
type Engine interface {
	// Name is the engine's name on the command line, and OpenSM's name for it if OpenSM has it.
	Name() string
	// Guarantee is what Route promises for fabrics inside the engine's domain.
	Guarantee() Guarantee
	// Route computes the tables. It returns a *DomainError for a fabric that the engine cannot
	// route, and ctx's error. The result does not depend on the number of CPUs.
	Route(ctx context.Context, f *fabric.Fabric, opt Options) (*Routing, error)
}

// DomainError means that an engine cannot route a fabric.
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
	// Order is the total order of the switches that an up*/down* engine used: rank by NodeID, 0
	// on top. Nil for other engines.
	Order []int32
	// CAOrder lists CA and router ports as the engine numbers hosts, NoPort for a number
	// without host. Nil for engines that do not number them.
	CAOrder []fabric.PortID
	// Kept is true if entries of Options.Previous changed only where they had to.
	Kept bool
	// Notes are the engine's remarks about the fabric, for people, a line each.
	Notes []string
	// SL2VL has the SL-to-VL tables that the guarantee needs; nil if it needs only one VL, and
	// all traffic may use the same.
	SL2VL *SL2VL
	// PathSLs has the SL of each path that the guarantee needs; nil if each path may use any
	// SL. For the scheme spread it only shares out the VLs.
	PathSLs *PathSLs
}

// SwitchesByRank returns the switches of f by rank: the inverse of Routing.Order. It returns an
// error if the ranks are no strict order of them.
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
