package diff

import (
	"cmp"
	"math/bits"
	"slices"
	"sync"

	"github.com/ibweave/ibweave/fabric"
)

// graphShape numbers channels: VL v of the port with PortID p of a switch is
// channel p*vls+v. What a channel depends on are channels of the switch that
// it leads to, words of bits from VL 0 of that switch's port 0 on.
type graphShape struct {
	vls   int
	words int
	heads []int32 // by PortID: the switch, -1 for none
	first []int32 // by switch: channel of VL 0 of port 0
	count int     // channels
}

func newGraphShape(m *mixture, vls int) graphShape {
	g := graphShape{vls: vls, heads: m.to, first: make([]int32, m.n), count: len(m.to) * vls}
	ports := 1
	for s := range m.n {
		g.first[s] = int32(m.f.PortBase(fabric.NodeID(s))) * int32(vls)
		ports = max(ports, int(m.f.Node(fabric.NodeID(s)).NumPorts)+1)
	}
	g.words = (ports*vls + 63) / 64
	return g
}

// headOf is the switch that a channel leads to, -1 for none.
func (g *graphShape) headOf(ch int32) int32 { return g.heads[int(ch)/g.vls] }

// graph is a channel dependency graph.
type graph struct {
	*graphShape
	deps []uint64 // words for each channel
}

func newGraph(shape *graphShape) *graph {
	return &graph{graphShape: shape, deps: make([]uint64, shape.count*shape.words)}
}

// add makes c depend on e, a channel of the switch that c leads to.
func (g *graph) add(c, e int32) {
	i := int(e - g.first[g.headOf(c)])
	g.deps[int(c)*g.words+i>>6] |= 1 << (i & 63)
}

// join adds the dependencies of another graph.
func (g *graph) join(o *graph) {
	for i, set := range o.deps {
		g.deps[i] |= set
	}
}

// next is the first channel from bit on that ch depends on, as a bit, -1 for
// none.
func (g *graph) next(ch int32, bit int) int {
	for w := bit >> 6; w < g.words; w++ {
		set := g.deps[int(ch)*g.words+w]
		if w == bit>>6 {
			set &= ^uint64(0) << (bit & 63)
		}
		if set != 0 {
			return w<<6 + bits.TrailingZeros64(set)
		}
	}
	return -1
}

// cycles is the strongly connected components that hold a cycle, each ascending,
// by their first channels (Tarjan, SIAM J. Comput. 1972).
func (g *graph) cycles() [][]int32 {
	n := int32(g.count)
	index := make([]int32, n) // 1 + order of discovery
	low := make([]int32, n)
	open := make([]bool, n)
	type frame struct {
		ch  int32
		bit int
	}
	var frames []frame
	var stack []int32
	var found [][]int32
	clock := int32(0)
	for start := range n {
		if index[start] != 0 || g.headOf(start) < 0 {
			continue
		}
		frames = append(frames[:0], frame{start, -1})
		for len(frames) > 0 {
			f := &frames[len(frames)-1]
			ch := f.ch
			if f.bit < 0 {
				clock++
				index[ch], low[ch] = clock, clock
				stack = append(stack, ch)
				open[ch] = true
				f.bit = 0
			}
			if g.headOf(ch) >= 0 {
				if b := g.next(ch, f.bit); b >= 0 {
					f.bit = b + 1
					d := g.first[g.headOf(ch)] + int32(b)
					if index[d] == 0 {
						frames = append(frames, frame{d, -1})
					} else if open[d] {
						low[ch] = min(low[ch], index[d])
					}
					continue
				}
			}
			frames = frames[:len(frames)-1]
			if len(frames) > 0 {
				up := frames[len(frames)-1].ch
				low[up] = min(low[up], low[ch])
			}
			if low[ch] != index[ch] {
				continue
			}
			i := len(stack) - 1
			for stack[i] != ch {
				i--
			}
			if len(stack)-i > 1 || g.selfLoop(ch) {
				members := slices.Clone(stack[i:])
				slices.Sort(members)
				found = append(found, members)
			}
			for _, d := range stack[i:] {
				open[d] = false
			}
			stack = stack[:i]
		}
	}
	slices.SortFunc(found, func(a, b []int32) int { return cmp.Compare(a[0], b[0]) })
	return found
}

// selfLoop says whether a channel depends on itself, as one of a cable from a
// switch to itself can.
func (g *graph) selfLoop(ch int32) bool {
	h := g.headOf(ch)
	if h < 0 {
		return false
	}
	i := int(ch - g.first[h])
	return i >= 0 && i < g.words*64 && g.deps[int(ch)*g.words+i>>6]>>(i&63)&1 != 0
}

