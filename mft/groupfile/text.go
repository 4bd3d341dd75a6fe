package groupfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

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

const (
	// maxDepth is how deep values may be nested. A file of groups needs four:
	// the file, the list of groups, a group, the list of its receivers.
	maxDepth = 8

	// maxSize is how many bytes a file may have. 10,000 groups of 64 ports are
	// 17 MB when each port has a line of its own.
	maxSize = 64 << 20
)

// textError is an error at an offset of the file.
type textError struct {
	at  int
	err error
}

func (e *textError) Error() string { return e.err.Error() }

func failAt(at int, format string, args ...any) error {
	return &textError{at, fmt.Errorf(format, args...)}
}

var errDepth = errors.New("values are nested too deep; want groups: with a list of mappings")

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

// locate makes a *fabric.ParseError of a textError.
func locate(name string, data []byte, err error) error {
	var t *textError
	if !errors.As(err, &t) {
		return err
	}
	line, column, text := position(data, t.at)
	return &fabric.ParseError{File: name, Line: line, Column: column, Text: text, Err: t.err}
}

// parseText reads a file. It returns nil for one without a value. What is JSON
// is read as such, since YAML knows neither its surrogate pairs nor a DEL in
// quotes.
func parseText(name string, data []byte) (*node, error) {
	read := readYAML
	isJSON := len(data) <= maxSize && json.Valid(data)
	if isJSON {
		read = readJSON
	}
	err := checkText(data, isJSON)
	if err == nil {
		var root *node
		if root, err = read(data); err == nil {
			return root, nil
		}
	}
	return nil, locate(name, data, err)
}

// checkText wants at most maxSize bytes, of UTF-8, without characters that the
// format does not have. In YAML, it wants no line to end with anything but LF or
// CR LF either: YAML 1.1 counts lines at four more places than editors do.
func checkText(data []byte, isJSON bool) error {
	if len(data) > maxSize {
		return failAt(0, "a file of %d bytes; want at most %d", len(data), maxSize)
	}
	for i := 0; i < len(data); {
		c, size := rune(data[i]), 1
		if c >= utf8.RuneSelf {
			c, size = utf8.DecodeRune(data[i:])
		}
		switch {
		case c == utf8.RuneError && size == 1:
			return failAt(i, "a byte that is not UTF-8")
		case c < ' ' && c != '\t' && c != '\n' && c != '\r':
			return failAt(i, "a control character")
		case isJSON:
		case c == '\r' && (i+1 == len(data) || data[i+1] != '\n'):
			return failAt(i, "a carriage return within a line; want lines that end with LF or CR LF")
		case c >= 0x7f && c < 0xa0, c == 0x2028, c == 0x2029, c == 0xfeff && i > 0, c&^1 == 0xfffe:
			return failAt(i, "the character %U; want it as \"\\u%04x\", in double quotes", c, c)
		}
		i += size
	}
	return nil
}

// readJSON reads data that json.Valid holds for.
func readJSON(data []byte) (*node, error) {
	r := &jsonReader{data: data, d: json.NewDecoder(bytes.NewReader(data))}
	r.d.UseNumber()
	n, _, err := r.value(1)
	return n, err
}

type jsonReader struct {
	data []byte
	d    *json.Decoder
}

// value reads a value, or the bracket that ends the list or mapping around it.
func (r *jsonReader) value(depth int) (n *node, isEnd bool, err error) {
	at := int(r.d.InputOffset())
	at = len(r.data) - len(bytes.TrimLeft(r.data[at:], " \t\r\n,:"))
	token, err := r.d.Token()
	if err != nil {
		return nil, false, failAt(at, "%w", err)
	}
	n = &node{at: at}
	switch v := token.(type) {
	case json.Delim:
		switch v {
		case ']', '}':
			return nil, true, nil
		case '[':
			n.kind = list
		case '{':
			n.kind = mapping
		}
		if depth > maxDepth {
			return nil, false, &textError{at, errDepth}
		}
		for {
			item, isEnd, err := r.value(depth + 1)
			if err != nil || isEnd {
				return n, false, err
			}
			n.items = append(n.items, item)
		}
	case string:
		n.text, n.quoted = v, true
		raw := r.data[at:r.d.InputOffset()]
		if strings.Contains(v, "\ufffd") && !bytes.Contains(raw, []byte("\ufffd")) && !bytes.Contains(bytes.ToLower(raw), []byte(`\ufffd`)) {
			return nil, false, failAt(at, "half of a surrogate pair")
		}
	default: // a number, true, false or null
		n.text = string(r.data[at:r.d.InputOffset()])
	}
	return n, false, nil
}

