package sim

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
)

func (p *paper) network() Network {
	return Network{State: state.State{Fabric: p.g.Fabric, Tables: p.g.tables, Multicast: p.plan}}
}

// TestBurst has the experiment of the mesh papers as a Burst, as messages that are
// sent one by one, and as a trace: the same times to the picosecond.
func TestBurst(t *testing.T) {
	g := newGrid(t, 6, 6)
	for _, unicast := range []bool{false, true} {
		p := newPaper(t, g, 14, 20, 3)
		_, want := p.run(t, unicast, 512, nil, 1)
		cfg := oldLinks()
		cfg.PacketBuffers(1, 512)
		m, err := Burst(t.Context(), p.network(), cfg, Traffic{
			Bytes: 512, Multicast: 1, Trees: p.plan.Trees, Repeat: unicast, SLs: 1,
		}, 1, 0)
		if err != nil || m.Time != want || m.All.Max != want || m.Incomplete != 0 || m.TimeUp {
			t.Errorf("unicast %t: %v; want %s", unicast, err, want)
			continue
		}
		if m.Multicast.Count != 14 || m.Unicast.Count != 0 || m.Receiver.Count != m.Counts.Delivered {
			t.Errorf("unicast %t: %d messages, %d copies, %d deliveries", unicast, m.Multicast.Count, m.Receiver.Count, m.Counts.Delivered)
		}
		var trace []Timed
		for _, src := range g.CAPorts() {
			if !slices.Contains(p.sources, src) {
				continue
			}
			if !unicast {
				trace = append(trace, Timed{0, Message{Src: src, DLID: p.mlid[src], Bytes: 512}})
				continue
			}
			to := []fabric.LID{}
			for _, d := range p.group {
				if d != src {
					to = append(to, g.LID(d))
				}
			}
			slices.Sort(to)
			for _, lid := range to {
				trace = append(trace, Timed{0, Message{Src: src, DLID: lid, Bytes: 512}})
			}
		}
		played, err := Play(t.Context(), p.network(), cfg, trace, 0)
		if err != nil || played.Time != want || played.Counts != m.Counts || played.Incomplete != 0 {
			t.Fatalf("unicast %t: %v; want %s and %+v", unicast, err, want, m.Counts)
		}
		if !unicast && (played.Multicast.Mean() != m.Multicast.Mean() || played.Receiver != m.Receiver) {
			t.Errorf("played %g ps, want %g", played.Multicast.Mean(), m.Multicast.Mean())
		}
		if unicast && (played.Unicast.Count != m.Receiver.Count || played.Unicast.Max != want || played.Multicast.Count != 0) {
			t.Errorf("%d messages, want %d; %s", played.Unicast.Count, m.Receiver.Count, played.Unicast.Max)
		}
	}
}

// sends gives the messages that hosts send at time 0.
func sends(t *testing.T, net Network, traffic Traffic, messages int) []Message {
	t.Helper()
	traffic.Load = 1
	b := &burst{open{Traffic: traffic, inTurn: true, out: &Measured{}}, messages}
	s := mustNew(t, net, oldLinks(), nil)
	short.Check(t, b.check(s))
	b.Wake(s, 0)
	if b.err != nil {
		t.Fatal(b.err)
	}
	var out []Message
	for _, p := range s.packets.items {
		out = append(out, p.msg)
	}
	return out
}

// TestSources has one, several and all hosts send to a group.
func TestSources(t *testing.T) {
	g := newGrid(t, 4, 4)
	p := newPaper(t, g, 12, 9, 1)
	var before []fabric.PortID
	for _, n := range []int{1, 4, 11, 12, 0} {
		var now []fabric.PortID
		for _, m := range sends(t, p.network(), Traffic{Bytes: 64, Multicast: 1, Trees: p.plan.Trees, Sources: n, Seed: 4}, 1) {
			if !slices.Contains(p.sources, m.Src) || slices.Contains(now, m.Src) {
				t.Fatalf("%d sources: port %d sends", n, m.Src)
			}
			now = append(now, m.Src)
		}
		want := n
		if n == 0 {
			want = 12
		}
		short.Equal(t, len(now), want, "sources")
		for _, src := range before {
			if !slices.Contains(now, src) {
				t.Errorf("port %d is one of fewer sources, and not of %d", src, n)
			}
		}
		before = now
	}
	other := sends(t, p.network(), Traffic{Bytes: 64, Multicast: 1, Trees: p.plan.Trees, Sources: 1, Seed: 5}, 1)
	again := sends(t, p.network(), Traffic{Bytes: 64, Multicast: 1, Trees: p.plan.Trees, Sources: 1, Seed: 4}, 1)
	if other[0].Src == again[0].Src {
		t.Error("seeds 4 and 5 draw the same source: choose others here")
	}
}

// TestRepeat has repeated unicast go by ascending LIDs, and its SLs.
func TestRepeat(t *testing.T) {
	g := newGrid(t, 4, 4)
	p := newPaper(t, g, 1, 8, 2)
	self := g.LID(p.sources[0])
	var ascending []fabric.LID
	for _, d := range p.group {
		if g.LID(d) != self {
			ascending = append(ascending, g.LID(d))
		}
	}
	slices.Sort(ascending)
	traffic := Traffic{Bytes: 64, Multicast: 1, Trees: p.plan.Trees, Repeat: true, SLs: 3, Seed: 6}
	var got []fabric.LID
	for i, m := range sends(t, p.network(), traffic, 2) {
		got = append(got, m.DLID)
		if want := (int(self) - 1 + i) % 3; int(m.SL) != want {
			t.Errorf("message %d has SL %d, want %d", i, m.SL, want)
		}
	}
	if want := slices.Concat(ascending, ascending); !slices.Equal(got, want) {
		t.Errorf("%d, want %d", got, want)
	}
}

