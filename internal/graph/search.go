package graph

import "slices"

// Unreached is the distance of a vertex that a search has not reached.
const Unreached int32 = -1

// Search is the result of a breadth-first search, and its scratch memory: one
// Search serves many searches, each of which costs only what it reaches.
type Search[V ~int32] struct {
	Order    []V     // the vertices reached, nearest first, in the order of discovery
	Distance []int32 // by vertex: edges from the nearest start, or Unreached
	From     []V     // by vertex: where the search came from; -1 for starts and unreached vertices
}

// NewSearch makes the memory for searches of n vertices.
func NewSearch[V ~int32](n int) *Search[V] {
	return &Search[V]{Distance: slices.Repeat([]int32{Unreached}, n), From: slices.Repeat([]V{-1}, n)}
}

// Run searches from starts and forgets the search before. To end a
// search early or to limit it to some vertices, let next list fewer.
func (s *Search[V]) Run(next Next[V], starts ...V) {
	s.Reset()
	s.Extend(next, starts...)
}

// Reset forgets all searches.
func (s *Search[V]) Reset() {
	for _, v := range s.Order {
		s.Distance[v], s.From[v] = Unreached, -1
	}
	s.Order = s.Order[:0]
}

// Extend searches from more vertices and leaves alone what earlier
// searches have reached since Reset. It appends new vertices to Order.
func (s *Search[V]) Extend(next Next[V], starts ...V) {
	at := len(s.Order)
	for _, v := range starts {
		if s.Distance[v] == Unreached {
			s.Distance[v] = 0
			s.Order = append(s.Order, v)
		}
	}
	for ; at < len(s.Order); at++ {
		v := s.Order[at]
		for _, to := range next(v) {
			if s.Distance[to] == Unreached {
				s.Distance[to], s.From[to] = s.Distance[v]+1, v
				s.Order = append(s.Order, to)
			}
		}
	}
}

// Reached returns true if a search has reached vertex v.
func (s *Search[V]) Reached(v V) bool { return s.Distance[v] != Unreached }

// Path returns a shortest path from a start to v, both included; nil if v was not reached.
func (s *Search[V]) Path(v V) []V {
	if !s.Reached(v) {
		return nil
	}
	var path []V
	for ; v >= 0; v = s.From[v] {
		path = append(path, v)
	}
	slices.Reverse(path)
	return path
}

// Components numbers the connected components of an undirected graph of n
// vertices, in the order of their lowest vertices.
func Components[V ~int32](n int, next Next[V]) (of []int32, count int) {
	of = make([]int32, n)
	s := NewSearch[V](n)
	for v := range V(n) {
		if s.Reached(v) {
			continue
		}
		before := len(s.Order)
		s.Extend(next, v)
		for _, w := range s.Order[before:] {
			of[w] = int32(count)
		}
		count++
	}
	return of, count
}
