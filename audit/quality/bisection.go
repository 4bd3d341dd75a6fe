package quality

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Bisection is the effective bisection bandwidth of Hoefler, Schneider and
// Lumsdaine (Multistage switches are not crossbars, Cluster 2008): CA and
// router ports are divided into two halves at random, and each port of one
// half sends to a port of the other, all at once. A channel divides its rate
// evenly among its routes, and a route gets the least of its shares, here in
// parts of the rate of its slower host cable: 1 as on a crossbar. A
// bisection has the mean of its routes.
type Bisection struct {
	Bisections int     `json:"bisections"`
	Seed       uint64  `json:"seed"`
	Routes     int     `json:"routes"` // of each bisection
	Mean       float64 `json:"mean"`   // over bisections, 0 to 1
	Low        float64 `json:"low"`    // the 95 % confidence interval of the mean
	High       float64 `json:"high"`
	Least      float64 `json:"least"` // of the worst bisection
	Most       float64 `json:"most"`
	Lost       int64   `json:"lost"` // routes that the tables do not deliver; they have bandwidth 0

	means []float64 // of each bisection
}

// measureBisections tries random bisections, each with a random number generator of its own; nil if
// less than two ports can send.
func (m *measurement) measureBisections(ctx context.Context, opt *Options) (*Bisection, error) {
	half := len(m.ends) / 2
	if half == 0 {
		return nil, nil
	}
	trials, err := m.tryAll(ctx, opt.Bisections, func(w *walker, i int) {
		ends := w.shuffle(m.ends, rand.NewPCG(opt.Seed, uint64(i)))
		w.senders, w.receivers = ends[:half], ends[half:2*half]
	})
	if err != nil {
		return nil, err
	}
	b := &Bisection{Bisections: opt.Bisections, Seed: opt.Seed, Routes: half, Lost: trials.lost, means: trials.bandwidth}
	b.Mean, b.Low, b.High = Interval(b.means)
	b.Low, b.High = max(b.Low, 0), min(b.High, 1)
	b.Least, b.Most = slices.Min(b.means), slices.Max(b.means)
	return b, nil
}

// Interval returns the mean of some numbers and its 95 % confidence interval by Student's t; for
// one number the interval is the number.
func Interval(x []float64) (mean, low, high float64) {
	mean = stat.Mean(x, nil)
	n := len(x)
	if n < 2 {
		return mean, mean, mean
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(n - 1)}.Quantile(0.975)
	half := t * stat.StdDev(x, nil) / math.Sqrt(float64(n))
	return mean, mean - half, mean + half
}

// Difference is how much more bandwidth one set of tables has than another over the same
// bisections: 0.01 is one percentage point. The interval is that of the mean difference of
// bisections, so what is hard for both tables does not widen it.
type Difference struct {
	Mean float64 `json:"mean"`
	Low  float64 `json:"low"` // the 95 % confidence interval of the mean
	High float64 `json:"high"`
	// Verdict is Worse if the interval is below -Margin, Better if it is above Margin, else Alike.
	Verdict string `json:"verdict"`
}

// The verdicts of a Difference, and the difference that counts.
const (
	Worse  = "worse"
	Alike  = "alike"
	Better = "better"
	Margin = 0.005
)

// Against compares b with a reference; nil if they are not over the same bisections: one is nil, or
// they differ in their number, seed or routes.
func (b *Bisection) Against(reference *Bisection) *Difference {
	if b == nil || reference == nil || len(b.means) != len(reference.means) || b.Seed != reference.Seed || b.Routes != reference.Routes {
		return nil
	}
	more := make([]float64, len(b.means))
	for i, x := range b.means {
		more[i] = x - reference.means[i]
	}
	d := Difference{Verdict: Alike}
	d.Mean, d.Low, d.High = Interval(more)
	switch {
	case d.High < -Margin:
		d.Verdict = Worse
	case d.Low > Margin:
		d.Verdict = Better
	}
	return &d
}
