package capture

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// CheckTables verifies the tables of a state: the static ones, and all paths that adaptive switches
// may choose. With several private LFTs it drops findings about private LFT 0 alone, since packets
// need not stay on that.
func CheckTables(ctx context.Context, s *state.State, opt verify.Options) (*verify.Result, error) {
	r, err := checkTables(ctx, s, opt)
	if err != nil {
		return nil, err
	}
	return r, checkSampled(ctx, s, r, opt)
}

// checkTables is CheckTables without checkSampled.
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
	// The static tables are private LFT 0: Check has already reported LIDs without a port.
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

// NameLane adds to credit loops what is assumed if SL-to-VL tables were not read: one VL for all.
func NameLane(s *state.State, r *verify.Result) {
	if s.SL2VL != nil || s.Engine != "" { // an engine that is known has set up one VL
		return
	}
	for i := range r.Findings {
		x := &r.Findings[i]
		x.Message = strings.Replace(x.Message, " wait for each other; ",
			" wait for each other if all packets are on one VL, which is assumed without SL-to-VL tables (--sl2vl FILE, with --path-sl FILE); ", 1)
	}
}

// GoneFrom returns the port without a cable to which the tables lead a LID; NoPort if they lead
// elsewhere.
func GoneFrom(f *fabric.Fabric, t *lft.Tables, lid fabric.LID) fabric.PortID {
	end := LeadsTo(f, t, lid)
	if end != fabric.NoPort && (f.Peer(end) != fabric.NoPort || f.Num(end) == fabric.ManagementPort) {
		return fabric.NoPort
	}
	return end
}

// BareEnd returns the end port without a LID to which the tables lead a LID; NoPort if they lead
// elsewhere.
func BareEnd(f *fabric.Fabric, t *lft.Tables, lid fabric.LID) fabric.PortID {
	end := LeadsTo(f, t, lid)
	if end != fabric.NoPort && f.Num(end) != fabric.ManagementPort {
		end = f.Peer(end)
	}
	if end == fabric.NoPort || f.LID(end) != 0 {
		return fabric.NoPort
	}
	return end
}

// LeadsTo follows a LID from all switches that have an entry for it. It
// returns the switch port where all ways end, cabled or not, or port 0; NoPort
// if they differ, loop or end at no port.
func LeadsTo(f *fabric.Fabric, t *lft.Tables, lid fabric.LID) fabric.PortID {
	end := fabric.NoPort
	for first := range fabric.NodeID(f.NumSwitches()) {
		s := first
		for n := 0; lft.Entry(t.Row(first), lid) != fabric.NoPath; n++ {
			num := lft.Entry(t.Row(s), lid)
			if num > f.Node(s).NumPorts || n == f.NumSwitches() {
				return fabric.NoPort
			}
			p := f.Port(s, num)
			if next := f.PeerSwitch(p); next != fabric.NoNode {
				s = next
				continue
			}
			if end != fabric.NoPort && end != p {
				return fabric.NoPort
			}
			end = p
			break
		}
	}
	return end
}

const (
	unowned     = ", which no port of the topology has"
	allPorts    = "ibnetdiscover's text of all ports, with their LMC, decides"
	goneOwners  = "a capture with what is gone decides"
	strayOwners = "a capture decides once each port has its own LID again"
)

// nameUnowned adds to reasons of undecided rules the port that tables name for
// a LID that no port has: mostly of a host that was down when the topology was
// read. If the tables lead such a LID to a port without a cable, its finding
// becomes a warning that the owner is gone.
func nameUnowned(s *state.State, r *verify.Result) {
	owners := make(map[string]string) // by "LID 5"
	for i := range s.Problems {
		if what, port, ok := strings.Cut(s.Problems[i].Message, " belongs to no port of the fabric, here to "); ok {
			owners[what] = fabric.Printable(port)
		}
	}
	known, stray := true, false // all ports of such LIDs are gone or lack a LID; some lack one
	for i := range r.Findings {
		x := &r.Findings[i]
		if x.Rule != verify.StaleEntry || !x.IsRest() && s.Fabric.LIDPort(x.LID) != fabric.NoPort {
			continue
		}
		end := fabric.NoPort
		if !x.IsRest() {
			end = GoneFrom(s.Fabric, s.Tables, x.LID)
		}
		if end == fabric.NoPort {
			bare := !x.IsRest() && BareEnd(s.Fabric, s.Tables, x.LID) != fabric.NoPort
			known, stray = known && bare, stray || bare
			continue
		}
		what := fmt.Sprintf("LID %d", x.LID)
		who, look := "what had "+what, "at it"
		if owner := owners[what]; owner != "" {
			who, look = fmt.Sprintf("%s (%s)", owner, what), "at the host"
			if guid, name, ok := strings.Cut(owner, " "); ok {
				who = fmt.Sprintf("%q %s (%s)", strings.Trim(name, "'"), guid, what)
			}
		}
		x.Severity = verify.Warning
		x.Message = fmt.Sprintf("%s is gone: the tables lead to %s, which has no cable; look %s and its cable, and capture again once it is up",
			who, s.Fabric.PortName(end), look)
	}
	for i := range r.Undecided {
		u := &r.Undecided[i]
		if what, _, ok := strings.Cut(strings.TrimPrefix(u.Reason, "there are forwarding entries for "), unowned); ok && owners[what] != "" {
			u.Reason = strings.Replace(u.Reason, what+unowned, what+" of "+owners[what]+unowned, 1)
		}
		if known && stray {
			u.Reason = strings.Replace(u.Reason, allPorts, strayOwners, 1)
		} else if known {
			u.Reason = strings.Replace(u.Reason, allPorts, goneOwners, 1)
		}
	}
}
