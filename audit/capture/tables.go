package capture

import (
	"context"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// CheckTables verifies the tables of a state: the static ones, and what packets can come to by
// any choice of adaptive switches. With several private LFTs no packet needs to take number 0 all
// the way: what is wrong with it alone is not said then.
func CheckTables(ctx context.Context, s *state.State, opt verify.Options) (*verify.Result, error) {
	r, err := checkTables(ctx, s, opt)
	if err != nil {
		return nil, err
	}
	return r, checkSampled(ctx, s, r, opt)
}

// checkTables is CheckTables without what is undecided by a sample.
func checkTables(ctx context.Context, s *state.State, opt verify.Options) (*verify.Result, error) {
	r, err := verify.Check(ctx, s, opt)
	if err != nil {
		return nil, err
	}
	nameUnowned(s, r)
	if r.Add(verify.CheckHosts(s.Fabric, s.Tables)...); s.Adaptive == nil {
		return r, nil
	}
	if _, static := s.Source(state.ForwardingTables); static {
		r.Add(verify.CompareStatic(s.Fabric, s.Adaptive, s.Tables, 0)...)
	}
	if len(s.Adaptive.PLFTs) > 1 {
		alone := append(slices.Clone(verify.UnicastRules), verify.LaneRules...)
		r.Edit(func(list []verify.Finding) []verify.Finding {
			return slices.DeleteFunc(list, func(f verify.Finding) bool { return slices.Contains(alone, f.Rule) })
		})
	}
	// The static ports are those of number 0: Check has told of LIDs without a port.
	opt.Complete = opt.Complete || len(s.Adaptive.PLFTs) == 1
	opt.Copying, opt.Buffer = verify.Independent, verify.Buffer{} // those are of multicast packets
	choices, err := verify.CheckAdaptive(ctx, s, opt)
	if err != nil {
		return nil, err
	}
	r.AddAdaptive(choices)
	r.Add(verify.CheckAdaptiveTables(s.Fabric, s.Adaptive, 0)...)
	return r, nil
}

// nameUnowned adds to the reasons why a LID without a port leaves rules undecided which port the tables name: a host that was
// down when the topology was read, mostly.
func nameUnowned(s *state.State, r *verify.Result) {
	for i := range s.Problems {
		what, port, _ := strings.Cut(s.Problems[i].Message, " belongs to no port of the fabric, here to ")
		for k := range r.Undecided {
			if u := &r.Undecided[k]; port != "" && strings.Contains(u.Reason, " "+what+", which no port of the topology has") {
				u.Reason = strings.Replace(u.Reason, what+", which no", what+" of "+fabric.Printable(port)+", which no", 1)
			}
		}
	}
}
