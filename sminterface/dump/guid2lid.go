package dump

import (
	"bytes"
	"encoding/binary"
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
	var faults []fault
	var byGUID fabric.GUIDIndex // index in list, of those up to indexed
	indexed := 0
	greatest := fabric.GUID(0)
	most := min(len(data)/len(guid2lidRecord)+1, int(fabric.MaxUnicastLID))
	list := make([]lft.LIDRange, 0, most)
	starts := make([]int, 0, most) // offsets, by index in list
	var lines []int                // their lines, as far as asked for
	var owner []int32              // by LID, as far as needed: index in list + 1
	before := -1                   // offset of a record in the line before
	var more overflow
	lineOf := func(i int32) int {
		for k := len(lines); k <= int(i); k++ {
			line, from := 1, 0
			if k > 0 {
				line, from = lines[k-1], starts[k-1]
			}
			lines = append(lines, line+bytes.Count(data[from:starts[k]], nl))
		}
		return lines[i]
	}
	found := func(f fault) {
		if len(faults) == maxFaults {
			more.add(f.kind)
			return
		}
		faults = append(faults, f)
	}
	for at := 0; at < len(data); {
		start := at
		r, next := printedGUID2LID(data, at)
		var err error
		if at = next; next == 0 {
			var line []byte
			line, at = cutLine(data, start)
			if len(bytes.TrimSpace(line)) == 0 {
				before = -1
				continue
			}
			r, err = checkGUID2LID(line)
		}
		if err == nil && r.Port <= greatest {
			// Only then can it have been met.
			byGUID.Grow(cap(list) - indexed)
			for ; indexed < len(list); indexed++ {
				byGUID.Add(list[indexed].Port, int32(indexed))
			}
			if first := byGUID.Find(r.Port); first >= 0 {
				err = fmt.Errorf("a second record for port %s, the first is in line %d", r.Port, lineOf(first))
			}
		}
		if n := int(r.Max) + 1 - len(owner); err == nil && n > 0 {
			owner = append(owner, make([]int32, n)...)
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
			found(fault{at: start, kind: Dropped, err: err})
			if next > 0 {
				before = -1
			}
			continue
		}
		if before >= 0 {
			found(fault{at: start, kind: Contradiction,
				err: fmt.Errorf("no empty line before port %s: OpenSM takes this line as part of the one before", r.Port)})
		}
		if before = start; next > 0 {
			before = -1
		}
		greatest = max(greatest, r.Port)
		list, starts = append(list, r), append(starts, start)
		for l := int(r.Min); l <= int(r.Max); l++ {
			owner[l] = int32(len(list))
		}
	}
	sortRanges(list)
	return list, src.problems(faults, more), nil
}

// guid2lidRecord is a record as OpenSM and WriteGUID2LID print it.
const guid2lidRecord = "0x0123456789abcdef 0x0001 0x0001\n\n"

// printedGUID2LID reads a record as OpenSM prints it, with the empty line behind
// it, at data[at:]; next is 0 for anything else, and for a record that is wrong.
func printedGUID2LID(data []byte, at int) (r lft.LIDRange, next int) {
	d := data[at:]
	if len(d) < len(guid2lidRecord) {
		return r, 0
	}
	d = d[:len(guid2lidRecord)]
	if d[0] != '0' || d[1] != 'x' || string(d[18:21]) != " 0x" || string(d[25:28]) != " 0x" || d[32] != '\n' || d[33] != '\n' {
		return r, 0
	}
	guid, ok := fabric.ReadDigits(d[2:])
	var lids [2]fabric.LID
	bad := uint8(0)
	for i, from := range [2]int{21, 28} {
		h3, h2, h1, h0 := hexDigit[d[from]], hexDigit[d[from+1]], hexDigit[d[from+2]], hexDigit[d[from+3]]
		bad |= h3 | h2 | h1 | h0
		lids[i] = fabric.LID(h3)<<12 | fabric.LID(h2)<<8 | fabric.LID(h1)<<4 | fabric.LID(h0)
	}
	r = lft.LIDRange{Port: guid, Min: lids[0], Max: lids[1]}
	one := r.Min == r.Max && r.Min != 0 && r.Max <= fabric.MaxUnicastLID && r.Port != 0
	if !ok || bad > 15 || !one && rangeError(r) != nil {
		return r, 0
	}
	return r, at + len(guid2lidRecord)
}

