package multipath

import (
	"math/bits"
	"slices"
	"sync/atomic"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/graph"
)

// cdg is a channel dependency graph. The channel of VL vls[i] that leaves the port with PortID
// p of a switch is p*len(vls)+i. Several goroutines may add to it.
type cdg struct {
	*plan
	deps []uint64 // by channel, VL and word: ports of the switch that it leads to
	ends []uint64 // a bit by channel: packets take it and wait for nothing more
}

func newCDG(p *plan) *cdg {
	n := int(p.f.PortBase(fabric.NodeID(p.n))) * len(p.vls)
	return &cdg{p, make([]uint64, n*len(p.vls)*p.words), make([]uint64, n/64+1)}
}

// count is the number of channels, those without a cable included.
func (g *cdg) count() int { return int(g.f.PortBase(fabric.NodeID(g.n))) * len(g.vls) }

// row is what a channel depends on.
func (g *cdg) row(ch int) []uint64 {
	stride := len(g.vls) * g.words
	return g.deps[ch*stride : (ch+1)*stride]
}

// or adds bits to a word that other goroutines may add to. Most are there already.
func or(word *uint64, set uint64) {
	if atomic.LoadUint64(word)&set != set {
		atomic.OrUint64(word, set)
	}
}

func (g *cdg) end(ch int) { or(&g.ends[ch>>6], 1<<(ch&63)) }

// union adds the dependencies of another graph.
func (g *cdg) union(o *cdg) {
	for i, set := range o.deps {
		g.deps[i] |= set
	}
	for i, set := range o.ends {
		g.ends[i] |= set
	}
}

// used says whether packets take a channel. Those that packets wait for have dependencies
// or ends of their own.
func (g *cdg) used(ch int) bool {
	return g.ends[ch>>6]>>(ch&63)&1 != 0 || slices.ContainsFunc(g.row(ch), func(set uint64) bool { return set != 0 })
}

// size counts the channels in use and the dependencies.
func (g *cdg) size() (channels, dependencies int) {
	for ch := range g.count() {
		if g.used(ch) {
			channels++
		}
	}
	for _, set := range g.deps {
		dependencies += bits.OnesCount64(set)
	}
	return channels, dependencies
}

// next lists the channels that one depends on, until the next call.
func (g *cdg) next() graph.Next[int32] {
	var list []int32
	return func(ch int32) []int32 {
		list = list[:0]
		peer := g.f.Peer(fabric.PortID(int(ch) / len(g.vls)))
		if peer == fabric.NoPort {
			return nil
		}
		base := int(g.f.PortBase(g.f.Owner(peer)))
		for i, set := range g.row(int(ch)) {
			vl, word := i/g.words, i%g.words
			for ; set != 0; set &= set - 1 {
				list = append(list, int32((base+word*64+bits.TrailingZeros64(set))*len(g.vls)+vl))
			}
		}
		return list
	}
}

// levels numbers the channels so that dependencies climb; nil if there is a cycle.
func (g *cdg) levels() []int32 {
	order := graph.TopologicalOrder(g.count(), g.next())
	if len(order) < g.count() {
		return nil
	}
	return graph.Levels(g.count(), order, g.next())
}

// loops are the sets of channels that all wait for each other.
func (g *cdg) loops() [][]int32 { return graph.StronglyConnected(g.count(), g.next()) }
