package mft

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
)

// draft is a tree before it has an MLID.
type draft struct {
	senders []fabric.PortID // ascending
	ports   []fabric.PortID // in the masks, ascending
}

// drafted has the trees of one group, or the error why there are none.
type drafted struct {
	trees []draft
	err   error
}

// drafter is a scheme that makes trees before MLIDs are given out.
type drafter interface {
	Scheme
	// atLeast bounds from below how many MLIDs a group takes.
	atLeast(r *lft.Routing, g *Group) int
	// draft makes the trees of all groups. Its own error is ctx's, or says that
	// the scheme was set up wrongly.
	draft(ctx context.Context, r *lft.Routing, groups []Group, opt Options) ([]drafted, error)
}

// build implements Build of all drafters.
func build(ctx context.Context, s drafter, r *lft.Routing, groups []Group, opt Options) (*Plan, error) {
	ids, err := NewIDs(groups, opt)
	if err != nil {
		return nil, err
	}
	need := 0
	for i := range groups {
		need += fresh(&groups[i], s.atLeast(r, &groups[i]))
	}
	if need > ids.Free() {
		return nil, &BudgetError{MLIDs: ids.Free()}
	}
	list, err := s.draft(ctx, r, groups, opt)
	if err != nil {
		return nil, err
	}
	a := newAssembly(r.Fabric, groups, ids)
	for i := range list {
		if list[i].err != nil {
			return nil, list[i].err
		}
		if err := a.add(i, s.Name(), nil, list[i].trees); err != nil {
			return nil, err
		}
	}
	return a.plan(), nil
}

// draftEach drafts groups in parallel, for schemes whose trees of a group depend on no other group.
func draftEach(ctx context.Context, groups []Group, worker func() func(*Group) ([]draft, error)) ([]drafted, error) {
	list := make([]drafted, len(groups))
	_, err := par.ForEachWith(ctx, 0, len(groups), worker, func(work func(*Group) ([]draft, error), i int) error {
		list[i].trees, list[i].err = work(&groups[i])
		return nil
	})
	return list, err
}

// fresh returns how many free MLIDs a group needs besides its own, for some trees.
func fresh(g *Group, trees int) int {
	if g.MLID != 0 && trees > 0 {
		return trees - 1
	}
	return trees
}

// assembly gives MLIDs to drafts and makes a plan of them.
type assembly struct {
	f      *fabric.Fabric
	groups []Group
	ids    *IDs
	trees  []Tree
	masks  map[fabric.LID][]fabric.PortID
}

func newAssembly(f *fabric.Fabric, groups []Group, ids *IDs) *assembly {
	return &assembly{f: f, groups: groups, ids: ids, masks: make(map[fabric.LID][]fabric.PortID, len(groups))}
}

// add gives an MLID to each tree of a group, and why, the reasons of
// earlier schemes. Call it once for a group.
func (a *assembly) add(group int, scheme string, why []string, list []draft) error {
	for k := range list {
		mlid, err := fabric.LID(0), error(nil)
		if k == 0 {
			mlid, err = a.ids.MLID(group)
		} else {
			mlid, err = a.ids.Next()
		}
		if err != nil {
			return err
		}
		a.masks[mlid] = list[k].ports
		a.addTree(group, a.ids.MGID(group, k), scheme, why, list[k].senders, mlid)
	}
	return nil
}

func (a *assembly) addTree(group int, mgid MGID, scheme string, why []string, senders []fabric.PortID, mlid fabric.LID) {
	g := &a.groups[group]
	a.trees = append(a.trees, Tree{
		Group:     group,
		Name:      g.Name,
		MGID:      mgid,
		MLID:      mlid,
		Senders:   senders,
		Receivers: g.Receivers,
		SL:        g.SL,
		Scheme:    scheme,
		Why:       why,
	})
}

func (a *assembly) plan() *Plan {
	slices.SortStableFunc(a.trees, func(x, y Tree) int { return cmp.Compare(x.MLID, y.MLID) })
	t := NewTables(a.f)
	for _, m := range slices.Sorted(maps.Keys(a.masks)) {
		t.Add(m, a.masks[m])
	}
	return &Plan{Trees: a.trees, Tables: t}
}

