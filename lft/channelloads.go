package lft

import (
	"context"
	"iter"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/internal/text"
)

// ChannelLoads counts the routes on each channel, by the PortID that it leaves. A
// route is a CA or router port and a LID of another, virtual ports included, that the
// tables deliver. Only ports that count for load have routes. Host cables are
// included, both directions. It takes O(switches x LIDs).
func ChannelLoads(ctx context.Context, f *fabric.Fabric, t *Tables) ([]int64, error) {
	var ends []fabric.PortID
	for _, s := range f.Switches() {
		ends = append(ends, f.HostsOn(s)...)
	}
	return LoadsAmong(ctx, f, t, ends)
}

// LoadsAmong is ChannelLoads for the routes among some CA or router ports with a cable to a
// switch.
func LoadsAmong(ctx context.Context, f *fabric.Fabric, t *Tables, ends []fabric.PortID) ([]int64, error) {
	sources := make([]int64, f.NumSwitches())
	for _, p := range ends {
		sources[f.PeerSwitch(p)]++
	}
	type count struct {
		routes  []int64
		reached []int64 // by switch: LIDs that it delivers
	}
	start := func() *count { return &count{make([]int64, f.NumPorts()), make([]int64, f.NumSwitches())} }
	counts, err := EachTree(ctx, f, t, ends, f.AllLIDs, start, func(c *count, i int, tree *Forest) {
		if len(tree.Order) == 0 {
			return
		}
		p := ends[i]
		tree.Flow(sources, func(out fabric.PortID, routes int64) { c.routes[out] += routes })
		for _, s := range tree.Order {
			c.routes[f.Peer(p)] += sources[s]
			c.reached[s]++
		}
		// The port sends nothing to itself.
		c.routes[f.Peer(p)]--
		c.routes[p]--
	})
	if err != nil {
		return nil, err
	}
	sum := counts[0]
	for _, c := range counts[1:] {
		add(sum.routes, c.routes)
		add(sum.reached, c.reached)
	}
	for _, p := range ends {
		sum.routes[p] += sum.reached[f.PeerSwitch(p)]
	}
	return sum.routes, nil
}

// DemandLoads is LoadsAmong for ports that send different amounts. senders(dst) yields the
// ports that send to port dst, and the amount to each of dst's LIDs; ports are given by
// their index in ends. lost is the amount that the tables do not deliver. It takes
// O(switches) for each LID, plus senders.
func DemandLoads(ctx context.Context, f *fabric.Fabric, t *Tables, ends []fabric.PortID, senders func(dst int) iter.Seq2[int, int64]) (loads []int64, lost int64, err error) {
	type count struct {
		loads   []int64
		lost    int64
		sources []int64 // by switch; 0 between trees
		reached []bool  // by switch; false between trees
	}
	start := func() *count {
		return &count{loads: make([]int64, f.NumPorts()), sources: make([]int64, f.NumSwitches()), reached: make([]bool, f.NumSwitches())}
	}
	counts, err := EachTree(ctx, f, t, ends, f.LIDs, start, func(c *count, i int, tree *Forest) {
		for _, s := range tree.Order {
			c.reached[s] = true
		}
		for from, amount := range senders(i) {
			src := ends[from]
			s := f.PeerSwitch(src)
			if !c.reached[s] {
				c.lost += amount
				continue
			}
			c.sources[s] += amount
			c.loads[src] += amount
			c.loads[f.Peer(ends[i])] += amount
		}
		tree.Flow(c.sources, func(out fabric.PortID, amount int64) { c.loads[out] += amount })
		for _, s := range tree.Order {
			c.reached[s], c.sources[s] = false, 0
		}
	})
	if err != nil {
		return nil, 0, err
	}
	sum := counts[0]
	for _, c := range counts[1:] {
		add(sum.loads, c.loads)
		sum.lost += c.lost
	}
	return sum.loads, sum.lost, nil
}

// EachTree visits the paths to the LIDs of some CA or router ports with a cable to a
// switch, on all CPUs; lids yields the LIDs of a port. visit gets the port's index in
// ends, and a tree, valid until it returns, which is empty if the tables deliver the
// LID to another port. Visits on one CPU share a W made by start; EachTree returns
// all Ws, at least one, in any order.
func EachTree[W any](ctx context.Context, f *fabric.Fabric, t *Tables, ends []fabric.PortID, lids func(fabric.PortID) iter.Seq[fabric.LID], start func() W, visit func(w W, i int, tree *Forest)) ([]W, error) {
	type worker struct {
		tree *Forest
		w    W
	}
	workers, err := par.ForEachWith(ctx, 0, len(ends), func() worker { return worker{NewForest(f), start()} }, func(w worker, i int) error {
		for lid := range lids(ends[i]) {
			w.tree.FindTree(t, lid)
			visit(w.w, i, w.tree)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return text.Each(workers, func(w worker) W { return w.w }), nil
}

func add(a, b []int64) {
	for i, n := range b {
		a[i] += n
	}
}
