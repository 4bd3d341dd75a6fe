// Package capture turns problems that readers noticed in a capture of a fabric into findings:
// errors of the sweep, LIDs that no port can have, foreign lines. It makes no promise to other
// modules.
//
// A reader reports a fact as a fabric.Problem, with a Kind; the table here names the
// rule of each kind. A kind without a rule makes no finding: the command prints such problems
// as lines.
package capture

import (
	_ "embed"
	"fmt"
	"hash/fnv"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/text"
	"github.com/ibweave/ibweave/verify"
)

// The names of the rules.
const (
	SweepErrors  = "sweep-error"
	InvalidLID   = "invalid-lid"
	DuplicateLID = "duplicate-lid"
	LoopbackPlug = "loopback-plug"
	ForeignLines = "foreign-lines"

	CutFile        = "cut-file"
	FilesDisagree  = "files-disagree"
	ToolWarning    = "tool-warning"
	SeveralMasters = "several-masters"
	UnevenCable    = "uneven-cable"
	SampledTables  = "sampled-tables"
)

// Rules lists the rules about captures, the gravest first.
var Rules = verify.ParseRules(ruleTexts)

//go:embed rules.txt
var ruleTexts string

// rules maps kinds of problems to the rules that they break.
var rules = map[fabric.ProblemKind]string{
	fabric.SweepTimeout: SweepErrors,
	fabric.SweepError:   SweepErrors,
	fabric.InvalidLID:   InvalidLID,
	fabric.DuplicateLID: DuplicateLID,
	fabric.Loopback:     LoopbackPlug,
	fabric.ForeignLines: ForeignLines,

	CutFile: CutFile, FilesDisagree: FilesDisagree, ToolWarning: ToolWarning, SeveralMasters: SeveralMasters, // of ibdiagnet
	UnevenCable: UnevenCable,
}

// RuleOf returns the rule that problems of a kind break; "" if the kind makes no finding.
func RuleOf(kind fabric.ProblemKind) string { return rules[kind] }

// maxPorts bounds the ports of a finding.
const maxPorts = 100

// Findings makes one finding for each rule that problems break, in the order
// of Rules. f is the fabric that was read. DuplicateLID is left to SettleLIDs,
// which also has the tables.
func Findings(f *fabric.Fabric, problems []fabric.Problem) []verify.Finding {
	var list []verify.Finding
	for i := range Rules {
		rule := &Rules[i]
		x := verify.Finding{Rule: rule.Name, Severity: rule.Severity, Witness: []verify.Hop{}, Fingerprint: Fingerprint(rule.Name, 1)}
		var first *fabric.Problem
		timeouts := 0
		for k := range problems {
			p := &problems[k]
			if rules[p.Kind] != rule.Name || rule.Name == DuplicateLID {
				continue
			}
			if first == nil {
				first = p
			}
			x.Count += int64(p.Count)
			if p.Kind == fabric.SweepTimeout {
				timeouts += p.Count
			}
			if n, ok := f.NodeByGUID(p.Node); ok && len(x.Ports) < maxPorts {
				x.Ports = append(x.Ports, verify.EndpointOf(f, f.Port(n, min(p.Port, f.Node(n).NumPorts))))
			}
		}
		if first == nil {
			continue
		}
		x.File, x.Line = first.File, first.Line
		x.Message = describe(f, rule.Name, int(x.Count), timeouts, first)
		list = append(list, x)
	}
	return list
}

// Fingerprint returns the fingerprint of the n-th finding of a rule, from 1; Findings makes n = 1.
// So the same problems have the same one in tomorrow's capture.
func Fingerprint(rule string, n int) string {
	h := fnv.New64a()
	h.Write([]byte(rule))
	if n > 1 {
		fmt.Fprintf(h, " #%d", n)
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// countWords has, by rule, words for what its findings count: for one and for many.
var countWords = map[string][2]string{
	ForeignLines: {"line is no topology text and skipped", "lines are no topology text and skipped"},
	LoopbackPlug: {"port is connected to itself", "ports are connected to themselves"},
	UnevenCable:  {"cable is set up differently at the two ends", "cables are set up differently at the two ends"},
	ToolWarning:  {"warning of ibdiagnet", "warnings of ibdiagnet"},
	DuplicateLID: {"port has the LID of another one", "ports have the LIDs of other ones"},
	InvalidLID:   {"port has a LID that cannot be", "ports have LIDs that cannot be"},
}

// describe returns the message of a finding of n problems, the first of which is first.
func describe(f *fabric.Fabric, rule string, n, timeouts int, first *fabric.Problem) string {
	what := ""
	if words, is := countWords[rule]; is {
		what = text.CountGrouped(n, words[0], words[1])
	}
	switch rule {
	case SweepErrors:
		what = fmt.Sprintf("the sweep had errors: %d", n)
		if timeouts == n {
			what = fmt.Sprintf("the sweep had timeouts: %d", n)
		} else if timeouts > 0 {
			what += fmt.Sprintf(", %d of them timeouts", timeouts)
		}
	case CutFile:
		return first.String()
	case FilesDisagree, SeveralMasters: // the message says it all
		if n > 1 && rule == FilesDisagree {
			return fmt.Sprintf("%s; %d differences of this kind", fabric.Printable(first.Message), n)
		}
		return fabric.Printable(first.Message)
	}
	at := fabric.Printable(first.File)
	if first.Line > 0 {
		at += fmt.Sprintf(":%d", first.Line)
	}
	if n > 1 {
		at = "the first, " + at
	}
	name := ""
	if node, ok := f.NodeByGUID(first.Node); ok && first.Port == 0 {
		name = f.Name(node).String() + ": "
	} else if ok && first.Port <= f.Node(node).NumPorts {
		name = f.PortName(f.Port(node, first.Port)) + ": "
	}
	return what + "; " + at + ": " + name + fabric.Printable(first.Message)
}
