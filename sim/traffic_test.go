package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/state"
)

// TestQueueing has two hosts that send to each other over cables that no other host
// uses: the queue of each is M/D/1, whose mean wait is known (Pollaczek
// and Khinchine).
func TestQueueing(t *testing.T) {
	g := newGrid(t, 2, 1)
	cfg := oldLinks()
	cfg.MTU = 2048
	cfg.PacketBuffers(64, 2048)
	precision := short.Of(0.005, 0.01)
	for _, load := range []float64{0.3, 0.7} {
		m := short.Must(Measure(t.Context(), Network{State: state.State{Fabric: g.Fabric, Tables: g.tables}}, cfg, Traffic{
			Pattern: Shift(1), Load: load, Bytes: 100, Seed: 5,
		}, Stop{WarmUp: 100 * Microsecond, RelativeError: precision, MinMessages: short.Of[int64](60_000, 15_000), MaxTime: Second}))(t)
		const service = 400.0 // ns
		want := 230 + service + load*service/2/(1-load)
		mean, half := m.All.Interval()
		if math.Abs(mean/1000-want) > half/1000 || half > precision*mean || m.Saturated {
			t.Errorf("at %g: %.1f +- %.1f ns, want %.1f", load, mean/1000, half/1000, want)
		}
		if math.Abs(m.Offered-load) > 0.02 || math.Abs(m.Accepted-load) > 0.02 {
			t.Errorf("offered %g, accepted %g, want %g", m.Offered, m.Accepted, load)
		}
	}
}

// TestArrivals has the mean and the spread of the times between messages.
func TestArrivals(t *testing.T) {
	g := newGrid(t, 2, 1)
	for _, tt := range []struct {
		arrivals Arrivals
		spread   float64 // standard deviation by mean
	}{{Poisson, 1}, {Periodic, 0}} {
		s := mustNew(t, Network{State: state.State{Fabric: g.Fabric, Tables: g.tables}}, oldLinks(), nil)
		o := &open{Traffic: Traffic{Load: 0.5, Bytes: 10, Arrivals: tt.arrivals}, out: &Measured{}}
		short.Check(t, o.check(s))
		const n = 200_000
		sum, square := 0.0, 0.0
		for range n {
			gap := o.gap(&o.sources[0])
			sum += gap
			square += gap * gap
		}
		mean := sum / n
		spread := math.Sqrt(max(0, square/n/mean/mean-1))
		if math.Abs(mean/80_000-1) > 0.01 || math.Abs(spread-tt.spread) > 0.01 {
			t.Errorf("%s: mean %g ps, spread %g; want 80000, %g", tt.arrivals, mean, spread, tt.spread)
		}
	}
}

// TestMulticastTraffic counts what groups get, by MLID and by repeated unicast:
// the same messages, and more crossings for unicast.
func TestMulticastTraffic(t *testing.T) {
	g := newGrid(t, 4, 4)
	group := []fabric.PortID{g.host(0, 0), g.host(1, 3), g.host(3, 1), g.host(3, 3)}
	slices.Sort(group)
	plan := short.Must(mft.UnionRow{}.Build(t.Context(), &lft.Routing{Engine: "xy", Fabric: g.Fabric, Tables: g.tables},
		[]mft.Group{{Name: "g", Senders: group, Receivers: group}}, mft.Options{}))(t)
	run := func(repeat bool) *Measured {
		m := short.Must(Measure(t.Context(), Network{State: state.State{Fabric: g.Fabric, Tables: g.tables, Multicast: plan}}, oldLinks(), Traffic{
			Load: 0.1, Bytes: 256, Multicast: 0.5, Trees: plan.Trees, Repeat: repeat, Seed: 3,
		}, Stop{MaxTime: 2 * Millisecond}))(t)
		return m
	}
	tree, unicast := run(false), run(true)
	if tree.Multicast.Count < 100 || tree.Receiver.Count < 3*tree.Multicast.Count || tree.Receiver.Count > 3*tree.Multicast.Count+30 {
		t.Errorf("%d multicasts, %d copies", tree.Multicast.Count, tree.Receiver.Count)
	}
	if tree.All.Count != tree.Unicast.Count+tree.Multicast.Count || tree.Counts.Dropped+tree.Counts.Strayed != 0 {
		t.Errorf("%+v", tree)
	}
	if d := tree.Multicast.Count - unicast.Multicast.Count; d < -5 || d > 5 {
		t.Errorf("%d multicasts, repeated %d", tree.Multicast.Count, unicast.Multicast.Count)
	}
	if unicast.Counts.FlitHops <= tree.Counts.FlitHops || unicast.Multicast.Mean() <= tree.Multicast.Mean() || tree.Receiver.Mean() >= tree.Multicast.Mean() {
		t.Errorf("by tree %d flit-hops, %g ps, by unicast %d, %g", tree.Counts.FlitHops, tree.Multicast.Mean(), unicast.Counts.FlitHops, unicast.Multicast.Mean())
	}
	if again := run(false); again.All != tree.All || again.Counts != tree.Counts {
		t.Error("two runs differ")
	}
}

