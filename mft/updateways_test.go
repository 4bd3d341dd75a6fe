package mft_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/updown"
)

// cable joins two ports of nodes, by their names.
type cable struct {
	a    string
	from int
	b    string
	to   int
}

// wired is switches of 40 ports, whose names are upper-case, and hosts, and the
// ports of their cables: "SX" is that of S to X, "SX2" that of the second cable.
func wired(t *testing.T, cables ...cable) (*fabric.Fabric, map[string]fabric.PortID) {
	t.Helper()
	var names []string
	for _, c := range cables {
		names = append(names, c.a, c.b)
	}
	slices.Sort(names) // upper case first
	names = slices.Compact(names)
	p := short.Must(gen.NewPlan(len(names), len(names)))(t)
	at := map[string]int{}
	for _, name := range names {
		if strings.ToUpper(name) == name {
			at[name] = p.Switch(40, name)
		} else {
			at[name] = p.CA(1, name)
		}
	}
	for _, c := range cables {
		p.Cable(at[c.a], c.from, at[c.b], c.to)
	}
	f := short.Must(p.Fabric())(t)
	ports := map[string]fabric.PortID{}
	for _, c := range cables {
		for n := range fabric.NodeID(f.NumNodes()) {
			for _, end := range []cable{c, {c.b, c.to, c.a, c.from}} {
				if f.Node(n).Description != end.a {
					continue
				}
				name := end.a + end.b
				if _, again := ports[name]; again {
					name += "2"
				}
				ports[name] = f.Port(n, fabric.PortNum(end.from))
			}
		}
	}
	return f, ports
}

func diamond(t *testing.T) (*fabric.Fabric, map[string]fabric.PortID) {
	t.Helper()
	return wired(t, cable{"S", 3, "X", 1}, cable{"S", 5, "Y", 20}, cable{"X", 2, "R", 7}, cable{"Y", 40, "R", 39},
		cable{"s", 1, "S", 1}, cable{"r", 1, "R", 1}, cable{"S", 33, "Y", 21})
}

func pick(ports map[string]fabric.PortID, names ...string) []fabric.PortID {
	var list []fabric.PortID
	for _, n := range names {
		list = append(list, ports[n])
	}
	slices.Sort(list)
	return list
}

func mustShow(t *testing.T, f *fabric.Fabric, u *mft.Update, want string) {
	t.Helper()
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), show(f, u)); diff != "" {
		t.Error(diff)
	}
}

// TestMovedPath has one sender, s, whose path to r moves from X to Y: first the old path is taken
// out, then the new one put in.
func TestMovedPath(t *testing.T) {
	f, ports := diamond(t)
	s, r := pick(ports, "sS"), pick(ports, "rR")
	old, moved := planOf(f, pick(ports, "SX", "XR", "Rr"), s, r), planOf(f, pick(ports, "SY", "YR", "Rr"), s, r)
	u := mustPlan(t, old, moved)
	floodStages(t, old, moved, u)
	mustShow(t, f, u, `
MLID 0xc001: stages 1 to 2, 1 pairs, faulty false: two copies of a packet of sender "s"[1] go out by "R"[1], after "S"[3], "X"[2] and after "S"[5], "Y"[40]
stage 1: MLID 0xc001, "S", position 0:
stage 1: MLID 0xc001, "X", position 0:
stage 2: MLID 0xc001, "S", position 0: 5
stage 2: MLID 0xc001, "Y", position 2: 40
`)
	if receivers := u.Interrupted[0].Receivers; !slices.Equal(receivers, r) || u.SMPs(0) != 2 {
		t.Errorf("%v miss packets, want %v; %d SMPs", receivers, r, u.SMPs(0))
	}
	mustShow(t, f, mustPlan(t, old, old), "")
}

