package compile_test

import (
	"flag"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ibweave/ibweave/compile"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

var failureSteps = flag.Int("failures", short.Usual(40, 14), "failures and returns of TestIncremental on each fabric")

// TestIncremental has cables, switches and hosts fail and return, and each time holds
// what comes of the last result against the checker, which knows nothing of it, and
// what is reached against routing from scratch.
func TestIncremental(t *testing.T) {
	steps := short.Of(*failureSteps, 4)
	fabrics := failingFabrics(t)
	for _, name := range short.Keys(fabrics, "irregular", "torus") {
		whole := fabrics[name]
		for _, engineName := range []string{"updn", "minhop"} {
			t.Run(name+"/"+engineName, func(t *testing.T) {
				whole := short.Must(lft.AssignLIDs(whole, lft.LIDOptions{LMC: 1}))(t)
				e := engine(t, engineName)
				x := failures{f: whole, gone: map[fabric.PortID]bool{}, dead: map[fabric.NodeID]bool{}}
				rng := rand.New(rand.NewPCG(7, 8))
				var (
					c              compile.Incremental
					kept, byChange int
					entries, fresh int
					bounds         int // blocks that had to change
					heap           []uint64
					before         *compile.Result
				)
				for step := range steps {
					f := whole
					if step > 0 {
						x.step(rng)
						f = short.Must(gen.Remaining(whole, x.cut()...))(t)
					}
					r, how := short.Must2(c.Run(t.Context(), f, e, compile.Options{LIDs: lft.LIDOptions{LMC: lft.KeepLMC}}))(t)
					scratch := short.Must(compile.Run(t.Context(), f, e, compile.Options{LIDs: lft.LIDOptions{LMC: lft.KeepLMC}}))(t)
					if how.Kept {
						kept++
					}
					if how.ByChange {
						byChange++
					}
					asChecked(t, f, e, r, how)
					got, want := r.Verify, scratch.Verify
					if got.Unicast.Unreachable != want.Unicast.Unreachable || got.Unicast.Loops != 0 ||
						got.Management.Unreachable != want.Management.Unreachable || got.Management.Loops != 0 {
						t.Fatalf("step %d: %+v %+v; from scratch %+v %+v", step, got.Unicast, got.Management, want.Unicast, want.Management)
					}
					if before != nil {
						short.MustEqual(t, compile.ChangesSince(before.Routing, r.Routing), how.Changes, "step", step)
						used, least := leastChanges(before.Routing, r.Routing)
						if used > least || least > how.Changes.Blocks {
							t.Fatalf("step %d: at least %d or %d blocks, but %d have changed", step, used, least, how.Changes.Blocks)
						}
						bounds += least
						entries += how.Changes.Entries
						fresh += compile.ChangesSince(before.Routing, scratch.Routing).Entries
					}
					before = r
					if every := max(steps/8, 1); step%every == every-1 {
						c.Wait()
						runtime.GC()
						var m runtime.MemStats
						runtime.ReadMemStats(&m)
						heap = append(heap, m.HeapAlloc)
					}
				}
				c.Wait()
				t.Logf("%d steps, %d kept, %d verified by what changed: %d entries changed, %d from scratch; heap %d to %d KiB",
					steps, kept, byChange, entries, fresh, heap[len(heap)/2]>>10, heap[len(heap)-1]>>10)
				// Tables with credit loops are never verified by what changed.
				loops := !e.Guarantee().Has(lft.NoCreditLoop)
				if kept < steps/2 || !loops && byChange < steps/2 || entries >= fresh || bounds == 0 {
					t.Error("that is not what incremental is for")
				}
				if now, then := heap[len(heap)-1], heap[len(heap)/2]; now > then+then/4+1<<20 {
					t.Errorf("the heap has grown from %d to %d bytes", then, now)
				}
			})
		}
	}
}

// asChecked says that the verdict is that of the checker, except for notes.
func asChecked(t *testing.T, f *fabric.Fabric, e *compile.Engine, r *compile.Result, how compile.Step) {
	t.Helper()
	want := short.Must(verify.Check(t.Context(), &state.State{Fabric: f, Tables: r.Routing.Tables}, verify.Options{}))(t)
	if !e.Guarantee().Has(lft.NoCreditLoop) {
		want.Regrade(verify.CreditLoop, verify.Warning)
	}
	if how.ByChange {
		want.Balance.Idle = nil
		want.Edit(func(list []verify.Finding) []verify.Finding {
			var kept []verify.Finding
			for _, f := range list {
				if f.Severity != verify.Note {
					kept = append(kept, f)
				}
			}
			return kept
		})
	}
	if d := cmp.Diff(want, r.Verify, cmpopts.IgnoreUnexported(verify.Result{}, verify.Finding{})); d != "" {
		t.Fatalf("%+v: the checker says -, with what is known +:\n%s", how, d)
	}
}

// TestIncrementalKeepsLayered: tables of layered that are kept on one lane have shortest paths between hosts,
// as those have that it makes from scratch.
func TestIncrementalKeepsLayered(t *testing.T) {
	kept, longer := 0, 0
	for seed := range uint64(short.Of(300, 100)) {
		rng := rand.New(rand.NewPCG(seed, 1))
		f := short.Must(gen.Irregular(gen.IrregularSpec{Switches: 6, Degree: 5, Hosts: 12, Seed: seed}))(t)
		f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{}))(t)
		var cut []fabric.PortID
		for s := range fabric.NodeID(f.NumSwitches()) {
			ports, _ := f.SwitchLinks(s)
			cut = append(cut, ports[rng.IntN(len(ports))])
		}
		e := engine(t, "layered")
		var c compile.Incremental
		for _, g := range []*fabric.Fabric{f, f.Without(cut[:2]...), f.Without(cut...)} {
			r, step := short.Must2(c.Run(t.Context(), g, e, compile.Options{}))(t)
			c.Wait()
			if step.Kept && r.Routing.SL2VL == nil {
				if kept++; r.Verify.Unicast.NonMinimal > 0 {
					longer++
				}
			}
		}
	}
	if kept == 0 || longer > 0 {
		t.Errorf("tables were kept in %d steps, in %d of them with paths that are longer than a shortest path", kept, longer)
	}
}

