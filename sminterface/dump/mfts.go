package dump

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strconv"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/mft"
)

// mftEntry is a port of a switch in the mask of an MLID: the MLID, then eight bits of
// the port's number.
type mftEntry uint32

func (e mftEntry) mlid() fabric.LID     { return fabric.LID(e >> 8) }
func (e mftEntry) port() fabric.PortNum { return fabric.PortNum(e) }

// masksBySwitch gives the entries of tables switch by switch: those of switch
// s are list[start[s]:start[s+1]], by MLID and port.
func masksBySwitch(t *mft.Tables) (list []mftEntry, start []int) {
	f := t.Fabric()
	start = make([]int, f.NumSwitches()+2)
	// run is how many ports, of one switch, ports begins with, and end is above it.
	run := func(ports []fabric.PortID, end fabric.PortID) int {
		n := 1
		for n < len(ports) && ports[n] < end {
			n++
		}
		return n
	}
	base := make([]fabric.PortID, f.NumSwitches()+1)
	for s := range f.NumSwitches() {
		base[s] = f.PortBase(fabric.NodeID(s))
		base[s+1] = base[s] + fabric.PortID(f.Node(fabric.NodeID(s)).NumPorts) + 1
	}
	for i := range t.MLIDs() {
		for ports := t.PortsAt(i); len(ports) > 0; {
			s := f.Owner(ports[0])
			n := run(ports, base[s+1])
			start[s+2] += n
			ports = ports[n:]
		}
	}
	for s := 2; s < len(start); s++ {
		start[s] += start[s-1]
	}
	list = make([]mftEntry, start[len(start)-1])
	for i, l := range t.MLIDs() {
		for ports := t.PortsAt(i); len(ports) > 0; {
			s := f.Owner(ports[0])
			n := run(ports, base[s+1])
			to := list[start[s+1]:][:n]
			for k, p := range ports[:n] {
				to[k] = mftEntry(l)<<8 | mftEntry(p-base[s])
			}
			start[s+1] += n
			ports = ports[n:]
		}
	}
	return list, start[:len(start)-1]
}

// WriteMCFDBs writes opensm.mcfdbs, as osm_dump.c does: a section for each
// switch that has a port in a mask, which may be none. opt.Lean changes
// nothing. Errors are those of w, and switches that the fabric does not have.
func WriteMCFDBs(w io.Writer, t *mft.Tables, opt WriteOptions) error {
	f := t.Fabric()
	switches, err := switchesToWrite(f, opt.Only)
	if err != nil {
		return err
	}
	list, start := masksBySwitch(t)
	switches = slices.DeleteFunc(switches, func(s fabric.NodeID) bool { return start[s] == start[s+1] })
	return writeInOrder(w, len(switches), func(_, i int, b []byte) []byte {
		s := switches[i]
		entries := list[start[s]:start[s+1]]
		// Each entry at most begins a line, with the end of the one before.
		b = slices.Grow(b, len("\nSwitch 0x0123456789abcdef\nLID    : Out Port(s)\n")+len(entries)*(len("\n0xC000 :")+portText)+len("12345678"))
		b = append(b, "\nSwitch "...)
		b = f.Node(s).GUID.Append(b)
		b = append(b, "\nLID    : Out Port(s)"...)
		at := len(b)
		b = b[:cap(b)]
		last := fabric.LID(0)
		for _, e := range entries {
			if l := e.mlid(); l != last {
				b[at] = '\n'
				binary.LittleEndian.PutUint64(b[at+1:], '0'|'x'<<8|upperWords[l>>8]<<16|upperWords[l&0xff]<<32|' '<<48|':'<<56)
				at += len("\n0xC000 :")
				last = l
			}
			binary.LittleEndian.PutUint64(b[at:], portTexts[e.port()])
			at += portText
		}
		b[at] = '\n'
		return b[:at+1]
	})
}

// upperWords is hexWords with upper-case letters.
var upperWords = func() (t [256]uint64) {
	for i := range t {
		t[i] = uint64(hexUpper[i>>4]) | uint64(hexUpper[i&15])<<8
	}
	return t
}()

// portTexts holds what opensm.mcfdbs has for every port number, portText bytes, as
// they are in one word of little-endian order.
var portTexts = func() (t [256]uint64) {
	for i := range t {
		t[i] = eightBytes(fmt.Sprintf(" 0x%03X  ", i))
	}
	return t
}()

const portText = len(" 0x001 ")

