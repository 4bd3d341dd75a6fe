package topology

import "bytes"

// cutLine splits data after its first line; line is without its end, LF or
// CRLF.
func cutLine(data []byte) (line, rest []byte) {
	n := bytes.IndexByte(data, '\n')
	if n < 0 {
		line = data
	} else {
		line, rest = data[:n], data[n+1:]
	}
	if len(line) > 0 && line[len(line)-1] == '\r' {
		line = line[:len(line)-1]
	}
	return line, rest
}

func skipBlanks(s []byte, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	return i
}

// wordAt is the letters at s[i:].
func wordAt(s []byte, i int) []byte {
	j := i
	for j < len(s) && ('a' <= s[j]|0x20 && s[j]|0x20 <= 'z') {
		j++
	}
	return s[i:j]
}

// tokenAt is what stands at s[i:] up to the next blank.
func tokenAt(s []byte, i int) []byte {
	j := i
	for j < len(s) && s[j] != ' ' && s[j] != '\t' {
		j++
	}
	return s[i:j]
}

// tooMany is what decimal makes of larger numbers.
const tooMany = 1 << 24

// decimal reads the number at s[i:], and gives -1 when there is none and
// tooMany for what is larger. next is behind the digits.
func decimal(s []byte, i int) (n, next int) {
	if i >= len(s) || s[i] < '0' || s[i] > '9' {
		return -1, i
	}
	for ; i < len(s) && '0' <= s[i] && s[i] <= '9'; i++ {
		n = n*10 + int(s[i]-'0')
		if n > tooMany {
			n = tooMany
		}
	}
	return n, i
}

// digit is the value of hexadecimal digits, 0xff for other bytes.
var digit = func() (t [256]byte) {
	for i := range t {
		t[i] = 0xff
	}
	for i := range 10 {
		t['0'+i] = byte(i)
	}
	for i := range 6 {
		t['a'+i], t['A'+i] = byte(10+i), byte(10+i)
	}
	return t
}()

// hexadecimal reads the digits at s[i:]. n is their count, which is more than
// 16 when the number has no room.
func hexadecimal(s []byte, i int) (v uint64, n int) {
	for ; i+n < len(s); n++ {
		d := digit[s[i+n]]
		if d == 0xff {
			break
		}
		v = v<<4 | uint64(d)
	}
	return v, n
}

// guidID reads an id as ibnetdiscover makes them (node_name): a letter for the
// type, a dash and 16 digits.
func guidID(id []byte) (key, bool) {
	if len(id) != 18 || id[1] != '-' || (id[0] != 'S' && id[0] != 'H' && id[0] != 'R') {
		return key{}, false
	}
	v, n := hexadecimal(id, 2)
	return key{value: v, kind: id[0]}, n == 16
}
