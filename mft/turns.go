package mft

import (
	"context"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
)

// UnionTurns gives each sender an MLID, as Union does, but a tree of its own
// that need not follow the sender's unicast paths. A copy goes from one channel
// to the next only if some unicast packet between CAs does. So multicast adds
// no channel dependency: if unicast has no credit loop, both together have
// none.
//
// It is for routings such as repaired meshes, where paths of a sender part and meet again, and
// Union would deliver two copies. Receivers' switches join the tree one by one, by a shortest way;
// if one finds no way, the next attempt begins with it.
type UnionTurns struct{}

// Name is "union-turns".
func (UnionTurns) Name() string { return "union-turns" }

// Build takes O(switches x LIDs) once, and for each sender O(attempts x receivers x
// turns).
func (u UnionTurns) Build(ctx context.Context, r *lft.Routing, groups []Group, opt Options) (*Plan, error) {
	return build(ctx, u, r, groups, opt)
}

func (UnionTurns) atLeast(_ *lft.Routing, g *Group) int { return len(g.Senders) }

func (u UnionTurns) draft(ctx context.Context, r *lft.Routing, groups []Group, _ Options) ([]drafted, error) {
	if r.PathSLs != nil || r.SL2VL != nil && len(r.SL2VL.Maps()) > 1 {
		return draftEach(ctx, groups, func() func(*Group) ([]draft, error) {
			return func(g *Group) ([]draft, error) {
				return nil, &RefusedError{Scheme: u.Name(), Group: g.Name, Reason: "unicast packets change virtual lanes by path or by turn, and a group has one SL"}
			}
		})
	}
	t := newTurnSet(r)
	return draftEach(ctx, groups, func() func(*Group) ([]draft, error) {
		w := &turnTree{turnSet: t, f: r.Fabric, masks: newMaskGraph(r.Fabric), by: make([]fabric.PortID, r.Fabric.NumSwitches()),
			from: make([]fabric.PortID, r.Fabric.NumPorts())}
		return func(g *Group) ([]draft, error) {
			list := make([]draft, len(g.Senders))
			for i, s := range g.Senders {
				ports, reason := w.growTree(g, s)
				if reason == "" {
					w.masks.load(ports)
					reason = w.masks.explainInexact(s, g.Receivers)
				}
				if reason != "" {
					return nil, &RefusedError{Scheme: u.Name(), Group: g.Name, Reason: reason}
				}
				list[i] = draft{senders: g.Senders[i : i+1], ports: ports}
			}
			return list, nil
		}
	})
}

// turnSet is the channel dependencies of unicast packets between CAs.
type turnSet struct {
	words int
	bits  []uint64 // by PortID of a switch: the output ports that packets take at the next switch, as bits
}

func newTurnSet(r *lft.Routing) *turnSet {
	f := r.Fabric
	ports := 0
	for _, s := range f.Switches() {
		ports = max(ports, int(f.Node(s).NumPorts)+1)
	}
	t := &turnSet{words: (ports + 63) / 64}
	t.bits = make([]uint64, int(f.PortBase(fabric.NodeID(f.NumSwitches())))*t.words)
	sources := make([]int64, f.NumSwitches())
	for _, s := range f.CASwitches() {
		if s != fabric.NoNode {
			sources[s]++
		}
	}
	forest := lft.NewForest(f)
	for lid, p := range f.LIDPorts() {
		if p == fabric.NoPort || f.IsSwitch(f.Owner(p)) {
			continue
		}
		forest.FindTree(r.Tables, fabric.LID(lid))
		forest.Flow(sources, func(out fabric.PortID, routes int64) {
			if to := f.Owner(f.Peer(out)); routes > 0 && to != forest.Order[0] {
				n := int(f.Num(forest.Next[to]))
				t.bits[int(out)*t.words+n/64] |= 1 << (n % 64)
			}
		})
	}
	return t
}

// has returns true if some packet that came by channel c goes on by port n.
func (t *turnSet) has(c fabric.PortID, n fabric.PortNum) bool {
	return t.bits[int(c)*t.words+int(n)/64]>>(n%64)&1 != 0
}

