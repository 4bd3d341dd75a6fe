// Package verify proves or disproves forwarding tables: does every port reach
// every LID, do packets loop, and can the channels that they hold wait for
// each other in a cycle? It works on the tables alone and knows no engine.
// Clean tables come with a Certificate that anybody can check again in linear
// time. It is part of the supported Go API.
//
// For one destination LID each switch has one entry, which leads to one next
// switch, so the switches are a forest. Pairs of ports need not be walked one
// by one: the forest of each LID is ordered once, and counts of sources flow
// down it. This takes O(switches x LIDs) in all, whatever the number of ports.
//
// The channel dependency graph is that of Dally and Seitz (Deadlock-free
// message routing in multiprocessor interconnection networks, IEEE Trans.
// Computers 1987), for pairs that arrive, from the source's channel into the
// first switch on.
package verify

import (
	"context"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
)

// Check examines the tables of a state, with a row for each switch by NodeID, for all
// LIDs of its fabric, and the multicast tables, if there are any. It takes O(switches
// x LIDs). If SL-to-VL tables differ between ports, or paths have SLs, it takes that
// for each class of SLs that paths have. A class is SLs with equal VLs everywhere.
// Besides memory for each channel it needs up to five bytes for each pair of
// switches, less where that would exceed 256 MB.
//
// If path SLs are unknown, a first check lets those paths have any SL. If findings may depend on
// that, a second check leaves these paths out. Check returns the findings of the second check;
// rules with more findings in the first are undecided. If a sender's own table drops some SLs but
// not all, its paths of unknown SL leave the rules of dropped SLs undecided.
//
// A pair of a port and a LID is delivered if packets of every SL that it may have arrive. A pair is
// unreachable if the forwarding tables lead to the LID but an SL-to-VL table on the way has VL 15.
// Only packets that arrive make dependencies.
//
// For an MLID without a tree, or without senders in its trees, Check assumes that every end port in
// its masks sends and receives, on SL 0. If there are any trees, this leaves the rules of multicast
// undecided.
//
// Errors are tables of another fabric and ctx's; faults of the tables are in the Result.
func Check(ctx context.Context, s *state.State, opt Options) (*Result, error) {
	opt.setDefaults()
	r, l, err := checkStatic(ctx, s, opt, false)
	if err != nil {
		return nil, err
	}
	if l.doubts(r) {
		certain, _, err := checkStatic(ctx, s, opt, true)
		if err != nil {
			return nil, err
		}
		l.leaveDoubts(r, certain)
		r = certain
	}
	r.Leave(l.mayDrop()...)
	return r, nil
}

// checkStatic is Check in which paths of unknown SL have any SL, or are left out if certain is set.
func checkStatic(ctx context.Context, s *state.State, opt Options, certain bool) (*Result, *lanes, error) {
	f, t := s.Fabric, s.Tables
	if err := lft.CheckFabric(f, t, nil, nil); err != nil {
		return nil, nil, err
	}
	if len(f.CAPorts()) > maxSources {
		return nil, nil, fmt.Errorf("%d CA ports, at most %d can be checked: %w", len(f.CAPorts()), maxSources, fabric.ErrTooLarge)
	}
	var l *lanes
	if s.SL2VL != nil {
		var err error
		if l, err = newLanes(s, nil, slsOf(s.Multicast), certain); err != nil {
			return nil, nil, err
		}
	}
	if s.Multicast != nil {
		if err := checkPlan(s.Multicast, f); err != nil {
			return nil, nil, err
		}
	}
	p := newPlan(f, t, l)
	w, err := p.run(ctx, opt)
	if err != nil {
		return nil, nil, err
	}
	r := Unverified(f)
	var mc *mcPlan
	if s.Multicast != nil {
		mc = newMulticast(p, s.Multicast, opt.Copying, s.MFTCapacity)
		if err := mc.run(ctx, opt); err != nil {
			return nil, nil, err
		}
	}
	idle := p.summarize(r, w)
	unicast, all := p.graphs(w)
	loops := p.findCreditLoops(r, unicast, all, mc, w)
	p.report(r, w, opt)
	if mc != nil {
		mc.report(r, opt)
	}
	if s.LostRows {
		p.leaveGap(r, w.gap)
	}
	opt.Buffer.report(r)
	reportIdle(r, p.f, p.t, idle, s.Order, true)
	if err := p.reportCreditLoops(r, loops, mc, opt, s, certain); err != nil {
		return nil, nil, err
	}
	r.updateVerdict()
	return r, l, nil
}

// sensitive lists the rules whose findings depend on the SLs of paths.
var sensitive = []string{SLDropped, CreditLoop, MulticastCreditLoop, ManagementSLDropped, ManagementCreditLoop}

