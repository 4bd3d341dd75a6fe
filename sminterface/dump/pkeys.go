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
	pkeyRecord = []byte("PKeyTableRecord dump:") // saquery PKTR (infiniband-diags, saquery.c)
	pkeyTable  = []byte("PKey Table:")
)

// pkeyBlock is how many entries one P_KeyTable attribute has (IBA 14.2.5.7).
const pkeyBlock = 32

// ReadPKeys reads P_Key tables: what saquery PKTR prints. name is the file's, for messages.
//
// The tables are by fabric.PortID and have the entries in use, in the order of the text; a
// port that the text says nothing about has nil. End ports with a LID, or all where none has
// one, and without a table are Missing Problems; one stands for all.
//
// Errors are *fabric.ParseError, and the tables are then nil. With Options.Lenient these
// are Problems instead: lines that do not belong, tables of ports that the fabric lacks, and
// what is cut.
func ReadPKeys(name string, data []byte, f *fabric.Fabric, opt Options) ([][]fabric.PKey, []fabric.Problem, error) {
	r := &pkeyReader{textReader: newTextReader(name, data, opt), f: f, at: fabric.NoPort, tables: make([][]fabric.PKey, f.NumPorts())}
	if form := Recognize(data); form != PKeyRecords {
		return nil, nil, r.notForm(form, "P_Key tables", "what saquery --smkey 1 PKTR prints")
	}
	r.eachLine(func(at int, line []byte) error {
		line = bytes.TrimSpace(line)
		if isSilent(line) || bytes.HasPrefix(line, libraryWarning) {
			return nil
		}
		return r.readLine(at, line)
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
	tables [][]fabric.PKey

	open bool          // a table has begun and not ended
	at   fabric.PortID // that it is of; NoPort for one that is left out
	lid  fabric.LID    // of a record
	rows int           // that a record has still to come
}

// find is the port of the node with a LID that has a number.
func (r *pkeyReader) find(lid fabric.LID, num int) (fabric.PortID, error) {
	p := r.f.LIDPort(lid)
	if p == fabric.NoPort {
		return p, fmt.Errorf("the fabric has no LID %d", lid)
	}
	node := r.f.Owner(p)
	if num > int(r.f.Node(node).NumPorts) || num == 0 && !r.f.IsSwitch(node) {
		return fabric.NoPort, fmt.Errorf("%s has no port %d", r.f.Name(node), num)
	}
	return r.f.Port(node, fabric.PortNum(num)), nil
}

// pkeysPerRow is how many entries a row has.
const pkeysPerRow = 8

// readKeys reads a row of entries.
func (r *pkeyReader) readKeys(row []byte) error {
	n := 0
	for word := range bytes.FieldsSeq(row) {
		s := topology.Line{Text: word}
		key := s.Hex0x(4)
		if n++; !s.AtEnd() || n > pkeysPerRow {
			return fmt.Errorf("want up to %d P_Keys, like 0x8001 0x7fff", pkeysPerRow)
		}
		if key := fabric.PKey(key); r.at != fabric.NoPort && key.Partition() != 0 && !slices.Contains(r.tables[r.at], key) {
			r.tables[r.at] = append(r.tables[r.at], key)
		}
	}
	return nil
}

// readLine reads a line of a record.
func (r *pkeyReader) readLine(at int, line []byte) error {
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
			var err error
			if r.at, err = r.find(r.lid, n); err != nil {
				return err
			}
			if r.tables[r.at] == nil {
				r.tables[r.at] = []fabric.PKey{}
			}
		}
	case isField && string(key) == "Block":
		number(0xffff)
	case bytes.Equal(line, pkeyTable):
		r.rows = pkeyBlock / pkeysPerRow
	case r.rows > 0:
		r.rows--
		r.open = r.rows > 0
		return r.readKeys(line)
	default:
		return errors.New("want LID, Port or Block, or the row of a table")
	}
	return nil
}

// noteMissing notes the end ports that have a LID and no table. Where no port has a LID, since the topology
// has none, it notes all end ports without a table.
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
// blocks of a port that are in use, and the first one in any case. The form names ports by
// LIDs: tables of ports without one are left out. Errors are those of w.
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
