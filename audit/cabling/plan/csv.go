package plan

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/ibweave/ibweave/internal/text"
)

// The columns that a plan needs.
const (
	startDevice = iota
	startPort
	endDevice
	endPort
	required // how many there are
	startPlace
	endPlace
	noColumn
)

// Columns are told by their names, of which only lower-case letters and digits count: a
// word for the end of the cable and one for what stands there, in either order. The first
// words are UFM's.
var (
	endWords = [2][]string{
		{"start", "source", "src", "from", "local", "left", "near", "a", "aside", "sidea", "aend", "enda", "1", "von", "quelle", "quell"},
		{"end", "destination", "dest", "dst", "to", "remote", "peer", "right", "far", "target", "b", "bside", "sideb", "bend", "endb",
			"z", "zside", "sidez", "zend", "endz", "2", "nach", "ziel"},
	}
	deviceWords = []string{"device", "node", "name", "host", "hostname", "switch", "system", "equipment", "equipement", "nodename", "devicename",
		"switchname", "nodeguid", "portnodedescription", "gert", "geraet"}
	portWords = []string{"port", "portnum", "portnumber", "portname", "portno", "portnr", "interface", "anschluss"}
)

// columnTables returns the columns by name, and of words for one thing the first column.
var columnTables = sync.OnceValues(func() (columns, bare map[string]int) {
	columns, bare = map[string]int{}, map[string]int{}
	for side, ends := range endWords {
		for _, end := range ends {
			for _, word := range deviceWords {
				columns[end+word], columns[word+end] = startDevice+2*side, startDevice+2*side
			}
			for _, word := range portWords {
				columns[end+word], columns[word+end] = startPort+2*side, startPort+2*side
			}
			if end > "9" {
				columns[end] = startDevice + 2*side
			}
		}
	}
	for _, word := range deviceWords {
		bare[word] = startDevice
	}
	for _, word := range portWords {
		bare[word] = startPort
	}
	return columns, bare
})

// columnKey is the letters and digits of the name of a column.
func columnKey(name string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return -1
	}, strings.ToLower(name))
}

// columnNamed is the column of a name, noColumn for any other.
func columnNamed(name string) int {
	key := strings.TrimPrefix(columnKey(name), "fields") // #Fields:StartDevice of UFM
	columns, _ := columnTables()
	if column, ok := columns[key]; ok {
		return column
	}
	switch {
	case strings.HasPrefix(key, "startdevicelocation"):
		return startPlace
	case strings.HasPrefix(key, "enddevicelocation"):
		return endPlace
	}
	return noColumn
}

// header says where the columns are.
type header struct {
	at    [required]int
	start []int // columns that say where the first device is
	end   []int
}

// maxTitle is how many rows may stand above the header.
const maxTitle = 20

// csvRow is a row of a CSV file.
type csvRow struct {
	line   int
	fields []string
}

// csv reads NDTs and other CSV. Rows whose first field begins with # after the header are
// comments. A row without a second device and port is a port that stays free, as UFM
// writes ports that are down.
func (r *reader) csv(data []byte) error {
	rows, err := r.rows(data)
	if err != nil {
		return err
	}
	h, from, err := r.header(rows)
	if err != nil {
		return err
	}
	for _, row := range rows[from:] {
		if err := r.row(h, row); err != nil {
			return err
		}
	}
	return nil
}

// separator is what separates fields: a comma, a semicolon, a tab or a bar, whichever the
// first lines have most of, or what a first line sep=; says, as Excel reads it. rest is
// the text without such a line, of which there are skipped ones.
func separator(data []byte) (comma rune, rest []byte, skipped int) {
	line, behind, _ := bytes.Cut(data, []byte("\n"))
	if is, ok := bytes.CutPrefix(bytes.Trim(line, "\"\r"), []byte("sep=")); ok && len(is) == 1 && strings.IndexByte(",;\t|", is[0]) >= 0 {
		return rune(is[0]), behind, 1
	}
	var first []byte
	n := 0
	for line := range bytes.Lines(data) {
		if n++; n > maxTitle {
			break
		}
		first = append(first, line...)
	}
	comma = ','
	for _, c := range ";\t|" {
		if bytes.Count(first, []byte(string(c))) > bytes.Count(first, []byte(string(comma))) {
			comma = c
		}
	}
	return comma, data, 0
}

// rows splits the file.
func (r *reader) rows(data []byte) ([]csvRow, error) {
	comma, data, skipped := separator(data)
	c := csv.NewReader(bytes.NewReader(data))
	c.FieldsPerRecord, c.LazyQuotes, c.Comma = -1, true, comma
	var rows []csvRow
	for {
		fields, err := c.Read()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			var at *csv.ParseError
			if errors.As(err, &at) {
				return nil, r.error(at.Line+skipped, "", "%w; want CSV", at.Err)
			}
			return nil, r.error(0, "", "%w", err)
		}
		empty := true
		for i, f := range fields {
			fields[i] = strings.TrimSpace(f)
			empty = empty && fields[i] == ""
		}
		line, _ := c.FieldPos(0)
		if !empty {
			rows = append(rows, csvRow{line + skipped, fields})
		}
	}
}

