package mesh

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
)

var turnEngines = []TurnModel{NegativeFirst, WestFirst, NorthLast}

func turned(t testing.TB, e TurnModel, g *Grid, opt lft.Options) *lft.Routing {
	t.Helper()
	return short.Must(routeTurns(t.Context(), e, g, opt))(t)
}

// TestTurnOrder has the directions that paths of the deterministic forms take
// one after the other, in the compass and in three dimensions.
func TestTurnOrder(t *testing.T) {
	for _, tt := range []struct {
		engine TurnModel
		dims   int
		want   string
	}{
		{NegativeFirst, 2, "W S | E N"},
		{WestFirst, 2, "W | N S E"},
		{NorthLast, 2, "S W E | N"},
		{NegativeFirst, 3, "W S -2 | E N +2"},
		{WestFirst, 3, "W S | +2 -2 N E"},
		{NorthLast, 3, "-2 S W E | N +2"},
		{NegativeFirst, 1, "W | E"},
		{WestFirst, 1, "| E W"},
		{NorthLast, 1, "W E |"},
	} {
		model := tt.engine.turns(tt.dims)
		var names []string
		for i, way := range model.order {
			if i == model.first {
				names = append(names, "|")
			}
			if way <= South {
				names = append(names, strings.Fields("E W N S")[way])
			} else {
				names = append(names, fmt.Sprintf("%c%d", "+-"[way&1], way.Dim()))
			}
		}
		if model.first == len(model.order) {
			names = append(names, "|")
		}
		if got := strings.Join(names, " "); got != tt.want {
			t.Errorf("%s in %d dimensions: %s, want %s", tt.engine.Name(), tt.dims, got, tt.want)
		}
	}
}

// TestTurnModels holds the engines on whole grids of all kinds to what they
// promise: shortest paths of the open mesh, directions in the order of the
// list, no cycle.
func TestTurnModels(t *testing.T) {
	shapes := shapes()
	for _, name := range short.Keys(shapes, "line", "cylinder", "torus", "mixed", "hypercube", "parallel links", "several LIDs") {
		for _, e := range turnEngines {
			t.Run(name+"/"+e.Name(), func(t *testing.T) {
				g := grow(t, shapes[name])
				if slices.Contains(g.Wrap, true) {
					_, err := routeTurns(t.Context(), e, g, lft.Options{})
					var domain *lft.DomainError
					if !errors.As(err, &domain) || domain.Engine != e.Name() {
						t.Fatalf("a ring: %v, want a DomainError", err)
					}
				}
				r := turned(t, e, g, lft.Options{NoWrap: true})
				f := g.Fabric
				order := e.turns(len(g.Dims)).order
				for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
					dest, _ := delivery(f, f.LIDPort(lid))
					if dest == fabric.NoNode {
						continue
					}
					for s := range fabric.NodeID(f.NumSwitches()) {
						ports, ok := walk(t, r, s, lid)
						want := 1
						for d, size := range g.Dims {
							want += ringDistance(size, false, g.Coord(s)[d], g.Coord(dest)[d])
						}
						var places []int
						for _, p := range ports[:max(1, len(ports))-1] {
							places = append(places, slices.Index(order, g.Dir(p)))
						}
						if !ok || len(ports) != want || !slices.IsSorted(places) {
							t.Fatalf("N(%v) to LID %d on N(%v): arrives %v, places in the list %v, want %d hops in order",
								g.Coord(s), lid, g.Coord(dest), ok, places, want-1)
						}
					}
				}
				if waitInCycle(t, r) {
					t.Error("channels wait for each other in a cycle")
				}
			})
		}
	}
}

// TestTurnModelsBypass holds the engines on grids with missing cables and
// switches to the turns that they may take, and to reach all that the adaptive
// form of the model can.
func TestTurnModelsBypass(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		shape := drawPlot(rt, false)
		g := grow(t, shape)
		e := rapid.SampledFrom(turnEngines).Draw(rt, "engine")
		model := e.turns(len(g.Dims))
		r := turned(t, e, g, lft.Options{NoWrap: true})
		p := newPaths(g, true, model.order)
		f := g.Fabric
		for lid := fabric.LID(1); lid <= f.MaxLID(); lid++ {
			dest, _ := delivery(f, f.LIDPort(lid))
			if dest == fabric.NoNode {
				continue
			}
			hops := adaptive(p, model, dest)
			for s := range fabric.NodeID(f.NumSwitches()) {
				ports, ok := walk(t, r, s, lid)
				if len(ports) > 0 && !ok {
					rt.Fatalf("%s: LID %d sets out from N(%v) and does not arrive", e.Name(), lid, g.Coord(s))
				}
				want := hops[s]
				if ok != (want >= 0) || ok && len(ports)-1 != want {
					rt.Fatalf("%s: N(%v) reaches LID %d on N(%v): %v, in %d hops, want %d", e.Name(), g.Coord(s), lid, g.Coord(dest), ok, len(ports)-1, want)
				}
				if !ok {
					continue
				}
				second := false
				for _, port := range ports[:len(ports)-1] {
					set := slices.Index(model.order, g.Dir(port)) >= model.first
					if second && !set {
						rt.Fatalf("%s: N(%v) to LID %d on N(%v) turns back to the first set of directions", e.Name(), g.Coord(s), lid, g.Coord(dest))
					}
					second = set
				}
			}
		}
		if waitInCycle(t, r) {
			rt.Fatalf("%s: channels wait for each other in a cycle", e.Name())
		}
	})
}

