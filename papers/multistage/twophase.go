package multistage

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/routing/banyan"
)

// Placement says which nodes get the f copies that Phase 1 makes of
// a multicast packet. All places that it allows are equally likely.
type Placement uint8

const (
	// RandomStart takes the nodes s to s+f-1 with s from 0 to N-f:
	// case (A) of the paper, which selects s from all N nodes; but
	// beyond N-f there is no such region (E-N3).
	RandomStart Placement = iota
	// AlignedStart takes multiples of the least power of two from
	// f on as s, so that only the last stages make copies.
	AlignedStart
	// EarlyCopies is case (B) of the paper: the first stages make
	// the copies. The nodes are N/f apart, a cube with the first
	// bits free. f is a power of two, except for the analytic model.
	EarlyCopies
)

var placements = [...]string{RandomStart: "random", AlignedStart: "aligned", EarlyCopies: "early"}

// String returns random, aligned or early.
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

// Check returns an error if copies for f destinations cannot be placed in a network of n stages.
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

// Places returns how many places there are for f copies among
// 1<<n nodes, and their distance: place k begins at node k*step.
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

func regionFrom(s, f int) Region { return Region{s, s + f - 1} }

// cubeFrom returns the cube of f nodes, a power of two, the first of which is s.
func cubeFrom(n, s, f int) Cube { return Cube{Fixed: s, Free: 1<<n - (1<<n)/f} }

// Schedule is a multicast in two passes through the network (section 3.1).
type Schedule struct {
	Source int
	Copies Region // Phase 1: the nodes that Source sends to
	Sends  []Send // Phase 2: one send of each of these nodes, in the same order
}

// TwoPhase is the two-phase algorithm for a network of n
// stages. destinations are ascending and distinct. In Phase 1
// the packet goes to as many consecutive nodes, from start on;
// in Phase 2 the l-th of these sends it to the l-th
// destination, even if that is itself, so that both passes
// look as in the paper.
//
// If the destinations are a region, Phase 1 goes there; there is no Phase 2, and start is not used.
//
// The copies of one multicast never block each other (Theorem 1), since those
// of Phase 2 have Property 1. Copies of several multicasts may (E-N10).
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

// InLink returns the input link of a stage for a packet from
// source whose destinations have the bits of to above stage:
// those bits, then the bits of source below stage, then bit
// stage of source (section 3.2, proof of Theorem 2). It holds
// for unicast packets and for each copy of a multicast packet.
func InLink(stage, source, to int) int {
	return to>>(stage+1)<<(stage+1) | (source&(1<<stage-1))<<1 | source>>stage&1
}

// OutLink returns the output link of a stage for a packet from
// source to to: at the element of InLink, the port that bit
// stage of to names (destination-tag routing).
func OutLink(stage, source, to int) int {
	return InLink(stage, source, to)&^1 | to>>stage&1
}

// Conflict is two packets that want one output link at the same time.
type Conflict struct {
	Stage, Link int
	A, B        int // indices of the packets, A < B
}

// FirstConflict looks for packets that block each other if all
// are sent at once through a network of n stages, at most one
// from each processor. It returns the conflict with the lowest B
// at the first stage that has one. It takes O(n x len(sends)).
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

// Concentrated returns true if packets, in their order, have Property 1
// of the paper: their sources are consecutive, and their destinations
// all ascend or all descend. Such packets cannot block each other.
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