// header finds the header and the first row behind it. Without one there are four columns.
// Where cells above the header are merged, as From above Device and Port, both rows are one.
func (r *reader) header(rows []csvRow) (*header, int, error) {
	var best *header
	most, at := 1, 0
	for i, row := range rows[:min(maxTitle, len(rows))] {
		h, found := headerOf(row.fields)
		if found < required && i > 0 {
			if both, n := headerOf(underMerged(rows[i-1].fields, row.fields)); n == required {
				h, found = both, n
			}
		}
		if found == required {
			return h, i + 1, nil
		}
		if isCable(row.fields) {
			break
		}
		if found > most {
			best, most, at = h, found, i
		}
	}
	if best == nil {
		if len(rows) > 0 && len(rows[0].fields) >= required && !isCable(rows[0].fields) {
			return nil, 0, r.error(rows[0].line, strings.Join(rows[0].fields, ","), "this is no cable, nor a header with columns StartDevice, StartPort, EndDevice and EndPort; want one of them")
		}
		return &header{at: [required]int{0, 1, 2, 3}}, 0, nil
	}
	missing := slices.Index(best.at[:], -1)
	return nil, 0, r.error(rows[at].line, strings.Join(rows[at].fields, ","), "the header has no column %s; want StartDevice, StartPort, EndDevice and EndPort",
		[required]string{"StartDevice", "StartPort", "EndDevice", "EndPort"}[missing])
}

// isCable says whether a row without a header may be a cable: both ports have a number.
func isCable(fields []string) bool {
	const digits = "0123456789"
	return len(fields) >= required && !strings.HasPrefix(fields[0], "#") && fields[0] != "" && fields[2] != "" &&
		strings.ContainsAny(fields[1], digits) && strings.ContainsAny(fields[3], digits)
}

// underMerged is a row of names with the row above put in front of each. Of merged cells the
// first one has the text.
func underMerged(above, fields []string) []string {
	list := slices.Clone(fields)
	text := ""
	for i := range list {
		if i < len(above) && above[i] != "" {
			text = above[i]
		}
		list[i] = text + " " + list[i]
	}
	return list
}

// headerOf takes a row for a header and says how many of the four columns it has.
func headerOf(fields []string) (h *header, found int) {
	h = &header{at: [required]int{-1, -1, -1, -1}}
	for i, f := range fields {
		switch column := columnNamed(f); column {
		case noColumn, required:
		case startPlace:
			h.start = append(h.start, i)
		case endPlace:
			h.end = append(h.end, i)
		default:
			if h.at[column] < 0 {
				h.at[column] = i
				found++
			}
		}
	}
	_, bare := columnTables()
	for i, f := range fields { // node, port, peer, peer port; Device, Port, Device, Port
		column, ok := bare[columnKey(f)]
		if ok && h.at[column] >= 0 {
			column += endDevice - startDevice
		}
		if ok && h.at[column] < 0 {
			h.at[column] = i
			found++
		}
	}
	if len(h.start) == 0 { // the four columns alone: nothing tells a place
		return h, found
	}
	for i := range max(0, h.at[startDevice]) { // rack and height before the device
		h.start = append(h.start, i)
	}
	for i := h.at[endPort] + 1; i < len(fields); i++ {
		if key := fold(fields[i]); strings.HasPrefix(key, "u height") || strings.HasPrefix(key, "rack") {
			h.end = append(h.end, i)
		}
	}
	return h, found
}

// row reads a row.
func (r *reader) row(h *header, row csvRow) error {
	if strings.HasPrefix(row.fields[0], "#") {
		return nil
	}
	joined := strings.Join(row.fields, ",")
	get := func(i int) string {
		if i < len(row.fields) {
			return row.fields[i]
		}
		return ""
	}
	place := func(columns []int) string {
		var list []string
		for _, i := range columns {
			if s := get(i); s != "" {
				list = append(list, s)
			}
		}
		return strings.Join(list, " ")
	}
	a := End{get(h.at[startDevice]), get(h.at[startPort]), place(h.start)}
	b := End{get(h.at[endDevice]), get(h.at[endPort]), place(h.end)}
	switch {
	case len(row.fields) < required:
		return r.skip(row.line, joined, "a row of %s; want %s", text.CountGrouped(len(row.fields), "column", "columns"), formsHelp)
	case a.Device != "" && a.Port != "" && b.Device == "" && b.Port == "":
		return nil
	case a.Device == "" && a.Port == "" && b.Device == "" && b.Port == "":
		return nil // a row of remarks
	}
	return r.add(row.line, joined, a, b)
}
