package dump

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// WriteSL2VL writes opensm-sl2vl.dump, as osm_dump.c does when QoS is on: a
// section for each switch and for each CA and router port with a cable, in
// OpenSM's order of port GUIDs. A switch has a row for each way out with a
// cable and each way in, its port 0 and ports without cables included; its
// port 0 as a way out has none, even if it is enhanced. The one row of a CA or
// router port has 0 for both.
//
// ibdmchk -d reads this form, too. Of opt, Only restricts the output to the
// sections of these switches; Lean changes nothing. Errors are those of w, and
// options that do not belong to the fabric.
func WriteSL2VL(w io.Writer, s *lft.SL2VL, opt WriteOptions) error {
	f := s.Fabric()
	ports, err := sl2vlPorts(f, opt.Only)
	if err != nil {
		return err
	}
	return writePorts(w, ports, func(b []byte, p fabric.PortID) []byte {
		n := f.Owner(p)
		node := f.Node(n)
		b = append(b, node.Type.String()...)
		b = append(b, ' ')
		b = f.PortGUID(p).Append(b)
		b = append(b, baseLID...)
		b = appendDecimal(b, int(f.LID(p)))
		b = append(b, ", \""...)
		b = appendDescription(b, node.Description)
		b = append(b, "\"\n"+slHeads+"\n"+slRuler+"\n"...)
		var row vlRow
		appendRow := func(in, out fabric.PortNum, m *lft.VLMap) {
			b = appendBlanked(b, int(in), 3)
			b = append(b, ' ')
			b = appendBlanked(b, int(out), 3)
			b = append(b, " :"...)
			b = row.append(b, m, func(b []byte, m *lft.VLMap) []byte {
				for _, v := range m {
					b = append(b, ' ')
					b = appendBlanked(b, int(v), 2)
				}
				return append(b, '\n')
			})
		}
		if !f.IsSwitch(n) {
			appendRow(0, 0, s.At(0, p))
		} else {
			eachWay(f, n, func(in, out fabric.PortNum) { appendRow(in, out, s.At(in, f.Port(n, out))) })
		}
		return append(b, slRuler+"\n\n"...)
	})
}

const (
	baseLID = ", base LID "
	slHeads = "#in out : 0  1  2  3  4  5  6  7  8  9  10 11 12 13 14 15"
	slRuler = "#--------------------------------------------------------"
)

// WriteSMPQuerySL2VL writes what smpquery sl2vl LID PORT prints (infiniband-diags,
// smpquery.c) for each switch and each of its ports with a cable, one after
// the other, and for CA and router ports with a cable. It leaves out what has
// no LID. Order, options and errors are those of WriteSL2VL.
func WriteSMPQuerySL2VL(w io.Writer, s *lft.SL2VL, opt WriteOptions) error {
	f := s.Fabric()
	ports, err := sl2vlPorts(f, opt.Only)
	if err != nil {
		return err
	}
	return writePorts(w, ports, func(b []byte, p fabric.PortID) []byte {
		n := f.Owner(p)
		if f.LID(p) == 0 {
			return b
		}
		head := func() {
			b = append(b, "# SL2VL table: Lid "...)
			b = appendDecimal(b, int(f.LID(p)))
			b = append(b, "\n#                 SL: | 0| 1| 2| 3| 4| 5| 6| 7| 8| 9|10|11|12|13|14|15|\n"...)
		}
		var row vlRow
		appendRow := func(in, out fabric.PortNum, m *lft.VLMap) {
			b = append(b, portsIn...)
			b = appendRight(b, int(in))
			b = append(b, ", out "...)
			b = appendRight(b, int(out))
			b = append(b, ": |"...)
			b = row.append(b, m, func(b []byte, m *lft.VLMap) []byte {
				for _, v := range m {
					b = appendRight(b, int(v))
					b = append(b, '|')
				}
				return append(b, '\n')
			})
		}
		if !f.IsSwitch(n) {
			head()
			appendRow(0, 0, s.At(0, p))
			return b
		}
		eachWay(f, n, func(in, out fabric.PortNum) {
			if in == 0 {
				head()
			}
			appendRow(in, out, s.At(in, f.Port(n, out)))
		})
		return b
	})
}

