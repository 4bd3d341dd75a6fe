package multistage

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/internal/short"
)

func runWorms(t testing.TB, o WormOptions, worms ...Worm) *WormResult {
	t.Helper()
	r := short.Must(RunWorms(worms, o))(t)
	for a, n := range r.Arrived {
		want := 0
		for _, w := range worms {
			if w.To.Min <= a && a <= w.To.Max {
				want++
			}
		}
		if n > want || n < want && r.Deadlock == nil {
			t.Fatalf("%+v: %d arrived at %d", worms, n, a)
		}
	}
	// A deadlock is a cycle: each waits for the next, the last for the first.
	for i, w := range r.Deadlock {
		if next := r.Deadlock[(i+1)%len(r.Deadlock)]; w.For != next.Worm || w.Worm == w.For {
			t.Fatalf("%+v: no cycle %+v", worms, r.Deadlock)
		}
	}
	if r.Deadlock != nil && len(r.Deadlock) < 2 {
		t.Fatalf("%+v: deadlock without a cycle after %d cycles", worms, r.Cycles)
	}
	return r
}

// TestFigure4 is the first half of golden G-N7: where the two worms of Figure 4
// meet, what each wants there, and which arbitration stops them.
func TestFigure4(t *testing.T) {
	a, b := Worm{1, Region{5, 8}, 0}, Worm{15, Region{7, 12}, 0}
	var meet []string
	for _, x := range Hops(4, a.Source, a.To) {
		for _, y := range Hops(4, b.Source, b.To) {
			if x.Stage == y.Stage && x.In/2 == y.In/2 {
				meet = append(meet, fmt.Sprintf("stage %d SE%d: %d.%d and %d.%d", x.Stage, x.In/2, x.In%2, x.Out%2, y.In%2, y.Out%2))
			}
		}
	}
	want := `
stage 1 SE3: 0.0 and 1.1
stage 1 SE3: 0.1 and 1.1
stage 1 SE5: 0.0 and 1.0
stage 1 SE5: 0.0 and 1.1
stage 0 SE3: 1.0 and 1.1
stage 0 SE3: 1.1 and 1.1
stage 0 SE4: 1.0 and 1.0
stage 0 SE4: 1.0 and 1.1`
	short.Equal(t, strings.Join(meet, "\n"), want[1:], "they meet", "want", want)
	for _, flits := range []int{2, 6, 40} {
		for _, tt := range []struct {
			name  string
			first func(stage, element int) int
			stuck bool
		}{
			{"upper first", nil, false},
			{"lower first", func(int, int) int { return 1 }, false},
			{"1 first at SE3, 15 at SE5", func(stage, e int) int {
				if stage == 1 && e == 5 {
					return 1
				}
				return 0
			}, flits > 2}, // shorter worms end before their links are all taken
			{"15 first at SE3, 1 at SE5", func(stage, e int) int {
				if stage == 1 && e == 3 {
					return 1
				}
				return 0
			}, flits > 2},
		} {
			r := runWorms(t, WormOptions{Stages: 4, Flits: flits, Buffer: 1, First: tt.first}, a, b)
			if (r.Deadlock != nil) != tt.stuck {
				t.Errorf("%d flits, %s: %+v, want deadlock %v", flits, tt.name, r, tt.stuck)
			}
			r = runWorms(t, WormOptions{Stages: 4, Flits: flits, Buffer: flits, First: tt.first}, a, b)
			if r.Deadlock != nil {
				t.Errorf("%d flits and room for them, %s: %+v", flits, tt.name, r)
			}
		}
	}
}

