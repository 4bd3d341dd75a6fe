package verify

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// channels numbers the channels that leave switches: the i-th of the VLs in
// use, of the port with PortID p, is channel p*vls+i. (Switches are the first
// nodes, so that their ports are the first PortIDs.) A set of the channels of
// one switch is a few words of bits, the first for the first VL of port 1.
type channels struct {
	f     *fabric.Fabric
	vls   int
	vl    []fabric.VL // which these are, ascending
	to    []int32     // by PortID: the switch that the port leads to, or one of those below
	words int         // 64-bit words that hold a bit for each channel of any one switch
}

const (
	toCA      = -1 // or to a router
	toNowhere = -2 // no cable
	toPort0   = -3 // by port 0
)

func newChannels(f *fabric.Fabric, vl ...fabric.VL) *channels {
	n := f.NumSwitches()
	c := &channels{f: f, vls: len(vl), vl: vl, to: make([]int32, f.PortBase(fabric.NodeID(n)))}
	most := 0
	for p := range c.to {
		c.to[p] = toNowhere
		if peer := f.Peer(fabric.PortID(p)); peer != fabric.NoPort {
			c.to[p] = toCA
			if to := f.Owner(peer); f.IsSwitch(to) {
				c.to[p] = int32(to)
			}
		}
		if f.Num(fabric.PortID(p)) == fabric.ManagementPort {
			c.to[p] = toPort0
		}
		most = max(most, int(f.Num(fabric.PortID(p))))
	}
	c.words = max(1, (most*c.vls+63)/64)
	return c
}

// count is the number of channels, those of ports without a cable included.
func (c *channels) count() int { return len(c.to) * c.vls }

// tail is the switch that a channel leaves.
func (c *channels) tail(ch int32) int32 {
	return int32(c.f.Owner(fabric.PortID(int(ch) / c.vls)))
}

// head is where a channel leads to, as in to.
func (c *channels) head(ch int32) int32 { return c.to[int(ch)/c.vls] }

// cabled says whether the port of a channel has a cable.
func (c *channels) cabled(ch int32) bool { return c.head(ch) >= toCA }

// base is the first channel of switch s that can have a cable.
func (c *channels) base(s int32) int32 {
	return (int32(c.f.PortBase(fabric.NodeID(s))) + 1) * int32(c.vls)
}

// bit is a channel's place in a set of the channels of all switches, words
// for each switch: the word, and the bit in it. The channel's port must have
// a cable.
func (c *channels) bit(ch int32) (word int, bit uint64) {
	s := c.tail(ch)
	i := ch - c.base(s)
	return int(s)*c.words + int(i>>6), 1 << (i & 63)
}

// portVL is what a channel is known by.
func (c *channels) portVL(ch int32) (fabric.PortID, fabric.VL) {
	return fabric.PortID(int(ch) / c.vls), c.vl[int(ch)%c.vls]
}

// hop names a channel, and a LID that packets on it are for.
func (c *channels) hop(ch int32, lid fabric.LID) Hop {
	port, vl := c.portVL(ch)
	n := c.f.Owner(port)
	return Hop{Switch: c.f.Node(n).GUID, Name: c.f.Name(n), Port: c.f.Num(port), VL: vl, LID: lid}
}

// dependencyGraph is a channel dependency graph: for each channel the set of channels of
// the switch it leads to that a packet which holds it may wait for.
type dependencyGraph struct {
	*channels
	deps []uint64 // words for each channel; bit i is the channel base(head)+i
	used []bool   // by channel: whether packets take it
}

func newGraph(c *channels) *dependencyGraph {
	return &dependencyGraph{channels: c, deps: make([]uint64, c.count()*c.words), used: make([]bool, c.count())}
}

// copies is a graph of one VL, g, on each of the VLs of c.
func (g *dependencyGraph) copies(c *channels) *dependencyGraph {
	to := newGraph(c)
	for ch := range int32(g.count()) {
		for i := range int32(c.vls) {
			to.used[ch*int32(c.vls)+i] = g.used[ch]
			row := to.row(ch*int32(c.vls) + i)
			for w, set := range g.row(ch) {
				for ; set != 0; set &= set - 1 {
					bit := (w*64+bits.TrailingZeros64(set))*c.vls + int(i)
					row[bit>>6] |= 1 << (bit & 63)
				}
			}
		}
	}
	return to
}

// depends says whether a channel depends on any other.
func (g *dependencyGraph) depends(ch int32) bool {
	for _, set := range g.row(ch) {
		if set != 0 {
			return true
		}
	}
	return false
}

// row is the set of channels that ch depends on.
func (g *dependencyGraph) row(ch int32) []uint64 {
	return g.deps[int(ch)*g.words : (int(ch)+1)*g.words]
}

