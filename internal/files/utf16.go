package files

import (
	"bufio"
	"encoding/binary"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// Text in UTF-16 is what PowerShell's > and Excel's "Unicode text" leave. A byte order
// mark begins it.
const (
	littleEndian = "UTF-16LE"
	bigEndian    = "UTF-16BE"
)

// utf16Reader makes UTF-8 of UTF-16 without its byte order mark. What is no UTF-16 becomes
// the replacement character.
type utf16Reader struct {
	from  *bufio.Reader
	order binary.ByteOrder
	begun bool   // the mark is read
	ahead rune   // a code unit that is read and not used, -1 for none
	text  []byte // UTF-8 that is not read yet
	err   error
}

func newUTF16(form string, from io.Reader) *utf16Reader {
	r := &utf16Reader{from: bufio.NewReaderSize(from, 64<<10), order: binary.LittleEndian, ahead: -1}
	if form == bigEndian {
		r.order = binary.BigEndian
	}
	return r
}

// unit reads a code unit.
func (r *utf16Reader) unit() (rune, error) {
	if u := r.ahead; u >= 0 {
		r.ahead = -1
		return u, nil
	}
	var b [2]byte
	switch _, err := io.ReadFull(r.from, b[:]); err {
	case nil:
		return rune(r.order.Uint16(b[:])), nil
	case io.ErrUnexpectedEOF: // half a unit at the end
		return utf8.RuneError, nil
	default:
		return 0, err
	}
}

// next reads a character.
func (r *utf16Reader) next() (rune, error) {
	u, err := r.unit()
	if err != nil || !utf16.IsSurrogate(u) {
		return u, err
	}
	low, err := r.unit()
	if err != nil {
		return utf8.RuneError, nil // the error comes again
	}
	c := utf16.DecodeRune(u, low)
	if c == utf8.RuneError {
		r.ahead = low
	}
	return c, nil
}

func (r *utf16Reader) Read(p []byte) (int, error) {
	for len(r.text) < len(p) && r.err == nil {
		var c rune
		if c, r.err = r.next(); r.err == nil && (r.begun || c != '\ufeff') {
			r.text = utf8.AppendRune(r.text, c)
		}
		r.begun = true
	}
	n := copy(p, r.text)
	r.text = append(r.text[:0], r.text[n:]...)
	if n == 0 && len(p) > 0 {
		return 0, r.err
	}
	return n, nil
}
