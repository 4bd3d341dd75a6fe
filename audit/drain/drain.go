// Package drain plans how cables and switches are taken out of use and put back while the fabric
// runs: forwarding tables that lead around them, proven for every moment, and the writes between
// states. It makes no promise to other modules.
//
// A part is drained before it is unplugged. While its cables are still there,
// the tables lead no packet through it, except for packets to and from the
// part itself: a drained switch answers the subnet manager, and the hosts of a
// leaf work until it is switched off. So the tables of a state must be safe in
// two fabrics, with the part and without it.
package drain

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/audit/diff"
	"github.com/ibweave/ibweave/audit/groups"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/names"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
	"github.com/ibweave/ibweave/verify/bound"
)

// Part is a set of cables and nodes that are drained together.
type Part struct {
	Name   string
	Cables []fabric.PortID // one end of each
	Nodes  []fabric.NodeID // nodes whose own traffic ends when they are unplugged
}

// Options are the settings of Make.
type Options struct {
	// Limit bounds the greatest relative load in any state, as a multiple of that before the drain;
	// 0 for no bound.
	Limit float64
	// Before is the load that Limit and Step.Factor are relative to, and sets the scale of all
	// loads; nil for that of the tables in force.
	Before *Load
}

// Plan is the plan that Make returns.
type Plan struct {
	Before  Load     `json:"before"`
	Limit   float64  `json:"limit,omitempty"`
	Windows []Window `json:"windows"`
	// Refused lists the parts that cannot be drained even alone.
	Refused []Refusal `json:"refused"`
	// GoneHosts has Window.GoneHosts of each window, as names with brackets.
	GoneHosts []string `json:"gone_hosts"`
}

// Window is parts that are out of use together: they are drained one after another, unplugged
// and worked on, plugged in again, and put back in the reverse order.
type Window struct {
	Steps []Step `json:"steps"`
	// GoneHosts lists the hosts without a cable while the parts are out.
	GoneHosts []fabric.NodeID `json:"-"`
	Gone      int             `json:"gone_hosts"`

	parts Part // all together
}

// Step drains one more part of a window.
type Step struct {
	Part string `json:"part"`
	// Load is that of the tables once the window's parts up to this one are unplugged.
	Load
	Factor float64 `json:"factor"` // Load over that before the drain; 0 if that was 0
	Lost   int64   `json:"lost_pairs"`
	Longer int64   `json:"non_minimal_pairs"`
	// Verdict is the checker's on the tables with all parts still cabled; at least warnings if
	// Drain has credit loops. Unplugged is the verdict without the window's parts so far; it has no
	// finding that these are cut off.
	Verdict   string `json:"verdict"`
	Unplugged string `json:"verdict_unplugged"`
	// Drain is the change of tables that drains the part, Back the change that undoes it.
	Drain Change `json:"drain"`
	Back  Change `json:"back"`

	Tables `json:"-"`
}

// Tables are the tables in force while parts are drained, with the checker's results: Compiled on
// the whole fabric, Rest on the fabric without these parts. Both have the entries that Rest needs,
// and are one if nothing is drained.
type Tables struct{ Compiled, Rest *compile.Result }

// Load is the greatest load of tables.
type Load struct {
	MaxRoutes   int64       `json:"max_routes_per_link"`
	MaxRelative float64     `json:"max_relative_load"` // on Scale; MaxRoutes if rates are equal
	Scale       bound.Scale `json:"-"`                 // that before the drain, for all loads
	// Groups is nil without Plan.AddGroups.
	Groups []groups.State `json:"host_groups,omitempty"`
}

// Change has what a subnet manager writes to change tables.
type Change struct {
	compile.Changes
	// Loops and CreditLoops are those of mixtures of old and new tables that neither has alone.
	Loops       int        `json:"transient_loops"`
	CreditLoops int        `json:"transient_credit_loops"`
	Order       diff.Order `json:"order"` // in which no state has a loop
}

// Refusal is a part that cannot be drained, and why.
type Refusal struct {
	Part   string `json:"part"`
	Reason string `json:"reason"`
}

type planner struct {
	ctx   context.Context
	base  *compile.Result
	route compile.Options
	opt   Options
	plan  *Plan
}

