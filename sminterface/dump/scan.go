package dump

import "github.com/ibweave/ibweave/fabric"

// scanner takes a line apart from left to right. Where something is not as it
// is wanted, bad is set, and from then on nothing is taken and all numbers are 0.
type scanner struct {
	rest []byte
	bad  bool
}

// take gives the next n bytes.
func (s *scanner) take(n int) []byte {
	b := s.rest[:n]
	s.rest = s.rest[n:]
	return b
}

// want reads a text, letter by letter.
func (s *scanner) want(text string) {
	s.bad = s.bad || !beginsWith(s.rest, text)
	if !s.bad {
		s.take(len(text))
	}
}

// has reads a text if it comes next, and says whether it did.
func (s *scanner) has(text string) bool {
	if s.bad || !beginsWith(s.rest, text) {
		return false
	}
	s.take(len(text))
	return true
}

// blanks reads blanks and tabs, one or more.
func (s *scanner) blanks() {
	n := len(s.rest)
	s.skipBlanks()
	s.bad = s.bad || len(s.rest) == n
}

// skipBlanks reads blanks and tabs, if there are any.
func (s *scanner) skipBlanks() {
	if !s.bad {
		s.take(skipBlanks(s.rest, 0))
	}
}

// decimal reads a number of 1 to digits decimal digits.
func (s *scanner) decimal(digits int) int {
	v, n := decPrefix(s.rest, digits)
	return int(s.number(v, n))
}

// hex reads a number of 1 to digits hexadecimal digits.
func (s *scanner) hex(digits int) uint64 { return s.number(hexPrefix(s.rest, digits)) }

// hex0x reads a number as hex does, with 0x before it.
func (s *scanner) hex0x(digits int) uint64 {
	s.want("0x")
	return s.hex(digits)
}

// number takes the n digits of v, none being wrong.
func (s *scanner) number(v uint64, n int) uint64 {
	if s.bad = s.bad || n == 0; s.bad {
		return 0
	}
	s.take(n)
	return v
}

// guid reads a GUID with 0x before it.
func (s *scanner) guid() fabric.GUID { return fabric.GUID(s.hex0x(16)) }

// atEnd says whether nothing is left, and all was as it was wanted.
func (s *scanner) atEnd() bool { return !s.bad && len(s.rest) == 0 }

// atWordEnd says whether all was as it was wanted, and nothing or a blank follows.
func (s *scanner) atWordEnd() bool { return !s.bad && (len(s.rest) == 0 || isBlank(s.rest[0])) }

// beginsWith is whether b begins with s.
func beginsWith(b []byte, s string) bool { return len(b) >= len(s) && string(b[:len(s)]) == s }

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// skipBlanks gives the index of the first byte at or after i that is neither
// blank nor tab.
func skipBlanks(b []byte, i int) int {
	for i < len(b) && isBlank(b[i]) {
		i++
	}
	return i
}

// hexPrefix reads a hexadecimal number of at most digits digits at the start
// of b and says how long it is; n is 0 when there is none or it is longer.
func hexPrefix(b []byte, digits int) (v uint64, n int) {
	for ; n < len(b) && hexDigit[b[n]] <= 15; n++ {
		if n == digits {
			return 0, 0
		}
		v = v<<4 | uint64(hexDigit[b[n]])
	}
	return v, n
}

// decPrefix is hexPrefix for decimal numbers.
func decPrefix(b []byte, digits int) (v uint64, n int) {
	for ; n < len(b) && b[n] >= '0' && b[n] <= '9'; n++ {
		if n == digits {
			return 0, 0
		}
		v = v*10 + uint64(b[n]-'0')
	}
	return v, n
}

// hexDigit is the value of a hexadecimal digit, 0xff for other bytes.
var hexDigit = func() (t [256]uint8) {
	for i := range t {
		t[i] = 0xff
	}
	for i, c := range []byte("0123456789abcdef") {
		t[c] = uint8(i)
	}
	for i, c := range []byte("ABCDEF") {
		t[c] = uint8(10 + i)
	}
	return t
}()
