package verify

import (
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// sensitive lists the rules whose findings depend on the SLs of paths.
var sensitive = []string{SLDropped, CreditLoop, MulticastCreditLoop, ManagementSLDropped, ManagementCreditLoop}

// doubts returns true if paths of unknown SL could have made findings of r.
func (l *lanes) doubts(r *Result) bool {
	return l != nil && (len(l.classes) > 1 || len(l.copies) > 1) && (l.sls == nil && l.hidden || l.sls != nil && l.unknown() > 0) &&
		slices.ContainsFunc(sensitive, func(rule string) bool { return countFindings(r.Findings, rule) > 0 })
}

// mayDrop lists the rules that are undecided since a path of unknown SL may have one that
// the sender's own table drops.
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
		return slices.Contains(m[:], lft.DropVL) && *m != lft.ConstantVL(lft.DropVL) // to drop all is a finding
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

// unknown counts the paths of unknown SL: those from switches, and those from source ports
// that have a row of their own in the path SLs.
func (l *lanes) unknown() (n int64) {
	for _, s := range l.f.Switches() {
		n += l.unknownOf(l.sls.Given(s))
	}
	for _, port := range l.sls.Ports() {
		n += l.unknownOf(l.sls.PortRow(port))
	}
	return n
}

// unknownOf counts the paths of one row whose SL is not known.
func (l *lanes) unknownOf(row []fabric.SL) (n int64) {
	for lid := fabric.LID(1); lid <= l.f.MaxLID(); lid++ {
		if row[lid] == lft.UnknownSL && l.f.LIDPort(lid) != fabric.NoPort {
			n++
		}
	}
	return n
}

// leaveDoubts leaves the rules undecided that have more findings when paths of unknown SL have any
// than those that are certain.
func (l *lanes) leaveDoubts(any, certain *Result) {
	reason := "path SLs are missing, and there are findings with some and none with others"
	if l.sls != nil {
		reason = fmt.Sprintf("the SLs of %d paths from a switch or port to a LID are missing, and there are more findings with some than with others", l.unknown())
	}
	certain.keepDoubts(any, reason, sensitive...)
}

// gap is a switch without an entry for a LID to which an entry of another switch leads.
type gap struct {
	lid fabric.LID // 0 for none
	at  int32
}

// consider keeps the gap of the lowest LID, and switch.
func (g *gap) consider(o gap) {
	if o.lid > 0 && (g.lid == 0 || o.lid < g.lid || o.lid == g.lid && o.at < g.at) {
		*g = o
	}
}
