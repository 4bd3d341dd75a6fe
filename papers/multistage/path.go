package multistage

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

// Concentrated says whether packets, in their order, have Property 1 of the
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
