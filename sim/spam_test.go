package sim

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/updown"
)

var spamNetworks = flag.Int("spam-networks", short.Usual(100, 35), "how many random networks SPAM is tried on")

// spamRouter has SPAM's own routers. Tags of messages number the worms.
type spamRouter struct {
	net   *updown.SPAMNetwork
	worms []*updown.Worm
}

func (r *spamRouter) Route(s *Sim, at fabric.NodeID, in fabric.PortID, m *Message, to []fabric.PortID) []fabric.PortID {
	return r.net.Route(s, at, in, r.worms[m.Tag], to)
}

// newSPAM makes routers on a breadth-first tree.
func newSPAM(t testing.TB, f *fabric.Fabric, root fabric.NodeID) *spamRouter {
	t.Helper()
	net := short.Must(updown.NewSPAMNetwork(f, root, updown.BreadthFirst))(t)
	return &spamRouter{net: net}
}

// worm is the message of a new worm.
func (r *spamRouter) worm(t testing.TB, flits int, src fabric.PortID, to ...fabric.PortID) Message {
	t.Helper()
	x := short.Must(r.net.NewWorm(to))(t)
	r.worms = append(r.worms, x)
	return Message{Src: src, DLID: mft.MinMLID, Bytes: flits, Tag: int64(len(r.worms) - 1)}
}

// spamConfig is the hardware of the paper's experiments (S13): flits of 10 ns,
// 40 ns for the header in each router, a flit of room at each input and output.
func spamConfig() Config {
	return Config{
		Mbps: 800, RoutingDelay: 40 * Nanosecond, Startup: 10 * Microsecond,
		FlitBytes: 1, BufferFlits: 1, OutputFlits: 1, Copying: Wormhole,
	}
}

// TestSPAMLatency has worms that are alone: 10000 + 40 R + 10 (R + 1) + 127 x 10 ns
// (S14), R being the routers on the longest way. On a line of 40, 54 and 55 these
// are the values of G-S3; 54 is the last below 14 us.
func TestSPAMLatency(t *testing.T) {
	latency := func(routers int) Time { return Time(10_000+40*routers+10*(routers+1)+127*10) * Nanosecond }
	run := func(r *spamRouter, m Message) Time {
		cfg := spamConfig()
		cfg.FullChecks = 64
		l := &log{}
		s := mustNew(t, Network{State: state.State{Fabric: r.net.Fabric()}, Router: r}, cfg, l)
		mustSend(t, s, m)
		short.Check(t, s.Run(t.Context(), Forever))
		var got []fabric.PortID
		for _, d := range l.deliveries {
			got = append(got, d.Port)
		}
		slices.Sort(got)
		want := r.worms[m.Tag].Destinations(r.net.Fabric())
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("delivered to %v, want %v", got, want)
		}
		return s.Counts().LastAt
	}
	for routers, want := range map[int]Time{40: 13_280 * Nanosecond, 54: 13_980 * Nanosecond, 55: 14_030 * Nanosecond} {
		f := short.Must(mesh.Generate(mesh.Spec{Dims: []int{routers, 1}, Hosts: 1}))(t)
		hosts := f.CAPorts()
		r := newSPAM(t, f, 0)
		if got := run(r, r.worm(t, 128, hosts[0], hosts[routers-1])); got != want || got != latency(routers) {
			t.Errorf("%d routers: %s, want %s, by the formula %s", routers, got, want, latency(routers))
		}
		short.Equal(t, run(r, r.worm(t, 128, hosts[0], hosts[1:]...)), want, routers, "routers, broadcast")
	}
	for seed := range uint64(short.Of(8, 2)) {
		f := short.Must(gen.Lattice(64, seed))(t)
		hosts := f.CAPorts()
		r := newSPAM(t, f, 0)
		rng := rand.New(rand.NewPCG(seed, 3))
		for range 8 {
			some := rng.Perm(len(hosts))[:2+rng.IntN(len(hosts)-1)]
			var to []fabric.PortID
			for _, i := range some[1:] {
				to = append(to, hosts[i])
			}
			m := r.worm(t, 128, hosts[some[0]], to...)
			if got, want := run(r, m), latency(r.longest(m)); got != want {
				t.Errorf("seed %d, %d destinations: %s, want %s", seed, len(to), got, want)
			}
		}
	}
}

