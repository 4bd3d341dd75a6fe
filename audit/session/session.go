// Package session tries changes of a fabric one after another, on the tables in force: cables and
// switches that fail, are drained, slow down, come back or are plugged elsewhere. It stands behind
// the page of ibweave report --interactive and opens no files. It makes no promise to other modules.
//
// Every step gives what a command gives for the same tables. A fabric with other cables has the
// tables of compile --previous; a failure is also judged as whatif does it, and parts that are
// drained are planned as drain does it. So what the page shows can be had again from the command
// line.
package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/audit/diff"
	"github.com/ibweave/ibweave/audit/drain"
	"github.com/ibweave/ibweave/audit/whatif"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
	"github.com/ibweave/ibweave/verify/bound"
)

// Session is tables in force, and the steps that were taken from there. Not safe for concurrent use.
type Session struct {
	states []*tried // the first one is the base, then one for each step
	kept   *compile.Kept
}

// tried is a fabric with its tables after a step.
type tried struct {
	step    Step
	whole   *fabric.Fabric // with the cables of what is drained
	drained []drained
	inForce *compile.Result // on whole
	rest    *compile.Result // on what is not drained
	plan    *drain.Plan     // that of the last steps in a row that drain; nil after other steps
	back    *tried          // with plan: what was before the part that was drained last
	loads   []int64         // those of lft.ChannelLoads for the tables in force; nil until they are counted
}

// drained is a part that is drained.
type drained struct {
	at   End
	part drain.Part
}

// Answer is what a step does.
type Answer struct {
	Step string `json:"step"`
	// Refused is why the step cannot be done; nothing has changed then, and the rest is empty.
	Refused string `json:"refused,omitempty"`
	// Before and After are the greatest loads.
	Before drain.Load `json:"before"`
	After  drain.Load `json:"after"`
	// Changes are what a subnet manager writes, and Writes the same by switch.
	Changes compile.Changes `json:"changes"`
	Writes  []Write         `json:"writes"`
	// Moved is how many pairs of CA or router ports and LIDs of others had a path before and have another one now.
	Moved int64 `json:"moved_pairs"`
	Kept  bool  `json:"kept"` // entries changed only where they had to
	// WhatIf is what whatif says of a failure, nil where parts are drained.
	WhatIf *whatif.Case `json:"whatif,omitempty"`
	// Drain is the plan of drain for all parts that are drained in a row.
	Drain *drain.Document `json:"drain,omitempty"`
	// Verify is the checker's verdict on the tables in force.
	Verify *verify.Result `json:"verify"`
}

// Write is what a subnet manager writes to a switch.
type Write struct {
	verify.SwitchRef
	Entries int `json:"entries"`
	Blocks  int `json:"blocks"`
}

// New begins with the tables in force. Errors: those of verify.Check.
func New(ctx context.Context, e *compile.Engine, r *lft.Routing) (*Session, error) {
	v, err := verify.Check(ctx, state.Of(r), verify.Options{Complete: true})
	if err != nil {
		return nil, err
	}
	base := &compile.Result{Engine: e, Routing: r, Verify: v}
	return &Session{states: []*tried{{whole: r.Fabric, inForce: base, rest: base}}, kept: new(compile.Kept)}, nil
}

func (s *Session) now() *tried { return s.states[len(s.states)-1] }

// scale is that of the fabric before the first step: the relative loads of all answers are on it.
func (s *Session) scale() bound.Scale { return s.states[0].inForce.Verify.Scale() }

// Prepare makes the next step take less time. A caller calls it when it has some.
func (s *Session) Prepare() { s.kept.Start(s.now().rest) }

// Result is the tables in force after the last step.
func (s *Session) Result() *compile.Result { return s.now().inForce }

// Loads is lft.ChannelLoads of the tables in force. Not to be changed.
func (s *Session) Loads(ctx context.Context) (loads []int64, err error) {
	x := s.now()
	if x.loads == nil {
		x.loads, err = lft.ChannelLoads(ctx, x.inForce.Routing.Fabric, x.inForce.Routing.Tables)
	}
	return x.loads, err
}

