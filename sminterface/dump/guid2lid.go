package dump

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// parseGUID2LID reads a record of guid2lid, without its end.
func parseGUID2LID(line []byte) (r lft.LIDRange, ok bool) {
	guid, n := hex0x(line, 16)
	if n == 0 {
		return r, false
	}
	var lids [2]uint64
	for i := range lids {
		at := skipBlanks(line, n)
		if at == n {
			return r, false
		}
		v, m := hex0x(line[at:], 4)
		if m == 0 {
			return r, false
		}
		lids[i], n = v, at+m
	}
	if skipBlanks(line, n) != len(line) {
		return r, false
	}
	return lft.LIDRange{Port: fabric.GUID(guid), Min: fabric.LID(lids[0]), Max: fabric.LID(lids[1])}, true
}

// ReadGUID2LID reads the file guid2lid of OpenSM's cache folder: a line with a
// port GUID, its first and its last LID for each port, with an empty line
// after each. The result is sorted by GUID. A missing empty line is a
// Contradiction, since OpenSM takes the next record as part of this one and
// forgets it (osm_db_files.c).
//
// Errors are *fabric.ParseError. With Options.Lenient these are Problems
// instead: lines that are no records, port GUID 0, LIDs outside of 1 to
// fabric.MaxUnicastLID, a range that no LMC has, a GUID that was met already
// and LIDs that another port has already.
func ReadGUID2LID(name string, data []byte, opt Options) ([]lft.LIDRange, []Problem, error) {
	src := source{name, data}
	var list []lft.LIDRange
	var faults []fault
	byGUID := make(map[fabric.GUID]int) // offset
	owner := make([]int32, int(fabric.MaxUnicastLID)+1)
	before := -1 // offset of a record in the line before
	for at := 0; at < len(data); {
		line, next := cutLine(data, at)
		start := at
		at = next
		if len(bytes.TrimSpace(line)) == 0 {
			before = -1
			continue
		}
		r, err := checkGUID2LID(line)
		if err == nil {
			if first, dup := byGUID[r.Port]; dup {
				err = fmt.Errorf("a second record for port %s, the first is in line %d", r.Port, src.number(first))
			}
		}
		for l := int(r.Min); err == nil && l <= int(r.Max); l++ {
			if j := owner[l]; j > 0 {
				err = fmt.Errorf("LID %#04x belongs to port %s already", l, list[j-1].Port)
			}
		}
		if err != nil {
			if !opt.Lenient {
				return nil, nil, src.errorAt(start, err)
			}
			faults = append(faults, fault{at: start, kind: Dropped, err: err})
			continue
		}
		if before >= 0 {
			faults = append(faults, fault{at: start, kind: Contradiction,
				err: fmt.Errorf("no empty line before port %s: OpenSM takes this line as part of the one before", r.Port)})
		}
		before = start
		list = append(list, r)
		byGUID[r.Port] = start
		for l := int(r.Min); l <= int(r.Max); l++ {
			owner[l] = int32(len(list))
		}
	}
	slices.SortFunc(list, func(a, b lft.LIDRange) int { return cmp.Compare(a.Port, b.Port) })
	return list, src.problems(faults, 0), nil
}

// checkGUID2LID reads a record and checks what can be said of it alone.
func checkGUID2LID(line []byte) (lft.LIDRange, error) {
	r, ok := parseGUID2LID(line)
	if !ok {
		return r, fmt.Errorf("want a port GUID and its first and last LID: 0x0123456789abcdef 0x0001 0x0001")
	}
	n := int(r.Max) - int(r.Min) + 1
	switch {
	case r.Port == 0:
		return r, fmt.Errorf("port GUID 0")
	case r.Min == 0, r.Max > fabric.MaxUnicastLID:
		return r, fmt.Errorf("LIDs %#04x to %#04x, want 0x0001 to %#04x", r.Min, r.Max, fabric.MaxUnicastLID)
	case n < 1, n > 1<<fabric.MaxLMC, n&(n-1) != 0, int(r.Min)%n != 0:
		return r, fmt.Errorf("LIDs %#04x to %#04x: want as many as an LMC of 0 to %d has, the first a multiple of their number", r.Min, r.Max, fabric.MaxLMC)
	}
	return r, nil
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
	slices.SortFunc(list, func(a, b lft.LIDRange) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Min, b.Min))
	})
	b := make([]byte, 0, len(list)*len("0x0123456789abcdef 0x0001 0x0001\n\n"))
	for _, r := range list {
		b = r.Port.Append(b)
		b = append(b, " 0x"...)
		b = appendHex(b, uint64(r.Min), 4, hexLower)
		b = append(b, " 0x"...)
		b = appendHex(b, uint64(r.Max), 4, hexLower)
		b = append(b, "\n\n"...)
	}
	_, err := w.Write(b)
	return err
}
