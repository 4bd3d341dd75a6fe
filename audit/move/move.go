// Package move plans how a fabric is recabled while it runs: the order in which cables are
// unplugged and plugged in, and the forwarding tables for each moment, checked in advance. It makes
// no promise to other modules.
//
// A step unplugs some cables and plugs in others. First the old ones are
// drained, as in package drain: tables lead around them while they are there.
// Then cables are moved under these tables, which use neither old nor new ones.
// Then other tables use the new ones. So cables change only under tables that
// are safe with and without them, and tables change only while cables stay.
package move

import (
	"context"
	"slices"

	"github.com/ibweave/ibweave/audit/drain"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/names"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/verify"
)

// Options are the settings of Make.
type Options struct {
	// Limit bounds the greatest relative load in any state, as a multiple of that before the first
	// step; 0 for no bound.
	Limit float64
	// AtOnce bounds the cables that are out together if several steps are possible; 0 for no bound.
	AtOnce int
}

// Plan is the plan that Make returns.
type Plan struct {
	Before drain.Load `json:"before"`
	Limit  float64    `json:"limit,omitempty"`
	Steps  []Step     `json:"steps"`
	// Refused lists the cables that stay as they are, and why.
	Refused []Refusal `json:"refused"`
}

// Refusal is cables that cannot be moved.
type Refusal struct {
	Unplug []Link `json:"unplug"`
	Plug   []Link `json:"plug"`
	Reason string `json:"reason"`
}

// Link is a cable.
type Link struct {
	A    verify.Endpoint `json:"a"`
	B    verify.Endpoint `json:"b"`
	Rate string          `json:"rate"` // "" if it is not known
}

// Step moves cables.
type Step struct {
	Unplug []Link `json:"unplug"`
	Plug   []Link `json:"plug"`
	// Drained is the state in which the cables are moved; nil if none is unplugged and no entry
	// names a port that gets a cable. After is the state that follows.
	Drained *State `json:"drained,omitempty"`
	After   State  `json:"after"`
	// Down has the adapters with a cable that moves, Gone those with a port that loses its cable
	// for good, and Come those with a port that gets its first cable.
	Down Nodes `json:"down_hosts"`
	Gone Nodes `json:"gone_hosts"`
	Come Nodes `json:"new_hosts"`
	// NewSwitches get their first cable in the step, GoneSwitches lose their last one.
	NewSwitches  Nodes `json:"new_switches"`
	GoneSwitches Nodes `json:"gone_switches"`
	Batch        Batch `json:"-"`
}

// Nodes is a list of nodes, ascending. Its text is host names, with numbers in brackets.
type Nodes struct {
	List  []fabric.NodeID
	hosts int
	names string
}

// MarshalText returns the names.
func (n Nodes) MarshalText() ([]byte, error) { return []byte(n.names), nil }

// State is tables that are in force for a while.
type State struct {
	drain.Load
	Factor  float64 `json:"factor"` // Load over that before the first step
	Longer  int64   `json:"non_minimal_pairs"`
	Verdict string  `json:"verdict"`
	// Unplugged is the verdict without the cables that move.
	Unplugged string `json:"verdict_unplugged,omitempty"`
	// Write has the writes from the tables before to these. Back is the way
	// back: in After to tables around the new cables, in Drained to the tables
	// before the step. Switches in WriteFirst or BackFirst have no entries, as
	// they had no cable when the others got theirs: they get all before the
	// order of Write or Back begins.
	Write      drain.Change  `json:"write"`
	WriteFirst []fabric.GUID `json:"write_first,omitempty"`
	Back       drain.Change  `json:"back"`
	BackFirst  []fabric.GUID `json:"back_first,omitempty"`
	// Cuts is set in Drained if these tables cut off hosts and switches whose
	// cables move, since no tables that reach them are safe. Otherwise they
	// work until they are unplugged.
	Cuts bool `json:"cuts_off,omitempty"`
	// BackCuts is the same for Back, and for hosts and switches that came.
	BackCuts bool `json:"back_cuts_off,omitempty"`

	// Compiled has the tables, on the cables at the time of their writes.
	Compiled *compile.Result `json:"-"`
	// Leave has, in After, the tables that lead around the new cables on the way back.
	Leave *compile.Result `json:"-"`
}

type planner struct {
	ctx   context.Context
	job   *Job
	route compile.Options
	opt   Options
	plan  *Plan
	now   *compile.Result // the tables in force, on the nodes of the job
	want  *fabric.Fabric  // these nodes with the new cables
}

