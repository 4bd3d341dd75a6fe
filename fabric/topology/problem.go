package topology

import (
	"fmt"

	"github.com/ibweave/ibweave/fabric"
)

// problem adds a Problem and returns it, to be completed.
func (p *parser) problem(kind fabric.ProblemKind, at place, column int, message string) *fabric.Problem {
	text := p.textOf(at)
	// One long line may have many problems.
	text = text[:min(len(text), 256)]
	p.problems = append(p.problems, fabric.Problem{
		Kind: kind, File: p.file, Line: int(at.num), Column: column, Text: string(text), Message: message, Count: 1,
	})
	return &p.problems[len(p.problems)-1]
}

// refusal returns the error about a line.
func (p *parser) refusal(at place, column int, format string, args ...any) error {
	return &fabric.ParseError{File: p.file, Line: int(at.num), Column: column, Text: string(p.textOf(at)), Err: fmt.Errorf(format, args...)}
}

// MistypedError returns the error about a node that is no switch by its type, but has two
// ports with one GUID, or one LID if the text has no GUIDs. A reader that finds as many such
// nodes as switches, or more, returns it even if it is lenient: it would lose the switches.
func MistypedError(guid fabric.GUID, kind fabric.NodeType) error {
	return fmt.Errorf("switches are listed as another type: node %s is a %s here, but its ports have one GUID or LID, as only those of a switch have; want a list with the types of the nodes", guid, kind)
}

// fail reports what cannot be used: as an error, or in a lenient read
// as a Problem, which states what is lost; it then returns errDropped.
func (p *parser) fail(at place, column int, lost, format string, args ...any) error {
	if p.lenient {
		p.problem(fabric.Dropped, at, column, fmt.Errorf(format, args...).Error()+"; "+lost)
		return errDropped
	}
	return p.refusal(at, column, format, args...)
}

// failHere calls fail for the line being read.
func (p *parser) failHere(column int, lost, format string, args ...any) error {
	return p.fail(p.line, column, lost, format, args...)
}

// dropLine calls failHere if the line is lost.
func (p *parser) dropLine(column int, format string, args ...any) error {
	return p.failHere(column, "line dropped", format, args...)
}

// dropLink calls fail if the link of a line is lost.
func (p *parser) dropLink(at place, format string, args ...any) error {
	return p.fail(at, p.column(at), "link dropped", format, args...)
}

// mend calls fail for what a lenient read can do without: it then returns nil.
func (p *parser) mend(at place, column int, lost, format string, args ...any) error {
	if err := p.fail(at, column, lost, format, args...); err != errDropped {
		return err
	}
	return nil
}

// note reports a contradiction that is resolved in any read.
func (p *parser) note(at place, column int, format string, args ...any) {
	p.problem(fabric.Contradiction, at, column, fmt.Sprintf(format, args...))
}
