package short

import (
	"errors"
	"flag"
	"fmt"
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

// record is a test that notes what ended it.
type record struct {
	*testing.T
	said string
}

func (r *record) Fatal(args ...any)                 { r.said += fmt.Sprint(args...) }
func (r *record) Errorf(format string, args ...any) { r.said += fmt.Sprintf(format, args...) }

func TestChecks(t *testing.T) {
	r := &record{T: t}
	Check(r, nil)
	if v, w := Must2(1, "a", error(nil))(r); v+Must(2, error(nil))(r) != 3 || w != "a" || r.said != "" {
		t.Errorf("%d, %s, %s", v, w, r.said)
	}
	Check(r, errors.New("a"))
	Must(0, errors.New("b"))(r)
	Must2(0, 0, errors.New("c"))(r)
	if r.said != "abc" {
		t.Errorf("ended by %s", r.said)
	}
	times := 0
	Await(r, func() bool { times++; return times == 3 }, "x")
	if times != 3 || r.said != "abc" {
		t.Errorf("asked %d times, ended by %s", times, r.said)
	}
}

func TestComparisons(t *testing.T) {
	r := &record{T: t}
	Equal(r, 1, 1)
	MustEqual(r, "a", "a", "x")
	EqualList(r, nil, []int{})
	Contains(r, "abc", "bc")
	Diff(r, []int{1}, []int{1})
	Equal(t, r.said, "")
	Equal(r, 1, 2, "x", 3)
	MustEqual(r, "a", "b")
	EqualList(r, []byte("c"), []byte("d"), "y")
	Contains(r, "abc", "d")
	Equal(t, r.said, "x 3\ngot 1, want 2\ngot a, want b"+"y\ngot\nc\nwant\nd"+"a part\ngot abc, want d")
	r.said = ""
	Diff(r, []int{1}, []int{2}, "z")
	Contains(t, r.said, "z\n(-want +got)\n")
}
