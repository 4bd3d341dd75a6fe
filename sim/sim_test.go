package sim

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/state"
)

// oldLinks is the hardware of most tests, that of the mesh papers: links of 1X SDR, 2 Gb/s of data,
// and buffers of one packet of 4 KB.
func oldLinks() Config {
	return Config{
		Mbps: 2000, WireDelay: 10 * Nanosecond, CreditDelay: 10 * Nanosecond, RoutingDelay: 100 * Nanosecond,
		FlitBytes: 64, BufferFlits: 64,
	}
}

// TestZeroLoad has the time of a packet that meets no other, exactly.
func TestZeroLoad(t *testing.T) {
	g := newGrid(t, 4, 3)
	for _, bytes := range short.Of([]int{1, 32, 64, 65, 4096}, []int{1, 64, 65}) {
		for x := range 4 {
			for y := range 3 {
				if x == 0 && y == 0 {
					continue
				}
				switches := Time(x + y + 1)
				l := &log{}
				s := mustNew(t, Network{State: state.State{Fabric: g.Fabric, Tables: g.tables}}, oldLinks(), l)
				mustSend(t, s, Message{Src: g.host(0, 0), DLID: g.lid(x, y), Bytes: bytes, Tag: 7})
				short.Check(t, s.Run(t.Context(), Forever))
				want := 10*Nanosecond + switches*110*Nanosecond + Time(bytes)*4*Nanosecond
				if len(l.deliveries) != 1 {
					t.Fatalf("%d deliveries", len(l.deliveries))
				}
				if d := l.deliveries[0]; d.At != want || d.Port != g.host(x, y) || d.Tag != 7 || d.Born != 0 || d.Injected != 0 || !d.Last || d.Bytes != bytes {
					t.Errorf("%d bytes over %d switches: %+v, want %s", bytes, switches, d, want)
				}

				// SPAM's formula: 10 us + 40 ns a router + 10 ns a channel + 10 ns for
				// each flit after the first.
				cfg := Config{
					Mbps: 800, RoutingDelay: 40 * Nanosecond, Startup: 10 * Microsecond, FlitBytes: 1,
					BufferFlits: 1, OutputFlits: 1, Copying: Wormhole, FullChecks: 1,
				}
				l = &log{}
				s = mustNew(t, Network{State: state.State{Fabric: g.Fabric, Tables: g.tables}}, cfg, l)
				mustSend(t, s, Message{Src: g.host(0, 0), DLID: g.lid(x, y), Bytes: bytes})
				short.Check(t, s.Run(t.Context(), Forever))
				want = 10000*Nanosecond + 40*Nanosecond*switches + 10*Nanosecond*(switches+1) + Time(bytes-1)*10*Nanosecond
				if d := l.deliveries[0]; d.At != want {
					t.Errorf("a worm of %d flits over %d switches: %s, want %s", bytes, switches, d.At, want)
				}
			}
		}
	}
}

// TestSwitchLID has packets to a switch, which takes them at port 0.
func TestSwitchLID(t *testing.T) {
	g := newGrid(t, 2, 2)
	for _, copying := range []Copying{Independent, Reserving, LockStep, Wormhole} {
		l := &log{}
		cfg := cycles(copying, 8)
		s := mustNew(t, Network{State: state.State{Fabric: g.Fabric, Tables: g.tables}}, cfg, l)
		mustSend(t, s, Message{Src: g.host(0, 0), DLID: 5 + 3, Bytes: 8}) // switch 1,1
		short.Check(t, s.Run(t.Context(), Forever))
		// The switch takes it when the tail is in. A packet's head has passed two
		// switches by then; a worm's first flit also took 1 ns on three cables.
		want := 2*Nanosecond + 8*Nanosecond
		if copying >= Wormhole {
			want = 2*Nanosecond + 3*Nanosecond + 7*Nanosecond
		}
		if len(l.deliveries) != 1 || l.deliveries[0].Port != g.PortBase(3) || l.deliveries[0].At != want || s.Counts().FlitHops != 24 {
			t.Errorf("%s: %+v, %+v, want at %s", copying, l.deliveries, s.Counts(), want)
		}
	}
}

