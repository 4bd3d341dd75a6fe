package graph

import (
	"math"
	"slices"
)

// TopologicalOrder lists the vertices of a graph of n vertices so that each comes
// before those that its edges lead to (Kahn, Topological Sorting of Large
// Networks, Comm. ACM 1962). If there are cycles, the list is shorter than n: it
// lacks the vertices on a cycle and those reachable from one.
func TopologicalOrder[V ~int32](n int, next Next[V]) []V {
	edges := make([]int32, n) // by vertex: edges from vertices that are not in the order
	for v := range n {
		for _, to := range next(V(v)) {
			edges[to]++
		}
	}
	order := make([]V, 0, n)
	for v := range n {
		if edges[v] == 0 {
			order = append(order, V(v))
		}
	}
	for at := 0; at < len(order); at++ {
		for _, to := range next(order[at]) {
			if edges[to]--; edges[to] == 0 {
				order = append(order, to)
			}
		}
	}
	return order
}

// FirstCycle returns the cycle that a depth-first search finds first, from the
// lowest vertex on and along edges in the order of next; nil if there is none.
// Each vertex of the cycle has an edge to the next one, and the last to the first.
func FirstCycle[V ~int32](n int, next Next[V]) []V {
	place := make([]int32, n) // 1 + place on the path, or done
	const done = -1
	var path []frame[V]
	var edges []V // edges to follow from the path, a vertex's last first
	enter := func(v V) {
		path = append(path, frame[V]{v: v, edges: len(edges)})
		place[v] = int32(len(path))
		edges = append(edges, next(v)...)
		slices.Reverse(edges[path[len(path)-1].edges:])
	}
	for start := range V(n) {
		if place[start] != 0 {
			continue
		}
		enter(start)
		for len(path) > 0 {
			f := path[len(path)-1]
			last := len(edges) - 1
			if last < f.edges {
				place[f.v] = done
				path = path[:len(path)-1]
				continue
			}
			to := edges[last]
			edges = edges[:last]
			if at := place[to]; at > 0 {
				var cycle []V
				for _, f := range path[at-1:] {
					cycle = append(cycle, f.v)
				}
				return cycle
			}
			if place[to] == 0 {
				enter(to)
			}
		}
	}
	return nil
}

// FirstCycleOf is FirstCycle for edges of any type: lists has the edges of each
// vertex, and to returns where an edge leads. It returns the edges of the cycle.
func FirstCycleOf[E any](lists [][]E, to func(E) int) []E {
	var next []int32
	cycle := FirstCycle(len(lists), func(v int32) []int32 {
		next = next[:0]
		for _, e := range lists[v] {
			next = append(next, int32(to(e)))
		}
		return next
	})
	edges := make([]E, len(cycle))
	for i, v := range cycle {
		w := int(cycle[(i+1)%len(cycle)])
		edges[i] = lists[v][slices.IndexFunc(lists[v], func(e E) bool { return to(e) == w })]
	}
	return edges
}

// ShortestCycle returns a shortest cycle within members, a strongly
// connected component in ascending order, from the cycle's lowest
// vertex on. Each vertex has an edge to the next one, and the last
// to the first. The caller knows that no cycle has fewer than least
// vertices: the search ends with the first of that length.
//
// It searches from each member in turn, no deeper than can beat the
// shortest cycle so far, and leaves a member out once the shortest
// cycle through it is known: O(members x edges) at worst. After
// visiting budget vertices it ends with the shortest cycle through
// the members that it has tried, at least one, and exact is false.
func ShortestCycle[V ~int32](members []V, next Next[V], least, budget int) (cycle []V, exact bool) {
	n := len(members)
	s := cycleSearch{
		graph: newSubgraph(members, next), left: budget, deepest: math.MaxInt32,
		tried: make([]bool, n), seen: make([]int32, n), depth: make([]int32, n), from: make([]int32, n),
	}
	s.period = s.graph.period()
	least = (least + s.period - 1) / s.period * s.period
	exact = true
	for start := range int32(n) {
		if s.best != nil && len(s.best) <= least {
			break
		}
		if s.best != nil && s.left <= 0 {
			exact = false
			break
		}
		s.try(start)
	}
	for _, v := range s.best {
		cycle = append(cycle, members[v])
	}
	return cycle, exact
}

// cycleSearch is the state of ShortestCycle. Vertices are places among members.
type cycleSearch struct {
	graph   *CSR[int32]
	period  int // divides the lengths of all cycles
	left    int // vertices that may still be visited
	best    []int32
	deepest int32  // depth from which an edge can close a better cycle
	tried   []bool // by vertex: the shortest cycle through it is known
	seen    []int32
	depth   []int32 // by vertex: edges from the start with number seen-1
	from    []int32
	queue   []int32
}

// try finds a shortest cycle through start, unless best is as short.
func (s *cycleSearch) try(start int32) {
	s.tried[start] = true
	s.queue = append(s.queue[:0], start)
	s.depth[start] = 0
	for at := 0; at < len(s.queue); at++ {
		v := s.queue[at]
		if s.depth[v] > s.deepest {
			return
		}
		s.left--
		for _, to := range s.graph.Next(v) {
			if to == start {
				s.keep(start, v)
				return
			}
			if !s.tried[to] && s.seen[to] != start+1 {
				s.seen[to], s.depth[to], s.from[to] = start+1, s.depth[v]+1, v
				s.queue = append(s.queue, to)
			}
		}
	}
}

// keep makes the cycle from start to last the best one.
func (s *cycleSearch) keep(start, last int32) {
	s.best = s.best[:0]
	for v := last; v != start; v = s.from[v] {
		s.best = append(s.best, v)
	}
	s.best = append(s.best, start)
	slices.Reverse(s.best)
	s.deepest = int32(len(s.best) - 1 - s.period)
}

// newSubgraph returns the graph of some vertices, ascending, each numbered by its place in members.
func newSubgraph[V ~int32](members []V, next Next[V]) *CSR[int32] {
	place := make([]int32, members[len(members)-1]+1) // in the list, from 1; 0 for none
	for i, v := range members {
		place[v] = int32(i) + 1
	}
	var row []int32
	return NewCSR(len(members), func(i int32) []int32 {
		row = row[:0]
		for _, to := range next(members[i]) {
			if int(to) < len(place) && place[to] != 0 {
				row = append(row, place[to]-1)
			}
		}
		return row
	})
}

// period returns the greatest number that divides the lengths of all cycles of
// a strongly connected graph: 2 if every edge of a tree or mesh leads from one
// of two sides to the other. It is the greatest common divisor of distance(v)
// + 1 - distance(w) of all edges from v to w (Denardo, Periods of Connected
// Networks and Powers of Nonnegative Matrices, Math. Oper. Res. 1977).
func (g *CSR[V]) period() int {
	n := len(g.Start) - 1
	s := NewSearch[V](n)
	s.Run(g.Next, 0)
	period := int32(0)
	for v := range V(n) {
		for _, to := range g.Next(v) {
			a, b := period, s.Distance[v]+1-s.Distance[to]
			for b != 0 {
				a, b = b, a%b
			}
			period = max(a, -a)
		}
	}
	return max(1, int(period))
}
