package diff

import (
	"fmt"
	"strings"
)

// number is a number in text.
func number[T ~int | ~uint8 | ~uint16 | ~uint32](n T) string { return fmt.Sprint(uint64(n)) }

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// counted is "3 gone", or "" for none.
func counted(n int, what string) string {
	if n == 0 {
		return ""
	}
	return grouped(int64(n)) + " " + what
}

// list puts commas between the words that are not empty.
func list(words ...string) string {
	var b strings.Builder
	for _, w := range words {
		if w == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(w)
	}
	return b.String()
}

// plural is "1 block" or "1,620 blocks".
func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return grouped(n) + " " + many
}

// grouped writes 338142 as 338,142.
func grouped(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
