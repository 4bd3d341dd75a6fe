package dump

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/fabric/topology"
)

// The texts of P_Key tables.
var (
	pkeyRecord   = []byte("PKeyTableRecord dump:") // saquery PKTR (infiniband-diags, saquery.c)
	pkeyTable    = []byte("PKey Table:")
	pkeyCapacity = []byte("pkeys capacity for this port") // smpquery pkeys
)

// pkeyBlock is how many entries one P_KeyTable attribute has (IBA 14.2.5.7).
const pkeyBlock = 32

// pkeyHead reads a line that names the port of the smpquery pkeys text after it: "Lid 5", "Lid 5
// Port 2" (else port is -1), or the GUID of a port. smpquery itself does not print such a line.
func pkeyHead(line []byte) (lid fabric.LID, port int, guid fabric.GUID, ok bool) {
	s := topology.Line{Text: bytes.TrimSpace(bytes.ToLower(line))}
	port = -1
	if beginsWith(s.Rest(), "0x") {
		guid = s.GUID()
		return 0, port, guid, s.AtEnd()
	}
	s.Want("lid")
	s.Blanks()
	n := s.Decimal(5)
	if !s.Done() {
		s.Blanks()
		s.Want("port")
		s.Blanks()
		port = s.Decimal(3)
	}
	return fabric.LID(min(n, 0xffff)), port, 0, s.AtEnd() && n <= int(fabric.MaxUnicastLID)
}

// isPKeyHead returns true if a line names a port for pkeyHead, and a row of smpquery pkeys is next.
func isPKeyHead(line, next []byte) bool {
	_, _, _, ok := pkeyHead(line)
	row, _, isRow := bytes.Cut(bytes.TrimSpace(next), []byte(":"))
	return ok && isRow && string(row) == "0"
}

// ReadPKeys reads P_Key tables: the output of saquery PKTR, or that of smpquery pkeys with a
// line before each table that names its port ("Lid 5", "Lid 5 Port 2" or the port's GUID).
// name is the file's, for messages.
//
// The tables are by fabric.PortID and have the entries in use, in the order of the text; a
// port without a table has nil. One Missing Problem stands for all end ports with a LID but
// without a table. If no port has a LID, it stands for all end ports without a table.
//
// Errors are *fabric.ParseError, and the tables are then nil. With Options.Lenient these are
// Problems instead: foreign lines, tables of ports that the fabric lacks, and text that is
// cut short.
func ReadPKeys(name string, data []byte, f *fabric.Fabric, opt Options) ([][]fabric.PKey, []fabric.Problem, error) {
	r := &pkeyReader{textReader: newTextReader(name, data, opt), f: f, at: fabric.NoPort, tables: make([][]fabric.PKey, f.NumPorts())}
	read := map[Form]func(int, []byte) error{PKeyRecords: r.readRecordLine, SMPQueryPKeys: r.readQueryLine}[Recognize(data)]
	if read == nil {
		return nil, nil, r.notForm(Recognize(data), "P_Key tables", "what saquery --smkey 1 PKTR prints")
	}
	r.ports = make(map[fabric.GUID]fabric.PortID)
	f.EndPorts(func(p fabric.PortID) { r.ports[f.PortGUID(p)] = p })
	r.eachLine(func(at int, line []byte) error {
		line = bytes.TrimSpace(line)
		if isSilent(line) || bytes.HasPrefix(line, libraryWarning) {
			return nil
		}
		return read(at, line)
	})
	if r.open && !r.failed {
		r.add(r.lastLine(len(data)), fabric.Truncated, fmt.Errorf("the last P_Key table has no end: %w", ErrTruncated))
	}
	r.noteMissing()
	return finish(&r.textReader, r.tables)
}

// pkeyReader collects P_Key tables.
type pkeyReader struct {
	textReader
	f      *fabric.Fabric
	ports  map[fabric.GUID]fabric.PortID // end ports
	tables [][]fabric.PKey

	open bool          // a table has begun and not ended
	at   fabric.PortID // port of the open table; NoPort if it is left out
	lid  fabric.LID    // of this record
	rows int           // number of rows that the record still lacks
}

// enter begins or continues the table of port p.
func (r *pkeyReader) enter(p fabric.PortID) {
	if r.at = p; p != fabric.NoPort && r.tables[p] == nil {
		r.tables[p] = []fabric.PKey{}
	}
}

// find returns port num of the node with a LID; if num is -1, the port with the LID.
func (r *pkeyReader) find(lid fabric.LID, num int) (fabric.PortID, error) {
	p := r.f.LIDPort(lid)
	if p == fabric.NoPort {
		return p, fmt.Errorf("the fabric has no LID %d", lid)
	}
	node := r.f.Owner(p)
	switch {
	case num < 0:
		return p, nil
	case num > int(r.f.Node(node).NumPorts), num == 0 && !r.f.IsSwitch(node):
		return fabric.NoPort, fmt.Errorf("%s has no port %d", r.f.Name(node), num)
	}
	return r.f.Port(node, fabric.PortNum(num)), nil
}