func eightBytes(s string) uint64 { return binary.LittleEndian.Uint64([]byte(s)) }

// mftColumns is where the columns of ports start in what ibroute -M prints,
// as in 0xc000      x.
const mftColumns = len("0xc000      ")

// WriteMFTs writes what ibroute -M prints, one switch after the other and each
// addressed by its LID; opt.Lean is its option -n. dump_mfts prints the same
// in the order in which it meets the switches, and with a directed route
// instead of the LID. capacity is the number of MLIDs that switches have
// (MulticastFDBCap), which the first line of a section shows; 0 stands for all
// there are. Errors are as for WriteMCFDBs, and an MLID beyond the capacity.
func WriteMFTs(w io.Writer, t *mft.Tables, opt WriteOptions, capacity int) error {
	f := t.Fabric()
	switches, err := switchesToWrite(f, opt.Only)
	if err != nil {
		return err
	}
	if capacity <= 0 || capacity > mft.NumMLIDs {
		capacity = mft.NumMLIDs
	}
	high := int(mft.MinMLID) + capacity - 1
	if l := t.MLIDs(); len(l) > 0 && int(l[len(l)-1]) > high {
		return fmt.Errorf("MLID %#04x, above %#04x, the highest that the switches have", uint16(l[len(l)-1]), high)
	}
	list, start := masksBySwitch(t)
	return writeInOrder(w, len(switches), func(_, i int, b []byte) []byte {
		s := switches[i]
		node := f.Node(s)
		ports := int(node.NumPorts)
		b = append(b, "Multicast mlids [0xc000-0x"...)
		b = strconv.AppendInt(b, int64(high), 16)
		b = append(b, "] of switch Lid "...)
		b = appendDecimal(b, int(f.LID(f.PortBase(s))))
		b = append(b, " guid "...)
		b = node.GUID.Append(b)
		b = append(b, " ("...)
		b = appendDescription(b, node.Description)
		b = append(b, "):\n"...)
		width := 2 * (ports + 1)
		if opt.Lean {
			b = append(b, " MLid       Port Mask\n"...)
			width = 4 * (ports/16 + 1)
		} else {
			if ports > 9 {
				b = append(b, "            "...)
				for p := range ports + 1 {
					if p%10 == 0 {
						b = append(b, '0'+byte(p/10), ' ') // : for 100, and so on
					} else {
						b = append(b, "  "...)
					}
				}
				b = append(b, '\n')
			}
			b = append(b, "     Ports: "...)
			for p := range ports + 1 {
				b = append(b, '0'+byte(p%10), ' ')
			}
			b = append(b, "\n MLid\n"...)
		}
		rows := 0
		entries := list[start[s]:start[s+1]]
		for k := 0; k < len(entries); rows++ {
			mlid := entries[k].mlid()
			b = slices.Grow(b, mftColumns+width+len("\n"))
			row := b[len(b):][:mftColumns+width+1]
			b = b[:len(b)+len(row)]
			binary.LittleEndian.PutUint64(row, rowKey(int(mlid))|' '<<56)
			binary.LittleEndian.PutUint32(row[8:], blanks&0xffffffff)
			if columns := row[mftColumns:]; opt.Lean {
				for word := mftEntry(mlid) << 2; len(columns) > 1; word++ { // of 64 ports
					var mask uint64
					for ; k < len(entries) && entries[k]>>6 == word; k++ {
						mask |= 1 << (entries[k] & 63)
					}
					for i := 0; i < 4 && len(columns) > 1; i++ {
						binary.LittleEndian.PutUint32(columns, uint32(hexWords[mask>>8&0xff]|hexWords[mask&0xff]<<16))
						columns = columns[4:]
						mask >>= 16
					}
				}
			} else {
				copy(columns, blankRow[:width])
				for ; k < len(entries) && entries[k].mlid() == mlid; k++ {
					columns[2*int(entries[k].port())] = 'x'
				}
			}
			row[mftColumns+width] = '\n'
		}
		b = appendDecimal(b, rows)
		return append(b, " valid mlids dumped \n"...)
	})
}

var (
	multicastMLIDs = []byte("Multicast mlids ")
	mcfdbsSwitch   = []byte("Switch 0x")
	outPorts       = []byte("Out Port(s)")
	mlidsDumped    = []byte("mlids dumped")
)

// blankRow is a row of ibroute -M without ports.
var blankRow = bytes.Repeat([]byte{' '}, 2*256)

