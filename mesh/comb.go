package mesh

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
)

// Comb is a multicast scheme. Each group has one MLID for all its senders;
// its tree is the part of a comb that joins its members. On a mesh of two
// dimensions a comb is one row, the trunk, and all columns: from a switch
// it leads along the column to the trunk, along that to another column, and
// out (E-X8, X12). In n dimensions it is a comb of combs: from a switch it
// leads along the last dimension into the plane of the trunk, in this along
// the last but one, and so on to the trunk, a line along the first
// dimension. So hops towards the trunk come in the opposite order of
// dimension-order routing, hops away from it in the same order.
//
// # Masks
//
// A switch's mask has a port if a sender is on the switch's side of the
// cable and a receiver on the other. If all hosts are senders, that is the
// closed form X12. A comb has one way between any two switches, so every
// sender reaches every receiver once, and no other host, wherever senders
// are, whether they receive or not. Cables that close rings are in no comb.
//
// # Credit loops
//
// With dimension-order unicast on the same VL, channels cannot wait for each
// other in a cycle if all combs on the VL have the same trunk. Divide the
// channels of the last dimension into those towards the trunk's plane and
// those away from it, and all others by their plane: switches with the same
// last coordinate. Every packet that turns out of the last dimension does so
// in the trunk's plane, which it entered by a channel towards it. So a
// channel only waits for channels of the same kind, or of a later kind in
//
//	other planes < towards the trunk's plane < trunk's plane < away from it
//
// and a cycle would lie within one of the four. Channels along the last
// dimension do not wait for those of the opposite direction, so it would lie
// in one plane. In planes other than the trunk's there are only turns of
// dimension-order routing, which has no cycles. The trunk's plane is a mesh
// of one dimension less, with its comb: the same argument applies there, down
// to the trunk, a line. On a ring with datelines (see XY) it applies on VL 0,
// whose packets cross no closing cable, and also on a ring of three, where
// the channel of a closing cable waits for no channel of its ring.
//
// Two trunk rows on one VL close a cycle, on 2x2 already.
//
// Build does not rely on that proof. It takes the tables, SL-to-VL tables and
// path SLs that it is given, whatever engine made them, and computes the
// dependencies of unicast and of whole combs. It takes trunks for which these
// have no cycle. With west-first any row is safe. With negative-first only
// the first row is, where combs have no turn from a channel towards greater
// coordinates. With north-last too only the first row is, but any column is
// safe as the trunk of a comb with the dimensions in the opposite order.
// Build tries such combs if the best row is not safe. If no trunk is safe, it
// refuses.
//
// # Trunks
//
// The trunk is the line with the least load on the busiest link, in one
// direction, if each sender sends one packet (B9); among equal ones the
// nearest to the middle, which has the shortest paths (G-X11), then the one
// with the lower coordinates.
//
// If there are parallel cables, a comb takes the one on the lowest port of
// the switch that is farther from the trunk; with mft.Options.Balance the
// groups take turns.
//
// # Missing cables and switches
//
// On a grid with missing parts, trunks are compared by the links that exist,
// and the best trunk for which no group lacks a cable is taken. If there is
// none, combs become spanning trees (B6): cables are added one by one, those
// of the comb first, if the turns into and out of a cable close no cycle.
// With the detours of a repaired routing that may fail for all trunks; on a
// VL without unicast it cannot. If it fails, or no cables connect a group,
// Build refuses and names a switch that remains separate.
//
// # Several VLs
//
// Groups whose packets have one VL on any link have one trunk. With VLs at
// 2 or more there are as many trunks (B3), each another line, on SLs that
// share no VL with those of other trunks, so that they share the load.
// Groups with an SL other than 0 keep it; groups with SL 0 get that of
// their trunk.
//
// The trunks depend on all groups. Choose fixes them and the SLs, so that
// later groups on these SLs, and parts of a list of groups, get the same.
type Comb struct {
	// Grid is the grid of the routing's fabric; nil lets Detect find it. Its
	// dimensions may have another order than the engine's, but rings of four
	// or more positions must begin at the same switches, since unicast paths
	// cross their closing cables on a VL of their own.
	Grid *Grid
	// VLs is the number of VLs, and so of trunks, over which groups without
	// an SL are divided; 0 and 1 leave all SLs as they are.
	VLs   int
	lanes []combLane // fixed by Choose; nil leaves the choice to Build
}

