package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ibweave/ibweave/audit/choice"
	"github.com/ibweave/ibweave/audit/policy"
	"github.com/ibweave/ibweave/cmd/cli"
	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/mesh"
	"github.com/ibweave/ibweave/mft"
	"github.com/ibweave/ibweave/sminterface/rehearse"
)

// The exit statuses of every command.
const (
	exitClean       = cli.Clean
	exitFindings    = cli.Findings
	exitUsage       = cli.Usage
	exitInput       = cli.Input
	exitEnvironment = cli.Environment
)

// errFindings ends a command that did its work and printed what it found.
var errFindings = errors.New("findings")

// usageError is a command line that makes no sense.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// movedError is the name of a command that another program has now.
type movedError string

func (e movedError) Error() string {
	return fmt.Sprintf("%s is a command of ibweave-papers: ibweave-papers %s", string(e), string(e))
}

// inputError is input that cannot be read or is invalid.
type inputError struct{ err error }

func (e *inputError) Error() string { return e.err.Error() }
func (e *inputError) Unwrap() error { return e.err }

func inputf(format string, args ...any) error {
	return &inputError{fmt.Errorf(format, args...)}
}

// exitStatus maps an error to the exit status. Errors of unknown type count as environment
// errors (4).
func exitStatus(err error) int {
	var (
		usage  *usageError
		input  *inputError
		parse  *fabric.ParseError
		domain *lft.DomainError
		none   *choice.RefusedError
		unfit  *rehearse.UnfitError
		grid   *mesh.NotGridError
		refuse *mft.RefusedError
		budget *mft.BudgetError
		root   *policy.RootError
		huge   *files.RefusedError
	)
	switch {
	case err == nil:
		return exitClean
	case errors.Is(err, context.Canceled):
		return exitEnvironment
	case errors.Is(err, errFindings), errors.As(err, &domain), errors.As(err, &none), errors.As(err, &unfit), errors.As(err, &grid),
		errors.As(err, &refuse), errors.As(err, &budget):
		return exitFindings
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &input), errors.As(err, &parse), errors.As(err, &root), errors.As(err, &huge):
		return exitInput
	}
	return exitEnvironment
}

// report prints an error for people and gives the exit status.
func (a *app) report(err error) int {
	status := exitStatus(err)
	switch {
	case err == nil, errors.Is(err, errFindings):
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(a.stderr, "ibweave: interrupted; nothing was left half done")
	case status == exitUsage:
		for line := range strings.Lines(err.Error()) { // one for each thing that is wrong
			fmt.Fprintf(a.stderr, "ibweave: %s\n", strings.TrimSuffix(line, "\n"))
		}
		if _, moved := errors.AsType[movedError](err); !moved {
			fmt.Fprintf(a.stderr, "Try '%s --help'.\n", a.invoked())
		}
	default:
		fmt.Fprintf(a.stderr, "ibweave: %v\n", err)
	}
	return status
}