// Make plans how to drain parts of the fabric of base. base has the tables in
// force, which compile.Run made or kept with route. A part goes into the first
// window in which the load stays below the limit and only hosts of parts are
// cut off. Errors: those of compile.Run.
func Make(ctx context.Context, base *compile.Result, route compile.Options, parts []Part, opt Options) (*Plan, error) {
	before := LoadOf(base.Verify, base.Verify.Scale())
	if opt.Before != nil {
		before = *opt.Before
	}
	p := &planner{ctx: ctx, base: base, route: route, opt: opt, plan: &Plan{
		Before: before, Limit: opt.Limit, Windows: []Window{}, Refused: []Refusal{}, GoneHosts: []string{},
	}}
	for i := range parts {
		if err := p.add(&parts[i]); err != nil {
			return nil, err
		}
	}
	for i := range p.plan.Windows {
		_, hosts := names.Fold(base.Routing.Fabric, p.plan.Windows[i].GoneHosts)
		p.plan.GoneHosts = append(p.plan.GoneHosts, hosts)
	}
	return p.plan, nil
}

// add drains a part in the first window that can take it, else in a window of its own; else it
// refuses the part.
func (p *planner) add(part *Part) error {
	reason := ""
	windows := append(p.plan.Windows, Window{})
	for i := range windows {
		var err error
		if reason, err = Reason(p.try(&windows[i], part)); err != nil {
			return err
		}
		if reason == "" {
			p.plan.Windows = windows[:max(i+1, len(p.plan.Windows))]
			return nil
		}
	}
	p.plan.Refused = append(p.plan.Refused, Refusal{part.Name, reason})
	return nil
}

// refusal is an error with a Reason.
type refusal struct{ reason string }

func (r *refusal) Error() string { return r.reason }

// Refuse returns an error that has a Reason.
func Refuse(format string, args ...any) error { return &refusal{fmt.Sprintf(format, args...)} }

// Reason returns why something cannot be done, of an error of Refuse or an *lft.DomainError; "" for
// nil. It returns any other error as it is.
func Reason(err error) (string, error) {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.reason, nil
	}
	if r, ok := errors.AsType[*lft.DomainError](err); ok {
		return r.Reason, nil
	}
	return "", err
}

// try drains one more part in a window. If the error has a Reason, the window is unchanged.
func (p *planner) try(w *Window, part *Part) (err error) {
	whole := p.base.Routing.Fabric
	from := Tables{p.base, p.base}
	if n := len(w.Steps); n > 0 {
		from = w.Steps[n-1].Tables
	}
	next := Window{parts: Part{Cables: slices.Concat(w.parts.Cables, part.Cables), Nodes: slices.Concat(w.parts.Nodes, part.Nodes)}}
	step := Step{Part: part.Name}
	if step.Tables, err = from.Next(p.ctx, whole, whole.Without(next.parts.Cables...), p.route); err != nil {
		return err
	}
	v := step.Rest.Verify
	step.Load, step.Longer, step.Unplugged = LoadOf(v, p.plan.Before.Scale), v.Unicast.NonMinimal, v.Verdict
	step.Factor = step.Over(p.plan.Before)
	if step.Lost = p.countLost(&next, step.Rest); step.Lost > 0 {
		return Refuse("cuts off hosts that are not drained: %d pairs", step.Lost)
	}
	if err := step.Fit(p.opt.Limit, step.Factor); err != nil {
		return err
	}
	was, is := from.Compiled.Routing, step.Compiled.Routing
	if step.Drain, err = ChangeOf(p.ctx, whole, was, is); err != nil {
		return err
	}
	if step.Back, err = ChangeOf(p.ctx, whole, is, was); err != nil {
		return err
	}
	step.Verdict = step.Drain.Verdict(step.Compiled.Verify.Verdict)
	next.Steps = append(w.Steps, step)
	*w = next
	return nil
}

