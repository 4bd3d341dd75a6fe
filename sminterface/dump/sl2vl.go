package dump

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
	"github.com/ibweave/ibweave/lft"
)

// WriteSL2VL writes opensm-sl2vl.dump, as osm_dump.c does when QoS is on: a
// section for each switch and for each CA and router port with a cable, in
// OpenSM's order of port GUIDs. A switch has a row for each output port with a
// cable and each input port, including port 0 and ports without cables. Port 0
// as an output port has no rows, even if it is enhanced. The one row of a CA or
// router port has 0 for both ports.
//
// ibdmchk -d reads this format, too. opt.Only restricts the output to the
// sections of these switches; opt.Lean changes nothing. Errors are those of w,
// and options of another fabric.
func WriteSL2VL(w io.Writer, s *lft.SL2VL, opt WriteOptions) error {
	f := s.Fabric()
	ports, err := sl2vlPorts(f, opt.Only)
	if err != nil {
		return err
	}
	return writeBatches(w, ports, func(b []byte, p fabric.PortID) []byte {
		n := f.Owner(p)
		node := f.Node(n)
		b = fmt.Appendf(b, "%s %s%s%d, \"", node.Type, f.PortGUID(p), baseLID, f.LID(p))
		b = appendDescription(b, node.Description)
		b = append(b, "\"\n"+slHeads+"\n"+slRuler+"\n"...)
		if !f.IsSwitch(n) {
			b = appendSL2VLRow(b, 0, 0, s.At(0, p))
		} else {
			lft.EachMap(f, n, func(in, out fabric.PortNum) { b = appendSL2VLRow(b, in, out, s.At(in, f.Port(n, out))) })
		}
		return append(b, slRuler+"\n\n"...)
	})
}

const (
	baseLID = ", base LID "
	slHeads = "#in out : 0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15"
	slRuler = "#--------------------------------------------------------"
)

func appendSL2VLRow(b []byte, in, out fabric.PortNum, m *lft.VLMap) []byte {
	column := func(v uint8, width int) {
		end := len(b) + width
		b = strconv.AppendUint(b, uint64(v), 10)
		for len(b) < end {
			b = append(b, ' ')
		}
	}
	column(uint8(in), 4)
	column(uint8(out), 4)
	b = append(b, ": "...)
	for _, v := range m {
		column(uint8(v), 3)
	}
	b[len(b)-1] = '\n'
	return b
}

// sl2vlPorts lists the ports that have sections, in OpenSM's order: ports 0 of
// switches, and CA and router ports with a cable. If only is not nil, it lists
// just the ports 0 of the switches in only.
func sl2vlPorts(f *fabric.Fabric, only []fabric.NodeID) ([]fabric.PortID, error) {
	list, err := switchesToWrite(f, only)
	if err != nil {
		return nil, err
	}
	ports := make([]fabric.PortID, 0, len(list)+len(f.CAPorts()))
	for _, s := range list {
		ports = append(ports, f.PortBase(s))
	}
	if only == nil {
		ports = append(ports, f.CAPorts()...)
	}
	slices.SortFunc(ports, func(p, q fabric.PortID) int {
		return cmp.Or(compareGUIDs(f.PortGUID(p), f.PortGUID(q)), cmp.Compare(p, q))
	})
	return ports, nil
}

// sl2vlReader reads SL-to-VL tables of any form.
type sl2vlReader struct {
	textReader
	f      *fabric.Fabric
	s      *lft.SL2VL
	given  [][]bool                      // by PortID of the output port, then input port: true with a row
	byGUID map[fabric.GUID]fabric.PortID // CA and router ports with a cable

	// The section that is being read.
	at     int           // offset of its first line
	of     fabric.PortID // port 0 of its switch, or the CA or router port; NoPort if it is left out
	open   bool          // its last line was not read yet
	rulers int
}

// ReadSL2VL reads SL-to-VL tables: opensm-sl2vl.dump, or what smpquery
// sl2vl prints when it is given LIDs, one output after the other. The
// form is recognized by content. name is the file's, for messages.
//
// Switches are matched by GUID, CA and router ports by port GUID, and
// by LID in what smpquery prints. A map that the text lacks takes all
// SLs to VL 0. If packets can use it, since its ports have cables, it
// is noted: in a Missing Problem for each switch, or in one
// MissingEnds Problem for all CAs and routers.
//
// Errors are *fabric.ParseError, and the tables are then nil. With
// Options.Lenient these are Problems instead: unknown switches and
// ports, VLs above 15, a second row with another map (the first
// counts), foreign lines, and sections that end too early.
func ReadSL2VL(name string, data []byte, f *fabric.Fabric, opt Options) (*lft.SL2VL, []fabric.Problem, error) {
	r := &sl2vlReader{textReader: newTextReader(name, data, opt), f: f, of: fabric.NoPort}
	var read func(at int, line []byte) error
	switch form := Recognize(data); form {
	case SL2VL:
		read = r.readDumpLine
	case SMPQuerySL2VL:
		read = r.readSMPQueryLine
	default:
		return nil, nil, r.notForm(form, "SL-to-VL tables", "opensm-sl2vl.dump, or what smpquery sl2vl prints")
	}
	r.s = lft.NewSL2VL(f, lft.ConstantVL(0))
	r.given = make([][]bool, f.NumPorts())
	r.byGUID = make(map[fabric.GUID]fabric.PortID, len(f.CAPorts()))
	for _, p := range slices.Backward(f.CAPorts()) { // if several have one GUID, the first counts
		r.byGUID[f.PortGUID(p)] = p
	}
	r.eachLine(func(at int, line []byte) error {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			return nil
		}
		return read(at, line)
	})
	r.checkEnd(0)
	r.closeSection(len(data))
	r.findMissing()
	return finish(&r.textReader, r.s)
}

