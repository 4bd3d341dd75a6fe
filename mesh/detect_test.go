package mesh

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/routing/banyan"
)

// wiring is a switch graph in the making, for tests.
type wiring struct {
	switches int
	cables   [][2]int // parallel ones repeat
	hosts    int      // on each switch
}

// gridWiring is the cables of a whole grid, its switches numbered with the
// first dimension slowest, links parallel cables along dimension d.
func gridWiring(dims []int, wrap []bool, links []int) wiring {
	w := wiring{switches: 1}
	for _, size := range dims {
		w.switches *= size
	}
	step := w.switches
	for d, size := range dims {
		block := step
		step /= size
		for s := range w.switches {
			t := s + step
			if s%block/step == size-1 {
				if !wrap[d] || size == 1 {
					continue
				}
				t = s - (size-1)*step
			}
			for range links[d] {
				w.cables = append(w.cables, [2]int{s, t})
			}
		}
	}
	return w
}

// build makes the fabric with random GUIDs, port numbers and order. number is
// the switch of w by NodeID.
func (w wiring) build(rng *rand.Rand) (f *fabric.Fabric, number []int) {
	degree := make([]int, w.switches)
	for _, c := range w.cables {
		degree[c[0]]++
		degree[c[1]]++
	}
	guids := rng.Perm(16 * (w.switches*(w.hosts+1) + 1))
	var b fabric.Builder
	node := make([]int, w.switches)
	free := make([][]int, w.switches)
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	for i, s := range rng.Perm(w.switches) {
		ports := degree[s] + w.hosts + rng.IntN(3)
		n, err := b.AddNode(fabric.Node{Type: fabric.Switch, GUID: fabric.GUID(guids[i] + 1), NumPorts: fabric.PortNum(ports), Description: fmt.Sprint("switch ", s)})
		must(err)
		node[s], free[s] = n, rng.Perm(ports)
	}
	take := func(s int) fabric.PortNum {
		p := free[s][0]
		free[s] = free[s][1:]
		return fabric.PortNum(p + 1)
	}
	for _, i := range rng.Perm(len(w.cables)) {
		s, t := w.cables[i][0], w.cables[i][1]
		must(b.Connect(node[s], take(s), node[t], take(t), fabric.Link{}))
	}
	next := w.switches
	for s := range w.switches {
		for h := range w.hosts {
			n, err := b.AddNode(fabric.Node{Type: fabric.CA, GUID: fabric.GUID(guids[next] + 1), NumPorts: 1, Description: fmt.Sprintf("host %d/%d", s, h)})
			must(err)
			next++
			must(b.Connect(n, 1, node[s], take(s), fabric.Link{}))
		}
	}
	f, err := b.Build()
	must(err)
	number = make([]int, f.NumSwitches())
	for s, n := range node {
		id, _ := f.SwitchByGUID(b.Node(n).GUID)
		number[id] = s
	}
	return f, number
}

// connected returns true if the switches are one part.
func (w wiring) connected() bool {
	tree := make([]int, w.switches)
	for s := range tree {
		tree[s] = s
	}
	root := func(s int) int {
		for tree[s] != s {
			s = tree[s]
		}
		return s
	}
	parts := w.switches
	for _, c := range w.cables {
		if a, b := root(c[0]), root(c[1]); a != b {
			tree[a] = b
			parts--
		}
	}
	return parts == 1
}

// drop takes n random cables away that do not hold the switches together.
func (w wiring) drop(n int, rng *rand.Rand) wiring {
	w.cables = slices.Clone(w.cables)
	for tries := 0; n > 0 && tries < 100; tries++ {
		i := rng.IntN(len(w.cables))
		v := w
		v.cables = slices.Delete(slices.Clone(w.cables), i, i+1)
		if v.connected() {
			w = v
			n--
		}
	}
	return w
}

// unplug takes switches away, and the cables at them.
func (w wiring) unplug(gone ...int) wiring {
	number := make([]int, w.switches)
	left := 0
	for s := range number {
		if number[s] = -1; !slices.Contains(gone, s) {
			number[s] = left
			left++
		}
	}
	v := wiring{switches: left, hosts: w.hosts}
	for _, c := range w.cables {
		if a, b := number[c[0]], number[c[1]]; a >= 0 && b >= 0 {
			v.cables = append(v.cables, [2]int{a, b})
		}
	}
	return v
}

// finest is a shape as text, rings of four and double cables as dimensions of
// size 2, in the order of sizes.
func finest(dims []int, wrap []bool) string {
	var parts []string
	for d, size := range dims {
		switch {
		case size == 1:
		case size == 2:
			parts = append(parts, "2")
		case wrap[d] && size == 4:
			parts = append(parts, "2", "2")
		case wrap[d]:
			parts = append(parts, fmt.Sprint(size, "w"))
		default:
			parts = append(parts, fmt.Sprint(size))
		}
	}
	slices.Sort(parts)
	return fmt.Sprint(parts)
}

