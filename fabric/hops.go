package fabric

import (
	"math/bits"
	"sync/atomic"

	"github.com/ibweave/ibweave/internal/par"
)

// Unreachable is the distance between switches that no path joins.
const Unreachable uint8 = 255

// MaxHops is the greatest distance in a HopMatrix, and stands for greater ones.
const MaxHops = Unreachable - 1

// HopMatrix holds one distance, in switch-to-switch links, for each ordered
// pair of switches: 0 on the diagonal, Unreachable where there is no path.
type HopMatrix struct {
	n       int
	dist    []uint8
	tooLong atomic.Bool
}

// TooLong returns true if some path has MaxHops links or more, so
// that its length counts as MaxHops. A subnet manager cannot discover
// such a subnet: a directed route ends after 63 links (IBA 14.2.2).
func (m *HopMatrix) TooLong() bool { return m.tooLong.Load() }

// To returns the distances of all switches to switch t; not to be changed.
func (m *HopMatrix) To(t NodeID) []uint8 { return m.dist[int(t)*m.n : (int(t)+1)*m.n : (int(t)+1)*m.n] }

// Distances returns the length of the shortest path between
// all switches, computed at the first call; not to be changed.
func (f *Fabric) Distances() *HopMatrix {
	f.once.Do(func() { f.distance = f.allDistances() })
	return f.distance
}

// allDistances searches breadth first from 64 switches at a time, one bit each
// (Then et al., The More the Merrier, VLDB 2014). It takes
// O(switches/64 x channels x diameter) word operations, on all CPUs.
// A path of MaxHops links or more counts as MaxHops, see TooLong.
func (f *Fabric) allDistances() *HopMatrix {
	n := f.switches
	m := &HopMatrix{n: n, dist: make([]uint8, n*n)}
	par.EachWith((n+63)/64, func() *hopSearch {
		return &hopSearch{make([]uint64, n), make([]uint64, n), make([]uint64, n)}
	}, func(s *hopSearch, batch int) { f.distances(m, batch*64, s) })
	return m
}

// hopSearch is scratch memory of searches from 64 targets: by switch, a bit for each target.
type hopSearch struct {
	seen, front, grown []uint64
}

// distances fills the rows of the targets [t0, t0+64).
func (f *Fabric) distances(m *HopMatrix, t0 int, s *hopSearch) {
	seen, front, grown := s.seen, s.front, s.grown
	n := m.n
	t1 := min(t0+64, n)
	rows := m.dist[t0*n : t1*n]
	for i := range rows {
		rows[i] = Unreachable
	}
	clear(seen)
	clear(front)
	for t := t0; t < t1; t++ {
		seen[t] = 1 << (t - t0)
		front[t] = seen[t]
		rows[(t-t0)*n+t] = 0
	}
	for level := 1; ; level++ {
		clear(grown)
		for s, w := range front {
			if w == 0 {
				continue
			}
			for _, u := range f.to[f.first[s]:f.first[s+1]] {
				grown[u] |= w
			}
		}
		d := uint8(min(level, int(MaxHops)))
		any := uint64(0)
		for s := range grown {
			w := grown[s] &^ seen[s]
			grown[s] = w
			seen[s] |= w
			any |= w
			for ; w != 0; w &= w - 1 {
				rows[bits.TrailingZeros64(w)*n+s] = d
			}
		}
		if any == 0 {
			return
		}
		if d == MaxHops {
			m.tooLong.Store(true)
		}
		front, grown = grown, front
	}
}