// sortRanges sorts by GUID, which mostly they are.
func sortRanges(list []lft.LIDRange) {
	compare := func(a, b lft.LIDRange) int {
		switch {
		case a.Port < b.Port:
			return -1
		case a.Port > b.Port:
			return 1
		}
		return int(a.Min) - int(b.Min)
	}
	if !slices.IsSortedFunc(list, compare) {
		slices.SortFunc(list, compare)
	}
}

// checkGUID2LID reads a record and checks what can be said of it alone.
func checkGUID2LID(line []byte) (lft.LIDRange, error) {
	r, ok := parseGUID2LID(line)
	if !ok {
		return r, fmt.Errorf("want a port GUID and its first and last LID: 0x0123456789abcdef 0x0001 0x0001")
	}
	return r, rangeError(r)
}

// rangeError says what is wrong with the LIDs of a port.
func rangeError(r lft.LIDRange) error {
	n := int(r.Max) - int(r.Min) + 1
	switch {
	case r.Port == 0:
		return fmt.Errorf("port GUID 0")
	case r.Min == 0, r.Max > fabric.MaxUnicastLID:
		return fmt.Errorf("LIDs %#04x to %#04x, want 0x0001 to %#04x", r.Min, r.Max, fabric.MaxUnicastLID)
	case n < 1, n > 1<<fabric.MaxLMC, n&(n-1) != 0, int(r.Min)%n != 0:
		return fmt.Errorf("LIDs %#04x to %#04x: want as many as an LMC of 0 to %d has, the first a multiple of their number", r.Min, r.Max, fabric.MaxLMC)
	}
	return nil
}

// WriteGUID2LID writes guid2lid for the end ports of f that have LIDs, sorted
// by GUID; OpenSM has the same lines in the order of a hash table. Its only
// errors are those of w.
func WriteGUID2LID(w io.Writer, f *fabric.Fabric) error {
	// Switches and the others are mostly in order, each for themselves.
	var switches, others []lft.LIDRange
	switches, others = make([]lft.LIDRange, 0, f.NumSwitches()), make([]lft.LIDRange, 0, len(f.CAPorts()))
	f.EndPorts(func(p fabric.PortID) {
		l := f.LID(p)
		if l == 0 {
			return
		}
		r := lft.LIDRange{Port: f.PortGUID(p), Min: l, Max: l + (1<<f.LMC(p) - 1)}
		if f.IsSwitch(f.Owner(p)) {
			switches = append(switches, r)
		} else {
			others = append(others, r)
		}
	})
	sortRanges(switches)
	sortRanges(others)
	b := make([]byte, 0, (len(switches)+len(others))*len(guid2lidRecord))
	for len(switches)+len(others) > 0 {
		from := &others
		if len(others) == 0 || len(switches) > 0 && switches[0].Port <= others[0].Port {
			from = &switches
		}
		r := (*from)[0]
		*from = (*from)[1:]
		record := b[len(b):][:len(guid2lidRecord)] // b has room for all
		b = b[:len(b)+len(record)]
		copy(record, guid2lidRecord)
		for i := range 8 {
			binary.LittleEndian.PutUint16(record[len("0x")+2*i:], uint16(hexWords[r.Port>>(56-8*i)&0xff]))
		}
		for i, l := range [2]fabric.LID{r.Min, r.Max} {
			binary.LittleEndian.PutUint32(record[len("0x0123456789abcdef 0x")+i*len("0001 0x"):], uint32(hexWords[l>>8]|hexWords[l&0xff]<<16))
		}
	}
	_, err := w.Write(b)
	return err
}
