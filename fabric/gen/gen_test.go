package gen_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/routing/banyan"
)

// shape is what is known of a made fabric without making it. The figures are
// counted by hand from the definition of the topology; those of the 8x8 torus
// and of the shufflenet are also in the literature (average distances 4.0635
// and 2.3913).
type shape struct {
	name     string
	make     func() (*fabric.Fabric, error)
	switches int
	cas      int
	caPorts  int
	links    int
	diameter uint8   // switch-to-switch links
	mean     float64 // over ordered pairs of different switches; 0 for not known
}

func shapes() []shape {
	grid := func(hosts int, dims ...int) func() (*fabric.Fabric, error) {
		return func() (*fabric.Fabric, error) { return mesh.Generate(mesh.Spec{Dims: dims, Hosts: hosts}) }
	}
	torus := func(dims ...int) func() (*fabric.Fabric, error) {
		return func() (*fabric.Fabric, error) {
			return mesh.Generate(mesh.Spec{Dims: dims, Wrap: slices.Repeat([]bool{true}, len(dims)), Hosts: 1})
		}
	}
	tree := func(radix, levels, hosts int) func() (*fabric.Fabric, error) {
		return func() (*fabric.Fabric, error) {
			return gen.FatTree(gen.FatTreeSpec{Radix: radix, Levels: levels, HostsPerLeaf: hosts})
		}
	}
	list := []shape{
		{"mesh 4x4", grid(1, 4, 4), 16, 16, 16, 24 + 16, 6, 0},
		{"mesh 7", grid(1, 7), 7, 7, 7, 6 + 7, 6, 0},
		{"mesh 1x1", grid(3, 1, 1), 1, 3, 3, 3, 0, 0},
		{"mesh 2x3x4, 2 hosts", grid(2, 2, 3, 4), 24, 48, 48, 12 + 16 + 18 + 48, 6, 0},
		{"mesh 3x3, no hosts", grid(0, 3, 3), 9, 0, 0, 12, 4, 0},
		{"mesh 3x3x2x2", grid(1, 3, 3, 2, 2), 36, 36, 36, 24 + 24 + 18 + 18 + 36, 6, 0},
		{"torus 8x8", torus(8, 8), 64, 64, 64, 128 + 64, 8, 4.0635},
		{"torus 4x3x3", torus(4, 3, 3), 36, 36, 36, 3*36 + 36, 4, 0},
		{"torus 2x2, double cables", torus(2, 2), 4, 4, 4, 8 + 4, 2, 0},
		{"torus 1x5", torus(1, 5), 5, 5, 5, 5 + 5, 2, 0},
		{"hypercube 1", func() (*fabric.Fabric, error) { return mesh.Hypercube(1, 1) }, 2, 2, 2, 1 + 2, 1, 0},
		{"hypercube 5", func() (*fabric.Fabric, error) { return mesh.Hypercube(5, 1) }, 32, 32, 32, 80 + 32, 5, 80. / 31},
		{"fat tree 2 of 2", tree(2, 2, 0), 3, 2, 2, 2 + 2, 2, 0},
		{"fat tree 2 of 8", tree(8, 2, 0), 12, 32, 32, 32 + 32, 2, 0},
		{"fat tree 2 of 8, 3 hosts", tree(8, 2, 3), 12, 24, 24, 32 + 24, 2, 0},
		{"fat tree 2 of 8, 6 hosts", tree(8, 2, 6), 10, 48, 48, 16 + 48, 2, 0},
		{"fat tree 3 of 2", tree(2, 3, 0), 5, 2, 2, 2 + 2 + 2, 4, 0},
		{"fat tree 3 of 4", tree(4, 3, 0), 20, 16, 16, 3 * 16, 4, 0},
		{"fat tree 3 of 4, 3 hosts", tree(4, 3, 3), 14, 24, 24, 8 + 8 + 24, 4, 0},
		{"fat tree 3 of 20", tree(20, 3, 0), 500, 2000, 2000, 3 * 2000, 4, 0},
		{"fat tree 3 of 24", tree(24, 3, 0), 720, 3456, 3456, 3 * 3456, 4, 0},
		{"fat tree 3 of 36", tree(36, 3, 0), 1620, 11664, 11664, 3 * 11664, 4, 0},
		{"fat tree 3 of 56", tree(56, 3, 0), 3920, 43904, 43904, 3 * 43904, 4, 0},
		{"tree of pods of 3 and 2 leaves", sites(gen.TreeSpec{Ports: 12, Pods: []int{3, 2}, Hosts: 4, Spines: 4, Groups: 2, Cores: 3, Parallel: 2}),
			5 + 8 + 6, 20, 20, 20 + 5*4*2 + 8*3, 4, 0},
		{"tree of 2 units with 3 rails", sites(gen.TreeSpec{Ports: 12, Pods: []int{2}, Hosts: 4, Rails: 3, Spines: 2, Parallel: 2}), 8, 24, 24, 24 + 6*4, 2, 0},
		{"tree of two levels", sites(gen.TreeSpec{Ports: 36, Pods: []int{30}, Hosts: 1, Spines: 5}), 35, 30, 30, 30 + 150, 2, 0},
		{"shufflenet 2,3", func() (*fabric.Fabric, error) { return gen.Shufflenet(2, 3) }, 24, 24, 24, 48 + 24, 4, 2.3913},
		{"shufflenet 2,2, double cables", func() (*fabric.Fabric, error) { return gen.Shufflenet(2, 2) }, 8, 8, 8, 16 + 8, 3, 0},
		{"shufflenet 3,2", func() (*fabric.Fabric, error) { return gen.Shufflenet(3, 2) }, 18, 18, 18, 54 + 18, 3, 0},
		{"myrinet4", gen.Myrinet4, 4, 8, 8, 4 + 8, 2, 4. / 3},
		{"banyan 1", func() (*fabric.Fabric, error) { return banyan.Banyan(1, false) }, 1, 4, 4, 4, 0, 0},
		{"banyan 2", func() (*fabric.Fabric, error) { return banyan.Banyan(2, false) }, 4, 8, 8, 4 + 8, 2, 4. / 3},
		{"banyan 3", func() (*fabric.Fabric, error) { return banyan.Banyan(3, false) }, 12, 16, 16, 16 + 16, 4, 0},
		{"banyan 3, wrap-around", func() (*fabric.Fabric, error) { return banyan.Banyan(3, true) }, 12, 8, 16, 16 + 16, 4, 0},
		{"irregular 2 switches", irregular(2, 1, 2, 1), 2, 2, 2, 1 + 2, 1, 0},
		{"irregular complete", irregular(9, 8, 9, 1), 9, 9, 9, 36 + 9, 1, 0},
		{"irregular ring", irregular(11, 2, 0, 5), 11, 0, 0, 11, 5, 0},
		{"irregular 32 switches", irregular(32, 4, 40, 7), 32, 40, 40, 64 + 40, unknown, 0},
		{"lattice 1", func() (*fabric.Fabric, error) { return gen.Lattice(1, 3) }, 1, 1, 1, 1, 0, 0},
		{"lattice 128", func() (*fabric.Fabric, error) { return gen.Lattice(128, 3) }, 128, 128, 128, -1, unknown, 0},
	}
	largest := short.Of(1<<20, 3000) // end ports
	return slices.DeleteFunc(list, func(s shape) bool { return s.caPorts > largest })
}