// Make plans a job. base has the tables in force on the fabric before, which
// compile.Run made or kept with route. If the job has no steps, Make first
// plugs in cables whose ports are free, then moves cables, and last unplugs
// those that are not replaced, in few steps. A step that cuts off a host that
// keeps its cable, or exceeds the limit, is refused. If the job has steps, the
// first refused one ends the plan. Errors: those of compile.Run.
func Make(ctx context.Context, base *compile.Result, job *Job, route compile.Options, opt Options) (*Plan, error) {
	p := &planner{ctx: ctx, job: job, route: route, opt: opt, plan: &Plan{
		Before: drain.LoadOf(base.Verify, base.Verify.Scale()), Limit: opt.Limit, Steps: []Step{}, Refused: []Refusal{},
	}}
	f, err := job.Nodes.WithCables(job.Old)
	if err == nil {
		p.want, err = job.Nodes.WithCables(job.New)
	}
	if err != nil {
		return nil, err
	}
	p.now = &compile.Result{Engine: base.Engine, Routing: base.Routing.On(f), Verify: base.Verify}
	if job.Steps == nil {
		return p.plan, p.search()
	}
	for _, b := range job.Steps {
		reason, err := p.take(b)
		if err != nil {
			return nil, err
		}
		if reason != "" {
			p.plan.Refused = append(p.plan.Refused, Refusal{p.links(b.Unplug), p.links(b.Plug), reason})
			break
		}
	}
	return p.plan, nil
}

func (p *planner) links(cables []fabric.Cable) []Link {
	return text.Each(cables, func(c fabric.Cable) Link {
		return Link{verify.EndpointOf(p.job.Nodes, c.A), verify.EndpointOf(p.job.Nodes, c.B), c.Link.String()}
	})
}

// take does a step. If that is not possible it returns the reason, and changes nothing.
func (p *planner) take(b Batch) (reason string, err error) {
	s := Step{Unplug: p.links(b.Unplug), Plug: p.links(b.Plug), Batch: b}
	if reason, err = drain.Reason(p.plug(&s)); err == nil && reason == "" {
		p.plan.Steps, p.now = append(p.plan.Steps, s), s.After.Compiled
	}
	return reason, err
}

// drain sets s.Drained: tables that lead around the cables that the step
// unplugs. rest has the tables without these cables. Errors may have a
// drain.Reason, here and below.
func (p *planner) drain(s *Step) (rest *compile.Result, err error) {
	now := *p.now
	var part drain.Part
	for _, c := range s.Batch.Unplug {
		x := drain.CablePart(now.Routing.Fabric, c.A)
		part.Cables, part.Nodes = append(part.Cables, x.Cables...), append(part.Nodes, x.Nodes...)
	}
	now.Routing = placed(now.Routing)
	plan, err := drain.Make(p.ctx, &now, p.route, []drain.Part{part}, drain.Options{Limit: p.opt.Limit, Before: &p.plan.Before})
	if err != nil {
		return nil, err
	}
	if len(plan.Refused) > 0 {
		return nil, drain.Refuse("%s", plan.Refused[0].Reason)
	}
	d := &plan.Windows[0].Steps[0]
	s.Drained = &State{
		Load: d.Load, Factor: d.Factor, Longer: d.Longer, Verdict: d.Verdict, Unplugged: d.Unplugged, Write: d.Drain, Compiled: d.Compiled,
	}
	return d.Rest, nil
}

// placed returns r with an Order in which switches without a cable have no place (-1), so that
// engines find one for them when they come.
func placed(r *lft.Routing) *lft.Routing {
	if r.Order == nil {
		return r
	}
	c := *r
	c.Order = slices.Clone(r.Order)
	for s := range c.Order {
		if r.Fabric.LID(r.Fabric.PortBase(fabric.NodeID(s))) == 0 {
			c.Order[s] = -1
		}
	}
	return &c
}

