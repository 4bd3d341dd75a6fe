package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/ibweave/ibweave/fabric"
)

// Paper is where text for people goes. On a terminal it makes long names shorter, breaks lines
// between words, and colours verdicts and severities. Elsewhere bytes stay as they are.
type Paper struct {
	w     io.Writer
	width int  // columns; 0 leaves lines as they are
	lines bool // messages: a line does not wait for those after it
	color bool
	short *strings.Replacer // of long names; nil for none
	block bytes.Buffer      // lines up to a blank one
}

// longestBlock is how many bytes wait for the end of a block.
const longestBlock = 1 << 20

// NewPaper is paper on w. With lines set each line is written at once.
func NewPaper(w io.Writer, lines bool) *Paper { return &Paper{w: w, lines: lines} }

// Set finds out what a writer shows: color is the value of --color. The error says which
// values there are.
func (p *Paper) Set(screen io.Writer, color string) error {
	if color != "auto" && color != "always" && color != "never" {
		return fmt.Errorf("--color %q: want auto, always or never", color)
	}
	terminal := isTerminal(screen)
	p.color = color == "always" || color == "auto" && terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if !terminal {
		return nil
	}
	if width, _, err := term.GetSize(int(screen.(*os.File).Fd())); err == nil && width >= narrowest {
		p.width = width
	}
	return nil
}

// Shorten makes the names of a fabric shorter that are long, where lines are broken.
func (p *Paper) Shorten(f *fabric.Fabric) {
	if p.width > 0 {
		p.short = ShortNames(f)
	}
}

// narrowest is the least number of columns that text is broken for.
const narrowest = 40

func (p *Paper) Write(b []byte) (int, error) {
	if p.width == 0 && !p.color {
		return p.w.Write(b)
	}
	p.block.Write(b)
	text := p.block.Bytes()
	end := bytes.LastIndex(text, []byte("\n\n")) + 1
	if p.lines || end == 0 && len(text) > longestBlock {
		end = bytes.LastIndexByte(text, '\n') + 1
	}
	return len(b), p.flush(end)
}

// End writes what waits for the end of a block.
func (p *Paper) End() error { return p.flush(p.block.Len()) }

// flush writes the first n bytes of what waits.
func (p *Paper) flush(n int) error {
	if n == 0 {
		return nil
	}
	text := string(p.block.Next(n))
	var b strings.Builder
	for _, block := range strings.SplitAfter(text, "\n\n") {
		p.print(&b, block)
	}
	_, err := io.WriteString(p.w, b.String())
	return err
}

// print prints a block of lines.
func (p *Paper) print(b *strings.Builder, block string) {
	if p.short != nil && p.width > 0 {
		block = p.shorten(block)
	}
	for line := range strings.Lines(block) {
		line, hasEnd := strings.CutSuffix(line, "\n")
		if p.width > 0 {
			line = broken(line, p.width)
		}
		if p.color {
			line = colored(line)
		}
		b.WriteString(line)
		if hasEnd {
			b.WriteByte('\n')
		}
	}
}

// Gap fills the place of what a name lost, in a line of a table.
const Gap = '\x00'

// shorten makes the names in a block shorter. A table stays one: the blanks behind a name grow by
// what it lost, and then columns that are blank in all lines go, except two of them.
func (p *Paper) shorten(block string) string {
	shorter := p.short.Replace(block)
	if shorter == block {
		return block
	}
	var out []string
	var table [][]rune // lines that have columns, one behind the other
	endTable := func() {
		if len(table) > 0 {
			out = append(out, squeezed(table))
		}
		table = nil
	}
	for line := range strings.SplitSeq(shorter, "\n") {
		var moved []rune
		lost := 0
		for rest := []rune(line); len(rest) > 0; rest = rest[1:] {
			switch {
			case rest[0] == Gap:
				lost++
				continue
			case lost > 0 && rest[0] == ' ' && len(rest) > 1 && rest[1] == ' ':
				moved = append(moved, slices.Repeat([]rune{Gap}, lost)...)
				lost = 0
			}
			moved = append(moved, rest[0])
		}
		if line = string(moved); strings.ContainsRune(line, Gap) || strings.Contains(strings.TrimLeft(line, " "), "  ") {
			table = append(table, moved)
			continue
		}
		endTable()
		out = append(out, line)
	}
	endTable()
	return strings.Join(out, "\n")
}

// squeezed takes the columns away that are blank in all lines, and between two others that are.
func squeezed(lines [][]rune) string {
	blank := func(column int) bool {
		return !slices.ContainsFunc(lines, func(line []rune) bool { return column < len(line) && line[column] != Gap && line[column] != ' ' })
	}
	widest := len(slices.MaxFunc(lines, func(x, y []rune) int { return len(x) - len(y) }))
	drop := make([]bool, widest)
	for column, run := 0, 0; column < widest; column++ {
		if !blank(column) {
			run = 0
			continue
		}
		if run++; run > 2 && column > run {
			drop[column] = true
		}
	}
	var b strings.Builder
	for i, line := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		var text strings.Builder
		for column, c := range line {
			switch {
			case drop[column]:
			case c == Gap:
				text.WriteByte(' ')
			default:
				text.WriteRune(c)
			}
		}
		b.WriteString(strings.TrimRight(text.String(), " "))
	}
	return b.String()
}

