package verify

import (
	"cmp"
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
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
	heads []int32     // by channel: the first channel of the switch that it leads to, -1 for none
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
	for _, to := range c.to {
		base := int32(-1)
		if to >= 0 {
			base = c.base(to)
		}
		for range c.vls {
			c.heads = append(c.heads, base)
		}
	}
	return c
}

// count returns the number of channels, including those of ports without a cable.
func (c *channels) count() int { return len(c.to) * c.vls }

// tail is the switch that a channel leaves.
func (c *channels) tail(ch int32) int32 {
	return int32(c.f.Owner(fabric.PortID(int(ch) / c.vls)))
}

// head is where a channel leads to, as in to.
func (c *channels) head(ch int32) int32 { return c.to[int(ch)/c.vls] }

// cabled returns true if the port of a channel has a cable.
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

// portVL returns the port and the VL of a channel.
func (c *channels) portVL(ch int32) (fabric.PortID, fabric.VL) {
	return fabric.PortID(int(ch) / c.vls), c.vl[int(ch)%c.vls]
}

// hop names a channel, and a LID that packets on it are for.
func (c *channels) hop(ch int32, lid fabric.LID) Hop {
	port, vl := c.portVL(ch)
	h := HopOf(c.f, port)
	h.VL, h.LID = vl, lid
	return h
}

// dependencyGraph is a channel dependency graph: for each channel the set of channels of
// the switch it leads to that a packet which holds it may wait for.
type dependencyGraph struct {
	*channels
	graph.Rows
	used []bool // by channel: whether packets take it
}

func newGraph(c *channels) *dependencyGraph {
	return &dependencyGraph{c, graph.NewRows(c.heads, c.words*64), make([]bool, c.count())}
}

// sharedGraph is a dependency graph that several goroutines add to.
type sharedGraph struct {
	*dependencyGraph
	taken []uint64 // a bit by channel: packets take it, which need not show in a dependency
}

func newSharedGraph(c *channels) *sharedGraph {
	return &sharedGraph{newGraph(c), make([]uint64, c.count()/64+1)}
}

// take adds that packets take a channel.
func (g *sharedGraph) take(ch int) { addBits(g.taken, ch>>6, 1<<(ch&63)) }

// depend adds that packets hold channel ch while they wait for one of the switch there, which
// has a bit in rows.
func (g *sharedGraph) depend(ch, bit int) { addBits(g.Bits, ch*g.words+bit>>6, 1<<(bit&63)) }

// finish returns what was added.
func (g *sharedGraph) finish() *dependencyGraph {
	for ch := range int32(g.count()) {
		g.used[ch] = g.taken[ch>>6]>>(ch&63)&1 != 0 || g.depends(ch)
	}
	return g.dependencyGraph
}

// addBits adds bits to a word that other workers may add to. Most are there already.
func addBits(set []uint64, i int, bits uint64) {
	if atomic.LoadUint64(&set[i])&bits != bits {
		atomic.OrUint64(&set[i], bits)
	}
}

// copies is a graph of one VL, g, on each of the VLs of c.
func (g *dependencyGraph) copies(c *channels) *dependencyGraph {
	to := newGraph(c)
	for ch := range int32(g.count()) {
		for i := range int32(c.vls) {
			to.used[ch*int32(c.vls)+i] = g.used[ch]
			row := to.Row(ch*int32(c.vls) + i)
			for w, set := range g.Row(ch) {
				for ; set != 0; set &= set - 1 {
					bit := (w*64+bits.TrailingZeros64(set))*c.vls + int(i)
					row[bit>>6] |= 1 << (bit & 63)
				}
			}
		}
	}
	return to
}

// depends returns true if a channel depends on any other.
func (g *dependencyGraph) depends(ch int32) bool {
	return slices.ContainsFunc(g.Row(ch), func(set uint64) bool { return set != 0 })
}

// has returns true if channel a depends on b.
func (g *dependencyGraph) has(a, b int32) bool {
	u := g.head(a)
	return u >= 0 && u == g.tail(b) && g.cabled(b) && g.Has(a, b)
}