// longest is how many switches are on the longest way of a worm that is alone.
func (r *spamRouter) longest(m Message) int {
	f := r.net.Fabric()
	var far func(out fabric.PortID) int
	far = func(out fabric.PortID) int {
		in := f.Peer(out)
		if !f.IsSwitch(f.Owner(in)) {
			return 0
		}
		most := 0
		for _, p := range r.net.Route(allFree{}, f.Owner(in), in, r.worms[m.Tag], nil) {
			most = max(most, 1+far(p))
		}
		return most
	}
	return far(m.Src)
}

type allFree struct{}

func (allFree) Free(fabric.PortID, fabric.VL) bool { return true }

// figure1 is the network of the paper's figure 1 (G-S1), by the numbers there:
// 5 and 8 to 11 are processors.
func figure1(t *testing.T) (f *fabric.Fabric, port func(from, to int) fabric.PortID) {
	t.Helper()
	var b fabric.Builder
	for v := 1; v <= 11; v++ {
		n := fabric.Node{GUID: fabric.GUID(v), Type: fabric.Switch, NumPorts: 8, Description: fmt.Sprint(v)}
		if v == 5 || v >= 8 {
			n.Type, n.NumPorts = fabric.CA, 1
		}
		short.Must(b.AddNode(n))(t)
	}
	used := make([]fabric.PortNum, 12)
	for _, e := range [][2]int{{1, 2}, {1, 3}, {1, 4}, {2, 5}, {4, 6}, {4, 7}, {6, 8}, {6, 9}, {6, 10}, {7, 11}, {2, 3}, {3, 4}} {
		used[e[0]]++
		used[e[1]]++
		short.Check(t, b.Connect(e[0]-1, used[e[0]], e[1]-1, used[e[1]], fabric.Link{}))
	}
	f = short.Must(b.Build())(t)
	return f, func(from, to int) fabric.PortID {
		for p := range fabric.PortID(f.NumPorts()) {
			if q := f.Peer(p); q != fabric.NoPort && f.Node(f.Owner(p)).GUID == fabric.GUID(from) && f.Node(f.Owner(q)).GUID == fabric.GUID(to) {
				return p
			}
		}
		t.Fatalf("no cable from %d to %d", from, to)
		return fabric.NoPort
	}
}

