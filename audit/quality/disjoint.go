package quality

import (
	"context"
	"math"
	"math/bits"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/lft"
)

// Disjoint tells how independent the paths to the LIDs of a port are. A pair
// is a switch with CA or router ports, and a port with several LIDs on another
// switch. The figure of a pair is the greatest number of LIDs of the port
// whose paths from the switch have pairwise nothing in common: no channel
// between switches (Cables), and no switch between the two ends either
// (Switches). A LID that the switch does not deliver has no path.
type Disjoint struct {
	LIDs     int    `json:"lids"`  // LIDs of the port with most
	Pairs    int64  `json:"pairs"` // number of pairs
	Cables   Spread `json:"cables"`
	Switches Spread `json:"switches"`
	// Possible is the least of the number of LIDs and of the cables that each of the two switches
	// has to others: no tables can have more.
	Possible Spread `json:"possible"`
}

// Spread is a figure over pairs.
type Spread struct {
	Min  int     `json:"min"`
	Mean float64 `json:"mean"`
}

// Disjointness measures tables t of fabric f, as for Measure. It returns nil
// if no port has several LIDs, or there is no pair. It takes O(switches with
// hosts x LIDs x hops). Figures are those of independent: they may be too
// small, but are exact for paths on trees. Errors: ctx's.
func Disjointness(ctx context.Context, f *fabric.Fabric, t *lft.Tables) (*Disjoint, error) {
	var ports []fabric.PortID
	most := 1
	var terminals []fabric.NodeID
	for _, s := range f.Switches() {
		hosts := f.HostsOn(s)
		if len(hosts) > 0 {
			terminals = append(terminals, s)
		}
		for _, p := range hosts {
			if n := 1 << f.LMC(p); f.LID(p) != 0 && n > 1 {
				ports = append(ports, p)
				most = max(most, n)
			}
		}
	}
	if len(ports) == 0 || len(terminals) < 2 {
		return nil, nil
	}
	start := func() *disjointWorker { return newDisjointWorker(f, t, terminals, most) }
	all, err := par.ForEachWith(ctx, 0, len(ports), start, func(w *disjointWorker, i int) error {
		w.count(ports[i])
		return nil
	})
	if err != nil {
		return nil, err
	}
	d := &Disjoint{LIDs: most}
	var sum [3]tally
	for i := range sum {
		sum[i].min = math.MaxInt
	}
	for _, w := range all {
		d.Pairs += w.pairs
		for i := range sum {
			sum[i].min = min(sum[i].min, w.tally[i].min)
			sum[i].sum += w.tally[i].sum
		}
	}
	for i, x := range []*Spread{&d.Cables, &d.Switches, &d.Possible} {
		*x = Spread{sum[i].min, float64(sum[i].sum) / float64(d.Pairs)}
	}
	return d, nil
}

// tally is a Spread under way.
type tally struct {
	min int
	sum int64
}

func (t *tally) add(n int) {
	t.min = min(t.min, n)
	t.sum += int64(n)
}

// lidSet is a set of the LIDs of a port, of which there are at most 128.
type lidSet [2]uint64

func (s *lidSet) add(i int)            { s[i>>6] |= 1 << (i & 63) }
func (s lidSet) union(o lidSet) lidSet { return lidSet{s[0] | o[0], s[1] | o[1]} }
func (s lidSet) both(o lidSet) lidSet  { return lidSet{s[0] & o[0], s[1] & o[1]} }
func (s lidSet) less(o lidSet) lidSet  { return lidSet{s[0] &^ o[0], s[1] &^ o[1]} }
func (s lidSet) len() int              { return bits.OnesCount64(s[0]) + bits.OnesCount64(s[1]) }

func (s lidSet) members(yield func(int) bool) {
	for word, x := range s {
		for ; x != 0; x &= x - 1 {
			if !yield(word<<6 + bits.TrailingZeros64(x)) {
				return
			}
		}
	}
}

