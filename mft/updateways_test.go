package mft_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/updown"
)

// diamond is switches S, X, Y and R of 40 ports, hosts s and r, and the ports by
// which they are joined: "SX" is that of S to X.
func diamond(t *testing.T) (*fabric.Fabric, map[string]fabric.PortID) {
	t.Helper()
	p, err := gen.NewPlan(4, 2)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"S", "X", "Y", "R", "s", "r"}
	at := map[string]int{}
	for i, name := range names {
		if i < 4 {
			at[name] = p.Switch(40, name)
		} else {
			at[name] = p.CA(1, name)
		}
	}
	type cable struct {
		a    string
		from int
		b    string
		to   int
	}
	cables := []cable{{"S", 3, "X", 1}, {"S", 5, "Y", 20}, {"X", 2, "R", 7}, {"Y", 40, "R", 39}, {"s", 1, "S", 1}, {"r", 1, "R", 1}, {"S", 33, "Y", 21}}
	for _, c := range cables {
		p.Cable(at[c.a], c.from, at[c.b], c.to)
	}
	f, err := p.Fabric()
	if err != nil {
		t.Fatal(err)
	}
	ports := map[string]fabric.PortID{}
	for i, c := range cables {
		a, b := c.a+c.b, c.b+c.a
		if i == len(cables)-1 {
			a, b = a+"2", b+"2"
		}
		node := func(name string) fabric.NodeID {
			for n := range fabric.NodeID(f.NumNodes()) {
				if f.Node(n).Description == name {
					return n
				}
			}
			t.Fatalf("no %s", name)
			return 0
		}
		ports[a], ports[b] = f.Port(node(c.a), fabric.PortNum(c.from)), f.Port(node(c.b), fabric.PortNum(c.to))
	}
	return f, ports
}

func pick(ports map[string]fabric.PortID, names ...string) []fabric.PortID {
	var list []fabric.PortID
	for _, n := range names {
		list = append(list, ports[n])
	}
	slices.Sort(list)
	return list
}

func mustPrint(t *testing.T, u *mft.Update, want string) {
	t.Helper()
	if diff := cmp.Diff(strings.TrimSpace(want), strings.Join(slices.Collect(u.Lines()), "\n")); diff != "" {
		t.Error(diff)
	}
}

// TestMovedPath has one sender, s, whose path to r moves from X to Y: first the
// masks where no packet comes, then the switch where paths part, last those where
// no packet comes any more. Nothing is lost, but when the two ports of S are
// in two positions, which cannot be written at once.
func TestMovedPath(t *testing.T) {
	f, ports := diamond(t)
	s, r := pick(ports, "sS"), pick(ports, "rR")
	old := planOf(f, pick(ports, "SX", "XR", "Rr"), s, r)

	u := mustPlan(t, old, planOf(f, pick(ports, "SY", "YR", "Rr"), s, r), mft.UpdateOptions{})
	floodStages(t, old, u)
	mustPrint(t, u, `
stage 1 of 3: 1 write in 1 SMP, in any order
	0x0000000000200002 "Y" MLID 0xc001 position 2: ports 40
stage 2 of 3: 1 write in 1 SMP, in any order
	0x0000000000200000 "S" MLID 0xc001 position 0: ports 5
stage 3 of 3: 1 write in 1 SMP, in any order
	0x0000000000200001 "X" MLID 0xc001 position 0: no ports`)

	parted := planOf(f, pick(ports, "SY2", "YR", "Rr"), s, r)
	u = mustPlan(t, old, parted, mft.UpdateOptions{})
	floodStages(t, old, u)
	mustPrint(t, u, `
MLID 0xc001: interrupted from stage 1 to 2, 1 (sender, receiver) pair; written at once, packets from "s"[1] can leave "R"[1] twice
	"r"[1] may miss packets
stage 1 of 2: 2 writes in 2 SMPs, in any order
	0x0000000000200000 "S" MLID 0xc001 position 0: no ports
	0x0000000000200002 "Y" MLID 0xc001 position 2: ports 40
stage 2 of 2: 2 writes in 2 SMPs, in any order
	0x0000000000200000 "S" MLID 0xc001 position 2: ports 33
	0x0000000000200001 "X" MLID 0xc001 position 0: no ports`)

	u = mustPlan(t, old, parted, mft.UpdateOptions{Fresh: []fabric.LID{0xC0FF}})
	floodStages(t, old, u)
	mustPrint(t, u, `
stage 1 of 2: 3 writes in 3 SMPs, in any order
	0x0000000000200000 "S" MLID 0xc0ff position 2: ports 33
	0x0000000000200002 "Y" MLID 0xc0ff position 2: ports 40
	0x0000000000200003 "R" MLID 0xc0ff position 0: ports 1
members of MLID 0xc001 go to 0xc0ff, receivers first
stage 2 of 2: 3 writes in 3 SMPs, in any order
	0x0000000000200000 "S" MLID 0xc001 position 0: no ports
	0x0000000000200001 "X" MLID 0xc001 position 0: no ports
	0x0000000000200003 "R" MLID 0xc001 position 0: no ports`)

	mustPrint(t, mustPlan(t, old, old, mft.UpdateOptions{}), "no masks change")
}