// Next returns the tables that follow t when all but rest is drained: in Rest
// those of compile --previous on rest, in Compiled their Overlay on whole.
// Errors: those of compile.Run.
func (t Tables) Next(ctx context.Context, whole, rest *fabric.Fabric, route compile.Options) (Tables, error) {
	e := t.Rest.Engine
	r, err := Keep(ctx, e, rest, t.Rest.Routing, route)
	if err != nil || rest == whole {
		return Tables{r, r}, err
	}
	LeaveOut(r, rest)
	all, err := Judge(ctx, e, Overlay(whole, r.Routing, t.Compiled.Routing))
	return Tables{all, r}, err
}

// Fit returns an error with a Reason if tables are not safe, or factor exceeds limit (0 for none).
func (t Tables) Fit(limit, factor float64) error {
	switch {
	case t.Compiled.Verify.Verdict == verify.VerdictErrors || t.Rest.Verify.CreditLoops.Count > 0:
		return Refuse("no safe tables were found")
	case limit > 0 && factor > limit:
		return Refuse("the greatest load would be %.2f times that before", factor)
	}
	return nil
}

// Keep compiles tables on f with route. If the engine is incremental, it keeps the entries of
// previous and its order of the switches. Nodes keep their LIDs, and there are no multicast groups.
// Errors: those of compile.Run.
func Keep(ctx context.Context, e *compile.Engine, f *fabric.Fabric, previous *lft.Routing, route compile.Options) (*compile.Result, error) {
	route.LIDs, route.Groups, route.Stage, route.Progress = lft.LIDOptions{LMC: lft.KeepLMC}, nil, nil, nil
	if _, ok := e.Engine.(lft.IncrementalEngine); ok {
		route.Route.Previous, route.Route.Roots = previous, nil
	}
	return compile.Run(ctx, f, e, route)
}

// LeaveOut sets the fabric of tables to rest, where nodes without a cable have no LIDs. It drops
// findings that these are cut off, since that is the purpose.
func LeaveOut(r *compile.Result, rest *fabric.Fabric) {
	r.Routing.Fabric = rest
	r.Verify.Edit(func(list []verify.Finding) []verify.Finding {
		return slices.DeleteFunc(list, func(x verify.Finding) bool {
			return x.Rule == verify.Partitioned || x.Rule == verify.ManagementPartitioned
		})
	})
}

// Judge checks tables, and returns them with the result.
func Judge(ctx context.Context, e *compile.Engine, r *lft.Routing) (*compile.Result, error) {
	v, err := verify.Check(ctx, state.Of(r), verify.Options{Complete: true})
	return &compile.Result{Engine: e, Routing: r, Verify: v}, err
}

// AddGroups adds sums by groups of hosts of set, which may be nil, for the tables of base before
// the drain and for those after each step. Errors: ctx's.
func (p *Plan) AddGroups(ctx context.Context, base *compile.Result, set *groups.Set) (err error) {
	if set == nil {
		return nil
	}
	p.Before.Groups, err = set.Measure(ctx, base.Routing.Fabric, base.Routing.Tables)
	for i := range p.Windows {
		for k := range p.Windows[i].Steps {
			if s := &p.Windows[i].Steps[k]; err == nil {
				s.Groups, err = set.Measure(ctx, s.Rest.Routing.Fabric, s.Rest.Routing.Tables)
			}
		}
	}
	return err
}

// Overlay returns tables for the whole fabric while what rest lacks is still cabled: those of rest,
// with the entries of from for LIDs that rest cuts off, and on switches that rest cuts off. All
// fabrics have the same nodes.
func Overlay(whole *fabric.Fabric, rest, from *lft.Routing) *lft.Routing {
	r, old := rest.On(whole), from.On(whole)
	var cut []int // LIDs
	for lid, port := range whole.LIDPorts() {
		if port != fabric.NoPort && rest.Fabric.LID(port) == 0 {
			cut = append(cut, lid)
		}
	}
	for _, s := range whole.Switches() {
		isCut := rest.Fabric.LID(whole.PortBase(s)) == 0
		overlay(r.Tables.Row(s), old.Tables.Row(s), isCut, cut)
		if r.PathSLs != nil && old.PathSLs != nil {
			row := slices.Clone(r.PathSLs.Given(s))
			overlay(row, old.PathSLs.Given(s), isCut, cut)
			r.PathSLs.SetRow(row, s)
		}
	}
	return r
}

