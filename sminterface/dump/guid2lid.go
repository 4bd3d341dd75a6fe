package dump

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/lft"
)

// guid2lidReader collects the records of guid2lid.
type guid2lidReader struct {
	textReader
	list   []lft.LIDRange
	first  map[fabric.GUID]int // the offset of the line with a port's record
	owner  []fabric.GUID       // by LID; 0 for none
	joined bool                // the previous line was a record, too
}

// ReadGUID2LID reads the file guid2lid of OpenSM's cache folder: for each port
// a line with its GUID, first LID and last LID, and an empty line. The result
// is sorted by GUID. A missing empty line is a Contradiction, since OpenSM
// takes the next record as part of this one and loses it (osm_db_files.c).
//
// Errors are *fabric.ParseError. With Options.Lenient these are Problems
// instead: lines that are no records, port GUID 0, LIDs outside of 1 to
// fabric.MaxUnicastLID, a range that no LMC gives, and a GUID or LIDs that an
// earlier record has.
func ReadGUID2LID(name string, data []byte, opt Options) ([]lft.LIDRange, []fabric.Problem, error) {
	r := &guid2lidReader{
		textReader: newTextReader(name, data, opt),
		list:       []lft.LIDRange{},
		first:      make(map[fabric.GUID]int),
		owner:      make([]fabric.GUID, int(fabric.MaxUnicastLID)+1),
	}
	r.eachLine(r.readLine)
	sortRanges(r.list)
	return finish(&r.textReader, r.list)
}

func (r *guid2lidReader) readLine(at int, line []byte) error {
	if len(bytes.TrimSpace(line)) == 0 {
		r.joined = false
		return nil
	}
	one, err := parseGUID2LID(line)
	if err == nil {
		err = rangeError(one)
	}
	if err == nil {
		err = r.takenError(one)
	}
	if err != nil {
		return err
	}
	if r.joined {
		r.add(at, fabric.Contradiction, fmt.Errorf("no empty line before port %s: OpenSM takes this line as part of the one before", one.Port))
	}
	r.joined = true
	r.list = append(r.list, one)
	r.first[one.Port] = at
	for l := one.Min; l <= one.Max; l++ {
		r.owner[l] = one.Port
	}
	return nil
}

// parseGUID2LID reads a record of guid2lid.
func parseGUID2LID(line []byte) (one lft.LIDRange, err error) {
	s := topology.Line{Text: line}
	one.Port = s.GUID()
	s.Blanks()
	one.Min = fabric.LID(s.Hex0x(4))
	s.Blanks()
	one.Max = fabric.LID(s.Hex0x(4))
	s.SkipBlanks()
	if !s.AtEnd() {
		return one, errors.New("want a port GUID and its first and last LID: 0x0123456789abcdef 0x0001 0x0001")
	}
	return one, nil
}

// rangeError returns an error if the LIDs of a port are not valid.
func rangeError(r lft.LIDRange) error {
	n := int(r.Max) - int(r.Min) + 1
	switch {
	case r.Port == 0:
		return errors.New("port GUID 0")
	case r.Min == 0, r.Max > fabric.MaxUnicastLID:
		return fmt.Errorf("LIDs %#04x to %#04x, want 0x0001 to %#04x", r.Min, r.Max, fabric.MaxUnicastLID)
	case n < 1, n > 1<<fabric.MaxLMC, n&(n-1) != 0, int(r.Min)%n != 0:
		return fmt.Errorf("LIDs %#04x to %#04x: want as many as an LMC of 0 to %d has, the first a multiple of their number", r.Min, r.Max, fabric.MaxLMC)
	}
	return nil
}

// takenError returns an error if an earlier line has the
// port or a LID of the record, whose LIDs must be in range.
func (r *guid2lidReader) takenError(one lft.LIDRange) error {
	if at, twice := r.first[one.Port]; twice {
		return fmt.Errorf("a second record for port %s, the first is in line %d", one.Port, r.numberAt(at))
	}
	for l := one.Min; l <= one.Max; l++ {
		if owner := r.owner[l]; owner != 0 {
			return fmt.Errorf("LID %#04x belongs to port %s already", l, owner)
		}
	}
	return nil
}

func sortRanges(list []lft.LIDRange) {
	slices.SortFunc(list, func(a, b lft.LIDRange) int { return cmp.Or(a.Port.Compare(b.Port), cmp.Compare(a.Min, b.Min)) })
}

// WriteGUID2LID writes guid2lid for the end ports of f that have LIDs, sorted
// by GUID; OpenSM has the same lines in the order of a hash table. Its only
// errors are those of w.
func WriteGUID2LID(w io.Writer, f *fabric.Fabric) error {
	var list []lft.LIDRange
	f.EndPorts(func(p fabric.PortID) {
		if l := f.LID(p); l != 0 {
			list = append(list, lft.LIDRange{Port: f.PortGUID(p), Min: l, Max: l + (1<<f.LMC(p) - 1)})
		}
	})
	sortRanges(list)
	var b []byte
	for _, r := range list {
		b = fmt.Appendf(b, "%s 0x%04x 0x%04x\n\n", r.Port, r.Min, r.Max)
	}
	_, err := w.Write(b)
	return err
}
