package rails

import (
	_ "embed"
	"slices"

	"github.com/ibweave/ibweave/verify"
)

// The names of the rules.
const (
	Swapped = "rail-swapped"
	Mixed   = "rail-mixed"
	Missing = "rail-missing"
	Lost    = "rail-lost"
	Left    = "rail-left"
)

// Rules lists the rules about the cables of rails, the gravest first.
var Rules = verify.ParseRules(ruleTexts)

//go:embed rules.txt
var ruleTexts string

// TableRules lists the rules about tables, the gravest first.
var TableRules = []verify.Rule{
	{Name: Lost, Severity: verify.Error, Count: "pairs", Summary: "the tables do not deliver packets within a rail"},
	{Name: Left, Severity: verify.Warning, Count: "routes", Summary: "routes within a rail pass switches of others"},
}

// allRules has Rules and TableRules, in the order of findings.
var allRules = slices.Concat(TableRules[:1], Rules, TableRules[1:])