// mftRow is a row of a section: so many ports of an MLID, which are the section's
// entries from from on and follow those of the row before.
type mftRow struct {
	mlid  fabric.LID
	ports uint16
	from  uint32
}

// mftSection is what one section says.
type mftSection struct {
	rows    []mftRow
	entries []fabric.PortNum
}

// maxMask is how many ports a mask can have.
const maxMask = 256

// room makes place for the ports of another row, of which n are in use.
func (s *mftSection) room(n int) []fabric.PortNum {
	s.entries = slices.Grow(s.entries[:n], max(maxMask, n))
	return s.entries[:cap(s.entries)]
}

// isNew says whether a row can be the first of an MLID, which has index.
func isNew(mlid int, index []int32) bool {
	i := mlid - int(mft.MinMLID)
	return i >= 0 && i < len(index) && index[i] == 0
}

// mftReader reads the sections of one file with multicast tables.
type mftReader struct {
	tableReader
	out   []mftSection
	index [][]int32 // by worker, then by MLID less MinMLID: 1 + index of the row, 0 for none
}

// ReadMFTs reads multicast forwarding tables: opensm.mcfdbs, also one without
// anything, or what ibroute -M or dump_mfts print (with -a and -n too). The
// form is recognized by content. name is the file's, for messages.
//
// Switches are matched by node GUID. opensm.mcfdbs leaves out switches without
// masks; in the other form such a switch is a Missing Problem. MLIDs that are
// in no mask are not in the tables.
//
// Errors are *fabric.ParseError, and the tables are then nil. With
// Options.Lenient these are Problems instead: MLIDs outside of mft.MinMLID to
// mft.MaxMLID, ports that the switch does not have, unknown switches, a second
// section for a switch and a second row for an MLID with other ports (the
// first counts), lines that are nothing of the form, sections of dump_mfts
// that end too early, and an opensm.mcfdbs whose last line has no end. One
// that is cut at the end of a line looks like a shorter file.
func ReadMFTs(name string, data []byte, f *fabric.Fabric, opt Options) (*mft.Tables, []Problem, error) {
	r := &mftReader{tableReader: tableReader{src: source{name, data}, f: f, opt: opt}}
	form := Recognize(data)
	var header func(*section, []byte) (fabric.GUID, error)
	var row func(*section, *mftSection, []byte, int, []int32)
	marker := mcfdbsSwitch
	switch form {
	case MCFDBs:
		header, row = r.mcfdbsHeader, r.mcfdbsLine
	case MFTs:
		marker, header, row = multicastMLIDs, r.multicastHeader, r.mftsLine
	default:
		if form == Unknown && saysNothing(data) {
			return mft.NewTables(f), nil, nil
		}
		return nil, nil, r.notForm(form, "multicast forwarding tables", "opensm.mcfdbs, or what ibroute -M or dump_mfts print")
	}
	faults := r.preamble(r.split(marker))
	r.headers(header)
	r.out = make([]mftSection, len(r.sections))
	r.index = make([][]int32, workers(len(r.sections)))
	room := make([]mftSection, len(r.index)) // by worker
	forEach(len(r.sections), func(w, i int) {
		sec := &r.sections[i]
		if sec.skip {
			return
		}
		if r.index[w] == nil {
			r.index[w] = make([]int32, mft.NumMLIDs)
		}
		r.section(form, sec, &r.out[i], r.index[w], &room[w], row)
	})
	if n := len(data); form == MCFDBs && data[n-1] != '\n' {
		faults = append(faults, fault{at: n, kind: Truncated, err: fmt.Errorf("the last line has no end: %w", ErrTruncated)})
	}
	problems, err := r.finishMFTs(form, faults)
	if err != nil {
		return nil, nil, err
	}
	return r.join(), problems, nil
}

// saysNothing tells a file that has no line but blank ones and comments, which
// is what OpenSM writes when there are no groups.
func saysNothing(data []byte) bool {
	for at := 0; at < len(data); {
		var line []byte
		line, at = cutLine(data, at)
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && !bytes.HasPrefix(line, fileVersion) {
			return false
		}
	}
	return true
}

// mcfdbsHeader reads the first line of a section of opensm.mcfdbs.
func (r *mftReader) mcfdbsHeader(_ *section, line []byte) (fabric.GUID, error) {
	v, n := hexPrefix(line[len(mcfdbsSwitch):], 16)
	if n == 0 || len(bytes.TrimSpace(line[len(mcfdbsSwitch)+n:])) > 0 {
		return 0, fmt.Errorf("bad GUID; want Switch 0x0123456789abcdef")
	}
	return fabric.GUID(v), nil
}

