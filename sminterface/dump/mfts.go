package dump

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/mft"
)

// mftRow is the mask of an MLID in a switch: the ports in it, ascending.
type mftRow struct {
	mlid  fabric.LID
	ports []fabric.PortNum
}

// rowsBySwitch returns the rows of every switch, by MLID.
func rowsBySwitch(t *mft.Tables) [][]mftRow {
	f := t.Fabric()
	rows := make([][]mftRow, f.NumSwitches())
	for i, l := range t.MLIDs() {
		list := t.PortsAt(i)
		ports := make([]fabric.PortNum, len(list)) // of all rows of this MLID
		for from := 0; from < len(list); {
			s, to := f.Owner(list[from]), from
			for ; to < len(list) && f.Owner(list[to]) == s; to++ {
				ports[to] = f.Num(list[to])
			}
			rows[s] = append(rows[s], mftRow{l, ports[from:to]})
			from = to
		}
	}
	return rows
}

// WriteMCFDBs writes opensm.mcfdbs as osm_dump.c does: a section for each switch
// that has a port in a mask. There may be no such switch. opt.Lean changes nothing.
// Errors are those of w, and switches in opt.Only that the fabric does not have.
func WriteMCFDBs(w io.Writer, t *mft.Tables, opt WriteOptions) error {
	f := t.Fabric()
	rows := rowsBySwitch(t)
	return writeSwitches(w, f, opt.Only, func(b []byte, s fabric.NodeID) []byte {
		if len(rows[s]) == 0 {
			return b
		}
		b = fmt.Appendf(b, "\nSwitch %s\nLID    : Out Port(s)\n", f.Node(s).GUID)
		for _, row := range rows[s] {
			b = append(appendHex(append(b, "0x"...), uint64(row.mlid), 4, upperHex), " :"...)
			for _, p := range row.ports {
				b = append(appendHex(append(b, " 0x"...), uint64(p), 3, upperHex), ' ')
			}
			b = append(b, '\n')
		}
		return b
	})
}

// WriteMFTs writes what ibroute -M prints, one switch after the other and
// each addressed by its LID; opt.Lean is its option -n. dump_mfts prints the
// same in the order in which it meets the switches, and with a directed route
// instead of the LID. capacity is the number of MLIDs that switches have
// (MulticastFDBCap), which the first line of a section shows; 0 stands for
// all MLIDs. Errors are as for WriteMCFDBs, and an MLID beyond the capacity.
func WriteMFTs(w io.Writer, t *mft.Tables, opt WriteOptions, capacity int) error {
	f := t.Fabric()
	if capacity <= 0 || capacity > mft.NumMLIDs {
		capacity = mft.NumMLIDs
	}
	high := int(mft.MinMLID) + capacity - 1
	if l := t.MLIDs(); len(l) > 0 && int(l[len(l)-1]) > high {
		return fmt.Errorf("MLID %#04x, above %#04x, the highest that the switches have", uint16(l[len(l)-1]), high)
	}
	rows := rowsBySwitch(t)
	return writeSwitches(w, f, opt.Only, func(b []byte, s fabric.NodeID) []byte {
		node := f.Node(s)
		b = fmt.Appendf(b, "Multicast mlids [0xc000-%#x] of switch Lid %d guid %s (", high, f.LID(f.PortBase(s)), node.GUID)
		b = appendDescription(b, node.Description)
		b = append(b, "):\n"...)
		appendRow := appendCrosses
		if opt.Lean {
			b = append(b, " MLid       Port Mask\n"...)
			appendRow = appendDigits
		} else {
			b = appendPortHeads(b, int(node.NumPorts))
		}
		for _, row := range rows[s] {
			b = appendHex(append(b, "0x"...), uint64(row.mlid), 4, lowerHex)
			b = append(b, "      "...)
			b = appendRow(b, row.ports, int(node.NumPorts))
			b = append(b, '\n')
		}
		b = strconv.AppendInt(b, int64(len(rows[s])), 10)
		return append(b, " valid mlids dumped \n"...)
	})
}

