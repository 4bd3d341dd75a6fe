package compile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/routing/banyan"
	"github.com/ibweave/ibweave/updown"
	"github.com/ibweave/ibweave/verify"
)

// The multicast schemes, by their names on the command line.
const (
	unionScheme      = "union"
	unionRowScheme   = "union-row"
	unionMergeScheme = "union-merge"
	unionTurnsScheme = "union-turns"
	combScheme       = "comb"
	updnTreeScheme   = "updn-tree"
	spamScheme       = "spam"
	regionScheme     = "region"
	openSMScheme     = "opensm"
)

// MulticastSchemes lists the multicast schemes, each with a description.
var MulticastSchemes = []struct {
	Name, Summary string
	scheme        mft.Scheme // nil for one that depends on the routing
}{
	{unionScheme, "an MLID for each sender, along its unicast paths", mft.Union{}},
	{unionRowScheme, "union, and the senders of a mesh row share an MLID", nil},
	{unionMergeScheme, "union, and senders share MLIDs wherever that is exact", mft.UnionMerge{}},
	{unionTurnsScheme, "an MLID for each sender, on a tree of the turns that unicast packets make", mft.UnionTurns{}},
	{combScheme, "one MLID for a group on a mesh: along columns to a trunk row and out again", mesh.Comb{}},
	{updnTreeScheme, "one MLID for a group, on a tree of an up*/down* order", nil},
	{spamScheme, "one MLID for a group, on SPAM's spanning tree", updown.SPAMTree{}},
	{regionScheme, "one MLID for a group on a banyan network, forward through all stages", banyan.RegionTree{}},
	{openSMScheme, "the tree that OpenSM makes by itself, to compare; may have credit loops", mft.OpenSM{}},
}

