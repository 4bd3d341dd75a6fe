package text

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// Sheet collects the text that a command prints: facts, tables and lists in one layout. Its zero
// value is empty.
type Sheet struct {
	bytes.Buffer
	Width int // columns of the names of facts, 13 when 0
}

// Row writes a fact: its name, or "" for a further line of the fact before, and a text.
func (s *Sheet) Row(name, format string, args ...any) {
	fmt.Fprintf(s, "%-*s%s\n", cmp.Or(s.Width, 13), name, fmt.Sprintf(format, args...))
}

// Table returns a writer of lines whose cells end in tabs; its Flush writes them into s, in columns.
func (s *Sheet) Table() *tabwriter.Writer { return tabwriter.NewWriter(s, 0, 0, 2, ' ', 0) }

// Numbers is a Table with cells aligned to the right.
func (s *Sheet) Numbers() *tabwriter.Writer {
	return tabwriter.NewWriter(s, 0, 0, 2, ' ', tabwriter.AlignRight)
}

// Section writes a title, lines 0 to shown-1
// of a list of length all, and how many are
// left. It writes nothing for an empty list.
func (s *Sheet) Section(title string, all, shown int, line func(i int) string) {
	if all == 0 {
		return
	}
	fmt.Fprintf(s, "\n%s:\n", title)
	for i := range shown {
		fmt.Fprintf(s, "    %s\n", line(i))
	}
	if all > shown {
		fmt.Fprintf(s, "    and %s more\n", Grouped(all-shown))
	}
}

// Columns writes rows. The column with index left is aligned left, all others right.
func (s *Sheet) Columns(rows [][]string, left int) {
	wide := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, cell := range r {
			wide[i] = max(wide[i], utf8.RuneCountInString(cell))
		}
	}
	for _, r := range rows {
		var line strings.Builder
		for i, cell := range r {
			pad := strings.Repeat(" ", wide[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				line.WriteString("  ")
			}
			if i == left {
				line.WriteString(cell + pad)
			} else {
				line.WriteString(pad + cell)
			}
		}
		s.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}
