package mft

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"slices"
	"sync"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/lft"
)

// UpdnTree gives each group one MLID for all its senders. Its tree consists of links from a switch
// up to its parent, which comes before the switch in the up*/down* order of the unicast routing.
//
// A packet climbs from its sender towards the top of the tree, and at each switch copies go
// down all other branches. A copy that came down only goes down. So multicast packets make only
// the turns of up*/down* paths, and multicast and unicast together have no credit loop,
// whatever the groups are. Every switch has at most one parent, so the tree is exact for every
// sender.
//
// The tree has few links. Among equals it is shallow, and with Options.Balance it takes links that
// few trees before it took.
//
// Only switches above all members can be its top; those with the least sum of distances to the
// members are tried. Then the members, in the up*/down* order, join the tree one by one, on a
// shortest upward path. (Takahashi and Matsuyama, An Approximate Solution for the Steiner Problem
// in Graphs, 1980, take the nearest first, much the same in an order by distance.) A mask has only
// ports with receivers behind them.
//
// Without Options.Balance a group's tree depends on no other group.
type UpdnTree struct {
	// Order is by NodeID, 0 on top, like lft.Routing.Order, which is used if
	// Order is nil.
	Order []int32
}

const (
	// tops is how many switches are tried as the top of a tree.
	tops = 4
	// round is the number of trees that grow in parallel. They see the loads
	// that earlier rounds left, so the result does not depend on the number of
	// CPUs.
	round = 16
	// loadUnit is the load of one tree. Jitter below it, by group and link,
	// decides between equal loads, so that not all trees of one round take the
	// same link.
	loadUnit = 64
)

// Name is "updn-tree".
func (UpdnTree) Name() string { return "updn-tree" }

// Build takes O(switches x channels) once, and for each group O(members x
// switches above all of them + members x channels above each).
func (u UpdnTree) Build(ctx context.Context, r *lft.Routing, groups []Group, opt Options) (*Plan, error) {
	return build(ctx, u, r, groups, opt)
}

func (UpdnTree) atLeast(*lft.Routing, *Group) int { return 1 }

func (u UpdnTree) draft(ctx context.Context, r *lft.Routing, groups []Group, opt Options) ([]drafted, error) {
	rank := u.Order
	if rank == nil {
		rank = r.Order
	}
	if rank == nil {
		list := make([]drafted, len(groups))
		for i := range groups {
			list[i].err = &RefusedError{Scheme: u.Name(), Group: groups[i].Name, Reason: "routing " + r.Engine + " has no up*/down* order",
				Suggest: []string{UnionMerge{}.Name()}}
		}
		return list, nil
	}
	h, err := newHeights(ctx, r.Fabric, rank)
	if err != nil {
		return nil, err
	}
	list := make([]drafted, len(groups))
	n := len(groups) // of a round
	if opt.Balance {
		n = round
	}
	growers := sync.Pool{New: func() any { return newTreeGrower(h, opt.Balance) }}
	for at := 0; at < len(groups); at += n {
		n = min(n, len(groups)-at)
		err := par.ForEach(ctx, 0, n, func(i int) error {
			t := growers.Get().(*treeGrower)
			list[at+i].trees, list[at+i].err = t.tree(&groups[at+i], uint32(at+i))
			growers.Put(t)
			return nil
		})
		if err != nil {
			return nil, err
		}
		for i := at; opt.Balance && i < at+n; i++ {
			for k := range list[i].trees {
				h.count(list[i].trees[k].ports)
			}
		}
	}
	return list, nil
}

// heights has the upward channels of an order, and which switches are above
// which. It knows switches by rank.
type heights struct {
	f     *fabric.Fabric
	n     int
	rank  []int32         // by NodeID
	at    []fabric.NodeID // by rank
	first []int32         // by rank: where its part of up and port begins
	up    []int32         // the ranks that upward channels lead to
	port  []fabric.PortID
	words int
	above []uint64 // by rank: a bit for each rank that is above it, and for itself
	hops  []uint8  // by rank on top, then by rank below: fewest upward links, or Unreachable
	load  []uint32 // by PortID of a link's lower end: trees on it, in loadUnit
}