// has says whether channel a depends on b.
func (g *dependencyGraph) has(a, b int32) bool {
	u := g.head(a)
	if u < 0 || u != g.tail(b) || !g.cabled(b) {
		return false
	}
	i := b - g.base(u)
	return g.row(a)[i>>6]>>(i&63)&1 != 0
}

// dependencies counts the edges.
func (g *dependencyGraph) dependencies() int {
	n := 0
	for _, w := range g.deps {
		n += bits.OnesCount64(w)
	}
	return n
}

// order lists all channels of cables so that each comes after those that depend on it;
// ok is false when a cycle makes that impossible. It is a depth-first search
// that keeps, for each switch, the set of channels not seen yet: the next
// channel to descend into is one AND away, so that the time is
// O(channels x words) however many dependencies there are.
func (g *dependencyGraph) order() (list []int32, ok bool) {
	words := int32(g.words)
	unseen := make([]uint64, g.f.NumSwitches()*g.words)
	open := make([]uint64, len(unseen)) // on the way from the start to here
	cables := 0
	for s := range int32(g.f.NumSwitches()) {
		base := g.base(s)
		for i := range int32(g.f.Node(fabric.NodeID(s)).NumPorts) * int32(g.vls) {
			if g.cabled(base + i) {
				unseen[s*words+i>>6] |= 1 << (i & 63)
				cables++
			}
		}
	}
	list = make([]int32, cables)
	at := cables // list fills from its end
	stack := make([]visit, 0, 64)
	// enter begins the visit of the channel of switch s that has the bit in its
	// word of the sets. It says false when that closes a cycle.
	enter := func(s, word int32, bit uint64) bool {
		ch := g.base(s) + (word-s*words)<<6 + int32(bits.TrailingZeros64(bit))
		unseen[word] &^= bit
		open[word] |= bit
		head := g.head(ch)
		stack = append(stack, visit{ch: ch, head: head, word: word, bit: bit})
		if head >= 0 {
			for i, set := range g.row(ch) {
				if set&open[head*words+int32(i)] != 0 {
					return false
				}
			}
		}
		return true
	}
	for s := range int32(g.f.NumSwitches()) {
		for word := s * words; word < (s+1)*words; word++ {
			for unseen[word] != 0 {
				if !enter(s, word, unseen[word]&-unseen[word]) {
					return nil, false
				}
				for len(stack) > 0 {
					v := &stack[len(stack)-1]
					if word, bit := g.successor(v, unseen); bit != 0 {
						if !enter(v.head, word, bit) {
							return nil, false
						}
						continue
					}
					stack = stack[:len(stack)-1]
					open[v.word] &^= v.bit
					at--
					list[at] = v.ch
				}
			}
		}
	}
	return list, true
}

// visit is a channel that the search of order is at: itself, where it leads, and
// its place in sets of all channels.
type visit struct {
	ch, head int32
	word     int32
	bit      uint64
}

// successor is the place of the first channel in a set that v depends on; bit is
// 0 when there is none.
func (g *dependencyGraph) successor(v *visit, set []uint64) (word int32, bit uint64) {
	if v.head < 0 {
		return 0, 0
	}
	word = v.head * int32(g.words)
	for i, deps := range g.row(v.ch) {
		if deps &= set[word+int32(i)]; deps != 0 {
			return word + int32(i), deps & -deps
		}
	}
	return 0, 0
}

// levels numbers the channels of a topological order: 0 for one that none
// depends on, else one more than the highest of those that depend on it.
func (g *dependencyGraph) levels(order []int32) []int32 {
	level := make([]int32, g.count())
	for _, ch := range order {
		u := g.head(ch)
		if u < 0 {
			continue
		}
		next := level[ch] + 1
		for w, set := range g.row(ch) {
			for ; set != 0; set &= set - 1 {
				d := g.base(u) + int32(w*64+bits.TrailingZeros64(set))
				level[d] = max(level[d], next)
			}
		}
	}
	return level
}

