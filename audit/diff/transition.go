package diff

import (
	"context"
	"iter"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// maxWitnesses bounds the loops that are shown of each kind. All are counted.
const maxWitnesses = 16

// maxVisits bounds the search for a shortest cycle, in channels.
const maxVisits = 1 << 22

// findTransition finds what can go wrong while the tables are written.
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

// run checks all LIDs. It returns one worker with what all found, and the dependencies of all
// packets.
func (m *mixture) run(ctx context.Context) (*mixWorker, error) {
	list, err := m.each(ctx, (*mixWorker).checkBlock)
	if err != nil {
		return nil, err
	}
	w := list[0]
	for _, o := range list[1:] {
		w.transient = append(w.transient, o.transient...)
		w.unordered += o.unordered
		for k, n := range o.own {
			w.own[k] += n
		}
		w.blocks = append(w.blocks, o.blocks...)
	}
	slices.Sort(w.transient)
	slices.SortFunc(w.blocks, func(a, b *blockOrder) int { return a.number - b.number })
	return w, nil
}

// each lets workers look at all blocks, and returns them; deps of the first has all dependencies.
func (m *mixture) each(ctx context.Context, look func(w *mixWorker, b int)) ([]*mixWorker, error) {
	list, err := par.ForEachWith(ctx, 0, int(m.maxLID)/lft.BlockSize+1, m.newWorker, func(w *mixWorker, b int) error {
		look(w, b)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, o := range list[1:] {
		list[0].deps.Union(o.deps)
	}
	return list, nil
}

func (m *mixture) lids(b int) iter.Seq[fabric.LID] {
	return func(yield func(fabric.LID) bool) {
		for l := max(1, b*lft.BlockSize); l < (b+1)*lft.BlockSize && l <= int(m.maxLID); l++ {
			if !yield(fabric.LID(l)) {
				return
			}
		}
	}
}

func (w *mixWorker) checkBlock(b int) {
	order := &blockOrder{number: b, writes: make([]uint64, w.n)}
	for l := range w.lids(b) {
		w.setLID(l)
		w.findLoops()
		w.countLoops()
		order.add(w)
		w.addDependencies(w.deps.Add, false)
	}
	if slices.ContainsFunc(order.writes, func(set uint64) bool { return set != 0 }) {
		w.blocks = append(w.blocks, order)
	}
}

// add adds the writes of the worker's LID, and the constraints on their order.
func (o *blockOrder) add(w *mixWorker) {
	for s, changed := range w.changed {
		if changed {
			o.writes[s] |= 1 << (w.lid % lft.BlockSize)
		}
	}
	if w.loops == 0 || w.loopsBy[1] {
		return
	}
	for s, c := range w.comp {
		if c < 0 || !w.changed[s] {
			continue
		}
		// Skip switches that keep their entry: it is a new one too. This ends, as the new tables
		// have no loop.
		d := w.heads[1][s]
		for d >= 0 && w.comp[d] == c && !w.changed[d] {
			d = w.heads[1][d]
		}
		if d >= 0 && w.comp[d] == c {
			o.constraints = append(o.constraints, before{lid: w.lid, first: d, then: int32(s)})
		}
	}
}

// unicast returns the dependencies of packets between CAs. They are a subset of those of all
// packets, and so have no cycle if those have none.
func (m *mixture) unicast(ctx context.Context) (*graph.Rows, error) {
	list, err := m.each(ctx, func(w *mixWorker, b int) {
		for l := range w.lids(b) {
			if w.setLID(l); w.ca {
				w.findLoops()
				w.addDependencies(w.deps.Add, true)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return list[0].deps, nil
}

// findCreditLoops counts components with a cycle, of mixtures, of the old and of the new tables,
// and finds witnesses.
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
			return nil // not due to the change: check shows it
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

// findLIDs finds, for each dependency of these cycles, the first LID whose packets have it.
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

// hop names the channel of port out, which packets for the worker's LID take.
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

// shortestLoop returns a shortest loop of a mixture for LID l. Neither layer loops by itself.
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
