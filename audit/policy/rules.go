package policy

import (
	"slices"

	"github.com/ibweave/ibweave/audit/cabling"
	"github.com/ibweave/ibweave/audit/capture"
	"github.com/ibweave/ibweave/audit/partitions"
	"github.com/ibweave/ibweave/verify"
)

// The names of the rules.
const (
	HopsAboveLimit      = "hops-above-limit"
	ImbalanceAboveLimit = "imbalance-above-limit"
	NotMinimal          = "not-minimal"
	NotUpDown           = "not-updown"
	NotXY               = "not-xy"
	RoutingUnchecked    = "routing-unchecked"
	WaiverExpired       = "waiver-expired"
	WaiverUnused        = "waiver-unused"
)

// Rules lists the rules that only a policy has, the gravest first.
var Rules = []verify.Rule{
	{Name: HopsAboveLimit, Severity: verify.Error, Count: "pairs", Summary: "pairs pass more switches than the policy allows", Explain: `The policy's max-hops is the most switches that a packet between two CA or router
ports may pass. Count is the number of pairs that pass more.`},
	{Name: ImbalanceAboveLimit, Severity: verify.Error, Count: "routes", Summary: "the most loaded link has too many routes, compared with the mean", Explain: `The policy's max-imbalance bounds the routes on the most loaded direction of a cable
between switches, divided by the mean of all. With equal traffic between all pairs the
ratio is how much earlier that link is full. Count is its routes.`},
	{Name: NotMinimal, Severity: verify.Error, Count: "pairs", Summary: "the policy requires shortest paths, and some are longer", Explain: `As non-minimal, which counts the same pairs as a note when no policy requires
anything. The witness is the pair that goes farthest out of its way.`},
	{Name: NotUpDown, Severity: verify.Error, Count: "LIDs", Summary: "the policy requires up*/down* paths, and some go down and up again", Explain: `A path conforms to up*/down* when it goes up any number of links, then down any
number, and never up again. What is up follows from an order of the switches: from
the policy's roots, where it has any: the first is on top, each further one is joined
to those before it by a shortest path, and the rest follows by distance, as with
compile --roots. Without roots the order that ibweave's updn would choose and the
levels of a recognized tree are both tried, and the paths must conform to one of
them. Only paths between CA and router ports count. Count is the number of destination
LIDs with such a path; the witness is the two channels of one of them, down and up.`},
	{Name: NotXY, Severity: verify.Error, Count: "LIDs", Summary: "the policy requires dimension-order paths, and some are not", Explain: `The switches must be a grid, and a path must take all its hops along the first
dimension before those along the second, and so on, never turning back. The order of
the dimensions is the one in which the grid is recognized (by port numbers), that of
ibweave's xy. Only paths between CA and router ports count. Count is the number of
destination LIDs with such a path; the witness is the two channels of the turn.`},
	{Name: WaiverExpired, Severity: verify.Warning, Count: "waivers", Summary: "a waiver of the policy has expired", Explain: `After its day a waiver excuses nothing: its findings count again, and the waiver is a
finding itself until it is removed or gets another day. --date says
which day it is.`},
	{Name: RoutingUnchecked, Severity: verify.Note, Count: "demands", Summary: "the policy has demands on the routing, and there are no tables", Explain: `The check was asked for the wiring only, so that nothing under routing: in the policy
was looked at.`},
	{Name: WaiverUnused, Severity: verify.Note, Count: "waivers", Summary: "a waiver of the policy excuses nothing", Explain: `No finding matches the waiver: what it excused was repaired, or its rule, place or
fingerprint is mistyped. Remove it before it excuses something else.`},
}

// lists are the rules of all checks: those of tables, of choices, of wiring, of captures, of
// policies.
var lists = [][]verify.Rule{verify.Rules, verify.AdaptiveRules, verify.AdaptiveTableRules, cabling.Rules, capture.Rules, partitions.Rules, Rules}

// AllRules lists the rules of all checks.
func AllRules() []verify.Rule { return slices.Concat(lists...) }

// RulesOf lists the rules of an audit that looks at some of: tables, with choices of adaptive switches, P_Key
// tables, all of the cables and not their rates alone, and a policy.
func RulesOf(tables, adaptive, partitioned, cables, held bool) (rules []verify.Rule) {
	if tables {
		rules = append(rules, verify.Rules...)
	}
	if tables && adaptive {
		rules = slices.Concat(rules, verify.AdaptiveRules, verify.AdaptiveTableRules)
	}
	if partitioned {
		rules = append(rules, partitions.Rules...)
	}
	if !cables {
		slow, _ := verify.FindRule(cabling.LinkDegraded, cabling.Rules)
		return slices.Concat(rules, []verify.Rule{*slow}, capture.Rules)
	}
	rules = slices.Concat(rules, cabling.Rules, capture.Rules)
	if held {
		rules = append(rules, Rules...)
	}
	return rules
}

// RuleByName finds a rule of any check.
func RuleByName(name string) (*verify.Rule, bool) {
	return verify.FindRule(name, lists...)
}
