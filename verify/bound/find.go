package bound

import (
	"context"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// Options are the choices of Find.
type Options struct {
	// Rounds is the number of rounds in which Find seeks lengths, for each kind of paths. 0 stands for
	// a number that takes little time (none in large fabrics), a negative one for none. Cuts are
	// always tried.
	Rounds int
	// Load is the greatest relative load of tables, 0 if there are none. If a cut is within 2 % of it,
	// no lengths are sought, whatever Rounds is.
	Load float64
	// Order is the place of each switch in an up*/down* order, 0 on top, which determines the legal
	// ports. It is ignored if lft.SwitchesByRank returns an error for it.
	Order []int32
}

// A default search visits at most maxVisits channels for each kind of paths, about 10 ms of CPU
// time. It is left out if that allows less than minRounds. Each of lengthScales takes as many
// visits as a round.
const (
	maxVisits     = 1 << 19
	minRounds     = 4
	defaultRounds = 60
)

// Bounds are the best bounds that Find knows.
type Bounds struct {
	// Any is for all tables; nil if no routes cross a channel.
	Any *Bound `json:"any"`
	// Shortest is for tables that keep to shortest paths; nil unless above Any.
	Shortest *Bound `json:"shortest,omitempty"`
	// Legal is for tables that keep to legal ports; nil unless above Any.
	Legal *Bound `json:"legal,omitempty"`
}

// Find looks for bounds. The result does not depend on the number of CPUs. Its only error is ctx's.
func Find(ctx context.Context, f *fabric.Fabric, opt Options) (*Bounds, error) {
	w := newNetwork(f)
	partitions := w.partitions()
	cuts := greatest{network: w}
	w.cuts(partitions, false, cuts.see)
	w.cuts(partitions, true, cuts.see)
	w.sweep(cuts.see)
	best := cuts.candidate()
	if best.value == nil {
		return &Bounds{}, nil
	}
	if cuts.cut.apart {
		var err error
		if best, err = w.prove(ctx, best.length, newWays(w, AnyPaths, nil)); err != nil {
			return nil, err
		}
	}
	shortest, legal := best, best
	w.neighbors(partitions[0], cuts.see)
	shortest.improve(cuts.candidate())
	rounds, mean := opt.Rounds, opt.Rounds > 0
	if near, _ := shortest.value.Float64(); opt.Load > 0 && near*1.02 >= opt.Load {
		rounds, mean = 0, false
	} else if rounds == 0 {
		affordable := maxVisits / (len(w.targets) * len(w.port))
		mean = affordable > 0
		if rounds = min(defaultRounds, affordable-len(lengthScales)); rounds < minRounds {
			rounds = 0
		}
	}
	if mean {
		x, err := w.mean(ctx)
		if err != nil {
			return nil, err
		}
		best.improve(x)
		shortest.improve(best)
		legal.improve(best)
	}
	if rounds > 0 {
		var err error
		if best, err = w.improve(ctx, best, newWays(w, AnyPaths, nil), rounds); err != nil {
			return nil, err
		}
		shortest.improve(best)
		if shortest, err = w.improve(ctx, shortest, newWays(w, ShortestPaths, nil), rounds); err != nil {
			return nil, err
		}
		if _, err := lft.SwitchesByRank(f, opt.Order); err == nil {
			legal.improve(best)
			if legal, err = w.improve(ctx, legal, newWays(w, LegalPaths, opt.Order), rounds); err != nil {
				return nil, err
			}
		}
	}
	b := &Bounds{Any: w.bound(&best)}
	if shortest.value.Cmp(best.value) > 0 {
		b.Shortest = w.bound(&shortest)
	}
	if legal.value.Cmp(best.value) > 0 {
		b.Legal = w.bound(&legal)
	}
	tree := w.isTree()
	for _, x := range b.List() {
		x.Close, x.Tree = rounds > 0 || tree, tree
	}
	return b, nil
}

func (w *network) bound(x *candidate) *Bound {
	load, _ := x.value.Float64()
	return &Bound{Load: load, Exact: x.value, Unit: x.unit, Words: x.words, Certificate: w.certificate(x)}
}

// List returns the bounds that are not nil.
func (b *Bounds) List() (list []*Bound) {
	for _, x := range []*Bound{b.Any, b.Shortest, b.Legal} {
		if x != nil {
			list = append(list, x)
		}
	}
	return list
}
