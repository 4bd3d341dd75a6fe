package rehearse

import (
	"bufio"
	"bytes"
	"io"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// replaceGUIDs writes a file of OpenSM's with other port GUIDs in it: those in
// the comments of opensm-lfts.dump and opensm-lid-matrix.dump and those that
// lines of guid2lid begin with. All else stays as it is, right or wrong.
func replaceGUIDs(w io.Writer, text []byte, guid func(fabric.GUID) fabric.GUID) error {
	out := bufio.NewWriterSize(w, 1<<20)
	for line := range bytes.Lines(text) {
		if at, end, g, ok := findGUID(line); ok && guid(g) != g {
			line = slices.Concat(line[:at], guid(g).AppendDigits(nil), line[end:])
		}
		out.Write(line) // errors come from Flush
	}
	return out.Flush()
}

var portGUID = []byte(" portguid 0x")

// findGUID finds the digits of the port GUID that OpenSM finds in a line: the
// first behind " portguid 0x" (osm_ucast_file.c), or, in guid2lid, a full one
// at the beginning.
func findGUID(line []byte) (at, end int, g fabric.GUID, ok bool) {
	if i := bytes.Index(line, portGUID); i >= 0 {
		at = i + len(portGUID)
	} else if bytes.HasPrefix(line, []byte("0x")) && hexDigits(line[2:]) == 16 {
		at = 2
	} else {
		return 0, 0, 0, false
	}
	end = at + hexDigits(line[at:])
	g, err := fabric.ParseGUID(string(line[at:end]))
	return at, end, g, err == nil
}

// hexDigits counts the hexadecimal digits that b begins with.
func hexDigits(b []byte) int { return len(b) - len(bytes.TrimLeft(b, "0123456789abcdefABCDEF")) }
