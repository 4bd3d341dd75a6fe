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
	rank []int32 // by vertex: lower than those of the vertices that its edges lead to

	seen          []bool // by vertex; false between calls
	ahead, behind []V
	ranks         []int32
}

// NewOrder begins with an order of all vertices, which must be topological for
// the edges that there are.
func NewOrder[V ~int32](order []V) *Order[V] {
	o := &Order[V]{rank: make([]int32, len(order)), seen: make([]bool, len(order))}
	for rank, v := range order {
		o.rank[v] = int32(rank)
	}
	return o
}

// Before says whether v comes before w in the order.
func (o *Order[V]) Before(v, w V) bool { return o.rank[v] < o.rank[w] }

// Add makes v come before w, so that the caller can add an edge from v to w. It
// returns false and changes nothing if that would close a cycle. next and before
// list the vertices that edges lead to and come from, without the new edge. An edge
// that fits the order costs nothing; any other a search of the vertices ranked
// between w and v.
func (o *Order[V]) Add(v, w V, next, before Next[V]) bool {
	if o.Before(v, w) {
		return true
	}
	if v == w {
		return false
	}
	low, high := o.rank[w], o.rank[v]
	if !o.searchAhead(w, v, high, next) {
		return false
	}
	o.searchBehind(v, low, before)
	// The vertices behind get the lowest of the ranks that both lists have together;
	// each list keeps its order.
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

// searchAhead collects the vertices up to rank high that w leads to. It returns
// false if v is among them.
func (o *Order[V]) searchAhead(w, v V, high int32, next Next[V]) bool {
	defer o.forget(&o.ahead)
	o.ahead = append(o.ahead[:0], w)
	o.seen[w] = true
	for i := 0; i < len(o.ahead); i++ {
		for _, x := range next(o.ahead[i]) {
			if x == v {
				return false
			}
			if !o.seen[x] && o.rank[x] < high {
				o.seen[x] = true
				o.ahead = append(o.ahead, x)
			}
		}
	}
	return true
}

// searchBehind collects the vertices down to rank low that lead to v.
func (o *Order[V]) searchBehind(v V, low int32, before Next[V]) {
	defer o.forget(&o.behind)
	o.behind = append(o.behind[:0], v)
	o.seen[v] = true
	for i := 0; i < len(o.behind); i++ {
		for _, x := range before(o.behind[i]) {
			if !o.seen[x] && o.rank[x] > low {
				o.seen[x] = true
				o.behind = append(o.behind, x)
			}
		}
	}
}

// forget clears seen.
func (o *Order[V]) forget(list *[]V) {
	for _, x := range *list {
		o.seen[x] = false
	}
}