// turnTree grows trees. Each worker has one.
type turnTree struct {
	*turnSet
	f     *fabric.Fabric
	masks maskGraph
	nodes []fabric.NodeID // of the tree
	by    []fabric.PortID // by switch: the channel that joined it, NoPort for none
	from  []fabric.PortID // by channel: the one before it in a search; a first channel has itself
	queue []fabric.PortID
}

// attempts bounds the attempts for a tree.
const attempts = 16

// growTree returns the masks of a tree from a sender to the receivers of a group, ascending, or the
// reason why there is none.
func (w *turnTree) growTree(g *Group, sender fabric.PortID) (ports []fabric.PortID, reason string) {
	at := w.f.Attachment(sender)
	if at == fabric.NoPort {
		return nil, fmt.Sprintf("sender %s has no cable to a switch", w.f.PortName(sender))
	}
	var ends []fabric.PortID
	for _, d := range g.Receivers {
		if d == sender {
			continue
		}
		end := w.f.Attachment(d)
		if end == fabric.NoPort {
			return nil, fmt.Sprintf("receiver %s has no cable to a switch", w.f.PortName(d))
		}
		ends = append(ends, end)
	}
	order := slices.Clone(ends)
	for range attempts {
		failed := w.attempt(w.f.Owner(at), order)
		if failed < 0 {
			ports = append(ports, ends...)
			for _, s := range w.nodes[1:] {
				ports = append(ports, w.by[s])
			}
			slices.Sort(ports)
			return slices.Compact(ports), ""
		}
		end := order[failed]
		reason = fmt.Sprintf("the turns that unicast packets make bring no tree from sender %s to switch %s", w.f.PortName(sender), w.f.Name(w.f.Owner(end)))
		order = slices.Insert(slices.Delete(order, failed, failed+1), 0, end)
	}
	return nil, reason
}

// attempt joins the switches of the ports, as order lists them, to the tree. It returns the index
// of the first port without a way, or -1.
func (w *turnTree) attempt(root fabric.NodeID, order []fabric.PortID) (failed int) {
	text.Fill(w.by, fabric.NoPort)
	w.nodes = append(w.nodes[:0], root)
	for i, end := range order {
		if s := w.f.Owner(end); s != root && w.by[s] == fabric.NoPort && !w.join(root, s) {
			return i
		}
	}
	return -1
}

// join adds a shortest way from any switch of the tree to another switch (to). It returns false if
// there is none.
func (w *turnTree) join(root, to fabric.NodeID) bool {
	text.Fill(w.from, fabric.NoPort)
	w.queue = w.queue[:0]
	visit := func(s fabric.NodeID, in fabric.PortID, first bool) {
		channels, heads := w.f.SwitchLinks(s)
		for i, c := range channels {
			h := heads[i]
			if h == root || w.by[h] != fabric.NoPort || w.from[c] != fabric.NoPort || in != fabric.NoPort && !w.has(in, w.f.Num(c)) {
				continue
			}
			if first {
				w.from[c] = c
			} else if w.passes(in, h) {
				continue
			} else {
				w.from[c] = in
			}
			w.queue = append(w.queue, c)
		}
	}
	for _, s := range w.nodes {
		visit(s, w.by[s], true)
	}
	for i := 0; i < len(w.queue); i++ {
		c := w.queue[i]
		h := w.f.Owner(w.f.Peer(c))
		if h != to {
			visit(h, c, false)
			continue
		}
		for ; ; c = w.from[c] {
			s := w.f.Owner(w.f.Peer(c))
			w.by[s] = c
			w.nodes = append(w.nodes, s)
			if w.from[c] == c {
				return true
			}
		}
	}
	return false
}

// passes returns true if the way that ends with channel c comes through switch s.
func (w *turnTree) passes(c fabric.PortID, s fabric.NodeID) bool {
	for ; w.f.Owner(w.f.Peer(c)) != s; c = w.from[c] {
		if w.from[c] == c {
			return false
		}
	}
	return true
}

var _ drafter = UnionTurns{}
