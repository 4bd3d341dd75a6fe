// Package updown computes up*/down* routings: a path goes up any number of
// links, then down any number, never up again (Schroeder et al., Autonet,
// 1991; Gerla et al., section 2, for Myrinet). Channels that go up come before
// those that go down, up channels are ordered by the switch they lead to and
// so are down channels, so no cycle of channel dependencies can exist,
// whatever the fabric. It makes no promise to other modules.
//
// The direction of a link follows from a strict total order of the switches.
// OpenSM's updn (osm_ucast_updn.c) lets several roots share the top rank and
// picks them by the histogram of distances to the end ports; where end ports
// hang off the spines of a fat tree, too, that makes nearly every switch a
// root, and links between equal switches are neither up nor down, or pairs of
// roots cannot be joined. With a strict order every link has a direction, and
// every switch but the first has an upward link, so that every pair has a
// legal path: management traffic between any two switches included.
package updown

import (
	"context"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/lft"
)

// Engine is the updn engine.
type Engine struct{}

// Name is "updn", as in OpenSM.
func (Engine) Name() string { return "updn" }

// Guarantee is Reachable and NoCreditLoop.
func (Engine) Guarantee() lft.Guarantee { return lft.Reachable | lft.NoCreditLoop }

// Route chooses an order with ChooseOrder, or grows it from opt.Roots, and
// spreads each destination over the legal ports that are equally near it.
//
// A forwarding table knows no history: a switch treats what came up to it
// like what came down. So towards each destination some switches only go down,
// to switches that only go down; all others may go up, and no switch above
// sends to them. So every packet keeps to the rule, from whatever source.
//
// A switch goes where the destination is nearer. If that is as near both ways, it
// only goes down if a neighbour above is farther, which may want to send to it; else
// it may go up and down.
func (e Engine) Route(ctx context.Context, f *fabric.Fabric, opt lft.Options) (*lft.Routing, error) {
	if p := opt.Previous; p != nil && p.Order != nil && len(opt.Roots) == 0 {
		return lft.Reroute(ctx, e, f, opt)
	}
	d, err := chooseDirections(ctx, f, &opt)
	if err != nil {
		return nil, err
	}
	return d.route(ctx, e.Name(), f, d.nextHops(e))
}

// NextHops lists the legal ports of an order that are equally near the destination; see Route. Its
// errors name the engine e.
func NextHops(e lft.Engine, f *fabric.Fabric, order *Order) func() lft.ListNextHops {
	return newDirections(f, order).nextHops(e)
}

func (d *directions) nextHops(e lft.Engine) func() lft.ListNextHops {
	return func() lft.ListNextHops {
		tree := newTree(d)
		return func(t fabric.NodeID, h *lft.NextHops) error {
			if !tree.growTo(t) {
				return errTooLong(e)
			}
			last := int32(-1)
			for _, r := range tree.sort.FarthestFirst(tree.hops) {
				if d.kind[r] == last {
					h.AddAlike(d.order.Switch[r])
					continue
				}
				h.Add(d.order.Switch[r], tree.ports(int32(r))...)
				last = d.kind[r]
			}
			return nil
		}
	}
}

// route balances the routes of an engine over its next hops.
func (d *directions) route(ctx context.Context, engine string, f *fabric.Fabric, newList func() lft.ListNextHops) (*lft.Routing, error) {
	tables, err := lft.Balance(ctx, f, newList)
	if err != nil {
		return nil, err
	}
	return &lft.Routing{Engine: engine, Fabric: f, Tables: tables, Order: d.order.Rank}, nil
}

func errTooLong(e lft.Engine) error {
	return &lft.DomainError{Engine: e.Name(), Reason: fmt.Sprintf("a path has more than %d links", fabric.Unreachable-1)}
}

// directions is the switch graph by rank, upward and downward channels apart.
type directions struct {
	order *Order
	up    channels
	down  channels
	near  []fabric.NodeID // all ranks, those together whose upward channels lead to the same switches
	// kind is by rank a number of those in a row in near whose channels have the same ports and lead to
	// the same switches: towards any other one they may use the same ports.
	kind []int32
}

// channels lists for each switch, by rank, its channels in one direction and
// the rank that each leads to.
type channels struct {
	first []int32 // by rank: its part of to and port
	to    []int32
	port  []fabric.PortNum
}

// from gives the channels of the switch with rank r.
func (c *channels) from(r int32) (to []int32, port []fabric.PortNum) {
	return c.ranksFrom(r), c.portsFrom(r)
}

// portsFrom lists the ports of the channels of the switch with rank r.
func (c *channels) portsFrom(r int32) []fabric.PortNum { return c.port[c.first[r]:c.first[r+1]] }

// ranksFrom lists the ranks that the channels of the switch with rank r lead to.
func (c *channels) ranksFrom(r int32) []int32 { return c.to[c.first[r]:c.first[r+1]] }