const portsIn = "ports: in "

// WriteIBDMSL2VL writes the SL-to-VL tables of switches as ibdmchk -d reads
// them beside opensm-sl2vl.dump: a line for each way out with a cable and each
// way in, with the switch's GUID, both port numbers, and the VLs of two SLs in
// each of eight hexadecimal numbers. Order, options and errors are those of
// WriteSL2VL.
func WriteIBDMSL2VL(w io.Writer, s *lft.SL2VL, opt WriteOptions) error {
	f := s.Fabric()
	list, err := switchesToWrite(f, opt.Only)
	if err != nil {
		return err
	}
	return writeInOrder(w, len(list), func(_, i int, b []byte) []byte {
		n := list[i]
		var row vlRow
		eachWay(f, n, func(in, out fabric.PortNum) {
			b = f.Node(n).GUID.Append(b)
			b = append(b, ' ')
			b = appendDecimal(b, int(in))
			b = append(b, ' ')
			b = appendDecimal(b, int(out))
			b = row.append(b, s.At(in, f.Port(n, out)), func(b []byte, m *lft.VLMap) []byte {
				for sl := 0; sl < len(m); sl += 2 {
					b = append(b, ' ', '0', 'x', hexLower[m[sl]&15], hexLower[m[sl+1]&15])
				}
				return append(b, '\n')
			})
		})
		return b
	})
}

// vlRow keeps the text of the last map, since mostly the next is the same.
type vlRow struct {
	of   *lft.VLMap
	text []byte
}

func (r *vlRow) append(b []byte, m *lft.VLMap, format func([]byte, *lft.VLMap) []byte) []byte {
	if r.of != m {
		if r.text == nil {
			r.text = make([]byte, 0, 64)
		}
		r.of, r.text = m, format(r.text[:0], m)
	}
	return append(b, r.text...)
}

// eachWay calls visit for every way out of a switch that has a cable, and every
// way in, port 0 first.
func eachWay(f *fabric.Fabric, n fabric.NodeID, visit func(in, out fabric.PortNum)) {
	last := f.Node(n).NumPorts
	for out := fabric.PortNum(1); out <= last; out++ {
		if f.Peer(f.Port(n, out)) == fabric.NoPort {
			continue
		}
		for in := fabric.PortNum(0); in <= last; in++ {
			visit(in, out)
		}
	}
}

// sl2vlPorts lists the ports that have sections: ports 0 of switches, and CA
// and router ports with a cable, in OpenSM's order; with only, those of these
// switches.
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
		return cmp.Or(cmp.Compare(bits.ReverseBytes64(uint64(f.PortGUID(p))), bits.ReverseBytes64(uint64(f.PortGUID(q)))), cmp.Compare(p, q))
	})
	return ports, nil
}

// writePorts writes the sections of ports in order, some at a time.
func writePorts(w io.Writer, ports []fabric.PortID, section func(b []byte, p fabric.PortID) []byte) error {
	const batch = 16
	return writeInOrder(w, (len(ports)+batch-1)/batch, func(_, i int, b []byte) []byte {
		for _, p := range ports[i*batch : min((i+1)*batch, len(ports))] {
			b = section(b, p)
		}
		return b
	})
}

// appendBlanked appends v with blanks behind it to width columns.
func appendBlanked(b []byte, v, width int) []byte {
	end := len(b) + width
	b = appendDecimal(b, v)
	for len(b) < end {
		b = append(b, ' ')
	}
	return b
}

// appendRight appends v with blanks before it to two columns.
func appendRight(b []byte, v int) []byte {
	if v < 10 {
		b = append(b, ' ')
	}
	return appendDecimal(b, v)
}

