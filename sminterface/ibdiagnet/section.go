package ibdiagnet

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/ibweave/ibweave/fabric"
	"github.com/ibweave/ibweave/sminterface/dump"
)

// maxLine bounds a line, in bytes. The longest that ibdiagnet prints are the header rows
// of counters, with some kilobytes.
const maxLine = 256 << 10

// Lines that begin and end sections.
const (
	startMark = "START_"
	endMark   = "END_"
	indexName = "INDEX_TABLE"
)

// indexPromise is in the first maxFirst bytes of a database
// that ends with an INDEX_TABLE: its first line begins so.
const (
	indexPromise = "# INDEX_TABLE offset:"
	maxFirst     = 256
)

// entry is a row of INDEX_TABLE. The header row of a section is at offset and in
// line, and END_ begins size bytes behind offset. A reader needs only name and rows.
type entry struct {
	name         string
	offset, size int
	line, rows   int
}

// indexEntry reads a row of INDEX_TABLE.
func (t *table) indexEntry(row []byte) (e entry, err error) {
	fields, err := t.split(nil, row)
	name, rows := t.column("name"), t.column("rows")
	if err != nil || name < 0 || rows < 0 {
		return e, cmp.Or(err, errors.New("no name or no rows"))
	}
	e.name = string(bytes.TrimSpace(fields[name]))
	e.rows, err = strconv.Atoi(string(bytes.TrimSpace(fields[rows])))
	return e, err
}

// errLongLine reports text that is no database.
var errLongLine = fmt.Errorf("a line of more than %d bytes; want db_csv of ibdiagnet", maxLine)

// lineReader reads and numbers lines.
type lineReader struct {
	from   *bufio.Reader
	number int  // 1-based, of the last line; 0 before the first
	half   bool // the last line has no end, and may be cut
}

// next returns a line without its end, valid until the next
// call. io.EOF comes without a line.
func (r *lineReader) next() ([]byte, error) {
	line, err := r.from.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		r.number++
		return nil, errLongLine
	}
	if err != nil && (err != io.EOF || len(line) == 0) {
		return nil, err
	}
	r.number++
	r.half = err == io.EOF
	line = bytes.TrimRight(line, "\r\n")
	if r.number == 1 {
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	return line, nil
}

// table is a section that is being read.
type table struct {
	name    string
	columns map[string]int // by plain name
	width   int            // columns
	free    int            // index of the column of free text that may have commas; -1 for none
	header  []byte
}

// plain returns the name by which a column is looked up:
// versions differ in case and underscores.
func plain(name string) string {
	return strings.ToLower(strings.ReplaceAll(strings.Trim(strings.TrimSpace(name), `"`), "_", ""))
}

// freeColumns are the columns whose text may have commas without quotes around it.
var freeColumns = []string{"nodedesc", "nodedescription", "vnodedesc", "summary", "label"}

// newTable reads a header row.
func newTable(name string, header []byte) *table {
	t := &table{name: name, columns: map[string]int{}, free: -1, header: bytes.Clone(header)}
	fields, _ := splitRow(nil, header)
	t.width = len(fields)
	for i, field := range fields {
		key := plain(string(field))
		if _, twice := t.columns[key]; !twice {
			t.columns[key] = i
		}
	}
	for _, key := range freeColumns {
		if i, ok := t.columns[key]; ok {
			t.free = i
			break
		}
	}
	return t
}

// column returns the index of the first column in names that exists, -1 for none.
func (t *table) column(names ...string) int {
	for _, name := range names {
		if i, ok := t.columns[name]; ok {
			return i
		}
	}
	return -1
}