// TestBlockedBranch is the narration of section 3.2 (G-S2): a worm from 5 to 8, 9,
// 10 and 11 while another one has the channel from 6 to 8. Its first flit stops at
// the input of 6, the second one at the output of 4 to 6, the third one at the input
// of 4; 7 and 11 have the first two, and then get bubbles. When the channel is free
// the rest follows.
func TestBlockedBranch(t *testing.T) {
	f, port := figure1(t)
	r := newSPAM(t, f, f.Owner(port(1, 2)))
	l := &log{}
	cfg := spamConfig()
	cfg.Startup, cfg.FullChecks = 0, 1
	s := mustNew(t, Network{State: state.State{Fabric: f}, Router: r}, cfg, l)
	mustSend(t, s, r.worm(t, 200, port(9, 6), port(8, 6)))
	mustSend(t, s, r.worm(t, 20, port(5, 2), port(8, 6), port(9, 6), port(10, 6), port(11, 7)))
	short.Check(t, s.Run(t.Context(), 1500*Nanosecond))
	// where is what a switch has of the worm: flits that have come in and that
	// have left the input buffer, and by output those that have left the output
	// buffer.
	where := func(from, at int) string {
		in := s.channels[f.Peer(port(from, at))]
		ce := s.cells.items[in.head]
		text := fmt.Sprintf("in %d out %d", ce.arrived, ce.gone)
		for b := ce.branch; b != none; b = s.branches.items[b].sibling {
			br := s.branches.items[b]
			text += fmt.Sprintf(", to %s %d of %d", f.Node(f.Owner(f.Peer(fabric.PortID(br.port)))).Description, br.sent, br.taken)
		}
		return text
	}
	for _, tt := range []struct {
		from, at int
		want     string
	}{
		{4, 6, "in 1 out 0, to 8 0 of 0, to 9 0 of 0, to 10 0 of 0"},
		{1, 4, "in 3 out 2, to 6 1 of 2, to 7 2 of 2"},
		{4, 7, "in 2 out 2, to 11 2 of 2"},
	} {
		short.Equal(t, where(tt.from, tt.at), tt.want, "at", tt.at)
	}
	short.Equal(t, len(l.deliveries), 0, "deliveries")
	short.Check(t, s.Run(t.Context(), Forever))
	var got []string
	for _, d := range l.deliveries {
		got = append(got, fmt.Sprint(d.Tag, " to ", f.Node(f.Owner(d.Port)).Description))
	}
	slices.Sort(got)
	if want := "[0 to 8 1 to 10 1 to 11 1 to 8 1 to 9]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// TestOCRQ has a worm wait for its turn at all its channels: while one has the channel
// from 6 to 8, another asks for it and the one to 9, and a third one for those to 9 and
// 10. These are free, and yet it has to wait.
func TestOCRQ(t *testing.T) {
	f, port := figure1(t)
	r := newSPAM(t, f, f.Owner(port(1, 2)))
	l := &log{}
	cfg := spamConfig()
	cfg.Startup, cfg.FullChecks = 0, 1
	s := mustNew(t, Network{State: state.State{Fabric: f}, Router: r}, cfg, l)
	for i, m := range []Message{
		r.worm(t, 400, port(9, 6), port(8, 6)),
		r.worm(t, 20, port(10, 6), port(8, 6), port(9, 6)),
		r.worm(t, 20, port(11, 7), port(9, 6), port(10, 6)),
	} {
		mustSend(t, s, m)
		short.Check(t, s.Run(t.Context(), Time(i+1)*500*Nanosecond))
	}
	short.Check(t, s.Run(t.Context(), Forever))
	var got []int64
	for _, d := range l.deliveries {
		got = append(got, d.Tag)
	}
	if want := []int64{0, 1, 1, 2, 2}; !slices.Equal(got, want) {
		t.Errorf("worms arrive in the order %d, want %d", got, want)
	}
}

// stress is traffic on a random network: worms of all hosts, that all ask to be
// sent at once.
type stress struct {
	r     *spamRouter
	worms []Message
	cfg   Config
}

// newStress makes a network of the kind of G-S4, grown on a lattice or anyhow, and
// traffic: each host has six worms, half of them multicasts, which are longer than
// all buffers of any way: a way has each switch at most twice, up and down, with a
// flit of room at the input and one at the output.
func newStress(t testing.TB, seed uint64) *stress {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 4))
	n := 6 + rng.IntN(14)
	f, err := gen.Lattice(n, seed)
	if seed%2 == 1 {
		f, err = gen.Irregular(gen.IrregularSpec{Switches: n, Degree: 3 + n%2, Hosts: n + rng.IntN(n), Seed: seed})
	}
	short.Check(t, err)
	x := &stress{r: newSPAM(t, f, fabric.NodeID(rng.IntN(n))), cfg: spamConfig()}
	x.cfg.Startup, x.cfg.FullChecks = 0, 1<<12
	hosts := f.CAPorts()
	for range 6 {
		for i, src := range hosts {
			d := 1
			if rng.IntN(2) == 0 {
				d = 2 + rng.IntN(len(hosts)-2)
			}
			var to []fabric.PortID
			for _, k := range rng.Perm(len(hosts))[:d+1] {
				if k != i && len(to) < d {
					to = append(to, hosts[k])
				}
			}
			x.worms = append(x.worms, x.r.worm(t, 4*n+1, src, to...))
		}
	}
	return x
}

