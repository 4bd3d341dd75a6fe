package quality

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
)

// Bisection is the effective bisection bandwidth of Hoefler, Schneider and
// Lumsdaine (Multistage switches are not crossbars, Cluster 2008): CA and router
// ports are divided into two halves at random, and each port of the one sends to
// a port of the other, all at the same time. A channel divides its rate evenly
// among the routes on it, and a route gets the least of its shares, here in parts
// of the rate of its slower host cable: 1 is what a crossbar would do. A bisection
// has the mean of its routes.
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
}

// measureBisections tries random bisections, each with a random number generator of its own.
// Nil for a fabric with less than two ports to send to.
func (m *measurement) measureBisections(ctx context.Context, opt *Options) (*Bisection, error) {
	var ends []fabric.PortID
	for _, p := range m.f.CAPorts() {
		if m.f.PeerSwitch(p) != fabric.NoNode && m.f.LID(p) != 0 && m.f.PortCounts(p, fabric.ForBisection) {
			ends = append(ends, p)
		}
	}
	if len(ends) < 2 {
		return nil, nil
	}
	b := &Bisection{Bisections: opt.Bisections, Seed: opt.Seed, Routes: len(ends) / 2}
	rate := m.rates()
	means := make([]float64, opt.Bisections)
	lost := make([]int64, opt.Bisections)
	newPairing := func() *pairing {
		return &pairing{m: m, rate: rate, count: make([]int32, m.f.NumPorts()), ends: make([]fabric.PortID, len(ends))}
	}
	_, err := par.ForEachWith(ctx, opt.Workers, len(means), newPairing, func(w *pairing, i int) error {
		copy(w.ends, ends)
		means[i], lost[i] = w.tryBisection(rand.New(rand.NewPCG(opt.Seed, uint64(i))))
		return nil
	})
	if err != nil {
		return nil, err
	}
	b.Mean = stat.Mean(means, nil)
	b.Least, b.Most = slices.Min(means), slices.Max(means)
	b.Low, b.High = b.Mean, b.Mean
	if n := len(means); n > 1 {
		t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(n - 1)}.Quantile(0.975)
		half := t * stat.StdDev(means, nil) / math.Sqrt(float64(n))
		b.Low, b.High = max(b.Mean-half, 0), min(b.Mean+half, 1)
	}
	for _, n := range lost {
		b.Lost += n
	}
	return b, nil
}

// rates is the data rate of each port's cable; all the same when any is unknown.
func (m *measurement) rates() []float64 {
	rate := make([]float64, m.f.NumPorts())
	for p := range rate {
		if m.f.Peer(fabric.PortID(p)) == fabric.NoPort {
			continue
		}
		mbps := m.f.Link(fabric.PortID(p)).Mbps()
		if mbps == 0 {
			for p := range rate {
				rate[p] = 1
			}
			return rate
		}
		rate[p] = float64(mbps)
	}
	return rate
}

// pairing is the scratch of one worker.
type pairing struct {
	m     *measurement
	rate  []float64
	ends  []fabric.PortID
	count []int32         // by channel: routes on it
	path  []fabric.PortID // the channels of all routes, one after the other
	from  []int           // by route: where its channels begin
}

// tryBisection takes the mean bandwidth of the routes of one bisection.
func (w *pairing) tryBisection(rng *rand.Rand) (mean float64, lost int64) {
	rng.Shuffle(len(w.ends), func(i, j int) { w.ends[i], w.ends[j] = w.ends[j], w.ends[i] })
	half := len(w.ends) / 2
	w.path, w.from = w.path[:0], w.from[:0]
	for i, a := range w.ends[:half] {
		w.from = append(w.from, len(w.path))
		path, err := w.m.t.Path(w.m.f, a, w.m.f.LID(w.ends[half+i]), w.path)
		if err != nil {
			lost++
			continue
		}
		w.path = path
	}
	w.from = append(w.from, len(w.path))
	for _, c := range w.path {
		w.count[c]++
	}
	sum := 0.0
	for i := range half {
		way := w.path[w.from[i]:w.from[i+1]]
		if len(way) == 0 {
			continue
		}
		share := math.Inf(1)
		for _, c := range way {
			share = min(share, w.rate[c]/float64(w.count[c]))
		}
		sum += share / min(w.rate[way[0]], w.rate[way[len(way)-1]])
	}
	for _, c := range w.path {
		w.count[c] = 0
	}
	return sum / float64(half), lost
}
