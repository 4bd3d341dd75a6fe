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

import (
	"cmp"
	"slices"

	"github.com/ibweave/ibweave/internal/text"
)

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

// Reverse returns the graph with all edges turned around. The edges
// of a vertex ascend by the vertex that they now lead to.
func (g *CSR[V]) Reverse() *CSR[V] {
	n := len(g.Start) - 1
	r := &CSR[V]{Start: make([]int32, n+1), Edges: make([]V, len(g.Edges))}
	for _, to := range g.Edges {
		r.Start[to+1]++
	}
	for v := range n {
		r.Start[v+1] += r.Start[v]
	}
	at := slices.Clone(r.Start)
	for v := range V(n) {
		for _, to := range g.Next(v) {
			r.Edges[at[to]] = v
			at[to]++
		}
	}
	return r
}

// Equivalent finds classes of vertices whose edges lead
// to the same vertices in the same order. It numbers the
// classes from 0, in the order of their lists of edges,
// and lists all vertices by class, ascending within each.
func Equivalent[V ~int32](n int, next Next[V]) (class []int32, count int, list []V) {
	g := NewCSR(n, next)
	list = text.Numbers[V](n)
	compare := func(v, w V) int { return slices.Compare(g.Next(v), g.Next(w)) }
	slices.SortFunc(list, func(v, w V) int { return cmp.Or(compare(v, w), cmp.Compare(v, w)) })
	class = make([]int32, n)
	for i, v := range list {
		if i == 0 || compare(list[i-1], v) != 0 {
			count++
		}
		class[v] = int32(count - 1)
	}
	return class, count, list
}

// UnionFind is a partition of vertices into sets that grow together. Each set is
// known by its lowest vertex, its root. An operation takes O(log vertices) on
// average (Tarjan and van Leeuwen, Worst-case Analysis of Set Union Algorithms,
// J. ACM 1984: linking by index, path halving).
type UnionFind[V ~int32] []V

// NewUnionFind puts each of n vertices into a set of its own.
func NewUnionFind[V ~int32](n int) UnionFind[V] {
	u := make(UnionFind[V], n)
	u.Reset()
	return u
}

// Reset puts each vertex into a set of its own again.
func (u UnionFind[V]) Reset() {
	for v := range u {
		u[v] = V(v)
	}
}

// Find returns the root of the set that v is in.
func (u UnionFind[V]) Find(v V) V {
	for u[v] != v {
		u[v] = u[u[v]]
		v = u[v]
	}
	return v
}

// Join unites the sets of two vertices. It returns false if they are in one set already.
func (u UnionFind[V]) Join(v, w V) bool {
	v, w = u.Find(v), u.Find(w)
	u[max(v, w)] = min(v, w)
	return v != w
}