// newHeights computes heights in O(switches x upward channels) / 64 word operations. Errors are
// those of lft.SwitchesByRank.
func newHeights(ctx context.Context, f *fabric.Fabric, rank []int32) (*heights, error) {
	at, err := lft.SwitchesByRank(f, rank)
	if err != nil {
		return nil, err
	}
	n := len(at)
	h := &heights{
		f:     f,
		n:     n,
		rank:  rank,
		at:    at,
		first: make([]int32, 1, n+1),
		words: (n + 63) / 64,
		hops:  make([]uint8, n*n),
		load:  make([]uint32, f.NumPorts()),
	}
	h.above = make([]uint64, n*h.words)
	for r, s := range h.at {
		ports, to := f.SwitchLinks(s)
		mine := h.above[r*h.words : (r+1)*h.words]
		mine[r/64] |= 1 << (r % 64)
		for i, t := range to {
			if u := rank[t]; u < int32(r) {
				h.up = append(h.up, u)
				h.port = append(h.port, ports[i])
				for k, w := range h.above[int(u)*h.words : (int(u)+1)*h.words] {
					mine[k] |= w
				}
			}
		}
		h.first = append(h.first, int32(len(h.up)))
	}
	// By rank: a switch is one link further from t than the nearest of its upper
	// neighbors.
	err = par.ForEach(ctx, 0, n, func(t int) error {
		row := h.hops[t*n : (t+1)*n]
		for r := range row[:t] {
			row[r] = fabric.Unreachable
		}
		row[t] = 0
		for r := t + 1; r < n; r++ {
			least := fabric.Unreachable
			for _, u := range h.up[h.first[r]:h.first[r+1]] {
				least = min(least, row[u])
			}
			if least < fabric.MaxHops {
				least++
			}
			row[r] = least
		}
		return nil
	})
	return h, err
}

// count adds a tree to the loads.
func (h *heights) count(ports []fabric.PortID) {
	for i, p := range ports {
		q := h.f.Peer(p)
		if q == fabric.NoPort || !h.f.IsSwitch(h.f.Owner(q)) {
			continue
		}
		if _, both := slices.BinarySearch(ports[:i], q); both {
			continue // counted at q
		}
		if h.rank[h.f.Owner(p)] > h.rank[h.f.Owner(q)] {
			h.load[p] += loadUnit
		} else {
			h.load[q] += loadUnit
		}
	}
}

// treeGrower grows trees. Each worker has one.
type treeGrower struct {
	h       *heights
	balance bool

	members  []int32 // ranks of the switches with members, ascending, each once
	isMember []bool  // by rank
	common   []uint64
	tops     []top

	grown, best treeShape

	inTree []bool  // by rank
	deep   []int32 // by rank: links to the top

	seen  []bool // by rank, in the search
	cost  []uint64
	via   []int32 // by rank: index in up of the channel from the switch below it
	from  []int32 // by rank: the switch below it
	queue []int32

	below []int32 // by rank: receivers in the subtree
	ports []fabric.PortID
}

// top is a switch that may become the top of a tree.
type top struct {
	rank int32
	sum  int32  // of the links down to the members
	turn uint32 // breaks ties: the least is best
}

// treeShape is a tree: each switch except the top, with the channel to its parent.
type treeShape struct {
	nodes []int32 // ranks, parents before their children, the top first
	via   []int32 // by node: index in up; -1 for the top
	depth int32
	load  uint64
}

func newTreeGrower(h *heights, balance bool) *treeGrower {
	return &treeGrower{
		h:        h,
		balance:  balance,
		isMember: make([]bool, h.n),
		common:   make([]uint64, h.words),
		inTree:   make([]bool, h.n),
		deep:     make([]int32, h.n),
		seen:     make([]bool, h.n),
		cost:     make([]uint64, h.n),
		via:      make([]int32, h.n),
		from:     make([]int32, h.n),
		below:    make([]int32, h.n),
	}
}