// sl2vlReader reads SL-to-VL tables of any form.
type sl2vlReader struct {
	src    source
	f      *fabric.Fabric
	opt    Options
	s      *lft.SL2VL
	given  []wayBits // by PortID of the way out: the ways in that have a row
	faults []fault
	more   overflow
	failed bool

	byGUID fabric.GUIDIndex // PortIDs of CA and router ports with a cable
	head   []byte           // the GUID of the row before as it stands there, in the form of ibdmchk
	recent [8]vlText        // VLs of rows before
	turn   int              // of them to be replaced next

	// The section that is being read.
	at     int           // offset of its first line
	of     fabric.PortID // port 0 of its switch, or the CA or router port; NoPort for none that is to be read
	open   bool          // its last line has not come
	rulers int
}

// vlText is the VLs of a row as they stand there, to the end of the line, and what
// they say.
type vlText struct {
	text []byte
	vls  lft.VLMap
}

// wayBits has a bit for each port of a switch.
type wayBits [4]uint64

func (b *wayBits) has(p fabric.PortNum) bool { return b[p/64]>>(p%64)&1 != 0 }
func (b *wayBits) set(p fabric.PortNum)      { b[p/64] |= 1 << (p % 64) }

// ReadSL2VL reads SL-to-VL tables: opensm-sl2vl.dump, what smpquery sl2vl
// prints when it is given LIDs, one output after the other, or the lines of
// ibdmchk -d. The form is recognized by content. name is the file's, for
// messages.
//
// Switches are matched by GUID, CA and router ports by port GUID, and by LID in
// what smpquery prints. Ways that the text does not tell of map all SLs to
// VL 0; where that matters, because way in and way out of a switch have cables
// or a CA or router port has one, there is a Missing Problem for the switch, or
// one MissingEnds for all CAs and routers.
//
// Errors are *fabric.ParseError, and the tables are then nil. With
// Options.Lenient these are Problems instead: unknown switches and ports, VLs
// above 15, a second row with another map (the first counts), lines that are
// nothing of the form, and sections that end too early.
func ReadSL2VL(name string, data []byte, f *fabric.Fabric, opt Options) (*lft.SL2VL, []Problem, error) {
	r := &sl2vlReader{src: source{name, data}, f: f, opt: opt, of: fabric.NoPort}
	var line func(at int, line []byte)
	switch form := Recognize(data); form {
	case SL2VL:
		line = r.dumpLine
	case SMPQuerySL2VL:
		line = r.smpqueryLine
	case IBDMSL2VL:
		line = r.ibdmLine
	default:
		t := tableReader{src: r.src}
		return nil, nil, t.notForm(form, "SL-to-VL tables", "opensm-sl2vl.dump, what smpquery sl2vl prints, or the lines of ibdmchk -d")
	}
	r.s = lft.NewSL2VL(f, lft.ConstantVL(0))
	r.given = make([]wayBits, f.NumPorts())
	r.byGUID.Grow(len(f.CAPorts()))
	for _, p := range f.CAPorts() {
		if r.byGUID.Find(f.PortGUID(p)) < 0 {
			r.byGUID.Add(f.PortGUID(p), int32(p))
		}
	}
	for at := 0; at < len(data) && !r.failed; {
		if next := r.again(at); next > 0 {
			at = next
			continue
		}
		text, next := cutLine(data, at)
		if text = bytes.TrimSpace(text); len(text) > 0 {
			line(at, text)
		}
		if next == len(data) && data[next-1] != '\n' && !r.failed && len(text) > 0 {
			r.fault(at, Truncated, fmt.Errorf("the last line has no end: %w", ErrTruncated))
		}
		at = next
	}
	r.close(len(data))
	if err := r.src.firstFault(r.faults); err != nil && !opt.Lenient {
		return nil, nil, err
	}
	r.missing()
	return r.s, r.src.problems(r.faults, r.more), nil
}