// TestBookSim has an 8x8 mesh with dimension order, uniform traffic and packets of
// one flit, against what BookSim publishes: latency near 29 cycles at 0.3 flits a
// node and cycle with 8 VCs of 8 flits, saturation at 0.4 to 0.5. A cycle is 1 ns
// here; its router of several stages is 3 cycles of routing, and the cable one. VLs
// differ from its VCs in that a packet keeps its SL, which the host's counter gives.
func TestBookSim(t *testing.T) {
	g := newGrid(t, 8, 8)
	cfg := Config{
		Mbps: 8000, RoutingDelay: 3 * Nanosecond, WireDelay: Nanosecond, CreditDelay: Nanosecond,
		FlitBytes: 1, BufferFlits: 8,
	}
	net := Network{State: state.State{Fabric: g.Fabric, Tables: g.tables, SL2VL: lft.NewSL2VL(g.Fabric, lft.IdentityVLs(8))}}
	run := func(load float64) *Measured {
		m := short.Must(Measure(t.Context(), net, cfg, Traffic{
			Load: load, Bytes: 1, SLs: 8, Seed: 1,
		}, Stop{WarmUp: 2 * Microsecond, RelativeError: 0.02, MinMessages: short.Of[int64](60_000, 20_000), MaxTime: short.Of(12*Microsecond, 6*Microsecond), MaxQueue: 50}))(t)
		return m
	}
	light := run(0.3)
	t.Logf("at 0.3: %.1f cycles, %.3f flits a node and cycle", light.All.Mean()/1000, light.Accepted)
	if mean := light.All.Mean() / 1000; mean < 26 || mean > 33 || light.Saturated {
		t.Errorf("%.1f cycles at 0.3 flits a cycle, saturated %t", mean, light.Saturated)
	}
	m := run(0.4)
	t.Logf("at 0.4: %.1f cycles, %.3f flits", m.All.Mean()/1000, m.Accepted)
	if m.Saturated {
		t.Errorf("saturated at 0.4: accepted %g", m.Accepted)
	}
	m = run(0.55)
	t.Logf("at 0.55: accepts %.3f flits, saturated: %t", m.Accepted, m.Saturated)
	if !m.Saturated || m.Accepted > 0.52 || m.Accepted < 0.38 {
		t.Errorf("at 0.55: accepted %g, saturated %t", m.Accepted, m.Saturated)
	}
}

func TestPatterns(t *testing.T) {
	const n = 10
	rng := rand.New(rand.NewPCG(1, 1))
	for _, tt := range []struct{ text, want string }{
		{"uniform", "uniform"}, {"permutation", "permutation:0"}, {"permutation:7", "permutation:7"}, {"shift:3", "shift:3"},
		{"shift:-1", "shift:-1"}, {"hot-spot:4:0.5", "hot-spot:4:0.5"}, {"all-to-all", "all-to-all"},
		{"bisection", "bisection"}, {"bisection:7", "bisection:7"}, {"allreduce-ring", "allreduce-ring"},
	} {
		p, err := ParsePattern(tt.text)
		if err != nil || p.String() != tt.want {
			t.Fatalf("%s: %v, %v", tt.text, p, err)
		}
		to := short.Must(p.For(n, 3))(t)
		var got [n][n]int
		for k := range int64(900) {
			for i := range n {
				d := to(i, k, rng)
				if d < 0 || d >= n || d == i {
					t.Fatalf("%s: %d to %d", tt.text, i, d)
				}
				got[i][d]++
			}
		}
		for i := range n {
			into := 0
			for j := range n {
				into += got[j][i]
				switch tt.want {
				case "all-to-all":
					if i != j && got[i][j] != 100 {
						t.Errorf("all-to-all: %d to %d %d times", i, j, got[i][j])
					}
				case "uniform":
					if i != j && (got[i][j] < 60 || got[i][j] > 140) {
						t.Errorf("uniform: %d to %d %d times", i, j, got[i][j])
					}
				}
			}
			switch name, rest, _ := strings.Cut(tt.want, ":"); name {
			case "permutation":
				if into != 900 {
					t.Errorf("permutation: %d messages to %d", into, i)
				}
			case "bisection":
				if j := to(i, 0, rng); got[i][j] != 900 || got[j][i] != 900 {
					t.Errorf("bisection: %d is the partner of %d, %v and %v", j, i, got[i], got[j])
				}
			case "allreduce-ring":
				if got[i][(i+1)%n] != 900 {
					t.Errorf("ring: %v from %d", got[i], i)
				}
			case "shift":
				if by, _ := strconv.Atoi(rest); got[i][(i+by+n)%n] != 900 {
					t.Errorf("shift: %v from %d", got[i], i)
				}
			case "hot-spot":
				if want := 900*9/2 + 900/2; i == 4 && (into < want-200 || into > want+200) {
					t.Errorf("hot spot: %d messages, want %d", into, want)
				}
			}
		}
	}
	for _, bad := range []string{"", "uniform:1", "shift", "shift:x", "hot-spot:1", "hot-spot:1:2", "hot-spot:-1:0.5", "hot-spot:1:NaN", "permutation:-1", "bisection:x", "tornado"} {
		if p, err := ParsePattern(bad); err == nil || p.bind != nil || !strings.Contains(err.Error(), "want uniform, permutation") {
			t.Errorf("%q: %v, %v", bad, p, err)
		}
	}
	for _, p := range []Pattern{Shift(20), HotSpot(10, 0.5)} {
		if q, err := p.For(n, 0); err == nil || q != nil {
			t.Errorf("%s for %d hosts", p, n)
		}
	}
}