// overlay copies all of a row, or only the entries of lids.
func overlay[T any](row, from []T, all bool, lids []int) {
	if all {
		copy(row, from)
		return
	}
	for _, lid := range lids {
		row[lid] = from[lid]
	}
}

// countLost sets the hosts of w without a cable in rest. It returns how many more pairs of hosts
// outside w's parts fail to reach each other in rest than before.
func (p *planner) countLost(w *Window, rest *compile.Result) int64 {
	f, before, after := p.base.Routing.Fabric, p.base.Verify.Unicast, rest.Verify.Unicast
	lost := after.Unreachable + after.Loops - before.Unreachable - before.Loops
	for _, c := range f.CAPorts() {
		if rest.Routing.Fabric.Peer(c) != fabric.NoPort {
			continue
		}
		n := f.Owner(c)
		if !slices.Contains(w.parts.Nodes, n) {
			lost++
		}
		if f.PeerSwitch(c) != fabric.NoNode {
			w.GoneHosts = append(w.GoneHosts, n)
		}
	}
	w.GoneHosts = slices.Compact(w.GoneHosts)
	w.Gone = len(w.GoneHosts)
	return max(0, lost)
}

// ChangeOf returns the change from one routing to another on the cables of f; all have the
// same nodes.
func ChangeOf(ctx context.Context, f *fabric.Fabric, from, to *lft.Routing) (Change, error) {
	snapshot := func(r *lft.Routing) *state.State {
		return &state.State{Fabric: f, Tables: r.Tables, SL2VL: r.SL2VL, PathSLs: r.PathSLs}
	}
	d, err := diff.Compare(ctx, snapshot(from), snapshot(to))
	if err != nil {
		return Change{}, err
	}
	c := Change{Changes: compile.ChangesSince(from, to), Order: diff.Order{Kind: diff.OrderNone}}
	if t := d.Transition; t != nil {
		c.Loops, c.CreditLoops, c.Order = t.Loops, t.CreditLoops.Count-max(t.CreditLoops.Old, t.CreditLoops.New), t.Order
	}
	return c, nil
}

// Verdict returns the verdict on the new tables, "" for none, or warnings if that is worse and the
// change has credit loops.
func (c *Change) Verdict(tables string) string {
	if c.CreditLoops > 0 && (tables == "" || tables == verify.VerdictClean) {
		return verify.VerdictWarnings
	}
	return tables
}

// LoadOf returns the greatest load that the checker found, on a scale.
func LoadOf(v *verify.Result, on bound.Scale) Load {
	return Load{MaxRoutes: v.Balance.MaxRoutes, MaxRelative: v.LoadOn(on), Scale: on}
}

// Over returns the ratio of the relative load to an earlier one on the same scale; 0 if that is 0.
func (l Load) Over(before Load) float64 {
	if before.MaxRelative == 0 {
		return 0
	}
	return l.MaxRelative / before.MaxRelative
}

// SwitchPart returns a part: chips of one system, with all their cables and the hosts on them.
func SwitchPart(f *fabric.Fabric, chips []fabric.NodeID) Part {
	p := Part{Name: f.Name(chips[0]).String()}
	if len(chips) > 1 {
		p.Name = fmt.Sprintf("%q, %d chips", names.ChipOf(f.Name(chips[0]).Text).System, len(chips))
	}
	for _, s := range chips {
		p.AddSwitch(f, s)
	}
	return p
}

// CablePart returns a part: the cable at a port, with the hosts at its ends.
func CablePart(f *fabric.Fabric, p fabric.PortID) Part {
	hosts := text.Where([]fabric.NodeID{f.Owner(p), f.Owner(f.Peer(p))}, func(n fabric.NodeID) bool { return !f.IsSwitch(n) })
	return Part{Name: f.PortName(p), Cables: []fabric.PortID{p}, Nodes: hosts}
}

// AddSwitch adds a switch with all of its cables, and the hosts on it.
func (p *Part) AddSwitch(f *fabric.Fabric, s fabric.NodeID) {
	p.Nodes = append(p.Nodes, s)
	p.Cables = slices.AppendSeq(p.Cables, f.Cabled(s))
	p.Nodes = append(p.Nodes, text.Each(f.EndPortsOn(s), f.Owner)...)
}
