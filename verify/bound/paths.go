package bound

import (
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
)

// ways has the paths that a bound allows.
type ways struct {
	*network
	paths   Paths
	order   []int32  // by switch: its place in the order, for legal paths
	allowed [][]bool // by index in targets, by channel; nil for any paths
}

func newWays(w *network, paths Paths, order []int32) *ways {
	x := &ways{network: w, paths: paths, order: order}
	if paths == AnyPaths {
		return x
	}
	search := graph.NewSearch[fabric.NodeID](w.f.NumSwitches())
	for _, t := range w.targets {
		allowed := make([]bool, len(w.port))
		if paths == LegalPaths {
			legal := LegalPorts(w.f, order, t)
			for c, p := range w.port {
				allowed[c] = legal[p]
			}
		} else {
			search.Run(w.f.Neighbors, t)
			for c, s := range w.from {
				allowed[c] = search.Distance[s] == search.Distance[w.to[c]]+1
			}
		}
		x.allowed = append(x.allowed, allowed)
	}
	return x
}

// number is the type of lengths: float64 while they are sought, then int64.
type number interface{ int64 | float64 }

// tree has the shortest paths to one target; each worker has one.
type tree[T number] struct {
	*ways
	length  []T                  // by channel
	allowed []bool               // by channel; nil for all
	dist    []T                  // by switch
	hops    []int32              // by switch: channels of its path, the fewest of least length
	order   []int32              // switches with a path, the nearest first
	rank    []int32              // by switch: its place in order, -1 without a path
	heap    graph.Heap[entry[T]] // nearest first
}

func newTree[T number](w *ways, length []T) *tree[T] {
	n := w.f.NumSwitches()
	return &tree[T]{ways: w, length: length, dist: make([]T, n), hops: make([]int32, n), rank: make([]int32, n), heap: graph.Heap[entry[T]]{Before: entry[T].before}}
}

// grow finds the paths to target i, by Dijkstra's algorithm backward from it.
func (x *tree[T]) grow(i int) {
	t := x.targets[i]
	if x.ways.allowed != nil {
		x.allowed = x.ways.allowed[i]
	}
	for s := range x.rank {
		x.rank[s] = -2 // not seen
	}
	x.order = x.order[:0]
	x.heap.Push(entry[T]{0, 0, int32(t)})
	x.dist[t], x.hops[t], x.rank[t] = 0, 0, -1
	for x.heap.Len() > 0 {
		v := x.heap.Pop()
		if x.rank[v.at] >= 0 {
			continue
		}
		x.rank[v.at] = int32(len(x.order))
		x.order = append(x.order, v.at)
		for c := x.network.first[v.at]; c < x.network.first[v.at+1]; c++ {
			from, back := x.to[c], x.back[c]
			if x.rank[from] >= 0 || x.allowed != nil && !x.allowed[back] {
				continue
			}
			e := entry[T]{v.dist + x.length[back], v.hops + 1, int32(from)}
			if x.rank[from] == -2 || e.before(entry[T]{x.dist[from], x.hops[from], e.at}) {
				x.dist[from], x.hops[from], x.rank[from] = e.dist, e.hops, -1
				x.heap.Push(e)
			}
		}
	}
	for s := range x.rank {
		x.rank[s] = max(x.rank[s], -1)
	}
}

// entry is a switch and how it was reached.
type entry[T number] struct {
	dist T
	hops int32
	at   int32
}

func (a entry[T]) before(b entry[T]) bool {
	return a.dist < b.dist || a.dist == b.dist && (a.hops < b.hops || a.hops == b.hops && a.at < b.at)
}

// onward returns true if packets to the target may take channel c of switch s: it is allowed, and
// leads to a switch that is nearer by length, or equally near and nearer by number of channels.
func (x *tree[T]) onward(s, c int32) bool {
	to := x.to[c]
	return x.rank[to] >= 0 && x.rank[to] < x.rank[s] && (x.allowed == nil || x.allowed[c])
}