// Fit makes the trees of all groups, by the first of schemes. If MLIDs do not
// suffice, groups step down to the next scheme: first those that take the
// most MLIDs, and among equals the last in the list. If the last scheme,
// which should take one MLID for a group, still takes too many, groups share
// MLIDs: first those whose packets then reach the fewest end ports besides
// their own receivers. Equal receivers cost nothing: a host drops packets of
// other MGIDs. If there would be more stray copies than opt.MaxStray, the
// groups with the fewest receivers get no MLID and are left to repeated
// unicast. Plan.Notes tells what was done.
//
// Errors: that of a group's first scheme, if it refuses and opt.Yield is not
// set; that of the last scheme; a *BudgetError, if MLIDs do not suffice and
// the last scheme takes several for a group.
func Fit(ctx context.Context, r *lft.Routing, groups []Group, opt Options, schemes ...Scheme) (*Plan, error) {
	ids, err := NewIDs(groups, opt)
	if err != nil {
		return nil, err
	}
	if len(schemes) == 0 {
		return nil, errors.New("no multicast scheme")
	}
	b := &budget{r: r, groups: groups, opt: opt, schemes: schemes, steps: make([]steps, len(groups)), refused: make([]refusal, len(schemes)), free: ids.Free()}
	for i := range b.steps {
		x := &b.steps[i]
		if opt.First != nil {
			x.first = opt.First(i)
		}
		x.made, x.level = -1, x.first
		x.mlids = b.atLeast(i)
	}
	if err := b.fit(ctx); err != nil {
		return nil, err
	}
	a := newAssembly(r.Fabric, groups, ids)
	notes := b.notesOfSteps()
	var unserved []int
	var shared *sharing
	if b.need() > b.free {
		if shared, err = b.share(ctx); err != nil {
			return nil, err
		}
		notes = append(notes, shared.notes()...)
	}
	for i := range groups {
		x := &b.steps[i]
		switch {
		case shared == nil || shared.of[i] == ownMLID:
			err = a.add(i, schemes[x.level].Name(), x.why, x.trees)
		case shared.of[i] == noMLID:
			unserved = append(unserved, i)
		}
		if err != nil {
			return nil, err
		}
	}
	if shared != nil {
		if err := shared.add(a, schemes[len(schemes)-1].Name()); err != nil {
			return nil, err
		}
	}
	plan := a.plan()
	plan.Notes, plan.Unserved = notes, unserved
	return plan, nil
}

// budget is the state of Fit.
type budget struct {
	r       *lft.Routing
	groups  []Group
	opt     Options
	schemes []Scheme
	steps   []steps // by group
	free    int
	refused []refusal // by index in schemes: groups that it refused
	notes   []string  // of schemes
}

// steps is how far down a group has stepped. Levels are indices in schemes.
type steps struct {
	first int // the level where it began
	level int
	made  int // the level of trees, -1 if there are none
	trees []draft
	mlids int      // a lower bound; exact once trees are made
	why   []string // why schemes refused it
}

// refusal counts the groups that a scheme refused, with the reason for the first.
type refusal struct {
	groups int
	why    error
}

// need returns how many free MLIDs the trees take.
func (b *budget) need() int {
	n := 0
	for i := range b.groups {
		n += fresh(&b.groups[i], b.steps[i].mlids)
	}
	return n
}

// fit makes trees for all groups, and steps down until MLIDs suffice or no
// scheme is left below.
func (b *budget) fit(ctx context.Context) error {
	b.stepDown()
	for {
		if err := b.draft(ctx); err != nil {
			return err
		}
		refused := false
		for i := range b.steps {
			x := &b.steps[i]
			x.mlids = len(x.trees)
			refused = refused || x.made != x.level
		}
		if !b.stepDown() && !refused {
			return nil
		}
	}
}

// atLeast bounds from below how many MLIDs group i takes at its level.
func (b *budget) atLeast(i int) int {
	if d, ok := b.schemes[b.steps[i].level].(drafter); ok {
		return d.atLeast(b.r, &b.groups[i])
	}
	return 1
}