// tree returns the only tree of group i.
func (t *treeGrower) tree(g *Group, i uint32) ([]draft, error) {
	if err := t.collect(g); err != nil {
		return nil, err
	}
	ports := []fabric.PortID{}
	if len(t.members) > 0 {
		if err := t.chooseTops(g, i); err != nil {
			return nil, err
		}
		for k, c := range t.tops {
			t.growTree(c.rank, i)
			if k == 0 || t.grown.compare(&t.best) < 0 {
				t.grown, t.best = t.best, t.grown
			}
		}
		ports = slices.Clone(t.masks(g))
	}
	return []draft{{senders: g.Senders, ports: ports}}, nil
}

// collect lists the switches with members, by rank.
func (t *treeGrower) collect(g *Group) error {
	for _, r := range t.members {
		t.isMember[r] = false
	}
	t.members = t.members[:0]
	ports, err := Attachments(t.h.f, UpdnTree{}.Name(), g)
	for _, p := range ports {
		if r := t.h.rank[t.h.f.Owner(p)]; !t.isMember[r] {
			t.isMember[r] = true
			t.members = append(t.members, r)
		}
	}
	slices.Sort(t.members)
	return err
}

// Attachments lists the switch ports to which the members of a group are
// cabled, ascending. Its error is a *RefusedError.
func Attachments(f *fabric.Fabric, scheme string, g *Group) ([]fabric.PortID, error) {
	var ports []fabric.PortID
	for _, p := range slices.Concat(g.Receivers, g.Senders) {
		at := f.Attachment(p)
		if at == fabric.NoPort {
			return nil, &RefusedError{Scheme: scheme, Group: g.Name, Reason: fmt.Sprintf("member %s has no cable to a switch", f.PortName(p))}
		}
		ports = append(ports, at)
	}
	slices.Sort(ports)
	return slices.Compact(ports), nil
}

// chooseTops puts into t.tops the switches that are above all members and
// have the least sums of links to them.
func (t *treeGrower) chooseTops(g *Group, group uint32) error {
	h := t.h
	for i, m := range t.members {
		above := h.above[int(m)*h.words : (int(m)+1)*h.words]
		if i == 0 {
			copy(t.common, above)
			continue
		}
		some := uint64(0)
		for k := range t.common {
			t.common[k] &= above[k]
			some |= t.common[k]
		}
		if some == 0 {
			return &RefusedError{Scheme: UpdnTree{}.Name(), Group: g.Name,
				Reason: fmt.Sprintf("no switch is above all of its members' switches, from %s to %s, in the up*/down* order",
					h.f.Name(h.at[t.members[0]]), h.f.Name(h.at[m]))}
		}
	}
	t.tops = t.tops[:0]
	for k, w := range t.common {
		for ; w != 0; w &= w - 1 {
			r := k*64 + bits.TrailingZeros64(w)
			row := h.hops[r*h.n : (r+1)*h.n]
			c := top{rank: int32(r)}
			for _, m := range t.members {
				c.sum += int32(row[m])
			}
			if t.balance {
				c.turn = jitter(group, uint32(r))
			}
			t.offer(c)
		}
	}
	return nil
}

// offer puts c into t.tops if it is among the best.
func (t *treeGrower) offer(c top) {
	i, _ := slices.BinarySearchFunc(t.tops, c, func(a, b top) int {
		return cmp.Or(cmp.Compare(a.sum, b.sum), cmp.Compare(a.turn, b.turn), cmp.Compare(a.rank, b.rank))
	})
	if i == tops {
		return
	}
	if len(t.tops) == tops {
		t.tops = t.tops[:tops-1]
	}
	t.tops = slices.Insert(t.tops, i, c)
}

// jitter returns a number below loadUnit that differs by group.
func jitter(group, what uint32) uint32 {
	x := group*0x9e3779b1 ^ what*0x85ebca6b
	x ^= x >> 15
	x *= 0xc2b2ae35
	return (x >> 13) % loadUnit
}

