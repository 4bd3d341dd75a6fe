package updown

import (
	"context"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
)

// SPAM is the spam engine: the unicast half of SPAM (Libeskind-Hadas, Mazzoni and
// Rajagopalan, Tree-Based Multicasting in Wormhole-Routed Irregular Topologies, 1998),
// made destination-based. A path goes up any number of links, then down by links outside
// of a spanning tree, then down by links of the tree.
//
// Directions are those of an Order. The parent of a switch is its upward neighbour with
// the lowest rank. The paper's order grows from one root (the Centre if none is given)
// by level, then GUID, so that the tree is breadth-first. With lft.Options.Balanced the
// order is that of ChooseOrder, which has lower loads: neighbours on one level are then
// not ordered by GUID, and a channel may go up to a switch farther from the top. All
// cables between a switch and its parent are tree channels, all others cross channels;
// the paper has no parallel cables.
//
// The paper's router knows by which kind of channel a packet came; a forwarding table
// does not. For a destination switch t there are three kinds of switches:
//
//   - Tree ancestors of t, t among them, go down by tree channels to the next
//     ancestor.
//   - Extended ancestors that are no ancestors, from which t is reached by
//     cross channels down to an ancestor, go down by a cross channel to an
//     extended ancestor.
//   - All others go up.
//
// Only an ancestor sends down by a tree channel, and the next switch is an ancestor,
// too: after a tree channel come only tree channels. A cross channel down leads to an
// extended ancestor, which does not go up. So every path goes up, down cross, down tree,
// wherever it begins, and no packet's history matters. Steps up all lower the rank,
// steps down all raise it, so a path ends; it ends at t, since the switch on top is an
// ancestor of all others. As every path is an up*/down* path of the Order, channel
// dependencies have no cycle, and trees along the Order (SPAMTree) can share the VL.
//
// In a breadth-first tree an ancestor's path is a shortest one. An extended ancestor may
// have a shorter path up and down again. It does not take it, since packets may come to
// it by cross channels.
type SPAM struct{}

// Name is "spam". OpenSM has no such engine.
func (SPAM) Name() string { return "spam" }

// Guarantee is Reachable and NoCreditLoop.
func (SPAM) Guarantee() lft.Guarantee { return lft.Reachable | lft.NoCreditLoop }

// Route takes opt.Order, or that of ChooseOrder with opt.Balanced; else it grows the
// order from opt.Roots or the Centre. It spreads each destination over the ports that
// are equally near it. It takes O(channels) for each destination switch, and the time of
// lft.Balance.
func (e SPAM) Route(ctx context.Context, f *fabric.Fabric, opt lft.Options) (*lft.Routing, error) {
	if len(opt.Roots) == 0 && opt.Order == nil && !opt.Balanced && f.NumSwitches() > 0 {
		opt.Roots = []fabric.NodeID{Centre(f)}
	}
	d, err := chooseDirections(ctx, f, &opt)
	if err != nil {
		return nil, err
	}
	parent := d.findParents()
	return d.route(ctx, e.Name(), f, func() lft.ListNextHops {
		x := newSpamPaths(d, parent)
		sort := lft.NewByDistance(d.near)
		return func(t fabric.NodeID, h *lft.NextHops) error {
			if !x.growTo(d.order.Rank[t]) {
				return errTooLong(e)
			}
			for _, r := range sort.FarthestFirst(x.hops) {
				h.Add(d.order.Switch[r], x.ports(int32(r))...)
			}
			return nil
		}
	})
}

// findParents returns the spanning tree of each connected part: by rank, the lowest rank
// of an upward neighbour, or mft.NoParent for the first switch of a part.
func (d *directions) findParents() []int32 {
	parent := make([]int32, len(d.order.Switch))
	for r := range parent {
		parent[r] = mft.NoParent
		above := d.up.ranksFrom(int32(r))
		for _, u := range above {
			if parent[r] == mft.NoParent || u < parent[r] {
				parent[r] = u
			}
		}
	}
	return parent
}

// spamPaths is the paths to one destination switch. It knows switches by rank, and is
// the scratch memory of a worker.
type spamPaths struct {
	d      *directions
	parent []int32
	hops   []uint8          // by rank: links to the destination, Unreachable for none
	down   []uint8          // by rank: hops of ancestors and extended ones, else Unreachable
	next   []int32          // by rank: of an ancestor the next one down, else mft.NoParent
	some   []fabric.PortNum // memory for the results of ports
}

func newSpamPaths(d *directions, parent []int32) *spamPaths {
	n := len(parent)
	return &spamPaths{d: d, parent: parent, hops: make([]uint8, n), down: make([]uint8, n), next: make([]int32, n)}
}

// growTo sets hops, down and next for the destination with rank t. It returns false if a
// path is longer than 254 links.
func (x *spamPaths) growTo(t int32) bool {
	x.some = x.some[:0]
	for r := range x.down {
		x.down[r], x.next[r] = fabric.Unreachable, mft.NoParent
	}
	x.down[t] = 0
	for v := t; x.parent[v] != mft.NoParent; v = x.parent[v] {
		h := x.down[v] + 1
		if h == fabric.Unreachable {
			return false
		}
		x.down[x.parent[v]], x.next[x.parent[v]] = h, v
	}
	// Downward neighbours have higher ranks, upward ones lower.
	for v := t - 1; v >= 0; v-- {
		if x.down[v] != fabric.Unreachable {
			continue
		}
		least := fabric.Unreachable
		below := x.d.down.ranksFrom(v)
		for _, w := range below {
			if x.parent[w] != v {
				least = min(least, x.down[w])
			}
		}
		if least == fabric.Unreachable {
			continue
		}
		if least+1 == fabric.Unreachable {
			return false
		}
		x.down[v] = least + 1
	}
	copy(x.hops, x.down)
	for v, h := range x.hops {
		if h != fabric.Unreachable {
			continue
		}
		least := fabric.Unreachable
		above := x.d.up.ranksFrom(int32(v))
		for _, u := range above {
			least = min(least, x.hops[u])
		}
		if least == fabric.Unreachable {
			continue // no cables lead to the destination
		}
		if least+1 == fabric.Unreachable {
			return false
		}
		x.hops[v] = least + 1
	}
	return true
}

// ports lists, ascending, the ports that the switch with rank r may use. The list is
// valid until the next growTo.
func (x *spamPaths) ports(r int32) []fabric.PortNum {
	from := len(x.some)
	want := x.hops[r] - 1
	switch {
	case x.next[r] != mft.NoParent:
		to, port := x.d.down.from(r)
		for i, w := range to {
			if w == x.next[r] {
				x.some = append(x.some, port[i])
			}
		}
	case x.down[r] != fabric.Unreachable:
		to, port := x.d.down.from(r)
		for i, w := range to {
			if x.parent[w] != r && x.down[w] == want {
				x.some = append(x.some, port[i])
			}
		}
	default:
		to, port := x.d.up.from(r)
		for i, u := range to {
			if x.hops[u] == want {
				x.some = append(x.some, port[i])
			}
		}
	}
	return x.some[from:len(x.some):len(x.some)]
}

var _ lft.Engine = SPAM{}