const unknown uint8 = 254

func sites(spec gen.TreeSpec) func() (*fabric.Fabric, error) {
	return func() (*fabric.Fabric, error) { return gen.Tree(spec) }
}

func irregular(switches, degree, hosts int, seed uint64) func() (*fabric.Fabric, error) {
	return func() (*fabric.Fabric, error) {
		return gen.Irregular(gen.IrregularSpec{Switches: switches, Degree: degree, Hosts: hosts, Seed: seed})
	}
}

func TestShapes(t *testing.T) {
	for _, want := range shapes() {
		t.Run(want.name, func(t *testing.T) {
			f := short.Must(want.make())(t)
			// Before anything else: a Fabric remembers what was asked of it.
			again, err := want.make()
			if err != nil || !reflect.DeepEqual(f, again) {
				t.Errorf("made twice, it is not the same (%v)", err)
			}
			if f.NumSwitches() != want.switches || f.NumNodes()-f.NumSwitches() != want.cas || len(f.CAPorts()) != want.caPorts {
				t.Errorf("%d switches, %d CAs with %d ports connected; want %d, %d, %d", f.NumSwitches(),
					f.NumNodes()-f.NumSwitches(), len(f.CAPorts()), want.switches, want.cas, want.caPorts)
			}
			if want.links >= 0 && f.NumLinks() != want.links {
				t.Errorf("%d links, want %d", f.NumLinks(), want.links)
			}
			checkNumbering(t, f)
			diameter, mean := distances(f)
			if diameter == fabric.Unreachable {
				t.Error("not connected")
			}
			if want.diameter != unknown && diameter != want.diameter {
				t.Errorf("diameter %d, want %d", diameter, want.diameter)
			}
			if want.mean != 0 && math.Abs(mean-want.mean) > 0.00005 {
				t.Errorf("average distance %.5f, want %.4f", mean, want.mean)
			}
		})
	}
}

