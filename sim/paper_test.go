package sim

import (
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/state"
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
	if err != nil {
		t.Fatal(err)
	}
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
