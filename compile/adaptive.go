package compile

import (
	"context"
	"time"

	"github.com/ibweave/ibweave/lft/adaptive"
	"github.com/ibweave/ibweave/verify"
	"github.com/ibweave/ibweave/verify/multipath"
)

// Adaptive is tables with a choice of ports.
type Adaptive struct {
	Tables *adaptive.Tables `json:"-"`
	adaptive.Stats
	// Limit is how many groups a switch may have, and Unlimited how many entries have a choice
	// without a limit.
	Limit       int   `json:"group_limit"`
	Unlimited   int64 `json:"adaptive_without_limit"`
	certificate *verify.Certificate
}

// AddChoices widens the tables of r to adaptive ones, with at most limit groups in a switch, and
// verifies them: findings go to r.Verify. Multicast packets have no part in the proof. Errors:
// a *lft.DomainError for static tables with a credit loop, and ctx's.
func (r *Result) AddChoices(ctx context.Context, limit int) error {
	start := time.Now()
	t, err := adaptive.Widen(ctx, r.Routing)
	if err != nil {
		return err
	}
	a := &Adaptive{Tables: t, Limit: limit, Stats: adaptive.Measure(r.Routing.Fabric, t)}
	a.Unlimited = a.Adaptive
	if a.MaxGroups > limit {
		adaptive.Narrow(t, limit)
		a.Stats = adaptive.Measure(r.Routing.Fabric, t)
	}
	r.Seconds.Route += time.Since(start).Seconds()
	start = time.Now()
	v, err := multipath.Check(ctx, r.Routing.Fabric, t, multipath.Options{SL2VL: r.Routing.SL2VL, PathSLs: r.Routing.PathSLs})
	if err != nil {
		return err
	}
	v.AddTo(r.Verify)
	a.certificate = v.Certificate()
	r.Adaptive = a
	r.Seconds.Verify += time.Since(start).Seconds()
	return nil
}

// Certificate proves that there is no credit loop, whatever ports are chosen; nil without a proof.
func (r *Result) Certificate() *verify.Certificate {
	if r.Adaptive != nil {
		return r.Adaptive.certificate
	}
	return r.Verify.Certificate()
}
