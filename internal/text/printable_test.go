package text

import (
	"encoding/json"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/internal/short"
)

// Everything that acts on a terminal is escaped, in whatever pieces it comes, and JSON
// keeps its meaning.
func TestPrintable(t *testing.T) {
	for s, want := range map[string]string{
		"a\tb":                  "a\tb",
		"\x1b[2J":               `\x1b[2J`,
		"a\nb\r":                `a\nb\x0d`,
		"\u009b2J\x7f":          `\u009b2J\u007f`,
		"\xff\xc3":              `\xff\xc3`,
		"\u202eabc\u2066":       `\u202eabc\u2066`,
		"\u2028\U000e0041":      `\u2028\udb40\udc41`,
		"größer, 東, \U0001f600": "größer, 東, \U0001f600",
		"\ufffd":                "\ufffd",
	} {
		short.Equal(t, Printable(s), want, s)
	}
	rapid.Check(t, func(t *rapid.T) {
		hidden := rapid.StringOf(rapid.SampledFrom([]rune("a\\u/\"<\t\n\b\f\r\x1b\x7f\u0085\u009b\u00ad\u061c\u200b\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069\ufeff\U000e0041")))
		s := rapid.OneOf(rapid.String(), hidden, rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "s")
		text := short.Must(json.Marshal(s))(t)
		var out, rest []byte
		for from := 0; from < len(text); {
			to := rapid.IntRange(from+1, len(text)).Draw(t, "to")
			piece := append(rest, text[from:to]...)
			out, rest = AppendPrintable(out, piece)
			from = to
		}
		var want, got string
		if err := errors.Join(json.Unmarshal(text, &want), json.Unmarshal(out, &got)); err != nil || len(rest) > 0 || got != want {
			t.Fatalf("%q became %q, %v", want, got, err)
		}
		visible, rest := AppendPrintable(nil, []byte(want))
		if err := json.Unmarshal(PrintableJSON(text), &got); err != nil || len(rest) > 0 || got != string(visible) {
			t.Fatalf("%q is shown as %q, %v; want %q", want, got, err, visible)
		}
		if p := Printable(s); Printable(p) != p {
			t.Fatalf("%q is not printable", p)
		}
	})
}
