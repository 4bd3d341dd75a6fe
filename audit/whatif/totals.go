package whatif

import (
	"github.com/ibweave/ibweave/audit/groups"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/verify"
)

// Totals sum up a Result.
type Totals struct {
	// How many failures lose pairs, take pairs away, are refused by the engine, have more credit
	// loops than before, and were routed from scratch.
	Lost              int `json:"failures_with_lost_pairs"`
	Gone              int `json:"failures_with_gone_pairs"`
	Refused           int `json:"failures_refused"`
	CreditLoops       int `json:"failures_with_credit_loops"`
	RoutedFromScratch int `json:"failures_routed_from_scratch"`
	// How many failures cut hosts off until tables are written, how many for good, and the most
	// hosts that one cuts off.
	Away       int `json:"failures_with_hosts_until_written"`
	CutOff     int `json:"failures_with_hosts_cut_off"`
	MaxAway    int `json:"max_hosts_until_written"`
	MaxCutOff  int `json:"max_hosts_cut_off"`
	StepTotals `json:"first_step"`
	Last       StepTotals `json:"last_step"`          // without RoutedFromScratch
	Trivial    int        `json:"failures_trivial"`   // see Case.Trivial
	Cut        int64      `json:"trivial_gone_pairs"` // most pairs that a trivial failure cuts off
	// Groups has the most that each group in Before.Groups loses.
	Groups []groups.Worst `json:"host_groups,omitempty"`
}

// StepTotals sum up steps.
type StepTotals struct {
	MaxRoutes int64 `json:"max_routes_per_link"` // on the most loaded channel after any failure
	// MaxRelative is the greatest Step.MaxRelative.
	MaxRelative float64 `json:"max_relative_load,omitempty"`
	MeanBlocks  float64 `json:"mean_blocks"` // that a subnet manager has to write
	MaxBlocks   int     `json:"max_blocks"`
	steps       int
}

func (t *StepTotals) add(s *Step) {
	t.MaxRoutes, t.MaxRelative = max(t.MaxRoutes, s.MaxRoutes), max(t.MaxRelative, s.MaxRelative)
	t.MeanBlocks += (float64(s.Blocks) - t.MeanBlocks) / float64(t.steps+1)
	t.MaxBlocks = max(t.MaxBlocks, s.Blocks)
	t.steps++
}

// Totals sums up all cases.
func (r *Result) Totals() (t Totals) {
	count := func(n *int, yes bool) {
		if yes {
			*n++
		}
	}
	t.Groups = text.Each(r.Before.Groups, func(x groups.State) groups.Worst {
		return groups.Worst{Name: x.Name, Hosts: x.Hosts, AllLinks: x.Uplinks}
	})
	for i := range r.Cases {
		c := &r.Cases[i]
		if c.Groups != nil {
			groups.Add(t.Groups, c.Groups, c.Names())
		}
		count(&t.Lost, c.Lost > 0)
		count(&t.Gone, c.Gone > 0)
		count(&t.Refused, c.Refused != "")
		count(&t.CreditLoops, c.CreditLoops > r.Before.CreditLoops)
		count(&t.RoutedFromScratch, c.RoutedFromScratch)
		if h := c.Hosts; h != nil {
			count(&t.Away, h.UntilWritten != nil)
			count(&t.CutOff, h.CutOff != nil)
			t.MaxAway, t.MaxCutOff = max(t.MaxAway, len(h.UntilWritten)), max(t.MaxCutOff, len(h.CutOff))
		}
		t.add(&c.Step)
		if c.Last != nil {
			t.Last.add(c.Last)
		}
		if c.Trivial(&r.Before) {
			t.Trivial++
			t.Cut = max(t.Cut, c.Gone)
		}
	}
	return t
}

// Worst returns how bad the worst case is: a credit loop that was not there before and a fabric
// that the engine refuses are errors, lost pairs are warnings.
func (r *Result) Worst() verify.Severity {
	switch t := r.Totals(); {
	case t.Refused > 0 || t.CreditLoops > 0:
		return verify.Error
	case t.Lost > 0:
		return verify.Warning
	}
	return verify.Clean
}