// leastChanges bounds from below what any routing of next's fabric must change of the
// tables of prev, in blocks.
//
// used counts those with an entry for a LID that is still there by a cable that is gone:
// whatever the routing, such an entry cannot stay.
//
// short counts besides those with an entry that leads to a switch from which, by the
// cables that there are, the way on is longer than next's way from here leaves room for.
// No routing keeps such an entry whose ways are nowhere longer than next's, in whatever
// order or by whatever rule it goes. So it is a bound for all that do as well as next for
// the packets; one that sends them round farther may keep more.
//
// It takes O(switches x LIDs).
func leastChanges(prev, next *lft.Routing) (used, short int) {
	f, g := prev.Fabric, next.Fabric
	dist := g.Distances()
	n := g.NumSwitches()
	was := make([]fabric.NodeID, n) // by switch of g, in f
	for s := range was {
		was[s] = fabric.NoNode
		if old, ok := f.SwitchByGUID(g.Node(fabric.NodeID(s)).GUID); ok {
			was[s] = old
		}
	}
	// By switch and port: where the port leads in g if it led there in f.
	const gone = fabric.NodeID(-2)
	to := make([][]fabric.NodeID, n)
	for s := range fabric.NodeID(n) {
		to[s] = make([]fabric.NodeID, 256)
		for num := range to[s] {
			to[s][num] = fabric.NoNode
		}
		if was[s] == fabric.NoNode {
			continue
		}
		for num := fabric.PortNum(1); num <= min(g.Node(s).NumPorts, f.Node(was[s]).NumPorts); num++ {
			before, after := f.Peer(f.Port(was[s], num)), g.Peer(g.Port(s, num))
			switch {
			case before == fabric.NoPort:
			case after == fabric.NoPort || f.Num(before) != g.Num(after) || f.Node(f.Owner(before)).GUID != g.Node(g.Owner(after)).GUID:
				to[s][num] = gone
			case g.IsSwitch(g.Owner(after)):
				to[s][num] = g.Owner(after)
			}
		}
	}
	blocks := (int(g.MaxLID()))/lft.BlockSize + 1
	mark := make([]uint8, n*blocks) // 1: short, 2: used
	length := make([]int32, n)
	forest := lft.NewForest(g)
	for lid := range g.LIDPorts() {
		forest.FindTree(next.Tables, fabric.LID(lid))
		for i, s := range forest.Order {
			if i > 0 {
				length[s] = length[g.Owner(g.Peer(forest.Next[s]))] + 1
			} else {
				length[s] = 0
			}
		}
		for i, s := range forest.Order {
			if was[s] == fabric.NoNode || lid > int(prev.Tables.MaxLID()) {
				continue
			}
			at := &mark[int(s)*blocks+lid/lft.BlockSize]
			switch v := to[s][prev.Tables.Row(was[s])[lid]]; {
			case v == gone:
				*at = 2
			case v >= 0 && i > 0 && int32(dist.To(forest.Order[0])[v])+1 > length[s]:
				*at = max(*at, 1)
			}
		}
	}
	for _, m := range mark {
		if m == 2 {
			used++
		}
		if m > 0 {
			short++
		}
	}
	return used, short
}
