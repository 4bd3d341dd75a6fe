package mft

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// Union is the scheme of Zhou, Liu and Chung (section 3.3.2): each sender of
// a group has an MLID, whose masks are the union of the output ports on its
// unicast paths to the receivers.
//
// The paper's masks have no ports to hosts (E-X6); these have the port of
// every receiver except the sender. The union is over the switches on the
// paths, as in the paper's example: at other switches the masks are empty,
// since the union of all their ports would loop (E-X7).
//
// Union refuses a group if paths of a sender part and meet again, since a
// receiver would get several copies. Paths that form a tree from each sender,
// such as dimension-order paths, never do.
type Union struct{}

// Name is "union".
func (Union) Name() string { return "union" }

// Build takes O(senders x receivers x hops).
func (u Union) Build(ctx context.Context, r *lft.Routing, groups []Group, opt Options) (*Plan, error) {
	return build(ctx, u, r, groups, opt)
}

func (Union) atLeast(_ *lft.Routing, g *Group) int { return len(g.Senders) }

func (u Union) draft(ctx context.Context, r *lft.Routing, groups []Group, _ Options) ([]drafted, error) {
	return draftUnions(ctx, r, u.Name(), groups, func(w *unionMaker, g *Group) (list []item, err error) {
		for i := range g.Senders {
			x, err := w.item(g, g.Senders[i:i+1])
			if err != nil {
				return nil, err
			}
			list = append(list, x)
		}
		return list, nil
	})
}

// UnionRow is Union for classes of senders: those of a class share an MLID,
// whose masks are the union of all their paths. On a mesh with XY routing and
// the rows as classes, packets of each sender still cross only the links of
// its own tree (E-X8), so a group takes at most an MLID for each row with
// senders.
//
// A class whose union is not exact is divided.
type UnionRow struct {
	// Class is the class of senders by NodeID of their switch. Nil makes the
	// senders of each switch a class, which is exact wherever Union is.
	Class []int32
}

// Name is "union-row".
func (UnionRow) Name() string { return "union-row" }

// Build takes O(senders x receivers x hops), and more for classes to divide.
func (u UnionRow) Build(ctx context.Context, r *lft.Routing, groups []Group, opt Options) (*Plan, error) {
	return build(ctx, u, r, groups, opt)
}

// atLeast returns the number of classes.
func (u UnionRow) atLeast(r *lft.Routing, g *Group) int {
	seen := make([]int32, 0, 64)
	for _, s := range g.Senders {
		if at := r.Fabric.Attachment(s); at != fabric.NoPort {
			seen = append(seen, u.classOf(r.Fabric.Owner(at)))
		}
	}
	slices.Sort(seen)
	return len(slices.Compact(seen))
}

// classOf returns the class of the senders on switch s.
func (u UnionRow) classOf(s fabric.NodeID) int32 {
	if int(s) >= len(u.Class) {
		return int32(s)
	}
	return u.Class[s]
}

func (u UnionRow) draft(ctx context.Context, r *lft.Routing, groups []Group, _ Options) ([]drafted, error) {
	if u.Class != nil && len(u.Class) != r.Fabric.NumSwitches() {
		return nil, fmt.Errorf("classes of %d switches, the fabric has %d", len(u.Class), r.Fabric.NumSwitches())
	}
	return draftUnions(ctx, r, u.Name(), groups, func(w *unionMaker, g *Group) (list []item, err error) {
		items, err := w.items(g)
		if err != nil || u.Class == nil {
			return items, err
		}
		of := func(x *item) int32 { return u.classOf(w.f.Owner(x.from[0])) }
		slices.SortStableFunc(items, func(a, b item) int { return cmp.Compare(of(&a), of(&b)) })
		for len(items) > 0 {
			n := 1
			for n < len(items) && of(&items[n]) == of(&items[0]) {
				n++
			}
			list = append(list, w.uniteClass(items[:n])...)
			items = items[n:]
		}
		return list, nil
	})
}

// UnionMerge is Union with as few MLIDs as it finds: senders share an MLID as
// long as the union of their masks is proven exact for each of them.
//
// Masks that are not exact for two senders stay so when more senders are
// added, since every copy is still made. So a sender that cannot join an MLID
// can never join it later, and first fit in a fixed order is a proper
// coloring of the conflicts. Senders without conflict in pairs may conflict
// together, so every merged mask is proven again.
//
// Proof is quick if the links of a mask form a forest: then no two copies
// meet. Otherwise each sender's packet is followed. A group with n switches
// that have senders takes O(n*n*tree) in the worst case.
//
// No packet crosses more links than with Union. A copy that leaves by a port
// follows some sender's path from there to a receiver. The receiver gets only
// one copy, that on the packet's own path, so the port is on that path.
type UnionMerge struct{}

// Name is "union-merge".
func (UnionMerge) Name() string { return "union-merge" }

// Build implements Scheme.
func (u UnionMerge) Build(ctx context.Context, r *lft.Routing, groups []Group, opt Options) (*Plan, error) {
	return build(ctx, u, r, groups, opt)
}

func (UnionMerge) atLeast(_ *lft.Routing, g *Group) int { return min(1, len(g.Senders)) }

func (u UnionMerge) draft(ctx context.Context, r *lft.Routing, groups []Group, _ Options) ([]drafted, error) {
	return draftUnions(ctx, r, u.Name(), groups, func(w *unionMaker, g *Group) ([]item, error) {
		items, err := w.items(g)
		return w.firstFit(items), err
	})
}

var (
	_ drafter = Union{}
	_ drafter = UnionRow{}
	_ drafter = UnionMerge{}
)