// TestSendersOfOneState has senders that only the old or the new masks suit.
func TestSendersOfOneState(t *testing.T) {
	f, ports := diamond(t)
	s, r := pick(ports, "sS"), pick(ports, "rR")
	// From s all goes by X, and from r by Y; each way round is a loop to the
	// other's packets.
	round := pick(ports, "SX", "XR", "RY", "YS", "Rr")
	oneWay := pick(ports, "RX", "XS", "Ss")
	if v := newFlood(f, round, s[0]).worst(s[0], r); v != "loop" {
		t.Fatalf("%s, want a loop", v)
	}
	if v := newFlood(f, oneWay, s[0]).worst(s[0], nil) + newFlood(f, oneWay, r[0]).worst(r[0], s); v != "okok" {
		t.Fatalf("%s, want masks that suit both", v)
	}
	_, err := mft.PlanUpdate(t.Context(), planOf(f, nil, nil, nil), planOf(f, round, s, r), mft.UpdateOptions{})
	var unsafe *mft.UnsafeError
	if !errors.As(err, &unsafe) || !unsafe.Loop || err.Error() != `MLID 0xc001: the new masks: packets from "s"[1] can loop through "S"[3]` {
		t.Errorf("%v", err)
	}

	sender := []fabric.PortID{f.PortBase(f.Owner(ports["XS"]))} // port 0 of X
	straight := pick(ports, "XR", "Rr")
	for _, tt := range []struct {
		name     string
		old, new *mft.Plan
		stop     []mft.MLIDSender
		start    []mft.MLIDSender
		faulty   bool
		stages   int
	}{
		{name: "a sender that only had the old masks", old: planOf(f, oneWay, s, s), new: planOf(f, nil, nil, nil), stages: 1},
		{name: "the old masks loop", old: planOf(f, round, s, r), new: planOf(f, straight, sender, r), stages: 1, faulty: true, start: []mft.MLIDSender{{MLID: 0xC001, Port: sender[0]}}},
		{name: "a new sender that the old masks do not suit", old: planOf(f, round, nil, r), new: planOf(f, oneWay, s, s), stages: 1, start: []mft.MLIDSender{{MLID: 0xC001, Port: s[0]}}},
		{name: "an old sender that the new masks do not suit", old: planOf(f, oneWay, s, s), new: planOf(f, round, nil, r), stages: 1, stop: []mft.MLIDSender{{MLID: 0xC001, Port: s[0]}}},
	} {
		u := mustPlan(t, tt.old, tt.new, mft.UpdateOptions{})
		floodStages(t, tt.old, u)
		if !slices.Equal(u.Stop, tt.stop) || !slices.Equal(u.Start, tt.start) || len(u.Stages) != tt.stages || (len(u.Interrupted) > 0) != tt.faulty || tt.faulty && !u.Interrupted[0].Faulty {
			t.Errorf("%s: %+v\n%s", tt.name, u, strings.Join(slices.Collect(u.Lines()), "\n"))
		}
	}
}

