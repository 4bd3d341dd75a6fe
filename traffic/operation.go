package traffic

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Operation is a collective operation on data of some size.
type Operation struct {
	// Pattern returns the pattern of n ranks, or why n ranks cannot have one.
	Pattern func(n int) (Pattern, error)
	// Share is the part of the data in one unit of the pattern of n ranks.
	// Data is counted as in nccl-tests: in an all-gather, all that a rank has
	// at the end; in an all-to-all, what it sends.
	Share func(n int) float64

	AllReduce bool // each rank gets the sum of the data of all

	steps func(w *Writer, n int, size int64) // writes the messages step by step; nil sends the pattern at once
}

// maxRanks bounds grids and groups.
const maxRanks = 1 << 20

// Operations names what Parse takes.
const Operations = "allreduce-ring, allreduce-tree, reduce-scatter, all-gather, alltoall[:GROUP], alltoall-bruck, broadcast, broadcast-ring, halo[:AxBxC], shift:BY or permutation[:SEED]"

// Parse reads the name of an operation.
func Parse(name string) (Operation, error) {
	o, err := parse(name)
	o.AllReduce = strings.HasPrefix(name, "allreduce-")
	return o, err
}

func parse(name string) (Operation, error) {
	whole := func(float64) float64 { return 1 }
	once := func(n float64) float64 { return (n - 1) / n } // a rank of a ring sends n-1 of n parts
	kind, rest, has := strings.Cut(name, ":")
	switch name {
	case "allreduce-ring":
		return always(Ring, func(n float64) float64 { return 2 * (n - 1) / n }, func(w *Writer, n int, size int64) { w.ring(n, size, 2*(n-1)) })
	case "reduce-scatter":
		return always(Ring, once, func(w *Writer, n int, size int64) { w.ring(n, size, n-1) })
	case "all-gather":
		return always(Ring, once, (*Writer).gather)
	case "allreduce-tree":
		return always(Tree, func(float64) float64 { return 0.5 }, (*Writer).trees)
	case "alltoall":
		return always(AllToAll, func(n float64) float64 { return 1 / n }, (*Writer).pairwise)
	case "alltoall-bruck":
		return always(Bruck, func(n float64) float64 { return 1 / n }, (*Writer).bruck)
	case "broadcast":
		return always(Broadcast, whole, (*Writer).binomial)
	case "broadcast-ring":
		return always(Chain, whole, (*Writer).chain)
	}
	switch kind {
	case "alltoall":
		return parseGroups(rest)
	case "halo":
		return parseHalo(rest, has)
	case "shift":
		by, err := strconv.ParseInt(rest, 10, 32)
		if err != nil {
			break
		}
		return always(Shift(int(by)), whole, nil)
	case "permutation":
		seed, err := uint64(0), error(nil)
		if has {
			seed, err = strconv.ParseUint(rest, 10, 64)
		}
		if err != nil {
			break
		}
		return Operation{
			Pattern: func(n int) (Pattern, error) { return permutation(n, seed), nil },
			Share:   func(int) float64 { return 1 },
		}, nil
	}
	return Operation{}, fmt.Errorf("pattern %q: want %s", name, Operations)
}

// always makes an operation with pattern p for any number of ranks.
func always(p Pattern, share func(n float64) float64, steps func(w *Writer, n int, size int64)) (Operation, error) {
	return Operation{
		Pattern: func(int) (Pattern, error) { return p, nil },
		Share:   func(n int) float64 { return share(float64(n)) },
		steps:   steps,
	}, nil
}

// parseHalo reads the sides of a grid. If has is false, no grid is given: Dims chooses three sides.
// The data is what a rank sends to one neighbor.
func parseHalo(grid string, has bool) (Operation, error) {
	var dims []int
	product := 1
	for side := range strings.SplitSeq(grid, "x") {
		if !has {
			break
		}
		n, err := strconv.Atoi(side)
		if err != nil || n < 1 || n > maxRanks/product {
			return Operation{}, fmt.Errorf("pattern %q: want halo, or halo:AxBxC with the sides of the grid", "halo:"+grid)
		}
		dims, product = append(dims, n), product*n
	}
	return Operation{
		Pattern: func(n int) (Pattern, error) {
			switch {
			case !has:
				return Halo(Dims(n, 3)), nil
			case n != product:
				return Pattern{}, fmt.Errorf("a grid of %d for %d ranks", product, n)
			}
			return Halo(dims), nil
		},
		Share: func(int) float64 { return 1 },
	}, nil
}

// parseGroups reads the number of consecutive ranks in a group. The data is all that a rank sends.
func parseGroups(ranks string) (Operation, error) {
	size, err := strconv.Atoi(ranks)
	if err != nil || size < 1 || size > maxRanks {
		return Operation{}, fmt.Errorf("pattern %q: want alltoall, or alltoall:GROUP with the number of ranks of a group", "alltoall:"+ranks)
	}
	return Operation{
		Pattern: func(n int) (Pattern, error) {
			if n%size != 0 {
				return Pattern{}, fmt.Errorf("groups of %d ranks for %d ranks", size, n)
			}
			return inGroups(size), nil
		},
		Share: func(int) float64 { return 1 / float64(size) },
		steps: func(w *Writer, n int, data int64) {
			all := w.members
			for first := 0; first < n && !w.full(); first += size {
				w.members = all[first : first+size]
				w.pairwise(size, data)
			}
			w.members = all
		},
	}, nil
}

