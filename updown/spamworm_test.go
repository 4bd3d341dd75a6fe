package updown

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
)

// free has all channels free but some.
type free map[fabric.PortID]bool

func (x free) Free(p fabric.PortID, _ fabric.VL) bool { return !x[p] }

func spamNetwork(t testing.TB, f *fabric.Fabric, root fabric.NodeID, tree SpanningTree) *SPAMNetwork {
	t.Helper()
	return short.Must(NewSPAMNetwork(f, root, tree))(t)
}

func newWorm(t testing.TB, w *SPAMNetwork, to ...fabric.PortID) *Worm {
	t.Helper()
	return short.Must(w.NewWorm(to))(t)
}

// TestPaperExample is the example of section 3.2 of the paper (G-S1): kinds of
// channels, ancestors, the two ways from 5 to the least common ancestor of 8 to
// 11, and where the worm splits.
func TestPaperExample(t *testing.T) {
	f, node := figure1(t)
	w := spamNetwork(t, f, node[1], BreadthFirst)
	port := func(from, to int) fabric.PortID {
		for p := range fabric.PortID(f.NumPorts()) {
			if q := f.Peer(p); q != fabric.NoPort && f.Owner(p) == node[from] && f.Owner(q) == node[to] {
				return p
			}
		}
		t.Fatalf("no cable from %d to %d", from, to)
		return 0
	}
	for kind, list := range map[ChannelKind][][2]int{
		Up:        {{2, 1}, {3, 1}, {4, 1}, {5, 2}, {6, 4}, {7, 4}, {8, 6}, {9, 6}, {10, 6}, {11, 7}, {3, 2}, {4, 3}},
		DownTree:  {{1, 2}, {1, 3}, {1, 4}, {2, 5}, {4, 6}, {4, 7}, {6, 8}, {6, 9}, {6, 10}, {7, 11}},
		DownCross: {{2, 3}, {3, 4}},
	} {
		for _, c := range list {
			if got := w.Channel(port(c[0], c[1])); got != kind {
				t.Errorf("%d to %d is %s, want %s", c[0], c[1], got, kind)
			}
		}
	}
	for v, want := range map[int]int{1: 0, 2: 1, 3: 1, 4: 1, 6: 2, 7: 2} {
		short.Equal(t, w.Level(node[v]), want, v, "is on level")
		ancestor, extended := v == 1 || v == 4, v <= 4
		if w.IsAncestor(node[v], node[4]) != ancestor || w.isExtendedAncestor(node[v], node[4]) != extended {
			t.Errorf("%d is an ancestor of 4: %t, extended: %t", v, !ancestor, !extended)
		}
	}

	x := newWorm(t, w, endPort(f, node[8]), endPort(f, node[11]), endPort(f, node[10]), endPort(f, node[9]))
	if x.At != node[4] {
		t.Errorf("least common ancestor %d, want 4", f.Node(x.At).GUID)
	}
	allowed := func(at, from int) (list []int) {
		for _, p := range w.Allowed(node[at], f.Peer(port(from, at)), x, nil) {
			list = append(list, int(f.Node(f.Owner(f.Peer(p))).GUID))
		}
		return list
	}
	for _, tt := range []struct {
		at, from int
		want     []int // by preference: both are one hop from 4
	}{{2, 5, []int{1, 3}}, {3, 2, []int{4}}, {1, 2, []int{4}}} {
		if got := allowed(tt.at, tt.from); !slices.Equal(got, tt.want) {
			t.Errorf("at %d from %d: allowed to %v, want %v", tt.at, tt.from, got, tt.want)
		}
	}
	// All ways, and what each switch does after that.
	for _, tt := range []struct {
		busy free
		want string
	}{
		{nil, "2[1] 1[4] 4[6 7] 6[8 9 10] 7[11]"},
		{free{port(2, 1): true}, "2[3] 3[4] 4[6 7] 6[8 9 10] 7[11]"},
		{free{port(2, 1): true, port(2, 3): true, port(4, 6): true}, "2[1] 1[4] 4[6 7] 6[8 9 10] 7[11]"}, // waits for the best
	} {
		var got []string
		in := []fabric.PortID{port(5, 2)}
		for len(in) > 0 {
			at := f.Owner(f.Peer(in[0]))
			var to []int
			for _, p := range w.Route(tt.busy, at, f.Peer(in[0]), x, nil) {
				to = append(to, int(f.Node(f.Owner(f.Peer(p))).GUID))
				if f.IsSwitch(f.Owner(f.Peer(p))) {
					in = append(in, p)
				}
			}
			got = append(got, fmt.Sprintf("%d%v", f.Node(at).GUID, to))
			in = in[1:]
		}
		short.Equal(t, strings.Join(got, " "), tt.want, "busy", tt.busy)
	}
}