// TestDrops has LIDs that tables have no way for, masks that are empty, and an SL
// that is dropped.
func TestDrops(t *testing.T) {
	g := newGrid(t, 2, 2)
	hole := g.route(true)
	hole.Row(2)[4] = fabric.NoPath // at switch 1,0
	free := g.route(true)
	free.Row(2)[4] = 4 // no cable
	astray := g.route(true)
	astray.Row(2)[4] = 5 // the wrong host
	drop := lft.NewSL2VL(g.Fabric, lft.ConstantVL(0))
	drop.SetOut(g.Port(2, 2), lft.ConstantVL(lft.DropVL))
	host := lft.NewSL2VL(g.Fabric, lft.ConstantVL(lft.DropVL))
	masks := mft.NewTables(g.Fabric)
	masks.Add(mft.MinMLID+1, []fabric.PortID{g.Port(0, 1), g.Port(0, 5)})
	masks.Add(mft.MinMLID+3, nil)
	for _, tt := range []struct {
		name                        string
		net                         Network
		dlid                        fabric.LID
		delivered, dropped, strayed int64
	}{
		{"no entry", Network{State: state.State{Tables: hole}}, 4, 0, 5, 0},
		{"no cable", Network{State: state.State{Tables: free}}, 4, 0, 5, 0},
		{"wrong host", Network{State: state.State{Tables: astray}}, 4, 5, 0, 5},
		{"VL 15", Network{State: state.State{Tables: g.tables, SL2VL: drop}}, 4, 0, 5, 0},
		{"VL 15 at the host", Network{State: state.State{Tables: g.tables, SL2VL: host}}, 4, 0, 5, 0},
		{"unused LID", Network{State: state.State{Tables: g.tables}}, 100, 0, 5, 0},
		{"no tables", Network{}, 4, 0, 5, 0},
		{"mask that ends", Network{State: state.State{Multicast: &mft.Plan{Tables: masks}}}, mft.MinMLID + 1, 0, 5, 0},
		{"MLID without mask", Network{State: state.State{Multicast: &mft.Plan{Tables: masks}}}, mft.MinMLID + 2, 0, 5, 0},
		{"empty mask", Network{State: state.State{Multicast: &mft.Plan{Tables: masks}}}, mft.MinMLID + 3, 0, 5, 0},
		{"MLID below all", Network{State: state.State{Multicast: &mft.Plan{Tables: masks}}}, mft.MinMLID, 0, 5, 0},
		{"MLID above all", Network{State: state.State{Multicast: &mft.Plan{Tables: masks}}}, mft.MinMLID + 4, 0, 5, 0},
	} {
		for copying := Independent; copying <= GreedyWormhole; copying++ {
			tt.net.Fabric = g.Fabric
			s := mustNew(t, tt.net, cycles(copying, 8), nil)
			for range 5 { // more than a buffer takes
				mustSend(t, s, Message{Src: g.host(0, 0), DLID: tt.dlid, Bytes: 8})
			}
			err := s.Run(t.Context(), Forever)
			c := s.Counts()
			if err != nil || c.Delivered != tt.delivered || c.Dropped != tt.dropped || c.Strayed != tt.strayed || c.Copies != 0 || c.Queued != 0 {
				t.Errorf("%s, %s: %v, %+v", tt.name, copying, err, c)
			}
		}
	}
}

// TestMTU cuts messages, with headers on each packet.
func TestMTU(t *testing.T) {
	g := newGrid(t, 2, 1)
	cfg := oldLinks()
	cfg.MTU, cfg.HeaderBytes = 256, 26
	cfg.PacketBuffers(1, 256)
	l := &log{}
	s := mustNew(t, Network{State: state.State{Fabric: g.Fabric, Tables: g.tables}}, cfg, l)
	mustSend(t, s, Message{Src: g.host(0, 0), DLID: 2, Bytes: 1000})
	short.Check(t, s.Run(t.Context(), Forever))
	var got []string
	for _, d := range l.deliveries {
		got = append(got, fmt.Sprint(d.Bytes, d.Last, d.Injected))
	}
	// A packet of 282 bytes takes 1128 ns, and its buffer falls free 120 ns later.
	want := []string{"256 false 0ns", "256 false 1248ns", "256 false 2496ns", "232 true 3744ns"}
	short.EqualList(t, got, want)
	if c := s.Counts(); c.Messages != 1 || c.Packets != 4 || s.Load(g.host(0, 0)).Bytes != 1000+4*26 {
		t.Errorf("%+v", c)
	}
}

