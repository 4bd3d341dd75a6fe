package move_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/audit/diff"
	"github.com/ibweave/ibweave/audit/drain"
	"github.com/ibweave/ibweave/audit/move"
	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// TestNoStateLoops draws 1,000 plans, of moves and of drains, and follows packets for every LID through every
// state that they allow: each state's tables, all orders of writes from one to the next, switches written in
// part too, and cables of which any number has been moved already, there and back. None loops, LIDs of ports
// that are down, gone or never were there included. The loads are those that the routes add up to.
func TestNoStateLoops(t *testing.T) {
	var n tally
	for seed := uint64(3500); seed < short.Of[uint64](4700, 3540); seed++ { // 4546 moves switches that lead through each other
		w := &walker{t: t, seed: seed, rnd: rand.New(rand.NewPCG(seed, 2)), tally: &n}
		if base := w.drawBase(); base != nil && seed%4 == 0 {
			w.drain(base)
		} else if base != nil {
			w.move(base)
		}
	}
	if n.plans < short.Of(1000, 30) || n.steps < n.plans || min(n.down, n.gone, n.apart, n.mixed, n.blocks, n.stale) < short.Of(100, 1) || min(n.cuts, n.credit) < short.Of(1, 0) {
		t.Errorf("%+v: the draw is too narrow", n)
	}
	t.Logf("%+v", n)
}

// tally counts what was drawn: plans, their steps, those in which ports are down or gone, or whole
// switches out, or that cut off before cables move, orders with more than one stage and with passes by
// blocks, writes with credit loops on the way, and fabrics with stale entries.
type tally struct{ plans, steps, down, gone, apart, cuts, mixed, blocks, credit, stale int }

// walker follows packets through the states of a plan. It goes by lists of cables and rows of tables alone.
type walker struct {
	*tally
	t    *testing.T
	seed uint64
	rnd  *rand.Rand
	f    *fabric.Fabric // the numbers of switches and ports, not the cables
}

// cabling is the other end of each cabled port.
type cabling map[fabric.PortID]fabric.PortID

func cablingOf(cables []fabric.Cable) cabling {
	c := make(cabling)
	for _, x := range cables {
		c[x.A], c[x.B] = x.B, x.A
	}
	return c
}

// drawBase makes a small fabric with tables, some of which have entries for LIDs that no port has. It is nil
// where the engine cannot.
func (w *walker) drawBase() *compile.Result {
	w.t.Helper()
	var f *fabric.Fabric
	var err error
	switch w.rnd.IntN(4) {
	case 0:
		f, err = gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2 + w.rnd.IntN(2)})
	case 1:
		f, err = gen.FatTree(gen.FatTreeSpec{Radix: 6, Levels: 2})
	default:
		f, err = gen.Irregular(gen.IrregularSpec{Switches: 4 + 2*w.rnd.IntN(3), Degree: 3, Hosts: 8, Seed: w.rnd.Uint64()})
	}
	if err == nil {
		f, err = gen.DropLinks(f, w.rnd.IntN(3), w.rnd.Uint64())
	}
	if err == nil {
		f, err = lft.AssignLIDs(f, lft.LIDOptions{Policy: lft.DenseLIDs, LMC: w.rnd.IntN(8) / 7})
	}
	if err == nil && w.rnd.IntN(2) == 0 {
		lids, lmcs := make([]fabric.LID, f.NumPorts()), make([]uint8, f.NumPorts())
		for p := range fabric.PortID(f.NumPorts()) {
			lids[p], lmcs[p] = 2*f.LID(p), f.LMC(p)
		}
		f, err = f.WithLIDs(lids, lmcs)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	f = withPorts(w.t, f, 9)
	e := short.Must(compile.EngineByName([]string{"updn", "layered", "minhop", "fattree"}[w.rnd.IntN(4)]))(w.t)
	base, err := compile.Run(context.Background(), f, e, compile.Options{LIDs: lft.LIDOptions{LMC: lft.KeepLMC}})
	if err != nil || base.Verify.Verdict == verify.VerdictErrors {
		return nil
	}
	if w.rnd.IntN(3) == 0 {
		w.stale++
		base.Routing = w.withStale(base.Routing)
	}
	return base
}