// port is the first channel of the port that a channel is of.
func (g *dependencyGraph) port(ch int32) int32 { return ch - ch%int32(g.vls) }

// union adds the dependencies of another graph of the same channels.
func (g *dependencyGraph) union(o *dependencyGraph) {
	g.Union(&o.Rows)
	for ch, used := range o.used {
		g.used[ch] = g.used[ch] || used
	}
}

// order lists the channels of cables so that each comes after those that depend on it; ok
// is false when a cycle makes that impossible. It is a depth-first search with sets of
// channels as bits: one AND finds the next channels to descend into, so it takes O(channels
// x words). graph.TopologicalOrder looks at each of the dependencies, of which a fat tree
// has some 50 for each channel.
func (g *dependencyGraph) order() (list []int32, ok bool) {
	unseen, open := make([]uint64, g.f.NumSwitches()*g.words), make([]uint64, g.f.NumSwitches()*g.words)
	for ch := range int32(g.count()) {
		if g.cabled(ch) {
			word, bit := g.bit(ch)
			unseen[word] |= bit
		}
	}
	list = make([]int32, 0, g.count())
	var stack []int32
	for start := range int32(g.count()) {
		if !g.cabled(start) {
			continue
		}
		if word, bit := g.bit(start); unseen[word]&bit != 0 {
			stack = append(stack, start)
		}
		for len(stack) > 0 {
			ch := stack[len(stack)-1]
			word, bit := g.bit(ch)
			if unseen[word]&bit != 0 {
				unseen[word] &^= bit
				open[word] |= bit
				if g.first(ch, open) >= 0 {
					return nil, false
				}
			}
			if next := g.first(ch, unseen); next >= 0 {
				stack = append(stack, next)
				continue
			}
			stack = stack[:len(stack)-1]
			open[word] &^= bit
			list = append(list, ch)
		}
	}
	slices.Reverse(list)
	return list, true
}

// first is the lowest channel in a set of all channels that ch depends on, or -1.
func (g *dependencyGraph) first(ch int32, set []uint64) int32 {
	u := g.head(ch)
	if u < 0 {
		return -1
	}
	for i, deps := range g.Row(ch) {
		if deps &= set[int(u)*g.words+i]; deps != 0 {
			return g.base(u) + int32(i*64+bits.TrailingZeros64(deps))
		}
	}
	return -1
}

// components are the strongly connected components that hold a cycle, each
// with its channels in ascending order, the one with the lowest channel first.
func (g *dependencyGraph) components() [][]int32 {
	return graph.StronglyConnected(g.count(), g.Next())
}

// cycleBudget bounds the work of one shortestCycle, in channels visited.
const cycleBudget = 1 << 26

// The lengths of the shortest cycles there can be. Two channels depend on each
// other when packets pass a switch twice, which copies of a multicast packet may.
const (
	minUnicastCycle = 3
	minCycle        = 2
)

// shortestCycle is a shortest cycle among members, a strongly connected
// component, from its lowest channel on; exact is false when the budget ran out.
func (g *dependencyGraph) shortestCycle(members []int32, least, budget int) (cycle []int32, exact bool) {
	return graph.ShortestCycle(members, g.Next(), least, budget)
}

// NumberedChannel is a virtual lane of a cable in one direction.
type NumberedChannel struct {
	GUID   fabric.GUID // node that the channel leaves
	Port   fabric.PortNum
	VL     fabric.VL
	Number int32 // from 0 on
}

// Compare orders channels by GUID, port and VL.
func (c NumberedChannel) Compare(d NumberedChannel) int {
	return cmp.Or(cmp.Compare(c.GUID, d.GUID), cmp.Compare(c.Port, d.Port), cmp.Compare(c.VL, d.VL))
}

// certificateProof has the data that a Certificate is made from.
type certificateProof struct {
	management, multicast bool

	graph   *dependencyGraph
	order   []int32           // channels, each after those that depend on it
	fromCAs []NumberedChannel // those that leave CAs and routers
}
