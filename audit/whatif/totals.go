package whatif

import "github.com/ibweave/ibweave/verify"

// Totals sum up a Result.
type Totals struct {
	Lost, Gone, Refused, CreditLoops, RoutedFromScratch int     // failures with some; CreditLoops with more than before
	MaxRoutes, FromScratch                              int64   // on the most loaded channel after any failure
	MeanBlocks                                          float64 // that a subnet manager has to write
	MaxBlocks                                           int
	Trivial                                             int   // failures, see Case.Trivial
	Cut                                                 int64 // most pairs that one of these cuts off
}

// Totals sums up all cases.
func (r *Result) Totals() (t Totals) {
	count := func(n *int, yes bool) {
		if yes {
			*n++
		}
	}
	for i := range r.Cases {
		c := &r.Cases[i]
		count(&t.Lost, c.Lost > 0)
		count(&t.Gone, c.Gone > 0)
		count(&t.Refused, c.Refused != "")
		count(&t.CreditLoops, c.CreditLoops > r.Before.CreditLoops)
		count(&t.RoutedFromScratch, c.RoutedFromScratch)
		t.MaxRoutes = max(t.MaxRoutes, c.MaxRoutes)
		if c.FromScratch != nil {
			t.FromScratch = max(t.FromScratch, *c.FromScratch)
		}
		t.MeanBlocks += float64(c.Blocks) / float64(len(r.Cases))
		t.MaxBlocks = max(t.MaxBlocks, c.Blocks)
		if c.Trivial(&r.Before) {
			t.Trivial++
			t.Cut = max(t.Cut, c.Gone)
		}
	}
	return t
}

// Worst is how bad the worst case is: a credit loop that was not there before and a
// fabric that the engine refuses are errors, lost pairs are warnings.
func (r *Result) Worst() verify.Severity {
	switch t := r.Totals(); {
	case t.Refused > 0 || t.CreditLoops > 0:
		return verify.Error
	case t.Lost > 0:
		return verify.Warning
	}
	return verify.Clean
}