// appendPortHeads appends the numbers of the ports, over their columns.
func appendPortHeads(b []byte, last int) []byte {
	if last > 9 {
		b = append(b, "            "...)
		for p := range last + 1 {
			tens := byte(' ')
			if p%10 == 0 {
				tens = '0' + byte(p/10) // the character : for 10, as in port 100
			}
			b = append(b, tens, ' ')
		}
		b = append(b, '\n')
	}
	b = append(b, "     Ports: "...)
	for p := range last + 1 {
		b = append(b, '0'+byte(p%10), ' ')
	}
	return append(b, "\n MLid\n"...)
}

// appendCrosses appends a mask with an x in the columns of its ports.
func appendCrosses(b []byte, ports []fabric.PortNum, last int) []byte {
	from := len(b)
	b = append(b, blanks[:2*(last+1)]...)
	for _, p := range ports {
		b[from+2*int(p)] = 'x'
	}
	return b
}

var blanks = strings.Repeat(" ", 2*256)

// appendDigits appends a mask as four hexadecimal digits for each sixteen ports.
func appendDigits(b []byte, ports []fabric.PortNum, last int) []byte {
	var masks [16]uint16
	for _, p := range ports {
		masks[p/16] |= 1 << (p % 16)
	}
	for _, mask := range masks[:last/16+1] {
		b = appendHex(b, uint64(mask), 4, lowerHex)
	}
	return b
}

// mftReader reads the sections of one file with multicast tables.
type mftReader struct {
	sectionReader
	rows [][]mftRow // by section
}

// ReadMFTs reads multicast forwarding tables: opensm.mcfdbs, which may
// be empty, or what ibroute -M or dump_mfts print (with -a and -n too).
// The form is recognized by content. name is the file's, for messages.
//
// Switches are matched by node GUID. opensm.mcfdbs leaves out switches
// without masks; in the other form a missing switch is a Missing
// Problem. MLIDs that are in no mask are not in the tables.
//
// Errors are *fabric.ParseError, and the tables are then nil. With
// Options.Lenient these are Problems instead: MLIDs outside of
// mft.MinMLID to mft.MaxMLID, ports that the switch does not have,
// unknown switches, a second section for a switch, a second row for an
// MLID with other ports (the first counts), foreign lines, sections of
// dump_mfts that end too early, and an opensm.mcfdbs whose last line
// has no end. A cut between its lines goes unnoticed.
func ReadMFTs(name string, data []byte, f *fabric.Fabric, opt Options) (*mft.Tables, []fabric.Problem, error) {
	r := &mftReader{sectionReader: newSectionReader(name, data, f, opt)}
	form := Recognize(data)
	var read func(sec *section, at int, line []byte) (mftRow, error)
	switch {
	case form == MCFDBs:
		r.findSections(mcfdbsSwitch, guidHead(mcfdbsSwitch))
		read = r.readMCFDBsLine
	case form == MFTs:
		r.findSections(multicastMLIDs, r.readMFTHead)
		read = r.readMFTLine
	case form == Unknown && firstLine(data) < 0: // as OpenSM writes it when there are no groups
		return mft.NewTables(f), nil, nil
	default:
		return nil, nil, r.notForm(form, "multicast forwarding tables", "opensm.mcfdbs, or what ibroute -M or dump_mfts print")
	}
	r.rows = make([][]mftRow, len(r.sections))
	r.eachSection(func(i int, sec *section) {
		r.rows[i] = r.readSection(sec, read)
		if form == MFTs {
			r.checkEnded(sec, "N valid mlids dumped")
		}
	})
	if n := len(data); form == MCFDBs && data[n-1] != '\n' {
		r.add(n, fabric.Truncated, fmt.Errorf("the last line has no end: %w", ErrTruncated))
	}
	r.joinSections()
	if form == MFTs {
		r.findMissing()
	}
	return finish(&r.textReader, r.tables())
}

