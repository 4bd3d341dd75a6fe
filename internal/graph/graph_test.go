package graph

import (
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/internal/short"
)

// dense is a small graph as a matrix, with plain answers to everything.
type dense [][]bool

const far = math.MaxInt32 / 2

func drawGraph(t *rapid.T, undirected bool) dense {
	n := rapid.IntRange(1, 14).Draw(t, "vertices")
	g := make(dense, n)
	for v := range g {
		g[v] = make([]bool, n)
	}
	for range rapid.IntRange(0, 3*n).Draw(t, "edges") {
		v, w := rapid.IntRange(0, n-1).Draw(t, "from"), rapid.IntRange(0, n-1).Draw(t, "to")
		g[v][w] = true
		g[w][v] = g[w][v] || undirected
	}
	return g
}

// next uses one buffer, so that an algorithm that keeps the list fails.
func (g dense) next() Next[int32] {
	var list []int32
	return func(v int32) []int32 {
		list = list[:0]
		for w, edge := range g[v] {
			if edge {
				list = append(list, int32(w))
			}
		}
		return list
	}
}

func (g dense) before() Next[int32] {
	var list []int32
	return func(v int32) []int32 {
		list = list[:0]
		for w := range g {
			if g[w][v] {
				list = append(list, int32(w))
			}
		}
		return list
	}
}

// distances is the lengths of the shortest paths of at least one edge (Floyd,
// Warshall).
func (g dense) distances() [][]int {
	d := make([][]int, len(g))
	for v := range g {
		d[v] = make([]int, len(g))
		for w := range g {
			d[v][w] = far
			if g[v][w] {
				d[v][w] = 1
			}
		}
	}
	for k := range g {
		for v := range g {
			for w := range g {
				d[v][w] = min(d[v][w], d[v][k]+d[k][w])
			}
		}
	}
	return d
}

func (g dense) isCycle(t *rapid.T, cycle []int32) {
	seen := map[int32]bool{}
	for i, v := range cycle {
		if seen[v] || !g[v][cycle[(i+1)%len(cycle)]] {
			t.Fatalf("%v is no cycle", cycle)
		}
		seen[v] = true
	}
}

func TestCSR(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t, false)
		c := NewCSR(len(g), g.next())
		next := g.next()
		for v := range int32(len(g)) {
			short.EqualList(t, c.Next(v), next(v), "vertex", v)
		}
		class, count, list := Equivalent(len(g), next)
		if count != int(slices.Max(class))+1 || !slices.IsSortedFunc(list, func(v, w int32) int { return cmp.Or(cmp.Compare(class[v], class[w]), cmp.Compare(v, w)) }) {
			t.Fatalf("%d classes %v, list %v", count, class, list)
		}
		for v := range int32(len(g)) {
			for w := range v {
				short.MustEqual(t, slices.Equal(c.Next(v), c.Next(w)), (class[v] == class[w]), "vertices", v, "and", w, "in classes", class)
			}
		}
	})
}

func TestSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t, false)
		d := g.distances()
		s := NewSearch[int32](len(g))
		for range 3 { // the memory serves again
			starts := rapid.SliceOfN(rapid.Int32Range(0, int32(len(g)-1)), 1, 3).Draw(t, "starts")
			s.Run(g.next(), starts...)
			reached := 0
			for v := range int32(len(g)) {
				want := far
				for _, start := range starts {
					want = min(want, d[start][v])
					if start == v {
						want = 0
					}
				}
				path := s.Path(v)
				if !s.Reached(v) {
					if want != far || path != nil || s.Distance[v] != Unreached || s.From[v] != -1 {
						t.Fatalf("vertex %d was not reached: distance %d", v, want)
					}
					continue
				}
				reached++
				if int(s.Distance[v]) != want || len(path) != want+1 || !slices.Contains(starts, path[0]) || path[want] != v {
					t.Fatalf("vertex %d: distance %d, want %d; path %v", v, s.Distance[v], want, path)
				}
				for i := range path[1:] {
					if !g[path[i]][path[i+1]] {
						t.Fatalf("path %v", path)
					}
				}
			}
			sorted := slices.IsSortedFunc(s.Order, func(a, b int32) int { return int(s.Distance[a] - s.Distance[b]) })
			if len(s.Order) != reached || !sorted {
				t.Fatalf("order %v", s.Order)
			}
		}
	})
}

