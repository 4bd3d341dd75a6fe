package topology

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ibweave/ibweave/fabric"
)

// Terminals print the text in columns and colours, and their logs and copies keep
// that. This file restores the text that the tool printed. Line numbers stay.

// escape begins a control sequence of a terminal (ECMA-48).
const escape = "\x1b"

// escapes matches control sequences: "[", parameters, intermediates and a final byte;
// "]" up to BEL or ESC \; or intermediates and a final byte. None goes beyond its line.
var escapes = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*.?|\][^\a\\\n]*[\a\\]?|[ -/]*.?)`)

// withoutEscapes returns data without control sequences: colours,
// titles of windows, modes. Data without any is returned as it is.
func withoutEscapes(data []byte) []byte {
	if bytes.IndexByte(data, escape[0]) < 0 {
		return data
	}
	return escapes.ReplaceAll(data, nil)
}

// The least and the greatest width of terminals that unwrap handles, in columns.
const (
	minColumns = 60
	maxColumns = 400
	// maxTrimmed is the greatest number of blanks that a copied
	// row may have lost at its end, from tabs before a comment.
	maxTrimmed = 16
)

// unwrap joins rows that a terminal cut at its last column, and leaves an empty line for each row that
// it joined to another. A Problem tells how many rows it joined, the column, and the first line that was
// cut. Text is changed only if at least two, and most, of the longest rows are followed by a row that
// begins like no line of the topology.
func (p *parser) unwrap() {
	if !hasOddRow(p.data) {
		return
	}
	rows, columns, first := 0, 0, place{}
	lines := bytes.Split(p.data, []byte("\n"))
	for _, l := range lines {
		columns = max(columns, utf8.RuneCount(l))
	}
	if columns < minColumns || columns > maxColumns {
		return
	}
	goOn, stop := 0, 0 // longest rows that go on in the next row, and others
	for i := range len(lines) - 1 {
		if len(lines[i]) < columns || utf8.RuneCount(lines[i]) != columns || !beginsRecord(lines[i]) {
			continue
		}
		if !whole(lines[i], lines[i+1]) && continues(lines[i+1]) {
			goOn++
		} else if len(lines[i+1]) > 0 {
			stop++
		}
	}
	if goOn < 2 || stop > goOn/2 {
		return
	}
	out := make([]byte, 0, len(p.data)+len(lines)*maxTrimmed/4)
	for i := 0; i < len(lines); i++ {
		begin := i
		out = append(out, lines[i]...)
		for i+1 < len(lines) && beginsRecord(lines[begin]) && !whole(lines[i], lines[i+1]) && continues(lines[i+1]) {
			missing := columns - utf8.RuneCount(lines[i])
			if missing > maxTrimmed {
				break
			}
			out = append(append(out, strings.Repeat(" ", missing)...), lines[i+1]...)
			if rows++; rows == 1 {
				first.num = int32(begin) + 1
			}
			i++
		}
		out = append(out, strings.Repeat("\n", i-begin+1)...)
	}
	if p.data = out[:len(out)-1]; rows > 0 {
		q := p.problem(fabric.WrappedLines, first, 0, fmt.Sprintf("cut at column %d by a terminal, as %d rows are: joined again", columns, rows))
		q.Text, q.Count = "", rows
	}
}

// hasOddRow returns true if some row begins with two bytes that begin no line of a stanza or record. In
// wrapped text at least one row does.
func hasOddRow(data []byte) bool {
	for rest := data; len(rest) > 0; {
		var row []byte
		if row, rest = cutLine(rest); len(row) == 0 || row[0] == '[' || row[0] == '#' {
			continue
		}
		if len(row) < 2 || !strings.Contains("vedesyswcarthcSwCaHcRt{ ", string(row[:2])) {
			return true
		}
	}
	return false
}

// whole returns true if a row ends in a link, 4xNDR, as port lines do:
// the next row is then not its rest, unless both together end in 4xFDR10.
func whole(row, next []byte) bool {
	width, speed, ok := strings.Cut(string(row[bytes.LastIndexByte(row, ' ')+1:]), "x")
	s, known := fabric.ParseSpeed(speed)
	return wholeLink.Match(row) || ok && known && (s != fabric.FDR || !bytes.HasPrefix(next, []byte("10"))) && slices.Contains([]string{"1", "2", "4", "8", "12"}, width)
}

// wholeLink is a row of iblinkinfo up to its end.
var wholeLink = regexp.MustCompile(`==\(.*" \([^()]*\)$`)

// continues returns true if a row may be the rest of a line, because no line begins like it.
func continues(row []byte) bool {
	return len(bytes.TrimSpace(row)) > 0 && !beginsRecord(row) && kindOfNoise(row) == fabric.ForeignLines
}

// beginsRecord returns true if a row begins like a line of topology text that is not a
// comment. After a port number with its label and GUID the peer must follow, not a comment.
func beginsRecord(row []byte) bool {
	row = bytes.TrimLeft(row, " \t")
	form := formOf(row)
	return form != NoForm && form != UFMLinks || otherRecord.Match(row)
}

// otherRecord matches the beginnings of lines that formOf does not know.
var otherRecord = regexp.MustCompile(`^(?:\[[ \t]*\d[^"#]*"|(?:0x[0-9a-fA-F]{1,16}[ \t]|\d+[ \t]+\d+\[).*==\(|Chassis |Hostname: |Non-Chassis Nodes)`)

// cutMessages takes errors of the sweep out of lines that they interrupt. The text
// before an error goes on in the next line, unless that begins like a line of its own.
func (p *parser) cutMessages() {
	begins := []string{"ibwarn: [", "iberror: [", "ibpanic: [", "ibdebug: [", ".c:"} // what message matches
	if !slices.ContainsFunc(begins, func(s string) bool { return bytes.Contains(p.data, []byte(s)) }) {
		return
	}
	out := make([]byte, 0, len(p.data))
	num := int32(0)
	for rest := p.data; len(rest) > 0; {
		var text []byte
		text, rest = cutLine(rest)
		num++
		begin, ends := len(out), 1
		out = append(out, text...)
		for n := messageIn(text, 0); n > 0; n = messageIn(out[begin:], n) {
			text = bytes.Clone(out[begin+n:])
			p.noise = append(p.noise, foreign{kindOfNoise(text), place{num: num + int32(ends) - 1}, text})
			out = out[:begin+n]
			following, behind := cutLine(rest)
			if !continues(following) && (messageIn(following, 0) < 0 || beginsRecord(following)) {
				break
			}
			out, rest = append(out, following...), behind
			ends++
		}
		num += int32(ends) - 1
		out = append(out, strings.Repeat("\n", ends)...)
	}
	p.data = out
}

// messageIn returns where in a line an error of the sweep begins, -1 if there is
// none or it is the whole line. It searches from the word before offset from.
func messageIn(text []byte, from int) int {
	window := max(from-128, 0)
	from = window + bytes.LastIndexByte(bytes.TrimRight(text[window:from], " "), ' ') + 1
	at := message.FindIndex(text[from:])
	if at == nil || from+at[0] == 0 {
		return -1
	}
	if n := from + at[0]; !bytes.HasPrefix(text[n:], []byte("/src/")) {
		return n
	}
	return from + at[0] + 1 // the name in front ends in a slash
}

// cutShort matches a port line, a header, or a line before a header, that lacks its end.
var cutShort = regexp.MustCompile(`^[ \t]*(?:(?:\[|` + headerWords + `)[^"]*(?:"[^"]*)?|` + beforeWords + `[^=]*)$`)

// hinted adds to err that the text may be cut short, if it ends in the middle of a line.
func (p *parser) hinted(err error) error {
	parse, ok := err.(*fabric.ParseError)
	last := p.data[bytes.LastIndexByte(p.data, '\n')+1:]
	if ok && len(last) > 0 && len(p.nodes) > 0 && cutShort.Match(last) {
		parse.Err = fmt.Errorf("%w; the text ends amid line %d: is it cut short?", parse.Err, bytes.Count(p.data, []byte("\n"))+1)
	}
	return err
}
