package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/internal/files"
	"github.com/ibweave/ibweave/lft"
	"github.com/ibweave/ibweave/state/open"
)

// ErrFindings is returned by a command that did its work and printed findings.
var ErrFindings = errors.New("findings")

// UsageError is a command line that makes no sense.
type UsageError struct{ error }

func (e *UsageError) Unwrap() error { return e.error }

// NewUsageError makes a UsageError of err.
func NewUsageError(err error) *UsageError { return &UsageError{err} }

// Usagef makes a UsageError.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// ErrOneStdin is the error of two files that are both standard input.
var ErrOneStdin = Usagef("standard input (-) can be one file only")

// OneStdin returns ErrOneStdin if more than one of the names is standard input.
func OneStdin(names ...string) error {
	if i := slices.Index(names, "-"); i >= 0 && slices.Contains(names[i+1:], "-") {
		return ErrOneStdin
	}
	return nil
}

// Is returns true if err is, or wraps, an error of type E.
func Is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// ExitStatus maps an error to the exit status. isFinding
// and isInput are true for errors whose types only the
// program knows. All others are environment errors (4).
func ExitStatus(err error, isFinding, isInput bool) int {
	switch {
	case err == nil:
		return Clean
	case errors.Is(err, context.Canceled):
		return Environment
	case errors.Is(err, ErrFindings), Is[*lft.DomainError](err), isFinding:
		return Findings
	case Is[*UsageError](err):
		return Usage
	case Is[*open.Error](err), Is[*fabric.ParseError](err), Is[*files.RefusedError](err), isInput:
		return Input
	}
	return Environment
}
