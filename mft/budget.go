package mft

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
)

// draft is a tree that has no MLID yet.
type draft struct {
	senders []fabric.PortID // ascending
	ports   []fabric.PortID // the masks, ascending
}

// drafted is the trees of one group, or why there are none.
type drafted struct {
	trees []draft
	err   error
}

// drafter is a scheme that makes trees before MLIDs are given out.
type drafter interface {
	Scheme
	// atLeast is how many MLIDs a group takes at least.
	atLeast(r *lft.Routing, g *Group) int
	// draft makes the trees of all groups. Its own error is ctx's, or says that
	// the scheme was set up wrongly.
	draft(ctx context.Context, r *lft.Routing, groups []Group, opt Options) ([]drafted, error)
}

// build is Build of all drafters.
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
		if err := a.add(i, s.Name(), list[i].trees); err != nil {
			return nil, err
		}
	}
	plan := a.plan()
	if n, ok := s.(noter); ok {
		plan.Notes = n.notes(r, groups)
	}
	return plan, nil
}

// noter is a scheme with something to say about its trees.
type noter interface {
	notes(r *lft.Routing, groups []Group) []string
}

// fresh is how many MLIDs a group takes beyond its own.
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
	masks  []masks
}

type masks struct {
	mlid  fabric.LID
	ports []fabric.PortID
}

func newAssembly(f *fabric.Fabric, groups []Group, ids *IDs) *assembly {
	return &assembly{f: f, groups: groups, ids: ids}
}

// add is for the trees of one group; a group is added once.
func (a *assembly) add(group int, scheme string, list []draft) error {
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
		a.masks = append(a.masks, masks{mlid, list[k].ports})
		a.tree(group, k, scheme, list[k].senders, mlid)
	}
	return nil
}

func (a *assembly) tree(group, k int, scheme string, senders []fabric.PortID, mlid fabric.LID) {
	g := &a.groups[group]
	a.trees = append(a.trees, Tree{
		Group:     group,
		Name:      g.Name,
		MGID:      a.ids.MGID(group, k),
		MLID:      mlid,
		Senders:   senders,
		Receivers: g.Receivers,
		SL:        g.SL,
		Scheme:    scheme,
	})
}

func (a *assembly) plan() *Plan {
	slices.SortStableFunc(a.trees, func(x, y Tree) int { return cmp.Compare(x.MLID, y.MLID) })
	slices.SortFunc(a.masks, func(x, y masks) int { return cmp.Compare(x.mlid, y.mlid) })
	t := NewTables(a.f)
	for _, m := range a.masks {
		t.Add(m.mlid, m.ports)
	}
	return &Plan{Trees: a.trees, Tables: t}
}

// Fit makes trees with the first of schemes, and with the next ones for as many
// groups as must step down so that the MLIDs suffice: those that take the most
// MLIDs first, of equal ones the last. Where the last scheme, which should take
// one MLID for a group, still takes too many, groups share MLIDs: those first
// whose packets then reach the fewest end ports beyond their own receivers,
// which costs nothing where receivers are equal; a host drops what is not for
// its MGIDs. A share of stray copies above opt.MaxStray is not accepted: then the
// groups with the fewest receivers get no MLID and are left to repeated unicast.
// Plan.Notes says what was done.
//
// Errors: those of the first scheme of a group, when it refuses and opt.Yield is not
// set, and those of the last; a *BudgetError,
// when the MLIDs do not suffice and the last scheme takes several for a group.
func Fit(ctx context.Context, r *lft.Routing, groups []Group, opt Options, schemes ...Scheme) (*Plan, error) {
	ids, err := NewIDs(groups, opt)
	if err != nil {
		return nil, err
	}
	if len(schemes) == 0 {
		return nil, errors.New("no multicast scheme")
	}
	b := &budget{
		r:       r,
		groups:  groups,
		opt:     opt,
		schemes: schemes,
		level:   make([]int, len(groups)),
		first:   make([]int, len(groups)),
		list:    make([]drafted, len(groups)),
		refused: make([]refusal, len(schemes)),
		made:    make([]int, len(groups)),
		why:     make([][]string, len(groups)),
		free:    ids.Free(),
	}
	for i := range b.made {
		b.made[i] = -1
		if opt.First != nil {
			b.first[i] = opt.First(i)
			b.level[i] = b.first[i]
		}
	}
	if err := b.fit(ctx); err != nil {
		return nil, err
	}
	a := newAssembly(r.Fabric, groups, ids)
	notes := b.stepNotes()
	var shared *sharing
	if b.total() > b.free {
		if shared, err = b.share(ctx); err != nil {
			return nil, err
		}
		notes = append(notes, shared.notes()...)
	}
	for i := range groups {
		if shared == nil || shared.of[i] == ownMLID {
			if err := a.add(i, schemes[b.level[i]].Name(), b.list[i].trees); err != nil {
				return nil, err
			}
			for k := len(a.trees) - len(b.list[i].trees); k < len(a.trees); k++ {
				a.trees[k].Why = b.why[i]
			}
		}
	}
	if shared != nil {
		if err := shared.add(a, schemes[len(schemes)-1].Name()); err != nil {
			return nil, err
		}
	}
	plan := a.plan()
	plan.Notes = notes
	if shared != nil {
		for i, of := range shared.of {
			if of == noMLID {
				plan.Unserved = append(plan.Unserved, i)
			}
		}
	}
	return plan, nil
}