// splitRow appends the fields of a row, split at commas, except
// those between quotes. A quote ends a text if a comma or the end
// of the row follows. clean is false if a quote is not closed.
func splitRow(fields [][]byte, row []byte) (list [][]byte, clean bool) {
	clean = true
	for {
		end := bytes.IndexByte(row, ',')
		if len(row) > 0 && row[0] == '"' {
			switch i := bytes.Index(row[1:], []byte(`",`)); {
			case i >= 0:
				end = i + 2
			case len(row) > 1 && row[len(row)-1] == '"':
				end = -1
			default:
				clean = false
			}
		}
		if end < 0 {
			return append(fields, row), clean
		}
		fields = append(fields, row[:end])
		row = row[end+1:]
	}
}

// split splits a row into one field for each column. If there are more or
// fewer fields, the column of free text gets what the other columns leave.
func (t *table) split(fields [][]byte, row []byte) ([][]byte, error) {
	list, clean := splitRow(fields[:0], row)
	if clean && len(list) >= t.width && areEmpty(list[t.width:]) {
		return list[:t.width], nil
	}
	wrong := fmt.Errorf("%s: a row of %d fields; want %d, as the header row has", t.name, len(list), t.width)
	if t.free < 0 {
		return nil, wrong
	}
	list = fields[:0]
	for range t.free {
		field, rest, found := bytes.Cut(row, []byte(","))
		if !found {
			return nil, wrong
		}
		list, row = append(list, field), rest
	}
	behind := t.width - t.free - 1
	tail := make([][]byte, behind)
	for i := behind - 1; i >= 0; i-- {
		comma := bytes.LastIndexByte(row, ',')
		if comma < 0 {
			return nil, wrong
		}
		tail[i], row = row[comma+1:], row[:comma]
	}
	return append(append(list, row), tail...), nil
}

// areEmpty returns true if all fields are blank, like those that a spreadsheet adds.
func areEmpty(fields [][]byte) bool {
	return !slices.ContainsFunc(fields, func(f []byte) bool { return len(bytes.TrimSpace(f)) > 0 })
}

// unquoted returns a field without the quotes around it.
func unquoted(field []byte) string {
	if n := len(field); n > 1 && field[0] == '"' && field[n-1] == '"' {
		field = field[1 : n-1]
	}
	return string(field)
}

// walk reads sections to the end of the text. A section without an end ends where another
// one begins or ends. Errors are those of the reader, and of rows that cannot be used.
func (d *draft) walk(r *lineReader) error {
	name, t, rows := "", (*table)(nil), 0 // the section being read; t is nil if it is not used
	header := false                       // the next line is the header row
	var x row
	finish := func() {
		if t != nil {
			d.rows[t.name] += rows
		}
		name, t, header = "", nil, false
	}
	for {
		line, err := r.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if name != "" && t == nil && !header && (len(line) == 0 || line[0] != 'S' && line[0] != 'E') {
			continue // in a section that is not used
		}
		if next, ok := dump.SectionMark(line, startMark); ok {
			if name != "" {
				d.note(CutFile, r.number, line, "section %s has no end before %s begins: rows may be missing", name, next)
				finish()
			}
			name, rows = next, 0
			header = name == indexName || d.formOf(name) != nil
			continue
		}
		if last, ok := dump.SectionMark(line, endMark); ok {
			switch {
			case name == "":
				d.note(CutFile, r.number, line, "section %s ends and has not begun: rows may be missing", last)
			case name != last:
				d.note(CutFile, r.number, line, "section %s has no end before %s ends: rows may be missing", name, last)
			}
			finish()
			continue
		}
		switch text := bytes.TrimSpace(line); {
		case len(text) == 0 || text[0] == '#':
		case name == "":
			d.count(fabric.ForeignLines, r.number, line, "%q stands between sections, where only comments are expected", line[:min(len(line), 60)])
		case r.half: // the section has no end, either
		case header:
			header = false
			t = newTable(name, text)
			err = d.beginSection(&x, t, r.number)
		case t != nil:
			rows++
			err = d.readRow(&x, t, r.number, text)
		}
		if err != nil {
			return err
		}
	}
	if name != "" {
		d.note(CutFile, r.number, nil, "section %s has no end: the file is cut short", name)
		finish()
	}
	return nil
}
