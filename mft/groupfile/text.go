package groupfile

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/ibweave/ibweave/fabric"
)

// kind tells values apart.
type kind uint8

const (
	scalar kind = iota
	list
	mapping
)

func (k kind) String() string { return [...]string{"a value", "a list", "a mapping"}[k] }

// node is a value of the file.
type node struct {
	kind   kind
	quoted bool    // a scalar in quotes, which is text whatever it looks like
	at     int     // offset of its first byte
	text   string  // of a scalar
	items  []*node // of a list; of a mapping, key and value in turn
}

// maxDepth is how deep values may be nested. A file of groups needs four: the
// file, the list of groups, a group, the list of its receivers.
const maxDepth = 8

// textError is an error at an offset of the file.
type textError struct {
	at  int
	err error
}

func (e *textError) Error() string { return e.err.Error() }

func failAt(at int, format string, args ...any) error {
	return &textError{at, fmt.Errorf(format, args...)}
}

// reader reads the YAML that files of groups are written in, of which JSON is
// a part: mappings and lists in block and in flow form, plain scalars on one
// line, quoted scalars on one line, comments, anchors and aliases. All else is
// an error that says how to write it instead. Reading takes time in proportion
// to the text, whatever it is.
type reader struct {
	data    []byte
	at      int
	inFlow  int // how many brackets are open
	anchors map[string]*node
}

// position is the line of an offset, from 1, its column, from 0 and in bytes,
// and the line itself without its end.
func position(data []byte, at int) (line, column int, text string) {
	at = min(at, len(data))
	start := bytes.LastIndexByte(data[:at], '\n') + 1
	rest := data[start:]
	if i := bytes.IndexByte(rest, '\n'); i >= 0 {
		rest = rest[:i]
	}
	rest = bytes.TrimSuffix(rest, []byte("\r"))
	return bytes.Count(data[:start], []byte("\n")) + 1, at - start, string(rest[:min(len(rest), 256)])
}

// parseText reads a file. It returns nil for one without a value.
func parseText(name string, data []byte) (*node, error) {
	r := &reader{data: data, anchors: make(map[string]*node)}
	root, err := r.document()
	if err != nil {
		return nil, locate(name, data, err)
	}
	return root, nil
}

// locate makes a *fabric.ParseError of a textError.
func locate(name string, data []byte, err error) error {
	var t *textError
	if !errors.As(err, &t) {
		return err
	}
	line, column, text := position(data, t.at)
	return &fabric.ParseError{File: name, Line: line, Column: column, Text: text, Err: t.err}
}

func (r *reader) document() (*node, error) {
	r.at = len(r.data) - len(bytes.TrimPrefix(r.data, []byte("\ufeff")))
	for i := r.at; i < len(r.data); {
		c, size := utf8.DecodeRune(r.data[i:])
		if c == utf8.RuneError && size == 1 {
			return nil, failAt(i, "a byte that is not UTF-8")
		}
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' {
			return nil, failAt(i, "a control character")
		}
		i += size
	}
	if err := r.skip(); err != nil {
		return nil, err
	}
	if r.marker("---") {
		r.at += 3
		if err := r.skip(); err != nil {
			return nil, err
		}
	}
	if r.at == len(r.data) {
		return nil, nil
	}
	if r.data[r.at] == '%' && r.column(r.at) == 0 {
		return nil, failAt(r.at, "YAML directives are not read here; leave this line out")
	}
	root, err := r.block(0, 1)
	if err != nil {
		return nil, err
	}
	if err := r.skip(); err != nil {
		return nil, err
	}
	if r.marker("...") {
		r.at += 3
		if err := r.skip(); err != nil {
			return nil, err
		}
	}
	if r.at < len(r.data) {
		if r.marker("---") {
			return nil, failAt(r.at, "a second document; want one file for each")
		}
		return nil, failAt(r.at, "text after the end; is it indented like the lines above?")
	}
	return root, nil
}

