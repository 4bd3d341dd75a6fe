package lft

import (
	"context"
	"fmt"

	"github.com/ibweave/ibweave/fabric"
)

// Minhop routes along shortest paths in the switch graph and balances the loads. It routes
// fabrics whose switches are less than fabric.MaxHops links apart. Credit loops are possible.
//
// Unlike OpenSM's minhop (osm_ucast_mgr.c), in which each switch counts the LIDs of its own
// ports, it counts the routes of the whole fabric.
type Minhop struct {
	// LoadsOnly does not move routes to different LIDs apart. On meshes they then make fewer
	// turns, and so need fewer virtual lanes.
	LoadsOnly bool
}

// Name is "minhop".
func (Minhop) Name() string { return "minhop" }

// Guarantee is Reachable and Minimal.
func (Minhop) Guarantee() Guarantee { return Reachable | Minimal }

// Route returns routing tables made by Balance, or those of opt.Previous updated by Reroute.
func (e Minhop) Route(ctx context.Context, f *fabric.Fabric, opt Options) (*Routing, error) {
	if opt.Previous != nil {
		return Reroute(ctx, e, f, opt)
	}
	if f.Distances().TooLong() {
		return nil, &DomainError{Engine: "minhop", Reason: fmt.Sprintf("two switches are %d links or more apart", fabric.MaxHops)}
	}
	b := newBalancer(f, func() ListNextHops { return ShortestNextHops(f) })
	tables, err := b.makeTables(ctx, e.LoadsOnly)
	if err != nil {
		return nil, err
	}
	return &Routing{Engine: "minhop", Fabric: f, Tables: tables}, nil
}

var _ IncrementalEngine = Minhop{}

// KeepOrder returns nil: the engine has no order.
func (Minhop) KeepOrder(*fabric.Fabric, []int32) ([]int32, bool) { return nil, true }
