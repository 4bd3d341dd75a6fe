package graph

import (
	"cmp"
	"container/heap"
	"slices"
)

// BestFirst lists all vertices of an undirected graph, those with lower keys first as
// far as the list grows along edges: the next vertex is the one with the lowest key
// next to those listed, of equal keys the lowest vertex. Where there is none, as at
// the beginning, it is the lowest of all that are left. It takes O(edges x log
// vertices).
func BestFirst[V ~int32](n int, next Next[V], key []int32) []V {
	h := frontier[V]{key: key}
	starts := make([]V, n)
	for v := range starts {
		starts[v] = V(v)
	}
	slices.SortStableFunc(starts, func(a, b V) int { return cmp.Compare(key[a], key[b]) })
	seen := make([]bool, n)
	list := make([]V, 0, n)
	add := func(v V) {
		if !seen[v] {
			seen[v] = true
			heap.Push(&h, v)
		}
	}
	for _, start := range starts {
		for add(start); len(h.list) > 0; {
			v := heap.Pop(&h).(V)
			list = append(list, v)
			for _, w := range next(v) {
				add(w)
			}
		}
	}
	return list
}

// frontier is a heap of vertices by key, then number.
type frontier[V ~int32] struct {
	key  []int32
	list []V
}

func (h *frontier[V]) Len() int { return len(h.list) }
func (h *frontier[V]) Less(i, j int) bool {
	a, b := h.list[i], h.list[j]
	return cmp.Or(cmp.Compare(h.key[a], h.key[b]), cmp.Compare(a, b)) < 0
}
func (h *frontier[V]) Swap(i, j int) { h.list[i], h.list[j] = h.list[j], h.list[i] }
func (h *frontier[V]) Push(v any)    { h.list = append(h.list, v.(V)) }
func (h *frontier[V]) Pop() any {
	last := len(h.list) - 1
	v := h.list[last]
	h.list = h.list[:last]
	return v
}

// TopologicalByKey is TopologicalOrder with lower keys first where edges leave a choice: the
// next vertex is the one with the lowest key of those whose predecessors are all listed, of
// equal keys the lowest vertex. It takes O(edges + vertices x log vertices).
func TopologicalByKey[V ~int32](n int, next Next[V], key []int32) []V {
	missing := make([]int32, n) // by vertex: predecessors that are not listed
	for v := range V(n) {
		for _, w := range next(v) {
			missing[w]++
		}
	}
	h := frontier[V]{key: key}
	for v, m := range missing {
		if m == 0 {
			heap.Push(&h, V(v))
		}
	}
	list := make([]V, 0, n)
	for len(h.list) > 0 {
		v := heap.Pop(&h).(V)
		list = append(list, v)
		for _, w := range next(v) {
			if missing[w]--; missing[w] == 0 {
				heap.Push(&h, w)
			}
		}
	}
	return list
}
