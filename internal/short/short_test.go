package short

import (
	"flag"
	"slices"
	"testing"
)

func TestShort(t *testing.T) {
	was := testing.Short()
	defer func() { flag.Set("test.short", map[bool]string{false: "false", true: "true"}[was]) }()
	table := map[string]int{"a": 1, "b": 2, "c": 3}
	for _, want := range []struct {
		short string
		of    int
		part  []int
		keys  []string
	}{
		{"false", 100, []int{4, 5, 6}, []string{"a", "b", "c"}},
		{"true", 3, []int{4, 5}, []string{"b"}},
	} {
		flag.Set("test.short", want.short)
		if got := Of(100, 3); got != want.of {
			t.Errorf("Of is %d, want %d", got, want.of)
		}
		if got := Part(2, []int{4, 5, 6}); !slices.Equal(got, want.part) {
			t.Errorf("Part is %v, want %v", got, want.part)
		}
		got := Keys(table, "b")
		if slices.Sort(got); !slices.Equal(got, want.keys) {
			t.Errorf("Keys are %v, want %v", got, want.keys)
		}
	}
	parallel := flag.Lookup("test.parallel").Value
	most, overlapped := parallel.String(), "37"
	flag.Visit(func(f *flag.Flag) {
		if f.Name == "test.parallel" {
			overlapped = most
		}
	})
	for short, want := range map[string]string{"true": overlapped, "false": most} {
		flag.Set("test.short", short)
		if Overlap(37); parallel.String() != want {
			t.Errorf("with -short=%s %s tests overlap, want %s", short, parallel, want)
		}
		parallel.Set(most)
	}
	if got := Part(9, []int{4}); len(got) != 1 {
		t.Errorf("Part of one case is %v", got)
	}
}
