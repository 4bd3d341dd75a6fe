package layered

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/fabric/gen"
	"github.com/ibweave/ibweave/internal/graph"
	"github.com/ibweave/ibweave/internal/short"
)

// hasCycle returns true if the turns of a layer close a cycle.
func hasCycle(l *layer) bool {
	return graph.FirstCycle(len(l.to), func(c int32) (next []int32) {
		for e := l.turn[c]; e < l.turn[c+1]; e++ {
			if l.hasTurn(e) {
				next = append(next, l.first[l.to[c]]+e-l.turn[c])
			}
		}
		return next
	}) != nil
}

// A layer takes a turn exactly when that closes no cycle, also after others were
// removed, and all turns rise in its order.
func TestLayer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		switches := rapid.IntRange(4, 9).Draw(t, "switches")
		f := short.Must(gen.Irregular(gen.IrregularSpec{
			Switches: switches, Degree: 3 + switches%2, Hosts: 4, Seed: rapid.Uint64().Draw(t, "seed"),
		}))(t)
		x := newTurns(f)
		order := make([]int32, len(x.to))
		for c := range order {
			order[c] = int32(c)
		}
		l := newLayer(x, make([]uint16, x.countTurns()), 3, order, 1<<30)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			e := int32(rapid.IntRange(0, x.countTurns()-1).Draw(t, "turn"))
			if rapid.IntRange(0, 9).Draw(t, "what") == 0 {
				l.removeTurn(e)
				continue
			}
			c, d := x.turnEnds(e)
			if x.turnFrom(c, d) != e || x.to[c] != x.from[d] {
				t.Fatalf("turn %d is from channel %d to %d", e, c, d)
			}
			took := l.addTurn(e, c, d)
			l.set[e] |= l.bit
			if closes := hasCycle(l); took == closes {
				t.Fatalf("turn %d: taken %t, closes a cycle %t", e, took, closes)
			}
			if !took {
				l.removeTurn(e)
			}
			for e := range int32(x.countTurns()) {
				if c, d := x.turnEnds(e); l.hasTurn(e) && !l.order.Before(c, d) {
					t.Fatalf("turn %d from %d to %d does not rise", e, c, d)
				}
			}
		}
	})
}
