package topology

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/ibweave/ibweave/fabric"
)

// ParseNames reads a node-name map of infiniband-diags and OpenSM (libosmcomp's
// cl_nodenamemap.c): a line for each node with its GUID and, in quotes, the name that
// takes the place of its description. What follows # is a comment, # in quotes too is
// part of the name. Only the first 64 bytes of a description are on a wire, so names
// may be longer than those.
//
// A map without names is empty: distributions install one of comments alone. Errors are
// *fabric.ParseError: a line that is not like that, a GUID that comes twice.
func ParseNames(name string, data []byte) (map[fabric.GUID]string, error) {
	names := make(map[fabric.GUID]string)
	lines := make(map[fabric.GUID]int)
	for i, line := range bytes.Split(data, []byte("\n")) {
		text := strings.TrimRight(string(line), "\r")
		fail := func(format string, args ...any) error {
			return &fabric.ParseError{File: name, Line: i + 1, Text: text, Err: fmt.Errorf(format, args...)}
		}
		rest := strings.TrimSpace(text)
		if rest == "" || rest[0] == '#' {
			continue
		}
		digits, quoted, ok := strings.Cut(rest, `"`)
		if !ok {
			return nil, fail(`no name in quotes; want 0x0002c90300000001 "name"`)
		}
		guid, err := fabric.ParseGUID(strings.TrimSpace(digits))
		if err != nil {
			return nil, fail("%w", err)
		}
		if guid == 0 {
			return nil, fail("GUID 0 belongs to no node")
		}
		label, after, ok := strings.Cut(quoted, `"`)
		if !ok {
			return nil, fail("the name has no closing quote")
		}
		if after = strings.TrimSpace(after); after != "" && after[0] != '#' {
			return nil, fail("%q after the name; want nothing, or a comment after #", after)
		}
		if first, dup := lines[guid]; dup {
			return nil, fail("GUID %s has a name in line %d already", guid, first)
		}
		names[guid], lines[guid] = label, i+1
	}
	return names, nil
}
