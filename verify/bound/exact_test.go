package bound

import (
	"context"
	"flag"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
)

var fabrics = flag.Int("fabrics", short.Usual(100, 35), "random fabrics of each test; make soak takes 1000")

// flowLP is the least greatest relative load of a fractional multicommodity flow, by the simplex
// method: a flow to each switch, on all channels that it may take.
func flowLP(t *testing.T, f *fabric.Fabric, paths Paths) float64 {
	t.Helper()
	hosts, lids := traffic(f)
	var channels []fabric.PortID
	for s := range hosts {
		ports, _ := f.SwitchLinks(fabric.NodeID(s))
		channels = append(channels, ports...)
	}
	rate := Rates(f, channels)
	if len(channels) == 0 {
		return 0
	}
	fastest := float64(slices.Max(rate))
	type term struct {
		row, column int
		value       float64
	}
	var terms []term
	var right []float64
	columns := 1 + len(channels) // the load, and by channel what it lacks to that
	for c := range channels {
		terms = append(terms, term{c, 0, -1}, term{c, 1 + c, 1})
		right = append(right, 0)
	}
	for d, n := range lids {
		if n == 0 {
			continue
		}
		allowed := allowedPorts(f, fabric.NodeID(d), paths, order(f))
		distance := f.Distances().To(fabric.NodeID(d))
		row := make([]int, len(hosts))
		for s := range hosts {
			if row[s] = -1; s != d && distance[s] != fabric.Unreachable {
				row[s] = len(right)
				right = append(right, float64(hosts[s]*n))
			}
		}
		for c, p := range channels {
			if !allowed[p] {
				continue
			}
			from, to := row[f.Owner(p)], row[f.Owner(f.Peer(p))]
			terms = append(terms, term{c, columns, fastest / float64(rate[c])})
			if from >= 0 {
				terms = append(terms, term{from, columns, 1})
			}
			if to >= 0 {
				terms = append(terms, term{to, columns, -1})
			}
			columns++
		}
	}
	scale := 1.0 // the simplex method wants small numbers
	for _, v := range right {
		scale = max(scale, 1000*v)
	}
	for i := range right {
		right[i] /= scale
	}
	a := mat.NewDense(len(right), columns, nil)
	for _, x := range terms {
		a.Set(x.row, x.column, a.At(x.row, x.column)+x.value)
	}
	cost := make([]float64, columns)
	cost[0] = 1
	load, _, err := lp.Simplex(cost, a, right, 1e-10, nil)
	if err != nil {
		t.Fatalf("simplex: %v", err)
	}
	return load * scale
}

// fractional is what lengths prove without a unit.
func fractional(t *testing.T, w *network, c *Certificate) float64 {
	t.Helper()
	length := make([]int64, len(w.port))
	for _, x := range c.Channels {
		s, _ := w.f.SwitchByGUID(x.Switch)
		length[w.channel(w.f.Port(s, x.Port))] = x.Length
	}
	x := recheck{f: w.f, paths: c.Paths, rank: order(w.f), length: make([]int64, w.f.NumPorts()), counted: make([]int64, len(w.hosts))}
	rates := make([]int64, len(w.rates))
	for i, l := range length {
		x.length[w.port[i]] = l
		k, _ := slices.BinarySearch(w.rates, w.rate[i])
		rates[k] += l
	}
	copy(x.counted, w.hosts)
	value := w.least(x.need(w.lids), rates, 0)
	proof := *c
	proof.Unit, proof.Sources, proof.Bound = 0, nil, value
	if err := proof.Check(w.f, nil); err != nil {
		t.Errorf("without a unit: %v", err)
	}
	v, _ := value.Float64()
	return v
}

// Lengths prove no more than the exact optimum of the fractional flow, and come near it.
func TestLP(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, paths := range []Paths{AnyPaths, ShortestPaths, LegalPaths} {
		sum, n := 0.0, 0
		for i := 0; n < short.Of(*fabrics, 20); i++ {
			f := small{5, 7, 8}.random(t, r)
			w := newNetwork(f)
			partitions := w.partitions()
			cuts := greatest{network: w}
			w.cuts(partitions, false, cuts.see)
			if cuts.value == nil {
				if load := flowLP(t, f, paths); load > 1e-9 {
					t.Fatalf("fabric %d has no bound, and a load of %g", i, load)
				}
				continue
			}
			if paths == ShortestPaths {
				w.neighbors(partitions[0], cuts.see)
			}
			exact, best := flowLP(t, f, paths), cuts.candidate()
			cut := fractional(t, w, w.certificate(&best))
			x := short.Must(w.improve(context.Background(), candidate{}, newWays(w, paths, order(f)), 200))(t)
			got := fractional(t, w, w.certificate(&x))
			for _, v := range []float64{cut, got} {
				if v > exact*(1+1e-6) {
					t.Errorf("fabric %d, %s paths: a bound of %g, and the optimum is %g", i, paths, v, exact)
				}
			}
			whole, _ := x.value.Float64()
			if whole < 0.8*exact {
				t.Errorf("fabric %d, %s paths: a bound of %g only, and the optimum is %g", i, paths, whole, exact)
			}
			sum, n = sum+max(cut, got)/exact, n+1
		}
		t.Logf("%s paths: %d fabrics, %.2f %% of the optimum on average", paths, n, 100*sum/float64(n))
		if sum/float64(n) < 0.99 {
			t.Errorf("%s paths: %g of the optimum on average, want 0.99", paths, sum/float64(n))
		}
	}
}

