package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/state"
)

// packet is a multicast packet on a mesh, by coordinates (x, y).
type packet struct {
	from [2]int
	to   [][2]int
}

// onMesh is a mesh of m columns and n rows with one host on each switch, its XY
// tables, and an MLID for each packet with the union of its XY paths.
func onMesh(t testing.TB, m, n int, packets []packet) (*fabric.Fabric, *lft.Tables, *mft.Plan) {
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
	plan := short.Must(mft.Union{}.Build(context.Background(), &lft.Routing{Engine: "xy", Fabric: f, Tables: tables}, groups, mft.Options{}))(t)
	return f, tables, &mft.Plan{Tables: plan.Tables, Trees: plan.Trees}
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
			return mustCheck(t, &state.State{Fabric: f, Tables: tables, Multicast: mc}, Options{Copying: c})
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
// close a cycle, even with the channels of a split taken as one.
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
	m := &mft.Plan{Tables: mft.NewTables(f)}
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
		if r := mustCheck(t, &state.State{Fabric: f, Tables: tables, Multicast: m}, Options{Copying: tt.copying}); r.Multicast.CreditLoops != tt.loops {
			t.Errorf("%s copying: %d, want %d", tt.copying, r.Multicast.CreditLoops, tt.loops)
		}
	}
}

// TestCopyingOnLanes has packets on several VLs, which are apart only as long as
// switches copy independently: elsewhere they hold ports.
func TestCopyingOnLanes(t *testing.T) {
	// A switch with hosts a, b, c and d on ports 1 to 4. SL 0 and 1 have VL 0 and 1
	// on the way into the switch, and out of it unless merged.
	var w wiring
	s := w.node(fabric.Switch, 4)
	for range 4 {
		w.cable(w.node(fabric.CA, 1), s)
	}
	f := number(t, w.fabric(t), nil)
	sw, _ := f.NodeByGUID(0x5000)
	host := func(p fabric.PortNum) fabric.PortID { return f.Peer(f.Port(sw, p)) }
	tables := lft.NewTables(1, f.MaxLID())
	for _, tt := range []struct {
		name   string
		merged bool
		second fabric.PortNum // sender of the second packet
		want   map[Copying]int
	}{
		{"two VLs from two hosts", false, 2, map[Copying]int{Independent: 0, Reserving: 0, LockStep: 1}},
		{"two VLs from one host become one", true, 1, map[Copying]int{Independent: 0, Reserving: 0, LockStep: 1}},
	} {
		sl2vl := lft.NewSL2VL(f, lft.IdentityVLs(2))
		if tt.merged {
			for in, out := range sl2vl.PortPairs() {
				if f.IsSwitch(f.Owner(out)) {
					sl2vl.Set(in, out, lft.ConstantVL(0))
				}
			}
		}
		m := &mft.Plan{Tables: mft.NewTables(f)}
		receivers := []fabric.PortID{host(3), host(4)}
		slices.Sort(receivers)
		for i, from := range []fabric.PortNum{1, tt.second} {
			mlid := mft.MinMLID + 1 + fabric.LID(i)
			m.Tables.Add(mlid, []fabric.PortID{f.Port(sw, 3), f.Port(sw, 4)})
			m.Trees = append(m.Trees, mft.Tree{Group: i, Name: fmt.Sprint(i), MLID: mlid, SL: fabric.SL(i), Senders: []fabric.PortID{host(from)}, Receivers: receivers})
		}
		for c, want := range tt.want {
			r := mustCheck(t, &state.State{Fabric: f, Tables: tables, Multicast: m, SL2VL: sl2vl}, Options{Copying: c})
			if r.Multicast.CreditLoops != want || r.Multicast.Missing+r.Multicast.Stray > 0 {
				t.Errorf("%s, %s copying: %+v", tt.name, c, r.Multicast)
			}
		}
	}
}

