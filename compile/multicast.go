package compile

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/minnet"
	"github.com/ibweave/ibweave/updown"
	"github.com/ibweave/ibweave/verify"
)

// The multicast schemes, by their names on the command line.
const (
	unionScheme      = "union"
	unionRowScheme   = "union-row"
	unionMergeScheme = "union-merge"
	combScheme       = "comb"
	updnTreeScheme   = "updn-tree"
	spamScheme       = "spam"
	regionScheme     = "region"
	openSMScheme     = "opensm"
)

// MulticastSchemes lists the multicast schemes, each with what it is.
var MulticastSchemes = []struct{ Name, Summary string }{
	{unionScheme, "an MLID for each sender, along its unicast paths"},
	{unionRowScheme, "union, and the senders of a mesh row share an MLID"},
	{unionMergeScheme, "union, and senders share MLIDs wherever that is exact"},
	{combScheme, "one MLID for a group on a mesh: along columns to a trunk row and out again"},
	{updnTreeScheme, "one MLID for a group, on a tree of an up*/down* order"},
	{spamScheme, "one MLID for a group, on SPAM's spanning tree"},
	{regionScheme, "one MLID for a group on a banyan network, forward through all stages"},
	{openSMScheme, "the tree that OpenSM makes by itself, to compare; may have credit loops"},
}

// CheckMulticastScheme says whether there is a scheme of that name.
func CheckMulticastScheme(name string) error {
	var names []string
	for _, s := range MulticastSchemes {
		if s.Name == name {
			return nil
		}
		names = append(names, s.Name)
	}
	return fmt.Errorf("multicast scheme %q: want one of %s", name, strings.Join(names, ", "))
}

// multicaster makes schemes for a routing, and what they need only once.
type multicaster struct {
	r     *lft.Routing
	route lft.Options
	opt   mft.Options
	grid  *mesh.Grid // nil where there is none
	known bool       // whether grid has been looked for
	comb  *mesh.Comb // with the trunks for all groups; nil until combs are made
}

// mesh finds the grid that the routing is on, nil for none.
func (m *multicaster) mesh() *mesh.Grid {
	if !m.known {
		m.known = true
		m.grid, _ = mesh.Detect(m.r.Fabric, mesh.DetectOptions{Origin: m.route.Origin, Dims: m.route.Dims})
	}
	return m.grid
}

// rows numbers the switches by their coordinates in all dimensions but the
// first: those that can share an MLID under XY routing. Nil where there is no
// mesh.
func (m *multicaster) rows() []int32 {
	g := m.mesh()
	if g == nil {
		return nil
	}
	row := make([]int32, m.r.Fabric.NumSwitches())
	for s := range row {
		for d, x := range g.Coord(fabric.NodeID(s)) {
			if d > 0 {
				row[s] = row[s]*int32(g.Dims[d]) + int32(x)
			}
		}
	}
	return row
}

// order is the up*/down* order of the routing, and one of its own where that has
// none.
func (m *multicaster) order(ctx context.Context) ([]int32, error) {
	if m.r.Order != nil {
		return m.r.Order, nil
	}
	order, err := updown.ChooseOrder(ctx, m.r.Fabric)
	if err != nil {
		return nil, err
	}
	return order.Rank, nil
}

// scheme makes a scheme by its name.
func (m *multicaster) scheme(ctx context.Context, name string) (mft.Scheme, error) {
	switch name {
	case unionScheme:
		return mft.Union{}, nil
	case unionRowScheme:
		return mft.UnionRow{Class: m.rows()}, nil
	case unionMergeScheme:
		return mft.UnionMerge{}, nil
	case openSMScheme:
		return mft.OpenSM{}, nil
	case combScheme:
		return m.comb, nil
	case spamScheme:
		return updown.SPAMTree{}, nil
	case regionScheme:
		return minnet.RegionTree{}, nil
	case updnTreeScheme:
		order, err := m.order(ctx)
		return mft.UpdnTree{Order: order}, err
	}
	return nil, CheckMulticastScheme(name)
}