// checkSound goes through everything that a Grid says, by the definition of
// the words alone.
func checkSound(t rapid.TB, g *Grid) {
	t.Helper()
	f := g.Fabric
	// number is the position of coordinates, the first dimension slowest.
	number := func(at []int16) int {
		n := 0
		for d, x := range at {
			n = n*g.Dims[d] + int(x)
		}
		return n
	}
	positions := 1
	for _, size := range g.Dims {
		positions *= size
	}
	there := make([]bool, positions)
	for s := range fabric.NodeID(f.NumSwitches()) {
		for d, x := range g.Coord(s) {
			if x < 0 || int(x) >= g.Dims[d] {
				t.Fatalf("%s is at %v of a %s", nameOf(f, s), g.Coord(s), g)
			}
		}
		n := number(g.Coord(s))
		if there[n] {
			t.Fatalf("%s and another are at %v", nameOf(f, s), g.Coord(s))
		}
		there[n] = true
	}
	step := func(at []int16, d Dir) (to []int16, ok bool) {
		to = slices.Clone(at)
		if d.Positive() {
			to[d.Dim()]++
		} else {
			to[d.Dim()]--
		}
		size := int16(g.Dims[d.Dim()])
		if to[d.Dim()] < 0 || to[d.Dim()] == size {
			to[d.Dim()] = (to[d.Dim()] + size) % size
			return to, g.Wrap[d.Dim()]
		}
		return to, true
	}
	joined := make([]bool, positions*2*len(g.Dims)) // by position and direction
	for p := range fabric.PortID(f.NumPorts()) {
		s := f.Owner(p)
		if !f.IsSwitch(s) || f.Peer(p) == fabric.NoPort || !f.IsSwitch(f.Owner(f.Peer(p))) || f.Owner(f.Peer(p)) == s {
			if g.Dir(p) != NoDir {
				t.Fatalf("%s leads in direction %d", f.PortName(p), g.Dir(p))
			}
			continue
		}
		if g.Dir(p) == NoDir {
			t.Fatalf("%s has no direction", f.PortName(p))
		}
		to, ok := step(g.Coord(s), g.Dir(p))
		if peer := f.Owner(f.Peer(p)); !ok || !slices.Equal(to, g.Coord(peer)) {
			t.Fatalf("%s at %v leads in direction %d to %v", f.PortName(p), g.Coord(s), g.Dir(p), g.Coord(peer))
		}
		joined[number(g.Coord(s))*2*len(g.Dims)+int(g.Dir(p))] = true
	}
	var missing []string
	at := make([]int16, len(g.Dims))
	for done := false; !done; {
		if n := number(at); !there[n] {
			missing = append(missing, fmt.Sprint(at, NoDir))
		} else {
			for d := range g.Dims {
				to, ok := step(at, Plus(d))
				if ok && there[number(to)] && number(to) != n && !joined[n*2*len(g.Dims)+int(Plus(d))] {
					missing = append(missing, fmt.Sprint(at, Plus(d)))
				}
			}
		}
		done = true
		for d := len(at) - 1; d >= 0; d-- {
			if at[d]++; int(at[d]) < g.Dims[d] {
				done = false
				break
			}
			at[d] = 0
		}
	}
	var named []string
	for _, m := range g.Missing {
		named = append(named, fmt.Sprint(m.At, m.Dir))
	}
	if !slices.Equal(missing, named) {
		t.Fatalf("missing in the %s: %v, named: %v", g, missing, named)
	}
	if words := g.Faults(); len(words) != len(missing) {
		t.Fatalf("%d faults in words: %q, want %d", len(words), words, len(missing))
	}
}

// drawGrid is a random grid of as many switches as most says, or fewer.
func drawGrid(rng *rand.Rand, most int) (dims []int, wrap []bool, w wiring) {
	for w.switches == 0 || w.switches > most {
		dims = make([]int, 1+rng.IntN(5))
		wrap = make([]bool, len(dims))
		links := make([]int, len(dims))
		mode := rng.IntN(3)
		for d := range dims {
			dims[d] = 2 + rng.IntN(6)
			wrap[d] = mode == 1 || mode == 2 && rng.IntN(2) == 0
			links[d] = 1
			if rng.IntN(4) == 0 {
				links[d] = 2 + rng.IntN(2)
			}
		}
		w = gridWiring(dims, wrap, links)
	}
	w.hosts = rng.IntN(4)
	return dims, wrap, w
}

// findShape draws a grid with up to a twentieth of its cables missing, and
// checks what Detect makes of it. It says false where it found another shape
// that explains the fabric with fewer missing cables, which is then what
// should be found.
func findShape(t rapid.TB, seed uint64, most int) bool {
	rng := rand.New(rand.NewPCG(seed, 1))
	dims, wrap, w := drawGrid(rng, most)
	full := w
	if n := len(w.cables) / 20; n > 0 && seed%4 > 0 {
		w = w.drop(1+rng.IntN(n), rng)
	}
	f, _ := w.build(rng)
	g, err := Detect(f, DetectOptions{})
	if err != nil {
		t.Fatalf("seed %d: %s %v with %d of %d cables: %v", seed, times(dims), wrap, len(w.cables), len(full.cables), err)
	}
	checkSound(t, g)
	if got, want := finest(g.Dims, g.Wrap), finest(dims, wrap); got != want {
		missing := full.pairs() - w.pairs()
		if g.Positions() > w.switches || len(g.Missing) > missing || len(g.Missing) == missing && len(g.Dims) > len(dims) {
			t.Fatalf("seed %d: %s %v with %d of %d cables: found a %s with %d missing, want %d", seed, times(dims), wrap, len(w.cables), len(full.cables), g, len(g.Missing), missing)
		}
		return false
	}
	return true
}

// pairs is how many pairs of switches have cables.
func (w wiring) pairs() int {
	seen := make(map[[2]int]bool)
	for _, c := range w.cables {
		seen[[2]int{min(c[0], c[1]), max(c[0], c[1])}] = true
	}
	return len(seen)
}

// TestDetectShapes: of 200 random grids, each is found.
func TestDetectShapes(t *testing.T) {
	smaller, seeds := 0, uint64(short.Of(200, 16))
	for seed := range seeds {
		if !findShape(t, seed, 800) {
			smaller++
		}
	}
	if smaller > 2 {
		t.Errorf("a smaller grid explains %d of %d fabrics: these are no test", smaller, seeds)
	}
}

func TestDetectShapesRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		findShape(t, rapid.Uint64().Draw(t, "seed"), 300)
	})
}

