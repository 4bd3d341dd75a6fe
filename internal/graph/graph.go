// Package graph has the graph algorithms that several rooms need: searches,
// components, cycles and orders. It makes no promise to other modules.
//
// Vertices are int32 indices from 0, of any named type. A directed graph is a
// function of type Next. It is the same for all algorithms whether the edges are
// fabric.SwitchLinks, rows of a CSR, or bits that the function collects in a
// buffer of its own. An undirected graph has each edge in both directions.
//
// Results depend only on the numbers of the vertices and on the order in which
// Next lists them. All algorithms take O(vertices + edges) where nothing else is
// said. The types with scratch memory serve one goroutine at a time.
package graph

// Next lists the vertices that edges from v lead to, in any order, repeated or
// not. The list is read before the next call and is not changed, so that the
// function may use one buffer for all calls.
type Next[V ~int32] func(v V) []V

// CSR is a directed graph as compressed sparse rows.
type CSR[V ~int32] struct {
	Start []int32 // by vertex: its first edge; one more at the end
	Edges []V     // the vertices that edges lead to
}

// NewCSR copies a graph of n vertices.
func NewCSR[V ~int32](n int, next Next[V]) *CSR[V] {
	g := &CSR[V]{Start: make([]int32, n+1)}
	for v := range n {
		g.Edges = append(g.Edges, next(V(v))...)
		g.Start[v+1] = int32(len(g.Edges))
	}
	return g
}

// Next lists the vertices that edges from v lead to.
func (g *CSR[V]) Next(v V) []V { return g.Edges[g.Start[v]:g.Start[v+1]] }

// Reverse is the graph with all edges turned round; each row is ascending.
func (g *CSR[V]) Reverse() *CSR[V] {
	n := len(g.Start) - 1
	r := &CSR[V]{Start: make([]int32, n+1), Edges: make([]V, len(g.Edges))}
	for _, v := range g.Edges {
		r.Start[v+1]++
	}
	for v := range n {
		r.Start[v+1] += r.Start[v]
	}
	at := append([]int32(nil), r.Start...)
	for v := range n {
		for _, to := range g.Next(V(v)) {
			r.Edges[at[to]] = V(v)
			at[to]++
		}
	}
	return r
}
