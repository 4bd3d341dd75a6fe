// Package traffic has the patterns of collective operations: which rank sends to which, and how
// much. It knows no fabric and makes no promise to other modules.
//
// Patterns compute pairs when asked, by receiver, as forwarding tables do.
package traffic

import (
	"iter"
	"maps"
	"math/bits"
	"slices"
)

// Pattern is who sends to whom among ranks 0 to n-1.
type Pattern struct {
	Name string
	// Senders yields the ranks that send to rank dst of n, ascending and each once, and how much each
	// sends, in units of the pattern. No rank sends to itself.
	Senders func(n, dst int) iter.Seq2[int, int64]
}

// On returns Senders with n fixed.
func (p Pattern) On(n int) func(dst int) iter.Seq2[int, int64] {
	return func(dst int) iter.Seq2[int, int64] { return p.Senders(n, dst) }
}

// The patterns.
var (
	// Ring is an all-reduce, reduce-scatter or all-gather along a ring: rank i sends to rank
	// i+1, and the last one to the first.
	Ring = fromOne("ring", func(n, dst int) int { return (dst + n - 1) % n })
	// Tree is an all-reduce by the two binary trees of NCCL. Each carries half of the data up to its
	// root and down again. Except for the roots, a rank is an inner node of at most one tree and a
	// leaf of the other (Sanders, Speck, Träff: Two-tree algorithms for full bandwidth broadcast,
	// reduction and scan, 2009).
	Tree = Pattern{"tree", treeSenders}
	// AllToAll has each rank send to all others.
	AllToAll = Pattern{"all-to-all", func(n, dst int) iter.Seq2[int, int64] { return fromRange(0, n, dst) }}
	// Broadcast is from rank 0 along a binomial tree: a rank receives from the rank whose number is
	// its own without the lowest set bit.
	Broadcast = fromOne("broadcast", func(_, dst int) int { return dst & (dst - 1) })
	// Chain is a broadcast along the ranks: each but the last sends to the next.
	Chain = fromOne("broadcast-ring", func(_, dst int) int { return max(dst-1, 0) })
	// Bruck is an all-to-all in which ranks pass parts on to the ranks 1, 2, 4 and so on places ahead.
	// A unit is the part for one rank.
	Bruck = Pattern{"alltoall-bruck", bruckSenders}
)

// Halo is an exchange with the neighbors in a grid with sides dims, each of which is a ring. Ranks
// count along the last side first; their number is the product of dims.
func Halo(dims []int) Pattern {
	return Pattern{"halo", func(_, dst int) iter.Seq2[int, int64] { return haloSenders(dims, dst) }}
}

// Dims splits n ranks into a grid of some dimensions, as even as the prime factors of n allow, the
// longest side first.
func Dims(n, dimensions int) []int {
	dims := slices.Repeat([]int{1}, dimensions)
	var primes []int
	for p := 2; n > 1; p++ {
		if p*p > n {
			p = n
		}
		for ; n%p == 0; n /= p {
			primes = append(primes, p)
		}
	}
	for _, p := range slices.Backward(primes) {
		dims[slices.Index(dims, slices.Min(dims))] *= p
	}
	slices.Sort(dims)
	slices.Reverse(dims)
	return dims
}

// Patterns lists the patterns of reductions and all-to-alls that work with any number of ranks.
var Patterns = []Pattern{Ring, Tree, AllToAll}

// fromOne has each rank receive from the rank that sender returns; from none, if that is itself.
func fromOne(name string, sender func(n, dst int) int) Pattern {
	return Pattern{name, func(n, dst int) iter.Seq2[int, int64] {
		return func(yield func(int, int64) bool) {
			if src := sender(n, dst); src != dst {
				yield(src, 1)
			}
		}
	}}
}

// fromRange yields the ranks from first to end-1, except dst.
func fromRange(first, end, dst int) iter.Seq2[int, int64] {
	return func(yield func(int, int64) bool) {
		for src := first; src < end; src++ {
			if src != dst && !yield(src, 1) {
				return
			}
		}
	}
}

func bruckSenders(n, dst int) iter.Seq2[int, int64] {
	return func(yield func(int, int64) bool) {
		parts := make(map[int]int64)
		for by := 1; by < n; by *= 2 {
			parts[(dst+n-by)%n] += int64(bruckParts(n, by))
		}
		for _, src := range slices.Sorted(maps.Keys(parts)) {
			if !yield(src, parts[src]) {
				return
			}
		}
	}
}

func haloSenders(dims []int, dst int) iter.Seq2[int, int64] {
	return func(yield func(int, int64) bool) {
		var senders []int
		for i, step := len(dims)-1, 1; i >= 0; i-- {
			at := dst / step % dims[i]
			for _, to := range []int{at + 1, at + dims[i] - 1} {
				if to %= dims[i]; to != at {
					senders = append(senders, dst+(to-at)*step)
				}
			}
			step *= dims[i]
		}
		yieldCounted(senders, yield)
	}
}

// yieldCounted yields each rank once, ascending, and how often it is listed.
func yieldCounted(ranks []int, yield func(int, int64) bool) {
	slices.Sort(ranks)
	for len(ranks) > 0 {
		same := 1
		for same < len(ranks) && ranks[same] == ranks[0] {
			same++
		}
		if !yield(ranks[0], int64(same)) {
			return
		}
		ranks = ranks[same:]
	}
}

// treeSenders yields the neighbors of rank dst in both trees.
func treeSenders(n, dst int) iter.Seq2[int, int64] {
	return func(yield func(int, int64) bool) {
		var senders []int
		for tree := range 2 {
			parent, children := treeNeighbors(n, tree, dst)
			if senders = append(senders, children...); parent != none {
				senders = append(senders, parent)
			}
		}
		yieldCounted(senders, yield)
	}
}

// treeNeighbors returns a rank's parent in one of the two trees, none for the root, and its
// children. The second tree is the first with the ranks reversed or, if their number is odd, moved
// by one place: leaves are at odd places.
func treeNeighbors(n, tree, rank int) (parent int, children []int) {
	place, back := rank, func(place int) int { return place }
	switch {
	case tree == 1 && n%2 == 0:
		place, back = n-1-rank, func(place int) int { return n - 1 - place }
	case tree == 1:
		place, back = (rank+n-1)%n, func(place int) int { return (place + 1) % n }
	}
	parent, children = placeNeighbors(n, place)
	if parent != none {
		parent = back(parent)
	}
	for i, c := range children {
		children[i] = back(c)
	}
	return parent, children
}

// placeNeighbors returns the parent of a place in the first tree, none for place 0, and its
// children. Places number a complete binary tree from left to right: the more low bits are 0, the
// higher a place is. Place 0 is above the top of the tree. Places from n on are missing; places
// below a missing one move up.
func placeNeighbors(n, place int) (parent int, children []int) {
	low := place & -place
	if place == 0 {
		if n > 1 {
			children = append(children, 1<<(bits.Len(uint(n-1))-1))
		}
		return none, children
	}
	parent = place&^low | low<<1
	if parent >= n {
		parent = place &^ low
	}
	if low > 1 {
		children = append(children, place-low/2)
	}
	for step := low / 2; step > 0; step /= 2 {
		if place+step < n {
			return parent, append(children, place+step)
		}
	}
	return parent, children
}