// TestDetectBroken takes a twentieth of the switches and then a twentieth of
// the cables away, whatever falls apart.
func TestDetectBroken(t *testing.T) {
	for seed := range uint64(short.Of(200, 16)) {
		rng := rand.New(rand.NewPCG(seed, 2))
		dims, wrap, w := drawGrid(rng, 600)
		w = w.unplug(rng.Perm(w.switches)[:w.switches/20]...)
		rng.Shuffle(len(w.cables), func(i, j int) { w.cables[i], w.cables[j] = w.cables[j], w.cables[i] })
		w.cables = w.cables[len(w.cables)/20:]
		f, _ := w.build(rng)
		g, err := Detect(f, DetectOptions{})
		if err != nil {
			t.Errorf("seed %d: %s %v: %v", seed, times(dims), wrap, err)
			continue
		}
		checkSound(t, g)
		if got, want := finest(g.Dims, g.Wrap), finest(dims, wrap); got != want {
			t.Errorf("seed %d: %s %v: found a %s", seed, times(dims), wrap, g)
		}
	}
}

// TestDetectOdd has grids less a twentieth of their switches and cables, of which up to
// two cables lead to other switches: nine of ten are found when these are left out.
func TestDetectOdd(t *testing.T) {
	found, draws := 0, uint64(short.Of(200, 50))
	for seed := range draws {
		rng := rand.New(rand.NewPCG(seed, 77))
		_, _, w := drawGrid(rng, 150)
		w = w.unplug(rng.Perm(w.switches)[:rng.IntN(w.switches/20+1)]...)
		w = w.drop(rng.IntN(len(w.cables)/20+1), rng)
		for range rng.IntN(3) {
			w.cables[rng.IntN(len(w.cables))][1] = rng.IntN(w.switches)
		}
		f, _ := w.build(rng)
		if _, err := Detect(f, DetectOptions{LeaveOut: true}); err == nil {
			found++
		}
	}
	if 100*uint64(found) < 90*draws {
		t.Errorf("%d of %d grids with odd cables are found", found, draws)
	}
	t.Logf("%d of %d", found, draws)
}

// TestDetectFewMissing takes every single cable, every pair of them, and many
// sets of three from small grids, and every single one from thin grids.
func TestDetectFewMissing(t *testing.T) {
	for _, tt := range short.Part(1, []struct {
		dims []int
		wrap []bool
		gone int
	}{
		{[]int{4, 4}, []bool{false, false}, 3},
		{[]int{4, 4}, []bool{true, true}, 3},
		{[]int{5, 5}, []bool{true, false}, 2},
		{[]int{3, 3, 3}, []bool{false, false, true}, 2},
		{[]int{2, 2, 2, 2}, make([]bool, 4), 2},
		{[]int{2, 40}, []bool{false, false}, 1},
		{[]int{3, 30}, []bool{true, true}, 1},
		{[]int{12, 12}, []bool{false, false}, 1},
	}) {
		links := slices.Repeat([]int{1}, len(tt.dims))
		whole := gridWiring(tt.dims, tt.wrap, links)
		want := finest(tt.dims, tt.wrap)
		rng := rand.New(rand.NewPCG(1, 2))
		var without func(w wiring, from, gone int)
		without = func(w wiring, from, gone int) {
			if missing := len(whole.cables) - len(w.cables); missing > 0 && (missing < 3 || rng.IntN(10) == 0) {
				f, _ := w.build(rng)
				if g, err := Detect(f, DetectOptions{}); err != nil {
					t.Errorf("%s %v with cables %v: %v", times(tt.dims), tt.wrap, w.cables, err)
				} else if got := finest(g.Dims, g.Wrap); got != want || len(g.Missing) != missing {
					t.Errorf("%s %v with cables %v: found a %s with %d missing", times(tt.dims), tt.wrap, w.cables, g, len(g.Missing))
				}
			}
			for i := from; gone > 0 && i < len(w.cables); i++ {
				v := w
				v.cables = slices.Delete(slices.Clone(w.cables), i, i+1)
				without(v, i, gone-1)
			}
		}
		without(whole, 0, tt.gone)
	}
}

// rewire moves one end of a random cable to a random switch that is no
// neighbour of the other end, and not at the other end of its row either,
// where the cable could close a ring.
func rewire(dims []int, wrap []bool, w wiring, rng *rand.Rand) (wiring, [2]int) {
	near := make(map[[2]int]bool)
	for _, wraps := range [][]bool{wrap, slices.Repeat([]bool{true}, len(dims))} {
		for _, c := range gridWiring(dims, wraps, slices.Repeat([]int{1}, len(dims))).cables {
			near[c], near[[2]int{c[1], c[0]}] = true, true
		}
	}
	w.cables = slices.Clone(w.cables)
	for {
		i := rng.IntN(len(w.cables))
		c := w.cables[i]
		c[1] = rng.IntN(w.switches)
		if c[0] != c[1] && !near[c] {
			w.cables[i] = c
			return w, c
		}
	}
}