// TestStartup has a host that begins its messages one after the other.
func TestStartup(t *testing.T) {
	g := newGrid(t, 2, 1)
	cfg := oldLinks()
	cfg.Startup = 5 * Microsecond
	l := &log{}
	s := mustNew(t, Network{State: state.State{Fabric: g.Fabric, Tables: g.tables}}, cfg, l)
	for range 3 {
		mustSend(t, s, Message{Src: g.host(0, 0), DLID: 2, Bytes: 100})
	}
	if err := s.Run(t.Context(), Microsecond); err != nil || s.Now() != Microsecond || s.Counts().Queued != 3 {
		t.Fatal(err, s.Now(), s.Counts())
	}
	short.Check(t, s.Run(t.Context(), Forever))
	for i, d := range l.deliveries {
		if d.Injected != Time(i+1)*5*Microsecond || d.Born != 0 {
			t.Errorf("packet %d: %+v", i, d)
		}
	}
}

// TestRates has cables of different rates: a packet that goes on by a faster one
// waits until its tail keeps up.
func TestRates(t *testing.T) {
	var b fabric.Builder
	add := func(typ fabric.NodeType, guid fabric.GUID) int {
		return short.Must(b.AddNode(fabric.Node{Type: typ, GUID: guid, NumPorts: 2}))(t)
	}
	a, s1, s2, c := add(fabric.CA, 0x10), add(fabric.Switch, 1), add(fabric.Switch, 2), add(fabric.CA, 0x20)
	for _, l := range []struct {
		from, to int
		p, q     fabric.PortNum
		link     fabric.Link
	}{{a, s1, 1, 1, fabric.Link{Width: 1, Speed: fabric.SDR}}, {s1, s2, 2, 1, fabric.Link{Width: 4, Speed: fabric.SDR}}, {s2, c, 2, 1, fabric.Link{Width: 1, Speed: fabric.SDR}}} {
		short.Check(t, b.Connect(l.from, l.p, l.to, l.q, l.link))
	}
	f := short.Must(b.Build())(t)
	f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{}))(t)
	src, dst := f.CAPorts()[0], f.CAPorts()[1]
	tables := lft.NewTables(2, f.MaxLID())
	tables.Row(0)[f.LID(dst)], tables.Row(1)[f.LID(dst)] = 2, 2
	cfg := oldLinks()
	cfg.Mbps = 0
	for _, copying := range []Copying{Independent, Reserving, LockStep} {
		cfg.Copying = copying
		l := &log{}
		s := mustNew(t, Network{State: state.State{Fabric: f, Tables: tables}}, cfg, l)
		mustSend(t, s, Message{Src: src, DLID: f.LID(dst), Bytes: 1000})
		short.Check(t, s.Run(t.Context(), Forever))
		// The tail is in the first switch at 4010 ns, and takes 1000 ns on the fast
		// cable, which begins at 3010; then come a cable and a switch, 110 ns, and
		// 4000 ns with 10 ns of cable.
		if want := 7130 * Nanosecond; len(l.deliveries) != 1 || l.deliveries[0].At != want {
			t.Errorf("%s: %+v, want %s", copying, l.deliveries, want)
		}
	}
	if _, err := New(Network{State: state.State{Fabric: newGrid(t, 2, 2).Fabric}}, cfg, nil); err != nil {
		t.Error(err) // made meshes have rates
	}
}