func TestComponentsAndUnionFind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t, true)
		d := g.distances()
		of, count := Components(len(g), g.next())
		u := NewUnionFind[int32](len(g))
		united := 0
		for v := range g {
			for w := range g {
				if g[v][w] && u.Join(int32(v), int32(w)) {
					united++
				}
			}
		}
		highest := int32(-1)
		for v := range int32(len(g)) {
			if of[v] > highest+1 {
				t.Fatalf("components are not numbered by lowest vertices: %v", of)
			}
			highest = max(highest, of[v])
			for w := range int32(len(g)) {
				want := v == w || d[v][w] < far
				short.MustEqual(t, of[v] == of[w], want, "vertices", v, "and", w, "one component")
				if got := u.Find(v) == u.Find(w); got != want || u.Find(v) > v {
					t.Fatalf("vertices %d and %d: one set %v, want %v; root %d", v, w, got, want, u.Find(v))
				}
			}
		}
		if count != int(highest)+1 || united != len(g)-count {
			t.Fatalf("%d components, %d joins", count, united)
		}
	})
}

func TestBestFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t, true)
		n := len(g)
		key := rapid.SliceOfN(rapid.Int32Range(0, 5), n, n).Draw(t, "keys")
		list := BestFirst(n, g.next(), key)
		for i, v := range list {
			near := func(w int32) bool { return slices.ContainsFunc(list[:i], func(x int32) bool { return g[x][w] }) }
			for _, w := range list[i+1:] {
				first := key[w] < key[v] || key[w] == key[v] && w < v
				if near(w) && !near(v) || near(w) == near(v) && first {
					t.Fatalf("%d before %d in %v", v, w, list)
				}
			}
		}
		slices.Sort(list)
		for v := range int32(n) {
			if len(list) != n || list[v] != v {
				t.Fatalf("vertices %v", list)
			}
		}
	})
}

func TestStronglyConnected(t *testing.T) {
	var s Strong[int32] // the memory serves again
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t, false)
		d := g.distances()
		var want [][]int32
		listed := make([]bool, len(g))
		for v := range g {
			if listed[v] || d[v][v] == far {
				continue
			}
			var list []int32
			for w := range g {
				if d[v][w] < far && d[w][v] < far {
					list = append(list, int32(w))
					listed[w] = true
				}
			}
			want = append(want, list)
		}
		if got := StronglyConnected(len(g), g.next()); !slices.EqualFunc(got, want, slices.Equal) {
			t.Fatalf("%v, want %v", got, want)
		}
		if n := s.Find(len(g), g.next()); n != len(want) || len(s.Of) != len(g) {
			t.Fatalf("%d components, want %d", n, len(want))
		}
		for i, list := range want {
			for _, v := range list {
				short.MustEqual(t, s.Of[v], int32(i), s.Of, "want", want)
			}
		}
		for v, of := range s.Of {
			short.MustEqual(t, listed[v], (of >= 0), s.Of, "want", want)
		}
	})
}

func TestTopologicalOrderAndFirstCycle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t, false)
		d := g.distances()
		order := TopologicalOrder(len(g), g.next())
		if rapid.Bool().Draw(t, "by key") {
			keys := rapid.SliceOfN(rapid.Int32Range(0, 3), len(g), len(g)).Draw(t, "keys")
			order = TopologicalByKey(len(g), g.next(), keys)
			free := TopologicalByKey(len(g), func(int32) []int32 { return nil }, keys)
			if !slices.IsSortedFunc(free, func(a, b int32) int { return cmp.Or(cmp.Compare(keys[a], keys[b]), cmp.Compare(a, b)) }) {
				t.Fatalf("without edges: %v by %v", free, keys)
			}
		}
		place := map[int32]int{}
		for i, v := range order {
			place[v] = i
		}
		short.MustEqual(t, len(place), len(order), "order", order)
		acyclic := true
		for v := range g {
			left := d[v][v] < far // on a cycle or behind one
			acyclic = acyclic && !left
			for w := range g {
				left = left || d[w][w] < far && d[w][v] < far
				i, ok := place[int32(v)]
				if j, too := place[int32(w)]; g[v][w] && too && (!ok || i >= j) {
					t.Fatalf("edge from %d to %d in order %v", v, w, order)
				}
			}
			if _, ok := place[int32(v)]; ok == left {
				t.Fatalf("vertex %d in order %v: %v", v, order, ok)
			}
		}
		cycle := FirstCycle(len(g), g.next())
		short.MustEqual(t, acyclic, (cycle == nil), "cycle", cycle)
		g.isCycle(t, cycle)
	})
}

func TestShortestCycle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t, false)
		if rapid.Bool().Draw(t, "two sides") {
			for v := range g {
				for w := range g {
					g[v][w] = g[v][w] && v%2 != w%2
				}
			}
		}
		d := g.distances()
		for _, members := range StronglyConnected(len(g), g.next()) {
			shortest := far
			for _, v := range members {
				shortest = min(shortest, d[v][v])
			}
			cycle, exact := ShortestCycle(members, g.next(), rapid.IntRange(1, shortest).Draw(t, "least"), 1<<20)
			if len(cycle) != shortest || !exact || cycle[0] != slices.Min(cycle) {
				t.Fatalf("cycle %v is exact: %v, shortest %d", cycle, exact, shortest)
			}
			g.isCycle(t, cycle)
			cycle, exact = ShortestCycle(members, g.next(), 1, 0)
			if len(cycle) != d[members[0]][members[0]] || cycle[0] != members[0] || exact && len(cycle) != shortest {
				t.Fatalf("cycle %v of the first vertex of %v is exact: %v", cycle, members, exact)
			}
			g.isCycle(t, cycle)
		}
	})
}