// multicastHeader reads the first line of a section of ibroute -M.
func (r *mftReader) multicastHeader(sec *section, line []byte) (fabric.GUID, error) {
	bad := func(what string) error {
		return fmt.Errorf("%s; want Multicast mlids [0xc000-0xc3ff] of switch Lid 1 guid 0x0123456789abcdef", what)
	}
	rest := line[len(multicastMLIDs):]
	i := bytes.Index(rest, guidField)
	if i < 0 {
		return 0, bad("no GUID")
	}
	v, n := hexPrefix(rest[i+len(guidField):], 16)
	if end := i + len(guidField) + n; n == 0 || end < len(rest) && rest[end] != ' ' {
		return 0, bad("bad GUID")
	}
	if j := bytes.Index(rest[:i], switchLID); j >= 0 {
		if lid, n := decPrefix(rest[j+len(switchLID):i], 5); n > 0 {
			sec.lid = int(lid)
		}
	}
	return fabric.GUID(v), nil
}

// section reads the lines of a section after the first. room is the worker's, and
// grows to what the largest section takes.
func (r *mftReader) section(form Form, sec *section, out *mftSection, index []int32, room *mftSection, row func(*section, *mftSection, []byte, int, []int32)) {
	if own := r.f.LID(r.f.PortBase(sec.sw)); sec.lid > 0 && int(own) != sec.lid {
		r.fault(sec, fault{at: sec.at, kind: Contradiction,
			err: fmt.Errorf("switch %s has LID %d in the fabric, here %d", r.f.Node(sec.sw).GUID, own, sec.lid)})
	}
	d := r.src.data[:sec.end]
	out.entries, out.rows = room.entries[:0], room.rows[:0]
	for i := sec.body; i < len(d) && !sec.failed; {
		if form == MCFDBs {
			i = r.printedMasks(sec, out, d, i, index)
		} else if !sec.ended {
			i = r.printedRows(sec, out, d, i, index)
		}
		if i == len(d) {
			break
		}
		line, next := cutLine(d, i)
		row(sec, out, line, i, index)
		i = next
	}
	*room = *out
	out.entries, out.rows = slices.Clone(out.entries), slices.Clone(out.rows)
	for _, w := range out.rows {
		index[w.mlid-mft.MinMLID] = 0
	}
	if form == MFTs && !sec.ended {
		r.fault(sec, fault{at: r.lastLine(sec), kind: Truncated,
			err: fmt.Errorf("the section of switch %s does not end with a line N valid mlids dumped: %w", r.f.Node(sec.sw).GUID, ErrTruncated)})
	}
}

// printedMasks reads rows at d[i:] as OpenSM and WriteMCFDBs print them, and gives
// the start of the first line that is another, or wrong.
func (r *mftReader) printedMasks(sec *section, out *mftSection, d []byte, i int, index []int32) int {
	const head = len("0xC000 :")
	last := int(r.f.Node(sec.sw).NumPorts)
	entries, to := out.entries[:cap(out.entries)], len(out.entries)
	for len(d)-i > head {
		if len(entries)-to < maxMask {
			entries = out.room(to)
		}
		w := binary.LittleEndian.Uint64(d[i:])
		h3, h2, h1, h0 := hexDigit[uint8(w>>16)], hexDigit[uint8(w>>24)], hexDigit[uint8(w>>32)], hexDigit[uint8(w>>40)]
		mlid := int(h3)<<12 | int(h2)<<8 | int(h1)<<4 | int(h0)
		if w&^(0xffffffff<<16) != '0'|'x'<<8|' '<<48|':'<<56 || h3|h2|h1|h0 > 15 || !isNew(mlid, index) {
			break
		}
		at, n, least := i+head, to, 0
		for ; len(d)-at >= 8 && d[at] == ' '; at += portText {
			// No port has three digits that count.
			w := binary.LittleEndian.Uint64(d[at:])
			p1, p0 := hexDigit[uint8(w>>32)], hexDigit[uint8(w>>40)]
			p := int(p1)<<4 | int(p0)
			if w&0x00ff0000ffffffff != ' '|'0'<<8|'x'<<16|'0'<<24|' '<<48 || p1|p0 > 15 || p < least || p > last {
				at = len(d)
				break
			}
			entries[n] = fabric.PortNum(p)
			n++
			least = p + 1
		}
		if n == to || at == len(d) || d[at] != '\n' {
			break
		}
		out.rows = append(out.rows, mftRow{fabric.LID(mlid), uint16(n - to), uint32(to)})
		index[mlid-int(mft.MinMLID)] = int32(len(out.rows))
		to, i = n, at+1
	}
	out.entries = entries[:to]
	return i
}

