package fabric

import (
	"errors"
	"strings"
	"testing"
)

// A message of a bad line shows the line and its escape sequences reach no terminal.
func TestParseErrorPrintable(t *testing.T) {
	e := &ParseError{File: "a\x1bb\nc", Line: 1, Text: strings.Repeat("x", 199) + "ü\x1b]0;x\a", Err: errors.New("no \u202e number")}
	const want = `a\x1bb\nc:1: no \u202e number` + "\n    "
	if got := e.Error(); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, `x\xc3...`) {
		t.Errorf("%q", got)
	}
}
