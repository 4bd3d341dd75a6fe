package capture

import (
	"context"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// checkSampled marks rules undecided if path SLs were sampled: those without findings, but with some
// if any path may have any SL. It adds a finding for each sampled part of a state, if this leaves a
// rule undecided or packets use several VLs. Errors are those of checkTables.
func checkSampled(ctx context.Context, s *state.State, r *verify.Result, opt verify.Options) error {
	matters := r.CreditLoops.VLs > 1
	if s.Sampled[state.SLsOfPaths] != "" {
		other := *s
		other.PathSLs, other.UnknownSLs = nil, false // any SL
		any, err := checkTables(ctx, &other, opt)
		if err != nil {
			return err
		}
		rules := append(slices.Clone(verify.LaneRules), verify.MulticastCreditLoop)
		for _, rule := range append(rules, text.Each(verify.AdaptiveRules, func(r verify.Rule) string { return r.Name })...) {
			of := func(x verify.Finding) bool { return x.Rule == rule }
			if slices.ContainsFunc(any.Findings, of) && !slices.ContainsFunc(r.Findings, of) {
				matters = true
				r.Leave(verify.Undecided{Rule: rule, Reason: fmt.Sprintf("path SLs were sampled, and there are findings with other SLs: %s", s.Sampled[state.SLsOfPaths])})
			}
		}
	}
	for _, p := range []state.Part{state.SL2VLTables, state.SLsOfPaths} {
		if matters && s.Sampled[p] != "" {
			rule, _ := verify.FindRule(SampledTables, Rules)
			r.Add(verify.Finding{Rule: rule.Name, Severity: rule.Severity, Message: s.Sampled[p], Count: 1, Witness: []verify.Hop{}, Fingerprint: Fingerprint(string(p), 1)})
		}
	}
	return nil
}