// TestOneWorm sends a worm to every region: with room for two
// flits at each input one leaves in each cycle, and the first one takes a cycle
// for each link.
func TestOneWorm(t *testing.T) {
	for n := 1; n <= 3; n++ {
		for lo := range 1 << n {
			for hi := range 1 << n {
				for source := range 1 << n {
					to := Region{lo, hi}
					if to.Check(n) != nil {
						continue
					}
					if r := runWorms(t, WormOptions{Stages: n, Flits: 5, Buffer: 2}, Worm{source, to, 0}); r.Cycles != n+1+5-1 {
						t.Fatalf("n=%d, from %d to %v: %+v", n, source, to, r)
					}
				}
			}
		}
	}
	// The worms of Figure 4 do not meet when one is long gone.
	o := WormOptions{Stages: 4, Flits: 6, Buffer: 1, First: func(_, e int) int { return e >> 1 & 1 }}
	if r := runWorms(t, o, Worm{1, Region{5, 8}, 0}, Worm{15, Region{7, 12}, 0}); r.Deadlock == nil {
		t.Errorf("together: %+v", r)
	}
	if r := runWorms(t, o, Worm{1, Region{5, 8}, 0}, Worm{15, Region{7, 12}, 100}); r.Deadlock != nil || r.Cycles <= 100 {
		t.Errorf("one after the other: %+v", r)
	}
}

// TestThreeWorms is the counterexample to Theorem 2 in golden G-N7.
func TestThreeWorms(t *testing.T) {
	worms := []Worm{{1, Region{1, 2}, 0}, {2, Region{1, 2}, 0}, {0, Region{0, 0}, 0}}
	r := runWorms(t, WormOptions{Stages: 2, Flits: 6, Buffer: 1}, worms...)
	// The worm from 2 has output 2 and waits for 1, the worm from 1 the other way
	// round.
	short.EqualList(t, r.Deadlock, []Wait{{Worm: 0, For: 1, Stage: 0, Link: 2}, {Worm: 1, For: 0, Stage: 0, Link: 1}}, r)
	for buffer := 1; buffer <= 7; buffer++ {
		for _, two := range [][]Worm{worms[:2], worms[1:], {worms[0], worms[2]}} {
			if r := runWorms(t, WormOptions{Stages: 2, Flits: 6, Buffer: buffer}, two...); r.Deadlock != nil {
				t.Errorf("%+v, buffers of %d: %+v", two, buffer, r)
			}
		}
	}
	if r := runWorms(t, WormOptions{Stages: 2, Flits: 6, Buffer: 6}, worms...); r.Deadlock != nil {
		t.Errorf("room for worms: %+v", r)
	}
}

// TestThreeWormsExhaustively has every two worms to two destinations with a third
// one to one, of networks of 4 and 8 (G-N7).
func TestThreeWormsExhaustively(t *testing.T) {
	for _, tt := range short.Part(1, []struct{ n, all, stuck int }{{2, 432, 8}, {3, 65856, 288}}) {
		size := 1 << tt.n
		all, stuck := 0, 0
		eachThreeWorms(size, func(worms ...Worm) {
			all++
			if runWorms(t, WormOptions{Stages: tt.n, Flits: 6, Buffer: 1}, worms...).Deadlock == nil {
				return
			}
			stuck++
			if r := runWorms(t, WormOptions{Stages: tt.n, Flits: 6, Buffer: 6}, worms...); r.Deadlock != nil {
				t.Errorf("%+v with room for them: %+v", worms, r)
			}
		})
		if all != tt.all || stuck != tt.stuck {
			t.Errorf("N=%d: %d of %d deadlock, want %d of %d", size, stuck, all, tt.stuck, tt.all)
		}
	}
}

// eachThreeWorms makes all threes of worms from different processors, two to two
// destinations and one to one.
func eachThreeWorms(size int, try func(worms ...Worm)) {
	for a := range size {
		for b := a + 1; b < size; b++ {
			for c := range size {
				if c == a || c == b {
					continue
				}
				for k := range (size - 1) * (size - 1) * size {
					x, y, z := k/size/(size-1), k/size%(size-1), k%size
					try(Worm{a, Region{x, x + 1}, 0}, Worm{b, Region{y, y + 1}, 0}, Worm{c, Region{z, z}, 0})
				}
			}
		}
	}
}

// randomWorms are k worms from different processors of 16 to random regions.
func randomWorms(r *rand.Rand, k, maxStart int) []Worm {
	var worms []Worm
	for _, source := range r.Perm(16)[:k] {
		a, b := r.IntN(16), r.IntN(16)
		worms = append(worms, Worm{source, Region{min(a, b), max(a, b)}, r.IntN(maxStart + 1)})
	}
	return worms
}

