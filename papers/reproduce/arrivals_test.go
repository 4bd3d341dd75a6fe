package reproduce

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ibweave/ibweave/internal/short"
)

// Times between messages are negative binomial: by their parameters r and p, the mean is r/p cycles
// whatever the order is, the variance r(1-p)/p^2, and there are r cycles at least.
func TestNegativeBinomial(t *testing.T) {
	const n, mean = 200_000, 60.0
	for _, r := range []int{1, 2, 7} {
		x := newMixture(lineNetwork(t), spamLoad{}, 100/mean, r, 5)
		x.rng = rand.New(rand.NewPCG(uint64(r), 1))
		sum, square, least := 0.0, 0.0, math.Inf(1)
		for range n {
			c := x.drawCycles()
			sum, square, least = sum+c, square+c*c, min(least, c)
		}
		p := float64(r) / mean
		got, variance := sum/n, square/n-sum/n*sum/n
		if want := float64(r) * (1 - p) / p / p; math.Abs(got-mean) > 0.5 || math.Abs(variance/want-1) > 0.03 || least < float64(r) {
			t.Errorf("order %d: mean %.2f, variance %.1f, at least %g; want %g, %.1f, %d", r, got, variance, least, mean, want, r)
		}
	}
}

func lineNetwork(t *testing.T) *spamRouters {
	t.Helper()
	return short.Must(spamTrees[0].network(4, 1))(t)
}
