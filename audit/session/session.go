// Package session tries changes of a fabric one after another, on the tables
// in force: cables and switches that fail, are drained, slow down, come back
// or are plugged elsewhere. The page of ibweave report --interactive uses it;
// it opens no files. It makes no promise to other modules.
//
// Every step has the result of a command for the same tables. For changed cables the
// tables are those of compile --previous; a failure also has the result of whatif, and drained
// parts have a plan of drain. So the command line can reproduce everything on the
// page.
package session

import (
	"context"
	"slices"

	"github.com/ibweave/ibweave/audit/diff"
	"github.com/ibweave/ibweave/audit/drain"
	"github.com/ibweave/ibweave/audit/whatif"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
	"github.com/ibweave/ibweave/verify/bound"
)

// Session is tables in force, and the steps that led there. It is not safe for concurrent use.
type Session struct {
	states []*tried // the first one is the base, then one for each step
	kept   *compile.Kept
}

// tried is a fabric with its tables after a step.
type tried struct {
	step    Step
	whole   *fabric.Fabric // with the cables of drained parts
	drained []drained
	drain.Tables
	plan  *drain.Plan // of the last steps in a row that drain; nil after other steps
	back  *tried      // with plan: the state before the last part was drained
	loads []int64     // lft.ChannelLoads of the tables in force; nil until they are counted
}

// drained is a part that is drained.
type drained struct {
	at   End
	part drain.Part
}

// Answer is the result of a step.
type Answer struct {
	Step string `json:"step"`
	// Refused is why the step cannot be done. Nothing has changed then, and other fields are empty.
	Refused string `json:"refused,omitempty"`
	// Before and After are the greatest loads.
	Before drain.Load `json:"before"`
	After  drain.Load `json:"after"`
	// Changes counts what a subnet manager writes, and Writes lists it by switch.
	Changes compile.Changes `json:"changes"`
	Writes  []Write         `json:"writes"`
	// Moved counts pairs of a CA or router port and a LID of another that had a path before and
	// have another one now.
	Moved int64 `json:"moved_pairs"`
	Kept  bool  `json:"kept"` // entries changed only where they had to
	// WhatIf is the result of whatif for a failure; nil if parts are drained.
	WhatIf *whatif.Case `json:"whatif,omitempty"`
	// Drain is the plan of drain for all parts that steps in a row drain.
	Drain *drain.Plan `json:"drain,omitempty"`
	// Verify is the checker's verdict on the tables in force.
	Verify *verify.Result `json:"verify"`
}

// Write is what a subnet manager writes to a switch.
type Write struct {
	verify.SwitchRef
	Entries int `json:"entries"`
	Blocks  int `json:"blocks"`
}

// New returns a session with these tables in force. Errors: those of verify.Check.
func New(ctx context.Context, e *compile.Engine, r *lft.Routing) (*Session, error) {
	base, err := drain.Judge(ctx, e, r)
	if err != nil {
		return nil, err
	}
	return &Session{states: []*tried{{whole: r.Fabric, Tables: drain.Tables{Compiled: base, Rest: base}}}, kept: new(compile.Kept)}, nil
}

func (s *Session) now() *tried { return s.states[len(s.states)-1] }

// scale returns the scale before the first step, for the relative loads of all answers.
func (s *Session) scale() bound.Scale { return s.states[0].Compiled.Verify.Scale() }

// Prepare makes the next step faster. Callers use it when there is time.
func (s *Session) Prepare() { s.kept.Start(s.now().Rest) }

// Result returns the tables in force after the last step.
func (s *Session) Result() *compile.Result { return s.now().Compiled }

// Loads returns lft.ChannelLoads of the tables in force. Callers must not change it.
func (s *Session) Loads(ctx context.Context) (loads []int64, err error) {
	x := s.now()
	if x.loads == nil {
		x.loads, err = lft.ChannelLoads(ctx, x.Compiled.Routing.Fabric, x.Compiled.Routing.Tables)
	}
	return x.loads, err
}

// Steps lists the steps.
func (s *Session) Steps() []string {
	return text.Each(s.states[1:], func(x *tried) string { return x.step.String() })
}

// Drained lists the drained parts, as steps name them.
func (s *Session) Drained() (list []string) {
	return text.Each(s.now().drained, func(d drained) string { return d.at.String() })
}

// Clone returns an independent copy: steps of one do not change the other.
func (s *Session) Clone() *Session {
	return &Session{states: slices.Clip(s.states), kept: s.kept}
}

// Undo takes the last step back, if there is one.
func (s *Session) Undo() {
	if len(s.states) > 1 {
		s.states = s.states[:len(s.states)-1]
	}
}

