package verify

// Adaptive tables leave a switch a choice of ports for a LID; static tables are the case of one
// port. Whatever the switches choose, does every packet arrive, does none loop, and can the
// channels that packets hold wait for each other in a cycle?
//
// The choices of a switch for a LID depend on the PLFT, which the switch selects by the
// packet's input port and SL, as it does the VL. A node is a switch with a set of its input
// ports, whose packets it treats alike. The choices for a LID make a graph of nodes. One search
// of it, with sets of ports as bits, finds everything to be proven for the LID, in O(nodes x
// ports) for each LID and class of SLs. LIDs behind one switch are searched together if all
// other switches make the same choices for them.
//
// The channel dependency graph has an edge from every channel that some choice takes to every
// channel that the packet may choose next. If it has no cycle, no sequence of choices deadlocks
// (Dally and Seitz 1987). Otherwise there may be an escape. Take all channels that any choice
// brings a packet to, with only their edges to static ports. If this graph has no cycle, packets
// make progress as long as a blocked one is offered its static port again (after Duato, A New
// Theory of Deadlock-Free Adaptive Routing in Wormhole Networks, IEEE TPDS 1993). Under an entry
// whose state is not Free a packet does not choose again: it has edges to all its choices in both
// graphs.

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
)

// AddAdaptive adds choices, the Result of CheckAdaptive, to r, the Result of Check.
func (r *Result) AddAdaptive(choices *Result) {
	r.Adaptive = choices.Adaptive
	r.Add(choices.Findings...)
	r.Leave(choices.Undecided...)
}

// CheckAdaptive checks the adaptive tables of a state for all LIDs of its fabric, with
// its SL-to-VL tables and path SLs. Without path SLs a port may send with any SL that
// its own SL-to-VL table does not drop. Pairs that no cables join, and ports without a
// LID, are left to Check of the static tables. If there are several PLFTs and Select
// is nil, packets may take any PLFT at each switch, and rules with findings are
// undecided.
//
// It takes O(entries), and O(nodes x ports) for each class of SLs and each switch with LIDs
// behind it, or each of these LIDs if other switches choose differently for them. It
// returns an error for tables of another fabric, or ctx's. It sets Adaptive, Findings,
// Undecided (rules whose findings depend on unknown SLs or PLFTs of packets) and the
// Certificate, which covers all choices, and management packets unless they add a credit
// loop. Multicast packets are not followed: a Copying other than Independent, or a Buffer,
// is an error.
func CheckAdaptive(ctx context.Context, s *state.State, opt Options) (*Result, error) {
	switch {
	case opt.Copying != Independent:
		return nil, fmt.Errorf("%s copying is of multicast packets, which a check of adaptive tables does not follow: want %s", opt.Copying, Independent)
	case opt.Buffer != Buffer{}:
		return nil, errors.New("a buffer is held against multicast packets, which a check of adaptive tables does not follow: want none")
	}
	opt.setDefaults()
	r, p, err := checkAdaptive(ctx, s, opt, false)
	if err != nil {
		return nil, err
	}
	if len(p.t.PLFTs) > 1 && p.t.Select == nil {
		r.doubt("there are several PLFTs, and it is not known which packets take which")
	}
	if len(r.Findings) > 0 && len(p.classes) > 1 && p.slsUnknown() {
		certain, _, err := checkAdaptive(ctx, s, opt, true)
		if err != nil {
			return nil, err
		}
		for i := range AdaptiveRules {
			certain.keepDoubts(r, "path SLs are missing, and there are more findings with some than with others", AdaptiveRules[i].Name)
		}
		return certain, nil
	}
	return r, nil
}

// checkAdaptive is CheckAdaptive where packets of unknown SL may have any SL or, if certain is set,
// are left out.
func checkAdaptive(ctx context.Context, s *state.State, opt Options, certain bool) (*Result, *choicePlan, error) {
	p, err := newChoicePlan(s, opt, certain)
	if err != nil {
		return nil, nil, err
	}
	r := &Result{Adaptive: &AdaptiveCounts{}, Findings: []Finding{}}
	union, err := p.run(ctx, false)
	if err != nil {
		return nil, nil, err
	}
	r.Adaptive.count(p, union.all)
	p.reportTroubles(r, union.troubles)
	if !p.prove(r, union.all, true) {
		if err := p.judge(ctx, r, union); err != nil {
			return nil, nil, err
		}
	}
	if !opt.Complete {
		r.leaveUnowned(p.unowned(), AdaptiveDeadEnd, AdaptiveLoop, AdaptiveCreditLoop, ManagementAdaptiveLoop)
	}
	r.updateVerdict()
	return r, p, nil
}

// unowned lists the LIDs with an entry in some PLFT, but on no port.
func (p *choicePlan) unowned() (list []fabric.LID) {
	last := fabric.LID(0)
	for _, t := range p.t.PLFTs {
		last = max(last, t.Ports.MaxLID())
	}
	for lid := fabric.LID(1); lid <= last; lid++ {
		if p.f.LIDPort(lid) == fabric.NoPort && p.hasEntry(lid) {
			list = append(list, lid)
		}
	}
	return list
}

// hasEntry returns true if some switch has an entry for a LID in some PLFT.
func (p *choicePlan) hasEntry(lid fabric.LID) bool {
	for _, t := range p.t.PLFTs {
		for s := range fabric.NodeID(p.n) {
			if lid <= t.Ports.MaxLID() && t.HasEntry(s, lid) {
				return true
			}
		}
	}
	return false
}

// count sets the sizes of the tables and of the graph of all choices.
func (n *AdaptiveCounts) count(p *choicePlan, all *dependencyGraph) {
	n.PLFTs = len(p.t.PLFTs)
	for _, list := range p.t.Groups {
		n.Groups += len(list)
	}
	n.Free, n.HBF = p.t.Count()
	copies := max(1, len(p.copies))
	for _, used := range all.used {
		if used {
			n.Channels += copies
		}
	}
	n.Dependencies, n.VLs = all.Count()*copies, all.vls*copies
}

// slsUnknown returns true if the SL of some path is not known.
func (p *choicePlan) slsUnknown() bool {
	if p.sls == nil {
		return p.hidden
	}
	return slices.ContainsFunc(p.senders, func(x senderGroup) bool { return slices.Contains(x.row[1:], lft.UnknownSL) })
}

// doubt removes all findings, and leaves their rules undecided.
func (r *Result) doubt(reason string) {
	for i := range r.Findings {
		r.leave(reason, r.Findings[i].Rule)
	}
	r.Findings = r.Findings[:0]
	r.updateVerdict()
}