// Steps lists the steps.
func (s *Session) Steps() []string {
	list := []string{}
	for _, x := range s.states[1:] {
		list = append(list, x.step.String())
	}
	return list
}

// Drained lists what is drained, as steps name it.
func (s *Session) Drained() (list []string) {
	for _, d := range s.now().drained {
		list = append(list, d.at.String())
	}
	return list
}

// Clone is an independent copy: steps of the one are none of the other.
func (s *Session) Clone() *Session {
	return &Session{states: slices.Clip(s.states), kept: s.kept}
}

// Undo takes the last step back, if there is one.
func (s *Session) Undo() {
	if len(s.states) > 1 {
		s.states = s.states[:len(s.states)-1]
	}
}

// refusal is why a step cannot be done.
type refusal struct{ reason string }

func (r *refusal) Error() string { return r.reason }

func refuse(format string, args ...any) error { return &refusal{fmt.Sprintf(format, args...)} }

// Do takes a step. Errors: those of compile.Run; a step that cannot be done is an Answer.
func (s *Session) Do(ctx context.Context, step Step) (*Answer, error) {
	before := s.now()
	a := &Answer{Step: step.String(), Writes: []Write{}}
	next, err := s.take(ctx, step, a)
	var no *refusal
	var domain *lft.DomainError
	switch {
	case errors.As(err, &no):
		a.Refused = no.reason
		return a, nil
	case errors.As(err, &domain):
		a.Refused = domain.Reason
		return a, nil
	case err != nil:
		return nil, err
	}
	next.step = step
	old, r := before.inForce, next.inForce
	scale := s.scale()
	a.Before, a.After = drain.LoadOf(before.rest.Verify, scale), drain.LoadOf(next.rest.Verify, scale)
	a.Changes, a.Kept, a.Verify = compile.ChangesSince(old.Routing, r.Routing), next.rest.Routing.Kept, r.Verify
	a.listWrites(old.Routing, r.Routing)
	if a.Moved, err = diff.CountRerouted(ctx, state.Of(old.Routing), state.Of(r.Routing)); err != nil {
		return nil, err
	}
	if step.Kind == Drain && next.plan != nil {
		a.Drain = next.plan.Document(next.whole)
	}
	s.states = append(s.states, next) // nothing fails from here on
	return a, nil
}

// take finds the state after a step.
func (s *Session) take(ctx context.Context, step Step, a *Answer) (*tried, error) {
	now := s.now()
	switch step.Kind {
	case Fail:
		return s.fail(ctx, step.At, a)
	case Drain:
		return s.drain(ctx, step.At)
	case Restore:
		return s.restore(ctx, step.At)
	case Slow:
		p, err := now.cabledPort(step.At)
		if err != nil {
			return nil, err
		}
		return s.reroute(ctx, now, now.whole.WithLinks(map[fabric.PortID]fabric.Link{p: step.Rate, now.whole.Peer(p): step.Rate}), now.drained)
	case Recable:
		return s.recable(ctx, step.At, step.To)
	}
	return nil, refuse("%q: want a kind of step", step.Kind)
}

// node finds the node of an end.
func (x *tried) node(e End) (fabric.NodeID, error) {
	n, ok := x.whole.NodeByGUID(e.Node)
	if !ok {
		return n, refuse("the fabric has no node with GUID %s", e.Node)
	}
	if e.Port > x.whole.Node(n).NumPorts {
		return n, refuse("%s has no port %d", x.whole.Name(n), e.Port)
	}
	return n, nil
}

// cabledPort finds a port with a cable.
func (x *tried) cabledPort(e End) (fabric.PortID, error) {
	n, err := x.node(e)
	if err != nil {
		return fabric.NoPort, err
	}
	p := x.whole.Port(n, e.Port)
	if e.Port == 0 || x.whole.Peer(p) == fabric.NoPort {
		return p, refuse("%s has no cable", x.whole.PortName(p))
	}
	return p, nil
}