func newDirections(f *fabric.Fabric, order *Order) *directions {
	n := f.NumSwitches()
	d := &directions{order: order}
	d.up.first = make([]int32, 1, n+1)
	d.down.first = make([]int32, 1, n+1)
	for r, s := range order.Switch {
		ports, to := f.SwitchLinks(s)
		for i, u := range to {
			side := &d.up
			if order.Rank[u] > int32(r) {
				side = &d.down
			}
			side.to = append(side.to, order.Rank[u])
			side.port = append(side.port, f.Num(ports[i]))
		}
		d.up.first = append(d.up.first, int32(len(d.up.to)))
		d.down.first = append(d.down.first, int32(len(d.down.to)))
	}
	_, _, near := graph.Equivalent(n, d.up.ranksFrom)
	d.kind = make([]int32, n)
	last := int32(0)
	for i, r := range near {
		d.near = append(d.near, fabric.NodeID(r))
		if i > 0 && !(d.up.areAlike(r, last) && d.down.areAlike(r, last)) {
			d.kind[r]++
		}
		d.kind[r] += d.kind[last]
		last = r
	}
	return d
}

// areAlike says whether the channels of two ranks have the same ports and lead to the same switches.
func (c *channels) areAlike(r, q int32) bool {
	return slices.Equal(c.portsFrom(r), c.portsFrom(q)) && slices.Equal(c.ranksFrom(r), c.ranksFrom(q))
}

// tree is the paths to one destination switch: scratch of one worker. It
// knows switches by rank only.
type tree struct {
	d     *directions
	hops  []uint8 // by rank: links to the destination, Unreachable for none
	down  []uint8 // by rank: the same for switches that only go down, else Unreachable
	queue []int32
	some  []fabric.PortNum // the lists of ports
	sort  *lft.ByDistance
}

// newTree is for the switches of d.
func newTree(d *directions) *tree {
	n := len(d.order.Switch)
	return &tree{d: d, hops: make([]uint8, n), down: make([]uint8, n), queue: make([]int32, 0, n), sort: lft.NewByDistance(d.near)}
}

// growTo finds hops and down for destination t, the nearest switches first: O(channels). It
// returns false if a path is longer than 254 links.
func (x *tree) growTo(t fabric.NodeID) bool {
	x.some = x.some[:0]
	for i := range x.hops {
		x.hops[i], x.down[i] = fabric.Unreachable, fabric.Unreachable
	}
	r := x.d.order.Rank[t]
	x.hops[r], x.down[r] = 0, 0
	x.queue = append(x.queue[:0], r)
	for from, h := 0, uint8(1); from < len(x.queue); h++ {
		to := len(x.queue)
		for _, v := range x.queue[from:to] {
			if x.down[v] != fabric.Unreachable {
				x.reach(x.d.up.ranksFrom(v), h)
			}
			x.reach(x.d.down.ranksFrom(v), h)
		}
		if from = to; from < len(x.queue) && h == fabric.Unreachable {
			return false
		}
		for _, u := range x.queue[from:] {
			if x.isDown(u) {
				x.down[u] = h
			}
		}
	}
	return true
}

// reach puts those of some ranks into the queue that have no hops yet.
func (x *tree) reach(ranks []int32, h uint8) {
	for _, u := range ranks {
		if x.hops[u] == fabric.Unreachable {
			x.hops[u] = h
			x.queue = append(x.queue, u)
		}
	}
}

// isDown says whether a switch only goes down. All that are as near have hops, and all that are
// nearer have down.
func (x *tree) isDown(u int32) bool {
	h := x.hops[u]
	if !slices.ContainsFunc(x.d.down.ranksFrom(u), func(v int32) bool { return x.down[v] == h-1 }) {
		return false
	}
	above := x.d.up.ranksFrom(u)
	return !slices.ContainsFunc(above, func(v int32) bool { return x.hops[v] == h-1 }) ||
		slices.ContainsFunc(above, func(v int32) bool { return x.hops[v] > h })
}

// ports lists the channels that the switch with rank r may use. The list is
// good until the next growTo.
func (x *tree) ports(r int32) []fabric.PortNum {
	from := len(x.some)
	for _, c := range []*channels{&x.d.up, &x.d.down} {
		to, port := c.from(r)
		for i, v := range to {
			if x.mayStep(r, v) {
				x.some = append(x.some, port[i])
			}
		}
	}
	return x.some[from:len(x.some):len(x.some)]
}

// mayStep says whether packets may go from one rank to another, which are neighbours.
func (x *tree) mayStep(from, to int32) bool {
	if to > from {
		return x.down[to] != fabric.Unreachable && x.down[to]+1 == x.hops[from]
	}
	return x.down[from] == fabric.Unreachable && x.hops[to] != fabric.Unreachable && x.hops[to]+1 == x.hops[from]
}
