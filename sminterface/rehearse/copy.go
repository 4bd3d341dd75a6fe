package rehearse

import (
	"bufio"
	"bytes"
	"io"
	"regexp"
	"slices"

	"github.com/ibweave/ibweave/fabric"
)

// replaceGUIDs writes a file of OpenSM's with other port GUIDs: those in the
// comments of opensm-lfts.dump and opensm-lid-matrix.dump, and those at the
// beginning of lines of guid2lid. It copies everything else, right or wrong.
func replaceGUIDs(w io.Writer, text []byte, guid func(fabric.GUID) fabric.GUID) error {
	out := bufio.NewWriterSize(w, 1<<20)
	for line := range bytes.Lines(text) {
		if m := portGUID.FindSubmatchIndex(line); m != nil {
			at, end := max(m[2], m[4]), max(m[3], m[5])
			if g, err := fabric.ParseGUID(string(line[at:end])); err == nil && guid(g) != g {
				line = slices.Concat(line[:at], guid(g).AppendDigits(nil), line[end:])
			}
		}
		out.Write(line) // errors are returned by Flush
	}
	return out.Flush()
}

// portGUID matches the port GUID that OpenSM finds in a line: the digits behind the
// first " portguid 0x" (osm_ucast_file.c), or, in guid2lid, 16 digits at the beginning.
var portGUID = regexp.MustCompile(`^0x([[:xdigit:]]{16})\b| portguid 0x([[:xdigit:]]+)`)
