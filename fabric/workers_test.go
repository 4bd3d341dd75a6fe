package fabric

import (
	"errors"
	"strings"
	"testing"
)

// A panic of a worker is one of the caller, after all workers have ended.
func TestWorkers(t *testing.T) {
	done := make(chan struct{}, 8)
	defer func() {
		p, ok := recover().(*WorkerPanic)
		if !ok || p.Value != "three" || !strings.Contains(string(p.Stack), "workers_test.go") || len(done) != 7 {
			t.Errorf("%v, %d done", p, len(done))
		}
	}()
	var w Workers
	for i := range 8 {
		w.Go(func() {
			if i == 3 {
				panic("three")
			}
			done <- struct{}{}
		})
	}
	w.Wait()
	t.Error("no panic")
}

func TestGuarded(t *testing.T) {
	var p *WorkerPanic
	if err := Guarded(func() error { panic("x") })(); !errors.As(err, &p) || p.Value != "x" {
		t.Error(err)
	}
	want := errors.New("y")
	if err := Guarded(func() error { return want })(); err != want {
		t.Error(err)
	}
}