// checkNumbering checks what the package comment promises of GUIDs, and that
// descriptions are unique and fit a NodeDescription.
func checkNumbering(t *testing.T, f *fabric.Fabric) {
	t.Helper()
	names := make(map[string]bool, f.NumNodes())
	ca, sw := fabric.GUID(0x100000), fabric.GUID(0x200000)
	for n := range fabric.NodeID(f.NumNodes()) {
		node := f.Node(n)
		if names[node.Description] || len(node.Description) > 64 {
			t.Fatalf("description %q is used twice or longer than 64 bytes", node.Description)
		}
		names[node.Description] = true
		want := sw
		if node.Type == fabric.CA {
			want = ca
			ca += fabric.GUID(node.NumPorts) + 1
			for p := fabric.PortNum(1); p <= node.NumPorts; p++ {
				short.MustEqual(t, f.PortGUID(f.Port(n, p)), node.GUID+fabric.GUID(p), "port", p, "of", node.Description, "has GUID")
			}
		} else {
			sw++
		}
		if node.GUID != want || node.SystemGUID != want {
			t.Fatalf("%q has GUID %s, system image GUID %s, want %s", node.Description, node.GUID, node.SystemGUID, want)
		}
	}
	if ca > 0x200000 {
		t.Errorf("GUIDs of CAs go up to %s", ca)
	}
	short.Equal(t, f.MaxLID(), 0, "LIDs up")
}

// distances gives the diameter and the average distance of the switches.
func distances(f *fabric.Fabric) (diameter uint8, mean float64) {
	m, sum := f.Distances(), 0
	for s := range fabric.NodeID(f.NumSwitches()) {
		for _, d := range m.To(s) {
			diameter = max(diameter, d)
			sum += int(d)
		}
	}
	n := f.NumSwitches()
	return diameter, float64(sum) / float64(max(n*(n-1), 1))
}

// wiring lists the cables of f, each from its lower port, in the order of
// ports.
func wiring(f *fabric.Fabric) []string {
	var lines []string
	for p := range fabric.PortID(f.NumPorts()) {
		if peer := f.Peer(p); peer > p {
			lines = append(lines, f.PortName(p)+" "+f.PortName(peer))
		}
	}
	return lines
}