// marker says whether a marker of documents is next.
func (r *reader) marker(m string) bool {
	rest := r.data[r.at:]
	return bytes.HasPrefix(rest, []byte(m)) && r.column(r.at) == 0 && (len(rest) == 3 || isSpace(rest[3]))
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// column is the column of an offset, in bytes.
func (r *reader) column(at int) int {
	column := at - bytes.LastIndexByte(r.data[:at], '\n') - 1
	if bytes.HasPrefix(r.data, []byte("\ufeff")) && at-column == 0 {
		column -= len("\ufeff")
	}
	return column
}

// skip goes to the next byte that is neither space nor comment. Tabs may not
// indent a line of a block.
func (r *reader) skip() error {
	tab := -1 // offset of a tab in the indentation
	indent := r.at == 0 || r.data[r.at-1] == '\n'
	for ; r.at < len(r.data); r.at++ {
		switch c := r.data[r.at]; {
		case c == '\n':
			indent, tab = true, -1
		case c == ' ' || c == '\r':
		case c == '\t':
			if indent && tab < 0 && r.inFlow == 0 {
				tab = r.at
			}
		case c == '#' && (r.at == 0 || isSpace(r.data[r.at-1]) || r.at == 3 && r.data[0] == 0xef):
			if i := bytes.IndexByte(r.data[r.at:], '\n'); i >= 0 {
				r.at += i - 1
			} else {
				r.at = len(r.data) - 1
			}
		default:
			if tab >= 0 {
				return failAt(tab, "a tab in the indentation; want blanks")
			}
			return nil
		}
	}
	return nil
}

// sameLine goes to the next byte in this line that is no blank, and says
// whether there is one, a comment apart.
func (r *reader) sameLine() bool {
	for r.at < len(r.data) && (r.data[r.at] == ' ' || r.data[r.at] == '\t' || r.data[r.at] == '\r') {
		r.at++
	}
	if r.at == len(r.data) || r.data[r.at] == '\n' {
		return false
	}
	return r.data[r.at] != '#' || !isSpace(r.data[r.at-1])
}

// dash says whether an item of a block list is next.
func (r *reader) dash() bool {
	return r.data[r.at] == '-' && (r.at+1 == len(r.data) || isSpace(r.data[r.at+1]))
}

// block reads the value at r.at, which is the first of its line but for dashes
// and must be in column least or beyond.
func (r *reader) block(least, depth int) (*node, error) {
	if depth > maxDepth {
		return nil, failAt(r.at, "values are nested too deep; want groups: with a list of mappings")
	}
	column := r.column(r.at)
	if column < least {
		return nil, failAt(r.at, "this line is not indented enough to belong to the one above")
	}
	if r.dash() {
		return r.blockList(column, depth)
	}
	start := r.at
	anchor, err := r.anchor()
	if err != nil {
		return nil, err
	}
	if anchor != "" && !r.sameLine() {
		if err := r.skip(); err != nil {
			return nil, err
		}
		if r.at == len(r.data) || r.column(r.at) < least {
			return nil, failAt(start, "the anchor &%s has no value", anchor)
		}
		n, err := r.block(least, depth+1)
		return r.name(anchor, n), err
	}
	at := r.at
	n, err := r.inline(depth, false)
	if err != nil {
		return nil, err
	}
	if r.colon() {
		if anchor != "" {
			return nil, failAt(start, "anchors of keys are not read here; leave &%s out", anchor)
		}
		return r.blockMapping(n, at, column, depth)
	}
	return r.name(anchor, n), r.endOfLine()
}

// colon says whether the colon after a key is next.
func (r *reader) colon() bool {
	i := r.at
	for i < len(r.data) && (r.data[i] == ' ' || r.data[i] == '\t') {
		i++
	}
	return i < len(r.data) && r.data[i] == ':' && (i+1 == len(r.data) || isSpace(r.data[i+1]))
}

// endOfLine wants nothing but a comment in the rest of the line.
func (r *reader) endOfLine() error {
	if r.sameLine() {
		return failAt(r.at, "text after a value; want it in quotes, or in a line of its own")
	}
	return nil
}

// blockList reads the items of a list whose dashes are in a column.
func (r *reader) blockList(column, depth int) (*node, error) {
	n := &node{kind: list, at: r.at}
	for r.at < len(r.data) && r.column(r.at) == column && r.dash() {
		at := r.at
		r.at++
		item, err := r.below(at, column+1, depth)
		if err != nil {
			return nil, err
		}
		n.items = append(n.items, item)
		if err := r.skip(); err != nil {
			return nil, err
		}
	}
	if err := r.dedented(column); err != nil {
		return nil, err
	}
	return n, nil
}

// below reads the value after a dash or a key's colon, in this line or in the
// next ones, from column least on.
func (r *reader) below(at, least, depth int) (*node, error) {
	if r.sameLine() {
		if r.data[at] == '-' {
			return r.block(least, depth+1)
		}
		if r.dash() {
			return nil, failAt(r.at, "a list begins in the line after the key")
		}
		anchor, err := r.anchor()
		if err != nil {
			return nil, err
		}
		if anchor == "" || r.sameLine() {
			n, err := r.inline(depth+1, false)
			if err != nil {
				return nil, err
			}
			if r.colon() {
				return nil, failAt(r.at, "a second key in one line; want each in a line of its own, or the value in quotes")
			}
			return r.name(anchor, n), r.endOfLine()
		}
		n, err := r.below(at, least, depth)
		return r.name(anchor, n), err
	}
	if err := r.skip(); err != nil {
		return nil, err
	}
	if r.at < len(r.data) && !r.marker("...") && !r.marker("---") {
		column := r.column(r.at)
		// A list may be in the column of its key.
		if column >= least || r.data[at] != '-' && column == least-1 && r.dash() {
			return r.block(column, depth+1)
		}
	}
	return &node{at: at}, nil // nothing
}

// blockMapping reads the pairs of a mapping whose keys are in a column; the
// first key, which is at offset at, has been read.
func (r *reader) blockMapping(key *node, at, column, depth int) (*node, error) {
	n := &node{kind: mapping, at: at}
	for {
		if key.kind != scalar {
			return nil, failAt(key.at, "a key that is %s; want a name", key.kind)
		}
		for r.data[r.at] != ':' {
			r.at++
		}
		r.at++
		value, err := r.below(key.at, column+1, depth)
		if err != nil {
			return nil, err
		}
		n.items = append(n.items, key, value)
		if err := r.skip(); err != nil {
			return nil, err
		}
		if r.at == len(r.data) || r.column(r.at) != column || r.dash() || r.marker("...") || r.marker("---") {
			return n, r.dedented(column)
		}
		if key, err = r.inline(depth, false); err != nil {
			return nil, err
		}
		if !r.colon() {
			return nil, failAt(key.at, "want a key and a colon, such as name: all")
		}
	}
}

// dedented wants the next value, if any, in a column before the one that ends.
func (r *reader) dedented(column int) error {
	if r.at < len(r.data) && r.column(r.at) > column {
		return failAt(r.at, "this line is indented more than the ones above; want it in column %d, or text over several lines in one", column)
	}
	return nil
}

// anchor reads &name, if it is next.
func (r *reader) anchor() (string, error) {
	if r.data[r.at] != '&' {
		return "", nil
	}
	at := r.at
	r.at++
	name := r.word()
	if name == "" {
		return "", failAt(at, "an anchor without a name; want &name, of letters, digits, - and _, or the text in quotes")
	}
	return name, nil
}

// word reads the name of an anchor or an alias, "" when there is none.
func (r *reader) word() string {
	start := r.at
	for r.at < len(r.data) && !isSpace(r.data[r.at]) && !isFlow(r.data[r.at]) {
		c := r.data[r.at]
		if c != '-' && c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return ""
		}
		r.at++
	}
	return string(r.data[start:r.at])
}

