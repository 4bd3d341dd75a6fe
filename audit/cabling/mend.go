package cabling

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
)

// Recabled is one slip of a hand: cables that share ports and differ from the expected
// topology. Pairs of ports are ends of cables.
type Recabled struct {
	// Moves mend it, one after the other, once the surplus cables are out.
	Moves   []Move
	Lacking [][2]fabric.PortID // should be there, and no cable is left for them
	Surplus [][2]fabric.PortID // should not be there, and belong nowhere else
}

// Move takes the plug in port From to port To, or exchanges the plugs in both. The last two
// moves of a cycle of cables are the same exchange.
type Move struct {
	Want, Have [2]fabric.PortID // the cable as it should be, and the one that becomes it
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

// mend is the moves in words, behind a message.
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

// mend finds the moves that turn the cables of a path or cycle of ports into the
// expected ones; its arguments are those of addRecabled. On a path each cable goes where a
// port is free by then, except a cable to a node that is not expected. A cycle of k cables takes
// k-1 exchanges, of the plugs that are at switches where all of one side are. Where both directions
// will do, it is the one that costs less.
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

// mendPath is mend for a path whose first end lacks a cable, or both ends have one too many.
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

// mendCycle is mend for a cycle. From path[0] to path[1] a cable should be.
func mendCycle(path []fabric.PortID, _ bool) (r Recabled) {
	k := len(path) / 2
	for i := range k {
		have := [2]fabric.PortID{path[2*i+1], path[(2*i+2)%len(path)]}
		step := min(i, k-2) // the last exchange puts two cables right
		r.Moves = append(r.Moves, Move{[2]fabric.PortID{path[2*i], path[2*i+1]}, have, path[2*step], path[2*step+2], true})
	}
	return r
}

// cost is how inconvenient moves are: plugs that go to another node, and those at hosts.
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