// TestWiring has every cable of small fabrics: of trees, meshes, myrinet4 and a shufflenet by the
// definitions in the comments of their generators; and what seeds give, which must not change
// between releases, as the generators first printed it. In the 24-node shufflenet, row r of a column
// leads to rows 2r and 2r+1, modulo 8, of the next: shuffles of eight, two to each.
func TestWiring(t *testing.T) {
	of := func(f *fabric.Fabric, err error) *fabric.Fabric {
		t.Helper()
		return short.Must(f, err)(t)
	}
	options := gen.Options{Fill: 50, Speeds: []fabric.Speed{fabric.HDR, fabric.NDR}, Names: "mixed", Seed: 3}
	fabrics := map[string]*fabric.Fabric{
		"fat tree of 2 levels":        of(gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 2, HostsPerLeaf: 1})),
		"full fat tree of 3 levels":   of(gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 3})),
		"fat tree of 3 levels":        of(gen.FatTree(gen.FatTreeSpec{Radix: 4, Levels: 3, HostsPerLeaf: 3})),
		"tree with parallel cables":   of(gen.Tree(gen.TreeSpec{Ports: 8, Pods: []int{2, 1}, Hosts: 1, Spines: 2, Parallel: 2, Groups: 1, Cores: 2})),
		"tree of directors":           of(gen.Tree(gen.TreeSpec{Ports: 6, Pods: []int{2, 1}, Hosts: 1, Spines: 4, Groups: 2, Cores: 2, Directors: true})),
		"myrinet4":                    of(gen.Myrinet4()),
		"shufflenet 2,3":              of(gen.Shufflenet(2, 3)),
		"shufflenet 2,2":              of(gen.Shufflenet(2, 2)),
		"mesh 2x3":                    of(mesh.Generate(mesh.Spec{Dims: []int{2, 3}, Hosts: 1})),
		"line with 2 hosts each":      of(mesh.Generate(mesh.Spec{Dims: []int{3}, Hosts: 2})),
		"ring of three, two and one":  of(mesh.Generate(mesh.Spec{Dims: []int{3, 2, 1}, Wrap: []bool{true, true, true}})),
		"only y wraps":                of(mesh.Generate(mesh.Spec{Dims: []int{2, 3}, Wrap: []bool{false, true}})),
		"four dimensions":             of(mesh.Generate(mesh.Spec{Dims: []int{1, 1, 2, 2}, Hosts: 1})),
		"hypercube":                   of(mesh.Hypercube(3, 1)),
		"seed: irregular":             of(gen.Irregular(gen.IrregularSpec{Switches: 8, Degree: 3, Hosts: 10, Seed: 1})),
		"seed: lattice":               of(gen.Lattice(9, 1)),
		"seed: 3x3 mesh less 3 links": of(gen.DropLinks(of(mesh.Generate(mesh.Spec{Dims: []int{3, 3}})), 3, 1)),
		"seed: options":               of(options.Apply(of(gen.Tree(gen.TreeSpec{Ports: 6, Pods: []int{3}, Hosts: 3, Spines: 2})))),
	}
	short.Equal(t, fabrics["myrinet4"].Node(0).NumPorts, 8, "switches of myrinet4 with", "ports, want 8")
	for part := range strings.SplitSeq(string(short.Must(os.ReadFile("testdata/wiring.txt"))(t)), "== ") {
		if part == "" {
			continue
		}
		name, want, _ := strings.Cut(part, "\n")
		if fabrics[name] == nil {
			t.Fatalf("no fabric %q", name)
		}
		short.Diff(t, wiring(fabrics[name]), strings.Split(strings.TrimSpace(want), "\n"), name, "cables")
		delete(fabrics, name)
	}
	if len(fabrics) > 0 {
		t.Errorf("wiring.txt lacks %v", slices.Sorted(maps.Keys(fabrics)))
	}
}

func TestSeedsDiffer(t *testing.T) {
	for name, make := range map[string]func(seed uint64) (*fabric.Fabric, error){
		"irregular": func(seed uint64) (*fabric.Fabric, error) { return irregular(20, 3, 20, seed)() },
		"lattice":   func(seed uint64) (*fabric.Fabric, error) { return gen.Lattice(20, seed) },
		"links dropped": func(seed uint64) (*fabric.Fabric, error) {
			f, err := mesh.Hypercube(4, 1)
			if err != nil {
				return nil, err
			}
			return gen.DropLinks(f, 5, seed)
		},
	} {
		a := short.Must(make(1))(t)
		b := short.Must(make(2))(t)
		if slices.Equal(wiring(a), wiring(b)) {
			t.Errorf("%s: seeds 1 and 2 give the same", name)
		}
	}
}

