// Package hostlist writes names of hosts as Slurm, pdsh and ClusterShell do, with runs of
// numbers in brackets: n[001-018,020]. It makes no promise to other modules.
package hostlist

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/internal/text"
)

// maxDigits is the most digits of a number that is folded. Longer numbers stay in the name.
const maxDigits = 9

// numbered is a name that ends in a number.
type numbered struct {
	prefix string
	width  int // of a number with leading zeros, else 0
	number int
}

// Fold writes names as one list, without repetitions and in natural order. It
// folds numbers only at the end of a name, where every tool understands brackets.
func Fold(names []string) string {
	padded := make(map[numbered]bool) // prefixes and widths of numbers with leading zeros
	list := make([]numbered, len(names))
	for i, name := range names {
		n := split(name)
		if list[i] = n; n.width > 0 {
			padded[numbered{n.prefix, n.width, 0}] = true
		}
	}
	for i, name := range names {
		n := &list[i]
		if width := len(name) - len(n.prefix); n.width == 0 && padded[numbered{n.prefix, width, 0}] {
			n.width = width
		}
	}
	slices.SortFunc(list, func(a, b numbered) int {
		return cmp.Or(text.Natural(a.prefix, b.prefix), strings.Compare(a.prefix, b.prefix), cmp.Compare(a.width, b.width), cmp.Compare(a.number, b.number))
	})
	list = slices.Compact(list)
	var parts []string
	for len(list) > 0 {
		k := 1
		for k < len(list) && list[k].prefix == list[0].prefix && list[k].width == list[0].width {
			k++
		}
		parts = append(parts, fold(list[:k]))
		list = list[k:]
	}
	return strings.Join(parts, ",")
}

// split splits the number at the end off a name. Without one, the number is -1.
func split(name string) numbered {
	i := len(name)
	for i > 0 && '0' <= name[i-1] && name[i-1] <= '9' {
		i--
	}
	digits := name[i:]
	if digits == "" || len(digits) > maxDigits {
		return numbered{name, 0, -1}
	}
	n := numbered{prefix: name[:i]}
	if len(digits) > 1 && digits[0] == '0' {
		n.width = len(digits)
	}
	for _, d := range digits {
		n.number = 10*n.number + int(d-'0')
	}
	return n
}

// fold writes names with one prefix and width, by ascending numbers.
func fold(list []numbered) string {
	prefix, width := list[0].prefix, list[0].width
	if list[0].number < 0 {
		rest := list[1:] // the name without a number is first
		if len(rest) == 0 {
			return prefix
		}
		return prefix + "," + fold(rest)
	}
	var runs []string
	for i := 0; i < len(list); {
		k := i + 1
		for k < len(list) && list[k].number == list[k-1].number+1 {
			k++
		}
		run := fmt.Sprintf("%0*d", width, list[i].number)
		if k > i+1 {
			run += fmt.Sprintf("-%0*d", width, list[k-1].number)
		}
		runs = append(runs, run)
		i = k
	}
	if len(list) == 1 {
		return prefix + runs[0]
	}
	return prefix + "[" + strings.Join(runs, ",") + "]"
}

// MaxNames bounds how many names Expand makes of a list.
const MaxNames = 1 << 20

// Expand lists the names of a list, in its order: names with commas
// between them, each with any number of brackets. It reverses Fold.
func Expand(list string) (names []string, err error) {
	for _, part := range splitList(list) {
		expanded, err := expand(part)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", part, err)
		}
		if names = append(names, expanded...); len(names) > MaxNames {
			return nil, fmt.Errorf("%q: more than %d names", list, MaxNames)
		}
	}
	return names, nil
}

// splitList splits a list at the commas outside of brackets, and drops blanks around parts.
func splitList(list string) (parts []string) {
	inside := false
	for _, part := range strings.FieldsFunc(list, func(r rune) bool {
		if r == '[' || r == ']' {
			inside = r == '['
		}
		return r == ',' && !inside
	}) {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// expand lists the names of one part of a list.
func expand(part string) ([]string, error) {
	prefix, rest, ok := strings.Cut(part, "[")
	if !ok {
		if strings.Contains(part, "]") {
			return nil, errors.New("] without [ before it")
		}
		return []string{part}, nil
	}
	ranges, rest, ok := strings.Cut(rest, "]")
	if !ok || strings.Contains(ranges, "[") || strings.Contains(prefix, "]") {
		return nil, errors.New("want brackets like [1-4,7]")
	}
	tails, err := expand(rest)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, r := range strings.Split(ranges, ",") {
		low, high, isRange := strings.Cut(r, "-")
		if !isRange {
			high = low
		}
		from, err1 := strconv.ParseUint(low, 10, 31)
		to, err2 := strconv.ParseUint(high, 10, 31)
		if err1 != nil || err2 != nil || to < from || uint64(len(names))+(to-from+1)*uint64(len(tails)) > MaxNames {
			return nil, fmt.Errorf("range %q: want numbers like 7 or 1-4, and at most %d names", r, MaxNames)
		}
		for i := from; i <= to; i++ {
			for _, tail := range tails {
				names = append(names, fmt.Sprintf("%s%0*d%s", prefix, len(low), i, tail))
			}
		}
	}
	return names, nil
}

// Shorten cuts a long list after a comma, to fit a line, and
// adds "..". It closes a bracket that the cut leaves open.
func Shorten(list string) string {
	const most = 100
	if len(list) <= most {
		return list
	}
	cut := list[:strings.LastIndexByte(list[:most], ',')+1] + ".."
	if strings.Count(cut, "[") > strings.Count(cut, "]") {
		cut += "]"
	}
	return cut
}
