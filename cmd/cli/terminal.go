package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Paper writes text for people. On a terminal it breaks lines between words and colours
// verdicts and severities; elsewhere it does neither, unless Set is told always to colour.
type Paper struct {
	w     io.Writer
	width int // columns; 0 breaks no lines
	color bool
	rest  bytes.Buffer // an unfinished line
}

// NewPaper returns a Paper that writes to w, without breaks and colours until Set.
func NewPaper(w io.Writer) *Paper { return &Paper{w: w} }

// Set takes the width from screen, if that is a terminal, and colours by color,
// the value of --color. The error of a wrong value names the valid ones.
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

// narrowest is the least width of a terminal on which lines are broken.
const narrowest = 40

// Write writes whole lines, and keeps an unfinished one for the next Write or for End.
func (p *Paper) Write(b []byte) (int, error) {
	if p.width == 0 && !p.color {
		return p.w.Write(b)
	}
	p.rest.Write(b)
	return len(b), p.flush(bytes.LastIndexByte(p.rest.Bytes(), '\n') + 1)
}

// End writes the unfinished line.
func (p *Paper) End() error { return p.flush(p.rest.Len()) }

// flush writes the first n bytes of rest, broken and coloured.
func (p *Paper) flush(n int) error {
	if n == 0 {
		return nil
	}
	var b strings.Builder
	for line := range strings.Lines(string(p.rest.Next(n))) {
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
	_, err := io.WriteString(p.w, b.String())
	return err
}

// command begins lines that people copy into a shell.
var command = regexp.MustCompile(`^\s+(?:sudo|ibweave|ibweave-papers|systemctl|mkdir|cp|cat|install|opensm) `)

// broken breaks a line between words and indents what follows like the text
// of the line. In a command, each part but the last ends in a backslash.
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

// paint has the ANSI colours of verdicts and severities.
var paint = map[string]string{
	"error": "1;31", "errors": "1;31", "undecided": "1;33", "warning": "33", "warnings": "33", "note": "36", "clean": "32",
}

var (
	severities = regexp.MustCompile(`^ *(?:error|warning|note|undecided): `)
	severity   = regexp.MustCompile(`error|warning|note|undecided`)
	verdicts   = regexp.MustCompile(`^ *verdict +`)
	verdict    = regexp.MustCompile(`\b(?:errors|undecided|warnings|clean)\b`)
)

// colored colours the severity before a finding, or the verdicts behind "verdict".
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
