package updown

import (
	"context"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
)

// SPAMTree gives each group one MLID for all its senders: the part of SPAM's
// spanning tree that connects its members. The tree follows from lft.Routing.Order
// (see SPAM), which routings of updn have too.
//
// In the paper a packet goes to the least common ancestor of its receivers by any
// allowed path, and only then down the tree. An InfiniBand mask is the same for all
// input ports, so a packet stays on the tree from its sender on. At each switch it
// climbs further if there are receivers elsewhere, at most to the least common
// ancestor of all members, and goes down to the receivers below. A port is in a mask
// only if it leads to receivers. The tree has only one path between any two
// switches, so every sender reaches every receiver once, and no other port.
//
// Copies go up, then down, by the order of the routing: with its unicast paths they
// make no cycle of channel dependencies on one VL.
//
// If several cables join a switch to its parent, a group uses the one on the
// switch's lowest port; with Options.Balance groups take turns.
type SPAMTree struct{}

// Name is "spam".
func (SPAMTree) Name() string { return "spam" }

// Build takes O(channels) once, and for each group O(members x depth of the tree)
// and a sort of its switches.
func (s SPAMTree) Build(ctx context.Context, r *lft.Routing, groups []mft.Group, opt mft.Options) (*mft.Plan, error) {
	named, err := mft.AssignIDs(groups, opt)
	if err != nil {
		return nil, err
	}
	if r.Order == nil && len(groups) > 0 {
		return nil, &mft.RefusedError{Scheme: s.Name(), Group: groups[0].Name, Reason: "routing " + r.Engine + " has no up*/down* order",
			Suggest: []string{mft.UnionMerge{}.Name()}}
	}
	if len(groups) == 0 {
		return mft.NewPlan(r.Fabric, s.Name(), nil, nil), nil
	}
	order, err := OrderOf(r)
	if err != nil {
		return nil, err
	}
	t := &mft.SpanningTree{Fabric: r.Fabric, Rank: order.Rank, Switch: order.Switch, Parent: newDirections(r.Fabric, order).findParents()}
	w := mft.NewTreeWalk(len(order.Switch))
	masks := make([][]fabric.PortID, len(groups))
	for i := range named {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		g := &named[i]
		if _, err := mft.Attachments(r.Fabric, s.Name(), g); err != nil {
			return nil, err
		}
		all := *g // receivers may send, too
		all.Senders = slices.Concat(g.Senders, g.Receivers)
		if stuck := w.Join(t, &all); stuck >= 0 {
			return nil, &mft.RefusedError{Scheme: s.Name(), Group: g.Name,
				Reason: fmt.Sprintf("no cables join %s, which is above some of its members, to the others", r.Fabric.Name(order.Switch[stuck]))}
		}
		cable := 0
		if opt.Balance {
			cable = i
		}
		masks[i] = w.Masks(t, &all, cable)
	}
	return mft.NewPlan(r.Fabric, s.Name(), named, masks), nil
}

var _ mft.Scheme = SPAMTree{}