// TestRandomWorms is the rest of golden G-N7: two worms never deadlock with the
// upper input link first, more of them often, and none when there is room for
// them.
func TestRandomWorms(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 0))
	for range short.Of(10000, 500) * *trials {
		worms := randomWorms(r, 2, 12)
		if x := runWorms(t, WormOptions{Stages: 4, Flits: 6, Buffer: 1 + r.IntN(6)}, worms...); x.Deadlock != nil {
			t.Fatalf("%+v: %+v", worms, x)
		}
	}
	// Of 6,000 each the reference has 493 and 1503.
	for k, want := range map[int]float64{3: 493. / 6000, 4: 1503. / 6000} {
		stuck, all := 0, short.Of(3000, 400)**trials
		for range all {
			worms := randomWorms(r, k, 0)
			if runWorms(t, WormOptions{Stages: 4, Flits: 6, Buffer: 1}, worms...).Deadlock != nil {
				stuck++
			}
			if x := runWorms(t, WormOptions{Stages: 4, Flits: 6, Buffer: 6}, worms...); x.Deadlock != nil {
				t.Fatalf("%+v with room for them: %+v", worms, x)
			}
		}
		if part := float64(stuck) / float64(all); !near(part, want, 0.3*want) {
			t.Errorf("%d worms: %d of %d deadlock, the reference has %.3f", k, stuck, all, want)
		}
	}
}

func TestWormsRefuse(t *testing.T) {
	for _, tt := range []struct {
		o     WormOptions
		worms []Worm
		want  string
	}{
		{WormOptions{Stages: 0, Flits: 1, Buffer: 1}, nil, "banyan network of 0 stages: want 1 to 12"},
		{WormOptions{Stages: 2, Flits: 0, Buffer: 1}, nil, "0 flits, buffers of 1: want at least 1"},
		{WormOptions{Stages: 2, Flits: 1, Buffer: 0}, nil, "1 flits, buffers of 0: want at least 1"},
		{WormOptions{Stages: 2, Flits: 1, Buffer: 1}, []Worm{{1, Region{0, 0}, 0}, {1, Region{0, 0}, 0}}, "worm 1 from processor 1: want 0 to 3, each once"},
		{WormOptions{Stages: 2, Flits: 1, Buffer: 1}, []Worm{{4, Region{0, 0}, 0}}, "worm 0 from processor 4: want 0 to 3, each once"},
		{WormOptions{Stages: 2, Flits: 1, Buffer: 1}, []Worm{{1, Region{0, 4}, 0}}, "worm 0: region 0-4: want addresses from 0 to 3, the lower one first"},
	} {
		if r, err := RunWorms(tt.worms, tt.o); r != nil || err == nil || err.Error() != tt.want {
			t.Errorf("%+v, error %v, want %s", r, err, tt.want)
		}
	}
}