// run sends all worms, and returns a deadlock if that is what becomes of them.
// Without one each destination must have each worm once.
func (x *stress) run(t testing.TB, router Router, copying Copying) *DeadlockError {
	t.Helper()
	cfg := x.cfg
	cfg.Copying = copying
	l := &log{}
	s := mustNew(t, Network{State: state.State{Fabric: x.r.net.Fabric()}, Router: router}, cfg, l)
	for _, m := range x.worms {
		mustSend(t, s, m)
	}
	err := s.Run(t.Context(), Forever)
	if dead, ok := errors.AsType[*DeadlockError](err); ok {
		return dead
	}
	short.Check(t, err)
	got := make([][]fabric.PortID, len(x.worms))
	for _, d := range l.deliveries {
		got[d.Tag] = append(got[d.Tag], d.Port)
	}
	for i := range got {
		want := x.r.worms[i].Destinations(x.r.net.Fabric())
		slices.Sort(want)
		if slices.Sort(got[i]); !slices.Equal(got[i], want) {
			t.Fatalf("worm %d: delivered to %v, want %v", i, got[i], want)
		}
	}
	if c := s.Counts(); c.Copies != 0 || c.Dropped != 0 {
		t.Fatalf("%+v", c)
	}
	return nil
}

// crossing routes worms by trees of shortest up*/down* ways, on which they take
// cross channels after they have split.
type crossing struct {
	net   *updown.SPAMNetwork
	trees []map[[2]int32][]fabric.PortID // by worm: by switch, and 1 when down, the output ports
}

func newCrossing(x *stress) *crossing {
	c := &crossing{net: x.r.net}
	f := x.r.net.Fabric()
	for i, m := range x.worms {
		type step struct {
			out  fabric.PortID
			from [2]int32
		}
		first := [2]int32{int32(f.Owner(f.Peer(m.Src))), 0}
		came := map[[2]int32]step{first: {fabric.NoPort, first}}
		queue := [][2]int32{first}
		for k := 0; k < len(queue); k++ {
			at := queue[k]
			ports, to := f.SwitchLinks(fabric.NodeID(at[0]))
			for j, p := range ports {
				next := [2]int32{int32(to[j]), 1}
				if x.r.net.Channel(p) == updown.Up {
					if next[1] = 0; at[1] == 1 {
						continue
					}
				}
				if _, seen := came[next]; !seen {
					came[next] = step{p, at}
					queue = append(queue, next)
				}
			}
		}
		tree := make(map[[2]int32][]fabric.PortID)
		add := func(at [2]int32, p fabric.PortID) {
			if !slices.Contains(tree[at], p) {
				tree[at] = append(tree[at], p)
				slices.Sort(tree[at])
			}
		}
		for _, d := range x.r.worms[i].Destinations(f) {
			at := queue[slices.IndexFunc(queue, func(q [2]int32) bool { return q[0] == int32(f.Owner(f.Peer(d))) })]
			add(at, f.Peer(d))
			for at != first {
				add(came[at].from, came[at].out)
				at = came[at].from
			}
		}
		c.trees = append(c.trees, tree)
	}
	return c
}

func (c *crossing) Route(_ *Sim, at fabric.NodeID, in fabric.PortID, m *Message, to []fabric.PortID) []fabric.PortID {
	down := int32(0)
	if c.net.Channel(c.net.Fabric().Peer(in)) != updown.Up {
		down = 1
	}
	return append(to, c.trees[m.Tag][[2]int32{int32(at), down}]...)
}

// TestSPAMStress has SPAM on random networks at saturation, with buffers of one flit
// (G-S4): it never deadlocks, and every destination has every worm once. The same
// worms do deadlock when they ask for their outputs one by one, and when they take
// cross channels after they have split.
func TestSPAMStress(t *testing.T) {
	networks := short.Of(*spamNetworks, 10)
	greedy, crossed, multicasts := 0, 0, 0
	for seed := range uint64(networks) {
		x := newStress(t, seed)
		for _, w := range x.r.worms {
			if len(w.Destinations(x.r.net.Fabric())) > 1 {
				multicasts++
			}
		}
		if dead := x.run(t, x.r, Wormhole); dead != nil {
			t.Errorf("seed %d: %v", seed, dead)
		}
		if x.run(t, x.r, GreedyWormhole) != nil {
			greedy++
		}
		if x.run(t, newCrossing(x), Wormhole) != nil {
			crossed++
		}
	}
	t.Logf("%d networks, %d multicasts: none deadlocks; %d do when outputs are taken one by one, %d with cross channels after the split",
		networks, multicasts, greedy, crossed)
	if greedy < networks/10 || crossed < networks/2 {
		t.Errorf("only %d of %d deadlock when outputs are taken one by one, %d with cross channels after the split", greedy, networks, crossed)
	}
}
