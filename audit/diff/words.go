package diff

import (
	"slices"
	"strings"

	"github.com/ibweave/ibweave/internal/text"
)

// counted is "3 gone", or "" for none.
func counted[N text.Integer](n N, what string) string {
	if n == 0 {
		return ""
	}
	return text.Grouped(n) + " " + what
}

// list puts commas between the words that are not empty.
func list(words ...string) string {
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), ", ")
}