// exhaustive is the least greatest relative load of all forwarding tables that deliver what can
// be delivered, by trying all; nil when there are too many.
func exhaustive(f *fabric.Fabric, paths Paths, rank []int32) *big.Rat {
	w := newNetwork(f)
	best := math.Inf(1)
	var exact *big.Rat
	type target struct {
		lids  int64
		loads [][]int64 // that a LID may have: by channel
	}
	var targets []target
	for _, d := range w.targets {
		loads := treeLoads(w, d, paths, rank)
		if loads == nil {
			return nil
		}
		targets = append(targets, target{w.lids[d], loads})
	}
	relative := func(load []int64) (worst float64, at int) {
		for c, n := range load {
			if v := float64(n) / float64(w.rate[c]); v > worst {
				worst, at = v, c
			}
		}
		return worst, at
	}
	steps := 0
	var try func(k int, lid int64, from int, load []int64)
	try = func(k int, lid int64, from int, load []int64) {
		if steps++; steps > 300000 {
			return
		}
		worst, at := relative(load)
		switch {
		case worst >= best:
			return
		case k == len(targets):
			best = worst
			exact = new(big.Rat)
			if len(load) > 0 {
				exact.SetFrac64(load[at]*w.fastest, w.rate[at])
			}
			return
		case lid == targets[k].lids:
			try(k+1, 0, 0, load)
			return
		}
		for i := from; i < len(targets[k].loads); i++ {
			next := slices.Clone(load)
			for c, n := range targets[k].loads[i] {
				next[c] += n
			}
			try(k, lid+1, i, next) // LIDs of a switch are alike
		}
	}
	try(0, 0, 0, make([]int64, len(w.port)))
	if steps > 300000 {
		return nil
	}
	return exact
}

// treeLoads is the loads that tables may give one LID on switch d; nil when there are too many.
func treeLoads(w *network, d fabric.NodeID, paths Paths, rank []int32) (list [][]int64) {
	allowed := allowedPorts(w.f, d, paths, rank)
	distance := w.f.Distances().To(d)
	choice := make([]int32, len(w.hosts)) // by switch: channel
	var try func(s int) bool
	try = func(s int) bool {
		if s < len(choice) && (s == int(d) || distance[s] == fabric.Unreachable) {
			return try(s + 1)
		}
		if s < len(choice) {
			for c := w.first[s]; c < w.first[s+1]; c++ {
				if choice[s] = c; allowed[w.port[c]] && !try(s+1) {
					return false
				}
			}
			return true
		}
		load := make([]int64, len(w.port))
		for at, n := range w.hosts {
			for steps := 0; at != int(d) && distance[at] != fabric.Unreachable; steps++ {
				if steps > len(choice) {
					if n > 0 {
						return true // a loop
					}
					break
				}
				load[choice[at]] += n
				at = int(w.to[choice[at]])
			}
		}
		if !slices.ContainsFunc(list, func(x []int64) bool { return slices.Equal(x, load) }) {
			list = append(list, load)
		}
		return len(list) <= 200
	}
	if !try(0) {
		return nil
	}
	return list
}

// No tables are better than a bound, of all that there are, and mostly some are as good.
func TestExhaustive(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	tight, n := map[Paths]int{}, map[Paths]int{}
	for i := 0; n[ShortestPaths] < *fabrics; i++ {
		f := small{4, 4, 6}.random(t, r)
		b := find(t, f, Options{Rounds: 40, Order: order(f)})
		for _, paths := range []Paths{AnyPaths, ShortestPaths, LegalPaths} {
			exact := exhaustive(f, paths, order(f))
			if exact == nil {
				continue
			}
			x := b.Any
			if paths == ShortestPaths && b.Shortest != nil {
				x = b.Shortest
			} else if paths == LegalPaths && b.Legal != nil {
				x = b.Legal
			}
			if x == nil {
				if exact.Sign() != 0 {
					t.Errorf("fabric %d, %s paths: no bound, and all tables have %s", i, paths, exact)
				}
				continue
			}
			n[paths]++
			switch {
			case x.Exact.Cmp(exact) == 0:
				tight[paths]++
			case x.Exact.Cmp(exact) > 0:
				t.Errorf("fabric %d, %s paths: the bound is %s by %s, and some tables have %s", i, paths, x.Exact, x.Words, exact)
			}
		}
	}
	for _, paths := range []Paths{AnyPaths, ShortestPaths, LegalPaths} {
		t.Logf("%s paths: %d of %d bounds are reached", paths, tight[paths], n[paths])
		if n[paths] < *fabrics/2 || tight[paths] < n[paths]*9/10 {
			t.Errorf("%s paths: %d of %d bounds are reached, want nine tenths", paths, tight[paths], n[paths])
		}
	}
}