// TestDetectNone: 200 fabrics that are no grids are refused, and the cable that
// was moved is named.
func TestDetectNone(t *testing.T) {
	try := func(name, reason string, f *fabric.Fabric, err error) *NotGridError {
		t.Helper()
		short.Check(t, err)
		g, err := Detect(f, DetectOptions{})
		var none *NotGridError
		if g != nil || !errors.As(err, &none) {
			t.Errorf("%s is a %v: %v", name, g, err)
			return &NotGridError{}
		}
		short.Contains(t, err.Error(), reason, name, err)
		return none
	}
	count := 0
	for seed := range uint64(short.Of(120, 3)) {
		rng := rand.New(rand.NewPCG(seed, 3))
		var dims []int
		var wrap []bool
		var w wiring
		// In smaller ones, the moved cable can make another grid of them.
		for len(dims) < 2 || w.switches < 24 || slices.Min(dims) < 3 {
			dims, wrap, w = drawGrid(rng, 500)
		}
		moved, at := rewire(dims, wrap, w, rng)
		f, number := moved.build(rng)
		none := try(fmt.Sprint("rewired ", times(dims), wrap), "but not that between", f, nil)
		for _, p := range none.Cables {
			a, b := number[f.Owner(p)], number[f.Owner(f.Peer(p))]
			if [2]int{a, b} != at && [2]int{b, a} != at {
				t.Errorf("rewired %s %v: cable between %d and %d is named, was %v", times(dims), wrap, a, b, at)
			}
			if !strings.Contains(none.Reason, f.PortName(p)) || !strings.Contains(none.Reason, f.Node(f.Owner(p)).GUID.String()) {
				t.Errorf("%q does not name %s", none.Reason, f.PortName(p))
			}
		}
		if len(none.Cables) != 1 {
			t.Errorf("rewired %s %v: %d cables are named: %v", times(dims), wrap, len(none.Cables), none)
		}
		count++
	}
	for seed := range uint64(short.Of(20, 2)) {
		for _, switches := range []int{12, 16, 40} {
			f, err := gen.Irregular(gen.IrregularSpec{Switches: switches, Degree: 3 + int(seed%3), Seed: seed, Hosts: switches})
			try(fmt.Sprint("irregular ", switches, " ", seed), "", f, err)
			count++
		}
	}
	for radix := 4; radix <= short.Of(12, 8); radix += 4 {
		for levels := 2; levels <= 3; levels++ {
			f, err := gen.FatTree(gen.FatTreeSpec{Radix: radix, Levels: levels})
			try(fmt.Sprint("fat tree ", radix, levels), "three neighbours in common", f, err)
			count++
		}
	}
	for seed := range uint64(short.Of(10, 2)) {
		f, err := gen.Lattice(100, seed)
		try(fmt.Sprint("lattice ", seed), "", f, err)
		count++
	}
	f, err := gen.Shufflenet(2, 3)
	try("shufflenet", "join switches that are no neighbours", f, err)
	f, err = gen.Shufflenet(3, 2)
	try("shufflenet", "three neighbours in common", f, err)
	f, err = banyan.Banyan(3, false)
	try("banyan", "", f, err)
	f, err = gen.FatTree(gen.FatTreeSpec{Radix: 36, Levels: 2})
	try("fat tree", `has cables to 36 other switches`, f, err)
	if count += 4; count < short.Of(200, 10) {
		t.Errorf("%d fabrics, want 200", count)
	}
	for _, size := range []int{6, 11, 80} {
		w := gridWiring([]int{size, size}, []bool{false, false}, []int{1, 1})
		w.cables = append(w.cables, [2]int{1, (size-1)*size + 1})
		none := try("a mesh with one row closed", fmt.Sprintf("all cables fit %s %dx%d mesh, but not that between", map[int]string{6: "a", 11: "an", 80: "an"}[size], size, size), w.named(t), nil)
		short.Equal(t, len(none.Cables), 1, "a mesh with one row closed", none)
	}
	try("nothing", "there are none", new(fabric.Fabric), nil)
	split := gridWiring([]int{3, 3}, []bool{false, false}, []int{1, 1})
	for _, c := range gridWiring([]int{5, 5}, []bool{false, false}, []int{1, 1}).cables {
		split.cables = append(split.cables, [2]int{c[0] + 9, c[1] + 9})
	}
	split.switches += 25
	f, _ = split.build(rand.New(rand.NewPCG(1, 1)))
	try("two meshes", "2 parts without cables between them", f, nil)
}

// named makes a wiring whose switches have the GUIDs 1, 2, ... and the port
// numbers of the order of cables.
func (w wiring) named(t testing.TB) *fabric.Fabric {
	t.Helper()
	var b fabric.Builder
	next := make([]fabric.PortNum, w.switches)
	for s := range w.switches {
		short.Must(b.AddNode(fabric.Node{Type: fabric.Switch, GUID: fabric.GUID(s + 1), NumPorts: 20, Description: fmt.Sprint("s", s)}))(t)
	}
	for _, c := range w.cables {
		next[c[0]]++
		next[c[1]]++
		short.Check(t, b.Connect(c[0], next[c[0]], c[1], next[c[1]], fabric.Link{}))
	}
	return short.Must(b.Build())(t)
}

// TestDetectFaults has the words for what is missing, and what is missing in
// generated grids keeps the coordinates of all others.
func TestDetectFaults(t *testing.T) {
	whole := short.Must(Generate(Spec{Dims: []int{4, 4}, Hosts: 1}))(t)
	for _, tt := range []struct {
		name  string
		gone  []string // switches, or ports of cables
		words []string
	}{
		{"a cable", []string{`"switch 1,2"[1]`}, []string{
			`no cable between "switch 1,2" (0x0000000000200006) at 1,2 and "switch 2,2" (0x000000000020000a) at 2,2`}},
		{"a corner without cables", []string{`"switch 3,3"[3]`, `"switch 3,3"[4]`}, []string{
			`no cable between "switch 2,3" (0x000000000020000b) at 2,3 and "switch 3,3" (0x000000000020000f) at 3,3`,
			`no cable between "switch 3,2" (0x000000000020000e) at 3,2 and "switch 3,3" (0x000000000020000f) at 3,3`}},
		{"the origin", []string{"switch 0,0"}, []string{
			`no switch at 0,0, next to "switch 1,0" (0x0000000000200004) and "switch 0,1" (0x0000000000200001)`}},
		{"both", []string{"switch 2,1", `"switch 0,0"[1]`}, []string{
			`no cable between "switch 0,0" (0x0000000000200000) at 0,0 and "switch 1,0" (0x0000000000200004) at 1,0`,
			`no switch at 2,1, next to "switch 3,1" (0x000000000020000d), "switch 1,1" (0x0000000000200005), "switch 2,2" (0x000000000020000a) and "switch 2,0" (0x0000000000200008)`}},
	} {
		f := remove(t, whole, tt.gone...)
		g, err := Detect(f, DetectOptions{})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		checkSound(t, g)
		short.Equal(t, g.String(), "4x4 mesh", tt.name, "a", g)
		short.Diff(t, g.Faults(), tt.words, tt.name, "(-want +got)")
		for s := range fabric.NodeID(f.NumSwitches()) {
			if d := f.Node(s).Description; d != "switch "+g.coordinatesOf(s) {
				t.Errorf("%s: %s is at %s", tt.name, d, g.coordinatesOf(s))
			}
		}
	}
}

