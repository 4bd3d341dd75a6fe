package text

import (
	"encoding/json"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/ibweave/ibweave/internal/short"
)

func TestText(t *testing.T) {
	for _, x := range []struct{ got, want string }{
		{Count(1, "switch", "switches"), "1 switch"},
		{Count(0, "switch", "switches"), "0 switches"},
		{Count(uint16(1620), "switch", "switches"), "1620 switches"},
		{CountGrouped(1, "MLID", "MLIDs"), "1 MLID"},
		{CountGrouped(int64(1620), "MLID", "MLIDs"), "1,620 MLIDs"},
		{Grouped(999), "999"},
		{Grouped(1000), "1,000"},
		{Grouped(-338142), "-338,142"},
		{Grouped(-100), "-100"},
		{Grouped(int64(1234567890)), "1,234,567,890"},
		{List(nil, "or"), ""},
		{List([]string{"a"}, "or"), "a"},
		{List([]string{"a", "b"}, "and"), "a and b"},
		{List([]string{"a", "b", "c"}, "or"), "a, b or c"},
		{Few([]string{"a", "b"}, 2), "a, b"},
		{Few([]string{"a", "b", "c", "d"}, 2), "a, b and 2 more"},
	} {
		short.Equal(t, x.got, x.want)
	}
}

func TestNatural(t *testing.T) {
	names := []string{"", "a", "leaf 2", "leaf 10", "leaf 10 pod 3", "leaf 10 pod 20", "spine 1"}
	for i, a := range names {
		for k, b := range names {
			got := Natural(a, b)
			if want := i - k; got < 0 != (want < 0) || got > 0 != (want > 0) {
				t.Errorf("Natural(%q, %q) = %d", a, b, got)
			}
		}
	}
	short.Equal(t, Natural("leaf 02", "leaf 2"), 0, "leading zeros count")
}

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
