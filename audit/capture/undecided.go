package capture

import (
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/audit/cabling"
	"github.com/ibweave/ibweave/audit/partitions"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/state"
	"github.com/ibweave/ibweave/verify"
)

// Asked says which parts of a state the caller judges; only rules about these can be undecided.
type Asked struct {
	Tables    bool // its forwarding tables
	Multicast bool // its multicast tables
	Cables    bool // a plan, a policy, or the shape of its cables
}

// Undecided lists the rules that a state leaves undecided, with the reasons.
func Undecided(list []state.Undecided, asked Asked) (undecided []verify.Undecided) {
	for _, u := range list {
		for _, rule := range rulesOn(u, asked) {
			undecided = append(undecided, verify.Undecided{Rule: rule, Reason: u.Reason})
		}
	}
	return undecided
}

// rulesOn lists the rules that need u.Part, or only its tables of CA and router ports.
func rulesOn(u state.Undecided, asked Asked) (rules []string) {
	switch u.Part {
	case state.Topology:
		if asked.Tables {
			rules = append(rules, verify.UnicastRules...)
		}
		if asked.Multicast {
			rules = append(rules, verify.MulticastRules...)
		}
		if asked.Cables {
			rules = append(rules, cabling.MissingCable)
		}
	case state.ForwardingTables:
		return verify.UnicastRules
	case state.AdaptiveTables, state.PLFTChoice:
		for _, r := range verify.AdaptiveRules {
			rules = append(rules, r.Name)
		}
		return slices.Concat(verify.UnicastRules, rules)
	case state.SL2VLTables, state.SLsOfPaths:
		switch {
		case u.Kind != fabric.MissingEnds && asked.Multicast:
			return append(slices.Clone(verify.LaneRules), verify.MulticastMissing, verify.MulticastCreditLoop)
		case u.Kind != fabric.MissingEnds:
			return verify.LaneRules
		case u.Part == state.SLsOfPaths: // the checker looks at unknown SLs itself
		case asked.Multicast:
			return []string{verify.SLDropped, verify.ManagementSLDropped, verify.MulticastMissing}
		default:
			return []string{verify.SLDropped, verify.ManagementSLDropped}
		}
	case state.MulticastTables, state.Groups:
		return verify.MulticastRules
	case state.PKeyTables:
		return partitions.TableRules
	}
	return rules
}

// TableFindings makes findings of problems that break none of Rules: members
// of groups that are no end ports, unknown private LFTs, and files that were
// changed since they were compiled.
func TableFindings(problems []fabric.Problem) (list []verify.Finding) {
	find := func(name, message string) {
		rule, _ := verify.RuleByName(name)
		list = append(list, verify.Finding{Rule: rule.Name, Severity: rule.Severity, Message: message, Count: 1})
	}
	gone := -1
	for i := range problems {
		switch p := &problems[i]; {
		case p.Kind == fabric.PrivateTables:
			find(verify.AdaptiveRouting, fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Message))
		case p.Kind == verify.FileChanged:
			find(verify.FileChanged, p.File+" was changed since it was compiled; the verdict is about what it is now")
			list[len(list)-1].Severity = verify.Warning
		case p.Kind == fabric.Gone && gone >= 0:
			list[gone].Count++
		case p.Kind == fabric.Gone:
			gone = len(list)
			find(verify.MulticastMemberGone, p.Message)
			x := &list[gone]
			x.Witness, x.File, x.Line = []verify.Hop{}, p.File, p.Line
		}
	}
	if gone >= 0 && list[gone].Count > 1 {
		list[gone].Message = fmt.Sprintf("%d members of groups are no end ports of the fabric; the first: %s", list[gone].Count, list[gone].Message)
	}
	return list
}
