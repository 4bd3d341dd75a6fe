package rehearse

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"

	"github.com/ibweave/ibweave/fabric"
)

// copyGUIDs copies a file of OpenSM's with other port GUIDs in it: those in
// the comments of opensm-lfts.dump and opensm-lid-matrix.dump and those that
// lines of guid2lid begin with. All else stays as it is, right or wrong.
func copyGUIDs(ctx context.Context, to, from string, guid func(fabric.GUID) fabric.GUID) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	return errors.Join(replaceGUIDs(ctx, out, in, guid), out.Close())
}

const bufferSize = 1 << 20

// replaceGUIDs copies text. Lines longer than bufferSize are looked at in pieces.
func replaceGUIDs(ctx context.Context, w io.Writer, r io.Reader, guid func(fabric.GUID) fabric.GUID) error {
	in, out := bufio.NewReaderSize(r, bufferSize), bufio.NewWriterSize(w, bufferSize)
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		line, err := in.ReadSlice('\n')
		if err != nil && err != bufio.ErrBufferFull && err != io.EOF {
			return err
		}
		if at, end, g, ok := findGUID(line); ok && guid(g) != g {
			out.Write(line[:at])
			out.Write(guid(g).AppendDigits(out.AvailableBuffer()))
			line = line[end:]
		}
		if _, err := out.Write(line); err != nil {
			return err
		}
		if err == io.EOF {
			return out.Flush()
		}
	}
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
