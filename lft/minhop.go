package lft

import (
	"context"
	"fmt"

	"github.com/ibweave/ibweave/fabric"
)

// Minhop routes along shortest paths in the switch graph and balances the
// loads. It routes every fabric whose switches are less than
// fabric.MaxHops links apart, and promises nothing about credit loops.
//
// Unlike OpenSM's minhop (osm_ucast_mgr.c), which counts for each switch by
// itself how many LIDs a port has, it counts the routes of the whole fabric.
type Minhop struct {
	// LoadsOnly makes it leave routes to different LIDs together where loads are small: on meshes
	// they take fewer turns so, and thus fewer virtual lanes.
	LoadsOnly bool
}

// Name is "minhop".
func (Minhop) Name() string { return "minhop" }

// Guarantee is Reachable and Minimal.
func (Minhop) Guarantee() Guarantee { return Reachable | Minimal }

// Route takes the time of Balance.
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

// KeepOrder is nil: any shortest path will do.
func (Minhop) KeepOrder(*fabric.Fabric, []int32) ([]int32, bool) { return nil, true }