func TestIrregular(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "switches")
		degree := rapid.IntRange(min(n-1, 2), n-1).Draw(t, "degree")
		if n*degree%2 != 0 {
			degree--
			if degree < 2 {
				degree = 2
			}
		}
		hosts := rapid.IntRange(0, 100).Draw(t, "hosts")
		f := short.Must(irregular(n, degree, hosts, rapid.Uint64().Draw(t, "seed"))())(t)
		if diameter, _ := distances(f); diameter == fabric.Unreachable {
			t.Fatal("not connected")
		}
		here := make([]int, n)
		for _, s := range f.CASwitches() {
			here[s]++
		}
		for s := range fabric.NodeID(n) {
			_, to := f.SwitchLinks(s)
			peers := slices.Compact(slices.Sorted(slices.Values(to)))
			if len(to) != degree || len(peers) != degree || slices.Contains(peers, s) {
				t.Fatalf("switch %d has links to %v, want to %d different ones", s, to, degree)
			}
			want := hosts / n
			if int(s) < hosts%n {
				want++
			}
			short.MustEqual(t, here[s], want, "switch", s, "hosts")
		}
	})
}

// TestIrregularIsRandom counts how often two switches are neighbours: in a
// random regular graph every pair is equally likely to be.
func TestIrregularIsRandom(t *testing.T) {
	const n, degree, graphs = 12, 4, 3000
	count := make(map[[2]fabric.NodeID]int)
	triangles := 0
	for seed := range uint64(graphs) {
		f := short.Must(irregular(n, degree, 0, seed)())(t)
		for s := range fabric.NodeID(n) {
			_, to := f.SwitchLinks(s)
			for _, u := range to {
				if s < u {
					count[[2]fabric.NodeID{s, u}]++
				}
				_, further := f.SwitchLinks(u)
				for _, v := range further {
					if slices.Contains(to, v) {
						triangles++
					}
				}
			}
		}
	}
	// A pair is neighbours with probability 4/11, in 1,091 graphs of 3,000
	// with a standard deviation of 26.
	for a := range fabric.NodeID(n) {
		for b := a + 1; b < n; b++ {
			if k := count[[2]fabric.NodeID{a, b}]; k < 960 || k > 1220 {
				t.Errorf("switches %d and %d are neighbours in %d of %d graphs, want about 1091", a, b, k, graphs)
			}
		}
	}
	// The start, a ring with cables to the neighbours' neighbours, has 12
	// triangles; random 4-regular graphs of 12 vertices have (4-1)**3/6 = 4.5
	// in the limit of many vertices. Each is counted 6 times here.
	if mean := float64(triangles) / 6 / graphs; mean < 3.5 || mean > 5.5 {
		t.Errorf("%.2f triangles in a graph, want about 4.5", mean)
	}
}

// TestLattice checks that there is a cable between two switches exactly when
// they are on adjacent points.
func TestLattice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(t, "switches")
		f := short.Must(gen.Lattice(n, rapid.Uint64().Draw(t, "seed")))(t)
		if diameter, _ := distances(f); diameter == fabric.Unreachable {
			t.Fatal("not connected")
		}
		type point [2]int
		at := make(map[point]fabric.NodeID, n)
		lowest := point{n, n}
		for s := range fabric.NodeID(n) {
			var p point
			short.Must(fmt.Sscanf(f.Node(s).Description, "switch %d,%d", &p[0], &p[1]))(t)
			at[p] = s
			lowest[0], lowest[1] = min(lowest[0], p[0]), min(lowest[1], p[1])
			short.MustEqual(t, f.Node(s).NumPorts, 8, "ports, want 8")
		}
		if len(at) != n || lowest != (point{}) {
			t.Fatalf("%d points for %d switches, lowest coordinates %v", len(at), n, lowest)
		}
		for p, s := range at {
			for i, next := range [...]point{{p[0] + 1, p[1]}, {p[0], p[1] + 1}, {p[0] - 1, p[1]}, {p[0], p[1] - 1}} {
				got := f.Peer(f.Port(s, fabric.PortNum(i+1)))
				u, ok := at[next]
				short.MustEqual(t, ok, (got != fabric.NoPort), "port", i+1, "of switch", p, "connected", !ok, "a switch there")
				if ok && got != f.Port(u, fabric.PortNum((i+2)%4+1)) {
					t.Fatalf("port %d of switch %v leads to %s", i+1, p, f.PortName(got))
				}
			}
			host := f.Peer(f.Port(s, 5))
			if host == fabric.NoPort || f.Node(f.Owner(host)).Description != fmt.Sprintf("host %d,%d", p[0], p[1]) {
				t.Fatalf("port 5 of switch %v does not lead to its host", p)
			}
		}
	})
}