// plug computes the tables in force after the cables of step s are moved, and its writes. It
// refuses steps that cut hosts off or break the limit of load.
func (p *planner) plug(s *Step) error {
	b, before := s.Batch, p.now.Routing.Fabric
	after, err := p.job.Nodes.WithCables(append(before.Without(firstEnds(b.Unplug)...).Cables(), b.Plug...))
	if err != nil {
		return drain.Refuse("%v", err)
	}
	rest := p.now // tables that need only the cables that stay
	if len(b.Unplug) > 0 || newHolder(p.now.Routing, p.now.Routing, after, nil).uses(1, p.now.Routing.Tables.MaxLID()) {
		if rest, err = p.drain(s); err != nil {
			return err
		}
	}
	r := &compile.Result{Engine: p.now.Engine, Routing: rest.Routing.On(after), Verify: rest.Verify}
	if len(s.Plug) > 0 {
		if r, err = drain.Keep(p.ctx, p.now.Engine, after, placed(rest.Routing), p.route); err != nil {
			return err
		}
		drain.LeaveOut(r, after)
	}
	v := r.Verify
	s.After = State{Load: drain.LoadOf(v, p.plan.Before.Scale), Longer: v.Unicast.NonMinimal, Verdict: v.Verdict, Compiled: r}
	s.After.Factor = s.After.Over(p.plan.Before)
	if lost := v.Unicast.Unreachable + v.Unicast.Loops - rest.Verify.Unicast.Unreachable - rest.Verify.Unicast.Loops; lost > 0 {
		return drain.Refuse("hosts that come are not joined with the others: %d pairs", lost)
	}
	if err := (drain.Tables{Compiled: r, Rest: r}).Fit(p.opt.Limit, s.After.Factor); err != nil {
		return err
	}
	s.listNodes(before, rest.Routing.Fabric, after)
	return p.findWrites(s, after, rest)
}

// findWrites sets the tables in force while a step's cables are unplugged, on the way there and
// back, and the writes before and after. If packets would loop, its error is a drain.Reason.
func (p *planner) findWrites(s *Step, after *fabric.Fabric, rest *compile.Result) error {
	now, r, before := p.now.Routing, s.After.Compiled, p.now.Routing.Fabric
	force := now
	if d := s.Drained; d != nil {
		held, cuts, err := p.hold(d.Compiled, rest, now, after, r.Routing.Tables)
		if err != nil {
			return err
		}
		if held != d.Compiled {
			d.Compiled, d.Cuts = held, cuts
			if d.Write, err = drain.ChangeOf(p.ctx, before, now, held.Routing); err != nil {
				return err
			}
			verdict := held.Verify.Verdict
			if cuts {
				verdict = rest.Verify.Verdict // Cuts tells that ports are cut off
			}
			d.Verdict = d.Write.Verdict(verdict)
		}
		force = held.Routing
	}
	var err error
	s.After.WriteFirst = apart(after, rest.Routing.Fabric)
	if s.After.Write, err = drain.ChangeOf(p.ctx, after, force.On(after), r.Routing); err != nil {
		return err
	}
	s.After.Verdict = s.After.Write.Verdict(r.Verify.Verdict)
	leave, err := drain.Judge(p.ctx, r.Engine, drain.Overlay(after, rest.Routing, r.Routing))
	if err != nil {
		return err
	}
	if leave, s.After.BackCuts, err = p.hold(leave, rest, r.Routing, before, now.Tables); err != nil {
		return err
	}
	s.After.Leave = leave
	if s.After.Back, err = drain.ChangeOf(p.ctx, after, r.Routing, leave.Routing); err != nil || s.Drained == nil {
		return err
	}
	s.Drained.BackFirst = apart(before, rest.Routing.Fabric)
	s.Drained.Back, err = drain.ChangeOf(p.ctx, before, leave.Routing.On(before), now)
	return err
}

// apart lists the switches of f that have no cable in rest.
func apart(f, rest *fabric.Fabric) []fabric.GUID {
	cut := text.Where(f.Switches(), func(n fabric.NodeID) bool { return f.HasCable(n) && !rest.HasCable(n) })
	return text.Each(cut, func(n fabric.NodeID) fabric.GUID { return f.Node(n).GUID })
}

// listNodes lists the nodes that come, go, or are down meanwhile.
func (s *Step) listNodes(before, rest, after *fabric.Fabric) {
	for _, n := range before.Nodes() {
		add := func(x *Nodes, is bool) {
			if is && (len(x.List) == 0 || x.List[len(x.List)-1] != n) {
				x.List = append(x.List, n)
			}
		}
		if before.IsSwitch(n) {
			add(&s.NewSwitches, after.HasCable(n) && !before.HasCable(n))
			add(&s.GoneSwitches, before.HasCable(n) && !after.HasCable(n))
			continue
		}
		for num := range before.Node(n).NumPorts {
			p := before.Port(n, num+1)
			was, stays, is := before.Peer(p) != fabric.NoPort, rest.Peer(p) != fabric.NoPort, after.Peer(p) != fabric.NoPort
			add(&s.Down, was && !stays && is)
			add(&s.Gone, was && !is)
			add(&s.Come, !was && is)
		}
	}
	for _, x := range [...]*Nodes{&s.Down, &s.Gone, &s.Come, &s.NewSwitches, &s.GoneSwitches} {
		x.hosts, x.names = names.Fold(before, x.List)
	}
}