// Trunk is the line on which combs meet.
type Trunk struct {
	// At is the coordinates of the line, -1 in the dimension along which it
	// runs: the first, or the last if combs take the dimensions in the
	// opposite order. {-1, 2} is row 2 of a mesh of two dimensions.
	At []int
	// SL is the SL of groups on it.
	SL fabric.SL
}

// String returns "row 2", "column 2", or "line *,2,3".
func (t Trunk) String() string {
	if len(t.At) == 2 {
		if t.At[0] < 0 {
			return "row " + strconv.Itoa(t.At[1])
		}
		return "column " + strconv.Itoa(t.At[0])
	}
	parts := make([]string, len(t.At))
	for d, x := range t.At {
		if parts[d] = strconv.Itoa(x); x < 0 {
			parts[d] = "*"
		}
	}
	return "line " + strings.Join(parts, ",")
}

// Name is "comb".
func (Comb) Name() string { return "comb" }

// Build takes O(switches x LIDs) for the turns of unicast paths, and
// O(members + links of its tree) for each group and each possible trunk. It
// returns a *mft.RefusedError if the fabric is no grid, if no trunk or
// fewer than c.VLs trunks are safe, if a group's members are not connected,
// and, after Choose, for a group with an SL that no group had then.
func (c Comb) Build(ctx context.Context, r *lft.Routing, groups []mft.Group, opt mft.Options) (*mft.Plan, error) {
	named, err := mft.AssignIDs(groups, opt)
	if err != nil {
		return nil, err
	}
	if len(groups) == 0 {
		return mft.NewPlan(r.Fabric, c.Name(), nil, nil), nil
	}
	l, err := c.layout(ctx, r, named)
	if err != nil {
		return nil, err
	}
	cable := make([]int, len(named)) // the number of the parallel cable that a group takes
	if opt.Balance {
		next := make([]int, len(l.lanes))
		for i, k := range l.lane {
			cable[i] = next[k]
			next[k]++
		}
	}
	masks := make([][]fabric.PortID, len(named))
	err = eachSwitch(ctx, len(named), func() func(fabric.NodeID) {
		w := mft.NewTreeWalk(l.g.Fabric.NumSwitches())
		return func(i fabric.NodeID) {
			t := &l.lanes[l.lane[i]].tree.SpanningTree
			w.Join(t, &named[i])
			masks[i] = w.Masks(t, &named[i], cable[i])
		}
	})
	if err != nil {
		return nil, err
	}
	for i := range named {
		named[i].SL = l.sl[i]
	}
	plan := mft.NewPlan(r.Fabric, c.Name(), named, masks)
	plan.Notes = l.notes()
	return plan, nil
}

// Choose returns a Comb with the trunks that Build would take for groups, and
// the groups with their SLs. Its Build then makes the same trees on the same
// routing, for any parts and order of the groups. Errors are those of Build.
func (c Comb) Choose(ctx context.Context, r *lft.Routing, groups []mft.Group) (Comb, []mft.Group, error) {
	if len(groups) == 0 {
		return c, nil, nil
	}
	l, err := c.layout(ctx, r, groups)
	if err != nil {
		return c, nil, err
	}
	list := slices.Clone(groups)
	for i := range list {
		list[i].SL = l.sl[i]
	}
	return Comb{Grid: l.g, lanes: l.lanes}, list, nil
}

// combLayout is the trunks, and the lane and SL of each group.
type combLayout struct {
	g     *Grid
	lanes []combLane
	lane  []int // by group: index in lanes
	sl    []fabric.SL
}

// combLane is a set of SLs that share VLs, directly or by way of others, and
// the comb for groups with these SLs.
type combLane struct {
	sls    []fabric.SL // ascending
	pinned bool        // some groups ask for SLs of this lane
	tree   *combTree
}

// notes describes the trunks, a line each.
func (l *combLayout) notes() []string {
	var list []string
	for k := range l.lanes {
		names := text.Each(l.lanes[k].sls, func(sl fabric.SL) string { return strconv.Itoa(int(sl)) })
		list = append(list, fmt.Sprintf("comb: trunk %v of the %v for %s, SL %s",
			l.lanes[k].tree.trunk, l.g, text.Count(text.CountIf(l.lane, func(lane int) bool { return lane == k }), "group", "groups"), strings.Join(names, ", ")))
	}
	return list
}

var _ mft.Scheme = Comb{}
