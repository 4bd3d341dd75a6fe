package sim

import (
	"math"
	"math/bits"
)

// batches bounds the batches of a Latency; when it is reached, pairs of batches become one.
const batches = 64

// fine is how many bins the histogram has for each power of two.
const fine = 16

// Latency is the distribution of a time. The precision of its mean is found
// from means of batches, since observations that follow each other closely
// are not independent. Batches grow with the number of observations.
type Latency struct {
	Count    int64
	Min, Max Time

	sum   float64          // ps
	means [batches]float64 // sums of full batches, ps
	full  int
	size  int64 // observations in a batch
	part  float64
	in    int64
	bins  [64 * fine]int64 // histogram, see bin
}

func (l *Latency) add(t Time) {
	if l.Count == 0 {
		l.Min, l.size = t, 1
	}
	l.Min, l.Max = min(l.Min, t), max(l.Max, t)
	l.Count++
	l.sum += float64(t)
	l.bins[bin(t)]++
	l.part += float64(t)
	if l.in++; l.in < l.size {
		return
	}
	l.means[l.full] = l.part
	l.part, l.in = 0, 0
	if l.full++; l.full < batches {
		return
	}
	for i := range batches / 2 {
		l.means[i] = l.means[2*i] + l.means[2*i+1]
	}
	l.full, l.size = batches/2, 2*l.size
}

// bin returns the bin of a time; floor returns the least time of a bin.
func bin(t Time) int {
	if t < fine {
		return int(max(t, 0))
	}
	shift := bits.Len64(uint64(t)) - bits.Len(fine)
	return shift*fine + int(t>>shift)
}

func floor(b int) Time {
	if b < 2*fine {
		return Time(b)
	}
	shift := b/fine - 1
	return Time(b-shift*fine) << shift
}

// Mean returns the mean in ps, 0 without observations.
func (l *Latency) Mean() float64 {
	if l.Count == 0 {
		return 0
	}
	return l.sum / float64(l.Count)
}

// Interval returns the mean and half of its 95 % confidence interval, in ps.
// half is infinite below 10 batches.
func (l *Latency) Interval() (mean, half float64) {
	if l.full < 10 {
		return l.Mean(), math.Inf(1)
	}
	n := float64(l.full)
	for _, s := range l.means[:l.full] {
		mean += s / float64(l.size)
	}
	mean /= n
	square := 0.0
	for _, s := range l.means[:l.full] {
		d := s/float64(l.size) - mean
		square += d * d
	}
	return l.Mean(), student95(l.full-1) * math.Sqrt(square/(n-1)/n)
}

// student95 returns the 97.5 % quantile of Student's t to three digits, for 9
// degrees of freedom or more (Cornish-Fisher expansion).
func student95(df int) float64 {
	const z = 1.959964
	n := float64(df)
	const z2 = z * z
	return z * (1 + (z2+1)/(4*n) + ((5*z2+16)*z2+3)/(96*n*n) + (((3*z2+19)*z2+17)*z2-15)/(384*n*n*n))
}

// Quantile returns the time that a share q, 0 to 1, of observations does not
// exceed; it may be too long by a sixteenth.
func (l *Latency) Quantile(q float64) Time {
	left := int64(math.Ceil(q * float64(l.Count)))
	for b, n := range l.bins {
		if left -= n; left <= 0 && n > 0 {
			return max(l.Min, min(l.Max, floor(b+1)-1))
		}
	}
	return l.Max
}

// Summary is a distribution of times in nanoseconds.
type Summary struct {
	Count int64    `json:"count"`
	Mean  float64  `json:"mean"`
	Error *float64 `json:"error"` // half of the 95 % confidence interval; null in closed loop, and for few observations
	Min   float64  `json:"min"`
	P50   float64  `json:"p50"`
	P99   float64  `json:"p99"`
	Max   float64  `json:"max"`
}

// summary returns nil without observations; if closed is set, Error is nil.
func (l *Latency) summary(closed bool) *Summary {
	if l.Count == 0 {
		return nil
	}
	s := &Summary{Count: l.Count, Min: l.Min.Nanoseconds(), P50: l.Quantile(0.5).Nanoseconds(), P99: l.Quantile(0.99).Nanoseconds(), Max: l.Max.Nanoseconds()}
	mean, half := l.Interval()
	s.Mean = mean / 1000
	if !closed && !math.IsInf(half, 0) {
		half /= 1000
		s.Error = &half
	}
	return s
}
