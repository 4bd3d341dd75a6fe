package par

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/internal/short"
)

func TestForEachWith(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, workers := rapid.IntRange(0, 200).Draw(t, "n"), rapid.IntRange(0, 9).Draw(t, "workers")
		fails := map[int]bool{}
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, 400), 0, 5).Draw(t, "errors") {
			fails[i] = true
		}
		lowest := -1
		for i := n - 1; i >= 0; i-- {
			if fails[i] {
				lowest = i
			}
		}
		calls := make([]atomic.Int32, n)
		sums, err := ForEachWith(context.Background(), workers, n, func() *int { return new(int) }, func(sum *int, i int) error {
			if calls[i].Add(1); fails[i] {
				return fmt.Errorf("error of %d", i)
			}
			*sum += i
			return nil
		})
		if lowest >= 0 {
			short.MustEqual(t, fmt.Sprint(err), fmt.Sprintf("error of %d", lowest), "error", "want that of", lowest)
			return
		}
		sum := 0
		for _, s := range sums {
			sum += *s
		}
		if err != nil || sum != n*(n-1)/2 || len(sums) != Workers(workers, n) {
			t.Fatalf("sum %d of %d workers, error %v", sum, len(sums), err)
		}
		for i := range calls {
			short.MustEqual(t, calls[i].Load(), 1, "calls for", i)
		}
	})
}

// A call below the first error that is slow to fail is the error nevertheless, and
// no calls follow.
func TestLowestError(t *testing.T) {
	failed := make(chan struct{})
	var calls atomic.Int32
	err := ForEach(context.Background(), 2, 10, func(i int) error {
		calls.Add(1)
		switch i {
		case 3:
			<-failed
			time.Sleep(time.Millisecond)
			return errors.New("three")
		case 4:
			defer close(failed)
			return errors.New("four")
		}
		return nil
	})
	if err == nil || err.Error() != "three" || calls.Load() != 5 {
		t.Errorf("%v after %d calls", err, calls.Load())
	}
}

func TestContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var calls, late atomic.Int32
	err := ForEach(ctx, 2, 1000, func(i int) error {
		if ctx.Err() != nil {
			late.Add(1)
		}
		if calls.Add(1) == 5 {
			cancel()
		}
		return nil
	})
	// The other worker may have looked at ctx just before.
	if err != context.Canceled || calls.Load() < 5 || late.Load() > 1 {
		t.Errorf("%v after %d calls, %d of them late", err, calls.Load(), late.Load())
	}
}

func TestPanic(t *testing.T) {
	check := func(err error) {
		t.Helper()
		var p *Panic
		if !errors.As(err, &p) || p.Value != "three" || !strings.Contains(string(p.Stack), "par_test.go") || !strings.HasPrefix(p.Error(), "panic: three\n") {
			t.Errorf("%v", err)
		}
	}
	check(ForEach(context.Background(), 2, 10, func(i int) error {
		if i >= 3 {
			panic("three")
		}
		return nil
	}))
	_, err := ForEachWith(context.Background(), 3, 10, func() int { panic("three") }, func(int, int) error { return nil })
	check(err)
	wait := Go(func() error { panic("three") })
	check(wait())
	check(wait())
	// A panic goes through all levels, with the stack of the first.
	check(Catch(func() error {
		Each(8, func(i int) {
			if i == 3 {
				panic("three")
			}
		})
		return nil
	}))
	want := errors.New("four")
	short.Equal(t, Catch(func() error { return want }), want)
	short.Equal(t, Go(func() error { return want })(), want)
}

// TestPipelineCancelled has the context end at some moment of thousands of pipelines: all workers leave.
func TestPipelineCancelled(t *testing.T) {
	none := func(int, int) error { return nil }
	for i := range short.Of(6000, 3000) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%120)*time.Microsecond)
		done := make(chan error, 1)
		go func() { done <- Pipeline(ctx, 4000, 3, none, none, none) }()
		select {
		case <-done:
		case <-time.After(5 * time.Minute):
			t.Fatal("hung: pipeline", i)
		}
		cancel()
	}
}

// TestPipeline: each number has its three calls, do in order, and its slot for itself; the error
// is that of the lowest number.
func TestPipeline(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, slots := rapid.IntRange(0, 60).Draw(t, "n"), rapid.IntRange(1, 9).Draw(t, "slots")
		fails := rapid.IntRange(0, 120).Draw(t, "fails")
		in, next := make([]atomic.Int32, slots), 0
		finished := make([]atomic.Bool, n)
		err := Pipeline(context.Background(), n, slots, func(slot, i int) error {
			if slot != i%slots || !in[slot].CompareAndSwap(0, int32(i)+1) {
				panic("the slot is taken")
			}
			if i >= fails {
				return fmt.Errorf("error of %d", i)
			}
			return nil
		}, func(slot, i int) error {
			if next++; in[slot].Load() != int32(i)+1 || next != i+1 {
				panic("not prepared, or not in order")
			}
			return nil
		}, func(slot, i int) error {
			if !in[slot].CompareAndSwap(int32(i)+1, 0) || finished[i].Swap(true) {
				panic("not done")
			}
			return nil
		})
		if fails < n {
			short.MustEqual(t, fmt.Sprint(err), fmt.Sprintf("error of %d", fails), "error", "want that of", fails)
			return
		}
		if err != nil || next != n || !slicesAll(finished) {
			t.Fatalf("%d of %d done, error %v", next, n, err)
		}
	})
}

func slicesAll(list []atomic.Bool) bool {
	for i := range list {
		if !list[i].Load() {
			return false
		}
	}
	return true
}