// disjointWorker is the scratch and the sums of one worker.
type disjointWorker struct {
	f         *fabric.Fabric
	t         *lft.Tables
	terminals []fabric.NodeID
	forest    *lft.Forest
	next      []fabric.PortID // by LID of the port and switch; NoPort for not delivered
	channels  []lidSet        // by PortID: LIDs whose path takes it; empty between pairs
	switches  []lidSet        // by switch, likewise
	meets     [2][]lidSet     // by LID: LIDs whose paths share a channel (0) or switch (1) with its path

	pairs int64
	tally [3]tally // as the Spreads of Disjoint
}

func newDisjointWorker(f *fabric.Fabric, t *lft.Tables, terminals []fabric.NodeID, most int) *disjointWorker {
	w := &disjointWorker{
		f: f, t: t, terminals: terminals, forest: lft.NewForest(f),
		next: make([]fabric.PortID, most*f.NumSwitches()), channels: make([]lidSet, f.NumPorts()), switches: make([]lidSet, f.NumSwitches()),
		meets: [2][]lidSet{make([]lidSet, most), make([]lidSet, most)},
	}
	for i := range w.tally {
		w.tally[i].min = math.MaxInt
	}
	return w
}

// count adds the pairs of port p.
func (w *disjointWorker) count(p fabric.PortID) {
	n := w.f.NumSwitches()
	lids := 1 << w.f.LMC(p)
	for k := range lids {
		next := w.next[k*n : (k+1)*n]
		text.Fill(next, fabric.NoPort)
		w.forest.FindTree(w.t, w.f.LID(p)+fabric.LID(k))
		for i, s := range w.forest.Order {
			if i > 0 {
				next[s] = w.forest.Next[s]
			}
		}
	}
	to := w.f.PeerSwitch(p)
	for _, s := range w.terminals {
		if s == to {
			continue
		}
		w.pairs++
		cables, switches := w.pair(s, to, lids)
		w.tally[0].add(cables)
		w.tally[1].add(switches)
		w.tally[2].add(min(lids, len(w.f.Neighbors(s)), len(w.f.Neighbors(to))))
	}
}

// pair counts the disjoint paths from s to the LIDs of a port on switch to.
func (w *disjointWorker) pair(s, to fabric.NodeID, lids int) (cables, switches int) {
	n := w.f.NumSwitches()
	var there, clash lidSet
	for k := range lids {
		w.meets[0][k], w.meets[1][k] = lidSet{}, lidSet{}
		if w.next[k*n+int(s)] == fabric.NoPort {
			continue
		}
		there.add(k)
		for at := s; at != to; {
			out := w.next[k*n+int(at)]
			at = w.f.Owner(w.f.Peer(out))
			w.meets[0][k] = w.meets[0][k].union(w.channels[out])
			w.channels[out].add(k)
			if at != to {
				w.meets[1][k] = w.meets[1][k].union(w.switches[at])
				w.switches[at].add(k)
			}
		}
		w.meets[1][k] = w.meets[1][k].union(w.meets[0][k])
		clash = clash.union(w.meets[1][k])
	}
	for k := range there.members {
		for at := s; at != to; {
			out := w.next[k*n+int(at)]
			at = w.f.Owner(w.f.Peer(out))
			w.channels[out], w.switches[at] = lidSet{}, lidSet{}
		}
	}
	if clash.len() == 0 {
		return there.len(), there.len()
	}
	for i := range w.meets { // with later LIDs too
		for k := range there.members {
			for j := range w.meets[i][k].members {
				w.meets[i][j].add(k)
			}
		}
	}
	return independent(w.meets[0], there), independent(w.meets[1], there)
}

// independent counts members of a set that do not meet each other. It takes
// the one that meets fewest others, leaves those out, and goes on until none
// is left. That is the greatest number if, as on trees, any two members that
// meet a third meet each other.
func independent(meets []lidSet, of lidSet) (n int) {
	for of.len() > 0 {
		fewest, few := math.MaxInt, 0
		for v := range of.members {
			if d := meets[v].both(of).len(); d < fewest {
				fewest, few = d, v
			}
		}
		var one lidSet
		one.add(few)
		of = of.less(meets[few].union(one))
		n++
	}
	return n
}