// mcfdbsLine reads a line of opensm.mcfdbs, which is at offset at.
func (r *mftReader) mcfdbsLine(sec *section, out *mftSection, line []byte, at int, index []int32) {
	const want = "want a row such as 0xC000 : 0x001  0x005"
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] == '#' || bytes.HasPrefix(line, []byte("LID ")) && bytes.HasSuffix(line, outPorts) {
		return
	}
	mlid, n := hex0x(line, 8)
	if n == 0 {
		r.drop(sec, at, want)
		return
	}
	i := skipBlanks(line, n)
	if i == len(line) || line[i] != ':' {
		r.drop(sec, at, want)
		return
	}
	from := len(out.entries)
	for i++; ; {
		j := skipBlanks(line, i)
		if j == len(line) {
			break
		}
		p, n := hex0x(line[j:], 8)
		// A port that is cut short would be another one.
		if n < len("0x001") || j == i {
			out.entries = out.entries[:from]
			r.drop(sec, at, want)
			return
		}
		if p > uint64(r.f.Node(sec.sw).NumPorts) {
			out.entries = out.entries[:from]
			r.drop(sec, at, "port %d of switch %s, which has ports 0 to %d", p, r.f.Node(sec.sw).GUID, r.f.Node(sec.sw).NumPorts)
			return
		}
		out.entries = append(out.entries, fabric.PortNum(p))
		i = j + n
	}
	r.row(sec, out, mlid, from, at, index)
}

// printedRows reads rows at d[i:] as ibroute -M and WriteMFTs print them, and gives
// the start of the first line that is another, or wrong.
func (r *mftReader) printedRows(sec *section, out *mftSection, d []byte, i int, index []int32) int {
	last := int(r.f.Node(sec.sw).NumPorts)
	digits := 4 * (last/16 + 1) // with -n
	entries, to := out.entries[:cap(out.entries)], len(out.entries)
	for len(d)-i > mftColumns+digits {
		if len(entries)-to < maxMask {
			entries = out.room(to)
		}
		w := binary.LittleEndian.Uint64(d[i:])
		h3, h2, h1, h0 := hexDigit[uint8(w>>16)], hexDigit[uint8(w>>24)], hexDigit[uint8(w>>32)], hexDigit[uint8(w>>40)]
		mlid := int(h3)<<12 | int(h2)<<8 | int(h1)<<4 | int(h0)
		if w&^(0xffffffff<<16) != '0'|'x'<<8|' '<<48|' '<<56 || string(d[i+8:i+mftColumns]) != "    " || h3|h2|h1|h0 > 15 || !isNew(mlid, index) {
			break
		}
		columns := d[i+mftColumns:]
		n, ports := digits, 0
		if columns[0] == ' ' || columns[0] == 'x' {
			if n = bytes.IndexByte(columns, '\n'); n > 0 {
				ports = printedCrosses(columns[:n], entries[to:], last)
			}
		} else if columns[n] == '\n' {
			ports = printedDigits(columns[:n], entries[to:], last)
		}
		if ports == 0 {
			break
		}
		out.rows = append(out.rows, mftRow{fabric.LID(mlid), uint16(ports), uint32(to)})
		index[mlid-int(mft.MinMLID)] = int32(len(out.rows))
		sec.last++ // counts the rows
		to += ports
		i += mftColumns + n + 1
	}
	out.entries = entries[:to]
	return i
}