// TestLatticeDepth compares with an independent simulation of the networks of
// the SPAM paper, which gave broadcasts an average of 13,279 ns in 256
// switches and 12,691 ns in 128 (12 networks, 6 sources each), without
// contention: 10,000 ns startup, 40 ns for each of R switches on the longest
// route, up to the first switch and down the breadth-first tree, 10 ns for
// each of R+1 channels, and 10 ns for each of 127 more flits.
func TestLatticeDepth(t *testing.T) {
	for _, tt := range []struct {
		switches  int
		low, high float64
	}{
		{256, 12900, 13400},
		{128, 12450, 12850},
	} {
		const networks = 64
		sum := 0.0
		for seed := range uint64(networks) {
			f := short.Must(gen.Lattice(tt.switches, seed))(t)
			up, deepest := 0, uint8(0)
			for _, d := range f.Distances().To(0) {
				up += int(d)
				deepest = max(deepest, d)
			}
			route := float64(up)/float64(tt.switches) + 1 + float64(deepest)
			sum += 10000 + 40*route + 10*(route+1) + 127*10
		}
		if mean := sum / networks; mean < tt.low || mean > tt.high {
			t.Errorf("%d switches: %.0f ns, want %.0f to %.0f", tt.switches, mean, tt.low, tt.high)
		}
	}
}

// TestDropLinks compares with the slow way: take one cable after the other
// away in the same random order, and put it back if that disconnected
// anything.
func TestDropLinks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFabric(t)
		seed := rapid.Uint64().Draw(t, "seed")
		var cables [][2]fabric.PortID
		for p := range fabric.PortID(f.NumPorts()) {
			peer := f.Peer(p)
			if peer > p && f.IsSwitch(f.Owner(peer)) && f.Owner(peer) != f.Owner(p) {
				cables = append(cables, [2]fabric.PortID{p, peer})
			}
		}
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(cables), func(i, j int) { cables[i], cables[j] = cables[j], cables[i] })
		parts := components(f, cables)
		n := rapid.IntRange(0, len(cables)).Draw(t, "links")
		left, gone := slices.Clone(cables), 0
		for _, c := range cables {
			if gone == n {
				break
			}
			i := slices.Index(left, c)
			fewer := slices.Delete(slices.Clone(left), i, i+1)
			if components(f, fewer) == parts {
				left = fewer
				gone++
			}
		}
		g, err := gen.DropLinks(f, n, seed)
		if gone < n {
			if err == nil || g != nil || !strings.Contains(err.Error(), fmt.Sprintf("at most %d,", gone)) {
				t.Fatalf("%d links to drop, only %d can go: %v", n, gone, err)
			}
			return
		}
		short.Check(t, err)
		slices.SortFunc(left, func(a, b [2]fabric.PortID) int { return int(a[0] - b[0]) })
		var want []string
		for p := range fabric.PortID(f.NumPorts()) {
			peer := f.Peer(p)
			if peer < p {
				continue
			}
			c := [2]fabric.PortID{p, peer}
			if !slices.Contains(cables, c) || slices.Contains(left, c) {
				want = append(want, f.PortName(p)+" "+f.PortName(peer))
			}
		}
		short.Diff(t, wiring(g), want, "cables")
		short.MustEqual(t, g.NumPorts(), f.NumPorts(), "ports")
		for n := range fabric.NodeID(f.NumNodes()) {
			short.MustEqual(t, *f.Node(n), *g.Node(n), "node", "has become")
		}
		for p := range fabric.PortID(f.NumPorts()) {
			if f.PortGUID(p) != g.PortGUID(p) || f.LID(p) != g.LID(p) || f.LMC(p) != g.LMC(p) {
				t.Fatalf("%s has another GUID, LID or LMC", f.PortName(p))
			}
			if g.Peer(p) != fabric.NoPort && f.Link(p) != g.Link(p) {
				t.Fatalf("%s is %s, want %s", f.PortName(p), g.Link(p), f.Link(p))
			}
		}
	})
}

