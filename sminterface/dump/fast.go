package dump

import (
	"bytes"
	"fmt"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
)

// This file has the loops for the rows of forwarding tables, the only ones of
// this package that are tuned: the tables of a fabric of 10,000 hosts have 2
// GB of text, more than everything else together. A loop reads rows as OpenSM
// and this package print them, and leaves all other lines to the reader of
// the form. Both have the same effect on a line that both can read; tests
// compare them on texts with other line ends, which the loops do not read.
//
// The comment of a row of opensm-lfts.dump is the same in the sections of all
// switches. So the text for each LID is made once: a row is written by
// copying it, and mostly read by comparing it.

// rowTexts holds each LID's row of opensm-lfts.dump, with 000
// for the port. The row of LID l is text[end[l]:end[l+1]].
type rowTexts struct {
	text []byte
	end  []int
}

// row returns the row of LID l, which must not exceed the highest.
func (r *rowTexts) row(l int) []byte { return r.text[r.end[l]:r.end[l+1]] }

// The offsets in a row, such as 0x0001 000, of the port's
// three digits, and of the comment behind them.
const (
	portAt    = len("0x0001 ")
	commentAt = len("0x0001 000")
)

// newRowTexts prepares the rows for the LIDs 0 to maxLID.
func newRowTexts(f *fabric.Fabric, maxLID fabric.LID, lean bool) *rowTexts {
	n := int(maxLID) + 1
	r := &rowTexts{end: make([]int, 1, n+1), text: make([]byte, 0, n*80)}
	b := r.text
	for l := range n {
		b = fmt.Appendf(b, "0x%04x 000", l)
		p := f.LIDPort(fabric.LID(l))
		switch {
		case lean:
		case p == fabric.NoPort:
			b = append(b, " # unknown node and type"...)
		case f.IsVirtual(fabric.LID(l)): // with a GUID OpenSM would move the row to the port's own LID
			b = append(b, " # virtual port of '"...)
			b = appendDescription(b, f.Node(f.Owner(p)).Description)
			b = append(b, '\'')
		default:
			node := f.Node(f.Owner(p))
			b = fmt.Appendf(b, " # %s portguid %s: '", node.Type, f.PortGUID(p))
			b = appendDescription(b, node.Description)
			b = append(b, '\'')
		}
		b = append(b, '\n')
		r.end = append(r.end, len(b))
	}
	r.text = b
	return r
}

// digits3 holds the three digits of every port number.
var digits3 = func() (t [256][3]byte) {
	for i := range t {
		t[i] = [3]byte([]byte(fmt.Sprintf("%03d", i)))
	}
	return t
}()

// appendRows appends the rows of a table, without entries
// that exceed ports, the highest port of the switch.
func (r *rowTexts) appendRows(b []byte, table []fabric.PortNum, ports fabric.PortNum) []byte {
	for l, p := range table {
		if p <= ports {
			at := len(b) + portAt
			b = append(b, r.row(l)...)
			copy(b[at:at+3], digits3[p][:])
		}
	}
	return b
}

// readUnicastSection reads the rows of a section of opensm-lfts.dump or of
// ibroute.
func (r *lftReader) readUnicastSection(sec *section) {
	r.checkLID(sec)
	d := r.data[:sec.end]
	table := r.tables.Row(sec.sw)
	ports := r.f.Node(sec.sw).NumPorts
	known := min(len(table), len(r.texts.end)-1)
	for i := sec.body; i < len(d) && !sec.failed; {
		lid := sec.last + 1 // most tables have a row for every LID
		if sec.ended || lid >= known || len(d)-i <= commentAt {
			i = r.readUnicastLine(sec, i)
			continue
		}
		text := r.texts.row(lid)
		p2, p1, p0 := d[i+portAt]-'0', d[i+portAt+1]-'0', d[i+portAt+2]-'0'
		port := int(p2)*100 + int(p1)*10 + int(p0)
		if string(d[i:i+portAt]) != string(text[:portAt]) || p2 > 9 || p1 > 9 || p0 > 9 || port > int(ports) {
			i = r.readUnicastLine(sec, i)
			continue
		}
		comment, rest := text[commentAt:], d[i+commentAt:]
		switch {
		case rest[0] == '\n':
			i += commentAt + 1
		case len(rest) >= len(comment) && string(rest[:len(comment)]) == string(comment):
			i += len(text)
		default: // the comment names another port or description
			end := bytes.IndexByte(rest, '\n')
			if rest[0] != ' ' && rest[0] != '\r' || end < 0 {
				i = r.readUnicastLine(sec, i)
				continue
			}
			r.checkOwner(lid, rest[:end], i)
			i += commentAt + end + 1
		}
		table[lid] = fabric.PortNum(port)
		sec.last = lid
		sec.rows++
	}
	r.checkEnded(sec, "N lids dumped")
}

// readFDBsSection reads the rows of a section of an fdbs file. The hop counts are
// not kept.
func (r *lftReader) readFDBsSection(sec *section) {
	const row = "0x0001 : 005  : 01   : yes\n"
	d := r.data[:sec.end]
	table := r.tables.Row(sec.sw)
	ports := r.f.Node(sec.sw).NumPorts
	for i := sec.body; i < len(d) && !sec.failed; {
		if len(d)-i < len(row) || d[i] != '0' || d[i+1] != 'x' || string(d[i+6:i+9]) != " : " ||
			string(d[i+12:i+16]) != "  : " || d[i+16]-'0' > 9 || d[i+17]-'0' > 9 || string(d[i+18:i+len(row)]) != "   : yes\n" || sec.private {
			i = r.readFDBsLine(sec, i)
			continue
		}
		h3, h2, h1, h0 := topology.HexDigit[d[i+2]], topology.HexDigit[d[i+3]], topology.HexDigit[d[i+4]], topology.HexDigit[d[i+5]]
		p2, p1, p0 := d[i+9]-'0', d[i+10]-'0', d[i+11]-'0'
		lid := int(h3)<<12 | int(h2)<<8 | int(h1)<<4 | int(h0)
		port := int(p2)*100 + int(p1)*10 + int(p0)
		if h3|h2|h1|h0 > 15 || p2 > 9 || p1 > 9 || p0 > 9 || lid <= sec.last || lid >= len(table) || port > int(ports) {
			i = r.readFDBsLine(sec, i)
			continue
		}
		table[lid] = fabric.PortNum(port)
		sec.last = lid
		sec.rows++
		i += len(row)
	}
}
