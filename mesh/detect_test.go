package mesh

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ibweave/ibweave/fabric"
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

// connected says whether the switches are one part.
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
func checkSound(t testing.TB, g *Grid) {
	t.Helper()
	f := g.Fabric
	where := make(map[string]fabric.NodeID)
	for s := range fabric.NodeID(f.NumSwitches()) {
		for d, x := range g.Coord(s) {
			if x < 0 || int(x) >= g.Dims[d] {
				t.Fatalf("%s is at %v of a %s", nameOf(f, s), g.Coord(s), g)
			}
		}
		at := fmt.Sprint(g.Coord(s))
		if other, taken := where[at]; taken {
			t.Fatalf("%s and %s are both at %s", nameOf(f, s), nameOf(f, other), at)
		}
		where[at] = s
	}
	step := func(at []int16, d Dir) ([]int16, bool) {
		to := slices.Clone(at)
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
	joined := make(map[string]bool)
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
		if peer := f.Owner(f.Peer(p)); !ok || fmt.Sprint(to) != fmt.Sprint(g.Coord(peer)) {
			t.Fatalf("%s at %v leads in direction %d to %v", f.PortName(p), g.Coord(s), g.Dir(p), g.Coord(peer))
		}
		joined[fmt.Sprint(g.Coord(s), g.Dir(p))] = true
	}
	var missing []string
	at := make([]int16, len(g.Dims))
	for done := false; !done; {
		if _, there := where[fmt.Sprint(at)]; !there {
			missing = append(missing, fmt.Sprint(at, NoDir))
		} else {
			for d := range g.Dims {
				to, ok := step(at, Plus(d))
				if _, there := where[fmt.Sprint(to)]; ok && there && fmt.Sprint(to) != fmt.Sprint(at) && !joined[fmt.Sprint(at, Plus(d))] {
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

// drawGrid is a random grid of at most so many switches.
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

// TestDetectShapes: the shape of random grids with up to a twentieth of their
// cables missing.
func TestDetectShapes(t *testing.T) {
	smaller := 0
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		dims, wrap, w := drawGrid(rng, 1200)
		full := len(w.cables)
		if full >= 20 && seed%4 > 0 {
			w = w.drop(1+rng.IntN(full/20), rng)
		}
		f, _ := w.build(rng)
		g, err := Detect(f, DetectOptions{})
		if err != nil {
			t.Errorf("seed %d: %s %v with %d of %d cables: %v", seed, times(dims), wrap, len(w.cables), full, err)
			continue
		}
		checkSound(t, g)
		if got, want := finest(g.Dims, g.Wrap), finest(dims, wrap); got != want {
			if len(g.Missing) < full-len(w.cables) {
				smaller++
				t.Logf("seed %d: %s %v with %d of %d cables: found %s with %d missing", seed, times(dims), wrap, len(w.cables), full, g, len(g.Missing))
				continue
			}
			t.Errorf("seed %d: %s %v with %d of %d cables: found %s with %d missing", seed, times(dims), wrap, len(w.cables), full, g, len(g.Missing))
		}
	}
	t.Log(smaller)
}
