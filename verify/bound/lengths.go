package bound

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/internal/text"
)

// blocks is the number of parts into which targets are divided. Each part adds up its loads one
// target after the other, so sums do not depend on the number of CPUs.
const blocks = 32

// seeker seeks the lengths of the best fractional bound by multiplicative weights (Garg
// and Könemann, Faster and simpler algorithms for multicommodity flow, FOCS 1998; Arora,
// Hazan and Kale, The multiplicative weights update method, 2012). The price of a
// channel is its share of the sum of l(c) r(c). In each round all routes take the
// cheapest paths, and in part paths nearly as cheap. Then the price of a channel rises
// with its load.
type seeker struct {
	*ways
	price  []float64   // by channel; their sum is 1
	length []float64   // by channel: price over rate; the fastest rate counts as 1
	load   []float64   // by channel: relative load in the last round
	parts  [][]float64 // by block and channel: routes
	bounds []float64   // by block: its share of the bound
}

func newSeeker(w *ways) *seeker {
	n := len(w.port)
	x := &seeker{ways: w, price: slices.Repeat([]float64{1}, n), length: make([]float64, n), load: make([]float64, n), bounds: make([]float64, blocks)}
	for range blocks {
		x.parts = append(x.parts, make([]float64, n))
	}
	return x
}

// setPrices scales prices to sum 1, and sets lengths.
func (x *seeker) setPrices() {
	sum := 0.0
	for _, p := range x.price {
		sum += p
	}
	for c := range x.price {
		x.price[c] /= sum
		x.length[c] = x.price[c] * float64(x.fastest) / float64(x.rate[c])
	}
}