// TestRankOrder has the hosts of a tree by the names of their leaves, and shuffled by a seed.
func TestRankOrder(t *testing.T) {
	f := short.Must(gen.Tree(gen.TreeSpec{Ports: 16, Pods: []int{11}, Hosts: 1, Spines: 1}))(t)
	hosts := f.CAPorts()
	ordered := func(text string) []fabric.PortID {
		list := slices.Clone(hosts)
		slices.Reverse(list)
		short.Must(ParseRankOrder(text))(t)(f, list)
		return list
	}
	if got := ordered("listed"); got[0] != hosts[len(hosts)-1] {
		t.Error("listed:", got)
	}
	for i, p := range ordered("leaf") {
		if i > 0 && text.Natural(f.Node(f.Owner(f.Peer(hosts[i-1]))).Description, f.Node(f.Owner(f.Peer(p))).Description) >= 0 {
			t.Errorf("rank %d is at %s", i, f.PortName(f.Peer(p)))
		}
	}
	one, same, other := ordered("random:1"), ordered("random:1"), ordered("random:2")
	if !slices.Equal(one, same) || slices.Equal(one, other) {
		t.Error("random:1:", one, same, "random:2:", other)
	}
	for _, bad := range []string{"", "random:x", "random:-1", "leaf:1"} {
		if _, err := ParseRankOrder(bad); err == nil {
			t.Errorf("%q is an order", bad)
		}
	}
}

func TestLatency(t *testing.T) {
	var l Latency
	if mean, half := l.Interval(); mean != 0 || !math.IsInf(half, 1) || l.Quantile(0.5) != 0 {
		t.Error(mean, half)
	}
	rng := rand.New(rand.NewPCG(2, 2))
	for range 100_000 {
		l.add(Time(rng.IntN(1_000_000)))
	}
	mean, half := l.Interval()
	// The standard error is 288675/sqrt(100000) = 913.
	if math.Abs(mean-500_000) > 3000 || half < 913*1.2 || half > 913*3 || l.Count != 100_000 {
		t.Errorf("%g +- %g", mean, half)
	}
	for _, q := range []float64{0, 0.1, 0.5, 0.9, 0.99, 1} {
		if got := float64(l.Quantile(q)); math.Abs(got-q*1e6) > q*1e6/15+100 {
			t.Errorf("quantile %g is %g", q, got)
		}
	}
	for _, at := range []Time{0, 1, 15, 16, 17, 31, 32, 1000, 123456789, 1 << 40, math.MaxInt64} {
		if b := bin(at); floor(b) > at || b < len(l.bins)-1 && bin(floor(b)) != b || float64(at-floor(b)) > float64(at)/fine {
			t.Errorf("%d is in bin %d from %d on", at, b, floor(b))
		}
	}
	for df, want := range map[int]float64{9: 2.262, 20: 2.086, 31: 2.040, 63: 1.998} {
		if got := student95(df); math.Abs(got-want) > 0.001 {
			t.Errorf("t of %d is %g, want %g", df, got, want)
		}
	}
}