// TestReservingOnLanes has a cycle that goes through two VLs of one port: a packet
// that waits for a credit on one holds the port for the other as well.
func TestReservingOnLanes(t *testing.T) {
	// A ring of three switches, clockwise: port 1 leads on, port 2 comes from the one
	// before, port 3 has the host, port 4 of the first one more host.
	var w wiring
	switches := make([]int, 3)
	for i := range switches {
		switches[i] = w.node(fabric.Switch, 4)
	}
	connect := func(a int, p fabric.PortNum, b int, q fabric.PortNum) { w.fail(w.b.Connect(a, p, b, q, fabric.Link{})) }
	for i, s := range switches {
		connect(s, 1, switches[(i+1)%3], 2)
	}
	for _, s := range switches {
		connect(w.node(fabric.CA, 1), 1, s, 3)
	}
	connect(w.node(fabric.CA, 1), 1, switches[0], 4)
	f := number(t, w.fabric(t), nil)
	port := func(i int, p fabric.PortNum) fabric.PortID {
		n, _ := f.NodeByGUID(0x5000 + 0x100*fabric.GUID(switches[i]))
		return f.Port(n, p)
	}
	// The unicast tables send everything clockwise round the ring, on VL 1.
	// Only what crosses two cables from the first switch on has VL 2 on the first of
	// them. So no packet holds VL 1 of it and waits for the next.
	tables := lft.NewTables(3, f.MaxLID())
	for i := range switches {
		for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
			root, last := toward(f, lid)
			n := f.Owner(port(i, 1))
			if tables.Row(n)[lid] = 1; root == n {
				tables.Row(n)[lid] = last
			}
		}
	}
	sls := lft.NewPathSLs(3, f.MaxLID())
	for i := range switches {
		row := make([]fabric.SL, int(f.MaxLID())+1)
		n := f.Owner(port(i, 1))
		for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
			row[lid] = 1
			if root, _ := toward(f, lid); i == 0 && root == f.Owner(port(2, 1)) {
				row[lid] = 2
			}
		}
		sls.SetRow(row, n)
	}
	sl2vl := lft.NewSL2VL(f, lft.IdentityVLs(4))
	back := lft.IdentityVLs(4)
	back[2] = 1
	for in, out := range sl2vl.PortPairs() {
		if out == port(1, 1) {
			sl2vl.Set(in, out, back)
		}
	}
	m := &mft.Plan{Tables: mft.NewTables(f)}
	// From the first switch's second host to the second switch's host and the first's
	// own, on VL 2.
	masks := []fabric.PortID{port(0, 1), port(0, 3), port(1, 3)}
	slices.Sort(masks)
	m.Tables.Add(mft.MinMLID+1, masks)
	receivers := []fabric.PortID{f.Peer(port(0, 3)), f.Peer(port(1, 3))}
	slices.Sort(receivers)
	m.Trees = []mft.Tree{{Name: "g", MLID: mft.MinMLID + 1, SL: 2, Senders: []fabric.PortID{f.Peer(port(0, 4))}, Receivers: receivers}}
	for c, loops := range map[Copying]bool{Independent: false, Reserving: true, LockStep: true} {
		r := mustCheck(t, &state.State{Fabric: f, Tables: tables, Multicast: m, SL2VL: sl2vl, PathSLs: sls}, Options{Copying: c})
		if r.CreditLoops.Count > 0 || (r.Multicast.CreditLoops > 0) != loops {
			t.Errorf("%s copying: %d credit loops of unicast, %+v", c, r.CreditLoops.Count, r.Multicast)
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
	short.Equal(t, Copying(9).String(), "copying 9")
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
		r := mustCheck(t, &state.State{Fabric: f, Tables: tables}, Options{Buffer: tt.Buffer})
		got := slices.ContainsFunc(r.Findings, func(x Finding) bool { return x.Rule == BufferTooSmall && x.Count == 64 })
		if tt.Needed() != tt.needed || got != tt.found {
			t.Errorf("%+v: needs %d, found %t", tt.Buffer, tt.Needed(), got)
		}
	}
}