// TestPathSL takes SLs from the routing.
func TestPathSL(t *testing.T) {
	g := newGrid(t, 2, 1)
	sls := lft.NewPathSLs(2, g.MaxLID())
	sls.SetRow([]fabric.SL{0, 0, 3, 0, 0}, 0)
	l := &log{}
	s := mustNew(t, Network{State: state.State{Fabric: g.Fabric, Tables: g.tables, PathSLs: sls}}, oldLinks(), l)
	mustSend(t, s, Message{Src: g.host(0, 0), DLID: 2, Bytes: 64, SL: PathSL})
	mustSend(t, s, Message{Src: g.host(1, 0), DLID: 1, Bytes: 64, SL: PathSL})
	mustSend(t, s, Message{Src: g.host(1, 0), DLID: 1, Bytes: 64, SL: 5})
	short.Check(t, s.Run(t.Context(), Forever))
	got := map[fabric.PortID][]fabric.SL{}
	for _, d := range l.deliveries {
		got[d.Src] = append(got[d.Src], d.SL)
	}
	if !slices.Equal(got[g.host(0, 0)], []fabric.SL{3}) || !slices.Equal(got[g.host(1, 0)], []fabric.SL{0, 5}) {
		t.Error(got)
	}
}

// byTag routes by a list of output ports for each tag: source routing.
type byTag struct {
	g    *grid
	port map[int64]map[fabric.NodeID][]fabric.PortNum
}

func (r byTag) Route(s *Sim, at fabric.NodeID, _ fabric.PortID, m *Message, to []fabric.PortID) []fabric.PortID {
	for _, p := range r.port[m.Tag][at] {
		to = append(to, r.g.Port(at, p))
	}
	return to
}

// TestRouter has a router in place of tables.
func TestRouter(t *testing.T) {
	g := newGrid(t, 2, 2)
	for copying := Independent; copying <= GreedyWormhole; copying++ {
		l := &log{}
		s := mustNew(t, Network{State: state.State{Fabric: g.Fabric}, Router: byTag{g, map[int64]map[fabric.NodeID][]fabric.PortNum{
			1: {0: {1}, 2: {2}, 3: {5}},
			2: {0: {1, 2, 5}, 2: {5}, 1: {5}},
		}}}, cycles(copying, 8), l)
		mustSend(t, s, Message{Src: g.host(0, 0), DLID: 4, Bytes: 8, Tag: 1})
		mustSend(t, s, Message{Src: g.host(0, 0), DLID: mft.MinMLID, Bytes: 8, Tag: 2})
		short.Check(t, s.Run(t.Context(), Forever))
		var got []string
		for _, d := range l.deliveries {
			got = append(got, fmt.Sprint(d.Tag, g.PortName(d.Port)))
		}
		slices.Sort(got)
		if want := `[1"host 1,1"[1] 2"host 0,0"[1] 2"host 0,1"[1] 2"host 1,0"[1]]`; fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", copying, got, want)
		}
	}
}

// TestDeterministic has the same traffic twice, and in one run or in many.
func TestDeterministic(t *testing.T) {
	trace := func(copying Copying, steps int) string {
		g := newGrid(t, 4, 4)
		l := &log{}
		cfg := cycles(copying, 8)
		cfg.FullChecks = 1 << 10
		s := mustNew(t, Network{State: state.State{Fabric: g.Fabric, Tables: g.tables}}, cfg, l)
		rng := rand.New(rand.NewPCG(4, 4))
		l.wake = func(s *Sim, id int64) {
			d := fabric.LID(rng.IntN(16) + 1)
			mustSend(t, s, Message{Src: g.host(int(id)/4, int(id)%4), DLID: d, Bytes: 1 + rng.IntN(8)})
			if s.Now() < 2*Microsecond {
				s.Wake(s.Now()+Time(1000+rng.IntN(20000)), id)
			}
		}
		for i := range int64(16) {
			s.Wake(Time(i), i)
		}
		for i := range steps {
			short.Check(t, s.Run(t.Context(), Time(i)*4*Microsecond/Time(steps)))
		}
		short.Check(t, s.Run(t.Context(), Forever))
		return fmt.Sprint(l.deliveries, s.Counts())
	}
	for copying := Independent; copying <= GreedyWormhole; copying++ {
		want := trace(copying, 0)
		if trace(copying, 0) != want || trace(copying, 37) != want {
			t.Errorf("%s: two runs differ", copying)
		}
	}
}