// readKeys adds the entries of a row to the table of r.at; more than most are an error.
func (r *pkeyReader) readKeys(row []byte, most int) error {
	n := 0
	for word := range bytes.FieldsSeq(row) {
		s := topology.Line{Text: word}
		key := fabric.PKey(s.Hex0x(4))
		if n++; !s.AtEnd() || n > most {
			return fmt.Errorf("want up to %d P_Keys, like 0x8001 0x7fff", most)
		}
		if r.at != fabric.NoPort && key.Partition() != 0 && !slices.Contains(r.tables[r.at], key) {
			r.tables[r.at] = append(r.tables[r.at], key)
		}
	}
	return nil
}

// readRecordLine reads a line of saquery PKTR.
func (r *pkeyReader) readRecordLine(at int, line []byte) error {
	const perRow = 8
	key, value, isField := bytes.Cut(line, []byte("."))
	number := func(most int) int {
		s := topology.Line{Text: bytes.TrimLeft(value, ".")}
		n := s.Decimal(5)
		if !s.AtEnd() || n > most {
			r.drop(at, "%s %q, want 0 to %d", key, s.Text, most)
			return -1
		}
		return n
	}
	switch {
	case bytes.Equal(line, pkeyRecord):
		if r.open {
			r.drop(at, "the P_Key table before this one has no end")
		}
		r.open, r.at, r.lid, r.rows = true, fabric.NoPort, 0, 0
	case !r.open:
		return fmt.Errorf("text before the first record; want %s", pkeyRecord)
	case isField && string(key) == "LID":
		r.lid = fabric.LID(max(0, number(int(fabric.MaxUnicastLID))))
	case isField && string(key) == "Port":
		if n := number(int(fabric.MaxPortNum)); n >= 0 {
			p, err := r.find(r.lid, n)
			if err != nil {
				r.add(at, fabric.Dropped, err)
			}
			r.enter(p)
		}
	case isField && string(key) == "Block":
		number(0xffff)
	case bytes.Equal(line, pkeyTable):
		r.rows = pkeyBlock / perRow
	case r.rows > 0:
		r.rows--
		r.open = r.rows > 0
		return r.readKeys(line, perRow)
	default:
		return errors.New("want LID, Port or Block, or the row of a table")
	}
	return nil
}

// readQueryLine reads a line of smpquery pkeys, or one that names the port of the next table.
func (r *pkeyReader) readQueryLine(at int, line []byte) error {
	if lid, num, guid, ok := pkeyHead(line); ok {
		if r.open {
			r.drop(at, "the P_Key table before this one has no end")
		}
		p, known := r.ports[guid]
		if !known {
			p = fabric.NoPort
			err := fmt.Errorf("the fabric has no end port %s", guid)
			if guid == 0 {
				p, err = r.find(lid, num)
			}
			if err != nil {
				r.add(at, fabric.Dropped, err)
			}
		}
		r.open = true
		r.enter(p)
		return nil
	}
	if bytes.HasSuffix(line, pkeyCapacity) && r.open {
		r.open = false
		return nil
	}
	first, row, ok := bytes.Cut(line, []byte(":"))
	s := topology.Line{Text: first}
	if s.Decimal(5); !ok || !s.AtEnd() || !r.open {
		return errors.New("want a row of smpquery pkeys, or the port of the next table, like Lid 5")
	}
	return r.readKeys(row, pkeyBlock)
}

// noteMissing notes the end ports that have a LID and no table. If
// the topology has no LIDs, it notes all end ports without a table.
func (r *pkeyReader) noteMissing() {
	first, n := fabric.NoPort, 0
	r.f.EndPorts(func(p fabric.PortID) {
		if r.tables[p] == nil && (r.f.LID(p) != 0 || r.f.MaxLID() == 0) {
			if n++; n == 1 {
				first = p
			}
		}
	})
	if n == 0 {
		return
	}
	err := fmt.Errorf("no P_Key table of %s", r.f.PortName(first))
	if n > 1 {
		err = fmt.Errorf("no P_Key tables of %d end ports, such as %s", n, r.f.PortName(first))
	}
	r.add(-1, fabric.Missing, err)
}

// WritePKeys writes P_Key tables, by fabric.PortID, as saquery PKTR prints them: the
// blocks of a port that are in use, and always the first block. The format names ports by
// LID, so tables of ports without a LID are left out. Errors are those of w.
func WritePKeys(w io.Writer, f *fabric.Fabric, tables [][]fabric.PKey) error {
	out := bufio.NewWriterSize(w, 64<<10)
	for p := range fabric.PortID(f.NumPorts()) {
		keys, lid := tables[p], f.LID(p)
		if n := f.Owner(p); f.IsSwitch(n) {
			lid = f.LID(f.PortBase(n))
		}
		if keys == nil || lid == 0 {
			continue
		}
		for block := 0; block == 0 || block*pkeyBlock < len(keys); block++ {
			fmt.Fprintf(out, "%s\n\t\tLID........................%d\n\t\tPort.......................%d\n\t\tBlock......................%d\n\t\t%s\n",
				pkeyRecord, lid, f.Num(p), block, pkeyTable)
			for i := block * pkeyBlock; i < (block+1)*pkeyBlock; i++ {
				key, before, after := fabric.PKey(0), " ", ""
				if i < len(keys) {
					key = keys[i]
				}
				switch i % 8 {
				case 0:
					before = "\t\t"
				case 7:
					after = "\n"
				}
				fmt.Fprintf(out, "%s%s%s", before, key, after)
			}
			fmt.Fprintln(out)
		}
	}
	return out.Flush()
}
