package lft

import (
	"context"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
)

// ChannelLoads counts the routes on each channel, by the PortID that it leaves: a route is an
// ordered pair of a CA or router port and a LID of another one that the tables
// deliver, of ports that count for load. Host cables count, in both directions. It takes
// O(switches x LIDs).
func ChannelLoads(ctx context.Context, f *fabric.Fabric, t *Tables) ([]int64, error) {
	sources := make([]int64, f.NumSwitches())
	for s := range sources {
		sources[s] = int64(len(f.HostsOn(fabric.NodeID(s))))
	}
	type count struct {
		forest  *Forest
		routes  []int64
		reached []int64 // by switch: LIDs of hosts that it delivers
	}
	start := func() *count {
		return &count{NewForest(f), make([]int64, f.NumPorts()), make([]int64, f.NumSwitches())}
	}
	counts, err := par.ForEachWith(ctx, 0, len(f.CAPorts()), start, func(c *count, i int) error {
		p := f.CAPorts()[i]
		if f.LID(p) == 0 || f.PeerSwitch(p) == fabric.NoNode || !f.PortCounts(p, fabric.ForLoad) {
			return nil
		}
		for k := range fabric.LID(1) << f.LMC(p) {
			c.forest.FindTree(t, f.LID(p)+k)
			if len(c.forest.Order) == 0 {
				continue
			}
			c.forest.Flow(sources, func(out fabric.PortID, routes int64) { c.routes[out] += routes })
			for _, s := range c.forest.Order {
				c.routes[f.Peer(p)] += sources[s]
				c.reached[s]++
			}
			// The port sends nothing to itself.
			c.routes[f.Peer(p)]--
			c.routes[p]--
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	sum := counts[0]
	for _, c := range counts[1:] {
		for p, n := range c.routes {
			sum.routes[p] += n
		}
		for s, n := range c.reached {
			sum.reached[s] += n
		}
	}
	for i, p := range f.CAPorts() {
		if s := f.CASwitches()[i]; s != fabric.NoNode && f.PortCounts(p, fabric.ForLoad) {
			sum.routes[p] += sum.reached[s]
		}
	}
	return sum.routes, nil
}