func (r *sl2vlReader) fault(at int, kind ProblemKind, err error) {
	if !r.opt.Lenient && kind.fatal() {
		r.failed = true
	}
	if len(r.faults) == maxFaults {
		r.more.add(kind)
		return
	}
	r.faults = append(r.faults, fault{at: at, kind: kind, err: err})
}

func (r *sl2vlReader) drop(at int, format string, args ...any) {
	r.fault(at, Dropped, fmt.Errorf(format, args...))
}

// keepVLs notes the VLs m of the row at offset at, which are its text from the first
// byte begin on, for rows that have the same. That includes blanks at the end, which
// OpenSM prints.
func (r *sl2vlReader) keepVLs(at int, begin byte, m *lft.VLMap) {
	line, _ := cutLine(r.src.data, at)
	r.keepText(line[bytes.IndexByte(line, begin):], m)
}

func (r *sl2vlReader) keepText(text []byte, m *lft.VLMap) {
	r.recent[r.turn] = vlText{text, *m}
	r.turn = (r.turn + 1) % len(r.recent)
}

// ibdmVLs are VLs as ibdmchk prints them.
const ibdmVLs = " 0x01 0x23 0x45 0x67 0x89 0xab 0xcd 0xef"

// keepIBDMVLs is keepVLs for a line of ibdmchk -d, which has the GUID of r.of. Those
// with other blanks or fewer digits than ibdmchk prints are not kept.
func (r *sl2vlReader) keepIBDMVLs(line []byte, m *lft.VLMap) {
	const guid = len("0x0123456789abcdef")
	r.head = nil
	at := len(line) - len(ibdmVLs)
	if at < guid {
		return
	}
	if _, ok := fabric.ReadDigits(line[len("0x"):]); !ok {
		return
	}
	for i := at; i < len(line); i += len(" 0x01") {
		if line[i] != ' ' || line[i+1] != '0' || line[i+2] != 'x' {
			return
		}
	}
	r.head = line[:guid]
	r.keepText(line[at:], m)
}

// again reads a row at offset at whose ports are as the tools print them and whose
// VLs are those of a row not long before, as mostly they are, and gives the start of the
// next line; 0 for any other line.
func (r *sl2vlReader) again(at int) int {
	d := r.src.data[at:]
	if len(r.recent[0].text) == 0 || len(d) < len("0   1   :") {
		return 0
	}
	var in, out uint64
	var i, n int
	switch r.recent[0].text[0] {
	case ':':
		if !r.open {
			return 0
		}
		if in, n = decPrefix(d, 3); n == 0 {
			return 0
		}
		i = skipBlanks(d, n)
		if out, n = decPrefix(d[i:], 3); n == 0 {
			return 0
		}
		i = skipBlanks(d, i+n)
	case '|':
		if r.of == fabric.NoPort || !beginsWith(d, portsIn) {
			return 0
		}
		i = skipBlanks(d, len(portsIn))
		if in, n = decPrefix(d[i:], 3); n == 0 || !beginsWith(d[i+n:], ", out ") {
			return 0
		}
		i = skipBlanks(d, i+n+len(", out "))
		if out, n = decPrefix(d[i:], 3); n == 0 || !beginsWith(d[i+n:], ": |") {
			return 0
		}
		i += n + len(": ")
	case ' ':
		if i = len(r.head); i == 0 || len(d) <= i || string(d[:i]) != string(r.head) || d[i] != ' ' {
			return 0
		}
		if in, n = decPrefix(d[i+1:], 3); n == 0 || !beginsWith(d[i+1+n:], " ") {
			return 0
		}
		i += n + 2
		if out, n = decPrefix(d[i:], 3); n == 0 {
			return 0
		}
		i += n
	default:
		return 0
	}
	for k := range r.recent {
		c := &r.recent[k]
		end := i + len(c.text)
		if len(c.text) > 0 && end < len(d) && d[end] == '\n' && string(d[i:end]) == string(c.text) {
			r.put(at, int(in), int(out), c.vls)
			return at + end + 1
		}
	}
	return 0
}