// doubts returns true if paths of unknown SL may have caused findings of r.
func (l *lanes) doubts(r *Result) bool {
	return l != nil && (len(l.classes) > 1 || len(l.copies) > 1) && (l.sls == nil && l.hidden || l.sls != nil && l.unknown() > 0) &&
		slices.ContainsFunc(sensitive, func(rule string) bool { return countFindings(r.Findings, rule) > 0 })
}

// mayDrop lists the rules that are undecided since paths of unknown SL may have an SL that the
// sender's own table drops.
func (l *lanes) mayDrop() []Undecided {
	if l == nil || l.sls != nil && l.unknown() == 0 {
		return nil
	}
	missing := func(s fabric.NodeID, port fabric.PortID) bool {
		return l.sls == nil || l.unknownOf(l.slsFrom(port, s)) > 0
	}
	of := func(rule string, port fabric.PortID) Undecided {
		return Undecided{Rule: rule, Reason: fmt.Sprintf("the SLs of paths from %s are missing, and its SL-to-VL table drops some", l.f.PortName(port))}
	}
	dropsSome := func(m *lft.VLMap) bool {
		return slices.Contains(m[:], lft.DropVL) && *m != lft.ConstantVL(lft.DropVL) // dropping all is a finding
	}
	var list []Undecided
	for i, port := range l.f.CAPorts() {
		s := l.f.CASwitches()[i]
		if s != fabric.NoNode && dropsSome(l.sl2vl.At(0, port)) && missing(s, port) {
			list = append(list, of(SLDropped, port))
			break
		}
	}
	for in, out := range l.sl2vl.PortPairs() {
		s := l.f.Owner(out)
		if in == fabric.ManagementPort && l.f.IsSwitch(s) && dropsSome(l.sl2vl.At(in, out)) && missing(s, l.f.PortBase(s)) {
			return append(list, of(ManagementSLDropped, l.f.PortBase(s)))
		}
	}
	return list
}

// unknown counts the paths of unknown SL: those from switches, and those from source ports with
// their own row in the path SLs.
func (l *lanes) unknown() (n int64) {
	for _, s := range l.f.Switches() {
		n += l.unknownOf(l.sls.Given(s))
	}
	for _, port := range l.sls.Ports() {
		n += l.unknownOf(l.sls.PortRow(port))
	}
	return n
}

// unknownOf counts the paths of unknown SL in one row.
func (l *lanes) unknownOf(row []fabric.SL) (n int64) {
	for lid := fabric.LID(1); lid <= l.f.MaxLID(); lid++ {
		if row[lid] == lft.UnknownSL && l.f.LIDPort(lid) != fabric.NoPort {
			n++
		}
	}
	return n
}

// leaveDoubts leaves rules undecided in certain that have more findings in the Result named any,
// for which paths of unknown SL may have any SL.
func (l *lanes) leaveDoubts(any, certain *Result) {
	reason := "path SLs are missing, and there are findings with some and none with others"
	if l.sls != nil {
		reason = fmt.Sprintf("the SLs of %d paths from a switch or port to a LID are missing, and there are more findings with some than with others", l.unknown())
	}
	certain.keepDoubts(any, reason, sensitive...)
}

// summarize sets the numbers of pairs and routes. It returns the channels between switches without
// routes.
func (p *plan) summarize(r *Result, w *worker) (idle []fabric.PortID) {
	r.Unicast.Pairs, r.Management.Pairs = countPairs(p.f)
	caLIDs, switchLIDs := countLIDs(p.f)
	for i, port := range p.f.CAPorts() {
		if p.f.CASwitches()[i] != fabric.NoNode {
			continue
		}
		// A CA cabled to a CA reaches only the LIDs at the other end.
		peer := lidsOf(p.f, p.f.Peer(port))
		if p.mute(port) {
			peer = 0
		}
		w.delivered[0] += peer
		w.apart[0] += caLIDs - lidsOf(p.f, port) - lidsOf(p.f, p.f.Peer(port))
		w.apart[1] += switchLIDs
		r.Unicast.Unreachable += lidsOf(p.f, p.f.Peer(port)) - peer
	}
	r.Unicast.Unreachable += w.apart[0]
	r.Management.Unreachable += w.apart[1]
	var pairs [numTallies]int64
	for i := range w.troubles {
		for k, t := range w.troubles[i].tallies {
			pairs[k] += t.pairs
		}
	}
	r.Unicast.Unreachable += pairs[tallyUnreachable] + pairs[tallyMisdelivered] + pairs[tallyDropped]
	r.Unicast.Misdelivered, r.Unicast.Loops = pairs[tallyMisdelivered], pairs[tallyLoops]
	r.Management.Unreachable += pairs[tallyManagementUnreachable] + pairs[tallyManagementDropped]
	r.Management.Loops = pairs[tallyManagementLoops]
	r.Unicast.setHops(w.delivered)
	r.Unicast.NonMinimal, r.Unicast.MaxDetour = w.nonMinimal, int(w.stretch.extra)
	return countBalance(r, p.f, func(port fabric.PortID) int64 { return int64(*w.own.routes(int(port))) })
}