func (r *sl2vlReader) readDumpLine(at int, line []byte) error {
	switch c := line[0]; {
	case c == '#':
		if bytes.HasPrefix(line, []byte("#--")) && r.open {
			r.rulers++
			r.open = r.rulers < 2
		}
	case c < '0' || c > '9':
		return r.readDumpHead(at, line)
	case !r.open:
		return errors.New("a row outside of a section; want a line such as Switch 0x0123456789abcdef, base LID 1, \"..\" before it")
	default:
		return r.addRow(parseSL2VLRow(line, "", "", ":", ' ', errDumpRow))
	}
	return nil
}

// readDumpHead reads the first line of a section of opensm-sl2vl.dump.
func (r *sl2vlReader) readDumpHead(at int, line []byte) error {
	r.closeSection(at)
	if r.failed {
		return nil
	}
	r.at, r.of, r.open, r.rulers = at, fabric.NoPort, true, 0
	s := topology.Line{Text: line}
	var kind fabric.NodeType
	for _, t := range []fabric.NodeType{fabric.Switch, fabric.CA, fabric.Router} {
		if s.Skip(t.String() + " 0x") {
			kind = t
			break
		}
	}
	if kind == 0 {
		return errors.New("want a section's first line such as Switch 0x0123456789abcdef, base LID 1, \"..\", or a row such as 0   1   : 0  1  2 ..")
	}
	guid := fabric.GUID(s.Hex(16))
	if s.Want(baseLID); s.Bad {
		return fmt.Errorf("bad GUID; want %s 0x0123456789abcdef%s1, \"..\"", kind, baseLID)
	}
	lid := s.Decimal(5)
	if s.Bad || lid > int(fabric.MaxUnicastLID) {
		return fmt.Errorf("bad base LID; want 0 to %d", fabric.MaxUnicastLID)
	}
	if kind == fabric.Switch {
		sw, known := r.f.SwitchByGUID(guid)
		if !known {
			return fmt.Errorf("the fabric has no switch %s", guid)
		}
		r.of = r.f.PortBase(sw)
	} else {
		p, known := r.byGUID[guid]
		if !known {
			return fmt.Errorf("the fabric has no CA or router port %s with a cable", guid)
		}
		r.of = p
	}
	if own := r.f.LID(r.of); int(own) != lid {
		r.add(at, fabric.Contradiction, fmt.Errorf("%s %s has LID %d in the fabric, here %d", kind, guid, own, lid))
	}
	return nil
}

// closeSection ends the section that is being read; at is the offset behind it.
func (r *sl2vlReader) closeSection(at int) {
	if r.open && !r.failed {
		r.add(r.lastLine(at), fabric.Truncated,
			fmt.Errorf("the section that begins in line %d does not end with a line %s..: %w", r.numberAt(r.at), slRuler[:8], ErrTruncated))
	}
	r.open = false
}

// readSMPQueryLine reads a line of what smpquery sl2vl prints. It
// ignores warnings of libibmad, which a shell may have put between.
func (r *sl2vlReader) readSMPQueryLine(_ int, line []byte) error {
	s := topology.Line{Text: line}
	switch {
	case s.Skip("# SL2VL table: "):
		r.of = fabric.NoPort
		s.Want("Lid ")
		lid := s.Decimal(5)
		if !s.AtEnd() || lid > int(fabric.MaxUnicastLID) {
			return errors.New("no LID; want # SL2VL table: Lid 1, as smpquery sl2vl prints it when it is given a LID")
		}
		if r.of = r.f.LIDPort(fabric.LID(lid)); r.of == fabric.NoPort {
			return fmt.Errorf("no port of the fabric has LID %d", lid)
		}
	case line[0] == '#', bytes.HasPrefix(line, libraryWarning):
	default:
		return r.addRow(parseSL2VLRow(line, portsIn, ", out ", ": |", '|', errSMPQueryRow))
	}
	return nil
}

