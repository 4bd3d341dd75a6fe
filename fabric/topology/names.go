package topology

import (
	"bytes"
	"regexp"

	"github.com/ibweave/ibweave/fabric"
)

// ParseNames reads names of nodes: a node-name map, or the output of ibswitches, ibhosts, ibrouters
// and ibnodes, which may be concatenated.
//
// A node-name map is that of infiniband-diags and OpenSM (libosmcomp's cl_nodenamemap.c): a
// line for each node with its GUID and, in quotes, the name that replaces its
// description. # begins a comment, except inside quotes. Names may be longer than
// descriptions, of which only 64 bytes are on the wire. A map
// without names is valid: distributions install one with comments only.
//
// Errors are *fabric.ParseError: a line of another form, or a GUID with two names.
// Foreign lines in the output of ibswitches and the like are skipped, with Problems.
func ParseNames(name string, data []byte) (map[fabric.GUID]string, []fabric.Problem, error) {
	p := &parser{file: name, data: Plain(data)}
	n := nameReader{parser: p, names: make(map[fabric.GUID]string), lines: make(map[fabric.GUID]int32)}
	read := n.readMapLine
	if form, _ := recognize(p.data, len(p.data)); form == NodeList {
		read = n.readNodeLine
	}
	if err := p.eachLine(read); err != nil {
		return nil, nil, err
	}
	if err := p.settleNoise(false); err != nil {
		return nil, nil, err
	}
	p.tellNoise()
	return n.names, p.problems, nil
}

// nameReader is the state of one ParseNames.
type nameReader struct {
	*parser
	names map[fabric.GUID]string
	lines map[fabric.GUID]int32 // by GUID: line with its name
}

// take enters a name. If same is true, a GUID may be repeated with the same name.
func (n *nameReader) take(guid fabric.GUID, label string, same bool) error {
	if guid == 0 {
		return n.refusal(n.line, 0, "GUID 0 belongs to no node")
	}
	if first, dup := n.lines[guid]; dup && !(same && n.names[guid] == label) {
		return n.refusal(n.line, 0, "GUID %s has a name in line %d already", guid, first)
	}
	n.names[guid], n.lines[guid] = label, n.line.num
	return nil
}

// mapLine is a line of a node-name map: GUID, name, and what is behind it.
var mapLine = regexp.MustCompile(`^([^"]*?)[ \t]*"([^"]*)"[ \t]*(.*)`)

func (n *nameReader) readMapLine(l *Line) error {
	m := mapLine.FindSubmatch(l.Rest())
	if m == nil && bytes.IndexByte(l.Rest(), '"') >= 0 {
		return n.refusal(n.line, 0, `the name has no closing quote; want 0x0002c90300000001 "name"`)
	} else if m == nil {
		return n.refusal(n.line, 0, `no name in quotes; want 0x0002c90300000001 "name"`)
	}
	guid, err := fabric.ParseGUID(string(m[1]))
	switch {
	case err != nil:
		return n.refusal(n.line, 0, "%w", err)
	case len(m[3]) > 0 && m[3][0] != '#':
		return n.refusal(n.line, 0, "%q after the name; want nothing, or a comment after #", m[3])
	}
	return n.take(guid, string(m[2]), false)
}

// nodeLine matches a line of ibswitches or the like, nodeBegin the start of one: a line that
// has only the start is refused.
var (
	nodeLine  = regexp.MustCompile(`^` + headerWords + `[ \t]*:[ \t]*(0x[0-9a-fA-F]{1,16})[ \t]*ports [^"]*"(.*)"`)
	nodeBegin = regexp.MustCompile(`^` + headerWords + `[ \t]*:`)
)

// readNodeLine reads a line of ibswitches or the like; the name stands between the first
// quote and the last.
func (n *nameReader) readNodeLine(l *Line) error {
	m := nodeLine.FindSubmatch(l.Rest())
	switch {
	case !nodeBegin.Match(l.Rest()):
		return n.passOver(l)
	case m == nil:
		return n.refusal(n.line, 0, `want a node such as "Ca : 0x0002c90300000001 ports 2 "name"", as ibhosts prints it`)
	}
	guid, err := fabric.ParseGUID(string(m[1]))
	if err != nil {
		return n.refusal(n.line, 0, "%w", err)
	}
	return n.take(guid, string(m[2]), true)
}
