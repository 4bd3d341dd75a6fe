package mft

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/lft"
)

// Union is the scheme of Zhou, Liu and Chung (section 3.3.2): an MLID for each
// sender of a group, whose masks are the union of the output ports on the
// sender's unicast paths to the receivers.
//
// The paper's masks have no ports of hosts (E-X6); these have the port of every
// receiver but the sender itself. The union is over the switches of the paths,
// as in the paper's example: at other switches the masks are empty, since the
// union of all their ports would loop (E-X7).
//
// Paths that part and meet again would bring a receiver several copies. On
// dimension-order and other paths that form a tree from each sender that cannot
// be; where it is so the scheme refuses.
type Union struct {
	// Shared puts all senders of a group on one MLID, or refuses: on a mesh
	// with XY routing, two senders that receive as well can share one only in a
	// row, or when the whole group is in one column (E-X8).
	Shared bool
}

// Name is "union".
func (Union) Name() string { return "union" }

// Build takes O(senders x receivers x hops).
func (u Union) Build(ctx context.Context, r *lft.Routing, groups []Group, opt Options) (*Plan, error) {
	return build(ctx, u, r, groups, opt)
}

func (u Union) atLeast(_ *lft.Routing, g *Group) int {
	if u.Shared {
		return min(1, len(g.Senders))
	}
	return len(g.Senders)
}

func (u Union) draft(ctx context.Context, r *lft.Routing, groups []Group, _ Options) ([]drafted, error) {
	if u.Shared {
		return u.draftShared(ctx, r, groups)
	}
	return draftEach(ctx, groups, func() func(*Group) ([]draft, error) {
		w := newUnicast(r, u.Name())
		return func(g *Group) ([]draft, error) {
			list := make([]draft, len(g.Senders))
			for i, s := range g.Senders {
				ports, err := w.union(g, g.Senders[i:i+1])
				if err != nil {
					return nil, err
				}
				w.masks.load(ports)
				if reason := w.masks.explainInexact(s, g.Receivers); reason != "" {
					return nil, w.refuse(g, reason)
				}
				list[i] = draft{senders: g.Senders[i : i+1], ports: slices.Clone(ports)}
			}
			return list, nil
		}
	})
}

// draftShared makes one tree for each group.
func (u Union) draftShared(ctx context.Context, r *lft.Routing, groups []Group) ([]drafted, error) {
	return draftEach(ctx, groups, func() func(*Group) ([]draft, error) {
		m := newMerger(r, u.Name())
		return func(g *Group) ([]draft, error) {
			items, err := m.items(g)
			if err != nil || len(items) == 0 {
				return nil, err
			}
			x := m.all(items)
			m.masks.load(x.ports)
			for _, s := range g.Senders {
				if reason := m.masks.explainInexact(s, g.Receivers); reason != "" {
					err := &RefusedError{Scheme: u.Name(), Group: g.Name, Reason: "its senders cannot share an MLID: " + reason,
						Suggest: []string{UnionMerge{}.Name(), UpdnTree{}.Name()}}
					return nil, err
				}
			}
			return []draft{{senders: g.Senders, ports: x.ports}}, nil
		}
	})
}

// UnionRow is Union for classes of senders: senders of one class share an MLID
// whose masks are the union of all their paths. On a mesh with XY routing and
// the rows as classes every sender's packets still cross the links of its own
// tree and no others (E-X8), so that a group takes an MLID for each row with
// senders at most.
//
// Where the union of a whole class is not exact, the class is divided.
type UnionRow struct {
	// Class is by NodeID of the switch that a sender hangs on. Nil puts the
	// senders of each switch in a class of their own, which is exact wherever
	// Union is.
	Class []int32
}

// Name is "union-row".
func (UnionRow) Name() string { return "union-row" }

// Build takes O(senders x receivers x hops), and more for classes to divide.
func (u UnionRow) Build(ctx context.Context, r *lft.Routing, groups []Group, opt Options) (*Plan, error) {
	return build(ctx, u, r, groups, opt)
}

// atLeast is the number of classes.
func (u UnionRow) atLeast(r *lft.Routing, g *Group) int {
	seen := make([]int32, 0, 64)
	for _, s := range g.Senders {
		if at := r.Fabric.Attachment(s); at != fabric.NoPort {
			seen = append(seen, classOf(u.Class, r.Fabric.Owner(at)))
		}
	}
	slices.Sort(seen)
	return len(slices.Compact(seen))
}

// checkClass says whether there is a class for each switch.
func checkClass(class []int32, f *fabric.Fabric) error {
	if class != nil && len(class) != f.NumSwitches() {
		return fmt.Errorf("classes of %d switches, the fabric has %d", len(class), f.NumSwitches())
	}
	return nil
}

