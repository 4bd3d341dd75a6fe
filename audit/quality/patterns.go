package quality

import (
	"context"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
)

// Permutations has the figures of random permutations. In each all ports send
// at once, each to one port and each port from one, drawn evenly from all
// permutations; a port that draws itself sends nothing. The contention of a
// permutation is the greatest number of routes on a channel between switches,
// times the rate of the fastest channel over its own.
type Permutations struct {
	Permutations int     `json:"permutations"`
	Seed         uint64  `json:"seed"`
	Median       float64 `json:"median"`    // contention that half of them do not exceed
	P99          float64 `json:"p99"`       // contention that 99 of a hundred do not exceed
	Most         float64 `json:"most"`      // contention of the worst
	Bandwidth    float64 `json:"bandwidth"` // mean over permutations, as in Bisection
	Lost         int64   `json:"lost"`      // routes that the tables do not deliver
}

// permutationStream makes the random numbers of permutations differ from those of bisections.
const permutationStream = 1 << 63

// measurePermutations tries random permutations; nil if less than two ports can send.
func (m *measurement) measurePermutations(ctx context.Context, opt *Options) (*Permutations, error) {
	if len(m.ends) < 2 {
		return nil, nil
	}
	trials, err := m.tryAll(ctx, opt.Permutations, func(w *walker, i int) {
		w.senders, w.receivers = m.ends, w.shuffle(m.ends, rand.NewPCG(opt.Seed, permutationStream|uint64(i)))
	})
	if err != nil {
		return nil, err
	}
	x := trials.contention
	slices.Sort(x)
	return &Permutations{
		Permutations: opt.Permutations, Seed: opt.Seed, Lost: trials.lost,
		Median:    stat.Quantile(0.5, stat.Empirical, x, nil),
		P99:       stat.Quantile(0.99, stat.Empirical, x, nil),
		Most:      x[len(x)-1],
		Bandwidth: stat.Mean(trials.bandwidth, nil),
	}, nil
}

// Shifts has the figures of the permutations in which the port in place i of an order sends to the
// one in place (i + k) mod N, for k from 1 to N - 1. Places without a port send and receive
// nothing. Contention is that of Permutations.
type Shifts struct {
	// Order is EngineOrder or LIDOrder.
	Order  string `json:"order"`
	Places int    `json:"places"` // N
	Shifts int    `json:"shifts"` // number of shifts that are tried: all, or some at random
	// Contention is the mean over shifts, Most that of the worst. Worst is the k of that shift, of
	// equal ones the least.
	Contention float64 `json:"contention"`
	Most       float64 `json:"most"`
	Worst      int     `json:"worst"`     // k
	Bandwidth  float64 `json:"bandwidth"` // mean over shifts, as in Bisection
	Least      float64 `json:"least"`     // bandwidth of the worst shift
	Lost       int64   `json:"lost"`      // routes that the tables do not deliver
}

// The orders of ports for shifts: that in which an engine numbers hosts (lft.Routing.CAOrder), else
// ascending LIDs.
const (
	EngineOrder = "engine"
	LIDOrder    = "lid"
)

// measureShifts tries shifts; nil if there are less than two places.
func (m *measurement) measureShifts(ctx context.Context, opt *Options) (*Shifts, error) {
	x := &Shifts{Order: LIDOrder}
	order := slices.Clone(m.ends)
	if opt.CAOrder != nil {
		x.Order, order = EngineOrder, slices.Clone(opt.CAOrder)
		counts := make([]bool, m.f.NumPorts())
		for _, p := range m.ends {
			counts[p] = true
		}
		for i, p := range order {
			if p != fabric.NoPort && !counts[p] {
				order[i] = fabric.NoPort
			}
		}
	} else {
		slices.SortFunc(order, func(a, b fabric.PortID) int { return int(m.f.LID(a)) - int(m.f.LID(b)) })
	}
	if len(order) < 2 {
		return nil, nil
	}
	x.Places = len(order)
	by := text.Numbers[int](len(order))[1:]
	if len(by) > opt.Shifts {
		rand.New(rand.NewPCG(opt.Seed, permutationStream-1)).Shuffle(len(by), func(i, j int) { by[i], by[j] = by[j], by[i] })
		by = by[:opt.Shifts]
		slices.Sort(by)
	}
	x.Shifts = len(by)
	twice := slices.Concat(order, order)
	trials, err := m.tryAll(ctx, len(by), func(w *walker, i int) {
		w.senders, w.receivers = order, twice[by[i]:]
	})
	if err != nil {
		return nil, err
	}
	x.Lost = trials.lost
	contention, bandwidth := trials.contention, trials.bandwidth
	x.Contention, x.Most = stat.Mean(contention, nil), slices.Max(contention)
	x.Worst = by[slices.Index(contention, x.Most)]
	x.Bandwidth, x.Least = stat.Mean(bandwidth, nil), slices.Min(bandwidth)
	return x, nil
}
