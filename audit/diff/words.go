package diff

import (
	"fmt"
	"strings"

	"github.com/ibweave/ibweave/internal/text"
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
	return text.Grouped(n) + " " + what
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