// adaptive is by switch the hops to t by a model whose tables know no history: of
// the shortest way by the second set alone, and where there is none, by a hop
// of the first set and the best way on. -1 is for no way. It relaxes
// all hops until nothing changes.
func adaptive(p *paths, model turns, t fabric.NodeID) []int {
	const far = 1 << 20
	n := p.g.Fabric.NumSwitches()
	relax := func(hops []int, fixed []bool, set []Dir) {
		for changed := true; changed; {
			changed = false
			for u := range fabric.NodeID(n) {
				for _, way := range set {
					if next := p.next(u, way); next != fabric.NoNode && !fixed[u] && hops[next]+1 < hops[u] {
						hops[u] = hops[next] + 1
						changed = true
					}
				}
			}
		}
	}
	hops, fixed := make([]int, n), make([]bool, n)
	for u := range hops {
		hops[u] = far
	}
	hops[t] = 0
	relax(hops, fixed, model.order[model.first:])
	for u := range fixed {
		fixed[u] = hops[u] < far
	}
	relax(hops, fixed, model.order[:model.first])
	for u := range hops {
		if hops[u] == far {
			hops[u] = -1
		}
	}
	return hops
}

// TestTurnModelsBypassParallel has the LIDs of four hosts, and of their switch,
// go around a missing cable by both of two parallel links.
func TestTurnModelsBypassParallel(t *testing.T) {
	// From N(0,1) to N(1,2): east, then north, is broken at N(1,1).
	g := grow(t, plot{dims: []int{3, 3}, links: []int{2, 2}, hosts: func(int) int { return 4 },
		missing: func(at, d int) bool { return at == 4 && d == 1 }})
	r := turned(t, NegativeFirst, g, lft.Options{})
	used := make(map[fabric.PortID]int)
	f := g.Fabric
	for _, p := range f.CAPorts() {
		if s, _ := delivery(f, p); s == g.At(5) {
			path, _ := walk(t, r, g.At(1), f.LID(p))
			used[path[0]]++
		}
	}
	north := g.Ports(g.At(1), North)
	if len(used) != 2 || used[north[0]] != 2 || used[north[1]] != 2 {
		t.Errorf("N(0,1) sends by %v, want two LIDs by each of %v", used, north)
	}
}

// drawPlot draws a small grid with hosts, parallel links and missing parts.
func drawPlot(t *rapid.T, wraps bool) plot {
	shape := plot{seed: uint64(rapid.IntRange(1, 1<<30).Draw(t, "seed"))}
	positions := 1
	for range rapid.IntRange(1, 4).Draw(t, "dimensions") {
		most := 6
		if positions*most > 48 {
			most = 48 / positions
		}
		if most < 2 {
			break
		}
		size := rapid.IntRange(2, most).Draw(t, "size")
		positions *= size
		shape.dims = append(shape.dims, size)
		shape.wrap = append(shape.wrap, wraps && size > 2 && rapid.Bool().Draw(t, "wrap"))
		shape.links = append(shape.links, rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(t, "links"))
	}
	hosts := rapid.SliceOfN(rapid.IntRange(0, 3), 7, 7).Draw(t, "hosts")
	shape.hosts = func(at int) int { return hosts[at%7] }
	type place struct{ at, dim int }
	gone := make(map[place]bool)
	for range rapid.IntRange(0, 5).Draw(t, "missing") {
		gone[place{rapid.IntRange(0, positions-1).Draw(t, "at"), rapid.IntRange(-1, len(shape.dims)-1).Draw(t, "dimension")}] = true
	}
	shape.missing = func(at, d int) bool { return gone[place{at, d}] }
	shape.absent = func(at int) bool { return at > 0 && gone[place{at, -1}] }
	return shape
}