var flitTimes = flag.Int64("flit-times", 10_000_000, "how long TestFullLoad runs, in the times that a flit of 64 bytes takes")

// TestFullLoad has the fabric of TestFourPackets with XY at full load, which never
// deadlocks.
func TestFullLoad(t *testing.T) {
	g := newGrid(t, 2, 2)
	cfg := oldLinks()
	cfg.PacketBuffers(1, 4096)
	cfg.FullChecks = 1 << 14
	s := mustNew(t, Network{State: state.State{Fabric: g.Fabric, Tables: g.tables}}, cfg, nil)
	s.driver = fullLoad{g, rand.New(rand.NewPCG(1, 1))}
	for i := range int64(4) {
		s.Wake(0, i)
		s.Wake(0, i)
	}
	short.Check(t, s.Run(t.Context(), Time(short.Of(*flitTimes, 200_000))*64*4*Nanosecond))
	// All hosts send for all but the time in which a buffer falls free.
	if c := s.Counts(); c.FlitHops < short.Of(*flitTimes, 200_000)*4 || c.Copies == 0 || c.Dropped+c.Strayed != 0 {
		t.Errorf("%+v", c)
	}
}

// fullLoad keeps two packets of every host under way.
type fullLoad struct {
	g   *grid
	rng *rand.Rand
}

func (d fullLoad) Wake(s *Sim, id int64) {
	to := d.rng.IntN(3)
	if to >= int(id) {
		to++
	}
	if err := s.Send(Message{Src: d.g.host(int(id)/2, int(id)%2), DLID: fabric.LID(to + 1), Bytes: 4096, Tag: id}); err != nil {
		panic(err)
	}
}

func (d fullLoad) Deliver(s *Sim, m *Delivery) { d.Wake(s, m.Tag) }

// TestNoAllocation has a warm simulation, of packets and of worms, with and without
// output buffers, that allocates nothing.
func TestNoAllocation(t *testing.T) {
	runs := short.Of(20, 2)
	for _, tt := range short.Part(4, []struct {
		copying        Copying
		buffer, output int
	}{
		{Independent, 8, 0}, {Reserving, 8, 0}, {LockStep, 8, 0},
		{GreedyWormhole, 2, 2}, {Wormhole, 2, 0}, {Wormhole, 2, 1}, {GreedyWormhole, 3, 0},
	}) {
		cfg := oldLinks()
		cfg.Copying, cfg.BufferFlits, cfg.OutputFlits = tt.copying, tt.buffer, tt.output
		s, u := loadedAs(t, 4, 256, 2, cfg, 0.2)
		before := s.Counts()
		if n := testing.AllocsPerRun(runs, func() {
			short.Check(t, s.Run(t.Context(), s.Now()+Time(10*u.mean)))
		}); n != 0 || u.err != nil {
			t.Errorf("%+v: %v allocations, %v", tt, n, u.err)
		}
		// One more run, each of 10 messages of each of 16 hosts, and no growing queues.
		if c := s.Counts(); c.Delivered-before.Delivered < int64(runs+1)*140 || c.Queued > 100 {
			t.Errorf("%+v: %d deliveries, %d packets wait", tt, c.Delivered-before.Delivered, c.Queued)
		}
	}
}

