package multistage

import (
	"fmt"
	"testing"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/short"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/routing/banyan"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// phaseOne is a group for each place that Phase 1 may put f copies in, "region 4-8" for
// the processors 4 to 8: by the MLID of one any processor can begin a two-phase multicast
// to f destinations, and the second phase takes unicast tables only.
func phaseOne(w *banyan.Network, f int, p Placement) []mft.Group {
	count, step := p.Places(w.Stages, f)
	groups := make([]mft.Group, count)
	addresses := make([]int, f)
	for k := range groups {
		name := fmt.Sprintf("region %d-%d", k*step, (k*step+f-1)&(w.Size()-1))
		for l := range addresses {
			addresses[l] = (k*step + l) & (w.Size() - 1)
			if p == EarlyCopies {
				addresses[l] = k + l*(w.Size()/f)
				name = fmt.Sprintf("every %d from %d", w.Size()/f, k)
			}
		}
		groups[k] = w.Group(name, addresses...)
	}
	return groups
}

// TestPhaseOneInTables has the groups that a two-phase multicast of any node begins with as
// trees, which verify finds exact, and the second phase by unicast tables on links of its own.
func TestPhaseOneInTables(t *testing.T) {
	f := short.Must(banyan.Banyan(4, true))(t)
	f = short.Must(lft.AssignLIDs(f, lft.LIDOptions{}))(t)
	r := short.Must(banyan.Engine{}.Route(t.Context(), f, lft.Options{}))(t)
	w := short.Must(banyan.Detect(r.Fabric))(t)
	for _, tt := range []struct {
		copies int
		p      Placement
		count  int
		name   string // of the last
	}{
		{5, RandomStart, 12, "region 11-15"}, {5, AlignedStart, 2, "region 8-12"},
		{4, EarlyCopies, 4, "every 4 from 3"},
	} {
		groups := phaseOne(w, tt.copies, tt.p)
		if len(groups) != tt.count || groups[len(groups)-1].Name != tt.name {
			t.Fatalf("%v: %d groups, the last %q, want %d and %q", tt.p, len(groups), groups[len(groups)-1].Name, tt.count, tt.name)
		}
		p := short.Must(banyan.RegionTree{}.Build(t.Context(), r, groups, mft.Options{}))(t)
		v := short.Must(verify.Check(t.Context(), &state.State{Fabric: r.Fabric, Tables: r.Tables, SL2VL: r.SL2VL, PathSLs: r.PathSLs, Multicast: &mft.Plan{Tables: p.Tables, Trees: p.Trees}}, verify.Options{}))(t)
		if m := v.Multicast; m.Missing+m.Duplicates+m.Loops+m.Stray+m.CreditLoops != 0 || v.Verdict == verify.VerdictErrors {
			t.Fatalf("%v: %+v, %+v", tt.p, m, v.Findings)
		}
		if tt.p == EarlyCopies {
			continue // TwoPhase has regions
		}
		_, step := tt.p.Places(4, tt.copies)
		for _, x := range p.Trees {
			s := short.Must(TwoPhase(4, 5, []int{0, 3, 6, 11, 13}, x.Group*step))(t)
			checkApart(t, w, r, s)
		}
	}
}

// checkApart holds that the packets of Phase 2 share no link in the tables.
func checkApart(t *testing.T, w *banyan.Network, r *lft.Routing, s *Schedule) {
	t.Helper()
	f := r.Fabric
	taken := map[fabric.PortID]bool{}
	for _, send := range s.Sends {
		lid := f.LID(w.Inputs[send.To])
		for at := f.Peer(w.Outputs[send.From]); at != w.Inputs[send.To]; {
			out := f.Port(f.Owner(at), r.Tables.Row(f.Owner(at))[lid])
			if taken[out] {
				t.Fatalf("%v has a link twice, %s", s, f.PortName(out))
			}
			taken[out] = true
			at = f.Peer(out)
		}
	}
}
