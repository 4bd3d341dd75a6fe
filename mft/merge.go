package mft

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// UnionMerge is Union with as few MLIDs as it finds: senders share an MLID as
// long as the union of their masks is proven exact for each of them.
//
// Masks that are not exact for two senders stay so when more are added, since
// every copy is still made. So a sender that cannot join an MLID never can
// later, and first fit in a fixed order is a proper colouring of the conflicts;
// pairs without conflict need not be without conflict together, so every
// merged mask is proven anew. The order starts from Class, as UnionRow does,
// and once more from single switches; the fewer MLIDs win. So it never takes
// more MLIDs than UnionRow with the same classes.
//
// Proof is quick where the links of a mask form a forest: then no copy can come
// by two ways. Else each sender's packet is followed. A group with n switches
// that have senders takes O(n*n*tree) in the worst case.
//
// No packet crosses more links than with Union: a copy that goes out by a port
// follows some sender's path from there to a receiver, and since the one copy
// that the receiver gets is that on the packet's own path, the port is on that
// path.
type UnionMerge struct {
	// Class is as in UnionRow.
	Class []int32
}

// Name is "union-merge".
func (UnionMerge) Name() string { return "union-merge" }

// Build makes the masks.
func (u UnionMerge) Build(ctx context.Context, r *lft.Routing, groups []Group, opt Options) (*Plan, error) {
	return build(ctx, u, r, groups, opt)
}

func (UnionMerge) atLeast(_ *lft.Routing, g *Group) int { return min(1, len(g.Senders)) }

func (u UnionMerge) draft(ctx context.Context, r *lft.Routing, groups []Group, _ Options) ([]drafted, error) {
	if err := checkClass(u.Class, r.Fabric); err != nil {
		return nil, err
	}
	return draftEach(ctx, groups, func() func(*Group) ([]draft, error) {
		m := newMerger(r, u.Name())
		return func(g *Group) ([]draft, error) {
			items, err := m.items(g)
			if err != nil {
				return nil, err
			}
			best := m.firstFit(items)
			if u.Class != nil {
				if rows := m.firstFit(m.classes(g, items, u.Class)); len(rows) <= len(best) {
					best = rows
				}
			}
			return m.drafts(g, best), nil
		}
	})
}

// item is senders that share masks.
type item struct {
	// from is the port that packets come in by, of one sender for each switch:
	// packets of the others differ in the one host port that they do not go
	// out by.
	from    []fabric.PortID
	senders []fabric.PortID
	ports   []fabric.PortID // the masks, ascending
}

// merger merges items: scratch of one worker.
type merger struct {
	*unicast
	merged []fabric.PortID
}

func newMerger(r *lft.Routing, scheme string) *merger {
	return &merger{unicast: newUnicast(r, scheme)}
}

// items is an item for each switch with senders, by NodeID: all its senders
// have the same paths.
func (m *merger) items(g *Group) ([]item, error) {
	for _, s := range g.Senders {
		if m.f.Attachment(s) == fabric.NoPort {
			return nil, m.refuse(g, fmt.Sprintf("sender %s has no cable to a switch", m.f.PortName(s)))
		}
	}
	senders := slices.Clone(g.Senders)
	bySwitch(m.f, senders)
	var list []item
	for len(senders) > 0 {
		s := m.f.Owner(m.f.Attachment(senders[0]))
		n := 1
		for n < len(senders) && m.f.Owner(m.f.Attachment(senders[n])) == s {
			n++
		}
		ports, err := m.union(g, senders[:n])
		if err != nil {
			return nil, err
		}
		m.masks.load(ports)
		if reason := m.masks.explainInexact(senders[0], g.Receivers); reason != "" {
			return nil, m.refuse(g, reason)
		}
		list = append(list, item{
			from:    []fabric.PortID{m.f.Attachment(senders[0])},
			senders: senders[:n:n],
			ports:   slices.Clone(ports),
		})
		senders = senders[n:]
	}
	return list, nil
}

// classes merges the items of each class, and divides those that are not exact
// by first fit.
func (m *merger) classes(g *Group, items []item, class []int32) []item {
	if class == nil {
		return items
	}
	items = slices.Clone(items)
	of := func(x *item) int32 { return class[m.f.Owner(x.from[0])] }
	slices.SortStableFunc(items, func(a, b item) int { return cmp.Compare(of(&a), of(&b)) })
	var list []item
	for len(items) > 0 {
		n := 1
		for n < len(items) && of(&items[n]) == of(&items[0]) {
			n++
		}
		if whole := m.all(items[:n]); m.exact(&whole) {
			list = append(list, whole)
		} else {
			list = append(list, m.firstFit(items[:n])...)
		}
		items = items[n:]
	}
	return list
}

// all is the union of items.
func (m *merger) all(items []item) item {
	if len(items) == 1 {
		return items[0]
	}
	var x item
	for i := range items {
		x.from = append(x.from, items[i].from...)
		x.senders = append(x.senders, items[i].senders...)
		x.ports = append(x.ports, items[i].ports...)
	}
	slices.Sort(x.ports)
	x.ports = slices.Compact(x.ports)
	return x
}

// firstFit puts each item to the first of the list that takes it.
func (m *merger) firstFit(items []item) []item {
	var list []item
next:
	for i := range items {
		x := &items[i]
		for k := range list {
			m.merged = union(m.merged[:0], list[k].ports, x.ports)
			y := item{from: append(list[k].from, x.from...), ports: m.merged}
			if m.exact(&y) {
				y.senders = append(list[k].senders, x.senders...)
				y.ports = slices.Clone(m.merged)
				list[k] = y
				continue next
			}
		}
		list = append(list, item{from: slices.Clip(x.from), senders: slices.Clip(x.senders), ports: x.ports})
	}
	return list
}

// union merges two ascending lists.
func union(to, a, b []fabric.PortID) []fabric.PortID {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			to = append(to, a[0])
			a = a[1:]
		case b[0] < a[0]:
			to = append(to, b[0])
			b = b[1:]
		default:
			to = append(to, a[0])
			a, b = a[1:], b[1:]
		}
	}
	return append(append(to, a...), b...)
}

// exact says whether the masks of an item, each of whose senders reaches all
// receivers, bring no packet by two ways.
func (m *merger) exact(x *item) bool {
	if len(x.from) == 1 {
		return true
	}
	m.masks.load(x.ports)
	if m.masks.isForest() {
		return true
	}
	for i := len(x.from) - 1; i >= 0; i-- { // who came last fails first
		if twice, _ := m.masks.sendPacket(x.from[i], false); twice >= 0 {
			return false
		}
	}
	return true
}

// drafts is the items as trees, by their first sender.
func (m *merger) drafts(g *Group, items []item) []draft {
	list := make([]draft, len(items))
	for i := range items {
		slices.Sort(items[i].senders)
		list[i] = draft{senders: items[i].senders, ports: items[i].ports}
	}
	slices.SortFunc(list, func(a, b draft) int { return cmp.Compare(a.senders[0], b.senders[0]) })
	return list
}

var _ drafter = UnionMerge{}