func isFlow(c byte) bool { return c == ',' || c == '[' || c == ']' || c == '{' || c == '}' }

// name gives a value its anchor.
func (r *reader) name(anchor string, n *node) *node {
	if anchor != "" && n != nil {
		r.anchors[anchor] = n
	}
	return n
}

// inline reads a value that begins at r.at and is no block. In flow, it ends
// at commas and brackets too.
func (r *reader) inline(depth int, flow bool) (*node, error) {
	if depth > maxDepth {
		return nil, failAt(r.at, "values are nested too deep; want groups: with a list of mappings")
	}
	switch c := r.data[r.at]; c {
	case '[', '{':
		return r.flow(depth)
	case '"':
		return r.doubleQuoted()
	case '\'':
		return r.singleQuoted()
	case '*':
		at := r.at
		r.at++
		name := r.word()
		n := r.anchors[name]
		if n == nil {
			return nil, failAt(at, "no anchor &%s before this alias; want text that begins with * in quotes", name)
		}
		return n, nil
	case '|', '>':
		return nil, failAt(r.at, "text over several lines is not read here; want it in one line, in quotes")
	case '!':
		return nil, failAt(r.at, "YAML tags are not read here; want text that begins with ! in quotes")
	case '&':
		return nil, failAt(r.at, "a second anchor")
	case '@', '`', '%', ']', '}', ',', '#', '?', ':':
		return nil, failAt(r.at, "no value begins with %c; want it in quotes", c)
	case '-':
		if next := r.at + 1; next == len(r.data) || isSpace(r.data[next]) || flow && isFlow(r.data[next]) {
			return nil, failAt(r.at, "no value begins with - and a blank here; want it in quotes, or a list in lines of their own")
		}
	}
	start := r.at
	for r.at < len(r.data) {
		c := r.data[r.at]
		if c == '\n' || flow && isFlow(c) || c == '#' && isSpace(r.data[r.at-1]) {
			break
		}
		if c == ':' && (r.at+1 == len(r.data) || isSpace(r.data[r.at+1]) || flow && isFlow(r.data[r.at+1])) {
			break
		}
		r.at++
	}
	text := bytes.TrimRight(r.data[start:r.at], " \t\r")
	r.at = start + len(text)
	return &node{at: start, text: string(text)}, nil
}