// inGroups has each rank send to all others of its group.
func inGroups(size int) Pattern {
	return Pattern{AllToAll.Name, func(_, dst int) iter.Seq2[int, int64] {
		return fromRange(dst-dst%size, dst-dst%size+size, dst)
	}}
}

// Shift has rank r send to rank r+by, modulo n.
func Shift(by int) Pattern {
	return fromOne("shift", func(n, dst int) int { return ((dst-by)%n + n) % n })
}

// Cycle draws a cycle through n ranks (Sattolo 1986) and returns, by rank, the next rank on it.
func Cycle(n int, seed uint64) []int {
	to := make([]int, n)
	for i := range to {
		to[i] = i
	}
	rng := rand.New(rand.NewPCG(seed, 0x7065726d))
	for i := n - 1; i > 0; i-- {
		j := rng.IntN(i)
		to[i], to[j] = to[j], to[i]
	}
	return to
}

// permutation has each rank receive from one other, along a cycle.
func permutation(n int, seed uint64) Pattern {
	senders := Cycle(n, seed)
	return fromOne("permutation", func(_, dst int) int { return senders[dst] })
}

// ToStorage has all other ranks send to each of the last few; the data is what a rank
// sends.
func ToStorage(few int) Operation {
	toLast := Pattern{"to-storage", func(n, dst int) iter.Seq2[int, int64] {
		if dst < n-few {
			return fromRange(0, 0, dst)
		}
		return fromRange(0, n-few, dst)
	}}
	op, _ := always(toLast, func(float64) float64 { return 1 / float64(few) }, nil)
	return op
}

// Matrix is a recorded pattern: for each receiver, its senders and how much each sends.
type Matrix struct {
	start  []int // by receiver, and one more: where its part of src begins
	src    []int32
	amount []int64 // in units, by index in src
	unit   float64 // the amount in a unit: a power of 2
}

// Entry is how much a rank sends to another.
type Entry struct {
	Src, Dst int32
	Amount   float64 // 0 or more, finite
}

// matrixBits is the most bits that the greatest amount of a matrix, in units, may have.
const matrixBits = 52

// NewMatrix makes a matrix of n ranks. Entries are in any order; amounts of the same pair add
// up, and amounts from a rank to itself are ignored. Amounts are exact if they are whole and
// below 1 << matrixBits; otherwise they are rounded to 2^-matrixBits of the greatest.
func NewMatrix(n int, entries []Entry) *Matrix {
	sorted := slices.Clone(entries)
	slices.SortFunc(sorted, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Dst, b.Dst), cmp.Compare(a.Src, b.Src), cmp.Compare(a.Amount, b.Amount))
	})
	var pairs []Entry
	whole, greatest := true, 0.0
	for _, e := range sorted {
		k := len(pairs) - 1
		switch {
		case e.Src == e.Dst || e.Amount == 0:
			continue
		case k >= 0 && pairs[k].Src == e.Src && pairs[k].Dst == e.Dst:
			pairs[k].Amount += e.Amount
		default:
			k++
			pairs = append(pairs, e)
		}
		whole = whole && e.Amount == math.Trunc(e.Amount)
		greatest = max(greatest, pairs[k].Amount)
	}
	m := &Matrix{start: make([]int, n+1), unit: 1}
	if _, bits := math.Frexp(greatest); !whole || bits > matrixBits {
		m.unit = math.Ldexp(1, max(bits-matrixBits, -1022))
	}
	for _, e := range pairs {
		if amount := int64(math.Round(e.Amount / m.unit)); amount > 0 {
			m.src, m.amount = append(m.src, e.Src), append(m.amount, amount)
			m.start[e.Dst+1]++
		}
	}
	for i := range n {
		m.start[i+1] += m.start[i]
	}
	return m
}

// Ranks is the number of ranks.
func (m *Matrix) Ranks() int { return len(m.start) - 1 }

// Operation returns the matrix as an operation; the data is the bytes of an amount of 1.
func (m *Matrix) Operation() Operation {
	p := Pattern{"matrix", func(_, dst int) iter.Seq2[int, int64] {
		return func(yield func(int, int64) bool) {
			for k := m.start[dst]; k < m.start[dst+1]; k++ {
				if !yield(int(m.src[k]), m.amount[k]) {
					return
				}
			}
		}
	}}
	return Operation{
		Pattern: func(n int) (Pattern, error) {
			if n != m.Ranks() {
				return Pattern{}, fmt.Errorf("a matrix of %d ranks for %d", m.Ranks(), n)
			}
			return p, nil
		},
		Share: func(int) float64 { return m.unit },
	}
}
