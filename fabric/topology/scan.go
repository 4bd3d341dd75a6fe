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

// line is a line of text that is read from left to right.
type line struct {
	text []byte // without its end
	at   int    // what is read so far, in bytes
}

// done says whether all is read.
func (l *line) done() bool { return l.at >= len(l.text) }

// is says whether c comes next.
func (l *line) is(c byte) bool { return l.at < len(l.text) && l.text[l.at] == c }

// isBlank says whether a blank or the end of the line comes next.
func (l *line) isBlank() bool { return l.done() || l.is(' ') || l.is('\t') }

// afterBlank says whether a blank was read last.
func (l *line) afterBlank() bool {
	return l.at > 0 && (l.text[l.at-1] == ' ' || l.text[l.at-1] == '\t')
}

// rest is what is not read yet.
func (l *line) rest() []byte { return l.text[l.at:] }

func (l *line) skipBlanks() {
	for l.is(' ') || l.is('\t') {
		l.at++
	}
}

// skip reads s if it comes next.
func (l *line) skip(s string) bool {
	if len(l.text)-l.at < len(s) || string(l.text[l.at:l.at+len(s)]) != s {
		return false
	}
	l.at += len(s)
	return true
}

// letters reads the letters that come next.
func (l *line) letters() []byte {
	from := l.at
	for l.at < len(l.text) && 'a' <= l.text[l.at]|0x20 && l.text[l.at]|0x20 <= 'z' {
		l.at++
	}
	return l.text[from:l.at]
}

// token reads up to the next blank.
func (l *line) token() []byte {
	from := l.at
	for !l.isBlank() {
		l.at++
	}
	return l.text[from:l.at]
}

// nextToken is what token would read, for messages.
func (l *line) nextToken() []byte {
	ahead := *l
	return ahead.token()
}

// tooMany is what decimal makes of larger numbers.
const tooMany = 1 << 24

// decimal reads a number of decimal digits. It returns -1 if there is none, and
// tooMany for a larger one.
func (l *line) decimal() int {
	n := -1
	for ; !l.done() && '0' <= l.text[l.at] && l.text[l.at] <= '9'; l.at++ {
		n = min(max(n, 0)*10+int(l.text[l.at]-'0'), tooMany)
	}
	return n
}

// hexadecimal reads 1 to 16 hexadecimal digits.
func (l *line) hexadecimal() (v uint64, ok bool) {
	from := l.at
	for ; !l.done(); l.at++ {
		d := hexDigit(l.text[l.at])
		if d < 0 {
			break
		}
		v = v<<4 | uint64(d)
	}
	n := l.at - from
	return v, 1 <= n && n <= 16
}

// hexDigit is the value of a digit, or -1.
func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// number reads a decimal number without leading zeros, which ibsim takes for octal, or
// 0x and hexadecimal digits. Numbers beyond 64 bits are not ok.
func (l *line) number() (v uint64, ok bool) {
	if l.skip("0x") || l.skip("0X") {
		return l.hexadecimal()
	}
	from := l.at
	n := l.decimal()
	digits := l.text[from:l.at]
	switch {
	case len(digits) > 1 && digits[0] == '0':
		return 0, false
	case n < tooMany:
		return uint64(n), n >= 0
	}
	v, err := strconv.ParseUint(string(digits), 10, 64)
	return v, err == nil
}

// quoted reads what stands in quotes, nil if nothing does.
func (l *line) quoted() []byte {
	if !l.is('"') {
		return nil
	}
	n := bytes.IndexByte(l.text[l.at+1:], '"')
	if n < 0 {
		return nil
	}
	text := l.text[l.at+1 : l.at+1+n]
	l.at += n + 2
	return text
}

// portNumber reads [12], or returns 0.
func (l *line) portNumber() int {
	l.at++
	l.skipBlanks()
	n := l.decimal()
	l.skipBlanks()
	if n < 0 || !l.skip("]") {
		return 0
	}
	return n
}

// nextBracket is what stands up to a closing bracket, for messages.
func (l *line) nextBracket() []byte {
	if n := bytes.IndexByte(l.rest(), ']'); n >= 0 && n < 24 {
		return l.text[l.at : l.at+n+1]
	}
	return l.nextToken()
}

// skipExternal skips the [ext 3] of ibnetdiscover -g: the number that is
// printed on the chassis.
func (l *line) skipExternal() {
	if ahead := *l; ahead.skip("[ext ") {
		if n := bytes.IndexByte(l.rest(), ']'); n >= 0 {
			l.at += n + 1
		}
	}
}

// guidInBrackets reads (2c9f), with or without 0x.
func (l *line) guidInBrackets() (g fabric.GUID, ok bool) {
	l.at++
	if !l.skip("0x") {
		l.skip("0X")
	}
	v, ok := l.hexadecimal()
	return fabric.GUID(v), ok && l.skip(")")
}

// guidID reads an id as ibnetdiscover makes them (node_name): a letter for the
// type, a dash and 16 digits.
func guidID(id []byte) (key, bool) {
	if len(id) != 18 || id[1] != '-' || id[0] != 'S' && id[0] != 'H' && id[0] != 'R' {
		return key{}, false
	}
	l := line{text: id, at: 2}
	v, ok := l.hexadecimal()
	return key{value: v, kind: id[0]}, ok && l.done()
}

// linkOf reads 4xNDR. A width or speed that is not known is left 0, as those
// that ibnetdiscover prints ?? or ??? for.
func linkOf(word []byte) (link fabric.Link, ok bool) {
	l := line{text: word}
	switch width := l.decimal(); {
	case width < 0 && (len(word) < 3 || !l.skip("??")) || width >= 0 && !l.skip("x"):
		return link, false
	case slices.Contains([]int{1, 2, 4, 8, 12}, width):
		link.Width = uint8(width)
	}
	link.Speed, _ = fabric.ParseSpeed(string(l.rest()))
	return link, true
}