// remove is f less switches by description and cables by port name.
func remove(t testing.TB, f *fabric.Fabric, gone ...string) *fabric.Fabric {
	t.Helper()
	var b fabric.Builder
	index := make(map[fabric.NodeID]int)
	for n := range fabric.NodeID(f.NumNodes()) {
		if slices.Contains(gone, f.Node(n).Description) {
			continue
		}
		i := short.Must(b.AddNode(*f.Node(n)))(t)
		index[n] = i
	}
	for p := range fabric.PortID(f.NumPorts()) {
		q := f.Peer(p)
		if q < p || slices.Contains(gone, f.PortName(p)) || slices.Contains(gone, f.PortName(q)) {
			continue
		}
		a, aThere := index[f.Owner(p)]
		z, zThere := index[f.Owner(q)]
		if !aThere || !zThere {
			continue
		}
		short.Check(t, b.Connect(a, f.Num(p), z, f.Num(q), f.Link(p)))
	}
	return short.Must(b.Build())(t)
}

// TestDetectGenerated: the coordinates and directions of whole generated
// fabrics are the generator's.
func TestDetectGenerated(t *testing.T) {
	all := func(n int) []bool { return slices.Repeat([]bool{true}, n) }
	for _, tt := range []struct {
		spec Spec
		want string
	}{
		{Spec{Dims: []int{1}, Hosts: 3}, "single switch"},
		{Spec{Dims: []int{2}, Hosts: 1}, "line of 2"},
		{Spec{Dims: []int{2}, Wrap: all(1)}, "line of 2"},
		{Spec{Dims: []int{7}}, "line of 7"},
		{Spec{Dims: []int{3}, Wrap: all(1)}, "ring of 3"},
		{Spec{Dims: []int{4}, Wrap: all(1)}, "ring of 4"},
		{Spec{Dims: []int{9}, Wrap: all(1)}, "ring of 9"},
		{Spec{Dims: []int{2, 2}}, "2x2 mesh"},
		{Spec{Dims: []int{2, 2}, Wrap: all(2)}, "2x2 mesh"},
		{Spec{Dims: []int{4, 4}, Hosts: 1}, "4x4 mesh"},
		{Spec{Dims: []int{4, 4}, Hosts: 1, Wrap: all(2)}, "4x4 torus"},
		{Spec{Dims: []int{4, 4, 4}, Wrap: all(3)}, "4x4x4 torus"},
		{Spec{Dims: []int{4, 8}, Wrap: all(2)}, "4x8 torus"},
		{Spec{Dims: []int{8, 8}, Hosts: 2, Wrap: all(2)}, "8x8 torus"},
		{Spec{Dims: []int{16, 16}, Hosts: 1}, "16x16 mesh"},
		{Spec{Dims: []int{3, 3}, Wrap: all(2)}, "3x3 torus"},
		{Spec{Dims: []int{2, 2, 2}}, "3-cube"},
		{Spec{Dims: []int{3, 4, 5}, Hosts: 1}, "3x4x5 mesh"},
		{Spec{Dims: []int{3, 4, 5}, Wrap: []bool{false, false, true}}, "3x4x5 mesh, dimension 3 wrapped"},
		{Spec{Dims: []int{4, 4, 4, 3}, Wrap: []bool{true, false, true, true}}, "4x4x4x3 mesh, dimensions 1, 3 and 4 wrapped"},
		{Spec{Dims: []int{4, 3, 2}, Wrap: all(3)}, "4x3x2 mesh, dimensions 1 and 2 wrapped"},
		{Spec{Dims: []int{2, 3, 2, 3, 2}, Hosts: 1}, "2x3x2x3x2 mesh"},
		{Spec{Dims: []int{5, 3, 4, 3, 3}, Wrap: all(5)}, "5x3x4x3x3 torus"},
	} {
		f := short.Must(Generate(tt.spec))(t)
		g, err := Detect(f, DetectOptions{})
		if err != nil {
			t.Errorf("%s: %v", tt.want, err)
			continue
		}
		checkSound(t, g)
		if g.String() != tt.want || len(g.Missing) > 0 {
			t.Errorf("%s: detected a %s with %d missing", tt.want, g, len(g.Missing))
		}
		short.EqualList(t, g.Dims, tt.spec.Dims, tt.want, "dimensions")
		for s := range fabric.NodeID(f.NumSwitches()) {
			if d := f.Node(s).Description; d != "switch "+g.coordinatesOf(s) {
				t.Fatalf("%s: %s is at %s", tt.want, d, g.coordinatesOf(s))
			}
			for d, size := range g.Dims {
				plus, minus := directions(d)
				wraps := tt.spec.Wrap != nil && tt.spec.Wrap[d] && size == 2
				for _, p := range g.Ports(s, Plus(d)) {
					if n := f.Num(p); int(n) != plus && !(wraps && int(n) == minus) {
						t.Fatalf("%s: port %d of %s leads in direction %d", tt.want, n, f.Node(s).Description, Plus(d))
					}
				}
			}
		}
	}
	for dim := 3; dim <= 6; dim++ {
		f := short.Must(Hypercube(dim, 1))(t)
		g := short.Must(Detect(f, DetectOptions{}))(t)
		checkSound(t, g)
		if want := fmt.Sprintf("%d-cube", dim); g.String() != want {
			t.Errorf("%s: detected a %s", want, g)
		}
		for s := range fabric.NodeID(f.NumSwitches()) {
			if d := f.Node(s).Description; d != "switch "+g.coordinatesOf(s) {
				t.Fatalf("%s: %s is at %s", g, d, g.coordinatesOf(s))
			}
		}
	}
}