// flow reads [a, b] or {a: b}, as in JSON.
func (r *reader) flow(depth int) (*node, error) {
	start := r.at
	n := &node{kind: list, at: start}
	end := byte(']')
	if r.data[r.at] == '{' {
		n.kind, end = mapping, '}'
	}
	r.at++
	r.inFlow++
	defer func() { r.inFlow-- }()
	next := func() error {
		if err := r.skip(); err != nil {
			return err
		}
		if r.at == len(r.data) {
			return failAt(start, "no %c for this %c", end, r.data[start])
		}
		return nil
	}
	value := func() (*node, error) {
		anchor, err := r.anchor()
		if err != nil {
			return nil, err
		}
		if anchor != "" {
			if err := next(); err != nil {
				return nil, err
			}
		}
		v, err := r.inline(depth+1, true)
		return r.name(anchor, v), err
	}
	for {
		if err := next(); err != nil {
			return nil, err
		}
		if r.data[r.at] == end {
			r.at++
			return n, nil
		}
		v, err := value()
		if err != nil {
			return nil, err
		}
		if err := next(); err != nil {
			return nil, err
		}
		if n.kind == mapping {
			if v.kind != scalar || r.data[r.at] != ':' {
				return nil, failAt(v.at, "want a key and a colon, such as name: all")
			}
			r.at++
			if r.at < len(r.data) && !v.quoted && !isSpace(r.data[r.at]) && !isFlow(r.data[r.at]) {
				return nil, failAt(r.at-1, "want a blank after this colon")
			}
			if err := next(); err != nil {
				return nil, err
			}
			n.items = append(n.items, v)
			if c := r.data[r.at]; c == ',' || c == end {
				v = &node{at: r.at} // nothing
			} else if v, err = value(); err != nil {
				return nil, err
			}
			if err := next(); err != nil {
				return nil, err
			}
		} else if r.data[r.at] == ':' {
			return nil, failAt(r.at, "a key in a list; want the text in quotes, or {} around key and value")
		}
		n.items = append(n.items, v)
		switch r.data[r.at] {
		case ',':
			r.at++
		case end:
		default:
			return nil, failAt(r.at, "want , or %c", end)
		}
	}
}