// stucks is RunWorms with buffers of one flit and all worms from cycle 0, written from the
// paper and without the code that it is compared with: of each worm it keeps how many flits have
// crossed each link of its tree. It tells whether the worms wait for each other for ever.
func stucks(n, flits int, take Taking, worms []Worm) bool {
	type link struct{ stage, number int } // into the stage; -1 leads to a node
	type branch struct {
		worm int
		from link
		to   []link
	}
	into := func(stage, source, to int) link {
		if stage < 0 {
			return link{-1, to}
		}
		number := 0
		for bit := n - 1; bit > stage; bit-- {
			number = 2*number + to/(1<<bit)%2
		}
		for bit := stage - 1; bit >= 0; bit-- {
			number = 2*number + source/(1<<bit)%2
		}
		return link{stage, 2*number + source/(1<<stage)%2}
	}
	crossed := make([]map[link]int, len(worms))
	var branches []branch
	for w, worm := range worms {
		crossed[w] = map[link]int{}
		seen := map[link]bool{}
		for stage := n - 1; stage >= 0; stage-- {
			for a := worm.To.Min; a <= worm.To.Max; a++ {
				from, to := into(stage, worm.Source, a), into(stage-1, worm.Source, a)
				if seen[to] {
					continue
				}
				seen[to] = true
				if k := len(branches) - 1; k >= 0 && branches[k].worm == w && branches[k].from == from {
					branches[k].to = append(branches[k].to, to)
				} else {
					branches = append(branches, branch{w, from, []link{to}})
				}
			}
		}
	}
	held := map[link]int{} // worm + 1
	for {
		// What is in the buffers behind links, when the cycle begins.
		full := map[link]bool{}
		left := 0
		for _, b := range branches {
			least := flits
			for _, to := range b.to {
				least = min(least, crossed[b.worm][to])
			}
			full[b.from] = full[b.from] || crossed[b.worm][b.from] > least
			left += flits - least
		}
		if left == 0 {
			return false
		}
		for lower := range 2 { // inputs
			for _, b := range branches {
				free := true
				for _, to := range b.to {
					free = free && held[to] == 0 && crossed[b.worm][to] == 0
				}
				if b.from.number%2 != lower || crossed[b.worm][b.from] == 0 || take != Greedy && !free {
					continue
				}
				for _, to := range b.to {
					if held[to] == 0 && crossed[b.worm][to] == 0 {
						held[to] = b.worm + 1
					}
				}
			}
		}
		type move struct {
			worm int
			over link
		}
		var moves []move
		for _, b := range branches {
			x := crossed[b.worm]
			if source := into(n-1, worms[b.worm].Source, 0); b.from == source && x[source] < flits && !full[source] {
				moves = append(moves, move{b.worm, source})
			}
			var some []move
			for _, to := range b.to {
				if held[to] == b.worm+1 && x[b.from] > x[to] && !(to.stage >= 0 && full[to]) {
					some = append(some, move{b.worm, to})
				}
			}
			if take != LockStep || len(some) == len(b.to) {
				moves = append(moves, some...)
			}
		}
		if moves == nil {
			return true
		}
		for _, m := range moves {
			crossed[m.worm][m.over]++
			if crossed[m.worm][m.over] == flits && held[m.over] == m.worm+1 {
				held[m.over] = 0
			}
		}
	}
}

// TestTakings has theorem 2 under three ways to take outputs: the printed counterexample and its
// like among all threes of a network of 4 deadlock with the first one only, and of random worms in
// a network of 16 each way has the deadlocks that another program finds.
func TestTakings(t *testing.T) {
	both := func(n int, take Taking, worms []Worm) bool {
		t.Helper()
		stuck := runWorms(t, WormOptions{Stages: n, Flits: 6, Buffer: 1, Take: take}, worms...).Deadlock != nil
		short.MustEqual(t, stucks(n, 6, take, worms), stuck, takings[take], worms, "deadlock", "by another program")
		return stuck
	}
	for take, want := range map[Taking]int{Greedy: 8, Atomic: 0, LockStep: 0} {
		if stuck := both(2, take, []Worm{{1, Region{1, 2}, 0}, {2, Region{1, 2}, 0}, {0, Region{0, 0}, 0}}); stuck != (take == Greedy) {
			t.Errorf("%s: the counterexample deadlocks: %v", takings[take], stuck)
		}
		count := 0
		eachThreeWorms(4, func(worms ...Worm) {
			if both(2, take, worms) {
				count++
			}
		})
		short.Equal(t, count, want, takings[take], "of 432 threes deadlock")
		for k := 2; k <= 4; k++ {
			rng, stuck := rand.New(rand.NewPCG(12, uint64(k))), 0
			trials := short.Of(200, 40)
			for range trials {
				if both(4, take, randomWorms(rng, k, 0)) {
					stuck++
				}
			}
			t.Logf("%s: %d of %d random sets of %d worms in a network of 16 deadlock", takings[take], stuck, trials, k)
			if k == 2 && stuck > 0 {
				t.Errorf("%s: %d of %d twos deadlock", takings[take], stuck, trials)
			}
		}
	}
}