// TestDetectReading has the choices that the comment of Detect promises, on
// fabrics whose port numbers say nothing, and those of DetectOptions.
func TestDetectReading(t *testing.T) {
	torus := func(dims ...int) *fabric.Fabric {
		wrap := slices.Repeat([]bool{true}, len(dims))
		f, _ := gridWiring(dims, wrap, slices.Repeat([]int{1}, len(dims))).build(rand.New(rand.NewPCG(5, 5)))
		return f
	}
	mesh := short.Must(Generate(Spec{Dims: []int{3, 5}}))(t)
	square := short.Must(Generate(Spec{Dims: []int{4, 4}, Wrap: []bool{true, true}}))(t)
	line := gridWiring([]int{4}, []bool{false}, []int{1}).named(t)
	corner, middle := mesh.Node(14).GUID, mesh.Node(7).GUID
	for _, tt := range []struct {
		name string
		f    *fabric.Fabric
		opt  DetectOptions
		want string // or a part of the error
	}{
		{"a square of rings", torus(4, 4), DetectOptions{}, "4-cube"},
		{"forced", torus(4, 4), DetectOptions{Dims: []int{4, 4}}, "4x4 torus"},
		{"rings besides", torus(4, 8), DetectOptions{}, "4x8 torus"},
		{"in the other order", torus(4, 8), DetectOptions{Dims: []int{8, 4}}, "8x4 torus"},
		{"in the finest form", torus(4, 8), DetectOptions{Dims: []int{2, 8, 2}}, "2x8x2 mesh, dimension 2 wrapped"},
		{"a cabled torus as a cube", square, DetectOptions{Dims: []int{2, 2, 2, 2}}, "4-cube"},
		{"half of it", square, DetectOptions{Dims: []int{2, 4, 2}}, "2x4x2 mesh, dimension 2 wrapped"},
		{"sizes of 1", mesh, DetectOptions{Dims: []int{5, 1, 3}}, "5x3 mesh"},
		{"a line as a square", line, DetectOptions{Dims: []int{2, 2}}, "2x2 mesh"},
		{"a single switch", gridWiring([]int{1}, []bool{false}, []int{1}).named(t), DetectOptions{Dims: []int{1}}, "single switch"},
		{"a corner", mesh, DetectOptions{Origin: corner}, "3x5 mesh"},
		{"other sizes", mesh, DetectOptions{Dims: []int{5, 4}}, "the switches are a 3x5 mesh: it does not read as 5x4"},
		{"negative sizes", mesh, DetectOptions{Dims: []int{-5, -3}}, "it does not read as -5x-3"},
		{"no corner", mesh, DetectOptions{Origin: middle}, `the switches are a 3x5 mesh: the origin, "switch 1,2" (0x0000000000200007), is no corner; the corners are "switch 0,0" (0x0000000000200000), "switch 0,4" (0x0000000000200004), "switch 2,0" (0x000000000020000a), "switch 2,4" (0x000000000020000e)`},
		{"no switch", mesh, DetectOptions{Origin: 7}, "no switch has the GUID of the origin, 0x0000000000000007"},
	} {
		g, err := Detect(tt.f, tt.opt)
		if err != nil {
			var none *NotGridError
			if g != nil || !errors.As(err, &none) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
			}
			continue
		}
		checkSound(t, g)
		short.Equal(t, g.String(), tt.want, tt.name, "found a", g)
		if origin := g.At(0); tt.opt.Origin != 0 && tt.f.Node(origin).GUID != tt.opt.Origin {
			t.Errorf("%s: %s is at the origin", tt.name, nameOf(tt.f, origin))
		}
		if tt.opt.Dims == nil && tt.opt.Origin == 0 && g.At(0) != 0 {
			t.Errorf("%s: %s is at the origin, not the lowest GUID", tt.name, nameOf(tt.f, g.At(0)))
		}
	}
	// The lowest port of the origin leads in the positive direction of a ring.
	for seed := range uint64(10) {
		rings := gridWiring([]int{5, 7}, []bool{true, true}, []int{1, 1})
		f, _ := rings.build(rand.New(rand.NewPCG(seed, 5)))
		g := short.Must(Detect(f, DetectOptions{}))(t)
		for d := range g.Dims {
			plus, minus := g.Ports(0, Plus(d)), g.Ports(0, Minus(d))
			if g.At(0) != 0 || plus[0] > minus[0] {
				t.Errorf("a torus of random port numbers, seed %d: %s at the origin, port %d leads up, %d down in dimension %d",
					seed, nameOf(f, g.At(0)), f.Num(plus[0]), f.Num(minus[0]), d+1)
			}
		}
	}
	// Every switch of a torus can be the origin.
	for s := range fabric.NodeID(square.NumSwitches()) {
		g := short.Must(Detect(square, DetectOptions{Origin: square.Node(s).GUID}))(t)
		checkSound(t, g)
		if g.At(0) != s || g.Neighbor(s, East) != square.Owner(square.Peer(square.Port(s, 1))) {
			t.Errorf("origin %s: %s is at the origin", nameOf(square, s), nameOf(square, g.At(0)))
		}
	}
	// The GUIDs of a mesh do not turn it where its port numbers are in order.
	plan := gridWiring([]int{3, 4}, []bool{false, false}, []int{1, 1})
	f := short.Must(Generate(Spec{Dims: []int{3, 4}}))(t)
	var b fabric.Builder
	for s := range plan.switches {
		short.Must(b.AddNode(fabric.Node{Type: fabric.Switch, GUID: fabric.GUID(100 - s), NumPorts: 4, Description: f.Node(fabric.NodeID(s)).Description}))(t)
	}
	for p := range fabric.PortID(f.NumPorts()) {
		if q := f.Peer(p); q > p {
			short.Check(t, b.Connect(int(f.Owner(p)), f.Num(p), int(f.Owner(q)), f.Num(q), fabric.Link{}))
		}
	}
	f = short.Must(b.Build())(t)
	g := short.Must(Detect(f, DetectOptions{}))(t)
	for s := range fabric.NodeID(f.NumSwitches()) {
		if d := f.Node(s).Description; d != "switch "+g.coordinatesOf(s) {
			t.Errorf("%s is at %s", d, g.coordinatesOf(s))
		}
	}
}

