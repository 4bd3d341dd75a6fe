package topology

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/ibweave/ibweave/fabric"
)

// cutLine splits data after its first line; line is without its end, LF.
func cutLine(data []byte) (line, rest []byte) {
	if n := bytes.IndexByte(data, '\n'); n >= 0 {
		return data[:n], data[n+1:]
	}
	return data, nil
}

// Line is a line of text that is read from left to right. Methods that want something set
// Bad if it does not come next; then they and Skip read nothing more, and numbers are 0.
type Line struct {
	Text []byte // without its end
	At   int    // number of bytes read
	Bad  bool
}

// Done returns true if all is read.
func (l *Line) Done() bool { return l.At >= len(l.Text) }

// Is returns true if c comes next.
func (l *Line) Is(c byte) bool { return l.At < len(l.Text) && l.Text[l.At] == c }

// IsBlank returns true if a blank or the end of the line comes next.
func (l *Line) IsBlank() bool { return l.Done() || l.Is(' ') || l.Is('\t') }

// afterBlank returns true if a blank was read last.
func (l *Line) afterBlank() bool {
	return l.At > 0 && (l.Text[l.At-1] == ' ' || l.Text[l.At-1] == '\t')
}

// Rest returns what is not read yet.
func (l *Line) Rest() []byte { return l.Text[l.At:] }

// SkipBlanks reads blanks and tabs, if any come next.
func (l *Line) SkipBlanks() {
	for l.Is(' ') || l.Is('\t') {
		l.At++
	}
}

// Skip reads s and returns true if s comes next.
func (l *Line) Skip(s string) bool {
	if l.Bad || len(l.Text)-l.At < len(s) || string(l.Text[l.At:l.At+len(s)]) != s {
		return false
	}
	l.At += len(s)
	return true
}

// letters reads the letters that come next.
func (l *Line) letters() []byte {
	from := l.At
	for l.At < len(l.Text) && 'a' <= l.Text[l.At]|0x20 && l.Text[l.At]|0x20 <= 'z' {
		l.At++
	}
	return l.Text[from:l.At]
}

// token reads up to the next blank.
func (l *Line) token() []byte {
	from := l.At
	for !l.IsBlank() {
		l.At++
	}
	return l.Text[from:l.At]
}

// nextToken is what token would read, for messages.
func (l *Line) nextToken() []byte {
	ahead := *l
	return ahead.token()
}

// tooMany is the value of decimal for every number that is larger.
const tooMany = 1 << 30

// decimal reads a number of decimal digits. It returns -1 if there is none, and
// tooMany for a larger one.
func (l *Line) decimal() int {
	n := -1
	for ; !l.Done() && '0' <= l.Text[l.At] && l.Text[l.At] <= '9'; l.At++ {
		n = min(max(n, 0)*10+int(l.Text[l.At]-'0'), tooMany)
	}
	return n
}

// hexadecimal reads 1 to 16 hexadecimal digits.
func (l *Line) hexadecimal() (v uint64, ok bool) {
	from := l.At
	for ; !l.Done() && HexDigit[l.Text[l.At]] <= 15; l.At++ {
		v = v<<4 | uint64(HexDigit[l.Text[l.At]])
	}
	n := l.At - from
	return v, 1 <= n && n <= 16
}

// HexDigit is the value of a hexadecimal digit, 0xff for other bytes.
var HexDigit = func() (t [256]uint8) {
	for i := range t {
		t[i] = 0xff
	}
	for i, c := range []byte("0123456789abcdef") {
		t[c] = uint8(i)
		t[bytes.ToUpper([]byte{c})[0]] = uint8(i)
	}
	return t
}()

// Want reads s; anything else sets Bad.
func (l *Line) Want(s string) { l.Bad = !l.Skip(s) }

// Blanks wants blanks and tabs, one or more.
func (l *Line) Blanks() {
	from := l.At
	l.SkipBlanks()
	l.Bad = l.Bad || l.At == from
}

// Decimal wants a number of 1 to digits decimal digits, 9 at most.
func (l *Line) Decimal(digits int) int {
	from := l.At
	n := l.decimal()
	return int(l.take(from, digits, uint64(n)))
}

// Hex wants a number of 1 to digits hexadecimal digits, 16 at most.
func (l *Line) Hex(digits int) uint64 {
	from := l.At
	v, _ := l.hexadecimal()
	return l.take(from, digits, v)
}

