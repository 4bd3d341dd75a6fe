package reproduce

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/report/chart"
)

// TestStreams has no draw of any purpose and seed twice: neighbouring seeds share nothing.
func TestStreams(t *testing.T) {
	seen := map[uint64]bool{}
	n := 0
	for seed := range uint64(100) {
		for _, purpose := range []string{"mesh hosts", "mesh order", "gerla groups"} {
			for draw := range 50 {
				seen[stream(seed, purpose, draw)] = true
				n++
			}
		}
	}
	short.Equal(t, len(seen), n, "streams")
}

// TestStudent has quantiles from a table.
func TestStudent(t *testing.T) {
	for freedom, want := range map[int]float64{1: 12.706, 4: 2.776, 9: 2.262, 10: 2.228, 15: 2.131, 29: 2.045, 100: 1.984, 10000: 1.960} {
		if got := studentOf(freedom); math.Abs(got-want) > 0.001 {
			t.Errorf("%d degrees of freedom: %v, want %v", freedom, got, want)
		}
	}
}

// TestPaired has a difference that is clear by draw and hidden by what draws have in common,
// and none where the draws say so.
func TestPaired(t *testing.T) {
	var a, b, c chart.Point
	estimate(&a, []float64{10, 20, 30, 40})
	estimate(&b, []float64{11, 21.2, 31, 41.1})
	estimate(&c, []float64{12, 19, 31, 39})
	if !above(b, a) || above(a, b) || above(c, a) || above(a, c) {
		t.Errorf("differences %+v, %+v", minus(b, a), minus(c, a))
	}
	if d := minus(b, chart.Point{Y: 25, Half: 1}); d.Draws != nil || d.Half <= b.Half {
		t.Errorf("without the same draws %+v", d)
	}
	if r := ratio(b, a); r.N != 4 || math.Abs(r.Y-(1.1+1.06+31./30+41.1/40)/4) > 1e-12 {
		t.Errorf("the ratio is %+v", r)
	}
	if r := ratio(chart.Point{Y: 30, Half: 3}, chart.Point{Y: 10, Half: 1}); r.Y != 3 || math.Abs(r.Half-3*math.Sqrt2/10) > 1e-12 {
		t.Errorf("without draws the ratio is %+v", r)
	}
}

// TestDecided has the outcomes of an interval and a bound, or an interval of bounds.
func TestDecided(t *testing.T) {
	for _, tt := range []struct {
		y, half         float64
		beyond1, within int // 1, and 0.9 to 1.1
	}{{1.05, 0.04, 1, 1}, {1.05, 0.06, 0, 0}, {1, 0, -1, 1}, {0.9, 0.05, -1, 0}, {2, 0.1, 1, -1}, {0.5, 0.1, -1, -1}} {
		p := chart.Point{Y: tt.y, Half: tt.half}
		if got, in := beyond(p, 1), within(p, 0.9, 1.1); got != tt.beyond1 || in != tt.within {
			t.Errorf("%v +- %v: %d and %d, want %d and %d", tt.y, tt.half, got, in, tt.beyond1, tt.within)
		}
	}
}

// TestSteady has curves that end where more comes than goes, or latency grows.
func TestSteady(t *testing.T) {
	for _, tt := range []struct {
		flow flow
		want bool
	}{
		{flow{1000, 995, 10, 11}, true}, {flow{1000, 1010, 10, 9}, true}, {flow{2000, 1959, 10, 10}, false},
		{flow{200, 181, 10, 10}, true},
		{flow{1000, 1000, 10, 16}, false}, {flow{1000, 1000, math.NaN(), math.NaN()}, true},
	} {
		short.Equal(t, tt.flow.steady(), tt.want, tt.flow)
	}
	draws := []flow{{1000, 1000, 10, 20}, {1000, 1000, 10, 8}}
	if draws[0].steady() || !allSteady(draws) || allSteady(append(draws, flow{2000, 1900, 10, 10})) || allSteady(draws[:1]) {
		t.Error("draws together")
	}
	f := &Figure{Panels: []chart.Panel{{Curves: []chart.Curve{
		{Name: "a", Points: []chart.Point{{X: 1}, {X: 2, Unsteady: true}, {X: 3}}}, {Name: "b", Points: []chart.Point{{X: 1}, {X: 2}}},
	}}}}
	f.endCurves()
	if a, b := f.Curve("a"), f.Curve("b"); len(a) != 2 || len(b) != 2 || len(f.steadyCurve("a")) != 1 || len(f.steadyCurve("b")) != 2 {
		t.Errorf("%v, %v", a, b)
	}
}

// TestBatchMeans has the interval of a mean.
func TestBatchMeans(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	covers := 0
	for range 400 {
		b := batchMeans{size: 5}
		for range 200 {
			b.add(3 + rng.NormFloat64())
		}
		if mean, half := b.interval(); math.Abs(mean-3) <= half {
			covers++
		}
	}
	if covers < 360 || covers > 396 {
		t.Errorf("%d of 400 intervals of 95 %% have the mean", covers)
	}
}