// part finds what is to fail or to be drained.
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
		return drain.Part{}, refuse("%s is no switch: want one of its cables, GUID:PORT", x.whole.Name(n))
	}
	part := drain.SwitchPart(x.whole, []fabric.NodeID{n})
	if len(part.Cables) == 0 {
		return part, refuse("%s has no cable", x.whole.Name(n))
	}
	return part, nil
}

// fail takes cables away.
func (s *Session) fail(ctx context.Context, at End, a *Answer) (*tried, error) {
	now := s.now()
	part, err := now.part(at)
	if err != nil {
		return nil, err
	}
	if len(now.drained) == 0 {
		kind := whatif.Links
		if at.Port == 0 {
			kind = whatif.Switches
		}
		if a.WhatIf, err = whatif.One(ctx, now.inForce, compile.Options{Kept: s.kept}, kind, part.Cables[0], s.scale()); err != nil {
			return nil, err
		}
	}
	return s.reroute(ctx, now, now.whole.Without(part.Cables...), now.drained)
}

// recable plugs the cable at one port into another instead of where it was. If that has a
// cable, this one goes to where the first was: the two are exchanged.
func (s *Session) recable(ctx context.Context, at, to End) (*tried, error) {
	now := s.now()
	f := now.whole
	p, err := now.cabledPort(at)
	if err != nil {
		return nil, err
	}
	n, err := now.node(to)
	if err != nil {
		return nil, err
	}
	left, goal := f.Peer(p), f.Port(n, to.Port)
	if to.Port == 0 || goal == p || goal == left {
		return nil, refuse("%s is no other port for the cable at %s", f.PortName(goal), f.PortName(p))
	}
	for _, d := range now.drained {
		for _, c := range d.part.Cables {
			for _, moved := range [...]fabric.PortID{p, left, goal, f.Peer(goal)} {
				if d.at.Port != 0 && moved != fabric.NoPort && (moved == c || moved == f.Peer(c)) {
					return nil, refuse("%s is drained: restore it first", d.part.Name)
				}
			}
		}
	}
	cables := f.Cables()
	for i, c := range cables {
		switch {
		case c.A == p || c.B == p:
			cables[i].A, cables[i].B = p, goal
		case c.A == goal || c.B == goal:
			cables[i].A, cables[i].B = left, f.Peer(goal)
		}
	}
	// As in a plan of move, it is unplugged first.
	between := *now
	rest, _ := restOf(f.Without(p, goal), now.drained)
	if between.rest, err = s.route(ctx, now, rest, compile.Options{Unverified: true}); err != nil {
		return nil, err
	}
	return s.recabled(ctx, &between, cables, now.drained)
}

// recabled is the state after another one with other cables. Nodes that had none for a while have the
// LIDs of the base.
func (s *Session) recabled(ctx context.Context, from *tried, cables []fabric.Cable, parts []drained) (*tried, error) {
	g, err := s.states[0].whole.WithCables(cables)
	if err != nil {
		return nil, refuse("%v", err)
	}
	return s.reroute(ctx, from, g, parts)
}

// restore undoes what steps did to a part: its cables are as in the base where their ports are
// free, and it is drained no more.
func (s *Session) restore(ctx context.Context, at End) (*tried, error) {
	now, base := s.now(), s.states[0]
	i := slices.IndexFunc(now.drained, func(d drained) bool { return d.at == at })
	n, err := now.node(at)
	if err != nil {
		return nil, err
	}
	touched := func(p fabric.PortID) bool {
		f := base.whole
		return at.Port == 0 && f.Owner(p) == n || at.Port != 0 && p == f.Port(n, at.Port)
	}
	cables := now.whole.Cables()
	used := make(map[fabric.PortID]int) // by port: 1 more than the index of its cable
	for k, c := range cables {
		used[c.A], used[c.B] = k+1, k+1
	}
	changed := false
	for _, c := range base.whole.Cables() {
		if !touched(c.A) && !touched(c.B) {
			continue
		}
		switch k := used[c.A]; {
		case k > 0 && k == used[c.B]:
			changed = changed || cables[k-1].Link != c.Link
			cables[k-1].Link = c.Link
		case k == 0 && used[c.B] == 0:
			changed, cables = true, append(cables, c)
		}
	}
	left := slices.Clone(now.drained)
	if i >= 0 {
		left = slices.Delete(left, i, i+1)
	}
	switch {
	case i < 0 && !changed:
		return nil, refuse("%s is as it was, or its ports have other cables", at)
	case !changed && now.plan != nil && i == len(left):
		// The part that was drained last is put back as the plan says.
		again := *now.back
		return &again, nil
	case !changed:
		return s.reroute(ctx, now, now.whole, left)
	}
	return s.recabled(ctx, now, cables, left)
}