// dumpLine reads a line of opensm-sl2vl.dump.
func (r *sl2vlReader) dumpLine(at int, line []byte) {
	switch c := line[0]; {
	case c == '#':
		if bytes.HasPrefix(line, []byte("#--")) && r.open {
			if r.rulers++; r.rulers == 2 {
				r.open = false
			}
		}
	case c >= '0' && c <= '9':
		if !r.open {
			r.drop(at, "a row outside of a section; want a line such as Switch 0x0123456789abcdef, base LID 1, \"..\" before it")
			return
		}
		in, out, m, err := dumpRow(line)
		if err != nil {
			r.fault(at, Dropped, err)
			return
		}
		r.keepVLs(at, ':', &m)
		r.put(at, in, out, m)
	default:
		r.dumpHead(at, line)
	}
}

// dumpHead reads the first line of a section of opensm-sl2vl.dump.
func (r *sl2vlReader) dumpHead(at int, line []byte) {
	r.close(at)
	if r.failed {
		return
	}
	r.at, r.of, r.open, r.rulers = at, fabric.NoPort, true, 0
	i := bytes.Index(line, []byte(" 0x"))
	var kind fabric.NodeType
	for _, t := range []fabric.NodeType{fabric.Switch, fabric.CA, fabric.Router} {
		if i > 0 && string(line[:i]) == t.String() {
			kind = t
		}
	}
	if kind == 0 {
		r.drop(at, "want a section's first line such as Switch 0x0123456789abcdef, base LID 1, \"..\", or a row such as 0   1   : 0  1  2 ..")
		return
	}
	v, n := hex0x(line[i+1:], 16)
	rest := line[min(len(line), i+1+n):]
	if n == 0 || !bytes.HasPrefix(rest, []byte(baseLID)) {
		r.drop(at, "bad GUID; want %s 0x0123456789abcdef%s1, \"..\"", kind, baseLID)
		return
	}
	lid, m := decPrefix(rest[len(baseLID):], 5)
	if m == 0 || lid > uint64(fabric.MaxUnicastLID) {
		r.drop(at, "bad base LID; want 0 to %d", fabric.MaxUnicastLID)
		return
	}
	guid := fabric.GUID(v)
	if kind == fabric.Switch {
		s, ok := r.f.SwitchByGUID(guid)
		if !ok {
			r.drop(at, "the fabric has no switch %s", guid)
			return
		}
		r.of = r.f.PortBase(s)
	} else {
		p := r.byGUID.Find(guid)
		if p < 0 {
			r.drop(at, "the fabric has no CA or router port %s with a cable", guid)
			return
		}
		r.of = fabric.PortID(p)
	}
	if own := r.f.LID(r.of); uint64(own) != lid {
		r.fault(at, Contradiction, fmt.Errorf("%s %s has LID %d in the fabric, here %d", kind, guid, own, lid))
	}
}

// close ends the section that is being read; at is the offset behind it.
func (r *sl2vlReader) close(at int) {
	if r.open && !r.failed {
		text := bytes.TrimRight(r.src.data[:at], " \t\r\n")
		r.fault(bytes.LastIndexByte(text, '\n')+1, Truncated,
			fmt.Errorf("the section that begins in line %d does not end with a line %s..: %w", r.src.number(r.at), slRuler[:8], ErrTruncated))
	}
	r.open = false
}