// TestShares has hosts that may not send to groups send their unicast alone.
func TestShares(t *testing.T) {
	g := newGrid(t, 4, 4)
	p := newPaper(t, g, 4, 4, 1)
	var multi, uni [2]int
	for _, m := range sends(t, p.network(), Traffic{Bytes: 64, Multicast: 0.3, Trees: p.plan.Trees, Seed: 1}, 1000) {
		k := 0
		if slices.Contains(p.sources, m.Src) {
			k = 1
		}
		if m.DLID >= 0xc000 {
			multi[k]++
		} else {
			uni[k]++
		}
	}
	if multi[0] != 0 || multi[1] < 1050 || multi[1] > 1350 || uni[1] < 2650 || uni[1] > 2950 || uni[0] < 8100 || uni[0] > 8700 {
		t.Errorf("multicast %d, unicast %d; want 0 and 1200, 8400 and 2800", multi, uni)
	}
}

// TestBurstEnds has tables that lose packets, and tables that send them in a cycle.
func TestBurstEnds(t *testing.T) {
	g := newGrid(t, 2, 1)
	with := func(port fabric.PortNum) Network {
		tables := lft.NewTables(2, g.MaxLID())
		for s := range fabric.NodeID(2) {
			copy(tables.Row(s), g.tables.Row(s))
		}
		tables.Row(1)[2] = port
		return Network{State: state.State{Fabric: g.Fabric, Tables: tables}}
	}
	traffic := Traffic{Pattern: Shift(1), Bytes: 64}
	m, err := Burst(t.Context(), with(fabric.NoPath), oldLinks(), traffic, 3, 0)
	if err != nil || m.Counts.Dropped != 3 || m.Incomplete != 3 || m.All.Count != 3 || m.TimeUp {
		t.Errorf("%v, ended %t", err, m != nil)
	}
	m, err = Burst(t.Context(), with(3), oldLinks(), Traffic{Pattern: HotSpot(1, 1), Hosts: []fabric.PortID{g.host(0, 0), g.host(1, 0)}, Bytes: 64}, 1, Millisecond)
	if err != nil || m.Incomplete != 1 || !m.TimeUp || m.Saturated || m.Time > Microsecond {
		t.Errorf("%v, ended %t", err, m != nil)
	}
	if m, err := Play(t.Context(), with(fabric.NoPath), oldLinks(), []Timed{{5, Message{Src: g.host(0, 0), DLID: 2, Bytes: 64}}}, 0); err != nil || m.Incomplete != 1 || m.Time != 0 {
		t.Errorf("%v, ended %t", err, m != nil)
	}
	for _, tt := range []struct {
		traffic  Traffic
		messages int
		want     string
	}{
		{traffic, 0, "a burst of 0 messages: want 1 or more"},
		{Traffic{Bytes: 0}, 1, "messages of 0 bytes"},
		{Traffic{Bytes: 64, Sources: -1}, 1, "-1 sources"},
		{Traffic{Bytes: 64, Multicast: 1}, 1, "multicast without a host"},
	} {
		if m, err := Burst(t.Context(), with(1), oldLinks(), tt.traffic, tt.messages, 0); m != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
	p := newPaper(t, g, 1, 2, 1)
	if _, err := Burst(t.Context(), p.network(), oldLinks(), Traffic{Bytes: 64, Multicast: 1, Trees: p.plan.Trees, Sources: 2}, 1, 0); err == nil ||
		!strings.Contains(err.Error(), "2 sources of multicast: 1 hosts may send") {
		t.Error(err)
	}
	for _, messages := range [][]Timed{nil, {{At: -1}}, {{Message: Message{Src: -1}}}} {
		if m, err := Play(t.Context(), with(1), oldLinks(), messages, 0); m != nil || err == nil {
			t.Errorf("%+v is played", messages)
		}
	}
}

// TestBurstDeadlock has a burst that deadlocks: shortest paths round a 2x2 ring.
func TestBurstDeadlock(t *testing.T) {
	g := newGrid(t, 2, 2)
	round := []fabric.PortNum{} // by switch: its port to the next one
	order := []fabric.NodeID{0, 1, 3, 2}
	for i, s := range order {
		next := order[(i+1)%4]
		for p := range fabric.PortNum(5) {
			if peer := g.Peer(g.Port(s, p)); p > 0 && peer != fabric.NoPort && g.Owner(peer) == next {
				round = append(round, p)
			}
		}
	}
	tables := lft.NewTables(4, g.MaxLID())
	for i, s := range order {
		for d := range fabric.NodeID(4) {
			tables.Row(s)[d+1] = round[i]
		}
		tables.Row(s)[s+1] = 5
	}
	cfg := oldLinks()
	cfg.PacketBuffers(1, 64)
	m, err := Burst(t.Context(), Network{State: state.State{Fabric: g.Fabric, Tables: tables}}, cfg, Traffic{Bytes: 64}, 40, 0)
	var deadlock *DeadlockError
	if m != nil || !errors.As(err, &deadlock) || len(deadlock.Channels()) != 4 {
		t.Errorf("%v, ended %t", err, m != nil)
	}
}