// MulticastSchemeNames lists the names of the schemes, separated by commas.
func MulticastSchemeNames() string {
	var names []string
	for _, s := range MulticastSchemes {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}

// CheckMulticastScheme returns an error if there is no scheme of that name.
func CheckMulticastScheme(name string) error {
	if slices.Contains(strings.Split(MulticastSchemeNames(), ", "), name) {
		return nil
	}
	return fmt.Errorf("multicast scheme %q: want one of %s", name, MulticastSchemeNames())
}

// multicaster makes schemes for a routing. It computes only once what several schemes need.
type multicaster struct {
	r     *lft.Routing
	route lft.Options
	opt   mft.Options
	own   mft.Scheme // Options.Scheme, or nil
	grid  *mesh.Grid // nil where there is none
	known bool       // grid was looked for
	comb  *mesh.Comb // with trunks chosen for all groups; nil before chooseTrunks

	// The rest is for the default schemes. whole allows all of them, not only the few that
	// nearly always work. begin has, by group, the scheme to begin with. said has the reasons
	// why the check refused earlier ones.
	whole  bool
	begin  map[int]string
	said   map[int][]string
	rounds int // how many times stepDown has run
}

func newMulticaster(r *lft.Routing, opt *Options) *multicaster {
	return &multicaster{r: r, route: opt.Route, opt: opt.MFT, own: opt.Scheme, begin: make(map[int]string), said: make(map[int][]string)}
}

// mesh returns the fabric as a grid; nil if it is none.
func (m *multicaster) mesh() *mesh.Grid {
	if !m.known {
		m.known = true
		m.grid, _ = mesh.Detect(m.r.Fabric, mesh.DetectOptions{Origin: m.route.Origin, Dims: m.route.Dims})
	}
	return m.grid
}

// rows numbers the rows of a mesh: switches whose coordinates differ at most in the first
// dimension have the same number and can share an MLID under XY routing. It returns nil if
// there is no mesh.
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

// NewScheme returns the multicast scheme of this name for a routing. updn-tree takes the
// routing's order; if it has none, it chooses one. Errors: ctx's, and an unknown name.
func NewScheme(ctx context.Context, name string, r *lft.Routing) (mft.Scheme, error) {
	return newMulticaster(r, &Options{}).scheme(ctx, name)
}

func (m *multicaster) scheme(ctx context.Context, name string) (mft.Scheme, error) {
	switch {
	case name == unionRowScheme:
		return mft.UnionRow{Class: m.rows()}, nil
	case name == combScheme && m.comb != nil:
		return m.comb, nil
	case name == updnTreeScheme && m.r.Order != nil:
		return mft.UpdnTree{Order: m.r.Order}, nil
	case name == updnTreeScheme:
		order, err := updown.ChooseOrder(ctx, m.r.Fabric, nil)
		if err != nil {
			return nil, err
		}
		return mft.UpdnTree{Order: order.Rank}, nil
	}
	for _, s := range MulticastSchemes {
		if s.Name == name && s.scheme != nil {
			return s.scheme, nil
		}
	}
	return nil, CheckMulticastScheme(name)
}

// fit makes the trees of groups by the first of the named schemes. If MLIDs are scarce, it
// gives groups the later ones.
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

// chooseTrunks chooses the combs' trunks for all groups together, sets m.comb, and returns
// the groups with the SLs of their trunks. It returns an error if no trunks are safe.
func (m *multicaster) chooseTrunks(ctx context.Context, groups []mft.Group) ([]mft.Group, error) {
	comb, groups, err := mesh.Comb{Grid: m.mesh(), VLs: len(m.lanes())}.Choose(ctx, m.r, groups)
	if err != nil {
		return nil, err
	}
	m.comb = &comb
	return groups, nil
}

// lanes lists SLs whose packets never share a VL: the lowest SL of each VL. It returns nil if
// ports have different SL-to-VL tables, if groups need not be balanced, and if paths have SLs
// of their own.
func (m *multicaster) lanes() (sls []fabric.SL) {
	s := m.r.SL2VL
	if !m.opt.Balance || s == nil || m.r.PathSLs != nil || len(s.Maps()) != 1 {
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

// divide gives SLs to the groups that have SL 0, so that groups share the VLs evenly. An
// up*/down* tree is safe on each VL.
func (m *multicaster) divide(groups []mft.Group) []mft.Group {
	sls := m.lanes()
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
	if m.own != nil {
		return mft.Fit(ctx, m.r, groups, m.opt, m.own)
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

// last returns the scheme for groups when MLIDs are scarce, and the groups for it: comb if
// safe trunks exist, else updn-tree.
func (m *multicaster) last(ctx context.Context, groups []mft.Group) (string, []mft.Group) {
	if m.r.Order == nil && m.mesh() != nil {
		if chosen, err := m.chooseTrunks(ctx, groups); err == nil {
			return combScheme, chosen
		}
	}
	return updnTreeScheme, groups
}

// DefaultSchemes lists the schemes to try for a group with this many senders, in order. The
// next one is tried if one refuses the group, or if the check finds its trees wrong or in a
// credit loop with unicast. On banyan networks region comes first. Next, unless paths have
// SLs of their own as on rings (a group has only one SL), come union for a single sender and
// union-row on meshes. Then come comb, on meshes if the routing has no up*/down* order, and
// updn-tree. The last, union-turns, adds no dependency to unicast.
func DefaultSchemes(r *lft.Routing, onMesh bool, senders int) []string {
	var list []string
	if r.Engine == (banyan.Engine{}).Name() {
		list = append(list, regionScheme)
	}
	onMesh = onMesh && r.Order == nil
	if r.PathSLs == nil {
		if senders <= 1 {
			list = append(list, unionScheme)
		}
		if onMesh {
			list = append(list, unionRowScheme)
		}
	}
	if onMesh {
		list = append(list, combScheme)
	}
	return append(list, updnTreeScheme, unionTurnsScheme)
}

// planDefault makes trees by the default schemes. At first it tries only the few that nearly
// always work; the last of these takes only one MLID for each group. If they refuse a group,
// it tries all schemes, except after region: that refuses groups with ports that packets do
// not come from or do not reach, which the operator has to mend.
func (m *multicaster) planDefault(ctx context.Context, groups []mft.Group) (*mft.Plan, error) {
	plan, err := m.planChain(ctx, groups)
	if refused, is := errors.AsType[*mft.RefusedError](err); is && !m.whole && refused.Scheme != regionScheme {
		m.whole = true
		return m.planChain(ctx, groups)
	}
	return plan, err
}

func (m *multicaster) planChain(ctx context.Context, groups []mft.Group) (*mft.Plan, error) {
	names := DefaultSchemes(m.r, m.mesh() != nil, 1)
	noComb := ""
	if slices.Contains(names, combScheme) {
		if chosen, err := m.chooseTrunks(ctx, groups); err == nil {
			groups = chosen
		} else if ctx.Err() != nil {
			return nil, err
		} else {
			noComb = combScheme + ": " + err.Error()
			if refused := new(mft.RefusedError); errors.As(err, &refused) {
				noComb = refused.Scheme + ": " + refused.Reason
			}
			names = slices.DeleteFunc(names, func(s string) bool { return s == combScheme })
		}
	}
	if !m.whole {
		last := slices.IndexFunc(names, func(s string) bool { return s == regionScheme || s == combScheme || s == updnTreeScheme })
		names = names[:last+1]
	}
	if !slices.Contains(names, combScheme) {
		groups = m.divide(groups)
	}
	opt := m.opt
	opt.Yield = true
	opt.First = func(i int) int {
		name := m.begin[i]
		for _, s := range DefaultSchemes(m.r, m.mesh() != nil, len(groups[i].Senders)) {
			if name == "" && slices.Contains(names, s) {
				name = s
			}
		}
		return max(0, slices.Index(names, name))
	}
	plan, err := m.fit(ctx, groups, opt, names...)
	if refused, is := errors.AsType[*mft.RefusedError](err); is {
		if noComb != "" {
			refused.Tried = append(refused.Tried, noComb)
		}
		for i := range groups {
			if groups[i].Name == refused.Group {
				refused.Tried = append(slices.Clone(m.said[i]), refused.Tried...)
			}
		}
	}
	if err != nil {
		return nil, err
	}
	for i := range plan.Trees {
		t := &plan.Trees[i]
		t.Why = append(slices.Clone(m.said[t.Group]), t.Why...)
		if noComb != "" && (t.Scheme == updnTreeScheme || t.Scheme == unionTurnsScheme) {
			t.Why = append(t.Why, noComb)
		}
	}
	plan.Notes = append(m.notes(len(groups)), plan.Notes...)
	return plan, nil
}

// notes lists the schemes that the check refused: for how many groups, and the first reason.
func (m *multicaster) notes(groups int) (list []string) {
	count, first := make(map[string]int), make(map[string]string)
	var names []string
	for _, i := range slices.Sorted(maps.Keys(m.said)) {
		for _, said := range m.said[i] {
			name, _, _ := strings.Cut(said, ":")
			if count[name]++; count[name] == 1 {
				names = append(names, name)
				first[name] = said
			}
		}
	}
	for _, name := range names {
		verb := "step"
		if count[name] == 1 {
			verb = "steps"
		}
		list = append(list, fmt.Sprintf("%d of %s %s down: %s", count[name], text.Count(groups, "group", "groups"), verb, first[name]))
	}
	return list
}

// In its first fewRounds calls stepDown moves only the groups that the check names; later
// also all other groups with the same schemes.
const fewRounds = 4

// stepDown moves the groups whose trees the check found wrong to their next default scheme.
// It returns true if it moved any. For a credit loop it blames groups whose trees have turns
// of their own; only if there are none, groups whose turns are those of unicast. The error is
// a *mft.RefusedError if a group has no next scheme.
func (m *multicaster) stepDown(r *Result) (again bool, err error) {
	group := make(map[fabric.LID]int, len(r.Plan.Trees))
	scheme, said := make(map[int]string), make(map[int][]string)
	for i := range r.Plan.Trees {
		t := &r.Plan.Trees[i]
		group[t.MLID], scheme[t.Group], said[t.Group] = t.Group, t.Scheme, t.Why
	}
	wrong := make(map[int]string)
	for i := range r.Verify.Findings {
		f := &r.Verify.Findings[i]
		if f.Severity != verify.Error || !slices.Contains([]string{verify.MulticastMissing, verify.MulticastDuplicate, verify.MulticastLoop, verify.MulticastCreditLoop}, f.Rule) {
			continue
		}
		blamed := make(map[int]bool)
		own := false // a tree in the loop has turns of its own
		for _, hop := range append([]verify.Hop{{LID: f.LID}}, f.Witness...) {
			if i, ok := group[hop.LID]; ok {
				blamed[i] = true
				own = own || !strings.HasPrefix(scheme[i], unionScheme)
			}
		}
		for i := range blamed {
			if wrong[i] == "" && (!own || !strings.HasPrefix(scheme[i], unionScheme)) {
				wrong[i] = "the check finds " + f.Rule + ", " + f.Message
			}
		}
	}
	if m.rounds++; m.rounds > fewRounds {
		bad := make(map[string]string)
		for i, why := range wrong {
			if bad[scheme[i]] == "" || why < bad[scheme[i]] {
				bad[scheme[i]] = why
			}
		}
		for i, s := range scheme {
			if why := bad[s]; why != "" && wrong[i] == "" {
				wrong[i] = why
			}
		}
	}
	for _, i := range slices.Sorted(maps.Keys(wrong)) {
		chain := DefaultSchemes(m.r, m.mesh() != nil, len(r.Groups[i].Senders))
		next := slices.Index(chain, scheme[i]) + 1
		if next == len(chain) {
			return false, &mft.RefusedError{Scheme: scheme[i], Group: r.Groups[i].Name, Reason: wrong[i], Tried: said[i]}
		}
		m.said[i] = append(said[i], scheme[i]+": "+wrong[i])
		m.begin[i] = chain[next]
	}
	m.whole = true
	return len(wrong) > 0, nil
}

// GroupError wraps the reason why multicast groups have no trees: a *mft.RefusedError, a
// *mft.BudgetError, or an error about the groups.
type GroupError struct{ Err error }

func (e *GroupError) Error() string { return "multicast: " + e.Err.Error() }

// Unwrap gives the cause.
func (e *GroupError) Unwrap() error { return e.Err }

// multicast plans the groups' trees and measures their cost. It sets r.Groups, Plan and Cost.
func (r *Result) multicast(ctx context.Context, m *multicaster, opt *Options) (err error) {
	if r.Groups == nil {
		if r.Groups, err = opt.Groups(r.Routing.Fabric); err != nil {
			return err
		}
	}
	plan, err := m.plan(ctx, opt.Multicast, r.Groups)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		return &GroupError{err}
	}
	r.Plan = plan
	r.Cost, err = mft.Measure(ctx, r.Routing, r.Plan)
	return err
}
