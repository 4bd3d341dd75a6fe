package multistage

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/internal/short"
)

// TestTwoPhaseExample is golden G-N3: Figure 3.
func TestTwoPhaseExample(t *testing.T) {
	s := short.Must(TwoPhase(4, 5, []int{0, 3, 6, 11, 13}, 4))(t)
	want := &Schedule{Source: 5, Copies: Region{4, 8}, Sends: []Send{{4, 0}, {5, 3}, {6, 6}, {7, 11}, {8, 13}}}
	short.Diff(t, s, want, "schedule")
	var got []string
	for _, x := range s.Sends {
		line := fmt.Sprintf("%d→%d", x.From, x.To)
		for i := 3; i >= 0; i-- {
			line += fmt.Sprintf(" %d:%d→%d", i, InLink(i, x.From, x.To), OutLink(i, x.From, x.To))
		}
		got = append(got, line)
	}
	links := []string{
		"4→0 3:8→8 2:1→0 1:0→0 0:0→0",
		"5→3 3:10→10 2:3→2 1:2→3 0:3→3",
		"6→6 3:12→12 2:5→5 1:5→5 0:6→6",
		"7→11 3:14→15 2:15→14 1:11→11 0:11→11",
		"8→13 3:1→1 2:8→9 1:12→12 0:12→13",
	}
	short.Diff(t, got, links, "links")
	if c, ok := FirstConflict(4, s.Sends); ok {
		t.Errorf("Phase 2 blocks itself: %+v", c)
	}
	if s, err := TwoPhase(4, 5, []int{9, 10, 11}, 4); err != nil || s.Copies != (Region{9, 11}) || s.Sends != nil {
		t.Errorf("destinations 9 to 11: %+v, %v; want them in one pass", s, err)
	}
}

// TestTheorem1 has random multicasts with every placement that makes regions.
func TestTheorem1(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "stages")
		size := 1 << n
		to := rapid.SliceOfNDistinct(rapid.IntRange(0, size-1), 1, size/2+1, rapid.ID[int]).Draw(t, "destinations")
		slices.Sort(to)
		place := rapid.SampledFrom([]Placement{RandomStart, AlignedStart}).Draw(t, "placement")
		count, step := place.Places(n, len(to))
		start := rapid.IntRange(0, count-1).Draw(t, "start") * step
		source := rapid.IntRange(0, size-1).Draw(t, "source")
		s := short.Must(TwoPhase(n, source, to, start))(t)
		var at []int
		for _, h := range Hops(n, source, s.Copies) {
			if h.Stage == 0 {
				at = append(at, h.Out)
			}
		}
		if len(s.Sends) == 0 {
			short.EqualList(t, at, to, "one pass comes")
			return
		}
		var from, got []int
		for _, x := range s.Sends {
			from = append(from, x.From)
			got = append(got, x.To)
		}
		slices.Sort(from)
		if !slices.Equal(at, from) || !slices.Equal(got, to) {
			t.Fatalf("copies at %v, sent on from %v to %v; want %v", at, from, got, to)
		}
		if c, ok := FirstConflict(n, s.Sends); ok || !Concentrated(s.Sends) {
			t.Fatalf("%v: concentrated %v, conflict %+v", s.Sends, Concentrated(s.Sends), c)
		}
	})
}

func TestTwoPhaseRefuses(t *testing.T) {
	for _, tt := range []struct {
		n, source int
		to        []int
		start     int
		want      string
	}{
		{0, 0, []int{0}, 0, "banyan network of 0 stages: want 1 to 12"},
		{3, 8, []int{0}, 0, "source 8: want 0 to 7"},
		{3, 0, nil, 0, "no destinations"},
		{3, 0, []int{3, 1}, 0, "destinations [3 1]: want 0 to 7, ascending, each once"},
		{3, 0, []int{1, 8}, 0, "destinations [1 8]: want 0 to 7, ascending, each once"},
		{3, 0, []int{1, 3}, 7, "start address 7 for 2 copies: region 7-8: want addresses from 0 to 7, the lower one first"},
	} {
		if s, err := TwoPhase(tt.n, tt.source, tt.to, tt.start); s != nil || err == nil || err.Error() != tt.want {
			t.Errorf("%+v: %+v, error %v", tt, s, err)
		}
	}
}

