package sim

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
)

// paper is the experiment of the mesh papers: each of some sources sends a message
// to all of a group but itself, at time 0.
type paper struct {
	g       *grid
	sources []fabric.PortID
	group   []fabric.PortID
	plan    *mft.Plan
	mlid    map[fabric.PortID]fabric.LID
}

// newPaper draws sources and group; a share of 1 is all hosts.
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
	cfg := Defaults()
	cfg.PacketBuffers(1, bytes)
	s := mustNew(t, Network{Fabric: p.g.Fabric, Tables: p.g.tables, Multicast: p.plan.Tables, SL2VL: sl2vl}, cfg, nil)
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
	if err := s.Run(t.Context(), Forever); err != nil {
		t.Fatal(err)
	}
	if c := s.Counts(); c.Delivered != want || c.Dropped != 0 || c.Strayed != 0 {
		t.Fatalf("%d deliveries of %d, %+v", c.Delivered, want, c)
	}
	return s, s.Counts().LastAt
}

func TestPaperNumbers(t *testing.T) {
	g := newGrid(t, 16, 16)
	for _, tt := range []struct {
		sources, group, bytes int
		want                  [5]int // ns: unicast on 1, 2, 4 VLs, multicast on 1, 4
	}{
		{1, 102, 32, [5]int{27468, 15468, 15468, 2668, 2668}},
		{1, 102, 8192, [5]int{3324108, 3312108, 3312108, 35308, 35308}},
		{1, 256, 32, [5]int{65770, 35290, 35290, 2778, 2778}},
		{1, 256, 8192, [5]int{8388970, 8358490, 8358490, 35418, 35418}},
		{102, 102, 32, [5]int{187594, 89314, 77194, 25076, 14896}},
		{102, 102, 8192, [5]int{25124512, 21147320, 17864540, 3870294, 3539334}},
		{102, 256, 32, [5]int{463130, 240102, 187658, 25164, 15362}},
		{102, 256, 8192, [5]int{61428974, 52714254, 47026610, 4002386, 3572122}},
		{256, 256, 32, [5]int{956710, 485828, 367516, 61542, 39328}},
		{256, 256, 8192, [5]int{121742386, 110065184, 88713036, 9251696, 9733406}},
	} {
		p := newPaper(t, g, tt.sources, tt.group, 1)
		for i, c := range []struct {
			unicast bool
			vls     int
		}{{true, 1}, {true, 2}, {true, 4}, {false, 1}, {false, 4}} {
			_, at := p.run(t, c.unicast, tt.bytes, lft.NewSL2VL(g.Fabric, lft.IdentityVLs(c.vls)), c.vls)
			ns := int(at / Nanosecond)
			t.Logf("%d/%d %d bytes: %v %d want %d: %+.1f%%", tt.sources, tt.group, tt.bytes, c, ns, tt.want[i], 100*float64(ns)/float64(tt.want[i])-100)
		}
	}
}
