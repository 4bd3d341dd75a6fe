package sim

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/routing/banyan"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// paper is the experiment of the mesh papers: each of some sources sends a message
// to all of a group but itself, at time 0.
type paper struct {
	g       *grid
	sources []fabric.PortID
	group   []fabric.PortID
	plan    *mft.Plan
	mlid    map[fabric.PortID]fabric.LID

	arbitration Arbitration
}

// newPaper draws sources and a group.
func newPaper(t testing.TB, g *grid, sources, group int, seed uint64) *paper {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	draw := func(n int) []fabric.PortID {
		hosts := slices.Clone(g.CAPorts())
		rng.Shuffle(len(hosts), func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })
		hosts = hosts[:n]
		slices.Sort(hosts)
		return hosts
	}
	p := &paper{g: g, group: draw(group), sources: draw(sources), mlid: map[fabric.PortID]fabric.LID{}}
	var err error
	p.plan, err = mft.UnionRow{}.Build(t.Context(), &lft.Routing{Engine: "xy", Fabric: g.Fabric, Tables: g.tables},
		[]mft.Group{{Name: "all", Senders: p.sources, Receivers: p.group}}, mft.Options{})
	short.Check(t, err)
	for _, tree := range p.plan.Trees {
		for _, s := range tree.Senders {
			p.mlid[s] = tree.MLID
		}
	}
	return p
}

// run gives the time of the last delivery, and checks that all came.
func (p *paper) run(t testing.TB, unicast bool, bytes int, sl2vl *lft.SL2VL, sls int) (*Sim, Time) {
	t.Helper()
	cfg := oldLinks()
	cfg.PacketBuffers(1, bytes)
	cfg.Arbitration = p.arbitration
	s := mustNew(t, Network{State: state.State{Fabric: p.g.Fabric, Tables: p.g.tables, Multicast: p.plan, SL2VL: sl2vl}}, cfg, nil)
	want := int64(0)
	for i, src := range p.sources {
		n := 0
		for _, d := range p.group {
			if d == src {
				continue
			}
			want++
			if unicast {
				mustSend(t, s, Message{Src: src, DLID: p.g.LID(d), Bytes: bytes, SL: fabric.SL((i + n) % sls)})
				n++
			}
		}
		if !unicast {
			mustSend(t, s, Message{Src: src, DLID: p.mlid[src], Bytes: bytes, SL: fabric.SL(i % sls)})
		}
	}
	short.Check(t, s.Run(t.Context(), Forever))
	if c := s.Counts(); c.Delivered != want || c.Dropped != 0 || c.Strayed != 0 {
		t.Fatalf("%d deliveries of %d, %+v", c.Delivered, want, c)
	}
	return s, s.Counts().LastAt
}

var allRows = flag.Bool("all-rows", false, "TestPaperNumbers has the rows of G-X9 that take minutes, too")

// TestPaperNumbers has G-X9: the makespans that another simulator found, whose
// sources and groups are not known, within a band. What one source sends by
// multicast, or back to back, has no chance in it but where the source is.
func TestPaperNumbers(t *testing.T) {
	g := newGrid(t, 16, 16)
	for _, tt := range short.Part(3, []struct {
		sources, group, bytes int
		band                  float64
		want                  [5]int // ns: unicast on 1, 2, 4 VLs, multicast on 1, 4; negative with -all-rows only
	}{
		{1, 102, 32, 0.07, [5]int{27468, 15468, 15468, 2668, 2668}},
		{1, 102, 8192, 0.02, [5]int{3324108, 3312108, 3312108, 35308, 35308}},
		{1, 256, 32, 0.05, [5]int{65770, 35290, 35290, 2778, 2778}},
		{1, 256, 8192, 0.02, [5]int{8388970, 8358490, 8358490, 35418, 35418}},
		{102, 102, 32, 0.12, [5]int{187594, 89314, 77194, 25076, 14896}},
		{102, 102, 8192, 0.12, [5]int{25124512, 21147320, 17864540, 3870294, 3539334}},
		{102, 256, 32, 0.12, [5]int{-463130, -240102, -187658, 25164, 15362}},
		{102, 256, 8192, 0.12, [5]int{-61428974, -52714254, -47026610, 4002386, 3572122}},
		{256, 256, 32, 0.15, [5]int{-956710, -485828, 367516, 61542, 39328}},
		{256, 256, 8192, 0.15, [5]int{-121742386, -110065184, -88713036, 9251696, 9733406}},
	}) {
		p := newPaper(t, g, tt.sources, tt.group, 1)
		for i, c := range []struct {
			unicast bool
			vls     int
		}{{true, 1}, {true, 2}, {true, 4}, {false, 1}, {false, 4}} {
			want := tt.want[i]
			if want < 0 && !*allRows {
				continue
			}
			want = max(want, -want)
			_, at := p.run(t, c.unicast, tt.bytes, lft.NewSL2VL(g.Fabric, lft.IdentityVLs(c.vls)), c.vls)
			off := at.Nanoseconds()/float64(want) - 1
			if math.Abs(off) > tt.band {
				t.Errorf("%d sources, group of %d, %d bytes, unicast %t, %d VLs: %s is %+.1f%% off %d",
					tt.sources, tt.group, tt.bytes, c.unicast, c.vls, at, 100*off, want)
			}
		}
	}
}