// copies is how often each switch of a multicast tree delivers: out has the
// directions by which switches send on, local those that deliver. A packet is
// not sent back the way it came (C4).
func copies(g *Grid, out map[fabric.NodeID]map[Dir]bool, from fabric.NodeID) map[fabric.NodeID]int {
	count := make(map[fabric.NodeID]int)
	var visit func(s fabric.NodeID, back Dir, left int)
	visit = func(s fabric.NodeID, back Dir, left int) {
		if left == 0 {
			return
		}
		count[s]++
		for way := range out[s] {
			if way != back {
				visit(g.Neighbor(s, way), way.Opposite(), left-1)
			}
		}
	}
	visit(from, NoDir, 64)
	return count
}

// TestNegativeFirstCopies has G-X8: of the 36 ways that adaptive
// negative-first can take from N(1,1) to N(2,2), N(3,2) and N(3,3) (Fig. 4),
// 24 make a tree of masks that delivers something twice (E-X9).
func TestNegativeFirstCopies(t *testing.T) {
	g := generated(t, Spec{Dims: []int{4, 4}, Hosts: 1}, lft.LIDOptions{})
	at := func(x, y int) fabric.NodeID { return g.At(4*x + y) }
	model := NegativeFirst.turns(2)
	// ways lists the shortest ways that the model allows.
	var dirs func(s, t fabric.NodeID, second bool) [][]Dir
	dirs = func(s, t fabric.NodeID, second bool) [][]Dir {
		if s == t {
			return [][]Dir{nil}
		}
		var list [][]Dir
		for i, way := range model.order {
			x, y := g.Coord(s)[way.Dim()], g.Coord(t)[way.Dim()]
			if x == y || (x < y) != way.Positive() || second && i < model.first {
				continue
			}
			for _, rest := range dirs(g.Neighbor(s, way), t, i >= model.first) {
				list = append(list, append([]Dir{way}, rest...))
			}
		}
		return list
	}
	from := at(1, 1)
	dests := []fabric.NodeID{at(2, 2), at(3, 2), at(3, 3)}
	counts := make(map[[3]int]int)
	for _, a := range dirs(from, dests[0], false) {
		for _, b := range dirs(from, dests[1], false) {
			for _, c := range dirs(from, dests[2], false) {
				out := make(map[fabric.NodeID]map[Dir]bool)
				for _, path := range [][]Dir{a, b, c} {
					s := from
					for _, way := range path {
						if out[s] == nil {
							out[s] = make(map[Dir]bool)
						}
						out[s][way] = true
						s = g.Neighbor(s, way)
					}
				}
				n := copies(g, out, from)
				counts[[3]int{n[dests[0]], n[dests[1]], n[dests[2]]}]++
			}
		}
	}
	want := map[[3]int]int{{1, 1, 1}: 12, {2, 2, 2}: 12, {1, 2, 2}: 4, {2, 3, 3}: 4, {2, 1, 2}: 2, {2, 2, 1}: 2}
	short.Equal(t, fmt.Sprint(counts), fmt.Sprint(want), "copies at N(2,2), N(3,2), N(3,3)", counts, want)
}

// TestOneSourceTrees has the rest of G-X8: the paths of the deterministic
// forms and of XY from one source are a tree, so that the masks of any group
// deliver to each member once: all 4,590 pairs of a source and a group in 3x3
// that has another member.
func TestOneSourceTrees(t *testing.T) {
	g := generated(t, Spec{Dims: []int{3, 3}, Hosts: 1}, lft.LIDOptions{Policy: lft.MeshLIDs})
	routings := []*lft.Routing{routed(t, g, lft.Options{})}
	for _, e := range turnEngines {
		routings = append(routings, turned(t, e, g, lft.Options{}))
	}
	for _, r := range routings {
		pairs := 0
		for from := range fabric.NodeID(9) {
			var path [9][]fabric.PortID
			for at := range 9 {
				path[at], _ = walk(t, r, from, fabric.LID(at+1))
			}
			for group := 1; group < 1<<9; group++ {
				if group == 1<<g.Position(from) {
					continue
				}
				pairs++
				out := make(map[fabric.NodeID]map[Dir]bool)
				for at := range 9 {
					if group>>at&1 == 0 {
						continue
					}
					for _, p := range path[at][:len(path[at])-1] {
						s := g.Fabric.Owner(p)
						if out[s] == nil {
							out[s] = make(map[Dir]bool)
						}
						out[s][g.Dir(p)] = true
					}
				}
				n := copies(g, out, from)
				for at := range 9 {
					if s := g.At(at); group>>at&1 != 0 && n[s] != 1 {
						t.Fatalf("%s: source N(%v), group %09b: N(%v) gets %d copies", r.Engine, g.Coord(from), group, g.Coord(s), n[s])
					}
				}
			}
		}
		short.Equal(t, pairs, 4590, "pairs of a source and a group")
	}
}
