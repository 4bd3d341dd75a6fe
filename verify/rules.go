package verify

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// Severity grades a finding. The zero value, Clean, stands for no finding.
type Severity uint8

// The severities, mildest first.
const (
	Clean Severity = iota
	Note
	Warning
	Error
)

var severities = [...]string{Clean: "clean", Note: "note", Warning: "warning", Error: "error"}

// String returns the name in JSON and on the command line.
func (s Severity) String() string {
	if int(s) < len(severities) {
		return severities[s]
	}
	return fmt.Sprintf("severity %d", uint8(s))
}

// MarshalText returns String.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a severity's name.
func (s *Severity) UnmarshalText(text []byte) error {
	i := slices.Index(severities[:], string(text))
	if i < 0 {
		return fmt.Errorf("severity %q: want one of %v", text, severities[Note:])
	}
	*s = Severity(i)
	return nil
}

// Rule is a rule that tables must or should obey.
type Rule struct {
	Name     string
	Severity Severity // of its findings
	Count    string   // what a finding's Count counts
	Summary  string   // one line
	Explain  string   // what breaking it means on a running fabric, and what to do
}

// The names of the rules.
const (
	Partitioned             = "partitioned"
	UnicastUnreachable      = "unicast-unreachable"
	Misdelivered            = "misdelivered"
	SLDropped               = "sl-dropped"
	ManagementSLDropped     = "management-sl-dropped"
	UnicastLoop             = "unicast-loop"
	CreditLoop              = "credit-loop"
	ManagementLoop          = "management-loop"
	UnassignedLID           = "unassigned-lid"
	CertificateRule         = "certificate"
	BoundRule               = "bound"
	ManagementPartitioned   = "management-partitioned"
	ManagementUnreachable   = "management-unreachable"
	ManagementCreditLoop    = "management-credit-loop"
	ManagementUnassignedLID = "management-unassigned-lid"
	EmptyTable              = "empty-table"
	AdaptiveRouting         = "adaptive-routing"
	DeadEntry               = "dead-entry"
	StaleEntry              = "stale-entry"
	IdleLinks               = "idle-links"
	FarFromBound            = "far-from-bound"
	HostSharedPath          = "host-shared-path"
	UnownedLIDLoop          = "unowned-lid-loop"
	FileChanged             = "file-changed"
	NonMinimal              = "non-minimal"
	MulticastMissing        = "multicast-missing"
	MulticastDuplicate      = "multicast-duplicate"
	MulticastLoop           = "multicast-loop"
	MulticastStray          = "multicast-stray"
	MulticastCreditLoop     = "multicast-credit-loop"
	MulticastCopying        = "multicast-copying"
	MulticastDeadPort       = "multicast-dead-port"
	MulticastDeadEnd        = "multicast-dead-end"
	MulticastUnused         = "multicast-unused"
	MulticastUnknown        = "multicast-unknown"
	MulticastBeyondCapacity = "multicast-beyond-capacity"
	MulticastNearlyFull     = "multicast-nearly-full"
	MulticastNoEndPort      = "multicast-no-end-port"
	MulticastMemberGone     = "multicast-member-gone"
	MulticastLoneMember     = "multicast-lone-member"
	BufferTooSmall          = "buffer-too-small"
)

// ParseRules reads rules, which empty lines separate. A rule begins with its name, its severity and
// what Count counts, such as "unicast-loop: error, pairs". An indented line, the Summary, follows,
// and then Explain.
func ParseRules(text string) (rules []Rule) {
	for part := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		head, rest, _ := strings.Cut(part, "\n")
		var r Rule
		var grade string
		r.Name, grade, _ = strings.Cut(head, ": ")
		grade, r.Count, _ = strings.Cut(grade, ", ")
		r.Severity = Severity(slices.Index(severities[:], grade))
		r.Summary, r.Explain, _ = strings.Cut(strings.TrimPrefix(rest, "    "), "\n")
		rules = append(rules, r)
	}
	return rules
}

// Rules lists all rules, the gravest first. Findings are sorted in this order
// within a severity.
var Rules = ParseRules(ruleTexts)

//go:embed rules.txt
var ruleTexts string

// LaneRules lists the rules that depend on SL-to-VL tables and path SLs, the gravest first.
var LaneRules = []string{SLDropped, CreditLoop, ManagementSLDropped, ManagementCreditLoop}

// MulticastRules lists the rules that depend on multicast masks and groups, the gravest first.
var MulticastRules = []string{MulticastLoop, MulticastDuplicate, MulticastMissing, MulticastCreditLoop}

// UnicastRules lists the rules that depend on the topology and the forwarding tables,
// the gravest first.
var UnicastRules = []string{UnicastUnreachable, Misdelivered, UnicastLoop, CreditLoop, ManagementLoop}

// RuleByName finds a rule of this package.
func RuleByName(name string) (*Rule, bool) { return FindRule(name, Rules) }

// FindRule finds a rule in lists of rules.
func FindRule(name string, lists ...[]Rule) (*Rule, bool) {
	for _, rules := range lists {
		for i := range rules {
			if rules[i].Name == name {
				return &rules[i], true
			}
		}
	}
	return nil, false
}

// ruleIndex returns the index of a rule in Rules; len(Rules) if it is not there.
func ruleIndex(name string) int {
	for i := range Rules {
		if Rules[i].Name == name {
			return i
		}
	}
	return len(Rules)
}
