package verify

import (
	"fmt"

	"github.com/ibweave/ibweave/verify/bound"
)

// A load more than farAbove above a bound, as a share of the bound, is a note. More than
// muchAbove is a warning in trees (elsewhere the cost of few lanes may explain the load). For 45
// fabrics as operators have them, the best engine is at most 16 % above the bound, and 0 % in the
// median.
const farAbove, muchAbove = 0.25, 0.5

// CompareBounds sets r.Bound to the greatest bound for each kind of paths, the first among equals.
// Without a bound it does nothing. It adds a finding if the load is far above a bound that is
// Close, see bound.Bound. The bound for shortest paths does not count for tables with longer paths.
func (r *Result) CompareBounds(list ...*bound.Bound) {
	b := &LoadBound{Load: r.GreatestLoad(), Bounds: []LowerBound{}}
	that := ""
	if r.scale.Differ {
		b.Fastest, that = r.scale.Fastest.String(), "that of "
	}
	for paths := bound.AnyPaths; paths <= bound.LegalPaths; paths++ {
		var best *bound.Bound
		for _, x := range list {
			if x.Certificate.Paths == paths && (best == nil || x.Exact.Cmp(best.Exact) > 0) {
				best = x
			}
		}
		if best == nil || len(b.Bounds) > 0 && best.Exact.Cmp(b.Bounds[0].Exact) <= 0 {
			continue
		}
		x := LowerBound{Paths: paths.String(), Least: best.Load, Exact: best.Exact, Unit: best.Unit, Witness: best.Words, Close: best.Close, tree: best.Tree}
		if b.Load > 0 {
			x.Above = b.Load/best.Load - 1
		}
		b.Bounds = append(b.Bounds, x)
	}
	if len(b.Bounds) == 0 {
		return
	}
	r.Bound = b
	x := &b.Bounds[0]
	for i := range b.Bounds[1:] {
		if y := &b.Bounds[i+1]; y.Paths == bound.ShortestPaths.String() && r.Unicast.NonMinimal == 0 {
			x = y
		}
	}
	if x.Close && x.Above > farAbove {
		severity := Note
		if x.Above > muchAbove && x.tree {
			severity = Warning
		}
		r.Add(Finding{Rule: FarFromBound, Severity: severity, Count: int64(b.Load - x.Least),
			Message: fmt.Sprintf("the greatest load of a cable is %s%s, %s the proven bound of %s", that, b.LoadText(), x.AboveText(), LoadText(x.Exact))})
	}
}

// GreatestLoad is the greatest relative load, see LoadBound; 0 if a pair is not delivered.
func (r *Result) GreatestLoad() float64 {
	switch m := r.Balance.MaxRelative; {
	case r.Unicast.Unreachable+r.Unicast.Loops > 0:
		return 0
	case m != nil:
		return m.Load
	}
	return float64(r.Balance.MaxRoutes)
}

// Scale returns the scale of the fabric's relative loads.
func (r *Result) Scale() bound.Scale { return r.scale }

// LoadOn returns the greatest relative load of delivered routes on scale s, or on the fabric's own
// scale if s knows no rate.
func (r *Result) LoadOn(s bound.Scale) (most float64) {
	s = s.Or(r.scale)
	for _, x := range r.busiest {
		most = max(most, s.Load(x.Routes, x.Link))
	}
	return most
}
