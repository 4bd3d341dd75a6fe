package dump

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/lft"
)

// rowTexts holds the row that a dump has for each LID, with 000 for the port:
// LID l's is text[end[l]:end[l+1]].
type rowTexts struct {
	text []byte
	end  []int
}

// row is the row of LID l, which must not exceed the highest.
func (r *rowTexts) row(l int) []byte { return r.text[r.end[l]:r.end[l+1]] }

// portAt is where the three digits of the port are in a row of either form,
// as in 0x0001 000.
const portAt = len("0x0001 ")

// newRowTexts prepares the rows of opensm-lfts.dump, or of ibroute, for the
// LIDs 0 to maxLID.
func newRowTexts(f *fabric.Fabric, maxLID fabric.LID, form Form, lean bool) *rowTexts {
	n := int(maxLID) + 1
	r := &rowTexts{end: make([]int, 1, n+1)}
	b := make([]byte, 0, n*80)
	for l := range n {
		b = append(b, "0x"...)
		b = appendHex4(b, fabric.LID(l))
		b = append(b, " 000"...)
		p := f.LIDPort(fabric.LID(l))
		switch {
		case form == IBRoute && lean:
			b = append(b, ' ')
		case lean:
		case form == IBRoute && p == fabric.NoPort:
			b = append(b, " : (unknown node and type)"...)
		case form == IBRoute:
			b = append(b, " : ("...)
			b = appendOwner(b, f, p)
			b = append(b, ')')
		case p == fabric.NoPort:
			b = append(b, " # unknown node and type"...)
		default:
			b = append(b, " # "...)
			b = appendOwner(b, f, p)
		}
		b = append(b, '\n')
		r.end = append(r.end, len(b))
	}
	r.text = b
	return r
}

// appendOwner appends what a comment says of a LID's owner.
func appendOwner(b []byte, f *fabric.Fabric, p fabric.PortID) []byte {
	n := f.Node(f.Owner(p))
	b = append(b, n.Type.String()...)
	b = append(b, " portguid "...)
	b = f.PortGUID(p).Append(b)
	b = append(b, ": '"...)
	b = appendDescription(b, n.Description)
	return append(b, '\'')
}

// digits3 holds the three digits of every port number.
var digits3 = func() (t [256][3]byte) {
	for i := range t {
		t[i] = [3]byte{'0' + byte(i/100), '0' + byte(i/10%10), '0' + byte(i%10)}
	}
	return t
}()

// checkTables says whether tables can be those of a fabric.
func checkTables(f *fabric.Fabric, t *lft.Tables) error {
	if t.Switches() != f.NumSwitches() {
		return fmt.Errorf("tables of %d switches, the fabric has %d", t.Switches(), f.NumSwitches())
	}
	return nil
}

// WriteLFTs writes opensm-lfts.dump, as osm_dump.c does and as opensm -R file
// -U reads it. Entries that name no port of the switch have no row. Errors
// are those of w, and tables or options that do not belong to the fabric.
func WriteLFTs(w io.Writer, f *fabric.Fabric, t *lft.Tables, opt WriteOptions) error {
	if err := checkTables(f, t); err != nil {
		return err
	}
	list, err := switchesToWrite(f, opt.Only)
	if err != nil {
		return err
	}
	rows := newRowTexts(f, t.MaxLID(), LFTs, opt.Lean)
	return writeInOrder(w, len(list), func(_, i int, b []byte) []byte {
		s := list[i]
		node := f.Node(s)
		b = append(b, "Unicast lids [0-"...)
		b = appendDecimal(b, int(t.MaxLID()))
		b = append(b, "] of switch Lid "...)
		b = appendDecimal(b, int(f.LID(f.PortBase(s))))
		b = append(b, " guid "...)
		b = node.GUID.Append(b)
		b = append(b, " ('"...)
		b = appendDescription(b, node.Description)
		b = append(b, "'):\n"...)
		for l, p := range t.Row(s) {
			if p > node.NumPorts {
				continue
			}
			at := len(b) + portAt
			b = append(b, rows.row(l)...)
			copy(b[at:at+3], digits3[p][:])
		}
		b = appendDecimal(b, int(t.MaxLID()))
		return append(b, " lids dumped\n"...)
	})
}