// TestPaperLoads has the link loads of all-to-all on the 16x16 mesh, exactly.
func TestPaperLoads(t *testing.T) {
	g := newGrid(t, 16, 16)
	p := newPaper(t, g, 256, 256, 1)
	for _, tt := range []struct {
		unicast                      bool
		hottest, ejection, crossings int64
	}{{true, 1024, 255, 696320}, {false, 240, 255, 65280}} {
		s, _ := p.run(t, tt.unicast, 32, nil, 1)
		var hottest, ejection, crossings int64
		for port := range fabric.PortID(g.NumPorts()) {
			peer := g.Peer(port)
			if peer == fabric.NoPort || !g.IsSwitch(g.Owner(port)) {
				continue
			}
			load := s.Load(port)
			if load.Bytes != 32*load.Packets || load.Busy != Time(load.Bytes)*4*Nanosecond {
				t.Fatalf("%+v", load)
			}
			if g.IsSwitch(g.Owner(peer)) {
				hottest = max(hottest, load.Packets)
				crossings += load.Packets
			} else {
				ejection = max(ejection, load.Packets)
			}
		}
		if hottest != tt.hottest || ejection != tt.ejection || crossings != tt.crossings {
			t.Errorf("unicast %t: hottest %d, ejection %d, %d crossings; want %+v", tt.unicast, hottest, ejection, crossings, tt)
		}
	}
}

// TestDedicatedVLs has G-X10: VLs by direction are one VL, to the picosecond, and what
// all to all by multicast takes on the 16x16 mesh.
func TestDedicatedVLs(t *testing.T) {
	g := newGrid(t, 8, 8)
	geometry := short.Must(mesh.Detect(g.Fabric, mesh.DetectOptions{}))(t)
	// All to all on the 16x16 mesh draws nothing, and the simulator that G-X9 and G-X10
	// are of serves packets in the order in which they ask.
	all := newGrid(t, 16, 16)
	wide := short.Must(mesh.Detect(all.Fabric, mesh.DetectOptions{}))(t)
	p := newPaper(t, all, 256, 256, 1)
	p.arbitration = FIFO
	times := map[int]Time{32: 61542 * Nanosecond, 8192: 9251696 * Nanosecond}
	for _, bytes := range short.Keys(times, 32) {
		want := times[bytes]
		if _, got := p.run(t, false, bytes, nil, 1); got != want {
			t.Errorf("all to all, %d bytes: %s, want %s", bytes, got, want)
		}
		for _, vls := range []int{2, 4} {
			sl2vl := short.Must(mesh.ByDirection(wide, vls))(t)
			if _, got := p.run(t, false, bytes, sl2vl, 1); got != want {
				t.Errorf("all to all, %d bytes on %d VLs: %s, want %s", bytes, vls, got, want)
			}
		}
	}
	for _, tt := range short.Part(3, []struct{ sources, group int }{{1, 26}, {26, 64}, {64, 26}, {1, 64}, {26, 26}, {64, 64}}) {
		p := newPaper(t, g, tt.sources, tt.group, 3)
		for _, unicast := range []bool{true, false} {
			_, want := p.run(t, unicast, 32, nil, 1)
			for _, vls := range []int{2, 4} {
				sl2vl := short.Must(mesh.ByDirection(geometry, vls))(t)
				if _, got := p.run(t, unicast, 32, sl2vl, 1); got != want {
					t.Errorf("%+v, unicast %t, %d VLs: %s, with one %s", tt, unicast, vls, got, want)
				}
			}
			if _, by := p.run(t, unicast, 32, lft.NewSL2VL(g.Fabric, lft.IdentityVLs(4)), 4); unicast && by >= want {
				t.Errorf("%+v, unicast on 4 VLs by SL: %s, with one %s", tt, by, want)
			}
		}
	}
}