// Edges come and go, and the order is topological after each change.
func TestOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "vertices")
		g := make(dense, n)
		list := make([]int32, n)
		for v := range g {
			g[v], list[v] = make([]bool, n), int32(v)
		}
		o := NewOrder(rapid.Permutation(list).Draw(t, "order"))
		for range rapid.IntRange(1, 40).Draw(t, "changes") {
			v, w := rapid.Int32Range(0, int32(n-1)).Draw(t, "from"), rapid.Int32Range(0, int32(n-1)).Draw(t, "to")
			if g[v][w] {
				g[v][w] = false
				continue
			}
			closes := v == w || g.distances()[w][v] < far
			before := slices.Clone(o.rank)
			added := o.Add(v, w, g.next(), g.before())
			if added == closes || !added && !slices.Equal(o.rank, before) {
				t.Fatalf("edge from %d to %d closes a cycle: %v, added: %v", v, w, closes, added)
			}
			g[v][w] = added
			seen := make([]bool, n)
			for v, rank := range o.rank {
				for w := range int32(n) {
					if g[v][w] && !o.Before(int32(v), w) {
						t.Fatalf("edge from %d to %d with ranks %v", v, w, o.rank)
					}
				}
				if seen[rank] {
					t.Fatalf("ranks %v", o.rank)
				}
				seen[rank] = true
			}
		}
	})
}

func TestRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 50 {
		n, width := 1+rng.IntN(40), 1+rng.IntN(100)
		base := make([]int32, n)
		for v := range base {
			base[v] = int32(rng.IntN(3)*width) - 1
		}
		r, want := NewRows(base, width), map[[2]int32]bool{}
		other := NewRows(base, width)
		for range 4 * n {
			v := int32(rng.IntN(n))
			e := [2]int32{v, base[v] + int32(rng.IntN(width))}
			switch rng.IntN(4) {
			case 0:
				r.Remove(e[0], e[1])
				delete(want, e)
			case 1:
				other.Add(e[0], e[1])
				want[e] = true
				r.Union(&other)
				other.Remove(e[0], e[1])
			default:
				r.Add(e[0], e[1])
				want[e] = true
			}
			short.MustEqual(t, r.Has(e[0], e[1]), want[e], "edge", e, !want[e])
		}
		next := r.Next()
		for v := range int32(n) {
			list := next(v)
			if !slices.IsSorted(list) {
				t.Fatalf("%v do not ascend", list)
			}
			for _, w := range list {
				if !want[[2]int32{v, w}] {
					t.Fatalf("no edge from %d to %d", v, w)
				}
				delete(want, [2]int32{v, w})
			}
		}
		if len(want) > 0 {
			t.Fatalf("edges that are not listed: %v", want)
		}
	}
}

// TestAcyclic tries random edges, keeps or takes back some, and compares with a search for cycles.
func TestAcyclic(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	for range 200 {
		n := int32(2 + rng.IntN(8))
		order := make([]int32, n)
		for v := range order {
			order[v] = int32(v)
		}
		r := NewRows(make([]int32, n), int(n))
		before := func(w int32) (list []int32) {
			for v := range n {
				if r.Has(v, w) {
					list = append(list, v)
				}
			}
			return list
		}
		a := NewAcyclic(&r, NewOrder(order), before, math.MaxInt)
		kept, trial := map[[2]int32]bool{}, map[[2]int32]bool{}
		for range 60 {
			e := [2]int32{rng.Int32N(n), rng.Int32N(n)}
			leads := NewSearch[int32](int(n))
			leads.Run(r.Next(), e[1])
			had := r.Has(e[0], e[1])
			want := had || !leads.Reached(e[0])
			if got := a.Try(e[0], e[1]); got != want || a.Has(e[0], e[1]) != want {
				t.Fatalf("edge %v: %v, want %v", e, got, want)
			}
			if want && !had {
				trial[e] = true
			}
			switch rng.IntN(6) {
			case 0:
				a.Keep()
				maps.Copy(kept, trial)
				clear(trial)
			case 1:
				a.Undo()
				clear(trial)
			}
			short.MustEqual(t, r.Count(), len(kept)+len(trial), "edges, want", len(kept), "and", len(trial))
		}
	}
	r := NewRows(make([]int32, 2), 2)
	a := NewAcyclic(&r, NewOrder([]int32{0, 1}), func(int32) []int32 { return nil }, -1)
	if a.Try(0, 1) {
		t.Error("an edge without work left")
	}
}
