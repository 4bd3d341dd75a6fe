package policy

import (
	_ "embed"
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
var Rules = verify.ParseRules(ruleTexts)

//go:embed rules.txt
var ruleTexts string

// lists are the rules of all checks: of tables, of adaptive choices, of cabling, of captures, of partitions, of
// policies.
var lists = [][]verify.Rule{verify.Rules, verify.AdaptiveRules, verify.AdaptiveTableRules, cabling.Rules, capture.Rules, partitions.Rules, Rules}

// AllRules lists the rules of all checks.
func AllRules() []verify.Rule { return slices.Concat(lists...) }

// RulesOf lists the rules of an audit. It has rules of tables, of choices of
// adaptive switches, of P_Key tables, of cables (only their rates if cables is
// false) and of a policy, if these are set.
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
