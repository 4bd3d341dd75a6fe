package quality

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
)

// rates returns the data rate of each port's cable; 1 for all ports if any is unknown.
func rates(f *fabric.Fabric) []float64 {
	known := !slices.ContainsFunc(f.Cables(), func(c fabric.Cable) bool { return c.Link.Mbps() == 0 })
	rate := make([]float64, f.NumPorts())
	for p := range rate {
		if rate[p] = 1; known {
			rate[p] = float64(f.Link(fabric.PortID(p)).Mbps())
		}
	}
	return rate
}

// trials collects the results of several patterns.
type trials struct {
	bandwidth  []float64 // by pattern: the mean of its routes, as in Bisection; 1 without routes
	contention []float64 // by pattern: the greatest relative load of a channel between switches
	lost       int64     // routes that the tables do not deliver, of all
}

// walker follows patterns of traffic through the tables: the scratch of one worker.
type walker struct {
	m                  *measurement
	senders, receivers []fabric.PortID // the pattern, port by port; see try
	shuffled           []fabric.PortID
	routes             []walked
	at                 []fabric.NodeID // by route: the switch that it has come to
	moving             []int32         // routes that have not ended
	hops               []hop           // of all routes, over channels between switches
	count              []int32         // by channel: routes on it; all 0 between patterns
}

// walked is a route, and how far it is.
type walked struct {
	to        fabric.PortID
	lid       fabric.LID
	delivered bool
	rate      float64       // of its slower host cable
	share     float64       // what its slowest channel gives it
	before    fabric.NodeID // a switch on it, to find loops
}

// hop is a step of a route.
type hop struct {
	route   int32
	channel fabric.PortID
}

// tryAll tries n patterns; draw sets the i-th one in a walker.
func (m *measurement) tryAll(ctx context.Context, n int, draw func(w *walker, i int)) (*trials, error) {
	all := &trials{bandwidth: make([]float64, n), contention: make([]float64, n)}
	var lost atomic.Int64
	start := func() *walker { return &walker{m: m, count: make([]int32, m.f.NumPorts())} }
	_, err := par.ForEachWith(ctx, 0, n, start, func(w *walker, i int) error {
		draw(w, i)
		n := int64(0)
		all.bandwidth[i], all.contention[i], n = w.try()
		lost.Add(n)
		return nil
	})
	all.lost = lost.Load()
	return all, err
}

// shuffle returns a list in random order, which the next call overwrites.
func (w *walker) shuffle(list []fabric.PortID, source rand.Source) []fabric.PortID {
	w.shuffled = append(w.shuffled[:0], list...)
	rand.New(source).Shuffle(len(list), func(i, j int) { w.shuffled[i], w.shuffled[j] = w.shuffled[j], w.shuffled[i] })
	return w.shuffled
}

// try lets each sender send to its receiver, all at once, except to itself or
// to NoPort. Each port sends once at most, and receives once at most, so host
// cables are never shared.
func (w *walker) try() (bandwidth, contention float64, lost int64) {
	w.follow()
	for _, h := range w.hops {
		if w.routes[h.route].delivered {
			w.count[h.channel]++
		}
	}
	for _, h := range w.hops {
		r := &w.routes[h.route]
		n := float64(w.count[h.channel])
		r.share = min(r.share, w.m.rate[h.channel]/n)
		contention = max(contention, n*w.m.weight[h.channel])
	}
	for _, h := range w.hops {
		w.count[h.channel] = 0
	}
	for i := range w.routes {
		if r := &w.routes[i]; r.delivered {
			bandwidth += r.share / r.rate
		} else {
			lost++
		}
	}
	if n := len(w.routes); n > 0 {
		return bandwidth / float64(n), contention, lost
	}
	return 1, contention, lost
}

// follow finds the routes and hops of the pattern, to the first LID of each
// receiver. All routes go one hop at a time, so that waits for memory overlap.
// A route that comes again to the switch where it was after the last power of
// 2 hops is in a loop, and not delivered.
func (w *walker) follow() {
	m, f := w.m, w.m.f
	w.routes, w.moving, w.hops = w.routes[:0], w.moving[:0], w.hops[:0]
	w.at = w.at[:0]
	for i, from := range w.senders {
		to := w.receivers[i]
		if from == to || from == fabric.NoPort || to == fabric.NoPort {
			continue
		}
		rate := min(m.rate[from], m.rate[to])
		w.moving = append(w.moving, int32(len(w.routes)))
		w.routes = append(w.routes, walked{to: to, lid: f.LID(to), rate: rate, share: rate, before: m.next[from]})
		w.at = append(w.at, m.next[from])
	}
	for hops := 0; len(w.moving) > 0; hops++ {
		still := w.moving[:0]
		for _, i := range w.moving {
			r, s := &w.routes[i], w.at[i]
			out := f.Port(s, m.t.Row(s)[r.lid])
			if out >= f.PortBase(s+1) { // no entry, or no such port
				continue
			}
			s = m.next[out]
			if s == fabric.NoNode {
				r.delivered = f.Peer(out) == r.to
				continue
			}
			if s == r.before {
				continue // a loop
			}
			if hops&(hops-1) == 0 {
				r.before = s
			}
			w.at[i] = s
			w.hops = append(w.hops, hop{i, out})
			still = append(still, i)
		}
		w.moving = still
	}
}