// withStale adds entries for some LIDs that no port has: those of another LID, some of which are missing or lead to
// ports without a cable.
func (w *walker) withStale(r *lft.Routing) *lft.Routing {
	c, most := *r, r.Fabric.MaxLID()
	c.Tables = lft.NewTables(r.Tables.Switches(), most+3)
	for s := range fabric.NodeID(r.Tables.Switches()) {
		copy(c.Tables.Row(s), r.Tables.Row(s))
	}
	for lid := fabric.LID(1); lid <= most+3; lid++ {
		if r.Fabric.LIDPort(lid) != fabric.NoPort {
			continue
		}
		like := 1 + fabric.LID(w.rnd.IntN(int(most)))
		for s := range fabric.NodeID(r.Tables.Switches()) {
			c.Tables.Row(s)[lid] = r.Tables.Row(s)[like]
			if free := fabric.PortNum(1 + w.rnd.IntN(9)); w.rnd.IntN(3) == 0 {
				c.Tables.Row(s)[lid] = fabric.NoPath
				if r.Fabric.Peer(r.Fabric.Port(s, free)) == fabric.NoPort {
					c.Tables.Row(s)[lid] = free
				}
			}
		}
	}
	return &c
}

// move plans a move, in one step or in as many as it takes, and follows packets through it.
func (w *walker) move(base *compile.Result) {
	w.t.Helper()
	ctx, old := context.Background(), base.Routing.Fabric
	job, err := move.Between(old, drawNew(w.t, old, w.rnd), false)
	if err != nil {
		w.t.Fatalf("seed %d: %v", w.seed, err)
	}
	if gone, come := difference(job.Old, job.New), difference(job.New, job.Old); w.rnd.IntN(2) == 0 {
		job.Steps = []move.Batch{{Unplug: gone, Plug: come}}
	}
	plan, err := move.Make(ctx, base, job, compile.Options{}, move.Options{})
	if err != nil {
		w.t.Fatalf("seed %d: %v", w.seed, err)
	}
	w.plans++
	w.f = job.Nodes
	cables, tables := job.Old, base.Routing.On(job.Nodes).Tables
	w.load(cables, tables, plan.Before.MaxRoutes, "before")
	for i := range plan.Steps {
		s := &plan.Steps[i]
		rest := difference(cables, s.Batch.Unplug)
		next := append(slices.Clone(rest), s.Batch.Plug...)
		w.step(s, cables, rest, next, tables)
		cables, tables = next, s.After.Compiled.Routing.Tables
	}
}

// step follows packets through a step of a move, there and back. was, rest and next are the cables before, without
// those that go, and after.
func (w *walker) step(s *move.Step, was, rest, next []fabric.Cable, before *lft.Tables) {
	w.t.Helper()
	w.steps++
	if len(s.Down.List) > 0 {
		w.down++
	}
	if len(s.Gone.List) > 0 {
		w.gone++
	}
	x, y := cablingOf(was), cablingOf(next)
	drained, after, leave := before, s.After.Compiled.Routing.Tables, s.After.Leave.Routing.Tables
	w.only("before", before, x)
	if d := s.Drained; d != nil {
		drained = d.Compiled.Routing.Tables
		w.order("to drain", before, drained, &d.Write, x)
		w.load(rest, drained, d.MaxRoutes, "drained")
		w.tell(d.Verdict, &d.Write)
		w.noCreditLoop("drained", d.Compiled)
		if d.Cuts {
			w.cuts++
			w.justify(x, cablingOf(rest), y)
		} else {
			w.load(was, drained, -1, "drained, cables there")
		}
	}
	w.only("drained", drained, x, y)
	ready := w.first("drained", drained, after, s.After.WriteFirst, y)
	w.order("to use the new cables", ready, after, &s.After.Write, y)
	w.only("after", after, y)
	w.load(next, after, s.After.MaxRoutes, "after")
	w.tell(s.After.Verdict, &s.After.Write)
	w.order("to leave the new cables", after, leave, &s.After.Back, y)
	w.noCreditLoop("back", s.After.Leave)
	w.only("back", leave, y, x)
	if d := s.Drained; d != nil {
		ready = w.first("back", leave, before, d.BackFirst, x)
		w.order("to be back", ready, before, &d.Back, x)
		w.apart += min(1, len(d.BackFirst))
	}
}

// noCreditLoop checks tables on the cables of their own fabric.
func (w *walker) noCreditLoop(when string, c *compile.Result) {
	w.t.Helper()
	r := c.Routing
	v, err := verify.Check(w.t.Context(), &state.State{Fabric: r.Fabric, Tables: r.Tables, SL2VL: r.SL2VL, PathSLs: r.PathSLs}, verify.Options{})
	if err != nil || v.CreditLoops.Count > 0 {
		w.t.Errorf("seed %d: %s: %d credit loops, %v", w.seed, when, v.CreditLoops.Count, err)
	}
}

