package diff

import (
	"context"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// maxVisits bounds the search for a shortest cycle, in channels.
const maxVisits = 1 << 22

// findTransition looks at what can happen while the tables are written.
func (c *comparison) findTransition(ctx context.Context) error {
	t := &Transition{
		Cycles:      [][]MixedHop{},
		CreditLoops: CreditLoops{Cycles: [][]MixedHop{}, ManagementCycles: [][]MixedHop{}},
		Order:       Order{Kind: OrderNone},
	}
	c.r.Transition = t
	if !c.writes() {
		return nil
	}
	m := c.newMixture()
	w, err := m.run(ctx)
	if err != nil {
		return err
	}
	t.Loops, t.OldLoops, t.NewLoops, t.Unordered = len(w.transient), w.own[0], w.own[1], w.unordered
	t.Order = makeOrder(c.New, w.blocks)
	t.Cycles = append(t.Cycles, text.Each(w.transient[:min(maxWitnesses, len(w.transient))], w.shortestLoop)...)
	return c.findCreditLoops(ctx, w)
}

// writes returns true if the change writes anything that packets depend on.
func (c *comparison) writes() bool {
	r := c.r
	return r.LFTs.Blocks > 0 ||
		(c.a.SL2VL == nil) != (c.b.SL2VL == nil) || r.SL2VL != nil && r.SL2VL.Changed > 0 ||
		(c.a.PathSLs == nil) != (c.b.PathSLs == nil) || r.PathSLs != nil && r.PathSLs.Changed > 0
}

// findCreditLoops reports the components of the graphs that hold a cycle, and
// whether the old and the new tables have some by themselves.
func (c *comparison) findCreditLoops(ctx context.Context, w *mixWorker) error {
	d := &c.r.Transition.CreditLoops
	all := graph.StronglyConnected(len(w.to)*w.vls, w.deps.Next())
	if d.Management = len(all); d.Management == 0 {
		return nil
	}
	fromCAs, err := w.unicast(ctx)
	if err != nil {
		return err
	}
	unicast := graph.StronglyConnected(len(w.to)*w.vls, fromCAs.Next())
	d.Count = len(unicast)
	for k, x := range []*state.State{c.a, c.b} {
		own, err := verify.Check(ctx, &state.State{Fabric: x.Fabric, Tables: x.Tables, SL2VL: x.SL2VL, PathSLs: x.PathSLs}, verify.Options{Witnesses: 1, Findings: 1})
		if err != nil {
			return err
		}
		if k == 0 {
			d.Old, d.OldManagement = own.CreditLoops.Count, own.Management.CreditLoops
		} else {
			d.New, d.NewManagement = own.CreditLoops.Count, own.Management.CreditLoops
		}
	}
	into, g, components, management := &d.Cycles, fromCAs, unicast, false
	if d.Count == 0 {
		if d.OldManagement > 0 || d.NewManagement > 0 {
			return nil // as ever: check shows it
		}
		into, g, components, management = &d.ManagementCycles, w.deps, all, true
	}
	var cycles [][]int32
	for _, members := range components[:min(maxWitnesses, len(components))] {
		cycle, _ := graph.ShortestCycle(members, g.Next(), 1, maxVisits)
		cycles = append(cycles, cycle)
	}
	lids, err := w.findLIDs(ctx, cycles, management)
	if err != nil {
		return err
	}
	for _, cycle := range cycles {
		var hops []MixedHop
		for i, ch := range cycle {
			w.setLID(lids[[2]int32{ch, cycle[(i+1)%len(cycle)]}])
			hop := w.hop(ch / int32(w.vls))
			hop.VL = fabric.VL(int(ch) % w.vls)
			hops = append(hops, hop)
		}
		*into = append(*into, hops)
	}
	return nil
}

// findLIDs finds, for each dependency of some cycles, the first LID whose packets have it.
func (w *mixWorker) findLIDs(ctx context.Context, cycles [][]int32, management bool) (map[[2]int32]fabric.LID, error) {
	first := make(map[[2]int32]fabric.LID) // 0 for none yet
	for _, cycle := range cycles {
		for i, ch := range cycle {
			first[[2]int32{ch, cycle[(i+1)%len(cycle)]}] = 0
		}
	}
	left := len(first)
	for l := fabric.LID(1); l <= w.maxLID && ctx.Err() == nil && left > 0; l++ {
		w.setLID(l)
		w.findLoops()
		if management || w.ca {
			w.addDependencies(func(c, e int32) {
				if lid, is := first[[2]int32{c, e}]; is && lid == 0 {
					first[[2]int32{c, e}] = l
					left--
				}
			}, !management)
		}
	}
	return first, ctx.Err()
}

// hop names a port that packets for the LID that was taken leave by.
func (w *mixWorker) hop(out int32) MixedHop {
	s := w.f.Owner(fabric.PortID(out))
	h := MixedHop{lft.HopOf(w.f, fabric.PortID(out)), "both"}
	h.LID = w.lid
	switch {
	case w.next[0][s] != out:
		h.Table = "new"
	case w.next[1][s] != out:
		h.Table = "old"
	}
	return h
}

// shortestLoop is a shortest loop of a mixture for a LID for which neither layer loops by itself.
func (w *mixWorker) shortestLoop(l fabric.LID) (hops []MixedHop) {
	w.setLID(l)
	var best []int32
	for _, members := range graph.StronglyConnected(w.n, w.headsOf) {
		if cycle, _ := graph.ShortestCycle(members, w.headsOf, 1, maxVisits); best == nil || len(cycle) < len(best) {
			best = cycle
		}
	}
	for i, s := range best {
		k := 0
		if w.heads[k][s] != best[(i+1)%len(best)] {
			k = 1
		}
		hops = append(hops, w.hop(w.next[k][s]))
	}
	return hops
}