// TestDetectOrder: the order of nodes and cables in the input does not matter.
func TestDetectOrder(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 4))
		_, _, w := drawGrid(rng, 200)
		w = w.drop(len(w.cables)/20, rng)
		f, _ := w.build(rng)
		var b fabric.Builder
		index := make([]int, f.NumNodes())
		for _, n := range rng.Perm(f.NumNodes()) {
			i := short.Must(b.AddNode(*f.Node(fabric.NodeID(n))))(t)
			index[n] = i
		}
		for _, i := range rng.Perm(f.NumPorts()) {
			if p := fabric.PortID(i); f.Peer(p) > p {
				q := f.Peer(p)
				short.Check(t, b.Connect(index[f.Owner(p)], f.Num(p), index[f.Owner(q)], f.Num(q), fabric.Link{}))
			}
		}
		shuffled := short.Must(b.Build())(t)
		g, err1 := Detect(f, DetectOptions{})
		h, err2 := Detect(shuffled, DetectOptions{})
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if !slices.Equal(g.coords, h.coords) || !slices.Equal(g.dir, h.dir) || !slices.Equal(g.Dims, h.Dims) {
			t.Errorf("seed %d: a %s in one order, a %s in another", seed, g, h)
		}
	}
}

// fewest is how many switches and then how many cables are missing in the best
// grid that explains a graph, by trying all shapes and all places of each switch
// in turn; false for none. The limits are those in the comment of Detect.
func fewest(w wiring) (best [2]int, ok bool) {
	linked := make(map[[2]int]bool)
	for _, c := range w.cables {
		linked[c], linked[[2]int{c[1], c[0]}] = true, true
	}
	for positions := w.switches; positions-w.switches <= positions/8 && !ok; positions++ {
		var try func(dims []int, wrap []bool, rest int)
		try = func(dims []int, wrap []bool, rest int) {
			if rest > 1 {
				for size := 2; size <= rest; size++ {
					if rest%size == 0 {
						try(append(slices.Clone(dims), size), append(slices.Clone(wrap), false), rest/size)
						if size > 2 {
							try(append(slices.Clone(dims), size), append(slices.Clone(wrap), true), rest/size)
						}
					}
				}
				return
			}
			grid := gridWiring(dims, wrap, slices.Repeat([]int{1}, len(dims)))
			beside := make(map[[2]int]bool)
			for _, c := range grid.cables {
				beside[c], beside[[2]int{c[1], c[0]}] = true, true
			}
			at := make([]int, 0, w.switches)
			taken := make([]bool, positions)
			var place func()
			place = func() {
				s := len(at)
				if s == w.switches {
					missing := 0
					full := len(grid.cables)
					number := make([]int, positions)
					for i := range number {
						number[i] = -1
					}
					for i, p := range at {
						number[p] = i
					}
					steps := make(map[string][2]int)
					for i, c := range grid.cables {
						a, b := number[c[0]], number[c[1]]
						if a < 0 || b < 0 {
							continue
						}
						have := 0
						if linked[[2]int{a, b}] {
							have = 1
						} else {
							missing++
						}
						// Which step of which ring is this cable of?
						dim, in := 0, i
						for per := 0; ; dim++ {
							per = positions / dims[dim] * (dims[dim] - 1)
							if wrap[dim] {
								per += positions / dims[dim]
							}
							if in < per {
								break
							}
							in -= per
						}
						if wrap[dim] {
							step := positions
							for d := 0; d <= dim; d++ {
								step /= dims[d]
							}
							k := fmt.Sprint(dim, c[0]/step%dims[dim])
							n := steps[k]
							steps[k] = [2]int{n[0] + have, n[1] + 1}
						}
					}
					for d := range dims {
						for x := range dims[d] {
							if n := steps[fmt.Sprint(d, x)]; wrap[d] && (n[1] == 0 || 3*n[0] < n[1]) {
								return
							}
						}
					}
					absent := positions - w.switches
					part := float64(absent)/float64(positions) + (float64(missing)-0.5)/float64(full)
					if part < 0.125+1e-9 && (!ok || missing < best[1]) {
						best, ok = [2]int{absent, missing}, true
					}
					return
				}
				for p := range positions {
					if taken[p] {
						continue
					}
					fits := true
					for u := range s {
						fits = fits && (!linked[[2]int{u, s}] || beside[[2]int{at[u], p}])
					}
					if fits {
						taken[p] = true
						at = append(at, p)
						place()
						at = at[:s]
						taken[p] = false
					}
				}
			}
			place()
		}
		try(nil, nil, positions)
	}
	return best, ok
}

