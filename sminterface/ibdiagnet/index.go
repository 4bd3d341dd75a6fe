package ibdiagnet

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
)

// sized is a text that can be read at any place, such as a file.
type sized interface {
	io.ReaderAt
	Size() int64
}

// entry is a row of INDEX_TABLE: the header row of a section is at offset and in line,
// and END_ begins size bytes behind.
type entry struct {
	name         string
	offset, size int64
	line, rows   int
}

// errNoIndex says that a database has no INDEX_TABLE that is right.
var errNoIndex = errors.New("no INDEX_TABLE that is right")

// The sizes of what is read around the marks of sections, in bytes.
const (
	maxIndex = 1 << 20  // the table
	maxGap   = 64 << 10 // comments between two sections
	maxMark  = 256      // a line that begins or ends a section
)

// readAt reads up to n bytes.
func readAt(from sized, offset, n int64) []byte {
	if offset < 0 || offset > from.Size() {
		return nil
	}
	data := make([]byte, min(n, from.Size()-offset))
	got, err := from.ReadAt(data, offset)
	if err != nil && err != io.EOF {
		return nil
	}
	return data[:got]
}

// indexPromise begins the first line of a database that ends with an INDEX_TABLE.
const indexPromise = "# INDEX_TABLE offset:"

// promisesIndex says whether one of the first lines is that.
func promisesIndex(head []byte) bool { return bytes.Contains(head, []byte(indexPromise)) }

// indexPlace reads the first line: # INDEX_TABLE offset: N, line: M.
func indexPlace(line []byte) (offset int64, ok bool) {
	rest, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte(indexPromise))
	number, _, found := bytes.Cut(rest, []byte(","))
	offset, err := strconv.ParseInt(string(bytes.TrimSpace(number)), 10, 64)
	return offset, ok && found && err == nil && offset > 0
}

// readIndex reads INDEX_TABLE of a database, and proves it right: the sections that it
// lists lie where it says, one behind the other, with nothing between them but blank
// lines and comments. The rows of sections are not looked at.
func readIndex(from sized) ([]entry, error) {
	first, _, _ := bytes.Cut(readAt(from, 0, maxMark), []byte("\n"))
	at, ok := indexPlace(first)
	if !ok || from.Size()-at > maxIndex {
		return nil, errNoIndex
	}
	list, err := parseIndex(readAt(from, at, maxIndex))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b entry) int { return int(min(max(a.offset-b.offset, -1), 1)) })
	end := int64(0) // of the section before, with its last line
	for i := range list {
		begin, behind, ok := list[i].isThere(from)
		if !ok || begin < end || !isGap(from, end, begin) {
			return nil, errNoIndex
		}
		end = behind
	}
	if !isGap(from, end, at) {
		return nil, errNoIndex
	}
	return list, nil
}

// parseIndex reads the rows of an INDEX_TABLE, which is the last section.
func parseIndex(data []byte) ([]entry, error) {
	var list []entry
	ended := false
	var bad error
	err := walk(newLineReader(bytes.NewReader(data)), &visitor{
		wants: func(name string) bool { return name == indexName },
		begin: func(*table, int) error { return nil },
		row: func(t *table, _ int, row []byte) error {
			e, err := t.indexEntry(row)
			list = append(list, e)
			return err
		},
		end:     func(*table, int, int) error { ended = true; return nil },
		cut:     func(int, []byte, string, ...any) { bad = errNoIndex },
		foreign: func(int, []byte) { bad = errNoIndex },
	})
	if err != nil || bad != nil || !ended {
		return nil, errNoIndex
	}
	return list, nil
}

// indexEntry reads a row of INDEX_TABLE.
func (t *table) indexEntry(row []byte) (e entry, err error) {
	fields, err := t.split(nil, row)
	if err != nil {
		return e, err
	}
	number := func(name string) int64 {
		i := t.column(name)
		if i < 0 {
			err = errNoIndex
			return 0
		}
		v, bad := strconv.ParseInt(string(bytes.TrimSpace(fields[i])), 10, 62)
		if bad != nil || v < 0 {
			err = errNoIndex
		}
		return v
	}
	if i := t.column("name"); i >= 0 {
		e.name = string(bytes.TrimSpace(fields[i]))
	}
	e.offset, e.size, e.line, e.rows = number("offset"), number("size"), int(number("line")), int(number("rows"))
	return e, err
}

// isThere says whether a section lies where its entry says, and gives the offsets of its
// first line, START_, and of what follows its last one, END_.
func (e *entry) isThere(from sized) (begin, behind int64, ok bool) {
	start := "\n" + startMark + e.name + "\n" // there is a line before
	begin = e.offset - int64(len(start)) + 1
	if begin < 1 || string(readAt(from, begin-1, int64(len(start)))) != start || e.offset > from.Size()-e.size {
		return 0, 0, false
	}
	end := endMark + e.name
	last := readAt(from, e.offset+e.size-1, int64(len(end))+2)
	if len(last) < len(end)+1 || last[0] != '\n' || string(last[1:len(end)+1]) != end ||
		len(last) > len(end)+1 && last[len(end)+1] != '\n' {
		return 0, 0, false
	}
	return begin, e.offset + e.size + int64(len(end)), true
}

// isGap says whether there are only blank lines and comments between two offsets.
func isGap(from sized, begin, end int64) bool {
	if end-begin > maxGap {
		return false
	}
	gap := readAt(from, begin, end-begin)
	for line := range bytes.Lines(gap) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return int64(len(gap)) == end-begin
}

// walkIndexed is walk for the sections that the visitor wants, by an index that readIndex
// has proved right.
func walkIndexed(from sized, index []entry, v *visitor) error {
	r := newLineReader(nil)
	for i := range index {
		e := &index[i]
		if !v.wants(e.name) {
			continue
		}
		begin, behind, _ := e.isThere(from)
		r.from.Reset(io.NewSectionReader(from, begin, behind-begin))
		r.number = max(0, e.line-2)
		if err := walk(r, v); err != nil {
			return err
		}
	}
	return nil
}