const (
	mcfdbsSwitch   = "Switch 0x"
	multicastMLIDs = "Multicast mlids "
)

// readMFTHead reads the first line of a section of ibroute -M.
func (r *mftReader) readMFTHead(sec *section, line []byte) (fabric.GUID, error) {
	guid, err := sec.readSwitchName(line[len(multicastMLIDs):])
	if err != nil {
		return 0, fmt.Errorf("%w; want Multicast mlids [0xc000-0xc3ff] of switch Lid 1 guid 0x0123456789abcdef", err)
	}
	return guid, nil
}

// readSection reads the lines of a section after the first.
// read returns MLID 0 for a line without a row.
func (r *mftReader) readSection(sec *section, read func(sec *section, at int, line []byte) (mftRow, error)) []mftRow {
	r.checkLID(sec)
	var rows []mftRow
	first := make([]int32, mft.NumMLIDs) // by MLID less MinMLID: 1 + index in rows, 0 for none
	r.eachLine(sec, func(at int, line []byte) error {
		row, err := read(sec, at, line)
		if err != nil || row.mlid == 0 {
			return err
		}
		i := &first[row.mlid-mft.MinMLID]
		if *i == 0 {
			rows = append(rows, row)
			*i = int32(len(rows))
		} else if !slices.Equal(rows[*i-1].ports, row.ports) {
			return fmt.Errorf("a second row for MLID %#04x of switch %s, with other ports than the first", uint16(row.mlid), r.f.Node(sec.sw).GUID)
		}
		return nil
	})
	return rows
}

// mask collects the ports of a row.
type mask struct {
	node  *fabric.Node
	ports []fabric.PortNum
}

// addPort adds a port, or returns an error if the switch does not have it.
func (m *mask) addPort(p int) error {
	if p > int(m.node.NumPorts) {
		return fmt.Errorf("port %d of switch %s, which has ports 0 to %d", p, m.node.GUID, m.node.NumPorts)
	}
	m.ports = append(m.ports, fabric.PortNum(p))
	return nil
}

// row returns the row of an MLID with these ports.
func (m *mask) row(mlid uint64) (mftRow, error) {
	if mlid < uint64(mft.MinMLID) || mlid > uint64(mft.MaxMLID) {
		return mftRow{}, fmt.Errorf("MLID %#x, want %#04x to %#04x", mlid, uint16(mft.MinMLID), uint16(mft.MaxMLID))
	}
	slices.Sort(m.ports)
	return mftRow{fabric.LID(mlid), slices.Compact(m.ports)}, nil
}

var errMCFDBsRow = errors.New("want a row such as 0xC000 : 0x001  0x005")

// readMCFDBsLine reads a line of opensm.mcfdbs.
func (r *mftReader) readMCFDBsLine(sec *section, _ int, line []byte) (row mftRow, err error) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] == '#' || bytes.HasPrefix(line, []byte("LID ")) && bytes.HasSuffix(line, []byte("Out Port(s)")) {
		return row, nil
	}
	m := mask{node: r.f.Node(sec.sw)}
	s := topology.Line{Text: line}
	mlid := s.Hex0x(8)
	s.SkipBlanks()
	s.Want(":")
	for !s.Bad && !s.Done() {
		s.Blanks()
		before := s.At
		p := s.Hex0x(8)
		// A port with fewer digits is cut short.
		if s.Bad = s.Bad || s.At-before < len("0x001"); !s.Bad {
			if err := m.addPort(int(p)); err != nil {
				return row, err
			}
		}
	}
	if s.Bad {
		return row, errMCFDBsRow
	}
	return m.row(mlid)
}

var errMFTRow = errors.New("want a row such as 0xc000      x   x, or N valid mlids dumped")

