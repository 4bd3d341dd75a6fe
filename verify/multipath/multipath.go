// Package multipath proves or disproves adaptive tables, in which a switch has a choice of
// ports: whatever the switches choose, does every packet arrive, does none loop, and can the
// channels that packets hold wait for each other in a cycle. It makes no promise to other
// modules.
//
// What a switch may do with a packet for a LID depends on the PLFT, which follows from the
// packet's input port and SL, as its VL does. A node is a switch with the input ports whose
// packets it treats alike. The choices for a LID make a graph of the nodes, and all that is
// to be proven of a LID is found in one search of this graph, by sets of ports as bits:
// O(nodes x ports) for each LID and class of SLs. LIDs behind one switch for which all
// others make the same choices are searched once.
//
// The channel dependency graph has an edge from every channel by which some choice brings a
// packet to every channel that it may choose next. It has no cycle, then no sequence of
// choices deadlocks (Dally and Seitz 1987). It has one, then there may be an escape: if
// the graph of the edges to static ports alone, from every channel by which any choice
// brings a packet, has no cycle, packets get on as long as a blocked one is offered its
// static port again (after Duato, A New Theory of Deadlock-Free Adaptive Routing in Wormhole
// Networks, IEEE TPDS 1993). A packet of a state other than Free does not choose again: it
// has edges to all its choices in both graphs.
package multipath

import (
	"cmp"
	"context"
	"slices"

	"github.com/ibweave/ibweave/internal/par"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// Options are the choices of Check.
type Options struct {
	// Workers is how many goroutines share the work; 0 for one on each CPU. The result does
	// not depend on it.
	Workers int
	// Witnesses bounds the credit loops that are shown, and Findings the findings for each
	// rule; 0 for the defaults of verify.
	Witnesses, Findings int
}

// Result is what Check found. Where the SLs or the PLFTs of packets are not known, findings
// that depend on them are not among Findings: their rules are undecided.
type Result struct {
	Counts    verify.AdaptiveCounts
	Findings  []verify.Finding // sorted by rule and LID; never nil
	Undecided []verify.Undecided
	proof     *proof // nil if all choices together have a credit loop
}

// AddTo adds the findings and counts to those of verify.Check.
func (r *Result) AddTo(v *verify.Result) {
	v.Adaptive = &r.Counts
	v.Add(r.Findings...)
	v.Leave(r.Undecided...)
}

// Check examines the adaptive tables of a state for all LIDs of its fabric, with its SL-to-VL tables
// and path SLs. Without path SLs a port may send with any SL that its own SL-to-VL table does not
// drop. What is wrong with pairs that no cables join, and with ports without a LID, verify.Check of
// the static tables tells. Where Select is nil and there are several PLFTs, packets may take at each
// switch any of those that it has; if that does harm it is undecided.
//
// It takes O(entries) time, and O(nodes x ports) for each class of SLs and each switch with
// LIDs behind it, or for each LID of these where the choices of other switches differ. It
// returns an error when the tables are not of this fabric and when ctx ends; whatever is
// wrong with the tables is in the Result.
func Check(ctx context.Context, s *state.State, opt Options) (*Result, error) {
	opt.Witnesses = cmp.Or(max(opt.Witnesses, 0), verify.DefaultWitnesses)
	opt.Findings = cmp.Or(max(opt.Findings, 0), verify.DefaultFindings)
	r, p, err := check(ctx, s, opt, false)
	if err != nil {
		return nil, err
	}
	if len(p.t.PLFTs) > 1 && p.t.Select == nil {
		r.doubt("there are several PLFTs, and it is not known which packets take which")
	}
	if len(r.Findings) > 0 && len(p.classes) > 1 && p.slsUnknown() {
		certain, _, err := check(ctx, s, opt, true)
		if err != nil {
			return nil, err
		}
		certain.keepDoubts(r)
		return certain, nil
	}
	return r, nil
}

// check is Check in which packets of unknown SL have any, or with certain there are none.
func check(ctx context.Context, s *state.State, opt Options, certain bool) (*Result, *plan, error) {
	p, err := newPlan(s, opt, certain)
	if err != nil {
		return nil, nil, err
	}
	r := &Result{Findings: []verify.Finding{}}
	union, err := p.run(ctx, false)
	if err != nil {
		return nil, nil, err
	}
	level := union.all.levels()
	r.count(p, union.all)
	p.reportTroubles(r, union.troubles)
	if level != nil {
		r.proof = &proof{union.all, level, true}
	} else if err := p.judge(ctx, r, union); err != nil {
		return nil, nil, err
	}
	return r, p, nil
}

// found is what the workers found together.
type found struct {
	unicast, all *cdg // of pairs of CA ports, and of all
	troubles     []trouble
}

// run looks at all LIDs. With escape the dependencies are those on static ports.
func (p *plan) run(ctx context.Context, escape bool) (*found, error) {
	u := &found{unicast: newCDG(p), all: newCDG(p)}
	workers, err := par.ForEachWith(ctx, p.opt.Workers, len(p.units),
		func() *worker { return newWorker(p, u.unicast, u.all, escape) },
		func(w *worker, i int) error {
			w.unit(p.units[i])
			return nil
		})
	if err != nil {
		return nil, err
	}
	u.all.union(u.unicast)
	for _, w := range workers {
		u.troubles = append(u.troubles, w.troubles...)
	}
	slices.SortFunc(u.troubles, func(a, b trouble) int { return cmp.Compare(a.lid, b.lid) })
	return u, nil
}

// count counts what the tables and the graph of all choices are made of.
func (r *Result) count(p *plan, all *cdg) {
	n := &r.Counts
	n.PLFTs = len(p.t.PLFTs)
	for _, list := range p.t.Groups {
		n.Groups += len(list)
	}
	n.Free, n.HBF = p.t.Count()
	copies := max(1, len(p.copies))
	channels, dependencies := all.size()
	n.Channels, n.Dependencies, n.VLs = channels*copies, dependencies*copies, len(p.vls)*copies
}

// slsUnknown says whether the SL of some path is not known.
func (p *plan) slsUnknown() bool {
	if p.read.PathSLs == nil {
		return p.read.UnknownSLs
	}
	return slices.ContainsFunc(p.senders, func(x sender) bool { return slices.Contains(x.row[1:], lft.UnknownSL) })
}

// doubt leaves the rules of all findings undecided.
func (r *Result) doubt(reason string) {
	for i := range r.Findings {
		r.Undecided = append(r.Undecided, verify.Undecided{Rule: r.Findings[i].Rule, Reason: reason})
	}
	r.Findings = r.Findings[:0]
}

// keepDoubts leaves the rules undecided of which any has more findings.
func (r *Result) keepDoubts(any *Result) {
	for _, rule := range Rules {
		if verify.CountFindings(any.Findings, rule.Name) > verify.CountFindings(r.Findings, rule.Name) {
			r.Undecided = append(r.Undecided, verify.Undecided{Rule: rule.Name,
				Reason: "path SLs are missing, and there are more findings with some than with others"})
		}
	}
}
