package main

import (
	"fmt"

	"github.com/ibweave/ibweave/audit/cabling"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/sminterface/dump"
	"github.com/ibweave/ibweave/verify"
)

// addUndecided notes which rules the problems of a file leave undecided: some where the file
// lacks CA and router ports only.
func (in *audit) addUndecided(problems []dump.Problem, rules, ends []string) {
	reason := map[string]*omission{}
	for i := range problems {
		p := &problems[i]
		key, what, of := "", p.File+": "+p.Err.Error(), rules
		switch p.Kind {
		case dump.Dropped, dump.Truncated:
			key, what = "lenient", p.File+": --lenient left something out: "+p.Err.Error()
			if p.Line > 0 {
				what = fmt.Sprintf("%s:%d: --lenient left this out: %v", p.File, p.Line, p.Err)
			}
		case dump.Missing:
			key = "missing"
		case dump.MissingEnds:
			key, of = "ends", ends
		case dump.PrivateTables:
			key = "private"
		default:
			continue
		}
		if reason[key] == nil {
			reason[key] = &omission{what: what, rules: of}
		}
		reason[key].n++
	}
	for _, l := range reason {
		in.addOmission(l)
	}
}

// omission is what a reader left out, or did not find: the first one and how many.
type omission struct {
	what  string
	n     int
	rules []string
}

func (in *audit) addOmission(l *omission) {
	if l.n > 1 {
		l.what += fmt.Sprintf("; and %d more like that", l.n-1)
	}
	for _, rule := range l.rules {
		in.undecided = append(in.undecided, verify.Undecided{Rule: rule, Reason: l.what})
	}
}

// addUndecidedTopology is addUndecided for ibnetdiscover text.
func (in *audit) addUndecidedTopology(name string, problems []topology.Problem) {
	l := omission{rules: in.topologyRules()}
	for i := range problems {
		if p := &problems[i]; p.Kind == topology.Dropped {
			if l.n += p.Count; l.what == "" {
				l.what = fmt.Sprintf("%s:%d: --lenient left something out: %s", name, p.Line, p.Message)
			}
		}
	}
	if l.n > 0 {
		in.addOmission(&l)
	}
}

// topologyRules are those that rest on the topology.
func (in *audit) topologyRules() (rules []string) {
	if in.hasTables() {
		rules = append(rules, verify.UnicastRules...)
	}
	if in.mfts != "" {
		rules = append(rules, verify.MulticastRules...)
	}
	if in.wanted() {
		rules = append(rules, cabling.MissingCable)
	}
	return rules
}

// laneRules are those that rest on SL-to-VL tables and path SLs, and those of them that
// rest on the tables of CAs and routers.
func (in *audit) laneRules() (all, ends []string) {
	all = append(all, verify.LaneRules...)
	ends = append(ends, verify.SLDropped, verify.ManagementSLDropped)
	if in.mfts != "" {
		all = append(all, verify.MulticastMissing, verify.MulticastCreditLoop)
		ends = append(ends, verify.MulticastMissing)
	}
	return all, ends
}
