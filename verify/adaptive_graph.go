package verify

import (
	"math/bits"

	"github.com/ibweave/ibweave/fabric"
)

// waits is a channel dependency graph in the form in which a search adds to it, sets of ports at a
// time. The channel of VL vls[i] that leaves the port with PortID p of a switch is p*len(vls)+i.
// Several goroutines may add to it.
type waits struct {
	*choicePlan
	deps []uint64 // by channel, VL and word: ports of the switch that it leads to
	ends []uint64 // a bit by channel: packets take it and wait for nothing more
}

func newWaits(p *choicePlan) *waits {
	n := int(p.f.PortBase(fabric.NodeID(p.n))) * len(p.vls)
	return &waits{p, make([]uint64, n*len(p.vls)*p.words), make([]uint64, n/64+1)}
}

// row is the channels that a channel depends on.
func (g *waits) row(ch int) []uint64 {
	stride := len(g.vls) * g.words
	return g.deps[ch*stride : (ch+1)*stride]
}

func (g *waits) end(ch int) { addBits(g.ends, ch>>6, 1<<(ch&63)) }

// graph is the dependencies in the form in which cycles are sought.
func (g *waits) graph() *dependencyGraph {
	to := newGraph(newChannels(g.f, g.vls...))
	for ch := range int32(to.count()) {
		row := to.Row(ch)
		for i, set := range g.row(int(ch)) {
			vl, word := i/g.words, i%g.words
			for ; set != 0; set &= set - 1 {
				bit := (word*64+bits.TrailingZeros64(set)-1)*to.vls + vl
				row[bit>>6] |= 1 << (bit & 63)
			}
		}
		to.used[ch] = g.ends[ch>>6]>>(ch&63)&1 != 0 || to.depends(ch)
	}
	return to
}
