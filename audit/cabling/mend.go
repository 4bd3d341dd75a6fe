package cabling

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
)

// Recabled is one slip of a hand: cables that share ports and differ from the expected topology. A
// cable is the pair of its ports.
type Recabled struct {
	// Moves are done in order, once the surplus cables are out.
	Moves   []Move
	Lacking [][2]fabric.PortID // expected cables for which no actual one is left
	Surplus [][2]fabric.PortID // actual cables that no expected one needs
}

// Move takes the plug in port From to port To; if Exchange is set, it swaps the plugs in both.
// The last exchange of a cycle puts two cables right, so its last two Moves are equal.
type Move struct {
	Want, Have [2]fabric.PortID // the expected cable, and the actual one that becomes it
	From, To   fabric.PortID
	Exchange   bool
}

// Text says what to do.
func (m *Move) Text(f *fabric.Fabric) string {
	if m.Exchange {
		return fmt.Sprintf("exchange the plugs in %s and %s", f.PortName(m.From), f.PortName(m.To))
	}
	return fmt.Sprintf("move the plug in %s to %s", f.PortName(m.From), f.PortName(m.To))
}

// mend writes all steps in words, to follow a message.
func (r *Recabled) mend(f *fabric.Fabric) string {
	list := text.Each(r.Surplus, func(x [2]fabric.PortID) string {
		return fmt.Sprintf("take out the cable from %s to %s", f.PortName(x[0]), f.PortName(x[1]))
	})
	for i := range r.Moves {
		if text := r.Moves[i].Text(f); !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	for _, x := range r.Lacking {
		list = append(list, fmt.Sprintf("lay a cable from %s to %s", f.PortName(x[0]), f.PortName(x[1])))
	}
	return "; to mend: " + strings.Join(list, ", then ")
}

// mend finds the moves that turn the cables of a path or cycle of ports into the expected ones; its
// arguments are those of addRecabled. On a path, each cable moves to a port that is free by then,
// or that has a cable to an unexpected node. A cycle of k cables takes k-1 exchanges. Of the two
// directions it takes the one of less cost: plugs at hosts stay if possible.
func (m *comparison) mend(path []fabric.PortID, missing, cycle bool) Recabled {
	path = slices.Clone(path)
	mend := mendPath
	if cycle {
		mend = mendCycle
		if !missing { // begin with a cable that should be
			path = append(path[1:], path[0])
		}
	}
	back := slices.Clone(path)
	slices.Reverse(back)
	if len(path)%2 == 0 { // both ends lack a cable or both have one too many
		one, other := mend(path, missing), mend(back, missing)
		if m.cost(other) < m.cost(one) {
			return other
		}
		return one
	}
	if !missing { // only the far end lacks a cable
		path = back
	}
	return mend(path, true)
}

// mendPath is mend for a path. Its first end lacks a cable if missing is set; else both ends have
// one too many.
func mendPath(path []fabric.PortID, missing bool) (r Recabled) {
	if !missing {
		r.Surplus = append(r.Surplus, [2]fabric.PortID{path[0], path[1]})
		path = path[1:]
	}
	for ; len(path) >= 3; path = path[2:] {
		want, have := [2]fabric.PortID{path[0], path[1]}, [2]fabric.PortID{path[1], path[2]}
		r.Moves = append(r.Moves, Move{Want: want, Have: have, From: path[2], To: path[0]})
	}
	if len(path) == 2 {
		r.Lacking = append(r.Lacking, [2]fabric.PortID{path[0], path[1]})
	}
	return r
}

// mendCycle is mend for a cycle that lacks a cable from path[0] to path[1].
func mendCycle(path []fabric.PortID, _ bool) (r Recabled) {
	k := len(path) / 2
	for i := range k {
		have := [2]fabric.PortID{path[2*i+1], path[(2*i+2)%len(path)]}
		step := min(i, k-2) // the last exchange puts two cables right
		r.Moves = append(r.Moves, Move{[2]fabric.PortID{path[2*i], path[2*i+1]}, have, path[2*step], path[2*step+2], true})
	}
	return r
}

// cost counts the inconvenience of moves: 1 for a plug that goes to another node, more than all of
// those for a plug at a host.
func (m *comparison) cost(r Recabled) (n int) {
	for _, x := range r.Moves {
		if m.f.Owner(x.From) != m.f.Owner(x.To) {
			n++
		}
		for _, p := range [2]fabric.PortID{x.From, x.To} {
			if !m.f.IsSwitch(m.f.Owner(p)) {
				n += len(r.Moves) + 1
			}
		}
	}
	return n
}