// WriteIBRoute writes what ibroute prints, one switch after the other and
// each addressed by its LID; Lean is its option -n. Unlike ibroute it does not
// lose the last row when the highest LID is a multiple of 64. Errors are as
// for WriteLFTs.
func WriteIBRoute(w io.Writer, f *fabric.Fabric, t *lft.Tables, opt WriteOptions) error {
	if err := checkTables(f, t); err != nil {
		return err
	}
	list, err := switchesToWrite(f, opt.Only)
	if err != nil {
		return err
	}
	rows := newRowTexts(f, t.MaxLID(), IBRoute, opt.Lean)
	return writeInOrder(w, len(list), func(_, i int, b []byte) []byte {
		s := list[i]
		node := f.Node(s)
		b = append(b, "Unicast lids [0x0-0x"...)
		b = fmt.Appendf(b, "%x", t.MaxLID())
		b = append(b, "] of switch Lid "...)
		b = appendDecimal(b, int(f.LID(f.PortBase(s))))
		b = append(b, " guid "...)
		b = node.GUID.Append(b)
		b = append(b, " ("...)
		b = appendDescription(b, node.Description)
		b = append(b, "):\n  Lid  Out   Destination\n       Port     Info \n"...)
		count := 0
		told := fabric.NoPort // the port whose owner the rows have told
		for l, p := range t.Row(s) {
			if p > node.NumPorts {
				continue
			}
			count++
			at := len(b) + portAt
			owner := f.LIDPort(fabric.LID(l))
			if owner == fabric.NoPort || owner != told || opt.Lean {
				b = append(b, rows.row(l)...)
			} else {
				// ibroute asks only for the first LID of a port.
				b = append(b, rows.row(l)[:portAt+3]...)
				b = append(b, " : (path #"...)
				b = appendDecimal(b, l-int(f.LID(owner))+1)
				b = append(b, " out of "...)
				b = appendDecimal(b, 1<<f.LMC(owner))
				b = append(b, ": portguid "...)
				b = f.PortGUID(owner).Append(b)
				b = append(b, ")\n"...)
			}
			told = owner
			copy(b[at:at+3], digits3[p][:])
		}
		b = appendDecimal(b, count)
		return append(b, " valid lids dumped \n"...)
	})
}

var (
	unicastLIDs = []byte("Unicast lids ")
	guidField   = []byte(" guid 0x")
	portGUID    = []byte("portguid 0x")
	switchLID   = []byte(" of switch Lid ")
	lidsDumped  = []byte("lids dumped")
	validLIDs   = []byte("valid ")
)

// unicastHeader reads the first line of a section of opensm-lfts.dump or of
// ibroute.
func (r *tableReader) unicastHeader(sec *section, line []byte) (fabric.GUID, error) {
	bad := func(what string) error {
		return fmt.Errorf("%s; want Unicast lids [0-N] of switch Lid L guid 0x0123456789abcdef", what)
	}
	rest := line[len(unicastLIDs):]
	number := func(begin, end byte) (int, bool) {
		if len(rest) == 0 || rest[0] != begin {
			return 0, false
		}
		rest = rest[1:]
		v, n := hex0x(rest, 8)
		if n > 0 {
			sec.hex = true
		} else {
			v, n = decPrefix(rest, 9)
		}
		if n == 0 || n == len(rest) || rest[n] != end {
			return 0, false
		}
		rest = rest[n:]
		return int(v), true
	}
	if _, ok := number('[', '-'); !ok {
		return 0, bad("no range of LIDs")
	}
	high, ok := number('-', ']')
	if !ok {
		return 0, bad("no range of LIDs")
	}
	if high > int(fabric.MaxUnicastLID) {
		return 0, bad(fmt.Sprintf("highest LID %d, above %d", high, fabric.MaxUnicastLID))
	}
	i := bytes.Index(rest, guidField)
	if i < 0 {
		return 0, bad("no GUID")
	}
	v, n := hexPrefix(rest[i+len(guidField):], 16)
	if end := i + len(guidField) + n; n == 0 || end < len(rest) && rest[end] != ' ' {
		return 0, bad("bad GUID")
	}
	sec.high = high
	if j := bytes.Index(rest[:i], switchLID); j >= 0 {
		if lid, n := decPrefix(rest[j+len(switchLID):i], 5); n > 0 {
			sec.lid = int(lid)
		}
	}
	return fabric.GUID(v), nil
}