// budget is the state of Fit.
type budget struct {
	r       *lft.Routing
	groups  []Group
	opt     Options
	schemes []Scheme
	level   []int // by group: index in schemes
	first   []int // by group: the level that it began with
	list    []drafted
	made    []int      // by group: the level that list is of, -1 for none
	why     [][]string // by group: what schemes said that refused it
	free    int
	refused []refusal // by index in schemes, of groups that stepped down for it
	notes   []string  // that schemes had
}

// refusal is how many groups a scheme refused, and why the first.
type refusal struct {
	groups int
	why    error
}

// total is how many MLIDs the trees take beyond the groups' own.
func (b *budget) total() int {
	n := 0
	for i := range b.groups {
		n += fresh(&b.groups[i], len(b.list[i].trees))
	}
	return n
}

// fit makes trees for all groups, and steps down until they fit or no scheme is
// left below.
func (b *budget) fit(ctx context.Context) error {
	count := make([]int, len(b.groups))
	for i := range count {
		count[i] = b.atLeast(i)
	}
	b.step(count)
	for {
		if err := b.draft(ctx); err != nil {
			return err
		}
		for i := range count {
			count[i] = len(b.list[i].trees)
		}
		if b.step(count) {
			continue
		}
		if !slices.Equal(b.made, b.level) {
			continue // refused
		}
		return nil
	}
}

// atLeast is how many MLIDs group i takes at its level, as far as that is known.
func (b *budget) atLeast(i int) int {
	if d, ok := b.schemes[b.level[i]].(drafter); ok {
		return d.atLeast(b.r, &b.groups[i])
	}
	return 1
}

// step moves groups to the next scheme until the count of MLIDs fits, and says
// whether it moved any. count is by group; those of moved groups are what the
// next scheme takes at least.
func (b *budget) step(count []int) bool {
	need := 0
	for i, n := range count {
		need += fresh(&b.groups[i], n)
	}
	moved := false
	for need > b.free {
		var order []int
		for i := range count {
			if b.level[i]+1 < len(b.schemes) && count[i] > 1 {
				order = append(order, i)
			}
		}
		if len(order) == 0 {
			return moved
		}
		slices.SortFunc(order, func(i, j int) int {
			return cmp.Or(cmp.Compare(count[j], count[i]), cmp.Compare(j, i))
		})
		for _, i := range order {
			if need <= b.free {
				break
			}
			b.level[i]++
			moved = true
			n := b.atLeast(i)
			need -= count[i] - n
			count[i] = n
		}
	}
	return moved
}

// draft makes the trees that are missing. A group that a scheme refuses steps down
// once more, unless it is the last one, or its first without Options.Yield.
func (b *budget) draft(ctx context.Context) error {
	for level := range b.schemes {
		var which []int
		for i := range b.groups {
			if b.level[i] == level && b.made[i] != level {
				which = append(which, i)
			}
		}
		if len(which) == 0 {
			continue
		}
		groups := make([]Group, len(which))
		for k, i := range which {
			groups[k] = b.groups[i]
		}
		list, notes, err := draftWith(ctx, b.schemes[level], b.r, groups, b.opt)
		if err != nil {
			return err
		}
		b.notes = append(b.notes, notes...)
		for k, i := range which {
			b.list[i], b.made[i] = list[k], level
			var no *RefusedError
			switch err := list[k].err; {
			case err == nil:
			case level == b.first[i] && !b.opt.Yield || !errors.As(err, &no):
				return err
			case level+1 == len(b.schemes):
				last := *no
				last.Tried = b.why[i]
				return &last
			default:
				b.why[i] = append(b.why[i], no.said())
				if b.refused[level].groups++; b.refused[level].groups == 1 {
					b.refused[level].why = err
				}
				b.level[i]++
			}
		}
	}
	return nil
}

// chunk is how many groups a scheme that gives out MLIDs is asked for at a time.
const chunk = NumMLIDs - 1

// draftWith makes trees with any scheme.
func draftWith(ctx context.Context, s Scheme, r *lft.Routing, groups []Group, opt Options) (list []drafted, notes []string, err error) {
	if d, ok := s.(drafter); ok {
		if list, err = d.draft(ctx, r, groups, opt); err != nil {
			return nil, nil, err
		}
		if n, ok := s.(noter); ok {
			notes = n.notes(r, groups)
		}
		return list, notes, nil
	}
	list = make([]drafted, len(groups))
	for at := 0; at < len(groups); at += chunk {
		part := slices.Clone(groups[at:min(at+chunk, len(groups))])
		for i := range part {
			part[i].MGID, part[i].MLID = MGID{}, 0
		}
		plan, err := s.Build(ctx, r, part, Options{Balance: opt.Balance})
		if err != nil {
			var no *RefusedError
			if !errors.As(err, &no) {
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

// stepping is "1 of 5 groups steps down".
func (b *budget) stepping(n int) string {
	groups := "of " + text.Count(len(b.groups), "group", "groups")
	return text.Count(n, groups+" steps down", groups+" step down")
}

// stepNotes says which groups took which scheme, and why.
func (b *budget) stepNotes() []string {
	below := make([]int, len(b.schemes)) // groups that went past it
	for i, level := range b.level {
		for k := b.first[i]; k < level; k++ {
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