// drawFabric draws a fabric with everything that DropLinks must leave alone:
// parallel cables, cables from a switch to itself and from CA to CA, parts
// that are not connected, LIDs, links of different speed.
func drawFabric(t *rapid.T) *fabric.Fabric {
	const switches, cas, ports = 6, 4, 12
	var b fabric.Builder
	lids := rapid.Permutation([]fabric.LID{2, 4, 6, 8, 10, 12, 14, 16, 18, 20}).Draw(t, "LIDs")
	for _, i := range rapid.Permutation([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}).Draw(t, "order") {
		n := fabric.Node{GUID: fabric.GUID(0x1000 * (i + 1)), Type: fabric.Switch, NumPorts: ports, Description: fmt.Sprint("switch ", i),
			EnhancedPort0: i%2 == 0, VendorID: 3, DeviceID: uint16(i)}
		port := fabric.ManagementPort
		if i >= switches {
			n.Type, n.Description, port = fabric.CA, fmt.Sprint("host ", i), 2
		}
		k := short.Must(b.AddNode(n))(t)
		short.Check(t, b.SetPort(k, port, fabric.GUID(0x555000+i), lids[i], uint8(i%2)))
	}
	end := rapid.Custom(func(t *rapid.T) [2]int {
		return [2]int{rapid.IntRange(0, switches+cas-1).Draw(t, "node"), rapid.IntRange(1, ports).Draw(t, "port")}
	})
	for _, c := range rapid.SliceOfN(rapid.Custom(func(t *rapid.T) [2][2]int {
		return [2][2]int{end.Draw(t, "from"), end.Draw(t, "to")}
	}), 0, 60).Draw(t, "cables") {
		speed := fabric.QDR + fabric.Speed(c[0][1]%3)
		// Ports that are taken refuse; those cables are left out.
		_ = b.Connect(c[0][0], fabric.PortNum(c[0][1]), c[1][0], fabric.PortNum(c[1][1]), fabric.Link{Width: 4, Speed: speed})
	}
	return short.Must(b.Build())(t)
}

// components counts the parts into which cables connect the switches of f.
func components(f *fabric.Fabric, cables [][2]fabric.PortID) int {
	part := make([]int, f.NumSwitches())
	for s := range part {
		part[s] = s
	}
	for changed := true; changed; {
		changed = false
		for _, c := range cables {
			a, b := f.Owner(c[0]), f.Owner(c[1])
			if low := min(part[a], part[b]); part[a] != low || part[b] != low {
				part[a], part[b], changed = low, low, true
			}
		}
	}
	slices.Sort(part)
	return len(slices.Compact(part))
}

