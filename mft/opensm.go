package mft

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// OpenSM gives each group the tree that OpenSM makes with the hops of its
// minhop engine (osm_mcast_mgr.c), for comparison. It is exact for every
// sender; credit loops are possible.
//
// The root is the switch whose farthest member is nearest. Members on a switch are one
// hop further than the switch, unless its own port 0 is a member too. Among equals the
// first in OpenSM's table of switches wins. The table is sorted by GUIDs as the machine
// reads their big-endian bytes: on little-endian machines, and here, by the last byte
// first.
//
// At each switch from the root on, the tree takes for each member the lowest port on a
// shortest path to the member's switch. Nothing is balanced. A group with one member has
// no tree.
//
// Like OpenSM, it treats senders that are no receivers as members, so they
// get copies.
type OpenSM struct{}

// opensmDepth is the depth of a tree at which OpenSM gives up (ERR 0A21).
const opensmDepth = 64

// Name is "opensm".
func (OpenSM) Name() string { return "opensm" }

// Build takes O(switches x switches with members) for each group.
func (o OpenSM) Build(ctx context.Context, r *lft.Routing, groups []Group, opt Options) (*Plan, error) {
	return build(ctx, o, r, groups, opt)
}

func (OpenSM) atLeast(*lft.Routing, *Group) int { return 1 }

func (o OpenSM) draft(ctx context.Context, r *lft.Routing, groups []Group, _ Options) ([]drafted, error) {
	order := opensmOrder(r.Fabric)
	dist := r.Fabric.Distances()
	return draftEach(ctx, groups, func() func(*Group) ([]draft, error) {
		t := opensmTree{f: r.Fabric, dist: dist, order: order}
		return func(g *Group) ([]draft, error) {
			ports, err := t.growTree(g)
			if err != nil {
				return nil, err
			}
			return []draft{{senders: g.Senders, ports: ports}}, nil
		}
	})
}

// opensmOrder lists the switches in the order of OpenSM's table.
func opensmOrder(f *fabric.Fabric) []fabric.NodeID {
	list := f.Switches()
	slices.SortFunc(list, func(a, b fabric.NodeID) int {
		return cmp.Compare(bits.ReverseBytes64(uint64(f.Node(a).GUID)), bits.ReverseBytes64(uint64(f.Node(b).GUID)))
	})
	return list
}

// opensmTree grows trees.
type opensmTree struct {
	f     *fabric.Fabric
	dist  *fabric.HopMatrix
	order []fabric.NodeID
	ports []fabric.PortID // of the tree
}

// opensmTarget is a switch with members.
type opensmTarget struct {
	s    fabric.NodeID
	hops int32 // hops from the switch to its members: 1 if all are hosts, else 0
}

func (t *opensmTree) growTree(g *Group) ([]fabric.PortID, error) {
	ports, err := Attachments(t.f, OpenSM{}.Name(), g)
	if err != nil || len(ports) < 2 {
		return []fabric.PortID{}, err
	}
	var targets []opensmTarget
	for _, p := range ports {
		s := t.f.Owner(p)
		if n := len(targets); n == 0 || targets[n-1].s != s {
			targets = append(targets, opensmTarget{s, 1})
		}
		if t.f.Num(p) == fabric.ManagementPort {
			targets[len(targets)-1].hops = 0
		}
	}
	root, least := fabric.NoNode, int32(0)
	for _, s := range t.order {
		row := t.dist.To(s)
		most := int32(0)
		for _, x := range targets {
			most = max(most, int32(row[x.s])+x.hops)
		}
		if root == fabric.NoNode || most < least {
			root, least = s, most
		}
	}
	t.ports = ports
	for _, x := range targets {
		if reason := t.join(root, x.s); reason != "" {
			return nil, &RefusedError{Scheme: OpenSM{}.Name(), Group: g.Name, Reason: reason}
		}
	}
	slices.Sort(t.ports)
	return slices.Clone(slices.Compact(t.ports)), nil
}

// join adds the links of a path from the root to a switch. It returns why
// that fails, or "".
func (t *opensmTree) join(root, to fabric.NodeID) string {
	dist := t.dist.To(to)
	if dist[root] == fabric.Unreachable {
		return fmt.Sprintf("no path from switch %s to switch %s", t.f.Name(root), t.f.Name(to))
	}
	if dist[root] >= opensmDepth-1 {
		return fmt.Sprintf("the tree is %d switches deep, and OpenSM gives up at %d", int(dist[root])+1, opensmDepth)
	}
	for s := root; s != to; {
		ports, next := t.f.SwitchLinks(s)
		i := 0
		for dist[next[i]]+1 != dist[s] {
			i++
		}
		t.ports = append(t.ports, ports[i], t.f.Peer(ports[i]))
		s = next[i]
	}
	return ""
}

var _ drafter = OpenSM{}