// region is a multicast on a banyan network to the processors from first to last.
type region struct{ from, first, last int }

// onBanyan is a network of n stages with destination tags, and the masks of a
// group for each multicast.
func onBanyan(t *testing.T, n int, list []region) (*banyan.Network, *lft.Routing, *mft.Plan) {
	t.Helper()
	f := short.Must(banyan.Banyan(n, false))(t)
	f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{}))(t)
	r := short.Must(banyan.Engine{}.Route(t.Context(), f, lft.Options{}))(t)
	w := short.Must(banyan.Detect(f))(t)
	var groups []mft.Group
	for _, x := range list {
		g := mft.Group{Name: fmt.Sprint(x), Senders: w.Outputs[x.from : x.from+1]}
		for a := x.first; a <= x.last; a++ {
			g.Receivers = append(g.Receivers, w.Inputs[a])
		}
		slices.Sort(g.Receivers)
		groups = append(groups, g)
	}
	p := short.Must(banyan.RegionTree{}.Build(t.Context(), r, groups, mft.Options{}))(t)
	return w, r, p
}

// unsafeCopying are the ways to copy for which verify has an error.
func unsafeCopying(t *testing.T, r *lft.Routing, p *mft.Plan) (list []Copying) {
	t.Helper()
	for sims, c := range map[Copying]verify.Copying{Independent: verify.Independent, Wormhole: verify.Wormhole, LockStep: verify.LockStep} {
		v := short.Must(verify.Check(t.Context(), &state.State{Fabric: r.Fabric, Tables: r.Tables, SL2VL: r.SL2VL, PathSLs: r.PathSLs, Multicast: &mft.Plan{Tables: p.Tables, Trees: p.Trees}}, verify.Options{Copying: c}))(t)
		if v.Verdict == verify.VerdictErrors {
			list = append(list, sims)
		}
	}
	slices.Sort(list)
	return list
}

// runBanyan sends packets of 6 flits, all at once.
func runBanyan(t *testing.T, w *banyan.Network, p *mft.Plan, cfg Config) (*log, error) {
	t.Helper()
	l := &log{}
	s := mustNew(t, Network{State: state.State{Fabric: w.Fabric, Multicast: p}}, cfg, l)
	for _, tree := range p.Trees {
		mustSend(t, s, Message{Src: tree.Senders[0], DLID: tree.MLID, Bytes: 6})
	}
	return l, s.Run(t.Context(), Forever)
}

// TestBanyanWorms has figure 4 of the paper on recursive multicast, worms from 1 to
// 5..8 and from 15 to 7..12, and its remedy, the upper input first. The two of them
// arrive. With two more worms they deadlock all the same (E-N7), unless buffers have
// room for whole packets. verify has it of worms that may wait for each other in
// both cases, and in that of three worms in a network of four, and that InfiniBand's
// copying is safe. RunWorms of papers/multistage has the elements of the paper, which begin to
// send by one output before they have the other; there three worms are enough
// (G-N7), and two if elements differ in who goes first.
func TestBanyanWorms(t *testing.T) {
	for _, tt := range []struct {
		stages int
		worms  []region
		dead   bool
	}{
		{4, []region{{1, 5, 8}, {15, 7, 12}}, false},
		{4, []region{{1, 5, 8}, {15, 7, 12}, {0, 8, 14}, {8, 7, 13}}, true},
		{2, []region{{1, 1, 2}, {2, 1, 2}, {0, 0, 0}}, false},
	} {
		w, r, p := onBanyan(t, tt.stages, tt.worms)
		if got := unsafeCopying(t, r, p); !slices.Contains(got, Wormhole) || slices.Contains(got, Independent) {
			t.Errorf("%v: verify has unsafe %v", tt.worms, got)
		}
		for _, run := range []struct {
			copying Copying
			buffer  int
			dead    bool
		}{
			{GreedyWormhole, 1, tt.dead}, {GreedyWormhole, 6, false}, {Independent, 6, false},
		} {
			cfg := cycles(run.copying, run.buffer)
			cfg.Arbitration = LowestPort
			l, err := runBanyan(t, w, p, cfg)
			if _, dead := errors.AsType[*DeadlockError](err); dead != run.dead {
				t.Errorf("%v, %s, buffers of %d: %v", tt.worms, run.copying, run.buffer, err)
			}
			want := 0
			for _, x := range tt.worms {
				want += x.last - x.first + 1
			}
			if !run.dead && (err != nil || len(l.deliveries) != want) {
				t.Errorf("%v, %s, buffers of %d: %v, %d deliveries of %d", tt.worms, run.copying, run.buffer, err, len(l.deliveries), want)
			}
		}
	}
}

