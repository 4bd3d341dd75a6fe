package topology

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ibweave/ibweave/fabric"
)

// Kind sorts Problems by what a caller has to make of them. All but the first two are
// names of rules, of which audit/capture makes findings: readers of other forms add kinds
// of their own.
type Kind string

// The kinds of this package.
const (
	// Contradiction means that two lines disagree on what one of them decides alone: the
	// LID or port GUID that a line gives to its peer, and the speed of a cable.
	Contradiction Kind = "contradiction"
	// Dropped text was wrong and is left out. Only a lenient read has such Problems.
	Dropped Kind = "dropped"

	// ForeignLines are no topology text and stand outside of the stanzas: banners and
	// prompts of terminals.
	ForeignLines Kind = "foreign-lines"
	// SweepTimeout is an error line of the tool that discovered the fabric: a port did not
	// answer, so that nodes may be missing.
	SweepTimeout Kind = "sweep-timeout"
	// SweepError is any other error line of that tool.
	SweepError Kind = "sweep-error"
	// WrappedLines are lines that a terminal cut at its last column; they are whole again.
	WrappedLines Kind = "wrapped-lines"
	// InvalidLID is a LID that no end port can have; the port has none then.
	InvalidLID Kind = "invalid-lid"
	// Loopback is a cable from a port to itself, a loopback plug. The port has no cable
	// then.
	Loopback Kind = "loopback-plug"
)

// Problem is something in a text that does not fit, and what was made of it. None makes
// the fabric ambiguous: that is an error.
type Problem struct {
	Kind    Kind
	File    string // name as given to the reader
	Line    int    // 1-based; the first one where Count is more; 0 when it belongs to no line
	Column  int    // 0-based, in bytes
	Text    string // the line, without its end, cut to 256 bytes
	Message string // one line
	// Err is the cause, whose text is Message, where a reader of another form than those of
	// this package gives one; it is nil for kinds that are names of rules.
	Err error
	// Count is how many lines or ports it stands for, 1 or more.
	Count int
	// Node and Port say what it is about: 0 for no node, and port 0 for the node or its
	// management port.
	Node fabric.GUID
	Port fabric.PortNum
}

// String is file:line: message, all printable. Where there is an Err, its kind, up to a
// hyphen, stands in front of the message.
func (p *Problem) String() string {
	at := p.File
	if p.Line > 0 {
		at = fmt.Sprintf("%s:%d", at, p.Line)
	}
	if p.Err != nil {
		kind, _, _ := strings.Cut(string(p.Kind), "-")
		at += ": " + kind
	}
	return fabric.Printable(at + ": " + p.Message)
}

// sortProblems sorts them by line.
func sortProblems(list []Problem) {
	slices.SortStableFunc(list, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
}

// problem adds a Problem and returns it, to be completed.
func (p *parser) problem(kind Kind, at place, column int, message string) *Problem {
	text := p.textOf(at)
	// One long line may have many problems.
	text = text[:min(len(text), 256)]
	p.problems = append(p.problems, Problem{
		Kind: kind, File: p.file, Line: int(at.num), Column: column, Text: string(text), Message: message, Count: 1,
	})
	return &p.problems[len(p.problems)-1]
}

// refusal is the error about a line.
func (p *parser) refusal(at place, column int, format string, args ...any) error {
	return &fabric.ParseError{File: p.file, Line: int(at.num), Column: column, Text: string(p.textOf(at)), Err: fmt.Errorf(format, args...)}
}

// MistypedError is the error about a node that is no switch, with two ports that have one GUID, or one LID
// where the text gives no GUIDs. A reader that finds as many such nodes as switches, or more, returns it also
// where it is lenient: it would go on without the switches.
func MistypedError(guid fabric.GUID, kind fabric.NodeType) error {
	return fmt.Errorf("switches are listed as another type: node %s is a %s here, but its ports have one GUID or LID, as only those of a switch have; want a list with the types of the nodes", guid, kind)
}

// fail is for what cannot be used: an error, or in a lenient read a Problem
// that says what is lost by it, and errDropped.
func (p *parser) fail(at place, column int, lost, format string, args ...any) error {
	if p.lenient {
		p.problem(Dropped, at, column, fmt.Sprintf(format, args...)+"; "+lost)
		return errDropped
	}
	return p.refusal(at, column, format, args...)
}

// failHere is fail for the line being read.
func (p *parser) failHere(column int, lost, format string, args ...any) error {
	return p.fail(p.line, column, lost, format, args...)
}

// mend is fail for what a lenient read can go on without: nil then.
func (p *parser) mend(at place, column int, lost, format string, args ...any) error {
	if err := p.fail(at, column, lost, format, args...); err != errDropped {
		return err
	}
	return nil
}

// note is for a contradiction that is resolved in any case.
func (p *parser) note(at place, column int, format string, args ...any) {
	p.problem(Contradiction, at, column, fmt.Sprintf(format, args...))
}
