package compile

import (
	"context"
	"time"

	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// Adaptive is tables that leave a choice of ports, and their measures.
type Adaptive struct {
	Tables *adaptive.Tables `json:"-"`
	adaptive.Stats
	// Limit is the default size of a switch's group table, in groups.
	Limit       int `json:"group_limit"`
	certificate *verify.Certificate
}

// AddChoices adds a choice of ports to the static tables of r, verifies the result and sets
// r.Adaptive. Findings go to r.Verify, also for each switch that needs more groups than a
// default group table has. The proof covers unicast packets only. Errors: a
// *lft.DomainError for static tables with a credit loop, and ctx's.
func (r *Result) AddChoices(ctx context.Context) error {
	start := time.Now()
	t, err := adaptive.Widen(ctx, r.Routing)
	if err != nil {
		return err
	}
	a := &Adaptive{Tables: t, Limit: adaptive.DefaultGroups, Stats: adaptive.Measure(r.Routing.Fabric, t)}
	r.Seconds.Route += time.Since(start).Seconds()
	start = time.Now()
	v, err := verify.CheckAdaptive(ctx, &state.State{Fabric: r.Routing.Fabric, Adaptive: t, SL2VL: r.Routing.SL2VL, PathSLs: r.Routing.PathSLs}, verify.Options{})
	if err != nil {
		return err
	}
	r.Verify.AddAdaptive(v)
	if a.MaxGroups > a.Limit {
		for _, x := range verify.CheckAdaptiveTables(r.Routing.Fabric, t, 0) {
			if x.Rule == verify.AdaptiveManyGroups {
				r.Verify.Add(x)
			}
		}
	}
	a.certificate = v.Certificate()
	r.Adaptive = a
	r.Seconds.Verify += time.Since(start).Seconds()
	return nil
}

// Certificate returns the proof that there is no credit loop, whatever ports the switches
// choose; nil if there is no such proof.
func (r *Result) Certificate() *verify.Certificate {
	if r.Adaptive != nil {
		return r.Adaptive.certificate
	}
	return r.Verify.Certificate()
}
