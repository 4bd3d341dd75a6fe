package page

import (
	"context"
	"runtime"
	"sync/atomic"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// loads counts the routes on each channel, by the PortID that it leaves: a route is an
// ordered pair of a CA or router port and a LID of another one that the tables
// deliver. Host cables count, in both directions. It takes O(switches x LIDs).
func loads(ctx context.Context, f *fabric.Fabric, t *lft.Tables) ([]int64, error) {
	sources := make([]int64, f.NumSwitches())
	attached := f.CASwitches()
	for i := range f.CAPorts() {
		if s := attached[i]; s != fabric.NoNode {
			sources[s]++
		}
	}
	type count struct {
		routes  []int64
		reached []int64 // by switch: LIDs of CA and router ports that it delivers
	}
	var (
		taken  atomic.Int64
		wg     fabric.Workers
		counts = make([]count, runtime.GOMAXPROCS(0))
	)
	for w := range counts {
		c := &counts[w]
		c.routes, c.reached = make([]int64, f.NumPorts()), make([]int64, f.NumSwitches())
		wg.Go(func() {
			forest := lft.NewForest(f)
			for ctx.Err() == nil {
				i := int(taken.Add(1)) - 1
				if i >= len(f.CAPorts()) {
					return
				}
				p := f.CAPorts()[i]
				if f.LID(p) == 0 || attached[i] == fabric.NoNode {
					continue
				}
				for k := range fabric.LID(1) << f.LMC(p) {
					forest.Grow(t, f.LID(p)+k)
					if len(forest.Order) == 0 {
						continue
					}
					forest.Flow(sources, func(out fabric.PortID, routes int64) { c.routes[out] += routes })
					for _, s := range forest.Order {
						c.routes[f.Peer(p)] += sources[s]
						c.reached[s]++
					}
					// The port sends nothing to itself.
					c.routes[f.Peer(p)]--
					c.routes[p]--
				}
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
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
		if s := attached[i]; s != fabric.NoNode {
			sum.routes[p] += sum.reached[s]
		}
	}
	return sum.routes, nil
}