// justify looks for a port whose entries cannot stay until it is unplugged: its switch gets another switch in its place, or
// has no cable that stays.
func (w *walker) justify(was, rest, next cabling) {
	w.t.Helper()
	for at, p := range was {
		s := w.f.Owner(at)
		if _, stays := rest[at]; stays || !w.f.IsSwitch(s) || w.f.IsSwitch(w.f.Owner(p)) && w.isCabled(s, rest) {
			continue
		}
		if to, is := next[at]; !w.isCabled(s, rest) || is && w.f.IsSwitch(w.f.Owner(to)) {
			return
		}
	}
	w.t.Errorf("seed %d: hosts are cut off before they are unplugged, without need", w.seed)
}

// drain plans a drain, and follows packets through it.
func (w *walker) drain(base *compile.Result) {
	w.t.Helper()
	w.f = base.Routing.Fabric
	parts := w.drawParts()
	plan, err := drain.Make(context.Background(), base, compile.Options{}, parts, drain.Options{})
	if err != nil {
		w.t.Fatalf("seed %d: %v", w.seed, err)
	}
	w.plans++
	cables := w.f.Cables()
	whole := cablingOf(cables)
	w.load(cables, base.Routing.Tables, plan.Before.MaxRoutes, "before")
	for _, window := range plan.Windows {
		tables, rest := base.Routing.Tables, cables
		for i := range window.Steps {
			s := &window.Steps[i]
			w.steps++
			for _, p := range parts {
				if p.Name == s.Part {
					rest = slices.DeleteFunc(slices.Clone(rest), func(c fabric.Cable) bool {
						return slices.Contains(p.Cables, c.A) || slices.Contains(p.Cables, c.B)
					})
				}
			}
			drained := s.Compiled.Routing.Tables
			w.only("in force", tables, whole)
			w.order("to drain", tables, drained, &s.Drain, whole)
			w.only("drained", drained, whole)
			w.load(rest, drained, s.MaxRoutes, "drained")
			w.order("to be back", drained, tables, &s.Back, whole)
			w.tell(s.Verdict, &s.Drain)
			tables = drained
		}
		w.gone += min(1, window.Gone)
	}
}

// drawParts draws cables, switches and hosts.
func (w *walker) drawParts() (parts []drain.Part) {
	cables := w.f.Cables()
	for range 1 + w.rnd.IntN(4) {
		p := drain.SwitchPart(w.f, []fabric.NodeID{fabric.NodeID(w.rnd.IntN(w.f.NumSwitches()))})
		if w.rnd.IntN(2) == 0 {
			p = drain.CablePart(w.f, cables[w.rnd.IntN(len(cables))].A)
		}
		p.Name = string(rune('a' + len(parts)))
		parts = append(parts, p)
	}
	return parts
}

// tell holds a verdict to what it has to tell.
func (w *walker) tell(verdict string, c *drain.Change) {
	w.t.Helper()
	w.credit += min(1, c.CreditLoops)
	if verdict == verify.VerdictErrors || c.CreditLoops > 0 && verdict == verify.VerdictClean {
		w.t.Errorf("seed %d: %d credit loops on the way, and the verdict is %s", w.seed, c.CreditLoops, verdict)
	}
}

// only checks tables on some cables: each port has the cable of any of them.
func (w *walker) only(when string, tables *lft.Tables, cables ...cabling) {
	w.t.Helper()
	w.check(when, tables.MaxLID(), func(s fabric.NodeID, lid fabric.LID) []fabric.PortNum { return []fabric.PortNum{tables.Row(s)[lid]} }, cables...)
}

// first checks the writes of switches that get all of their entries before others, and returns the tables then.
func (w *walker) first(when string, old, new *lft.Tables, list []fabric.GUID, at cabling) *lft.Tables {
	w.t.Helper()
	w.apart += min(1, len(list))
	maxLID := max(old.MaxLID(), new.MaxLID())
	ready := lft.NewTables(old.Switches(), maxLID)
	for s := range fabric.NodeID(old.Switches()) {
		copy(ready.Row(s), old.Row(s))
		if slices.Contains(list, w.f.Node(s).GUID) {
			for lid := range ready.Row(s) {
				ready.Row(s)[lid] = entryOf(new, s, fabric.LID(lid))
			}
		}
	}
	w.check(when+", first writes", maxLID, func(s fabric.NodeID, lid fabric.LID) []fabric.PortNum {
		return []fabric.PortNum{entryOf(old, s, lid), entryOf(ready, s, lid)}
	}, at)
	return ready
}

func entryOf(t *lft.Tables, s fabric.NodeID, lid fabric.LID) fabric.PortNum {
	if lid > t.MaxLID() {
		return fabric.NoPath
	}
	return t.Row(s)[lid]
}