// slowExtended says by the paper's definition whether s is an extended ancestor of
// t: tree says whether a channel of the tree has been taken.
func slowExtended(w *SPAMNetwork, s, t fabric.NodeID, tree bool) bool {
	if s == t {
		return true
	}
	ports, to := w.Fabric().SwitchLinks(s)
	for i, p := range ports {
		switch w.Channel(p) {
		case DownTree:
			if slowExtended(w, to[i], t, true) {
				return true
			}
		case DownCross:
			if !tree && slowExtended(w, to[i], t, false) {
				return true
			}
		}
	}
	return false
}

// isExtendedAncestor says whether down cross channels, or none, and then tree channels
// down, or none, lead from s to t.
func (w *SPAMNetwork) isExtendedAncestor(s, t fabric.NodeID) bool {
	return w.above[int(t)*len(w.parent)+int(s)] != unrelated
}

// slowAncestor climbs from t.
func slowAncestor(w *SPAMNetwork, s, t fabric.NodeID) bool {
	for ; t != fabric.NoNode; t = w.Parent(t) {
		if s == t {
			return true
		}
	}
	return false
}

// TestSPAMNetwork has random networks and both trees: relations are those of the
// definitions, what is allowed is exactly what the routing function says, and
// whatever is free, worms go up, then down cross, then down tree channels, come to
// an end, and bring each destination one copy by a part of the tree.
func TestSPAMNetwork(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := spamFabric(t, rt)
		root := fabric.NodeID(rapid.IntRange(0, f.NumSwitches()-1).Draw(rt, "root"))
		w, err := NewSPAMNetwork(f, root, SpanningTree(rapid.IntRange(0, 1).Draw(rt, "tree")))
		if connected := !slices.Contains(f.Distances().To(root), fabric.Unreachable); connected != (err == nil) {
			rt.Fatalf("connected: %t, error %v", connected, err)
		}
		hosts := f.CAPorts()
		if err != nil || len(hosts) < 2 {
			return
		}
		n := fabric.NodeID(f.NumSwitches())
		for s := range n {
			for u := range n {
				if got, want := w.IsAncestor(s, u), slowAncestor(w, s, u); got != want {
					rt.Fatalf("%d an ancestor of %d: %t, want %t", s, u, got, want)
				}
				if n <= 12 {
					if got, want := w.isExtendedAncestor(s, u), slowExtended(w, s, u, false); got != want {
						rt.Fatalf("%d an extended ancestor of %d: %t, want %t", s, u, got, want)
					}
				}
			}
		}
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "worms"), 2))
		for range 20 {
			some := rnd.Perm(len(hosts))[:2+rnd.IntN(len(hosts)-1)]
			var to []fabric.PortID
			for _, k := range some[1:] {
				to = append(to, hosts[k])
			}
			x := short.Must(w.NewWorm(to))(rt)
			for _, p := range to {
				if at := f.Owner(f.Peer(p)); !slowAncestor(w, x.At, at) {
					rt.Fatalf("%d is no ancestor of %s", x.At, f.PortName(p))
				}
			}
			if got := slices.Sorted(slices.Values(x.Destinations(f))); !slices.Equal(got, slices.Sorted(slices.Values(to))) {
				rt.Fatalf("destinations %v, want %v", got, to)
			}
			busy := make(free)
			for p := range fabric.PortID(f.NumPorts()) {
				if rnd.IntN(2) == 0 {
					busy[p] = true
				}
			}
			followWorm(rt, w, x, busy, hosts[some[0]])
		}
	})
}

