// Package updown computes up*/down* routings: a path goes up any number of links, then
// down any number, and never up again (Schroeder et al., Autonet, 1991; Gerla et al.,
// section 2, for Myrinet). A path uses channels that go up before those that go down,
// and both kinds in the order of the switches they lead to. So on any fabric there is
// no cycle of channel dependencies. It makes no promise to other modules.
//
// The direction of a link follows from a strict total order of the switches. OpenSM's
// updn (osm_ucast_updn.c) lets several roots share the top rank, and picks them by the
// histogram of distances to the end ports. If end ports are on the spines of a fat
// tree, too, nearly every switch becomes a root, and links between roots are neither up
// nor down, or pairs of roots cannot be joined. With a strict order every link has a
// direction, and every switch but the first has an upward link, so that every pair has
// a legal path, also for management traffic between any two switches.
package updown

import (
	"context"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
)

// Engine is the updn engine.
type Engine struct{}

// Name is "updn", as in OpenSM.
func (Engine) Name() string { return "updn" }

// Guarantee is Reachable and NoCreditLoop.
func (Engine) Guarantee() lft.Guarantee { return lft.Reachable | lft.NoCreditLoop }

// Route chooses an order with ChooseOrder, or grows it from opt.Roots. It spreads each
// destination over the legal ports that are equally near it.
//
// A forwarding table has no history: a switch treats packets alike, whether they came
// up or down to it. So towards each destination some switches only go down, to switches
// that only go down; all others may go up, and no switch above sends to them. So
// packets from all sources keep to the rule.
//
// A switch goes up or down, whichever is nearer to the destination. If both are as
// near, it only goes down if a neighbour above is farther, which may want to send to
// it; else it may go up and down.
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

// NextHops returns lists of the legal ports of an order that are equally near the
// destination; see Route. Its errors name engine e.
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
			for list := tree.sort.FarthestFirst(tree.hops); len(list) > 0; {
				first, n := int32(list[0]), tree.countAlike(list)
				for i, r := range list[:n] {
					list[i] = d.order.Switch[r]
				}
				h.Add(list[0], tree.ports(first)...)
				h.AddAlike(list[1:n]...)
				list = list[n:]
			}
			return nil
		}
	}
}

// route makes balanced tables from next hops.
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

// directions is the switch graph by rank, with upward and downward channels apart.
type directions struct {
	order *Order
	up    channels
	down  channels
	near  []fabric.NodeID // all ranks, sorted by class of upward channels
}

// channels lists, by rank, the channels of each switch in one direction, and the ranks
// that they lead to.
//
// Switches whose channels lead to the same switches, one by one, form a class: a
// destination that is a channel away for one is so for all, and a tree looks at one of
// each class. The 1,296 lower switches of a fat tree of radix 36 have little more than
// 54 classes.
type channels struct {
	first   []int32 // by rank: where its part of to and port begins
	to      []int32
	port    []fabric.PortNum
	class   []int32 // by rank, from 0
	classes int
	// kind is by rank: switches in a row in directions.near have the same kind if they
	// have the same class and ports.
	kind []int32
}

// from returns the ranks that the channels of the switch with rank r lead to, and their
// ports.
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
	var near []int32
	d.up.class, d.up.classes, near = graph.Equivalent(n, d.up.ranksFrom)
	d.down.class, d.down.classes, _ = graph.Equivalent(n, d.down.ranksFrom)
	d.near = text.Each(near, func(r int32) fabric.NodeID { return fabric.NodeID(r) })
	d.up.findKinds(near)
	d.down.findKinds(near)
	return d
}

// findKinds sets kind.
func (c *channels) findKinds(near []int32) {
	c.kind = make([]int32, len(near))
	for i, r := range near[min(1, len(near)):] {
		last := near[i]
		c.kind[r] = c.kind[last]
		if c.class[r] != c.class[last] || !slices.Equal(c.portsFrom(r), c.portsFrom(last)) {
			c.kind[r]++
		}
	}
}

// tree is the paths to one destination switch. It knows switches by rank, and is the
// scratch memory of a worker.
type tree struct {
	d        *directions
	hops     []uint8 // by rank: links to the destination, Unreachable for none
	down     []uint8 // by rank: hops of switches that only go down, else Unreachable
	mixed    bool    // other switches may go down, too
	queue    []int32
	climb    []uint8          // by class of upward channels: hops of switches that go up, 0 if unknown
	upward   []choice         // by class of upward channels
	downward []choice         // by class of downward channels
	index    []int32          // memory for choices
	some     []fabric.PortNum // memory for lists of some ports
	sort     *lft.ByDistance
}

// choice holds the channels of a class, in one direction, that lead to the destination.
type choice struct {
	known bool
	// The tree's index[from:to] has their places in a switch's list; from == to means
	// all.
	from, to int32
}

// newTree makes a tree for the switches of d.
func newTree(d *directions) *tree {
	n := len(d.order.Switch)
	return &tree{
		d:        d,
		hops:     make([]uint8, n),
		down:     make([]uint8, n),
		queue:    make([]int32, 0, n),
		climb:    make([]uint8, d.up.classes),
		upward:   make([]choice, d.up.classes),
		downward: make([]choice, d.down.classes),
		sort:     lft.NewByDistance(d.near),
	}
}