// order checks all orders of writes that a change allows: for each LID the switches of the stages before some one have
// new entries, those of this stage old or new ones, and the others old ones. All switches whose entry changes have a
// stage, unless they have no cable by which they could be written.
func (w *walker) order(when string, old, new *lft.Tables, c *drain.Change, at cabling) {
	w.t.Helper()
	maxLID := max(old.MaxLID(), new.MaxLID())
	most := 0
	stages := make([]map[fabric.GUID]int, maxLID+1) // by LID
	for lid := range stages {
		list := c.Order.Stages
		for _, b := range c.Order.Blocks {
			for _, p := range b.Passes {
				if b.Block == lid/lft.BlockSize && (len(p.LIDs) == 0 || slices.Contains(p.LIDs, fabric.LID(lid))) {
					list = p.Stages
				}
			}
		}
		stages[lid] = make(map[fabric.GUID]int)
		for i, guids := range list {
			for _, guid := range guids {
				stages[lid][guid] = i
			}
		}
		most = max(most, len(list)-1)
	}
	switch {
	case c.Order.Kind == diff.OrderBlocks:
		w.blocks++
	case most > 0:
		w.mixed++
	}
	for now := range most + 1 {
		w.check(when, maxLID, func(s fabric.NodeID, lid fabric.LID) []fabric.PortNum {
			stage, is := stages[lid][w.f.Node(s).GUID]
			from, to := entryOf(old, s, lid), entryOf(new, s, lid)
			switch {
			case from == to || is && stage < now:
				return []fabric.PortNum{to}
			case is && stage == now:
				return []fabric.PortNum{from, to}
			case !is && w.isCabled(s, at):
				w.t.Fatalf("seed %d, %s: the order %q lacks the entry of %s for LID %d", w.seed, when, c.Order.Kind, w.f.Name(s), lid)
			}
			return []fabric.PortNum{from}
		}, at)
	}
}

func (w *walker) isCabled(s fabric.NodeID, at cabling) bool {
	for num := range w.f.Node(s).NumPorts {
		if _, is := at[w.f.Port(s, num+1)]; is {
			return true
		}
	}
	return false
}

// check looks for a loop of packets for each LID, where a switch may have one of several entries and each port the
// cable of one of several cablings. A cycle of such choices meets a switch once, and so is a loop of a state.
func (w *walker) check(when string, maxLID fabric.LID, entries func(fabric.NodeID, fabric.LID) []fabric.PortNum, cables ...cabling) {
	w.t.Helper()
	const onPath, done = 1, 2
	for lid := fabric.LID(1); lid <= maxLID; lid++ {
		seen := make([]int, w.f.NumSwitches())
		var visit func(s fabric.NodeID) bool
		visit = func(s fabric.NodeID) bool {
			seen[s] = onPath
			for _, num := range entries(s, lid) {
				if num == 0 || num > w.f.Node(s).NumPorts {
					continue
				}
				for _, c := range cables {
					peer, is := c[w.f.Port(s, num)]
					if !is || !w.f.IsSwitch(w.f.Owner(peer)) {
						continue
					}
					if to := w.f.Owner(peer); seen[to] == onPath || seen[to] == 0 && visit(to) {
						return true
					}
				}
			}
			seen[s] = done
			return false
		}
		for s := range fabric.NodeID(w.f.NumSwitches()) {
			if seen[s] == 0 && visit(s) {
				w.t.Errorf("seed %d, %s: packets for LID %d loop", w.seed, when, lid)
				return
			}
		}
	}
}

// load follows packets between all adapters that have cables, and holds the greatest load to their routes, if want is
// not negative.
func (w *walker) load(cables []fabric.Cable, tables *lft.Tables, want int64, when string) {
	w.t.Helper()
	at := cablingOf(cables)
	var ports []fabric.PortID
	for _, c := range cables {
		for _, p := range [...]fabric.PortID{c.A, c.B} {
			if !w.f.IsSwitch(w.f.Owner(p)) {
				ports = append(ports, p)
			}
		}
	}
	routes := make(map[fabric.PortID]int64)
	most := int64(0)
	for _, src := range ports {
		for _, dst := range ports {
			for k := range fabric.LID(1) << w.f.LMC(dst) {
				p := src
				for hops := 0; src != dst && at[p] != dst; hops++ {
					s := w.f.Owner(at[p])
					p = w.f.Port(s, entryOf(tables, s, w.f.LID(dst)+k))
					if _, is := at[p]; !is || hops > w.f.NumSwitches() {
						w.t.Fatalf("seed %d, %s: no path from %s to %s", w.seed, when, w.f.PortName(src), w.f.PortName(dst))
					}
					if w.f.IsSwitch(w.f.Owner(at[p])) {
						routes[p]++
						most = max(most, routes[p])
					}
				}
			}
		}
	}
	if want >= 0 && most != want {
		w.t.Errorf("seed %d, %s: %d routes on the busiest cable; the plan says %d", w.seed, when, most, want)
	}
}
