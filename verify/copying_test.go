package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
)

// packet is a multicast packet on a mesh, by coordinates (x, y).
type packet struct {
	from [2]int
	to   [][2]int
}

// onMesh is a mesh of m columns and n rows with one host on each switch, its XY
// tables, and an MLID for each packet with the union of its XY paths.
func onMesh(t testing.TB, m, n int, packets []packet) (*fabric.Fabric, *lft.Tables, *Multicast) {
	t.Helper()
	f := xMesh(t, m, n, 0)
	tables := xyTables(t, f, m, n, func(fabric.LID) bool { return false })
	host := func(at [2]int) fabric.PortID {
		return f.Peer(f.Port(fabric.NodeID(at[0]*n+at[1]), 5))
	}
	var groups []mft.Group
	for i, p := range packets {
		g := mft.Group{Name: fmt.Sprintf("packet %d", i+1), Senders: []fabric.PortID{host(p.from)}}
		for _, at := range p.to {
			g.Receivers = append(g.Receivers, host(at))
		}
		slices.Sort(g.Receivers)
		groups = append(groups, g)
	}
	plan, err := mft.Union{}.Build(context.Background(), &lft.Routing{Engine: "xy", Fabric: f, Tables: tables}, groups, mft.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f, tables, &Multicast{Tables: plan.Tables, Trees: plan.Trees}
}

// TestCopying has the deadlocks of G-X12 by what a switch does with copies. All
// are safe with independent copying, as fixture D5 says. D1 and D2 are for worms,
// D3 for reserving switches, D4 for those that copy in lock-step.
func TestCopying(t *testing.T) {
	for _, tt := range []struct {
		name    string
		m, n    int
		packets []packet
		unsafe  []Copying
		safe    []Copying
	}{
		{"D1", 1, 4, []packet{
			{[2]int{0, 1}, [][2]int{{0, 0}, {0, 3}}},
			{[2]int{0, 2}, [][2]int{{0, 0}, {0, 3}}},
		}, []Copying{Wormhole}, []Copying{Independent}},
		{"D2", 2, 2, []packet{
			{[2]int{0, 0}, [][2]int{{0, 1}, {1, 1}}},
			{[2]int{1, 0}, [][2]int{{0, 1}, {1, 1}}},
		}, []Copying{Wormhole}, []Copying{Independent}},
		{"D3", 3, 4, []packet{
			{[2]int{1, 3}, [][2]int{{1, 0}}},
			{[2]int{0, 1}, [][2]int{{1, 2}, {1, 0}}},
			{[2]int{2, 2}, [][2]int{{1, 3}, {1, 1}}},
			{[2]int{1, 1}, [][2]int{{1, 3}}},
		}, []Copying{Reserving}, []Copying{Independent}},
		{"D4", 2, 4, []packet{
			{[2]int{0, 0}, [][2]int{{1, 1}, {1, 3}}},
			{[2]int{0, 1}, [][2]int{{1, 3}}},
			{[2]int{0, 1}, [][2]int{{1, 3}, {1, 1}}},
		}, []Copying{LockStep}, []Copying{Independent}},
		{"one packet", 4, 4, []packet{
			{[2]int{1, 1}, [][2]int{{0, 0}, {0, 3}, {1, 0}, {1, 3}, {3, 0}, {3, 3}}},
		}, nil, []Copying{Independent, Reserving, LockStep, Wormhole}},
		{"packets of one host after each other", 4, 4, []packet{
			{[2]int{1, 1}, [][2]int{{0, 0}, {0, 3}, {1, 0}, {3, 3}}},
			{[2]int{1, 1}, [][2]int{{0, 0}, {1, 3}, {3, 0}, {3, 3}}},
		}, nil, []Copying{Independent, Reserving, LockStep, Wormhole}},
		{"one-destination packets", 4, 4, []packet{
			{[2]int{0, 0}, [][2]int{{3, 3}}},
			{[2]int{3, 3}, [][2]int{{0, 0}}},
			{[2]int{0, 3}, [][2]int{{3, 0}}},
		}, nil, []Copying{Independent, Reserving, LockStep, Wormhole}},
	} {
		f, _, mc := onMesh(t, tt.m, tt.n, tt.packets)
		// The fixtures are multicast alone.
		tables := lft.NewTables(f.NumSwitches(), f.MaxLID())
		check := func(c Copying) *Result {
			mc.Copying = c
			return mustCheck(t, f, tables, Options{Multicast: mc})
		}
		for _, c := range tt.unsafe {
			r := check(c)
			if r.Multicast.CreditLoops == 0 || !slices.ContainsFunc(r.Findings, func(x Finding) bool {
				return x.Rule == MulticastCopying && len(x.Witness) >= 2 && strings.Contains(x.Message, c.String()+" copying")
			}) {
				t.Errorf("%s with %s copying: %d credit loops", tt.name, c, r.Multicast.CreditLoops)
			}
			if r.Certificate() != nil {
				t.Errorf("%s with %s copying has a certificate", tt.name, c)
			}
		}
		for _, c := range tt.safe {
			if r := check(c); r.Multicast.CreditLoops != 0 || r.Multicast.Missing+r.Multicast.Stray+r.Multicast.Duplicates != 0 {
				t.Errorf("%s with %s copying: %+v, %v", tt.name, c, r.Multicast, r.Findings)
			}
		}
	}
}

// TestWormsThatMeet has two worms that split at different switches and go to the
// same two hosts: each can hold one of them and wait for the other. No dependencies
// close a circle, even with the channels of a split taken as one.
func TestWormsThatMeet(t *testing.T) {
	// Two switches a and b, each cabled to both of c and d, which have a host each.
	var w wiring
	a, b, c, d := w.node(fabric.Switch, 8), w.node(fabric.Switch, 8), w.node(fabric.Switch, 8), w.node(fabric.Switch, 8)
	hosts := make([]int, 4)
	for i, s := range []int{a, b, c, d} {
		hosts[i] = w.node(fabric.CA, 1)
		w.cable(hosts[i], s)
	}
	w.cable(a, c)
	w.cable(a, d)
	w.cable(b, c)
	w.cable(b, d)
	f := number(t, w.fabric(t), nil)
	port := func(i int) fabric.PortID {
		n, _ := f.NodeByGUID(0xca00000 + 0x100*fabric.GUID(hosts[i]))
		return f.Port(n, 1)
	}
	at := func(s int, p fabric.PortNum) fabric.PortID {
		n, _ := f.NodeByGUID(0x5000 + 0x100*fabric.GUID(s))
		return f.Port(n, p)
	}
	m := &Multicast{Tables: mft.NewTables(f)}
	for i, s := range []int{a, b} {
		mlid := mft.MinMLID + 1 + fabric.LID(i)
		ports := []fabric.PortID{at(s, 2), at(s, 3), at(c, 1), at(d, 1)}
		slices.Sort(ports)
		m.Tables.Add(mlid, ports)
		receivers := []fabric.PortID{port(2), port(3)}
		slices.Sort(receivers)
		m.Trees = append(m.Trees, mft.Tree{Group: i, Name: fmt.Sprint(i), MLID: mlid, Senders: []fabric.PortID{port(i)}, Receivers: receivers})
	}
	tables := lft.NewTables(f.NumSwitches(), f.MaxLID())
	for _, tt := range []struct {
		copying Copying
		loops   int
	}{{Independent, 0}, {Reserving, 0}, {LockStep, 0}, {Wormhole, 2}} {
		m.Copying = tt.copying
		if r := mustCheck(t, f, tables, Options{Multicast: m}); r.Multicast.CreditLoops != tt.loops {
			t.Errorf("%s copying: %d, want %d", tt.copying, r.Multicast.CreditLoops, tt.loops)
		}
	}
}

func TestCopyingNames(t *testing.T) {
	for c := Independent; c <= Wormhole; c++ {
		text, err := c.MarshalText()
		var back Copying
		if err != nil || back.UnmarshalText(text) != nil || back != c {
			t.Errorf("%s comes back as %s", c, back)
		}
	}
	var c Copying
	if err := c.UnmarshalText([]byte("telepathy")); err == nil || !strings.Contains(err.Error(), "want one of [independent reserving lock-step wormhole]") {
		t.Error(err)
	}
	if s := Copying(9).String(); s != "copying 9" {
		t.Error(s)
	}
}

// TestBuffer has rule B5: a packet must fit.
func TestBuffer(t *testing.T) {
	f, tables := ring(t, 3)
	for _, tt := range []struct {
		Buffer
		needed int
		found  bool
	}{
		{Buffer{4096, 65}, 66, true}, {Buffer{4096, 66}, 66, false}, {Buffer{256, 6}, 6, false}, {Buffer{256, 5}, 6, true}, {Buffer{2048, 0}, 34, false},
	} {
		r := mustCheck(t, f, tables, Options{Buffer: tt.Buffer})
		got := slices.ContainsFunc(r.Findings, func(x Finding) bool { return x.Rule == BufferTooSmall && x.Count == 64 })
		if tt.Needed() != tt.needed || got != tt.found {
			t.Errorf("%+v: needs %d, found %t", tt.Buffer, tt.Needed(), got)
		}
	}
}