// growTree grows a tree below a top into t.grown.
func (t *treeGrower) growTree(top int32, group uint32) {
	clear(t.inTree)
	h := t.h
	row := h.hops[int(top)*h.n : (int(top)+1)*h.n]
	x := &t.grown
	*x = treeShape{nodes: append(x.nodes[:0], top), via: append(x.via[:0], -1)}
	t.inTree[top] = true
	t.deep[top] = 0
	for _, m := range t.members {
		if !t.inTree[m] {
			x.load += t.join(m, row, group)
		}
	}
	// A top that is no member and has only one branch is dropped.
	drop := 0
	for !t.isMember[x.nodes[drop]] && drop+1 < len(x.nodes) && t.onlyChild(drop) {
		drop++
	}
	for _, r := range x.nodes[drop:] {
		x.depth = max(x.depth, t.deep[r]-int32(drop))
	}
	x.nodes = slices.Delete(x.nodes, 0, drop)
	x.via = slices.Delete(x.via, 0, drop)
	x.via[0] = -1
}

// onlyChild returns true if node i, the top, has only one child, the node
// after it.
func (t *treeGrower) onlyChild(i int) bool {
	x := &t.grown
	for k, via := range x.via {
		if k > i+1 && t.h.up[via] == x.nodes[i] {
			return false
		}
	}
	return true
}

// join connects member m to the tree by a shortest upward path: of several,
// to the node nearest to the top, then with the least load. row is the top's
// row of hops. It returns the path's load.
func (t *treeGrower) join(m int32, row []uint8, group uint32) uint64 {
	for _, v := range t.queue {
		t.seen[v] = false
	}
	h := t.h
	t.seen[m] = true
	t.cost[m] = 0
	t.queue = append(t.queue[:0], m)
	hit, hitVia, hitFrom := int32(-1), int32(0), int32(0)
	var hitCost uint64
	for start := 0; hit < 0; {
		end := len(t.queue)
		for _, v := range t.queue[start:end] {
			for e := h.first[v]; e < h.first[v+1]; e++ {
				u := h.up[e]
				if row[u] == fabric.Unreachable {
					continue
				}
				cost := t.cost[v]
				if t.balance {
					cost += uint64(h.load[h.port[e]] + jitter(group, uint32(e)))
				}
				switch {
				case t.inTree[u]:
					if hit < 0 || cmp.Or(cmp.Compare(t.deep[u], t.deep[hit]), cmp.Compare(cost, hitCost)) < 0 {
						hit, hitVia, hitFrom, hitCost = u, e, v, cost
					}
				case !t.seen[u]:
					t.seen[u] = true
					t.queue = append(t.queue, u)
					t.cost[u], t.via[u], t.from[u] = cost, e, v
				}
			}
		}
		start = end
	}
	x := &t.grown
	for u, e, v := hit, hitVia, hitFrom; ; {
		t.inTree[v] = true
		t.deep[v] = t.deep[u] + 1
		x.nodes = append(x.nodes, v)
		x.via = append(x.via, e)
		if v == m {
			return hitCost
		}
		u, e, v = v, t.via[v], t.from[v]
	}
}

// compare is negative if x is better than y: fewer links, then less depth,
// then less load.
func (x *treeShape) compare(y *treeShape) int {
	return cmp.Or(cmp.Compare(len(x.nodes), len(y.nodes)), cmp.Compare(x.depth, y.depth), cmp.Compare(x.load, y.load))
}

// masks lists the switch ports of the best tree that have receivers behind
// them, ascending.
func (t *treeGrower) masks(g *Group) []fabric.PortID {
	h, x := t.h, &t.best
	for _, r := range x.nodes {
		t.below[r] = 0
	}
	t.ports = t.ports[:0]
	for _, p := range g.Receivers {
		at := h.f.Attachment(p)
		t.ports = append(t.ports, at)
		t.below[h.rank[h.f.Owner(at)]]++
	}
	all := int32(len(g.Receivers))
	for i := len(x.nodes) - 1; i > 0; i-- {
		e := x.via[i]
		n := t.below[x.nodes[i]]
		t.below[h.up[e]] += n
		if n < all {
			t.ports = append(t.ports, h.port[e])
		}
		if n > 0 {
			t.ports = append(t.ports, h.f.Peer(h.port[e]))
		}
	}
	slices.Sort(t.ports)
	return t.ports
}

var _ drafter = UpdnTree{}