// followWorm walks all copies of a worm.
func followWorm(rt *rapid.T, w *SPAMNetwork, x *Worm, busy free, src fabric.PortID) {
	f := w.Fabric()
	copies := make(map[fabric.PortID]int)
	used := make(map[fabric.PortID]bool)
	var visit func(out fabric.PortID, steps int)
	visit = func(out fabric.PortID, steps int) {
		in := f.Peer(out)
		at := f.Owner(in)
		if !f.IsSwitch(at) {
			copies[in]++
			return
		}
		if used[out] || steps > f.NumPorts() {
			rt.Fatalf("comes to %s twice", f.PortName(in))
		}
		used[out] = true
		ports := w.Route(busy, at, in, x, nil)
		if len(ports) == 0 {
			rt.Fatalf("ends at %s", f.PortName(in))
		}
		for i, p := range ports {
			if f.Owner(p) != at || i > 0 && p <= ports[i-1] {
				rt.Fatalf("from %s to %v", f.PortName(in), ports)
			}
			if w.Channel(p) < w.Channel(out) {
				rt.Fatalf("%s after %s", w.Channel(p), w.Channel(out))
			}
			if len(ports) > 1 && w.Channel(p) != DownTree {
				rt.Fatalf("%s after the split", w.Channel(p))
			}
		}
		if len(ports) == 1 && w.Channel(out) != DownTree && !(len(x.Destinations(f)) > 1 && at == x.At) {
			checkChoice(rt, w, x, busy, at, in, ports[0])
		}
		for _, p := range ports {
			visit(p, steps+1)
		}
	}
	visit(src, 0)
	for _, p := range x.Destinations(f) {
		if copies[p] != 1 {
			rt.Fatalf("%d copies at %s", copies[p], f.PortName(p))
		}
		delete(copies, p)
	}
	if len(copies) > 0 {
		rt.Fatalf("copies at %v, which are no destinations", copies)
	}
}

// checkChoice checks a port that was taken before the worm has split: what is allowed
// is exactly what the three rules say, the port is the nearest one that is free,
// or the nearest if none is.
func checkChoice(rt *rapid.T, w *SPAMNetwork, x *Worm, busy free, at fabric.NodeID, in, got fabric.PortID) {
	f := w.Fabric()
	came := w.Channel(f.Peer(in))
	var want []fabric.PortID
	far := func(p fabric.PortID) int {
		q := f.Peer(p)
		if !f.IsSwitch(f.Owner(q)) {
			return -1
		}
		return int(f.Distances().To(x.At)[f.Owner(q)])
	}
	for num := fabric.PortNum(1); num <= f.Node(at).NumPorts; num++ {
		p := f.Port(at, num)
		q := f.Peer(p)
		if q == fabric.NoPort {
			continue
		}
		v := f.Owner(q)
		switch w.Channel(p) {
		case Up:
			if came == Up {
				want = append(want, p)
			}
		case DownCross:
			if came != DownTree && w.isExtendedAncestor(v, x.At) {
				want = append(want, p)
			}
		case DownTree:
			if f.IsSwitch(v) && slowAncestor(w, v, x.At) || len(x.to) == 1 && slices.Contains(x.Destinations(f), q) {
				want = append(want, p)
			}
		}
	}
	allowed := w.Allowed(at, in, x, nil)
	if !slices.Equal(slices.Sorted(slices.Values(allowed)), want) {
		rt.Fatalf("at %s after %s: allowed %v, want %v", f.PortName(in), came, allowed, want)
	}
	best := allowed[0]
	for _, p := range allowed {
		if far(p) < far(allowed[0]) {
			rt.Fatalf("%v: not in the order of distance", allowed)
		}
		if !busy[p] && (busy[best] || far(p) < far(best)) {
			best = p
		}
	}
	if far(got) != far(best) || busy[got] != busy[best] {
		rt.Fatalf("takes %v of %v, busy %v", got, allowed, busy)
	}
}

// TestCentre has lattices: no switch is nearer to all, and of equals none is lower.
func TestCentre(t *testing.T) {
	for seed := range uint64(5) {
		f := short.Must(gen.Lattice(60, seed))(t)
		c := Centre(f)
		for s := range fabric.NodeID(60) {
			far, least := slices.Max(f.Distances().To(s)), slices.Max(f.Distances().To(c))
			if far < least || far == least && s < c {
				t.Errorf("seed %d: %d is no centre, %d is", seed, c, s)
			}
		}
	}
}

func TestSPAMNetworkRefuses(t *testing.T) {
	f, node := figure1(t)
	if _, err := NewSPAMNetwork(f, fabric.NodeID(f.NumSwitches()), BreadthFirst); err == nil || err.Error() != "root 6: want a switch, 0 to 5" {
		t.Error(err)
	}
	w := spamNetwork(t, f, node[1], BreadthFirst)
	host := endPort(f, node[8])
	for want, to := range map[string][]fabric.PortID{
		"a worm without destinations": nil,
		`destination "8"[1] twice`:    {host, endPort(f, node[9]), host},
		"port 0 is no destination: want one of a channel adapter, with a cable to a switch":  {host, 0},
		"port -1 is no destination: want one of a channel adapter, with a cable to a switch": {fabric.NoPort},
	} {
		if _, err := w.NewWorm(to); err == nil || err.Error() != want {
			t.Errorf("%v: %v, want %s", to, err, want)
		}
	}
}