// put enters the map of a row of the current section.
func (r *sl2vlReader) put(at, in, out int, m lft.VLMap) {
	if r.of == fabric.NoPort {
		return
	}
	n := r.f.Owner(r.of)
	p := r.of
	if !r.f.IsSwitch(n) {
		if in != 0 || out != 0 {
			r.drop(at, "way in %d and way out %d of %s, which is no switch; want 0 for both", in, out, r.f.PortName(p))
			return
		}
	} else {
		ports := int(r.f.Node(n).NumPorts)
		for _, v := range []int{in, out} {
			if v > ports {
				r.drop(at, "port %d of switch %s, which has ports 0 to %d", v, r.f.Node(n).GUID, ports)
				return
			}
		}
		p += fabric.PortID(out)
	}
	way := fabric.PortNum(in)
	if r.given[p].has(way) {
		if *r.s.At(way, p) != m {
			r.drop(at, "a second row for way in %d and way out %d of %s %s, with other VLs", in, out, r.f.Node(n).Type, r.f.Node(n).GUID)
		}
		return
	}
	r.given[p].set(way)
	r.s.Set(way, p, m)
}

var (
	errVL          = errors.New("want VLs of 0 to 15")
	errDumpRow     = errors.New("want a row such as 0   1   : 0  1  2 .., with the ports of the ways in and out and 16 VLs")
	errSMPQueryRow = errors.New("want a row such as ports: in  0, out  1: | 0| 1| 2|.., with 16 VLs")
)

// dumpRow reads a row of opensm-sl2vl.dump.
func dumpRow(line []byte) (in, out int, m lft.VLMap, err error) {
	v, n := decPrefix(line, 3)
	at := skipBlanks(line, n)
	w, k := decPrefix(line[at:], 3)
	colon := skipBlanks(line, at+k)
	if n == 0 || k == 0 || colon == len(line) || line[colon] != ':' {
		return 0, 0, m, errDumpRow
	}
	rest := line[colon+1:]
	for sl := range m {
		i := skipBlanks(rest, 0)
		vl, d := decPrefix(rest[i:], 3)
		if d == 0 || i == 0 {
			return 0, 0, m, errDumpRow
		}
		if vl > uint64(lft.DropVL) {
			return 0, 0, m, fmt.Errorf("VL %d for SL %d: %w", vl, sl, errVL)
		}
		m[sl] = fabric.VL(vl)
		rest = rest[i+d:]
	}
	if skipBlanks(rest, 0) != len(rest) {
		return 0, 0, m, errDumpRow
	}
	return int(v), int(w), m, nil
}

var smpqueryHead = []byte("# SL2VL table: ")

// smpqueryLine reads a line of what smpquery sl2vl prints. The warnings of
// libibmad, which a shell may have put among them, say nothing.
func (r *sl2vlReader) smpqueryLine(at int, line []byte) {
	switch {
	case bytes.HasPrefix(line, smpqueryHead):
		r.of = fabric.NoPort
		rest, ok := bytes.CutPrefix(line[len(smpqueryHead):], []byte("Lid "))
		lid, n := decPrefix(rest, 5)
		if !ok || n == 0 || n != len(rest) || lid > uint64(fabric.MaxUnicastLID) {
			r.drop(at, "no LID; want # SL2VL table: Lid 1, as smpquery sl2vl prints it when it is given a LID")
			return
		}
		if r.of = r.f.LIDPort(fabric.LID(lid)); r.of == fabric.NoPort {
			r.drop(at, "no port of the fabric has LID %d", lid)
		}
	case line[0] == '#', bytes.HasPrefix(line, []byte("ibwarn: ")):
	default:
		in, out, m, err := smpqueryRow(line)
		if err != nil {
			r.fault(at, Dropped, err)
			return
		}
		r.keepVLs(at, '|', &m)
		r.put(at, in, out, m)
	}
}