// TestStayingMembers has a path to r that moves, and one to q that stays.
func TestStayingMembers(t *testing.T) {
	f, ports := wired(t, cable{"s", 1, "S", 1}, cable{"S", 2, "A", 1}, cable{"S", 3, "Q", 1},
		cable{"A", 2, "C", 1}, cable{"A", 3, "D", 1}, cable{"C", 2, "R", 1}, cable{"D", 2, "R", 2}, cable{"R", 3, "r", 1}, cable{"Q", 3, "q", 1})
	s, to := pick(ports, "sS"), pick(ports, "rR", "qQ")
	old := planOf(f, pick(ports, "SA", "SQ", "AC", "CR", "Rr", "Qq"), s, to)
	new := planOf(f, pick(ports, "SA", "SQ", "AD", "DR", "Rr", "Qq"), s, to)
	u := mustPlan(t, old, new)
	floodStages(t, old, new, u)
	if len(u.Stages) != 2 || len(u.Interrupted) != 1 || u.Interrupted[0].Pairs != 1 || !slices.Equal(u.Interrupted[0].Receivers, pick(ports, "rR")) {
		t.Error(show(f, u))
	}

	// Of another group that gets the MLID no member stays.
	a, b := netip.MustParseAddr("ff12:1b3e::1"), netip.MustParseAddr("ff12:1b3e::2")
	old.Trees[0].MGID, new.Trees[0].MGID = a, b
	u = mustPlan(t, old, new)
	floodStages(t, old, new, u)
	if len(u.Interrupted) != 0 || len(u.Stages) != 2 {
		t.Error(show(f, u))
	}
	// A dump does not say which group it is.
	old.Trees = nil
	u = mustPlan(t, old, new)
	if len(u.Interrupted) != 0 {
		t.Errorf("s is in no mask, so that it is no member: %s", show(f, u))
	}
	both := planOf(f, pick(ports, "SA", "AC", "CR", "Rr", "RC", "CA", "AS", "Ss"), nil, nil)
	both.Trees = nil
	moved := pick(ports, "sS", "rR")
	new = planOf(f, pick(ports, "SA", "AD", "DR", "Rr", "RD", "DA", "AS", "Ss"), moved, moved)
	new.Trees[0].MGID = b
	u = mustPlan(t, both, new)
	floodStages(t, both, new, u)
	if len(u.Interrupted) != 1 || u.Interrupted[0].Pairs != 2 {
		t.Error(show(f, u))
	}
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
	_, err := mft.PlanUpdate(t.Context(), planOf(f, nil, nil, nil), planOf(f, round, s, r))
	if err == nil || err.Error() != `MLID 0xc001: the new masks: packets of sender "s"[1] loop: "S"[3], "X"[2], "R"[39], "Y"[20] and "S"[3] again` {
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
		{name: "a new sender that the old masks do not suit", old: planOf(f, round, nil, r), new: planOf(f, oneWay, s, s), stages: 2, start: []mft.MLIDSender{{MLID: 0xC001, Port: s[0]}}},
		{name: "an old sender that the new masks do not suit", old: planOf(f, oneWay, s, s), new: planOf(f, round, nil, r), stages: 2, stop: []mft.MLIDSender{{MLID: 0xC001, Port: s[0]}}},
	} {
		u := mustPlan(t, tt.old, tt.new)
		floodStages(t, tt.old, tt.new, u)
		if !slices.Equal(u.Stop, tt.stop) || !slices.Equal(u.Start, tt.start) || len(u.Stages) != tt.stages || (len(u.Interrupted) > 0) != tt.faulty || tt.faulty && !u.Interrupted[0].Faulty {
			t.Errorf("%s: %+v\n%s", tt.name, u, show(f, u))
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
	want := "old and new tables are for different switches and hosts; want the same nodes in both fabrics"
	if u, err := mft.PlanUpdate(t.Context(), planOf(other.r.Fabric, nil, nil, nil), new); u != nil || err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if u, err := mft.PlanUpdate(ended, old, new); u != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}

	u := mustPlan(t, old, new)
	clear, part, make := u.Stages[0][1], u.Stages[1][0], u.Stages[1][1]
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
		v.Stages, v.Interrupted = tt.stages, nil
		if err := mft.CheckUpdate(t.Context(), old, new, &v); err == nil || err.Error() != tt.want {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}

	// A mask that is cleared and filled again.
	joined := planOf(f, pick(ports, "SX", "XR", "Rr", "SY"), s, r)
	u = mustPlan(t, old, joined)
	grow := u.Stages[0][0]
	gone := write(part, func(w *mft.Write) { w.Ports = nil })
	u.Stages = [][]mft.Write{{grow}, {gone}, {grow}}
	want = `MLID 0xc001: the masks while stage 2: "r"[1] may miss packets from "s"[1]`
	if err := mft.CheckUpdate(t.Context(), old, joined, u); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}

	// Interruptions that are not all told.
	parted := planOf(f, pick(ports, "SY2", "YR", "Rr"), s, r)
	u = mustPlan(t, old, parted)
	told := u.Interrupted[0]
	for _, change := range []func(x *mft.Interruption){
		func(x *mft.Interruption) { x.From = 2 },
		func(x *mft.Interruption) { x.To = 1 },
		func(x *mft.Interruption) { x.Receivers = s },
		func(x *mft.Interruption) { x.MLID++ },
	} {
		x := told
		change(&x)
		u.Interrupted = []mft.Interruption{x}
		var loss *mft.LossError
		if err := mft.CheckUpdate(t.Context(), old, parted, u); !errors.As(err, &loss) || loss.Sender != s[0] || loss.Receiver != r[0] {
			t.Errorf("%+v: %v", x, err)
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
		for _, g := range randomGroups(f, short.Of(8, 1), 7, 4) {
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
				u := mustPlan(t, old, new)
				floodStages(t, old, new, u)
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

// TestUpdateOfGroups plans for many groups, and counts SMPs.
func TestUpdateOfGroups(t *testing.T) {
	r := routed(t, updown.Engine{})(gen.Irregular(gen.IrregularSpec{Switches: 24, Degree: 4, Hosts: 60, Seed: 1}))
	groups := randomGroups(r.Fabric, 40, 6, 1)
	for i := range groups {
		groups[i].Senders = groups[i].Senders[:1+i%6]
	}
	old, new := mustBuild(t, mft.UpdnTree{}, r, groups, mft.Options{}), mustBuild(t, mft.UpdnTree{Order: updown.NewOrder(r.Fabric, []fabric.NodeID{3}).Rank}, r, groups, mft.Options{})
	u := mustPlan(t, old, new)
	if len(u.Interrupted) < 10 {
		t.Fatalf("%d interrupted", len(u.Interrupted))
	}
	for i := range u.Stages {
		smps := map[[3]int]bool{}
		for _, w := range u.Stages[i] {
			smps[[3]int{int(w.Switch), int(w.MLID) / 32, int(w.Position)}] = true
		}
		if u.SMPs(i) != len(smps) || len(smps) == len(u.Stages[i]) {
			t.Errorf("stage %d: %d SMPs, want %d", i+1, u.SMPs(i), len(smps))
		}
	}
}
