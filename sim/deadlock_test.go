package sim

import (
	"errors"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// fixtures are D1 to D4: multicast packets of 8 flits that start together.
var fixtures = []struct {
	name    string
	m, n    int
	packets []multicast
	dead    []Copying // that deadlock
}{
	{"D1", 1, 4, []multicast{
		{[2]int{0, 1}, [][2]int{{0, 0}, {0, 3}}},
		{[2]int{0, 2}, [][2]int{{0, 0}, {0, 3}}},
	}, []Copying{Wormhole, GreedyWormhole}},
	{"D2", 2, 2, []multicast{
		{[2]int{0, 0}, [][2]int{{0, 1}, {1, 1}}},
		{[2]int{1, 0}, [][2]int{{0, 1}, {1, 1}}},
	}, []Copying{Wormhole, GreedyWormhole}},
	{"D3", 3, 4, []multicast{
		{[2]int{1, 3}, [][2]int{{1, 0}}},
		{[2]int{0, 1}, [][2]int{{1, 2}, {1, 0}}},
		{[2]int{2, 2}, [][2]int{{1, 3}, {1, 1}}},
		{[2]int{1, 1}, [][2]int{{1, 3}}},
	}, []Copying{Reserving}},
	{"D4", 2, 4, []multicast{
		{[2]int{0, 0}, [][2]int{{1, 1}, {1, 3}}},
		{[2]int{0, 1}, [][2]int{{1, 3}}},
		{[2]int{0, 1}, [][2]int{{1, 3}, {1, 1}}},
	}, []Copying{LockStep}},
}

// runFixture sends a packet of 8 flits for each of a plan's trees at time 0.
func runFixture(t *testing.T, g *grid, packets []multicast, cfg Config) (*Sim, *log, error) {
	t.Helper()
	plan := g.plan(t, packets)
	l := &log{}
	s := mustNew(t, Network{State: state.State{Fabric: g.Fabric, Multicast: plan}}, cfg, l)
	for _, p := range packets {
		for _, tree := range plan.Trees {
			if packets[tree.Group].from[0] == p.from[0] && &packets[tree.Group].to[0] == &p.to[0] {
				mustSend(t, s, Message{Src: tree.Senders[0], DLID: tree.MLID, Bytes: 8})
			}
		}
	}
	return s, l, s.Run(t.Context(), Forever)
}

// TestFixtures has D1 to D5 of all disciplines: with copies that go independently
// all packets arrive (D5). Worms deadlock in D1 and D2 with all buffers smaller
// than a packet, whether they ask for their channels at once or not. D4 needs a
// switch that serves its lower port first: in turn, or first come first served, the
// packet that waits longer gets the port and takes the knot apart.
func TestFixtures(t *testing.T) {
	for _, tt := range fixtures {
		g := newGrid(t, tt.m, tt.n)
		for _, c := range tt.dead {
			for _, a := range []Arbitration{RoundRobin, FIFO, LowestPort} {
				for buffer := 1; buffer <= 8; buffer++ {
					cfg := cycles(c, buffer)
					cfg.Arbitration = a
					if c < Wormhole && buffer < 8 || c == LockStep && a != LowestPort {
						continue
					}
					s, _, err := runFixture(t, g, tt.packets, cfg)
					var dead *DeadlockError
					if c >= Wormhole && buffer == 8 {
						if err != nil {
							t.Errorf("%s %s %s, room for whole packets: %v", tt.name, c, a, err)
						}
					} else if !errors.As(err, &dead) {
						t.Errorf("%s %s %s, %d flits: %v, want a deadlock", tt.name, c, a, buffer, err)
					} else if again := s.Run(t.Context(), Forever); again != err || len(dead.Waits) < 2 || dead.Copies != s.Counts().Copies {
						t.Errorf("%s %s: %v, then %v", tt.name, c, err, again)
					}
				}
			}
		}
		for _, a := range []Arbitration{RoundRobin, FIFO, LowestPort} {
			cfg := cycles(Independent, 8)
			cfg.Arbitration = a
			s, l, err := runFixture(t, g, tt.packets, cfg)
			want := 0
			for _, p := range tt.packets {
				want += len(p.to)
			}
			if err != nil || len(l.deliveries) != want || s.Counts().Copies != 0 {
				t.Errorf("%s independent %s: %v, %d deliveries of %d", tt.name, a, err, len(l.deliveries), want)
			}
		}
	}
}

// TestD2Witness has the deadlock in words: each worm holds one way to (0,1) and
// (1,1), and waits for the other's.
func TestD2Witness(t *testing.T) {
	_, _, err := runFixture(t, newGrid(t, 2, 2), fixtures[1].packets, cycles(Wormhole, 1))
	want := `deadlock at 7ns: MLID 0xc001 from 0x0000000000100000 at "switch 0,0"[1] on VL 0 (no room), ` +
		`which waits for MLID 0xc001 from 0x0000000000100000 at "switch 1,0"[2] on VL 0 (held), ` +
		`which waits for MLID 0xc002 from 0x0000000000100004 at "switch 1,0"[3] on VL 0 (no room), ` +
		`which waits for MLID 0xc002 from 0x0000000000100004 at "switch 0,0"[2] on VL 0 (held), which waits for the first`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// TestFourPackets has the picture of the mesh paper: four packets round a block of
// four switches, each of which turns. verify finds the cycle before, the simulator
// when the packets are in it, and both name the same channels. With XY all arrive.
func TestFourPackets(t *testing.T) {
	g := newGrid(t, 2, 2)
	free := g.route(true)
	corners := [][2]int{{0, 0}, {1, 0}, {1, 1}, {0, 1}} // counterclockwise
	for i, from := range corners {
		via, to := corners[(i+1)%4], corners[(i+2)%4]
		port := func(a, b [2]int) fabric.PortNum {
			if a[0] != b[0] {
				return sign(b[0]-a[0], 1, 3)
			}
			return sign(b[1]-a[1], 2, 4)
		}
		free.Row(fabric.NodeID(from[0]*2 + from[1]))[g.lid(to[0], to[1])] = port(from, via)
		free.Row(fabric.NodeID(via[0]*2 + via[1]))[g.lid(to[0], to[1])] = port(via, to)
	}
	send := func(tables *lft.Tables, copying Copying, buffer int) error {
		s := mustNew(t, Network{State: state.State{Fabric: g.Fabric, Tables: tables}}, cycles(copying, buffer), nil)
		for range 3 {
			for i, from := range corners {
				to := corners[(i+2)%4]
				mustSend(t, s, Message{Src: g.host(from[0], from[1]), DLID: g.lid(to[0], to[1]), Bytes: 8})
			}
		}
		return s.Run(t.Context(), Forever)
	}
	for _, tt := range []struct {
		copying Copying
		buffer  int
	}{{Independent, 8}, {Reserving, 8}, {LockStep, 8}, {Wormhole, 1}, {Wormhole, 7}, {GreedyWormhole, 3}} {
		if err := send(g.tables, tt.copying, tt.buffer); err != nil {
			t.Errorf("XY, %s: %v", tt.copying, err)
		}
		err := send(free, tt.copying, tt.buffer)
		dead, ok := errors.AsType[*DeadlockError](err)
		if !ok {
			t.Errorf("%s: %v, want a deadlock", tt.copying, err)
			continue
		}
		r, err := verify.Check(t.Context(), &state.State{Fabric: g.Fabric, Tables: free}, verify.Options{})
		if err != nil || len(r.CreditLoops.Cycles) != 1 {
			t.Fatal(err, r)
		}
		got := dead.Channels()
		want := slices.Clone(r.CreditLoops.Cycles[0])
		// A cycle may begin anywhere.
		at := slices.IndexFunc(want, func(h verify.Hop) bool { return h == got[0] })
		if at < 0 || !slices.Equal(got, slices.Concat(want[at:], want[:at])) {
			t.Errorf("%s: simulated %v, verified %v", tt.copying, got, want)
		}
	}
}
