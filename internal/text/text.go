// Package text puts numbers and lists into words. It makes no promise to other
// modules.
package text

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Integer has the types of numbers that are counted.
type Integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32
}

// Count returns "1 switch" or "1620 switches".
func Count[N Integer](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(int64(n)) + " " + many
}

// CountGrouped returns "1 switch" or "1,620 switches".
func CountGrouped[N Integer](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Grouped(n) + " " + many
}

// Grouped writes 338142 as 338,142.
func Grouped[N Integer](n N) string {
	s := fmt.Sprint(int64(n))
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// List returns "a", "a or b" or "a, b or c", if last is "or".
func List(words []string, last string) string {
	n := len(words)
	if n < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:n-1], ", ") + " " + last + " " + words[n-1]
}

// Few returns "a, b" or, for more than most words, "a, b and 3 more".
func Few(words []string, most int) string {
	if len(words) <= most {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), len(words)-most)
}

// Ends joins words with between. Of more than most words
// it takes the first and last most/2, and in their middle
// text more, a format with the number of words left out.
func Ends(words []string, most int, between, more string) string {
	if left := len(words) - most; left > 0 {
		words = slices.Concat(words[:most/2], []string{fmt.Sprintf(more, left)}, words[len(words)-most/2:])
	}
	return strings.Join(words, between)
}

// Natural compares names as people do: numbers in them by value.
func Natural(a, b string) int {
	for a != "" && b != "" {
		x, restA := digits(a)
		y, restB := digits(b)
		if x != "" && y != "" {
			x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if c := cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y)); c != 0 {
				return c
			}
			a, b = restA, restB
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

// digits splits off the number that s begins with.
func digits(s string) (number, rest string) {
	rest = strings.TrimLeft(s, "0123456789")
	return s[:len(s)-len(rest)], rest
}

// SortNatural puts a list into the order of Natural, and returns it.
func SortNatural(list []string) []string {
	slices.SortFunc(list, func(a, b string) int { return cmp.Or(Natural(a, b), strings.Compare(a, b)) })
	return list
}

// Exact as n of Decimals means as many as tell a number from all others.
const Exact = -1

// Decimals returns x with n decimals, "" if it is not known.
func Decimals(x float64, n int, known bool) string {
	if !known {
		return ""
	}
	return strconv.FormatFloat(x, 'f', n, 64)
}

// Each returns of(element) for each element of a list.
func Each[T, U any](list []T, of func(T) U) []U {
	out := make([]U, len(list))
	for i, x := range list {
		out[i] = of(x)
	}
	return out
}

// Numbers returns the numbers from 0 to n-1.
func Numbers[N Integer](n int) []N {
	list := make([]N, n)
	for i := range list {
		list[i] = N(i)
	}
	return list
}

// Fill sets all elements of a list to x.
func Fill[T any](list []T, x T) {
	for i := range list {
		list[i] = x
	}
}

// Indices returns the indices of elements for
// which is(element) is true, nil for none.
func Indices[N Integer, T any](list []T, is func(T) bool) (at []N) {
	for i, x := range list {
		if is(x) {
			at = append(at, N(i))
		}
	}
	return at
}

// CountIf counts the elements for which is(element) is true.
func CountIf[T any](list []T, is func(T) bool) (n int) {
	for _, x := range list {
		if is(x) {
			n++
		}
	}
	return n
}

// Where returns the elements for which is(element) is true, nil for none.
func Where[T any](list []T, is func(T) bool) (some []T) {
	for _, x := range list {
		if is(x) {
			some = append(some, x)
		}
	}
	return some
}

// Bytes returns a number of bytes with three digits and K, M, G, T or P.
func Bytes(n float64) string {
	const units = "KMGTP"
	unit := ""
	for i := 0; i < len(units) && n >= 1000; i++ {
		n /= 1024
		unit = units[i : i+1]
	}
	if unit == "" {
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprintf("%.3g%s", n, unit)
}

// Seconds returns a time for people, with three digits.
func Seconds(s float64) string {
	d := time.Duration(s * 1e9)
	for unit := time.Duration(1); unit <= time.Hour; unit *= 10 {
		if d < 1000*unit {
			return d.Round(unit).String()
		}
	}
	return d.Round(time.Minute).String()
}

// Percent writes a share, 0 to 1, in percent with two decimals.
func Percent(x float64) string { return fmt.Sprintf("%.2f %%", 100*x) }