// singleQuoted reads 'text', where two quotes stand for one.
func (r *reader) singleQuoted() (*node, error) {
	n := &node{at: r.at, quoted: true}
	var b []byte
	for r.at++; r.at < len(r.data) && r.data[r.at] != '\n'; r.at++ {
		if r.data[r.at] == '\'' {
			if r.at+1 == len(r.data) || r.data[r.at+1] != '\'' {
				r.at++
				n.text = string(b)
				return n, nil
			}
			r.at++
		}
		b = append(b, r.data[r.at])
	}
	return nil, failAt(n.at, "no ' ends this text in its line")
}

// escapes are those of one character, of JSON and YAML.
var escapes = map[byte]string{'"': "\"", '\\': "\\", '/': "/", ' ': " ", '0': "\x00", 'a': "\a", 'b': "\b", 't': "\t", '\t': "\t",
	'n': "\n", 'v': "\v", 'f': "\f", 'r': "\r", 'e': "\x1b", 'N': "\u0085", '_': "\u00a0", 'L': "\u2028", 'P': "\u2029"}

// doubleQuoted reads "text" with the escapes of JSON and YAML.
func (r *reader) doubleQuoted() (*node, error) {
	n := &node{at: r.at, quoted: true}
	var b []byte
	for r.at++; r.at < len(r.data) && r.data[r.at] != '\n'; {
		switch c := r.data[r.at]; c {
		case '"':
			r.at++
			n.text = string(b)
			return n, nil
		case '\\':
			at := r.at
			r.at++
			if r.at == len(r.data) || r.data[r.at] == '\n' || r.data[r.at] == '\r' {
				return nil, failAt(n.at, "no \" ends this text in its line")
			}
			c := r.data[r.at]
			r.at++
			if s, ok := escapes[c]; ok {
				b = append(b, s...)
				continue
			}
			v, err := r.escape(at, c)
			if err != nil {
				return nil, err
			}
			b = utf8.AppendRune(b, v)
		default:
			b = append(b, c)
			r.at++
		}
	}
	return nil, failAt(n.at, "no \" ends this text in its line")
}

// escape reads the digits of \x41, \u0041 or \U00000041, after the letter;
// JSON writes what is beyond \uffff as two of these.
func (r *reader) escape(at int, letter byte) (rune, error) {
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[letter]
	v, ok := r.hex(digits)
	if digits == 0 || !ok {
		return 0, failAt(at, "no such escape; want \\\\ for a backslash, or the text in single quotes")
	}
	if letter == 'u' && v >= 0xd800 && v < 0xdc00 && bytes.HasPrefix(r.data[r.at:], []byte(`\u`)) {
		r.at += 2
		low, ok := r.hex(4)
		if !ok || low < 0xdc00 || low > 0xdfff {
			return 0, failAt(at, "half of a surrogate pair")
		}
		v = 0x10000 + (v-0xd800)<<10 + (low - 0xdc00)
	}
	if v > utf8.MaxRune || !utf8.ValidRune(rune(v)) {
		return 0, failAt(at, "an escape that is no character")
	}
	return rune(v), nil
}

// hex reads a number of n hexadecimal digits, not more than eight.
func (r *reader) hex(n int) (v uint32, ok bool) {
	if len(r.data)-r.at < n {
		return 0, false
	}
	for _, c := range r.data[r.at : r.at+n] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		v = v<<4 | uint32(c)
	}
	r.at += n
	return v, true
}