// printedDigits reads the masks of ibroute -M -n, four digits for sixteen ports, up
// to port last: it puts the ports into room, and gives their number. It is 0 for any
// other text. The number of digits is a multiple of four, at most maxMask/4.
func printedDigits(columns []byte, room []fabric.PortNum, last int) (n int) {
	for first := 0; len(columns) > 0; first += 64 {
		var mask uint64
		bad := uint8(0)
		k := 0
		for ; k < 64 && len(columns) >= 4; k += 16 {
			d3, d2, d1, d0 := hexDigit[columns[0]], hexDigit[columns[1]], hexDigit[columns[2]], hexDigit[columns[3]]
			bad |= d3 | d2 | d1 | d0
			mask |= (uint64(d3)<<12 | uint64(d2)<<8 | uint64(d1)<<4 | uint64(d0)) << k
			columns = columns[4:]
		}
		if bad > 15 || first+bits.Len64(mask) > last+1 && mask != 0 {
			return 0
		}
		for ; mask != 0; mask &= mask - 1 {
			room[n] = fabric.PortNum(first + bits.TrailingZeros64(mask))
			n++
		}
	}
	return n
}

// printedCrosses is printedDigits for what ibroute -M prints without -n, an x in
// every second column.
func printedCrosses(columns []byte, room []fabric.PortNum, last int) (n int) {
	k := 0
	for ; len(columns)-k >= 8; k += 8 {
		for other := binary.LittleEndian.Uint64(columns[k:]) ^ blanks; other != 0; {
			at := bits.TrailingZeros64(other) / 8
			if uint8(other>>(8*at)) != 'x'^' ' || (k+at)%2 != 0 || (k+at)/2 > last {
				return 0
			}
			room[n] = fabric.PortNum((k + at) / 2)
			n++
			other &^= 0xff << (8 * at)
		}
	}
	for ; k < len(columns); k++ {
		switch {
		case columns[k] == ' ':
		case columns[k] == 'x' && k%2 == 0 && k/2 <= last:
			room[n] = fabric.PortNum(k / 2)
			n++
		default:
			return 0
		}
	}
	return n
}

// blanks are eight of them.
const blanks = 0x2020202020202020

// mftsLine reads a line of ibroute -M, which is at offset at.
func (r *mftReader) mftsLine(sec *section, out *mftSection, line []byte, at int, index []int32) {
	const want = "want a row such as 0xc000      x   x, or N valid mlids dumped"
	trimmed := bytes.TrimSpace(line)
	switch {
	case len(trimmed) == 0, trimmed[0] == '#', bytes.HasPrefix(trimmed, warningLine), bytes.HasPrefix(trimmed, []byte("ibwarn: ")):
		return
	case sec.ended:
		r.drop(sec, at, "text between the end of a section and the next one; want Multicast mlids ..")
		return
	case bytes.HasPrefix(trimmed, []byte("Ports:")), bytes.HasPrefix(trimmed, []byte("MLid")),
		bytes.HasPrefix(trimmed, []byte("Switch multicast mlid capability is ")):
		return
	}
	// What precedes the ports are the tens of their numbers.
	if sec.last < 0 && len(bytes.Trim(trimmed, "0123456789:;<=>?@ABCDEFGHI ")) == 0 {
		return
	}
	if v, n := decPrefix(trimmed, 9); n > 0 && trimmed[min(n, len(trimmed)-1)] == ' ' {
		if !bytes.Equal(bytes.TrimPrefix(trimmed[n+1:], validLIDs), mlidsDumped) {
			r.drop(sec, at, want)
			return
		}
		sec.ended = true
		if rows := sec.last + 1; int(v) != rows {
			r.fault(sec, fault{at: at, kind: Truncated,
				err: fmt.Errorf("%d mlids dumped, but the section has %d rows: %w", v, rows, ErrTruncated)})
		}
		return
	}
	mlid, n := hex0x(line, 8)
	if n == 0 || n < len(line) && line[n] != ' ' {
		r.drop(sec, at, want)
		return
	}
	sec.last++ // counts the rows
	from := len(out.entries)
	ports := int(r.f.Node(sec.sw).NumPorts)
	put := func(p int) bool {
		if p > ports {
			out.entries = out.entries[:from]
			r.drop(sec, at, "port %d of switch %s, which has ports 0 to %d", p, r.f.Node(sec.sw).GUID, ports)
			return false
		}
		out.entries = append(out.entries, fabric.PortNum(p))
		return true
	}
	columns := line[min(mftColumns, len(line)):]
	if digits := bytes.TrimSpace(line[n:]); len(digits) > 0 && digits[0] != 'x' {
		// Four digits for sixteen ports.
		if len(digits)%4 != 0 || len(digits) > 4*16 {
			r.drop(sec, at, want)
			return
		}
		for i := 0; i < len(digits); i += 4 {
			mask, n := hexPrefix(digits[i:i+4], 4)
			if n != 4 {
				out.entries = out.entries[:from]
				r.drop(sec, at, want)
				return
			}
			for bit := range 16 {
				if mask>>bit&1 != 0 && !put(4*i+bit) {
					return
				}
			}
		}
	} else {
		for i, c := range columns {
			switch {
			case c == ' ':
			case c == 'x' && i%2 == 0:
				if !put(i / 2) {
					return
				}
			default:
				out.entries = out.entries[:from]
				r.drop(sec, at, want)
				return
			}
		}
		if len(digits) > 0 && len(bytes.TrimSpace(columns)) != len(digits) {
			out.entries = out.entries[:from]
			r.drop(sec, at, want)
			return
		}
	}
	r.row(sec, out, mlid, from, at, index)
}

