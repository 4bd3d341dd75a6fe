package capture

import (
	"context"

	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// Check verifies the tables of a state, if it has any, on the fabric of
// SettleLIDs. It adds findings about problems in its files, and the rules that
// these leave undecided.
func Check(ctx context.Context, s *state.State, opt verify.Options) (*verify.Result, error) {
	settled := *s
	var twice []verify.Finding
	settled.Fabric, twice = SettleLIDs(s)
	s = &settled
	r := verify.Unverified(s.Fabric)
	if s.Tables != nil {
		var err error
		if r, err = CheckTables(ctx, s, opt); err != nil {
			return nil, err
		}
	}
	r.Add(Findings(s.Fabric, s.Problems)...)
	r.Add(twice...)
	r.Add(TableFindings(s.Problems)...)
	r.Leave(Undecided(s.Undecided, Asked{Tables: s.Tables != nil, Multicast: s.Multicast != nil})...)
	return r, nil
}
