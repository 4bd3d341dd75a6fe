package sim

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/fabric"
)

// Timed is a message that is sent at a moment.
type Timed struct {
	At Time
	Message
}

// ReadTrace reads messages, a line each: nanoseconds, LID of the source, LID or MLID
// of the destination, bytes, and the SL, which is that of the path if there is none.
// LIDs are decimal, or hexadecimal with 0x; nanoseconds may have decimals, down to
// a picosecond. Empty lines, and what follows #, are not read. Tags are the numbers
// of the messages, from 0. Errors are *fabric.ParseError.
func ReadTrace(name string, data []byte, f *fabric.Fabric) ([]Timed, error) {
	var out []Timed
	number := 0
	for line := range bytes.Lines(data) {
		number++
		text := strings.TrimRight(string(line), "\r\n")
		fields := strings.Fields(text)
		if at := strings.IndexByte(text, '#'); at >= 0 {
			fields = strings.Fields(text[:at])
		}
		if len(fields) == 0 {
			continue
		}
		m, err := parseMessage(fields, f)
		if err != nil {
			return nil, &fabric.ParseError{File: name, Line: number, Text: text, Err: err}
		}
		m.Tag = int64(len(out))
		out = append(out, m)
	}
	return out, nil
}

func parseMessage(fields []string, f *fabric.Fabric) (m Timed, err error) {
	if len(fields) != 4 && len(fields) != 5 {
		return m, fmt.Errorf("%d fields: want nanoseconds, source LID, destination LID, bytes and perhaps the SL", len(fields))
	}
	if m.At, err = ParseTime(fields[0] + "ns"); err != nil {
		return m, fmt.Errorf("time %q: want nanoseconds from 0 on, with at most three decimals", fields[0])
	}
	src, err := strconv.ParseUint(fields[1], 0, 16)
	if p := f.LIDPort(fabric.LID(src)); err != nil || p == fabric.NoPort || f.IsSwitch(f.Owner(p)) || f.Peer(p) == fabric.NoPort {
		return m, fmt.Errorf("source %q: want the LID of a CA or router port with a cable", fields[1])
	}
	m.Src = f.LIDPort(fabric.LID(src))
	dlid, err := strconv.ParseUint(fields[2], 0, 16)
	if err != nil || dlid == 0 {
		return m, fmt.Errorf("destination %q: want a LID or MLID", fields[2])
	}
	m.DLID = fabric.LID(dlid)
	size, err := strconv.ParseUint(fields[3], 10, 32)
	if err != nil || size == 0 || size > maxBytes {
		return m, fmt.Errorf("%q bytes: want 1 to %d", fields[3], maxBytes)
	}
	m.Bytes, m.SL = int(size), PathSL
	if len(fields) == 5 {
		sl, err := strconv.ParseUint(fields[4], 10, 4)
		if err != nil {
			return m, fmt.Errorf("SL %q: want 0 to 15", fields[4])
		}
		m.SL = fabric.SL(sl)
	}
	return m, nil
}
