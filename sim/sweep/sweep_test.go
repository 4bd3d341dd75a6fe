package sweep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
)

type result struct {
	Square int     `json:"square"`
	Third  float64 `json:"third"`
}

func square(_ context.Context, i int) (result, error) { return result{i * i, float64(i) / 3}, nil }

func want(n int) []result {
	var out []result
	for i := range n {
		r, _ := square(context.Background(), i)
		out = append(out, r)
	}
	return out
}

func TestRun(t *testing.T) {
	for _, jobs := range []int{0, 1, 3, 100} {
		var calls []int
		got, err := Run(t.Context(), 20, Options{Jobs: jobs, Progress: func(done, total int) {
			if total != 20 {
				t.Errorf("%d points", total)
			}
			calls = append(calls, done)
		}}, square)
		if err != nil || !slices.Equal(got, want(20)) {
			t.Errorf("%d jobs: %v, %v", jobs, got, err)
		}
		for i, done := range calls {
			if done != i || len(calls) != 21 {
				t.Fatalf("progress %v", calls)
			}
		}
	}
	if got, err := Run(t.Context(), 0, Options{}, square); err != nil || len(got) != 0 {
		t.Error(got, err)
	}
}

// TestJobs has as many points under way as were asked for, and never more.
func TestJobs(t *testing.T) {
	for _, jobs := range []int{1, 2, 5} {
		var running, most atomic.Int64
		var start sync.WaitGroup
		start.Add(jobs)
		_, err := Run(t.Context(), 3*jobs, Options{Jobs: jobs}, func(_ context.Context, i int) (int, error) {
			n := running.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			if i >= 2*jobs { // the first ones wait for each other
				start.Done()
				start.Wait()
			}
			runtime.Gosched()
			running.Add(-1)
			return i, nil
		})
		if err != nil || most.Load() != int64(jobs) {
			t.Errorf("%d at a time, want %d; %v", most.Load(), jobs, err)
		}
	}
}

// TestResume interrupts a sweep after each number of points and goes on.
func TestResume(t *testing.T) {
	const n = 6
	for stop := range n + 1 {
		opt := Options{Jobs: 2, State: filepath.Join(t.TempDir(), "state")}
		var err error
		opt.Key = short.Must(Key(map[string]int{"n": n}))(t)
		ctx, cancel := context.WithCancel(t.Context())
		var ran atomic.Int64
		_, err = Run(ctx, n, opt, func(ctx context.Context, i int) (result, error) {
			if ran.Add(1) > int64(stop) {
				cancel()
				return result{}, ctx.Err()
			}
			return square(ctx, i)
		})
		cancel()
		if stop < n != errors.Is(err, context.Canceled) {
			t.Fatalf("stopped after %d: %v", stop, err)
		}
		ran.Store(0)
		got, err := Run(t.Context(), n, opt, func(ctx context.Context, i int) (result, error) {
			ran.Add(1)
			return square(ctx, i)
		})
		if err != nil || !slices.Equal(got, want(n)) || int(ran.Load()) != n-stop {
			t.Errorf("stopped after %d: %v, %v; %d more", stop, got, err, ran.Load())
		}
		if entries, err := os.ReadDir(filepath.Dir(opt.State)); err != nil || len(entries) != 1 {
			t.Errorf("%v, %v", entries, err)
		}
	}
}

// TestState has state files that must not be trusted.
func TestState(t *testing.T) {
	opt := Options{Jobs: 1, State: filepath.Join(t.TempDir(), "state")}
	boom := errors.New("boom")
	some := func(_ context.Context, i int) (result, error) {
		if i == 0 {
			return result{}, boom
		}
		return square(t.Context(), i)
	}
	if got, err := Run(t.Context(), 4, opt, some); got != nil || !errors.Is(err, boom) {
		t.Fatal(got, err)
	}
	whole := short.Must(os.ReadFile(opt.State))(t)
	never := func(context.Context, int) (result, error) { t.Error("ran"); return result{}, nil }
	var parse *fabric.ParseError
	for size := range whole {
		short.Check(t, os.WriteFile(opt.State, whole[:size], 0o666))
		if got, err := Run(t.Context(), 4, opt, never); got != nil || !errors.As(err, &parse) || !strings.Contains(err.Error(), "not a whole state file; remove it") {
			t.Fatalf("%d of %d bytes: %v, %v", size, len(whole), got, err)
		}
	}
	other := bytes.Replace(whole, []byte(`"square":9`), []byte(`"square":8`), 1)
	short.Check(t, os.WriteFile(opt.State, other, 0o666))
	if _, err := Run(t.Context(), 4, opt, never); !errors.As(err, &parse) {
		t.Error(err)
	}
	short.Check(t, os.WriteFile(opt.State, whole, 0o666))
	if _, err := Run(t.Context(), 3, opt, never); !errors.As(err, &parse) || !strings.Contains(err.Error(), "4 points, not 3") {
		t.Error(err)
	}
	changed := opt
	changed.Key[0]++
	var key *KeyError
	if _, err := Run(t.Context(), 4, changed, never); !errors.As(err, &key) || !strings.Contains(err.Error(), opt.State+" is of a sweep with other parameters") {
		t.Error(err)
	}
	if got, err := Run(t.Context(), 4, opt, square); err != nil || !slices.Equal(got, want(4)) {
		t.Error(got, err)
	}
	opt.State = filepath.Join(opt.State, "below")
	if _, err := Run(t.Context(), 4, opt, square); err == nil || errors.As(err, &parse) {
		t.Errorf("state below a file: %v", err)
	}
}

func TestKey(t *testing.T) {
	a, err := Key(struct{ Load float64 }{0.1})
	b, err2 := Key(struct{ Load float64 }{0.2})
	if err != nil || err2 != nil || a == b {
		t.Error(a, b, err, err2)
	}
	if _, err := Key(func() {}); err == nil {
		t.Error("the key of a function")
	}
}

func FuzzState(f *testing.F) {
	file := filepath.Join(f.TempDir(), "state")
	short.Must(Run(context.Background(), 3, Options{State: file}, square))(f)
	data := short.Must(os.ReadFile(file))(f)
	f.Add(data)
	f.Add([]byte(fmt.Sprintf("{}\n%x\n", [32]byte{})))
	f.Fuzz(func(t *testing.T, data []byte) {
		st := state[result]{Key: strings.Repeat("0", 64), Results: make([]*result, 3)}
		if err := st.parse("f", data); err != nil && slices.ContainsFunc(st.Results, func(r *result) bool { return r != nil }) {
			t.Fatal("results with an error")
		}
	})
}
