// Package capture makes findings of what readers noticed in a capture of a fabric: errors
// of the sweep, LIDs that no port can have, lines that do not belong there. It makes no
// promise to other modules.
//
// A reader tells facts as fabric.Problem, each with a Kind; the table here says which
// rule a kind belongs to. A kind without a row is no finding: the command prints it as a
// line.
package capture

import (
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
	LoopbackPlug = "loopback-plug"
	ForeignLines = "foreign-lines"

	CutFile        = "cut-file"
	FilesDisagree  = "files-disagree"
	ToolWarning    = "tool-warning"
	SeveralMasters = "several-masters"
	UnevenCable    = "uneven-cable"
)

// Rules lists the rules about captures, the gravest first.
var Rules = []verify.Rule{
	{Name: CutFile, Severity: verify.Error, Count: "places", Summary: "a file of the capture is cut short", Explain: `A section of ibdiagnet's db_csv has no end or fewer rows than its INDEX_TABLE says, or
a file lacks the line "# File closed at" that this version of ibdiagnet prints last: the
disk was full, ibdiagnet was killed, or the copy stopped. What is behind the cut is not
looked at. Of the files of one run, one that is whole is taken for the topology.`},
	{Name: SeveralMasters, Severity: verify.Error, Count: "subnet managers", Summary: "several subnet managers say that they are the master", Explain: `ibdiagnet found more than one master subnet manager (SM_INFO). Each assigns LIDs and
writes forwarding tables, so that both may change while they are looked at: usually two
parts of a fabric were joined while both had a master. The finding names the node of the
first.`},
	{Name: FilesDisagree, Severity: verify.Warning, Count: "differences", Summary: "files of one run disagree", Explain: `ibdiagnet writes the fabric of one sweep as db_csv, lst and ibnetdiscover text. Here
they differ in nodes, cables, LIDs or speeds: files of several runs were put together, or
one was edited. There is a finding for each kind of difference, with the first example;
count says how many there are. db_csv is what everything else here rests on.`},
	{Name: SweepErrors, Severity: verify.Warning, Count: "lines", Summary: "the sweep that made the capture had errors", Explain: `ibnetdiscover and its like ask every port, and say on standard error which ones did
not answer; with 2>&1 these lines are in the file. What is behind a port that did not
answer is not in the capture, so that switches, hosts and cables may be missing. The
finding counts the lines and quotes the first one: "0,1,20" behind "DR path" are the
ports by which the sweep went, from the node that it started at. Look at that port, and
capture again.`},
	{Name: InvalidLID, Severity: verify.Warning, Count: "ports", Summary: "ports have LIDs that cannot be", Explain: `A unicast LID is 1 to 49151, and with an LMC its last bits are 0. 65535 and 0 are what
a port has that no subnet manager has brought up: the link is there and the node cannot be
reached. -1, no number and numbers beyond the range come from broken firmware or a broken
capture. The ports are taken to have no LID. LID 0 counts where other ports have LIDs: a
fabric that no subnet manager has seen yet has none at all.`},
	{Name: LoopbackPlug, Severity: verify.Note, Count: "ports", Summary: "a port is connected to itself", Explain: `A loopback plug, as in tests of cables and ports. The port carries no traffic and counts
as one without a cable.`},
	{Name: UnevenCable, Severity: verify.Warning, Count: "cables", Summary: "the ends of a cable are set up differently", Explain: `The two ports of an active cable have another number of data VLs in operation, or another
MTU (OpVLs and NMTU in db_csv). The subnet manager sets both ends to what both can do; an
end that it could not write drops packets on the VLs, or of the size, that only the other
end has.`},
	{Name: ToolWarning, Severity: verify.Note, Count: "events", Summary: "ibdiagnet itself warned of something", Explain: `Sections WARNINGS_x and ERRORS_x of db_csv list what ibdiagnet found: ports that did not
answer, counters, firmware, cables. There is one finding for each kind of event in a section,
with the first one and how many there are.`},
	{Name: ForeignLines, Severity: verify.Note, Count: "lines", Summary: "lines of the capture are no topology text", Explain: `A prompt, a command, the banner of a terminal's log: they stand before the first node,
behind the last one or between nodes, and are skipped. In the middle of a node's lines
they are an error, since a line of the topology may be what was lost. --strict refuses
them everywhere.`},
}

// rules says which rule a kind belongs to.
var rules = map[fabric.ProblemKind]string{
	fabric.SweepTimeout: SweepErrors,
	fabric.SweepError:   SweepErrors,
	fabric.InvalidLID:   InvalidLID,
	fabric.Loopback:     LoopbackPlug,
	fabric.ForeignLines: ForeignLines,

	CutFile: CutFile, FilesDisagree: FilesDisagree, ToolWarning: ToolWarning, SeveralMasters: SeveralMasters, // of ibdiagnet
	UnevenCable: UnevenCable,
}

// RuleOf is the rule that problems of a kind break, "" for a kind that is no finding.
func RuleOf(kind fabric.ProblemKind) string { return rules[kind] }

// maxPorts bounds the ports of a finding.
const maxPorts = 100

// Findings makes one finding of all problems that belong to a rule, in the order of Rules.
// f is what was read.
func Findings(f *fabric.Fabric, problems []fabric.Problem) []verify.Finding {
	var list []verify.Finding
	for i := range Rules {
		rule := &Rules[i]
		x := verify.Finding{Rule: rule.Name, Severity: rule.Severity, Witness: []verify.Hop{}, Fingerprint: Fingerprint(rule.Name, 1)}
		var first *fabric.Problem
		timeouts := 0
		for k := range problems {
			p := &problems[k]
			if rules[p.Kind] != rule.Name {
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

// Fingerprint is that of the n-th finding of a rule, from 1. It depends on nothing else,
// so that the same captures of tomorrow have the same ones: Findings has the first of each.
func Fingerprint(rule string, n int) string {
	h := fnv.New64a()
	h.Write([]byte(rule))
	if n > 1 {
		fmt.Fprintf(h, " #%d", n)
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// countWords are what findings of a rule count, one and many.
var countWords = map[string][2]string{
	ForeignLines: {"line is no topology text and skipped", "lines are no topology text and skipped"},
	LoopbackPlug: {"port is connected to itself", "ports are connected to themselves"},
	UnevenCable:  {"cable is set up differently at the two ends", "cables are set up differently at the two ends"},
	ToolWarning:  {"warning of ibdiagnet", "warnings of ibdiagnet"},
	InvalidLID:   {"port has a LID that cannot be", "ports have LIDs that cannot be"},
}

// describe is the message of a finding of which first is the first of n problems.
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
