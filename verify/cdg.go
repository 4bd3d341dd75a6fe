package verify

import (
	"cmp"
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
)

// channels numbers the channels that leave switches: port p, by PortID, with
// the i-th VL in use is channel p*vls+i. (Switches are the first nodes, so
// their ports are the first PortIDs.) A set of channels of one switch is a
// few words of bits; the first bit is for the first VL of port 1.
type channels struct {
	f     *fabric.Fabric
	vls   int
	vl    []fabric.VL // the VLs in use, ascending
	to    []int32     // by PortID: the switch at the other end, or toCA and so on
	heads []int32     // by channel: the first channel of the switch at its end, -1 for none
	words int         // words of a set of channels of one switch
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

// tail returns the switch that a channel leaves.
func (c *channels) tail(ch int32) int32 {
	return int32(c.f.Owner(fabric.PortID(int(ch) / c.vls)))
}

// head returns where a channel leads, as in to.
func (c *channels) head(ch int32) int32 { return c.to[int(ch)/c.vls] }

// cabled returns true if the port of a channel has a cable.
func (c *channels) cabled(ch int32) bool { return c.head(ch) >= toCA }

// base returns the first channel of switch s that can have a cable.
func (c *channels) base(s int32) int32 {
	return (int32(c.f.PortBase(fabric.NodeID(s))) + 1) * int32(c.vls)
}

// bit returns the word and the bit of a channel in a set of the channels of
// all switches, which has c.words words for each switch. The channel's port
// must have a cable.
func (c *channels) bit(ch int32) (word int, bit uint64) {
	s := c.tail(ch)
	i := ch - c.base(s)
	return int(s)*c.words + int(i>>6), 1 << (i & 63)
}

func (c *channels) portVL(ch int32) (fabric.PortID, fabric.VL) {
	return fabric.PortID(int(ch) / c.vls), c.vl[int(ch)%c.vls]
}

// hop returns a channel as a Hop, with a LID of packets on it.
func (c *channels) hop(ch int32, lid fabric.LID) Hop {
	port, vl := c.portVL(ch)
	h := HopOf(c.f, port)
	h.VL, h.LID = vl, lid
	return h
}

// dependencyGraph is a channel dependency graph. For each channel it has the set of channels, at
// the switch where the channel ends, for which a packet may wait while it holds the channel.
type dependencyGraph struct {
	*channels
	graph.Rows
	used []bool // by channel: whether packets take it
}

func newGraph(c *channels) *dependencyGraph {
	return &dependencyGraph{c, graph.NewRows(c.heads, c.words*64), make([]bool, c.count())}
}

// sharedGraph is a dependency graph to which several goroutines add.
type sharedGraph struct {
	*dependencyGraph
	taken []uint64 // a bit by channel: packets take it, even if no dependency shows it
}

func newSharedGraph(c *channels) *sharedGraph {
	return &sharedGraph{newGraph(c), make([]uint64, c.count()/64+1)}
}

// take records that packets take a channel.
func (g *sharedGraph) take(ch int) { addBits(g.taken, ch>>6, 1<<(ch&63)) }

// depend records that packets hold channel ch while they wait for a channel of the switch where ch
// ends, given by its bit in the row of ch.
func (g *sharedGraph) depend(ch, bit int) { addBits(g.Bits, ch*g.words+bit>>6, 1<<(bit&63)) }

// finish returns the graph, with used set.
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

// copies returns graph g, of one VL, repeated on each of the VLs of c.
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

// port returns the first channel of a channel's port.
func (g *dependencyGraph) port(ch int32) int32 { return ch - ch%int32(g.vls) }

// union adds the dependencies of another graph of the same channels.
func (g *dependencyGraph) union(o *dependencyGraph) {
	g.Union(&o.Rows)
	for ch, used := range o.used {
		g.used[ch] = g.used[ch] || used
	}
}

// order lists the channels of cables so that each comes after those that depend on
// it; ok is false if a cycle makes that impossible. It is a depth-first search
// with sets of channels as bits: one AND finds the next channels to visit, so it
// takes O(channels x words). graph.TopologicalOrder would look at every
// dependency, in a fat tree some 50 a channel.
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

// first returns the lowest channel of a set, as bit has it,
// on which ch depends; -1 if there is none.
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

// components returns the strongly connected components with a cycle, as lists
// of channels, ascending; the one with the lowest channel comes first.
func (g *dependencyGraph) components() [][]int32 {
	return graph.StronglyConnected(g.count(), g.Next())
}

// cycleBudget bounds the channels that one shortestCycle visits.
const cycleBudget = 1 << 26

// Least lengths of cycles. Two channels depend on each other if packets pass
// a switch twice, which only copies of multicast packets may do.
const (
	minUnicastCycle = 3
	minCycle        = 2
)

// shortestCycle returns a shortest cycle in a strongly connected component,
// beginning with its lowest channel; exact is false if the budget ran out.
func (g *dependencyGraph) shortestCycle(members []int32, least, budget int) (cycle []int32, exact bool) {
	return graph.ShortestCycle(members, g.Next(), least, budget)
}

// NumberedChannel is a channel, a VL of a cable in one direction, with its number.
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

// certificateProof has the data for a Certificate.
type certificateProof struct {
	management, multicast bool

	graph   *dependencyGraph
	order   []int32           // channels, each after those that depend on it
	fromCAs []NumberedChannel // channels that leave CAs and routers
}