// readMFTLine reads a line of ibroute -M.
func (r *mftReader) readMFTLine(sec *section, at int, line []byte) (row mftRow, err error) {
	text := bytes.TrimSpace(line)
	switch {
	case len(text) == 0, text[0] == '#', bytes.HasPrefix(text, toolWarning), bytes.HasPrefix(text, libraryWarning):
		return row, nil
	case sec.ended:
		return row, errors.New("text between the end of a section and the next one; want Multicast mlids ..")
	case bytes.HasPrefix(text, []byte("Ports:")), bytes.HasPrefix(text, []byte("MLid")),
		bytes.HasPrefix(text, []byte("Switch multicast mlid capability is ")):
		return row, nil
	// The line before the ports' last digits has the tens.
	case sec.rows == 0 && len(bytes.Trim(text, "0123456789:;<=>?@ABCDEFGHI ")) == 0:
		return row, nil
	}
	s := topology.Line{Text: text}
	if count := s.Decimal(9); s.Skip(" ") {
		return row, readMFTEnd(sec, at, count, s)
	}
	return r.readMFTRow(sec, line)
}

// readMFTEnd reads the rest of a section's last line, behind its count of rows.
func readMFTEnd(sec *section, at, count int, s topology.Line) error {
	s.Skip("valid ")
	if s.Want("mlids dumped"); !s.AtEnd() {
		return errMFTRow
	}
	sec.ended = true
	if count != sec.rows {
		sec.add(at, fabric.Truncated, fmt.Errorf("%d mlids dumped, but the section has %d rows: %w", count, sec.rows, ErrTruncated))
	}
	return nil
}

// readMFTRow reads a row of ibroute -M, with or without -n.
func (r *mftReader) readMFTRow(sec *section, line []byte) (row mftRow, err error) {
	s := topology.Line{Text: line}
	mlid := s.Hex0x(8)
	if s.Bad || !s.Done() && !s.Is(' ') {
		return row, errMFTRow
	}
	sec.rows++
	m := mask{node: r.f.Node(sec.sw)}
	if text := bytes.TrimSpace(s.Rest()); len(text) > 0 && text[0] != 'x' {
		err = m.readDigits(text)
	} else {
		err = m.readCrosses(line, text)
	}
	if err != nil {
		return row, err
	}
	return m.row(mlid)
}

// readDigits reads a mask of four digits for sixteen ports.
func (m *mask) readDigits(text []byte) error {
	if len(text)%4 != 0 || len(text) > 4*16 {
		return errMFTRow
	}
	for i := 0; i < len(text); i += 4 {
		s := topology.Line{Text: text[i : i+4]}
		bits := s.Hex(4)
		if !s.AtEnd() || s.At != 4 {
			return errMFTRow
		}
		for bit := range 16 {
			if bits>>bit&1 == 0 {
				continue
			}
			if err := m.addPort(4*i + bit); err != nil {
				return err
			}
		}
	}
	return nil
}

// readCrosses reads a mask with an x in column 2p for port
// p. text is the line behind the MLID, trimmed.
func (m *mask) readCrosses(line, text []byte) error {
	columns := line[min(len("0xc000      "), len(line)):]
	for i, c := range columns {
		switch {
		case c == ' ':
		case c == 'x' && i%2 == 0:
			if err := m.addPort(i / 2); err != nil {
				return err
			}
		default:
			return errMFTRow
		}
	}
	if len(bytes.TrimSpace(columns)) != len(text) { // text precedes the columns
		return errMFTRow
	}
	return nil
}

// tables makes tables of the sections.
func (r *mftReader) tables() *mft.Tables {
	masks := make([][]fabric.PortID, mft.NumMLIDs)
	order := make([]int, len(r.sections))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return int(r.sections[i].sw - r.sections[j].sw) })
	for _, i := range order {
		for _, row := range r.rows[i] {
			list := &masks[row.mlid-mft.MinMLID]
			for _, p := range row.ports {
				*list = append(*list, r.f.Port(r.sections[i].sw, p))
			}
		}
	}
	t := mft.NewTables(r.f)
	for i, ports := range masks {
		if len(ports) > 0 {
			t.Add(mft.MinMLID+fabric.LID(i), ports)
		}
	}
	return t
}
