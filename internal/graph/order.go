package graph

import (
	"cmp"
	"slices"
)

// Order is a topological order of a graph that grows edge by edge without cycles
// (Pearce and Kelly, A Dynamic Topological Sort Algorithm for Directed Acyclic
// Graphs, ACM JEA 2006). The caller keeps the edges. It may remove edges at any
// time: the order remains right.
type Order[V ~int32] struct {
	rank []int32 // by vertex: lower than the ranks of vertices that its edges lead to

	seen          []bool // by vertex; false between calls
	ahead, behind []V
	ranks         []int32
}

// NewOrder begins with an order of all vertices, which must be
// topological for the edges that exist.
func NewOrder[V ~int32](order []V) *Order[V] {
	o := &Order[V]{rank: make([]int32, len(order)), seen: make([]bool, len(order))}
	for rank, v := range order {
		o.rank[v] = int32(rank)
	}
	return o
}

// Before returns true if v comes before w in the order.
func (o *Order[V]) Before(v, w V) bool { return o.rank[v] < o.rank[w] }

// Add makes v come before w, so that the caller can add an edge from v
// to w. It returns false and changes nothing if that would close a
// cycle. next and before list the vertices that edges lead to and come
// from, without the new edge. An edge that fits the order costs nothing;
// any other costs a search of the vertices ranked between w and v.
func (o *Order[V]) Add(v, w V, next, before Next[V]) bool {
	if o.Before(v, w) {
		return true
	}
	if v == w {
		return false
	}
	low, high := o.rank[w], o.rank[v]
	if !o.search(&o.ahead, w, v, low, high, next) {
		return false
	}
	o.search(&o.behind, v, w, low, high, before)
	// The vertices behind get the lowest ranks of both lists; each list keeps its order.
	byRank := func(a, b V) int { return cmp.Compare(o.rank[a], o.rank[b]) }
	slices.SortFunc(o.behind, byRank)
	slices.SortFunc(o.ahead, byRank)
	o.behind = append(o.behind, o.ahead...)
	o.ranks = o.ranks[:0]
	for _, x := range o.behind {
		o.ranks = append(o.ranks, o.rank[x])
	}
	slices.Sort(o.ranks)
	for i, x := range o.behind {
		o.rank[x] = o.ranks[i]
	}
	return true
}

// search sets list to vertex from and those that
// it leads to by vertices ranked between low and
// high. It returns false if it comes to vertex to.
func (o *Order[V]) search(list *[]V, from, to V, low, high int32, next Next[V]) bool {
	found := append((*list)[:0], from)
	o.seen[from] = true
	defer func() {
		for _, x := range found {
			o.seen[x] = false
		}
		*list = found
	}()
	for i := 0; i < len(found); i++ {
		for _, x := range next(found[i]) {
			if x == to {
				return false
			}
			if !o.seen[x] && low < o.rank[x] && o.rank[x] < high {
				o.seen[x] = true
				found = append(found, x)
			}
		}
	}
	return true
}
