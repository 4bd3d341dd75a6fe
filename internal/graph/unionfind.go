package graph

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

// Find is the root of the set that v is in.
func (u UnionFind[V]) Find(v V) V {
	for u[v] != v {
		u[v] = u[u[v]]
		v = u[v]
	}
	return v
}

// Join unites the sets of two vertices. It returns false if these are one set
// already.
func (u UnionFind[V]) Join(v, w V) bool {
	v, w = u.Find(v), u.Find(w)
	u[max(v, w)] = min(v, w)
	return v != w
}