// row enters the row of an MLID whose ports are the entries from from on.
func (r *mftReader) row(sec *section, out *mftSection, mlid uint64, from, at int, index []int32) {
	if mlid < uint64(mft.MinMLID) || mlid > uint64(mft.MaxMLID) {
		out.entries = out.entries[:from]
		r.drop(sec, at, "MLID %#x, want %#04x to %#04x", mlid, uint16(mft.MinMLID), uint16(mft.MaxMLID))
		return
	}
	ports := out.entries[from:]
	for i := 1; i < len(ports); i++ {
		if ports[i] <= ports[i-1] {
			slices.Sort(ports)
			ports = slices.Compact(ports)
			break
		}
	}
	out.entries = out.entries[:from+len(ports)]
	known := &index[mlid-uint64(mft.MinMLID)]
	if *known > 0 {
		row := out.rows[*known-1]
		if first := out.entries[row.from:]; !slices.Equal(first[:row.ports], ports) {
			r.drop(sec, at, "a second row for MLID %#04x of switch %s, with other ports than the first", mlid, r.f.Node(sec.sw).GUID)
		}
		out.entries = out.entries[:from]
		return
	}
	out.rows = append(out.rows, mftRow{fabric.LID(mlid), uint16(len(ports)), uint32(from)})
	*known = int32(len(out.rows))
}

// finishMFTs collects what was found wrong: the error of a strict reader, or
// the Problems.
func (r *mftReader) finishMFTs(form Form, faults []fault) ([]Problem, error) {
	var more overflow
	have := make([]bool, r.f.NumSwitches())
	for i := range r.sections {
		sec := &r.sections[i]
		faults = append(faults, sec.faults...)
		more.join(sec.more)
		if !sec.skip {
			have[sec.sw] = true
		}
	}
	if err := r.src.firstFault(faults); err != nil && !r.opt.Lenient {
		return nil, err
	}
	if form == MFTs {
		for s, ok := range have {
			if !ok {
				n := r.f.Node(fabric.NodeID(s))
				faults = append(faults, fault{at: -1, kind: Missing, err: fmt.Errorf("no table of switch %s %q", n.GUID, n.Description)})
			}
		}
	}
	return r.src.problems(faults, more), nil
}

// join makes tables of the sections.
func (r *mftReader) join() *mft.Tables {
	order := make([]int, len(r.sections))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return int(r.sections[i].sw - r.sections[j].sw) })
	start := make([]int64, mft.NumMLIDs+2)
	for i := range r.out {
		for _, w := range r.out[i].rows {
			start[int(w.mlid-mft.MinMLID)+2] += int64(w.ports)
		}
	}
	count := 0
	for m := 2; m < len(start); m++ {
		if start[m] > 0 {
			count++
		}
		start[m] += start[m-1]
	}
	ports := make([]fabric.PortID, start[len(start)-1])
	for _, i := range order {
		base, entries := r.f.PortBase(max(0, r.sections[i].sw)), r.out[i].entries
		for _, w := range r.out[i].rows {
			at := &start[int(w.mlid-mft.MinMLID)+1]
			to := ports[*at:][:w.ports]
			for k, p := range entries[:w.ports] {
				to[k] = base + fabric.PortID(p)
			}
			*at += int64(w.ports)
			entries = entries[w.ports:]
		}
	}
	mlids := make([]fabric.LID, 0, count)
	ends := make([]int64, 1, count+1)
	for m := range mft.NumMLIDs {
		if start[m] < start[m+1] {
			mlids = append(mlids, mft.MinMLID+fabric.LID(m))
			ends = append(ends, start[m+1])
		}
	}
	return mft.TablesOf(r.f, mlids, ends, ports)
}