// TestDetectSmall compares with an exhaustive search that shares no code, on
// random connected graphs of few switches.
func TestDetectSmall(t *testing.T) {
	grids, none := 0, 0
	cases := short.Of(400, 60)
	for seed := range uint64(cases) {
		rng := rand.New(rand.NewPCG(seed, 6))
		w := wiring{switches: 3 + rng.IntN(6)}
		for s := 1; s < w.switches; s++ { // a random tree of short branches
			w.cables = append(w.cables, [2]int{max(0, s-1-rng.IntN(2)), s})
		}
		extra := rng.IntN(6)
		if seed%2 == 0 { // or a small grid, less some of its cables
			_, _, w = drawGrid(rng, 8)
			w.hosts = 0
			for i, c := range w.cables {
				w.cables[i] = [2]int{min(c[0], c[1]), max(c[0], c[1])}
			}
			slices.SortFunc(w.cables, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
			w.cables = slices.Compact(w.cables)
			w = w.drop(rng.IntN(3), rng)
			extra = rng.IntN(2)
		}
		for range extra {
			if s, u := rng.IntN(w.switches), rng.IntN(w.switches); s != u && !slices.Contains(w.cables, [2]int{min(s, u), max(s, u)}) {
				w.cables = append(w.cables, [2]int{min(s, u), max(s, u)})
			}
		}
		want, ok := fewest(w)
		f, _ := w.build(rng)
		g, err := Detect(f, DetectOptions{})
		switch {
		case !ok && err == nil:
			t.Errorf("seed %d: cables %v are no grid, found a %s with %d missing", seed, w.cables, g, len(g.Missing))
		case ok && err != nil:
			t.Errorf("seed %d: cables %v are a grid with %d missing: %v", seed, w.cables, want, err)
		case ok && (g.Positions() != w.switches+want[0] || len(g.Missing) != want[0]+want[1]):
			t.Errorf("seed %d: cables %v: found a %s with %d missing, want %d", seed, w.cables, g, len(g.Missing), want)
		}
		if err == nil {
			checkSound(t, g)
			grids++
		} else {
			none++
		}
	}
	if least := cases / 4; grids < least || none < least {
		t.Errorf("%d grids and %d others: want %d of each at least", grids, none, least)
	}
}

// FuzzDetect makes a fabric of any cables: an error has no grid, and a grid is
// sound.
func FuzzDetect(f *testing.F) {
	for _, dims := range [][]int{{1}, {5}, {2, 2}, {3, 3}, {2, 2, 2}, {3, 4}, {4, 4}} {
		for _, wrapped := range []bool{false, true} {
			w := gridWiring(dims, slices.Repeat([]bool{wrapped}, len(dims)), slices.Repeat([]int{1}, len(dims)))
			var text []byte
			for _, c := range w.cables {
				text = append(text, byte(c[0]), byte(c[1]))
			}
			f.Add(byte(w.switches), text, uint64(3))
		}
	}
	f.Add(byte(40), []byte{0, 0, 0, 1, 0, 1, 30, 31}, uint64(0))
	f.Fuzz(func(t *testing.T, switches byte, cables []byte, seed uint64) {
		w := wiring{switches: int(switches)%100 + 1}
		degree := make([]int, w.switches)
		for i := 0; i+1 < len(cables); i += 2 {
			s, u := int(cables[i])%w.switches, int(cables[i+1])%w.switches
			if degree[s] < 100 && degree[u] < 100 {
				w.cables = append(w.cables, [2]int{s, u})
				degree[s]++
				degree[u]++
			}
		}
		fab, _ := w.build(rand.New(rand.NewPCG(seed, 1)))
		g, err := Detect(fab, DetectOptions{})
		if (g == nil) == (err == nil) {
			t.Fatalf("grid %v and error %v", g, err)
		}
		if err != nil {
			var none *NotGridError
			if !errors.As(err, &none) || none.Reason == "" {
				t.Fatalf("error %#v", err)
			}
			return
		}
		checkSound(t, g)
		if h, err := Detect(fab, DetectOptions{Origin: fab.Node(g.At(0)).GUID, Dims: g.Dims}); g.At(0) != fabric.NoNode && (err != nil || h.String() != g.String()) {
			t.Fatalf("a %s is a %v when asked for: %v", g, h, err)
		}
	})
}

func BenchmarkDetect(b *testing.B) {
	for _, tt := range []struct {
		name   string
		dims   []int
		wrap   bool
		broken bool // a twentieth of the cables is missing
	}{
		{"mesh 128x128", []int{128, 128}, false, false},
		{"mesh 128x128 broken", []int{128, 128}, false, true},
		{"torus 128x128", []int{128, 128}, true, false},
		{"torus 128x128 broken", []int{128, 128}, true, true},
		{"mesh 7x7x7x7x7", []int{7, 7, 7, 7, 7}, false, false},
		{"torus 7x7x7x7x7 broken", []int{7, 7, 7, 7, 7}, true, true},
		{"14-cube", slices.Repeat([]int{2}, 14), false, false},
	} {
		b.Run(tt.name, func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 1))
			w := gridWiring(tt.dims, slices.Repeat([]bool{tt.wrap}, len(tt.dims)), slices.Repeat([]int{1}, len(tt.dims)))
			if tt.broken {
				rng.Shuffle(len(w.cables), func(i, j int) { w.cables[i], w.cables[j] = w.cables[j], w.cables[i] })
				w.cables = w.cables[len(w.cables)/20:]
			}
			f, _ := w.build(rng)
			b.ReportAllocs()
			for b.Loop() {
				short.Must(Detect(f, DetectOptions{}))(b)
			}
		})
	}
}