// fit makes the trees of groups with the first of the schemes that are named, and
// steps down to the others when MLIDs are scarce.
func (m *multicaster) fit(ctx context.Context, groups []mft.Group, opt mft.Options, names ...string) (*mft.Plan, error) {
	var list []mft.Scheme
	for _, name := range names {
		s, err := m.scheme(ctx, name)
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return mft.Fit(ctx, m.r, groups, opt, list...)
}

// chooseTrunks makes the combs' trunks, which depend on all groups, and gives
// groups the SLs that go with them. It says whether there are any that are safe.
func (m *multicaster) chooseTrunks(ctx context.Context, groups []mft.Group) ([]mft.Group, error) {
	comb := mesh.Comb{Grid: m.mesh()}
	if m.opt.Balance && m.r.SL2VL != nil && m.r.PathSLs == nil {
		comb.VLs = len(slLanes(m.r.SL2VL))
	}
	comb, groups, err := comb.Choose(ctx, m.r, groups)
	if err != nil {
		return nil, err
	}
	m.comb = &comb
	return groups, nil
}

// slLanes is SLs with a VL each that no other one of them meets anywhere: the
// lowest SL of each VL, where all ports have the same SL-to-VL table, else none.
func slLanes(s *lft.SL2VL) (sls []fabric.SL) {
	if len(s.Maps()) != 1 {
		return nil
	}
	var seen uint16
	for sl, vl := range s.Maps()[0] {
		if vl != lft.DropVL && seen>>vl&1 == 0 {
			seen |= 1 << vl
			sls = append(sls, fabric.SL(sl))
		}
	}
	return sls
}

// divide gives groups that have SL 0 an SL, so that they share the VLs evenly.
// On each VL an up*/down* tree is as safe as on any other.
func (m *multicaster) divide(groups []mft.Group) []mft.Group {
	if !m.opt.Balance || m.r.SL2VL == nil || m.r.PathSLs != nil {
		return groups
	}
	sls := slLanes(m.r.SL2VL)
	if len(sls) < 2 {
		return groups
	}
	groups = slices.Clone(groups)
	next := 0
	for i := range groups {
		if groups[i].SL == 0 {
			groups[i].SL = sls[next%len(sls)]
			next++
		}
	}
	return groups
}

// plan makes the trees of all groups by a scheme, or by the default ones.
func (m *multicaster) plan(ctx context.Context, name string, groups []mft.Group) (*mft.Plan, error) {
	if len(groups) == 0 {
		return &mft.Plan{Tables: mft.NewTables(m.r.Fabric)}, nil
	}
	switch name {
	case "":
		return m.planDefault(ctx, groups)
	case combScheme:
		chosen, err := m.chooseTrunks(ctx, groups)
		if err != nil {
			return nil, err
		}
		return m.fit(ctx, chosen, m.opt, combScheme)
	case unionScheme, unionRowScheme, unionMergeScheme:
		names := []string{name}
		if name == unionScheme {
			names = append(names, unionRowScheme)
		}
		last, groups := m.last(ctx, groups)
		return m.fit(ctx, groups, m.opt, append(names, last)...)
	case updnTreeScheme, spamScheme:
		groups = m.divide(groups)
	}
	return m.fit(ctx, groups, m.opt, name)
}

// last is the scheme to step down to in the end: comb where there is a safe one,
// else updn-tree.
func (m *multicaster) last(ctx context.Context, groups []mft.Group) (string, []mft.Group) {
	if m.r.Order == nil && m.mesh() != nil {
		if chosen, err := m.chooseTrunks(ctx, groups); err == nil {
			return combScheme, chosen
		}
	}
	return updnTreeScheme, groups
}

// planDefault takes region on banyan networks, and elsewhere union for groups with
// one sender, and for others union-row on meshes and updn-tree where there is none. Where paths have SLs of their own, as on rings,
// a group, which has one SL, cannot keep to them, so that combs are made there. A
// group that a scheme refuses has the next one.
func (m *multicaster) planDefault(ctx context.Context, groups []mft.Group) (*mft.Plan, error) {
	if m.r.Engine == (minnet.Engine{}).Name() {
		return m.fit(ctx, groups, m.opt, regionScheme)
	}
	names := []string{unionScheme}
	last := updnTreeScheme
	if m.r.Order == nil && m.mesh() != nil {
		names = append(names, unionRowScheme)
		last, groups = m.last(ctx, groups)
	}
	if last == updnTreeScheme {
		groups = m.divide(groups)
	}
	names = append(names, last)
	opt := m.opt
	opt.Yield = true
	opt.First = func(g *mft.Group) int {
		switch {
		case m.r.PathSLs != nil:
			return len(names) - 1
		case len(g.Senders) > 1:
			return 1
		}
		return 0
	}
	return m.fit(ctx, groups, opt, names...)
}

// GroupError says that there are no trees for the multicast groups: it holds a
// *mft.RefusedError or a *mft.BudgetError, or says what is wrong with the groups.
type GroupError struct{ Err error }

func (e *GroupError) Error() string { return "multicast: " + e.Err.Error() }

// Unwrap gives the cause.
func (e *GroupError) Unwrap() error { return e.Err }

// multicast plans the groups, and has them verified.
func (r *Result) multicast(ctx context.Context, opt *Options) error {
	var err error
	if r.Groups, err = opt.Groups(r.Routing.Fabric); err != nil {
		return err
	}
	m := &multicaster{r: r.Routing, route: opt.Route, opt: opt.MFT}
	if r.Plan, err = m.plan(ctx, opt.Multicast, r.Groups); err != nil {
		if ctx.Err() != nil {
			return err
		}
		return &GroupError{err}
	}
	opt.check.Multicast = &verify.Multicast{Tables: r.Plan.Tables, Trees: r.Plan.Trees}
	r.Cost, err = mft.Measure(ctx, r.Routing, r.Plan)
	return err
}