// unicastSection reads the rows of a section of opensm-lfts.dump or of
// ibroute. Its loop handles the rows that OpenSM writes; oddLine the rest.
func (r *tableReader) unicastSection(st *rowState, sec *section) {
	d := r.src.data[:sec.end]
	row := r.tables.Row(sec.sw)
	ports := r.f.Node(sec.sw).NumPorts
	if own := r.f.LID(r.f.PortBase(sec.sw)); sec.lid > 0 && int(own) != sec.lid {
		r.fault(sec, fault{at: sec.at, kind: Contradiction,
			err: fmt.Errorf("switch %s has LID %d in the fabric, here %d", r.f.Node(sec.sw).GUID, own, sec.lid)})
	}
	known := min(len(row), len(r.texts.end)-1)
	i := sec.body
	last, rows := st.last, st.rows
	odd := func(at int) {
		st.last, st.rows = last, rows
		i = r.oddUnicastLine(st, sec, row, at)
		last, rows = st.last, st.rows
	}
	for i < len(d) && !sec.failed {
		if len(d)-i <= portAt+3 || sec.ended {
			odd(i)
			continue
		}
		// Mostly a row is for the LID after the one before.
		lid := last + 1
		if binary.LittleEndian.Uint64(d[i:])&sevenBytes != rowKey(lid) {
			h3, h2, h1, h0 := hexDigit[d[i+2]], hexDigit[d[i+3]], hexDigit[d[i+4]], hexDigit[d[i+5]]
			lid = int(h3)<<12 | int(h2)<<8 | int(h1)<<4 | int(h0)
			if d[i] != '0' || d[i+1] != 'x' || d[i+6] != ' ' || h3|h2|h1|h0 > 15 || lid <= last {
				odd(i)
				continue
			}
		}
		p2, p1, p0 := d[i+7]-'0', d[i+8]-'0', d[i+9]-'0'
		port := int(p2)*100 + int(p1)*10 + int(p0)
		if p2 > 9 || p1 > 9 || p0 > 9 || lid >= known || port > int(ports) {
			odd(i)
			continue
		}
		i += portAt + 3
		if d[i] == '\n' {
			i++
		} else if comment := r.texts.row(lid)[portAt+3:]; len(d)-i >= len(comment) && string(d[i:i+len(comment)]) == string(comment) {
			// Mostly the rest of the line is what we would have written.
			i += len(comment)
		} else {
			j := bytes.IndexByte(d[i:], '\n')
			if d[i] != ' ' && d[i] != '\r' || j < 0 {
				odd(i - portAt - 3)
				continue
			}
			r.checkOwner(st, lid, d[i:i+j], i)
			i += j + 1
		}
		row[lid] = fabric.PortNum(port)
		last = lid
		rows++
	}
	st.last, st.rows = last, rows
	if !sec.ended {
		r.fault(sec, fault{at: r.lastLine(sec), kind: Truncated,
			err: fmt.Errorf("the section of switch %s does not end with a line N lids dumped: %w", r.f.Node(sec.sw).GUID, ErrTruncated)})
	}
}