// grid is a mesh of m columns and n rows with a host on each switch, by coordinates,
// with the LIDs of the mesh papers and dimension-order tables.
type grid struct {
	m, n int
	*fabric.Fabric
	tables *lft.Tables
}

func newGrid(t testing.TB, m, n int) *grid {
	t.Helper()
	f := short.Must(mesh.Generate(mesh.Spec{Dims: []int{m, n}, Hosts: 1}))(t)
	g := &grid{m: m, n: n, Fabric: f}
	lids := make([]fabric.LID, f.NumPorts())
	for s := range m * n {
		lids[g.host(s/n, s%n)] = fabric.LID(s + 1)
		lids[f.PortBase(fabric.NodeID(s))] = fabric.LID(m*n + s + 1)
	}
	g.Fabric = short.Must(f.WithLIDs(lids, make([]uint8, f.NumPorts())))(t)
	g.tables = g.route(true)
	return g
}

// host is the port of the host at x, y.
func (g *grid) host(x, y int) fabric.PortID {
	return g.Peer(g.Port(fabric.NodeID(x*g.n+y), 5))
}

// lid is the LID of the host at x, y.
func (g *grid) lid(x, y int) fabric.LID { return fabric.LID(x*g.n + y + 1) }

// route is XY tables, or YX ones.
func (g *grid) route(xFirst bool) *lft.Tables {
	t := lft.NewTables(g.m*g.n, g.MaxLID())
	for s := range g.m * g.n {
		row := t.Row(fabric.NodeID(s))
		for lid := fabric.LID(1); lid <= g.MaxLID(); lid++ {
			d := int(lid-1) % (g.m * g.n)
			alongX := sign(d/g.n-s/g.n, 1, 3)
			alongY := sign(d%g.n-s%g.n, 2, 4)
			switch {
			case alongX != 0 && (xFirst || alongY == 0):
				row[lid] = alongX
			case alongY != 0:
				row[lid] = alongY
			case int(lid) <= g.m*g.n:
				row[lid] = 5
			default:
				row[lid] = 0
			}
		}
	}
	return t
}

func sign(d int, plus, minus fabric.PortNum) fabric.PortNum {
	switch {
	case d > 0:
		return plus
	case d < 0:
		return minus
	}
	return 0
}

// multicast is a packet to several hosts, by coordinates.
type multicast struct {
	from [2]int
	to   [][2]int
}

// plan is an MLID for each packet, with the union of its paths.
func (g *grid) plan(t testing.TB, packets []multicast) *mft.Plan {
	t.Helper()
	var groups []mft.Group
	for i, p := range packets {
		group := mft.Group{Name: fmt.Sprint(i), Senders: []fabric.PortID{g.host(p.from[0], p.from[1])}}
		for _, to := range p.to {
			group.Receivers = append(group.Receivers, g.host(to[0], to[1]))
		}
		slices.Sort(group.Receivers)
		groups = append(groups, group)
	}
	return short.Must(mft.Union{}.Build(t.Context(), &lft.Routing{Engine: "xy", Fabric: g.Fabric, Tables: g.tables}, groups, mft.Options{}))(t)
}

func mustNew(t testing.TB, net Network, cfg Config, d Driver) *Sim {
	t.Helper()
	return short.Must(New(net, cfg, d))(t)
}

func mustSend(t testing.TB, s *Sim, m Message) {
	t.Helper()
	short.Check(t, s.Send(m))
}

// log keeps all deliveries.
type log struct {
	deliveries []Delivery
	wake       func(s *Sim, id int64)
}

func (l *log) Deliver(_ *Sim, d *Delivery) { l.deliveries = append(l.deliveries, *d) }
func (l *log) Wake(s *Sim, id int64) {
	if l.wake != nil {
		l.wake(s, id)
	}
}

// cycles is a Config in units of 1 ns: a flit of a byte takes 1 ns on a link, and
// nothing else takes any time but a switch.
func cycles(copying Copying, buffer int) Config {
	return Config{
		Mbps: 8000, RoutingDelay: Nanosecond, FlitBytes: 1, BufferFlits: buffer,
		Copying: copying, FullChecks: 1,
	}
}
