package sim

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// TestLimits has made cases of which the limit is known: which resource, and which link.
func TestLimits(t *testing.T) {
	pair := newGrid(t, 2, 1) // two switches with a host each
	tree, shared := newTree(t, 4)
	block := newGrid(t, 4, 4)
	for _, tt := range []struct {
		name    string
		net     Network
		change  func(*Config)
		traffic Traffic
		limit   Resource
		link    fabric.PortID // NoPort for any
		share   float64       // of By, at least
		from    float64       // accepted
		to      float64
	}{
		{"light load", Network{State: state.State{Fabric: tree, Tables: shared}}, nil, Traffic{Load: 0.1}, Offered, fabric.NoPort, 0, 0.09, 0.11},
		{"all links of hosts", Network{State: state.State{Fabric: pair.Fabric, Tables: pair.tables}}, nil, Traffic{Load: 2}, HostLink, fabric.NoPort, 0, 0.99, 1.01},
		// Fifteen send to one, on their ways to which no other cable is full.
		{"one host's link", Network{State: state.State{Fabric: block.Fabric, Tables: block.tables}}, nil, Traffic{Load: 0.2, Pattern: HotSpot(5, 1), Hosts: block.CAPorts()}, HostLink,
			block.Peer(block.CAPorts()[5]), 0.95, 0.06, 0.2},
		// Four hosts of a leaf share a cable.
		{"cables", Network{State: state.State{Fabric: tree, Tables: shared}}, nil, Traffic{Load: 0.9, Pattern: Shift(4)}, Cable, fabric.NoPort, 0.95, 0.24, 0.26},
		// Wires of no length and switches without delay, and room for one packet behind which others wait.
		{"tiny buffers", Network{State: state.State{Fabric: tree, Tables: shared}}, func(c *Config) {
			c.WireDelay, c.CreditDelay, c.RoutingDelay, c.BufferFlits = 0, 0, Nanosecond, 32
		}, Traffic{Load: 0.9, Hosts: tree.CAPorts()[:4]}, Buffer, fabric.NoPort, 0.9, 0.4, 0.8},
		// 64 KiB is 4 us of a link with 128 Gb/s, and a round trip of 20 us takes a fifth.
		{"long cable", Network{State: state.State{Fabric: pair.Fabric, Tables: pair.tables}}, func(c *Config) {
			c.WireDelay, c.CreditDelay = 10*Microsecond, 10*Microsecond
		}, Traffic{Load: 0.9}, Credit, fabric.NoPort, 0.6, 0.2, 0.21},
		{"late credits", Network{State: state.State{Fabric: pair.Fabric, Tables: pair.tables}}, func(c *Config) {
			c.CreditDelay = 20 * Microsecond
		}, Traffic{Load: 0.9}, Credit, fabric.NoPort, 0.95, 0.2, 0.21},
		{"a buffer for the long cable", Network{State: state.State{Fabric: pair.Fabric, Tables: pair.tables}}, func(c *Config) {
			c.WireDelay, c.CreditDelay, c.BufferFlits = 10*Microsecond, 10*Microsecond, 400_000/64
		}, Traffic{Load: 2}, HostLink, fabric.NoPort, 0, 0.9, 1.01},
	} {
		cfg := Defaults()
		cfg.Mbps, cfg.MTU = 128_000, 2048
		if tt.change != nil {
			tt.change(&cfg)
		}
		tt.traffic.Bytes, tt.traffic.Seed = 2048, 1
		m := short.Must(Measure(t.Context(), tt.net, cfg, tt.traffic, Stop{WarmUp: 100 * Microsecond, MaxTime: 500 * Microsecond, RelativeError: 0.05, MaxQueue: 300}))(t)
		l := m.Limits
		t.Logf("%s: accepts %.3f, %+v", tt.name, m.Accepted, *l)
		if l.Limit != tt.limit || tt.limit != Offered && tt.share > 0 && l.by()[tt.limit] < tt.share || tt.link != fabric.NoPort && l.Link.Text != tt.net.Fabric.PortName(tt.link) {
			t.Errorf("%s: %+v at %s, want %s", tt.name, *l, l.Link.Text, tt.limit)
		}
		node, _ := tt.net.Fabric.NodeByGUID(l.Link.Node)
		if peer := tt.net.Fabric.Peer(tt.net.Fabric.Port(node, l.Link.Port)); tt.limit == Offered && !tt.net.Fabric.IsSwitch(tt.net.Fabric.Owner(peer)) {
			t.Errorf("%s: the busiest link is %s, want a cable, which four hosts share", tt.name, l.Link.Text)
		}
		if m.Accepted < tt.from || m.Accepted > tt.to {
			t.Errorf("%s: accepts %.3f, want %g to %g", tt.name, m.Accepted, tt.from, tt.to)
		}
		sum := 0.0
		for _, share := range l.by() {
			sum += share
		}
		if l.Sending+l.Blocked > 1+1e-9 || l.Blocked > 0 && math.Abs(sum-1) > 1e-9 || l.by()[Offered] != 0 || l.samples < 30 {
			t.Errorf("%s: %+v", tt.name, *l)
		}
	}
}