// smpqueryRow reads a row of what smpquery sl2vl prints.
func smpqueryRow(line []byte) (in, out int, m lft.VLMap, err error) {
	rest, ok := bytes.CutPrefix(line, []byte(portsIn))
	number := func(end string) (v uint64) {
		i := skipBlanks(rest, 0)
		v, n := decPrefix(rest[i:], 3)
		ok = ok && n > 0 && bytes.HasPrefix(rest[i+n:], []byte(end))
		if ok {
			rest = rest[i+n+len(end):]
		}
		return v
	}
	in = int(number(", out "))
	out = int(number(": |"))
	for sl := range m {
		vl := number("|")
		if ok && vl > uint64(lft.DropVL) {
			return 0, 0, m, fmt.Errorf("VL %d for SL %d: %w", vl, sl, errVL)
		}
		m[sl] = fabric.VL(vl)
	}
	if !ok || len(rest) > 0 {
		return 0, 0, m, errSMPQueryRow
	}
	return in, out, m, nil
}

// ibdmLine reads a line of ibdmchk -d.
func (r *sl2vlReader) ibdmLine(at int, line []byte) {
	if line[0] == '#' {
		return
	}
	guid, in, out, m, ok := ibdmRow(line)
	if !ok {
		r.drop(at, "want a switch's GUID, way in, way out and 16 VLs: 0x0123456789abcdef 1 2 0x01 0x23 0x45 0x67 0x89 0xab 0xcd 0xef")
		return
	}
	s, ok := r.f.SwitchByGUID(guid)
	if !ok {
		r.drop(at, "the fabric has no switch %s", guid)
		return
	}
	r.of = r.f.PortBase(s)
	r.keepIBDMVLs(line, &m)
	r.put(at, in, out, m)
}

// ibdmRow reads a line of ibdmchk -d, which wants single blanks and small
// letters.
func ibdmRow(line []byte) (guid fabric.GUID, in, out int, m lft.VLMap, ok bool) {
	v, n := hex0x(line, 16)
	if n == 0 {
		return 0, 0, 0, m, false
	}
	rest := line[n:]
	var ports [2]uint64
	for i := range ports {
		at := skipBlanks(rest, 0)
		v, n := decPrefix(rest[at:], 3)
		if at == 0 || n == 0 {
			return 0, 0, 0, m, false
		}
		ports[i] = v
		rest = rest[at+n:]
	}
	for sl := 0; sl < len(m); sl += 2 {
		at := skipBlanks(rest, 0)
		v, n := hex0x(rest[at:], 2)
		if at == 0 || n != len("0x00") {
			return 0, 0, 0, m, false
		}
		m[sl], m[sl+1] = fabric.VL(v>>4), fabric.VL(v&15)
		rest = rest[at+n:]
	}
	return fabric.GUID(v), int(ports[0]), int(ports[1]), m, len(rest) == 0
}

// missing notes the ways of packets that had no row.
func (r *sl2vlReader) missing() {
	say := func(kind ProblemKind, count int, one, many, first string) {
		err := fmt.Errorf("no row for 1 %s, %s: its SLs are taken to be on VL 0", one, first)
		if count > 1 {
			err = fmt.Errorf("no row for %d %s, the first %s: their SLs are taken to be on VL 0", count, many, first)
		}
		r.fault(-1, kind, err)
	}
	for s := range fabric.NodeID(r.f.NumSwitches()) {
		count, in0, out0 := 0, fabric.PortNum(0), fabric.PortNum(0)
		eachWay(r.f, s, func(in, out fabric.PortNum) {
			if r.given[r.f.Port(s, out)].has(in) || in != 0 && r.f.Peer(r.f.Port(s, in)) == fabric.NoPort {
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
			say(Missing, count, "way"+through, "ways"+through, fmt.Sprintf("from port %d to port %d", in0, out0))
		}
	}
	count, first := 0, fabric.NoPort
	for _, p := range r.f.CAPorts() {
		if !r.given[p].has(0) {
			if count == 0 {
				first = p
			}
			count++
		}
	}
	if count > 0 {
		say(MissingEnds, count, "CA or router port", "CA and router ports", r.f.PortName(first))
	}
}