// stepDown moves groups to their next schemes until MLIDs suffice, and returns
// true if it moved any. A moved group counts with atLeast of its new scheme.
func (b *budget) stepDown() bool {
	need := b.need()
	moved := false
	for need > b.free {
		var order []int
		for i := range b.steps {
			if b.steps[i].level+1 < len(b.schemes) && b.steps[i].mlids > 1 {
				order = append(order, i)
			}
		}
		if len(order) == 0 {
			return moved
		}
		slices.SortFunc(order, func(i, j int) int {
			return cmp.Or(cmp.Compare(b.steps[j].mlids, b.steps[i].mlids), cmp.Compare(j, i))
		})
		for _, i := range order {
			if need <= b.free {
				break
			}
			x := &b.steps[i]
			x.level++
			moved = true
			n := b.atLeast(i)
			need -= x.mlids - n
			x.mlids = n
		}
	}
	return moved
}

// draft makes the missing trees. A refused group steps down. It returns a
// refusal of the last scheme or, without Options.Yield, of a group's first.
func (b *budget) draft(ctx context.Context) error {
	for level, scheme := range b.schemes {
		var which []int
		var groups []Group
		for i, x := range b.steps {
			if x.level == level && x.made != level {
				which = append(which, i)
				groups = append(groups, b.groups[i])
			}
		}
		if len(which) == 0 {
			continue
		}
		list, notes, err := draftWith(ctx, scheme, b.r, groups, b.opt)
		if err != nil {
			return err
		}
		b.notes = append(b.notes, notes...)
		for k, i := range which {
			x := &b.steps[i]
			x.trees, x.made = list[k].trees, level
			var no *RefusedError
			switch err := list[k].err; {
			case err == nil:
			case level == x.first && !b.opt.Yield || !errors.As(err, &no):
				return err
			case level+1 == len(b.schemes):
				last := *no
				last.Tried = x.why
				return &last
			default:
				x.why = append(x.why, no.said())
				if b.refused[level].groups++; b.refused[level].groups == 1 {
					b.refused[level].why = err
				}
				x.level++
			}
		}
	}
	return nil
}

// chunk is how many groups a scheme that gives out MLIDs gets at a time.
const chunk = NumMLIDs - 1

// draftWith makes trees with any scheme, without MLIDs.
func draftWith(ctx context.Context, s Scheme, r *lft.Routing, groups []Group, opt Options) (list []drafted, notes []string, err error) {
	if d, ok := s.(drafter); ok {
		list, err = d.draft(ctx, r, groups, opt)
		return list, nil, err
	}
	list = make([]drafted, len(groups))
	for at := 0; at < len(groups); at += chunk {
		part := slices.Clone(groups[at:min(at+chunk, len(groups))])
		for i := range part {
			part[i].MGID, part[i].MLID = MGID{}, 0
		}
		plan, err := s.Build(ctx, r, part, Options{Balance: opt.Balance})
		if err != nil {
			if _, refused := errors.AsType[*RefusedError](err); !refused {
				return nil, nil, err
			}
			for i := range part {
				list[at+i].err = err
			}
			continue
		}
		notes = append(notes, plan.Notes...)
		for i := range plan.Trees {
			t := &plan.Trees[i]
			x := &list[at+t.Group]
			x.trees = append(x.trees, draft{senders: t.Senders, ports: plan.Tables.Ports(t.MLID)})
		}
	}
	return list, notes, nil
}

// stepping returns "1 of 5 groups steps down".
func (b *budget) stepping(n int) string {
	groups := "of " + text.Count(len(b.groups), "group", "groups")
	return text.Count(n, groups+" steps down", groups+" step down")
}

// notesOfSteps tells how many groups stepped down, to which scheme and why.
func (b *budget) notesOfSteps() []string {
	below := make([]int, len(b.schemes)) // by scheme: groups that stepped down from it
	for _, x := range b.steps {
		for k := x.first; k < x.level; k++ {
			below[k]++
		}
	}
	var list []string
	for level, n := range below {
		refused := &b.refused[level]
		if refused.groups > 0 {
			list = append(list, fmt.Sprintf("%s to %s: %v",
				b.stepping(refused.groups), b.schemes[level+1].Name(), refused.why))
		}
		if n > refused.groups {
			list = append(list, fmt.Sprintf("%s to %s: with %s the trees take more than %s free",
				b.stepping(n-refused.groups), b.schemes[level+1].Name(), b.schemes[level].Name(), text.Count(b.free, "MLID, all that is", "MLIDs, all that are")))
		}
	}
	return append(list, b.notes...)
}
