package graph

import (
	"cmp"
	"slices"

	"github.com/ibweave/ibweave/internal/text"
)

// BestFirst lists all vertices of an undirected graph. The list
// grows along edges: the next vertex is the one with the lowest key
// among the neighbours of those listed, of equal keys the lowest
// vertex. If there is no neighbour, as at the beginning, it is the
// lowest of all that are left. It takes O(edges x log vertices).
func BestFirst[V ~int32](n int, next Next[V], key []int32) []V {
	h := byKey[V](key)
	starts := text.Numbers[V](n)
	slices.SortStableFunc(starts, func(a, b V) int { return cmp.Compare(key[a], key[b]) })
	seen := make([]bool, n)
	list := make([]V, 0, n)
	add := func(v V) {
		if !seen[v] {
			seen[v] = true
			h.Push(v)
		}
	}
	for _, start := range starts {
		for add(start); h.Len() > 0; {
			v := h.Pop()
			list = append(list, v)
			for _, w := range next(v) {
				add(w)
			}
		}
	}
	return list
}

// Heap gives out its elements in order: a before b if Before(a, b)
// is true. If neither is before the other, their order is arbitrary.
type Heap[E any] struct {
	Before func(a, b E) bool
	list   []E
}

// byKey returns a heap of vertices by key, then number.
func byKey[V ~int32](key []int32) *Heap[V] {
	return &Heap[V]{Before: func(a, b V) bool { return key[a] < key[b] || key[a] == key[b] && a < b }}
}

// Len returns the number of elements.
func (h *Heap[E]) Len() int { return len(h.list) }

// First returns the element that Pop takes out next.
func (h *Heap[E]) First() E { return h.list[0] }

// Push adds an element. O(log elements).
func (h *Heap[E]) Push(e E) {
	i := len(h.list)
	h.list = append(h.list, e)
	for ; i > 0 && h.Before(e, h.list[(i-1)/2]); i = (i - 1) / 2 {
		h.list[i] = h.list[(i-1)/2]
	}
	h.list[i] = e
}

// Pop takes out and returns the first element; there must be one. O(log elements).
func (h *Heap[E]) Pop() E {
	first, n := h.list[0], len(h.list)-1
	e := h.list[n]
	h.list = h.list[:n]
	for i, k := 0, 1; n > 0; i, k = k, 2*k+1 {
		if k+1 < n && h.Before(h.list[k+1], h.list[k]) {
			k++
		}
		if k >= n || !h.Before(h.list[k], e) {
			h.list[i] = e
			break
		}
		h.list[i] = h.list[k]
	}
	return first
}

// TopologicalByKey is TopologicalOrder that takes lower keys first: the next
// vertex has the lowest key of those whose predecessors are all listed, of
// equal keys the lowest vertex. It takes O(edges + vertices x log vertices).
func TopologicalByKey[V ~int32](n int, next Next[V], key []int32) []V {
	missing := make([]int32, n) // by vertex: predecessors that are not listed
	for v := range V(n) {
		for _, w := range next(v) {
			missing[w]++
		}
	}
	h := byKey[V](key)
	for v, m := range missing {
		if m == 0 {
			h.Push(V(v))
		}
	}
	list := make([]V, 0, n)
	for h.Len() > 0 {
		v := h.Pop()
		list = append(list, v)
		for _, w := range next(v) {
			if missing[w]--; missing[w] == 0 {
				h.Push(w)
			}
		}
	}
	return list
}