// readYAML reads one document.
func readYAML(data []byte) (*node, error) {
	start := len(data) - len(bytes.TrimPrefix(data, []byte("\ufeff")))
	lines := &lineReader{data: data, at: start}
	d := yaml.NewDecoder(lines)
	var root, more yaml.Node
	switch err := decode(d, &root); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, lines.locate(err)
	}
	if err := decode(d, &more); err == nil {
		return nil, failAt(newPlaces(data, start).offset(more.Line, more.Column), "a second document; want one file for each")
	} else if !errors.Is(err, io.EOF) {
		return nil, lines.locate(err)
	}
	a := &adapter{data: data, places: newPlaces(data, start), done: make(map[*yaml.Node]*node)}
	n, err := a.node(root.Content[0], 1)
	if err != nil || n.kind == scalar && !n.quoted && n.text == "" {
		return nil, err
	}
	return n, nil
}

// decode reads the next document. A panic of the library is an error.
func decode(d *yaml.Decoder, n *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()
	return d.Decode(n)
}

// lineReader gives data line by line, after an empty line 0, and so knows how
// far the library has come when it fails. The library's errors have the line
// in which the mapping began, and none for the first line of its input.
type lineReader struct {
	data  []byte
	at    int
	begun bool
}

func (r *lineReader) Read(p []byte) (int, error) {
	if !r.begun && len(p) > 0 {
		r.begun = true
		p[0] = '\n'
		return 1, nil
	}
	if r.at == len(r.data) {
		return 0, io.EOF
	}
	rest := r.data[r.at:]
	if i := bytes.IndexByte(rest[:min(len(rest), len(p))], '\n'); i >= 0 {
		rest = rest[:i+1]
	}
	n := copy(p, rest)
	r.at += n
	return n, nil
}

var (
	yamlError = regexp.MustCompile(`(?s)^yaml: (?:line (\d+): )?(.*)$`)
	noAnchor  = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)
)

// reported is what the line in an error of the library is.
type reported uint8

const (
	scanned reported = iota // that of the text, plus one: an error of the scanner
	parsed                  // that of the text
	begun                   // that in which the list or mapping begins around the text
)

// remedies are what to write instead, by the message of the library.
var remedies = map[string]struct {
	line reported
	want string
}{
	"did not find expected key":                              {begun, "want a key and a colon, such as name: all, in the column of the keys above"},
	"did not find expected '-' indicator":                    {begun, "want - and a blank, in the column of those above"},
	"did not find expected ',' or ']'":                       {begun, "want , or ]"},
	"did not find expected ',' or '}'":                       {begun, "want , or }"},
	"did not find expected node content":                     {begun, "want a value"},
	"did not find expected <document start>":                 {begun, "want the text indented like the lines above, and one document"},
	"mapping values are not allowed in this context":         {scanned, "want each key in a line of its own, or text with a colon and a blank in quotes"},
	"block sequence entries are not allowed in this context": {scanned, "want a list in the lines after its key"},
	"found character that cannot start any token":            {scanned, "want text that begins with it in quotes, and blanks instead of tabs"},
	"could not find expected ':'":                            {scanned, "want a key and a colon, such as name: all"},
	"found unexpected end of stream":                         {scanned, "want a quote that ends this text"},
	"found unexpected document indicator":                    {scanned, "want a quote that ends this text"},
	"found unknown escape character":                         {scanned, `want \\ for a backslash, or the text in single quotes`},
	"did not find expected hexdecimal number":                {scanned, `want \\ for a backslash, or the text in single quotes`},
	"did not find expected alphabetic or numeric character":  {scanned, "want & or * and a name of letters, digits, - and _, or the text in quotes"},
	"found incompatible YAML document":                       {parsed, "want this line left out"},
	"found duplicate %YAML directive":                        {parsed, "want this line left out"},
	"found unknown directive name":                           {scanned, "want this line left out"},
	"found a tab character that violates indentation":        {scanned, "want blanks"},
}

