package rehearse

import (
	"context"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/subnet"
)

// readBack reads all tables, and compares them. Switches that no directed
// route reaches are unread; if any other table cannot be read, it is an error.
func (r *run) readBack(ctx context.Context, c *subnet.Client) error {
	opt := subnet.PullOptions{LFT: true, MFT: r.opt.MFT != nil, SL2VL: r.opt.SL2VL != nil, MaxMLID: mft.MinMLID}
	for _, l := range r.live {
		opt.MaxMLID = max(opt.MaxMLID, l)
	}
	for i := range r.opt.Trees {
		opt.MaxMLID = max(opt.MaxMLID, r.opt.Trees[i].MLID)
	}
	d, err := c.Discover(ctx)
	if err != nil {
		return err
	}
	t, err := c.Pull(ctx, d, opt)
	if err != nil {
		return err
	}
	problems := t.Problems
	if opt.MFT || opt.SL2VL {
		problems = slices.Concat(d.Problems, problems)
	}
	if len(problems) > 0 {
		return fmt.Errorf("tables could not be read: %s", problems[0].String())
	}
	r.compareTables(d.Fabric, t.LFT)
	r.compareLIDs(d.Fabric)
	if opt.SL2VL {
		r.compareMaps(t.SL2VL)
	}
	if opt.MFT {
		r.compareMasks(t.MFT)
	}
	if r.opt.PathSLs != nil {
		return r.comparePaths(ctx, c, d.Fabric)
	}
	return nil
}

// compareTables reports where forwarding tables of g, the
// discovered fabric, differ from ours.
func (r *run) compareTables(g *fabric.Fabric, got *lft.Tables) {
	report := r.report
	highest := max(r.f.MaxLID(), r.t.MaxLID(), got.MaxLID())
	for _, s := range r.f.Switches() {
		found, ok := g.SwitchByGUID(r.f.Node(s).GUID)
		if !ok {
			if report.Unread++; report.Unread <= r.opt.Samples {
				report.UnreadSamples = append(report.UnreadSamples, nameOf(r.f, s))
			}
			continue
		}
		before := report.Differences
		for l := fabric.LID(1); l <= highest; l++ {
			report.Entries++
			ours, theirs := lft.Entry(r.t.Row(s), l), lft.Entry(got.Row(found), l)
			if ours == theirs {
				continue
			}
			if report.Differences++; report.Differences <= r.opt.Samples {
				report.Samples = append(report.Samples, Difference{Switch: r.f.Node(s).GUID, Name: r.f.Name(s), LID: l, Ours: ours, OpenSM: theirs, Labels: r.f.PortLabels(s)})
			}
		}
		if report.Differences == before {
			report.EqualSwitches++
		}
	}
}

// compareLIDs reports end ports with a cable whose LID in g, the discovered
// fabric, is not the intended one. It skips ports that were not found.
func (r *run) compareLIDs(g *fabric.Fabric) {
	twin := r.twin.Fabric
	twin.EndPorts(func(p fabric.PortID) {
		n, num := twin.Owner(p), twin.Num(p)
		if twin.LID(p) == 0 || num != 0 && twin.Peer(p) == fabric.NoPort {
			return
		}
		found, ok := g.NodeByGUID(twin.Node(n).GUID)
		if !ok { // it did not answer
			return
		}
		lid, lmc := g.LID(g.Port(found, num)), g.LMC(g.Port(found, num))
		if lid == twin.LID(p) && lmc == twin.LMC(p) {
			return
		}
		if r.report.WrongLIDs++; r.report.WrongLIDs <= r.opt.Samples {
			real := r.f.LIDPort(twin.LID(p)) // LIDs are the same in the twin
			r.report.LIDSamples = append(r.report.LIDSamples, LIDDifference{Port: r.f.PortName(real), GUID: r.f.PortGUID(real),
				Ours: twin.LID(p), LMC: twin.LMC(p), OpenSM: lid, OpenSMLMC: lmc})
		}
	})
}
