package fabric

import (
	"fmt"
	"strings"
)

// ProblemKind sorts Problems by what a caller does about them. Kinds that are names of rules
// become findings in audit/capture; readers of some forms add such kinds of their own.
type ProblemKind string

// The kinds that several readers use.
const (
	// Contradiction means that two lines disagree on what one of them decides: the
	// LID or port GUID that a line gives to its peer, and the speed of a cable.
	Contradiction ProblemKind = "contradiction"
	// Dropped means that wrong text was left out. Only a lenient read has such Problems.
	Dropped ProblemKind = "dropped"
	// Truncated means that the text ends too early; what came
	// before is used. Only a lenient read has such Problems.
	Truncated ProblemKind = "truncated"
	// Missing is a switch of the fabric without an entry in the text, or with too few.
	Missing ProblemKind = "missing"
	// MissingEnds are CA and router ports without an entry in the text.
	MissingEnds ProblemKind = "missing-ends"
	// PrivateTables means that switches forward by private LFTs (PLFT), as adaptive routing
	// does: the LFT alone does not tell the path.
	PrivateTables ProblemKind = "private tables"
	// NotUnderstood are lines whose meaning is not public, and that do not change what is read.
	NotUnderstood ProblemKind = "not understood"
	// Notice is a limit of the form, such as missing LIDs, which a checker reports by itself.
	Notice ProblemKind = "notice"
	// Gone is a member of a group that is no end port of the fabric.
	Gone ProblemKind = "gone"

	// ForeignLines are lines outside of the stanzas that are no
	// topology text: banners and prompts of terminals.
	ForeignLines ProblemKind = "foreign-lines"
	// SweepTimeout is an error line of the tool that discovered the fabric: a port did not
	// answer, so that nodes may be missing.
	SweepTimeout ProblemKind = "sweep-timeout"
	// SweepError is any other error line of that tool.
	SweepError ProblemKind = "sweep-error"
	// WrappedLines are lines that a terminal cut at its last column; they were joined again.
	WrappedLines ProblemKind = "wrapped-lines"
	// InvalidLID is a LID that no end port can have; the port is read as having none.
	InvalidLID ProblemKind = "invalid-lid"
	// DuplicateLID is a LID that another port already has; the port is read as having none.
	DuplicateLID ProblemKind = "duplicate-lid"
	// Loopback is a cable from a port to itself, a loopback plug. The port is read as having
	// no cable.
	Loopback ProblemKind = "loopback-plug"
)

// Problem is something in a text that does not fit, and how it was
// read. If the fabric would be ambiguous, it is an error instead.
type Problem struct {
	Kind    ProblemKind
	File    string // name as given to the reader
	Line    int    // from 1, the first one if Count is more; 0 for no line
	Column  int    // from 0, in bytes
	Text    string // the line, without its end, cut to 256 bytes
	Message string // one line
	// Err is the error whose text is Message, set by readers of other forms
	// than those of this package. It is nil for kinds that are names of rules.
	Err error
	// Count is the number of lines or ports for which the Problem stands, 1 or more.
	Count int
	// Node and Port are those concerned: Node 0 for none, Port
	// 0 for the node or its management port.
	Node GUID
	Port PortNum
	LID  LID // of a DuplicateLID
}

// String returns file:line: message, all printable. If Err is set, the part of Kind before
// its first hyphen stands before the message.
func (p *Problem) String() string {
	at := p.File
	if p.Line > 0 {
		at = fmt.Sprintf("%s:%d", at, p.Line)
	}
	if p.Err != nil {
		kind, _, _ := strings.Cut(string(p.Kind), "-")
		at += ": " + kind
	}
	return Printable(at + ": " + p.Message)
}