// Do does a step. Errors: those of compile.Run; if a step cannot be done, Answer has the reason.
func (s *Session) Do(ctx context.Context, step Step) (*Answer, error) {
	before := s.now()
	a := &Answer{Step: step.String(), Writes: []Write{}}
	next, err := s.take(ctx, step, a)
	if a.Refused, err = drain.Reason(err); err != nil {
		return nil, err
	}
	if a.Refused != "" {
		return a, nil
	}
	next.step = step
	old, r := before.Compiled, next.Compiled
	scale := s.scale()
	a.Before, a.After = drain.LoadOf(before.Rest.Verify, scale), drain.LoadOf(next.Rest.Verify, scale)
	a.Kept, a.Verify = next.Rest.Routing.Kept, r.Verify
	compile.EachChange(old.Routing, r.Routing, func(s fabric.NodeID, entries, blocks int) {
		a.Changes.Add(entries, blocks)
		a.Writes = append(a.Writes, Write{verify.SwitchOf(r.Routing.Fabric, s), entries, blocks})
	})
	if a.Moved, err = diff.CountRerouted(ctx, state.Of(old.Routing), state.Of(r.Routing)); err != nil {
		return nil, err
	}
	if step.Kind == Drain && next.plan != nil {
		a.Drain = next.plan
	}
	s.states = append(s.states, next) // nothing fails from here on
	return a, nil
}

// edit changes cables: those at the ports of out are unplugged, then those of in plugged in.
type edit struct {
	out []fabric.PortID
	in  []fabric.Cable
}

// take returns the state after a step.
func (s *Session) take(ctx context.Context, step Step, a *Answer) (*tried, error) {
	now := s.now()
	from, parts := now, now.drained
	var e edit
	var err error
	switch step.Kind {
	case Fail:
		e.out, err = s.fail(ctx, step.At, a)
	case Drain:
		parts, err = now.drain(step.At)
		if err == nil && (now.plan != nil || len(now.drained) == 0) { // else other steps are in between
			return s.plan(ctx, parts)
		}
	case Restore:
		if e, parts, err = s.restore(step.At); err == nil && len(e.in) == 0 && now.plan != nil && now.drained[len(parts)].at == step.At {
			// The part that was drained last is put back as the plan says.
			again := *now.back
			return &again, nil
		}
	case Slow:
		var p fabric.PortID
		if p, err = now.cabledPort(step.At); err == nil {
			e = edit{[]fabric.PortID{p}, []fabric.Cable{{A: p, B: now.whole.Peer(p), Link: step.Rate}}}
		}
	case Recable:
		if e, err = now.recable(step.At, step.To); err == nil {
			between := *now // the cable is out: this state is not checked
			rest, _ := restOf(now.whole.Without(e.out...), now.drained)
			between.Rest, err = drain.Keep(ctx, now.Rest.Engine, rest, now.Rest.Routing, compile.Options{Kept: s.kept, Unverified: true})
			from = &between
		}
	default:
		err = drain.Refuse("%q: want a kind of step", step.Kind)
	}
	if err != nil {
		return nil, err
	}
	// Nodes that had no cable for a while get their LIDs of the base again.
	whole, err := s.states[0].whole.WithCables(append(now.whole.Without(e.out...).Cables(), e.in...))
	if err != nil {
		return nil, drain.Refuse("%v", err)
	}
	rest, parts := restOf(whole, parts)
	next := &tried{whole: whole, drained: parts}
	next.Tables, err = from.Next(ctx, whole, rest, compile.Options{Kept: s.kept})
	return next, err
}

func (x *tried) node(e End) (fabric.NodeID, error) {
	n, ok := x.whole.NodeByGUID(e.Node)
	if !ok {
		return n, drain.Refuse("the fabric has no node with GUID %s", e.Node)
	}
	if e.Port > x.whole.Node(n).NumPorts {
		return n, drain.Refuse("%s has no port %d", x.whole.Name(n), e.Port)
	}
	return n, nil
}

func (x *tried) cabledPort(e End) (fabric.PortID, error) {
	n, err := x.node(e)
	if err != nil {
		return fabric.NoPort, err
	}
	p := x.whole.Port(n, e.Port)
	if e.Port == 0 || x.whole.Peer(p) == fabric.NoPort {
		return p, drain.Refuse("%s has no cable", x.whole.PortName(p))
	}
	return p, nil
}

// part returns what is to fail or to be drained.
func (x *tried) part(e End) (drain.Part, error) {
	if e.Port != 0 {
		p, err := x.cabledPort(e)
		if err != nil {
			return drain.Part{}, err
		}
		return drain.CablePart(x.whole, p), nil
	}
	n, err := x.node(e)
	if err != nil {
		return drain.Part{}, err
	}
	if !x.whole.IsSwitch(n) {
		return drain.Part{}, drain.Refuse("%s is no switch: want one of its cables, GUID:PORT", x.whole.Name(n))
	}
	part := drain.SwitchPart(x.whole, []fabric.NodeID{n})
	if len(part.Cables) == 0 {
		return part, drain.Refuse("%s has no cable", x.whole.Name(n))
	}
	return part, nil
}