// command begins lines that people copy into a shell.
var command = regexp.MustCompile(`^\s+(?:sudo|ibweave|ibweave-papers|systemctl|mkdir|cp|cat|install|opensm) `)

// broken breaks a line between words; what follows is indented as the text of the line is. Commands
// end in a backslash there.
func broken(line string, width int) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	start := len(line) - len(strings.TrimLeft(line, " "))
	indent := start + 2
	if at := strings.Index(line[start:], "  "); at > 0 && at < width/3 { // a name and its text
		indent = len(line) - len(strings.TrimLeft(line[start+at:], " "))
		if indent > width/2 {
			indent = start + 2
		}
	}
	more, room := "\n", width
	if command.MatchString(line) {
		more, room = " \\\n", width-2
	}
	var b strings.Builder
	column := 0
	for rest := line; rest != ""; {
		blanks := rest[:len(rest)-len(strings.TrimLeft(rest, " "))]
		word, _, _ := strings.Cut(rest[len(blanks):], " ")
		n := utf8.RuneCountInString(word)
		if comma := strings.IndexByte(word, ','); n > room-indent && comma >= 0 { // a list of names
			word = word[:comma+1]
			n = utf8.RuneCountInString(word)
		}
		rest = rest[len(blanks)+len(word):]
		if column+len(blanks)+n > room && column > indent {
			b.WriteString(more + strings.Repeat(" ", indent))
			column, blanks = indent, ""
		}
		b.WriteString(blanks + word)
		column += len(blanks) + n
	}
	return strings.TrimRight(b.String(), " ")
}

// paint is the colour of verdicts and severities.
var paint = map[string]string{
	"error": "1;31", "errors": "1;31", "undecided": "1;33", "warning": "33", "warnings": "33", "note": "36", "clean": "32",
}

var (
	severities = regexp.MustCompile(`^ *(?:error|warning|note|undecided): `)
	severity   = regexp.MustCompile(`error|warning|note|undecided`)
	verdicts   = regexp.MustCompile(`^ *verdict +`)
	verdict    = regexp.MustCompile(`\b(?:errors|undecided|warnings|clean)\b`)
)

// colored colours the severity of a finding, or the verdicts.
func colored(line string) string {
	paintAll := func(part string, words *regexp.Regexp) string {
		return words.ReplaceAllStringFunc(part, func(word string) string { return fmt.Sprintf("\x1b[%sm%s\x1b[0m", paint[word], word) })
	}
	if head := severities.FindString(line); head != "" {
		return paintAll(head, severity) + line[len(head):]
	}
	if head := verdicts.FindString(line); head != "" {
		return head + paintAll(line[len(head):], verdict)
	}
	return line
}

// cut stands for what a short name leaves out.
const cut = ".."

// shortName is how many characters of a long name a terminal shows, at least.
const shortName = 24

// ShortNames makes the names of a fabric shorter that are long, all at the same places: as many
// characters are left as keep different names different.
func ShortNames(f *fabric.Fabric) *strings.Replacer {
	all := map[string]bool{}
	longest := 0
	for n := range f.NumNodes() {
		name := f.Name(fabric.NodeID(n)).Text
		all[name] = true
		longest = max(longest, len(name))
	}
	for most := shortName; most < longest; most++ {
		for i := range most - len(cut) + 1 { // from the middle outwards
			head := (most - len(cut)) / 2
			if i%2 == 0 {
				head += i / 2
			} else {
				head -= i/2 + 1
			}
			tail := most - len(cut) - head
			if head < 0 || tail < 0 {
				continue
			}
			if list, ok := shortened(all, head, tail); ok {
				return strings.NewReplacer(list...)
			}
		}
	}
	return nil
}

// shortened leaves head and tail characters at the ends of long names, with gaps for what they lose; ok
// says whether they stay different. They are in pairs, the longest first, as strings.NewReplacer
// takes them.
func shortened(all map[string]bool, head, tail int) (pairs []string, ok bool) {
	seen := make(map[string]bool, len(all))
	var long []string
	for name := range all {
		lost := len(name) - head - tail - len(cut)
		if lost <= 0 || strings.ContainsFunc(name, func(c rune) bool { return c >= utf8.RuneSelf || c < ' ' }) {
			continue // characters of several bytes stay whole
		}
		s := shortForm(name, head, tail)
		if seen[s] || all[s] && s != name {
			return nil, false
		}
		seen[s] = true
		long = append(long, name)
	}
	slices.SortFunc(long, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b)) })
	for _, name := range long {
		s := shortForm(name, head, tail)
		pairs = append(pairs, name, s+strings.Repeat(string(Gap), len(name)-len(s)))
	}
	return pairs, true
}

// shortForm cuts a name; the word in which the tail begins stays whole.
func shortForm(name string, head, tail int) string {
	const separators = " -_.:;,/"
	from := len(name) - tail
	for from > head+len(cut) && !strings.ContainsRune(separators, rune(name[from-1])) {
		from--
	}
	if from <= head+len(cut) {
		return name
	}
	return name[:head] + cut + name[from:]
}