func TestTrafficErrors(t *testing.T) {
	g := newGrid(t, 2, 2)
	net := Network{State: state.State{Fabric: g.Fabric, Tables: g.tables}}
	good := Traffic{Load: 0.1, Bytes: 100}
	for _, tt := range []struct {
		change func(*Traffic, *Stop)
		want   string
	}{
		{func(x *Traffic, _ *Stop) { x.Load = 0 }, "load 0: want more than 0"},
		{func(x *Traffic, _ *Stop) { x.Load = math.NaN() }, "load NaN"},
		{func(x *Traffic, _ *Stop) { x.Bytes = 0 }, "messages of 0 bytes"},
		{func(x *Traffic, _ *Stop) { x.Bytes = 5000 }, "a packet of 79 flits for buffers of 64"},
		{func(x *Traffic, _ *Stop) { x.Multicast = 0.5 }, "multicast without a host that may send"},
		{func(x *Traffic, _ *Stop) { x.Multicast = 2 }, "a share of 2 multicast"},
		{func(x *Traffic, _ *Stop) { x.SLs = 17 }, "17 SLs"},
		{func(x *Traffic, _ *Stop) { x.Hosts = g.CAPorts()[:1] }, "traffic of 1 hosts"},
		{func(x *Traffic, _ *Stop) { x.Hosts = []fabric.PortID{0, 1} }, "port 0 cannot send"},
		{func(x *Traffic, _ *Stop) { x.Hosts = []fabric.PortID{g.host(0, 0), g.host(0, 0)} }, "sends twice"},
		{func(x *Traffic, _ *Stop) { x.Pattern = Shift(4) }, "shift by 4 among 4 hosts"},
		{func(_ *Traffic, s *Stop) { s.MaxTime = 0 }, "a measurement that ends at 0ns"},
		{func(_ *Traffic, s *Stop) { s.RelativeError = -1 }, "less than nothing"},
	} {
		x, stop := good, Stop{MaxTime: Millisecond}
		tt.change(&x, &stop)
		if m, err := Measure(t.Context(), net, oldLinks(), x, stop); m != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
}

// TestHowItEnds tells a network that is saturated from a measurement that was cut
// short. Both hosts' packets take 400 ns of the link.
func TestHowItEnds(t *testing.T) {
	g := newGrid(t, 2, 1)
	for _, tt := range []struct {
		name              string
		load, error       float64
		max               Time
		saturated, timeUp bool
	}{
		{"precise", 0.3, 0.02, Second, false, false},
		{"short", 0.3, 0.02, 100 * Microsecond, false, true},
		{"short at high load", 0.9, 0.001, 2 * Millisecond, false, true},
		{"no precision asked for", 0.3, 0, 100 * Microsecond, false, false},
		{"too much, until --max-queue", 2, 0.02, Second, true, false},
		{"too much, a tenth of that", 2, 0.02, 100 * Microsecond, true, false},
		{"too much, too short to tell", 2, 0.02, 20 * Microsecond, false, true},
	} {
		m := short.Must(Measure(t.Context(), Network{State: state.State{Fabric: g.Fabric, Tables: g.tables}}, oldLinks(), Traffic{
			Pattern: Shift(1), Load: tt.load, Bytes: 100, Seed: 5,
		}, Stop{WarmUp: 10 * Microsecond, RelativeError: tt.error, MaxTime: tt.max}))(t)
		if m.Saturated != tt.saturated || m.TimeUp != tt.timeUp || tt.timeUp && m.Time != tt.max {
			t.Errorf("%s: saturated %t, time up %t, at %s with %d waiting", tt.name, m.Saturated, m.TimeUp, m.Time, m.Counts.Queued)
		}
	}
}

func TestParseSources(t *testing.T) {
	for text, want := range map[string]int{"all": 0, "one": 1, "7": 7, "40%": 102, "0.001%": 1, "100%": 256, "256": 256} {
		c, err := ParseSources(text)
		if err != nil {
			t.Error(err)
			continue
		}
		if n, err := c.Of(256); err != nil || n != want {
			t.Errorf("%s of 256: %d, %v; want %d", text, n, err, want)
		}
	}
	for _, text := range []string{"", "0", "-1", "0%", "100.1%", "NaN%", "some", "1.5"} {
		if c, err := ParseSources(text); err == nil {
			t.Errorf("%q: %+v", text, c)
		}
	}
	if n, err := SourceCount(func(int) int { return 3 }).Of(2); err == nil {
		t.Errorf("3 of 2 is %d", n)
	}
}