// growTo finds hops and down for destination t in O(channels). It returns false if a
// path is longer than 254 links.
func (x *tree) growTo(t fabric.NodeID) bool {
	x.some, x.index = x.some[:0], x.index[:0]
	clear(x.climb)
	clear(x.upward)
	clear(x.downward)
	r := x.d.order.Rank[t]
	if !x.growDown(r) {
		return false
	}
	if x.mixed {
		return x.growByHops(r)
	}
	// Upward neighbours have lower ranks: one pass from the top.
	copy(x.hops, x.down)
	for u, h := range x.hops {
		if h != fabric.Unreachable {
			continue
		}
		climb := &x.climb[x.d.up.class[u]]
		if *climb == 0 {
			least := fabric.Unreachable
			above := x.d.up.ranksFrom(int32(u))
			for _, v := range above {
				least = min(least, x.hops[v])
			}
			switch least {
			case fabric.Unreachable:
			case fabric.Unreachable - 1:
				return false
			default:
				least++
			}
			*climb = least
		}
		x.hops[u] = *climb
	}
	return true
}

// growDown finds down as if all switches that can go down did. It sets mixed if such a
// switch is farther than one above it. It returns false if a path is longer than 254
// links.
func (x *tree) growDown(t int32) bool {
	text.Fill(x.down, fabric.Unreachable)
	x.mixed = false
	x.down[t] = 0
	x.queue = append(x.queue[:0], t)
	for i := 0; i < len(x.queue); i++ {
		v := x.queue[i]
		h := x.down[v] + 1
		above := x.d.up.ranksFrom(v)
		for _, u := range above {
			switch {
			case x.down[u] < x.down[v]:
				x.mixed = true
			case x.down[u] == fabric.Unreachable:
				if h == fabric.Unreachable {
					return false
				}
				x.down[u] = h
				x.queue = append(x.queue, u)
			}
		}
	}
	return true
}

// growByHops is growTo for the destination with rank t by the rule of IncrementalEngine
// itself, the nearest switches first.
func (x *tree) growByHops(t int32) bool {
	for i := range x.hops {
		x.hops[i], x.down[i] = fabric.Unreachable, fabric.Unreachable
	}
	x.hops[t], x.down[t] = 0, 0
	x.queue = append(x.queue[:0], t)
	for from, h := 0, uint8(1); from < len(x.queue); h++ {
		to := len(x.queue)
		reach := func(ranks []int32) {
			for _, u := range ranks {
				if x.hops[u] == fabric.Unreachable {
					x.hops[u] = h
					x.queue = append(x.queue, u)
				}
			}
		}
		for _, v := range x.queue[from:to] {
			if x.down[v] != fabric.Unreachable {
				reach(x.d.up.ranksFrom(v))
			}
			reach(x.d.down.ranksFrom(v))
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

// isDown returns true if a switch only goes down. It needs hops of all switches as
// near, and down of all nearer ones.
func (x *tree) isDown(u int32) bool {
	h := x.hops[u]
	if !slices.ContainsFunc(x.d.down.ranksFrom(u), func(v int32) bool { return x.down[v] == h-1 }) {
		return false
	}
	above := x.d.up.ranksFrom(u)
	return !slices.ContainsFunc(above, func(v int32) bool { return x.hops[v] == h-1 }) ||
		slices.ContainsFunc(above, func(v int32) bool { return x.hops[v] > h })
}

// side returns, for the direction in which the switch with rank r may go, its
// channels; what is known of its class's choice among them; and hops, by rank:
// a channel is allowed if it leads to one hop less. All but the destination
// share these with the switches of their class that go in the same direction.
func (x *tree) side(r int32) (c *channels, known *choice, hops []uint8) {
	if x.down[r] == fabric.Unreachable {
		c = &x.d.up
		return c, &x.upward[c.class[r]], x.hops
	}
	c = &x.d.down
	return c, &x.downward[c.class[r]], x.down
}

// countAlike counts switches at the beginning of a list of ranks that may use the same
// ports to the same switches. It may miss some.
func (x *tree) countAlike(list []fabric.NodeID) int {
	n, first := 1, int32(list[0])
	if x.mixed {
		return n
	}
	c, _, _ := x.side(first)
	kind, up := c.kind[first], x.down[first] == fabric.Unreachable
	for n < len(list) && c.kind[list[n]] == kind && (x.down[list[n]] == fabric.Unreachable) == up {
		n++
	}
	return n
}

// ports lists the ports that the switch with rank r may use. The list is valid until
// the next growTo.
func (x *tree) ports(r int32) []fabric.PortNum {
	if x.mixed {
		return x.listPorts(r)
	}
	c, which, hops := x.side(r)
	to, port := c.from(r)
	if !which.known {
		*which = x.findChoice(to, hops, x.hops[r]-1)
	}
	if which.from == which.to {
		return port
	}
	from := len(x.some)
	for _, i := range x.index[which.from:which.to] {
		x.some = append(x.some, port[i])
	}
	return x.some[from:len(x.some):len(x.some)]
}

// listPorts is ports without classes.
func (x *tree) listPorts(r int32) []fabric.PortNum {
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

// mayStep returns true if packets may go from one rank to another, its neighbour.
func (x *tree) mayStep(from, to int32) bool {
	if to > from {
		return x.down[to] != fabric.Unreachable && x.down[to]+1 == x.hops[from]
	}
	return x.down[from] == fabric.Unreachable && x.hops[to] != fabric.Unreachable && x.hops[to]+1 == x.hops[from]
}

// findChoice returns the choice of channels that lead to ranks with the wanted hops.
func (x *tree) findChoice(to []int32, hops []uint8, want uint8) choice {
	from := len(x.index)
	for i, v := range to {
		if hops[v] == want {
			x.index = append(x.index, int32(i))
		}
	}
	if len(x.index)-from == len(to) {
		x.index = x.index[:from]
	}
	return choice{true, int32(from), int32(len(x.index))}
}