// sl2vlRow is a row: the VLs, by SL, of packets from an input port to an output
// port.
type sl2vlRow struct {
	in, out int
	vls     lft.VLMap
}

var (
	errDumpRow     = errors.New("want a row such as 0   1   : 0  1  2 .., with the ports of the ways in and out and 16 VLs")
	errSMPQueryRow = errors.New("want a row such as ports: in  0, out  1: | 0| 1| 2|.., with 16 VLs")
)

const portsIn = "ports: in "

// parseSL2VLRow reads a row: begin, input port, behindIn, output port,
// behindOut, and 16 VLs, each with behindVL (the last without, if that
// is a blank). It returns the error wrong, or one for a VL above 15.
func parseSL2VLRow(line []byte, begin, behindIn, behindOut string, behindVL byte, wrong error) (row sl2vlRow, err error) {
	s := topology.Line{Text: line}
	number := func(behind string) int {
		s.SkipBlanks()
		v := s.Decimal(3)
		s.SkipBlanks()
		s.Want(behind)
		return v
	}
	s.Want(begin)
	row.in, row.out = number(behindIn), number(behindOut)
	for sl := range row.vls {
		s.SkipBlanks()
		vl := s.Decimal(3)
		if s.Is(behindVL) {
			s.At++
		} else {
			s.Bad = s.Bad || behindVL != ' '
		}
		if vl > int(lft.DropVL) && !s.Bad {
			return row, fmt.Errorf("VL %d for SL %d: want VLs of 0 to 15", vl, sl)
		}
		row.vls[sl] = fabric.VL(vl)
	}
	s.SkipBlanks()
	if !s.AtEnd() {
		return row, wrong
	}
	return row, nil
}

// addRow enters a row of the current section, or returns err, the error of reading it.
func (r *sl2vlReader) addRow(row sl2vlRow, err error) error {
	if err != nil || r.of == fabric.NoPort {
		return err
	}
	node := r.f.Node(r.f.Owner(r.of))
	p := r.of
	if node.Type != fabric.Switch {
		if row.in != 0 || row.out != 0 {
			return fmt.Errorf("way in %d and way out %d of %s, which is no switch; want 0 for both", row.in, row.out, r.f.PortName(p))
		}
	} else {
		for _, v := range []int{row.in, row.out} {
			if v > int(node.NumPorts) {
				return fmt.Errorf("port %d of switch %s, which has ports 0 to %d", v, node.GUID, node.NumPorts)
			}
		}
		p += fabric.PortID(row.out)
	}
	if r.given[p] == nil {
		r.given[p] = make([]bool, int(node.NumPorts)+1)
	}
	in := fabric.PortNum(row.in)
	if r.given[p][in] {
		if *r.s.At(in, p) != row.vls {
			return fmt.Errorf("a second row for way in %d and way out %d of %s %s, with other VLs", row.in, row.out, node.Type, node.GUID)
		}
		return nil
	}
	r.given[p][in] = true
	r.s.Set(in, p, row.vls)
	return nil
}

// hasRow returns true if there was a row for an input and an output port.
func (r *sl2vlReader) hasRow(in fabric.PortNum, out fabric.PortID) bool {
	return r.given[out] != nil && r.given[out][in]
}

// findMissing notes the ports that packets can take and that have no row.
func (r *sl2vlReader) findMissing() {
	say := func(kind fabric.ProblemKind, count int, one, many, first string) {
		err := fmt.Errorf("no row for 1 %s, %s: its SLs are taken to be on VL 0", one, first)
		if count > 1 {
			err = fmt.Errorf("no row for %d %s, the first %s: their SLs are taken to be on VL 0", count, many, first)
		}
		r.add(-1, kind, err)
	}
	for _, s := range r.f.Switches() {
		count, in0, out0 := 0, fabric.PortNum(0), fabric.PortNum(0)
		lft.EachMap(r.f, s, func(in, out fabric.PortNum) {
			if r.hasRow(in, r.f.Port(s, out)) || in != 0 && r.f.Peer(r.f.Port(s, in)) == fabric.NoPort {
				return
			}
			if count == 0 {
				in0, out0 = in, out
			}
			count++
		})
		if count > 0 {
			n := r.f.Node(s)
			through := fmt.Sprintf(" through switch %s %q", n.GUID, n.Description)
			say(fabric.Missing, count, "way"+through, "ways"+through, fmt.Sprintf("from port %d to port %d", in0, out0))
		}
	}
	count, first := 0, fabric.NoPort
	for _, p := range r.f.CAPorts() {
		if !r.hasRow(0, p) {
			if count == 0 {
				first = p
			}
			count++
		}
	}
	if count > 0 {
		say(fabric.MissingEnds, count, "CA or router port", "CA and router ports", r.f.PortName(first))
	}
}