// Hex0x wants 0x, and digits as Hex does.
func (l *Line) Hex0x(digits int) uint64 {
	l.Want("0x")
	return l.Hex(digits)
}

// GUID wants a GUID with 0x in front.
func (l *Line) GUID() fabric.GUID { return fabric.GUID(l.Hex0x(16)) }

// take returns v, read from offset from on; it sets Bad if there are no digits,
// or too many.
func (l *Line) take(from, digits int, v uint64) uint64 {
	if n := l.At - from; l.Bad || n == 0 || n > digits {
		l.Bad = true
		return 0
	}
	return v
}

// AtEnd returns true if nothing was wrong and all is read.
func (l *Line) AtEnd() bool { return !l.Bad && l.Done() }

// AtWordEnd returns true if nothing was wrong, and a blank or the end of the line comes next.
func (l *Line) AtWordEnd() bool { return !l.Bad && l.IsBlank() }

// number reads a decimal number without leading zeros, which ibsim takes for octal, or
// 0x and hexadecimal digits. Numbers beyond 64 bits are not ok.
func (l *Line) number() (v uint64, ok bool) {
	if l.Skip("0x") || l.Skip("0X") {
		return l.hexadecimal()
	}
	from := l.At
	n := l.decimal()
	digits := l.Text[from:l.At]
	switch {
	case len(digits) > 1 && digits[0] == '0':
		return 0, false
	case n < tooMany:
		return uint64(n), n >= 0
	}
	v, err := strconv.ParseUint(string(digits), 10, 64)
	return v, err == nil
}

// quoted reads text in quotes; nil if none comes next.
func (l *Line) quoted() []byte {
	if !l.Is('"') {
		return nil
	}
	n := bytes.IndexByte(l.Text[l.At+1:], '"')
	if n < 0 {
		return nil
	}
	text := l.Text[l.At+1 : l.At+1+n]
	l.At += n + 2
	return text
}

// portNumber reads [12], or returns 0.
func (l *Line) portNumber() int {
	l.At++
	l.SkipBlanks()
	n := l.decimal()
	l.SkipBlanks()
	if n < 0 || !l.Skip("]") {
		return 0
	}
	return n
}

// nextBracket returns the text up to a closing bracket, for messages.
func (l *Line) nextBracket() []byte {
	if n := bytes.IndexByte(l.Rest(), ']'); n >= 0 && n < 24 {
		return l.Text[l.At : l.At+n+1]
	}
	return l.nextToken()
}

// skipExternal skips the [ext 3] of ibnetdiscover -g: the number that is
// printed on the chassis.
func (l *Line) skipExternal() {
	if ahead := *l; ahead.Skip("[ext ") {
		if n := bytes.IndexByte(l.Rest(), ']'); n >= 0 {
			l.At += n + 1
		}
	}
}

// guidInBrackets reads (2c9f), with or without 0x.
func (l *Line) guidInBrackets() (g fabric.GUID, ok bool) {
	l.At++
	if !l.Skip("0x") {
		l.Skip("0X")
	}
	v, ok := l.hexadecimal()
	return fabric.GUID(v), ok && l.Skip(")")
}

// guidID reads an id as ibnetdiscover makes them (node_name): a letter for the
// type, a dash and 16 digits.
func guidID(id []byte) (key, bool) {
	if len(id) != 18 || id[1] != '-' {
		return key{}, false
	}
	l := Line{Text: id, At: 2}
	v, ok := l.hexadecimal()
	kind := bytes.IndexByte(kindLetters[:], id[0])
	return key{value: v, kind: fabric.NodeType(max(kind, 0))}, kind > 0 && ok && l.Done()
}

// linkOf reads 4xNDR. A width or speed that it does not
// know is 0, such as ?? and ??? of ibnetdiscover.
func linkOf(word []byte) (link fabric.Link, ok bool) {
	l := Line{Text: word}
	switch width := l.decimal(); {
	case width < 0 && (len(word) < 3 || !l.Skip("??")) || width >= 0 && !l.Skip("x"):
		return link, false
	case slices.Contains([]int{1, 2, 4, 8, 12}, width):
		link.Width = uint8(width)
	}
	link.Speed, _ = fabric.ParseSpeed(string(l.Rest()))
	return link, true
}