func TestErrors(t *testing.T) {
	tree := func(radix, levels, hosts int) error {
		_, err := gen.FatTree(gen.FatTreeSpec{Radix: radix, Levels: levels, HostsPerLeaf: hosts})
		return err
	}
	grid := func(hosts int, wrap []bool, dims ...int) error {
		_, err := mesh.Generate(mesh.Spec{Dims: dims, Wrap: wrap, Hosts: hosts})
		return err
	}
	cube := func(dim, hosts int) error { _, err := mesh.Hypercube(dim, hosts); return err }
	random := func(switches, degree, hosts int) error { _, err := irregular(switches, degree, hosts, 1)(); return err }
	lattice := func(switches int) error { _, err := gen.Lattice(switches, 1); return err }
	shuffle := func(p, k int) error { _, err := gen.Shufflenet(p, k); return err }
	banyan := func(stages int) error { _, err := banyan.Banyan(stages, true); return err }
	drop := func(links int) error {
		f := short.Must(mesh.Generate(mesh.Spec{Dims: []int{3, 3}, Hosts: 1}))(t)
		_, err := gen.DropLinks(f, links, 1)
		return err
	}
	for _, tt := range []struct {
		err      error
		want     string
		tooLarge bool
	}{
		{tree(7, 3, 0), "radix 7: want an even number from 2 to 254", false},
		{tree(0, 3, 0), "radix 0: want an even number from 2 to 254", false},
		{tree(-2, 3, 0), "radix -2: want an even number from 2 to 254", false},
		{tree(256, 2, 0), "radix 256: want an even number from 2 to 254", false},
		{tree(8, 4, 0), "4 levels: want 2 or 3", false},
		{tree(8, 3, 8), "8 hosts per leaf: want 1 to 7", false},
		{tree(8, 3, -1), "-1 hosts per leaf: want 1 to 7", false},
		{tree(58, 3, 0), "4205 switches and 48778 ports of channel adapters: want at most 49151 together", true},
		{grid(1, nil), "0 dimensions: want 1 to 16", false},
		{grid(1, nil, slices.Repeat([]int{1}, 17)...), "17 dimensions: want 1 to 16", false},
		{grid(1, nil, 4, 0), "mesh of 4x0: want 1 or more", false},
		{grid(1, nil, 4, -4), "mesh of 4x-4: want 1 or more", false},
		{grid(1, []bool{true}, 4, 4), "2 dimensions with 1 that wrap or not: want as many", false},
		{grid(251, nil, 2, 2), "251 hosts on each switch: want 0 to 250", false},
		{grid(-1, nil, 2, 2), "-1 hosts on each switch: want 0 to 250", false},
		{grid(1, nil, 200, 200), "mesh of 200x200: 40000 switches and 40000 ports", true},
		{grid(1, nil, math.MaxInt, math.MaxInt), "want at most 49151 switches", true},
		{grid(1, nil, 1<<32, 1<<32), "want at most 49151 switches", true},
		{cube(0, 1), "hypercube of 0 dimensions: want 1 to 15", false},
		{cube(16, 1), "hypercube of 16 dimensions: want 1 to 15", false},
		{cube(15, 1), "32768 switches and 32768 ports", true},
		{cube(4, 251), "251 hosts on each switch: want 0 to 250", false},
		{random(0, 0, 0), "0 switches: want 1 or more", false},
		{random(7, 3, 7), "7 switches, 3 cables on each: want one of the numbers even", false},
		{random(7, 7, 7), "want 2 to 6", false},
		{random(8, 1, 7), "want 2 to 7", false},
		{random(2, 2, 7), "want 1 to 1", false},
		{random(8, 3, -1), "-1 hosts: want 0 or more", false},
		{random(8, 4, 2001), "switch 0 with 255 ports: want 1 to 254", false},
		{random(40000, 4, 40000), "40000 switches and 40000 ports", true},
		{random(math.MaxInt, 4, math.MaxInt), "want at most 49151", true},
		{lattice(0), "0 switches: want 1 or more", false},
		{lattice(25000), "25000 switches and 25000 ports", true},
		{lattice(math.MaxInt), "want at most 49151", true},
		{shuffle(1, 3), "p 1: want 2 to 126", false},
		{shuffle(127, 3), "p 127: want 2 to 126", false},
		{shuffle(2, 1), "1 columns: want 2 or more", false},
		{shuffle(2, 12), "want at most 49151 switches and hosts together", true},
		{shuffle(126, math.MaxInt), "want at most 49151 switches and hosts together", true},
		{banyan(0), "0 stages: want 1 to 12", false},
		{banyan(13), "13 stages: want 1 to 12", false},
		{drop(-1), "-1 links to drop: want 0 or more", false},
		{drop(5), "5 links to drop: want at most 4, since the other 8 of the 12 links", false},
	} {
		switch {
		case tt.err == nil:
			t.Errorf("no error, want %q", tt.want)
		case !strings.Contains(tt.err.Error(), tt.want):
			t.Errorf("error %q, want %q", tt.err, tt.want)
		case errors.Is(tt.err, fabric.ErrTooLarge) != tt.tooLarge:
			t.Errorf("error %q: too large %v, want %v", tt.err, !tt.tooLarge, tt.tooLarge)
		}
	}
	for name, err := range map[string]error{
		"largest shufflenet": shuffle(2, 11),
		"largest banyan":     banyan(12),
		"largest hypercube":  cube(14, 1),
		"largest fat tree":   tree(56, 3, 0),
		"widest fat tree":    tree(254, 2, 0),
		"largest lattice":    lattice(24575),
		"full switches":      random(8, 4, 2000),
		"all links dropped":  drop(4),
		"a line of switches": grid(0, nil, 49151),
		"16 dimensions":      grid(250-28, nil, append(slices.Repeat([]int{2}, 5), slices.Repeat([]int{1}, 11)...)...),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
