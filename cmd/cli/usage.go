package cli

import (
	"errors"
	"fmt"
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
