package hostlist_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ibweave/ibweave/internal/hostlist"
	"github.com/ibweave/ibweave/internal/short"
)

// TestFold has names as sites use them. The tests of ibweave slurm ask Slurm itself what
// such a list means.
func TestFold(t *testing.T) {
	for _, c := range []struct {
		want  string
		names []string
	}{
		{"", nil},
		{"login", []string{"login"}},
		{"n1", []string{"n1", "n1"}},
		{"n[1-3,5]", []string{"n5", "n3", "n2", "n1"}},
		{"n[8-11]", []string{"n11", "n10", "n9", "n8"}},
		{"n[08-11]", []string{"n11", "n10", "n09", "n08"}},
		{"n[099-100]", []string{"n100", "n099"}},
		{"n[8-9],n[08-09]", []string{"n08", "n09", "n8", "n9"}},
		{"a-01-c[1-2],a-02-c1", []string{"a-02-c1", "a-01-c2", "a-01-c1"}},
		{"0c42a103009d62fe", []string{"0c42a103009d62fe"}},
		{"n1234567890,n1234567891", []string{"n1234567890", "n1234567891"}},
		{"[1-2]", []string{"1", "2"}},
		{"n,n[1-2]", []string{"n2", "n", "n1"}},
		{"n0,n[00-01]", []string{"n0", "n00", "n01"}},
	} {
		back, err := hostlist.Expand(c.want)
		if names := slices.Compact(slices.Sorted(slices.Values(c.names))); err != nil || !slices.Equal(slices.Sorted(slices.Values(back)), names) {
			t.Errorf("%s means %q, %v; want %q", c.want, back, err, names)
		}
		short.Equal(t, hostlist.Fold(c.names), c.want, c.names)
	}
}

// A list that is cut closes its brackets, and is not longer than a line.
func TestShorten(t *testing.T) {
	var many []string
	for i := range 200 {
		many = append(many, fmt.Sprintf("n%03d", 2*i+1))
	}
	for list, want := range map[string]string{
		"n[1-9]":                            "n[1-9]",
		hostlist.Fold(many):                 "n[001,003,005,007,009,011,013,015,017,019,021,023,025,027,029,031,033,035,037,039,041,043,045,047,..]",
		strings.Repeat("a[1-2],", 20) + "b": strings.Repeat("a[1-2],", 14) + "..",
	} {
		short.Equal(t, hostlist.Shorten(list), want, list)
	}
}

// FuzzExpand folds again what a list means: the same names.
func FuzzExpand(f *testing.F) {
	for _, list := range []string{"n[001-018,020]", "a,b , c", "r[1-2]n[3-4]x", "n[1-", "n]1[", "n[5-1]", "n[1-99999999999]", "n[0-9][0-9][0-9][0-9][0-9][0-9][0-9]", "[08-10],8"} {
		f.Add(list)
	}
	f.Fuzz(func(t *testing.T, list string) {
		names, err := hostlist.Expand(list)
		if err != nil || len(names) > 1000 {
			return
		}
		again := short.Must(hostlist.Expand(hostlist.Fold(names)))(t)
		slices.Sort(names)
		slices.Sort(again)
		short.EqualList(t, slices.Compact(names), again, list, "means", names, "and folded")
	})
}
