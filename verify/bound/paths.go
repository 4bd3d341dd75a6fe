package bound

import (
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
)

// ways is the paths that a bound allows.
type ways struct {
	*network
	paths Paths
	order []int32   // by switch: its place in the order, for legal paths
	hops  [][]int32 // by index in targets and switch: channels of each path; nil for any paths
	climb [][]bool  // by index in targets and switch: may send up, for legal paths
}

func newWays(w *network, paths Paths, order []int32) *ways {
	x := &ways{network: w, paths: paths}
	search := graph.NewSearch[fabric.NodeID](w.f.NumSwitches())
	switch paths {
	case ShortestPaths:
		for _, t := range w.targets {
			search.Run(w.f.Neighbors, t)
			x.hops = append(x.hops, slices.Clone(search.Distance))
		}
	case LegalPaths:
		x.order = order
		for _, t := range w.targets {
			hops, climb := findLegal(w.f, order, t)
			x.hops, x.climb = append(x.hops, hops), append(x.climb, climb)
		}
	}
	return x
}

// number is what lengths are: floating point while they are sought, then integers.
type number interface{ int64 | float64 }

// tree is the least lengths of paths to one switch, and scratch of one worker.
type tree[T number] struct {
	*ways
	length []T                  // by channel
	dist   []T                  // by switch
	order  []int32              // switches with a path, each after those that its paths lead to
	rank   []int32              // by switch: its place in order, -1 without a path
	climbs []bool               // by switch: may send up, for legal paths
	heap   graph.Heap[entry[T]] // the nearest first
	first  []int32              // by distance in hops: its part of order
}

func newTree[T number](w *ways, length []T) *tree[T] {
	n := w.f.NumSwitches()
	return &tree[T]{ways: w, length: length, dist: make([]T, n), rank: make([]int32, n), heap: graph.Heap[entry[T]]{Before: entry[T].before}}
}

// grow finds the paths to the i-th target.
func (x *tree[T]) grow(i int) {
	if x.paths == AnyPaths {
		x.growNearest(x.targets[i])
		return
	}
	if x.paths == LegalPaths {
		x.climbs = x.climb[i]
	}
	x.sortByHops(x.hops[i])
	x.growByHops()
}

// sortByHops puts the switches in order of their distance.
func (x *tree[T]) sortByHops(hops []int32) {
	x.first = append(x.first[:0], 0)
	for _, d := range hops {
		if d < 0 {
			continue
		}
		for int(d)+1 >= len(x.first) {
			x.first = append(x.first, 0)
		}
		x.first[d+1]++
	}
	for d := 1; d < len(x.first); d++ {
		x.first[d] += x.first[d-1]
	}
	x.order = slices.Grow(x.order[:0], len(hops))[:x.first[len(x.first)-1]]
	for s, d := range hops {
		x.rank[s] = d // on each path it falls by 1
		if d >= 0 {
			x.order[x.first[d]] = int32(s)
			x.first[d]++
		}
	}
}

// growByHops finds the least lengths among the paths that are all as many channels long.
func (x *tree[T]) growByHops() {
	for k, s := range x.order {
		if k == 0 {
			x.dist[s] = 0
			continue
		}
		least, some := T(0), false
		for c := x.network.first[s]; c < x.network.first[s+1]; c++ {
			if x.onward(s, c) {
				if d := x.dist[x.to[c]] + x.length[c]; !some || d < least {
					least, some = d, true
				}
			}
		}
		x.dist[s] = least
	}
}

// growNearest is Dijkstra's algorithm from switch t backward.
func (x *tree[T]) growNearest(t fabric.NodeID) {
	for s := range x.rank {
		x.rank[s] = -2 // not seen
	}
	x.order = x.order[:0]
	x.heap.Push(entry[T]{0, int32(t)})
	x.dist[t], x.rank[t] = 0, -1
	for x.heap.Len() > 0 {
		v := x.heap.Pop()
		if x.rank[v.at] >= 0 {
			continue
		}
		x.rank[v.at] = int32(len(x.order))
		x.order = append(x.order, v.at)
		for c := x.network.first[v.at]; c < x.network.first[v.at+1]; c++ {
			from, back := x.to[c], x.back[c]
			if x.rank[from] >= 0 {
				continue
			}
			if d := v.dist + x.length[back]; x.rank[from] == -2 || d < x.dist[from] {
				x.dist[from], x.rank[from] = d, -1
				x.heap.Push(entry[T]{d, int32(from)})
			}
		}
	}
	for s := range x.rank {
		x.rank[s] = max(x.rank[s], -1)
	}
}

// entry is a switch that is reached.
type entry[T number] struct {
	dist T
	at   int32
}

func (a entry[T]) before(b entry[T]) bool { return a.dist < b.dist || a.dist == b.dist && a.at < b.at }

// onward says whether packets to the target may go by channel c of switch s: it leads nearer.
func (x *tree[T]) onward(s, c int32) bool {
	to := x.to[c]
	switch x.paths {
	case ShortestPaths:
		return x.rank[to] >= 0 && x.rank[to] == x.rank[s]-1
	case LegalPaths:
		return x.rank[to] >= 0 && x.rank[to] == x.rank[s]-1 && mayStep(x.ways.order, x.climbs, fabric.NodeID(s), to)
	}
	return x.rank[to] >= 0 && x.rank[to] < x.rank[s]
}