func TestErrors(t *testing.T) {
	g := newGrid(t, 2, 2)
	other := newGrid(t, 3, 2)
	config := func(change func(*Config)) Config {
		c := oldLinks()
		change(&c)
		return c
	}
	for _, tt := range []struct {
		net  Network
		cfg  Config
		want string
	}{
		{Network{}, Config{}, "FlitBytes is 0: want 1 to"},
		{Network{}, config(func(c *Config) { c.BufferFlits = 0 }), "BufferFlits is 0: want 1 to"},
		{Network{}, config(func(c *Config) { c.WireDelay = -1 }), "WireDelay is -1"},
		{Network{}, config(func(c *Config) { c.Copying = 9 }), "Copying is 9: want 0 to 4"},
		{Network{}, config(func(c *Config) { c.OutputFlits = 1 }), "OutputFlits with independent copying"},
		{Network{State: state.State{Tables: other.tables}}, oldLinks(), "tables of 6 switches for a fabric of 4"},
		{Network{State: state.State{Multicast: &mft.Plan{Tables: mft.NewTables(other.Fabric)}}}, oldLinks(), "multicast tables of other nodes than the fabric has"},
		{Network{State: state.State{SL2VL: lft.NewSL2VL(other.Fabric, lft.ConstantVL(0))}}, oldLinks(), "SL-to-VL tables of other nodes than the fabric has"},
		{Network{State: state.State{PathSLs: lft.NewPathSLs(3, 9)}}, oldLinks(), "path SLs of 3 switches and LIDs up to 9 for a fabric of 4 and up to 8"},
	} {
		tt.net.Fabric = g.Fabric
		if s, err := New(tt.net, tt.cfg, nil); s != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
	s := mustNew(t, Network{State: state.State{Fabric: g.Fabric, Tables: g.tables}}, oldLinks(), nil)
	good := Message{Src: g.host(0, 0), DLID: 2, Bytes: 1}
	for _, tt := range []struct {
		change func(*Message)
		want   string
	}{
		{func(m *Message) { m.Src = -1 }, "port -1 cannot send"},
		{func(m *Message) { m.Src = g.Port(0, 1) }, "cannot send: want one of a CA"},
		{func(m *Message) { m.Src = fabric.PortID(g.NumPorts()) }, "cannot send"},
		{func(m *Message) { m.DLID = 0 }, "no port can have LID 0"},
		{func(m *Message) { m.DLID = 0xffff }, "no port can have LID 65535"},
		{func(m *Message) { m.SL = 16 }, "SL 16: want 0 to 15"},
		{func(m *Message) { m.Bytes = 0 }, "a message of 0 bytes"},
		{func(m *Message) { m.Bytes = 1 << 31 }, "want 1 to 1073741824"},
		{func(m *Message) { m.Bytes = 4097 }, "a packet of 65 flits for buffers of 64"},
	} {
		m := good
		tt.change(&m)
		if err := s.Send(m); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %s", m, err, tt.want)
		}
	}
	short.Equal(t, s.Counts(), (Counts{}), "messages that are refused count")

	// A context that ends stops a run, which can go on afterwards.
	s, _ = loaded(t, 4, 64, 1, 1, 0.5)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx, Forever); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := s.Run(t.Context(), s.Now()+Microsecond); err != nil {
		t.Error(err)
	}
}

// TestNames reads back what is printed.
func TestNames(t *testing.T) {
	for c := Independent; c <= GreedyWormhole; c++ {
		text, err := c.MarshalText()
		var back Copying
		if err != nil || back.UnmarshalText(text) != nil || back != c {
			t.Errorf("%s comes back as %s", c, back)
		}
	}
	for a := RoundRobin; a <= LowestPort; a++ {
		text, err := a.MarshalText()
		var back Arbitration
		if err != nil || back.UnmarshalText(text) != nil || back != a {
			t.Errorf("%s comes back as %s", a, back)
		}
	}
	var c Copying
	if err := c.UnmarshalText([]byte("osmosis")); err == nil || !strings.Contains(err.Error(), "want one of [independent reserving") {
		t.Error(err)
	}
	short.Equal(t, Copying(9).String(), "copying 9")
	short.Equal(t, (12500 * Picosecond).String(), "12.5ns")
}