// TestLimitsOfCopying has saturated networks with all ways to copy whole packets, some of them
// multicast: shares add up, and something limits.
func TestLimitsOfCopying(t *testing.T) {
	g := newGrid(t, 4, 4)
	plan := g.plan(t, []multicast{{[2]int{0, 0}, [][2]int{{1, 1}, {3, 2}, {0, 3}}}, {[2]int{2, 2}, [][2]int{{0, 0}, {3, 3}}}})
	for _, copying := range []Copying{Independent, Reserving, LockStep} {
		for _, arbitration := range []Arbitration{RoundRobin, FIFO, LowestPort} {
			for _, vls := range []int{1, 4} {
				cfg := oldLinks()
				cfg.Copying, cfg.Arbitration, cfg.FullChecks = copying, arbitration, 10_000
				cfg.DivideBuffer(8192, vls)
				net := Network{State: state.State{Fabric: g.Fabric, Tables: g.tables, Multicast: plan, SL2VL: lft.NewSL2VL(g.Fabric, lft.IdentityVLs(vls))}}
				m, err := Measure(t.Context(), net, cfg, Traffic{Load: 2, Bytes: 1024, SLs: vls, Multicast: 0.2, Trees: plan.Trees, Seed: 1},
					Stop{WarmUp: 100 * Microsecond, MaxTime: 2 * Millisecond, MaxQueue: 50})
				var deadlock *DeadlockError
				if errors.As(err, &deadlock) { // multicast that takes its ports one by one
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				sum := 0.0
				for _, share := range m.Limits.by() {
					sum += share
				}
				if l := m.Limits; l.Limit == Offered || l.Sending+l.Blocked < 0.95 || math.Abs(sum-1) > 1e-9 || l.Sending+l.Blocked > 1+1e-9 {
					t.Errorf("%s, %s, %d VLs: %+v", copying, arbitration, vls, *l)
				}
			}
		}
	}
}

// TestSamples has the samples agree with what ports count: how long hosts send. In closed loop what is
// left is the time in which they are blocked or done.
func TestSamples(t *testing.T) {
	f, tables := newTree(t, 4)
	for seed := range uint64(3) {
		cfg := Defaults()
		cfg.Mbps, cfg.MTU = 128_000, 2048
		o := &open{Traffic: Traffic{Load: 1, Bytes: 2048, Seed: seed}, out: &Measured{}, inTurn: true}
		s := mustNew(t, Network{State: state.State{Fabric: f, Tables: tables}}, cfg, &burst{*o, 400})
		b := s.driver.(*burst)
		short.Check(t, b.check(s))
		s.Wake(0, 0)
		b.limits = newLimits(s, b.Hosts, firstStep)
		short.Check(t, b.run(t.Context(), s, Forever))
		end := s.Counts().LastAt
		l := b.limits.result(end, true)
		sent := Time(0)
		for _, h := range b.Hosts {
			sent += s.Load(h).Busy
		}
		if want := float64(sent) / float64(end) / float64(len(b.Hosts)); math.Abs(l.Sending-want) > 0.02 {
			t.Errorf("seed %d: hosts send %.3f of the time, want %.3f: %+v", seed, l.Sending, want, l)
		}
	}
}

// TestDivideBuffer has a port's buffer not grow or shrink with its lanes: in whole flits, and in what
// a saturated network has in it.
func TestDivideBuffer(t *testing.T) {
	for bytes := 1; bytes < 100_000; bytes = bytes*3/2 + 7 {
		for vls := 1; vls <= 15; vls++ {
			for _, flit := range []int{1, 64, 100} {
				cfg := Config{FlitBytes: flit}
				cfg.DivideBuffer(bytes, vls)
				if has := vls * flit * cfg.BufferFlits; has > bytes || has+vls*flit <= bytes {
					t.Fatalf("%d VLs have %d of %d bytes", vls, has, bytes)
				}
			}
		}
	}
	g := newGrid(t, 4, 4)
	const bytes = 16 << 10
	for _, vls := range []int{1, 2, 4, 8} {
		cfg := oldLinks()
		cfg.DivideBuffer(bytes, vls)
		x := &burst{open{Traffic: Traffic{Load: 1, Bytes: 1024, SLs: vls, Pattern: HotSpot(5, 0.5)}, out: &Measured{}}, 200}
		s := mustNew(t, Network{State: state.State{Fabric: g.Fabric, Tables: g.tables, SL2VL: lft.NewSL2VL(g.Fabric, lft.IdentityVLs(vls))}}, cfg, x)
		short.Check(t, x.check(s))
		s.Wake(0, 0)
		most := int32(0)
		for range 200 {
			short.Check(t, x.run(t.Context(), s, s.Now()+10*Microsecond))
			for p := range fabric.PortID(g.NumPorts()) {
				used := int32(0)
				for vl := range s.vls {
					used += s.channels[int32(p)*s.vls+vl].used
				}
				if g.IsSwitch(g.Owner(p)) {
					most = max(most, used*int32(cfg.FlitBytes))
				}
			}
		}
		if most > bytes || most < bytes*9/10 {
			t.Errorf("%d VLs: a port has %d bytes in its buffer at most, of %d", vls, most, bytes)
		}
	}
}

// by returns the shares of Blocked.
func (l *Limits) by() map[Resource]float64 {
	return map[Resource]float64{HostLink: l.HostLink, Cable: l.Cable, Buffer: l.Buffer, Credit: l.Credit}
}

// TestResourceNames has the names of resources read back.
func TestResourceNames(t *testing.T) {
	for r := range numResources {
		var got Resource
		text, _ := r.MarshalText()
		if err := got.UnmarshalText(text); err != nil || got != r {
			t.Errorf("%s is read as %s, %v", text, got, err)
		}
	}
	short.Equal(t, fmt.Sprint(numResources), "resource 5")
}

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