func (u UnionRow) draft(ctx context.Context, r *lft.Routing, groups []Group, _ Options) ([]drafted, error) {
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
			return m.drafts(g, m.classes(g, items, u.Class)), nil
		}
	})
}

// classOf is the class of the senders on switch s.
func classOf(class []int32, s fabric.NodeID) int32 {
	if int(s) >= len(class) {
		return int32(s)
	}
	return class[s]
}

// unicast collects ports along unicast paths: scratch of one worker.
type unicast struct {
	r      *lft.Routing
	f      *fabric.Fabric
	scheme string
	mark   []uint32 // by PortID: now when it is in ports
	now    uint32
	ports  []fabric.PortID
	masks  maskGraph
}

func newUnicast(r *lft.Routing, scheme string) *unicast {
	return &unicast{
		r:      r,
		f:      r.Fabric,
		scheme: scheme,
		mark:   make([]uint32, r.Fabric.NumPorts()),
		masks:  newMaskGraph(r.Fabric),
	}
}

func (w *unicast) refuse(g *Group, reason string) error {
	return &RefusedError{Scheme: w.scheme, Group: g.Name, Reason: reason, Suggest: []string{UpdnTree{}.Name()}}
}

// union is the masks of senders on one switch: the ports on the paths from the
// switch to the receivers, ascending. A sender alone is no receiver of its own
// packets. The list is good until the next call.
func (w *unicast) union(g *Group, senders []fabric.PortID) ([]fabric.PortID, error) {
	if w.now++; w.now == 0 {
		clear(w.mark)
		w.now = 1
	}
	w.ports = w.ports[:0]
	from := w.f.Attachment(senders[0])
	if from == fabric.NoPort {
		return nil, w.refuse(g, fmt.Sprintf("sender %s has no cable to a switch", w.f.PortName(senders[0])))
	}
	for _, d := range g.Receivers {
		if len(senders) == 1 && d == senders[0] {
			continue
		}
		if reason := w.walk(w.f.Owner(from), d); reason != "" {
			return nil, w.refuse(g, fmt.Sprintf("sender %s has no unicast path to receiver %s: %s",
				w.f.PortName(senders[0]), w.f.PortName(d), reason))
		}
	}
	slices.Sort(w.ports)
	return w.ports, nil
}

// walk adds the ports on the path from switch s to end port d, and says why
// there is none.
func (w *unicast) walk(s fabric.NodeID, d fabric.PortID) string {
	end := w.f.Attachment(d)
	if end == fabric.NoPort {
		return "it has no cable to a switch"
	}
	lid := w.f.LID(d)
	if lid == 0 {
		return "it has no LID"
	}
	for range w.f.NumSwitches() {
		row := w.r.Tables.Row(s)
		if int(lid) >= len(row) || row[lid] == fabric.NoPath {
			return fmt.Sprintf("switch %s has no entry for LID %d", w.f.Name(s), lid)
		}
		n := row[lid]
		if n > w.f.Node(s).NumPorts {
			return fmt.Sprintf("the entry for LID %d of switch %s is port %d, which it does not have", lid, w.f.Name(s), n)
		}
		p := w.f.Port(s, n)
		if w.mark[p] != w.now {
			w.mark[p] = w.now
			w.ports = append(w.ports, p)
		}
		if p == end {
			return ""
		}
		q := w.f.Peer(p)
		if q == fabric.NoPort || !w.f.IsSwitch(w.f.Owner(q)) {
			return fmt.Sprintf("the entries for LID %d end at %s", lid, w.f.PortName(p))
		}
		s = w.f.Owner(q)
	}
	return fmt.Sprintf("the entries for LID %d loop through switch %s", lid, w.f.Name(s))
}

// draftEach is for schemes whose trees of a group depend on no other group.
func draftEach(ctx context.Context, groups []Group, worker func() func(*Group) ([]draft, error)) ([]drafted, error) {
	list := make([]drafted, len(groups))
	_, err := par.ForEachWith(ctx, 0, len(groups), worker, func(work func(*Group) ([]draft, error), i int) error {
		list[i].trees, list[i].err = work(&groups[i])
		return nil
	})
	return list, err
}

// bySwitch sorts senders by the switch they hang on; of one switch they stay
// ascending.
func bySwitch(f *fabric.Fabric, senders []fabric.PortID) {
	slices.SortStableFunc(senders, func(a, b fabric.PortID) int {
		return cmp.Compare(f.Owner(f.Attachment(a)), f.Owner(f.Attachment(b)))
	})
}

var (
	_ drafter = Union{}
	_ drafter = UnionRow{}
)