// monotone calls try with all packets that have Property 1: from `active`
// consecutive inputs, beginning at start, to a set of destinations, upwards and
// downwards (for one packet twice the same, as G-N4 counts).
func monotone(n, start, active int, try func([]Send)) {
	for set := range 1 << (1 << n) {
		if bits.OnesCount(uint(set)) != active {
			continue
		}
		var to []int
		for d := range 1 << n {
			if set>>d&1 != 0 {
				to = append(to, d)
			}
		}
		for range 2 {
			sends := make([]Send, active)
			for i, d := range to {
				sends[i] = Send{start + i, d}
			}
			try(sends)
			slices.Reverse(to)
		}
	}
}

// TestProperty1 is golden G-N4: all cases for 4 and 8 processors.
func TestProperty1(t *testing.T) {
	for _, tt := range []struct{ n, cases int }{{2, 86}, {3, 2542}} {
		size := 1 << tt.n
		cases := 0
		for start := range size {
			for active := 1; start+active <= size; active++ {
				monotone(tt.n, start, active, func(sends []Send) {
					cases++
					if c, ok := FirstConflict(tt.n, sends); ok || !Concentrated(sends) {
						t.Errorf("N=%d: %v: Property 1 %v, conflict %+v", size, sends, Concentrated(sends), c)
					}
				})
			}
		}
		short.Equal(t, cases, tt.cases, "N=", size, "cases")
	}
	for _, n := range []int{4, 7} {
		r := rand.New(rand.NewPCG(1, uint64(n)))
		for range 8000 {
			to := r.Perm(1 << n)[:1+r.IntN(1<<n)]
			slices.Sort(to)
			if r.IntN(2) != 0 {
				slices.Reverse(to)
			}
			start := r.IntN(1<<n - len(to) + 1)
			sends := make([]Send, len(to))
			for i, d := range to {
				sends[i] = Send{start + i, d}
			}
			if c, ok := FirstConflict(n, sends); ok {
				t.Fatalf("N=%d: %v: %+v", 1<<n, sends, c)
			}
		}
	}
}

// TestConflicts has packets without Property 1, of which some block each other.
func TestConflicts(t *testing.T) {
	gap := []Send{{0, 0}, {2, 1}}
	if c, ok := FirstConflict(3, gap); !ok || c != (Conflict{Stage: 1, Link: 0, A: 0, B: 1}) || Concentrated(gap) {
		t.Errorf("0→0 and 2→1: %+v, %v; Property 1 %v", c, ok, Concentrated(gap))
	}
	if Concentrated([]Send{{0, 1}, {1, 5}, {2, 3}}) {
		t.Error("1, 5, 3 is monotone")
	}
	blocked := 0
	for a := range 8 {
		for b := range 8 {
			for x := range 8 {
				for y := range 8 {
					if a == b || x == y {
						continue
					}
					c, ok := FirstConflict(3, []Send{{a, x}, {b, y}})
					if !ok {
						continue
					}
					blocked++
					if OutLink(c.Stage, a, x) != c.Link || OutLink(c.Stage, b, y) != c.Link || c.A != 0 || c.B != 1 {
						t.Fatalf("%d→%d and %d→%d: %+v", a, x, b, y, c)
					}
				}
			}
		}
	}
	// Two packets meet when their sources agree in the bits below a stage and
	// their destinations in the bits from it on: from 8*4 pairs of sources that
	// differ in bit 0 first none, from 8*2 in bit 1, 8 in bit 2; to 8 pairs of
	// destinations that differ in bit 0 last, 8*2 in bit 1.
	short.Equal(t, blocked, 8*2*8+8*(8+8*2), "blocked pairs")
}
