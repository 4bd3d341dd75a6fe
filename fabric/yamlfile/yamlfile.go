// Package yamlfile reads the YAML files that operators write, with the line in every error.
// It makes no promise to other modules.
package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/ibweave/ibweave/fabric"
)

// Limits of the size of a file, in bytes. A file of 10,000 multicast groups of 64 ports has
// 17 MB when each port has a line of its own.
const (
	Limit       = 4 << 20
	GroupsLimit = 64 << 20
)

// Parse reads a file of one document and at most limit bytes. Messages give the
// file's name, its kind (what), and the contents that it should have (want).
// Errors of Parse and of the methods are *fabric.ParseError with the line.
func Parse(name string, data []byte, limit int, what, want string) (*File, *yaml.Node, error) {
	r := &File{Name: name, lines: bytes.Split(data, []byte("\n"))}
	if len(data) > limit {
		return nil, nil, r.Fail(nil, "%d bytes; want at most %d", len(data), limit)
	}
	var doc yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(data))
	if err := decode(d, &doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil, r.Fail(nil, "the file is empty; want %s with %s", what, want)
		}
		return nil, nil, r.yamlError(err)
	}
	var more yaml.Node
	if err := decode(d, &more); err == nil {
		return nil, nil, r.Fail(&more, "a second document; want %s a file", strings.Replace(what, "a ", "one ", 1))
	} else if !errors.Is(err, io.EOF) {
		return nil, nil, r.yamlError(err)
	}
	if err := r.plain(&doc); err != nil {
		return nil, nil, err
	}
	return r, doc.Content[0], nil
}

// decode reads the next document. A panic of the library becomes an error.
func decode(d *yaml.Decoder, n *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()
	return d.Decode(n)
}

// File is a file that is being read.
type File struct {
	Name  string
	lines [][]byte
}

// Fail returns an error at a node of the file.
func (r *File) Fail(n *yaml.Node, format string, args ...any) error {
	e := &fabric.ParseError{File: r.Name, Err: fmt.Errorf(format, args...)}
	if n != nil && n.Line > 0 {
		// In YAML more characters end a line than in editors.
		e.Line = min(n.Line, len(r.lines))
		e.Text = strings.TrimRight(string(r.lines[e.Line-1]), "\r")
		e.Column = len(e.Text)
		column := n.Column // the library counts characters
		for at := range e.Text {
			if column--; column <= 0 {
				e.Column = at
				break
			}
		}
	}
	return e
}

var (
	yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(?s:(.*))$`)
	// fromZero matches errors of the library whose lines count from 0.
	fromZero = regexp.MustCompile(`^(did not find expected (key|node|'|<)|unknown anchor|found duplicate %|found incompatible)`)
)

// yamlError adds the place to an error of the YAML reader.
func (r *File) yamlError(err error) error {
	m := yamlLine.FindStringSubmatch(err.Error())
	if m == nil {
		return r.Fail(nil, "%w", err)
	}
	n, _ := strconv.Atoi(m[1])
	if fromZero.MatchString(m[2]) {
		n++
	}
	if n == 0 { // the library gives no line for the first, and for characters that are not UTF-8 or control
		n = 1 + max(0, slices.IndexFunc(r.lines, func(line []byte) bool {
			return !utf8.Valid(line) || bytes.ContainsFunc(line, func(c rune) bool {
				return unicode.IsControl(c) && c != '\t' && c != '\r'
			})
		}))
	}
	return r.Fail(&yaml.Node{Line: n, Column: 1}, "%s; want YAML", m[2])
}

// plain refuses anchors, aliases and tags: such a file needs none.
func (r *File) plain(n *yaml.Node) error {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return r.Fail(n, "an anchor or an alias; write the value out")
	case n.Style&yaml.TaggedStyle != 0:
		return r.Fail(n, "a tag, %s; write the value without it", n.Tag)
	}
	for _, c := range n.Content {
		if err := r.plain(c); err != nil {
			return err
		}
	}
	return nil
}

// Entries calls read for each entry of a mapping; a key may
// occur once. what names the mapping, for messages.
func (r *File) Entries(n *yaml.Node, what string, read func(key, value *yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return r.Fail(n, "%s; want %s", KindName(n), what)
	}
	seen := make(map[string]int)
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode {
			return r.Fail(key, "%s as a key; want %s", KindName(key), what)
		}
		if line, dup := seen[key.Value]; dup {
			return r.Fail(key, "%s: is in line %d already; want it once", key.Value, line)
		}
		seen[key.Value] = key.Line
		if err := read(key, n.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// Mapping reads a mapping that may have the given keys, each once.
func (r *File) Mapping(n *yaml.Node, keys map[string]func(*yaml.Node) error) error {
	want := strings.Join(slices.Sorted(maps.Keys(keys)), ", ")
	return r.Entries(n, "a mapping with "+want, func(key, value *yaml.Node) error {
		read, ok := keys[key.Value]
		if !ok {
			return r.Fail(key, "unknown key %q; want %s", key.Value, want)
		}
		return read(value)
	})
}

// KindName names the kind of a node, for messages.
func KindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	if n.Tag == "!!null" {
		return "nothing"
	}
	return fmt.Sprintf("%q", n.Value)
}

// List reads the items of a list.
func (r *File) List(n *yaml.Node, what string, item func(*yaml.Node) error) error {
	if n.Kind != yaml.SequenceNode {
		return r.Fail(n, "%s; want a list of %s", KindName(n), what)
	}
	for _, c := range n.Content {
		if err := item(c); err != nil {
			return err
		}
	}
	return nil
}

// Text reads a scalar that is not empty.
func (r *File) Text(n *yaml.Node, what string) (string, error) {
	if n.Kind != yaml.ScalarNode || strings.TrimSpace(n.Value) == "" || n.Tag == "!!null" {
		return "", r.Fail(n, "%s; want %s", KindName(n), what)
	}
	return n.Value, nil
}

// Number reads an integer in a range.
func (r *File) Number(n *yaml.Node, least, most int) (int, error) {
	v, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || v < least || v > most {
		return 0, r.Fail(n, "%s; want a number from %d to %d", KindName(n), least, most)
	}
	return v, nil
}

// Beside returns the path of file, which the file other names relative to its own
// folder.
func Beside(other, file string) string {
	if filepath.IsAbs(file) || other == "-" {
		return file
	}
	return filepath.Join(filepath.Dir(other), file)
}
