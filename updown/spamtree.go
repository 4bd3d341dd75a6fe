package updown

import (
	"context"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
)

// SPAMTree gives each group one MLID, for all its senders: the part of SPAM's
// spanning tree that joins its members. The tree follows from the order in
// lft.Routing.Order (see SPAM), which routings of updn have, too.
//
// In the paper a packet goes to the least common ancestor of its receivers by
// any allowed path and only then down the tree. On InfiniBand a mask is for all
// arrival ports, so a packet keeps to the tree from its sender on: at each
// switch it climbs further as long as there are receivers elsewhere, and goes
// down to those below, never above the least common ancestor of all members. A
// mask has a port only when there are receivers behind it. A part of a tree has
// one path between any two switches, so that every sender reaches every
// receiver once, and no other port.
//
// Copies go up, then down, by the order of the routing: with its unicast paths
// they make no cycle of channel dependencies on one VL.
//
// Where several cables join a switch to its parent, a group uses the one with
// the lowest port number of the switch; with Options.Balance groups take turns.
type SPAMTree struct{}

// Name is "spam".
func (SPAMTree) Name() string { return "spam" }

// Build takes O(channels) once, and for each group O(members x depth of the
// tree), and a sort of its switches.
func (s SPAMTree) Build(ctx context.Context, r *lft.Routing, groups []mft.Group, opt mft.Options) (*mft.Plan, error) {
	named, err := mft.AssignIDs(groups, opt)
	if err != nil {
		return nil, err
	}
	if r.Order == nil && len(groups) > 0 {
		return nil, &mft.RefusedError{Scheme: s.Name(), Group: groups[0].Name, Reason: "routing " + r.Engine + " has no up*/down* order",
			Suggest: []string{mft.UnionMerge{}.Name()}}
	}
	if len(groups) == 0 {
		return mft.NewPlan(r.Fabric, s.Name(), nil, nil), nil
	}
	order, err := OrderOf(r)
	if err != nil {
		return nil, err
	}
	x := newSpamSubtree(r.Fabric, order)
	masks := make([][]fabric.PortID, len(groups))
	for i := range named {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		g := &named[i]
		cable := 0
		if opt.Balance {
			cable = i
		}
		if masks[i], err = x.masks(g, cable); err != nil {
			return nil, err
		}
	}
	return mft.NewPlan(r.Fabric, s.Name(), named, masks), nil
}

// spamSubtree finds the parts of the spanning tree that join groups. It knows
// switches by rank.
type spamSubtree struct {
	f         *fabric.Fabric
	order     *Order
	d         *directions
	parent    []int32
	members   []int32 // by rank: of the group in the switch's subtree
	receivers []int32 // likewise
	touched   []int32 // ranks of switches with members in their subtrees
	seen      []bool  // by rank: in touched
}

func newSpamSubtree(f *fabric.Fabric, order *Order) *spamSubtree {
	n := len(order.Switch)
	d := newDirections(f, order)
	return &spamSubtree{f: f, order: order, d: d, parent: d.findParents(), members: make([]int32, n), receivers: make([]int32, n), seen: make([]bool, n)}
}

// masks is the ports in the masks of g, ascending; cable says which of several
// cables to a parent it uses, modulo their number.
func (x *spamSubtree) masks(g *mft.Group, cable int) ([]fabric.PortID, error) {
	for _, r := range x.touched {
		x.members[r], x.receivers[r], x.seen[r] = 0, 0, false
	}
	x.touched = x.touched[:0]
	ports := make([]fabric.PortID, 0, len(g.Receivers))
	for _, p := range g.Receivers {
		at, err := x.addMember(g, p)
		if err != nil {
			return nil, err
		}
		x.receivers[x.order.Rank[x.f.Owner(at)]]++
		ports = append(ports, at)
	}
	for _, p := range g.Senders {
		if _, err := x.addMember(g, p); err != nil {
			return nil, err
		}
	}
	for i := 0; i < len(x.touched); i++ {
		if u := x.parent[x.touched[i]]; u != noParent {
			x.touch(u)
		}
	}
	slices.Sort(x.touched)
	all, wanted := int32(len(g.Receivers)+len(g.Senders)), int32(len(g.Receivers))
	for i := len(x.touched) - 1; i >= 0; i-- { // children before their parents
		v := x.touched[i]
		if x.members[v] == all {
			break // the least common ancestor; what comes now is above it
		}
		u := x.parent[v]
		if u == noParent {
			return nil, &mft.RefusedError{Scheme: SPAMTree{}.Name(), Group: g.Name,
				Reason: fmt.Sprintf("no cables join %s, which is above some of its members, to the others", x.f.Name(x.order.Switch[v]))}
		}
		x.members[u] += x.members[v]
		x.receivers[u] += x.receivers[v]
		up := x.f.Port(x.order.Switch[v], x.parentPort(v, cable))
		if x.receivers[v] < wanted {
			ports = append(ports, up)
		}
		if x.receivers[v] > 0 {
			ports = append(ports, x.f.Peer(up))
		}
	}
	slices.Sort(ports)
	return ports, nil
}

// addMember counts member p at its switch, and returns the switch's port to it.
func (x *spamSubtree) addMember(g *mft.Group, p fabric.PortID) (fabric.PortID, error) {
	at := x.f.Attachment(p)
	if at == fabric.NoPort {
		return 0, &mft.RefusedError{Scheme: SPAMTree{}.Name(), Group: g.Name, Reason: fmt.Sprintf("member %s has no cable to a switch", x.f.PortName(p))}
	}
	r := x.order.Rank[x.f.Owner(at)]
	x.touch(r)
	x.members[r]++
	return at, nil
}

func (x *spamSubtree) touch(r int32) {
	if !x.seen[r] {
		x.seen[r] = true
		x.touched = append(x.touched, r)
	}
}

// parentPort is the port of the switch with rank v to its parent; turn chooses among
// several.
func (x *spamSubtree) parentPort(v int32, turn int) fabric.PortNum {
	to, port := x.d.up.from(v)
	n := 0
	for _, u := range to {
		if u == x.parent[v] {
			n++
		}
	}
	turn %= n
	for i, u := range to {
		if u == x.parent[v] {
			if turn == 0 {
				return port[i]
			}
			turn--
		}
	}
	panic("updown: a switch without a cable to its parent")
}

var _ mft.Scheme = SPAMTree{}
