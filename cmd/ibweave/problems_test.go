package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TestListProblems: few lines are all printed, many are cut, and none where
// input was left out.
func TestListProblems(t *testing.T) {
	for _, test := range []struct {
		n     int
		all   bool
		lines int
		last  string
	}{
		{0, false, 0, ""},
		{11, false, 11, "problem 10"},
		{12, false, 11, "and 2 more of these"},
		{12, true, 12, "problem 11"},
	} {
		var out bytes.Buffer
		a := &app{stderr: &out}
		a.listProblems(test.n, test.all, func(i int) string { return fmt.Sprint("problem ", i) })
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if out.Len() == 0 {
			lines = nil
		}
		if len(lines) != test.lines || test.lines > 0 && lines[len(lines)-1] != test.last {
			t.Errorf("%d problems, all %t: %q; want %d lines, the last %q", test.n, test.all, lines, test.lines, test.last)
		}
	}
}