// locate finds the place of an error of the library.
func (r *lineReader) locate(err error) error {
	m := yamlError.FindStringSubmatch(err.Error())
	if m == nil {
		return failAt(r.at, "%w", err)
	}
	line, _ := strconv.Atoi(m[1]) // 0 when there is none
	text := m[2]
	// What was read last is at the end of the last line with text.
	last := len(bytes.TrimRight(r.data[:r.at], " \t\r\n"))
	last = bytes.LastIndexByte(r.data[:last], '\n') + 1
	if m := noAnchor.FindStringSubmatch(text); m != nil {
		if i := bytes.LastIndex(r.data[:r.at], []byte("*"+m[1])); i >= 0 {
			last = i
		}
		return failAt(last, "no anchor &%s before this alias; want text that begins with * in quotes", m[1])
	}
	remedy, known := remedies[text]
	if known {
		text += "; " + remedy.want
	}
	if line == 0 {
		return failAt(last, "%s", text)
	}
	if remedy.line == scanned {
		line--
	}
	if first, _, _ := position(r.data, last); remedy.line == begun && line < first {
		return failAt(last, "in this line or just before, in what begins in line %d: %s", line, text)
	}
	return failAt(min(lineStart(r.data, line), last), "%s", text)
}

// lineStart is the offset of a line, from 1, or that of the last.
func lineStart(data []byte, line int) int {
	at := 0
	for ; line > 1; line-- {
		i := bytes.IndexByte(data[at:], '\n')
		if i < 0 {
			break
		}
		at += i + 1
	}
	return at
}

// places finds offsets by line and column. Going forward, as the nodes of a
// file do, takes time in proportion to the text in all.
type places struct {
	data         []byte
	start        int // offset of line 1
	at           int
	line, column int // of at, both from 1; columns are characters
}

func newPlaces(data []byte, start int) *places {
	return &places{data: data, start: start, at: start, line: 1, column: 1}
}

// offset is that of a place in the library's input, which has a line 0 in
// front that it counts as 1.
func (p *places) offset(line, column int) int {
	line--
	if line < p.line || line == p.line && column < p.column {
		*p = *newPlaces(p.data, p.start)
	}
	for p.line < line {
		i := bytes.IndexByte(p.data[p.at:], '\n')
		if i < 0 {
			return len(p.data)
		}
		p.at, p.line, p.column = p.at+i+1, p.line+1, 1
	}
	for p.column < column && p.at < len(p.data) && p.data[p.at] != '\n' {
		_, size := utf8.DecodeRune(p.data[p.at:])
		p.at, p.column = p.at+size, p.column+1
	}
	return p.at
}

// adapter makes nodes of those of the library.
type adapter struct {
	data   []byte
	places *places
	done   map[*yaml.Node]*node // with anchors; nil for those that are not complete
}

// node makes one node for a value, however many aliases repeat it, so what
// aliases of aliases stand for is never written out.
func (a *adapter) node(y *yaml.Node, depth int) (*node, error) {
	at := a.places.offset(y.Line, y.Column)
	if y.Kind == yaml.AliasNode {
		n := a.done[y.Alias]
		if n == nil {
			return nil, failAt(at, "no anchor &%s before this alias, which is in its value; want the value written out", y.Value)
		}
		return n, nil
	}
	if depth > maxDepth {
		return nil, &textError{at, errDepth}
	}
	if y.Style&yaml.TaggedStyle != 0 || at < len(a.data) && a.data[at] == '!' {
		return nil, failAt(at, "YAML tags are not read here; want text that begins with ! in quotes")
	}
	n := &node{at: at, text: y.Value, quoted: y.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0}
	switch {
	case y.Kind == yaml.SequenceNode:
		n.kind = list
	case y.Kind == yaml.MappingNode:
		n.kind = mapping
	case y.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return nil, failAt(at, "text over several lines is not read here; want it in one line, in quotes")
	}
	n.items = make([]*node, 0, len(y.Content))
	for i, child := range y.Content {
		item, err := a.node(child, depth+1)
		if err != nil {
			return nil, err
		}
		if n.kind == mapping && i%2 == 0 {
			switch {
			case item.kind != scalar:
				return nil, failAt(item.at, "a key that is %s; want a name", item.kind)
			case item.text == "<<" && !item.quoted:
				return nil, failAt(item.at, "merge keys are not read here; want all keys of the group written out")
			}
		}
		n.items = append(n.items, item)
	}
	if y.Anchor != "" {
		a.done[y] = n
	}
	return n, nil
}