// TestConservation breaks a simulation in ways that the checks are for.
func TestConservation(t *testing.T) {
	for name, spoil := range map[string]func(*Sim){
		"credit lost":   func(s *Sim) { s.channels[s.busyChannel()].credits-- },
		"credit made":   func(s *Sim) { s.channels[s.busyChannel()].credits++ },
		"flit lost":     func(s *Sim) { s.channels[s.busyChannel()].used-- },
		"copy lost":     func(s *Sim) { s.counts.Copies-- },
		"copy made":     func(s *Sim) { s.counts.Copies++ },
		"reference":     func(s *Sim) { s.packets.items[s.cells.items[s.channels[s.busyChannel()].head].packet].refs++ },
		"credit flying": func(s *Sim) { s.returning++ },
	} {
		s, _ := loaded(t, 4, 256, 1, 2, 0.9)
		short.Check(t, s.verify())
		spoil(s)
		var lost *ConservationError
		if err := s.verify(); !errors.As(err, &lost) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFaults has a simulation that goes wrong while it runs: a credit that is lost or
// made, flits and packets that are lost or doubled, in packets and in worms. Regular checks
// find it soon; those that are always on at the latest when all has arrived.
func TestFaults(t *testing.T) {
	g := newGrid(t, 4, 4)
	for name, spoil := range map[string]func(s *Sim, channel int){
		"credit lost":  func(s *Sim, i int) { s.channels[i].credits-- },
		"credit made":  func(s *Sim, i int) { s.channels[i].credits++ },
		"flit lost":    func(s *Sim, i int) { s.channels[i].used-- },
		"flit doubled": func(s *Sim, i int) { s.channels[i].used++ },
		"packet doubled": func(s *Sim, i int) {
			p := s.cells.items[s.channels[i].head].packet
			s.packets.items[p].refs++
			s.push(s.Now(), evDeliver, p, s.channels[i].port)
		},
		// All is in its place, and never goes on: seen when no event is left.
		"arrival lost": func(s *Sim, _ int) {
			for {
				e, _ := s.events.pop(Forever)
				if e.kind == evFlit || e.kind == evReady {
					return
				}
				s.handle(e)
			}
		},
	} {
		for _, copying := range []Copying{Independent, Wormhole} {
			for _, full := range []int{0, 64} {
				cfg := cycles(copying, 8)
				cfg.FullChecks, cfg.CreditDelay = full, 3*Nanosecond
				rng := rand.New(rand.NewPCG(6, 6))
				s := mustNew(t, Network{State: state.State{Fabric: g.Fabric, Tables: g.tables}}, cfg, nil)
				for i := range 400 {
					mustSend(t, s, Message{Src: g.host(i/4%4, i%4), DLID: fabric.LID(rng.IntN(16) + 1), Bytes: 8})
				}
				short.Check(t, s.Run(t.Context(), 40*Nanosecond))
				before := s.Counts().Events
				spoil(s, s.busyChannel())
				err := s.Run(t.Context(), Forever)
				if _, ok := errors.AsType[*ConservationError](err); !ok {
					t.Errorf("%s, %s, full checks %d: %v", name, copying, full, err)
				} else if n := s.Counts().Events - before; full > 0 && n > int64(full) && name != "arrival lost" {
					t.Errorf("%s, %s: found after %d events: %v", name, copying, n, err)
				}
			}
		}
	}
}

// busyChannel is a channel whose buffer has a packet.
func (s *Sim) busyChannel() int {
	return slices.IndexFunc(s.channels, func(o channel) bool { return o.head != none })
}

var radix = flag.Int("radix", 8, "ports of the switches of TestFatTree's fabric, which has radix^3/4 end ports: 36 has 11,664")

// TestFatTree has all end ports of a fat tree send packets of 2048 bytes uniformly at
// half load, with 4 VLs, and prints the memory that Go took from the system: less than 4 GB.
func TestFatTree(t *testing.T) {
	f := short.Must(gen.FatTree(gen.FatTreeSpec{Radix: *radix, Levels: 3}))(t)
	f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{}))(t)
	r := short.Must(lft.Minhop{}.Route(t.Context(), f, lft.Options{}))(t)
	cfg := oldLinks()
	cfg.Mbps = 32_000
	cfg.PacketBuffers(4, 2048)
	m := short.Must(Measure(t.Context(), Network{State: state.State{Fabric: f, Tables: r.Tables, SL2VL: lft.NewSL2VL(f, lft.IdentityVLs(4))}}, cfg,
		Traffic{Load: 0.5, Bytes: 2048, SLs: 4, Seed: 1}, Stop{WarmUp: 20 * Microsecond, MaxTime: 60 * Microsecond}))(t)
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	t.Logf("%d end ports, %d switches, %d packets, %.2f of load accepted, latency %.0f ns; %d MB taken from the system",
		len(f.CAPorts()), f.NumSwitches(), m.Counts.Packets, m.Accepted, m.All.Mean()/1000, memory.Sys>>20)
	if m.Accepted < 0.4 || m.Counts.Dropped+m.Counts.Strayed != 0 || memory.Sys >= 4<<30 {
		t.Errorf("%g accepted, %+v, %d bytes", m.Accepted, m.Counts, memory.Sys)
	}
}