// shortest is a short cycle among the members of a component: the shortest
// through one of the first channels that are tried.
func (g *graph) shortest(members []int32) []int32 {
	const tries = 256
	in := make(map[int32]bool, len(members))
	for _, ch := range members {
		in[ch] = true
	}
	var best []int32
	for _, start := range members[:min(tries, len(members))] {
		from := map[int32]int32{}
		queue := []int32{start}
		depth := map[int32]int{start: 1}
	search:
		for at := 0; at < len(queue); at++ {
			ch := queue[at]
			if best != nil && depth[ch] >= len(best) {
				break
			}
			for b := g.next(ch, 0); b >= 0; b = g.next(ch, b+1) {
				d := g.first[g.headOf(ch)] + int32(b)
				if d == start {
					best = best[:0]
					for ; ch != start; ch = from[ch] {
						best = append(best, ch)
					}
					best = append(best, start)
					slices.Reverse(best)
					break search
				}
				if in[d] && depth[d] == 0 {
					from[d], depth[d] = ch, depth[ch]+1
					queue = append(queue, d)
				}
			}
		}
	}
	return best
}

// witnesses finds a LID for each of some dependencies.
type witnesses struct {
	management bool   // packets to and from switches count, too
	channel    []bool // by channel: a dependency of it is looked for
	mu         sync.Mutex
	lid        map[[2]int32]fabric.LID // the lowest LID, 0 for none yet
}

func newWitnesses(shape *graphShape, cycles [][]int32, management bool) *witnesses {
	w := &witnesses{management: management, channel: make([]bool, shape.count), lid: map[[2]int32]fabric.LID{}}
	for _, cycle := range cycles {
		for i, ch := range cycle {
			w.channel[ch] = true
			w.lid[[2]int32{ch, cycle[(i+1)%len(cycle)]}] = 0
		}
	}
	return w
}

// note says that packets for a LID have a dependency.
func (w *witnesses) note(l fabric.LID, c, e int32) {
	if !w.channel[c] {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	key := [2]int32{c, e}
	if was, ok := w.lid[key]; ok && (was == 0 || l < was) {
		w.lid[key] = l
	}
}

// sccScratch is memory for components.
type sccScratch struct {
	index, low, stack, frames []int32
	turn                      []uint8
}

// components numbers the strongly connected components that hold a cycle, of a
// graph with at most two edges from each of n nodes; next has -1 for none. comp
// gets the number by node, -1 for nodes on no cycle.
func (x *sccScratch) components(n int, comp []int32, next func(int32) (a, b int32)) int {
	if len(x.index) < n {
		x.index, x.low, x.turn = make([]int32, n), make([]int32, n), make([]uint8, n)
	}
	clear(x.index)
	clear(x.turn)
	const open = -2
	for s := range comp {
		comp[s] = -1
	}
	count, clock := 0, int32(0)
	x.stack, x.frames = x.stack[:0], x.frames[:0]
	for start := range int32(n) {
		if x.index[start] != 0 {
			continue
		}
		x.frames = append(x.frames, start)
		for len(x.frames) > 0 {
			s := x.frames[len(x.frames)-1]
			if x.index[s] == 0 {
				clock++
				x.index[s], x.low[s] = clock, clock
				x.stack = append(x.stack, s)
				comp[s] = open
			}
			a, b := next(s)
			if x.turn[s] < 2 {
				d := a
				if x.turn[s] == 1 {
					d = b
				}
				x.turn[s]++
				if d >= 0 {
					if x.index[d] == 0 {
						x.frames = append(x.frames, d)
					} else if comp[d] == open {
						x.low[s] = min(x.low[s], x.index[d])
					}
				}
				continue
			}
			x.frames = x.frames[:len(x.frames)-1]
			if len(x.frames) > 0 {
				up := x.frames[len(x.frames)-1]
				x.low[up] = min(x.low[up], x.low[s])
			}
			if x.low[s] != x.index[s] {
				continue
			}
			i := len(x.stack) - 1
			for x.stack[i] != s {
				i--
			}
			number := int32(-1)
			if len(x.stack)-i > 1 || a == s || b == s {
				number = int32(count)
				count++
			}
			for _, d := range x.stack[i:] {
				comp[d] = number
			}
			x.stack = x.stack[:i]
		}
	}
	return count
}
