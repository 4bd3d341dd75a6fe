package plan

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"strings"
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

// columnNames tells columns by their names, of which only lower-case letters and digits
// count. The first of each row are UFM's.
var columnNames = [required][]string{
	startDevice: {"startdevice", "fieldsstartdevice", "node1", "name1", "device1", "switch1", "host1", "source", "sourcenode", "sourcename",
		"sourcedevice", "sourceportnodedescription", "from", "fromnode", "fromdevice", "nodea", "devicea", "namea", "a", "localnode", "localdevice", "localname", "nodeguid1"},
	startPort: {"startport", "port1", "portnum1", "sourceport", "fromport", "porta", "aport", "localport"},
	endDevice: {"enddevice", "node2", "name2", "device2", "switch2", "host2", "destination", "destinationnode", "destinationname",
		"destinationdevice", "destinationportnodedescription", "to", "tonode", "todevice", "nodeb", "deviceb", "nameb", "b", "remotenode", "remotedevice", "remotename", "peer", "nodeguid2"},
	endPort: {"endport", "port2", "portnum2", "destinationport", "toport", "portb", "bport", "remoteport", "peerport"},
}

// bareNames are names of columns that count only where no other column has one of
// columnNames: "node, port, peer, peer port".
var bareNames = map[string]int{"node": startDevice, "device": startDevice, "name": startDevice, "switch": startDevice, "port": startPort}

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
	key := columnKey(name)
	for column, names := range columnNames {
		for _, n := range names {
			if n == key {
				return column
			}
		}
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

// rows splits the file. The separator is a comma, a semicolon or a tab, whichever the
// first lines have most of.
func (r *reader) rows(data []byte) ([]csvRow, error) {
	var first []byte
	n := 0
	for line := range bytes.Lines(data) {
		if n++; n > maxTitle {
			break
		}
		first = append(first, line...)
	}
	c := csv.NewReader(bytes.NewReader(data))
	c.FieldsPerRecord, c.LazyQuotes = -1, true
	c.Comma = ','
	for _, comma := range []rune{';', '\t'} {
		if bytes.Count(first, []byte(string(comma))) > bytes.Count(first, []byte(string(c.Comma))) {
			c.Comma = comma
		}
	}
	var rows []csvRow
	for {
		fields, err := c.Read()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			var at *csv.ParseError
			if errors.As(err, &at) {
				return nil, r.error(at.Line, "", "%w; want CSV", at.Err)
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
			rows = append(rows, csvRow{line, fields})
		}
	}
}

// header finds the header and the first row behind it. Without one there are four columns.
func (r *reader) header(rows []csvRow) (*header, int, error) {
	for i, row := range rows[:min(maxTitle, len(rows))] {
		h, found := headerOf(row.fields)
		if found == required {
			return h, i + 1, nil
		}
		if found < 2 {
			continue
		}
		for column, at := range h.at {
			if at < 0 {
				return nil, 0, r.error(row.line, strings.Join(row.fields, ","), "the header has no column %s; want StartDevice, StartPort, EndDevice and EndPort",
					[required]string{"StartDevice", "StartPort", "EndDevice", "EndPort"}[column])
			}
		}
	}
	return &header{at: [required]int{0, 1, 2, 3}}, 0, nil
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
	for i, f := range fields {
		if column, ok := bareNames[columnKey(f)]; ok && h.at[column] < 0 && found > 0 {
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
	text := strings.Join(row.fields, ",")
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
		return r.skip(row.line, text, "%d columns; want %s", len(row.fields), formsHelp)
	case a.Device != "" && a.Port != "" && b.Device == "" && b.Port == "":
		return nil
	case a.Device == "" && a.Port == "" && b.Device == "" && b.Port == "":
		return nil // a row of remarks
	}
	return r.add(row.line, text, a, b)
}
