// Package updown computes up*/down* routings: a path goes up any number of
// links, then down any number, never up again (Schroeder et al., Autonet,
// 1991; Gerla et al., section 2, for Myrinet). Channels that go up come before
// those that go down, up channels are ordered by the switch they lead to and
// so are down channels, so no cycle of channel dependencies can exist,
// whatever the fabric.
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
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/ibweave/ibweave/fabric"
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
// like what came down. So a switch from which a destination lies only
// downward hops away goes down, by a shortest such path, and every other
// switch goes up, to the neighbour from which the destination is nearest.
// That is within the rule for every packet, whoever sends it.
func (Engine) Route(ctx context.Context, f *fabric.Fabric, opt lft.Options) (*lft.Routing, error) {
	var order *Order
	if len(opt.Roots) > 0 {
		order = NewOrder(f, opt.Roots)
	} else {
		var err error
		if order, err = ChooseOrder(ctx, f); err != nil {
			return nil, err
		}
	}
	s := lft.NewSpread(f)
	d := newDirections(f, order)
	near := d.near()
	var tooLong atomic.Bool
	err := s.Run(ctx, func() func(fabric.NodeID, *lft.Placer) {
		tree := newTree(d, near)
		return func(t fabric.NodeID, p *lft.Placer) {
			if !tree.grow(t) {
				tooLong.Store(true)
				return
			}
			if p.Single() {
				for r, h := range tree.hops {
					if h != 0 && h != fabric.Unreachable {
						p.Place(d.order.Switch[r], tree.port(int32(r), p.Turn()))
					}
				}
				return
			}
			for _, r := range tree.sort.FarthestFirst(tree.hops) {
				p.Place(d.order.Switch[r], tree.ports(int32(r)))
			}
		}
	})
	if err != nil {
		return nil, err
	}
	if tooLong.Load() {
		return nil, &lft.DomainError{Engine: "updn", Reason: fmt.Sprintf("a path has more than %d links", fabric.Unreachable-1)}
	}
	return &lft.Routing{Engine: "updn", Fabric: f, Tables: s.Tables(), Order: order.Rank}, nil
}

// directions is the switch graph by rank, upward and downward channels apart.
type directions struct {
	order *Order
	dist  *fabric.HopMatrix
	up    channels
	down  channels
}

// channels lists for each switch, by rank, its channels in one direction and
// the rank that each leads to.
type channels struct {
	first []int32 // by rank: its part of to and port
	to    []int32
	port  []fabric.PortID
}

// of gives the channels of the switch with rank r.
func (c *channels) of(r int32) (to []int32, port []fabric.PortID) {
	a, b := c.first[r], c.first[r+1]
	return c.to[a:b], c.port[a:b]
}

func newDirections(f *fabric.Fabric, order *Order) *directions {
	n := f.NumSwitches()
	d := &directions{order: order, dist: f.Distances()}
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
			side.port = append(side.port, ports[i])
		}
		d.up.first = append(d.up.first, int32(len(d.up.to)))
		d.down.first = append(d.down.first, int32(len(d.down.to)))
	}
	return d
}

// near lists all ranks so that those with the same upward neighbours are
// together: Spread is fastest when they follow each other.
func (d *directions) near() []fabric.NodeID {
	list := make([]fabric.NodeID, len(d.order.Switch))
	for r := range list {
		list[r] = fabric.NodeID(r)
	}
	slices.SortFunc(list, func(a, b fabric.NodeID) int {
		x, _ := d.up.of(int32(a))
		y, _ := d.up.of(int32(b))
		return cmp.Or(slices.Compare(x, y), cmp.Compare(a, b))
	})
	return list
}

// tree is the paths to one destination switch: scratch of one worker. It
// knows switches by rank only.
type tree struct {
	d     *directions
	hops  []uint8 // by rank: links to the destination, Unreachable for none
	down  []uint8 // by rank: the same where the destination is reached downward, else Unreachable
	queue []int32
	some  []fabric.PortID // the lists of ports that are not all of one side
	sort  *lft.ByDistance
}

// newTree is for the switches of near, a list of all ranks.
func newTree(d *directions, near []fabric.NodeID) *tree {
	n := len(d.order.Switch)
	return &tree{
		d:     d,
		hops:  make([]uint8, n),
		down:  make([]uint8, n),
		queue: make([]int32, 0, n),
		sort:  lft.NewByDistance(near),
	}
}

// grow computes hops and down for destination t: O(channels). It reports
// false when a path is longer than 254 links.
func (x *tree) grow(t fabric.NodeID) bool {
	x.some = x.some[:0]
	for i := range x.down {
		x.down[i] = fabric.Unreachable
	}
	r := x.d.order.Rank[t]
	x.down[r] = 0
	x.queue = append(x.queue[:0], r)
	for i := 0; i < len(x.queue); i++ {
		v := x.queue[i]
		h := x.down[v] + 1
		above, _ := x.d.up.of(v)
		for _, u := range above {
			if x.down[u] == fabric.Unreachable {
				if h == fabric.Unreachable {
					return false
				}
				x.down[u] = h
				x.queue = append(x.queue, u)
			}
		}
	}
	// Upward neighbours have lower ranks: one pass from the top.
	minimal := x.d.dist.To(t)
	copy(x.hops, x.down)
	for u, h := range x.hops {
		if h != fabric.Unreachable {
			continue
		}
		least := fabric.Unreachable
		shortest := minimal[x.d.order.Switch[u]] // no neighbour can be nearer than that less one
		above, _ := x.d.up.of(int32(u))
		for _, v := range above {
			if least = min(least, x.hops[v]); least < shortest {
				break
			}
		}
		if least == fabric.Unreachable {
			continue
		}
		if least+1 == fabric.Unreachable {
			return false
		}
		x.hops[u] = least + 1
	}
	return true
}

// side gives the channels in the one direction that the switch with rank r may
// take, and the hops, by rank, to which they must lead.
func (x *tree) side(r int32) (to []int32, port []fabric.PortID, hops []uint8) {
	if x.down[r] == fabric.Unreachable {
		to, port = x.d.up.of(r)
		return to, port, x.hops
	}
	to, port = x.d.down.of(r)
	return to, port, x.down
}

// ports lists the channels that the switch with rank r may use. The list is
// good until the next grow.
func (x *tree) ports(r int32) []fabric.PortID {
	to, port, hops := x.side(r)
	want := x.hops[r] - 1
	n := 0
	for n < len(to) && hops[to[n]] == want {
		n++
	}
	if n == len(to) {
		return port
	}
	from := len(x.some)
	x.some = append(x.some, port[:n]...)
	for i := n; i < len(to); i++ {
		if hops[to[i]] == want {
			x.some = append(x.some, port[i])
		}
	}
	return x.some[from:len(x.some):len(x.some)]
}

// port is one of ports: the first from a start that turn decides.
func (x *tree) port(r int32, turn int) []fabric.PortID {
	to, port, hops := x.side(r)
	want := x.hops[r] - 1
	i := int(uint32(turn) % uint32(len(to)))
	for hops[to[i]] != want {
		if i++; i == len(to) {
			i = 0
		}
	}
	return port[i : i+1]
}
