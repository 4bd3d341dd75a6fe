package graph

// Strong finds strongly connected components. It keeps its memory for the next search.
type Strong[V ~int32] struct {
	// Of gives the component of each vertex, or -1 if the vertex is on no cycle.
	// Components are numbered from 0 in the order of their lowest vertices.
	Of []int32

	index, low []int32 // by vertex: order of discovery from 1, and the lowest index it leads back to
	stack      []V     // vertices whose components are not complete
	frames     []frame[V]
	edges      []V // edges that the frames still have to follow
}

// frame is a vertex on the path of the depth-first search.
type frame[V ~int32] struct {
	v     V
	edges int  // where its edges begin
	loop  bool // it has an edge to itself
}

const (
	onNoCycle  = -1
	incomplete = -2
)

// Find finds, in a graph of n vertices, the strongly connected components
// that have a cycle; an edge from a vertex to itself is one. It sets
// Of and returns their number (Tarjan, Depth-first Search and Linear
// Graph Algorithms, SIAM J. Comput. 1972, without recursion).
func (s *Strong[V]) Find(n int, next Next[V]) int {
	if cap(s.index) < n {
		s.Of, s.index, s.low = make([]int32, n), make([]int32, n), make([]int32, n)
	}
	s.Of, s.index, s.low = s.Of[:n], s.index[:n], s.low[:n]
	clear(s.index)
	clock, count := int32(0), int32(0)
	enter := func(v V) {
		clock++
		s.index[v], s.low[v], s.Of[v] = clock, clock, incomplete
		s.stack = append(s.stack, v)
		s.frames = append(s.frames, frame[V]{v: v, edges: len(s.edges)})
		s.edges = append(s.edges, next(v)...)
	}
	for start := range V(n) {
		if s.index[start] != 0 {
			continue
		}
		enter(start)
		for len(s.frames) > 0 {
			f := &s.frames[len(s.frames)-1]
			last := len(s.edges) - 1
			if last < f.edges {
				if s.leave() {
					count++
				}
				continue
			}
			to := s.edges[last]
			s.edges = s.edges[:last]
			switch {
			case s.index[to] == 0:
				enter(to)
			case to == f.v:
				f.loop = true
			case s.Of[to] == incomplete:
				s.low[f.v] = min(s.low[f.v], s.index[to])
			}
		}
	}
	s.renumber(int(count))
	return int(count)
}

// leave ends the frame on top. It returns true if that
// completes a component with a cycle; s.Of of its
// vertices is then the index of the first of them.
func (s *Strong[V]) leave() bool {
	f := s.frames[len(s.frames)-1]
	s.frames = s.frames[:len(s.frames)-1]
	if len(s.frames) > 0 {
		up := s.frames[len(s.frames)-1].v
		s.low[up] = min(s.low[up], s.low[f.v])
	}
	if s.low[f.v] != s.index[f.v] {
		return false
	}
	from := len(s.stack) - 1
	for s.stack[from] != f.v {
		from--
	}
	component := s.index[f.v]
	if len(s.stack)-from == 1 && !f.loop {
		component = onNoCycle
	}
	for _, v := range s.stack[from:] {
		s.Of[v] = component
	}
	s.stack = s.stack[:from]
	return component != onNoCycle
}

// renumber brings the components into the order of their lowest vertices.
func (s *Strong[V]) renumber(count int) {
	if count == 0 {
		return
	}
	number := s.low // by index of the first vertex of a component: 1 + its number
	clear(number)
	found := int32(0)
	for v, of := range s.Of {
		if of == onNoCycle {
			continue
		}
		if number[of-1] == 0 {
			found++
			number[of-1] = found
		}
		s.Of[v] = number[of-1] - 1
	}
}

// StronglyConnected lists the strongly connected components
// that hold a cycle, each ascending, in the order of their
// lowest vertices.
func StronglyConnected[V ~int32](n int, next Next[V]) [][]V {
	var s Strong[V]
	lists := make([][]V, s.Find(n, next))
	for v, of := range s.Of {
		if of != onNoCycle {
			lists[of] = append(lists[of], V(v))
		}
	}
	return lists
}
