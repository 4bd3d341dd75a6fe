package text

import (
	"testing"

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