// TestUpdateErrors has plans that do not fit each other and orders that are
// wrong.
func TestUpdateErrors(t *testing.T) {
	f, ports := diamond(t)
	s, r := pick(ports, "sS"), pick(ports, "rR")
	old, new := planOf(f, pick(ports, "SX", "XR", "Rr"), s, r), planOf(f, pick(ports, "SY", "YR", "Rr"), s, r)
	other := newGrid(t, 3, 3)
	for _, tt := range []struct {
		old  *mft.Plan
		opt  mft.UpdateOptions
		want string
	}{
		{planOf(other.r.Fabric, nil, nil, nil), mft.UpdateOptions{}, "old and new tables are for different switches and hosts; want the same nodes in both fabrics"},
		{old, mft.UpdateOptions{Fresh: []fabric.LID{0xBFFF}}, "fresh MLID 0xbfff, want 0xc000 to 0xfffe"},
		{old, mft.UpdateOptions{Fresh: []fabric.LID{0xC002, 0xC003, 0xC002}}, "fresh MLID 0xc002 twice"},
		{old, mft.UpdateOptions{Fresh: []fabric.LID{0xC001}}, "MLID 0xc001 is not fresh: it has masks"},
	} {
		if u, err := mft.PlanUpdate(t.Context(), tt.old, new, tt.opt); u != nil || err == nil || err.Error() != tt.want {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if u, err := mft.PlanUpdate(ended, old, new, mft.UpdateOptions{}); u != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}

	u := mustPlan(t, old, new, mft.UpdateOptions{})
	make, part, clear := u.Stages[0][0], u.Stages[1][0], u.Stages[2][0]
	write := func(w mft.Write, change func(*mft.Write)) mft.Write {
		change(&w)
		return w
	}
	for _, tt := range []struct {
		stages [][]mft.Write
		want   string
	}{
		{[][]mft.Write{{part}, {make}, {clear}}, `MLID 0xc001: the masks while stage 1: "r"[1] may miss packets from "s"[1]`},
		{[][]mft.Write{{make, part, clear}}, `MLID 0xc001: the masks while stage 1: "r"[1] may miss packets from "s"[1]`},
		{[][]mft.Write{{make}, {write(part, func(w *mft.Write) { w.Ports = pick(ports, "SX", "SY") })}}, `MLID 0xc001: the masks while stage 2: packets from "s"[1] can leave "R"[1] twice`},
		{[][]mft.Write{{make}, {part}}, `MLID 0xc001: "X"[2] in the end is not as the new tables have it`},
		{[][]mft.Write{{make, make}, {part}, {clear}}, `MLID 0xc001: stage 1 writes position 2 of "Y" twice`},
		{[][]mft.Write{{write(make, func(w *mft.Write) { w.MLID = 0x12 })}}, "a write of MLID 0x0012, want 0xc000 to 0xfffe"},
		{[][]mft.Write{{write(make, func(w *mft.Write) { w.Switch = 4 })}}, "MLID 0xc001: a write to node 4, want a switch, 0 to 3"},
		{[][]mft.Write{{write(make, func(w *mft.Write) { w.Position = 3 })}}, `MLID 0xc001: a write to position 3 of "Y", want 0 to 2`},
		{[][]mft.Write{{write(make, func(w *mft.Write) { w.Position = 1 })}}, `MLID 0xc001: a write to position 1 of "Y" has other ports than 16 to 31, ascending`},
	} {
		v := *u
		v.Stages = tt.stages
		if err := mft.CheckUpdate(t.Context(), old, &v); err == nil || err.Error() != tt.want {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
}

// TestUpdateOfSchemes goes between plans of several schemes and routings, with
// members that join and leave, on fabrics of all kinds.
func TestUpdateOfSchemes(t *testing.T) {
	fabrics := map[string][]*lft.Routing{}
	list := routings(t)
	for _, name := range slices.Sorted(maps.Keys(list)) {
		kind, _, _ := strings.Cut(name, "/")
		switch name {
		case "even torus/xy":
			kind = "torus"
		case "torus/xy":
			kind = "odd torus"
		}
		fabrics[kind] = append(fabrics[kind], list[name])
	}
	all := map[string]int{}
	for kind, routings := range fabrics {
		f := routings[0].Fabric
		rnd := rand.New(rand.NewPCG(3, 0))
		kinds := map[string]int{}
		for _, g := range randomGroups(f, 8, 7, 4) {
			g.MLID, g.Senders = 0xC001, g.Senders[:1+rnd.IntN(4)]
			later := g
			k := rnd.IntN(7)
			later.Receivers = slices.Delete(slices.Clone(g.Receivers), k, k+1)
			if p := f.CAPorts()[rnd.IntN(len(f.CAPorts()))]; !slices.Contains(g.Receivers, p) {
				later.Receivers = append(later.Receivers, p)
				slices.Sort(later.Receivers)
			}
			var plans []*mft.Plan
			for _, r := range routings {
				for _, s := range []mft.Scheme{mft.Union{}, mft.UnionMerge{}, mft.UpdnTree{}, mft.OpenSM{}} {
					for _, group := range []mft.Group{g, later} {
						p, err := s.Build(t.Context(), r, []mft.Group{group}, mft.Options{})
						var no *mft.RefusedError
						if errors.As(err, &no) {
							continue
						}
						if err != nil {
							t.Fatal(err)
						}
						plans = append(plans, p)
					}
				}
			}
			for range 6 {
				old, new := plans[rnd.IntN(len(plans))], plans[rnd.IntN(len(plans))]
				u := mustPlan(t, old, new, mft.UpdateOptions{})
				floodStages(t, old, u)
				kinds[count(u)]++
			}
		}
		t.Logf("%s: %v", kind, kinds)
		for name, n := range kinds {
			all[name] += n
		}
	}
	for _, name := range []string{"1 stages, 0 interrupted", "2 stages, 1 interrupted"} {
		if all[name] == 0 {
			t.Errorf("none with %s: %v", name, all)
		}
	}
}

func count(u *mft.Update) string {
	return fmt.Sprintf("%d stages, %d interrupted", len(u.Stages), len(u.Interrupted))
}

// TestUpdateOnCPUs wants the same update on any number of CPUs, and fresh MLIDs
// where most pairs would lose packets.
func TestUpdateOnCPUs(t *testing.T) {
	r := routed(t, updown.Engine{})(gen.Irregular(gen.IrregularSpec{Switches: 24, Degree: 4, Hosts: 60, Seed: 1}))
	groups := randomGroups(r.Fabric, 40, 6, 1)
	for i := range groups {
		groups[i].Senders = groups[i].Senders[:1+i%6]
	}
	old, new := mustBuild(t, mft.UpdnTree{}, r, groups, mft.Options{}), mustBuild(t, mft.UpdnTree{Order: updown.NewOrder(r.Fabric, []fabric.NodeID{3}).Rank}, r, groups, mft.Options{})
	interrupted := mustPlan(t, old, new, mft.UpdateOptions{}).Interrupted
	if len(interrupted) < 10 {
		t.Fatalf("%d interrupted", len(interrupted))
	}
	slices.SortStableFunc(interrupted, func(a, b mft.Interruption) int { return b.Pairs - a.Pairs })
	moves := []mft.Move{{From: interrupted[0].MLID, To: 0xE000, After: 1}, {From: interrupted[1].MLID, To: 0xE001, After: 1}}
	slices.SortFunc(moves, func(a, b mft.Move) int { return int(a.From) - int(b.From) })

	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var first *mft.Update
	for _, cpus := range []int{1, 2, 7} {
		runtime.GOMAXPROCS(cpus)
		u := mustPlan(t, old, new, mft.UpdateOptions{Fresh: []fabric.LID{0xE001, 0xE000}})
		if first == nil {
			first = u
		}
		if diff := cmp.Diff(first, u, cmpopts.IgnoreFields(mft.Update{}, "Result")); diff != "" {
			t.Errorf("%d CPUs:\n%s", cpus, diff)
		}
	}
	if !slices.Equal(first.Moves, moves) || len(first.Interrupted) != len(interrupted)-2 {
		t.Errorf("moves %v, want %v; %d interrupted", first.Moves, moves, len(first.Interrupted))
	}
	for i := range first.Stages {
		smps := map[[3]int]bool{}
		for _, w := range first.Stages[i] {
			smps[[3]int{int(w.Switch), int(w.MLID) / 32, int(w.Position)}] = true
		}
		if first.SMPs(i) != len(smps) || len(smps) == len(first.Stages[i]) {
			t.Errorf("stage %d: %d SMPs, want %d", i+1, first.SMPs(i), len(smps))
		}
	}
}
