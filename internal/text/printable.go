package text

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Printable escapes everything in s that acts on a terminal or is
// invisible there: control characters except the tab, format
// characters such as those that turn the direction of text (Unicode
// Cc and Cf), line and paragraph separators, and invalid UTF-8. Names
// of nodes, input lines and file names in messages go through it.
func Printable(s string) string {
	for i := range len(s) {
		if c := s[i]; c != '\t' && (c < ' ' || c >= 0x7f) {
			return string(appendPrintable(nil, s, false))
		}
	}
	return s
}

// AppendPrintable appends text of several lines as Printable
// does, but keeps the ends of lines. It writes an escape as
// \x1b for a byte and \u202e for a character, as in JSON, so
// that JSON keeps its meaning. text may end in the middle of
// a character: AppendPrintable returns that part as rest.
func AppendPrintable(dst, text []byte) (printable, rest []byte) {
	end := len(text)
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if c := text[len(text)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(text[len(text)-i:]) {
				end -= i
			}
			break
		}
	}
	return appendPrintable(dst, string(text[:end]), true), text[end:]
}

// PrintableJSON changes the output of json.Marshal so that its strings, once decoded,
// are as AppendPrintable writes them, for pages and other viewers. AppendPrintable
// would write the escape \u202e, which JSON decodes; PrintableJSON writes \\u202e.
func PrintableJSON(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text) // size is that of the character as JSON has it
		if r == '\\' && len(text) > 1 {
			size = 2
			switch text[1] {
			case 'b':
				r = '\b'
			case 'f':
				r = '\f'
			case 'r':
				r = '\r'
			case 'u':
				size = min(6, len(text))
				if v, err := strconv.ParseUint(string(text[2:size]), 16, 16); err == nil {
					r = rune(v)
				}
			}
		}
		if r == '\t' || r == '\n' || !isHidden(r) {
			out = append(out, text[:size]...)
		} else {
			out = append(out, bytes.ReplaceAll(appendPrintable(nil, string(r), true), []byte(`\`), []byte(`\\`))...)
		}
		text = text[size:]
	}
	return out
}

// isHidden returns true if a character acts on what shows it, or is invisible.
func isHidden(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }

func appendPrintable(dst []byte, s string, lines bool) []byte {
	for i, r := range s {
		size := utf8.RuneLen(r)
		if r == utf8.RuneError {
			_, size = utf8.DecodeRuneInString(s[i:])
		}
		switch {
		case r == '\t', r == '\n' && lines, ' ' <= r && r < 0x7f:
			dst = append(dst, byte(r))
		case r == '\n':
			dst = append(dst, `\n`...)
		case r < ' ', r == utf8.RuneError && size == 1:
			dst = fmt.Appendf(dst, `\x%02x`, s[i])
		case !isHidden(r):
			dst = utf8.AppendRune(dst, r)
		case r < 0x10000:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			dst = fmt.Appendf(dst, `\u%04x\u%04x`, high, low)
		}
	}
	return dst
}