func TestParseTime(t *testing.T) {
	for text, want := range map[string]Time{
		"0ns": 0, "1ps": 1, "12.5ns": 12500, "0.001ns": 1, "100us": 100 * Microsecond, "2ms": 2 * Millisecond,
		"1.000000000001s": Second + 1, "20s": 20 * Second,
	} {
		if got, err := ParseTime(text); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", text, got, err, want)
		}
		if got, err := ParseTime(want.String()); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", want, got, err, want)
		}
	}
	for _, text := range []string{"", "1", "ns", "1m", "-1ns", "+1ns", "1.ns", ".5ns", "1.5ps", "0.0001ns", "1e3ns", "1_0ns", "1 ns", "9999999999s", "1.2.3ns"} {
		if got, err := ParseTime(text); err == nil || got != 0 || !strings.Contains(err.Error(), "want a number and ps, ns") {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}

// pop takes the first event if it is not later than until, and sets now.
func (q *queue) pop(until Time) (e event, ok bool) {
	if q.at == len(q.cur) && !q.turn() {
		return e, false
	}
	t := &q.cur[q.at]
	if t.at > until {
		return e, false
	}
	q.at++
	q.now = t.at
	return t.event, true
}

// TestQueueOrder has ties in the order in which they were pushed, and times near,
// far and beyond the wheel.
func TestQueueOrder(t *testing.T) {
	q := &queue{}
	q.init(bucketBits)
	times := []Time{5, 5, 0, 1 << 40, 5, 3 << 22, 1 << 40, 1023, 1024, 5}
	for i, at := range times {
		q.push(at, event{a: int32(i)})
	}
	want := []int32{2, 0, 1, 4, 9, 7, 8, 5, 3, 6}
	for _, w := range want {
		if e, ok := q.pop(Forever); !ok || e.a != w || q.now != times[w] {
			t.Fatalf("got event %d at %d, want %d", e.a, q.now, w)
		}
	}
	if _, ok := q.pop(Forever); ok {
		t.Error("an event too many")
	}
}

// TestQueueAgainstSlow compares the queue with a search for the least event, with
// delays of all sizes, and pushes after a pop that found nothing.
func TestQueueAgainstSlow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := &queue{}
		q.init(uint(rapid.IntRange(0, 12).Draw(t, "bits")))
		type pushed struct {
			at Time
			id int32
		}
		var slow []pushed
		next := int32(0)
		scale := rapid.IntRange(0, 36).Draw(t, "scale")
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			if rapid.IntRange(0, 9).Draw(t, "push") < 5 {
				at := q.now + Time(rapid.Int64Range(0, 1<<scale).Draw(t, "delay"))
				q.push(at, event{a: next})
				slow = append(slow, pushed{at, next})
				next++
				continue
			}
			until := q.now + Time(rapid.Int64Range(0, 1<<scale).Draw(t, "until"))
			least := -1
			for i := range slow {
				if least < 0 || slow[i].at < slow[least].at {
					least = i
				}
			}
			e, ok := q.pop(until)
			if want := least >= 0 && slow[least].at <= until; ok != want {
				t.Fatalf("pop until %d: %t", until, ok)
			}
			if !ok {
				continue
			}
			if w := slow[least]; e.a != w.id || q.now != w.at {
				t.Fatalf("got %d at %d, want %+v", e.a, q.now, w)
			}
			slow = append(slow[:least], slow[least+1:]...)
		}
		short.MustEqual(t, q.len(), len(slow), "events")
	})
}