// components are the strongly connected components that hold a cycle, each
// with its channels in ascending order, the one with the lowest channel first
// (Tarjan, Depth-first search and linear graph algorithms, SIAM J. Comput.
// 1972, without recursion). No channel depends on itself, so that these are
// the components of two channels or more.
func (g *dependencyGraph) components() [][]int32 {
	const none = -1
	n := g.count()
	index := make([]int32, n) // order of discovery
	low := make([]int32, n)
	open := make([]bool, n) // on the component stack
	for i := range index {
		index[i] = none
	}
	type frame struct {
		ch   int32
		word int32
		left uint64 // of that word, the channels to look at still
	}
	var frames []frame
	var stack []int32
	var found [][]int32
	next := int32(0)
	enter := func(ch int32) {
		index[ch], low[ch] = next, next
		next++
		open[ch] = true
		stack = append(stack, ch)
		f := frame{ch: ch}
		if g.head(ch) >= 0 {
			f.left = g.row(ch)[0]
		}
		frames = append(frames, f)
	}
	for start := range int32(n) {
		if index[start] != none {
			continue
		}
		enter(start)
		for len(frames) > 0 {
			f := &frames[len(frames)-1]
			u := g.head(f.ch)
			if u >= 0 {
				for f.left == 0 && int(f.word)+1 < g.words {
					f.word++
					f.left = g.row(f.ch)[f.word]
				}
			}
			if f.left != 0 {
				d := g.base(u) + f.word*64 + int32(bits.TrailingZeros64(f.left))
				f.left &= f.left - 1
				if index[d] == none {
					enter(d)
				} else if open[d] {
					low[f.ch] = min(low[f.ch], index[d])
				}
				continue
			}
			ch := f.ch
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
			for _, d := range stack[i:] {
				open[d] = false
			}
			if len(stack)-i > 1 {
				members := slices.Clone(stack[i:])
				slices.Sort(members)
				found = append(found, members)
			}
			stack = stack[:i]
		}
	}
	slices.SortFunc(found, func(a, b []int32) int { return cmp.Compare(a[0], b[0]) })
	return found
}

// cycleBudget bounds the work of one shortestCycle, in channels visited.
const cycleBudget = 1 << 26

// The lengths of the shortest cycles there can be. Two channels depend on each
// other when packets pass a switch twice, which copies of a multicast packet may.
const (
	minUnicastCycle = 3
	minCycle        = 2
)

// sidesChange says whether the switches have two sides so that each of some channels
// leads from one to the other, as in trees and meshes: cycles are even then.
func (g *dependencyGraph) sidesChange(members []int32) bool {
	// A switch is on the side of the one it points to, or on the other one, and so on
	// up to the one that stands for all that are connected.
	n := g.f.NumSwitches()
	to, size, other := make([]int32, n), make([]int32, n), make([]bool, n)
	for s := range to {
		to[s], size[s] = int32(s), 1
	}
	find := func(s int32) (end int32, changed bool) {
		for ; to[s] != s; s = to[s] {
			changed = changed != other[s]
		}
		return s, changed
	}
	for _, ch := range members {
		a, x := find(g.tail(ch))
		b, y := find(g.head(ch))
		switch {
		case a == b && x == y:
			return false
		case a == b:
		default:
			if size[a] > size[b] {
				a, b = b, a
			}
			to[a], other[a] = b, x == y
			size[b] += size[a]
		}
	}
	return true
}

// shortestCycle is a shortest cycle among members, a strongly connected
// component, from its lowest channel on. It searches breadth first from each
// channel in turn, no deeper than can beat the best so far, and leaves a
// channel out once the shortest cycle through it is known. exact is false
// when cycleBudget ran out: then the result is the shortest through the
// channels that were tried.
func (g *dependencyGraph) shortestCycle(members []int32, least, budget int) (cycle []int32, exact bool) {
	step := 1 // by which cycles differ in length
	if g.sidesChange(members) {
		step = 2
		least += least % 2
	}
	left := make([]uint64, g.f.NumSwitches()*g.words) // members not tried
	for _, ch := range members {
		w, bit := g.bit(ch)
		left[w] |= bit
	}
	seen := make([]uint64, len(left))
	depth := make([]int32, g.count()) // of channels in the queue; the start has 1
	parent := make([]int32, g.count())
	deepest := int32(math.MaxInt32) // depth that a channel can close a better cycle from
	var queue []int32
	for _, start := range members {
		if len(cycle) == least {
			return cycle, true
		}
		if budget <= 0 && cycle != nil {
			return cycle, false
		}
		for _, ch := range queue {
			w, _ := g.bit(ch)
			seen[w] = 0
		}
		queue = append(queue[:0], start)
		depth[start] = 1
		tail := g.tail(start)
		startWord, startBit := g.bit(start)
		for at := 0; at < len(queue); at++ {
			ch := queue[at]
			budget--
			u := g.head(ch)
			row := g.row(ch)
			if u == tail && row[startWord-int(u)*g.words]&startBit != 0 {
				cycle = cycle[:0]
				for ; ch != start; ch = parent[ch] {
					cycle = append(cycle, ch)
				}
				cycle = append(cycle, start)
				slices.Reverse(cycle)
				deepest = int32(len(cycle) - step)
				break
			}
			if depth[ch] >= deepest {
				continue
			}
			for w, set := range row {
				i := int(u)*g.words + w
				set &= left[i] &^ seen[i]
				seen[i] |= set
				for ; set != 0; set &= set - 1 {
					d := g.base(u) + int32(w*64+bits.TrailingZeros64(set))
					parent[d], depth[d] = ch, depth[ch]+1
					queue = append(queue, d)
				}
			}
		}
		left[startWord] &^= startBit
	}
	return cycle, true
}