// route sends all routes, and returns the bound by the lengths. Paths longer than the best by less
// than blur get some routes.
func (x *seeker) route(ctx context.Context, blur float64) (float64, error) {
	err := par.ForEach(ctx, 0, blocks, func(b int) error {
		x.bounds[b] = 0
		clear(x.parts[b])
		r := router{tree: newTree(x.ways, x.length), flow: make([]float64, x.f.NumSwitches()), load: x.parts[b]}
		for i := b; i < len(x.targets); i += blocks {
			x.bounds[b] += r.route(i, blur)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	bound := 0.0
	for _, b := range x.bounds {
		bound += b
	}
	for c := range x.load {
		sum := 0.0
		for b := range x.parts {
			sum += x.parts[b][c]
		}
		x.load[c] = sum * float64(x.fastest) / float64(x.rate[c])
	}
	return bound, nil
}

// router routes for one block.
type router struct {
	*tree[float64]
	flow  []float64 // by switch
	load  []float64 // by channel
	share []float64 // by channel of a switch: weight
}

// route sends the routes to target i, and returns the sum of their lengths.
func (x *router) route(i int, blur float64) (sum float64) {
	x.grow(i)
	t := x.targets[i]
	for _, s := range x.order {
		x.flow[s] = float64(x.hosts[s] * x.lids[t])
		sum += x.flow[s] * x.dist[s]
	}
	for k := len(x.order) - 1; k > 0; k-- {
		s := x.order[k]
		if x.flow[s] == 0 {
			continue
		}
		begin, end := x.network.first[s], x.network.first[s+1]
		x.share = x.share[:0]
		total := 0.0
		for c := begin; c < end; c++ {
			share := 0.0
			if x.onward(s, c) {
				if slack := x.length[c] + x.dist[x.to[c]] - x.dist[s]; slack < blur {
					share = 1 - slack/blur
					share *= share * float64(x.rate[c])
				}
			}
			x.share = append(x.share, share)
			total += share
		}
		scale := x.flow[s] / total
		for k, share := range x.share {
			if share > 0 {
				c := begin + int32(k)
				x.load[c] += share * scale
				x.flow[x.to[c]] += share * scale
			}
		}
	}
	return sum
}

// How fast prices follow loads: the step grows if the bound does, else falls, to at least 1 /
// rounds so far. Of the values tried, these come nearest to the best bound in 8 to 60 rounds, on
// whole and damaged tori and meshes and on irregular networks.
const (
	firstStep = 2.0
	stepGrows = 1.2
	stepFalls = 0.7
	maxExcess = 4.0 // the most load above the bound that counts, in units of the bound
)

// seek returns the prices of the best fractional bound that it finds in some rounds. It starts with
// equal prices: prices that start from the best cut stay near it, which is worse.
func (x *seeker) seek(ctx context.Context, rounds int) (best []float64, err error) {
	x.setPrices()
	demand := 0.0
	for _, t := range x.targets {
		for s, h := range x.hosts {
			if int(t) != s {
				demand += float64(h * x.lids[t])
			}
		}
	}
	bound, step := 0.0, firstStep
	for i := range rounds {
		b, err := x.route(ctx, max(bound, 1/float64(len(x.price)))/demand/math.Sqrt(float64(i+1)))
		if err != nil {
			return nil, err
		}
		if b > bound {
			best, bound = append(best[:0], x.price...), b
			step *= stepGrows
		} else {
			step = max(step*stepFalls, 1/float64(i+1))
		}
		for c := range x.price {
			x.price[c] = max(x.price[c], 1e-12) * math.Exp(step*min(x.load[c]/bound-1, maxExcess))
		}
		x.setPrices()
	}
	return best, nil
}

// lengthScales are the greatest lengths to which prices are rounded. Small lengths often prove as
// much or more, as prices that tend to 0 become 0.
var lengthScales = []float64{1, 8, 128, 1 << 16}

// improve seeks lengths for the paths of ways, and returns the best bound that they prove, or x.
func (w *network) improve(ctx context.Context, x candidate, ways *ways, rounds int) (candidate, error) {
	price, err := newSeeker(ways).seek(ctx, rounds)
	if err != nil || price == nil {
		return x, err
	}
	most := 0.0
	for c := range price {
		price[c] /= float64(w.rate[c])
		most = max(most, price[c])
	}
	for _, scale := range lengthScales {
		length := make([]int64, len(price))
		for c := range price {
			length[c] = int64(math.Round(price[c] / most * scale))
		}
		y, err := w.prove(ctx, length, ways)
		if err != nil {
			return x, err
		}
		x.improve(y)
	}
	return x, nil
}

// mean returns the bound of equal lengths: the mean load if all routes take the fewest channels.
func (w *network) mean(ctx context.Context) (candidate, error) {
	x, err := w.prove(ctx, slices.Repeat([]int64{1}, len(w.port)), newWays(w, AnyPaths, nil))
	x.words = fmt.Sprintf("the mean over all %s, where routes take the fewest channels", text.CountGrouped(len(w.port), "channel", "channels"))
	return x, err
}

// prove returns the best bound of some lengths, over all units.
func (w *network) prove(ctx context.Context, length []int64, ways *ways) (best candidate, err error) {
	n := w.f.NumSwitches()
	trees, err := par.ForEachWith(ctx, 0, len(w.targets), func() *prover {
		return &prover{newTree(ways, length), make([]int64, n)}
	}, func(x *prover, i int) error {
		x.grow(i)
		for _, s := range x.order {
			x.sum[s] += x.dist[s] * w.lids[w.targets[i]]
		}
		return nil
	})
	if err != nil {
		return best, err
	}
	sum := make([]int64, n) // by switch: sum of the lengths of one host's paths to all LIDs
	for _, x := range trees {
		for s, d := range x.sum {
			sum[s] += d
		}
	}
	rates := make([]int64, len(w.rates))
	channels, longest := 0, 0
	for c, l := range length {
		i, _ := slices.BinarySearch(w.rates, w.rate[c])
		rates[i] += l
		if l > 0 {
			channels++
		}
		if l > length[longest] {
			longest = c
		}
	}
	var counts []count
	for _, h := range w.hosts {
		if h > 0 {
			counts = addCount(counts, count{h, 1})
		}
	}
	for _, unit := range units(counts) {
		need, part := new(big.Int), new(big.Int)
		y := candidate{paths: ways.paths, rank: ways.order, unit: unit, sources: make([]bool, n), length: length}
		for s, h := range w.hosts {
			y.sources[s] = h >= unit
			need.Add(need, part.Mul(big.NewInt(h-h%unit), big.NewInt(sum[s])))
		}
		if need.Sign() == 0 {
			continue
		}
		y.value = w.least(need, rates, unit)
		y.words = fmt.Sprintf("lengths of %s, the greatest %s", text.CountGrouped(channels, "channel", "channels"), w.f.PortName(w.port[longest]))
		best.improve(y)
	}
	return best, nil
}

// prover adds up lengths of paths.
type prover struct {
	*tree[int64]
	sum []int64 // by switch
}
