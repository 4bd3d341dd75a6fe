// Package diff compares two states of a subnet: what changed, whom it affects,
// and what can happen while a subnet manager writes the change switch by
// switch.
// It makes no promise to other modules.
//
// Nodes are matched by GUID and ports by number, forwarding entries by the end
// port that they lead to: a new LID of a port is a difference of LIDs alone.
//
// OpenSM writes linear forwarding tables switch by switch, in blocks of 64 LIDs
// (osm_ucast_mgr_set_fwd_tables). Until it is done a packet can meet old entries
// on some switches and new ones on others. Compare therefore looks at all
// mixtures at once: the graph that has, for a LID, the old and the new next hop
// of every switch.
package diff

import (
	"context"

	"github.com/ibweave/ibweave/state"
)

// Compare returns what differs in b, the new state, from a, the old one.
//
// It takes O(switches x LIDs) time, never per pair of ports; if SL-to-VL tables tell VLs apart,
// times the SLs that behave differently. Errors: states without a fabric, tables that are not of
// their fabric, and ctx's.
func Compare(ctx context.Context, a, b *state.State) (*Result, error) {
	for _, s := range []*state.State{a, b} {
		if err := s.Check(); err != nil {
			return nil, err
		}
	}
	c := &comparison{Match: matchNodes(a.Fabric, b.Fabric), a: a, b: b, r: newResult(a, b)}
	c.compareNodes()
	c.compareLinks()
	c.compareLIDs()
	c.targets = c.findTargets()
	if a.Tables != nil && b.Tables != nil {
		if err := c.compareEntries(ctx); err != nil {
			return nil, err
		}
		if err := c.comparePairs(ctx); err != nil {
			return nil, err
		}
	}
	if a.SL2VL != nil && b.SL2VL != nil {
		c.compareLanes()
	}
	if a.PathSLs != nil && b.PathSLs != nil {
		c.comparePathSLs()
	}
	if a.Tables != nil && b.Tables != nil {
		if err := c.findTransition(ctx); err != nil {
			return nil, err
		}
	}
	if a.Multicast != nil && b.Multicast != nil {
		if err := c.compareMulticast(ctx); err != nil {
			return nil, err
		}
	}
	if a.Adaptive != nil && b.Adaptive != nil {
		if err := c.compareChoices(ctx); err != nil {
			return nil, err
		}
	}
	c.r.addFindings()
	return c.r, nil
}

// CountRerouted counts the pairs that have a path in both states, but not the same: see
// PairCounts.Rerouted. Errors: ctx's.
func CountRerouted(ctx context.Context, a, b *state.State) (int64, error) {
	c := &comparison{Match: matchNodes(a.Fabric, b.Fabric), a: a, b: b, r: newResult(a, b)}
	c.targets = c.findTargets()
	err := c.comparePairs(ctx)
	return c.r.Pairs.Rerouted, err
}