// reroute is the state after x with the cables of a fabric and with parts drained: the tables are those of
// compile --previous on what is not drained.
func (s *Session) reroute(ctx context.Context, x *tried, whole *fabric.Fabric, parts []drained) (*tried, error) {
	rest, parts := restOf(whole, parts)
	r, err := s.route(ctx, x, rest, compile.Options{})
	if err != nil {
		return nil, err
	}
	next := &tried{whole: whole, drained: parts, inForce: r, rest: r}
	if rest == whole {
		return next, nil
	}
	r.Routing.Fabric = rest
	drain.DropPartitions(r.Verify)
	next.inForce, err = drain.Judge(ctx, r.Engine, drain.Overlay(whole, r.Routing, x.inForce.Routing))
	return next, err
}

// restOf is what is left of a fabric without parts, which may have other cables than when they were
// drained: it gives them too.
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

// route keeps the tables of x as far as it can on what is not drained.
func (s *Session) route(ctx context.Context, x *tried, rest *fabric.Fabric, opt compile.Options) (*compile.Result, error) {
	opt.LIDs, opt.Kept = lft.LIDOptions{LMC: lft.KeepLMC}, s.kept
	if _, ok := x.rest.Engine.Engine.(lft.IncrementalEngine); ok {
		opt.Route.Previous = x.rest.Routing
	}
	return compile.Run(ctx, rest, x.rest.Engine, opt)
}

// drain leads around a part. Steps in a row that drain make one plan with one window.
func (s *Session) drain(ctx context.Context, at End) (*tried, error) {
	now := s.now()
	part, err := now.part(at)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(now.drained, func(d drained) bool { return d.at == at }) {
		return nil, refuse("%s is drained already", part.Name)
	}
	parts := append(slices.Clone(now.drained), drained{at, part})
	if len(now.drained) > 0 && now.plan == nil {
		// Other steps came between: a plan has no such step.
		return s.reroute(ctx, now, now.whole, parts)
	}
	first := len(s.states) - 1 // before the first of these drains
	for s.states[first].plan != nil {
		first--
	}
	list := make([]drain.Part, len(parts))
	for i := range parts {
		list[i] = parts[i].part
	}
	base := s.states[first].inForce
	load := drain.LoadOf(base.Verify, s.scale())
	plan, err := drain.Make(ctx, base, compile.Options{Kept: s.kept}, list, drain.Options{Before: &load})
	if err != nil {
		return nil, err
	}
	if len(plan.Refused) > 0 {
		return nil, refuse("%s", plan.Refused[0].Reason)
	}
	if len(plan.Windows) > 1 {
		return nil, refuse("%s cannot be out together with what is drained already", part.Name)
	}
	last := plan.Windows[0].Steps[len(list)-1]
	return &tried{whole: now.whole, drained: parts, inForce: last.Compiled, rest: last.Rest, plan: plan, back: now}, nil
}

// listWrites says what is written to each switch.
func (a *Answer) listWrites(old, r *lft.Routing) {
	f := r.Fabric
	for s := range fabric.NodeID(f.NumSwitches()) {
		if !f.HasCable(s) {
			continue
		}
		if entries, blocks := lft.CountChanges(old.Tables.Row(s), r.Tables.Row(s)); blocks > 0 {
			a.Writes = append(a.Writes, Write{verify.SwitchOf(f, s), entries, blocks})
		}
	}
}
