package multistage

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/routing/banyan"
)

// Placement is which nodes get the f copies of a multicast packet that Phase 1
// makes. A place is chosen with equal probability among all there are.
type Placement uint8

const (
	// RandomStart takes the nodes s to s+f-1 with s from 0 to N-f: case (A) of the
	// paper. It says that s is selected from all N nodes, but beyond N-f there is
	// no such region (E-N3).
	RandomStart Placement = iota
	// AlignedStart takes an s that is a multiple of the least power of two that is
	// not below f, so that copies are made in the last stages only.
	AlignedStart
	// EarlyCopies is case (B) of the paper, copies made in the first stages: the
	// nodes are N/f apart, which is a cube with the first bits free. f is a power of
	// two, except for the analytic model.
	EarlyCopies
)

var placements = [...]string{RandomStart: "random", AlignedStart: "aligned", EarlyCopies: "early"}

// String is the word for it.
func (p Placement) String() string {
	if int(p) < len(placements) {
		return placements[p]
	}
	return fmt.Sprintf("placement %d", uint8(p))
}

// ParsePlacement reads a word of String.
func ParsePlacement(s string) (Placement, error) {
	if i := slices.Index(placements[:], s); i >= 0 {
		return Placement(i), nil
	}
	return 0, fmt.Errorf("placement %q: want one of %v", s, placements)
}

// Check says whether copies for f destinations can be placed in a network of n
// stages.
func (p Placement) Check(n, f int) error {
	if n < 1 || n > banyan.MaxStages {
		return fmt.Errorf("banyan network of %d stages: want 1 to %d", n, banyan.MaxStages)
	}
	switch {
	case int(p) >= len(placements):
		return fmt.Errorf("%v: want one of %v", p, placements)
	case f < 1 || f > 1<<n:
		return fmt.Errorf("fanout %d: want 1 to the %d nodes of the network", f, 1<<n)
	case p == EarlyCopies && f&(f-1) != 0:
		return fmt.Errorf("fanout %d with %s placement: want a power of two", f, p)
	}
	return nil
}

// Places is how many places there are for f copies among 1<<n nodes, and how far
// they are apart: place k begins at node k*step.
func (p Placement) Places(n, f int) (count, step int) {
	size := 1 << n
	switch p {
	case AlignedStart:
		step = 1 << bits.Len(uint(f-1))
		return size / step, step
	case EarlyCopies:
		return size / f, 1
	}
	return size - f + 1, 1
}

// regionFrom is the region of f nodes from s on.
func regionFrom(s, f int) Region { return Region{s, s + f - 1} }

// cubeFrom is the cube of f nodes, a power of two, the first of which is s.
func cubeFrom(n, s, f int) Cube { return Cube{Fixed: s, Free: 1<<n - (1<<n)/f} }

// Schedule is a multicast in two passes through the network (section 3.1).
type Schedule struct {
	Source int
	Copies Region // Phase 1: where Source sends the packet to
	Sends  []Send // Phase 2: what these nodes send on, in the order of the region
}

// TwoPhase is the two-phase algorithm for a network of n stages. In Phase 1 the
// packet goes to as many consecutive nodes, from start on, as there are
// destinations, which are ascending and without repetition; in Phase 2 the l-th
// of these nodes sends it to the l-th destination. A node that has its own copy
// already sends it to itself all the same, so that both passes look as in the
// paper.
//
// When the destinations are a region, Phase 1 goes there, and there is no
// Phase 2: start is not used then.
//
// The copies of one multicast never block each other (Theorem 1), since those of
// Phase 2 have Property 1. Those of several may (E-N10).
func TwoPhase(n, source int, destinations []int, start int) (*Schedule, error) {
	size := 1 << n
	f := len(destinations)
	if n < 1 || n > banyan.MaxStages {
		return nil, fmt.Errorf("banyan network of %d stages: want 1 to %d", n, banyan.MaxStages)
	}
	if source < 0 || source >= size {
		return nil, fmt.Errorf("source %d: want 0 to %d", source, size-1)
	}
	if f == 0 {
		return nil, fmt.Errorf("no destinations")
	}
	for i, d := range destinations {
		if d < 0 || d >= size || i > 0 && d <= destinations[i-1] {
			return nil, fmt.Errorf("destinations %v: want 0 to %d, ascending, each once", destinations, size-1)
		}
	}
	if r, ok := RegionOf(destinations); ok {
		return &Schedule{Source: source, Copies: r}, nil
	}
	s := &Schedule{Source: source, Copies: regionFrom(start, f), Sends: make([]Send, f)}
	if err := s.Copies.Check(n); err != nil {
		return nil, fmt.Errorf("start address %d for %d copies: %w", start, f, err)
	}
	for l, d := range destinations {
		s.Sends[l] = Send{From: start + l, To: d}
	}
	return s, nil
}

// Send is a unicast packet: from processor From to processor To.
type Send struct{ From, To int }

// InLink is the input link of a stage that a packet from source has when the
// bits above stage of its destinations are those of to: those bits, then the
// bits of source below stage, then bit stage of source (section 3.2, proof of
// Theorem 2). It holds for unicast packets and for each copy of a multicast
// packet.
func InLink(stage, source, to int) int {
	return to>>(stage+1)<<(stage+1) | (source&(1<<stage-1))<<1 | source>>stage&1
}

// OutLink is the output link of a stage that a packet from source to to takes:
// on the element of InLink the port of bit stage of to (destination-tag
// routing).
func OutLink(stage, source, to int) int {
	return InLink(stage, source, to)&^1 | to>>stage&1
}

// Conflict is two packets that want one output link at the same time.
type Conflict struct {
	Stage, Link int
	A, B        int // indices of the packets, A < B
}

// FirstConflict looks for packets that block each other when all are sent at once
// through a network of n stages, at most one from each processor: at the first
// stage that has a conflict the one of the lowest B. It takes O(n x len(sends)).
func FirstConflict(n int, sends []Send) (Conflict, bool) {
	user := make([]int32, 1<<n) // by output link: 1 + index of the packet
	for stage := n - 1; stage >= 0; stage-- {
		clear(user)
		for i, s := range sends {
			link := OutLink(stage, s.From, s.To)
			if user[link] != 0 {
				return Conflict{Stage: stage, Link: link, A: int(user[link]) - 1, B: i}, true
			}
			user[link] = int32(i) + 1
		}
	}
	return Conflict{}, false
}

// Concentrated returns true if packets, in their order, have Property 1 of the
// paper, so that they cannot block each other: their sources are consecutive,
// and their destinations go up all the way or down all the way.
func Concentrated(sends []Send) bool {
	up, down := true, true
	for i := 1; i < len(sends); i++ {
		a, b := sends[i-1], sends[i]
		if b.From != a.From+1 {
			return false
		}
		up = up && a.To < b.To
		down = down && a.To > b.To
	}
	return up || down
}