// fail lists the cables of what fails.
func (s *Session) fail(ctx context.Context, at End, a *Answer) ([]fabric.PortID, error) {
	now := s.now()
	part, err := now.part(at)
	if err == nil && len(now.drained) == 0 {
		kind := whatif.Links
		if at.Port == 0 {
			kind = whatif.Switches
		}
		a.WhatIf, err = whatif.One(ctx, now.Compiled, compile.Options{Kept: s.kept}, kind, part.Cables[0], s.scale())
	}
	return part.Cables, err
}

// recable moves the other end of the cable at port at to port to. If to has a cable, that goes to
// the freed port: the two are exchanged.
func (x *tried) recable(at, to End) (e edit, err error) {
	f := x.whole
	p, err := x.cabledPort(at)
	if err != nil {
		return e, err
	}
	n, err := x.node(to)
	if err != nil {
		return e, err
	}
	left, goal := f.Peer(p), f.Port(n, to.Port)
	other := f.Peer(goal)
	if to.Port == 0 || goal == p || goal == left {
		return e, drain.Refuse("%s is no other port for the cable at %s", f.PortName(goal), f.PortName(p))
	}
	moved := []fabric.PortID{p, left, goal, other}
	for _, d := range x.drained {
		if d.at.Port != 0 && slices.ContainsFunc(d.part.Cables, func(c fabric.PortID) bool { return slices.Contains(moved, c) }) {
			return e, drain.Refuse("%s is drained: restore it first", d.part.Name)
		}
	}
	e = edit{[]fabric.PortID{p, goal}, []fabric.Cable{{A: p, B: goal, Link: f.Link(p)}}}
	if other != fabric.NoPort {
		e.in = append(e.in, fabric.Cable{A: left, B: other, Link: f.Link(goal)})
	}
	return e, nil
}

// restore undoes the steps on a part: its cables are as in the base, if their ports are
// free, and it is no longer drained. left has the parts that are still drained.
func (s *Session) restore(at End) (e edit, left []drained, err error) {
	now, base := s.now(), s.states[0].whole
	n, err := now.node(at)
	if err != nil {
		return e, nil, err
	}
	f := now.whole
	touched := func(p fabric.PortID) bool { return base.Owner(p) == n && (at.Port == 0 || base.Num(p) == at.Port) }
	for _, c := range base.Cables() {
		slowed := f.Peer(c.A) == c.B && f.Link(c.A) != c.Link
		free := f.Peer(c.A) == fabric.NoPort && f.Peer(c.B) == fabric.NoPort
		if (touched(c.A) || touched(c.B)) && (slowed || free) {
			e.out, e.in = append(e.out, c.A), append(e.in, c)
		}
	}
	left = slices.DeleteFunc(slices.Clone(now.drained), func(d drained) bool { return d.at == at })
	if len(e.in) == 0 && len(left) == len(now.drained) {
		err = drain.Refuse("%s is as it was, or its ports have other cables", at)
	}
	return e, left, err
}

// restOf returns whole without some drained parts. It also returns the parts with their present
// cables, which may differ from those when they were drained.
func restOf(whole *fabric.Fabric, parts []drained) (*fabric.Fabric, []drained) {
	var cut []fabric.PortID
	parts = slices.Clone(parts)
	for i, d := range parts {
		if d.at.Port == 0 {
			if n, ok := whole.NodeByGUID(d.at.Node); ok {
				parts[i].part = drain.SwitchPart(whole, []fabric.NodeID{n})
			}
		}
		cut = append(cut, parts[i].part.Cables...)
	}
	if len(cut) == 0 {
		return whole, parts
	}
	return whole.Without(cut...), parts
}

// drain lists the drained parts, and adds the one at End at.
func (x *tried) drain(at End) ([]drained, error) {
	part, err := x.part(at)
	if err == nil && slices.ContainsFunc(x.drained, func(d drained) bool { return d.at == at }) {
		err = drain.Refuse("%s is drained already", part.Name)
	}
	return append(slices.Clone(x.drained), drained{at, part}), err
}

// plan finds tables that lead around parts, of which the last is new. Steps in a row that drain
// make one plan with one window.
func (s *Session) plan(ctx context.Context, parts []drained) (*tried, error) {
	now := s.now()
	first := len(s.states) - 1 // before the first of these drains
	for s.states[first].plan != nil {
		first--
	}
	list := text.Each(parts, func(d drained) drain.Part { return d.part })
	base := s.states[first].Compiled
	load := drain.LoadOf(base.Verify, s.scale())
	plan, err := drain.Make(ctx, base, compile.Options{Kept: s.kept}, list, drain.Options{Before: &load})
	switch {
	case err != nil:
		return nil, err
	case len(plan.Refused) > 0:
		return nil, drain.Refuse("%s", plan.Refused[0].Reason)
	case len(plan.Windows) > 1:
		return nil, drain.Refuse("%s cannot be out together with what is drained already", list[len(list)-1].Name)
	}
	last := plan.Windows[0].Steps[len(list)-1]
	return &tried{whole: now.whole, drained: parts, Tables: last.Tables, plan: plan, back: now}, nil
}