// oddUnicastLine reads the line at i, whatever it is, and returns where the
// next one starts.
func (r *tableReader) oddUnicastLine(st *rowState, sec *section, row []fabric.PortNum, i int) int {
	line, next := cutLine(r.src.data[:sec.end], i)
	trimmed := bytes.TrimSpace(line)
	switch {
	case len(trimmed) == 0, trimmed[0] == '#', bytes.HasPrefix(trimmed, warningLine):
		return next
	case bytes.HasPrefix(trimmed, []byte("Lid ")) && bytes.Contains(trimmed, []byte("Destination")),
		bytes.HasPrefix(trimmed, []byte("Port ")) && bytes.HasSuffix(trimmed, []byte("Info")):
		return next
	}
	if v, n := decPrefix(trimmed, 9); n > 0 && !sec.ended {
		rest := bytes.TrimPrefix(trimmed[n:], []byte(" "))
		if bytes.Equal(bytes.TrimPrefix(rest, validLIDs), lidsDumped) {
			sec.ended = true
			want := sec.high // OpenSM prints the highest LID, not a count
			if sec.hex {
				want = st.rows
			}
			if int(v) != want {
				what := "rows"
				if !sec.hex {
					what = "as the highest LID"
				}
				r.fault(sec, fault{at: i, kind: Truncated,
					err: fmt.Errorf("%d lids dumped, but the section has %d %s: %w", v, want, what, ErrTruncated)})
			}
			return next
		}
	}
	if sec.ended {
		r.drop(sec, i, "text between the end of a section and the next one; want Unicast lids ..")
		return next
	}
	lid, n := hex0x(trimmed, 8)
	if n == 0 || n == len(trimmed) || !isBlank(trimmed[n]) {
		r.drop(sec, i, "want a row such as 0x0001 002 # .., or N lids dumped")
		return next
	}
	at := skipBlanks(trimmed, n)
	port, m := decPrefix(trimmed[at:], 9)
	comment := trimmed[at+m:]
	if m == 0 || len(comment) > 0 && !isBlank(comment[0]) {
		r.drop(sec, i, "want a row such as 0x0001 002 # .., or N lids dumped")
		return next
	}
	st.rows++
	if r.put(st, sec, row, int(lid), int(port), i) && int(lid) < len(row) {
		r.checkOwner(st, int(lid), comment, i)
	}
	return next
}

// warningLine is what Debian's dump_lfts prints at its end.
var warningLine = []byte("*** WARNING ***")

// checkOwner compares the port GUID in a comment with the fabric's owner of
// the LID; OpenSM would move the row to that port's LID
// (osm_ucast_file.c, remap_lid).
func (r *tableReader) checkOwner(st *rowState, lid int, comment []byte, at int) {
	guid, ok := commentGUID(comment)
	if !ok {
		return
	}
	owner := r.f.LIDPort(fabric.LID(lid))
	if owner != fabric.NoPort && r.f.PortGUID(owner) == guid {
		return
	}
	if st.odd == nil {
		st.odd = make([]int, int(r.maxLID)+1)
	}
	if st.odd[lid] == 0 { // a worker's sections come in the order of the file
		st.odd[lid] = at + 1
	}
}

func commentGUID(comment []byte) (fabric.GUID, bool) {
	i := bytes.Index(comment, portGUID)
	if i < 0 {
		return 0, false
	}
	v, n := hexPrefix(comment[i+len(portGUID):], 16)
	return fabric.GUID(v), n > 0
}

// ownerFaults lists the LIDs whose rows name another port than the fabric,
// each once, at its first row.
func (r *tableReader) ownerFaults() []fault {
	var list []fault
	for l := 0; l <= int(r.maxLID); l++ {
		at := 0
		for i := range r.states {
			if odd := r.states[i].odd; odd != nil && odd[l] > 0 && (at == 0 || odd[l] < at) {
				at = odd[l]
			}
		}
		if at == 0 {
			continue
		}
		line, start := r.src.lineAt(at - 1)
		guid, _ := commentGUID(line)
		err := fmt.Errorf("LID %d belongs to no port of the fabric, here to %s", l, guid)
		if p := r.f.LIDPort(fabric.LID(l)); p != fabric.NoPort {
			err = fmt.Errorf("LID %d belongs to %s, %s, in the fabric, here to %s", l, r.f.PortGUID(p), r.f.PortName(p), guid)
		}
		list = append(list, fault{at: start, kind: Contradiction, err: err})
	}
	return list
}
