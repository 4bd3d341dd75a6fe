package sim

import (
	"strings"
	"testing"
)

func TestParseTime(t *testing.T) {
	for text, want := range map[string]Time{
		"0ns": 0, "1ps": 1, "12.5ns": 12500, "0.001ns": 1, "100us": 100 * Microsecond, "2ms": 2 * Millisecond,
		"1.000000000001s": Second + 1, "20s": 20 * Second,
	} {
		if got, err := ParseTime(text); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", text, got, err, want)
		}
		if got, err := ParseTime(want.String()); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", want, got, err, want)
		}
	}
	for _, text := range []string{"", "1", "ns", "1m", "-1ns", "+1ns", "1.ns", ".5ns", "1.5ps", "0.0001ns", "1e3ns", "1_0ns", "1 ns", "9999999999s", "1.2.3ns"} {
		if got, err := ParseTime(text); err == nil || got != 0 || !strings.Contains(err.Error(), "want a number and ps, ns") {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}
