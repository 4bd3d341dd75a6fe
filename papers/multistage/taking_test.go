package multistage

import (
	"math/rand/v2"
	"testing"

	"github.com/ibweave/ibweave/internal/short"
)

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
